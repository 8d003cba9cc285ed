/*
 * wire_test.c
 *	  Tests sending and receiving of messages (server/wire.c) with peers that misbehave.
 *
 * The peer is the other end of a socket pair: it sends a part of a message, nothing, single bytes
 * or wrong headers, or never reads. The test includes the source file with a shorter timeout.
 */
#include "unit.h"

#include <pthread.h>
#include <sys/time.h>
#include <time.h>

#include "server/server.h"

/* Short where a test waits for the timeout, long where a slow peer must be waited for. */
static int rest_ms = 100;
#undef WIRE_REST_MS
#define WIRE_REST_MS rest_ms

#include "server/wire.c"

static int pair[2];
static MessageHeader header;
static char body[64];
static bool garbage;

/* Opens the connected sockets that the tests use. */
static void
open_pair(void)
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "a socket pair is created");
}

/* Closes both sockets. */
static void
close_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
test_whole(void)
{
	open_pair();
	CHECK(wire_send(pair[0], MESSAGE_LOG, "abc", 3), "a message is sent");
	CHECK(wire_send(pair[0], MESSAGE_PING, NULL, 0), "a message without a body is sent");
	CHECK(wire_receive(pair[1], &header, body, sizeof(body), -1, &garbage),
		  "a message is received");
	CHECK(header.type == MESSAGE_LOG && header.length == 3 && memcmp(body, "abc", 3) == 0,
		  "the message has its body");
	CHECK(wire_receive(pair[1], &header, body, sizeof(body), -1, &garbage),
		  "a message is received");
	CHECK(header.type == MESSAGE_PING && header.length == 0, "the message has no body");
	close_pair();
}

static void
test_silent(void)
{
	int64_t since = now_ms();

	open_pair();
	CHECK(!wire_receive(pair[1], &header, body, sizeof(body), 50, &garbage),
		  "no message is received from a silent peer");
	CHECK(!garbage && now_ms() - since >= 50 && now_ms() - since < 5000,
		  "the wait ends at its timeout, and is no protocol error");
	close_pair();
}

/* The rest of a message has its own timeout, even if the first byte may take any time. */
static void
test_incomplete(void)
{
	MessageHeader whole = {GPUAGG_PROTOCOL_MAGIC, MESSAGE_LOG, 20, 0};

	for (size_t n = 1; n < sizeof(whole) + 20; n++)
	{
		char bytes[sizeof(whole) + 20] = {0};

		if (n > 3 && n < sizeof(whole) + 18 && n != sizeof(whole))
			continue;
		memcpy(bytes, &whole, sizeof(whole));
		open_pair();
		CHECK(write(pair[0], bytes, n) == (ssize_t) n, "bytes are written");
		CHECK(!wire_receive(pair[1], &header, body, sizeof(body), -1, &garbage) && !garbage,
			  "%zu bytes without the rest are no message and no protocol error", n);
		close_pair();
		open_pair();
		CHECK(write(pair[0], bytes, n) == (ssize_t) n, "bytes are written");
		shutdown(pair[0], SHUT_WR);
		CHECK(!wire_receive(pair[1], &header, body, sizeof(body), -1, &garbage) && !garbage,
			  "%zu bytes and a closed connection are no message and no protocol error", n);
		close_pair();
	}
}

/* Sends a message in single bytes, one every 80 ms: more than a second for all. */
static void *
send_slowly(void *arg)
{
	const char *bytes = arg;

	for (size_t n = 0; n < sizeof(MessageHeader) + 3; n++)
	{
		usleep(80000);
		if (write(pair[0], bytes + n, 1) != 1)
			break;
	}
	return NULL;
}

/* The whole message takes longer than the timeout, but each byte arrives within it. */
static void
test_slow(void)
{
	MessageHeader whole = {GPUAGG_PROTOCOL_MAGIC, MESSAGE_LOG, 3, 0};
	char bytes[sizeof(whole) + 3];
	pthread_t thread;

	memcpy(bytes, &whole, sizeof(whole));
	memcpy(bytes + sizeof(whole), "abc", 3);
	rest_ms = 1000;
	open_pair();
	CHECK(pthread_create(&thread, NULL, send_slowly, bytes) == 0, "a thread starts");
	CHECK(wire_receive(pair[1], &header, body, sizeof(body), -1, &garbage),
		  "a message is received byte by byte");
	CHECK(memcmp(body, "abc", 3) == 0, "the message has its body");
	pthread_join(thread, NULL);
	close_pair();
	rest_ms = 100;
}

static void
test_wrong_headers(void)
{
	static const MessageHeader wrong[] = {
		{GPUAGG_PROTOCOL_MAGIC + 1, MESSAGE_LOG, 3, 0},
		{GPUAGG_PROTOCOL_MAGIC, MESSAGE_LOG, sizeof(body) + 1, 0},
		{GPUAGG_PROTOCOL_MAGIC, MESSAGE_LOG, UINT32_MAX, 0},
		{GPUAGG_PROTOCOL_MAGIC, MESSAGE_LOG, 3, 1},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		open_pair();
		CHECK(write(pair[0], &wrong[i], sizeof(wrong[i])) == sizeof(wrong[i]), "bytes are written");
		CHECK(!wire_receive(pair[1], &header, body, sizeof(body), -1, &garbage) && garbage,
			  "wrong header %zu is a protocol error", i);
		close_pair();
	}
}

static void
test_never_reads(void)
{
	struct timeval send_timeout = {.tv_usec = 100000};
	int64_t since = now_ms();
	int sent = 0;

	open_pair();
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &send_timeout, sizeof(send_timeout));
	while (sent < 1000000 && wire_send(pair[0], MESSAGE_LOG, body, sizeof(body)))
		sent++;
	CHECK(sent < 1000000, "sending to a peer that never reads fails");
	CHECK(now_ms() - since < 5000, "sending fails within 5 s");
	close_pair();
}

int
main(void)
{
	RUN("whole messages are received", test_whole);
	RUN("a silent peer causes a timeout", test_silent);
	RUN("an incomplete message is not received", test_incomplete);
	RUN("a slow peer is waited for", test_slow);
	RUN("a wrong header is a protocol error", test_wrong_headers);
	RUN("sending to a peer that never reads fails", test_never_reads);
	return unit_done();
}

/*
 * stream.c
 *	  Messages of a session, several with one system call.
 *
 * If a client sends several messages at once, it waits only for the last answer. So earlier answers
 * are held back and go with the last one (stream_hold).
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/server.h"

/* ---- sending ---- */

static bool
send_held(Stream *stream)
{
	size_t n = stream->held;

	stream->held = 0;
	return n == 0 || wire_send_bytes(stream->sock, stream->out, n);
}

bool
stream_hold(Stream *stream, MessageType type, const void *body, size_t length)
{
	MessageHeader header = {GPUAGG_PROTOCOL_MAGIC, type, (uint32_t) length, 0};
	size_t bytes = sizeof(header) + length;

	if (stream->held + bytes > sizeof(stream->out) && !send_held(stream))
		return false;
	if (bytes > sizeof(stream->out))
		return wire_send(stream->sock, type, body, length);
	memcpy(stream->out + stream->held, &header, sizeof(header));
	if (length > 0)
		memcpy(stream->out + stream->held + sizeof(header), body, length);
	stream->held += bytes;
	return true;
}

bool
stream_send(Stream *stream, MessageType type, const void *body, size_t length)
{
	return stream_hold(stream, type, body, length) && send_held(stream);
}

bool
stream_send_fd(Stream *stream, MessageType type, const void *body, size_t length, int fd)
{
	return send_held(stream) && wire_send_fd(stream->sock, type, body, length, fd);
}

/* ---- receiving ---- */

bool
stream_waits(const Stream *stream)
{
	struct pollfd p = {.fd = stream->sock, .events = POLLIN};

	return stream->from < stream->to || poll(&p, 1, 0) > 0;
}

/* Arguments and result of a receive that does not wait. */
typedef struct Receive
{
	int sock;
	void *to;
	size_t size;
	ssize_t n;
} Receive;

static bool
receive_now(void *arg)
{
	Receive *r = arg;

	r->n = recv(r->sock, r->to, r->size, MSG_DONTWAIT);
	return r->n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/*
 * Receives some bytes. Returns 0 at end of file, after wait_ms, or after an error. Sends held-back
 * answers before it sleeps.
 */
static size_t
receive_some(Stream *stream, void *to, size_t size, int wait_ms)
{
	struct pollfd p = {.fd = stream->sock, .events = POLLIN};
	Receive r = {stream->sock, to, size, -1};
	bool spins = stream->spins;

	for (;;)
	{
		if (receive_now(&r) && r.n < 0 && errno == EINTR)
			continue;
		if (r.n >= 0)
			return r.n;
		if ((errno != EAGAIN && errno != EWOULDBLOCK) || !send_held(stream))
			return 0;
		if (spins && spin_until(receive_now, &r) && r.n > 0)
			return r.n;
		spins = false;
		if (poll(&p, 1, wait_ms) == 0)
			return 0;
	}
}

static bool
receive_all(Stream *stream, void *data, size_t length, int wait_ms)
{
	char *at = data;

	while (length > 0)
	{
		size_t n = stream->to - stream->from;

		if (n == 0 && length >= sizeof(stream->in))
		{
			n = receive_some(stream, at, length, at == data ? wait_ms : WIRE_REST_MS);
			if (n == 0)
				return false;
		}
		else if (n == 0)
		{
			stream->from = 0;
			stream->to = receive_some(stream, stream->in, sizeof(stream->in),
									  at == data ? wait_ms : WIRE_REST_MS);
			if (stream->to == 0)
				return false;
			continue;
		}
		else
		{
			n = n < length ? n : length;
			memcpy(at, stream->in + stream->from, n);
			stream->from += n;
		}
		at += n;
		length -= n;
	}
	return true;
}

bool
stream_receive(Stream *stream, MessageHeader *header, void *body, size_t size, int wait_ms,
			   bool *garbage)
{
	*garbage = false;
	if (!receive_all(stream, header, sizeof(*header), wait_ms))
		return false;
	*garbage = !wire_header_fits(header, size);
	return !*garbage && receive_all(stream, body, header->length, WIRE_REST_MS);
}

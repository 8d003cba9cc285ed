/*
 * peer.h
 *	  A client of the GPU server's sessions, for tests. It is connected to a session in the same
 *	  process by a socket pair.
 */
#ifndef GPUAGG_UNIT_PEER_H
#define GPUAGG_UNIT_PEER_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/server.h"
#include "unit.h"

typedef struct Peer
{
	int sock;
	char *arena;
	WireFailed failed; /* the last answer, if that was a failure; otherwise its text is empty */
} Peer;

/* Receives the welcome message, and maps the arena that comes with it. */
__attribute__((unused)) static bool
receive_welcome(Peer *peer)
{
	struct
	{
		MessageHeader header;
		WireWelcome welcome;
	} message;
	struct iovec iov = {&message, sizeof(message)};
	union
	{
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	int fd;

	if (recvmsg(peer->sock, &msg, MSG_WAITALL) != sizeof(message) || CMSG_FIRSTHDR(&msg) == NULL)
		return false;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	peer->arena =
		mmap(NULL, message.welcome.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return peer->arena != MAP_FAILED;
}

/* Starts a session, connects to it and receives its welcome. Returns false after a failure. */
__attribute__((unused)) static bool
peer_open(Peer *peer)
{
	WireHello hello = {GPUAGG_PROTOCOL_VERSION, 0};
	int ends[2];

	memset(peer, 0, sizeof(*peer));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		return false;
	session_start(ends[1]);
	peer->sock = ends[0];
	return wire_send(peer->sock, MESSAGE_HELLO, &hello, sizeof(hello)) && receive_welcome(peer);
}

/* Closes the connection, which ends the session, and unmaps the arena. */
__attribute__((unused)) static void
peer_close(Peer *peer)
{
	if (peer->arena)
		munmap(peer->arena, ARENA_BYTES);
	close(peer->sock);
}

/* Receives an answer of this type. Returns false, and fills peer->failed, if it is a failure. */
__attribute__((unused)) static bool
receive_answer(Peer *peer, MessageType wanted, void *answer, size_t size)
{
	MessageHeader header;
	bool garbage;
	union
	{
		WireFailed failed;
		char bytes[sizeof(WireStatus)];
	} in;

	peer->failed.text[0] = '\0';
	if (!wire_receive(peer->sock, &header, &in, sizeof(in), -1, &garbage))
	{
		strcpy(peer->failed.text, "the connection was closed");
		return false;
	}
	if (header.type == MESSAGE_FAILED && header.length == sizeof(WireFailed))
	{
		peer->failed = in.failed;
		CHECK(in.failed.text[0] != '\0', "a failure has no text");
		return false;
	}
	CHECK(header.type == (uint32_t) wanted && header.length == size,
		  "an answer has type %u, not %d", header.type, wanted);
	memcpy(answer, &in, size);
	return true;
}

/*
 * Sends a message and receives its answer. Returns false after a failure, as receive_answer does.
 */
__attribute__((unused)) static bool
request(Peer *peer, MessageType type, const void *body, size_t length, MessageType wanted,
		void *answer, size_t size)
{
	if (wire_send(peer->sock, type, body, length))
		return receive_answer(peer, wanted, answer, size);
	strcpy(peer->failed.text, "the connection was closed");
	return false;
}

#endif /* GPUAGG_UNIT_PEER_H */

/*
 * wire.c
 *	  Sends and receives whole messages over blocking sockets.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "server/server.h"

static bool
send_all(int sock, struct msghdr *msg)
{
	while (msg->msg_iovlen > 0)
	{
		ssize_t n = sendmsg(sock, msg, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		/* the descriptor was sent with the first byte */
		msg->msg_control = NULL;
		msg->msg_controllen = 0;
		while (msg->msg_iovlen > 0 && (size_t) n >= msg->msg_iov->iov_len)
		{
			n -= msg->msg_iov->iov_len;
			msg->msg_iov++;
			msg->msg_iovlen--;
		}
		if (msg->msg_iovlen > 0)
		{
			msg->msg_iov->iov_base = (char *) msg->msg_iov->iov_base + n;
			msg->msg_iov->iov_len -= n;
		}
	}
	return true;
}

bool
wire_send_fd(int sock, MessageType type, const void *body, size_t length, int fd)
{
	MessageHeader header = {GPUAGG_PROTOCOL_MAGIC, type, (uint32_t) length, 0};
	struct iovec iov[2] = {{&header, sizeof(header)}, {(void *) body, length}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = length > 0 ? 2 : 1};
	union
	{
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;

	if (fd >= 0)
	{
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	}
	return send_all(sock, &msg);
}

bool
wire_send_bytes(int sock, const void *data, size_t length)
{
	struct iovec iov = {(void *) data, length};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return send_all(sock, &msg);
}

bool
wire_send(int sock, MessageType type, const void *body, size_t length)
{
	return wire_send_fd(sock, type, body, length, -1);
}

/* Receives `length` bytes. Waits wait_ms for the first one, and WIRE_REST_MS each time for more. */
static bool
receive_all(int sock, void *data, size_t length, int wait_ms)
{
	char *at = data;

	while (length > 0)
	{
		struct pollfd p = {.fd = sock, .events = POLLIN};
		ssize_t n = recv(sock, at, length, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		{
			if (poll(&p, 1, at == data ? wait_ms : WIRE_REST_MS) == 0)
				return false;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		length -= n;
	}
	return true;
}

bool
wire_header_fits(const MessageHeader *header, size_t size)
{
	return header->magic == GPUAGG_PROTOCOL_MAGIC && header->reserved == 0 &&
		header->length <= size;
}

bool
wire_receive(int sock, MessageHeader *header, void *body, size_t size, int wait_ms, bool *garbage)
{
	*garbage = false;
	if (!receive_all(sock, header, sizeof(*header), wait_ms))
		return false;
	*garbage = !wire_header_fits(header, size);
	return !*garbage && receive_all(sock, body, header->length, WIRE_REST_MS);
}

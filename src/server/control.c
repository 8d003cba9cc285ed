/*
 * control.c
 *	  The pipe to the supervisor.
 *
 * A thread of its own reads the pipe. It calls no device, so pings are answered even while a driver
 * blocks the other threads.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/server.h"
#include "server/device_store.h"

static int control = -1;
static const char *socket_path;
static pthread_mutex_t send_lock = PTHREAD_MUTEX_INITIALIZER;

void
control_tell(MessageType type, const void *body, size_t length)
{
	pthread_mutex_lock(&send_lock);
	/* if the supervisor is gone, control_main() reads end of file */
	if (control >= 0)
		(void) wire_send(control, type, body, length);
	else if (type == MESSAGE_LOG || type == MESSAGE_UNAVAILABLE)
		fprintf(stderr, "gpuagg-server: %.*s\n", (int) length, (const char *) body);
	pthread_mutex_unlock(&send_lock);
}

void
server_log(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	control_tell(MESSAGE_LOG, text, strlen(text));
}

/*
 * Skips destructors: threads and CUDA contexts end with the process, and their destructors may
 * block.
 */
void
server_end(int status)
{
	unlink(socket_path);
	_exit(status);
}

void
server_abandon(const char *reason)
{
	server_log("ending because of a device error: %s", reason);
	_exit(2);
}

static void
on_control(const MessageHeader *header, const WireSettings *settings)
{
	WirePong pong;

	if (header->type == MESSAGE_PING)
	{
		pong.stalled_ms = watch_stalled_ms();
		control_tell(MESSAGE_PONG, &pong, sizeof(pong));
	}
	else if (header->type == MESSAGE_SETTINGS && header->length == sizeof(*settings))
	{
		budget_set_limit(settings->memory_limit);
		arena_set_limit(settings->pinned_limit);
		store_set_limit(settings->cache_limit);
	}
}

void *
control_main(void *arg)
{
	MessageHeader header;
	WireSettings settings;
	bool garbage;

	while (wire_receive(control, &header, &settings, sizeof(settings), -1, &garbage))
		on_control(&header, &settings);
	server_end(0);
	return arg;
}

void
control_init(int fd, const char *socket)
{
	control = fd;
	socket_path = socket;
}

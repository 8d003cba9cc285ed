/*
 * attack.c
 *	  Fuzzes the GPU server with mutated messages over several connections.
 *
 *	attack SOCKET PID SECONDS SEED
 *
 *	SOCKET	path of the server's socket
 *	PID		the server's process
 *
 * Prints TAP and counts. The exit status is 0 if all is right, 1 if not, 2 for wrong arguments.
 *
 * Attackers send valid messages with random queries and batches, some of which share a query. They
 * mutate bytes, fields, lengths, and the order and number of messages. They attach descriptors,
 * send incomplete messages, do not read answers, close the connection at any point, and write to
 * the arena while the server reads it.
 *
 * After every 150 rounds another client runs valid queries and compares the answers with expected
 * ones. After every 5,000 rounds all attackers close their connections. Then the server must
 * release all sessions, device memory, threads and descriptors.
 *
 * SEED determines what is sent, but not the time at which the server reads it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "generate_resident.h"

#define CONNECTIONS 12
#define MAX_BODY (sizeof(WireQuery) + WIRE_MAX_THRESHOLDS * sizeof(double))
/* A server that does not answer a valid message within this time hangs. */
#define HANG_TIMEOUT_S 60
/* The number of arenas that the server may keep (server/arena.c). Each has a descriptor. */
#define KEPT_ARENAS 66

#define LAST_REQUEST MESSAGE_CLOSE
#define LAST_ANSWER MESSAGE_VALUED

static const char *socket_path;
static pid_t server;
static Connection connections[CONNECTIONS];
static uint64_t sent, mutated, answers[256], conversations, checks, stored_rows, values_taken;
static char body[MAX_BODY];

/* Fails the test. */
static void
report_failure(const char *what)
{
	CHECK(false, "%s (after %llu messages)", what, (unsigned long long) sent);
}

/* ---- connections ---- */

/* Returns a socket that is connected to the server, with timeouts; -1 if it does not accept. */
static int
connect_to_server(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval timeout = {HANG_TIMEOUT_S, 0};
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(address.sun_path, socket_path, sizeof(address.sun_path) - 1);
	if (connect(sock, (struct sockaddr *) &address, sizeof(address)) < 0)
	{
		close(sock);
		return -1;
	}
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return sock;
}

/* Unmaps the arena. After CLOSE the server may give it to another connection. */
static void
unmap_arena(Connection *c)
{
	if (c->arena)
		munmap(c->arena, (size_t) WIRE_BUFFERS * WIRE_BUFFER_BYTES);
	if (c->arena_fd >= 0)
		close(c->arena_fd);
	c->arena = NULL;
	c->arena_fd = -1;
}

/* Closes a connection, and resets its state. */
static void
close_connection(Connection *c)
{
	unmap_arena(c);
	if (c->sock >= 0)
		close(c->sock);
	memset(c, 0, sizeof(*c));
	c->sock = c->arena_fd = -1;
}

/*
 * Receives exactly `length` bytes. Stores the first descriptor that arrives in *fd if that is
 * negative. Returns false at the end of the connection or after the timeout.
 */
static bool
receive_bytes(int sock, void *data, size_t length, int *fd)
{
	char *at = data;

	while (length > 0)
	{
		struct iovec iov = {at, length};
		char space[CMSG_SPACE(sizeof(int))];
		struct msghdr msg = {.msg_iov = &iov,
							 .msg_iovlen = 1,
							 .msg_control = space,
							 .msg_controllen = sizeof(space)};
		ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		if (CMSG_FIRSTHDR(&msg) && fd && *fd < 0)
			memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
		at += n;
		length -= n;
	}
	return true;
}

/*
 * Receives a message and its body. Returns its type, or 0 at the end of the connection or after the
 * timeout.
 */
static int
receive_message(Connection *c, void *to, size_t size, size_t *length)
{
	MessageHeader header;
	int fd = -1;

	if (!receive_bytes(c->sock, &header, sizeof(header), &fd))
		return 0;
	if (header.magic != GPUAGG_PROTOCOL_MAGIC || header.reserved != 0 || header.length > size ||
		header.type < MESSAGE_WELCOME || header.type > LAST_ANSWER)
	{
		report_failure("the server sent an invalid message");
		return 0;
	}
	answers[header.type]++;
	*length = header.length;
	if (!receive_bytes(c->sock, to, header.length, &fd))
		return 0;
	if (fd >= 0)
	{
		if (header.type == MESSAGE_OPENED ?
				c->closes == 0 :
				header.type != MESSAGE_WELCOME || (c->arena && c->closes == 0))
			report_failure("the server sent a descriptor with a message that has none");
		if (ftruncate(fd, 4096) == 0)
			report_failure("a client can shrink its arena");
		/*
		 * the arena is no longer this connection's if CLOSE was sent after the OPEN or the HELLO
		 * that this message answers
		 */
		if (c->closes != (header.type == MESSAGE_OPENED))
		{
			close(fd);
			return header.type;
		}
		unmap_arena(c);
		c->arena_fd = fd;
		c->arena = mmap(NULL, (size_t) WIRE_BUFFERS * WIRE_BUFFER_BYTES, PROT_READ | PROT_WRITE,
						MAP_SHARED, fd, 0);
		if (c->arena == MAP_FAILED)
			c->arena = NULL;
	}
	return header.type;
}

/*
 * Returns the set of a PICK message. Prefers a set whose values the server keeps, so that PICK is
 * valid.
 */
static uint32_t
pick_set(const Connection *c)
{
	for (int s = 0; s < c->query.nslots && s < WIRE_MAX_SLOTS && chance(0.9); s++)
		if (c->query.slots[s].input != WIRE_ROWS && c->query.slots[s].input != WIRE_DISTINCT)
			return c->query.slots[s].set;
	return c->query.nsets > 0 ? random_below(c->query.nsets) : 0;
}

/* ---- messages ---- */

/* Makes a valid body of a message of this type in body[]. Returns its length. */
static size_t
make_message(Connection *c, int type)
{
	WireHello hello = {GPUAGG_PROTOCOL_VERSION, (int) getpid()};
	WireFetch fetch = {chance(0.8) ? 0 : random_below(20), between(1, 100),
					   random_below(WIRE_BUFFERS), chance(0.5), 0};
	WirePick pick = {.set = pick_set(c), .n = between(1, 50), .buffer = random_below(WIRE_BUFFERS)};

	switch (type)
	{
		case MESSAGE_HELLO:
			memcpy(body, &hello, sizeof(hello));
			return sizeof(hello);
		case MESSAGE_OPEN:
			pick_query(c);
			memcpy(body, &c->query, sizeof(WireQuery));
			memcpy(body + sizeof(WireQuery), c->thresholds, c->query.nthresholds * sizeof(double));
			return sizeof(WireQuery) + c->query.nthresholds * sizeof(double);
		case MESSAGE_BATCH:
			return make_batch(c, (WireBatch *) body);
		case MESSAGE_STORE:
			return make_store(c, (WireStore *) body);
		case MESSAGE_RESIDENT:
			return make_resident(c, (WireResident *) body);
		case MESSAGE_DICTIONARY:
			return make_dictionary(c, (WireDictionary *) body);
		case MESSAGE_VALUES:
			return make_values(c, (WireValues *) body);
		case MESSAGE_LIST:
			return make_list((WireList *) body);
		case MESSAGE_FINISH:
			return make_finish(c, (WireFinish *) body);
		case MESSAGE_FETCH:
			memcpy(body, &fetch, sizeof(fetch));
			return sizeof(fetch);
		case MESSAGE_PICK:
			memcpy(body, &pick, sizeof(pick));
			if (c->arena)
				for (uint32_t i = 0; i < pick.n; i++)
					((int32_t *) (c->arena + (size_t) pick.buffer * WIRE_BUFFER_BYTES))[i] =
						chance(0.999) ? between(0, 20) : (int32_t) random_u64();
			return sizeof(pick);
		default:
			return 0;
	}
}

/* ---- mutation ---- */

/* Returns a value near which checks of lengths, counts or floats may be wrong, or a random one. */
static uint64_t
boundary_value(void)
{
	static const uint64_t values[] = {0,
									  1,
									  2,
									  3,
									  7,
									  8,
									  16,
									  63,
									  64,
									  65,
									  127,
									  128,
									  255,
									  256,
									  4096,
									  65535,
									  65536,
									  0x7fff,
									  0x8000,
									  INT32_MAX,
									  (uint64_t) INT32_MAX + 1,
									  UINT32_MAX,
									  UINT32_MAX - 63,
									  INT64_MAX,
									  (uint64_t) INT64_MAX + 1,
									  UINT64_MAX,
									  WIRE_BUFFER_BYTES,
									  WIRE_BUFFER_BYTES - 64,
									  WIRE_MAX_BODY,
									  0x7ff0000000000000,
									  0x7ff8000000000000};

	return chance(0.2) ? random_u64() : values[random_below(sizeof(values) / sizeof(values[0]))];
}

/* Flips bits, or overwrites aligned fields with boundary values. */
static void
mutate_bytes(char *at, size_t length)
{
	if (length == 0)
		return;
	for (int n = chance(0.7) ? 1 : between(2, 12); n > 0; n--)
	{
		int width = 1 << random_below(4);
		size_t where = random_below(length) / width * width;
		uint64_t value = boundary_value();

		if (chance(0.3))
			at[random_below(length)] ^= 1 << random_below(8);
		else if (where + width <= length)
			memcpy(at + where, &value, width);
	}
}

/* Mutates a query, mostly in its used part: the fields at its start and the slots in use. */
static void
mutate_query(Connection *c, size_t length)
{
	size_t used = offsetof(WireQuery, slots) + c->query.nslots * sizeof(WireSlot);

	mutate_bytes(body, chance(0.8) && used < length ? used : length);
}

/*
 * Mutates a RESIDENT message: its row ranges in the arena, its used instructions, or any other
 * byte.
 */
static void
mutate_resident(Connection *c, size_t length)
{
	WireResident *in = (WireResident *) body;

	if (chance(0.2) && c->arena && in->buffer < WIRE_BUFFERS)
		mutate_bytes(c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES,
					 TABLE_RANGES * sizeof(WireRowRange));
	else if (chance(0.4))
		mutate_bytes((char *) in->program.instructions,
					 in->program.ninstructions * sizeof(VectorInstruction));
	else
		mutate_bytes(body, chance(0.7) ? offsetof(WireResident, program.instructions) : length);
}

/* Returns a descriptor to attach to a message. It may be negative. */
static int
random_descriptor(void)
{
	switch (random_below(3))
	{
		case 0:
			return open("/dev/null", O_RDWR | O_CLOEXEC);
		case 1:
			return memfd_create("attack", MFD_CLOEXEC);
		default:
			return connect_to_server();
	}
}

/*
 * Sends bytes with nfds descriptors, without waiting. Bytes that do not fit the socket's buffer are
 * lost.
 */
static void
send_bytes(Connection *c, const void *data, size_t length, int nfds)
{
	struct iovec iov = {(void *) data, length};
	char space[CMSG_SPACE(8 * sizeof(int))] = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[8];

	if (length == 0)
		return;
	if (nfds > 0)
	{
		struct cmsghdr *cmsg;

		for (int i = 0; i < nfds; i++)
			if ((fds[i] = random_descriptor()) < 0)
				fds[i] = dup(2);
		msg.msg_control = space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, nfds * sizeof(int));
	}
	(void) !sendmsg(c->sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	for (int i = 0; i < nfds; i++)
		close(fds[i]);
}

/* Makes and sends a valid or mutated message. */
static void
send_message(Connection *c, int type, bool mutate)
{
	static char message[sizeof(MessageHeader) + MAX_BODY];
	size_t length = make_message(c, type);
	size_t total = sizeof(MessageHeader) + length;
	MessageHeader header = {GPUAGG_PROTOCOL_MAGIC, type, length, 0};
	int copies = 1;

	if (mutate)
	{
		mutated++;
		switch (random_below(10))
		{
			case 0:
				mutate_bytes((char *) &header, sizeof(header));
				break;
			case 1:
				header.length = chance(0.5) ? boundary_value() : length + between(-8, 8);
				break;
			case 2:
				header.type = chance(0.8) ? between(0, LAST_REQUEST) : between(60, 140);
				break;
			case 3:
				copies = between(2, 60);
				break;
			case 4:
				total = random_below(total); /* an incomplete message */
				break;
			default:
				if (type == MESSAGE_OPEN)
					mutate_query(c, length);
				else if (type == MESSAGE_RESIDENT)
					mutate_resident(c, length);
				else
					mutate_bytes(body, length);
		}
	}
	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), body, length);
	for (int i = 0; i < copies; i++)
	{
		sent++;
		if (header.type == MESSAGE_CLOSE)
		{
			unmap_arena(c);
			c->closes++;
		}
		send_bytes(c, message, total, mutate && chance(0.1) ? between(1, 8) : 0);
	}
}

/* ---- attackers ---- */

/* Returns the type of a message that is valid at this point of the connection. */
static int
next_type(Connection *c)
{
	if (c->step == 0)
		return MESSAGE_HELLO;
	if (c->step == 1 || (c->closes > 0 && !c->opened))
		return MESSAGE_OPEN;
	if (c->steps_of_texts > 0)
	{
		static const int types[] = {MESSAGE_VALUES, MESSAGE_RESIDENT, MESSAGE_DICTIONARY,
									MESSAGE_OPEN};

		return types[c->steps_of_texts - 1];
	}
	/* few queries have sets; finish them early, so that PICK is reached as well */
	if (c->query.nsets > 0 && c->step > 4 && chance(0.5))
		return c->finished ? MESSAGE_PICK : MESSAGE_FINISH;
	if (c->step < 12 && !c->finished && chance(0.5))
		return chance(0.1)                      ? MESSAGE_DICTIONARY :
			chance(0.02)                        ? MESSAGE_VALUES :
			chance(0.5) || !can_use_programs(c) ? MESSAGE_STORE :
												  MESSAGE_RESIDENT;
	if (c->step < 12 && !c->finished && chance(0.8))
		return MESSAGE_BATCH;
	if (c->finished && chance(0.6))
		return MESSAGE_FETCH;
	switch (random_below(10))
	{
		case 9:
			return MESSAGE_CLOSE;
		case 8:
			return MESSAGE_LIST;
		case 0:
			return MESSAGE_LEAVE;
		case 1:
		case 2:
			return MESSAGE_FINISH;
		case 3:
			return MESSAGE_FETCH;
		case 4:
		case 5:
			return MESSAGE_RESET;
		case 6:
			return MESSAGE_STATUS;
		default:
			return MESSAGE_OPEN;
	}
}

/* Reads all answers that have arrived. Waits up to wait_ms for the first one. */
static void
read_answers(Connection *c, int wait_ms)
{
	static char answer[WIRE_MAX_BODY];
	size_t length;
	struct pollfd p = {.fd = c->sock, .events = POLLIN};

	while (c->sock >= 0 && poll(&p, 1, wait_ms) > 0)
	{
		int type = receive_message(c, answer, sizeof(answer), &length);

		if (type == 0 || type == MESSAGE_FAILED)
		{
			/* sometimes continue to send messages to a session that failed */
			if (type == 0 || chance(0.8))
				close_connection(c);
			return;
		}
		if (type == MESSAGE_ENTRIES && length == sizeof(WireEntries))
			note_entries(c, (const WireEntries *) answer);
		values_taken += type == MESSAGE_VALUED && ((const WireValued *) answer)->bytes > 0;
		wait_ms = 0;
	}
}

/* One round of an attacker: connects, or sends one message and reads answers. */
static void
attack_once(Connection *c)
{
	bool mutate = c->step > 0 ? chance(0.15) : chance(0.03);
	int type = mutate && chance(0.2) ? between(1, LAST_REQUEST) : next_type(c);

	if (c->sock < 0)
	{
		c->sock = connect_to_server();
		if (c->sock < 0)
		{
			report_failure("cannot connect to the server");
			return;
		}
		c->never_reads = chance(0.05);
		conversations++;
		return;
	}
	if (c->arena && chance(0.1))
	{
		size_t where = random_below((size_t) WIRE_BUFFERS * WIRE_BUFFER_BYTES - 65536);

		memset(c->arena + where, between(0, 255), between(1, 65536));
	}
	send_message(c, type, mutate);
	c->step++;
	if (c->steps_of_texts > 0)
		c->steps_of_texts--;
	else if (type == MESSAGE_STORE && c->stored.column.coded && !c->stored.more && chance(0.7))
		c->steps_of_texts = 4;
	c->opened = type == MESSAGE_OPEN || (c->opened && type != MESSAGE_CLOSE);
	c->finished =
		type == MESSAGE_FINISH || (c->finished && type != MESSAGE_OPEN && type != MESSAGE_RESET);
	if (chance(0.02))
		shutdown(c->sock, chance(0.5) ? SHUT_WR : SHUT_RD);
	if (!c->never_reads)
		read_answers(c, mutate ? 2 : 20);
	if (c->sock >= 0 && (chance(0.03) || c->step > 60))
		close_connection(c);
}

/* ---- the client whose answers are checked ---- */

#define KEYS 16

/*
 * The expected states of the groups with keys 0 .. KEYS - 1, and at KEYS of the group with key
 * NULL.
 */
typedef struct Expected
{
	int64_t count[KEYS + 1];
	int64_t sum[KEYS + 1];
	int64_t min[KEYS + 1];
} Expected;

/* Sets the expected groups to none. */
static void
reset_expected(Expected *e)
{
	memset(e, 0, sizeof(*e));
	for (int k = 0; k <= KEYS; k++)
		e->min[k] = INT64_MAX;
}

/*
 * Sends a message with the body in body[], and waits for an answer of the given type and size,
 * which is copied to `to`. Returns false, and fails the test, if another answer arrives.
 */
static bool
request(Connection *c, int type, size_t length, int answer, void *to, size_t size)
{
	char message[sizeof(MessageHeader) + sizeof(WireQuery) + sizeof(WireResident)];
	static char got_body[WIRE_MAX_BODY];
	MessageHeader header = {GPUAGG_PROTOCOL_MAGIC, type, length, 0};
	size_t got_size;
	int got_type;

	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), body, length);
	if (send(c->sock, message, sizeof(header) + length, MSG_NOSIGNAL) !=
		(ssize_t) (sizeof(header) + length))
		return false;
	got_type = receive_message(c, got_body, sizeof(got_body), &got_size);
	if (got_type != answer || got_size != size)
	{
		CHECK(false, "answer %d of %zu bytes to message %d, not %d of %zu: %s", got_type, got_size,
			  type, answer, size,
			  got_type == MESSAGE_FAILED ? ((WireFailed *) got_body)->text :
				  got_type == 0          ? strerror(errno) :
										   "");
		return false;
	}
	if (size > 0)
		memcpy(to, got_body, size);
	return true;
}

/* Sends a batch of random rows. Adds the rows to *e unless the server had no memory for them. */
static bool
send_rows(Connection *c, Expected *e)
{
	WireBatch b = {.buffer = random_below(WIRE_BUFFERS), .nrows = between(1, 5000), .ncols = 2};
	char *base = c->arena + (size_t) b.buffer * WIRE_BUFFER_BYTES;
	size_t keys_end = wire_align(b.nrows * sizeof(int32_t));
	uint8_t *validity = (uint8_t *) base + keys_end;
	size_t values = keys_end + wire_align(wire_bitmap_bytes(b.nrows));
	Expected rows = *e;
	WireDone done;

	b.cols[0] = (WireColumn){WIRE_I32, 0, keys_end};
	b.cols[1] = (WireColumn){WIRE_I64, values, WIRE_NO_ARRAY};
	b.bytes = values + wire_align(b.nrows * sizeof(int64_t));
	b.key_max[0] = KEYS - 1;
	memset(validity, 0, wire_bitmap_bytes(b.nrows));
	for (uint32_t i = 0; i < b.nrows; i++)
	{
		int key = random_below(KEYS);
		int64_t value = (int64_t) random_u64() >> 20;
		int group = chance(0.1) ? KEYS : key;

		((int32_t *) base)[i] = key;
		((int64_t *) (base + values))[i] = value;
		if (group != KEYS)
			validity[i >> 3] |= 1 << (i & 7);
		rows.count[group]++;
		rows.sum[group] += value;
		rows.min[group] = value < rows.min[group] ? value : rows.min[group];
	}
	memcpy(body, &b, sizeof(b));
	if (!request(c, MESSAGE_BATCH, sizeof(b), MESSAGE_DONE, &done, sizeof(done)) ||
		done.buffer != b.buffer)
		return false;
	if (done.taken)
		*e = rows;
	return true;
}

/* Makes the key the result of a lookup table that has each key as its value. */
static void
look_keys_up(WireResident *in)
{
	in->program.instructions[2] = (VectorInstruction){VECTOR_LOOKUP, 2, 0, 0, 0, 0};
	in->program.nregisters = in->program.ninstructions = 3;
	in->cols[0] = 2;
	in->ntables = 1;
	in->tables[0] = (VectorTable){.n = KEYS, .form = 1};
	in->names[0] = (WireCellsName){{in->table.id, ~in->table.id}};
}

/* Sends the cells of this table with the message. */
static void
send_cells(Connection *c, WireResident *in)
{
	char *cells = c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES + wire_cells_at(in);

	in->sent = 1;
	in->cell_bytes = (uint32_t) vector_table_bytes(&in->tables[0]);
	memset(cells, 0, in->cell_bytes);
	for (int k = 0; k < KEYS; k++)
		cells[k] = (char) (k + 1);
}

/*
 * Stores the two columns of a range of `table`, which attackers do not use, and aggregates them;
 * cells that the server has kept must not have changed either. Adds the rows to *e unless the
 * server had no memory for them.
 */
static bool
send_stored_rows(Connection *c, Expected *e, uint64_t table)
{
	static const uint32_t types[] = {WIRE_I32, WIRE_I64};
	uint32_t n = between(1, 3000);
	WireStore in = {.table = {table},
					.stamp = random_u64(),
					.range = random_below(5),
					.nrows = n,
					.validity = WIRE_NO_ARRAY};
	WireRowRange row_range = {in.stamp, in.range, 0, n, 0};
	WireStored stored;
	WireResident resident = {.table = {table},
							 .buffer = 1,
							 .nrow_ranges = 1,
							 .nstored = 2,
							 .ncols = 2,
							 .key_max = {KEYS - 1}};
	WireResided resided;
	Expected rows = *e;

	resident.program.filter = VECTOR_NONE;
	resident.program.nregisters = resident.program.ninstructions = 2;
	for (int i = 0; i < 2; i++)
	{
		in.column = resident.stored[i] = (WireColumnKey){.attno = i, .type = types[i]};
		resident.program.instructions[i] = (VectorInstruction){VECTOR_LOAD, i, i, 0, 0, types[i]};
		resident.cols[i] = i;
		resident.types[i] = types[i];
		for (uint32_t r = 0; r < n; r++)
		{
			int64_t value = i ? (int64_t) (r * in.stamp) >> 20 : r % KEYS;

			memcpy(c->arena + (size_t) r * wire_width(types[i]), &value, wire_width(types[i]));
			if (i == 0)
				continue;
			rows.count[r % KEYS]++;
			rows.sum[r % KEYS] += value;
			rows.min[r % KEYS] = value < rows.min[r % KEYS] ? value : rows.min[r % KEYS];
		}
		memcpy(body, &in, sizeof(in));
		if (!request(c, MESSAGE_STORE, sizeof(in), MESSAGE_STORED, &stored, sizeof(stored)))
			return false;
	}
	if (chance(0.7))
		look_keys_up(&resident);
	for (int round = 0; round == 0 || (round == 1 && resided.lacking_cells != 0); round++)
	{
		if (round == 1)
			send_cells(c, &resident);
		memcpy(c->arena + WIRE_BUFFER_BYTES, &row_range, sizeof(row_range));
		memcpy(body, &resident, sizeof(resident));
		if (!request(c, MESSAGE_RESIDENT, sizeof(resident), MESSAGE_RESIDED, &resided,
					 sizeof(resided)))
			return false;
	}
	if (resided.taken)
		*e = rows;
	stored_rows += resided.taken;
	return true;
}

/*
 * Finishes the query, fetches its groups, and compares them with the expected ones. Returns false
 * after a wrong answer.
 */
static bool
check_groups(Connection *c, const Expected *e)
{
	WireFinished finished;
	WireFetch fetch = {.max = KEYS + 1, .buffer = 1};
	WireGroups groups;
	char *base = c->arena + WIRE_BUFFER_BYTES;
	uint64_t nexpected = 0;
	uint32_t right = 0;

	for (int k = 0; k <= KEYS; k++)
		nexpected += e->count[k] > 0;
	if (!request(c, MESSAGE_FINISH, 0, MESSAGE_FINISHED, &finished, sizeof(finished)))
		return false;
	if (finished.ngroups != nexpected)
	{
		CHECK(false, "%llu groups, not %llu", (unsigned long long) finished.ngroups,
			  (unsigned long long) nexpected);
		return false;
	}
	fetch.max = nexpected;
	memcpy(body, &fetch, sizeof(fetch));
	if (!request(c, MESSAGE_FETCH, sizeof(fetch), MESSAGE_GROUPS, &groups, sizeof(groups)))
		return false;
	for (uint32_t g = 0; g < groups.n && g < nexpected; g++)
	{
		const char *key = base + groups.keys + g * 8;
		int32_t k;

		memcpy(&k, key, sizeof(k));
		k = key[4] ? KEYS : k;
		right += k >= 0 && k <= KEYS && ((int64_t *) (base + groups.slots[0]))[g] == e->count[k] &&
			((int64_t *) (base + groups.slots[1]))[g] == e->sum[k] &&
			((int64_t *) (base + groups.slots[2]))[g] == e->min[k];
	}
	CHECK(right == nexpected, "%u of %llu groups are right", right, (unsigned long long) nexpected);
	return right == nexpected;
}

/*
 * Sends CLOSE, which ends the query and keeps the connection. *mapped is set to the arena, still
 * mapped.
 */
static bool
send_close(Connection *c, char **mapped)
{
	MessageHeader header = {GPUAGG_PROTOCOL_MAGIC, MESSAGE_CLOSE, 0, 0};

	*mapped = c->arena;
	c->arena = NULL;
	c->closes = 1;
	return send(c->sock, &header, sizeof(header), MSG_NOSIGNAL) == sizeof(header);
}

/* Sends CLOSE and OPEN. If another connection used the arena meanwhile, OPENED has another one. */
static bool
reopen_query(Connection *c, const WireQuery *q)
{
	char *mapped;
	bool right = send_close(c, &mapped);

	if (chance(0.5))
		usleep(random_below(2000));
	memcpy(body, q, sizeof(*q));
	right = right && request(c, MESSAGE_OPEN, sizeof(*q), MESSAGE_OPENED, NULL, 0);
	if (c->arena == NULL)
		c->arena = mapped;
	else
		munmap(mapped, (size_t) WIRE_BUFFERS * WIRE_BUFFER_BYTES);
	return right;
}

/*
 * Runs several valid queries over one connection, separated by RESET or by CLOSE and OPEN. Returns
 * whether all answers were right.
 */
static bool
run_checked_queries(void)
{
	Connection c = {.sock = connect_to_server(), .arena_fd = -1};
	WireHello hello = {GPUAGG_PROTOCOL_VERSION, (int) getpid()};
	WireWelcome welcome;
	WireFinished left;
	WireQuery q = {.ncols = 2, .nkeys = 1, .nslots = 3, .key_bytes = 8, .null_offset = 4};
	Expected e;
	bool right;

	q.keys[0] = (WireKey){.col = 0, .width = 4, .nullable = 1};
	q.slots[0] = (WireSlot){.monoid = MONOID_COUNT, .col = {-1, -1}, .filter = -1, .width = 1};
	q.slots[1] = (WireSlot){.monoid = MONOID_SUM_I64, .col = {1, -1}, .filter = -1, .width = 1};
	q.slots[2] = (WireSlot){.monoid = MONOID_MIN_I64, .col = {1, -1}, .filter = -1, .width = 1};
	memcpy(body, &hello, sizeof(hello));
	right = c.sock >= 0 &&
		request(&c, MESSAGE_HELLO, sizeof(hello), MESSAGE_WELCOME, &welcome, sizeof(welcome)) &&
		c.arena;
	memcpy(body, &q, sizeof(q));
	right = right && request(&c, MESSAGE_OPEN, sizeof(q), MESSAGE_OPENED, NULL, 0);
	for (int pass = 0; pass < 6 && right; pass++)
	{
		reset_expected(&e);
		for (int i = between(1, 6); i > 0 && right; i--)
			right = chance(0.5) ? send_rows(&c, &e) : send_stored_rows(&c, &e, 77);
		if (right && chance(0.3))
			right = request(&c, MESSAGE_LEAVE, 0, MESSAGE_LEFT, &left, sizeof(left));
		right = right && check_groups(&c, &e);
		if (right)
			right = pass % 2 ? reopen_query(&c, &q) :
							   request(&c, MESSAGE_RESET, 0, MESSAGE_OPENED, NULL, 0);
	}
	close_connection(&c);
	checks++;
	if (!right)
		report_failure("a valid query did not get its answer");
	return right;
}

/* ---- resources of the server when no client is connected ---- */

/* Returns the number of open descriptors of the server. */
static int
count_descriptors(void)
{
	char path[64];
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int) server);
	dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/*
 * Returns the number in a line of the server's /proc/PID/status, "Threads:" or "VmRSS:" (kB); -1 if
 * there is none.
 */
static long
process_value(const char *what)
{
	char path[64];
	char line[256];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int) server);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, what, strlen(what)) == 0)
			value = atol(line + strlen(what) + 1);
	if (f)
		fclose(f);
	return value;
}

/* Asks the server for its status. Returns whether it has no sessions and no memory of queries. */
static bool
server_is_idle(WireStatus *status)
{
	Connection c = {.sock = connect_to_server(), .arena_fd = -1};
	bool ok = c.sock >= 0 &&
		request(&c, MESSAGE_STATUS, 0, MESSAGE_STATUS_REPLY, status, sizeof(*status));
	uint64_t held = status->sessions;

	close_connection(&c);
	for (uint32_t d = 0; d < status->ndevices; d++)
		held += status->devices[d].used - status->devices[d].stored + status->devices[d].sessions;
	return ok && held == 0;
}

/* Closes all attackers' connections, and waits until the server has released what they used. */
static bool
check_idle(int descriptors_at_start)
{
	WireStatus status = {0};

	for (int i = 0; i < CONNECTIONS; i++)
		close_connection(&connections[i]);
	for (int i = 0; i < HANG_TIMEOUT_S * 100; i++)
	{
		if (server_is_idle(&status) && process_value("Threads:") <= 2 &&
			count_descriptors() <= descriptors_at_start + KEPT_ARENAS)
			return true;
		usleep(10000);
	}
	CHECK(false,
		  "%u sessions, %llu and %llu bytes of device memory, %ld threads, %d descriptors (%d "
		  "before) are left",
		  status.sessions, (unsigned long long) status.devices[0].used,
		  (unsigned long long) status.devices[1].used, process_value("Threads:"),
		  count_descriptors(), descriptors_at_start);
	return false;
}

static double seconds;

/* Attacks the server for `seconds`, with checked queries and checks of its resources in between. */
static void
fuzz(void)
{
	double end = time(NULL) + seconds;
	int nfds_at_start;
	long memory = 0;
	uint64_t rounds = 0;

	for (int i = 0; i < CONNECTIONS; i++)
		connections[i].sock = connections[i].arena_fd = -1;
	if (!run_checked_queries())
		return;
	nfds_at_start = count_descriptors();
	for (; time(NULL) < end && unit_failures == 0; rounds++)
	{
		attack_once(&connections[random_below(CONNECTIONS)]);
		if (rounds % 150 == 149)
			run_checked_queries();
		if (rounds % 5000 == 4999)
		{
			check_idle(nfds_at_start);
			memory = memory ? memory : process_value("VmRSS:");
		}
	}
	check_idle(nfds_at_start);
	run_checked_queries();
	CHECK(kill(server, 0) == 0, "the server is running");
	printf(
		"# %llu conversations, %llu messages, %llu of them mutated; %llu queries checked; "
		"answers: %llu welcome, %llu opened, %llu done, %llu left, %llu finished, %llu groups, "
		"%llu failed, %llu stored, %llu resided, %llu picked, %llu with values; %llu checked on "
		"stored rows\n"
		"# server's memory: %ld kB after the first 5000 rounds, %ld kB after %llu\n",
		(unsigned long long) conversations, (unsigned long long) sent, (unsigned long long) mutated,
		(unsigned long long) checks, (unsigned long long) answers[MESSAGE_WELCOME],
		(unsigned long long) answers[MESSAGE_OPENED], (unsigned long long) answers[MESSAGE_DONE],
		(unsigned long long) answers[MESSAGE_LEFT], (unsigned long long) answers[MESSAGE_FINISHED],
		(unsigned long long) answers[MESSAGE_GROUPS], (unsigned long long) answers[MESSAGE_FAILED],
		(unsigned long long) answers[MESSAGE_STORED], (unsigned long long) answers[MESSAGE_RESIDED],
		(unsigned long long) answers[MESSAGE_PICKED], (unsigned long long) values_taken,
		(unsigned long long) stored_rows, memory, process_value("VmRSS:"),
		(unsigned long long) rounds);
	for (int type = MESSAGE_WELCOME; type <= LAST_ANSWER; type++)
		CHECK(answers[type] > 0 || rounds < (type == MESSAGE_PICKED ? 8000 : 2000),
			  "there were answers of type %d", type);
	CHECK(values_taken > 0 || rounds < 8000, "values of codes were returned");
}

int
main(int argc, char **argv)
{
	if (argc != 5)
	{
		fprintf(stderr, "usage: attack SOCKET PID SECONDS SEED\n");
		return 2;
	}
	socket_path = argv[1];
	server = atoi(argv[2]);
	seconds = atof(argv[3]);
	unit_random_state = strtoull(argv[4], NULL, 10);
	signal(SIGPIPE, SIG_IGN);
	RUN("the GPU server survives mutated messages", fuzz);
	return unit_done();
}

/*
 * session_test.c
 *	  The GPU server's sessions over a stub of the CUDA run time: three
 *	  connections share a query, of which every allocation and launch fails.
 *
 * Either all batches are answered, and the groups are those of the batches taken;
 * or one connection gets a failure, and the others the same for their next message.  The
 * server goes on, a query beside it gets its groups, and all memory is free when all
 * connections are closed.
 *
 * Then all three send at once, with as many batches under way as there are buffers,
 * while the query runs out of room: the groups are those of the batches whose DONE said
 * that they were taken.
 */
#include "abandon.h"
#include "cuda/cases.h"
#include "cuda/cuda_stub.h"
#include "peer.h"
#include "device_cuda/device_internal.h"

#define PARTICIPANTS 3

/* ---- a client ---- */

static bool
open_query(Peer *peer, const Case *c, uint64_t share)
{
	struct
	{
		WireQuery q;
		double thresholds[8];
	} body = {.q = c->q};

	body.q.shared_id = share;
	memcpy(body.thresholds, c->thresholds, sizeof(body.thresholds));
	return request(peer, MESSAGE_OPEN, &body, sizeof(WireQuery) + c->q.nthresholds * sizeof(double),
				   MESSAGE_OPENED, &body, 0);
}

static bool
give_batch(Peer *peer, const Case *c, int b, bool *taken)
{
	WireBatch batch;
	WireDone done = {0};
	int buffer = b % ARENA_BUFFERS;

	make_batch(c, b, buffer, peer->arena + (size_t) buffer * ARENA_BUFFER_BYTES, &batch);
	if (!request(peer, MESSAGE_BATCH, &batch, sizeof(batch), MESSAGE_DONE, &done, sizeof(done)))
		return false;
	CHECK(done.buffer == (uint32_t) buffer, "another buffer is done");
	*taken = done.taken != 0;
	return true;
}

/* Rows and sum of v of all groups. */
static bool
sum_groups(Peer *peer, uint64_t *ngroups, int64_t *count, int64_t *sum)
{
	WireFinished finished;

	*count = *sum = 0;
	if (!request(peer, MESSAGE_FINISH, NULL, 0, MESSAGE_FINISHED, &finished, sizeof(finished)))
		return false;
	*ngroups = finished.ngroups;
	for (uint64_t first = 0; first < finished.ngroups;)
	{
		WireFetch fetch = {.first = first, .max = finished.ngroups - first};
		WireGroups groups;

		if (!request(peer, MESSAGE_FETCH, &fetch, sizeof(fetch), MESSAGE_GROUPS, &groups,
					 sizeof(groups)))
			return false;
		for (uint32_t g = 0; g < groups.n; g++)
		{
			*count += ((int64_t *) (peer->arena + groups.slots[0]))[g];
			*sum += ((int64_t *) (peer->arena + groups.slots[1]))[g];
		}
		CHECK(groups.n > 0, "no groups were fetched");
		if (groups.n == 0)
			return false;
		first += groups.n;
	}
	return true;
}

static void
check_groups(Peer *peer, const Case *c, uint32_t batches, const char *what)
{
	uint64_t ngroups;
	int64_t count, sum, right_count = 0, right_sum = 0;
	int n;
	Expected *right = expect(c, batches, &n);

	for (int g = 0; g < n; g++)
	{
		right_count += right[g].count;
		right_sum += right[g].sum;
	}
	free(right);
	if (!sum_groups(peer, &ngroups, &count, &sum))
		return;
	CHECK(ngroups == (uint64_t) n && count == right_count && sum == right_sum,
		  "%s: %d groups of %d rows, sum %d; not %d, %d, %d", what, (int) ngroups, (int) count,
		  (int) sum, n, (int) right_count, (int) right_sum);
}

/* ---- three of them ---- */

static int runs;
static int failures;
static int refusals;

/* The other participants get the failure of the first one for their next message. */
static void
check_all_fail(Peer *peers, const Case *c, int first, const char *what)
{
	WireFinished left;
	bool taken;

	for (int p = 0; p < PARTICIPANTS; p++)
	{
		if (p == first)
			continue;
		CHECK(!(p % 2 ?
					give_batch(&peers[p], c, 0, &taken) :
					request(&peers[p], MESSAGE_LEAVE, NULL, 0, MESSAGE_LEFT, &left, sizeof(left))),
			  "%s: a query that failed is answered", what);
		CHECK(strcmp(peers[p].failed.text, peers[first].failed.text) == 0 &&
				  peers[p].failed.failure == peers[first].failed.failure,
			  "%s: \"%s\" is another failure than \"%s\"", what, peers[p].failed.text,
			  peers[first].failed.text);
	}
	failures++;
}

/* Returns the participant that got a failure, or -1. */
static int
run_shared(Peer *peers, const Case *c, const char *what)
{
	uint32_t batches = 0;
	WireFinished left;
	bool taken;

	for (int b = 0; b < c->nbatches; b++)
	{
		if (!give_batch(&peers[b % PARTICIPANTS], c, b, &taken))
			return b % PARTICIPANTS;
		batches |= (uint32_t) taken << b;
		refusals += !taken;
	}
	for (int p = 0; p < PARTICIPANTS; p++)
		if (!request(&peers[p], MESSAGE_LEAVE, NULL, 0, MESSAGE_LEFT, &left, sizeof(left)))
			return p;
	check_groups(&peers[0], c, batches, what);
	return peers[0].failed.text[0] ? 0 : -1;
}

/* Sessions end on threads of their own. */
static bool
is_empty(void)
{
	for (int i = 0; i < 5000; i++)
	{
		WireStatus status;

		budget_status(&status);
		if (status.sessions == 0 && status.devices[0].used + status.devices[1].used == 0 &&
			stub_live() == 0)
			return true;
		usleep(1000);
	}
	return false;
}

/* The calls of each kind are counted in *calls if there is no fault. */
static void
run_with_fault(const Case *c, StubCall call, int n, bool on, cudaError_t err, int *calls)
{
	Case small;
	Peer beside, peers[PARTICIPANTS];
	bool taken, opened = true;
	int failed = -1;
	char what[128];

	snprintf(what, sizeof(what), "%s, call %d of kind %d, error %d%s", c->name, n, call, err,
			 on ? " and on" : "");
	make_case(1, &small);
	CHECK(peer_open(&beside) && open_query(&beside, &small, 0) &&
			  give_batch(&beside, &small, 0, &taken) && taken,
		  "%s: the query beside it: %s", what, beside.failed.text);
	for (int p = 0; p < PARTICIPANTS; p++)
		CHECK(peer_open(&peers[p]), "%s: a greeting", what);
	stub_fail(call, n, on, err);
	for (int p = 0; p < PARTICIPANTS && opened; p++)
		opened = open_query(&peers[p], c, 99);
	if (opened)
		failed = run_shared(peers, c, what);
	for (int k = 0; k < STUB_CALLS && calls; k++)
		calls[k] = stub_count(k);
	stub_mend();
	if (failed >= 0)
		check_all_fail(peers, c, failed, what);
	CHECK(calls == NULL || (opened && failed < 0), "without faults: a failure");
	CHECK(give_batch(&beside, &small, 1, &taken) && taken, "%s: the query beside it: %s", what,
		  beside.failed.text);
	check_groups(&beside, &small, 3, "the query beside it");
	for (int p = 0; p < PARTICIPANTS; p++)
		peer_close(&peers[p]);
	peer_close(&beside);
	CHECK(is_empty(), "%s: something is left", what);
	runs++;
}

static Case current;

static void
every_call_fails(void)
{
	static const struct
	{
		StubCall call;
		bool on;
		cudaError_t err;
	} faults[] = {
		{STUB_ALLOC, false, cudaErrorMemoryAllocation},
		{STUB_ALLOC, true, cudaErrorMemoryAllocation},
		{STUB_LAUNCH, false, cudaErrorLaunchOutOfResources},
		{STUB_LAUNCH, false, cudaErrorMemoryAllocation},
	};
	int calls[STUB_CALLS];

	run_with_fault(&current, STUB_ALLOC, 0, false, cudaSuccess, calls);
	for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
		for (int n = 1; n <= calls[faults[f].call]; n++)
			run_with_fault(&current, faults[f].call, n, faults[f].on, faults[f].err, NULL);
}

/* ---- batches under way ---- */

#define PIPELINED_BATCHES 24

typedef struct Sender
{
	pthread_t thread;
	Peer peer;
	const Case *c;
	int first; /* of its batches; then every third */
	uint32_t taken;
	const char *wrong;
} Sender;

static const char *
await_answer(Sender *s, int b)
{
	WireDone done;
	WireBatch batch;
	MessageHeader header;
	bool garbage;
	int buffer = b / PARTICIPANTS % ARENA_BUFFERS;
	char *there = s->peer.arena + (size_t) buffer * ARENA_BUFFER_BYTES;
	char *rows;
	bool same;

	if (!wire_receive(s->peer.sock, &header, &done, sizeof(done), -1, &garbage) ||
		header.type != MESSAGE_DONE)
		return "no answer to a batch";
	if (done.buffer != (uint32_t) buffer)
		return "answers in another order";
	if (done.taken && b != s->first && !(s->taken >> (b - PARTICIPANTS) & 1))
		return "a batch was taken after one that was not";
	s->taken |= (uint32_t) (done.taken != 0) << b;
	rows = calloc(1, ARENA_BUFFER_BYTES);
	make_batch(s->c, b, buffer, rows, &batch);
	same = memcmp(rows, there, batch.bytes) == 0;
	free(rows);
	/* the server does not read them any more */
	memset(there, 0xaa, batch.bytes);
	return same ? NULL : "rows were changed";
}

static void *
send_all(void *arg)
{
	Sender *s = arg;
	int waiting = s->first;

	for (int b = s->first; b < s->c->nbatches && s->wrong == NULL; b += PARTICIPANTS)
	{
		WireBatch batch;
		int buffer = b / PARTICIPANTS % ARENA_BUFFERS;

		if (b - waiting == ARENA_BUFFERS * PARTICIPANTS)
		{
			s->wrong = await_answer(s, waiting);
			waiting += PARTICIPANTS;
		}
		/* also what lies between the arrays */
		memset(s->peer.arena + (size_t) buffer * ARENA_BUFFER_BYTES, 0, (size_t) s->c->nrows * 64);
		make_batch(s->c, b, buffer, s->peer.arena + (size_t) buffer * ARENA_BUFFER_BYTES, &batch);
		if (!wire_send(s->peer.sock, MESSAGE_BATCH, &batch, sizeof(batch)))
			s->wrong = "the connection was closed";
	}
	for (; waiting < s->c->nbatches && s->wrong == NULL; waiting += PARTICIPANTS)
		s->wrong = await_answer(s, waiting);
	return NULL;
}

/* Returns the batches that were taken. */
static uint32_t
run_at_once(const Case *c, const char *what)
{
	Sender senders[PARTICIPANTS];
	WireFinished left;
	uint32_t taken = 0;

	memset(senders, 0, sizeof(senders));
	for (int p = 0; p < PARTICIPANTS; p++)
	{
		senders[p].c = c;
		senders[p].first = p;
		CHECK(peer_open(&senders[p].peer) && open_query(&senders[p].peer, c, 7), "%s: %s", what,
			  senders[p].peer.failed.text);
	}
	for (int p = 0; p < PARTICIPANTS; p++)
		pthread_create(&senders[p].thread, NULL, send_all, &senders[p]);
	for (int p = 0; p < PARTICIPANTS; p++)
	{
		pthread_join(senders[p].thread, NULL);
		CHECK(senders[p].wrong == NULL, "%s: %s", what, senders[p].wrong);
		taken |= senders[p].taken;
	}
	for (int p = 0; p < PARTICIPANTS; p++)
		CHECK(request(&senders[p].peer, MESSAGE_LEAVE, NULL, 0, MESSAGE_LEFT, &left, sizeof(left)),
			  "%s: %s", what, senders[p].peer.failed.text);
	check_groups(&senders[0].peer, c, taken, what);
	for (int p = 0; p < PARTICIPANTS; p++)
		peer_close(&senders[p].peer);
	CHECK(is_empty(), "%s: something is left", what);
	return taken;
}

static void
many_under_way(void)
{
	int64_t most = cuda_max_bins;
	uint32_t all = (1u << PIPELINED_BATCHES) - 1;
	char what[64];

	make_case(4, &current);
	current.nbatches = PIPELINED_BATCHES;
	CHECK(run_at_once(&current, "room for all") == all, "some batches were not taken");
	for (int part = 1; part < 8; part++)
	{
		uint32_t taken;

		snprintf(what, sizeof(what), "room for %d eighths", part);
		cuda_max_bins = (int64_t) PIPELINED_BATCHES * current.nrows / 8 * part;
		taken = run_at_once(&current, what);
		CHECK(taken != 0 && taken != all, "%s: taken %x", what, taken);
	}
	cuda_max_bins = most;
	for (int n = 4 * PARTICIPANTS; n < 4 * PARTICIPANTS + 20; n++)
	{
		snprintf(what, sizeof(what), "no memory at allocation %d", n);
		stub_fail(STUB_ALLOC, n, true, cudaErrorMemoryAllocation);
		run_at_once(&current, what);
		stub_mend();
	}
}

/* ---- queries that are opened late ---- */

/* Opens it with WIRE_LATE, of which no device hears. */
static bool
open_late(Peer *peer, const Case *c)
{
	Case late = *c;

	late.q.flags |= WIRE_LATE;
	return open_query(peer, &late, 0);
}

/* All batches, and the groups; *taken: whether all were taken. */
static bool
run_late(Peer *peer, const Case *c, const char *what)
{
	uint32_t batches = 0;
	bool taken;

	for (int b = 0; b < c->nbatches; b++)
	{
		if (!give_batch(peer, c, b, &taken))
			return false;
		batches |= (uint32_t) taken << b;
	}
	check_groups(peer, c, batches, what);
	return peer->failed.text[0] == '\0';
}

/*
 * Every call fails once: the first message that needs a device is answered with a failure, or later
 * ones, and nothing is left.
 */
static void
late_calls_fail(void)
{
	static const struct
	{
		StubCall call;
		cudaError_t err;
	} faults[] = {
		{STUB_ALLOC, cudaErrorMemoryAllocation},
		{STUB_OTHER, cudaErrorMemoryAllocation},
		{STUB_LAUNCH, cudaErrorLaunchOutOfResources},
	};
	Case c;

	make_case(3, &c);
	for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
		for (int n = 1, failed = 1; failed; n++)
		{
			Peer peer;
			char what[64];
			bool ok;

			snprintf(what, sizeof(what), "late, call %d of kind %d", n, faults[f].call);
			CHECK(peer_open(&peer), "%s: a greeting", what);
			stub_fail(faults[f].call, n, false, faults[f].err);
			CHECK(open_late(&peer, &c), "%s: OPEN needs no device: %s", what, peer.failed.text);
			CHECK(!stub_has_failed(), "%s: OPEN calls a device", what);
			ok = run_late(&peer, &c, what);
			failed = stub_has_failed();
			stub_mend();
			CHECK(ok || (failed && strcmp(peer.failed.text, "the connection was closed") != 0),
				  "%s: %s", what, peer.failed.text);
			peer_close(&peer);
			CHECK(is_empty(), "%s: something is left", what);
			runs++;
			failures += !ok;
		}
}

/* Messages that come first, after which the connection goes on, ends, or is hung up. */
static void
late_first_messages(void)
{
	static const char zeros[sizeof(WireBatch)];
	Case c;
	Peer peer;
	char answer[sizeof(WireStatus)];
	int types[] = {MESSAGE_FETCH,      MESSAGE_PICK,  MESSAGE_LEAVE,
				   MESSAGE_BATCH,      MESSAGE_STORE, MESSAGE_RESIDENT,
				   MESSAGE_DICTIONARY, MESSAGE_CLOSE, 999};

	make_case(3, &c);
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (int length = 0; length <= 4; length += 4)
		{
			CHECK(peer_open(&peer) && open_late(&peer, &c), "%s", peer.failed.text);
			if (types[t] != MESSAGE_LEAVE && (types[t] != MESSAGE_CLOSE || length > 0))
				CHECK(!request(&peer, types[t], zeros, length, MESSAGE_OPENED, answer, 0) &&
						  peer.failed.failure == FAILURE_PROTOCOL,
					  "message %d of %d bytes: %s", types[t], length, peer.failed.text);
			else if (length == 0)
				CHECK(wire_send(peer.sock, types[t], zeros, 0), "message %d", types[t]);
			peer_close(&peer);
			CHECK(is_empty(), "message %d of %d bytes: something is left", types[t], length);
		}
	/* half a message */
	CHECK(peer_open(&peer) && open_late(&peer, &c), "%s", peer.failed.text);
	CHECK(send(peer.sock,
			   &(MessageHeader){GPUAGG_PROTOCOL_MAGIC, MESSAGE_BATCH, sizeof(WireBatch), 0},
			   sizeof(MessageHeader), 0) > 0,
		  "half a message");
	peer_close(&peer);
	CHECK(is_empty(), "half a message: something is left");

	/*
	 * no rows; one query behind another, of which the first is never used; from the start; on a
	 * connection that was kept
	 */
	CHECK(peer_open(&peer) && open_late(&peer, &c), "%s", peer.failed.text);
	check_groups(&peer, &c, 0, "no rows");
	CHECK(open_late(&peer, &c) && open_late(&peer, &c) && run_late(&peer, &c, "the second of two"),
		  "%s", peer.failed.text);
	CHECK(open_late(&peer, &c) &&
			  request(&peer, MESSAGE_RESET, NULL, 0, MESSAGE_OPENED, answer, 0) &&
			  run_late(&peer, &c, "from its start"),
		  "%s", peer.failed.text);
	CHECK(open_late(&peer, &c) && wire_send(peer.sock, MESSAGE_CLOSE, NULL, 0),
		  "a connection that is kept");
	CHECK(is_empty(), "a connection that is kept has something");
	CHECK(open_late(&peer, &c) && run_late(&peer, &c, "kept"), "%s", peer.failed.text);
	peer_close(&peer);
	CHECK(is_empty(), "something is left");
}

int
main(void)
{
	WireStatus status = {0};
	DeviceError error = {""};

	/* with one device nothing is opened late */
	stub_devices = 2;
	if (device_ops.start("all", &status, &error) != DEVICE_OK)
		return 1;
	budget_start(&status);
	for (int i = 0; make_case(i, &current); i++)
		/* rows of all participants in one order, or grouped, are no query that sessions share */
		if (current.q.flags == 0)
			RUN(current.name, every_call_fails);
	RUN("many batches under way", many_under_way);
	RUN("queries that are opened late, and calls fail", late_calls_fail);
	RUN("queries that are opened late, and what comes first", late_first_messages);
	printf("# %d runs: in %d the query failed, %d batches were not taken\n", runs, failures,
		   refusals);
	return unit_done();
}

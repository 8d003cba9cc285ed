/*
 * session_test.c
 *	  Tests the GPU server's sessions over the CUDA stub. Three connections share a query of
 *	  cases.h, and every allocation and every launch fails in some run.
 *
 * After a fault, either all batches are answered, and the groups are those of the batches that were
 * reduced; or one connection gets a failure, and the others get the same failure for their next
 * message. The server goes on, another query gets its groups, and all memory is freed when the
 * connections are closed.
 *
 * Another test sends from all three connections concurrently, with a batch in each buffer, while
 * the query runs out of room. More tests open queries with WIRE_LATE: on a device only with the
 * first message that needs one.
 *
 * Reference: the groups of cases.h, for the batches whose DONE says that they were reduced.
 */
#include "abandon.h"
#include "cuda/cases.h"
#include "cuda/cuda_stub.h"
#include "peer.h"
#include "device_cuda/device_internal.h"

#define PARTICIPANTS 3

/* ---- a client ---- */

/* Opens a query with `share` as its WireQuery.shared_id. Returns false after a failure. */
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

/* Sends batch b. Sets *taken to whether the server took it. Returns false after a failure. */
static bool
send_batch(Peer *peer, const Case *c, int b, bool *taken)
{
	WireBatch batch;
	WireDone done = {0};
	int buffer = b % ARENA_BUFFERS;

	make_batch(c, b, buffer, peer->arena + (size_t) buffer * ARENA_BUFFER_BYTES, &batch);
	if (!request(peer, MESSAGE_BATCH, &batch, sizeof(batch), MESSAGE_DONE, &done, sizeof(done)))
		return false;
	CHECK(done.buffer == (uint32_t) buffer, "DONE names another buffer");
	*taken = done.taken != 0;
	return true;
}

/*
 * Finishes the query, and sums up the first two slots over all groups: the number of rows, and v.
 */
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
		CHECK(groups.n > 0, "a fetch returned no groups");
		if (groups.n == 0)
			return false;
		first += groups.n;
	}
	return true;
}

/* Checks the number of groups, their rows and their sum against the batches with a set bit. */
static void
check_groups(Peer *peer, const Case *c, uint32_t batches, const char *what)
{
	uint64_t ngroups;
	int64_t count, sum, expected_count = 0, expected_sum = 0;
	int n;
	Expected *expected = expect(c, batches, &n);

	for (int g = 0; g < n; g++)
	{
		expected_count += expected[g].count;
		expected_sum += expected[g].sum;
	}
	free(expected);
	if (!sum_groups(peer, &ngroups, &count, &sum))
		return;
	CHECK(ngroups == (uint64_t) n && count == expected_count && sum == expected_sum,
		  "%s: %d groups with %d rows, sum %d; expected %d, %d, %d", what, (int) ngroups,
		  (int) count, (int) sum, n, (int) expected_count, (int) expected_sum);
}

/* ---- three connections share a query ---- */

static int runs;
static int failures;
static int batches_rejected;

/* Checks that the other participants get the failure of the first one for their next message. */
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
					send_batch(&peers[p], c, 0, &taken) :
					request(&peers[p], MESSAGE_LEAVE, NULL, 0, MESSAGE_LEFT, &left, sizeof(left))),
			  "%s: a failed query answers another participant", what);
		CHECK(strcmp(peers[p].failed.text, peers[first].failed.text) == 0 &&
				  peers[p].failed.failure == peers[first].failed.failure,
			  "%s: failures \"%s\" and \"%s\" differ", what, peers[p].failed.text,
			  peers[first].failed.text);
	}
	failures++;
}

/* Runs the query. Returns the participant that got a failure, or -1. */
static int
run_shared_query(Peer *peers, const Case *c, const char *what)
{
	uint32_t batches = 0;
	WireFinished left;
	bool taken;

	for (int b = 0; b < c->nbatches; b++)
	{
		if (!send_batch(&peers[b % PARTICIPANTS], c, b, &taken))
			return b % PARTICIPANTS;
		batches |= (uint32_t) taken << b;
		batches_rejected += !taken;
	}
	for (int p = 0; p < PARTICIPANTS; p++)
		if (!request(&peers[p], MESSAGE_LEAVE, NULL, 0, MESSAGE_LEFT, &left, sizeof(left)))
			return p;
	check_groups(&peers[0], c, batches, what);
	return peers[0].failed.text[0] ? 0 : -1;
}

/* Waits until all sessions have ended, on their own threads, and all memory is freed. */
static bool
wait_until_empty(void)
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

/*
 * Runs a query with a fault, next to another query without. If calls is not NULL, there is no
 * fault, and the calls of each kind are counted there.
 */
static void
run_with_fault(const Case *c, StubCall call, int n, bool on, cudaError_t err, int *calls)
{
	Case small;
	Peer other, peers[PARTICIPANTS];
	bool taken, opened = true;
	int failed = -1;
	char what[128];

	snprintf(what, sizeof(what), "%s, call %d of kind %d, error %d%s", c->name, n, call, err,
			 on ? " and later" : "");
	make_case(1, &small);
	CHECK(peer_open(&other) && open_query(&other, &small, 0) &&
			  send_batch(&other, &small, 0, &taken) && taken,
		  "%s: the other query cannot be opened: %s", what, other.failed.text);
	for (int p = 0; p < PARTICIPANTS; p++)
		CHECK(peer_open(&peers[p]), "%s: a connection cannot be opened", what);
	stub_fail(call, n, on, err);
	for (int p = 0; p < PARTICIPANTS && opened; p++)
		opened = open_query(&peers[p], c, 99);
	if (opened)
		failed = run_shared_query(peers, c, what);
	for (int k = 0; k < STUB_CALLS && calls; k++)
		calls[k] = stub_count(k);
	stub_mend();
	if (failed >= 0)
		check_all_fail(peers, c, failed, what);
	CHECK(calls == NULL || (opened && failed < 0), "a run without faults fails");
	CHECK(send_batch(&other, &small, 1, &taken) && taken, "%s: the other query's batch fails: %s",
		  what, other.failed.text);
	check_groups(&other, &small, 3, "the other query");
	for (int p = 0; p < PARTICIPANTS; p++)
		peer_close(&peers[p]);
	peer_close(&other);
	CHECK(wait_until_empty(), "%s: memory or a session is left", what);
	runs++;
}

static Case current;

static void
test_failing_calls(void)
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

/* ---- batches in flight ---- */

#define PIPELINED_BATCHES 24

typedef struct Sender
{
	pthread_t thread;
	Peer peer;
	const Case *c;
	int first; /* its first batch; every third batch after it is also its own */
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
	char *sent_rows = s->peer.arena + (size_t) buffer * ARENA_BUFFER_BYTES;
	char *rows;
	bool same;

	if (!wire_receive(s->peer.sock, &header, &done, sizeof(done), -1, &garbage) ||
		header.type != MESSAGE_DONE)
		return "a batch has no answer";
	if (done.buffer != (uint32_t) buffer)
		return "answers come in another order than batches";
	if (done.taken && b != s->first && !(s->taken >> (b - PARTICIPANTS) & 1))
		return "a batch was reduced after one that was rejected";
	s->taken |= (uint32_t) (done.taken != 0) << b;
	rows = calloc(1, ARENA_BUFFER_BYTES);
	make_batch(s->c, b, buffer, rows, &batch);
	same = memcmp(rows, sent_rows, batch.bytes) == 0;
	free(rows);
	/* the server does not read the buffer any more */
	memset(sent_rows, 0xaa, batch.bytes);
	return same ? NULL : "the server changed the rows";
}

/* Thread: sends every batch of its participant, with up to ARENA_BUFFERS of them in flight. */
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
		/* also clear the gaps between the arrays, as await_answer compares all bytes */
		memset(s->peer.arena + (size_t) buffer * ARENA_BUFFER_BYTES, 0, (size_t) s->c->nrows * 64);
		make_batch(s->c, b, buffer, s->peer.arena + (size_t) buffer * ARENA_BUFFER_BYTES, &batch);
		if (!wire_send(s->peer.sock, MESSAGE_BATCH, &batch, sizeof(batch)))
			s->wrong = "the connection was closed";
	}
	for (; waiting < s->c->nbatches && s->wrong == NULL; waiting += PARTICIPANTS)
		s->wrong = await_answer(s, waiting);
	return NULL;
}

/*
 * Sends batches from all participants concurrently. Returns the set of batches that were reduced.
 */
static uint32_t
run_concurrently(const Case *c, const char *what)
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
	CHECK(wait_until_empty(), "%s: memory or a session is left", what);
	return taken;
}

static void
test_batches_in_flight(void)
{
	int64_t most = cuda_max_bins;
	uint32_t all = (1u << PIPELINED_BATCHES) - 1;
	char what[64];

	make_case(4, &current);
	current.nbatches = PIPELINED_BATCHES;
	CHECK(run_concurrently(&current, "room for all") == all, "some batches were not reduced");
	for (int part = 1; part < 8; part++)
	{
		uint32_t taken;

		snprintf(what, sizeof(what), "room for %d eighths", part);
		cuda_max_bins = (int64_t) PIPELINED_BATCHES * current.nrows / 8 * part;
		taken = run_concurrently(&current, what);
		CHECK(taken != 0 && taken != all, "%s: batches %x were reduced", what, taken);
	}
	cuda_max_bins = most;
	for (int n = 4 * PARTICIPANTS; n < 4 * PARTICIPANTS + 20; n++)
	{
		snprintf(what, sizeof(what), "no memory at allocation %d", n);
		stub_fail(STUB_ALLOC, n, true, cudaErrorMemoryAllocation);
		run_concurrently(&current, what);
		stub_mend();
	}
}

/* ---- queries opened with WIRE_LATE ---- */

/* Opens the query with WIRE_LATE: no device is used yet. */
static bool
open_late_query(Peer *peer, const Case *c)
{
	Case late = *c;

	late.q.flags |= WIRE_LATE;
	return open_query(peer, &late, 0);
}

/* Sends all batches, and checks the groups. Returns false after a failure. */
static bool
run_late_query(Peer *peer, const Case *c, const char *what)
{
	uint32_t batches = 0;
	bool taken;

	for (int b = 0; b < c->nbatches; b++)
	{
		if (!send_batch(peer, c, b, &taken))
			return false;
		batches |= (uint32_t) taken << b;
	}
	check_groups(peer, c, batches, what);
	return peer->failed.text[0] == '\0';
}

/*
 * Every call fails once. Either the first message that needs a device gets a failure, or a later
 * one does. Everything is freed.
 */
static void
test_failing_late_calls(void)
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

			snprintf(what, sizeof(what), "late query, call %d of kind %d", n, faults[f].call);
			CHECK(peer_open(&peer), "%s: a connection cannot be opened", what);
			stub_fail(faults[f].call, n, false, faults[f].err);
			CHECK(open_late_query(&peer, &c), "%s: OPEN fails: %s", what, peer.failed.text);
			CHECK(!stub_has_failed(), "%s: OPEN calls the device", what);
			ok = run_late_query(&peer, &c, what);
			failed = stub_has_failed();
			stub_mend();
			CHECK(ok || (failed && strcmp(peer.failed.text, "the connection was closed") != 0),
				  "%s: %s", what, peer.failed.text);
			peer_close(&peer);
			CHECK(wait_until_empty(), "%s: memory or a session is left", what);
			runs++;
			failures += !ok;
		}
}

/*
 * Sends invalid first messages after OPEN. Then the connection is used again, closed, or broken
 * off.
 */
static void
test_late_first_messages(void)
{
	static const char zeros[sizeof(WireBatch)];
	Case c;
	Peer peer;
	char answer[sizeof(WireStatus)];
	int types[] = {
		MESSAGE_FETCH,    MESSAGE_PICK,       MESSAGE_LEAVE,  MESSAGE_BATCH, MESSAGE_STORE,
		MESSAGE_RESIDENT, MESSAGE_DICTIONARY, MESSAGE_VALUES, MESSAGE_CLOSE, 999};

	make_case(3, &c);
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (int length = 0; length <= 4; length += 4)
		{
			CHECK(peer_open(&peer) && open_late_query(&peer, &c), "%s", peer.failed.text);
			if (types[t] != MESSAGE_LEAVE && (types[t] != MESSAGE_CLOSE || length > 0))
				CHECK(!request(&peer, types[t], zeros, length, MESSAGE_OPENED, answer, 0) &&
						  peer.failed.failure == FAILURE_PROTOCOL,
					  "message %d of %d bytes: %s", types[t], length, peer.failed.text);
			else if (length == 0)
				CHECK(wire_send(peer.sock, types[t], zeros, 0), "message %d cannot be sent",
					  types[t]);
			peer_close(&peer);
			CHECK(wait_until_empty(), "message %d of %d bytes: memory or a session is left",
				  types[t], length);
		}
	/* the connection breaks off in a message */
	CHECK(peer_open(&peer) && open_late_query(&peer, &c), "%s", peer.failed.text);
	CHECK(send(peer.sock,
			   &(MessageHeader){GPUAGG_PROTOCOL_MAGIC, MESSAGE_BATCH, sizeof(WireBatch), 0},
			   sizeof(MessageHeader), 0) > 0,
		  "half a message cannot be sent");
	peer_close(&peer);
	CHECK(wait_until_empty(), "half a message: memory or a session is left");

	/*
	 * A query without rows; two queries opened in succession, of which the first is never used; a
	 * query reset before its first row; a query on a kept connection.
	 */
	CHECK(peer_open(&peer) && open_late_query(&peer, &c), "%s", peer.failed.text);
	check_groups(&peer, &c, 0, "no rows");
	CHECK(open_late_query(&peer, &c) && open_late_query(&peer, &c) &&
			  run_late_query(&peer, &c, "the second of two"),
		  "%s", peer.failed.text);
	CHECK(open_late_query(&peer, &c) &&
			  request(&peer, MESSAGE_RESET, NULL, 0, MESSAGE_OPENED, answer, 0) &&
			  run_late_query(&peer, &c, "reset at its start"),
		  "%s", peer.failed.text);
	CHECK(open_late_query(&peer, &c) && wire_send(peer.sock, MESSAGE_CLOSE, NULL, 0),
		  "a connection cannot be kept");
	CHECK(wait_until_empty(), "a kept connection still has memory");
	CHECK(open_late_query(&peer, &c) && run_late_query(&peer, &c, "kept"), "%s", peer.failed.text);
	peer_close(&peer);
	CHECK(wait_until_empty(), "memory or a session is left");
}

int
main(void)
{
	WireStatus status = {0};
	DeviceError error = {""};

	/* with one device, WIRE_LATE has no effect */
	stub_devices = 2;
	if (device_ops.start("all", &status, &error) != DEVICE_OK)
		return 1;
	budget_start(&status);
	for (int i = 0; make_case(i, &current); i++)
		/* sessions cannot share a query with ordered or grouped rows */
		if (current.q.flags == 0)
		{
			char name[128];

			snprintf(name, sizeof(name), "%s: the groups are right or all connections fail",
					 current.name);
			RUN(name, test_failing_calls);
		}
	RUN("batches in flight on three connections have the right groups", test_batches_in_flight);
	RUN("a call that fails in a late query gives one failure", test_failing_late_calls);
	RUN("late queries survive any first message", test_late_first_messages);
	printf("# %d runs: in %d the query failed, %d batches were not reduced\n", runs, failures,
		   batches_rejected);
	return unit_done();
}

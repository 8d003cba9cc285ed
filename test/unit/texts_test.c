/*
 * texts_test.c
 *	  Tests sessions of the GPU server with a coded column: STORE with entries in several messages,
 *	  DICTIONARY, RESIDENT with the codes as keys, and VALUES, over a stub of the CUDA run time
 *	  whose calls fail in turn.
 */
#include "abandon.h"
#include "cuda/cuda_stub.h"
#include "peer.h"
#include "server/column_dictionary.h"
#include "server/device_store.h"

#define ROWS 3000
#define TEXTS 1000
#define PARTS 4
#define TABLE 77

static const WireColumnKey column = {
	.typid = 25, .attno = 1, .scale = -1, .type = WIRE_I32, .coded = 1};
static int runs, failures;

/* Writes the text of a row, which depends on its number. Returns the length; it may be 0. */
static int
make_text(int i, char *to)
{
	return i == 5 ? 0 : sprintf(to, "%*d", 1 + i % 40, i);
}

/* Returns a row's text by its index among the entries. */
static int
text_of_row(int row)
{
	return row * 7 % TEXTS;
}

/* Opens a query: count(*) BY the column. */
static bool
open_query(Peer *peer)
{
	WireQuery q = {.est_rows = ROWS,
				   .est_groups = TEXTS,
				   .flags = WIRE_LATE,
				   .ncols = 1,
				   .nkeys = 1,
				   .nslots = 1,
				   .key_bytes = 4,
				   .null_offset = 4};

	q.keys[0].width = 4;
	q.slots[0] = (WireSlot){.monoid = MONOID_COUNT, .col = {-1, -1}, .filter = -1, .width = 1};
	return request(peer, MESSAGE_OPEN, &q, sizeof(q), MESSAGE_OPENED, &q, 0);
}

/* Stores the column of a range, with its entries in several messages. */
static bool
store_range(Peer *peer, uint32_t range, bool *kept)
{
	uint32_t *codes = (uint32_t *) peer->arena;
	WireStored stored = {.kept = 1};

	for (int part = 0; part < PARTS && stored.kept; part++)
	{
		WireStore in = {.table = {TABLE},
						.stamp = 10 + range,
						.range = range,
						.nrows = ROWS,
						.column = column,
						.validity = WIRE_NO_ARRAY,
						.entries = wire_align(ROWS * sizeof(uint32_t)),
						.nentries = TEXTS / PARTS,
						.before = part * (TEXTS / PARTS),
						.more = part < PARTS - 1};
		uint32_t *lengths = (uint32_t *) (peer->arena + in.entries);
		char *text = (char *) (lengths + in.nentries);

		for (uint32_t i = 0; i < in.nentries; i++)
		{
			lengths[i] = make_text(in.before + i, text + in.bytes);
			in.bytes += lengths[i];
		}
		for (int r = 0; r < ROWS; r++)
			codes[r] = text_of_row(r);
		if (!request(peer, MESSAGE_STORE, &in, sizeof(in), MESSAGE_STORED, &stored, sizeof(stored)))
			return false;
	}
	*kept = stored.kept != 0;
	return true;
}

/* Asks for all entries of the dictionary, a few at a time, and checks them. */
static bool
read_dictionary(Peer *peer, WireEntries *out)
{
	WireDictionary in = {.table = {TABLE}, .column = column, .buffer = 1};
	const char *buffer = peer->arena + ARENA_BUFFER_BYTES;

	for (in.most = 0; in.nentries < TEXTS; in.most = 300)
	{
		const char *image;

		if (!request(peer, MESSAGE_DICTIONARY, &in, sizeof(in), MESSAGE_ENTRIES, out, sizeof(*out)))
			return false;
		CHECK(out->nentries == TEXTS && out->first == in.nentries && out->n <= in.most &&
				  (in.most == 0) == (out->n == 0),
			  "%d entries from %d on, of %d", (int) out->n, (int) out->first, (int) out->nentries);
		if (out->nentries != TEXTS || out->n > in.most || (in.most > 0 && out->n == 0))
			return true;
		image = buffer + out->n * sizeof(uint32_t);
		for (uint32_t i = 0; i < out->n; i++)
		{
			char text[64];
			int length = make_text(in.nentries + i, text);

			CHECK(((const uint32_t *) buffer)[i] == (uint32_t) length &&
					  memcmp(image, text, length) == 0,
				  "entry %d is wrong", (int) (in.nentries + i));
			image += length;
		}
		in.id = out->id;
		in.nentries += out->n;
	}
	return true;
}

/* Lets the server reduce the rows of two ranges. */
static bool
send_rows(Peer *peer, const WireEntries *known, bool *taken)
{
	static WireResident in;
	WireRowRange *row_ranges = (WireRowRange *) peer->arena;
	WireResided resided;

	in = (WireResident){.table = {TABLE}, .nrow_ranges = 2, .nstored = 1, .ncols = 1};
	in.key_max[0] = TEXTS - 1;
	in.types[0] = WIRE_I32;
	in.stored[0] = column;
	in.known[0] = (WireKnown){known->id, known->nentries};
	in.program = (VectorProgram){.ninstructions = 1, .nregisters = 1, .filter = VECTOR_NONE};
	in.program.instructions[0] = (VectorInstruction){VECTOR_LOAD, 0, 0, 0, 0, WIRE_I32};
	for (int r = 0; r < 2; r++)
		row_ranges[r] = (WireRowRange){10 + r, r, 0, ROWS, 0};
	if (!request(peer, MESSAGE_RESIDENT, &in, sizeof(in), MESSAGE_RESIDED, &resided,
				 sizeof(resided)))
		return false;
	*taken = resided.taken != 0;
	return true;
}

/* Asks for the values of the groups' codes, and checks them and the groups' counts. */
static bool
check_groups(Peer *peer)
{
	WireFetch fetch = {.max = TEXTS};
	WireGroups groups;
	WireValues in = {.buffer = 1};
	WireValued out;
	char *buffer = peer->arena + ARENA_BUFFER_BYTES;
	const char *image;

	if (!request(peer, MESSAGE_FETCH, &fetch, sizeof(fetch), MESSAGE_GROUPS, &groups,
				 sizeof(groups)))
		return false;
	CHECK(groups.n == TEXTS, "%d groups", (int) groups.n);
	if (groups.n != TEXTS)
		return true;
	in.n = groups.n;
	memcpy(buffer, peer->arena + groups.keys, in.n * sizeof(uint32_t));
	if (!request(peer, MESSAGE_VALUES, &in, sizeof(in), MESSAGE_VALUED, &out, sizeof(out)))
		return false;
	CHECK(out.n == in.n, "%d values", (int) out.n);
	image = buffer + wire_align(in.n * sizeof(uint32_t)) + out.n * sizeof(uint32_t);
	for (uint32_t g = 0; g < out.n; g++)
	{
		uint32_t code = ((const uint32_t *) buffer)[g];
		char text[64];
		int length = make_text((int) code, text);

		CHECK(memcmp(image, text, length) == 0 &&
				  ((const int64_t *) (peer->arena + groups.slots[0]))[g] == 2 * ROWS / TEXTS,
			  "group %d of text %d is wrong", (int) g, (int) code);
		image += length;
	}
	return true;
}

/* Returns false if the query fails. */
static bool
run_query(Peer *peer)
{
	WireEntries known = {0};
	WireFinished finished;
	bool kept[2] = {false, false}, taken = false;

	if (!open_query(peer) || !store_range(peer, 0, &kept[0]) || !store_range(peer, 1, &kept[1]))
		return false;
	if (!kept[0] || !kept[1])
		return true;
	if (!read_dictionary(peer, &known) || !send_rows(peer, &known, &taken))
		return false;
	if (!taken)
		return true;
	if (!request(peer, MESSAGE_FINISH, NULL, 0, MESSAGE_FINISHED, &finished, sizeof(finished)))
		return false;
	/* the column is evicted before its values are needed */
	for (int d = 0; d < store_devices(); d++)
		store_forget(d);
	CHECK(finished.ngroups == TEXTS, "%d groups", (int) finished.ngroups);
	return check_groups(peer);
}

/* Waits until the session has ended, and all memory is freed. */
static bool
wait_until_empty(void)
{
	for (int i = 0; i < 5000; i++)
	{
		WireStatus status;

		budget_status(&status);
		if (status.sessions == 0)
			for (int d = 0; d < store_devices(); d++)
				store_forget(d);
		if (status.sessions == 0 && status.devices[0].used == 0 && dictionary_bytes_of_all() == 0)
			return true;
		usleep(1000);
	}
	return false;
}

static void
test_right_groups(void)
{
	Peer peer;

	CHECK(peer_open(&peer) && run_query(&peer) && run_query(&peer), "%s", peer.failed.text);
	peer_close(&peer);
	CHECK(wait_until_empty(), "memory or a session is left");
}

static void
test_failing_calls(void)
{
	static const cudaError_t errors[STUB_CALLS] = {
		cudaErrorMemoryAllocation, cudaErrorMemoryAllocation, cudaErrorLaunchOutOfResources,
		cudaErrorMemoryAllocation};

	for (int call = 0; call < STUB_CALLS; call++)
		for (int n = 1, failed = 1; failed && call != STUB_COPY; n++)
		{
			Peer peer;
			bool ok;

			CHECK(peer_open(&peer), "a connection cannot be opened");
			stub_fail(call, n, false, errors[call]);
			ok = run_query(&peer);
			failed = stub_has_failed();
			stub_mend();
			CHECK(ok || (failed && strcmp(peer.failed.text, "the connection was closed") != 0),
				  "call %d of kind %d: %s", n, call, peer.failed.text);
			peer_close(&peer);
			CHECK(wait_until_empty(), "call %d of kind %d: memory or a session is left", n, call);
			runs++;
			failures += !ok;
		}
}

/* Messages that are out of order or wrong get a failure, and nothing is left. */
static void
test_wrong_messages(void)
{
	WireStore part = {.table = {TABLE}, .nrows = 10, .column = column, .before = 1, .more = 1};
	WireValues values = {.n = 1};
	WireStored stored;
	WireValued valued;
	Peer peer;
	bool kept;

	CHECK(peer_open(&peer) && open_query(&peer) &&
			  !request(&peer, MESSAGE_STORE, &part, sizeof(part), MESSAGE_STORED, &stored,
					   sizeof(stored)),
		  "a part without those before it is taken");
	peer_close(&peer);
	part.before = 0;
	part.nentries = 1;
	part.bytes = 3;
	CHECK(peer_open(&peer) && open_query(&peer), "%s", peer.failed.text);
	*(uint32_t *) peer.arena = 4;
	CHECK(!request(&peer, MESSAGE_STORE, &part, sizeof(part), MESSAGE_STORED, &stored,
				   sizeof(stored)),
		  "an entry is longer than the message");
	peer_close(&peer);
	CHECK(peer_open(&peer) && open_query(&peer) && store_range(&peer, 0, &kept) &&
			  !request(&peer, MESSAGE_VALUES, &values, sizeof(values), MESSAGE_VALUED, &valued,
					   sizeof(valued)) &&
			  peer.failed.failure == FAILURE_PROTOCOL,
		  "values are returned before any rows were taken");
	peer_close(&peer);
	/* a client goes away between two parts */
	CHECK(peer_open(&peer) && open_query(&peer), "%s", peer.failed.text);
	*(uint32_t *) peer.arena = 3;
	CHECK(request(&peer, MESSAGE_STORE, &part, sizeof(part), MESSAGE_STORED, &stored,
				  sizeof(stored)) &&
			  stored.kept,
		  "%s", peer.failed.text);
	peer_close(&peer);
	CHECK(wait_until_empty(), "memory or a session is left");
}

/* Sends a part of range 0 with one entry, of `bytes` bytes. Returns whether it is kept. */
static bool
send_part(Peer *peer, uint32_t before, uint32_t bytes)
{
	WireStore part = {.table = {TABLE},
					  .nrows = 10,
					  .column = column,
					  .nentries = 1,
					  .bytes = bytes,
					  .before = before,
					  .more = 1};
	WireStored stored = {.kept = 0};

	*(uint32_t *) peer->arena = bytes;
	memset(peer->arena + sizeof(uint32_t), 'a' + (int) before, bytes);
	CHECK(
		request(peer, MESSAGE_STORE, &part, sizeof(part), MESSAGE_STORED, &stored, sizeof(stored)),
		"%s", peer->failed.text);
	return stored.kept != 0;
}

/* A part that is refused frees the dictionary at once, and so does a dictionary that is lost. */
static void
test_refused_parts(void)
{
	Dictionary *dict;
	Peer peer;

	CHECK(peer_open(&peer) && open_query(&peer), "%s", peer.failed.text);
	store_set_host_limit(100000);
	CHECK(send_part(&peer, 0, 1000) && !send_part(&peer, 1, 200000), "the limit is not kept");
	CHECK(dictionary_bytes_of_all() == 0 && dictionary_retired_bytes() == 0,
		  "a refused dictionary is kept");
	CHECK(!send_part(&peer, 2, 1000) && dictionary_bytes_of_all() == 0,
		  "a part behind a refused one is kept");
	store_set_host_limit(0);
	CHECK(send_part(&peer, 0, 1000), "another range is refused");
	dict = dictionary_take((WireTableKey){TABLE}, &column, false);
	dictionary_retire(dict);
	dictionary_give(dict);
	CHECK(!send_part(&peer, 1, 1000) && dictionary_retired_bytes() == 0,
		  "entries are added to a dictionary that is not used any more");
	peer_close(&peer);
	CHECK(wait_until_empty(), "memory or a session is left");
}

int
main(void)
{
	WireStatus status = {0};
	DeviceError error = {""};

	if (device_ops.start("all", &status, &error) != DEVICE_OK)
		return 1;
	budget_start(&status);
	RUN("groups and their values are right", test_right_groups);
	RUN("a call that fails gives the right groups or one failure", test_failing_calls);
	RUN("wrong messages fail", test_wrong_messages);
	RUN("parts that are refused leave nothing", test_refused_parts);
	printf("# %d runs, the query failed in %d\n", runs, failures);
	return unit_done();
}

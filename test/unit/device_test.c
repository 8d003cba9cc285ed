/*
 * device_test.c
 *	  The CUDA device layer over a stub of the run time: every call of a set of
 *	  queries fails once, or from some point on.
 *
 * Whatever fails, a query of three participants returns the right groups of the batches
 * that were taken, or every participant gets the same failure; all memory is freed; a
 * query beside it is not affected.  Lack of memory makes no open query fail, unless it
 * keeps rows in order.
 */
#include "abandon.h"
#include "cuda/cuda_stub.h"
#include "device_run.h"

/* ---- faults ---- */

typedef struct Fault
{
	StubCall call;
	cudaError_t err;
	bool on;
	DeviceStatus status; /* what it may end in, but for well */
} Fault;

static const Fault faults[] = {
	{STUB_ALLOC, cudaErrorMemoryAllocation, false, DEVICE_NO_MEMORY},
	{STUB_ALLOC, cudaErrorMemoryAllocation, true, DEVICE_NO_MEMORY},
	{STUB_ALLOC, cudaErrorIllegalAddress, true, DEVICE_LOST},
	{STUB_COPY, cudaErrorInvalidValue, false, DEVICE_UNSUPPORTED},
	{STUB_COPY, cudaErrorIllegalAddress, true, DEVICE_LOST},
	{STUB_LAUNCH, cudaErrorMemoryAllocation, false, DEVICE_NO_MEMORY},
	{STUB_LAUNCH, cudaErrorLaunchOutOfResources, false, DEVICE_UNSUPPORTED},
	{STUB_LAUNCH, cudaErrorLaunchOutOfResources, true, DEVICE_UNSUPPORTED},
	{STUB_LAUNCH, cudaErrorIllegalAddress, true, DEVICE_LOST},
	{STUB_OTHER, cudaErrorIllegalAddress, true, DEVICE_LOST},
};

static int runs;
static int refused; /* runs that ended well without some of their batches */

static void
run_with_fault(const Case *c, const Run *whole, const Fault *fault, int n)
{
	Case small;
	Run run;
	SharedQuery *beside = NULL;
	Lane *lane = NULL;
	WireBatch batch;
	WireFinished finished = {0};
	DeviceError error = {""};
	char what[160];
	static char *arena;
	size_t bytes;
	uint64_t used_before;
	int live_before;

	snprintf(what, sizeof(what), "%s, call %d of kind %d, error %d%s", c->name, n, fault->call,
			 fault->err, fault->on ? " and on" : "");
	if (arena == NULL)
		arena = malloc(ARENA_BUFFERS * BUFFER_BYTES);
	make_case(1, &small);
	CHECK(shared_query_enter(&beside, 0, NULL, &small.q, small.thresholds, &error) == DEVICE_OK &&
			  shared_query_place(beside, 0, &error) == DEVICE_OK &&
			  device_ops.lane_open(&lane, 0, arena, BUFFER_BYTES, ARENA_BUFFERS, &error) ==
				  DEVICE_OK,
		  "%s: the query beside it: %s", what, error.text);
	make_batch(&small, 0, 0, arena, &batch);
	CHECK(device_ops.copy(lane, &batch, &bytes, &error) == DEVICE_OK &&
			  shared_query_reduce(beside, lane, &batch, &error) == DEVICE_OK,
		  "%s: the batch beside it: %s", what, error.text);
	used_before = run_used();
	live_before = stub_live();

	stub_fail(fault->call, n, fault->on, fault->err);
	run_query(&run, c, ~0u);
	stub_mend();

	runs++;
	CHECK(run_used() == used_before, "%s: %d bytes stay in the budget", what,
		  (int) (run_used() - used_before));
	CHECK(stub_live() == live_before, "%s: %d pieces of memory stay", what,
		  stub_live() - live_before);
	CHECK(run.status == DEVICE_OK || run.status == fault->status, "%s: status %d, %s", what,
		  run.status, run.error.text);
	CHECK(run.status == DEVICE_OK || run.error.text[0] != '\0', "%s: no text", what);
	/* lack of memory after the query was opened means batches that are not taken, and no failure */
	CHECK(run.status == DEVICE_OK || !run.opened || fault->call != STUB_ALLOC ||
			  fault->err != cudaErrorMemoryAllocation || wire_keeps_rows(&c->q),
		  "%s: %s", what, run.error.text);
	if (run.status == DEVICE_OK)
	{
		refused += run.taken != whole->taken;
		run_check_right(&run, whole, what);
	}
	free(run.groups);

	CHECK(shared_query_reduce(beside, lane, &batch, &error) == DEVICE_OK &&
			  shared_query_finish(beside, &finished, &error) == DEVICE_OK && finished.ngroups == 50,
		  "%s: the query beside it ends with %s", what, error.text);
	shared_query_leave(beside);
	device_ops.lane_close(lane);
	CHECK(run_used() == 0 && stub_live() == 0, "%s: something is left in the end", what);
}

static Case current;

static void
every_call_fails(void)
{
	Run whole;
	int calls[STUB_CALLS];

	stub_fail(STUB_ALLOC, 0, false, cudaSuccess);
	run_query(&whole, &current, ~0u);
	for (int k = 0; k < STUB_CALLS; k++)
		calls[k] = stub_count(k);
	CHECK(whole.status == DEVICE_OK && whole.taken == (1u << current.nbatches) - 1,
		  "without faults: %s", whole.error.text);
	CHECK(run_used() == 0 && stub_live() == 0, "without faults: something is left");
	run_check_sums(&whole, "without faults");
	for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
		for (int n = 1; n <= calls[faults[f].call]; n++)
			run_with_fault(&current, &whole, &faults[f], n);
	free(whole.groups);
}

/* ---- limits ---- */

/* Memory of every size up to what the query needs. */
static void
little_memory(void)
{
	uint64_t enough;
	Run run, whole;
	int ended = 0;

	for (int i = 0; make_case(i, &current); i++)
	{
		run_query(&whole, &current, ~0u);
		enough = whole.finished.memory_peak + PARTICIPANTS * ARENA_BUFFERS * BUFFER_BYTES;
		for (int part = 1; part <= 16; part++)
		{
			uint64_t limit = PARTICIPANTS * ARENA_BUFFERS * BUFFER_BYTES +
				whole.finished.memory_peak / 16 * part;

			budget_set_limit(limit < enough ? limit : enough);
			run_query(&run, &current, ~0u);
			budget_set_limit(0);
			CHECK(run.status == DEVICE_OK || run.status == DEVICE_NO_MEMORY, "%s: status %d, %s",
				  current.name, run.status, run.error.text);
			CHECK(run_used() == 0 && stub_live() == 0, "%s: something is left", current.name);
			if (run.status == DEVICE_OK)
			{
				ended++;
				run_check_right(&run, &whole, current.name);
			}
			/* four times the table is too much then, and less does */
			CHECK(current.key != key_distinct || current.first_null > 0 || part < 12 ||
					  run.taken == whole.taken,
				  "%s: taken %x with %d sixteenths of the memory", current.name, run.taken, part);
			free(run.groups);
		}
		free(whole.groups);
	}
	CHECK(ended > 110, "only %d runs ended well", ended);
}

/* A table grows up to the most bins, by less than four times if need be; then no batch is taken. */
static void
most_bins(void)
{
	Run run;
	int64_t most = cuda_max_bins;
	int n;

	make_case(4, &current);
	free(expect(&current, ~0u, &n));
	cuda_max_bins = n;
	run_query(&run, &current, ~0u);
	CHECK(run.status == DEVICE_OK && run.taken == (1u << current.nbatches) - 1 &&
			  run.finished.ngroups == (uint64_t) n,
		  "as many groups as bins: %s", run.error.text);
	run_check_sums(&run, "as many groups as bins");
	free(run.groups);

	cuda_max_bins = n - 1;
	run_query(&run, &current, ~0u);
	CHECK(run.status == DEVICE_OK && run.taken == (1u << (current.nbatches - 1)) - 1,
		  "one bin too few: taken %x, %s", run.taken, run.error.text);
	run_check_sums(&run, "one bin too few");
	free(run.groups);

	/* histograms so wide that there is room for few groups, or none */
	make_case(5, &current);
	for (int groups = 0; groups < 21; groups++)
	{
		cuda_max_bins = groups * 32;
		run_query(&run, &current, ~0u);
		CHECK(run.status == DEVICE_OK && (run.taken != 0) == (groups >= 20),
			  "%d groups: taken %x, %s", groups, run.taken, run.error.text);
		run_check_sums(&run, "wide histograms");
		free(run.groups);
	}
	cuda_max_bins = most;
	CHECK(run_used() == 0 && stub_live() == 0, "something is left");
}

int
main(void)
{
	WireStatus status = {0};
	DeviceError error = {""};

	if (device_ops.start("all", &status, &error) != DEVICE_OK)
		return 1;
	budget_start(&status);
	for (int i = 0; make_case(i, &current); i++)
		RUN(current.name, every_call_fails);
	printf("# %d runs, %d of them without some batches\n", runs, refused);
	RUN("little memory", little_memory);
	RUN("the most bins", most_bins);
	return unit_done();
}

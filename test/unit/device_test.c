/*
 * device_test.c
 *	  Tests the CUDA device layer over the CUDA stub. For each query of cases.h, every call of
 *	  the run time fails: in one test only that call, in another all calls after it, too.
 *
 * A query is shared by three participants. After any fault, its groups are those of the batches
 * that were reduced, or every participant gets the same failure. All memory is freed, and another
 * query that is open at the same time is not affected. Lack of memory makes no open query fail,
 * unless it keeps ordered rows.
 *
 * References: the groups of cases.h, and those of a run without faults.
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
	DeviceStatus status; /* the only status besides DEVICE_OK that the fault may cause */
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

#ifdef __SANITIZE_ADDRESS__
#define FAULT_STEP 5
#else
#define FAULT_STEP 1
#endif

static int runs;
static int incomplete_runs; /* runs without failure in which some batches were rejected */

/*
 * Runs the query with the fault at its n-th call, and checks the outcome. `whole`: a run without
 * faults.
 */
static void
run_with_fault(const Case *c, const QueryRun *whole, const Fault *fault, int n)
{
	Case small;
	QueryRun run;
	SharedQuery *other = NULL;
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
			 fault->err, fault->on ? " and later" : "");
	if (arena == NULL)
		arena = malloc(ARENA_BUFFERS * BUFFER_BYTES);
	make_case(1, &small);
	CHECK(shared_query_enter(&other, 0, NULL, &small.q, small.thresholds, &error) == DEVICE_OK &&
			  shared_query_place(other, 0, &error) == DEVICE_OK &&
			  device_ops.lane_open(&lane, 0, arena, BUFFER_BYTES, ARENA_BUFFERS, &error) ==
				  DEVICE_OK,
		  "%s: the other query cannot be opened: %s", what, error.text);
	make_batch(&small, 0, 0, arena, &batch);
	CHECK(device_ops.copy(lane, &batch, &bytes, &error) == DEVICE_OK &&
			  shared_query_reduce(other, lane, &batch, &error) == DEVICE_OK,
		  "%s: the other query's batch fails: %s", what, error.text);
	used_before = run_used();
	live_before = stub_live();

	stub_fail(fault->call, n, fault->on, fault->err);
	run_query(&run, c, ~0u);
	stub_mend();

	runs++;
	CHECK(run_used() == used_before, "%s: %d bytes were not returned to the budget", what,
		  (int) (run_used() - used_before));
	CHECK(stub_live() == live_before, "%s: %d allocations were not freed", what,
		  stub_live() - live_before);
	CHECK(run.status == DEVICE_OK || run.status == fault->status, "%s: status %d, %s", what,
		  run.status, run.error.text);
	CHECK(run.status == DEVICE_OK || run.error.text[0] != '\0', "%s: the failure has no text",
		  what);
	/* with a query open, lack of memory only rejects batches */
	CHECK(run.status == DEVICE_OK || !run.opened || fault->call != STUB_ALLOC ||
			  fault->err != cudaErrorMemoryAllocation || wire_keeps_rows(&c->q),
		  "%s: lack of memory is a failure: %s", what, run.error.text);
	if (run.status == DEVICE_OK)
	{
		incomplete_runs += run.taken != whole->taken;
		run_check_groups(&run, whole, what);
	}
	free(run.groups);

	CHECK(shared_query_reduce(other, lane, &batch, &error) == DEVICE_OK &&
			  shared_query_finish(other, &finished, &error) == DEVICE_OK && finished.ngroups == 50,
		  "%s: the other query ends with %s", what, error.text);
	shared_query_leave(other);
	device_ops.lane_close(lane);
	CHECK(run_used() == 0 && stub_live() == 0, "%s: memory was not freed in the end", what);
}

static Case current;

static void
test_failing_calls(void)
{
	QueryRun whole;
	int calls[STUB_CALLS];

	stub_fail(STUB_ALLOC, 0, false, cudaSuccess);
	run_query(&whole, &current, ~0u);
	for (int k = 0; k < STUB_CALLS; k++)
		calls[k] = stub_count(k);
	CHECK(whole.status == DEVICE_OK && whole.taken == (1u << current.nbatches) - 1,
		  "a run without faults fails: %s", whole.error.text);
	CHECK(run_used() == 0 && stub_live() == 0, "a run without faults does not free its memory");
	run_check_sums(&whole, "a run without faults");
	for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
		for (int n = 1 + f % FAULT_STEP; n <= calls[faults[f].call]; n += FAULT_STEP)
			run_with_fault(&current, &whole, &faults[f], n);
	free(whole.groups);
}

/* ---- limits ---- */

/* Limits the memory to 1/16, 2/16, ... of what the query needs. */
static void
test_little_memory(void)
{
	uint64_t enough;
	QueryRun run, whole;
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
			CHECK(run_used() == 0 && stub_live() == 0, "%s: memory was not freed", current.name);
			if (run.status == DEVICE_OK)
			{
				ended++;
				run_check_groups(&run, &whole, current.name);
			}
			/* a table four times as large does not fit then, but a smaller one does */
			CHECK(current.key != key_distinct || current.first_null > 0 || part < 12 ||
					  run.taken == whole.taken,
				  "%s: batches %x were reduced with %d sixteenths of the memory", current.name,
				  run.taken, part);
			free(run.groups);
		}
		free(whole.groups);
	}
	CHECK(ended > 110, "only %d runs succeeded", ended);
}

/*
 * A table grows up to the largest number of bins, by a factor below four if necessary. Then batches
 * are rejected.
 */
static void
test_most_bins(void)
{
	QueryRun run;
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
		  "one bin too few: batches %x were reduced, %s", run.taken, run.error.text);
	run_check_sums(&run, "one bin too few");
	free(run.groups);

	/* histograms so wide that few groups have room, or none */
	make_case(5, &current);
	for (int groups = 0; groups < 21; groups++)
	{
		cuda_max_bins = groups * 32;
		run_query(&run, &current, ~0u);
		CHECK(run.status == DEVICE_OK && (run.taken != 0) == (groups >= 20),
			  "%d groups: batches %x were reduced, %s", groups, run.taken, run.error.text);
		run_check_sums(&run, "wide histograms");
		free(run.groups);
	}
	cuda_max_bins = most;
	CHECK(run_used() == 0 && stub_live() == 0, "memory was not freed");
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
	{
		char name[128];

		snprintf(name, sizeof(name), "%s: the groups are right or all participants fail",
				 current.name);
		RUN(name, test_failing_calls);
	}
	printf("# %d runs, %d of them without some batches\n", runs, incomplete_runs);
	RUN("with little memory queries have the right groups or fail", test_little_memory);
	RUN("tables grow to the largest number of bins, then batches are rejected", test_most_bins);
	return unit_done();
}

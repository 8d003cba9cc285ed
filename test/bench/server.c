/*
 * server.c
 *	  Benchmark of the GPU server alone: queries over stored columns, without PostgreSQL.
 *
 *	server [ROWS [REPEATS [QUERIES]]]
 *
 * A session in this process stores ROWS rows (48 M), runs each query REPEATS times (9), or only the
 * first QUERIES queries, and prints for each query:
 *	 - the median time from OPEN to FINISHED, and the time of the kernels in the last run;
 *	 - the median time to fetch all groups;
 *	 - the number of groups, and the sum of the first slot over all groups, to compare by eye.
 *
 * Run it with `make bench-server`.  The messages are those of the standard queries (queries.txt),
 * and of further ones with sorted keys, two keys and limits.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "operators/bins.h"
#include "peer.h"
#include "server/device_store.h"
#include "strategy.h"

/* Called by the server's code when it cannot go on. */
void
server_abandon(const char *reason)
{
	printf("the server ends: %s\n", reason);
	exit(1);
}

/* Rows of a stored range of a column. */
#define RANGE_ROWS 48000

/* The stored columns. */
enum
{
	COL_K4, /* random keys: 4, 1 K and 1 M values */
	COL_K1K,
	COL_K1M,
	COL_V1, /* values: an int4, a float8 and a numeric, as an integer */
	COL_V2,
	COL_V3,
	COL_RUNS_OF_48, /* ascending keys, each in a run of 48 or 5 rows */
	COL_RUNS_OF_5,
	COL_K10M, /* random keys: 10 M values */
	COLS
};

static const uint32_t types[COLS] = {WIRE_I32, WIRE_I32, WIRE_I32, WIRE_I32, WIRE_F64,
									 WIRE_I64, WIRE_I32, WIRE_I32, WIRE_I32};

static int64_t nrows = 48000000;
static char *data[COLS];
static Peer peer;

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	return (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 20;
}

static void
make_data(void)
{
	for (int c = 0; c < COLS; c++)
		data[c] = malloc((size_t) nrows * wire_width(types[c]));
	for (int64_t i = 0; i < nrows; i++)
	{
		uint64_t r = mix(i + 1);

		((int32_t *) data[COL_K4])[i] = (int32_t) (r % 4);
		((int32_t *) data[COL_K1K])[i] = (int32_t) (r % 1000);
		((int32_t *) data[COL_K1M])[i] = (int32_t) (r % 1000000);
		((int32_t *) data[COL_V1])[i] = (int32_t) (r >> 20 & 127);
		((double *) data[COL_V2])[i] = (double) (r % 1000003) / 1000003;
		((int64_t *) data[COL_V3])[i] = (int64_t) (r % 10000000);
		((int32_t *) data[COL_K10M])[i] = (int32_t) (r % 10000000);
		((int32_t *) data[COL_RUNS_OF_48])[i] = (int32_t) (i / 48);
		((int32_t *) data[COL_RUNS_OF_5])[i] = (int32_t) (i / 5 * 3);
	}
}

static void
fail(const char *what)
{
	printf("%s: %s\n", what, peer.failed.text);
	exit(1);
}

/* Stores all columns at the server, range by range. */
static void
store_columns(void)
{
	WireQuery q = {.ncols = 0, .nslots = 1};
	char none[1];

	q.slots[0] = (WireSlot){.monoid = MONOID_COUNT, .col = {-1, -1}, .filter = -1, .width = 1};
	if (!request(&peer, MESSAGE_OPEN, &q, sizeof(q), MESSAGE_OPENED, none, 0))
		fail("open");
	for (int c = 0; c < COLS; c++)
		for (int64_t at = 0; at < nrows; at += RANGE_ROWS)
		{
			WireStore in = {
				.table = {1},
				.stamp = at + 1,
				.range = at / RANGE_ROWS,
				.nrows = nrows - at < RANGE_ROWS ? nrows - at : RANGE_ROWS,
				.column = {.typid = 20 + c, .attno = c + 1, .scale = -1, .type = types[c]},
				.validity = WIRE_NO_ARRAY};
			int width = wire_width(types[c]);
			WireStored stored;

			memcpy(peer.arena, data[c] + at * width, (size_t) in.nrows * width);
			if (!request(&peer, MESSAGE_STORE, &in, sizeof(in), MESSAGE_STORED, &stored,
						 sizeof(stored)) ||
				!stored.kept)
				fail("store");
		}
}

/* ---- queries ---- */

/* A query, as the messages that a session sends. */
typedef struct BenchQuery
{
	const char *name;
	WireQuery q;
	WireResident in;
	WireLimit limit; /* none if its count is 0 */
	int reg[COLS];   /* 1 + the register that a column is loaded into; 0: not loaded */
} BenchQuery;

/* Returns the register of a column. Adds its load to the program if there is none. */
static int
add_load(BenchQuery *t, int col)
{
	VectorProgram *p = &t->in.program;

	if (t->reg[col] == 0)
	{
		t->in.stored[t->in.nstored] =
			(WireColumnKey){.typid = 20 + col, .attno = col + 1, .scale = -1, .type = types[col]};
		p->instructions[p->ninstructions++] = (VectorInstruction){
			.op = VECTOR_LOAD,
			.r = p->nregisters,
			.a = t->in.nstored++,
			.data = types[col],
		};
		t->reg[col] = 1 + (int) p->nregisters++;
	}
	return t->reg[col] - 1;
}

/* Adds a constant to the program; returns its operand. */
static int
add_constant(BenchQuery *t, int64_t bits)
{
	t->in.program.constants[t->in.program.nconstants] = (VectorConstant){bits, VECTOR_VALUE, 0};
	return VECTOR_CONSTANT + (int) t->in.program.nconstants++;
}

static int
add_double_constant(BenchQuery *t, double x)
{
	int64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return add_constant(t, bits);
}

/* Adds an operation to the program; returns its result register. */
static int
add_operation(BenchQuery *t, int op, int a, int b, int data)
{
	VectorProgram *p = &t->in.program;

	p->instructions[p->ninstructions++] = (VectorInstruction){
		.op = op,
		.r = p->nregisters,
		.a = a,
		.b = b,
		.c = VECTOR_NONE,
		.data = data,
	};
	return (int) p->nregisters++;
}

/* Adds an operand as a column of the query's input; returns the column's number. */
static int
add_column(BenchQuery *t, int operand, uint32_t type)
{
	int c = (int) t->in.ncols++;

	t->in.cols[c] = operand;
	t->in.types[c] = type;
	t->q.ncols = t->in.ncols;
	return c;
}

/* Adds an aggregate of column x; -1: of no column. */
static void
add_slot(BenchQuery *t, MonoidId monoid, int x)
{
	t->q.slots[t->q.nslots++] =
		(WireSlot){.monoid = monoid, .col = {x, -1}, .filter = -1, .width = 1};
}

/* Adds a grouping key with values from 0 to max. */
static void
add_key(BenchQuery *t, int operand, int64_t max)
{
	WireQuery *q = &t->q;
	int k = q->nkeys++;

	q->keys[k] = (WireKey){
		.col = add_column(t, operand, WIRE_I32), .width = 4, .nullable = 1, .offset = 4 * k};
	q->null_offset = 4 * q->nkeys;
	q->key_bytes = q->nkeys == 1 ? 8 : 16;
	t->in.key_max[k] = max;
}

/* Returns a query without keys and aggregates. forced: a STRATEGY_*, or 0. */
static BenchQuery
begin_query(const char *name, double groups, int forced)
{
	BenchQuery t = {.name = name};

	t.in.table.id = 1;
	t.in.program.filter = VECTOR_NONE;
	t.q.est_rows = nrows;
	t.q.est_groups = groups;
	t.q.forced = forced;
	return t;
}

/* count(*), sum(v1), avg(v2) by a column */
static BenchQuery
count_sum_avg_by(const char *name, int col, int64_t max, double groups, int forced)
{
	BenchQuery t = begin_query(name, groups, forced);

	add_key(&t, add_load(&t, col), max);
	add_slot(&t, MONOID_COUNT, -1);
	add_slot(&t, MONOID_COUNT, add_column(&t, add_constant(&t, 1), WIRE_I8));
	add_slot(&t, MONOID_SUM_I64, add_column(&t, add_load(&t, COL_V1), WIRE_I32));
	add_slot(&t, MONOID_SUM_F64, add_column(&t, add_load(&t, COL_V2), WIRE_F64));
	return t;
}

static BenchQuery
count_by(const char *name, int col, int64_t max, double groups, int forced)
{
	BenchQuery t = begin_query(name, groups, forced);

	add_key(&t, add_load(&t, col), max);
	add_slot(&t, MONOID_COUNT, -1);
	return t;
}

static BenchQuery
query1(void)
{
	BenchQuery t = begin_query("1 sum(v2)", 1, 0);

	add_slot(&t, MONOID_COUNT, add_column(&t, add_constant(&t, 1), WIRE_I8));
	add_slot(&t, MONOID_SUM_F64, add_column(&t, add_load(&t, COL_V2), WIRE_F64));
	return t;
}

static BenchQuery
query5(void)
{
	BenchQuery t = begin_query("5 1 K, sum(numeric)", 1000, 0);

	add_key(&t, add_load(&t, COL_K1K), 999);
	add_slot(&t, MONOID_COUNT, add_column(&t, add_constant(&t, 1), WIRE_I8));
	add_slot(&t, MONOID_SUM_DEC, add_column(&t, add_load(&t, COL_V3), WIRE_I64));
	return t;
}

static BenchQuery
query6(void)
{
	BenchQuery t = begin_query("6 min, max, stddev by 2 keys", 4000, 0);
	int present, v2;

	add_key(&t, add_load(&t, COL_K4), 3);
	add_key(&t, add_load(&t, COL_K1K), 999);
	present = add_column(&t, add_constant(&t, 1), WIRE_I8);
	v2 = add_column(&t,
					add_operation(&t, VECTOR_F64_BELOW, add_load(&t, COL_V2),
								  add_double_constant(&t, 1e150), 1),
					WIRE_F64);
	add_slot(&t, MONOID_COUNT, present);
	add_slot(&t, MONOID_MIN_F64, v2);
	add_slot(&t, MONOID_MAX_F64, v2);
	add_slot(&t, MONOID_ACCUM_F64, v2);
	return t;
}

/*
 * Sums by k4 and k1k.  The kernel of one sum makes the bins itself.  With both sums, there are two
 * kernels, which read bins that another kernel has made.
 */
static BenchQuery
sums_by_two_keys(const char *name, bool integers, bool floats)
{
	BenchQuery t = begin_query(name, 4000, 0);

	add_key(&t, add_load(&t, COL_K4), 3);
	add_key(&t, add_load(&t, COL_K1K), 999);
	add_slot(&t, MONOID_COUNT, -1);
	if (integers)
		add_slot(&t, MONOID_SUM_I64, add_column(&t, add_load(&t, COL_V1), WIRE_I32));
	if (floats)
		add_slot(&t, MONOID_SUM_F64, add_column(&t, add_load(&t, COL_V2), WIRE_F64));
	return t;
}

/* stddev(v2) by a column */
static BenchQuery
stddev_by(const char *name, int col, int64_t max)
{
	BenchQuery t = begin_query(name, (double) max + 1, 0);
	int v2;

	add_key(&t, add_load(&t, col), max);
	v2 = add_column(&t,
					add_operation(&t, VECTOR_F64_BELOW, add_load(&t, COL_V2),
								  add_double_constant(&t, 1e150), 1),
					WIRE_F64);
	add_slot(&t, MONOID_COUNT, -1);
	add_slot(&t, MONOID_ACCUM_F64, v2);
	return t;
}

static BenchQuery
query7(void)
{
	BenchQuery t = begin_query("7 width_bucket", 102, 0);
	int lo = add_double_constant(&t, 0);

	add_double_constant(&t, 1);
	add_constant(&t, 100);
	add_key(&t, add_operation(&t, VECTOR_BUCKET, add_load(&t, COL_V2), lo, 0), 101);
	add_slot(&t, MONOID_COUNT, -1);
	return t;
}

static BenchQuery
query8(void)
{
	BenchQuery t = begin_query("8 WHERE", 4, 0);
	int a, b;

	a = add_operation(&t, VECTOR_F_FLOAT8LT, add_load(&t, COL_V2), add_double_constant(&t, 0.5), 0);
	b = add_operation(&t, VECTOR_F_INT4NE, add_load(&t, COL_K1K), add_constant(&t, 7), 0);
	t.in.program.filter = add_operation(&t, VECTOR_SELECT, a, b, 0);
	t.in.program.instructions[t.in.program.ninstructions - 1].c = (uint16_t) add_constant(&t, 0);
	add_key(&t, add_load(&t, COL_K4), 3);
	add_slot(&t, MONOID_COUNT, -1);
	add_slot(&t, MONOID_COUNT, add_column(&t, add_constant(&t, 1), WIRE_I8));
	add_slot(&t, MONOID_SUM_I64, add_column(&t, add_load(&t, COL_V1), WIRE_I32));
	return t;
}

/* 12 aggregates by k4: sum, min, max and avg of an int4, a float8 and a numeric */
static BenchQuery
twelve_aggregates(void)
{
	static const int cols[3] = {COL_V1, COL_V2, COL_V3};
	static const MonoidId monoids[3][3] = {{MONOID_SUM_I64, MONOID_MIN_I32, MONOID_MAX_I32},
										   {MONOID_SUM_F64, MONOID_MIN_F64, MONOID_MAX_F64},
										   {MONOID_SUM_DEC, MONOID_MIN_DEC, MONOID_MAX_DEC}};
	BenchQuery t = begin_query("12 aggregates by k4", 4, 0);

	add_key(&t, add_load(&t, COL_K4), 3);
	add_slot(&t, MONOID_COUNT, -1);
	for (int c = 0; c < 3; c++)
	{
		int v = add_load(&t, cols[c]);
		int x = add_column(&t,
						   cols[c] == COL_V2 ? add_operation(&t, VECTOR_F64_BELOW, v,
															 add_double_constant(&t, 1e150), 1) :
											   v,
						   types[cols[c]]);

		for (int m = 0; m < 3; m++)
			add_slot(&t, monoids[c][m], x);
	}
	return t;
}

/*
 * Like TPC-H's query 1: sums of numerics and of their products, with a WHERE.  v1 stands for the
 * discount, k4 for the tax.
 */
static BenchQuery
products_of_numerics(void)
{
	BenchQuery t = begin_query("products of numerics, WHERE", 4, 0);
	int price = add_load(&t, COL_V3);
	int charge;

	t.in.program.filter =
		add_operation(&t, VECTOR_F_INT4LE, add_load(&t, COL_K1K), add_constant(&t, 980), 0);
	add_key(&t, add_load(&t, COL_K4), 3);
	add_slot(&t, MONOID_COUNT, -1);
	add_slot(&t, MONOID_SUM_DEC, add_column(&t, add_load(&t, COL_V1), WIRE_I32));
	add_slot(&t, MONOID_SUM_DEC, add_column(&t, price, WIRE_I64));
	charge = add_operation(
		&t, VECTOR_DEC_MUL, price,
		add_operation(&t, VECTOR_DEC_SUB, add_constant(&t, 100), add_load(&t, COL_V1), 0), 0);
	add_slot(&t, MONOID_SUM_DEC, add_column(&t, charge, WIRE_I64));
	charge = add_operation(
		&t, VECTOR_DEC_MUL, charge,
		add_operation(&t, VECTOR_DEC_ADD, add_constant(&t, 100), add_load(&t, COL_K4), 0), 0);
	add_slot(&t, MONOID_SUM_DEC, add_column(&t, charge, WIRE_I64));
	return t;
}

static BenchQuery
count_by_two_keys(const char *name, int forced)
{
	BenchQuery t = begin_query(name, 4e6, forced);

	add_key(&t, add_load(&t, COL_K1M), 1000000);
	add_key(&t, add_load(&t, COL_K4), 3);
	add_slot(&t, MONOID_COUNT, -1);
	return t;
}

/* Returns t with a limit of 10 groups, sorted by a slot, or by the first key if slot is -1. */
static BenchQuery
with_limit(BenchQuery t, const char *name, int slot)
{
	t.name = name;
	t.limit = (WireLimit){.count = 10, .nsort = 1, .by = {{{slot, 0, -1, 0}, slot >= 0, 0}}};
	return t;
}

/* Returns t, which has a limit, sorted by the first key as a second criterion. */
static BenchQuery
then_by_key(BenchQuery t, const char *name)
{
	t.name = name;
	t.limit.by[t.limit.nsort++] = (WireSort){.value = {-1, 0, -1, 0}};
	return t;
}

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *) a;
	double y = *(const double *) b;

	return x < y ? -1 : x > y;
}

/* Fetches all groups; returns the sum of the first slot, as an integer. */
static int64_t
fetch_groups(const BenchQuery *t, uint64_t ngroups)
{
	int64_t total = 0;

	for (uint64_t at = 0; at < ngroups;)
	{
		WireFetch fetch = {.first = at,
						   .max = ngroups - at > UINT32_MAX ? UINT32_MAX : ngroups - at};
		WireGroups got;

		if (!request(&peer, MESSAGE_FETCH, &fetch, sizeof(fetch), MESSAGE_GROUPS, &got,
					 sizeof(got)))
			fail("fetch");
		for (uint32_t g = 0; g < got.n; g++)
			total += ((int64_t *) (peer.arena + got.slots[0]))[g];
		at += got.n;
	}
	(void) t;
	return total;
}

/* Runs a query `repeat` times, at most 64, and prints its line. */
static void
run_query(BenchQuery *t, int repeat)
{
	double server[64], fetch[64];
	WireFinished finished;
	int64_t total = 0;
	int nranges = (int) ((nrows + RANGE_ROWS - 1) / RANGE_ROWS);

	for (int i = 0; i < repeat; i++)
	{
		WireRowRange *ranges = (WireRowRange *) peer.arena;
		WireResided resided;
		char none[1];
		double from = now_ms(), done;

		if (!request(&peer, MESSAGE_OPEN, &t->q, sizeof(t->q), MESSAGE_OPENED, none, 0))
			fail("open");
		for (int r = 0; r < nranges; r++)
			ranges[r] = (WireRowRange){
				.stamp = (uint64_t) r * RANGE_ROWS + 1,
				.range = r,
				.nrows = nrows - (int64_t) r * RANGE_ROWS < RANGE_ROWS ?
					nrows - (int64_t) r * RANGE_ROWS :
					RANGE_ROWS,
			};
		t->in.nrow_ranges = nranges;
		if (!request(&peer, MESSAGE_RESIDENT, &t->in, sizeof(t->in), MESSAGE_RESIDED, &resided,
					 sizeof(resided)) ||
			!resided.taken)
			fail("resident");
		if (!request(&peer, MESSAGE_FINISH, &(WireFinish){.limit = t->limit}, sizeof(WireFinish),
					 MESSAGE_FINISHED, &finished, sizeof(finished)))
			fail("finish");
		done = now_ms();
		server[i] = done - from;
		total = fetch_groups(t, finished.ngroups);
		fetch[i] = now_ms() - done;
	}
	qsort(server, repeat, sizeof(double), compare_doubles);
	qsort(fetch, repeat, sizeof(double), compare_doubles);
	printf("%-34s %8.3f %8.3f %8.3f  %9llu groups, first slot %lld, %s\n", t->name,
		   server[repeat / 2], finished.kernel_ms, fetch[repeat / 2],
		   (unsigned long long) finished.ngroups, (long long) total, finished.strategy);
}

int
main(int argc, char **argv)
{
	WireStatus status = {0};
	DeviceError error;
	int repeat = argc > 2 ? atoi(argv[2]) : 9;
	size_t most = argc > 3 ? (size_t) atoi(argv[3]) : SIZE_MAX;

	setvbuf(stdout, NULL, _IOLBF, 0);
	nrows = argc > 1 ? atoll(argv[1]) : nrows;
	make_data();
	if (device_ops.start("all", &status, &error) != DEVICE_OK)
	{
		printf("%s\n", error.text);
		return 1;
	}
	budget_start(&status);
	arena_set_limit(UINT64_C(1) << 30);
	if (!peer_open(&peer))
		fail("hello");
	store_columns();
	printf("%-34s %8s %8s %8s\n", "median ms", "server", "kernels", "fetch");
	{
		BenchQuery all[] = {
			query1(),
			count_sum_avg_by("2 4 groups", COL_K4, 3, 4, 0),
			count_sum_avg_by("3 1 K groups", COL_K1K, 999, 1000, 0),
			count_sum_avg_by("4 1 M groups", COL_K1M, 999999, 1e6, 0),
			query5(),
			query6(),
			query7(),
			query8(),
			twelve_aggregates(),
			products_of_numerics(),
			sums_by_two_keys("sum(v1) by 2 keys", true, false),
			sums_by_two_keys("sum(v2) by 2 keys", false, true),
			sums_by_two_keys("sum(v1), sum(v2) by 2 keys", true, true),
			stddev_by("stddev, 4 groups", COL_K4, 3),
			stddev_by("stddev, 1 K groups", COL_K1K, 999),
			count_sum_avg_by("4 1 M groups, hash", COL_K1M, 999999, 1e6, STRATEGY_HASH),
			count_sum_avg_by("4 1 M groups, sort", COL_K1M, 999999, 1e6, STRATEGY_SORT),
			with_limit(count_sum_avg_by("", COL_K1M, 999999, 1e6, 0),
					   "4 1 M groups, 10 largest counts", 0),
			then_by_key(with_limit(count_sum_avg_by("", COL_K1M, 999999, 1e6, 0), "", 0),
						"the same, then by key"),
			with_limit(count_sum_avg_by("", COL_K1M, 999999, 1e6, STRATEGY_HASH), "the same, hash",
					   0),
			with_limit(count_sum_avg_by("", COL_RUNS_OF_48, nrows / 48, nrows / 48, 0),
					   "runs of 48, 10 first keys", -1),
			with_limit(count_sum_avg_by("", COL_RUNS_OF_5, nrows / 5 * 3, nrows / 5, 0),
					   "runs of 5, 10 first keys", -1),
			with_limit(count_by_two_keys("", 0), "4 M of 2 keys, 10 largest counts", 0),
			count_by("count by 1 M", COL_K1M, 999999, 1e6, 0),
			count_by("count by 1 M, hash", COL_K1M, 999999, 1e6, STRATEGY_HASH),
			count_by_two_keys("count by 4 M of 2 keys", 0),
			count_by_two_keys("count by 4 M of 2 keys, hash", STRATEGY_HASH),
			count_sum_avg_by("runs of 48", COL_RUNS_OF_48, nrows / 48, nrows / 48, 0),
			count_sum_avg_by("runs of 48, direct", COL_RUNS_OF_48, nrows / 48, nrows / 48,
							 STRATEGY_DIRECT),
			count_sum_avg_by("runs of 48, hash", COL_RUNS_OF_48, nrows / 48, nrows / 48,
							 STRATEGY_HASH),
			count_sum_avg_by("runs of 5", COL_RUNS_OF_5, nrows / 5 * 3, nrows / 5, 0),
			count_sum_avg_by("10 M random groups, hash", COL_K10M, 9999999, 1e7, STRATEGY_HASH),
			count_sum_avg_by("10 M random groups, sort", COL_K10M, 9999999, 1e7, STRATEGY_SORT),
			count_sum_avg_by("10 M random groups", COL_K10M, 9999999, 1e7, 0),
			count_sum_avg_by("runs of 5, hash", COL_RUNS_OF_5, nrows / 5 * 3, nrows / 5,
							 STRATEGY_HASH),
		};

		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && i < most; i++)
			run_query(&all[i], repeat);
	}
	peer_close(&peer);
	return 0;
}

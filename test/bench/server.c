/*
 * server.c
 *	  The GPU server's part of queries over stored columns, by itself: a session in this process
 * stores 48 M rows (or as many as the first argument says), asks each query nine times (the
 * second), or the first of them (the third), checks its groups, and prints the medians of RESIDENT
 * to FINISHED and of the fetching of all groups.
 *
 * `make bench-server`; the messages are those of the standard queries (queries.txt), and of sorted
 * keys.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "operators/bins.h"
#include "peer.h"
#include "server/device_store.h"
#include "strategy.h"

void
server_abandon(const char *reason)
{
	printf("the server ends: %s\n", reason);
	exit(1);
}

#define RANGE_ROWS 48000

enum
{
	COL_K4,
	COL_K1K,
	COL_K1M,
	COL_V1,
	COL_V2,
	COL_V3,
	COL_RUN48,
	COL_RUN5,
	COL_K10M,
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
		((int32_t *) data[COL_RUN48])[i] = (int32_t) (i / 48);
		((int32_t *) data[COL_RUN5])[i] = (int32_t) (i / 5 * 3);
	}
}

static void
fail(const char *what)
{
	printf("%s: %s\n", what, peer.failed.text);
	exit(1);
}

static void
store_all(void)
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

typedef struct Question
{
	const char *name;
	WireQuery q;
	WireResident in;
	WireLimit limit; /* if its count is not 0 */
	int reg[COLS];   /* of the column's load, less 1 */
} Question;

static int
load(Question *t, int col)
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

static int
constant(Question *t, int64_t bits)
{
	t->in.program.constants[t->in.program.nconstants] = (VectorConstant){bits, VECTOR_VALUE, 0};
	return VECTOR_CONSTANT + (int) t->in.program.nconstants++;
}

static int
double_constant(Question *t, double x)
{
	int64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return constant(t, bits);
}

static int
operate(Question *t, int op, int a, int b, int data)
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

static int
column(Question *t, int operand, uint32_t type)
{
	int c = (int) t->in.ncols++;

	t->in.cols[c] = operand;
	t->in.types[c] = type;
	t->q.ncols = t->in.ncols;
	return c;
}

static void
add_slot(Question *t, MonoidId monoid, int x)
{
	t->q.slots[t->q.nslots++] =
		(WireSlot){.monoid = monoid, .col = {x, -1}, .filter = -1, .width = 1};
}

static void
add_key(Question *t, int operand, int64_t max)
{
	WireQuery *q = &t->q;
	int k = q->nkeys++;

	q->keys[k] =
		(WireKey){.col = column(t, operand, WIRE_I32), .width = 4, .nullable = 1, .offset = 4 * k};
	q->null_offset = 4 * q->nkeys;
	q->key_bytes = q->nkeys == 1 ? 8 : 16;
	t->in.key_max[k] = max;
}

static Question
begin(const char *name, double groups, int forced)
{
	Question t = {.name = name};

	t.in.table.id = 1;
	t.in.program.filter = VECTOR_NONE;
	t.q.est_rows = nrows;
	t.q.est_groups = groups;
	t.q.forced = forced;
	return t;
}

/* count(*), sum(v1), avg(v2) by a column */
static Question
three_by(const char *name, int col, int64_t max, double groups, int forced)
{
	Question t = begin(name, groups, forced);

	add_key(&t, load(&t, col), max);
	add_slot(&t, MONOID_COUNT, -1);
	add_slot(&t, MONOID_COUNT, column(&t, constant(&t, 1), WIRE_I8));
	add_slot(&t, MONOID_SUM_I64, column(&t, load(&t, COL_V1), WIRE_I32));
	add_slot(&t, MONOID_SUM_F64, column(&t, load(&t, COL_V2), WIRE_F64));
	return t;
}

static Question
count_by(const char *name, int col, int64_t max, double groups, int forced)
{
	Question t = begin(name, groups, forced);

	add_key(&t, load(&t, col), max);
	add_slot(&t, MONOID_COUNT, -1);
	return t;
}

static Question
query1(void)
{
	Question t = begin("1 sum(v2)", 1, 0);

	add_slot(&t, MONOID_COUNT, column(&t, constant(&t, 1), WIRE_I8));
	add_slot(&t, MONOID_SUM_F64, column(&t, load(&t, COL_V2), WIRE_F64));
	return t;
}

static Question
query5(void)
{
	Question t = begin("5 1 K, sum(numeric)", 1000, 0);

	add_key(&t, load(&t, COL_K1K), 999);
	add_slot(&t, MONOID_COUNT, column(&t, constant(&t, 1), WIRE_I8));
	add_slot(&t, MONOID_SUM_DEC, column(&t, load(&t, COL_V3), WIRE_I64));
	return t;
}

static Question
query6(void)
{
	Question t = begin("6 min, max, stddev by 2 keys", 4000, 0);
	int present, v2;

	add_key(&t, load(&t, COL_K4), 3);
	add_key(&t, load(&t, COL_K1K), 999);
	present = column(&t, constant(&t, 1), WIRE_I8);
	v2 = column(&t, operate(&t, VECTOR_F64_BELOW, load(&t, COL_V2), double_constant(&t, 1e150), 1),
				WIRE_F64);
	add_slot(&t, MONOID_COUNT, present);
	add_slot(&t, MONOID_MIN_F64, v2);
	add_slot(&t, MONOID_MAX_F64, v2);
	add_slot(&t, MONOID_ACCUM_F64, v2);
	return t;
}

/*
 * By k4 and k1k: sums, of which one call makes the bins itself, or, of both columns, two calls read
 * bins that were made.
 */
static Question
sums_by_two(const char *name, bool integers, bool floats)
{
	Question t = begin(name, 4000, 0);

	add_key(&t, load(&t, COL_K4), 3);
	add_key(&t, load(&t, COL_K1K), 999);
	add_slot(&t, MONOID_COUNT, -1);
	if (integers)
		add_slot(&t, MONOID_SUM_I64, column(&t, load(&t, COL_V1), WIRE_I32));
	if (floats)
		add_slot(&t, MONOID_SUM_F64, column(&t, load(&t, COL_V2), WIRE_F64));
	return t;
}

/* stddev(v2) by a column */
static Question
deviations(const char *name, int col, int64_t max)
{
	Question t = begin(name, (double) max + 1, 0);
	int v2;

	add_key(&t, load(&t, col), max);
	v2 = column(&t, operate(&t, VECTOR_F64_BELOW, load(&t, COL_V2), double_constant(&t, 1e150), 1),
				WIRE_F64);
	add_slot(&t, MONOID_COUNT, -1);
	add_slot(&t, MONOID_ACCUM_F64, v2);
	return t;
}

static Question
query7(void)
{
	Question t = begin("7 width_bucket", 102, 0);
	int lo = double_constant(&t, 0);

	double_constant(&t, 1);
	constant(&t, 100);
	add_key(&t, operate(&t, VECTOR_BUCKET, load(&t, COL_V2), lo, 0), 101);
	add_slot(&t, MONOID_COUNT, -1);
	return t;
}

static Question
query8(void)
{
	Question t = begin("8 WHERE", 4, 0);
	int a, b;

	a = operate(&t, VECTOR_F_FLOAT8LT, load(&t, COL_V2), double_constant(&t, 0.5), 0);
	b = operate(&t, VECTOR_F_INT4NE, load(&t, COL_K1K), constant(&t, 7), 0);
	t.in.program.filter = operate(&t, VECTOR_SELECT, a, b, 0);
	t.in.program.instructions[t.in.program.ninstructions - 1].c = (uint16_t) constant(&t, 0);
	add_key(&t, load(&t, COL_K4), 3);
	add_slot(&t, MONOID_COUNT, -1);
	add_slot(&t, MONOID_COUNT, column(&t, constant(&t, 1), WIRE_I8));
	add_slot(&t, MONOID_SUM_I64, column(&t, load(&t, COL_V1), WIRE_I32));
	return t;
}

/* 12 aggregates by k4: three each, and the mean, of an int4, a float8 and a numeric */
static Question
twelve(void)
{
	static const int cols[3] = {COL_V1, COL_V2, COL_V3};
	static const MonoidId monoids[3][3] = {{MONOID_SUM_I64, MONOID_MIN_I32, MONOID_MAX_I32},
										   {MONOID_SUM_F64, MONOID_MIN_F64, MONOID_MAX_F64},
										   {MONOID_SUM_DEC, MONOID_MIN_DEC, MONOID_MAX_DEC}};
	Question t = begin("12 aggregates by k4", 4, 0);

	add_key(&t, load(&t, COL_K4), 3);
	add_slot(&t, MONOID_COUNT, -1);
	for (int c = 0; c < 3; c++)
	{
		int v = load(&t, cols[c]);
		int x = column(
			&t,
			cols[c] == COL_V2 ? operate(&t, VECTOR_F64_BELOW, v, double_constant(&t, 1e150), 1) : v,
			types[cols[c]]);

		for (int m = 0; m < 3; m++)
			add_slot(&t, monoids[c][m], x);
	}
	return t;
}

/*
 * TPC-H's query 1: four columns of numerics, products of them, two keys, WHERE; v1 and k4 stand for
 * discount and tax
 */
static Question
products(void)
{
	Question t = begin("products of numerics, WHERE", 4, 0);
	int price = load(&t, COL_V3);
	int charge;

	t.in.program.filter = operate(&t, VECTOR_F_INT4LE, load(&t, COL_K1K), constant(&t, 980), 0);
	add_key(&t, load(&t, COL_K4), 3);
	add_slot(&t, MONOID_COUNT, -1);
	add_slot(&t, MONOID_SUM_DEC, column(&t, load(&t, COL_V1), WIRE_I32));
	add_slot(&t, MONOID_SUM_DEC, column(&t, price, WIRE_I64));
	charge = operate(&t, VECTOR_DEC_MUL, price,
					 operate(&t, VECTOR_DEC_SUB, constant(&t, 100), load(&t, COL_V1), 0), 0);
	add_slot(&t, MONOID_SUM_DEC, column(&t, charge, WIRE_I64));
	charge = operate(&t, VECTOR_DEC_MUL, charge,
					 operate(&t, VECTOR_DEC_ADD, constant(&t, 100), load(&t, COL_K4), 0), 0);
	add_slot(&t, MONOID_SUM_DEC, column(&t, charge, WIRE_I64));
	return t;
}

static Question
three_keys(const char *name, int forced)
{
	Question t = begin(name, 4e6, forced);

	add_key(&t, load(&t, COL_K1M), 1000000);
	add_key(&t, load(&t, COL_K4), 3);
	add_slot(&t, MONOID_COUNT, -1);
	return t;
}

static Question
with_limit(Question t, const char *name, int slot)
{
	t.name = name;
	t.limit = (WireLimit){.count = 10, .nsort = 1, .by = {{{slot, 0, -1, 0}, slot >= 0, 0}}};
	return t;
}

/* And by the first key among equal ones. */
static Question
with_key_behind(Question t, const char *name)
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

/* The total of all counts of the first slot, while all groups are fetched. */
static int64_t
fetch_all(const Question *t, uint64_t ngroups)
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

static void
ask(Question *t, int repeat)
{
	double server[64], fetch[64];
	WireFinished finished;
	int64_t total = 0;
	int nruns = (int) ((nrows + RANGE_ROWS - 1) / RANGE_ROWS);

	for (int i = 0; i < repeat; i++)
	{
		WireRowRange *runs = (WireRowRange *) peer.arena;
		WireResided resided;
		char none[1];
		double from = now_ms(), done;

		if (!request(&peer, MESSAGE_OPEN, &t->q, sizeof(t->q), MESSAGE_OPENED, none, 0))
			fail("open");
		for (int r = 0; r < nruns; r++)
			runs[r] = (WireRowRange){
				.stamp = (uint64_t) r * RANGE_ROWS + 1,
				.range = r,
				.nrows = nrows - (int64_t) r * RANGE_ROWS < RANGE_ROWS ?
					nrows - (int64_t) r * RANGE_ROWS :
					RANGE_ROWS,
			};
		t->in.nrow_ranges = nruns;
		if (!request(&peer, MESSAGE_RESIDENT, &t->in, sizeof(t->in), MESSAGE_RESIDED, &resided,
					 sizeof(resided)) ||
			!resided.taken)
			fail("resident");
		if (!request(&peer, MESSAGE_FINISH, &(WireFinish){.limit = t->limit}, sizeof(WireFinish),
					 MESSAGE_FINISHED, &finished, sizeof(finished)))
			fail("finish");
		done = now_ms();
		server[i] = done - from;
		total = fetch_all(t, finished.ngroups);
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
	store_all();
	printf("%-34s %8s %8s %8s\n", "median ms", "server", "kernels", "fetch");
	{
		Question all[] = {
			query1(),
			three_by("2 4 groups", COL_K4, 3, 4, 0),
			three_by("3 1 K groups", COL_K1K, 999, 1000, 0),
			three_by("4 1 M groups", COL_K1M, 999999, 1e6, 0),
			query5(),
			query6(),
			query7(),
			query8(),
			twelve(),
			products(),
			sums_by_two("sum(v1) by 2 keys", true, false),
			sums_by_two("sum(v2) by 2 keys", false, true),
			sums_by_two("sum(v1), sum(v2) by 2 keys", true, true),
			deviations("stddev, 4 groups", COL_K4, 3),
			deviations("stddev, 1 K groups", COL_K1K, 999),
			three_by("4 1 M groups, hash", COL_K1M, 999999, 1e6, STRATEGY_HASH),
			three_by("4 1 M groups, sort", COL_K1M, 999999, 1e6, STRATEGY_SORT),
			with_limit(three_by("", COL_K1M, 999999, 1e6, 0), "4 1 M groups, 10 largest counts", 0),
			with_key_behind(with_limit(three_by("", COL_K1M, 999999, 1e6, 0), "", 0),
							"the same, then by key"),
			with_limit(three_by("", COL_K1M, 999999, 1e6, STRATEGY_HASH), "the same, hash", 0),
			with_limit(three_by("", COL_RUN48, nrows / 48, nrows / 48, 0),
					   "runs of 48, 10 first keys", -1),
			with_limit(three_by("", COL_RUN5, nrows / 5 * 3, nrows / 5, 0),
					   "runs of 5, 10 first keys", -1),
			with_limit(three_keys("", 0), "4 M of 2 keys, 10 largest counts", 0),
			count_by("count by 1 M", COL_K1M, 999999, 1e6, 0),
			count_by("count by 1 M, hash", COL_K1M, 999999, 1e6, STRATEGY_HASH),
			three_keys("count by 4 M of 2 keys", 0),
			three_keys("count by 4 M of 2 keys, hash", STRATEGY_HASH),
			three_by("runs of 48", COL_RUN48, nrows / 48, nrows / 48, 0),
			three_by("runs of 48, direct", COL_RUN48, nrows / 48, nrows / 48, STRATEGY_DIRECT),
			three_by("runs of 48, hash", COL_RUN48, nrows / 48, nrows / 48, STRATEGY_HASH),
			three_by("runs of 5", COL_RUN5, nrows / 5 * 3, nrows / 5, 0),
			three_by("10 M random groups, hash", COL_K10M, 9999999, 1e7, STRATEGY_HASH),
			three_by("10 M random groups, sort", COL_K10M, 9999999, 1e7, STRATEGY_SORT),
			three_by("10 M random groups", COL_K10M, 9999999, 1e7, 0),
			three_by("runs of 5, hash", COL_RUN5, nrows / 5 * 3, nrows / 5, STRATEGY_HASH),
		};

		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && i < most; i++)
			ask(&all[i], repeat);
	}
	peer_close(&peer);
	return 0;
}

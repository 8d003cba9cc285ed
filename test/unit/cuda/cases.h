/*
 * cases.h
 *	  Queries for tests of the GPU server over the CUDA stub. Functions of the batch and row
 *	  number generate the rows. The expected answer (number of rows and sum of v by key) is
 *	  computed by sorting.
 */
#ifndef GPUAGG_CUDA_CASES_H
#define GPUAGG_CUDA_CASES_H

#include "operators/hll.h"
#include "server/server.h"
#include "strategy.h"
#include "unit.h"

#define MAX_BATCHES 8

typedef struct Case
{
	const char *name;
	int nbatches;
	int nrows; /* rows of each batch */
	int32_t (*key)(int batch, int row);
	int first_null; /* first batch in which every tenth key is NULL; 0: the key is not nullable */
	WireQuery q;
	double thresholds[8];
} Case;

/* Columns of every batch, in this order. */
enum
{
	COL_KEY,   /* int4; its NULLs depend on first_null */
	COL_V,     /* int8, NULL in every seventh row */
	COL_X,     /* float8; its sums are exact */
	COL_ORDER, /* int8 */
	COLS
};

/* Returns v of a row, also if it is NULL. */
static int64_t
row_v(int batch, int row)
{
	return (batch * 7919 + row * 31) % 1000 - 300;
}

/* Returns whether v is not NULL in a row. */
static bool
row_has_v(int row)
{
	return row % 7 != 3;
}

/* Returns whether the key is not NULL in a row. */
static bool
row_has_key(const Case *c, int batch, int row)
{
	return c->first_null == 0 || batch < c->first_null || row % 10 != 4;
}

static void
set_bit(uint8_t *bits, int i, bool value)
{
	bits[i >> 3] |= value << (i & 7);
}

/* Writes a batch's rows to `to`, and fills the description in *batch. */
__attribute__((unused)) static void
make_batch(const Case *c, int b, int buffer, char *to, WireBatch *batch)
{
	static const uint32_t types[COLS] = {WIRE_I32, WIRE_I64, WIRE_F64, WIRE_I64};
	uint32_t at = 0;
	uint8_t *bits, *key_bits;

	memset(batch, 0, sizeof(*batch));
	batch->buffer = buffer;
	batch->nrows = c->nrows;
	batch->ncols = COLS;
	for (int i = 0; i < COLS; i++)
	{
		batch->cols[i] = (WireColumn){types[i], at, WIRE_NO_ARRAY};
		at += wire_align((size_t) c->nrows * wire_width(types[i]));
	}
	batch->cols[COL_V].validity = at;
	bits = (uint8_t *) to + at;
	at += wire_align(wire_bitmap_bytes(c->nrows));
	key_bits = (uint8_t *) to + at;
	if (c->first_null > 0 && b >= c->first_null)
		batch->cols[COL_KEY].validity = at;
	at += wire_align(wire_bitmap_bytes(c->nrows));
	batch->bytes = at;
	memset(bits, 0, wire_bitmap_bytes(c->nrows));
	memset(key_bits, 0, wire_bitmap_bytes(c->nrows));
	batch->key_min[0] = INT64_MAX;
	batch->key_max[0] = INT64_MIN;
	for (int r = 0; r < c->nrows; r++)
	{
		int32_t key = c->key ? c->key(b, r) : 0;

		((int32_t *) (to + batch->cols[COL_KEY].values))[r] = key;
		((int64_t *) (to + batch->cols[COL_V].values))[r] = row_v(b, r);
		((double *) (to + batch->cols[COL_X].values))[r] = (b * 131 + r * 17) % 512 * 0.25;
		((int64_t *) (to + batch->cols[COL_ORDER].values))[r] = (r * 37) % 101;
		set_bit(bits, r, row_has_v(r));
		set_bit(key_bits, r, row_has_key(c, b, r));
		if (!row_has_key(c, b, r))
			continue;
		batch->key_min[0] = key < batch->key_min[0] ? key : batch->key_min[0];
		batch->key_max[0] = key > batch->key_max[0] ? key : batch->key_max[0];
	}
}

/* ---- the queries: slots 0 and 1 of each are count(*) and sum(v) ---- */

/* Adds a slot with input column x; -1: it has no input. */
static void
add_slot(WireQuery *q, MonoidId monoid, int x)
{
	q->slots[q->nslots++] = (WireSlot){.monoid = monoid, .col = {x, -1}, .filter = -1, .width = 1};
}

static int32_t
key_few(int batch, int row)
{
	return (batch + row) % 50;
}

static int32_t
key_shifting(int batch, int row)
{
	return batch * 100 + row % 100;
}

static int32_t
key_scattered(int batch, int row)
{
	return batch == 0 ? row % 50 : row % 50 * 40000003 - batch;
}

static int32_t
key_scattered_late(int batch, int row)
{
	return key_scattered(batch < 2 ? 0 : batch, row);
}

static int32_t
key_distinct(int batch, int row)
{
	return (batch * 1400 + row) * 13;
}

static int32_t
key_spread(int batch, int row)
{
	return (batch + row) % 20 * 1000;
}

/* Returns the number of a run. Rows of WIRE_GROUPED have such keys. */
static int32_t
key_runs(int batch, int row)
{
	return row / 7 + 0 * batch;
}

/* Marks the rows as grouped by key, and adds two slots. */
static void
make_grouped(Case *c)
{
	c->q.flags = WIRE_GROUPED;
	add_slot(&c->q, MONOID_ACCUM_F64, COL_X);
	add_slot(&c->q, MONOID_MAX_F64, COL_X);
}

static void
add_max(Case *c)
{
	add_slot(&c->q, MONOID_MAX_F64, COL_X);
}

static void
add_sum(Case *c)
{
	add_slot(&c->q, MONOID_SUM_F64, COL_X);
}

static void
add_argmax(Case *c)
{
	add_slot(&c->q, MONOID_ARGMAX, COL_V);
	c->q.slots[2].col[1] = COL_ORDER;
	add_slot(&c->q, MONOID_MAX_I64, COL_V);
	add_slot(&c->q, MONOID_ARGMIN, COL_ORDER);
	c->q.slots[4].col[1] = COL_V;
	add_slot(&c->q, MONOID_MIN_I64, COL_ORDER);
}

static void
add_histograms(Case *c)
{
	WireQuery *q = &c->q;

	add_slot(q, MONOID_COUNT, COL_X);
	q->slots[2].bin_kind = WIRE_BIN_UNIFORM;
	q->slots[2].bin_n = 30;
	q->slots[2].width = 32;
	q->slots[2].hi = 128;
	add_slot(q, MONOID_SUM_I64, COL_X);
	q->slots[3].col[1] = COL_V;
	q->slots[3].bin_kind = WIRE_BIN_THRESHOLDS;
	q->slots[3].bin_n = 8;
	q->slots[3].width = 9;
	q->nthresholds = 8;
	for (int t = 0; t < 8; t++)
		c->thresholds[t] = t * 16;
}

static void
add_sketch(Case *c)
{
	add_slot(&c->q, MONOID_HLL_MAX, COL_V);
	c->q.slots[2].bin_kind = WIRE_BIN_HLL;
	c->q.slots[2].width = GPUAGG_HLL_REGISTERS;
}

static void
add_many(Case *c)
{
	for (int i = 0; i < 20; i++)
		add_slot(&c->q, i % 2 ? MONOID_MIN_I64 : MONOID_BIT_XOR, COL_ORDER);
}

static void
add_ordered(Case *c)
{
	WireQuery *q = &c->q;

	q->flags = WIRE_ORDERED;
	q->norder = 1;
	q->order[0] = (WireOrder){.col = COL_ORDER, .desc = 1};
	add_slot(q, MONOID_MAXSUB_I64, COL_V);
}

/*
 * Adds three sets: v for distinct values and the mode; COL_ORDER, with v beside it, for the first
 * value; v with counts.
 */
static void
add_sets(Case *c)
{
	WireQuery *q = &c->q;

	q->nsets = 3;
	q->sets[0] = (WireSet){COL_V, -1, -1, 0, 0};
	q->sets[1] = (WireSet){COL_ORDER, -1, COL_V, 1, 0};
	q->sets[2] = (WireSet){COL_V, -1, -1, 0, 1};
	add_slot(q, MONOID_COUNT, -1);
	add_slot(q, MONOID_SUM_I64, COL_V);
	add_slot(q, MONOID_COUNT, -1);
	q->slots[2].input = q->slots[3].input = WIRE_DISTINCT;
	q->slots[4].input = WIRE_FIRST;
	q->slots[4].set = 1;
	add_slot(q, MONOID_COUNT, -1);
	q->slots[5].input = WIRE_MODE_LAST;
	add_slot(q, MONOID_COUNT, COL_V);
	add_slot(q, MONOID_COUNT, COL_V);
	q->slots[6].input = WIRE_FIRST;
	q->slots[7].input = WIRE_DISTINCT;
	q->slots[6].set = q->slots[7].set = 2;
}

/* Replaces count(*) by count(column), for a column without NULLs. */
static void
count_column(Case *c)
{
	c->q.slots[0].col[0] = COL_ORDER;
}

typedef struct CaseRow
{
	const char *name;
	GpuaggStrategy forced;
	int32_t (*key)(int batch, int row); /* NULL: the query has no key */
	int nbatches;
	int nrows;
	int first_null;
	void (*change)(Case *c); /* adds slots or changes the query; or NULL */
} CaseRow;

/* Makes the n-th query. Returns false if n is beyond the last one. */
__attribute__((unused)) static bool
make_case(int n, Case *c)
{
	static const CaseRow rows[] = {
		{"no keys", STRATEGY_AUTO, NULL, 6, 300, 0, add_sum},
		{"direct bins", STRATEGY_DIRECT, key_few, 6, 300, 0, NULL},
		{"direct bins that grow", STRATEGY_DIRECT, key_shifting, 6, 300, 0, add_max},
		{"direct bins become a hash table", STRATEGY_AUTO, key_scattered, 6, 300, 0, NULL},
		{"a hash table that grows", STRATEGY_HASH, key_distinct, 6, 1500, 0, add_argmax},
		{"histograms", STRATEGY_HASH, key_spread, 6, 300, 0, add_histograms},
		{"sketches", STRATEGY_DIRECT, key_few, 3, 300, 0, add_sketch},
		{"many aggregates", STRATEGY_AUTO, key_few, 6, 300, 0, add_many},
		{"rows in order", STRATEGY_AUTO, key_spread, 6, 12000, 0, add_ordered},
		{"a hash table, and NULL first in the last batch", STRATEGY_HASH, key_distinct, 6, 300, 5,
		 NULL},
		{"a nullable key without NULLs", STRATEGY_HASH, key_distinct, 6, 300, 6, NULL},
		{"direct bins, and NULL first in a later batch", STRATEGY_DIRECT, key_few, 6, 300, 2, NULL},
		{"direct bins become a hash table, and NULL first in a later batch", STRATEGY_AUTO,
		 key_scattered, 6, 300, 3, NULL},
		{"direct bins that grow, with NULLs", STRATEGY_AUTO, key_shifting, 4, 300, 1, NULL},
		{"direct bins with NULLs become a hash table", STRATEGY_AUTO, key_scattered_late, 4, 300, 1,
		 NULL},
		{"direct bins without count(*)", STRATEGY_DIRECT, key_shifting, 6, 300, 4, count_column},
		{"rows in order, and NULL first in a later batch", STRATEGY_AUTO, key_spread, 6, 300, 3,
		 add_ordered},
		{"sets of values", STRATEGY_AUTO, key_spread, 6, 12000, 0, add_sets},
		{"sets of values without keys", STRATEGY_AUTO, NULL, 6, 300, 0, add_sets},
		{"rows that arrive grouped", STRATEGY_AUTO, key_runs, 1, 3000, 0, make_grouped},
		{"sets of values, and NULL first in a later batch", STRATEGY_AUTO, key_distinct, 6, 300, 3,
		 add_sets},
	};
	const CaseRow *row = &rows[n];
	WireQuery *q = &c->q;

	if (n >= (int) (sizeof(rows) / sizeof(rows[0])))
		return false;
	memset(c, 0, sizeof(*c));
	c->name = row->name;
	c->key = row->key;
	c->nbatches = row->nbatches;
	c->nrows = row->nrows;
	c->first_null = row->first_null;
	q->ncols = COLS;
	q->forced = row->forced;
	if (row->key)
	{
		q->nkeys = 1;
		q->key_bytes = row->first_null > 0 ? 8 : 4;
		q->null_offset = 4;
		q->keys[0] = (WireKey){.col = COL_KEY, .width = 4, .nullable = row->first_null > 0};
	}
	add_slot(q, MONOID_COUNT, -1);
	add_slot(q, MONOID_SUM_I64, COL_V);
	if (row->change)
		row->change(c);
	return true;
}

/* ---- the expected answer ---- */

typedef struct Expected
{
	uint64_t key; /* packed */
	int64_t count;
	int64_t sum;
} Expected;

static int
compare_expected(const void *a, const void *b)
{
	uint64_t x = ((const Expected *) a)->key;
	uint64_t y = ((const Expected *) b)->key;

	return x < y ? -1 : x > y;
}

/* Returns the packed key of a row as a number. */
static uint64_t
packed_key(const Case *c, int b, int r)
{
	if (c->q.nkeys == 0)
		return 0;
	return row_has_key(c, b, r) ? (uint32_t) c->key(b, r) : (uint64_t) 1 << 8 * c->q.null_offset;
}

/*
 * Returns the groups of the batches whose bits are set in `batches`, sorted by key. The caller
 * frees the array.
 */
__attribute__((unused)) static Expected *
expect(const Case *c, uint32_t batches, int *ngroups)
{
	Expected *rows = malloc(sizeof(Expected) * (c->nbatches * c->nrows + 1));
	int n = 0, groups = 0;

	for (int b = 0; b < c->nbatches; b++)
		for (int r = 0; r < c->nrows && batches >> b & 1; r++)
			rows[n++] = (Expected){packed_key(c, b, r), 1, row_has_v(r) ? row_v(b, r) : 0};
	qsort(rows, n, sizeof(*rows), compare_expected);
	for (int i = 0; i < n; i++)
		if (groups > 0 && rows[groups - 1].key == rows[i].key)
		{
			rows[groups - 1].count += rows[i].count;
			rows[groups - 1].sum += rows[i].sum;
		}
		else
			rows[groups++] = rows[i];
	*ngroups = groups;
	return rows;
}

#endif /* GPUAGG_CUDA_CASES_H */

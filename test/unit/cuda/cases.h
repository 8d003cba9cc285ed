/*
 * cases.h
 *	  Queries for tests of the GPU server over the stub: what is asked, the rows
 *	  of each batch, and the answer by other means.
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
	int			nbatches;
	int			nrows;			/* of each batch */
	int32_t		(*key) (int batch, int row);
	int			first_null;		/* batch from which on each 10th key is NULL; 0: the key is not nullable */
	WireQuery	q;
	double		thresholds[8];
} Case;

/* Columns of every batch, one after the other. */
enum
{
	COL_KEY,					/* int4, see first_null */
	COL_V,						/* int8, NULL in each 7th row */
	COL_X,						/* float8, whose sums are exact */
	COL_ORDER,					/* int8 */
	COLS
};

static int64_t
row_v(int batch, int row)
{
	return (batch * 7919 + row * 31) % 1000 - 300;
}

static bool
row_has_v(int row)
{
	return row % 7 != 3;
}

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

/* Writes the rows, and describes them. */
__attribute__((unused)) static void
make_batch(const Case *c, int b, int buffer, char *to, WireBatch *batch)
{
	static const uint32_t types[COLS] = {WIRE_I32, WIRE_I64, WIRE_F64, WIRE_I64};
	uint32_t	at = 0;
	uint8_t    *bits,
			   *key_bits;

	memset(batch, 0, sizeof(*batch));
	batch->buffer = buffer;
	batch->nrows = c->nrows;
	batch->ncols = COLS;
	for (int i = 0; i < COLS; i++)
	{
		batch->cols[i] = (WireColumn) {types[i], at, WIRE_NO_ARRAY};
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
		int32_t		key = c->key(b, r);

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

/* ---- the queries: the number of rows and sum(v) first, in all of them ---- */

static void
add_slot(WireQuery *q, MonoidId monoid, int x)
{
	q->slots[q->nslots++] = (WireSlot) {
		.monoid = monoid,.col = {x, -1},.filter = -1,.width = 1
	};
}

static void
start_query(WireQuery *q, bool keyed, GpuaggStrategy forced)
{
	memset(q, 0, sizeof(*q));
	q->ncols = COLS;
	q->forced = forced;
	if (keyed)
	{
		q->nkeys = 1;
		q->key_bytes = 4;
		q->null_offset = 4;
		q->keys[0] = (WireKey) {.col = COL_KEY,.width = 4};
	}
	add_slot(q, MONOID_COUNT, -1);
	add_slot(q, MONOID_SUM_I64, COL_V);
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
key_distinct(int batch, int row)
{
	return (batch * 1400 + row) * 13;
}

static int32_t
key_spread(int batch, int row)
{
	return (batch + row) % 20 * 1000;
}

static void
set_nullable(Case *c, int first_null)
{
	c->first_null = first_null;
	c->q.key_bytes = 8;
	c->q.keys[0].nullable = 1;
}

/* The n-th query; false after the last. */
__attribute__((unused)) static bool
make_case(int n, Case *c)
{
	WireQuery  *q = &c->q;

	memset(c, 0, sizeof(*c));
	c->nbatches = 6;
	c->nrows = 300;
	c->key = key_few;
	start_query(q, n > 0, STRATEGY_AUTO);
	switch (n)
	{
		case 0:
			c->name = "no keys";
			add_slot(q, MONOID_SUM_F64, COL_X);
			return true;
		case 1:
			c->name = "direct bins";
			q->forced = STRATEGY_DIRECT;
			return true;
		case 2:
			c->name = "direct bins that grow";
			q->forced = STRATEGY_DIRECT;
			c->key = key_shifting;
			add_slot(q, MONOID_MAX_F64, COL_X);
			return true;
		case 3:
			c->name = "direct bins to a hash table";
			c->key = key_scattered;
			return true;
		case 4:
			c->name = "a hash table that grows";
			q->forced = STRATEGY_HASH;
			c->key = key_distinct;
			c->nrows = 1500;
			add_slot(q, MONOID_ARGMAX, COL_V);
			q->slots[2].col[1] = COL_ORDER;
			return true;
		case 5:
			c->name = "histograms";
			q->forced = STRATEGY_HASH;
			c->key = key_spread;
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
			return true;
		case 6:
			c->name = "sketches";
			q->forced = STRATEGY_DIRECT;
			add_slot(q, MONOID_HLL_MAX, COL_V);
			q->slots[2].bin_kind = WIRE_BIN_HLL;
			q->slots[2].width = GPUAGG_HLL_REGISTERS;
			c->nbatches = 3;
			return true;
		case 7:
			c->name = "many aggregates";
			for (int i = 0; i < 20; i++)
				add_slot(q, i % 2 ? MONOID_MIN_I64 : MONOID_BIT_XOR, COL_ORDER);
			return true;
		case 8:
			c->name = "rows in order";
			c->key = key_spread;
			c->nrows = 12000;
			q->flags = WIRE_ORDERED;
			q->norder = 1;
			q->order[0] = (WireOrder) {.col = COL_ORDER,.desc = 1};
			add_slot(q, MONOID_MAXSUB_I64, COL_V);
			return true;
		case 9:
			c->name = "a hash table of which the last batch has the first NULL";
			q->forced = STRATEGY_HASH;
			c->key = key_distinct;
			set_nullable(c, 5);
			return true;
		case 10:
			c->name = "a nullable key without NULLs";
			q->forced = STRATEGY_HASH;
			c->key = key_distinct;
			set_nullable(c, 6);
			return true;
		case 11:
			c->name = "direct bins, and a first NULL";
			q->forced = STRATEGY_DIRECT;
			set_nullable(c, 2);
			return true;
		case 12:
			c->name = "direct bins to a hash table, and a first NULL";
			c->key = key_scattered;
			set_nullable(c, 3);
			return true;
		case 13:
			c->name = "direct bins with NULLs to a hash table";
			c->key = key_shifting;
			c->nbatches = 4;
			set_nullable(c, 1);
			return true;
		case 14:
			c->name = "direct bins without count(*)";
			q->forced = STRATEGY_DIRECT;
			q->slots[0].col[0] = COL_ORDER;
			c->key = key_shifting;
			set_nullable(c, 4);
			return true;
		case 15:
			c->name = "rows in order, and a first NULL";
			c->key = key_spread;
			q->flags = WIRE_ORDERED;
			add_slot(q, MONOID_MAXSUB_I64, COL_V);
			set_nullable(c, 3);
			return true;
		default:
			return false;
	}
}

/* ---- the answer ---- */

typedef struct Expected
{
	uint64_t	key;			/* as packed */
	int64_t		count;
	int64_t		sum;
} Expected;

static int
compare_expected(const void *a, const void *b)
{
	uint64_t	x = ((const Expected *) a)->key;
	uint64_t	y = ((const Expected *) b)->key;

	return x < y ? -1 : x > y;
}

/* The packed key of a row, as a number. */
static uint64_t
packed_key(const Case *c, int b, int r)
{
	if (c->q.nkeys == 0)
		return 0;
	return row_has_key(c, b, r) ? (uint32_t) c->key(b, r) : (uint64_t) 1 << 8 * c->q.null_offset;
}

/* Groups of these batches (a bit each), by key, in malloc'ed memory. */
__attribute__((unused)) static Expected *
expect(const Case *c, uint32_t batches, int *ngroups)
{
	Expected   *rows = malloc(sizeof(Expected) * (c->nbatches * c->nrows + 1));
	int			n = 0,
				groups = 0;

	for (int b = 0; b < c->nbatches; b++)
		for (int r = 0; r < c->nrows && batches >> b & 1; r++)
			rows[n++] = (Expected) {packed_key(c, b, r), 1, row_has_v(r) ? row_v(b, r) : 0};
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

#endif							/* GPUAGG_CUDA_CASES_H */

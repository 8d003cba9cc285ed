/*
 * generate.h
 *	  Makes random queries and batches that a server accepts, for attack.c.
 *
 * Everything depends only on the random numbers of unit.h. Values of batches go into the arena of
 * the connection, if it has one.
 */
#ifndef GPUAGG_FUZZ_GENERATE_H
#define GPUAGG_FUZZ_GENERATE_H

#include <math.h>
#include <stdbool.h>

#include "operators/bins.h"
#include "operators/hll.h"
#include "protocol.h"
#include "unit.h"

typedef struct Connection
{
	int sock; /* -1: closed */
	char *arena;
	int arena_fd;
	bool never_reads;
	int step;                     /* number of messages sent */
	bool finished;                /* FINISH was sent, groups may be fetched */
	bool opened;                  /* OPEN was sent, and no CLOSE after it */
	int closes;                   /* number of CLOSE messages sent */
	WireQuery query;              /* the query opened last */
	uint8_t types[WIRE_MAX_COLS]; /* types of the query's columns */
	double thresholds[64];        /* thresholds of the query's slots */
	WireStore stored;             /* the last STORE */
	WireDictionary asked;         /* the last DICTIONARY */
	/* Messages that are still to be sent for the column of the last STORE; see next_type(). */
	int steps_of_texts;
} Connection;

/* Queries that several connections share. The index is the query's shared_id - 1. */
static Connection shared[4];
static bool shared_made[4];

/* Returns true with probability p. */
static bool
chance(double p)
{
	return random_unit() < p;
}

/* Returns a random integer in low .. high. */
static int
between(int low, int high)
{
	return low + (int) random_below(high - low + 1);
}

/* ---- queries ---- */

/* Returns a random column of the query whose type is in least .. most, or -1 if there is none. */
static int
pick_column(Connection *c, int least, int most)
{
	int from = random_below(c->query.ncols);

	for (int i = 0; i < c->query.ncols; i++)
	{
		int col = (from + i) % c->query.ncols;

		if (c->types[col] >= least && c->types[col] <= most)
			return col;
	}
	return -1;
}

/* Gives the query random keys, and sets the layout of a packed key. */
static void
make_keys(Connection *c)
{
	WireQuery *q = &c->query;
	int end = 0;
	bool nullable = false;

	for (int k = between(0, chance(0.8) ? 3 : WIRE_MAX_KEYS); k > 0; k--)
	{
		int col = pick_column(c, WIRE_I8, WIRE_I64);
		WireKey *key = &q->keys[q->nkeys];

		if (col < 0)
			break;
		*key = (WireKey){
			.col = col, .width = wire_width(c->types[col]), .nullable = chance(0.5), .offset = end};
		nullable |= key->nullable;
		end += key->width;
		q->nkeys++;
	}
	if (q->nkeys == 0)
		return;
	q->key_bytes = wire_key_bytes(end + nullable);
	q->null_offset = nullable ? end : q->key_bytes;
}

/* Gives the slot random bins. */
static void
make_bins(Connection *c, WireSlot *slot)
{
	WireQuery *q = &c->query;

	slot->col[1] = slot->monoid == MONOID_COUNT ? -1 : slot->col[0];
	if (chance(0.5))
	{
		slot->bin_kind = WIRE_BIN_UNIFORM;
		slot->bin_n = between(1, 50);
		slot->width = slot->bin_n + 2;
		slot->lo = -random_unit() * 100;
		slot->hi = random_unit() * 100 + 1;
		slot->formula = between(0, GPUAGG_BIN_FORMULAS - 1);
		return;
	}
	slot->bin_kind = WIRE_BIN_THRESHOLDS;
	slot->bin_n = between(1, 8);
	slot->width = slot->bin_n + 1;
	slot->thresholds = q->nthresholds;
	for (int i = 0; i < slot->bin_n; i++)
		c->thresholds[q->nthresholds++] = i * 10 + random_unit();
}

/* Makes a random slot. Returns false if the query has no column for it. */
static bool
make_slot(Connection *c, WireSlot *slot)
{
	WireQuery *q = &c->query;
	int monoid = random_below(MONOID_COUNT_OF_IDS);
	bool matrix = monoid >= MONOID_MAT2 && monoid <= MONOID_MAT5;
	int type = matrix ? WIRE_MAT2 + monoid - MONOID_MAT2 : -1;

	*slot = (WireSlot){.monoid = monoid, .col = {-1, -1}, .filter = -1, .width = 1};
	slot->col[0] = matrix ? pick_column(c, type, type) : pick_column(c, WIRE_I8, WIRE_F64);
	if (slot->col[0] < 0)
		return false;
	if (monoid == MONOID_REGR_F64 || monoid == MONOID_LINEAR ||
		((monoid == MONOID_ARGMAX || monoid == MONOID_ARGMIN) && chance(0.8)))
		slot->col[1] = pick_column(c, WIRE_I8, WIRE_F64);
	if (!gpuagg_monoids[monoid].commutative)
		q->flags |= WIRE_ORDERED;
	else if (monoid == MONOID_HLL_MAX)
	{
		slot->col[0] = pick_column(c, WIRE_I8, WIRE_I64);
		slot->bin_kind = WIRE_BIN_HLL;
		slot->bin_n = slot->width = GPUAGG_HLL_REGISTERS;
	}
	else if (slot->col[1] < 0 && q->nthresholds < 50 && chance(0.2))
		make_bins(c, slot);
	return slot->col[0] >= 0;
}

/* Adds sets of distinct values of integer columns, and slots over them. */
static void
make_sets(Connection *c)
{
	static const MonoidId over[] = {MONOID_COUNT,   MONOID_SUM_I64, MONOID_SUM_I128,
									MONOID_MAX_I64, MONOID_SUM_DEC, MONOID_MIN_I32};
	WireQuery *q = &c->query;

	for (int n = between(1, 3); n > 0; n--)
	{
		int col = pick_column(c, WIRE_I8, WIRE_I64);
		int filter = chance(0.3) ? pick_column(c, WIRE_I8, WIRE_I8) : -1;
		int beside = chance(0.3) ? pick_column(c, WIRE_I8, WIRE_I64) : -1;

		if (col >= 0)
			q->sets[q->nsets++] =
				(WireSet){col, filter, beside, random_below(2), beside < 0 && chance(0.3)};
	}
	for (int n = q->nsets > 0 ? between(1, 4) : 0; n > 0 && q->nslots < WIRE_MAX_SLOTS; n--)
	{
		WireSlot slot = {.monoid = MONOID_COUNT,
						 .col = {-1, -1},
						 .filter = -1,
						 .width = 1,
						 .input = between(WIRE_FIRST, WIRE_SLOT_INPUTS - 1)};

		slot.set = random_below(q->nsets);
		if (q->sets[slot.set].counted)
			slot.input = WIRE_FIRST;
		if (chance(0.5))
		{
			slot.input = WIRE_DISTINCT;
			slot.monoid = over[random_below(sizeof(over) / sizeof(over[0]))];
			slot.col[0] = slot.monoid == MONOID_COUNT && chance(0.5) ? -1 : q->sets[slot.set].col;
		}
		q->slots[q->nslots++] = slot;
	}
}

/* Makes a random valid query. */
static void
make_query(Connection *c)
{
	WireQuery *q = &c->query;
	int nslots = chance(0.95) ? between(1, 6) : between(1, WIRE_MAX_SLOTS / 2);

	memset(q, 0, sizeof(*q));
	q->ncols = chance(0.95) ? between(1, 8) : between(1, WIRE_MAX_COLS);
	for (int i = 0; i < q->ncols; i++)
		c->types[i] = chance(0.15) ? between(WIRE_MAT2, WIRE_MAT5) : between(WIRE_I8, WIRE_F64);
	make_keys(c);
	for (int s = 0; s < nslots; s++)
		if (make_slot(c, &q->slots[q->nslots]))
			q->nslots++;
		else
			memset(&q->slots[q->nslots], 0, sizeof(WireSlot));
	if (q->flags & WIRE_ORDERED)
		for (int o = between(0, 2); o > 0; o--)
		{
			int col = pick_column(c, WIRE_I8, WIRE_I64);

			if (col >= 0)
				q->order[q->norder++] =
					(WireOrder){.col = col, .desc = chance(0.5), .nulls_first = chance(0.5)};
		}
	if (chance(0.3))
	{
		/* remove slots that a device may not support, so that values can be picked */
		if (chance(0.5))
		{
			memset(q->slots, 0, sizeof(q->slots));
			q->nslots = q->norder = q->nthresholds = 0;
			q->flags &= ~(uint32_t) WIRE_ORDERED;
		}
		make_sets(c);
	}
	q->est_rows = random_below(1000000);
	q->est_groups = random_below(1000);
}

/* Makes the query count(*) BY an integer, for codes of a stored column. */
static void
make_query_of_codes(Connection *c)
{
	WireQuery *q = &c->query;

	*q = (WireQuery){
		.flags = WIRE_LATE, .ncols = 1, .nkeys = 1, .nslots = 1, .key_bytes = 8, .null_offset = 4};
	q->keys[0] = (WireKey){.width = 4, .nullable = 1};
	q->slots[0] = (WireSlot){.monoid = MONOID_COUNT, .col = {-1, -1}, .filter = -1, .width = 1};
	c->types[0] = WIRE_I32;
}

/* Sets the connection's query to a new one, or to a shared one. */
static void
pick_query(Connection *c)
{
	int n = random_below(4);
	Connection *s = &shared[n];

	if (c->steps_of_texts > 0)
	{
		make_query_of_codes(c);
		return;
	}
	if (chance(0.6))
	{
		make_query(c);
		c->query.flags |= chance(0.5) ? WIRE_LATE : 0;
		return;
	}
	if (!shared_made[n] || chance(0.02))
	{
		make_query(s);
		s->query.shared_id = n + 1;
		shared_made[n] = true;
	}
	c->query = s->query;
	memcpy(c->types, s->types, sizeof(c->types));
	memcpy(c->thresholds, s->thresholds, sizeof(c->thresholds));
}

/* ---- batches ---- */

/* Writes n values of a type: bytes of one value, special values, or small numbers. */
static void
fill_values(char *at, int type, uint32_t n)
{
	static const double special[] = {0, -0.0, 1e308, -1e308, INFINITY, -INFINITY, NAN, 5e-324};
	int kind = random_below(4);

	if (kind == 0 && type != WIRE_F32 && type != WIRE_F64)
		memset(at, between(0, 255), (size_t) n * wire_width(type));
	else
		for (uint32_t i = 0; i < n * (uint32_t) (wire_width(type) > 16 ? wire_width(type) / 8 : 1);
			 i++)
		{
			double x = kind == 1 ? special[random_below(8)] : (double) between(-20, 20);
			int64_t v = kind == 1 ? (int64_t) random_u64() : between(-20, 20);

			if (type == WIRE_F32)
				((float *) at)[i] = (float) x;
			else if (type >= WIRE_F64)
				((double *) at)[i] = x;
			else
				memcpy(at + (size_t) i * wire_width(type), (int64_t[2]){v, v >> 63},
					   wire_width(type));
		}
}

/* Returns whether the query needs only the column's NULLs, and not its values. */
static bool
needs_only_nulls(const WireQuery *q, int col)
{
	for (int k = 0; k < q->nkeys; k++)
		if (q->keys[k].col == col)
			return false;
	for (uint32_t o = 0; o < q->norder; o++)
		if (q->order[o].col == col)
			return false;
	for (uint32_t s = 0; s < q->nsets; s++)
		if (q->sets[s].col == col || q->sets[s].filter == col || q->sets[s].beside == col)
			return false;
	for (int s = 0; s < q->nslots; s++)
		if ((q->slots[s].monoid != MONOID_COUNT || q->slots[s].bin_kind != WIRE_BIN_NONE) &&
			(q->slots[s].col[0] == col || q->slots[s].col[1] == col))
			return false;
	return true;
}

/* Makes a BATCH message, and writes its columns to the arena. Returns the length of the body. */
static size_t
make_batch(Connection *c, WireBatch *b)
{
	uint32_t n = chance(0.05) ? between(1000, 20000) : between(1, 300);
	size_t at = 0;
	size_t row_bytes = 1;

	/* values, bitmaps and padding of all columns must fit the buffer */
	for (uint32_t i = 0; i < c->query.ncols; i++)
		row_bytes += wire_width(c->types[i]) + 1;
	if (n > (WIRE_BUFFER_BYTES - 2 * WIRE_ALIGN * WIRE_MAX_COLS) / row_bytes)
		n = (WIRE_BUFFER_BYTES - 2 * WIRE_ALIGN * WIRE_MAX_COLS) / row_bytes;
	memset(b, 0, sizeof(*b));
	b->buffer = random_below(WIRE_BUFFERS);
	b->nrows = n;
	b->ncols = c->query.ncols;
	for (uint32_t i = 0; i < b->ncols; i++)
	{
		bool nulls = chance(0.5);

		for (uint32_t s = 0; s < c->query.nsets; s++)
			nulls &= c->query.sets[s].filter != (int) i;
		for (int k = 0; k < c->query.nkeys; k++)
			nulls &= c->query.keys[k].col != (int) i || c->query.keys[k].nullable;
		b->cols[i] = (WireColumn){c->types[i], at, WIRE_NO_ARRAY};
		if (needs_only_nulls(&c->query, i))
			b->cols[i].values = WIRE_NO_ARRAY;
		else if (c->arena)
			fill_values(c->arena + (size_t) b->buffer * WIRE_BUFFER_BYTES + at, c->types[i], n);
		at += wire_align((size_t) n * wire_width(c->types[i]));
		if (nulls)
		{
			b->cols[i].validity = at;
			if (c->arena)
				memset(c->arena + (size_t) b->buffer * WIRE_BUFFER_BYTES + at, between(0, 255),
					   wire_bitmap_bytes(n));
			at += wire_align(wire_bitmap_bytes(n));
		}
	}
	b->bytes = at;
	for (int k = 0; k < c->query.nkeys; k++)
		b->key_min[k] = 1;
	return sizeof(*b);
}

#endif /* GPUAGG_FUZZ_GENERATE_H */

/*
 * resident_test.c
 *	  Columns that stay on the device, and queries over them, through sessions: over the stub
 *	  of the CUDA run time, over the stand-in (resident_standin_test.c), or over a GPU (make gpu-tests).
 *
 * A model knows the contents of each range by its stamp.  Columns are stored, replaced and evicted; queries
 * name random rows of random ranges, and must get the groups that the model has of them.  Every allocation,
 * copy and launch fails in turn; then the answers are right or there is none, and nothing stays behind.
 */
#include <stddef.h>

#include "operators/vector_run.h"
#include "operators/bins.h"
#include "operators/hll.h"
#include "abandon.h"
#include "peer.h"
#include "server/limit.h"
#include "server/store.h"
#include "strategy.h"
#if !defined(OVER_STANDIN) && !defined(OVER_GPU)
#define OVER_STUB 1
#include "cuda/cuda_stub.h"
#include "server/device_cuda.h"
#endif

/* May the device have lacked memory? */
static bool
stub_was_short(void)
{
#ifdef OVER_STUB
	return stub_has_failed();
#else
	return false;
#endif
}

/* ---- the model ---- */

enum
{
	COL_K,						/* int4, NULL in some ranges */
	COL_V,						/* int8, NULL in some ranges; the greatest in some rows */
	COL_S,						/* int2 */
	COL_B,						/* boolean */
	COL_X,						/* float8 */
	COLS
};

static const uint32_t types[COLS] = {WIRE_I32, WIRE_I64, WIRE_I16, WIRE_I8, WIRE_F64};

#define RANGES 30

/* Rows of a range, and rounds of a test; on a GPU there may be more of the one, and fewer of the other. */
#ifndef TEST_ROWS
#define TEST_ROWS 900
#define TEST_ROUNDS 15
#endif

/* Or as the first argument says, for the emulator (test/emulator/README.md). */
static int	rounds = TEST_ROUNDS;

typedef struct Range
{
	uint64_t	stamp;
	uint32_t	nrows;
	int			ordered;		/* its number, counted from 1, if keys ascend from range to range; or 0 */
} Range;

/* Ranges i * SPAN_RANGES and on are a span. */
#define SPAN_RANGES 6
#define SPANS (RANGES / SPAN_RANGES)

typedef struct Model
{
	uint64_t	id;
	bool		scattered;		/* keys */
	bool		ordered;
	int			least;			/* key */
	Range		ranges[RANGES];
	uint64_t	spans[SPANS];	/* ids of their present lists; 0: none yet */
} Model;

static uint64_t last_stamp;
static uint64_t last_table;

static void
renew(Range *range)
{
	range->stamp = ++last_stamp;
	range->nrows = 1 + (uint32_t) random_below(TEST_ROWS);
}

/* A range has other contents; so has its span. */
static void
change(Model *m, int range)
{
	renew(&m->ranges[range]);
	m->spans[range / SPAN_RANGES] = 0;
}

static void
make_model(Model *m)
{
	memset(m->spans, 0, sizeof(m->spans));
	m->id = ++last_table;
	m->scattered = random_below(2) == 0;
	m->ordered = random_below(2) == 0;
	m->least = random_below(2) ? 0 : -20;
	for (int r = 0; r < RANGES; r++)
	{
		m->ranges[r].ordered = m->ordered ? r + 1 : 0;
		renew(&m->ranges[r]);
	}
}

static bool
has_nulls(const Range *r, int col)
{
	if (col == COL_K && r->ordered)
		return r->ordered == RANGES;
	return (col == COL_K && r->stamp % 3 == 0) || (col == COL_V && r->stamp % 2 == 0);
}

static bool
is_null(const Range *r, int col, uint32_t row)
{
	/* behind all others */
	if (col == COL_K && r->ordered)
		return has_nulls(r, col) && row > r->nrows / 2;
	return has_nulls(r, col) && row % 10 == (uint32_t) (col == COL_K ? 4 : 7);
}

static int64_t
value(const Model *m, const Range *r, int col, uint32_t row)
{
	switch (col)
	{
		case COL_K:
			if (r->ordered)
				return ((int64_t) r->ordered * TEST_ROWS * 2 + row) / 7 * (m->scattered ? 5017 : 1) + m->least;
			return (int64_t) ((r->stamp + row * 7) % 40) * (m->scattered ? 50000017 : 1) + m->least;
		case COL_V:
			return row % 97 == 5 ? INT64_MAX : (int64_t) (r->stamp * 13 + row * 37) % 1000 - 300;
		case COL_S:
			return (int64_t) (r->stamp * 5 + row) % 700 - 350;
		case COL_B:
			return (r->stamp + row) % 3 == 0;
		default:
			return (int64_t) (row % 128);
	}
}

/* ---- storing ---- */

static bool
store(Peer *peer, const Model *m, int range, int col, bool *kept)
{
	const Range *r = &m->ranges[range];
	WireStore	in = {.table = {m->id},.stamp = r->stamp,.range = range * 3,.nrows = r->nrows,
		.column = {.typid = 20 + col,.attno = col + 1,.scale = -1,.type = types[col]},
		.buffer = random_below(ARENA_BUFFERS),.validity = WIRE_NO_ARRAY
	};
	char	   *to = peer->arena + (size_t) in.buffer * ARENA_BUFFER_BYTES;
	int			width = wire_width(types[col]);
	WireStored	stored;

	in.values = 64 * random_below(3);
	for (uint32_t row = 0; row < r->nrows; row++)
	{
		int64_t		v = value(m, r, col, row);
		double		x = (double) v;

		memcpy(to + in.values + (size_t) row * width, col == COL_X ? (void *) &x : (void *) &v, width);
	}
	if (has_nulls(r, col))
	{
		in.validity = in.values + wire_align((size_t) r->nrows * width);
		memset(to + in.validity, 0, wire_bitmap_bytes(r->nrows));
		for (uint32_t row = 0; row < r->nrows; row++)
			to[in.validity + row / 8] |= !is_null(r, col, row) << row % 8;
	}
	if (!request(peer, MESSAGE_STORE, &in, sizeof(in), MESSAGE_STORED, &stored, sizeof(stored)))
		return false;
	CHECK(stored.buffer == in.buffer, "another buffer was stored");
	*kept = stored.kept != 0;
	return true;
}

/* ---- queries ---- */

typedef enum Kind
{
	PLAIN_NO_KEYS,				/* count(*), sum(s) */
	PLAIN_KEYS,					/* the same BY k */
	FILTERED_NO_KEYS,			/* count(*), sum(v + 1) WHERE v < 200 */
	FILTERED_KEYS,				/* the same BY k */
	COMPUTED_KEYS,				/* count(*), sum(s) BY k + 5 */
	ONE_SLOT_FILTER,			/* count(*), sum(s) FILTER (WHERE b) */
	NULL_SLOT_FILTER,			/* count(*), sum(s) FILTER (WHERE v < 200) BY k */
	SUM_UNTOLD,					/* count(*), sum(v + 1) BY k */
	NO_NULLS_SAID,				/* count(*), sum(s) BY k, of which NULLs are untold */
	NO_COLUMNS,					/* count(*), sum(7) */
	HISTOGRAM,					/* count(*), count(*) by bins of x WHERE b, BY k */
	DISTINCT_VALUES,			/* count(*), sum(DISTINCT s), and another slot of the set, BY k */
	NOTHING_LEFT,				/* count(*), sum(s) WHERE false BY k */
	MANY_SLOTS,					/* count(*), sum(s * (s + 1) - (s + 1)), count(v), extremes and sums, some FILTER (WHERE v < 200), WHERE s <> 7 OR b, BY k */
	CONDITIONS,					/* count(*), sum(s) WHERE s <> 7 AND v + 1 < 200 AND b BY k */
	FLOATS,						/* count(*), sum(s), sum(x), max(x) BY k; a large x is untold */
	PAIRS,						/* count(*), sum(s), argmax(v or s, x), and the greatest code of an x, BY k */
	SKETCH,						/* count(*), sum(s), a sketch of v, BY k or not */
	KINDS
} Kind;

typedef struct Question
{
	Kind		kind;
	bool		keyed;
	int			limit;			/* of FLOATS */
	int			payload;		/* of PAIRS: the column */
	WireQuery	q;
	WireResident in;
	WireRun		runs[3 * RANGES];	/* all, in order */
	bool		whole[SPANS];	/* the span has an id, */
	bool		named[SPANS];	/* which stands for its runs */
	uint64_t	ids[SPANS];
	uint32_t	nruns;
	WireRun		sent[3 * RANGES];	/* those that are in the message */
	WireSpan	spans[SPANS];
} Question;

static void
add_slot(WireQuery *q, MonoidId monoid, int x, int filter)
{
	q->slots[q->nslots++] = (WireSlot) {.monoid = monoid,.col = {x, -1},.filter = filter,.width = 1};
}

/* A load of a column of the model, into the next register, which is returned. */
static int
load(WireResident *in, int col)
{
	VectorProgram *p = &in->program;
	int			r = (int) p->nregisters++;

	in->stored[in->nstored] = (WireColumnKey) {.typid = 20 + col,.attno = col + 1,.scale = -1,.type = types[col]};
	p->instructions[p->ninstructions++] = (VectorInstruction) {
		.op = VECTOR_LOAD,.r = r,.a = in->nstored++,.data = types[col]
	};
	return r;
}

static int
constant(WireResident *in, int64_t bits)
{
	in->program.constants[in->program.nconstants] = (VectorConstant) {bits, VECTOR_VALUE, 0};
	return VECTOR_CONSTANT + (int) in->program.nconstants++;
}

static int
operate(WireResident *in, int op, int a, int b)
{
	VectorProgram *p = &in->program;
	int			r = (int) p->nregisters++;

	p->instructions[p->ninstructions++] = (VectorInstruction) {.op = op,.r = r,.a = a,.b = b,.c = VECTOR_NONE};
	return r;
}

static int
column(Question *t, int operand, uint32_t type, bool nullable)
{
	int			c = (int) t->in.ncols++;

	t->in.cols[c] = operand;
	t->in.types[c] = type;
	t->in.nullable |= (uint64_t) nullable << c;
	return c;
}

static void
make_key(Question *t, const Model *m, int operand, bool nullable)
{
	WireQuery  *q = &t->q;

	t->keyed = true;
	q->nkeys = 1;
	q->key_bytes = nullable ? 8 : 4;
	q->null_offset = 4;
	q->keys[0] = (WireKey) {.col = column(t, operand, WIRE_I32, nullable),.width = 4,.nullable = nullable};
	q->forced = random_below(3) == 0 ? STRATEGY_SORT : m->scattered || m->ordered ? STRATEGY_AUTO :
		random_below(2) ? STRATEGY_DIRECT : STRATEGY_HASH;
	t->in.key_min[0] = m->least;
	t->in.key_max[0] = m->ordered ? INT32_MAX : (m->scattered ? 39 * INT64_C(50000017) : 39) + m->least + 5;
}

/* The operand of v < 200. */
static int
below(WireResident *in, int v)
{
	return operate(in, VECTOR_F_INT8LT, v, constant(in, 200));
}

/* Results that several instructions read, and columns that several slots read. */
static void
many_slots(Question *t)
{
	WireResident *in = &t->in;
	WireQuery  *q = &t->q;
	int			s = load(in, COL_S),
				v = load(in, COL_V),
				b = load(in, COL_B),
				above,
				filter,
				x,
				y;

	above = operate(in, VECTOR_F_INT4PL, s, constant(in, 1));
	in->program.filter = operate(in, VECTOR_OR, operate(in, VECTOR_F_INT4NE, s, constant(in, 7)), b);
	x = column(t, operate(in, VECTOR_F_INT4MI, operate(in, VECTOR_F_INT4MUL, s, above), above), WIRE_I32, random_below(2));
	add_slot(q, MONOID_SUM_I64, x, -1);
	filter = column(t, below(in, v), WIRE_I8, false);
	add_slot(q, MONOID_MAX_I32, x, -1);
	y = column(t, v, WIRE_I64, true);
	add_slot(q, MONOID_COUNT, y, -1);
	add_slot(q, MONOID_MIN_DEC, y, filter);
	add_slot(q, MONOID_MAX_DEC, y, -1);
	add_slot(q, MONOID_ACCUM_F64, column(t, load(in, COL_X), WIRE_F64, true), -1);
	add_slot(q, MONOID_SUMSQ_I128, x, filter);
}

/* ANDs in either order, of which an argument may be untold; also where they are not computed in their order. */
static void
conditions(Question *t, int s)
{
	WireResident *in = &t->in;
	int			first = -1,
				second,
				third;

	if (random_below(2))
		first = operate(in, VECTOR_F_INT4NE, s, constant(in, 7));
	second = below(in, operate(in, VECTOR_F_INT8PL, load(in, COL_V), constant(in, 1)));
	if (first < 0)
		first = operate(in, VECTOR_F_INT4NE, s, constant(in, 7));
	third = load(in, COL_B);
	if (random_below(2))
		third = operate(in, VECTOR_TRUTH, third, VECTOR_NONE);
	if (random_below(2))
		in->program.filter = operate(in, VECTOR_AND, operate(in, VECTOR_AND, first, second), third);
	else
		in->program.filter = operate(in, VECTOR_AND, first, operate(in, VECTOR_AND, second, third));
}

static void
floats(Question *t)
{
	WireResident *in = &t->in;
	double		limit = t->limit = random_below(2) ? 100 : 1000;
	int64_t		bits;
	int			x = load(in, COL_X),
				checked;

	memcpy(&bits, &limit, sizeof(bits));
	checked = operate(in, VECTOR_F64_BELOW, x, constant(in, bits));
	add_slot(&t->q, MONOID_SUM_F64, column(t, checked, WIRE_F64, true), -1);
	add_slot(&t->q, MONOID_MAX_F64, random_below(2) ? (int) t->in.ncols - 1 : column(t, x, WIRE_F64, true), -1);
}

/* The payload has NULLs in some ranges, or none. */
static void
pairs(Question *t)
{
	WireResident *in = &t->in;
	int			x = operate(in, VECTOR_F64_CODE, load(in, COL_X), VECTOR_NONE),
				code,
				payload;

	in->program.instructions[in->program.ninstructions - 1].data = 1;
	t->payload = random_below(2) ? COL_V : COL_S;
	code = column(t, x, WIRE_I64, random_below(2));
	payload = column(t, load(in, t->payload), types[t->payload], t->payload == COL_V);
	add_slot(&t->q, MONOID_ARGMAX, code, -1);
	t->q.slots[t->q.nslots - 1].col[1] = payload;
	add_slot(&t->q, MONOID_MAX_I64, code, -1);
}

static void
make_question(Question *t, const Model *m, Kind kind)
{
	WireResident *in = &t->in;
	WireQuery  *q = &t->q;
	int			k = -1,
				v,
				c;

	memset(t, 0, sizeof(*t));
	t->kind = kind;
	in->table.id = m->id;
	in->buffer = random_below(ARENA_BUFFERS);
	in->program.filter = VECTOR_NONE;
	if (kind == PLAIN_KEYS || kind == FILTERED_KEYS || kind >= NULL_SLOT_FILTER || kind == COMPUTED_KEYS)
		k = kind == NO_COLUMNS || (kind == SKETCH && random_below(8) > 0) ? -1 : load(in, COL_K);
	if (kind == COMPUTED_KEYS)
		k = operate(in, VECTOR_F_INT4PL, k, constant(in, 5));
	if (k >= 0)
		make_key(t, m, k, kind != NO_NULLS_SAID);
	add_slot(q, MONOID_COUNT, -1, -1);
	switch (kind)
	{
		case FILTERED_NO_KEYS:
		case FILTERED_KEYS:
		case SUM_UNTOLD:
			v = load(in, COL_V);
			if (kind != SUM_UNTOLD)
				in->program.filter = below(in, v);
			c = column(t, operate(in, VECTOR_F_INT8PL, v, constant(in, 1)), WIRE_I64, true);
			add_slot(q, MONOID_SUM_I64, c, -1);
			break;
		case ONE_SLOT_FILTER:
			c = column(t, load(in, COL_B), WIRE_I8, false);
			add_slot(q, MONOID_SUM_I64, column(t, load(in, COL_S), WIRE_I16, false), c);
			break;
		case NULL_SLOT_FILTER:
			c = column(t, below(in, load(in, COL_V)), WIRE_I8, false);
			add_slot(q, MONOID_SUM_I64, column(t, load(in, COL_S), WIRE_I16, false), c);
			break;
		case NO_COLUMNS:
			add_slot(q, MONOID_SUM_I64, column(t, constant(in, 7), WIRE_I64, false), -1);
			break;
		case DISTINCT_VALUES:
			c = column(t, load(in, COL_S), WIRE_I16, false);
			q->nsets = 1;
			q->sets[0] = (WireSet) {c, -1};
			add_slot(q, MONOID_SUM_I64, c, -1);
			add_slot(q, MONOID_COUNT, -1, -1);
			q->slots[1].part = WIRE_DISTINCT;
			q->slots[2].part = WIRE_DISTINCT + random_below(WIRE_PARTS - WIRE_DISTINCT);
			break;
		case HISTOGRAM:
			in->program.filter = load(in, COL_B);
			add_slot(q, MONOID_COUNT, column(t, load(in, COL_X), WIRE_F64, random_below(2)), -1);
			q->slots[1].bin_kind = WIRE_BIN_UNIFORM;
			q->slots[1].bin_n = 6;
			q->slots[1].width = 8;
			q->slots[1].hi = 60;
			break;
		case MANY_SLOTS:
			many_slots(t);
			break;
		default:
			add_slot(q, MONOID_SUM_I64, column(t, load(in, COL_S), WIRE_I16, random_below(2)), -1);
			if (kind == CONDITIONS)
				conditions(t, (int) in->program.nregisters - 1);
			if (kind == FLOATS)
				floats(t);
			if (kind == PAIRS)
				pairs(t);
			if (kind == SKETCH)
			{
				add_slot(q, MONOID_HLL_MAX, column(t, load(in, COL_V), WIRE_I64, true), -1);
				q->slots[2].bin_kind = WIRE_BIN_HLL;
				q->slots[2].bin_n = q->slots[2].width = GPUAGG_HLL_REGISTERS;
			}
			if (kind == NOTHING_LEFT)
				in->program.filter = operate(in, VECTOR_F_INT2LT, (int) in->program.nregisters - 1, constant(in, -1000));
	}
	q->ncols = in->ncols;
}

/* What a row is to the question: 1 counted, 0 left out, -1 untold.  *sum: what it adds, if anything. */
static int
outcome(const Question *t, const Model *m, const Range *r, uint32_t row, uint64_t *key, int64_t *sum)
{
	int64_t		k = value(m, r, COL_K, row) + (t->kind == COMPUTED_KEYS ? 5 : 0);
	bool		null_key = is_null(r, COL_K, row);
	int64_t		v = value(m, r, COL_V, row);
	bool		null_v = is_null(r, COL_V, row);

	*key = t->keyed ? (uint32_t) k : 0;
	if (t->keyed && null_key)
		*key = (uint64_t) 1 << 32;
	*sum = value(m, r, COL_S, row);
	switch (t->kind)
	{
		case FILTERED_NO_KEYS:
		case FILTERED_KEYS:
			*sum = (int64_t) ((uint64_t) v + 1);
			return !null_v && v < 200;
		case SUM_UNTOLD:
			*sum = null_v ? 0 : v == INT64_MAX ? 0 : v + 1;
			return null_v || v != INT64_MAX ? 1 : -1;
		case ONE_SLOT_FILTER:
			*sum = value(m, r, COL_B, row) ? *sum : 0;
			return 1;
		case NULL_SLOT_FILTER:
			*sum = !null_v && v < 200 ? *sum : 0;
			return 1;
		case NO_NULLS_SAID:
			return null_key ? -1 : 1;
		case NO_COLUMNS:
			*sum = 7;
			return 1;
		case HISTOGRAM:
			/* the bins below 30, weighted */
			*sum = gpuagg_bin_uniform(value(m, r, COL_X, row), 0, 60, 6);
			return (int) value(m, r, COL_B, row);
		case NOTHING_LEFT:
			return 0;
		case CONDITIONS:
			if (*sum == 7 || null_v || (v != INT64_MAX && v >= 199))
				return 0;
			return v == INT64_MAX ? -1 : (int) value(m, r, COL_B, row);
		case FLOATS:
			return is_null(r, COL_X, row) || value(m, r, COL_X, row) < t->limit ? 1 : -1;
		case MANY_SLOTS:
			*sum = (*sum + 1) * *sum - (*sum + 1);
			return value(m, r, COL_S, row) != 7 || value(m, r, COL_B, row);
		default:
			return 1;
	}
}

typedef struct Group
{
	uint64_t	key;
	int64_t		count;
	int64_t		sum;
	gpuagg_kv	best;			/* of PAIRS, */
	int64_t		most;			/* and the greatest code */
} Group;

/* Of no pairs. */
static void
no_pairs(Group *g)
{
	g->best = argmax_identity();
	g->most = max_i64_identity();
}

static void
add_pairs(Group *to, const Group *from)
{
	to->best = argmax_combine(to->best, from->best);
	to->most = max_i64_combine(to->most, from->most);
}

static int
compare_groups(const void *a, const void *b)
{
	uint64_t	x = ((const Group *) a)->key;
	uint64_t	y = ((const Group *) b)->key;

	if (x != y)
		return x < y ? -1 : 1;
	return ((const Group *) a)->sum < ((const Group *) b)->sum ? -1 : ((const Group *) a)->sum > ((const Group *) b)->sum;
}

/* One group for each key, in no order.  To sort rows takes longer. */
static int
gather(Group *groups, int n)
{
	uint64_t	size = 16;
	int			made = 0;
	int		   *places;			/* of keys: the number of their group, from 1 on */

	while (size < 2 * (uint64_t) n)
		size *= 2;
	places = calloc(size, sizeof(*places));
	for (int i = 0; i < n; i++)
	{
		uint64_t	at = groups[i].key * UINT64_C(0x9E3779B97F4A7C15) >> 32 & (size - 1);

		while (places[at] != 0 && groups[places[at] - 1].key != groups[i].key)
			at = (at + 1) & (size - 1);
		if (places[at] == 0)
		{
			groups[made++] = groups[i];
			places[at] = made;
		}
		else
		{
			groups[places[at] - 1].count += groups[i].count;
			groups[places[at] - 1].sum += groups[i].sum;
			add_pairs(&groups[places[at] - 1], &groups[i]);
		}
	}
	free(places);
	return made;
}

static int
combine(Group *groups, int n, bool distinct)
{
	int			made = 0;
	int64_t		last = 0;

	if (!distinct)
		n = gather(groups, n);
	qsort(groups, n, sizeof(*groups), compare_groups);
	for (int i = 0; i < n; last = groups[i++].sum)
		if (made > 0 && groups[made - 1].key == groups[i].key)
		{
			groups[made - 1].count += groups[i].count;
			groups[made - 1].sum += distinct && groups[i].sum == last ? 0 : groups[i].sum;
		}
		else
			groups[made++] = groups[i];
	return made;
}

/* Random runs of the model's ranges; some spans are whole, and have ids. */
static void
draw_runs(Question *t, Model *m)
{
	int			density = 1 + (int) random_below(10);
	uint32_t	n = 0;

	for (int range = 0; range < RANGES; range++)
	{
		uint32_t	nrows = m->ranges[range].nrows;
		uint32_t	at = 0;
		int			span = range / SPAN_RANGES;
		int			pieces = random_below(3) ? 1 : 3;

		if (range % SPAN_RANGES == 0)
		{
			t->whole[span] = random_below(3) == 0;
			t->named[span] = t->whole[span] && random_below(3) > 0;
			if (t->whole[span] && m->spans[span] == 0)
				m->spans[span] = ++last_stamp;
			t->ids[span] = m->spans[span];
		}
		if (!t->whole[span] && random_below(10) >= density && (range > 0 || density < 5))
			continue;
		if (t->whole[span])
			pieces = 1;
		for (int p = 0; p < pieces && at < nrows; p++)
		{
			WireRun    *run = &t->runs[n];

			if (pieces > 1)
				at += random_below(nrows - at);
			*run = (WireRun) {m->ranges[range].stamp, range * 3, at, nrows - at, 0};
			if (pieces > 1)
				run->nrows = 1 + random_below(nrows - at);
			at += run->nrows;
			n++;
		}
	}
	if (n == 0)
		t->runs[n++] = (WireRun) {m->ranges[7].stamp, 21, 0, m->ranges[7].nrows, 0};
	t->nruns = n;
}

/* What the message has of the runs. */
static void
lay_out(Question *t)
{
	t->in.nruns = t->in.nspans = 0;
	for (int span = -1, i = 0; i < (int) t->nruns; i++)
	{
		const WireRun *run = &t->runs[i];
		int			of = run->range / (3 * SPAN_RANGES);

		if (t->whole[of])
		{
			WireSpan   *out = &t->spans[t->in.nspans - (of == span)];

			if (of != span)
			{
				t->in.nspans++;
				*out = (WireSpan) {t->ids[of], 0, of * SPAN_RANGES * 3, SPAN_RANGES * 3,
				t->named[of] ? WIRE_NO_ARRAY : t->in.nruns, 0};
			}
			out->nrows += run->nrows;
			out->nruns += !t->named[of];
			span = of;
		}
		if (!t->whole[of] || !t->named[of])
			t->sent[t->in.nruns++] = *run;
	}
}

static void
note_pair(const Question *t, const Model *m, const Range *r, uint32_t row, Group *g)
{
	g->most = gpuagg_f64_code((double) value(m, r, COL_X, row));
	if (!is_null(r, t->payload, row))
		g->best = (gpuagg_kv) {g->most, value(m, r, t->payload, row)};
}

/* The groups of the question's rows. */
static Group *
expect(const Question *t, const Model *m, int *n, uint64_t *untold)
{
	Group	   *groups;
	size_t		rows = 0;

	for (uint32_t r = 0; r < t->nruns; r++)
		rows += t->runs[r].nrows;
	groups = malloc((rows + 1) * sizeof(*groups));
	*n = 0;
	for (uint32_t i = 0; i < t->nruns; i++)
		for (uint32_t row = t->runs[i].first; row < t->runs[i].first + t->runs[i].nrows; row++)
		{
			Group	   *g = &groups[*n];
			int			is = outcome(t, m, &m->ranges[t->runs[i].range / 3], row, &g->key, &g->sum);

			g->count = 1;
			no_pairs(g);
			if (t->kind == PAIRS)
				note_pair(t, m, &m->ranges[t->runs[i].range / 3], row, g);
			*n += is > 0;
			*untold += is < 0;
		}
	return groups;
}

/* ---- a client ---- */

static bool
open_question(Peer *peer, const Question *t)
{
	WireQuery	q = t->q;

	if (random_below(2))
		q.flags |= WIRE_LATE;
	return request(peer, MESSAGE_OPEN, &q, sizeof(q), MESSAGE_OPENED, &q, 0);
}

static bool last_taken;			/* the last question's rows were */

static bool
ask_once(Peer *peer, Question *t, bool *taken)
{
	char		message[sizeof(WireResident) + SPANS * sizeof(WireSpan)];
	WireResided resided;

	lay_out(t);
	memcpy(peer->arena + (size_t) t->in.buffer * ARENA_BUFFER_BYTES, t->sent, t->in.nruns * sizeof(WireRun));
	memcpy(message, &t->in, sizeof(t->in));
	memcpy(message + sizeof(t->in), t->spans, t->in.nspans * sizeof(WireSpan));
	if (!request(peer, MESSAGE_RESIDENT, message, sizeof(t->in) + t->in.nspans * sizeof(WireSpan), MESSAGE_RESIDED,
				 &resided, sizeof(resided)))
		return false;
	CHECK(resided.buffer == t->in.buffer, "another buffer");
	*taken = last_taken = resided.taken != 0;
	return true;
}

static int	named_taken;

/* The lists of spans that are not there, or not known, are sent with them. */
static bool
ask(Peer *peer, Question *t, bool *taken)
{
	for (;;)
	{
		uint64_t	lacking[SPANS];
		bool		again = false;

		if (!ask_once(peer, t, taken))
			return false;
		for (int s = 0; s < SPANS && *taken; s++)
			named_taken += t->named[s];
		if (*taken)
			return true;
		memcpy(lacking, peer->arena + (size_t) t->in.buffer * ARENA_BUFFER_BYTES +
			   wire_align(t->in.nruns * sizeof(WireRun)) + t->in.nruns * sizeof(uint64_t), t->in.nspans * sizeof(uint64_t));
		for (uint32_t i = 0; i < t->in.nspans; i++)
		{
			bool	   *named = &t->named[t->spans[i].first / (3 * SPAN_RANGES)];

			CHECK(*named || lacking[i] == 0, "a list that was sent is lacking");
			again |= lacking[i] != 0;
			if (lacking[i] != 0)
				*named = false;
		}
		if (!again)
			return true;
	}
}

/* Stores what is lacking; *any: something was lacking.  False: the connection failed. */
static bool
store_lacking(Peer *peer, const Question *t, const Model *m, bool *any, bool *all_kept)
{
	uint64_t	lacking[3 * RANGES];

	memcpy(lacking, peer->arena + (size_t) t->in.buffer * ARENA_BUFFER_BYTES +
		   wire_align(t->in.nruns * sizeof(WireRun)), t->in.nruns * sizeof(uint64_t));
	*any = false;
	*all_kept = true;
	for (uint32_t i = 0; i < t->in.nruns; i++)
		for (uint32_t c = 0; c < t->in.nstored; c++)
		{
			bool		kept;

			CHECK(lacking[i] >> t->in.nstored == 0, "bits of columns that there are not");
			if (!(lacking[i] >> c & 1))
				continue;
			*any = true;
			if (!store(peer, m, t->sent[i].range / 3, t->in.stored[c].attno - 1, &kept))
				return false;
			*all_kept = *all_kept && kept;
		}
	return true;
}

/* Kernels are not made for tests. */
#ifdef OVER_GPU
#define MOST_SPARE 64
#else
#define MOST_SPARE LIMIT_SPARE
#endif

static WireLimit limit;			/* of the next answer, if `limited` */
static bool limited;

/* A key, a count, or a sum whose value is NULL where the count is 0, or where none is. */
static WireValue
draw_value(const Question *t)
{
	int			slot = random_below(3) - 1;

	if (slot == 1 && t->q.slots[1].width > 1)
		slot = 0;
	return (WireValue) {.slot = slot,.counted = slot == 1 && random_below(2) ? 0 : -1};
}

static void
draw_limit(const Question *t)
{
	limited = t->keyed && random_below(3) == 0;
	limit = (WireLimit) {.count = random_below(3) * (1 + random_below(20)),.nsort = 1 + random_below(WIRE_MAX_SORT),
		.ties = random_below(2),.nconditions = random_below(3)};
	for (uint32_t w = 0; w < limit.nsort; w++)
		limit.by[w] = (WireSort) {draw_value(t), random_below(2), random_below(2)};
	for (uint32_t c = 0; c < limit.nconditions; c++)
	{
		int64_t		middle = random_below(200) - 50;

		limit.conditions[c] = (WireCondition) {draw_value(t), random_below(2) ? INT64_MIN : middle - random_below(100),
			random_below(2) ? INT64_MAX : middle + random_below(1000)};
	}
	limited = limited && (limit.count > 0 || limit.nconditions > 0);
}

/* A group's value; false: NULL. */
static bool
group_value(const Group *g, const WireValue *of, int64_t *value)
{
	*value = of->slot < 0 ? (int32_t) g->key : of->slot == 0 ? g->count : g->sum;
	return of->slot < 0 ? g->key >> 32 == 0 : of->counted < 0 || g->count > 0;
}

/* Are these the registers of a group's rows? */
static void
check_sketch(const Question *t, const Model *m, const Group *g, const int32_t *registers, const char *what)
{
	static uint8_t right[GPUAGG_HLL_REGISTERS];
	int			bad = 0;

	memset(right, 0, sizeof(right));
	for (uint32_t i = 0; i < t->nruns; i++)
		for (uint32_t row = t->runs[i].first; row < t->runs[i].first + t->runs[i].nrows; row++)
		{
			const Range *r = &m->ranges[t->runs[i].range / 3];
			uint64_t	key;
			int64_t		sum;
			int			reg,
						rank;

			if (outcome(t, m, r, row, &key, &sum) != 1 || key != g->key || is_null(r, COL_V, row))
				continue;
			gpuagg_bin_hll((uint64_t) value(m, r, COL_V, row), &reg, &rank);
			right[reg] = (uint8_t) hll_max_combine(right[reg], rank);
		}
	for (int r = 0; r < GPUAGG_HLL_REGISTERS; r++)
		bad += registers[r] != right[r];
	CHECK(bad == 0, "%s: %d registers of group %d", what, bad, (int) g->key);
}

/* In the order of the limit. */
static int
compare_places(const void *a, const void *b)
{
	for (uint32_t w = 0; w < limit.nsort; w++)
	{
		const WireSort *by = &limit.by[w];
		int64_t		x = 0,
					y = 0;
		bool		is = group_value(a, &by->value, &x),
					other = group_value(b, &by->value, &y);

		if (is != other)
			return is == (by->nulls_first != 0) ? 1 : -1;
		if (is && x != y)
			return (x < y) == (by->descending != 0) ? 1 : -1;
	}
	return 0;
}

static bool
meets_conditions(const Group *g)
{
	for (uint32_t c = 0; c < limit.nconditions; c++)
	{
		int64_t		value;

		if (!group_value(g, &limit.conditions[c].value, &value) || value < limit.conditions[c].min ||
			value > limit.conditions[c].max)
			return false;
	}
	return true;
}

/* Those that meet the conditions; their number. */
static int
apply_conditions(Group *right, int n)
{
	int			kept = 0;

	for (int i = 0; i < n; i++)
		if (meets_conditions(&right[i]))
			right[kept++] = right[i];
	return kept;
}

static const Group *
find_group(const Group *groups, int n, const Group *like)
{
	return bsearch(like, groups, n, sizeof(*groups), compare_groups);
}

/*
 * Are these groups within the limit, of the n right ones that meet the conditions?  All that come before the last of the first
 * `count`, enough that tie with it, or all, and few others, if memory was not short; each is what it should be.
 */
static bool
is_within(const Group *right, int n, const Group *groups, int made)
{
	int			count = limit.count > 0 && limit.count < (uint64_t) n ? (int) limit.count : n;
	Group	   *sorted = malloc((n + 1) * sizeof(*sorted));
	int			wanted = 0;
	bool		ok = made >= count;

	memcpy(sorted, right, n * sizeof(*sorted));
	if (limit.count > 0)
		qsort(sorted, n, sizeof(*sorted), compare_places);
	for (int i = 0; i < n && ok; i++)
	{
		int			place = count < n ? compare_places(&right[i], &sorted[count - 1]) : -1;

		wanted += place < 0 || (place == 0 && limit.ties);
		ok = find_group(groups, made, &right[i]) || !(place < 0 || (place == 0 && limit.ties));
	}
	wanted = wanted < count ? count : wanted;
	for (int g = 0; g < made && ok; g++)
	{
		const Group *is = find_group(right, n, &groups[g]);

		ok = is && memcmp(is, &groups[g], sizeof(*is)) == 0;
	}
	free(sorted);
	return ok && made <= wanted + MOST_SPARE;
}

/* Fetches the groups, and compares; false: the connection failed. */
static bool
check_answer(Peer *peer, const Question *t, const Model *m, Group *right, int n, uint64_t untold, const char *what)
{
	WireFinished finished;
	Group	   *groups;
	int			at = 0,
				all = n;
	bool		ok = true;

	WireFinish	finish = {.first = 0};
	WireGroups	ahead = {.n = 0};

	draw_limit(t);
	if (limited)
		finish.limit = limit;
	finish.if_taken = last_taken && random_below(2);
	finish.first = random_below(2) ? 1 + random_below(1000) : 0;
	if (!request(peer, MESSAGE_FINISH, &finish, limited || finish.if_taken || finish.first ? sizeof(finish) : 0,
				 MESSAGE_FINISHED, &finished, sizeof(finished)))
		return false;
	if (finish.first > 0 && finished.ngroups > 0 && !receive_answer(peer, MESSAGE_GROUPS, &ahead, sizeof(ahead)))
		return false;
	CHECK(finished.untold == untold, "%s: %d rows untold, expected %d", what, (int) finished.untold, (int) untold);
	/* such rows may be in groups or not */
	if (t->kind == FLOATS && untold > 0)
		return true;
	if (limited)
	{
		/* without memory nothing is left out */
		if (finished.ngroups < finished.allgroups || !stub_was_short())
			n = apply_conditions(right, n);
		CHECK(finished.failed == (uint64_t) (all - n), "%s: %d groups failed, expected %d", what, (int) finished.failed, all - n);
	}
	CHECK(!t->keyed || finished.allgroups == (uint64_t) all, "%s: %d of %d groups", what, (int) finished.allgroups, all);
	groups = calloc(finished.ngroups + 1, sizeof(*groups));
	while (ok && (uint64_t) at < finished.ngroups)
	{
		WireFetch	fetch = {.first = at,.max = finished.ngroups - at};
		WireGroups	got;

		if (at == 0 && ahead.n > 0)
			got = ahead;
		else
			ok = request(peer, MESSAGE_FETCH, &fetch, sizeof(fetch), MESSAGE_GROUPS, &got, sizeof(got)) && got.n > 0;
		for (uint32_t g = 0; ok && g < got.n; g++, at++)
		{
			const int64_t *states = (int64_t *) (peer->arena + got.slots[1]);

			memcpy(&groups[at].key, peer->arena + got.keys + g * t->q.key_bytes, t->q.key_bytes);
			groups[at].count = ((int64_t *) (peer->arena + got.slots[0]))[g];
			no_pairs(&groups[at]);
			if (t->kind == SKETCH && groups[at].count > 0)
				check_sketch(t, m, &groups[at], (int32_t *) (peer->arena + got.slots[2]) + g * GPUAGG_HLL_REGISTERS, what);
			if (t->kind == PAIRS)
			{
				groups[at].best = ((gpuagg_kv *) (peer->arena + got.slots[2]))[g];
				groups[at].most = ((int64_t *) (peer->arena + got.slots[3]))[g];
			}
			for (int b = 0; b < t->q.slots[1].width; b++)
				groups[at].sum += states[g * t->q.slots[1].width + b] * (t->q.slots[1].width > 1 ? b : 1);
		}
	}
	if (ok)
	{
		qsort(groups, at, sizeof(*groups), compare_groups);
		/* without keys there may be a group of no rows */
		if (!t->keyed && at == 1 && groups[0].count == 0)
			at = 0;
		CHECK(limited && finished.ngroups < finished.allgroups ? is_within(right, n, groups, at) : at == n && memcmp(groups, right, n * sizeof(*right)) == 0, "%s: %d groups, expected %d, or others (%d rows, %d)",
			  what, at, n, at ? (int) groups[0].count : 0, n ? (int) right[0].count : 0);
	}
	free(groups);
	return ok;
}

static int	taken_at_once,
			taken_later,
			not_taken,
			failed;

/*
 * Asks, stores what is lacking, asks again; then the rows are taken, unless there is no room or a call fails.
 */
static void
run_question(Peer *peer, Model *m, Kind kind, bool must, const char *where)
{
	Question	t;
	bool		taken = false,
				any = false,
				all_kept = true;
	uint64_t	untold = 0;
	int			n;
	Group	   *right;
	char		what[128];

	snprintf(what, sizeof(what), "%s, kind %d", where, kind);
	make_question(&t, m, kind);
	draw_runs(&t, m);
	right = expect(&t, m, &n, &untold);
	n = combine(right, n, kind == DISTINCT_VALUES);
	if (!open_question(peer, &t) || !ask(peer, &t, &taken))
		failed++;
	else if (!taken && (!store_lacking(peer, &t, m, &any, &all_kept) || !ask(peer, &t, &taken)))
		failed++;
	else
	{
		CHECK(taken || !must, "%s: the rows were%s taken", what, taken ? "" : " not");
		taken_at_once += taken && !any;
		taken_later += taken && any;
		not_taken += !taken;
		if (!taken)
			n = 0, untold = 0;
		/* the same rows once more, behind the groups that there are */
		else if (random_below(4) == 0)
		{
			bool		again = false;

			if (!ask(peer, &t, &again))
				failed++;
			for (int g = 0; g < n && again; g++)
			{
				right[g].count *= 2;
				right[g].sum *= kind == DISTINCT_VALUES ? 1 : 2;
			}
			untold *= again ? 2 : 1;
		}
		if (!check_answer(peer, &t, m, right, n, untold, what))
			failed++;
	}
	CHECK(!must || peer->failed.text[0] == '\0', "%s: %s", what, peer->failed.text);
	free(right);
}

/* ---- tests ---- */

static bool
is_empty(void)
{
	for (int i = 0; i < 5000; i++)
	{
		WireStatus	status;

		bool		used = false;

		budget_status(&status);
		for (uint32_t d = 0; d < status.ndevices; d++)
			store_forget((int) d);
		budget_status(&status);
		for (uint32_t d = 0; d < status.ndevices; d++)
			used |= status.devices[d].used > 0 || status.devices[d].stored > 0;
		if (status.sessions == 0 && !used)
#ifdef OVER_STUB
			if (stub_live() == 0)
#endif
				return true;
		usleep(1000);
	}
	return false;
}

static void
all_kinds(void)
{
	Peer		peer;
	Model		m;

	for (int round = 0; round < rounds; round++)
	{
		make_model(&m);
		CHECK(peer_open(&peer), "a greeting");
		for (int i = 0; i < 3 * KINDS; i++)
		{
			run_question(&peer, &m, i % KINDS, true, "without faults");
			/* some ranges change */
			for (int r = (int) random_below(4); r > 0; r--)
				change(&m, (int) random_below(RANGES));
		}
		peer_close(&peer);
	}
	CHECK(is_empty(), "something is left");
	CHECK(named_taken > rounds || store_place_ranges % (3 * SPAN_RANGES) != 0, "%d spans taken by their ids", named_taken);
	CHECK(taken_at_once > rounds && taken_later > 12 * rounds, "%d questions taken at once, %d later", taken_at_once, taken_later);
	printf("# %d questions taken at once, %d later\n", taken_at_once, taken_later);
	named_taken = taken_at_once = taken_later = 0;
}

/* A question that is not done keeps what it reads: others may replace and evict, and store anew. */
static void
two_queries(void)
{
	Peer		peer,
				other;
	Model		m;

	for (int round = 0; round < rounds; round++)
	{
		Question	t;
		Group	   *right;
		int			n;
		bool		taken = false,
					any,
					kept;
		uint64_t	untold = 0;
		Model		before;

		make_model(&m);
		CHECK(peer_open(&peer) && peer_open(&other), "greetings");
		make_question(&t, &m, round % KINDS);
		draw_runs(&t, &m);
		right = expect(&t, &m, &n, &untold);
		n = combine(right, n, t.kind == DISTINCT_VALUES);
		before = m;
		CHECK(open_question(&peer, &t) && ask(&peer, &t, &taken) && (taken || (store_lacking(&peer, &t, &m, &any, &kept) &&
			  ask(&peer, &t, &taken))) && taken, "%s", peer.failed.text);
		for (int r = 0; r < RANGES; r++)
			if (random_below(2))
				change(&m, r);
		for (int i = 0; i < 4; i++)
			run_question(&other, &m, (round + i) % KINDS, true, "beside another");
		CHECK(check_answer(&peer, &t, &before, right, n, untold, "while ranges were replaced"), "%s", peer.failed.text);
		/* the old contents may come back */
		run_question(&peer, &before, FILTERED_KEYS, true, "old stamps");
		free(right);
		peer_close(&peer);
		peer_close(&other);
	}
	CHECK(is_empty(), "something is left");
}

/* With limits of any size answers are right, and the limit holds. */
static void
little_memory(void)
{
	Peer		peer;
	Model		m[3];
	int			before = not_taken;

	for (int round = 0; round < 40; round += (TEST_ROUNDS + rounds - 1) / rounds)
	{
		uint64_t	limit = 4000 + 9000 * (uint64_t) round;

		store_set_limit(limit);
		for (int i = 0; i < 3; i++)
			make_model(&m[i]);
		CHECK(peer_open(&peer), "a greeting");
		for (int i = 0; i < 3 * KINDS; i++)
		{
			WireStatus	status;

			run_question(&peer, &m[random_below(3)], i % KINDS, false, "little memory");
			CHECK(peer.failed.text[0] == '\0', "little memory: %s", peer.failed.text);
			budget_status(&status);
			for (uint32_t d = 0; d < status.ndevices; d++)
				CHECK(status.devices[d].stored <= limit, "%d bytes, of %d", (int) status.devices[d].stored, (int) limit);
		}
		peer_close(&peer);
	}
	store_set_limit(UINT64_MAX);
	CHECK(is_empty(), "something is left");
	CHECK(not_taken - before > 20, "%d questions not taken", not_taken - before);
	printf("# %d questions not taken\n", not_taken - before);
}

/* One query that reads all of v; what is lacking is stored. */
static void
read_all(Peer *peer, const Model *m, bool taken, bool kept, const char *what)
{
	Question	t;
	bool		is_taken,
				any,
				is_kept = true;

	make_question(&t, m, FILTERED_NO_KEYS);
	for (int r = 0; r < RANGES; r++)
		t.runs[t.nruns++] = (WireRun) {m->ranges[r].stamp, r * 3, 0, 900, 0};
	CHECK(open_question(peer, &t) && ask(peer, &t, &is_taken), "%s: %s", what, peer->failed.text);
	CHECK(is_taken == taken, "%s: taken %d", what, is_taken);
	if (!is_taken)
		CHECK(store_lacking(peer, &t, m, &any, &is_kept) && any, "%s: %s", what, peer->failed.text);
	CHECK(is_kept == kept, "%s: kept %d", what, is_kept);
}

/* The column goes whose last but one use is the longest ago. */
static void
eviction(void)
{
	Peer		peer;
	Model		a,
				b;
	WireStatus	status;
	uint32_t	place_ranges = store_place_ranges;

	budget_status(&status);
	/* on one device */
	store_place_ranges = 3 * RANGES;
	make_model(&a);
	last_table = a.id + status.ndevices - 1;
	make_model(&b);
	for (int r = 0; r < RANGES; r++)
		a.ranges[r].nrows = b.ranges[r].nrows = 900;
	CHECK(peer_open(&peer), "a greeting");
	/* there is room for one of them */
	store_set_limit(300000);
	read_all(&peer, &a, false, true, "a for the first time");
	read_all(&peer, &a, true, true, "a for the second time");
	read_all(&peer, &b, false, false, "b, which was never used before");
	read_all(&peer, &a, true, true, "a, which is still there");
	read_all(&peer, &b, false, true, "b, whose last but one use is newer than that of a");
	read_all(&peer, &b, true, true, "b, which is there");
	read_all(&peer, &a, false, false, "a, whose last but one use is older than that of b");
	store_set_limit(1000);
	CHECK(open_question(&peer, &(Question) {.q = {.nslots = 0}}), "%s", peer.failed.text);
	store_trim();
	budget_status(&status);
	for (uint32_t d = 0; d < status.ndevices; d++)
		CHECK(status.devices[d].stored <= 1000, "%d bytes beyond a lower limit", (int) status.devices[d].stored);

	/* the device's limit is one of copies as well, whatever their own */
	store_set_limit(300000);
	read_all(&peer, &a, false, true, "a once more");
	CHECK(open_question(&peer, &(Question) {.q = {.nslots = 0}}), "%s", peer.failed.text);
	for (uint32_t d = 0; d < status.ndevices; d++)
		budget_set_available(d, 1000);
	store_trim();
	budget_status(&status);
	for (uint32_t d = 0; d < status.ndevices; d++)
	{
		CHECK(status.devices[d].stored <= 800, "%d bytes beyond the device's limit", (int) status.devices[d].stored);
		budget_set_available(d, status.devices[d].memory);
	}
	store_set_limit(UINT64_MAX);
	store_place_ranges = place_ranges;
	peer_close(&peer);
	CHECK(is_empty(), "something is left");
}

/* Ranges with one stamp and other rows are not kept. */
static void
refusals(void)
{
	Peer		peer;
	Model		m;
	Question	t;
	bool		kept = true;

	make_model(&m);
	make_question(&t, &m, PLAIN_NO_KEYS);
	CHECK(peer_open(&peer) && open_question(&peer, &t), "%s", peer.failed.text);
	CHECK(store(&peer, &m, 3, COL_X, &kept) && kept, "a column was not kept");
	CHECK(store(&peer, &m, 3, COL_X, &kept) && kept, "a column was not kept twice");
	m.ranges[3].nrows++;
	CHECK(store(&peer, &m, 3, COL_K, &kept) && !kept, "other rows under one stamp");
	peer_close(&peer);
	CHECK(is_empty(), "something is left");
}

/* A query that is opened late takes memory only of the device that has its rows, or that its first message names. */
static void
late_opening(void)
{
	Peer		peer,
				late;
	Model		m;
	Question	t;
	WireStatus	before,
				after;
	bool		kept,
				taken = false;

	make_model(&m);
	for (int span = 0; span < SPANS; span++)
	{
		int			range = span * SPAN_RANGES;
		int			place = store_place((WireTableKey) {m.id}, range * 3);

		CHECK(peer_open(&peer) && peer_open(&late), "a greeting");
		make_question(&t, &m, PLAIN_NO_KEYS);
		CHECK(open_question(&peer, &t) && store(&peer, &m, range, COL_S, &kept) && kept, "%s", peer.failed.text);
		t.runs[t.nruns++] = (WireRun) {m.ranges[range].stamp, range * 3, 0, m.ranges[range].nrows, 0};
		memset(t.whole, 0, sizeof(t.whole));
		t.q.flags |= WIRE_LATE;
		budget_status(&before);
		CHECK(request(&late, MESSAGE_OPEN, &t.q, sizeof(t.q), MESSAGE_OPENED, &t.q, 0), "%s", late.failed.text);
		budget_status(&after);
		for (uint32_t d = 0; d < after.ndevices; d++)
			CHECK(after.devices[d].used <= before.devices[d].used, "device %d before there is a message", (int) d);
		CHECK(ask(&late, &t, &taken) && taken, "%s", late.failed.text);
		budget_status(&after);
		for (int d = 0; d < (int) after.ndevices; d++)
			CHECK((after.devices[d].used > before.devices[d].used) == (d == place), "device %d, where the rows are on device %d", d, place);
		CHECK(request(&late, MESSAGE_FINISH, NULL, 0, MESSAGE_FINISHED, &(WireFinished) {0}, sizeof(WireFinished)), "%s", late.failed.text);
		peer_close(&late);
		peer_close(&peer);
		CHECK(is_empty(), "something is left");
	}
}

#ifdef OVER_STUB
/* Opens a question for rows of a table in the order of its keys, which become runs, and stores all columns. */
static void
open_runs(Peer *peer, Model *m, Question *t, Kind kind)
{
	bool		taken,
				any,
				kept;

	make_model(m);
	m->ordered = true;
	for (int r = 0; r < RANGES; r++)
		m->ranges[r].ordered = r + 1;
	make_question(t, m, kind);
	t->q.forced = STRATEGY_SEGMENTED;
	/* all but some in the middle of each range */
	for (int r = 0; r < RANGES; r++)
	{
		const Range *range = &m->ranges[r];
		uint32_t	part = range->nrows / 3 + 1;

		t->runs[t->nruns++] = (WireRun) {range->stamp, r * 3, 0, part, 0};
		if (range->nrows > 2 * part)
			t->runs[t->nruns++] = (WireRun) {range->stamp, r * 3, range->nrows - part, part, 0};
	}
	CHECK(peer_open(peer) && open_question(peer, t) && ask(peer, t, &taken) && !taken &&
		  store_lacking(peer, t, m, &any, &kept), "%s", peer->failed.text);
}

/* There is no memory for a batch behind runs: their groups stay. */
static void
batch_behind_runs(void)
{
	int			refused = 0;
	WireDone	done = {.taken = 0};

	for (int n = 1; !done.taken; n++)
	{
		Peer		peer;
		Model		m;
		Question	t;
		Group	   *right;
		int			groups;
		bool		taken;
		uint64_t	untold = 0;
		WireBatch	batch = {.buffer = 1,.nrows = 64,.bytes = 512,.ncols = 2,.key_max = {63},
			.cols = {{WIRE_I32, 0, WIRE_NO_ARRAY}, {WIRE_I16, 256, WIRE_NO_ARRAY}}
		};

		open_runs(&peer, &m, &t, PLAIN_KEYS);
		CHECK(ask(&peer, &t, &taken) && taken, "%s", peer.failed.text);
		right = expect(&t, &m, &groups, &untold);
		groups = combine(right, groups, false);
		memset(peer.arena + ARENA_BUFFER_BYTES, 0, batch.bytes);
		stub_fail(STUB_ALLOC, n, true, cudaErrorMemoryAllocation);
		CHECK(request(&peer, MESSAGE_BATCH, &batch, sizeof(batch), MESSAGE_DONE, &done, sizeof(done)), "%s", peer.failed.text);
		stub_mend();
		refused += !done.taken;
		last_taken = false;
		if (!done.taken)
			CHECK(check_answer(&peer, &t, &m, right, groups, untold, "a batch that was not taken"), "%s", peer.failed.text);
		free(right);
		peer_close(&peer);
	}
	CHECK(refused > 3, "%d batches not taken", refused);
	CHECK(is_empty(), "something is left");
}

/* There is less memory for the program of runs than there was when they were found. */
static void
program_behind_runs(void)
{
	for (int n = 1; n < 30; n++)
	{
		Peer		peer;
		Model		m;
		Question	t;
		Group	   *right;
		int			groups;
		bool		taken;
		uint64_t	untold = 0;

		open_runs(&peer, &m, &t, FILTERED_KEYS);
		right = expect(&t, &m, &groups, &untold);
		groups = combine(right, groups, false);
		stub_fail(STUB_ALLOC, n, false, cudaErrorMemoryAllocation);
		CHECK(ask(&peer, &t, &taken), "%s", peer.failed.text);
		stub_mend();
		if (taken)
			CHECK(check_answer(&peer, &t, &m, right, groups, untold, "runs of a program"), "%s", peer.failed.text);
		free(right);
		peer_close(&peer);
		CHECK(is_empty(), "something is left");
	}
}

static void
every_call_fails(void)
{
	static const struct
	{
		StubCall	call;
		bool		on;
		cudaError_t err;
	}			faults[] = {
		{STUB_ALLOC, false, cudaErrorMemoryAllocation},
		{STUB_ALLOC, true, cudaErrorMemoryAllocation},
		{STUB_COPY, false, cudaErrorInvalidValue},
		{STUB_LAUNCH, false, cudaErrorLaunchOutOfResources},
		{STUB_LAUNCH, false, cudaErrorMemoryAllocation},
	};

	for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)
		for (int kind = 0; kind < KINDS; kind++)
			for (int n = 1; n < 400; n += 1 + n / 5)
			{
				Peer		peer,
							beside;
				Model		m;
				char		what[80];

				snprintf(what, sizeof(what), "call %d of kind %d, error %d%s", n, faults[f].call, faults[f].err,
						 faults[f].on ? " and on" : "");
				make_model(&m);
				CHECK(peer_open(&peer) && peer_open(&beside), "greetings");
				run_question(&beside, &m, PLAIN_KEYS, true, "beside it");
				stub_fail(faults[f].call, n, faults[f].on, faults[f].err);
				run_question(&peer, &m, kind, false, what);
				if (peer.failed.text[0] == '\0')
					run_question(&peer, &m, kind, false, what);
				stub_mend();
				run_question(&beside, &m, kind, true, "afterwards");
				peer_close(&peer);
				peer_close(&beside);
				CHECK(is_empty(), "%s: something is left", what);
			}
	printf("# %d queries failed\n", failed);
}
#endif

int
main(int argc, char **argv)
{
	WireStatus	status = {0};
	DeviceError error = {""};

	if (argc > 1)
		rounds = atoi(argv[1]);

#ifdef OVER_STUB
	stub_devices = 3;
#endif
	if (device_ops.start("all", &status, &error) != DEVICE_OK)
		return 1;
	budget_start(&status);
	RUN("questions of all kinds", all_kinds);
	RUN("a query that goes on while ranges are replaced", two_queries);
	if (TEST_ROWS <= 900)
	{
		RUN("little memory for stored columns", little_memory);
		RUN("what goes", eviction);
	}
	RUN("what is not kept", refusals);
#ifdef OVER_STUB
	RUN("a batch without memory behind runs", batch_behind_runs);
	RUN("a program without memory behind runs", program_behind_runs);
	RUN("every call fails", every_call_fails);
#endif
	if (status.ndevices > 1)
	{
		store_place_ranges = 3 * SPAN_RANGES;
		RUN("questions of all kinds, each span on another device", all_kinds);
		RUN("a query on several devices that goes on while ranges are replaced", two_queries);
		RUN("queries that are opened where their rows are", late_opening);
		store_place_ranges = 7;
		RUN("questions of all kinds, spans on several devices", all_kinds);
		if (TEST_ROWS <= 900)
			RUN("little memory on several devices", little_memory);
#ifdef OVER_STUB
		RUN("every call fails on one of several devices", every_call_fails);
#endif
	}
	return unit_done();
}

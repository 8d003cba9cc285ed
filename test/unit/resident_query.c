/*
 * resident_query.c
 *	  Queries over rows of the model: their messages, and the outcome of each row.
 */
#include "operators/bins.h"
#include "operators/hll.h"
#include "operators/vector_run.h"
#include "resident_test.h"

/* Adds a slot with input column x and a filter column; -1: none. */
static void
add_slot(WireQuery *q, MonoidId monoid, int x, int filter)
{
	q->slots[q->nslots++] =
		(WireSlot){.monoid = monoid, .col = {x, -1}, .filter = filter, .width = 1};
}

/* Adds an instruction that loads a column of the model. Returns the result's register. */
static int
emit_load(WireResident *in, int col)
{
	VectorProgram *p = &in->program;
	int r = (int) p->nregisters++;

	in->stored[in->nstored] =
		(WireColumnKey){.typid = 20 + col, .attno = col + 1, .scale = -1, .type = model_types[col]};
	p->instructions[p->ninstructions++] = (VectorInstruction){
		.op = VECTOR_LOAD,
		.r = r,
		.a = in->nstored++,
		.data = model_types[col],
	};
	return r;
}

/* Adds a constant to the program. Returns its operand. */
static int
add_constant(WireResident *in, int64_t bits)
{
	in->program.constants[in->program.nconstants] = (VectorConstant){bits, VECTOR_VALUE, 0};
	return VECTOR_CONSTANT + (int) in->program.nconstants++;
}

/* Adds an instruction to the program. Returns the result's register. */
static int
emit(WireResident *in, int op, int a, int b)
{
	VectorProgram *p = &in->program;
	int r = (int) p->nregisters++;

	p->instructions[p->ninstructions++] =
		(VectorInstruction){.op = op, .r = r, .a = a, .b = b, .c = VECTOR_NONE};
	return r;
}

/* Makes an operand of the program a column of the query. Returns the column's number. */
static int
add_column(TestQuery *t, int operand, uint32_t type, bool nullable)
{
	int c = (int) t->in.ncols++;

	t->in.cols[c] = operand;
	t->in.types[c] = type;
	t->in.nullable |= (uint64_t) nullable << c;
	return c;
}

/* Makes an operand the key of the query, and draws a strategy that may be forced. */
static void
make_key(TestQuery *t, const Model *m, int operand, bool nullable)
{
	WireQuery *q = &t->q;

	t->keyed = true;
	q->nkeys = 1;
	q->key_bytes = nullable ? 8 : 4;
	q->null_offset = 4;
	q->keys[0] = (WireKey){
		.col = add_column(t, operand, WIRE_I32, nullable), .width = 4, .nullable = nullable};
	q->forced = random_below(3) == 0 ? STRATEGY_SORT :
		m->scattered || m->ordered   ? STRATEGY_AUTO :
		random_below(2)              ? STRATEGY_DIRECT :
									   STRATEGY_HASH;
	t->in.key_min[0] = m->least;
	t->in.key_max[0] =
		m->ordered ? INT32_MAX : (m->scattered ? 39 * INT64_C(50000017) : 39) + m->least + 5;
}

/* Adds slot 2: a sketch of v. */
static void
add_sketch(TestQuery *t)
{
	WireQuery *q = &t->q;

	add_slot(q, MONOID_HLL_MAX, add_column(t, emit_load(&t->in, COL_V), WIRE_I64, true), -1);
	q->slots[2].bin_kind = WIRE_BIN_HLL;
	q->slots[2].bin_n = q->slots[2].width = GPUAGG_HLL_REGISTERS;
}

/* Declares ranges that may be wider than the keys, so that the number of bins varies. */
static void
make_two_keys(TestQuery *t, const Model *m)
{
	WireQuery *q = &t->q;
	int i = add_column(t, emit_load(&t->in, COL_I), WIRE_I32, false),
		j = add_column(t, emit_load(&t->in, COL_J), WIRE_I32, false), more = (int) random_below(4);

	t->keyed = true;
	q->nkeys = 2;
	q->key_bytes = q->null_offset = 8;
	q->keys[0] = (WireKey){.col = i, .width = 4};
	q->keys[1] = (WireKey){.col = j, .width = 4, .offset = 4};
	q->forced = random_below(4) ? STRATEGY_DIRECT : STRATEGY_AUTO;
	t->in.key_min[0] = m->least;
	t->in.key_max[0] = m->least + 10 + (int64_t) random_below(3);
	t->in.key_min[1] = -8 - (int64_t) random_below(2);
	t->in.key_max[1] = 8;
	add_slot(q, MONOID_COUNT, -1, -1);
	add_slot(q, MONOID_SUM_I64, i, -1);
	if (more == 1)
		add_slot(q, MONOID_MAX_I32, i, -1);
	/* a second kernel call */
	if (more == 2)
		add_slot(q, MONOID_ACCUM_F64, add_column(t, emit_load(&t->in, COL_X), WIRE_F64, false), -1);
	/* a sketch, which finds its groups by bins */
	if (more == 3)
		add_sketch(t);
}

/* Adds v < 200, and returns its operand. */
static int
emit_below_200(WireResident *in, int v)
{
	return emit(in, VECTOR_F_INT8LT, v, add_constant(in, 200));
}

/* Adds many slots: several instructions read one result, and several slots read one column. */
static void
add_many_slots(TestQuery *t)
{
	WireResident *in = &t->in;
	WireQuery *q = &t->q;
	int s = emit_load(in, COL_S), v = emit_load(in, COL_V), b = emit_load(in, COL_B), above, filter,
		x, y;

	above = emit(in, VECTOR_F_INT4PL, s, add_constant(in, 1));
	in->program.filter = emit(in, VECTOR_OR, emit(in, VECTOR_F_INT4NE, s, add_constant(in, 7)), b);
	x = add_column(t, emit(in, VECTOR_F_INT4MI, emit(in, VECTOR_F_INT4MUL, s, above), above),
				   WIRE_I32, random_below(2));
	add_slot(q, MONOID_SUM_I64, x, -1);
	filter = add_column(t, emit_below_200(in, v), WIRE_I8, false);
	add_slot(q, MONOID_MAX_I32, x, -1);
	y = add_column(t, v, WIRE_I64, true);
	add_slot(q, MONOID_COUNT, y, -1);
	add_slot(q, MONOID_MIN_DEC, y, filter);
	add_slot(q, MONOID_MAX_DEC, y, -1);
	add_slot(q, MONOID_ACCUM_F64, add_column(t, emit_load(in, COL_X), WIRE_F64, true), -1);
	add_slot(q, MONOID_SUMSQ_I128, x, filter);
}

/* Adds a condition to the filter, with AND in the form in which the client compiles WHERE. */
static void
add_condition(WireResident *in, int then)
{
	VectorProgram *p = &in->program;

	p->filter = emit(in, VECTOR_SELECT, p->filter, then);
	p->instructions[p->ninstructions - 1].c = (uint16_t) add_constant(in, 0);
}

/*
 * Adds conditions as in SQL's WHERE: each one counts only where those before it are true. The
 * instructions may be in another order.
 */
static void
add_conditions(TestQuery *t, int s)
{
	WireResident *in = &t->in;
	int v, undetermined, second, third;

	t->guarded = random_below(2);
	in->program.filter = VECTOR_NONE;
	if (random_below(2))
		in->program.filter = emit(in, VECTOR_F_INT4NE, s, add_constant(in, 7));
	v = emit_load(in, COL_V);
	/* where v is NULL, this condition is NULL, and the next one would be undetermined */
	second = t->guarded ? emit_below_200(in, v) : -1;
	undetermined = t->guarded ? emit(in, VECTOR_COALESCE, v, add_constant(in, INT64_MAX)) : v;
	undetermined = emit_below_200(in, emit(in, VECTOR_F_INT8PL, undetermined, add_constant(in, 1)));
	if (in->program.filter == VECTOR_NONE)
		in->program.filter = emit(in, VECTOR_F_INT4NE, s, add_constant(in, 7));
	third = emit_load(in, COL_B);
	if (random_below(2))
		third = emit(in, VECTOR_TRUTH, third, VECTOR_NONE);
	if (t->guarded)
		add_condition(in, second);
	if (random_below(2))
	{
		add_condition(in, undetermined);
		add_condition(in, third);
	}
	else
		add_condition(in, emit(in, VECTOR_AND, undetermined, third));
}

/* Adds a sum and a maximum of x, for kind FLOATS. */
static void
add_floats(TestQuery *t)
{
	WireResident *in = &t->in;
	double limit = t->limit = random_below(2) ? 100 : 1000;
	int64_t bits;
	int x = emit_load(in, COL_X), checked;

	memcpy(&bits, &limit, sizeof(bits));
	checked = emit(in, VECTOR_F64_BELOW, x, add_constant(in, bits));
	add_slot(&t->q, MONOID_SUM_F64, add_column(t, checked, WIRE_F64, true), -1);
	add_slot(&t->q, MONOID_MAX_F64,
			 random_below(2) ? (int) t->in.ncols - 1 : add_column(t, x, WIRE_F64, true), -1);
}

/* Adds pairs whose argument has NULLs in some ranges, or has none. */
static void
add_pairs(TestQuery *t)
{
	WireResident *in = &t->in;
	int x = emit(in, VECTOR_F64_CODE, emit_load(in, COL_X), VECTOR_NONE), code, payload;

	in->program.instructions[in->program.ninstructions - 1].data = 1;
	t->payload = random_below(2) ? COL_V : COL_S;
	code = add_column(t, x, WIRE_I64, random_below(2));
	payload =
		add_column(t, emit_load(in, t->payload), model_types[t->payload], t->payload == COL_V);
	add_slot(&t->q, MONOID_ARGMAX, code, -1);
	t->q.slots[t->q.nslots - 1].col[1] = payload;
	add_slot(&t->q, MONOID_MAX_I64, code, -1);
	add_slot(&t->q, MONOID_COUNT, payload, -1);
}

/* Adds count(*), then the filter and the slots of the query's kind. */
static void
add_slots(TestQuery *t)
{
	WireResident *in = &t->in;
	WireQuery *q = &t->q;
	int v, c;

	add_slot(q, MONOID_COUNT, -1, -1);
	switch (t->kind)
	{
		case FILTERED_NO_KEYS:
		case FILTERED_KEYS:
		case SUM_UNDETERMINED:
			v = emit_load(in, COL_V);
			if (t->kind != SUM_UNDETERMINED)
				in->program.filter = emit_below_200(in, v);
			c = add_column(t, emit(in, VECTOR_F_INT8PL, v, add_constant(in, 1)), WIRE_I64, true);
			add_slot(q, MONOID_SUM_I64, c, -1);
			break;
		case ONE_SLOT_FILTER:
			c = add_column(t, emit_load(in, COL_B), WIRE_I8, false);
			add_slot(q, MONOID_SUM_I64, add_column(t, emit_load(in, COL_S), WIRE_I16, false), c);
			break;
		case NULL_SLOT_FILTER:
			c = add_column(t, emit_below_200(in, emit_load(in, COL_V)), WIRE_I8, false);
			add_slot(q, MONOID_SUM_I64, add_column(t, emit_load(in, COL_S), WIRE_I16, false), c);
			break;
		case NO_COLUMNS:
			add_slot(q, MONOID_SUM_I64, add_column(t, add_constant(in, 7), WIRE_I64, false), -1);
			break;
		case DISTINCT_VALUES:
			c = add_column(t, emit_load(in, COL_S), WIRE_I16, false);
			q->nsets = 1;
			q->sets[0] = (WireSet){c, -1, (int16_t) (random_below(2) ? c : -1), random_below(2), 0};
			add_slot(q, MONOID_SUM_I64, c, -1);
			add_slot(q, MONOID_COUNT, -1, -1);
			q->slots[1].input = WIRE_DISTINCT;
			q->slots[2].input = WIRE_DISTINCT + random_below(WIRE_SLOT_INPUTS - WIRE_DISTINCT);
			break;
		case HISTOGRAM:
			in->program.filter = emit_load(in, COL_B);
			add_slot(q, MONOID_COUNT,
					 add_column(t, emit_load(in, COL_X), WIRE_F64, random_below(2)), -1);
			q->slots[1].bin_kind = WIRE_BIN_UNIFORM;
			q->slots[1].bin_n = 6;
			q->slots[1].width = 8;
			q->slots[1].hi = 60;
			q->slots[1].formula = GPUAGG_BINS_QUOTIENT;
			break;
		case MANY_SLOTS:
			add_many_slots(t);
			break;
		default:
			add_slot(q, MONOID_SUM_I64,
					 add_column(t, emit_load(in, COL_S), WIRE_I16, random_below(2)), -1);
			if (t->kind == CONDITIONS)
				add_conditions(t, (int) in->program.nregisters - 1);
			if (t->kind == FLOATS)
				add_floats(t);
			if (t->kind == PAIRS)
				add_pairs(t);
			if (t->kind == SKETCH)
				add_sketch(t);
			if (t->kind == NOTHING_LEFT)
				in->program.filter = emit(in, VECTOR_F_INT2LT, (int) in->program.nregisters - 1,
										  add_constant(in, -1000));
	}
}

void
test_query_make(TestQuery *t, const Model *m, Kind kind)
{
	WireResident *in = &t->in;
	WireQuery *q = &t->q;
	int k = -1;

	memset(t, 0, sizeof(*t));
	t->kind = kind;
	in->table.id = m->id;
	in->buffer = random_below(ARENA_BUFFERS);
	in->program.filter = VECTOR_NONE;
	q->est_groups = random_below(3) * 400;
	if (kind == PLAIN_KEYS || kind == FILTERED_KEYS || kind >= NULL_SLOT_FILTER ||
		kind == COMPUTED_KEYS)
		k = kind == NO_COLUMNS || kind == TWO_KEYS || (kind == SKETCH && random_below(8) > 0) ?
			-1 :
			emit_load(in, COL_K);
	if (kind == COMPUTED_KEYS)
		k = emit(in, VECTOR_F_INT4PL, k, add_constant(in, 5));
	if (k >= 0)
		make_key(t, m, k, kind != NULLS_UNDETERMINED);
	if (kind == TWO_KEYS)
	{
		make_two_keys(t, m);
		q->ncols = in->ncols;
		return;
	}
	add_slots(t);
	q->ncols = in->ncols;
}

int
test_query_row_outcome(const TestQuery *t, const Model *m, const Range *r, uint32_t row,
					   uint64_t *key, int64_t *sum)
{
	int64_t k = model_value(m, r, COL_K, row) + (t->kind == COMPUTED_KEYS ? 5 : 0);
	bool null_key = model_is_null(r, COL_K, row);
	int64_t v = model_value(m, r, COL_V, row);
	bool null_v = model_is_null(r, COL_V, row);

	*key = t->keyed ? (uint32_t) k : 0;
	if (t->keyed && null_key)
		*key = (uint64_t) 1 << 32;
	if (t->kind == TWO_KEYS)
	{
		*sum = model_value(m, r, COL_I, row);
		*key = (uint32_t) *sum | (uint64_t) model_value(m, r, COL_J, row) << 32;
		return 1;
	}
	*sum = model_value(m, r, COL_S, row);
	switch (t->kind)
	{
		case FILTERED_NO_KEYS:
		case FILTERED_KEYS:
			*sum = (int64_t) ((uint64_t) v + 1);
			return !null_v && v < 200;
		case SUM_UNDETERMINED:
			*sum = null_v ? 0 : v == INT64_MAX ? 0 : v + 1;
			return null_v || v != INT64_MAX ? 1 : -1;
		case ONE_SLOT_FILTER:
			*sum = model_value(m, r, COL_B, row) ? *sum : 0;
			return 1;
		case NULL_SLOT_FILTER:
			*sum = !null_v && v < 200 ? *sum : 0;
			return 1;
		case NULLS_UNDETERMINED:
			return null_key ? -1 : 1;
		case NO_COLUMNS:
			*sum = 7;
			return 1;
		case HISTOGRAM:
			/* the client adds up count times number of each bin */
			*sum =
				gpuagg_bin_uniform(model_value(m, r, COL_X, row), 0, 60, 6, GPUAGG_BINS_QUOTIENT);
			return (int) model_value(m, r, COL_B, row);
		case NOTHING_LEFT:
			return 0;
		case CONDITIONS:
			if (*sum == 7 || null_v || (v != INT64_MAX && v >= 199))
				return 0;
			if (v == INT64_MAX)
				return t->guarded ? 0 : -1;
			return (int) model_value(m, r, COL_B, row);
		case FLOATS:
			return model_is_null(r, COL_X, row) || model_value(m, r, COL_X, row) < t->limit ? 1 :
																							  -1;
		case MANY_SLOTS:
			*sum = (*sum + 1) * *sum - (*sum + 1);
			return model_value(m, r, COL_S, row) != 7 || model_value(m, r, COL_B, row);
		default:
			return 1;
	}
}

/* ---- row ranges ---- */

void
test_query_draw_ranges(TestQuery *t, Model *m)
{
	/* without a mask for rows, one kernel call computes the bins */
	bool all = t->kind == TWO_KEYS && random_below(2);
	int density = all ? 10 : 1 + (int) random_below(10);
	uint32_t n = 0;

	for (int range = 0; range < RANGES; range++)
	{
		uint32_t nrows = m->ranges[range].nrows;
		uint32_t at = 0;
		int span = range / SPAN_RANGES;
		int pieces = random_below(3) ? 1 : 3;

		if (range % SPAN_RANGES == 0)
		{
			t->whole[span] = random_below(3) == 0;
			t->named[span] = t->whole[span] && random_below(3) > 0;
			if (t->whole[span] && m->spans[span] == 0)
				m->spans[span] = ++model_last_stamp;
			t->ids[span] = m->spans[span];
		}
		if (!t->whole[span] && random_below(10) >= density && (range > 0 || density < 5))
			continue;
		if (t->whole[span] || all)
			pieces = 1;
		for (int p = 0; p < pieces && at < nrows; p++)
		{
			WireRowRange *row_range = &t->row_ranges[n];

			if (pieces > 1)
				at += random_below(nrows - at);
			*row_range = (WireRowRange){m->ranges[range].stamp, range * 3, at, nrows - at, 0};
			if (pieces > 1)
				row_range->nrows = 1 + random_below(nrows - at);
			at += row_range->nrows;
			n++;
		}
	}
	if (n == 0)
		t->row_ranges[n++] = (WireRowRange){m->ranges[7].stamp, 21, 0, m->ranges[7].nrows, 0};
	t->nrow_ranges = n;
}

void
test_query_lay_out(TestQuery *t)
{
	t->in.nrow_ranges = t->in.nspans = 0;
	for (int span = -1, i = 0; i < (int) t->nrow_ranges; i++)
	{
		const WireRowRange *row_range = &t->row_ranges[i];
		int of = row_range->range / (3 * SPAN_RANGES);

		if (t->whole[of])
		{
			WireSpan *out = &t->spans[t->in.nspans - (of == span)];

			if (of != span)
			{
				t->in.nspans++;
				*out = (WireSpan){t->ids[of],
								  0,
								  of * SPAN_RANGES * 3,
								  SPAN_RANGES * 3,
								  t->named[of] ? WIRE_NO_ARRAY : t->in.nrow_ranges,
								  0};
			}
			out->nrows += row_range->nrows;
			out->nrow_ranges += !t->named[of];
			span = of;
		}
		if (!t->whole[of] || !t->named[of])
			t->sent[t->in.nrow_ranges++] = *row_range;
	}
}

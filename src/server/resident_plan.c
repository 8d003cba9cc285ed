/*
 * resident_plan.c
 *	  Plans how rows that are cached on a device are read; see resident_plan.h.
 */
#include <string.h>

#include "server/resident_plan.h"

/* ---- columns and instructions ---- */

/*
 * Returns the last of the first n instructions that sets the operand; -1 if the operand is a
 * constant.
 */
static int
last_setter(const VectorProgram *p, int operand, int n)
{
	for (int i = n - 1; i >= 0 && operand < VECTOR_CONSTANT; i--)
		if (p->instructions[i].r == operand)
			return i;
	return -1;
}

static bool
may_be_null(const StoreHold *hold, int stored)
{
	for (int s = 0; s < hold->nsegments; s++)
		if (hold->segments[(size_t) stored * hold->nsegments + s].validity)
			return true;
	return false;
}

/* Returns whether the column is a key, an order column, or a column of a set. */
static bool
is_no_argument(const WireQuery *q, int c)
{
	for (int k = 0; k < q->nkeys; k++)
		if (q->keys[k].col == c)
			return true;
	for (uint32_t o = 0; o < q->norder; o++)
		if (q->order[o].col == c)
			return true;
	for (uint32_t s = 0; s < q->nsets; s++)
		if (q->sets[s].col == c || q->sets[s].filter == c || q->sets[s].beside == c)
			return true;
	return false;
}

/*
 * Returns whether the query only counts rows where the column is not NULL, so that its values do
 * not matter.
 */
static bool
only_counted(const WireQuery *q, int c)
{
	if (is_no_argument(q, c))
		return false;
	for (int s = 0; s < q->nslots; s++)
	{
		const WireSlot *slot = &q->slots[s];

		if (slot->filter == c ||
			((slot->col[0] == c || slot->col[1] == c) &&
			 (slot->monoid != MONOID_COUNT || slot->bin_kind != WIRE_BIN_NONE)))
			return false;
	}
	return true;
}

/*
 * Returns whether the slot, which reads the column as its n-th argument, needs only codes of
 * floats, or only NULLs. `zeros`: the codes have 0 for -0. `derived`: the slot's state is derived
 * from another slot.
 */
static bool
takes_codes(const WireSlot *slot, int n, bool zeros, bool derived)
{
	if (slot->bin_kind != WIRE_BIN_NONE || slot->input != WIRE_ROWS)
		return false;
	switch (slot->monoid)
	{
		case MONOID_COUNT:
			return true;
		case MONOID_ARGMAX:
		case MONOID_ARGMIN:
			return zeros == (n == 0);
		default:
			return derived;
	}
}

/*
 * Returns whether every reader of the float column converts it to codes by itself. `zeros`: as in
 * takes_codes().
 */
static bool
only_codes(const WireQuery *q, int c, bool zeros, const SlotSet *derived)
{
	if (is_no_argument(q, c))
		return false;
	for (int s = 0; s < q->nslots; s++)
	{
		if (q->slots[s].filter == c)
			return false;
		for (int n = 0; n < 2; n++)
			if (q->slots[s].col[n] == c &&
				!takes_codes(&q->slots[s], n, zeros, slot_set_has(derived, s)))
				return false;
	}
	return true;
}

/* Returns whether the instruction passes a float on if its magnitude is below a constant. */
static bool
is_check(const VectorProgram *p, const VectorInstruction *in)
{
	return (in->op == VECTOR_F32_BELOW || in->op == VECTOR_F64_BELOW) && in->b >= VECTOR_CONSTANT &&
		p->constants[in->b - VECTOR_CONSTANT].state == VECTOR_VALUE;
}

/*
 * Finds the stored column that can be read in place of column c. This includes columns whose
 * instruction only passes values on, with a check that may make the row undetermined, and columns
 * whose instruction makes codes.
 */
static void
find_stored_column(const WireQuery *q, const WireResident *in, const StoreHold *hold, int c,
				   const SlotSet *derived, ResidentColumn *col)
{
	const VectorProgram *p = &in->program;
	int i = last_setter(p, col->operand, (int) p->ninstructions);
	VectorInstruction setter = {.op = VECTOR_LOAD};
	bool below, codes;
	int stored;

	col->stored = -1;
	if (i >= 0)
		setter = p->instructions[i];
	below = is_check(p, &setter);
	codes = (setter.op == VECTOR_F32_CODE || setter.op == VECTOR_F64_CODE) &&
		only_codes(q, c, setter.data != 0, derived);
	if (below || codes || (setter.op == VECTOR_PRESENCE && col->presence))
		i = last_setter(p, setter.a, i);
	if (i < 0 || p->instructions[i].op != VECTOR_LOAD)
		return;
	stored = p->instructions[i].a;
	if ((!col->presence && !codes && in->stored[stored].type != col->type) ||
		(!col->nullable && may_be_null(hold, stored)))
		return;
	if (codes && in->stored[stored].type != (setter.op == VECTOR_F32_CODE ? WIRE_F32 : WIRE_F64))
		return;
	col->stored = stored;
	col->codes = codes;
	col->zeros = codes && setter.data != 0;
	col->checked = below;
	col->no_zeros = setter.data != 0;
	if (below)
		memcpy(&col->below, &p->constants[setter.b - VECTOR_CONSTANT].bits, sizeof(col->below));
}

static void
need_register(uint64_t *registers, int operand)
{
	if (operand < VECTOR_MAX_REGISTERS)
		*registers |= (uint64_t) 1 << operand;
}

/* Keeps the instructions that the registers depend on, and drops the others. */
static void
drop_instructions(ResidentPlan *plan, uint64_t registers)
{
	VectorProgram *p = &plan->program;
	int from = VECTOR_MAX_INSTRUCTIONS;

	for (int i = (int) p->ninstructions - 1; i >= 0; i--)
	{
		VectorInstruction in = p->instructions[i];

		if (!(registers >> in.r & 1))
			continue;
		registers &= ~((uint64_t) 1 << in.r);
		if (in.op == VECTOR_LOAD)
			plan->loads |= (uint64_t) 1 << in.a;
		else
		{
			int n = vector_operands(in.op);

			need_register(&registers, in.a);
			if (n > 1)
				need_register(&registers, in.b);
			if (n > 2)
				need_register(&registers, in.c);
		}
		/* written from the end on, over instructions that were read already */
		p->instructions[--from] = in;
	}
	p->ninstructions = VECTOR_MAX_INSTRUCTIONS - from;
	memmove(p->instructions, p->instructions + from, p->ninstructions * sizeof(VectorInstruction));
}

bool
resident_is_written(const ResidentPlan *plan, int c)
{
	const ResidentColumn *col = &plan->cols[c];
	int constant = col->operand - VECTOR_CONSTANT;

	/*
	 * a constant that is only counted is not read; a NULL constant is computed like other columns
	 */
	if (col->presence && constant >= 0 && plan->program.constants[constant].state == VECTOR_VALUE)
		return false;
	return col->stored < 0;
}

static bool
is_filter_column(const WireQuery *q, int col)
{
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].filter == col)
			return true;
	for (uint32_t s = 0; s < q->nsets; s++)
		if (q->sets[s].filter == col)
			return true;
	return false;
}

void
resident_plan(const WireQuery *q, const WireResident *in, const StoreHold *hold,
			  const SlotSet *derived, ResidentPlan *plan)
{
	uint64_t registers = 0;

	memset(plan, 0, sizeof(*plan));
	plan->program = in->program;
	plan->ncols = (int) in->ncols;
	plan->runs = plan->computes = in->program.filter != VECTOR_NONE;
	need_register(&registers, in->program.filter);
	for (int c = 0; c < plan->ncols; c++)
	{
		ResidentColumn *col = &plan->cols[c];

		col->operand = in->cols[c];
		col->type = in->types[c];
		col->nullable = in->nullable >> c & 1;
		col->filter = is_filter_column(q, c);
		col->presence = only_counted(q, c);
		find_stored_column(q, in, hold, c, derived, col);
		if (resident_is_written(plan, c))
		{
			plan->row_bits += 8 * wire_width(col->type) + col->nullable;
			plan->computes = true;
		}
		else if (!col->checked)
			continue;
		plan->runs = true;
		need_register(&registers, col->operand);
	}
	drop_instructions(plan, registers);
}

bool
resident_in_order(const WireQuery *q, StoreHold *hold, uint64_t *lacking)
{
	if (!(q->flags & WIRE_ORDERED) || hold->sorted)
		return true;
	store_release(hold);
	*lacking |= WIRE_UNSORTED;
	return false;
}

/* ---- slices ---- */

bool
resident_slice(const StoreHold *hold, int64_t most, int64_t *position, int *span,
			   ResidentSlice *slice)
{
	const StoreSpan *spans = hold->spans;
	int64_t segment, limit, end, wanted = 0;
	int i = *span;

	while (i < hold->nspans && spans[i].first + spans[i].nrows <= *position)
		i++;
	*span = i;
	if (i == hold->nspans)
		return false;
	slice->span = i;
	slice->first = (spans[i].first > *position ? spans[i].first : *position) / 64 * 64;
	segment = slice->first / STORE_SEGMENT_ROWS;
	limit = slice->first + most;
	end = slice->first;
	for (; i < hold->nspans && spans[i].first < limit &&
		 spans[i].first / STORE_SEGMENT_ROWS == segment &&
		 (end == slice->first || spans[i].first - end <= RESIDENT_MAX_GAP);
		 i++)
	{
		int64_t from = spans[i].first > slice->first ? spans[i].first : slice->first;

		end = spans[i].first + spans[i].nrows;
		end = end < limit ? end : limit;
		wanted += end - from;
	}
	slice->nspans = i - slice->span;
	slice->nrows = end - slice->first;
	slice->masked = wanted < slice->nrows;
	/*
	 * the slice ends at the limit, at a gap, at the end of the segment, or at the end of the rows
	 */
	*position = (end + 63) / 64 * 64;
	return true;
}

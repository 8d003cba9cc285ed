/*
 * resident_plan.c
 *	  From RESIDENT to what a device has to do; see resident.h.
 */
#include <string.h>

#include "server/resident_plan.h"

/* ---- columns and instructions ---- */

/* The last of the first n instructions that sets the operand; -1: it is a constant. */
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

/* Is it a key, an order, or of a set? */
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
		if (q->sets[s].col == c || q->sets[s].filter == c)
			return true;
	return false;
}

/*
 * Does the query only count the rows where the column is not NULL?  Then its values are nobody's
 * concern.
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
 * Does the slot, which reads the column as its n-th, take codes of floats, or only whether they are
 * NULL?
 */
static bool
takes_codes(const WireSlot *slot, int n, bool zeros, bool told)
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
			return told;
	}
}

/* Do all who read the column make codes of floats themselves, of keys that of 0 for -0? */
static bool
only_codes(const WireQuery *q, int c, bool zeros, uint64_t told)
{
	if (is_no_argument(q, c))
		return false;
	for (int s = 0; s < q->nslots; s++)
	{
		if (q->slots[s].filter == c)
			return false;
		for (int n = 0; n < 2; n++)
			if (q->slots[s].col[n] == c && !takes_codes(&q->slots[s], n, zeros, told >> s & 1))
				return false;
	}
	return true;
}

/* Does it pass a float on that is below a constant? */
static bool
is_check(const VectorProgram *p, const VectorInstruction *in)
{
	return (in->op == VECTOR_F32_BELOW || in->op == VECTOR_F64_BELOW) && in->b >= VECTOR_CONSTANT &&
		p->constants[in->b - VECTOR_CONSTANT].state == VECTOR_VALUE;
}

/*
 * Finds the stored column that this column of the query, c, is as it stands: also where an
 * instruction passes values on, and only its outcome may be undetermined, and where it makes codes.
 */
static void
find_stored(const WireQuery *q, const WireResident *in, const StoreHold *hold, int c, uint64_t told,
			ResidentColumn *col)
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
		only_codes(q, c, setter.data != 0, told);
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
need(uint64_t *registers, int operand)
{
	if (operand < VECTOR_MAX_REGISTERS)
		*registers |= (uint64_t) 1 << operand;
}

/* Keeps those instructions on which the registers depend. */
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

			need(&registers, in.a);
			if (n > 1)
				need(&registers, in.b);
			if (n > 2)
				need(&registers, in.c);
		}
		/* from the end on, over what was read already */
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

	/* a constant that is only counted is nowhere NULL, or else it is computed as all others */
	if (col->presence && constant >= 0 && plan->program.constants[constant].state == VECTOR_VALUE)
		return false;
	return col->stored < 0;
}

static bool
filters(const WireQuery *q, int col)
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
resident_plan(const WireQuery *q, const WireResident *in, const StoreHold *hold, uint64_t told,
			  ResidentPlan *plan)
{
	uint64_t registers = 0;

	memset(plan, 0, sizeof(*plan));
	plan->program = in->program;
	plan->ncols = (int) in->ncols;
	plan->runs = plan->computes = in->program.filter != VECTOR_NONE;
	need(&registers, in->program.filter);
	for (int c = 0; c < plan->ncols; c++)
	{
		ResidentColumn *col = &plan->cols[c];

		col->operand = in->cols[c];
		col->type = in->types[c];
		col->nullable = in->nullable >> c & 1;
		col->filter = filters(q, c);
		col->presence = only_counted(q, c);
		find_stored(q, in, hold, c, told, col);
		if (resident_is_written(plan, c))
		{
			plan->row_bits += 8 * wire_width(col->type) + col->nullable;
			plan->computes = true;
		}
		else if (!col->checked)
			continue;
		plan->runs = true;
		need(&registers, col->operand);
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
	/* what goes on is cut at the limit; else there is a gap, the end of the segment, or of all */
	*position = (end + 63) / 64 * 64;
	return true;
}

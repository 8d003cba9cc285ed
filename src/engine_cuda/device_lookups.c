/*
 * device_lookups.c
 *	  The lookup tables of a program over rows that are cached on the devices (VECTOR_LOOKUP).
 *
 * A table has a cell for each number of a coded column's dictionary (device_values.c), or for each
 * key of a join.  The second kind has the columns of the join's inner rows: the key, less the least
 * key, is the number of the cell, and cells of keys that no inner row has are NULL.  So a row is
 * joined by one load for each column.  This needs an integer key in a range for which a buffer has
 * room.  For other integers, and several of them, a hash table finds the inner row, whose number is
 * that of the cell (device_slots.c).
 *
 * Tables of joins are filled here with a value for each entry: an inner row, or a distinct value of
 * the inner rows.  device_cells.c makes cells of the entries.  A column of a kept lookup need not
 * be filled if the GPU server has its cells: what else is needed of it is noted in the kept lookup
 * (LookupSummary).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "common/interruptible.h"
#include "engine_cuda/device_cells.h"
#include "engine_cuda/device_rows.h"
#include "feed/lookup.h"

/* ---- columns of joins ------------------------------------------------------------ */

/* Returns the number of cells of a join's tables for keys, or -1 if there are too many. */
static int64
count_keys(const Lookup *inner)
{
	uint64 span = (uint64) inner->greatest - (uint64) inner->least;

	if (inner->form == LOOKUP_EMPTY)
		return 0;
	return span < (uint64) WIRE_BUFFER_BYTES * 8 ? (int64) span + 1 : -1;
}

const LookupColumn *
resident_inner_column(const Resident *r, const ExprLookup *lookup)
{
	const Lookup *inner = r->rows->joins[lookup->join].lookup;

	return &inner->columns[r->rows->inner_column[lookup->attno - r->rows->natts - 1]];
}

/* Returns whether rows without an inner row are kept, with NULLs in its place. */
static bool
is_outer(const Resident *r, int j)
{
	JoinType type = resident_join_type(r, j);

	return type == JOIN_LEFT || type == JOIN_ANTI;
}

/* Returns whether a lookup of a join has a column of its inner rows, or whether it is NULL. */
static bool
is_plain(const ExprLookup *lookup)
{
	return lookup->expr == NULL && lookup->type != COLUMN_DATUM;
}

/* Adds the NULLs of rows without an inner row to what is known of a column. */
static void
use_summary(const Resident *r, ExprLookup *lookup, const LookupSummary *summary)
{
	lookup->interval = (ExprInterval){summary->least, summary->greatest};
	lookup->undetermined = summary->undetermined;
	lookup->nulls = summary->nulls || is_outer(r, lookup->join);
	lookup->null = VECTOR_NULL;
}

/* Fills a lookup that has a column as it is, and notes its summary for later queries. */
static void
fill_plain(Resident *r, ExprLookup *lookup, uint32 n, const bool *nulls)
{
	const LookupColumn *column = resident_inner_column(r, lookup);
	LookupSummary summary = {
		.type = lookup->type, .scale = lookup->scale, .presence = lookup->presence};

	expr_lookup_allocate(lookup, n);
	lookup->states[n] = VECTOR_NULL;
	INTERRUPTIBLE_FOR (i, 0, n)
		if (nulls && nulls[i])
			lookup->states[i] = VECTOR_NULL;
	if (lookup->presence)
		expr_lookup_finish(lookup);
	else
		expr_lookup_convert(lookup, column->values);
	summary.nulls = lookup->nulls || column->nulls != NULL;
	summary.undetermined = lookup->undetermined;
	summary.least = lookup->interval.min;
	summary.greatest = lookup->interval.max;
	lookup_note_summary(column, &summary);
	use_summary(r, lookup, &summary);
}

void
resident_fill_column(Resident *r, ExprLookup *lookup)
{
	const ResidentJoin *join = &r->rows->joins[lookup->join];
	const LookupColumn *column = resident_inner_column(r, lookup);
	bool null = column->nulls != NULL || is_outer(r, lookup->join);
	uint32 n = join->lookup->form == LOOKUP_EMPTY ? 0 :
		column->byval                             ? join->lookup->nrows :
													column->ncodes;
	const bool *nulls = column->byval ? column->nulls : NULL;

	if (is_plain(lookup))
	{
		fill_plain(r, lookup, n, nulls);
		return;
	}
	if (lookup->type == COLUMN_DATUM)
		resident_fill_key_lookup(r, lookup, column->values, nulls, n, null);
	else
		expr_lookup_fill(r->program, lookup, column->values, nulls, n);
	if (r->program->unsupported_reason)
		return;
	if (!null)
		lookup->states[n] = VECTOR_NULL;
	else if (lookup->states[n] == VECTOR_NULL)
		lookup->nulls = true;
}

/*
 * Describes a lookup that has a column of a kept lookup as it is, without filling it.  Returns
 * false if no query has noted what the column has.
 */
static bool
describe_column(const Resident *r, ExprLookup *lookup)
{
	LookupSummary summary = {
		.type = lookup->type, .scale = lookup->scale, .presence = lookup->presence};

	if (!is_plain(lookup) || !lookup_find_summary(resident_inner_column(r, lookup), &summary))
		return false;
	use_summary(r, lookup, &summary);
	return true;
}

/* Describes the lookup that says for which keys inner rows exist; its cells are bits. */
static void
describe_found(ExprLookup *lookup)
{
	lookup->interval = (ExprInterval){1, 1};
	lookup->nulls = true;
}

/* Sets which keys, or inner rows, the cells of a join's table are for; may reject the program. */
static void
describe_table(Resident *r, const ExprLookup *lookup, VectorTable *table)
{
	const Lookup *inner = r->rows->joins[lookup->join].lookup;
	int64 n;

	if (lookup->slots)
	{
		if (!resident_describe_slots(inner, r->key_parts[lookup->join], table))
			expr_program_reject(r->program, "a join has too many keys that are not dense");
		return;
	}
	*table = (VectorTable){.others = 1};
	if (resident_is_hashed(inner))
	{
		table->n = inner->nrows;
		return;
	}
	n = count_keys(inner);
	if (n < 0)
		expr_program_reject(r->program, "the keys of a join are not dense");
	else if (n > 0)
	{
		table->n = n;
		table->base = inner->least;
	}
}

/*
 * Fills or describes the lookups of joins.  They do not change between rounds of RESIDENT, so
 * r->translated keeps them for the next one.
 */
static void
fill_joins(Resident *r)
{
	ExprProgram *p = r->program;

	for (int t = 0; t < p->nlookups && p->unsupported_reason == NULL; t++)
	{
		ExprLookup *lookup = &p->lookups[t];

		if (lookup->join < 0)
			continue;
		describe_table(r, lookup, &r->wire.tables[t]);
		if (p->unsupported_reason)
			return;
		if (lookup->slots)
			lookup->interval = (ExprInterval){0, PG_UINT32_MAX};
		else if (lookup->attno == 0)
			describe_found(lookup);
		else if (lookup->states == NULL && !describe_column(r, lookup))
			resident_fill_column(r, lookup);
		r->translated->lookups[t] = *lookup;
	}
}

/* ---- existence ------------------------------------------------------------------------ */

/*
 * If at least this part of the rows is expected to find an inner row, the cells of a column say
 * which ones do.  Else a bitmap does, which more rows read, and is smaller.
 */
#define SHARED_PART 0.5

/* Returns the instruction that looks a table up, or -1. */
static int
find_instruction(const ExprProgram *p, int t)
{
	for (uint32 i = 0; i < p->flat.ninstructions; i++)
		if (p->flat.instructions[i].op == VECTOR_LOOKUP && p->flat.instructions[i].data == t)
			return i;
	return -1;
}

/* Returns whether the cells of a join's column are NULL for exactly the keys without inner row. */
static bool
says_existence(const Resident *r, int t)
{
	const ExprLookup *lookup = &r->program->lookups[t];
	const ResidentJoin *join = &r->rows->joins[lookup->join];
	int form = r->wire.tables[t].form;

	return lookup->attno != 0 && !lookup->nulls && !lookup->undetermined &&
		form != VECTOR_CELLS_WIDE && (form == VECTOR_CELLS_BITS || join->share >= SHARED_PART) &&
		(lookup->states == NULL || lookup->states[lookup->n] == VECTOR_NULL);
}

/*
 * Lets table `found`, which says for which keys of an inner join rows exist, have the cells of a
 * column of the inner rows, if there is one that says so.  Then one instruction looks up both.
 */
static void
share_cells(Resident *r, int found)
{
	ExprProgram *p = r->program;
	int best = -1;
	int first, second;

	for (int t = 0; t < p->nlookups; t++)
		if (p->lookups[t].join == p->lookups[found].join && says_existence(r, t) &&
			(best < 0 || r->wire.tables[t].form < r->wire.tables[best].form))
			best = t;
	first = find_instruction(p, found);
	second = best < 0 ? -1 : find_instruction(p, best);
	if (first < 0 || second < first ||
		p->flat.instructions[first].a != p->flat.instructions[second].a)
		return;
	r->shared_cells[found] = best + 1;
	p->flat.instructions[first].data = best;
	expr_program_replace(p, second, first);
	for (int c = 0; c < r->cuda->query->ncols; c++)
		if (r->inputs[c] == second)
			r->inputs[c] = first;
}

/* ---- the message ------------------------------------------------------------------ */

bool
resident_fill_lookups(Resident *r)
{
	ExprProgram *p = r->program;

	r->wire.ntables = p->nlookups;
	for (int s = 0; s < p->nstored; s++)
		if (p->stored[s].coded && !resident_fill_coded(r, s))
			return false;
	r->outdated = false;
	fill_joins(r);
	for (int t = 0; t < p->nlookups && p->unsupported_reason == NULL; t++)
		if (p->lookups[t].join >= 0 && !p->lookups[t].slots)
			cells_choose_form(&p->lookups[t], &r->wire.tables[t]);
	if (p->unsupported_reason)
		return true;
	for (int t = 0; t < p->nlookups; t++)
		if (p->lookups[t].join >= 0 && p->lookups[t].attno == 0 && !p->lookups[t].slots &&
			resident_join_type(r, p->lookups[t].join) == JOIN_INNER)
			share_cells(r, t);
	return true;
}

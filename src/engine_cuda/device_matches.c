/*
 * device_matches.c
 *	  Joins in which a row of the table may find several inner rows.
 *
 * The program joins a row with one inner row of each join.  So the rows of the table are reduced in
 * passes.  In each pass, a row is joined with the inner rows of one combination of numbers: the
 * first one with its key, the second one, and so on; and it is left out if there are fewer.  The
 * passes add to the same groups, so that together they have each joined row once.
 */
#include "postgres.h"

#include "common/interruptible.h"
#include "engine_cuda/device_rows.h"

/* Most passes; with more of them the CPU is faster. */
#define MOST_PASSES 16

/* Numbers the inner rows with equal keys, which are chains in ascending order. */
static void
rank_rows(const Lookup *inner, ResidentMatch *match)
{
	uint32 *rank;

	match->most = 1;
	if (inner->next == NULL)
		return;
	match->rank = rank = palloc_extended(sizeof(uint32) * ((Size) inner->nrows + 1),
										 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	INTERRUPTIBLE_FOR (row, 0, inner->nrows)
	{
		uint32 next = inner->next[row];

		if (next == LOOKUP_NONE)
			continue;
		rank[next] = rank[row] + 1;
		match->most = Max(match->most, rank[next] + 1);
	}
}

void
resident_find_matches(Resident *r)
{
	const FeedResident *rows = r->rows;

	r->matches = palloc0(sizeof(ResidentMatch) * (rows->njoins + 1));
	r->npasses = 1;
	for (int j = 0; j < rows->njoins && r->npasses <= MOST_PASSES; j++)
	{
		rank_rows(rows->joins[j].lookup, &r->matches[j]);
		r->npasses *= r->matches[j].most;
	}
	if (r->npasses > MOST_PASSES)
		expr_program_reject(r->program, "a row may have too many matches in the joins");
	else if (r->npasses > 1 && r->cuda->spec->ordered)
		expr_program_reject(r->program, "ordered rows may have several matches in a join");
}

void
resident_set_matches(Resident *r)
{
	uint64 rest = r->pass;

	for (int j = 0; j < r->rows->njoins; j++)
	{
		r->matches[j].number = rest % r->matches[j].most;
		rest /= r->matches[j].most;
	}
}

JoinType
resident_join_type(const Resident *r, int j)
{
	JoinType type = r->rows->joins[j].type;

	/* rows without an inner row belong to the first match */
	return type == JOIN_LEFT && r->matches[j].number > 0 ? JOIN_INNER : type;
}

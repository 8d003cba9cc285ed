/*
 * heap_join_many.c
 *	  Joins with several matches for a row, and conditions that decide whether a row has a match.
 *
 * After the probe of a lookup with chains, the rows at hand are expanded: each row is repeated for
 * each match, as far as there is room.  If there is no room for a match, the step is cut there: the
 * rows from that match on are left to the next step.  A cut is the index of a tuple, and for each
 * join the lookup's row with which the tuple goes on, or LOOKUP_NONE, with which it begins.
 *
 * A condition in the ON clause of an outer, semi or anti join is no qual: it says which matches
 * count.  It is evaluated for the expanded rows, and then the join is settled: of the rows that
 * were one row before, those remain that the type of the join demands.  Such a join may have chains
 * only if no join above it has: a cut says of one join only whether an earlier match has passed.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "feed/heap.h"
#include "feed/heap_joins_internal.h"

/* Smallest growth of the number of tuples in a step. */
#define LEAST_GROWTH 1

bool
heap_joins_can_be_cut(const HeapJoins *joins)
{
	bool settled = false;

	for (int j = 0; j < joins->n; j++)
	{
		const HeapJoin *join = &joins->joins[j];

		if (join->lookup.next == NULL)
			continue;
		if (settled)
			return false;
		settled = join->settles;
	}
	return true;
}

void
heap_joins_reset_cut(HeapJoins *joins)
{
	joins->resumes = joins->cut = false;
	joins->tuples_per_step = EXPR_ROWS;
}

/* ---- steps ---------------------------------------------------------------------------- */

int
heap_joins_step_tuples(const HeapFeed *feed, int room)
{
	return Max(feed->joins->tuples_per_step * Min(room, EXPR_ROWS) / EXPR_ROWS, 1);
}

void
heap_joins_begin_step(HeapFeed *feed, int room)
{
	HeapJoins *joins = feed->joins;

	joins->nprobed = 0;
	joins->room = Min(room, feed->rows_per_step);
	joins->cut = false;
	for (int j = 0; j < joins->n; j++)
	{
		HeapJoin *join = &joins->joins[j];

		join->open = join->continued = join->probed_now = false;
		join->left = 0;
		memset(&join->step, 0, sizeof(join->step));
	}
}

int
heap_joins_cut_tuples(const HeapFeed *feed, int n)
{
	return feed->joins->cut ? feed->joins->cut_tuple - feed->next_tuple : n;
}

/* Returns the row of the lookup that follows those of a row at hand, or LOOKUP_NONE. */
static uint32
next_match(const HeapJoin *join, int i)
{
	if (join->lookup.next == NULL || join->rows[i] == LOOKUP_NONE ||
		(join->settles && join->type != JOIN_LEFT))
		return LOOKUP_NONE;
	return join->lookup.next[join->rows[i]];
}

void
heap_joins_cut_after(HeapFeed *feed, int i)
{
	HeapJoins *joins = feed->joins;
	int j = joins->n - 1;

	while (j >= 0 && next_match(&joins->joins[j], i) == LOOKUP_NONE)
		joins->joins[j--].cut_row = LOOKUP_NONE;
	joins->cut = true;
	joins->cut_tuple = feed->rows.tuple[i] + (j < 0);
	joins->cut_matched = j >= 0 && joins->joins[j].settles;
	if (j < 0)
		return;
	joins->joins[j].cut_row = next_match(&joins->joins[j], i);
	while (--j >= 0)
		joins->joins[j].cut_row = joins->joins[j].rows[i];
}

void
heap_joins_end_step(HeapFeed *feed, int n)
{
	HeapJoins *joins = feed->joins;

	joins->resumes = joins->cut;
	joins->resume_tuple = joins->cut_tuple;
	joins->matched = joins->cut_matched;
	for (int j = 0; j < joins->n; j++)
		joins->joins[j].resume_row = joins->cut ? joins->joins[j].cut_row : LOOKUP_NONE;
	if (!joins->cut)
		joins->tuples_per_step =
			Min(joins->tuples_per_step + joins->tuples_per_step / 4 + LEAST_GROWTH, EXPR_ROWS);
	else
		joins->tuples_per_step = Min(Max(n * EXPR_ROWS / joins->room, 1), EXPR_ROWS);
}

/* ---- expansion ------------------------------------------------------------------------ */

/* Returns whether the first row at hand is the one with which a chain of join j goes on. */
static bool
goes_on(const HeapFeed *feed, int j)
{
	const HeapJoins *joins = feed->joins;

	if (!joins->resumes || joins->joins[j].resume_row == LOOKUP_NONE ||
		joins->resume_tuple != feed->rows.tuple[0])
		return false;
	for (int i = 0; i < j; i++)
		if (joins->joins[i].lookup.next && joins->joins[i].rows[0] != joins->joins[i].resume_row)
			return false;
	return true;
}

/*
 * Cuts the step at a match of row i at hand.  begun: an earlier match of the row is in this step,
 * or was in the one before.
 */
static void
cut_at(HeapFeed *feed, int j, int i, uint32 match, bool begun)
{
	HeapJoins *joins = feed->joins;

	joins->cut = true;
	joins->cut_tuple = feed->rows.tuple[i];
	joins->cut_matched = false;
	for (int k = 0; k < joins->n; k++)
		joins->joins[k].cut_row = k < j && joins->joins[k].lookup.next ? joins->joins[k].rows[i] :
			k == j && begun                                            ? match :
																		 LOOKUP_NONE;
	/* rows of joins below belong to the next step, too */
	joins->joins[j].left = feed->rows.n - i;
}

int
heap_joins_find_matches(HeapFeed *feed, int j, uint16 *sel)
{
	HeapJoins *joins = feed->joins;
	HeapJoin *join = &joins->joins[j];
	const uint32 *next = join->lookup.next;
	uint32 found[EXPR_ROWS];
	int n = 0;

	if (next == NULL)
		return -1;
	CHECK_FOR_INTERRUPTS();
	join->continued = goes_on(feed, j);
	for (int i = 0; i < feed->rows.n; i++)
	{
		uint32 row = i == 0 && join->continued ? join->resume_row : join->rows[i];
		bool begun = i == 0 && join->continued;

		do
		{
			if (n == joins->room)
			{
				join->open = begun;
				cut_at(feed, j, i, row, begun);
				memcpy(join->rows, found, n * sizeof(uint32));
				return n;
			}
			sel[n] = i;
			found[n++] = row;
			begun = true;
			row = row == LOOKUP_NONE ? LOOKUP_NONE : next[row];
		} while (row != LOOKUP_NONE);
	}
	memcpy(join->rows, found, n * sizeof(uint32));
	return n;
}

void
heap_joins_expand(HeapFeed *feed, int j, const uint16 *sel, int n)
{
	HeapJoins *joins = feed->joins;

	for (int k = 0; k < j; k++)
	{
		uint32 *rows = joins->joins[k].rows;

		if (heap_join_keeps_rows(&joins->joins[k]))
			for (int i = n - 1; i >= 0; i--)
				rows[i] = rows[sel[i]];
	}
	memcpy(joins->joins[j].source, sel, n * sizeof(uint16));
}

/* ---- settling ------------------------------------------------------------------------- */

int
heap_joins_settle(HeapFeed *feed, int j, uint16 *sel, int npassed)
{
	HeapJoins *joins = feed->joins;
	HeapJoin *join = &joins->joins[j];
	bool many = join->lookup.next != NULL;
	uint16 passed[EXPR_ROWS];
	int n = 0;
	int p = 0;

	memcpy(passed, sel, npassed * sizeof(uint16));
	for (int i = 0, end; i < feed->rows.n; i = end)
	{
		int first = p;
		bool matched, open;

		for (end = i + 1; many && end < feed->rows.n && join->source[end] == join->source[i];)
			end++;
		while (p < npassed && passed[p] < end)
			p++;
		/* an earlier step may have found a match */
		matched = i == 0 && join->continued && joins->matched;
		if (join->type == JOIN_LEFT)
			for (int k = first; k < p; k++)
				sel[n++] = passed[k];
		else if (join->type == JOIN_SEMI && first < p && !matched)
			sel[n++] = passed[first];
		matched |= first < p;
		open = join->open && end == feed->rows.n;
		if (!matched && !open && join->type != JOIN_SEMI)
		{
			join->rows[i] = LOOKUP_NONE;
			sel[n++] = i;
		}
		if (open)
			joins->cut_matched = matched;
	}
	return n;
}

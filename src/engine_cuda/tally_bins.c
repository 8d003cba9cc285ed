/*
 * tally_bins.c
 *	  Counts the values of a group by bins, without reading all of them.
 *
 * The values of a group are at consecutive positions of a counted set, in ascending order.  Some of
 * them are picked.  Where two neighbours of these are not in one bin, some between them are picked,
 * and so on.  In the end, neighbours are in one bin or next to each other in the set, and the
 * difference of their places is the number of rows.
 *
 * Which values are in one bin, the aggregate says (aggregates/agg_tally.h).
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "aggregates/agg_tally.h"
#include "engine_cuda/cuda_engine.h"
#include "groups/value_store.h"
#include "operators/select.h"

/* Values that are picked first. */
#define FIRST_VALUES 1024

/* Parts into which values between two neighbours are divided. */
#define PARTS 8

/* At most so many values are picked, and at most one of so many of the group. */
#define MOST_VALUES (1 << 20)
#define MOST_SHARE 4

/* The values that were picked, ascending. */
typedef struct Found
{
	int64 n;
	int64 room;
	int64 *positions; /* in the group */
	double *values;
	int64 *ranks; /* the number of the group's rows before */
} Found;

/* A group of a counted set. */
typedef struct BinnedGroup
{
	CudaEngine *cuda;
	int set;
	int64 first; /* position of its first value */
	int64 n;     /* number of its values */
	int64 rows;
	int64 place; /* of the first row */
} BinnedGroup;

static void
make_room(Found *found, int64 n)
{
	if (n <= found->room)
		return;
	found->room = Max(n, 2 * found->room);
	found->positions = repalloc(found->positions, found->room * sizeof(int64));
	found->values = repalloc(found->values, found->room * sizeof(double));
	found->ranks = repalloc(found->ranks, found->room * sizeof(int64));
}

/* Picks the values at n positions of the group. Returns false if the session is lost. */
static bool
pick_values(const BinnedGroup *group, const int64 *positions, int64 n, double *values, int64 *ranks)
{
	int32 *places = palloc(sizeof(int32) * PICK_PLACES);
	Picked picked = {.values = palloc(sizeof(int64) * PICK_PLACES),
					 .ranks = palloc(sizeof(int32) * PICK_PLACES)};
	bool ok = true;

	for (int64 at = 0; at < n && ok; at += PICK_PLACES)
	{
		int m = Min(n - at, PICK_PLACES);

		for (int i = 0; i < m; i++)
			places[i] = (int32) (group->first + positions[at + i]);
		ok = cuda_pick_pairs(group->cuda, group->set, places, m, &picked);
		for (int i = 0; i < m && ok; i++)
		{
			values[at + i] =
				DatumGetFloat8(value_of_code(COLUMN_F64, select_code_i64(picked.values[i])));
			ranks[at + i] = picked.ranks[i] - group->place;
		}
	}
	pfree(places);
	pfree(picked.values);
	pfree(picked.ranks);
	return ok;
}

/* Returns whether all is as the message says. The server may say anything. */
static bool
is_valid(const BinnedGroup *group, const Found *found)
{
	if (found->ranks[0] != 0 || found->ranks[found->n - 1] >= group->rows)
		return false;
	for (int64 i = 1; i < found->n; i++)
		if (found->ranks[i] - found->ranks[i - 1] < found->positions[i] - found->positions[i - 1] ||
			select_code_f64(found->values[i]) <= select_code_f64(found->values[i - 1]))
			return false;
	return true;
}

/*
 * Lists positions between neighbours that are not in one bin, in ascending order, at most `most`.
 * Returns their number; -1: there are more.
 */
static int64
list_gaps(const Found *found, const AggTally *tally, void *state, int64 *positions, int64 most)
{
	int64 n = 0;

	for (int64 i = 0; i + 1 < found->n; i++)
	{
		int64 from = found->positions[i];
		int64 gap = found->positions[i + 1] - from;
		int parts = Min(gap, PARTS);

		if (gap == 1 ||
			tally->in_one_bin(state, found->values[i], found->ranks[i], found->values[i + 1],
							  found->ranks[i + 1]))
			continue;
		if (n + parts - 1 > most)
			return -1;
		for (int part = 1; part < parts; part++)
			positions[n++] = from + gap * part / parts;
	}
	return n;
}

/* Merges n more positions, with their values, into those that were found. */
static void
merge_found(Found *found, const Found *more, int64 n)
{
	int64 i = found->n - 1, j = n - 1;

	make_room(found, found->n + n);
	found->n += n;
	for (int64 to = found->n - 1; j >= 0; to--)
	{
		const Found *from = i >= 0 && found->positions[i] > more->positions[j] ? found : more;
		int64 at = from == found ? i-- : j--;

		found->positions[to] = from->positions[at];
		found->values[to] = from->values[at];
		found->ranks[to] = from->ranks[at];
	}
}

/* Picks values until neighbours are in one bin. *too_many: these would be too many. */
static bool
find_bins(BinnedGroup *group, const AggTally *tally, void *state, Found *found, Found *more,
		  bool *too_many)
{
	int64 most = Min(group->n / MOST_SHARE, MOST_VALUES);

	for (;;)
	{
		int64 n;

		CHECK_FOR_INTERRUPTS();
		if (!is_valid(group, found))
			return cuda_invalid_counts(group->cuda);
		tally->narrow(state, found->values, found->n, group->rows);
		make_room(more, most);
		n = found->n < most ? list_gaps(found, tally, state, more->positions, most - found->n) : -1;
		*too_many = n < 0;
		if (n <= 0)
			return true;
		if (!pick_values(group, more->positions, n, more->values, more->ranks))
			return false;
		merge_found(found, more, n);
	}
}

/* Returns an empty list with room for so many values. */
static Found
create_found(int64 room)
{
	return (Found){.room = room,
				   .positions = palloc(room * sizeof(int64)),
				   .values = palloc(room * sizeof(double)),
				   .ranks = palloc(room * sizeof(int64))};
}

bool
cuda_invalid_counts(CudaEngine *cuda)
{
	strlcpy(cuda->client->failure, "the GPU server sent invalid counts of values",
			sizeof(cuda->client->failure));
	return false;
}

bool
cuda_tally_bins(CudaEngine *cuda, int set, int64 first, int64 n, int64 rows, const AggTally *tally,
				void *state, bool *too_many)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "GPU bins of counted values",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	BinnedGroup group = {cuda, set, first, n, rows, 0};
	Found found = create_found(FIRST_VALUES);
	Found more = create_found(FIRST_VALUES);
	bool ok;

	Assert(n >= FIRST_VALUES);
	*too_many = false;
	found.n = FIRST_VALUES;
	for (int i = 0; i < FIRST_VALUES; i++)
		found.positions[i] = (n - 1) * i / (FIRST_VALUES - 1);
	ok = first >= 0 && first <= PG_INT32_MAX - n ?
		pick_values(&group, found.positions, found.n, found.values, found.ranks) :
		cuda_invalid_counts(cuda);
	group.place = ok ? found.ranks[0] : 0;
	for (int i = 0; i < FIRST_VALUES && ok; i++)
		found.ranks[i] -= group.place;
	ok = ok && find_bins(&group, tally, state, &found, &more, too_many);
	for (int64 i = 0; ok && !*too_many && i < found.n; i++)
		tally->add(state, Float8GetDatum(found.values[i]),
				   (i + 1 < found.n ? found.ranks[i + 1] : rows) - found.ranks[i]);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return ok;
}

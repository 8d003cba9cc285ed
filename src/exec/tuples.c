/*
 * tuples.c
 *	  Makes tuples of groups; see tuples.h.
 *
 * Keys and results of many groups are computed ahead, column by column, and copied to the slot
 * row by row.  A LIMIT above may never read them, so only results that are small, raise no errors
 * and have no side effects are computed ahead.  Other results are computed for one group at a
 * time (aggmap_finalize).
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "exec/exec.h"
#include "exec/tuples.h"

/* Groups that are computed ahead: few at first, as no more may be read. */
#define FIRST_GROUPS 16
#define MOST_GROUPS 256
#define MOST_VALUES 16384

struct Tuples
{
	GpuAggState *state;
	MemoryContext cxt; /* by-reference results that are computed ahead */
	int ncols;         /* keys, aggregates, GROUPING()s */
	Datum *values;     /* [group][column] */
	bool *nulls;
	int first;              /* first chosen group that is computed */
	int n;                  /* groups that are computed */
	int next_n;             /* groups to compute next time */
	int capacity;           /* groups in `values` and `nulls` */
	int nlater;             /* aggregates whose results are not computed ahead */
	int *later;             /* their numbers */
	int which[MOST_GROUPS]; /* index in state->groups of each computed group */
};

Tuples *
tuples_open(GpuAggState *state)
{
	GpuAggPlan *plan = state->plan;
	Tuples *tuples = palloc0(sizeof(Tuples));

	tuples->state = state;
	tuples->ncols = plan->nkeys + plan->naggs + plan->ngroupings;
	tuples->later = palloc(sizeof(int) * (plan->naggs + 1));
	tuples->next_n = FIRST_GROUPS;
	tuples->cxt = AllocSetContextCreate(CurrentMemoryContext, "gpuagg values of groups",
										ALLOCSET_DEFAULT_SIZES);
	return tuples;
}

void
tuples_restart(Tuples *tuples)
{
	tuples->first = tuples->n = 0;
}

/*
 * Returns the value of a GROUPING() in a grouping set: a bit for each of its keys, which is set if
 * the grouping set does not have the key.
 */
static Datum
grouping_value(const GpuAggPlan *plan, int grouping, int set)
{
	int32 value = 0;

	for (int k = 0; k < plan->grouping_nkeys[grouping]; k++)
		value = (value << 1) |
			(plan->nsets > 0 && !bms_is_member(plan->groupings[grouping][k], plan->sets[set].keys));
	return Int32GetDatum(value);
}

/* Makes room for the values of n groups.  Values that are there are lost. */
static void
enlarge_values(Tuples *tuples, int n)
{
	MemoryContext cxt = GetMemoryChunkContext(tuples);

	if (n <= tuples->capacity)
		return;
	if (tuples->values)
	{
		pfree(tuples->values);
		pfree(tuples->nulls);
	}
	tuples->values = MemoryContextAlloc(cxt, sizeof(Datum) * (tuples->ncols + 1) * n);
	/* tuples_store() copies also what it computes later */
	tuples->nulls = MemoryContextAllocZero(cxt, sizeof(bool) * (tuples->ncols + 1) * n);
	tuples->capacity = n;
}

/* Copies the keys and GROUPING()s of the groups in tuples->which to tuples->values. */
static void
copy_keys(Tuples *tuples)
{
	GpuAggState *state = tuples->state;
	GpuAggPlan *plan = state->plan;
	const GroupBatch *groups = &state->groups;

	for (int k = 0; k < plan->nkeys; k++)
	{
		const Datum *keys = groups->keys[k];
		const bool *nulls = groups->keynulls[k];

		for (int i = 0, at = k; i < tuples->n; i++, at += tuples->ncols)
		{
			tuples->values[at] = keys[tuples->which[i]];
			tuples->nulls[at] = nulls[tuples->which[i]];
		}
	}
	for (int f = 0; f < plan->ngroupings; f++)
	{
		Datum value = grouping_value(plan, f, groups->set);

		for (int i = 0, at = plan->nkeys + plan->naggs + f; i < tuples->n; i++, at += tuples->ncols)
		{
			tuples->values[at] = value;
			tuples->nulls[at] = false;
		}
	}
}

/* Computes the results of some groups ahead, from the i-th chosen group on. */
static void
compute_ahead(Tuples *tuples, int i)
{
	GpuAggState *state = tuples->state;
	GpuAggPlan *plan = state->plan;
	MemoryContext old;

	MemoryContextReset(tuples->cxt);
	tuples->first = i;
	tuples->n = Min(tuples->next_n, state->run.nchosen - i);
	tuples->next_n = Min(2 * tuples->next_n,
						 Max(FIRST_GROUPS, Min(MOST_GROUPS, MOST_VALUES / Max(tuples->ncols, 1))));
	enlarge_values(tuples, tuples->n);
	for (int j = 0; j < tuples->n; j++)
		tuples->which[j] = state->run.chosen ? state->run.chosen[i + j] : i + j;
	copy_keys(tuples);
	old = MemoryContextSwitchTo(tuples->cxt);
	tuples->nlater = 0;
	for (int a = 0; a < plan->naggs; a++)
		if (!aggmap_finalize_many(state->outputs[a], &state->groups, tuples->which, tuples->n,
								  tuples->values + plan->nkeys + a, tuples->nulls + plan->nkeys + a,
								  tuples->ncols))
			tuples->later[tuples->nlater++] = a;
	MemoryContextSwitchTo(old);
}

int
tuples_compute(Tuples *tuples, int i, const Datum **values, const bool **nulls)
{
	size_t at;

	StaticAssertStmt(MOST_GROUPS <= GROUP_ROWS, "groups computed ahead fit into GroupRows");
	if (i >= tuples->first + tuples->n || i < tuples->first)
		compute_ahead(tuples, i);
	at = (size_t) (i - tuples->first) * tuples->ncols;
	*values = tuples->values + at;
	*nulls = tuples->nulls + at;
	return tuples->nlater > 0 ? 0 : tuples->n - (i - tuples->first);
}

void
tuples_store(Tuples *tuples, TupleTableSlot *slot, int i)
{
	GpuAggState *state = tuples->state;
	Size at;

	ExecClearTuple(slot);
	if (i >= tuples->first + tuples->n || i < tuples->first)
		compute_ahead(tuples, i);
	at = (Size) (i - tuples->first) * tuples->ncols;
	for (int c = 0; c < tuples->ncols; c++)
	{
		slot->tts_values[c] = tuples->values[at + c];
		slot->tts_isnull[c] = tuples->nulls[at + c];
	}
	for (int l = 0; l < tuples->nlater; l++)
	{
		int a = tuples->later[l];
		int column = state->plan->nkeys + a;

		slot->tts_values[column] =
			aggmap_finalize(state->outputs[a], &state->groups, tuples->which[i - tuples->first],
							&slot->tts_isnull[column]);
	}
	ExecStoreVirtualTuple(slot);
}

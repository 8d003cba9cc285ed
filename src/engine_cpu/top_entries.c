/*
 * top_entries.c
 *	  The n best entries of groups (aggregates/top_n.c), a batch at a time.
 *
 * The aggregates are fallback aggregates, but columns of integers and floats are added to their
 * states here, without calls of transition functions. Most rows are worse than the last entry of a
 * full state, which one comparison shows. All others are left to top_n.c.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "columns/column_value.h"
#include "engine_cpu/top_entries.h"

/* Rows of groups are prefetched so many rows of the batch ahead, and then the states. */
#define PREFETCH_ROWS 24
#define PREFETCH_STATES 12

/* Returns what the table has for the aggregate in the group at an offset. */
static inline FallbackState *
group_entry(const TopEntries *top, uint32 at)
{
	return (FallbackState *) (top->states + (size_t) at * 4);
}

/* Returns the state of the group at an offset, or NULL. */
static inline TopState *
group_state(const TopEntries *top, uint32 at)
{
	return (TopState *) DatumGetPointer(group_entry(top, at)->value);
}

/* Returns the column that has the keys. */
static inline const Column *
key_column(const TopEntries *top, const Batch *batch)
{
	return &batch->cols[top->fallback->argcol[top->fallback->nargs - 1]];
}

/* Returns whether row i of a batch counts: it passes the filter, and its key is not NULL. */
static inline bool
row_counts(const TopEntries *top, const Batch *batch, const Column *keys, int i)
{
	if (column_is_null(keys, i))
		return false;
	if (top->fallback->filter >= 0)
	{
		const Column *filter = &batch->cols[top->fallback->filter];

		return !column_is_null(filter, i) && ((const int8 *) filter->values)[i] != 0;
	}
	return true;
}

/* Offers row i of a batch, which counts, to the state of the group at an offset. */
static pg_noinline void
offer_row(const TopEntries *top, const Batch *batch, uint32 at, int i)
{
	const Column *keys = key_column(top, batch);
	const Column *values = &batch->cols[top->fallback->argcol[0]];
	MemoryContext cxt = top->context(top->arg, at);
	MemoryContext old = MemoryContextSwitchTo(top->temp);
	TopState *state = group_state(top, at);
	NullableDatum value = {0};

	/* comparing values may take long */
	CHECK_FOR_INTERRUPTS();
	if (state == NULL)
	{
		FallbackState *entry = group_entry(top, at);

		state = top_n_create(top->call, cxt);
		entry->value = PointerGetDatum(state);
		entry->isnull = entry->notrans = entry->fresh = false;
	}
	if (top->call->form & TOP_OF_KEYS)
	{
		value.isnull = column_is_null(values, i);
		if (!value.isnull)
			value.value = column_datum(values->type, values->scale, values->values, i);
	}
	top_n_offer(state, &top->call->types, top->call->collation,
				column_datum(keys->type, keys->scale, keys->values, i), value, cxt);
	MemoryContextSwitchTo(old);
	if (values->type == COLUMN_DATUM)
		MemoryContextReset(top->temp);
}

void
top_entries_add_row(const TopEntries *top, const Batch *batch, uint32 at, int i)
{
	if (row_counts(top, batch, key_column(top, batch), i))
		offer_row(top, batch, at, i);
}

/* Prefetches what the rows after row i need, first the group, then its state. */
static pg_attribute_always_inline void
prefetch(const TopEntries *top, const uint32 *at, int i, int n)
{
	if (i + PREFETCH_ROWS >= n)
		return;
	if (at[i + PREFETCH_ROWS] != NO_GROUP)
		__builtin_prefetch(group_entry(top, at[i + PREFETCH_ROWS]), 1);
	if (at[i + PREFETCH_STATES] != NO_GROUP)
	{
		const char *state = (const char *) group_state(top, at[i + PREFETCH_STATES]);

		__builtin_prefetch(state, 1);
		__builtin_prefetch(state + sizeof(TopState) + sizeof(Datum), 1);
	}
}

/*
 * Adds all rows of a batch whose keys have the C type value_t. A NaN is never found to be worse
 * here, nor is it found that another key is worse than a NaN; top_n.c compares these.
 */
#define ADD_ROWS(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	static void add_##NAME##_rows(const TopEntries *top, const Batch *batch, const Column *keys) \
	{ \
		const value_t *x = keys->values; \
		const uint32 *at = top->table->at; \
		bool smallest = (top->call->form & TOP_SMALLEST) != 0; \
		bool keys_only = (top->call->form & TOP_OF_KEYS) == 0; \
\
		for (int i = 0; i < batch->nrows; i++) \
		{ \
			const TopState *state; \
\
			prefetch(top, at, i, batch->nrows); \
			if (at[i] == NO_GROUP || !row_counts(top, batch, keys, i)) \
				continue; \
			state = group_state(top, at[i]); \
			if (likely(state != NULL) && state->count == state->n) \
			{ \
				Datum last = state->keys[state->n - 1]; \
\
				if ((smallest ? x[i] > from_datum(last) : x[i] < from_datum(last)) || \
					(keys_only && to_datum(x[i]) == last)) \
					continue; \
			} \
			offer_row(top, batch, at[i], i); \
		} \
	}
COLUMN_SCALARS(ADD_ROWS)
#undef ADD_ROWS

void
top_entries_add_batch(const TopEntries *top, const Batch *batch)
{
	const Column *keys = key_column(top, batch);

	switch (keys->type)
	{
#define X(NAME, ...) \
	case COLUMN_##NAME: \
		add_##NAME##_rows(top, batch, keys); \
		break;
		COLUMN_SCALARS(X)
#undef X
		default:
			elog(ERROR, "keys of column type %d have no codes", (int) keys->type);
	}
}

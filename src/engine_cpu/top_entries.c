/*
 * top_entries.c
 *	  The n best entries of groups (aggregates/top_n.c), a batch at a time.
 *
 * The aggregates are fallback aggregates, but columns of integers, floats and decimals are added to
 * their states here, without calls of transition functions. A key has a rank, an integer that is
 * smaller for better keys. Most rows have a greater rank than the last entry of a full state. The
 * upper half of that entry's rank is next to the group's keys (FallbackState.bound), so that such a
 * row is dropped before its state is read. Of the other rows, those with by-value entries and a
 * small n are inserted here; all others are left to top_n.c.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "columns/column_value.h"
#include "engine_cpu/top_entries.h"

/* Rows of groups are prefetched so many rows of the batch ahead. */
#define PREFETCH_ROWS 24

/*
 * So many rows of the batch are picked, which prefetches their states, before they are added. Both
 * passes find the rows of groups in the CPU's first cache.
 */
#define BLOCK_ROWS 128

/* States with more entries than this are searched by top_n.c. */
#define MOST_SEARCHED 32

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

/* A slab's allocations, of which the first one is small, as there may be many aggregates. */
#define CACHE_LINE 64
#define SLAB_FIRST 512
#define SLAB_MOST 4096

/* Returns an empty state in cxt, in one cache line if it is small enough. */
static TopState *
create_state(const TopEntries *top, MemoryContext cxt)
{
	TopSlab *slab = top->slab;

	if (slab == NULL || top_n_empty_bytes(top->call) > CACHE_LINE)
		return top_n_create(top->call, cxt);
	if (slab->left == 0)
	{
		slab->bytes = slab->bytes == 0 ? SLAB_FIRST : Min(slab->bytes * 2, SLAB_MOST);
		slab->next = (char *) TYPEALIGN(CACHE_LINE, MemoryContextAlloc(cxt, slab->bytes));
		slab->left = slab->bytes / CACHE_LINE - 1;
	}
	slab->left--;
	slab->next += CACHE_LINE;
	return top_n_init(top->call, slab->next - CACHE_LINE);
}

/* Returns the key in row i, which is not NULL. Numerics are made in the current context. */
static inline Datum
key_datum(const Column *keys, int i)
{
	if (keys->type == COLUMN_DEC && column_is_unrepresentable(keys, i))
		return keys->unrepresentable_values[i];
	return column_datum(keys->type, keys->scale, keys->values, i);
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

		state = create_state(top, cxt);
		entry->value = PointerGetDatum(state);
		entry->isnull = entry->notrans = entry->fresh = false;
	}
	if (top->call->form & TOP_OF_KEYS)
	{
		value.isnull = column_is_null(values, i);
		if (!value.isnull)
			value.value = column_datum(values->type, values->scale, values->values, i);
	}
	top_n_offer(state, &top->call->types, top->call->collation, key_datum(keys, i), value, cxt);
	MemoryContextSwitchTo(old);
	if (values->type == COLUMN_DATUM || keys->type == COLUMN_DEC)
		MemoryContextReset(top->temp);
}

void
top_entries_add_row(const TopEntries *top, const Batch *batch, uint32 at, int i)
{
	if (row_counts(top, batch, key_column(top, batch), i))
		offer_row(top, batch, at, i);
}

/* Prefetches a state with few entries. It is always inline, see fallback.c. */
static pg_attribute_always_inline void
prefetch_state(const TopState *state)
{
	__builtin_prefetch(state, 1);
	__builtin_prefetch((const char *) (state + 1) + sizeof(Datum), 1);
}

/*
 * Adds an entry to a state with by-value entries, and with room if it is not full. `place`: the
 * number of entries before which it does not belong, less than n.
 */
static inline void
insert_entry(TopState *state, int place, Datum key, const Column *values, int i)
{
	int last = Min(state->count, state->n - 1);

	for (int e = last; e > place; e--)
		state->keys[e] = state->keys[e - 1];
	state->keys[place] = key;
	if (state->form & TOP_OF_KEYS)
	{
		NullableDatum *entries = top_n_values(state);

		for (int e = last; e > place; e--)
			entries[e] = entries[e - 1];
		entries[place].isnull = column_is_null(values, i);
		entries[place].value =
			entries[place].isnull ? 0 : column_datum(values->type, 0, values->values, i);
	}
	state->count = last + 1;
}

/* Returns whether a row can be inserted here, rather than by top_n.c. */
static inline bool
can_insert(const TopState *state, const Column *values)
{
	return state != NULL && state->n <= MOST_SEARCHED && values->type != COLUMN_DATUM &&
		(state->count == state->n || state->count < state->capacity);
}

/*
 * Returns the upper half of a rank, as an unsigned integer. Ranks of narrow types have all their
 * bits in the lower half.
 */
static inline uint32
upper_half(int64 rank, bool narrow)
{
	return narrow ? (uint32) (rank + PG_INT32_MAX + 1) :
					(uint32) ((uint64) rank >> 32) ^ ((uint32) 1 << 31);
}

#define INTEGER_CODE(x) ((int64) (x))
#define FLOAT_CODE(x) gpuagg_f64_code((double) (x) + 0.0)
#define RANK(code) (smallest ? (code) : ~(code))

/* True for signed integers of at most 32 bits. */
#define IS_NARROW(value_t) \
	(sizeof(value_t) <= 4 && (value_t) 0.5 == 0 && (value_t) -1 < (value_t) 1)

/*
 * Functions for keys of the C type value_t:
 *
 * - NAME_pick writes those of the given rows that may be among the n best of their groups to
 *   top->picked, prefetches their states, and returns how many these are.
 * - NAME_add adds one such row to its state.
 * - NAME_add_picked adds all of them.
 */
#define ADD_ROWS(NAME, value_t, CODE, from_datum, to_datum) \
	static int NAME##_pick(const TopEntries *top, const Batch *batch, const Column *keys, \
						   int from, int to, bool smallest) \
	{ \
		const value_t *x = keys->values; \
		const uint32 *at = top->table->at; \
		int n = 0; \
		for (int i = from; i < to; i++) \
		{ \
			if (i + PREFETCH_ROWS < batch->nrows && at[i + PREFETCH_ROWS] != NO_GROUP) \
				__builtin_prefetch(group_entry(top, at[i + PREFETCH_ROWS]), 1); \
			if (at[i] != NO_GROUP && \
				upper_half(RANK(CODE(x[i])), IS_NARROW(value_t)) <= \
					group_entry(top, at[i])->bound && \
				row_counts(top, batch, keys, i)) \
			{ \
				prefetch_state(group_state(top, at[i])); \
				top->picked[n++] = i; \
			} \
		} \
		return n; \
	} \
	static inline void NAME##_add(const TopEntries *top, const Batch *batch, const Column *keys, \
								  const Column *values, uint32 at, int i, bool smallest) \
	{ \
		value_t x = ((const value_t *) keys->values)[i]; \
		TopState *state = group_state(top, at); \
		int64 rank = RANK(CODE(x)); \
		Datum key = to_datum(x); \
		bool insert = can_insert(state, values); \
		int place = insert ? state->count : 0; \
		for (; place > 0 && insert; place--) \
		{ \
			int64 other = RANK(CODE(from_datum(state->keys[place - 1]))); \
			if (rank > other) \
				break; \
			if (rank == other && (state->form & TOP_OF_KEYS)) \
				insert = false; \
			else if (rank == other && (int64) key >= (int64) state->keys[place - 1]) \
				break; \
		} \
		if (!insert) \
			offer_row(top, batch, at, i); \
		else if (place < state->n) \
			insert_entry(state, place, key, values, i); \
		state = group_state(top, at); \
		if (state->count == state->n) \
			group_entry(top, at)->bound = \
				upper_half(RANK(CODE(from_datum(state->keys[state->n - 1]))), IS_NARROW(value_t)); \
	} \
	static void NAME##_add_picked(const TopEntries *top, const Batch *batch, const Column *keys, \
								  bool smallest) \
	{ \
		const Column *values = &batch->cols[top->fallback->argcol[0]]; \
		const uint32 *at = top->table->at; \
		for (int from = 0; from < batch->nrows; from += BLOCK_ROWS) \
		{ \
			int to = Min(from + BLOCK_ROWS, batch->nrows); \
			int n = NAME##_pick(top, batch, keys, from, to, smallest); \
			for (int p = 0; p < n; p++) \
				NAME##_add(top, batch, keys, values, at[top->picked[p]], top->picked[p], \
						   smallest); \
		} \
	}
#define ADD_INTEGERS(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	ADD_ROWS(NAME, value_t, INTEGER_CODE, from_datum, to_datum)
#define ADD_FLOATS(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	ADD_ROWS(NAME, value_t, FLOAT_CODE, from_datum, to_datum)
COLUMN_INTEGERS(ADD_INTEGERS)
COLUMN_FLOATS(ADD_FLOATS)
#undef ADD_FLOATS
#undef ADD_INTEGERS
#undef ADD_ROWS

/*
 * Returns an unsigned integer that is not smaller for a greater decimal. For most pairs of decimals
 * whose quotient is not near 1, it is greater.
 */
static inline uint32
decimal_code(gpuagg_i128 x)
{
	float nearest = x == (int64) x ? (float) (int64) x : (float) x;
	uint32 sign = (uint32) 1 << 31;
	uint32 bits;

	memcpy(&bits, &nearest, sizeof(bits));
	return bits & sign ? ~bits : bits | sign;
}

/* Sets the bound of the group at an offset, if its state is full and its last key a decimal. */
static void
set_decimal_bound(const TopEntries *top, const Column *keys, uint32 at, bool smallest)
{
	const TopState *state = group_state(top, at);
	gpuagg_i128 last;

	group_entry(top, at)->bound = PG_UINT32_MAX;
	if (state->count == state->n &&
		column_store_decimal(keys->scale, &last, state->keys[state->n - 1]))
		group_entry(top, at)->bound = RANK(decimal_code(last));
}

/*
 * Adds the rows of a batch whose keys are numerics. All rows that may be among the n best are
 * offered, and so are keys that are not decimals of the column's scale. So equal keys with other
 * display scales have their order.
 */
static void
add_decimals(const TopEntries *top, const Batch *batch, const Column *keys, bool smallest)
{
	const gpuagg_i128 *x = keys->values;
	const uint32 *at = top->table->at;

	for (int i = 0; i < batch->nrows; i++)
	{
		if (i + PREFETCH_ROWS < batch->nrows && at[i + PREFETCH_ROWS] != NO_GROUP)
			__builtin_prefetch(group_entry(top, at[i + PREFETCH_ROWS]), 1);
		if (at[i] == NO_GROUP || !row_counts(top, batch, keys, i) ||
			(!column_is_unrepresentable(keys, i) &&
			 RANK(decimal_code(x[i])) > group_entry(top, at[i])->bound))
			continue;
		offer_row(top, batch, at[i], i);
		set_decimal_bound(top, keys, at[i], smallest);
	}
}

bool
top_entries_are_by_value(const AggSpec *spec, const FallbackAgg *fallback)
{
	for (int a = 0; a < fallback->nargs; a++)
		if (spec->cols[fallback->argcol[a]].type == COLUMN_DATUM ||
			spec->cols[fallback->argcol[a]].type == COLUMN_DEC)
			return false;
	return true;
}

void
top_entries_add_batch(const TopEntries *top, const Batch *batch)
{
	const Column *keys = key_column(top, batch);
	bool smallest = (top->call->form & TOP_SMALLEST) != 0;

	switch (keys->type)
	{
#define X(NAME, ...) \
	case COLUMN_##NAME: \
		NAME##_add_picked(top, batch, keys, smallest); \
		break;
		COLUMN_SCALARS(X)
#undef X
		case COLUMN_DEC:
			add_decimals(top, batch, keys, smallest);
			break;
		default:
			elog(ERROR, "keys of column type %d have no codes", (int) keys->type);
	}
}

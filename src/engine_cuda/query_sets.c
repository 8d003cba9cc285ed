/*
 * query_sets.c
 *	  Translates distinct values, ordered sets and the n best values for the GPU server, as
 *	  sets of values that have integer codes.
 *
 * An ordered set becomes slots: the number of a group's values, and the position of the first or of
 * the most frequent one. With these positions ordered_sets.c picks the values that it needs,
 * top_n.c the first or last n, and tallies.c all of them with their numbers of rows.
 *
 * Also translates min() and max() of texts, as those of ranks.
 */
#include "postgres.h"

#include "utils/fmgroids.h"
#include "utils/typcache.h"

#include "aggregates/agg_tally.h"
#include "aggregates/top_n.h"
#include "columns/column_value.h"
#include "engine_cuda/query.h"
#include "key_spec.h"

/*
 * Adds a set of a column of the message, over rows for which a column of the spec is true, unless
 * there is an equal one. Returns its number; -1 if there are too many.
 */
static int
add_wire_set(CudaQuery *query, int filter, WireSet set)
{
	WireQuery *wire = query->wire;

	set.filter = -1;
	if (filter >= 0)
		set.filter = cuda_query_add_column(query, filter, TRAVEL_FILTER, WIRE_I8, -1);
	if (set.col < 0 || (filter >= 0 && set.filter < 0))
		return -1;
	for (int s = 0; s < wire->nsets; s++)
		if (memcmp(&wire->sets[s], &set, sizeof(set)) == 0)
			return s;
	if (wire->nsets == WIRE_MAX_SETS)
		return -1;
	wire->sets[wire->nsets] = set;
	return wire->nsets++;
}

/* The same without values beside others. */
static int
add_set(CudaQuery *query, int col, int filter)
{
	return add_wire_set(query, filter, (WireSet){.col = col, .beside = -1});
}

/*
 * Returns the message's column with a value's integers; floats are sent as `codes`. -1: there are
 * too many columns, or the type has no integers.
 */
static int
add_values(CudaQuery *query, int col, Travel codes)
{
	ColumnType type = query->spec->cols[col].type;

	if (column_is_float(type))
		return cuda_query_add_column(query, col, codes, WIRE_I64, -1);
	if (cuda_native_type(type) < 0)
		return -1;
	return cuda_query_add_column(query, col, TRAVEL_VALUES,
								 type == COLUMN_U32 ? WIRE_I64 : cuda_native_type(type), -1);
}

/*
 * Returns the spec's column whose integers are equal exactly where the values of a set are equal;
 * -1 if there is none. It is the values' own column; for numerics that core's functions compare, it
 * is the column of decimals that the slot reads.
 */
static int
comparable_column(const AggSpec *spec, const KeySpec *value, const SlotSpec *slot)
{
	const ColumnSpec *read = slot->col[0] < 0 ? NULL : &spec->cols[slot->col[0]];

	if (value->kind != KEY_DATUM)
		return value->col;
	return read && read->type == COLUMN_DEC && read->input == spec->cols[value->col].input ?
		slot->col[0] :
		-1;
}

/*
 * Returns whether another equal row changes nothing, so that distinct values and all values give
 * the same result.
 */
static bool
is_idempotent(MonoidId monoid)
{
	return (monoid >= MONOID_MIN_I32 && monoid <= MONOID_MAX_DEC) || monoid == MONOID_BIT_AND ||
		monoid == MONOID_BIT_OR;
}

/* Returns whether the operator can read distinct values, which the server has in 64 bits. */
static bool
reads_values(const CudaQuery *query, const SlotSpec *slot, int col)
{
	if (slot->bins.kind != BIN_NONE || slot->col[1] >= 0 || slot->filter >= 0)
		return false;
	if (slot->monoid == MONOID_COUNT)
		return true;
	return slot->col[0] == col && !column_is_float(query->spec->cols[col].type) &&
		(is_idempotent(slot->monoid) || slot->monoid == MONOID_BIT_XOR ||
		 slot->monoid == MONOID_SUM_I64 || slot->monoid == MONOID_SUM_I128 ||
		 slot->monoid == MONOID_SUM_DEC || slot->monoid == MONOID_SUMSQ_I192);
}

/*
 * Returns the message's column with codes of distinct values that have no integers; -1: there are
 * too many columns.
 */
static int
add_numbered(CudaQuery *query, const KeySpec *value)
{
	int col = cuda_query_add_column(query, value->col, TRAVEL_SET_CODES, WIRE_I32, -1);

	if (col >= 0)
		query->cols[col].equality = value;
	return col;
}

bool
cuda_query_distinct_slot(CudaQuery *query, int s, const char **why)
{
	const AggSpec *spec = query->spec;
	const SlotSpec *slot = &spec->slots[s];
	const DistinctSpec *distinct = &spec->distincts[slot->set - 1];
	WireSlot out = {
		.monoid = slot->monoid, .col = {-1, -1}, .filter = -1, .width = 1, .input = WIRE_DISTINCT};
	const KeySpec *value = &distinct->values[0];
	int col = comparable_column(spec, value, slot), set;
	bool numbered = col < 0 && slot->monoid == MONOID_COUNT;

	*why = distinct->all_rows ?
		"aggregates with different ORDER BY clauses are not supported on the GPU" :
		distinct->nvalues > 1 ? "DISTINCT over several arguments is not supported on the GPU" :
		col < 0 && !numbered  ? "DISTINCT values of this type are not supported on the GPU" :
								"this DISTINCT aggregate is not supported on the GPU";
	if (distinct->all_rows || distinct->nvalues > 1 || (col < 0 && !numbered) ||
		!reads_values(query, slot, col))
		return false;
	*why = "the query has more DISTINCT aggregates than the GPU supports";
	col = numbered ? add_numbered(query, value) : add_values(query, col, TRAVEL_KEY_CODES);
	if (slot->monoid != MONOID_COUNT)
		out.col[0] = col;
	if (is_idempotent(slot->monoid))
	{
		out.input = WIRE_ROWS;
		if (distinct->filter >= 0)
			out.filter = cuda_query_add_column(query, distinct->filter, TRAVEL_FILTER, WIRE_I8, -1);
		if (col < 0 || (distinct->filter >= 0 && out.filter < 0))
			return false;
	}
	else
	{
		set = add_set(query, col, distinct->filter);
		if (set < 0)
			return false;
		out.set = set;
	}
	query->slot[s] = cuda_query_add_slot(query, &out);
	return true;
}

/* Returns a slot with a position of the set. Its index may be too large by one. */
static int
add_position_slot(CudaQuery *query, int set, WireSlotInput input)
{
	WireSlot slot = {
		.monoid = MONOID_COUNT, .col = {-1, -1}, .filter = -1, .width = 1, .input = input};

	slot.set = set;
	return cuda_query_add_slot(query, &slot);
}

/* Returns the slot with the number of a group's values in a set, those of a column of the spec. */
static int
add_number_slot(CudaQuery *query, int set, int col)
{
	WireSlot slot = {.monoid = MONOID_COUNT, .col = {-1, -1}, .width = 1};

	slot.col[0] = cuda_query_add_column(query, col, TRAVEL_PRESENCE, WIRE_I8, -1);
	slot.filter = query->wire->sets[set].filter;
	return slot.col[0] < 0 ? -1 : cuda_query_add_slot(query, &slot);
}

/*
 * Adds the slots for one set of values: the number of a group's values, the position of the first
 * one, and the most frequent one.
 */
static bool
add_value_slots(CudaQuery *query, int v)
{
	const AggSpec *spec = query->spec;
	const ValuesSpec *values = &spec->values[v];
	int any = -1;

	query->values[v] = query->mode_set[v] = query->mode[0][v] = query->mode[1][v] = -1;
	for (int o = 0; o < spec->nordered_sets; o++)
	{
		const OrderedSetSpec *ordered = &spec->ordered_sets[o];
		bool mode = ordered->kind == ORDERED_SET_MODE;
		int *set = mode ? &query->mode_set[v] : &query->values[v];

		if (ordered->values != v)
			continue;
		*set = add_set(query,
					   add_values(query, values->col, mode ? TRAVEL_KEY_CODES : TRAVEL_VALUE_CODES),
					   values->filter);
		if (*set < 0)
			return false;
		if (mode)
			query->mode[ordered->desc][v] =
				add_position_slot(query, *set, ordered->desc ? WIRE_MODE_LAST : WIRE_MODE);
		else
			query->first[v] = add_position_slot(query, *set, WIRE_FIRST);
		any = *set;
	}
	query->number[v] = add_number_slot(query, any, values->col);
	return query->number[v] >= 0;
}

bool
cuda_query_ordered_sets(CudaQuery *query, const char **why)
{
	const AggSpec *spec = query->spec;

	/* core's mode keeps the sign of a zero */
	*why = "mode() of floats is not supported on the GPU";
	for (int o = 0; o < spec->nordered_sets; o++)
		if (spec->ordered_sets[o].kind == ORDERED_SET_MODE &&
			column_is_float(spec->cols[spec->values[spec->ordered_sets[o].values].col].type))
			return false;
	for (int v = 0; v < spec->nvalues; v++)
	{
		*why = "ordered-set aggregates of this type are not supported on the GPU";
		if (!spec->values[v].coded)
			return false;
		*why = "the query has more ordered-set aggregates than the GPU supports";
		if (v == WIRE_MAX_SETS || !add_value_slots(query, v))
			return false;
	}
	return true;
}

/*
 * Adds a column that gpu_max_n or its like returns; -1: there are too many columns, or the type has
 * no integers.
 */
static int
add_returned(CudaQuery *query, int col)
{
	int c = add_values(query, col, TRAVEL_VALUE_CODES);

	if (c >= 0 && column_is_float(query->spec->cols[col].type))
		query->cols[c].returned = true;
	return c;
}

/*
 * Adds the set of an aggregate: keys, ascending, and values beside them. The last keys are the best
 * for gpu_argmax_n, from the end on, and equal ones then have ascending values, NULL last.
 */
static int
add_top_n_set(CudaQuery *query, const FallbackAgg *fallback)
{
	bool smallest = (top_n_form_of(&fallback->transfn) & TOP_SMALLEST) != 0;
	int key = add_returned(query, fallback->argcol[fallback->nargs - 1]);
	int value;

	if (fallback->nargs == 1)
		return add_set(query, key, fallback->filter);
	value = add_returned(query, fallback->argcol[0]);
	return value < 0 ?
		-1 :
		add_wire_set(query, fallback->filter,
					 (WireSet){.col = key, .beside = value, .descending = !smallest});
}

/* Returns whether the values of a column are codes that become its Datums again. */
static bool
has_codes(const AggSpec *spec, int col)
{
	return column_is_float(spec->cols[col].type) || column_is_integer(spec->cols[col].type);
}

bool
cuda_query_top_n(CudaQuery *query, const char **why)
{
	const AggSpec *spec = query->spec;

	query->top_n = palloc0(sizeof(CudaTopN) * (spec->nfallbacks + 1));
	for (int f = 0; f < spec->nfallbacks; f++)
	{
		const FallbackAgg *fallback = &spec->fallbacks[f];
		CudaTopN *top = &query->top_n[f];

		if (fallback->top_n == 0)
			continue;
		*why = "the n best DISTINCT values are not supported on the GPU";
		if (fallback->set > 0)
			return false;
		*why = "the n best of this type are not supported on the GPU";
		if (!has_codes(spec, fallback->argcol[0]) ||
			!has_codes(spec, fallback->argcol[fallback->nargs - 1]))
			return false;
		*why = "the query has more aggregates of the n best than the GPU supports";
		top->set = add_top_n_set(query, fallback);
		if (top->set < 0)
			return false;
		/* two slots for each */
		if (query->wire->nslots > WIRE_MAX_SLOTS - 2)
			return false;
		top->first = add_position_slot(query, top->set, WIRE_FIRST);
		top->number = add_number_slot(query, top->set, fallback->argcol[fallback->nargs - 1]);
		if (top->number < 0)
			return false;
	}
	return true;
}

/* Adds a column of values that travel as numbers in a dictionary. Returns its number, or -1. */
static int
add_numbers(CudaQuery *query, const FallbackAgg *fallback)
{
	int col = fallback->argcol[0];
	Oid type = query->spec->cols[col].typid;
	const TypeCacheEntry *entry =
		lookup_type_cache(type, TYPECACHE_HASH_PROC_FINFO | TYPECACHE_EQ_OPR_FINFO);
	int c = cuda_query_add_column(query, col, TRAVEL_NUMBERS, WIRE_I32, -1);
	KeySpec *key;

	if (c < 0 || query->cols[c].equality)
		return c;
	key = palloc0(sizeof(KeySpec));
	key->col = col;
	key->kind = KEY_DATUM;
	key->eqfunc = entry->eq_opr_finfo.fn_oid;
	key->hashfunc = entry->hash_proc_finfo.fn_oid;
	key->collation = fallback->collation;
	key->varies = key_varies(type, key->eqfunc, key->collation);
	query->cols[c].equality = key;
	return c;
}

/* Adds a slot with the number of a group's rows that pass the set's filter. */
static int
add_rows_slot(CudaQuery *query, int set)
{
	WireSlot slot = {.monoid = MONOID_COUNT, .col = {-1, -1}, .width = 1};

	slot.filter = query->wire->sets[set].filter;
	return cuda_query_add_slot(query, &slot);
}

/* Adds the set and the slots of an aggregate of counted values. */
static bool
add_tally(CudaQuery *query, const FallbackAgg *fallback, CudaTally *tally)
{
	WireSlot slot = {
		.monoid = MONOID_COUNT, .col = {-1, -1}, .filter = -1, .width = 1, .input = WIRE_DISTINCT};
	int from = fallback->argcol[0];
	bool numbers = query->spec->cols[from].type == COLUMN_DATUM;
	int col = numbers ? add_numbers(query, fallback) : add_values(query, from, TRAVEL_KEY_CODES);

	tally->set =
		add_wire_set(query, fallback->filter, (WireSet){.col = col, .beside = -1, .counted = 1});
	if (tally->set < 0 || query->wire->nslots > WIRE_MAX_SLOTS - 4)
		return false;
	slot.set = tally->set;
	tally->distinct = cuda_query_add_slot(query, &slot);
	tally->first = add_position_slot(query, tally->set, WIRE_FIRST);
	tally->rows = -1;
	if (numbers || fallback->tally->add_nulls)
		tally->rows = add_rows_slot(query, tally->set);
	tally->number = numbers ? tally->rows : add_number_slot(query, tally->set, from);
	return tally->number >= 0;
}

bool
cuda_query_tallies(CudaQuery *query, const char **why)
{
	const AggSpec *spec = query->spec;

	query->tallies = palloc0(sizeof(CudaTally) * (spec->nfallbacks + 1));
	*why = "the query has more aggregates of counted values than the GPU supports";
	for (int f = 0; f < spec->nfallbacks; f++)
		if (spec->fallbacks[f].tally && !add_tally(query, &spec->fallbacks[f], &query->tallies[f]))
			return false;
	return true;
}

/* Translates min() or max() of texts to that of their ranks. */
static bool
translate_ranked(CudaQuery *query, int f, const char **why)
{
	const FallbackAgg *fallback = &query->spec->fallbacks[f];
	WireSlot slot = {.monoid = fallback->transfn.fn_oid == F_TEXT_SMALLER ? MONOID_MIN_I32 :
																			MONOID_MAX_I32,
					 .col = {-1, -1},
					 .filter = -1,
					 .width = 1};
	CudaColumn *col;

	*why = "the query has more aggregates than the GPU supports";
	slot.col[0] = cuda_query_add_column(query, fallback->argcol[0], TRAVEL_RANKS, WIRE_I32, -1);
	if (fallback->filter >= 0)
		slot.filter = cuda_query_add_column(query, fallback->filter, TRAVEL_FILTER, WIRE_I8, -1);
	if (slot.col[0] < 0 || (fallback->filter >= 0 && slot.filter < 0))
		return false;
	col = &query->cols[slot.col[0]];
	*why = "texts are compared by different collations";
	if (OidIsValid(col->collation) && col->collation != fallback->collation)
		return false;
	col->collation = fallback->collation;
	query->ranked[f].col = slot.col[0];
	query->ranked[f].slot = cuda_query_add_slot(query, &slot);
	return true;
}

bool
cuda_query_ranked(CudaQuery *query, const char **why)
{
	const AggSpec *spec = query->spec;

	query->ranked = palloc0(sizeof(CudaRanked) * (spec->nfallbacks + 1));
	for (int f = 0; f < spec->nfallbacks; f++)
	{
		query->ranked[f].slot = -1;
		if (!spec->fallbacks[f].ranked)
			continue;
		*why = "the least or greatest text is not found with other aggregates that depend on order "
			   "on the GPU";
		if (spec->ordered)
			return false;
		if (!translate_ranked(query, f, why))
			return false;
	}
	return true;
}

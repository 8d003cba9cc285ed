/*
 * spec.c
 *	  Builds an AggSpec: adds columns, slots, fallback aggregates, row sets and ordered sets.
 *
 * Arrays are allocated in the current memory context.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "spec.h"

/*
 * Returns an array of n entries, of `size` bytes each, with room for one more.  It may have moved:
 * it grows when n is a power of two.
 */
static void *
spec_grow(void *array, int n, size_t size)
{
	if (n == 0)
		return palloc0(size);
	if ((n & (n - 1)) == 0)
		return repalloc(array, 2 * n * size);
	return array;
}

int
spec_find_column(const AggSpec *spec, const ColumnSpec *col)
{
	for (int i = 0; i < spec->ncols; i++)
		if (spec->cols[i].input == col->input && spec->cols[i].type == col->type &&
			spec->cols[i].scale == col->scale && spec->cols[i].form == col->form)
			return i;
	return -1;
}

int
spec_add_column(AggSpec *spec, const ColumnSpec *col)
{
	int found = spec_find_column(spec, col);

	if (found >= 0)
		return found;
	spec->cols = spec_grow(spec->cols, spec->ncols, sizeof(ColumnSpec));
	spec->cols[spec->ncols] = *col;
	return spec->ncols++;
}

/* Returns whether two slots with these bins have the same bin for each row. */
static bool
bins_equal(const BinSpec *a, const BinSpec *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind)
	{
		case BIN_NONE:
			return true;
		case BIN_UNIFORM:
			return a->lo == b->lo && a->hi == b->hi && a->n == b->n;
		case BIN_THRESHOLDS:
			return a->n == b->n && memcmp(a->thresholds, b->thresholds, a->n * sizeof(double)) == 0;
		case BIN_HLL:
			return a->n == b->n;
	}
	return false;
}

int
spec_bins_width(const BinSpec *bins)
{
	switch (bins->kind)
	{
		case BIN_NONE:
			return 1;
		case BIN_UNIFORM:
			return bins->n + 2;
		case BIN_THRESHOLDS:
			return bins->n + 1;
		case BIN_HLL:
			return bins->n;
	}
	return 1;
}

int
spec_add_slot(AggSpec *spec, MonoidId monoid, int col0, int col1, int filter, int set,
			  const BinSpec *bins)
{
	static const BinSpec none = {BIN_NONE};
	SlotSpec *slot;

	if (bins == NULL)
		bins = &none;
	for (int i = 0; i < spec->nslots; i++)
	{
		slot = &spec->slots[i];
		if (slot->monoid == monoid && slot->col[0] == col0 && slot->col[1] == col1 &&
			slot->filter == filter && slot->set == set && bins_equal(&slot->bins, bins))
			return i;
	}
	spec->slots = spec_grow(spec->slots, spec->nslots, sizeof(SlotSpec));
	slot = &spec->slots[spec->nslots];
	slot->monoid = monoid;
	slot->col[0] = col0;
	slot->col[1] = col1;
	slot->filter = filter;
	slot->set = set;
	slot->bins = *bins;
	slot->width = spec_bins_width(bins);
	slot->mean_only = false;
	if (!gpuagg_monoids[monoid].commutative)
		spec->ordered = true;
	return spec->nslots++;
}

/* Returns whether one state can serve both aggregates. */
static bool
fallback_equal(const FallbackAgg *a, const FallbackAgg *b)
{
	/* two aggregates with one transition function may differ in their initial states */
	return (a->aggfnoid == b->aggfnoid || (a->exact && b->exact)) &&
		a->transfn.fn_oid == b->transfn.fn_oid && a->collation == b->collation &&
		a->transtype == b->transtype && a->nargs == b->nargs && a->filter == b->filter &&
		a->set == b->set && a->unrepresentable_only == b->unrepresentable_only &&
		a->top_n == b->top_n && a->tally == b->tally && a->constant == b->constant &&
		a->only_result == b->only_result &&
		memcmp(a->argcol, b->argcol, a->nargs * sizeof(int)) == 0;
}

uint32
spec_layout(const AggSpec *spec)
{
	uint32 hash = murmurhash32(spec->nkeys);

	for (int s = 0; s < spec->nslots; s++)
	{
		hash = hash_combine(hash, spec->slots[s].monoid);
		hash = hash_combine(hash, spec->slots[s].width);
	}
	for (int o = 0; o < spec->nfallbacks; o++)
		hash = hash_combine(hash, spec->fallbacks[o].aggfnoid);
	return hash;
}

int
spec_add_fallback(AggSpec *spec, const FallbackAgg *fallback)
{
	for (int i = 0; i < spec->nfallbacks; i++)
		if (fallback_equal(&spec->fallbacks[i], fallback))
			return i;
	spec->fallbacks = spec_grow(spec->fallbacks, spec->nfallbacks, sizeof(FallbackAgg));
	spec->fallbacks[spec->nfallbacks] = *fallback;
	return spec->nfallbacks++;
}

/* Returns whether two row sets have the same rows in the same order. */
static bool
distinct_equal(const DistinctSpec *a, const DistinctSpec *b)
{
	if (a->all_rows != b->all_rows || a->nvalues != b->nvalues || a->filter != b->filter)
		return false;
	for (int v = 0; v < a->nvalues; v++)
		if (a->values[v].col != b->values[v].col || a->values[v].eqfunc != b->values[v].eqfunc ||
			a->values[v].collation != b->values[v].collation || a->sortops[v] != b->sortops[v] ||
			a->nulls_first[v] != b->nulls_first[v])
			return false;
	return true;
}

int
spec_add_distinct(AggSpec *spec, const DistinctSpec *distinct)
{
	for (int i = 0; i < spec->ndistincts; i++)
		if (distinct_equal(&spec->distincts[i], distinct))
			return i;
	spec->distincts = spec_grow(spec->distincts, spec->ndistincts, sizeof(DistinctSpec));
	spec->distincts[spec->ndistincts] = *distinct;
	return spec->ndistincts++;
}

int
spec_add_values(AggSpec *spec, const ValuesSpec *values)
{
	for (int i = 0; i < spec->nvalues; i++)
		if (spec->values[i].col == values->col && spec->values[i].ltop == values->ltop &&
			spec->values[i].collation == values->collation &&
			spec->values[i].filter == values->filter)
			return i;
	spec->values = spec_grow(spec->values, spec->nvalues, sizeof(ValuesSpec));
	spec->values[spec->nvalues] = *values;
	return spec->nvalues++;
}

/* Equal entries are not shared: they may have different fractions. */
int
spec_add_ordered_set(AggSpec *spec, const OrderedSetSpec *set)
{
	spec->ordered_sets = spec_grow(spec->ordered_sets, spec->nordered_sets, sizeof(OrderedSetSpec));
	spec->ordered_sets[spec->nordered_sets] = *set;
	return spec->nordered_sets++;
}

/*
 * Returns whether a numeric type declares a scale that COLUMN_DEC can have, and sets *scale to the
 * display scale of all its values.  That is 0 if the declared scale is negative.
 */
static bool
numeric_scale(int32 typmod, int16 *scale)
{
	int declared;

	if (typmod < (int32) VARHDRSZ)
		return false;
	declared = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
	*scale = Max(declared, 0);
	return *scale <= SPEC_MAX_SCALE;
}

/* SQL types whose columns are integers or floats.  Enums, of any type, are COLUMN_U32. */
static const struct
{
	Oid typid;
	ColumnType type;
	bool ordered; /* values of the column compare as the type's default order does */
} scalar_types[] = {
	{BOOLOID, COLUMN_I8, true},       {CHAROID, COLUMN_I8, false}, /* compares as unsigned */
	{INT2OID, COLUMN_I16, true},      {INT4OID, COLUMN_I32, true},
	{DATEOID, COLUMN_I32, true},      {OIDOID, COLUMN_U32, true},
	{INT8OID, COLUMN_I64, true},      {TIMEOID, COLUMN_I64, true},
	{TIMESTAMPOID, COLUMN_I64, true}, {TIMESTAMPTZOID, COLUMN_I64, true},
	{CASHOID, COLUMN_I64, true},      {FLOAT4OID, COLUMN_F32, true},
	{FLOAT8OID, COLUMN_F64, true},
};

ColumnType
spec_column_type(Oid typid, int32 typmod, int16 *scale)
{
	*scale = 0;
	typid = getBaseTypeAndTypmod(typid, &typmod);
	for (int i = 0; i < lengthof(scalar_types); i++)
		if (scalar_types[i].typid == typid)
			return scalar_types[i].type;
	if (typid == NUMERICOID)
		return numeric_scale(typmod, scale) ? COLUMN_DEC : COLUMN_DATUM;
	return type_is_enum(typid) ? COLUMN_U32 : COLUMN_DATUM;
}

ColumnSpec
spec_plain_column(int input, Form_pg_attribute att)
{
	ColumnSpec col = {.input = input};

	col.typid = getBaseType(att->atttypid);
	col.typmod = att->atttypmod;
	col.collation = att->attcollation;
	col.typlen = att->attlen;
	col.typbyval = att->attbyval;
	col.type = spec_column_type(col.typid, col.typmod, &col.scale);
	if (col.type == COLUMN_DEC)
	{
		col.type = COLUMN_DATUM;
		col.scale = 0;
	}
	return col;
}

bool
spec_type_has_codes(Oid typid)
{
	typid = getBaseType(typid);
	for (int i = 0; i < lengthof(scalar_types); i++)
		if (scalar_types[i].typid == typid)
			return scalar_types[i].ordered;
	return false;
}

bool
spec_ignores_repeats(const FallbackAgg *fallback)
{
	Oid func = fallback->transfn.fn_oid;

	return (func == F_TEXT_SMALLER || func == F_TEXT_LARGER) && OidIsValid(fallback->collation) &&
		get_collation_isdeterministic(fallback->collation);
}

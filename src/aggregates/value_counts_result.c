/*
 * value_counts_result.c
 *	  Results of gpu_value_counts, gpu_top_k and gpu_entropy: their final functions.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

#include "aggregates/aggmap_internal.h"
#include "aggregates/portable.h"
#include "aggregates/value_counts.h"
#include "common/compat.h"
#include "common/interruptible.h"

PG_FUNCTION_INFO_V1(gpuagg_value_counts_final);
PG_FUNCTION_INFO_V1(gpuagg_top_k_final);
PG_FUNCTION_INFO_V1(gpuagg_entropy_final);

/* Appends a value with its count as a JSON object to a list. error < 0: there is none. */
static void
append_object(StringInfo list, const char *value, int64 count, int64 error)
{
	appendStringInfo(list, "%s{\"value\": %s, \"count\": " INT64_FORMAT, list->len > 1 ? ", " : "",
					 value, count);
	if (error >= 0)
		appendStringInfo(list, ", \"error\": " INT64_FORMAT, error);
	appendStringInfoChar(list, '}');
}

/* Appends the values with the largest counts as JSON objects to the list. */
static void
append_values(StringInfo list, const ValueCounts *state)
{
	const ValueTable *table = state->table;
	int64 most = state->k > 0 ? state->k : PG_INT64_MAX;
	Oid type = table->type->type_id;
	MemoryContext conversions = value_counts_conversions();
	int64 nulls = state->nulls;
	FmgrInfo to_json;
	ValueEntry **largest = value_table_largest(table, most, &most);
	int64 left = state->k > 0 ? state->k : PG_INT64_MAX;
	MemoryContext old;

	aggmap_init_function(&to_json, F_TO_JSONB, JSONBOID, 1, &type, InvalidOid);
	old = MemoryContextSwitchTo(conversions);
	for (int64 i = 0; i < most && left > 0; i++, left--)
	{
		const ValueEntry *entry = largest[i];
		Jsonb *json;

		CHECK_FOR_INTERRUPTS();
		if (nulls > entry->count - value_table_error(table, entry))
		{
			append_object(list, "null", nulls, table->errors ? 0 : -1);
			nulls = 0;
			if (--left == 0)
				break;
		}
		MemoryContextReset(conversions);
		json = DatumGetJsonbP(FunctionCall1(&to_json, entry->value));
		append_object(list, JsonbToCString(NULL, &json->root, VARSIZE(json)), entry->count,
					  table->errors ? value_table_error(table, entry) : -1);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(conversions);
	if (nulls > 0 && left > 0)
		append_object(list, "null", nulls, table->errors ? 0 : -1);
}

/*
 * Returns the state in argument 0, or NULL. Raises an error if it is of another aggregate, as
 * gpuagg_finish() may pass.
 */
static ValueCounts *
state_argument(FunctionCallInfo fcinfo, CountsForm form)
{
	ValueCounts *state = PG_ARGISNULL(0) ? NULL : (ValueCounts *) PG_GETARG_POINTER(0);

	if (state && state->form != form)
		portable_invalid("kind");
	return state;
}

/* Final function of gpu_value_counts and gpu_top_k. NULL without rows. */
static Datum
counts_as_json(FunctionCallInfo fcinfo, CountsForm form)
{
	ValueCounts *state = state_argument(fcinfo, form);
	StringInfoData list;

	if (state == NULL)
		PG_RETURN_NULL();
	initStringInfo(&list);
	appendStringInfoChar(&list, '[');
	append_values(&list, state);
	appendStringInfoChar(&list, ']');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(list.data));
}

/* Final function of gpu_value_counts. */
Datum
gpuagg_value_counts_final(PG_FUNCTION_ARGS)
{
	return counts_as_json(fcinfo, FORM_VALUE_COUNTS);
}

/* Final function of gpu_top_k. */
Datum
gpuagg_top_k_final(PG_FUNCTION_ARGS)
{
	return counts_as_json(fcinfo, FORM_TOP_K);
}

/* Comparator of qsort_interruptible */
static int
compare_counts(const void *a, const void *b, void *arg)
{
	int64 x = *(const int64 *) a;
	int64 y = *(const int64 *) b;

	return (x > y) - (x < y);
}

/*
 * Final function of gpu_entropy. NULL if no row counts. Terms are added up in the order of counts,
 * so that the sum does not depend on the order of rows.
 */
Datum
gpuagg_entropy_final(PG_FUNCTION_ARGS)
{
	ValueCounts *state = state_argument(fcinfo, FORM_ENTROPY);
	int64 *counts;
	int64 n;
	double sum = 0;

	if (state == NULL)
		PG_RETURN_NULL();
	n = state->table->n;
	counts = palloc_extended((n + 1) * sizeof(int64), MCXT_ALLOC_HUGE);
	INTERRUPTIBLE_FOR (i, 0, n)
		counts[i] = state->table->entries[i].count;
	qsort_interruptible(counts, n, sizeof(int64), compare_counts, NULL);
	INTERRUPTIBLE_FOR (i, 0, n)
	{
		double share = (double) counts[i] / (double) state->rows;

		sum += share * log2(1 / share);
	}
	PG_RETURN_FLOAT8(sum);
}

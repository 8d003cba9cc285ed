/*
 * value_counts_read.c
 *	  gpu_value_counts_rows: rows of what gpu_value_counts and gpu_top_k return.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
#include "utils/tuplestore.h"

#include "aggregates/histogram.h"
#include "common/compat.h"

PG_FUNCTION_INFO_V1(gpu_value_counts_rows);

#define COLUMNS 4 /* value, count, error, bar */

/* Raises an error: the argument is not what the aggregates return. */
static void
report_invalid(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("argument of %s is not a list of values with counts", "gpu_value_counts_rows"),
			 errdetail_internal("%s", detail),
			 errhint("Pass the result of %s or %s.", "gpu_value_counts", "gpu_top_k")));
}

/* Returns element i of the list, an object. */
static JsonbContainer *
object_of(JsonbContainer *list, uint32 i)
{
	JsonbValue *element = getIthJsonbValueFromContainer(list, i);

	if (element->type != jbvBinary || !JsonContainerIsObject(element->val.binary.data))
		report_invalid("An element is not an object.");
	return element->val.binary.data;
}

/* Returns the number of rows with this key of the object. Sets *isnull if there is no such key. */
static Datum
rows_of(JsonbContainer *object, const char *key, bool *isnull)
{
	JsonbValue *number = getKeyJsonValueFromContainer(object, key, strlen(key), NULL);
	int64 rows;

	*isnull = number == NULL;
	if (*isnull)
		return (Datum) 0;
	if (number->type != jbvNumeric)
		report_invalid("A count or an error is not a number.");
	rows = DatumGetInt64(DirectFunctionCall1(numeric_int8, NumericGetDatum(number->val.numeric)));
	if (rows < 0)
		report_invalid("A count or an error is negative.");
	return Int64GetDatum(rows);
}

/* Returns the value of the object as text, as the operator ->> does. Sets *isnull for null. */
static Datum
value_of(JsonbContainer *object, bool *isnull)
{
	JsonbValue *value = getKeyJsonValueFromContainer(object, "value", strlen("value"), NULL);
	Jsonb *json;

	if (value == NULL)
		report_invalid("An object has no key \"value\".");
	*isnull = value->type == jbvNull;
	if (*isnull)
		return (Datum) 0;
	if (value->type == jbvString)
		return PointerGetDatum(
			cstring_to_text_with_len(value->val.string.val, value->val.string.len));
	json = JsonbValueToJsonb(value);
	return CStringGetTextDatum(JsonbToCString(NULL, &json->root, VARSIZE(json)));
}

/* (jsonb): a row for each value, with its count, its error (NULL if it has none) and a bar. */
Datum
gpu_value_counts_rows(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	JsonbContainer *list = &PG_GETARG_JSONB_P(0)->root;
	MemoryContext cxt, old;
	int64 largest = 0;

	if (!JsonContainerIsArray(list) || JsonContainerIsScalar(list))
		report_invalid("It is not an array.");
	InitMaterializedSRF(fcinfo, 0);
	cxt =
		AllocSetContextCreate(CurrentMemoryContext, "gpuagg row of values", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	/* bars need the largest count, which is not the first one in lists made by hand */
	for (int pass = 0; pass < 2; pass++)
		for (uint32 i = 0; i < JsonContainerSize(list); i++)
		{
			JsonbContainer *object = object_of(list, i);
			Datum row[COLUMNS];
			bool nulls[COLUMNS] = {false};

			CHECK_FOR_INTERRUPTS();
			row[1] = rows_of(object, "count", &nulls[1]);
			if (nulls[1])
				report_invalid("An object has no key \"count\".");
			largest = Max(largest, DatumGetInt64(row[1]));
			if (pass == 1)
			{
				row[0] = value_of(object, &nulls[0]);
				row[2] = rows_of(object, "error", &nulls[2]);
				row[3] = PointerGetDatum(
					histogram_bar(largest > 0 ? (double) DatumGetInt64(row[1]) / largest : 0));
				tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row, nulls);
			}
			MemoryContextReset(cxt);
		}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return (Datum) 0;
}

/*
 * agg_codes.c
 *	  Codes of aggregates' values; see agg_codes.h.
 *
 * The code of an integer, date or time is the value itself. The code of a float is
 * gpuagg_f64_code() of the value, with -0 changed to 0. The code of a numeric is an integer of a
 * common scale.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/fmgroids.h"

#include "aggregates/aggmap_internal.h"
#include "aggregates/agg_codes.h"
#include "columns/decimal.h"
#include "operators/decode_numeric.h"

#define STATE(type, i) (((const type *) groups->slots[out->slots[i]])[g])

static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

static bool
is_float(Oid type)
{
	return type == FLOAT4OID || type == FLOAT8OID;
}

bool
codes_exist_for_type(Oid type)
{
	switch (type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return true;
		default:
			return false;
	}
}

/* Returns the code of a float. The codes of -0 and 0 are equal. */
static gpuagg_i128
float_code(double value)
{
	/* changes -0 to 0, and nothing else */
	return gpuagg_f64_code(value + 0.0);
}

/* Returns whether the final function returns the sum of the state, not the mean. */
static bool
is_sum(const AggOutput *out)
{
	char *symbol;
	Oid core = OidIsValid(out->finalfn.fn_oid) ?
		aggmap_core_function(out->finalfn.fn_oid, &symbol) :
		InvalidOid;

	return core == F_NUMERIC_SUM || core == F_NUMERIC_POLY_SUM;
}

bool
codes_exist_for_aggregate(const AggOutput *out, Oid type)
{
	if (!codes_exist_for_type(type))
		return false;
	switch (out->kind)
	{
		case FINALIZE_INT:
		case FINALIZE_COUNTED_INT:
		case FINALIZE_COUNTED_I32:
		case FINALIZE_COUNTED_F32:
		case FINALIZE_COUNTED_F64:
		case FINALIZE_DEC:
			return out->agg.transtype == type && !OidIsValid(out->finalfn.fn_oid);
		case FINALIZE_ACCUM:
			return out->float8_mean;
		case FINALIZE_INT8_AVG:
		case FINALIZE_DEC_AVG:
			return is_sum(out);
		default:
			return false;
	}
}

CodeKind
codes_of_group(const AggOutput *out, const GroupBatch *groups, int g, gpuagg_i128 *code)
{
	if (out->fallback >= 0 && !groups->fallback_nulls[out->fallback][g])
		return CODE_UNKNOWN;
	if (out->counted && STATE(int64, 0) == 0)
	{
		if (out->agg.initnull)
			return CODE_NULL;
		if (out->agg.transtype == NUMERICOID || out->agg.transtype == INTERNALOID)
			return CODE_UNKNOWN;
		*code = codes_of_value(out->agg.transtype, out->agg.initval);
		return CODE_VALUE;
	}
	switch (out->kind)
	{
		case FINALIZE_INT:
		case FINALIZE_COUNTED_INT:
			*code = out->kind == FINALIZE_INT ? STATE(int64, 0) :
												linear_sum64(out, STATE(int64, 0), STATE(int64, 1));
			break;
		case FINALIZE_INT8_AVG:
		case FINALIZE_DEC_AVG:
			*code = linear_sum128(out, STATE(int64, 0), STATE(gpuagg_i128, 1));
			break;
		case FINALIZE_COUNTED_I32:
			*code = STATE(int32, 1);
			break;
		case FINALIZE_COUNTED_F32:
			*code = float_code(STATE(float, 1));
			break;
		case FINALIZE_COUNTED_F64:
			*code = float_code(STATE(double, 1));
			break;
		case FINALIZE_ACCUM:
			if (STATE(gpuagg_accum, 0).n == 0)
				return CODE_NULL;
			*code = float_code(STATE(gpuagg_accum, 0).sx / STATE(gpuagg_accum, 0).n);
			break;
		default:
			*code = STATE(gpuagg_i128, 1);
			break;
	}
	return CODE_VALUE;
}

bool
codes_find_slots(const AggOutput *out, int *slot, int *counted)
{
	bool single = out->kind == FINALIZE_INT || out->kind == FINALIZE_ACCUM;

	/* a count of no rows is its own value, 0 */
	if ((out->fallback >= 0 || (out->counted && out->kind != FINALIZE_INT)) && !out->agg.initnull)
		return false;
	if (out->linear.mul != 1 || out->linear.add != 0)
		return false;
	*slot = out->slots[single ? 0 : 1];
	*counted = out->counted && !single ? out->slots[0] : -1;
	return true;
}

gpuagg_i128
codes_of_value(Oid type, Datum value)
{
	switch (type)
	{
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
		case DATEOID:
			return DatumGetInt32(value);
		case FLOAT4OID:
			return float_code(DatumGetFloat4(value));
		case FLOAT8OID:
			return float_code(DatumGetFloat8(value));
		default:
			return DatumGetInt64(value);
	}
}

/* Sets *code to a numeric as an integer times 10^-scale; returns false if that is not possible. */
static bool
decimal_code(int scale, Datum value, gpuagg_i128 *code)
{
	struct varlena *numeric = PG_DETOAST_DATUM_PACKED(value);
	const uint8_t *data = (const uint8_t *) VARDATA_ANY(numeric);
	int len = VARSIZE_ANY_EXHDR(numeric);
	DecodeHeader header;

	return decode_header(data, len, &header) && header.dscale <= scale &&
		scale - header.dscale <= 38 && decode_numeric(data, len, header.dscale, code) &&
		!__builtin_mul_overflow(*code, decimal_power10(scale - header.dscale), code);
}

bool
codes_of_constant(const AggOutput *out, Oid with, Oid type, Datum value, gpuagg_i128 *code)
{
	if (with == NUMERICOID && type == NUMERICOID)
		return decimal_code(out->kind == FINALIZE_INT8_AVG ? 0 : out->scale, value, code);
	if (with == NUMERICOID || type == NUMERICOID ||
		!((is_integer(with) && is_integer(type)) || (is_float(with) && is_float(type)) ||
		  with == type))
		return false;
	*code = codes_of_value(type, value);
	return true;
}

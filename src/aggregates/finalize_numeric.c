/*
 * finalize_numeric.c
 *	  Wide integers and decimals as numerics and as core's transition states.
 *
 * Core's aggregates that answer in numeric keep internal states.  What may be
 * relied on is their serialised form, which parallel plans exchange: this file
 * writes that form (numeric.c of PostgreSQL 15 to 18), and the aggregate's own
 * deserialisation and final functions do the rest, so that every digit is
 * core's.
 *
 * Results are palloc'd in the current context.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/array.h"

#include "aggregates/finalize.h"
#include "columns/decimal.h"

Datum
finalize_array(Oid elemtype, const void *values, int n)
{
	Size		size = ARR_OVERHEAD_NONULLS(1) + (Size) n * sizeof(int64);
	ArrayType  *array = palloc0(size);

	SET_VARSIZE(array, size);
	array->ndim = 1;
	array->dataoffset = 0;
	array->elemtype = elemtype;
	ARR_DIMS(array)[0] = n;
	ARR_LBOUND(array)[0] = 1;
	memcpy(ARR_DATA_PTR(array), values, (Size) n * sizeof(int64));
	return PointerGetDatum(array);
}

/* Appends a number in the form in which states carry them. */
static void
send_decimal(StringInfo buf, const Decimal *dec)
{
	pq_sendint32(buf, dec->ndigits);
	pq_sendint32(buf, dec->weight);
	pq_sendint32(buf, decimal_sign_word(dec));
	pq_sendint32(buf, dec->dscale);
	for (int i = 0; i < dec->ndigits; i++)
		pq_sendint16(buf, dec->digit[i]);
}

static void
send_i128(StringInfo buf, gpuagg_i128 value, int scale)
{
	Decimal		dec;

	decimal_from_i128(&dec, value, scale);
	send_decimal(buf, &dec);
}

/* Appends what a numeric state ends with: scales seen, no NaN, no infinities. */
static void
send_numeric_tail(StringInfo buf, int64 n, int scale)
{
	pq_sendint32(buf, scale);
	pq_sendint64(buf, n);		/* inputs of that scale */
	pq_sendint64(buf, 0);		/* NaN */
	pq_sendint64(buf, 0);		/* infinity */
	pq_sendint64(buf, 0);		/* -infinity */
}

Datum
lower_int8_avg_state(int64 n, gpuagg_i128 sum)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_i128(&buf, sum, 0);
	return PointerGetDatum(pq_endtypsend(&buf));
}

Datum
finalize_poly_state(int64 n, gpuagg_i128 sum, gpuagg_i128 sumsq)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_i128(&buf, sum, 0);
	send_i128(&buf, sumsq, 0);
	return PointerGetDatum(pq_endtypsend(&buf));
}

Datum
finalize_numeric_var_state(int64 n, gpuagg_i128 sum, gpuagg_i192 sumsq)
{
	StringInfoData buf;
	Decimal		dec;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_i128(&buf, sum, 0);
	decimal_from_u192(&dec, sumsq.hi, sumsq.lo);
	send_decimal(&buf, &dec);
	send_numeric_tail(&buf, n, 0);
	return PointerGetDatum(pq_endtypsend(&buf));
}

Datum
finalize_numeric_avg_state(int64 n, gpuagg_i128 sum, int scale)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_i128(&buf, sum, scale);
	send_numeric_tail(&buf, n, scale);
	return PointerGetDatum(pq_endtypsend(&buf));
}

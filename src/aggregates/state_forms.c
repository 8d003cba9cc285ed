/*
 * state_forms.c
 *	  Transition values in the form in which core keeps or serializes them.
 *
 * Core's aggregates that return numeric have internal states. Their layout is private to numeric.c,
 * but their serialized form is not: parallel plans exchange it. This file writes the form of
 * PostgreSQL 15 to 18, which poly_states.h converts for 19. The aggregate's own deserialization
 * and final functions do the rest, so that every digit is core's.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/array.h"

#include "aggregates/state_forms.h"
#include "columns/decimal.h"

Datum
form_array(Oid elemtype, const void *values, int n)
{
	Size size = ARR_OVERHEAD_NONULLS(1) + (Size) n * sizeof(int64);
	ArrayType *array = palloc0(size);

	SET_VARSIZE(array, size);
	array->ndim = 1;
	array->dataoffset = 0;
	array->elemtype = elemtype;
	ARR_DIMS(array)[0] = n;
	ARR_LBOUND(array)[0] = 1;
	memcpy(ARR_DATA_PTR(array), values, (Size) n * sizeof(int64));
	return PointerGetDatum(array);
}

/* Appends a number in the form that core's serialized states have. */
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

/* Appends value * 10^-scale with display scale `dscale`, in the same form. */
static void
send_i128(StringInfo buf, gpuagg_i128 value, int scale, int dscale)
{
	Decimal dec;

	decimal_from_i128(&dec, value, scale);
	dec.dscale = dscale;
	send_decimal(buf, &dec);
}

/*
 * Appends the end of a serialized numeric state: the largest scale, the number n of inputs with
 * it, and no NaN or infinities.
 */
static void
send_numeric_tail(StringInfo buf, int64 n, int scale)
{
	pq_sendint32(buf, scale);
	pq_sendint64(buf, n); /* inputs with that scale */
	pq_sendint64(buf, 0); /* NaN */
	pq_sendint64(buf, 0); /* infinity */
	pq_sendint64(buf, 0); /* -infinity */
}

Datum
form_int8_avg(int64 n, gpuagg_i128 sum)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_i128(&buf, sum, 0, 0);
	return PointerGetDatum(pq_endtypsend(&buf));
}

Datum
form_poly_var(int64 n, gpuagg_i128 sum, gpuagg_i128 sumsq)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_i128(&buf, sum, 0, 0);
	send_i128(&buf, sumsq, 0, 0);
	return PointerGetDatum(pq_endtypsend(&buf));
}

Datum
form_numeric_var(int64 n, gpuagg_i128 sum, gpuagg_i192 sumsq)
{
	StringInfoData buf;
	Decimal dec;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_i128(&buf, sum, 0, 0);
	decimal_from_u192(&dec, sumsq.hi, sumsq.lo);
	send_decimal(&buf, &dec);
	send_numeric_tail(&buf, n, 0);
	return PointerGetDatum(pq_endtypsend(&buf));
}

Datum
form_numeric_avg(int64 n, gpuagg_i128 sum, int scale, int dscale)
{
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, n);
	send_i128(&buf, sum, scale, dscale);
	send_numeric_tail(&buf, n, dscale);
	return PointerGetDatum(pq_endtypsend(&buf));
}

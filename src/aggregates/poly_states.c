/*
 * poly_states.c
 *	  Serialized states of sums and variances of integers; see poly_states.h.
 */
#include "postgres.h"

#include "libpq/pqformat.h"
#include "utils/fmgroids.h"

#include "aggregates/poly_states.h"
#include "aggregates/portable.h"
#include "aggregates/state_forms.h"
#include "common/compat.h"
#include "operators/monoid.h"

#if COMPAT_POLY_STATES_HAVE_INTEGERS

/* Reads an integer as core serializes it. */
static gpuagg_i128
get_integer(StringInfo buf)
{
	uint64 high = (uint64) pq_getmsgint64(buf);
	uint64 low = (uint64) pq_getmsgint64(buf);

	return (gpuagg_i128) ((gpuagg_u128) high << 64 | low);
}

bytea *
poly_state_to_portable(bytea *core, int integers)
{
	StringInfoData buf;
	int64 n;
	gpuagg_i128 sum;
	Datum portable;

	portable_read(&buf, core);
	n = pq_getmsgint64(&buf);
	sum = get_integer(&buf);
	portable = integers == 1 ? form_int8_avg(n, sum) : form_poly_var(n, sum, get_integer(&buf));
	pq_getmsgend(&buf);
	return DatumGetByteaPP(portable);
}

/* Multiplies a magnitude by 10000 and adds a digit.  Raises an error if 127 bits do not suffice. */
static gpuagg_u128
append_digit(gpuagg_u128 magnitude, int digit)
{
	if (magnitude > ((gpuagg_u128) GPUAGG_I128_MAX - digit) / 10000)
		portable_invalid("number");
	return magnitude * 10000 + digit;
}

/* Reads a number in the portable form, and appends it as core serializes it. */
static void
copy_number(StringInfo buf, StringInfo out)
{
	int ndigits = portable_get_count(buf, 2, buf->len, "number");
	int weight = (int) pq_getmsgint(buf, 4);
	bool negative = pq_getmsgint(buf, 4) != 0;
	gpuagg_u128 magnitude = 0;

	pq_getmsgint(buf, 4); /* display scale */
	for (int i = 0; i < ndigits; i++)
	{
		int digit = (int) pq_getmsgint(buf, 2);

		if (digit >= 10000 || (i > weight && digit != 0))
			portable_invalid("number");
		if (i <= weight)
			magnitude = append_digit(magnitude, digit);
	}
	/* zeros at the end are left out */
	for (int i = ndigits; i <= weight && magnitude != 0; i++)
		magnitude = append_digit(magnitude, 0);
	if (negative)
		magnitude = -magnitude;
	pq_sendint64(out, (uint64) (magnitude >> 64));
	pq_sendint64(out, (uint64) magnitude);
}

bytea *
poly_state_to_core(bytea *portable, int integers)
{
	StringInfoData buf, out;

	portable_read(&buf, portable);
	pq_begintypsend(&out);
	pq_sendint64(&out, pq_getmsgint64(&buf)); /* number of values */
	for (int i = 0; i < integers; i++)
		copy_number(&buf, &out);
	pq_getmsgend(&buf);
	return pq_endtypsend(&out);
}

#else

bytea *
poly_state_to_portable(bytea *core, int integers)
{
	return core;
}

bytea *
poly_state_to_core(bytea *portable, int integers)
{
	return portable;
}

#endif

bytea *
poly_state_for_function(bytea *portable, Oid deserialize)
{
	switch (deserialize)
	{
		case F_INT8_AVG_DESERIALIZE:
			return poly_state_to_core(portable, 1);
		case F_NUMERIC_POLY_DESERIALIZE:
			return poly_state_to_core(portable, 2);
		default:
			return portable;
	}
}

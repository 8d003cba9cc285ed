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
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "aggregates/finalize.h"

/* Sign words of numerics on the wire. */
#define WIRE_POSITIVE 0x0000
#define WIRE_NEGATIVE 0x4000

#define DIGIT_BASE 10000		/* of a numeric's digit */
#define DIGIT_WIDTH 4			/* decimal digits in it */

/* Enough for 192 bits and for 128 bits with a fraction. */
#define MAX_DIGITS 32

/* A number as numerics have it: digit[0] is the most significant. */
typedef struct Decimal
{
	bool		negative;
	int			ndigits;
	int			weight;
	int			dscale;
	int16		digit[MAX_DIGITS];
} Decimal;

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

/*
 * Writes the digits of limb[2..0] (64 bits each, the least significant first) so
 * that they end before `end`; returns how many.  The limbs are consumed.
 */
static int
put_digits(uint64 limb[3], int16 *end)
{
	const uint64 chunk = UINT64CONST(10000000000000000);	/* four digits */
	int16	   *p = end;

	while (limb[0] | limb[1] | limb[2])
	{
		uint64		rest = 0;

		for (int i = 2; i >= 0; i--)
		{
			gpuagg_u128 part = (gpuagg_u128) rest << 64 | limb[i];

			limb[i] = (uint64) (part / chunk);
			rest = (uint64) (part % chunk);
		}
		for (int i = 0; i < 4; i++)
		{
			*--p = (int16) (rest % DIGIT_BASE);
			rest /= DIGIT_BASE;
		}
	}
	while (p < end && *p == 0)
		p++;
	return (int) (end - p);
}

/* The integer of 192 bits, of which hi are the upper 64. */
static void
decimal_from_u192(Decimal *dec, uint64 hi, gpuagg_u128 lo)
{
	uint64		limb[3] = {(uint64) lo, (uint64) (lo >> 64), hi};
	int16		digit[MAX_DIGITS];
	int			n = put_digits(limb, digit + MAX_DIGITS);

	dec->negative = false;
	dec->dscale = 0;
	dec->ndigits = n;
	dec->weight = n > 0 ? n - 1 : 0;
	memcpy(dec->digit, digit + MAX_DIGITS - n, n * sizeof(int16));
}

static gpuagg_u128
power_of_ten(int n)
{
	gpuagg_u128 r = 1;

	while (n-- > 0)
		r *= 10;
	return r;
}

/* value times 10^-scale; scale is at most 30. */
static void
decimal_from_i128(Decimal *dec, gpuagg_i128 value, int scale)
{
	gpuagg_u128 magnitude = value < 0 ? -(gpuagg_u128) value : (gpuagg_u128) value;
	gpuagg_u128 unit = power_of_ten(scale);
	int			nfrac = (scale + DIGIT_WIDTH - 1) / DIGIT_WIDTH;
	gpuagg_u128 frac = magnitude % unit * power_of_ten(nfrac * DIGIT_WIDTH - scale);
	int			skip = 0;

	/* digits before the point, then those after it */
	decimal_from_u192(dec, 0, magnitude / unit);
	dec->negative = value < 0;
	dec->dscale = scale;
	dec->weight = dec->ndigits - 1;
	for (int i = nfrac - 1; i >= 0; i--)
	{
		dec->digit[dec->ndigits + i] = (int16) (frac % DIGIT_BASE);
		frac /= DIGIT_BASE;
	}
	dec->ndigits += nfrac;

	/* numerics store no zero digits at either end */
	while (skip < dec->ndigits && dec->digit[skip] == 0)
		skip++;
	while (dec->ndigits > skip && dec->digit[dec->ndigits - 1] == 0)
		dec->ndigits--;
	dec->ndigits -= skip;
	dec->weight = dec->ndigits > 0 ? dec->weight - skip : 0;
	memmove(dec->digit, dec->digit + skip, dec->ndigits * sizeof(int16));
}

Datum
decimal_to_numeric(gpuagg_i128 value, int scale)
{
	StringInfoData buf;
	Decimal		dec;

	if (value == (int64) value)
		return NumericGetDatum(scale > 0 ? int64_div_fast_to_numeric((int64) value, scale) :
							   int64_to_numeric((int64) value));

	decimal_from_i128(&dec, value, scale);
	initStringInfo(&buf);
	pq_sendint16(&buf, dec.ndigits);
	pq_sendint16(&buf, dec.weight);
	pq_sendint16(&buf, dec.negative ? WIRE_NEGATIVE : WIRE_POSITIVE);
	pq_sendint16(&buf, dec.dscale);
	for (int i = 0; i < dec.ndigits; i++)
		pq_sendint16(&buf, dec.digit[i]);
	return DirectFunctionCall3(numeric_recv, PointerGetDatum(&buf),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}

/* Appends a number in the form in which states carry them. */
static void
send_decimal(StringInfo buf, const Decimal *dec)
{
	pq_sendint32(buf, dec->ndigits);
	pq_sendint32(buf, dec->weight);
	pq_sendint32(buf, dec->negative ? WIRE_NEGATIVE : WIRE_POSITIVE);
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

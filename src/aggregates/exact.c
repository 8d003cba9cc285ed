/*
 * exact.c
 *	  The SQL functions of exact aggregates of floats (gpuagg_exact_sum and its like).
 *
 * The planner puts these aggregates in place of gpu_sum and others if gpuagg.float_sum is "exact"
 * (plan/float_sums.c).  Their results are those of exact arithmetic, rounded once, so that they do
 * not depend on the order of rows.  The engines have no monoid for them: they are fallback
 * aggregates, which the CPU engine computes without calls of these functions
 * (engine_cpu/exact_sums.c), and the GPU engine by sums of integers (engine_cuda/query_exact.c).
 */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/float.h"

#include "aggregates/aggcall.h"
#include "aggregates/exact.h"
#include "aggregates/portable.h"

#define FORMAT 1

PG_FUNCTION_INFO_V1(gpuagg_exact_accum_sum);
PG_FUNCTION_INFO_V1(gpuagg_exact_accum_sum4);
PG_FUNCTION_INFO_V1(gpuagg_exact_accum_squares);
PG_FUNCTION_INFO_V1(gpuagg_exact_accum_squares4);
PG_FUNCTION_INFO_V1(gpuagg_exact_accum_pairs);
PG_FUNCTION_INFO_V1(gpuagg_exact_remove_sum);
PG_FUNCTION_INFO_V1(gpuagg_exact_remove_sum4);
PG_FUNCTION_INFO_V1(gpuagg_exact_remove_squares);
PG_FUNCTION_INFO_V1(gpuagg_exact_remove_squares4);
PG_FUNCTION_INFO_V1(gpuagg_exact_remove_pairs);
PG_FUNCTION_INFO_V1(gpuagg_exact_combine);
PG_FUNCTION_INFO_V1(gpuagg_exact_serialize);
PG_FUNCTION_INFO_V1(gpuagg_exact_deserialize);

/* ---- transition functions -------------------------------------------------- */

/* Returns whether an argument after the state is NULL. */
static bool
has_null(FunctionCallInfo fcinfo)
{
	for (int i = 1; i < PG_NARGS(); i++)
		if (PG_ARGISNULL(i))
			return true;
	return false;
}

/* Returns the state in argument 0, a new one if that is NULL. */
static ExactState *
state_argument(FunctionCallInfo fcinfo, ExactKind kind)
{
	MemoryContext old;
	ExactState *state;

	if (!PG_ARGISNULL(0))
		return (ExactState *) PG_GETARG_POINTER(0);
	old = MemoryContextSwitchTo(aggregate_context(fcinfo));
	state = exact_create(kind);
	MemoryContextSwitchTo(old);
	return state;
}

/*
 * Transition functions: (internal, float) and (internal, y, x). Rows with a NULL add nothing, but
 * they have a state, too: that of a moving aggregate may not be NULL.
 */
#define ACCUM(name, kind, try_add, ...) \
	Datum gpuagg_exact_accum_##name(PG_FUNCTION_ARGS) \
	{ \
		ExactState *state = state_argument(fcinfo, kind); \
\
		if (!has_null(fcinfo) && !try_add(state, __VA_ARGS__)) \
			exact_add(state, TWO_VALUES(__VA_ARGS__, 0.0), false); \
		PG_RETURN_POINTER(state); \
	} \
	/* inverse: removes a row that was added */ \
	Datum gpuagg_exact_remove_##name(PG_FUNCTION_ARGS) \
	{ \
		if (has_null(fcinfo) || PG_ARGISNULL(0)) \
			RETURN_STATE_UNCHANGED(); \
		exact_add((ExactState *) PG_GETARG_POINTER(0), TWO_VALUES(__VA_ARGS__, 0.0), true); \
		PG_RETURN_DATUM(PG_GETARG_DATUM(0)); \
	}
#define TWO_VALUES(x, y, ...) x, y
ACCUM(sum, EXACT_SUM, exact_try_sum, PG_GETARG_FLOAT8(1))
ACCUM(sum4, EXACT_SUM, exact_try_sum, PG_GETARG_FLOAT4(1))
ACCUM(squares, EXACT_SQUARES, exact_try_squares, PG_GETARG_FLOAT8(1))
ACCUM(squares4, EXACT_SQUARES, exact_try_squares, PG_GETARG_FLOAT4(1))
ACCUM(pairs, EXACT_PAIRS, exact_try_pairs, PG_GETARG_FLOAT8(2), PG_GETARG_FLOAT8(1))
#undef TWO_VALUES
#undef ACCUM

ExactKind
exact_kind_of(const FmgrInfo *transfn)
{
	if (transfn->fn_addr == gpuagg_exact_accum_sum || transfn->fn_addr == gpuagg_exact_accum_sum4)
		return EXACT_SUM;
	if (transfn->fn_addr == gpuagg_exact_accum_squares ||
		transfn->fn_addr == gpuagg_exact_accum_squares4)
		return EXACT_SQUARES;
	return transfn->fn_addr == gpuagg_exact_accum_pairs ? EXACT_PAIRS : 0;
}

/* Combine function of all exact aggregates. A NULL state is an empty one. */
Datum
gpuagg_exact_combine(PG_FUNCTION_ARGS)
{
	const ExactState *other;
	ExactState *state;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	other = (const ExactState *) PG_GETARG_POINTER(1);
	state = state_argument(fcinfo, other->kind);
	if (state->kind != other->kind)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partial states of different aggregates cannot be combined")));
	exact_combine(state, other);
	PG_RETURN_POINTER(state);
}

/* ---- final functions -------------------------------------------------------- */

/* Returns the result of a final function. A NULL state is that of no rows. */
static double
final_result(FunctionCallInfo fcinfo, ExactResult result, bool *isnull)
{
	bool overflow;
	double value;

	*isnull = true;
	if (PG_ARGISNULL(0))
		return 0;
	value = exact_result((const ExactState *) PG_GETARG_POINTER(0), result, isnull, &overflow);
	if (unlikely(overflow))
		float_overflow_error();
	return value;
}

#define RETURN_FLOAT(NAME, x) \
	return EXACT_RESULT_##NAME == EXACT_RESULT_SUM4 ? Float4GetDatum((float4) (x)) : \
													  Float8GetDatum(x)
#define X(NAME, name) \
	PG_FUNCTION_INFO_V1(gpuagg_exact_##name); \
	Datum gpuagg_exact_##name(PG_FUNCTION_ARGS) \
	{ \
		double value = final_result(fcinfo, EXACT_RESULT_##NAME, &fcinfo->isnull); \
\
		if (fcinfo->isnull) \
			return (Datum) 0; \
		RETURN_FLOAT(NAME, value); \
	}
EXACT_RESULTS(X)
#undef X
#undef RETURN_FLOAT

ExactResult
exact_result_of(const FmgrInfo *finalfn)
{
#define X(NAME, name) \
	if (finalfn->fn_addr == gpuagg_exact_##name) \
		return EXACT_RESULT_##NAME;
	EXACT_RESULTS(X)
#undef X
	return EXACT_NO_RESULT;
}

/* ---- serialization ----------------------------------------------------------- */

/*
 * A serialized state is: a format byte, the kind, whether there are wide sums, and the number of
 * inputs; the windows: positions, sums, sums of products; then the wide sums: for each
 * variable the numbers of NaN, infinity and -infinity, and the words of each sum, without those at
 * both ends that follow from the others: the number of the first one, how many there are.
 */

/* Appends the words of a wide sum. */
static void
send_words(StringInfo buf, const uint64 *words, int n)
{
	uint64 sign = words[n - 1] >> 63 ? PG_UINT64_MAX : 0;
	int low = 0;

	while (n > 1 && words[n - 1] == sign && (words[n - 2] ^ sign) >> 63 == 0)
		n--;
	while (low < n && words[low] == 0)
		low++;
	pq_sendbyte(buf, low);
	pq_sendbyte(buf, n - low);
	for (int i = low; i < n; i++)
		pq_sendint64(buf, words[i]);
}

/* Appends wide sums. */
static void
send_wide(StringInfo buf, ExactKind kind, const ExactWide *wide)
{
	for (int i = 0; i < exact_sums(kind); i++)
	{
		pq_sendint64(buf, wide->specials[i].nan);
		pq_sendint64(buf, wide->specials[i].plus_infinity);
		pq_sendint64(buf, wide->specials[i].minus_infinity);
		send_words(buf, wide->sum[i], EXACT_SUM_WORDS);
	}
	for (int i = 0; i < exact_products(kind); i++)
		send_words(buf, wide->product[i], EXACT_PRODUCT_WORDS);
}

/* Serialization function of all exact aggregates, strict. */
Datum
gpuagg_exact_serialize(PG_FUNCTION_ARGS)
{
	const ExactState *state = (const ExactState *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	pq_sendbyte(&buf, FORMAT);
	pq_sendbyte(&buf, state->kind);
	pq_sendbyte(&buf, state->wide != NULL);
	pq_sendint64(&buf, state->n);
	for (int i = 0; i < exact_sums(state->kind); i++)
	{
		pq_sendint16(&buf, state->unit[i]);
		pq_sendint64(&buf, (uint64) state->sum[i]);
		pq_sendint64(&buf, (uint64) ((gpuagg_u128) state->sum[i] >> 64));
	}
	for (int i = 0; i < exact_products(state->kind); i++)
		for (int w = 0; w < EXACT_WINDOW_WORDS; w++)
			pq_sendint64(&buf, state->product[i][w]);
	if (state->wide)
		send_wide(&buf, state->kind, state->wide);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/* Reads the words of a wide sum. */
static void
read_words(StringInfo buf, uint64 *words, int n)
{
	int low = pq_getmsgbyte(buf);
	int count = pq_getmsgbyte(buf);
	uint64 sign = 0;

	if (low + count > n)
		portable_invalid("number");
	memset(words, 0, low * sizeof(uint64));
	for (int i = low; i < low + count; i++)
	{
		words[i] = pq_getmsgint64(buf);
		sign = words[i] >> 63 ? PG_UINT64_MAX : 0;
	}
	for (int i = low + count; i < n; i++)
		words[i] = sign;
}

/* Reads wide sums. */
static void
read_wide(StringInfo buf, ExactKind kind, ExactWide *wide)
{
	for (int i = 0; i < exact_sums(kind); i++)
	{
		wide->specials[i].nan = portable_get_rows(buf, 0);
		wide->specials[i].plus_infinity = portable_get_rows(buf, 0);
		wide->specials[i].minus_infinity = portable_get_rows(buf, 0);
		read_words(buf, wide->sum[i], EXACT_SUM_WORDS);
	}
	for (int i = 0; i < exact_products(kind); i++)
		read_words(buf, wide->product[i], EXACT_PRODUCT_WORDS);
}

/*
 * Deserialization function of all exact aggregates, strict. The bytes may come from another server
 * (partial_state.c). Any numbers in them are harmless.
 */
Datum
gpuagg_exact_deserialize(PG_FUNCTION_ARGS)
{
	StringInfoData buf;
	ExactState *state;
	ExactKind kind;
	bool wide;

	aggregate_context(fcinfo);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	portable_check_format(pq_getmsgbyte(&buf), FORMAT);
	kind = pq_getmsgbyte(&buf);
	if (kind < EXACT_SUM || kind > EXACT_PAIRS)
		portable_invalid("kind");
	wide = pq_getmsgbyte(&buf) != 0;
	state = exact_create(kind);
	state->n = portable_get_rows(&buf, 0);
	for (int i = 0; i < exact_sums(kind); i++)
	{
		uint64 low;

		state->unit[i] = pq_getmsgint(&buf, 2);
		if (state->unit[i] != EXACT_NO_WINDOW &&
			(state->unit[i] < 0 || state->unit[i] > EXACT_LAST_UNIT))
			portable_invalid("position");
		low = pq_getmsgint64(&buf);
		state->sum[i] = (gpuagg_i128) ((gpuagg_u128) pq_getmsgint64(&buf) << 64 | low);
	}
	for (int i = 0; i < exact_products(kind); i++)
		for (int w = 0; w < EXACT_WINDOW_WORDS; w++)
			state->product[i][w] = pq_getmsgint64(&buf);
	if (wide)
		read_wide(&buf, kind, exact_wide(state));
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

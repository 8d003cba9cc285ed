/*
 * partial_state.c
 *	  The type gpuagg_state, and how two of its values are combined.
 *
 * Core's serialization functions write numbers as counts and digits. Its deserialization functions
 * do not check them, because core only reads its own states. Here the bytes may come from anywhere,
 * so check_numbers() reads them first.
 */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "aggregates/partial_state.h"
#include "aggregates/poly_states.h"
#include "aggregates/portable.h"
#include "common/compat.h"

#define FORMAT 1
#define HEADER 2

extern Datum gpuagg_histogram_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_histogram_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_histogram_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_hll_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_hll_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_hll_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_sketch_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_sketch_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_sketch_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_argmax_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_argmin_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_arg_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_arg_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_top_n_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_top_n_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_top_n_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_value_counts_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_value_counts_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_value_counts_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_summary_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_summary_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_summary_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_histogram_auto_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_histogram_auto_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_histogram_auto_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_equidepth_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_equidepth_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_equidepth_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_exp_histogram_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_exp_histogram_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_exp_histogram_deserialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_exact_combine(PG_FUNCTION_ARGS);
extern Datum gpuagg_exact_serialize(PG_FUNCTION_ARGS);
extern Datum gpuagg_exact_deserialize(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(gpuagg_state_in);
PG_FUNCTION_INFO_V1(gpuagg_state_out);
PG_FUNCTION_INFO_V1(gpuagg_state_recv);
PG_FUNCTION_INFO_V1(gpuagg_state_send);
PG_FUNCTION_INFO_V1(gpuagg_merge_combine);

/*
 * numbers: how many numbers a state of core's has; 0: the deserialization function checks what it
 * reads
 */
typedef struct KindInfo
{
	Oid core;
	const char *symbol;
	PGFunction combine, serialize, deserialize;
	int numbers;
	bool tail; /* it ends with scales, and counts of NaN and infinities */
} KindInfo;

/* Functions that write and read the portable form of states. */
#define PORTABLE(name, integers) \
	PG_FUNCTION_INFO_V1(gpuagg_##name##_serialize); \
	Datum gpuagg_##name##_serialize(PG_FUNCTION_ARGS) \
	{ \
		bytea *core = DatumGetByteaPP(name##_serialize(fcinfo)); \
		PG_RETURN_BYTEA_P(poly_state_to_portable(core, integers)); \
	} \
	static Datum name##_read(PG_FUNCTION_ARGS) \
	{ \
		bytea *core = poly_state_to_core(PG_GETARG_BYTEA_PP(0), integers); \
		fcinfo->args[0].value = PointerGetDatum(core); \
		return name##_deserialize(fcinfo); \
	}
PORTABLE(int8_avg, 1)
PORTABLE(numeric_poly, 2)
#undef PORTABLE

static const KindInfo kinds[PARTIAL_KINDS] = {
	[PARTIAL_INT8_AVG] = {F_INT8_AVG_COMBINE, NULL, int8_avg_combine, gpuagg_int8_avg_serialize,
						  int8_avg_read, 1, false},
	[PARTIAL_NUMERIC_AVG] = {F_NUMERIC_AVG_COMBINE, NULL, numeric_avg_combine,
							 numeric_avg_serialize, numeric_avg_deserialize, 1, true},
	[PARTIAL_POLY_VAR] = {F_NUMERIC_POLY_COMBINE, NULL, numeric_poly_combine,
						  gpuagg_numeric_poly_serialize, numeric_poly_read, 2, false},
	[PARTIAL_NUMERIC_VAR] = {F_NUMERIC_COMBINE, NULL, numeric_combine, numeric_serialize,
							 numeric_deserialize, 2, true},
	[PARTIAL_HISTOGRAM] = {InvalidOid, "gpuagg_histogram_combine", gpuagg_histogram_combine,
						   gpuagg_histogram_serialize, gpuagg_histogram_deserialize},
	[PARTIAL_HLL] = {InvalidOid, "gpuagg_hll_combine", gpuagg_hll_combine, gpuagg_hll_serialize,
					 gpuagg_hll_deserialize},
	[PARTIAL_SKETCH] = {InvalidOid, "gpuagg_sketch_combine", gpuagg_sketch_combine,
						gpuagg_sketch_serialize, gpuagg_sketch_deserialize},
	[PARTIAL_ARGMAX] = {InvalidOid, "gpuagg_argmax_combine", gpuagg_argmax_combine,
						gpuagg_arg_serialize, gpuagg_arg_deserialize},
	[PARTIAL_ARGMIN] = {InvalidOid, "gpuagg_argmin_combine", gpuagg_argmin_combine,
						gpuagg_arg_serialize, gpuagg_arg_deserialize},
	[PARTIAL_TOP_N] = {InvalidOid, "gpuagg_top_n_combine", gpuagg_top_n_combine,
					   gpuagg_top_n_serialize, gpuagg_top_n_deserialize},
	[PARTIAL_VALUE_COUNTS] = {InvalidOid, "gpuagg_value_counts_combine",
							  gpuagg_value_counts_combine, gpuagg_value_counts_serialize,
							  gpuagg_value_counts_deserialize},
	[PARTIAL_SUMMARY] = {InvalidOid, "gpuagg_summary_combine", gpuagg_summary_combine,
						 gpuagg_summary_serialize, gpuagg_summary_deserialize},
	[PARTIAL_HISTOGRAM_AUTO] = {InvalidOid, "gpuagg_histogram_auto_combine",
								gpuagg_histogram_auto_combine, gpuagg_histogram_auto_serialize,
								gpuagg_histogram_auto_deserialize},
	[PARTIAL_EQUIDEPTH] = {InvalidOid, "gpuagg_equidepth_combine", gpuagg_equidepth_combine,
						   gpuagg_equidepth_serialize, gpuagg_equidepth_deserialize},
	[PARTIAL_EXP_HISTOGRAM] = {InvalidOid, "gpuagg_exp_histogram_combine",
							   gpuagg_exp_histogram_combine, gpuagg_exp_histogram_serialize,
							   gpuagg_exp_histogram_deserialize},
	[PARTIAL_EXACT] = {InvalidOid, "gpuagg_exact_combine", gpuagg_exact_combine,
					   gpuagg_exact_serialize, gpuagg_exact_deserialize}};

PartialKind
partial_kind_of(Oid core, const char *symbol)
{
	for (int k = 1; k < PARTIAL_KINDS; k++)
		if (OidIsValid(core) ? kinds[k].core == core :
							   symbol && kinds[k].symbol && strcmp(kinds[k].symbol, symbol) == 0)
			return k;
	return PARTIAL_NONE;
}

Datum
partial_make(PartialKind kind, const bytea *serialized)
{
	Size n = VARSIZE_ANY_EXHDR(serialized);
	bytea *state = palloc(VARHDRSZ + HEADER + n);

	SET_VARSIZE(state, VARHDRSZ + HEADER + n);
	VARDATA(state)[0] = FORMAT;
	VARDATA(state)[1] = kind;
	memcpy(VARDATA(state) + HEADER, VARDATA_ANY(serialized), n);
	return PointerGetDatum(state);
}

/* ---- support functions ----------------------------------------------------- */

Node *
partial_context(PartialContext *context)
{
	memset(context, 0, sizeof(*context));
	NodeSetTag(&context->aggstate, T_AggState);
	NodeSetTag(&context->econtext, T_ExprContext);
	context->aggstate.curaggcontext = context->aggstate.tmpcontext = &context->econtext;
	context->econtext.ecxt_per_tuple_memory = context->econtext.ecxt_per_query_memory =
		CurrentMemoryContext;
	return (Node *) &context->aggstate;
}

/*
 * Returns the result of a function of the library or of core with two arguments. Neither they nor
 * the result may be NULL.
 */
static Datum
call_function(PGFunction function, Datum a, Datum b)
{
	LOCAL_FCINFO(fcinfo, 2);
	FmgrInfo flinfo = {.fn_addr = function, .fn_nargs = 2, .fn_mcxt = CurrentMemoryContext};
	PartialContext context;
	Datum result;

	InitFunctionCallInfoData(*fcinfo, &flinfo, 2, InvalidOid, partial_context(&context), NULL);
	fcinfo->args[0].value = a;
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = b;
	fcinfo->args[1].isnull = false;
	result = FunctionCallInvoke(fcinfo);
	if (fcinfo->isnull)
		elog(ERROR, "function of a partial state returned NULL");
	return result;
}

PartialKind
partial_state_kind(const bytea *state)
{
	return ((const unsigned char *) VARDATA_ANY(state))[1];
}

/*
 * Returns the state in memory for a gpuagg_state. from_input: the bytes come from an input
 * function, and their NULLs are checked, too.
 */
static Datum
load_state(const bytea *state, bool from_input)
{
	Size n = VARSIZE_ANY_EXHDR(state) - HEADER;
	bytea *bytes = palloc(VARHDRSZ + n);

	SET_VARSIZE(bytes, VARHDRSZ + n);
	memcpy(VARDATA(bytes), VARDATA_ANY(state) + HEADER, n);
	/*
	 * the executor passes 0 as the second argument, which exists only to make the function's type
	 * safe
	 */
	return call_function(kinds[partial_state_kind(state)].deserialize, PointerGetDatum(bytes),
						 BoolGetDatum(from_input));
}

Datum
partial_load(const bytea *state)
{
	return load_state(state, false);
}

Datum
partial_store(PartialKind kind, Datum internal)
{
	return partial_make(kind,
						DatumGetByteaPP(call_function(kinds[kind].serialize, internal, (Datum) 0)));
}

/* ---- checks of input --------------------------------------------------------- */

/*
 * Reads a number as numeric.c writes it. Raises an error if it is invalid, or has more digits of
 * base 10000 before the point than most_weight allows.
 */
static void
check_number(StringInfo buf, int most_weight)
{
	int ndigits = portable_get_count(buf, 1, buf->len, "number");
	int weight = (int) pq_getmsgint(buf, 4);
	int sign = (int) pq_getmsgint(buf, 4);
	int dscale = (int) pq_getmsgint(buf, 4);

	/* NUMERIC_POS and NUMERIC_NEG */
	if (weight < -most_weight || weight > most_weight || (sign != 0 && sign != 0x4000) ||
		dscale < 0 || dscale > 0x7FFF)
		portable_invalid("number");
	/* no more digits than between the highest weight and the lowest scale */
	if (ndigits > most_weight + 0x7FFF / 4 + 2)
		portable_invalid("number");
	for (int i = 0; i < ndigits; i++)
		if (pq_getmsgint(buf, 2) >= 10000)
			portable_invalid("number");
}

/*
 * Reads a state that core's function has serialized, to the end of buf. Raises an error if it is
 * invalid.
 */
static void
check_numbers(StringInfo buf, const KindInfo *kind)
{
	(void) portable_get_rows(buf, 0);
	for (int i = 0; i < kind->numbers; i++)
		/* int128, or a numeric, whose squares have twice as many digits; sums have some more */
		check_number(buf, kind->tail ? (i + 1) * 0x7FFF + 8 : 9);
	if (kind->tail)
	{
		int scale = (int) pq_getmsgint(buf, 4);

		if (scale < 0 || scale > 0x3FFF)
			portable_invalid("scale");
		for (int i = 0; i < 4; i++)
			(void) portable_get_rows(buf, 0);
	}
	pq_getmsgend(buf);
}

/*
 * Deserialization functions that replace core's, as core_functions.c does for others: other servers
 * also send serialized states (plan/foreign.c).
 */
#define CHECKED(name, kind) \
	PG_FUNCTION_INFO_V1(gpuagg_##name); \
	Datum gpuagg_##name(PG_FUNCTION_ARGS) \
	{ \
		StringInfoData buf; \
		portable_read(&buf, PG_GETARG_BYTEA_PP(0)); \
		check_numbers(&buf, &kinds[kind]); \
		return kinds[kind].deserialize(fcinfo); \
	}
CHECKED(int8_avg_deserialize, PARTIAL_INT8_AVG)
CHECKED(numeric_avg_deserialize, PARTIAL_NUMERIC_AVG)
CHECKED(numeric_poly_deserialize, PARTIAL_POLY_VAR)
CHECKED(numeric_deserialize, PARTIAL_NUMERIC_VAR)
#undef CHECKED

/* Returns a gpuagg_state of n bytes from anywhere. Raises an error if they are invalid. */
static Datum
check_state(const char *bytes, int n)
{
	bytea *state = palloc(VARHDRSZ + n);
	StringInfoData buf;
	PartialKind kind;

	SET_VARSIZE(state, VARHDRSZ + n);
	memcpy(VARDATA(state), bytes, n);
	if (n < HEADER)
		portable_invalid("length");
	portable_check_format(VARDATA(state)[0], FORMAT);
	kind = partial_state_kind(state);
	if (kind == PARTIAL_NONE || kind >= PARTIAL_KINDS)
		portable_invalid("kind");
	if (kinds[kind].numbers > 0)
	{
		portable_read(&buf, state);
		buf.cursor = HEADER;
		check_numbers(&buf, &kinds[kind]);
	}
	else
		load_state(state, true);
	return PointerGetDatum(state);
}

bytea *
partial_bytes(const char *text, const char *type)
{
	if (strncmp(text, "\\x", 2) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s: \"%s\"", type, text)));
	return DatumGetByteaPP(DirectFunctionCall1(byteain, CStringGetDatum(text)));
}

/* Input function of gpuagg_state. Raises an error if the bytes are invalid. */
Datum
gpuagg_state_in(PG_FUNCTION_ARGS)
{
	bytea *bytes = partial_bytes(PG_GETARG_CSTRING(0), "gpuagg_state");

	PG_RETURN_DATUM(check_state(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes)));
}

/* Receive function of gpuagg_state. Raises an error if the bytes are invalid. */
Datum
gpuagg_state_recv(PG_FUNCTION_ARGS)
{
	StringInfo buf = (StringInfo) PG_GETARG_POINTER(0);
	int n = buf->len - buf->cursor;

	PG_RETURN_DATUM(check_state(pq_getmsgbytes(buf, n), n));
}

char *
partial_hex(const bytea *bytes)
{
	int n = VARSIZE_ANY_EXHDR(bytes);
	char *text = palloc_extended((Size) n * 2 + 3, MCXT_ALLOC_HUGE);

	text[0] = '\\';
	text[1] = 'x';
	text[2 + hex_encode(VARDATA_ANY(bytes), n, text + 2)] = '\0';
	return text;
}

/* Output function of gpuagg_state. */
Datum
gpuagg_state_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(partial_hex(PG_GETARG_BYTEA_PP(0)));
}

/* Send function of gpuagg_state. */
Datum
gpuagg_state_send(PG_FUNCTION_ARGS)
{
	PG_RETURN_BYTEA_P(PG_GETARG_BYTEA_P_COPY(0));
}

/* ---- merging ------------------------------------------------------------------- */

Datum
partial_combine(const bytea *state, Datum internal)
{
	PartialKind kind = partial_state_kind(state);
	Datum combined =
		partial_store(kind, call_function(kinds[kind].combine, partial_load(state), internal));
	StringInfoData buf;

	if (kinds[kind].numbers > 0)
	{
		/* core adds numbers of rows without checks */
		portable_read(&buf, DatumGetByteaPP(combined));
		buf.cursor = HEADER;
		(void) portable_get_rows(&buf, 0);
	}
	return combined;
}

/*
 * (gpuagg_state, gpuagg_state), neither NULL: combine function of gpuagg_merge. Raises an error if
 * their kinds differ.
 */
Datum
gpuagg_merge_combine(PG_FUNCTION_ARGS)
{
	bytea *a = PG_GETARG_BYTEA_PP(0);
	bytea *b = PG_GETARG_BYTEA_PP(1);

	if (partial_state_kind(a) != partial_state_kind(b))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partial states of different aggregates cannot be combined")));
	PG_RETURN_DATUM(partial_combine(a, partial_load(b)));
}

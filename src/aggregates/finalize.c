/*
 * finalize.c
 *	  From slot states to SQL results.
 *
 * Most states become core's own transition value, from which the aggregate's final function makes
 * the result. Histograms, sketches, runs and gpu_argmax have no such step: their states become the
 * result directly. Allocates only in the current context.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/expandeddatum.h"

#include "aggregates/aggmap_internal.h"
#include "aggregates/argextreme.h"
#include "aggregates/histogram.h"
#include "aggregates/hll_value.h"
#include "aggregates/matrix.h"
#include "aggregates/poly_states.h"
#include "aggregates/state_forms.h"
#include "columns/decimal.h"
#include "operators/hll.h"

/* The largest display scale that a numeric can have. */
#define MAX_SHOWN_SCALE 0x3FFF

/* The state of group g in the aggregate's i-th slot. */
#define STATE(type, i) (((const type *) groups->slots[out->slots[i]])[g])

/* Returns an integer as a value of the transition type. */
static Datum
integer_datum(const AggOutput *out, int64 value)
{
	switch (out->agg.translen)
	{
		case 1:
			return BoolGetDatum(value & 1);
		case 2:
			return Int16GetDatum((int16) value);
		case 4:
			return out->agg.transtype == OIDOID ? ObjectIdGetDatum((Oid) value) :
												  Int32GetDatum((int32) value);
		default:
			return Int64GetDatum(value);
	}
}

/* Calls one of the aggregate's functions, which allocates in the current context. */
static Datum
call_support(AggOutput *out, FmgrInfo *fn, int nargs, const NullableDatum *args, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, FUNC_MAX_ARGS + 1);
	Datum result;

	*isnull = true;
	InitFunctionCallInfoData(*fcinfo, fn, nargs, out->agg.collation, (Node *) out->aggstate, NULL);
	for (int i = 0; i < nargs; i++)
	{
		if (fn->fn_strict && args[i].isnull)
			return (Datum) 0;
		fcinfo->args[i] = args[i];
	}
	out->aggstate->curaggcontext->ecxt_per_tuple_memory = CurrentMemoryContext;
	result = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	return result;
}

/* Returns core's internal state for its portable serialized form. */
static Datum
internal_state(AggOutput *out, Datum portable)
{
	NullableDatum args[2] = {{(Datum) 0, false}, {(Datum) 0, false}};
	bool isnull;

	args[0].value = PointerGetDatum(
		poly_state_for_function(DatumGetByteaPP(portable), out->agg.deserialfn.fn_oid));
	return call_support(out, &out->agg.deserialfn, 2, args, &isnull);
}

int
aggmap_shown_scale(const AggOutput *out, const GroupBatch *groups, int g, int most)
{
	int32 scale = out->shows_scales ? STATE(int32, SCALE_SLOT) : out->scale;

	if (unlikely(scale < 0 || scale > most))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("display scale %d of a sum is out of range", scale)));
	return scale;
}

/* Returns the portable serialized form of core's internal state, made from the group's slots. */
static Datum
serialize_slots(AggOutput *out, const GroupBatch *groups, int g)
{
	switch (out->kind)
	{
		case FINALIZE_INT8_AVG:
			return form_int8_avg(STATE(int64, 0),
								 linear_sum128(out, STATE(int64, 0), STATE(gpuagg_i128, 1)));
		case FINALIZE_POLY_VAR:
			return form_poly_var(STATE(int64, 0), STATE(gpuagg_i128, 1), STATE(gpuagg_i128, 2));
		case FINALIZE_NUMERIC_VAR:
			return form_numeric_var(STATE(int64, 0), STATE(gpuagg_i128, 1), STATE(gpuagg_i192, 2));
		default:
			Assert(out->kind == FINALIZE_DEC_AVG);
			return form_numeric_avg(
				STATE(int64, 0), linear_sum128(out, STATE(int64, 0), STATE(gpuagg_i128, 1)),
				out->scale, aggmap_shown_scale(out, groups, g, MAX_SHOWN_SCALE));
	}
}

/* Returns the transition value of a group's slots. */
static Datum
slots_transition_value(AggOutput *out, const GroupBatch *groups, int g)
{
	switch (out->kind)
	{
		case FINALIZE_INT:
			return integer_datum(out, STATE(int64, 0));
		case FINALIZE_COUNTED_INT:
			return integer_datum(out, linear_sum64(out, STATE(int64, 0), STATE(int64, 1)));
		case FINALIZE_COUNTED_I32:
			return integer_datum(out, STATE(int32, 1));
		case FINALIZE_COUNTED_F32:
			return Float4GetDatum(STATE(float, 1));
		case FINALIZE_COUNTED_F64:
			return Float8GetDatum(STATE(double, 1));
		case FINALIZE_INT_AVG:
		{
			int64 state[2] = {STATE(int64, 0), linear_sum64(out, STATE(int64, 0), STATE(int64, 1))};

			return form_array(INT8OID, state, 2);
		}
		case FINALIZE_INT8_AVG:
		case FINALIZE_POLY_VAR:
		case FINALIZE_NUMERIC_VAR:
		case FINALIZE_DEC_AVG:
			return internal_state(out, serialize_slots(out, groups, g));
		case FINALIZE_DEC:
			return decimal_to_numeric(STATE(gpuagg_i128, 1), out->scale);
		case FINALIZE_ACCUM:
			return form_array(FLOAT8OID, &STATE(gpuagg_accum, 0), 3);
		case FINALIZE_REGR:
			return form_array(FLOAT8OID, &STATE(gpuagg_regr, 0), 6);
		case FINALIZE_MOMENTS:
			return form_array(FLOAT8OID, &STATE(gpuagg_moments, 0), 5);
		case FINALIZE_MAXSUB_I64:
			return PointerGetDatum(&STATE(gpuagg_maxsub_i64, 1));
		case FINALIZE_MAXSUB_F64:
			return PointerGetDatum(&STATE(gpuagg_maxsub_f64, 1));
		case FINALIZE_LINEAR:
			return PointerGetDatum(&STATE(gpuagg_f64x2, 1));
		case FINALIZE_FALLBACK:
		case FINALIZE_ORDERED_SET:
		case FINALIZE_HIST_UNIFORM:
		case FINALIZE_HIST_WEIGHTED:
		case FINALIZE_HIST_THRESHOLDS:
		case FINALIZE_HIST_LOG:
		case FINALIZE_HIST_GRID:
		case FINALIZE_HIST_GRID_WEIGHTED:
		case FINALIZE_HLL:
		case FINALIZE_ARG:
		case FINALIZE_MATRIX:
		case FINALIZE_RUN:
		case FINALIZE_ASCENDING:
			break;
	}
	elog(ERROR, "aggregate has no transition value in slots");
}

/*
 * Returns the combination of two transition values, by the aggregate's combine function. If one is
 * NULL, returns the other one.
 */
static Datum
merge_values(AggOutput *out, NullableDatum a, NullableDatum b, bool *isnull)
{
	NullableDatum args[2] = {a, b};

	if (a.isnull || b.isnull)
	{
		*isnull = a.isnull && b.isnull;
		return a.isnull ? b.value : a.value;
	}
	return call_support(out, &out->agg.combinefn, 2, args, isnull);
}

/*
 * Checks that a fallback aggregate's state has no numbers, only NaN.  The plan made sure of that,
 * because the state is that of the input, not of the argument that depends on it.
 */
static void
check_only_nan(AggOutput *out, NullableDatum state)
{
	bool isnull;
	bytea *serialized =
		(bytea *) DatumGetPointer(call_support(out, &out->agg.serialfn, 1, &state, &isnull));
	int64 numbers;

	memcpy(&numbers, VARDATA(serialized), sizeof(numbers));
	if (numbers != 0)
		elog(ERROR, "numerics do not have the precision and scale of their column");
}

/*
 * Returns a group's transition value: from its slots, from its fallback aggregate, or from both of
 * them merged.
 */
static Datum
transition_value(AggOutput *out, const GroupBatch *groups, int g, bool *isnull)
{
	NullableDatum slots = {out->agg.initval, out->agg.initnull};
	NullableDatum fallback = {(Datum) 0, true};

	if (out->kind != FINALIZE_FALLBACK && !(out->counted && STATE(int64, 0) == 0))
	{
		slots.value = slots_transition_value(out, groups, g);
		slots.isnull = false;
	}
	if (out->fallback < 0)
	{
		*isnull = slots.isnull;
		return slots.value;
	}
	fallback.value = groups->fallbacks[out->fallback][g];
	fallback.isnull = groups->fallback_nulls[out->fallback][g];
	if (out->kind == FINALIZE_FALLBACK)
	{
		*isnull = fallback.isnull;
		return fallback.value;
	}
	if (!fallback.isnull && out->kind == FINALIZE_DEC_AVG &&
		(out->linear.mul != 1 || out->linear.add != 0))
		check_only_nan(out, fallback);
	return merge_values(out, slots, fallback, isnull);
}

/*
 * Returns the estimate of a sketch. states: its registers if `ranks` is false; else the number of
 * registers of each rank.
 */
static Datum
sketch_value(const int32 *states, bool ranks)
{
	int32 counts[GPUAGG_HLL_RANKS];
	int64 registers = 0;

	/* states may come from the GPU server, so they are checked */
	if (!ranks)
	{
		uint32 most = gpuagg_hll_count_ranks(states, counts);

		if (unlikely(most > GPUAGG_HLL_MAX_RANK))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("rank %u of a sketch is out of range", most)));
		return Int64GetDatum((int64) rint(gpuagg_hll_estimate(counts)));
	}
	for (int r = 0; r < GPUAGG_HLL_RANKS; r++)
		registers += (uint32) states[r];
	if (unlikely(registers != GPUAGG_HLL_REGISTERS))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("number of registers of a sketch is out of range: %lld",
						(long long) registers)));
	return Int64GetDatum((int64) rint(gpuagg_hll_estimate(states)));
}

/* Returns the value of a histogram or sketch. A histogram is NULL if no row counts. */
static Datum
binned_value(AggOutput *out, const GroupBatch *groups, int g, bool *isnull)
{
	const char *bins =
		(const char *) groups->slots[out->slots[1]] + (Size) g * out->width * sizeof(int64);
	Datum array;

	*isnull = false;
	if (out->kind == FINALIZE_HLL)
		return sketch_value((const int32 *) groups->slots[out->slots[1]] +
								(Size) g * (groups->ranks ? GPUAGG_HLL_RANKS : out->width),
							groups->ranks);
	*isnull = STATE(int64, 0) == 0;
	if (*isnull)
		return (Datum) 0;
	if (out->kind == FINALIZE_HIST_WEIGHTED || out->kind == FINALIZE_HIST_GRID_WEIGHTED)
		array = histogram_weight_array((const double *) bins, out->width);
	else
		array = histogram_count_array((const int64 *) bins, out->width);
	return finalize_has_grid(out->kind) ? histogram_grid_array(array, &out->bins, &out->y) : array;
}

/* Returns the value that has this code in a column of this type. */
static Datum
code_datum(ColumnType type, int64 code)
{
	switch (type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		return to_datum((value_t) code);
		COLUMN_INTEGERS(X)
#undef X
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		return to_datum((value_t) gpuagg_code_f64(code));
		COLUMN_FLOATS(X)
#undef X
		default:
			elog(ERROR, "column type %d has no 64-bit codes", (int) type);
	}
}

/*
 * Returns the smallest value in the rows with the extreme key. Slot 1 has only rows whose value is
 * not NULL; if none of these has the key of slot 2, the result is NULL.
 */
static Datum
arg_value(AggOutput *out, const GroupBatch *groups, int g, bool *isnull)
{
	gpuagg_kv kv = STATE(gpuagg_kv, 1);

	*isnull = STATE(int64, 0) == 0 || kv.key != STATE(int64, 2);
	return *isnull ? (Datum) 0 : code_datum(out->value, kv.value);
}

/*
 * Sets the group's value if it is made from states without a transition value. Returns false for
 * all other aggregates.
 */
static bool
direct_value(AggOutput *out, const GroupBatch *groups, int g, Datum *value, bool *isnull)
{
	if (out->kind == FINALIZE_ORDERED_SET)
	{
		*isnull = groups->fallback_nulls[out->fallback][g];
		*value = groups->fallbacks[out->fallback][g];
	}
	else if (finalize_has_bins(out->kind))
		*value = binned_value(out, groups, g, isnull);
	else if (out->kind == FINALIZE_ARG)
		*value = arg_value(out, groups, g, isnull);
	else if (out->kind == FINALIZE_MATRIX)
	{
		int size = groups->matrix_size;

		*isnull = STATE(int64, 0) == 0;
		*value = *isnull ? (Datum) 0 :
						   matrix_datum(&STATE(double, 1) + (Size) g * (size * size - 1), size);
	}
	else if (out->kind == FINALIZE_RUN)
	{
		*isnull = STATE(gpuagg_run, 0).len == 0;
		*value = Int64GetDatum(STATE(gpuagg_run, 0).best);
	}
	else if (out->kind == FINALIZE_ASCENDING)
	{
		*isnull = STATE(gpuagg_asc, 0).len == 0;
		*value = Int64GetDatum(STATE(gpuagg_asc, 0).best);
	}
	else if (out->float8_mean)
	{
		gpuagg_accum state = STATE(gpuagg_accum, 0);

		*isnull = state.n == 0;
		*value = *isnull ? (Datum) 0 : Float8GetDatum(state.sx / state.n);
	}
	else
		return false;
	return true;
}

/* ---- states for other servers -------------------------------------------------- */

/* Returns the state of gpu_argmax and similar aggregates; NULL if no row has a key. */
static bytea *
arg_state(AggOutput *out, const GroupBatch *groups, int g)
{
	gpuagg_kv kv = STATE(gpuagg_kv, 1);
	int64 key = STATE(int64, 2);
	bool no_value = STATE(int64, 0) == 0 || kv.key != key;
	const List *args = out->agg.aggref->args;

	/* slot 2 has its identity: no row has a key, or the key has that code and no row has a value */
	if (STATE(int64, 0) == 0 && (key == PG_INT64_MIN || key == PG_INT64_MAX))
		return NULL;
	return argextreme_state(exprType((Node *) linitial_node(TargetEntry, args)->expr),
							exprType((Node *) lsecond_node(TargetEntry, args)->expr),
							out->agg.collation,
							no_value ? (Datum) 0 : code_datum(out->value, kv.value), no_value,
							code_datum(out->key, key));
}

/*
 * Returns the state of a group's slots in the form that its serialization function writes; NULL if
 * there are no rows.
 */
static bytea *
serialize_slots_of_group(AggOutput *out, const GroupBatch *groups, int g)
{
	if (out->counted && STATE(int64, 0) == 0 && out->kind != FINALIZE_ARG)
		return NULL;
	switch (out->kind)
	{
		case FINALIZE_INT8_AVG:
		case FINALIZE_POLY_VAR:
		case FINALIZE_NUMERIC_VAR:
		case FINALIZE_DEC_AVG:
			return (bytea *) DatumGetPointer(serialize_slots(out, groups, g));
		case FINALIZE_HIST_UNIFORM:
		case FINALIZE_HIST_WEIGHTED:
		case FINALIZE_HIST_THRESHOLDS:
		case FINALIZE_HIST_LOG:
		case FINALIZE_HIST_GRID:
		case FINALIZE_HIST_GRID_WEIGHTED:
			return histogram_state(
				&out->bins, &out->y,
				out->kind == FINALIZE_HIST_WEIGHTED || out->kind == FINALIZE_HIST_GRID_WEIGHTED,
				out->kind == FINALIZE_HIST_LOG,
				(const int64 *) groups->slots[out->slots[1]] + (Size) g * out->width);
		case FINALIZE_HLL:
			return hll_state((const int32 *) groups->slots[out->slots[1]] + (Size) g * out->width);
		case FINALIZE_ARG:
			return arg_state(out, groups, g);
		default:
			elog(ERROR, "aggregate has no partial state in slots");
	}
}

/* Returns the gpuagg_state of a group. */
static Datum
group_state(AggOutput *out, const GroupBatch *groups, int g, bool *isnull)
{
	bool no_fallback_rows = out->fallback < 0 || groups->fallback_nulls[out->fallback][g];
	NullableDatum internal;
	bytea *state;

	*isnull = true;
	if (out->kind != FINALIZE_FALLBACK && no_fallback_rows)
		state = serialize_slots_of_group(out, groups, g);
	else
	{
		internal.value = transition_value(out, groups, g, &internal.isnull);
		if (internal.isnull)
			return (Datum) 0;
		*isnull = false;
		return partial_store(out->partial, internal.value);
	}
	*isnull = state == NULL;
	return *isnull ? (Datum) 0 : partial_make(out->partial, state);
}

/*
 * Returns what a partial aggregate returns for a group: its gpuagg_state or transition value, in
 * the form that the query expects.
 */
static Datum
partial_value(AggOutput *out, const GroupBatch *groups, int g, bool *isnull)
{
	Datum value = out->partial != PARTIAL_NONE ? group_state(out, groups, g, isnull) :
												 transition_value(out, groups, g, isnull);

	if (*isnull)
		return (Datum) 0;
	/* the binary form of a gpuagg_state is its bytes */
	if (out->partial != PARTIAL_NONE)
		return out->form == PARTIAL_TEXT ?
			CStringGetDatum(partial_hex((bytea *) DatumGetPointer(value))) :
			value;
	if (out->form == PARTIAL_TEXT)
		return CStringGetDatum(OutputFunctionCall(&out->output, value));
	return PointerGetDatum(SendFunctionCall(&out->output, value));
}

/* Returns whether slots have the serialized form of the aggregate's internal state. */
static bool
slots_are_serialized(const AggOutput *out)
{
	return finalize_is_direct(out->kind) ||
		(out->kind >= FINALIZE_INT8_AVG && out->kind <= FINALIZE_DEC_AVG);
}

/*
 * Returns a group's transition value, serialized if it is internal, as core's partial aggregation
 * does.
 */
static Datum
partial_transition_value(AggOutput *out, const GroupBatch *groups, int g, bool *isnull)
{
	NullableDatum value;
	bytea *state;

	if (slots_are_serialized(out) &&
		(out->fallback < 0 || groups->fallback_nulls[out->fallback][g]))
	{
		state = serialize_slots_of_group(out, groups, g);
		*isnull = state == NULL;
		return *isnull ?
			(Datum) 0 :
			PointerGetDatum(finalize_is_direct(out->kind) ?
								state :
								poly_state_for_function(state, out->agg.deserialfn.fn_oid));
	}
	value.value = transition_value(out, groups, g, &value.isnull);
	*isnull = value.isnull;
	if (OidIsValid(out->agg.serialfn.fn_oid))
		return call_support(out, &out->agg.serialfn, 1, &value, isnull);
	return MakeExpandedObjectReadOnly(value.value, value.isnull, out->agg.translen);
}

bool
aggmap_reads_registers(const AggOutput *out)
{
	return out->kind == FINALIZE_HLL && out->form != PARTIAL_RESULT;
}

Datum
aggmap_finalize(AggOutput *out, const GroupBatch *groups, int g, bool *isnull)
{
	NullableDatum args[FUNC_MAX_ARGS + 1];
	Datum value;

	CHECK_FOR_INTERRUPTS();
	if (out->form == PARTIAL_TRANS)
		return partial_transition_value(out, groups, g, isnull);
	if (out->form != PARTIAL_RESULT)
		return partial_value(out, groups, g, isnull);
	if (direct_value(out, groups, g, &value, isnull))
		return value;

	/* other aggregates and expressions may share the value */
	value = transition_value(out, groups, g, isnull);
	args[0].value = MakeExpandedObjectReadOnly(value, *isnull, out->agg.translen);
	args[0].isnull = *isnull;
	if (!OidIsValid(out->finalfn.fn_oid))
		return args[0].value;
	for (int i = 1; i < out->nfinalargs; i++)
	{
		args[i].value = (Datum) 0;
		args[i].isnull = true;
	}
	return call_support(out, &out->finalfn, out->nfinalargs, args, isnull);
}

void
aggmap_raise(int errors)
{
	if (errors & MONOID_ERR_OVERFLOW)
		ereport(
			ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("value out of range: overflow")));
	if (errors & MONOID_ERR_UNDERFLOW)
		ereport(
			ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("value out of range: underflow")));
	if (errors & MONOID_ERR_INT_OVERFLOW)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("sum out of range"),
				 errhint("Set \"%s\" to off for this query.", "gpuagg.enabled")));
}

/*
 * engine_cpu_own.c
 *	  Aggregates run by their own transition functions, as nodeAgg.c runs them.
 *
 * States live in an ExprContext's per-tuple memory, which transition functions
 * find through a stand-in AggState.  Grouped input needs three contexts: one
 * for the group carried over from the batch before, one for the group that may
 * be carried over to the next, one for those in between; so finished groups
 * are freed while the open one stays.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/nodeAgg.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "engine_cpu.h"

typedef struct OwnCall
{
	AggStatePerTransData pertrans;
	FunctionCallInfo trans;
	FunctionCallInfo combine;
	FunctionCallInfo serial;
	FunctionCallInfo deserial;
} OwnCall;

struct OwnWork
{
	const AggSpec *spec;
	AggState   *aggstate;
	ExprContext *temp;			/* per input row */
	ExprContext *states;
	ExprContext *carry[2];		/* segmented: of row 0, of the last row */
	OwnCall    *calls;
};

static FunctionCallInfo
prepare_call(OwnWork *work, const FmgrInfo *function, int nargs, Oid collation)
{
	FunctionCallInfo fcinfo = palloc0(SizeForFunctionCallInfo(nargs));

	InitFunctionCallInfoData(*fcinfo, unconstify(FmgrInfo *, function), nargs, collation,
							 (Node *) work->aggstate, NULL);
	return fcinfo;
}

OwnWork *
owns_create(const AggSpec *spec, MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);
	OwnWork    *work = palloc0(sizeof(OwnWork));

	work->spec = spec;
	work->aggstate = makeNode(AggState);
	work->temp = CreateStandaloneExprContext();
	work->states = CreateStandaloneExprContext();
	work->carry[0] = CreateStandaloneExprContext();
	work->carry[1] = CreateStandaloneExprContext();
	work->aggstate->tmpcontext = work->temp;
	work->aggstate->curaggcontext = work->states;
	work->calls = palloc0(spec->nowns * sizeof(OwnCall));
	for (int o = 0; o < spec->nowns; o++)
	{
		const OwnSpec *own = &spec->owns[o];
		OwnCall    *call = &work->calls[o];

		call->pertrans.aggref = own->aggref;
		call->trans = prepare_call(work, &own->transfn, own->nargs + 1, own->collation);
		call->combine = prepare_call(work, &own->combinefn, 2, own->collation);
		call->serial = prepare_call(work, &own->serialfn, 1, InvalidOid);
		call->deserial = prepare_call(work, &own->deserialfn, 2, InvalidOid);
	}
	MemoryContextSwitchTo(old);
	return work;
}

/* An initial state; a by-reference one is copied when first used. */
static void
init_state(const OwnSpec *own, OwnState *state)
{
	state->value = own->initval;
	state->isnull = own->initnull;
	state->notrans = own->initnull;
	state->fresh = true;
	state->combined = false;
}

void
owns_init_row(void *arg, char *row)
{
	GroupTable *table = arg;
	OwnState   *states = group_owns(table, row);

	for (int o = 0; o < table->spec->nowns; o++)
		init_state(&table->spec->owns[o], &states[o]);
}

/* Where the states of a row live. */
static ExprContext *
states_context(OwnWork *work, const GroupTable *table, uint32 at)
{
	if (table->mode != TABLE_SEGMENTED)
		return work->states;
	if (at == 0)
		return work->carry[0];
	if (at == (table->ngroups - 1) * table->row_cells)
		return work->carry[1];
	return work->states;
}

/* A by-reference transition value that is not yet in the states' context. */
static Datum
keep_value(const OwnSpec *own, MemoryContext cxt, Datum value, bool isnull, const OwnState *state)
{
	if (!isnull)
	{
		MemoryContext old = MemoryContextSwitchTo(cxt);

		if (!(DatumIsReadWriteExpandedObject(value, false, own->translen) &&
			  MemoryContextGetParent(DatumGetEOHP(value)->eoh_context) == cxt))
			value = datumCopy(value, own->transbyval, own->translen);
		MemoryContextSwitchTo(old);
	}
	else
		value = (Datum) 0;
	if (!state->isnull)
	{
		if (DatumIsReadWriteExpandedObject(state->value, false, own->translen))
			DeleteExpandedObject(state->value);
		else
			pfree(DatumGetPointer(state->value));
	}
	return value;
}

/* One transition (or combination): arguments after the first are set. */
static void
advance(OwnWork *work, int o, FunctionCallInfo fcinfo, ExprContext *states, OwnState *state)
{
	const OwnSpec *own = &work->spec->owns[o];
	MemoryContext cxt = states->ecxt_per_tuple_memory;
	MemoryContext old;
	Datum		value;

	if (state->fresh)
	{
		old = MemoryContextSwitchTo(cxt);
		if (!state->isnull)
			state->value = datumCopy(state->value, own->transbyval, own->translen);
		MemoryContextSwitchTo(old);
		state->fresh = false;
	}
	if (fcinfo->flinfo->fn_strict)
	{
		for (int a = 1; a < fcinfo->nargs; a++)
			if (fcinfo->args[a].isnull)
				return;
		if (state->notrans)
		{
			old = MemoryContextSwitchTo(cxt);
			state->value = datumCopy(fcinfo->args[1].value, own->transbyval, own->translen);
			MemoryContextSwitchTo(old);
			state->isnull = false;
			state->notrans = false;
			return;
		}
		if (state->isnull)
			return;
	}
	work->aggstate->curaggcontext = states;
	work->aggstate->curpertrans = &work->calls[o].pertrans;
	old = MemoryContextSwitchTo(work->temp->ecxt_per_tuple_memory);
	fcinfo->args[0].value = state->value;
	fcinfo->args[0].isnull = state->isnull;
	fcinfo->isnull = false;
	value = FunctionCallInvoke(fcinfo);
	if (!own->transbyval && DatumGetPointer(value) != DatumGetPointer(state->value))
		value = keep_value(own, cxt, value, fcinfo->isnull, state);
	state->value = value;
	state->isnull = fcinfo->isnull;
	MemoryContextSwitchTo(old);
	ResetExprContext(work->temp);
}

/* An argument of a row that counts: they come as Datums, or are numerics of which only the odd ones count. */
static Datum
argument(const Column *col, int i)
{
	return col->type == COLUMN_DATUM ? ((Datum *) col->values)[i] : col->odd_values[i];
}

/* Does row i count for the aggregate? */
static inline bool
row_counts(const OwnSpec *own, const Batch *batch, int i)
{
	if (own->odd_only)
	{
		const Column *col = &batch->cols[own->argcol[0]];

		if (column_is_null(col, i) || !column_is_odd(col, i))
			return false;
	}
	if (own->filter >= 0)
	{
		const Column *col = &batch->cols[own->filter];

		return !column_is_null(col, i) && ((int8 *) col->values)[i] != 0;
	}
	return true;
}

void
owns_advance(OwnWork *work, GroupTable *table, const Batch *batch)
{
	for (int o = 0; o < work->spec->nowns; o++)
	{
		const OwnSpec *own = &work->spec->owns[o];
		FunctionCallInfo fcinfo = work->calls[o].trans;

		if (own->odd_only && !batch->cols[own->argcol[0]].odd)
			continue;
		for (int i = 0; i < batch->nrows; i++)
		{
			uint32		at = table->at[i];

			if (at == NO_GROUP || !row_counts(own, batch, i))
				continue;
			for (int a = 0; a < own->nargs; a++)
			{
				const Column *col = &batch->cols[own->argcol[a]];

				fcinfo->args[a + 1].isnull = column_is_null(col, i);
				fcinfo->args[a + 1].value = fcinfo->args[a + 1].isnull ? (Datum) 0 : argument(col, i);
			}
			advance(work, o, fcinfo, states_context(work, table, at),
					&group_owns(table, group_row_at(table, at))[o]);
		}
	}
}

/* ---- merging ------------------------------------------------------------ */

/*
 * May states leave for files and be combined with rows that come later?  That
 * must not show in a plan that core would not combine states in, so others'
 * aggregates are not trusted with it, nor the send and receive functions of the
 * types of which array_agg makes arrays.
 */
bool
owns_spillable(const AggSpec *spec)
{
	for (int o = 0; o < spec->nowns; o++)
	{
		const OwnSpec *own = &spec->owns[o];

		if (!own->builtin || !OidIsValid(own->combinefn.fn_oid))
			return false;
		if (own->transfn.fn_oid == F_ARRAY_AGG_TRANSFN ||
			own->transfn.fn_oid == F_ARRAY_AGG_ARRAY_TRANSFN)
			return false;
		if (own->transtype == INTERNALOID && (!OidIsValid(own->serialfn.fn_oid) ||
											  !OidIsValid(own->deserialfn.fn_oid)))
			return false;
	}
	return true;
}

/*
 * Combines a partial state with a row's.  Core begins with the initial value and
 * combines one partial state after the other with it.  So a row's state that
 * came of transitions is the first of these, whatever its transition function
 * makes of NULLs: one that is NULL leaves the initial value to a strict function.
 */
void
owns_combine(OwnWork *work, GroupTable *table, char *row, int own, Datum value, bool isnull)
{
	FunctionCallInfo fcinfo = work->calls[own].combine;
	OwnState   *state = &group_owns(table, row)[own];

	if (!state->combined && !state->fresh && fcinfo->flinfo->fn_strict)
	{
		if (!state->isnull)
			state->notrans = false;
		else
			init_state(&work->spec->owns[own], state);
	}
	state->combined = true;
	fcinfo->args[1].value = value;
	fcinfo->args[1].isnull = isnull;
	advance(work, own, fcinfo, work->states, state);
}

/* The serialized form of an internal state, in temporary memory (owns_end_temp). */
Datum
owns_serialize(OwnWork *work, int own, Datum value)
{
	FunctionCallInfo fcinfo = work->calls[own].serial;
	MemoryContext old = MemoryContextSwitchTo(work->temp->ecxt_per_tuple_memory);
	Datum		result;

	work->aggstate->curaggcontext = work->states;
	work->aggstate->curpertrans = &work->calls[own].pertrans;
	fcinfo->args[0].value = value;
	fcinfo->args[0].isnull = false;
	fcinfo->isnull = false;
	result = FunctionCallInvoke(fcinfo);
	if (fcinfo->isnull)
		elog(ERROR, "serialization function %u returned NULL", fcinfo->flinfo->fn_oid);
	result = PointerGetDatum(PG_DETOAST_DATUM(result));
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * The state of a serialized form.  The result may live in temporary memory, as
 * in nodeAgg.c: combine functions copy what they keep.
 */
Datum
owns_deserialize(OwnWork *work, int own, Datum bytes)
{
	FunctionCallInfo fcinfo = work->calls[own].deserial;
	MemoryContext old = MemoryContextSwitchTo(work->temp->ecxt_per_tuple_memory);
	Datum		result;

	work->aggstate->curaggcontext = work->states;
	work->aggstate->curpertrans = &work->calls[own].pertrans;
	fcinfo->args[0].value = bytes;
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = (Datum) 0;
	fcinfo->args[1].isnull = true;
	fcinfo->isnull = false;
	result = FunctionCallInvoke(fcinfo);
	MemoryContextSwitchTo(old);
	return result;
}

MemoryContext
owns_temp(OwnWork *work)
{
	return work->temp->ecxt_per_tuple_memory;
}

void
owns_end_temp(OwnWork *work)
{
	ResetExprContext(work->temp);
}

/* ---- memory ------------------------------------------------------------- */

size_t
owns_memory(const OwnWork *work)
{
	return MemoryContextMemAllocated(work->states->ecxt_per_tuple_memory, true) +
		MemoryContextMemAllocated(work->carry[0]->ecxt_per_tuple_memory, true) +
		MemoryContextMemAllocated(work->carry[1]->ecxt_per_tuple_memory, true);
}

/* The last of several rows is about to become row 0. */
void
owns_carry_last(OwnWork *work)
{
	ExprContext *done = work->carry[0];

	ReScanExprContext(done);
	ReScanExprContext(work->states);
	work->carry[0] = work->carry[1];
	work->carry[1] = done;
}

void
owns_reset(OwnWork *work)
{
	ReScanExprContext(work->states);
	ReScanExprContext(work->carry[0]);
	ReScanExprContext(work->carry[1]);
	ReScanExprContext(work->temp);
}

/* Runs what transition functions registered to be called at the end. */
void
owns_end(OwnWork *work)
{
	FreeExprContext(work->states, true);
	FreeExprContext(work->carry[0], true);
	FreeExprContext(work->carry[1], true);
	FreeExprContext(work->temp, true);
}

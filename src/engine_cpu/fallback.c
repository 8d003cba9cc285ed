/*
 * fallback.c
 *	  Fallback aggregates: their transition functions are called as nodeAgg.c calls them.
 *
 * States are in the per-tuple memory of an ExprContext. Transition functions find it through an
 * AggState that is made for this purpose. Grouped input needs three such contexts: for the group
 * carried over from the batch before, for the last group, which may continue in the next batch, and
 * for those between them. So complete groups are freed while the open one stays.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "engine_cpu/fallback_internal.h"

/* Returns the call info for a function, which finds work->aggstate in it, as in nodeAgg.c. */
static FunctionCallInfo
prepare_call(FallbackWork *work, const FmgrInfo *function, int nargs, Oid collation)
{
	FunctionCallInfo fcinfo = palloc0(SizeForFunctionCallInfo(nargs));

	InitFunctionCallInfoData(*fcinfo, unconstify(FmgrInfo *, function), nargs, collation,
							 (Node *) work->aggstate, NULL);
	return fcinfo;
}

/*
 * Creates an ExprContext for states, in the current memory context. Its memory blocks are small
 * compared to the limit, as in core, so that allocated memory is close to what states need.
 */
static ExprContext *
create_states_context(size_t mem_limit)
{
	ExprContext *states = CreateStandaloneExprContext();
	Size block = ALLOCSET_DEFAULT_INITSIZE;

	while (block < ALLOCSET_DEFAULT_MAXSIZE && block * 32 <= mem_limit)
		block *= 2;
	MemoryContextDelete(states->ecxt_per_tuple_memory);
	states->ecxt_per_tuple_memory =
		AllocSetContextCreate(states->ecxt_per_query_memory, "gpuagg states",
							  ALLOCSET_DEFAULT_MINSIZE, ALLOCSET_DEFAULT_INITSIZE, block);
	return states;
}

FallbackWork *
fallbacks_create(const AggSpec *spec, MemoryContext cxt, size_t mem_limit, int batch_rows)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);
	FallbackWork *work = palloc0(sizeof(FallbackWork));

	work->spec = spec;
	work->mem_limit = mem_limit;
	work->aggstate = makeNode(AggState);
	work->temp = CreateStandaloneExprContext();
	work->states = create_states_context(mem_limit);
	work->carry[0] = create_states_context(mem_limit);
	work->carry[1] = create_states_context(mem_limit);
	work->aggstate->tmpcontext = work->temp;
	work->aggstate->curaggcontext = work->states;
	work->calls = palloc0(spec->nfallbacks * sizeof(FallbackCall));
	work->picked = palloc(batch_rows * sizeof(uint32));
	for (int o = 0; o < spec->nfallbacks; o++)
	{
		const FallbackAgg *fallback = &spec->fallbacks[o];
		FallbackCall *call = &work->calls[o];

		call->pertrans.aggref = fallback->aggref;
		call->seen.possible = spec_ignores_repeats(fallback);
		call->step = agg_step(&fallback->transfn);
		call->steps =
			fallback->nargs == 1 && fallback->filter < 0 ? agg_steps(&fallback->transfn) : NULL;
		if (exact_sums_take(spec, fallback))
			fallback_exact_prepare(call, fallback, batch_rows);
		if (fallback->top_n > 0)
		{
			call->top = top_n_call(&fallback->transfn, top_n_form_of(&fallback->transfn),
								   fallback->collation, fallback->top_n);
			call->top_by_value = top_entries_are_by_value(spec, fallback);
		}
		call->trans =
			prepare_call(work, &fallback->transfn, fallback->nargs + 1, fallback->collation);
		call->combine = prepare_call(work, &fallback->combinefn, 2, fallback->collation);
		call->serial = prepare_call(work, &fallback->serialfn, 1, InvalidOid);
		call->deserial = prepare_call(work, &fallback->deserialfn, 2, InvalidOid);
	}
	work->empty = fallbacks_memory(work);
	MemoryContextSwitchTo(old);
	return work;
}

/* Sets an initial state. A by-reference value is copied when it is first used. */
static void
init_state(const FallbackAgg *fallback, FallbackState *state)
{
	state->value = fallback->initval;
	state->isnull = fallback->initnull;
	state->notrans = fallback->initnull;
	state->fresh = true;
	state->combined = false;
	state->bound = PG_UINT32_MAX;
}

void
fallbacks_init_row(void *arg, char *row)
{
	GroupTable *table = arg;
	FallbackState *states = group_fallbacks(table, row);

	for (int o = 0; o < table->spec->nfallbacks; o++)
		init_state(&table->spec->fallbacks[o], &states[o]);
}

/*
 * Copies a new by-reference transition value to `cxt`, unless it is there as an expanded object,
 * and frees the old value of *state. Returns the copy.
 */
static Datum
replace_value(const FallbackAgg *fallback, MemoryContext cxt, Datum value, bool isnull,
			  const FallbackState *state)
{
	if (!isnull)
	{
		MemoryContext old = MemoryContextSwitchTo(cxt);

		if (!(DatumIsReadWriteExpandedObject(value, false, fallback->translen) &&
			  MemoryContextGetParent(DatumGetEOHP(value)->eoh_context) == cxt))
			value = datumCopy(value, fallback->transbyval, fallback->translen);
		MemoryContextSwitchTo(old);
	}
	else
		value = (Datum) 0;
	if (!state->isnull)
	{
		if (DatumIsReadWriteExpandedObject(state->value, false, fallback->translen))
			DeleteExpandedObject(state->value);
		else
			pfree(DatumGetPointer(state->value));
	}
	return value;
}

/*
 * Calls a transition or combine function, whose arguments after the first are set, and stores the
 * new state.
 */
static void
advance_state(FallbackWork *work, int o, FunctionCallInfo fcinfo, ExprContext *states,
			  FallbackState *state)
{
	const FallbackAgg *fallback = &work->spec->fallbacks[o];
	MemoryContext cxt = states->ecxt_per_tuple_memory;
	MemoryContext old;
	Datum value;

	if (state->fresh)
	{
		old = MemoryContextSwitchTo(cxt);
		if (!state->isnull)
			state->value = datumCopy(state->value, fallback->transbyval, fallback->translen);
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
			state->value =
				datumCopy(fcinfo->args[1].value, fallback->transbyval, fallback->translen);
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
	if (!fallback->transbyval && DatumGetPointer(value) != DatumGetPointer(state->value))
		value = replace_value(fallback, cxt, value, fcinfo->isnull, state);
	state->value = value;
	state->isnull = fcinfo->isnull;
	MemoryContextSwitchTo(old);
	ResetExprContext(work->temp);
}

/*
 * Returns the argument in row i of a column, which is not NULL. A column of decimals has arguments
 * only in rows with unrepresentable numerics.
 */
static Datum
row_argument(const Column *col, int i)
{
	return col->type == COLUMN_DATUM ? ((Datum *) col->values)[i] : col->unrepresentable_values[i];
}

/*
 * Returns whether row i counts for the aggregate: it passes the filter, and with
 * unrepresentable_only its argument is an unrepresentable numeric.
 */
static inline bool
row_counts(const FallbackAgg *fallback, const Batch *batch, int i)
{
	if (fallback->unrepresentable_only)
	{
		const Column *col = &batch->cols[fallback->argcol[0]];

		if (column_is_null(col, i) || !column_is_unrepresentable(col, i))
			return false;
	}
	if (fallback->filter >= 0)
	{
		const Column *col = &batch->cols[fallback->filter];

		return !column_is_null(col, i) && ((int8 *) col->values)[i] != 0;
	}
	return true;
}

/*
 * Prepares the cache for a batch. Returns false if it cannot be used: values have no numbers, or
 * groups move to other offsets.
 */
static bool
begin_seen(FallbackWork *work, SeenValues *seen, const GroupTable *table, const Column *col)
{
	if (!seen->possible || col->codes == NULL || table->mode == TABLE_SEGMENTED)
		return false;
	if (seen->dictionary == col->dictionary)
		return true;
	if (seen->values == NULL)
		seen->values =
			MemoryContextAlloc(GetMemoryChunkContext(work->calls), SEEN_ENTRIES * sizeof(uint64));
	memset(seen->values, 0xff, SEEN_ENTRIES * sizeof(uint64));
	seen->dictionary = col->dictionary;
	return true;
}

/*
 * Returns whether the group at `at` has had the value with this number; records that it has one
 * now.
 */
static inline bool
was_seen(SeenValues *seen, uint32 at, uint32 number)
{
	uint64 value = (uint64) at << 32 | number;
	uint64 *place = &seen->values[(value * UINT64CONST(0x9e3779b97f4a7c15)) >> 50];

	if (*place == value)
		return true;
	*place = value;
	return false;
}

StaticAssertDecl(SEEN_ENTRIES == 1 << (64 - 50), "places are the upper bits of a product");

/* Sets the members of all calls that are valid for one batch. */
static void
begin_batch(FallbackWork *work, const GroupTable *table, const Batch *batch)
{
	for (int o = 0; o < work->spec->nfallbacks; o++)
	{
		const FallbackAgg *fallback = &work->spec->fallbacks[o];
		FallbackCall *call = &work->calls[o];

		call->first = fallback->nargs > 0 ? &batch->cols[fallback->argcol[0]] : NULL;
		call->skipped =
			(fallback->filter >= 0 && column_is_false(&batch->cols[fallback->filter])) ||
			(fallback->unrepresentable_only && !call->first->unrepresentable);
		call->uses_seen =
			!call->skipped && call->first && begin_seen(work, &call->seen, table, call->first);
	}
}

/* Rows of groups are prefetched so many rows of the batch ahead, and then the states. */
#define PREFETCH_ROWS 16
#define PREFETCH_STATES 8

/*
 * Prefetches what rows after i of the batch need of aggregate o. With many groups, most of the time
 * would be waits for states. It is always inline, because gcc omits calls of functions that only
 * prefetch.
 */
static pg_attribute_always_inline void
prefetch_states(int o, const FallbackAgg *fallback, GroupTable *table, const Batch *batch, int i)
{
	uint32 at;

	if (i + PREFETCH_ROWS < batch->nrows && (at = table->at[i + PREFETCH_ROWS]) != NO_GROUP)
		__builtin_prefetch(&group_fallbacks(table, group_row_at(table, at))[o], 1);
	if ((!fallback->transbyval || fallback->transtype == INTERNALOID) &&
		i + PREFETCH_STATES < batch->nrows && (at = table->at[i + PREFETCH_STATES]) != NO_GROUP)
	{
		const char *state =
			DatumGetPointer(group_fallbacks(table, group_row_at(table, at))[o].value);

		__builtin_prefetch(state, 1);
		__builtin_prefetch(state + 64, 1);
	}
}

/* Where top_entries.c allocates states. */
typedef struct TopPlace
{
	FallbackWork *work;
	const GroupTable *table;
} TopPlace;

/* TopEntries.context */
static MemoryContext
top_context(void *arg, uint32 at)
{
	const TopPlace *place = arg;

	return fallback_context(place->work, place->table, at)->ecxt_per_tuple_memory;
}

/* Returns where the states of fallback aggregate o are, for top_entries.c. */
static TopEntries
top_entries(TopPlace *place, int o)
{
	return (TopEntries){
		.fallback = &place->work->spec->fallbacks[o],
		.call = &place->work->calls[o].top,
		.table = place->table,
		.states = (char *) &group_fallbacks(place->table, place->table->rows)[o],
		.picked = place->work->picked,
		.temp = place->work->temp->ecxt_per_tuple_memory,
		.slab = place->table->mode == TABLE_SEGMENTED ? NULL : &place->work->calls[o].top_slab,
		.context = top_context,
		.arg = place};
}

/*
 * Advances the state of fallback aggregate o, in the group of batch row i, by that row. Does
 * nothing if the row has no group or does not count.
 */
static inline void
advance_row_state(FallbackWork *work, int o, const FallbackAgg *fallback, FallbackCall *call,
				  const Column *first, GroupTable *table, const Batch *batch, int i)
{
	FunctionCallInfo fcinfo = call->trans;
	uint32 at = table->at[i];
	FallbackState *state;

	prefetch_states(o, fallback, table, batch, i);
	if (at == NO_GROUP || !row_counts(fallback, batch, i))
		return;
	if (call->uses_seen && !column_is_null(first, i) && was_seen(&call->seen, at, first->codes[i]))
		return;
	state = &group_fallbacks(table, group_row_at(table, at))[o];
	if (call->exact)
	{
		fallback_exact_advance_row(work, o, table, batch, at, i);
		return;
	}
	if (call->top.n > 0)
	{
		TopPlace place = {work, table};
		TopEntries top = top_entries(&place, o);

		top_entries_add_row(&top, batch, at, i);
		return;
	}
	for (int a = 0; a < fallback->nargs; a++)
	{
		const Column *col = &batch->cols[fallback->argcol[a]];
		bool isnull = column_is_null(col, i);

		fcinfo->args[a + 1].isnull = isnull;
		fcinfo->args[a + 1].value = isnull ? (Datum) 0 : row_argument(col, i);
	}
	if (call->step && !state->isnull && !state->fresh && call->step(state->value, &fcinfo->args[1]))
		return;
	/* a call may take long, e.g. one that checks the thresholds of a histogram */
	CHECK_FOR_INTERRUPTS();
	advance_state(work, o, fcinfo, fallback_context(work, table, at), state);
}

/* Advances the states of an aggregate by all rows of a batch. */
static void
advance_rows(FallbackWork *work, int o, GroupTable *table, const Batch *batch)
{
	const FallbackAgg *fallback = &work->spec->fallbacks[o];
	FallbackCall *call = &work->calls[o];
	const Column *first = call->first;
	bool in_runs =
		call->steps && !call->uses_seen && first->type == COLUMN_DATUM && first->validity == NULL;
	int run;

	for (int i = 0; i < batch->nrows; i += run)
	{
		uint32 at = table->at[i];

		for (run = 1; in_runs && i + run < batch->nrows && table->at[i + run] == at;)
			run++;
		if (in_runs && at != NO_GROUP)
		{
			const FallbackState *state = &group_fallbacks(table, group_row_at(table, at))[o];

			prefetch_states(o, fallback, table, batch, i);
			if (!state->isnull && !state->fresh &&
				call->steps(state->value, (const Datum *) first->values + i, run))
				continue;
		}
		for (int j = i; j < i + run; j++)
			advance_row_state(work, o, fallback, call, first, table, batch, j);
	}
}

/*
 * Returns whether the states of all groups, of which the first `known` existed before this batch,
 * hold at most `limit` bytes after the batch.  Values that exact aggregates keep apart do not
 * count.
 */
static bool
fit_after_batch(const FallbackWork *work, const GroupTable *table, const Batch *batch, uint32 known,
				size_t limit)
{
	size_t bytes = fallbacks_held(work);

	if (fallbacks_known_bytes(work) == 0)
		return false;
	for (int o = 0; o < work->spec->nfallbacks; o++)
		bytes += work->calls[o].exact ?
			fallback_exact_growth(&work->calls[o], known, table->ngroups) :
			(table->ngroups - known) * (size_t) TOP_N_FIRST_BYTES +
				(size_t) batch->nrows * TOP_N_ROW_BYTES;
	return bytes <= limit;
}

int
fallbacks_advance(FallbackWork *work, GroupTable *table, const Batch *batch, uint32 known,
				  size_t limit)
{
	uint32 next = known * table->row_cells;

	begin_batch(work, table, batch);
	if (table->ngroups == known || fit_after_batch(work, table, batch, known, limit))
	{
		for (int o = 0; o < work->spec->nfallbacks; o++)
		{
			FallbackCall *call = &work->calls[o];

			if (call->skipped)
				continue;
			if (call->exact && table->ngroups > 0)
				fallback_exact_advance(work, o, table, batch);
			else if (call->top.n > 0)
			{
				TopPlace place = {work, table};
				TopEntries top = top_entries(&place, o);

				top_entries_add_batch(&top, batch);
			}
			else
				advance_rows(work, o, table, batch);
		}
		return batch->nrows;
	}
	/* row by row, so that all states of a group exist before the first one of the next group */
	for (int i = 0; i < batch->nrows; i++)
	{
		uint32 at = table->at[i];

		if (at != NO_GROUP && at >= next)
		{
			if (at > 0 && fallbacks_held(work) > limit)
				return i;
			next = at + table->row_cells;
		}
		for (int o = 0; o < work->spec->nfallbacks; o++)
			if (!work->calls[o].skipped)
				advance_row_state(work, o, &work->spec->fallbacks[o], &work->calls[o],
								  work->calls[o].first, table, batch, i);
	}
	return batch->nrows;
}

/* ---- merging ------------------------------------------------------------ */

/*
 * Returns whether states can be written to files and combined with those of later rows. Core would
 * not combine states in such a plan, so the result must be the same as without. That is only known
 * of the combine functions of builtin aggregates, except array_agg: its serialization calls the
 * send and receive functions of any type.
 */
bool
fallbacks_spillable(const AggSpec *spec)
{
	for (int o = 0; o < spec->nfallbacks; o++)
	{
		const FallbackAgg *fallback = &spec->fallbacks[o];

		if (!fallback->builtin || !OidIsValid(fallback->combinefn.fn_oid))
			return false;
		if (fallback->transfn.fn_oid == F_ARRAY_AGG_TRANSFN ||
			fallback->transfn.fn_oid == F_ARRAY_AGG_ARRAY_TRANSFN)
			return false;
		if (fallback->transtype == INTERNALOID &&
			(!OidIsValid(fallback->serialfn.fn_oid) || !OidIsValid(fallback->deserialfn.fn_oid)))
			return false;
	}
	return true;
}

/*
 * Combines a partial state with that of the row at offset `at`. Core begins with the initial value
 * and combines it with one partial state after the other. So a row's state that transitions have
 * made counts as the first partial state: if it is NULL and the combine function is strict, the
 * initial value applies again.
 */
void
fallbacks_combine(FallbackWork *work, GroupTable *table, uint32 at, int fallback, Datum value,
				  bool isnull)
{
	FunctionCallInfo fcinfo = work->calls[fallback].combine;
	FallbackState *state = &group_fallbacks(table, group_row_at(table, at))[fallback];

	if (!state->combined && !state->fresh && fcinfo->flinfo->fn_strict)
	{
		if (!state->isnull)
			state->notrans = false;
		else
			init_state(&work->spec->fallbacks[fallback], state);
	}
	state->combined = true;
	fcinfo->args[1].value = value;
	fcinfo->args[1].isnull = isnull;
	advance_state(work, fallback, fcinfo, fallback_context(work, table, at), state);
	/*
	 * older releases of core combine two NULLs to a null pointer that is not marked as NULL;
	 * nothing can serialize it
	 */
	if (work->spec->fallbacks[fallback].builtin &&
		work->spec->fallbacks[fallback].transtype == INTERNALOID && state->value == (Datum) 0)
		state->isnull = true;
}

/*
 * Calls a function of a fallback aggregate, whose arguments are set. Returns its result, which is
 * in temporary memory until fallbacks_end_temp.
 */
static Datum
call_in_temp_memory(FallbackWork *work, int fallback, FunctionCallInfo fcinfo)
{
	MemoryContext old = MemoryContextSwitchTo(work->temp->ecxt_per_tuple_memory);
	Datum result;

	work->aggstate->curaggcontext = work->states;
	work->aggstate->curpertrans = &work->calls[fallback].pertrans;
	fcinfo->isnull = false;
	result = FunctionCallInvoke(fcinfo);
	MemoryContextSwitchTo(old);
	return result;
}

/* Returns the serialized form of an internal state, in temporary memory. */
Datum
fallbacks_serialize(FallbackWork *work, int fallback, Datum value)
{
	const FallbackCall *call = &work->calls[fallback];
	FunctionCallInfo fcinfo = call->serial;
	MemoryContext old;
	Datum result;

	if (call->top_by_value)
	{
		old = MemoryContextSwitchTo(work->temp->ecxt_per_tuple_memory);
		result = PointerGetDatum(top_n_pack((const TopState *) DatumGetPointer(value)));
		MemoryContextSwitchTo(old);
		return result;
	}

	fcinfo->args[0].value = value;
	fcinfo->args[0].isnull = false;
	result = call_in_temp_memory(work, fallback, fcinfo);
	if (fcinfo->isnull)
		elog(ERROR, "serialization function %u returned NULL", fcinfo->flinfo->fn_oid);
	old = MemoryContextSwitchTo(work->temp->ecxt_per_tuple_memory);
	result = PointerGetDatum(PG_DETOAST_DATUM(result));
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * Returns the state of a serialized form. As in nodeAgg.c it may be in temporary memory: combine
 * functions copy what they keep.
 */
Datum
fallbacks_deserialize(FallbackWork *work, int fallback, Datum bytes)
{
	const FallbackCall *call = &work->calls[fallback];
	FunctionCallInfo fcinfo = call->deserial;

	if (call->top_by_value)
	{
		MemoryContext old = MemoryContextSwitchTo(work->temp->ecxt_per_tuple_memory);
		TopState *state = top_n_unpack(&call->top, (const bytea *) DatumGetPointer(bytes));

		MemoryContextSwitchTo(old);
		if (state)
			return PointerGetDatum(state);
	}
	fcinfo->args[0].value = bytes;
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = (Datum) 0;
	fcinfo->args[1].isnull = true;
	return call_in_temp_memory(work, fallback, fcinfo);
}

void
fallbacks_end_temp(FallbackWork *work)
{
	ResetExprContext(work->temp);
}

/* ---- memory ------------------------------------------------------------- */

size_t
fallbacks_held(const FallbackWork *work)
{
	return work->states->ecxt_per_tuple_memory->mem_allocated +
		work->carry[0]->ecxt_per_tuple_memory->mem_allocated +
		work->carry[1]->ecxt_per_tuple_memory->mem_allocated;
}

size_t
fallbacks_known_bytes(const FallbackWork *work)
{
	size_t bytes = 0;

	for (int o = 0; o < work->spec->nfallbacks; o++)
	{
		const FallbackCall *call = &work->calls[o];

		if (!call->exact && !call->top_by_value)
			return 0;
		bytes += call->exact ? fallback_exact_bytes(call) : TOP_N_FIRST_BYTES;
	}
	return bytes;
}

size_t
fallbacks_memory(const FallbackWork *work)
{
	return MemoryContextMemAllocated(work->states->ecxt_per_tuple_memory, true) +
		MemoryContextMemAllocated(work->carry[0]->ecxt_per_tuple_memory, true) +
		MemoryContextMemAllocated(work->carry[1]->ecxt_per_tuple_memory, true);
}

size_t
fallbacks_empty_memory(const FallbackWork *work)
{
	return work->empty;
}

double
fallbacks_group_bytes(const FallbackWork *work, const GroupTable *table)
{
	size_t bytes = fallbacks_memory(work);

	return bytes > work->empty ? (bytes - work->empty) / (double) table->ngroups : 0;
}

/* Called when the context of states is reset. */
static void
forget_slabs(FallbackWork *work)
{
	for (int o = 0; o < work->spec->nfallbacks; o++)
		work->calls[o].top_slab = (TopSlab){0};
}

void
fallbacks_read(FallbackWork *work, int o, GroupTable *table, uint32 from, int n, Datum *values,
			   bool *isnull)
{
	if (work->calls[o].exact)
	{
		fallback_exact_read(work, o, table, from, n, values, isnull);
		return;
	}
	for (int g = 0; g < n; g++)
	{
		const FallbackState *state = &group_fallbacks(table, group_row(table, from + g))[o];

		values[g] = state->value;
		isnull[g] = state->isnull;
	}
}

/*
 * Called before group_table_carry_last makes the last of several rows row 0: frees the states of
 * all other rows.
 */
void
fallbacks_carry_last(FallbackWork *work)
{
	ExprContext *done = work->carry[0];

	forget_slabs(work);
	ReScanExprContext(done);
	ReScanExprContext(work->states);
	work->carry[0] = work->carry[1];
	work->carry[1] = done;
}

void
fallbacks_reset(FallbackWork *work)
{
	for (int o = 0; o < work->spec->nfallbacks; o++)
	{
		work->calls[o].seen.dictionary = 0;
		work->calls[o].by_group = (GridSums){.kind = work->calls[o].exact};
	}
	forget_slabs(work);
	ReScanExprContext(work->states);
	ReScanExprContext(work->carry[0]);
	ReScanExprContext(work->carry[1]);
	ReScanExprContext(work->temp);
}

/* Frees all states, and calls the shutdown callbacks that transition functions have registered. */
void
fallbacks_end(FallbackWork *work)
{
	FreeExprContext(work->states, true);
	FreeExprContext(work->carry[0], true);
	FreeExprContext(work->carry[1], true);
	FreeExprContext(work->temp, true);
}

/*
 * agg_catalog.c
 *	  Finds aggregates: the rows of agg_list.h, and what the catalog says of an aggregate.
 *
 * Results are cached for the session, until pg_proc changes.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "aggregates/agg_tally.h"
#include "aggregates/aggmap_internal.h"
#include "aggregates/ordered_set.h"
#include "analysis/analysis.h"
#include "common/compat.h"

#define S0(m) \
	{ \
		true, MONOID_##m, \
		{ \
			-1, -1 \
		} \
	}
#define S1(m, a) \
	{ \
		true, MONOID_##m, \
		{ \
			a, -1 \
		} \
	}
#define S2(m, a, b) \
	{ \
		true, MONOID_##m, \
		{ \
			a, b \
		} \
	}
#define AGG(fn, kind, ...) {F_##fn, NULL, FINALIZE_##kind, {__VA_ARGS__}},
#define AGG_OURS(symbol, kind, ...) {InvalidOid, symbol, FINALIZE_##kind, {__VA_ARGS__}},
#define AGG_FALLBACK(fn) {F_##fn, NULL, FINALIZE_FALLBACK, {{false}}},
static const AggRow agg_rows[] = {
#include "aggregates/agg_list.h"
};
#undef S0
#undef S1
#undef S2
#undef AGG
#undef AGG_OURS
#undef AGG_FALLBACK

const AggRow aggmap_fallback_row = {InvalidOid, NULL, FINALIZE_FALLBACK, {{false}}};

static HTAB *agg_cache = NULL;
static bool agg_cache_valid = false;
static uint64 agg_changes = 0; /* how often the cache was invalidated */
/*
 * The extensions whose aggregates are known, or InvalidOid. They are looked up when the cache is
 * reset, since they change only together with functions.
 */
static Oid own_extension;
static Oid citus_extension;

/* Callback for changes of pg_proc: marks the cache as invalid. */
static void
forget_aggregates(Datum arg, int cacheid, uint32 hashvalue)
{
	agg_cache_valid = false;
	agg_changes++;
}

/* Empties the cache. An error here leaves it invalid. */
static void
reset_cache(void)
{
	HASHCTL ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(AggEntry)};
	HTAB *empty = hash_create("gpuagg aggregates", 128, &ctl, HASH_ELEM | HASH_BLOBS);
	uint64 changes;

	if (agg_cache == NULL)
		CacheRegisterSyscacheCallback(PROCOID, forget_aggregates, (Datum) 0);
	else
		hash_destroy(agg_cache);
	agg_cache = empty;
	changes = agg_changes;
	own_extension = get_extension_oid("gpuagg", true);
	citus_extension = get_extension_oid("citus", true);
	/* reading the catalog may have processed further invalidations */
	agg_cache_valid = agg_changes == changes;
}

/*
 * Sets the transition and final functions of an aggregate, and its combine function if its
 * transition type is internal; InvalidOid for those that it does not have. Returns false if there
 * is no such aggregate.
 */
static bool
aggregate_functions(Oid aggfnoid, Oid *transfn, Oid *finalfn, Oid *combinefn)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggfnoid));
	Form_pg_aggregate form;

	*transfn = *finalfn = *combinefn = InvalidOid;
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	*transfn = form->aggtransfn;
	*finalfn = form->aggfinalfn;
	/* only for internal states */
	if (form->aggtranstype == INTERNALOID)
		*combinefn = form->aggcombinefn;
	ReleaseSysCache(tuple);
	return true;
}

/* Returns whether the aggregate's result is its transition value, as it is or serialized. */
static bool
returns_state(Oid aggfnoid)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggfnoid));
	Form_pg_aggregate form;
	bool result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", aggfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	result = !OidIsValid(form->aggfinalfn) || form->aggfinalfn == form->aggserialfn;
	ReleaseSysCache(tuple);
	return result;
}

/* Returns the link symbol of a C function, or the name of an internal one. */
static char *
function_symbol(Oid fn)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn));
	bool isnull;
	char *symbol;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fn);
	symbol = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull));
	ReleaseSysCache(tuple);
	return symbol;
}

/*
 * See aggmap_internal.h. A function passes its calls on if its symbol is gpuagg_NAME
 * (core_list.h), or if it is LANGUAGE internal with NAME, as in version 1.0 of the SQL objects.
 */
Oid
aggmap_core_function(Oid fn, char **symbol)
{
	Oid core;

	*symbol = NULL;
	if (fn < FirstNormalObjectId)
		return fn;
	*symbol = function_symbol(fn);
	core = fmgr_internal_function(*symbol);
	if (!OidIsValid(core) && strncmp(*symbol, "gpuagg_", 7) == 0)
		core = fmgr_internal_function(*symbol + 7);
	return core;
}

/* Returns whether this is the final function of gpu_..._state: its result is a gpuagg_state. */
static bool
makes_state(Oid finalfn)
{
	const char *symbol = OidIsValid(finalfn) ? function_symbol(finalfn) : "";

	return strcmp(symbol, "gpuagg_hll_state") == 0 || strcmp(symbol, "gpuagg_sketch_state") == 0;
}

/* Returns the row of agg_list.h for a transition function, or NULL. */
static const AggRow *
find_row(Oid transfn)
{
	char *symbol;
	Oid core = aggmap_core_function(transfn, &symbol);

	for (int i = 0; i < lengthof(agg_rows); i++)
	{
		const AggRow *row = &agg_rows[i];

		if (OidIsValid(core) ? row->transfn == core :
							   row->symbol && symbol && strcmp(symbol, row->symbol) == 0)
			return row;
	}
	return NULL;
}

/*
 * Returns the role of an aggregate that belongs to this extension: AGG_ROLE_CITUS_... for Citus's
 * aggregates for partial aggregation, else AGG_ROLE_NONE.
 */
static AggRole
citus_role(Oid aggfnoid, Oid extension)
{
	char *name = get_func_name(aggfnoid);

	if (!OidIsValid(citus_extension) || extension != citus_extension || name == NULL ||
		get_func_namespace(aggfnoid) != PG_CATALOG_NAMESPACE)
		return AGG_ROLE_NONE;
	if (strcmp(name, "worker_partial_agg") == 0)
		return AGG_ROLE_CITUS_TEXT;
	return strcmp(name, "worker_binary_partial_agg") == 0 ? AGG_ROLE_CITUS_BINARY : AGG_ROLE_NONE;
}

AggEntry
aggmap_lookup(Oid aggfnoid)
{
	AggEntry *entry;
	AggEntry made = {aggfnoid,      false,        InvalidOid,
					 AGG_ROLE_NONE, PARTIAL_NONE, &aggmap_fallback_row};
	const AggRow *row;
	Oid extension;
	Oid transfn;
	Oid finalfn;
	Oid combinefn;
	char *symbol;

	if (!agg_cache_valid)
		reset_cache();
	entry = hash_search(agg_cache, &aggfnoid, HASH_FIND, NULL);
	if (entry)
		return *entry;

	if (aggfnoid >= FirstNormalObjectId)
	{
		extension = getExtensionOfObject(ProcedureRelationId, aggfnoid);
		made.ours = OidIsValid(extension) && extension == own_extension;
		if (!made.ours && OidIsValid(extension))
			made.role = citus_role(aggfnoid, extension);
	}
	/* an aggregate made by a user may have another initial value or final function */
	if ((made.ours || aggfnoid < FirstNormalObjectId) &&
		aggregate_functions(aggfnoid, &transfn, &finalfn, &combinefn))
	{
		if (OidIsValid(combinefn))
		{
			Oid core = aggmap_core_function(combinefn, &symbol);

			made.partial = partial_kind_of(core, symbol);
		}
		if (made.ours && strcmp(function_symbol(transfn), "gpuagg_merge_accum") == 0)
			made.role = AGG_ROLE_MERGE;
		else if (made.ours && makes_state(finalfn))
			made.role = AGG_ROLE_STATE;
		row = find_row(transfn);
		made.row = row ? row : &aggmap_fallback_row;
		made.finalfn = aggmap_core_function(finalfn, &symbol);
		/* the slots of these make the result, never the transition value */
		if (finalize_is_direct(made.row->kind) &&
			(returns_state(aggfnoid) || made.role == AGG_ROLE_STATE))
			made.row = &aggmap_fallback_row;
		/* other aggregates with core's transition function, and hypothetical sets, are not taken */
		if (made.row->kind == FINALIZE_ORDERED_SET && made.row->symbol == NULL &&
			!ordered_set_is_final(made.finalfn))
			made.row = &aggmap_fallback_row;
	}

	/* reading the catalog may have invalidated the cache */
	if (agg_cache_valid)
		*(AggEntry *) hash_search(agg_cache, &aggfnoid, HASH_ENTER, NULL) = made;
	return made;
}

AggRole
aggmap_role(Oid aggfnoid)
{
	return aggfnoid < FirstNormalObjectId ? AGG_ROLE_NONE : aggmap_lookup(aggfnoid).role;
}

PartialKind
aggmap_partial_kind(Oid aggfnoid)
{
	return aggmap_lookup(aggfnoid).partial;
}

bool
aggmap_is_ours(Oid aggfnoid)
{
	return aggfnoid >= FirstNormalObjectId && aggmap_lookup(aggfnoid).ours;
}

bool
aggmap_is_listed(Oid aggfnoid)
{
	return aggmap_lookup(aggfnoid).row != &aggmap_fallback_row;
}

/*
 * Returns the aggregate of the extension with this name and the argument types of another
 * aggregate; InvalidOid if there is none.
 */
static Oid
find_aggregate(const char *name, Oid aggfnoid)
{
	Oid found = InvalidOid;
	Oid *types;
	int ntypes;
	CatCList *list;

	get_func_signature(aggfnoid, &types, &ntypes);
	list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(name));
	for (int i = 0; i < list->n_members && !OidIsValid(found); i++)
	{
		Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(&list->members[i]->tuple);

		if (proc->prokind == PROKIND_AGGREGATE && proc->pronargs == ntypes &&
			memcmp(proc->proargtypes.values, types, ntypes * sizeof(Oid)) == 0 &&
			aggmap_is_ours(proc->oid))
			found = proc->oid;
	}
	ReleaseSysCacheList(list);
	return found;
}

Oid
aggmap_state_aggregate(Oid aggfnoid)
{
	Oid transfn;
	Oid finalfn;
	Oid combinefn;

	if (!aggregate_functions(aggfnoid, &transfn, &finalfn, &combinefn))
		return InvalidOid;
	return find_aggregate(psprintf("%s%s_state", transfn < FirstNormalObjectId ? "gpuagg_" : "",
								   get_func_name(transfn)),
						  aggfnoid);
}

/* Exact aggregates of floats, by the transition and final functions of the ones of core. */
static const struct
{
	Oid transfn, transfn4; /* the second one is for float4, or InvalidOid */
	Oid finalfn;
	const char *name;
} exact_aggregates[] = {
	{F_FLOAT8PL, F_FLOAT4PL, InvalidOid, "gpuagg_exact_sum"},
	{F_FLOAT8_ACCUM, F_FLOAT4_ACCUM, F_FLOAT8_AVG, "gpuagg_exact_avg"},
	{F_FLOAT8_ACCUM, F_FLOAT4_ACCUM, F_FLOAT8_VAR_POP, "gpuagg_exact_var_pop"},
	{F_FLOAT8_ACCUM, F_FLOAT4_ACCUM, F_FLOAT8_VAR_SAMP, "gpuagg_exact_var_samp"},
	{F_FLOAT8_ACCUM, F_FLOAT4_ACCUM, F_FLOAT8_STDDEV_POP, "gpuagg_exact_stddev_pop"},
	{F_FLOAT8_ACCUM, F_FLOAT4_ACCUM, F_FLOAT8_STDDEV_SAMP, "gpuagg_exact_stddev_samp"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_REGR_SXX, "gpuagg_exact_regr_sxx"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_REGR_SYY, "gpuagg_exact_regr_syy"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_REGR_SXY, "gpuagg_exact_regr_sxy"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_REGR_AVGX, "gpuagg_exact_regr_avgx"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_REGR_AVGY, "gpuagg_exact_regr_avgy"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_REGR_R2, "gpuagg_exact_regr_r2"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_REGR_SLOPE, "gpuagg_exact_regr_slope"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_REGR_INTERCEPT, "gpuagg_exact_regr_intercept"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_COVAR_POP, "gpuagg_exact_covar_pop"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_COVAR_SAMP, "gpuagg_exact_covar_samp"},
	{F_FLOAT8_REGR_ACCUM, InvalidOid, F_FLOAT8_CORR, "gpuagg_exact_corr"}};

Oid
aggmap_exact_aggregate(Oid aggfnoid)
{
	AggEntry entry = aggmap_lookup(aggfnoid);

	for (int i = 0; i < lengthof(exact_aggregates) && OidIsValid(entry.row->transfn); i++)
		if ((entry.row->transfn == exact_aggregates[i].transfn ||
			 entry.row->transfn == exact_aggregates[i].transfn4) &&
			entry.finalfn == exact_aggregates[i].finalfn)
			return find_aggregate(exact_aggregates[i].name, aggfnoid);
	return InvalidOid;
}

bool
aggmap_is_exact(Oid aggfnoid)
{
	FmgrInfo info;
	Oid transfn;
	Oid finalfn;
	Oid combinefn;

	if (aggmap_lookup(aggfnoid).partial != PARTIAL_EXACT ||
		!aggregate_functions(aggfnoid, &transfn, &finalfn, &combinefn))
		return false;
	fmgr_info(transfn, &info);
	return exact_kind_of(&info) != 0;
}

bool
aggmap_is_fallback(Oid aggfnoid, Oid *transfn)
{
	Oid finalfn;
	Oid combinefn;

	aggregate_functions(aggfnoid, transfn, &finalfn, &combinefn);
	switch (aggmap_lookup(aggfnoid).row->kind)
	{
		case FINALIZE_FALLBACK:
		case FINALIZE_ORDERED_SET:
			return true;
		default:
			return false;
	}
}

bool
aggmap_is_linear(Oid aggfnoid)
{
	const AggRow *row = aggmap_lookup(aggfnoid).row;
	const SlotUse *count = &row->slots[0];
	const SlotUse *sum = &row->slots[1];

	if (!count->used || count->monoid != MONOID_COUNT || count->arg[0] != 0 || count->arg[1] >= 0)
		return false;
	if (row->kind == FINALIZE_INT)
		return !sum->used;
	return (row->kind == FINALIZE_COUNTED_INT || row->kind == FINALIZE_INT_AVG ||
			row->kind == FINALIZE_INT8_AVG || row->kind == FINALIZE_DEC_AVG) &&
		sum->arg[0] == 0 &&
		(sum->monoid == MONOID_SUM_I64 || sum->monoid == MONOID_SUM_I128 ||
		 sum->monoid == MONOID_SUM_DEC);
}

bool
aggmap_row_is_ordered_set(const AggRow *row, const Aggref *aggref)
{
	return row->kind == FINALIZE_ORDERED_SET &&
		(aggref->aggkind == AGGKIND_ORDERED_SET ||
		 (aggref->aggdistinct == NIL && aggref->aggorder == NIL));
}

bool
aggmap_is_ordered_set(const Aggref *aggref)
{
	return aggmap_row_is_ordered_set(aggmap_lookup(aggref->aggfnoid).row, aggref);
}

bool
aggmap_is_ranked(const Aggref *aggref)
{
	Oid transfn;

	return aggmap_is_fallback(aggref->aggfnoid, &transfn) && aggref->aggdistinct == NIL &&
		(transfn == F_TEXT_SMALLER || transfn == F_TEXT_LARGER) &&
		expr_collation_is_deterministic(aggref->inputcollid);
}

bool
aggmap_is_top_n(const Aggref *aggref)
{
	const TargetEntry *n, *key, *value;

	if (aggmap_partial_kind(aggref->aggfnoid) != PARTIAL_TOP_N || aggref->aggdistinct != NIL ||
		list_length(aggref->aggargtypes) < 2)
		return false;
	value = linitial_node(TargetEntry, aggref->args);
	key = list_nth_node(TargetEntry, aggref->args, list_length(aggref->aggargtypes) - 2);
	n = list_nth_node(TargetEntry, aggref->args, list_length(aggref->aggargtypes) - 1);
	return spec_type_has_codes(exprType((Node *) key->expr)) &&
		spec_type_has_codes(exprType((Node *) value->expr)) &&
		!contain_var_clause((Node *) n->expr);
}

/*
 * Returns whether values of the type have hashes, of functions that run no queries. Numbers of a
 * dictionary then stand for them.
 */
static bool
can_be_numbered(Oid type)
{
	const TypeCacheEntry *entry =
		lookup_type_cache(type, TYPECACHE_HASH_PROC_FINFO | TYPECACHE_EQ_OPR_FINFO);

	return expr_type_is_plain(type) && OidIsValid(entry->hash_proc_finfo.fn_oid) &&
		OidIsValid(entry->eq_opr_finfo.fn_oid) &&
		expr_function_is_harmless(entry->hash_proc_finfo.fn_oid) &&
		expr_function_is_harmless(entry->eq_opr_finfo.fn_oid);
}

const AggTally *
aggmap_tally(const Aggref *aggref)
{
	const AggTally *tally;
	ColumnType column;
	FmgrInfo info;
	Oid transfn;
	Oid finalfn;
	Oid combinefn;
	const Node *value;
	int16 scale;

	if (aggref->aggdistinct != NIL || aggref->aggorder != NIL || aggref->aggargtypes == NIL ||
		aggref->aggvariadic || !aggmap_is_ours(aggref->aggfnoid) ||
		!aggregate_functions(aggref->aggfnoid, &transfn, &finalfn, &combinefn))
		return NULL;
	fmgr_info(transfn, &info);
	value = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
	tally = agg_tally(&info);
	column = expr_column_type(unconstify(Node *, value), &scale);
	if (tally == NULL || contain_var_clause((Node *) list_copy_tail(aggref->args, 1)))
		return NULL;
	return spec_type_has_codes(exprType(value)) || column == COLUMN_DEC ||
			(tally->any_type &&
			 (column_is_integer(column) ||
			  (column == COLUMN_DATUM && can_be_numbered(exprType(value))))) ?
		tally :
		NULL;
}

/*
 * Returns whether transition values of the aggregate can be combined, also in other processes. The
 * conditions are those of core's preprocess_aggref().
 */
static bool
is_mergeable(const Aggref *aggref)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	Form_pg_aggregate form;
	bool result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", aggref->aggfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	result = OidIsValid(form->aggcombinefn) &&
		(form->aggtranstype != INTERNALOID ||
		 (OidIsValid(form->aggserialfn) && OidIsValid(form->aggdeserialfn) &&
		  compat_agg_args_can_travel(unconstify(Aggref *, aggref))));
	ReleaseSysCache(tuple);
	return result;
}

bool
aggmap_row_needs_order(const AggRow *row)
{
	for (int i = 0; i < MAX_SLOTS && row->slots[i].used; i++)
		if (!gpuagg_monoids[row->slots[i].monoid].commutative)
			return true;
	return false;
}

bool
aggmap_supported(const Aggref *aggref, bool parallel, const char **why)
{
	AggEntry entry = aggmap_lookup(aggref->aggfnoid);
	const char *name = get_func_name(aggref->aggfnoid);

	if (aggref->aggkind == AGGKIND_HYPOTHETICAL)
		*why = psprintf("hypothetical-set aggregate %s is not supported", name);
	else if (aggref->aggkind != AGGKIND_NORMAL && !aggmap_row_is_ordered_set(entry.row, aggref))
		*why = psprintf("ordered-set aggregate %s is not supported", name);
	/* DISTINCT values have a sort of their own */
	else if (aggref->aggkind == AGGKIND_NORMAL && aggref->aggorder != NIL &&
			 aggref->aggdistinct == NIL && parallel)
		*why = psprintf("ORDER BY inside %s is not supported in a parallel plan", name);
	else if (aggref->agglevelsup != 0 ||
			 (aggref->aggsplit != AGGSPLIT_SIMPLE && aggref->aggsplit != AGGSPLIT_INITIAL_SERIAL))
		*why = psprintf("aggregate %s belongs to another query level", name);
	else if (parallel &&
			 (entry.row->kind == FINALIZE_FALLBACK || aggmap_row_needs_order(entry.row)) &&
			 !is_mergeable(aggref))
		*why = psprintf("states of %s cannot be merged", name);
	else
		return true;
	return false;
}

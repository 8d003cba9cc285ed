/*
 * aggmap.c
 *	  From SQL aggregates to slots and fallback aggregates.
 *
 * The rows of agg_list.h become slots.  All other aggregates, and those whose
 * arguments have no column type that a slot can read (numerics without a declared
 * scale, histograms whose bounds are not constant or may fail to evaluate), run
 * their own transition function as a FallbackAgg.
 *
 * A numeric column of a declared scale is a column of decimals; for sums and averages, so is
 * one whose values mostly have one scale.  The few values that such a decimal cannot
 * represent go to a FallbackAgg in addition, whose transition value is merged with that of
 * the slots by the aggregate's combine function.  Sums and averages of expressions whose values have display scales that
 * are known but for a largest one are of decimals of that, and one more slot has the largest that a group's values display.
 *
 * What the catalog says of an aggregate is cached for the session, until pg_proc
 * changes.  An AggOutput is allocated in the memory context in which aggmap_build is
 * called.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/executor.h"
#include "executor/nodeAgg.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_agg.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/expandeddatum.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "aggregates/aggmap_internal.h"
#include "aggregates/histogram.h"
#include "aggregates/hll_value.h"
#include "aggregates/ordered_set.h"
#include "common/compat.h"
#include "expr/expr.h"
#include "operators/hll.h"

/*
 * Most bins of a grouped histogram that the CPU engine's slots keep: a group's
 * states are one row of a table, so wide ones would make it too sparse for the
 * caches.
 */
#define MAX_GROUPED_BINS 4096

/* A monoid over arguments of the aggregate; -1: none. */
typedef struct SlotUse
{
	bool		used;
	MonoidId	monoid;
	int			arg[2];
} SlotUse;

typedef struct AggRow
{
	Oid			transfn;		/* InvalidOid: the extension's function `symbol` */
	const char *symbol;
	FinalizeKind kind;
	SlotUse		slots[MAX_SLOTS];
} AggRow;

#define S0(m) {true, MONOID_##m, {-1, -1}}
#define S1(m, a) {true, MONOID_##m, {a, -1}}
#define S2(m, a, b) {true, MONOID_##m, {a, b}}
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

static const AggRow fallback_row = {InvalidOid, NULL, FINALIZE_FALLBACK, {{false}}};

/* ---- which aggregates ---------------------------------------------------- */

typedef struct AggEntry
{
	Oid			aggfnoid;		/* hash key */
	bool		ours;
	Oid			finalfn;		/* core's final function, or InvalidOid */
	AggRole		role;
	PartialKind partial;
	const AggRow *row;			/* of agg_list.h, or fallback_row */
} AggEntry;

static HTAB *agg_cache = NULL;
static bool agg_cache_valid = false;
/* The extensions whose aggregates are known, or InvalidOid.  They change with functions, as the cache does. */
static Oid	own_extension;
static Oid	citus_extension;

static void
forget_aggregates(Datum arg, int cacheid, uint32 hashvalue)
{
	agg_cache_valid = false;
}

static void
reset_cache(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(AggEntry)};

	if (agg_cache == NULL)
		CacheRegisterSyscacheCallback(PROCOID, forget_aggregates, (Datum) 0);
	else
		hash_destroy(agg_cache);
	agg_cache = hash_create("gpuagg aggregates", 128, &ctl, HASH_ELEM | HASH_BLOBS);
	agg_cache_valid = true;
	own_extension = get_extension_oid("gpuagg", true);
	citus_extension = get_extension_oid("citus", true);
}

static bool
aggregate_functions(Oid aggfnoid, Oid *transfn, Oid *finalfn, Oid *combinefn)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggfnoid));
	Form_pg_aggregate form;

	*transfn = *finalfn = *combinefn = InvalidOid;
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	*transfn = form->aggtransfn;
	*finalfn = form->aggfinalfn;
	/* of internal states */
	if (form->aggtranstype == INTERNALOID)
		*combinefn = form->aggcombinefn;
	ReleaseSysCache(tuple);
	return true;
}

/* Is the result the transition value, as it is or serialized? */
static bool
returns_state(Oid aggfnoid)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggfnoid));
	Form_pg_aggregate form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", aggfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	result = !OidIsValid(form->aggfinalfn) || form->aggfinalfn == form->aggserialfn;
	ReleaseSysCache(tuple);
	return result;
}

/* The link symbol of a C function, or the name of an internal one. */
static char *
function_symbol(Oid fn)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn));
	bool		isnull;
	char	   *symbol;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fn);
	symbol = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull));
	ReleaseSysCache(tuple);
	return symbol;
}

/* As gpuagg_NAME (core_list.h), or NAME in version 1.0 of the SQL objects, LANGUAGE internal. */
Oid
aggmap_core_function(Oid fn, char **symbol)
{
	Oid			core;

	*symbol = NULL;
	if (fn < FirstNormalObjectId)
		return fn;
	*symbol = function_symbol(fn);
	core = fmgr_internal_function(*symbol);
	if (!OidIsValid(core) && strncmp(*symbol, "gpuagg_", 7) == 0)
		core = fmgr_internal_function(*symbol + 7);
	return core;
}

/* The row of an aggregate's transition function, or NULL. */
static const AggRow *
find_row(Oid transfn)
{
	char	   *symbol;
	Oid			core = aggmap_core_function(transfn, &symbol);

	for (int i = 0; i < lengthof(agg_rows); i++)
	{
		const AggRow *row = &agg_rows[i];

		if (OidIsValid(core) ? row->transfn == core :
			row->symbol && symbol && strcmp(symbol, row->symbol) == 0)
			return row;
	}
	return NULL;
}

/* One of the aggregates by which Citus has a part of another one computed? */
static AggRole
citus_role(Oid aggfnoid, Oid extension)
{
	char	   *name = get_func_name(aggfnoid);

	if (!OidIsValid(citus_extension) || extension != citus_extension || name == NULL ||
		get_func_namespace(aggfnoid) != PG_CATALOG_NAMESPACE)
		return AGG_ROLE_NONE;
	if (strcmp(name, "worker_partial_agg") == 0)
		return AGG_ROLE_CITUS_TEXT;
	return strcmp(name, "worker_binary_partial_agg") == 0 ? AGG_ROLE_CITUS_BINARY : AGG_ROLE_NONE;
}

static AggEntry
look_up(Oid aggfnoid)
{
	AggEntry   *entry;
	AggEntry	made = {aggfnoid, false, InvalidOid, AGG_ROLE_NONE, PARTIAL_NONE, &fallback_row};
	const AggRow *row;
	Oid			extension;
	Oid			transfn;
	Oid			finalfn;
	Oid			combinefn;
	char	   *symbol;

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
	/* a user's aggregate may have another initial value or final function */
	if ((made.ours || aggfnoid < FirstNormalObjectId) &&
		aggregate_functions(aggfnoid, &transfn, &finalfn, &combinefn))
	{
		if (OidIsValid(combinefn))
		{
			Oid			core = aggmap_core_function(combinefn, &symbol);

			made.partial = partial_kind_of(core, symbol);
		}
		if (made.ours && strcmp(function_symbol(transfn), "gpuagg_merge_accum") == 0)
			made.role = AGG_ROLE_MERGE;
		row = find_row(transfn);
		made.row = row ? row : &fallback_row;
		made.finalfn = aggmap_core_function(finalfn, &symbol);
		/* slots of these make the result, not the transition value */
		if (finalize_is_direct(made.row->kind) && returns_state(aggfnoid))
			made.row = &fallback_row;
		/* others with core's transition function, and hypothetical sets, are left to core */
		if (made.row->kind == FINALIZE_ORDERED_SET && made.row->symbol == NULL && !ordered_set_is_final(made.finalfn))
			made.row = &fallback_row;
	}

	/* reading the catalog may have invalidated the cache */
	if (agg_cache_valid)
		*(AggEntry *) hash_search(agg_cache, &aggfnoid, HASH_ENTER, NULL) = made;
	return made;
}

AggRole
aggmap_role(Oid aggfnoid)
{
	return aggfnoid < FirstNormalObjectId ? AGG_ROLE_NONE : look_up(aggfnoid).role;
}

PartialKind
aggmap_partial_kind(Oid aggfnoid)
{
	return look_up(aggfnoid).partial;
}

bool
aggmap_is_ours(Oid aggfnoid)
{
	return aggfnoid >= FirstNormalObjectId && look_up(aggfnoid).ours;
}

bool
aggmap_is_listed(Oid aggfnoid)
{
	return look_up(aggfnoid).row != &fallback_row;
}

Oid
aggmap_state_aggregate(Oid aggfnoid)
{
	Oid			transfn;
	Oid			finalfn;
	Oid			combinefn;
	Oid			found = InvalidOid;
	Oid		   *types;
	int			ntypes;
	char	   *name;
	CatCList   *list;

	if (!aggregate_functions(aggfnoid, &transfn, &finalfn, &combinefn))
		return InvalidOid;
	name = psprintf("%s%s_state", transfn < FirstNormalObjectId ? "gpuagg_" : "", get_func_name(transfn));
	get_func_signature(aggfnoid, &types, &ntypes);
	list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(name));
	for (int i = 0; i < list->n_members && !OidIsValid(found); i++)
	{
		Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(&list->members[i]->tuple);

		if (proc->prokind == PROKIND_AGGREGATE && proc->pronargs == ntypes &&
			memcmp(proc->proargtypes.values, types, ntypes * sizeof(Oid)) == 0 && aggmap_is_ours(proc->oid))
			found = proc->oid;
	}
	ReleaseSysCacheList(list);
	return found;
}

bool
aggmap_is_fallback(Oid aggfnoid, Oid *transfn)
{
	Oid			finalfn;
	Oid			combinefn;

	aggregate_functions(aggfnoid, transfn, &finalfn, &combinefn);
	switch (look_up(aggfnoid).row->kind)
	{
		case FINALIZE_FALLBACK:
		case FINALIZE_ORDERED_SET:
			return true;
		default:
			return false;
	}
}

/* Not where gpu_median takes DISTINCT values, or its rows in an order: it is a fallback aggregate then. */
static bool
is_ordered_set(const AggRow *row, const Aggref *aggref)
{
	return row->kind == FINALIZE_ORDERED_SET &&
		(aggref->aggkind == AGGKIND_ORDERED_SET || (aggref->aggdistinct == NIL && aggref->aggorder == NIL));
}

bool
aggmap_is_ordered_set(const Aggref *aggref)
{
	return is_ordered_set(look_up(aggref->aggfnoid).row, aggref);
}

/* Can transition values of the aggregate's own function be merged?  As in preprocess_aggref. */
static bool
mergeable(const Aggref *aggref)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	Form_pg_aggregate form;
	bool		result;

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

static bool
needs_order(const AggRow *row)
{
	for (int i = 0; i < MAX_SLOTS && row->slots[i].used; i++)
		if (!gpuagg_monoids[row->slots[i].monoid].commutative)
			return true;
	return false;
}

bool
aggmap_supported(const Aggref *aggref, bool parallel, const char **why)
{
	AggEntry	entry = look_up(aggref->aggfnoid);
	const char *name = get_func_name(aggref->aggfnoid);

	if (aggref->aggkind == AGGKIND_HYPOTHETICAL)
		*why = psprintf("hypothetical-set aggregate %s", name);
	else if (aggref->aggkind != AGGKIND_NORMAL && !is_ordered_set(entry.row, aggref))
		*why = psprintf("ordered-set aggregate %s", name);
	/* distinct values are sorted by themselves */
	else if (aggref->aggkind == AGGKIND_NORMAL && aggref->aggorder != NIL && aggref->aggdistinct == NIL && parallel)
		*why = psprintf("ORDER BY inside %s, and no order between participants", name);
	else if (aggref->agglevelsup != 0 || aggref->aggsplit != AGGSPLIT_SIMPLE)
		*why = psprintf("%s belongs to another query level", name);
	else if (parallel && (entry.row->kind == FINALIZE_FALLBACK || needs_order(entry.row)) &&
			 !mergeable(aggref))
		*why = psprintf("states of %s cannot be merged", name);
	else
		return true;
	return false;
}

/* ---- building: catalog -------------------------------------------------- */

/* Raises the error of core's executor if the role may not execute the function. */
static void
check_execute(Oid fn, Oid role, ObjectType kind)
{
	AclResult	result;

	if (!OidIsValid(fn))
		return;
	result = compat_proc_aclcheck(fn, role);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, kind, get_func_name(fn));
	InvokeFunctionExecuteHook(fn);
}

static Oid
function_owner(Oid fn)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fn);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* The user needs the aggregate; its owner needs the parts that will run. */
static void
check_permissions(const Aggref *aggref, Form_pg_aggregate form)
{
	Oid			owner = function_owner(aggref->aggfnoid);

	check_execute(aggref->aggfnoid, GetUserId(), OBJECT_AGGREGATE);
	check_execute(form->aggtransfn, owner, OBJECT_FUNCTION);
	check_execute(form->aggfinalfn, owner, OBJECT_FUNCTION);
	check_execute(form->aggcombinefn, owner, OBJECT_FUNCTION);
	check_execute(form->aggserialfn, owner, OBJECT_FUNCTION);
	check_execute(form->aggdeserialfn, owner, OBJECT_FUNCTION);
}

void
aggmap_init_function(FmgrInfo *info, Oid fn, Oid result, int nargs, const Oid *types, Oid collation)
{
	List	   *args = NIL;

	info->fn_oid = InvalidOid;
	if (!OidIsValid(fn))
		return;
	for (int i = 0; i < nargs; i++)
	{
		Param	   *arg = makeNode(Param);

		arg->paramkind = PARAM_EXEC;
		arg->paramid = -1;
		arg->paramtype = types[i];
		arg->paramtypmod = -1;
		arg->paramcollid = collation;
		arg->location = -1;
		args = lappend(args, arg);
	}
	fmgr_info(fn, info);
	fmgr_info_set_expr((Node *) makeFuncExpr(fn, result, args, InvalidOid, collation,
											 COERCE_EXPLICIT_CALL), info);
}

/* The initial transition value, in the current context. */
static Datum
initial_value(HeapTuple tuple, Oid transtype, bool *isnull)
{
	Datum		literal = SysCacheGetAttr(AGGFNOID, tuple, Anum_pg_aggregate_agginitval, isnull);
	Oid			input;
	Oid			ioparam;

	if (*isnull)
		return (Datum) 0;
	getTypeInputInfo(transtype, &input, &ioparam);
	return OidInputFunctionCall(input, TextDatumGetCString(literal), ioparam, -1);
}

/* Fills *out with what the catalog says of the aggregate. */
static void
load_aggregate(AggOutput *out, const PartialCall *call)
{
	Aggref	   *aggref = call->aggref;
	FallbackAgg *agg = &out->agg;
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	Form_pg_aggregate form;
	Oid			types[FUNC_MAX_ARGS + 1];
	Oid			trans = aggref->aggtranstype;
	Oid			two[2] = {trans, trans};
	Oid			stored[2] = {BYTEAOID, INTERNALOID};
	Oid			coll = aggref->inputcollid;
	int			nargs;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", aggref->aggfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	check_permissions(aggref, form);
	if (call->called != aggref->aggfnoid)
		check_execute(call->called, GetUserId(), OBJECT_AGGREGATE);

	types[0] = trans;
	nargs = get_aggregate_argtypes(aggref, types + 1);
	out->nfinalargs = form->aggfinalextra ? nargs + 1 : 1;
	aggmap_init_function(&out->finalfn, call->form == PARTIAL_RESULT ? form->aggfinalfn : InvalidOid, aggref->aggtype,
						 out->nfinalargs, types, coll);

	agg->aggfnoid = aggref->aggfnoid;
	agg->builtin = aggref->aggfnoid < FirstNormalObjectId || aggmap_is_ours(aggref->aggfnoid);
	aggmap_init_function(&agg->transfn, form->aggtransfn, trans, nargs + 1, types, coll);
	castNode(FuncExpr, agg->transfn.fn_expr)->funcvariadic = aggref->aggvariadic;
	aggmap_init_function(&agg->combinefn, form->aggcombinefn, trans, 2, two, coll);
	aggmap_init_function(&agg->serialfn, form->aggserialfn, BYTEAOID, 1, &types[0], InvalidOid);
	aggmap_init_function(&agg->deserialfn, form->aggdeserialfn, INTERNALOID, 2, stored, InvalidOid);
	agg->collation = coll;
	agg->transtype = trans;
	get_typlenbyval(trans, &agg->translen, &agg->transbyval);
	agg->initval = initial_value(tuple, trans, &agg->initnull);
	agg->nargs = nargs;
	agg->aggref = aggref;
	ReleaseSysCache(tuple);
}

/* ---- building: columns and slots ----------------------------------------- */

/* What an aggregate reads of an argument. */
typedef enum ArgumentForm
{
	ARGUMENT_DATUM,
	ARGUMENT_VALUE,				/* a value of the type that expr_column_type() gives */
	ARGUMENT_DECIMAL,			/* the same, and numerics of several scales at the largest, or at their usual one */
	ARGUMENT_SCALE,				/* the display scale of these */
	ARGUMENT_PRESENCE			/* whether it is NULL */
} ArgumentForm;

static ArgumentForm
argument_form(FinalizeKind kind)
{
	switch (kind)
	{
		case FINALIZE_INT:
			return ARGUMENT_PRESENCE;
		case FINALIZE_DEC_AVG:
			return ARGUMENT_DECIMAL;
		default:
			/* among extremes it is the order of rows that says which of equal values of two scales is shown */
			return ARGUMENT_VALUE;
	}
}

/* Sets type, scale and form of a column for an argument. */
static void
argument_type(const AggSpec *spec, Node *expr, ArgumentForm form, ColumnSpec *col)
{
	int16		least;

	col->type = expr_column_type(expr, &col->scale);
	if (form == ARGUMENT_SCALE)
	{
		col->type = COLUMN_I32;
		col->scale = 0;
		col->form = NUMERIC_SHOWN_SCALE;
	}
	else if (form == ARGUMENT_DATUM)
	{
		col->type = COLUMN_DATUM;
		col->scale = 0;
	}
	else if (form == ARGUMENT_DECIMAL && col->type == COLUMN_DATUM)
	{
		if (expr_decimal_scales(expr, &least, &col->scale))
		{
			col->type = COLUMN_DEC;
			col->form = NUMERIC_ANY_SCALE;
		}
		else if (spec->support.usual_scales && spec->usual_scale[col->input] >= 0)
		{
			col->type = COLUMN_DEC;
			col->scale = spec->usual_scale[col->input];
		}
	}
}

static int
add_argument(AggSpec *spec, Aggref *aggref, const int *args, int i, ArgumentForm form)
{
	Node	   *expr = (Node *) list_nth_node(TargetEntry, aggref->args, i)->expr;
	ColumnSpec	col = {.input = args[i]};

	col.typid = exprType(expr);
	col.typmod = exprTypmod(expr);
	col.collation = exprCollation(expr);
	get_typlenbyval(col.typid, &col.typlen, &col.typbyval);
	argument_type(spec, expr, form, &col);
	if (form == ARGUMENT_SCALE)
	{
		col.typid = INT4OID;
		col.typlen = 4;
		col.typbyval = true;
	}
	if (form == ARGUMENT_PRESENCE && col.type == COLUMN_DATUM && spec_find_column(spec, &col) < 0)
	{
		/* any byte of it will do, and is not copied */
		col.type = COLUMN_I8;
		col.typid = CHAROID;
		col.typlen = 1;
		col.typbyval = true;
	}
	return spec_add_column(spec, &col);
}

static int
add_filter(AggSpec *spec, int filter)
{
	ColumnSpec	col = {.input = filter, .type = COLUMN_I8, .typid = BOOLOID, .typmod = -1,
	.typlen = 1, .typbyval = true};

	return filter < 0 ? -1 : spec_add_column(spec, &col);
}

/*
 * The parameters, for expr_cannot_fail.  Workers have nothing but their values, as all were evaluated when the plan was sent; what
 * fails or not is then the same in the leader, whose states are to be those of the workers.
 */
static ParamListInfo
known_parameters(const PlanState *parent)
{
	static ParamListInfoData values;

	return parent->plan->parallel_aware && IsInParallelMode() ? &values : parent->state->es_param_list_info;
}

/*
 * Evaluates argument i, even if no row will need it; false if it is NULL, may differ
 * between rows, or may raise an error.
 */
static bool
fixed_argument(Aggref *aggref, int i, PlanState *parent, ExprContext *econtext, Datum *value)
{
	Expr	   *expr = list_nth_node(TargetEntry, aggref->args, i)->expr;
	bool		isnull;

	if (contain_var_clause((Node *) expr) || !expr_cannot_fail((Node *) expr, known_parameters(parent)))
		return false;
	*value = ExecEvalExpr(ExecInitExpr(expr, parent), econtext, &isnull);
	return !isnull;
}

/*
 * The bins of a histogram or sketch; false if they are not known before the first row.
 * Bounds that are not valid count as such: the transition function raises the error, if
 * there is a row.
 */
static bool
histogram_bins(BinSpec *bins, FinalizeKind kind, Aggref *aggref, PlanState *parent,
			   ExprContext *econtext)
{
	Datum		arg[3];
	int			nfixed = kind == FINALIZE_HIST_THRESHOLDS ? 1 : 3;

	memset(bins, 0, sizeof(*bins));
	if (kind == FINALIZE_HLL)
	{
		bins->kind = BIN_HLL;
		bins->n = GPUAGG_HLL_REGISTERS;
		return hll_value_is_hash(exprType((Node *) linitial_node(TargetEntry, aggref->args)->expr));
	}
	for (int i = 0; i < nfixed; i++)
		if (!fixed_argument(aggref, i + 1, parent, econtext, &arg[i]))
			return false;
	if (kind == FINALIZE_HIST_THRESHOLDS)
	{
		bins->kind = BIN_THRESHOLDS;
		bins->thresholds = histogram_thresholds(DatumGetArrayTypePCopy(arg[0]), &bins->n);
		return bins->thresholds != NULL;
	}
	bins->lo = DatumGetFloat8(arg[0]);
	bins->hi = DatumGetFloat8(arg[1]);
	bins->n = DatumGetInt32(arg[2]);
	if (kind == FINALIZE_HIST_LOG)
	{
		if (!histogram_log_valid(bins->lo, bins->hi, bins->n))
			return false;
		bins->kind = BIN_THRESHOLDS;
		bins->thresholds = histogram_log_thresholds(bins->lo, bins->hi, bins->n);
		bins->n++;
		return true;
	}
	bins->kind = BIN_UNIFORM;
	return histogram_uniform_valid(bins->lo, bins->hi, bins->n);
}

/* Do the last digits of a state depend on the order of its rows, though it commutes? */
static bool
depends_on_order(MonoidId monoid)
{
	return monoid == MONOID_SUM_F32 || monoid == MONOID_SUM_F64 || monoid == MONOID_ACCUM_F64 ||
		monoid == MONOID_REGR_F64 || monoid == MONOID_PRODUCT_F64;
}

/* Adds the slots of a row of agg_list.h; false where its arguments do not suit. */
static bool
add_slots(AggOutput *out, AggSpec *spec, const AggRow *row, Aggref *aggref, const int *args,
		  int filter, int set, PlanState *parent, ExprContext *econtext)
{
	BinSpec		bins;
	bool		binned = finalize_has_bins(row->kind);
	ArgumentForm form = argument_form(row->kind);

	if (row->kind == FINALIZE_FALLBACK)
		return false;
	if (binned)
	{
		if (!histogram_bins(&bins, row->kind, aggref, parent, econtext))
			return false;
		out->width = spec_bins_width(&bins);
		if (spec->nkeys > 0 && out->width > MAX_GROUPED_BINS && !spec->support.many_bins)
			return false;
	}
	if (row->kind == FINALIZE_MATRIX && !spec->support.matrices)
		return false;
	if (row->kind == FINALIZE_ARG || row->kind == FINALIZE_ASCENDING)
	{
		ListCell   *lc;

		foreach(lc, aggref->args)
			if (!spec_type_has_codes(exprType((Node *) lfirst_node(TargetEntry, lc)->expr)))
				return false;
	}
	if (row->kind == FINALIZE_DEC || row->kind == FINALIZE_DEC_AVG)
	{
		Node	   *expr = (Node *) list_nth_node(TargetEntry, aggref->args, 0)->expr;
		ColumnSpec	col = {.input = args[0]};
		int16		scale;

		argument_type(spec, expr, form, &col);
		/* which one of equal values is distinct shows in its scale */
		if (col.type != COLUMN_DEC || (col.form == NUMERIC_ANY_SCALE && set > 0))
			return false;
		out->scale = col.scale;
		out->shows_scales = col.form == NUMERIC_ANY_SCALE;
		if (!out->shows_scales && expr_column_type(expr, &scale) != COLUMN_DEC)
			spec->mixed_scales = true;
	}

	for (int i = 0; i < MAX_SLOTS && row->slots[i].used; i++)
	{
		const SlotUse *use = &row->slots[i];
		SlotSpec   *slot;
		int			col[2];
		int			nslots;

		for (int j = 0; j < 2; j++)
		{
			col[j] = use->arg[j] < 0 ? -1 : add_argument(spec, aggref, args, use->arg[j], form);
			if (col[j] >= 0 && spec->cols[col[j]].type == COLUMN_DEC)
				out->decimals = true;
			if (row->kind == FINALIZE_ARG && use->arg[j] == 0)
				out->value = spec->cols[col[j]].type;
			if (row->kind == FINALIZE_ARG && use->arg[j] == 1)
				out->key = spec->cols[col[j]].type;
		}
		if ((aggref->aggorder != NIL || set > 0) && depends_on_order(use->monoid))
			spec->ordered_floats = true;
		nslots = spec->nslots;
		out->slots[i] = spec_add_slot(spec, use->monoid, col[0], col[1], filter, set,
									  binned && i > 0 ? &bins : NULL);
		slot = &spec->slots[out->slots[i]];
		slot->mean_only = (slot->mean_only || spec->nslots > nslots) &&
			out->float8_mean;
	}
	if (out->shows_scales)
		out->slots[SCALE_SLOT] = spec_add_slot(spec, MONOID_MAX_I32, add_argument(spec, aggref, args, 0, ARGUMENT_SCALE),
											   -1, filter, set, NULL);
	if (binned)
		out->bins = bins;
	out->kind = row->kind;
	out->counted = row->slots[0].monoid == MONOID_COUNT;
	return true;
}

/* An AggState with what final functions may get from it, by AggGetAggref and the like. */
static AggState *
stand_in(Aggref *aggref)
{
	AggState   *aggstate = makeNode(AggState);

	aggstate->curaggcontext = aggstate->tmpcontext = makeNode(ExprContext);
	aggstate->curaggcontext->ecxt_per_query_memory = CurrentMemoryContext;
	aggstate->curpertrans = palloc0(sizeof(AggStatePerTransData));
	aggstate->curpertrans->aggref = aggref;
	return aggstate;
}

/* Is it min() or max(), or count(*)? */
static bool
is_extreme(const AggRow *row, const Aggref *aggref)
{
	bool		extreme = aggref->args == NIL;

	for (int i = 0; i < MAX_SLOTS && row->slots[i].used; i++)
	{
		MonoidId	monoid = row->slots[i].monoid;

		if (monoid >= MONOID_MIN_I32 && monoid <= MONOID_MAX_F64)
			extreme = true;
		else if (monoid != MONOID_COUNT)
			return false;
	}
	return extreme;
}

/* How the value leaves that the call asks for. */
static void
init_form(AggOutput *out, const PartialCall *call)
{
	Oid			fn;
	bool		varlena;

	out->form = call->form;
	if (call->merged)
		out->partial = aggmap_partial_kind(call->aggref->aggfnoid);
	else if (call->form == PARTIAL_TEXT || call->form == PARTIAL_BINARY)
	{
		if (call->form == PARTIAL_TEXT)
			getTypeOutputInfo(out->agg.transtype, &fn, &varlena);
		else
			getTypeBinaryOutputInfo(out->agg.transtype, &fn, &varlena);
		fmgr_info(fn, &out->output);
	}
}

AggOutput *
aggmap_build(AggSpec *spec, const PartialCall *call, const int *args, int filter, int set,
			 PlanState *parent, ExprContext *econtext)
{
	AggOutput  *out = palloc0(sizeof(AggOutput));
	Aggref	   *aggref = call->aggref;
	FallbackAgg fallback;
	AggEntry	entry = look_up(aggref->aggfnoid);
	const AggRow *row = entry.row;
	bool		by_slots;

	out->float8_mean = row->kind == FINALIZE_ACCUM && entry.finalfn == F_FLOAT8_AVG && call->form == PARTIAL_RESULT;
	load_aggregate(out, call);
	init_form(out, call);
	fallback = out->agg;
	out->fallback = -1;
	out->aggstate = stand_in(aggref);
	fallback.filter = add_filter(spec, filter);
	fallback.set = set;
	if (is_ordered_set(row, aggref))
	{
		out->kind = FINALIZE_ORDERED_SET;
		out->fallback = ordered_set_add(spec, aggref, entry.finalfn, args[0], fallback.filter, &fallback);
		spec->others = true;
		return out;
	}
	if (row->kind == FINALIZE_ORDERED_SET)
		row = &fallback_row;
	by_slots = add_slots(out, spec, row, aggref, args, fallback.filter, set, parent, econtext);

	if (!by_slots || filter >= 0 || !is_extreme(row, aggref))
		spec->others = true;
	if (!by_slots || out->decimals)
	{
		fallback.unrepresentable_only = by_slots;
		Assert(!fallback.unrepresentable_only || fallback.nargs == 1);
		for (int i = 0; i < fallback.nargs; i++)
			fallback.argcol[i] = add_argument(spec, aggref, args, i,
											  by_slots ? argument_form(row->kind) : ARGUMENT_DATUM);
		out->fallback = spec_add_fallback(spec, &fallback);
	}
	final_values_init(out, entry.finalfn);
	return out;
}

bool
aggmap_shows_order(const AggOutput *out, const AggSpec *spec)
{
	const AggRow *row = look_up(out->agg.aggfnoid).row;

	if (out->fallback >= 0 && !spec->fallbacks[out->fallback].unrepresentable_only)
		return true;
	for (int i = 0; i < MAX_SLOTS && row->slots[i].used; i++)
		if (depends_on_order(row->slots[i].monoid))
			return true;
	return needs_order(row);
}

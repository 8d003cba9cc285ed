/*
 * partial_call.c
 *	  Which aggregates calls of partial aggregates stand for, and how an aggregate is written as a
 *	  call of gpuagg_merge.
 *
 * Citus computes part of an aggregate on each worker with worker_partial_agg(oid, anyelement), or
 * in binary form with worker_binary_partial_agg. The second argument is the argument of the
 * aggregate, or ROW() of several arguments. The result is the text or binary form of the transition
 * value.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_agg.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "aggregates/aggmap_internal.h"
#include "aggregates/alike.h"
#include "aggregates/partial_call.h"
#include "aggregates/partial_state.h"

/* Returns whether a node calls the extension's function with this name. */
static bool
is_own_function(Node *node, const char *name)
{
	FuncExpr *func = (FuncExpr *) node;
	Oid extension = get_extension_oid("gpuagg", true);
	char *actual;

	if (!IsA(node, FuncExpr) || !OidIsValid(extension))
		return false;
	actual = get_func_name(func->funcid);
	return actual && strcmp(actual, name) == 0 &&
		getExtensionOfObject(ProcedureRelationId, func->funcid) == extension;
}

/*
 * Returns the value of a constant of type oid or regprocedure, such as the aggregate that is an
 * argument; InvalidOid for any other node.
 */
static Oid
constant_oid(Node *node)
{
	Const *value = (Const *) node;

	while (node && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	value = (Const *) node;
	if (node == NULL || !IsA(node, Const) || value->constisnull ||
		(value->consttype != OIDOID && value->consttype != REGPROCEDUREOID))
		return InvalidOid;
	return DatumGetObjectId(value->constvalue);
}

/*
 * Returns a new call agg(args...) with the filter of the call `outer`. Returns NULL if the
 * aggregate cannot be computed in parts, or not with these arguments. internal: its transition
 * type must be internal, else it must not be.
 */
static Aggref *
make_call(const Aggref *outer, Oid agg, List *args, Oid collation, bool internal)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(agg));
	Aggref *aggref = makeNode(Aggref);
	Form_pg_aggregate form;
	Oid types[FUNC_MAX_ARGS];
	int n = 0;
	bool usable;
	ListCell *lc;

	if (!HeapTupleIsValid(tuple) || list_length(args) > FUNC_MAX_ARGS)
	{
		if (HeapTupleIsValid(tuple))
			ReleaseSysCache(tuple);
		return NULL;
	}
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	usable = form->aggkind == AGGKIND_NORMAL && OidIsValid(form->aggcombinefn) &&
		(form->aggtranstype == INTERNALOID) == internal;
	aggref->aggtranstype = form->aggtranstype;
	ReleaseSysCache(tuple);
	foreach (lc, args)
	{
		Node *arg = lfirst(lc);

		types[n++] = exprType(arg);
		aggref->args = lappend(aggref->args, makeTargetEntry((Expr *) arg, n, NULL, false));
		aggref->aggargtypes = lappend_oid(aggref->aggargtypes, exprType(arg));
	}
	if (!usable || !partial_accepts_types(agg, types, n) ||
		(internal && !partial_is_portable(aggmap_partial_kind(agg), types, n, collation)) ||
		(!internal && get_typtype(aggref->aggtranstype) == TYPTYPE_PSEUDO))
		return NULL;
	aggref->aggfnoid = agg;
	/* only the type of the final function, which is not called */
	aggref->aggtype = get_func_rettype(agg);
	aggref->inputcollid = collation;
	aggref->aggfilter = outer->aggfilter;
	aggref->aggstar = args == NIL;
	aggref->aggkind = AGGKIND_NORMAL;
	aggref->aggsplit = outer->aggsplit;
	aggref->agglevelsup = outer->agglevelsup;
	aggref->location = -1;
	return aggref;
}

/* Returns argument i of an aggregate call, from 0. */
static Node *
call_argument(const Aggref *aggref, int i)
{
	return (Node *) list_nth_node(TargetEntry, aggref->args, i)->expr;
}

/*
 * Returns the call agg(args...) for gpuagg_merge(gpuagg_pack(agg, args...)), with the filter of
 * `outer`; arg: the argument of gpuagg_merge. Returns NULL if the argument is anything else.
 */
static Aggref *
merge_call(const Aggref *outer, Node *arg)
{
	FuncExpr *pack = (FuncExpr *) arg;
	Oid agg;

	if (!is_own_function(arg, "gpuagg_pack") || pack->funcvariadic)
		return NULL;
	agg = constant_oid(linitial(pack->args));
	if (!OidIsValid(agg) || aggmap_partial_kind(agg) == PARTIAL_NONE)
		return NULL;
	return make_call(outer, agg, list_copy_tail(pack->args, 1), pack->inputcollid, true);
}

/*
 * Returns the call of gpu_approx_count_distinct or gpu_approx_percentile whose state a call of
 * gpu_..._state makes, or NULL. The fraction is no part of the sketch.
 */
static Aggref *
state_call(const Aggref *aggref)
{
	List *args = list_make1(call_argument(aggref, 0));
	Oid any[] = {ANYOID};
	Oid floats[] = {FLOAT8OID, FLOAT8OID};
	Oid agg;

	if (aggmap_partial_kind(aggref->aggfnoid) == PARTIAL_HLL)
		agg = partial_own_function("gpu_approx_count_distinct", any, 1);
	else
	{
		agg = partial_own_function("gpu_approx_percentile", floats, 2);
		args = lappend(args,
					   makeConst(FLOAT8OID, -1, InvalidOid, sizeof(float8), Float8GetDatum(0.5),
								 false, FLOAT8PASSBYVAL));
	}
	return OidIsValid(agg) ? make_call(aggref, agg, args, aggref->inputcollid, true) : NULL;
}

/*
 * Returns the call that a partial aggregate of Citus stands for. Its member aggref is NULL if the
 * arguments are not as expected.
 */
static PartialCall
citus_call(const Aggref *aggref, AggRole role)
{
	PartialCall call = {NULL, aggref->aggfnoid,
						role == AGG_ROLE_CITUS_TEXT ? PARTIAL_TEXT : PARTIAL_BINARY, false};
	Oid agg = constant_oid(call_argument(aggref, 0));
	Node *arg = call_argument(aggref, 1);

	if (!OidIsValid(agg))
		return call;
	if (aggmap_role(agg) == AGG_ROLE_MERGE)
	{
		call.merged = true;
		call.aggref = merge_call(aggref, arg);
	}
	else if (aggmap_role(agg) == AGG_ROLE_NONE)
		call.aggref =
			make_call(aggref, agg, IsA(arg, RowExpr) ? ((RowExpr *) arg)->args : list_make1(arg),
					  aggref->inputcollid, false);
	return call;
}

PartialCall
partial_call(const Aggref *aggref)
{
	PartialCall whole = {unconstify(Aggref *, aggref), aggref->aggfnoid, PARTIAL_RESULT, false};
	PartialCall call = whole;
	AggRole role = aggmap_role(aggref->aggfnoid);

	if (aggref->aggsplit == AGGSPLIT_INITIAL_SERIAL)
	{
		whole.form = PARTIAL_TRANS;
		return whole;
	}
	if (role == AGG_ROLE_NONE || aggref->aggdistinct != NIL || aggref->aggorder != NIL)
		return whole;
	if (role == AGG_ROLE_MERGE)
	{
		call.form = PARTIAL_STATE;
		call.merged = true;
		call.aggref = merge_call(aggref, call_argument(aggref, 0));
	}
	else if (role == AGG_ROLE_STATE)
	{
		call.form = PARTIAL_STATE;
		call.merged = true;
		call.aggref = state_call(aggref);
	}
	else
		call = citus_call(aggref, role);
	return call.aggref ? call : whole;
}

Aggref *
partial_aggref(const Aggref *aggref)
{
	return partial_call(aggref).aggref;
}

/* ---- aggregates as calls ----------------------------------------------------- */

/*
 * Returns the schema of an extension's objects. Core has a function for that only in later
 * releases.
 */
static Oid
extension_schema(Oid extension)
{
	Relation rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	Oid schema = InvalidOid;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(extension));
	scan = systable_beginscan(rel, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return schema;
}

Oid
partial_own_function(const char *name, const Oid *argtypes, int nargs)
{
	Oid extension = get_extension_oid("gpuagg", true);

	if (!OidIsValid(extension))
		return InvalidOid;
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
						   PointerGetDatum(buildoidvector(argtypes, nargs)),
						   ObjectIdGetDatum(extension_schema(extension)));
}

/* Returns the extension's type with this name; InvalidOid if there is none. */
static Oid
own_type(const char *name)
{
	Oid extension = get_extension_oid("gpuagg", true);

	if (!OidIsValid(extension))
		return InvalidOid;
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name),
						   ObjectIdGetDatum(extension_schema(extension)));
}

/*
 * Returns whether values of the type are rows of a table, or arrays of these. On the workers of
 * Citus, rows of a distributed table have the types of its shards.
 */
static bool
is_row_of_table(Oid type)
{
	Oid element;
	Oid relid;

	check_stack_depth();
	type = getBaseType(type);
	element = get_element_type(type);
	if (OidIsValid(element))
		return is_row_of_table(element);
	relid = get_typ_typrelid(type);
	return OidIsValid(relid) && get_rel_relkind(relid) != RELKIND_COMPOSITE_TYPE;
}

/*
 * Returns the aggregate whose gpuagg_states compute this one, or InvalidOid. Sets *times to how
 * often each argument is passed to it. For most aggregates it is the aggregate itself. min and max
 * of arrays or enums, whose state is of the argument's type, are computed with gpu_argmin and
 * gpu_argmax of (value, value).
 */
static Oid
aggregate_of_states(const Aggref *aggref, int *times)
{
	char *name = get_func_name(aggref->aggfnoid);
	Oid types[] = {ANYELEMENTOID, ANYCOMPATIBLEOID};

	*times = 1;
	if (aggmap_partial_kind(aggref->aggfnoid) != PARTIAL_NONE)
		return aggref->aggfnoid;
	if (!aggmap_is_ours(aggref->aggfnoid) || list_length(aggref->args) != 1 ||
		!IsPolymorphicType(get_func_rettype(aggref->aggfnoid)) ||
		contain_volatile_functions((Node *) aggref->args))
		return InvalidOid;
	*times = 2;
	if (name && strcmp(name, "gpu_min") == 0)
		return partial_own_function("gpu_argmin", types, 2);
	return name && strcmp(name, "gpu_max") == 0 ? partial_own_function("gpu_argmax", types, 2) :
												  InvalidOid;
}

bool
partial_depends_on_database(const Aggref *aggref)
{
	bool hashes = aggmap_partial_kind(aggref->aggfnoid) == PARTIAL_HLL;
	ListCell *lc;

	foreach (lc, aggref->aggargtypes)
		if (hashes ? !alike_has_same_hash(lfirst_oid(lc), aggref->inputcollid) :
					 alike_contains_object_ids(lfirst_oid(lc)))
			return true;
	return false;
}

/*
 * Returns whether the aggregate can be computed from gpuagg_states that several servers make with
 * the aggregate `states`.
 */
static bool
can_use_partial_states(const Aggref *aggref, Oid states)
{
	PartialKind kind = aggmap_partial_kind(states);
	ListCell *lc;

	if (kind == PARTIAL_NONE || aggref->aggkind != AGGKIND_NORMAL || aggref->aggvariadic ||
		aggref->aggdistinct != NIL || aggref->aggorder != NIL || aggref->agglevelsup != 0 ||
		partial_depends_on_database(aggref))
		return false;
	/* Citus does not split an aggregate whose arguments are the same in all rows */
	if (!contain_var_clause((Node *) aggref->args))
		return false;
	foreach (lc, aggref->args)
	{
		Oid type = exprType((Node *) lfirst_node(TargetEntry, lc)->expr);

		if (get_typtype(type) == TYPTYPE_PSEUDO || is_row_of_table(type))
			return false;
	}
	/* a domain may not allow the NULL that is passed for the result type */
	return get_typtype(aggref->aggtype) != TYPTYPE_DOMAIN;
}

/* Returns a constant of type regprocedure for an aggregate. */
static Const *
aggregate_constant(Oid aggfnoid)
{
	return makeConst(REGPROCEDUREOID, -1, InvalidOid, sizeof(Oid), ObjectIdGetDatum(aggfnoid),
					 false, true);
}

Node *
partial_expression(const Aggref *aggref)
{
	Oid row = own_type("gpuagg_row");
	Oid state = own_type("gpuagg_state");
	Oid pack_types[] = {REGPROCEDUREOID, ANYOID};
	Oid finish_types[] = {state, REGPROCEDUREOID, ANYELEMENTOID};
	Oid pack = partial_own_function("gpuagg_pack", pack_types, 2);
	Oid merge = partial_own_function("gpuagg_merge", &row, 1);
	Oid finish = partial_own_function("gpuagg_finish", finish_types, 3);
	int times;
	Oid states = aggregate_of_states(aggref, &times);
	List *args;
	Oid types[FUNC_MAX_ARGS];
	int n = 0;
	Aggref *merged;
	ListCell *lc;

	if (!OidIsValid(pack) || !OidIsValid(merge) || !OidIsValid(finish) || !OidIsValid(states) ||
		!can_use_partial_states(aggref, states))
		return NULL;
	args = list_make1(aggregate_constant(states));
	foreach (lc, aggref->args)
		for (int i = 0; i < times; i++)
		{
			Expr *arg = lfirst_node(TargetEntry, lc)->expr;

			types[n++] = exprType((Node *) arg);
			args = lappend(args, copyObject(arg));
		}
	if (!partial_accepts_types(states, types, n))
		return NULL;
	merged = makeNode(Aggref);
	merged->aggfnoid = merge;
	merged->aggtype = state;
	merged->aggargtypes = list_make1_oid(row);
	merged->args =
		list_make1(makeTargetEntry((Expr *) makeFuncExpr(pack, row, args, InvalidOid,
														 aggref->inputcollid, COERCE_EXPLICIT_CALL),
								   1, NULL, false));
	merged->aggfilter = aggref->aggfilter;
	merged->aggkind = AGGKIND_NORMAL;
	merged->aggsplit = AGGSPLIT_SIMPLE;
	merged->aggno = merged->aggtransno = -1;
	merged->location = aggref->location;
	return (Node *) makeFuncExpr(finish, aggref->aggtype,
								 list_make3(merged, aggregate_constant(states),
											makeNullConst(aggref->aggtype, -1, aggref->aggcollid)),
								 aggref->aggcollid, aggref->inputcollid, COERCE_EXPLICIT_CALL);
}

/* Returns the type that the parser gives to a call whose arguments partial_accepts_types(). */
static Oid
result_type(const Aggref *aggref)
{
	Oid types[FUNC_MAX_ARGS];
	Oid result = get_func_rettype(aggref->aggfnoid);
	Oid *declared;
	int nargs;
	ListCell *lc;

	if (!IsPolymorphicType(result))
		return result;
	(void) get_func_signature(aggref->aggfnoid, &declared, &nargs);
	foreach (lc, aggref->aggargtypes)
		types[foreach_current_index(lc)] = lfirst_oid(lc);
	return enforce_generic_type_consistency(types, declared, nargs, result, false);
}

Aggref *
partial_original_aggregate(Node *node)
{
	FuncExpr *finish = (FuncExpr *) node;
	PartialCall call;

	if (!is_own_function(node, "gpuagg_finish") || list_length(finish->args) != 3 ||
		!IsA(linitial(finish->args), Aggref))
		return NULL;
	call = partial_call(linitial_node(Aggref, finish->args));
	/* with another type, gpuagg_finish() raises its error */
	if (call.form != PARTIAL_STATE || aggmap_role(call.called) != AGG_ROLE_MERGE ||
		constant_oid(lsecond(finish->args)) != call.aggref->aggfnoid ||
		finish->funcresulttype != result_type(call.aggref))
		return NULL;
	/* as after parsing */
	call.aggref->aggtype = finish->funcresulttype;
	call.aggref->aggcollid = finish->funccollid;
	call.aggref->aggtranstype = InvalidOid;
	call.aggref->aggno = call.aggref->aggtransno = -1;
	return call.aggref;
}

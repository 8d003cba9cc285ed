/*
 * aggmap.c
 *	  From SQL aggregates to slots and fallback aggregates.
 *
 * The rows of agg_list.h become slots. All other aggregates become a FallbackAgg, which runs their
 * own transition function. So do aggregates whose arguments have no column type that a slot can
 * read: numerics without a declared scale, and histograms whose bounds are not constant or may fail
 * to evaluate.
 *
 * A numeric column with a declared scale is a column of decimals. For sums and averages, so is a
 * column whose values mostly have the same scale. The few values that such a decimal cannot
 * represent go to a FallbackAgg in addition. The aggregate's combine function merges its transition
 * value with that of the slots.
 *
 * Sums and averages of expressions may have values of several display scales with a known maximum.
 * They use decimals of the maximum, and one more slot has the largest display scale of a group's
 * values.
 *
 * An AggOutput is allocated in the context that is current in aggmap_build.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
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
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "aggregates/agg_tally.h"
#include "aggregates/aggmap_internal.h"
#include "aggregates/histogram.h"
#include "aggregates/hll_value.h"
#include "aggregates/ordered_set.h"
#include "aggregates/top_n.h"
#include "common/compat.h"
#include "analysis/analysis.h"
#include "operators/bins.h"
#include "operators/hll.h"

/*
 * Most bins of a histogram with GROUP BY in slots of the CPU engine. A group's states are one row
 * of the table; wider rows would spread it too far for the caches.
 */
#define MAX_GROUPED_BINS 4096

/* ---- building: catalog -------------------------------------------------- */

/* Raises core's error if the role may not execute the function. */
static void
check_execute(Oid fn, Oid role, ObjectType kind)
{
	AclResult result;

	if (!OidIsValid(fn))
		return;
	result = compat_proc_aclcheck(fn, role);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, kind, get_func_name(fn));
	InvokeFunctionExecuteHook(fn);
}

/* Returns the owner of a function. */
static Oid
function_owner(Oid fn)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fn));
	Oid owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fn);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

/*
 * Raises core's error unless the user has EXECUTE on the aggregate, and its owner has it on the
 * functions that will run.
 */
static void
check_permissions(Oid agg)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(agg));
	Form_pg_aggregate form;
	Oid owner = function_owner(agg);

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", agg);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	check_execute(agg, GetUserId(), OBJECT_AGGREGATE);
	check_execute(form->aggtransfn, owner, OBJECT_FUNCTION);
	check_execute(form->aggfinalfn, owner, OBJECT_FUNCTION);
	check_execute(form->aggcombinefn, owner, OBJECT_FUNCTION);
	check_execute(form->aggserialfn, owner, OBJECT_FUNCTION);
	check_execute(form->aggdeserialfn, owner, OBJECT_FUNCTION);
	ReleaseSysCache(tuple);
}

void
aggmap_init_function(FmgrInfo *info, Oid fn, Oid result, int nargs, const Oid *types, Oid collation)
{
	List *args = NIL;

	info->fn_oid = InvalidOid;
	if (!OidIsValid(fn))
		return;
	for (int i = 0; i < nargs; i++)
	{
		Param *arg = makeNode(Param);

		arg->paramkind = PARAM_EXEC;
		arg->paramid = -1;
		arg->paramtype = types[i];
		arg->paramtypmod = -1;
		arg->paramcollid = collation;
		arg->location = -1;
		args = lappend(args, arg);
	}
	fmgr_info(fn, info);
	fmgr_info_set_expr(
		(Node *) makeFuncExpr(fn, result, args, InvalidOid, collation, COERCE_EXPLICIT_CALL), info);
}

/* Returns the aggregate's initial transition value, in the current context. */
static Datum
initial_value(HeapTuple tuple, Oid transtype, bool *isnull)
{
	Datum literal = SysCacheGetAttr(AGGFNOID, tuple, Anum_pg_aggregate_agginitval, isnull);
	Oid input;
	Oid ioparam;

	if (*isnull)
		return (Datum) 0;
	getTypeInputInfo(transtype, &input, &ioparam);
	return OidInputFunctionCall(input, TextDatumGetCString(literal), ioparam, -1);
}

/*
 * Sets the members of *out that come from the catalog. Raises an error if a permission is missing.
 */
static void
load_aggregate(AggOutput *out, const PartialCall *call)
{
	Aggref *aggref = call->aggref;
	FallbackAgg *agg = &out->agg;
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	Form_pg_aggregate form;
	Oid types[FUNC_MAX_ARGS + 1];
	Oid trans = aggref->aggtranstype;
	Oid combine_types[2] = {trans, trans};
	Oid deserial_types[2] = {BYTEAOID, INTERNALOID};
	Oid coll = aggref->inputcollid;
	int nargs;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", aggref->aggfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	/* the query does not name the aggregate that computes gpu_..._state */
	check_permissions(aggmap_role(call->called) == AGG_ROLE_STATE ? call->called :
																	aggref->aggfnoid);
	check_execute(call->called, GetUserId(), OBJECT_AGGREGATE);

	types[0] = trans;
	nargs = get_aggregate_argtypes(aggref, types + 1);
	out->nfinalargs = form->aggfinalextra ? nargs + 1 : 1;
	aggmap_init_function(&out->finalfn,
						 call->form == PARTIAL_RESULT ? form->aggfinalfn : InvalidOid,
						 aggref->aggtype, out->nfinalargs, types, coll);

	agg->aggfnoid = aggref->aggfnoid;
	agg->builtin = aggref->aggfnoid < FirstNormalObjectId || aggmap_is_ours(aggref->aggfnoid);
	aggmap_init_function(&agg->transfn, form->aggtransfn, trans, nargs + 1, types, coll);
	castNode(FuncExpr, agg->transfn.fn_expr)->funcvariadic = aggref->aggvariadic;
	agg->exact = agg->builtin && exact_kind_of(&agg->transfn) != 0;
	aggmap_init_function(&agg->combinefn, form->aggcombinefn, trans, 2, combine_types, coll);
	aggmap_init_function(&agg->serialfn, form->aggserialfn, BYTEAOID, 1, &types[0], InvalidOid);
	aggmap_init_function(&agg->deserialfn, form->aggdeserialfn, INTERNALOID, 2, deserial_types,
						 InvalidOid);
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
	ARGUMENT_VALUE,   /* a value of the type that expr_column_type() returns */
	ARGUMENT_KEY,     /* the same; numerics of several scales as decimals of the usual scale */
	ARGUMENT_DECIMAL, /* the same; numerics of several scales as decimals of the largest or the
						 usual scale */
	ARGUMENT_SCALE,   /* the display scale of such decimals */
	ARGUMENT_PRESENCE /* only whether it is NULL */
} ArgumentForm;

/* Returns which form of its arguments an aggregate of this kind reads. */
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
			/*
			 * min() and max() of equal numerics with two scales: the order of rows decides which is
			 * shown
			 */
			return ARGUMENT_VALUE;
	}
}

/* Sets type, scale and form of *col, the column for an argument that is read in this form. */
static void
argument_type(const AggSpec *spec, Node *expr, ArgumentForm form, ColumnSpec *col)
{
	int16 least;

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
	else if ((form == ARGUMENT_DECIMAL || form == ARGUMENT_KEY) && col->type == COLUMN_DATUM)
	{
		if (form == ARGUMENT_DECIMAL && expr_decimal_scales(expr, &least, &col->scale))
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

/* Returns argument i of the aggregate; after the arguments, a NULL of its computed input. */
static Node *
argument_expression(const Aggref *aggref, int i)
{
	if (i == list_length(aggref->aggargtypes))
		return (Node *) makeNullConst(
			aggmap_lookup(aggref->aggfnoid).row->kind == FINALIZE_HLL ? INT8OID : INT4OID, -1,
			InvalidOid);
	return (Node *) list_nth_node(TargetEntry, aggref->args, i)->expr;
}

/*
 * Adds to *spec the column for argument i of the aggregate, if it is not there yet. Returns the
 * column's index.
 */
static int
add_argument(AggSpec *spec, Aggref *aggref, const int *args, int i, ArgumentForm form)
{
	Node *expr = argument_expression(aggref, i);
	ColumnSpec col = {.input = args[i]};

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
		/* one byte is enough; the value is not copied */
		col.presence = true;
		col.type = COLUMN_I8;
		col.typid = CHAROID;
		col.typlen = 1;
		col.typbyval = true;
	}
	return spec_add_column(spec, &col);
}

/* Adds the column of a filter; returns its index, or -1 if there is no filter. */
static int
add_filter(AggSpec *spec, int filter)
{
	ColumnSpec col = {.input = filter,
					  .type = COLUMN_I8,
					  .typid = BOOLOID,
					  .typmod = -1,
					  .typlen = 1,
					  .typbyval = true};

	return filter < 0 ? -1 : spec_add_column(spec, &col);
}

/*
 * Returns the parameters for expr_cannot_fail. Workers have only their values, because all were
 * evaluated when the plan was sent. The leader must decide as workers do, because its states are
 * merged with theirs.
 */
static ParamListInfo
known_parameters(const PlanState *parent)
{
	static ParamListInfoData values;

	return parent->plan->parallel_aware && IsInParallelMode() ? &values :
																parent->state->es_param_list_info;
}

/*
 * Sets *value to argument i, which has one value for all rows. Evaluates it even if there will be
 * no row. Returns false if it is NULL, may differ between rows, or may raise an error.
 */
static bool
evaluate_fixed_argument(Aggref *aggref, int i, PlanState *parent, ExprContext *econtext,
						Datum *value)
{
	Expr *expr = list_nth_node(TargetEntry, aggref->args, i)->expr;
	bool isnull;

	if (contain_var_clause((Node *) expr) ||
		!expr_cannot_fail((Node *) expr, known_parameters(parent)))
		return false;
	*value = ExecEvalExpr(ExecInitExpr(expr, parent), econtext, &isnull);
	return !isnull;
}

/*
 * Sets the bins of a histogram or sketch. Returns false if they are not known before the first
 * row, if the bounds are invalid (the transition function then raises the error if there is a
 * row), or if core computes them by a formula that is not known here.
 */
static bool
histogram_bins(BinSpec *bins, FinalizeKind kind, Aggref *aggref, PlanState *parent,
			   ExprContext *econtext)
{
	Datum arg[3];
	int nfixed = kind == FINALIZE_HIST_THRESHOLDS ? 1 : 3;

	memset(bins, 0, sizeof(*bins));
	if (kind == FINALIZE_HLL)
	{
		bins->kind = BIN_HLL;
		bins->n = GPUAGG_HLL_REGISTERS;
		return true;
	}
	for (int i = 0; i < nfixed; i++)
		if (!evaluate_fixed_argument(aggref, i + 1, parent, econtext, &arg[i]))
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
	if (!histogram_uniform_valid(bins->lo, bins->hi, bins->n))
		return false;
	bins->formula = histogram_formula(bins->lo, bins->hi, bins->n);
	return bins->formula < GPUAGG_BIN_FORMULAS;
}

/*
 * Sets the bins of both dimensions, and the numbers of a grid's bins as bins of a slot. The planner
 * has checked the parameters, and has made the column with these numbers (grid_bin.c).
 */
static bool
grid_bins(AggOutput *out, BinSpec *bins, Aggref *aggref, int set, int column)
{
	int width;

	/* rows of a row set have no other columns than the arguments */
	if (set > 0 || column < 0 || !aggmap_grid_parameters(aggref, &out->bins, &out->y))
		return false;
	width = spec_bins_width(&out->bins) * spec_bins_width(&out->y);
	/* the product of these integers is exact: number i is in bin i */
	*bins = (BinSpec){.kind = BIN_UNIFORM,
					  .lo = 1,
					  .hi = width - 1,
					  .n = width - 2,
					  .formula = GPUAGG_BINS_PRODUCT};
	return true;
}

/*
 * Returns whether the last digits of a state depend on the order of rows, although the monoid
 * commutes.
 */
static bool
digits_depend_on_order(MonoidId monoid)
{
	return monoid == MONOID_SUM_F32 || monoid == MONOID_SUM_F64 || monoid == MONOID_ACCUM_F64 ||
		monoid == MONOID_REGR_F64 || monoid == MONOID_PRODUCT_F64 || monoid == MONOID_MOMENTS_F64;
}

/*
 * Adds the slots of a row of agg_list.h to *spec, and sets the members of *out that describe them.
 * Returns false if slots cannot compute the aggregate with these arguments.
 */
static bool
add_slots(AggOutput *out, AggSpec *spec, const AggRow *row, Aggref *aggref, const int *args,
		  int filter, int set, PlanState *parent, ExprContext *econtext)
{
	BinSpec bins;
	bool binned = finalize_has_bins(row->kind);
	bool hashed = row->kind == FINALIZE_HLL && aggmap_has_computed_input(aggref);
	ArgumentForm form = argument_form(row->kind);

	if (row->kind == FINALIZE_FALLBACK)
		return false;
	/* rows of a row set have no other columns than the arguments */
	if (hashed && (set > 0 || args[out->agg.nargs] < 0))
		return false;
	if (binned)
	{
		if (finalize_has_grid(row->kind) ?
				!grid_bins(out, &bins, aggref, set, set > 0 ? -1 : args[out->agg.nargs]) :
				!histogram_bins(&bins, row->kind, aggref, parent, econtext))
			return false;
		out->width = spec_bins_width(&bins);
		if (spec->nkeys > 0 && out->width > MAX_GROUPED_BINS && !spec->support.many_bins)
			return false;
	}
	if (row->kind == FINALIZE_MATRIX && !spec->support.matrices)
		return false;
	if (row->kind == FINALIZE_ARG || row->kind == FINALIZE_ASCENDING)
	{
		ListCell *lc;

		foreach (lc, aggref->args)
			if (!spec_type_has_codes(exprType((Node *) lfirst_node(TargetEntry, lc)->expr)))
				return false;
	}
	if (row->kind == FINALIZE_DEC || row->kind == FINALIZE_DEC_AVG)
	{
		Node *expr = (Node *) list_nth_node(TargetEntry, aggref->args, 0)->expr;
		ColumnSpec col = {.input = args[0]};
		int16 scale;

		argument_type(spec, expr, form, &col);
		/*
		 * with DISTINCT, the scale of the result would depend on which of several equal values is
		 * kept
		 */
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
		SlotSpec *slot;
		int col[2];
		int nslots;

		for (int j = 0; j < 2; j++)
		{
			col[j] = use->arg[j] < 0 ?
				-1 :
				add_argument(spec, aggref, args, hashed ? out->agg.nargs : use->arg[j], form);
			if (col[j] >= 0 && spec->cols[col[j]].type == COLUMN_DEC)
				out->decimals = true;
			if (row->kind == FINALIZE_ARG && use->arg[j] == 0)
				out->value = spec->cols[col[j]].type;
			if (row->kind == FINALIZE_ARG && use->arg[j] == 1)
				out->key = spec->cols[col[j]].type;
		}
		if ((aggref->aggorder != NIL || set > 0) && digits_depend_on_order(use->monoid))
			spec->ordered_floats = true;
		nslots = spec->nslots;
		out->slots[i] = spec_add_slot(spec, use->monoid, col[0], col[1], filter, set,
									  binned && i > 0 ? &bins : NULL);
		slot = &spec->slots[out->slots[i]];
		slot->mean_only = (slot->mean_only || spec->nslots > nslots) && out->float8_mean;
	}
	if (out->shows_scales)
		out->slots[SCALE_SLOT] =
			spec_add_slot(spec, MONOID_MAX_I32, add_argument(spec, aggref, args, 0, ARGUMENT_SCALE),
						  -1, filter, set, NULL);
	if (binned && !finalize_has_grid(row->kind))
		out->bins = bins;
	out->kind = row->kind;
	out->counted = row->slots[0].monoid == MONOID_COUNT;
	return true;
}

/*
 * Returns whether the engine can add a column of keys to the states of gpu_max_n and its like: keys
 * are integers, floats or decimals in the type's default order.
 */
static bool
can_be_keys(const AggSpec *spec, Aggref *aggref, const int *args, int i, int set)
{
	Node *expr = argument_expression(aggref, i);
	ColumnSpec col = {.input = args[i]};

	if (spec_type_has_codes(exprType(expr)))
		return true;
	argument_type(spec, expr, ARGUMENT_KEY, &col);
	return col.type == COLUMN_DEC && set == 0;
}

/*
 * For gpu_max_n and its like: removes n from the arguments if the engine can add columns to the
 * states, and n is a valid constant.
 */
static void
take_constant_n(const AggSpec *spec, FallbackAgg *fallback, Aggref *aggref, const int *args,
				PlanState *parent, ExprContext *econtext)
{
	int last = fallback->nargs - 1;
	Datum n;

	if (!fallback->builtin || top_n_form_of(&fallback->transfn) < 0 ||
		!can_be_keys(spec, aggref, args, last - 1, fallback->set) ||
		!evaluate_fixed_argument(aggref, last, parent, econtext, &n) || DatumGetInt32(n) < 1 ||
		DatumGetInt32(n) > TOP_MAX_N)
		return;
	fallback->top_n = DatumGetInt32(n);
	fallback->nargs = last;
}

/*
 * Sets the tally of an aggregate if the engine makes its state of counted values: if these have
 * 64-bit codes or are decimals, and what else the aggregate takes is a valid constant.
 */
static void
take_tally(const AggSpec *spec, FallbackAgg *fallback, Aggref *aggref, PlanState *parent,
		   ExprContext *econtext)
{
	const AggTally *tally = agg_tally(&fallback->transfn);
	Datum constant = (Datum) 0;

	if (!spec->support.tallies || tally == NULL || aggmap_tally(aggref) == NULL ||
		fallback->nargs != (tally->takes ? 2 : 1))
		return;
	if (tally->takes &&
		(!evaluate_fixed_argument(aggref, 1, parent, econtext, &constant) ||
		 !tally->takes(constant)))
		return;
	fallback->tally = tally;
	fallback->constant = constant;
	fallback->nargs = 1;
}

/* Returns the form in which a fallback aggregate reads argument i. */
static ArgumentForm
fallback_argument_form(const FallbackAgg *fallback, const Aggref *aggref, int i)
{
	if (fallback->top_n > 0 && i == fallback->nargs - 1)
		return ARGUMENT_KEY;
	return fallback->exact || fallback->tally ||
			(fallback->top_n > 0 && spec_type_has_codes(exprType(argument_expression(aggref, i)))) ?
		ARGUMENT_VALUE :
		ARGUMENT_DATUM;
}

/* Returns an AggState for the functions that a final function may call, such as AggGetAggref. */
static AggState *
make_aggstate(Aggref *aggref)
{
	AggState *aggstate = makeNode(AggState);

	aggstate->curaggcontext = aggstate->tmpcontext = makeNode(ExprContext);
	aggstate->curaggcontext->ecxt_per_query_memory = CurrentMemoryContext;
	aggstate->curpertrans = palloc0(sizeof(AggStatePerTransData));
	aggstate->curpertrans->aggref = aggref;
	return aggstate;
}

/* Returns whether this is min(), max() or count(*): all its slots are extremes or counts. */
static bool
is_extreme(const AggRow *row, const Aggref *aggref)
{
	bool extreme = aggref->args == NIL;

	for (int i = 0; i < MAX_SLOTS && row->slots[i].used; i++)
	{
		MonoidId monoid = row->slots[i].monoid;

		if (monoid >= MONOID_MIN_I32 && monoid <= MONOID_MAX_F64)
			extreme = true;
		else if (monoid != MONOID_COUNT)
			return false;
	}
	return extreme;
}

bool
aggmap_is_extreme(const Aggref *aggref)
{
	return is_extreme(aggmap_lookup(aggref->aggfnoid).row, aggref);
}

/*
 * Sets the members of *out for what the call returns: the result, a gpuagg_state, or Citus's text
 * or binary form.
 */
static void
init_form(AggOutput *out, const PartialCall *call)
{
	Oid fn;
	bool varlena;

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

/* Returns a copy of an aggregate whose argument has the type of another column; it is NULL. */
static Aggref *
with_argument_type(const Aggref *aggref, Form_pg_attribute column)
{
	Aggref *result = makeNode(Aggref);
	Const *argument = makeNullConst(column->atttypid, column->atttypmod, column->attcollation);

	*result = *aggref;
	result->args = list_make1(makeTargetEntry((Expr *) argument, 1, NULL, false));
	return result;
}

AggOutput *
aggmap_build(AggSpec *spec, const PartialCall *call, const int *args, const LinearArgument *linear,
			 Form_pg_attribute source, int filter, int set, PlanState *parent,
			 ExprContext *econtext)
{
	AggOutput *out = palloc0(sizeof(AggOutput));
	Aggref *aggref = call->aggref;
	FallbackAgg fallback;
	AggEntry entry = aggmap_lookup(aggref->aggfnoid);
	const AggRow *row = entry.row;
	bool by_slots;

	out->float8_mean = row->kind == FINALIZE_ACCUM && entry.finalfn == F_FLOAT8_AVG &&
		call->form == PARTIAL_RESULT;
	load_aggregate(out, call);
	init_form(out, call);
	out->linear = (LinearArgument){1, 0, 0};
	if (linear)
	{
		out->linear = *linear;
		aggref = with_argument_type(aggref, source);
	}
	fallback = out->agg;
	out->fallback = -1;
	out->aggstate = make_aggstate(aggref);
	fallback.filter = add_filter(spec, filter);
	fallback.set = set;
	if (aggmap_row_is_ordered_set(row, aggref))
	{
		out->kind = FINALIZE_ORDERED_SET;
		out->fallback =
			ordered_set_add(spec, aggref, entry.finalfn, args[0], fallback.filter, &fallback);
		spec->needs_rows = true;
		return out;
	}
	if (row->kind == FINALIZE_ORDERED_SET)
		row = &aggmap_fallback_row;
	by_slots = add_slots(out, spec, row, aggref, args, fallback.filter, set, parent, econtext);
	/* a transition function would need the argument itself */
	if (linear && !by_slots)
		elog(ERROR, "sum of a linear function has no slots");
	if (linear && row->kind == FINALIZE_DEC_AVG)
		out->scale = linear->scale;

	if (!by_slots || filter >= 0 || !is_extreme(row, aggref))
		spec->needs_rows = true;
	if (!by_slots || out->decimals)
	{
		fallback.unrepresentable_only = by_slots;
		if (!by_slots)
		{
			take_constant_n(spec, &fallback, aggref, args, parent, econtext);
			take_tally(spec, &fallback, aggref, parent, econtext);
			fallback.only_result = fallback.tally && call->form == PARTIAL_RESULT;
			fallback.ranked =
				set == 0 && fallback.builtin && fallback.initnull && aggmap_is_ranked(aggref);
		}
		Assert(!fallback.unrepresentable_only || fallback.nargs == 1);
		for (int i = 0; i < fallback.nargs; i++)
			fallback.argcol[i] = add_argument(
				spec, aggref, args, i,
				by_slots ? argument_form(row->kind) : fallback_argument_form(&fallback, aggref, i));
		out->fallback = spec_add_fallback(spec, &fallback);
	}
	final_values_init(out, call->form == PARTIAL_RESULT ? entry.finalfn : InvalidOid);
	return out;
}

bool
aggmap_shows_order(const AggOutput *out, const AggSpec *spec)
{
	const AggRow *row = aggmap_lookup(out->agg.aggfnoid).row;

	if (out->fallback >= 0 && !spec->fallbacks[out->fallback].unrepresentable_only)
		return true;
	for (int i = 0; i < MAX_SLOTS && row->slots[i].used; i++)
		if (digits_depend_on_order(row->slots[i].monoid))
			return true;
	return aggmap_row_needs_order(row);
}

/*
 * program_lookup.c
 *	  Expressions over one column as tables with a value for each number of its dictionary, or for
 *	  each key of a join whose inner rows have the column.
 *
 * A harmless expression over one column is computed here, once for each value of the column's
 * dictionary, and the GPU looks the result up.  The dictionary may have values of rows that the
 * query does not see, or that fail its conditions.  So an expression that might reveal them
 * (analysis/harmless.c) is not evaluated.  An expression that may fail is evaluated in a
 * subtransaction, and its result is undetermined if it fails.
 *
 * Messages of core itself may also depend on a value, such as the one about a time zone file that
 * cannot be read.  So no messages are sent to the client meanwhile.
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "columns/column_value.h"
#include "common/interruptible.h"
#include "expr/expr_internal.h"
#include "expr/program.h"

/* After this many failures the program is rejected. Each of them costs a subtransaction. */
#define MOST_FAILURES 200

/* ---- which expressions ---------------------------------------------------------- */

/*
 * Returns whether the expression cannot be evaluated from a row alone: it has a subplan, a domain,
 * the parameter of an initplan that has not run yet, or a CaseTestExpr whose CASE is outside.
 * context: ExprSet
 */
static bool
needs_more_than_row(Node *node, void *context)
{
	ExprSet *set = context;

	if (node == NULL)
		return false;
	check_stack_depth();
	switch (nodeTag(node))
	{
		case T_Param:
			return ((Param *) node)->paramkind == PARAM_EXEC &&
				set->parent->ps_ExprContext->ecxt_param_exec_vals[((Param *) node)->paramid]
					.execPlan != NULL;
		case T_CaseExpr:
		{
			CaseExpr *expr = (CaseExpr *) node;
			ListCell *lc;

			if (expr->arg == NULL)
				break;
			/* the CaseTestExprs of its conditions refer to its own argument */
			foreach (lc, expr->args)
				if (needs_more_than_row((Node *) lfirst_node(CaseWhen, lc)->result, context))
					return true;
			return needs_more_than_row((Node *) expr->arg, context) ||
				needs_more_than_row((Node *) expr->defresult, context);
		}
		case T_ArrayCoerceExpr:
			/* and these refer to its own elements */
			return needs_more_than_row((Node *) ((ArrayCoerceExpr *) node)->arg, context);
		case T_CaseTestExpr:
		case T_CoerceToDomain:
		case T_CoerceToDomainValue:
		case T_SubPlan:
		case T_AlternativeSubPlan:
			return true;
		default:
			break;
	}
	return expression_tree_walker(node, needs_more_than_row, context);
}

/*
 * Returns the attribute number of the only column that the expression reads; 0: it reads none,
 * several, a system column or the whole row.
 */
static AttrNumber
find_single_column(const ExprProgram *p, Expr *expr)
{
	Bitmapset *attnos = NULL;
	int attno;

	if (p->joins)
	{
		pull_varattnos((Node *) expr, p->joins->inner_varno, &attnos);
		pull_varattnos((Node *) expr, p->joins->table_varno, &attnos);
	}
	else
		pull_varattnos((Node *) expr, ((Scan *) p->set->parent->plan)->scanrelid, &attnos);
	if (!bms_get_singleton_member(attnos, &attno))
		return 0;
	attno += FirstLowInvalidHeapAttributeNumber;
	return attno > 0 ? attno : 0;
}

/*
 * Returns whether the column cache stores the column as codes of a dictionary: by-reference types
 * other than numeric and cstring.
 */
static bool
has_dictionary(Form_pg_attribute att)
{
	return !att->attbyval && att->attlen != -2 && getBaseType(att->atttypid) != NUMERICOID;
}

/*
 * Returns the index in p->stored of a column in coded form, which is added if it is new; -1: there
 * are too many.
 */
static int
lookup_or_add_coded(ExprProgram *p, AttrNumber attno)
{
	for (int s = 0; s < p->nstored; s++)
		if (p->stored[s].attno == attno && p->stored[s].coded)
			return s;
	if (p->nstored == WIRE_MAX_STORED_COLS)
		return -1;
	p->stored[p->nstored] = (ExprStored){attno, COLUMN_I32, 0, .coded = true};
	return p->nstored++;
}

/*
 * Returns the operand with the values of a lookup, which is added if it is new, for operand `of`.
 */
static uint16
emit_lookup(ExprProgram *p, ExprLookup lookup, uint16 of)
{
	int t = 0;

	while (t < p->nlookups &&
		   (p->lookups[t].attno != lookup.attno || p->lookups[t].join != lookup.join ||
			p->lookups[t].presence != lookup.presence || p->lookups[t].type != lookup.type ||
			p->lookups[t].nulls_stay != lookup.nulls_stay ||
			p->lookups[t].ranked != lookup.ranked || p->lookups[t].stored != lookup.stored ||
			p->lookups[t].scale != lookup.scale || p->lookups[t].column != lookup.column ||
			p->lookups[t].slots != lookup.slots || !equal(p->lookups[t].expr, lookup.expr)))
		t++;
	if (t == WIRE_MAX_TABLES)
		return expr_program_reject(
			p,
			lookup.join < 0 ? "the query has more expressions over texts than the GPU supports" :
							  "the query reads more columns of joins than the GPU supports");
	if (t == p->nlookups)
		p->lookups[p->nlookups++] = lookup;
	return expr_program_emit(p, lookup.slots ? VECTOR_FIND : VECTOR_LOOKUP, t, of, 0, 0);
}

/* Does the same for a lookup of a join. */
static uint16
emit_join(ExprProgram *p, ExprLookup lookup)
{
	uint16 key = p->joins->keys[lookup.join];

	return key == VECTOR_NONE ?
		expr_program_reject(p, "a column of a join is needed before the join") :
		emit_lookup(p, lookup, key);
}

bool
expr_program_is_inner(const ExprProgram *p, AttrNumber attno)
{
	return p->joins && attno > p->joins->natts;
}

uint16
expr_program_inner(ExprProgram *p, AttrNumber attno, ColumnType type, int16 scale, bool presence)
{
	if (p->unsupported_reason)
		return VECTOR_NONE;
	return emit_join(p,
					 (ExprLookup){.attno = attno,
								  .stored = -1,
								  .join = p->joins->join[attno - p->joins->natts - 1],
								  .type = type,
								  .scale = scale,
								  .presence = presence,
								  .column = -1});
}

uint16
expr_program_found(ExprProgram *p, int j)
{
	if (p->unsupported_reason)
		return VECTOR_NONE;
	return emit_join(
		p,
		(ExprLookup){.stored = -1, .join = j, .type = COLUMN_I8, .presence = true, .column = -1});
}

uint16
expr_program_find(ExprProgram *p, int j, uint16 number)
{
	return p->unsupported_reason ?
		VECTOR_NONE :
		emit_lookup(
			p,
			(ExprLookup){.stored = -1, .join = j, .type = COLUMN_I64, .slots = true, .column = -1},
			number);
}

uint16
expr_program_codes(ExprProgram *p, const Expr *expr, int *stored)
{
	AttrNumber attno;

	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	if (p->unsupported_reason || !IsA(expr, Var) ||
		(attno = find_single_column(p, unconstify(Expr *, expr))) == 0 ||
		expr_program_is_inner(p, attno) || TupleDescAttr(p->set->desc, attno - 1)->attisdropped)
		return VECTOR_NONE;
	*stored = lookup_or_add_coded(p, attno);
	if (*stored < 0)
		return expr_program_reject(p, "the query reads more columns than the GPU supports");
	return expr_program_emit(p, VECTOR_LOAD, WIRE_I32, *stored, 0, 0);
}

uint16
expr_program_ranks(ExprProgram *p, const Expr *expr, Oid collation, int *stored)
{
	Oid type = exprType((const Node *) expr);
	uint16 codes =
		type == TEXTOID || type == VARCHAROID ? expr_program_codes(p, expr, stored) : VECTOR_NONE;
	Form_pg_attribute att;

	if (codes == VECTOR_NONE)
		return VECTOR_NONE;
	att = TupleDescAttr(p->set->desc, p->stored[*stored].attno - 1);
	if (att->atttypid != TEXTOID && att->atttypid != VARCHAROID)
		return VECTOR_NONE;
	return emit_lookup(p,
					   (ExprLookup){.attno = att->attnum,
									.stored = *stored,
									.join = -1,
									.type = COLUMN_I32,
									.ranked = collation,
									.column = -1},
					   codes);
}

uint16
expr_program_lookup(ExprProgram *p, Expr *expr, ColumnType type, int16 scale, int column,
					bool nulls_stay)
{
	AttrNumber attno = find_single_column(p, expr);
	Form_pg_attribute att = attno ? TupleDescAttr(p->set->desc, attno - 1) : NULL;
	bool inner = attno && expr_program_is_inner(p, attno);
	ExprLookup lookup = {.expr = expr,
						 .attno = attno,
						 .stored = -1,
						 .join = -1,
						 .type = type,
						 .scale = scale,
						 .nulls_stay = nulls_stay,
						 .column = column};

	if (p->unsupported_reason || att == NULL || att->attisdropped ||
		(column < 0 && !inner && !has_dictionary(att)) ||
		needs_more_than_row((Node *) expr, p->set) || contain_volatile_functions((Node *) expr) ||
		(IsInParallelMode() &&
		 !expr_cannot_fail((Node *) expr, p->set->parent->state->es_param_list_info)))
		return VECTOR_NONE;
	if (!expr_is_harmless((Node *) expr))
	{
		p->harm = "a function might reveal values that are hidden from the query";
		return VECTOR_NONE;
	}
	if (inner)
	{
		lookup.join = p->joins->join[attno - p->joins->natts - 1];
		return emit_join(p, lookup);
	}
	lookup.stored = lookup_or_add_coded(p, attno);
	if (lookup.stored < 0)
		return expr_program_reject(p, "the query reads more columns than the GPU supports");
	return emit_lookup(p, lookup, expr_program_emit(p, VECTOR_LOAD, WIRE_I32, lookup.stored, 0, 0));
}

/* ---- values ------------------------------------------------------------------------- */

/* An evaluation of a lookup's expression for a dictionary's entries, which come in portions. */
struct ExprEvaluation
{
	ExprProgram *program;
	ExprLookup *lookup;
	ExprState *state;
	ExprContext *econtext;
	TupleTableSlot *slot;
	int attribute;
	int16 typlen; /* length of the results' type */
	bool typbyval;
	bool can_fail;
	int failures;

	/* the current portion */
	MemoryContext cxt;    /* for by-reference results */
	const Datum *entries; /* NULL: the entry for NULL */
	const bool *nulls;    /* entries without a value; NULL: there are none */
	uint32 at, end;       /* entry to be evaluated next; number of entries */
	Datum *values;
	uint8 *states;
};

/*
 * Evaluates the expression for entry e->at, sets the value and state of this entry, and advances
 * e->at.  Raises the errors of the expression.
 */
static void
evaluate_next(ExprEvaluation *e)
{
	bool isnull;
	Datum value;
	MemoryContext old;

	CHECK_FOR_INTERRUPTS();
	if (e->nulls && e->nulls[e->at])
	{
		e->values[e->at] = (Datum) 0;
		e->states[e->at++] = VECTOR_NULL;
		return;
	}
	ResetExprContext(e->econtext);
	e->slot->tts_isnull[e->attribute] = e->entries == NULL;
	e->slot->tts_values[e->attribute] = e->entries == NULL ? (Datum) 0 : e->entries[e->at];
	value = ExecEvalExprSwitchContext(e->state, e->econtext, &isnull);
	if (!isnull && !e->typbyval)
	{
		old = MemoryContextSwitchTo(e->cxt);
		value = datumCopy(value, false, e->typlen);
		MemoryContextSwitchTo(old);
	}
	e->values[e->at] = isnull ? (Datum) 0 : value;
	e->states[e->at] = isnull ? VECTOR_NULL : VECTOR_VALUE;
	e->at++;
}

/*
 * Evaluates the remaining entries in a subtransaction.  If one fails, it is undetermined.  Returns
 * whether all entries are done.
 */
static bool
evaluate_guarded(ExprEvaluation *e)
{
	MemoryContext cxt = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool failed = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(cxt);
	PG_TRY();
	{
		while (e->at < e->end)
			evaluate_next(e);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(cxt);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(cxt);
		CurrentResourceOwner = owner;
		/* whoever catches this one expects his own subtransaction to be the current one */
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED ||
			error->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN ||
			error->sqlerrcode == ERRCODE_CRASH_SHUTDOWN)
			ReThrowError(error);
		FreeErrorData(error);
		failed = true;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(cxt);
	CurrentResourceOwner = owner;
	if (!failed)
		return true;
	e->values[e->at] = (Datum) 0;
	e->states[e->at++] = VECTOR_UNDETERMINED;
	return e->at == e->end;
}

/*
 * Suppresses messages to the client, except errors.  Returns a nesting level of settings;
 * AtEOXact_GUC() with it ends this.
 */
static int
silence_client(void)
{
	int level = NewGUCNestLevel();

	(void) set_config_option("client_min_messages", "error", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	return level;
}

void
expr_lookup_allocate(ExprLookup *lookup, uint32 n)
{
	int flags = MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO;

	lookup->n = n;
	lookup->values = palloc_extended(((Size) n + 1) * sizeof(int64), flags);
	lookup->states = palloc_extended((Size) n + 1, flags);
}

ExprEvaluation *
expr_evaluation_begin(ExprProgram *p, ExprLookup *lookup, uint32 n)
{
	EState *estate = p->set->parent->state;
	ExprEvaluation *e = palloc0(sizeof(ExprEvaluation));

	expr_lookup_allocate(lookup, n);
	e->program = p;
	e->lookup = lookup;
	get_typlenbyval(exprType((Node *) lookup->expr), &e->typlen, &e->typbyval);
	e->attribute = lookup->attno - 1;
	e->slot = MakeSingleTupleTableSlot(p->set->desc, &TTSOpsVirtual);
	memset(e->slot->tts_isnull, true, p->set->desc->natts * sizeof(bool));
	ExecStoreVirtualTuple(e->slot);
	e->econtext = CreateExprContext(estate);
	e->econtext->ecxt_scantuple = e->slot;
	e->state = ExecInitExpr(lookup->expr, NULL);
	e->can_fail = !expr_cannot_fail((Node *) lookup->expr, estate->es_param_list_info);
	return e;
}

/* Sets the values of entries from `from` on to the register forms of the current portion's. */
static void
convert_portion(ExprEvaluation *e, uint32 from)
{
	ExprLookup *lookup = e->lookup;

	INTERRUPTIBLE_FOR (i, 0, (int64) e->end)
		if (e->states[i] == VECTOR_VALUE &&
			!expr_register_bits(lookup->type, lookup->scale, e->values[i],
								&lookup->values[from + i]))
			e->states[i] = VECTOR_UNDETERMINED;
}

void
expr_evaluation_add(ExprEvaluation *e, uint32 from, const Datum *entries, const bool *nulls,
					uint32 n, Datum *values)
{
	int level = silence_client();

	e->cxt = CurrentMemoryContext;
	e->entries = entries;
	e->nulls = nulls;
	e->at = 0;
	e->end = n;
	e->values = values ? values : palloc_extended(n * sizeof(Datum), MCXT_ALLOC_HUGE);
	e->states = e->lookup->states + from;
	if (!e->can_fail)
		while (e->at < n)
			evaluate_next(e);
	else
		while (n > 0 && e->program->unsupported_reason == NULL && !evaluate_guarded(e))
			if (++e->failures == MOST_FAILURES)
				expr_program_reject(e->program,
									"an expression over texts fails for too many values");
	AtEOXact_GUC(true, level);
	if (values)
		return;
	if (e->program->unsupported_reason == NULL)
		convert_portion(e, from);
	pfree(e->values);
}

void
expr_evaluation_end(ExprEvaluation *e)
{
	FreeExprContext(e->econtext, true);
	ExecDropSingleTupleTableSlot(e->slot);
	pfree(e);
}

Datum *
expr_lookup_evaluate(ExprProgram *p, ExprLookup *lookup, const Datum *entries, const bool *nulls,
					 uint32 n)
{
	ExprEvaluation *e = expr_evaluation_begin(p, lookup, n);
	Datum *values = palloc_extended(((Size) n + 1) * sizeof(Datum), MCXT_ALLOC_HUGE);

	expr_evaluation_add(e, 0, entries, nulls, n, values);
	expr_evaluation_add(e, n, NULL, NULL, 1, values + n);
	expr_evaluation_end(e);
	return values;
}

bool
expr_register_bits(ColumnType type, int16 scale, Datum value, int64 *bits)
{
	union
	{
		int8 i8;
		int16 i16;
		int32 i32;
		int64 i64;
		uint32 bits32;
		float f32;
		double f64;
		gpuagg_i128 dec;
	} u = {0};

	if (type == COLUMN_DATUM || !column_store(type, scale, &u, 0, value))
		return false;
	switch (type)
	{
		case COLUMN_I8:
			*bits = u.i8;
			return true;
		case COLUMN_I16:
			*bits = u.i16;
			return true;
		case COLUMN_I32:
		case COLUMN_U32:
			*bits = u.i32;
			return true;
		case COLUMN_F32:
			*bits = u.bits32;
			return isfinite(u.f32);
		case COLUMN_F64:
			*bits = u.i64;
			return isfinite(u.f64);
		case COLUMN_DEC:
			*bits = (int64) u.dec;
			return u.dec == (int64) u.dec;
		default:
			*bits = u.i64;
			return true;
	}
}

void
expr_lookup_convert(ExprLookup *lookup, const Datum *values)
{
	INTERRUPTIBLE_FOR (i, 0, (int64) lookup->n + 1)
		if (lookup->states[i] == VECTOR_VALUE &&
			!expr_register_bits(lookup->type, lookup->scale, values[i], &lookup->values[i]))
			lookup->states[i] = VECTOR_UNDETERMINED;
	expr_lookup_finish(lookup);
}

void
expr_lookup_fill(ExprProgram *p, ExprLookup *lookup, const Datum *entries, const bool *nulls,
				 uint32 n)
{
	Datum *values = expr_lookup_evaluate(p, lookup, entries, nulls, n);

	if (p->unsupported_reason == NULL)
		expr_lookup_convert(lookup, values);
	pfree(values);
}

void
expr_lookup_finish(ExprLookup *lookup)
{
	lookup->interval = (ExprInterval){1, 0};
	lookup->nulls = lookup->undetermined = false;
	lookup->null = lookup->states[lookup->n];
	for (uint32 i = 0; i <= lookup->n; i++)
	{
		int64 value = lookup->values[i];

		if (lookup->states[i] == VECTOR_NULL && i < lookup->n)
			lookup->nulls = true;
		lookup->undetermined |= lookup->states[i] == VECTOR_UNDETERMINED;
		if (lookup->states[i] != VECTOR_VALUE)
			continue;
		if (lookup->interval.min > lookup->interval.max)
			lookup->interval = (ExprInterval){value, value};
		lookup->interval.min = Min(lookup->interval.min, value);
		lookup->interval.max = Max(lookup->interval.max, value);
	}
}

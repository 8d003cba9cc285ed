/*
 * build.c
 *	  Makes the vectors and operations of an expression set.
 *
 * Everything is allocated in the current memory context, which belongs to the root that is being
 * compiled.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "expr/expr_internal.h"

void *
expr_alloc(size_t size)
{
	return (void *) CACHELINEALIGN(palloc0(size + PG_CACHE_LINE_SIZE));
}

Vec *
expr_new_vec(ExprSet *set, ColumnType type, int16 scale, Oid typid, Expr *expr, int stage)
{
	Vec *vec = palloc0(sizeof(Vec));

	vec->type = type;
	vec->scale = vec->least_scale = scale;
	vec->typid = typid;
	vec->expr = expr;
	vec->stage = vec->last_stage = stage;
	vec->mask = set->mask;
	vec->values = vec->memory = expr_alloc(EXPR_ROWS * column_width(type));
	vec->state = palloc0(EXPR_ROWS);
	vec->next = set->vecs;
	set->vecs = vec;
	vec->next_of_stage = set->stages[stage].vecs;
	set->stages[stage].vecs = vec;
	set->bytes += EXPR_ROWS * (column_width(type) + 1);
	if (expr)
		expr_share(set, vec);
	return vec;
}

void
expr_use(Vec *vec, int stage)
{
	if (vec && vec->last_stage < stage)
		vec->last_stage = stage;
	if (vec && vec->scales)
		expr_use(vec->scales, stage);
}

Vec *
expr_emit(ExprSet *set, int stage, void (*run)(const ExprOp *, int), Vec *r, Vec *a, Vec *b, Vec *c,
		  void *data)
{
	ExprOp *op = palloc0(sizeof(ExprOp));

	op->run = run;
	op->r = r;
	op->a = a;
	op->b = b;
	op->c = c;
	op->data = data;
	op->set = set;
	r->masked |= (a && a->masked) || (b && b->masked) || (c && c->masked);
	expr_use(a, stage);
	expr_use(b, stage);
	expr_use(c, stage);
	*set->stages[stage].tail = op;
	set->stages[stage].tail = &op->next;
	return r;
}

ExprOp *
expr_last_op(ExprSet *set, int stage)
{
	return (ExprOp *) ((char *) set->stages[stage].tail - offsetof(ExprOp, next));
}

Vec *
expr_mask_vec(ExprSet *set, ExprMask *mask, int stage)
{
	check_stack_depth();
	if (mask == NULL || mask->vec)
		return mask ? mask->vec : NULL;
	mask->vec = expr_new_vec(set, COLUMN_I8, 0, BOOLOID, NULL, stage);
	expr_emit(set, stage, expr_run_mask, mask->vec,
			  expr_mask_vec(set, unconstify(ExprMask *, mask->outer), stage),
			  unconstify(Vec *, mask->cond), NULL, mask);
	return mask->vec;
}

Vec *
expr_emit_bool(ExprSet *set, int stage, void (*run)(const ExprOp *, int), Expr *expr, Vec *a,
			   Vec *b, Vec *c, void *data)
{
	return expr_emit(set, stage, run, expr_new_vec(set, COLUMN_I8, 0, BOOLOID, expr, stage), a, b,
					 c, data);
}

Vec *
expr_column(ExprSet *set, AttrNumber attno, ColumnType type, int16 scale, int stage)
{
	Form_pg_attribute att = TupleDescAttr(set->desc, attno - 1);
	Vec *vec = expr_find_column(set, attno, type, scale);

	if (vec == NULL)
	{
		vec = expr_new_vec(set, type, scale, att->atttypid, NULL, stage);
		vec->attno = attno;
		/* columns do not count: their number is limited, and every root needs its own */
		set->bytes -= EXPR_ROWS * (column_width(type) + 1);
		expr_share(set, vec);
	}
	expr_use(vec, stage);
	return vec;
}

Vec *
expr_compile_as(ExprSet *set, Expr *expr, ColumnType type, int stage)
{
	Vec *vec = expr_compile(set, expr, stage);

	return vec && vec->type == type ? vec : NULL;
}

bool
expr_is_text_equality(Oid funcid)
{
	return funcid == F_TEXTEQ || funcid == F_TEXTNE || funcid == F_BPCHAREQ || funcid == F_BPCHARNE;
}

/*
 * expr_match.c
 *	  Vector forms of what is compared with constants: IN lists, LIKE patterns.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "expr.h"

bool
expr_is_like(Oid funcid)
{
	return funcid == F_TEXTLIKE || funcid == F_TEXTNLIKE || funcid == F_BPCHARLIKE ||
		funcid == F_BPCHARNLIKE;
}

/* LIKE and NOT LIKE of a literal, or of what begins with one; expr_run_core does the other patterns. */
Vec *
expr_compile_like(ExprSet *set, Oid funcid, Oid collation, Expr *expr, List *args, int stage)
{
	bool		negate = funcid == F_TEXTNLIKE || funcid == F_BPCHARNLIKE;
	ExprPattern *pattern;
	Const	   *right;
	Vec		   *left;
	int			literal;

	if (!expr_is_like(funcid))
		return NULL;
	right = lsecond(args);
	if (!IsA(right, Const) || right->constisnull || !expr_deterministic(collation))
		return NULL;
	pattern = palloc(sizeof(ExprPattern));
	pattern->negate = negate;
	pattern->bytes = text_to_cstring(DatumGetTextPP(right->constvalue));
	literal = strcspn(pattern->bytes, "%_\\");
	pattern->length = literal;
	pattern->open = strcmp(pattern->bytes + literal, "%") == 0;
	if (!pattern->open && pattern->bytes[literal] != '\0')
		return NULL;
	left = expr_compile(set, linitial(args), stage);
	if (left == NULL || left->type != COLUMN_DATUM)
		return NULL;
	return expr_emit_bool(set, stage, expr_run_like, expr, left, NULL, NULL, pattern);
}

/* The elements of a constant list. */
typedef struct Elements
{
	Oid			type;
	int16		len;
	bool		byval;
	int			n;
	Datum	   *values;
	bool	   *nulls;
} Elements;

/* False if the list is no constant, or empty. */
static bool
elements_of(ScalarArrayOpExpr *saop, Elements *e)
{
	Const	   *array = lsecond(saop->args);
	char		align;

	if (!IsA(array, Const) || array->constisnull)
		return false;
	e->type = ARR_ELEMTYPE(DatumGetArrayTypeP(array->constvalue));
	get_typlenbyvalalign(e->type, &e->len, &e->byval, &align);
	deconstruct_array(DatumGetArrayTypeP(array->constvalue), e->type, e->len, e->byval, align,
					  &e->values, &e->nulls, &e->n);
	return e->n > 0;
}

/* Longer lists are left to core, which hashes them. */
#define MOST_COMPARISONS 16

/* left IN (constants) of other types: as the comparisons that it stands for. */
static Vec *
compile_comparisons(ExprSet *set, ScalarArrayOpExpr *saop, int stage)
{
	List	   *comparisons = NIL;
	Elements	e;

	if (!elements_of(saop, &e) || e.n < 2 || e.n > MOST_COMPARISONS)
		return NULL;
	for (int i = 0; i < e.n; i++)
	{
		OpExpr	   *compare = makeNode(OpExpr);

		compare->opno = saop->opno;
		compare->opfuncid = saop->opfuncid;
		compare->opresulttype = BOOLOID;
		compare->inputcollid = saop->inputcollid;
		compare->args = list_make2(linitial(saop->args),
								   makeConst(e.type, -1, ((Const *) lsecond(saop->args))->constcollid,
											 e.len, e.nulls[i] ? (Datum) 0 : e.values[i], e.nulls[i],
											 e.byval));
		compare->location = -1;
		comparisons = lappend(comparisons, compare);
	}
	return expr_compile(set, makeBoolExpr(saop->useOr ? OR_EXPR : AND_EXPR, comparisons, -1), stage);
}

/* left IN (constants), left NOT IN (constants) */
Vec *
expr_compile_in(ExprSet *set, ScalarArrayOpExpr *saop, int stage)
{
	Oid			func = saop->opfuncid;
	Elements	e;
	Vec		   *left;
	ExprInList *list;
	bool		text = false;

	switch (func)
	{
		case F_INT2EQ: case F_INT4EQ: case F_INT8EQ: case F_INT24EQ: case F_INT42EQ:
		case F_INT28EQ: case F_INT82EQ: case F_INT48EQ: case F_INT84EQ:
		case F_OIDEQ: case F_DATE_EQ: case F_TIMESTAMP_EQ: case F_TIMESTAMPTZ_EQ:
		case F_INT2NE: case F_INT4NE: case F_INT8NE: case F_INT24NE: case F_INT42NE:
		case F_INT28NE: case F_INT82NE: case F_INT48NE: case F_INT84NE:
		case F_OIDNE: case F_DATE_NE: case F_TIMESTAMP_NE: case F_TIMESTAMPTZ_NE:
			break;
		case F_TEXTEQ: case F_TEXTNE:
			text = true;
			break;
		default:
			return compile_comparisons(set, saop, stage);
	}
	if ((text && !expr_deterministic(saop->inputcollid)) || !elements_of(saop, &e))
		return NULL;
	left = expr_compile(set, linitial(saop->args), stage);
	if (left == NULL || (left->type == COLUMN_DATUM) != text)
		return NULL;
	list = palloc0(sizeof(ExprInList));
	list->negate = !saop->useOr;
	list->ints = palloc(e.n * sizeof(int64));
	list->texts = palloc(e.n * sizeof(Datum));
	for (int i = 0; i < e.n; i++)
	{
		int64		v = 0;
		int			at = list->count;

		if (e.nulls[i])
		{
			list->has_null = true;
			continue;
		}
		list->count++;
		if (text)
		{
			list->texts[at] = PointerGetDatum(PG_DETOAST_DATUM_COPY(e.values[i]));
			continue;
		}
		switch (e.len)
		{
			case 2:
				v = DatumGetInt16(e.values[i]);
				break;
			case 4:
				v = e.type == OIDOID ? (int64) DatumGetObjectId(e.values[i]) :
					DatumGetInt32(e.values[i]);
				break;
			case 8:
				v = DatumGetInt64(e.values[i]);
				break;
		}
		for (; at > 0 && list->ints[at - 1] > v; at--)
			list->ints[at] = list->ints[at - 1];
		list->ints[at] = v;
	}
	return expr_emit_bool(set, stage, expr_run_in, (Expr *) saop, left, NULL, NULL, list);
}

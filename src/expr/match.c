/*
 * match.c
 *	  Vector operations for comparisons with lists of constants.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "expr/expr_internal.h"
#include "expr/program.h"
#include "spec.h"

/* The elements of a constant array. */
typedef struct Elements
{
	Oid type;
	int16 len;
	bool byval;
	int n;
	Datum *values;
	bool *nulls;
} Elements;

/* Longer lists take the scalar fallback: core hashes long ones. */
#define MOST_COMPARISONS 16
#define MOST_ELEMENTS (1 << 20)

/*
 * Sets *e to the elements of the array that saop compares with.  Returns false if it is not a
 * constant, is NULL or empty, or has more than `most` elements.
 */
static bool
get_elements(ScalarArrayOpExpr *saop, int most, Elements *e)
{
	Const *con = lsecond(saop->args);
	ArrayType *array;
	char align;

	if (!IsA(con, Const) || con->constisnull)
		return false;
	array = DatumGetArrayTypeP(con->constvalue);
	e->n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	if (e->n == 0 || e->n > most)
		return false;
	e->type = ARR_ELEMTYPE(array);
	get_typlenbyvalalign(e->type, &e->len, &e->byval, &align);
	deconstruct_array(array, e->type, e->len, e->byval, align, &e->values, &e->nulls, &e->n);
	return true;
}

/*
 * Compiles x op ANY (list) as x op e1 OR x op e2 and so on; ALL as AND.  Used for operators and
 * types that run_in() does not compare.  Returns NULL if the list is not a short constant.
 */
static Vec *
compile_comparisons(ExprSet *set, ScalarArrayOpExpr *saop, int stage)
{
	List *comparisons = NIL;
	Elements e;

	/* pg_stat_user_functions would count calls of a user's function, but not those of a list */
	if (saop->opfuncid >= FirstNormalObjectId || !get_elements(saop, MOST_COMPARISONS, &e) ||
		e.n < 2)
		return NULL;
	for (int i = 0; i < e.n; i++)
	{
		OpExpr *compare = makeNode(OpExpr);

		compare->opno = saop->opno;
		compare->opfuncid = saop->opfuncid;
		compare->opresulttype = BOOLOID;
		compare->inputcollid = saop->inputcollid;
		compare->args =
			list_make2(linitial(saop->args),
					   makeConst(e.type, -1, ((Const *) lsecond(saop->args))->constcollid, e.len,
								 e.nulls[i] ? (Datum) 0 : e.values[i], e.nulls[i], e.byval));
		compare->location = -1;
		comparisons = lappend(comparisons, compare);
	}
	return expr_compile(set, makeBoolExpr(saop->useOr ? OR_EXPR : AND_EXPR, comparisons, -1),
						stage);
}

/* ---- lists of integers or texts --------------------------------------------- */

/* Hashes the bytes of a text; of a bpchar without the blanks at its end. */
static uint32
hash_text(Datum text, bool blanks)
{
	return hash_bytes((const unsigned char *) VARDATA_ANY(DatumGetPointer(text)),
					  expr_text_length(text, blanks));
}

/* An entry of the hash table of a list of texts. */
typedef struct ListText
{
	Datum text;
	uint32 hash;
	char status; /* for simplehash.h */
} ListText;

/* The elements that are not NULL, in the form in which the operator compares them. */
typedef struct InList
{
	bool negate; /* NOT IN */
	bool has_null;
	bool blanks; /* blanks at the end of a text count */
	int count;
	int64 *ints; /* ascending */
	Datum *texts;
	struct texts_hash *hashed; /* replaces texts if there are many */
} InList;

/* private_data: InList */
#define SH_PREFIX texts
#define SH_ELEMENT_TYPE ListText
#define SH_KEY_TYPE Datum
#define SH_KEY text
#define SH_HASH_KEY(table, key) hash_text(key, ((InList *) (table)->private_data)->blanks)
#define SH_EQUAL(table, a, b) expr_text_equal(a, b, ((InList *) (table)->private_data)->blanks)
#define SH_STORE_HASH
#define SH_GET_HASH(table, entry) ((entry)->hash)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Fewer texts are compared one by one. */
#define LEAST_HASHED 12
/* So are up to this many integers, by loops that the compiler vectorizes. */
#define MOST_COMPARED 8

/* Returns whether v is in a list of integers, by binary search. */
static inline bool
in_ints(const InList *list, int64 v)
{
	int lo = 0, hi = list->count;

	while (lo < hi)
	{
		int mid = lo + (hi - lo) / 2;

		if (list->ints[mid] < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < list->count && list->ints[lo] == v;
}

/* Returns whether an inline text is in a list of texts. */
static inline bool
in_texts(const InList *list, Datum text)
{
	if (list->hashed)
		return texts_lookup(list->hashed, text) != NULL;
	for (int k = 0; k < list->count; k++)
		if (expr_text_equal(text, list->texts[k], list->blanks))
			return true;
	return false;
}

/*
 * r = a IN (list) or a NOT IN (list); data: InList.  With a NULL in the list, a value that is not
 * in it gives NULL.
 */
static void
run_in(const ExprOp *op, int n)
{
	const InList *list = op->data;
	int8 *r = op->r->values;
	uint8 fallback[EXPR_ROWS];
	bool any = false;

#define COMPARE(value_t) \
	do \
	{ \
		const value_t *values = op->a->values; \
		memset(r, 0, n); \
		for (int k = 0; k < list->count; k++) \
		{ \
			value_t element = (value_t) list->ints[k]; \
			if ((int64) element != list->ints[k]) \
				continue; \
			for (int i = 0; i < n; i++) \
				r[i] |= values[i] == element; \
		} \
		for (int i = 0; i < n && list->negate; i++) \
			r[i] ^= 1; \
	} while (0)
#define FIND(condition) \
	for (int i = 0; i < n; i++) \
		if (expr_state(op->a, i) == VEC_VALUE) \
	r[i] = (condition) != list->negate
	switch (op->a->type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		if (list->count <= MOST_COMPARED) \
			COMPARE(value_t); \
		else \
			FIND(in_ints(list, ((const value_t *) op->a->values)[i])); \
		break;
		COLUMN_INTEGERS(X)
#undef X
		default:
			memset(fallback, 0, n);
			for (int i = 0; i < n; i++)
			{
				Datum text = ((Datum *) op->a->values)[i];

				if (expr_state(op->a, i) != VEC_VALUE)
					continue;
				if (expr_text_inline(text))
					r[i] = in_texts(list, text) != list->negate;
				else
					fallback[i] = any = true;
			}
			break;
	}
#undef FIND
#undef COMPARE
	expr_strict(op, n, any ? fallback : NULL);
	if (list->has_null)
	{
		if (op->r->all_values)
			memset(op->r->state, VEC_VALUE, n);
		op->r->all_values = false;
		for (int i = 0; i < n; i++)
			if (op->r->state[i] == VEC_VALUE && r[i] == list->negate)
				op->r->state[i] = VEC_NULL;
	}
}

/* Comparator of qsort_interruptible */
static int
compare_int64(const void *a, const void *b, void *arg)
{
	int64 x = *(const int64 *) a;
	int64 y = *(const int64 *) b;

	return (x > y) - (x < y);
}

/* Returns the value of a Datum of an integer column type. */
static int64
integer_of(ColumnType type, Datum value)
{
	switch (type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		return from_datum(value);
		COLUMN_INTEGERS(X)
#undef X
		default:
			elog(ERROR, "column type %d is no integer", (int) type);
	}
}

/* Sets list->ints to the elements that are not NULL, in ascending order. */
static void
collect_ints(InList *list, const Elements *e, ColumnType type)
{
	list->ints = palloc(e->n * sizeof(int64));
	for (int i = 0; i < e->n; i++)
	{
		if (e->nulls[i])
			continue;
		list->ints[list->count++] = integer_of(type, e->values[i]);
	}
	qsort_interruptible(list->ints, list->count, sizeof(int64), compare_int64, NULL);
}

/*
 * Sets list->texts, or list->hashed if there are many, to the elements that are not NULL,
 * detoasted.
 */
static void
collect_texts(InList *list, const Elements *e)
{
	bool found;

	list->texts = palloc(e->n * sizeof(Datum));
	for (int i = 0; i < e->n; i++)
		if (!e->nulls[i])
			list->texts[list->count++] = PointerGetDatum(PG_DETOAST_DATUM_PACKED(e->values[i]));
	if (list->count < LEAST_HASHED)
		return;
	list->hashed = texts_create(CurrentMemoryContext, list->count, list);
	for (int i = 0; i < list->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		texts_insert(list->hashed, list->texts[i], &found);
	}
	pfree(list->texts);
	list->texts = NULL;
}

/*
 * Returns whether this is left = ANY (list) or left <> ALL (list), over types whose values are
 * equal if their integers or bytes (except blanks) are.  = ALL and <> ANY are not tests of
 * membership.
 */
static bool
is_membership(const ScalarArrayOpExpr *saop)
{
	switch (saop->opfuncid)
	{
		case F_INT2EQ:
		case F_INT4EQ:
		case F_INT8EQ:
		case F_INT24EQ:
		case F_INT42EQ:
		case F_INT28EQ:
		case F_INT82EQ:
		case F_INT48EQ:
		case F_INT84EQ:
		case F_OIDEQ:
		case F_DATE_EQ:
		case F_TIME_EQ:
		case F_TIMESTAMP_EQ:
		case F_TIMESTAMPTZ_EQ:
		case F_CASH_EQ:
		case F_ENUM_EQ:
		case F_TEXTEQ:
		case F_BPCHAREQ:
			return saop->useOr;
		case F_INT2NE:
		case F_INT4NE:
		case F_INT8NE:
		case F_INT24NE:
		case F_INT42NE:
		case F_INT28NE:
		case F_INT82NE:
		case F_INT48NE:
		case F_INT84NE:
		case F_OIDNE:
		case F_DATE_NE:
		case F_TIME_NE:
		case F_TIMESTAMP_NE:
		case F_TIMESTAMPTZ_NE:
		case F_CASH_NE:
		case F_ENUM_NE:
		case F_TEXTNE:
		case F_BPCHARNE:
			return !saop->useOr;
		default:
			return false;
	}
}

/* Compiles left IN (constants) and left NOT IN (constants). */
Vec *
expr_compile_in(ExprSet *set, ScalarArrayOpExpr *saop, int stage)
{
	Oid func = saop->opfuncid;
	bool text = expr_is_text_equality(func);
	ColumnType types[2] = {COLUMN_DATUM, COLUMN_DATUM};
	int16 scale;
	Elements e;
	Vec *left;
	InList *list;

	if (!is_membership(saop))
		return compile_comparisons(set, saop, stage);
	if ((text && !expr_collation_is_deterministic(saop->inputcollid)) ||
		!get_elements(saop, MOST_ELEMENTS, &e))
		return NULL;
	if (!text)
		memcpy(types, expr_find_function(func)->args, sizeof(types));
	left = expr_compile_as(set, linitial(saop->args), types[0], stage);
	if (left == NULL || spec_column_type(e.type, -1, &scale) != types[1])
		return NULL;
	list = palloc0(sizeof(InList));
	list->negate = !saop->useOr;
	list->blanks = func == F_TEXTEQ || func == F_TEXTNE;
	for (int i = 0; i < e.n; i++)
		list->has_null |= e.nulls[i];
	if (text)
		collect_texts(list, &e);
	else
		collect_ints(list, &e, types[1]);
	pfree(e.values);
	pfree(e.nulls);
	return expr_emit_bool(set, stage, run_in, (Expr *) saop, left, NULL, NULL, list);
}

bool
expr_translate_in(ExprProgram *p, const ExprOp *op, uint16 *r)
{
	const InList *list = op->data;
	int64 constants[VECTOR_MAX_CONSTANTS];
	int data;
	uint16 a;

	if (op->run != run_in)
		return false;
	if (list->ints == NULL || list->count > VECTOR_MAX_CONSTANTS)
	{
		*r = expr_program_reject(p,
								 list->ints ? "an IN list is longer than the GPU supports" :
											  "IN lists of texts are not supported on the GPU");
		return true;
	}
	/* a register holds unsigned integers of 32 bits as signed ones */
	for (int i = 0; i < list->count; i++)
		constants[i] = op->a->type == COLUMN_U32 ? (int32) list->ints[i] : list->ints[i];
	data = (list->negate ? VECTOR_IN_NEGATE : 0) | (list->has_null ? VECTOR_IN_NULL : 0);
	a = expr_program_vec(p, op->a);
	/* a list of NULLs has no constants, but the operand must be one */
	*r = expr_program_emit(p, VECTOR_IN, data, a,
						   list->count > 0 ? expr_program_constants(p, list->count, constants) :
											 expr_program_constant(p, 0, false),
						   list->count);
	return true;
}

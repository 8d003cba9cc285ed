/*
 * internal.h
 *	  What the files of expr/ share.
 *
 * From bottom to top: eval.c (loops), share.c (common subexpressions), build.c (makes
 * vectors and operations), codes.c (numbers of values), scales.c (display scales), then one file
 * for each kind of function that has an operation of its own (bucket.c, decimal.c, quotient.c,
 * rounding.c, intervals.c, match.c, time_fields.c over zones.c), memo.c (results that are kept),
 * and compile.c, which calls them.  They compile their arguments by ExprSet.compile.  Programs for
 * the GPU likewise: program_build.c, the translations beside the operations, and program.c.
 */
#ifndef GPUAGG_EXPR_INTERNAL_H
#define GPUAGG_EXPR_INTERNAL_H

#include "postgres.h"

#include "analysis/analysis.h"
#include "expr/expr.h"

/*
 * An operation.  It computes r from up to three arguments, for n rows; NULL where it
 * has fewer, or takes them from `data`.
 */
typedef struct ExprOp
{
	void (*run)(const struct ExprOp *op, int n);
	Vec *r;
	Vec *a;
	Vec *b;
	Vec *c;
	void *data; /* of the operation */
	ExprSet *set;
	struct ExprOp *next;
	const bool *skip;    /* or NULL: where to is true once this has run, the operations up to */
	struct ExprOp *last; /* this one are left out */
} ExprOp;

/* Expands LOOP for a C type as wide as values of the column type. */
#define BY_WIDTH(type, LOOP) \
	switch (column_width(type)) \
	{ \
		case 1: \
			LOOP(int8); \
			break; \
		case 2: \
			LOOP(int16); \
			break; \
		case 4: \
			LOOP(int32); \
			break; \
		case 8: \
			LOOP(int64); \
			break; \
		case 16: \
			LOOP(gpuagg_i128); \
			break; \
	}

/* ---- eval.c ---------------------------------------------------------------- */

/* A row of vector_ops.h. */
typedef struct ExprFunction
{
	Oid funcid;
	uint16 code; /* VectorOp (vector_program.h), or VECTOR_NONE */
	void (*run)(const ExprOp *op, int n);
	ColumnType result;
	int nargs;
	ColumnType args[2];
} ExprFunction;

/* The row of vector_ops.h for a function, or NULL. */
extern const ExprFunction *expr_find_function(Oid funcid);

/* The row whose operation this is, or NULL. */
extern const ExprFunction *expr_function_of(const ExprOp *op);

/* Evaluates a constant. */
extern void expr_constant_fill(ExprSet *set, Vec *vec);

/* What expr_run_like needs: a pattern without wildcards but for a % at its end. */
typedef struct ExprPattern
{
	bool negate; /* NOT LIKE */
	bool open;   /* there is that % */
	int length;
	const char *bytes; /* before it */
} ExprPattern;

/*
 * The rows for which core would evaluate an argument of AND, OR, CASE or COALESCE:
 * those of `outer` for which cond is one of `accept`.
 */
#define MASK_FALSE 1
#define MASK_TRUE 2
#define MASK_NULL 4

typedef struct ExprMask
{
	const struct ExprMask *outer; /* NULL: all rows */
	const Vec *cond;
	int accept;
	Vec *vec; /* the rows as booleans, once an operation needs them */
} ExprMask;

/* What expr_run_core needs. */
typedef struct ExprCoreCall
{
	Vec **args;
	FunctionCallInfo fcinfo;
	FmgrInfo flinfo;
	bool counted; /* in pg_stat_user_functions */
} ExprCoreCall;

extern void expr_run_and(const ExprOp *op, int n);
extern void expr_run_or(const ExprOp *op, int n);
extern void expr_run_not(const ExprOp *op, int n);
extern void expr_run_isnull(const ExprOp *op, int n);
extern void expr_run_istrue(const ExprOp *op, int n);
extern void expr_run_select(const ExprOp *op, int n);
extern void expr_run_coalesce(const ExprOp *op, int n);
extern void expr_run_nullif(const ExprOp *op, int n);
extern void expr_run_distinct(const ExprOp *op, int n);
extern void expr_run_greatest(const ExprOp *op, int n);
extern void expr_run_core(const ExprOp *op, int n);
extern void expr_run_mask(const ExprOp *op, int n);
extern void expr_run_lazy(const ExprOp *op, int n);
extern void expr_run_param(const ExprOp *op, int n);
extern void expr_run_relabel(const ExprOp *op, int n);
extern void expr_run_text_equal(const ExprOp *op, int n);
extern void expr_run_like(const ExprOp *op, int n);

/*
 * Sets the states of a strict operation's result from those of its arguments a and b (or
 * NULL).  Rows that are values then, and for which fallback[] is set, become VEC_FALLBACK;
 * fallback NULL: none.
 */
extern void expr_strict(const ExprOp *op, int n, const uint8 *fallback);

/* Makes all rows of a lazy constant VEC_FALLBACK. */
extern void expr_empty(Vec *vec);

/* An ExprState for the scalar fallback or for a constant. */
extern ExprState *expr_core_state(ExprSet *set, Expr *expr);

static inline uint8
expr_state(const Vec *vec, int i)
{
	return vec->all_values ? VEC_VALUE : vec->state[i];
}

/* Is the text neither out of line nor compressed? */
static inline bool
expr_text_inline(Datum d)
{
	return !VARATT_IS_EXTERNAL(DatumGetPointer(d)) && !VARATT_IS_COMPRESSED(DatumGetPointer(d));
}

/* Bytes of a text; of a bpchar without the blanks at its end. */
static inline int
expr_text_length(Datum d, bool blanks)
{
	const char *s = VARDATA_ANY(DatumGetPointer(d));
	int len = VARSIZE_ANY_EXHDR(DatumGetPointer(d));

	if (!blanks)
		while (len > 0 && s[len - 1] == ' ')
			len--;
	return len;
}

/* Equality of inline texts or bpchars under a deterministic collation. */
static inline bool
expr_text_equal(Datum a, Datum b, bool blanks)
{
	int len = expr_text_length(a, blanks);

	return len == expr_text_length(b, blanks) &&
		memcmp(VARDATA_ANY(DatumGetPointer(a)), VARDATA_ANY(DatumGetPointer(b)), len) == 0;
}

/* ---- share.c --------------------------------------------------------------- */

/* Results are kept for combinations of the values of so many columns. */
#define EXPR_MEMO_COLUMNS 3

typedef struct NodeFacts
{
	Node *node;    /* hash key */
	uint32 hash;   /* equal() nodes have equal hashes */
	bool varying;  /* may differ between rows */
	bool pure;     /* the same for the same values of columns, in one query */
	bool slow;     /* the node itself calls a function row by row, */
	bool has_slow; /* or a node below does */
	bool narrows;  /* the node itself, a vector operation, has far fewer values than its argument */
	uint8 nvars;   /* columns below; more than fit: EXPR_MEMO_COLUMNS + 1 */
	Expr *vars[EXPR_MEMO_COLUMNS]; /* Vars, or nodes that narrow, in place of what they read */
	bool case_value;               /* holds a CaseTestExpr */
	char status;                   /* of simplehash.h */
} NodeFacts;

/*
 * A root is compiled between begin and end; if that failed, end removes the vectors
 * that were added to `vecs` since.
 */
extern void expr_share_begin(ExprSet *set, Expr *root);
extern void expr_share_end(ExprSet *set, Vec *vecs);
extern NodeFacts expr_facts(ExprSet *set, Expr *expr);

/* Removes the vectors that were added to `vecs` since. */
extern void expr_share_undo(ExprSet *set, Vec *vecs);

/* Enters a vector by its expr or attno. */
extern void expr_share(ExprSet *set, Vec *vec);

/* A vector of an equal expression that may stand for this one here, or NULL. */
extern Vec *expr_find(ExprSet *set, Expr *expr);
extern Vec *expr_find_column(ExprSet *set, AttrNumber attno, ColumnType type, int16 scale);

/* ---- build.c --------------------------------------------------------------- */

/* Zeroed memory aligned for vector loads and 128-bit integers, which palloc does not promise. */
extern void *expr_alloc(size_t size);

/* A vector of a stage; expr is what it computes if equal expressions may share it, or NULL. */
extern Vec *expr_new_vec(ExprSet *set, ColumnType type, int16 scale, Oid typid, Expr *expr,
						 int stage);

/* Notes that a stage reads a vector, which may be NULL. */
extern void expr_use(Vec *vec, int stage);

/* Appends an operation to a stage; returns its result r. */
extern Vec *expr_emit(ExprSet *set, int stage, void (*run)(const ExprOp *, int), Vec *r, Vec *a,
					  Vec *b, Vec *c, void *data);

/* Appends an operation whose result is a new vector of booleans, which it returns. */
extern Vec *expr_emit_bool(ExprSet *set, int stage, void (*run)(const ExprOp *, int), Expr *expr,
						   Vec *a, Vec *b, Vec *c, void *data);

/* The operation that was appended last. */
extern ExprOp *expr_last_op(ExprSet *set, int stage);

/* The rows of a mask as booleans; NULL: all. */
extern Vec *expr_mask_vec(ExprSet *set, ExprMask *mask, int stage);

/* The vector of a table column in this type and scale. */
extern Vec *expr_column(ExprSet *set, AttrNumber attno, ColumnType type, int16 scale, int stage);

/*
 * Compiles an argument.  The vector has the column type of the expression's SQL type
 * (of a numeric COLUMN_DEC or COLUMN_DATUM).  NULL: it cannot be compiled, and so the
 * root cannot, either.
 */
static inline Vec *
expr_compile(ExprSet *set, Expr *expr, int stage)
{
	return set->compile(set, expr, stage);
}

/* The same for an operation that takes vectors of this type only: NULL for another. */
extern Vec *expr_compile_as(ExprSet *set, Expr *expr, ColumnType type, int stage);

/* Is this = or <> of text or bpchar, which are operations under a deterministic collation? */
extern bool expr_is_text_equality(Oid funcid);

/* ---- scales.c --------------------------------------------------------------- */

/* The display scales of decimals: Vec.scales, or a new vector. */
extern Vec *expr_scales(ExprSet *set, Vec *vec, int stage);

/* Decimals as those of a scale that is not below their own. */
extern Vec *expr_rescale(ExprSet *set, Vec *vec, int16 scale, int stage);

/*
 * Sets the display scales of r, decimals, which are the sum of those of a and b, or the larger
 * ones; returns r.
 */
extern Vec *expr_scales_of_two(ExprSet *set, Vec *r, Vec *a, Vec *b, bool product, int stage);

/*
 * Sets those of r, which an operation chooses row by row from arguments; if these are decimals,
 * they are of one scale. Returns r, which may be of any type.
 */
extern Vec *expr_scales_of_choice(ExprSet *set, Vec *r, void (*run)(const ExprOp *, int), Vec *a,
								  Vec *b, Vec *c, int stage);

/* ---- codes.c, memo.c ---------------------------------------------------------- */

/* The numbers of a vector of by-reference values (Vec.codes); NULL: its type has none. */
extern Vec *expr_codes(ExprSet *set, Vec *vec, int stage);

/* ExprSet.describe: fills `pure` and `slow` of a node without its children. */
extern void expr_memo_describe(Node *node, NodeFacts *facts);
/*
 * Has the result of this expression better be kept for each combination of the columns that it
 * reads?
 */
extern bool expr_memo_serves(const ExprSet *set, const NodeFacts *facts);
/* Its vector; NULL: not kept, but compiled as any other one. */
extern Vec *expr_compile_memo(ExprSet *set, Expr *expr, const NodeFacts *facts, int stage);

/*
 * Whether it pays to look rows up: counts those that were not there, and pauses where these are
 * many, longer each time.
 */
typedef struct ExprWindow
{
	int rows;
	int missed;
	int pause;  /* rows to come before the next window */
	int pauses; /* the last pause */
} ExprWindow;

/* May n rows be looked up? */
extern bool expr_window_open(ExprWindow *window, int n);
/* Of n rows that were looked up, `missed` were not there. */
extern void expr_window_note(ExprWindow *window, int n, int missed);

/* ---- functions with operations of their own --------------------------------- */

/* Each returns NULL if funcid is none of its functions or the call cannot be compiled. */
extern Vec *expr_compile_bucket(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_decimal(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
/* An operator of two compiled decimals; NULL if it is none, or the scale too large. */
extern Vec *expr_decimal_call(ExprSet *set, Oid funcid, Expr *expr, Vec *a, Vec *b, int stage);
extern Vec *expr_compile_quotient(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_rounding(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_interval(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_time(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_like(ExprSet *set, Oid funcid, Oid collation, Expr *expr, List *args,
							  int stage);
extern Vec *expr_compile_in(ExprSet *set, ScalarArrayOpExpr *saop, int stage);

/*
 * To operations of the GPU (program.h): false if the operation is none of its functions, else its
 * result *r.
 */
struct ExprProgram;
extern bool expr_translate_bucket(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_decimal(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_rounding(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_scales(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_time(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_in(struct ExprProgram *p, const ExprOp *op, uint16 *r);

/* The operand with decimals brought to a scale that is not below their own. */
extern uint16 expr_translate_rescaled(struct ExprProgram *p, Vec *vec, int16 scale);

/* Has it a constant pattern without wildcards but for a % at its end? */
extern bool expr_is_simple_like(List *args);

/* Is this a function of decimal.c, of time_fields.c, or of intervals.c? */
extern bool expr_is_decimal(Oid funcid);
extern bool expr_is_time(Oid funcid);
extern bool expr_is_interval(Oid funcid);
/* Is this a function of rounding.c, over decimals, and to a number of digits that is known? */
extern bool expr_is_rounding(Oid funcid, List *args);

#endif /* GPUAGG_EXPR_INTERNAL_H */

/*
 * expr_internal.h
 *	  Declarations that the files of expr/ share.
 *
 * From bottom to top:
 *
 *	eval.c			loops of the operations
 *	share.c			common subexpressions
 *	build.c			makes vectors and operations
 *	value_numbers.c			numbers of values
 *	scales.c		display scales
 *	bucket.c, decimal_ops.c, quotient.c, rounding.c, intervals.c, match.c,
 *	time_fields.c	functions that have operations of their own
 *	memo.c			results that are kept
 *	compile.c		calls all of these
 *
 * Files compile their arguments by ExprSet.compile.  Programs for the GPU have the same structure:
 * program_build.c, the expr_translate_ functions next to the operations, and program.c.
 */
#ifndef GPUAGG_EXPR_INTERNAL_H
#define GPUAGG_EXPR_INTERNAL_H

#include "postgres.h"

#include "analysis/analysis.h"
#include "expr/expr.h"

/*
 * An operation.  Computes r from up to three arguments, for n rows.  Arguments are NULL if the
 * operation has fewer, or takes them from `data`.
 */
typedef struct ExprOp
{
	void (*run)(const struct ExprOp *op, int n);
	Vec *r;
	Vec *a;
	Vec *b;
	Vec *c;
	void *data; /* private data of the operation */
	ExprSet *set;
	struct ExprOp *next;
	const bool *skip;    /* NULL, or: if true after this operation has run, the operations */
	struct ExprOp *last; /* after it up to this one are skipped */
} ExprOp;

/* Expands LOOP for the C type that is as wide as values of the column type. */
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

/* Returns the row of vector_ops.h for a function, or NULL. */
extern const ExprFunction *expr_find_function(Oid funcid);

/* Returns the row whose operation this is, or NULL. */
extern const ExprFunction *expr_function_of(const ExprOp *op);

/* Fills a constant's vector with its value, which core computes. */
extern void expr_constant_fill(ExprSet *set, Vec *vec);

/*
 * The rows for which core would evaluate an argument of AND, OR, CASE or COALESCE: the rows of
 * `outer` for which cond is one of `accept`.
 */
#define MASK_FALSE 1
#define MASK_TRUE 2
#define MASK_NULL 4

typedef struct ExprMask
{
	const struct ExprMask *outer; /* NULL: all rows */
	const Vec *cond;
	int accept;
	Vec *vec; /* the rows as booleans; NULL until an operation needs them */
} ExprMask;

/* Data of expr_run_core. */
typedef struct ExprCoreCall
{
	Vec **args;
	FunctionCallInfo fcinfo;
	FmgrInfo flinfo;
	bool counted; /* calls count in pg_stat_user_functions */
} ExprCoreCall;

/* Operations (ExprOp.run). eval.c says for each what a, b, c and data are. */
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

/*
 * Sets the states of a strict operation's result from the states of its arguments a and b (or
 * NULL).  Then changes rows i with fallback[i] from VEC_VALUE to VEC_FALLBACK; fallback may be
 * NULL.
 */
extern void expr_strict(const ExprOp *op, int n, const uint8 *fallback);

/* Makes all rows of a lazy constant VEC_FALLBACK. */
extern void expr_empty_constant(Vec *vec);

/* Returns an ExprState for the scalar fallback or for a constant. */
extern ExprState *expr_core_state(ExprSet *set, Expr *expr);

/* ---- subplans.c ---- */

/* Returns the state of an expression with subplans: that of an earlier scan, or a new one. */
extern ExprState *expr_subplan_state(ExprSubplans *subplans, PlanState *node, Expr *expr);
/* Returns the subplans of a state; NULL if it has none. */
extern struct SubplanState *expr_find_subplans(const ExprSubplans *subplans,
											   const ExprState *state);
/* Makes a state with subplans ready to be evaluated: see the head of subplans.c. */
extern void expr_renew_subplans(struct SubplanState *state);

/* Returns the VecState of row i. */
static inline uint8
expr_state(const Vec *vec, int i)
{
	return vec->all_values ? VEC_VALUE : vec->state[i];
}

/* Returns whether the text is neither out of line nor compressed. */
static inline bool
expr_text_inline(Datum d)
{
	return !VARATT_IS_EXTERNAL(DatumGetPointer(d)) && !VARATT_IS_COMPRESSED(DatumGetPointer(d));
}

/*
 * Returns the number of bytes of an inline text.  blanks false, for bpchar: does not count the
 * blanks at its end.
 */
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

/*
 * Returns whether inline texts are equal under a deterministic collation.  blanks false, for
 * bpchar: ignores the blanks at their ends.
 */
static inline bool
expr_text_equal(Datum a, Datum b, bool blanks)
{
	int len = expr_text_length(a, blanks);

	return len == expr_text_length(b, blanks) &&
		memcmp(VARDATA_ANY(DatumGetPointer(a)), VARDATA_ANY(DatumGetPointer(b)), len) == 0;
}

/* ---- share.c --------------------------------------------------------------- */

/* Maximum number of columns for whose combinations of values results are kept. */
#define EXPR_MEMO_COLUMNS 3

/*
 * What the compiler needs to know of a node. "Below" a node are its children, their children and
 * so on.
 */
typedef struct NodeFacts
{
	Node *node;    /* hash key */
	uint32 hash;   /* equal() nodes have equal hashes */
	bool varying;  /* the result may differ between rows */
	bool pure;     /* the result depends only on the columns, within a query */
	bool slow;     /* the node itself calls a function row by row */
	bool has_slow; /* the node or a node below it is slow */
	bool
		narrows; /* the node itself is a vector operation with far fewer values than its argument */
	uint8 nvars; /* number of columns below, at most EXPR_MEMO_COLUMNS + 1 */
	Expr *vars[EXPR_MEMO_COLUMNS]; /* Vars, or nodes that narrow in place of the Vars below them */
	bool case_value;               /* contains a CaseTestExpr */
	char status;                   /* for simplehash.h */
} NodeFacts;

/*
 * A root is compiled between begin and end.  If that failed, end removes the vectors that were
 * added to set->vecs since it was `vecs`.
 */
extern void expr_share_begin(ExprSet *set, Expr *root);
extern void expr_share_end(ExprSet *set, Vec *vecs);
/* Returns the facts of a node. If the stack is too deep to find them, sets set->failed. */
extern NodeFacts expr_facts(ExprSet *set, Expr *expr);

/* Removes the vectors that were added to set->vecs since it was `vecs`. */
extern void expr_share_undo(ExprSet *set, Vec *vecs);

/* Enters a vector into the hash table by its expr or attno. */
extern void expr_share(ExprSet *set, Vec *vec);

/*
 * Return a vector of an equal expression, or of a column, that can be used under the current mask;
 * or NULL.
 */
extern Vec *expr_find_vec(ExprSet *set, Expr *expr);
extern Vec *expr_find_column(ExprSet *set, AttrNumber attno, ColumnType type, int16 scale);

/* ---- build.c --------------------------------------------------------------- */

/*
 * Returns zeroed memory aligned for vector loads and 128-bit integers, which palloc does not
 * promise.
 */
extern void *expr_alloc(size_t size);

/*
 * Returns a new vector of a stage.  expr: what it computes, if equal expressions may share it, or
 * NULL.
 */
extern Vec *expr_new_vec(ExprSet *set, ColumnType type, int16 scale, Oid typid, Expr *expr,
						 int stage);

/* Records that a stage reads a vector, which may be NULL. */
extern void expr_use(Vec *vec, int stage);

/* Appends an operation to a stage; returns its result r. */
extern Vec *expr_emit(ExprSet *set, int stage, void (*run)(const ExprOp *, int), Vec *r, Vec *a,
					  Vec *b, Vec *c, void *data);

/* Appends an operation whose result is a new vector of booleans, which it returns. */
extern Vec *expr_emit_bool(ExprSet *set, int stage, void (*run)(const ExprOp *, int), Expr *expr,
						   Vec *a, Vec *b, Vec *c, void *data);

/* Returns the operation that was appended last. */
extern ExprOp *expr_last_op(ExprSet *set, int stage);

/*
 * Returns the rows of a mask as a vector of booleans, whose operation the first call appends to the
 * stage. Returns NULL for the mask NULL, which has all rows.
 */
extern Vec *expr_mask_vec(ExprSet *set, ExprMask *mask, int stage);

/* Returns the vector of a table column in this type and scale. */
extern Vec *expr_column(ExprSet *set, AttrNumber attno, ColumnType type, int16 scale, int stage);

/*
 * Compiles an argument.  The vector has the column type of the expression's SQL type (for numeric:
 * COLUMN_DEC or COLUMN_DATUM).  NULL: it cannot be compiled, and so the root cannot either.
 */
static inline Vec *
expr_compile(ExprSet *set, Expr *expr, int stage)
{
	return set->compile(set, expr, stage);
}

/* As expr_compile(), but returns NULL if the vector has another column type. */
extern Vec *expr_compile_as(ExprSet *set, Expr *expr, ColumnType type, int stage);

/*
 * Returns whether the function is = or <> of text or bpchar.  These have an operation under a
 * deterministic collation.
 */
extern bool expr_is_text_equality(Oid funcid);

/* ---- scales.c --------------------------------------------------------------- */

/* Returns a vector with the display scales of decimals: Vec.scales, or a new vector. */
extern Vec *expr_scales_vec(ExprSet *set, Vec *vec, int stage);

/* Returns a vector with the same decimals in `scale`, which is not below their own scale. */
extern Vec *expr_rescale(ExprSet *set, Vec *vec, int16 scale, int stage);

/*
 * Sets the display scales of r, the result of an operation on decimals a and b: the sum of their
 * scales (product), or the larger one.  Returns r.
 */
extern Vec *expr_scales_of_two(ExprSet *set, Vec *r, Vec *a, Vec *b, bool product, int stage);

/*
 * Sets the display scales of r, which an operation chooses row by row from its arguments.  Decimals
 * among these have the same scale.  Returns r, which may have any type.
 */
extern Vec *expr_scales_of_choice(ExprSet *set, Vec *r, void (*run)(const ExprOp *, int), Vec *a,
								  Vec *b, Vec *c, int stage);

/* ---- value_numbers.c, memo.c ---------------------------------------------------------- */

/*
 * Returns a vector with the numbers of by-reference values or decimals (Vec.codes); NULL: the type
 * has no numbers.  costly: each new value costs a call of a costly expression, so that long and
 * many values get numbers, too.
 */
extern Vec *expr_codes_vec(ExprSet *set, Vec *vec, bool costly, int stage);

/* ExprSet.describe: sets `pure`, `slow` and `narrows` of a node; its children do not matter. */
extern void expr_memo_describe(Node *node, NodeFacts *facts);
/*
 * Returns whether it pays to keep the results of this expression for combinations of its columns'
 * values.
 */
extern bool expr_memo_pays(const ExprSet *set, const NodeFacts *facts);
/* Returns the expression's vector; NULL: it has no memo and must be compiled as usual. */
extern Vec *expr_compile_memo(ExprSet *set, Expr *expr, const NodeFacts *facts, int stage);
/* Returns the vector of a memo's own operations if this is its last operation; else NULL. */
extern Vec *expr_memo_inner(const ExprOp *op);

/*
 * Decides whether looking up rows pays.  Counts the rows that were not found.  If there are many,
 * lookups pause, for longer each time.
 */
typedef struct ExprWindow
{
	int rows;
	int missed;
	int pause;   /* rows that still come before the next window */
	int pauses;  /* rows of the last pause */
	bool costly; /* a row that is not found costs much more than a lookup */
} ExprWindow;

/* Returns whether n rows may be looked up. Counts them toward the pause if not. */
extern bool expr_window_open(ExprWindow *window, int n);
/* Records that `missed` of n rows were not found. */
extern void expr_window_note(ExprWindow *window, int n, int missed);

/* ---- functions with operations of their own --------------------------------- */

/*
 * Compiles CASE WHEN float8eq(x, NaN) THEN a constant ELSE width_bucket(x, ...) END, as of
 * gpu_histogram2d, as one operation: core computes the rows with NaN.  Returns NULL for any other
 * CASE.
 */
extern Vec *expr_compile_guarded_bucket(ExprSet *set, CaseExpr *expr, int stage);

/* Each returns NULL if funcid is not one of its functions, or if the call cannot be compiled. */
extern Vec *expr_compile_bucket(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_decimal(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
/*
 * Emits an operator of two compiled decimals and returns its result.  NULL: funcid is no such
 * operator, or the result's scale would be too large.
 */
extern Vec *expr_decimal_call(ExprSet *set, Oid funcid, Expr *expr, Vec *a, Vec *b, int stage);
extern Vec *expr_compile_quotient(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_rounding(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_interval(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_time(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_like(ExprSet *set, Oid funcid, Oid collation, Expr *expr, List *args,
							  int stage);
extern Vec *expr_compile_length(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);
extern Vec *expr_compile_in(ExprSet *set, ScalarArrayOpExpr *saop, int stage);

/*
 * Translate an operation for the GPU (program.h).  They return false if it is not one of their
 * functions, and otherwise set *r to the operand with the result.
 */
struct ExprProgram;
extern bool expr_translate_bucket(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_decimal(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_rounding(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_scales(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_time(struct ExprProgram *p, const ExprOp *op, uint16 *r);
extern bool expr_translate_in(struct ExprProgram *p, const ExprOp *op, uint16 *r);

/* Returns whether a column of the ExprSet is one of a join's inner rows. */
extern bool expr_program_is_inner(const struct ExprProgram *p, AttrNumber attno);
/*
 * Returns the operand with the values of such a column.  presence: only whether they are NULL.
 * NULL: there is no inner row
 */
extern uint16 expr_program_inner(struct ExprProgram *p, AttrNumber attno, ColumnType type,
								 int16 scale, bool presence);
/* Returns an operand that is NULL if join j has found no inner row. */
extern uint16 expr_program_found(struct ExprProgram *p, int j);
/* Returns the operand with the inner row of join j for the number of its keys, or NULL. */
extern uint16 expr_program_find(struct ExprProgram *p, int j, uint16 number);

/* Returns the operand with a vector's decimals in `scale`, which is not below their own scale. */
extern uint16 expr_translate_rescaled(struct ExprProgram *p, Vec *vec, int16 scale);

/*
 * Returns whether these arguments of LIKE have a constant pattern without wildcards, except for a %
 * at its end.
 */
extern bool expr_is_simple_like(List *args);

/* Return whether decimal_ops.c, time_fields.c or intervals.c has an operation for the function. */
extern bool expr_is_decimal(Oid funcid);
extern bool expr_is_time(Oid funcid);
extern bool expr_is_interval(Oid funcid);
/* Returns whether rounding.c compiles this call: scales and the number of digits are known. */
extern bool expr_is_rounding(Oid funcid, List *args);

#endif /* GPUAGG_EXPR_INTERNAL_H */

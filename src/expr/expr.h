/*
 * expr.h
 *	  Vector expressions: what a scan's quals and target list ask, a page at a
 *	  time.
 *
 * A set holds the quals of one scan and its output expressions ("roots") in
 * stages: stage i is qual i, the last stage all outputs.  Each root is compiled
 * to operations over vectors of at most EXPR_ROWS rows.  A vector gives each row
 * one of three states: a value, NULL, or "ask": core must decide this row,
 * because it may raise an error or has a value out of the ordinary.  Asking is
 * contagious upwards, except where three-valued logic, CASE or COALESCE never
 * look.  A row whose root asks is evaluated by core's ExecEvalExpr from the
 * start, so every error and every odd value is core's own.  A root that cannot
 * be compiled asks for every row.
 *
 * The owner (a feed) fills vectors of table columns before it runs a stage, and
 * drops the rows that fail a qual by expr_compact.
 *
 * Memory: the set and all its vectors live in the context current at creation;
 * values made by core's functions in set->page_cxt, which the owner resets for
 * each page.
 */
#ifndef GPUAGG_EXPR_H
#define GPUAGG_EXPR_H

#include "postgres.h"

#include "access/htup_details.h"
#include "nodes/execnodes.h"

#include "batch.h"

#define EXPR_ROWS MaxHeapTuplesPerPage

/* Values of one page that vectors hold, at most, but for the one that goes beyond. */
#define EXPR_PAGE_BYTES BATCH_BYTES
/* Bytes of a table's vectors; what would take more is left to core. */
#define EXPR_MEMORY (4 * 1024 * 1024)
/* Lists of a set's vectors by the hash of what they compute. */
#define EXPR_BUCKETS 256

typedef enum VecState
{
	VEC_VALUE = 0,
	VEC_NULL = 1,
	VEC_FALLBACK = 2
} VecState;

typedef struct Vec
{
	ColumnType	type;
	int16		scale;			/* COLUMN_DEC: display scale of every value */
	bool		all_values;			/* every row is VEC_VALUE; state is undefined */
	void	   *values;			/* defined bits for every row, NULL or not */
	uint8	   *state;			/* VecState of each row */

	AttrNumber	attno;			/* of a table column: filled by the owner */
	bool		constant;		/* same for all rows: never compacted */
	bool		lazy;			/* a constant that an operation fills; asks until then */
	bool		filled;			/* it has */
	bool		masked;			/* may ask for the rows that its mask keeps out: not to be shared */
	const struct ExprMask *mask;
	int			stage;			/* that computes it */
	int			last_stage;		/* that reads it last */
	struct Vec *next;			/* in ExprSet.vecs */

	/* to share equal expressions; see expr_share.c */
	Expr	   *expr;			/* what it computes, or NULL */
	uint32		hash;			/* of expr or attno */
	struct Vec *same_bucket;	/* in ExprSet.shared */

	/* constants: evaluated by core at the first row of a scan */
	ExprState  *source;
	Oid			typid;
} Vec;

typedef struct ExprOp
{
	void		(*run) (const struct ExprOp *op, int n);
	Vec		   *r;
	Vec		   *a;
	Vec		   *b;
	Vec		   *c;
	void	   *data;			/* of the operation */
	struct ExprSet *set;
	struct ExprOp *next;
} ExprOp;

typedef struct ExprRoot
{
	Expr	   *expr;
	Vec		   *vec;			/* NULL: core evaluates every row */
	ExprState  *state;			/* core's; NULL until a row asks */
	int			stage;
} ExprRoot;

typedef struct ExprStage
{
	ExprOp	   *ops;
	ExprOp	  **tail;
	bool		constants_ready;
} ExprStage;

/*
 * Core's states of expressions with subplans.  A subplan belongs to its plan
 * node until the query ends, so these are made once, not for each rescan.
 */
typedef struct ExprSubplans
{
	List	   *nodes;			/* PlanState that the expression belongs to */
	List	   *exprs;
	List	   *states;
} ExprSubplans;

typedef struct ExprSet
{
	PlanState  *parent;			/* the scan: its expression context, its parameters */
	TupleDesc	desc;
	MemoryContext cxt;
	MemoryContext page_cxt;
	MemoryContext const_cxt;	/* values of constants, until expr_reset */
	int			nstages;
	ExprStage  *stages;
	Vec		   *vecs;
	Vec		   *shared[EXPR_BUCKETS];
	size_t		bytes;			/* of all vectors */
	ExprSubplans *subplans;

	/* while a root is compiled */
	struct ExprMask *mask;		/* the rows for which core comes here; NULL: all */
	Vec		   *case_value;		/* value of CaseTestExpr */
	struct facts_hash *facts;	/* what is known of its nodes */
	bool		failed;			/* something has no vector form */

	/* Makes row i the scan tuple of the parent's expression context. */
	void		(*load_row) (void *owner, int row);
	void	   *owner;
} ExprSet;

/* An empty set of nstages stages; subplans outlives it. */
extern ExprSet *expr_set_create(PlanState *parent, TupleDesc desc, int nstages,
								ExprSubplans *subplans);

/* Quals in the order in which they had best run (expr_order.c); a new list. */
extern List *expr_order_quals(List *quals);

/* Compiles an expression into a stage. */
extern ExprRoot *expr_add_root(ExprSet *set, Expr *expr, int stage);

/* Compiles a bare column in a form of the caller's choice. */
extern ExprRoot *expr_add_column_root(ExprSet *set, Var *var, ColumnType type, int16 scale,
									  int stage);

/* Compiles "column attno as type, scale" into a stage. */
extern Vec *expr_column(ExprSet *set, AttrNumber attno, ColumnType type, int16 scale, int stage);

/* Forgets the values of constants, for a rescan with other parameters. */
extern void expr_reset(ExprSet *set);

/* Runs a stage over n > 0 rows; its columns are filled already. */
extern void expr_run(ExprSet *set, int stage, int n);

/* After a stage: keep only rows sel[0 .. n-1] (ascending) in vectors still needed. */
extern void expr_compact(ExprSet *set, int stage, const uint16 *sel, int n);

/* Core's answer for one row of the page; by-reference values are valid until the next one. */
extern Datum expr_evaluate_scalar(ExprSet *set, ExprRoot *root, int row, bool *isnull);

/*
 * Is this a numeric expression whose values all have one display scale, but
 * for odd ones?  Works on any expression, in planner or executor form.
 */
extern bool expr_decimal_shape(Node *expr, int16 *scale);

/*
 * The column type that an expression travels in; a numeric expression over columns
 * and constants of known scales has one as well.
 */
extern ColumnType expr_column_type(Node *expr, int16 *scale);

/* For the compiler and the evaluator only. */
typedef struct ExprFunction
{
	Oid			funcid;
	void		(*run) (const ExprOp *op, int n);
	ColumnType	result;
	int			nargs;
	ColumnType	args[2];
} ExprFunction;

extern const ExprFunction expr_functions[];
extern const int expr_nfunctions;

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
extern void expr_empty(Vec *vec);
extern void expr_run_text_equal(const ExprOp *op, int n);
extern void expr_run_like(const ExprOp *op, int n);

/* Prepares an expression for core's evaluator. */
extern ExprState *expr_core_state(ExprSet *set, Expr *expr);

/* Sets r->state from one or two strict arguments. */
extern void expr_strict(Vec *r, const Vec *a, const Vec *b, int n);
/* Marks the rows of ask[] in r, unless NULL or asking already. */
extern void expr_mark_fallback(Vec *r, const uint8 *fallback, int n);

/* Decimal operations (expr_decimal.c): NULL where funcid is none, or cannot be compiled. */
extern Vec *expr_compile_decimal(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);

/* LIKE and IN lists (expr_match.c), in the same way. */
extern Vec *expr_compile_like(ExprSet *set, Oid funcid, Oid collation, Expr *expr, List *args,
							  int stage);
extern Vec *expr_compile_in(ExprSet *set, ScalarArrayOpExpr *saop, int stage);

/* width_bucket (expr_bucket.c), in the same way. */
extern Vec *expr_compile_bucket(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);

/* Zeroed memory aligned for vector loads and 128-bit integers, which palloc does not promise. */
extern void *expr_alloc(size_t size);

/*
 * Compiler services.  A vector that expr_compile returns has the column type of
 * the expression's SQL type (numerics: COLUMN_DEC or COLUMN_DATUM), whatever its
 * operands were before casts that change no bits.  NULL means that the root is
 * left to core.
 */
extern Vec *expr_compile(ExprSet *set, Expr *expr, int stage);
/* As expr_compile, for an operation that takes vectors of this type only: NULL for another. */
extern Vec *expr_compile_as(ExprSet *set, Expr *expr, ColumnType type, int stage);
extern Vec *expr_new_vec(ExprSet *set, ColumnType type, int16 scale, Oid typid, Expr *expr,
						 int stage);
extern ExprOp *expr_emit(ExprSet *set, int stage, void (*run) (const ExprOp *, int), Vec *r,
						 Vec *a, Vec *b, Vec *c, void *data);

/* A boolean vector that run computes. */
extern Vec *expr_emit_bool(ExprSet *set, int stage, void (*run) (const ExprOp *, int), Expr *expr,
						   Vec *a, Vec *b, Vec *c, void *data);
/* Are strings of this collation equal only if their bytes are? */
extern bool expr_deterministic(Oid collation);
/* = and <> of text and bpchar, which have a vector form, and their LIKE, which may have one. */
extern bool expr_is_text_equality(Oid funcid);
extern bool expr_is_like(Oid funcid);

/*
 * Equal expressions (expr_share.c).  Between begin and end a root is compiled;
 * end forgets all vectors made since, if it failed.
 */
typedef struct NodeFacts
{
	Node	   *node;			/* hash key */
	uint32		hash;			/* equal() nodes have equal hashes */
	bool		varying;		/* may differ between rows */
	bool		case_value;		/* holds a CaseTestExpr */
	char		status;			/* of simplehash.h */
} NodeFacts;

extern void expr_share_begin(ExprSet *set, Expr *root);
extern void expr_share_end(ExprSet *set, Vec *vecs);
extern NodeFacts expr_facts(ExprSet *set, Expr *expr);
/* Makes a vector findable by its expr or attno. */
extern void expr_share(ExprSet *set, Vec *vec);
extern Vec *expr_find(ExprSet *set, Expr *expr);
extern Vec *expr_find_column(ExprSet *set, AttrNumber attno, ColumnType type, int16 scale);

/* The row of expr_ops.h for a function, or NULL. */
extern const ExprFunction *expr_find_function(Oid funcid);

/* A value as a Datum, for rows in state VEC_VALUE; numerics and such in the current context. */
extern Datum expr_datum(const Vec *vec, int row);
/* Stores a Datum that is not NULL; returns false if it does not fit the vector's type. */
extern bool expr_store(const Vec *vec, int row, Datum value);

/* A pointer to a value out of line has a short header too, as far as its first bit goes. */
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
	int			len = VARSIZE_ANY_EXHDR(DatumGetPointer(d));

	if (!blanks)
		while (len > 0 && s[len - 1] == ' ')
			len--;
	return len;
}

/* Equality of texts or bpchars inline, under a deterministic collation. */
static inline bool
expr_text_equal(Datum a, Datum b, bool blanks)
{
	int			len = expr_text_length(a, blanks);

	return len == expr_text_length(b, blanks) &&
		memcmp(VARDATA_ANY(DatumGetPointer(a)), VARDATA_ANY(DatumGetPointer(b)), len) == 0;
}

static inline uint8
expr_state(const Vec *vec, int i)
{
	return vec->all_values ? VEC_VALUE : vec->state[i];
}

/* What expr_run_like needs: a pattern without wildcards but for a % at its end. */
typedef struct ExprPattern
{
	bool		negate;			/* NOT LIKE */
	bool		open;			/* there is that % */
	int			length;
	const char *bytes;			/* before it */
} ExprPattern;

/*
 * Rows for which core would evaluate a part of CASE, AND, OR or COALESCE: those
 * of `outer` where cond is one of `accept`.
 */
#define MASK_FALSE 1
#define MASK_TRUE 2
#define MASK_NULL 4

typedef struct ExprMask
{
	const struct ExprMask *outer;	/* NULL: all rows */
	const Vec  *cond;
	int			accept;
	Vec		   *vec;			/* once something needs it */
} ExprMask;

/* What expr_run_core needs. */
typedef struct ExprCoreCall
{
	Vec		  **args;
	FunctionCallInfo fcinfo;
	FmgrInfo	flinfo;
	bool		counted;		/* in pg_stat_user_functions */
} ExprCoreCall;

#endif							/* GPUAGG_EXPR_H */

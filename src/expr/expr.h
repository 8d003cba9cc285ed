/*
 * expr.h
 *	  Vector expressions: evaluates the quals and the target list of a table scan
 *	  for the visible rows of one heap page at a time.
 *
 * An ExprSet holds the expressions of one scan ("roots") in stages: stage i is
 * qual i, the last stage is all of the target list.  Each root is compiled to
 * operations over vectors, which have a place for EXPR_ROWS rows.  The feed that
 * owns the set fills the vectors of table columns that a stage needs, runs the
 * stage, and after a qual drops the rows that failed from all vectors that later
 * stages read (expr_compact).
 *
 * A vector has a state for each row: a value, NULL, or VEC_FALLBACK, which says
 * that the operation cannot tell.  That is so where core would raise an error, and
 * for values that the vector's type cannot represent or that an operation leaves
 * out because they are rare.  The result of a strict operation is VEC_FALLBACK
 * where one of its arguments is; AND, OR, CASE and COALESCE need only the
 * arguments that core would evaluate.  A row for which a root comes out as
 * VEC_FALLBACK is evaluated from the start by core's ExecEvalExpr
 * (expr_evaluate_scalar, the scalar fallback), so errors are raised by core, with
 * its texts and in its order.  A root that cannot be compiled has no vector: all
 * of its rows take the scalar fallback.
 *
 * Memory: a set and its vectors belong to the memory context that is current when
 * the set is created.  By-reference results of core's functions belong to
 * set->page_cxt, which the feed resets for each page.
 */
#ifndef GPUAGG_EXPR_H
#define GPUAGG_EXPR_H

#include "postgres.h"

#include "access/htup_details.h"
#include "nodes/execnodes.h"

#include "batch.h"

#define EXPR_ROWS MaxHeapTuplesPerPage

/*
 * Once the by-reference results of a page take so many bytes, its remaining rows take
 * the scalar fallback.
 */
#define EXPR_PAGE_BYTES BATCH_BYTES
/* An expression whose vectors would bring a set beyond so many bytes is not compiled. */
#define EXPR_MEMORY (4 * 1024 * 1024)
/* Rows that are looked at to tell whether values repeat; see codes.c and memo.c. */
#define EXPR_WINDOW 4096
/* Size of the hash table of a set's vectors. */
#define EXPR_BUCKETS 256

typedef struct Vec
{
	ColumnType type;
	int16 scale;        /* COLUMN_DEC: display scale of every value, or the largest */
	int16 least_scale;  /* COLUMN_DEC: no value has a smaller one */
	struct Vec *scales; /* COLUMN_I32: the display scale of each value; NULL: `scale` */
	bool all_values;    /* every row is VEC_VALUE; `state` is undefined */
	void *values;       /* initialized for every row, whatever its state */
	void *memory;       /* the vector's own array for them */
	uint8 *state;       /* VecState of each row */

	AttrNumber attno;            /* of a table column: the feed fills the vector */
	bool constant;               /* one value for all rows: expr_compact leaves it alone */
	bool lazy;                   /* a constant that an operation fills; VEC_FALLBACK before */
	bool filled;                 /* that has been done */
	bool masked;                 /* rows outside `mask` may be VEC_FALLBACK for that alone */
	const struct ExprMask *mask; /* that it was compiled under; NULL: all rows */
	int stage;                   /* that computes it */
	int last_stage;              /* that reads it last */
	struct Vec *next;            /* in ExprSet.vecs */

	/*
	 * Numbers of the values (COLUMN_I32; VEC_FALLBACK: it has none) in a dictionary that lasts as
	 * long as the set; or NULL.  Of a NULL any number, or none.
	 */
	struct Vec *codes;
	struct Vec *codes_of; /* the vector whose numbers these are */
	struct ExprDictionary *dictionary;

	/* common subexpressions; see share.c */
	Expr *expr;              /* what it computes, or NULL */
	uint32 hash;             /* of expr or attno */
	struct Vec *same_bucket; /* in ExprSet.shared */

	/* constants: evaluated by core once in a scan */
	ExprState *source;
	Oid typid;
} Vec;

/*
 * By-reference values with numbers (numerics of decimals), which stay where they are; see codes.c
 * and memo.c.
 */
typedef struct ExprDictionary
{
	uint64 id;      /* not that of any other dictionary of the process: Column.dictionary */
	uint32 n;       /* values so far */
	Datum *values;  /* [number]; NULL's is undefined */
	size_t longest; /* bytes of the longest value */
} ExprDictionary;

typedef struct ExprRoot
{
	Expr *expr;
	Vec *vec;         /* NULL: all rows take the scalar fallback */
	ExprState *state; /* for the scalar fallback; NULL before its first row */
	int stage;
} ExprRoot;

typedef struct ExprStage
{
	struct ExprOp *ops;
	struct ExprOp **tail;
	bool constants_ready;
} ExprStage;

/*
 * ExprStates of expressions with subplans.  A subplan belongs to its plan node until
 * the query ends, so these are made once, not for each rescan.
 */
typedef struct ExprSubplans
{
	List *nodes; /* PlanState that the expression belongs to */
	List *exprs;
	List *states;
} ExprSubplans;

struct NodeFacts;

typedef struct ExprSet
{
	PlanState *parent; /* the scan: its expression context, its parameters */
	TupleDesc desc;
	MemoryContext cxt;
	MemoryContext page_cxt;
	MemoryContext const_cxt; /* values of constants, until expr_reset */
	uint32 resets;           /* how often that was called */
	int nstages;
	ExprStage *stages;
	Vec *vecs;
	Vec *shared[EXPR_BUCKETS];
	size_t bytes; /* of all vectors */
	ExprSubplans *subplans;

	/* while a root is compiled */
	Vec *(*compile)(struct ExprSet *set, Expr *expr, int stage); /* see expr_compile */
	void (*describe)(Node *node, struct NodeFacts *facts);       /* see memo.c */
	struct ExprMask *mask;    /* rows for which core evaluates what is compiled; NULL: all */
	int memo_columns;         /* of the memo around what is compiled; see memo.c */
	Vec *case_value;          /* of CaseTestExpr */
	struct facts_hash *facts; /* NodeFacts of the root's nodes */
	bool failed;              /* the root cannot be compiled */

	/* Makes row i of the page the scan tuple of the parent's expression context. */
	void (*load_row)(void *owner, int row);
	void *owner;
} ExprSet;

/* An empty set of nstages stages; subplans must outlive it. */
extern ExprSet *expr_set_create(PlanState *parent, TupleDesc desc, int nstages,
								ExprSubplans *subplans);

/* A new list of the quals in the order in which they are best evaluated. */
extern List *expr_order_quals(List *quals, ParamListInfo params);

/* Compiles an expression into a stage. */
extern ExprRoot *expr_add_root(ExprSet *set, Expr *expr, int stage);

/* The same for a table column, in a column type of the caller's choice. */
extern ExprRoot *expr_add_column_root(ExprSet *set, Var *var, ColumnType type, int16 scale,
									  int stage);

/*
 * The same, but the vector has the display scales of a numeric expression; it may be one of
 * COLUMN_DATUM, of the values. The scalar fallback evaluates the expression.
 */
extern ExprRoot *expr_add_scales_root(ExprSet *set, Expr *expr, int stage);

/*
 * Numbers the values of a root, a by-reference column or decimals (Vec.codes), if that can be done.
 */
extern void expr_add_codes(ExprSet *set, ExprRoot *root);

/* A number for a dictionary, ours or a feed's. */
extern uint64 expr_new_dictionary(void);

/* Forgets the values of constants, for a rescan with other parameters. */
extern void expr_reset(ExprSet *set);

/*
 * Is what the stage computes, but for its columns, read by no later stage?  After all roots were
 * added.
 */
extern bool expr_stage_is_closed(const ExprSet *set, int stage);

/* Runs a stage over n > 0 rows; the feed has filled its columns. */
extern void expr_run(ExprSet *set, int stage, int n);

/* After a stage: keeps rows sel[0 .. n-1] (ascending) of the vectors that later stages read. */
extern void expr_compact(ExprSet *set, int stage, const uint16 *sel, int n);

/*
 * The scalar fallback: core's value of a root for one row of the page.  By-reference
 * values are valid until the next call.
 */
extern Datum expr_evaluate_scalar(ExprSet *set, ExprRoot *root, int row, bool *isnull);

/*
 * The value of a row in state VEC_VALUE as a Datum.  Numerics are made in the current
 * memory context; other by-reference values stay where they are.
 */
extern Datum expr_datum(const Vec *vec, int row);

#endif /* GPUAGG_EXPR_H */

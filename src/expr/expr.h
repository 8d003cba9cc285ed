/*
 * expr.h
 *	  Vector expressions: evaluates the quals and the target list of a table scan for the visible
 *	  rows of one heap page at a time.
 *
 * An ExprSet holds the expressions of one scan ("roots") in stages.  Stage i is qual i; the last
 * stage is the whole target list.  Each root is compiled to operations over vectors, which have
 * room for EXPR_ROWS rows.  The feed that owns the set
 *
 *	1. fills the vectors of the table columns that a stage needs,
 *	2. runs the stage,
 *	3. after a qual, removes the failed rows from all vectors that later stages read
 *	   (expr_compact).
 *
 * A vector has a state for each row: a value, NULL, or VEC_FALLBACK.  VEC_FALLBACK means that the
 * operation has no result for the row: core would raise an error, or the vector's type cannot
 * represent the value, or the value is rare and the operation leaves it out.  The result of a
 * strict operation is VEC_FALLBACK if one of its arguments is.  AND, OR, CASE and COALESCE need
 * only the arguments that core would evaluate.
 *
 * If a root's state is VEC_FALLBACK for a row, core's ExecEvalExpr evaluates the root from the
 * start (expr_evaluate_scalar, the scalar fallback).  So errors are raised by core, with its texts
 * and in its order.  A root that cannot be compiled has no vector: all of its rows take the scalar
 * fallback.
 *
 * Memory: a set and its vectors belong to the memory context that is current when the set is
 * created.  By-reference results of core's functions belong to set->page_cxt, which the feed resets
 * for each page.
 */
#ifndef GPUAGG_EXPR_H
#define GPUAGG_EXPR_H

#include "postgres.h"

#include "access/htup_details.h"
#include "nodes/execnodes.h"

#include "batch.h"

#define EXPR_ROWS MaxHeapTuplesPerPage

/*
 * Once the by-reference results of a page take this many bytes, its remaining rows take the scalar
 * fallback.
 */
#define EXPR_PAGE_BYTES BATCH_BYTES
/* An expression whose vectors would enlarge a set beyond this many bytes is not compiled. */
#define EXPR_MEMORY (4 * 1024 * 1024)
/* Rows that are examined to decide whether values repeat; see value_numbers.c and memo.c. */
#define EXPR_WINDOW 4096
/* Number of buckets in the hash table of a set's vectors. */
#define EXPR_BUCKETS 256

/* A vector: values and states of one column or intermediate result, for the rows of a page. */
typedef struct Vec
{
	ColumnType type;
	int16 scale;        /* COLUMN_DEC: scale of the integers, the largest display scale */
	int16 least_scale;  /* COLUMN_DEC: the smallest display scale */
	struct Vec *scales; /* COLUMN_I32: the display scale of each value; NULL: all have `scale` */
	bool all_values;    /* every row is VEC_VALUE; `state` is undefined */
	void *values;       /* [row] initialized for every row, whatever its state */
	void *memory;       /* the vector's own array; `values` may point elsewhere */
	uint8 *state;       /* [row] VecState */

	AttrNumber attno; /* table column, which the feed fills; 0: none */
	bool constant;    /* one value for all rows; expr_compact skips it */
	bool lazy;        /* a constant that an operation fills; VEC_FALLBACK before */
	bool filled;      /* that operation has filled it */
	bool masked;      /* rows outside of `mask` may be VEC_FALLBACK just because of the mask */
	const struct ExprMask *mask; /* mask that it was compiled under; NULL: all rows */
	int stage;                   /* stage that computes it */
	int last_stage;              /* last stage that reads it */
	struct Vec *next;            /* list ExprSet.vecs */
	struct Vec *next_of_stage;   /* list ExprStage.vecs */
	struct Vec *next_kept;       /* list ExprSet.kept */

	/*
	 * The number of each value in a dictionary that lives as long as the set (COLUMN_I32); NULL:
	 * none.  VEC_FALLBACK: the value has no number.  Undefined for NULL.
	 */
	struct Vec *codes;
	struct Vec *codes_of; /* the vector whose numbers these are */
	struct Codes *owner;  /* the dictionary of these numbers (value_numbers.c); else NULL */
	struct ExprDictionary *dictionary;

	/* common subexpressions; see share.c */
	Expr *expr;              /* expression that it computes, or NULL */
	uint32 hash;             /* hash of expr or attno */
	struct Vec *same_bucket; /* list in ExprSet.shared */

	/* constants: core evaluates them once in a scan */
	ExprState *source;
	Oid typid;
} Vec;

/*
 * By-reference values with numbers (numerics of decimals).  The values stay where they are; see
 * value_numbers.c and memo.c.
 */
typedef struct ExprDictionary
{
	uint64 id;      /* unique in the process; see Column.dictionary */
	uint32 n;       /* number of values so far */
	Datum *values;  /* [number]; undefined for the number of NULL */
	size_t longest; /* bytes of the longest value */
} ExprDictionary;

/* One expression of a set: a qual, or an expression of the target list. */
typedef struct ExprRoot
{
	Expr *expr;
	Vec *vec;                      /* NULL: all rows take the scalar fallback */
	ExprState *state;              /* for the scalar fallback; NULL before its first row */
	struct SubplanState *subplans; /* subplans of the state; NULL: it has none */
	int stage;
} ExprRoot;

/* The operations of one stage, in the order in which they run. */
typedef struct ExprStage
{
	struct ExprOp *ops;
	struct ExprOp **tail;
	Vec *vecs; /* those that the stage computes */
	bool constants_ready;
} ExprStage;

/*
 * ExprStates of expressions with subplans (subplans.c).  A subplan belongs to its plan node until
 * the query ends.  So these states are made once, not for each rescan.
 */
typedef struct ExprSubplans
{
	List *states; /* SubplanState */
	List *plans;  /* SubplanPlan */
} ExprSubplans;

/*
 * To be called when a scan begins, before its expressions are evaluated: notes which subplans must
 * be executed again, because their parameters have changed.
 */
extern void expr_note_changed_subplans(ExprSubplans *subplans);

struct NodeFacts;

/* The expressions of one scan; see the file's header. */
typedef struct ExprSet
{
	PlanState *parent; /* the scan; has the expression context and the parameters */
	PlanState
		*subplan_parent; /* node to which subplans of expressions are added; initially parent */
	TupleDesc desc;
	MemoryContext cxt;
	MemoryContext page_cxt;
	MemoryContext const_cxt; /* values of constants, until expr_reset */
	uint32 resets;           /* number of calls of expr_reset */
	int nstages;
	ExprStage *stages;
	Vec *vecs;
	Vec *kept; /* those that later stages read, too; valid if kept_known */
	bool kept_known;
	Vec *shared[EXPR_BUCKETS];
	size_t bytes; /* bytes of all vectors */
	ExprSubplans *subplans;

	/* only while a root is compiled */
	Vec *(*compile)(struct ExprSet *set, Expr *expr, int stage); /* see expr_compile */
	void (*describe)(Node *node, struct NodeFacts *facts);       /* see memo.c */
	struct ExprMask *mask;    /* rows for which core evaluates what is being compiled; NULL: all */
	int memo_columns;         /* columns of the enclosing memo; see memo.c */
	Vec *case_value;          /* value of CaseTestExpr */
	struct facts_hash *facts; /* NodeFacts of the root's nodes */
	bool failed;              /* the root cannot be compiled */

	/* Makes row i of the page the scan tuple of the parent's expression context. */
	void (*load_row)(void *owner, int row);
	void *owner;
} ExprSet;

/* Returns an empty set of nstages stages; subplans must outlive it. */
extern ExprSet *expr_set_create(PlanState *parent, TupleDesc desc, int nstages,
								ExprSubplans *subplans);

/* Returns a new list of the quals in the order in which they are best evaluated. */
extern List *expr_order_quals(List *quals, ParamListInfo params);

/* Compiles an expression into a stage. Never fails: the root may have no vector. */
extern ExprRoot *expr_add_root(ExprSet *set, Expr *expr, int stage);

/* As expr_add_root(), for a table column in a column type that the caller chooses. */
extern ExprRoot *expr_add_column_root(ExprSet *set, Var *var, ColumnType type, int16 scale,
									  int stage);

/*
 * As expr_add_root(), but the root's vector has the display scales of a numeric expression.  If its
 * type is COLUMN_DATUM, it has the values themselves.  The scalar fallback evaluates the
 * expression, not its scale.
 */
extern ExprRoot *expr_add_scales_root(ExprSet *set, Expr *expr, int stage);

/* Numbers the values of a root (Vec.codes) if it is a by-reference column or decimals. */
extern void expr_add_codes(ExprSet *set, ExprRoot *root);

/*
 * Returns whether an expression calls a function that takes much longer than it takes to find a
 * text in a hash table: one with a regular expression, or one that says so by its cost.
 */
extern bool expr_is_costly(Expr *expr);

/* Returns a new ExprDictionary.id, for dictionaries of expressions or of feeds. */
extern uint64 expr_new_dictionary(void);

/* Forgets the values of constants, for a rescan with other parameters. */
extern void expr_reset(ExprSet *set);

/*
 * Returns whether no later stage reads what the stage computes, except its columns.  All roots must
 * have been added.
 */
extern bool expr_stage_is_closed(const ExprSet *set, int stage);

/* Runs a stage over n > 0 rows. The feed must have filled the stage's columns. */
extern void expr_run(ExprSet *set, int stage, int n);

/* Keeps rows sel[0 .. n-1] (ascending) of the vectors that stages after `stage` read. */
extern void expr_compact(ExprSet *set, int stage, const uint16 *sel, int n);

/*
 * Repeats rows of these vectors, in place: row i becomes row sel[i], which is <= i.  sel ascends,
 * and may have an index several times.
 */
extern void expr_expand(ExprSet *set, int stage, const uint16 *sel, int n);

/*
 * The scalar fallback: returns core's value of a root for one row of the page.  By-reference values
 * are valid until the next call.
 */
extern Datum expr_evaluate_scalar(ExprSet *set, ExprRoot *root, int row, bool *isnull);

/*
 * Returns the value of a row in state VEC_VALUE as a Datum.  Numerics are made in the current
 * memory context; other by-reference values stay where they are.
 */
extern Datum expr_datum(const Vec *vec, int row);

#endif /* GPUAGG_EXPR_H */

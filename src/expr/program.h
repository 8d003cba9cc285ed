/*
 * program.h
 *	  Compiled expressions as a program for the GPU (operators/vector_program.h).
 *
 * A program is built by adding roots of one ExprSet, and is then laid out.  It is rejected, with a
 * reason, if something cannot be translated: values that are Datums, calls of core's functions,
 * constants that core might not evaluate.  Anything that is added later has no effect.
 */
#ifndef GPUAGG_EXPR_PROGRAM_H
#define GPUAGG_EXPR_PROGRAM_H

#include "postgres.h"

#include "expr/expr.h"
#include "protocol.h"

/* A column of the table that the program loads, in the form of a register. */
typedef struct ExprStored
{
	AttrNumber attno;
	ColumnType type;
	int16 scale;
	bool coded;    /* numbers in the column's dictionary, as COLUMN_I32 */
	bool presence; /* only whether values are NULL; see heap_cached_presence() */
} ExprStored;

/* The range of an integer register; min > max: no values. */
typedef struct ExprInterval
{
	int64 min, max;
} ExprInterval;

/*
 * A table of values for VECTOR_LOOKUP (program_lookup.c).  It has the values of an expression over
 * one column: for each number of a coded column's dictionary, or, if the column is one of a join's
 * inner rows, for each key.
 */
typedef struct ExprLookup
{
	Expr *expr;       /* NULL: the value of the column */
	AttrNumber attno; /* the column's number in the ExprSet; 0: whether an inner row exists */
	int stored;       /* index of the column in ExprProgram.stored; -1: it is a column of a join */
	int join;         /* the join; -1: none */
	ColumnType type;  /* type of the expression; COLUMN_DATUM: the caller numbers the values */
	int16 scale;
	bool presence;   /* only whether the column is NULL */
	bool slots;      /* a hash table that finds the inner rows of a join: for VECTOR_FIND */
	bool nulls_stay; /* with COLUMN_DATUM: NULL has no number */
	/* the value is its rank among all values of a coded text by this collation; else InvalidOid */
	Oid ranked;
	int column; /* the caller's column, with COLUMN_DATUM; else -1 */

	/* set when the table is filled: */
	uint32 n;              /* numbers, or entries of a join; entry n is for NULL */
	int64 *values;         /* [number] in the form of a register */
	uint8 *states;         /* [number] VectorState */
	bool nulls;            /* the value of some number is NULL, */
	bool undetermined;     /* or undetermined */
	uint8 null;            /* VectorState for NULL */
	ExprInterval interval; /* range of all values, if the type is an integer */
} ExprLookup;

/* The columns of the inner rows of joins, which follow those of the table in the ExprSet. */
typedef struct ExprJoins
{
	Index table_varno; /* number of the table in Vars */
	Index inner_varno; /* number of all inner rows in Vars */
	int natts;         /* number of the table's columns */
	const int *join;   /* [number of the column - natts - 1] its join */
	uint16 *keys;      /* [join] operand of the key; VECTOR_NONE before expr_program_join() */
} ExprJoins;

/* How an integer among several keys becomes a part of their number; see VECTOR_KEY_PART. */
typedef struct ExprKeyPart
{
	int64 least, greatest;
	int64 origin;
	int64 factor;
} ExprKeyPart;

/* A join, for expr_program_join(). */
typedef struct ExprJoin
{
	int nkeys;
	ExprRoot *const *keys;
	const ExprKeyPart *parts; /* [key] NULL: there is one key, which is its own number */
	bool hashed; /* a hash table has the number of the inner row; else the key's number finds it */
	bool outer;  /* rows are kept whether or not they have an inner row; else: */
	bool found;  /* rows are kept that have one, or that have none */
} ExprJoin;

typedef struct ExprEvaluation ExprEvaluation;

/* A program that is being built; see the file's header. */
typedef struct ExprProgram
{
	ExprSet *set;
	uint16 (*translate)(struct ExprProgram *p, Vec *vec); /* see expr_program_vec */
	const char *unsupported_reason; /* why the program is rejected; NULL: it is not */
	/*
	 * NULL, or why an expression must not be evaluated for hidden rows.  If the program is rejected
	 * later, this is the reason given.
	 */
	const char *harm;
	int nstored;
	ExprStored stored[WIRE_MAX_STORED_COLS];

	/* The instructions, each with a register of its own: the one with its number. */
	VectorProgram flat;

	/* constants to be evaluated once it is known that there are rows */
	int nwaiting;
	Vec *waiting[VECTOR_MAX_CONSTANTS];
	uint16 places[VECTOR_MAX_CONSTANTS];

	int nlookups;
	ExprLookup lookups[WIRE_MAX_TABLES];
	const ExprJoins *joins; /* NULL: the table is not joined */

	/* operands of the vectors translated so far */
	int nvecs;
	const Vec *vecs[VECTOR_MAX_INSTRUCTIONS + VECTOR_MAX_CONSTANTS];
	uint16 operands[VECTOR_MAX_INSTRUCTIONS + VECTOR_MAX_CONSTANTS];
} ExprProgram;

/* Returns an empty program in the current memory context.  joins: NULL if there are none */
extern ExprProgram *expr_program_create(ExprSet *set, const ExprJoins *joins);

/* Rejects the program, unless it is already rejected; returns VECTOR_NONE. */
extern uint16 expr_program_reject(ExprProgram *p, const char *why);

/* Returns the operand with a vector's values; VECTOR_NONE if the program is rejected. */
static inline uint16
expr_program_vec(ExprProgram *p, Vec *vec)
{
	return p->translate(p, vec);
}

/*
 * Returns the operand with a root's values in this type and scale.  Rejects the program if the root
 * is evaluated row by row, unless a lookup can have its values.
 */
extern uint16 expr_program_root(ExprProgram *p, const ExprRoot *root, ColumnType type, int16 scale);

/*
 * Returns the operand with the codes of a column in its dictionary, if the expression is just a
 * column, perhaps as another type with the same values; *stored: the column's index. Returns
 * VECTOR_NONE, without rejecting the program, if it is another expression.
 */
extern uint16 expr_program_codes(ExprProgram *p, const Expr *expr, int *stored);

/*
 * Returns the operand with the ranks of a text among all values of its column, by a collation; the
 * same conditions as above.  The caller's table has ranks from 0 on.
 */
extern uint16 expr_program_ranks(ExprProgram *p, const Expr *expr, Oid collation, int *stored);

/*
 * Returns the operand with the values of an expression over one column, by lookup.  Returns
 * VECTOR_NONE, without rejecting the program, if that is not possible: the column is not coded and
 * is not a key (`column` < 0), or the expression may not be evaluated for values of rows that the
 * query does not see.  nulls_stay: see ExprLookup
 */
extern uint16 expr_program_lookup(ExprProgram *p, Expr *expr, ColumnType type, int16 scale,
								  int column, bool nulls_stay);

/*
 * A part of a choice (CASE, COALESCE) between values by reference: a constant, a column, or another
 * expression.
 */
typedef struct ExprPart
{
	bool constant; /* then `value` is valid unless `null` is set */
	bool null;
	Datum value;
	AttrNumber attno; /* the column's number in the ExprSet; 0: it is none */
	Expr *expr;       /* the column or the other expression; NULL: it is not known */
} ExprPart;

/*
 * Looks at the parts of a choice, in the order of evaluation, until `look` returns false; then it
 * returns false, too.  An expression that is no choice is a part.
 */
extern bool expr_program_look(ExprProgram *p, Vec *vec,
							  bool (*look)(void *arg, const ExprPart *part), void *arg);
/*
 * Returns the operand with the result of a choice, given the operands of its parts, all in the same
 * form.
 */
extern uint16 expr_program_choose(ExprProgram *p, Vec *vec,
								  uint16 (*operand)(void *arg, const ExprPart *part), void *arg);

/*
 * Adds join j, whose keys are integers by which at most one inner row is found.  Conditions and
 * values that read columns of the inner rows can be added afterwards.
 */
extern void expr_program_join(ExprProgram *p, int j, const ExprJoin *join);

/* Allocates a lookup's values and states for n entries and NULL, in the current memory context. */
extern void expr_lookup_allocate(ExprLookup *lookup, uint32 n);
/*
 * Begins to evaluate a lookup for n entries of the column and for NULL, and allocates it, in the
 * current memory context.
 */
extern ExprEvaluation *expr_evaluation_begin(ExprProgram *p, ExprLookup *lookup, uint32 n);
/*
 * Evaluates the lookup for n entries, which are those from `from` on; entries NULL: for NULL.  Sets
 * their states, and their values or, if `values` is not NULL, that array.  nulls: the entries that
 * have no value, whose results are NULL; or NULL.  May reject the program.
 */
extern void expr_evaluation_add(ExprEvaluation *e, uint32 from, const Datum *entries,
								const bool *nulls, uint32 n, Datum *values);
extern void expr_evaluation_end(ExprEvaluation *e);
/*
 * Evaluates a lookup for n entries of the column and for NULL, in the current memory context:
 * allocates it, sets its states, and returns the values.  May reject the program.  nulls: the
 * entries that have no value, whose results are NULL; or NULL.
 */
extern Datum *expr_lookup_evaluate(ExprProgram *p, ExprLookup *lookup, const Datum *entries,
								   const bool *nulls, uint32 n);
/* Sets a lookup's values, unless it is COLUMN_DATUM, to the register forms of these. */
extern void expr_lookup_convert(ExprLookup *lookup, const Datum *values);
/* Evaluates a lookup, unless it is COLUMN_DATUM, and converts the values. */
extern void expr_lookup_fill(ExprProgram *p, ExprLookup *lookup, const Datum *entries,
							 const bool *nulls, uint32 n);
/* Sets what is derived from the values and states of a table that is filled. */
extern void expr_lookup_finish(ExprLookup *lookup);

/*
 * Returns an operand that is NULL for exactly the rows for which the root is NULL.  Its values mean
 * nothing else.  The root may have any type.
 */
extern uint16 expr_program_presence(ExprProgram *p, const ExprRoot *root);

/* Adds a root to the filter of the program: only rows for which it is true are kept. */
extern void expr_program_filter(ExprProgram *p, const ExprRoot *root);

/*
 * Adds a condition to the filter: it is undetermined for rows that pass the filter so far and for
 * which the root is undetermined.
 */
extern void expr_program_check(ExprProgram *p, const ExprRoot *root);

/* Makes all readers of an operand read another one. */
extern void expr_program_replace(ExprProgram *p, uint16 operand, uint16 by);

/*
 * Appends an instruction, unless there is an equal one.  Returns the operand with its result;
 * VECTOR_NONE if the program is rejected.  a, b, c: operands; c of VECTOR_IN is a count.
 */
extern uint16 expr_program_emit(ExprProgram *p, VectorOp op, int data, uint16 a, uint16 b,
								uint16 c);

/* Appends consecutive constants, in the form of a register; returns the operand of the first. */
extern uint16 expr_program_constants(ExprProgram *p, int n, const int64 *bits);

/*
 * Sets the register form of a Datum of this type and scale; false if there is none, or if it is a
 * float that is not finite.
 */
extern bool expr_register_bits(ColumnType type, int16 scale, Datum value, int64 *bits);

/* Returns the operand of a constant in register form, or of NULL; equal constants share one. */
extern uint16 expr_program_constant(ExprProgram *p, int64 bits, bool isnull);

/*
 * Evaluates the constants that core evaluates only if there is a row.  Call it once a row is known
 * to exist.
 */
extern void expr_program_settle(ExprProgram *p);

/* Returns the index in p->stored of the column that an operand loads; -1: it is not a load. */
extern int expr_program_stored(const ExprProgram *p, uint16 operand);

/*
 * Sets nulls[i] to whether the result of instruction i can be NULL.  stored: bit s is set if stored
 * column s can have NULLs.
 */
extern void expr_program_nulls(const ExprProgram *p, uint32 stored, bool *nulls);

/* Returns the range of an integer operand of this type, given the ranges of the stored columns. */
extern ExprInterval expr_program_interval(const ExprProgram *p, const ExprInterval *stored,
										  uint16 operand, ColumnType type);

/*
 * Returns an estimate of the largest magnitude of a float operand of this type; 0 if there is none.
 * ends: the least and the greatest value of each stored column, in the form of a register.
 */
extern double expr_program_magnitude(const ExprProgram *p, const int64 (*ends)[2], uint16 operand,
									 ColumnType type);

/*
 * Assigns registers and sets *out to the finished program.  outputs: n operands of p, which are
 * changed to registers or constants of *out.  Returns false if the program is rejected.
 */
extern bool expr_program_finish(ExprProgram *p, VectorProgram *out, uint16 *outputs, int n);

#endif /* GPUAGG_EXPR_PROGRAM_H */

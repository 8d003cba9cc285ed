/*
 * program.h
 *	  Compiled expressions as a program that the GPU runs (operators/vector_program.h).
 *
 * A program is built by adding roots of one ExprSet, and then laid out.  What is not translated
 * (values that are Datums, calls of core's functions, constants that core might not evaluate) makes
 * it refused, with a reason; everything that is added to it after that is without effect.
 */
#ifndef GPUAGG_EXPR_PROGRAM_H
#define GPUAGG_EXPR_PROGRAM_H

#include "postgres.h"

#include "expr/expr.h"
#include "protocol.h"

/* A column of the table that the program loads, as a register has it. */
typedef struct ExprStored
{
	AttrNumber attno;
	ColumnType type;
	int16 scale;
	bool coded;    /* numbers in the column's dictionary, as COLUMN_I32 */
	bool presence; /* its NULLs alone; see heap_cached_presence() */
} ExprStored;

/* Values of an integer register; min > max: none. */
typedef struct ExprInterval
{
	int64 min, max;
} ExprInterval;

/* An expression of one coded column, by a table with a value for each number (program_lookup.c). */
typedef struct ExprLookup
{
	Expr *expr;
	int stored;      /* the column */
	ColumnType type; /* of the expression; COLUMN_DATUM: the caller gives values numbers */
	int16 scale;
	int column; /* the caller's, with COLUMN_DATUM; else -1 */

	/* once it is filled: */
	uint32 n;              /* numbers; one more cell is that of NULL */
	int64 *values;         /* as a register has them */
	uint8 *states;         /* VectorState */
	bool nulls;            /* some number's cell is NULL */
	ExprInterval interval; /* of all values, if the type is an integer */
} ExprLookup;

typedef struct ExprProgram
{
	ExprSet *set;
	uint16 (*translate)(struct ExprProgram *p, Vec *vec); /* see expr_program_vec */
	const char *unsupported_reason;                       /* NULL: none so far */
	const char *harm; /* why a lookup was not made: the reason, if there is no other way; or NULL */
	int nstored;
	ExprStored stored[WIRE_MAX_STORED_COLS];

	/* The instructions; each sets the register of its own number. */
	VectorProgram flat;

	/* constants that are evaluated once it is known that there are rows */
	int nwaiting;
	Vec *waiting[VECTOR_MAX_CONSTANTS];
	uint16 places[VECTOR_MAX_CONSTANTS];

	int nlookups;
	ExprLookup lookups[WIRE_MAX_TABLES];

	/* what vectors have become */
	int nvecs;
	const Vec *vecs[VECTOR_MAX_INSTRUCTIONS + VECTOR_MAX_CONSTANTS];
	uint16 operands[VECTOR_MAX_INSTRUCTIONS + VECTOR_MAX_CONSTANTS];
} ExprProgram;

/* In the current memory context. */
extern ExprProgram *expr_program_create(ExprSet *set);

/* Notes why it is refused, unless that is known already; returns VECTOR_NONE. */
extern uint16 expr_program_reject(ExprProgram *p, const char *why);

/* The operand that has a vector's values; VECTOR_NONE if it is refused. */
static inline uint16
expr_program_vec(ExprProgram *p, Vec *vec)
{
	return p->translate(p, vec);
}

/*
 * The same for a root, of this type and scale; one that is evaluated row by row is refused, but for
 * lookups.
 */
extern uint16 expr_program_root(ExprProgram *p, const ExprRoot *root, ColumnType type, int16 scale);

/*
 * The operand with the values of an expression over one column, by lookup.  VECTOR_NONE, and
 * nothing is refused, if it cannot be had that way: the column is one that is not coded unless it
 * is a key (`column` at least 0), or the expression may not be evaluated for values of rows that
 * the query does not see.
 */
extern uint16 expr_program_lookup(ExprProgram *p, Expr *expr, ColumnType type, int16 scale,
								  int column);

/*
 * Evaluates a lookup for n entries of the column's dictionary and for NULL, in the current memory
 * context.
 */
extern void expr_lookup_evaluate(ExprProgram *p, const ExprLookup *lookup, const Datum *entries,
								 uint32 n, Datum *values, uint8 *states);
/* Fills one that is not of COLUMN_DATUM; may refuse the program. */
extern void expr_lookup_fill(ExprProgram *p, ExprLookup *lookup, const Datum *entries, uint32 n);
/* Notes what the cells, which are filled, have in common. */
extern void expr_lookup_finish(ExprLookup *lookup);

/* The operand with the NULLs of a root of any type. */
extern uint16 expr_program_presence(ExprProgram *p, const ExprRoot *root);

/* Rows of which the root is not true are left out from here on. */
extern void expr_program_filter(ExprProgram *p, const ExprRoot *root);

/* Rows that pass the filters so far, and of which the root cannot be told, cannot be told. */
extern void expr_program_check(ExprProgram *p, const ExprRoot *root);

/* Appends an operation; c is a number with VECTOR_IN.  Returns its result. */
extern uint16 expr_program_emit(ExprProgram *p, VectorOp op, int data, uint16 a, uint16 b,
								uint16 c);

/* Constants that follow each other, as a register has them; the operand of the first. */
extern uint16 expr_program_constants(ExprProgram *p, int n, const int64 *bits);

/*
 * A Datum of this type and scale as a register has it; false: that cannot be, or it is a float that
 * is not finite.
 */
extern bool expr_register_bits(ColumnType type, int16 scale, Datum value, int64 *bits);

/* A constant, or NULL. */
extern uint16 expr_program_constant(ExprProgram *p, int64 bits, bool isnull);

/* There are rows: evaluates the constants that core evaluates for the first of them. */
extern void expr_program_settle(ExprProgram *p);

/* The number of the stored column of which an operand is a copy, or -1. */
extern int expr_program_stored(const ExprProgram *p, uint16 operand);

/*
 * Bit i: the result of instruction i may be NULL, where bit s of `stored` is set if stored column s
 * may be.
 */
extern void expr_program_nulls(const ExprProgram *p, uint32 stored, bool *nulls);

/* The integers that an operand of this type may be, where stored columns are within these. */
extern ExprInterval expr_program_interval(const ExprProgram *p, const ExprInterval *stored,
										  uint16 operand, ColumnType type);

/*
 * The program for n outputs, whose operands become those of the program.  False: it is refused.
 */
extern bool expr_program_finish(ExprProgram *p, VectorProgram *out, uint16 *outputs, int n);

#endif /* GPUAGG_EXPR_PROGRAM_H */

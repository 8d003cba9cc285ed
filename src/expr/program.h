/*
 * program.h
 *	  Compiled expressions as a program that the GPU runs (operators/vector_program.h).
 *
 * A program is built by adding roots of one ExprSet, and then laid out.  What is not translated (values that
 * are Datums, calls of core's functions, constants that core might not evaluate) makes it refused, with a reason;
 * everything that is added to it after that is without effect.
 */
#ifndef GPUAGG_EXPR_PROGRAM_H
#define GPUAGG_EXPR_PROGRAM_H

#include "postgres.h"

#include "expr/expr.h"
#include "protocol.h"

/* A column of the table that the program loads, as a register has it. */
typedef struct ExprStored
{
	AttrNumber	attno;
	ColumnType	type;
	int16		scale;
} ExprStored;

typedef struct ExprProgram
{
	ExprSet    *set;
	uint16		(*translate) (struct ExprProgram *p, Vec *vec);	/* see expr_program_vec */
	const char *refusal;		/* NULL: none so far */
	int			nstored;
	ExprStored	stored[WIRE_MAX_STORED_COLS];

	/* The instructions; each sets the register of its own number. */
	VectorProgram flat;

	/* constants that are evaluated once it is known that there are rows */
	int			nwaiting;
	Vec		   *waiting[VECTOR_MAX_CONSTANTS];
	uint16		places[VECTOR_MAX_CONSTANTS];

	/* what vectors have become */
	int			nvecs;
	const Vec  *vecs[VECTOR_MAX_INSTRUCTIONS + VECTOR_MAX_CONSTANTS];
	uint16		operands[VECTOR_MAX_INSTRUCTIONS + VECTOR_MAX_CONSTANTS];
} ExprProgram;

/* Values of an integer register; min > max: none. */
typedef struct ExprInterval
{
	int64		min,
				max;
} ExprInterval;

/* In the current memory context. */
extern ExprProgram *expr_program_create(ExprSet *set);

/* Notes why it is refused, unless that is known already; returns VECTOR_NONE. */
extern uint16 expr_program_refuse(ExprProgram *p, const char *why);

/* The operand that has a vector's values; VECTOR_NONE if it is refused. */
static inline uint16
expr_program_vec(ExprProgram *p, Vec *vec)
{
	return p->translate(p, vec);
}

/* The same for a root; one that is evaluated row by row is refused. */
extern uint16 expr_program_root(ExprProgram *p, const ExprRoot *root);

/* Rows of which the root is not true are left out from here on. */
extern void expr_program_filter(ExprProgram *p, const ExprRoot *root);

/* Rows that pass the filters so far, and of which the root cannot be told, cannot be told. */
extern void expr_program_check(ExprProgram *p, const ExprRoot *root);

/* Appends an operation; c is a number with VECTOR_IN.  Returns its result. */
extern uint16 expr_program_emit(ExprProgram *p, VectorOp op, int data, uint16 a, uint16 b, uint16 c);

/* Constants that follow each other, as a register has them; the operand of the first. */
extern uint16 expr_program_constants(ExprProgram *p, int n, const int64 *bits);

/* A constant, or NULL. */
extern uint16 expr_program_constant(ExprProgram *p, int64 bits, bool isnull);

/* There are rows: evaluates the constants that core evaluates for the first of them. */
extern void expr_program_settle(ExprProgram *p);

/* The number of the stored column of which an operand is a copy, or -1. */
extern int	expr_program_stored(const ExprProgram *p, uint16 operand);

/* Bit i: the result of instruction i may be NULL, where bit s of `stored` is set if stored column s may be. */
extern void expr_program_nulls(const ExprProgram *p, uint32 stored, bool *nulls);

/* The integers that an operand of this type may be, where stored columns are within these. */
extern ExprInterval expr_program_interval(const ExprProgram *p, const ExprInterval *stored, uint16 operand,
										  ColumnType type);

/*
 * The program for n outputs, whose operands become those of the program.  False: it is refused.
 */
extern bool expr_program_finish(ExprProgram *p, VectorProgram *out, uint16 *outputs, int n);

#endif							/* GPUAGG_EXPR_PROGRAM_H */

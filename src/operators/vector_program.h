/*
 * vector_program.h
 *	  Programs of vector operations, which the GPU and the CPU run alike.
 *
 * A program computes registers for each row of a tile: first loads, which copy stored columns
 * to registers, then operations over registers and constants.  A register has a value of 64 bits and a state
 * (VectorState) for each row.  The operations are those of expr/eval.c, with the same values and states:
 * the scalar ones are the rows of vector_ops.h, and three-valued logic follows.  Decimals
 * are integers of 64 bits here; what exceeds them is VECTOR_UNTOLD.
 *
 * Plain C for gcc and nvcc.
 */
#ifndef GPUAGG_VECTOR_PROGRAM_H
#define GPUAGG_VECTOR_PROGRAM_H

#include <stdint.h>

#define VECTOR_MAX_INSTRUCTIONS 128
#define VECTOR_MAX_REGISTERS 24
#define VECTOR_MAX_CONSTANTS 64

typedef enum VectorState
{
	VECTOR_VALUE = 0,
	VECTOR_NULL = 1,
	VECTOR_UNTOLD = 2			/* the outcome is core's to tell: an error, or a rare case */
} VectorState;

/* Operands from this one on are constants: operand - VECTOR_CONSTANT is the number. */
#define VECTOR_CONSTANT 0x8000
#define VECTOR_NONE 0xffff

typedef struct VectorInstruction
{
	uint16_t	op;
	uint16_t	r;				/* register */
	uint16_t	a,				/* operands */
				b,
				c;
	uint16_t	data;			/* of the operation: a WireType for loads, a power of ten, ... */
} VectorInstruction;

typedef struct VectorConstant
{
	int64_t		bits;			/* as a register has them: integers sign-extended, floats as their bits */
	uint32_t	state;
	uint32_t	pad;
} VectorConstant;

typedef struct VectorProgram
{
	uint32_t	ninstructions;
	uint32_t	nregisters;
	uint32_t	nconstants;
	uint16_t	filter;			/* a boolean: rows that are not true are left out; or VECTOR_NONE */
	uint16_t	pad;
	VectorInstruction instructions[VECTOR_MAX_INSTRUCTIONS];
	VectorConstant constants[VECTOR_MAX_CONSTANTS];
} VectorProgram;

#endif							/* GPUAGG_VECTOR_PROGRAM_H */

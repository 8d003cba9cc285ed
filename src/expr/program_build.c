/*
 * program_build.c
 *	  Adds constants and operations to a program, and rejects programs.
 */
#include "postgres.h"

#include "expr/program.h"

uint16
expr_program_reject(ExprProgram *p, const char *why)
{
	if (p->unsupported_reason == NULL)
		p->unsupported_reason = p->harm ? p->harm : why;
	return VECTOR_NONE;
}

uint16
expr_program_constants(ExprProgram *p, int n, const int64 *bits)
{
	VectorProgram *flat = &p->flat;
	uint16 first = VECTOR_CONSTANT + flat->nconstants;

	if (p->unsupported_reason || n > VECTOR_MAX_CONSTANTS - (int) flat->nconstants)
		return expr_program_reject(p, "the query has more constants than the GPU supports");
	for (int i = 0; i < n; i++)
		flat->constants[flat->nconstants++].bits = bits[i];
	return first;
}

/* Returns the operand of a constant, which is added if it is new. */
static uint16
lookup_or_add_constant(ExprProgram *p, int64 bits, uint8 state)
{
	VectorProgram *flat = &p->flat;
	uint16 operand;

	for (int i = 0; i < flat->nconstants; i++)
		if (flat->constants[i].bits == bits && flat->constants[i].state == state &&
			flat->constants[i].pad == 0)
			return VECTOR_CONSTANT + i;
	operand = expr_program_constants(p, 1, &bits);
	if (operand != VECTOR_NONE)
		flat->constants[operand - VECTOR_CONSTANT].state = state;
	return operand;
}

uint16
expr_program_constant(ExprProgram *p, int64 bits, bool isnull)
{
	return lookup_or_add_constant(p, isnull ? 0 : bits, isnull ? VECTOR_NULL : VECTOR_VALUE);
}

uint16
expr_program_emit(ExprProgram *p, VectorOp op, int data, uint16 a, uint16 b, uint16 c)
{
	VectorProgram *flat = &p->flat;
	VectorInstruction in = {op, 0, a, b, c, data};

	if (p->unsupported_reason)
		return VECTOR_NONE;
	for (int i = 0; i < flat->ninstructions; i++)
	{
		in.r = i;
		if (memcmp(&flat->instructions[i], &in, sizeof(in)) == 0)
			return i;
	}
	if (flat->ninstructions == VECTOR_MAX_INSTRUCTIONS)
		return expr_program_reject(p, "the expressions are longer than the GPU supports");
	in.r = flat->ninstructions;
	flat->instructions[flat->ninstructions++] = in;
	return in.r;
}

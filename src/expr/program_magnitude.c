/*
 * program_magnitude.c
 *	  Estimates how large the floats are that a program computes.
 *
 * The program runs over a few rows that are made of the ends of the stored columns' ranges.  Sums
 * and products are often largest there.
 */
#include "postgres.h"

#include <math.h>

#include "expr/program.h"
#include "operators/vector_run.h"

/* All columns at their least and at their greatest values, and each other one at either. */
#define ROWS 4

/* Returns whether stored column s has its greatest value in a row. */
static bool
at_greatest(int row, int s)
{
	return row < 2 ? row == 1 : (row + s) % 2 == 0;
}

double
expr_program_magnitude(const ExprProgram *p, const int64 (*ends)[2], uint16 operand,
					   ColumnType type)
{
	int64 *values = palloc0(VECTOR_MAX_INSTRUCTIONS * ROWS * sizeof(int64));
	uint8 *states = palloc0(VECTOR_MAX_INSTRUCTIONS * ROWS);
	VectorOperand result = vector_operand(operand, p->flat.constants, values, states, ROWS);
	double greatest = 0;

	for (int i = 0; operand < VECTOR_CONSTANT && i <= operand; i++)
	{
		const VectorInstruction *in = &p->flat.instructions[i];

		if (in->op == VECTOR_LOAD)
			for (int row = 0; row < ROWS; row++)
				values[i * ROWS + row] = ends[in->a][at_greatest(row, in->a)];
		else if (vector_reads_table(in->op))
			memset(&states[i * ROWS], VECTOR_UNDETERMINED, ROWS);
		else
			vector_run(in, p->flat.constants, values, states, ROWS, 0, 1, ROWS);
	}
	for (int row = 0; row < ROWS; row++)
	{
		int64 bits = vector_value(&result, row);
		double x = fabs(type == COLUMN_F32 ? vector_get_F32(bits) : vector_get_F64(bits));

		if (vector_state(&result, row) == VECTOR_VALUE && x > greatest && !isinf(x))
			greatest = x;
	}
	pfree(values);
	pfree(states);
	return greatest;
}

/*
 * cuda_stub_vector.c
 *	  Instructions of vector programs on the host. They are in a file of their own because
 *	  compilers need long for them; see cuda_stub_kernels.h.
 */
#include "cuda_stub_kernels.h"
#include "operators/vector_run.h"

void
stub_run_instruction(const VectorInstruction *in, const StubTables *from,
					 const VectorConstant *constants, int64_t *values, uint8_t *states, int tile,
					 int n)
{
	if (vector_reads_table(in->op))
		vector_lookup(in, from->tables, from->cells, constants, values, states, tile, 0, 1, n);
	else
		vector_run(in, constants, values, states, tile, 0, 1, n);
}

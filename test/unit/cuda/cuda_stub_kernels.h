/*
 * cuda_stub_kernels.h
 *	  The kernel library and the server's small kernels on the host, row by row
 *	  with the operators of monoid.h, for tests of the device layer.
 *
 *	cuda_stub_kernels.c		what all of them share
 *	cuda_stub_hist.c		histograms, and programs of their calls in tiles
 *	cuda_stub_tables.c		hash tables of groups
 *	cuda_stub_segments.c	rows in order, segments and runs of them
 *	cuda_stub_batches.c		the server's: rows of batches: bins, sketches, inputs of operators in
 *							order
 *	cuda_stub_groups.c		the server's: keys of rows, and groups
 *	cuda_stub_resident.c	the server's: rows of stored columns
 *	cuda_stub_sets.c		the server's: values of sets
 *
 * Each function is one launch of the stub.  What the headers leave undefined (a
 * hash table's order, workspaces) is as simple as possible, but workspaces are
 * requested as by the real library.
 */
#ifndef GPUAGG_CUDA_STUB_KERNELS_H
#define GPUAGG_CUDA_STUB_KERNELS_H

#include <string.h>

#include "cuda_stub.h"
#include "device_cuda/kernels.h"

#define WORKSPACE 4096

/* Answers how much memory is wanted; writes to all of it later, so that too little shows. */
#define SIZE(workspace, workspace_bytes) \
	do \
	{ \
		if ((workspace) == NULL) \
		{ \
			*(workspace_bytes) = WORKSPACE; \
			return GPUAGG_CUDA_OK; \
		} \
		if (*(workspace_bytes) < WORKSPACE) \
			return GPUAGG_CUDA_WORKSPACE; \
		memset(workspace, 0x77, WORKSPACE); \
	} while (0)

/* ---- values ---- */

typedef struct StubInput
{
	GpuaggColumn x;
	GpuaggColumn y;
	int64_t row; /* in the batch */
} StubInput;

/* Bit i; of no bitmap every one is set. */
extern bool stub_is_valid(const uint8_t *validity, int64_t i);
/* Of a column of integers. */
extern int64_t stub_load_integer(const GpuaggColumn *c, int64_t i);
extern double stub_load_double(const GpuaggColumn *c, int64_t i);
/*
 * The library refuses floats for integers, other than of pairs; so does this, by an end of the
 * program.
 */
extern void stub_check_input(const GpuaggSlot *slot);
/* The same column, as the library has it. */
extern GpuaggColumn stub_column_of(const DeviceColumn *c);

/* ---- operators ---- */

typedef struct StubOperator
{
	int (*row)(void *state, const StubInput *r);  /* a state with a row more; error bits */
	void (*fill)(char *state, int64_t n);         /* n identities */
	void (*step)(char *state, const char *input); /* a state with a packed input more */
} StubOperator;

/* By MonoidId. */
extern const StubOperator stub_operators[];

#endif /* GPUAGG_CUDA_STUB_KERNELS_H */

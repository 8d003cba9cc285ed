/*
 * cuda_stub_kernels.h
 *	  The kernel library and the server's small kernels on the host, with the operators of monoid.h.
 *
 *	cuda_stub_kernels.c		values of columns, operators
 *	cuda_stub_vector.c		instructions of vector programs
 *	cuda_stub_hist.c		histograms, and their programs in tiles
 *	cuda_stub_tables.c		hash tables of groups
 *	cuda_stub_segments.c	rows in order, segments and runs of rows
 *	cuda_stub_batches.c		device_cuda/kernels.h: bins, sketches and inputs of ordered operators
 *	cuda_stub_groups.c		device_cuda/kernels.h: keys of rows, and groups
 *	cuda_stub_resident.c	device_cuda/kernels.h: rows of stored columns
 *	cuda_stub_sets.c		device_cuda/kernels.h: values of sets
 *
 * Each function is one launch of the stub. Where the headers leave something undefined (the order
 * of a hash table, the size of a workspace), the stub does the simplest thing; but each function
 * that takes a workspace in the real library takes one here.
 */
#ifndef GPUAGG_CUDA_STUB_KERNELS_H
#define GPUAGG_CUDA_STUB_KERNELS_H

#include <string.h>

#include "cuda_stub.h"
#include "device_cuda/kernels.h"

#define WORKSPACE 4096

/* Returns the size of the workspace, or overwrites all of it, so that too little memory is found.
 */
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

/* Returns whether value i is not NULL. Without a bitmap there are no NULLs. */
extern bool stub_is_valid(const uint8_t *validity, int64_t i);
/* Returns a value of a column of integers of up to 64 bits. */
extern int64_t stub_load_integer(const GpuaggColumn *c, int64_t i);
/* Returns value i of a column of integers or floats, converted to double. */
extern double stub_load_double(const GpuaggColumn *c, int64_t i);
/* Checks the columns of an operator as the library does: a client may send any. */
extern GpuaggCudaStatus stub_check_slot(const GpuaggSlot *slot);
/* Returns the column in the type of the kernel library. */
extern GpuaggColumn stub_column_of(const DeviceColumn *c);

/* ---- operators ---- */

/* Rows for an operator. Those with a negative bin, a NULL or a false filter are left out. */
typedef struct StubRows
{
	int64_t n;
	const int32_t *bins;   /* bins[i]: bin of row i */
	const uint32_t *order; /* row i is row order[i] of the columns and the filter; or NULL */
	const GpuaggColumn *x;
	const GpuaggColumn *y;
	const uint8_t *filter; /* or NULL */
} StubRows;

typedef struct StubOperator
{
	/* Adds the rows to the states of their bins; returns error bits. */
	int (*update)(void *states, const StubRows *rows);
	/* Writes the operator's input for each of n rows. */
	void (*pack)(void *inputs, const GpuaggColumn *x, const GpuaggColumn *y, int64_t n);
	/* Writes n identities. */
	void (*fill)(char *states, int64_t n);
	/* Adds a packed input to a state. */
	void (*step)(char *state, const char *input);
	/* Adds another state to a state; returns error bits. */
	int (*combine)(void *state, const void *other);
} StubOperator;

/* By MonoidId. */
extern const StubOperator stub_operators[];

/* ---- vector programs ---- */

/* The tables of VECTOR_LOOKUP, as vector_lookup() takes them. */
typedef struct StubTables
{
	const VectorTable *tables;
	const uint8_t *const *cells;
} StubTables;

/* Runs an instruction other than VECTOR_LOAD for the first n rows of a tile. `tile`: its size. */
extern void stub_run_instruction(const VectorInstruction *in, const StubTables *from,
								 const VectorConstant *constants, int64_t *values, uint8_t *states,
								 int tile, int n);

/* ---- rows partitioned by key ---- */

/* Returns the bin of a row, or -1 if the row is left out. */
extern int32_t stub_bin_of_parted_row(const GpuaggKeyParts *parts, int64_t i);
/* Checks that the columns of a call over partitioned rows were moved with them. */
extern GpuaggCudaStatus stub_check_parts(const GpuaggHist *hist);

#endif /* GPUAGG_CUDA_STUB_KERNELS_H */

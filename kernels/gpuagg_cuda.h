/*
 * gpuagg_cuda.h
 *	  Segmented reductions and generalized histograms on CUDA devices.
 *
 * A C interface, with no PostgreSQL and no session in it: used by the server,
 * the unit tests and the benchmarks alike.
 *
 * Conventions of every function unless its comment says otherwise:
 *	- pointers are device pointers, sizes are element counts in 64 bits (up to
 *	  2^33 elements), alignment is that of the element type only;
 *	- work is queued on `stream`; nothing synchronizes, nothing allocates;
 *	- scratch memory is the caller's: call with workspace = NULL to learn the
 *	  size in *workspace_bytes, then with memory of at least that size;
 *	- the result is the first error met, GPUAGG_CUDA_OK otherwise; the text of
 *	  the last CUDA error of this thread (call, file, line) is
 *	  gpuagg_cuda_last_error();
 *	- the same input on the same device gives the same bits on every run,
 *	  except where a function says that float atomics are used.
 *
 * Operators are named by MonoidId (monoid.h); inputs and states are arrays of
 * the types that the monoid list gives.
 */
#ifndef GPUAGG_CUDA_H
#define GPUAGG_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "monoid.h"

#ifdef __cplusplus
extern "C"
{
#endif

typedef struct CUstream_st *gpuagg_stream;	/* a cudaStream_t */

typedef enum GpuaggCudaStatus
{
	GPUAGG_CUDA_OK = 0,
	GPUAGG_CUDA_INVALID,		/* an argument makes no sense */
	GPUAGG_CUDA_UNSUPPORTED,	/* no instance for this operator or shape */
	GPUAGG_CUDA_WORKSPACE,		/* workspace_bytes is too small */
	GPUAGG_CUDA_FULL,			/* a table or output is full; see the function */
	GPUAGG_CUDA_ERROR			/* the CUDA call failed; see gpuagg_cuda_last_error */
} GpuaggCudaStatus;

/*
 * How the values of a column are stored.  NATIVE is the operator's own input
 * type; a narrower number is widened as it is read, so that no widened copy of
 * the column is needed.  Which pairs exist is stated by each section below.
 */
typedef enum GpuaggValueType
{
	GPUAGG_VALUE_NATIVE = 0,
	GPUAGG_VALUE_I8,
	GPUAGG_VALUE_I16,
	GPUAGG_VALUE_I32,
	GPUAGG_VALUE_I64,
	GPUAGG_VALUE_F32,
	GPUAGG_VALUE_F64
} GpuaggValueType;

const char *gpuagg_cuda_last_error(void);

/* ---- segmented reductions ---------------------------------------------- */

/*
 * Segments of a column in CSR form: segment s holds the elements offsets[s] up
 * to, not including, offsets[s + 1]; empty segments are fine.  offsets[0] may be
 * above 0.  Set `sources` for indirect segments: segment s then keeps its
 * length, but its elements start at values[sources[s]].
 *
 * A plan (gpuagg_cuda_segments_plan) stores how the work is cut, so that a call
 * for each of several columns need not search the offsets again.
 */
typedef struct GpuaggSegments
{
	int64_t		nvalues;		/* offsets[nsegments] - offsets[0], known to the host */
	int64_t		nsegments;		/* or the most there can be: */
	const int64_t *nsegments_device;	/* the number, where only the device knows it; else NULL */
	const int64_t *offsets;		/* nsegments + 1 */
	const int64_t *sources;		/* nsegments; or NULL */
	int			chunks;			/* of the plan; 0 without one */
	const int64_t *starts;		/* of the plan; NULL without one */
} GpuaggSegments;

/*
 * Reduces each segment in element order (the operator need not be
 * commutative): states[s] for each segment, identities for empty ones.  Error
 * bits (MonoidError) are or'ed into *errors, which the caller has set; errors
 * may be NULL.
 *
 * Types: NATIVE for every operator; sum_i64 takes I16 and I32, sum_f64 and
 * accum_f64 take F32; UNSUPPORTED otherwise.  Deterministic.  Float sums are
 * folded in an order that depends on the device and the sizes only.
 */
GpuaggCudaStatus gpuagg_cuda_segmented_reduce(const GpuaggSegments *segments, MonoidId op,
											  GpuaggValueType type, const void *values,
											  void *states, uint32_t *errors,
											  void *workspace, size_t *workspace_bytes,
											  gpuagg_stream stream);

/*
 * Plans the segments: fills `chunks` and `starts`, which points into the
 * workspace; that must live, with the offsets unchanged, as long as the plan
 * is used.
 */
GpuaggCudaStatus gpuagg_cuda_segments_plan(GpuaggSegments *segments, void *workspace,
										   size_t *workspace_bytes, gpuagg_stream stream);

/*
 * Segments of equal neighbouring keys (sorted or merely grouped) of 1, 2, 4, 8
 * or 16 bytes, compared byte by byte.  `offsets` has room for n + 1 entries and
 * *nsegments_device for one; both are filled on the stream, and *segments
 * describes them with nsegments = n as the bound.  n is at least 1.
 */
GpuaggCudaStatus gpuagg_cuda_segments_from_keys(int key_size, const void *keys, int64_t n,
												int64_t *offsets, int64_t *nsegments_device,
												GpuaggSegments *segments, void *workspace,
												size_t *workspace_bytes, gpuagg_stream stream);

/*
 * Copies rows of 1, 2, 4, 8, 16 or any multiple of 8 bytes: out[i] =
 * in[index[i]] for i below n, or below *n_device if that is given and smaller.
 * With segments_from_keys's offsets as the index it yields the unique keys.
 */
GpuaggCudaStatus gpuagg_cuda_gather(int row_size, const void *in, const int64_t *index, int64_t n,
									const int64_t *n_device, void *out, gpuagg_stream stream);

/*
 * Ordered input for operators that do not commute: the permutation that sorts
 * the rows by group, then by order key, equal ones staying in input order.
 * Groups are codes below 2^group_bits; order keys are compared as signed
 * numbers.  sorted_groups may be NULL.  n is below 2^32.
 */
GpuaggCudaStatus gpuagg_cuda_order_rows(int64_t n, const int32_t *groups, int group_bits,
										const int64_t *order_keys, int64_t *permutation,
										int32_t *sorted_groups, void *workspace,
										size_t *workspace_bytes, gpuagg_stream stream);

/*
 * out[i] = combine(left[i], right[i]) for n states, as when a group goes on in
 * the next batch.  out may be left or right.
 */
GpuaggCudaStatus gpuagg_cuda_combine(MonoidId op, int64_t n, const void *left, const void *right,
									 void *out, uint32_t *errors, gpuagg_stream stream);

#ifdef __cplusplus
}
#endif

#endif							/* GPUAGG_CUDA_H */

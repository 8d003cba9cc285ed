/*
 * device_kernels.h
 *	  The small kernels of the server: packing keys and inputs, moving states,
 *	  bins of slots that have many a group.  What reduces is in kernels/.
 *
 * All pointers are device pointers; work is queued on the stream.
 */
#ifndef GPUAGG_DEVICE_KERNELS_H
#define GPUAGG_DEVICE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "gpuagg_cuda.h"
#include "protocol.h"

#ifdef __cplusplus
extern "C"
{
#endif

/*
 * What the kernels that the current device runs were compiled for, ten times
 * major plus minor: their binary, and the PTX that this was compiled from.
 */
GpuaggCudaStatus device_kernel_versions(int *binary, int *ptx);

/* A column in a lane's buffer; the pointers may be NULL as in WireColumn. */
typedef struct DeviceColumn
{
	const void *values;
	const uint8_t *validity;
	int			type;			/* WireType */
} DeviceColumn;

typedef struct PackKeys
{
	int			nkeys;
	int			key_bytes;
	int			null_offset;
	int			width[WIRE_MAX_KEYS];
	int			offset[WIRE_MAX_KEYS];
	DeviceColumn column[WIRE_MAX_KEYS];
} PackKeys;

/* The packed key of every row; see WireKey. */
GpuaggCudaStatus device_pack_keys(const PackKeys *pack, int64_t nrows, void *out,
								  gpuagg_stream stream);

/*
 * to[map[i]] = from[i] for n rows of row_bytes (a multiple of 4), but for those whose map
 * is negative.
 */
GpuaggCudaStatus device_scatter(const void *from, size_t row_bytes, const int32_t *map, int64_t n,
								void *to, gpuagg_stream stream);
/* to[i] = from[map[i]] for n rows of row_bytes (a multiple of 4). */
GpuaggCudaStatus device_gather(const void *from, size_t row_bytes, const int32_t *map, int64_t n,
							   void *to, gpuagg_stream stream);

typedef struct SlotBins
{
	int			kind;			/* WireBinKind, not NONE */
	DeviceColumn column;
	const uint8_t *filter;		/* or NULL */
	const int32_t *group;		/* of each row; NULL: 0 */
	int			width;
	int			n;
	double		lo,
				hi;
	const double *thresholds;
	int32_t    *rank;			/* WIRE_BIN_HLL: the rank of each row goes here */
} SlotBins;

/* group * width + bin of every row, -1 where the column is NULL or the filter fails. */
GpuaggCudaStatus device_slot_bins(const SlotBins *bins, int64_t nrows, int32_t *out,
								  gpuagg_stream stream);

/* What an operator that does not commute reads of a row. */
typedef struct PackInput
{
	int			monoid;
	DeviceColumn column[2];		/* as in WireSlot; values NULL: none */
	const uint8_t *filter;		/* or NULL */
} PackInput;

/*
 * The monoid's input of every row, and 1 in `keep` where the row counts: no column
 * is NULL, unless the operator takes NULLs, and the filter holds.
 */
GpuaggCudaStatus device_pack_inputs(const PackInput *pack, int64_t nrows, void *inputs,
									uint8_t *keep, gpuagg_stream stream);

/* An order key in 64 bits, 0 where it is NULL, and the rank that puts NULLs first or last. */
GpuaggCudaStatus device_pack_order(const DeviceColumn *column, int64_t nrows, int nulls_first,
								   int64_t *codes, int8_t *ranks, gpuagg_stream stream);

#ifdef __cplusplus
}
#endif

#endif							/* GPUAGG_DEVICE_KERNELS_H */

/*
 * column.cuh
 *	  Reading a value of a DeviceColumn in a kernel.
 */
#ifndef GPUAGG_DEVICE_COLUMN_CUH
#define GPUAGG_DEVICE_COLUMN_CUH

#include "device_cuda/kernels.h"

/* Returns whether value i is not NULL. */
__device__ static inline bool
is_valid(const DeviceColumn &c, int64_t i)
{
	return c.validity == nullptr || (c.validity[i >> 3] >> (i & 7) & 1);
}

/* Returns value i of a column of integers of up to 64 bits, with sign extension. */
__device__ static inline int64_t
load_integer(const DeviceColumn &c, int64_t i)
{
	switch (c.type)
	{
		case WIRE_I8:
			return ((const int8_t *) c.values)[i];
		case WIRE_I16:
			return ((const int16_t *) c.values)[i];
		case WIRE_I32:
			return ((const int32_t *) c.values)[i];
		default:
			return ((const int64_t *) c.values)[i];
	}
}

#endif /* GPUAGG_DEVICE_COLUMN_CUH */

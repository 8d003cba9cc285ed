/*
 * limit.h
 *	  WireLimit: the order of groups by a state or a key.
 *
 * Plain C for gcc and nvcc.
 */
#ifndef GPUAGG_LIMIT_H
#define GPUAGG_LIMIT_H

#include "protocol.h"

/* Is it the state of no rows?  Then the group may have NULL for a value, and is returned whatever its state. */
GPUAGG_HD int
limit_is_identity(int monoid, int64_t value)
{
	switch (monoid)
	{
		case MONOID_MIN_I32:
			return value == INT32_MAX;
		case MONOID_MAX_I32:
			return value == INT32_MIN;
		case MONOID_MIN_I64:
			return value == INT64_MAX;
		case MONOID_MAX_I64:
			return value == INT64_MIN;
		default:
			return value == 0;
	}
}

/* A number that is the greater, the earlier the value comes. */
GPUAGG_HD uint64_t
limit_code(int64_t value, int descending)
{
	uint64_t	ascending = (uint64_t) value ^ (uint64_t) 1 << 63;

	return descending ? ascending : ~ascending;
}

/* The low `width` bytes of a packed key, as a signed number. */
GPUAGG_HD int64_t
limit_key(const char *bytes, int width)
{
	uint64_t	value = 0;

	for (int b = 0; b < width; b++)
		value |= (uint64_t) (unsigned char) bytes[b] << 8 * b;
	return (int64_t) (value << (64 - 8 * width)) >> (64 - 8 * width);
}

#endif							/* GPUAGG_LIMIT_H */

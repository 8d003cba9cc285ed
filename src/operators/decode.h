/*
 * decode.h
 *	  Finds the attributes of a heap tuple.
 *
 * Plain C for gcc and nvcc; little-endian, like all current machines with a GPU.  A tuple's data
 * follow its header and null bitmap.  Attributes are in order, aligned by type.  NULL attributes
 * take no space.  Values of variable width have a header of 1 or 4 bytes; with the short header
 * they are not aligned.  Tuples begin at multiples of 8 bytes of a page, and so do their data.
 * PostgreSQL describes the on-disk format in access/tupmacs.h and postgres.h ("varatt.h" from 16
 * on).
 */
#ifndef GPUAGG_DECODE_H
#define GPUAGG_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "operators/monoid.h"

/* An attribute of a table's tuples. */
typedef struct DecodeAttr
{
	/* in the data of tuples in which no earlier attribute is NULL: */
	int32_t start;          /* end of the attribute before it, or -1: varies */
	int32_t offset;         /* start of its value, or -1: varies */
	int16_t len;            /* bytes; -1: a varlena, -2: a C string */
	uint8_t align;          /* 1, 2, 4 or 8 */
	const uint8_t *missing; /* value in tuples older than the attribute; NULL for NULL */
} DecodeAttr;

/* Returns the offset rounded up to a multiple of `align`, a power of two. */
GPUAGG_HD uint32_t
decode_align(uint32_t offset, uint32_t align)
{
	return (offset + align - 1) & ~(align - 1);
}

/*
 * Returns the size of a varlena in bytes, with its header.  External ones are toast pointers of 18
 * bytes.
 */
GPUAGG_HD uint32_t
decode_varsize(const uint8_t *p)
{
	uint32_t header;

	if (p[0] == 1)
		return 18;
	if (p[0] & 1)
		return p[0] >> 1;
	memcpy(&header, p, 4);
	return header >> 2;
}

/*
 * Returns the bytes of a varlena after its header, and sets *len to their number.  Returns NULL if
 * the varlena is compressed or external; then *len means nothing.
 */
GPUAGG_HD const uint8_t *
decode_payload(const uint8_t *p, int *len)
{
	uint32_t header;

	if (p[0] & 1)
	{
		*len = (p[0] >> 1) - 1;
		return p[0] == 1 ? NULL : p + 1;
	}
	memcpy(&header, p, 4);
	*len = (int) (header >> 2) - 4;
	return (header & 2) ? NULL : p + 4;
}

/*
 * Returns 64 bits of a tuple's null bitmap, from attribute 64 * word on.  A bit is set if the
 * attribute is not NULL, and clear if the tuple does not have the attribute.  nulls: the bitmap,
 * with at least 8 bytes of the tuple's header before it; NULL if the tuple has none.  natts: number
 * of attributes in the tuple.
 */
GPUAGG_HD uint64_t
decode_present(const uint8_t *nulls, int natts, int word)
{
	int left = natts - 64 * word;
	int unused = left >= 64 ? 0 : 64 - left;
	uint64_t bits = ~(uint64_t) 0;

	if (left <= 0)
		return 0;
	/* the 8 bytes that end with the last wanted byte of the bitmap: reads no byte after it */
	if (nulls)
	{
		memcpy(&bits, nulls + 8 * word - unused / 8, 8);
		bits >>= unused / 8 * 8;
	}
	return bits & ~(uint64_t) 0 >> unused;
}

/*
 * Returns the bytes from `position` (only its remainder modulo 8 matters) to the end of n
 * attributes of fixed width.  Bit i of `present`: attribute i has a value.
 */
GPUAGG_HD uint32_t
decode_fixed_width(const DecodeAttr *attrs, int n, uint64_t present, uint32_t position)
{
	uint32_t end = position;

	for (int i = 0; i < n; i++)
		if (present >> i & 1)
			end = decode_align(end, attrs[i].align) + attrs[i].len;
	return end - position;
}

/*
 * Skips a varlena that begins at *position or after its padding.  Sets *position to its start and
 * returns its end.
 */
GPUAGG_HD uint32_t
decode_varlena(const uint8_t *page, const DecodeAttr *attr, uint32_t *position)
{
	/* only a header of 4 bytes is padded, and a padding byte is zero */
	if (page[*position] == 0)
		*position = decode_align(*position, attr->align);
	return *position + decode_varsize(page + *position);
}

/* Skips a C string, as decode_varlena() skips a varlena. The end is after its zero byte. */
GPUAGG_HD uint32_t
decode_cstring(const uint8_t *page, const DecodeAttr *attr, uint32_t *position)
{
	uint32_t end;

	*position = decode_align(*position, attr->align);
	for (end = *position; page[end] != 0; end++)
		;
	return end + 1;
}

#endif /* GPUAGG_DECODE_H */

/*
 * decode.h
 *	  Where a heap tuple keeps its attributes.
 *
 * Plain C for gcc and nvcc, little-endian like all machines with a GPU of
 * today.  A tuple's data follow its header and null bitmap; attributes lie
 * there in order, aligned by type, NULL ones taking no space, and values of
 * variable width with a header of 1 or 4 bytes (the short form unaligned).
 * Tuples begin at multiples of 8 bytes of a page, and their data do.  The
 * on-disk format is described in PostgreSQL's access/tupmacs.h and postgres.h
 * ("varatt.h" from 16 on).
 */
#ifndef GPUAGG_DECODE_H
#define GPUAGG_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "operators/monoid.h"

typedef struct DecodeAttr
{
	/* in the data of tuples where no attribute before it is NULL: */
	int32_t start;          /* where the attribute before it ends, or -1: varies */
	int32_t offset;         /* where its own value lies, or -1: varies */
	int16_t len;            /* bytes; -1: a varlena, -2: a C string */
	uint8_t align;          /* 1, 2, 4 or 8 */
	const uint8_t *missing; /* value in tuples older than the attribute; NULL for NULL */
} DecodeAttr;

GPUAGG_HD uint32_t
decode_align(uint32_t offset, uint32_t align)
{
	return (offset + align - 1) & ~(align - 1);
}

/* Bytes of a varlena with its header; external ones are pointers of 18 bytes. */
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

/* The payload of a varlena that is neither compressed nor external, else NULL. */
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
 * 64 bits of a tuple's null bitmap, from attribute 64 * word: set for attributes
 * that are not NULL, clear for those that the tuple does not have.  `nulls` is
 * the bitmap, with at least 8 bytes of the tuple's header before it, or NULL if
 * the tuple has none; natts says how many attributes it has.
 */
GPUAGG_HD uint64_t
decode_present(const uint8_t *nulls, int natts, int word)
{
	int left = natts - 64 * word;
	int unused = left >= 64 ? 0 : 64 - left;
	uint64_t bits = ~(uint64_t) 0;

	if (left <= 0)
		return 0;
	/* the 8 bytes that end with the last of the bitmap's wanted here: none behind it are read */
	if (nulls)
	{
		memcpy(&bits, nulls + 8 * word - unused / 8, 8);
		bits >>= unused / 8 * 8;
	}
	return bits & ~(uint64_t) 0 >> unused;
}

/*
 * Bytes from `position`, of which only the remainder by 8 matters, to the end of
 * n attributes of fixed width; bit i of `present` says whether attribute i has
 * a value.
 */
GPUAGG_HD uint32_t
decode_run(const DecodeAttr *attrs, int n, uint64_t present, uint32_t position)
{
	uint32_t end = position;

	for (int i = 0; i < n; i++)
		if (present >> i & 1)
			end = decode_align(end, attrs[i].align) + attrs[i].len;
	return end - position;
}

/*
 * Steps over a varlena, which begins at *position or, padded, after it: sets that, returns its end.
 */
GPUAGG_HD uint32_t
decode_varlena(const uint8_t *page, const DecodeAttr *attr, uint32_t *position)
{
	/* only a header of 4 bytes is padded, and a pad byte is zero */
	if (page[*position] == 0)
		*position = decode_align(*position, attr->align);
	return *position + decode_varsize(page + *position);
}

/* The same for a C string. */
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

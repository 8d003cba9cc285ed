/*
 * decode.h
 *	  Where a heap tuple keeps its attributes.
 *
 * Plain C for gcc and nvcc, little-endian like all machines with a GPU of
 * today.  A tuple's data follow its header and null bitmap; attributes lie
 * there in order, aligned by type, NULL ones taking no space, and values of
 * variable width with a header of 1 or 4 bytes (the short form unaligned).
 * The on-disk format is described in PostgreSQL's access/tupmacs.h and
 * postgres.h ("varatt.h" from 16 on).
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
	int32_t		offset;			/* in the data of a tuple without NULLs, or -1: varies */
	int32_t		anchor;			/* nearest attribute not after this one whose offset is fixed */
	int16_t		len;			/* bytes; -1: a varlena, -2: a C string */
	uint8_t		align;			/* 1, 2, 4 or 8 */
	const uint8_t *missing;		/* value in tuples older than the attribute; NULL for NULL */
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
	uint32_t	header;

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
	uint32_t	header;

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
 * Finds attributes wanted[0 .. nwanted-1] (from 0, ascending) of one tuple.
 * out[k * stride] becomes the address of the k-th, or NULL if it is NULL.
 * nulls is the tuple's null bitmap, or NULL if it has none; natts how many
 * attributes the tuple has.  Nothing after the last wanted one is read.
 */
GPUAGG_HD void
decode_locate(const DecodeAttr *attrs, const int16_t *wanted, int nwanted,
			  const uint8_t *nulls, const uint8_t *data, int natts,
			  const uint8_t **out, size_t stride)
{
	int			a = nulls ? 0 : attrs[wanted[0]].anchor;
	uint32_t	off = nulls ? 0 : attrs[a].offset;
	int			k = 0;

	for (; k < nwanted && a < natts; a++)
	{
		const DecodeAttr *attr = &attrs[a];
		bool		want = wanted[k] == a;

		if (nulls && !(nulls[a >> 3] & (1 << (a & 7))))
		{
			if (want)
				out[k++ * stride] = NULL;
			continue;
		}
		/* only a varlena with a 4-byte header is padded; a pad byte is zero */
		if (attr->len != -1 || data[off] == 0)
			off = decode_align(off, attr->align);
		if (want)
		{
			out[k++ * stride] = data + off;
			if (k == nwanted)
				return;
		}
		if (attr->len > 0)
			off += attr->len;
		else if (attr->len == -1)
			off += decode_varsize(data + off);
		else
			while (data[off++] != 0)
				;
	}
	for (; k < nwanted; k++)
		out[k * stride] = attrs[wanted[k]].missing;
}

#endif							/* GPUAGG_DECODE_H */

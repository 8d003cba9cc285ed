/*
 * encode.c
 *	  Encodes chunks of the column cache as codes and entries, for STORE; see dictionaries.h.
 *
 * An entry is the image of a value, without the parts of its header that depend on its form: the
 * detoasted bytes of a varlena, the bytes of a value of fixed width, or the Datum of a value that
 * is passed by value. So a value has one image, and values with different images look different.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cuda/dictionaries.h"
#include "expr/expr.h"

/* Number of rows that are decoded at a time. */
#define DECODE_ROWS 4096

typedef struct Image
{
	uint32 code; /* the key: index in Encoder.images, or that of the sought image */
	uint32 hash;
	uint32 status; /* for simplehash.h */
} Image;

typedef struct Encoder
{
	Form_pg_attribute att;
	uint32 n; /* number of entries so far */
	size_t bytes;
	const char **images; /* of each entry, with its length in `lengths` */
	uint32 *lengths;
	const char *sought;
	uint32 length;
	struct image_hash *table;
} Encoder;

static inline bool
equals_sought(const Encoder *enc, uint32 code)
{
	return enc->lengths[code] == enc->length &&
		memcmp(enc->images[code], enc->sought, enc->length) == 0;
}

static inline uint32
hash_sought(const Encoder *enc)
{
	return hash_bytes((const unsigned char *) enc->sought, enc->length);
}

/* A hash table of codes. A lookup finds the code whose image equals the sought image. */
#define SH_PREFIX image
#define SH_ELEMENT_TYPE Image
#define SH_KEY_TYPE uint32
#define SH_KEY code
#define SH_HASH_KEY(table, code) hash_sought((table)->private_data)
#define SH_EQUAL(table, code, key) equals_sought((table)->private_data, code)
#define SH_STORE_HASH
#define SH_GET_HASH(table, entry) (entry)->hash
#define SH_SCOPE pg_attribute_unused() static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/*
 * Sets `sought` to the image of a value that is not NULL. The image of a by-value type is *value
 * itself, which must stay. Returns false if the value is out of line or too long.
 */
static bool
set_image(Encoder *enc, const Datum *value)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(*value);

	if (enc->att->attbyval)
	{
		enc->sought = (const char *) value;
		enc->length = sizeof(Datum);
	}
	else if (enc->att->attlen > 0)
	{
		enc->sought = (const char *) v;
		enc->length = enc->att->attlen;
	}
	else
	{
		if (VARATT_IS_EXTERNAL(v) || datum_bytes(*value, -1) > WIRE_MAX_ENTRY_BYTES)
			return false;
		if (VARATT_IS_COMPRESSED(v))
			v = pg_detoast_datum(v);
		enc->sought = VARDATA_ANY(v);
		enc->length = VARSIZE_ANY_EXHDR(v);
	}
	return true;
}

/*
 * Adds the sought image as an entry. `copy`: its memory does not stay. Returns false if there is no
 * room.
 */
static bool
add_image(Encoder *enc, bool copy)
{
	if (enc->n == WIRE_MAX_ENTRIES || enc->length > WIRE_MAX_ENTRY_BYTES - enc->bytes)
		return false;
	if (copy)
	{
		char *at = palloc(enc->length + 1);

		memcpy(at, enc->sought, enc->length);
		enc->sought = at;
	}
	enc->images[enc->n] = enc->sought;
	enc->lengths[enc->n++] = enc->length;
	enc->bytes += enc->length;
	return true;
}

/* Encodes a chunk that has a dictionary, with the chunk's own codes and entries. */
static bool
encode_dictionary(Encoder *enc, const CacheChunk *chunk, uint32 *codes)
{
	for (uint32 i = 0; i < chunk->nentries; i++)
	{
		Datum value = chunk_entry(chunk, i);

		if (!set_image(enc, &value) || !add_image(enc, false))
			return false;
	}
	for (uint32 at = 0; at < chunk->nrows; at += DECODE_ROWS)
	{
		CHECK_FOR_INTERRUPTS();
		chunk_codes(chunk, at, Min(DECODE_ROWS, chunk->nrows - at), codes + at);
	}
	return true;
}

/*
 * Returns the code of a value in *code; adds the value if it is new. Returns false if there is no
 * room.
 */
static bool
lookup_or_add(Encoder *enc, const Datum *value, uint32 *code)
{
	Image *found;
	bool there;

	if (!set_image(enc, value))
		return false;
	found = image_insert(enc->table, enc->n, &there);
	if (!there)
	{
		found->code = enc->n;
		if (!add_image(enc, true))
			return false;
	}
	*code = found->code;
	return true;
}

/* Encodes any other chunk: builds a dictionary of its values. */
static bool
encode_values(Encoder *enc, const CacheChunk *chunk, uint32 *codes)
{
	Datum *values = palloc(DECODE_ROWS * sizeof(Datum));
	uint8 *state = palloc(DECODE_ROWS);
	MemoryContext own = CurrentMemoryContext;
	MemoryContext chunk_cxt =
		AllocSetContextCreate(own, "values of a chunk", ALLOCSET_DEFAULT_SIZES);
	bool ok = true;

	enc->table = image_create(own, 1024, enc);
	for (uint32 at = 0; at < chunk->nrows && ok; at += DECODE_ROWS)
	{
		int n = Min(DECODE_ROWS, chunk->nrows - at);
		bool all;

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(chunk_cxt);
		all = chunk_read(chunk, at, n, COLUMN_DATUM, 0, values, state);
		MemoryContextSwitchTo(own);
		for (int i = 0; i < n && ok; i++)
		{
			codes[at + i] = 0;
			if (all || state[i] == VEC_VALUE)
				ok = lookup_or_add(enc, &values[i], &codes[at + i]);
		}
		MemoryContextReset(chunk_cxt);
	}
	return ok;
}

/* Writes the entries to the buffer, from offset `at` on. Returns false if they do not fit. */
static bool
write_entries(const Encoder *enc, char *buffer, size_t buffer_bytes, size_t at, WireStore *out)
{
	size_t lengths = enc->n * sizeof(uint32);

	if (at + lengths + enc->bytes > buffer_bytes)
		return false;
	out->entries = at;
	out->nentries = enc->n;
	out->bytes = enc->bytes;
	memcpy(buffer + at, enc->lengths, lengths);
	at += lengths;
	for (uint32 i = 0; i < enc->n; i++)
	{
		memcpy(buffer + at, enc->images[i], enc->lengths[i]);
		at += enc->lengths[i];
	}
	return true;
}

bool
cuda_encode_chunk(const CacheChunk *chunk, Form_pg_attribute att, char *buffer, size_t buffer_bytes,
				  WireStore *out)
{
	MemoryContext cxt =
		AllocSetContextCreate(CurrentMemoryContext, "chunk to numbers", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	size_t bits = wire_bitmap_bytes(chunk->nrows);
	size_t at = wire_align((size_t) chunk->nrows * sizeof(uint32));
	Encoder enc = {.att = att};
	bool ok = wire_align(at + bits) <= buffer_bytes;

	if (ok)
	{
		uint32 most = Min(Max(chunk->nentries, chunk->nrows), WIRE_MAX_ENTRIES);

		enc.images = palloc((most + 1) * sizeof(char *));
		enc.lengths = palloc((most + 1) * sizeof(uint32));
		out->values = 0;
		out->validity = chunk_validity(chunk) ? at : WIRE_NO_ARRAY;
		if (chunk_validity(chunk))
			memcpy(buffer + at, chunk_validity(chunk), bits);
		ok = (chunk->nentries > 0 ? encode_dictionary : encode_values)(&enc, chunk,
																	   (uint32 *) buffer) &&
			write_entries(&enc, buffer, buffer_bytes, wire_align(at + bits), out);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return ok;
}

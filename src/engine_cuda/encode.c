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

/*
 * Most bytes of a chunk's entries. A chunk's blocks have less, but compressed values may be
 * hundreds of times as long as they are there.
 */
#define MOST_BYTES (64 * 1024 * 1024)

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
	uint32 room;
	size_t bytes;
	const char **images; /* of each entry, with its length in `lengths` */
	uint32 *lengths;
	const char *sought;
	uint32 length;
	struct image_hash *table;
} Encoder;

struct CudaEncoded
{
	MemoryContext cxt;
	const CacheChunk *chunk;
	Encoder entries;
	uint32 *codes; /* [row] code of its value */
	uint32 sent;   /* entries that earlier parts have */
};

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
	if (enc->n == enc->room || enc->length > MOST_BYTES - enc->bytes)
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

		CHECK_FOR_INTERRUPTS();
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

CudaEncoded *
cuda_encode_chunk(const CacheChunk *chunk, Form_pg_attribute att)
{
	MemoryContext cxt =
		AllocSetContextCreate(CurrentMemoryContext, "chunk to numbers", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	CudaEncoded *encoded = palloc0(sizeof(CudaEncoded));
	Encoder *enc = &encoded->entries;
	bool ok;

	encoded->cxt = cxt;
	encoded->chunk = chunk;
	encoded->codes = palloc(((size_t) chunk->nrows + 1) * sizeof(uint32));
	enc->att = att;
	enc->room = Max(chunk->nentries, chunk->nrows);
	enc->images = palloc(((size_t) enc->room + 1) * sizeof(char *));
	enc->lengths = palloc(((size_t) enc->room + 1) * sizeof(uint32));
	ok = (chunk->nentries > 0 ? encode_dictionary : encode_values)(enc, chunk, encoded->codes);
	MemoryContextSwitchTo(old);
	if (ok)
		return encoded;
	MemoryContextDelete(cxt);
	return NULL;
}

/*
 * Writes entries to the buffer, from offset `at` on, as many as have room there, and describes
 * them. Returns whether these are the last ones.
 */
static bool
write_entries(CudaEncoded *encoded, char *buffer, size_t buffer_bytes, size_t at, WireStore *out)
{
	const Encoder *enc = &encoded->entries;
	uint32 first = encoded->sent;
	uint32 n = 0;
	size_t bytes = 0;

	while (first + n < enc->n &&
		   at + (n + 1) * sizeof(uint32) + bytes + enc->lengths[first + n] <= buffer_bytes)
		bytes += enc->lengths[first + n++];
	out->entries = at;
	out->nentries = n;
	out->bytes = bytes;
	out->before = first;
	memcpy(buffer + at, enc->lengths + first, n * sizeof(uint32));
	at += n * sizeof(uint32);
	for (uint32 i = first; i < first + n; i++)
	{
		memcpy(buffer + at, enc->images[i], enc->lengths[i]);
		at += enc->lengths[i];
	}
	encoded->sent += n;
	return encoded->sent == enc->n;
}

bool
cuda_encoded_fits(const CudaEncoded *encoded, size_t buffer_bytes)
{
	uint32 nrows = encoded->chunk->nrows;

	return wire_align((size_t) nrows * sizeof(uint32)) + wire_align(wire_bitmap_bytes(nrows)) +
		sizeof(uint32) + WIRE_MAX_ENTRY_BYTES <=
		buffer_bytes;
}

bool
cuda_encoded_write(CudaEncoded *encoded, char *buffer, size_t buffer_bytes, WireStore *out)
{
	const CacheChunk *chunk = encoded->chunk;
	size_t codes = wire_align((size_t) chunk->nrows * sizeof(uint32));
	size_t bits = wire_bitmap_bytes(chunk->nrows);

	out->values = 0;
	out->validity = chunk_validity(chunk) ? codes : WIRE_NO_ARRAY;
	memcpy(buffer, encoded->codes, (size_t) chunk->nrows * sizeof(uint32));
	if (chunk_validity(chunk))
		memcpy(buffer + codes, chunk_validity(chunk), bits);
	out->more = !write_entries(encoded, buffer, buffer_bytes, codes + wire_align(bits), out);
	return out->more;
}

void
cuda_encoded_free(CudaEncoded *encoded)
{
	MemoryContextDelete(encoded->cxt);
}

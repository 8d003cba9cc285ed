/*
 * chunk_build.c
 *
 * Builds chunks; see chunk.h.
 *
 * Values are kept as they come; decimals in 64 bits while all fit; by-reference values as codes of
 * a dictionary of their images. An image is the bytes of a by-reference value as in its tuple.
 * Bounds are updated page by page, while the values are in the L1 cache. A row without a value
 * gets the value of another row, so bounds and narrowing need not check states.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "port/pg_bitutils.h"
#include "utils/float.h"

#include "batch.h"
#include "cache/chunk.h"
#include "columns/hash_seed.h"
#include "operators/cpu_hash.h"

/* Initial numbers of rows, images and bytes of images for which there is room. */
#define FIRST_ROWS 16384
#define FIRST_IMAGES 4096
#define FIRST_BYTES 16384
/* Number of float bounds that are computed in parallel. */
#define LANES 8

typedef struct ImageEntry
{
	uint32 hash;
	uint32 code : 31;
	uint32 status : 1; /* required by simplehash.h */
} ImageEntry;

struct ChunkBuilder
{
	MemoryContext cxt;
	ColumnType type;
	int16 scale;
	int16 typlen;  /* by-reference values: typlen; else 0 */
	int align;     /* alignment of images with a 4-byte header */
	uint32 stride; /* distance of images of fixed length; else 0 */

	uint32 nrows;
	uint32 capacity;  /* rows for which values and validity have room */
	int width;        /* bytes of an element of values */
	void *values;     /* decimals are int64 or gpuagg_i128; codes are uint32 */
	uint64 *validity; /* one word more than the rows need; bits of later rows are set */
	size_t nwords;
	uint32 nnulls;

	/* Not for by-reference values: */
	bool filled;       /* some row has a value */
	gpuagg_i128 fill;  /* the first value: an integer or the bits of a float */
	gpuagg_i128 least; /* integers and decimals: bounds so far */
	gpuagg_i128 greatest;
	bool differ;         /* floats: not all values have the same bits */
	bool nan;            /* floats: some value is NaN */
	double least_number; /* bounds of other values; least > greatest: there are none */
	double greatest_number;

	/* Images of by-reference values, or of exceptions: */
	char *images;
	size_t image_bytes;
	size_t image_capacity;
	HashSeed seed;
	struct image_hash *codes; /* hash table from images to codes */
	uint32 *entries;          /* offsets of the images; unused if they have a stride */
	uint32 nentries;
	uint32 longest; /* bytes of the longest entry, detoasted */
	bool no_prefix; /* some entry is compressed or out of line */
	uint64 least_prefix;
	uint64 greatest_prefix;
	uint32 entry_capacity;
	uint32 last_code;
	const char *sought; /* the image that is being looked up */
	size_t sought_size;

	uint32 nfallbacks; /* rows that were added as VEC_FALLBACK */
	uint32 nexceptions;
	uint32 exception_capacity;
	ChunkException *exceptions;

	bool sized; /* chunk_builder_size() has completed `head` */
	CacheChunk head;
};

/* ---- images -------------------------------------------------------------------- */

/* Returns the bytes of a by-reference value in its tuple. */
static inline size_t
image_size(const ChunkBuilder *builder, const char *image)
{
	if (builder->typlen > 0)
		return builder->typlen;
	return VARATT_IS_1B(image) && !VARATT_IS_1B_E(image) ? VARSIZE_1B(image) : VARSIZE_ANY(image);
}

/* Returns the image of a dictionary entry. */
static inline const char *
entry_image(const ChunkBuilder *builder, uint32 code)
{
	size_t start = builder->stride ? (size_t) code * builder->stride : builder->entries[code];

	return builder->images + start;
}

/* Returns whether `size` bytes are equal. Most images are short. */
static inline bool
equal_bytes(const char *a, const char *b, size_t size)
{
	if (size < 8)
		return hash_load_short(a, size) == hash_load_short(b, size);
	if (size <= 16)
		return hash_load(a, 8) == hash_load(b, 8) &&
			hash_load(a + size - 8, 8) == hash_load(b + size - 8, 8);
	return memcmp(a, b, size) == 0;
}

/* Returns whether a dictionary entry equals the image that is being looked up. */
static inline bool
entry_equals(const ChunkBuilder *builder, uint32 code)
{
	const char *image = entry_image(builder, code);

	/* Equal headers imply equal sizes. */
	return image + builder->sought_size <= builder->images + builder->image_bytes &&
		equal_bytes(image, builder->sought, builder->sought_size);
}

/* Keys are codes, but lookups compare with builder->sought. */
#define SH_PREFIX image
#define SH_ELEMENT_TYPE ImageEntry
#define SH_KEY_TYPE uint32
#define SH_KEY code
#define SH_HASH_KEY(codes, code) 0 /* lookups pass their hash */
#define SH_EQUAL(codes, code, key) entry_equals((codes)->private_data, code)
#define SH_FILLFACTOR 0.5
#define SH_STORE_HASH
#define SH_GET_HASH(codes, entry) (entry)->hash
#define SH_SCOPE pg_attribute_unused() static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/*
 * Returns the array with room for n more elements, allocated or enlarged if need be. first:
 * elements to allocate at first.
 */
static void *
reserve(ChunkBuilder *builder, void *array, size_t used, size_t n, size_t first, size_t width,
		size_t *capacity)
{
	size_t wanted = used + n;

	if (array && wanted <= *capacity)
		return array;
	*capacity = Max(wanted, array ? *capacity * 2 : first);
	return array ? repalloc(array, *capacity * width) :
				   MemoryContextAlloc(builder->cxt, *capacity * width);
}

/* Copies an image; returns its offset in builder->images. */
static uint32
append_image(ChunkBuilder *builder, const char *image, size_t size)
{
	size_t start = builder->image_bytes;

	if (builder->stride)
		start = TYPEALIGN(builder->align, start);
	else if (VARATT_IS_4B(image))
		start = TYPEALIGN(Max(builder->align, sizeof(int32)), start);
	if (start + size > PG_UINT32_MAX)
		elog(ERROR, "gpuagg: values of a chunk take too many bytes");
	builder->images =
		reserve(builder, builder->images, builder->image_bytes, start + size - builder->image_bytes,
				FIRST_BYTES, 1, &builder->image_capacity);
	memset(builder->images + builder->image_bytes, 0, start - builder->image_bytes);
	memcpy(builder->images + start, image, size);
	builder->image_bytes = start + size;
	return start;
}

/* Extends the prefixes' bounds to the image that is being looked up. */
static void
widen_prefixes(ChunkBuilder *builder)
{
	const char *image = builder->sought;
	uint64 prefix;

	if (builder->typlen != -1 || VARATT_IS_COMPRESSED(image) || VARATT_IS_EXTERNAL(image))
	{
		builder->no_prefix = true;
		return;
	}
	prefix = chunk_prefix(VARDATA_ANY(image), VARSIZE_ANY_EXHDR(image));
	builder->least_prefix = Min(builder->least_prefix, prefix);
	builder->greatest_prefix = Max(builder->greatest_prefix, prefix);
}

/* Adds the image that is being looked up to the dictionary, as its last entry. */
static void
append_entry(ChunkBuilder *builder)
{
	size_t capacity = builder->entry_capacity;
	uint32 start = append_image(builder, builder->sought, builder->sought_size);

	if (!builder->stride)
	{
		builder->entries = reserve(builder, builder->entries, builder->nentries, 1, FIRST_IMAGES,
								   sizeof(uint32), &capacity);
		builder->entries[builder->nentries] = start;
	}
	builder->entry_capacity = capacity;
	builder->nentries++;
	widen_prefixes(builder);
	builder->longest =
		Max(builder->longest, datum_bytes(PointerGetDatum(builder->sought), builder->typlen));
}

/*
 * Adds n rows of by-reference values as codes. A row without a value gets the code of the row
 * before.
 */
static void
add_references(ChunkBuilder *builder, const Datum *values, const uint8 *state, int n)
{
	uint32 *codes = (uint32 *) builder->values + builder->nrows;

	for (int i = 0; i < n; i++)
	{
		bool found;
		uint32 hash;

		if (state == NULL || state[i] == VEC_VALUE)
		{
			builder->sought = DatumGetPointer(values[i]);
			builder->sought_size = image_size(builder, builder->sought);
			if (builder->nentries == 0 || !entry_equals(builder, builder->last_code))
			{
				hash = hash_string(builder->seed, builder->sought, builder->sought_size);
				builder->last_code =
					image_insert_hash(builder->codes, builder->nentries, hash, &found)->code;
				if (!found)
					append_entry(builder);
			}
		}
		codes[i] = builder->last_code;
	}
}

/* ---- fixed width --------------------------------------------------------------- */

/* to[i] = from[i], or `fill` where a row has no value */
#define COPY(to_t, from_t, expr) \
	do \
	{ \
		to_t *restrict to = (to_t *) builder->values + builder->nrows; \
		const from_t *restrict from = values; \
		const from_t fill = (from_t) builder->fill; \
		if (state == NULL) \
			for (int i = 0; i < n; i++) \
			{ \
				from_t value = from[i]; \
				to[i] = (expr); \
			} \
		else \
			for (int i = 0; i < n; i++) \
			{ \
				from_t mask = -(from_t) (state[i] == VEC_VALUE); \
				from_t value = (from[i] & mask) | (fill & ~mask); \
				to[i] = (expr); \
			} \
	} while (0)

/* Instantiates DO for the unsigned integer type of a width. */
#define BY_WIDTH(width, DO) \
	switch (width) \
	{ \
		case 1: \
			DO(uint8); \
			break; \
		case 2: \
			DO(uint16); \
			break; \
		case 4: \
			DO(uint32); \
			break; \
		case 8: \
			DO(uint64); \
			break; \
		default: \
			DO(gpuagg_u128); \
			break; \
	}

/* Converts the values of all rows so far from int64 to gpuagg_i128. */
static void
widen_decimals(ChunkBuilder *builder)
{
	int64 *narrow = builder->values;
	gpuagg_i128 *wide = MemoryContextAlloc(builder->cxt, sizeof(gpuagg_i128) * builder->capacity);

	for (uint32 i = 0; i < builder->nrows; i++)
		wide[i] = narrow[i];
	pfree(narrow);
	builder->values = wide;
	builder->width = sizeof(gpuagg_i128);
}

/* Adds n decimals: as int64 while all fit, otherwise as gpuagg_i128. */
static void
add_decimals(ChunkBuilder *builder, const gpuagg_i128 *values, const uint8 *state, int n)
{
	if (builder->width == sizeof(int64))
	{
		bool beyond = false;

		COPY(int64, gpuagg_i128, (beyond |= (value != (int64) value), (int64) value));
		if (!beyond)
			return;
		widen_decimals(builder);
	}
	COPY(gpuagg_i128, gpuagg_i128, value);
}

/*
 * Sets the fill value, which rows without a value get, to the first value, also in earlier rows.
 * Sets the first bounds. Does nothing if that was done before. Returns false if there is no value
 * yet.
 */
static bool
find_fill(ChunkBuilder *builder, const void *values, const uint8 *state, int n)
{
	int width = column_width(builder->type);
	int first = 0;

	if (builder->filled)
		return true;
	while (state && first < n && state[first] != VEC_VALUE)
		first++;
	if (first == n)
		return false;
	builder->filled = true;
	memcpy(&builder->fill, (const char *) values + first * width, width);

	/* The bounds have the sign and width of the type. */
	switch (builder->type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		builder->least = (value_t) builder->fill; \
		break;
		COLUMN_INTEGERS(X)
		X(DATUM, int64)
		X(DEC, gpuagg_i128)
#undef X
		default:
			break;
	}
	builder->greatest = builder->least;
	if (builder->type == COLUMN_DEC && builder->fill != (int64) builder->fill)
		widen_decimals(builder);
#define FILL(bits_t) \
	for (uint32 i = 0; i < builder->nrows; i++) \
	((bits_t *) builder->values)[i] = (bits_t) builder->fill
	BY_WIDTH(builder->width, FILL);
#undef FILL
	return true;
}

/* ---- bounds -------------------------------------------------------------------- */

/* Updates the bounds with the last n rows, which nrows does not include yet. */
#define BOUND(value_t) \
	do \
	{ \
		const value_t *restrict from = (const value_t *) builder->values + builder->nrows; \
		value_t least = (value_t) builder->least; \
		value_t greatest = (value_t) builder->greatest; \
		for (int i = 0; i < n; i++) \
		{ \
			least = from[i] < least ? from[i] : least; \
			greatest = from[i] > greatest ? from[i] : greatest; \
		} \
		builder->least = least; \
		builder->greatest = greatest; \
	} while (0)

/* Comparisons with NaN are false, so NaN changes no bound. */
#define BOUND_FLOAT(value_t, bits_t) \
	do \
	{ \
		const value_t *restrict from = (const value_t *) builder->values + builder->nrows; \
		const bits_t *restrict bits = (const bits_t *) from; \
		const bits_t fill = (bits_t) builder->fill; \
		bits_t differ = 0; \
		bits_t nan = 0; \
		value_t least[LANES]; \
		value_t greatest[LANES]; \
		int i = 0; \
		for (int k = 0; k < LANES; k++) \
		{ \
			least[k] = (value_t) builder->least_number; \
			greatest[k] = (value_t) builder->greatest_number; \
		} \
		for (int j = 0; j < n; j++) \
		{ \
			differ |= bits[j] ^ fill; \
			nan |= (from[j] != from[j]); \
		} \
		for (; i + LANES <= n; i += LANES) \
			for (int k = 0; k < LANES; k++) \
			{ \
				value_t value = from[i + k]; \
				least[k] = value < least[k] ? value : least[k]; \
				greatest[k] = value > greatest[k] ? value : greatest[k]; \
			} \
		for (; i < n; i++) \
		{ \
			least[0] = from[i] < least[0] ? from[i] : least[0]; \
			greatest[0] = from[i] > greatest[0] ? from[i] : greatest[0]; \
		} \
		for (int k = 0; k < LANES; k++) \
		{ \
			builder->least_number = Min(builder->least_number, least[k]); \
			builder->greatest_number = Max(builder->greatest_number, greatest[k]); \
		} \
		builder->differ |= differ != 0; \
		builder->nan |= nan != 0; \
	} while (0)

/* Updates the bounds with the last n rows, which nrows does not include yet. */
static void
update_bounds(ChunkBuilder *builder, int n)
{
	switch (builder->type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		BOUND(value_t); \
		break;
		COLUMN_INTEGERS(X)
		X(DATUM, int64)
#undef X
#define X(NAME, value_t, bits_t, ...) \
	case COLUMN_##NAME: \
		BOUND_FLOAT(value_t, bits_t); \
		break;
		COLUMN_FLOATS(X)
#undef X
		case COLUMN_DEC:
			if (builder->width == sizeof(int64))
				BOUND(int64);
			else
				BOUND(gpuagg_i128);
			break;
	}
}

/* ---- rows ---------------------------------------------------------------------- */

/* Makes room for n more rows in values and validity. */
static void
reserve_rows(ChunkBuilder *builder, int n)
{
	size_t capacity = builder->capacity;
	size_t words;

	if (builder->nrows + n <= capacity)
		return;
	builder->values =
		reserve(builder, builder->values, builder->nrows, n, FIRST_ROWS, builder->width, &capacity);
	words = BITMAP_WORDS(capacity) + 1;
	if (builder->validity)
		builder->validity = repalloc(builder->validity, sizeof(uint64) * words);
	else
		builder->validity = MemoryContextAlloc(builder->cxt, sizeof(uint64) * words);
	memset(builder->validity + builder->nwords, 0xff, sizeof(uint64) * (words - builder->nwords));
	builder->nwords = words;
	builder->capacity = capacity;
}

/* Returns a byte whose bit i is the lowest bit of byte i (little-endian). */
static inline uint64
pack_bytes(uint64 bytes)
{
	return (bytes & UINT64CONST(0x0101010101010101)) * UINT64CONST(0x0102040810204080) >> 56;
}

/* Counts NULLs and VEC_FALLBACKs among n new rows, and clears the validity bits of NULLs. */
static void
add_states(ChunkBuilder *builder, const uint8 *state, int n)
{
	uint32 nnulls = 0;
	uint32 nfallbacks = 0;

	for (int i = 0; i < n; i++)
	{
		nnulls += state[i] == VEC_NULL;
		nfallbacks += state[i] == VEC_FALLBACK;
	}
	builder->nnulls += nnulls;
	builder->nfallbacks += nfallbacks;
	if (nnulls == 0)
		return;
	for (int i = 0; i < n; i += 8)
	{
		uint32 row = builder->nrows + i;
		uint64 bytes = 0;
		uint64 nulls;

		memcpy(&bytes, state + i, Min(n - i, 8));
		nulls = pack_bytes(bytes);
		builder->validity[row >> 6] &= ~(nulls << (row & 63));
		builder->validity[(row >> 6) + 1] &= ~(nulls >> 1 >> (63 - (row & 63)));
	}
}

void
chunk_builder_add(ChunkBuilder *builder, const void *values, const uint8 *state, int n)
{
	Assert(!builder->sized);
	if (n == 0)
		return;
	reserve_rows(builder, n);
	if (state)
		add_states(builder, state, n);
	if (builder->typlen != 0)
		add_references(builder, values, state, n);
	else if (find_fill(builder, values, state, n))
	{
		if (builder->type == COLUMN_DEC)
			add_decimals(builder, values, state, n);
		else
		{
#define COPY_BITS(bits_t) COPY(bits_t, bits_t, value)
			BY_WIDTH(builder->width, COPY_BITS);
#undef COPY_BITS
		}
		update_bounds(builder, n);
	}
	builder->nrows += n;
}

/* Returns whether the image at `start` is equal to a varlena. */
static bool
is_image_at(const ChunkBuilder *builder, uint32 start, const char *image)
{
	const char *there = builder->images + start;
	size_t size = VARSIZE_ANY(image);

	return VARSIZE_ANY(there) == size && memcmp(there, image, size) == 0;
}

void
chunk_builder_exception(ChunkBuilder *builder, uint32 row, Datum numeric)
{
	size_t capacity = builder->exception_capacity;
	const char *image = DatumGetPointer(numeric);
	ChunkException *exception;

	Assert(builder->type == COLUMN_DEC && !builder->sized && row < builder->nrows);
	builder->exceptions = reserve(builder, builder->exceptions, builder->nexceptions, 1, 64,
								  sizeof(ChunkException), &capacity);
	builder->exception_capacity = capacity;
	exception = &builder->exceptions[builder->nexceptions++];
	Assert(builder->nexceptions == 1 || exception[-1].row < row);
	exception->row = row;
	/* The missing value of an attribute may be long, and many rows have it: store it once. */
	if (builder->nexceptions > 1 && is_image_at(builder, exception[-1].image, image))
		exception->image = exception[-1].image;
	else
		exception->image = append_image(builder, image, VARSIZE_ANY(image));
}

/* ---- creating and resetting ---------------------------------------------------- */

ChunkBuilder *
chunk_builder_create(ColumnType type, int16 scale, int16 typlen, bool typbyval, char typalign,
					 MemoryContext cxt)
{
	ChunkBuilder *builder;
	bool by_reference = type == COLUMN_DATUM && !typbyval;

	if (by_reference && typlen != -1 && typlen <= 0)
		return NULL;
	builder = MemoryContextAllocZero(cxt, sizeof(ChunkBuilder));
	builder->cxt = cxt;
	builder->type = type;
	builder->scale = type == COLUMN_DEC ? scale : 0;
	builder->typlen = by_reference ? typlen : 0;
	builder->align = !by_reference  ? 1 :
		typalign == TYPALIGN_DOUBLE ? ALIGNOF_DOUBLE :
		typalign == TYPALIGN_INT    ? ALIGNOF_INT :
		typalign == TYPALIGN_SHORT  ? ALIGNOF_SHORT :
									  1;
	if (builder->typlen > 0)
		builder->stride = TYPEALIGN(builder->align, typlen);
	if (by_reference)
	{
		builder->codes = image_create(cxt, FIRST_IMAGES, builder);
		builder->seed = hash_seed_random();
	}
	chunk_builder_reset(builder);
	return builder;
}

void
chunk_builder_reset(ChunkBuilder *builder)
{
	int width = builder->typlen != 0 ? sizeof(uint32) :
		builder->type == COLUMN_DEC  ? sizeof(int64) :
									   column_width(builder->type);

	if (builder->nnulls > 0)
		memset(builder->validity, 0xff, sizeof(uint64) * builder->nwords);
	builder->width = width; /* an array of wide values has room for more rows than `capacity` */
	builder->nrows = 0;
	builder->nnulls = 0;
	builder->filled = false;
	builder->fill = 0;
	builder->least = 0;
	builder->greatest = 0;
	builder->differ = false;
	builder->nan = false;
	builder->least_number = get_float8_infinity();
	builder->greatest_number = -get_float8_infinity();
	builder->image_bytes = 0;
	builder->nentries = 0;
	builder->longest = 0;
	builder->no_prefix = false;
	builder->least_prefix = PG_UINT64_MAX;
	builder->greatest_prefix = 0;
	builder->last_code = 0;
	builder->nfallbacks = 0;
	builder->nexceptions = 0;
	builder->sized = false;
	if (builder->codes)
		image_reset(builder->codes);
}

/* ---- the chunk ----------------------------------------------------------------- */

/* Returns how many bytes hold integers up to `range`; 0 for 0. */
static int
width_for(gpuagg_u128 range)
{
	return range == 0          ? 0 :
		range <= PG_UINT8_MAX  ? 1 :
		range <= PG_UINT16_MAX ? 2 :
		range <= PG_UINT32_MAX ? 4 :
		range <= PG_UINT64_MAX ? 8 :
								 16;
}

/* Sets form and width of the codes of by-reference values. */
static void
choose_reference_form(ChunkBuilder *builder, CacheChunk *head)
{
	head->nentries = builder->nentries;
	head->stride = builder->stride;
	head->longest = builder->longest;
	head->has_prefixes = builder->nentries > 0 && !builder->no_prefix;
	head->least_prefix = builder->least_prefix;
	head->greatest_prefix = builder->greatest_prefix;
	head->form = CHUNK_DICTIONARY;
	if (builder->nentries == 0)
		head->form = CHUNK_CONSTANT;
	else if (builder->nentries == builder->nrows)
		head->form = CHUNK_IDENTITY;
	else
		head->width = width_for(builder->nentries - 1);
}

/* Sets form, width and bounds of floats. */
static void
choose_float_form(ChunkBuilder *builder, CacheChunk *head)
{
	bool numbers = builder->least_number <= builder->greatest_number;

	head->form = builder->differ ? CHUNK_RAW : CHUNK_CONSTANT;
	head->width = builder->differ ? builder->width : 0;
	head->base = builder->fill;
	head->has_bounds = builder->filled;
	head->least.number = numbers ? builder->least_number : get_float8_nan();
	head->greatest.number = builder->nan ? get_float8_nan() : builder->greatest_number;
}

/* Sets form, width, base and bounds of integers, decimals and by-value Datums. */
static void
choose_integer_form(ChunkBuilder *builder, CacheChunk *head)
{
	gpuagg_u128 range = (gpuagg_u128) builder->greatest - (gpuagg_u128) builder->least;
	int width = width_for(range);
	int own = column_width(builder->type);

	head->base = builder->least;
	head->width = Min(width, own);
	head->form = width == 0 ? CHUNK_CONSTANT : width >= own ? CHUNK_RAW : CHUNK_NARROW;
	if (builder->filled && builder->least >= PG_INT64_MIN && builder->greatest <= PG_INT64_MAX)
	{
		head->has_bounds = builder->type != COLUMN_DATUM;
		head->least.integer = (int64) builder->least;
		head->greatest.integer = (int64) builder->greatest;
	}
	if (builder->type == COLUMN_I8 && range == 1 &&
		sizeof(uint64) * (BITMAP_WORDS(builder->nrows) + 1) < builder->nrows)
	{
		head->form = CHUNK_BITS;
		head->width = 0;
	}
}

/* Adds bytes to the size of the chunk; returns their offset. */
static size_t
reserve_bytes(CacheChunk *head, size_t bytes)
{
	size_t start = head->size;

	head->size += MAXALIGN(bytes);
	return start;
}

size_t
chunk_builder_size(ChunkBuilder *builder)
{
	CacheChunk *head = &builder->head;
	size_t bitmap = sizeof(uint64) * (BITMAP_WORDS(builder->nrows) + 1);

	if (builder->sized)
		return head->size;
	if (builder->nexceptions != builder->nfallbacks)
		elog(ERROR, "gpuagg: %u exceptions for %u rows of a chunk", builder->nexceptions,
			 builder->nfallbacks);
	memset(head, 0, sizeof(*head));
	head->size = MAXALIGN(sizeof(*head));
	head->nrows = builder->nrows;
	head->nnulls = builder->nnulls;
	head->nexceptions = builder->nexceptions;
	head->type = builder->type;
	head->scale = builder->scale;
	head->typlen = builder->typlen;
	if (builder->typlen != 0)
		choose_reference_form(builder, head);
	else if (column_is_float(builder->type))
		choose_float_form(builder, head);
	else
		choose_integer_form(builder, head);
	head->values =
		reserve_bytes(head, head->form == CHUNK_BITS ? bitmap : (size_t) head->width * head->nrows);
	if (head->nnulls > 0)
		head->validity = reserve_bytes(head, bitmap);
	head->exceptions = reserve_bytes(head, sizeof(ChunkException) * head->nexceptions);
	if (head->stride == 0)
		head->entries = reserve_bytes(head, sizeof(uint32) * head->nentries);
	head->images = reserve_bytes(head, builder->image_bytes);
	builder->sized = true;
	return head->size;
}

/* to[i] = from[i] - base */
#define NARROW(to_t, from_t) \
	do \
	{ \
		to_t *restrict to = values; \
		const from_t *restrict from = builder->values; \
		const from_t base = (from_t) builder->head.base; \
		for (uint32 i = 0; i < n; i++) \
			to[i] = (to_t) (from[i] - base); \
	} while (0)

#define NARROW_FROM(from_t) \
	do \
	{ \
		if (width == 1) \
			NARROW(uint8, from_t); \
		else if (width == 2) \
			NARROW(uint16, from_t); \
		else if (width == 4) \
			NARROW(uint32, from_t); \
		else \
			NARROW(uint64, from_t); \
	} while (0)

/* Writes each value minus the base as an integer of `width` bytes. */
static void
write_narrow(const ChunkBuilder *builder, int width, void *values)
{
	uint32 n = builder->nrows;

	BY_WIDTH(builder->width, NARROW_FROM);
}

/* Writes a set bit for each row whose byte is not the least one. */
static void
write_bits(const ChunkBuilder *builder, uint64 *bits)
{
	const uint8 *values = builder->values;
	const uint64 least = UINT64CONST(0x0101010101010101) * (uint8) builder->least;
	const int bit = pg_rightmost_one_pos32((uint8) builder->least ^ (uint8) builder->greatest);
	uint32 n = builder->nrows;

	memset(bits, 0, sizeof(uint64) * (BITMAP_WORDS(n) + 1));
	for (uint32 i = 0; i < n; i += 8)
	{
		uint64 bytes = least;

		memcpy(&bytes, values + i, Min(n - i, 8));
		bits[i >> 6] |= pack_bytes((bytes ^ least) >> bit) << (i & 63);
	}
}

/* Writes the values in the form that was chosen. */
static void
write_values(const ChunkBuilder *builder, void *values)
{
	const CacheChunk *head = &builder->head;

	if (head->form == CHUNK_BITS)
		write_bits(builder, values);
	else if (head->width == builder->width && head->form != CHUNK_NARROW)
		memcpy(values, builder->values, (size_t) head->width * head->nrows);
	else if (head->width > 0)
		write_narrow(builder, head->width, values);
}

/* Copies an array to an offset of the chunk. */
static void
write_part(CacheChunk *dst, size_t offset, const void *from, size_t bytes)
{
	if (bytes > 0)
		memcpy((char *) dst + offset, from, bytes);
}

void
chunk_builder_write(ChunkBuilder *builder, CacheChunk *dst)
{
	const CacheChunk *head = &builder->head;

	Assert(builder->sized);
	memcpy(dst, head, sizeof(*head));
	write_values(builder, (char *) dst + head->values);
	if (head->nnulls > 0)
		write_part(dst, head->validity, builder->validity,
				   sizeof(uint64) * (BITMAP_WORDS(head->nrows) + 1));
	write_part(dst, head->exceptions, builder->exceptions,
			   sizeof(ChunkException) * head->nexceptions);
	if (head->stride == 0)
		write_part(dst, head->entries, builder->entries, sizeof(uint32) * head->nentries);
	write_part(dst, head->images, builder->images, builder->image_bytes);
}

/*
 * chunk_model.c
 *	  Builds chunks from the model and compares what is read with it.
 *
 * Defines the functions outside src/cache/ that chunks need. Those of PostgreSQL are in backend.h.
 */
#include "chunk_model.h"
#include "backend.h"

#include "columns/decimal.h"
#include "columns/hash_seed.h"

HashSeed
hash_seed_random(void)
{
	uint64_t a = random_u64();

	return hash_seed(a, random_u64());
}

/* Stands in for a numeric: its value and scale. */
typedef struct Numeric
{
	int32 header;
	int32 scale;
	gpuagg_i128 value;
} Numeric;

static Numeric numerics[1 << 18]; /* reused in turn */
static int nnumerics;

Datum
decimal_to_numeric(gpuagg_i128 value, int scale)
{
	Numeric *numeric = &numerics[nnumerics++ % lengthof(numerics)];

	SET_VARSIZE(numeric, sizeof(Numeric));
	numeric->scale = scale;
	numeric->value = value;
	return PointerGetDatum(numeric);
}

gpuagg_i128
decimal_power10(int n)
{
	return n == 0 ? 1 : 10 * decimal_power10(n - 1);
}

/* ---- the model ----------------------------------------------------------------- */

Model model;
ChunkBuilder *builder;
CacheChunk *chunk;
char storage[2][8 << 20] pg_attribute_aligned(8);

/* Returns the bytes of a by-reference value of the model's type. */
static size_t
image_length(const char *image)
{
	return model.typlen > 0 ? (size_t) model.typlen : VARSIZE_ANY(image);
}

bool
is_by_reference(void)
{
	return model.type == COLUMN_DATUM && !model.byval;
}

void
store_value(void *values, int i, gpuagg_i128 value)
{
	int width = column_width(model.type);

	memcpy((char *) values + (size_t) i * width, &value, width);
}

/* Returns a varlena that stands for the exception of a row, and contains the row's number. */
static char *
exception_image(int row, bool is_short)
{
	static char image[64] pg_attribute_aligned(8);

	if (is_short)
		SET_VARSIZE_SHORT(image, 9);
	else
		SET_VARSIZE(image, 24);
	memcpy(image + (is_short ? 1 : 4), &row, sizeof(row));
	return image;
}

/*
 * Adds the model's rows in batches of random size, and writes the chunk. Values of rows without a
 * value are random bits. The chunk is then copied to another address, and its original overwritten.
 */
static void
build_chunk(void)
{
	static char values[EXPR_ROWS * 16] pg_attribute_aligned(16);
	static char page[EXPR_ROWS * MAXALIGN(MAX_IMAGE)] pg_attribute_aligned(8);
	static uint8 state[EXPR_ROWS];
	size_t size;

	for (int done = 0; done < model.n;)
	{
		int max_rows = Min(EXPR_ROWS, model.n - done);
		int n = (int) random_below(max_rows + 1);
		bool all_values = true;

		for (int i = 0; i < n; i++)
		{
			gpuagg_i128 value = model.value[done + i];

			state[i] = model.state[done + i];
			all_values &= state[i] == VEC_VALUE;
			if (state[i] != VEC_VALUE)
				value = is_by_reference() ? 0 : ((gpuagg_i128) random_u64() << 64 | random_u64());
			else if (is_by_reference())
			{
				char *at = page + i * MAXALIGN(MAX_IMAGE);

				memcpy(at, model.image[value], image_length(model.image[value]));
				value = (gpuagg_i128) (uintptr_t) at;
			}
			store_value(values, i, value);
		}
		chunk_builder_add(builder, values, all_values && random_below(4) ? NULL : state, n);
		for (int i = 0; i < n; i++)
			if (state[i] == VEC_FALLBACK)
				chunk_builder_exception(builder, done + i,
										PointerGetDatum(exception_image(done + i, (done + i) % 2)));
		if (is_by_reference())
			memset(page, 0x55, (size_t) n * MAXALIGN(MAX_IMAGE));
		done += n;
	}
	size = chunk_builder_size(builder);
	CHECK(size == MAXALIGN(size) && size + 8 < sizeof(storage[0]), "size %zu is aligned and fits",
		  size);
	memset(storage[0], 0x33, size + 8);
	memset(storage[1], 0x33, Min(sizeof(storage[1]), size + 4096));
	chunk_builder_write(builder, (CacheChunk *) storage[0]);
	CHECK(storage[0][size] == 0x33, "nothing is written after the end of the chunk");
	/* only the bytes of the chunk are copied: it has no pointers */
	chunk = (CacheChunk *) (storage[1] + 8 * random_below(100));
	memcpy(chunk, storage[0], size);
	memset(storage[0], 0, size);
	CHECK(chunk->size == size && chunk->nrows == (uint32) model.n,
		  "the chunk has its size and number of rows");
}

/* ---- comparisons --------------------------------------------------------------- */

/*
 * Returns whether the value has the bytes of the row's image, and is aligned as its type requires.
 */
static bool
image_matches(Datum datum, int row)
{
	const char *expected = model.image[model.value[row]];
	const char *image = DatumGetPointer(datum);
	int align = model.align == 'd' ? 8 : model.align == 'i' ? 4 : model.align == 's' ? 2 : 1;

	return memcmp(expected, image, image_length(expected)) == 0 &&
		((model.typlen == -1 && !VARATT_IS_4B(expected)) || (uintptr_t) image % align == 0);
}

/*
 * Returns whether the Datum is what the model has for a row that is not NULL: its value, or for an
 * exception (a numeric that a decimal cannot represent, see chunk.h) its exception_image().
 */
static bool
datum_matches(Datum datum, int row)
{
	gpuagg_i128 value = model.value[row];
	Datum expected = 0;
	int number;

	switch (model.type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
	{ \
		value_t v; \
		memcpy(&v, &value, sizeof(v)); \
		expected = to_datum(v); \
	} \
	break;
		COLUMN_SCALARS(X)
#undef X
		case COLUMN_DEC:
			if (model.state[row] == VEC_FALLBACK)
			{
				const char *image = DatumGetPointer(datum);

				memcpy(&number, image + (VARATT_IS_SHORT(image) ? 1 : 4), sizeof(number));
				return number == row && VARSIZE_ANY(image) == (row % 2 ? 9 : 24);
			}
			else
			{
				Numeric *numeric = (Numeric *) DatumGetPointer(datum);

				return numeric->scale == model.scale && numeric->value == value;
			}
		case COLUMN_DATUM:
			if (is_by_reference())
				return image_matches(datum, row);
			expected = (Datum) value;
			break;
	}
	return datum == expected;
}

/* Returns whether values[i], of the model's type, is the value of a row. */
static bool
value_matches(const void *values, int i, int row)
{
	int width = column_width(model.type);

	if (is_by_reference())
		return image_matches(((const Datum *) values)[i], row);
	return memcmp((const char *) values + (size_t) i * width, &model.value[row], width) == 0;
}

/*
 * Returns whether values[i] is within the chunk's bounds. Holds for rows without a value as well.
 */
static bool
is_within_bounds(const void *values, int i)
{
	gpuagg_i128 value = 0;

	switch (model.type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		value = ((const value_t *) values)[i]; \
		break;
		COLUMN_INTEGERS(X)
		X(DEC, gpuagg_i128)
#undef X
		default:
			return true;
	}
	return value >= chunk->least.integer && value <= chunk->greatest.integer;
}

/*
 * Compares what was read of rows from + list[i], or from + i if there is no list, with the model.
 */
static void
check_rows(bool all_values, const uint16 *list, int from, int n, ColumnType type,
		   const char *values, const uint8 *state)
{
	bool expected = true;
	bool same = type == model.type;

	for (int i = 0; i < n; i++)
	{
		int row = from + (list ? list[i] : i);
		uint8 expected_state = model.state[row];

		if (!same && expected_state == VEC_FALLBACK)
			expected_state = VEC_VALUE;
		expected &= expected_state == VEC_VALUE;
		CHECK(all_values || state[i] == expected_state, "type %d, row %d: state %d, not %d",
			  model.type, row, state[i], expected_state);
		CHECK(!same || !chunk->has_bounds || is_within_bounds(values, i), "row %d is out of bounds",
			  row);
		if (expected_state == VEC_VALUE)
			CHECK(same ? value_matches(values, i, row) :
						 datum_matches(((const Datum *) values)[i], row),
				  "type %d as %d, row %d of %d (form %d, width %d): wrong value", model.type, type,
				  row, model.n, chunk->form, chunk->width);
	}
	CHECK(all_values == expected, "type %d: all_values %d", model.type, all_values);
	CHECK(state[n] == 0x44 && values[(size_t) n * column_width(type)] == 0x44,
		  "nothing is written after row n");
}

/* Reads rows from .. from + n - 1, and gathers some of them, as the given type. */
static void
check_range(int from, int n, ColumnType type)
{
	static char values[(MAX_ROWS + 1) * 16] pg_attribute_aligned(64);
	static uint8 state[MAX_ROWS + 1];
	static uint16 list[MAX_ROWS];
	int m = 0;
	int density = (int) random_below(20);

	memset(values, 0x44, (n + 1) * 16);
	memset(state, 0x44, n + 1);
	check_rows(chunk_read(chunk, from, n, type, model.scale, values, state), NULL, from, n, type,
			   values, state);
	for (int i = 0; i < Min(n, 65536); i++)
		if (random_below(20) <= density)
			list[m++] = i;
	memset(values, 0x44, (n + 1) * 16);
	memset(state, 0x44, n + 1);
	check_rows(chunk_gather(chunk, list, from, m, type, model.scale, values, state), list, from, m,
			   type, values, state);
}

/* By-reference values have a dictionary: equal images have one code, and each code is used. */
static void
check_dictionary(void)
{
	static uint32 codes[MAX_ROWS];
	static int row_of[MAX_ROWS];
	uint32 n = chunk_dictionary_size(chunk);
	int from = (int) random_below(model.n + 1);
	bool any_value = false;

	for (int i = 0; i < model.n; i++)
		any_value |= model.state[i] == VEC_VALUE;
	CHECK((n > 0) == (any_value && is_by_reference()), "%u entries, values %d", n, any_value);
	if (n == 0)
		return;
	chunk_codes(chunk, 0, model.n, codes);
	chunk_codes(chunk, from, model.n - from, codes + from);
	memset(row_of, 0xff, sizeof(row_of));
	for (int i = 0; i < model.n; i++)
	{
		CHECK(codes[i] < n, "row %d: code %u of %u", i, codes[i], n);
		if (model.state[i] == VEC_NULL)
			continue;
		CHECK(image_matches(chunk_entry(chunk, codes[i]), i), "row %d: the entry is another value",
			  i);
		CHECK(row_of[codes[i]] < 0 || model.value[row_of[codes[i]]] == model.value[i],
			  "different images have different codes");
		row_of[codes[i]] = i;
	}
	for (uint32 c = 0; c < n; c++)
		CHECK(row_of[c] >= 0, "code %u is not used", c);
}

/* Compares in PostgreSQL's order: NaN is greater than all other numbers. */
static bool
double_less(double a, double b)
{
	return a < b || (isnan(b) && !isnan(a));
}

/* Returns whether two doubles are equal in SQL's order: NaN equals NaN, and -0 equals 0. */
static bool
same_number(double a, double b)
{
	return !double_less(a, b) && !double_less(b, a);
}

/* Integers and decimals are stored in as few bytes as their range needs. */
static void
check_width(gpuagg_i128 least, gpuagg_i128 greatest)
{
	int width = 0;

	while (width < 16 && (gpuagg_u128) (greatest - least) >> 8 * width != 0)
		width = width == 0 ? 1 : 2 * width;
	if (chunk->form == CHUNK_BITS)
		CHECK(greatest - least == 1, "only two neighbouring values are stored as bits");
	else
		CHECK(chunk->width == Min(width, column_width(model.type)), "type %d: width %d, not %d",
			  model.type, chunk->width, width);
}

/* Checks the counts of NULLs and exceptions, the validity bitmap, the width and the bounds. */
static void
check_bounds(void)
{
	bool any_value = false;
	gpuagg_i128 least = 0, greatest = 0;
	double lowest = 0, highest = 0;
	int nulls = 0, exceptions = 0;

	for (int i = 0; i < model.n; i++)
	{
		gpuagg_i128 value = model.value[i];
		double number = 0;

		nulls += model.state[i] == VEC_NULL;
		exceptions += model.state[i] == VEC_FALLBACK;
		if (model.state[i] != VEC_VALUE)
			continue;
		if (model.type == COLUMN_F64)
			memcpy(&number, &value, sizeof(number));
		else if (model.type == COLUMN_F32)
		{
			float narrow;

			memcpy(&narrow, &value, sizeof(narrow));
			number = narrow;
		}
		if (!any_value || double_less(number, lowest))
			lowest = number;
		if (!any_value || double_less(highest, number))
			highest = number;
		least = any_value ? Min(least, value) : value;
		greatest = any_value ? Max(greatest, value) : value;
		any_value = true;
	}
	CHECK(chunk->nnulls == (uint32) nulls && (chunk_validity(chunk) != NULL) == (nulls > 0),
		  "%u NULLs", chunk->nnulls);
	CHECK(chunk->nexceptions == (uint32) exceptions, "%u exceptions", chunk->nexceptions);
	for (int i = 0; i < model.n && nulls > 0; i++)
		CHECK(bitmap_get(chunk_validity(chunk), i) == (model.state[i] != VEC_NULL),
			  "validity of %d", i);
	if (!column_is_float(model.type) && !is_by_reference())
		check_width(least, greatest);
	if (!any_value || model.type == COLUMN_DATUM ||
		(model.type == COLUMN_DEC && (least < PG_INT64_MIN || greatest > PG_INT64_MAX)))
		CHECK(!chunk->has_bounds, "bounds of type %d", model.type);
	else if (column_is_float(model.type))
		CHECK(chunk->has_bounds && same_number(chunk->least.number, lowest) &&
				  same_number(chunk->greatest.number, highest),
			  "bounds %g %g, not %g %g", chunk->least.number, chunk->greatest.number, lowest,
			  highest);
	else
		CHECK(chunk->has_bounds && chunk->least.integer == (int64) least &&
				  chunk->greatest.integer == (int64) greatest,
			  "bounds of type %d", model.type);
}

/* Checks the bounds of the first bytes of varlena values. */
static void
check_prefixes(void)
{
	uint64 least = PG_UINT64_MAX, greatest = 0;
	bool all = model.typlen == -1;

	for (uint32 e = 0; all && e < chunk->nentries; e++)
	{
		const char *entry = DatumGetPointer(chunk_entry(chunk, e));
		uint64 prefix = 0;

		all = !VARATT_IS_COMPRESSED(entry) && !VARATT_IS_EXTERNAL(entry);
		for (int i = 0; all && i < 8; i++)
			prefix = prefix << 8 |
				(i < (int) VARSIZE_ANY_EXHDR(entry) ? (uint8) VARDATA_ANY(entry)[i] : 0);
		least = Min(least, prefix);
		greatest = Max(greatest, prefix);
	}
	CHECK(chunk->has_prefixes == (all && chunk->nentries > 0), "has_prefixes");
	CHECK(!chunk->has_prefixes ||
			  (chunk->least_prefix == least && chunk->greatest_prefix == greatest),
		  "prefixes of %u entries", chunk->nentries);
}

/* Checks the array of narrow offsets, which a batch uses without copying it. */
static void
check_narrow(void)
{
	Column col = {.type = model.type, .narrow = chunk_narrow(chunk, model.type, model.scale)};

	CHECK((col.narrow != NULL) ==
			  (chunk->form == CHUNK_NARROW && chunk->width <= 4 && chunk->has_bounds),
		  "there is an array of offsets exactly if they have up to 4 bytes and there are bounds");
	CHECK(!chunk_narrow(chunk, COLUMN_DATUM, 0), "there is no array of offsets for another type");
	col.base = (int64) chunk->base;
	col.narrow_width = chunk->width;
	for (int i = 0; i < model.n && col.narrow; i++)
	{
		gpuagg_i128 value = column_narrow_value(
			&col, i); /* little-endian, so a narrower value has the same bytes */

		CHECK(model.state[i] != VEC_VALUE || value_matches((const char *) &value, 0, i),
			  "row %d: the offset is the value", i);
	}
}

/* Reads the chunk in all ways: in place, whole, random ranges, and single rows. */
static void
check_chunk(void)
{
	const char *in_place = chunk_in_place(chunk, model.type, model.scale);

	check_bounds();
	check_narrow();
	check_prefixes();
	check_dictionary();
	CHECK((in_place != NULL) == (chunk->form == CHUNK_RAW),
		  "values can be read in place exactly if they are stored raw");
	CHECK(model.type != COLUMN_DEC || !chunk_in_place(chunk, COLUMN_DEC, model.scale + 1),
		  "values of another scale cannot be read in place");
	for (int i = 0; i < model.n && in_place; i++)
		CHECK(model.state[i] != VEC_VALUE || value_matches(in_place, i, i),
			  "row %d: the value in place is right", i);
	check_range(0, model.n, model.type);
	check_range(0, model.n, COLUMN_DATUM);
	for (int k = 0; k < 10; k++)
	{
		int from = (int) random_below(model.n + 1);
		int n = (int) random_below(Min(model.n - from, 600) + 1);

		check_range(from, n, model.type);
		check_range(from, n, COLUMN_DATUM);
	}
	for (int k = 0; k < 200 && model.n > 0; k++)
	{
		int row = (int) random_below(model.n);
		bool isnull;
		Datum datum = chunk_datum(chunk, row, &isnull);

		CHECK(isnull == (model.state[row] == VEC_NULL), "row %d: NULL %d", row, isnull);
		CHECK(isnull || datum_matches(datum, row), "row %d: the Datum is another value", row);
	}
}

/* ---- contents ------------------------------------------------------------------ */

void
set_type(ColumnType type, int16 scale, int16 typlen, bool byval, char align)
{
	model.type = type;
	model.scale = scale;
	model.typlen = typlen;
	model.byval = byval;
	model.align = align;
	builder = chunk_builder_create(type, scale, typlen, byval, align, NULL);
}

void
fill_states(Nulls nulls, bool exceptions)
{
	for (int i = 0; i < model.n; i++)
	{
		bool null = nulls == NULLS_ALL || (nulls == NULLS_HALF && random_below(2)) ||
			(nulls == NULLS_FEW && random_below(1000) == 0) ||
			(nulls == NULLS_FIRST && i < model.n / 2);

		model.state[i] = null                    ? VEC_NULL :
			exceptions && random_below(500) == 0 ? VEC_FALLBACK :
												   VEC_VALUE;
	}
}

int
random_rows(void)
{
	static const int sizes[] = {0, 1, 2, 63, 64, 65, 255, 256, 257, 1000, 5000};

	return sizes[random_below(lengthof(sizes))];
}

gpuagg_i128
random_i128(void)
{
	return (gpuagg_i128) ((gpuagg_u128) random_u64() << 64 | random_u64());
}

void
fill_integers(gpuagg_i128 least, gpuagg_u128 range)
{
	for (int i = 0; i < model.n; i++)
	{
		gpuagg_u128 r = (gpuagg_u128) random_i128();

		model.value[i] =
			(gpuagg_i128) ((gpuagg_u128) least + (range == ~(gpuagg_u128) 0 ? r : r % (range + 1)));
	}
	for (int i = 0; i < 2 && model.n > 2; i++)
	{
		int row = (int) random_below(model.n);

		model.value[row] = (gpuagg_i128) ((gpuagg_u128) least + (i ? range : 0));
	}
}

void
build_and_check(void)
{
	build_chunk();
	check_chunk();
	chunk_builder_reset(builder);
}

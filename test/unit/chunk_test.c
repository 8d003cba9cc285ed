/*
 * chunk_test.c
 *	  Chunks against a plain model: every type and form, NULLs, exceptions, parts of a
 *	  chunk and chosen rows.  "chunk_test bench" prints ns a value.
 */
#include "unit.h"
#include "backend.h"

#include <time.h>

#include "batch.h"
#include "cache/chunk.h"
#include "columns/decimal.h"
#include "columns/hash_seed.h"
#include "expr/expr.h"

HashSeed
hash_seed_random(void)
{
	uint64_t a = random_u64();

	return hash_seed(a, random_u64());
}

/* Not a numeric, but as good here: tells the value and the scale. */
typedef struct Numeric
{
	int32 header;
	int32 scale;
	gpuagg_i128 value;
} Numeric;

static Numeric numerics[1 << 18];
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

/* ---- the model ----------------------------------------------------------------- */

#define MAX_ROWS (256 * EXPR_ROWS)
#define MAX_IMAGE 2000

/* What rows hold: values of all types in 16 bytes, by-reference ones as an image's number. */
typedef struct Model
{
	ColumnType type;
	int16 scale;
	int16 typlen;
	bool byval;
	char align;
	int n;
	gpuagg_i128 value[MAX_ROWS];
	uint8 state[MAX_ROWS];
	int nimages;
	char *image[MAX_ROWS]; /* as in a tuple */
} Model;

static Model model;
static ChunkBuilder *builder;
static char storage[2][8 << 20] pg_attribute_aligned(8);
static CacheChunk *chunk;

static size_t
image_length(const char *image)
{
	return model.typlen > 0 ? (size_t) model.typlen : VARSIZE_ANY(image);
}

static bool
by_reference(void)
{
	return model.type == COLUMN_DATUM && !model.byval;
}

/* values[i] of a vector from what the model holds */
static void
put_value(void *values, int i, gpuagg_i128 value)
{
	int width = column_width(model.type);

	memcpy((char *) values + (size_t) i * width, &value, width);
}

/* Exceptions are varlenas of any kind that say which row they are of. */
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

static void
build(void)
{
	static char values[EXPR_ROWS * 16] pg_attribute_aligned(16);
	static char page[EXPR_ROWS * MAXALIGN(MAX_IMAGE)] pg_attribute_aligned(8);
	static uint8 state[EXPR_ROWS];
	size_t size;

	for (int done = 0; done < model.n;)
	{
		int most = Min(EXPR_ROWS, model.n - done);
		int n = (int) random_below(most + 1);
		bool all_values = true;

		for (int i = 0; i < n; i++)
		{
			gpuagg_i128 value = model.value[done + i];

			state[i] = model.state[done + i];
			all_values &= state[i] == VEC_VALUE;
			if (state[i] != VEC_VALUE)
				value = by_reference() ? 0 : ((gpuagg_i128) random_u64() << 64 | random_u64());
			else if (by_reference())
			{
				char *at = page + i * MAXALIGN(MAX_IMAGE);

				memcpy(at, model.image[value], image_length(model.image[value]));
				value = (gpuagg_i128) (uintptr_t) at;
			}
			put_value(values, i, value);
		}
		chunk_builder_add(builder, values, all_values && random_below(4) ? NULL : state, n);
		for (int i = 0; i < n; i++)
			if (state[i] == VEC_FALLBACK)
				chunk_builder_exception(builder, done + i,
										PointerGetDatum(exception_image(done + i, (done + i) % 2)));
		if (by_reference())
			memset(page, 0x55, (size_t) n * MAXALIGN(MAX_IMAGE));
		done += n;
	}
	size = chunk_builder_size(builder);
	CHECK(size == MAXALIGN(size) && size + 8 < sizeof(storage[0]), "size %zu", size);
	memset(storage[0], 0x33, size + 8);
	memset(storage[1], 0x33, Min(sizeof(storage[1]), size + 4096));
	chunk_builder_write(builder, (CacheChunk *) storage[0]);
	CHECK(storage[0][size] == 0x33, "written beyond its size");
	/* elsewhere, and only what belongs to it */
	chunk = (CacheChunk *) (storage[1] + 8 * random_below(100));
	memcpy(chunk, storage[0], size);
	memset(storage[0], 0, size);
	CHECK(chunk->size == size && chunk->nrows == (uint32) model.n, "size or rows");
}

/* ---- comparisons --------------------------------------------------------------- */

static bool
right_image(Datum datum, int row)
{
	const char *expected = model.image[model.value[row]];
	const char *image = DatumGetPointer(datum);
	int align = model.align == 'd' ? 8 : model.align == 'i' ? 4 : model.align == 's' ? 2 : 1;

	return memcmp(expected, image, image_length(expected)) == 0 &&
		((model.typlen == -1 && !VARATT_IS_4B(expected)) || (uintptr_t) image % align == 0);
}

/* A Datum of a row that is not NULL. */
static bool
right_datum(Datum datum, int row)
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
			if (by_reference())
				return right_image(datum, row);
			expected = (Datum) value;
			break;
	}
	return datum == expected;
}

static bool
right_value(const void *values, int i, int row)
{
	int width = column_width(model.type);

	if (by_reference())
		return right_image(((const Datum *) values)[i], row);
	return memcmp((const char *) values + (size_t) i * width, &model.value[row], width) == 0;
}

/* Rows without a value have one within the bounds, too. */
static bool
within_bounds(const void *values, int i)
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

/* What was read of rows from + list[i], or from + i. */
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
		CHECK(!same || !chunk->has_bounds || within_bounds(values, i), "row %d is out of bounds",
			  row);
		if (expected_state == VEC_VALUE)
			CHECK(same ? right_value(values, i, row) :
						 right_datum(((const Datum *) values)[i], row),
				  "type %d as %d, row %d of %d (form %d, width %d): wrong value", model.type, type,
				  row, model.n, chunk->form, chunk->width);
	}
	CHECK(all_values == expected, "type %d: all_values %d", model.type, all_values);
	CHECK(state[n] == 0x44 && values[(size_t) n * column_width(type)] == 0x44, "written beyond n");
}

static void
check_part(int from, int n, ColumnType type)
{
	static char values[(MAX_ROWS + 1) * 16] pg_attribute_aligned(64);
	static uint8 state[MAX_ROWS + 1];
	static uint16 list[MAX_ROWS];
	int m = 0;
	int share = (int) random_below(20);

	memset(values, 0x44, (n + 1) * 16);
	memset(state, 0x44, n + 1);
	check_rows(chunk_read(chunk, from, n, type, model.scale, values, state), NULL, from, n, type,
			   values, state);
	for (int i = 0; i < Min(n, 65536); i++)
		if (random_below(20) <= share)
			list[m++] = i;
	memset(values, 0x44, (n + 1) * 16);
	memset(state, 0x44, n + 1);
	check_rows(chunk_gather(chunk, list, from, m, type, model.scale, values, state), list, from, m,
			   type, values, state);
}

static void
check_dictionary(void)
{
	static uint32 codes[MAX_ROWS];
	static int row_of[MAX_ROWS];
	uint32 n = chunk_dictionary_size(chunk);
	int from = (int) random_below(model.n + 1);
	bool any = false;

	for (int i = 0; i < model.n; i++)
		any |= model.state[i] == VEC_VALUE;
	CHECK((n > 0) == (any && by_reference()), "%u entries", n);
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
		CHECK(right_image(chunk_entry(chunk, codes[i]), i), "row %d: another entry", i);
		CHECK(row_of[codes[i]] < 0 || model.value[row_of[codes[i]]] == model.value[i],
			  "two images, one code");
		row_of[codes[i]] = i;
	}
	for (uint32 c = 0; c < n; c++)
		CHECK(row_of[c] >= 0, "code %u is not used", c);
}

/* Of two doubles as PostgreSQL orders them. */
static bool
double_less(double a, double b)
{
	return a < b || (isnan(b) && !isnan(a));
}

static bool
same_number(double a, double b)
{
	return !double_less(a, b) && !double_less(b, a);
}

/* Integers and decimals take as few bytes as they can. */
static void
check_width(gpuagg_i128 least, gpuagg_i128 greatest)
{
	int width = 0;

	while (width < 16 && (gpuagg_u128) (greatest - least) >> 8 * width != 0)
		width = width == 0 ? 1 : 2 * width;
	if (chunk->form == CHUNK_BITS)
		CHECK(greatest - least == 1, "bits for other values");
	else
		CHECK(chunk->width == Min(width, column_width(model.type)), "type %d: width %d, not %d",
			  model.type, chunk->width, width);
}

static void
check_bounds(void)
{
	bool any = false;
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
		if (!any || double_less(number, lowest))
			lowest = number;
		if (!any || double_less(highest, number))
			highest = number;
		least = any ? Min(least, value) : value;
		greatest = any ? Max(greatest, value) : value;
		any = true;
	}
	CHECK(chunk->nnulls == (uint32) nulls && (chunk_validity(chunk) != NULL) == (nulls > 0),
		  "%u NULLs", chunk->nnulls);
	CHECK(chunk->nexceptions == (uint32) exceptions, "%u exceptions", chunk->nexceptions);
	for (int i = 0; i < model.n && nulls > 0; i++)
		CHECK(bitmap_get(chunk_validity(chunk), i) == (model.state[i] != VEC_NULL),
			  "validity of %d", i);
	if (!column_is_float(model.type) && !by_reference())
		check_width(least, greatest);
	if (!any || model.type == COLUMN_DATUM ||
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

/* The array of offsets, as a batch has it. */
static void
check_narrow(void)
{
	Column col = {.type = model.type, .narrow = chunk_narrow(chunk, model.type, model.scale)};

	CHECK((col.narrow != NULL) ==
			  (chunk->form == CHUNK_NARROW && chunk->width <= 4 && chunk->has_bounds),
		  "narrow");
	CHECK(!chunk_narrow(chunk, COLUMN_DATUM, 0), "narrow, another type");
	col.base = (int64) chunk->base;
	col.narrow_width = chunk->width;
	for (int i = 0; i < model.n && col.narrow; i++)
	{
		gpuagg_i128 value =
			column_narrow_value(&col, i); /* little-endian: its low bytes are of any width */

		CHECK(model.state[i] != VEC_VALUE || right_value((const char *) &value, 0, i),
			  "narrow, row %d", i);
	}
}

static void
check_chunk(void)
{
	const char *in_place = chunk_in_place(chunk, model.type, model.scale);

	check_bounds();
	check_narrow();
	check_dictionary();
	CHECK((in_place != NULL) == (chunk->form == CHUNK_RAW), "in place");
	CHECK(model.type != COLUMN_DEC || !chunk_in_place(chunk, COLUMN_DEC, model.scale + 1),
		  "in place, another scale");
	for (int i = 0; i < model.n && in_place; i++)
		CHECK(model.state[i] != VEC_VALUE || right_value(in_place, i, i), "in place, row %d", i);
	check_part(0, model.n, model.type);
	check_part(0, model.n, COLUMN_DATUM);
	for (int k = 0; k < 10; k++)
	{
		int from = (int) random_below(model.n + 1);
		int n = (int) random_below(Min(model.n - from, 600) + 1);

		check_part(from, n, model.type);
		check_part(from, n, COLUMN_DATUM);
	}
	for (int k = 0; k < 200 && model.n > 0; k++)
	{
		int row = (int) random_below(model.n);
		bool isnull;
		Datum datum = chunk_datum(chunk, row, &isnull);

		CHECK(isnull == (model.state[row] == VEC_NULL), "row %d: NULL %d", row, isnull);
		CHECK(isnull || right_datum(datum, row), "row %d: another Datum", row);
	}
}

/* ---- contents ------------------------------------------------------------------ */

typedef enum Nulls
{
	NULLS_NONE,
	NULLS_ALL,
	NULLS_HALF,
	NULLS_FEW,
	NULLS_FIRST,
	NULLS_PATTERNS
} Nulls;

static void
start(ColumnType type, int16 scale, int16 typlen, bool byval, char align)
{
	model.type = type;
	model.scale = scale;
	model.typlen = typlen;
	model.byval = byval;
	model.align = align;
	builder = chunk_builder_create(type, scale, typlen, byval, align, NULL);
}

static void
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

static int
random_rows(void)
{
	static const int sizes[] = {0, 1, 2, 63, 64, 65, 255, 256, 257, 1000, 5000};

	return sizes[random_below(lengthof(sizes))];
}

static gpuagg_i128
random_i128(void)
{
	return (gpuagg_i128) ((gpuagg_u128) random_u64() << 64 | random_u64());
}

/* Uniform in least .. least + range, both of which occur. */
static void
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

static void
build_and_check(void)
{
	build();
	check_chunk();
	chunk_builder_reset(builder);
}

static const gpuagg_u128 ranges[] = {0,
									 1,
									 2,
									 100,
									 0xfe,
									 0xff,
									 0x100,
									 0xfffe,
									 0xffff,
									 0x10000,
									 0xfffffffe,
									 0xffffffff,
									 UINT64CONST(0x100000000),
									 UINT64CONST(0x7fffffffffffffff),
									 UINT64CONST(0x8000000000000000),
									 UINT64CONST(0xfffffffffffffffe),
									 UINT64CONST(0xffffffffffffffff),
									 (gpuagg_u128) 1 << 64,
									 (gpuagg_u128) 1 << 90};

/* All ranges that fit lowest .. highest, at its ends and within. */
static void
integers(gpuagg_i128 lowest, gpuagg_i128 highest, bool exceptions)
{
	for (int r = 0; r < lengthof(ranges); r++)
		for (int place = 0; place < 4; place++)
			for (int nulls = 0; nulls < NULLS_PATTERNS; nulls++)
			{
				gpuagg_u128 slack = (gpuagg_u128) highest - (gpuagg_u128) lowest;
				gpuagg_i128 least = lowest;

				if (ranges[r] > slack)
					continue;
				slack -= ranges[r];
				if (place == 1)
					least += slack;
				else if (place == 2)
					least = (gpuagg_i128) ((gpuagg_u128) lowest +
										   (gpuagg_u128) random_i128() % (slack + 1));
				else if (place == 3 && lowest < -1 && -1 + (gpuagg_i128) ranges[r] <= highest)
					least = -1;
				model.n = random_rows();
				fill_states(nulls, exceptions);
				fill_integers(least, ranges[r]);
				build_and_check();
			}
}

static void
all_integers(void)
{
#define X(NAME, value_t, ...) \
	start(COLUMN_##NAME, 0, sizeof(value_t), true, 'i'); \
	integers((value_t) -1 > 0 ? 0 : -((gpuagg_i128) 1 << (8 * sizeof(value_t) - 1)), \
			 ((gpuagg_i128) 1 << (8 * sizeof(value_t) - ((value_t) -1 > 0 ? 0 : 1))) - 1, false);
	COLUMN_INTEGERS(X)
#undef X
	start(COLUMN_DATUM, 0, 8, true, 'd');
	integers(PG_INT64_MIN, PG_INT64_MAX, false);
}

static void
decimals(void)
{
	const gpuagg_i128 most = decimal_power10(28) - 1;

	for (int exceptions = 0; exceptions < 2; exceptions++)
	{
		start(COLUMN_DEC, 2, -1, false, 'i');
		integers(PG_INT64_MIN, PG_INT64_MAX, exceptions);
		start(COLUMN_DEC, 20, -1, false, 'i');
		integers(-most, most, exceptions);
		/* one builder, wide and narrow */
		integers(-1000, 1000, exceptions);
		integers(-most, most, exceptions);
	}
}

/* Only exceptions, at the ends and among NULLs. */
static void
exceptions(void)
{
	start(COLUMN_DEC, 5, -1, false, 'i');
	for (int k = 0; k < 200; k++)
	{
		model.n = random_rows();
		for (int i = 0; i < model.n; i++)
		{
			model.value[i] = random_below(1000) - 500;
			model.state[i] = k % 4 == 0 ? VEC_FALLBACK : random_below(3);
		}
		build_and_check();
	}
}

gpuagg_i128
decimal_power10(int n)
{
	return n == 0 ? 1 : 10 * decimal_power10(n - 1);
}

/* A number's bits, or others. */
static gpuagg_i128
float_bits(double value)
{
	float narrow = (float) value;
	uint64 bits = 0;

	if (model.type == COLUMN_F32)
		memcpy(&bits, &narrow, sizeof(narrow));
	else
		memcpy(&bits, &value, sizeof(value));
	return bits;
}

static void
floats(void)
{
	for (int type = 0; type < 2; type++)
	{
		start(type ? COLUMN_F64 : COLUMN_F32, 0, 8, true, 'd');
		for (int kind = 0; kind < 10; kind++)
			for (int k = 0; k < 10; k++)
				for (int nulls = 0; nulls < NULLS_PATTERNS; nulls++)
				{
					const uint64 mask = type ? ~UINT64CONST(0) : 0xffffffff;
					const double special[] = {0.0, -0.0, INFINITY, -INFINITY,
											  NAN, -NAN, 1.5,      -1e30};

					model.n = random_rows();
					fill_states(nulls, false);
					for (int i = 0; i < model.n; i++)
						model.value[i] = kind == 0 ?
							(gpuagg_i128) (random_u64() & mask) : /* all NaN payloads */
							kind == 1 ? float_bits(random_unit() * 1000 - 500) :
							kind == 2 ? float_bits(random_below(2) ? 0.0 : -0.0) :
							kind == 3 ? float_bits(-0.0) :
							kind == 4 ? float_bits(NAN) | (random_below(100)) :
							kind == 5 ? float_bits(NAN) :
							kind == 6 ? float_bits(special[random_below(lengthof(special))]) :
							kind == 7 ? float_bits(random_below(2) ? INFINITY : INFINITY) :
							kind == 8 ? float_bits(-INFINITY) :
										float_bits(random_below(300) ? random_unit() : NAN);
					build_and_check();
				}
	}
}

/* An image of a varlena type; different numbers give different bytes. */
static char *
make_varlena(int number)
{
	int kind = number % 8;
	int length = number % 13 == 0 ? 300 + number % 1500 : 5 + number % 40;
	char *image = malloc(MAX_IMAGE);

	for (int i = 0; i < MAX_IMAGE; i++)
		image[i] = 'a' + number % 3;
	if (kind == 0)
	{
		/* a toast pointer */
		SET_VARTAG_EXTERNAL(image, VARTAG_ONDISK);
		memcpy(image + 2, &number, sizeof(number));
	}
	else if (kind < 5 && length < 120)
	{
		SET_VARSIZE_SHORT(image, length + 1);
		memcpy(image + 1, &number, sizeof(number));
	}
	else
	{
		if (kind == 5)
			SET_VARSIZE_4B_C(image, length + 8);
		else
			SET_VARSIZE(image, length + 4);
		/* short ones, too, whose numbers differ only at the end */
		memcpy(image + length + (kind == 5 ? 8 : 4) - 4, &number, sizeof(number));
	}
	return image;
}

static char *
make_fixed(int number)
{
	char *image = malloc(MAX_IMAGE);

	memset(image, 'x', MAX_IMAGE);
	memcpy(image + (number % 2 ? model.typlen - 4 : 0), &number, sizeof(number));
	image[4] = number % 2;
	return image;
}

static void
references(int16 typlen, char align, const int *distinct, int ndistinct)
{
	start(COLUMN_DATUM, 0, typlen, false, align);
	for (int i = 0; i < model.nimages; i++)
		free(model.image[i]);
	model.nimages = 70000;
	for (int i = 0; i < model.nimages; i++)
		model.image[i] = typlen > 0 ? make_fixed(i) : make_varlena(i);
	for (int d = 0; d < ndistinct; d++)
		for (int nulls = 0; nulls < NULLS_PATTERNS; nulls++)
			for (int k = 0; k < (distinct[d] < 2000 ? 5 : 1); k++)
			{
				model.n =
					distinct[d] > 2000 ? distinct[d] + (int) random_below(3000) : random_rows();
				fill_states(nulls, false);
				for (int i = 0; i < model.n; i++)
					model.value[i] = k == 0 && i < distinct[d] ? i : random_below(distinct[d]);
				build_and_check();
				/* all distinct */
				for (int i = 0; i < model.n; i++)
					model.value[i] = i % model.nimages;
				build_and_check();
			}
}

static void
varlenas(void)
{
	static const int distinct[] = {1, 2, 10, 255, 256, 257, 1000, 65535, 65536, 65537};

	references(-1, 'i', distinct, lengthof(distinct));
	references(-1, 'd', distinct, 5);
	CHECK(chunk_builder_create(COLUMN_DATUM, 0, -2, false, 'c', NULL) == NULL, "cstring");
}

static void
fixed_references(void)
{
	static const int distinct[] = {1, 2, 256, 257, 65537};

	references(16, 'c', distinct, lengthof(distinct));
	references(12, 'd', distinct, 4);
	references(64, 'c', distinct, 4);
	references(6, 'i', distinct, 4);
}

/* A whole range of the shortest tuples. */
static void
largest(void)
{
	start(COLUMN_I64, 0, 8, true, 'd');
	model.n = MAX_ROWS;
	fill_states(NULLS_FEW, false);
	fill_integers(-5, 70000);
	build_and_check();
	start(COLUMN_DEC, 2, -1, false, 'i');
	fill_states(NULLS_HALF, true);
	build_and_check();
	start(COLUMN_I8, 0, 1, true, 'c');
	fill_integers(0, 1);
	fill_states(NULLS_HALF, false);
	build_and_check();
	CHECK(chunk->form == CHUNK_BITS && chunk->size < MAX_ROWS / 4 + 500, "size of booleans: %zu",
		  chunk->size);
}

/* ---- bench --------------------------------------------------------------------- */

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* The least time of many, in ns a row. */
#define TIME(result, ...) \
	do \
	{ \
		result = 1e9; \
		for (int t = 0; t < 15; t++) \
		{ \
			double begin = seconds(); \
			__VA_ARGS__; \
			result = Min(result, (seconds() - begin) * 1e9 / model.n); \
		} \
	} while (0)

#define PAGE 200

static void
bench(const char *name, Nulls nulls)
{
	static char values[MAX_ROWS * 16] pg_attribute_aligned(64);
	static uint8 state[MAX_ROWS];
	static uint16 list[PAGE];
	int width = column_width(model.type);
	double add, write, read, gather;

	model.n = 200 * 256;
	fill_states(nulls, false);
	for (int i = 0; i < PAGE; i++)
		list[i] = i / 2 * 2;
	for (int i = 0; i < model.n; i++)
		put_value(values, i,
				  !by_reference() ? model.value[i] :
									(gpuagg_i128) (uintptr_t) model.image[model.value[i]]);
	TIME(add, chunk_builder_reset(builder); for (int i = 0; i < model.n; i += PAGE)
			 chunk_builder_add(builder, values + (size_t) i * width, nulls ? model.state + i : NULL,
							   PAGE));
	TIME(write, builder = builder; chunk_builder_size(builder);
		 chunk_builder_write(builder, (CacheChunk *) storage[0]));
	chunk = (CacheChunk *) storage[0];
	TIME(read,
		 for (int i = 0; i < model.n; i += PAGE)
			 chunk_read(chunk, i, PAGE, model.type, model.scale, values, state));
	TIME(gather,
		 for (int i = 0; i < model.n; i += PAGE)
			 chunk_gather(chunk, list, i, PAGE, model.type, model.scale, values, state));
	printf("# %-20s form %d width %2d, %5.2f bytes a row: "
		   "add %5.2f write %5.2f read %5.2f gather %5.2f ns\n",
		   name, chunk->form, chunk->width, (double) chunk->size / model.n, add, write, read,
		   gather);
}

static void
benches(void)
{
	static const gpuagg_u128 spans[] = {
		1, 200, 60000, 4000000000, UINT64CONST(1) << 50, (gpuagg_u128) 1 << 80};

	model.n = 200 * 256;
#define X(NAME, value_t, ...) \
	for (int s = 0; s < 5 && spans[s] >> 8 * (sizeof(value_t)) == 0; s++) \
	{ \
		start(COLUMN_##NAME, 0, 8, true, 'd'); \
		fill_integers(0, spans[s]); \
		bench(#NAME, NULLS_NONE); \
	}
	COLUMN_INTEGERS(X)
#undef X
	start(COLUMN_I64, 0, 8, true, 'd');
	fill_integers(0, 60000);
	bench("I64, NULLs", NULLS_HALF);
	for (int s = 0; s < 6; s++)
	{
		start(COLUMN_DEC, 2, -1, false, 'i');
		fill_integers(0, spans[s]);
		bench("DEC", NULLS_NONE);
	}
	start(COLUMN_DEC, 2, -1, false, 'i');
	fill_integers(-500, 60000);
	bench("DEC, negative", NULLS_NONE);
	start(COLUMN_F64, 0, 8, true, 'd');
	for (int i = 0; i < model.n; i++)
		model.value[i] = float_bits(random_unit());
	bench("F64", NULLS_NONE);
	bench("F64, NULLs", NULLS_HALF);
	start(COLUMN_F32, 0, 8, true, 'd');
	for (int i = 0; i < model.n; i++)
		model.value[i] = float_bits(random_unit());
	bench("F32", NULLS_NONE);
	start(COLUMN_DATUM, 0, -1, false, 'i');
	for (int i = 0; i < MAX_ROWS; i++)
	{
		char text[32];
		int length = snprintf(text, sizeof(text), "value %d", i);

		model.image[i] = malloc(64);
		SET_VARSIZE_SHORT(model.image[i], length + 1);
		memcpy(model.image[i] + 1, text, length);
	}
	for (int distinct = 1; distinct < 100000; distinct *= 10)
	{
		char name[64];

		for (int i = 0; i < model.n; i++)
			model.value[i] = random_below(Min(distinct, MAX_ROWS));
		snprintf(name, sizeof(name), "text, %d distinct", distinct);
		bench(name, NULLS_NONE);
	}
	for (int i = 0; i < model.n; i++)
		model.value[i] = i;
	bench("text, all distinct", NULLS_NONE);
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "bench") == 0)
	{
		benches();
		return 0;
	}
	RUN("integers", all_integers);
	RUN("decimals", decimals);
	RUN("exceptions", exceptions);
	RUN("floats", floats);
	RUN("varlenas", varlenas);
	RUN("by-reference values of fixed length", fixed_references);
	RUN("a whole range", largest);
	return unit_done();
}

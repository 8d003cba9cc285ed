/*
 * chunk_test.c
 *	  Tests chunks (cache/chunk.h) of values that are passed by value, and of decimals.
 *
 * Chunks are built from a model and compared with it, see chunk_model.h: integers of all types and
 * ranges, decimals with exceptions, floats with all special values, with NULLs in several patterns.
 *
 * "chunk_test bench" instead prints the time of each operation in ns per row.
 */
#include "chunk_model.h"

#include <time.h>

#include "columns/decimal.h"

/* Differences of the greatest and the least value, near the bounds of each width. */
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

/* Checks all ranges that fit lowest .. highest: at both ends, at a random place, and from -1 on. */
static void
check_integers(gpuagg_i128 lowest, gpuagg_i128 highest, bool exceptions)
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
	set_type(COLUMN_##NAME, 0, sizeof(value_t), true, 'i'); \
	check_integers((value_t) -1 > 0 ? 0 : -((gpuagg_i128) 1 << (8 * sizeof(value_t) - 1)), \
				   ((gpuagg_i128) 1 << (8 * sizeof(value_t) - ((value_t) -1 > 0 ? 0 : 1))) - 1, \
				   false);
	COLUMN_INTEGERS(X)
#undef X
	set_type(COLUMN_DATUM, 0, 8, true, 'd');
	check_integers(PG_INT64_MIN, PG_INT64_MAX, false);
}

static void
decimals(void)
{
	const gpuagg_i128 greatest_decimal = decimal_power10(28) - 1;

	for (int exceptions = 0; exceptions < 2; exceptions++)
	{
		set_type(COLUMN_DEC, 2, -1, false, 'i');
		check_integers(PG_INT64_MIN, PG_INT64_MAX, exceptions);
		set_type(COLUMN_DEC, 20, -1, false, 'i');
		check_integers(-greatest_decimal, greatest_decimal, exceptions);
		/* the same builder for narrow and for wide values */
		check_integers(-1000, 1000, exceptions);
		check_integers(-greatest_decimal, greatest_decimal, exceptions);
	}
}

/* Chunks of exceptions only, and exceptions among values and NULLs. */
static void
exceptions(void)
{
	set_type(COLUMN_DEC, 5, -1, false, 'i');
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

/* Returns the bits of a number as a float of the model's type. */
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
		set_type(type ? COLUMN_F64 : COLUMN_F32, 0, 8, true, 'd');
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
							(gpuagg_i128) (random_u64() & mask) : /* any bits */
							kind == 1 ? float_bits(random_unit() * 1000 - 500) :
							kind == 2 ? float_bits(random_below(2) ? 0.0 : -0.0) :
							kind == 3 ? float_bits(-0.0) :
							kind == 4 ? float_bits(NAN) | (random_below(100)) :
							kind == 5 ? float_bits(NAN) :
							kind == 6 ? float_bits(special[random_below(lengthof(special))]) :
							kind == 7 ? float_bits(random_below(2) ? INFINITY : -INFINITY) :
							kind == 8 ? float_bits(-INFINITY) :
										float_bits(random_below(300) ? random_unit() : NAN);
					build_and_check();
				}
	}
}
/* Chunks with the maximum number of rows. */
static void
whole_range(void)
{
	set_type(COLUMN_I64, 0, 8, true, 'd');
	model.n = MAX_ROWS;
	fill_states(NULLS_FEW, false);
	fill_integers(-5, 70000);
	build_and_check();
	set_type(COLUMN_DEC, 2, -1, false, 'i');
	fill_states(NULLS_HALF, true);
	build_and_check();
	set_type(COLUMN_I8, 0, 1, true, 'c');
	fill_integers(0, 1);
	fill_states(NULLS_HALF, false);
	build_and_check();
	CHECK(chunk->form == CHUNK_BITS && chunk->size < MAX_ROWS / 4 + 500,
		  "booleans are stored in bits, %zu bytes", chunk->size);
}
/* ---- bench --------------------------------------------------------------------- */

static double
now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Sets result to the least time of 15 executions, in ns per row. */
#define TIME(result, ...) \
	do \
	{ \
		result = 1e9; \
		for (int t = 0; t < 15; t++) \
		{ \
			double begin = now_seconds(); \
			__VA_ARGS__; \
			result = Min(result, (now_seconds() - begin) * 1e9 / model.n); \
		} \
	} while (0)

#define PAGE 200 /* rows of a page, which are added or read together */

/* Prints the times of building and reading a chunk of the model's values. */
static void
print_times_of(const char *name, Nulls nulls)
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
		store_value(values, i,
					!is_by_reference() ? model.value[i] :
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
	printf("# %-20s form %d width %2d, %5.2f bytes per row: "
		   "add %5.2f write %5.2f read %5.2f gather %5.2f ns\n",
		   name, chunk->form, chunk->width, (double) chunk->size / model.n, add, write, read,
		   gather);
}

static void
print_times(void)
{
	static const gpuagg_u128 widths[] = {
		1, 200, 60000, 4000000000, UINT64CONST(1) << 50, (gpuagg_u128) 1 << 80};

	model.n = 200 * 256;
#define X(NAME, value_t, ...) \
	for (int s = 0; s < 5 && widths[s] >> 8 * (sizeof(value_t)) == 0; s++) \
	{ \
		set_type(COLUMN_##NAME, 0, 8, true, 'd'); \
		fill_integers(0, widths[s]); \
		print_times_of(#NAME, NULLS_NONE); \
	}
	COLUMN_INTEGERS(X)
#undef X
	set_type(COLUMN_I64, 0, 8, true, 'd');
	fill_integers(0, 60000);
	print_times_of("I64, NULLs", NULLS_HALF);
	for (int s = 0; s < 6; s++)
	{
		set_type(COLUMN_DEC, 2, -1, false, 'i');
		fill_integers(0, widths[s]);
		print_times_of("DEC", NULLS_NONE);
	}
	set_type(COLUMN_DEC, 2, -1, false, 'i');
	fill_integers(-500, 60000);
	print_times_of("DEC, negative", NULLS_NONE);
	set_type(COLUMN_F64, 0, 8, true, 'd');
	for (int i = 0; i < model.n; i++)
		model.value[i] = float_bits(random_unit());
	print_times_of("F64", NULLS_NONE);
	print_times_of("F64, NULLs", NULLS_HALF);
	set_type(COLUMN_F32, 0, 8, true, 'd');
	for (int i = 0; i < model.n; i++)
		model.value[i] = float_bits(random_unit());
	print_times_of("F32", NULLS_NONE);
	set_type(COLUMN_DATUM, 0, -1, false, 'i');
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
		print_times_of(name, NULLS_NONE);
	}
	for (int i = 0; i < model.n; i++)
		model.value[i] = i;
	print_times_of("text, all distinct", NULLS_NONE);
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "bench") == 0)
	{
		print_times();
		return 0;
	}
	RUN("integers are read as they were added", all_integers);
	RUN("decimals are read as they were added", decimals);
	RUN("exceptions are read as they were added", exceptions);
	RUN("floats are read as they were added", floats);
	RUN("chunks of the maximum number of rows are read as they were added", whole_range);
	return unit_done();
}

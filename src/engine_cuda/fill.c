/*
 * fill.c
 *	  Copies columns of a batch to their arrays in a buffer of the arena; converts them where
 *	  necessary.
 */
#include "postgres.h"

#include <math.h>

#include "engine_cuda/query.h"
#include "aggregates/matrix.h"

/* ---- validity ---- */

/* Appends n bits of src, from bit `from` on, after `at` bits of dst. */
static void
append_bits(uint64 *dst, uint32 at, const uint64 *src, int from, int n)
{
	for (int done = 0; done < n;)
	{
		int d = (at + done) % 64;
		int s = (from + done) % 64;
		int take = Min(Min(64 - d, 64 - s), n - done);
		uint64 mask = take == 64 ? ~UINT64CONST(0) : (UINT64CONST(1) << take) - 1;
		uint64 *word = &dst[(at + done) / 64];

		*word = (*word & ~(mask << d)) | ((src[(from + done) / 64] >> s & mask) << d);
		done += take;
	}
}

static bool
has_null(const Column *in, int from, int n)
{
	uint64 word;

	if (in->validity == NULL)
		return false;
	for (int i = 0; i < n; i += 64)
	{
		int take = Min(64, n - i);

		word = 0;
		append_bits(&word, 0, in->validity, from + i, take);
		if (word != (take == 64 ? ~UINT64CONST(0) : (UINT64CONST(1) << take) - 1))
			return true;
	}
	return false;
}

static void
fill_validity(CudaColumn *col, char *buffer, uint32 rows, const Column *in, int from, int n)
{
	uint64 *bits = (uint64 *) (buffer + col->validity);

	if (!has_null(in, from, n))
	{
		/* the bitmap exists since an earlier NULL */
		if (col->has_nulls)
		{
			static const uint64 ones[1] = {~UINT64CONST(0)};

			for (int i = 0; i < n; i += 64)
				append_bits(bits, rows + i, ones, 0, Min(64, n - i));
		}
		return;
	}
	if (!col->has_nulls)
		memset(bits, 0xff, wire_bitmap_bytes(rows));
	col->has_nulls = true;
	append_bits(bits, rows, in->validity, from, n);
}

/* ---- values ---- */

#define RANGE(ctype) \
	do \
	{ \
		const ctype *v = (const ctype *) in->values + from; \
		ctype lo = v[0], hi = v[0]; \
		for (int i = 1; i < n; i++) \
		{ \
			lo = v[i] < lo ? v[i] : lo; \
			hi = v[i] > hi ? v[i] : hi; \
		} \
		col->min = Min(col->min, (int64) lo); \
		col->max = Max(col->max, (int64) hi); \
	} while (0)

#define RANGE_VALID(ctype) \
	do \
	{ \
		const ctype *v = (const ctype *) in->values; \
		for (int i = from; i < from + n; i++) \
			if (bitmap_get(in->validity, i)) \
			{ \
				col->min = Min(col->min, (int64) v[i]); \
				col->max = Max(col->max, (int64) v[i]); \
			} \
	} while (0)

#define RANGE_OF(ctype) \
	if (in->validity) \
		RANGE_VALID(ctype); \
	else \
		RANGE(ctype)

/* Widens the value range of a key column by these rows. */
static void
note_range(CudaColumn *col, const Column *in, int from, int n)
{
	switch (col->type)
	{
		case WIRE_I8:
			RANGE_OF(int8);
			break;
		case WIRE_I16:
			RANGE_OF(int16);
			break;
		case WIRE_I32:
			RANGE_OF(int32);
			break;
		default:
			RANGE_OF(int64);
			break;
	}
}

#define CONVERT(from_t, to_t) \
	do \
	{ \
		const from_t *v = (const from_t *) in->values + from; \
		to_t *out = (to_t *) (buffer + col->values) + rows; \
		for (int i = 0; i < n; i++) \
			out[i] = v[i]; \
	} while (0)

#define CONVERT_CASE(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		CONVERT(value_t, target_t); \
		break;

#define CONVERT_TO(to_t) \
	{ \
		typedef to_t target_t; \
\
		switch (in->type) \
		{ \
			COLUMN_INTEGERS(CONVERT_CASE) \
			default: \
				elog(ERROR, "unexpected column type %d", (int) in->type); \
		} \
	}

/* Copies the low 64 bits of decimals. Returns false if a value that is not NULL does not fit. */
static bool
narrow_decimals(int64 *out, const Column *in, int from, int n)
{
	const int128 *v = (const int128 *) in->values + from;
	int64 lost = 0; /* not 0: some value's high 64 bits are not the sign of the low ones */

	if (in->validity == NULL)
		for (int i = 0; i < n; i++)
		{
			out[i] = (int64) v[i];
			lost |= (int64) (v[i] >> 64) ^ (out[i] >> 63);
		}
	else
		for (int i = 0; i < n; i++)
		{
			out[i] = (int64) v[i];
			if (bitmap_get(in->validity, from + i))
				lost |= (int64) (v[i] >> 64) ^ (out[i] >> 63);
		}
	return lost == 0;
}

/* Stores decimals in 64 bits until a value needs more. Then widens the rows before it in place. */
static void
fill_decimals(CudaColumn *col, char *buffer, uint32 rows, const Column *in, int from, int n)
{
	int64 *narrow = (int64 *) (buffer + col->values);
	int128 *wide = (int128 *) (buffer + col->values);

	if (!col->wide)
	{
		if (narrow_decimals(narrow + rows, in, from, n))
			return;
		for (int64 j = (int64) rows - 1; j >= 0; j--)
			wide[j] = narrow[j];
		col->wide = true;
	}
	memcpy(wide + rows, (const int128 *) in->values + from, n * sizeof(int128));
}

/* Returns whether one of these floats is -0. The values of NULL rows may be anything. */
static bool
has_negative_zero(const Column *in, int from, int n)
{
	switch (in->type)
	{
#define X(NAME, value_t, bits_t, ...) \
	case COLUMN_##NAME: \
	{ \
		const bits_t *bits = (const bits_t *) in->values + from; \
		const bits_t negative_zero = (bits_t) 1 << (sizeof(bits_t) * 8 - 1); \
		bool any = false; \
\
		for (int i = 0; i < n; i++) \
			any |= bits[i] == negative_zero; \
		for (int i = 0; i < n && any; i++) \
			if (bits[i] == negative_zero && !column_is_null(in, from + i)) \
				return true; \
		return false; \
	}
		COLUMN_FLOATS(X)
#undef X
		default:
			return false;
	}
}

/*
 * Sets query->negative_zero if one of these rows has -0, and a minimum or maximum reads column c of
 * the query.
 */
static void
note_negative_zero(CudaQuery *query, int c, const Column *in, int from, int n)
{
	if (query->cols[c].extreme && has_negative_zero(in, from, n))
		query->negative_zero = true;
}

void
cuda_query_note_negative_zero(CudaQuery *query, const Batch *batch)
{
	for (int c = 0; c < query->ncols; c++)
		note_negative_zero(query, c, &batch->cols[query->cols[c].col], 0, batch->nrows);
}

/*
 * Returns whether one of these floats is -0, or a NaN other than the usual one. Codes do not
 * preserve such NaNs.
 */
static bool
has_unusual(const Column *in, int from, int n)
{
	switch (in->type)
	{
#define X(NAME, value_t, bits_t, ...) \
	case COLUMN_##NAME: \
	{ \
		const bits_t *bits = (const bits_t *) in->values + from; \
		const value_t *x = (const value_t *) in->values + from; \
		const bits_t negative_zero = (bits_t) 1 << (sizeof(bits_t) * 8 - 1); \
		value_t nan = (value_t) gpuagg_code_f64(gpuagg_f64_code(NAN)); \
		bits_t usual; \
		bool any = false; \
\
		memcpy(&usual, &nan, sizeof(usual)); \
		for (int i = 0; i < n; i++) \
			any |= bits[i] == negative_zero || x[i] != x[i]; \
		for (int i = 0; i < n && any; i++) \
			if ((bits[i] == negative_zero || (x[i] != x[i] && bits[i] != usual)) && \
				!column_is_null(in, from + i)) \
				return true; \
		return false; \
	}
		COLUMN_FLOATS(X)
#undef X
		default:
			return false;
	}
}

static bool
is_sent_unchanged(const CudaColumn *col, const Column *in)
{
	return col->travel == TRAVEL_VALUES && in->type != COLUMN_DEC &&
		cuda_native_type(in->type) == col->type;
}

static void
fill_values(CudaColumn *col, char *buffer, uint32 rows, const Column *in, int from, int n)
{
	int width = wire_width(col->type);
	char *to = buffer + col->values + (size_t) rows * width;
	char *values = (char *) in->values + (size_t) from * width;

	if (in->type == COLUMN_DEC)
		fill_decimals(col, buffer, rows, in, from, n);
	else if (is_sent_unchanged(col, in))
	{
		if (values != to)
			memcpy(to, values, (size_t) n * width);
	}
	else if (col->type == WIRE_I64)
		CONVERT_TO(int64)
	else
		CONVERT_TO(double)
	if (col->key >= 0)
		note_range(col, in, from, n);
	fill_validity(col, buffer, rows, in, from, n);
}

#define CODES_OF(from_t, expr) \
	do \
	{ \
		const from_t *v = (const from_t *) in->values + from; \
		for (int i = 0; i < n; i++) \
		{ \
			double x = v[i]; \
			out[i] = gpuagg_f64_code(expr); \
		} \
	} while (0)

static void
fill_codes(CudaColumn *col, char *buffer, uint32 rows, const Column *in, int from, int n)
{
	int64 *out = (int64 *) (buffer + col->values) + rows;
	double zero = col->travel == TRAVEL_KEY_CODES ? 0.0 : -0.0; /* only 0.0 changes -0 */

	switch (in->type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		CODES_OF(value_t, x + zero); \
		break;
		COLUMN_FLOATS(X)
#undef X
		default:
			elog(ERROR, "unexpected column type %d", (int) in->type);
	}
	fill_validity(col, buffer, rows, in, from, n);
}

/* Copies parts of floats that cuda_query_split() has made. */
static void
fill_part(CudaColumn *col, char *buffer, uint32 rows, const int64 *parts, const Column *in,
		  int from, int n)
{
	memcpy(buffer + col->values + rows * sizeof(int64), parts + from, n * sizeof(int64));
	fill_validity(col, buffer, rows, in, from, n);
}

/* Returns the parts of the current batch that a column of the message has. */
static const int64 *
batch_parts(const CudaColumn *col)
{
	return col->travel == TRAVEL_HIGH_PART ? col->parts->high : col->parts->low;
}

static void
fill_parts_sum(const CudaQuery *query, CudaColumn *col, char *buffer, uint32 rows, const Column *in,
			   int from, int n)
{
	const int64 *a = batch_parts(&query->cols[col->sources[0]]) + from;
	const int64 *b = batch_parts(&query->cols[col->sources[1]]) + from;
	int64 *out = (int64 *) (buffer + col->values) + rows;

	for (int i = 0; i < n; i++)
		out[i] = a[i] + b[i];
	fill_validity(col, buffer, rows, in, from, n);
}

static void
fill_pairs(const CudaQuery *query, const CudaColumn *col, char *buffer, uint32 rows,
		   const Batch *batch, int from, int n)
{
	const Column *x = &batch->cols[query->cols[col->sources[0]].col];
	const Column *y = &batch->cols[query->cols[col->sources[1]].col];
	const Column *filter =
		col->sources[2] < 0 ? NULL : &batch->cols[query->cols[col->sources[2]].col];
	int8 *out = (int8 *) buffer + col->values + rows;

	for (int i = 0; i < n; i++)
		out[i] = !column_is_null(x, from + i) && !column_is_null(y, from + i) &&
			(filter == NULL ||
			 (!column_is_null(filter, from + i) && ((const int8 *) filter->values)[from + i]));
}

/* Copies matrices. Returns false if one has another size than those before. */
static bool
fill_matrices(CudaColumn *col, char *buffer, uint32 rows, const Column *in, int from, int n)
{
	const Datum *v = (const Datum *) in->values + from;
	int width = wire_width(col->type);
	double m[MATRIX_MAX * MATRIX_MAX];
	bool same = true;

	for (int i = 0; i < n; i++)
	{
		if (column_is_null(in, from + i))
			continue;
		if (matrix_read(v[i], m) != 2 + (int) col->type - WIRE_MAT2)
			same = false;
		else
			memcpy(buffer + col->values + (size_t) (rows + i) * width, m, width);
	}
	fill_validity(col, buffer, rows, in, from, n);
	return same;
}

static void
fill_filter(CudaColumn *col, char *buffer, uint32 rows, const Column *in, int from, int n)
{
	const int8 *v = (const int8 *) in->values + from;
	int8 *out = (int8 *) buffer + col->values + rows;

	if (in->validity == NULL)
		memcpy(out, v, n);
	else
		for (int i = 0; i < n; i++)
			out[i] = bitmap_get(in->validity, from + i) && v[i];
}

void
cuda_query_bind_buffers(const CudaQuery *query, char *buffer, uint32 rows, Batch *batch)
{
	for (int c = 0; c < batch->ncols; c++)
		if (batch->cols[c].memory)
			batch->cols[c].values = batch->cols[c].memory;
	for (int c = 0; c < query->ncols && buffer; c++)
	{
		const CudaColumn *col = &query->cols[c];
		Column *out = &batch->cols[col->col];

		if (out->memory && is_sent_unchanged(col, out))
			out->values = buffer + col->values + (size_t) rows * wire_width(col->type);
	}
}

void
cuda_query_fill(CudaQuery *query, char *buffer, uint32 rows, const Batch *batch, int from, int n)
{
	for (int c = 0; c < query->ncols; c++)
	{
		CudaColumn *col = &query->cols[c];
		const Column *in = &batch->cols[col->col];

		switch (col->travel)
		{
			case TRAVEL_VALUES:
				fill_values(col, buffer, rows, in, from, n);
				note_negative_zero(query, c, in, from, n);
				break;
			case TRAVEL_CODES:
			case TRAVEL_NUMBERS:
				memcpy(buffer + col->values + rows * sizeof(int32), col->codes + from,
					   n * sizeof(int32));
				col->min = 0;
				col->max = dictionary_size(col->dict) - 1;
				break;
			case TRAVEL_SET_CODES:
				memcpy(buffer + col->values + rows * sizeof(int32), col->codes + from,
					   n * sizeof(int32));
				fill_validity(col, buffer, rows, in, from, n);
				break;
			case TRAVEL_FILTER:
				fill_filter(col, buffer, rows, in, from, n);
				break;
			case TRAVEL_PRESENCE:
				fill_validity(col, buffer, rows, in, from, n);
				break;
			case TRAVEL_KEY_CODES:
			case TRAVEL_VALUE_CODES:
				fill_codes(col, buffer, rows, in, from, n);
				query->unusual_floats |= col->returned && has_unusual(in, from, n);
				break;
			case TRAVEL_HIGH_PART:
			case TRAVEL_LOW_PART:
				fill_part(col, buffer, rows, batch_parts(col), in, from, n);
				break;
			case TRAVEL_PARTS_SUM:
				fill_parts_sum(query, col, buffer, rows, in, from, n);
				break;
			case TRAVEL_PAIRS:
				fill_pairs(query, col, buffer, rows, batch, from, n);
				break;
			case TRAVEL_RUNS:
			case TRAVEL_RANKS:
				break;
			case TRAVEL_MATRIX:
				query->sizes_differ |= !fill_matrices(col, buffer, rows, in, from, n);
				break;
		}
	}
}

/*
 * unfill.c
 *	  Reads rows of a buffer of the arena back into a batch, for the CPU engine, after the GPU
 *	  server had no room for them.
 *
 * The inverse of fill.c. A column of the batch may have been sent in several forms; it is read from
 * the form that preserves the most. No operator of the query reads what no form preserves: values
 * of which only the validity counts, and integers that are used as floats.
 */
#include "postgres.h"

#include "columns/column_value.h"
#include "engine_cuda/query.h"

/* Ranks the forms in which a column was sent: 0 preserves the most of its values. */
static int
form_rank(const CudaColumn *col, ColumnType type)
{
	switch (col->travel)
	{
		case TRAVEL_VALUES:
			if ((WireType) cuda_native_type(type) == col->type)
				return 0;
			return col->type == WIRE_I64 ? 1 : 5;
		case TRAVEL_CODES:
		case TRAVEL_NUMBERS:
		case TRAVEL_SET_CODES:
			return 2;
		case TRAVEL_VALUE_CODES:
			return 3;
		case TRAVEL_KEY_CODES:
		case TRAVEL_HIGH_PART:
			return 4;
		case TRAVEL_FILTER:
			return 6;
		case TRAVEL_RUNS:
		case TRAVEL_RANKS:
		case TRAVEL_PARTS_SUM:
		case TRAVEL_PAIRS:
			return 8;
		default:
			return 7;
	}
}

/* Returns the query's column from which the spec's column c is best read; -1: none. */
static int
best_form(const CudaQuery *query, int c)
{
	ColumnType type = query->spec->cols[c].type;
	int best = -1;

	for (int i = 0; i < query->ncols; i++)
		if (query->cols[i].col == c &&
			(best < 0 || form_rank(&query->cols[i], type) < form_rank(&query->cols[best], type)))
			best = i;
	return best;
}

/*
 * Returns the validity bitmap of the spec's column c, from any form that has one; NULL if there is
 * none.
 */
static uint64 *
read_validity(const CudaQuery *query, int c, const char *buffer, const WireBatch *wire, int from,
			  int n)
{
	for (int i = 0; i < query->ncols; i++)
		if (query->cols[i].col == c && wire->cols[i].validity != WIRE_NO_ARRAY)
		{
			uint64 *bits = palloc(BITMAP_WORDS(n) * sizeof(uint64));

			Assert(from % 64 == 0);
			memcpy(bits, buffer + wire->cols[i].validity + from / 8,
				   BITMAP_WORDS(n) * sizeof(uint64));
			if (n % 64 != 0)
				bits[n / 64] &= (UINT64CONST(1) << n % 64) - 1;
			return bits;
		}
	return NULL;
}

#define CONVERT(to_t, from_t, expr) \
	do \
	{ \
		const from_t *v = (const from_t *) values; \
		for (int i = 0; i < n; i++) \
		{ \
			from_t x = v[i]; \
			((to_t *) out->values)[i] = (to_t) (expr); \
		} \
	} while (0)

/* Returns an integer whose conversion gives this double. */
static int64
integer_of(double x)
{
	return x >= 9223372036854775808.0 ? PG_INT64_MAX : (int64) x;
}

static void
narrow(Column *out, const char *values, WireType type, int n)
{
	switch (out->type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		if (type == WIRE_I64) \
			CONVERT(value_t, int64, x); \
		else \
			CONVERT(value_t, double, integer_of(x)); \
		break;
		COLUMN_INTEGERS(X)
#undef X
		default:
			elog(ERROR, "unexpected column type %d", (int) out->type);
	}
}

/* Reads values and validity from dictionary codes. One of the codes may stand for NULL. */
static void
read_codes(const Dictionary *dict, const int32 *codes, int n, Column *out)
{
	uint64 *bits = palloc0(BITMAP_WORDS(n) * sizeof(uint64));

	for (int i = 0; i < n; i++)
	{
		bool isnull;
		Datum value = dictionary_value(dict, codes[i], &isnull);

		if (isnull)
			continue;
		bitmap_set(bits, i);
		column_store(out->type, out->scale, out->values, i, value);
	}
	out->validity = bits;
}

static void
read_values(const CudaColumn *col, const char *values, WireType type, int n, Column *out)
{
	switch (col->travel)
	{
		case TRAVEL_VALUES:
			if (out->type == COLUMN_DEC && type == WIRE_I64)
				CONVERT(int128, int64, x);
			else if ((WireType) cuda_native_type(out->type) == type)
				memcpy(out->values, values, (size_t) n * wire_width(type));
			else
				narrow(out, values, type, n);
			break;
		case TRAVEL_CODES:
		case TRAVEL_NUMBERS:
		case TRAVEL_SET_CODES:
			read_codes(col->dict, (const int32 *) values, n, out);
			break;
		case TRAVEL_KEY_CODES:
		case TRAVEL_VALUE_CODES:
			switch (out->type)
			{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		CONVERT(value_t, int64, gpuagg_code_f64(x)); \
		break;
				COLUMN_FLOATS(X)
#undef X
				default:
					elog(ERROR, "unexpected column type %d", (int) out->type);
			}
			break;
		case TRAVEL_FILTER:
			memcpy(out->values, values, n);
			break;
		case TRAVEL_PRESENCE:
		case TRAVEL_RANKS:
		case TRAVEL_RUNS:
		case TRAVEL_HIGH_PART: /* cuda_parts_read() reads both parts */
		case TRAVEL_LOW_PART:
		case TRAVEL_PARTS_SUM:
		case TRAVEL_PAIRS:
			break;
		case TRAVEL_MATRIX:
			elog(ERROR, "matrices are not read back");
	}
}

/* Returns the values of a column of the message, from row `from` on. */
static const char *
sent_values(const char *buffer, const WireBatch *wire, int i, int from)
{
	return buffer + wire->cols[i].values + (size_t) from * wire_width(wire->cols[i].type);
}

void
cuda_query_unfill(const CudaQuery *query, const char *buffer, const WireBatch *wire, int from,
				  int n, Batch *out)
{
	const AggSpec *spec = query->spec;

	out->nrows = out->capacity = n;
	out->ncols = spec->ncols;
	out->cols = palloc0(spec->ncols * sizeof(Column));
	for (int c = 0; c < spec->ncols; c++)
	{
		Column *col = &out->cols[c];
		int i = best_form(query, c);

		col->type = spec->cols[c].type;
		col->scale = spec->cols[c].scale;
		col->values = palloc0((size_t) n * column_width(col->type));
		col->validity = read_validity(query, c, buffer, wire, from, n);
		if (i < 0)
			col->validity = palloc0(BITMAP_WORDS(n) * sizeof(uint64));
		else if (query->cols[i].travel == TRAVEL_HIGH_PART)
			cuda_parts_read(
				query->cols[i].parts, (const int64 *) sent_values(buffer, wire, i, from),
				(const int64 *) sent_values(buffer, wire, query->cols[i].parts->low_col, from), n,
				col);
		else if (wire->cols[i].values != WIRE_NO_ARRAY)
			read_values(&query->cols[i], sent_values(buffer, wire, i, from), wire->cols[i].type, n,
						col);
	}
}

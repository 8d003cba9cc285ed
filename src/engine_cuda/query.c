/*
 * query.c
 *	  Translates a query for the GPU server: which columns are sent, and in which form.
 *
 * Integer keys are sent unchanged, and packed on the device into one key, with a byte for NULLs.
 * Keys of other types are sent as dictionary codes. NULL has a code like any other value.
 *
 * Arguments are sent in their own width. Decimals are sent in 64 bits if all values of a buffer
 * fit, floats by which an operator orders as codes, and a validity bitmap only if a buffer has
 * NULLs.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "utils/memutils.h"

#include "columns/column_value.h"
#include "engine_cuda/query.h"
#include "aggregates/matrix.h"

/* Most rows of a buffer. */
#define MAX_BUFFER_ROWS (1 << 20)

/*
 * Bytes of a buffer that are used. So much stays in a core's cache until it is copied to the
 * device: filling is 1.1 to 1.2 times as fast as with 8 MB. With many clients, which keep every
 * core busy, the server's time for each batch matters more: sums of 48 M rows by 16 processes took
 * 0.94 of the time with twice the size.
 */
#define FILL_BYTES (2 << 20)
#define FILL_BYTES_PARALLEL (4 << 20)

/*
 * With more groups whole buffers are used, because each batch costs a pass over the groups. Not for
 * rows that arrive grouped.
 */
#define MANY_GROUPS 65536

/* The kind of values that an operator reads. */
typedef enum WantKind
{
	WANT_INTEGER,
	WANT_WIDE,
	WANT_SINGLE,
	WANT_DOUBLE,
	WANT_OTHER
} WantKind;

#define WANT_OF_int8_t WANT_INTEGER
#define WANT_OF_int32_t WANT_INTEGER
#define WANT_OF_uint32_t WANT_INTEGER
#define WANT_OF_int64_t WANT_INTEGER
#define WANT_OF_gpuagg_kv WANT_INTEGER
#define WANT_OF_gpuagg_i128 WANT_WIDE
#define WANT_OF_float WANT_SINGLE
#define WANT_OF_double WANT_DOUBLE
#define WANT_OF_gpuagg_f64x2 WANT_DOUBLE
#define WANT_OF_gpuagg_mat2 WANT_OTHER
#define WANT_OF_gpuagg_mat3 WANT_OTHER
#define WANT_OF_gpuagg_mat4 WANT_OTHER
#define WANT_OF_gpuagg_mat5 WANT_OTHER

static const WantKind want_kind[] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) WANT_OF_##input_t,
#include "operators/monoid_list.h"
#undef MONOID
};

/* ---- translation ---- */

/*
 * Returns the message's column for an input of this kind, or -1. Floats for an integer input are
 * sent as `codes`.
 */
static int
add_input(CudaQuery *query, int col, WantKind kind, Travel codes)
{
	ColumnType type = query->spec->cols[col].type;
	int native = cuda_native_type(type);
	bool isfloat = column_is_float(type);

	switch (kind)
	{
		case WANT_INTEGER:
		case WANT_WIDE:
			if (native < 0 || (type == COLUMN_DEC && kind != WANT_WIDE))
				return -1;
			if (isfloat)
				return kind == WANT_INTEGER ?
					cuda_query_add_column(query, col, codes, WIRE_I64, -1) :
					-1;
			/* unsigned values need a wider signed type */
			return cuda_query_add_column(query, col, TRAVEL_VALUES,
										 type == COLUMN_U32 ? WIRE_I64 : native, -1);
		case WANT_SINGLE:
			return type == COLUMN_F32 ?
				cuda_query_add_column(query, col, TRAVEL_VALUES, WIRE_F32, -1) :
				-1;
		case WANT_DOUBLE:
			if (native < 0 || type == COLUMN_DEC)
				return -1;
			return cuda_query_add_column(query, col, TRAVEL_VALUES, isfloat ? native : WIRE_F64,
										 -1);
		default:
			return -1;
	}
}

static bool
translate_bins(CudaQuery *query, const SlotSpec *slot, WireSlot *out)
{
	static const WireBinKind kinds[] = {WIRE_BIN_NONE, WIRE_BIN_UNIFORM, WIRE_BIN_THRESHOLDS,
										WIRE_BIN_HLL};
	const BinSpec *bins = &slot->bins;

	out->bin_kind = kinds[bins->kind];
	out->bin_n = bins->n;
	out->width = slot->width;
	out->lo = bins->lo;
	out->hi = bins->hi;
	out->formula = bins->formula;
	if (bins->kind == BIN_THRESHOLDS)
	{
		if (bins->n > WIRE_MAX_THRESHOLDS - query->wire->nthresholds)
			return false;
		out->thresholds = query->wire->nthresholds;
		query->wire = repalloc(
			query->wire, sizeof(WireQuery) + (query->wire->nthresholds + bins->n) * sizeof(double));
		memcpy((double *) (query->wire + 1) + query->wire->nthresholds, bins->thresholds,
			   bins->n * sizeof(double));
		query->wire->nthresholds += bins->n;
	}
	return true;
}

/*
 * Returns the magnitude of inputs below which no partial result of an operator overflows, in any
 * order of n inputs, for n up to 2^40. A sum stays below n times the magnitude. Youngs and Cramer's
 * sums (monoid.h) have the square of x * n - sum(x), which is below 2^511 in magnitude, and add at
 * most 8 x * x at a time; combining adds up to n * x * x.  Sums of fourth powers add up to
 * 16 * n * x^4 at a time.
 */
static double
safe_magnitude(MonoidId monoid)
{
	switch (monoid)
	{
		case MONOID_SUM_F32:
			return ldexp(1, FLT_MAX_EXP - 1 - 40);
		case MONOID_SUM_F64:
			return ldexp(1, DBL_MAX_EXP - 1 - 40);
		case MONOID_ACCUM_F64:
		case MONOID_REGR_F64:
			return ldexp(1, DBL_MAX_EXP / 2 - 2 - 40);
		case MONOID_MOMENTS_F64:
			return ldexp(1, DBL_MAX_EXP / 4 - 4 - 40);
		default:
			return 0;
	}
}

/*
 * Updates CudaColumn.safe, for cuda_query_large(), with the magnitude below which the floats of a
 * slot are safe.
 */
static void
update_safe_magnitude(CudaQuery *query, const SlotSpec *slot, const WireSlot *out)
{
	double safe = safe_magnitude(slot->monoid);

	if (safe == 0)
		return;
	for (int c = slot->bins.kind == BIN_NONE ? 0 : 1; c < 2; c++)
		if (out->col[c] >= 0)
		{
			CudaColumn *col = &query->cols[out->col[c]];

			col->safe = col->safe == 0 ? safe : Min(col->safe, safe);
		}
}

/*
 * Translates a mean whose squared deviations nothing reads: a count and a sum. The GPU computes
 * these faster, and other aggregates may share them.
 */
static bool
translate_mean(CudaQuery *query, int s, const WireSlot *accum)
{
	WireSlot out = *accum;

	out.monoid = MONOID_COUNT;
	out.col[0] =
		cuda_query_add_column(query, query->spec->slots[s].col[0], TRAVEL_PRESENCE, WIRE_I8, -1);
	if (out.col[0] < 0)
		return false;
	query->slot[s] = cuda_query_add_slot(query, &out);
	out.monoid = MONOID_SUM_F64;
	out.col[0] = accum->col[0];
	query->sum[s] = cuda_query_add_slot(query, &out);
	return true;
}

static bool
translate_slot(CudaQuery *query, int s, const char **why)
{
	const SlotSpec *slot = &query->spec->slots[s];
	WantKind kind = want_kind[slot->monoid];
	WireSlot out;

	query->sum[s] = -1;
	if (slot->set > 0)
		return cuda_query_distinct_slot(query, s, why);

	*why = "an operator of an aggregate is not supported on the GPU";
	memset(&out, 0, sizeof(out));
	out.monoid = slot->monoid;
	out.col[0] = out.col[1] = out.filter = -1;
	for (int c = 0; c < 2; c++)
	{
		WantKind input = kind;

		if (slot->col[c] < 0)
			continue;
		if (c == 0 && slot->bins.kind != BIN_NONE)
			input = slot->bins.kind == BIN_HLL ? WANT_INTEGER : WANT_DOUBLE;
		if (input == WANT_INTEGER && slot->monoid == MONOID_COUNT && slot->bins.kind == BIN_NONE)
			out.col[c] = cuda_query_add_column(query, slot->col[c], TRAVEL_PRESENCE, WIRE_I8, -1);
		else if (slot->monoid == MONOID_MAT2)
			out.col[c] = cuda_query_add_column(query, slot->col[c], TRAVEL_MATRIX, WIRE_MAT5, -1);
		else if (slot->monoid == MONOID_LONGEST_RUN)
			out.col[c] = cuda_query_add_column(query, slot->col[c], TRAVEL_FILTER, WIRE_I8, -1);
		else
			out.col[c] = add_input(query, slot->col[c], input,
								   c == 0 ? TRAVEL_KEY_CODES : TRAVEL_VALUE_CODES);
		if (out.col[c] < 0)
			return false;
	}
	if (slot->monoid == MONOID_MIN_F32 || slot->monoid == MONOID_MAX_F32 ||
		slot->monoid == MONOID_MIN_F64 || slot->monoid == MONOID_MAX_F64)
		query->cols[out.col[slot->bins.kind == BIN_NONE ? 0 : 1]].extreme = true;
	update_safe_magnitude(query, slot, &out);
	if (slot->filter >= 0 &&
		(out.filter = cuda_query_add_column(query, slot->filter, TRAVEL_FILTER, WIRE_I8, -1)) < 0)
		return false;
	*why = "histograms have more thresholds than the GPU supports";
	if (!translate_bins(query, slot, &out))
		return false;
	if (slot->monoid == MONOID_ACCUM_F64 && slot->mean_only)
		return translate_mean(query, s, &out);
	query->slot[s] = cuda_query_add_slot(query, &out);
	return true;
}

/* Returns whether the values of this key can be sent unchanged. */
static bool
can_send_key_values(const AggSpec *spec, const KeySpec *key)
{
	return key->kind == KEY_RAW && spec->cols[key->col].type != COLUMN_DEC &&
		cuda_native_type(spec->cols[key->col].type) >= 0;
}

/* Adds the columns of the keys, and lays out the packed key. */
static bool
translate_keys(CudaQuery *query, const char **why)
{
	const AggSpec *spec = query->spec;
	WireQuery *wire = query->wire;
	bool nulls = false;
	int bytes = 0;

	*why = "the query has more GROUP BY keys than the GPU supports";
	if (spec->nkeys > WIRE_MAX_KEYS)
		return false;
	for (int k = 0; k < spec->nkeys; k++)
	{
		const KeySpec *key = &spec->keys[k];
		bool raw = can_send_key_values(spec, key);
		int type = raw ? cuda_native_type(spec->cols[key->col].type) : WIRE_I32;
		int col =
			cuda_query_add_column(query, key->col, raw ? TRAVEL_VALUES : TRAVEL_CODES, type, k);

		*why = "numerics in 128 bits as GROUP BY keys are not supported on the GPU";
		if (!raw && spec->cols[key->col].type == COLUMN_DEC)
			return false;
		if (!raw)
			query->cols[col].equality = key;
		query->keycol[k] = col;
		wire->keys[k].col = col;
		wire->keys[k].width = wire_width(type);
		/* NULL has a code like any other value */
		wire->keys[k].nullable = raw;
		wire->keys[k].offset = bytes;
		bytes += wire_width(type);
		nulls |= raw;
	}
	wire->nkeys = spec->nkeys;
	wire->key_bytes = spec->nkeys > 0 ? wire_key_bytes(bytes + nulls) : 0;
	wire->null_offset = nulls ? bytes : wire->key_bytes;
	return true;
}

/*
 * Translates the keys of rows that arrive grouped: the number of a row's run of equal keys replaces
 * its keys.
 */
static bool
translate_runs(CudaQuery *query, const char **why)
{
	const AggSpec *spec = query->spec;
	WireQuery *wire = query->wire;
	int col = cuda_query_add_column(query, spec->keys[0].col, TRAVEL_RUNS, WIRE_I32, 0);

	*why = "aggregates that depend on row order are not supported over sorted input on the GPU";
	if (spec->ordered)
		return false;
	*why = "DISTINCT and ordered-set aggregates, the n best and counts of values are not supported "
		   "over "
		   "sorted input on the GPU";
	if (spec_has_sets(spec) || spec_has_top_n(spec) || spec_has_tallies(spec))
		return false;
	*why = "the least or greatest text is not found over sorted input on the GPU";
	if (spec_has_ranked(spec))
		return false;
	*why = "sorted input without an aggregate is not supported on the GPU";
	if (spec->nslots + spec->nfallbacks == 0)
		return false;
	*why = "histograms and sketches are not supported over sorted input on the GPU";
	for (int s = 0; s < spec->nslots; s++)
		if (spec->slots[s].bins.kind != BIN_NONE)
			return false;
	/*
	 * products may overflow in one order of rows and not in another, and groups that have left
	 * cannot be taken back
	 */
	*why = "products are not supported over sorted input on the GPU";
	for (int s = 0; s < spec->nslots; s++)
		if (spec->slots[s].monoid == MONOID_PRODUCT_F64)
			return false;
	for (int k = 0; k < Min(spec->nkeys, WIRE_MAX_KEYS); k++)
		query->keycol[k] = col;
	wire->keys[0].col = col;
	wire->keys[0].width = wire->key_bytes = wire->null_offset = sizeof(int32);
	wire->nkeys = 1;
	return true;
}

static bool
translate_order(CudaQuery *query, const char **why)
{
	const AggSpec *spec = query->spec;
	WireQuery *wire = query->wire;

	*why = "the ORDER BY has more columns than the GPU supports";
	if (spec->norder > WIRE_MAX_ORDER)
		return false;
	for (int o = 0; o < spec->norder; o++)
	{
		int col = add_input(query, spec->order[o].col, WANT_INTEGER, TRAVEL_KEY_CODES);

		if (col < 0)
			return false;
		wire->order[o].col = col;
		wire->order[o].desc = spec->order[o].desc;
		wire->order[o].nulls_first = spec->order[o].nulls_first;
	}
	wire->norder = spec->norder;
	return true;
}

CudaQuery *
cuda_query_build(const AggSpec *spec, bool grouped, const char **why)
{
	CudaQuery *query = palloc0(sizeof(CudaQuery));

	query->spec = spec;
	query->wire = palloc0(sizeof(WireQuery));
	*why = "the query has more aggregates than the GPU supports";
	if (spec->nslots > WIRE_MAX_SLOTS)
		return NULL;
	if (grouped ? !translate_runs(query, why) : !translate_keys(query, why))
		return NULL;
	for (int s = 0; s < spec->nslots; s++)
		if (!translate_slot(query, s, why))
			return NULL;
	if (!cuda_query_ordered_sets(query, why) || !cuda_query_top_n(query, why) ||
		!cuda_query_tallies(query, why) || !cuda_query_ranked(query, why) ||
		!cuda_query_exact(query, why))
		return NULL;
	*why = "the query has more aggregates than the GPU supports";
	if (query->wire->nslots > WIRE_MAX_SLOTS)
		return NULL;
	if (spec->ordered && !translate_order(query, why))
		return NULL;
	*why = "the state of a group is larger than the GPU supports";
	if (!wire_group_fits(query->wire))
		return NULL;
	query->wire->ncols = query->ncols;
	query->wire->flags = (spec->ordered ? WIRE_ORDERED : 0) | (grouped ? WIRE_GROUPED : 0);
	query->wire_bytes = sizeof(WireQuery) + query->wire->nthresholds * sizeof(double);
	return query;
}

/* ---- buffers ---- */

static void
start_buffer(CudaQuery *query)
{
	for (int c = 0; c < query->ncols; c++)
	{
		CudaColumn *col = &query->cols[c];

		col->has_nulls = false;
		col->wide = false;
		col->min = PG_INT64_MAX;
		col->max = PG_INT64_MIN;
	}
}

void
cuda_query_layout(CudaQuery *query, MemoryContext cxt, uint32 buffer_bytes, int batch_rows,
				  bool parallel)
{
	size_t bits = 1;
	size_t at = 0;
	size_t rows;

	for (int c = 0; c < query->ncols; c++)
		bits +=
			8 * (query->cols[c].travel == TRAVEL_PRESENCE ? 0 : wire_width(query->cols[c].type)) +
			1;
	if (query->wire->est_groups <= MANY_GROUPS || (query->wire->flags & WIRE_GROUPED))
		buffer_bytes = Min(buffer_bytes, parallel ? FILL_BYTES_PARALLEL : FILL_BYTES);
	rows = (buffer_bytes - 2 * query->ncols * WIRE_ALIGN) / bits * 8;
	rows = Min(rows, MAX_BUFFER_ROWS) / 64 * 64;
	query->buffer_rows = rows;
	for (int c = 0; c < query->ncols; c++)
	{
		CudaColumn *col = &query->cols[c];

		col->values = at;
		if (col->travel != TRAVEL_PRESENCE)
			at += wire_align(rows * wire_width(col->type));
		col->validity = at;
		at += wire_align(wire_bitmap_bytes(rows));
		if (cuda_has_dictionary(col) && col->dict == NULL)
		{
			col->dict =
				dictionary_create(cxt, col->equality, &query->spec->cols[col->col], batch_rows);
			col->codes = MemoryContextAlloc(cxt, batch_rows * sizeof(int32));
			col->hashes = MemoryContextAlloc(cxt, batch_rows * sizeof(uint32));
			if (col->travel != TRAVEL_SET_CODES && col->equality->varies)
				dictionary_watch_variants(col->dict);
			if (query->spec->cols[col->col].type != COLUMN_DATUM)
				col->datums = MemoryContextAlloc(cxt, batch_rows * sizeof(Datum));
		}
		if (col->parts && col->parts->high == NULL)
		{
			col->parts->high = MemoryContextAlloc(cxt, batch_rows * sizeof(int64));
			col->parts->low = MemoryContextAlloc(cxt, batch_rows * sizeof(int64));
		}
	}
	query->buffer_bytes = at;
	Assert(at <= buffer_bytes);
	start_buffer(query);
}

void
cuda_query_reset(CudaQuery *query)
{
	query->negative_zero = query->unusual_floats = query->sizes_differ = false;
	for (int f = 0; f < query->spec->nfallbacks; f++)
		if (query->ranked[f].order)
		{
			pfree(query->ranked[f].order);
			query->ranked[f].order = NULL;
		}
	for (int c = 0; c < query->ncols; c++)
	{
		query->cols[c].stored = -1;
		if (query->cols[c].parts)
		{
			query->cols[c].parts->unit = 0;
			query->cols[c].parts->settled = false;
		}
		if (query->cols[c].dict)
			dictionary_reset(query->cols[c].dict);
	}
	start_buffer(query);
}

#define TO_DATUMS(ctype, to_datum) \
	for (int i = 0; i < nrows; i++) \
	out[i] = to_datum(((const ctype *) in->values)[i])

/*
 * Makes Datums of a key column that has none, for its dictionary. Datums of NULL rows may be
 * anything.
 */
static void
make_datums(const Column *in, int nrows, Datum *out)
{
	switch (in->type)
	{
#define X(NAME, value_t, bits_t, WIRE, from_datum, to_datum) \
	case COLUMN_##NAME: \
		TO_DATUMS(value_t, to_datum); \
		break;
		COLUMN_SCALARS(X)
#undef X
		default:
			elog(ERROR, "unexpected column type %d", (int) in->type);
	}
}

bool
cuda_query_encode(CudaQuery *query, const Batch *batch, size_t mem_limit, bool *variants)
{
	bool known = true;

	*variants = false;
	for (int c = 0; c < query->ncols; c++)
	{
		CudaColumn *col = &query->cols[c];
		Column in;

		if (!cuda_has_dictionary(col))
			continue;
		in = batch->cols[col->col];
		if (col->datums)
		{
			make_datums(&in, batch->nrows, col->datums);
			in.values = col->datums;
		}
		dictionary_lookup(col->dict, &in, batch->nrows, PG_INT32_MAX, mem_limit, col->codes,
						  col->hashes);
		for (int i = 0; i < batch->nrows; i++)
			known &= col->codes[i] != NO_CODE;
		if (col->travel == TRAVEL_CODES)
			*variants |= dictionary_met_variant(col->dict);
		else
			known &= !dictionary_met_variant(col->dict);
	}
	return known;
}

bool
cuda_query_unrepresentable(const CudaQuery *query, const Batch *batch)
{
	for (int c = 0; c < query->ncols; c++)
	{
		const Column *col = &batch->cols[query->cols[c].col];

		if (query->cols[c].travel != TRAVEL_VALUES || col->type != COLUMN_DEC ||
			!col->unrepresentable)
			continue;
		for (int w = 0; w < BITMAP_WORDS(batch->nrows); w++)
		{
			uint64 bits = col->unrepresentable[w];

			if (w == batch->nrows / 64)
				bits &= (UINT64CONST(1) << (batch->nrows % 64)) - 1;
			if (bits != 0)
				return true;
		}
	}
	return false;
}

#define LARGE_FLOATS(bits_t, float_t, bits_of_limit) \
	do \
	{ \
		const bits_t *v = (const bits_t *) in->values; \
		const bits_t top = (bits_t) 1 << (8 * sizeof(bits_t) - 1); \
		const bits_t carry = top - (bits_of_limit); \
		bits_t any = 0; \
		/* adding carry sets the top bit where the magnitude reaches the limit */ \
		for (int i = 0; i < n; i++) \
			any |= (v[i] & (bits_t) ~top) + carry; \
		if (likely(!(any & top))) \
			return false; \
		/* infinities and NaN never overflow, and the value of a NULL row is undefined */ \
		for (int i = 0; i < n; i++) \
		{ \
			float_t x = ((const float_t *) in->values)[i]; \
			if (!isinf(x) && fabs(x) >= safe && !column_is_null(in, i)) \
				return true; \
		} \
		return false; \
	} while (0)

/* Returns whether one of n values is finite and has at least this magnitude. */
static bool
has_large(const Column *in, int n, double safe)
{
	union
	{
		double f;
		uint64 bits;
	} wide = {safe};
	union
	{
		float f;
		uint32 bits;
	} single;

	if (in->type == COLUMN_F64)
		LARGE_FLOATS(uint64, double, wide.bits);
	if (in->type != COLUMN_F32 || safe > FLT_MAX)
		return false;
	single.f = (float) safe;
	LARGE_FLOATS(uint32, float, single.bits);
}

bool
cuda_query_large(const CudaQuery *query, const Batch *batch)
{
	for (int c = 0; c < query->ncols; c++)
	{
		const CudaColumn *col = &query->cols[c];

		if (col->safe > 0 && has_large(&batch->cols[col->col], batch->nrows, col->safe))
			return true;
	}
	return false;
}

bool
cuda_query_multiplies(const CudaQuery *query)
{
	for (int s = 0; s < query->wire->nslots; s++)
		if (query->wire->slots[s].monoid == MONOID_PRODUCT_F64)
			return true;
	return false;
}

/* Returns whether any column is sent in this form. */
static bool
sends_any_as(const CudaQuery *query, Travel travel)
{
	for (int c = 0; c < query->ncols; c++)
		if (query->cols[c].travel == travel)
			return true;
	return false;
}

/*
 * Codes and units are valid only in their own process, and rows in order must come from one
 * process.
 */
bool
cuda_query_shareable(const CudaQuery *query)
{
	return !query->spec->ordered && query->wire->nsets == 0 && !sends_any_as(query, TRAVEL_CODES) &&
		!cuda_query_has_exact(query) && !cuda_query_needs_batch(query) &&
		!cuda_query_has_ranks(query);
}

bool
cuda_query_has_ranks(const CudaQuery *query)
{
	return sends_any_as(query, TRAVEL_RANKS);
}

bool
cuda_query_has_column_codes(const CudaQuery *query)
{
	for (int c = 0; c < query->ncols; c++)
		if (query->cols[c].stored >= 0)
			return true;
	return false;
}

bool
cuda_query_needs_batch(const CudaQuery *query)
{
	return sends_any_as(query, TRAVEL_MATRIX);
}

bool
cuda_query_settle(CudaQuery *query, const Batch *batch)
{
	int *size = &query->matrix_size;
	double m[MATRIX_MAX * MATRIX_MAX];

	for (int c = 0; c < query->ncols; c++)
	{
		const Column *in = &batch->cols[query->cols[c].col];

		if (query->cols[c].travel != TRAVEL_MATRIX)
			continue;
		for (int i = 0; i < batch->nrows && *size == 0; i++)
			if (!column_is_null(in, i))
				*size = matrix_read(((const Datum *) in->values)[i], m);
		if (*size < 2)
			return false;
		query->cols[c].type = WIRE_MAT2 + *size - 2;
	}
	for (int s = 0; s < query->wire->nslots; s++)
		if (query->wire->slots[s].monoid == MONOID_MAT2)
			query->wire->slots[s].monoid = MONOID_MAT2 + *size - 2;
	return true;
}

/* ---- buffers that were filled ---- */

void
cuda_query_describe(CudaQuery *query, uint32 rows, WireBatch *out)
{
	memset(out, 0, sizeof(*out));
	out->nrows = rows;
	out->ncols = query->ncols;
	out->bytes = query->buffer_bytes;
	for (int c = 0; c < query->ncols; c++)
	{
		CudaColumn *col = &query->cols[c];
		bool dec = query->spec->cols[col->col].type == COLUMN_DEC;

		out->cols[c].type =
			dec && col->travel == TRAVEL_VALUES && !col->wide ? WIRE_I64 : col->type;
		out->cols[c].values = col->travel == TRAVEL_PRESENCE ? WIRE_NO_ARRAY : col->values;
		out->cols[c].validity = col->has_nulls ? col->validity : WIRE_NO_ARRAY;
	}
	/* a column may be several keys */
	for (int k = 0; k < query->wire->nkeys; k++)
	{
		out->key_min[k] = query->cols[query->wire->keys[k].col].min;
		out->key_max[k] = query->cols[query->wire->keys[k].col].max;
	}
	start_buffer(query);
}

/* ---- results ---- */

bool
cuda_query_keys_known(const CudaQuery *query, const char *packed, int n)
{
	for (int k = 0; k < query->spec->nkeys; k++)
	{
		const CudaColumn *col = &query->cols[query->keycol[k]];

		int64 codes = col->travel != TRAVEL_CODES ? 0 :
			col->stored >= 0                      ? (int64) col->nvalues + !col->chosen :
													dictionary_size(col->dict);
		int32 least = col->stored >= 0 && col->chosen ? COLUMN_NULL - col->nconstants : 0;

		for (int g = 0; g < n && col->travel == TRAVEL_CODES; g++)
		{
			int32 code = cuda_query_code(query, k, packed + (size_t) g * query->wire->key_bytes);

			if (code < least || code >= codes)
				return false;
		}
	}
	return true;
}

void
cuda_query_keys(const CudaQuery *query, int k, const char *packed, int n, Datum *values,
				bool *nulls)
{
	const WireKey *key = &query->wire->keys[k];
	const CudaColumn *col = &query->cols[query->keycol[k]];
	size_t stride = query->wire->key_bytes;

	if (col->travel == TRAVEL_CODES)
	{
		for (int g = 0; g < n; g++)
		{
			int32 code = cuda_query_code(query, k, packed + g * stride);

			values[g] = dictionary_value(col->dict, code, &nulls[g]);
		}
		return;
	}
	for (int g = 0; g < n; g++)
		nulls[g] = key->nullable && (packed[g * stride + query->wire->null_offset] >> k & 1);
	switch (query->spec->cols[col->col].type)
	{
		/* the bytes are little-endian, like the server's */
#define X(NAME, ...) \
	case COLUMN_##NAME: \
		for (int g = 0; g < n; g++) \
		{ \
			uint64 bits = 0; \
\
			if (!nulls[g]) \
				memcpy(&bits, packed + g * stride + key->offset, key->width); \
			values[g] = nulls[g] ? (Datum) 0 : column_bits_datum(COLUMN_##NAME, bits); \
		} \
		break;
		COLUMN_SCALARS(X)
#undef X
		default:
			elog(ERROR, "key %d of a group is no number", k);
	}
}

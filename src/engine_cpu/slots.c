/*
 * slots.c
 *	  Slots of a batch: which rows count, what they contribute, in which bin.
 *
 * Where every row counts, the loops read the arrays of the batch. A column is converted once per
 * batch if the monoid's input is wider. Otherwise the rows that count are selected, and their
 * inputs and states are gathered, so that the loops need no tests.
 *
 * States may be incomplete between batches, which saves work in each row. slots_complete()
 * completes them before they are read:
 *
 * - Shared count. As long as every row has counted for several slots, their counts are equal. Only
 *   the counting slot counts; the others share its count.
 * - Sums of 64 bits. A sum of 128 bits is kept in the lower 64 bits of its state as long as a bound
 *   proves that it fits.
 */
#include "postgres.h"

#include <math.h>

#include "port/pg_bitutils.h"

#include "operators/bins.h"
#include "engine_cpu/engine_cpu_internal.h"
#include "operators/hll.h"

/* Loops over runs are faster if runs have this many rows on average. */
#define MIN_MEAN_RUN 6

/* A column converted to a monoid's input type, kept for other slots of the batch. */
typedef struct Widened
{
	InputKind kind;
	bool valid;
	void *values;
} Widened;

struct SlotWork
{
	const AggSpec *spec;
	MemoryContext cxt;
	int batch_rows;
	Widened *widened; /* [column] */
	uint64 *mask;     /* rows that are being selected */
	void *input;      /* gathered or paired inputs */
	uint32 *at;       /* gathered offsets of states, or offsets of states in bins */
	double *binned;   /* gathered values whose bins are to be found */

	/* the rows that were selected last, and for which columns and filter */
	uint32 *selected;
	int nselected;
	int col[2];
	int filter;
	bool selection_valid;

	/*
	 * All values of slots with mean_only have been overflow-safe, and no state came from elsewhere.
	 * Such slots need no sum of squares. It matters only for an error: core's avg() reports when it
	 * overflows.
	 */
	bool overflow_safe;

	/*
	 * The slot that counts for all slots with shares_count, or -1. The shared count is copied to
	 * the others when they stop sharing it, or when groups are read.
	 */
	int counting_slot;
	bool *shares_count;
	char *pending_count; /* state of the counting slot in row 0, until it has counted the batch;
							else NULL */

	/*
	 * Slots with sums of 128 bits whose states are still sums of 64 bits, in their lower half. The
	 * absolute values in any of these sums add up to at most sum64_bound.
	 */
	bool *in_sum64;
	double *sum64_bound;
};

/* Sums with bounds up to this are kept in 64 bits. */
#define MAX_SUM64_BOUND 4e18

/*
 * Returns a slot's rank as a candidate for the counting slot: the highest one wins. 0: the slot
 * does not count rows, or not all of them.
 */
static int
count_rank(const SlotSpec *slot)
{
	if (slot->bins.kind != BIN_NONE || slot->filter >= 0)
		return 0;
	if (slot->monoid == MONOID_ACCUM_F64)
		return slot->mean_only ? 1 : 3;
	if (slot->monoid == MONOID_COUNT)
		return slot->col[0] < 0 ? 4 : 2;
	return 0;
}

void
slots_reset(SlotWork *work)
{
	const SlotSpec *slots = work->spec->slots;

	work->overflow_safe = true;
	work->counting_slot = -1;
	for (int s = 0; s < work->spec->nslots; s++)
		if (count_rank(&slots[s]) >
			(work->counting_slot < 0 ? 0 : count_rank(&slots[work->counting_slot])))
			work->counting_slot = s;
	for (int s = 0; s < work->spec->nslots; s++)
	{
		work->in_sum64[s] = slots[s].monoid == MONOID_SUM_DEC || slots[s].monoid == MONOID_SUM_I128;
		work->sum64_bound[s] = 0;
	}
	/* a slot that needs squares counts by itself */
	for (int s = 0; s < work->spec->nslots; s++)
		work->shares_count[s] = s != work->counting_slot && count_rank(&slots[s]) > 0 &&
			(slots[s].monoid == MONOID_COUNT || slots[s].mean_only);
}

SlotWork *
slots_create(const AggSpec *spec, int batch_rows)
{
	SlotWork *work = palloc0(sizeof(SlotWork));
	size_t input_size = sizeof(gpuagg_f64x2);

	work->spec = spec;
	work->shares_count = palloc0(Max(spec->nslots, 1) * sizeof(bool));
	work->in_sum64 = palloc0(Max(spec->nslots, 1) * sizeof(bool));
	work->sum64_bound = palloc0(Max(spec->nslots, 1) * sizeof(double));
	slots_reset(work);
	work->cxt = CurrentMemoryContext;
	work->batch_rows = batch_rows;
	work->widened = palloc0(Max(spec->ncols, 1) * sizeof(Widened));
	work->mask = palloc(BITMAP_WORDS(batch_rows) * sizeof(uint64));
	work->input = palloc(batch_rows * input_size + 16);
	work->input = (void *) TYPEALIGN(16, (uintptr_t) work->input);
	work->at = palloc(batch_rows * sizeof(uint32));
	work->binned = palloc(batch_rows * sizeof(double));
	work->selected = palloc(batch_rows * sizeof(uint32));
	return work;
}

/* ---- inputs ------------------------------------------------------------- */

#define CONVERT(FROM, TO) \
	do \
	{ \
		const FROM *v = (const FROM *) col->values; \
		TO *x = (TO *) out; \
		if (rows) \
			for (int i = 0; i < n; i++) \
				x[i] = (TO) v[rows[i]]; \
		else \
			for (int i = 0; i < n; i++) \
				x[i] = (TO) v[i]; \
		return; \
	} while (0)

#define CONVERT_CASE(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		CONVERT(value_t, to_t);

#define CONVERT_COLUMNS(COLUMNS, TO) \
	{ \
		typedef TO to_t; \
\
		switch (col->type) \
		{ \
			COLUMNS(CONVERT_CASE) \
			default: \
				break; \
		} \
	}

/* Floats for a monoid on integers: 64-bit codes that compare as the floats do. */
#define CODES_OF(FROM) \
	do \
	{ \
		const FROM *v = (const FROM *) col->values; \
		int64 *x = (int64 *) out; \
		for (int i = 0; i < n; i++) \
			x[i] = gpuagg_f64_code((double) v[rows ? rows[i] : i] + 0.0); \
		return; \
	} while (0)

#define CODES_CASE(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		CODES_OF(value_t);

/*
 * Writes the values of n rows of a column to out[], converted to a scalar input type: of the rows
 * rows[0 .. n - 1], or of the first n rows if `rows` is NULL.
 */
static void
convert_column(const Column *col, InputKind kind, const uint32 *rows, int n, void *out)
{
	if (col->narrow)
	{
		Assert(kind == INPUT_int64_t || kind == INPUT_gpuagg_i128);
		if (kind == INPUT_int64_t)
			for (int i = 0; i < n; i++)
				((int64 *) out)[i] = column_narrow_value(col, rows ? rows[i] : i);
		else
			for (int i = 0; i < n; i++)
				((gpuagg_i128 *) out)[i] = column_narrow_value(col, rows ? rows[i] : i);
		return;
	}
	switch (kind)
	{
		case INPUT_int8_t:
			if (col->type == COLUMN_I8)
				CONVERT(int8, int8);
			break;
		case INPUT_int32_t:
			CONVERT_COLUMNS(COLUMN_INTEGERS, int32);
			break;
		case INPUT_int64_t:
			CONVERT_COLUMNS(COLUMN_INTEGERS, int64);
			switch (col->type)
			{
				COLUMN_FLOATS(CODES_CASE)
				default:
					break;
			}
			break;
		case INPUT_float:
			CONVERT_COLUMNS(COLUMN_FLOATS, float);
			break;
		case INPUT_double:
			CONVERT_COLUMNS(COLUMN_FLOATS, double);
			CONVERT_COLUMNS(COLUMN_INTEGERS, double);
			break;
		case INPUT_gpuagg_i128:
			if (col->type == COLUMN_DEC)
				CONVERT(gpuagg_i128, gpuagg_i128);
			CONVERT_COLUMNS(COLUMN_INTEGERS, gpuagg_i128);
			break;
		default:
			break;
	}
	elog(ERROR, "column type %d cannot be monoid input %d", (int) col->type, (int) kind);
}

/* Returns whether a column's array can be read as this input type without conversion. */
static bool
column_has_kind(ColumnType type, InputKind kind)
{
	switch (kind)
	{
		case INPUT_int8_t:
			return type == COLUMN_I8;
		case INPUT_int32_t:
			return type == COLUMN_I32;
		case INPUT_int64_t:
			return type == COLUMN_I64;
		case INPUT_float:
			return type == COLUMN_F32;
		case INPUT_double:
			return type == COLUMN_F64;
		case INPUT_gpuagg_i128:
			return type == COLUMN_DEC;
		default:
			return false;
	}
}

/*
 * Returns the values of all rows of column c in this input type. The array is the column's own, or
 * a converted copy that stays valid for the batch.
 */
static const void *
dense_input(SlotWork *work, const Batch *batch, int c, InputKind kind)
{
	const Column *col = &batch->cols[c];
	Widened *w = &work->widened[c];

	if (column_has_kind(col->type, kind))
		return col->values;
	if (w->valid && w->kind == kind)
		return w->values;
	if (!w->values)
		w->values = MemoryContextAlloc(work->cxt, work->batch_rows * sizeof(gpuagg_i128));
	convert_column(col, kind, NULL, batch->nrows, w->values);
	w->kind = kind;
	w->valid = true;
	return w->values;
}

/*
 * Fills work->input with pairs of doubles from two columns: of the n rows in `rows`, or of the
 * first n rows if that is NULL.
 */
static void
pair_doubles(SlotWork *work, const Batch *batch, const int *cols, const uint32 *rows, int n)
{
	const double *a = dense_input(work, batch, cols[0], INPUT_double);
	const double *b = dense_input(work, batch, cols[1], INPUT_double);
	gpuagg_f64x2 *out = work->input;

	for (int i = 0; i < n; i++)
	{
		uint32 row = rows ? rows[i] : i;

		out[i].x = a[row];
		out[i].y = b[row];
	}
}

#define PAIR_CODES(VALUE_T, CODE) \
	for (int i = 0; i < n; i++) \
	{ \
		uint32 row = rows ? rows[i] : i; \
		out[i].key = keys[row]; \
		out[i].value = CODE(((const VALUE_T *) values)[row]); \
	}

/*
 * Fills work->input with pairs of codes for monoids that compare keys: a key from the first column,
 * a value from the second one. -0 is changed to 0 in keys, but not in values. Rows are as in
 * pair_doubles.
 */
static void
pair_codes(SlotWork *work, const Batch *batch, const int *cols, const uint32 *rows, int n)
{
	const int64 *keys = dense_input(work, batch, cols[0], INPUT_int64_t);
	const void *values = batch->cols[cols[1]].values;
	gpuagg_kv *out = work->input;

	switch (batch->cols[cols[1]].type)
	{
#define X(NAME, value_t, ...) \
	case COLUMN_##NAME: \
		PAIR_CODES(value_t, gpuagg_f64_code) \
		break;
		COLUMN_FLOATS(X)
#undef X
		default:
			values = dense_input(work, batch, cols[1], INPUT_int64_t);
			PAIR_CODES(int64, (int64))
	}
}

/*
 * Fills work->input with pairs of a code and a flag, for monoids in which NULLs count. The flag is
 * 0 if the value of column c is NULL. Rows are as in pair_doubles.
 */
static void
pair_codes_with_presence(SlotWork *work, const Batch *batch, int c, const uint32 *rows, int n)
{
	const Column *col = &batch->cols[c];
	const int64 *codes = dense_input(work, batch, c, INPUT_int64_t);
	gpuagg_kv *out = work->input;

	for (int i = 0; i < n; i++)
	{
		uint32 row = rows ? rows[i] : i;

		out[i].value = !column_is_null(col, row);
		out[i].key = out[i].value ? codes[row] : 0;
	}
}

/*
 * Fills work->input with booleans, in which NULL is false: of the n rows in `rows`, or of the first
 * n rows if that is NULL.
 */
static void
copy_present_booleans(SlotWork *work, const Column *col, const uint32 *rows, int n)
{
	const int8 *v = col->values;
	int8 *out = work->input;

	for (int i = 0; i < n; i++)
	{
		uint32 row = rows ? rows[i] : i;

		out[i] = !column_is_null(col, row) && v[row] != 0;
	}
}

/*
 * Returns the input of the rows in `rows`, or of the first n rows if that is NULL. Returns NULL if
 * the monoid reads no input.
 */
static const void *
slot_input(SlotWork *work, const Batch *batch, const SlotSpec *slot, const uint32 *rows, int n)
{
	InputKind kind = monoid_input_kind[slot->monoid];
	int c = slot->bins.kind == BIN_NONE ? slot->col[0] : slot->col[1];

	if (slot->monoid == MONOID_COUNT || c < 0)
		return NULL;
	if (kind == INPUT_gpuagg_f64x2)
		pair_doubles(work, batch, slot->col, rows, n);
	else if (slot->monoid == MONOID_LONGEST_ASC)
		pair_codes_with_presence(work, batch, c, rows, n);
	else if (kind == INPUT_gpuagg_kv)
		pair_codes(work, batch, slot->col, rows, n);
	else if (slot->monoid == MONOID_LONGEST_RUN && batch->cols[c].validity)
		copy_present_booleans(work, &batch->cols[c], rows, n);
	else if (!rows)
		return dense_input(work, batch, c, kind);
	else
		convert_column(&batch->cols[c], kind, rows, n, work->input);
	return work->input;
}

/* ---- selections --------------------------------------------------------- */

/* Clears the bits of rows in which the column is NULL or unrepresentable (batch.h). */
static void
mask_column(uint64 *mask, const Column *col, int words)
{
	if (col->validity)
		for (int w = 0; w < words; w++)
			mask[w] &= col->validity[w];
	if (col->unrepresentable)
		for (int w = 0; w < words; w++)
			mask[w] &= ~col->unrepresentable[w];
}

/* Clears the bits of rows for which the filter is not true. */
static void
mask_filter(uint64 *mask, const Column *col, int nrows)
{
	const int8 *v = col->values;

	for (int w = 0; w < BITMAP_WORDS(nrows); w++)
	{
		int n = Min(64, nrows - w * 64);
		uint64 bits = 0;

		for (int i = 0; i < n; i++)
			bits |= (uint64) (v[w * 64 + i] != 0) << i;
		mask[w] &= bits;
	}
	if (col->validity)
		for (int w = 0; w < BITMAP_WORDS(nrows); w++)
			mask[w] &= col->validity[w];
}

/* Fills rows[] with the numbers of the bits that are set, below nrows; returns how many. */
static int
rows_of_mask(const uint64 *mask, int nrows, uint32 *rows)
{
	int n = 0;

	for (int w = 0; w < BITMAP_WORDS(nrows); w++)
	{
		uint64 bits = mask[w];

		if (w == nrows / 64)
			bits &= (UINT64CONST(1) << (nrows % 64)) - 1;
		if (bits == PG_UINT64_MAX)
			for (int i = 0; i < 64; i++)
				rows[n++] = w * 64 + i;
		else
			for (; bits != 0; bits &= bits - 1)
				rows[n++] = w * 64 + pg_rightmost_one_pos64(bits);
	}
	return n;
}

/* Returns whether every row of the batch counts for the slot. */
static bool
all_rows_count(const SlotSpec *slot, const GroupTable *table, const Batch *batch)
{
	if (table->nmissing > 0 || slot->filter >= 0)
		return false;
	for (int c = 0; c < 2; c++)
		if (slot->col[c] >= 0 && !slot_takes_nulls(slot) &&
			(batch->cols[slot->col[c]].validity || batch->cols[slot->col[c]].unrepresentable))
			return false;
	return true;
}

/* Sets selected[] and nselected to the rows that count for the slot, unless they are set. */
static void
select_rows(SlotWork *work, const SlotSpec *slot, const GroupTable *table, const Batch *batch)
{
	int words = BITMAP_WORDS(batch->nrows);

	int col[2] = {-1, -1}; /* columns whose NULLs do not count */

	for (int c = 0; c < 2 && !slot_takes_nulls(slot); c++)
		col[c] = slot->col[c];
	if (work->selection_valid && work->filter == slot->filter && work->col[0] == col[0] &&
		work->col[1] == col[1])
		return;
	memset(work->mask, 0xff, words * sizeof(uint64));
	for (int c = 0; c < 2; c++)
		if (col[c] >= 0)
			mask_column(work->mask, &batch->cols[col[c]], words);
	if (slot->filter >= 0)
		mask_filter(work->mask, &batch->cols[slot->filter], batch->nrows);
	for (int i = 0; i < table->nmissing; i++)
		bitmap_clear(work->mask, table->missing[i]);
	work->nselected = rows_of_mask(work->mask, batch->nrows, work->selected);
	work->col[0] = col[0];
	work->col[1] = col[1];
	work->filter = slot->filter;
	work->selection_valid = true;
}

/* ---- bins --------------------------------------------------------------- */

/* For BIN_HLL: sets work->at to the registers of n rows' hashes, and work->input to their ranks. */
static void
find_registers(SlotWork *work, const Batch *batch, const SlotSpec *slot, const uint32 *rows, int n)
{
	const uint64 *hashes = dense_input(work, batch, slot->col[0], INPUT_int64_t);
	int32 *ranks = work->input;

	for (int i = 0; i < n; i++)
	{
		int reg, rank;

		gpuagg_bin_hll(hashes[rows ? rows[i] : i], &reg, &rank);
		work->at[i] = reg * (sizeof(int32) / 4);
		ranks[i] = rank;
	}
}

/*
 * Sets at[] to the offsets of bins. `formula` is a constant for the compiler, so that the loop has
 * no branch.
 */
static inline void
uniform_bins(const BinSpec *bins, const double *restrict x, int n, uint32 cells, int formula,
			 uint32 *restrict at)
{
	for (int i = 0; i < n; i++)
		at[i] = gpuagg_bin_uniform(x[i], bins->lo, bins->hi, bins->n, formula) * cells;
}

/*
 * Sets work->at to the offsets of the states of the rows' bins. Returns the input that these states
 * are stepped by: for BIN_HLL the ranks, else `input`.
 */
static const void *
find_states_in_bins(SlotWork *work, const GroupTable *table, const Batch *batch,
					const SlotSpec *slot, const uint32 *rows, int n, const void *input)
{
	const BinSpec *bins = &slot->bins;
	const double *x = NULL;
	uint32 cells = gpuagg_monoids[slot->monoid].state_size / 4;
	uint32 *at = work->at;

	if (bins->kind == BIN_HLL)
	{
		find_registers(work, batch, slot, rows, n);
		input = work->input;
	}
	else if (rows)
	{
		convert_column(&batch->cols[slot->col[0]], INPUT_double, rows, n, work->binned);
		x = work->binned;
	}
	else
		x = dense_input(work, batch, slot->col[0], INPUT_double);
	if (bins->kind == BIN_UNIFORM && bins->formula == GPUAGG_BINS_PRODUCT)
		uniform_bins(bins, x, n, cells, GPUAGG_BINS_PRODUCT, at);
	else if (bins->kind == BIN_UNIFORM)
		uniform_bins(bins, x, n, cells, GPUAGG_BINS_QUOTIENT, at);
	else if (bins->kind == BIN_THRESHOLDS)
		for (int i = 0; i < n; i++)
			at[i] = gpuagg_bin_thresholds(x[i], bins->thresholds, bins->n) * cells;
	for (int i = 0; i < n; i++)
		at[i] += table->at[rows ? rows[i] : i];
	return input;
}

/* ---- incomplete states ----------------------------------------------------- */

/*
 * Completes the states of slot s in the groups from .. end - 1: copies the shared count, or extends
 * 64-bit sums to 128 bits. Does nothing if its states are complete anyway.
 */
static void
complete_slot(const SlotWork *work, const GroupTable *table, int s, uint32 from, uint32 end)
{
	const SlotSpec *slots = work->spec->slots;

	if (!work->shares_count[s] && !work->in_sum64[s])
		return;
	for (uint32 g = from; g < end; g++)
	{
		char *row = group_row(table, g);
		char *state = row + table->slot_off[s];

		if (work->in_sum64[s])
			*(gpuagg_i128 *) state = *(int64 *) state; /* little-endian */
		else
		{
			const char *counting = row + table->slot_off[work->counting_slot];
			int64 n = slots[work->counting_slot].monoid == MONOID_COUNT ?
				*(const int64 *) counting :
				(int64) ((const gpuagg_accum *) counting)->n;

			if (slots[s].monoid == MONOID_COUNT)
				*(int64 *) state = n;
			else
				((gpuagg_accum *) state)->n = n;
		}
	}
}

void
slots_complete(const SlotWork *work, const GroupTable *table, uint32 from, uint32 end)
{
	for (int s = 0; s < work->spec->nslots; s++)
		complete_slot(work, table, s, from, end);
}

/*
 * Returns the counting slot's states if they have not counted the batch yet, else NULL. The caller
 * must step them in its loop over all rows, in addition to its own states.
 */
static char *
claim_pending_count(SlotWork *work)
{
	char *pending_count = work->pending_count;

	work->pending_count = NULL;
	return pending_count;
}

/* Steps the states of slot s at the offsets at[] by n inputs. Returns error bits. */
static int
reduce_rows(SlotWork *work, int s, char *base, const uint32 *at, const void *input, int n)
{
	const SlotSpec *slot = &work->spec->slots[s];

	if (!slot->mean_only || (!work->overflow_safe && !work->shares_count[s]))
		return loop_rows(slot->monoid, base, at, input, n);
	loop_mean_rows(base, at, input, n, !work->shares_count[s],
				   work->shares_count[s] ? claim_pending_count(work) : NULL);
	return 0;
}

/* Steps the states of slot s by runs of rows, as loop_runs does. Returns error bits. */
static int
reduce_runs(SlotWork *work, int s, char *base, const uint32 *at, const uint32 *start, int nruns,
			const void *input)
{
	const SlotSpec *slot = &work->spec->slots[s];

	if (slot->monoid == MONOID_SUM_F64)
		return loop_sum_runs(base, at, start, nruns, input);
	if (!slot->mean_only || (!work->overflow_safe && !work->shares_count[s]))
		return loop_runs(slot->monoid, base, at, start, nruns, input);
	loop_mean_runs(base, at, start, nruns, input, !work->shares_count[s]);
	return 0;
}

/* ---- sums of 64 bits -------------------------------------------------------- */

/* Extends all sums of slot s to 128 bits; from now on it adds in 128 bits. */
static void
widen_sums(SlotWork *work, GroupTable *table, int s)
{
	complete_slot(work, table, s, 0, table->ngroups);
	work->in_sum64[s] = false;
}

/*
 * Returns whether the slot's sums still fit into 64 bits after n more values, and adds these to the
 * bound. If not, widens the sums to 128 bits.
 */
static bool
stays_in_sum64(SlotWork *work, GroupTable *table, int s, const NarrowInput *input, int n)
{
	if (work->in_sum64[s])
		work->sum64_bound[s] += (fabs((double) input->base) + PG_UINT32_MAX) * n;
	if (work->sum64_bound[s] > MAX_SUM64_BOUND)
		widen_sums(work, table, s);
	return work->in_sum64[s];
}

/*
 * Sets *input to the slot's column as narrow integers, for a batch in which all rows count. Returns
 * false if the monoid or the column does not allow that.
 */
static bool
narrow_input(const SlotSpec *slot, const Batch *batch, NarrowInput *input)
{
	const Column *col;

	if (!loop_takes_narrow(slot->monoid) || slot->bins.kind != BIN_NONE)
		return false;
	col = &batch->cols[slot->col[0]];
	input->values = col->values;
	input->base = 0;
	if (col->narrow)
	{
		input->values = col->narrow;
		input->base = col->base;
		input->type = col->narrow_width == 1 ? NARROW_uint8 :
			col->narrow_width == 2           ? NARROW_uint16 :
											   NARROW_uint32;
	}
	else if (col->type == COLUMN_I16)
		input->type = NARROW_int16;
	else if (col->type == COLUMN_I32)
		input->type = NARROW_int32;
	else
		return false;
	return true;
}

bool
slots_take_narrow(const AggSpec *spec, int c)
{
	for (int o = 0; o < spec->norder; o++)
		if (spec->order[o].col == c)
			return false;
	for (int s = 0; s < spec->nslots; s++)
	{
		const SlotSpec *slot = &spec->slots[s];

		if (slot->filter == c || slot->col[1] == c ||
			(slot->col[0] == c && slot->monoid != MONOID_COUNT &&
			 !loop_takes_narrow(slot->monoid)) ||
			(slot->col[0] == c && slot->bins.kind != BIN_NONE))
			return false;
	}
	/* a column with unrepresentable values is never narrow */
	for (int f = 0; f < spec->nfallbacks; f++)
	{
		const FallbackAgg *fallback = &spec->fallbacks[f];

		if (fallback->filter == c)
			return false;
		for (int a = 0; a < fallback->nargs && !fallback->unrepresentable_only; a++)
			if (fallback->argcol[a] == c)
				return false;
	}
	return true;
}

/* Reduces the batch for one slot; returns error bits. */
static int
reduce_slot(SlotWork *work, GroupTable *table, const Batch *batch, int s)
{
	const SlotSpec *slot = &work->spec->slots[s];
	char *base = table->rows + table->slot_off[s];
	const uint32 *rows = NULL;
	int n = batch->nrows;
	NarrowInput narrow;
	const void *input;
	bool runs =
		table->mode == TABLE_SINGLE || (table->nruns > 0 && table->mean_run >= MIN_MEAN_RUN);

	if (slot->filter >= 0 && column_is_false(&batch->cols[slot->filter]))
		return 0;
	if (!all_rows_count(slot, table, batch))
	{
		select_rows(work, slot, table, batch);
		rows = work->selected;
		n = work->nselected;
	}
	else if (narrow_input(slot, batch, &narrow))
	{
		MonoidId sum = stays_in_sum64(work, table, s, &narrow, n) ? MONOID_SUM_I64 : slot->monoid;

		if (runs)
			return loop_narrow_runs(sum, base, table->run_at, table->run_start, table->nruns,
									&narrow);
		return loop_narrow_rows(sum, base, table->at, &narrow, n, claim_pending_count(work));
	}
	if (work->in_sum64[s])
		widen_sums(work, table, s);
	input = slot_input(work, batch, slot, rows, n);
	if (slot->mean_only && work->overflow_safe && !work->shares_count[s])
		work->overflow_safe = loop_all_overflow_safe(input, n);
	if (slot->bins.kind != BIN_NONE)
	{
		input = find_states_in_bins(work, table, batch, slot, rows, n, input);
		return loop_rows(slot->monoid, base, work->at, input, n);
	}
	if (table->mode == TABLE_SINGLE)
	{
		uint32 start[2] = {0, n};

		return reduce_runs(work, s, base, table->run_at, start, 1, input);
	}
	if (rows)
	{
		for (int i = 0; i < n; i++)
			work->at[i] = table->at[rows[i]];
		return reduce_rows(work, s, base, work->at, input, n);
	}
	if (runs)
		return reduce_runs(work, s, base, table->run_at, table->run_start, table->nruns, input);
	return reduce_rows(work, s, base, table->at, input, n);
}

/* ---- shared counts ----------------------------------------------------------- */

/* Ends the sharing of the count by slot s: sets its own counts, which it steps from now on. */
static void
unshare_count(SlotWork *work, GroupTable *table, int s)
{
	complete_slot(work, table, s, 0, table->ngroups);
	work->shares_count[s] = false;
}

/*
 * Returns whether all values of a batch's column are overflow-safe. Uses the column's bounds where
 * they are set.
 */
static bool
column_is_overflow_safe(SlotWork *work, const Batch *batch, int c)
{
	const Column *col = &batch->cols[c];
	double bounds[2] = {col->least.number, col->greatest.number};

	if (col->has_bounds && column_is_float(col->type) && loop_all_overflow_safe(bounds, 2))
		return true;
	return loop_all_overflow_safe(dense_input(work, batch, c, INPUT_double), batch->nrows);
}

/*
 * Called before a batch is reduced. A slot stops sharing the count if some row of the batch does
 * not count for it, or if it must compute squares because a value is not overflow-safe. All slots
 * stop if some row does not count for the counting slot.
 */
static void
check_shared_counts(SlotWork *work, GroupTable *table, const Batch *batch)
{
	const SlotSpec *slots = work->spec->slots;

	if (work->counting_slot < 0)
		return;
	if (!all_rows_count(&slots[work->counting_slot], table, batch))
	{
		for (int s = 0; s < work->spec->nslots; s++)
			if (work->shares_count[s])
				unshare_count(work, table, s);
		work->counting_slot = -1;
		return;
	}
	for (int s = 0; s < work->spec->nslots; s++)
	{
		if (!work->shares_count[s])
			continue;
		if (!all_rows_count(&slots[s], table, batch))
			unshare_count(work, table, s);
		else if (slots[s].mean_only && work->overflow_safe)
			work->overflow_safe = column_is_overflow_safe(work, batch, slots[s].col[0]);
	}
	for (int s = 0; s < work->spec->nslots; s++)
		if (work->shares_count[s] && slots[s].mean_only && !work->overflow_safe)
			unshare_count(work, table, s);
}

void
slots_combine(SlotWork *work, GroupTable *table)
{
	for (int s = 0; s < work->spec->nslots; s++)
	{
		unshare_count(work, table, s);
		widen_sums(work, table, s);
	}
	work->overflow_safe = false;
}

int
slots_reduce(SlotWork *work, GroupTable *table, const Batch *batch)
{
	int errors = 0;

	work->selection_valid = false;
	for (int c = 0; c < work->spec->ncols; c++)
		work->widened[c].valid = false;
	check_shared_counts(work, table, batch);
	if (work->counting_slot >= 0 && work->spec->slots[work->counting_slot].monoid == MONOID_COUNT)
		work->pending_count = table->rows + table->slot_off[work->counting_slot];
	for (int s = 0; s < work->spec->nslots; s++)
		if (s != work->counting_slot && (!work->shares_count[s] || work->spec->slots[s].mean_only))
			errors |= reduce_slot(work, table, batch, s);
	if (work->counting_slot >= 0 &&
		(work->pending_count || work->spec->slots[work->counting_slot].monoid != MONOID_COUNT))
		errors |= reduce_slot(work, table, batch, work->counting_slot);
	work->pending_count = NULL;
	return errors;
}

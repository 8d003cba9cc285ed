/*
 * standin_rows.c
 *	  Rows of a batch, or stored ones, reduced to the stand-in's groups; see standin.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operators/bins.h"
#include "operators/hll.h"
#include "standin.h"

/* A copy of a batch's rows. */
typedef struct KeptBatch
{
	struct KeptBatch *next;
	Rows rows;
} KeptBatch;

typedef struct Kept
{
	const Query *query;
	uint64_t group;
	uint64_t number;
	const KeptBatch *from;
	uint32_t i;
} Kept;

/* ---- a row ---- */

static DeviceStatus
group_of(Query *query, const Rows *rows, uint32_t i, uint64_t *group, DeviceError *error)
{
	const WireQuery *q = query->q;
	char key[WIRE_MAX_KEY_BYTES] = {0};

	for (int k = 0; k < q->nkeys; k++)
	{
		const Column *col = &rows->cols[q->keys[k].col];
		int width = q->keys[k].width;

		if (standin_valid(col, i))
			memcpy(key + q->keys[k].offset, col->values + (size_t) i * width, width);
		else
			key[q->null_offset] |= 1 << k;
	}
	return standin_group_of_key(query, key, group, error);
}

static void
reduce_row(Query *query, int s, const Rows *rows, uint32_t i, uint64_t group)
{
	const WireSlot *slot = &query->q->slots[s];
	const double *t = query->thresholds + slot->thresholds;
	Row row = {.i = i};
	uint64_t bin = 0;
	double x;

	row.valid = slot->col[0] >= 0 && standin_valid(&rows->cols[slot->col[0]], i);
	for (int c = 0; c < 2; c++)
	{
		if (slot->col[c] >= 0 && slot->monoid != MONOID_LONGEST_ASC &&
			!standin_valid(&rows->cols[slot->col[c]], i))
			return;
		row.col[c] = slot->col[c] >= 0 ? &rows->cols[slot->col[c]] : NULL;
	}
	if (slot->filter >= 0 && rows->cols[slot->filter].values[i] == 0)
		return;
	if (slot->bin_kind == WIRE_BIN_HLL)
	{
		int reg, rank;
		int32_t *registers = (int32_t *) query->slots[s] + group * slot->width;

		gpuagg_bin_hll((uint64_t) standin_read_integer(&row, 0), &reg, &rank);
		registers[reg] = hll_max_combine(registers[reg], rank);
		return;
	}
	if (slot->bin_kind != WIRE_BIN_NONE)
	{
		x = standin_read_double(&row, 0);
		bin = slot->bin_kind == WIRE_BIN_UNIFORM ?
			gpuagg_bin_uniform(x, slot->lo, slot->hi, slot->bin_n, (int) slot->formula) :
			gpuagg_bin_thresholds(x, t, slot->bin_n);
		row.col[0] = row.col[1];
		row.col[1] = NULL;
	}
	query->errors |= standin_operators[slot->monoid].row(
		query->slots[s] + (group * slot->width + bin) * gpuagg_monoids[slot->monoid].state_size,
		&row);
}

void
standin_add_value(Query *query, int s, uint64_t group, int64_t value)
{
	const WireSlot *slot = &query->q->slots[s];
	Column column = {.values = (const char *) &value, .type = WIRE_I64};
	Row row = {.col = {slot->col[0] >= 0 ? &column : NULL}, .valid = 1};

	query->errors |= standin_operators[slot->monoid].row(
		query->slots[s] + group * standin_slot_bytes(query, s), &row);
}

/* ---- rows in order ---- */

static bool
ordered(const Query *query, int s)
{
	return !gpuagg_monoids[query->q->slots[s].monoid].commutative;
}

/* malloc'ed; NULL of NULL */
static void *
copy_of(const void *from, size_t bytes)
{
	void *to = from ? malloc(bytes) : NULL;

	if (to)
		memcpy(to, from, bytes);
	return to;
}

static KeptBatch *
keep_batch(Query *query, const Rows *rows)
{
	KeptBatch *b = calloc(1, sizeof(*b));

	b->rows.nrows = rows->nrows;
	for (int c = 0; c < query->q->ncols; c++)
	{
		const Column *col = &rows->cols[c];

		b->rows.cols[c].values = copy_of(col->values, (size_t) rows->nrows * wire_width(col->type));
		b->rows.cols[c].validity = copy_of(col->validity, wire_bitmap_bytes(rows->nrows));
		b->rows.cols[c].type = col->type;
	}
	b->next = query->batches;
	query->batches = b;
	return b;
}

static void
keep_row(Query *query, const KeptBatch *from, uint32_t i, uint64_t group)
{
	if (query->nkept == query->kept_capacity)
	{
		query->kept_capacity = 2 * query->kept_capacity + 1024;
		query->kept = realloc(query->kept, query->kept_capacity * sizeof(Kept));
	}
	query->kept[query->nkept] = (Kept){query, group, query->nkept, from, i};
	query->nkept++;
}

static int
compare_kept(const void *x, const void *y)
{
	const Kept *a = x, *b = y;
	const WireQuery *q = a->query->q;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	for (uint32_t o = 0; o < q->norder; o++)
	{
		const WireOrder *order = &q->order[o];
		Row ra = {.col = {&a->from->rows.cols[order->col]}, .i = a->i};
		Row rb = {.col = {&b->from->rows.cols[order->col]}, .i = b->i};
		int va = standin_valid(ra.col[0], a->i);
		int vb = standin_valid(rb.col[0], b->i);

		if (va != vb)
			return (va < vb) == order->nulls_first ? -1 : 1;
		if (va && standin_read_integer(&ra, 0) != standin_read_integer(&rb, 0))
			return (standin_read_integer(&ra, 0) < standin_read_integer(&rb, 0)) != order->desc ?
				-1 :
				1;
	}
	return a->number < b->number ? -1 : 1;
}

void
standin_reduce_kept(Query *query)
{
	if (query->nkept > 0)
		qsort(query->kept, query->nkept, sizeof(Kept), compare_kept);
	for (uint64_t r = 0; r < query->nkept; r++)
		for (int s = 0; s < query->q->nslots; s++)
			if (ordered(query, s))
				reduce_row(query, s, &query->kept[r].from->rows, query->kept[r].i,
						   query->kept[r].group);
	standin_forget_rows(query);
}

void
standin_forget_rows(Query *query)
{
	while (query->batches)
	{
		KeptBatch *b = query->batches;

		query->batches = b->next;
		for (int c = 0; c < WIRE_MAX_COLS; c++)
		{
			free((char *) b->rows.cols[c].values);
			free((uint8_t *) b->rows.cols[c].validity);
		}
		free(b);
	}
	query->nkept = 0;
}

/* ---- batches ---- */

DeviceStatus
standin_reduce_rows(Query *query, const Rows *rows, bool keep, DeviceError *error)
{
	uint64_t *groups = malloc(rows->nrows * sizeof(uint64_t) + 1);
	uint64_t before = query->ngroups;
	DeviceStatus status = standin_values_fit(query, rows) ? DEVICE_OK : DEVICE_FULL;
	KeptBatch *kept = NULL;

	/* finds all groups before it reduces any row */
	for (uint32_t i = 0; i < rows->nrows && status == DEVICE_OK; i++)
		if ((status = group_of(query, rows, i, &groups[i], error)) != DEVICE_OK)
		{
			standin_forget_groups(query, before);
			status = DEVICE_FULL;
		}
	if (status == DEVICE_OK && keep)
		kept = keep_batch(query, rows);
	for (uint32_t i = 0; i < rows->nrows && status == DEVICE_OK; i++)
	{
		for (int s = 0; s < query->q->nslots; s++)
			if (!ordered(query, s) && query->q->slots[s].input == WIRE_ROWS)
				reduce_row(query, s, rows, i, groups[i]);
		if (kept)
			keep_row(query, kept, i, groups[i]);
	}
	if (status != DEVICE_OK)
		device_say(error, status, "no room for the rows");
	else
		standin_keep_values(query, rows, groups);
	free(groups);
	return status;
}

/* Are integers in a column below min or above max? */
static bool
leaves_range(const Rows *rows, int c, int64_t min, int64_t max)
{
	Row row = {.col = {&rows->cols[c]}};

	if (row.col[0]->type > WIRE_I64 || min > max)
		return false;
	for (row.i = 0; row.i < rows->nrows; row.i++)
	{
		int64_t v = standin_read_integer(&row, 0);

		if (standin_valid(row.col[0], row.i) && (v < min || v > max))
			return true;
	}
	return false;
}

DeviceStatus
standin_reduce(Query *query, Lane *lane, const WireBatch *batch, DeviceError *error)
{
	const char *base = lane->memory + batch->buffer * lane->buffer_bytes;
	/* one row without columns comes from the server's own warm-up */
	bool warm_up = batch->nrows == 1 && batch->bytes == 0;
	Rows rows = {.nrows = batch->nrows};
	DeviceStatus status = warm_up ? DEVICE_OK : standin_provoke(++query->given, error);

	for (uint32_t c = 0; c < batch->ncols; c++)
	{
		const WireColumn *col = &batch->cols[c];

		rows.cols[c].values = col->values == WIRE_NO_ARRAY ? NULL : base + col->values;
		rows.cols[c].validity =
			col->validity == WIRE_NO_ARRAY ? NULL : (const uint8_t *) base + col->validity;
		rows.cols[c].type = col->type;
	}
	for (int k = 0; k < query->q->nkeys && !warm_up; k++)
		if (leaves_range(&rows, query->q->keys[k].col, batch->key_min[k], batch->key_max[k]))
		{
			snprintf(error->text, sizeof(error->text), "keys outside of their range");
			return DEVICE_UNSUPPORTED;
		}
	return status == DEVICE_OK ?
		standin_reduce_rows(query, &rows, (query->q->flags & WIRE_ORDERED) != 0, error) :
		status;
}

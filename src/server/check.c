/*
 * check.c
 *	  Validation of messages.
 *
 * The server uses nothing that a client sends before it was checked here. So a faulty client can
 * harm only its own query.
 *
 * Each function returns NULL if the message, or this part of it, is valid; else a text that says
 * what is wrong.
 */
#include <math.h>
#include <stdio.h>

#include "operators/bins.h"
#include "operators/hll.h"
#include "server/server.h"
#include "server/device_store.h"

static const char *
check_keys(const WireQuery *q)
{
	int end = 0;

	if (q->nkeys == 0)
		return q->key_bytes == 0 ? NULL : "a key size without keys";
	for (int k = 0; k < q->nkeys; k++)
	{
		const WireKey *key = &q->keys[k];

		if (key->col < 0 || key->col >= q->ncols)
			return "key names no column";
		if (key->width != 1 && key->width != 2 && key->width != 4 && key->width != 8)
			return "key width";
		if (key->offset != end)
			return "key offset";
		end += key->width;
		if (key->nullable && q->null_offset >= q->key_bytes)
			return "nullable key without a NULL byte";
	}
	if (end > q->key_bytes || q->null_offset > q->key_bytes ||
		(q->null_offset < q->key_bytes && q->null_offset < (uint32_t) end))
		return "keys overlap";
	/* so that a key has at most WIRE_MAX_KEY_BYTES */
	if (q->null_offset < q->key_bytes)
		end = (int) q->null_offset + 1;
	return q->key_bytes == wire_key_bytes(end) ? NULL : "key size";
}

/* Number of columns that an operator reads; COUNT may have none. */
#define COLUMNS_OF_int8_t 1
#define COLUMNS_OF_int32_t 1
#define COLUMNS_OF_uint32_t 1
#define COLUMNS_OF_int64_t 1
#define COLUMNS_OF_float 1
#define COLUMNS_OF_double 1
#define COLUMNS_OF_gpuagg_i128 1
#define COLUMNS_OF_gpuagg_f64x2 2
#define COLUMNS_OF_gpuagg_kv 1
#define COLUMNS_OF_gpuagg_mat2 1
#define COLUMNS_OF_gpuagg_mat3 1
#define COLUMNS_OF_gpuagg_mat4 1
#define COLUMNS_OF_gpuagg_mat5 1

static const int columns_of[] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) COLUMNS_OF_##input_t,
#include "operators/monoid_list.h"
#undef MONOID
};

/*
 * Returns whether the slot has the columns that its operator reads. With bins, the first column
 * determines the bin.
 */
static bool
has_columns(const WireSlot *slot)
{
	int n = slot->monoid == MONOID_COUNT ? 0 : columns_of[slot->monoid];

	switch (slot->bin_kind)
	{
		case WIRE_BIN_NONE:
			return (n < 1 || slot->col[0] >= 0) && (n < 2 || slot->col[1] >= 0);
		case WIRE_BIN_HLL:
			return slot->col[0] >= 0;
		default:
			return slot->col[0] >= 0 && n < 2 && (n < 1 || slot->col[1] >= 0);
	}
}

/* Checks a slot's input: whether the operator can reduce values of a set. */
static const char *
check_slot_input(const WireQuery *q, const WireSlot *slot)
{
	if (slot->input >= WIRE_SLOT_INPUTS)
		return "no such input of a slot";
	if (slot->input == WIRE_ROWS)
		return NULL;
	if (slot->set >= q->nsets)
		return "slot names no set";
	if (slot->filter >= 0 || slot->bin_kind != WIRE_BIN_NONE || slot->col[1] >= 0 ||
		!gpuagg_monoids[slot->monoid].commutative || columns_of[slot->monoid] > 1)
		return "operator over a set";
	if (slot->input != WIRE_DISTINCT && slot->monoid != MONOID_COUNT)
		return "position in a set";
	if (slot->input != WIRE_DISTINCT && slot->input != WIRE_FIRST && q->sets[slot->set].counted)
		return "mode of a counted set";
	return slot->col[0] < 0 || slot->col[0] == q->sets[slot->set].col ?
		NULL :
		"operator over another column than its set";
}

/* Checks a query whose rows arrive grouped: the group's number must be the only key. */
static const char *
check_grouped(const WireQuery *q)
{
	const WireKey *key = &q->keys[0];

	if (!(q->flags & WIRE_GROUPED))
		return NULL;
	if (wire_keeps_rows(q) || q->shared_id != 0 || q->nkeys != 1 ||
		q->key_bytes != sizeof(int32_t) || key->width != sizeof(int32_t) || key->offset != 0 ||
		key->nullable)
		return "grouped rows";
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].bin_kind != WIRE_BIN_NONE)
			return "bins of grouped rows";
	return NULL;
}

static const char *
check_sets(const WireQuery *q)
{
	if (q->nsets > WIRE_MAX_SETS)
		return "too many sets";
	for (uint32_t s = 0; s < q->nsets; s++)
		if (q->sets[s].col < 0 || q->sets[s].col >= q->ncols || q->sets[s].filter < -1 ||
			q->sets[s].filter >= q->ncols || q->sets[s].beside < -1 ||
			q->sets[s].beside >= q->ncols)
			return "set names no column";
		else if (q->sets[s].counted > 1 || (q->sets[s].counted && q->sets[s].beside >= 0))
			return "kind of a set";
	return NULL;
}

static const char *
check_slot(const WireQuery *q, const WireSlot *slot)
{
	if (slot->monoid < 0 || slot->monoid >= MONOID_COUNT_OF_IDS)
		return "no such operator";
	for (int c = 0; c < 2; c++)
		if (slot->col[c] < -1 || slot->col[c] >= q->ncols)
			return "slot names no column";
	if (slot->filter < -1 || slot->filter >= q->ncols)
		return "filter names no column";
	if (slot->bin_kind < 0 || slot->bin_kind >= WIRE_BIN_KINDS)
		return "no such kind of bins";
	if (!has_columns(slot))
		return "operator without a column";
	if (slot->width < 1 || slot->width > (1 << 26))
		return "slot width";
	if (!gpuagg_monoids[slot->monoid].commutative &&
		(!(q->flags & WIRE_ORDERED) || slot->bin_kind != WIRE_BIN_NONE || slot->col[0] < 0))
		return "ordered operator";
	if (check_slot_input(q, slot))
		return check_slot_input(q, slot);
	/* the kernels for histograms and for runs of equal keys have no such operator */
	if (slot->monoid == MONOID_HLL_MAX && slot->bin_kind != WIRE_BIN_HLL)
		return "registers without a sketch";
	switch (slot->bin_kind)
	{
		case WIRE_BIN_NONE:
			return slot->width == 1 ? NULL : "slot width without bins";
		case WIRE_BIN_UNIFORM:
			if (slot->bin_n < 1 || slot->bin_n != slot->width - 2)
				return "number of bins";
			/* gpuagg_bin_uniform() may return a bin out of range if these are not valid */
			return slot->formula < GPUAGG_BIN_FORMULAS &&
					gpuagg_bins_valid(slot->lo, slot->hi, slot->bin_n, (int) slot->formula) ?
				NULL :
				"bounds of bins";
		case WIRE_BIN_THRESHOLDS:
			if (slot->bin_n < 1 || slot->bin_n != slot->width - 1)
				return "number of thresholds";
			return slot->thresholds <= q->nthresholds &&
					(uint32_t) slot->bin_n <= q->nthresholds - slot->thresholds ?
				NULL :
				"thresholds";
		default:
			return slot->monoid == MONOID_HLL_MAX && slot->width == GPUAGG_HLL_REGISTERS ?
				NULL :
				"kind of registers";
	}
}

const char *
check_query(const WireQuery *q, size_t length)
{
	const char *wrong;

	if (length < sizeof(*q))
		return "query is too short";
	if (q->ncols > WIRE_MAX_COLS || q->nkeys > WIRE_MAX_KEYS || q->nslots > WIRE_MAX_SLOTS)
		return "too many columns, keys or slots";
	if (q->nthresholds > WIRE_MAX_THRESHOLDS ||
		length != sizeof(*q) + q->nthresholds * sizeof(double))
		return "query length";
	if ((q->flags & ~(WIRE_ORDERED | WIRE_GROUPED | WIRE_LATE)) ||
		((q->flags & WIRE_LATE) && q->shared_id != 0))
		return "flags";
	if (!(q->est_rows >= 0) || !(q->est_groups >= 0))
		return "estimates";
	if ((wrong = check_keys(q)) != NULL)
		return wrong;
	if (q->norder > WIRE_MAX_ORDER)
		return "too many order keys";
	for (uint32_t o = 0; o < q->norder; o++)
		if (q->order[o].col < 0 || q->order[o].col >= q->ncols)
			return "order names no column";
	if ((wrong = check_sets(q)) != NULL || (wrong = check_grouped(q)) != NULL)
		return wrong;
	for (int s = 0; s < q->nslots; s++)
		if ((wrong = check_slot(q, &q->slots[s])) != NULL)
			return wrong;
	if (!wire_group_fits(q))
		return "a group does not fit a buffer";
	return NULL;
}

/* Returns whether an array of `need` bytes at offset `at` lies within the batch's bytes. */
static bool
array_fits(const WireBatch *b, uint32_t at, size_t need)
{
	return at % WIRE_ALIGN == 0 && at <= b->bytes && need <= b->bytes - at;
}

/*
 * Returns whether the operator can read values of this type. Products of matrices need matrices of
 * their own size; other operators take no matrices. The server's own kernels (device_pack_inputs)
 * read the inputs of operators that do not commute. They take integers or numbers up to 64 bits.
 */
static bool
operator_reads(int monoid, uint32_t type)
{
	if (monoid >= MONOID_MAT2 && monoid <= MONOID_MAT5)
		return type == (uint32_t) (WIRE_MAT2 + monoid - MONOID_MAT2);
	if (monoid == MONOID_MAXSUB_I64 || monoid == MONOID_LONGEST_RUN || monoid == MONOID_LONGEST_ASC)
		return type <= WIRE_I64;
	if (!gpuagg_monoids[monoid].commutative)
		return type <= WIRE_I64 || type == WIRE_F32 || type == WIRE_F64;
	return type < WIRE_MAT2;
}

/* Returns whether a bin can be computed from values of this type. */
static bool
is_number(uint32_t type)
{
	return type <= WIRE_I64 || type == WIRE_F32 || type == WIRE_F64;
}

static bool
is_filter(const WireColumn *col)
{
	return col->values != WIRE_NO_ARRAY && col->type == WIRE_I8 && col->validity == WIRE_NO_ARRAY;
}

static const char *
check_slot_columns(const WireColumn *cols, const WireSlot *slot)
{
	int f = slot->filter;

	if (slot->bin_kind == WIRE_BIN_HLL && cols[slot->col[0]].type > WIRE_I64)
		return "hashes are not integers";
	if (slot->bin_kind != WIRE_BIN_NONE && !is_number(cols[slot->col[0]].type))
		return "bins of values that are not numbers";
	for (int c = 0; c < 2; c++)
	{
		const WireColumn *col = slot->col[c] >= 0 ? &cols[slot->col[c]] : NULL;
		bool reads = slot->monoid != MONOID_COUNT || slot->bin_kind != WIRE_BIN_NONE;

		if (col && reads && col->values == WIRE_NO_ARRAY)
			return "column without values";
		if (col && reads && !operator_reads(slot->monoid, col->type))
			return "matrices of another size";
	}
	return f < 0 || is_filter(&cols[f]) ? NULL : "filter is not a boolean without NULLs";
}

static const char *
check_set_columns(const WireColumn *cols, const WireSet *set)
{
	const WireColumn *col = &cols[set->col];

	if (col->values == WIRE_NO_ARRAY || col->type > WIRE_I128)
		return "set of values that are not integers";
	if (set->beside >= 0 &&
		(cols[set->beside].values == WIRE_NO_ARRAY || cols[set->beside].type > WIRE_I64))
		return "values beside others that are not integers";
	return set->filter < 0 || is_filter(&cols[set->filter]) ?
		NULL :
		"filter is not a boolean without NULLs";
}

/* Checks that the columns' types and arrays are those that the query needs. */
static const char *
check_columns(const WireColumn *cols, const WireQuery *q)
{
	for (int k = 0; k < q->nkeys; k++)
	{
		const WireColumn *col = &cols[q->keys[k].col];

		if (col->type > WIRE_I64 || wire_width(col->type) != q->keys[k].width ||
			col->values == WIRE_NO_ARRAY)
			return "key column of another width";
		if (col->validity != WIRE_NO_ARRAY && !q->keys[k].nullable)
			return "NULLs in a key that has none";
	}
	for (uint32_t o = 0; o < q->norder; o++)
	{
		const WireColumn *col = &cols[q->order[o].col];

		if (col->values == WIRE_NO_ARRAY || col->type > WIRE_I64)
			return "order column without integers";
	}
	for (uint32_t s = 0; s < q->nsets; s++)
		if (check_set_columns(cols, &q->sets[s]))
			return check_set_columns(cols, &q->sets[s]);
	for (int s = 0; s < q->nslots; s++)
	{
		const char *wrong = check_slot_columns(cols, &q->slots[s]);

		if (wrong)
			return wrong;
	}
	return NULL;
}

const char *
check_batch(const WireBatch *b, const WireQuery *q, size_t length, size_t buffer_bytes, int buffers)
{
	if (length != sizeof(*b))
		return "batch length";
	if (b->buffer >= (uint32_t) buffers)
		return "no such buffer";
	if (b->bytes > buffer_bytes)
		return "batch is larger than its buffer";
	if (b->ncols != q->ncols)
		return "number of columns";
	if (b->nrows < 1)
		return "batch without rows";
	for (uint32_t c = 0; c < b->ncols; c++)
	{
		const WireColumn *col = &b->cols[c];

		if (col->type >= WIRE_TYPES)
			return "no such type";
		if (col->values != WIRE_NO_ARRAY &&
			!array_fits(b, col->values, (size_t) b->nrows * wire_width(col->type)))
			return "values outside the buffer";
		if (col->validity != WIRE_NO_ARRAY &&
			!array_fits(b, col->validity, wire_bitmap_bytes(b->nrows)))
			return "validity outside the buffer";
	}
	return check_columns(b->cols, q);
}

/* ---- stored columns ---- */

/* Returns whether columns of this type can be stored, and computed by a program. */
static bool
is_stored_type(uint32_t type)
{
	return type <= WIRE_I64 || type == WIRE_F32 || type == WIRE_F64;
}

static bool
buffer_fits(uint32_t at, size_t need, size_t buffer_bytes)
{
	return at % WIRE_ALIGN == 0 && at <= buffer_bytes && need <= buffer_bytes - at;
}

static const char *
check_coded(const WireColumnKey *column)
{
	return column->coded > 1 || (column->coded && column->type != WIRE_I32) ?
		"type of a coded column" :
		NULL;
}

/* Checks that the entries are in the buffer, and that rows have no more entries. */
static const char *
check_entries(const WireStore *in, size_t buffer_bytes)
{
	if (in->nentries > in->nrows || in->before > in->nrows - in->nentries)
		return "more entries than rows";
	if (!buffer_fits(in->entries, (size_t) in->nentries * sizeof(uint32_t) + in->bytes,
					 buffer_bytes))
		return "entries outside the buffer";
	return NULL;
}

const char *
check_dictionary(const WireDictionary *in, size_t length, int buffers)
{
	if (length != sizeof(*in))
		return "dictionary length";
	return in->buffer >= (uint32_t) buffers ? "no such buffer" : check_coded(&in->column);
}

const char *
check_values(const WireValues *in, size_t length, size_t buffer_bytes, int buffers)
{
	if (length != sizeof(*in))
		return "values length";
	if (in->buffer >= (uint32_t) buffers)
		return "no such buffer";
	if (in->stored >= WIRE_MAX_STORED_COLS)
		return "no such column";
	/* there must be room for a value */
	if (in->n < 1 || in->n > buffer_bytes / sizeof(uint32_t) ||
		wire_align(in->n * sizeof(uint32_t)) + sizeof(uint32_t) + WIRE_MAX_ENTRY_BYTES >
			buffer_bytes)
		return "number of codes";
	return NULL;
}

const char *
check_store(const WireStore *in, size_t length, size_t buffer_bytes, int buffers)
{
	if (length != sizeof(*in))
		return "store length";
	if (in->buffer >= (uint32_t) buffers)
		return "no such buffer";
	if (in->nrows < 1 || in->nrows > STORE_SEGMENT_ROWS)
		return "rows of a range";
	if (!is_stored_type(in->column.type))
		return "type that is not stored";
	if (check_coded(&in->column))
		return check_coded(&in->column);
	if (in->more > 1 || (!in->column.coded && (in->more || in->before > 0)))
		return "parts of a column";
	if (in->more)
		return check_entries(in, buffer_bytes);
	if (!buffer_fits(in->values, (size_t) in->nrows * wire_width(in->column.type), buffer_bytes))
		return "values outside the buffer";
	if (in->validity != WIRE_NO_ARRAY &&
		!buffer_fits(in->validity, wire_bitmap_bytes(in->nrows), buffer_bytes))
		return "validity outside the buffer";
	return in->column.coded ? check_entries(in, buffer_bytes) : NULL;
}

/*
 * Checks that every load has the type of its stored column, and that every register is set before
 * it is read. Returns in *set the registers that are set at the end, one bit each.
 */
static const char *
check_program(const WireResident *in, uint64_t *set)
{
	const VectorProgram *p = &in->program;

	if (!vector_program_valid(p, (int) in->nstored, WIRE_TYPES, set))
		return "program";
	for (uint32_t i = 0; i < p->ninstructions; i++)
		if (vector_reads_table(p->instructions[i].op) &&
			(p->instructions[i].data >= in->ntables ||
			 vector_has_slots(in->tables[p->instructions[i].data].form) !=
				 (p->instructions[i].op == VECTOR_FIND)))
			return "no such table";
		else if (p->instructions[i].op == VECTOR_LOAD &&
				 p->instructions[i].data != in->stored[p->instructions[i].a].type)
			return "load of another type";
	return NULL;
}

/*
 * Checks the lookup tables: cells are in the buffer, or they have a name. Whether the cells of that
 * name have the table's layout is the store's to check.
 */
static const char *
check_tables(const WireResident *in, size_t buffer_bytes)
{
	if (in->ntables > WIRE_MAX_TABLES || in->cell_bytes % 8 != 0 ||
		(uint64_t) in->sent >> in->ntables != 0 || wire_cells_end(in) > buffer_bytes)
		return "tables outside the buffer";
	for (uint32_t t = 0; t < in->ntables; t++)
	{
		const VectorTable *table = &in->tables[t];
		uint64_t first = (uint64_t) table->first * 8;

		if (table->form != VECTOR_CELLS_BITS && table->form != 1 && table->form != 2 &&
			table->form != 4 && table->form != VECTOR_CELLS_WIDE && !vector_has_slots(table->form))
			return "form of a table";
		if (!wire_is_sent(in, t) && !wire_is_named(&in->names[t]))
			return "table without cells";
		if (!wire_is_sent(in, t))
			continue;
		if (first > in->cell_bytes || vector_table_bytes(table) > in->cell_bytes - first)
			return "cells of a table";
	}
	return NULL;
}

const char *
check_cells(const WireResident *in, const char *buffer)
{
	for (uint32_t t = 0; t < in->ntables; t++)
	{
		uint64_t n = (uint64_t) in->tables[t].n + 1;
		const uint8_t *states;

		if (!wire_is_sent(in, t) || in->tables[t].form != VECTOR_CELLS_WIDE)
			continue;
		states = (const uint8_t *) buffer + wire_cells_at(in) + (uint64_t) in->tables[t].first * 8 +
			n * 8;
		for (uint64_t i = 0; i < n; i++)
			if (states[i] > VECTOR_UNDETERMINED)
				return "state of a cell";
	}
	return NULL;
}

/* Checks the query's columns, which the program computes. */
static const char *
check_outputs(const WireResident *in, const WireQuery *q, uint64_t set)
{
	WireColumn cols[WIRE_MAX_RESIDENT_COLS];

	for (uint32_t c = 0; c < in->ncols; c++)
	{
		if (!is_stored_type(in->types[c]))
			return "type that is not computed";
		if (!vector_operand_valid(&in->program, set, in->cols[c]))
			return "column that the program does not set";
		cols[c] = (WireColumn){in->types[c], 0, in->nullable >> c & 1 ? 0 : WIRE_NO_ARRAY};
	}
	return check_columns(cols, q);
}

const char *
check_resident(const WireResident *in, const WireQuery *q, size_t length, size_t buffer_bytes,
			   int buffers)
{
	const char *wrong;
	uint64_t set;

	if (length < sizeof(*in) || in->nspans > WIRE_MAX_SPANS ||
		length != sizeof(*in) + in->nspans * sizeof(WireSpan))
		return "resident length";
	if (in->buffer >= (uint32_t) buffers)
		return "no such buffer";
	if (q->flags & WIRE_GROUPED)
		return "stored rows that arrive grouped";
	if (in->nrow_ranges + in->nspans < 1 || in->nrow_ranges > buffer_bytes / sizeof(WireRowRange) ||
		wire_align(in->nrow_ranges * sizeof(WireRowRange)) +
				((size_t) in->nrow_ranges + in->nspans) * sizeof(uint64_t) >
			buffer_bytes)
		return "number of row ranges";
	if (in->nstored > WIRE_MAX_STORED_COLS || in->ncols != q->ncols ||
		in->ncols > WIRE_MAX_RESIDENT_COLS)
		return "number of columns";
	for (uint32_t i = 0; i < in->nstored; i++)
		if (!is_stored_type(in->stored[i].type) || check_coded(&in->stored[i]))
			return "type that is not stored";
	if ((wrong = check_tables(in, buffer_bytes)) != NULL)
		return wrong;
	if ((wrong = check_program(in, &set)) != NULL)
		return wrong;
	return check_outputs(in, q, set);
}

/* Checks that row ranges are in order and do not overlap. Adds their rows to *rows. */
static const char *
check_order(const WireRowRange *row_ranges, uint32_t n, uint64_t *rows)
{
	for (uint32_t r = 0; r < n; r++)
	{
		const WireRowRange *last = r > 0 ? &row_ranges[r - 1] : NULL;

		if (row_ranges[r].nrows < 1 || row_ranges[r].nrows > UINT32_MAX - row_ranges[r].first)
			return "rows of a row range";
		if (last &&
			(row_ranges[r].range < last->range ||
			 (row_ranges[r].range == last->range &&
			  (row_ranges[r].stamp != last->stamp ||
			   row_ranges[r].first < last->first + last->nrows))))
			return "order of row ranges";
		*rows += row_ranges[r].nrows;
	}
	return NULL;
}

/* Checks a span that is sent with its list: the list has whole block ranges of the span. */
static const char *
check_list(const WireSpan *span, const WireRowRange *row_ranges, uint32_t n)
{
	uint64_t rows = 0;

	if (span->nrow_ranges < 1 || span->row_range > n || span->nrow_ranges > n - span->row_range)
		return "list of a span";
	for (uint32_t r = span->row_range; r < span->row_range + span->nrow_ranges; r++)
	{
		if (row_ranges[r].first != 0 || row_ranges[r].range < span->first ||
			row_ranges[r].range - span->first >= span->nranges ||
			(r > span->row_range && row_ranges[r].range == row_ranges[r - 1].range))
			return "range of a span";
		rows += row_ranges[r].nrows;
	}
	return rows == span->nrows ? NULL : "rows of a span";
}

/*
 * Besides lists and order, checks that no block range is named twice: by two spans, or by a span
 * without its list and a row range.
 */
const char *
check_row_ranges(const WireRowRange *row_ranges, uint32_t n, const WireSpan *spans, uint32_t nspans)
{
	uint64_t rows = 0;
	uint64_t end = 0;
	uint32_t r = 0;
	const char *wrong = check_order(row_ranges, n, &rows);

	for (uint32_t s = 0; s < nspans && wrong == NULL; s++)
	{
		const WireSpan *span = &spans[s];

		if (span->nranges < 1 || span->first < end || span->nrows < 1 ||
			span->nrows > STORE_MAX_ROWS)
			return "order of spans";
		end = (uint64_t) span->first + span->nranges;
		if (span->row_range != WIRE_NO_ARRAY)
		{
			wrong = check_list(span, row_ranges, n);
			continue;
		}
		while (r < n && row_ranges[r].range < span->first)
			r++;
		if (r < n && row_ranges[r].range < end)
			return "range that is named twice";
		rows += span->nrows;
	}
	return wrong ? wrong : rows <= STORE_MAX_ROWS ? NULL : "too many rows";
}

static const char *
check_value(const WireValue *value, const WireQuery *q)
{
	const WireSlot *slot, *counted;

	if (value->slot < 0)
		return value->key >= 0 && value->key < q->nkeys && value->counted < 0 && value->mean == 0 ?
			NULL :
			"limit by a key that does not exist";
	if (value->slot >= q->nslots || value->counted >= q->nslots)
		return "limit by a slot that does not exist";
	slot = &q->slots[value->slot];
	counted = &q->slots[value->counted >= 0 ? value->counted : 0];
	if (!wire_limit_takes(slot->monoid) || slot->bin_kind != WIRE_BIN_NONE)
		return "limit by a slot that is not a number";
	if (value->counted >= 0 &&
		(counted->monoid != MONOID_COUNT || counted->bin_kind != WIRE_BIN_NONE))
		return "limit by a slot that is not a count";
	return value->mean == 0 ||
			(value->mean == 1 && value->counted >= 0 && slot->monoid == MONOID_SUM_F64) ?
		NULL :
		"limit by a slot that is not a mean";
}

static const char *
check_limit(const WireLimit *limit, const WireQuery *q)
{
	const char *wrong = NULL;

	if (limit->nconditions > WIRE_MAX_CONDITIONS)
		return "number of conditions";
	if (limit->nsort > WIRE_MAX_SORT || limit->ties > 1 || (limit->count > 0 && limit->nsort == 0))
		return "sort keys of a limit";
	for (uint32_t s = 0; s < limit->nsort && wrong == NULL; s++)
		wrong = check_value(&limit->by[s].value, q);
	for (uint32_t c = 0; c < limit->nconditions && wrong == NULL; c++)
		wrong = check_value(&limit->conditions[c].value, q);
	return wrong;
}

const char *
check_pick(const WirePick *in, const WireQuery *q, size_t length, size_t buffer_bytes, int buffers)
{
	if (length != sizeof(*in))
		return "pick length";
	if (in->buffer >= (uint32_t) buffers)
		return "no such buffer";
	if (in->set >= q->nsets)
		return "pick of a set that does not exist";
	if (in->n < 1 || in->n > buffer_bytes / sizeof(int64_t) ||
		wire_picked_end(in->n, &q->sets[in->set]) > buffer_bytes)
		return "number of positions";
	return NULL;
}

const char *
check_finish(const WireFinish *in, const WireQuery *q, size_t length, int buffers)
{
	if (length != 0 && length != sizeof(*in))
		return "finish length";
	if (in->ranks > 1)
		return "ranks";
	if (in->buffer >= (uint32_t) buffers)
		return "no such buffer";
	return check_limit(&in->limit, q);
}

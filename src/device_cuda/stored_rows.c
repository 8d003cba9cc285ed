/*
 * stored_rows.c
 *	  Reduces rows of stored columns: in slices, with a mask and computed columns where they are
 *	  needed, by the same functions as batches.
 *
 * All work is queued on the query's stream.  Only hash tables and the search for runs wait for the
 * device; nothing else waits before the end of the query.
 */
#include <stdlib.h>
#include <string.h>

#include "device_cuda/device_internal.h"
#include "server/resident_plan.h"

/* One message RESIDENT while it is reduced. */
typedef struct Resident
{
	const WireResident *in;
	const StoreHold *hold;
	ResidentPlan plan;
	bool tiles; /* the rows are reduced in tiles, by `program` */
	TileProgram program;
	int64_t most;           /* largest number of rows of a slice */
	size_t runs_at;         /* offset in scratch.plan: for each segment a GpuaggProgram (tiles) or a
							   ProgramRun; the ranges of rows are before them */
	const char *cells;      /* cells of the program's tables that were sent; host memory */
	size_t cells_at;        /* offset in scratch.plan */
	int64_t word;           /* index in runs.heads of the next slice's first word */
	uint64_t payload_nulls; /* a bit for each value column of ARGMAX or ARGMIN that may be NULL */
	size_t output_at[WIRE_MAX_RESIDENT_COLS];   /* offsets in scratch.computed: values ... */
	size_t validity_at[WIRE_MAX_RESIDENT_COLS]; /* ... and validity bits */
} Resident;

static size_t
align256(size_t n)
{
	return (n + 255) / 256 * 256;
}

/* Lays out the computed columns of a slice.  Returns their bytes. */
static size_t
lay_out_computed(Resident *r)
{
	size_t at = 0;

	for (int c = 0; c < r->plan.ncols; c++)
	{
		const ResidentColumn *col = &r->plan.cols[c];

		if (!resident_is_written(&r->plan, c))
			continue;
		r->output_at[c] = at;
		at += align256(r->most * wire_width(col->type));
		r->validity_at[c] = at;
		at += col->nullable ? align256(wire_bitmap_bytes(r->most)) : 0;
	}
	return at;
}

static bool
is_masked(const StoreHold *hold, int64_t most)
{
	ResidentSlice slice;
	int64_t position = 0;
	int span = 0;

	while (resident_slice(hold, most, &position, &span, &slice))
		if (slice.masked)
			return true;
	return false;
}

/* Returns a slice size that covers all rows, but takes at most a quarter of the memory limit. */
static int64_t
first_slice_rows(const DeviceQuery *query, const Resident *r)
{
	uint64_t share = budget_device(query->device)->limit / 4;
	const StoreHold *hold = r->hold;
	const StoreSpan *last = &hold->spans[hold->nspans - 1];
	int64_t all = (last->first + last->nrows - hold->spans[0].first / 64 * 64 + 63) / 64 * 64;
	int64_t most = STORE_SEGMENT_ROWS;

	while (most > RESIDENT_LEAST_SLICE &&
		   most * (r->plan.row_bits / 8 + query->q->key_bytes + 2 * sizeof(int32_t) + 2) > share)
		most /= 2;
	return all < most ? all : most;
}

/*
 * Reserves memory for the mask or filter and the computed columns of a slice.  If there is too
 * little, slices get fewer rows.
 */
static DeviceStatus
reserve_slice(DeviceQuery *query, Resident *r, DeviceError *error)
{
	DeviceStatus status;

	for (r->most = first_slice_rows(query, r);; r->most = r->most / 128 * 64)
	{
		size_t computed = r->tiles ? 0 : lay_out_computed(r);

		status = DEVICE_OK;
		if ((r->plan.computes && !r->tiles) || is_masked(r->hold, r->most))
			status = memory_reserve(query, &query->scratch.filter, align256(r->most), error);
		if (status == DEVICE_OK && computed > 0)
			status = memory_reserve(query, &query->scratch.computed, computed, error);
		if (status != DEVICE_NO_MEMORY || r->most <= RESIDENT_LEAST_SLICE)
			return status;
	}
}

/* ---- what kernels read in scratch.plan ---- */

/* Sets the pointers to the cells of the program's tables: those that are stored, or were sent. */
static void
locate_cells(const DeviceQuery *query, const Resident *r, const uint8_t **cells)
{
	const uint8_t *sent = (const uint8_t *) query->scratch.plan.at + r->cells_at;

	for (uint32_t t = 0; t < r->in->ntables; t++)
	{
		cells[t] = store_held_cells(r->hold, t);
		if (cells[t] == NULL)
			cells[t] = sent + (size_t) r->in->tables[t].first * 8;
	}
}

static void
describe_program(DeviceQuery *query, const Resident *r, int segment, ProgramRun *run)
{
	const ResidentPlan *plan = &r->plan;
	char *computed = query->scratch.computed.at;

	memset(run, 0, sizeof(*run));
	run->program = plan->program;
	run->undetermined = &((KernelStatus *) query->status.at)->undetermined;
	locate_cells(query, r, run->cells);
	memcpy(run->tables, r->in->tables, sizeof(run->tables));
	for (uint32_t i = 0; i < r->in->nstored && segment < r->hold->nsegments; i++)
	{
		const StoreSegment *s = &r->hold->segments[(size_t) i * r->hold->nsegments + segment];

		run->input[i] = (DeviceColumn){
			.values = s->values, .validity = s->validity, .type = (int) r->in->stored[i].type};
	}
	for (int c = 0; c < plan->ncols; c++)
	{
		const ResidentColumn *col = &plan->cols[c];

		bool written = resident_is_written(plan, c);

		if (written || col->checked)
			run->output[run->noutputs++] = (ProgramOutput){
				.values = written ? computed + r->output_at[c] : NULL,
				.validity =
					written && col->nullable ? (uint32_t *) (computed + r->validity_at[c]) : NULL,
				.operand = col->operand,
				.width = wire_width(col->type),
				.filter = col->filter,
				.nullable = col->nullable,
			};
	}
}

/* Does the same for tiles. */
static void
describe_tile_program(DeviceQuery *query, const Resident *r, int segment, GpuaggProgram *program)
{
	*program = r->program.program;
	program->undetermined = &((KernelStatus *) query->status.at)->undetermined;
	locate_cells(query, r, program->cells);
	memcpy(program->tables, r->in->tables, sizeof(program->tables));
	for (uint32_t i = 0; i < r->in->nstored && segment < r->hold->nsegments; i++)
	{
		const StoreSegment *s = &r->hold->segments[(size_t) i * r->hold->nsegments + segment];
		DeviceColumn column = {
			.values = s->values, .validity = s->validity, .type = (int) r->in->stored[i].type};

		program->input[i] = kernel_column(&column);
	}
}

/* Returns the number of segments that contain all rows. */
static int
count_segments(const StoreHold *hold)
{
	return (int) (hold->spans[hold->nspans - 1].first / STORE_SEGMENT_ROWS) + 1;
}

/*
 * Copies the ranges of rows (if some rows are masked), the program for each segment, and the cells
 * to the device, with one copy.
 */
static DeviceStatus
upload_plan(DeviceQuery *query, Resident *r, DeviceError *error)
{
	size_t spans = is_masked(r->hold, r->most) ? r->hold->nspans * sizeof(StoreSpan) : 0;
	int nruns = r->plan.computes ? count_segments(r->hold) : 0;
	size_t cells = nruns > 0 ? r->in->cell_bytes : 0;
	size_t width = r->tiles ? sizeof(GpuaggProgram) : sizeof(ProgramRun);
	size_t bytes = align256(align256(spans) + nruns * width) + cells;
	char *host;
	cudaError_t err;

	r->runs_at = align256(spans);
	r->cells_at = align256(r->runs_at + nruns * width);
	if (bytes == 0)
		return DEVICE_OK;
	DEVICE_CHECK(memory_reserve(query, &query->scratch.plan, bytes, error));
	host = calloc(1, bytes);
	if (host == NULL)
		return device_fail(error, DEVICE_NO_MEMORY, "out of memory in the GPU server");
	memcpy(host, r->hold->spans, spans);
	for (int s = 0; s < nruns; s++)
		if (r->tiles)
			describe_tile_program(query, r, s, (GpuaggProgram *) (host + r->runs_at) + s);
		else
			describe_program(query, r, s, (ProgramRun *) (host + r->runs_at) + s);
	memcpy(host + r->cells_at, r->cells, cells);
	/* pageable memory has been read when the call returns */
	err =
		cudaMemcpyAsync(query->scratch.plan.at, host, bytes, cudaMemcpyHostToDevice, query->stream);
	free(host);
	return err == cudaSuccess ? DEVICE_OK : cuda_status(err, "copy of a plan", error);
}

/* ---- slices ---- */

static void
slice_column(DeviceQuery *query, const Resident *r, const ResidentSlice *slice, int c,
			 DeviceColumn *out)
{
	const ResidentColumn *col = &r->plan.cols[c];
	int64_t segment = slice->first / STORE_SEGMENT_ROWS;
	int64_t first = slice->first % STORE_SEGMENT_ROWS;

	out->type = (int) col->type;
	if (col->stored >= 0)
	{
		const StoreSegment *s =
			&r->hold->segments[(size_t) col->stored * r->hold->nsegments + segment];

		/* readers of codes make them from the floats */
		if (col->codes)
			out->type = (int) r->in->stored[col->stored].type;
		out->values = col->presence ? NULL : s->values + first * wire_width(out->type);
		out->nullable = r->payload_nulls >> c & 1;
		out->validity = s->validity ? s->validity + first / 8 : NULL;
	}
	else if (resident_is_written(&r->plan, c) && r->tiles)
	{
		out->computed = 1;
		out->operand = r->program.operand[c];
		out->nullable = col->nullable;
	}
	else if (resident_is_written(&r->plan, c))
	{
		out->values = (char *) query->scratch.computed.at + r->output_at[c];
		out->validity =
			col->nullable ? (uint8_t *) query->scratch.computed.at + r->validity_at[c] : NULL;
	}
}

/* Returns whether an earlier column checks the same stored column. */
static bool
checked_before(const ResidentPlan *plan, int c)
{
	for (int b = 0; b < c; b++)
		if (plan->cols[b].checked && plan->cols[b].stored == plan->cols[c].stored)
			return true;
	return false;
}

/* Adds the check of another column, if it is over the same stored column. */
static void
add_check(FloatCheck *check, const ResidentColumn *col, const ResidentColumn *other)
{
	if (!other->checked || other->stored != col->stored)
		return;
	check->below = other->below < check->below ? other->below : check->below;
	check->no_zeros |= other->no_zeros;
}

/*
 * Counts the rows of a slice with floats that only the CPU can judge.  mask: rows that count, or
 * NULL.
 */
static DeviceStatus
check_columns(DeviceQuery *query, const Resident *r, const ResidentSlice *slice,
			  const uint8_t *mask, DeviceError *error)
{
	int64_t first = slice->first % STORE_SEGMENT_ROWS;

	for (int c = 0; c < r->plan.ncols; c++)
	{
		const ResidentColumn *col = &r->plan.cols[c];
		FloatCheck check = {.mask = mask, .below = col->below, .no_zeros = col->no_zeros};
		const StoreSegment *s;

		if (!col->checked || checked_before(&r->plan, c))
			continue;
		for (int d = c + 1; d < r->plan.ncols; d++)
			add_check(&check, col, &r->plan.cols[d]);
		s = &r->hold->segments[(size_t) col->stored * r->hold->nsegments +
							   slice->first / STORE_SEGMENT_ROWS];
		check.column.type = (int) r->in->stored[col->stored].type;
		check.column.values = s->values + first * wire_width(r->in->stored[col->stored].type);
		check.column.validity = s->validity ? s->validity + first / 8 : NULL;
		check.undetermined = &((KernelStatus *) query->status.at)->undetermined;
		KERNEL_CHECK(device_check_floats(&check, slice->nrows, query->stream));
	}
	return DEVICE_OK;
}

/* Makes the mask, runs the program, and describes the rows of the slice. */
static DeviceStatus
make_slice_rows(DeviceQuery *query, const Resident *r, const ResidentSlice *slice, Rows *rows,
				DeviceError *error)
{
	uint8_t *filter = query->scratch.filter.at;
	const StoreSpan *spans = query->scratch.plan.at;

	memset(rows, 0, sizeof(*rows));
	rows->nrows = slice->nrows;
	rows->key_min = r->in->key_min;
	rows->key_max = r->in->key_max;
	if (slice->masked)
		KERNEL_CHECK(device_mask(spans + slice->span, slice->nspans, slice->first, slice->nrows,
								 filter, query->stream));
	if (r->plan.computes && !r->tiles)
	{
		const ProgramRun *runs =
			(const ProgramRun *) ((char *) query->scratch.plan.at + r->runs_at);

		KERNEL_CHECK(device_run_program(runs + slice->first / STORE_SEGMENT_ROWS,
										(int) r->plan.program.nregisters,
										slice->first % STORE_SEGMENT_ROWS, slice->nrows,
										slice->masked ? filter : NULL, filter, query->stream));
	}
	if (!r->plan.computes)
		DEVICE_CHECK(check_columns(query, r, slice, slice->masked ? filter : NULL, error));
	if (slice->masked || (r->plan.computes && !r->tiles))
		rows->filter = filter;
	for (int c = 0; c < r->plan.ncols; c++)
		slice_column(query, r, slice, c, &rows->cols[c]);
	return DEVICE_OK;
}

/* ---- rows in the order of the keys ---- */

static int64_t
count_words(const Resident *r, double *rows)
{
	ResidentSlice slice;
	int64_t position = 0, words = 0;
	int span = 0;

	*rows = 0;
	while (resident_slice(r->hold, r->most, &position, &span, &slice))
	{
		words += (slice.nrows + 31) / 32;
		*rows += slice.nrows;
	}
	return words;
}

/* Marks the rows where runs begin, in runs.heads, slice by slice. */
static DeviceStatus
find_run_heads(DeviceQuery *query, const Resident *r, DeviceError *error)
{
	const WireQuery *q = query->q;
	uint32_t *order = &((KernelStatus *) query->status.at)->order;
	HeadRows rows = {.nkeys = q->nkeys, .last_before = -1};
	ResidentSlice slice;
	int64_t position = 0, word = 0;
	int span = 0;

	CUDA_CHECK(cudaMemsetAsync(order, 0, sizeof(*order), query->stream));
	while (resident_slice(r->hold, r->most, &position, &span, &slice))
	{
		rows.mask = slice.masked ? query->scratch.filter.at : NULL;
		rows.spans = (const StoreSpan *) query->scratch.plan.at + slice.span;
		rows.nspans = slice.nspans;
		rows.first = slice.first;
		for (int k = 0; k < q->nkeys; k++)
			slice_column(query, r, &slice, q->keys[k].col, &rows.column[k]);
		if (slice.masked)
			KERNEL_CHECK(device_mask(rows.spans, slice.nspans, slice.first, slice.nrows,
									 query->scratch.filter.at, query->stream));
		KERNEL_CHECK(device_find_heads(&rows, slice.nrows, (uint32_t *) query->runs.heads.at + word,
									   order, query->stream));
		word += (slice.nrows + 31) / 32;
		/* the last row of a slice is always a wanted one */
		rows.last_before = slice.nrows - 1;
		memcpy(rows.column_before, rows.column, sizeof(rows.column));
	}
	return DEVICE_OK;
}

/* Packs the key of each run. */
static DeviceStatus
make_stored_run_keys(DeviceQuery *query, const Resident *r, DeviceError *error)
{
	const WireQuery *q = query->q;
	PackKeys pack = {
		.nkeys = q->nkeys, .key_bytes = q->key_bytes, .null_offset = (int) q->null_offset};
	ResidentSlice slice;
	int64_t position = 0, word = 0;
	int span = 0;

	while (resident_slice(r->hold, r->most, &position, &span, &slice))
	{
		for (int k = 0; k < q->nkeys; k++)
		{
			pack.width[k] = q->keys[k].width;
			pack.offset[k] = q->keys[k].offset;
			slice_column(query, r, &slice, q->keys[k].col, &pack.column[k]);
		}
		KERNEL_CHECK(device_head_keys(&pack, (uint32_t *) query->runs.heads.at + word,
									  (int32_t *) query->runs.before.at + word, slice.nrows,
									  query->groups.states.keys.at, query->stream));
		word += (slice.nrows + 31) / 32;
	}
	return DEVICE_OK;
}

/* Returns whether the keys are stored as they are, and may be in order. */
static bool
may_be_runs(const DeviceQuery *query, const Resident *r)
{
	const WireQuery *q = query->q;

	if (!runs_are_allowed(query))
		return false;
	for (int k = 0; k < q->nkeys; k++)
		if (r->plan.cols[q->keys[k].col].stored < 0)
			return false;
	return !store_is_disordered(r->hold, r->plan.cols[q->keys[0].col].stored);
}

static DeviceStatus
try_runs(DeviceQuery *query, Resident *r, bool *started, DeviceError *error)
{
	double rows;
	int64_t words = count_words(r, &rows);
	int64_t n;
	uint32_t order;

	/* the number of runs has 32 bits, and would overflow */
	if (rows > UINT32_MAX)
		return DEVICE_OK;
	DEVICE_CHECK(memory_reserve(query, &query->runs.heads, words * sizeof(uint32_t), error));
	DEVICE_CHECK(memory_reserve(query, &query->runs.before, (words + 1) * sizeof(int32_t), error));
	DEVICE_CHECK(find_run_heads(query, r, error));
	DEVICE_CHECK(runs_number(query, words, rows, &n, &order, started, error));
	if ((order & (HEADS_FIRST_ASCENDS | HEADS_FIRST_DESCENDS)) ==
		(HEADS_FIRST_ASCENDS | HEADS_FIRST_DESCENDS))
		store_note_disorder(r->hold, r->plan.cols[query->q->keys[0].col].stored);
	if (!*started)
		return DEVICE_OK;
	*started = false;
	DEVICE_CHECK(groups_start_runs(query, n, r->plan.computes, error));
	*started = true;
	return make_stored_run_keys(query, r, error);
}

/*
 * Makes the runs the query's groups, if the rows are in the order of the keys and there is memory.
 * With more runs than bins it returns DEVICE_UNSUPPORTED: there are too many groups.  But if the
 * program may filter out whole runs, it only leaves *started false.
 */
static DeviceStatus
start_runs(DeviceQuery *query, Resident *r, bool *started, DeviceError *error)
{
	DeviceStatus status = DEVICE_OK;

	*started = false;
	if (may_be_runs(query, r))
		status = try_runs(query, r, started, error);
	if (!*started)
	{
		memory_release(query, &query->runs.heads);
		memory_release(query, &query->runs.before);
	}
	if (!*started &&
		(status == DEVICE_NO_MEMORY || (status == DEVICE_UNSUPPORTED && r->plan.computes)))
		return DEVICE_OK;
	return status;
}

/* Prepares for slices that cannot be reduced in tiles. */
static DeviceStatus
leave_tiles(DeviceQuery *query, Resident *r, DeviceError *error)
{
	r->tiles = false;
	DEVICE_CHECK(reserve_slice(query, r, error));
	return upload_plan(query, r, error);
}

/* Reduces slices in tiles, from *position on, until one does not fit. */
static DeviceStatus
reduce_tiles(DeviceQuery *query, Resident *r, int64_t *position, int *span, bool *applied,
			 DeviceError *error)
{
	ResidentSlice slice;
	int64_t next = *position;

	while (resident_slice(r->hold, r->most, &next, span, &slice))
	{
		const GpuaggProgram *programs =
			(const GpuaggProgram *) ((char *) query->scratch.plan.at + r->runs_at);
		bool taken;
		Rows rows;

		DEVICE_CHECK(make_slice_rows(query, r, &slice, &rows, error));
		DEVICE_CHECK(tiles_reduce(query, &rows, &r->program,
								  programs + slice.first / STORE_SEGMENT_ROWS,
								  slice.first % STORE_SEGMENT_ROWS, &taken, applied, error));
		if (!taken)
			return leave_tiles(query, r, error);
		*position = next;
	}
	*position = next;
	return DEVICE_OK;
}

static DeviceStatus
reduce_all_slices(DeviceQuery *query, Resident *r, bool runs, bool *applied, DeviceError *error)
{
	ResidentSlice slice;
	int64_t position = 0;
	int span = 0;

	if (r->tiles)
		DEVICE_CHECK(reduce_tiles(query, r, &position, &span, applied, error));
	while (resident_slice(r->hold, r->most, &position, &span, &slice))
	{
		Rows rows;

		DEVICE_CHECK(make_slice_rows(query, r, &slice, &rows, error));
		if (runs)
		{
			rows.heads = (uint32_t *) query->runs.heads.at + r->word;
			rows.before = (int32_t *) query->runs.before.at + r->word;
			r->word += (slice.nrows + 31) / 32;
		}
		DEVICE_CHECK(device_query_reduce_rows(query, &rows, applied, error));
	}
	return DEVICE_OK;
}

static DeviceStatus
reduce_slices(DeviceQuery *query, Resident *r, bool *applied, DeviceError *error)
{
	bool runs = false;
	int64_t most;
	DeviceStatus status;

	r->tiles = tiles_are_allowed(query, r->in, &r->plan, &r->program);
	DEVICE_CHECK(reserve_slice(query, r, error));
	DEVICE_CHECK(upload_plan(query, r, error));
	status = start_runs(query, r, &runs, error);
	most = r->most;
	if (status == DEVICE_OK && runs && r->tiles)
		status = leave_tiles(query, r, error);
	/* the heads of runs were found for slices of that size */
	if (status == DEVICE_OK && runs && r->most != most)
		status = device_fail(error, DEVICE_NO_MEMORY, "no memory for slices of runs");
	if (status == DEVICE_OK)
		status = reduce_all_slices(query, r, runs, applied, error);
	/* runs became groups before their rows were reduced */
	if (status != DEVICE_OK && runs && !*applied)
		groups_release(query);
	return status;
}

/*
 * Saves the number of undetermined rows before this RESIDENT: if it is not taken, none of its rows
 * may count.
 */
static DeviceStatus
save_undetermined(DeviceQuery *query, DeviceError *error)
{
	KernelStatus *status = query->status.at;

	if (query->stored.nmessages++ > 0)
		CUDA_CHECK(cudaMemcpyAsync(&status->undetermined_before, &status->undetermined,
								   sizeof(status->undetermined), cudaMemcpyDeviceToDevice,
								   query->stream));
	return DEVICE_OK;
}

/*
 * After rows that were not taken: restores the number, and waits until nothing reads their columns.
 */
static DeviceStatus
restore_undetermined(DeviceQuery *query, DeviceError *error)
{
	KernelStatus *status = query->status.at;

	CUDA_CHECK(cudaMemcpyAsync(&status->undetermined, &status->undetermined_before,
							   sizeof(status->undetermined), cudaMemcpyDeviceToDevice,
							   query->stream));
	CUDA_CHECK(cudaStreamSynchronize(query->stream));
	return DEVICE_OK;
}

/* Returns whether the column is the value of ARGMAX or ARGMIN. */
static bool
is_payload(const WireQuery *q, int c)
{
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].col[1] == c &&
			(q->slots[s].monoid == MONOID_ARGMAX || q->slots[s].monoid == MONOID_ARGMIN))
			return true;
	return false;
}

/*
 * Finds the value columns of pairs that may be NULL in any segment, so that all slices agree on
 * which slots are derived.
 */
static void
find_payload_nulls(const DeviceQuery *query, Resident *r)
{
	r->payload_nulls = 0;
	for (int c = 0; c < r->plan.ncols; c++)
	{
		const ResidentColumn *col = &r->plan.cols[c];

		if (!is_payload(query->q, c))
			continue;
		if (col->stored < 0 && col->nullable)
			r->payload_nulls |= UINT64_C(1) << c;
		for (int s = 0; s < r->hold->nsegments && col->stored >= 0; s++)
			if (r->hold->segments[(size_t) col->stored * r->hold->nsegments + s].validity)
				r->payload_nulls |= UINT64_C(1) << c;
	}
}

/* Makes the plan; and again without the key columns that can be derived from pairs. */
static void
make_plan(DeviceQuery *query, Resident *r)
{
	Rows rows = {.nrows = 0};
	SlotSet derived = {{0}};

	resident_plan(query->q, r->in, r->hold, &derived, &r->plan);
	find_payload_nulls(query, r);
	for (int c = 0; c < r->plan.ncols; c++)
		rows.cols[c].nullable = r->payload_nulls >> c & 1;
	if (!derived_slots_of_keys(query, &rows, &derived))
		return;
	resident_plan(query->q, r->in, r->hold, &derived, &r->plan);
	find_payload_nulls(query, r);
}

static DeviceStatus
reduce_held(DeviceQuery *query, Lane *lane, const WireResident *in, const WireRowRange *row_ranges,
			const StoreHold *hold, DeviceError *error)
{
	int b = (int) in->buffer;
	Resident r = {.in = in, .hold = hold, .cells = (const char *) row_ranges + wire_cells_at(in)};
	bool applied = false;
	DeviceStatus status;

	make_plan(query, &r);
	DEVICE_CHECK(lane_add_kernel_time(lane, b, error));
	CUDA_CHECK(cudaEventRecord(lane->reduce_began[b], query->stream));
	DEVICE_CHECK(save_undetermined(query, error));
	status = reduce_slices(query, &r, &applied, error);
	if (status != DEVICE_OK)
	{
		DEVICE_CHECK(restore_undetermined(query, error));
		return !applied && (status == DEVICE_NO_MEMORY || status == DEVICE_UNSUPPORTED) ?
			DEVICE_FULL :
			status;
	}
	CUDA_CHECK(cudaEventRecord(lane->reduced[b], query->stream));
	lane->timing[b] = true;
	return DEVICE_OK;
}

DeviceStatus
cuda_resident(DeviceQuery *query, Lane *lane, const WireResident *in,
			  const WireRowRange *row_ranges, StoreHold *hold, DeviceError *error)
{
	hold->next = query->stored.holds;
	query->stored.holds = hold;
	CUDA_CHECK(cuda_select(query->device));
	return reduce_held(query, lane, in, row_ranges, hold, error);
}

/*
 * device_rows.c
 *	  Reduces rows whose columns are cached on the devices, without sending them. device_rows.h
 *	  has the sequence of steps.
 *
 * The GPU gives the answer that batches would give. Where it cannot know whether the answer is
 * right (floats that may overflow a sum, -0 in an extreme, values that only core can compute), the
 * row is VECTOR_UNDETERMINED, and the executor starts over with the CPU engine.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "analysis/analysis.h"
#include "columns/column_value.h"
#include "engine_cuda/dictionaries.h"
#include "engine_cuda/device_rows.h"
#include "operators/vector_run.h"
#include "settings.h"

/*
 * Most rounds of RESIDENT for one table: the first one, one after an upload, and one for the rows
 * that are complete then, because columns may be evicted while others are uploaded. Some more are
 * for spans that must be listed, and for dictionaries to which other sessions add meanwhile.
 */
#define ATTEMPTS 8

/* ---- which queries ----------------------------------------------------------- */

/* Returns why no rows cached on the devices can be used, for any table; or NULL. */
static const char *
unsupported_reason(const CudaEngine *cuda)
{
	if (gpuagg_device_cache_memory == 0)
		return "gpuagg.device_cache_memory is 0";
	if (!cuda_can_start_over(cuda))
		return "the input cannot be read twice";
	if (cuda->query->ncols > WIRE_MAX_RESIDENT_COLS)
		return "the query reads more columns than can be reduced on the GPU";
	for (int c = 0; c < cuda->query->ncols; c++)
		if (cuda->query->cols[c].travel == TRAVEL_MATRIX)
			return "matrices are not cached on the GPU";
	return NULL;
}

/* Returns the operand for a constant column. */
static uint16
constant_operand(Resident *r, int col)
{
	const ColumnSpec *spec = &r->cuda->spec->cols[col];
	int64 bits;

	if (r->rows->constant_nulls[col])
		return expr_program_constant(r->program, 0, true);
	if (spec->type == COLUMN_DATUM)
		return expr_program_reject(r->program, "values of this type are not supported on the GPU");
	if (spec->form != NUMERIC_ONE_SCALE ||
		!expr_register_bits(spec->type, spec->scale, r->rows->constants[col], &bits))
		return expr_program_reject(r->program, "a constant cannot be represented on the GPU");
	return expr_program_constant(r->program, bits, false);
}

/* Returns the joins of the rows as the program has them, or NULL. */
static ExprJoins *
create_joins(const FeedResident *rows)
{
	ExprJoins *joins;

	if (rows->njoins == 0)
		return NULL;
	joins = palloc(sizeof(ExprJoins));
	*joins = (ExprJoins){.table_varno = rows->table_varno,
						 .inner_varno = rows->inner_varno,
						 .natts = rows->natts,
						 .join = rows->inner_join,
						 .keys = palloc(sizeof(uint16) * rows->njoins)};
	for (int j = 0; j < rows->njoins; j++)
		joins->keys[j] = VECTOR_NONE;
	return joins;
}

/* Translates a join to the program. */
static void
translate_join(Resident *r, int j)
{
	const ResidentJoin *join = &r->rows->joins[j];
	bool possible;

	JoinType type = resident_join_type(r, j);

	r->key_parts[j] = resident_key_parts(join->lookup, &possible);
	if (!possible)
		expr_program_reject(r->program, "the keys of a join have too many combinations");
	expr_program_join(r->program, j,
					  &(ExprJoin){.nkeys = join->lookup->nkeys,
								  .keys = join->keys,
								  .parts = r->key_parts[j],
								  .hashed = resident_is_hashed(join->lookup),
								  .outer = type == JOIN_LEFT,
								  .found = type != JOIN_ANTI});
}

/* Translates the conditions and the query's columns to the program. */
static void
translate_query(Resident *r)
{
	CudaQuery *query = r->cuda->query;
	FeedResident *rows = r->rows;
	ListCell *lc;

	for (int q = 0; q < rows->nquals; q++)
		if (rows->quals[q])
			expr_program_filter(r->program, rows->quals[q]);
		else
			translate_join(r, rows->probed[q]);
	foreach (lc, rows->checks)
		expr_program_check(r->program, lfirst(lc));
	for (int c = 0; c < query->ncols; c++)
	{
		int col = query->cols[c].col;
		const ColumnSpec *spec = &r->cuda->spec->cols[col];
		const ExprRoot *root = rows->outputs[col];

		r->codes[c] = VECTOR_NONE;
		if (cuda_has_dictionary(&query->cols[c]))
			r->inputs[c] = resident_key(r, c, root);
		else if (query->cols[c].travel == TRAVEL_RANKS)
			r->inputs[c] = resident_ranks(r, c, root);
		else if (root == NULL)
			r->inputs[c] = constant_operand(r, col);
		else if (query->cols[c].travel == TRAVEL_PRESENCE &&
				 (root->vec == NULL || root->vec->type == COLUMN_DATUM))
			r->inputs[c] = expr_program_presence(r->program, root);
		else if (root->vec && (root->vec->type != spec->type || root->vec->scale != spec->scale))
			expr_program_reject(r->program,
								"an argument has another type or scale than the aggregate reads");
		else if (root->vec == NULL && spec->form != NUMERIC_ONE_SCALE)
			expr_program_reject(r->program, "an expression is evaluated row by row");
		else
			r->inputs[c] = expr_program_root(r->program, root, spec->type, spec->scale);
	}
	for (int s = 0; s < r->program->nstored; s++)
		r->chunk[s] = rows->slots[r->program->stored[s].attno - 1];
}

/* ---- which ranges ------------------------------------------------------------ */

/* Returns whether the GPU can have the chunk in the form that the program loads. */
static bool
chunk_suits(const CacheChunk *chunk, const ExprStored *stored)
{
	if (stored->coded || stored->presence)
		return true;
	if (chunk->type != stored->type || chunk->scale != stored->scale || chunk->nexceptions > 0)
		return false;
	if (!chunk->has_bounds)
		return chunk->nnulls == chunk->nrows;
	if (column_is_float(chunk->type))
		return isfinite(chunk->least.number) && isfinite(chunk->greatest.number);
	return true;
}

/* Returns the chunk's bounds of integers, as registers have them. */
static ExprInterval
chunk_interval(const CacheChunk *chunk)
{
	int64 min = chunk->least.integer;
	int64 max = chunk->greatest.integer;

	/* unsigned values above PG_INT32_MAX become negative in a register */
	if (chunk->type == COLUMN_U32 && max > PG_INT32_MAX)
	{
		if (min <= PG_INT32_MAX)
			return (ExprInterval){PG_INT32_MIN, PG_INT32_MAX};
		min = (int32) min;
		max = (int32) max;
	}
	return (ExprInterval){min, max};
}

static void
widen_bounds(ColumnBounds *bounds, const CacheChunk *chunk, const ExprStored *stored)
{
	bool isfloat = column_is_float(chunk->type);

	bounds->nulls |= chunk->nnulls > 0;
	if (!chunk->has_bounds || stored->coded || stored->presence)
		return;
	if (isfloat)
	{
		bounds->least = bounds->any ? Min(bounds->least, chunk->least.number) : chunk->least.number;
		bounds->greatest =
			bounds->any ? Max(bounds->greatest, chunk->greatest.number) : chunk->greatest.number;
	}
	else
	{
		ExprInterval i = chunk_interval(chunk);

		bounds->integers.min = bounds->any ? Min(bounds->integers.min, i.min) : i.min;
		bounds->integers.max = bounds->any ? Max(bounds->integers.max, i.max) : i.max;
	}
	bounds->any = true;
}

/* ResidentAccept: accepts a range's chunks, and keeps the bounds of their values. */
static bool
accept_chunks(void *arg, const CacheChunk *const *chunks)
{
	Resident *r = arg;

	for (int s = 0; s < r->program->nstored; s++)
		if (!chunk_suits(chunks[r->chunk[s]], &r->program->stored[s]))
			return false;
	for (int s = 0; s < r->program->nstored; s++)
		widen_bounds(&r->bounds[s], chunks[r->chunk[s]], &r->program->stored[s]);
	return true;
}

/* ---- what is sent ------------------------------------------------------------ */

static void
find_nulls(const Resident *r, bool *nulls)
{
	uint32 stored = 0;

	for (int s = 0; s < r->program->nstored; s++)
		stored |= (uint32) r->bounds[s].nulls << s;
	expr_program_nulls(r->program, stored, nulls);
}

static bool
may_be_null(const Resident *r, const bool *nulls, uint16 operand)
{
	return operand >= VECTOR_CONSTANT ?
		r->program->flat.constants[operand - VECTOR_CONSTANT].state == VECTOR_NULL :
		nulls[operand];
}

/*
 * Adds a check of floats, unless the column's bounds make it unnecessary. Floats that may overflow
 * a sum, -0 in an extreme, and -0 and NaN among the n best are undetermined.
 */
static uint16
check_floats(Resident *r, const CudaColumn *col, uint16 a, ColumnType type)
{
	int s = expr_program_stored(r->program, a);
	double safe = col->safe > 0 ? col->safe : HUGE_VAL;
	bool zeros = col->extreme || col->returned;
	bool large = col->safe > 0;
	int64 bits;

	if (s >= 0)
	{
		const ColumnBounds *k = &r->bounds[s];

		zeros &= k->any && k->least <= 0 && k->greatest >= 0;
		large &= k->any && Max(fabs(k->least), fabs(k->greatest)) >= safe;
	}
	if (!zeros && !large)
		return a;
	memcpy(&bits, &safe, sizeof(bits));
	return expr_program_emit(r->program, type == COLUMN_F32 ? VECTOR_F32_BELOW : VECTOR_F64_BELOW,
							 zeros, a, expr_program_constant(r->program, bits, false), 0);
}

/* The magnitude that is assumed of computed values if there is no estimate. */
#define COMPUTED_MAGNITUDE 1048576.0

/* Returns the bits of a float as a register has them. */
static int64
float_bits(double x, ColumnType type)
{
	return type == COLUMN_F32 ? vector_bits_F32((float) x) : vector_bits_F64(x);
}

/* Estimates the largest magnitude of a computed float. */
static double
computed_magnitude(const Resident *r, uint16 a, ColumnType type)
{
	int64 ends[WIRE_MAX_STORED_COLS][2] = {{0}};
	double magnitude;

	for (int s = 0; s < r->program->nstored; s++)
	{
		const ColumnBounds *k = &r->bounds[s];
		ColumnType stored = r->program->stored[s].type;

		if (!k->any)
			continue;
		ends[s][0] = column_is_float(stored) ? float_bits(k->least, stored) : k->integers.min;
		ends[s][1] = column_is_float(stored) ? float_bits(k->greatest, stored) : k->integers.max;
	}
	magnitude = expr_program_magnitude(r->program, ends, a, type);
	return magnitude > 0 ? magnitude : COMPUTED_MAGNITUDE;
}

/* Adds the computation of a part of floats, for exact sums. */
static uint16
emit_part(Resident *r, const CudaColumn *col, uint16 a, ColumnType type)
{
	const ColumnBounds *k;
	double magnitude;
	int s;

	if (r->program->unsupported_reason)
		return VECTOR_NONE;
	s = expr_program_stored(r->program, a);
	k = s >= 0 ? &r->bounds[s] : NULL;
	magnitude = k == NULL ? computed_magnitude(r, a, type) :
		k->any            ? Max(fabs(k->least), fabs(k->greatest)) :
							0;
	if (!cuda_parts_reach(col->parts, magnitude) && k)
		return expr_program_reject(
			r->program, "floats differ too much in magnitude for an exact sum on the GPU");
	return expr_program_emit(r->program, type == COLUMN_F32 ? VECTOR_F32_PART : VECTOR_F64_PART,
							 2 * col->parts->unit + (col->travel == TRAVEL_HIGH_PART), a, 0, 0);
}

/* Adds the computation of a column of the message with a part. */
static uint16
emit_part_column(Resident *r, int c)
{
	const CudaColumn *col = &r->cuda->query->cols[c];

	return emit_part(r, col, r->inputs[c], r->cuda->spec->cols[col->col].type);
}

/* Adds the computation of a boolean: whether two columns have values, and a filter passes. */
static uint16
emit_pairs(Resident *r, const int *sources, const bool *maybe_null)
{
	uint16 pairs = expr_program_constant(r->program, 1, false);

	for (int i = 0; i < 2; i++)
		if (maybe_null[sources[i]])
			pairs = expr_program_emit(
				r->program, VECTOR_AND, 0, pairs,
				expr_program_emit(r->program, VECTOR_ISNOTNULL, 0, r->inputs[sources[i]], 0, 0), 0);
	if (sources[2] >= 0)
		pairs = expr_program_emit(r->program, VECTOR_AND, 0, pairs, r->inputs[sources[2]], 0);
	return pairs >= VECTOR_CONSTANT ? pairs :
									  expr_program_emit(r->program, VECTOR_IS_TRUE, 0, pairs, 0, 0);
}

/*
 * Returns the operand with column c's values in the form of its travel. *wire is set to their type.
 * maybe_null[i]: input i may be NULL
 */
static uint16
emit_output(Resident *r, int c, const bool *maybe_null, WireType *wire)
{
	const CudaColumn *col = &r->cuda->query->cols[c];
	ColumnType type = r->cuda->spec->cols[col->col].type;
	uint16 a = r->inputs[c];
	bool as_double =
		col->travel == TRAVEL_VALUES && col->type == WIRE_F64 && column_is_integer(type);

	*wire = col->type;
	switch (col->travel)
	{
		case TRAVEL_PRESENCE:
			/* a computed value may be undetermined, so that the program must compute it */
			if (!maybe_null[c] && (a >= VECTOR_CONSTANT || expr_program_stored(r->program, a) >= 0))
				return expr_program_constant(r->program, 1, false);
			return expr_program_emit(r->program, VECTOR_PRESENCE, 0, a, 0, 0);
		case TRAVEL_FILTER:
			return expr_program_emit(r->program, VECTOR_IS_TRUE, 0, a, 0, 0);
		case TRAVEL_KEY_CODES:
		case TRAVEL_VALUE_CODES:
			if (col->returned)
				a = check_floats(r, col, a, type);
			return expr_program_emit(r->program,
									 type == COLUMN_F32 ? VECTOR_F32_CODE : VECTOR_F64_CODE,
									 col->travel == TRAVEL_KEY_CODES, a, 0, 0);
		case TRAVEL_HIGH_PART:
		case TRAVEL_LOW_PART:
			return emit_part(r, col, a, type);
		case TRAVEL_PARTS_SUM:
			return expr_program_emit(r->program, VECTOR_F_INT8PL, 0,
									 emit_part_column(r, col->sources[0]),
									 emit_part_column(r, col->sources[1]), 0);
		case TRAVEL_PAIRS:
			return emit_pairs(r, col->sources, maybe_null);
		case TRAVEL_CODES:
		case TRAVEL_NUMBERS:
		case TRAVEL_SET_CODES:
		case TRAVEL_RANKS:
			return a;
		default:
			break;
	}
	if (type == COLUMN_DEC)
		*wire = WIRE_I64;
	if (column_is_float(type))
		return check_floats(r, col, a, type);
	if (type == COLUMN_U32 && (col->type == WIRE_I64 || as_double))
		a = expr_program_emit(r->program, VECTOR_UNSIGNED, 0, a, 0, 0);
	return as_double ? expr_program_emit(r->program, VECTOR_F_FLOAT8_INT8, 0, a, 0, 0) : a;
}

static void
describe_stored(Resident *r)
{
	for (int s = 0; s < r->program->nstored; s++)
	{
		const CacheColumnKey *key = &r->rows->cols[r->chunk[s]];
		WireColumnKey *out = &r->wire.stored[s];

		out->typid = key->typid;
		out->typmod = key->typmod;
		out->missing = key->missing;
		out->attno = key->attno;
		out->scale = key->scale;
		out->type = r->program->stored[s].type == COLUMN_DEC ?
			WIRE_I64 :
			cuda_native_type(r->program->stored[s].type);
		out->coded = r->program->stored[s].coded;
	}
	r->wire.nstored = r->program->nstored;
}

/* ---- the message --------------------------------------------------------------- */

/* Describes the columns that the program computes: types, bounds of keys, and which may be NULL. */
static void
describe_columns(Resident *r)
{
	CudaQuery *query = r->cuda->query;
	ExprInterval intervals[WIRE_MAX_STORED_COLS];
	bool nulls[VECTOR_MAX_INSTRUCTIONS];
	bool input_null[WIRE_MAX_RESIDENT_COLS];

	find_nulls(r, nulls);
	for (int c = 0; c < query->ncols; c++)
		input_null[c] = may_be_null(r, nulls, r->inputs[c]);
	for (int c = 0; c < query->ncols; c++)
	{
		WireType type;

		r->outputs[c] = emit_output(r, c, input_null, &type);
		r->wire.types[c] = type;
	}
	if (r->program->unsupported_reason)
		return;
	for (int s = 0; s < r->program->nstored; s++)
		intervals[s] = r->program->stored[s].coded ?
			(ExprInterval){0, (int64) r->wire.known[s].nentries - 1} :
			r->bounds[s].any ? r->bounds[s].integers :
							   (ExprInterval){1, 0};
	for (int k = 0; k < r->cuda->spec->nkeys; k++)
	{
		int c = query->keycol[k];
		ExprInterval i = expr_program_interval(r->program, intervals, r->outputs[c],
											   r->cuda->spec->cols[query->cols[c].col].type);

		r->wire.key_min[k] = i.min;
		r->wire.key_max[k] = i.max;
	}
	find_nulls(r, nulls);
	r->wire.nullable = 0;
	for (int c = 0; c < query->ncols; c++)
		if (may_be_null(r, nulls, r->outputs[c]))
			r->wire.nullable |= UINT64CONST(1) << c;
}

/*
 * Describes the query over the collected rows, with the current copies of dictionaries. *refused:
 * that is not possible. Returns false if the session is lost.
 */
static bool
describe_query(Resident *r, bool *refused)
{
	CudaQuery *query = r->cuda->query;

	*r->program = *r->translated;
	r->wire.table.id = r->rows->table;
	describe_stored(r);
	if (!resident_choose_codes(r) || !resident_fill_lookups(r))
		return false;
	resident_use_codes(r);
	if (r->program->unsupported_reason == NULL)
		resident_choose_cells(r);
	if (r->program->unsupported_reason == NULL)
		describe_columns(r);
	*refused = r->program->unsupported_reason ||
		!expr_program_finish(r->program, &r->wire.program, r->outputs, query->ncols);
	for (int c = 0; c < query->ncols; c++)
		r->wire.cols[c] = r->outputs[c];
	r->wire.ncols = query->ncols;
	return true;
}

/* ---- the rows ---------------------------------------------------------------- */

/* What is lacking on the devices, for rows that were not taken. */
typedef struct Lacking
{
	uint64 flags;       /* WIRE_OUTDATED, WIRE_UNSORTED, WIRE_SPREAD */
	uint64 any;         /* the union of the following */
	uint64 *row_ranges; /* lacking stored columns, a bit each, for each row range */
	uint64 *spans;      /* the same for each span; all bits: the server may not know its list */
} Lacking;

/* Sends RESIDENT with its spans, or queues it if another message follows. */
static bool
send_resident(Resident *r, bool more)
{
	Size bytes = sizeof(WireResident) + r->rows->nspans * sizeof(WireSpan);
	char *message = palloc(bytes);
	bool sent;

	memcpy(message, &r->wire, sizeof(WireResident));
	if (r->rows->nspans > 0)
		memcpy(message + sizeof(WireResident), r->rows->spans, r->rows->nspans * sizeof(WireSpan));
	sent = (more ? client_queue : client_send)(r->cuda->client, MESSAGE_RESIDENT, message, bytes);
	pfree(message);
	return sent;
}

/* Copies what is lacking from the buffer, which uploads will use. */
static void
copy_lacking(const Resident *r, Lacking *lacking)
{
	const FeedResident *rows = r->rows;
	Size n = (Size) rows->nrow_ranges + rows->nspans;

	lacking->row_ranges = palloc(n * sizeof(uint64));
	lacking->spans = lacking->row_ranges + rows->nrow_ranges;
	memcpy(lacking->row_ranges, r->cuda->client->arena + wire_cells_at(&r->wire),
		   n * sizeof(uint64));
	lacking->flags = lacking->row_ranges[0] & (WIRE_OUTDATED | WIRE_UNSORTED | WIRE_SPREAD);
	lacking->row_ranges[0] &= ~lacking->flags;
	for (Size i = 0; i < n; i++)
		lacking->any |= lacking->row_ranges[i];
}

/*
 * Sends RESIDENT and receives the answer. Returns false if the session is lost. Else sets *taken,
 * or fills in *lacking.
 */
static bool
send_and_receive(Resident *r, bool *taken, Lacking *lacking)
{
	Client *client = r->cuda->client;
	FeedResident *rows = r->rows;
	WireResided resided;
	bool ending = resident_has_all_rows(r);

	*taken = false;
	*lacking = (Lacking){0};
	/*
	 * if nothing is written to the arena, the answer to OPEN may come together with that to
	 * RESIDENT
	 */
	if ((rows->nrow_ranges > 0 || r->wire.cell_bytes > 0) && !client_opened(client))
		return false;
	if (rows->nrow_ranges > 0)
		memcpy(client->arena, rows->row_ranges, rows->nrow_ranges * sizeof(WireRowRange));
	r->wire.buffer = 0;
	r->wire.nrow_ranges = rows->nrow_ranges;
	r->wire.nspans = rows->nspans;
	/* no room for the cells counts as no room on the device */
	if (!resident_write_cells(r, client->arena))
		return true;
	if (!send_resident(r, ending) || (ending && !cuda_send_finish(r->cuda, true, true)) ||
		!client_receive(client, MESSAGE_RESIDED, &resided, sizeof(resided)))
		return false;
	*taken = resided.taken != 0;
	r->cuda->ending = *taken && ending;
	if (*taken)
		return true;
	/* the server has ignored FINISH then */
	r->cuda->asked.count = 0;
	for (int d = 0; d < WIRE_MAX_DEVICES; d++)
		r->refused[d] |= resided.refused[d];
	r->lacking_cells = resided.lacking_cells;
	r->unkept_cells |= resided.lacking_cells & r->sent_cells;
	copy_lacking(r, lacking);
	return true;
}

/*
 * Replaces the spans that lack stored columns by their row ranges. Returns false if no span lacks
 * any.
 */
static bool
list_lacking_spans(Resident *r, const Lacking *lacking)
{
	FeedResident *rows = r->rows;
	bool *of = palloc0(rows->nspans + 1);
	bool any = false;

	for (uint32 i = 0; i < rows->nspans; i++)
		any |= of[i] = lacking->spans[i] != 0;
	if (any)
		feed_resident_expand(rows, of);
	pfree(of);
	return any;
}

/*
 * Called after the server has not taken the rows. If spans lack stored columns on the devices,
 * replaces them by their row ranges. Otherwise uploads the columns that row ranges lack, the first
 * time; after that, gives the rows of these ranges back to the feed, which makes batches of them.
 * *again: whether RESIDENT should be sent again. Returns false if the session is lost.
 */
static bool
handle_lacking(Resident *r, Lacking *lacking, bool *uploaded, bool *again)
{
	FeedResident *rows = r->rows;
	bool first = !*uploaded;
	bool *keep;

	r->outdated = lacking->flags != 0 || lacking->any != 0;
	*again = (r->outdated || r->lacking_cells != 0) &&
		(lacking->flags & (WIRE_UNSORTED | WIRE_SPREAD)) == 0;
	r->cuda->not_resident = lacking->flags & WIRE_UNSORTED ?
		"the copies on the GPU are not in the order of the table" :
		lacking->flags & WIRE_SPREAD ?
		"ordered rows must be on one device, and the copies are on several" :
		r->outdated      ? "no GPU memory is left for copies of the rows" :
		r->lacking_cells ? "no GPU memory is left for the tables of joins" :
						   "no GPU memory is left for the query";
	/* a row range says more than a span about what is lacking */
	if (!*again || lacking->any == 0 || list_lacking_spans(r, lacking))
		return true;
	if (first)
		feed_resident_refute(rows, lacking->row_ranges);
	keep = palloc(rows->nrow_ranges + 1);
	for (uint32 i = 0; i < rows->nrow_ranges; i++)
		keep[i] = first || lacking->row_ranges[i] == 0;
	*uploaded = true;
	if (first && !resident_upload(r, lacking->row_ranges, keep))
		return false;
	feed_resident_keep(rows, keep, true);
	pfree(keep);
	return true;
}

/* Gives all rows back to the feed. Codes of keys stay if groups of another table have them. */
static void
give_back_rows(Resident *r)
{
	feed_resident_keep(r->rows, palloc0(r->rows->nrow_ranges + 1), false);
	if (r->cuda->rows_resident > 0)
		return;
	for (int t = 0; t < r->program->nlookups; t++)
		if (r->program->lookups[t].column >= 0)
			dictionary_reset(r->cuda->query->cols[r->program->lookups[t].column].dict);
}

/*
 * Tries until the server has taken the collected rows, all or those that it can have, or until
 * there is no hope: steps 4 to 7 of device_rows.h.
 */
static bool
negotiate(Resident *r, bool *taken)
{
	CudaEngine *cuda = r->cuda;
	FeedResident *rows = r->rows;
	bool uploaded = false;
	bool again = true;
	bool refused = false;

	*taken = false;
	for (int attempt = 1; attempt <= ATTEMPTS && rows->nrow_ranges + rows->nspans > 0 && again;
		 attempt++)
	{
		Lacking lacking;

		CHECK_FOR_INTERRUPTS();
		if (cuda->spec->ordered && !feed_resident_complete(rows))
		{
			cuda->not_resident = "all ordered rows must be cached, and some are not";
			break;
		}
		r->replaced = false;
		if (!describe_query(r, &refused))
			return false;
		if (r->replaced)
		{
			r->outdated = true;
			continue;
		}
		if (refused)
			break;
		if (!send_and_receive(r, taken, &lacking))
			return false;
		if (*taken)
			break;
		/* passes before this one have reduced all of the rows */
		if (r->pass > 0 && lacking.any != 0)
			break;
		if (!handle_lacking(r, &lacking, &uploaded, &again))
			return false;
	}
	return true;
}

/* Translates the query for a pass over the rows. */
static void
begin_pass(Resident *r, uint64 pass)
{
	r->pass = pass;
	r->program = expr_program_create(r->rows->set, create_joins(r->rows));
	r->lacking_cells = r->sent_cells = r->unkept_cells = 0;
	r->outdated = false;
	memset(r->shared_cells, 0, sizeof(r->shared_cells));
	memset(r->wire.names, 0, sizeof(r->wire.names));
	if (pass == 0)
		resident_find_matches(r);
	if (r->program->unsupported_reason == NULL)
	{
		resident_set_matches(r);
		translate_query(r);
	}
}

/* Lets the server reduce the collected rows in a pass.  *taken: it has */
static EngineStatus
reduce_pass(Resident *r, bool *taken)
{
	instr_time since = cuda_clock();
	bool ok;

	expr_program_settle(r->program);
	*r->translated = *r->program;
	ok = negotiate(r, taken);
	cuda_add_time(&r->cuda->times.resident_ms, since);
	if (!ok)
		return cuda_fail_client(r->cuda);
	if (*taken)
	{
		resident_note_codes(r);
		resident_note_cells(r);
	}
	return ENGINE_OK;
}

/* Returns whether the program loads the same columns as the one of the first pass. */
static bool
loads_same_columns(const ExprProgram *a, const ExprProgram *b)
{
	if (a->nstored != b->nstored)
		return false;
	for (int s = 0; s < a->nstored; s++)
		if (a->stored[s].attno != b->stored[s].attno || a->stored[s].type != b->stored[s].type ||
			a->stored[s].coded != b->stored[s].coded ||
			a->stored[s].presence != b->stored[s].presence)
			return false;
	return true;
}

/*
 * Lets the server reduce the collected rows, all or those that it can have. Gives the others back
 * to the feed.
 */
static EngineStatus
reduce_collected_rows(Resident *r)
{
	CudaEngine *cuda = r->cuda;
	FeedResident *rows = r->rows;
	const ExprProgram *first = r->program;
	bool taken;
	EngineStatus status = reduce_pass(r, &taken);

	if (status != ENGINE_OK)
		return status;
	if (!taken)
	{
		give_back_rows(r);
		return ENGINE_OK;
	}
	for (uint64 pass = 1; pass < r->npasses; pass++)
	{
		CHECK_FOR_INTERRUPTS();
		begin_pass(r, pass);
		taken = false;
		if (r->program->unsupported_reason == NULL && loads_same_columns(r->program, first))
			status = reduce_pass(r, &taken);
		if (status != ENGINE_OK)
			return status;
		if (!taken)
			return cuda_fail(cuda, "only some matches of a join could be found on the GPU");
	}
	cuda->not_resident = NULL;
	cuda->passes = Max(cuda->passes, r->npasses);
	cuda->rows_given += rows->nrows;
	cuda->rows_resident += rows->nrows;
	feed_resident_taken(rows);
	return ENGINE_OK;
}

/* Reduces rows of one table: steps 2 to 8 of device_rows.h. Frees `rows`. */
static EngineStatus
take_table(CudaEngine *cuda, FeedResident *rows)
{
	EngineStatus status = ENGINE_OK;
	instr_time since;
	MemoryContext cxt =
		AllocSetContextCreate(CurrentMemoryContext, "GPU resident rows", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	Resident *r = palloc0(sizeof(Resident));

	r->cuda = cuda;
	r->rows = rows;
	r->translated = palloc(sizeof(ExprProgram));
	r->key_parts = palloc0(sizeof(ExprKeyPart *) * (rows->njoins + 1));
	cuda_dictionaries_trim();
	begin_pass(r, 0);
	if (r->program->unsupported_reason == NULL)
	{
		since = cuda_clock();
		feed_resident_collect(rows, accept_chunks, r);
		cuda_add_time(&cuda->times.proof_ms, since);
		cuda->not_resident = "no rows are cached";
		if (rows->nrow_ranges + rows->nspans > 0)
			status = reduce_collected_rows(r);
	}
	if (r->program->unsupported_reason)
		cuda->not_resident = r->program->unsupported_reason;
	feed_resident_free(rows);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return status;
}

EngineStatus
cuda_take_resident(Engine *engine, Feed *feed)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	EngineStatus status = ENGINE_OK;

	if (cuda->query == NULL || cuda->sorted || feed->ops->resident == NULL ||
		(cuda->not_resident = unsupported_reason(cuda)) != NULL)
		return ENGINE_OK;
	if (cuda_begin_open(cuda, NULL) != ENGINE_OK)
		return ENGINE_FAILED;
	while (status == ENGINE_OK)
	{
		FeedResident *rows = feed->ops->resident(feed, &cuda->not_resident);

		if (rows == NULL)
			break;
		CHECK_FOR_INTERRUPTS();
		status = take_table(cuda, rows);
	}
	return status;
}

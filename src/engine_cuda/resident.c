/*
 * resident.c
 *	  Rows of which the GPU server has copies: a query reduces them by name.
 *
 * Before the first batch the quals, keys and arguments are translated to a program (expr/program.h); the feed
 * proves and collects the rows of ranges whose chunks the GPU can have; the server is told which rows (RESIDENT).
 * Columns that it lacks are uploaded once from the column cache (STORE), and what it does not keep is left to the
 * feed, like all other rows.
 *
 * The GPU gives the answer that batches would give.  What it could not know to be right (floats that may
 * overflow a sum, -0 in an extreme, what only core can tell) is VECTOR_UNTOLD, and then the executor starts over
 * with the CPU engine; so this is done only where it can.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "columns/column_value.h"
#include "engine_cuda/cuda_engine.h"
#include "expr/program.h"
#include "feed/heap_resident.h"
#include "settings.h"

/*
 * How often the rows are asked for: first, after an upload, and once more for those that are all there then, as
 * columns may be evicted while others are uploaded.
 */
#define ATTEMPTS 3

/* Rows that are decoded at a time. */
#define PIECE 4096

/* What is known of a stored column's values in the rows that are collected. */
typedef struct Known
{
	bool		any;			/* some row has a value: */
	bool		nulls;
	ExprInterval integers;		/* as a register has them */
	double		least,
				greatest;
} Known;

typedef struct Resident
{
	CudaEngine *cuda;
	FeedResident *rows;
	ExprProgram *program;
	int			chunk[WIRE_MAX_STORED_COLS];	/* [stored column] in the chunks of a range */
	Known		known[WIRE_MAX_STORED_COLS];
	uint16		inputs[WIRE_MAX_COLS];	/* [column of the query] operand with the values of the batch's column */
	uint16		outputs[WIRE_MAX_COLS]; /* in the form in which the column is sent */
	bool		refused[WIRE_MAX_STORED_COLS];	/* the server has not kept a part of it */
	WireResident wire;
} Resident;

/* ---- which queries ----------------------------------------------------------- */

/* Why resident rows cannot be had, whatever the table; or NULL. */
static const char *
refusal(const CudaEngine *cuda)
{
	if (gpuagg_device_cache_memory == 0)
		return "gpuagg.device_cache_memory is 0";
	if (!cuda_can_start_over(cuda))
		return "rows come once";
	if (cuda->spec->ordered)
		return "rows in order";
	for (int c = 0; c < cuda->query->ncols; c++)
	{
		if (cuda->query->cols[c].travel == TRAVEL_CODES)
			return "keys that are sent as numbers in a dictionary";
		if (cuda->query->cols[c].travel == TRAVEL_MATRIX)
			return "matrices";
	}
	return NULL;
}

/* A constant as a register has it. */
static uint16
constant_operand(Resident *r, int col)
{
	const ColumnSpec *spec = &r->cuda->spec->cols[col];
	Datum		value = r->rows->constants[col];
	union
	{
		int8		i8;
		int16		i16;
		int32		i32;
		int64		i64;
		uint32		bits32;
		gpuagg_i128 dec;
	}			u = {0};

	if (r->rows->constant_nulls[col])
		return expr_program_constant(r->program, 0, true);
	if (spec->type == COLUMN_DATUM)
		return expr_program_refuse(r->program, "values of a type that the GPU does not have");
	if (!column_store(spec->type, spec->scale, &u, 0, value))
		return expr_program_refuse(r->program, "a constant that the GPU does not have");
	switch (spec->type)
	{
		case COLUMN_I8:
			return expr_program_constant(r->program, u.i8, false);
		case COLUMN_I16:
			return expr_program_constant(r->program, u.i16, false);
		case COLUMN_I32:
		case COLUMN_U32:
			return expr_program_constant(r->program, u.i32, false);
		case COLUMN_F32:
			return expr_program_constant(r->program, u.bits32, false);
		case COLUMN_DEC:
			if (u.dec != (int64) u.dec)
				return expr_program_refuse(r->program, "a constant that the GPU does not have");
			return expr_program_constant(r->program, (int64) u.dec, false);
		default:
			return expr_program_constant(r->program, u.i64, false);
	}
}

/* Translates conditions and what the query reads. */
static void
translate(Resident *r)
{
	CudaQuery  *query = r->cuda->query;
	FeedResident *rows = r->rows;
	ListCell   *lc;

	for (int q = 0; q < rows->nquals; q++)
		expr_program_filter(r->program, rows->quals[q]);
	foreach(lc, rows->checks)
		expr_program_check(r->program, lfirst(lc));
	for (int c = 0; c < query->ncols; c++)
	{
		int			col = query->cols[c].col;
		const ColumnSpec *spec = &r->cuda->spec->cols[col];
		const ExprRoot *root = rows->outputs[col];

		if (root == NULL)
			r->inputs[c] = constant_operand(r, col);
		else if (root->vec && (root->vec->type != spec->type || root->vec->scale != spec->scale))
			expr_program_refuse(r->program, "values in another form than the aggregate reads");
		else
			r->inputs[c] = expr_program_root(r->program, root);
	}
	for (int s = 0; s < r->program->nstored; s++)
		r->chunk[s] = rows->slots[r->program->stored[s].attno - 1];
}

/* ---- which ranges ------------------------------------------------------------ */

/* Can the GPU have the chunk as the program loads it? */
static bool
chunk_suits(const CacheChunk *chunk, const ExprStored *stored)
{
	if (chunk->type != stored->type || chunk->scale != stored->scale || chunk->nexceptions > 0)
		return false;
	if (!chunk->has_bounds)
		return chunk->nnulls == chunk->nrows;
	if (column_is_float(chunk->type))
		return isfinite(chunk->least.number) && isfinite(chunk->greatest.number);
	return true;
}

/* Bounds of integers as a register has them. */
static ExprInterval
chunk_interval(const CacheChunk *chunk)
{
	int64		min = chunk->least.integer;
	int64		max = chunk->greatest.integer;

	/* without a sign: those that are below zero with one are above the others */
	if (chunk->type == COLUMN_U32 && max > PG_INT32_MAX)
	{
		if (min <= PG_INT32_MAX)
			return (ExprInterval) {PG_INT32_MIN, PG_INT32_MAX};
		min = (int32) min;
		max = (int32) max;
	}
	return (ExprInterval) {min, max};
}

static void
learn(Known *known, const CacheChunk *chunk)
{
	bool		isfloat = column_is_float(chunk->type);

	known->nulls |= chunk->nnulls > 0;
	if (!chunk->has_bounds)
		return;
	if (isfloat)
	{
		known->least = known->any ? Min(known->least, chunk->least.number) : chunk->least.number;
		known->greatest = known->any ? Max(known->greatest, chunk->greatest.number) : chunk->greatest.number;
	}
	else
	{
		ExprInterval i = chunk_interval(chunk);

		known->integers.min = known->any ? Min(known->integers.min, i.min) : i.min;
		known->integers.max = known->any ? Max(known->integers.max, i.max) : i.max;
	}
	known->any = true;
}

/* ResidentAccept */
static bool
accept_chunks(void *arg, const CacheChunk *const *chunks)
{
	Resident   *r = arg;

	for (int s = 0; s < r->program->nstored; s++)
		if (!chunk_suits(chunks[r->chunk[s]], &r->program->stored[s]))
			return false;
	for (int s = 0; s < r->program->nstored; s++)
		learn(&r->known[s], chunks[r->chunk[s]]);
	return true;
}

/* ---- what is sent ------------------------------------------------------------ */

static void
find_nulls(const Resident *r, bool *nulls)
{
	uint32		stored = 0;

	for (int s = 0; s < r->program->nstored; s++)
		stored |= (uint32) r->known[s].nulls << s;
	expr_program_nulls(r->program, stored, nulls);
}

static bool
may_be_null(const Resident *r, const bool *nulls, uint16 operand)
{
	return operand >= VECTOR_CONSTANT ?
		r->program->flat.constants[operand - VECTOR_CONSTANT].state == VECTOR_NULL : nulls[operand];
}

/* Floats: those that might overflow a sum, or a -0 in an extreme, are untold, unless the column has none. */
static uint16
check_floats(Resident *r, const CudaColumn *col, uint16 a, ColumnType type)
{
	int			s = expr_program_stored(r->program, a);
	double		safe = col->safe > 0 ? col->safe : HUGE_VAL;
	bool		zeros = col->extreme;
	bool		large = col->safe > 0;
	int64		bits;

	if (s >= 0)
	{
		const Known *k = &r->known[s];

		zeros &= k->any && k->least <= 0 && k->greatest >= 0;
		large &= k->any && Max(fabs(k->least), fabs(k->greatest)) >= safe;
	}
	if (!zeros && !large)
		return a;
	memcpy(&bits, &safe, sizeof(bits));
	return expr_program_emit(r->program, type == COLUMN_F32 ? VECTOR_F32_BELOW : VECTOR_F64_BELOW, zeros, a,
							 expr_program_constant(r->program, bits, false), 0);
}

/* A column's values in the form of its travel; *wire: their type. */
static uint16
convert(Resident *r, int c, bool maybe_null, WireType *wire)
{
	const CudaColumn *col = &r->cuda->query->cols[c];
	ColumnType	type = r->cuda->spec->cols[col->col].type;
	uint16		a = r->inputs[c];
	bool		as_double = col->travel == TRAVEL_VALUES && col->type == WIRE_F64 && column_is_integer(type);

	*wire = col->type;
	switch (col->travel)
	{
		case TRAVEL_PRESENCE:
			/* what is computed may be untold */
			if (!maybe_null && (a >= VECTOR_CONSTANT || expr_program_stored(r->program, a) >= 0))
				return expr_program_constant(r->program, 1, false);
			return expr_program_emit(r->program, VECTOR_PRESENCE, 0, a, 0, 0);
		case TRAVEL_FILTER:
			return expr_program_emit(r->program, VECTOR_IS_TRUE, 0, a, 0, 0);
		case TRAVEL_KEY_CODES:
		case TRAVEL_VALUE_CODES:
			return expr_program_emit(r->program, type == COLUMN_F32 ? VECTOR_F32_CODE : VECTOR_F64_CODE,
									 col->travel == TRAVEL_KEY_CODES, a, 0, 0);
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
		out->type = r->program->stored[s].type == COLUMN_DEC ? WIRE_I64 :
			cuda_native_type(r->program->stored[s].type);
	}
	r->wire.nstored = r->program->nstored;
}

/* Describes the query over the collected rows; false: it is refused after all. */
static bool
describe(Resident *r)
{
	CudaQuery  *query = r->cuda->query;
	ExprInterval intervals[WIRE_MAX_STORED_COLS];
	bool		nulls[VECTOR_MAX_INSTRUCTIONS];
	bool		input_null[WIRE_MAX_COLS];

	expr_program_settle(r->program);
	find_nulls(r, nulls);
	for (int c = 0; c < query->ncols; c++)
		input_null[c] = may_be_null(r, nulls, r->inputs[c]);
	for (int c = 0; c < query->ncols; c++)
	{
		WireType	type;

		r->outputs[c] = convert(r, c, input_null[c], &type);
		r->wire.types[c] = type;
	}
	if (r->program->refusal)
		return false;
	for (int s = 0; s < r->program->nstored; s++)
		intervals[s] = r->known[s].any ? r->known[s].integers : (ExprInterval) {1, 0};
	for (int k = 0; k < r->cuda->spec->nkeys; k++)
	{
		int			c = query->keycol[k];
		ExprInterval i = expr_program_interval(r->program, intervals, r->outputs[c],
											   r->cuda->spec->cols[query->cols[c].col].type);

		r->wire.key_min[k] = i.min;
		r->wire.key_max[k] = i.max;
		if (input_null[c] && !query->wire->keys[k].nullable)
			expr_program_refuse(r->program, "NULLs in keys that have no room for them");
	}
	find_nulls(r, nulls);
	for (int c = 0; c < query->ncols; c++)
		if (may_be_null(r, nulls, r->outputs[c]))
			r->wire.nullable |= UINT64CONST(1) << c;
	if (!expr_program_finish(r->program, &r->wire.program, r->outputs, query->ncols))
		return false;
	for (int c = 0; c < query->ncols; c++)
		r->wire.cols[c] = r->outputs[c];
	r->wire.ncols = query->ncols;
	r->wire.table.id = r->rows->table;
	describe_stored(r);
	return true;
}

/* ---- uploads ----------------------------------------------------------------- */

typedef struct Upload
{
	Resident   *r;
	int			buffer;			/* to be filled next */
	int			npending;
	int			pending[MAX_BUFFERS];	/* stored column that is in each buffer */
} Upload;

/* Waits for the oldest answer. */
static bool
await_stored(Upload *up)
{
	CudaEngine *cuda = up->r->cuda;
	int			buffers = cuda->client->welcome.buffers;
	int			oldest = (up->buffer + buffers - up->npending) % buffers;
	WireStored	stored;

	if (!client_receive(cuda->client, MESSAGE_STORED, &stored, sizeof(stored)))
		return false;
	up->npending--;
	if (stored.kept == 0)
		up->r->refused[up->pending[oldest]] = true;
	return true;
}

/* Decodes a chunk into a buffer; sets what the message says of it. */
static void
decode(const CacheChunk *chunk, const ExprStored *stored, char *buffer, WireStore *out)
{
	int			width = stored->type == COLUMN_DEC ? sizeof(int64) : column_width(stored->type);
	uint64	   *bits;
	gpuagg_i128 wide[PIECE];
	uint8		state[PIECE];
	bool		nulls = false;

	out->values = 0;
	out->validity = wire_align((size_t) chunk->nrows * width);
	bits = (uint64 *) (buffer + out->validity);
	memset(bits, 0xff, wire_bitmap_bytes(chunk->nrows));
	for (uint32 at = 0; at < chunk->nrows; at += PIECE)
	{
		int			n = Min(PIECE, chunk->nrows - at);
		char	   *to = buffer + (size_t) at * width;
		bool		all;

		CHECK_FOR_INTERRUPTS();
		all = chunk_read(chunk, at, n, stored->type, stored->scale, stored->type == COLUMN_DEC ? (void *) wide : to,
						 state);
		for (int i = 0; stored->type == COLUMN_DEC && i < n; i++)
			((int64 *) to)[i] = (int64) wide[i];
		for (int i = 0; !all && i < n; i++)
			if (state[i] != VEC_VALUE)
			{
				bitmap_clear(bits, at + i);
				nulls = true;
			}
	}
	if (!nulls)
		out->validity = WIRE_NO_ARRAY;
}

/* Sends one column of the range of a run; false: the session is lost.  *there: it is still in the cache. */
static bool
send_column(Upload *up, const WireRun *run, int s, bool *there)
{
	Resident   *r = up->r;
	CudaEngine *cuda = r->cuda;
	CachePin   *pin = feed_resident_pin(r->rows, run);
	WireStore	store = {0};
	const CacheChunk *chunk;

	*there = pin != NULL;
	if (pin == NULL)
		return true;
	chunk = pin->chunks[r->chunk[s]];
	store.table = r->wire.table;
	store.stamp = run->stamp;
	store.range = run->range;
	store.nrows = chunk->nrows;
	store.column = r->wire.stored[s];
	store.buffer = up->buffer;
	decode(chunk, &r->program->stored[s],
		   cuda->client->arena + (size_t) up->buffer * cuda->client->welcome.buffer_bytes, &store);
	cuda->uploaded += (size_t) chunk->nrows * wire_width(store.column.type);
	cache_unpin(pin);
	if (!client_send(cuda->client, MESSAGE_STORE, &store, sizeof(store)))
		return false;
	up->pending[up->buffer] = s;
	up->buffer = (up->buffer + 1) % cuda->client->welcome.buffers;
	up->npending++;
	/* the next buffer must be free */
	return up->npending < cuda->client->welcome.buffers || await_stored(up);
}

/*
 * Uploads the columns that are lacking (a bit a stored column, for each run), and clears keep[] of runs of which
 * one could not be; false: the session is lost.
 */
static bool
upload(Resident *r, const uint64 *lacking, bool *keep)
{
	Upload		up = {r};
	bool		there = true;

	for (uint32 i = 0; i < r->rows->nruns; i++)
	{
		const WireRun *run = &r->rows->runs[i];
		bool		again = i > 0 && run->range == run[-1].range;

		CHECK_FOR_INTERRUPTS();
		if (again)
			keep[i] = keep[i - 1];
		for (int s = 0; !again && s < r->program->nstored; s++)
		{
			if (!(lacking[i] >> s & 1))
				continue;
			if (r->refused[s])
				keep[i] = false;
			else if (!send_column(&up, run, s, &there))
				return false;
			else
				keep[i] &= there;
		}
	}
	while (up.npending > 0)
		if (!await_stored(&up))
			return false;
	return true;
}

/* ---- the rows ---------------------------------------------------------------- */

/* What the server says to rows that it has not taken. */
typedef struct Lacking
{
	uint64		any;			/* of all of these: */
	uint64	   *runs;			/* stored columns that are lacking, a bit each */
	uint64	   *spans;			/* the same; all bits: the server does not know the span's list */
} Lacking;

/* Sends RESIDENT; the spans are its end. */
static bool
send_resident(Resident *r)
{
	Size		bytes = sizeof(WireResident) + r->rows->nspans * sizeof(WireSpan);
	char	   *message = palloc(bytes);
	bool		sent;

	memcpy(message, &r->wire, sizeof(WireResident));
	if (r->rows->nspans > 0)
		memcpy(message + sizeof(WireResident), r->rows->spans, r->rows->nspans * sizeof(WireSpan));
	sent = client_send(r->cuda->client, MESSAGE_RESIDENT, message, bytes);
	pfree(message);
	return sent;
}

/* Asks for the rows; false: the session is lost.  Else *taken, or what is lacking. */
static bool
ask(Resident *r, bool *taken, Lacking *lacking)
{
	Client	   *client = r->cuda->client;
	FeedResident *rows = r->rows;
	size_t		bytes = rows->nruns * sizeof(WireRun);
	WireResided resided;

	if (bytes > 0)
		memcpy(client->arena, rows->runs, bytes);
	r->wire.buffer = 0;
	r->wire.nruns = rows->nruns;
	r->wire.nspans = rows->nspans;
	if (!send_resident(r) || !client_receive(client, MESSAGE_RESIDED, &resided, sizeof(resided)))
		return false;
	*taken = resided.taken != 0;
	if (*taken)
		return true;
	for (int s = 0; s < r->program->nstored; s++)
		r->refused[s] |= resided.refused >> s & 1;
	/* a copy, as the buffer is used for uploads */
	lacking->runs = palloc(((Size) rows->nruns + rows->nspans) * sizeof(uint64));
	lacking->spans = lacking->runs + rows->nruns;
	memcpy(lacking->runs, client->arena + wire_align(bytes), ((Size) rows->nruns + rows->nspans) * sizeof(uint64));
	lacking->any = 0;
	for (uint32 i = 0; i < rows->nruns + rows->nspans; i++)
		lacking->any |= lacking->runs[i];
	return true;
}

/* Lists the runs of spans that the server does not have as a whole; false: it has all. */
static bool
expand(Resident *r, const Lacking *lacking)
{
	FeedResident *rows = r->rows;
	bool	   *of = palloc0(rows->nspans + 1);
	bool		any = false;

	for (uint32 i = 0; i < rows->nspans; i++)
		any |= of[i] = lacking->spans[i] != 0;
	if (any)
		feed_resident_expand(rows, of);
	pfree(of);
	return any;
}

/* Has the server reduce the collected rows, all or those that it can have; the others are given back. */
static EngineStatus
reduce(Resident *r)
{
	CudaEngine *cuda = r->cuda;
	FeedResident *rows = r->rows;
	bool		taken = false;

	instr_time	since = cuda_clock();

	for (int attempt = 1; attempt <= ATTEMPTS && rows->nruns + rows->nspans > 0; attempt++)
	{
		Lacking		lacking;
		bool	   *keep;

		if (!ask(r, &taken, &lacking))
			return cuda_fail_client(cuda);
		if (taken)
			break;
		cuda->not_resident = lacking.any ? "no room for copies" : "no room on the device";
		/* spans become runs, of which more can be said */
		if (expand(r, &lacking))
		{
			attempt--;
			continue;
		}
		if (attempt == 1)
			feed_resident_refute(rows, lacking.runs);
		keep = palloc(rows->nruns + 1);
		for (uint32 i = 0; i < rows->nruns; i++)
			keep[i] = attempt == 1 || lacking.runs[i] == 0;
		/* no room to reduce the rows, or what was there does not stay */
		if (lacking.any == 0 || attempt == ATTEMPTS)
		{
			memset(keep, false, rows->nruns);
			feed_resident_keep(rows, keep, false);
			break;
		}
		if (attempt == 1 && !upload(r, lacking.runs, keep))
			return cuda_fail_client(cuda);
		feed_resident_keep(rows, keep, true);
	}
	cuda_add_time(&cuda->times.resident_ms, since);
	if (taken)
	{
		cuda->not_resident = NULL;
		cuda->rows_given += rows->nrows;
		cuda->rows_resident += rows->nrows;
		feed_resident_taken(rows);
	}
	return ENGINE_OK;
}

EngineStatus
cuda_take_resident(Engine *engine, Feed *feed)
{
	CudaEngine *cuda = (CudaEngine *) engine;
	EngineStatus status = ENGINE_OK;
	FeedResident *rows;
	instr_time	since;
	MemoryContext cxt,
				old;
	Resident   *r;

	if (cuda->query == NULL || feed->ops->resident == NULL || (cuda->not_resident = refusal(cuda)) != NULL)
		return ENGINE_OK;
	if (cuda_ensure_open(cuda, NULL) != ENGINE_OK)
		return ENGINE_FAILED;
	rows = feed->ops->resident(feed, &cuda->not_resident);
	if (rows == NULL)
		return ENGINE_OK;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "GPU resident rows", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	r = palloc0(sizeof(Resident));
	r->cuda = cuda;
	r->rows = rows;
	r->program = expr_program_create(rows->set);
	translate(r);
	if (r->program->refusal == NULL)
	{
		since = cuda_clock();
		feed_resident_collect(rows, accept_chunks, r);
		cuda_add_time(&cuda->times.proof_ms, since);
		cuda->not_resident = "no cached rows";
		if (rows->nruns + rows->nspans > 0 && describe(r))
			status = reduce(r);
		else
			feed_resident_keep(rows, palloc0(rows->nruns + 1), false);
	}
	if (r->program->refusal)
		cuda->not_resident = r->program->refusal;
	feed_resident_free(rows);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return status;
}

/*
 * sorted.c
 *	  Rows of the CUDA engine that arrive grouped. Groups leave in their order, each when it is
 *	  complete.
 *
 * Equal keys are adjacent. So the server needs only the boundaries between them. They are found
 * here, as the CPU engine finds them: rows travel with the number of their run of equal keys, and
 * the keys stay here. A buffer of the arena is one query of the server, which reduces the runs as
 * segments and returns their states by number. Meanwhile the next buffer is filled.
 *
 * The first and the last group of a buffer may continue in its neighbours. These groups go to the
 * CPU fallback, a CPU engine for grouped input, which combines them. It also takes, at their place
 * among the others, rows that the server cannot take, and rows that it has reduced with an error
 * that may depend on the order of rows.
 *
 * If the server is lost or has no room, the CPU fallback takes the rows that are not answered,
 * which are saved before the arena goes, and all later rows. So nothing fails after the first row:
 * groups that have left cannot be taken back.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine_cpu/engine_cpu.h"
#include "engine_cuda/cuda_engine.h"
#include "groups/record.h"
#include "groups/table.h"

/* Number of buffers for rows. The next buffer is for groups. */
#define ROW_BUFFERS 2
#define GROUP_BUFFER ROW_BUFFERS

/*
 * Rows of the first buffer that is sent. Each further one has twice as many: a LIMIT may need few
 * groups.
 */
#define FIRST_ROWS 4096

/* Most groups that are returned at a time. */
#define LEAVING_GROUPS 1024

struct CudaSorted
{
	AggSpec keys;                   /* the query's keys, without aggregates */
	GroupTable *table[ROW_BUFFERS]; /* keys of each buffer's runs */
	bool begun;                     /* cuda_sorted_begin() was called for the current session */
	uint32 least_room;              /* rows of a batch: least room for another batch */
	uint32 most_rows;               /* limit of rows for the buffer being filled */
	uint32 most_groups;             /* limit of groups for any buffer */
	bool used;                      /* the server has had a batch since OPENED */
	bool reset;                     /* RESET was sent with the last batch */
	int sent;                       /* buffer that is sent but not answered; or -1 */
	bool filled;                    /* the buffer cuda->buffer is to be sent */
	bool lost;                      /* the CPU fallback takes all later rows */
	bool ending;                    /* there are no more rows */
	int leaving;                    /* buffer whose groups are being returned; or -1 */
	WireGroups groups;              /* the groups of that buffer */
	uint32 next;                    /* the next one to return */
	int back[ROW_BUFFERS];          /* buffers whose rows go to the CPU fallback */
	int nback;
	uint32 back_row;          /* next row of the first one of them */
	char *saved[ROW_BUFFERS]; /* content of the buffers, if the arena is gone; or NULL */
	MemoryContext back_cxt;   /* for rows that are read back */
	MemoryContext held_cxt;   /* for held_batch */
	Batch held_batch;         /* for the CPU fallback, after the rows of all buffers */
	bool has_held_batch;
	GroupBatch out; /* room for LEAVING_GROUPS */
	uint64 runs;    /* number of runs that the server has reduced, and of their rows */
	uint64 run_rows;
	size_t mem_peak;
	char why[128]; /* why the server takes no more rows */
};

/* ---- opening ---- */

CudaSorted *
cuda_sorted_create(const CudaEngine *cuda)
{
	CudaSorted *sorted = palloc0(sizeof(CudaSorted));

	sorted->keys = *cuda->spec;
	sorted->keys.nslots = sorted->keys.nfallbacks = 0;
	for (int b = 0; b < ROW_BUFFERS; b++)
		sorted->table[b] = group_table_create(cuda->env.cxt, &sorted->keys, TABLE_SEGMENTED,
											  Max(cuda->env.batch_rows, 256));
	group_batch_init(&sorted->out, cuda->spec, LEAVING_GROUPS, false);
	sorted->back_cxt =
		AllocSetContextCreate(cuda->env.cxt, "GPU rows read back", ALLOCSET_DEFAULT_SIZES);
	sorted->held_cxt =
		AllocSetContextCreate(cuda->env.cxt, "GPU rows held back", ALLOCSET_DEFAULT_SIZES);
	sorted->sent = sorted->leaving = -1;
	return sorted;
}

/* Client.failing: saves the rows of the buffers before the connection is closed. */
static void
save_rows(void *arg)
{
	CudaEngine *cuda = arg;
	CudaSorted *sorted = cuda->sorted;
	const Client *client = cuda->client;

	/* a server may have fewer buffers than are used here: then no buffer had rows */
	if (client->arena == NULL || client->welcome.buffers <= GROUP_BUFFER)
		return;
	for (int b = 0; b < ROW_BUFFERS; b++)
	{
		if (sorted->saved[b] == NULL)
			sorted->saved[b] = MemoryContextAlloc(cuda->env.cxt, cuda->query->buffer_bytes + 1);
		memcpy(sorted->saved[b], client->arena + (size_t) b * client->welcome.buffer_bytes,
			   cuda->query->buffer_bytes);
	}
}

const char *
cuda_sorted_begin(CudaEngine *cuda)
{
	CudaSorted *sorted = cuda->sorted;
	const CudaQuery *query = cuda->query;
	const WireWelcome *welcome = &cuda->client->welcome;

	sorted->begun = true;
	sorted->used = false;
	sorted->least_room = cuda->env.batch_rows;
	sorted->most_groups = (welcome->buffer_bytes - (query->wire->nslots + 1) * WIRE_ALIGN) /
		wire_group_bytes(query->wire);
	sorted->most_rows = Min(Max(FIRST_ROWS, sorted->least_room), query->buffer_rows);
	cuda->client->failing = save_rows;
	cuda->client->failing_arg = cuda;
	if (welcome->buffers <= GROUP_BUFFER || sorted->least_room > query->buffer_rows ||
		sorted->least_room > sorted->most_groups)
		return "rows too wide for groups that leave in order";
	return NULL;
}

/* ---- groups out ---- */

/* Fills in groups from .. from + n - 1 of the buffer whose groups are being returned. */
static void
make_groups(CudaEngine *cuda, uint32 from, int n, GroupBatch *out)
{
	CudaSorted *sorted = cuda->sorted;
	const GroupTable *table = sorted->table[sorted->leaving];
	const char *buffer =
		cuda->client->arena + (size_t) sorted->groups.buffer * cuda->client->welcome.buffer_bytes;
	MemoryContext old;

	MemoryContextReset(cuda->group_cxt);
	old = MemoryContextSwitchTo(cuda->group_cxt);
	out->ngroups = n;
	for (int k = 0; k < cuda->spec->nkeys; k++)
		group_key_datums(&table->keys, group_row(table, from), table->row_size, n, k, out->keys[k],
						 out->keynulls[k]);
	cuda_set_states(cuda, &sorted->groups, buffer, from, out);
	MemoryContextSwitchTo(old);
}

/* Gives a group to the CPU fallback, after all its other groups. */
static void
append_group(CudaEngine *cuda, uint32 group, bool closed)
{
	make_groups(cuda, group, 1, &cuda->sorted->out);
	cpu_append_groups(cuda_get_cpu_fallback(cuda), &cuda->sorted->out, closed);
}

/*
 * Returns the groups between the first and the last one. When all have been returned, gives the
 * last one to the CPU fallback and returns false.
 */
static bool
return_groups(CudaEngine *cuda, GroupBatch *out)
{
	CudaSorted *sorted = cuda->sorted;
	uint32 last = sorted->groups.n - 1;

	if (sorted->next < last)
	{
		make_groups(cuda, sorted->next, Min(LEAVING_GROUPS, last - sorted->next), &sorted->out);
		*out = sorted->out;
		sorted->next += out->ngroups;
		return true;
	}
	if (last > 0)
		append_group(cuda, last, false);
	sorted->leaving = -1;
	return false;
}

/* ---- rows to the CPU fallback ---- */

/* Updates the strategy that EXPLAIN shows. */
static void
note_strategy(CudaEngine *cuda)
{
	const CudaSorted *sorted = cuda->sorted;
	char *text = cuda->result.strategy;
	size_t size = sizeof(cuda->result.strategy);

	snprintf(text, size, "segmented (rows arrive grouped, %.1f in a run)",
			 sorted->run_rows / (double) Max(sorted->runs, 1));
	if (sorted->why[0] != '\0')
		snprintf(text + strlen(text), size - strlen(text), ", then on the CPU: %s", sorted->why);
}

/* Stops using the server. The rows of its buffers, if there are any, go to the CPU fallback. */
static void
stop_using_server(CudaEngine *cuda, const char *why)
{
	CudaSorted *sorted = cuda->sorted;

	ereport(DEBUG1, (errmsg_internal("gpuagg: rows are reduced on the CPU from here on: %s", why)));
	strlcpy(sorted->why, why, sizeof(sorted->why));
	sorted->lost = true;
	if (sorted->sent >= 0)
		sorted->back[sorted->nback++] = sorted->sent;
	if (sorted->filled)
		sorted->back[sorted->nback++] = cuda->buffer;
	sorted->sent = -1;
	sorted->filled = false;
	cuda->base.failure[0] = '\0';
	if (sorted->runs > 0)
		note_strategy(cuda);
}

/* The same if the connection is still open. */
static void
end_session_early(CudaEngine *cuda, const char *why)
{
	save_rows(cuda);
	cuda_end_session(cuda);
	stop_using_server(cuda, why);
}

/*
 * Returns whether the column was sent unchanged, as aggregates read it. Then each row's own value
 * is known: equal keys such as 0 and -0 may differ.
 */
static bool
was_sent(const CudaQuery *query, int c)
{
	for (int i = 0; i < query->ncols; i++)
		if (query->cols[i].col == c && query->cols[i].travel == TRAVEL_VALUES &&
			query->cols[i].type == cuda_native_type(query->spec->cols[c].type))
			return true;
	return false;
}

/* Restores the keys of rows that were read back. */
static void
restore_keys(const CudaEngine *cuda, const GroupTable *table, const int32 *runs, Batch *batch)
{
	for (int k = 0; k < cuda->spec->nkeys; k++)
	{
		Column *col = &batch->cols[cuda->spec->keys[k].col];

		if (was_sent(cuda->query, cuda->spec->keys[k].col))
			continue;
		col->values = palloc0((size_t) batch->nrows * column_width(col->type));
		col->validity = palloc0(BITMAP_WORDS(batch->nrows) * sizeof(uint64));
		for (int i = 0; i < batch->nrows; i++)
		{
			bool isnull;
			Datum value = group_key_datum(&table->keys, group_row(table, runs[i]), k, &isnull);

			if (isnull)
				continue;
			bitmap_set(col->validity, i);
			column_store(col->type, col->scale, col->values, i, value);
		}
	}
}

static void
add_to_cpu_fallback(CudaEngine *cuda, const Batch *batch)
{
	Engine *cpu_fallback = cuda_get_cpu_fallback(cuda);

	cuda->cpu_fallback_rows += batch->nrows;
	cpu_fallback->ops->add_batch(cpu_fallback, batch);
}

/* Gives some rows of the first of the buffers in back[] to the CPU fallback. */
static void
read_back_rows(CudaEngine *cuda)
{
	CudaSorted *sorted = cuda->sorted;
	int b = sorted->back[0];
	const WireBatch *wire = &cuda->sent[b];
	int most = Max(cuda->env.batch_rows / 64 * 64, 64);
	int n = Min(wire->nrows - sorted->back_row, most);
	const char *buffer = sorted->saved[b] ?
		sorted->saved[b] :
		cuda->client->arena + (size_t) b * cuda->client->welcome.buffer_bytes;
	const int32 *runs =
		(const int32 *) (buffer + wire->cols[cuda->query->keycol[0]].values) + sorted->back_row;
	MemoryContext old;
	Batch batch = {0};

	MemoryContextReset(sorted->back_cxt);
	old = MemoryContextSwitchTo(sorted->back_cxt);
	cuda_query_unfill(cuda->query, buffer, wire, sorted->back_row, n, &batch);
	restore_keys(cuda, sorted->table[b], runs, &batch);
	MemoryContextSwitchTo(old);
	cuda->rows_given -= n;
	add_to_cpu_fallback(cuda, &batch);
	sorted->back_row += n;
	if (sorted->back_row < wire->nrows)
		return;
	sorted->back_row = 0;
	sorted->nback--;
	memmove(sorted->back, sorted->back + 1, sorted->nback * sizeof(int));
}

/*
 * Holds a batch for the CPU fallback until the rows before it have left. The batch's memory stays
 * valid until the feed's next batch, except for what the feed has written into the arena, which is
 * copied.
 */
static void
hold_batch(CudaEngine *cuda, const Batch *batch)
{
	CudaSorted *sorted = cuda->sorted;
	const char *arena = cuda_has_session(cuda) ? cuda->client->arena : NULL;
	MemoryContext old;

	MemoryContextReset(sorted->held_cxt);
	old = MemoryContextSwitchTo(sorted->held_cxt);
	sorted->held_batch = *batch;
	sorted->held_batch.cols = palloc((batch->ncols + 1) * sizeof(Column));
	memcpy(sorted->held_batch.cols, batch->cols, batch->ncols * sizeof(Column));
	for (int c = 0; c < batch->ncols && arena; c++)
	{
		Column *col = &sorted->held_batch.cols[c];
		size_t bytes = (size_t) batch->nrows * column_width(col->type);
		const char *values = col->values;

		if (values < arena || values >= arena + cuda->client->welcome.arena_bytes)
			continue;
		col->values = palloc(bytes);
		memcpy(col->values, values, bytes);
	}
	MemoryContextSwitchTo(old);
	sorted->has_held_batch = true;
}

/* ---- a buffer to the server, and back ---- */

/* Ends the current buffer, which is then to be sent. */
static void
end_buffer(CudaEngine *cuda)
{
	CudaSorted *sorted = cuda->sorted;
	CudaColumn *run = &cuda->query->cols[cuda->query->keycol[0]];
	WireBatch *batch = &cuda->sent[cuda->buffer];

	run->min = 0;
	run->max = (int64) sorted->table[cuda->buffer]->ngroups - 1;
	cuda_query_describe(cuda->query, cuda->rows, batch);
	batch->buffer = cuda->buffer;
	sorted->filled = true;
}

/* Sends the current buffer, and turns to the other one. */
static void
send_buffer(CudaEngine *cuda)
{
	CudaSorted *sorted = cuda->sorted;
	Client *client = cuda->client;
	const WireBatch *batch = &cuda->sent[cuda->buffer];
	WireFinish finish = {.first = batch->key_max[0] + 1, .buffer = GROUP_BUFFER};

	sorted->reset = sorted->used;
	if ((sorted->reset && !client_send(client, MESSAGE_RESET, NULL, 0)) ||
		!client_send(client, MESSAGE_BATCH, batch, sizeof(*batch)) ||
		!client_send(client, MESSAGE_FINISH, &finish, sizeof(finish)))
	{
		stop_using_server(cuda, client->failure);
		return;
	}
	sorted->used = true;
	sorted->sent = cuda->buffer;
	sorted->filled = false;
	sorted->most_rows = Min(2 * sorted->most_rows, cuda->query->buffer_rows);
	cuda->batches++;
	cuda->buffer = (cuda->buffer + 1) % ROW_BUFFERS;
	cuda->rows = 0;
	group_table_reset(sorted->table[cuda->buffer]);
}

/* Returns whether these are the states of all n groups, within the buffer and in order. */
static bool
are_valid_groups(const CudaEngine *cuda, const WireGroups *groups, uint32 n)
{
	const int32 *numbers =
		(const int32 *) (cuda->client->arena +
						 (size_t) GROUP_BUFFER * cuda->client->welcome.buffer_bytes + groups->keys);

	if (groups->first != 0 || groups->n != n || groups->buffer != GROUP_BUFFER ||
		!cuda_groups_fit(cuda, groups))
		return false;
	for (uint32 g = 0; g < n; g++)
		if (numbers[g] != (int32) g)
			return false;
	return true;
}

/*
 * Receives the answer to a batch of n groups. *full: there was no room for it. Returns false if the
 * connection is lost.
 */
static bool
receive_answer(CudaEngine *cuda, uint32 n, WireFinished *result, bool *full)
{
	CudaSorted *sorted = cuda->sorted;
	Client *client = cuda->client;
	WireDone done;

	if ((sorted->reset && !client_receive(client, MESSAGE_OPENED, NULL, 0)) ||
		!client_receive(client, MESSAGE_DONE, &done, sizeof(done)) ||
		!client_receive(client, MESSAGE_FINISHED, result, sizeof(*result)))
		return false;
	*full = !done.taken;
	if (done.buffer != (uint32) sorted->sent || result->ngroups != (*full ? 0 : n))
		return client_fail(client, "the GPU server sent an invalid answer");
	if (!*full && !client_receive(client, MESSAGE_GROUPS, &sorted->groups, sizeof(sorted->groups)))
		return false;
	client_settle(client);
	if (*full)
		return true;
	return are_valid_groups(cuda, &sorted->groups, n) ||
		client_fail(client, "the GPU server sent an invalid answer");
}

static void
add_result(CudaEngine *cuda, const WireFinished *from)
{
	WireFinished *to = &cuda->result;

	to->bytes_in += from->bytes_in;
	to->copy_ms += from->copy_ms;
	to->kernel_ms += from->kernel_ms;
	to->server_ms += from->server_ms;
	to->memory_peak = Max(to->memory_peak, from->memory_peak);
	to->devices = Max(to->devices, from->devices);
	to->ngroups += from->ngroups;
}

/*
 * Waits for the answer to the buffer that was sent. Its groups can be returned then, or its rows go
 * to the CPU fallback.
 */
static void
receive_buffer(CudaEngine *cuda)
{
	CudaSorted *sorted = cuda->sorted;
	int b = sorted->sent;
	WireFinished result;
	bool full;
	instr_time since = cuda_clock();
	bool ok = receive_answer(cuda, (uint32) cuda->sent[b].key_max[0] + 1, &result, &full);

	cuda_add_time(&cuda->times.finish_ms, since);
	if (!ok)
	{
		stop_using_server(cuda, cuda->client->failure);
		return;
	}
	add_result(cuda, &result);
	if (full)
	{
		end_session_early(cuda, "the groups do not fit into GPU memory");
		return;
	}
	sorted->sent = -1;
	if (result.errors != 0)
	{
		/* a sum left its range; added in the order of rows it may not */
		sorted->back[sorted->nback++] = b;
		return;
	}
	sorted->runs += sorted->groups.n;
	sorted->run_rows += cuda->sent[b].nrows;
	note_strategy(cuda);
	cuda->bytes_from_device += sorted->groups.n * wire_group_bytes(cuda->query->wire);
	sorted->leaving = b;
	sorted->next = 1;
	append_group(cuda, 0, sorted->groups.n > 1);
}

/* ---- for the engine ---- */

/* Returns whether the CPU must reduce these rows; see rows.c. */
static bool
needs_cpu(CudaEngine *cuda, const Batch *batch)
{
	CudaQuery *query = cuda->query;
	bool negative;

	if ((uint32) batch->nrows > query->buffer_rows - cuda->rows ||
		cuda_query_unrepresentable(query, batch) || !cuda_query_split(query, batch))
		return true;
	/* of -0 and 0, core's minimum or maximum is the one that came last */
	cuda_query_note_negative_zero(query, batch);
	negative = query->negative_zero;
	query->negative_zero = false;
	return negative;
}

/* Appends rows to the buffer, with the numbers of their runs of equal keys. */
static void
fill_buffer(CudaEngine *cuda, const Batch *batch)
{
	CudaSorted *sorted = cuda->sorted;
	CudaQuery *query = cuda->query;
	GroupTable *table = sorted->table[cuda->buffer];
	char *buffer = cuda->client->arena + (size_t) cuda->buffer * cuda->client->welcome.buffer_bytes;
	int32 *out = (int32 *) (buffer + query->cols[query->keycol[0]].values) + cuda->rows;

	group_table_locate(table, batch);
	for (int r = 0; r < table->nruns; r++)
	{
		int32 number = table->run_at[r] / table->row_cells;

		for (uint32 i = table->run_start[r]; i < table->run_start[r + 1]; i++)
			out[i] = number;
	}
	cuda_query_fill(query, buffer, cuda->rows, batch, 0, batch->nrows);
	query->negative_zero = false;
	cuda->rows += batch->nrows;
	cuda->rows_given += batch->nrows;
}

/*
 * Returns whether the buffer must be sent: it has no room for another batch, or has reached its
 * limits.
 */
static bool
is_full(const CudaEngine *cuda, size_t memory)
{
	const CudaSorted *sorted = cuda->sorted;

	return cuda->rows + sorted->least_room > sorted->most_rows ||
		sorted->table[cuda->buffer]->ngroups + sorted->least_room > sorted->most_groups ||
		memory > cuda->env.mem_limit;
}

/* Opens the session unless it is open. */
static void
open_session(CudaEngine *cuda)
{
	CudaSorted *sorted = cuda->sorted;
	const char *why = NULL;

	if (!cuda_has_session(cuda))
		sorted->begun = false;
	if (cuda_ensure_open(cuda, NULL) != ENGINE_OK)
		why = cuda->base.failure[0] ? cuda->base.failure : "the session was lost";
	else if (!sorted->begun)
		why = cuda_sorted_begin(cuda);
	if (why)
	{
		stop_using_server(cuda, why);
		if (cuda_has_session(cuda))
			cuda_end_session(cuda);
		return;
	}
	if (!cuda->prepared)
		client_prepare(
			cuda->client, cuda->query->buffer_bytes,
			Min(floor(cuda->query->wire->est_rows / cuda->query->buffer_rows), ROW_BUFFERS));
	cuda->prepared = true;
}

EngineStatus
cuda_sorted_add(CudaEngine *cuda, const Batch *batch)
{
	CudaSorted *sorted = cuda->sorted;
	bool large;

	if (batch->nrows == 0)
		return ENGINE_OK;
	if (!sorted->lost)
		open_session(cuda);
	large = !sorted->lost && cuda_query_large(cuda->query, batch);
	if (sorted->lost || large || needs_cpu(cuda, batch))
	{
		if (cuda->rows > 0 && !sorted->lost)
			end_buffer(cuda);
		hold_batch(cuda, batch);
		/*
		 * Combining the server's states of later rows might overflow where adding the rows
		 * themselves does not.
		 */
		if (large)
			end_session_early(cuda, "floats are so large that overflow depends on row order");
	}
	else
	{
		size_t memory;

		fill_buffer(cuda, batch);
		memory = group_table_memory(sorted->table[0]) + group_table_memory(sorted->table[1]);
		sorted->mem_peak = Max(sorted->mem_peak, memory);
		if (is_full(cuda, memory))
			end_buffer(cuda);
	}
	return ENGINE_OK;
}

void
cuda_sorted_finish(CudaEngine *cuda)
{
	CudaSorted *sorted = cuda->sorted;

	if (cuda->rows > 0 && !sorted->lost)
		end_buffer(cuda);
	sorted->ending = true;
}

/* Ends the input of the CPU fallback: its last group can be returned. */
static void
end_rows(CudaEngine *cuda)
{
	cuda->finished = true;
	if (cuda->cpu_fallback)
		cuda->cpu_fallback->ops->finish(cuda->cpu_fallback);
}

/*
 * Takes the next step towards groups. Returns false if nothing can be done before the next batch.
 */
static bool
take_step(CudaEngine *cuda)
{
	CudaSorted *sorted = cuda->sorted;

	if (sorted->nback > 0)
		read_back_rows(cuda);
	else if (sorted->sent >= 0 && (sorted->filled || sorted->has_held_batch || sorted->ending))
		receive_buffer(cuda);
	else if (sorted->filled)
		send_buffer(cuda);
	else if (sorted->has_held_batch)
	{
		sorted->has_held_batch = false;
		add_to_cpu_fallback(cuda, &sorted->held_batch);
	}
	else if (sorted->ending && !cuda->finished)
		end_rows(cuda);
	else
		return false;
	return true;
}

bool
cuda_sorted_next(CudaEngine *cuda, GroupBatch *out)
{
	CudaSorted *sorted = cuda->sorted;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (cuda->cpu_fallback)
		{
			bool more = cuda->cpu_fallback->ops->next_groups(cuda->cpu_fallback, out);

			cuda->base.errors |= cuda->cpu_fallback->errors;
			if (more)
				return true;
		}
		if (sorted->leaving >= 0)
		{
			if (return_groups(cuda, out))
				return true;
			continue;
		}
	} while (sorted->leaving >= 0 || take_step(cuda));
	return false;
}

bool
cuda_sorted_reset(CudaEngine *cuda)
{
	CudaSorted *sorted = cuda->sorted;
	bool in_flight = sorted->sent >= 0;

	for (int b = 0; b < ROW_BUFFERS; b++)
	{
		group_table_reset(sorted->table[b]);
		if (sorted->saved[b])
			pfree(sorted->saved[b]);
		sorted->saved[b] = NULL;
	}
	MemoryContextReset(sorted->back_cxt);
	MemoryContextReset(sorted->held_cxt);
	sorted->sent = sorted->leaving = -1;
	sorted->nback = 0;
	sorted->back_row = 0;
	sorted->filled = sorted->has_held_batch = sorted->lost = sorted->ending = false;
	sorted->runs = sorted->run_rows = 0;
	sorted->why[0] = '\0';
	if (cuda_has_session(cuda))
		sorted->most_rows = Min(Max(FIRST_ROWS, sorted->least_room), cuda->query->buffer_rows);
	return in_flight;
}

size_t
cuda_sorted_memory(const CudaEngine *cuda)
{
	return cuda->sorted->mem_peak;
}

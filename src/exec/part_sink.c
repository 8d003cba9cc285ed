/*
 * part_sink.c
 *	  Writes the groups of a participant by partition; see part_sink.h.
 *
 * An engine may put its groups into shared memory as rows by itself.  Whatever it writes is
 * collected here in chunks of memory, as long as they are few.  At the end of a section the chunks
 * are copied to one segment of shared memory of just their size.  Otherwise they go to a shared
 * temporary file for each partition, and so does all that follows in the section.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "exec/part_sink.h"

/* Sizes of chunks: each one of a partition is twice as large as the one before. */
#define FIRST_CHUNK 1024
#define LAST_CHUNK (64 * 1024)

/* Bytes of a partition; they follow. */
typedef struct Chunk
{
	struct Chunk *next;
	size_t used;
	size_t size;
} Chunk;

/* A partition in the current section. */
struct PartOutput
{
	Chunk *first;
	Chunk *last;
	size_t bytes;  /* in chunks */
	BufFile *file; /* NULL: nothing was written to a file yet */
};

/* Returns the bytes of a chunk. */
static inline char *
chunk_data(Chunk *chunk)
{
	return (char *) (chunk + 1);
}

void
part_file_name(char *name, int exchange, int section, int participant, int part)
{
	snprintf(name, MAXPGPATH, "part%d.%d.%d.%d", exchange, section, participant, part);
}

int
part_segment(const GpuAggShared *shared, int exchange, int section)
{
	if (exchange == EXCHANGE_GROUPS)
		return shared->value_segments + section < shared->segments ?
			shared->value_segments + section :
			-1;
	return section == 0 && exchange <= shared->value_segments ? exchange - 1 : -1;
}

/* Writes to the file of a partition. */
static void
write_to_file(PartSink *sink, PartOutput *output, const void *data, size_t len)
{
	if (output->file == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(sink->cxt);
		char name[MAXPGPATH];

		part_file_name(name, sink->exchange, sink->section, sink->state->run.participant,
					   output - sink->outputs);
		output->file = BufFileCreateFileSet(&sink->state->shared->fileset.fs, name);
		MemoryContextSwitchTo(old);
	}
	/* older releases have no const here */
	BufFileWrite(output->file, unconstify(void *, data), len);
}

/* Frees the chunks of a partition. */
static void
free_chunks(PartOutput *output)
{
	while (output->first)
	{
		Chunk *chunk = output->first;

		output->first = chunk->next;
		pfree(chunk);
	}
	output->last = NULL;
	output->bytes = 0;
}

/* Moves the chunks of all partitions to files. */
static void
move_to_files(PartSink *sink)
{
	for (int p = 0; p < sink->base.nparts; p++)
	{
		PartOutput *output = &sink->outputs[p];

		CHECK_FOR_INTERRUPTS();
		for (Chunk *chunk = output->first; chunk; chunk = chunk->next)
			write_to_file(sink, output, chunk_data(chunk), chunk->used);
		free_chunks(output);
	}
	sink->allocated = 0;
	sink->in_files = true;
}

/* Adds a chunk to a partition.  Returns false if the chunks would take too much memory. */
static bool
add_chunk(PartSink *sink, PartOutput *output)
{
	size_t size = output->last ? Min(output->last->size * 2, LAST_CHUNK) : FIRST_CHUNK;
	Chunk *chunk;

	if (sink->shared + sink->allocated + size > sink->limit)
		return false;
	chunk = MemoryContextAlloc(sink->cxt, sizeof(Chunk) + size);
	chunk->next = NULL;
	chunk->used = 0;
	chunk->size = size;
	if (output->last)
		output->last->next = chunk;
	else
		output->first = chunk;
	output->last = chunk;
	sink->allocated += size;
	return true;
}

/* GroupSink.part: the next writes go to this partition. */
static void
sink_part(GroupSink *base, uint32 part)
{
	PartSink *sink = (PartSink *) base;

	sink->current = &sink->outputs[part];
}

/* GroupSink.write: writes to the chunks or the file of the current partition. */
static void
sink_write(GroupSink *base, const void *data, size_t len)
{
	PartSink *sink = (PartSink *) base;
	PartOutput *output = sink->current;
	const char *from = data;

	while (len > 0 && !sink->in_files)
	{
		Chunk *chunk = output->last;
		size_t n;

		if (chunk == NULL || chunk->used == chunk->size)
		{
			if (!add_chunk(sink, output))
				move_to_files(sink);
			continue;
		}
		n = Min(len, chunk->size - chunk->used);
		memcpy(chunk_data(chunk) + chunk->used, from, n);
		chunk->used += n;
		output->bytes += n;
		from += n;
		len -= n;
	}
	if (len > 0)
		write_to_file(sink, output, from, len);
}

void
part_sink_divide(GroupSink *sink, int nparts)
{
	sink->nparts = nparts;
	sink->part_shift = 64 - pg_leftmost_one_pos32(nparts);
}

char *
part_memory(GpuAggState *state, int exchange, int section, const uint32 *counts,
			const size_t *bytes, int nparts, size_t common, size_t expected)
{
	GpuAggShared *shared = state->shared;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	char *memory = shared_rows_create(
		parallel_rows(shared), &state->mapped, part_segment(shared, exchange, section),
		state->run.participant, counts, bytes, nparts, common, expected);

	MemoryContextSwitchTo(old);
	return memory;
}

/* Returns shared memory for the current section. */
static char *
section_memory(PartSink *sink, const uint32 *counts, const size_t *bytes, size_t common)
{
	return part_memory(sink->state, sink->exchange, sink->section, counts, bytes, sink->base.nparts,
					   common, 0);
}

/*
 * GroupSink.rows: returns shared memory for all of this participant's groups as rows, or NULL if
 * there is none.
 */
static char *
sink_rows(GroupSink *base, const uint32 *counts, const size_t *bytes, size_t common)
{
	return section_memory((PartSink *) base, counts, bytes, common);
}

/* Copies the chunks of all partitions to a segment.  Returns false if there is none. */
static bool
share_chunks(PartSink *sink)
{
	int nparts = sink->base.nparts;
	size_t *bytes = palloc(nparts * sizeof(size_t));
	char *to;

	for (int p = 0; p < nparts; p++)
		bytes[p] = sink->outputs[p].bytes;
	to = section_memory(sink, NULL, bytes, 0);
	pfree(bytes);
	if (to == NULL)
		return false;
	for (int p = 0; p < nparts; p++)
	{
		CHECK_FOR_INTERRUPTS();
		for (Chunk *chunk = sink->outputs[p].first; chunk; chunk = chunk->next)
		{
			memcpy(to, chunk_data(chunk), chunk->used);
			to += chunk->used;
		}
		free_chunks(&sink->outputs[p]);
	}
	sink->shared += sink->allocated;
	sink->allocated = 0;
	return true;
}

/* Ends the current section: what was written to it can be read after the barrier. */
static void
end_section(PartSink *sink)
{
	if (sink->allocated > 0 && !share_chunks(sink))
		move_to_files(sink);
	for (int p = 0; p < sink->base.nparts; p++)
	{
		PartOutput *output = &sink->outputs[p];

		if (output->file == NULL)
			continue;
		BufFileExportFileSet(output->file);
		BufFileClose(output->file);
		output->file = NULL;
	}
	sink->in_files = false;
}

/* GroupSink.next_section. */
static void
sink_next_section(GroupSink *base)
{
	PartSink *sink = (PartSink *) base;

	end_section(sink);
	sink->section++;
}

void
part_sink_begin(PartSink *sink, GpuAggState *state, int exchange, int nparts)
{
	memset(sink, 0, sizeof(*sink));
	sink->base.part = sink_part;
	sink->base.write = sink_write;
	sink->base.rows = sink_rows;
	sink->base.next_section = sink_next_section;
	part_sink_divide(&sink->base, nparts);
	sink->state = state;
	sink->exchange = exchange;
	sink->cxt = CurrentMemoryContext;
	/* as much as the buffers of files may take (parallel.c) */
	sink->limit = get_hash_memory_limit() / 4;
	sink->outputs = palloc0(nparts * sizeof(PartOutput));
}

void
part_sink_end(PartSink *sink)
{
	end_section(sink);
	pfree(sink->outputs);
}

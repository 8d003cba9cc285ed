/*
 * spool.c
 *	  Groups of the GPU server, kept in this process.
 *
 * A cursor gives its session back between two fetches, and keeps here the groups
 * that it has not returned, as they came: messages and their arrays.
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#include "engine_cuda/spool.h"

typedef struct Chunk
{
	WireGroups	groups;
	size_t		bytes;			/* that follow */
} Chunk;

/* Arrays are aligned as in the arena. */
#define CHUNK_BYTES(bytes) (sizeof(Chunk) + WIRE_ALIGN + (bytes))
#define CHUNK_BUFFER(chunk) ((char *) TYPEALIGN(WIRE_ALIGN, (uintptr_t) ((chunk) + 1)))

struct CudaSpool
{
	MemoryContext cxt;			/* of the chunks */
	size_t		mem_limit;
	size_t		mem_used;
	List	   *chunks;
	int			next;			/* of the list */
	BufFile    *file;			/* of what came when memory was full, or NULL */
	bool		rewound;
	Chunk	   *current;		/* the one returned last */
};

CudaSpool *
cuda_spool_create(MemoryContext cxt, size_t mem_limit)
{
	CudaSpool  *spool = MemoryContextAllocZero(cxt, sizeof(CudaSpool));

	spool->cxt = AllocSetContextCreate(cxt, "GPU groups kept", ALLOCSET_DEFAULT_SIZES);
	spool->mem_limit = mem_limit;
	return spool;
}

void
cuda_spool_free(CudaSpool *spool)
{
	if (spool->file)
		BufFileClose(spool->file);
	MemoryContextDelete(spool->cxt);
	pfree(spool);
}

void
cuda_spool_put(CudaSpool *spool, const WireGroups *groups, const char *buffer, size_t bytes)
{
	MemoryContext old = MemoryContextSwitchTo(spool->cxt);
	Chunk		head = {*groups, bytes};

	if (spool->file == NULL && spool->mem_used + bytes <= spool->mem_limit)
	{
		Chunk	   *chunk = palloc(CHUNK_BYTES(bytes));

		*chunk = head;
		memcpy(CHUNK_BUFFER(chunk), buffer, bytes);
		spool->chunks = lappend(spool->chunks, chunk);
		spool->mem_used += bytes;
	}
	else
	{
		if (spool->file == NULL)
			spool->file = BufFileCreateTemp(false);
		/* without const in older versions */
		BufFileWrite(spool->file, &head, sizeof(head));
		BufFileWrite(spool->file, unconstify(char *, buffer), bytes);
	}
	MemoryContextSwitchTo(old);
}

static void
read_file(CudaSpool *spool, void *data, size_t bytes)
{
	size_t		got = BufFileRead(spool->file, data, bytes);

	if (got != bytes)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read groups from a temporary file: read only %zu of %zu bytes",
						got, bytes)));
}

/* The next chunk of the file, or NULL at its end. */
static Chunk *
next_of_file(CudaSpool *spool)
{
	Chunk		head;
	Chunk	   *chunk;
	size_t		got;

	if (spool->file == NULL)
		return NULL;
	if (!spool->rewound && BufFileSeek(spool->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file")));
	spool->rewound = true;
	got = BufFileRead(spool->file, &head, 1);
	if (got == 0)
		return NULL;
	read_file(spool, (char *) &head + 1, sizeof(head) - 1);
	chunk = MemoryContextAlloc(spool->cxt, CHUNK_BYTES(head.bytes));
	*chunk = head;
	read_file(spool, CHUNK_BUFFER(chunk), head.bytes);
	return chunk;
}

bool
cuda_spool_get(CudaSpool *spool, WireGroups *groups, const char **buffer)
{
	if (spool->current)
		pfree(spool->current);
	if (spool->next < list_length(spool->chunks))
		spool->current = list_nth(spool->chunks, spool->next++);
	else
		spool->current = next_of_file(spool);
	if (spool->current == NULL)
		return false;
	*groups = spool->current->groups;
	*buffer = CHUNK_BUFFER(spool->current);
	return true;
}

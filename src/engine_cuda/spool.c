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

#include "common/compat.h"
#include "engine_cuda/spool.h"

typedef struct Chunk
{
	WireGroups groups;
	size_t bytes; /* that follow */
} Chunk;

/* Arrays are aligned as in the arena. */
#define CHUNK_BYTES(bytes) (sizeof(Chunk) + WIRE_ALIGN + (bytes))
#define CHUNK_BUFFER(chunk) ((char *) TYPEALIGN(WIRE_ALIGN, (uintptr_t) ((chunk) + 1)))

struct CudaSpool
{
	MemoryContext cxt; /* of the chunks */
	size_t mem_limit;
	size_t mem_used;
	List *chunks;
	int next;      /* of the list */
	BufFile *file; /* of what came when memory was full, or NULL */
	bool rewound;
	Chunk *current; /* the one returned last */
};

CudaSpool *
cuda_spool_create(MemoryContext cxt, size_t mem_limit)
{
	CudaSpool *spool = MemoryContextAllocZero(cxt, sizeof(CudaSpool));

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
	Chunk head = {*groups, bytes};

	if (spool->file == NULL && spool->mem_used + bytes <= spool->mem_limit)
	{
		Chunk *chunk = palloc(CHUNK_BYTES(bytes));

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

/* The next chunk of the file, or NULL at its end. */
static Chunk *
next_of_file(CudaSpool *spool)
{
	Chunk head;
	Chunk *chunk;

	if (spool->file == NULL)
		return NULL;
	if (!spool->rewound && BufFileSeek(spool->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not rewind a temporary file")));
	spool->rewound = true;
	if (!compat_read_file(spool->file, &head, sizeof(head), true))
		return NULL;
	chunk = MemoryContextAlloc(spool->cxt, CHUNK_BYTES(head.bytes));
	*chunk = head;
	compat_read_file(spool->file, CHUNK_BUFFER(chunk), head.bytes, false);
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

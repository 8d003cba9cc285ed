/*
 * spool.c
 *	  Spool: groups of the GPU server that are kept in this process.
 *
 * A cursor gives its session back between two fetches. It keeps the groups that it has not returned
 * here, in the form in which they came: messages and their arrays.
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
	size_t bytes; /* of the buffer's content, which follows */
} Chunk;

/* The content is aligned as in the arena. */
#define CHUNK_BYTES(bytes) (sizeof(Chunk) + WIRE_ALIGN + (bytes))
#define CHUNK_BUFFER(chunk) ((char *) TYPEALIGN(WIRE_ALIGN, (uintptr_t) ((chunk) + 1)))

struct CudaSpool
{
	MemoryContext cxt; /* for the chunks */
	size_t mem_limit;
	size_t mem_used;
	List *chunks;
	int next;      /* index in the list of the next one to return */
	BufFile *file; /* chunks that came when memory was full; or NULL */
	bool rewound;
	Chunk *current; /* the one that was returned last */
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
		/* the parameter is not const in older versions */
		BufFileWrite(spool->file, &head, sizeof(head));
		BufFileWrite(spool->file, unconstify(char *, buffer), bytes);
	}
	MemoryContextSwitchTo(old);
}

/* Returns the next chunk of the file; NULL at its end. */
static Chunk *
read_next_chunk(CudaSpool *spool)
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
		spool->current = read_next_chunk(spool);
	if (spool->current == NULL)
		return false;
	*groups = spool->current->groups;
	*buffer = CHUNK_BUFFER(spool->current);
	return true;
}

/*
 * palloc.c
 *	  Allocates each chunk of a memory context with malloc(), so that AddressSanitizer checks its
 *	  bounds. Only test/sanitize.sh builds it into the extension.
 *
 * palloc() allocates chunks from large blocks and reuses them after a reset. So AddressSanitizer
 * does not notice reads of freed memory or after the end of a chunk. When the extension is loaded,
 * this file replaces the methods of all AllocSet contexts of the process, including PostgreSQL's
 * own. Then each chunk is a separate allocation, freed by pfree(), or by reset or deletion of its
 * context. Chunks that are older keep PostgreSQL's methods.
 *
 * A chunk begins with the same 16 bytes as PostgreSQL's (in release 15: size and context). They are
 * preceded by the links of the context's list. The highest bit of the size marks separate chunks.
 *
 * Other major releases find the methods in a table, by bits of the chunk. There nothing is
 * replaced.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "nodes/memnodes.h"
#include "utils/memutils.h"

#if PG_VERSION_NUM / 10000 == 15

#define SEPARATE_CHUNK ((Size) 1 << 63)

typedef struct Chunk
{
	struct Chunk *next;
	struct Chunk *prev;
	Size size;             /* with the bit SEPARATE_CHUNK set */
	MemoryContext context; /* GetMemoryChunkContext reads this */
} Chunk;

/* The separate chunks of a context: an entry of a hash table by the context's address. */
typedef struct Head
{
	struct Head *next;
	MemoryContext context;
	Chunk *chunks;
} Head;

#define NCHAINS 4096
static Head *chains[NCHAINS];
static MemoryContextMethods original;

static Head **
find_head(MemoryContext context)
{
	Head **at = &chains[((uintptr_t) context >> 4) * 0x9e3779b97f4a7c15ULL >> 52];

	while (*at && (*at)->context != context)
		at = &(*at)->next;
	return at;
}

static bool
is_separate_chunk(void *pointer)
{
	return (((Chunk *) pointer)[-1].size & SEPARATE_CHUNK) != 0;
}

static void
link_chunk(Chunk *chunk)
{
	Head **head = find_head(chunk->context);

	if (*head == NULL)
	{
		*head = calloc(1, sizeof(Head));
		if (*head == NULL)
			abort();
		(*head)->context = chunk->context;
	}
	chunk->prev = NULL;
	chunk->next = (*head)->chunks;
	if (chunk->next)
		chunk->next->prev = chunk;
	(*head)->chunks = chunk;
}

static void
unlink_chunk(Chunk *chunk)
{
	if (chunk->next)
		chunk->next->prev = chunk->prev;
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		(*find_head(chunk->context))->chunks = chunk->next;
}

static void *
separate_alloc(MemoryContext context, Size size)
{
	Chunk *chunk = malloc(sizeof(Chunk) + size);

	if (chunk == NULL)
		return NULL;
	chunk->size = size | SEPARATE_CHUNK;
	chunk->context = context;
	link_chunk(chunk);
	context->mem_allocated += size;
	return chunk + 1;
}

static void
separate_free(MemoryContext context, void *pointer)
{
	Chunk *chunk = (Chunk *) pointer - 1;

	if (!is_separate_chunk(pointer))
	{
		original.free_p(context, pointer);
		return;
	}
	unlink_chunk(chunk);
	context->mem_allocated -= chunk->size & ~SEPARATE_CHUNK;
	free(chunk);
}

static void *
separate_realloc(MemoryContext context, void *pointer, Size size)
{
	Size before;
	void *moved;

	if (!is_separate_chunk(pointer))
		return original.realloc(context, pointer, size);
	before = ((Chunk *) pointer)[-1].size & ~SEPARATE_CHUNK;
	moved = separate_alloc(context, size);
	if (moved == NULL)
		return NULL;
	memcpy(moved, pointer, Min(before, size));
	separate_free(context, pointer);
	return moved;
}

static void
free_chunks(MemoryContext context)
{
	Head **at = find_head(context);
	Head *head = *at;

	if (head == NULL)
		return;
	while (head->chunks)
		separate_free(context, head->chunks + 1);
	*at = head->next;
	free(head);
}

static void
separate_reset(MemoryContext context)
{
	free_chunks(context);
	original.reset(context);
}

static void
separate_delete(MemoryContext context)
{
	free_chunks(context);
	original.delete_context(context);
}

static Size
separate_chunk_space(MemoryContext context, void *pointer)
{
	return is_separate_chunk(pointer) ?
		sizeof(Chunk) + (((Chunk *) pointer)[-1].size & ~SEPARATE_CHUNK) :
		original.get_chunk_space(context, pointer);
}

static __attribute__((constructor)) void
replace_methods(void)
{
	MemoryContextMethods *methods = (MemoryContextMethods *) TopMemoryContext->methods;
	uintptr_t page = sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t) methods / page * page;

	if (mprotect((void *) from, (uintptr_t) (methods + 1) - from, PROT_READ | PROT_WRITE) != 0)
		elog(FATAL, "could not replace the methods of memory contexts: %m");
	original = *methods;
	methods->alloc = separate_alloc;
	methods->free_p = separate_free;
	methods->realloc = separate_realloc;
	methods->reset = separate_reset;
	methods->delete_context = separate_delete;
	methods->get_chunk_space = separate_chunk_space;
}

#endif

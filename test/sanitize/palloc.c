/*
 * palloc.c
 *	  Memory contexts that AddressSanitizer sees into; part of test/sanitize.sh's build alone.
 *
 * palloc cuts chunks from large blocks and gives them out again after a reset, so a read of
 * freed memory, or beyond a chunk, looks sound to the sanitizer.  When the extension is loaded,
 * this file replaces the methods of all AllocSet contexts of the process, core's among them:
 * each chunk is a malloc of its own, and pfree, reset and deletion of its context free it.
 * Chunks made before that stay with core's methods.
 *
 * A chunk begins with the 16 bytes that core's has (PostgreSQL 15: its size, its context),
 * before them the links of the context's list.  Chunks that core made are told apart by the
 * highest bit of the size.
 *
 * Other major versions find the methods from the chunk, by a table; nothing is replaced there.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "nodes/memnodes.h"
#include "utils/memutils.h"

#if PG_VERSION_NUM / 10000 == 15

#define OURS ((Size) 1 << 63)

typedef struct Chunk
{
	struct Chunk *next;
	struct Chunk *prev;
	Size size;             /* | OURS */
	MemoryContext context; /* GetMemoryChunkContext reads this */
} Chunk;

/* The chunks of a context: a chain of a hash table by the context's address. */
typedef struct Head
{
	struct Head *next;
	MemoryContext context;
	Chunk *chunks;
} Head;

#define NCHAINS 4096
static Head *chains[NCHAINS];
static MemoryContextMethods core;

static Head **
find_head(MemoryContext context)
{
	Head **at = &chains[((uintptr_t) context >> 4) * 0x9e3779b97f4a7c15ULL >> 52];

	while (*at && (*at)->context != context)
		at = &(*at)->next;
	return at;
}

static bool
is_ours(void *pointer)
{
	return (((Chunk *) pointer)[-1].size & OURS) != 0;
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
our_alloc(MemoryContext context, Size size)
{
	Chunk *chunk = malloc(sizeof(Chunk) + size);

	if (chunk == NULL)
		return NULL;
	chunk->size = size | OURS;
	chunk->context = context;
	link_chunk(chunk);
	context->mem_allocated += size;
	return chunk + 1;
}

static void
our_free(MemoryContext context, void *pointer)
{
	Chunk *chunk = (Chunk *) pointer - 1;

	if (!is_ours(pointer))
	{
		core.free_p(context, pointer);
		return;
	}
	unlink_chunk(chunk);
	context->mem_allocated -= chunk->size & ~OURS;
	free(chunk);
}

static void *
our_realloc(MemoryContext context, void *pointer, Size size)
{
	Size before;
	void *moved;

	if (!is_ours(pointer))
		return core.realloc(context, pointer, size);
	before = ((Chunk *) pointer)[-1].size & ~OURS;
	moved = our_alloc(context, size);
	if (moved == NULL)
		return NULL;
	memcpy(moved, pointer, Min(before, size));
	our_free(context, pointer);
	return moved;
}

static void
free_all(MemoryContext context)
{
	Head **at = find_head(context);
	Head *head = *at;

	if (head == NULL)
		return;
	while (head->chunks)
		our_free(context, head->chunks + 1);
	*at = head->next;
	free(head);
}

static void
our_reset(MemoryContext context)
{
	free_all(context);
	core.reset(context);
}

static void
our_delete(MemoryContext context)
{
	free_all(context);
	core.delete_context(context);
}

static Size
our_chunk_space(MemoryContext context, void *pointer)
{
	return is_ours(pointer) ? sizeof(Chunk) + (((Chunk *) pointer)[-1].size & ~OURS) :
							  core.get_chunk_space(context, pointer);
}

static __attribute__((constructor)) void
replace_methods(void)
{
	MemoryContextMethods *methods = (MemoryContextMethods *) TopMemoryContext->methods;
	uintptr_t page = sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t) methods / page * page;

	if (mprotect((void *) from, (uintptr_t) (methods + 1) - from, PROT_READ | PROT_WRITE) != 0)
		elog(FATAL, "could not replace the methods of memory contexts: %m");
	core = *methods;
	methods->alloc = our_alloc;
	methods->free_p = our_free;
	methods->realloc = our_realloc;
	methods->reset = our_reset;
	methods->delete_context = our_delete;
	methods->get_chunk_space = our_chunk_space;
}

#endif

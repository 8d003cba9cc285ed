/*
 * huge_pages.c
 *	  Large pages of memory; see huge_pages.h.
 */
#include "postgres.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "utils/memutils.h"

#include "groups/huge_pages.h"

#define HUGE_PAGE ((size_t) 2 * 1024 * 1024)
#define CACHE_LINE 64

void
huge_pages_advise(char *start, size_t size)
{
#ifdef MADV_HUGEPAGE
	char *from = (char *) TYPEALIGN(HUGE_PAGE, (uintptr_t) start);

	if (size >= 2 * HUGE_PAGE)
		(void) madvise(from, (start + size - from) & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
}

/* Memory has the address of its allocation before it. */
#define ALLOCATION(memory) (((char **) (memory))[-1])

/* Returns the alignment of memory of this size. */
static size_t
alignment(size_t size)
{
	return size >= HUGE_PAGE ? HUGE_PAGE : CACHE_LINE;
}

/* Returns the bytes of an allocation for memory of this size. */
static size_t
allocation_size(size_t size)
{
	return size + sizeof(char *) + alignment(size);
}

/* Returns where memory of this size begins in its allocation. */
static char *
start_of(char *allocation, size_t size)
{
	return (char *) TYPEALIGN(alignment(size), (uintptr_t) (allocation + sizeof(char *)));
}

/* Completes memory, after what it keeps was moved there. */
static void *
complete(char *memory, char *allocation, size_t size)
{
	ALLOCATION(memory) = allocation;
#ifdef MADV_HUGEPAGE
	if (size >= HUGE_PAGE)
		(void) madvise(memory, size & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
	return memory;
}

void *
huge_pages_alloc(MemoryContext cxt, size_t size)
{
	char *allocation = MemoryContextAllocHuge(cxt, allocation_size(size));

	return complete(start_of(allocation, size), allocation, size);
}

void *
huge_pages_enlarge(void *memory, size_t used, size_t size)
{
	char *allocation = ALLOCATION(memory);
	size_t offset = (char *) memory - allocation;
	char *to;

	allocation = repalloc_huge(allocation, allocation_size(size));
	to = start_of(allocation, size);
	if (to != allocation + offset)
		memmove(to, allocation + offset, used);
	return complete(to, allocation, size);
}

void
huge_pages_free(void *memory)
{
	pfree(ALLOCATION(memory));
}

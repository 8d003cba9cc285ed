/*
 * huge_pages.c
 *	  Large pages of memory; see huge_pages.h.
 */
#include "postgres.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "groups/huge_pages.h"

#define HUGE_PAGE ((size_t) 2 * 1024 * 1024)

void
huge_pages_advise(char *start, size_t size)
{
#ifdef MADV_HUGEPAGE
	char *from = (char *) TYPEALIGN(HUGE_PAGE, (uintptr_t) start);

	if (size >= 2 * HUGE_PAGE)
		(void) madvise(from, (start + size - from) & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
}

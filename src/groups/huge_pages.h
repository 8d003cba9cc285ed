/*
 * huge_pages.h
 *	  Large pages of memory, which make random accesses to large arrays cheaper.
 */
#ifndef GPUAGG_HUGE_PAGES_H
#define GPUAGG_HUGE_PAGES_H

#include "postgres.h"

/* Lets the kernel use large pages for an allocation of this size.  Small ones stay as they are. */
extern void huge_pages_advise(char *start, size_t size);

/*
 * Allocates memory that lies on large pages if it is large. It is freed with its context, or by
 * huge_pages_free, not by pfree.
 */
extern void *huge_pages_alloc(MemoryContext cxt, size_t size);
extern void huge_pages_free(void *memory);
/* Enlarges such memory, of which the first `used` bytes are kept. Returns where it is now. */
extern void *huge_pages_enlarge(void *memory, size_t used, size_t size);

#endif /* GPUAGG_HUGE_PAGES_H */

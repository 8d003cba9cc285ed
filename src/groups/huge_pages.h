/*
 * huge_pages.h
 *	  Large pages of memory, which make random accesses to large arrays cheaper.
 */
#ifndef GPUAGG_HUGE_PAGES_H
#define GPUAGG_HUGE_PAGES_H

#include "postgres.h"

/* Lets the kernel use large pages for an allocation of this size.  Small ones stay as they are. */
extern void huge_pages_advise(char *start, size_t size);

#endif /* GPUAGG_HUGE_PAGES_H */

/*
 * backend.h
 *	  Stands in for a PostgreSQL backend. It serves tests of files that include PostgreSQL's
 *	  headers, but need only its memory and errors. Memory comes from malloc and belongs to no
 *	  context. An error ends the program.
 *
 * Include it after unit.h, which prints with the C library, and before all other headers.
 */
#ifndef GPUAGG_BACKEND_H
#define GPUAGG_BACKEND_H

#include "postgres.h"

#undef printf
#undef snprintf

void *
MemoryContextAlloc(MemoryContext cxt, Size size)
{
	(void) cxt;
	return memset(malloc(size + 1), 0x7e, size);
}

void *
MemoryContextAllocZero(MemoryContext cxt, Size size)
{
	(void) cxt;
	return calloc(1, size);
}

void *
MemoryContextAllocExtended(MemoryContext cxt, Size size, int flags)
{
	(void) flags;
	return MemoryContextAllocZero(cxt, size);
}

void *
repalloc(void *pointer, Size size)
{
	return realloc(pointer, size);
}

void
pfree(void *pointer)
{
	free(pointer);
}

/* No test looks at the sizes of compressed values and of values out of line. */
Size
toast_raw_datum_size(Datum value)
{
	(void) value;
	return 0;
}

bool
errstart(int level, const char *domain)
{
	(void) domain;
	return level >= ERROR;
}

bool
errstart_cold(int level, const char *domain)
{
	return errstart(level, domain);
}

int
errmsg_internal(const char *format, ...)
{
	fputs(format, stderr);
	return 0;
}

void
errfinish(const char *file, int line, const char *func)
{
	(void) file, (void) line, (void) func;
	abort();
}

#endif /* GPUAGG_BACKEND_H */

/*
 * cursor.h
 *	  Releases sessions of the GPU server between two fetches of a cursor.
 */
#ifndef GPUAGG_CURSOR_H
#define GPUAGG_CURSOR_H

/* Installs the executor hook that releases the sessions.  Called once, by _PG_init. */
extern void cursor_install_hooks(void);

#endif /* GPUAGG_CURSOR_H */

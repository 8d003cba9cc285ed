/*
 * cursor.h
 *	  Cursors hold no session of the GPU server while they rest.
 */
#ifndef GPUAGG_CURSOR_H
#define GPUAGG_CURSOR_H

extern void cursor_install_hooks(void);

#endif							/* GPUAGG_CURSOR_H */

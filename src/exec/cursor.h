/*
 * cursor.h
 *	  Between two fetches a cursor holds no session of the GPU server.
 */
#ifndef GPUAGG_CURSOR_H
#define GPUAGG_CURSOR_H

extern void cursor_install_hooks(void);

#endif /* GPUAGG_CURSOR_H */

/*
 * top_rows.h
 *	  The custom scan that drops rows below window functions and DISTINCT ON.
 */
#ifndef GPUAGG_EXEC_TOP_ROWS_H
#define GPUAGG_EXEC_TOP_ROWS_H

/* Registers the custom scan; called by _PG_init. */
extern void top_rows_register(void);

#endif /* GPUAGG_EXEC_TOP_ROWS_H */

/*
 * refusal.h
 *	  Reasons why a query was not taken, for EXPLAIN (VERBOSE).
 */
#ifndef GPUAGG_REFUSAL_H
#define GPUAGG_REFUSAL_H

/* While a query is planned: why the custom scan is not among its paths. */
extern void refusal_note(const char *why);

extern void refusal_install_hooks(void);

#endif							/* GPUAGG_REFUSAL_H */

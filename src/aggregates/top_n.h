/*
 * top_n.h
 *	  States of gpu_max_n and similar aggregates, for partial_row.c.
 */
#ifndef GPUAGG_TOP_N_H
#define GPUAGG_TOP_N_H

#include "postgres.h"

/* Returns the type of the elements of a state's result. */
extern Oid top_n_element_type(const void *state);

#endif /* GPUAGG_TOP_N_H */

/*
 * time_fields.h
 *	  date_trunc, extract and date_part in vector form; see expr_time.c.
 */
#ifndef GPUAGG_EXPR_TIME_H
#define GPUAGG_EXPR_TIME_H

#include "expr/expr.h"

/* The display scale of extract(field FROM ...), where it is fixed. */
extern bool expr_extract_scale(Oid funcid, List *args, int16 *scale);

/* Compiles a function of times; NULL where funcid is none, or cannot be compiled. */
extern Vec *expr_compile_time(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage);

#endif							/* GPUAGG_EXPR_TIME_H */

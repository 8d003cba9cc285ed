/*
 * analysis.h
 *	  What the nodes of an expression say about it, before anything is compiled or evaluated.
 *
 * All functions take expressions of the planner and of plans.  They read the catalogs, keep nothing
 * and raise no error of the expression itself.
 */
#ifndef GPUAGG_ANALYSIS_H
#define GPUAGG_ANALYSIS_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "nodes/params.h"
#include "nodes/primnodes.h"

#include "column_types.h"
#include "operators/vector_functions.h"

/* ---- can_fail.c ---------------------------------------------------------------- */

/*
 * Returns whether the expression can be evaluated for any row, also for one that core would not
 * evaluate it for: it raises no error and has no side effect.  params: the query's parameters, or
 * NULL if they are not known yet.
 */
extern bool expr_cannot_fail(Node *expr, ParamListInfo params);

/*
 * Returns why a join cannot be a lookup because of the keys of its outer side; NULL if it can.
 * Core evaluates no key after one that is NULL.
 */
extern const char *expr_join_keys_unsupported_reason(List *keys, ParamListInfo params);

/*
 * Returns whether strings of this collation are equal only if their bytes are equal.  False without
 * a collation: core may raise an error then.
 */
extern bool expr_collation_is_deterministic(Oid collation);

/* Returns whether the function is LIKE or NOT LIKE of text or bpchar. */
extern bool expr_is_like(Oid funcid);

/* ---- decimal_scales.c ---------------------------------------------------------- */

/* Decimals of a larger scale would have too few digits to the left of the point. */
#define EXPR_MAX_SCALE 24
/*
 * Scale of decimals that are quotients.  Core's quotients have a display scale of 16 or 20 in most
 * cases, and of 24 if they are below about 10^-4.  A smaller scale would send those rows to the
 * scalar fallback.  With this one, sums of quotients beyond about 10^4 are computed as numerics.
 */
#define EXPR_QUOTIENT_SCALE 24

/* Sets the least and the largest display scale of a numeric expression; false: not known. */
extern bool expr_decimal_scales(Node *expr, int16 *least, int16 *most);

/*
 * Returns whether all values of a numeric expression have the same display scale, except those that
 * a decimal cannot represent.  Sets that scale.
 */
extern bool expr_decimal_shape(Node *expr, int16 *scale);

/*
 * Returns the column type for the values of an expression.  A numeric expression over columns and
 * constants of known scales is COLUMN_DEC of *scale.
 */
extern ColumnType expr_column_type(Node *expr, int16 *scale);

/*
 * Returns the column type for values that core computes.  They need not conform to the
 * expression's typmod.
 */
extern ColumnType expr_value_type(Expr *expr, int16 *scale);

/* Sets the value of an int4 constant; false if the node is anything else, or NULL. */
extern bool expr_const_int4(Node *node, int32 *value);

/*
 * Sets the field that a constant names for date_trunc() or extract().  Returns false if it is not a
 * VectorField.
 */
extern bool expr_time_field(Node *arg, VectorField *field);

/* Returns whether this is extract(epoch FROM interval). */
extern bool expr_is_interval_epoch(Oid funcid, List *args);

/* ---- fixed.c -------------------------------------------------------------------- */

/*
 * Returns whether the results of an expression, or of a list of them, depend on its columns,
 * constants and some settings only: it has immutable functions of PostgreSQL's own, and no
 * parameters.  False also if its nodes and constants take more than *room bytes, which it reduces.
 */
extern bool expr_is_fixed(Node *expr, Size *room);

/*
 * Appends the text of an expression or a plan, without estimates and places in the query's text,
 * which say nothing about results.
 */
extern void expr_append_fixed(StringInfo buf, const void *node);
/* Appends the settings on which results of expr_is_fixed() may depend. */
extern void expr_append_settings(StringInfo buf);
/* Appends the bytes of a number. */
extern void expr_append_number(StringInfo buf, uint64 number);

#define EXPR_DIGEST_BYTES 32
/* Sets a digest of a description, which no other description has. */
extern void expr_digest(const StringInfoData *buf, uint8 *digest);

/* ---- harmless.c ---------------------------------------------------------------- */

/* Returns whether evaluating the expression for hidden rows reveals nothing about them. */
extern bool expr_is_harmless(Node *expr);

/*
 * Returns whether a function is leakproof, or is one of core's that sends no message and calls
 * nothing that users define if all types are plain.
 */
extern bool expr_function_is_harmless(Oid function);

/* Returns whether the type is core's own, an enum, or a domain or an array over such a type. */
extern bool expr_type_is_plain(Oid type);

/* ---- users_functions.c ---------------------------------------------------------- */

/*
 * Returns whether an expression, or a list of them, calls a function that PostgreSQL does not come
 * with: users could notice how often it is called, and it may take long.
 */
extern bool expr_calls_users_function(Node *expr);

/*
 * Returns whether nobody can notice for which rows, or how often, an expression or a list of them
 * is evaluated: it cannot fail, as expr_cannot_fail() says, and calls no user's function.
 */
extern bool expr_evaluates_unnoticed(Node *expr, ParamListInfo params);

/* What can be noticed of the evaluation of expressions, the least first. */
typedef enum Notice
{
	NOTICE_NONE,     /* see expr_evaluates_unnoticed() */
	NOTICE_WHETHER,  /* whether there is one: it may raise an error */
	NOTICE_HOW_OFTEN /* also how often: it calls a volatile function */
} Notice;

/*
 * Returns what can be noticed of an expression or a list of expressions, which may be aggregates.
 * It does not look into the plans of subplans.
 */
extern Notice expr_notice(Node *expr, ParamListInfo params);

#endif /* GPUAGG_ANALYSIS_H */

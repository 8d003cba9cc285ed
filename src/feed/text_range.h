/*
 * text_range.h
 *
 * Which texts satisfy a condition, by their first bytes.
 */
#ifndef GPUAGG_FEED_TEXT_RANGE_H
#define GPUAGG_FEED_TEXT_RANGE_H

#include "postgres.h"

/* A condition "text operator value". The first five compare bytes. */
typedef enum TextCondition
{
	TEXT_NONE, /* not one of these conditions */
	TEXT_LESS, /* also less or equal */
	TEXT_EQUAL,
	TEXT_GREATER, /* also greater or equal */
	TEXT_LIKE,
	TEXT_STARTS_WITH
} TextCondition;

/* Ranges of chunk_prefix(); one whose first number is greater than its last one is empty. */
typedef struct TextRange
{
	uint64 first, last;           /* only texts within may satisfy the condition */
	uint64 sure_first, sure_last; /* all texts within satisfy it */
} TextRange;

/*
 * Returns which condition a function computes whose arguments are text and have this collation.
 * TEXT_NONE if it is none, or does not compare bytes under the collation.
 */
extern TextCondition text_condition(Oid function, Oid collation);

/* Returns the condition that a text and a value satisfy if the value and the text satisfy this. */
extern TextCondition text_condition_commuted(TextCondition condition);

/*
 * Sets the ranges for a condition and a value. All texts are in the first range if their first
 * bytes decide nothing, as for LIKE '%a'.
 */
extern void text_range_set(TextRange *range, TextCondition condition, const text *value);

#endif /* GPUAGG_FEED_TEXT_RANGE_H */

/*
 * text_range.c
 *
 * Which texts satisfy a condition, by their first bytes.
 *
 * The first 8 bytes of a text are compared as a number (chunk_prefix()). A text has no byte that is
 * zero, so one of less than 8 bytes has a number of its own.
 */
#include "postgres.h"

#include "utils/fmgroids.h"

#include "analysis/analysis.h"
#include "cache/chunk.h"
#include "common/compat.h"
#include "feed/text_range.h"

/* Bytes that a number has. */
#define PREFIX_BYTES ((int) sizeof(uint64))

TextCondition
text_condition(Oid function, Oid collation)
{
	if (!expr_collation_is_deterministic(collation))
		return TEXT_NONE;
	switch (function)
	{
		case F_TEXTEQ:
			return TEXT_EQUAL;
		case F_TEXTLIKE:
			return TEXT_LIKE;
		case F_STARTS_WITH:
			return TEXT_STARTS_WITH;
		case F_TEXT_LT:
		case F_TEXT_LE:
			return compat_collation_is_c(collation) ? TEXT_LESS : TEXT_NONE;
		case F_TEXT_GT:
		case F_TEXT_GE:
			return compat_collation_is_c(collation) ? TEXT_GREATER : TEXT_NONE;
		default:
			return TEXT_NONE;
	}
}

TextCondition
text_condition_commuted(TextCondition condition)
{
	switch (condition)
	{
		case TEXT_LESS:
			return TEXT_GREATER;
		case TEXT_GREATER:
			return TEXT_LESS;
		case TEXT_EQUAL:
			return TEXT_EQUAL;
		default:
			return TEXT_NONE;
	}
}

/*
 * Sets the bytes with which a text begins that is like the pattern, at most PREFIX_BYTES; returns
 * their number. Sets *rest to the rest of the pattern, or to NULL if the pattern is an error.
 */
static int
leading_bytes(const char *pattern, int len, char *bytes, const char **rest)
{
	const char *end = pattern + len;
	int n = 0;

	for (; pattern < end && n < PREFIX_BYTES && *pattern != '%' && *pattern != '_'; pattern++)
	{
		if (*pattern == '\\' && ++pattern == end)
		{
			*rest = NULL;
			return 0;
		}
		bytes[n++] = *pattern;
	}
	*rest = pattern;
	return n;
}

/* Sets the first range to the texts that begin with these bytes, at most PREFIX_BYTES. */
static void
set_beginning(TextRange *range, const char *bytes, int n)
{
	range->first = chunk_prefix(bytes, n);
	range->last = n < PREFIX_BYTES ? range->first | PG_UINT64_MAX >> 8 * n : range->first;
}

/* Makes the second range the same as the first one. */
static void
set_sure(TextRange *range)
{
	range->sure_first = range->first;
	range->sure_last = range->last;
}

/* Sets the ranges to the text with n bytes, of which there may be only the first PREFIX_BYTES. */
static void
set_equal(TextRange *range, const char *bytes, int n)
{
	range->first = range->last = chunk_prefix(bytes, n);
	if (n < PREFIX_BYTES)
		set_sure(range);
}

/* Sets the ranges for LIKE. An escape character at the end of a pattern is an error. */
static void
set_like(TextRange *range, const char *pattern, int len)
{
	char bytes[PREFIX_BYTES];
	const char *end = pattern + len;
	const char *rest;
	int n = leading_bytes(pattern, len, bytes, &rest);

	if (rest == NULL || (len > 0 && end[-1] == '\\'))
		return;
	if (rest == end)
		set_equal(range, bytes, n);
	else
		set_beginning(range, bytes, n);
	if (rest + 1 == end && *rest == '%')
		set_sure(range);
}

void
text_range_set(TextRange *range, TextCondition condition, const text *value)
{
	const char *bytes = VARDATA_ANY(value);
	int len = VARSIZE_ANY_EXHDR(value);
	uint64 prefix = chunk_prefix(bytes, len);

	*range = (TextRange){.first = 0, .last = PG_UINT64_MAX, .sure_first = 1, .sure_last = 0};
	switch (condition)
	{
		case TEXT_LESS:
			range->last = prefix;
			if (prefix > 0)
			{
				range->sure_first = 0;
				range->sure_last = prefix - 1;
			}
			break;
		case TEXT_GREATER:
			range->first = prefix;
			if (prefix < PG_UINT64_MAX)
			{
				range->sure_first = prefix + 1;
				range->sure_last = PG_UINT64_MAX;
			}
			break;
		case TEXT_EQUAL:
			set_equal(range, bytes, len);
			break;
		case TEXT_LIKE:
			set_like(range, bytes, len);
			break;
		default:
			set_beginning(range, bytes, Min(len, PREFIX_BYTES));
			if (len <= PREFIX_BYTES)
				set_sure(range);
	}
}

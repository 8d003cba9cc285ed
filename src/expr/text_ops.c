/*
 * text_ops.c
 *	  Vector operations for text: equality, LIKE and lengths.
 *
 * Values that are out of line or compressed take the scalar fallback where their length does not
 * suffice.
 *
 * LIKE with wildcards in the middle, and lengths in characters, have an operation in single-byte
 * encodings and in UTF-8.  There, bytes that are equal to those of a character are that character.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "columns/column_value.h"
#include "expr/expr_internal.h"

/* Returns whether a search for the bytes of a character finds only that character. */
static bool
can_search_bytes(void)
{
	return pg_database_encoding_max_length() == 1 || GetDatabaseEncoding() == PG_UTF8;
}

/* ---- equality ---------------------------------------------------------------- */

/*
 * r = a = b or a <> b for text or bpchar under a deterministic collation; data: the OID of core's
 * function.  Values out of line or compressed take the scalar fallback, but texts only if they are
 * as long as the other value.
 */
void
expr_run_text_equal(const ExprOp *op, int n)
{
	const Datum *a = op->a->values;
	const Datum *b = op->b->values;
	int8 *r = op->r->values;
	Oid func = *(Oid *) op->data;
	bool blanks = func == F_TEXTEQ || func == F_TEXTNE;
	bool negate = func == F_TEXTNE || func == F_BPCHARNE;
	uint8 fallback[EXPR_ROWS];
	bool any = false;

	expr_strict(op, n, NULL);
	for (int i = 0; i < n; i++)
	{
		fallback[i] = 0;
		if (expr_state(op->r, i) != VEC_VALUE)
			continue;
		if (expr_text_inline(a[i]) && expr_text_inline(b[i]))
			r[i] = expr_text_equal(a[i], b[i], blanks) != negate;
		else if (blanks && toast_raw_datum_size(a[i]) != toast_raw_datum_size(b[i]))
			r[i] = negate;
		else
			fallback[i] = any = true;
	}
	if (any)
		expr_strict(op, n, fallback);
}

/* ---- LIKE --------------------------------------------------------------------- */

/* Bytes of a pattern between two %. */
typedef struct Literal
{
	const char *bytes;
	int length;
} Literal;

/* Data of run_like: a LIKE pattern without _. */
typedef struct Pattern
{
	bool negate;     /* NOT LIKE */
	bool open_begin; /* it begins with % */
	bool open_end;   /* it ends with % */
	int length;      /* bytes of all literals */
	int n;
	Literal literals[FLEXIBLE_ARRAY_MEMBER]; /* without open_begin there is at least one */
} Pattern;

/*
 * Returns the first place of `m` > 0 bytes among `len` bytes, or NULL.  A block of places is tested
 * at once, by the first and the last byte.  memmem() makes a table in each call, which takes longer
 * than to search a text of common length.
 */
static const char *
find_bytes(const char *text, int len, const char *bytes, int m)
{
	int places = len - m + 1;
	int at = 0;

#ifdef __SSE2__
	__m128i first = _mm_set1_epi8(bytes[0]);
	__m128i last = _mm_set1_epi8(bytes[m - 1]);

	while (places >= 16 && at < places)
	{
		__m128i begin = _mm_loadu_si128((const __m128i *) (text + at));
		__m128i end = _mm_loadu_si128((const __m128i *) (text + at + m - 1));
		uint32 both = _mm_movemask_epi8(
			_mm_and_si128(_mm_cmpeq_epi8(begin, first), _mm_cmpeq_epi8(end, last)));

		for (; both != 0; both &= both - 1)
		{
			const char *place = text + at + pg_rightmost_one_pos32(both);

			CHECK_FOR_INTERRUPTS();
			if (memcmp(place, bytes, m) == 0)
				return place;
		}
		/* the last block overlaps the one before */
		at = at + 16 < places ? Min(at + 16, places - 16) : places;
	}
#endif
	for (; at < places; at++)
		if (text[at] == bytes[0] && memcmp(text + at, bytes, m) == 0)
			return text + at;
	return NULL;
}

/* Returns whether a text of `len` bytes is like the pattern. */
static bool
is_like(const Pattern *pattern, const char *text, int len)
{
	const Literal *literal = pattern->literals;
	const Literal *end = literal + pattern->n;

	if (len < pattern->length)
		return false;
	if (!pattern->open_begin)
	{
		if (memcmp(text, literal->bytes, literal->length) != 0)
			return false;
		text += literal->length;
		len -= literal->length;
		if (++literal == end)
			return pattern->open_end || len == 0;
	}
	if (!pattern->open_end)
	{
		end--;
		if (memcmp(text + len - end->length, end->bytes, end->length) != 0)
			return false;
		len -= end->length;
	}
	for (; literal < end; literal++)
	{
		const char *found = find_bytes(text, len, literal->bytes, literal->length);

		if (found == NULL)
			return false;
		found += literal->length;
		len -= found - text;
		text = found;
	}
	return true;
}

/*
 * r = a [NOT] LIKE a pattern under a deterministic collation, which compares bytes, for the rows of
 * mask c (NULL: all rows); data: Pattern
 */
static void
run_like(const ExprOp *op, int n)
{
	const Pattern *pattern = op->data;
	const Datum *a = op->a->values;
	const int8 *mask = op->c ? op->c->values : NULL;
	int8 *r = op->r->values;
	uint8 fallback[EXPR_ROWS];
	bool any = false;

	expr_strict(op, n, NULL);
	for (int i = 0; i < n; i++)
	{
		/* texts of rows that lie apart are not in the processor's caches */
		column_prefetch_value(a, i, n);
		fallback[i] = 0;
		if (expr_state(op->r, i) != VEC_VALUE)
			continue;
		if ((mask && !mask[i]) || !expr_text_inline(a[i]))
		{
			fallback[i] = any = true;
			continue;
		}
		CHECK_FOR_INTERRUPTS();
		r[i] = is_like(pattern, VARDATA_ANY(DatumGetPointer(a[i])), expr_text_length(a[i], true)) !=
			pattern->negate;
	}
	if (any)
		expr_strict(op, n, fallback);
}

/*
 * Returns the pattern, in the current memory context.  Returns NULL if it contains _, or ends with
 * an escape character, which is an error.
 */
static Pattern *
make_pattern(const char *text)
{
	size_t size = strlen(text);
	Pattern *pattern = palloc0(offsetof(Pattern, literals) + (size / 2 + 1) * sizeof(Literal));
	char *bytes = palloc(size + 1); /* the literals, one after the other */
	Literal *literal = NULL;

	pattern->open_begin = *text == '%';
	if (!pattern->open_begin)
	{
		literal = &pattern->literals[pattern->n++];
		literal->bytes = bytes;
	}
	for (; *text != '\0'; text++)
	{
		pattern->open_end = *text == '%';
		if (pattern->open_end)
		{
			literal = NULL;
			continue;
		}
		if (*text == '_' || (*text == '\\' && *++text == '\0'))
			return NULL;
		if (literal == NULL)
		{
			literal = &pattern->literals[pattern->n++];
			literal->bytes = bytes;
		}
		*bytes++ = *text;
		literal->length++;
		pattern->length++;
	}
	return pattern;
}

bool
expr_is_simple_like(List *args)
{
	Const *right = lsecond(args);
	char *pattern;

	if (!IsA(right, Const) || right->constisnull)
		return false;
	pattern = text_to_cstring(DatumGetTextPP(right->constvalue));
	pattern += strcspn(pattern, "%_\\");
	return *pattern == '\0' || strcmp(pattern, "%") == 0;
}

/* Compiles LIKE and NOT LIKE.  For patterns with _ core's function is called row by row. */
Vec *
expr_compile_like(ExprSet *set, Oid funcid, Oid collation, Expr *expr, List *args, int stage)
{
	Pattern *pattern;
	Const *right;
	Vec *left, *mask, *r;
	bool simple;

	if (!expr_is_like(funcid))
		return NULL;
	right = lsecond(args);
	if (!IsA(right, Const) || right->constisnull || !expr_collation_is_deterministic(collation))
		return NULL;
	pattern = make_pattern(text_to_cstring(DatumGetTextPP(right->constvalue)));
	simple = expr_is_simple_like(args);
	if (pattern == NULL || (!simple && !can_search_bytes()))
		return NULL;
	pattern->negate = funcid == F_TEXTNLIKE || funcid == F_BPCHARNLIKE;
	left = expr_compile_as(set, linitial(args), COLUMN_DATUM, stage);
	if (left == NULL)
		return NULL;
	/* a search is slow enough to omit the rows for which core would not evaluate it */
	mask = simple ? NULL : expr_mask_vec(set, set->mask, stage);
	r = expr_emit_bool(set, stage, run_like, expr, left, NULL, mask, pattern);
	r->masked |= mask != NULL;
	return r;
}

/* ---- lengths -------------------------------------------------------------------- */

/* What a function counts. */
typedef enum LengthUnit
{
	LENGTH_BYTES,
	LENGTH_CHARACTERS,
	LENGTH_UNPADDED /* characters, without blanks at the end */
} LengthUnit;

/* Additions of 1 to a byte before it could overflow. */
#define UTF8_STEPS 255

/*
 * Returns the number of characters of a text in UTF-8: of the bytes that do not continue one, which
 * are all but 10xxxxxx.  Eight bytes are tested at once.
 */
static int
count_utf8(const char *text, int len)
{
	int continued = 0;
	int i = 0;

	while (i + 8 <= len)
	{
		int end = Min(len - 7, i + 8 * UTF8_STEPS);
		uint64 sums = 0; /* one in each byte */

		for (; i < end; i += 8)
		{
			uint64 bytes;

			memcpy(&bytes, text + i, 8);
			sums += bytes >> 7 & ~(bytes >> 6) & UINT64CONST(0x0101010101010101);
		}
		sums = (sums & UINT64CONST(0x00FF00FF00FF00FF)) +
			(sums >> 8 & UINT64CONST(0x00FF00FF00FF00FF));
		continued += sums * UINT64CONST(0x0001000100010001) >> 48;
	}
	for (; i < len; i++)
		continued += (text[i] & 0xC0) == 0x80;
	return len - continued;
}

/* r = length of a; data: LengthUnit */
static void
run_length(const ExprOp *op, int n)
{
	LengthUnit unit = *(LengthUnit *) op->data;
	bool utf8 = pg_database_encoding_max_length() > 1;
	const Datum *a = op->a->values;
	int32 *r = op->r->values;
	uint8 fallback[EXPR_ROWS];
	bool any = false;

	expr_strict(op, n, NULL);
	for (int i = 0; i < n; i++)
	{
		fallback[i] = 0;
		if (expr_state(op->r, i) != VEC_VALUE)
			continue;
		if (unit == LENGTH_BYTES)
			r[i] = expr_text_inline(a[i]) ? VARSIZE_ANY_EXHDR(DatumGetPointer(a[i])) :
											toast_raw_datum_size(a[i]) - VARHDRSZ;
		else if (!expr_text_inline(a[i]))
			fallback[i] = any = true;
		else
		{
			int len = expr_text_length(a[i], unit == LENGTH_CHARACTERS);

			r[i] = utf8 ? count_utf8(VARDATA_ANY(DatumGetPointer(a[i])), len) : len;
		}
	}
	if (any)
		expr_strict(op, n, fallback);
}

/* Compiles the length of a text or bytea. */
Vec *
expr_compile_length(ExprSet *set, Oid funcid, Expr *expr, List *args, int stage)
{
	LengthUnit *unit;
	Vec *arg;

	switch (funcid)
	{
		case F_OCTET_LENGTH_TEXT:
		case F_OCTET_LENGTH_BPCHAR:
		case F_OCTET_LENGTH_BYTEA:
		case F_LENGTH_BYTEA:
			unit = palloc(sizeof(LengthUnit));
			*unit = LENGTH_BYTES;
			break;
		case F_TEXTLEN:
		case F_LENGTH_TEXT:
		case F_CHAR_LENGTH_TEXT:
		case F_CHARACTER_LENGTH_TEXT:
		case F_LENGTH_BPCHAR:
		case F_CHAR_LENGTH_BPCHAR:
		case F_CHARACTER_LENGTH_BPCHAR:
			if (!can_search_bytes())
				return NULL;
			unit = palloc(sizeof(LengthUnit));
			*unit = exprType(linitial(args)) == BPCHAROID ? LENGTH_UNPADDED : LENGTH_CHARACTERS;
			break;
		default:
			return NULL;
	}
	arg = expr_compile_as(set, linitial(args), COLUMN_DATUM, stage);
	if (arg == NULL)
		return NULL;
	return expr_emit(set, stage, run_length, expr_new_vec(set, COLUMN_I32, 0, INT4OID, expr, stage),
					 arg, NULL, NULL, unit);
}

/*
 * lookup.h
 *	  A lookup: the rows of the inner side of a join, found by their key.
 *
 * The inner side's plan runs once.  Its rows are stored column by column, and a row is found by
 * the equality operators of the join.  A key leads to the first row that has it, and rows with
 * equal keys are linked to a chain (`next`).  A lookup that is only for existence (semi and anti
 * joins) finds one of them, and has no chains.
 *
 * An integer key is one integer, or two of at most 32 bits, which are the halves of an integer of
 * 64 bits.  Keys have one of four forms:
 *	  LOOKUP_BITS	integer keys, no columns, no chains: a bitmap over the range of the keys
 *	  LOOKUP_ARRAY	integer keys in a dense range: an array of row numbers
 *	  LOOKUP_INTEGERS	integer keys: a hash table of integers, perhaps behind a filter
 *	  LOOKUP_VALUES	all other keys: a hash table, by the hash functions and the equality operators
 *					of the keys' types
 *
 * Memory: a lookup belongs to its own memory context.  Its values stay where they are until
 * lookup_free().
 */
#ifndef GPUAGG_FEED_LOOKUP_H
#define GPUAGG_FEED_LOOKUP_H

#include "postgres.h"

#include "fmgr.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"

#include "feed.h"
#include "feed/shared_work.h"
#include "operators/cpu_hash.h"

/* The number of a row that does not exist. */
#define LOOKUP_NONE PG_UINT32_MAX

typedef enum LookupForm
{
	LOOKUP_EMPTY, /* no row has a key without NULL */
	LOOKUP_BITS,
	LOOKUP_ARRAY,
	LOOKUP_INTEGERS,
	LOOKUP_VALUES
} LookupForm;

/* One column of the key. */
typedef struct LookupKey
{
	AttrNumber attno;    /* the inner plan's column that is the key, or 0 */
	ExprState *inner;    /* if attno is 0: the inner side's expression; reads ecxt_outertuple */
	int batch_column;    /* its column in batches of the feed */
	FmgrInfo inner_hash; /* hash functions of both sides of the equality operator */
	FmgrInfo outer_hash;
	FmgrInfo equal; /* equal(outer, inner); it is strict */
	Oid collation;
	int16 inner_typlen;
	bool inner_byval;
	bool comparable; /* both sides have the same type, so that inner keys can be compared */
	/* Bytes of the integers on each side if the equality is that of integers; else 0. */
	int8 inner_width;
	int8 outer_width;
} LookupKey;

/*
 * What the values of a column are in the form of registers (expr/program.h), or, with `presence`,
 * only that they are values.
 */
typedef struct LookupSummary
{
	ColumnType type;
	int16 scale;
	bool presence;
	bool nulls;            /* some value is NULL */
	bool undetermined;     /* some value has no such form */
	int64 least, greatest; /* of the others; least > greatest: there are none */
} LookupSummary;

/* A summary that queries note in a kept lookup. */
typedef struct LookupNote
{
	pg_atomic_uint32 state; /* LookupNoteState (lookup_kept.c) */
	LookupSummary summary;
} LookupNote;

/* One column of the inner rows that the query reads. */
typedef struct LookupColumn
{
	int resno;        /* number of the inner plan's column, from 1 */
	int batch_column; /* its column in batches of the feed */
	int16 typlen;
	bool byval;
	bool *nulls;       /* [row] NULL: no value is NULL */
	Datum *values;     /* [row]; if !byval: [code], the distinct values */
	LookupNote *notes; /* [presence]; NULL: the lookup is not a kept one */

	/* Only if !byval: */
	uint32 *codes; /* [row] number of the value; that of NULL is undefined */
	uint32 ncodes;
	size_t longest;    /* bytes of the longest value after detoasting */
	uint64 dictionary; /* see Column.dictionary */
} LookupColumn;

/* What names a lookup in the cache (lookup_kept.c). */
typedef struct LookupIdentity LookupIdentity;

/* What stands before a hash table of integers; see lookup_filter.c. */
typedef struct LookupFilter
{
	uint64 *words; /* NULL: there is none */
	uint64 mask;   /* number of words - 1 */
	bool used;
	bool refused;  /* it has no room */
	uint64 sought; /* keys that were sought since it was judged last, */
	uint64 found;  /* and how many of them were found */
	uint64 vain;   /* keys that were sought and not found before there was a filter */
} LookupFilter;

typedef struct Lookup
{
	PlanState *inner; /* the inner side's plan */
	Feed *feed;       /* reads the rows of the plan; NULL: the executor does */
	ExprContext *econtext;
	MemoryContext parent; /* the parent of cxt */
	bool exists_only;     /* one row of each key is enough */
	int nkeys;
	LookupKey *keys;
	int ncolumns;
	LookupColumn *columns;

	uint64 builds; /* how often the rows have changed */

	LookupIdentity *identity; /* NULL before lookup_attach() */
	bool kept;                /* the rows are in the cache, and must not be changed */
	uint64 serial; /* a number that no other kept rows have ever had; 0: the rows are not kept */
	SharedWork *awaited; /* during lookup_build(): others wait for the rows, */
	size_t most_kept;    /* unless they take more bytes, so that they cannot be kept */

	/* The rows, valid after lookup_build(). */
	MemoryContext cxt; /* NULL before the first build */
	LookupForm form;
	uint32 nrows;
	uint32 capacity;
	uint64 ninner; /* rows that the plan has returned */
	size_t bytes;  /* memory of all this */
	int64 least;   /* integer keys: the least and the greatest */
	int64 greatest;
	uint64 *bits;    /* [key - least] the key exists; NULL: there is no bitmap */
	uint32 *next;    /* [row] the next row with an equal key, or LOOKUP_NONE; NULL: keys differ */
	uint32 *array;   /* LOOKUP_ARRAY: [key - least] row, or LOOKUP_NONE */
	uint64 mask;     /* hash tables: number of slots - 1 */
	HashSeed seed;   /* LOOKUP_INTEGERS */
	uint32 *slots;   /* hash tables: row, or LOOKUP_NONE */
	int64 *integers; /* [row] integer key */
	LookupFilter filter;
	uint32 *hashes; /* LOOKUP_VALUES: [row] */
	Datum *values;  /* LOOKUP_VALUES: [row * nkeys + key] */
	/* LOOKUP_VALUES: the least and greatest chunk_prefix() if lookup_has_text_key() */
	uint64 least_prefix;
	uint64 greatest_prefix;
} Lookup;

/* What a query has read of a lookup on a GPU, for EXPLAIN. */
typedef struct LookupCells
{
	uint64 kept;     /* bytes that the GPU server had, */
	uint64 sent;     /* and bytes that were sent */
	double write_ms; /* time to write these */
	bool hashed;     /* a hash table finds the inner rows */
} LookupCells;

/* What lookup_build() returns. */
typedef enum LookupResult
{
	LOOKUP_BUILT,
	LOOKUP_TOO_LARGE, /* the rows exceed the memory */
	LOOKUP_AMBIGUOUS  /* keys may be equal, but rows of the inner side cannot be compared */
} LookupResult;

/*
 * Runs the inner plan and stores its rows, in at most `memory` bytes.  The caller has set inner,
 * feed, econtext, parent, exists_only, keys and columns (resno, batch_column, typlen and byval).
 * If the lookup cannot be built, its memory is freed, and the plan must be rescanned before it can
 * run again.
 */
extern LookupResult lookup_build(Lookup *lookup, size_t memory);
/* Ends the wait of others for the lookup's rows, if it has not ended. */
static inline void
lookup_end_wait(Lookup *lookup)
{
	if (lookup->awaited)
		shared_work_end(lookup->awaited);
	lookup->awaited = NULL;
}
/* Frees the rows. */
extern void lookup_free(Lookup *lookup);

/*
 * Makes the rows those of a lookup that an earlier query has kept in the cache, if its plan is the
 * same and the tables have not changed.  Returns false if there is none: then lookup_build() and
 * lookup_keep() follow.  hash: the plan of the join's inner side; again: an attempt of the same
 * query has failed
 */
extern bool lookup_attach(Lookup *lookup, const Plan *hash, bool again);
/* Returns, after lookup_attach(), whether lookup_keep() is likely to keep the lookup. */
extern bool lookup_can_be_kept(const Lookup *lookup);
/* Returns the largest number of bytes with which a lookup can be kept. */
extern size_t lookup_most_kept(void);
/*
 * Keeps a copy of a lookup for later queries, after lookup_build(), if it is used repeatedly, or if
 * `shared`: other participants of a parallel plan wait for it.
 */
extern void lookup_keep(Lookup *lookup, bool shared);
/*
 * Finds the summary of a kept lookup's column that an earlier query has noted. The caller sets
 * type, scale and presence. Returns false if there is none.
 */
extern bool lookup_find_summary(const LookupColumn *column, LookupSummary *summary);
/* Notes the summary of a column, if the lookup is a kept one. */
extern void lookup_note_summary(const LookupColumn *column, const LookupSummary *summary);

/* The types of arrays of integer keys. */
typedef enum LookupKeyType
{
	LOOKUP_INT32,
	LOOKUP_INT64
} LookupKeyType;

/*
 * Finds n integer keys: sets rows[i] to the first row with key keys[i], or to LOOKUP_NONE.  If
 * there are no columns and no chains, the row may be any number but LOOKUP_NONE.  keys: an array of
 * int32 or int64.  Sets sel to the indexes of the keys that have been found, and returns their
 * number.
 */
extern int lookup_find_integers(const Lookup *lookup, int n, LookupKeyType type, const void *keys,
								uint32 *rows, uint16 *sel);
/* Makes a filter if it pays, and decides whether it is used.  found: of the keys sought just now */
extern void lookup_adapt_filter(Lookup *lookup, int sought, int found);
/* Returns false if it is certain that no integer key is from `least` to `greatest`. */
extern bool lookup_may_have_integers(const Lookup *lookup, int64 least, int64 greatest);
/* Returns whether the key is one text whose equality is that of bytes. */
extern bool lookup_has_text_key(const Lookup *lookup);
/*
 * Returns false if it is certain that no such key has a chunk_prefix() from `least` to `greatest`.
 */
extern bool lookup_may_have_texts(const Lookup *lookup, uint64 least, uint64 greatest);
/* Returns the first row with a key that has no NULL, or LOOKUP_NONE; not for integer keys. */
extern uint32 lookup_find_values(Lookup *lookup, const Datum *key);

/* Returns whether all columns of the key are integers on both sides. */
static inline bool
lookup_has_integers(const Lookup *lookup)
{
	for (int k = 0; k < lookup->nkeys; k++)
		if (lookup->keys[k].inner_width == 0)
			return false;
	return true;
}

/* Returns whether the key is an integer on both sides, or two that are one. */
static inline bool
lookup_has_integer_key(const Lookup *lookup)
{
	const LookupKey *keys = lookup->keys;

	if (lookup->nkeys == 2)
		for (int k = 0; k < 2; k++)
			if (keys[k].inner_width == 0 || Max(keys[k].inner_width, keys[k].outer_width) > 4)
				return false;
	return lookup->nkeys <= 2 && keys[0].inner_width > 0;
}

/* Returns the integer that has two integers of 32 bits as its halves. */
static inline int64
lookup_join_halves(int64 high, int64 low)
{
	return (int64) ((uint64) high << 32 | (uint32) low);
}

/* Returns an integer of `width` bytes. */
static inline int64
lookup_integer(Datum value, int width)
{
	return width == 2 ? DatumGetInt16(value) :
		width == 4    ? DatumGetInt32(value) :
						DatumGetInt64(value);
}

/* Returns the word of EXPLAIN for a form. */
extern const char *lookup_form_name(LookupForm form);

#endif /* GPUAGG_FEED_LOOKUP_H */

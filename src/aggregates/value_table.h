/*
 * value_table.h
 *	  A hash table of the distinct values of a group, with a number of rows for each.
 *
 * Values are equal by the type's own equality, which belongs to its hash function. Of equal values
 * that look different, as -0 and 0 or 1.0 and 1.00, the table keeps the one whose bytes are least,
 * so that its content does not depend on the order of rows. NULLs are not in it.
 */
#ifndef GPUAGG_VALUE_TABLE_H
#define GPUAGG_VALUE_TABLE_H

#include "postgres.h"

#include "utils/typcache.h"

#include "operators/cpu_hash.h"

/* A value and the number of its rows. */
typedef struct ValueEntry
{
	Datum value; /* a varlena is not compressed or out of line */
	int64 count;
	uint32 hash;
} ValueEntry;

/* The table. Entries are in the order in which their values came, until value_table_keep(). */
typedef struct ValueTable
{
	MemoryContext cxt;
	TypeCacheEntry *type; /* with hash, equality and, if the type has one, comparison functions */
	Oid collation;
	bool by_bits;  /* values are equal if their bits are: integers and the like */
	HashSeed seed; /* if by_bits */
	Size bytes;    /* memory of the values, if they are by reference */
	int64 n;
	int64 capacity;
	ValueEntry *entries;
	int64 *errors; /* [entry] error of its count; NULL: counts are exact */
	int64 nslots;  /* a power of two; 0: there are so few entries that they are searched in turn */
	uint32 *slots; /* number of an entry, plus 1; 0: free */
} ValueTable;

/* Returns the error of an entry's count; 0 if counts are exact. */
static inline int64
value_table_error(const ValueTable *table, const ValueEntry *entry)
{
	return table->errors ? table->errors[entry - table->entries] : 0;
}

/*
 * Returns an empty table in cxt. Raises core's error if the type has no hash function.
 */
extern ValueTable *value_table_create(MemoryContext cxt, Oid type, Oid collation, bool has_errors);

/*
 * Returns whether the functions of the table neither call SQL functions nor leave memory in the
 * current context.
 */
static inline bool
value_table_is_simple(const ValueTable *table)
{
	return table->by_bits;
}

/* Returns the bytes that a table of so many values by value takes at most. */
extern size_t value_table_most_bytes(int64 n, bool has_errors);

/*
 * Returns the number of the value's entry, and whether it was there. A new entry has a copy of the
 * value, count 0 and error 0.
 */
extern int64 value_table_enter(ValueTable *table, Datum value, bool *found);

/* The most values of a call of value_table_count. */
#define VALUE_TABLE_COUNTED 24

/*
 * Adds a row to the entry of each of n values, and makes new entries as value_table_enter() does.
 * The table must be simple, and have slots. Changes the array.
 */
extern void value_table_count(ValueTable *table, Datum *values, int n);

/* Makes room for n more entries. */
extern void value_table_reserve(ValueTable *table, int64 n);

/* Keeps only the n entries whose numbers are listed, in this order. */
extern void value_table_keep(ValueTable *table, const int64 *numbers, int64 n);

/*
 * Compares two values of the table's type: by the type's order, or by their bytes if it has none,
 * or if they are equal by it.
 */
extern int value_table_compare(const ValueTable *table, Datum a, Datum b);

/*
 * Returns the entries with the most rows, `most` at most, in descending order, equal ones in
 * ascending order of values. An entry's rows are those that it has at least: its count less its
 * error.
 */
extern ValueEntry **value_table_largest(const ValueTable *table, int64 most, int64 *n);

#endif /* GPUAGG_VALUE_TABLE_H */

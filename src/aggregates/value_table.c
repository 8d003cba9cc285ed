/*
 * value_table.c
 *	  A hash table of the distinct values of a group; see value_table.h.
 *
 * Entries are in an array, and a table of slots with open addressing has their numbers. A group
 * with few values has no slots. All sizes may exceed 1 GB.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "aggregates/argtype.h"
#include "aggregates/value_table.h"
#include "columns/hash_seed.h"
#include "common/interruptible.h"
#include "key_spec.h"

#define FIRST_CAPACITY 4
#define MOST_WITHOUT_SLOTS 8
#define MOST_ENTRIES PG_INT32_MAX /* states have their number in 32 bits */

/* Returns the type with the functions that a table needs. Raises an error if it has no hashes. */
static TypeCacheEntry *
lookup_type(Oid typid)
{
	TypeCacheEntry *type;

	if (!OidIsValid(typid))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine input data type")));
	type = lookup_type_cache(
		typid, TYPECACHE_HASH_PROC_FINFO | TYPECACHE_EQ_OPR_FINFO | TYPECACHE_CMP_PROC_FINFO);
	if (!OidIsValid(type->hash_proc_finfo.fn_oid) || !OidIsValid(type->eq_opr_finfo.fn_oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("could not identify a hash function for type %s", format_type_be(typid)),
				 errhint("Cast the argument to a type that has one, such as text.")));
	return type;
}

ValueTable *
value_table_create(MemoryContext cxt, Oid type, Oid collation, bool has_errors)
{
	TypeCacheEntry *entry = lookup_type(type);
	ValueTable *table = MemoryContextAllocZero(cxt, sizeof(ValueTable));

	table->cxt = cxt;
	table->type = entry;
	table->collation = collation;
	table->by_bits = entry->typbyval && key_compares_bits(entry->eq_opr_finfo.fn_oid);
	if (table->by_bits)
		table->seed = hash_seed_random();
	table->capacity = FIRST_CAPACITY;
	table->entries = MemoryContextAlloc(cxt, FIRST_CAPACITY * sizeof(ValueEntry));
	if (has_errors)
		table->errors = MemoryContextAlloc(cxt, FIRST_CAPACITY * sizeof(int64));
	return table;
}

size_t
value_table_most_bytes(int64 n, bool has_errors)
{
	/* arrays of entries double, and slots are a power of two above twice their number */
	int64 capacity = Max(2 * n, FIRST_CAPACITY);

	return sizeof(ValueTable) + capacity * (sizeof(ValueEntry) + (has_errors ? sizeof(int64) : 0)) +
		(n > MOST_WITHOUT_SLOTS ? 4 * n * sizeof(uint32) : 0);
}

/* ---- slots --------------------------------------------------------------------- */

/* Enters the number of an entry into the first free slot for its hash. */
static void
fill_slot(ValueTable *table, int64 number)
{
	uint32 mask = table->nslots - 1;
	uint32 at = table->entries[number].hash & mask;

	while (table->slots[at] != 0)
		at = (at + 1) & mask;
	table->slots[at] = number + 1;
}

/* Makes a new table of slots, with room for n entries, for all entries that are there. */
static void
make_slots(ValueTable *table, int64 n)
{
	if (table->slots)
		pfree(table->slots);
	table->slots = NULL;
	table->nslots = 0;
	if (n <= MOST_WITHOUT_SLOTS)
		return;
	table->slots = MemoryContextAllocExtended(table->cxt, pg_nextpower2_64(n * 2) * sizeof(uint32),
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	table->nslots = pg_nextpower2_64(n * 2);
	INTERRUPTIBLE_FOR (i, 0, table->n)
		fill_slot(table, i);
}

/* At most three quarters of the slots are in use. */
void
value_table_reserve(ValueTable *table, int64 n)
{
	int64 needed = table->n + n;

	if (needed > MOST_ENTRIES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many distinct values in a group"),
				 errdetail("A group may have %d.", MOST_ENTRIES)));
	if (needed > table->capacity)
	{
		int64 capacity = Max(table->capacity * 2, needed);

		table->entries = repalloc_huge(table->entries, capacity * sizeof(ValueEntry));
		if (table->errors)
			table->errors = repalloc_huge(table->errors, capacity * sizeof(int64));
		table->capacity = capacity;
	}
	if (needed > MOST_WITHOUT_SLOTS && needed > table->nslots / 4 * 3)
		make_slots(table, needed);
}

/* ---- entries ---------------------------------------------------------------------- */

/* Returns a by-value datum as all functions for its type's length return it. */
static inline Datum
canonical_bits(int16 typlen, Datum value)
{
	switch (typlen)
	{
		case 1:
			return CharGetDatum(DatumGetChar(value));
		case 2:
			return Int16GetDatum(DatumGetInt16(value));
		case 4:
			return Int32GetDatum(DatumGetInt32(value));
		default:
			return value;
	}
}

/* Returns whether an entry has this value. */
static inline bool
is_value_of(const ValueTable *table, int64 number, Datum value, uint32 hash)
{
	if (table->by_bits)
		return table->entries[number].value == value;
	return table->entries[number].hash == hash &&
		DatumGetBool(FunctionCall2Coll(&table->type->eq_opr_finfo, table->collation,
									   table->entries[number].value, value));
}

/* Returns the number of the entry with this value, or -1. */
static inline int64
find_entry(const ValueTable *table, Datum value, uint32 hash)
{
	uint32 mask = table->nslots - 1;

	if (table->nslots == 0)
	{
		for (int64 i = 0; i < table->n; i++)
			if (is_value_of(table, i, value, hash))
				return i;
		return -1;
	}
	for (uint32 at = hash & mask; table->slots[at] != 0; at = (at + 1) & mask)
		if (is_value_of(table, table->slots[at] - 1, value, hash))
			return table->slots[at] - 1;
	return -1;
}

/* Returns the bytes of a value by reference, 0 for others. */
static Size
value_bytes(const ValueTable *table, Datum value)
{
	return table->type->typbyval ? 0 : datumGetSize(value, false, table->type->typlen);
}

/* Replaces an entry's value by a copy of an equal one. */
static void
replace_value(ValueTable *table, ValueEntry *entry, Datum value)
{
	Datum old = entry->value;

	entry->value = argtype_copy(table->type, value, table->cxt);
	table->bytes += value_bytes(table, entry->value);
	table->bytes -= value_bytes(table, old);
	if (!table->type->typbyval)
		pfree(DatumGetPointer(old));
}

/* Returns the hash of a value that is compared by its canonical bits. */
static inline uint32
hash_bits(const ValueTable *table, Datum value)
{
	return hash_finish(hash_fold(table->seed, value));
}

/* Adds an entry for a value that has none. Returns its number. */
static int64
add_entry(ValueTable *table, Datum value, uint32 hash)
{
	Datum copy;
	int64 number;

	value_table_reserve(table, 1);
	copy = argtype_copy(table->type, value, table->cxt);
	number = table->n++;
	table->entries[number] = (ValueEntry){.value = copy, .count = 0, .hash = hash};
	table->bytes += value_bytes(table, copy);
	if (table->errors)
		table->errors[number] = 0;
	if (table->nslots > 0)
		fill_slot(table, number);
	return number;
}

int64
value_table_enter(ValueTable *table, Datum value, bool *found)
{
	int64 number;
	uint32 hash;

	if (table->by_bits)
	{
		value = canonical_bits(table->type->typlen, value);
		hash = hash_bits(table, value);
	}
	else
	{
		value = argtype_plain(table->type, value);
		hash = DatumGetUInt32(
			FunctionCall1Coll(&table->type->hash_proc_finfo, table->collation, value));
	}
	number = find_entry(table, value, hash);
	*found = number >= 0;
	if (*found)
	{
		if (!table->by_bits &&
			argtype_compare_bytes(table->type, value, table->entries[number].value) < 0)
			replace_value(table, &table->entries[number], value);
		return number;
	}
	return add_entry(table, value, hash);
}

/*
 * Three passes, so that misses of the CPU's caches overlap: the first one prefetches slots, the
 * second one entries.
 */
void
value_table_count(ValueTable *table, Datum *values, int n)
{
	uint32 hashes[VALUE_TABLE_COUNTED];

	Assert(table->by_bits && table->nslots > 0 && n <= VALUE_TABLE_COUNTED);
	for (int i = 0; i < n; i++)
	{
		values[i] = canonical_bits(table->type->typlen, values[i]);
		hashes[i] = hash_bits(table, values[i]);
		__builtin_prefetch(&table->slots[hashes[i] & (table->nslots - 1)]);
	}
	for (int i = 0; i < n; i++)
	{
		uint32 slot = table->slots[hashes[i] & (table->nslots - 1)];

		__builtin_prefetch(&table->entries[slot > 0 ? slot - 1 : 0], 1);
	}
	for (int i = 0; i < n; i++)
	{
		int64 number = find_entry(table, values[i], hashes[i]);

		if (number < 0)
			number = add_entry(table, values[i], hashes[i]);
		table->entries[number].count++;
	}
}

void
value_table_keep(ValueTable *table, const int64 *numbers, int64 n)
{
	ValueEntry *entries = MemoryContextAllocHuge(table->cxt, table->capacity * sizeof(ValueEntry));
	int64 *errors = NULL;

	if (table->errors)
		errors = MemoryContextAllocHuge(table->cxt, table->capacity * sizeof(int64));
	for (int64 i = 0; i < n; i++)
	{
		entries[i] = table->entries[numbers[i]];
		if (errors)
			errors[i] = table->errors[numbers[i]];
		table->entries[numbers[i]].count = 0;
	}
	for (int64 i = 0; i < table->n; i++)
		if (table->entries[i].count != 0)
		{
			table->bytes -= value_bytes(table, table->entries[i].value);
			if (!table->type->typbyval)
				pfree(DatumGetPointer(table->entries[i].value));
		}
	pfree(table->entries);
	table->entries = entries;
	if (errors)
	{
		pfree(table->errors);
		table->errors = errors;
	}
	table->n = n;
	make_slots(table, table->nslots / 2);
}

/* ---- order ------------------------------------------------------------------------- */

int
value_table_compare(const ValueTable *table, Datum a, Datum b)
{
	int c = 0;

	if (OidIsValid(table->type->cmp_proc_finfo.fn_oid))
		c = DatumGetInt32(FunctionCall2Coll(&table->type->cmp_proc_finfo, table->collation, a, b));
	return c != 0 ? c : argtype_compare_bytes(table->type, a, b);
}

/* Returns the number of rows that an entry has at least. */
static int64
certain_rows(const ValueTable *table, const ValueEntry *entry)
{
	return entry->count - value_table_error(table, entry);
}

/* Comparator of qsort_interruptible: more rows first, then by value. */
static int
compare_entries(const void *a, const void *b, void *arg)
{
	const ValueTable *table = arg;
	const ValueEntry *x = *(ValueEntry *const *) a;
	const ValueEntry *y = *(ValueEntry *const *) b;
	int64 m = certain_rows(table, x);
	int64 n = certain_rows(table, y);

	if (m != n)
		return m > n ? -1 : 1;
	return value_table_compare(table, x->value, y->value);
}

/*
 * Collects candidates in an array with room for twice as many as are wanted. When it is full, it is
 * sorted, and its first half stays. From then on, an entry that belongs after these is skipped.
 */
ValueEntry **
value_table_largest(const ValueTable *table, int64 most, int64 *n)
{
	int64 room = Min(table->n, most > PG_INT32_MAX / 2 ? table->n : most * 2);
	ValueEntry **largest = palloc_extended((room + 1) * sizeof(ValueEntry *), MCXT_ALLOC_HUGE);
	int64 found = 0;
	bool full = false;

	INTERRUPTIBLE_FOR (i, 0, table->n)
	{
		ValueEntry *entry = &table->entries[i];

		if (full && compare_entries(&largest[most - 1], &entry, (void *) table) < 0)
			continue;
		largest[found++] = entry;
		if (found == room && found > most)
		{
			qsort_interruptible(largest, found, sizeof(ValueEntry *), compare_entries,
								(void *) table);
			found = most;
			full = true;
		}
	}
	qsort_interruptible(largest, found, sizeof(ValueEntry *), compare_entries, (void *) table);
	*n = Min(found, most);
	return largest;
}

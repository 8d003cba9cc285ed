/*
 * column_fill.c
 *
 * Reads ranges of one table into the column cache.
 *
 * Columns are built in groups: a range of GROUP_COLUMNS columns is as much as a process should
 * hold in memory at once.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "utils/rel.h"

#include "cache/proof.h"
#include "cache/refresh.h"
#include "feed/heap_build.h"
#include "cache_maintenance/column_fill.h"

/* Most columns that are built at once. */
#define GROUP_COLUMNS 100

struct TableFill
{
	Relation rel;
	CacheTable *table;
	TableScanDesc scan;
	BlockNumber nblocks;
	Proof proof;
	int nrequested;
	int ncols; /* the requested columns, then others that have chunks */
	CacheColumnKey *cols;
	bool *wanted; /* [column] to be built in the current range */
	int ngroups;
	HeapBuilder **builders; /* [group of columns] */
};

const char *
fill_unsupported_reason(Relation rel)
{
	if (rel->rd_tableam != GetHeapamTableAmRoutine())
		return "the table's access method is not heap";
	return proof_unsupported_reason(rel);
}

/* Returns whether the table still has the column unchanged. */
static bool
column_is_unchanged(TupleDesc desc, const CacheColumnKey *col)
{
	CacheColumnKey key;

	return col->attno > 0 && col->attno <= desc->natts &&
		heap_build_key(desc, col->attno, col->scale, &key) && cache_column_equal(&key, col);
}

/* Returns whether a column of this attribute has been collected. */
static bool
has_column(const TableFill *fill, AttrNumber attno)
{
	for (int c = 0; c < fill->ncols; c++)
		if (fill->cols[c].attno == attno)
			return true;
	return false;
}

/* Sets the columns: the requested ones, then others that have chunks and are unchanged. */
static void
collect_columns(TableFill *fill, int nrequested, const CacheColumnKey *requested)
{
	CacheColumnKey *cached;
	int ncached = cache_table_columns(fill->table, &cached);

	fill->cols = palloc((nrequested + ncached + 1) * sizeof(CacheColumnKey));
	fill->wanted = palloc((nrequested + ncached + 1) * sizeof(bool));
	if (nrequested > 0)
		memcpy(fill->cols, requested, nrequested * sizeof(CacheColumnKey));
	fill->nrequested = fill->ncols = nrequested;
	for (int i = 0; i < ncached; i++)
		if (column_is_unchanged(RelationGetDescr(fill->rel), &cached[i]) &&
			!has_column(fill, cached[i].attno))
			fill->cols[fill->ncols++] = cached[i];
	pfree(cached);
}

/* Returns the number of columns of a group. */
static int
group_size(const TableFill *fill, int group)
{
	return Min(GROUP_COLUMNS, fill->ncols - group * GROUP_COLUMNS);
}

TableFill *
fill_begin(Relation rel, Snapshot snapshot, CacheTable *table, int nrequested,
		   const CacheColumnKey *requested)
{
	TableFill *fill = palloc0(sizeof(TableFill));

	fill->rel = rel;
	fill->table = table;
	collect_columns(fill, nrequested, requested);
	/* Neither counted as a sequential scan nor locked for predicates: it returns no rows. */
	fill->scan = rel->rd_tableam->scan_begin(rel, snapshot, 0, NULL, NULL, SO_ALLOW_STRAT);
	fill->nblocks = ((HeapScanDesc) fill->scan)->rs_nblocks;
	fill->ngroups = (fill->ncols + GROUP_COLUMNS - 1) / GROUP_COLUMNS;
	fill->builders = palloc((fill->ngroups + 1) * sizeof(HeapBuilder *));
	for (int g = 0; g < fill->ngroups; g++)
	{
		fill->builders[g] =
			heap_builder_create(rel, table, group_size(fill, g), fill->cols + g * GROUP_COLUMNS);
		heap_builder_start(fill->builders[g], (HeapScanDesc) fill->scan);
	}
	proof_begin(&fill->proof, (HeapScanDesc) fill->scan);
	return fill;
}

void
fill_end(TableFill *fill)
{
	proof_end(&fill->proof);
	table_endscan(fill->scan);
}

BlockNumber
fill_blocks(const TableFill *fill)
{
	return fill->nblocks;
}

bool
fill_is_full(const TableFill *fill)
{
	for (int g = 0; g < fill->ngroups; g++)
		if (heap_builder_full(fill->builders[g]))
			return true;
	return false;
}

/* Returns the number of blocks of a range. */
static int
range_size(const TableFill *fill, uint32 number)
{
	return Min(CACHE_RANGE_BLOCKS, fill->nblocks - number * CACHE_RANGE_BLOCKS);
}

/* Returns the first group with a column to be built; -1 if there is none. */
static int
first_wanted_group(const TableFill *fill)
{
	for (int c = 0; c < fill->ncols; c++)
		if (fill->wanted[c])
			return c / GROUP_COLUMNS;
	return -1;
}

bool
fill_range(TableFill *fill, uint32 number, bool prove)
{
	int nblocks = range_size(fill, number);
	CachePin *pin = cache_pin(fill->table, number, fill->ncols, fill->cols);
	CacheBlocks proved;
	int group;
	bool replaced = false;

	if (pin && prove)
		proof_range(&fill->proof, pin, 0, nblocks, &proved);
	for (int c = 0; c < fill->ncols; c++)
		fill->wanted[c] = c < fill->nrequested || (pin && pin->chunks[c]);
	for (int g = 0; g < fill->ngroups; g++)
		heap_builder_select(fill->builders[g], fill->wanted + g * GROUP_COLUMNS);
	group = first_wanted_group(fill);
	if (pin && group >= 0 && cache_range_stale(pin->range, nblocks) > 0)
		replaced = heap_build_again(fill->builders[group], &fill->proof, pin, nblocks);
	else if (pin)
		cache_unpin(pin);
	for (int g = 0; g < fill->ngroups; g++)
	{
		uint64 built = 0;

		pin = cache_pin(fill->table, number, group_size(fill, g), fill->cols + g * GROUP_COLUMNS);
		pin = heap_build_range(fill->builders[g], &fill->proof, pin, number, nblocks, &built);
		if (pin)
			cache_unpin(pin);
	}
	return replaced;
}

int
fill_served(TableFill *fill, uint32 number, uint64 *rows)
{
	CachePin *pin = cache_pin(fill->table, number, fill->nrequested, fill->cols);
	int served = 0;

	if (pin == NULL)
		return 0;
	served = Min(pin->range->nblocks, range_size(fill, number)) -
		(int) pg_atomic_read_u32(&pin->range->ndead);
	for (int c = 0; c < fill->nrequested; c++)
		if (pin->chunks[c] == NULL)
			served = 0;
	if (served > 0)
		*rows += pin->range->nrows;
	cache_unpin(pin);
	return Max(served, 0);
}

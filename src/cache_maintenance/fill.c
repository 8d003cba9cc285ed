/*
 * fill.c
 *	  Reads ranges of one table into the column cache.
 *
 * Columns are built some at a time, as a range of a hundred columns is as much as a process may
 * well hold in memory at once.
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
#include "cache_maintenance/fill.h"

/* Columns that are built at once. */
#define GROUP_COLUMNS 100

struct TableFill
{
	Relation rel;
	CacheTable *table;
	TableScanDesc scan;
	BlockNumber nblocks;
	Proof proof;
	int nasked;
	int ncols; /* those asked for, and then others of which there are chunks */
	CacheColumnKey *cols;
	bool *wanted; /* [column] in the range at hand */
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

/* Does the table still have the column, as it was? */
static bool
is_column(TupleDesc desc, const CacheColumnKey *col)
{
	CacheColumnKey key;

	return col->attno > 0 && col->attno <= desc->natts &&
		heap_build_key(desc, col->attno, col->scale, &key) && cache_column_equal(&key, col);
}

static bool
has_column(const TableFill *fill, AttrNumber attno)
{
	for (int c = 0; c < fill->ncols; c++)
		if (fill->cols[c].attno == attno)
			return true;
	return false;
}

static void
collect_columns(TableFill *fill, int nasked, const CacheColumnKey *asked)
{
	CacheColumnKey *cached;
	int ncached = cache_table_columns(fill->table, &cached);

	fill->cols = palloc((nasked + ncached + 1) * sizeof(CacheColumnKey));
	fill->wanted = palloc((nasked + ncached + 1) * sizeof(bool));
	if (nasked > 0)
		memcpy(fill->cols, asked, nasked * sizeof(CacheColumnKey));
	fill->nasked = fill->ncols = nasked;
	for (int i = 0; i < ncached; i++)
		if (is_column(RelationGetDescr(fill->rel), &cached[i]) &&
			!has_column(fill, cached[i].attno))
			fill->cols[fill->ncols++] = cached[i];
	pfree(cached);
}

/* The number of columns of a group. */
static int
group_size(const TableFill *fill, int group)
{
	return Min(GROUP_COLUMNS, fill->ncols - group * GROUP_COLUMNS);
}

TableFill *
fill_begin(Relation rel, Snapshot snapshot, CacheTable *table, int nasked,
		   const CacheColumnKey *asked)
{
	TableFill *fill = palloc0(sizeof(TableFill));

	fill->rel = rel;
	fill->table = table;
	collect_columns(fill, nasked, asked);
	/* neither counted as a sequential scan nor locked for predicates: no rows come of it */
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

/* The number of blocks of a range. */
static int
range_size(const TableFill *fill, uint32 number)
{
	return Min(CACHE_RANGE_BLOCKS, fill->nblocks - number * CACHE_RANGE_BLOCKS);
}

/* The first group of which some column is wanted; -1: there is none. */
static int
first_group(const TableFill *fill)
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
		fill->wanted[c] = c < fill->nasked || (pin && pin->chunks[c]);
	for (int g = 0; g < fill->ngroups; g++)
		heap_builder_ask(fill->builders[g], fill->wanted + g * GROUP_COLUMNS);
	group = first_group(fill);
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
	CachePin *pin = cache_pin(fill->table, number, fill->nasked, fill->cols);
	int served = 0;

	if (pin == NULL)
		return 0;
	served = Min(pin->range->nblocks, range_size(fill, number)) -
		(int) pg_atomic_read_u32(&pin->range->ndead);
	for (int c = 0; c < fill->nasked; c++)
		if (pin->chunks[c] == NULL)
			served = 0;
	if (served > 0)
		*rows += pin->range->nrows;
	cache_unpin(pin);
	return Max(served, 0);
}

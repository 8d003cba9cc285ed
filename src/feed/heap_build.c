/*
 * heap_build.c
 *
 * Adds ranges of a table's blocks to the column cache.
 *
 * A range is read block by block, as any scan would read it. The columns of all visible rows are
 * decoded, whatever the query's conditions are. Where the range has no descriptor yet, settled
 * pages are taken (cache/proof.c); with a descriptor, pages whose LSN is the descriptor's. The
 * visibility map is read before the pages.
 *
 * Memory: a builder keeps the memory of its chunk builders from range to range.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/tableam.h"
#include "access/tupdesc_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "cache/chunk.h"
#include "cache/refresh.h"
#include "feed/heap_build.h"
#include "spec.h"

/* A range is not worth a descriptor if more than one block in so many is not settled. */
#define MIN_SETTLED_SHARE 4

struct HeapBuilder
{
	CacheTable *table;
	int ncols;
	CacheColumnKey *cols;
	HeapScan scan;
	HeapDecoder *decoder;
	HeapColumns columns;
	ExprSet *set;
	Vec **vecs;            /* [column] */
	ChunkBuilder **chunks; /* [column] */
	bool *selected;        /* [column] see heap_builder_select() */
	bool *wanted;          /* [column] the current range lacks it, so it is built */
	bool full;             /* the cache had no memory */
	HeapPage page;
	HeapRows rows;
	BlockNumber blocks[CACHE_RANGE_BLOCKS];
	CacheRange range; /* the new descriptor */
};

/* Returns a hash of the attribute's missing value; 0: older rows have NULL. */
static uint32
hash_missing(TupleDesc desc, int a)
{
	Form_pg_attribute att = TupleDescAttr(desc, a);
	struct AttrMissing *missing = desc->constr ? desc->constr->missing : NULL;

	if (!att->atthasmissing || missing == NULL || !missing[a].am_present)
		return 0;
	return datum_image_hash(missing[a].am_value, att->attbyval, att->attlen) | 1;
}

/*
 * Returns whether the attribute was added in the current transaction. If that aborts, another
 * attribute may get its number, and its missing value may have the same hash.
 */
static bool
is_new_attribute(Form_pg_attribute att)
{
	HeapTuple tuple =
		SearchSysCache2(ATTNUM, ObjectIdGetDatum(att->attrelid), Int16GetDatum(att->attnum));
	bool new;

	if (!HeapTupleIsValid(tuple))
		return true;
	new = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
	ReleaseSysCache(tuple);
	return new;
}

bool
heap_build_key(TupleDesc desc, AttrNumber attno, int16 scale, CacheColumnKey *key)
{
	Form_pg_attribute att = TupleDescAttr(desc, attno - 1);
	int16 declared;

	if (att->attisdropped || att->attlen == -2)
		return false;
	key->attno = attno;
	key->typid = att->atttypid;
	key->typmod = att->atttypmod;
	key->missing = hash_missing(desc, attno - 1);
	if (key->missing != 0 && is_new_attribute(att))
		return false;
	key->scale = -1;
	if (scale >= 0 && getBaseType(att->atttypid) == NUMERICOID &&
		heap_build_type(desc, key, &declared) == COLUMN_DATUM)
		key->scale = scale;
	return true;
}

ColumnType
heap_build_type(TupleDesc desc, const CacheColumnKey *key, int16 *scale)
{
	Form_pg_attribute att = TupleDescAttr(desc, key->attno - 1);

	*scale = key->scale;
	return key->scale >= 0 ? COLUMN_DEC : spec_column_type(att->atttypid, att->atttypmod, scale);
}

HeapBuilder *
heap_builder_create(Relation rel, CacheTable *table, int ncols, const CacheColumnKey *cols)
{
	HeapBuilder *builder = palloc0(sizeof(HeapBuilder));
	TupleDesc desc = RelationGetDescr(rel);

	builder->scan.rel = rel;
	builder->scan.whole_tuples = true;
	builder->table = table;
	builder->ncols = ncols;
	builder->cols = palloc(sizeof(CacheColumnKey) * ncols);
	memcpy(builder->cols, cols, sizeof(CacheColumnKey) * ncols);
	builder->page.buffer = InvalidBuffer;
	builder->set = expr_set_create(NULL, desc, 1, NULL);
	builder->vecs = palloc(sizeof(Vec *) * ncols);
	builder->chunks = palloc(sizeof(ChunkBuilder *) * ncols);
	builder->wanted = palloc(sizeof(bool) * ncols);
	builder->selected = palloc(sizeof(bool) * ncols);
	memset(builder->selected, true, sizeof(bool) * ncols);
	for (int c = 0; c < ncols; c++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, cols[c].attno - 1);
		int16 scale = 0;
		ColumnType type = heap_build_type(desc, &cols[c], &scale);
		Var *var = makeVar(1, cols[c].attno, att->atttypid, att->atttypmod, att->attcollation, 0);

		builder->vecs[c] = expr_add_column_root(builder->set, var, type, scale, 0)->vec;
		builder->chunks[c] = chunk_builder_create(type, scale, att->attlen, att->attbyval,
												  att->attalign, CurrentMemoryContext);
	}
	builder->decoder = heap_decoder_create(desc);
	heap_columns_init(builder->decoder, &builder->columns, builder->set, 0);
	return builder;
}

void
heap_builder_start(HeapBuilder *builder, HeapScanDesc scan)
{
	builder->scan.scan = scan;
	builder->full = false;
}

void
heap_builder_select(HeapBuilder *builder, const bool *selected)
{
	memcpy(builder->selected, selected, sizeof(bool) * builder->ncols);
}

bool
heap_builder_full(const HeapBuilder *builder)
{
	return builder->full;
}

/* ---- reading pages ------------------------------------------------------------ */

/*
 * Adds the current page's numerics of column c that decimals cannot represent. The vector has
 * pointers to them in place of values. first_row: the page's first row in the range.
 */
static void
add_exceptions(HeapBuilder *builder, int c, uint32 first_row)
{
	const Vec *vec = builder->vecs[c];

	for (int i = 0; i < builder->rows.n; i++)
		if (vec->state[i] == VEC_FALLBACK)
			chunk_builder_exception(builder->chunks[c], first_row + i,
									(Datum) ((const gpuagg_i128 *) vec->values)[i]);
}

/* Adds the rows of the current page, which become rows of the range from first_row on. */
static void
add_page(HeapBuilder *builder, uint32 first_row)
{
	HeapPage *page = &builder->page;
	HeapRows *rows = &builder->rows;

	rows->n = page->ntuples;
	rows->repeated = false;
	for (int i = 0; i < rows->n; i++)
		rows->tuple[i] = i;
	memcpy(rows->data, page->data, rows->n * sizeof(uint16));
	builder->decoder->reached = 0;
	heap_columns_fill(builder->decoder, &builder->columns, &builder->scan, page, rows);
	for (int c = 0; c < builder->ncols; c++)
	{
		Vec *vec = builder->vecs[c];

		if (!builder->wanted[c])
			continue;
		chunk_builder_add(builder->chunks[c], vec->values, vec->all_values ? NULL : vec->state,
						  rows->n);
		if (vec->type == COLUMN_DEC && !vec->all_values)
			add_exceptions(builder, c, first_row);
	}
}

/*
 * Adds n NULL rows in place of a changed block's rows to each chunk that is being built. Readers do
 * not use them.
 */
static void
add_unused(HeapBuilder *builder, int n)
{
	static const uint64 zero[EXPR_ROWS * 2];
	uint8 state[EXPR_ROWS];

	memset(state, VEC_NULL, sizeof(state));
	for (; n > 0; n -= Min(n, EXPR_ROWS))
		for (int c = 0; c < builder->ncols; c++)
			if (builder->wanted[c])
				chunk_builder_add(builder->chunks[c], zero, state, Min(n, EXPR_ROWS));
}

/* Makes the scan read the first nblocks blocks of a range, and empties the chunk builders. */
static void
start_range(HeapBuilder *builder, Proof *proof, uint32 number, int nblocks)
{
	builder->scan.proof = proof;
	builder->scan.newest = InvalidFullTransactionId;
	for (int i = 0; i < nblocks; i++)
		builder->blocks[i] = number * CACHE_RANGE_BLOCKS + i;
	heap_scan_set_list(&builder->scan, builder->blocks, nblocks);
	for (int c = 0; c < builder->ncols; c++)
		chunk_builder_reset(builder->chunks[c]);
}

/* Reads the next block of the range into builder->page; returns false at the end. */
static bool
read_block(HeapBuilder *builder)
{
	return heap_scan_read_page(&builder->scan, &builder->page);
}

/*
 * Reads all blocks of a range without a descriptor, and makes one. Returns false as soon as too
 * many blocks are not settled for the range to be worth it.
 */
static bool
read_new_range(HeapBuilder *builder, Proof *proof, uint32 number, int nblocks)
{
	CacheRange *range = &builder->range;
	MapView view;
	CacheBlocks dead = {0};
	int ndead = 0;
	int most_dead = nblocks / MIN_SETTLED_SHARE;

	memset(range, 0, sizeof(*range));
	range->first = number * CACHE_RANGE_BLOCKS;
	range->nblocks = nblocks;
	proof_read_map(proof, range->first, nblocks, &view);
	for (int i = 0; i < 2; i++)
		pg_atomic_init_u64(&range->map_lsn[i], view.lsn[i]);
	for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
		pg_atomic_init_u64(&range->visible[w], view.visible.word[w]);
	start_range(builder, proof, number, nblocks);
	for (int i = 0; i < nblocks && ndead <= most_dead && read_block(builder); i++)
	{
		HeapPage *page = &builder->page;

		range->rows[i] = range->nrows;
		range->lsn[i] = page->lsn;
		pg_atomic_init_u32(&range->buffer[i], page->buffer);
		if (!page->settled)
		{
			cache_blocks_add(&dead, i);
			ndead++;
			continue;
		}
		if (page->ntuples > 0)
			add_page(builder, range->nrows);
		range->nrows += page->ntuples;
	}
	for (int i = nblocks; i <= CACHE_RANGE_BLOCKS; i++)
		range->rows[i] = range->nrows;
	range->newest = builder->scan.newest;
	for (int w = 0; w < CACHE_BLOCK_WORDS; w++)
		pg_atomic_init_u64(&range->dead[w], dead.word[w]);
	pg_atomic_init_u32(&range->ndead, ndead);
	heap_builder_stop(builder);
	return ndead <= most_dead;
}

/*
 * Reads the blocks of a range that has a descriptor, for columns that it lacks. Blocks that have
 * changed since are marked dead.
 */
static void
read_known_range(HeapBuilder *builder, Proof *proof, CachePin *pin)
{
	CacheRange *range = pin->range;
	CacheBlocks changed = {0};

	start_range(builder, proof, range->first / CACHE_RANGE_BLOCKS, range->nblocks);
	for (int i = 0; i < range->nblocks && read_block(builder); i++)
	{
		HeapPage *page = &builder->page;
		int n = range->rows[i + 1] - range->rows[i];

		if (n == 0)
			continue;
		if (page->lsn == range->lsn[i] && page->ntuples == n)
			add_page(builder, range->rows[i]);
		else
		{
			cache_blocks_add(&changed, i);
			add_unused(builder, n);
		}
	}
	cache_mark_dead(pin, &changed);
	heap_builder_stop(builder);
}

void
heap_builder_stop(HeapBuilder *builder)
{
	heap_page_release(&builder->page);
	heap_scan_stop(&builder->scan);
}

/* ---- publishing ----------------------------------------------------------------- */

/*
 * Publishes the chunks that were built, in the pinned range. Sets builder->full and stops if
 * the cache has no memory for one.
 */
static void
publish_chunks(HeapBuilder *builder, CachePin *pin)
{
	for (int c = 0; c < builder->ncols; c++)
	{
		size_t size;
		CacheChunk *chunk;

		if (!builder->wanted[c])
			continue;
		size = chunk_builder_size(builder->chunks[c]);
		chunk = cache_alloc_chunk(pin, &builder->cols[c], size);
		if (chunk == NULL)
		{
			builder->full = true;
			return;
		}
		chunk_builder_write(builder->chunks[c], chunk);
		cache_publish_chunk(pin, c, &builder->cols[c], chunk);
	}
}

/*
 * Returns whether a range has the same blocks, rows and LSNs as the one that this builder has just
 * read, so that the builder's chunks fit it.
 */
static bool
is_ours(HeapBuilder *builder, const CacheRange *range)
{
	return range->nblocks == builder->range.nblocks && range->nrows == builder->range.nrows &&
		memcmp(range->lsn, builder->range.lsn, sizeof(range->lsn)) == 0 &&
		memcmp(range->rows, builder->range.rows, sizeof(range->rows)) == 0;
}

/* Sets wanted[] for the columns that the range lacks; returns false if there are none. */
static bool
find_missing_columns(HeapBuilder *builder, const CachePin *pin)
{
	bool any = false;

	for (int c = 0; c < builder->ncols; c++)
	{
		builder->wanted[c] = builder->selected[c] && (pin == NULL || pin->chunks[c] == NULL);
		any |= builder->wanted[c];
	}
	return any;
}

CachePin *
heap_build_range(HeapBuilder *builder, Proof *proof, CachePin *pin, uint32 number, int nblocks,
				 uint64 *built)
{
	if (!find_missing_columns(builder, pin) || builder->full)
		return pin;
	if (pin)
	{
		if (pin->range->nblocks > nblocks ||
			!FullTransactionIdPrecedes(pin->range->newest, proof->xmin))
			return pin;
		read_known_range(builder, proof, pin);
	}
	else
	{
		bool ours;

		if (!read_new_range(builder, proof, number, nblocks))
			return NULL;
		ours = cache_publish_range(builder->table, number, &builder->range, NULL);
		pin = cache_pin(builder->table, number, builder->ncols, builder->cols);
		/* Neither ours nor another backend's: the cache has no memory. */
		builder->full = !ours && pin == NULL;
		if (pin == NULL || !is_ours(builder, pin->range))
			return pin;
	}
	*built += nblocks;
	publish_chunks(builder, pin);
	return pin;
}

bool
heap_build_again(HeapBuilder *builder, Proof *proof, CachePin *old, int nblocks)
{
	CacheRange *range = old->range;
	uint32 number = range->first / CACHE_RANGE_BLOCKS;
	CachePin *pin = NULL;
	bool replaced = false;

	memcpy(builder->wanted, builder->selected, sizeof(bool) * builder->ncols);
	if (!builder->full && read_new_range(builder, proof, number, nblocks) &&
		cache_range_stale(&builder->range, nblocks) < cache_range_stale(range, nblocks))
		replaced = cache_publish_range(builder->table, number, &builder->range, range);
	/* The new chunks may need the old range's memory. */
	cache_unpin(old);
	if (replaced)
		pin = cache_pin(builder->table, number, builder->ncols, builder->cols);
	if (pin == NULL)
		return replaced;
	if (is_ours(builder, pin->range))
		publish_chunks(builder, pin);
	cache_unpin(pin);
	return replaced;
}

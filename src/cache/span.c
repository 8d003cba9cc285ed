/*
 * span.c
 *
 * Summaries of spans; see span.h.
 */
#include "postgres.h"

#include <math.h>

#include "cache/proof.h"
#include "cache/span.h"
#include "cache/store_internal.h"

/*
 * Returns the only entry in which a span's summary may be, and its lock. The entry may be empty or
 * have the summary of another span. Spans of one table have consecutive entries.
 */
static StoredSpan *
find_entry(CacheTable *table, uint32 number, LWLock **lock)
{
	uint32 i = (uint32) ((table->serial * UINT64CONST(0x9E3779B97F4A7C15) >> 32) + number) %
		cache_shared->nspans;

	*lock = &cache_shared->range_locks[i % CACHE_RANGE_LOCKS].lock;
	return &cache_shared->spans[i];
}

bool
cache_span_read(CacheTable *table, uint32 number, CacheSpan *span)
{
	LWLock *lock;
	StoredSpan *entry = find_entry(table, number, &lock);
	bool found;

	LWLockAcquire(lock, LW_SHARED);
	found = entry->serial == table->serial &&
		entry->span.first == number * (BlockNumber) CACHE_SPAN_BLOCKS;
	if (found)
		memcpy(span, &entry->span,
			   offsetof(CacheSpan, cols) + entry->span.ncols * sizeof(CacheSpanColumn));
	LWLockRelease(lock);
	return found;
}

/* ---- making a summary ---------------------------------------------------------------- */

void
cache_span_begin(CacheSpan *span, uint32 number, int ncols, const CacheColumnKey *cols)
{
	memset(span, 0, sizeof(CacheSpan));
	span->first = number * (BlockNumber) CACHE_SPAN_BLOCKS;
	span->ncols = Min(ncols, CACHE_SPAN_COLUMNS);
	for (int c = 0; c < span->ncols; c++)
	{
		span->cols[c].key = cols[c];
		span->cols[c].only_nulls = true;
	}
}

uint64
cache_span_digest(uint64 digest, uint64 stamp)
{
	digest = (digest ^ stamp) * UINT64CONST(0x9E3779B97F4A7C15);
	return digest ^ digest >> 29;
}

/* Extends the bounds of a column's summary to a chunk's bounds. */
static void
widen_bounds(CacheSpanColumn *col, const CacheChunk *chunk)
{
	if (col->only_nulls)
	{
		col->least = chunk->least;
		col->greatest = chunk->greatest;
	}
	else if (column_is_float(col->type))
	{
		/* NaN is greater than all numbers */
		if (isnan(col->least.number) || chunk->least.number < col->least.number)
			col->least = chunk->least;
		if (isnan(chunk->greatest.number) || chunk->greatest.number > col->greatest.number)
			col->greatest = chunk->greatest;
	}
	else
	{
		col->least.integer = Min(col->least.integer, chunk->least.integer);
		col->greatest.integer = Max(col->greatest.integer, chunk->greatest.integer);
	}
}

/* Adds a chunk to the summary of its column. first: it is of the span's first range. */
static void
add_chunk(CacheSpanColumn *col, const CacheChunk *chunk, bool first)
{
	if (first)
	{
		col->type = chunk->type;
		col->scale = chunk->scale;
	}
	col->exceptions |=
		chunk->nexceptions > 0 || chunk->type != col->type || chunk->scale != col->scale;
	col->nulls |= chunk->nnulls > 0;
	if (chunk->nnulls == chunk->nrows)
		return;
	if (chunk->has_bounds && !col->exceptions)
		widen_bounds(col, chunk);
	else
		col->unbounded = true;
	col->only_nulls = false;
}

bool
cache_span_add(CacheSpan *span, CachePin *pin)
{
	CacheRange *range = pin->range;

	if (range->first != span->first + span->nblocks || span->nblocks % CACHE_RANGE_BLOCKS != 0 ||
		!proof_record_span(span, range))
		return false;
	for (int c = 0; c < span->ncols; c++)
		if (pin->chunks[c] == NULL)
			return false;
	for (int c = 0; c < span->ncols; c++)
		add_chunk(&span->cols[c], pin->chunks[c], span->nranges == 0);
	span->digest = cache_span_digest(span->digest, range->stamp);
	span->nranges++;
	span->nblocks += range->nblocks;
	span->nrows += range->nrows;
	if (FullTransactionIdPrecedes(span->newest, range->newest))
		span->newest = range->newest;
	return true;
}

/* Adds columns of the previous summary of the same ranges, as far as there is room. */
static void
keep_columns(CacheSpan *span, const CacheSpan *before)
{
	for (int b = 0; b < before->ncols && span->ncols < CACHE_SPAN_COLUMNS; b++)
	{
		bool there = false;

		for (int c = 0; c < span->ncols; c++)
			there |= cache_column_equal(&span->cols[c].key, &before->cols[b].key);
		if (!there)
			span->cols[span->ncols++] = before->cols[b];
	}
}

void
cache_span_publish(CacheTable *table, CacheSpan *span)
{
	LWLock *lock;
	StoredSpan *entry = find_entry(table, span->first / CACHE_SPAN_BLOCKS, &lock);

	span->id = pg_atomic_fetch_add_u64(&cache_shared->next_stamp, 1);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	if (entry->serial == table->serial && entry->span.first == span->first &&
		entry->span.digest == span->digest && entry->span.nranges == span->nranges &&
		entry->span.nblocks == span->nblocks)
	{
		/* the same ranges */
		span->id = entry->span.id;
		keep_columns(span, &entry->span);
	}
	entry->serial = table->serial;
	entry->span = *span;
	LWLockRelease(lock);
}

/* ---- using it --------------------------------------------------------------------------- */

bool
cache_span_chunk(const CacheSpan *span, const CacheColumnKey *col, CacheChunk *chunk)
{
	for (int c = 0; c < span->ncols; c++)
	{
		const CacheSpanColumn *known = &span->cols[c];

		if (!cache_column_equal(&known->key, col))
			continue;
		memset(chunk, 0, sizeof(CacheChunk));
		chunk->nrows = span->nrows;
		chunk->nnulls = known->only_nulls ? span->nrows : known->nulls;
		chunk->nexceptions = known->exceptions;
		chunk->type = known->type;
		chunk->scale = known->scale;
		chunk->has_bounds = !known->unbounded && !known->only_nulls;
		chunk->least = known->least;
		chunk->greatest = known->greatest;
		return true;
	}
	return false;
}

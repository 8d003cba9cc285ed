/*
 * value_chunks.c
 *	  Percentiles of one group, of which each participant of a parallel plan has many values.
 *
 * A participant exports its codes in chunks. A block of codes is divided into chunks by codes of a
 * sample: each code of a chunk is less than all codes of the block's next chunk. A chunk has
 * bounds: no code of it is outside of them. The participant that imports chunks leaves their codes
 * in the files, and divides its own codes in the same way. The bounds of all chunks tell between
 * which codes the value of a rank lies. Only chunks with such codes are read, which are few.
 *
 * In an export a block is CHUNKS in place of a group and the number of chunks, the bounds of these,
 * and their codes.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "common/compat.h"
#include "common/interruptible.h"
#include "groups/spill.h"
#include "groups/value_store_internal.h"
#include "operators/select.h"

/* Fewer values are exported as they are. */
#define LEAST_VALUES 65536
/* Codes of a block take up to 1/BLOCK_SHARE of the memory. */
#define BLOCK_SHARE 8
#define LEAST_BLOCK 8192
#define MOST_BLOCK (1024 * 1024)
/* Codes of a chunk in the mean, and most chunks of a block, a power of 2. */
#define CHUNK_CODES 1024
#define MOST_CHUNKS 256
/* Chunks are kept if their heads take no more than this share of the memory. */
#define HEADS_SHARE 4
/* Codes of the sample for each chunk. */
#define SAMPLE_SHARE 4

/* A block of codes, and room to divide it. */
typedef struct CodeBlock
{
	uint64 *codes;
	uint64 *divided; /* the codes, one chunk after another */
	uint8 *chunk_of; /* [code] */
	int64 n;
	int64 size;
	GroupSink *sink; /* where chunks go; NULL: to the store's own ones */
} CodeBlock;

/* ---- dividing codes --------------------------------------------------------------- */

static int
compare_codes(const void *a, const void *b)
{
	uint64 x = *(const uint64 *) a, y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/*
 * Sets first[]: the least code that may be in each chunk but chunk 0, in ascending order, and
 * PG_UINT64_MAX from the returned number on. A code that is frequent in the sample has a chunk of
 * its own.
 */
static int
choose_bounds(const CodeBlock *block, uint64 *first)
{
	uint64 sample[MOST_CHUNKS * SAMPLE_SHARE];
	int most = (int) Min(Max(block->n / CHUNK_CODES, 2), MOST_CHUNKS);
	int size = most * SAMPLE_SHARE;
	int n = 0;

	for (int i = 0; i < size; i++)
		sample[i] = block->codes[block->n * i / size];
	qsort(sample, size, sizeof(uint64), compare_codes);
	for (int i = SAMPLE_SHARE; i < size && n < most - 2; i += SAMPLE_SHARE)
	{
		uint64 code = sample[i];

		if (n == 0 || first[n - 1] < code)
			first[n++] = code;
		if (sample[i - 1] == code && code < PG_UINT64_MAX && first[n - 1] == code)
			first[n++] = code + 1;
	}
	for (int i = n; i < MOST_CHUNKS; i++)
		first[i] = PG_UINT64_MAX;
	return n;
}

/* Returns how many of the ascending bounds are at most `code`. */
static inline int
find_chunk(const uint64 *first, uint64 code)
{
	const uint64 *at = first;

	/* without branches, which would be mispredicted */
	for (int step = MOST_CHUNKS / 2; step > 0; step /= 2)
		at += (size_t) step * (at[step - 1] <= code);
	return (int) (at - first);
}

/* Divides the codes of a block into chunks; returns their number, and sets their heads. */
static int
divide_block(CodeBlock *block, ChunkHead *heads)
{
	uint64 first[MOST_CHUNKS];
	int64 at[MOST_CHUNKS];
	int n = choose_bounds(block, first) + 1;
	int used = 0;
	int64 sum = 0;

	for (int c = 0; c < n; c++)
		heads[c] =
			(ChunkHead){c == 0 ? 0 : first[c - 1], c == n - 1 ? PG_UINT64_MAX : first[c] - 1, 0};
	INTERRUPTIBLE_FOR (i, 0, block->n)
	{
		int chunk = Min(find_chunk(first, block->codes[i]), n - 1);

		block->chunk_of[i] = chunk;
		heads[chunk].n++;
	}
	for (int c = 0; c < n; c++)
	{
		at[c] = sum;
		sum += heads[c].n;
	}
	INTERRUPTIBLE_FOR (i, 0, block->n)
		block->divided[at[block->chunk_of[i]]++] = block->codes[i];
	for (int c = 0; c < n; c++)
		if (heads[c].n > 0)
			heads[used++] = heads[c];
	return used;
}

/* ---- writing chunks ---------------------------------------------------------------- */

/* Returns whether n more chunks may be kept: see HEADS_SHARE. */
static bool
has_room(const ValueStore *store, int n)
{
	return (store->chunks->nheads + n) * sizeof(ChunkHead) <= store->mem_limit / HEADS_SHARE;
}

/* Adds the heads of a block to the store. Its codes are in a file, at the given place. */
static void
keep_block(ValueStore *store, const ChunkHead *heads, int n, BufFile *file, int fileno,
		   off_t offset)
{
	ValueChunks *chunks = store->chunks;

	if (chunks->nheads + n > chunks->most_heads)
	{
		chunks->most_heads = Max(2 * chunks->most_heads, chunks->nheads + n);
		chunks->heads = repalloc_huge(chunks->heads, chunks->most_heads * sizeof(ChunkHead));
	}
	if (chunks->nblocks == chunks->most_blocks)
	{
		chunks->most_blocks *= 2;
		chunks->blocks = repalloc_huge(chunks->blocks, chunks->most_blocks * sizeof(ChunkBlock));
	}
	chunks->blocks[chunks->nblocks++] =
		(ChunkBlock){file, fileno, offset, chunks->nheads, chunks->nheads + n};
	memcpy(chunks->heads + chunks->nheads, heads, n * sizeof(ChunkHead));
	chunks->nheads += n;
	for (int c = 0; c < n; c++)
		chunks->codes += heads[c].n;
}

/* Makes the store's list of chunks, if it has none. */
static void
begin_chunks(ValueStore *store)
{
	ValueChunks *chunks = store->chunks;

	if (chunks)
		return;
	store->chunks = chunks = MemoryContextAllocZero(store->cxt, sizeof(ValueChunks));
	chunks->most_heads = MOST_CHUNKS;
	chunks->most_blocks = 16;
	chunks->heads = MemoryContextAlloc(store->cxt, chunks->most_heads * sizeof(ChunkHead));
	chunks->blocks = MemoryContextAlloc(store->cxt, chunks->most_blocks * sizeof(ChunkBlock));
}

/* Writes the codes of a block as chunks, and empties it. Returns false if there are too many. */
static bool
write_block(ValueStore *store, CodeBlock *block)
{
	ValueChunks *chunks = store->chunks;
	ChunkHead heads[MOST_CHUNKS];
	int n;

	if (block->n == 0)
		return true;
	n = divide_block(block, heads);
	if (block->sink)
	{
		uint32 begin[2] = {VALUE_CHUNKS, n};

		block->sink->write(block->sink, begin, sizeof(begin));
		block->sink->write(block->sink, heads, n * sizeof(ChunkHead));
		block->sink->write(block->sink, block->divided, block->n * sizeof(uint64));
	}
	else
	{
		int fileno;
		off_t offset;

		if (!has_room(store, n))
			return false;
		BufFileTell(chunks->own, &fileno, &offset);
		BufFileWrite(chunks->own, block->divided, block->n * sizeof(uint64));
		keep_block(store, heads, n, chunks->own, fileno, offset);
	}
	block->n = 0;
	return true;
}

/*
 * Adds codes to a block, and writes it if it is full. Returns false if there are too many chunks.
 */
static bool
add_codes(ValueStore *store, CodeBlock *block, const uint64 *codes, uint32 n)
{
	memcpy(block->codes + block->n, codes, n * sizeof(uint64));
	block->n += n;
	return block->n < block->size || write_block(store, block);
}

/* Writes all codes of the store, in its lists and files, as chunks of one group. */
static bool
write_chunks(ValueStore *store, GroupSink *sink)
{
	CodeBlock block = {.sink = sink};
	uint64 codes[LAST_NODE];
	const uint64 *node;
	uint32 group, n;
	bool all = true;

	block.size =
		Max(Min(store->mem_limit / BLOCK_SHARE / (2 * sizeof(uint64)), MOST_BLOCK), LEAST_BLOCK);
	block.codes = MemoryContextAlloc(store->cxt, (block.size + LAST_NODE) * sizeof(uint64));
	block.divided = MemoryContextAlloc(store->cxt, (block.size + LAST_NODE) * sizeof(uint64));
	block.chunk_of = MemoryContextAlloc(store->cxt, block.size + LAST_NODE);
	for (uint32 g = 0; g < store->ngroups; g++)
	{
		NodeScan scan = scan_nodes(&store->groups[g]);

		while (all && (n = next_node(&scan, &node)) > 0)
			all = add_codes(store, &block, node, n);
	}
	for (int p = 0; p < store->npartitions; p++)
	{
		partition_rewind(store->partitions[p].file);
		while (all && values_read_codes(store->partitions[p].file, &group, codes, &n))
			all = add_codes(store, &block, codes, n);
	}
	all = all && write_block(store, &block);
	pfree(block.codes);
	pfree(block.divided);
	pfree(block.chunk_of);
	return all;
}

bool
values_export_chunks(ValueStore *store, GroupSink *sink, const ExportGroups *groups)
{
	if (!store->by_chunks || groups->nparts > 1 || value_store_count(store) < LEAST_VALUES)
		return false;
	(void) write_chunks(store, sink);
	store->divided = true;
	return true;
}

/* ---- reading chunks ---------------------------------------------------------------- */

/* Reads n codes at the current place of a file, and appends them to the list of group 0. */
static void
append_codes_of_file(ValueStore *store, BufFile *file, int64 n)
{
	uint64 codes[LAST_NODE];

	while (n > 0)
	{
		uint32 some = (uint32) Min(n, LAST_NODE);

		CHECK_FOR_INTERRUPTS();
		compat_read_file(file, codes, some * sizeof(uint64), false);
		values_append_run(store, 0, codes, some);
		n -= some;
	}
}

/* Sets a file to the place of a block's codes. */
static void
seek_block(const ChunkBlock *block, off_t codes)
{
	if (BufFileSeek(block->file, block->fileno, block->offset + codes * (off_t) sizeof(uint64),
					SEEK_SET) != 0)
		ereport(
			ERROR,
			(errcode_for_file_access(), errmsg("could not seek in temporary file of aggregation")));
}

void
values_load_chunks(ValueStore *store)
{
	ValueChunks *chunks = store->chunks;

	if (chunks == NULL)
		return;
	store->chunks = NULL;
	store->by_chunks = false;
	for (int64 b = 0; b < chunks->nblocks; b++)
	{
		const ChunkBlock *block = &chunks->blocks[b];
		int64 n = 0;

		if (block->file == chunks->own)
			continue; /* these codes are in lists or files, too */
		for (int64 c = block->first; c < block->end; c++)
			n += chunks->heads[c].n;
		seek_block(block, 0);
		append_codes_of_file(store, block->file, n);
	}
	values_free_chunks(chunks);
}

bool
values_import_chunks(ValueStore *store, GroupSource *source, const ChunkHead *heads, int n)
{
	BufFile *file;
	int fileno;
	off_t offset;
	int64 codes = 0;

	for (int c = 0; c < n; c++)
		codes += heads[c].n;
	if (!store->by_chunks || source->skip == NULL)
		return false;
	begin_chunks(store);
	if (!has_room(store, n))
	{
		/* there are too many chunks; values_begin_chunks merges all codes */
		store->by_chunks = false;
		return false;
	}
	file = source->skip(source, codes * sizeof(uint64), &fileno, &offset);
	source->taken = file;
	keep_block(store, heads, n, file, fileno, offset);
	return true;
}

/* ---- values of ranks ---------------------------------------------------------------- */

/* A bound of chunks, and how many codes chunks with lesser ones have. */
typedef struct ChunkBound
{
	uint64 code;
	int64 before;
} ChunkBound;

static int
compare_bounds(const void *a, const void *b, void *arg)
{
	return compare_codes(&((const ChunkBound *) a)->code, &((const ChunkBound *) b)->code);
}

/* Returns the lower or the upper bounds of all chunks, in ascending order. */
static ChunkBound *
sort_bounds(const ValueChunks *chunks, bool upper)
{
	ChunkBound *bounds = palloc_extended(chunks->nheads * sizeof(ChunkBound), MCXT_ALLOC_HUGE);
	int64 before = 0;

	INTERRUPTIBLE_FOR (c, 0, chunks->nheads)
		bounds[c] =
			(ChunkBound){upper ? chunks->heads[c].max : chunks->heads[c].min, chunks->heads[c].n};
	qsort_interruptible(bounds, chunks->nheads, sizeof(ChunkBound), compare_bounds, NULL);
	INTERRUPTIBLE_FOR (c, 0, chunks->nheads)
	{
		int64 n = bounds[c].before;

		bounds[c].before = before;
		before += n;
	}
	return bounds;
}

/* Returns the last of n bounds before which there are at most `rank` codes. */
static int64
bound_of_rank(const ChunkBound *bounds, int64 n, int64 rank)
{
	int64 from = 0;

	/* the first bound has no codes before it */
	while (n - from > 1)
	{
		int64 middle = from + (n - from) / 2;

		if (bounds[middle].before <= rank)
			from = middle;
		else
			n = middle;
	}
	return from;
}

/* Codes of neighbouring ranks, and the chunks that may have them. */
typedef struct RankRange
{
	const int64 *ranks;
	int m;
	uint64 min, max; /* no code of these ranks is outside */
	int64 before;    /* codes of chunks below, which are not read */
	int64 n;         /* codes of the chunks that are read */
} RankRange;

/* Counts the codes of chunks below the range, and of those that overlap it. */
static void
count_range(const ValueChunks *chunks, RankRange *range)
{
	range->before = range->n = 0;
	INTERRUPTIBLE_FOR (c, 0, chunks->nheads)
	{
		const ChunkHead *head = &chunks->heads[c];

		range->before += head->max < range->min ? head->n : 0;
		range->n += head->max >= range->min && head->min <= range->max ? head->n : 0;
	}
}

/* Reads the chunks of a range, into `codes` or else to a new file, which is returned. */
static BufFile *
read_range(ValueStore *store, const RankRange *range, uint64 *codes)
{
	const ValueChunks *chunks = store->chunks;
	BufFile *file = NULL;
	uint64 some[LAST_NODE];
	int64 n = 0;

	for (int64 b = 0; b < chunks->nblocks; b++)
	{
		const ChunkBlock *block = &chunks->blocks[b];
		int64 at = 0;

		CHECK_FOR_INTERRUPTS();
		for (int64 c = block->first; c < block->end; at += chunks->heads[c++].n)
		{
			const ChunkHead *head = &chunks->heads[c];

			if (head->max < range->min || head->min > range->max)
				continue;
			CHECK_FOR_INTERRUPTS();
			seek_block(block, at);
			if (codes)
			{
				compat_read_file(block->file, codes + n, head->n * sizeof(uint64), false);
				n += head->n;
				continue;
			}
			for (int64 left = head->n; left > 0;)
			{
				uint32 next = (uint32) Min(left, LAST_NODE);

				CHECK_FOR_INTERRUPTS();
				compat_read_file(block->file, some, next * sizeof(uint64), false);
				values_write_codes(store, &file, 0, some, next);
				left -= next;
			}
		}
	}
	return file;
}

/* Sets found[] for the ranks of a range. */
static void
fetch_range(ValueStore *store, RankRange *range, uint64 *found)
{
	count_range(store->chunks, range);
	if (range->min == range->max)
		for (int i = 0; i < range->m; i++)
			found[i] = range->min;
	else if (range->n * (int64) (2 * sizeof(uint64)) <= (int64) store->mem_limit)
	{
		values_reserve_codes(store, range->n);
		(void) read_range(store, range, store->codes);
		select_ranks(store->codes, store->spare, range->n, range->ranks, range->before, range->m,
					 found);
	}
	else
	{
		BufFile *file = read_range(store, range, NULL);
		int64 *ranks = palloc(range->m * sizeof(int64));

		for (int i = 0; i < range->m; i++)
			ranks[i] = range->ranks[i] - range->before;
		values_fetch_large(store, file, range->n, ranks, range->m, found, NULL);
		BufFileClose(file);
		pfree(ranks);
	}
}

bool
values_begin_chunks(ValueStore *store)
{
	ValueChunks *chunks = store->chunks;
	MemoryContext old;

	if (chunks == NULL)
		return false;
	old = MemoryContextSwitchTo(store->cxt);
	chunks->own = BufFileCreateTemp(false);
	MemoryContextSwitchTo(old);
	if (!store->by_chunks || !write_chunks(store, NULL))
	{
		values_load_chunks(store);
		return false;
	}
	return true;
}

void
values_fetch_chunks(ValueStore *store, const int64 *ranks, int m, uint64 *found)
{
	MemoryContext old = MemoryContextSwitchTo(store->value_cxt);
	const ValueChunks *chunks = store->chunks;
	ChunkBound *lower = sort_bounds(chunks, false);
	ChunkBound *upper = sort_bounds(chunks, true);

	for (int i = 0, next; i < m; i = next)
	{
		RankRange range = {.ranks = ranks + i};

		range.min = lower[bound_of_rank(lower, chunks->nheads, ranks[i])].code;
		range.max = upper[bound_of_rank(upper, chunks->nheads, ranks[i])].code;
		for (next = i + 1; next < m; next++)
		{
			if (lower[bound_of_rank(lower, chunks->nheads, ranks[next])].code > range.max)
				break;
			range.max = upper[bound_of_rank(upper, chunks->nheads, ranks[next])].code;
		}
		range.m = next - i;
		fetch_range(store, &range, found + i);
	}
	MemoryContextSwitchTo(old);
}

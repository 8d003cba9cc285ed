/*
 * value_large.c
 *	  Values of given ranks, and modes, of one group whose values exceed the memory.
 *
 * The group's codes are in a file. A first pass finds their range, a second counts the codes in
 * BUCKETS equal parts of it. Neighbouring buckets form ranges, and a third pass writes a file for
 * each range that has a wanted rank (for a mode: for each range). A range that fits into memory is
 * finished there; others are divided in the same way. So most codes are read three times for a
 * rank, and few are written.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "common/interruptible.h"
#include "groups/spill.h"
#include "groups/value_store_internal.h"
#include "operators/select.h"

/* Equal parts of a file's range, in which its codes are counted. */
#define BUCKETS 4096
/* Most ranges, of several buckets each, that a file is divided into. */
#define MAX_RANGES 64

typedef struct LargeGroup
{
	ValueStore *store;
	const int64 *ranks;
	int m;           /* number of ranks */
	int next;        /* index in ranks[] of the next rank to be found */
	int64 before;    /* codes less than all codes of the current file */
	uint64 *found;   /* [m] codes of the ranks */
	ValueRuns *runs; /* for a mode; or NULL */
	int64 capacity;  /* codes that fit into memory */
	int max_ranges;  /* most ranges that a file is divided into */
} LargeGroup;

/* Codes of one file. `raw`: they may be dictionary codes, not yet replaced by ranks. */
typedef struct CodeFile
{
	BufFile *file;
	bool raw;
	int64 n;         /* codes in the file */
	uint64 min, max; /* the least and the greatest one */
} CodeFile;

/* A range of codes: one or more adjacent buckets. */
typedef struct CodeRange
{
	CodeFile to;
	bool wanted;     /* the range has a wanted rank, or there is a mode to find */
	bool single;     /* all codes are to.min */
	uint64 *buffer;  /* codes that are not in the file yet; NULL: none are written */
	uint32 buffered; /* their number */
} CodeRange;

/* Reads the next codes of a file, at most LAST_NODE; returns their number, or 0 at its end. */
static uint32
read_codes(LargeGroup *large, CodeFile *from, uint64 *codes)
{
	const uint32 *rank_of = large->store->rank_of;
	uint32 group, n;

	CHECK_FOR_INTERRUPTS();
	if (!values_read_codes(from->file, &group, codes, &n))
		return 0;
	for (uint32 i = 0; i < n && from->raw && rank_of; i++)
		codes[i] = rank_of[codes[i]];
	return n;
}

/*
 * Processes n equal codes, which follow all codes before: counts them for the mode, and sets
 * found[] for the wanted ranks among them.
 */
static void
finish_equal_codes(LargeGroup *large, uint64 code, int64 n)
{
	if (large->runs)
		values_add_run(large->store, large->runs, code, n);
	for (; large->next < large->m && large->ranks[large->next] < large->before + n; large->next++)
		large->found[large->next] = code;
	large->before += n;
}

/*
 * Processes all codes of a file, which follow all codes before, in memory: counts them for the
 * mode, and sets found[] for the wanted ranks among them.
 */
static void
finish_in_memory(LargeGroup *large, CodeFile *from)
{
	ValueStore *store = large->store;
	uint64 *codes;
	int64 n = 0;
	int end = large->next;

	values_reserve_codes(store, from->n + LAST_NODE);
	codes = store->codes;
	partition_rewind(from->file);
	for (uint32 more; (more = read_codes(large, from, codes + n)) > 0;)
		n += more;
	while (end < large->m && large->ranks[end] < large->before + n)
		end++;
	if (large->runs)
	{
		values_sort_codes(codes, store->spare, n);
		INTERRUPTIBLE_FOR (i, 0, n)
			values_add_run(store, large->runs, codes[i], 1);
		for (int i = large->next; i < end; i++)
			large->found[i] = codes[large->ranks[i] - large->before];
	}
	else
		select_ranks(codes, store->spare, n, large->ranks + large->next, large->before,
					 end - large->next, large->found + large->next);
	large->next = end;
	large->before += n;
}

/*
 * Divides the buckets into ranges of adjacent ones, with at most `target` codes unless one bucket
 * has more. A bucket is 1 << shift values wide and has counts[bucket] codes. Sets ranges[], and
 * range_of[bucket] to the index of its range. Returns the number of ranges.
 */
static int
make_ranges(LargeGroup *large, const CodeFile *from, const int64 *counts, int shift,
			CodeRange *ranges, uint8 *range_of)
{
	int64 target = Max(large->capacity, from->n / (large->max_ranges / 2));
	int64 before = large->before;
	int next = large->next;
	int n = 0;

	for (int p = 0; p < BUCKETS; n++)
	{
		CodeRange *range = &ranges[n];
		int first = p;

		memset(range, 0, sizeof(*range));
		while (p < BUCKETS && (p == first || range->to.n + counts[p] <= target))
		{
			range_of[p] = n;
			range->to.n += counts[p++];
		}
		range->single = shift == 0 && p == first + 1;
		range->to.min = range->single ? from->min + first : PG_UINT64_MAX;
		range->wanted = range->to.n > 0 &&
			(large->runs || (next < large->m && large->ranks[next] < before + range->to.n));
		before += range->to.n;
		while (next < large->m && large->ranks[next] < before)
			next++;
	}
	return n;
}

/* Writes the buffered codes of a range to its file. */
static void
flush_range_buffer(LargeGroup *large, CodeRange *range)
{
	if (range->buffered > 0)
		values_write_codes(large->store, &range->to.file, 0, range->buffer, range->buffered);
	range->buffered = 0;
}

/* Writes the codes of each wanted range to a file of its own. */
static void
write_ranges(LargeGroup *large, CodeFile *from, int shift, CodeRange *ranges, int nranges,
			 const uint8 *range_of)
{
	uint64 codes[LAST_NODE];
	uint32 n;

	for (int r = 0; r < nranges; r++)
		if (ranges[r].wanted && !ranges[r].single)
			ranges[r].buffer = palloc(LAST_NODE * sizeof(uint64));
	partition_rewind(from->file);
	while ((n = read_codes(large, from, codes)) > 0)
		for (uint32 i = 0; i < n; i++)
		{
			CodeRange *range = &ranges[range_of[(codes[i] - from->min) >> shift]];

			if (range->buffer == NULL)
				continue;
			range->to.min = Min(range->to.min, codes[i]);
			range->to.max = Max(range->to.max, codes[i]);
			range->buffer[range->buffered++] = codes[i];
			if (range->buffered == LAST_NODE - 1)
				flush_range_buffer(large, range);
		}
	for (int r = 0; r < nranges; r++)
		if (ranges[r].buffer)
		{
			flush_range_buffer(large, &ranges[r]);
			pfree(ranges[r].buffer);
		}
}

/* Divides the codes of a file into ranges, and processes these in ascending order. */
static void
divide_by_range(LargeGroup *large, CodeFile *from)
{
	/* two adjacent ranges together have more codes than the target */
	CodeRange *ranges = palloc((2 * large->max_ranges + 2) * sizeof(CodeRange));
	uint8 *range_of = palloc(BUCKETS);
	int64 *counts = palloc0(BUCKETS * sizeof(int64));
	uint64 codes[LAST_NODE];
	uint32 n;
	int nranges, shift = 0;

	while ((from->max - from->min) >> shift >= BUCKETS)
		shift++;
	partition_rewind(from->file);
	while ((n = read_codes(large, from, codes)) > 0)
		for (uint32 i = 0; i < n; i++)
			counts[(codes[i] - from->min) >> shift]++;
	nranges = make_ranges(large, from, counts, shift, ranges, range_of);
	pfree(counts);
	write_ranges(large, from, shift, ranges, nranges, range_of);
	pfree(range_of);
	for (int r = 0; r < nranges; r++)
	{
		CodeFile *to = &ranges[r].to;

		if (!ranges[r].wanted)
			large->before += to->n;
		else if (ranges[r].single || to->min == to->max)
			finish_equal_codes(large, to->min, to->n);
		else if (to->n <= large->capacity)
			finish_in_memory(large, to);
		else
			divide_by_range(large, to);
		if (to->file)
			BufFileClose(to->file);
	}
	pfree(ranges);
}

void
values_fetch_large(ValueStore *store, BufFile *file, int64 n, const int64 *ranks, int m,
				   uint64 *found, ValueRuns *runs)
{
	MemoryContext old = MemoryContextSwitchTo(store->value_cxt);
	LargeGroup large = {.store = store, .ranks = ranks, .m = m, .found = found, .runs = runs};
	CodeFile from = {.file = file, .raw = true, .n = n, .min = PG_UINT64_MAX};
	uint64 codes[LAST_NODE];
	uint32 some;

	large.capacity = Max(store->mem_limit / (2 * sizeof(uint64)), 2 * LAST_NODE);
	large.max_ranges =
		(int) Max(4, Min(MAX_RANGES, store->mem_limit / 4 / (BLCKSZ + LAST_NODE * sizeof(uint64))));
	partition_rewind(file);
	while ((some = read_codes(&large, &from, codes)) > 0)
		for (uint32 i = 0; i < some; i++)
		{
			from.min = Min(from.min, codes[i]);
			from.max = Max(from.max, codes[i]);
		}
	if (from.min == from.max)
		finish_equal_codes(&large, from.min, n);
	else if (n <= large.capacity)
		finish_in_memory(&large, &from);
	else
		divide_by_range(&large, &from);
	MemoryContextSwitchTo(old);
}

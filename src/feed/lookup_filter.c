/*
 * lookup_filter.c
 *	  A filter before a hash table of integers: says of most keys that no row has them, without
 *	  looking into the table.
 *
 * It is a Bloom filter of blocks (F. Putze, P. Sanders, J. Singler, "Cache-, Hash- and
 * Space-Efficient Bloom Filters", 2007): a hash of the key chooses a word and three bits in it.  It
 * has 8 to 16 bits for each row, so it stays in a cache where the table does not, and one load
 * decides.
 *
 * It pays only if most keys have no row.  So it is made when many keys have been sought in the
 * table in vain, and is not used while most keys are found.  Each process makes its own.
 */
#include "postgres.h"

#include "executor/nodeHash.h"
#include "utils/memutils.h"

#include "common/interruptible.h"
#include "feed/lookup_internal.h"

/* The filter is judged after so many keys. */
#define WINDOW 65536
/* It is used if at most this share of the keys of a window was found. */
#define MOST_FOUND 0.5
/* It is made after at least one key in vain for so many rows, which take longer to be added. */
#define ROWS_PER_VAIN_KEY 4
/* A word has the bits of about so many rows. */
#define ROWS_PER_WORD 8

/* Makes the filter, unless that exceeds the memory. */
static void
make_filter(Lookup *lookup)
{
	LookupFilter *filter = &lookup->filter;
	uint64 nwords = pg_nextpower2_64(Max(lookup->nrows / ROWS_PER_WORD, 1));

	if (lookup->bytes + nwords * sizeof(uint64) > get_hash_memory_limit())
	{
		filter->refused = true;
		return;
	}
	filter->words = MemoryContextAllocExtended(lookup->cxt, nwords * sizeof(uint64),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	filter->mask = nwords - 1;
	INTERRUPTIBLE_FOR (row, 0, lookup->nrows)
	{
		uint64 hash = hash_fold(lookup->seed, (uint64) lookup->integers[row]);

		filter->words[lookup_filter_word(filter, hash)] |= lookup_filter_bits(hash);
	}
}

void
lookup_adapt_filter(Lookup *lookup, int sought, int found)
{
	LookupFilter *filter = &lookup->filter;

	if (lookup->form != LOOKUP_INTEGERS || lookup->bits != NULL || filter->refused)
		return;
	filter->sought += sought;
	filter->found += found;
	if (filter->sought < WINDOW)
		return;
	if (filter->words == NULL)
		filter->vain += filter->sought - filter->found;
	filter->used = filter->found <= filter->sought * MOST_FOUND;
	filter->sought = filter->found = 0;
	if (filter->used && filter->words == NULL)
	{
		if (filter->vain >= lookup->nrows / ROWS_PER_VAIN_KEY)
			make_filter(lookup);
		filter->used = filter->words != NULL;
	}
}

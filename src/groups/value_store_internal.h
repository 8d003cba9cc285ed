/*
 * value_store_internal.h
 *	  The store of values: what its files share.
 *
 * value_store.c takes values in, in chains and files; value_sort.c has them in sorts;
 * value_groups.c hands out groups, with value_modes.c, and value_large.c for those that are more
 * than the memory; value_exchange.c writes values for other stores and reads theirs.
 */
#ifndef GPUAGG_VALUE_STORE_INTERNAL_H
#define GPUAGG_VALUE_STORE_INTERNAL_H

#include "postgres.h"

#include "executor/tuptable.h"
#include "storage/buffile.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

#include "groups/dictionary.h"
#include "groups/value_store.h"

/*
 * Words of a group's first chunk and of its largest ones; the first word is the address of the next
 * chunk.
 */
#define FIRST_CHUNK 8
#define LAST_CHUNK 512

/* The codes of a group. */
typedef struct GroupCodes
{
	uint64 *at;    /* where the next one goes */
	uint64 *end;   /* of the last chunk */
	uint64 *first; /* chunk */
	int64 before;  /* codes in chunks before the last */
	uint32 words;  /* of the last chunk; 0: none */
} GroupCodes;

/* Memory of chunks. */
typedef struct Slab
{
	uint64 *words;
	size_t size;
} Slab;

/* A file of codes: of the groups first, first + stride, ... */
typedef struct ValuePart
{
	BufFile *file; /* NULL: no codes */
	int64 codes;
	uint64 stride;
	uint64 first;
} ValuePart;

struct ValueStore
{
	const ValuesSpec *spec;
	ColumnSpec col;
	MemoryContext parent;
	MemoryContext cxt; /* all that value_store_reset frees */
	size_t mem_limit;
	int batch_rows;
	GroupCodes *groups;
	uint32 ngroups;    /* that there are chains for */
	uint32 max_groups; /* that there is room for */
	Slab *slabs;
	int nslabs;
	int slab;         /* from which chunks are taken */
	size_t slab_used; /* words of it */
	size_t used;      /* words of all */

	/* values without codes; those that are not varlenas are wrapped into one (wrap_value) */
	Dictionary *dict;
	bool wraps;
	int32 *dict_codes; /* of a batch */
	uint32 *dict_hashes;
	Column wrapped;
	char *wrappers;
	uint32 *rank_of; /* [code]: place in the order */
	Datum *by_rank;
	uint32 *class_of; /* [rank]: the first rank of an equal value */

	/* beyond memory: codes by group */
	int nparts;     /* 0: none; group g is in part g % nparts */
	int nall_parts; /* with those that others were divided into, on their way out */
	ValuePart *parts;
	/* the dictionary is full, or of no use */
	bool exported;     /* others import its values */
	double first_look; /* after so many values: do they repeat? */
	int64 looked_up;
	int64 next_look;      /* 0: not begun */
	int look_from;        /* values of the dictionary at the last look */
	bool sorting;         /* all values are in sorts */
	Tuplesortstate **own; /* [group]: its values */
	uint32 nown;
	uint32 most_own;
	Tuplesortstate *sort; /* of all other groups, by group and value; NULL: none */
	TupleDesc desc;
	TupleTableSlot *in;
	TupleTableSlot *out;
	int64 *sort_counts; /* [group] */
	uint32 sort_groups; /* it has room for */
	uint64 spilled;

	/* groups out */
	uint32 nall;
	int part;      /* that is being read */
	uint64 stride; /* its groups: first, first + stride, ... */
	uint64 first;
	uint32 next_local; /* its next one of these */
	uint32 nlocal;
	uint64 *codes; /* of the group, in one place, and as many more */
	uint64 *spare;
	int64 codes_size;
	bool streams;     /* the part is in sorts */
	bool large;       /* the part is one group, too large for the memory, and in its file */
	int64 group_n;    /* of the group at hand, */
	int64 group_read; /* and how many were read from its sort */
	uint32 local;
	SortSupportData ssup;
	MemoryContext value_cxt; /* values of the group, and what comparisons leave */
};

/* A value that is no varlena, as one whose data are aligned. */
#define WRAPPER_BYTES 8

/* ---- chains of codes ------------------------------------------------------------ */

/* Makes chains for groups below n. */
extern void values_reserve_groups(ValueStore *store, uint32 n);
/* Adds a chunk. */
extern void values_extend_chain(ValueStore *store, GroupCodes *group);
/* Forgets all codes, and keeps the memory. */
extern void values_clear(ValueStore *store);
/* The same, and frees it. */
extern void values_free(ValueStore *store);
/* Makes room for n codes in store->codes, and as many in store->spare. */
extern void values_reserve_codes(ValueStore *store, int64 n);

static inline void
append_code(ValueStore *store, uint32 g, uint64 code)
{
	GroupCodes *group = &store->groups[g];

	if (unlikely(group->at == group->end))
		values_extend_chain(store, group);
	*group->at++ = code;
}

static inline int64
count_codes(const GroupCodes *group)
{
	return group->words == 0 ? 0 : group->before + (group->at - (group->end - group->words) - 1);
}

/* Visits the chunks of a group. */
typedef struct ChunkScan
{
	const uint64 *chunk;
	uint32 words;
	int64 left; /* codes */
} ChunkScan;

static inline ChunkScan
scan_chunks(const GroupCodes *group)
{
	ChunkScan scan = {group->first, FIRST_CHUNK, count_codes(group)};

	return scan;
}

/* The next codes; 0 at the end. */
static inline uint32
next_chunk(ChunkScan *scan, const uint64 **codes)
{
	uint32 n = (uint32) Min(scan->left, scan->words - 1);

	if (n == 0)
		return 0;
	*codes = scan->chunk + 1;
	scan->left -= n;
	if (scan->left > 0)
		scan->chunk = (const uint64 *) (uintptr_t) scan->chunk[0];
	scan->words = Min(scan->words * 2, LAST_CHUNK);
	return n;
}

/* ---- values and codes --------------------------------------------------------- */

extern Datum values_of_code(const ValueStore *store, uint64 code);
/* A value of the dictionary. */
extern Datum values_of_dictionary(const ValueStore *store, int32 code);
extern size_t values_wrapped_length(const ValueStore *store, Datum value);
extern Datum values_wrap(const ValueStore *store, char *to, Datum value);
extern Datum values_unwrap(const ValueStore *store, Datum wrapped);

/* ---- sorts and files ------------------------------------------------------------ */

/* From now on all values go to sorts; those of groups below n, if these are few, to their own. */
extern void values_begin_sorts(ValueStore *store, uint32 n);
extern void values_end_sorts(ValueStore *store);
/* Puts a value of the group into its sort, and counts it. */
extern void values_sort(ValueStore *store, uint32 group, Datum value);
/* No more values come, of groups below n. */
extern void values_finish_sorts(ValueStore *store, uint32 n);
/*
 * The next value of the group at hand, valid until the one after or, of groups with sorts of their
 * own, allocated in the current context; and what it is abbreviated to, or 0.  False at its end.
 */
extern bool values_read_sorted(ValueStore *store, Datum *value, Datum *abbreviated);
/* Passes over n values of the group at hand; over all that are left of it. */
extern void values_skip_sorted(ValueStore *store, int64 n);
extern void values_end_sorted(ValueStore *store);
/* Moves all codes to files. */
extern void values_flush(ValueStore *store);
/* Reads the next run of a file; false at its end. */
extern bool values_read_run(BufFile *file, uint32 *group, uint64 *codes, uint32 *n);
extern void values_rewind(BufFile *file);
/* Before some values: moves those that are there to files if memory is used up. */
extern void values_make_room(ValueStore *store, uint32 n);

/* ---- groups out ------------------------------------------------------------------ */

/* Runs of equal values, in their order. */
typedef struct ValueRuns
{
	uint64 code; /* the first of the run */
	int64 n;
	int64 best[2]; /* the longest; of several the first and the last one */
	uint64 mode[2];
} ValueRuns;

/* Adds n equal codes, no less than those before. */
extern void values_add_run(const ValueStore *store, ValueRuns *runs, uint64 code, int64 n);
/* After all: mode[0] and mode[1] as in value_store_fetch. */
extern void values_end_runs(const ValueStore *store, ValueRuns *runs, Datum *mode);
/* The same of codes in one place, which may be sorted by it. */
extern void values_find_mode(ValueStore *store, uint64 *codes, int64 n, Datum *mode);
extern void values_sort_codes(uint64 *codes, int64 n);
/*
 * found[i] = the code of rank ranks[i] among the n of one group in a file; adds all of them to
 * runs, unless that is NULL.
 */
extern void values_fetch_large(ValueStore *store, BufFile *file, int64 n, const int64 *ranks, int m,
							   uint64 *found, ValueRuns *runs);

#endif /* GPUAGG_VALUE_STORE_INTERNAL_H */

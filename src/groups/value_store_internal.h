/*
 * value_store_internal.h
 *	  What the files of the store of values share.
 *
 *	value_store.c		takes values, in lists in memory and in files
 *	value_sort.c		keeps values in core's tuplesort instead
 *	value_groups.c		returns groups and their values of given ranks
 *	value_modes.c		finds the most frequent values
 *	value_large.c		finds both in groups that exceed the memory
 *	value_chunks.c		percentiles of one group, without merging the values of all participants
 *	value_exchange.c	writes values for other stores, and reads theirs
 */
#ifndef GPUAGG_VALUE_STORE_INTERNAL_H
#define GPUAGG_VALUE_STORE_INTERNAL_H

#include "postgres.h"

#include "executor/tuptable.h"
#include "storage/buffile.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

#include "groups/value_dictionary.h"
#include "groups/value_store.h"

/*
 * A group's codes are in a linked list of nodes. A node's first word is the address of the next
 * node, the others are codes. Each node is twice as long as the one before, from FIRST_NODE to
 * LAST_NODE words.
 */
#define FIRST_NODE 8
#define LAST_NODE 512

/* The codes of a group, as a list of nodes. */
typedef struct GroupCodes
{
	uint64 *at;    /* where the next code goes, in the last node */
	uint64 *end;   /* end of the last node */
	uint64 *first; /* the first node */
	int64 before;  /* codes in the nodes before the last one */
	uint32 words;  /* size of the last node; 0: there is no node */
} GroupCodes;

/* A block of memory for nodes. */
typedef struct Slab
{
	uint64 *words;
	size_t size; /* in words */
} Slab;

/* A file of codes, for the groups first, first + stride, first + 2 * stride, ... */
typedef struct ValuePartition
{
	BufFile *file; /* NULL: no codes */
	int64 codes;   /* number of codes in the file */
	uint64 stride;
	uint64 first;
} ValuePartition;

/* Codes that are less than those of their block's next chunk: their bounds, and their number. */
typedef struct ChunkHead
{
	uint64 min, max;
	int64 n;
} ChunkHead;

/* A block of codes in a file, one chunk after another. */
typedef struct ChunkBlock
{
	BufFile *file;
	int fileno; /* place of the first code */
	off_t offset;
	int64 first, end; /* its chunks: heads first .. end - 1 */
} ChunkBlock;

/* Codes of one group in files, from several participants (value_chunks.c). */
typedef struct ValueChunks
{
	ChunkHead *heads;
	int64 nheads;
	int64 most_heads;
	ChunkBlock *blocks;
	int64 nblocks;
	int64 most_blocks;
	int64 codes;  /* in all chunks */
	BufFile *own; /* the file with the codes of this store; NULL: not written yet */
} ValueChunks;

struct ValueStore
{
	const ValuesSpec *spec;
	ColumnSpec col; /* the column that the values come from */
	MemoryContext parent;
	MemoryContext cxt; /* deleted by value_store_reset */
	size_t mem_limit;  /* bytes */
	int batch_rows;
	GroupCodes *groups; /* [group, or index of a group in the partition that was read] */
	uint32 ngroups;     /* groups that have lists */
	uint32 max_groups;  /* groups that there is room for */
	Slab *slabs;
	int nslabs;
	int slab;         /* the slab from which nodes are allocated now */
	size_t slab_used; /* its words in use */
	size_t used;      /* words in use in all slabs */

	/*
	 * Values without codes. The dictionary has varlenas only; other values are wrapped into one
	 * (values_wrap).
	 */
	Dictionary *dict;
	bool wraps;        /* values are not varlenas */
	int32 *dict_codes; /* [row of a batch] */
	uint32 *dict_hashes;
	Column wrapped; /* the wrapped values of a batch, which are in wrappers */
	char *wrappers;
	uint32 *rank_of;  /* [dictionary code] rank in the order of values */
	Datum *by_rank;   /* [rank] the value */
	uint32 *class_of; /* [rank] the first rank of an equal value */

	/* Above the memory limit: codes by group, in files. */
	int npartitions;     /* 0: no files; group g is in partition g % npartitions */
	int nall_partitions; /* including those that a partition was divided into on output */
	ValuePartition *partitions;
	/* The dictionary is full, or of no use: values are sorted. */
	bool exported;              /* other participants import the values */
	bool percentiles;           /* all values are of one group: by_chunks may be true */
	bool by_chunks;             /* chunks of others stay in their files */
	bool divided;               /* chunks were written or imported, for EXPLAIN */
	ValueChunks *chunks;        /* imported chunks; NULL: none */
	double first_check;         /* number of values after which to check whether they repeat */
	int64 looked_up;            /* values looked up in the dictionary so far */
	int64 next_check;           /* 0: no check so far */
	int check_from;             /* size of the dictionary at the last check */
	bool sorting;               /* all values are in sorts */
	Tuplesortstate **own_sorts; /* [group] the sort of its values */
	uint32 nown_sorts;
	uint32 max_own_sorts;        /* own_sorts are used if there are no more groups than this */
	Tuplesortstate *shared_sort; /* for all other groups, by group and value; NULL: none */
	TupleDesc desc;              /* the tuples of shared_sort: group, value */
	TupleTableSlot *sort_in;
	TupleTableSlot *sort_out;
	int64 *sort_counts; /* [group] number of its values in sorts */
	uint32 sort_groups; /* allocated entries of sort_counts */
	uint64 sorted;      /* the sum of these counts */
	uint64 spilled;     /* bytes written to files, for EXPLAIN */

	/* Output: groups one after the other. */
	uint32 nall;   /* groups in all partitions */
	int partition; /* the partition that is being read */
	uint64 stride; /* its groups are first, first + stride, ... */
	uint64 first;
	uint32 next_local; /* the next one of its groups, as an index */
	uint32 nlocal;     /* groups of the partition */
	uint64 *codes;     /* the codes of the current group */
	uint64 *spare;     /* an array of the same size, for select_ranks */
	int64 codes_size;  /* allocated codes in each of them */
	bool in_sorts;     /* the groups being read are in sorts */
	bool in_chunks;    /* the only group is in chunks */
	bool large;       /* the partition is one group that exceeds the memory; it stays in its file */
	int64 group_n;    /* values of the current group */
	int64 group_read; /* values of the current group that were read from its sort */
	uint32 local;     /* index of the current group in the partition */
	SortSupportData ssup;    /* compares values */
	MemoryContext value_cxt; /* values of the current group, and what comparisons allocate */
};

/* Header of a wrapped value, so that the data after it are aligned. */
#define WRAPPER_BYTES 8

/* ---- lists of codes ------------------------------------------------------------ */

/* Makes lists for groups below n. */
extern void values_reserve_groups(ValueStore *store, uint32 n);
/* Adds a node to a group's list. */
extern void values_extend_list(ValueStore *store, GroupCodes *group);
/* Forgets all codes, and keeps the memory. */
extern void values_clear(ValueStore *store);
/* Forgets all codes, and frees the memory. */
extern void values_free(ValueStore *store);
/* Makes room for n codes in store->codes, and in store->spare. Their contents are lost. */
extern void values_reserve_codes(ValueStore *store, int64 n);

/* Appends a code to the list of group g, which must be below store->ngroups. */
static inline void
append_code(ValueStore *store, uint32 g, uint64 code)
{
	GroupCodes *group = &store->groups[g];

	if (unlikely(group->at == group->end))
		values_extend_list(store, group);
	*group->at++ = code;
}

/* Returns the number of codes in a group's list. */
static inline int64
count_codes(const GroupCodes *group)
{
	return group->words == 0 ? 0 : group->before + (group->at - (group->end - group->words) - 1);
}

/* An iterator over the nodes of a group. */
typedef struct NodeScan
{
	const uint64 *node;
	uint32 words;
	int64 left; /* codes not visited yet */
} NodeScan;

static inline NodeScan
scan_nodes(const GroupCodes *group)
{
	NodeScan scan = {group->first, FIRST_NODE, count_codes(group)};

	return scan;
}

/* Returns the number of the next node's codes, and sets *codes; 0 at the end. */
static inline uint32
next_node(NodeScan *scan, const uint64 **codes)
{
	uint32 n = (uint32) Min(scan->left, scan->words - 1);

	if (n == 0)
		return 0;
	*codes = scan->node + 1;
	scan->left -= n;
	if (scan->left > 0)
		scan->node = (const uint64 *) (uintptr_t) scan->node[0];
	scan->words = Min(scan->words * 2, LAST_NODE);
	return n;
}

/* ---- values and codes --------------------------------------------------------- */

/* Returns the value of a code. For values in a dictionary, `code` is the value's rank. */
extern Datum values_decode(const ValueStore *store, uint64 code);
/* Returns the value of a dictionary code. */
extern Datum values_of_dict_code(const ValueStore *store, int32 code);
/* Returns the bytes of a value in its wrapper, without the header of WRAPPER_BYTES. */
extern size_t values_wrapped_length(const ValueStore *store, Datum value);
/* Writes a value as a varlena to *to, which has room for it, and returns it. */
extern Datum values_wrap(const ValueStore *store, char *to, Datum value);
/* Returns the value in a wrapper; the argument itself if values are varlenas. */
extern Datum values_unwrap(const ValueStore *store, Datum wrapped);

/* ---- sorts and files ------------------------------------------------------------ */

/*
 * From now on, all values go to sorts. Groups below n have sorts of their own, if n is small
 * enough.
 */
extern void values_begin_sorts(ValueStore *store, uint32 n);
/* Frees all sorts. */
extern void values_end_sorts(ValueStore *store);
/* Puts a value of the group into its sort, and counts it. */
extern void values_sort(ValueStore *store, uint32 group, Datum value);
/* Ends the input of the sorts. All groups are below n. */
extern void values_finish_sorts(ValueStore *store, uint32 n);
/*
 * Reads the next value of the current group; false at its end. The value of a group with its own
 * sort is allocated in the current context; others are valid until the next call. *abbreviated is
 * its abbreviated key, or 0.
 */
extern bool values_read_sorted(ValueStore *store, Datum *value, Datum *abbreviated);
/*
 * values_skip_sorted skips n values of the current group in its sort; values_skip_remaining skips
 * all that are left.
 */
extern void values_skip_sorted(ValueStore *store, int64 n);
extern void values_skip_remaining(ValueStore *store);
/* Moves all codes to files. */
extern void values_flush(ValueStore *store);
/* Writes codes of a group to a temporary file, which is created in the current context if NULL. */
extern void values_write_codes(ValueStore *store, BufFile **file, uint32 group, const uint64 *codes,
							   uint32 n);
/* Reads what one call of values_write_codes has written; false at the end of the file. */
extern bool values_read_codes(BufFile *file, uint32 *group, uint64 *codes, uint32 *n);
/*
 * To be called before values are added: moves all codes to files if memory is used up, and makes
 * lists for groups below n.
 */
extern void values_make_room(ValueStore *store, uint32 n);

/* Closes the files of codes. */
extern void values_close_files(ValueStore *store);
/* Appends n codes, which are the store's own, to the list of a group. */
static inline void
values_append_run(ValueStore *store, uint32 group, const uint64 *codes, uint32 n)
{
	values_make_room(store, group + 1);
	for (uint32 i = 0; i < n; i++)
		append_code(store, group, codes[i]);
}

/* ---- chunks ---------------------------------------------------------------------- */

/* In an export, in place of a group: a block of chunks follows. */
#define VALUE_CHUNKS (NO_VALUE_GROUP - 2)

/* Writes all codes as chunks. Returns false if they should be written as they are. */
extern bool values_export_chunks(ValueStore *store, GroupSink *sink, const ExportGroups *groups);
/*
 * Leaves the codes of n chunks in the file of the source. Returns false if they must be read
 * instead.
 */
extern bool values_import_chunks(ValueStore *store, GroupSource *source, const ChunkHead *heads,
								 int n);
/* Appends the codes of all chunks to lists. */
extern void values_load_chunks(ValueStore *store);
extern void values_free_chunks(ValueChunks *chunks);
/* Makes chunks of the store's own codes, too, if it has imported some. Returns whether it has. */
extern bool values_begin_chunks(ValueStore *store);
/* Sets found[i] to the code of rank ranks[i], for m ascending, different ranks. */
extern void values_fetch_chunks(ValueStore *store, const int64 *ranks, int m, uint64 *found);

/* ---- groups out ------------------------------------------------------------------ */

/* Runs of equal values; codes are added in ascending order. */
typedef struct ValueRuns
{
	uint64 code; /* first code of the current run */
	int64 n;
	int64 best[2]; /* length of the longest run so far: the first and the last such run */
	uint64 mode[2];
} ValueRuns;

/* Adds n equal codes that are not less than those before. */
extern void values_add_run(const ValueStore *store, ValueRuns *runs, uint64 code, int64 n);
/* Ends the runs; sets mode[0] and mode[1] as value_store_fetch does. */
extern void values_end_runs(const ValueStore *store, ValueRuns *runs, Datum *mode);
/* Sets mode[0] and mode[1] for store->codes, which it may sort. Overwrites store->spare. */
extern void values_find_mode(ValueStore *store, uint64 *codes, int64 n, Datum *mode);
/* Sorts codes in ascending order; `spare` has room for them. */
extern void values_sort_codes(uint64 *codes, uint64 *spare, int64 n);
/*
 * Sets found[i] to the code of rank ranks[i] among the n codes of one group in a file. Also adds
 * all codes to *runs, unless that is NULL.
 */
extern void values_fetch_large(ValueStore *store, BufFile *file, int64 n, const int64 *ranks, int m,
							   uint64 *found, ValueRuns *runs);

#endif /* GPUAGG_VALUE_STORE_INTERNAL_H */

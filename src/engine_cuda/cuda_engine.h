/*
 * cuda_engine.h
 *	  The state of the CUDA engine, and the functions that its files share.
 *
 * client_session.c		sessions with the server: opened for a query, given back
 * picks.c			picks values of groups at the server
 * ordered_sets.c	results of ordered sets
 * top_n.c			states of gpu_max_n and its like
 * tally_bins.c		counts values by bins, for tallies.c
 * tallies.c		states of aggregates of counted values
 * column_keys.c	keys of groups that are codes of a stored column
 * groups.c			fetches groups of the server in chunks
 * rows.c			sends rows to the server, or to the CPU fallback
 * sorted.c			rows that arrive grouped, and groups that leave in their order
 * device_rows.c	rows that are cached on the devices
 * engine_cuda.c	the engine
 *
 * Each file uses only those above it.
 *
 * The CPU fallback is a CPU engine inside the CUDA engine. It takes the batches that the server
 * cannot take, and groups of other participants. If there is a CPU fallback when the input ends,
 * the server's groups are moved into it, and it returns all groups.
 */
#ifndef GPUAGG_CUDA_ENGINE_H
#define GPUAGG_CUDA_ENGINE_H

#include "postgres.h"

#include "lib/ilist.h"
#include "portability/instr_time.h"

#include "engine.h"
#include "engine_cuda/client.h"
#include "engine_cuda/query.h"
#include "engine_cuda/spool.h"
#include "feed.h"

#define MAX_BUFFERS WIRE_BUFFERS

/* Most groups of one chunk. */
#define FETCH_GROUPS 16384

typedef struct CudaSorted CudaSorted;

typedef struct CudaEngine
{
	Engine base;
	const AggSpec *spec;
	EngineEnv env;
	CudaQuery *query; /* NULL: the engine failed in open */
	Client *client;   /* NULL: there is no session */
	Client *spare;    /* a closed client, for the next session */
	dlist_node node;  /* in cuda_engines */
	MemoryContextCallback callback;

	/* the buffers of the session's arena */
	int buffer;                  /* the one being filled */
	uint32 rows;                 /* in that buffer */
	bool busy[MAX_BUFFERS];      /* sent, but not answered */
	WireBatch sent[MAX_BUFFERS]; /* the messages that describe the buffers */
	bool full;                   /* the server takes no more batches */

	bool joined; /* the server's query is shared */
	bool owner;  /* this engine fetches the groups of the shared query */
	bool ending; /* FINISH was sent with RESIDENT, because there are no other rows */
	bool finished;
	bool variants; /* some equal keys look different (1.0 and 1.00) */
	WireFinished result;
	EngineLimit limit; /* all groups are needed if count and nconditions are 0 */
	WireLimit asked;   /* the limit that the last FINISH had */

	/* groups */
	MemoryContext group_cxt; /* for the chunk that was returned last */
	WireGroups returned;     /* that chunk; valid if returned_slots is not NULL */
	void **returned_slots;   /* the caller's pointers to states in the arena; NULL: none */
	uint32 ranks;            /* as in WireFetch: sketches come as counts of ranks */
	uint64 next_group;
	/* the next chunk has at most so many groups, as keys have long values; 0: FETCH_GROUPS */
	uint32 most_groups;
	WireGroups ahead;   /* groups that came with FINISHED and were not returned yet; n 0: none */
	CudaSpool *spool;   /* groups of a session that was given back; or NULL */
	CudaSorted *sorted; /* state for rows that arrive grouped; or NULL */

	Engine *cpu_fallback;      /* or NULL */
	Engine *idle_cpu_fallback; /* an empty one, of an earlier scan; or NULL */

	uint64 rows_given; /* rows given to the server */
	uint64 batches;
	uint64 bytes_from_device;
	uint64 cpu_fallback_rows; /* to the cpu_fallback, as rows */
	uint64 rows_resident;     /* of which the server had copies; counted in rows_given, too */
	int passes;               /* most passes over these */
	uint64 uploaded;          /* bytes of those that were made */
	uint64 cells_sent;        /* bytes of tables of expressions over texts that were sent, */
	uint64 cells_kept;        /* and of those that the server had */
	const char *not_resident; /* why there were none, or NULL */
	DeviceStats times;        /* ..._ms of what this process did, or waited for */
	bool prepared;            /* the buffers' pages are there */
	EngineStats past;         /* of what reset has forgotten */
} CudaEngine;

/*
 * Returns whether the executor can start over with another engine. Rows of a parallel scan, or of
 * volatile functions, come only once.
 */
static inline bool
cuda_can_start_over(const CudaEngine *cuda)
{
	return !engine_reads_once(&cuda->env.input);
}

static inline instr_time
cuda_clock(void)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	return now;
}

/* Adds the time since `since`, in ms. */
static inline void
cuda_add_time(double *ms, instr_time since)
{
	instr_time now = cuda_clock();

	INSTR_TIME_SUBTRACT(now, since);
	*ms += INSTR_TIME_GET_MILLISEC(now);
}

/* client_session.c */
extern dlist_head cuda_engines; /* of this process */
/* Closes the session, records the reason, and returns ENGINE_FAILED. */
extern EngineStatus cuda_fail(CudaEngine *cuda, const char *why);
/* The same, with the reason in client->failure, after a function of client.h returned false. */
extern EngineStatus cuda_fail_client(CudaEngine *cuda);
extern void cuda_register(CudaEngine *cuda);
extern bool cuda_has_session(const CudaEngine *cuda);
extern void cuda_end_session(CudaEngine *cuda);
extern bool cuda_is_exhausted(const CudaEngine *cuda);
extern size_t cuda_groups_end(const CudaEngine *cuda, const WireGroups *groups);
extern void cuda_keep_returned(CudaEngine *cuda);
/*
 * Opens the session unless it is open: sends OPEN, and does not wait for the answer. first: the
 * first batch, if there is one.
 */
extern EngineStatus cuda_begin_open(CudaEngine *cuda, const Batch *first);
/* The same, and waits for the answer. */
extern EngineStatus cuda_ensure_open(CudaEngine *cuda, const Batch *first);

/* Returns the numbers that a slot has for the groups of a chunk. */
static inline const int64 *
cuda_slot_numbers(const WireGroups *groups, const char *buffer, int slot)
{
	return (const int64 *) (buffer + groups->slots[slot]);
}

/* Number of positions that are picked together. */
#define PICK_PLACES 65536

/* Picked values, and what the set has beside them: codes of others, or of a counted
 * set, places of first rows; else NULL. */
typedef struct Picked
{
	int64 *values;
	int64 *beside;
	int32 *order;
	int32 *ranks;
} Picked;

/*
 * picks.c: sets values[i] to the value of a set at position places[i], for n of them. Returns false
 * if the session is lost.
 */
extern bool cuda_pick(CudaEngine *cuda, int set, const int32 *places, Size n, int64 *values);
/* The same, with what is beside them; n is at most PICK_PLACES. */
extern bool cuda_pick_pairs(CudaEngine *cuda, int set, const int32 *places, uint32 n,
							const Picked *to);

/*
 * ordered_sets.c: raises core's error if a percentile's fraction is out of range, for a query
 * without keys and without rows.
 */
extern void cuda_check_fractions(CudaEngine *cuda);
/* Fills in out->fallbacks, in the current memory context. Returns false if the session is lost. */
extern bool cuda_pick_ordered_sets(CudaEngine *cuda, const WireGroups *groups, const char *buffer,
								   GroupBatch *out);

/*
 * top_n.c: returns how many of the first groups have states of gpu_max_n and its like of at most
 * `room` bytes together, at least one.
 */
extern uint32 cuda_top_n_fitting(const CudaEngine *cuda, const WireGroups *groups,
								 const char *buffer, size_t room);
/*
 * Makes these states in out->fallbacks, in the current memory context. Returns false if the session
 * is lost.
 */
extern bool cuda_pick_top_n(CudaEngine *cuda, const WireGroups *groups, const char *buffer,
							GroupBatch *out);

/* tallies.c: the same two for aggregates of counted values. */
extern uint32 cuda_tallies_fitting(const CudaEngine *cuda, const WireGroups *groups,
								   const char *buffer, size_t room);
extern bool cuda_make_tallies(CudaEngine *cuda, const WireGroups *groups, const char *buffer,
							  GroupBatch *out);
/* tally_bins.c: records that the server's answer is wrong, and returns false. */
extern bool cuda_invalid_counts(CudaEngine *cuda);
/*
 * Adds the n values of a group from position `first` on, which have so many rows, to a state, bin
 * by bin. *too_many: there are so many bins that all values should be read; none is added then.
 * Returns false if the session is lost.
 */
extern bool cuda_tally_bins(CudaEngine *cuda, int set, int64 first, int64 n, int64 rows,
							const struct AggTally *tally, void *state, bool *too_many);

/*
 * column_keys.c: unpacks key `k` of n groups, whose codes are those of a stored column, with values
 * in the current memory context. Takes their bytes from *left; if this becomes 0, some values are
 * lacking. Returns false if the session is lost.
 */
extern bool cuda_fetch_keys(CudaEngine *cuda, int k, const char *packed, int n, size_t *left,
							Datum *values, bool *nulls);
/* The same for the states of min() and max() of texts, in out->fallbacks. */
extern bool cuda_fetch_ranked(CudaEngine *cuda, const WireGroups *groups, const char *buffer,
							  size_t *left, GroupBatch *out);

/* groups.c */
/*
 * Send FINISH, and receive its answer. final: no states will be combined with others, so groups
 * beyond the limit are not needed.
 */
extern bool cuda_send_finish(CudaEngine *cuda, bool final, bool if_taken);
extern bool cuda_receive_finished(CudaEngine *cuda);
extern bool cuda_next_device_groups(CudaEngine *cuda, GroupBatch *out);
extern void cuda_release(EState *estate, bool in_steps);

/* rows.c */
extern Engine *cuda_get_cpu_fallback(CudaEngine *cuda);
extern EngineStatus cuda_note_cpu_fallback_errors(CudaEngine *cuda);
extern void cuda_bind_buffers(Engine *engine, Batch *batch);
extern EngineStatus cuda_add_batch(Engine *engine, const Batch *batch);
extern EngineStatus cuda_send_all(CudaEngine *cuda);

/* Returns whether the arrays of these groups are aligned, and within their buffer. */
extern bool cuda_groups_fit(const CudaEngine *cuda, const WireGroups *groups);
/*
 * Sets the states of out->ngroups groups, from group `from` on. Allocates in the current memory
 * context.
 */
extern void cuda_set_states(CudaEngine *cuda, const WireGroups *groups, const char *buffer,
							uint32 from, GroupBatch *out);

/* sorted.c */
extern CudaSorted *cuda_sorted_create(const CudaEngine *cuda);
/* Starts with a new session. Returns NULL, or why the session cannot be used. */
extern const char *cuda_sorted_begin(CudaEngine *cuda);
/* These never fail: the CPU fallback takes the rows that the server cannot take. */
extern EngineStatus cuda_sorted_add(CudaEngine *cuda, const Batch *batch);
extern void cuda_sorted_finish(CudaEngine *cuda);
extern bool cuda_sorted_next(CudaEngine *cuda, GroupBatch *out);
/* Returns true if the server has not answered everything. */
extern bool cuda_sorted_reset(CudaEngine *cuda);
extern size_t cuda_sorted_memory(const CudaEngine *cuda);

/* device_rows.c */
extern EngineStatus cuda_take_resident(Engine *engine, Feed *feed);

#endif /* GPUAGG_CUDA_ENGINE_H */

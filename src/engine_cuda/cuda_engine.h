/*
 * cuda_engine.h
 *	  What the files of the CUDA engine share.
 *
 * session.c		sessions with the server: opened for a query, given back
 * ordered_sets.c	values of ordered sets, which are picked among those of groups
 * groups.c			groups of the server, brought here in chunks
 * rows.c			rows to the server, or to the CPU fallback
 * sorted.c			rows that arrive grouped, and whose groups leave in their order
 * resident.c		rows of which the server has copies
 * engine_cuda.c	the engine: drives the others, in this order each using those above
 *
 * The CPU fallback is a CPU engine inside of the CUDA engine.  It takes the batches that
 * the server cannot take, and groups of other participants; if there is one when
 * the input ends, the server's groups are moved into it and all groups come from it.
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
	CudaQuery *query; /* NULL: failed before it began */
	Client *client;   /* NULL: not connected yet, or not any more */
	Client *spare;    /* a closed one, for the next session */
	dlist_node node;  /* of all engines of this process */
	MemoryContextCallback callback;

	/* the buffers of the session's arena */
	int buffer;                  /* being filled */
	uint32 rows;                 /* in it */
	bool busy[MAX_BUFFERS];      /* sent, and not answered */
	WireBatch sent[MAX_BUFFERS]; /* what is in those */
	bool full;                   /* the server takes no more batches */

	bool joined; /* the server's query is shared */
	bool owner;  /* ... and its groups are this engine's to fetch */
	bool ending; /* FINISH was sent with RESIDENT, whose rows are all */
	bool finished;
	bool variants; /* equal keys that look different were met */
	WireFinished result;
	EngineLimit limit; /* count 0, and no conditions: all groups are wanted */
	WireLimit asked;   /* of the server, by the last FINISH */

	/* groups */
	MemoryContext group_cxt; /* of the chunk that was returned last */
	WireGroups returned;     /* that chunk, if its states are in the arena: */
	void **returned_slots;   /* the pointers to them that the caller has; else NULL */
	uint32 ranks;            /* groups come with counts of ranks: WireFetch */
	uint64 next_group;
	WireGroups ahead;   /* came with FINISHED and was not returned yet; n 0: none */
	CudaSpool *spool;   /* chunks of a session that was given back; or NULL */
	CudaSorted *sorted; /* of rows that arrive grouped; or NULL */

	Engine *cpu_fallback;      /* or NULL */
	Engine *idle_cpu_fallback; /* of an earlier scan, empty; or NULL */

	uint64 rows_given; /* to the server */
	uint64 batches;
	uint64 bytes_from_device;
	uint64 cpu_fallback_rows; /* to the cpu_fallback, as rows */
	uint64 rows_resident;     /* of which the server had copies; counted in rows_given, too */
	uint64 uploaded;          /* bytes of those that were made */
	const char *not_resident; /* why there were none, or NULL */
	DeviceStats times;        /* ..._ms of what this process did, or waited for */
	bool prepared;            /* the buffers' pages are there */
	EngineStats past;         /* of what reset has forgotten */
} CudaEngine;

/*
 * May the executor start over with another engine?  Rows of a parallel scan, or of
 * volatile functions, come once.
 */
static inline bool
cuda_can_start_over(const CudaEngine *cuda)
{
	return !engine_input_once(&cuda->env.input);
}

static inline instr_time
cuda_clock(void)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	return now;
}

/* Adds the time since then. */
static inline void
cuda_add_time(double *ms, instr_time since)
{
	instr_time now = cuda_clock();

	INSTR_TIME_SUBTRACT(now, since);
	*ms += INSTR_TIME_GET_MILLISEC(now);
}

/* session.c */
extern dlist_head cuda_engines; /* of this process */
/* Closes the session and returns ENGINE_FAILED, for the reason why. */
extern EngineStatus cuda_fail(CudaEngine *cuda, const char *why);
/*
 * The same after a function of client.h returned false, for the reason that it left in
 * client->failure.
 */
extern EngineStatus cuda_fail_client(CudaEngine *cuda);
extern void cuda_register(CudaEngine *cuda);
extern bool cuda_has_session(const CudaEngine *cuda);
extern void cuda_end_session(CudaEngine *cuda);
extern bool cuda_is_exhausted(const CudaEngine *cuda);
extern size_t cuda_groups_end(const CudaEngine *cuda, const WireGroups *groups);
extern void cuda_keep_returned(CudaEngine *cuda);
/* Sends OPEN, if that has not been done, and does not wait for the answer. */
extern EngineStatus cuda_begin_open(CudaEngine *cuda, const Batch *first);
extern EngineStatus cuda_ensure_open(CudaEngine *cuda, const Batch *first);

/*
 * ordered_sets.c: raises core's error if a fraction of a query without keys, which has met no row,
 * is out of range.
 */
extern void cuda_check_fractions(CudaEngine *cuda);
/*
 * Fills in out->fallbacks; false: the session is lost.  Results are allocated in the current
 * context.
 */
extern bool cuda_pick_ordered_sets(CudaEngine *cuda, const WireGroups *groups, const char *buffer,
								   GroupBatch *out);

/* groups.c */
/*
 * FINISH, and its answer.  final: no states are combined any more, so groups beyond the limit are
 * not needed.
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

/* Are the arrays of these groups aligned, and within their buffer? */
extern bool cuda_groups_fit(const CudaEngine *cuda, const WireGroups *groups);
/*
 * Sets the states of out->ngroups groups from this one on; what is made of them is allocated in the
 * current context.
 */
extern void cuda_set_states(CudaEngine *cuda, const WireGroups *groups, const char *buffer,
							uint32 from, GroupBatch *out);

/* sorted.c */
extern CudaSorted *cuda_sorted_create(const CudaEngine *cuda);
/* With a new session; why it does not suit, or NULL. */
extern const char *cuda_sorted_begin(CudaEngine *cuda);
/* These never fail: the CPU fallback takes what the server cannot. */
extern EngineStatus cuda_sorted_add(CudaEngine *cuda, const Batch *batch);
extern void cuda_sorted_finish(CudaEngine *cuda);
extern bool cuda_sorted_next(CudaEngine *cuda, GroupBatch *out);
/* True: the session is in the middle of something. */
extern bool cuda_sorted_reset(CudaEngine *cuda);
extern size_t cuda_sorted_memory(const CudaEngine *cuda);

/* resident.c */
extern EngineStatus cuda_take_resident(Engine *engine, Feed *feed);

#endif /* GPUAGG_CUDA_ENGINE_H */

/*
 * ptx_internal.h
 *	  What the files of the PTX interpreter share: decoded instructions, warps, blocks and a launch.
 *
 * A register is a row: 32 elements of the declared width, one a lane; a predicate is a word with a
 * bit a lane.  Rows lie in frames, one for each call of a function by the lanes of a warp.
 * Immediates are rows too, in a pool of the function, and so are special registers, in the warp; an
 * operand names which of these memories its row is in, and where.
 *
 * The lanes of a warp that are at one instruction of one frame are a group.  One group runs at a
 * time, until it meets another one, splits, waits, or its time is over.
 */
#ifndef GPUAGG_PTX_INTERNAL_H
#define GPUAGG_PTX_INTERNAL_H

#include <stdint.h>
#include <string.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator.h"

#define LANES 32
#define ALL_LANES 0xffffffffu
#define POISON 0xa5
#define MOST_IN_VECTOR 8

typedef unsigned __int128 Bits128;

/* Memories that rows are in. */
enum RowBase
{
	ROWS_FRAME,
	ROWS_CONSTANT,
	ROWS_SPECIAL,
	ROWS_SINK, /* results that nobody wants */
	ROW_BASES
};

struct Operand
{
	uint32_t base;
	uint32_t offset; /* bytes */
};

struct Insn;
struct Warp;
struct Block;
struct Function;

/*
 * Executes an instruction for the lanes of w->mask.  The next one, or NULL: the group's state says
 * why.
 */
typedef const Insn *(*Handler)(Warp *w, const Insn *i);

/* Addresses in this process of what the lanes of mask access, checked. */
typedef void (*Resolver)(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);

struct Insn
{
	Handler run;
	Operand d, a, b, c, e;
	Resolver resolve;
	int64_t imm;
	const Insn *target;
	const Operand *list; /* elements of a vector, or further operands */
	const Function *callee;
	mutable uint64_t lo, /* the allocation hit last, while version holds */
		len;
	mutable uint64_t version;
	uint32_t text;  /* where in the module's text it begins */
	uint16_t bytes; /* of an access */
	uint8_t count;  /* of list */
	uint8_t flags;
};

/* Flags of an instruction. */
#define INSN_POLLS 1   /* reads memory in a way that may wait for others */
#define INSN_NEGATED 2 /* the predicate operand is negated */
#define INSN_ALIGNED 4 /* a barrier that a warp must reach as a whole */
#define INSN_STORES 8

struct ParamSlot
{
	uint32_t offset, bytes;
};

struct Frame;

struct Function
{
	std::string name;
	bool entry;
	std::vector<Insn> code;
	size_t row_bytes;   /* of registers */
	size_t local_bytes; /* a lane */
	size_t param_bytes; /* a lane: own parameters, results, and those of calls */
	std::vector<ParamSlot> params, results;
	char *constants; /* rows of immediates */
	std::vector<char> constant_bytes;
	std::vector<Operand>
		dynamic_rows; /* immediates in the dynamic part of shared memory; base: width */
	std::vector<std::unique_ptr<Operand[]>> lists;
	mutable std::vector<Frame *> spare;
};

struct Frame
{
	const Function *function;
	Frame *parent;
	const Insn *site; /* the call in parent */
	char *rows;
	char *params;
	char *local;
	uint32_t lanes; /* that are in it, or in what it calls */
	unsigned depth;
};

/* Why a group does not run. */
enum GroupState
{
	GROUP_READY,
	GROUP_SYNC,    /* for lanes that its instruction names */
	GROUP_BARRIER, /* of the block */
	GROUP_CLUSTER
};

struct Group
{
	uint32_t mask;
	GroupState state;
	Frame *frame;
	const Insn *pc;
	unsigned turns;   /* of backward branches while others wait */
	unsigned barrier; /* the one it waits for */
	bool yielded;
};

struct AsyncCopy
{
	uint64_t from, to;
	uint32_t bytes, zeros;
	unsigned batch; /* of its lane's commits */
	uint8_t lane;
};

/* Rows of special registers. */
enum Special
{
	SPECIAL_TID, /* x, y, z */
	SPECIAL_NTID = SPECIAL_TID + 3,
	SPECIAL_CTAID = SPECIAL_NTID + 3,
	SPECIAL_NCTAID = SPECIAL_CTAID + 3,
	SPECIAL_LANEID = SPECIAL_NCTAID + 3,
	SPECIAL_WARPID,
	SPECIAL_NWARPID,
	SPECIAL_LANEMASK_EQ,
	SPECIAL_LANEMASK_LE,
	SPECIAL_LANEMASK_LT,
	SPECIAL_LANEMASK_GE,
	SPECIAL_LANEMASK_GT,
	SPECIAL_CLUSTERID,
	SPECIAL_NCLUSTERID = SPECIAL_CLUSTERID + 3,
	SPECIAL_CLUSTER_CTAID = SPECIAL_NCLUSTERID + 3,
	SPECIAL_CLUSTER_NCTAID = SPECIAL_CLUSTER_CTAID + 3,
	SPECIAL_CLUSTER_CTARANK = SPECIAL_CLUSTER_NCTAID + 3,
	SPECIAL_CLUSTER_NCTARANK,
	SPECIAL_SMID,
	SPECIAL_NSMID,
	SPECIAL_DYNAMIC_SMEM,
	SPECIAL_TOTAL_SMEM,
	SPECIAL_ENVREG1, /* address of the workspace of cooperative groups: high and low part */
	SPECIAL_ENVREG2,
	SPECIAL_ZERO,
	SPECIALS
};

struct Warp
{
	char *base[ROW_BASES];
	uint32_t mask; /* lanes that execute */
	uint32_t live; /* lanes that have not ended */
	uint32_t carry;
	const Insn *run_until; /* where another group of the frame waits */
	uint64_t steps;        /* instructions */
	uint64_t deadline;     /* of steps */
	uint64_t steps_counted;
	Frame *frame;
	Block *block;
	EmuCounts *counts; /* or NULL */
	Group groups[LANES];
	int ngroups;
	int current;
	bool polled;   /* read what others may write, in this turn of a loop */
	bool wrote;    /* wrote what others may read */
	bool spins;    /* only the former, in all of this run */
	bool progress; /* not so */
	unsigned number;
	unsigned cluster_phase;
	const Insn *barrier_site[16]; /* where lanes wait with an aligned barrier */
	unsigned batch[LANES];        /* of cp.async */
	std::vector<AsyncCopy> copies;
	alignas(64) uint32_t special[SPECIALS][LANES];
	alignas(64) char sink[LANES * 16];
};

/* Insn.imm of a barrier with a result. */
enum BarrierResult
{
	BARRIER_PLAIN,
	BARRIER_COUNT,
	BARRIER_AND,
	BARRIER_OR
};

struct Barrier
{
	unsigned arrived;  /* threads */
	unsigned expected; /* 0: all of the block */
	unsigned votes_true, votes;
};

struct Cluster
{
	unsigned arrived;
	unsigned phase;
	std::vector<Block *> blocks;
};

struct Launch;

struct Block
{
	Launch *launch;
	EmuDim index;
	Cluster *cluster;
	unsigned rank; /* in the cluster */
	char *shared;
	size_t shared_bytes;
	std::vector<uint8_t> landing; /* by words of shared memory: copies that cp.async still makes */
	unsigned ncopies;
	std::vector<Warp *> warps;
	unsigned threads; /* that have not ended */
	Barrier barriers[16];
};

struct Launch
{
	EmuKernel *kernel;
	EmuDim grid, block, cluster;
	size_t dynamic_shared;
	EmuCounts *counts;
	uint32_t *workspace; /* of cooperative groups */
	std::vector<std::vector<uint32_t>>
		specials; /* registers of each warp, but for the block's place */
};

struct EmuKernel
{
	EmuModule *module;
	std::string name;
	std::vector<std::unique_ptr<Function>> functions; /* the kernel itself is first */
	std::unordered_map<std::string, Function *> by_name;
	std::map<std::string, uint32_t> shared_at;
	size_t static_shared, dynamic_at;
	unsigned max_threads;
	char *params; /* as the kernel sees them */
	size_t param_bytes;
	std::vector<ParamSlot> slots;
};

/* What stops a launch; the text is complete. */
struct Fault
{
	std::string text;
};

/* ptx_warp.cpp */
[[noreturn]] void fault(const Warp *w, const Insn *i, uint32_t lanes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
bool run_warp(Warp *w, uint64_t steps);
Warp *make_warp(Block *block, unsigned number);
void free_warp(Warp *w);
Frame *get_frame(const Function *function, Frame *parent, const Insn *site);
const Insn *stop_group(Warp *w, const Insn *pc, GroupState state);
const Insn *split_group(Warp *w, uint32_t lanes, const Insn *pc, const Insn *rest_pc);
void add_group(Warp *w, uint32_t lanes, Frame *frame, const Insn *pc, GroupState state);
const Insn *end_lanes(Warp *w, const Insn *i);
const Insn *call_function(Warp *w, const Insn *i);
const Insn *return_from(Warp *w, const Insn *i);

/* ptx_module.cpp: the line of a place in a module's text, and the statement there */
unsigned kernel_line(const EmuKernel *kernel, uint32_t text, std::string *statement);

/* ptx_launch.cpp */
void block_threads_ended(Block *block, unsigned threads);
void complete_barriers(Block *block);
void complete_cluster(Cluster *cluster);
Block *block_of_rank(Block *block, uint32_t rank);

/* ptx_address.cpp, ptx_ops_memory.cpp */
uint64_t memory_version();
bool memory_find(uint64_t at, uint64_t *lo, uint64_t *len);
void finish_copies(Warp *w, uint32_t lanes, unsigned kept_batches);

template <class T>
static inline T *
row(Warp *w, Operand o)
{
	return (T *) (w->base[o.base] + o.offset);
}

static inline uint32_t &
predicate(Warp *w, Operand o)
{
	return *(uint32_t *) (w->base[o.base] + o.offset);
}

/* Runs the statement for each lane of mask; a straight loop where that is all of them. */
#define FOR_LANES(mask, lane, statement) \
	do \
	{ \
		if ((mask) == ALL_LANES) \
		{ \
			_Pragma("GCC ivdep") for (int lane = 0; lane < LANES; lane++) \
			{ \
				statement; \
			} \
		} \
		else \
		{ \
			for (uint32_t lanes_left_ = (mask); lanes_left_; lanes_left_ &= lanes_left_ - 1) \
			{ \
				int lane = __builtin_ctz(lanes_left_); \
				statement; \
			} \
		} \
	} while (0)

/*
 * d[lane] = value for each lane of mask, where value is defined for whatever the other lanes'
 * registers hold: for many lanes a straight loop over all.
 */
#define SET_LANES(mask, lane, d, value) \
	do \
	{ \
		if ((mask) == ALL_LANES || __builtin_popcount(mask) < 6) \
			FOR_LANES(mask, lane, d[lane] = value); \
		else \
		{ \
			uint32_t set_ = (mask); \
			_Pragma("GCC ivdep") for (int lane = 0; lane < LANES; lane++) d[lane] = \
				set_ >> lane & 1 ? value : d[lane]; \
		} \
	} while (0)

#endif /* GPUAGG_PTX_INTERNAL_H */

/*
 * group_partition.cuh
 *	  Keys of rows that are partitioned by key; what group_partition.cu and group_number.cu share.
 */
#ifndef GPUAGG_GROUP_PARTITION_CUH
#define GPUAGG_GROUP_PARTITION_CUH

#include "group.cuh"
#include "hist_kernels.cuh"
#include "partition.cuh"

/* ---- keys ------------------------------------------------------------------------- */

/* The type that moves keys of a width. */
template <int BYTES> struct MovedKey
{
	typedef u64 type;
};
template <> struct MovedKey<4>
{
	typedef u32 type;
};
template <> struct MovedKey<16>
{
	typedef Pair type;
};

static __device__ __forceinline__ u32
load_moved(const u32 *p)
{
	return __ldcs(p);
}
static __device__ __forceinline__ u64
load_moved(const u64 *p)
{
	return __ldcs(p);
}
static __device__ __forceinline__ Pair
load_moved(const Pair *p)
{
	return {__ldcs(&p->lo), __ldcs(&p->hi)};
}

static __device__ __forceinline__ Key<1>
key_of(u32 k)
{
	return {{k}};
}
static __device__ __forceinline__ Key<1>
key_of(u64 k)
{
	return {{k}};
}
static __device__ __forceinline__ Key<2>
key_of(const Pair &k)
{
	return {{k.lo, k.hi}};
}

/* Returns the upper half of a key's hash, whose top bits are the number of its partition. */
template <typename K>
static __device__ __forceinline__ u32
upper_hash(const GpuaggHashKey &hash, const K &key)
{
	return (u32) (hash_key(hash, key_of(key)) >> 32);
}

/* The type that moves values of a width. */
template <int WIDTH> struct MovedValue
{
	typedef u32 type;
};
template <> struct MovedValue<8>
{
	typedef u64 type;
};

/* Arguments of the kernels that number groups. */
struct NumberArgs
{
	const void *keys; /* keys of moved rows */
	uint16_t *number;
	GpuaggHashKey hash;
	int log2_parts;
	const HistItem *item;
	u32 *counter;
	const u32 *split_part; /* [split partition] its number */
	u32 *first;
	u32 *ngroups;
	void *groups; /* keys of groups */
	GpuaggKeyCounts *counts;
	/* tables of split partitions, one after another: */
	char *split_slots;
	size_t split_slot_bytes;
	char *split_keys;
	GpuaggGroupCounters *split_counters;
};

/* Numbers the groups of all partitions, after their rows were moved (group_number.cu). */
GpuaggCudaStatus group_launch_number(int key_bytes, const NumberArgs &args,
									 const DeviceFacts &facts, cudaStream_t stream);

#endif /* GPUAGG_GROUP_PARTITION_CUH */

/*
 * ptx_address.cpp
 *	  Memory that kernels may touch, and the addresses of what the lanes of a warp access.
 */
#include <algorithm>

#include "ptx_ops.h"

namespace
{

/* All bits of the lanes in mask, of expressions that may be computed for the others, too. */
#define ALL_BITS(mask, k, bits) \
	({ \
		uint64_t	all_ = 0; \
		uint32_t	in_ = (mask); \
		if (in_ == ALL_LANES) \
			for (int k = 0; k < LANES; k++) \
				all_ |= (bits); \
		else \
			for (int k = 0; k < LANES; k++) \
				all_ |= (bits) & (0 - (uint64_t) (in_ >> k & 1)); \
		all_; \
	})

/* Whether an offset of a lane is more than most, which is less than 2^63: then there is a sign. */
#define ANY_ABOVE(mask, k, offset, most) \
	((int64_t) ALL_BITS(mask, k, (uint64_t) (offset) | ((uint64_t) (most) - (uint64_t) (offset))) < 0)

struct Interval
{
	uint64_t	lo,
				len;
};

std::vector<Interval> intervals;	/* in order */
uint64_t	version = 1;

bool
before(const Interval &a, const Interval &b)
{
	return a.lo < b.lo;
}

/* Accesses of 32 bytes, each sector once. */
void
count_global(Warp *w, const Insn *i, uint32_t mask, const uint64_t *at)
{
	uint64_t	sectors[LANES * 2];
	int			n = 0;
	bool		rising = true;

	for (uint32_t left = mask; left; left &= left - 1)
	{
		uint64_t	address = at[__builtin_ctz(left)];

		for (uint64_t s = address >> 5; s <= (address + i->bytes - 1) >> 5; s++)
		{
			if (n && sectors[n - 1] == s)
				continue;
			rising &= n == 0 || sectors[n - 1] < s;
			sectors[n++] = s;
		}
	}
	if (!rising)
	{
		std::sort(sectors, sectors + n);
		n = (int) (std::unique(sectors, sectors + n) - sectors);
	}
	w->counts->global_sectors += n;
}

/* Passes beyond those that the bytes need: words of one bank, equal words only once unless they are changed. */
void
count_shared(Warp *w, const Insn *i, uint32_t mask, const uint64_t *at)
{
	uint64_t	words[LANES][LANES];
	uint8_t		used[LANES] = {};
	unsigned	most = 0,
				lanes = __builtin_popcount(mask),
				least = std::max(1u, (lanes * i->bytes + 127) / 128);
	bool		atomic = (i->flags & INSN_POLLS) && (i->flags & INSN_STORES);

	for (uint32_t left = mask; left; left &= left - 1)
	{
		uint64_t	first = at[__builtin_ctz(left)] >> 2;
		unsigned	n = std::max(1u, i->bytes / 4u);

		for (uint64_t word = first; word < first + n; word++)
		{
			unsigned	bank = word % LANES;
			bool		known = false;

			for (unsigned k = 0; k < used[bank] && !atomic && !known; k++)
				known = words[bank][k] == word;
			if (known || used[bank] == LANES)
				continue;
			words[bank][used[bank]++] = word;
			most = std::max(most, (unsigned) used[bank]);
		}
	}
	w->counts->shared_accesses++;
	w->counts->shared_conflicts += most > least ? most - least : 0;
}

[[noreturn]] void
bad_address(Warp *w, const Insn *i, int lane, uint64_t at, const char *what)
{
	fault(w, i, 1u << lane, "%s: %u bytes at 0x%llx", what, i->bytes, (unsigned long long) at);
}

inline void
check_alignment(Warp *w, const Insn *i, uint32_t mask, const uint64_t *at)
{
	uint64_t	low = i->bytes - 1;

	if (__builtin_expect(ALL_BITS(mask, k, at[k] & low) != 0, 0))
		FOR_LANES(mask, k,
				  if (at[k] & low) bad_address(w, i, k, at[k], "access that is not aligned"));
}

/* What the addresses are before they are checked. */
template <class A> inline void
plain_addresses(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	const A    *base = row<A>(w, i->a);
	int64_t		imm = i->imm;

	(void) mask;
	for (int k = 0; k < LANES; k++)
		at[k] = (uint64_t) (A) (base[k] + (A) imm);
}

bool
global_access(const Insn *i, uint64_t at)
{
	uint64_t	lo,
				len;

	if (!memory_find(at, &lo, &len) || at - lo + i->bytes > len)
		return false;
	i->lo = lo;
	i->len = len;
	i->version = version;
	return true;
}


/* Whether all lie in the allocation that this instruction hit last. */
inline bool
same_allocation(const Insn *i, uint32_t mask, const uint64_t *at)
{
	uint64_t	lo = i->lo,
				most = i->len - i->bytes;

	if (i->version != version || i->len < i->bytes)
		return false;
	return !ANY_ABOVE(mask, k, at[k] - lo, most);
}

void
note_landing(Warp *w, const Insn *i, uint32_t mask, const uint64_t *at)
{
	Block	   *block = w->block;

	for (uint32_t left = mask; left; left &= left - 1)
	{
		int			lane = __builtin_ctz(left);
		size_t		offset = at[lane] - (uint64_t) block->shared;

		if (offset >= block->shared_bytes)
			continue;
		for (size_t word = offset / 4; word <= (offset + i->bytes - 1) / 4; word++)
			if (block->landing[word])
				bad_address(w, i, lane, offset, "access to what a cp.async still writes");
	}
}

bool
local_access(Warp *w, const Insn *i, int lane, uint64_t at)
{
	for (const Frame *f = w->frame; f; f = f->parent)
	{
		size_t		bytes = f->function->local_bytes;
		uint64_t	from = (uint64_t) f->local + bytes * lane;

		if (bytes && at - from <= bytes - i->bytes && bytes >= i->bytes)
			return true;
		bytes = f->function->param_bytes;
		from = (uint64_t) f->params + bytes * lane;
		if (bytes && at - from <= bytes - i->bytes && bytes >= i->bytes)
			return true;
	}
	return false;
}

/* Whether all lie in the lanes' own parts of one frame. */
bool
same_frame(Warp *w, const Insn *i, uint32_t mask, const uint64_t *at)
{
	for (const Frame *f = w->frame; f; f = f->parent)
	{
		uint64_t	base = (uint64_t) f->local,
					stride = f->function->local_bytes,
					most = stride - i->bytes;

		if (stride < i->bytes)
			continue;
		if (!ANY_ABOVE(mask, k, at[k] - base - stride * (uint64_t) k, most))
			return true;
	}
	return false;
}

/* Whether all lie in the block's shared memory. */
inline bool
all_shared(const Block *block, const Insn *i, uint32_t mask, const uint64_t *at)
{
	uint64_t	base = (uint64_t) block->shared,
				most = block->shared_bytes - i->bytes;

	if (block->shared_bytes < i->bytes)
		return false;
	return !ANY_ABOVE(mask, k, at[k] - base, most);
}

/* Slower: lanes in different memories.  What is counted by which. */
void
mixed_memories(Warp *w, const Insn *i, uint32_t mask, const uint64_t *at, uint32_t *global, uint32_t *shared, uint32_t *local)
{
	Block	   *block = w->block;

	for (uint32_t left = mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);
		uint32_t	bit = 1u << k;

		if (all_shared(block, i, bit, at))
			*shared |= bit;
		else if (local_access(w, i, k, at[k]))
			*local |= bit;
		else if (global_access(i, at[k]))
			*global |= bit;
		else
		{
			bool		found = false;

			for (Block *other : block->cluster->blocks)
				found |= other->threads && all_shared(other, i, bit, at);
			if (!found)
				bad_address(w, i, k, at[k], "access outside of allocations");
		}
	}
}

}								/* namespace */

uint64_t
memory_version()
{
	return version;
}

bool
memory_find(uint64_t at, uint64_t *lo, uint64_t *len)
{
	auto		next = std::upper_bound(intervals.begin(), intervals.end(), Interval{at, 0}, before);

	if (next == intervals.begin())
		return false;
	--next;
	*lo = next->lo;
	*len = next->len;
	return at - next->lo < next->len;
}

void
emu_memory_add(void *at, size_t bytes)
{
	Interval	one = {(uint64_t) at, bytes};

	emu_memory_remove(at);
	intervals.insert(std::upper_bound(intervals.begin(), intervals.end(), one, before), one);
	version++;
}

void
emu_memory_remove(void *at)
{
	for (size_t k = 0; k < intervals.size(); k++)
		if (intervals[k].lo == (uint64_t) at)
		{
			intervals.erase(intervals.begin() + (long) k);
			version++;
			return;
		}
}

void
resolve_global(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	plain_addresses<uint64_t>(w, i, mask, at);
	if (!same_allocation(i, mask, at))
		for (uint32_t left = mask; left; left &= left - 1)
		{
			int			k = __builtin_ctz(left);

			if ((i->version != version || at[k] - i->lo >= i->len || at[k] - i->lo + i->bytes > i->len) &&
				!global_access(i, at[k]))
				bad_address(w, i, k, at[k], "access outside of allocations");
		}
	check_alignment(w, i, mask, at);
	if (w->counts)
		count_global(w, i, mask, at);
}

/* Addresses of the kernel's parameters, which the decoder knows. */
void
resolve_entry_param(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	plain_addresses<uint64_t>(w, i, mask, at);
	check_alignment(w, i, mask, at);
}

template <class A> static void
resolve_shared_of(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	Block	   *block = w->block;
	uint64_t	base = (uint64_t) block->shared,
				bytes = i->bytes,
				size = block->shared_bytes;

	plain_addresses<A>(w, i, mask, at);
	if (size < bytes || ANY_ABOVE(mask, k, at[k], size - bytes))
		for (uint32_t left = mask; left; left &= left - 1)
		{
			int			k = __builtin_ctz(left);

			if (at[k] > size || at[k] + bytes > size)
				bad_address(w, i, k, at[k], "access outside of the block's shared memory");
		}
	check_alignment(w, i, mask, at);
	if (w->counts)
		count_shared(w, i, mask, at);
	for (int k = 0; k < LANES; k++)
		at[k] += base;
	if (block->ncopies)
		note_landing(w, i, mask, at);
}

void
resolve_shared32(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	resolve_shared_of<uint32_t>(w, i, mask, at);
}

void
resolve_shared64(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	resolve_shared_of<uint64_t>(w, i, mask, at);
}

/* Shared memory of the cluster's blocks: rank + 1 above the offset, or 0 for the own block. */
template <class A> static void
resolve_cluster_of(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	plain_addresses<A>(w, i, mask, at);
	for (uint32_t left = mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);
		uint32_t	rank = (uint32_t) at[k] >> CLUSTER_SHIFT,
					offset = (uint32_t) at[k] & ((1u << CLUSTER_SHIFT) - 1);
		Block	   *block = rank ? block_of_rank(w->block, rank - 1) : w->block;

		if (block == NULL || offset + i->bytes > block->shared_bytes)
			bad_address(w, i, k, at[k], "access outside of the cluster's shared memory");
		if (block->threads == 0)
			bad_address(w, i, k, at[k], "access to shared memory of a block that has ended");
		at[k] = (uint64_t) block->shared + offset;
	}
	check_alignment(w, i, mask, at);
}

void
resolve_cluster32(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	resolve_cluster_of<uint32_t>(w, i, mask, at);
}

void
resolve_cluster64(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	resolve_cluster_of<uint64_t>(w, i, mask, at);
}

/* Addresses of this process in whatever memory. */
void
resolve_generic(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	Block	   *block = w->block;
	uint32_t	global = 0,
				shared = 0,
				local = 0;

	plain_addresses<uint64_t>(w, i, mask, at);
	if (same_allocation(i, mask, at))
		global = mask;
	else if (all_shared(block, i, mask, at))
		shared = mask;
	else if (same_frame(w, i, mask, at))
		local = mask;
	else
		mixed_memories(w, i, mask, at, &global, &shared, &local);
	check_alignment(w, i, mask, at);
	if (shared && block->ncopies)
		note_landing(w, i, shared, at);
	if (w->counts)
	{
		if (global)
			count_global(w, i, global, at);
		if (shared)
			count_shared(w, i, shared, at);
		w->counts->local_accesses += local != 0;
	}
}

void
resolve_local(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	plain_addresses<uint64_t>(w, i, mask, at);
	for (uint32_t left = same_frame(w, i, mask, at) ? 0 : mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);

		if (!local_access(w, i, k, at[k]))
			bad_address(w, i, k, at[k], "access outside of the thread's local memory");
	}
	check_alignment(w, i, mask, at);
	if (w->counts)
		w->counts->local_accesses++;
}

/* Parameters of a function and of calls: at a fixed place of each lane. */
void
resolve_param(Warp *w, const Insn *i, uint32_t mask, uint64_t *at)
{
	uint64_t	base = (uint64_t) w->frame->params + (uint64_t) i->imm,
				stride = w->frame->function->param_bytes;

	(void) mask;
	for (int k = 0; k < LANES; k++)
		at[k] = base + stride * (uint64_t) k;
}

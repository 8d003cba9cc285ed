/*
 * ptx_ops_memory.cpp
 *	  Loads, stores, atomics and asynchronous copies.
 */
#include <algorithm>
#include <type_traits>

#include "ptx_ops.h"

namespace
{

/* M: the type in memory; R: of the register, unsigned, at least as wide. */
template <class M, class R> const Insn *
load(Warp *w, const Insn *i)
{
	uint64_t	at[LANES];
	R		   *d = row<R>(w, i->d);

	i->resolve(w, i, w->mask, at);
	if (i->flags & INSN_POLLS)
		w->polled = true;
	FOR_LANES(w->mask, k, d[k] = (R) *(const M *) at[k]);
	return i + 1;
}

template <class M, class R> const Insn *
load_vector(Warp *w, const Insn *i)
{
	uint64_t	at[LANES];

	i->resolve(w, i, w->mask, at);
	if (i->flags & INSN_POLLS)
		w->polled = true;
	for (int n = 0; n < i->count; n++)
	{
		R		   *d = row<R>(w, i->list[n]);

		FOR_LANES(w->mask, k, d[k] = (R) ((const M *) at[k])[n]);
	}
	return i + 1;
}

template <class M, class R> const Insn *
store(Warp *w, const Insn *i)
{
	uint64_t	at[LANES];
	const R    *b = row<R>(w, i->b);

	i->resolve(w, i, w->mask, at);
	w->wrote |= (i->flags & INSN_STORES) != 0;
	for (uint32_t left = w->mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);

		*(M *) at[k] = (M) b[k];
	}
	return i + 1;
}

template <class M, class R> const Insn *
store_vector(Warp *w, const Insn *i)
{
	uint64_t	at[LANES];
	const R    *b[MOST_IN_VECTOR];

	i->resolve(w, i, w->mask, at);
	w->wrote |= (i->flags & INSN_STORES) != 0;
	for (int n = 0; n < i->count; n++)
		b[n] = row<R>(w, i->list[n]);
	for (uint32_t left = w->mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);

		for (int n = 0; n < i->count; n++)
			((M *) at[k])[n] = (M) b[n][k];
	}
	return i + 1;
}

template <class T> using Plain = typename std::conditional<std::is_same<T, float>::value || std::is_same<T, double>::value ||
	std::is_same<T, Bits128>::value, T, typename std::make_unsigned<typename std::conditional<std::is_integral<T>::value &&
	!std::is_same<T, Bits128>::value, T, int>::type>::type>::type;

struct AtomicAdd { template <class T> static T f(T old, T b, T) { return (T) ((Plain<T>) old + (Plain<T>) b); } };
struct AtomicMin { template <class T> static T f(T old, T b, T) { return b < old ? b : old; } };
struct AtomicMax { template <class T> static T f(T old, T b, T) { return old < b ? b : old; } };
struct AtomicInc { template <class T> static T f(T old, T b, T) { return old >= b ? 0 : (T) (old + 1); } };
struct AtomicDec { template <class T> static T f(T old, T b, T) { return old == 0 || old > b ? b : (T) (old - 1); } };
struct AtomicAnd { template <class T> static T f(T old, T b, T) { return old & b; } };
struct AtomicOr { template <class T> static T f(T old, T b, T) { return old | b; } };
struct AtomicXor { template <class T> static T f(T old, T b, T) { return old ^ b; } };
struct AtomicExch { template <class T> static T f(T, T b, T) { return b; } };
struct AtomicCas { template <class T> static T f(T old, T b, T c) { return old == b ? c : old; } };

/* Lanes one after the other, the lowest first. */
template <class T, class F, bool RESULT> const Insn *
atomic(Warp *w, const Insn *i)
{
	uint64_t	at[LANES];
	const T    *b = row<T>(w, i->b),
			   *c = row<T>(w, i->c);
	T		   *d = row<T>(w, i->d);

	i->resolve(w, i, w->mask, at);
	if (RESULT)
		w->polled = true;
	if (w->counts && i->lo && at[__builtin_ctz(w->mask)] - i->lo < i->len)
		w->counts->global_atomics += __builtin_popcount(w->mask);
	for (uint32_t left = w->mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);
		T		   *place = (T *) at[k],
					old = *place,
					changed = F::template f<T>(old, b[k], c[k]);

		if (memcmp(&old, &changed, sizeof(T)) != 0)
		{
			*place = changed;
			w->wrote = true;
		}
		if (RESULT)
			d[k] = old;
	}
	return i + 1;
}

template <class T, class F> Handler
atomic_of(bool result)
{
	return result ? atomic<T, F, true> : atomic<T, F, false>;
}

#define EACH_NUMBER(type, F, result) \
	switch (type) \
	{ \
		case U32: return atomic_of<uint32_t, F>(result); \
		case U64: return atomic_of<uint64_t, F>(result); \
		case S32: return atomic_of<int32_t, F>(result); \
		case S64: return atomic_of<int64_t, F>(result); \
		default: return NULL; \
	}
#define EACH_BITS(type, F, result) \
	switch (type) \
	{ \
		case U32: case S32: return atomic_of<uint32_t, F>(result); \
		case U64: case S64: return atomic_of<uint64_t, F>(result); \
		default: return NULL; \
	}

/* To [a] from [b], bytes of them; c: how many are read, the others are zero. */
const Insn *
async_copy(Warp *w, const Insn *i)
{
	uint64_t	to[LANES],
				from[LANES] = {};
	Insn		source = *i;
	const uint32_t *count = i->count ? row<uint32_t>(w, i->c) : NULL;
	Block	   *block = w->block;
	uint32_t	reading = w->mask;

	i->resolve(w, i, w->mask, to);
	source.a = i->b;
	source.imm = (int64_t) i->list[0].offset | (int64_t) i->list[0].base << 32;
	for (uint32_t left = count ? w->mask : 0; left; left &= left - 1)
		if (count[__builtin_ctz(left)] == 0)
			reading &= ~(1u << __builtin_ctz(left));
	if (reading)
		resolve_global(w, &source, reading, from);
	i->lo = source.lo;
	i->len = source.len;
	i->version = source.version;
	if (block->landing.empty())
		block->landing.resize(block->shared_bytes / 4 + 1);
	for (uint32_t left = w->mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);
		uint32_t	n = count ? std::min<uint32_t>(count[k], i->bytes) : i->bytes;

		w->copies.push_back(AsyncCopy{from[k], to[k], n, i->bytes - n, w->batch[k], (uint8_t) k});
		memset((void *) to[k], POISON, i->bytes);
		for (unsigned word = 0; word < i->bytes / 4u; word++)
			block->landing[(to[k] - (uint64_t) block->shared) / 4 + word]++;
		block->ncopies++;
	}
	w->wrote = true;
	return i + 1;
}

const Insn *
async_commit(Warp *w, const Insn *i)
{
	FOR_LANES(w->mask, k, w->batch[k]++);
	return i + 1;
}

/* All but the last imm batches have landed; imm -1: all, committed or not. */
const Insn *
async_wait(Warp *w, const Insn *i)
{
	if (i->imm < 0)
		FOR_LANES(w->mask, k, w->batch[k]++);
	finish_copies(w, w->mask, i->imm < 0 ? 0 : (unsigned) i->imm);
	return i + 1;
}

const Insn *
local_address(Warp *w, const Insn *i)
{
	uint64_t   *d = row<uint64_t>(w, i->d),
				base = (uint64_t) w->frame->local + (uint64_t) i->imm,
				stride = w->frame->function->local_bytes;

	FOR_LANES(w->mask, k, d[k] = base + stride * (uint64_t) k);
	return i + 1;
}

const Insn *
param_address(Warp *w, const Insn *i)
{
	uint64_t	at[LANES],
			   *d = row<uint64_t>(w, i->d);

	resolve_param(w, i, w->mask, at);
	FOR_LANES(w->mask, k, d[k] = at[k]);
	return i + 1;
}

template <bool TO_GENERIC> const Insn *
shared_base(Warp *w, const Insn *i)
{
	uint64_t   *d = row<uint64_t>(w, i->d),
				base = (uint64_t) w->block->shared;
	const uint64_t *a = row<uint64_t>(w, i->a);

	FOR_LANES(w->mask, k, d[k] = TO_GENERIC ? a[k] + base : a[k] - base);
	return i + 1;
}

/* The address of block b's copy of the shared variable at a. */
const Insn *
mapa_shared(Warp *w, const Insn *i)
{
	uint32_t   *d = row<uint32_t>(w, i->d);
	const uint32_t *a = row<uint32_t>(w, i->a),
			   *b = row<uint32_t>(w, i->b);

	FOR_LANES(w->mask, k, d[k] = (a[k] & ((1u << CLUSTER_SHIFT) - 1)) | (b[k] + 1) << CLUSTER_SHIFT);
	return i + 1;
}

const Insn *
mapa_generic(Warp *w, const Insn *i)
{
	uint64_t   *d = row<uint64_t>(w, i->d);
	const uint64_t *a = row<uint64_t>(w, i->a);
	const uint32_t *b = row<uint32_t>(w, i->b);

	for (uint32_t left = w->mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);
		Block	   *block = block_of_rank(w->block, b[k]);

		if (block == NULL)
			fault(w, i, 1u << k, "the cluster has no block %u", b[k]);
		d[k] = a[k] - (uint64_t) w->block->shared + (uint64_t) block->shared;
	}
	return i + 1;
}

template <class M> Handler
load_of(unsigned register_bytes, bool vector)
{
	typedef typename std::conditional<sizeof(M) == 16, Bits128, uint64_t>::type Widest;

	if (register_bytes < sizeof(M))
		return NULL;
	switch (register_bytes)
	{
		case 2:
			return vector ? load_vector<M, uint16_t> : load<M, uint16_t>;
		case 4:
			return vector ? load_vector<M, uint32_t> : load<M, uint32_t>;
		default:
			return vector ? load_vector<M, Widest> : load<M, Widest>;
	}
}

template <class M> Handler
store_of(unsigned register_bytes, bool vector)
{
	typedef typename std::conditional<sizeof(M) == 16, Bits128, uint64_t>::type Widest;

	if (register_bytes < sizeof(M))
		return NULL;
	switch (register_bytes)
	{
		case 2:
			return vector ? store_vector<M, uint16_t> : store<M, uint16_t>;
		case 4:
			return vector ? store_vector<M, uint32_t> : store<M, uint32_t>;
		default:
			return vector ? store_vector<M, Widest> : store<M, Widest>;
	}
}

}								/* namespace */

/* The lanes' copies of all batches but the last committed ones land. */
void
finish_copies(Warp *w, uint32_t lanes, unsigned kept_batches)
{
	Block	   *block = w->block;
	size_t		kept = 0;

	for (const AsyncCopy &copy : w->copies)
	{
		if (!(lanes >> copy.lane & 1) || copy.batch + kept_batches >= w->batch[copy.lane])
		{
			w->copies[kept++] = copy;
			continue;
		}
		if (copy.bytes)
			memcpy((void *) copy.to, (const void *) copy.from, copy.bytes);
		memset((char *) copy.to + copy.bytes, 0, copy.zeros);
		for (unsigned word = 0; word < (copy.bytes + copy.zeros) / 4; word++)
			block->landing[(copy.to - (uint64_t) block->shared) / 4 + word]--;
		block->ncopies--;
	}
	w->copies.resize(kept);
}

Handler
load_handler(Type memory, unsigned register_bytes, bool vector)
{
	switch (memory)
	{
		case U8: return load_of<uint8_t>(register_bytes, vector);
		case S8: return load_of<int8_t>(register_bytes, vector);
		case U16: return load_of<uint16_t>(register_bytes, vector);
		case S16: return load_of<int16_t>(register_bytes, vector);
		case U32: case F32: return load_of<uint32_t>(register_bytes, vector);
		case S32: return load_of<int32_t>(register_bytes, vector);
		case U64: case S64: case F64: return load_of<uint64_t>(register_bytes, vector);
		case B128: return register_bytes == 16 ? load_of<Bits128>(16, vector) : NULL;
		default: return NULL;
	}
}

Handler
store_handler(unsigned memory_bytes, unsigned register_bytes, bool vector)
{
	switch (memory_bytes)
	{
		case 1: return store_of<uint8_t>(register_bytes, vector);
		case 2: return store_of<uint16_t>(register_bytes, vector);
		case 4: return store_of<uint32_t>(register_bytes, vector);
		case 8: return store_of<uint64_t>(register_bytes, vector);
		case 16: return register_bytes == 16 ? store_of<Bits128>(16, vector) : NULL;
		default: return NULL;
	}
}

Handler
atomic_handler(const std::string &op, Type type, bool result)
{
	if (op == "add")
	{
		if (type == F32) return atomic_of<float, AtomicAdd>(result);
		if (type == F64) return atomic_of<double, AtomicAdd>(result);
		EACH_NUMBER(type, AtomicAdd, result)
	}
	if (op == "min") EACH_NUMBER(type, AtomicMin, result)
	if (op == "max") EACH_NUMBER(type, AtomicMax, result)
	if (op == "inc") EACH_BITS(type, AtomicInc, result)
	if (op == "dec") EACH_BITS(type, AtomicDec, result)
	if (op == "and") EACH_BITS(type, AtomicAnd, result)
	if (op == "or") EACH_BITS(type, AtomicOr, result)
	if (op == "xor") EACH_BITS(type, AtomicXor, result)
	if (op == "exch")
	{
		if (type == B128) return atomic_of<Bits128, AtomicExch>(result);
		EACH_BITS(type, AtomicExch, result)
	}
	if (op == "cas")
	{
		if (type == U16) return atomic_of<uint16_t, AtomicCas>(result);
		if (type == B128) return atomic_of<Bits128, AtomicCas>(result);
		EACH_BITS(type, AtomicCas, result)
	}
	return NULL;
}

Handler async_copy_handler() { return async_copy; }
Handler async_commit_handler() { return async_commit; }
Handler async_wait_handler() { return async_wait; }
Handler local_address_handler() { return local_address; }
Handler param_address_handler() { return param_address; }
Handler shared_base_handler(bool to_generic) { return to_generic ? shared_base<true> : shared_base<false>; }
Handler mapa_handler(unsigned bytes) { return bytes == 4 ? mapa_shared : mapa_generic; }

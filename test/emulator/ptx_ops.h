/*
 * ptx_ops.h
 *	  Which handler executes an opcode.  ptx_decode.cpp asks with the opcode's parts; NULL: there is
 * none.
 */
#ifndef GPUAGG_PTX_OPS_H
#define GPUAGG_PTX_OPS_H

#include "ptx_internal.h"

#define CLUSTER_SHIFT 24

enum Type
{
	TYPE_NONE,
	U8,
	U16,
	U32,
	U64,
	S8,
	S16,
	S32,
	S64,
	F32,
	F64,
	B128,
	PRED
};

enum Rounding
{
	ROUND_NEAREST,
	ROUND_ZERO,
	ROUND_DOWN,
	ROUND_UP
};

/* ptx_ops_int.cpp, ptx_ops_float.cpp, ptx_ops_cvt.cpp */
Handler integer_handler(const std::string &name, Type type);
Handler wide_handler(const std::string &name, Type type);
Handler predicate_handler(const std::string &name);
Handler move_handler(unsigned bytes);
Handler select_handler(unsigned bytes);
Handler compare_handler(const std::string &comparison, Type type);
Handler combine_predicates_handler(const std::string &op);
Handler float_handler(const std::string &name, Type type, Rounding rounding, bool nan);
Handler flush_handler(); /* subnormals of a float to zero: d = a */
Handler saturate_handler(Type type);
Handler approximate_handler(const std::string &name, Type type);
Handler convert_handler(Type to, Type from, const std::string &rounding, bool saturate);
Handler pack_handler(unsigned whole, unsigned parts);
Handler unpack_handler(unsigned whole, unsigned parts);

/* ptx_ops_memory.cpp: register types are unsigned ones of the register's width */
Handler load_handler(Type memory, unsigned register_bytes, bool vector);
Handler store_handler(unsigned memory_bytes, unsigned register_bytes, bool vector);
Handler atomic_handler(const std::string &op, Type type, bool result);
Handler async_copy_handler();
Handler async_commit_handler();
Handler async_wait_handler();
Handler local_address_handler();
Handler param_address_handler();
Handler shared_base_handler(bool to_generic);
Handler mapa_handler(unsigned bytes);

/* ptx_ops_control.cpp */
Handler control_handler(const std::string &name);
Handler barrier_handler(const std::string &kind);
Handler shuffle_handler(const std::string &mode);
Handler vote_handler(const std::string &mode);
Handler match_handler(bool all, unsigned bytes);
Handler redux_handler(const std::string &op, Type type);
Handler clock_handler(unsigned bytes);

/* ptx_address.cpp */
void resolve_global(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);
void resolve_entry_param(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);
void resolve_shared32(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);
void resolve_shared64(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);
void resolve_cluster32(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);
void resolve_cluster64(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);
void resolve_generic(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);
void resolve_local(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);
void resolve_param(Warp *w, const Insn *i, uint32_t mask, uint64_t *at);

/* ---- handlers of operations that are a function of a lane's operands: F::f<T>() ---- */

template <class T, class F>
const Insn *
unary(Warp *w, const Insn *i)
{
	T *d = row<T>(w, i->d);
	const T *a = row<T>(w, i->a);

	SET_LANES(w->mask, k, d, F::template f<T>(a[k]));
	return i + 1;
}

template <class T, class F>
const Insn *
binary(Warp *w, const Insn *i)
{
	T *d = row<T>(w, i->d);
	const T *a = row<T>(w, i->a), *b = row<T>(w, i->b);

	SET_LANES(w->mask, k, d, (F::template f<T>(a[k], b[k])));
	return i + 1;
}

template <class T, class F>
const Insn *
ternary(Warp *w, const Insn *i)
{
	T *d = row<T>(w, i->d);
	const T *a = row<T>(w, i->a), *b = row<T>(w, i->b), *c = row<T>(w, i->c);

	SET_LANES(w->mask, k, d, (F::template f<T>(a[k], b[k], c[k])));
	return i + 1;
}

#endif /* GPUAGG_PTX_OPS_H */

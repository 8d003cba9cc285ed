/*
 * ptx_ops_int.cpp
 *	  Integer arithmetic, bits, comparisons, moves and predicates.
 */
#include <limits>
#include <type_traits>

#include "ptx_ops.h"

namespace
{

template <class T> using Unsigned = typename std::make_unsigned<T>::type;

template <class T> struct Wider;
template <> struct Wider<uint16_t> { typedef uint32_t type; };
template <> struct Wider<int16_t> { typedef int32_t type; };
template <> struct Wider<uint32_t> { typedef uint64_t type; };
template <> struct Wider<int32_t> { typedef int64_t type; };
template <> struct Wider<uint64_t> { typedef unsigned __int128 type; };
template <> struct Wider<int64_t> { typedef __int128 type; };

/* Arithmetic wraps; done in unsigned types of at least 32 bits, where it is defined. */
template <class T> using Wrap = typename std::conditional<sizeof(T) == 8, uint64_t, uint32_t>::type;

#define OPERATION1(Name, expression) \
	struct Name { template <class T> static inline T f(T a) { return (T) (expression); } }
#define OPERATION2(Name, expression) \
	struct Name { template <class T> static inline T f(T a, T b) { return (T) (expression); } }
#define OPERATION3(Name, expression) \
	struct Name { template <class T> static inline T f(T a, T b, T c) { return (T) (expression); } }

OPERATION2(Add, (Wrap<T>) a + (Wrap<T>) b);
OPERATION2(Sub, (Wrap<T>) a - (Wrap<T>) b);
OPERATION2(MulLow, (Wrap<T>) a * (Wrap<T>) b);
OPERATION2(MulHigh, ((typename Wider<T>::type) a * (typename Wider<T>::type) b) >> (sizeof(T) * 8));
OPERATION2(Min, b < a ? b : a);
OPERATION2(Max, a < b ? b : a);
OPERATION2(And, a & b);
OPERATION2(Or, a | b);
OPERATION2(Xor, a ^ b);
OPERATION1(Not, ~a);
OPERATION1(LogicalNot, a == 0);
OPERATION1(Neg, 0 - (Wrap<T>) a);
OPERATION1(Abs, a < 0 ? 0 - (Wrap<T>) a : (Wrap<T>) a);
OPERATION3(MadLow, (Wrap<T>) a * (Wrap<T>) b + (Wrap<T>) c);
OPERATION3(MadHigh, (Wrap<T>) MulHigh::f<T>(a, b) + (Wrap<T>) c);
OPERATION3(Sad, (Wrap<T>) c + (a < b ? (Wrap<T>) b - (Wrap<T>) a : (Wrap<T>) a - (Wrap<T>) b));

/* As devices do: all ones for a division by zero, and the dividend as its rest. */
struct Div
{
	template <class T> static inline T
	f(T a, T b)
	{
		if (b == 0)
			return (T) -1;
		if (std::is_signed<T>::value && b == (T) -1)
			return Neg::f<T>(a);
		return (T) (a / b);
	}
};

struct Rem
{
	template <class T> static inline T
	f(T a, T b)
	{
		if (b == 0)
			return a;
		if (std::is_signed<T>::value && b == (T) -1)
			return 0;
		return (T) (a % b);
	}
};

/* Shifts by more than the width give what shifting by single bits does. */
struct ShiftLeft
{
	template <class T> static inline T
	f(T a, uint32_t n)
	{
		return n >= sizeof(T) * 8 ? (T) 0 : (T) ((Wrap<T>) a << n);
	}
};

struct ShiftRight
{
	template <class T> static inline T
	f(T a, uint32_t n)
	{
		if (std::is_signed<T>::value)
			return (T) (a >> (n >= sizeof(T) * 8 ? sizeof(T) * 8 - 1 : n));
		return n >= sizeof(T) * 8 ? (T) 0 : (T) (a >> n);
	}
};

template <class T, class F> const Insn *
shift(Warp *w, const Insn *i)
{
	T		   *d = row<T>(w, i->d);
	const T    *a = row<T>(w, i->a);
	const uint32_t *n = row<uint32_t>(w, i->b);

	SET_LANES(w->mask, k, d, (F::template f<T>(a[k], n[k])));
	return i + 1;
}

/* d and a third operand of twice the width. */
template <class T> const Insn *
multiply_wide(Warp *w, const Insn *i)
{
	typedef typename Wider<T>::type W;
	W		   *d = row<W>(w, i->d);
	const T    *a = row<T>(w, i->a),
			   *b = row<T>(w, i->b);

	SET_LANES(w->mask, k, d, (W) a[k] * (W) b[k]);
	return i + 1;
}

template <class T> const Insn *
multiply_add_wide(Warp *w, const Insn *i)
{
	typedef typename Wider<T>::type W;
	typedef Unsigned<W> V;
	W		   *d = row<W>(w, i->d);
	const T    *a = row<T>(w, i->a),
			   *b = row<T>(w, i->b);
	const W    *c = row<W>(w, i->c);

	FOR_LANES(w->mask, k, d[k] = (W) ((V) ((W) a[k] * (W) b[k]) + (V) c[k]));
	return i + 1;
}

/* Carries are bits of the warp's word, which the lanes of different groups do not share. */
inline void
set_carry(Warp *w, int lane, bool carry)
{
	w->carry = (w->carry & ~(1u << lane)) | (uint32_t) carry << lane;
}

template <class T, bool SUBTRACT, bool IN, bool OUT> const Insn *
carried(Warp *w, const Insn *i)
{
	typedef typename Wider<T>::type W;
	T		   *d = row<T>(w, i->d);
	const T    *a = row<T>(w, i->a),
			   *b = row<T>(w, i->b);

	for (uint32_t left = w->mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);
		W			in = IN ? w->carry >> k & 1 : 0,
					sum = SUBTRACT ? (W) a[k] - (W) b[k] - in : (W) a[k] + (W) b[k] + in;

		d[k] = (T) sum;
		if (OUT)
			set_carry(w, k, (sum >> (sizeof(T) * 8)) & 1);
	}
	return i + 1;
}

/* T: signed for the high half of signed products. */
template <class T, bool HIGH, bool IN, bool OUT> const Insn *
multiply_carried(Warp *w, const Insn *i)
{
	typedef Unsigned<T> U;
	typedef typename Wider<U>::type W;
	U		   *d = row<U>(w, i->d);
	const T    *a = row<T>(w, i->a),
			   *b = row<T>(w, i->b);
	const U    *c = row<U>(w, i->c);

	for (uint32_t left = w->mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);
		U			product = (U) (HIGH ? MulHigh::f<T>(a[k], b[k]) : MulLow::f<T>(a[k], b[k]));
		W			sum = (W) product + (W) c[k] + (IN ? w->carry >> k & 1 : 0);

		d[k] = (U) sum;
		if (OUT)
			set_carry(w, k, (sum >> (sizeof(T) * 8)) & 1);
	}
	return i + 1;
}

inline int popcount(uint32_t a) { return __builtin_popcount(a); }
inline int popcount(uint64_t a) { return __builtin_popcountll(a); }
inline int leading(uint32_t a) { return a ? __builtin_clz(a) : 32; }
inline int leading(uint64_t a) { return a ? __builtin_clzll(a) : 64; }

struct Popcount { template <class T> static uint32_t f(T a) { return (uint32_t) popcount(a); } };
struct Leading { template <class T> static uint32_t f(T a) { return (uint32_t) leading(a); } };

/* The highest bit that differs from the sign; SHIFT: how far it is from the top. */
template <bool SHIFT> struct FindBit
{
	template <class T> static uint32_t
	f(T a)
	{
		Unsigned<T> bits = (Unsigned<T>) (a < 0 ? ~a : a);
		int			n = leading(bits);

		if (bits == 0)
			return 0xffffffffu;
		return (uint32_t) (SHIFT ? n : (int) sizeof(T) * 8 - 1 - n);
	}
};

template <class T, class F> const Insn *
to_32_bits(Warp *w, const Insn *i)
{
	uint32_t   *d = row<uint32_t>(w, i->d);
	const T    *a = row<T>(w, i->a);

	SET_LANES(w->mask, k, d, F::template f<T>(a[k]));
	return i + 1;
}

struct Reverse
{
	template <class T> static T
	f(T a)
	{
		T			r = 0;

		for (unsigned k = 0; k < sizeof(T) * 8; k++)
			r = (T) (r << 1 | (a >> k & 1));
		return r;
	}
};

/* Bits of a from a place on, the uppermost one of them as sign. */
template <class T> const Insn *
extract_bits(Warp *w, const Insn *i)
{
	typedef Unsigned<T> U;
	T		   *d = row<T>(w, i->d);
	const T    *a = row<T>(w, i->a);
	const uint32_t *from = row<uint32_t>(w, i->b),
			   *count = row<uint32_t>(w, i->c);
	const unsigned bits = sizeof(T) * 8;

	FOR_LANES(w->mask, k,
			  unsigned at = from[k] & 0xff;
			  unsigned n = count[k] & 0xff;
			  bool past = at >= bits;
			  bool fill = std::is_signed<T>::value && past && a[k] < 0;
			  unsigned left = past || n == 0 ? 0 : n < bits - at ? bits - at - n : 0;
			  unsigned right = past || n == 0 ? 0 : n < bits - at ? bits - n : at;
			  d[k] = n == 0 ? (T) 0 : past ? (T) (fill ? -1 : 0) : (T) ((T) ((U) a[k] << left) >> right));
	return i + 1;
}

template <class T> const Insn *
insert_bits(Warp *w, const Insn *i)
{
	T		   *d = row<T>(w, i->d);
	const T    *a = row<T>(w, i->a),
			   *b = row<T>(w, i->b);
	const uint32_t *from = row<uint32_t>(w, i->c),
			   *count = row<uint32_t>(w, i->e);
	const unsigned bits = sizeof(T) * 8;

	FOR_LANES(w->mask, k,
			  unsigned at = from[k] & 0xff;
			  unsigned n = count[k] & 0xff;
			  T keep = n >= bits ? ~(T) 0 : (T) (((T) 1 << n) - 1);
			  keep = at >= bits ? 0 : (T) (keep << at);
			  d[k] = (T) ((b[k] & ~keep) | (at >= bits ? 0 : (T) (a[k] << at) & keep)));
	return i + 1;
}

template <bool CLAMP> const Insn *
bit_mask(Warp *w, const Insn *i)
{
	uint32_t   *d = row<uint32_t>(w, i->d);
	const uint32_t *from = row<uint32_t>(w, i->a),
			   *count = row<uint32_t>(w, i->b);

	FOR_LANES(w->mask, k,
			  uint32_t at = CLAMP ? (from[k] < 32 ? from[k] : 32) : from[k] & 31;
			  uint32_t n = CLAMP ? (count[k] < 32 ? count[k] : 32) : count[k] & 31;
			  d[k] = (uint32_t) ((((uint64_t) 1 << n) - 1) << at));
	return i + 1;
}

/* lo, hi, count. */
template <bool LEFT, bool CLAMP> const Insn *
funnel(Warp *w, const Insn *i)
{
	uint32_t   *d = row<uint32_t>(w, i->d);
	const uint32_t *lo = row<uint32_t>(w, i->a),
			   *hi = row<uint32_t>(w, i->b),
			   *count = row<uint32_t>(w, i->c);

	FOR_LANES(w->mask, k,
			  uint32_t n = CLAMP ? (count[k] < 32 ? count[k] : 32) : count[k] & 31;
			  uint64_t both = (uint64_t) hi[k] << 32 | lo[k];
			  d[k] = LEFT ? (uint32_t) ((both << n) >> 32) : (uint32_t) (both >> n));
	return i + 1;
}

const Insn *
permute(Warp *w, const Insn *i)
{
	uint32_t   *d = row<uint32_t>(w, i->d);
	const uint32_t *a = row<uint32_t>(w, i->a),
			   *b = row<uint32_t>(w, i->b),
			   *c = row<uint32_t>(w, i->c);

	FOR_LANES(w->mask, k,
			  uint64_t both = (uint64_t) b[k] << 32 | a[k];
			  uint32_t r = 0;
			  for (int n = 0; n < 4; n++)
			  {
				  uint32_t choice = c[k] >> (4 * n) & 15;
				  uint32_t byte = (uint32_t) (both >> (8 * (choice & 7))) & 0xff;

				  if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
				  r |= byte << (8 * n);
			  }
			  d[k] = r);
	return i + 1;
}

/* Any function of three bits: imm has its value for each of the eight inputs. */
const Insn *
logic3(Warp *w, const Insn *i)
{
	uint32_t   *d = row<uint32_t>(w, i->d);
	const uint32_t *a = row<uint32_t>(w, i->a),
			   *b = row<uint32_t>(w, i->b),
			   *c = row<uint32_t>(w, i->c);
	uint32_t	term[8];

	for (int n = 0; n < 8; n++)
		term[n] = i->imm >> n & 1 ? ALL_LANES : 0;
	FOR_LANES(w->mask, k,
			  d[k] = (~a[k] & ~b[k] & ~c[k] & term[0]) | (~a[k] & ~b[k] & c[k] & term[1]) |
			  (~a[k] & b[k] & ~c[k] & term[2]) | (~a[k] & b[k] & c[k] & term[3]) |
			  (a[k] & ~b[k] & ~c[k] & term[4]) | (a[k] & ~b[k] & c[k] & term[5]) |
			  (a[k] & b[k] & ~c[k] & term[6]) | (a[k] & b[k] & c[k] & term[7]));
	return i + 1;
}

template <class A, class B> const Insn *
dot_bytes(Warp *w, const Insn *i)
{
	uint32_t   *d = row<uint32_t>(w, i->d);
	const A    *a = row<A>(w, i->a);
	const B    *b = row<B>(w, i->b);
	const uint32_t *c = row<uint32_t>(w, i->c);

	for (uint32_t left = w->mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);
		uint32_t	sum = c[k];

		for (int n = 0; n < 4; n++)
			sum += (uint32_t) ((int) a[4 * k + n] * (int) b[4 * k + n]);
		d[k] = sum;
	}
	return i + 1;
}

template <class T> const Insn *
move(Warp *w, const Insn *i)
{
	T		   *d = row<T>(w, i->d);
	const T    *a = row<T>(w, i->a);

	SET_LANES(w->mask, k, d, a[k]);
	return i + 1;
}

template <class T> const Insn *
select(Warp *w, const Insn *i)
{
	T		   *d = row<T>(w, i->d);
	const T    *a = row<T>(w, i->a),
			   *b = row<T>(w, i->b);
	uint32_t	p = predicate(w, i->c);

	if (i->flags & INSN_NEGATED)
		p = ~p;
	SET_LANES(w->mask, k, d, (p >> k & 1 ? a[k] : b[k]));
	return i + 1;
}

#define COMPARISON(Name, expression) \
	struct Name { template <class T> static inline bool f(T a, T b) { return expression; } }

COMPARISON(Equal, a == b);
COMPARISON(NotEqual, !(a == b));
COMPARISON(Less, a < b);
COMPARISON(LessEqual, a <= b);
COMPARISON(Greater, a > b);
COMPARISON(GreaterEqual, a >= b);
COMPARISON(Numbers, a == a && b == b);
COMPARISON(OrderedNotEqual, a < b || a > b);
COMPARISON(UnorderedEqual, !(a < b || a > b));
COMPARISON(UnorderedLess, !(a >= b));
COMPARISON(UnorderedLessEqual, !(a > b));
COMPARISON(UnorderedGreater, !(a <= b));
COMPARISON(UnorderedGreaterEqual, !(a < b));
COMPARISON(NotNumbers, !(a == a && b == b));

template <class T, class F> const Insn *
compare(Warp *w, const Insn *i)
{
	const T    *a = row<T>(w, i->a),
			   *b = row<T>(w, i->b);
	uint32_t   &d = predicate(w, i->d);
	uint32_t	r = 0;

	for (int k = 0; k < LANES; k++)
		r |= (uint32_t) F::template f<T>(a[k], b[k]) << k;
	d = (d & ~w->mask) | (r & w->mask);
	return i + 1;
}

enum PredicateOperation
{
	P_AND,
	P_OR,
	P_XOR,
	P_NOT,
	P_MOVE
};

template <PredicateOperation OP> const Insn *
predicates(Warp *w, const Insn *i)
{
	uint32_t	a = predicate(w, i->a),
				b = OP == P_NOT || OP == P_MOVE ? 0 : predicate(w, i->b),
				r = OP == P_AND ? a & b : OP == P_OR ? a | b : OP == P_XOR ? a ^ b : OP == P_NOT ? ~a : a;
	uint32_t   &d = predicate(w, i->d);

	d = (d & ~w->mask) | (r & w->mask);
	return i + 1;
}

/* What setp does behind its comparison: d = d op c, e = !d op c. */
template <PredicateOperation OP> const Insn *
combine_predicates(Warp *w, const Insn *i)
{
	uint32_t   &d = predicate(w, i->d),
			   &e = predicate(w, i->e);
	uint32_t	c = OP == P_MOVE ? 0 : predicate(w, i->c),
				p = d,
				q = ~d;

	if (i->flags & INSN_NEGATED)
		c = ~c;
	p = OP == P_AND ? p & c : OP == P_OR ? p | c : OP == P_XOR ? p ^ c : p;
	q = OP == P_AND ? q & c : OP == P_OR ? q | c : OP == P_XOR ? q ^ c : q;
	d = (d & ~w->mask) | (p & w->mask);
	e = (e & ~w->mask) | (q & w->mask);
	return i + 1;
}

/* Instances by type. */
#define EACH_INTEGER(type, Form, F) \
	switch (type) \
	{ \
		case U16: return Form<uint16_t, F>; \
		case U32: return Form<uint32_t, F>; \
		case U64: return Form<uint64_t, F>; \
		case S16: return Form<int16_t, F>; \
		case S32: return Form<int32_t, F>; \
		case S64: return Form<int64_t, F>; \
		default: return NULL; \
	}
#define EACH_WIDTH(type, Form) \
	switch (type) \
	{ \
		case U32: case S32: return Form<uint32_t>; \
		case U64: case S64: return Form<uint64_t>; \
		default: return NULL; \
	}
#define EACH_UNSIGNED(type, Form, F) \
	switch (type) \
	{ \
		case U32: case S32: return Form<uint32_t, F>; \
		case U64: case S64: return Form<uint64_t, F>; \
		default: return NULL; \
	}

template <bool SUBTRACT, bool IN, bool OUT> Handler
carried_of(Type type)
{
	return type == U32 || type == S32 ? carried<uint32_t, SUBTRACT, IN, OUT> :
		type == U64 || type == S64 ? carried<uint64_t, SUBTRACT, IN, OUT> : (Handler) NULL;
}

template <bool HIGH, bool IN, bool OUT> Handler
multiply_carried_of(Type type)
{
	switch (type)
	{
		case U32: return multiply_carried<uint32_t, HIGH, IN, OUT>;
		case S32: return multiply_carried<int32_t, HIGH, IN, OUT>;
		case U64: return multiply_carried<uint64_t, HIGH, IN, OUT>;
		case S64: return multiply_carried<int64_t, HIGH, IN, OUT>;
		default: return NULL;
	}
}

/* Operations with carries, by their opcode with all parts but the type. */
Handler
carry_handler(const std::string &name, Type type)
{
	if (name == "add.cc") return carried_of<false, false, true>(type);
	if (name == "addc") return carried_of<false, true, false>(type);
	if (name == "addc.cc") return carried_of<false, true, true>(type);
	if (name == "sub.cc") return carried_of<true, false, true>(type);
	if (name == "subc") return carried_of<true, true, false>(type);
	if (name == "subc.cc") return carried_of<true, true, true>(type);
	if (name == "mad.lo.cc") return multiply_carried_of<false, false, true>(type);
	if (name == "madc.lo") return multiply_carried_of<false, true, false>(type);
	if (name == "madc.lo.cc") return multiply_carried_of<false, true, true>(type);
	if (name == "mad.hi.cc") return multiply_carried_of<true, false, true>(type);
	if (name == "madc.hi") return multiply_carried_of<true, true, false>(type);
	if (name == "madc.hi.cc") return multiply_carried_of<true, true, true>(type);
	return NULL;
}

Handler
bits_handler(const std::string &name, Type type)
{
	if (name == "popc") { EACH_UNSIGNED(type, to_32_bits, Popcount) }
	if (name == "clz") { EACH_UNSIGNED(type, to_32_bits, Leading) }
	if (name == "brev") { EACH_UNSIGNED(type, unary, Reverse) }
	if (name == "bfind" || name == "bfind.shiftamt")
	{
		bool		amount = name != "bfind";

		switch (type)
		{
			case U32: return amount ? to_32_bits<uint32_t, FindBit<true>> : to_32_bits<uint32_t, FindBit<false>>;
			case S32: return amount ? to_32_bits<int32_t, FindBit<true>> : to_32_bits<int32_t, FindBit<false>>;
			case U64: return amount ? to_32_bits<uint64_t, FindBit<true>> : to_32_bits<uint64_t, FindBit<false>>;
			case S64: return amount ? to_32_bits<int64_t, FindBit<true>> : to_32_bits<int64_t, FindBit<false>>;
			default: return NULL;
		}
	}
	if (name == "bfe")
		switch (type)
		{
			case U32: return extract_bits<uint32_t>;
			case S32: return extract_bits<int32_t>;
			case U64: return extract_bits<uint64_t>;
			case S64: return extract_bits<int64_t>;
			default: return NULL;
		}
	if (name == "bfi") { EACH_WIDTH(type, insert_bits) }
	if (name == "bmsk.clamp") return bit_mask<true>;
	if (name == "bmsk.wrap") return bit_mask<false>;
	if (name == "shf.l.wrap") return funnel<true, false>;
	if (name == "shf.l.clamp") return funnel<true, true>;
	if (name == "shf.r.wrap") return funnel<false, false>;
	if (name == "shf.r.clamp") return funnel<false, true>;
	if (name == "prmt") return permute;
	if (name == "lop3") return logic3;
	if (name == "dp4a.u32") return type == U32 ? dot_bytes<uint8_t, uint8_t> : dot_bytes<uint8_t, int8_t>;
	if (name == "dp4a.s32") return type == U32 ? dot_bytes<int8_t, uint8_t> : dot_bytes<int8_t, int8_t>;
	return NULL;
}

}								/* namespace */

Handler
integer_handler(const std::string &name, Type type)
{
	Handler		special = carry_handler(name, type);

	if (special == NULL)
		special = bits_handler(name, type);
	if (special)
		return special;
	if (name == "add") EACH_INTEGER(type, binary, Add)
	if (name == "sub") EACH_INTEGER(type, binary, Sub)
	if (name == "mul.lo") EACH_INTEGER(type, binary, MulLow)
	if (name == "mul.hi") EACH_INTEGER(type, binary, MulHigh)
	if (name == "mad.lo") EACH_INTEGER(type, ternary, MadLow)
	if (name == "mad.hi") EACH_INTEGER(type, ternary, MadHigh)
	if (name == "sad") EACH_INTEGER(type, ternary, Sad)
	if (name == "div") EACH_INTEGER(type, binary, Div)
	if (name == "rem") EACH_INTEGER(type, binary, Rem)
	if (name == "min") EACH_INTEGER(type, binary, Min)
	if (name == "max") EACH_INTEGER(type, binary, Max)
	if (name == "neg") EACH_INTEGER(type, unary, Neg)
	if (name == "abs") EACH_INTEGER(type, unary, Abs)
	if (name == "and") EACH_INTEGER(type, binary, And)
	if (name == "or") EACH_INTEGER(type, binary, Or)
	if (name == "xor") EACH_INTEGER(type, binary, Xor)
	if (name == "not") EACH_INTEGER(type, unary, Not)
	if (name == "cnot") EACH_INTEGER(type, unary, LogicalNot)
	if (name == "shl") EACH_INTEGER(type, shift, ShiftLeft)
	if (name == "shr") EACH_INTEGER(type, shift, ShiftRight)
	return NULL;
}

Handler
wide_handler(const std::string &name, Type type)
{
	bool		add = name == "mad.wide";

	switch (type)
	{
		case U16: return add ? multiply_add_wide<uint16_t> : multiply_wide<uint16_t>;
		case S16: return add ? multiply_add_wide<int16_t> : multiply_wide<int16_t>;
		case U32: return add ? multiply_add_wide<uint32_t> : multiply_wide<uint32_t>;
		case S32: return add ? multiply_add_wide<int32_t> : multiply_wide<int32_t>;
		default: return NULL;
	}
}

Handler
predicate_handler(const std::string &name)
{
	return name == "and" ? predicates<P_AND> : name == "or" ? predicates<P_OR> : name == "xor" ? predicates<P_XOR> :
		name == "not" ? predicates<P_NOT> : name == "mov" ? predicates<P_MOVE> : (Handler) NULL;
}

Handler
combine_predicates_handler(const std::string &op)
{
	return op == "and" ? combine_predicates<P_AND> : op == "or" ? combine_predicates<P_OR> :
		op == "xor" ? combine_predicates<P_XOR> : combine_predicates<P_MOVE>;
}

Handler
move_handler(unsigned bytes)
{
	return bytes == 2 ? move<uint16_t> : bytes == 4 ? move<uint32_t> : bytes == 8 ? move<uint64_t> :
		bytes == 16 ? move<Bits128> : (Handler) NULL;
}

Handler
select_handler(unsigned bytes)
{
	return bytes == 2 ? select<uint16_t> : bytes == 4 ? select<uint32_t> : bytes == 8 ? select<uint64_t> : (Handler) NULL;
}

#define EACH_COMPARED(type, F) \
	switch (type) \
	{ \
		case U16: return compare<uint16_t, F>; \
		case U32: return compare<uint32_t, F>; \
		case U64: return compare<uint64_t, F>; \
		case S16: return compare<int16_t, F>; \
		case S32: return compare<int32_t, F>; \
		case S64: return compare<int64_t, F>; \
		case F32: return compare<float, F>; \
		case F64: return compare<double, F>; \
		default: return NULL; \
	}

Handler
compare_handler(const std::string &comparison, Type type)
{
	const std::string &c = comparison;

	if (type == F32 || type == F64)
	{
		bool		wide = type == F64;

		if (c == "ne") return wide ? compare<double, OrderedNotEqual> : compare<float, OrderedNotEqual>;
		if (c == "equ") return wide ? compare<double, UnorderedEqual> : compare<float, UnorderedEqual>;
		if (c == "neu") return wide ? compare<double, NotEqual> : compare<float, NotEqual>;
		if (c == "ltu") return wide ? compare<double, UnorderedLess> : compare<float, UnorderedLess>;
		if (c == "leu") return wide ? compare<double, UnorderedLessEqual> : compare<float, UnorderedLessEqual>;
		if (c == "gtu") return wide ? compare<double, UnorderedGreater> : compare<float, UnorderedGreater>;
		if (c == "geu") return wide ? compare<double, UnorderedGreaterEqual> : compare<float, UnorderedGreaterEqual>;
		if (c == "num") return wide ? compare<double, Numbers> : compare<float, Numbers>;
		if (c == "nan") return wide ? compare<double, NotNumbers> : compare<float, NotNumbers>;
	}
	if (c == "eq") EACH_COMPARED(type, Equal)
	if (c == "ne") EACH_COMPARED(type, NotEqual)
	if (c == "lt" || c == "lo") EACH_COMPARED(type, Less)
	if (c == "le" || c == "ls") EACH_COMPARED(type, LessEqual)
	if (c == "gt" || c == "hi") EACH_COMPARED(type, Greater)
	if (c == "ge" || c == "hs") EACH_COMPARED(type, GreaterEqual)
	return NULL;
}

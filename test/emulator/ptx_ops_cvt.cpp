/*
 * ptx_ops_cvt.cpp
 *	  Conversions between types, and packing of registers into wider ones.
 */
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ptx_ops.h"

namespace
{

enum CvtRounding
{
	CVT_NEAREST,				/* of a float's value; to the even of two */
	CVT_ZERO,
	CVT_DOWN,
	CVT_UP,
	CVT_NONE
};

/* Lanes as 64 bits, from registers of any width. */
void
read_register(Warp *w, Operand o, unsigned bytes, uint64_t *out)
{
	switch (bytes)
	{
		case 2:
			for (int k = 0; k < LANES; k++)
				out[k] = row<uint16_t>(w, o)[k];
			break;
		case 4:
			for (int k = 0; k < LANES; k++)
				out[k] = row<uint32_t>(w, o)[k];
			break;
		default:
			memcpy(out, row<uint64_t>(w, o), LANES * 8);
			break;
	}
}

void
write_register(Warp *w, Operand o, unsigned bytes, const uint64_t *in)
{
	switch (bytes)
	{
		case 2:
			FOR_LANES(w->mask, k, row<uint16_t>(w, o)[k] = (uint16_t) in[k]);
			break;
		case 4:
			FOR_LANES(w->mask, k, row<uint32_t>(w, o)[k] = (uint32_t) in[k]);
			break;
		default:
			FOR_LANES(w->mask, k, row<uint64_t>(w, o)[k] = in[k]);
			break;
	}
}

template <class T> inline T
from_bits(uint64_t bits)
{
	T			value;

	memcpy(&value, &bits, sizeof(T));
	return value;
}

/* Integers are extended by their sign to the register's width, floats have their own. */
template <class T> inline uint64_t
to_bits(T value)
{
	uint64_t	bits = 0;

	if (std::is_integral<T>::value)
		return (uint64_t) (int64_t) value;
	memcpy(&bits, &value, sizeof(T));
	return bits;
}

template <class D, class S> inline D
integer_to_integer(S value, bool saturate)
{
	if (saturate)
	{
		__int128	wide = value,
					least = std::numeric_limits<D>::min(),
					most = std::numeric_limits<D>::max();

		return (D) (wide < least ? least : wide > most ? most : wide);
	}
	return (D) value;
}

template <class F> inline F
to_integral(F value, CvtRounding rounding)
{
	switch (rounding)
	{
		case CVT_NEAREST:
			return std::nearbyint(value);
		case CVT_ZERO:
			return std::trunc(value);
		case CVT_DOWN:
			return std::floor(value);
		case CVT_UP:
			return std::ceil(value);
		default:
			return value;
	}
}

/* Limits of the integers bound the result; NaN is 0, but the lowest or middle value where 64 bits take part. */
template <class D, class F> inline D
float_to_integer(F value, CvtRounding rounding)
{
	F			whole = to_integral(value, rounding);

	if (value != value)
	{
		if (sizeof(F) < 8 && sizeof(D) < 8)
			return 0;
		return (D) ((typename std::make_unsigned<D>::type) 1 << (sizeof(D) * 8 - 1));
	}
	if (whole >= (F) std::ldexp((F) 1, (int) sizeof(D) * 8 - (std::is_signed<D>::value ? 1 : 0)))
		return std::numeric_limits<D>::max();
	if (whole <= (F) std::numeric_limits<D>::min())
		return std::numeric_limits<D>::min();
	return (D) whole;
}

/* Rounded by the processor in the mode that is set around it. */
template <class D, class S> D __attribute__((noinline))
rounded_by_mode(S value, CvtRounding rounding)
{
	volatile S	from = value;
	volatile D	to;

	std::fesetround(rounding == CVT_ZERO ? FE_TOWARDZERO : rounding == CVT_DOWN ? FE_DOWNWARD :
					rounding == CVT_UP ? FE_UPWARD : FE_TONEAREST);
	to = (D) from;
	std::fesetround(FE_TONEAREST);
	return to;
}

template <class F> inline F
between_0_and_1(F value)
{
	return value > 0 ? value < 1 ? value : (F) 1 : (F) 0;
}

template <class D, class S> inline D
convert_value(S value, CvtRounding rounding, bool saturate)
{
	if constexpr (std::is_integral<D>::value && std::is_integral<S>::value)
		return integer_to_integer<D, S>(value, saturate);
	else if constexpr (std::is_integral<D>::value)
		return float_to_integer<D, S>(value, rounding);
	else if constexpr (std::is_same<D, S>::value)
	{
		D			whole = to_integral(value, rounding);

		return saturate ? between_0_and_1(whole) : whole;
	}
	else
	{
		D			result = rounding == CVT_NEAREST || rounding == CVT_NONE ? (D) value :
			rounded_by_mode<D, S>(value, rounding);

		if (sizeof(D) == 4 && result != result)
			result = from_bits<D>(0x7fffffffu);
		return saturate ? between_0_and_1(result) : result;
	}
}

/* imm: widths of the registers of d and a; e: as d. */
template <class D, class S, CvtRounding ROUNDING, bool SATURATE> const Insn *
convert(Warp *w, const Insn *i)
{
	uint64_t	in[LANES],
				out[LANES];
	unsigned	to_bytes = i->imm & 0xff,
				from_bytes = i->imm >> 8 & 0xff;

	if (to_bytes == sizeof(D) && from_bytes == sizeof(S))
	{
		D		   *d = row<D>(w, i->d);
		const S    *a = row<S>(w, i->a);

		SET_LANES(w->mask, k, d, (convert_value<D, S>(a[k], ROUNDING, SATURATE)));
		return i + 1;
	}
	read_register(w, i->a, from_bytes, in);
	FOR_LANES(w->mask, k,
			  out[k] = to_bits<D>(convert_value<D, S>(from_bits<S>(in[k]), ROUNDING, SATURATE)));
	write_register(w, i->d, to_bytes, out);
	return i + 1;
}

template <class D, class S> Handler
convert_of(CvtRounding rounding, bool saturate)
{
	if constexpr (std::is_integral<D>::value && std::is_integral<S>::value)
		return saturate ? convert<D, S, CVT_NONE, true> : convert<D, S, CVT_NONE, false>;
	else if constexpr (std::is_integral<D>::value)
		return rounding == CVT_NEAREST ? convert<D, S, CVT_NEAREST, false> :
			rounding == CVT_DOWN ? convert<D, S, CVT_DOWN, false> :
			rounding == CVT_UP ? convert<D, S, CVT_UP, false> : convert<D, S, CVT_ZERO, false>;
	else
	{
		switch (rounding)
		{
			case CVT_NEAREST: return saturate ? convert<D, S, CVT_NEAREST, true> : convert<D, S, CVT_NEAREST, false>;
			case CVT_ZERO: return saturate ? convert<D, S, CVT_ZERO, true> : convert<D, S, CVT_ZERO, false>;
			case CVT_DOWN: return saturate ? convert<D, S, CVT_DOWN, true> : convert<D, S, CVT_DOWN, false>;
			case CVT_UP: return saturate ? convert<D, S, CVT_UP, true> : convert<D, S, CVT_UP, false>;
			default: return saturate ? convert<D, S, CVT_NONE, true> : convert<D, S, CVT_NONE, false>;
		}
	}
}

template <class D> Handler
convert_to(Type from, CvtRounding rounding, bool saturate)
{
	switch (from)
	{
		case U8: return convert_of<D, uint8_t>(rounding, saturate);
		case U16: return convert_of<D, uint16_t>(rounding, saturate);
		case U32: return convert_of<D, uint32_t>(rounding, saturate);
		case U64: return convert_of<D, uint64_t>(rounding, saturate);
		case S8: return convert_of<D, int8_t>(rounding, saturate);
		case S16: return convert_of<D, int16_t>(rounding, saturate);
		case S32: return convert_of<D, int32_t>(rounding, saturate);
		case S64: return convert_of<D, int64_t>(rounding, saturate);
		case F32: return convert_of<D, float>(rounding, saturate);
		case F64: return convert_of<D, double>(rounding, saturate);
		default: return NULL;
	}
}

/* Elements of list, the first one lowest, to d. */
template <class D, class S> const Insn *
pack(Warp *w, const Insn *i)
{
	D		   *d = row<D>(w, i->d);
	const S    *part[8] = {};

	for (int n = 0; n < i->count; n++)
		part[n] = row<S>(w, i->list[n]);
	D			whole[LANES];

	for (int k = 0; k < LANES; k++)
		whole[k] = part[0][k];
	for (int n = 1; n < i->count; n++)
		for (int k = 0; k < LANES; k++)
			whole[k] = (D) (whole[k] | (D) ((D) part[n][k] << (n * (int) sizeof(S) * 8)));
	SET_LANES(w->mask, k, d, whole[k]);
	return i + 1;
}

template <class D, class S> const Insn *
unpack(Warp *w, const Insn *i)
{
	const D    *a = row<D>(w, i->a);
	D			whole[LANES];

	memcpy(whole, a, sizeof(whole));
	for (int n = 0; n < i->count; n++)
	{
		S		   *part = row<S>(w, i->list[n]);

		SET_LANES(w->mask, k, part, (S) (whole[k] >> (n * (int) sizeof(S) * 8)));
	}
	return i + 1;
}

}								/* namespace */

Handler
convert_handler(Type to, Type from, const std::string &rounding, bool saturate)
{
	CvtRounding r = rounding == "rn" || rounding == "rni" ? CVT_NEAREST :
		rounding == "rz" || rounding == "rzi" ? CVT_ZERO : rounding == "rm" || rounding == "rmi" ? CVT_DOWN :
		rounding == "rp" || rounding == "rpi" ? CVT_UP : CVT_NONE;

	switch (to)
	{
		case U8: return convert_to<uint8_t>(from, r, saturate);
		case U16: return convert_to<uint16_t>(from, r, saturate);
		case U32: return convert_to<uint32_t>(from, r, saturate);
		case U64: return convert_to<uint64_t>(from, r, saturate);
		case S8: return convert_to<int8_t>(from, r, saturate);
		case S16: return convert_to<int16_t>(from, r, saturate);
		case S32: return convert_to<int32_t>(from, r, saturate);
		case S64: return convert_to<int64_t>(from, r, saturate);
		case F32: return convert_to<float>(from, r, saturate);
		case F64: return convert_to<double>(from, r, saturate);
		default: return NULL;
	}
}

Handler
pack_handler(unsigned whole, unsigned parts)
{
	if (whole == 16)
		return parts == 2 ? pack<Bits128, uint64_t> : (Handler) NULL;
	if (whole == 8)
		return parts == 2 ? pack<uint64_t, uint32_t> : parts == 4 ? pack<uint64_t, uint16_t> : (Handler) NULL;
	if (whole == 4)
		return parts == 2 ? pack<uint32_t, uint16_t> : (Handler) NULL;
	return NULL;
}

Handler
unpack_handler(unsigned whole, unsigned parts)
{
	if (whole == 16)
		return parts == 2 ? unpack<Bits128, uint64_t> : (Handler) NULL;
	if (whole == 8)
		return parts == 2 ? unpack<uint64_t, uint32_t> : parts == 4 ? unpack<uint64_t, uint16_t> : (Handler) NULL;
	if (whole == 4)
		return parts == 2 ? unpack<uint32_t, uint16_t> : (Handler) NULL;
	return NULL;
}

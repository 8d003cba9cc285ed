/*
 * ptx_ops_float.cpp
 *	  Floating point.  Rounding other than to nearest sets the processor's mode around an operation whose operands and
 *	  result the compiler cannot see through.
 */
#include <cfenv>
#include <cmath>

#include "ptx_ops.h"

namespace
{

template <class T> inline T
quiet()
{
	return sizeof(T) == 4 ? (T) std::nanf("") : (T) std::nan("");
}

inline float
canonical(float value)
{
	uint32_t	bits = 0x7fffffffu;

	if (value == value)
		return value;
	memcpy(&value, &bits, 4);
	return value;
}

inline double
canonical(double value)
{
	return value;
}

/* Single precision has one NaN for results; double precision keeps payloads as the host does. */
struct FAdd { template <class T> static inline T f(T a, T b) { return canonical(a + b); } };
struct FSub { template <class T> static inline T f(T a, T b) { return canonical(a - b); } };
struct FMul { template <class T> static inline T f(T a, T b) { return canonical(a * b); } };
struct FDiv { template <class T> static inline T f(T a, T b) { return canonical(a / b); } };

/* A number wins over NaN, +0 over -0 as the greater. */
struct FMin
{
	template <class T> static inline T
	f(T a, T b)
	{
		if (a != a)
			return canonical(b);
		if (b != b)
			return a;
		return a < b || (a == b && std::signbit(a)) ? a : b;
	}
};

struct FMax
{
	template <class T> static inline T
	f(T a, T b)
	{
		if (a != a)
			return canonical(b);
		if (b != b)
			return a;
		return a > b || (a == b && !std::signbit(a)) ? a : b;
	}
};

struct FMinNan { template <class T> static inline T f(T a, T b) { return a != a || b != b ? canonical(quiet<T>()) : FMin::f(a, b); } };
struct FMaxNan { template <class T> static inline T f(T a, T b) { return a != a || b != b ? canonical(quiet<T>()) : FMax::f(a, b); } };
struct FCopySign { template <class T> static inline T f(T a, T b) { return std::copysign(b, a); } };
struct FNeg { template <class T> static inline T f(T a) { return -a; } };
struct FAbs { template <class T> static inline T f(T a) { return std::fabs(a); } };
struct FSqrt { template <class T> static inline T f(T a) { return canonical(std::sqrt(a)); } };
struct FRcp { template <class T> static inline T f(T a) { return canonical((T) 1 / a); } };
struct FRsqrt { template <class T> static inline T f(T a) { return canonical((T) (1.0L / sqrtl((long double) a))); } };
struct FExp2 { template <class T> static inline T f(T a) { return canonical(std::exp2(a)); } };
struct FLog2 { template <class T> static inline T f(T a) { return canonical(std::log2(a)); } };
struct FSin { template <class T> static inline T f(T a) { return canonical(std::sin(a)); } };
struct FCos { template <class T> static inline T f(T a) { return canonical(std::cos(a)); } };
struct FTanh { template <class T> static inline T f(T a) { return canonical(std::tanh(a)); } };
struct FMulAdd { template <class T> static inline T f(T a, T b, T c) { return canonical(std::fma(a, b, c)); } };

enum RoundedOperation
{
	R_ADD,
	R_SUB,
	R_MUL,
	R_DIV,
	R_SQRT,
	R_RCP,
	R_FMA
};

template <int MODE> class RoundingMode
{
public:
	RoundingMode() { std::fesetround(MODE); }
	~RoundingMode() { std::fesetround(FE_TONEAREST); }
};

template <class T, RoundedOperation OP, int MODE> const Insn *
rounded(Warp *w, const Insn *i)
{
	T		   *d = row<T>(w, i->d);
	const T    *a = row<T>(w, i->a),
			   *b = OP == R_SQRT || OP == R_RCP ? a : row<T>(w, i->b),
			   *c = OP == R_FMA ? row<T>(w, i->c) : a;
	RoundingMode<MODE> mode;

	for (uint32_t left = w->mask; left; left &= left - 1)
	{
		int			k = __builtin_ctz(left);
		volatile T	x = a[k],
					y = b[k],
					z = c[k],
					r;

		switch (OP)
		{
			case R_ADD: r = x + y; break;
			case R_SUB: r = x - y; break;
			case R_MUL: r = x * y; break;
			case R_DIV: r = x / y; break;
			case R_SQRT: r = std::sqrt(x); break;
			case R_RCP: r = (T) 1 / x; break;
			default: r = std::fma(x, y, z); break;
		}
		d[k] = canonical((T) r);
	}
	return i + 1;
}

/* d = a, subnormals as zero of their sign. */
const Insn *
flush(Warp *w, const Insn *i)
{
	uint32_t   *d = row<uint32_t>(w, i->d);
	const uint32_t *a = row<uint32_t>(w, i->a);

	FOR_LANES(w->mask, k, d[k] = a[k] & 0x7f800000u ? a[k] : a[k] & 0x80000000u);
	return i + 1;
}

/* Between 0 and 1; NaN is 0. */
template <class T> const Insn *
saturate(Warp *w, const Insn *i)
{
	T		   *d = row<T>(w, i->d);
	const T    *a = row<T>(w, i->a);

	FOR_LANES(w->mask, k, d[k] = a[k] > 0 ? a[k] < 1 ? a[k] : (T) 1 : (T) 0);
	return i + 1;
}

template <class T, RoundedOperation OP> Handler
rounded_of(Rounding rounding)
{
	return rounding == ROUND_ZERO ? rounded<T, OP, FE_TOWARDZERO> :
		rounding == ROUND_DOWN ? rounded<T, OP, FE_DOWNWARD> : rounded<T, OP, FE_UPWARD>;
}

template <class T> Handler
handler_of(const std::string &name, Rounding rounding, bool nan)
{
	bool		nearest = rounding == ROUND_NEAREST;

	if (name == "add") return nearest ? binary<T, FAdd> : rounded_of<T, R_ADD>(rounding);
	if (name == "sub") return nearest ? binary<T, FSub> : rounded_of<T, R_SUB>(rounding);
	if (name == "mul") return nearest ? binary<T, FMul> : rounded_of<T, R_MUL>(rounding);
	if (name == "div") return nearest ? binary<T, FDiv> : rounded_of<T, R_DIV>(rounding);
	if (name == "fma" || name == "mad") return nearest ? ternary<T, FMulAdd> : rounded_of<T, R_FMA>(rounding);
	if (name == "sqrt") return nearest ? unary<T, FSqrt> : rounded_of<T, R_SQRT>(rounding);
	if (name == "rcp") return nearest ? unary<T, FRcp> : rounded_of<T, R_RCP>(rounding);
	if (name == "min") return nan ? binary<T, FMinNan> : binary<T, FMin>;
	if (name == "max") return nan ? binary<T, FMaxNan> : binary<T, FMax>;
	if (name == "neg") return unary<T, FNeg>;
	if (name == "abs") return unary<T, FAbs>;
	if (name == "copysign") return binary<T, FCopySign>;
	if (name == "rsqrt") return unary<T, FRsqrt>;
	if (name == "ex2") return unary<T, FExp2>;
	if (name == "lg2") return unary<T, FLog2>;
	if (name == "sin") return unary<T, FSin>;
	if (name == "cos") return unary<T, FCos>;
	if (name == "tanh") return unary<T, FTanh>;
	return NULL;
}

}								/* namespace */

Handler
float_handler(const std::string &name, Type type, Rounding rounding, bool nan)
{
	return type == F32 ? handler_of<float>(name, rounding, nan) :
		type == F64 ? handler_of<double>(name, rounding, nan) : (Handler) NULL;
}

Handler
flush_handler()
{
	return flush;
}

Handler
saturate_handler(Type type)
{
	return type == F32 ? saturate<float> : saturate<double>;
}

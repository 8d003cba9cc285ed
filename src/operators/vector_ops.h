/*
 * vector_ops.h
 *	  Every operation of vector expressions over scalar columns, one row each; for gcc and nvcc.
 *
 *	OP1(FUNC, R, A, rare, value)			a function of one argument
 *	OP2(FUNC, R, A, B, rare, value)			a function of two arguments
 *	HOST1, HOST2							the same, but not for the GPU: the last digit of the
 *											result depends on the C library
 *	OP2_FLOAT(FUNC, A, B, simple, value)	a comparison of floats; `simple` is its value if b is
 *											not NaN.  An OP2 unless the includer defines it
 *
 *	FUNC		the SQL function, as in utils/fmgroids.h (an operator has the name of its function)
 *	R, A, B		ColumnTypes of result and arguments, without the prefix COLUMN_
 *	rare		condition for the scalar fallback: core raises an error, or `value` is wrong for
 *				such arguments; 0: never
 *	value		the result
 *
 * For example, the row
 *
 *	OP2(F_INT4PL, I32, I32, I32, (int64_t) a + (int64_t) b != r, (int64_t) a + (int64_t) b)
 *
 * is the function int4pl, which implements int4 + int4.  It takes two COLUMN_I32 vectors a and b,
 * and gives a COLUMN_I32 vector r of sums.  A row whose sum does not fit into r takes the scalar
 * fallback, and core raises "integer out of range".
 *
 * rare and value are C expressions of a and b; rare may also use r, the result.  They are evaluated
 * for every bit pattern, because NULL rows also have some value.  So they must not trap (no
 * division by zero), and signed integers must not overflow (use unsigned ones).  All functions are
 * strict.
 *
 * Floats round as core's do with contraction off.  Transcendental functions call the same C
 * library.
 *
 * The includer includes math.h and vector_functions.h, defines OP1, OP2, HOST1 and HOST2, and
 * undefines them afterwards.
 */
/* ---- comparisons --------------------------------------------------------- */

#define OPS_COMPARE(P, A, B) \
	OP2(P##EQ, I8, A, B, 0, a == b) \
	OP2(P##NE, I8, A, B, 0, a != b) \
	OP2(P##LT, I8, A, B, 0, a < b) \
	OP2(P##LE, I8, A, B, 0, a <= b) \
	OP2(P##GT, I8, A, B, 0, a > b) \
	OP2(P##GE, I8, A, B, 0, a >= b)

OPS_COMPARE(F_INT2, I16, I16)
OPS_COMPARE(F_INT4, I32, I32)
OPS_COMPARE(F_INT8, I64, I64)
OPS_COMPARE(F_INT24, I16, I32)
OPS_COMPARE(F_INT42, I32, I16)
OPS_COMPARE(F_INT28, I16, I64)
OPS_COMPARE(F_INT82, I64, I16)
OPS_COMPARE(F_INT48, I32, I64)
OPS_COMPARE(F_INT84, I64, I32)
OPS_COMPARE(F_BOOL, I8, I8)
OPS_COMPARE(F_OID, U32, U32)
OPS_COMPARE(F_DATE_, I32, I32)
OPS_COMPARE(F_TIME_, I64, I64)
OPS_COMPARE(F_TIMESTAMP_, I64, I64)
OPS_COMPARE(F_TIMESTAMPTZ_, I64, I64)
OPS_COMPARE(F_CASH_, I64, I64)
OP2(F_CHAREQ, I8, I8, I8, 0, a == b)
OP2(F_CHARNE, I8, I8, I8, 0, a != b)
OP2(F_ENUM_EQ, I8, U32, U32, 0, a == b)
OP2(F_ENUM_NE, I8, U32, U32, 0, a != b)
#undef OPS_COMPARE

/* NaN equals NaN and is above all other values. */
#ifdef OP2_FLOAT
#define OPS_FLOAT(P, NAME, A, B, simple, value) OP2_FLOAT(P##NAME, A, B, simple, value)
#else
#define OPS_FLOAT(P, NAME, A, B, simple, value) OP2(P##NAME, I8, A, B, 0, value)
#endif
#define OPS_COMPARE_FLOAT(P, A, B) \
	OPS_FLOAT(P, EQ, A, B, a == b, (a == b) | ((a != a) & (b != b))) \
	OPS_FLOAT(P, NE, A, B, a != b, (a != b) & !((a != a) & (b != b))) \
	OPS_FLOAT(P, LT, A, B, a < b, !(a >= b) & (a == a)) \
	OPS_FLOAT(P, LE, A, B, a <= b, (a <= b) | (b != b)) \
	OPS_FLOAT(P, GT, A, B, !(a <= b), !(a <= b) & (b == b)) \
	OPS_FLOAT(P, GE, A, B, !(a < b), (a >= b) | (a != a))

OPS_COMPARE_FLOAT(F_FLOAT4, F32, F32)
OPS_COMPARE_FLOAT(F_FLOAT8, F64, F64)
OPS_COMPARE_FLOAT(F_FLOAT48, F32, F64)
OPS_COMPARE_FLOAT(F_FLOAT84, F64, F32)
#undef OPS_COMPARE_FLOAT
#undef OPS_FLOAT

/*
 * Compares a date with a timestamp.  Infinities and dates beyond the range of timestamps are rare.
 */
#define EXPR_DATE_RARE(d) ((d) < -2451545 || (d) > 106751982)
#define EXPR_DATE_USEC(d) ((int64_t) ((uint64_t) (int64_t) (d) *86400000000u))
#define OPS_COMPARE_DATE(op, sym) \
	OP2(F_DATE_##op##_TIMESTAMP, I8, I32, I64, EXPR_DATE_RARE(a), EXPR_DATE_USEC(a) sym b) \
	OP2(F_TIMESTAMP_##op##_DATE, I8, I64, I32, EXPR_DATE_RARE(b), a sym EXPR_DATE_USEC(b))

OPS_COMPARE_DATE(EQ, ==)
OPS_COMPARE_DATE(NE, !=)
OPS_COMPARE_DATE(LT, <)
OPS_COMPARE_DATE(LE, <=)
OPS_COMPARE_DATE(GT, >)
OPS_COMPARE_DATE(GE, >=)
#undef OPS_COMPARE_DATE

/* ---- integer arithmetic -------------------------------------------------- */

/* Detect overflow in a wider type, or by the signs. */
#define OPS_ARITH_NARROW(P, R, A, B, wide) \
	OP2(P##PL, R, A, B, (wide) a + (wide) b != r, (wide) a + (wide) b) \
	OP2(P##MI, R, A, B, (wide) a - (wide) b != r, (wide) a - (wide) b) \
	OP2(P##MUL, R, A, B, (wide) a *(wide) b != r, (wide) a * (wide) b)
#define OPS_ARITH_I64(P, A, B) \
	OP2(P##PL, I64, A, B, (((int64_t) a ^ r) & ((int64_t) b ^ r)) < 0, \
		(int64_t) ((uint64_t) (int64_t) a + (uint64_t) (int64_t) b)) \
	OP2(P##MI, I64, A, B, (((int64_t) a ^ (int64_t) b) & ((int64_t) a ^ r)) < 0, \
		(int64_t) ((uint64_t) (int64_t) a - (uint64_t) (int64_t) b)) \
	OP2(P##MUL, I64, A, B, vector_mul_overflows(a, b), \
		(int64_t) ((uint64_t) (int64_t) a * (uint64_t) (int64_t) b))
#define OPS_DIVIDE(P, R, A, B) \
	OP2(P##DIV, R, A, B, b == 0 || b == -1, (b == 0 || b == -1) ? 0 : a / b)

OPS_ARITH_NARROW(F_INT2, I16, I16, I16, int32_t)
OPS_ARITH_NARROW(F_INT4, I32, I32, I32, int64_t)
OPS_ARITH_NARROW(F_INT24, I32, I16, I32, int64_t)
OPS_ARITH_NARROW(F_INT42, I32, I32, I16, int64_t)
OPS_ARITH_I64(F_INT8, I64, I64)
OPS_ARITH_I64(F_INT28, I16, I64)
OPS_ARITH_I64(F_INT82, I64, I16)
OPS_ARITH_I64(F_INT48, I32, I64)
OPS_ARITH_I64(F_INT84, I64, I32)
OPS_DIVIDE(F_INT2, I16, I16, I16)
OPS_DIVIDE(F_INT4, I32, I32, I32)
OPS_DIVIDE(F_INT24, I32, I16, I32)
OPS_DIVIDE(F_INT42, I32, I32, I16)
OPS_DIVIDE(F_INT8, I64, I64, I64)
OPS_DIVIDE(F_INT28, I64, I16, I64)
OPS_DIVIDE(F_INT82, I64, I64, I16)
OPS_DIVIDE(F_INT48, I64, I32, I64)
OPS_DIVIDE(F_INT84, I64, I64, I32)
#undef OPS_ARITH_NARROW
#undef OPS_ARITH_I64
#undef OPS_DIVIDE

#define OPS_INT(P, R, UM, ABS, ABSNAME, MOD, MODNAME, min) \
	OP2(MOD, R, R, R, b == 0, (b == 0 || b == -1) ? 0 : a % b) \
	OP2(MODNAME, R, R, R, b == 0, (b == 0 || b == -1) ? 0 : a % b) \
	OP1(UM, R, R, a == min, a == min ? a : -a) \
	OP1(ABS, R, R, a == min, a < 0 && a != min ? -a : a) \
	OP1(ABSNAME, R, R, a == min, a < 0 && a != min ? -a : a) \
	OP1(P##UP, R, R, 0, a) \
	OP2(P##AND, R, R, R, 0, a &b) \
	OP2(P##OR, R, R, R, 0, a | b) \
	OP2(P##XOR, R, R, R, 0, a ^ b) \
	OP1(P##NOT, R, R, 0, ~a)

OPS_INT(F_INT2, I16, F_INT2UM, F_INT2ABS, F_ABS_INT2, F_INT2MOD, F_MOD_INT2_INT2, INT16_MIN)
OPS_INT(F_INT4, I32, F_INT4UM, F_INT4ABS, F_ABS_INT4, F_INT4MOD, F_MOD_INT4_INT4, INT32_MIN)
OPS_INT(F_INT8, I64, F_INT8UM, F_INT8ABS, F_ABS_INT8, F_INT8MOD, F_MOD_INT8_INT8, INT64_MIN)
#undef OPS_INT

/* ---- float arithmetic ---------------------------------------------------- */

#define EXPR_INF(x) (!((x) - (x) == 0) && (x) == (x))
#define OPS_ARITH_FLOAT(P, R, A, B, type) \
	OP2(P##PL, R, A, B, EXPR_INF(r) && !EXPR_INF(a) && !EXPR_INF(b), (type) a + (type) b) \
	OP2(P##MI, R, A, B, EXPR_INF(r) && !EXPR_INF(a) && !EXPR_INF(b), (type) a - (type) b) \
	OP2(P##MUL, R, A, B, \
		(EXPR_INF(r) && !EXPR_INF(a) && !EXPR_INF(b)) || (r == 0 && a != 0 && b != 0), \
		(type) a * (type) b) \
	OP2(P##DIV, R, A, B, \
		b == 0 || (EXPR_INF(r) && !EXPR_INF(a)) || (r == 0 && a != 0 && !EXPR_INF(b)), \
		(type) a / (type) b)

OPS_ARITH_FLOAT(F_FLOAT4, F32, F32, F32, float)
OPS_ARITH_FLOAT(F_FLOAT8, F64, F64, F64, double)
OPS_ARITH_FLOAT(F_FLOAT48, F64, F32, F64, double)
OPS_ARITH_FLOAT(F_FLOAT84, F64, F64, F32, double)
#undef OPS_ARITH_FLOAT

OP1(F_FLOAT4UM, F32, F32, 0, -a)
OP1(F_FLOAT8UM, F64, F64, 0, -a)
OP1(F_FLOAT4UP, F32, F32, 0, a)
OP1(F_FLOAT8UP, F64, F64, 0, a)
OP1(F_FLOAT4ABS, F32, F32, 0, fabsf(a))
OP1(F_ABS_FLOAT4, F32, F32, 0, fabsf(a))
OP1(F_FLOAT8ABS, F64, F64, 0, fabs(a))
OP1(F_ABS_FLOAT8, F64, F64, 0, fabs(a))
OP1(F_FLOOR_FLOAT8, F64, F64, 0, floor(a))
OP1(F_CEIL_FLOAT8, F64, F64, 0, ceil(a))
OP1(F_CEILING_FLOAT8, F64, F64, 0, ceil(a))
OP1(F_DROUND, F64, F64, 0, rint(a))
OP1(F_ROUND_FLOAT8, F64, F64, 0, rint(a))
OP1(F_DTRUNC, F64, F64, 0, a >= 0 ? floor(a) : -floor(-a))
OP1(F_TRUNC_FLOAT8, F64, F64, 0, a >= 0 ? floor(a) : -floor(-a))
OP1(F_SIGN_FLOAT8, F64, F64, 0, a > 0 ? 1.0 : a < 0 ? -1.0 : 0.0)
OP1(F_DSQRT, F64, F64, a < 0, sqrt(a))
OP1(F_SQRT_FLOAT8, F64, F64, a < 0, sqrt(a))

/* Core computes infinities, NaN and results that may have overflowed. */
#define EXPR_NOT_FINITE(x) (!((x) - (x) == 0))
HOST1(F_DEXP, F64, F64, EXPR_NOT_FINITE(a) || EXPR_NOT_FINITE(r) || r == 0, exp(a))
HOST1(F_EXP_FLOAT8, F64, F64, EXPR_NOT_FINITE(a) || EXPR_NOT_FINITE(r) || r == 0, exp(a))
HOST1(F_DLOG1, F64, F64, EXPR_NOT_FINITE(a) || a <= 0, log(a))
HOST1(F_LN_FLOAT8, F64, F64, EXPR_NOT_FINITE(a) || a <= 0, log(a))
HOST1(F_DLOG10, F64, F64, EXPR_NOT_FINITE(a) || a <= 0, log10(a))
HOST1(F_LOG_FLOAT8, F64, F64, EXPR_NOT_FINITE(a) || a <= 0, log10(a))
#define EXPR_POWER_RARE \
	(EXPR_NOT_FINITE(a) || EXPR_NOT_FINITE(b) || a <= 0 || EXPR_NOT_FINITE(r) || r == 0)
HOST2(F_DPOW, F64, F64, F64, EXPR_POWER_RARE, pow(a, b))
HOST2(F_POW_FLOAT8_FLOAT8, F64, F64, F64, EXPR_POWER_RARE, pow(a, b))
HOST2(F_POWER_FLOAT8_FLOAT8, F64, F64, F64, EXPR_POWER_RARE, pow(a, b))

/* ---- casts --------------------------------------------------------------- */

OP1(F_INT4_INT2, I32, I16, 0, a)
OP1(F_INT8_INT2, I64, I16, 0, a)
OP1(F_INT8_INT4, I64, I32, 0, a)
OP1(F_INT2_INT4, I16, I32, a != r, a)
OP1(F_INT2_INT8, I16, I64, a != r, a)
OP1(F_INT4_INT8, I32, I64, a != r, a)
OP1(F_INT4_BOOL, I32, I8, 0, a)
OP1(F_BOOL_INT4, I8, I32, 0, a != 0)
OP1(F_INT4_CHAR, I32, I8, 0, a)
OP1(F_FLOAT4_INT2, F32, I16, 0, a)
OP1(F_FLOAT4_INT4, F32, I32, 0, a)
OP1(F_FLOAT4_INT8, F32, I64, 0, a)
OP1(F_FLOAT8_INT2, F64, I16, 0, a)
OP1(F_FLOAT8_INT4, F64, I32, 0, a)
OP1(F_FLOAT8_INT8, F64, I64, 0, a)
OP1(F_FLOAT8_FLOAT4, F64, F32, 0, a)
OP1(F_FLOAT4_FLOAT8, F32, F64, (EXPR_INF(r) && !EXPR_INF(a)) || (r == 0 && a != 0), a)
#define EXPR_BEYOND(x, lim) (!((x) >= -(lim) && (x) <= (lim)))
OP1(F_INT2_FLOAT4, I16, F32, EXPR_BEYOND(a, 32766.0f), EXPR_BEYOND(a, 32766.0f) ? 0 : rintf(a))
OP1(F_INT2_FLOAT8, I16, F64, EXPR_BEYOND(a, 32766.0), EXPR_BEYOND(a, 32766.0) ? 0 : rint(a))
OP1(F_INT4_FLOAT4, I32, F32, EXPR_BEYOND(a, 2.1e9f), EXPR_BEYOND(a, 2.1e9f) ? 0 : rintf(a))
OP1(F_INT4_FLOAT8, I32, F64, EXPR_BEYOND(a, 2147483646.0),
	EXPR_BEYOND(a, 2147483646.0) ? 0 : rint(a))
OP1(F_INT8_FLOAT4, I64, F32, EXPR_BEYOND(a, 9.2e18f), EXPR_BEYOND(a, 9.2e18f) ? 0 : rintf(a))
OP1(F_INT8_FLOAT8, I64, F64, EXPR_BEYOND(a, 9.2e18), EXPR_BEYOND(a, 9.2e18) ? 0 : rint(a))

/* ---- dates and times ----------------------------------------------------- */

/* Dates and timestamps near the ends of their ranges, and infinities. */
#define EXPR_DATE_EDGE(d) ((d) < -2400000 || (d) > 2000000000)
#define EXPR_TIMESTAMP_EDGE(t) \
	((t) < INT64_C(-207360000000000000) || (t) > INT64_C(9000000000000000000))
/* Floor division by a positive constant. */
#define EXPR_FLOORDIV(x, d) ((x) / (d) - ((x) % (d) < 0))
OP2(F_DATE_PLI, I32, I32, I32, EXPR_DATE_EDGE(a) || EXPR_DATE_EDGE((int64_t) a + b),
	(int32_t) ((uint32_t) a + (uint32_t) b))
OP2(F_DATE_MII, I32, I32, I32, EXPR_DATE_EDGE(a) || EXPR_DATE_EDGE((int64_t) a - b),
	(int32_t) ((uint32_t) a - (uint32_t) b))
OP2(F_DATE_MI, I32, I32, I32, EXPR_DATE_EDGE(a) || EXPR_DATE_EDGE(b),
	(int32_t) ((uint32_t) a - (uint32_t) b))
OP1(F_TIMESTAMP_DATE, I64, I32, EXPR_DATE_RARE(a), EXPR_DATE_RARE(a) ? 0 : EXPR_DATE_USEC(a))
OP1(F_DATE_TIMESTAMP, I32, I64, EXPR_TIMESTAMP_EDGE(a), EXPR_FLOORDIV(a, INT64_C(86400000000)))

/*
 * monoid_list.h
 *	  Every operator of gpuagg, one row each.
 *
 *	MONOID(NAME, name, input type, state type, commutative, atomic, text)
 *
 *	NAME		suffix of the enum MonoidId
 *	name		prefix of the inline functions in monoid.h
 *	input type	type of one row's input
 *	state type	type of a group's state: plain data that is copied with memcpy
 *	commutative	1 if combine(a, b) = combine(b, a), except for float rounding
 *	atomic		how a GPU updates a state in place (Henriksen et al., "Compiling Generalized
 *				Histograms for GPU", SC20, section 3):
 *				HDW  one native atomic instruction
 *				CAS  compare-and-swap of a state of at most 16 bytes
 *				XCG  a lock that is taken by atomic exchange
 *	text		one line for the view gpuagg_operators
 *
 * For example, the row
 *
 *	MONOID(SUM_I128, sum_i128, int64_t, gpuagg_i128, 1, CAS, "sum of 64-bit integers in 128 bits")
 *
 * defines
 *
 *	MONOID_SUM_I128									the enum member
 *	sum_i128_identity(), _lift(x), _combine(a, b),	functions that monoid.h must define, over inputs
 *	_step(a, x), _error(a, b, r)					of int64_t and states of 16 bytes
 *
 * A GPU may combine the states in any order, and updates them with compare-and-swap.
 *
 * The includer defines MONOID before it includes this file, and undefines it afterwards.  The order
 * of rows is the wire order of MonoidId: append rows, never reorder them.
 */
MONOID(COUNT, count, int8_t, int64_t, 1, HDW, "number of rows")
MONOID(SUM_I64, sum_i64, int64_t, int64_t, 1, HDW, "sum of 64-bit integers, wrapping")
MONOID(SUM_I128, sum_i128, int64_t, gpuagg_i128, 1, CAS, "sum of 64-bit integers in 128 bits")
MONOID(SUMSQ_I128, sumsq_i128, int32_t, gpuagg_i128, 1, CAS,
	   "sum of squares of 32-bit integers in 128 bits")
MONOID(SUMSQ_I192, sumsq_i192, int64_t, gpuagg_i192, 1, XCG,
	   "sum of squares of 64-bit integers in 192 bits")
MONOID(SUM_DEC, sum_dec, gpuagg_i128, gpuagg_i128, 1, CAS,
	   "sum of decimals of one scale in 128 bits")
MONOID(SUM_F32, sum_f32, float, float, 1, HDW, "sum in single precision")
MONOID(SUM_F64, sum_f64, double, double, 1, HDW, "sum in double precision")
MONOID(ACCUM_F64, accum_f64, double, gpuagg_accum, 1, XCG,
	   "count, sum and sum of squared deviations (Youngs and Cramer)")
MONOID(REGR_F64, regr_f64, gpuagg_f64x2, gpuagg_regr, 1, XCG,
	   "count, sums, squared and cross deviations of pairs")
MONOID(MIN_I32, min_i32, int32_t, int32_t, 1, HDW, "smallest 32-bit integer")
MONOID(MAX_I32, max_i32, int32_t, int32_t, 1, HDW, "largest 32-bit integer")
MONOID(MIN_I64, min_i64, int64_t, int64_t, 1, HDW, "smallest 64-bit integer")
MONOID(MAX_I64, max_i64, int64_t, int64_t, 1, HDW, "largest 64-bit integer")
MONOID(MIN_DEC, min_dec, gpuagg_i128, gpuagg_i128, 1, CAS, "smallest decimal of one scale")
MONOID(MAX_DEC, max_dec, gpuagg_i128, gpuagg_i128, 1, CAS, "largest decimal of one scale")
MONOID(MIN_F32, min_f32, float, float, 1, CAS, "smallest single, NaN greatest")
MONOID(MAX_F32, max_f32, float, float, 1, CAS, "largest single, NaN greatest")
MONOID(MIN_F64, min_f64, double, double, 1, CAS, "smallest double, NaN greatest")
MONOID(MAX_F64, max_f64, double, double, 1, CAS, "largest double, NaN greatest")
MONOID(BIT_AND, bit_and, int64_t, int64_t, 1, HDW, "bitwise and")
MONOID(BIT_OR, bit_or, int64_t, int64_t, 1, HDW, "bitwise or")
MONOID(BIT_XOR, bit_xor, int64_t, int64_t, 1, HDW, "bitwise exclusive or")
MONOID(PRODUCT_F64, product_f64, double, double, 1, CAS, "product in double precision")
MONOID(ARGMAX, argmax, gpuagg_kv, gpuagg_kv, 1, CAS,
	   "largest key with its value, ties to the smallest value")
MONOID(ARGMIN, argmin, gpuagg_kv, gpuagg_kv, 1, CAS,
	   "smallest key with its value, ties to the smallest value")
MONOID(MAXSUB_I64, maxsub_i64, int64_t, gpuagg_maxsub_i64, 0, XCG, "maximum subarray sum, integer")
MONOID(MAXSUB_F64, maxsub_f64, double, gpuagg_maxsub_f64, 0, XCG, "maximum subarray sum, double")
MONOID(LONGEST_RUN, longest_run, int8_t, gpuagg_run, 0, XCG, "longest run of true")
MONOID(LONGEST_ASC, longest_asc, gpuagg_kv, gpuagg_asc, 0, XCG,
	   "longest strictly ascending run of 64-bit codes")
MONOID(LINEAR, linear, gpuagg_f64x2, gpuagg_f64x2, 0, CAS, "composition of x -> a x + b")
MONOID(MAT2, mat2, gpuagg_mat2, gpuagg_mat2, 0, XCG, "product of 2 by 2 matrices")
MONOID(MAT3, mat3, gpuagg_mat3, gpuagg_mat3, 0, XCG, "product of 3 by 3 matrices")
MONOID(MAT4, mat4, gpuagg_mat4, gpuagg_mat4, 0, XCG, "product of 4 by 4 matrices")
MONOID(MAT5, mat5, gpuagg_mat5, gpuagg_mat5, 0, XCG, "product of 5 by 5 matrices")
MONOID(HLL_MAX, hll_max, int32_t, int32_t, 1, HDW, "HyperLogLog register, largest rank")
MONOID(MOMENTS_F64, moments_f64, double, gpuagg_moments, 1, XCG,
	   "count, mean and sums of the second to fourth powers of deviations (Terriberry)")

/*
 * agg_list.h
 *	  Every aggregate of core that gpuagg computes, and those of the extension that have slots, by
 *	  transition function.
 *
 * The includer defines the macros below before including this file, and undefines them afterwards.
 * A row is
 *
 *	AGG(transition function, kind, slot, ...)
 *
 *	column				meaning
 *	AGG					a function of core, by its name in fmgroids.h without F_
 *	AGG_OURS			a C function of the extension, by its link symbol
 *	AGG_FALLBACK		a function of core that the CPU engine calls for each row;
 *						no further columns
 *	kind				FINALIZE_kind (aggmap_internal.h): how the states become a
 *						value of the aggregate's transition type
 *	slot: S0(m)			monoid m (monoid_list.h) over all rows that pass the filter
 *	slot: S1(m, a)		monoid m over argument a of the aggregate, from 0
 *	slot: S2(m, a, b)	monoid m over pairs of arguments a and b
 *
 * An aggregate has up to three slots. A row counts for a slot if none of its arguments is NULL. If
 * the first slot is COUNT, it says whether any row has counted: if not, the transition value is the
 * aggregate's initial value. If the kind has bins (histograms, sketches), these apply to all slots
 * but the first, and their bounds are arguments of the aggregate.
 *
 * Example:
 *
 *	AGG(INT4_AVG_ACCUM, INT_AVG, S1(COUNT, 0), S1(SUM_I64, 0))
 *
 * INT4_AVG_ACCUM is the transition function of core's avg(int4), and of gpu_avg(int4). Slot 0
 * counts the values of argument 0 that are not NULL; slot 1 is their sum in 64 bits.
 * FINALIZE_INT_AVG makes a bigint[] of both, which is the transition value of avg(int4). Core's
 * final function int8_avg() makes the result. sum(int4) has the same two slots, so a query with
 * both aggregates computes them once.
 *
 * Aggregates of the extension without a row are fallback aggregates, too.
 */

/* counts and sums */
AGG(INT8INC, INT, S0(COUNT))
AGG(INT8INC_ANY, INT, S1(COUNT, 0))
AGG(INT8INC_FLOAT8_FLOAT8, INT, S2(COUNT, 0, 1))
AGG(INT2_SUM, COUNTED_INT, S1(COUNT, 0), S1(SUM_I64, 0))
AGG(INT4_SUM, COUNTED_INT, S1(COUNT, 0), S1(SUM_I64, 0))
AGG(FLOAT4PL, COUNTED_F32, S1(COUNT, 0), S1(SUM_F32, 0))
AGG(FLOAT8PL, COUNTED_F64, S1(COUNT, 0), S1(SUM_F64, 0))
AGG(FLOAT8MUL, COUNTED_F64, S1(COUNT, 0), S1(PRODUCT_F64, 0))
AGG_FALLBACK(CASH_PL)
AGG_FALLBACK(INTERVAL_PL)

/* averages, variances and regression, with the sums that share their states */
AGG(INT2_AVG_ACCUM, INT_AVG, S1(COUNT, 0), S1(SUM_I64, 0))
AGG(INT4_AVG_ACCUM, INT_AVG, S1(COUNT, 0), S1(SUM_I64, 0))
AGG(INT8_AVG_ACCUM, INT8_AVG, S1(COUNT, 0), S1(SUM_I128, 0))
AGG(INT2_ACCUM, POLY_VAR, S1(COUNT, 0), S1(SUM_I128, 0), S1(SUMSQ_I128, 0))
AGG(INT4_ACCUM, POLY_VAR, S1(COUNT, 0), S1(SUM_I128, 0), S1(SUMSQ_I128, 0))
AGG(INT8_ACCUM, NUMERIC_VAR, S1(COUNT, 0), S1(SUM_I128, 0), S1(SUMSQ_I192, 0))
AGG(NUMERIC_AVG_ACCUM, DEC_AVG, S1(COUNT, 0), S1(SUM_DEC, 0))
AGG(FLOAT4_ACCUM, ACCUM, S1(ACCUM_F64, 0))
AGG(FLOAT8_ACCUM, ACCUM, S1(ACCUM_F64, 0))
AGG_OURS("gpuagg_moments_accum", MOMENTS, S1(MOMENTS_F64, 0))
#if COMPAT_REGR_VALUES == 6
AGG(FLOAT8_REGR_ACCUM, REGR, S2(REGR_F64, 1, 0))
#else
AGG_FALLBACK(FLOAT8_REGR_ACCUM)
#endif
AGG_FALLBACK(NUMERIC_ACCUM)
#ifdef F_INTERVAL_AVG_ACCUM
AGG_FALLBACK(INTERVAL_AVG_ACCUM)
#else
AGG_FALLBACK(INTERVAL_ACCUM)
#endif

/* extremes */
AGG(INT2SMALLER, COUNTED_I32, S1(COUNT, 0), S1(MIN_I32, 0))
AGG(INT2LARGER, COUNTED_I32, S1(COUNT, 0), S1(MAX_I32, 0))
AGG(INT4SMALLER, COUNTED_I32, S1(COUNT, 0), S1(MIN_I32, 0))
AGG(INT4LARGER, COUNTED_I32, S1(COUNT, 0), S1(MAX_I32, 0))
AGG(DATE_SMALLER, COUNTED_I32, S1(COUNT, 0), S1(MIN_I32, 0))
AGG(DATE_LARGER, COUNTED_I32, S1(COUNT, 0), S1(MAX_I32, 0))
AGG(OIDSMALLER, COUNTED_INT, S1(COUNT, 0), S1(MIN_I64, 0))
AGG(OIDLARGER, COUNTED_INT, S1(COUNT, 0), S1(MAX_I64, 0))
AGG(INT8SMALLER, COUNTED_INT, S1(COUNT, 0), S1(MIN_I64, 0))
AGG(INT8LARGER, COUNTED_INT, S1(COUNT, 0), S1(MAX_I64, 0))
AGG(TIME_SMALLER, COUNTED_INT, S1(COUNT, 0), S1(MIN_I64, 0))
AGG(TIME_LARGER, COUNTED_INT, S1(COUNT, 0), S1(MAX_I64, 0))
AGG(TIMESTAMP_SMALLER, COUNTED_INT, S1(COUNT, 0), S1(MIN_I64, 0))
AGG(TIMESTAMP_LARGER, COUNTED_INT, S1(COUNT, 0), S1(MAX_I64, 0))
AGG(TIMESTAMPTZ_SMALLER, COUNTED_INT, S1(COUNT, 0), S1(MIN_I64, 0))
AGG(TIMESTAMPTZ_LARGER, COUNTED_INT, S1(COUNT, 0), S1(MAX_I64, 0))
AGG(CASHSMALLER, COUNTED_INT, S1(COUNT, 0), S1(MIN_I64, 0))
AGG(CASHLARGER, COUNTED_INT, S1(COUNT, 0), S1(MAX_I64, 0))
AGG(FLOAT4SMALLER, COUNTED_F32, S1(COUNT, 0), S1(MIN_F32, 0))
AGG(FLOAT4LARGER, COUNTED_F32, S1(COUNT, 0), S1(MAX_F32, 0))
AGG(FLOAT8SMALLER, COUNTED_F64, S1(COUNT, 0), S1(MIN_F64, 0))
AGG(FLOAT8LARGER, COUNTED_F64, S1(COUNT, 0), S1(MAX_F64, 0))
AGG(NUMERIC_SMALLER, DEC, S1(COUNT, 0), S1(MIN_DEC, 0))
AGG(NUMERIC_LARGER, DEC, S1(COUNT, 0), S1(MAX_DEC, 0))
AGG_FALLBACK(TEXT_SMALLER)
AGG_FALLBACK(TEXT_LARGER)
AGG_FALLBACK(BPCHAR_SMALLER)
AGG_FALLBACK(BPCHAR_LARGER)
AGG_FALLBACK(INTERVAL_SMALLER)
AGG_FALLBACK(INTERVAL_LARGER)
AGG_FALLBACK(TIMETZ_SMALLER)
AGG_FALLBACK(TIMETZ_LARGER)
AGG_FALLBACK(ENUM_SMALLER)
AGG_FALLBACK(ENUM_LARGER)
AGG_FALLBACK(ARRAY_SMALLER)
AGG_FALLBACK(ARRAY_LARGER)
AGG_FALLBACK(NETWORK_SMALLER)
AGG_FALLBACK(NETWORK_LARGER)
AGG_FALLBACK(PG_LSN_SMALLER)
AGG_FALLBACK(PG_LSN_LARGER)
AGG_FALLBACK(TIDSMALLER)
AGG_FALLBACK(TIDLARGER)
AGG_FALLBACK(XID8_SMALLER)
AGG_FALLBACK(XID8_LARGER)

/* bits */
AGG(INT2AND, COUNTED_INT, S1(COUNT, 0), S1(BIT_AND, 0))
AGG(INT4AND, COUNTED_INT, S1(COUNT, 0), S1(BIT_AND, 0))
AGG(INT8AND, COUNTED_INT, S1(COUNT, 0), S1(BIT_AND, 0))
AGG(INT2OR, COUNTED_INT, S1(COUNT, 0), S1(BIT_OR, 0))
AGG(INT4OR, COUNTED_INT, S1(COUNT, 0), S1(BIT_OR, 0))
AGG(INT8OR, COUNTED_INT, S1(COUNT, 0), S1(BIT_OR, 0))
AGG(INT2XOR, COUNTED_INT, S1(COUNT, 0), S1(BIT_XOR, 0))
AGG(INT4XOR, COUNTED_INT, S1(COUNT, 0), S1(BIT_XOR, 0))
AGG(INT8XOR, COUNTED_INT, S1(COUNT, 0), S1(BIT_XOR, 0))
AGG(BOOLAND_STATEFUNC, COUNTED_INT, S1(COUNT, 0), S1(BIT_AND, 0))
AGG(BOOLOR_STATEFUNC, COUNTED_INT, S1(COUNT, 0), S1(BIT_OR, 0))
AGG_FALLBACK(BITAND)
AGG_FALLBACK(BITOR)
AGG_FALLBACK(BITXOR)

/* ordered sets, which composite/ordered_engine.c computes, and gpu_median */
AGG(ORDERED_SET_TRANSITION, ORDERED_SET)
AGG_OURS("gpuagg_median_transfn", ORDERED_SET)
AGG_OURS("gpuagg_median_interval_transfn", ORDERED_SET)

/*
 * histograms: (value, lo, hi, nbins[, weight]), (value, thresholds), and log-spaced (value, lo, hi,
 * nbins)
 */
AGG_OURS("gpuagg_histogram_accum", HIST_UNIFORM, S1(COUNT, 0), S1(COUNT, 0))
AGG_OURS("gpuagg_histogram_accum_weighted", HIST_WEIGHTED, S2(COUNT, 0, 4), S2(SUM_F64, 0, 4))
AGG_OURS("gpuagg_histogram_accum_thresholds", HIST_THRESHOLDS, S1(COUNT, 0), S1(COUNT, 0))
AGG_OURS("gpuagg_histogram_accum_log", HIST_LOG, S1(COUNT, 0), S1(COUNT, 0))

/*
 * histograms of two dimensions: (x, xlo, xhi, nx, y, ylo, yhi, ny[, weight]); the last argument is
 * the bin, which the planner adds (grid_bin.c)
 */
AGG_OURS("gpuagg_histogram2d_accum", HIST_GRID, S1(COUNT, 8), S1(COUNT, 8))
AGG_OURS("gpuagg_histogram2d_accum_weighted", HIST_GRID_WEIGHTED, S2(COUNT, 9, 8),
		 S2(SUM_F64, 9, 8))

/* sketches of values that are used as their own hashes (hll_value.h), or of computed ones */
AGG_OURS("gpuagg_hll_transfn", HLL, S1(COUNT, 0), S1(HLL_MAX, 0))

/*
 * the value in the row with the extreme key, (value, key): codes of both, and the extreme of all
 * keys
 */
AGG_OURS("gpuagg_argmax_transfn", ARG, S2(COUNT, 1, 0), S2(ARGMAX, 1, 0), S1(MAX_I64, 1))
AGG_OURS("gpuagg_argmin_transfn", ARG, S2(COUNT, 1, 0), S2(ARGMIN, 1, 0), S1(MIN_I64, 1))

/* aggregates that depend on the order of rows: the states of order_dependent.c, or the result */
AGG_OURS("gpuagg_maxsub_int8_transfn", MAXSUB_I64, S1(COUNT, 0), S1(MAXSUB_I64, 0))
AGG_OURS("gpuagg_maxsub_float8_transfn", MAXSUB_F64, S1(COUNT, 0), S1(MAXSUB_F64, 0))
AGG_OURS("gpuagg_longest_run_transfn", RUN, S1(LONGEST_RUN, 0))
AGG_OURS("gpuagg_longest_ascending_transfn", ASCENDING, S1(LONGEST_ASC, 0))
AGG_OURS("gpuagg_compose_linear_transfn", LINEAR, S2(COUNT, 0, 1), S2(LINEAR, 0, 1))

/* only on the GPU; MAT2 stands for the monoid of the first matrix's size */
AGG_OURS("gpuagg_matrix_product_transfn", MATRIX, S1(COUNT, 0), S1(MAT2, 0))

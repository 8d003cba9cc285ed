/*
 * kernels.h
 *	  The small kernels of the server: packing keys and inputs, moving states,
 *	  bins of slots that have many a group, programs over stored columns.  What reduces is in
 * kernels/.
 *
 * All pointers are device pointers; work is queued on the stream.
 */
#ifndef GPUAGG_DEVICE_KERNELS_H
#define GPUAGG_DEVICE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuagg_cuda.h"
#include "protocol.h"
#include "device_cuda/limit.h"
#include "server/store.h"

#ifdef __cplusplus
extern "C"
{
#endif

	/*
	 * What the kernels that the current device runs were compiled for, ten times
	 * major plus minor: their binary, and the PTX that this was compiled from.
	 */
	GpuaggCudaStatus device_kernel_versions(int *binary, int *ptx);

	/* A column on the device; the pointers may be NULL as in WireColumn. */
	typedef struct DeviceColumn
	{
		const void *values;
		const uint8_t *validity;
		int type;          /* WireType */
		uint16_t computed; /* as in GpuaggColumn */
		uint16_t operand;
		bool nullable; /* some value may be NULL, here or in rows that come with these */
	} DeviceColumn;

	typedef struct PackKeys
	{
		int nkeys;
		int key_bytes;
		int null_offset;
		int width[WIRE_MAX_KEYS];
		int offset[WIRE_MAX_KEYS];
		DeviceColumn column[WIRE_MAX_KEYS];
	} PackKeys;

	/* The packed key of every row; see WireKey. */
	GpuaggCudaStatus device_pack_keys(const PackKeys *pack, int64_t nrows, void *out,
									  gpuagg_stream stream);

	/*
	 * to[map[i]] = from[i] for n rows of row_bytes (a multiple of 4), but for those whose map
	 * is negative.
	 */
	GpuaggCudaStatus device_scatter(const void *from, size_t row_bytes, const int32_t *map,
									int64_t n, void *to, gpuagg_stream stream);
	/* to[i] = from[map[i]] for n rows of row_bytes (a multiple of 4). */
	GpuaggCudaStatus device_gather(const void *from, size_t row_bytes, const int32_t *map,
								   int64_t n, void *to, gpuagg_stream stream);

	/* to[i] = the key of state i, of n states of ARGMAX or ARGMIN. */
	GpuaggCudaStatus device_take_keys(const void *states, int64_t n, int64_t *to,
									  gpuagg_stream stream);

	typedef struct SlotBins
	{
		int kind; /* WIRE_BIN_UNIFORM or WIRE_BIN_THRESHOLDS */
		DeviceColumn column;
		const uint8_t *filter; /* or NULL */
		const int32_t *group;  /* of each row; NULL: 0 */
		int width;
		int n;
		int formula; /* GpuaggBinFormula, of WIRE_BIN_UNIFORM */
		double lo, hi;
		const double *thresholds;
	} SlotBins;

	/* group * width + bin of every row, -1 where the column is NULL or the filter fails. */
	GpuaggCudaStatus device_slot_bins(const SlotBins *bins, int64_t nrows, int32_t *out,
									  gpuagg_stream stream);

	/*
	 * Sketches: GPUAGG_HLL_REGISTERS registers a group, each a byte.  Those of no rows are zeros.
	 * The arrays start at a multiple of 16 bytes.
	 */

	/* Rows whose values, which are hashes, go into sketches. */
	typedef struct SketchRows
	{
		DeviceColumn column;   /* of integers of up to 64 bits */
		const uint8_t *filter; /* or NULL */
		const int32_t *group;  /* of each row, counted from min on; another one than 0 .. ngroups -
								  1: the row is not there; NULL: 0 */
		int64_t min;
		int64_t ngroups;
	} SketchRows;

	/* Raises registers to the ranks of values that are not NULL. */
	GpuaggCudaStatus device_update_sketches(const SketchRows *rows, int64_t nrows, void *registers,
											gpuagg_stream stream);
	/*
	 * Combines the sketches of n groups with those at their bins, no two the same, or NULL: with
	 * the first n.
	 */
	GpuaggCudaStatus device_combine_sketches(const void *from, const int32_t *bins, int64_t n,
											 void *registers, gpuagg_stream stream);
	/*
	 * Registers of each rank, GPUAGG_HLL_RANKS counts a group, of the n groups of the list, or of
	 * the first n.
	 */
	GpuaggCudaStatus device_count_ranks(const void *registers, const int32_t *list, int64_t n,
										int32_t *counts, gpuagg_stream stream);
	/* The registers of these groups as states of HLL_MAX, which travel. */
	GpuaggCudaStatus device_widen_registers(const void *registers, const int32_t *list, int64_t n,
											int32_t *to, gpuagg_stream stream);

	/* What an operator that does not commute reads of a row. */
	typedef struct PackInput
	{
		int monoid;
		DeviceColumn column[2]; /* as in WireSlot; values NULL: none */
		const uint8_t *filter;  /* or NULL */
	} PackInput;

	/*
	 * The monoid's input of every row, and 1 in `keep` where the row counts: no column
	 * is NULL, unless the operator takes NULLs, and the filter holds.
	 */
	GpuaggCudaStatus device_pack_inputs(const PackInput *pack, int64_t nrows, void *inputs,
										uint8_t *keep, gpuagg_stream stream);

	/* An order key in 64 bits, 0 where it is NULL, and the rank that puts NULLs first or last. */
	GpuaggCudaStatus device_pack_order(const DeviceColumn *column, int64_t nrows, int nulls_first,
									   int64_t *codes, int8_t *ranks, gpuagg_stream stream);

	/* ---- values of sets ---- */

	/* What is known of values that were kept. */
	typedef struct SetCounts
	{
		int64_t n;
		int64_t min, /* of the values */
			max;
	} SetCounts;

	/* Rows whose values are kept. */
	typedef struct SetRows
	{
		DeviceColumn column;   /* of integers of up to 64 bits */
		const uint8_t *filter; /* or NULL */
		const int32_t *bins;   /* negative: the row is not there */
	} SetRows;

	/* Before the first rows: no values. */
	GpuaggCudaStatus device_init_set(SetCounts *counts, gpuagg_stream stream);
	/* Appends the values that are not NULL, in any order, and counts them. */
	GpuaggCudaStatus device_keep_values(const SetRows *rows, int64_t nrows, int32_t *bins,
										int64_t *values, SetCounts *counts, gpuagg_stream stream);
	/*
	 * Sorts n pairs (below 2^31) of bins and values by the bin, or by the value; keys agree in all
	 * bits but the lowest `bits`, of which there are some, or these are all their bits.  Pairs with
	 * equal keys stay in their order.  Each pointer is to two arrays of n, of which the first have
	 * the pairs; the call swaps the pointers if need be, so that after it the first have them in
	 * order, and the others nothing.  A workspace as in gpuagg_cuda.h.
	 */
	GpuaggCudaStatus device_sort_values(bool by_bin, int32_t *bins[2], int64_t *values[2],
										int64_t n, int bits, void *workspace,
										size_t *workspace_bytes, gpuagg_stream stream);
	/* Of sorted values: 1 for each that differs in bin or value from the one before. */
	GpuaggCudaStatus device_distinct_values(const int32_t *bins, const int64_t *values, int64_t n,
											uint8_t *distinct, gpuagg_stream stream);
	/*
	 * modes[b] = wire_mode_of the most frequent value of bin b, of those bins that have one; they
	 * are 0 before.
	 */
	GpuaggCudaStatus device_modes(const int32_t *bins, const int64_t *values, int64_t n, bool last,
								  int64_t *modes, gpuagg_stream stream);
	/* first[b] = the place of the first value of bin b, of those bins that have one. */
	GpuaggCudaStatus device_first_values(const int32_t *bins, int64_t n, int64_t *first,
										 gpuagg_stream stream);

	/* ---- groups ---- */

#define HEADS_ASCEND 1 /* a key is greater than that of the row before */
#define HEADS_DESCEND 2
#define HEADS_FIRST_ASCENDS 4 /* the same of the first key alone */
#define HEADS_FIRST_DESCENDS 8

	/* A slice whose key columns are searched for boundaries. */
	typedef struct HeadRows
	{
		int nkeys;
		int nspans; /* of the slice, if it has a mask */
		const StoreSpan *spans;
		const uint8_t *mask; /* or NULL: all rows are wanted */
		int64_t first;       /* position of the slice's first row */
		DeviceColumn column[WIRE_MAX_KEYS];
		int64_t last_before; /* the last wanted row of the slice before, in column_before; -1: there
								is none */
		DeviceColumn column_before[WIRE_MAX_KEYS];
	} HeadRows;

	/*
	 * A bit for each wanted row whose keys differ from those of the wanted row before it, or that
	 * is the first.  *order gets the bits of HEADS_*: keys are in order unless it has both of a
	 * pair.  NULL is greater than any value.
	 */
	GpuaggCudaStatus device_find_heads(const HeadRows *rows, int64_t nrows, uint32_t *heads,
									   uint32_t *order, gpuagg_stream stream);
	/* The packed key of each run, at its number; heads and before as in GpuaggRuns. */
	GpuaggCudaStatus device_head_keys(const PackKeys *pack, const uint32_t *heads,
									  const int32_t *before, int64_t nrows, void *out,
									  gpuagg_stream stream);

	/* Where the keys of groups are: in a table by number, or in the number itself. */
	typedef struct GroupKeys
	{
		int key_bytes; /* of a packed key */
		int null_offset;
		const void *table; /* or NULL */
		int table_bytes;   /* of a key there; the rest is 0 */
		int nkeys;
		int width[WIRE_MAX_KEYS];
		int offset[WIRE_MAX_KEYS];
		int64_t min[WIRE_MAX_KEYS];
		int64_t extent[WIRE_MAX_KEYS];
		uint8_t has_null[WIRE_MAX_KEYS];
	} GroupKeys;

	/* The packed keys of the n groups in the list, or of the first n. */
	GpuaggCudaStatus device_group_keys(const GroupKeys *keys, const int32_t *list, int64_t n,
									   void *out, gpuagg_stream stream);
	/* The groups whose count is above 0, ascending; a workspace as in gpuagg_cuda.h. */
	GpuaggCudaStatus device_list_groups(const int64_t *counts, int64_t n, int32_t *list,
										int32_t *nlisted, void *workspace, size_t *workspace_bytes,
										gpuagg_stream stream);
	/* The groups that a limit leaves. */
	typedef struct TopGroups
	{
		const int64_t *counts; /* of all bins, 0: not a group; or NULL */
		GroupKeys keys;
		int reads_keys; /* the plan does */
		LimitPlan plan;
	} TopGroups;

	typedef struct TopCounts
	{
		int32_t all;    /* groups that there are */
		int32_t failed; /* that fail a condition */
	} TopCounts;

	/* Lists those among n bins; and counts them, and what there is. */
	GpuaggCudaStatus device_top_groups(const TopGroups *top, int64_t n, int32_t *list,
									   int32_t *nlisted, TopCounts *counts, void *workspace,
									   size_t *workspace_bytes, gpuagg_stream stream);

	/* ---- groups of another device ---- */

	/*
	 * Columns that are made of packed keys: the reverse of PackKeys; validity has whole words of 64
	 * bits.
	 */
	typedef struct UnpackKeys
	{
		int nkeys;
		int key_bytes;
		int null_offset;
		int width[WIRE_MAX_KEYS];
		int offset[WIRE_MAX_KEYS];
		void *values[WIRE_MAX_KEYS];
		uint32_t *validity[WIRE_MAX_KEYS]; /* or NULL: no key is */
	} UnpackKeys;

	GpuaggCudaStatus device_unpack_keys(const UnpackKeys *unpack, const void *keys, int64_t n,
										gpuagg_stream stream);

	typedef struct CombineStates
	{
		int monoid; /* commutative */
		int width;  /* states a group */
		void *states;
		const void *from; /* of n groups; NULL: 1 is added to the counts of each */
		const int32_t
			*bins; /* those that they are in `states`, each another one; or NULL: all as they are */
		int64_t n;
		unsigned *errors; /* MonoidError bits are added */
	} CombineStates;

	GpuaggCudaStatus device_combine_states(const CombineStates *in, gpuagg_stream stream);

	/* ---- rows of stored columns ---- */

	/* 0 for each row that the filter leaves in, -1 for the others. */
	GpuaggCudaStatus device_filter_bins(const uint8_t *filter, int64_t nrows, int32_t *bins,
										gpuagg_stream stream);

	/*
	 * 1 for each of the positions first .. first + nrows - 1 that is in a span (ascending, apart),
	 * 0 for the others.
	 */
	GpuaggCudaStatus device_mask(const StoreSpan *spans, int nspans, int64_t first, int64_t nrows,
								 uint8_t *mask, gpuagg_stream stream);

	/*
	 * Bits first .. first + nrows - 1 become those at `from` on, in whole aligned words of 64, or 1
	 * if it is NULL; the others stay.
	 */
	GpuaggCudaStatus device_put_bits(const void *from, void *bits, int64_t first, int64_t nrows,
									 gpuagg_stream stream);

	/* A column of floats, of which some may be core's to judge. */
	typedef struct FloatCheck
	{
		DeviceColumn column; /* WIRE_F32 or WIRE_F64 */
		const uint8_t *mask; /* 0: the row is not there; or NULL */
		double below;        /* as in VECTOR_F64_BELOW */
		int no_zeros;
		unsigned long long *undetermined; /* such rows are added */
	} FloatCheck;

	GpuaggCudaStatus device_check_floats(const FloatCheck *check, int64_t nrows,
										 gpuagg_stream stream);

	/* A column that a program computes; validity has whole words of 64 bits. */
	typedef struct ProgramOutput
	{
		void *values;       /* NULL: it is not written, only what is undetermined counts */
		uint32_t *validity; /* NULL: not written */
		uint16_t operand;
		uint8_t width;  /* bytes of a value */
		uint8_t filter; /* NULL is 0 instead */
		uint8_t
			nullable; /* else, and if it is no filter, rows whose value is NULL are undetermined */
	} ProgramOutput;

	/* A program and its columns, in device memory. */
	typedef struct ProgramRun
	{
		VectorProgram program;
		DeviceColumn input[WIRE_MAX_STORED_COLS]; /* what VECTOR_LOAD reads, of position 0 */
		VectorTable tables[WIRE_MAX_TABLES];      /* for VECTOR_LOOKUP; in device memory: */
		const int64_t *cells;
		const uint8_t *cell_states;
		int noutputs;
		ProgramOutput output[WIRE_MAX_COLS]; /* of the slice */
		unsigned long long *undetermined; /* rows are added whose outcome the program cannot tell */
	} ProgramRun;

	/*
	 * Runs the program, which has nregisters, over positions first .. first + nrows - 1.  filter: 1
	 * for each row that counts.  mask (may be the same array): 0 for those that do not in any case;
	 * or NULL.
	 */
	GpuaggCudaStatus device_run_program(const ProgramRun *run, int nregisters, int64_t first,
										int64_t nrows, const uint8_t *mask, uint8_t *filter,
										gpuagg_stream stream);

#ifdef __cplusplus
}
#endif

#endif /* GPUAGG_DEVICE_KERNELS_H */

/*
 * kernels.h
 *	  The small kernels of the device layer: packing keys and inputs, moving states, bins of slots,
 *	  sketches, values of sets, lists of groups, and programs over stored columns.  The kernels that
 *	  reduce rows are in ../../kernels/.
 *
 * All pointers are to device memory, except those to the structs with arguments.  Work is queued on
 * the stream.  A function with a workspace only returns its bytes if the workspace is NULL, as in
 * gpuagg_cuda.h.
 */
#ifndef GPUAGG_DEVICE_KERNELS_H
#define GPUAGG_DEVICE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuagg_cuda.h"
#include "protocol.h"
#include "device_cuda/limit.h"
#include "server/device_store.h"

#ifdef __cplusplus
extern "C"
{
#endif

	/*
	 * Returns the architectures, as ten times major plus minor, of the kernels that the current
	 * device runs: of the binary, and of the PTX from which it was compiled.
	 */
	GpuaggCudaStatus device_kernel_versions(int *binary, int *ptx);

	/* A column in device memory.  The pointers may be NULL as in WireColumn. */
	typedef struct DeviceColumn
	{
		const void *values;
		const uint8_t *validity;
		int type;          /* WireType */
		uint16_t computed; /* as in GpuaggColumn: a program computes it, with this operand */
		uint16_t operand;
		bool nullable; /* some value may be NULL, in these rows or in other rows of the same message
						*/
	} DeviceColumn;

	/* What a packed key is made of; see WireKey. */
	typedef struct PackKeys
	{
		int nkeys;
		int key_bytes;
		int null_offset; /* offset of the byte of NULL bits; key_bytes: there is none */
		int width[WIRE_MAX_KEYS + 1]; /* 0: only the column's NULL bit is wanted */
		int offset[WIRE_MAX_KEYS + 1];
		DeviceColumn column[WIRE_MAX_KEYS + 1];
	} PackKeys;

	/* Writes the packed key of every row.  Keys have 4, 8 or 16 bytes. */
	GpuaggCudaStatus device_pack_keys(const PackKeys *pack, int64_t nrows, void *out,
									  gpuagg_stream stream);

	/*
	 * Sets rows[b - first] to the number of any row whose bin is b, for bins from `first` on.
	 * Entries without such a row stay.
	 */
	GpuaggCudaStatus device_rows_of_bins(const int32_t *bins, int64_t nrows, int64_t first,
										 int32_t *rows, gpuagg_stream stream);
	/*
	 * Writes the packed keys of n rows, of any length.  A negative row has a key of zeros.
	 */
	GpuaggCudaStatus device_row_keys(const PackKeys *pack, const int32_t *rows, int64_t n,
									 void *out, gpuagg_stream stream);

	/*
	 * Copies n rows of row_bytes (a multiple of 4): to[map[i]] = from[i], except where map[i] is
	 * negative.
	 */
	GpuaggCudaStatus device_scatter(const void *from, size_t row_bytes, const int32_t *map,
									int64_t n, void *to, gpuagg_stream stream);
	/* Copies n rows of row_bytes (a multiple of 4): to[i] = from[map[i]]. */
	GpuaggCudaStatus device_gather(const void *from, size_t row_bytes, const int32_t *map,
								   int64_t n, void *to, gpuagg_stream stream);

	/* Copies the keys of n states of ARGMAX or ARGMIN: to[i] = key of state i. */
	GpuaggCudaStatus device_take_keys(const void *states, int64_t n, int64_t *to,
									  gpuagg_stream stream);

	typedef struct SlotBins
	{
		int kind; /* WIRE_BIN_UNIFORM or WIRE_BIN_THRESHOLDS */
		DeviceColumn column;
		const uint8_t *filter; /* or NULL */
		const int32_t *group;  /* group of each row; NULL: all are in group 0 */
		int width;
		int n;
		int formula; /* GpuaggBinFormula, of WIRE_BIN_UNIFORM */
		double lo, hi;
		const double *thresholds;
	} SlotBins;

	/* Writes group * width + bin for every row; -1 if the column is NULL or the filter fails. */
	GpuaggCudaStatus device_slot_bins(const SlotBins *bins, int64_t nrows, int32_t *out,
									  gpuagg_stream stream);

	/*
	 * Sketches: a group has GPUAGG_HLL_REGISTERS registers of one byte.  Without rows all are 0.
	 * The arrays begin at a multiple of 16 bytes.
	 */

	/* Rows whose values, which are hashes, are added to sketches. */
	typedef struct SketchRows
	{
		DeviceColumn column;   /* integers of up to 64 bits */
		const uint8_t *filter; /* or NULL */
		/*
		 * The group of each row plus min.  A row whose group is not in 0 .. ngroups - 1 does not
		 * count.  NULL: all rows are in group 0.
		 */
		const int32_t *group;
		int64_t min;
		int64_t ngroups;
	} SketchRows;

	/* Raises registers to the ranks of the values that are not NULL. */
	GpuaggCudaStatus device_update_sketches(const SketchRows *rows, int64_t nrows, void *registers,
											gpuagg_stream stream);
	/*
	 * Combines n sketches with those of groups bins[0 .. n - 1], which are all different.  bins
	 * NULL: with the first n groups.
	 */
	GpuaggCudaStatus device_combine_sketches(const void *from, const int32_t *bins, int64_t n,
											 void *registers, gpuagg_stream stream);
	/*
	 * Counts the registers of each rank, GPUAGG_HLL_RANKS counts per group, of the n groups of the
	 * list; list NULL: of the first n groups.
	 */
	GpuaggCudaStatus device_count_ranks(const void *registers, const int32_t *list, int64_t n,
										int32_t *counts, gpuagg_stream stream);
	/* Converts the registers of these groups to states of HLL_MAX, for the client. */
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
	 * Writes the operator's input of every row, and 1 in `keep` if the row counts: the filter
	 * holds, and no column is NULL, unless the operator takes NULLs.
	 */
	GpuaggCudaStatus device_pack_inputs(const PackInput *pack, int64_t nrows, void *inputs,
										uint8_t *keep, gpuagg_stream stream);

	/* Writes an order key as 64 bits, 0 for NULL, and a rank that sorts NULLs first or last. */
	GpuaggCudaStatus device_pack_order(const DeviceColumn *column, int64_t nrows, int nulls_first,
									   int64_t *codes, int8_t *ranks, gpuagg_stream stream);

	/* ---- values of sets ---- */

	/* The number and the range of the values that were kept, and of the codes beside them. */
	typedef struct SetCounts
	{
		int64_t n;
		int64_t min, max;
		int64_t beside_min, beside_max;
		int64_t last; /* how many have wire_beside_order() 1 */
	} SetCounts;

	/* Rows whose values are kept. */
	typedef struct SetRows
	{
		DeviceColumn column;   /* of integers of up to 64 bits */
		const uint8_t *filter; /* or NULL */
		const int32_t *bins;   /* bin of each row's group; negative: the row does not count */
		DeviceColumn beside; /* the same for the values beside these; values NULL: there are none */
		const int32_t *order; /* not NULL: `beside` has codes, and this is their order */
		int descending;       /* as in WireSet */
	} SetRows;

	/* Arrays of the values that are kept. */
	typedef struct SetArrays
	{
		int32_t *bins;
		int64_t *values;
		int64_t *beside; /* wire_beside_code(), only with values beside others */
		int32_t *order;  /* wire_beside_order() */
	} SetArrays;

	/* Initializes the counts, before the first rows. */
	GpuaggCudaStatus device_init_set(SetCounts *counts, gpuagg_stream stream);
	/* Appends the values that are not NULL, in any order, with their bins; updates the counts. */
	GpuaggCudaStatus device_keep_values(const SetRows *rows, int64_t nrows, const SetArrays *to,
										SetCounts *counts, gpuagg_stream stream);
	/*
	 * Sorts n pairs (n < 2^31) of bins and values by bin or by value, stably.  The keys differ in
	 * their lowest `bits` (at least 1) bits only, or `bits` is their full width.
	 *
	 * bins[0] and values[0] contain the pairs; bins[1] and values[1] are arrays of the same size.
	 * The call may swap the pointers: afterwards the first two contain the sorted pairs, and the
	 * content of the others is undefined.
	 */
	GpuaggCudaStatus device_sort_values(bool by_bin, int32_t *bins[2], int64_t *values[2],
										int64_t n, int bits, void *workspace,
										size_t *workspace_bytes, gpuagg_stream stream);
	/* Sorts pairs of two int32 numbers by the first one, in the same way. */
	GpuaggCudaStatus device_sort_numbers(int32_t *keys[2], int32_t *numbers[2], int64_t n, int bits,
										 void *workspace, size_t *workspace_bytes,
										 gpuagg_stream stream);
	/* Sets numbers[i] to i. */
	GpuaggCudaStatus device_number_values(int32_t *numbers, int64_t n, gpuagg_stream stream);
	/* Marks sorted values with 1 if their bin or value differs from the one before, else 0. */
	GpuaggCudaStatus device_distinct_values(const int32_t *bins, const int64_t *values, int64_t n,
											uint8_t *distinct, gpuagg_stream stream);
	/*
	 * Lists the places of sorted values whose bin or value differs from the one before, in
	 * ascending order.
	 */
	GpuaggCudaStatus device_list_firsts(const int32_t *bins, const int64_t *values, int64_t n,
										int32_t *firsts, int32_t *nfirsts, void *workspace,
										size_t *workspace_bytes, gpuagg_stream stream);
	/*
	 * Sets modes[b] to wire_mode_of the most frequent value of each bin b that has values.  The
	 * modes are 0 before.
	 */
	GpuaggCudaStatus device_modes(const int32_t *bins, const int64_t *values, int64_t n, bool last,
								  int64_t *modes, gpuagg_stream stream);
	/* Sets first[b] to the place of the first value of each bin b that has values. */
	GpuaggCudaStatus device_first_values(const int32_t *bins, int64_t n, int64_t *first,
										 gpuagg_stream stream);

	/* ---- groups ---- */

/* The order of keys between neighboring rows, as flags: */
#define HEADS_ASCEND 1        /* some key is greater than the one before */
#define HEADS_DESCEND 2       /* some key is less */
#define HEADS_FIRST_ASCENDS 4 /* the same for the first key column alone */
#define HEADS_FIRST_DESCENDS 8

	/* A slice in whose key columns the boundaries of runs are searched. */
	typedef struct HeadRows
	{
		int nkeys;
		int nspans; /* ranges of rows in the slice; only used with a mask */
		const StoreSpan *spans;
		const uint8_t *mask; /* NULL: all rows are wanted */
		int64_t first;       /* position of the slice's first row */
		DeviceColumn column[WIRE_MAX_KEYS];
		int64_t last_before; /* row number in column_before of the last wanted row of the slice
								before; -1: there is none */
		DeviceColumn column_before[WIRE_MAX_KEYS];
	} HeadRows;

	/*
	 * Sets a bit in `heads` for each wanted row whose keys differ from those of the wanted row
	 * before it, and for the first row.  Adds HEADS_* flags to *order: the keys are in order unless
	 * it has both ASCEND and DESCEND.  NULL is greater than any value.  If the first key column is
	 * in no order, the heads may be incomplete.
	 */
	GpuaggCudaStatus device_find_heads(const HeadRows *rows, int64_t nrows, uint32_t *heads,
									   uint32_t *order, gpuagg_stream stream);
	/* Writes the packed key of each run, at its number; heads and before as in GpuaggRuns. */
	GpuaggCudaStatus device_head_keys(const PackKeys *pack, const uint32_t *heads,
									  const int32_t *before, int64_t nrows, void *out,
									  gpuagg_stream stream);

	/* Where the keys of groups are: in a table by bin, or (table NULL) computed from the bin. */
	typedef struct GroupKeys
	{
		int key_bytes; /* of a packed key */
		int null_offset;
		const void *table; /* or NULL */
		int table_bytes;   /* of a key in the table; the rest of the packed key is 0 */
		int nkeys;
		int width[WIRE_MAX_KEYS];
		int offset[WIRE_MAX_KEYS];
		int64_t min[WIRE_MAX_KEYS];
		int64_t extent[WIRE_MAX_KEYS];
		uint8_t has_null[WIRE_MAX_KEYS];
	} GroupKeys;

	/* Writes the packed keys of the n groups in the list; list NULL: of the first n groups. */
	GpuaggCudaStatus device_group_keys(const GroupKeys *keys, const int32_t *list, int64_t n,
									   void *out, gpuagg_stream stream);
	/* Lists the groups whose count is above 0, in ascending order. */
	GpuaggCudaStatus device_list_groups(const int64_t *counts, int64_t n, int32_t *list,
										int32_t *nlisted, void *workspace, size_t *workspace_bytes,
										gpuagg_stream stream);
	/* The input of the search for the groups within a limit. */
	typedef struct TopGroups
	{
		const int64_t
			*counts; /* number of rows of each bin; 0: not a group.  NULL: all are groups */
		GroupKeys keys;
		int reads_keys; /* the plan reads packed keys */
		LimitPlan plan;
	} TopGroups;

	typedef struct TopCounts
	{
		int32_t all;    /* groups, before the limit */
		int32_t failed; /* groups that do not meet a condition */
	} TopCounts;

	/* Lists the groups within the limit among n bins, and counts groups. */
	GpuaggCudaStatus device_top_groups(const TopGroups *top, int64_t n, int32_t *list,
									   int32_t *nlisted, TopCounts *counts, void *workspace,
									   size_t *workspace_bytes, gpuagg_stream stream);

	/* ---- groups of another device ---- */

	/*
	 * Unpacks packed keys to columns: the reverse of PackKeys.  Validity arrays have whole words of
	 * 64 bits.
	 */
	typedef struct UnpackKeys
	{
		int nkeys;
		int key_bytes;
		int null_offset;
		int width[WIRE_MAX_KEYS];
		int offset[WIRE_MAX_KEYS];
		void *values[WIRE_MAX_KEYS];
		uint32_t *validity[WIRE_MAX_KEYS]; /* NULL: this key is never NULL */
	} UnpackKeys;

	GpuaggCudaStatus device_unpack_keys(const UnpackKeys *unpack, const void *keys, int64_t n,
										gpuagg_stream stream);

	typedef struct CombineStates
	{
		int monoid; /* a commutative one */
		int width;  /* states per group */
		void *states;
		const void *from; /* states of n groups; NULL: adds 1 to the count of each */
		/* the index in `states` of each group, all different; NULL: the same index */
		const int32_t *bins;
		int64_t n;
		unsigned *errors; /* MonoidError bits are added here */
	} CombineStates;

	GpuaggCudaStatus device_combine_states(const CombineStates *in, gpuagg_stream stream);

	/* ---- rows of stored columns ---- */

	/* Writes 0 for each row that the filter passes, -1 for the others. */
	GpuaggCudaStatus device_filter_bins(const uint8_t *filter, int64_t nrows, int32_t *bins,
										gpuagg_stream stream);

	/*
	 * Writes 1 for each of the positions first .. first + nrows - 1 that is in one of the ranges, 0
	 * for the others.  The ranges are ascending and disjoint.
	 */
	GpuaggCudaStatus device_mask(const StoreSpan *spans, int nspans, int64_t first, int64_t nrows,
								 uint8_t *mask, gpuagg_stream stream);

	/*
	 * Sets bits first .. first + nrows - 1 of a bitmap to the bits at `from`, which are whole
	 * aligned words of 64 bits; from NULL: to 1.  Other bits stay.
	 */
	GpuaggCudaStatus device_put_bits(const void *from, void *bits, int64_t first, int64_t nrows,
									 gpuagg_stream stream);

	/*
	 * A check of a column of floats.  Rows that fail it are undetermined: only the CPU can judge.
	 */
	typedef struct FloatCheck
	{
		DeviceColumn column; /* WIRE_F32 or WIRE_F64 */
		const uint8_t *mask; /* 0: the row does not count; or NULL */
		double below;        /* magnitudes must be below this, as for VECTOR_F64_BELOW */
		int no_zeros;        /* -0 fails, too */
		unsigned long long *undetermined; /* the number of such rows is added here */
	} FloatCheck;

	GpuaggCudaStatus device_check_floats(const FloatCheck *check, int64_t nrows,
										 gpuagg_stream stream);

	/* A column that a program computes.  Its validity array has whole words of 64 bits. */
	typedef struct ProgramOutput
	{
		void *values;       /* NULL: not written; undetermined rows are counted nevertheless */
		uint32_t *validity; /* NULL: not written */
		uint16_t operand;
		uint8_t width;  /* bytes of a value */
		uint8_t filter; /* NULL is written as 0 */
		/* If it is neither a filter nor nullable, rows whose value is NULL are undetermined. */
		uint8_t nullable;
	} ProgramOutput;

	/* A program and its columns; the struct itself is in device memory. */
	typedef struct ProgramRun
	{
		VectorProgram program;
		DeviceColumn
			input[WIRE_MAX_STORED_COLS];     /* read by VECTOR_LOAD; they begin at position 0 */
		VectorTable tables[WIRE_MAX_TABLES]; /* for VECTOR_LOOKUP, with their cells: */
		const uint8_t *cells[WIRE_MAX_TABLES];
		int noutputs;
		ProgramOutput output[WIRE_MAX_RESIDENT_COLS]; /* for the rows of the slice */
		unsigned long long *undetermined; /* the number of undetermined rows is added here */
	} ProgramRun;

	/*
	 * Runs the program, which uses nregisters registers, over positions first .. first + nrows - 1.
	 * Writes 1 in `filter` for each row that counts, else 0.  mask, which may be the same array as
	 * filter: 0 for rows that do not count in any case; or NULL.
	 */
	GpuaggCudaStatus device_run_program(const ProgramRun *run, int nregisters, int64_t first,
										int64_t nrows, const uint8_t *mask, uint8_t *filter,
										gpuagg_stream stream);

#ifdef __cplusplus
}
#endif

#endif /* GPUAGG_DEVICE_KERNELS_H */

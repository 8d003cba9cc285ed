/*
 * hist_slots.cuh
 *	  What a histogram's slots need of shared memory; host side.
 */
#ifndef GPUAGG_HIST_SLOTS_CUH
#define GPUAGG_HIST_SLOTS_CUH

#include "hist.cuh"

/* How wide the sums of slots are. */
struct HistWidth
{
	int fix_words;   /* of float sums, in digits or words */
	int digit_bits;  /* of ACCUM */
	bool spill;      /* device memory takes the carries of FIX, of narrow INT and of ACCUM */
	bool in_moments; /* a count of all rows has no word beside ACCUM's; for hist_deviations.cu alone
					  */
};

/* From wide ones on to those that take least shared memory. */
static const HistWidth hist_widths[] = {
	{4, 24, false, false}, {4, 28, false, false}, {3, 28, true, false}, {3, 28, true, true}};

#define HIST_WIDTHS ((int) (sizeof(hist_widths) / sizeof(hist_widths[0])))

/* The least n of which 2^n is not less. */
int hist_log2_ceil(int64_t n);
/* Slot s of a call, but for its words. */
GpuaggCudaStatus hist_set_slot(const GpuaggHist *hist, int s, HistSlot &slot);
/*
 * Extremes of decimals that are integers of 64 bits get a form; those whose code is that of none
 * change states themselves.
 */
void hist_use_decimal_code_form(HistSlot &slot);
bool hist_needs_locks(const HistSlot &slot);
/*
 * Words and limbs of all slots as in size_slot; 64-bit words first, so that every plane pair is
 * aligned.
 */
void hist_size_slots(HistArgs &args, const HistWidth &width, int block_bits, int total_bits);

#endif /* GPUAGG_HIST_SLOTS_CUH */

/*
 * hist_slots.cuh
 *	  Host side: checks the slots of a call and lays out their words and limbs.
 */
#ifndef GPUAGG_HIST_SLOTS_CUH
#define GPUAGG_HIST_SLOTS_CUH

#include "hist.cuh"

/* How wide the sums of a call are. */
struct HistWidth
{
	int fix_words;  /* HistSlot.digits of a FIX slot, words of a wide sum of floats */
	int digit_bits; /* bits of a digit of ACCUM */
	/*
	 * Limbs in device memory take the carries out of FIX, ACCUM, and INT sums of inputs of up to 32
	 * bits.
	 */
	bool spill;
	/*
	 * A COUNT of all rows has no word of its own if there is an ACCUM slot. Only hist_deviations.cu
	 * supports that.
	 */
	bool in_moments;
};

/*
 * The widths that a call may have, from the fastest to the one that needs the least shared memory.
 */
static const HistWidth hist_widths[] = {{FIX_CHAIN_WORDS, 24, false, false},
										{FIX_CHAIN_WORDS, 28, false, false},
										{FIX_DIGITS, 28, true, false},
										{FIX_DIGITS, 28, true, true}};

#define HIST_WIDTHS ((int) (sizeof(hist_widths) / sizeof(hist_widths[0])))

/* Returns log2 of n, rounded up. */
int hist_log2_ceil(int64_t n);
/*
 * Checks slot s of a call and fills in all but its words and limbs. Returns INVALID or UNSUPPORTED
 * if no kernel supports it.
 */
GpuaggCudaStatus hist_set_slot(const GpuaggHist *hist, int s, HistSlot &slot);
/*
 * Gives minima and maxima of decimals the form MAX64 if their column is an integer of up to 64
 * bits. Values whose code is 0, like an empty bin's, then change states directly.
 */
void hist_use_decimal_code_form(HistSlot &slot);
/* Returns whether rows of the slot may change states under locks. */
bool hist_needs_locks(const HistSlot &slot);
/*
 * Lays out the words and limbs of all slots. A block has up to 2^block_bits rows, the call up to
 * 2^total_bits. Slots with 64-bit words come first, so that their pairs of planes are aligned.
 */
void hist_size_slots(HistArgs &args, const HistWidth &width, int block_bits, int total_bits);

#endif /* GPUAGG_HIST_SLOTS_CUH */

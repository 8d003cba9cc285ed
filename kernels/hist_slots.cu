/*
 * hist_slots.cu
 *	  Host side: checks bins and slots of a call, and lays out the words and limbs of slots.
 */
#include "hist_change.cuh"
#include "hist_kernels.cuh"
#include "hist_model.h"
#include "hist_slots.cuh"

/*
 * Returns the column type that matches an operator's input without conversion. If the input is a
 * pair, both columns have this type.
 */
static GpuaggValueType
native_input_type(MonoidId op)
{
	if (op == MONOID_SUM_DEC || op == MONOID_MIN_DEC || op == MONOID_MAX_DEC)
		return GPUAGG_VALUE_I128;
	if (op == MONOID_SUM_F32 || op == MONOID_MIN_F32 || op == MONOID_MAX_F32)
		return GPUAGG_VALUE_F32;
	if (op == MONOID_SUM_F64 || op == MONOID_ACCUM_F64 || op == MONOID_REGR_F64 ||
		op == MONOID_MIN_F64 || op == MONOID_MAX_F64 || op == MONOID_PRODUCT_F64 ||
		op == MONOID_MOMENTS_F64)
		return GPUAGG_VALUE_F64;
	switch (gpuagg_monoids[op].input_size)
	{
		case 1:
			return GPUAGG_VALUE_I8;
		case 4:
			return GPUAGG_VALUE_I32;
		default:
			return GPUAGG_VALUE_I64;
	}
}

/* Returns whether an operator with native input type `native` can read a column of this type. */
static bool
type_can_feed(GpuaggValueType type, GpuaggValueType native)
{
	bool integer = type >= GPUAGG_VALUE_I8 && type <= GPUAGG_VALUE_I64;

	switch (native)
	{
		case GPUAGG_VALUE_F32:
			return type == GPUAGG_VALUE_F32;
		case GPUAGG_VALUE_F64:
			return type == GPUAGG_VALUE_F64 || type == GPUAGG_VALUE_F32;
		case GPUAGG_VALUE_I128:
			return integer || type == GPUAGG_VALUE_I128;
		default:
			return integer && hist_type_bytes(type) <= hist_type_bytes(native);
	}
}

GpuaggCudaStatus
hist_check_bins(const GpuaggBins &b, int least_columns)
{
	if (b.nbins < 1 || b.nbins >= INT32_MAX || b.ncolumns < least_columns ||
		b.ncolumns > GPUAGG_MAX_KEYS)
		return GPUAGG_CUDA_INVALID;
	for (int c = 0; c < b.ncolumns; c++)
	{
		GpuaggValueType t = b.column[c].type;

		if (b.kind == GPUAGG_BIN_INDEX ? t != GPUAGG_VALUE_I32 :
										 t < GPUAGG_VALUE_I8 || t > GPUAGG_VALUE_I64)
			return GPUAGG_CUDA_UNSUPPORTED;
		if (b.kind == GPUAGG_BIN_INDEX && b.column[c].validity)
			return GPUAGG_CUDA_UNSUPPORTED;
		if (b.kind == GPUAGG_BIN_INDEX && b.column[c].values == nullptr && b.nbins > 1)
			return GPUAGG_CUDA_INVALID;
	}
	if (b.kind == GPUAGG_BIN_RANGE)
	{
		int64_t product = 1;

		/* extents that passed are below 2^31, so the product cannot overflow */
		for (int c = 0; c < b.ncolumns; c++)
			if (b.extent[c] < 1 || b.extent[c] > b.nbins || (product *= b.extent[c]) > b.nbins)
				return GPUAGG_CUDA_INVALID;
	}
	return GPUAGG_CUDA_OK;
}

/* Returns the alignment that states need. States of 16 bytes are changed by one access. */
static size_t
state_alignment(MonoidId op)
{
	size_t size = gpuagg_monoids[op].state_size;

	return size % 16 == 0 ? 16 : size % 8 == 0 ? 8 : size;
}

GpuaggCudaStatus
hist_set_slot(const GpuaggHist *hist, int s, HistSlot &slot)
{
	const GpuaggSlot &in = hist->slot[s];
	GpuaggValueType native;
	bool pairs = in.op == MONOID_REGR_F64 || in.op == MONOID_ARGMAX || in.op == MONOID_ARGMIN;

	slot = HistSlot();
	if (in.op < 0 || in.op >= MONOID_COUNT_OF_IDS)
		return GPUAGG_CUDA_INVALID;
	if (!gpuagg_monoids[in.op].commutative || in.op == MONOID_HLL_MAX)
		return GPUAGG_CUDA_UNSUPPORTED;
	if ((uintptr_t) in.states % state_alignment(in.op) != 0)
		return GPUAGG_CUDA_INVALID;
	native = native_input_type(in.op);
	slot.op = in.op;
	slot.form = form_of(in.op);
	slot.x = in.x;
	slot.y = in.y;
	slot.filter = in.filter;
	slot.filter_operand = in.filter_computed ? in.filter_operand : -1;
	slot.states = in.states;
	slot.number = s;
	slot.wide_state = gpuagg_monoids[in.op].state_size == 16;
	if (slot.x.type == GPUAGG_VALUE_NATIVE)
		slot.x.type = native;
	if (slot.y.type == GPUAGG_VALUE_NATIVE)
		slot.y.type = native;
	if (slot.form == HIST_COUNT)
	{
		slot.x.values = slot.y.values = nullptr;
		return GPUAGG_CUDA_OK;
	}
	if (slot.x.values == nullptr && !slot.x.computed)
		return GPUAGG_CUDA_INVALID;
	if (!type_can_feed(slot.x.type, native) && !(is_argmax(in.op) && hist_is_float(slot.x.type)))
		return GPUAGG_CUDA_UNSUPPORTED;
	slot.extend = native == GPUAGG_VALUE_I128 && slot.x.type != native;
	if (!pairs)
		slot.y.values = nullptr, slot.y.validity = nullptr;
	else if (slot.y.values == nullptr)
		return GPUAGG_CUDA_INVALID;
	else if (!type_can_feed(slot.y.type, native) &&
			 !(is_argmax(in.op) && hist_is_float(slot.y.type)))
		return GPUAGG_CUDA_UNSUPPORTED;
	return GPUAGG_CUDA_OK;
}

void
hist_use_decimal_code_form(HistSlot &slot)
{
	if ((slot.op == MONOID_MIN_DEC || slot.op == MONOID_MAX_DEC) && slot.extend)
		slot.form = HIST_MAX64;
}

bool
hist_needs_locks(const HistSlot &slot)
{
	return locks_out_of_window(slot.op) || (slot.form == HIST_MAX64 && slot.wide_state);
}

/*
 * Assigns word and limb planes to a slot. `words` and `limbs` are the numbers of the first free
 * planes; they are advanced. All 2^block_bits rows of a block may have one bin. The float sums of
 * all 2^total_bits rows of the call must fit 128 bits.
 */
static void
lay_out_slot(HistSlot &slot, const HistWidth &width, int block_bits, int total_bits, int &words,
			 int &limbs)
{
	int fix_words = width.fix_words;
	bool spill = width.spill;
	int bytes = hist_type_bytes(slot.x.type);
	int w = 0, l = 1;

	switch (slot.form)
	{
		case HIST_COUNT:
			w = !slot.in_moments;
			break;
		case HIST_MAX32:
			w = 1;
			break;
		case HIST_MAX64:
		case HIST_CAS:
		case HIST_OR64:
		case HIST_XOR64:
			w = 2;
			break;
		case HIST_INT:
			slot.input_words = bytes <= 4 ? 1 : bytes == 8 ? 2 : 4;
			slot.spill = spill && slot.input_words == 1;
			slot.words = slot.spill   ? 1 :
				slot.input_words == 1 ? 2 :
				slot.input_words == 2 ? (slot.wide_state ? 3 : 2) :
										4;
			w = slot.words;
			l = w + slot.spill;
			break;
		case HIST_INTSQ:
			slot.input_words = slot.op == MONOID_SUMSQ_I192 ? 4 : 2;
			w = l = slot.words = slot.input_words + 1;
			break;
		case HIST_FIX:
			/* digits hold any float4 that is not far smaller than the greatest value */
			slot.digits = slot.x.type == GPUAGG_VALUE_F32 ? FIX_DIGITS : fix_words;
			slot.spill = spill;
			w = slot.words = is_chain(slot) ? FIX_CHAIN_WORDS : FIX_DIGITS + !spill;
			slot.max_shift = is_chain(slot) ? FIX_CHAIN_MAX_SHIFT :
											  fix_log2_weight(FIX_DIGITS, FIX_DIGITS) - 1 - 53;
			slot.max_shift = min(slot.max_shift, 126 - total_bits - 53);
			l = slot.digits + 1;
			break;
		default:
			slot.words = fix_words;
			slot.max_shift = min(32 * fix_words - block_bits, 127 - total_bits) - 54;
			slot.words2 = (107 + 2 * slot.max_shift + block_bits + 31) / 32;
			w = l = 1 + 2 * slot.words + 3 * slot.words2;
			if (slot.form == HIST_REGR)
				break;
			slot.digit_bits = width.digit_bits;
			/*
			 * with spill, limbs take the carries out of the top words, which then need room for
			 * digits alone
			 */
			slot.words = hist_model_digit_words(53 + slot.max_shift, slot.digit_bits,
												spill ? 0 : block_bits);
			slot.words2 = hist_model_digit_words(106 + 2 * slot.max_shift, slot.digit_bits,
												 spill ? 0 : block_bits);
			w = l = 1 + slot.words + slot.words2;
	}
	slot.word = words;
	slot.limb = limbs;
	slot.nlimbs = l;
	words += w;
	limbs += l;
}

int
hist_log2_ceil(int64_t n)
{
	int bits = 0;

	while ((int64_t) 1 << bits < n)
		bits++;
	return bits;
}

/*
 * Finds a COUNT and an ACCUM slot that both take all rows. Makes the COUNT use the count word of
 * the ACCUM slot (in_moments). Returns the ACCUM slot, or NULL if there are no such slots.
 */
static const HistSlot *
share_word_of_moments(HistArgs &args)
{
	HistSlot *count = nullptr, *moments = nullptr;

	for (int s = 0; s < args.nslots; s++)
	{
		HistSlot &slot = args.slot[s];

		if (slot.filter || slot.filter_operand >= 0 || slot.x.validity || slot.y.validity)
			continue;
		if (slot.form == HIST_COUNT && !count)
			count = &slot;
		if (slot.form == HIST_ACCUM && !moments)
			moments = &slot;
	}
	if (!count || !moments)
		return nullptr;
	count->in_moments = true;
	return moments;
}

void
hist_size_slots(HistArgs &args, const HistWidth &width, int block_bits, int total_bits)
{
	const HistSlot *moments;

	args.words = args.limbs = 0;
	for (int s = 0; s < args.nslots; s++)
		args.slot[s].in_moments = false;
	moments = width.in_moments ? share_word_of_moments(args) : nullptr;
	for (int wide = 1; wide >= 0; wide--)
		for (int s = 0; s < args.nslots; s++)
		{
			int form = args.slot[s].form;
			bool is_wide = form == HIST_MAX64 || form == HIST_CAS;

			if (is_wide == (wide == 1))
				lay_out_slot(args.slot[s], width, block_bits, total_bits, args.words, args.limbs);
		}
	for (int s = 0; moments && s < args.nslots; s++)
		if (args.slot[s].in_moments)
			args.slot[s].word = moments->word;
}

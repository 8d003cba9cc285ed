/*
 * segmented_narrow.h
 *	  Stored types, narrower than an operator's input, that the segmented
 *	  reduction reads as they are: SEGMENTED_NARROW(name, stored type, TYPE).
 *	  The includer defines the macro and undefines it after.
 */
SEGMENTED_NARROW(sum_i64, int16_t, I16)
SEGMENTED_NARROW(sum_i64, int32_t, I32)
SEGMENTED_NARROW(sum_f64, float, F32)
SEGMENTED_NARROW(accum_f64, float, F32)

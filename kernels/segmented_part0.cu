/*
 * segmented_part0.cu
 *	  Instances of the segmented reduction, part 0.
 */
#define SEGMENTED_PART 0
#include "segmented_part.cuh"

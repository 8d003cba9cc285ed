/*
 * segmented_part5.cu
 *	  Instances of the segmented reduction, part 5.
 */
#define SEGMENTED_PART 5
#include "segmented_part.cuh"

/*
 * segmented_part4.cu
 *	  Instances of the segmented reduction, part 4.
 */
#define SEGMENTED_PART 4
#include "segmented_part.cuh"

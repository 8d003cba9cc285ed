/*
 * segmented_part1.cu
 *	  Instances of the segmented reduction, part 1.
 */
#define SEGMENTED_PART 1
#include "segmented_part.cuh"

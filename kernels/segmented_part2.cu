/*
 * segmented_part2.cu
 *	  Instances of the segmented reduction, part 2.
 */
#define SEGMENTED_PART 2
#include "segmented_part.cuh"

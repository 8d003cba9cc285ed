/*
 * segmented_part3.cu
 *	  Instances of the segmented reduction, part 3.
 */
#define SEGMENTED_PART 3
#include "segmented_part.cuh"

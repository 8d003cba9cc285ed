/*
 * resident_standin_test.c
 *	  resident_test.c over the stand-in for the device, which has to give the same answers.
 */
#define OVER_STANDIN 1

#include "resident_test.c"

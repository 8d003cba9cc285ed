/*
 * spin.h
 *	  Polling for a moment before a thread sleeps.
 */
#ifndef GPUAGG_SERVER_SPIN_H
#define GPUAGG_SERVER_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Calls found(arg) repeatedly for about 50 us, if there are enough processors for one more polling
 * thread. Returns false if the caller must sleep instead.
 */
extern bool spin_until(bool (*found)(void *arg), void *arg);
/* Number of processors of this process; 0: not counted yet. Tests set it. */
extern atomic_int spin_processors;

#endif /* GPUAGG_SERVER_SPIN_H */

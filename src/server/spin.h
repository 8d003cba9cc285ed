/*
 * spin.h
 *	  Polling for a moment before a thread sleeps.
 */
#ifndef GPUAGG_SERVER_SPIN_H
#define GPUAGG_SERVER_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Looks whether it is found, again and again for some 50 us if so many processors are there that
 * this thread may.  False: go to sleep for it.
 */
extern bool spin_until(bool (*found)(void *arg), void *arg);
/* Those of this process; 0: not counted yet.  Tests set it. */
extern atomic_int spin_processors;

#endif /* GPUAGG_SERVER_SPIN_H */

/*
 * abandon.h
 *	  Replaces server_abandon of control.c in tests whose faults must not lose the device: the
 *	  test fails.
 *
 * Include it in the source file that has main.
 */
#ifndef GPUAGG_UNIT_ABANDON_H
#define GPUAGG_UNIT_ABANDON_H

#include <stdio.h>
#include <stdlib.h>

#include "server/server.h"

void
server_abandon(const char *reason)
{
	printf("Bail out! the server ends: %s\n", reason);
	exit(1);
}

#endif /* GPUAGG_UNIT_ABANDON_H */

/*
 * abandon.h
 *	  In place of control.c, for tests whose faults must not lose the device.
 *
 * For the file of a test that has main.
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

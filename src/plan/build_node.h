/*
 * build_node.h
 *	  The node with which a plan begins: the build id of the library that has made the plan.
 *
 * If the library's file is replaced after a session has loaded it, parallel workers of the session
 * load another build.  Its plans and its shared memory may have another format, so a worker checks
 * the node before it reads anything else.  The libraries of version 1.0 do not know the node: their
 * workers fail with PostgreSQL's own error when they read the plan.
 */
#ifndef GPUAGG_BUILD_NODE_H
#define GPUAGG_BUILD_NODE_H

#include "postgres.h"

#include "nodes/nodes.h"

/* Called once in _PG_init. */
extern void build_node_register(void);

/* Returns a node with the build id of this library. */
extern Node *build_node_make(void);

/* Raises an error unless this library has made the node. */
extern void build_node_check(const Node *node);

#endif /* GPUAGG_BUILD_NODE_H */

/*
 * build_node.c
 *	  The node with the build id, see build_node.h.
 */
#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/readfuncs.h"

#include "common/build_id.h"
#include "plan/build_node.h"

#define NODE_NAME "GpuAggBuild"

typedef struct BuildNode
{
	ExtensibleNode base;
	char *build;
} BuildNode;

static void
copy_node(ExtensibleNode *to, const ExtensibleNode *from)
{
	((BuildNode *) to)->build = pstrdup(((const BuildNode *) from)->build);
}

static bool
nodes_are_equal(const ExtensibleNode *a, const ExtensibleNode *b)
{
	return strcmp(((const BuildNode *) a)->build, ((const BuildNode *) b)->build) == 0;
}

static void
write_node(StringInfo text, const ExtensibleNode *node)
{
	appendStringInfo(text, " :build %s", ((const BuildNode *) node)->build);
}

static void
read_node(ExtensibleNode *node)
{
	const char *build;
	int length;

	(void) pg_strtok(&length); /* ":build" */
	build = pg_strtok(&length);
	((BuildNode *) node)->build = pnstrdup(build, length);
}

static const ExtensibleNodeMethods methods = {
	.extnodename = NODE_NAME,
	.node_size = sizeof(BuildNode),
	.nodeCopy = copy_node,
	.nodeEqual = nodes_are_equal,
	.nodeOut = write_node,
	.nodeRead = read_node,
};

void
build_node_register(void)
{
	RegisterExtensibleNodeMethods(&methods);
}

Node *
build_node_make(void)
{
	BuildNode *node = (BuildNode *) newNode(sizeof(BuildNode), T_ExtensibleNode);

	node->base.extnodename = NODE_NAME;
	node->build = pstrdup(build_id_of_library());
	return (Node *) node;
}

void
build_node_check(const Node *node)
{
	/* plans of version 1.0 begin with another node */
	if (!IsA(node, ExtensibleNode) ||
		strcmp(((const BuildNode *) node)->build, build_id_of_library()) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("parallel worker has loaded another build of library \"%s\"", "gpuagg"),
				 errdetail("The library's file was replaced after this session had loaded it."),
				 errhint("Reconnect, so that the session loads the new library.")));
}

/*
 * core_functions.c
 *	  Core's transition, combine, final and other functions under names of the library.
 *
 * The twins of core's aggregates call these, LANGUAGE C, and so no object of the
 * extension names a function of a certain release of core.  Each passes its call on as it
 * is: arguments, collation, memory, and flinfo with what core's function keeps in
 * fn_extra and reads from fn_expr.  That is a jump; nothing is looked up at run time.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/fmgrprotos.h"

#include "common/compat.h"

#define CORE(name) \
	PG_FUNCTION_INFO_V1(gpuagg_##name); \
	Datum gpuagg_##name(PG_FUNCTION_ARGS) \
	{ \
		return name(fcinfo); \
	}
#include "aggregates/core_list.h"
#undef CORE

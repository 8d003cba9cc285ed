/*
 * core_functions.c
 *	  Core's transition, combine, final and other functions under names of the library.
 *
 * The extension's copies of core's aggregates call these as LANGUAGE C, so no SQL object of the
 * extension names a function of a certain release of core. Each function passes its call on
 * unchanged: arguments, collation, memory context, and flinfo with fn_extra and fn_expr. The
 * compiler makes a jump of it; nothing is looked up at run time.
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

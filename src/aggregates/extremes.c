/*
 * extremes.c
 *	  Transition functions of gpu_min and gpu_max for types without a monoid: functions of the
 *	  library that call core's.
 *
 * A function that an older release of core does not have has no F_... macro there.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#define EXTREMES(smaller, larger) EXTREME(smaller) EXTREME(larger)
#define EXTREME(name) \
	PG_FUNCTION_INFO_V1(gpuagg_##name); \
	Datum gpuagg_##name(PG_FUNCTION_ARGS) \
	{ \
		return name(fcinfo); \
	}

EXTREMES(array_smaller, array_larger)
EXTREMES(bpchar_smaller, bpchar_larger)
EXTREMES(network_smaller, network_larger)
EXTREMES(pg_lsn_smaller, pg_lsn_larger)
EXTREMES(tidsmaller, tidlarger)
EXTREMES(timetz_smaller, timetz_larger)
EXTREMES(xid8_smaller, xid8_larger)
#ifdef F_BYTEA_LARGER
EXTREMES(bytea_smaller, bytea_larger)
#endif

/*
 * CREATE AGGREGATE does not accept anyenum as a transition type. So the functions are declared with
 * anyelement, and check that the type is an enum.
 */
#define EXTREME_OF_ENUMS(name) \
	PG_FUNCTION_INFO_V1(gpuagg_##name); \
	Datum gpuagg_##name(PG_FUNCTION_ARGS) \
	{ \
		check_enum(fcinfo); \
		return name(fcinfo); \
	}

/* Raises an error unless argument 0 is declared as an enum. */
static void
check_enum(FunctionCallInfo fcinfo)
{
	Oid type = get_fn_expr_argtype(fcinfo->flinfo, 0);

	if (!type_is_enum(type))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("type %s is not an enum", format_type_be(type))));
}

EXTREME_OF_ENUMS(enum_smaller)
EXTREME_OF_ENUMS(enum_larger)

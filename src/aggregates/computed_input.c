/*
 * computed_input.c
 *	  Expressions of arguments that slots read in place of the arguments: the bin of gpu_histogram2d
 *	  (grid_bin.c), and the hash of a value for gpu_approx_count_distinct.
 *
 * The hash is the one of the transition function (hll.c), as a call of the type's own hash
 * function.  So everything that computes expressions computes it, once for each different value of
 * a cached column.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "aggregates/aggmap_internal.h"
#include "aggregates/hll_value.h"
#include "analysis/analysis.h"

bool
aggmap_has_computed_input(const Aggref *aggref)
{
	FinalizeKind kind = aggmap_lookup(aggref->aggfnoid).row->kind;

	return finalize_has_grid(kind) ||
		(kind == FINALIZE_HLL &&
		 !hll_value_is_hash(exprType((Node *) aggmap_first_argument(aggref))));
}

/*
 * Returns the hash of the aggregate's argument; NULL if it is more than the result of the type's
 * hash function.  Hashes of text are those in UTF-8.
 */
static Node *
hash_of_argument(const Aggref *aggref)
{
	Expr *value = aggmap_first_argument(aggref);
	Oid type = exprType((Node *) value);
	Oid hash = lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc;
	Expr *seed = (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0), false,
									FLOAT8PASSBYVAL);

	if (!OidIsValid(hash) || hash >= FirstNormalObjectId || hash == F_HASH_NUMERIC_EXTENDED ||
		(GetDatabaseEncoding() != PG_UTF8 && GetDatabaseEncoding() != PG_SQL_ASCII) ||
		(type_is_collatable(type) && !OidIsValid(aggref->inputcollid)))
		return NULL;
	/* the argument is an input, too: users would notice two calls for a row */
	if (contain_volatile_functions((Node *) value) || expr_calls_users_function((Node *) value))
		return NULL;
	return (Node *) makeFuncExpr(hash, INT8OID, list_make2(value, seed), InvalidOid,
								 aggref->inputcollid, COERCE_EXPLICIT_CALL);
}

Node *
aggmap_computed_input(const Aggref *aggref)
{
	if (!aggmap_has_computed_input(aggref) || aggref->aggdistinct != NIL)
		return NULL;
	return finalize_has_grid(aggmap_lookup(aggref->aggfnoid).row->kind) ? aggmap_grid_bin(aggref) :
																		  hash_of_argument(aggref);
}

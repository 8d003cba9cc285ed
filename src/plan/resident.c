/*
 * resident.c
 *	  Estimates which rows the GPU can have cached, by what the column cache has.
 *
 * Whether the whole query can be translated for the GPU is known only when it runs.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "analysis/analysis.h"
#include "cache/proof.h"
#include "plan/group_query.h"
#include "protocol.h"
#include "settings.h"
#include "spec.h"

/* Rows of queries with more columns are not cached on the GPU. */
#define MOST_COLUMNS 100

/*
 * Values of keys are fetched for groups that leave, and expressions in keys are computed by the CPU
 * once for each value of the column, or once for all queries if they depend on nothing else.  With
 * more values in the column, the CPU engine is the better one for such a query.  Results of other
 * expressions are kept from query to query, a byte or more for each value; a query sends them to
 * the GPU in a buffer.
 */
#define MOST_KEY_VALUES 1048576
#define MOST_COMPUTED_KEY_VALUES 65536
/* Most bytes of the nodes and constants of an expression whose results are kept. */
#define EXPRESSION_BYTES 16384
#define MOST_COMPUTED_VALUES (WIRE_BUFFER_BYTES - 1)

/* Columns of a table that a query reads, offset by FirstLowInvalidHeapAttributeNumber. */
typedef struct ColumnsRead
{
	Bitmapset *all;
	Bitmapset *keys;          /* those that are keys, or in keys whose results are kept */
	Bitmapset *computed_keys; /* those in keys that are other expressions */
} ColumnsRead;

static bool add_choice(Bitmapset **columns, Node *expr, Index varno);

/* Does the same as add_choice() for each expression of a list. */
static bool
add_choices(Bitmapset **columns, List *exprs, Index varno)
{
	ListCell *lc;

	foreach (lc, exprs)
		if (!add_choice(columns, lfirst(lc), varno))
			return false;
	return true;
}

/*
 * Adds the columns between which an expression chooses.  Returns false if it does more than choose
 * between columns and constants.
 */
static bool
add_choice(Bitmapset **columns, Node *expr, Index varno)
{
	ListCell *lc;

	check_stack_depth();
	if (expr == NULL || IsA(expr, Const))
		return true;
	if (IsA(expr, Var))
	{
		pull_varattnos(expr, varno, columns);
		return true;
	}
	if (IsA(expr, RelabelType))
		return add_choice(columns, (Node *) ((RelabelType *) expr)->arg, varno);
	if (IsA(expr, CoalesceExpr))
		return add_choices(columns, ((CoalesceExpr *) expr)->args, varno);
	if (!IsA(expr, CaseExpr))
		return false;
	foreach (lc, ((CaseExpr *) expr)->args)
		if (!add_choice(columns, (Node *) lfirst_node(CaseWhen, lc)->result, varno))
			return false;
	return add_choice(columns, (Node *) ((CaseExpr *) expr)->defresult, varno);
}

/*
 * Adds the columns of a key.  The GPU reads a choice between one column and constants as a column.
 */
static void
add_key(ColumnsRead *columns, Node *expr, Index varno)
{
	Bitmapset *chosen = NULL;
	Size room = EXPRESSION_BYTES;

	if (add_choice(&chosen, expr, varno) && bms_membership(chosen) != BMS_MULTIPLE)
		columns->keys = bms_join(columns->keys, chosen);
	else
		pull_varattnos(expr, varno,
					   expr_is_fixed(expr, &room) ? &columns->keys : &columns->computed_keys);
}

/* Returns whether a column has at most `most` different values, as far as statistics say. */
static bool
has_few_values(Relation rel, AttrNumber attno, double most)
{
	HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(RelationGetRelid(rel)),
									  Int16GetDatum(attno), BoolGetDatum(false));
	double n;

	if (!HeapTupleIsValid(tuple))
		return false;
	n = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	/* a negative number is that of distinct values for each row, with the opposite sign */
	return (n < 0 ? -n * rel->rd_rel->reltuples : n) <= most;
}

/*
 * Returns whether the GPU can cache a column: as a number, or by numbers of its values, if there
 * are at most so many of them.  Numerics without a scale are neither.
 */
static bool
is_column_supported(Relation rel, AttrNumber attno, double most)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attno - 1);
	int16 scale;

	if (spec_column_type(att->atttypid, att->atttypmod, &scale) != COLUMN_DATUM)
		return true;
	return !att->attbyval && att->attlen != -2 && getBaseType(att->atttypid) != NUMERICOID &&
		has_few_values(rel, attno, most);
}

static bool
are_columns_supported(Relation rel, const ColumnsRead *columns)
{
	int member = -1;

	if (bms_num_members(columns->all) > MOST_COLUMNS)
		return false;
	while ((member = bms_next_member(columns->all, member)) >= 0)
	{
		AttrNumber attno = member + FirstLowInvalidHeapAttributeNumber;

		double most = bms_is_member(member, columns->computed_keys) ? MOST_COMPUTED_KEY_VALUES :
			bms_is_member(member, columns->keys)                    ? MOST_KEY_VALUES :
																	  MOST_COMPUTED_VALUES;

		if (attno <= 0 || !is_column_supported(rel, attno, most))
			return false;
	}
	return true;
}

/*
 * Returns the fraction of a table's blocks of which the column cache has these columns; 0 if the
 * GPU cannot cache them.
 */
static double
table_share(Oid relid, const ColumnsRead *columns, BlockNumber nblocks)
{
	Relation rel = table_open(relid, NoLock); /* the planner has locked it */
	double share = 0;

	if (rel->rd_rel->relkind == RELKIND_RELATION && proof_unsupported_reason(rel) == NULL &&
		are_columns_supported(rel, columns))
		share = cache_table_share(rel, nblocks, columns->all);
	table_close(rel, NoLock);
	return share;
}

/*
 * Returns the cached fraction of the table that a path scans sequentially; 0 for any other path.
 * target: what is computed of its rows
 */
static double
scan_share(GroupQuery *query, Path *scan, const PathTarget *target)
{
	RelOptInfo *rel = scan->parent;
	ColumnsRead columns = {NULL};
	ListCell *lc;

	if (scan->pathtype != T_SeqScan || scan->parallel_aware || scan->parallel_workers > 0 ||
		scan->param_info != NULL)
		return 0;
	foreach (lc, target->exprs)
	{
		pull_varattnos(lfirst(lc), rel->relid, &columns.all);
		if (get_pathtarget_sortgroupref(target, foreach_current_index(lc)) != 0)
			add_key(&columns, lfirst(lc), rel->relid);
	}
	foreach (lc, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, rel->relid, &columns.all);
	return table_share(planner_rt_fetch(rel->relid, query->root)->relid, &columns, rel->pages);
}

/* Returns whether the GPU can find inner rows by the equality of these types: they are integers. */
static bool
are_key_types(Oid left, Oid right)
{
	switch (left)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return right == INT2OID || right == INT4OID || right == INT8OID;
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return right == left;
		default:
			return false;
	}
}

/* The GPU reads its rows once for each match that a row may have, and only for a few of them. */
#define MOST_MATCHES 4

bool
plan_resident_join_supported(JoinType jointype, double matches, const List *hashclauses,
							 const List *restrictlist)
{
	ListCell *lc;

	if (hashclauses == NIL ||
		(matches > MOST_MATCHES && jointype != JOIN_SEMI && jointype != JOIN_ANTI) ||
		(jointype != JOIN_INNER && list_length(restrictlist) != list_length(hashclauses)))
		return false;
	foreach (lc, hashclauses)
	{
		const OpExpr *expr = (OpExpr *) lfirst_node(RestrictInfo, lc)->clause;

		if (!IsA(expr, OpExpr) || list_length(expr->args) != 2 ||
			!are_key_types(exprType(linitial(expr->args)), exprType(lsecond(expr->args))))
			return false;
	}
	return true;
}

bool
plan_resident_is_smaller(const RelOptInfo *inner, double tuples)
{
	return inner->reloptkind == RELOPT_BASEREL && inner->tuples <= tuples;
}

/*
 * Returns the cached fraction of a path's rows; the path is a scan, perhaps with joins above it,
 * and an Append of scans.  Sets *scanned.
 */
static double
path_share(GroupQuery *query, Path *path, double *scanned)
{
	const PathTarget *target = path->pathtarget;
	const HashPath *hash;
	double share = 0, rows = 0;
	ListCell *lc;

	check_stack_depth();
	while (IsA(path, ProjectionPath))
		path = ((ProjectionPath *) path)->subpath;
	*scanned = 0;
	if (IsA(path, HashPath))
	{
		double matches;

		hash = (const HashPath *) path;
		matches =
			hash->jpath.inner_unique ? 1 : path->rows / Max(hash->jpath.outerjoinpath->rows, 1);
		if (!plan_resident_join_supported(hash->jpath.jointype, matches, hash->path_hashclauses,
										  hash->jpath.joinrestrictinfo))
			return 0;
		share = path_share(query, hash->jpath.outerjoinpath, scanned);
		if (!hash->jpath.inner_unique && hash->jpath.jointype != JOIN_SEMI &&
			hash->jpath.jointype != JOIN_ANTI &&
			!plan_resident_is_smaller(hash->jpath.innerjoinpath->parent, *scanned))
			return 0;
		*scanned *= Max(matches, 1);
		return share;
	}
	if (!IsA(path, AppendPath))
	{
		share = scan_share(query, path, target);
		*scanned = share * path->parent->tuples;
		return share;
	}
	if (path->parallel_aware)
		return 0;
	foreach (lc, ((AppendPath *) path)->subpaths)
	{
		Path *subpath = lfirst(lc);
		double part;

		share += path_share(query, subpath, &part) * subpath->rows;
		rows += subpath->rows;
		*scanned += part;
	}
	return rows > 0 ? share / rows : 0;
}

double
plan_resident_share(GroupQuery *query, Path *child, double *scanned)
{
	*scanned = 0;
	/* the GPU engine would refuse the rows when the query runs */
	if (list_length(query->keys) > WIRE_MAX_KEYS ||
		list_length(query->inputs) > WIRE_MAX_RESIDENT_COLS)
		return 0;
	if (gpuagg_device_cache_memory == 0 || gpuagg_feed == GPUAGG_FEED_TUPLES || !cache_available())
		return 0;
	return path_share(query, child, scanned);
}

/*
 * fixed.c
 *	  Expressions whose results depend on their columns and constants only, so that results can be
 *	  kept for other queries; descriptions by which these find them.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/cryptohash.h"
#include "common/sha2.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "analysis/analysis.h"

/* Bytes that a node counts for. */
#define NODE_BYTES 8

/*
 * Settings that immutable functions use: those that return text, quote_ident(), and AT TIME ZONE
 * with an abbreviation of a time zone.
 */
static const char *const used_settings[] = {
	"bytea_output",          "DateStyle", "extra_float_digits",    "IntervalStyle",
	"quote_all_identifiers", "TimeZone",  "timezone_abbreviations"};

/* Callback of check_functions_in_node: returns whether a function may change its results. */
static bool
may_change(Oid funcid, void *context)
{
	return funcid >= FirstNormalObjectId || funcid == F_SATISFIES_HASH_PARTITION ||
		func_volatile(funcid) != PROVOLATILE_IMMUTABLE;
}

/*
 * Returns whether functions of PostgreSQL's own that are given such values call no others, and read
 * no catalogs.  Immutable functions read the dictionaries of text search, and partitions.
 */
static bool
is_plain_type(Oid type)
{
	if (type == REGCONFIGOID || type == REGDICTIONARYOID || type == REGCLASSOID)
		return false;
	return type < FirstNormalObjectId || get_typtype(type) == TYPTYPE_ENUM;
}

/*
 * Walker: returns true at a node whose result depends on more than its columns, constants and
 * used_settings; and if the nodes and their constants take more bytes than *room, which it reduces:
 * the text of a plan takes time and memory.
 */
static bool
depends_on_more(Node *node, void *room)
{
	Size bytes = NODE_BYTES;

	if (node == NULL)
		return false;
	if (IsA(node, Const) && !((Const *) node)->constisnull)
		bytes += datumGetSize(((Const *) node)->constvalue, ((Const *) node)->constbyval,
							  ((Const *) node)->constlen);
	if (bytes > *(Size *) room)
		return true;
	*(Size *) room -= bytes;
	switch (nodeTag(node))
	{
		case T_Var:
			if (((Var *) node)->varattno <= 0 || !is_plain_type(((Var *) node)->vartype))
				return true;
			break;
		case T_Const:
			if (!is_plain_type(((Const *) node)->consttype))
				return true;
			break;
		case T_FuncExpr:
			if (((FuncExpr *) node)->funcretset || !is_plain_type(exprType(node)))
				return true;
			break;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_MinMaxExpr:
		case T_CoerceViaIO:
		case T_RelabelType:
		case T_ArrayExpr:
			if (!is_plain_type(exprType(node)))
				return true;
			break;
		case T_List:
		case T_TargetEntry:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, may_change, NULL) ||
		expression_tree_walker(node, depends_on_more, room);
}

bool
expr_is_fixed(Node *expr, Size *room)
{
	return !depends_on_more(expr, room);
}

void
expr_append_fixed(StringInfo buf, const void *node)
{
	static const char *const ignored[] = {":startup_cost ", ":total_cost ",   ":plan_rows ",
										  ":plan_width ",   ":plan_node_id ", ":location "};
	char *all = nodeToString(node);
	const char *text = all;

	while (*text)
	{
		const char *next = strchr(text + 1, ':');
		size_t n = next ? next - text : strlen(text);
		bool skip = false;

		for (int i = 0; i < lengthof(ignored); i++)
			skip |= strncmp(text, ignored[i], strlen(ignored[i])) == 0;
		if (skip)
		{
			size_t label = strcspn(text, " ") + 1;
			size_t value = label + strcspn(text + label, " )}");

			text += Min(value, n);
			n -= Min(value, n);
		}
		appendBinaryStringInfo(buf, text, n);
		text += n;
	}
	pfree(all);
}

void
expr_append_number(StringInfo buf, uint64 number)
{
	appendBinaryStringInfo(buf, (char *) &number, sizeof(number));
}

void
expr_append_settings(StringInfo buf)
{
	for (int i = 0; i < lengthof(used_settings); i++)
	{
		const char *value = GetConfigOption(used_settings[i], false, false);

		appendBinaryStringInfo(buf, value, strlen(value) + 1);
	}
}

void
expr_digest(const StringInfoData *buf, uint8 *digest)
{
	pg_cryptohash_ctx *sha = pg_cryptohash_create(PG_SHA256);

	StaticAssertStmt(EXPR_DIGEST_BYTES == PG_SHA256_DIGEST_LENGTH, "a digest is this hash");
	if (sha == NULL || pg_cryptohash_init(sha) < 0 ||
		pg_cryptohash_update(sha, (uint8 *) buf->data, buf->len) < 0 ||
		pg_cryptohash_final(sha, digest, EXPR_DIGEST_BYTES) < 0)
		elog(ERROR, "could not compute a hash of an expression");
	pg_cryptohash_free(sha);
}

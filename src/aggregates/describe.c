/*
 * describe.c
 *	  gpuagg_describe: a row about each column of a table.
 *
 * It runs one query over the table, with the privileges and the row security of its caller. The
 * query has a record of aggregates for each column that the caller may read: numbers of values and
 * of distinct ones, extremes where the type has an order, gpu_summary of numbers and times, and the
 * most frequent value.
 *
 * The query runs what it names, whatever others define: names of core are qualified, and aggregates
 * of the extension, in whose schema others may write overloads, are given by their OIDs. They are
 * parameters in the query's text, for which the parser gets the calls.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_agg.h"
#include "parser/parse_clause.h"
#include "parser/parse_coerce.h"
#include "parser/parse_expr.h"
#include "parser/parse_func.h"
#include "parser/parser.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "aggregates/partial_call.h"
#include "common/compat.h"

PG_FUNCTION_INFO_V1(gpuagg_describe);

/*
 * So many columns are described by one query.  The time that core plans grows with the square of
 * the number of aggregates.
 */
#define QUERY_COLUMNS 64

/*
 * Values that take more bytes in their rows are not counted to find the most frequent one: JSON has
 * no strings and arrays of more than 256 MB, and compressed values may be 255 times as long.
 */
#define COUNTED_BYTES 65536

/*
 * The least and the greatest value are shown up to this size, because the records of a query's
 * columns must fit into memory as one row.
 */
#define SHOWN_BYTES (4 * 1024 * 1024)

/* The last second that a timestamp has, as seconds since 1970. */
#define LAST_SECOND 9224318015999.0

/* The columns of the result. */
typedef enum DescribeColumn
{
	DESCRIBE_NAME,
	DESCRIBE_TYPE,
	DESCRIBE_COUNT,
	DESCRIBE_NULLS,
	DESCRIBE_DISTINCT_VALUES,
	DESCRIBE_MIN,
	DESCRIBE_MAX,
	DESCRIBE_MEAN,
	DESCRIBE_DEVIATION,
	DESCRIBE_Q1,
	DESCRIBE_MEDIAN,
	DESCRIBE_Q3,
	DESCRIBE_MOST_FREQUENT,
	DESCRIBE_FREQUENCY,
	DESCRIBE_HISTOGRAM,
	DESCRIBE_COLUMNS
} DescribeColumn;

/* The members of a column's record; those that its type does not have are NULL. */
typedef enum Member
{
	MEMBER_COUNT,
	MEMBER_DISTINCT,
	MEMBER_MIN,
	MEMBER_MAX,
	MEMBER_SUMMARY, /* a gpuagg_summary */
	MEMBER_VALUE,
	MEMBER_FREQUENCY,
	MEMBERS
} Member;

/* How a column is described. */
typedef enum Measure
{
	MEASURE_NONE,
	MEASURE_NUMBER,
	MEASURE_DATE,
	MEASURE_TIMESTAMP,
	MEASURE_TIMESTAMPTZ
} Measure;

/* A column of the table. */
typedef struct ColumnInfo
{
	FormData_pg_attribute attribute;
	char *type; /* with its modifier */
	Measure measure;
	bool readable; /* by the caller */
	int place;     /* number of the record in the query's result; 0: none */
} ColumnInfo;

/* A call of an aggregate of the extension. */
typedef struct OwnCall
{
	Oid aggregate;
	Oid types[2]; /* declared ones */
	int nargs;    /* a second argument is 1 */
	const char *argument;
	const char *filter; /* NULL: none */
} OwnCall;

/* A query over columns of the table. */
typedef struct DescribeQuery
{
	StringInfoData text;
	List *calls; /* OwnCalls: parameter n is the n-th one */
} DescribeQuery;

/* ---- the text of the query ------------------------------------------------------------- */

/* Adds a call of an aggregate of the extension to a query. Returns its place in the text. */
static char *
own_call(DescribeQuery *query, const char *name, OwnCall call)
{
	OwnCall *copy = palloc(sizeof(OwnCall));

	*copy = call;
	copy->aggregate = partial_own_function(name, call.types, call.nargs);
	if (!OidIsValid(copy->aggregate))
		elog(ERROR, "aggregate %s of the extension does not exist", name);
	query->calls = lappend(query->calls, copy);
	return psprintf("$%d", list_length(query->calls));
}

/* Returns what can be computed with the type's values. */
static Measure
measure_of(Oid type)
{
	switch (getBaseType(type))
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
			return MEASURE_NUMBER;
		case DATEOID:
			return MEASURE_DATE;
		case TIMESTAMPOID:
			return MEASURE_TIMESTAMP;
		case TIMESTAMPTZOID:
			return MEASURE_TIMESTAMPTZ;
		default:
			return MEASURE_NONE;
	}
}

/*
 * Returns the aggregate max or min of the column, or NULL if its type has no order. Core has none
 * for some types that have one.
 */
static char *
extreme_of(DescribeQuery *query, const char *column, Oid type, bool greatest)
{
	const char *name = greatest ? "max" : "min";
	Oid base = getBaseType(type);

	if (!OidIsValid(lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc))
		return NULL;
	if (measure_of(type) != MEASURE_NONE || base == TEXTOID || base == VARCHAROID ||
		OidIsValid(get_element_type(base)))
		return psprintf("pg_catalog.%s(%s)", name, column);
	if (!OidIsValid(get_array_type(type)))
		return NULL;
	return psprintf(
		"(%s)[1]",
		own_call(query, greatest ? "gpu_max_n" : "gpu_min_n",
				 (OwnCall){.types = {ANYELEMENTOID, INT4OID}, .nargs = 2, .argument = column}));
}

/*
 * Returns the column's values as float8: seconds since 1970 for times. Numerics beyond the range of
 * float8 become infinite or 0.
 */
static char *
number_of(const char *column, Oid type)
{
	if (measure_of(type) == MEASURE_DATE || getBaseType(type) == NUMERICOID)
	{
		/* date_part() does not know the dates that are no timestamps */
		const char *x = measure_of(type) == MEASURE_DATE ?
			psprintf("pg_catalog.extract('epoch', %s)", column) :
			column;

		return psprintf("CASE WHEN %s OPERATOR(pg_catalog.=) 'NaN' THEN 'NaN'::pg_catalog.float8"
						" WHEN %s OPERATOR(pg_catalog.>) 1.797e308 THEN 'Infinity'"
						" WHEN %s OPERATOR(pg_catalog.<) -1.797e308 THEN '-Infinity'"
						" WHEN pg_catalog.abs(%s) OPERATOR(pg_catalog.<) 1e-307 THEN 0"
						" ELSE %s::pg_catalog.float8 END",
						x, x, x, x, x);
	}
	if (measure_of(type) == MEASURE_NUMBER)
		return psprintf("%s::pg_catalog.float8", column);
	return psprintf("pg_catalog.date_part('epoch', %s)", column);
}

/*
 * Returns the values that are counted to find the most frequent one. Types that users define are
 * counted as text: to_jsonb() would call casts of their owners, who may be anybody.
 */
static const char *
counted_value(const char *column, Oid type)
{
	if (getBaseType(type) < FirstNormalObjectId)
		return column;
	return psprintf("pg_catalog.format('%%s', %s)", column);
}

/* Returns the condition for values that are counted to find the most frequent one. */
static const char *
counted_condition(const char *column, const Form_pg_attribute attribute)
{
	Oid base = getBaseType(attribute->atttypid);

	if (attribute->attlen != -1 || base == NUMERICOID ||
		(base == VARCHAROID && attribute->atttypmod > 0 &&
		 attribute->atttypmod < COUNTED_BYTES / MAX_MULTIBYTE_CHAR_LEN))
		return psprintf("%s IS DISTINCT FROM NULL", column);
	return psprintf("pg_catalog.pg_column_size(%s) OPERATOR(pg_catalog.<=) %d", column,
					COUNTED_BYTES);
}

/* Returns an extreme of a column, NULL if it is too long to be shown. */
static const char *
shown_extreme(const char *extreme, const Form_pg_attribute attribute)
{
	Oid base = getBaseType(attribute->atttypid);
	const char *length;

	if (attribute->attlen != -1 || base == NUMERICOID)
		return extreme;
	if (base == TEXTOID || base == VARCHAROID || base == BYTEAOID)
		length = psprintf("pg_catalog.octet_length(%s)", extreme);
	else if (OidIsValid(get_element_type(base)))
		/* core's aggregates may return a compressed array, but a slice is not compressed */
		length = psprintf("pg_catalog.pg_column_size((%s)[:])", extreme);
	else
		length = psprintf("pg_catalog.pg_column_size(%s)", extreme);
	return psprintf("CASE WHEN %s OPERATOR(pg_catalog.<=) %d THEN %s END", length, SHOWN_BYTES,
					extreme);
}

/* Appends the record of a column: its members as they are listed. */
static void
append_record(DescribeQuery *query, const Form_pg_attribute attribute)
{
	StringInfo text = &query->text;
	const char *column = psprintf("d.%s", quote_identifier(NameStr(attribute->attname)));
	Oid type = attribute->atttypid;
	TypeCacheEntry *entry =
		lookup_type_cache(type, TYPECACHE_HASH_PROC | TYPECACHE_HASH_EXTENDED_PROC);
	char *min = extreme_of(query, column, type, false);
	char *max = extreme_of(query, column, type, true);

	appendStringInfo(text, ", ROW(pg_catalog.count(%s), %s, %s, %s", column,
					 !OidIsValid(entry->hash_extended_proc) ?
						 "NULL" :
						 own_call(query, "gpu_approx_count_distinct",
								  (OwnCall){.types = {ANYOID}, .nargs = 1, .argument = column}),
					 min ? shown_extreme(min, attribute) : "NULL",
					 max ? shown_extreme(max, attribute) : "NULL");
	appendStringInfo(
		text, ", %s",
		measure_of(type) == MEASURE_NONE ?
			"NULL" :
			own_call(
				query, "gpu_summary",
				(OwnCall){.types = {FLOAT8OID}, .nargs = 1, .argument = number_of(column, type)}));
	if (OidIsValid(entry->hash_proc))
	{
		const char *top = own_call(query, "gpu_top_k",
								   (OwnCall){.types = {ANYELEMENTOID, INT4OID},
											 .nargs = 2,
											 .argument = counted_value(column, type),
											 .filter = counted_condition(column, attribute)});

		top = psprintf("(%s OPERATOR(pg_catalog.->) 0)", top);
		appendStringInfo(
			text,
			", %s OPERATOR(pg_catalog.->>) 'value',"
			" (%s OPERATOR(pg_catalog.->>) 'count')::pg_catalog.int8 OPERATOR(pg_catalog.-)"
			" (%s OPERATOR(pg_catalog.->>) 'error')::pg_catalog.int8)",
			top, top, top);
	}
	else
		appendStringInfoString(text, ", NULL, NULL)");
}

/* ---- the parser's part ------------------------------------------------------------------ */

/* Returns the parsed text of an expression. */
static Node *
parse_text(const char *text)
{
	const SelectStmt *select = castNode(
		SelectStmt, linitial_node(RawStmt, raw_parser(text, RAW_PARSE_PLPGSQL_EXPR))->stmt);

	return linitial_node(ResTarget, select->targetList)->val;
}

/*
 * Removes the places of constants, which are not in the query's text. Extensions such as
 * pg_stat_statements write "$1" and so on over the places of constants in that text.
 */
static bool
forget_places(Node *node, void *context)
{
	if (node == NULL)
		return false;
	check_stack_depth();
	if (IsA(node, Const))
		castNode(Const, node)->location = -1;
	return expression_tree_walker(node, forget_places, context);
}

/* Hook of the parser: returns the call that a parameter of the query stands for. */
static Node *
call_of_parameter(ParseState *pstate, ParamRef *parameter)
{
	const DescribeQuery *query = pstate->p_ref_hook_state;
	OwnCall call = *(OwnCall *) list_nth(query->calls, parameter->number - 1);
	Aggref *aggref = makeNode(Aggref);
	Node *argument = transformExpr(pstate, parse_text(call.argument), pstate->p_expr_kind);
	Oid types[2] = {exprType(argument), INT4OID};
	List *arguments = list_make1(argument);

	if (call.nargs > 1)
		arguments = lappend(
			arguments,
			makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(1), false, true));
	aggref->aggfnoid = call.aggregate;
	aggref->aggtype = enforce_generic_type_consistency(types, call.types, call.nargs,
													   get_func_rettype(call.aggregate), false);
	make_fn_arguments(pstate, arguments, types, call.types);
	aggref->aggkind = AGGKIND_NORMAL;
	aggref->aggsplit = AGGSPLIT_SIMPLE;
	aggref->aggno = aggref->aggtransno = -1;
	aggref->location = parameter->location;
	if (call.filter)
		aggref->aggfilter = (Expr *) transformWhereClause(pstate, parse_text(call.filter),
														  EXPR_KIND_FILTER, "FILTER");
	transformAggregateCall(pstate, aggref, arguments, NIL, false);
	(void) forget_places((Node *) aggref, NULL);
	return (Node *) aggref;
}

/* Makes the parser ask for the calls of a query, each time that it is parsed. */
static void
set_up_parser(ParseState *pstate, void *query)
{
	pstate->p_ref_hook_state = query;
	pstate->p_paramref_hook = call_of_parameter;
}

/* ---- the table -------------------------------------------------------------------------- */

/* Raises an error if the relation has no rows that can be selected. */
static void
check_relation(Relation rel)
{
	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_VIEW:
		case RELKIND_MATVIEW:
		case RELKIND_FOREIGN_TABLE:
		case RELKIND_TOASTVALUE:
			return;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("\"%s\" is not a table or view", RelationGetRelationName(rel)),
					 errhint("%s describes the columns of tables, views and foreign tables.",
							 "gpuagg_describe")));
	}
}

/* Returns the columns of a relation, and sets *n to their number. */
static ColumnInfo *
read_columns(Relation rel, int *n)
{
	TupleDesc desc = RelationGetDescr(rel);
	ColumnInfo *columns = palloc((desc->natts + 1) * sizeof(ColumnInfo));
	bool all = pg_class_aclcheck(RelationGetRelid(rel), GetUserId(), ACL_SELECT) == ACLCHECK_OK;

	*n = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		ColumnInfo *column = &columns[*n];

		CHECK_FOR_INTERRUPTS();
		if (attribute->attisdropped)
			continue;
		column->attribute = *attribute;
		column->type = format_type_with_typemod(attribute->atttypid, attribute->atttypmod);
		column->measure = measure_of(attribute->atttypid);
		column->readable = all ||
			pg_attribute_aclcheck(RelationGetRelid(rel), i + 1, GetUserId(), ACL_SELECT) ==
				ACLCHECK_OK;
		column->place = 0;
		(*n)++;
	}
	return columns;
}

/* ---- the result ------------------------------------------------------------------------- */

/* Replaces a member by its text, as the output function of its type writes it. */
static void
make_text(TupleDesc desc, Datum *members, const bool *nulls, Member member)
{
	Oid output;
	bool varlena;

	if (nulls[member])
		return;
	getTypeOutputInfo(TupleDescAttr(desc, member)->atttypid, &output, &varlena);
	members[member] = CStringGetTextDatum(OidOutputFunctionCall(output, members[member]));
}

/*
 * Sets the members of a column's record, which is in this place of the query's result. Extremes are
 * text.
 */
static void
read_record(int place, Datum *members, bool *nulls)
{
	HeapTupleHeader header;
	HeapTupleData tuple = {0};
	TupleDesc desc;
	bool isnull;

	header = DatumGetHeapTupleHeader(
		SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, place, &isnull));
	desc =
		lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
	if (desc->natts != MEMBERS)
		elog(ERROR, "record of a column does not have its members");
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	tuple.t_data = header;
	heap_deform_tuple(&tuple, desc, members, nulls);
	make_text(desc, members, nulls, MEMBER_MIN);
	make_text(desc, members, nulls, MEMBER_MAX);
	ReleaseTupleDesc(desc);
}

/* Sets one value of a row of the result to a member of the record. */
static void
copy_member(Datum *row, bool *isnull, DescribeColumn to, const Datum *members, const bool *nulls,
			Member from)
{
	row[to] = members[from];
	isnull[to] = nulls[from];
}

/* Returns the text of a number of days since 1970, infinite ones included. */
static char *
date_text(double days)
{
	double date = floor(days) - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE);
	DateADT result;

	if (isinf(days))
	{
		if (days < 0)
			DATE_NOBEGIN(result);
		else
			DATE_NOEND(result);
	}
	else
		result = (DateADT) Min(Max(date, DATETIME_MIN_JULIAN - POSTGRES_EPOCH_JDATE),
							   DATE_END_JULIAN - 1 - POSTGRES_EPOCH_JDATE);
	return DatumGetCString(DirectFunctionCall1(date_out, DateADTGetDatum(result)));
}

/* Returns the text of a number of seconds since 1970, infinite ones included. */
static char *
timestamp_text(double seconds, bool with_zone)
{
	double shift = (double) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
	double time = rint((seconds - shift) * USECS_PER_SEC);
	Timestamp result;

	if (isinf(seconds))
	{
		if (seconds < 0)
			TIMESTAMP_NOBEGIN(result);
		else
			TIMESTAMP_NOEND(result);
	}
	else if (time >= (double) END_TIMESTAMP)
		result = END_TIMESTAMP - 1; /* float8 rounds the last timestamps up */
	else
		result = (Timestamp) Max(time, (double) MIN_TIMESTAMP);
	return DatumGetCString(DirectFunctionCall1(with_zone ? timestamptz_out : timestamp_out,
											   TimestampGetDatum(result)));
}

/* Returns the text of an interval of so many seconds, or NULL if it is too long, or NaN. */
static char *
interval_text(double seconds)
{
	Interval interval = {0};

	if (!(seconds < 1e12))
		return NULL;
	interval.time = (TimeOffset) rint(seconds * USECS_PER_SEC);
	return DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(&interval)));
}

/* Returns the text of a statistic of the column, or NULL if it stands for no value. */
static char *
statistic_text(Measure measure, double value, DescribeColumn column)
{
	if (measure == MEASURE_NUMBER)
		return DatumGetCString(DirectFunctionCall1(float8out, Float8GetDatum(value)));
	if (isnan(value))
		return NULL;
	if (column == DESCRIBE_DEVIATION)
		return interval_text(value);
	/* the mean of dates is a timestamp, unless it is after the last one */
	if (measure == MEASURE_DATE &&
		(column != DESCRIBE_MEAN || (isfinite(value) && value > LAST_SECOND)))
		return date_text(value / SECS_PER_DAY);
	return timestamp_text(value, measure == MEASURE_TIMESTAMPTZ);
}

/* Sets the statistics in a row of the result from a column's summary, a gpuagg_summary. */
static void
put_summary(Datum *row, bool *isnull, Measure measure, HeapTupleHeader summary)
{
	static const struct
	{
		DescribeColumn to;
		const char *from;
	} statistics[] = {{DESCRIBE_MEAN, "mean"},
					  {DESCRIBE_DEVIATION, "deviation"},
					  {DESCRIBE_Q1, "q1"},
					  {DESCRIBE_MEDIAN, "median"},
					  {DESCRIBE_Q3, "q3"}};

	for (int i = 0; i < lengthof(statistics); i++)
	{
		DescribeColumn to = statistics[i].to;
		double value = DatumGetFloat8(GetAttributeByName(summary, statistics[i].from, &isnull[to]));
		char *text = isnull[to] ? NULL : statistic_text(measure, value, to);

		isnull[to] = text == NULL;
		if (text)
			row[to] = CStringGetTextDatum(text);
	}
	row[DESCRIBE_HISTOGRAM] = GetAttributeByName(summary, "histogram", &isnull[DESCRIBE_HISTOGRAM]);
}

/* Adds the row of a column to the result. rows: number of rows of the table. */
static void
put_column(ReturnSetInfo *rsinfo, const ColumnInfo *column, int64 rows)
{
	Datum row[DESCRIBE_COLUMNS] = {0};
	bool isnull[DESCRIBE_COLUMNS];
	Datum members[MEMBERS];
	bool nulls[MEMBERS];

	memset(isnull, true, sizeof(isnull));
	row[DESCRIBE_NAME] = CStringGetTextDatum(NameStr(column->attribute.attname));
	row[DESCRIBE_TYPE] = CStringGetTextDatum(column->type);
	isnull[DESCRIBE_NAME] = isnull[DESCRIBE_TYPE] = false;
	if (column->place > 0)
	{
		read_record(column->place, members, nulls);
		row[DESCRIBE_NULLS] = Int64GetDatum(rows - DatumGetInt64(members[MEMBER_COUNT]));
		isnull[DESCRIBE_NULLS] = false;
		copy_member(row, isnull, DESCRIBE_COUNT, members, nulls, MEMBER_COUNT);
		copy_member(row, isnull, DESCRIBE_DISTINCT_VALUES, members, nulls, MEMBER_DISTINCT);
		/* the estimate may be greater than the number of values */
		if (!nulls[MEMBER_DISTINCT])
			row[DESCRIBE_DISTINCT_VALUES] = Int64GetDatum(
				Min(DatumGetInt64(members[MEMBER_DISTINCT]), DatumGetInt64(members[MEMBER_COUNT])));
		copy_member(row, isnull, DESCRIBE_MIN, members, nulls, MEMBER_MIN);
		copy_member(row, isnull, DESCRIBE_MAX, members, nulls, MEMBER_MAX);
		if (!nulls[MEMBER_SUMMARY])
			put_summary(row, isnull, column->measure,
						DatumGetHeapTupleHeader(members[MEMBER_SUMMARY]));
		/* a value that is not known to occur twice is not frequent */
		if (!nulls[MEMBER_FREQUENCY] && DatumGetInt64(members[MEMBER_FREQUENCY]) > 1)
		{
			copy_member(row, isnull, DESCRIBE_MOST_FREQUENT, members, nulls, MEMBER_VALUE);
			copy_member(row, isnull, DESCRIBE_FREQUENCY, members, nulls, MEMBER_FREQUENCY);
		}
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row, isnull);
}

/* Runs a query over n columns of the relation with this name, and adds their rows. */
static void
describe_columns(ReturnSetInfo *rsinfo, const char *relation, ColumnInfo *columns, int n)
{
	DescribeQuery query = {0};
	SPIPlanPtr plan;
	int places = 1; /* columns of the query's result; the first is the number of rows */
	int64 rows;
	bool isnull;

	initStringInfo(&query.text);
	appendStringInfoString(&query.text, "SELECT pg_catalog.count(*)");
	for (int i = 0; i < n; i++)
	{
		if (!columns[i].readable)
			continue;
		append_record(&query, &columns[i].attribute);
		columns[i].place = ++places;
	}
	appendStringInfo(&query.text, " FROM %s AS d", relation);
	plan = SPI_prepare_params(query.text.data, set_up_parser, &query, CURSOR_OPT_PARALLEL_OK);
	if (plan == NULL || SPI_execute_plan(plan, NULL, NULL, true, 0) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "query over the columns of a table failed");
	rows = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		put_column(rsinfo, &columns[i], rows);
	}
	SPI_freetuptable(SPI_tuptable);
	SPI_freeplan(plan);
	list_free_deep(query.calls);
	pfree(query.text.data);
}

/*
 * (regclass): a row about each column of the relation.  The queries have the caller's snapshot, so
 * all describe the same rows.
 */
Datum
gpuagg_describe(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	const char *relation;
	ColumnInfo *columns;
	int n;
	int done = 0;

	check_relation(rel);
	InitMaterializedSRF(fcinfo, 0);
	columns = read_columns(rel, &n);
	relation = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
										  RelationGetRelationName(rel));
	relation_close(rel, NoLock);
	SPI_connect();
	do
	{
		int some = Min(n - done, QUERY_COLUMNS);

		describe_columns(rsinfo, relation, columns + done, some);
		done += some;
	} while (done < n);
	SPI_finish();
	return (Datum) 0;
}

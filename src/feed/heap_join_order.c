/*
 * heap_join_order.c
 *	  Chooses the order in which the lookups of a feed are probed, by what rows have found so far.
 *
 * The planner has ordered the joins by estimates.  Each probe with the conditions of its join
 * passes a share of the rows that reach it, and has a cost for each of them.  The shares are
 * counted, and if another order is clearly cheaper, the rest of the table is read in that order.
 * Probes that drop the most rows for their cost come first (T. Ibaraki, T. Kameda, "On the Optimal
 * Nesting Order for Computing N-Relational Joins", TODS 1984).
 *
 * A join keeps its place, and no other one passes it, if it may raise an error or calls functions
 * of users.  A join that reads columns of other lookups comes after them.  Only numbers of rows
 * decide, so the order is the same in each run.  The plan's order remains if steps may end between
 * the matches of a row, or a join settles (heap_join_many.c).
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

#include "analysis/analysis.h"
#include "feed/heap.h"
#include "feed/heap_joins_internal.h"

/* The first decision is made after so many rows, the next one after MORE_ROWS times as many. */
#define FIRST_ROWS 4096
#define MORE_ROWS 8
/* The order changes at most this often: each change compiles the table's expressions again. */
#define MOST_CHANGES 3
/* Another order is taken if its cost is below this share of the present one's. */
#define CLEARLY_CHEAPER 0.8

/* Costs of looking up one row, and of a condition, in units of a load from a small array. */
#define SMALL_COST 1.0
#define LARGE_COST 3.0
#define VALUES_COST 8.0
#define CONDITION_COST 1.0
/* An array or hash table of more bytes is large: a processor's cache may not hold it. */
#define SMALL_BYTES (256 * 1024)

/* Returns whether nobody can notice for which rows a join looks up its key and tests conditions. */
static bool
join_is_quiet(const HeapJoin *join)
{
	const HashJoin *plan = (const HashJoin *) join->node->js.ps.plan;
	ParamListInfo params = join->node->js.ps.state->es_param_list_info;

	return expr_evaluates_unnoticed((Node *) plan->hashclauses, params) &&
		expr_evaluates_unnoticed((Node *) join->keys, params) &&
		expr_evaluates_unnoticed((Node *) join->quals, params);
}

/* What find_reads() needs. */
typedef struct ReadsContext
{
	const HeapJoins *joins;
	Bitmapset *reads;
} ReadsContext;

/* Walker: collects the joins whose columns an expression reads. */
static bool
find_reads(Node *node, void *arg)
{
	ReadsContext *context = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Var) && ((Var *) node)->varno == context->joins->varno)
		context->reads = bms_add_member(context->reads,
										context->joins->columns[((Var *) node)->varattno - 1].join);
	return expression_tree_walker(node, find_reads, arg);
}

void
heap_joins_init_order(HeapJoins *joins)
{
	joins->order = palloc(sizeof(int) * joins->n);
	joins->window = FIRST_ROWS;
	for (int j = 0; j < joins->n; j++)
	{
		HeapJoin *join = &joins->joins[j];
		ReadsContext context = {joins, NULL};

		joins->order[j] = j;
		find_reads((Node *) join->keys, &context);
		find_reads((Node *) join->quals, &context);
		join->reads = bms_del_member(context.reads, j);
		join->quiet = join_is_quiet(join);
	}
	heap_joins_init_notices(joins);
}

/* Returns the cost of a join for a row that reaches it. */
static double
row_cost(const HeapJoin *join)
{
	const Lookup *lookup = &join->lookup;
	double cost = SMALL_COST;

	if (!lookup_has_integer_key(lookup))
		cost = VALUES_COST;
	else if (lookup->form != LOOKUP_BITS && lookup->bits == NULL && !lookup->filter.used &&
			 lookup->bytes > SMALL_BYTES)
		cost = LARGE_COST;
	return cost + list_length(join->quals) * CONDITION_COST;
}

/* Returns the share of the rows that a join passes; 1 if no row has reached it. */
static double
passed_share(const HeapJoin *join)
{
	return join->reached == 0 ? 1 : (double) join->passed / join->reached;
}

/* Returns the cost of an order for one row of the scan. */
static double
order_cost(const HeapJoins *joins, const int *order)
{
	double rows = 1;
	double cost = 0;

	for (int i = 0; i < joins->n; i++)
	{
		const HeapJoin *join = &joins->joins[order[i]];

		cost += rows * row_cost(join);
		rows *= passed_share(join);
	}
	return cost;
}

/*
 * Returns the position, from `from` up to the next join that is not quiet, of the join that drops
 * the most rows for its cost, of those that read no lookup after `from`.
 */
static int
best_position(const HeapJoins *joins, const int *order, int from, const Bitmapset *before)
{
	int best = from;
	double best_rank = -1;

	for (int i = from; i < joins->n && joins->joins[order[i]].quiet; i++)
	{
		const HeapJoin *join = &joins->joins[order[i]];
		double rank = (1 - passed_share(join)) / row_cost(join);

		if (rank > best_rank && bms_is_subset(join->reads, before))
		{
			best = i;
			best_rank = rank;
		}
	}
	return best;
}

/* Sets an order to the cheapest one, as far as is known, that may take its place. */
static void
improve_order(const HeapJoins *joins, int *order)
{
	Bitmapset *before = NULL;

	for (int i = 0; i < joins->n; i++)
	{
		int best = best_position(joins, order, i, before);
		int join = order[best];

		memmove(&order[i + 1], &order[i], sizeof(int) * (best - i));
		order[i] = join;
		before = bms_add_member(before, join);
	}
	bms_free(before);
}

/*
 * Returns whether the plan's order is needed: heap_join_many.c expects it, or it decides which
 * joins an outer row comes to.
 */
static bool
is_order_fixed(const HeapJoins *joins)
{
	if (heap_joins_await_outer_rows(joins))
		return true;
	for (int j = 0; j < joins->n; j++)
		if (joins->joins[j].lookup.next != NULL || joins->joins[j].settles)
			return true;
	return false;
}

bool
heap_joins_restore_order(HeapJoins *joins)
{
	bool changed = false;

	if (!is_order_fixed(joins))
		return false;
	for (int j = 0; j < joins->n; j++)
	{
		changed |= joins->order[j] != j;
		joins->order[j] = j;
	}
	return changed;
}

bool
heap_joins_change_order(HeapFeed *feed)
{
	HeapJoins *joins = feed->joins;
	const int *present;
	int *order;
	bool better;

	if (feed->table == NULL || feed->table->joins == NULL || joins->n == 1 ||
		joins->nchanges == MOST_CHANGES || is_order_fixed(joins))
		return false;
	present = heap_joins_table_order(feed->table);
	if (joins->joins[present[0]].reached < joins->window)
		return false;
	order = palloc(sizeof(int) * joins->n);
	memcpy(order, present, sizeof(int) * joins->n);
	improve_order(joins, order);
	better = order_cost(joins, order) < CLEARLY_CHEAPER * order_cost(joins, present);
	if (better)
	{
		memcpy(joins->order, order, sizeof(int) * joins->n);
		joins->nchanges++;
	}
	pfree(order);
	joins->window *= MORE_ROWS;
	for (int j = 0; j < joins->n; j++)
		joins->joins[j].reached = joins->joins[j].passed = 0;
	return better;
}

void
heap_joins_keep_order(HeapFeed *feed)
{
	memcpy(feed->joins->order, heap_joins_table_order(feed->table), sizeof(int) * feed->joins->n);
}

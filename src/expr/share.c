/*
 * share.c
 *	  Common subexpressions: finds the vector of an equal expression.
 *
 * Before a root is compiled, its nodes are hashed bottom-up, each once, together with the other
 * facts that the compiler needs of every node (NodeFacts).  So the time for compiling is
 * proportional to the expression's size.  Vectors are in a hash table by the hash of what they
 * compute.  Vectors of a root that cannot be compiled are removed, newest first.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"

#include "expr/expr_internal.h"

#define SH_PREFIX facts
#define SH_ELEMENT_TYPE NodeFacts
#define SH_KEY_TYPE Node *
#define SH_KEY node
#define SH_HASH_KEY(table, key) hash_bytes((const unsigned char *) &(key), sizeof(Node *))
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Context of facts_walker(): the node whose children are visited. */
typedef struct FactsContext
{
	ExprSet *set;
	NodeFacts sum; /* combined facts of the children so far */
} FactsContext;

/* Returns a hash of a constant's value; 0 for NULL. */
static uint32
hash_const(const Const *con)
{
	if (con->constisnull)
		return 0;
	if (con->constbyval)
		return hash_bytes((const unsigned char *) &con->constvalue, sizeof(Datum));
	return hash_bytes((const unsigned char *) DatumGetPointer(con->constvalue),
					  (int) datumGetSize(con->constvalue, false, con->constlen));
}

/* Returns a hash of some fields that equal() compares, without the children. */
static uint32
hash_node(Node *node)
{
	uint32 field = 0;

	switch (nodeTag(node))
	{
		case T_Var:
			field = ((Var *) node)->varattno;
			break;
		case T_Const:
			field = hash_combine(((Const *) node)->consttype, hash_const((Const *) node));
			break;
		case T_Param:
			field = hash_combine(((Param *) node)->paramkind, ((Param *) node)->paramid);
			break;
		case T_FuncExpr:
			field = ((FuncExpr *) node)->funcid;
			break;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			field = ((OpExpr *) node)->opno;
			break;
		case T_ScalarArrayOpExpr:
			field = hash_combine(((ScalarArrayOpExpr *) node)->opno,
								 ((ScalarArrayOpExpr *) node)->useOr);
			break;
		case T_BoolExpr:
			field = ((BoolExpr *) node)->boolop;
			break;
		case T_NullTest:
			field = ((NullTest *) node)->nulltesttype;
			break;
		case T_BooleanTest:
			field = ((BooleanTest *) node)->booltesttype;
			break;
		case T_RelabelType:
			field = ((RelabelType *) node)->resulttype;
			break;
		default:
			break;
	}
	return hash_combine(murmurhash32(nodeTag(node)), murmurhash32(field));
}

/*
 * Returns whether the node may give different results for different rows even if its children do
 * not.
 */
static bool
is_varying(Node *node)
{
	switch (nodeTag(node))
	{
		case T_Const:
		case T_Param:
		case T_FuncExpr:
		case T_OpExpr:
		case T_RelabelType:
		case T_CoerceViaIO:
		case T_SQLValueFunction:
			return false;
		default:
			return true;
	}
}

/*
 * Adds a Var, or a node that narrows (see NodeFacts), to facts->vars unless an equal one is there.
 * If there is no room, only counts it in nvars, at most once.
 */
static void
add_var(NodeFacts *facts, Expr *var)
{
	for (int i = 0; i < Min(facts->nvars, EXPR_MEMO_COLUMNS); i++)
		if (IsA(var, Var) && IsA(facts->vars[i], Var) ?
				((Var *) facts->vars[i])->varattno == ((Var *) var)->varattno :
				equal(facts->vars[i], var))
			return;
	if (facts->nvars < EXPR_MEMO_COLUMNS)
		facts->vars[facts->nvars] = var;
	if (facts->nvars <= EXPR_MEMO_COLUMNS)
		facts->nvars++;
}

/* Combines `pure`, `has_slow` and the columns of a child with those of its parent. */
static void
add_child_facts(NodeFacts *sum, const NodeFacts *facts)
{
	sum->pure &= facts->pure;
	sum->has_slow |= facts->has_slow;
	for (int i = 0; i < Min(facts->nvars, EXPR_MEMO_COLUMNS); i++)
		add_var(sum, facts->vars[i]);
	if (facts->nvars > EXPR_MEMO_COLUMNS)
		sum->nvars = facts->nvars;
}

/*
 * Walker: enters the facts of a node and of all nodes below it into set->facts, and combines them
 * with the facts of the parent (context: FactsContext).  Returns true, to stop, if the stack is too
 * deep.
 */
static bool
facts_walker(Node *node, void *context)
{
	FactsContext *up = context;
	FactsContext mine = {.set = up->set};
	NodeFacts *entry;
	bool found;

	if (node == NULL)
		return false;
	if (IsA(node, List))
		return expression_tree_walker(node, facts_walker, up);
	CHECK_FOR_INTERRUPTS();
	mine.sum.hash = hash_node(node);
	mine.sum.varying = is_varying(node);
	mine.sum.case_value = IsA(node, CaseTestExpr);
	up->set->describe(node, &mine.sum);
	mine.sum.has_slow = mine.sum.slow;
	if (IsA(node, Var))
		add_var(&mine.sum, (Expr *) node);
	if (stack_is_too_deep() || expression_tree_walker(node, facts_walker, &mine))
		return true;
	/* an expression that is the same for all rows is computed once, so it is not slow */
	mine.sum.has_slow &= mine.sum.varying;
	if (mine.sum.narrows && mine.sum.pure && !mine.sum.has_slow && !mine.sum.case_value &&
		mine.sum.nvars > 0)
	{
		mine.sum.nvars = 0;
		add_var(&mine.sum, (Expr *) node);
	}
	entry = facts_insert(up->set->facts, node, &found);
	mine.sum.node = node;
	mine.sum.status = entry->status;
	*entry = mine.sum;
	add_child_facts(&up->sum, &mine.sum);
	up->sum.hash = hash_combine(up->sum.hash, mine.sum.hash);
	up->sum.varying |= mine.sum.varying;
	up->sum.case_value |= mine.sum.case_value;
	return false;
}

NodeFacts
expr_facts(ExprSet *set, Expr *expr)
{
	NodeFacts *entry = facts_lookup(set->facts, (Node *) expr);
	FactsContext context = {.set = set};

	/* a node that the compiler made is not in the table yet */
	if (entry == NULL && !facts_walker((Node *) expr, &context))
		entry = facts_lookup(set->facts, (Node *) expr);
	if (entry == NULL)
	{
		set->failed = true;
		return context.sum;
	}
	return *entry;
}

void
expr_share_begin(ExprSet *set, Expr *root)
{
	set->failed = false;
	set->facts = facts_create(CurrentMemoryContext, 32, NULL);
	expr_facts(set, root);
}

void
expr_share_end(ExprSet *set, Vec *vecs)
{
	facts_destroy(set->facts);
	set->facts = NULL;
	if (set->failed)
		expr_share_undo(set, vecs);
}

void
expr_share_undo(ExprSet *set, Vec *vecs)
{
	while (set->vecs != vecs)
	{
		Vec *vec = set->vecs;

		if (vec->expr || vec->attno)
			set->shared[vec->hash % EXPR_BUCKETS] = vec->same_bucket;
		if (vec->attno == 0)
			set->bytes -= EXPR_ROWS * (column_width(vec->type) + 1);
		if (vec->codes_of)
			vec->codes_of->codes = NULL;
		set->vecs = vec->next;
		set->stages[vec->stage].vecs = vec->next_of_stage;
	}
}

void
expr_share(ExprSet *set, Vec *vec)
{
	Vec **bucket;

	vec->hash = vec->attno ? murmurhash32(vec->attno) : expr_facts(set, vec->expr).hash;
	bucket = &set->shared[vec->hash % EXPR_BUCKETS];
	vec->same_bucket = *bucket;
	*bucket = vec;
}

/* Returns whether the vector has a result for every row of the current mask. */
static bool
may_share(const ExprSet *set, const Vec *vec)
{
	const ExprMask *mask = set->mask;

	if (!vec->masked)
		return true;
	while (mask && mask != vec->mask)
		mask = mask->outer;
	return mask != NULL;
}

Vec *
expr_find_vec(ExprSet *set, Expr *expr)
{
	uint32 hash = expr_facts(set, expr).hash;

	for (Vec *vec = set->shared[hash % EXPR_BUCKETS]; vec; vec = vec->same_bucket)
		if (vec->hash == hash && vec->expr && may_share(set, vec) && equal(vec->expr, expr))
			return vec;
	return NULL;
}

Vec *
expr_find_column(ExprSet *set, AttrNumber attno, ColumnType type, int16 scale)
{
	for (Vec *vec = set->shared[murmurhash32(attno) % EXPR_BUCKETS]; vec; vec = vec->same_bucket)
		if (vec->attno == attno && vec->type == type && vec->scale == scale)
			return vec;
	return NULL;
}

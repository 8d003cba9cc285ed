/*
 * grouping_sets.c
 *	  GROUPING SETS, ROLLUP and CUBE: a composite engine.
 *
 * Each set has an engine that groups by the keys of the set.  A set that is not a subset of another
 * one gets all rows.  A subset is made from the groups of its parent: when the input has ended, the
 * parent's groups are returned, and on the way they are combined into the groups of the subset, in
 * an engine of the default kind.  The subset's groups are returned next, and so on.  The parent is
 * the set with the fewest groups, as the planner estimates them, among those with all of its keys.
 *
 * Every set gets all rows if combined groups could differ from groups of rows, or cannot be made:
 *
 *		- DISTINCT, ordered and ordered-set aggregates
 *		- fallback aggregates, except exact sums and the n best values
 *		- where one process adds floats in the order of rows: sums of floats, whose last digits
 *		  depend on that order, and extremes of floats, since the later one of 0 and -0 is shown
 *
 * If only one engine gets rows, it may share a query with the engines of other participants, and
 * take rows that are cached on its device.
 *
 * Memory: each engine gets a part of EngineEnv.mem_limit, but at least what the smallest work_mem
 * allows, and spills beyond.  Engines that keep values (DISTINCT, ordered sets, orders) may use
 * work_mem for each kind of these, as core's sorts do for each set.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "composite/grouping_internal.h"
#include "engine_cpu/engine_cpu.h"
#include "engines/engines.h"

/* ---- parents -------------------------------------------------------------------------- */

/* Returns whether combined states equal the state of all rows at once, to the last digit. */
static bool
monoid_is_exact(MonoidId monoid)
{
	switch (monoid)
	{
		case MONOID_SUM_F32:
		case MONOID_SUM_F64:
		case MONOID_ACCUM_F64:
		case MONOID_REGR_F64:
		case MONOID_MOMENTS_F64:
		case MONOID_PRODUCT_F64:
		case MONOID_MIN_F32:
		case MONOID_MAX_F32:
		case MONOID_MIN_F64:
		case MONOID_MAX_F64:
			return false;
		default:
			return true;
	}
}

/*
 * Returns whether combined states of a fallback aggregate equal the state of all rows at once: it
 * is an exact sum of core or of this extension, or finds the n best values.
 */
static bool
fallback_is_exact(const FallbackAgg *fallback)
{
	if (!fallback->builtin || !OidIsValid(fallback->combinefn.fn_oid))
		return false;
	switch (fallback->transfn.fn_oid)
	{
		case F_NUMERIC_ACCUM:
		case F_NUMERIC_AVG_ACCUM:
		case F_INT8_ACCUM:
		case F_INT8_AVG_ACCUM:
			return true;
		default:
			return fallback->unrepresentable_only || fallback->top_n > 0;
	}
}

/* Returns whether groups of a set can be made from groups of another set. */
static bool
can_combine_groups(const EngineOps *ops, const AggSpec *spec, bool parallel)
{
	bool in_order = ops->adds_in_order && !parallel;

	if (spec->ordered || spec->norder > 0 || spec->ordered_floats || spec_has_sets(spec))
		return false;
	for (int s = 0; in_order && s < spec->nslots; s++)
		if (!monoid_is_exact(spec->slots[s].monoid))
			return false;
	for (int f = 0; f < spec->nfallbacks; f++)
		if (!fallback_is_exact(&spec->fallbacks[f]))
			return false;
	return true;
}

/*
 * Returns whether groups can be returned only once, since a final function may change their states.
 * A set that occurs twice then needs two engines.  Ordered sets have no final functions.
 */
static bool
returns_groups_once(const AggSpec *spec)
{
	for (int f = 0; f < spec->nfallbacks; f++)
		if (spec_set_of_fallback(spec, f) < 0 && !fallback_is_exact(&spec->fallbacks[f]))
			return true;
	return false;
}

/* Compares the numbers of two sets for qsort_arg(): sets with more keys come first. */
static int
compare_by_size(const void *a, const void *b, void *arg)
{
	const KeySet *sets = arg;
	int m = *(const int *) a;
	int n = *(const int *) b;
	int more = bms_num_members(sets[n].keys) - bms_num_members(sets[m].keys);

	return more != 0 ? more : m - n;
}

/* Returns the index of the best parent of a set among the first n engines; -1 if there is none. */
static int
find_parent(const AggSpec *spec, const SetEngine *engines, int n, const KeySet *set)
{
	int best = -1;

	for (int e = 0; e < n; e++)
	{
		const KeySet *other = &spec->sets[engines[e].number];

		/* if estimates are equal, prefer the later one, which has fewer keys */
		if (bms_is_subset(set->keys, other->keys) &&
			(best < 0 || other->groups <= spec->sets[engines[best].number].groups))
			best = e;
	}
	return best;
}

/*
 * Sets number, times and parent of an engine for each different set. engines[] is zeroed, and has
 * room for all sets.  Returns the number of engines.
 */
static int
plan_engines(const EngineOps *ops, const AggSpec *spec, bool parallel, SetEngine *engines)
{
	bool combine = can_combine_groups(ops, spec, parallel);
	bool once = returns_groups_once(spec);
	int *order = palloc(sizeof(int) * spec->nsets);
	int n = 0;

	for (int s = 0; s < spec->nsets; s++)
		order[s] = s;
	qsort_arg(order, spec->nsets, sizeof(int), compare_by_size, (void *) spec->sets);
	for (int s = 0; s < spec->nsets; s++)
	{
		const KeySet *set = &spec->sets[order[s]];
		int equal = 0;

		while (equal < n && (once || !bms_equal(spec->sets[engines[equal].number].keys, set->keys)))
			equal++;
		engines[equal].times++;
		if (equal < n)
			continue;
		engines[n].number = order[s];
		engines[n].parent = combine ? find_parent(spec, engines, n, set) : -1;
		n++;
	}
	pfree(order);
	return n;
}

int
grouping_sets_count_row_engines(const EngineOps *ops, const AggSpec *spec, bool parallel)
{
	SetEngine *engines;
	int result = 0;
	int n;

	if (spec->nsets == 0)
		return 1;
	engines = palloc0(sizeof(SetEngine) * spec->nsets);
	n = plan_engines(ops, spec, parallel, engines);
	for (int e = 0; e < n; e++)
		result += engines[e].parent < 0;
	pfree(engines);
	return result;
}

/* ---- opening ------------------------------------------------------------------------ */

/* Makes the spec of a set: the query's, with the keys of the set only.  Sets key_of[]. */
static void
make_set_spec(GroupingEngine *grouping, SetEngine *set)
{
	const AggSpec *spec = grouping->composite.spec;

	set->spec = *spec;
	set->spec.nsets = 0;
	set->spec.nkeys = 0;
	set->spec.keys = palloc0(sizeof(KeySpec) * (spec->nkeys + 1));
	set->key_of = palloc(sizeof(int) * (spec->nkeys + 1));
	for (int k = 0; k < spec->nkeys; k++)
	{
		set->key_of[k] = bms_is_member(k, spec->sets[set->number].keys) ? set->spec.nkeys : -1;
		if (set->key_of[k] >= 0)
			set->spec.keys[set->spec.nkeys++] = spec->keys[k];
	}
}

/* ---- rows in ------------------------------------------------------------------------- */

/*
 * EngineOps.bind_buffers.  The buffers of one engine serve all: they depend on the slots, which all
 * engines share.
 */
static void
grouping_bind_buffers(Engine *base, Batch *batch)
{
	Engine *engine = ((GroupingEngine *) base)->row_engine->engine;

	engine->ops->bind_buffers(engine, batch);
}

/* EngineOps.take_resident, forwarded to the only engine that gets rows. */
static EngineStatus
grouping_take_resident(Engine *base, struct Feed *feed)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	Engine *engine = grouping->row_engine->engine;

	return composite_status(&grouping->composite, engine, engine->ops->take_resident(engine, feed));
}

/* EngineOps.add_batch: adds the rows to all engines that get rows. */
static EngineStatus
grouping_add_batch(Engine *base, const Batch *batch)
{
	CompositeEngine *composite = (CompositeEngine *) base;

	composite->rows += batch->nrows;
	composite->batches++;
	for (int e = 0; e < composite->nengines; e++)
	{
		Engine *engine = composite->engines[e];

		if (composite_status(composite, engine, engine->ops->add_batch(engine, batch)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/*
 * Finishes all sets of a part.  An engine without keys would return a group even without rows, but
 * only one part has that group.
 */
static EngineStatus
finish_part(GroupingEngine *grouping)
{
	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];
		Engine *engine = set->engine;

		if (!set->absent &&
			composite_status(&grouping->composite, engine, engine->ops->finish(engine)) !=
				ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/* EngineOps.finish: finishes all engines that get rows. */
static EngineStatus
grouping_finish(Engine *base)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	CompositeEngine *composite = &grouping->composite;

	grouping->finished = true;
	if (grouping->in_parts)
		return finish_part(grouping);
	for (int e = 0; e < composite->nengines; e++)
	{
		Engine *engine = composite->engines[e];

		if (composite_status(composite, engine, engine->ops->finish(engine)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/* ---- groups out ---------------------------------------------------------------------- */

/* Makes room for n groups in the arrays for keys that are not in a set, and sets them to NULL. */
static void
enlarge_absent(GroupingEngine *grouping, int n)
{
	if (n <= grouping->absent_capacity)
		return;
	if (grouping->absent_capacity > 0)
	{
		pfree(grouping->absent);
		pfree(grouping->absent_nulls);
	}
	grouping->absent_capacity = n;
	grouping->absent = MemoryContextAllocExtended(grouping->composite.env.cxt, sizeof(Datum) * n,
												  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	grouping->absent_nulls =
		MemoryContextAllocExtended(grouping->composite.env.cxt, sizeof(bool) * n, MCXT_ALLOC_HUGE);
	memset(grouping->absent_nulls, true, n);
}

/*
 * Sets grouping->groups to groups of the current set with all keys of the query; keys that the set
 * does not have are NULL.
 */
static void
widen_keys(GroupingEngine *grouping, const GroupBatch *groups)
{
	const SetEngine *set = &grouping->sets[grouping->current];
	Datum **keys = grouping->groups.keys;
	bool **keynulls = grouping->groups.keynulls;

	enlarge_absent(grouping, groups->ngroups);
	grouping->groups = *groups;
	grouping->groups.keys = keys;
	grouping->groups.keynulls = keynulls;
	grouping->groups.set = set->number;
	for (int k = 0; k < grouping->composite.spec->nkeys; k++)
	{
		int key = set->key_of[k];

		keys[k] = key < 0 ? grouping->absent : groups->keys[key];
		keynulls[k] = key < 0 ? grouping->absent_nulls : groups->keynulls[key];
	}
	grouping->repeats = set->times - 1;
}

/*
 * Prepares to return the groups of the current set: opens the engines of its children, and finishes
 * its own.
 */
static EngineStatus
begin_set(GroupingEngine *grouping)
{
	SetEngine *set = &grouping->sets[grouping->current];

	grouping->begun = true;
	if (!grouping->in_parts)
		(void) grouping_open_children(grouping, false);
	/* engines that got rows are finished already */
	if (set->parent < 0 || grouping->in_parts)
		return ENGINE_OK;
	return composite_status(&grouping->composite, set->engine,
							set->engine->ops->finish(set->engine));
}

/* Ends the current set, all of whose groups were returned, and frees the memory of its engine. */
static void
end_set(GroupingEngine *grouping)
{
	SetEngine *set = &grouping->sets[grouping->current++];

	grouping->begun = false;
	if (grouping->in_parts)
		return;
	set->engine->ops->stats(set->engine, &set->stats);
	set->done = true;
	if (set->parent < 0)
		set->engine->ops->reset(set->engine);
	grouping_close_child(set);
}

/*
 * EngineOps.next_groups: returns the groups of one set after the other, and combines them into the
 * groups of its children.
 */
static bool
grouping_next_groups(Engine *base, GroupBatch *out)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	if (grouping->repeats > 0)
	{
		grouping->repeats--;
		*out = grouping->groups;
		return true;
	}
	while (grouping->finished && grouping->current < grouping->nsets)
	{
		SetEngine *set = &grouping->sets[grouping->current];
		GroupBatch groups;

		CHECK_FOR_INTERRUPTS();
		if (!grouping->begun && begin_set(grouping) != ENGINE_OK)
			return false;
		if (!set->absent && set->engine->ops->next_groups(set->engine, &groups))
		{
			composite_check(&grouping->composite, set->engine);
			if (!grouping->in_parts)
				grouping_combine(grouping, &groups);
			widen_keys(grouping, &groups);
			*out = grouping->groups;
			return true;
		}
		if (composite_check(&grouping->composite, set->engine) != ENGINE_OK)
			return false;
		end_set(grouping);
	}
	return false;
}

/* ---- a shared query ------------------------------------------------------------------- */

/* EngineOps.join, forwarded to the only engine that gets rows. */
static bool
grouping_join(Engine *base, uint64 share)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	Engine *engine = grouping->row_engine->engine;
	bool joined = engine->ops->join(engine, share);

	composite_check(&grouping->composite, engine);
	return joined;
}

/* EngineOps.flush, forwarded to the only engine that gets rows. */
static EngineStatus
grouping_flush(Engine *base, bool *complete)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	Engine *engine = grouping->row_engine->engine;

	return composite_status(&grouping->composite, engine, engine->ops->flush(engine, complete));
}

/* EngineOps.detach, forwarded to the only engine that gets rows. */
static void
grouping_detach(Engine *base, bool owner)
{
	Engine *engine = ((GroupingEngine *) base)->row_engine->engine;

	engine->ops->detach(engine, owner);
}

/* ---- reset, statistics, close -------------------------------------------------------- */

/* EngineOps.reset: removes all groups, and closes the engines of sets with a parent. */
static void
grouping_reset(Engine *base)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	composite_reset_engines(&grouping->composite);
	grouping->finished = grouping->begun = grouping->in_parts = false;
	grouping->current = grouping->repeats = 0;
	for (int s = 0; s < grouping->nsets; s++)
	{
		grouping_close_child(&grouping->sets[s]);
		grouping->sets[s].done = grouping->sets[s].absent = false;
	}
	grouping_offer_parts(grouping);
}

/*
 * EngineOps.stats: sums of all engines, but each row of the input counts once.  The strategy is
 * that of the first engine.
 */
static void
grouping_stats(Engine *base, EngineStats *stats)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	EngineStats first = {0};
	bool single = grouping->composite.nengines == 1;

	memset(stats, 0, sizeof(*stats));
	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];
		EngineStats own = {0};

		if (set->done)
			own = set->stats;
		else if (set->engine)
			set->engine->ops->stats(set->engine, &own);
		if (s == 0)
			first = own;
		engine_stats_add(stats, &own);
	}
	stats->rows = single ? first.rows : grouping->composite.rows;
	stats->batches = single ? first.batches : grouping->composite.batches;
	strlcpy(stats->strategy, first.strategy, sizeof(stats->strategy));
}

/* EngineOps.close: closes all engines. */
static void
grouping_close(Engine *base)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	for (int s = 0; s < grouping->nsets; s++)
		grouping_close_child(&grouping->sets[s]);
	composite_close(base);
}

int
grouping_sets_source(const Engine *engine, int set)
{
	const GroupingEngine *grouping = (const GroupingEngine *) engine;
	const KeySet *sets = grouping->composite.spec->sets;

	for (int s = 0; s < grouping->nsets; s++)
		if (grouping->sets[s].parent >= 0 &&
			bms_equal(sets[grouping->sets[s].number].keys, sets[set].keys))
			return grouping->sets[grouping->sets[s].parent].number;
	return -1;
}

/*
 * Sets the callbacks.  Some of them are forwarded to the engine that gets rows, if it has them and
 * is the only one.
 */
static void
set_callbacks(GroupingEngine *grouping)
{
	EngineOps *ops = &grouping->composite.ops;
	/* a composite engine has fewer callbacks than the ops that it was opened with */
	const EngineOps *row_ops = grouping->row_engine->engine->ops;
	bool single = grouping->composite.nengines == 1;

	ops->add_batch = grouping_add_batch;
	ops->finish = grouping_finish;
	ops->next_groups = grouping_next_groups;
	ops->reset = grouping_reset;
	ops->stats = grouping_stats;
	ops->close = grouping_close;
	if (row_ops->bind_buffers && (single || row_ops->adds_in_order))
		ops->bind_buffers = grouping_bind_buffers;
	if (row_ops->take_resident && single)
		ops->take_resident = grouping_take_resident;
	if (row_ops->join && single)
	{
		ops->join = grouping_join;
		ops->flush = grouping_flush;
		ops->detach = grouping_detach;
	}
}

Engine *
grouping_sets_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env, OpenEngine open)
{
	MemoryContext old = MemoryContextSwitchTo(env->cxt);
	GroupingEngine *grouping = palloc0(sizeof(GroupingEngine));
	CompositeEngine *composite = &grouping->composite;

	composite_init(composite, ops, spec, env, spec->nsets);
	composite->env.input.grouped = false;
	grouping->open = open;
	grouping->sets = palloc0(sizeof(SetEngine) * spec->nsets);
	grouping->nsets = plan_engines(ops, spec, env->input.parallel, grouping->sets);
	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];

		set->grouping = grouping;
		make_set_spec(grouping, set);
		if (set->parent < 0)
		{
			grouping_open_set(grouping, ops, set, true);
			composite_add_engine(composite, set->engine);
			grouping->row_engine = set;
		}
	}
	set_callbacks(grouping);
	grouping_set_parallel_callbacks(grouping);
	grouping->groups.keys = palloc0(sizeof(Datum *) * (spec->nkeys + 1));
	grouping->groups.keynulls = palloc0(sizeof(bool *) * (spec->nkeys + 1));
	grouping->combined.keys = palloc0(sizeof(Datum *) * (spec->nkeys + 1));
	grouping->combined.keynulls = palloc0(sizeof(bool *) * (spec->nkeys + 1));
	MemoryContextSwitchTo(old);
	return &composite->base;
}

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
 *		- fallback aggregates, except exact sums
 *		- where one process adds floats in the order of rows: sums of floats, whose last digits
 *		  depend on that order, and extremes of floats, since the later one of 0 and -0 is shown
 *
 * Participants of a parallel plan export the groups of engines that get rows.  The participant that
 * imports them makes the other sets.  If there are many groups, each participant makes the other
 * sets from its own groups, and exports the groups of all sets by a hash of the set's keys, one set
 * after another.  A participant that merges a part of these has groups of all sets, each complete.
 * Before that, participants exchange distinct values as for one set: the row sets of all engines.
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

#include "composite/grouping_sets.h"
#include "engine_cpu/engine_cpu.h"
#include "engines/engines.h"

/* Least memory of an engine in bytes: the smallest work_mem. */
#define MIN_MEMORY (64 * 1024)
/* Sets that may use work_mem each for values; more sets divide that much memory. */
#define FULL_SETS 4

/* The engine of one set, or of several equal sets. */
typedef struct SetEngine
{
	struct GroupingEngine *grouping;
	int number; /* in AggSpec.sets: the first of equal ones */
	int times;  /* how often its groups are returned */
	int parent; /* index in GroupingEngine.sets of the set whose groups it is made from; -1: rows */
	AggSpec spec;
	int *key_of; /* [key of the query] key of this set, or -1 */
	/* With a parent: open only from the parent's groups to the end of its own, or in parts. */
	Engine *engine;
	int first_section; /* where its groups begin in partitioned exports (EngineOps.sections) */
	EngineStats stats; /* valid if done */
	bool done;         /* its groups were returned */
	bool absent;       /* it has no group in this part */
} SetEngine;

typedef struct GroupingEngine
{
	CompositeEngine composite; /* must be first; its engines are those that get rows */
	OpenEngine open;
	int nsets;
	SetEngine *sets;       /* each after its parent */
	SetEngine *row_engine; /* one that gets rows */
	int nsections;
	bool in_parts; /* merges parts of the groups of all participants */

	/* Groups out. */
	bool finished;       /* the input has ended */
	int current;         /* set whose groups are returned */
	bool begun;          /* its engine is finished */
	int repeats;         /* how often `groups` are to be returned again */
	GroupBatch groups;   /* groups of the current set with all keys of the query */
	GroupBatch combined; /* the same groups with the keys of a subset */
	Datum *absent;       /* values and null flags of keys that are not in the set */
	bool *absent_nulls;
	int absent_capacity; /* groups */
} GroupingEngine;

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
 * is an exact sum of core or of this extension.
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
			return fallback->unrepresentable_only;
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

/*
 * Returns the memory limit of an engine with this estimate of groups.  Half of the memory is
 * divided in proportion to the groups, half evenly.
 */
static size_t
engine_memory(const GroupingEngine *grouping, double groups)
{
	double all = 0;

	for (int s = 0; s < grouping->nsets; s++)
		all += grouping->composite.spec->sets[grouping->sets[s].number].groups;
	return Max(grouping->composite.env.mem_limit / 2 * (groups / all + 1.0 / grouping->nsets),
			   MIN_MEMORY);
}

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

/*
 * An OrderedSetFraction: returns the direct argument of an ordered set for a group of the set.
 * Keys that the set does not have are NULL.
 */
static Datum
set_fraction(void *arg, int ordered_set, const Datum *keys, const bool *nulls, bool *isnull)
{
	const SetEngine *set = arg;
	const GroupingEngine *grouping = set->grouping;
	Datum *all = palloc0(sizeof(Datum) * (grouping->composite.spec->nkeys + 1));
	bool *all_nulls = palloc(sizeof(bool) * (grouping->composite.spec->nkeys + 1));

	for (int k = 0; k < grouping->composite.spec->nkeys; k++)
	{
		int key = set->key_of[k];

		all_nulls[k] = key < 0 || nulls[key];
		if (!all_nulls[k])
			all[k] = keys[key];
	}
	return grouping->composite.env.fraction(grouping->composite.env.fraction_arg, ordered_set, all,
											all_nulls, isnull);
}

/*
 * Opens the engine of a set, whose memory limits and estimates depend on the set.  `parts`: its
 * groups are exchanged with other participants.
 */
static void
open_set(GroupingEngine *grouping, const EngineOps *ops, SetEngine *set, bool parts)
{
	const AggSpec *spec = grouping->composite.spec;
	EngineEnv env = grouping->composite.env;

	env.est_groups = spec->sets[set->number].groups;
	env.mem_limit = engine_memory(grouping, env.est_groups);
	env.mem_least = Max(env.mem_least * FULL_SETS / Max(grouping->nsets, FULL_SETS), MIN_MEMORY);
	env.fraction = set_fraction;
	env.fraction_arg = set;
	if (set->parent >= 0)
	{
		/* partitions of groups depend on the seed that participants share */
		env.input.parallel = parts;
		env.est_rows = spec->sets[grouping->sets[set->parent].number].groups;
	}
	set->engine = grouping->open(ops, &set->spec, &env, false);
	composite_check(&grouping->composite, set->engine);
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

/* Adds groups of the current set to the engines of its children. */
static void
combine_groups(GroupingEngine *grouping, const GroupBatch *groups)
{
	const SetEngine *from = &grouping->sets[grouping->current];
	GroupBatch *combined = &grouping->combined;

	for (int s = grouping->current + 1; s < grouping->nsets; s++)
	{
		SetEngine *to = &grouping->sets[s];

		if (to->parent != grouping->current)
			continue;
		combined->ngroups = groups->ngroups;
		combined->slots = groups->slots;
		combined->fallbacks = groups->fallbacks;
		combined->fallback_nulls = groups->fallback_nulls;
		for (int k = 0; k < grouping->composite.spec->nkeys; k++)
			if (to->key_of[k] >= 0)
			{
				combined->keys[to->key_of[k]] = groups->keys[from->key_of[k]];
				combined->keynulls[to->key_of[k]] = groups->keynulls[from->key_of[k]];
			}
		cpu_combine_groups(to->engine, combined);
	}
}

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

/* Opens the engines of the current set's children.  Returns whether there are any. */
static bool
open_children(GroupingEngine *grouping, bool parts)
{
	bool any = false;

	for (int s = grouping->current + 1; s < grouping->nsets; s++)
	{
		if (grouping->sets[s].parent != grouping->current)
			continue;
		open_set(grouping, engines_default(), &grouping->sets[s], parts);
		any = true;
	}
	return any;
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
		(void) open_children(grouping, false);
	/* engines that got rows are finished already */
	if (set->parent < 0 || grouping->in_parts)
		return ENGINE_OK;
	return composite_status(&grouping->composite, set->engine,
							set->engine->ops->finish(set->engine));
}

/* Closes the engine of a set with a parent, if it is open. */
static void
close_child(SetEngine *set)
{
	if (set->parent >= 0 && set->engine)
	{
		set->engine->ops->close(set->engine);
		set->engine = NULL;
	}
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
	close_child(set);
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
				combine_groups(grouping, &groups);
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

/* ---- parallel participants ------------------------------------------------------------ */

/* EngineOps.sections: those of all sets. */
static int
grouping_sections(const Engine *base)
{
	return ((const GroupingEngine *) base)->nsections;
}

/* GroupSink.groups: combines groups that are exported into the groups of the set's children. */
static void
combine_exported(void *arg, const GroupBatch *groups)
{
	combine_groups((GroupingEngine *) arg, groups);
}

/*
 * EngineOps.export_groups.  By partition it exports all sets; the children of a set are made on the
 * way.  Otherwise it exports the groups of engines that get rows.
 */
static EngineStatus
grouping_export(Engine *base, GroupSink *sink)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	GroupSink saved = *sink;

	if (sink->part == NULL)
		return composite_export_groups(base, sink);
	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];
		Engine *engine = set->engine;
		EngineStatus status;

		if (s > 0)
			sink->next_section(sink);
		grouping->current = s;
		if (open_children(grouping, true))
		{
			sink->groups = combine_exported;
			sink->groups_arg = grouping;
		}
		status = engine->ops->export_groups(engine, sink);
		sink->groups = saved.groups;
		sink->groups_arg = saved.groups_arg;
		if (composite_status(&grouping->composite, engine, status) != ENGINE_OK)
			return ENGINE_FAILED;
		close_child(set);
		if (set->parent < 0 && engine->ops->begin_part)
			engine->ops->begin_part(engine, 0);
	}
	grouping->current = 0;
	return ENGINE_OK;
}

/*
 * Returns the engine that imports groups of this section, and sets *section to the number among the
 * sections of that engine.
 */
static Engine *
begin_section(GroupingEngine *grouping, int *section)
{
	int s = grouping->nsets - 1;

	while (grouping->sets[s].first_section > *section)
		s--;
	*section -= grouping->sets[s].first_section;
	grouping->sets[s].absent = false;
	return grouping->sets[s].engine;
}

/* EngineOps.import_groups. */
static EngineStatus
grouping_import(Engine *base, GroupSource *source)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	int section = source->section;
	Engine *engine;
	EngineStatus status;

	if (!grouping->in_parts)
		return composite_import_groups(base, source);
	engine = begin_section(grouping, &source->section);
	status = engine->ops->import_groups(engine, source);
	source->section = section;
	return composite_status(&grouping->composite, engine, status);
}

/* EngineOps.import_rows. */
static EngineStatus
grouping_import_rows(Engine *base, int section, const char *rows, uint32 n)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	Engine *engine = begin_section(grouping, &section);

	return composite_status(&grouping->composite, engine,
							engine->ops->import_rows(engine, section, rows, n));
}

/* EngineOps.begin_part: empties the engines of all sets, and opens those that are closed. */
static void
grouping_begin_part(Engine *base, uint32 groups)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	grouping->in_parts = true;
	grouping->finished = grouping->begun = false;
	grouping->current = grouping->repeats = 0;
	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];

		if (set->engine == NULL)
			open_set(grouping, engines_default(), set, true);
		/* the number is that of the first set */
		set->engine->ops->begin_part(set->engine, s == 0 ? groups : 0);
		set->absent = set->spec.nkeys == 0;
	}
}

/* Numbers the sections, and offers to merge parts if the engines that get rows do. */
static void
offer_parts(GroupingEngine *grouping)
{
	EngineOps *ops = &grouping->composite.ops;
	bool possible = true;

	grouping->nsections = 0;
	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];
		const Engine *engine = set->parent < 0 ? set->engine : NULL;

		set->first_section = grouping->nsections;
		grouping->nsections += engine && engine->ops->sections ? engine->ops->sections(engine) : 1;
		possible &= engine == NULL || engine->ops->begin_part != NULL;
	}
	ops->begin_part =
		possible && grouping->nsections <= ENGINE_MAX_SECTIONS ? grouping_begin_part : NULL;
}

/* ---- distinct values of parallel participants ------------------------------------------ */

/*
 * Returns the engine that gets rows and has row set number *set, counted over all these engines;
 * sets *set to its number there.  Returns NULL if there are fewer.
 */
static Engine *
find_row_set(const GroupingEngine *grouping, int *set)
{
	const CompositeEngine *composite = &grouping->composite;

	for (int e = 0; e < composite->nengines; e++)
	{
		Engine *engine = composite->engines[e];
		int n = 0;

		while (engine->ops->distinct_values(engine, n) != NULL)
			n++;
		if (*set < n)
			return engine;
		*set -= n;
	}
	return NULL;
}

/* EngineOps.distinct_values: the row sets of all engines that get rows, one after another. */
static Engine *
grouping_distinct_values(Engine *base, int set)
{
	Engine *engine = find_row_set((GroupingEngine *) base, &set);

	return engine ? engine->ops->distinct_values(engine, set) : NULL;
}

/* EngineOps.add_distinct_values. */
static EngineStatus
grouping_add_distinct_values(Engine *base, int set)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	Engine *engine = find_row_set(grouping, &set);

	return composite_status(&grouping->composite, engine,
							engine->ops->add_distinct_values(engine, set));
}

/* EngineOps.end_distinct_values: the engines may merge parts now. */
static void
grouping_end_distinct_values(Engine *base)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	CompositeEngine *composite = &grouping->composite;

	for (int e = 0; e < composite->nengines; e++)
		composite->engines[e]->ops->end_distinct_values(composite->engines[e]);
	offer_parts(grouping);
}

/* Offers participants to exchange distinct values, if all engines that get rows do. */
static void
offer_distinct_values(GroupingEngine *grouping)
{
	CompositeEngine *composite = &grouping->composite;
	int sets = ENGINE_MAX_VALUE_SETS;

	for (int e = 0; e < composite->nengines; e++)
		if (composite->engines[e]->ops->distinct_values == NULL)
			return;
	/* no row set has number ENGINE_MAX_VALUE_SETS */
	if (find_row_set(grouping, &sets) != NULL)
		return;
	composite->ops.distinct_values = grouping_distinct_values;
	composite->ops.add_distinct_values = grouping_add_distinct_values;
	composite->ops.end_distinct_values = grouping_end_distinct_values;
}

/* Sets the callbacks for parallel plans. */
static void
set_parallel_callbacks(GroupingEngine *grouping)
{
	EngineOps *ops = &grouping->composite.ops;

	ops->export_groups = grouping_export;
	ops->import_groups = grouping_import;
	ops->import_rows = grouping_import_rows;
	ops->sections = grouping_sections;
	offer_parts(grouping);
	offer_distinct_values(grouping);
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
		close_child(&grouping->sets[s]);
		grouping->sets[s].done = grouping->sets[s].absent = false;
	}
	offer_parts(grouping);
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
		close_child(&grouping->sets[s]);
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
			open_set(grouping, ops, set, true);
			composite_add_engine(composite, set->engine);
			grouping->row_engine = set;
		}
	}
	set_callbacks(grouping);
	set_parallel_callbacks(grouping);
	grouping->groups.keys = palloc0(sizeof(Datum *) * (spec->nkeys + 1));
	grouping->groups.keynulls = palloc0(sizeof(bool *) * (spec->nkeys + 1));
	grouping->combined.keys = palloc0(sizeof(Datum *) * (spec->nkeys + 1));
	grouping->combined.keynulls = palloc0(sizeof(bool *) * (spec->nkeys + 1));
	MemoryContextSwitchTo(old);
	return &composite->base;
}

/*
 * grouping_children.c
 *	  GROUPING SETS, ROLLUP and CUBE: opens the engines of sets, and combines the groups of a set
 *	  into those of its children.
 */
#include "postgres.h"

#include "composite/grouping_internal.h"
#include "engine_cpu/engine_cpu.h"
#include "engines/engines.h"

/* Least memory of an engine in bytes: the smallest work_mem. */
#define MIN_MEMORY (64 * 1024)
/* Sets that may use work_mem each for values; more sets divide that much memory. */
#define FULL_SETS 4

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

void
grouping_open_set(GroupingEngine *grouping, const EngineOps *ops, SetEngine *set, bool parts)
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

void
grouping_combine(GroupingEngine *grouping, const GroupBatch *groups)
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

bool
grouping_open_children(GroupingEngine *grouping, bool parts)
{
	bool any = false;

	for (int s = grouping->current + 1; s < grouping->nsets; s++)
	{
		if (grouping->sets[s].parent != grouping->current)
			continue;
		grouping_open_set(grouping, engines_default(), &grouping->sets[s], parts);
		any = true;
	}
	return any;
}

void
grouping_close_child(SetEngine *set)
{
	if (set->parent >= 0 && set->engine)
	{
		set->engine->ops->close(set->engine);
		set->engine = NULL;
	}
}

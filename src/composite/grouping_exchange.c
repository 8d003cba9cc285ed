/*
 * grouping_exchange.c
 *	  GROUPING SETS, ROLLUP and CUBE in parallel plans: export and import of groups, and the
 *	  exchange of distinct values.
 *
 * Participants of a parallel plan export the groups of engines that get rows.  The participant that
 * imports them makes the other sets.  If there are many groups, each participant makes the other
 * sets from its own groups, and exports the groups of all sets by a hash of the set's keys, one set
 * after another.  A participant that merges a part of these has groups of all sets, each complete.
 * Before that, participants exchange distinct values as for one set: the row sets of all engines.
 */
#include "postgres.h"

#include "composite/grouping_internal.h"
#include "engines/engines.h"

/* ---- groups --------------------------------------------------------------------------- */

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
	grouping_combine((GroupingEngine *) arg, groups);
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
		if (grouping_open_children(grouping, true))
		{
			sink->groups = combine_exported;
			sink->groups_arg = grouping;
		}
		status = engine->ops->export_groups(engine, sink);
		sink->groups = saved.groups;
		sink->groups_arg = saved.groups_arg;
		if (composite_status(&grouping->composite, engine, status) != ENGINE_OK)
			return ENGINE_FAILED;
		grouping_close_child(set);
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
			grouping_open_set(grouping, engines_default(), set, true);
		/* the number is that of the first set */
		set->engine->ops->begin_part(set->engine, s == 0 ? groups : 0);
		set->absent = set->spec.nkeys == 0;
	}
}

void
grouping_offer_parts(GroupingEngine *grouping)
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

/* ---- distinct values -------------------------------------------------------------------- */

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
	grouping_offer_parts(grouping);
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

void
grouping_set_parallel_callbacks(GroupingEngine *grouping)
{
	EngineOps *ops = &grouping->composite.ops;

	ops->export_groups = grouping_export;
	ops->import_groups = grouping_import;
	ops->import_rows = grouping_import_rows;
	ops->sections = grouping_sections;
	grouping_offer_parts(grouping);
	offer_distinct_values(grouping);
}

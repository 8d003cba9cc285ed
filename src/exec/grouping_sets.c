/*
 * grouping_sets.c
 *	  GROUPING SETS, ROLLUP and CUBE: an engine made of engines.
 *
 * Each set has an engine that groups by the keys of the set.  Those of sets that are part of no
 * other one get all rows.  When the input has ended their groups are returned, and combined on the
 * way into the groups of the sets that are made from them, in engines of the default kind; these
 * are returned next, and so on.  A set is made from the one with the fewest groups, as the planner
 * expects them, of those that have all of its keys.
 *
 * Every set gets all rows where groups cannot be combined, or not to the same answer: DISTINCT,
 * ordered and ordered-set aggregates, those that only their own functions compute, unless they are
 * exact sums, and, where one process adds rows up in their order, sums of floats, whose last digits
 * that order decides, and their extremes, as that of 0 and -0 which came last is shown.
 *
 * Participants of a parallel plan export the groups of the engines that have had rows; the one that
 * imports them makes the other sets.  Where there is one such engine, it may share a query with
 * those of other participants, and take rows of which it has copies.
 *
 * Memory: each engine has its share of EngineEnv.mem_limit, but no less than the least work_mem,
 * and spills beyond.  Those that keep values (DISTINCT, ordered sets, orders) may use work_mem for
 * each kind of these, as core's sorts do for each set.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "engine_cpu/engine_cpu.h"
#include "engines/engines.h"
#include "exec/distinct.h"
#include "exec/grouping_sets.h"
#include "exec/ordered_set.h"
#include "exec/pieces.h"

/* Least memory of an engine: that of the least work_mem. */
#define MIN_MEMORY (64 * 1024)
/*
 * So many sets may keep values in work_mem each, as many as a ROLLUP mostly has; of more they share
 * that.
 */
#define FULL_SETS 4

typedef struct SetEngine
{
	struct GroupingEngine *grouping;
	int number; /* of AggSpec.sets, the first that is equal */
	int times;  /* how often its groups are returned */
	int parent; /* which of the engines it is made from, or -1: from rows */
	AggSpec spec;
	int *key_of; /* [key of the query] key of this engine, or -1 */
	Engine *
		engine; /* made from others: NULL until these have groups, and when its own were returned */
	EngineStats stats; /* once its groups were returned */
	bool done;
} SetEngine;

typedef struct GroupingEngine
{
	Engine base;
	EngineOps ops;
	const AggSpec *spec;
	EngineEnv env;
	int nsets;
	SetEngine *sets;       /* each after the one that it is made from */
	int nrow_engines;      /* that get rows */
	SetEngine *row_engine; /* one of these */
	uint64 rows;
	uint64 batches;

	bool finished;     /* there are no more rows */
	int current;       /* set whose groups are returned */
	bool begun;        /* its engine has been finished */
	int again;         /* how often the groups at hand are to be returned once more */
	GroupBatch groups; /* those at hand */
	GroupBatch part;   /* the same with the keys of another set */
	Datum *no_values;  /* of keys that are not in the set */
	bool *no_nulls;
	int no_capacity;
} GroupingEngine;

/* ---- which sets are made from which -------------------------------------------------- */

/*
 * Is combine() of states that were made of rows in turns the state of all rows, to the last digit?
 */
static bool
slot_is_exact(MonoidId monoid)
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

/* The same of a fallback aggregate: an exact sum of core's or ours, or the like. */
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

/* Can groups of a set be made from those of another one? */
static bool
can_combine(const EngineOps *ops, const AggSpec *spec, bool parallel)
{
	bool in_order = ops->adds_in_order && !parallel;

	if (spec->ordered || spec->norder > 0 || spec->ordered_floats || spec_has_sets(spec))
		return false;
	for (int s = 0; in_order && s < spec->nslots; s++)
		if (!slot_is_exact(spec->slots[s].monoid))
			return false;
	for (int f = 0; f < spec->nfallbacks; f++)
		if (!fallback_is_exact(&spec->fallbacks[f]))
			return false;
	return true;
}

/*
 * Must the groups of a set that occurs twice be made twice?  A final function may change a state;
 * ordered sets have none.
 */
static bool
returns_once(const AggSpec *spec)
{
	for (int f = 0; f < spec->nfallbacks; f++)
		if (spec_set_of_fallback(spec, f) < 0 && !fallback_is_exact(&spec->fallbacks[f]))
			return true;
	return false;
}

/* The largest first. */
static int
compare_sets(const void *a, const void *b, void *arg)
{
	const KeySet *sets = arg;
	int m = *(const int *) a;
	int n = *(const int *) b;
	int more = bms_num_members(sets[n].keys) - bms_num_members(sets[m].keys);

	return more != 0 ? more : m - n;
}

/* The engine among the first n that this set is best made from, or -1. */
static int
find_parent(const AggSpec *spec, const SetEngine *engines, int n, const KeySet *set)
{
	int best = -1;

	for (int e = 0; e < n; e++)
	{
		const KeySet *other = &spec->sets[engines[e].number];

		/* the later ones have fewer keys */
		if (bms_is_subset(set->keys, other->keys) &&
			(best < 0 || other->groups <= spec->sets[engines[best].number].groups))
			best = e;
	}
	return best;
}

/*
 * Numbers and sources of the engines in *engines, which has room for one for each set; returns how
 * many.
 */
static int
arrange_sets(const EngineOps *ops, const AggSpec *spec, bool parallel, SetEngine *engines)
{
	bool combine = can_combine(ops, spec, parallel);
	bool once = returns_once(spec);
	int *order = palloc(sizeof(int) * spec->nsets);
	int n = 0;

	for (int s = 0; s < spec->nsets; s++)
		order[s] = s;
	qsort_arg(order, spec->nsets, sizeof(int), compare_sets, (void *) spec->sets);
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
grouping_sets_engines(const EngineOps *ops, const AggSpec *spec, bool parallel)
{
	SetEngine *engines;
	int result = 0;
	int n;

	if (spec->nsets == 0)
		return 1;
	engines = palloc0(sizeof(SetEngine) * spec->nsets);
	n = arrange_sets(ops, spec, parallel, engines);
	for (int e = 0; e < n; e++)
		result += engines[e].parent < 0;
	pfree(engines);
	return result;
}

/* ---- opening ------------------------------------------------------------------------ */

/* Takes over what an engine of these has to say. */
static EngineStatus
note(GroupingEngine *grouping, const SetEngine *set, EngineStatus status)
{
	grouping->base.errors |= set->engine->errors;
	if (status != ENGINE_OK || set->engine->failure[0] != '\0')
	{
		strlcpy(grouping->base.failure, set->engine->failure, sizeof(grouping->base.failure));
		return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/*
 * The memory of an engine for so many groups: half of all is shared by their number, half evenly.
 */
static size_t
engine_memory(const GroupingEngine *grouping, double groups)
{
	double all = 0;

	for (int s = 0; s < grouping->nsets; s++)
		all += grouping->spec->sets[grouping->sets[s].number].groups;
	return Max(grouping->env.mem_limit / 2 * (groups / all + 1.0 / grouping->nsets), MIN_MEMORY);
}

/* The query's spec with the keys of the set. */
static void
make_spec(GroupingEngine *grouping, SetEngine *set)
{
	const AggSpec *spec = grouping->spec;

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

/* The direct argument of an ordered set in a group of the set: an OrderedSetFraction. */
static Datum
set_fraction(void *arg, int ordered_set, const Datum *keys, const bool *nulls, bool *isnull)
{
	const SetEngine *set = arg;
	const GroupingEngine *grouping = set->grouping;
	Datum *all = palloc0(sizeof(Datum) * (grouping->spec->nkeys + 1));
	bool *all_nulls = palloc(sizeof(bool) * (grouping->spec->nkeys + 1));

	for (int k = 0; k < grouping->spec->nkeys; k++)
	{
		int key = set->key_of[k];

		all_nulls[k] = key < 0 || nulls[key];
		if (!all_nulls[k])
			all[k] = keys[key];
	}
	return grouping->env.fraction(grouping->env.fraction_arg, ordered_set, all, all_nulls, isnull);
}

/*
 * Opens the engine of a set: of these ops where it gets rows, and of the default ones where it gets
 * groups.
 */
static void
open_set(GroupingEngine *grouping, const EngineOps *ops, SetEngine *set)
{
	const AggSpec *spec = grouping->spec;
	EngineEnv env = grouping->env;

	env.est_groups = spec->sets[set->number].groups;
	env.mem_limit = engine_memory(grouping, env.est_groups);
	env.mem_least = Max(env.mem_least * FULL_SETS / Max(grouping->nsets, FULL_SETS), MIN_MEMORY);
	env.fraction = set_fraction;
	env.fraction_arg = set;
	if (set->parent >= 0)
	{
		env.input.parallel = false;
		env.est_rows = spec->sets[grouping->sets[set->parent].number].groups;
	}
	set->engine = ops->sets         ? ops->open(&set->spec, &env) :
		set->spec.nordered_sets > 0 ? ordered_set_open(ops, &set->spec, &env) :
		set->spec.ndistincts > 0    ? distinct_open(ops, &set->spec, &env, false) :
									  ops->open(&set->spec, &env);
	note(grouping, set, ENGINE_OK);
}

/* ---- rows in ------------------------------------------------------------------------- */

/* Those of one engine serve all: what is narrow depends on the slots, which all have. */
static void
bind_buffers(Engine *base, Batch *batch)
{
	Engine *engine = ((GroupingEngine *) base)->row_engine->engine;

	engine->ops->bind_buffers(engine, batch);
}

static EngineStatus
take_resident(Engine *base, struct Feed *feed)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	Engine *engine = grouping->row_engine->engine;

	return note(grouping, grouping->row_engine, engine->ops->take_resident(engine, feed));
}

static EngineStatus
add_batch(Engine *base, const Batch *batch)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	grouping->rows += batch->nrows;
	grouping->batches++;
	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];

		if (set->parent < 0 &&
			note(grouping, set, set->engine->ops->add_batch(set->engine, batch)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/* ---- groups out ---------------------------------------------------------------------- */

static EngineStatus
finish(Engine *base)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	grouping->finished = true;
	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];

		if (set->parent < 0 &&
			note(grouping, set, set->engine->ops->finish(set->engine)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

/* Combines groups of the current set into those of the sets that are made from it. */
static void
combine_groups(GroupingEngine *grouping, const GroupBatch *groups)
{
	const SetEngine *from = &grouping->sets[grouping->current];
	GroupBatch *part = &grouping->part;

	for (int s = grouping->current + 1; s < grouping->nsets; s++)
	{
		SetEngine *to = &grouping->sets[s];

		if (to->parent != grouping->current)
			continue;
		part->ngroups = groups->ngroups;
		part->slots = groups->slots;
		part->fallbacks = groups->fallbacks;
		part->fallback_nulls = groups->fallback_nulls;
		for (int k = 0; k < grouping->spec->nkeys; k++)
			if (to->key_of[k] >= 0)
			{
				part->keys[to->key_of[k]] = groups->keys[from->key_of[k]];
				part->keynulls[to->key_of[k]] = groups->keynulls[from->key_of[k]];
			}
		cpu_combine_groups(to->engine, part);
	}
}

/* Makes room for so many groups in the columns of keys that are not in a set. */
static void
enlarge_absent(GroupingEngine *grouping, int n)
{
	if (n <= grouping->no_capacity)
		return;
	if (grouping->no_capacity > 0)
	{
		pfree(grouping->no_values);
		pfree(grouping->no_nulls);
	}
	grouping->no_capacity = n;
	grouping->no_values = MemoryContextAllocExtended(grouping->env.cxt, sizeof(Datum) * n,
													 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	grouping->no_nulls =
		MemoryContextAllocExtended(grouping->env.cxt, sizeof(bool) * n, MCXT_ALLOC_HUGE);
	memset(grouping->no_nulls, true, n);
}

/* Sets grouping->groups to groups of the current set with all keys of the query. */
static void
show_groups(GroupingEngine *grouping, const GroupBatch *groups)
{
	const SetEngine *set = &grouping->sets[grouping->current];
	Datum **keys = grouping->groups.keys;
	bool **keynulls = grouping->groups.keynulls;

	enlarge_absent(grouping, groups->ngroups);
	grouping->groups = *groups;
	grouping->groups.keys = keys;
	grouping->groups.keynulls = keynulls;
	grouping->groups.set = set->number;
	for (int k = 0; k < grouping->spec->nkeys; k++)
	{
		int key = set->key_of[k];

		keys[k] = key < 0 ? grouping->no_values : groups->keys[key];
		keynulls[k] = key < 0 ? grouping->no_nulls : groups->keynulls[key];
	}
	grouping->again = set->times - 1;
}

/* The groups of the current set are about to be returned. */
static EngineStatus
begin_set(GroupingEngine *grouping)
{
	SetEngine *set = &grouping->sets[grouping->current];

	grouping->begun = true;
	for (int s = grouping->current + 1; s < grouping->nsets; s++)
		if (grouping->sets[s].parent == grouping->current)
			open_set(grouping, engines_default(), &grouping->sets[s]);
	/* those with rows are finished */
	return set->parent < 0 ? ENGINE_OK : note(grouping, set, set->engine->ops->finish(set->engine));
}

static void
close_set(SetEngine *set)
{
	if (set->engine)
		set->engine->ops->close(set->engine);
	set->engine = NULL;
}

/* They were returned, and the memory of its engine is not needed any more. */
static void
end_set(GroupingEngine *grouping)
{
	SetEngine *set = &grouping->sets[grouping->current++];

	grouping->begun = false;
	set->engine->ops->stats(set->engine, &set->stats);
	set->done = true;
	if (set->parent < 0)
		set->engine->ops->reset(set->engine);
	else
		close_set(set);
}

static bool
next_groups(Engine *base, GroupBatch *out)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	if (grouping->again > 0)
	{
		grouping->again--;
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
		if (set->engine->ops->next_groups(set->engine, &groups))
		{
			note(grouping, set, ENGINE_OK);
			combine_groups(grouping, &groups);
			show_groups(grouping, &groups);
			*out = grouping->groups;
			return true;
		}
		if (note(grouping, set, ENGINE_OK) != ENGINE_OK)
			return false;
		end_set(grouping);
	}
	return false;
}

/* ---- participants -------------------------------------------------------------------- */

static EngineStatus
export_groups(Engine *base, GroupSink *sink)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];

		if (set->parent < 0 && note(grouping, set, pieces_export(set->engine, sink)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

static EngineStatus
import_groups(Engine *base, GroupSource *source)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];

		if (set->parent < 0 && note(grouping, set, pieces_import(set->engine, source)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

static bool
join(Engine *base, uint64 share)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	Engine *engine = grouping->row_engine->engine;
	bool joined = engine->ops->join(engine, share);

	note(grouping, grouping->row_engine, ENGINE_OK);
	return joined;
}

static EngineStatus
flush(Engine *base, bool *complete)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	Engine *engine = grouping->row_engine->engine;

	return note(grouping, grouping->row_engine, engine->ops->flush(engine, complete));
}

static void
detach(Engine *base, bool owner)
{
	Engine *engine = ((GroupingEngine *) base)->row_engine->engine;

	engine->ops->detach(engine, owner);
}

/* ---- life ---------------------------------------------------------------------------- */

static void
reset(Engine *base)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	grouping->base.errors = 0;
	grouping->finished = grouping->begun = false;
	grouping->current = grouping->again = 0;
	for (int s = 0; s < grouping->nsets; s++)
	{
		SetEngine *set = &grouping->sets[s];

		if (set->parent < 0)
			set->engine->ops->reset(set->engine);
		else
			close_set(set);
		set->done = false;
	}
}

/*
 * Rows are those of the input, however many engines read them; the strategy is that of the first
 * one.
 */
static void
stats(Engine *base, EngineStats *stats)
{
	GroupingEngine *grouping = (GroupingEngine *) base;
	EngineStats first = {0};

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
	stats->rows = grouping->nrow_engines > 1 ? grouping->rows : first.rows;
	stats->batches = grouping->nrow_engines > 1 ? grouping->batches : first.batches;
	strlcpy(stats->strategy, first.strategy, sizeof(stats->strategy));
}

static void
close_engines(Engine *base)
{
	GroupingEngine *grouping = (GroupingEngine *) base;

	for (int s = 0; s < grouping->nsets; s++)
		close_set(&grouping->sets[s]);
}

int
grouping_sets_source(const Engine *engine, int set)
{
	const GroupingEngine *grouping = (const GroupingEngine *) engine;
	const KeySet *sets = grouping->spec->sets;

	for (int s = 0; s < grouping->nsets; s++)
		if (grouping->sets[s].parent >= 0 &&
			bms_equal(sets[grouping->sets[s].number].keys, sets[set].keys))
			return grouping->sets[grouping->sets[s].parent].number;
	return -1;
}

/*
 * The callbacks: those that only a single engine with rows can serve are there where it has them.
 */
static void
set_callbacks(EngineOps *ops, bool single)
{
	ops->add_batch = add_batch;
	ops->finish = finish;
	ops->next_groups = next_groups;
	ops->export_groups = export_groups;
	ops->import_groups = import_groups;
	ops->reset = reset;
	ops->stats = stats;
	ops->close = close_engines;
	ops->begin_part = NULL;
	ops->limit = NULL;
	ops->bind_buffers = ops->bind_buffers && (single || ops->adds_in_order) ? bind_buffers : NULL;
	ops->take_resident = ops->take_resident && single ? take_resident : NULL;
	ops->join = ops->join && single ? join : NULL;
	ops->flush = ops->flush && single ? flush : NULL;
	ops->detach = ops->detach && single ? detach : NULL;
}

Engine *
grouping_sets_open(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env)
{
	MemoryContext old = MemoryContextSwitchTo(env->cxt);
	GroupingEngine *grouping = palloc0(sizeof(GroupingEngine));

	grouping->spec = spec;
	grouping->env = *env;
	grouping->env.input.grouped = false;
	grouping->sets = palloc0(sizeof(SetEngine) * spec->nsets);
	grouping->nsets = arrange_sets(ops, spec, env->input.parallel, grouping->sets);
	for (int s = 0; s < grouping->nsets; s++)
	{
		grouping->sets[s].grouping = grouping;
		make_spec(grouping, &grouping->sets[s]);
		if (grouping->sets[s].parent < 0)
		{
			open_set(grouping, ops, &grouping->sets[s]);
			grouping->nrow_engines++;
			grouping->row_engine = &grouping->sets[s];
		}
	}
	/* DISTINCT has callbacks of its own */
	grouping->ops = *grouping->row_engine->engine->ops;
	set_callbacks(&grouping->ops, grouping->nrow_engines == 1);
	grouping->base.ops = &grouping->ops;
	grouping->groups.keys = palloc0(sizeof(Datum *) * (spec->nkeys + 1));
	grouping->groups.keynulls = palloc0(sizeof(bool *) * (spec->nkeys + 1));
	grouping->part.keys = palloc0(sizeof(Datum *) * (spec->nkeys + 1));
	grouping->part.keynulls = palloc0(sizeof(bool *) * (spec->nkeys + 1));
	MemoryContextSwitchTo(old);
	return &grouping->base;
}

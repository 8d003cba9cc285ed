/*
 * base.h
 *	  What all composite engines have in common.
 *
 * A composite engine is an engine that is made of other engines.  Its struct begins with a
 * CompositeEngine.  The functions below serve its inner engines all at once.  Everything is
 * allocated in EngineEnv.cxt, and functions return status as those of any engine do.
 */
#ifndef GPUAGG_COMPOSITE_BASE_H
#define GPUAGG_COMPOSITE_BASE_H

#include "postgres.h"

#include "engine.h"

typedef struct CompositeEngine
{
	Engine base; /* must be first; base.ops is &ops */
	EngineOps ops;
	const AggSpec *spec; /* the query's */
	EngineEnv env;       /* with the memory limit of each inner engine */
	uint64 rows;         /* rows of the input, in all scans so far */
	uint64 batches;

	/* Inner engines that live as long as this one.  All participants have the same ones. */
	int nengines;
	Engine **engines;
} CompositeEngine;

/*
 * Opens one engine for a spec: composite_open().  An inner engine may be a composite engine itself.
 * Files of this folder get the function as a pointer, so that they do not depend on composite.c.
 */
typedef Engine *(*OpenEngine)(const EngineOps *ops, const AggSpec *spec, const EngineEnv *env,
							  bool choose);

/*
 * Initializes a zeroed composite engine with room for `most` inner engines.  Its callbacks are
 * those of `ops`, except that the optional ones are absent, and that export_groups, import_groups
 * and close are the functions below.
 */
extern void composite_init(CompositeEngine *composite, const EngineOps *ops, const AggSpec *spec,
						   const EngineEnv *env, int most);

/* Adds an open engine to the inner engines, and reports its failure if it failed to open. */
extern Engine *composite_add_engine(CompositeEngine *composite, Engine *engine);

/*
 * Reports the errors and the failure of an inner engine as the composite engine's own, after a call
 * that returned this status.  Returns ENGINE_FAILED if the inner engine has failed.
 */
extern EngineStatus composite_status(CompositeEngine *composite, const Engine *engine,
									 EngineStatus status);

/*
 * Like composite_status(), after a call that returns no status: Engine.failure alone says whether
 * it failed.
 */
static inline EngineStatus
composite_check(CompositeEngine *composite, const Engine *engine)
{
	return composite_status(composite, engine, ENGINE_OK);
}

/* Resets all inner engines. */
extern void composite_reset_engines(CompositeEngine *composite);

/* EngineOps.export_groups: exports the groups of all inner engines, one after the other. */
extern EngineStatus composite_export_groups(Engine *base, GroupSink *sink);
/* EngineOps.import_groups: imports such an export into all inner engines. */
extern EngineStatus composite_import_groups(Engine *base, GroupSource *source);
/* EngineOps.close: closes all inner engines. */
extern void composite_close(Engine *base);

#endif /* GPUAGG_COMPOSITE_BASE_H */

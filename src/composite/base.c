/*
 * base.c
 *	  What all composite engines have in common; see base.h.
 */
#include "postgres.h"

#include "composite/base.h"
#include "composite/export_stream.h"

void
composite_init(CompositeEngine *composite, const EngineOps *ops, const AggSpec *spec,
			   const EngineEnv *env, int most)
{
	composite->ops = *ops;
	composite->ops.bind_buffers = NULL;
	composite->ops.take_resident = NULL;
	composite->ops.limit = NULL;
	composite->ops.export_groups = composite_export_groups;
	composite->ops.import_groups = composite_import_groups;
	composite->ops.import_rows = NULL;
	composite->ops.sections = NULL;
	composite->ops.begin_part = NULL;
	composite->ops.distinct_values = NULL;
	composite->ops.add_distinct_values = NULL;
	composite->ops.end_distinct_values = NULL;
	composite->ops.close = composite_close;
	composite->ops.join = NULL;
	composite->ops.flush = NULL;
	composite->ops.detach = NULL;
	composite->base.ops = &composite->ops;
	composite->spec = spec;
	composite->env = *env;
	composite->env.early_sink = NULL;
	composite->engines = palloc0(sizeof(Engine *) * most);
}

EngineStatus
composite_status(CompositeEngine *composite, const Engine *engine, EngineStatus status)
{
	composite->base.errors |= engine->errors;
	if (status == ENGINE_OK && engine->failure[0] == '\0')
		return ENGINE_OK;
	strlcpy(composite->base.failure, engine->failure, sizeof(composite->base.failure));
	/* messages name the engine that failed */
	composite->ops.name = engine->ops->name;
	return ENGINE_FAILED;
}

Engine *
composite_add_engine(CompositeEngine *composite, Engine *engine)
{
	composite->engines[composite->nengines++] = engine;
	composite_check(composite, engine);
	return engine;
}

void
composite_reset_engines(CompositeEngine *composite)
{
	for (int e = 0; e < composite->nengines; e++)
		composite->engines[e]->ops->reset(composite->engines[e]);
	composite->base.errors = 0;
}

EngineStatus
composite_export_groups(Engine *base, GroupSink *sink)
{
	CompositeEngine *composite = (CompositeEngine *) base;

	for (int e = 0; e < composite->nengines; e++)
	{
		Engine *engine = composite->engines[e];

		if (composite_status(composite, engine, export_stream_write(engine, sink)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

EngineStatus
composite_import_groups(Engine *base, GroupSource *source)
{
	CompositeEngine *composite = (CompositeEngine *) base;

	for (int e = 0; e < composite->nengines; e++)
	{
		Engine *engine = composite->engines[e];

		if (composite_status(composite, engine, export_stream_read(engine, source)) != ENGINE_OK)
			return ENGINE_FAILED;
	}
	return ENGINE_OK;
}

void
composite_close(Engine *base)
{
	CompositeEngine *composite = (CompositeEngine *) base;

	for (int e = 0; e < composite->nengines; e++)
		composite->engines[e]->ops->close(composite->engines[e]);
}

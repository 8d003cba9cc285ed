/*
 * status.c
 *	  gpuagg_status(): how the library was loaded, and the state of the GPU server.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "cache/store.h"
#include "settings.h"
#include "supervisor/state.h"
#include "supervisor/supervisor.h"

PG_FUNCTION_INFO_V1(gpuagg_status);

/* Returns whether a list such as session_preload_libraries has this library. */
static bool
is_in_list(const char *libraries)
{
	List *names = NIL;
	ListCell *lc;

	if (libraries == NULL || !SplitDirectoriesString(pstrdup(libraries), ',', &names))
		return false;
	foreach (lc, names)
	{
		const char *name = lfirst(lc);
		const char *slash = strrchr(name, '/');

		name = slash ? slash + 1 : name;
		if (strcmp(name, "gpuagg") == 0 || strcmp(name, "gpuagg" DLSUFFIX) == 0)
			return true;
	}
	return false;
}

static const char *
how_loaded(const ServerSnapshot *server)
{
	if (server->state != SERVER_ABSENT)
		return "shared_preload_libraries";
	if (is_in_list(session_preload_libraries_string))
		return "session_preload_libraries";
	if (is_in_list(local_preload_libraries_string))
		return "local_preload_libraries";
	return "first use";
}

/* Returns a description of the server's build, or NULL if it was never started. */
static const char *
build_description(const ServerSnapshot *server)
{
	if (server->build[0] != '\0')
		return server->build;
	return supervisor_has_program() ? NULL : "built without CUDA";
}

static const char *
driver_version(const ServerSnapshot *server)
{
	int version = server->status.driver;

	return version == 0 ? NULL : psprintf("%d.%d", version / 1000, version % 1000 / 10);
}

/* A row of the result; values are added in the order of the columns. */
typedef struct Row
{
	Datum values[12];
	bool nulls[12];
	int n;
} Row;

static void
put_text(Row *row, const char *text)
{
	row->nulls[row->n] = text == NULL || text[0] == '\0';
	if (!row->nulls[row->n])
		row->values[row->n] = CStringGetTextDatum(text);
	row->n++;
}

/* Adds a process id; 0 becomes NULL. */
static void
put_pid(Row *row, int pid)
{
	row->nulls[row->n] = pid == 0;
	row->values[row->n++] = Int32GetDatum(pid);
}

Datum
gpuagg_status(PG_FUNCTION_ARGS)
{
	ServerSnapshot server;
	Row row = {.n = 0};
	TupleDesc desc;
	char reason[300];

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	supervisor_ensure();
	server_snapshot(&server);
	put_text(&row, GPUAGG_VERSION);
	put_text(&row, how_loaded(&server));
	put_text(&row, server_state_name(server.state));
	put_text(&row, server_ready(reason, sizeof(reason)) ? NULL : reason);
	put_text(&row,
			 server.state == SERVER_READY || server.state == SERVER_RESTARTING ? server.reason :
																				 NULL);
	put_pid(&row, server.state == SERVER_READY ? server.status.pid : 0);
	put_pid(&row, server.supervisor);
	row.values[row.n++] = Int32GetDatum(server.restarts);
	row.values[row.n++] = Int32GetDatum(server.state == SERVER_READY ? server.status.ndevices : 0);
	put_text(&row, driver_version(&server));
	put_text(&row, build_description(&server));
	row.values[row.n++] = Int64GetDatum(cache_exists() ? (int64) gpuagg_cache_memory << 20 : 0);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), row.values, row.nulls));
}

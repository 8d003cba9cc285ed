/*
 * columns.c
 *	  gpuagg_device_columns(): the columns that are cached on the GPUs.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "cache/store.h"
#include "engine_cuda/client.h"
#include "supervisor/state.h"
#include "supervisor/supervisor.h"

PG_FUNCTION_INFO_V1(gpuagg_device_columns);

static int
compare_columns(const void *a, const void *b)
{
	const WireListedColumn *x = a;
	const WireListedColumn *y = b;

	if (x->table.id != y->table.id)
		return x->table.id < y->table.id ? -1 : 1;
	return memcmp(&x->column, &y->column, sizeof(x->column));
}

/* Merges the entries of several devices for one column. Returns the number of entries left. */
static int
merge_devices(WireListedColumn *columns, int n)
{
	int joined = 0;

	qsort(columns, n, sizeof(WireListedColumn), compare_columns);
	for (int i = 0; i < n; i++)
	{
		WireListedColumn *last = &columns[joined - 1];

		if (joined > 0 && compare_columns(last, &columns[i]) == 0)
		{
			last->rows += columns[i].rows;
			last->ranges += columns[i].ranges;
			last->bytes += columns[i].bytes;
		}
		else
			columns[joined++] = columns[i];
	}
	return joined;
}

/*
 * Returns no rows if no server is ready. Leaves out copies of tables that the column cache has
 * forgotten, because no query can use them.
 */
Datum
gpuagg_device_columns(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ServerSnapshot server;
	WireListedColumn *columns;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	supervisor_ensure();
	server_snapshot(&server);
	if (server.state != SERVER_READY || (columns = client_list(&n)) == NULL)
		return (Datum) 0;
	n = merge_devices(columns, n);
	for (int i = 0; i < n; i++)
	{
		const WireListedColumn *c = &columns[i];
		CacheTableKey key;
		Oid relid;
		Datum values[12];
		bool nulls[12] = {0};

		if (!cache_table_by_id(c->table.id, &key, &relid) ||
			!cache_may_see(&key, relid, c->column.attno))
			continue;
		values[0] = ObjectIdGetDatum(key.database);
		values[1] = ObjectIdGetDatum(key.tablespace);
		values[2] = ObjectIdGetDatum(key.relnumber);
		values[3] = ObjectIdGetDatum(relid);
		values[4] = Int16GetDatum(c->column.attno);
		values[5] = CStringGetTextDatum("gpu");
		values[7] = Int64GetDatum(c->rows);
		values[8] = Int64GetDatum(c->bytes);
		nulls[6] = nulls[9] = nulls[10] = nulls[11] = true;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * devices.c
 *	  gpuagg_devices(): the GPUs in use, and the state of their server.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "engine_cuda/client.h"
#include "supervisor/state.h"
#include "supervisor/supervisor.h"

PG_FUNCTION_INFO_V1(gpuagg_devices);

static void
put_device(ReturnSetInfo *rsinfo, const ServerSnapshot *server, const WireStatus *status,
		   const WireDevice *device, bool skipped)
{
	const char *error = skipped ? "" : status->last_error[0] ? status->last_error : server->reason;
	Datum values[14];
	bool nulls[14] = {0};

	values[0] = Int32GetDatum(device->ordinal);
	values[1] = CStringGetTextDatum(device->name);
	values[2] = Int64GetDatum(device->memory);
	values[3] = Int64GetDatum(device->used);
	values[4] =
		CStringGetTextDatum(psprintf("%d.%d", status->driver / 1000, status->driver % 1000 / 10));
	values[5] = Int32GetDatum(device->sessions);
	values[6] = Int64GetDatum(status->queries);
	values[7] = Int64GetDatum(status->failures);
	values[8] = Int64GetDatum(status->memory_failures);
	values[9] = Int32GetDatum(server->restarts);
	values[10] = CStringGetTextDatum(skipped ? "not used" : server_state_name(server->state));
	if (error[0] == '\0')
		error = device->note;
	nulls[11] = error[0] == '\0';
	values[11] = nulls[11] ? (Datum) 0 : CStringGetTextDatum(error);
	values[12] = Int64GetDatum(device->host);
	values[13] = Int64GetDatum(status->pinned);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/*
 * Asks the server, if it is ready. Else returns what shared memory has of the last server's
 * devices; no rows if there never was a server.
 */
Datum
gpuagg_devices(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ServerSnapshot server;
	WireStatus now;
	const WireStatus *status = &server.status;

	InitMaterializedSRF(fcinfo, 0);
	supervisor_ensure();
	server_snapshot(&server);
	if (server.state == SERVER_READY)
	{
		if (client_status(&now))
			status = &now;
		else
			server_snapshot(&server); /* with the reason */
	}
	for (uint32 d = 0; d < Min(status->ndevices, WIRE_MAX_DEVICES); d++)
		put_device(rsinfo, &server, status, &status->devices[d], false);
	for (uint32 d = 0; d < Min(status->nskipped, WIRE_MAX_DEVICES); d++)
		put_device(rsinfo, &server, status, &status->skipped[d], true);
	return (Datum) 0;
}

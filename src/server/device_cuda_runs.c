/*
 * device_cuda_runs.c
 *	  Whether rows that lie in the order of their keys are reduced as segments.
 */
#include <string.h>

#include "server/device_cuda.h"

bool
runs_wanted(const Query *query)
{
	const WireQuery *q = query->q;

	if (query->form != FORM_UNKNOWN || q->nkeys == 0 || q->key_bytes == 0 || (q->flags & WIRE_ORDERED))
		return false;
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].bin_kind != WIRE_BIN_NONE || slot_is_ordered(q, s))
			return false;
	return q->forced == STRATEGY_AUTO || q->forced == STRATEGY_SEGMENTED || q->forced == STRATEGY_SORT;
}

/* Is a state for each run, in the order of the rows, what they are reduced to? */
static bool
runs_are_good(const Query *query, double rows, double runs)
{
	const WireQuery *q = query->q;
	const WireDevice *d = budget_device(query->device);
	StrategyDevice device = {.gpu = true,.l2_bytes = d->l2_bytes,.memory_bytes = d->limit};
	StrategyInput input = {
		.forced = q->forced,.nkeys = q->nkeys,.keys_integer = true,.grouped = true,.rows = rows,.groups = runs,
		.mean_run = rows / runs,.state_bytes = (int) wire_group_bytes(q),.key_bytes = q->key_bytes
	};
	StrategyChoice choice;

	strategy_choose(&device, &input, &choice);
	return choice.strategy == STRATEGY_SEGMENTED;
}

DeviceStatus
runs_number(Query *query, int64_t words, double rows, int64_t *n, uint32_t *order, bool *is, DeviceError *error)
{
	QueryStatus *status = query->status.at;
	size_t		bytes = 0;
	int32_t		runs = 0;

	KERNEL_CHECK(gpuagg_runs_number(query->heads.at, words, query->before.at, NULL, &bytes, query->stream));
	DEVICE_CHECK(query_reserve(query, &query->workspace, bytes, error));
	KERNEL_CHECK(gpuagg_runs_number(query->heads.at, words, query->before.at, query->workspace.at, &bytes, query->stream));
	CUDA_CHECK(cudaMemcpyAsync(&runs, (int32_t *) query->before.at + words, sizeof(runs), cudaMemcpyDeviceToHost,
							   query->stream));
	CUDA_CHECK(cudaMemcpyAsync(order, &status->order, sizeof(*order), cudaMemcpyDeviceToHost, query->stream));
	CUDA_CHECK(cudaStreamSynchronize(query->stream));
	*n = runs;
	*is = runs > 0 && (*order & (HEADS_ASCEND | HEADS_DESCEND)) != (HEADS_ASCEND | HEADS_DESCEND) &&
		runs_are_good(query, rows, runs);
	return DEVICE_OK;
}

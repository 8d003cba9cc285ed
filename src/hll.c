/*
 * hll.c
 *	  gpu_approx_count_distinct as an ordinary aggregate.
 *
 * The state is a HyperLogLog sketch (hll.h) in the aggregate's context.  It
 * starts as a short list of (register, rank) pairs, so that many small groups
 * cost little, and becomes the array of registers when the list is full.
 */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/memutils.h"

#include "argtype.h"
#include "compat.h"
#include "hll.h"

#define HLL_SPARSE_MAX 256

typedef struct HllState
{
	int			nsparse;		/* entries in use, or -1: dense */
	int			capacity;
	uint32	   *sparse;			/* register << 8 | rank, distinct registers, unordered */
	uint8	   *dense;			/* GPUAGG_HLL_REGISTERS ranks */
} HllState;

PG_FUNCTION_INFO_V1(gpuagg_hll_transfn);
PG_FUNCTION_INFO_V1(gpuagg_hll_combine);
PG_FUNCTION_INFO_V1(gpuagg_hll_serialize);
PG_FUNCTION_INFO_V1(gpuagg_hll_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_hll_final);

static HllState *
hll_new(MemoryContext cxt)
{
	HllState   *state = MemoryContextAlloc(cxt, sizeof(HllState));

	state->nsparse = 0;
	state->capacity = 8;
	state->sparse = MemoryContextAlloc(cxt, sizeof(uint32) * state->capacity);
	state->dense = NULL;
	return state;
}

static void
hll_make_dense(HllState *state)
{
	state->dense = MemoryContextAllocZero(GetMemoryChunkContext(state), GPUAGG_HLL_REGISTERS);
	for (int i = 0; i < state->nsparse; i++)
		state->dense[state->sparse[i] >> 8] = state->sparse[i] & 0xFF;
	pfree(state->sparse);
	state->sparse = NULL;
	state->nsparse = -1;
}

/* Raises one register to `rank` if it is lower. */
static void
hll_add(HllState *state, int reg, int rank)
{
	if (state->nsparse >= 0)
	{
		for (int i = 0; i < state->nsparse; i++)
		{
			if (state->sparse[i] >> 8 == (uint32) reg)
			{
				if ((state->sparse[i] & 0xFF) < (uint32) rank)
					state->sparse[i] = (uint32) reg << 8 | rank;
				return;
			}
		}
		if (state->nsparse < HLL_SPARSE_MAX)
		{
			if (state->nsparse == state->capacity)
			{
				state->capacity *= 2;
				state->sparse = repalloc(state->sparse, sizeof(uint32) * state->capacity);
			}
			state->sparse[state->nsparse++] = (uint32) reg << 8 | rank;
			return;
		}
		hll_make_dense(state);
	}
	if (state->dense[reg] < rank)
		state->dense[reg] = rank;
}

Datum
gpuagg_hll_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt;
	TypeCacheEntry *type = fcinfo->flinfo->fn_extra;
	HllState   *state;
	Datum		hash;
	int			reg,
				rank;

	if (!AggCheckCallContext(fcinfo, &cxt))
		elog(ERROR, "gpuagg_hll_transfn called in non-aggregate context");
	state = PG_ARGISNULL(0) ? hll_new(cxt) : (HllState *) PG_GETARG_POINTER(0);
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(state);

	if (type == NULL)
	{
		type = argtype_hashable(get_fn_expr_argtype(fcinfo->flinfo, 1));
		fcinfo->flinfo->fn_extra = type;
	}
	hash = FunctionCall2Coll(&type->hash_extended_proc_finfo, PG_GET_COLLATION(),
							 PG_GETARG_DATUM(1), Int64GetDatum(0));
	gpuagg_bin_hll(DatumGetUInt64(hash), &reg, &rank);
	hll_add(state, reg, rank);
	PG_RETURN_POINTER(state);
}

static void
hll_merge(HllState *into, const HllState *from)
{
	for (int i = 0; i < from->nsparse; i++)
		hll_add(into, from->sparse[i] >> 8, from->sparse[i] & 0xFF);
	if (from->nsparse < 0)
	{
		if (into->nsparse >= 0)
			hll_make_dense(into);
		for (int i = 0; i < GPUAGG_HLL_REGISTERS; i++)
			into->dense[i] = Max(into->dense[i], from->dense[i]);
	}
}

Datum
gpuagg_hll_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt;
	HllState   *into;

	if (!AggCheckCallContext(fcinfo, &cxt))
		elog(ERROR, "gpuagg_hll_combine called in non-aggregate context");
	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	into = PG_ARGISNULL(0) ? hll_new(cxt) : (HllState *) PG_GETARG_POINTER(0);
	hll_merge(into, (HllState *) PG_GETARG_POINTER(1));
	PG_RETURN_POINTER(into);
}

/* Wire form: nsparse, then that many pairs, or all registers if it is -1. */
Datum
gpuagg_hll_serialize(PG_FUNCTION_ARGS)
{
	HllState   *state = (HllState *) PG_GETARG_POINTER(0);
	StringInfoData buf;

	if (!AggCheckCallContext(fcinfo, NULL))
		elog(ERROR, "gpuagg_hll_serialize called in non-aggregate context");
	pq_begintypsend(&buf);
	pq_sendint32(&buf, state->nsparse);
	for (int i = 0; i < state->nsparse; i++)
		pq_sendint32(&buf, state->sparse[i]);
	if (state->nsparse < 0)
		pq_sendbytes(&buf, (char *) state->dense, GPUAGG_HLL_REGISTERS);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

Datum
gpuagg_hll_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes;
	HllState   *state;
	StringInfoData buf;
	int			n;

	if (!AggCheckCallContext(fcinfo, NULL))
		elog(ERROR, "gpuagg_hll_deserialize called in non-aggregate context");
	bytes = PG_GETARG_BYTEA_PP(0);
	initStringInfo(&buf);
	appendBinaryStringInfo(&buf, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	state = hll_new(CurrentMemoryContext);
	n = (int) pq_getmsgint(&buf, 4);
	for (int i = 0; i < n; i++)
	{
		uint32		entry = pq_getmsgint(&buf, 4);

		hll_add(state, entry >> 8, entry & 0xFF);
	}
	if (n < 0)
	{
		hll_make_dense(state);
		pq_copymsgbytes(&buf, (char *) state->dense, GPUAGG_HLL_REGISTERS);
	}
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

Datum
gpuagg_hll_final(PG_FUNCTION_ARGS)
{
	HllState   *state = PG_ARGISNULL(0) ? NULL : (HllState *) PG_GETARG_POINTER(0);
	int			counts[GPUAGG_HLL_MAX_RANK + 1] = {0};

	if (state == NULL)
		PG_RETURN_INT64(0);
	if (state->nsparse >= 0)
	{
		counts[0] = GPUAGG_HLL_REGISTERS - state->nsparse;
		for (int i = 0; i < state->nsparse; i++)
			counts[state->sparse[i] & 0xFF]++;
	}
	else
	{
		for (int i = 0; i < GPUAGG_HLL_REGISTERS; i++)
			counts[state->dense[i]]++;
	}
	PG_RETURN_INT64((int64) rint(gpuagg_hll_estimate(counts)));
}

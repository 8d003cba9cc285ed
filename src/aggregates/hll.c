/*
 * hll.c
 *	  gpu_approx_count_distinct as an ordinary aggregate.
 *
 * The state is a HyperLogLog sketch (hll.h) in the aggregate's context. It starts as a small hash
 * table of (register, rank) pairs, so that many small groups need little memory. It becomes the
 * array of registers when the table would be as large. New pairs are buffered in the state, and
 * entered several at a time. With many groups, registers are not in the CPU's caches, and misses
 * that do not depend on each other overlap.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "aggregates/aggcall.h"
#include "aggregates/alike.h"
#include "aggregates/argtype.h"
#include "aggregates/hll.h"
#include "aggregates/hll_value.h"
#include "aggregates/portable.h"
#include "common/compat.h"
#include "operators/decode_numeric.h"
#include "operators/hll.h"

#define HLL_SPARSE_START 8
#define HLL_SPARSE_MAX (GPUAGG_HLL_REGISTERS / (int) sizeof(uint32))
/* most pairs in a table, which has less than HLL_SPARSE_MAX entries */
#define HLL_SPARSE_MOST (HLL_SPARSE_MAX / 2 * 3 / 4)

#define HLL_PENDING 26 /* with this number, the state takes two cache lines */

/*
 * The transition state: buffered pairs, and either a table of pairs (sparse) or all registers
 * (dense).
 */
struct HllState
{
	int npending;
	uint32 pending[HLL_PENDING]; /* new pairs, in the form of sparse[] */
	int nsparse;                 /* entries in use; -1: dense */
	int capacity;                /* size of sparse[], a power of two; a quarter stays free */
	uint32 *sparse;              /* register << 8 | rank, hashed by register; 0: free */
	uint8 *dense;                /* GPUAGG_HLL_REGISTERS ranks */
};

PG_FUNCTION_INFO_V1(gpuagg_hll_transfn);
PG_FUNCTION_INFO_V1(gpuagg_hll_combine);
PG_FUNCTION_INFO_V1(gpuagg_hll_serialize);
PG_FUNCTION_INFO_V1(gpuagg_hll_deserialize);
PG_FUNCTION_INFO_V1(gpuagg_hll_final);

/* The sketch has the sparse form. */
HllState *
hll_create(MemoryContext cxt)
{
	HllState *state = MemoryContextAlloc(cxt, sizeof(HllState));

	state->npending = 0;
	state->nsparse = 0;
	state->capacity = HLL_SPARSE_START;
	state->sparse = MemoryContextAllocZero(cxt, sizeof(uint32) * state->capacity);
	state->dense = NULL;
	return state;
}

/* Changes a sparse state to the array of registers. */
static void
hll_make_dense(HllState *state)
{
	state->dense = MemoryContextAllocZero(GetMemoryChunkContext(state), GPUAGG_HLL_REGISTERS);
	for (int i = 0; i < state->capacity; i++)
		if (state->sparse[i])
			state->dense[state->sparse[i] >> 8] = state->sparse[i] & 0xFF;
	pfree(state->sparse);
	state->sparse = NULL;
	state->nsparse = -1;
}

/* Returns the entry of a register, or the free entry for it. */
static uint32 *
hll_entry(HllState *state, uint32 reg)
{
	uint32 mask = state->capacity - 1;
	uint32 at = reg & mask;

	while (state->sparse[at] && state->sparse[at] >> 8 != reg)
		at = (at + 1) & mask;
	return &state->sparse[at];
}

/* Doubles the table of a sparse state. */
static void
hll_grow(HllState *state)
{
	uint32 *old = state->sparse;
	int n = state->capacity;

	state->capacity *= 2;
	state->sparse =
		MemoryContextAllocZero(GetMemoryChunkContext(state), sizeof(uint32) * state->capacity);
	for (int i = 0; i < n; i++)
		if (old[i])
			*hll_entry(state, old[i] >> 8) = old[i];
	pfree(old);
}

/* Makes room for n pairs in an empty state, if they are few enough for a table. */
static void
hll_reserve(HllState *state, int n)
{
	int capacity = state->capacity;

	while (n * 4 > capacity * 3 && capacity * 2 < HLL_SPARSE_MAX)
		capacity *= 2;
	if (capacity == state->capacity)
		return;
	pfree(state->sparse);
	state->sparse = MemoryContextAllocZero(GetMemoryChunkContext(state), sizeof(uint32) * capacity);
	state->capacity = capacity;
}

/* Raises a register to `rank` if it is lower. */
static void
hll_raise(HllState *state, int reg, int rank)
{
	if (state->nsparse >= 0)
	{
		uint32 *entry = hll_entry(state, reg);

		if (*entry || (state->nsparse + 1) * 4 <= state->capacity * 3)
		{
			state->nsparse += *entry == 0;
			*entry = (uint32) reg << 8 | Max(*entry & 0xFF, (uint32) rank);
			return;
		}
		if (state->capacity * 2 < HLL_SPARSE_MAX)
		{
			hll_grow(state);
			state->nsparse++;
			*hll_entry(state, reg) = (uint32) reg << 8 | rank;
			return;
		}
		hll_make_dense(state);
	}
	if (state->dense[reg] < rank)
		state->dense[reg] = rank;
}

/* Enters the buffered pairs. Must be called before anything else is done with a state. */
static void
hll_flush(HllState *state)
{
	int i = 0;

	for (; i < state->npending && state->nsparse >= 0; i++)
		hll_raise(state, state->pending[i] >> 8, state->pending[i] & 0xFF);
	for (; i < state->npending; i++)
	{
		uint8 *reg = &state->dense[state->pending[i] >> 8];
		uint8 rank = state->pending[i] & 0xFF;

		*reg = Max(*reg, rank);
	}
	state->npending = 0;
}

/*
 * Adds a pair of a register and a rank to the buffer; enters the buffered pairs first if it is
 * full.
 */
static inline void
hll_add(HllState *state, int reg, int rank)
{
	if (state->npending == HLL_PENDING)
		hll_flush(state);
	state->pending[state->npending++] = (uint32) reg << 8 | rank;
}

/* Sets counts[r] to the number of registers with rank r. */
static void
hll_count_ranks(HllState *state, int *counts)
{
	int counters[4][GPUAGG_HLL_MAX_RANK + 1] = {{0}};

	hll_flush(state);
	if (state->nsparse >= 0)
	{
		counters[0][0] = GPUAGG_HLL_REGISTERS - state->nsparse;
		for (int i = 0; i < state->capacity; i++)
			if (state->sparse[i])
				counters[0][state->sparse[i] & 0xFF]++;
	}
	else
	{
		/*
		 * four sets of counters: consecutive increments of the same counter would wait for each
		 * other
		 */
		for (int i = 0; i < GPUAGG_HLL_REGISTERS; i += 4)
			for (int j = 0; j < 4; j++)
				counters[j][state->dense[i + j]]++;
	}
	for (int k = 0; k <= GPUAGG_HLL_MAX_RANK; k++)
		counts[k] = counters[0][k] + counters[1][k] + counters[2][k] + counters[3][k];
}

bool
hll_value_is_hash(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return true;
		default:
			return false;
	}
}

/*
 * Returns a value of a type for which hll_value_is_hash() is true in 64 bits, widened as a column
 * of the type is.
 */
static uint64
hll_value(Oid type, Datum value)
{
	switch (type)
	{
		case BOOLOID:
			return DatumGetBool(value);
		case INT2OID:
			return (uint64) (int64) DatumGetInt16(value);
		case INT4OID:
		case DATEOID:
			return (uint64) (int64) DatumGetInt32(value);
		case OIDOID:
			return DatumGetObjectId(value);
		default:
			return (uint64) DatumGetInt64(value);
	}
}

/*
 * Returns the hash of a numeric from that of its type's hash function, which ignores the sign and
 * is the same for NaN and the infinities.
 */
static uint64
hll_numeric_hash(Datum value, uint64 hash)
{
	struct varlena *numeric = PG_DETOAST_DATUM_PACKED(value);
	const uint8 *data = (const uint8 *) VARDATA_ANY(numeric);
	DecodeHeader header;

	if (decode_header(data, VARSIZE_ANY_EXHDR(numeric), &header))
		hash = header.negative ? ~hash : hash;
	else
		hash += decode_u16(data) >> 12; /* which of the three */
	if ((Pointer) numeric != DatumGetPointer(value))
		pfree(numeric);
	return hash;
}

/*
 * Returns the hash of a value of any type. Hashes of text are the same in all encodings, because
 * sketches are exchanged between databases.
 */
static uint64
hll_hash(TypeCacheEntry *type, Oid collation, Datum value)
{
	char *utf8;
	int len;
	uint64 hash;

	if (hll_value_is_hash(type->type_id))
		return hll_value(type->type_id, value);
	utf8 = alike_utf8(type->type_id, value, &len);
	if (utf8 != NULL && OidIsValid(collation) && get_collation_isdeterministic(collation))
	{
		hash = DatumGetUInt64(hash_any_extended((unsigned char *) utf8, len, 0));
		pfree(utf8);
		return hash;
	}
	hash = DatumGetUInt64(
		FunctionCall2Coll(&type->hash_extended_proc_finfo, collation, value, Int64GetDatum(0)));
	if (type->hash_extended_proc_finfo.fn_oid == F_HASH_NUMERIC_EXTENDED)
		hash = hll_numeric_hash(value, hash);
	return hash;
}

void
hll_add_hash(HllState *state, uint64 hash)
{
	int reg, rank;

	gpuagg_bin_hll(hash, &reg, &rank);
	hll_add(state, reg, rank);
}

/* Transition function of gpu_approx_count_distinct. Skips NULLs. */
Datum
gpuagg_hll_transfn(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	TypeCacheEntry *type = fcinfo->flinfo->fn_extra;
	HllState *state;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	state = PG_ARGISNULL(0) ? hll_create(cxt) : (HllState *) PG_GETARG_POINTER(0);
	if (type == NULL)
	{
		type = argtype_hashable(get_fn_expr_argtype(fcinfo->flinfo, 1));
		fcinfo->flinfo->fn_extra = type;
	}
	hll_add_hash(state, hll_hash(type, PG_GET_COLLATION(), PG_GETARG_DATUM(1)));
	PG_RETURN_POINTER(state);
}

/* A step for values of a type for which hll_value_is_hash() is true. */
#define STEP(name, type) \
	static bool name(Datum state, const NullableDatum *args) \
	{ \
		if (!args[0].isnull) \
			hll_add_hash((HllState *) DatumGetPointer(state), hll_value(type, args[0].value)); \
		return true; \
	}
STEP(step_int2, INT2OID)
STEP(step_int4, INT4OID)
STEP(step_int8, INT8OID)
#undef STEP

AggStep
hll_step(const FmgrInfo *transfn)
{
	if (transfn->fn_addr != gpuagg_hll_transfn)
		return NULL;
	switch (get_fn_expr_argtype(unconstify(FmgrInfo *, transfn), 1))
	{
		case INT2OID:
			return step_int2;
		case INT4OID:
		case DATEOID:
			return step_int4;
		case INT8OID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return step_int8;
		default:
			return NULL;
	}
}

/* Each register gets the larger rank. */
void
hll_merge(HllState *into, HllState *from)
{
	hll_flush(into);
	hll_flush(from);
	if (from->nsparse > 0)
	{
		for (int i = 0; i < from->capacity; i++)
			if (from->sparse[i])
				hll_raise(into, from->sparse[i] >> 8, from->sparse[i] & 0xFF);
	}
	if (from->nsparse < 0)
	{
		if (into->nsparse >= 0)
			hll_make_dense(into);
		for (int i = 0; i < GPUAGG_HLL_REGISTERS; i++)
			into->dense[i] = Max(into->dense[i], from->dense[i]);
	}
}

/* Combine function of gpu_approx_count_distinct. */
Datum
gpuagg_hll_combine(PG_FUNCTION_ARGS)
{
	MemoryContext cxt = aggregate_context(fcinfo);
	HllState *into;

	if (PG_ARGISNULL(1))
		RETURN_STATE_UNCHANGED();
	into = PG_ARGISNULL(0) ? hll_create(cxt) : (HllState *) PG_GETARG_POINTER(0);
	hll_merge(into, (HllState *) PG_GETARG_POINTER(1));
	PG_RETURN_POINTER(into);
}

/*
 * Writes a number of registers and their pairs in ascending order, if so few are not 0 that a table
 * has them; else -1 and all registers. Equal sketches have equal bytes, whatever form they had.
 */
static void
put_ranks(StringInfo buf, const uint8 *ranks)
{
	int n = 0;

	for (int i = 0; i < GPUAGG_HLL_REGISTERS; i++)
		n += ranks[i] != 0;
	pq_sendint32(buf, n <= HLL_SPARSE_MOST ? n : -1);
	if (n > HLL_SPARSE_MOST)
	{
		pq_sendbytes(buf, (const char *) ranks, GPUAGG_HLL_REGISTERS);
		return;
	}
	for (int i = 0; i < GPUAGG_HLL_REGISTERS; i += sizeof(uint64))
	{
		uint64 some;

		memcpy(&some, ranks + i, sizeof(some));
		for (int j = i; some != 0 && j < i + (int) sizeof(uint64); j++)
			if (ranks[j])
				pq_sendint32(buf, j << 8 | ranks[j]);
	}
}

void
hll_put(StringInfo buf, HllState *state)
{
	uint8 ranks[GPUAGG_HLL_REGISTERS] = {0};

	hll_flush(state);
	for (int i = 0; state->nsparse >= 0 && i < state->capacity; i++)
		if (state->sparse[i])
			ranks[state->sparse[i] >> 8] = state->sparse[i] & 0xFF;
	put_ranks(buf, state->nsparse >= 0 ? ranks : state->dense);
}

/* Serialization function of gpu_approx_count_distinct. */
Datum
gpuagg_hll_serialize(PG_FUNCTION_ARGS)
{
	StringInfoData buf;

	aggregate_context(fcinfo);
	pq_begintypsend(&buf);
	hll_put(&buf, (HllState *) PG_GETARG_POINTER(0));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/*
 * See hll_value.h. Raises an error if a register, which may come from the GPU server, is invalid.
 */
bytea *
hll_state(const int32 *registers)
{
	uint8 ranks[GPUAGG_HLL_REGISTERS];
	StringInfoData buf;

	for (int i = 0; i < GPUAGG_HLL_REGISTERS; i++)
	{
		/* registers may come from the GPU server */
		if (unlikely((uint32) registers[i] > GPUAGG_HLL_MAX_RANK))
			portable_invalid("sketch");
		ranks[i] = (uint8) registers[i];
	}
	pq_begintypsend(&buf);
	put_ranks(&buf, ranks);
	return pq_endtypsend(&buf);
}

/* States may come from other servers (partial_state.c), so everything that is read is checked. */
HllState *
hll_get(StringInfo buf)
{
	HllState *state = hll_create(CurrentMemoryContext);
	int n = (int) pq_getmsgint(buf, 4);

	if (n < -1 || n > HLL_SPARSE_MAX)
		portable_invalid("sketch");
	hll_reserve(state, n);
	for (int i = 0; i < n; i++)
	{
		uint32 entry = pq_getmsgint(buf, 4);

		if (entry >> 8 >= GPUAGG_HLL_REGISTERS || (entry & 0xFF) == 0 ||
			(entry & 0xFF) > GPUAGG_HLL_MAX_RANK)
			portable_invalid("sketch");
		hll_raise(state, entry >> 8, entry & 0xFF);
	}
	if (n < 0)
	{
		hll_make_dense(state);
		pq_copymsgbytes(buf, (char *) state->dense, GPUAGG_HLL_REGISTERS);
		for (int i = 0; i < GPUAGG_HLL_REGISTERS; i++)
			if (state->dense[i] > GPUAGG_HLL_MAX_RANK)
				portable_invalid("sketch");
	}
	return state;
}

/* Deserialization function of gpu_approx_count_distinct. */
Datum
gpuagg_hll_deserialize(PG_FUNCTION_ARGS)
{
	HllState *state;
	StringInfoData buf;

	aggregate_context(fcinfo);
	portable_read(&buf, PG_GETARG_BYTEA_PP(0));
	state = hll_get(&buf);
	pq_getmsgend(&buf);
	PG_RETURN_POINTER(state);
}

int64
hll_estimate(HllState *state)
{
	int counts[GPUAGG_HLL_MAX_RANK + 1];

	hll_count_ranks(state, counts);
	return (int64) rint(gpuagg_hll_estimate(counts));
}

/* Final function of gpu_approx_count_distinct. Returns 0 if there are no rows. */
Datum
gpuagg_hll_final(PG_FUNCTION_ARGS)
{
	HllState *state = PG_ARGISNULL(0) ? NULL : (HllState *) PG_GETARG_POINTER(0);

	PG_RETURN_INT64(state ? hll_estimate(state) : 0);
}

/*
 * cuda_stub_kernels.c
 *	  The base of the kernels on the host: versions, values of columns, operators; see
 *	  cuda_stub_kernels.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_stub_kernels.h"

static inline int64_t
load_integer(const GpuaggColumn *c, int64_t i)
{
	switch (c->type)
	{
		case GPUAGG_VALUE_I8:
			return ((const int8_t *) c->values)[i];
		case GPUAGG_VALUE_I16:
			return ((const int16_t *) c->values)[i];
		case GPUAGG_VALUE_I32:
			return ((const int32_t *) c->values)[i];
		default:
			return ((const int64_t *) c->values)[i];
	}
}

static inline double
load_double(const GpuaggColumn *c, int64_t i)
{
	if (c->type == GPUAGG_VALUE_F64)
		return ((const double *) c->values)[i];
	if (c->type == GPUAGG_VALUE_F32)
		return ((const float *) c->values)[i];
	return (double) load_integer(c, i);
}

static inline gpuagg_i128
load_wide(const GpuaggColumn *c, int64_t i)
{
	gpuagg_i128 value;

	if (c->type != GPUAGG_VALUE_I128)
		return load_integer(c, i);
	memcpy(&value, (const char *) c->values + i * sizeof(value), sizeof(value));
	return value;
}

_Thread_local cudaError_t stub_last_code;

const char *
gpuagg_cuda_last_error(void)
{
	return cudaGetErrorString(stub_last_code);
}

int
gpuagg_cuda_last_code(void)
{
	return stub_last_code;
}

GpuaggCudaStatus
device_kernel_versions(int *binary, int *ptx)
{
	LAUNCH();
	*binary = stub_binary;
	*ptx = stub_ptx;
	return GPUAGG_CUDA_OK;
}

/* ---- values ---- */

bool
stub_is_valid(const uint8_t *validity, int64_t i)
{
	return validity == NULL || (validity[i >> 3] >> (i & 7) & 1);
}

int64_t
stub_load_integer(const GpuaggColumn *c, int64_t i)
{
	return load_integer(c, i);
}

double
stub_load_double(const GpuaggColumn *c, int64_t i)
{
	return load_double(c, i);
}

GpuaggColumn
stub_column_of(const DeviceColumn *c)
{
	static const GpuaggValueType types[WIRE_TYPES] = {
		GPUAGG_VALUE_I8,   GPUAGG_VALUE_I16, GPUAGG_VALUE_I32, GPUAGG_VALUE_I64,
		GPUAGG_VALUE_I128, GPUAGG_VALUE_F32, GPUAGG_VALUE_F64};

	/* types without an entry are matrices: GPUAGG_VALUE_NATIVE */
	return (GpuaggColumn){.values = c->values, .validity = c->validity, .type = types[c->type]};
}

/* ---- operators ---- */

/* Returns an integer, or the code of a float's order; adding a zero of 0.0 makes -0 equal to 0. */
static int64_t
load_code(const GpuaggColumn *c, int64_t i, double zero)
{
	if (c->type == GPUAGG_VALUE_F32 || c->type == GPUAGG_VALUE_F64)
		return gpuagg_f64_code(load_double(c, i) + zero);
	return load_integer(c, i);
}

/* The input of an operator in row i of columns x and y. */
#define INPUT_int8_t(x, y, i) (int8_t)((x)->values ? load_integer(x, i) : 1)
#define INPUT_int32_t(x, y, i) (int32_t) load_integer(x, i)
#define INPUT_int64_t(x, y, i) load_integer(x, i)
#define INPUT_gpuagg_i128(x, y, i) load_wide(x, i)
#define INPUT_float(x, y, i) (float) load_double(x, i)
#define INPUT_double(x, y, i) load_double(x, i)
#define INPUT_gpuagg_f64x2(x, y, i) ((gpuagg_f64x2){load_double(x, i), load_double(y, i)})
#define INPUT_gpuagg_kv(x, y, i) ((gpuagg_kv){load_code(x, i, 0.0), load_code(y, i, -0.0)})
#define INPUT_gpuagg_mat2(x, y, i) ((const gpuagg_mat2 *) (x)->values)[i]
#define INPUT_gpuagg_mat3(x, y, i) ((const gpuagg_mat3 *) (x)->values)[i]
#define INPUT_gpuagg_mat4(x, y, i) ((const gpuagg_mat4 *) (x)->values)[i]
#define INPUT_gpuagg_mat5(x, y, i) ((const gpuagg_mat5 *) (x)->values)[i]

/*
 * The functions of StubOperator. A row's error bits are those of combining its value, as a state,
 * with the state before it.
 */
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	static int update_##name(void *states, const StubRows *rows) \
	{ \
		int errors = 0; \
		for (int64_t i = 0; i < rows->n; i++) \
		{ \
			int64_t row = rows->order ? rows->order[i] : i; \
			if (rows->bins[i] < 0 || (rows->filter && !rows->filter[row]) || \
				!stub_is_valid(rows->x->validity, row) || !stub_is_valid(rows->y->validity, row)) \
				continue; \
			input_t input = INPUT_##input_t(rows->x, rows->y, row); \
			state_t *state = (state_t *) states + rows->bins[i]; \
			state_t before = *state; \
			*state = name##_step(before, input); \
			errors |= name##_error(before, name##_lift(input), *state); \
		} \
		return errors; \
	} \
	static void pack_##name(void *inputs, const GpuaggColumn *x, const GpuaggColumn *y, int64_t n) \
	{ \
		(void) y; \
		for (int64_t i = 0; i < n; i++) \
			((input_t *) inputs)[i] = INPUT_##input_t(x, y, i); \
	} \
	static void fill_##name(char *state, int64_t n) \
	{ \
		state_t s = name##_identity(); \
		for (int64_t i = 0; i < n; i++) \
			((state_t *) state)[i] = s; \
	} \
	static void step_##name(char *state, const char *input) \
	{ \
		input_t x; \
		memcpy(&x, input, sizeof(x)); \
		*(state_t *) state = name##_step(*(state_t *) state, x); \
	} \
	static int combine_##name(void *state, const void *other) \
	{ \
		state_t before = *(state_t *) state; \
		*(state_t *) state = name##_combine(before, *(const state_t *) other); \
		return name##_error(before, *(const state_t *) other, *(state_t *) state); \
	}
#include "operators/monoid_list.h"
#undef MONOID

const StubOperator stub_operators[] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	{update_##name, pack_##name, fill_##name, step_##name, combine_##name},
#include "operators/monoid_list.h"
#undef MONOID
};

/* ---- checks ---- */

/* The column type of an operator's input; of an input of two columns, of both. */
#define NATIVE_int8_t GPUAGG_VALUE_I8
#define NATIVE_int32_t GPUAGG_VALUE_I32
#define NATIVE_int64_t GPUAGG_VALUE_I64
#define NATIVE_gpuagg_i128 GPUAGG_VALUE_I128
#define NATIVE_float GPUAGG_VALUE_F32
#define NATIVE_double GPUAGG_VALUE_F64
#define NATIVE_gpuagg_f64x2 GPUAGG_VALUE_F64
#define NATIVE_gpuagg_kv GPUAGG_VALUE_I64
#define NATIVE_gpuagg_mat2 GPUAGG_VALUE_NATIVE
#define NATIVE_gpuagg_mat3 GPUAGG_VALUE_NATIVE
#define NATIVE_gpuagg_mat4 GPUAGG_VALUE_NATIVE
#define NATIVE_gpuagg_mat5 GPUAGG_VALUE_NATIVE

static const GpuaggValueType native_types[] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) NATIVE_##input_t,
#include "operators/monoid_list.h"
#undef MONOID
};

/* Returns whether a column of this type may be an operator's input. */
static bool
type_feeds(GpuaggValueType type, MonoidId op)
{
	GpuaggValueType native = native_types[op];
	bool is_float = type == GPUAGG_VALUE_F32 || type == GPUAGG_VALUE_F64;
	bool is_integer = type >= GPUAGG_VALUE_I8 && type <= GPUAGG_VALUE_I64;

	if (native == GPUAGG_VALUE_F32)
		return type == native;
	if (native == GPUAGG_VALUE_F64)
		return is_float;
	if (op == MONOID_ARGMAX || op == MONOID_ARGMIN)
		return is_integer || is_float;
	if (native == GPUAGG_VALUE_I128)
		return is_integer || type == native;
	return is_integer && type <= native;
}

GpuaggCudaStatus
stub_check_slot(const GpuaggSlot *slot)
{
	bool pairs =
		slot->op == MONOID_REGR_F64 || slot->op == MONOID_ARGMAX || slot->op == MONOID_ARGMIN;

	if (!gpuagg_monoids[slot->op].commutative || slot->op == MONOID_HLL_MAX)
		return GPUAGG_CUDA_UNSUPPORTED;
	if (slot->op == MONOID_COUNT)
		return GPUAGG_CUDA_OK;
	if ((slot->x.values == NULL && !slot->x.computed) || (pairs && slot->y.values == NULL))
		return GPUAGG_CUDA_INVALID;
	return type_feeds(slot->x.type, slot->op) && (!pairs || type_feeds(slot->y.type, slot->op)) ?
		GPUAGG_CUDA_OK :
		GPUAGG_CUDA_UNSUPPORTED;
}

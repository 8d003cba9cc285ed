/*
 * cuda_stub_kernels.c
 *	  What the kernels on the host share: what a launch returns, the values of a row and the
 * operators.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_stub_kernels.h"

_Thread_local cudaError_t stub_last_code;

const char *
gpuagg_cuda_last_error(void)
{
	return cudaGetErrorName(stub_last_code);
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

double
stub_load_double(const GpuaggColumn *c, int64_t i)
{
	if (c->type == GPUAGG_VALUE_F64)
		return ((const double *) c->values)[i];
	if (c->type == GPUAGG_VALUE_F32)
		return ((const float *) c->values)[i];
	return (double) stub_load_integer(c, i);
}

void
stub_check_input(const GpuaggSlot *slot)
{
	if ((slot->x.type != GPUAGG_VALUE_F32 && slot->x.type != GPUAGG_VALUE_F64) ||
		(slot->op != MONOID_MAX_I64 && slot->op != MONOID_MIN_I64 && slot->op != MONOID_SUM_I64))
		return;
	printf("Bail out! floats for an operator of integers\n");
	exit(1);
}

GpuaggColumn
stub_column_of(const DeviceColumn *c)
{
	static const GpuaggValueType types[WIRE_TYPES] = {
		GPUAGG_VALUE_I8,   GPUAGG_VALUE_I16, GPUAGG_VALUE_I32, GPUAGG_VALUE_I64,
		GPUAGG_VALUE_I128, GPUAGG_VALUE_F32, GPUAGG_VALUE_F64};

	return (GpuaggColumn){.values = c->values, .validity = c->validity, .type = types[c->type]};
}

/* ---- operators ---- */

/* Of a float that of its order; only a zero of 0.0 changes -0. */
static int64_t
load_code(const GpuaggColumn *c, int64_t i, double zero)
{
	if (c->type == GPUAGG_VALUE_F32 || c->type == GPUAGG_VALUE_F64)
		return gpuagg_f64_code(stub_load_double(c, i) + zero);
	return stub_load_integer(c, i);
}

#define INPUT_int8_t(r) (int8_t)((r)->x.values ? stub_load_integer(&(r)->x, (r)->row) : 1)
#define INPUT_int32_t(r) (int32_t) stub_load_integer(&(r)->x, (r)->row)
#define INPUT_int64_t(r) stub_load_integer(&(r)->x, (r)->row)
#define INPUT_gpuagg_i128(r) (gpuagg_i128) stub_load_integer(&(r)->x, (r)->row)
#define INPUT_float(r) (float) stub_load_double(&(r)->x, (r)->row)
#define INPUT_double(r) stub_load_double(&(r)->x, (r)->row)
#define INPUT_gpuagg_f64x2(r) \
	((gpuagg_f64x2){stub_load_double(&(r)->x, (r)->row), stub_load_double(&(r)->y, (r)->row)})
#define INPUT_gpuagg_kv(r) \
	((gpuagg_kv){load_code(&(r)->x, (r)->row, 0.0), load_code(&(r)->y, (r)->row, -0.0)})
#define INPUT_gpuagg_mat2(r) ((const gpuagg_mat2 *) (r)->x.values)[(r)->row]
#define INPUT_gpuagg_mat3(r) ((const gpuagg_mat3 *) (r)->x.values)[(r)->row]
#define INPUT_gpuagg_mat4(r) ((const gpuagg_mat4 *) (r)->x.values)[(r)->row]
#define INPUT_gpuagg_mat5(r) ((const gpuagg_mat5 *) (r)->x.values)[(r)->row]

/*
 * Of each operator: a state with a row more, n identities, and a state with a
 * packed input more.
 */
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	static int row_##name(void *state, const StubInput *r) \
	{ \
		state_t a, b, s; \
		input_t x = INPUT_##input_t(r); \
		memcpy(&a, state, sizeof(a)); \
		b = name##_lift(x); \
		s = name##_step(a, x); \
		memcpy(state, &s, sizeof(s)); \
		return name##_error(a, b, s); \
	} \
	static void fill_##name(char *state, int64_t n) \
	{ \
		state_t s = name##_identity(); \
		for (int64_t i = 0; i < n; i++) \
			memcpy(state + i * sizeof(s), &s, sizeof(s)); \
	} \
	static void step_##name(char *state, const char *input) \
	{ \
		state_t s; \
		input_t x; \
		memcpy(&s, state, sizeof(s)); \
		memcpy(&x, input, sizeof(x)); \
		s = name##_step(s, x); \
		memcpy(state, &s, sizeof(s)); \
	}
#include "operators/monoid_list.h"
#undef MONOID

const StubOperator stub_operators[] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	{row_##name, fill_##name, step_##name},
#include "operators/monoid_list.h"
#undef MONOID
};

/*
 * standin_operators.c
 *	  The values of a row, and the operators of the stand-in; see standin.h.
 */
#include <string.h>

#include "standin.h"

int64_t
standin_read_integer(const Row *r, int c)
{
	const char *p = r->col[c]->values;

	if (p == NULL)
		return 0; /* COUNT reads only the validity */
	switch (r->col[c]->type)
	{
		case WIRE_I8:
			return ((const int8_t *) p)[r->i];
		case WIRE_I16:
			return ((const int16_t *) p)[r->i];
		case WIRE_I32:
			return ((const int32_t *) p)[r->i];
		case WIRE_I64:
			return ((const int64_t *) p)[r->i];
		default:
			return 0;
	}
}

double
standin_read_double(const Row *r, int c)
{
	const char *p = r->col[c]->values;

	if (r->col[c]->type == WIRE_F64)
		return ((const double *) p)[r->i];
	if (r->col[c]->type == WIRE_F32)
		return ((const float *) p)[r->i];
	return (double) standin_read_integer(r, c);
}

static gpuagg_i128
read_wide(const Row *r)
{
	gpuagg_i128 x;

	if (r->col[0]->type != WIRE_I128)
		return standin_read_integer(r, 0);
	memcpy(&x, r->col[0]->values + 16 * (size_t) r->i, 16);
	return x;
}

#define READ_MATRIX(k) \
	static gpuagg_mat##k read_mat##k(const Row *r) \
	{ \
		gpuagg_mat##k m; \
		memcpy(&m, r->col[0]->values + sizeof(m) * r->i, sizeof(m)); \
		return m; \
	}
READ_MATRIX(2)
READ_MATRIX(3)
READ_MATRIX(4)
READ_MATRIX(5)

#define INPUT_int8_t(r) (r->col[0] ? (int8_t) standin_read_integer(r, 0) : 1)
#define INPUT_int32_t(r) ((int32_t) standin_read_integer(r, 0))
#define INPUT_uint32_t(r) ((uint32_t) standin_read_integer(r, 0))
#define INPUT_int64_t(r) standin_read_integer(r, 0)
#define INPUT_float(r) ((float) standin_read_double(r, 0))
#define INPUT_double(r) standin_read_double(r, 0)
#define INPUT_gpuagg_i128(r) read_wide(r)
#define INPUT_gpuagg_f64x2(r) ((gpuagg_f64x2){standin_read_double(r, 0), standin_read_double(r, 1)})
#define INPUT_gpuagg_kv(r) \
	(r->col[1] ? (gpuagg_kv){standin_read_integer(r, 0), standin_read_integer(r, 1)} : \
				 (gpuagg_kv){r->valid ? standin_read_integer(r, 0) : 0, r->valid})
#define INPUT_gpuagg_mat2(r) read_mat2(r)
#define INPUT_gpuagg_mat3(r) read_mat3(r)
#define INPUT_gpuagg_mat4(r) read_mat4(r)
#define INPUT_gpuagg_mat5(r) read_mat5(r)

#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	static int row_##name(void *state, const Row *r) \
	{ \
		state_t a, b, s; \
		input_t x = INPUT_##input_t(r); \
		(void) r; \
		memcpy(&a, state, sizeof(a)); \
		b = name##_lift(x); \
		s = name##_step(a, x); \
		memcpy(state, &s, sizeof(s)); \
		return name##_error(a, b, s); \
	} \
	static int combine_##name(void *state, const void *other) \
	{ \
		state_t a, b, r; \
		memcpy(&a, state, sizeof(a)); \
		memcpy(&b, other, sizeof(b)); \
		r = name##_combine(a, b); \
		memcpy(state, &r, sizeof(r)); \
		return name##_error(a, b, r); \
	} \
	static void fill_##name(char *state, uint64_t n) \
	{ \
		state_t s = name##_identity(); \
		for (uint64_t i = 0; i < n; i++) \
			memcpy(state + i * sizeof(s), &s, sizeof(s)); \
	}
#include "operators/monoid_list.h"
#undef MONOID

const Operator standin_operators[] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	{row_##name, combine_##name, fill_##name},
#include "operators/monoid_list.h"
#undef MONOID
};

bool
standin_valid(const Column *col, uint32_t i)
{
	return col->validity == NULL || (col->validity[i >> 3] >> (i & 7) & 1);
}

/*
 * cuda_stub_kernels.c
 *	  The kernel library and the server's small kernels on the host, row by row
 *	  with the operators of monoid.h, for tests of the device layer.
 *
 * Each function is one launch of the stub.  What the headers leave undefined (a
 * hash table's order, workspaces) is as simple as possible, but workspaces are
 * requested as by the real library.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operators/bins.h"
#include "cuda_stub.h"
#include "server/device_kernels.h"
#include "limit_host.h"
#include "operators/hll.h"
#include "operators/vector_run.h"

#define WORKSPACE 4096

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

/* Answers how much memory is wanted; writes to all of it later, so that too little shows. */
#define SIZE(workspace, workspace_bytes) \
	do { \
		if ((workspace) == NULL) \
		{ \
			*(workspace_bytes) = WORKSPACE; \
			return GPUAGG_CUDA_OK; \
		} \
		if (*(workspace_bytes) < WORKSPACE) \
			return GPUAGG_CUDA_WORKSPACE; \
		memset(workspace, 0x77, WORKSPACE); \
	} while (0)

GpuaggCudaStatus
device_kernel_versions(int *binary, int *ptx)
{
	LAUNCH();
	*binary = stub_binary;
	*ptx = stub_ptx;
	return GPUAGG_CUDA_OK;
}

/* ---- values ---- */

typedef struct Input
{
	GpuaggColumn x;
	GpuaggColumn y;
	int64_t		row;			/* in the batch */
} Input;

static bool
is_valid(const uint8_t *validity, int64_t i)
{
	return validity == NULL || (validity[i >> 3] >> (i & 7) & 1);
}

static int64_t
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

static double
load_double(const GpuaggColumn *c, int64_t i)
{
	if (c->type == GPUAGG_VALUE_F64)
		return ((const double *) c->values)[i];
	if (c->type == GPUAGG_VALUE_F32)
		return ((const float *) c->values)[i];
	return (double) load_integer(c, i);
}

/* Of a float that of its order; only a zero of 0.0 changes -0. */
static int64_t
load_code(const GpuaggColumn *c, int64_t i, double zero)
{
	if (c->type == GPUAGG_VALUE_F32 || c->type == GPUAGG_VALUE_F64)
		return gpuagg_f64_code(load_double(c, i) + zero);
	return load_integer(c, i);
}

#define INPUT_int8_t(r) (int8_t) ((r)->x.values ? load_integer(&(r)->x, (r)->row) : 1)
#define INPUT_int32_t(r) (int32_t) load_integer(&(r)->x, (r)->row)
#define INPUT_int64_t(r) load_integer(&(r)->x, (r)->row)
#define INPUT_gpuagg_i128(r) (gpuagg_i128) load_integer(&(r)->x, (r)->row)
#define INPUT_float(r) (float) load_double(&(r)->x, (r)->row)
#define INPUT_double(r) load_double(&(r)->x, (r)->row)
#define INPUT_gpuagg_f64x2(r) ((gpuagg_f64x2) {load_double(&(r)->x, (r)->row), load_double(&(r)->y, (r)->row)})
#define INPUT_gpuagg_kv(r) ((gpuagg_kv) {load_code(&(r)->x, (r)->row, 0.0), load_code(&(r)->y, (r)->row, -0.0)})
#define INPUT_gpuagg_mat2(r) ((const gpuagg_mat2 *) (r)->x.values)[(r)->row]
#define INPUT_gpuagg_mat3(r) ((const gpuagg_mat3 *) (r)->x.values)[(r)->row]
#define INPUT_gpuagg_mat4(r) ((const gpuagg_mat4 *) (r)->x.values)[(r)->row]
#define INPUT_gpuagg_mat5(r) ((const gpuagg_mat5 *) (r)->x.values)[(r)->row]

/*
 * Of each operator: a state with a row more, n identities, and a state with a
 * packed input more.
 */
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	static int row_##name(void *state, const Input *r) \
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

static const struct
{
	int			(*row) (void *state, const Input *r);
	void		(*fill) (char *state, int64_t n);
	void		(*step) (char *state, const char *input);
}			operators[] = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) {row_##name, fill_##name, step_##name},
#include "operators/monoid_list.h"
#undef MONOID
};

/* ---- histograms ---- */

GpuaggCudaStatus
gpuagg_hist_init(MonoidId op, void *states, int64_t nbins, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	operators[op].fill(states, nbins);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_hist_choose(const GpuaggHist *hist, GpuaggHistChoice *choice)
{
	memset(choice, 0, sizeof(*choice));
	choice->strategy = GPUAGG_HIST_GLOBAL;
	choice->together = hist->nslots <= 3 && hist->bins.nbins % 3 != 2;
	/* a call of each two slots, and now and then none */
	if (hist->strategy == GPUAGG_HIST_TILES && (hist->nslots > 2 || hist->bins.nbins % 4 == 3))
		return GPUAGG_CUDA_UNSUPPORTED;
	return GPUAGG_CUDA_OK;
}

/* ---- programs of calls in tiles ---- */

/* A column or filter in memory, made of an operand of the program. */
typedef struct Made
{
	char	   *values;
	uint8_t    *validity;
	uint16_t	operand;
	int			width;
} Made;

/* An operand's value in a row. */
static VectorCell
operand_cell(const GpuaggProgram *p, int operand, int64_t position, const VectorCell *temporaries, VectorCell last)
{
	if (operand == GPUAGG_LAST)
		return last;
	if (operand >= GPUAGG_INPUT && operand < GPUAGG_LAST)
	{
		const GpuaggColumn *c = &p->input[operand - GPUAGG_INPUT];

		return vector_cell(c->type == GPUAGG_VALUE_F32 ? ((const uint32_t *) c->values)[position] : load_integer(c, position),
						   is_valid(c->validity, position) ? VECTOR_VALUE : VECTOR_NULL);
	}
	if (operand >= VECTOR_CONSTANT)
		return vector_cell(p->steps.constants[operand - VECTOR_CONSTANT].bits, (int) p->steps.constants[operand - VECTOR_CONSTANT].state);
	return temporaries[operand];
}

/* A row after conditions. */
typedef struct RowState
{
	bool		holds;			/* all were true */
	bool		open;			/* none was false */
	bool		unclear;		/* one was untold before */
} RowState;

static void
meet_condition(VectorCell x, RowState *row)
{
	row->unclear |= row->open && x.state == VECTOR_UNTOLD;
	row->open &= x.state != VECTOR_VALUE || x.value != 0;
	row->holds &= x.state == VECTOR_VALUE && x.value != 0;
}

/* Runs the steps for a row of the inputs; returns the last one's result. */
static VectorCell
run_steps(const GpuaggProgram *p, int64_t position, VectorCell *temporaries, RowState *row)
{
	VectorCell	last = {0, VECTOR_UNTOLD};

	for (uint32_t i = 0; i < p->steps.ninstructions; i++)
	{
		VectorInstruction in = p->steps.instructions[i];
		int64_t		values[4];
		uint8_t		states[4];

		uint16_t	from[3] = {in.a, in.b, in.c};
		bool		condition = in.op & GPUAGG_CONDITION;
		VectorInstruction local = in;
		int			n;

		local.op &= ~GPUAGG_CONDITION;
		n = vector_operands(local.op);
		for (int k = 0; k < n; k++)
		{
			VectorCell	cell = operand_cell(p, from[k], position, temporaries, last);

			values[k] = cell.value;
			states[k] = cell.state;
		}
		local.a = 0;
		local.b = in.b >= VECTOR_CONSTANT ? in.b : 1;
		local.c = n > 2 ? 2 : in.c;
		local.r = 3;
		if (local.op == VECTOR_LOOKUP)
			vector_lookup(&local, p->tables, p->cells, p->cell_states, p->steps.constants, values, states, 1, 0, 1, 1);
		else
			vector_run(&local, p->steps.constants, values, states, 1, 0, 1, 1);
		last = vector_cell(values[3], states[3]);
		if (condition)
			meet_condition(last, row);
		if (in.r != VECTOR_NONE)
			temporaries[in.r] = last;
	}
	return last;
}

/* Does the row count, after the program? */
static bool
ends_well(const GpuaggProgram *p, int64_t position, const VectorCell *temporaries, VectorCell last, RowState row)
{
	bool		told = true;

	if (p->steps.filter != VECTOR_NONE)
		meet_condition(operand_cell(p, p->steps.filter, position, temporaries, last), &row);
	for (int c = 0; c < p->nchecks; c++)
	{
		VectorCell	cell = operand_cell(p, p->check[c].operand, position, temporaries, last);

		told &= cell.state == VECTOR_VALUE || (cell.state == VECTOR_NULL && p->check[c].nullable);
	}
	*p->untold += row.unclear || (row.holds && !told);
	return row.holds && told;
}

static int
value_width(GpuaggValueType type)
{
	return type == GPUAGG_VALUE_I8 ? 1 : type == GPUAGG_VALUE_I16 ? 2 : type == GPUAGG_VALUE_I32 || type == GPUAGG_VALUE_F32 ? 4 : 8;
}

/* Memory for what the program computes of a column or filter, which then has it. */
static void
make_column(Made *made, int *n, int64_t nrows, uint16_t operand, int width, const void **values, const uint8_t **validity)
{
	Made	   *m = &made[(*n)++];

	*m = (Made) {malloc(nrows * 8 + 1), calloc(nrows / 8 + 1, 1), operand, width};
	*values = m->values;
	if (validity)
		*validity = m->validity;
}

/* The same call, with columns for all that a program computes, which `made` gets, and a filter. */
static int
make_columns(GpuaggHist *hist, Made *made, uint8_t *filter)
{
	const GpuaggProgram *p = hist->program;
	int			n = 0;

	for (int c = 0; c < hist->bins.ncolumns; c++)
		if (hist->bins.column[c].computed)
			make_column(made, &n, hist->nrows, hist->bins.column[c].operand, value_width(hist->bins.column[c].type),
						&hist->bins.column[c].values, &hist->bins.column[c].validity);
	for (int s = 0; s < hist->nslots; s++)
	{
		GpuaggSlot *slot = &hist->slot[s];
		const void *values;

		if (slot->x.computed)
			make_column(made, &n, hist->nrows, slot->x.operand, value_width(slot->x.type), &slot->x.values, &slot->x.validity);
		if (!slot->filter_computed)
			continue;
		make_column(made, &n, hist->nrows, slot->filter_operand, 1, &values, NULL);
		slot->filter = values;
	}
	for (int64_t i = 0; i < hist->nrows; i++)
	{
		VectorCell	temporaries[VECTOR_MAX_REGISTERS];
		VectorCell	last;
		RowState	row = {true, true, false};

		filter[i] = 0;
		if (hist->bins.filter && !hist->bins.filter[i])
			continue;
		last = run_steps(p, hist->input_row + i, temporaries, &row);
		filter[i] = ends_well(p, hist->input_row + i, temporaries, last, row);
		for (int m = 0; m < n; m++)
		{
			VectorCell	cell = operand_cell(p, made[m].operand, hist->input_row + i, temporaries, last);
			int64_t		value = cell.state == VECTOR_VALUE ? cell.value : 0;

			memcpy(made[m].values + i * made[m].width, &value, made[m].width);
			made[m].validity[i / 8] |= (cell.state == VECTOR_VALUE) << (i & 7);
		}
	}
	hist->bins.filter = filter;
	return n;
}

/* The bin of a row by ranges of keys; -1: none. */
static int64_t
range_bin(const GpuaggBins *bins, int64_t i, GpuaggHistStatus *status)
{
	int64_t		bin = 0;
	bool		outside = false;

	for (int c = 0; c < bins->ncolumns && bin >= 0; c++)
	{
		int64_t		digit = bins->extent[c] - 1;

		if (is_valid(bins->column[c].validity, i))
		{
			digit = load_integer(&bins->column[c], i) - bins->min[c];
			if (digit < 0 || digit >= bins->extent[c] - bins->null_bin[c])
			{
				outside = true;
				digit = -1;
			}
		}
		else if (!bins->null_bin[c])
			digit = -1;
		bin = digit < 0 ? -1 : bin * bins->extent[c] + digit;
	}
	status->outside += outside;
	return bin;
}

static int64_t
bin_of(const GpuaggBins *bins, int64_t i, GpuaggHistStatus *status)
{
	if (bins->filter && !bins->filter[i])
		return -1;
	return bins->kind == GPUAGG_BIN_INDEX ? ((const int32_t *) bins->column[0].values)[i] :
		range_bin(bins, i, status);
}

/* The library refuses floats for integers, other than of pairs. */
static void
check_input(const GpuaggSlot *slot)
{
	if ((slot->x.type != GPUAGG_VALUE_F32 && slot->x.type != GPUAGG_VALUE_F64) ||
		(slot->op != MONOID_MAX_I64 && slot->op != MONOID_MIN_I64 && slot->op != MONOID_SUM_I64))
		return;
	printf("Bail out! floats for an operator of integers\n");
	exit(1);
}

GpuaggCudaStatus
gpuagg_hist_update(const GpuaggHist *hist, void *workspace, size_t *workspace_bytes,
				   gpuagg_stream stream)
{
	(void) stream;
	if (hist->bins.nbins < 1)
		return GPUAGG_CUDA_INVALID;
	for (int s = 0; s < hist->nslots; s++)
		check_input(&hist->slot[s]);
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	if (hist->program)
	{
		GpuaggHist	there = *hist;
		Made		made[GPUAGG_MAX_KEYS + 2 * GPUAGG_MAX_SLOTS];
		uint8_t    *filter = malloc(hist->nrows + 1);
		int			n = make_columns(&there, made, filter);
		GpuaggCudaStatus status;

		there.program = NULL;
		status = gpuagg_hist_update(&there, workspace, workspace_bytes, stream);
		for (int m = 0; m < n; m++)
		{
			free(made[m].values);
			free(made[m].validity);
		}
		free(filter);
		return status;
	}
	for (int64_t i = 0; i < hist->nrows; i++)
	{
		int64_t		bin = bin_of(&hist->bins, i, hist->status);

		for (int s = 0; s < hist->nslots; s++)
		{
			const GpuaggSlot *slot = &hist->slot[s];
			Input		in = {slot->x, slot->y, i};

			if (bin < 0 || bin >= hist->bins.nbins || (slot->filter && !slot->filter[i]) ||
				!is_valid(slot->x.validity, i) || !is_valid(slot->y.validity, i))
				continue;
			hist->status->errors[s] |=
				operators[slot->op].row((char *) slot->states + bin * gpuagg_monoids[slot->op].state_size, &in);
		}
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_hist_bins(const GpuaggBins *bins, int64_t nrows, int32_t *out, GpuaggHistStatus *status,
				 gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
		out[i] = (int32_t) bin_of(bins, i, status);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_key_range(const GpuaggColumn *column, int64_t nrows, int64_t *range, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	range[0] = INT64_MAX;
	range[1] = INT64_MIN;
	for (int64_t i = 0; i < nrows; i++)
		if (is_valid(column->validity, i))
		{
			int64_t		v = load_integer(column, i);

			range[0] = v < range[0] ? v : range[0];
			range[1] = v > range[1] ? v : range[1];
		}
	return GPUAGG_CUDA_OK;
}

/* ---- hash group-by: linear probing over numbers of groups ---- */

static int64_t
slots_of(int64_t capacity)
{
	return 2 * capacity + 64;
}

size_t
gpuagg_group_slot_bytes(int key_bytes, int64_t capacity)
{
	(void) key_bytes;
	return slots_of(capacity) * sizeof(int32_t);
}

static void
clear_table(const GpuaggGroupTable *table)
{
	memset(table->slots, 0xff, gpuagg_group_slot_bytes(table->key_bytes, table->capacity));
	table->counters->groups = table->counters->pending = table->counters->lost = 0;
	table->counters->null_bin = -1;
}

GpuaggCudaStatus
gpuagg_group_init(const GpuaggGroupTable *table, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	clear_table(table);
	return GPUAGG_CUDA_OK;
}

/* The bin of a key, new or not; -1 if it is new and there is no room. */
static int32_t
find_or_add(const GpuaggGroupTable *table, const char *key)
{
	int			width = table->key_bytes;
	int32_t    *slots = table->slots;
	char	   *keys = table->keys;
	uint64_t	h = 0xcbf29ce484222325ULL;
	int64_t		at;

	for (int i = 0; i < width; i++)
		h = (h ^ (unsigned char) key[i]) * 0x100000001b3ULL;
	at = (int64_t) ((h ^ h >> 32) % slots_of(table->capacity));
	while (slots[at] >= 0 && memcmp(keys + (size_t) slots[at] * width, key, width) != 0)
		at = (at + 1) % slots_of(table->capacity);
	if (slots[at] >= 0)
		return slots[at];
	/* as the real one, it goes on counting */
	if (table->counters->groups >= (uint64_t) table->capacity)
	{
		table->counters->groups++;
		return -1;
	}
	slots[at] = (int32_t) table->counters->groups++;
	memcpy(keys + (size_t) slots[at] * width, key, width);
	return slots[at];
}

GpuaggCudaStatus
gpuagg_group_lookup(const GpuaggGroupTable *table, const void *keys, const uint8_t *validity,
					const uint8_t *filter, int64_t nrows, int retry, int32_t *bins,
					gpuagg_stream stream)
{
	(void) validity, (void) stream;
	LAUNCH();
	table->counters->pending = 0;
	for (int64_t i = 0; i < nrows; i++)
	{
		if (retry && bins[i] != -1)
			continue;
		if (filter && !filter[i])
		{
			bins[i] = GPUAGG_GROUP_FILTERED;
			continue;
		}
		bins[i] = find_or_add(table, (const char *) keys + i * table->key_bytes);
		table->counters->pending += bins[i] < 0;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_group_grow(const GpuaggGroupTable *from, const GpuaggGroupTable *to, gpuagg_stream stream)
{
	int64_t		groups = from->counters->groups < (uint64_t) from->capacity ?
		(int64_t) from->counters->groups : from->capacity;

	(void) stream;
	LAUNCH();
	clear_table(to);
	for (int64_t g = 0; g < groups; g++)
		find_or_add(to, (const char *) from->keys + g * from->key_bytes);
	return GPUAGG_CUDA_OK;
}

/* ---- rows in order ---- */

typedef struct Sort
{
	int			nwords;
	const GpuaggSortWord *words;
	uint64_t	without;		/* bits that are not looked at, of the one word */
} Sort;

static _Thread_local Sort sorting;

static int
compare_rows(const void *a, const void *b)
{
	int64_t		x = *(const int64_t *) a;
	int64_t		y = *(const int64_t *) b;

	for (int w = 0; w < sorting.nwords; w++)
	{
		GpuaggColumn column = {.values = sorting.words[w].values,.type = sorting.words[w].type};
		int64_t		u = load_integer(&column, x) & ~sorting.without;
		int64_t		v = load_integer(&column, y) & ~sorting.without;

		if (u != v)
			return (u < v) != sorting.words[w].descending ? -1 : 1;
	}
	return x < y ? -1 : x > y;
}

GpuaggCudaStatus
gpuagg_cuda_sort_rows(int64_t n, int nwords, const GpuaggSortWord *words, int64_t *permutation,
					  void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		permutation[i] = i;
	sorting = (Sort) {nwords, words, 0};
	qsort(permutation, n, sizeof(int64_t), compare_rows);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_cuda_select_rows(int64_t n, const int64_t *permutation, const uint8_t *keep,
						int64_t *selected, int64_t *nselected_device, void *workspace,
						size_t *workspace_bytes, gpuagg_stream stream)
{
	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	*nselected_device = 0;
	for (int64_t i = 0; i < n; i++)
		if (keep[permutation[i]])
			selected[(*nselected_device)++] = permutation[i];
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_cuda_gather(int row_size, const void *in, const int64_t *index, int64_t n,
				   const int64_t *n_device, void *out, gpuagg_stream stream)
{
	(void) n_device, (void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		memcpy((char *) out + i * row_size, (const char *) in + index[i] * row_size, row_size);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_cuda_segments_from_keys(int key_size, const void *keys, int64_t n, int64_t *offsets,
							   int64_t *nsegments_device, GpuaggSegments *segments,
							   void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	int64_t		nsegments = 0;

	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		if (i == 0 || memcmp((const char *) keys + (i - 1) * key_size,
							 (const char *) keys + i * key_size, key_size) != 0)
			offsets[nsegments++] = i;
	offsets[nsegments] = n;
	*nsegments_device = nsegments;
	memset(segments, 0, sizeof(*segments));
	segments->nvalues = n;
	segments->nsegments = n;
	segments->nsegments_device = nsegments_device;
	segments->offsets = offsets;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_cuda_segmented_reduce(const GpuaggSegments *segments, MonoidId op, const void *values, void *states,
							 uint32_t *errors, void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	(void) errors, (void) stream;
	if (gpuagg_monoids[op].commutative)
		return GPUAGG_CUDA_UNSUPPORTED;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	for (int64_t s = 0; s < segments->nsegments; s++)
	{
		char	   *state = (char *) states + s * gpuagg_monoids[op].state_size;

		operators[op].fill(state, 1);
		for (int64_t i = segments->offsets[s]; i < segments->offsets[s + 1]; i++)
			operators[op].step(state, (const char *) values + i * gpuagg_monoids[op].input_size);
	}
	return GPUAGG_CUDA_OK;
}

/* ---- the server's small kernels ---- */

static GpuaggColumn
column_of(const DeviceColumn *c)
{
	static const GpuaggValueType types[WIRE_TYPES] = {
		GPUAGG_VALUE_I8, GPUAGG_VALUE_I16, GPUAGG_VALUE_I32, GPUAGG_VALUE_I64,
		GPUAGG_VALUE_I128, GPUAGG_VALUE_F32, GPUAGG_VALUE_F64
	};

	return (GpuaggColumn) {.values = c->values,.validity = c->validity,.type = types[c->type]};
}

GpuaggCudaStatus
device_pack_keys(const PackKeys *pack, int64_t nrows, void *out, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	memset(out, 0, nrows * pack->key_bytes);
	for (int64_t i = 0; i < nrows; i++)
	{
		char	   *key = (char *) out + i * pack->key_bytes;

		for (int k = 0; k < pack->nkeys; k++)
			if (is_valid(pack->column[k].validity, i))
				memcpy(key + pack->offset[k],
					   (const char *) pack->column[k].values + i * pack->width[k], pack->width[k]);
			else
				key[pack->null_offset] |= 1 << k;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_scatter(const void *from, size_t row_bytes, const int32_t *map, int64_t n, void *to,
			   gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		if (map[i] >= 0)
			memcpy((char *) to + map[i] * row_bytes, (const char *) from + i * row_bytes, row_bytes);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_gather(const void *from, size_t row_bytes, const int32_t *map, int64_t n, void *to,
			  gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		memcpy((char *) to + i * row_bytes, (const char *) from + map[i] * row_bytes, row_bytes);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_take_keys(const void *states, int64_t n, int64_t *to, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		to[i] = ((const gpuagg_kv *) states)[i].key;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_slot_bins(const SlotBins *b, int64_t nrows, int32_t *out, gpuagg_stream stream)
{
	GpuaggColumn column = column_of(&b->column);

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		int			group = b->group ? b->group[i] : 0;
		int			bin;

		out[i] = -1;
		if (group < 0 || !is_valid(b->column.validity, i) || (b->filter && !b->filter[i]))
			continue;
		if (b->kind == WIRE_BIN_UNIFORM)
			bin = gpuagg_bin_uniform(load_double(&column, i), b->lo, b->hi, b->n);
		else
			bin = gpuagg_bin_thresholds(load_double(&column, i), b->thresholds, b->n);
		out[i] = group * b->width + bin;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_update_sketches(const SketchRows *rows, int64_t nrows, void *registers, gpuagg_stream stream)
{
	GpuaggColumn column = column_of(&rows->column);

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		int64_t		group = rows->group ? rows->group[i] - rows->min : 0;
		int			bin,
					rank;
		uint8_t    *to;

		if (group < 0 || group >= rows->ngroups || !is_valid(column.validity, i) || (rows->filter && !rows->filter[i]))
			continue;
		gpuagg_bin_hll((uint64_t) load_integer(&column, i), &bin, &rank);
		to = (uint8_t *) registers + (size_t) group * GPUAGG_HLL_REGISTERS + bin;
		*to = (uint8_t) hll_max_combine(*to, rank);
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_count_ranks(const void *registers, const int32_t *list, int64_t n, int32_t *counts, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
	{
		const uint8_t *from = (const uint8_t *) registers + (list ? list[i] : i) * GPUAGG_HLL_REGISTERS;

		memset(counts + i * GPUAGG_HLL_RANKS, 0, GPUAGG_HLL_RANKS * sizeof(*counts));
		for (int r = 0; r < GPUAGG_HLL_REGISTERS; r++)
			counts[i * GPUAGG_HLL_RANKS + from[r]]++;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_widen_registers(const void *registers, const int32_t *list, int64_t n, int32_t *to, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n * GPUAGG_HLL_REGISTERS; i++)
	{
		int64_t		group = i / GPUAGG_HLL_REGISTERS;

		to[i] = ((const uint8_t *) registers)[(list ? list[group] : group) * GPUAGG_HLL_REGISTERS + i % GPUAGG_HLL_REGISTERS];
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_combine_sketches(const void *from, const int32_t *bins, int64_t n, void *registers, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n * GPUAGG_HLL_REGISTERS; i++)
	{
		int64_t		group = i / GPUAGG_HLL_REGISTERS;
		uint8_t    *to = (uint8_t *) registers + (bins ? bins[group] : group) * GPUAGG_HLL_REGISTERS + i % GPUAGG_HLL_REGISTERS;

		*to = (uint8_t) hll_max_combine(*to, ((const uint8_t *) from)[i]);
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_pack_inputs(const PackInput *pack, int64_t nrows, void *inputs, uint8_t *keep,
				   gpuagg_stream stream)
{
	GpuaggColumn column = column_of(&pack->column[0]);

	(void) stream;
	LAUNCH();
	/* the integers of MAXSUB_I64 are what the tests send */
	if (pack->monoid != MONOID_MAXSUB_I64)
		return GPUAGG_CUDA_UNSUPPORTED;
	for (int64_t i = 0; i < nrows; i++)
	{
		((int64_t *) inputs)[i] = load_integer(&column, i);
		keep[i] = is_valid(column.validity, i) && (pack->filter == NULL || pack->filter[i]);
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_pack_order(const DeviceColumn *order, int64_t nrows, int nulls_first, int64_t *codes,
				  int8_t *ranks, gpuagg_stream stream)
{
	GpuaggColumn column = column_of(order);

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		bool		valid = is_valid(column.validity, i);

		codes[i] = valid ? load_integer(&column, i) : 0;
		ranks[i] = valid == (nulls_first != 0);
	}
	return GPUAGG_CUDA_OK;
}

/* ---- runs and groups ---- */

GpuaggCudaStatus
gpuagg_runs_number(const uint32_t *heads, int64_t words, int32_t *before, void *workspace, size_t *workspace_bytes,
				   gpuagg_stream stream)
{
	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	before[0] = 0;
	for (int64_t w = 0; w < words; w++)
		before[w + 1] = before[w] + __builtin_popcount(heads[w]);
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
gpuagg_runs_sort(int key_bytes, const void *keys, int64_t nrows, int bits, void *sorted, uint32_t *order,
				 void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	GpuaggSortWord word = {.values = keys,.type = key_bytes == 4 ? GPUAGG_VALUE_I32 : GPUAGG_VALUE_I64};
	int64_t    *rows;

	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	rows = malloc(nrows * sizeof(*rows));
	for (int64_t i = 0; i < nrows; i++)
		rows[i] = i;
	sorting = (Sort) {1, &word, bits < 8 * key_bytes ? ~(uint64_t) 0 << bits : 0};
	qsort(rows, nrows, sizeof(*rows), compare_rows);
	for (int64_t i = 0; i < nrows; i++)
	{
		order[i] = (uint32_t) rows[i];
		memcpy((char *) sorted + i * key_bytes, (const char *) keys + rows[i] * key_bytes, key_bytes);
	}
	free(rows);
	return GPUAGG_CUDA_OK;
}

static int
compare_bins(const void *a, const void *b)
{
	int32_t		x = *(const int32_t *) a;
	int32_t		y = *(const int32_t *) b;

	return x < y ? -1 : x > y;
}

/* Has every run a state of its own?  The kernels join a run to its state without atomics. */
static bool
runs_have_own_bins(const GpuaggRuns *runs)
{
	int64_t		first = runs->before[0];
	int64_t		n = runs->before[(runs->nrows + 31) / 32] - first;
	int32_t    *bins = malloc((n + 1) * sizeof(*bins));
	bool		ok = true;

	memcpy(bins, runs->bins + first, n * sizeof(*bins));
	qsort(bins, n, sizeof(*bins), compare_bins);
	for (int64_t i = 1; i < n; i++)
		ok = ok && bins[i] != bins[i - 1];
	free(bins);
	return ok;
}

GpuaggCudaStatus
gpuagg_runs_update(const GpuaggRuns *runs, const GpuaggSlot *slot, uint32_t *errors, void *workspace,
				   size_t *workspace_bytes, gpuagg_stream stream)
{
	int64_t		run = runs->nrows > 0 ? runs->before[0] - 1 : 0;

	(void) stream;
	check_input(slot);
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	if (runs->bins && runs->nrows > 0 && !runs_have_own_bins(runs))
	{
		printf("Bail out! two runs have one state\n");
		exit(1);
	}
	for (int64_t i = 0; i < runs->nrows; i++)
	{
		int64_t		row = runs->order ? runs->order[i] : i;
		Input		in = {slot->x, slot->y, row};
		char	   *state;

		run += runs->heads[i / 32] >> (i % 32) & 1;
		if ((runs->filter && !runs->filter[row]) || (slot->filter && !slot->filter[row]) ||
			!is_valid(slot->x.validity, row) || !is_valid(slot->y.validity, row))
			continue;
		state = (char *) slot->states + (runs->bins ? runs->bins[run] : run) * gpuagg_monoids[slot->op].state_size;
		*errors |= operators[slot->op].row(state, &in);
	}
	return GPUAGG_CUDA_OK;
}

static int
compare_values(const DeviceColumn *a, int64_t i, const DeviceColumn *b, int64_t j)
{
	GpuaggColumn x = column_of(a);
	GpuaggColumn y = column_of(b);
	int			there = is_valid(x.validity, i);
	int			other = is_valid(y.validity, j);
	int64_t		u,
				v;

	if (!there || !other)
		return other - there;
	u = load_integer(&x, i);
	v = load_integer(&y, j);
	return u < v ? -1 : u > v;
}

GpuaggCudaStatus
device_find_heads(const HeadRows *rows, int64_t nrows, uint32_t *heads, uint32_t *order, gpuagg_stream stream)
{
	int64_t		last = -1;

	(void) stream;
	LAUNCH();
	memset(heads, 0, (nrows + 31) / 32 * sizeof(*heads));
	for (int64_t i = 0; i < nrows; i++)
	{
		int			first = 0,
					all = 0;

		if (rows->mask && !rows->mask[i])
			continue;
		if (last >= 0 || rows->last_before >= 0)
		{
			for (int k = 0; k < rows->nkeys && all == 0; k++)
			{
				all = last >= 0 ? compare_values(&rows->column[k], i, &rows->column[k], last) :
					compare_values(&rows->column[k], i, &rows->column_before[k], rows->last_before);
				first = k == 0 ? all : first;
			}
			*order |= (all > 0 ? HEADS_ASCEND : all < 0 ? HEADS_DESCEND : 0) |
				(first > 0 ? HEADS_FIRST_ASCENDS : first < 0 ? HEADS_FIRST_DESCENDS : 0);
		}
		else
			all = 1;
		if (all != 0)
			heads[i / 32] |= 1u << (i % 32);
		last = i;
	}
	return GPUAGG_CUDA_OK;
}

static void
pack_one(const PackKeys *pack, int64_t i, char *key)
{
	memset(key, 0, pack->key_bytes);
	for (int k = 0; k < pack->nkeys; k++)
		if (is_valid(pack->column[k].validity, i))
			memcpy(key + pack->offset[k], (const char *) pack->column[k].values + i * pack->width[k], pack->width[k]);
		else
			key[pack->null_offset] |= 1 << k;
}

GpuaggCudaStatus
device_head_keys(const PackKeys *pack, const uint32_t *heads, const int32_t *before, int64_t nrows, void *out,
				 gpuagg_stream stream)
{
	int64_t		run = nrows > 0 ? before[0] - 1 : 0;

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
		if (heads[i / 32] >> (i % 32) & 1)
			pack_one(pack, i, (char *) out + ++run * pack->key_bytes);
	return GPUAGG_CUDA_OK;
}

static void
unpack_key(const GroupKeys *keys, int64_t bin, char *key)
{
	memset(key, 0, keys->key_bytes);
	if (keys->table)
		memcpy(key, (const char *) keys->table + bin * keys->table_bytes, keys->table_bytes);
	for (int k = keys->nkeys - 1; k >= 0 && keys->table == NULL; k--)
	{
		int64_t		digit = bin % keys->extent[k];
		int64_t		value = keys->min[k] + digit;

		bin /= keys->extent[k];
		if (keys->has_null[k] && digit == keys->extent[k] - 1)
			key[keys->null_offset] |= 1 << k;
		else
			memcpy(key + keys->offset[k], &value, keys->width[k]);
	}
}

GpuaggCudaStatus
device_group_keys(const GroupKeys *keys, const int32_t *list, int64_t n, void *out, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		unpack_key(keys, list ? list[i] : (int32_t) i, (char *) out + i * keys->key_bytes);
	return GPUAGG_CUDA_OK;
}

/* LimitKey */
static const char *
key_within(const void *arg, int64_t i, char *space)
{
	const TopGroups *top = arg;

	if (top->counts && top->counts[i] == 0)
		return NULL;
	if (top->reads_keys)
		unpack_key(&top->keys, (int32_t) i, space);
	return limit_passes(&top->plan, i, space) ? space : NULL;
}

GpuaggCudaStatus
device_top_groups(const TopGroups *top, int64_t n, int32_t *list, int32_t *nlisted, TopCounts *counts, void *workspace,
				  size_t *workspace_bytes, gpuagg_stream stream)
{
	LimitSearch search;
	char		space[WIRE_MAX_KEY_BYTES];

	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	*nlisted = 0;
	*counts = (TopCounts) {0};
	for (int64_t i = 0; i < n; i++)
	{
		bool		is = top->counts == NULL || top->counts[i] > 0;

		counts->all += is;
		counts->failed += is && key_within(top, i, space) == NULL;
	}
	limit_search(&top->plan, key_within, top, n, counts->all - counts->failed, &search);
	for (int64_t i = 0; i < n; i++)
		if (key_within(top, i, space) && limit_has(&top->plan, &search, i, space))
			list[(*nlisted)++] = (int32_t) i;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_list_groups(const int64_t *counts, int64_t n, int32_t *list, int32_t *nlisted, void *workspace,
				   size_t *workspace_bytes, gpuagg_stream stream)
{
	(void) stream;
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	*nlisted = 0;
	for (int64_t i = 0; i < n; i++)
		if (counts[i] > 0)
			list[(*nlisted)++] = (int32_t) i;
	return GPUAGG_CUDA_OK;
}

/* ---- rows of stored columns ---- */

GpuaggCudaStatus
device_filter_bins(const uint8_t *filter, int64_t nrows, int32_t *bins, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
		bins[i] = filter[i] ? 0 : -1;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_mask(const StoreSpan *spans, int nspans, int64_t first, int64_t nrows, uint8_t *mask, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	memset(mask, 0, nrows);
	for (int s = 0; s < nspans; s++)
		for (int64_t i = spans[s].first; i < spans[s].first + spans[s].nrows; i++)
			if (i >= first && i < first + nrows)
				mask[i - first] = 1;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_put_bits(const void *from, void *bits, int64_t first, int64_t nrows, gpuagg_stream stream)
{
	uint8_t    *to = bits;

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		int			bit = 1 << ((first + i) & 7);

		if (from == NULL || is_valid(from, i))
			to[(first + i) >> 3] |= bit;
		else
			to[(first + i) >> 3] &= ~bit;
	}
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
device_check_floats(const FloatCheck *check, int64_t nrows, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		VectorRow	x = {.b = {vector_bits_F64(check->below), VECTOR_VALUE}};
		double		value = check->column.type == WIRE_F32 ? ((const float *) check->column.values)[i] :
			((const double *) check->column.values)[i];

		if ((!check->mask || check->mask[i]) && is_valid(check->column.validity, i) &&
			vector_below(x, value, check->no_zeros).state == VECTOR_UNTOLD)
			(*check->untold)++;
	}
	return GPUAGG_CUDA_OK;
}

/* One row is a tile here. */
static void
run_row(const ProgramRun *run, int64_t position, int64_t *values, uint8_t *states)
{
	for (uint32_t p = 0; p < run->program.ninstructions; p++)
	{
		const VectorInstruction *in = &run->program.instructions[p];
		const DeviceColumn *c = &run->input[in->op == VECTOR_LOAD ? in->a : 0];

		if (in->op != VECTOR_LOAD)
			vector_run(in, run->program.constants, values, states, 1, 0, 1, 1);
		else
		{
			GpuaggColumn column = column_of(c);

			values[in->r] = c->type == WIRE_F32 ? ((const uint32_t *) c->values)[position] :
				load_integer(&column, position);
			states[in->r] = is_valid(c->validity, position) ? VECTOR_VALUE : VECTOR_NULL;
		}
	}
}

/* The row's columns; false: its outcome is untold. */
static bool
end_row(const ProgramRun *run, int64_t i, const int64_t *values, const uint8_t *states)
{
	bool		told = true;

	for (int c = 0; c < run->noutputs; c++)
	{
		const ProgramOutput *out = &run->output[c];
		VectorOperand o = vector_operand(out->operand, run->program.constants, values, states, 1);
		int			state = vector_state(&o, 0);
		int64_t		value = state == VECTOR_VALUE ? vector_value(&o, 0) : 0;

		if (out->values)
			memcpy((char *) out->values + i * out->width, &value, out->width);
		if (out->validity)
			out->validity[i / 32] = (out->validity[i / 32] & ~(1u << (i & 31))) | (uint32_t) (state == VECTOR_VALUE) << (i & 31);
		if (state == VECTOR_NULL && !out->nullable && !out->filter)
			told = false;
		if (state == VECTOR_UNTOLD)
			told = false;
	}
	return told;
}

GpuaggCudaStatus
device_run_program(const ProgramRun *run, int nregisters, int64_t first, int64_t nrows, const uint8_t *mask,
				   uint8_t *filter, gpuagg_stream stream)
{
	int64_t		values[VECTOR_MAX_REGISTERS];
	uint8_t		states[VECTOR_MAX_REGISTERS];

	(void) nregisters, (void) stream;
	LAUNCH();
	for (int64_t i = 0; i < nrows; i++)
	{
		VectorOperand o;
		bool		wanted = mask == NULL || mask[i];
		int			state = VECTOR_VALUE;
		bool		told;

		run_row(run, first + i, values, states);
		told = end_row(run, i, values, states);
		if (run->program.filter != VECTOR_NONE)
		{
			o = vector_operand(run->program.filter, run->program.constants, values, states, 1);
			state = vector_state(&o, 0);
			if (state == VECTOR_VALUE && vector_value(&o, 0) == 0)
				state = VECTOR_NULL;
		}
		if (wanted && (state == VECTOR_UNTOLD || (state == VECTOR_VALUE && !told)))
			(*run->untold)++;
		filter[i] = wanted && state == VECTOR_VALUE && told;
	}
	return GPUAGG_CUDA_OK;
}

/* ---- groups of another device ---- */

GpuaggCudaStatus
device_unpack_keys(const UnpackKeys *unpack, const void *keys, int64_t n, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < n; i++)
		for (int k = 0; k < unpack->nkeys; k++)
		{
			const char *key = (const char *) keys + i * unpack->key_bytes;
			bool		null = unpack->null_offset < unpack->key_bytes && (key[unpack->null_offset] >> k & 1);

			memcpy((char *) unpack->values[k] + i * unpack->width[k], key + unpack->offset[k], unpack->width[k]);
			if (unpack->validity[k])
				unpack->validity[k][i / 32] = (unpack->validity[k][i / 32] & ~(1u << i % 32)) | (uint32_t) !null << i % 32;
		}
	return GPUAGG_CUDA_OK;
}

#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) \
	static int combine_##name(void *state, const void *other) \
	{ \
		state_t a, b, r; \
		memcpy(&a, state, sizeof(a)); \
		memcpy(&b, other, sizeof(b)); \
		r = name##_combine(a, b); \
		memcpy(state, &r, sizeof(r)); \
		return name##_error(a, b, r); \
	}
#include "operators/monoid_list.h"
#undef MONOID

static int	(*const combines[]) (void *state, const void *other) = {
#define MONOID(NAME, name, input_t, state_t, comm, atomic, text) combine_##name,
#include "operators/monoid_list.h"
#undef MONOID
};

GpuaggCudaStatus
device_combine_states(const CombineStates *in, gpuagg_stream stream)
{
	size_t		size = gpuagg_monoids[in->monoid].state_size;

	(void) stream;
	LAUNCH();
	for (int64_t i = 0; i < in->n * in->width; i++)
	{
		int64_t		bin = in->bins ? in->bins[i / in->width] * (int64_t) in->width + i % in->width : i;

		if (in->from == NULL)
			((int64_t *) in->states)[bin]++;
		else
			*in->errors |= combines[in->monoid]((char *) in->states + bin * size, (const char *) in->from + i * size);
	}
	return GPUAGG_CUDA_OK;
}

/*
 * cuda_stub_hist.c
 *	  Histograms on the host, and the programs of their calls in tiles; see cuda_stub_kernels.h.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_stub_kernels.h"
#include "operators/vector_run.h"

/* ---- histograms ---- */

int stub_paired_updates;
int stub_paired_bins;

GpuaggCudaStatus
gpuagg_hist_init(MonoidId op, void *states, int64_t nbins, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	stub_operators[op].fill(states, nbins);
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
	char *values;
	uint8_t *validity;
	uint16_t operand;
	int width;
} Made;

/* An operand's value in a row. */
static VectorCell
operand_cell(const GpuaggProgram *p, int operand, int64_t position, const VectorCell *temporaries,
			 VectorCell last)
{
	if (operand == GPUAGG_LAST)
		return last;
	if (operand >= GPUAGG_INPUT && operand < GPUAGG_LAST)
	{
		const GpuaggColumn *c = &p->input[operand - GPUAGG_INPUT];

		return vector_cell(c->type == GPUAGG_VALUE_F32 ? ((const uint32_t *) c->values)[position] :
														 stub_load_integer(c, position),
						   stub_is_valid(c->validity, position) ? VECTOR_VALUE : VECTOR_NULL);
	}
	if (operand >= VECTOR_CONSTANT)
		return vector_cell(p->steps.constants[operand - VECTOR_CONSTANT].bits,
						   (int) p->steps.constants[operand - VECTOR_CONSTANT].state);
	return temporaries[operand];
}

/* A row after conditions. */
typedef struct RowState
{
	bool holds;   /* all were true */
	bool unclear; /* all were true before one that was undetermined */
} RowState;

static void
meet_condition(VectorCell x, RowState *row)
{
	row->unclear |= row->holds && x.state == VECTOR_UNDETERMINED;
	row->holds &= x.state == VECTOR_VALUE && x.value != 0;
}

/* Runs the steps for a row of the inputs; returns the last one's result. */
static VectorCell
run_steps(const GpuaggProgram *p, int64_t position, VectorCell *temporaries, RowState *row)
{
	VectorCell last = {0, VECTOR_UNDETERMINED};

	for (uint32_t i = 0; i < p->steps.ninstructions; i++)
	{
		VectorInstruction in = p->steps.instructions[i];
		int64_t values[4];
		uint8_t states[4];

		uint16_t from[3] = {in.a, in.b, in.c};
		bool condition = in.op & GPUAGG_CONDITION;
		VectorInstruction local = in;
		int n;

		local.op &= ~GPUAGG_CONDITION;
		n = vector_operands(local.op);
		for (int k = 0; k < n; k++)
		{
			VectorCell cell = operand_cell(p, from[k], position, temporaries, last);

			values[k] = cell.value;
			states[k] = cell.state;
		}
		local.a = 0;
		local.b = in.b >= VECTOR_CONSTANT ? in.b : 1;
		local.c = n > 2 ? 2 : in.c;
		local.r = 3;
		if (local.op == VECTOR_LOOKUP)
			vector_lookup(&local, p->tables, p->cells, p->cell_states, p->steps.constants, values,
						  states, 1, 0, 1, 1);
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
ends_well(const GpuaggProgram *p, int64_t position, const VectorCell *temporaries, VectorCell last,
		  RowState row)
{
	bool told = true;

	if (p->steps.filter != VECTOR_NONE)
		meet_condition(operand_cell(p, p->steps.filter, position, temporaries, last), &row);
	for (int c = 0; c < p->nchecks; c++)
	{
		VectorCell cell = operand_cell(p, p->check[c].operand, position, temporaries, last);

		told &= cell.state == VECTOR_VALUE || (cell.state == VECTOR_NULL && p->check[c].nullable);
	}
	*p->undetermined += row.unclear || (row.holds && !told);
	return row.holds && told;
}

static int
value_width(GpuaggValueType type)
{
	return type == GPUAGG_VALUE_I8                           ? 1 :
		type == GPUAGG_VALUE_I16                             ? 2 :
		type == GPUAGG_VALUE_I32 || type == GPUAGG_VALUE_F32 ? 4 :
															   8;
}

/* Memory for what the program computes of a column or filter, which then has it. */
static void
make_column(Made *made, int *n, int64_t nrows, uint16_t operand, int width, const void **values,
			const uint8_t **validity)
{
	Made *m = &made[(*n)++];

	*m = (Made){malloc(nrows * 8 + 1), calloc(nrows / 8 + 1, 1), operand, width};
	*values = m->values;
	if (validity)
		*validity = m->validity;
}

/* The same call, with columns for all that a program computes, which `made` gets, and a filter. */
static int
make_columns(GpuaggHist *hist, Made *made, uint8_t *filter)
{
	const GpuaggProgram *p = hist->program;
	int n = 0;

	for (int c = 0; c < hist->bins.ncolumns; c++)
		if (hist->bins.column[c].computed)
			make_column(made, &n, hist->nrows, hist->bins.column[c].operand,
						value_width(hist->bins.column[c].type), &hist->bins.column[c].values,
						&hist->bins.column[c].validity);
	for (int s = 0; s < hist->nslots; s++)
	{
		GpuaggSlot *slot = &hist->slot[s];
		const void *values;

		if (slot->x.computed)
			make_column(made, &n, hist->nrows, slot->x.operand, value_width(slot->x.type),
						&slot->x.values, &slot->x.validity);
		if (!slot->filter_computed)
			continue;
		make_column(made, &n, hist->nrows, slot->filter_operand, 1, &values, NULL);
		slot->filter = values;
	}
	for (int64_t i = 0; i < hist->nrows; i++)
	{
		VectorCell temporaries[VECTOR_MAX_REGISTERS];
		VectorCell last;
		RowState row = {true, false};

		filter[i] = 0;
		if (hist->bins.filter && !hist->bins.filter[i])
			continue;
		last = run_steps(p, hist->input_row + i, temporaries, &row);
		filter[i] = ends_well(p, hist->input_row + i, temporaries, last, row);
		for (int m = 0; m < n; m++)
		{
			VectorCell cell =
				operand_cell(p, made[m].operand, hist->input_row + i, temporaries, last);
			int64_t value = cell.state == VECTOR_VALUE ? cell.value : 0;

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
	int64_t bin = 0;
	bool outside = false;

	for (int c = 0; c < bins->ncolumns && bin >= 0; c++)
	{
		int64_t digit = bins->extent[c] - 1;

		if (stub_is_valid(bins->column[c].validity, i))
		{
			digit = stub_load_integer(&bins->column[c], i) - bins->min[c];
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
	if (bins->kind == GPUAGG_BIN_RANGE)
		return range_bin(bins, i, status);
	return bins->column[0].values ? ((const int32_t *) bins->column[0].values)[i] : 0;
}

GpuaggCudaStatus
gpuagg_hist_update(const GpuaggHist *hist, void *workspace, size_t *workspace_bytes,
				   gpuagg_stream stream)
{
	(void) stream;
	if (hist->bins.nbins < 1)
		return GPUAGG_CUDA_INVALID;
	for (int s = 0; s < hist->nslots; s++)
		stub_check_input(&hist->slot[s]);
	SIZE(workspace, workspace_bytes);
	LAUNCH();
	if (hist->program)
	{
		GpuaggHist there = *hist;
		Made made[GPUAGG_MAX_KEYS + 2 * GPUAGG_MAX_SLOTS];
		uint8_t *filter = malloc(hist->nrows + 1);
		int n = make_columns(&there, made, filter);
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
	stub_paired_updates += hist->bins.ncolumns == 2 && hist->strategy != GPUAGG_HIST_TILES;
	for (int64_t i = 0; i < hist->nrows; i++)
	{
		int64_t bin = bin_of(&hist->bins, i, hist->status);

		for (int s = 0; s < hist->nslots; s++)
		{
			const GpuaggSlot *slot = &hist->slot[s];
			StubInput in = {slot->x, slot->y, i};

			if (bin < 0 || bin >= hist->bins.nbins || (slot->filter && !slot->filter[i]) ||
				!stub_is_valid(slot->x.validity, i) || !stub_is_valid(slot->y.validity, i))
				continue;
			hist->status->errors[s] |= stub_operators[slot->op].row(
				(char *) slot->states + bin * gpuagg_monoids[slot->op].state_size, &in);
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
	stub_paired_bins += bins->ncolumns == 2;
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
		if (stub_is_valid(column->validity, i))
		{
			int64_t v = stub_load_integer(column, i);

			range[0] = v < range[0] ? v : range[0];
			range[1] = v > range[1] ? v : range[1];
		}
	return GPUAGG_CUDA_OK;
}

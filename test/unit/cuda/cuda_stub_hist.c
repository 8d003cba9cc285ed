/*
 * cuda_stub_hist.c
 *	  Histograms on the host, and the programs of their calls in tiles; see cuda_stub_kernels.h.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_stub_kernels.h"
#include "operators/vector_run.h"

/* ---- histograms ---- */

_Atomic int stub_paired_updates;
_Atomic int stub_paired_bins;

GpuaggCudaStatus
gpuagg_hist_init(MonoidId op, void *states, int64_t nbins, gpuagg_stream stream)
{
	(void) stream;
	LAUNCH();
	stub_operators[op].fill(states, nbins);
	return GPUAGG_CUDA_OK;
}

/*
 * Returns whether TILES supports a call's operators: none has a second input, none is a sum of
 * computed floats.
 */
static bool
tiles_support(const GpuaggHist *hist)
{
	for (int s = 0; s < hist->nslots; s++)
	{
		const GpuaggSlot *slot = &hist->slot[s];
		bool is_float = slot->x.type == GPUAGG_VALUE_F32 || slot->x.type == GPUAGG_VALUE_F64;
		bool is_simple = slot->op == MONOID_MAX_F64 || slot->op == MONOID_MIN_F64 ||
			slot->op == MONOID_MAX_F32 || slot->op == MONOID_MIN_F32 || slot->op == MONOID_COUNT;

		if (slot->y.values || slot->y.computed || (slot->x.computed && is_float && !is_simple))
			return false;
	}
	return true;
}

GpuaggCudaStatus
gpuagg_hist_choose(const GpuaggHist *hist, GpuaggHistChoice *choice)
{
	memset(choice, 0, sizeof(*choice));
	choice->strategy = GPUAGG_HIST_GLOBAL;
	choice->together = hist->nslots <= 3 && hist->bins.nbins % 3 != 2;
	if (hist->parts)
		return stub_check_parts(hist);
	if (hist->strategy == GPUAGG_HIST_TILES && !tiles_support(hist))
		return GPUAGG_CUDA_UNSUPPORTED;
	/* some calls in tiles are rejected, so that the callers have to divide them */
	if (hist->strategy == GPUAGG_HIST_TILES && (hist->nslots > 2 || hist->bins.nbins % 4 == 3))
		return GPUAGG_CUDA_UNSUPPORTED;
	return GPUAGG_CUDA_OK;
}

/* ---- programs of calls in tiles ---- */

#define TILE 1024
/* Registers of a tile: the program's temporaries, its inputs, and results that have no register. */
#define INPUT_REGISTER VECTOR_MAX_REGISTERS
#define LAST_REGISTER (INPUT_REGISTER + GPUAGG_MAX_INPUTS)
#define REGISTERS (LAST_REGISTER + 2)

/* Rows of the inputs while the program runs over them. */
typedef struct Tile
{
	const GpuaggProgram *program;
	int n;
	int64_t position; /* number of the first row, in the inputs */
	bool loaded[GPUAGG_MAX_INPUTS];
	int last; /* register of the last instruction's result */
	int64_t values[REGISTERS * TILE];
	uint8_t states[REGISTERS * TILE];
	bool holds[TILE];   /* all conditions so far were true */
	bool unclear[TILE]; /* all conditions before one that was undetermined were true */
} Tile;

/* Loads the tile's rows of input c into the input's register. */
static void
load_input(Tile *tile, int c)
{
	const GpuaggColumn *column = &tile->program->input[c];
	int64_t *values = tile->values + (INPUT_REGISTER + c) * TILE;
	uint8_t *states = tile->states + (INPUT_REGISTER + c) * TILE;

	for (int i = 0; i < tile->n; i++)
	{
		int64_t at = tile->position + i;

		values[i] = column->type == GPUAGG_VALUE_F32 ? ((const uint32_t *) column->values)[at] :
													   stub_load_integer(column, at);
		states[i] = stub_is_valid(column->validity, at) ? VECTOR_VALUE : VECTOR_NULL;
	}
	tile->loaded[c] = true;
}

/*
 * Returns the tile's register of an operand; constants stay as they are. Loads an input when it is
 * used for the first time, because unused inputs need not have values for all rows.
 */
static uint16_t
register_of(Tile *tile, uint16_t operand)
{
	if (operand == GPUAGG_LAST)
		return tile->last;
	if (operand < GPUAGG_INPUT || operand >= GPUAGG_LAST)
		return operand;
	if (!tile->loaded[operand - GPUAGG_INPUT])
		load_input(tile, operand - GPUAGG_INPUT);
	return INPUT_REGISTER + (operand - GPUAGG_INPUT);
}

/* Returns the tile's values of an operand, loaded if necessary. */
static VectorOperand
operand_of(Tile *tile, uint16_t operand)
{
	return vector_operand(register_of(tile, operand), tile->program->steps.constants, tile->values,
						  tile->states, TILE);
}

/* Updates holds[] and unclear[] of all rows by a condition, which is the operand. */
static void
meet_condition(Tile *tile, uint16_t operand)
{
	VectorOperand o = operand_of(tile, operand);

	for (int i = 0; i < tile->n; i++)
	{
		int state = vector_state(&o, i);

		tile->unclear[i] |= tile->holds[i] && state == VECTOR_UNDETERMINED;
		tile->holds[i] &= state == VECTOR_VALUE && vector_value(&o, i) != 0;
	}
}

/* Runs one instruction over the tile. If it is marked as a condition, applies the condition. */
static void
run_step(Tile *tile, VectorInstruction in)
{
	const GpuaggProgram *p = tile->program;
	bool condition = in.op & GPUAGG_CONDITION;
	int n;

	in.op &= ~GPUAGG_CONDITION;
	n = vector_operands(in.op);
	in.a = register_of(tile, in.a);
	/* an instruction with one operand has VECTOR_NONE as b: any register will do */
	in.b = in.b == VECTOR_NONE ? in.a : n > 1 ? register_of(tile, in.b) : in.b;
	in.c = n > 2 ? register_of(tile, in.c) : in.c;
	/* a result that only the next instruction reads must not replace what it reads itself */
	if (in.r == VECTOR_NONE)
		in.r = tile->last == LAST_REGISTER ? LAST_REGISTER + 1 : LAST_REGISTER;
	stub_run_instruction(&in, &(StubTables){p->tables, p->cells}, p->steps.constants, tile->values,
						 tile->states, TILE, tile->n);
	tile->last = in.r;
	if (condition)
		meet_condition(tile, in.r);
}

/* Runs the program over the tile's n rows, the first of which is at this position of the inputs. */
static void
run_tile(Tile *tile, int64_t position)
{
	const GpuaggProgram *p = tile->program;

	tile->position = position;
	memset(tile->loaded, false, sizeof(tile->loaded));
	memset(tile->holds, true, sizeof(tile->holds));
	memset(tile->unclear, false, sizeof(tile->unclear));
	for (uint32_t i = 0; i < p->steps.ninstructions; i++)
		run_step(tile, p->steps.instructions[i]);
	if (p->steps.filter != VECTOR_NONE)
		meet_condition(tile, p->steps.filter);
}

/*
 * Sets the filter of the tile's rows: 1 for rows that count. Rows with another filter of 0 are left
 * out; rows whose outcome is undetermined are counted.
 */
static void
end_tile(Tile *tile, const uint8_t *wanted, uint8_t *filter)
{
	const GpuaggProgram *p = tile->program;

	for (int i = 0; i < tile->n; i++)
		filter[i] = (wanted == NULL || wanted[i]) && tile->holds[i] ? 1 : 0;
	for (int i = 0; i < tile->n; i++)
		*p->undetermined += (wanted == NULL || wanted[i]) && tile->unclear[i];
	for (int c = 0; c < p->nchecks; c++)
	{
		VectorOperand o = operand_of(tile, p->check[c].operand);

		for (int i = 0; i < tile->n; i++)
		{
			int state = vector_state(&o, i);

			if (filter[i] == 1 && state != VECTOR_VALUE &&
				(state != VECTOR_NULL || !p->check[c].nullable))
				filter[i] = 2;
		}
	}
	for (int i = 0; i < tile->n; i++)
	{
		*p->undetermined += filter[i] == 2 && !tile->unclear[i];
		filter[i] = filter[i] == 1;
	}
}

/* Returns the bytes of a value of a type of up to 64 bits. */
static int
value_width(GpuaggValueType type)
{
	return type == GPUAGG_VALUE_I8                           ? 1 :
		type == GPUAGG_VALUE_I16                             ? 2 :
		type == GPUAGG_VALUE_I32 || type == GPUAGG_VALUE_F32 ? 4 :
															   8;
}

/* A column or filter in memory that holds an operand of the program. */
typedef struct Computed
{
	char *values;
	uint8_t *validity;
	uint16_t operand;
	int width;
} Computed;

/*
 * Allocates a column for an operand that the program computes. Sets *values and *validity, members
 * of the call, to its arrays.
 */
static void
add_column(Computed *computed, int *n, int64_t nrows, uint16_t operand, int width,
		   const void **values, const uint8_t **validity)
{
	Computed *c = &computed[(*n)++];

	*c = (Computed){malloc(nrows * 8 + 1), calloc(nrows / 8 + 1, 1), operand, width};
	*values = c->values;
	if (validity)
		*validity = c->validity;
}

/* Allocates columns for all that the call's program computes; returns their number. */
static int
add_columns(GpuaggHist *hist, Computed *computed)
{
	int n = 0;

	for (int c = 0; c < hist->bins.ncolumns; c++)
		if (hist->bins.column[c].computed)
			add_column(computed, &n, hist->nrows, hist->bins.column[c].operand,
					   value_width(hist->bins.column[c].type), &hist->bins.column[c].values,
					   &hist->bins.column[c].validity);
	for (int s = 0; s < hist->nslots; s++)
	{
		GpuaggSlot *slot = &hist->slot[s];
		const void *values;

		if (slot->x.computed)
			add_column(computed, &n, hist->nrows, slot->x.operand, value_width(slot->x.type),
					   &slot->x.values, &slot->x.validity);
		if (!slot->filter_computed)
			continue;
		add_column(computed, &n, hist->nrows, slot->filter_operand, 1, &values, NULL);
		slot->filter = values;
	}
	return n;
}

/* Writes the tile's values of a column, from row `at` of the call on; NULLs are 0. */
static void
write_column(Tile *tile, Computed *c, int64_t at)
{
	VectorOperand o = operand_of(tile, c->operand);

	for (int i = 0; i < tile->n; i++)
	{
		bool valid = vector_state(&o, i) == VECTOR_VALUE;
		int64_t value = valid ? vector_value(&o, i) : 0;

		memcpy(c->values + (at + i) * c->width, &value, c->width);
		c->validity[(at + i) / 8] |= valid << ((at + i) & 7);
	}
}

/* Runs the call's program: fills the columns that it computes, and makes its filter the call's. */
static void
run_program(GpuaggHist *hist, Computed *computed, int n, uint8_t *filter)
{
	Tile *tile = malloc(sizeof(*tile));

	tile->program = hist->program;
	for (int64_t at = 0; at < hist->nrows; at += tile->n)
	{
		tile->n = hist->nrows - at < TILE ? (int) (hist->nrows - at) : TILE;
		tile->last = LAST_REGISTER;
		run_tile(tile, hist->input_row + at);
		end_tile(tile, hist->bins.filter ? hist->bins.filter + at : NULL, filter + at);
		for (int c = 0; c < n; c++)
			write_column(tile, &computed[c], at);
	}
	free(tile);
	hist->bins.filter = filter;
	hist->program = NULL;
}

/* Returns the bin of a row by ranges of keys, or -1 if the row is left out. */
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

/* Returns the bin of a row, or -1 if the row is left out. */
static int64_t
bin_of(const GpuaggBins *bins, int64_t i, GpuaggHistStatus *status)
{
	if (bins->filter && !bins->filter[i])
		return -1;
	if (bins->kind == GPUAGG_BIN_RANGE)
		return range_bin(bins, i, status);
	return bins->column[0].values ? ((const int32_t *) bins->column[0].values)[i] : 0;
}

/* Updates all slots of a call without a program. */
static void
update_slots(const GpuaggHist *hist)
{
	int32_t *bins = malloc((hist->nrows + 1) * sizeof(*bins));

	for (int64_t i = 0; i < hist->nrows; i++)
	{
		int64_t bin = hist->parts ? stub_bin_of_parted_row(hist->parts, i) :
									bin_of(&hist->bins, i, hist->status);

		bins[i] = bin < hist->bins.nbins ? (int32_t) bin : -1;
	}
	for (int s = 0; s < hist->nslots; s++)
	{
		const GpuaggSlot *slot = &hist->slot[s];
		StubRows rows = {hist->nrows, bins, NULL, &slot->x, &slot->y, slot->filter};

		hist->status->errors[s] |= (uint32_t) stub_operators[slot->op].update(slot->states, &rows);
	}
	free(bins);
}

GpuaggCudaStatus
gpuagg_hist_update(const GpuaggHist *hist, void *workspace, size_t *workspace_bytes,
				   gpuagg_stream stream)
{
	(void) stream;
	if (hist->bins.nbins < 1)
		return GPUAGG_CUDA_INVALID;
	for (int s = 0; s < hist->nslots; s++)
	{
		GpuaggCudaStatus status = stub_check_slot(&hist->slot[s]);

		if (status != GPUAGG_CUDA_OK)
			return status;
	}
	if (hist->parts && stub_check_parts(hist) != GPUAGG_CUDA_OK)
		return GPUAGG_CUDA_INVALID;
	SIZE(workspace, workspace_bytes);
	LAUNCH_UPDATE();
	stub_paired_updates += hist->bins.ncolumns == 2 && hist->strategy != GPUAGG_HIST_TILES;
	if (hist->program)
	{
		GpuaggHist computed_hist = *hist;
		Computed computed[GPUAGG_MAX_KEYS + 2 * GPUAGG_MAX_SLOTS];
		uint8_t *filter = malloc(hist->nrows + 1);
		int n = add_columns(&computed_hist, computed);

		run_program(&computed_hist, computed, n, filter);
		update_slots(&computed_hist);
		for (int c = 0; c < n; c++)
		{
			free(computed[c].values);
			free(computed[c].validity);
		}
		free(filter);
	}
	else
		update_slots(hist);
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

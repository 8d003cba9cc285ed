/*
 * tiles.c
 *	  Reduces rows of stored columns in one pass, if the bins of the slots fit into the shared
 * memory of a multiprocessor: one kernel runs the program, finds the bins and reduces the slots.
 *
 * The first part of the file converts the program: the kernel keeps the result of the last
 * instruction, and a few temporaries, in registers.
 */
#include <string.h>

#include "device_cuda/device_internal.h"

/* ---- the program ---- */

/*
 * A program during its conversion.  Instruction i of *to has result i, and reads results and
 * inputs, until assign_temporaries replaces the results by temporaries.
 */
typedef struct Results
{
	VectorProgram *to;
	uint16_t value[VECTOR_MAX_REGISTERS]; /* the result or input that each register has now */
	int uses[VECTOR_MAX_INSTRUCTIONS];    /* number of reads of each result */
	int last_use[VECTOR_MAX_INSTRUCTIONS];
	uint16_t
		temporary[VECTOR_MAX_INSTRUCTIONS]; /* where the result is kept; VECTOR_NONE: nowhere */
} Results;

static bool
is_result(uint16_t operand)
{
	return operand < VECTOR_MAX_INSTRUCTIONS;
}

/* Finds the operands that an instruction reads.  Returns their number. */
static int
operands_of(VectorInstruction *in, uint16_t **operand)
{
	operand[0] = &in->a;
	operand[1] = &in->b;
	operand[2] = &in->c;
	return vector_operands(in->op & ~GPUAGG_CONDITION);
}

/* Returns the result or input that an operand of the original program has at its end. */
static uint16_t
operand_of_register(const Results *results, uint16_t operand)
{
	return operand < VECTOR_MAX_REGISTERS ? results->value[operand] : operand;
}

/* Copies all instructions except loads, which become inputs. */
static void
copy_steps(const VectorProgram *from, Results *results)
{
	VectorProgram *to = results->to;

	*to = *from;
	to->ninstructions = 0;
	for (uint32_t i = 0; i < from->ninstructions; i++)
	{
		VectorInstruction in = from->instructions[i];
		uint16_t *operand[3];
		int n = operands_of(&in, operand);

		if (in.op == VECTOR_LOAD)
		{
			results->value[in.r] = GPUAGG_INPUT + in.a;
			continue;
		}
		for (int k = 0; k < n; k++)
			*operand[k] = operand_of_register(results, *operand[k]);
		if (n < 2)
			in.b = VECTOR_NONE;
		results->value[in.r] = (uint16_t) to->ninstructions;
		to->instructions[to->ninstructions++] = in;
	}
	to->filter = operand_of_register(results, from->filter);
}

static void
add_use(Results *results, uint16_t operand, int by)
{
	if (!is_result(operand))
		return;
	results->uses[operand]++;
	results->last_use[operand] = by;
}

/*
 * Finds the last use of each result.  Columns and the filter are used after the last instruction.
 */
static void
find_uses(const ResidentPlan *plan, Results *results)
{
	VectorProgram *p = results->to;
	int end = (int) p->ninstructions;

	memset(results->uses, 0, sizeof(results->uses));
	memset(results->last_use, 0, sizeof(results->last_use));
	for (int i = 0; i < end; i++)
	{
		uint16_t *operand[3];
		int n = operands_of(&p->instructions[i], operand);

		for (int k = 0; k < n; k++)
			add_use(results, *operand[k], i);
	}
	add_use(results, p->filter, end);
	for (int c = 0; c < plan->ncols; c++)
		if (resident_is_written(plan, c) || plan->cols[c].checked)
			add_use(results, operand_of_register(results, plan->cols[c].operand), end);
}

static bool
is_false(const VectorProgram *p, uint16_t operand)
{
	int constant = operand - VECTOR_CONSTANT;

	return constant >= 0 && p->constants[constant].state == VECTOR_VALUE &&
		p->constants[constant].bits == 0;
}

/*
 * Finds the conditions of a filter of the form a AND b AND c, which is compiled to choices: each
 * condition is evaluated only if those before it are true, and the result is false otherwise.
 * Returns false if some condition is not the result of an instruction after the one before it.
 */
static bool
find_conditions(const Results *results, uint16_t operand, uint16_t *condition, int *n)
{
	const VectorInstruction *in;

	if (!is_result(operand))
		return false;
	in = &results->to->instructions[operand];
	if (in->op == VECTOR_SELECT && is_false(results->to, in->c) && results->uses[operand] == 1)
	{
		if (!find_conditions(results, in->a, condition, n))
			return false;
		operand = in->b;
	}
	if (!is_result(operand) || (*n > 0 && condition[*n - 1] >= operand))
		return false;
	condition[(*n)++] = operand;
	return true;
}

/* Removes an instruction whose result is never read. */
static void
remove_step(Results *results, int step)
{
	VectorProgram *p = results->to;

	p->ninstructions--;
	memmove(p->instructions + step, p->instructions + step + 1,
			(p->ninstructions - step) * sizeof(VectorInstruction));
	for (uint32_t i = 0; i < p->ninstructions; i++)
	{
		uint16_t *operand[3];
		int n = operands_of(&p->instructions[i], operand);

		for (int k = 0; k < n; k++)
			if (is_result(*operand[k]) && *operand[k] > step)
				(*operand[k])--;
	}
	for (int r = 0; r < VECTOR_MAX_REGISTERS; r++)
		if (is_result(results->value[r]) && results->value[r] > step)
			results->value[r]--;
}

/* Turns such a filter into instructions that are conditions, and removes the choices. */
static void
make_conditions(const ResidentPlan *plan, Results *results)
{
	VectorProgram *p = results->to;
	uint16_t condition[VECTOR_MAX_INSTRUCTIONS];
	int n = 0;

	if (p->filter == VECTOR_NONE || !find_conditions(results, p->filter, condition, &n))
		return;
	for (int i = 0; i < n; i++)
		p->instructions[condition[i]].op |= GPUAGG_CONDITION;
	p->filter = VECTOR_NONE;
	find_uses(plan, results);
	for (int i = (int) p->ninstructions - 1; i >= 0; i--)
		if (p->instructions[i].op == VECTOR_SELECT && results->uses[i] == 0)
		{
			remove_step(results, i);
			find_uses(plan, results);
		}
}

/* Returns the operand with which instruction `by` reads a result. */
static uint16_t
operand_for(const Results *results, uint16_t operand, int by)
{
	if (!is_result(operand))
		return operand;
	return operand == by - 1 ? GPUAGG_LAST : results->temporary[operand];
}

/* Assigns a temporary to each result that is read later than by the next instruction. */
static void
assign_temporaries(Results *results, int *temporaries)
{
	VectorProgram *p = results->to;
	uint32_t used = 0;

	*temporaries = 0;
	for (int i = 0; i < (int) p->ninstructions; i++)
	{
		VectorInstruction *in = &p->instructions[i];
		uint16_t *operand[3];
		int n = operands_of(in, operand);

		for (int k = 0; k < n; k++)
		{
			uint16_t from = *operand[k];

			if (is_result(from) && results->last_use[from] == i &&
				results->temporary[from] != VECTOR_NONE)
				used &= ~(UINT32_C(1) << results->temporary[from]);
			*operand[k] = operand_for(results, from, i);
		}
		in->r = VECTOR_NONE;
		if (results->last_use[i] > i + 1)
		{
			in->r = (uint16_t) __builtin_ctz(~used);
			used |= UINT32_C(1) << in->r;
			*temporaries = in->r >= *temporaries ? in->r + 1 : *temporaries;
		}
		results->temporary[i] = in->r;
	}
}

static void
make_tile_program(const WireResident *in, const ResidentPlan *plan, TileProgram *out)
{
	GpuaggProgram *g = &out->program;
	Results results = {.to = &g->steps};
	int end;

	memset(out, 0, sizeof(*out));
	for (uint32_t i = 0; i < in->nstored; i++)
		if (plan->loads >> i & 1)
			out->input_bytes += wire_width(in->stored[i].type);
	copy_steps(&plan->program, &results);
	find_uses(plan, &results);
	make_conditions(plan, &results);
	assign_temporaries(&results, &out->temporaries);
	end = (int) g->steps.ninstructions;
	g->steps.filter = operand_for(&results, g->steps.filter, end);
	for (int c = 0; c < plan->ncols; c++)
	{
		const ResidentColumn *col = &plan->cols[c];

		if (!resident_is_written(plan, c) && !col->checked)
			continue;
		out->operand[c] = operand_for(&results, operand_of_register(&results, col->operand), end);
		g->check[g->nchecks++] = (GpuaggCheck){out->operand[c], col->nullable || col->filter};
	}
}

bool
tiles_are_allowed(const DeviceQuery *query, const WireResident *in, const ResidentPlan *plan,
				  TileProgram *out)
{
	const WireQuery *q = query->q;

	/* columns as they are stored are reduced faster by one call per operator */
	if (!plan->computes || q->nsets > 0)
		return false;
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].bin_kind != WIRE_BIN_NONE || slot_is_late(q, s))
			return false;
	make_tile_program(in, plan, out);
	return true;
}

/* ---- calls ---- */

/* Histogram calls for the slots.  Each takes as many slots as there is room for their bins. */
typedef struct Calls
{
	GpuaggHist hist;  /* the next call, with its slots so far */
	bool sizing;      /* only determines the workspace */
	bool has_no_call; /* the bins of some slot do not fit */
	size_t workspace; /* bytes that the largest call needs */
	int n;            /* calls so far */
} Calls;

static DeviceStatus
finish_call(DeviceQuery *query, Calls *calls, DeviceError *error)
{
	GpuaggHist *hist = &calls->hist;
	size_t bytes = query->scratch.workspace.bytes;

	hist->status = ((KernelStatus *) query->status.at)->call + calls->n++;
	KERNEL_CHECK(gpuagg_hist_update(hist, calls->sizing ? NULL : query->scratch.workspace.at,
									&bytes, query->stream));
	if (calls->sizing && bytes > calls->workspace)
		calls->workspace = bytes;
	if (!calls->sizing)
		KERNEL_CHECK(gpuagg_hist_choose(hist, &query->stats.choice));
	hist->nslots = 0;
	return DEVICE_OK;
}

static bool
call_fits(const GpuaggHist *hist)
{
	GpuaggHistChoice choice;

	return gpuagg_hist_choose(hist, &choice) == GPUAGG_CUDA_OK;
}

static DeviceStatus
add_slot(DeviceQuery *query, Calls *calls, const GpuaggSlot *slot, DeviceError *error)
{
	GpuaggHist *hist = &calls->hist;

	if (hist->nslots == GPUAGG_MAX_SLOTS)
		DEVICE_CHECK(finish_call(query, calls, error));
	hist->slot[hist->nslots++] = *slot;
	if (call_fits(hist))
		return DEVICE_OK;
	hist->nslots--;
	if (hist->nslots > 0)
		DEVICE_CHECK(finish_call(query, calls, error));
	hist->slot[hist->nslots++] = *slot;
	calls->has_no_call = !call_fits(hist);
	return DEVICE_OK;
}

static DeviceStatus
make_calls(DeviceQuery *query, const Rows *rows, Calls *calls, DeviceError *error)
{
	for (int s = -1; s < query->q->nslots && !calls->has_no_call; s++)
		if (slot_is_computed(query, s))
		{
			GpuaggSlot slot = kernel_slot(query, rows, s);

			if (slot.states == NULL)
				return device_fail(error, DEVICE_UNSUPPORTED,
								   "no memory for the states of a group");
			DEVICE_CHECK(add_slot(query, calls, &slot, error));
		}
	if (calls->hist.nslots > 0 && !calls->has_no_call)
		DEVICE_CHECK(finish_call(query, calls, error));
	return DEVICE_OK;
}

DeviceStatus
tiles_reduce(DeviceQuery *query, const Rows *rows, const TileProgram *tiles,
			 const GpuaggProgram *program, int64_t first, bool *taken, bool *applied,
			 DeviceError *error)
{
	Calls calls = {.sizing = true};
	GpuaggHist *hist = &calls.hist;

	*taken = false;
	DEVICE_CHECK(groups_fit(query, rows, error));
	if (query->groups.form != FORM_DIRECT && query->groups.form != FORM_SINGLE)
		return DEVICE_OK;
	hist->strategy = GPUAGG_HIST_TILES;
	hist->bins = groups_bins(query, rows);
	hist->nrows = rows->nrows;
	hist->program = program;
	hist->steps = &tiles->program.steps;
	hist->temporaries = tiles->temporaries;
	hist->input_bytes = tiles->input_bytes;
	hist->input_row = first;
	DEVICE_CHECK(make_calls(query, rows, &calls, error));
	if (calls.has_no_call)
		return DEVICE_OK;
	DEVICE_CHECK(memory_reserve(query, &query->scratch.workspace, calls.workspace, error));
	calls.sizing = false;
	calls.n = 0;
	*taken = *applied = true;
	DEVICE_CHECK(make_calls(query, rows, &calls, error));
	query->nrows += rows->nrows;
	query->groups.n = query->groups.ntable;
	return DEVICE_OK;
}

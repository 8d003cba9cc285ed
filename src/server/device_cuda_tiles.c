/*
 * device_cuda_tiles.c
 *	  Rows of a program over stored columns in one pass: where the bins of slots fit the shared memory of a
 *	  multiprocessor, one kernel runs the program, finds the bins and reduces the slots.
 */
#include <string.h>

#include "server/device_cuda.h"

/* ---- the program ---- */

/* Results of a program by their instructions, for their way to what reads them. */
typedef struct Results
{
	int			setter[VECTOR_MAX_REGISTERS];	/* the instruction that set the register last, or -1 */
	int			last_use[VECTOR_MAX_INSTRUCTIONS];
	uint16_t	place[VECTOR_MAX_INSTRUCTIONS]; /* the temporary */
	uint32_t	used;			/* temporaries */
} Results;

/* The operands that an instruction reads from registers or constants, as many as it has. */
static int
operands_of(VectorInstruction *in, uint16_t **operand)
{
	operand[0] = &in->a;
	operand[1] = &in->b;
	operand[2] = &in->c;
	return in->op == VECTOR_LOAD ? 0 : vector_operands(in->op);
}

static void
note_use(Results *results, int operand, int by)
{
	if (operand < VECTOR_MAX_REGISTERS)
		results->last_use[results->setter[operand]] = by;
}

/* Where instruction `by` finds an operand. */
static uint16_t
place_of(const Results *results, uint16_t operand, int by)
{
	int			setter;

	if (operand >= VECTOR_MAX_REGISTERS)
		return operand;
	setter = results->setter[operand];
	return setter == by - 1 ? GPUAGG_LAST : results->place[setter];
}

/* Finds the last use of each result. */
static void
find_uses(const ResidentPlan *plan, Results *results)
{
	VectorProgram p = plan->program;

	memset(results, 0, sizeof(*results));
	for (int i = 0; i < (int) p.ninstructions; i++)
	{
		uint16_t   *operand[3];
		int			n = operands_of(&p.instructions[i], operand);

		for (int k = 0; k < n; k++)
			note_use(results, *operand[k], i);
		results->setter[p.instructions[i].r] = i;
	}
	note_use(results, p.filter, (int) p.ninstructions);
	for (int c = 0; c < plan->ncols; c++)
		if (resident_is_written(plan, c) || plan->cols[c].checked)
			note_use(results, plan->cols[c].operand, (int) p.ninstructions);
}

/* Gives results that are not read at once a temporary, for as long as they are read. */
static void
place_results(VectorProgram *p, Results *results, int *temporaries)
{
	*temporaries = 0;
	for (int i = 0; i < (int) p->ninstructions; i++)
	{
		VectorInstruction *in = &p->instructions[i];
		uint16_t   *operand[3];
		int			n = operands_of(in, operand);
		int			r = in->r;
		uint32_t	ended = 0;

		for (int k = 0; k < n; k++)
		{
			int			setter = *operand[k] < VECTOR_MAX_REGISTERS ? results->setter[*operand[k]] : -1;

			if (setter >= 0 && results->last_use[setter] == i && results->place[setter] != VECTOR_NONE)
				ended |= UINT32_C(1) << results->place[setter];
			*operand[k] = place_of(results, *operand[k], i);
		}
		if (n < 2)
			in->b = VECTOR_NONE;
		results->used &= ~ended;
		in->r = VECTOR_NONE;
		if (results->last_use[i] > i + 1)
		{
			in->r = (uint16_t) __builtin_ctz(~results->used);
			results->used |= UINT32_C(1) << in->r;
			*temporaries = in->r >= *temporaries ? in->r + 1 : *temporaries;
		}
		results->place[i] = in->r;
		results->setter[r] = i;
	}
}

static void
make_program(const ResidentPlan *plan, TileProgram *out)
{
	GpuaggProgram *g = &out->program;
	Results		results;
	int			end = (int) plan->program.ninstructions;

	memset(out, 0, sizeof(*out));
	g->steps = plan->program;
	find_uses(plan, &results);
	place_results(&g->steps, &results, &out->temporaries);
	g->steps.filter = place_of(&results, plan->program.filter, end);
	for (int c = 0; c < plan->ncols; c++)
	{
		const ResidentColumn *col = &plan->cols[c];

		if (!resident_is_written(plan, c) && !col->checked)
			continue;
		out->operand[c] = place_of(&results, col->operand, end);
		g->check[g->nchecks++] = (GpuaggCheck) {out->operand[c], col->nullable || col->filter};
	}
}

bool
tiles_wanted(const Query *query, const ResidentPlan *plan, TileProgram *out)
{
	const WireQuery *q = query->q;

	/* columns as they are stored are reduced faster by an operator at a time */
	if (!plan->runs || q->nsets > 0)
		return false;
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].bin_kind != WIRE_BIN_NONE || slot_is_late(q, s))
			return false;
	make_program(plan, out);
	return true;
}

/* ---- calls ---- */

/* Slots of rows, in as few calls as have room for their bins. */
typedef struct Calls
{
	GpuaggHist	hist;			/* the next call, with the slots so far */
	bool		sizing;
	bool		refused;		/* some slot has no call */
	size_t		workspace;		/* bytes that the largest call needs */
	int			n;
} Calls;

static DeviceStatus
end_call(Query *query, Calls *calls, DeviceError *error)
{
	GpuaggHist *hist = &calls->hist;
	size_t		bytes = query->workspace.bytes;

	hist->status = ((QueryStatus *) query->status.at)->call + calls->n++;
	KERNEL_CHECK(gpuagg_hist_update(hist, calls->sizing ? NULL : query->workspace.at, &bytes, query->stream));
	if (calls->sizing && bytes > calls->workspace)
		calls->workspace = bytes;
	if (!calls->sizing)
		KERNEL_CHECK(gpuagg_hist_choose(hist, &query->choice));
	hist->nslots = 0;
	return DEVICE_OK;
}

static bool
fits(const GpuaggHist *hist)
{
	GpuaggHistChoice choice;

	return gpuagg_hist_choose(hist, &choice) == GPUAGG_CUDA_OK;
}

static DeviceStatus
add_slot(Query *query, Calls *calls, const GpuaggSlot *slot, DeviceError *error)
{
	GpuaggHist *hist = &calls->hist;

	if (hist->nslots == GPUAGG_MAX_SLOTS)
		DEVICE_CHECK(end_call(query, calls, error));
	hist->slot[hist->nslots++] = *slot;
	if (fits(hist))
		return DEVICE_OK;
	hist->nslots--;
	if (hist->nslots > 0)
		DEVICE_CHECK(end_call(query, calls, error));
	hist->slot[hist->nslots++] = *slot;
	calls->refused = !fits(hist);
	return DEVICE_OK;
}

static DeviceStatus
make_calls(Query *query, const Rows *rows, Calls *calls, DeviceError *error)
{
	for (int s = -1; s < query->q->nslots && !calls->refused; s++)
		if (query_has_slot(query, s))
		{
			GpuaggSlot	slot = query_slot(query, rows, s);

			if (slot.states == NULL)
				return device_say(error, DEVICE_UNSUPPORTED, "no memory for the states of a group");
			DEVICE_CHECK(add_slot(query, calls, &slot, error));
		}
	if (calls->hist.nslots > 0 && !calls->refused)
		DEVICE_CHECK(end_call(query, calls, error));
	return DEVICE_OK;
}

DeviceStatus
tiles_reduce(Query *query, const Rows *rows, const GpuaggProgram *program, int temporaries, int64_t first, bool *taken,
			 bool *applied, DeviceError *error)
{
	Calls		calls = {.sizing = true};
	GpuaggHist *hist = &calls.hist;

	*taken = false;
	DEVICE_CHECK(groups_fit(query, rows, error));
	if (query->form != FORM_DIRECT && query->form != FORM_SINGLE)
		return DEVICE_OK;
	hist->strategy = GPUAGG_HIST_TILES;
	hist->bins = groups_bins(query, rows);
	hist->nrows = rows->nrows;
	hist->program = program;
	hist->temporaries = temporaries;
	hist->input_row = first;
	DEVICE_CHECK(make_calls(query, rows, &calls, error));
	if (calls.refused)
		return DEVICE_OK;
	DEVICE_CHECK(query_reserve(query, &query->workspace, calls.workspace, error));
	calls.sizing = false;
	calls.n = 0;
	*taken = *applied = true;
	DEVICE_CHECK(make_calls(query, rows, &calls, error));
	query->rows += rows->nrows;
	query->ngroups = query->found;
	return DEVICE_OK;
}

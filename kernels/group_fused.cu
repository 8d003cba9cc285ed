/*
 * group_fused.cu
 *	  Hash group-by as one operation, host side: the choice of a form, the
 *	  workspace, and the calls where there is no fused form.
 *
 * The layout of the workspace depends on the rows and the slots only, but for its
 * end, so that a retry with a larger table finds there what the call before it left.
 */
#include "group_fused.cuh"
#include "group_fused_table.cuh"

#include <math.h>

/* Rows that are sampled to give partitions memory. */
#define MOST_SAMPLES (1 << 20)

/* Rows that a block may spill at least, beside an eighth of its own. */
#define SPILL_LEAST 64

/* Shared memory that kernels declare, at most. */
#define SHARED_RESERVE 256

struct FusedPlan
{
	HistArgs	hist;
	FusedArgs	f;
	int			kind;			/* FUSED_KINDS: no fused form */
	bool		moved;			/* rows go to partitions first */
};

/* ---- the shape ------------------------------------------------------------------- */

static bool
plain_slot(const HistSlot &slot)
{
	return !slot.filter && !slot.x.validity && !slot.y.validity;
}

/* The form of a slot beside a count, or FUSED_KINDS. */
static int
kind_of_slot(const HistSlot &slot)
{
	GpuaggValueType t = slot.x.type;

	if (slot.form == HIST_FIX)
		return slot.digits == 4 ? FUSED_FIX4 : FUSED_FIX3;
	if (slot.op == MONOID_SUM_I64 && (t == GPUAGG_VALUE_I32 || t == GPUAGG_VALUE_I64))
		return FUSED_INT;
	return FUSED_KINDS;
}

/* One count, one value, or both; else there is no fused form. */
static int
kind_of_slots(const HistArgs &hist, FusedArgs &f)
{
	int			kind = FUSED_COUNT;

	f.count = f.slot = -1;
	for (int s = 0; s < hist.nslots; s++)
	{
		const HistSlot &slot = hist.slot[s];

		if (!plain_slot(slot))
			return FUSED_KINDS;
		if (slot.form == HIST_COUNT && f.count < 0)
			f.count = s;
		else if (f.slot < 0 && (kind = kind_of_slot(slot)) != FUSED_KINDS)
		{
			f.slot = s;
			f.values = slot.x.values;
			f.type = slot.x.type;
		}
		else
			return FUSED_KINDS;
	}
	return kind;
}

/* ---- partitions -------------------------------------------------------------------- */

/*
 * As many partitions as make their groups fit shared memory, in two steps where
 * they are many.  The multiprocessors take equal numbers of few ones.
 */
static void
plan_parts(FusedArgs &f, const DeviceFacts &facts, int64_t distinct)
{
	/* of so many keys, these are among the rows */
	double		groups = distinct * (1 - exp(-(double) f.nrows / (distinct > 0 ? distinct : 1)));
	u32			sms = facts.sms,
				most = fused_most_fine(facts, f.values != nullptr),
				parts = (u32) fmin(ceil(groups / (FUSED_LOAD * (1 << f.log2_entries))), most);

	if (parts < 2 * sms)
		parts = 2 * sms;
	else if (parts < 16 * sms)
		parts = (parts + sms - 1) / sms * sms;
	f.part.parts = parts < PART_MANY ? parts : PART_MANY;
	f.part.fine = 1;
	if (parts > PART_MANY)
	{
		f.part.parts = (u32) ceil(sqrt(parts));
		f.part.fine = max(min((parts + f.part.parts - 1) / f.part.parts, most / f.part.parts), 1u);
	}
	f.part.samples = f.nrows < MOST_SAMPLES ? f.nrows : MOST_SAMPLES;
	f.part.room = f.nrows;
	if (f.part.samples < f.nrows)
	{
		double		each = (double) f.part.parts / f.part.samples;

		f.part.room = (u32) ((double) f.nrows * (1 + 6 * sqrt(each) + 24 * each)) + f.part.parts;
	}
}

/* Memory of partitions; what is to be zero at first lies together, from the head on. */
static void
take_parts(FusedArgs &f, const DeviceFacts &facts, Workspace &ws)
{
	u32			fine = f.part.parts * f.part.fine;

	f.part.sampled = ws.take<u32>(f.part.parts);
	f.part.fine_rows = ws.take<u32>((fine + 4095) & ~4095u);
	f.part.start = ws.take<u32>(f.part.parts);
	f.part.limit = ws.take<u32>(f.part.parts);
	f.part.cursor = ws.take<u32>(f.part.parts);
	f.part.first_tile = ws.take<u32>(f.part.parts + 1);
	f.part.item = ws.take<FusedItem>(fine);
	if (!f.part.spare)
	{
		f.part.piece_rows = f.nrows / facts.sms / 8 + 4096;
		f.part.most_rows = max(4 * f.part.piece_rows, f.nrows / fine / 4 * 5);
		f.part.split = ws.take<FusedItem>(f.nrows / f.part.most_rows + 1);
		f.part.piece = ws.take<FusedItem>(f.nrows / f.part.most_rows + f.nrows / f.part.piece_rows + 2);
	}
	else
		f.part.most_rows = ~0u;
	for (int k = 0; k < (f.part.fine > 1 ? 2 : 1); k++)
	{
		/* one more for rows that have no room; or what blocks may spill */
		size_t		rows = k ? f.nrows : max(f.part.room + 1, f.nrows / 8 + SPILL_LEAST * facts.sms);

		f.part.hash[k] = ws.take<u64>(rows);
		if (f.values)
			f.part.value[k] = ws.take<u64>(rows);
	}
}

/* ---- the call's own table ------------------------------------------------------------ */

/* Up to so many groups the rows are not moved; up to so many the separate calls are faster. */
#define MOST_LOCAL_GROUPS 4000
#define MOST_SEPARATE_GROUPS 40000
#define FEW_GROUPS 512
#define FOUR_DIGITS_GROUPS 1000
/* Room of the call's table for few groups, for others, and for pieces of partitions. */
#define LOCAL_FEW (1 << 16)
#define LOCAL_MANY (1 << 20)
#define LOCAL_PIECES (1 << 17)

/* Few groups have words several times, by lanes, and entries enough that hardly any two keys meet. */
static void
plan_entries(FusedPlan &plan, const DeviceFacts &facts, int64_t distinct)
{
	FusedArgs  &f = plan.f;

	while (f.log2_entries > 6 && 16 * distinct <= 1 << (f.log2_entries - 1))
		f.log2_entries--;
	f.log2_copies = 0;
	while (f.log2_copies < 5 &&
		   fused_table_bytes(plan.kind, f.log2_entries, f.log2_copies + 1) + SHARED_RESERVE <= facts.smem_per_block)
		f.log2_copies++;
	f.local.spills = (u32) facts.sms;
	f.local.spill_rows = f.nrows / 8 / f.local.spills + SPILL_LEAST;
}

/* The memory to be zero at first, and its size.  There are no more groups than rows. */
static void *
take_local(FusedPlan &plan, Workspace &ws, u32 most, size_t &zero_bytes)
{
	FusedArgs  &f = plan.f;
	u32			capacity = min(most, (f.nrows + 63) & ~63u);
	size_t		limbs = (size_t) capacity * (1 + fused_words(plan.kind));
	GpuaggGroupTable local = GpuaggGroupTable();
	char	   *zero;

	/* searched by local_hash of hashes: its own seed is not used */
	local.key_bytes = sizeof(u64);
	local.capacity = capacity;
	local.keys = ws.take<u64>(capacity);
	f.local.table = group_args(&local);
	zero_bytes = 256 + limbs * sizeof(u64) + (size_t) f.local.table.nslots * sizeof(Slot<1>);
	zero = ws.take<char>(zero_bytes);
	f.local.table.counters = (GpuaggGroupCounters *) zero;
	f.local.limb = (u64 *) (zero + 256);
	f.local.table.slots = f.local.limb + limbs;
	return zero;
}

/* ---- the separate calls ------------------------------------------------------------- */

/* Rows that were accumulated are not to be again, should there be a retry. */
static __global__ void
retire_kernel(const GpuaggGroupCounters *counters, int32_t *bins, u32 nrows)
{
	if (counters->pending == 0)
		return;
	for (u64 r = blockIdx.x * (u64) blockDim.x + threadIdx.x; r < nrows; r += (u64) gridDim.x * blockDim.x)
		if (bins[r] >= 0)
			bins[r] = GPUAGG_GROUP_FILTERED;
}

static GpuaggCudaStatus
update_separately(const GpuaggGroupTable *table, const void *keys, const uint8_t *validity, const uint8_t *filter,
				  const GpuaggHist *hist, int retry, void *workspace, size_t *workspace_bytes,
				  const DeviceFacts &facts, cudaStream_t stream)
{
	Workspace	ws(workspace);
	GpuaggHist	h = *hist;
	int32_t    *bins = ws.take<int32_t>(hist->nrows);
	char	   *rest;
	size_t		bytes = 0;

	h.bins = index_bins(bins, table->capacity);
	STATUS_TRY(gpuagg_hist_update(&h, nullptr, &bytes, stream));
	rest = ws.take<char>(bytes);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	STATUS_TRY(gpuagg_group_lookup(table, keys, validity, filter, hist->nrows, retry, bins, stream));
	if (hist->nrows == 0)
		return GPUAGG_CUDA_OK;
	STATUS_TRY(gpuagg_hist_update(&h, rest, &bytes, stream));
	retire_kernel<<<8 * facts.sms, 256, 0, stream>>>(table->counters, bins, (u32) hist->nrows);
	CUDA_TRY_LAUNCH("retire_kernel");
	return GPUAGG_CUDA_OK;
}

/* Ahead of every call, whether a retry or not. */
static __global__ void
start_kernel(const __grid_constant__ FusedArgs f)
{
	wait_for_predecessor();
	f.table.counters->pending = 0;
	f.head->next = f.head->next_careful = f.head->next_split = f.head->careful = 0;
	/* out-of-window values were added, unless groups had no room */
	if (f.retry && f.head->out_of_window == 1 && !f.head->unfolded)
		f.head->out_of_window = 2;
	f.head->unfolded = 0;
	f.head->fresh = f.table.counters->groups == 0 && f.table.counters->null_bin < 0;
	f.head->promised = min(f.table.counters->groups, f.table.capacity);
}

/* ---- the call ------------------------------------------------------------------------- */

static GpuaggCudaStatus
make_plan(const GpuaggGroupTable *table, const void *keys, const uint8_t *validity, const uint8_t *filter,
		  const GpuaggHist *hist, int64_t distinct, int retry, const DeviceFacts &facts, FusedPlan &plan)
{
	FusedArgs  &f = plan.f;

	plan = FusedPlan();
	if (!table_valid(table) || hist->nrows < 0 || hist->nrows > UINT32_MAX)
		return GPUAGG_CUDA_INVALID;
	plan.moved = hist->strategy == GPUAGG_HIST_PARTITION ||
		(hist->strategy != GPUAGG_HIST_SHARED && distinct > MOST_LOCAL_GROUPS);
	/* the more rows to a group, the more seldom digits should overflow */
	STATUS_TRY(hist_slots(hist, facts, !plan.moved && distinct <= FOUR_DIGITS_GROUPS ? 4 : 3, plan.hist));
	plan.kind = kind_of_slots(plan.hist, f);
	/* half of what 32 bits can number: partitions have room to spare */
	if (table->key_bytes > 8 || validity || hist->nrows == 0 || hist->nrows > INT32_MAX ||
		hist->strategy == GPUAGG_HIST_GLOBAL ||
		(hist->strategy == GPUAGG_HIST_AUTO && distinct > MOST_LOCAL_GROUPS && distinct <= MOST_SEPARATE_GROUPS))
		plan.kind = FUSED_KINDS;
	f.table = group_args(table);
	f.key_bytes = table->key_bytes;
	f.keys = keys;
	f.filter = filter;
	f.nrows = (u32) hist->nrows;
	f.retry = retry != 0;
	/* a device may have too little shared memory for a tile of rows, or for all entries */
	if (fused_most_fine(facts, f.values != nullptr) == 0)
		plan.kind = FUSED_KINDS;
	f.log2_entries = FUSED_LOG2_ENTRIES;
	while (plan.kind != FUSED_KINDS &&
		   fused_table_bytes(plan.kind, f.log2_entries, 0) + SHARED_RESERVE > facts.smem_per_block)
		f.log2_entries--;
	return GPUAGG_CUDA_OK;
}

static GpuaggCudaStatus
launch_start(const FusedPlan &plan, const DeviceFacts &facts, void *zero, size_t zero_bytes, cudaStream_t stream)
{
	HistArgs	hist = plan.hist;

	if (!plan.f.retry)
	{
		CUDA_TRY(cudaMemsetAsync(zero, 0, zero_bytes, stream));
		hist.zero = (u32 *) plan.f.head;
		hist.zeros = (u32) (plan.f.part.start - hist.zero);
		STATUS_TRY(hist_launch_prepare(hist, facts, stream));
	}
	CUDA_TRY(launch_early(start_kernel, 1, 1, 0, facts, stream, plan.f));
	return GPUAGG_CUDA_OK;
}

/* Items that are sure to have room, then others. */
static GpuaggCudaStatus
launch_items(int kind, const HistArgs &hist, const FusedArgs &f, const DeviceFacts &facts, cudaStream_t stream)
{
	FusedArgs	careful = f;

	careful.careful = true;
	STATUS_TRY(fused_launch_items(kind, hist, f, facts, stream));
	return fused_launch_items(kind, hist, careful, facts, stream);
}

/* Many groups: partitions, those of very many rows in pieces. */
static GpuaggCudaStatus
update_moved(FusedPlan &plan, int64_t distinct, const DeviceFacts &facts, Workspace &ws, size_t *workspace_bytes,
			 cudaStream_t stream)
{
	FusedArgs  &f = plan.f;
	FusedArgs	whole;
	size_t		zero_bytes;
	void	   *zero;

	plan_parts(f, facts, distinct);
	plan.hist.window = ws.take<int>(2 * GPUAGG_MAX_SLOTS);
	f.head = ws.take<FusedHead>(1);
	take_parts(f, facts, ws);
	zero = take_local(plan, ws, LOCAL_PIECES, zero_bytes);
	WORKSPACE_TRY(ws, ws.base, workspace_bytes);
	STATUS_TRY(launch_start(plan, facts, zero, zero_bytes, stream));
	STATUS_TRY(fused_launch_move(f, facts, stream));
	STATUS_TRY(launch_items(plan.kind, plan.hist, f, facts, stream));
	STATUS_TRY(fused_launch_pieces(plan.kind, plan.hist, f, facts, stream));
	whole = f;
	whole.careful = whole.whole = true;
	return fused_launch_items(plan.kind, plan.hist, whole, facts, stream);
}

/* Few groups: rows as they are; if they turn out to be many, partitions after all. */
static GpuaggCudaStatus
update_rows(FusedPlan &plan, int64_t distinct, const DeviceFacts &facts, Workspace &ws, size_t *workspace_bytes,
			cudaStream_t stream)
{
	FusedPlan	spare = plan;
	FusedArgs  &f = plan.f;
	size_t		zero_bytes;
	void	   *zero;

	spare.f.part.spare = true;
	plan_parts(spare.f, facts, MOST_SEPARATE_GROUPS);
	spare.hist.window = ws.take<int>(2 * GPUAGG_MAX_SLOTS);
	spare.f.head = ws.take<FusedHead>(1);
	take_parts(spare.f, facts, ws);
	f = spare.f;
	plan.hist.window = spare.hist.window;
	plan_entries(plan, facts, distinct);
	f.local.spilled = ws.take<u32>(f.local.spills);
	zero = take_local(plan, ws, distinct <= FEW_GROUPS ? LOCAL_FEW : LOCAL_MANY, zero_bytes);
	WORKSPACE_TRY(ws, ws.base, workspace_bytes);
	STATUS_TRY(launch_start(plan, facts, zero, zero_bytes, stream));
	STATUS_TRY(fused_launch_rows(plan.kind, plan.hist, f, facts, stream));
	STATUS_TRY(fused_launch_move(spare.f, facts, stream));
	return launch_items(spare.kind, spare.hist, spare.f, facts, stream);
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_update(const GpuaggGroupTable *table, const void *keys, const uint8_t *validity,
					const uint8_t *filter, const GpuaggHist *hist, int64_t distinct, int retry,
					void *workspace, size_t *workspace_bytes, gpuagg_stream stream)
{
	const DeviceFacts *facts;
	FusedPlan	plan;
	Workspace	ws(workspace);

	STATUS_TRY(gpuagg_device_facts(&facts));
	STATUS_TRY(make_plan(table, keys, validity, filter, hist, distinct, retry, *facts, plan));
	if (plan.kind == FUSED_KINDS)
		return update_separately(table, keys, validity, filter, hist, retry, workspace, workspace_bytes, *facts,
								 stream);
	return plan.moved ? update_moved(plan, distinct, *facts, ws, workspace_bytes, stream)
		: update_rows(plan, distinct, *facts, ws, workspace_bytes, stream);
}

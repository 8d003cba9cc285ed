/*
 * hist.cu
 *	  Generalized histograms, host side: the layout of bins in shared memory, the choice of a
 *	  strategy, and the workspace.
 */
#include "hist_change.cuh"
#include "hist_kernels.cuh"
#include "hist_slots.cuh"
#include "hist_tiles_args.h"
#include "partition.cuh"

/*
 * Entries of a warp for hot bins: at least so many where rows may be outside a window, more where
 * there is room.
 */
#define HOT_LEAST 4
#define HOT_MOST 64
#define HOT_RESERVE (HOT_LEAST * HIST_THREADS / 32 * (int) sizeof(HotEntry))
/* The same of states in the L2 cache, which have copies, too. */
#define HOT_GLOBAL 8

/*
 * Of so many bins that these bytes a bin fit shared memory, extremes of decimals are faster there.
 */
#define DECIMAL_BYTES 16

/*
 * Operators with a form in one way, argmax and argmin in theirs, the others in the L2 cache: each
 * reads the bins by itself.
 */
struct HistPlan
{
	HistArgs args;
	HistModel model;
	PartPlan part;
	PartPlan groups;       /* of partitions; no parts: none */
	HistExchange exchange; /* instead of the partition, if rows are even */
	HistArgs argmax;       /* slots of argmax and argmin */
	HistModel argmax_model;
	HistArgs rest; /* other slots without a form */
	HistModel rest_model;
};

static int
widest_column(const HistArgs &args)
{
	int widest = 4;

	for (int s = 0; s < args.nslots; s++)
		for (int k = 0; k < 2; k++)
		{
			const GpuaggColumn &c = k ? args.slot[s].y : args.slot[s].x;

			if (c.values && hist_type_bytes(c.type) > widest)
				widest = hist_type_bytes(c.type);
		}
	return widest;
}

static HistBins
kind_of_bins(const HistArgs &args)
{
	const HistSlot &first = args.slot[0];

	for (int s = 0; s < args.nslots; s++)
		if (args.slot[s].form != HIST_COUNT)
			return HIST_BINS_ANY;
	return args.nslots == 1 && !first.filter && !first.x.validity && !first.y.validity &&
			hist_simple_bins(args.bins) ?
		HIST_BINS_ONE_COUNT :
		HIST_BINS_COUNTS;
}

static HistDevice
hist_device(const DeviceFacts &facts, const HistArgs &args)
{
	HistDevice dev = {facts.sms, facts.threads_per_sm,
					  (int) facts.smem_per_block - SHARED_RESERVE - (args.locks ? HOT_RESERVE : 0),
					  (int64_t) facts.l2_bytes};

	return dev;
}

static bool
has_column_of_bins(const GpuaggBins &b)
{
	return hist_simple_bins(b) && b.column[0].values;
}

/*
 * Bins as partitions and exchanges take them: if they are not simple, a column of indexes that is
 * made before.
 */
static GpuaggBins
column_of_bins(const GpuaggBins &b)
{
	return has_column_of_bins(b) ? b : index_bins(nullptr, b.nbins);
}

/* An exchange where there would be a partition; sums of three digits, for registers. */
static void
choose_exchange(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan, int block_bits)
{
	bool always = hist->strategy == GPUAGG_HIST_EXCHANGE;
	HistArgs trial = plan.args;

	trial.bins = column_of_bins(hist->bins);
	if (!always && (hist->strategy != GPUAGG_HIST_AUTO || plan.model.form != HIST_FORM_PARTITION))
		return;
	hist_size_slots(trial, {3, 28, false, false}, block_bits, hist_log2_ceil(hist->nrows + 1));
	if (!hist_can_exchange(trial, facts, always))
		return;
	plan.args = trial;
	plan.exchange.owners = facts.sms;
	plan.model.form = HIST_FORM_PARTITION;
}

/*
 * The layout and the strategy of slots with a form.  Float sums take four digits where that costs
 * no further pass, else three; they, deviations and narrow integer sums keep their carries in
 * shared memory likewise, and counts beside deviations a word.
 */
static void
choose(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
{
	HistArgs &args = plan.args;
	HistDevice dev = hist_device(facts, args);
	int bits = hist_log2_ceil(hist->nrows / facts.sms + 4096 * 2);
	int64_t best = INT64_MAX;
	HistModel m;

	for (int i = 0; i < HIST_WIDTHS; i++)
	{
		HistArgs trial = args;

		hist_size_slots(trial, hist_widths[i], bits, hist_log2_ceil(hist->nrows + 1));
		m = hist_model(&dev, hist->bins.nbins, trial.words, hist->nrows, kind_of_bins(args));
		/* spilled carries need limbs that the whole device shares */
		if (hist_widths[i].spill &&
			(m.form != HIST_FORM_SHARED || hist->strategy == GPUAGG_HIST_PARTITION))
			break;
		if (hist_widths[i].in_moments && !hist_fast_takes(trial))
			break;
		if (m.passes < best)
		{
			best = m.passes;
			args = trial;
			plan.model = m;
		}
	}
	choose_exchange(hist, facts, plan, bits);
	if (hist->strategy == GPUAGG_HIST_SHARED && plan.model.form != HIST_FORM_BYTES)
		plan.model.form = HIST_FORM_SHARED;
	else if (hist->strategy == GPUAGG_HIST_PARTITION)
		plan.model.form = HIST_FORM_PARTITION;
	if (plan.model.form == HIST_FORM_PARTITION)
	{
		args.bins = column_of_bins(hist->bins);
		hist_model_partition(&dev, hist->bins.nbins, args.words, &plan.model);
		/* on a device with less shared memory a tile may have no room for them */
		if (part_tile_bytes(sizeof(u32), widest_column(args), plan.model.partitions) >
			(size_t) dev.shared_bytes)
			plan.model.form = HIST_FORM_GLOBAL;
	}
	else if (plan.model.form == HIST_FORM_SHARED && plan.model.passes > 1)
	{
		int64_t fit = dev.shared_bytes / 4 / args.words & ~1;

		plan.model.pass_bins = fit;
		plan.model.passes = (int) ((hist->bins.nbins + fit - 1) / fit);
	}
}

/* Whether a slot's inputs can be carried along by a partition. */
static bool
slot_moves(const HistSlot &slot)
{
	return !slot.filter && !slot.x.validity && !slot.y.validity;
}

static bool
add_column(PartColumns &cols, const GpuaggColumn &c)
{
	if (c.values == nullptr)
		return true;
	for (int i = 0; i < cols.n; i++)
		if (cols.from[i] == c.values && cols.bytes[i] == hist_type_bytes(c.type))
			return true;
	if (cols.n == PART_MAX_COLUMNS)
		return false;
	cols.from[cols.n] = c.values;
	cols.bytes[cols.n] = hist_type_bytes(c.type);
	cols.n++;
	return true;
}

/* Columns that the partition carries along, or else row numbers. */
static void
plan_columns(const GpuaggHist *hist, HistPlan &plan, Workspace &ws)
{
	PartColumns &cols = plan.part.columns;
	bool all = true;

	plan.part.stage_bytes = 4;
	cols.n = 0;
	for (int s = 0; s < plan.args.nslots && all; s++)
	{
		const HistSlot &slot = plan.args.slot[s];

		all = slot_moves(slot) && add_column(cols, slot.x) && add_column(cols, slot.y);
	}
	plan.part.moved = all;
	if (!all)
		cols.n = 0;
	plan.part.narrow = true;
	/* an exchange puts bins of rows there, too */
	plan.part.bin = plan.exchange.owners ? (void *) ws.take<int32_t>(hist->nrows) :
										   ws.take<uint16_t>(hist->nrows);
	if (!all)
		plan.part.row = ws.take<u32>(hist->nrows);
	for (int i = 0; i < cols.n; i++)
	{
		cols.to[i] = ws.take<char>(hist->nrows * (size_t) cols.bytes[i]);
		if (cols.bytes[i] > plan.part.stage_bytes)
			plan.part.stage_bytes = cols.bytes[i];
	}
}

/* Where rows go first if there are too many partitions for one step. */
static void
plan_groups(const GpuaggHist *hist, HistPlan &plan, Workspace &ws)
{
	PartPlan &groups = plan.groups;

	groups = plan.part;
	if (plan.part.parts <= PART_MANY)
	{
		groups.parts = 0;
		return;
	}
	while (groups.parts > PART_MANY / 2)
	{
		groups.shift++;
		groups.parts = (u32) ((hist->bins.nbins - 1) >> groups.shift) + 1;
	}
	groups.narrow = false;
	groups.cursor = ws.take<u32>(groups.parts);
	groups.bin = ws.take<int32_t>(hist->nrows);
	if (!groups.moved)
		groups.row = ws.take<u32>(hist->nrows);
	for (int i = 0; i < groups.columns.n; i++)
		groups.columns.to[i] = ws.take<char>(hist->nrows * (size_t) groups.columns.bytes[i]);
}

/* The accumulating kernel reads the moved columns. */
static void
redirect_columns(HistPlan &plan)
{
	PartColumns &cols = plan.part.columns;

	for (int s = 0; s < plan.args.nslots && plan.part.moved; s++)
		for (int k = 0; k < 2; k++)
		{
			GpuaggColumn &c = k ? plan.args.slot[s].y : plan.args.slot[s].x;

			for (int i = 0; i < cols.n; i++)
				if (c.values == cols.from[i] && hist_type_bytes(c.type) == cols.bytes[i])
				{
					c.values = cols.to[i];
					break;
				}
		}
}

static void
plan_partition(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan, Workspace &ws)
{
	PartPlan &part = plan.part;
	HistArgs &args = plan.args;
	size_t exchange_zeros;

	if (!has_column_of_bins(hist->bins))
		args.bins.column[0].values = ws.take<int32_t>(hist->nrows);
	part = PartPlan();
	part.parts = (u32) plan.model.partitions;
	part.part_bins = (u32) plan.model.pass_bins;
	part.shift = hist_log2_ceil(part.part_bins);
	part.piece_rows = (u32) (hist->nrows / facts.sms / 8 + 4096);
	part.max_item_rows = max(4 * part.piece_rows, (u32) (hist->nrows / part.parts / 4 * 5));
	part.max_splits = (u32) (hist->nrows / part.max_item_rows + 1);
	part.max_items = part.parts + part.max_splits + (u32) (hist->nrows / part.piece_rows) + 1;
	exchange_zeros = plan.exchange.owners ? hist_exchange_zero_words(args) : 0;
	args.zeros = (u32) exchange_zeros + part.parts;
	args.zero = ws.take<u32>(args.zeros);
	part.start = args.zero ? args.zero + exchange_zeros : nullptr;
	part.cursor = ws.take<u32>(part.parts);
	part.item = ws.take<HistItem>(part.max_items);
	part.counter = ws.take<u32>(HIST_NCOUNTERS);
	part.split_done = ws.take<u32>(part.max_splits);
	part.split_items = ws.take<u32>(part.max_splits);
	plan_columns(hist, plan, ws);
	if (plan.exchange.owners)
	{
		hist_exchange_plan(args, facts, hist->strategy == GPUAGG_HIST_EXCHANGE, args.zero, part,
						   plan.exchange, ws);
		args.part.exchanged = plan.exchange.taken;
	}
	plan_groups(hist, plan, ws);
	args.part.bin = (const uint16_t *) part.bin;
	args.part.row = part.row;
	args.part.item = part.item;
	args.part.counter = part.counter;
	args.part.split_done = part.split_done;
	args.part.split_items = part.split_items;
	args.limb_bins = part.part_bins;
	args.limb = ws.take<u64>((size_t) part.max_splits * args.limbs * args.limb_bins);
}

/* What the model says, to kernels. */
static void
set_model(const HistModel &m, HistArgs &args)
{
	args.passes = m.passes;
	args.pass_bins = (u32) m.pass_bins;
	args.log2_copies = args.log2_most = m.log2_copies;
}

/* Copies of the slots without a form. */
static void
choose_rest(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
{
	HistDevice dev = hist_device(facts, plan.rest);
	int bytes = 0;
	bool reads = true;

	for (int s = 0; s < plan.rest.nslots; s++)
	{
		reads = reads && mostly_reads(plan.rest.slot[s].op);
		bytes += gpuagg_monoids[plan.rest.slot[s].op].state_size;
	}
	plan.rest_model = hist_model_global(&dev, hist->bins.nbins, bytes, hist->nrows, reads);
	set_model(plan.rest_model, plan.rest);
	plan.rest.spread = hist_model_spread(&dev);
	plan.rest.locks = true;
	plan.rest.hot_entries = reads ? 0 : HOT_GLOBAL;
}

static void
choose_argmax(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
{
	HistDevice dev = hist_device(facts, plan.argmax);

	plan.argmax_model = HistModel();
	plan.argmax_model.form = HIST_FORM_GLOBAL;
	if (hist->strategy != GPUAGG_HIST_GLOBAL)
		plan.argmax_model = hist_model_argmax(&dev, hist->bins.nbins, hist->nrows,
											  hist->strategy == GPUAGG_HIST_SHARED);
	plan.argmax.locks = true;
}

/* What tiles do of a slot. */
static HistTile
tile_of(const HistSlot &slot)
{
	if (slot.y.values || hist_type_bytes(slot.x.type) > 8)
		return TILE_NONE;
	if (sums_floats(slot.op) && slot.x.computed)
		return TILE_NONE;
	switch (slot.form)
	{
		case HIST_COUNT:
			return TILE_COUNT;
		case HIST_INT:
			return hist_type_bytes(slot.x.type) <= 4 ? TILE_INT_I32 : TILE_INT_I64;
		case HIST_FIX:
			return slot.digits == 3 ? TILE_FIX3 : TILE_FIX4;
		case HIST_MAX32:
			return TILE_MAX32;
		case HIST_MAX64:
			return TILE_MAX64;
		case HIST_INTSQ:
		case HIST_ACCUM:
			return TILE_SQUARES;
		default:
			return TILE_NONE;
	}
}

static bool
same_column(const GpuaggColumn &a, const GpuaggColumn &b)
{
	return a.values == b.values && a.validity == b.validity && a.type == b.type &&
		a.computed == b.computed && a.operand == b.operand;
}

/* Slots of a column behind each other, so that it is read once. */
static void
order_slots(HistArgs &args)
{
	for (int s = 1; s < args.nslots; s++)
	{
		int like = s;

		while (like > 0 && !same_column(args.slot[like - 1].x, args.slot[s].x))
			like--;
		for (int i = s; like > 0 && i > like; i--)
		{
			HistSlot other = args.slot[i];

			args.slot[i] = args.slot[i - 1];
			args.slot[i - 1] = other;
		}
	}
	for (int s = 1; s < args.nslots; s++)
		args.slot[s].again = same_column(args.slot[s - 1].x, args.slot[s].x);
}

/* Does a program compute some key? */
static bool
bins_computed(const GpuaggBins &b)
{
	for (int c = 0; c < b.ncolumns; c++)
		if (b.column[c].computed)
			return true;
	return false;
}

/* How many bins fit shared memory beside what a program needs; may be negative. */
static int
bins_beside_tiles(const HistArgs &args, const HistDevice &dev)
{
	return (dev.shared_bytes - (int) hist_tile_bytes(args)) / 4 / args.words;
}

static GpuaggCudaStatus
plan_tiles(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
{
	HistArgs &args = plan.args;
	int bits = hist_log2_ceil(hist->nrows / facts.sms + 4096 * 2);

	STATUS_TRY(hist_check_bins(hist->bins, 0));
	if (hist->bins.kind != GPUAGG_BIN_RANGE || hist->program == nullptr)
		return GPUAGG_CUDA_UNSUPPORTED;
	args.bins = hist->bins;
	args.report = true;
	args.program = hist->program;
	args.temporaries = hist->temporaries;
	args.input_bytes = hist->input_bytes;
	args.input_row = (u32) hist->input_row;
	args.nslots = hist->nslots;
	for (int s = 0; s < args.nslots; s++)
	{
		HistSlot &slot = args.slot[s];

		STATUS_TRY(hist_set_slot(hist, s, slot));
		hist_set_extreme(slot);
		args.locks = args.locks || hist_takes_locks(slot);
	}
	order_slots(args);
	for (int i = 0; i < HIST_WIDTHS; i++)
	{
		HistDevice dev = hist_device(facts, args);
		bool all = true;

		if (hist_widths[i].in_moments)
			break;
		hist_size_slots(args, hist_widths[i], bits, hist_log2_ceil(hist->nrows + 1));
		for (int s = 0; s < args.nslots; s++)
		{
			args.slot[s].tile = tile_of(args.slot[s]);
			all = all && args.slot[s].tile != TILE_NONE;
		}
		if (!all)
			break;
		args.tiles = hist_choose_tiles(args, hist->steps);
		/* fewer threads have fewer temporaries */
		if (args.tiles == TILES_LIGHT && bins_beside_tiles(args, dev) < hist->bins.nbins + 1)
			args.tiles = TILES_MIDDLE;
		if (bins_beside_tiles(args, dev) < hist->bins.nbins + 1)
			continue;
		dev.shared_bytes -= (int) hist_tile_bytes(args);
		plan.model = hist_model(&dev, hist->bins.nbins, args.words, hist->nrows, HIST_BINS_ANY);
		if (plan.model.form != HIST_FORM_SHARED || plan.model.passes > 1)
			continue;
		/* a program's bins are in no memory that could be sampled */
		if (bins_computed(args.bins) || args.bins.ncolumns == 0)
			plan.model.log2_copies = plan.model.log2_most;
		set_model(plan.model, args);
		args.pass_bins += args.pass_bins & 1;
		args.spread = HIST_SPREAD_BINS;
		return GPUAGG_CUDA_OK;
	}
	return GPUAGG_CUDA_UNSUPPORTED;
}

/* What of the arguments is the call's, but for bins and slots. */
static GpuaggCudaStatus
begin_args(const GpuaggHist *hist, HistArgs &args)
{
	args = HistArgs();
	if (hist->nslots < 1 || hist->nslots > GPUAGG_MAX_SLOTS || hist->nrows < 0)
		return GPUAGG_CUDA_INVALID;
	if (hist->nrows > UINT32_MAX)
		return GPUAGG_CUDA_UNSUPPORTED;
	args.nrows = (u32) hist->nrows;
	args.status = hist->status;
	return GPUAGG_CUDA_OK;
}

static GpuaggCudaStatus
make_plan(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
{
	HistArgs &args = plan.args;

	plan = HistPlan();
	STATUS_TRY(begin_args(hist, args));
	if (hist->strategy == GPUAGG_HIST_TILES)
		return plan_tiles(hist, facts, plan);
	STATUS_TRY(hist_check_bins(hist->bins));
	args.bins = hist->bins;
	args.report = true;
	plan.rest = plan.argmax = args;
	for (int s = 0; s < hist->nslots; s++)
	{
		HistSlot slot;

		STATUS_TRY(hist_set_slot(hist, s, slot));
		if (hist->bins.nbins <= (int64_t) facts.smem_per_block / DECIMAL_BYTES)
			hist_set_extreme(slot);
		if (is_argmax(slot.op))
			plan.argmax.slot[plan.argmax.nslots++] = slot;
		else if (slot.form == HIST_GENERIC || hist->strategy == GPUAGG_HIST_GLOBAL)
			plan.rest.slot[plan.rest.nslots++] = slot;
		else
			args.slot[args.nslots++] = slot;
	}
	for (int s = 0; s < args.nslots; s++)
		args.locks = args.locks || hist_takes_locks(args.slot[s]);
	if (args.nslots > 0)
		choose(hist, facts, plan);
	if (plan.model.form == HIST_FORM_GLOBAL)
	{
		for (int s = 0; s < args.nslots; s++)
			plan.rest.slot[plan.rest.nslots++] = args.slot[s];
		args.nslots = 0;
	}
	set_model(plan.model, args);
	args.pass_bins += args.pass_bins & 1;
	args.spread = HIST_SPREAD_BINS;
	if (plan.rest.nslots > 0)
		choose_rest(hist, facts, plan);
	if (plan.argmax.nslots > 0)
		choose_argmax(hist, facts, plan);
	/* rows out of range are reported once */
	plan.rest.report = plan.args.nslots == 0;
	plan.argmax.report = plan.args.nslots == 0 && plan.rest.nslots == 0;
	return GPUAGG_CUDA_OK;
}

GpuaggCudaStatus
hist_slots(const GpuaggHist *hist, const DeviceFacts &facts, int digits, HistArgs &args)
{
	STATUS_TRY(begin_args(hist, args));
	args.nslots = hist->nslots;
	for (int s = 0; s < hist->nslots; s++)
		STATUS_TRY(hist_set_slot(hist, s, args.slot[s]));
	hist_size_slots(args, {digits, 28, false, false},
					hist_log2_ceil(hist->nrows / facts.sms + 4096 * 2),
					hist_log2_ceil(hist->nrows + 1));
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_hist_choose(const GpuaggHist *hist, GpuaggHistChoice *choice)
{
	const DeviceFacts *facts;
	HistPlan plan;

	STATUS_TRY(gpuagg_device_facts(&facts));
	STATUS_TRY(make_plan(hist, *facts, plan));
	if (plan.args.nslots == 0 && plan.rest.nslots == 0)
	{
		bool shared = plan.argmax_model.form == HIST_FORM_SHARED;

		choice->strategy = shared ? GPUAGG_HIST_SHARED : GPUAGG_HIST_GLOBAL;
		choice->copies = 1 << plan.argmax_model.log2_copies;
		choice->passes = 1;
		choice->bin_bytes = shared ? HIST_ARGMAX_BYTES : 0;
		choice->together = false;
		return GPUAGG_CUDA_OK;
	}
	if (plan.args.nslots == 0)
	{
		choice->strategy = GPUAGG_HIST_GLOBAL;
		choice->copies = 1 << plan.rest_model.log2_copies;
		choice->passes = plan.rest_model.passes;
		choice->bin_bytes = 0;
		choice->together = false;
		return GPUAGG_CUDA_OK;
	}
	choice->strategy = hist->strategy == GPUAGG_HIST_TILES ? GPUAGG_HIST_TILES :
		plan.exchange.owners                               ? GPUAGG_HIST_EXCHANGE :
		plan.model.form == HIST_FORM_PARTITION             ? GPUAGG_HIST_PARTITION :
															 GPUAGG_HIST_SHARED;
	choice->copies = 1 << plan.model.log2_copies;
	choice->passes = choice->strategy == GPUAGG_HIST_PARTITION ? (int) plan.model.partitions :
		plan.exchange.owners                                   ? 1 :
																 plan.model.passes;
	choice->bin_bytes = plan.model.form == HIST_FORM_BYTES ? 1 : 4 * plan.args.words;
	choice->together = plan.model.form == HIST_FORM_SHARED && plan.model.passes == 1 &&
		plan.rest.nslots == 0 && plan.argmax.nslots == 0 && hist_fast_takes(plan.args);
	return GPUAGG_CUDA_OK;
}

/* What slots with a form need in the workspace; `bytes` is of counts in bytes alone. */
static void
plan_workspace(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan, Workspace &ws,
			   u32 **bytes)
{
	HistArgs &args = plan.args;

	*bytes = nullptr;
	if (plan.model.form == HIST_FORM_PARTITION)
		plan_partition(hist, facts, plan, ws);
	else if (plan.model.form == HIST_FORM_BYTES)
		*bytes = ws.take<u32>((size_t) hist_count_blocks(args.nrows, facts) * args.pass_bins / 4);
	else if (hist->strategy == GPUAGG_HIST_TILES || !hist_narrow_takes(args))
	{
		args.limb_bins = (u32) hist->bins.nbins + 2;
		args.limb_bins &= ~1u;
		args.limb = ws.take<u64>((size_t) args.limbs * args.limb_bins);
		/* what has no preparation has no sample, either; counts do not slow down on equal bins */
		if (plan.model.log2_most > plan.model.log2_copies)
		{
			args.log2_most = plan.model.log2_most;
			args.copies = ws.take<int>(1);
		}
		if (hist->strategy != GPUAGG_HIST_TILES)
			args.out_of_window = ws.take<u32>(hist_deviation_mark_words(args));
	}
}

/*
 * Entries for hot bins (hist_change.cuh) of a warp: `most`, or fewer where a block's shared memory
 * is too small.
 */
static void
plan_hot_entries(const DeviceFacts &facts, HistArgs &args, int most)
{
	if (!args.locks)
		return;
	args.hot_entries = most;
	while (args.hot_entries > HOT_LEAST &&
		   bytes_with_hot(args, HIST_THREADS) + hist_tile_bytes(args) >
			   facts.smem_per_block - SHARED_RESERVE)
		args.hot_entries /= 2;
}

/* Room for 1 << most copies of a slot's states; the states themselves are the first. */
static void
plan_copies(HistArgs &args, int s, int most, int *log2, Workspace &ws)
{
	size_t more = (size_t) ((args.bins.nbins << most) - args.bins.nbins);

	args.extra[s].states = ws.take<char>(more * gpuagg_monoids[args.slot[s].op].state_size);
	args.extra[s].log2 = log2;
	args.extra[s].log2_most = most;
}

/* Copies of the states that out-of-window rows change under locks. */
static void
plan_out_of_window(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan, Workspace &ws)
{
	HistArgs &args = plan.args;
	HistDevice dev = hist_device(facts, args);
	int blocks = (plan.model.form == HIST_FORM_PARTITION ? HIST_PARTITION_BLOCKS : 1) * facts.sms,
		bytes = 0, most;
	int *log2;

	if (!args.locks)
		return;
	for (int s = 0; s < args.nslots; s++)
		if (locks_out_of_window(args.slot[s].op))
			bytes += gpuagg_monoids[args.slot[s].op].state_size;
	if (bytes == 0)
		return;
	most = hist_model_global(&dev, hist->bins.nbins, bytes, hist->nrows, false).log2_most;
	/* a block changes one of them */
	while (1 << most > blocks)
		most--;
	if (most == 0)
		return;
	args.out_of_window_threads = (int64_t) blocks * HIST_THREADS;
	log2 = ws.take<int>(GPUAGG_MAX_SLOTS);
	for (int s = 0; s < args.nslots; s++)
		if (locks_out_of_window(args.slot[s].op))
			plan_copies(args, s, most, log2 + s, ws);
}

/* Copies of the states of the others. */
static void
plan_rest(HistPlan &plan, Workspace &ws)
{
	HistArgs &rest = plan.rest;

	if (plan.rest_model.log2_most == 0)
		return;
	rest.log2_most = plan.rest_model.log2_most;
	rest.copies = ws.take<int>(1);
	for (int s = 0; s < rest.nslots; s++)
		plan_copies(rest, s, rest.log2_most, rest.copies, ws);
}

static GpuaggCudaStatus
launch_forms(const GpuaggHist *hist, HistPlan &plan, u32 *bytes, const DeviceFacts &facts,
			 cudaStream_t stream)
{
	HistArgs &args = plan.args;

	if (plan.model.form == HIST_FORM_PARTITION && !has_column_of_bins(hist->bins))
		STATUS_TRY(gpuagg_hist_bins(&hist->bins, hist->nrows,
									(int32_t *) args.bins.column[0].values, hist->status, stream));
	if (plan.model.form == HIST_FORM_BYTES)
		return hist_launch_counts(args, bytes, facts, stream);
	if (plan.model.form == HIST_FORM_SHARED && args.limb == nullptr)
		return hist_launch_narrow(args, facts, stream);
	STATUS_TRY(hist_launch_prepare(args, facts, stream));
	STATUS_TRY(hist_launch_init_copies(args, facts, stream));
	if (hist->strategy == GPUAGG_HIST_TILES)
		STATUS_TRY(hist_launch_tiles(args, facts, stream));
	else if (plan.model.form == HIST_FORM_SHARED)
		STATUS_TRY(hist_launch_shared(args, facts, stream));
	else
	{
		if (plan.exchange.owners)
			STATUS_TRY(hist_launch_exchange(args, plan.exchange, facts, stream));
		STATUS_TRY(hist_launch_split(args, plan.part, plan.groups, facts, stream));
		redirect_columns(plan);
		STATUS_TRY(hist_launch_partition(args, facts, stream));
	}
	return hist_launch_merge_copies(args, facts, stream);
}

GPUAGG_API GpuaggCudaStatus
gpuagg_hist_update(const GpuaggHist *hist, void *workspace, size_t *workspace_bytes,
				   gpuagg_stream stream)
{
	const DeviceFacts *facts;
	HistPlan plan;
	Workspace ws(workspace);
	u32 *bytes = nullptr;

	STATUS_TRY(gpuagg_device_facts(&facts));
	STATUS_TRY(make_plan(hist, *facts, plan));
	plan.args.window = plan.rest.window = plan.argmax.window = ws.take<int>(2 * GPUAGG_MAX_SLOTS);
	plan.args.lock = plan.rest.lock = plan.argmax.lock = ws.take<u32>(HIST_LOCKS);
	if (plan.args.nslots > 0)
	{
		plan_workspace(hist, *facts, plan, ws, &bytes);
		plan_hot_entries(*facts, plan.args,
						 plan.model.form == HIST_FORM_PARTITION ? HOT_LEAST : HOT_MOST);
		plan_out_of_window(hist, *facts, plan, ws);
	}
	if (plan.rest.nslots > 0)
		plan_rest(plan, ws);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (hist->nrows == 0)
		return GPUAGG_CUDA_OK;
	if (plan.args.nslots > 0)
		STATUS_TRY(launch_forms(hist, plan, bytes, *facts, stream));
	if (plan.rest.nslots > 0)
		STATUS_TRY(hist_launch_global(plan.rest, *facts, stream));
	if (plan.argmax.nslots > 0)
		STATUS_TRY(hist_launch_argmax(plan.argmax, plan.argmax_model, *facts, stream));
	return GPUAGG_CUDA_OK;
}

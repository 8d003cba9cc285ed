/*
 * hist.cu
 *	  Generalized histograms, host side: plans a call of gpuagg_hist_update and launches its
 *	  kernels.
 *
 * Each call is planned from its arguments and the properties of the device alone:
 *
 *	1. Slots are divided into those with a form in shared memory, ARGMAX and ARGMIN, and all others.
 *	2. For slots with a form, hist_model.h chooses the form, the copies and the passes, and
 *	   hist_slots.cu lays out the words of a bin.
 *	3. The workspace is divided into limbs, copies of states, partitions, and so on. The same code
 *	   computes its size when the workspace is NULL.
 *	4. The kernels are launched: preparation, kernels that add rows, fold.
 *
 * Kernels are queued on the caller's stream. Nothing synchronizes, and no memory is allocated.
 */
#include "hist_change.cuh"
#include "hist_kernels.cuh"
#include "hist_slots.cuh"
#include "hist_tiles_args.h"
#include "partition.cuh"

/* Bytes of shared memory that hot bins have at least, if rows may be outside a window. */
#define HOT_RESERVE \
	(HIST_MIN_HOT_ENTRIES_PER_WARP * HIST_THREADS_PER_BLOCK / 32 * (int) sizeof(HotEntry))

/*
 * The plan of a call. Slots are divided into three kinds, which have kernels of their own and find
 * the bins separately.
 */
struct HistPlan
{
	HistArgs args; /* slots with a form in shared memory */
	HistModel model;
	PartPlan part; /* if model.form is HIST_FORM_PARTITION */
	/* The first step of a partition in two steps. groups.parts == 0: there is one step. */
	PartPlan groups;
	/*
	 * Replaces the partition if the device finds that rows are spread evenly. owners == 0: no
	 * exchange.
	 */
	HistExchange exchange;
	HistArgs argmax; /* slots of ARGMAX and ARGMIN */
	HistModel argmax_model;
	HistArgs global; /* slots whose states are changed in the L2 cache */
	HistModel global_model;
};

/* Returns the width of the widest input column of the slots; at least 4. */
static int
widest_column_bytes(const HistArgs &args)
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

/* Classifies the slots for hist_model(): one plain count, only counts, or any others. */
static HistSlotsKind
kind_of_slots(const HistArgs &args)
{
	const HistSlot &first = args.slot[0];

	for (int s = 0; s < args.nslots; s++)
		if (args.slot[s].form != HIST_COUNT)
			return HIST_SLOTS_ANY;
	return args.nslots == 1 && !first.filter && !first.x.validity && !first.y.validity &&
			hist_bins_are_simple(args.bins) ?
		HIST_SLOTS_ONE_COUNT :
		HIST_SLOTS_COUNTS;
}

/*
 * Returns the device as hist_model.h sees it. Its shared memory is what kernels have for the words
 * of bins.
 */
static HistDevice
hist_device(const DeviceFacts &facts, const HistArgs &args)
{
	HistDevice dev = {facts.sms, facts.threads_per_sm,
					  (int) facts.smem_per_block - SHARED_RESERVE - (args.locks ? HOT_RESERVE : 0),
					  (int64_t) facts.l2_bytes};

	return dev;
}

/* Returns whether partitions and exchanges can read the bins from the caller's own column. */
static bool
bins_are_a_column(const GpuaggBins &b)
{
	return hist_bins_are_simple(b) && b.column[0].values;
}

/*
 * Returns bins that partitions and exchanges can read. If the bins are not a simple column, they
 * become a column of indexes, which gpuagg_hist_bins fills in the workspace.
 */
static GpuaggBins
bins_as_column(const GpuaggBins &b)
{
	return bins_are_a_column(b) ? b : make_index_bins(nullptr, b.nbins);
}

/*
 * Chooses an exchange where the model has chosen a partition, or where the caller demands it. Float
 * sums then have digits, whose carries need no order.
 */
static void
choose_exchange(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan, int block_bits)
{
	bool always = hist->strategy == GPUAGG_HIST_EXCHANGE;
	HistArgs trial = plan.args;

	trial.bins = bins_as_column(hist->bins);
	if (!always && (hist->strategy != GPUAGG_HIST_AUTO || plan.model.form != HIST_FORM_PARTITION))
		return;
	hist_size_slots(trial, {FIX_DIGITS, 28, false, false}, block_bits,
					hist_log2_ceil(hist->nrows + 1));
	if (!hist_exchange_supports(trial, facts, always))
		return;
	plan.args = trial;
	plan.exchange.owners = facts.sms;
	plan.model.form = HIST_FORM_PARTITION;
}

/*
 * Chooses the form of slots with a form, and lays out their words. Float sums are chains where that
 * costs no further pass, else digits. In the same way, with more bins, the carries of float
 * sums, deviations and narrow integer sums move to limbs in device memory, and a COUNT shares the
 * word of an ACCUM slot.
 */
static void
choose_form(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
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
		m = hist_model(&dev, hist->bins.nbins, trial.words, hist->nrows, kind_of_slots(args));
		/* spilled carries need limbs of all bins, which partitions do not have */
		if (hist_widths[i].spill &&
			(m.form != HIST_FORM_SHARED || hist->strategy == GPUAGG_HIST_PARTITION))
			break;
		if (hist_widths[i].in_moments && !hist_fast_supports(trial))
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
		args.bins = bins_as_column(hist->bins);
		hist_model_partition(&dev, hist->bins.nbins, args.words, &plan.model);
		/* a tile of the partition may not fit the shared memory of a small device */
		if (part_tile_bytes(sizeof(u32), widest_column_bytes(args), plan.model.partitions) >
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

/*
 * Returns whether a partition can move the input columns of a slot. It moves values only, not
 * filters or validity bits.
 */
static bool
can_move_inputs(const HistSlot &slot)
{
	return !slot.filter && !slot.x.validity && !slot.y.validity;
}

/*
 * Adds c to cols, the columns that a partition moves, unless c is empty or in cols already. Returns
 * false if cols is full.
 */
static bool
add_moved_column(PartColumns &cols, const GpuaggColumn &c)
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

/*
 * Takes workspace for what the partition moves: the columns that slots read, or, if one of them
 * cannot be moved, the numbers of the rows.
 */
static void
plan_moved_columns(const GpuaggHist *hist, HistPlan &plan, Workspace &ws)
{
	PartColumns &cols = plan.part.columns;
	bool all = true;

	plan.part.stage_bytes = 4;
	cols.n = 0;
	for (int s = 0; s < plan.args.nslots && all; s++)
	{
		const HistSlot &slot = plan.args.slot[s];

		all = can_move_inputs(slot) && add_moved_column(cols, slot.x) &&
			add_moved_column(cols, slot.y);
	}
	plan.part.moved = all;
	if (!all)
		cols.n = 0;
	plan.part.narrow = true;
	/* an exchange also stores bins of deferred rows there, as int32 */
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

/*
 * Plans a first step that moves rows to groups of partitions, if one step cannot do all partitions.
 */
static void
plan_partition_groups(const GpuaggHist *hist, HistPlan &plan, Workspace &ws)
{
	PartPlan &groups = plan.groups;

	groups = plan.part;
	if (plan.part.parts <= PARTITION_MAX_IN_ONE_STEP)
	{
		groups.parts = 0;
		return;
	}
	while (groups.parts > PARTITION_MAX_IN_ONE_STEP / 2)
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

/* Makes slots read the moved columns, for the kernel that adds the rows of the partitions. */
static void
point_slots_to_moved_columns(HistPlan &plan)
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

void
hist_plan_items(int64_t nrows, const DeviceFacts &facts, PartPlan &part, Workspace &ws)
{
	part.split_item_rows =
		(u32) (nrows / facts.sms / PARTITION_SPLIT_ITEMS_PER_SM + PARTITION_MIN_SPLIT_ITEM_ROWS);
	part.max_item_rows =
		max(PARTITION_MAX_ITEM_SPLITS * part.split_item_rows, (u32) (nrows / part.parts / 4 * 5));
	part.max_splits = (u32) (nrows / part.max_item_rows + 1);
	part.max_items = part.parts + part.max_splits + (u32) (nrows / part.split_item_rows) + 1;
	part.cursor = ws.take<u32>(part.parts);
	part.item = ws.take<HistItem>(part.max_items);
	part.counter = ws.take<u32>(HIST_NCOUNTERS);
	part.split_done = ws.take<u32>(part.max_splits);
	part.split_items = ws.take<u32>(part.max_splits);
}

/* Points the arguments of the kernels to the arrays of a partition. */
static void
set_partitioned(const PartPlan &part, HistPartitioned &args)
{
	args.bin = (const uint16_t *) part.bin;
	args.row = part.row;
	args.item = part.item;
	args.counter = part.counter;
	args.split_done = part.split_done;
	args.split_items = part.split_items;
}

/* Takes workspace for a partition, and for an exchange if there is one, and sets their plans. */
static void
plan_partition(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan, Workspace &ws)
{
	PartPlan &part = plan.part;
	HistArgs &args = plan.args;
	size_t exchange_zeros;

	if (!bins_are_a_column(hist->bins))
		args.bins.column[0].values = ws.take<int32_t>(hist->nrows);
	part = PartPlan();
	part.parts = (u32) plan.model.partitions;
	part.part_bins = (u32) plan.model.pass_bins;
	part.shift = hist_log2_ceil(part.part_bins);
	exchange_zeros = plan.exchange.owners ? hist_exchange_zeroed_words(args) : 0;
	args.zeros = (u32) exchange_zeros + part.parts;
	args.zero = ws.take<u32>(args.zeros);
	part.start = args.zero ? args.zero + exchange_zeros : nullptr;
	hist_plan_items(hist->nrows, facts, part, ws);
	plan_moved_columns(hist, plan, ws);
	if (plan.exchange.owners)
	{
		hist_exchange_plan(args, facts, hist->strategy == GPUAGG_HIST_EXCHANGE, args.zero, part,
						   plan.exchange, ws);
		args.part.exchanged = plan.exchange.taken;
	}
	plan_partition_groups(hist, plan, ws);
	set_partitioned(part, args.part);
	args.limb_bins = part.part_bins;
	args.limb = ws.take<u64>((size_t) part.max_splits * args.limbs * args.limb_bins);
}

/*
 * Points slots of a call whose rows were partitioned by key to the moved columns. Returns false if
 * some input was not moved.
 */
static bool
find_moved_columns(const GpuaggKeyParts &parts, HistPlan &plan)
{
	PartColumns &cols = plan.part.columns;

	cols.n = parts.nmoved;
	for (int i = 0; i < cols.n; i++)
	{
		cols.from[i] = parts.moved[i].values;
		cols.bytes[i] = hist_type_bytes(parts.moved[i].type);
		cols.to[i] = parts.to[i];
	}
	for (int s = 0; s < plan.args.nslots; s++)
	{
		const HistSlot &slot = plan.args.slot[s];

		/* adds no column if the input was moved */
		if (!can_move_inputs(slot) || !add_moved_column(cols, slot.x) ||
			!add_moved_column(cols, slot.y) || cols.n > parts.nmoved)
			return false;
	}
	return true;
}

/* Plans a call whose rows were partitioned by key. */
static GpuaggCudaStatus
plan_key_parts(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
{
	static const HistWidth widths[] = {{FIX_CHAIN_WORDS, 24, false, false},
									   {FIX_CHAIN_WORDS, 28, false, false},
									   {FIX_DIGITS, 28, false, false}};
	const GpuaggKeyParts &parts = *hist->parts;
	HistArgs &args = plan.args;
	HistDevice dev = hist_device(facts, args);
	int bits = hist_log2_ceil(hist->nrows / facts.sms + 4096 * 2);
	bool fits = false;

	if (plan.global.nslots > 0 || plan.argmax.nslots > 0 || hist->nrows != parts.nrows)
		return GPUAGG_CUDA_UNSUPPORTED;
	for (const HistWidth &width : widths)
		if (!fits)
		{
			hist_size_slots(args, width, bits, hist_log2_ceil(hist->nrows + 1));
			fits = (int64_t) 4 * args.words * parts.most_groups <= dev.shared_bytes;
		}
	if (!fits)
		return GPUAGG_CUDA_UNSUPPORTED;
	plan.model = HistModel();
	plan.model.form = HIST_FORM_PARTITION;
	plan.model.passes = 1;
	plan.model.pass_bins = parts.most_groups;
	plan.model.partitions = parts.nparts;
	plan.part = PartPlan();
	plan.part.moved = find_moved_columns(parts, plan);
	if (!plan.part.moved && !parts.numbers)
		return GPUAGG_CUDA_UNSUPPORTED;
	args.part.first = parts.first;
	args.part.groups = parts.ngroups;
	args.part.bins = parts.dense ? nullptr : parts.bins;
	plan.part.bin = parts.number;
	plan.part.row = plan.part.moved ? nullptr : parts.row;
	plan.part.item = (HistItem *) parts.items;
	plan.part.counter = parts.item_counters;
	plan.part.split_done = parts.split_done;
	plan.part.split_items = parts.split_items;
	set_partitioned(plan.part, args.part);
	return GPUAGG_CUDA_OK;
}

/* Sets the numbers of passes and of copies in args from the model. */
static void
set_model_args(const HistModel &m, HistArgs &args)
{
	args.passes = m.passes;
	args.pass_bins = (u32) m.pass_bins;
	args.log2_copies = args.log2_max_copies = m.log2_copies;
}

/*
 * Chooses how many copies the states of plan.global have. The kernel changes them in the L2 cache
 * (hist_global.cu).
 */
static void
choose_global_copies(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
{
	HistDevice dev = hist_device(facts, plan.global);
	int bytes = 0;
	bool reads = true;

	for (int s = 0; s < plan.global.nslots; s++)
	{
		reads = reads && mostly_reads(plan.global.slot[s].op);
		bytes += gpuagg_monoids[plan.global.slot[s].op].state_size;
	}
	plan.global_model = hist_model_global(&dev, hist->bins.nbins, bytes, hist->nrows, reads);
	set_model_args(plan.global_model, plan.global);
	plan.global.spread = hist_model_spread(&dev);
	plan.global.locks = true;
	plan.global.hot_entries = reads ? 0 : HIST_GLOBAL_HOT_ENTRIES_PER_WARP;
}

/*
 * Chooses where the kernels of ARGMAX and ARGMIN keep the best rows: as pairs in shared memory, or
 * as states in the L2 cache.
 */
static void
choose_argmax_form(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
{
	HistDevice dev = hist_device(facts, plan.argmax);

	plan.argmax_model = HistModel();
	plan.argmax_model.form = HIST_FORM_GLOBAL;
	if (hist->strategy != GPUAGG_HIST_GLOBAL)
		plan.argmax_model = hist_model_argmax(&dev, hist->bins.nbins, hist->nrows,
											  hist->strategy == GPUAGG_HIST_SHARED);
	plan.argmax.locks = true;
}

/* Returns how tile kernels accumulate a slot, or TILE_NONE if they cannot. */
static HistTile
tile_kind(const HistSlot &slot)
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
			return is_chain(slot) ? TILE_CHAIN : TILE_FIX3;
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

/* Returns whether both columns have the same values, so that one can be read for the other. */
static bool
is_same_column(const GpuaggColumn &a, const GpuaggColumn &b)
{
	return a.values == b.values && a.validity == b.validity && a.type == b.type &&
		a.computed == b.computed && a.operand == b.operand;
}

/* Moves slots with the same column next to each other, so that tiles read the column once. */
static void
order_slots_by_column(HistArgs &args)
{
	for (int s = 1; s < args.nslots; s++)
	{
		int like = s;

		while (like > 0 && !is_same_column(args.slot[like - 1].x, args.slot[s].x))
			like--;
		for (int i = s; like > 0 && i > like; i--)
		{
			HistSlot other = args.slot[i];

			args.slot[i] = args.slot[i - 1];
			args.slot[i - 1] = other;
		}
	}
	for (int s = 1; s < args.nslots; s++)
		args.slot[s].repeats_x = is_same_column(args.slot[s - 1].x, args.slot[s].x);
}

/* Returns whether a key of the bins is computed by the program of a call in tiles. */
static bool
has_computed_key(const GpuaggBins &b)
{
	for (int c = 0; c < b.ncolumns; c++)
		if (b.column[c].computed)
			return true;
	return false;
}

/* Returns how many bins fit the shared memory that tiles and the program leave; may be negative. */
static int
bins_that_fit_with_tiles(const HistArgs &args, const HistDevice &dev)
{
	return (dev.shared_bytes - (int) hist_tile_bytes(args)) / 4 / args.words;
}

/* Plans a call in TILES. Returns UNSUPPORTED if tiles cannot accumulate all slots in one pass. */
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
		hist_use_decimal_code_form(slot);
		args.locks = args.locks || hist_needs_locks(slot);
	}
	order_slots_by_column(args);
	for (int i = 0; i < HIST_WIDTHS; i++)
	{
		HistDevice dev = hist_device(facts, args);
		bool all = true;

		if (hist_widths[i].in_moments)
			break;
		hist_size_slots(args, hist_widths[i], bits, hist_log2_ceil(hist->nrows + 1));
		for (int s = 0; s < args.nslots; s++)
		{
			args.slot[s].tile = tile_kind(args.slot[s]);
			all = all && args.slot[s].tile != TILE_NONE;
		}
		if (!all)
			break;
		args.tiles = hist_choose_tiles(args, hist->steps);
		/* the kernels with fewer threads need less memory for temporaries */
		if (args.tiles == TILES_LIGHT && bins_that_fit_with_tiles(args, dev) < hist->bins.nbins + 1)
			args.tiles = TILES_MIDDLE;
		if (bins_that_fit_with_tiles(args, dev) < hist->bins.nbins + 1)
			continue;
		dev.shared_bytes -= (int) hist_tile_bytes(args);
		plan.model = hist_model(&dev, hist->bins.nbins, args.words, hist->nrows, HIST_SLOTS_ANY);
		if (plan.model.form != HIST_FORM_SHARED || plan.model.passes > 1)
			continue;
		/* computed keys cannot be sampled, so the most copies are used */
		if (has_computed_key(args.bins) || args.bins.ncolumns == 0)
			plan.model.log2_copies = plan.model.log2_max_copies;
		set_model_args(plan.model, args);
		args.pass_bins += args.pass_bins & 1;
		args.spread = HIST_SPREAD_BINS;
		return GPUAGG_CUDA_OK;
	}
	return GPUAGG_CUDA_UNSUPPORTED;
}

/*
 * Sets the arguments that concern the whole call, except the bins. Returns INVALID or UNSUPPORTED
 * if there are too many slots or rows.
 */
static GpuaggCudaStatus
init_args(const GpuaggHist *hist, HistArgs &args)
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

/*
 * Plans a call, but takes no workspace. Returns INVALID or UNSUPPORTED if no kernel can compute it.
 */
static GpuaggCudaStatus
plan_call(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan)
{
	HistArgs &args = plan.args;

	plan = HistPlan();
	STATUS_TRY(init_args(hist, args));
	if (hist->strategy == GPUAGG_HIST_TILES)
		return plan_tiles(hist, facts, plan);
	if (hist->parts && (hist->bins.nbins < 1 || hist->bins.nbins >= INT32_MAX))
		return GPUAGG_CUDA_INVALID;
	if (!hist->parts)
		STATUS_TRY(hist_check_bins(hist->bins));
	args.bins = hist->parts ? make_index_bins(nullptr, hist->bins.nbins) : hist->bins;
	args.report = true;
	plan.global = plan.argmax = args;
	for (int s = 0; s < hist->nslots; s++)
	{
		HistSlot slot;

		STATUS_TRY(hist_set_slot(hist, s, slot));
		if (hist->bins.nbins <= (int64_t) facts.smem_per_block / HIST_DECIMAL_EXTREME_BYTES_PER_BIN)
			hist_use_decimal_code_form(slot);
		if (is_argmax(slot.op))
			plan.argmax.slot[plan.argmax.nslots++] = slot;
		else if (slot.form == HIST_GENERIC || hist->strategy == GPUAGG_HIST_GLOBAL)
			plan.global.slot[plan.global.nslots++] = slot;
		else
			args.slot[args.nslots++] = slot;
	}
	for (int s = 0; s < args.nslots; s++)
		args.locks = args.locks || hist_needs_locks(args.slot[s]);
	if (hist->parts)
		STATUS_TRY(plan_key_parts(hist, facts, plan));
	else if (args.nslots > 0)
		choose_form(hist, facts, plan);
	if (plan.model.form == HIST_FORM_GLOBAL)
	{
		for (int s = 0; s < args.nslots; s++)
			plan.global.slot[plan.global.nslots++] = args.slot[s];
		args.nslots = 0;
	}
	set_model_args(plan.model, args);
	args.pass_bins += args.pass_bins & 1;
	args.spread = HIST_SPREAD_BINS;
	if (plan.global.nslots > 0)
		choose_global_copies(hist, facts, plan);
	if (plan.argmax.nslots > 0)
		choose_argmax_form(hist, facts, plan);
	/* only the first kernel that finds bins counts rows out of range */
	plan.global.report = plan.args.nslots == 0;
	plan.argmax.report = plan.args.nslots == 0 && plan.global.nslots == 0;
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_hist_choose(const GpuaggHist *hist, GpuaggHistChoice *choice)
{
	const DeviceFacts *facts;
	HistPlan plan;

	STATUS_TRY(gpuagg_device_facts(&facts));
	STATUS_TRY(plan_call(hist, *facts, plan));
	if (plan.args.nslots == 0 && plan.global.nslots == 0)
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
		choice->copies = 1 << plan.global_model.log2_copies;
		choice->passes = plan.global_model.passes;
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
		plan.global.nslots == 0 && plan.argmax.nslots == 0 &&
		(hist_fast_supports(plan.args) || hist_sums_support(plan.args));
	return GPUAGG_CUDA_OK;
}

/*
 * Takes the workspace of slots with a form. *bytes is the memory of counts in bytes
 * (hist_counts.cu), or NULL.
 */
static void
plan_workspace(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan, Workspace &ws,
			   u32 **bytes)
{
	HistArgs &args = plan.args;

	*bytes = nullptr;
	if (hist->parts)
	{
		args.limb_bins = args.pass_bins;
		args.limb = ws.take<u64>((size_t) hist->parts->most_splits * args.limbs * args.limb_bins);
	}
	else if (plan.model.form == HIST_FORM_PARTITION)
		plan_partition(hist, facts, plan, ws);
	else if (plan.model.form == HIST_FORM_BYTES)
		*bytes =
			ws.take<u32>((size_t) hist_byte_count_blocks(args.nrows, facts) * args.pass_bins / 4);
	else if (hist->strategy == GPUAGG_HIST_TILES || !hist_narrow_supports(args))
	{
		args.limb_bins = (u32) hist->bins.nbins + 2;
		args.limb_bins &= ~1u;
		args.limb = ws.take<u64>((size_t) args.limbs * args.limb_bins);
		/*
		 * the preparation samples the copies. hist_narrow.cu has no preparation, and equal bins do
		 * not slow it down.
		 */
		if (plan.model.log2_max_copies > plan.model.log2_copies)
		{
			args.log2_max_copies = plan.model.log2_max_copies;
			args.copies = ws.take<int>(1);
		}
		if (hist->strategy != GPUAGG_HIST_TILES)
			args.out_of_window = ws.take<u32>(hist_deviation_mark_words(args));
	}
}

/*
 * Sets the number of hot entries of a warp (hist_change.cuh): `most`, or fewer where the shared
 * memory of a block is too small.
 */
static void
plan_hot_entries(const DeviceFacts &facts, HistArgs &args, int most)
{
	if (!args.locks)
		return;
	args.hot_entries = most;
	while (args.hot_entries > HIST_MIN_HOT_ENTRIES_PER_WARP &&
		   bytes_with_hot(args, HIST_THREADS_PER_BLOCK) + hist_tile_bytes(args) >
			   facts.smem_per_block - SHARED_RESERVE)
		args.hot_entries /= 2;
}

/*
 * Takes workspace for 1 << most copies of a slot's states. The states themselves are the first
 * copy. log2: device memory where the preparation stores how many are used.
 */
static void
plan_copies_of_slot(HistArgs &args, int s, int most, int *log2, Workspace &ws)
{
	size_t more = (size_t) ((args.bins.nbins << most) - args.bins.nbins);

	args.extra[s].states = ws.take<char>(more * gpuagg_monoids[args.slot[s].op].state_size);
	args.extra[s].log2 = log2;
	args.extra[s].log2_max_copies = most;
}

/*
 * Takes workspace for copies of the states that out-of-window rows (hist.cuh) change under locks.
 * Each block changes one of the copies.
 */
static void
plan_out_of_window_copies(const GpuaggHist *hist, const DeviceFacts &facts, HistPlan &plan,
						  Workspace &ws)
{
	HistArgs &args = plan.args;
	HistDevice dev = hist_device(facts, args);
	int blocks =
			(plan.model.form == HIST_FORM_PARTITION ? HIST_PARTITION_BLOCKS_PER_SM : 1) * facts.sms,
		bytes = 0, most;
	int *log2;

	/* copies of so many bins as to partition rows by key gain nothing */
	if (!args.locks || hist->parts)
		return;
	for (int s = 0; s < args.nslots; s++)
		if (locks_out_of_window(args.slot[s].op))
			bytes += gpuagg_monoids[args.slot[s].op].state_size;
	if (bytes == 0)
		return;
	most = hist_model_global(&dev, hist->bins.nbins, bytes, hist->nrows, false).log2_max_copies;
	/* a block changes one copy, so more copies than blocks are useless */
	while (1 << most > blocks)
		most--;
	if (most == 0)
		return;
	args.out_of_window_threads = (int64_t) blocks * HIST_THREADS_PER_BLOCK;
	log2 = ws.take<int>(GPUAGG_MAX_SLOTS);
	for (int s = 0; s < args.nslots; s++)
		if (locks_out_of_window(args.slot[s].op))
			plan_copies_of_slot(args, s, most, log2 + s, ws);
}

/* Takes workspace for the copies that choose_global_copies() has chosen. */
static void
plan_global_copies(HistPlan &plan, Workspace &ws)
{
	HistArgs &global = plan.global;

	if (plan.global_model.log2_max_copies == 0)
		return;
	global.log2_max_copies = plan.global_model.log2_max_copies;
	global.copies = ws.take<int>(1);
	for (int s = 0; s < global.nslots; s++)
		plan_copies_of_slot(global, s, global.log2_max_copies, global.copies, ws);
}

/* Launches the kernels of slots with a form. */
static GpuaggCudaStatus
launch_slots_with_form(const GpuaggHist *hist, HistPlan &plan, u32 *bytes, const DeviceFacts &facts,
					   cudaStream_t stream)
{
	HistArgs &args = plan.args;

	if (hist->parts)
	{
		STATUS_TRY(hist_launch_prepare(args, facts, stream));
		STATUS_TRY(hist_launch_clear_splits(args, facts, stream));
		point_slots_to_moved_columns(plan);
		return hist_launch_partitioned(args, facts, stream);
	}
	if (plan.model.form == HIST_FORM_PARTITION && !bins_are_a_column(hist->bins))
		STATUS_TRY(gpuagg_hist_bins(&hist->bins, hist->nrows,
									(int32_t *) args.bins.column[0].values, hist->status, stream));
	if (plan.model.form == HIST_FORM_BYTES)
		return hist_launch_byte_counts(args, bytes, facts, stream);
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
		STATUS_TRY(hist_launch_partition_rows(args, plan.part, plan.groups, facts, stream));
		point_slots_to_moved_columns(plan);
		STATUS_TRY(hist_launch_partitioned(args, facts, stream));
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
	STATUS_TRY(plan_call(hist, *facts, plan));
	plan.args.window = plan.global.window = plan.argmax.window = ws.take<int>(2 * GPUAGG_MAX_SLOTS);
	plan.args.lock = plan.global.lock = plan.argmax.lock = ws.take<u32>(HIST_LOCKS);
	if (plan.args.nslots > 0)
	{
		plan_workspace(hist, *facts, plan, ws, &bytes);
		plan_hot_entries(*facts, plan.args,
						 plan.model.form == HIST_FORM_PARTITION ? HIST_MIN_HOT_ENTRIES_PER_WARP :
																  HIST_MAX_HOT_ENTRIES_PER_WARP);
		plan_out_of_window_copies(hist, *facts, plan, ws);
	}
	if (plan.global.nslots > 0)
		plan_global_copies(plan, ws);
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (hist->nrows == 0)
		return GPUAGG_CUDA_OK;
	if (plan.args.nslots > 0)
		STATUS_TRY(launch_slots_with_form(hist, plan, bytes, *facts, stream));
	if (plan.global.nslots > 0)
		STATUS_TRY(hist_launch_global(plan.global, *facts, stream));
	if (plan.argmax.nslots > 0)
		STATUS_TRY(hist_launch_argmax(plan.argmax, plan.argmax_model, *facts, stream));
	return GPUAGG_CUDA_OK;
}

/*
 * group_partition.cu
 *	  Group-by of very many groups: moves rows to partitions by the hash of their keys, and numbers
 *	  the groups of each partition.
 *
 * A lookup of each row in a table that is larger than the L2 cache costs a line of memory a row.
 * Here rows move to partitions first, which shared memory holds one by one.  The top bits of a hash
 * are the number of its partition.  Kernels:
 *
 *	count_keys_kernel	counts the rows of each partition
 *	plan_partition_items_kernel (hist_partition.cu)	first rows, and work items
 *	scatter_keys_kernel	moves keys and columns, or row numbers: once, or, if there are many
 *		partitions, first to groups of partitions and then to partitions
 *	number_groups_kernel (group_number.cu)	numbers the groups of each work item in shared memory
 *
 * A partition with very many rows is split into several work items, as those of hist_partition.cu
 * are.
 *
 * The result is the groups, in the order of partitions, and for each row the number of its group
 * within the partition.  hist.cu adds rows with these numbers as the bins of a partition.
 */
#include "group_partition.cuh"

/* ---- counts of rows --------------------------------------------------------------- */

/* Arguments of count_keys_kernel. */
struct CountKeysArgs
{
	const void *keys;
	const uint8_t *filter;
	u32 nrows;
	GpuaggHashKey hash;
	int shift; /* upper_hash() >> shift is the partition */
	u32 parts;
	u32 *count; /* [partition] cleared before */
};

/* Adds the rows of each partition to args.count. */
template <int BYTES>
static __global__ void
__launch_bounds__(KEY_PART_COUNT_THREADS_PER_BLOCK, 1)
	count_keys_kernel(const __grid_constant__ CountKeysArgs args)
{
	typedef typename MovedKey<BYTES>::type K;
	constexpr int ITEMS = Tuned::KEY_PART_COUNT_ROWS_PER_THREAD;
	constexpr u64 TILE = ITEMS * KEY_PART_COUNT_THREADS_PER_BLOCK;
	extern __shared__ __align__(16) char part_memory[];
	u32 *count = (u32 *) part_memory;
	const K *keys = (const K *) args.keys;

	wait_for_predecessor();
	let_successor_start();
	for (u32 p = threadIdx.x; p < args.parts; p += blockDim.x)
		count[p] = 0;
	__syncthreads();
	for (u64 base = blockIdx.x * TILE; base < args.nrows; base += gridDim.x * TILE)
	{
		K key[ITEMS];
		u32 ok = 0;

#pragma unroll
		for (int j = 0; j < ITEMS; j++)
		{
			u64 r = base + j * KEY_PART_COUNT_THREADS_PER_BLOCK + threadIdx.x;

			if (r < args.nrows && !(args.filter && !args.filter[r]))
			{
				ok |= 1u << j;
				key[j] = load_moved(keys + r);
			}
		}
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (ok >> j & 1)
				atomicAdd(&count[upper_hash(args.hash, key[j]) >> args.shift], 1u);
	}
	__syncthreads();
	for (u32 p = threadIdx.x; p < args.parts; p += blockDim.x)
		if (count[p])
			atomicAdd(&args.count[p], count[p]);
}

/* ---- scatter ---------------------------------------------------------------------- */

/*
 * One step of the scatter.  The first step moves the caller's rows.  A second step moves the rows
 * of each group of partitions to the partitions of the group.
 */
struct ScatterKeysArgs
{
	const void *keys;
	void *to; /* keys */
	GpuaggHashKey hash;
	int shift;   /* upper_hash() >> shift is the partition, or in a first step of two the group */
	u32 parts;   /* partitions or groups that a tile may have, a power of two */
	u32 *cursor; /* [partition or group] where the next rows are appended */
	u32 *row;    /* first step: numbers of rows, or NULL */
	PartColumns columns;
	int stage_bytes;
	/* first step: */
	const uint8_t *filter;
	u32 nrows;
	/* second step: */
	u32 groups;
	const u32 *start; /* [partition] its first row */
	const u32 *rows;  /* number of rows of all partitions */
};

/* A tile: rows from `base` up to, but not including, `end`. */
struct KeyTile
{
	u32 base, end;
	u32 group;
};

/* Finds the tiles of a step.  A tile of a second step has rows of one group. */
template <bool SECOND, u32 ROWS> struct KeyTiles
{
	u32 total;

	/* Returns the number of the first tile of each group, in shared memory. */
	static __device__ __forceinline__ u32 *
	first()
	{
		__shared__ u32 tiles[1 << KEY_PART_MAX_LOG2_IN_ONE_STEP];

		return tiles;
	}
	/* Returns the first row of a group of partitions. */
	static __device__ __forceinline__ u32
	row_of(const ScatterKeysArgs &args, u32 group)
	{
		return group < args.groups ? args.start[group * args.parts] : *args.rows;
	}
	/* All threads of the block must call it. */
	__device__ __forceinline__ void
	init(const ScatterKeysArgs &args)
	{
		__shared__ u32 scan[32];

		if (SECOND)
		{
			u32 g = threadIdx.x, rows = g < args.groups ? row_of(args, g + 1) - row_of(args, g) : 0,
				n = (rows + ROWS - 1) / ROWS, upto = block_scan(n, scan, &total);

			if (g < args.groups)
				first()[g] = upto - n;
			__syncthreads();
		}
		else
			total = (u32) (((u64) args.nrows + ROWS - 1) / ROWS);
	}
	/* Returns tile t; without rows if there is none. */
	__device__ __forceinline__ KeyTile
	at(const ScatterKeysArgs &args, u64 t) const
	{
		u32 g = 0, base = 0, end = args.nrows;

		if (t >= total)
			return {0, 0, 0};
		if constexpr (SECOND)
		{
			/* the last group whose first tile is not after t */
			for (u32 step = args.groups / 2; step > 0; step /= 2)
				if (first()[g + step] <= t)
					g += step;
			base = row_of(args, g);
			end = row_of(args, g + 1);
			t -= first()[g];
		}
		base += (u32) t * ROWS;
		return {base, base + min(ROWS, end - base), g};
	}
};

/* Loads the keys of a tile that exist.  Returns a bit for each. */
template <typename K, int ITEMS>
static __device__ __forceinline__ u32
load_keys(const ScatterKeysArgs &args, const KeyTile &tile, K (&key)[ITEMS])
{
	const K *in = (const K *) args.keys + tile.base + threadIdx.x;
	u32 rows = tile.end - tile.base, ok = 0;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (j * PARTITION_THREADS_PER_BLOCK + threadIdx.x < rows)
		{
			ok |= 1u << j;
			key[j] = load_moved(in + j * PARTITION_THREADS_PER_BLOCK);
		}
	return ok;
}

/* Returns `ok` without the rows that the filter leaves out. */
template <int ITEMS>
static __device__ __forceinline__ u32
filter_keys(const ScatterKeysArgs &args, const KeyTile &tile, u32 ok)
{
	const uint8_t *filter = args.filter + tile.base + threadIdx.x;

#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if ((ok >> j & 1) && !filter[j * PARTITION_THREADS_PER_BLOCK])
			ok &= ~(1u << j);
	return ok;
}

/* Stores the key of a row. */
template <typename K> struct PutKey
{
	K *to;

	__device__ __forceinline__ void
	operator()(u32 row, const K &key) const
	{
		to[row] = key;
	}
};

/*
 * Moves rows to partitions, as scatter_rows_kernel of hist_partition.cu does.  WIDTH: width of all
 * columns; 0: widths differ. MORE: there are further columns.
 */
template <int BYTES, int WIDTH, bool MORE, bool SECOND, int ITEMS>
static __global__ void
__launch_bounds__(PARTITION_THREADS_PER_BLOCK, ITEMS < PARTITION_ROWS_PER_THREAD ? 2 : 1)
	scatter_keys_kernel(const __grid_constant__ ScatterKeysArgs args)
{
	typedef typename MovedKey<BYTES>::type K;
	typedef typename MovedValue<WIDTH>::type T;
	constexpr u32 ROWS = ITEMS * PARTITION_THREADS_PER_BLOCK;
	PartTile t = {args.parts, sizeof(K), (u32) args.stage_bytes, ROWS};
	PutKey<K> put = {(K *) args.to};
	bool numbers = WIDTH == 4 && !SECOND && args.row,
		 column = WIDTH != 0 && !numbers && args.columns.n > 0;
	T *out = numbers ? (T *) args.row : column ? (T *) args.columns.to[0] : nullptr;
	KeyTiles<SECOND, ROWS> tiles;
	KeyTile tile;
	K key[ITEMS];
	u32 ok;

	wait_for_predecessor();
	let_successor_start();
	part_clear(t);
	tiles.init(args);
	tile = tiles.at(args, blockIdx.x);
	ok = load_keys(args, tile, key);
	for (u64 i = blockIdx.x; i < tiles.total; i += gridDim.x)
	{
		KeyTile next = tiles.at(args, i + gridDim.x);
		u32 place[ITEMS]; /* the partition above 16 bits of the place */
		T v[ITEMS];
		TilePartitions used;
		u32 moved = args.filter ? filter_keys<ITEMS>(args, tile, ok) : ok;

		if (column)
			part_load<T>(moved, args.columns.from[0], tile.base, v);
		else if (numbers)
#pragma unroll
			for (int j = 0; j < ITEMS; j++)
				v[j] = (T) (tile.base + j * PARTITION_THREADS_PER_BLOCK + threadIdx.x);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (moved >> j & 1)
			{
				u32 p = (upper_hash(args.hash, key[j]) >> args.shift) & (args.parts - 1);

				place[j] = p << 16 | atomicAdd(&t.count()[p], 1u);
			}
		used = part_reserve(t, args.cursor + tile.group * args.parts, 0, 0);
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (moved >> j & 1)
			{
				u32 p = place[j] >> 16;

				place[j] = (place[j] & 0xffff) + t.count()[p];
				t.part()[place[j]] = (uint16_t) p;
			}
		part_stage<K>(t.keys(), moved, place, key);
		if (out)
			part_stage<T>(t.stage(), moved, place, v);
		/* further columns need the registers */
		if (!MORE)
			ok = load_keys(args, next, key);
		part_write<K, T, ITEMS>(t, used, put, out);
		for (int c = column; MORE && c < args.columns.n; c++)
			part_move_column<WIDTH>(t, used.total, moved, place, args.columns.from[c], tile.base,
									args.columns.to[c], args.columns.bytes[c]);
		if (MORE)
			ok = load_keys(args, next, key);
		tile = next;
	}
}

/* ---- host -------------------------------------------------------------------------- */

/* A call of gpuagg_group_partition. */
struct KeyPlan
{
	int key_bytes;
	int log2_parts;
	int log2_groups; /* log2 of the first step's partitions; 0: there is one step */
	PartPlan part;
	u32 *group_cursor;
	void *moved_keys; /* by partition */
	ScatterKeysArgs step[2];
	NumberArgs numbers;
};

/* Returns log2 of the partitions for so many groups, or -1 if they are too many. */
static int
choose_log2_parts(int64_t groups)
{
	int log2 = KEY_PART_MIN_LOG2;

	while (log2 <= KEY_PART_MAX_LOG2 && (int64_t) KEY_PART_GOOD_GROUPS << log2 < groups)
		log2++;
	return log2 <= KEY_PART_MAX_LOG2 ? log2 : -1;
}

/* Takes workspace for the columns of both steps. */
static void
plan_columns(GpuaggKeyParts *parts, KeyPlan &plan, Workspace &ws)
{
	PartColumns &last = plan.step[1].columns, &first = plan.step[0].columns;
	size_t n = parts->nrows;

	last = first = PartColumns();
	parts->row = nullptr;
	plan.step[0].stage_bytes = plan.step[1].stage_bytes = 4;
	for (int c = 0; c < parts->nmoved; c++)
	{
		int bytes = hist_type_bytes(parts->moved[c].type);

		parts->to[c] = ws.take<char>(n * bytes);
		first.bytes[c] = last.bytes[c] = bytes;
		first.from[c] = parts->moved[c].values;
		first.to[c] = last.to[c] = parts->to[c];
		if (plan.log2_groups > 0)
			last.from[c] = first.to[c] = ws.take<char>(n * bytes);
		plan.step[0].stage_bytes = plan.step[1].stage_bytes = max(plan.step[0].stage_bytes, bytes);
	}
	first.n = last.n = parts->nmoved;
	if (!parts->numbers)
		return;
	parts->row = plan.step[0].row = ws.take<u32>(n);
	if (plan.log2_groups > 0)
	{
		/* numbers of rows are the only column of the second step */
		plan.step[0].row = ws.take<u32>(n);
		last.n = 1;
		last.bytes[0] = sizeof(u32);
		last.from[0] = plan.step[0].row;
		last.to[0] = parts->row;
	}
}

/* Takes workspace for the tables of split partitions. */
static void
plan_split_tables(KeyPlan &plan, Workspace &ws)
{
	NumberArgs &numbers = plan.numbers;
	size_t slots = gpuagg_group_slot_bytes(plan.key_bytes, KEY_PART_MOST_GROUPS);

	numbers.split_slot_bytes = (slots + 255) / 256 * 256;
	numbers.split_slots = ws.take<char>(plan.part.max_splits * numbers.split_slot_bytes);
	numbers.split_keys =
		ws.take<char>((size_t) plan.part.max_splits * KEY_PART_MOST_GROUPS * plan.key_bytes);
	numbers.split_counters = ws.take<GpuaggGroupCounters>(plan.part.max_splits);
}

/* Sets the arguments of the steps, apart from columns. */
static void
plan_steps(const GpuaggGroupTable *table, const void *keys, const uint8_t *filter,
		   const GpuaggKeyParts *parts, void *between, KeyPlan &plan)
{
	bool two = plan.log2_groups > 0;
	u32 parts_of_group = 1u << (plan.log2_parts - plan.log2_groups);

	for (ScatterKeysArgs &step : plan.step)
	{
		step.hash = gpuagg_hash_key(table->seed);
		step.nrows = (u32) parts->nrows;
		step.shift = 32 - plan.log2_parts;
		step.parts = plan.part.parts;
		step.cursor = plan.part.cursor;
		step.start = plan.part.start;
		step.rows = plan.part.counter + HIST_NROWS;
	}
	plan.step[0].keys = keys;
	plan.step[0].filter = filter;
	plan.step[0].to = two ? between : plan.moved_keys;
	if (!two)
		return;
	plan.step[0].shift = 32 - plan.log2_groups;
	plan.step[0].parts = 1u << plan.log2_groups;
	plan.step[0].cursor = plan.group_cursor;
	plan.step[1].keys = between;
	plan.step[1].to = plan.moved_keys;
	plan.step[1].parts = parts_of_group;
	plan.step[1].groups = 1u << plan.log2_groups;
}

/* Plans a call and divides its workspace. */
static void
plan_keys(const GpuaggGroupTable *table, const void *keys, const uint8_t *filter,
		  GpuaggKeyParts *parts, const DeviceFacts &facts, KeyPlan &plan, Workspace &ws)
{
	size_t n = parts->nrows, key_bytes = table->key_bytes;
	void *between = nullptr;

	plan.key_bytes = table->key_bytes;
	plan.log2_groups = plan.log2_parts <= KEY_PART_MAX_LOG2_IN_ONE_STEP ? 0 : plan.log2_parts / 2;
	plan.part.parts = 1u << plan.log2_parts;
	plan.part.start = ws.take<u32>(plan.part.parts);
	hist_plan_items(parts->nrows, facts, plan.part, ws);
	plan.part.split_part = ws.take<u32>(plan.part.max_splits);
	plan.moved_keys = ws.take<char>(n * key_bytes);
	parts->keys = ws.take<char>(n * key_bytes);
	if (plan.log2_groups > 0)
	{
		plan.group_cursor = ws.take<u32>((size_t) 1 << plan.log2_groups);
		/* the keys between the steps are not needed when the groups are written */
		between = parts->keys;
	}
	plan_columns(parts, plan, ws);
	parts->counts = ws.take<GpuaggKeyCounts>(1);
	parts->bins = ws.take<int32_t>(n);
	parts->first = ws.take<u32>(plan.part.parts);
	parts->ngroups = ws.take<u32>(plan.part.parts);
	parts->number = ws.take<uint16_t>(n);
	plan_split_tables(plan, ws);
	plan_steps(table, keys, filter, parts, between, plan);
	parts->dense = 0;
	parts->nparts = (int) plan.part.parts;
	parts->most_groups = KEY_PART_MOST_GROUPS;
	parts->most_splits = (int) plan.part.max_splits;
	parts->items = plan.part.item;
	parts->item_counters = plan.part.counter;
	parts->split_done = plan.part.split_done;
	parts->split_items = plan.part.split_items;
	plan.numbers.keys = plan.moved_keys;
	plan.numbers.number = parts->number;
	plan.numbers.hash = gpuagg_hash_key(table->seed);
	plan.numbers.log2_parts = plan.log2_parts;
	plan.numbers.item = plan.part.item;
	plan.numbers.counter = plan.part.counter;
	plan.numbers.split_part = plan.part.split_part;
	plan.numbers.first = parts->first;
	plan.numbers.ngroups = parts->ngroups;
	plan.numbers.groups = parts->keys;
	plan.numbers.counts = parts->counts;
}

/* Counts the rows of each partition, and makes the work items. */
template <int BYTES>
static GpuaggCudaStatus
launch_count_keys(const KeyPlan &plan, const DeviceFacts &facts, cudaStream_t stream)
{
	const ScatterKeysArgs &step = plan.step[0];
	CountKeysArgs args = {step.keys,      step.filter,          step.nrows,
						  step.hash,      32 - plan.log2_parts, plan.part.parts,
						  plan.part.start};

	CUDA_TRY(cudaMemsetAsync(args.count, 0, args.parts * sizeof(u32), stream));
	CUDA_TRY(allow_shared(count_keys_kernel<BYTES>, facts));
	CUDA_TRY(launch_early(count_keys_kernel<BYTES>, facts.sms, KEY_PART_COUNT_THREADS_PER_BLOCK,
						  args.parts * sizeof(u32), facts, stream, args));
	return hist_launch_plan_items(plan.part, facts, stream);
}

/*
 * Returns the rows of a thread in a tile.  Tiles of few partitions and one column are small, so
 * that a multiprocessor has two blocks; further columns need the registers.
 */
static int
rows_of_thread(const ScatterKeysArgs &step)
{
	return step.parts <= KEY_PART_MOST_IN_SMALL_TILE && step.columns.n <= 1 &&
			part_common_width(step.columns) ?
		KEY_PART_ROWS_PER_THREAD :
		PARTITION_ROWS_PER_THREAD;
}

/* Returns the shared memory of a block of a step. */
static size_t
scatter_bytes(int key_bytes, const ScatterKeysArgs &step)
{
	return part_tile_bytes(key_bytes, step.stage_bytes, step.parts,
						   (size_t) rows_of_thread(step) * PARTITION_THREADS_PER_BLOCK);
}

/* Returns the instance of scatter_keys_kernel for the columns of a step. */
template <int BYTES, bool SECOND>
static auto
choose_scatter(const ScatterKeysArgs &step) -> void (*)(ScatterKeysArgs)
{
	constexpr int SMALL = KEY_PART_ROWS_PER_THREAD, LARGE = PARTITION_ROWS_PER_THREAD;
	int width = part_common_width(step.columns);

	if (rows_of_thread(step) == SMALL)
		return width == 8 ? scatter_keys_kernel<BYTES, 8, false, SECOND, SMALL> :
							scatter_keys_kernel<BYTES, 4, false, SECOND, SMALL>;
	/* a second step has few partitions */
	if constexpr (!SECOND)
		if (step.columns.n <= 1 && width)
			return width == 8 ? scatter_keys_kernel<BYTES, 8, false, SECOND, LARGE> :
								scatter_keys_kernel<BYTES, 4, false, SECOND, LARGE>;
	return width == 8 ? scatter_keys_kernel<BYTES, 8, true, SECOND, LARGE> :
		width == 4    ? scatter_keys_kernel<BYTES, 4, true, SECOND, LARGE> :
						scatter_keys_kernel<BYTES, 0, true, SECOND, LARGE>;
}

/* Queues scatter_keys_kernel for one step. */
template <int BYTES, bool SECOND>
static GpuaggCudaStatus
launch_scatter_keys(const ScatterKeysArgs &step, const DeviceFacts &facts, cudaStream_t stream)
{
	void (*scatter)(ScatterKeysArgs) = choose_scatter<BYTES, SECOND>(step);
	int blocks = rows_of_thread(step) == KEY_PART_ROWS_PER_THREAD ? 2 : 1;

	CUDA_TRY(allow_shared(scatter, facts));
	CUDA_TRY(launch_early(scatter, blocks * facts.sms, PARTITION_THREADS_PER_BLOCK,
						  scatter_bytes(BYTES, step), facts, stream, step));
	return GPUAGG_CUDA_OK;
}

/* Queues all kernels of a call. */
template <int BYTES>
static GpuaggCudaStatus
launch_partition_keys(const KeyPlan &plan, const DeviceFacts &facts, cudaStream_t stream)
{
	const NumberArgs &numbers = plan.numbers;

	CUDA_TRY(cudaMemsetAsync(numbers.counts, 0, sizeof(*numbers.counts), stream));
	STATUS_TRY(launch_count_keys<BYTES>(plan, facts, stream));
	if (plan.log2_groups > 0)
		/* a group starts where its first partition does */
		CUDA_TRY(cudaMemcpy2DAsync(plan.group_cursor, sizeof(u32), plan.part.start,
								   sizeof(u32) << (plan.log2_parts - plan.log2_groups), sizeof(u32),
								   (size_t) 1 << plan.log2_groups, cudaMemcpyDeviceToDevice,
								   stream));
	STATUS_TRY((launch_scatter_keys<BYTES, false>(plan.step[0], facts, stream)));
	if (plan.log2_groups > 0)
		STATUS_TRY((launch_scatter_keys<BYTES, true>(plan.step[1], facts, stream)));
	return group_launch_number(BYTES, numbers, facts, stream);
}

/* Returns INVALID or UNSUPPORTED for rows that cannot be partitioned. */
static GpuaggCudaStatus
check_key_parts(const GpuaggGroupTable *table, const GpuaggKeyParts *parts)
{
	if (table->key_bytes != 4 && table->key_bytes != 8 && table->key_bytes != 16)
		return GPUAGG_CUDA_INVALID;
	if (parts->nrows < 0 || parts->nrows > UINT32_MAX || parts->nmoved < 0 ||
		parts->nmoved > GPUAGG_MAX_MOVED || (parts->numbers && parts->nmoved > 0))
		return GPUAGG_CUDA_INVALID;
	for (int c = 0; c < parts->nmoved; c++)
		if (parts->moved[c].type == GPUAGG_VALUE_NATIVE || parts->moved[c].values == nullptr)
			return GPUAGG_CUDA_INVALID;
	return GPUAGG_CUDA_OK;
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_partition(const GpuaggGroupTable *table, const void *keys, const uint8_t *filter,
					   GpuaggKeyParts *parts, void *workspace, size_t *workspace_bytes,
					   gpuagg_stream stream)
{
	const DeviceFacts *facts;
	KeyPlan plan = KeyPlan();
	Workspace ws(workspace);

	STATUS_TRY(check_key_parts(table, parts));
	STATUS_TRY(gpuagg_device_facts(&facts));
	plan.log2_parts = choose_log2_parts(min(parts->groups, parts->nrows));
	if (plan.log2_parts < 0)
		return GPUAGG_CUDA_UNSUPPORTED;
	plan_keys(table, keys, filter, parts, *facts, plan, ws);
	for (const ScatterKeysArgs &step : plan.step)
		if (scatter_bytes(table->key_bytes, step) + SHARED_RESERVE * 4 > facts->smem_per_block)
			return GPUAGG_CUDA_UNSUPPORTED;
	WORKSPACE_TRY(ws, workspace, workspace_bytes);
	if (table->key_bytes == 4)
		return launch_partition_keys<4>(plan, *facts, stream);
	if (table->key_bytes == 8)
		return launch_partition_keys<8>(plan, *facts, stream);
	return launch_partition_keys<16>(plan, *facts, stream);
}

/* Sets the counters of a table. */
static __global__ void
set_groups_kernel(GpuaggGroupCounters *counters, u64 groups)
{
	*counters = {groups, 0, 0};
}

GPUAGG_API GpuaggCudaStatus
gpuagg_group_adopt(const GpuaggGroupTable *table, GpuaggKeyParts *parts, int64_t groups,
				   gpuagg_stream stream)
{
	if (!is_table_valid(table) || groups < 0 || groups > table->capacity)
		return GPUAGG_CUDA_INVALID;
	CUDA_TRY(cudaMemcpyAsync(table->keys, parts->keys, (size_t) groups * table->key_bytes,
							 cudaMemcpyDeviceToDevice, stream));
	set_groups_kernel<<<1, 1, 0, stream>>>(table->counters, (u64) groups);
	CUDA_TRY_LAUNCH("set_groups_kernel");
	parts->dense = 1;
	return GPUAGG_CUDA_OK;
}

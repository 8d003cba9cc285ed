/*
 * hist_tiles.cu
 *	  Tiled histograms, host side: chooses the kernel (hist_tiles_args.h) for a program and its
 *	  operators, sizes its shared memory and launches it.
 *
 * hist.cu calls these functions when it plans and runs a call of GPUAGG_HIST_TILES.  They allocate
 * nothing and do not synchronize; launches are queued on the given stream.
 */
#include "hist_tiles_args.h"

static const TileInstance *const instances[TILE_KERNELS] = {&hist_tiles_part0, &hist_tiles_part1,
															&hist_tiles_part2};

/* Returns whether the light kernel has the operation, a VectorOp.  All kernels have lookups. */
static bool
is_light_operation(int op)
{
	switch (op)
	{
		case VECTOR_LOOKUP:
#define LIGHT(OP) \
	case OP: \
		return true;
			TILES_LIGHT_OPERATIONS
#undef LIGHT
		default:
			return false;
	}
}

/* Returns whether the light kernel has all operations of a program; false if `steps` is NULL. */
static bool
is_light_program(const VectorProgram *steps)
{
	if (!steps)
		return false;
	for (u32 i = 0; i < steps->ninstructions; i++)
	{
		VectorInstruction in = steps->instructions[i];

		in.op &= ~GPUAGG_CONDITION;
		if (!is_light_operation(vector_simplify(in).op))
			return false;
	}
	return true;
}

/*
 * Returns whether the light kernel supports the slot's operator.  A count reads only the NULLs of
 * its column, so its column may be float4.
 */
static bool
is_light_slot(const HistSlot &slot)
{
	return (TILES_LIGHT_SLOTS >> slot.tile & 1) &&
		(slot.tile == TILE_COUNT || slot.x.type != GPUAGG_VALUE_F32);
}

int
hist_choose_tiles(const HistArgs &args, const VectorProgram *steps)
{
	bool light = is_light_program(steps), squares = false;

	for (int s = 0; s < args.nslots; s++)
	{
		light = light && is_light_slot(args.slot[s]);
		squares = squares || args.slot[s].tile == TILE_SQUARES;
	}
	return light ? TILES_LIGHT : squares ? TILES_FULL : TILES_MIDDLE;
}

size_t
hist_tile_bytes(const HistArgs &args)
{
	/* plus padding: the program area is aligned to 16 bytes, the stages to 128 bytes */
	return instances[args.tiles]->program_bytes(args) + 128 + 16;
}

/* Returns the size of a stage that holds all columns of one tile: inputs, keys and slots. */
static u32
tile_column_bytes(const HistArgs &args)
{
	u32 bytes = (u32) args.input_bytes;

	for (int c = 0; c < args.bins.ncolumns; c++)
		if (args.bins.column[c].values)
			bytes += hist_type_bytes(args.bins.column[c].type);
	for (int s = 0; s < args.nslots; s++)
		if (args.slot[s].x.values && !args.slot[s].repeats_x)
			bytes += hist_type_bytes(args.slot[s].x.type);
	return tile_threads(args.tiles) * TILES_ROWS_PER_THREAD * bytes;
}

GpuaggCudaStatus
hist_launch_tiles(const HistArgs &args, const DeviceFacts &facts, cudaStream_t stream)
{
	const TileInstance &instance = *instances[args.tiles];
	size_t bytes = instance.stages_offset(args), most = facts.smem_per_block - SHARED_RESERVE,
		   stage = min((size_t) tile_column_bytes(args), most > bytes ? (most - bytes) / 2 : 0) &
		~(size_t) 127;

	STATUS_TRY(instance.launch(args, facts, bytes + 2 * stage, (u32) stage, stream));
	return hist_launch_fold(args, facts, stream);
}

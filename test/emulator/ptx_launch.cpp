/*
 * ptx_launch.cpp
 *	  Launches: blocks, their barriers, and whose turn it is.
 *
 * What a kernel computes does not depend on the order in which warps run, unless it lacks a barrier: EMULATOR_STEPS, the
 * instructions of a warp's turn, and EMULATOR_BACKWARDS, which lets the last warp of a block run first, show some of that.
 */
#include <stdlib.h>

#include <algorithm>
#include <stdexcept>

#include "ptx_ops.h"

#define QUANTUM 4000			/* instructions of a warp's turn, without EMULATOR_STEPS */
#define SPINNING_ROUNDS 16		/* in which all warps only wait, until a later block may run too */
#define MOST_RESIDENT 256		/* clusters, of launches that are not cooperative */
#define MOST_SPINNING 100000000	/* instructions that only wait, until that is an error */
#define MOST_SHARED 233472		/* bytes of a block */

namespace
{

EmuDim
index_in(EmuDim size, unsigned n)
{
	return EmuDim{n % size.x, n / size.x % size.y, n / size.x / size.y};
}

unsigned
volume(EmuDim d)
{
	return d.x * d.y * d.z;
}

class Run
{
public:
	Run(Launch *launch, bool cooperative): launch(launch), started(0), spinning(0), waited(0)
	{
		const char *steps = getenv("EMULATOR_STEPS");

		quantum = steps && atoi(steps) > 0 ? (uint64_t) atoi(steps) : QUANTUM;
		backwards = getenv("EMULATOR_BACKWARDS") != NULL;
		EmuDim		size = launch->cluster;

		clusters = EmuDim{launch->grid.x / size.x, launch->grid.y / size.y, launch->grid.z / size.z};
		limit = cooperative ? volume(clusters) : 1;
	}

	~Run()
	{
		for (Cluster *cluster : resident)
			free_cluster(cluster);
		for (char *shared : spare_shared)
			free(shared);
	}

	void
	all()
	{
		while (started < volume(clusters) || !resident.empty())
		{
			while (resident.size() < limit && started < volume(clusters))
				start();
			round();
		}
	}

private:
	Launch	   *launch;
	EmuDim		clusters;
	unsigned	started,
				limit,
				spinning;
	uint64_t	waited,
				quantum;
	bool		backwards;		/* the last warp of a block runs first */
	std::vector<Cluster *> resident;
	std::vector<char *> spare_shared;

	void
	start()
	{
		EmuDim		at = index_in(clusters, started++),
					size = launch->cluster;
		Cluster    *cluster = new Cluster();

		resident.push_back(cluster);
		for (unsigned rank = 0; rank < volume(size); rank++)
		{
			EmuDim		inside = index_in(size, rank);
			Block	   *block = new Block();

			cluster->blocks.push_back(block);
			block->launch = launch;
			block->cluster = cluster;
			block->rank = rank;
			block->index = EmuDim{at.x * size.x + inside.x, at.y * size.y + inside.y, at.z * size.z + inside.z};
			block->threads = volume(launch->block);
			block->shared_bytes = launch->kernel->dynamic_at + launch->dynamic_shared;
			if (launch->dynamic_shared == 0)
				block->shared_bytes = launch->kernel->static_shared;
			if (spare_shared.empty())
				block->shared = (char *) aligned_alloc(1024, block->shared_bytes / 1024 * 1024 + 1024);
			else
			{
				block->shared = spare_shared.back();
				spare_shared.pop_back();
			}
			memset(block->shared, POISON, block->shared_bytes);
			for (unsigned n = 0; n * LANES < block->threads; n++)
				block->warps.push_back(make_warp(block, n));
		}
	}

	void
	free_cluster(Cluster *cluster)
	{
		for (Block *block : cluster->blocks)
		{
			for (Warp *w : block->warps)
				free_warp(w);
			spare_shared.push_back(block->shared);
			delete block;
		}
		delete cluster;
	}

	/* A turn for each warp; the clusters that have ended go. */
	void
	round()
	{
		uint64_t	steps = 0;
		bool		progress = false;
		size_t		kept = 0;

		for (Cluster *cluster : resident)
			for (Block *block : cluster->blocks)
				for (size_t k = 0, n = block->warps.size(); k < n; k++)
				{
					Warp	   *w = block->warps[backwards ? n - 1 - k : k];
					uint64_t	before = w->steps;

					if (w->ngroups == 0)
						continue;
					w->polled = w->wrote = w->spins = w->progress = false;
					run_warp(w, quantum);
					steps += w->steps - before;
					progress |= w->steps > before && (w->wrote || w->progress || !(w->polled || w->spins) || w->ngroups == 0);
				}
		if (steps == 0)
			deadlock();
		spinning = progress ? 0 : spinning + 1;
		waited = progress ? 0 : waited + steps;
		if (spinning >= SPINNING_ROUNDS && limit < MOST_RESIDENT)
		{
			limit = std::max<unsigned>(limit, (unsigned) resident.size()) + 1;
			spinning = 0;
		}
		if (waited > MOST_SPINNING)
			endless();
		for (Cluster *cluster : resident)
		{
			unsigned	threads = 0;

			for (Block *block : cluster->blocks)
				threads += block->threads;
			if (threads)
				resident[kept++] = cluster;
			else
				free_cluster(cluster);
		}
		resident.resize(kept);
	}

	[[noreturn]] void
	first_waiting(bool ready, const char *what)
	{
		for (Cluster *cluster : resident)
			for (Block *block : cluster->blocks)
				for (Warp *w : block->warps)
					for (int k = 0; k < w->ngroups; k++)
					{
						const Group *g = &w->groups[k];

						if ((g->state == GROUP_READY) == ready)
							fault(w, g->pc, g->mask, "%s (%u of the block's threads have not ended)", what, block->threads);
					}
		throw Fault{what};
	}

	[[noreturn]] void
	deadlock()
	{
		first_waiting(false, "all threads wait: this one for others that do not come");
	}

	[[noreturn]] void
	endless()
	{
		first_waiting(true, "threads wait for memory that nobody writes");
	}
};

/* For the group's lanes; the barrier is complete. */
void
barrier_result(Warp *w, const Insn *i, uint32_t lanes, const Barrier *barrier)
{
	bool		value = i->imm == BARRIER_AND ? barrier->votes_true == barrier->votes : barrier->votes_true != 0;
	char	   *base = w->groups[w->current].frame->rows;

	if (i->imm == BARRIER_COUNT)
	{
		uint32_t   *d = (uint32_t *) ((i->d.base == ROWS_SINK ? w->sink : base) + i->d.offset);

		FOR_LANES(lanes, k, d[k] = barrier->votes_true);
	}
	else if (i->imm)
	{
		uint32_t   *d = (uint32_t *) ((i->d.base == ROWS_SINK ? w->sink : base) + i->d.offset);

		*d = (*d & ~lanes) | (value ? lanes : 0);
	}
}

std::string
check_launch(const EmuKernel *kernel, const EmuLaunch *launch)
{
	EmuDim		c = launch->cluster;
	unsigned	threads = volume(launch->block);

	if (threads == 0 || threads > kernel->max_threads || threads > 1024)
		return "invalid configuration: " + std::to_string(threads) + " threads a block";
	if (volume(launch->grid) == 0)
		return "invalid configuration: no blocks";
	if (c.x == 0 || c.y == 0 || c.z == 0 || launch->grid.x % c.x || launch->grid.y % c.y || launch->grid.z % c.z ||
		volume(c) > 16)
		return "invalid configuration: clusters";
	if (kernel->dynamic_at + launch->dynamic_shared > MOST_SHARED)
		return "invalid configuration: shared memory";
	return "";
}

}								/* namespace */

void
complete_barriers(Block *block)
{
	for (unsigned id = 0; id < 16; id++)
	{
		Barrier    *barrier = &block->barriers[id];

		if (barrier->arrived == 0 || barrier->arrived < (barrier->expected ? barrier->expected : block->threads))
			continue;
		for (Warp *w : block->warps)
		{
			int			current = w->current;

			w->barrier_site[id] = NULL;
			for (int k = 0; k < w->ngroups; k++)
			{
				Group	   *g = &w->groups[k];

				if (g->state != GROUP_BARRIER || g->barrier != id)
					continue;
				w->current = k;
				barrier_result(w, g->pc, g->mask, barrier);
				g->pc++;
				g->state = GROUP_READY;
			}
			w->current = current;
		}
		*barrier = Barrier{0, 0, 0, 0};
	}
}

void
complete_cluster(Cluster *cluster)
{
	unsigned	threads = 0;

	for (Block *block : cluster->blocks)
		threads += block->threads;
	if (cluster->arrived == 0 || cluster->arrived < threads)
		return;
	cluster->arrived = 0;
	cluster->phase++;
	for (Block *block : cluster->blocks)
		for (Warp *w : block->warps)
			for (int k = 0; k < w->ngroups; k++)
				if (w->groups[k].state == GROUP_CLUSTER)
					w->groups[k].state = GROUP_READY;
}

void
block_threads_ended(Block *block, unsigned threads)
{
	block->threads -= threads;
	complete_barriers(block);
	complete_cluster(block->cluster);
}

Block *
block_of_rank(Block *block, uint32_t rank)
{
	const std::vector<Block *> &blocks = block->cluster->blocks;

	return rank < blocks.size() ? blocks[rank] : NULL;
}

bool
emu_launch(EmuKernel *kernel, const EmuLaunch *config, EmuCounts *counts, EmuError *error)
{
	static uint32_t workspace[16];
	uint64_t	at,
				bytes;
	Launch		launch = {kernel, config->grid, config->block, config->cluster, config->dynamic_shared, counts, workspace, {}};

	if (!memory_find((uint64_t) workspace, &at, &bytes))
		emu_memory_add(workspace, sizeof(workspace));
	memset(workspace, 0, sizeof(workspace));
	error->text = check_launch(kernel, config);
	if (!error->text.empty())
		return false;
	for (size_t k = 0; k < kernel->slots.size(); k++)
		memcpy(kernel->params + kernel->slots[k].offset, config->params[k], kernel->slots[k].bytes);
	try
	{
		Run(&launch, config->cooperative).all();
	}
	catch (const Fault &f)
	{
		error->text = f.text;
		return false;
	}
	return true;
}

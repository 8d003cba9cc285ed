/*
 * ptx_warp.cpp
 *	  Warps: frames, groups of lanes, and which of them runs.
 *
 * The group that is furthest behind in the program runs first, so that those that went another way meet again behind it.  A
 * group that turns in a loop, maybe waiting for lanes that wait for it to come, yields after a while.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>

#include "ptx_ops.h"

void
fault(const Warp *w, const Insn *i, uint32_t lanes, const char *format, ...)
{
	const Block *block = w->block;
	const Launch *launch = block->launch;
	unsigned	lane = lanes ? (unsigned) __builtin_ctz(lanes) : 0;
	char		what[400],
				where[300];
	va_list		args;
	std::string statement;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(where, sizeof(where), " in block (%u, %u, %u), thread (%u, %u, %u), line %u: ", block->index.x, block->index.y,
			 block->index.z, w->special[SPECIAL_TID][lane], w->special[SPECIAL_TID + 1][lane],
			 w->special[SPECIAL_TID + 2][lane], kernel_line(launch->kernel, i->text, &statement));
	throw Fault{std::string(what) + " in kernel " + launch->kernel->name + where + statement};
}

static size_t
rounded_up(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

Frame *
get_frame(const Function *function, Frame *parent, const Insn *site)
{
	Frame	   *frame;
	size_t		rows = rounded_up(function->row_bytes + 16 * LANES),
				params = rounded_up(function->param_bytes * LANES),
				local = rounded_up(function->local_bytes * LANES);

	if (function->spare.empty())
	{
		char	   *memory = (char *) aligned_alloc(64, rows + params + local);

		frame = new Frame();
		frame->function = function;
		frame->rows = memory;
		frame->params = memory + rows;
		frame->local = memory + rows + params;
		memset(frame->rows, POISON, rows);
	}
	else
	{
		frame = function->spare.back();
		function->spare.pop_back();
	}
	memset(frame->params, POISON, params + local);
	frame->parent = parent;
	frame->site = site;
	frame->lanes = 0;
	frame->depth = parent ? parent->depth + 1 : 0;
	return frame;
}

static void
leave_frame(Frame *frame, uint32_t lanes)
{
	frame->lanes &= ~lanes;
	if (frame->lanes == 0)
		frame->function->spare.push_back(frame);
}

static void
enter(Warp *w, Frame *frame)
{
	w->frame = frame;
	w->base[ROWS_FRAME] = frame->rows;
	w->base[ROWS_CONSTANT] = frame->function->constants;
}

const Insn *
stop_group(Warp *w, const Insn *pc, GroupState state)
{
	Group	   *g = &w->groups[w->current];

	g->pc = pc;
	g->state = state;
	return NULL;
}

void
add_group(Warp *w, uint32_t lanes, Frame *frame, const Insn *pc, GroupState state)
{
	Group	   *g = &w->groups[w->ngroups++];

	*g = Group{lanes, state, frame, pc, 0, 0, false};
}

/* The lanes go on at pc and the current group's others at rest_pc. */
const Insn *
split_group(Warp *w, uint32_t lanes, const Insn *pc, const Insn *rest_pc)
{
	Group	   *g = &w->groups[w->current];

	g->mask &= ~lanes;
	add_group(w, lanes, w->frame, pc, GROUP_READY);
	return stop_group(w, rest_pc, GROUP_READY);
}

static void
remove_current(Warp *w)
{
	w->groups[w->current] = w->groups[--w->ngroups];
	w->current = -1;
}

const Insn *
end_lanes(Warp *w, const Insn *i)
{
	uint32_t	ended = w->groups[w->current].mask;

	for (int lane = 0; lane < LANES && !w->copies.empty(); lane++)
		w->batch[lane]++;
	finish_copies(w, ended, 0);
	for (Frame *f = w->frame, *parent; f; f = parent)
	{
		parent = f->parent;
		leave_frame(f, ended);
	}
	remove_current(w);
	w->live &= ~ended;
	for (int k = 0; k < w->ngroups; k++)
		if (w->groups[k].state == GROUP_SYNC)
			w->groups[k].state = GROUP_READY;
	block_threads_ended(w->block, (unsigned) __builtin_popcount(ended));
	(void) i;
	return NULL;
}

const Insn *
call_function(Warp *w, const Insn *i)
{
	const Function *callee = i->callee;
	Group	   *g = &w->groups[w->current];
	Frame	   *caller = w->frame,
			   *frame = NULL;

	/* lanes that came this way before are in it */
	for (int k = 0; k < w->ngroups && frame == NULL; k++)
		for (Frame *f = w->groups[k].frame; f; f = f->parent)
			if (f->parent == caller && f->site == i)
				frame = f;
	if (frame == NULL)
		frame = get_frame(callee, caller, i);
	if (frame->depth > 1000)
		fault(w, i, w->mask, "calls are too deep");
	frame->lanes |= w->mask;
	for (size_t p = 0; p < callee->params.size(); p++)
		for (uint32_t left = w->mask; left; left &= left - 1)
		{
			size_t		lane = (size_t) __builtin_ctz(left);

			memcpy(frame->params + lane * callee->param_bytes + callee->params[p].offset,
				   caller->params + lane * caller->function->param_bytes + i->list[p].offset, callee->params[p].bytes);
		}
	g->frame = frame;
	enter(w, frame);
	return w->ngroups == 1 ? callee->code.data() : stop_group(w, callee->code.data(), GROUP_READY);
}

const Insn *
return_from(Warp *w, const Insn *i)
{
	Frame	   *frame = w->frame,
			   *caller = frame->parent;
	const Function *callee = frame->function;
	const Insn *site = frame->site;

	if (caller == NULL)
		return end_lanes(w, i);
	for (size_t r = 0; r < callee->results.size(); r++)
		for (uint32_t left = w->mask; left; left &= left - 1)
		{
			size_t		lane = (size_t) __builtin_ctz(left);

			memcpy(caller->params + lane * caller->function->param_bytes + site->list[callee->params.size() + r].offset,
				   frame->params + lane * callee->param_bytes + callee->results[r].offset, callee->results[r].bytes);
		}
	w->groups[w->current].frame = caller;
	leave_frame(frame, w->mask);
	enter(w, caller);
	return w->ngroups == 1 ? site + 1 : stop_group(w, site + 1, GROUP_READY);
}

/* Where g is, as seen from the ancestor of depth. */
static const Insn *
position(const Group *g, const Frame *ancestor)
{
	const Insn *pc = g->pc;

	for (const Frame *f = g->frame; f != ancestor; f = f->parent)
		pc = f->site;
	return pc;
}

static bool
is_in(const Group *g, const Frame *ancestor)
{
	const Frame *f = g->frame;

	while (f->depth > ancestor->depth)
		f = f->parent;
	return f == ancestor;
}

static bool
behind(const Group *a, const Group *b)
{
	const Frame *common = a->frame;
	const Insn *pa,
			   *pb;

	while (!is_in(b, common))
		common = common->parent;
	pa = position(a, common);
	pb = position(b, common);
	if (pa != pb)
		return pa < pb;
	return a->frame->depth < b->frame->depth;
}

static bool
may_meet(const Group *g)
{
	return g->state == GROUP_READY || g->state == GROUP_SYNC;
}

static void
merge_groups(Warp *w)
{
	for (int k = 0; k < w->ngroups; k++)
		for (int m = w->ngroups - 1; m > k; m--)
		{
			Group	   *a = &w->groups[k],
					   *b = &w->groups[m];

			if (a->pc != b->pc || a->frame != b->frame || !may_meet(a) || !may_meet(b))
				continue;
			a->mask |= b->mask;
			a->state = GROUP_READY;
			a->yielded = false;
			a->turns = 0;
			*b = w->groups[--w->ngroups];
		}
}

/* Chooses the group that runs and how far it may: false if none can. */
static bool
choose_group(Warp *w)
{
	int			best = -1;

	if (w->ngroups > 1)
		merge_groups(w);
	for (int pass = 0; pass < 2 && best < 0; pass++)
	{
		for (int k = 0; k < w->ngroups; k++)
		{
			Group	   *g = &w->groups[k];

			if (pass == 1)
				g->yielded = false;
			if (g->state == GROUP_READY && !g->yielded && (best < 0 || behind(g, &w->groups[best])))
				best = k;
		}
	}
	w->current = best;
	if (best < 0)
		return false;

	Group	   *g = &w->groups[best];

	w->run_until = (const Insn *) UINTPTR_MAX;
	for (int k = 0; k < w->ngroups; k++)
		if (k != best && may_meet(&w->groups[k]) && is_in(&w->groups[k], g->frame))
		{
			const Insn *at = position(&w->groups[k], g->frame);

			if (at > g->pc && at < w->run_until)
				w->run_until = at;
		}
	w->mask = g->mask;
	enter(w, g->frame);
	return true;
}

/* Runs groups until none can or the steps are over.  False: none can. */
bool
run_warp(Warp *w, uint64_t steps)
{
	w->deadline = w->steps + steps;
	while (w->steps < w->deadline)
	{
		const Insn *pc;
		uint64_t	before = w->steps;
		unsigned	lanes;

		if (!choose_group(w))
			return false;
		lanes = (unsigned) __builtin_popcount(w->mask);
		pc = w->groups[w->current].pc;
		while (pc)
		{
			w->steps++;
			pc = pc->run(w, pc);
		}
		if (w->counts)
		{
			w->counts->warp_instructions += w->steps - before;
			w->counts->lane_instructions += (w->steps - before) * lanes;
		}
	}
	return true;
}

typedef uint32_t SpecialRows[SPECIALS][LANES];

static void
set_special(SpecialRows rows, int which, uint32_t value)
{
	for (int lane = 0; lane < LANES; lane++)
		rows[which][lane] = value;
}

static void
set_dim(SpecialRows rows, int which, EmuDim value)
{
	set_special(rows, which, value.x);
	set_special(rows, which + 1, value.y);
	set_special(rows, which + 2, value.z);
}

static EmuDim
divided(EmuDim a, EmuDim b)
{
	return EmuDim{a.x / b.x, a.y / b.y, a.z / b.z};
}

/* What is the same for this warp of all blocks. */
static void
set_specials_of_launch(const Launch *launch, unsigned number, SpecialRows rows)
{
	EmuDim		cluster = launch->cluster;
	unsigned	threads = launch->block.x * launch->block.y * launch->block.z;
	size_t		shared = launch->kernel->dynamic_at + launch->dynamic_shared;

	for (unsigned lane = 0; lane < LANES; lane++)
	{
		unsigned	thread = number * LANES + lane;

		rows[SPECIAL_TID][lane] = thread % launch->block.x;
		rows[SPECIAL_TID + 1][lane] = thread / launch->block.x % launch->block.y;
		rows[SPECIAL_TID + 2][lane] = thread / launch->block.x / launch->block.y;
		rows[SPECIAL_LANEID][lane] = lane;
		rows[SPECIAL_LANEMASK_EQ][lane] = 1u << lane;
		rows[SPECIAL_LANEMASK_LT][lane] = (1u << lane) - 1;
		rows[SPECIAL_LANEMASK_LE][lane] = (1u << lane) | ((1u << lane) - 1);
		rows[SPECIAL_LANEMASK_GE][lane] = ~((1u << lane) - 1);
		rows[SPECIAL_LANEMASK_GT][lane] = ~((1u << lane) | ((1u << lane) - 1));
	}
	set_dim(rows, SPECIAL_NTID, launch->block);
	set_dim(rows, SPECIAL_NCTAID, launch->grid);
	set_special(rows, SPECIAL_WARPID, number);
	set_special(rows, SPECIAL_NWARPID, (threads + LANES - 1) / LANES);
	set_dim(rows, SPECIAL_NCLUSTERID, divided(launch->grid, cluster));
	set_dim(rows, SPECIAL_CLUSTER_NCTAID, cluster);
	set_special(rows, SPECIAL_CLUSTER_NCTARANK, cluster.x * cluster.y * cluster.z);
	set_special(rows, SPECIAL_NSMID, 132);
	set_special(rows, SPECIAL_DYNAMIC_SMEM, (uint32_t) launch->dynamic_shared);
	set_special(rows, SPECIAL_TOTAL_SMEM, (uint32_t) shared);
	set_special(rows, SPECIAL_ENVREG1, (uint32_t) ((uint64_t) launch->workspace >> 32));
	set_special(rows, SPECIAL_ENVREG2, (uint32_t) (uint64_t) launch->workspace);
	set_special(rows, SPECIAL_ZERO, 0);
}

static void
set_specials(Warp *w)
{
	Block	   *block = w->block;
	Launch	   *launch = block->launch;
	EmuDim		cluster = launch->cluster,
				index = block->index;
	std::vector<std::vector<uint32_t>> &made = launch->specials;

	if (made.size() <= w->number)
		made.resize(w->number + 1);
	if (made[w->number].empty())
	{
		made[w->number].resize(SPECIALS * LANES);
		set_specials_of_launch(launch, w->number, (uint32_t (*)[LANES]) made[w->number].data());
	}
	memcpy(w->special, made[w->number].data(), sizeof(w->special));
	set_dim(w->special, SPECIAL_CTAID, index);
	set_special(w->special, SPECIAL_SMID, (index.x + index.y * launch->grid.x) % 132);
	set_dim(w->special, SPECIAL_CLUSTERID, divided(index, cluster));
	set_dim(w->special, SPECIAL_CLUSTER_CTAID, EmuDim{index.x % cluster.x, index.y % cluster.y, index.z % cluster.z});
	set_special(w->special, SPECIAL_CLUSTER_CTARANK, block->rank);
}

Warp *
make_warp(Block *block, unsigned number)
{
	Warp	   *w = new Warp();
	Launch	   *launch = block->launch;
	unsigned	threads = launch->block.x * launch->block.y * launch->block.z,
				here = std::min(threads - number * LANES, (unsigned) LANES);
	const Function *kernel = launch->kernel->functions[0].get();
	Frame	   *frame = get_frame(kernel, NULL, NULL);

	w->block = block;
	w->number = number;
	w->counts = launch->counts;
	w->live = here == LANES ? ALL_LANES : (1u << here) - 1;
	w->base[ROWS_SPECIAL] = (char *) w->special;
	w->base[ROWS_SINK] = w->sink;
	set_specials(w);
	frame->lanes = w->live;
	add_group(w, w->live, frame, kernel->code.data(), GROUP_READY);
	return w;
}

void
free_warp(Warp *w)
{
	for (int k = 0; k < w->ngroups; k++)
		for (Frame *f = w->groups[k].frame, *parent; f; f = parent)
		{
			parent = f->parent;
			if (f->lanes)
				leave_frame(f, w->groups[k].mask);
		}
	delete w;
}

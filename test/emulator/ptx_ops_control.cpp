/*
 * ptx_ops_control.cpp
 *	  Branches, calls, barriers, and what the lanes of a warp do together.
 */
#include <type_traits>

#include "ptx_ops.h"

/* Turns of a loop that a group makes while others of its warp wait: reading what they may write, and without. */
#define TURNS_POLLING 16
#define TURNS 100000

namespace
{

/* Behind a label or a conditional branch: where groups meet, and where a warp's turn ends. */
const Insn *
join(Warp *w, const Insn *i)
{
	w->steps--;
	if (__builtin_expect(i + 1 < w->run_until && w->steps < w->deadline, 1))
		return i + 1;
	return stop_group(w, i + 1, GROUP_READY);
}

/* To an earlier place: maybe in vain, until another group has done something. */
inline bool
turn_is_over(Warp *w)
{
	Group	   *g = &w->groups[w->current];

	if (w->ngroups == 1)
		return false;
	g->turns += w->polled && !w->wrote ? TURNS / TURNS_POLLING : 1;
	w->spins |= w->polled;
	w->progress |= w->wrote;
	w->polled = w->wrote = false;
	if (g->turns < TURNS)
		return false;
	g->turns = 0;
	g->yielded = true;
	return true;
}

const Insn *
branch(Warp *w, const Insn *i)
{
	if (i->target <= i && turn_is_over(w))
		return stop_group(w, i->target + 1, GROUP_READY);
	return i->target;
}

/* The target and the next instruction are joins. */
const Insn *
branch_if(Warp *w, const Insn *i)
{
	uint32_t	p = predicate(w, i->a),
				taken = w->mask & (i->flags & INSN_NEGATED ? ~p : p);

	if (taken == 0)
		return i + 1;
	if (taken == w->mask)
		return branch(w, i);
	if (i->target > i)
		return split_group(w, taken, i->target + 1, i + 2);

	/* the others have left the loop */
	Group	   *rest = &w->groups[w->current];

	split_group(w, taken, i->target + 1, i + 2);
	w->groups[w->ngroups - 1].turns = rest->turns;
	rest->turns = 0;
	return NULL;
}

/* One of the targets; an index past them is an error. */
const Insn *
branch_index(Warp *w, const Insn *i)
{
	const uint32_t *index = row<uint32_t>(w, i->a);
	uint32_t	left = w->mask;
	const Insn *first = NULL;

	while (left)
	{
		uint32_t	n = index[__builtin_ctz(left)],
					same = 0;

		if (n >= i->count)
			fault(w, i, left, "index %u of a branch with %u targets", n, i->count);
		for (uint32_t rest = left; rest; rest &= rest - 1)
			if (index[__builtin_ctz(rest)] == n)
				same |= 1u << __builtin_ctz(rest);

		const Insn *to = w->frame->function->code.data() + i->list[n].offset + 1;

		left &= ~same;
		if (first == NULL)
			first = to;
		else
		{
			w->groups[w->current].mask &= ~same;
			add_group(w, same, w->frame, to, GROUP_READY);
		}
	}
	return stop_group(w, first, GROUP_READY);
}

/* Executes the next instruction for the lanes whose predicate holds. */
const Insn *
guard(Warp *w, const Insn *i)
{
	uint32_t	p = predicate(w, i->a),
				all = w->mask,
				some = all & (i->flags & INSN_NEGATED ? ~p : p);

	if (some == 0)
		return i + 2;
	w->mask = some;
	i[1].run(w, i + 1);
	w->mask = all;
	return i + 2;
}

const Insn *
nothing(Warp *, const Insn *i)
{
	return i + 1;
}

const Insn *
sleep(Warp *w, const Insn *i)
{
	w->polled = true;
	if (w->ngroups == 1)
		return i + 1;
	w->groups[w->current].yielded = true;
	return stop_group(w, i + 1, GROUP_READY);
}

const Insn *
trap(Warp *w, const Insn *i)
{
	fault(w, i, w->mask, "trap");
}

/*
 * Lanes whose masks' lanes are all here; the others of the group stay behind, waiting at i.  0: all do.  Each lane has to be
 * in its own mask.
 */
uint32_t
lanes_together(Warp *w, const Insn *i, const uint32_t *masks)
{
	uint32_t	here = w->mask,
				left = here,
				together = 0;

	if (masks[__builtin_ctz(here)] == here)
	{
		bool		same = true;

		FOR_LANES(here, k, same &= masks[k] == here);
		if (same)
			return here;
	}
	while (left)
	{
		uint32_t	mask = masks[__builtin_ctz(left)],
					same = 0;

		for (uint32_t rest = left; rest; rest &= rest - 1)
			if (masks[__builtin_ctz(rest)] == mask)
				same |= 1u << __builtin_ctz(rest);
		if (same & ~mask)
			fault(w, i, same & ~mask, "lane that is not in its own mask 0x%x", mask);
		if ((mask & w->live & ~same) == 0)
			together |= same;
		left &= ~same;
	}
	if (together == 0)
		stop_group(w, i, GROUP_SYNC);
	else if (together != here)
	{
		w->groups[w->current].mask = w->mask = together;
		add_group(w, here & ~together, w->frame, i, GROUP_SYNC);
	}
	return together;
}

/* Before an operation of the lanes in the masks of operand e: those that execute it, or nothing. */
#define TOGETHER(w, i) \
	do \
	{ \
		if (lanes_together(w, i, row<uint32_t>(w, (i)->e)) == 0) \
			return NULL; \
	} while (0)

/* Also lanes that wait at other places count. */
const Insn *
warp_barrier(Warp *w, const Insn *i)
{
	const uint32_t *masks = row<uint32_t>(w, i->e);
	uint32_t	mask = masks[__builtin_ctz(w->mask)],
				waiting = w->mask;

	if (mask == w->mask && lanes_together(w, i, masks) == w->mask)
		return i + 1;
	for (int k = 0; k < w->ngroups; k++)
	{
		Group	   *g = &w->groups[k];

		if (k != w->current && g->state == GROUP_SYNC && g->pc->run == i->run && (g->mask & ~mask) == 0)
			waiting |= g->mask;
	}
	if ((mask & w->live & ~waiting) || (w->mask & ~mask))
	{
		TOGETHER(w, i);
		return i + 1;
	}
	for (int k = 0; k < w->ngroups; k++)
	{
		Group	   *g = &w->groups[k];

		if (k != w->current && g->state == GROUP_SYNC && g->pc->run == i->run && (g->mask & ~mask) == 0)
		{
			g->state = GROUP_READY;
			g->pc++;
		}
	}
	return stop_group(w, i + 1, GROUP_READY);
}

enum ShuffleMode
{
	SHUFFLE_UP,
	SHUFFLE_DOWN,
	SHUFFLE_BUTTERFLY,
	SHUFFLE_INDEX
};

/* d, p in list[0] = value of another lane, and whether it is in the segment: a, b, c. */
template <ShuffleMode MODE> const Insn *
shuffle(Warp *w, const Insn *i)
{
	uint32_t	value[LANES],
				p = 0;
	int			from[LANES];

	TOGETHER(w, i);

	uint32_t	mask = w->mask,
			   *d = row<uint32_t>(w, i->d);
	const uint32_t *a = row<uint32_t>(w, i->a),
			   *b = row<uint32_t>(w, i->b),
			   *c = row<uint32_t>(w, i->c);

	memcpy(value, a, sizeof(value));
	for (int k = 0; k < LANES; k++)
	{
		uint32_t	segment = c[k] >> 8 & 31,
					bound = c[k] & 31,
					least = (uint32_t) k & segment,
					most = least | (bound & ~segment),
					n = b[k] & 31;
		int			to = MODE == SHUFFLE_UP ? k - (int) n : MODE == SHUFFLE_DOWN ? k + (int) n :
			MODE == SHUFFLE_BUTTERFLY ? (int) ((uint32_t) k ^ n) : (int) (least | (n & ~segment));
		bool		inside = MODE == SHUFFLE_UP ? to >= (int) most : to <= (int) most;

		from[k] = inside ? to : k;
		p |= (uint32_t) inside << k;
	}
	if (mask == ALL_LANES)
		for (int k = 0; k < LANES; k++)
			d[k] = value[from[k]];
	else
		FOR_LANES(mask, k, d[k] = mask >> from[k] & 1 ? value[from[k]] : 0xa5a5a5a5u);
	if (i->count)
	{
		uint32_t   &q = predicate(w, i->list[0]);

		q = (q & ~mask) | (p & mask);
	}
	return i + 1;
}

/* Calls f(lanes) for each set of executing lanes that has one mask. */
template <class F> inline void
each_mask(Warp *w, const Insn *i, F f)
{
	const uint32_t *masks = row<uint32_t>(w, i->e);
	uint32_t	left = w->mask;

	while (left)
	{
		uint32_t	mask = masks[__builtin_ctz(left)],
					lanes = left & mask;

		f(lanes);
		left &= ~lanes;
	}
}

enum VoteMode
{
	VOTE_ALL,
	VOTE_ANY,
	VOTE_UNIFORM,
	VOTE_BALLOT
};

template <VoteMode MODE> const Insn *
vote(Warp *w, const Insn *i)
{
	TOGETHER(w, i);

	uint32_t	p = predicate(w, i->a);

	if (i->flags & INSN_NEGATED)
		p = ~p;
	each_mask(w, i, [&](uint32_t lanes) {
		uint32_t	yes = p & lanes;

		if (MODE == VOTE_BALLOT)
		{
			uint32_t   *d = row<uint32_t>(w, i->d);

			FOR_LANES(lanes, k, d[k] = yes);
		}
		else
		{
			uint32_t   &d = predicate(w, i->d);
			bool		r = MODE == VOTE_ALL ? yes == lanes : MODE == VOTE_ANY ? yes != 0 : yes == 0 || yes == lanes;

			d = (d & ~lanes) | (r ? lanes : 0);
		}
	});
	return i + 1;
}

template <class T, bool ALL> const Insn *
match(Warp *w, const Insn *i)
{
	TOGETHER(w, i);

	uint32_t   *d = row<uint32_t>(w, i->d);
	const T    *a = row<T>(w, i->a);

	each_mask(w, i, [&](uint32_t lanes) {
		uint32_t	left = lanes;

		while (left)
		{
			T			value = a[__builtin_ctz(left)];
			uint32_t	same = 0;

			for (uint32_t rest = left; rest; rest &= rest - 1)
				if (a[__builtin_ctz(rest)] == value)
					same |= 1u << __builtin_ctz(rest);
			left &= ~same;
			if (ALL)
			{
				bool		all = same == lanes;

				FOR_LANES(lanes, k, d[k] = all ? lanes : 0);
				if (i->count)
				{
					uint32_t   &p = predicate(w, i->list[0]);

					p = (p & ~lanes) | (all ? lanes : 0);
				}
				break;
			}
			FOR_LANES(same, k, d[k] = same);
		}
	});
	return i + 1;
}

struct RAdd { template <class T> static T f(T a, T b) { return (T) ((uint32_t) a + (uint32_t) b); } };
struct RMin { template <class T> static T f(T a, T b) { return b < a ? b : a; } };
struct RMax { template <class T> static T f(T a, T b) { return a < b ? b : a; } };
struct RAnd { template <class T> static T f(T a, T b) { return a & b; } };
struct ROr { template <class T> static T f(T a, T b) { return a | b; } };
struct RXor { template <class T> static T f(T a, T b) { return a ^ b; } };

template <class T, class F> const Insn *
redux(Warp *w, const Insn *i)
{
	TOGETHER(w, i);

	T		   *d = row<T>(w, i->d);
	const T    *a = row<T>(w, i->a);

	each_mask(w, i, [&](uint32_t lanes) {
		T			r = a[__builtin_ctz(lanes)];

		for (uint32_t left = lanes & (lanes - 1); left; left &= left - 1)
			r = F::template f<T>(r, a[__builtin_ctz(left)]);
		FOR_LANES(lanes, k, d[k] = r);
	});
	return i + 1;
}

/* The lowest lane of the mask, to d and p in list[0]. */
const Insn *
elect(Warp *w, const Insn *i)
{
	TOGETHER(w, i);
	each_mask(w, i, [&](uint32_t lanes) {
		uint32_t   *d = row<uint32_t>(w, i->d),
				   &p = predicate(w, i->list[0]),
					first = (uint32_t) __builtin_ctz(lanes);

		FOR_LANES(lanes, k, d[k] = first);
		p = (p & ~lanes) | 1u << first;
	});
	return i + 1;
}

const Insn *
active_lanes(Warp *w, const Insn *i)
{
	uint32_t   *d = row<uint32_t>(w, i->d),
				mask = w->mask;

	FOR_LANES(mask, k, d[k] = mask);
	return i + 1;
}

template <class T> const Insn *
clock(Warp *w, const Insn *i)
{
	T		   *d = row<T>(w, i->d);

	w->polled = true;
	FOR_LANES(w->mask, k, d[k] = (T) w->steps * 4);
	return i + 1;
}

/* Arrives at barrier a, of b threads if count says so, with predicate c if it has a result. */
Barrier *
arrive(Warp *w, const Insn *i, unsigned *id)
{
	const uint32_t *ids = row<uint32_t>(w, i->a);
	unsigned	first = (unsigned) __builtin_ctz(w->mask),
				lanes = (unsigned) __builtin_popcount(w->mask),
				expected = i->count ? row<uint32_t>(w, i->b)[first] : 0;
	Barrier    *barrier;

	*id = ids[first];
	if (*id >= 16)
		fault(w, i, w->mask, "barrier %u", *id);
	for (uint32_t left = w->mask; left; left &= left - 1)
		if (ids[__builtin_ctz(left)] != *id)
			fault(w, i, left, "lanes of a warp at barriers %u and %u", *id, ids[__builtin_ctz(left)]);
	barrier = &w->block->barriers[*id];
	if (barrier->arrived && barrier->expected != expected)
		fault(w, i, w->mask, "barrier %u is for %u threads and for %u", *id, barrier->expected, expected);
	if (w->barrier_site[*id] && w->barrier_site[*id] != i && (i->flags & INSN_ALIGNED))
		fault(w, i, w->mask, "lanes of a warp at barrier %u in different places", *id);
	w->barrier_site[*id] = i;
	barrier->expected = expected;
	barrier->arrived += lanes;
	if (expected && w->mask == w->live)
		barrier->arrived += LANES - lanes;
	if (w->counts)
		w->counts->barriers++;
	w->wrote = true;
	return barrier;
}

const Insn *
barrier_sync(Warp *w, const Insn *i)
{
	arrive(w, i, &w->groups[w->current].barrier);
	stop_group(w, i, GROUP_BARRIER);
	complete_barriers(w->block);
	return NULL;
}

/* With a result in d, for complete_barriers(): imm says which. */
const Insn *
barrier_red(Warp *w, const Insn *i)
{
	Barrier    *barrier = arrive(w, i, &w->groups[w->current].barrier);
	uint32_t	p = predicate(w, i->c);

	if (i->flags & INSN_NEGATED)
		p = ~p;
	barrier->votes += (unsigned) __builtin_popcount(w->mask);
	barrier->votes_true += (unsigned) __builtin_popcount(p & w->mask);
	stop_group(w, i, GROUP_BARRIER);
	complete_barriers(w->block);
	return NULL;
}

const Insn *
barrier_arrive(Warp *w, const Insn *i)
{
	unsigned	id;

	arrive(w, i, &id);
	w->barrier_site[id] = NULL;
	complete_barriers(w->block);
	return i + 1;
}

const Insn *
cluster_arrive(Warp *w, const Insn *i)
{
	Cluster    *cluster = w->block->cluster;

	w->cluster_phase = cluster->phase;
	cluster->arrived += (unsigned) __builtin_popcount(w->mask);
	w->wrote = true;
	complete_cluster(cluster);
	return i + 1;
}

const Insn *
cluster_wait(Warp *w, const Insn *i)
{
	if (w->block->cluster->phase != w->cluster_phase)
		return i + 1;
	return stop_group(w, i, GROUP_CLUSTER);
}

template <class F> Handler
redux_of(Type type)
{
	return type == S32 ? redux<int32_t, F> : redux<uint32_t, F>;
}

}								/* namespace */

Handler
control_handler(const std::string &name)
{
	static const std::map<std::string, Handler> handlers = {
		{"join", join}, {"bra", branch}, {"bra.if", branch_if}, {"brx", branch_index}, {"guard", guard}, {"nop", nothing},
		{"nanosleep", sleep}, {"trap", trap}, {"exit", end_lanes}, {"ret", return_from}, {"call", call_function},
		{"activemask", active_lanes}, {"elect", elect},
	};
	auto		found = handlers.find(name);

	return found == handlers.end() ? NULL : found->second;
}

Handler
barrier_handler(const std::string &kind)
{
	return kind == "warp" ? warp_barrier : kind == "sync" ? barrier_sync : kind == "red" ? barrier_red :
		kind == "arrive" ? barrier_arrive : kind == "cluster.arrive" ? cluster_arrive :
		kind == "cluster.wait" ? cluster_wait : (Handler) NULL;
}

Handler
shuffle_handler(const std::string &mode)
{
	return mode == "up" ? shuffle<SHUFFLE_UP> : mode == "down" ? shuffle<SHUFFLE_DOWN> :
		mode == "bfly" ? shuffle<SHUFFLE_BUTTERFLY> : mode == "idx" ? shuffle<SHUFFLE_INDEX> : (Handler) NULL;
}

Handler
vote_handler(const std::string &mode)
{
	return mode == "all" ? vote<VOTE_ALL> : mode == "any" ? vote<VOTE_ANY> : mode == "uni" ? vote<VOTE_UNIFORM> :
		mode == "ballot" ? vote<VOTE_BALLOT> : (Handler) NULL;
}

Handler
match_handler(bool all, unsigned bytes)
{
	if (bytes == 4)
		return all ? match<uint32_t, true> : match<uint32_t, false>;
	return all ? match<uint64_t, true> : match<uint64_t, false>;
}

Handler
redux_handler(const std::string &op, Type type)
{
	return op == "add" ? redux_of<RAdd>(type) : op == "min" ? redux_of<RMin>(type) : op == "max" ? redux_of<RMax>(type) :
		op == "and" ? redux_of<RAnd>(type) : op == "or" ? redux_of<ROr>(type) : op == "xor" ? redux_of<RXor>(type) :
		(Handler) NULL;
}

Handler
clock_handler(unsigned bytes)
{
	return bytes == 4 ? clock<uint32_t> : clock<uint64_t>;
}

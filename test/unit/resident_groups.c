/*
 * resident_groups.c
 *	  The expected groups of a query, computed from the model row by row.
 */
#include "operators/vector_run.h"
#include "resident_test.h"

void
groups_clear_pairs(Group *g)
{
	g->best = argmax_identity();
	g->most = max_i64_identity();
	g->payloads = 0;
}

/* Combines the members for PAIRS of *from into those of *to. */
static void
add_pairs(Group *to, const Group *from)
{
	to->best = argmax_combine(to->best, from->best);
	to->most = max_i64_combine(to->most, from->most);
	to->payloads += from->payloads;
}

int
groups_compare(const void *a, const void *b)
{
	uint64_t x = ((const Group *) a)->key;
	uint64_t y = ((const Group *) b)->key;

	if (x != y)
		return x < y ? -1 : 1;
	return ((const Group *) a)->sum < ((const Group *) b)->sum ?
		-1 :
		((const Group *) a)->sum > ((const Group *) b)->sum;
}

/*
 * Combines the groups of each key with a hash table, in no order. This is faster than sorting all
 * rows.
 */
static int
combine_unsorted(Group *groups, int n)
{
	uint64_t size = 16;
	int ncombined = 0;
	int *places; /* hash table: number of a key's group + 1 */

	while (size < 2 * (uint64_t) n)
		size *= 2;
	places = calloc(size, sizeof(*places));
	for (int i = 0; i < n; i++)
	{
		uint64_t at = groups[i].key * UINT64_C(0x9E3779B97F4A7C15) >> 32 & (size - 1);

		while (places[at] != 0 && groups[places[at] - 1].key != groups[i].key)
			at = (at + 1) & (size - 1);
		if (places[at] == 0)
		{
			groups[ncombined++] = groups[i];
			places[at] = ncombined;
		}
		else
		{
			groups[places[at] - 1].count += groups[i].count;
			groups[places[at] - 1].sum += groups[i].sum;
			add_pairs(&groups[places[at] - 1], &groups[i]);
		}
	}
	free(places);
	return ncombined;
}

int
groups_combine(Group *groups, int n, bool distinct)
{
	int ncombined = 0;
	int64_t last = 0;

	if (!distinct)
		n = combine_unsorted(groups, n);
	qsort(groups, n, sizeof(*groups), groups_compare);
	for (int i = 0; i < n; last = groups[i++].sum)
		if (ncombined > 0 && groups[ncombined - 1].key == groups[i].key)
		{
			groups[ncombined - 1].count += groups[i].count;
			groups[ncombined - 1].sum += distinct && groups[i].sum == last ? 0 : groups[i].sum;
		}
		else
			groups[ncombined++] = groups[i];
	return ncombined;
}

/* Sets the members for PAIRS of *g to those of a single row. */
static void
set_pair(const TestQuery *t, const Model *m, const Range *r, uint32_t row, Group *g)
{
	g->most = gpuagg_f64_code((double) model_value(m, r, COL_X, row));
	g->payloads = !model_is_null(r, t->payload, row);
	if (g->payloads > 0)
		g->best = (gpuagg_kv){g->most, model_value(m, r, t->payload, row)};
}

Group *
groups_expect(const TestQuery *t, const Model *m, int *n, uint64_t *undetermined)
{
	Group *groups;
	size_t rows = 0;

	for (uint32_t r = 0; r < t->nrow_ranges; r++)
		rows += t->row_ranges[r].nrows;
	groups = malloc((rows + 1) * sizeof(*groups));
	*n = 0;
	for (uint32_t i = 0; i < t->nrow_ranges; i++)
		for (uint32_t row = t->row_ranges[i].first;
			 row < t->row_ranges[i].first + t->row_ranges[i].nrows; row++)
		{
			Group *g = &groups[*n];
			int outcome = test_query_row_outcome(t, m, &m->ranges[t->row_ranges[i].range / 3], row,
												 &g->key, &g->sum);

			g->count = 1;
			groups_clear_pairs(g);
			if (t->kind == PAIRS)
				set_pair(t, m, &m->ranges[t->row_ranges[i].range / 3], row, g);
			*n += outcome > 0;
			*undetermined += outcome < 0;
		}
	return groups;
}

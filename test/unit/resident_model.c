/*
 * resident_model.c
 *	  Tables for resident_test. All values are functions of the range's stamp and the row, so
 *	  that the expected groups can be computed at any time.
 */
#include "resident_test.h"

const uint32_t model_types[COLS] = {WIRE_I32, WIRE_I64, WIRE_I16, WIRE_I8,
									WIRE_F64, WIRE_I32, WIRE_I32};

uint64_t model_last_stamp;
uint64_t model_last_table;

/* Gives a range a new stamp and a random number of rows. Its values depend on the stamp. */
static void
refresh_range(Range *range)
{
	range->stamp = ++model_last_stamp;
	range->nrows = 1 + (uint32_t) random_below(TEST_ROWS);
}

void
model_change(Model *m, int range)
{
	refresh_range(&m->ranges[range]);
	m->spans[range / SPAN_RANGES] = 0;
}

void
model_make(Model *m)
{
	memset(m->spans, 0, sizeof(m->spans));
	m->id = ++model_last_table;
	m->scattered = random_below(2) == 0;
	m->ordered = random_below(2) == 0;
	m->least = random_below(2) ? 0 : -20;
	for (int r = 0; r < RANGES; r++)
	{
		m->ranges[r].ordered = m->ordered ? r + 1 : 0;
		refresh_range(&m->ranges[r]);
	}
}

bool
model_has_nulls(const Range *r, int col)
{
	if (col == COL_K && r->ordered)
		return r->ordered == RANGES;
	return (col == COL_K && r->stamp % 3 == 0) || (col == COL_V && r->stamp % 2 == 0);
}

bool
model_is_null(const Range *r, int col, uint32_t row)
{
	/* NULLs come last, as they do in the order of the key */
	if (col == COL_K && r->ordered)
		return model_has_nulls(r, col) && row > r->nrows / 2;
	return model_has_nulls(r, col) && row % 10 == (uint32_t) (col == COL_K ? 4 : 7);
}

int64_t
model_value(const Model *m, const Range *r, int col, uint32_t row)
{
	switch (col)
	{
		case COL_K:
			if (r->ordered)
				return ((int64_t) r->ordered * TEST_ROWS * 2 + row) / 7 *
					(m->scattered ? 5017 : 1) +
					m->least;
			return (int64_t) ((r->stamp + row * 7) % 40) * (m->scattered ? 50000017 : 1) + m->least;
		case COL_V:
			return row % 97 == 5 ? INT64_MAX : (int64_t) (r->stamp * 13 + row * 37) % 1000 - 300;
		case COL_S:
			return (int64_t) (r->stamp * 5 + row) % 700 - 350;
		case COL_B:
			return (r->stamp + row) % 3 == 0;
		case COL_I:
			return (int64_t) ((r->stamp + row * 3) % 11) + m->least;
		case COL_J:
			return (int64_t) (row % 17) - 8;
		default:
			return (int64_t) (row % 128);
	}
}

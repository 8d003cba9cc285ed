/*
 * standin_resident.c
 *	  The stand-in's stored columns, in host memory, and rows of them; see standin.h.
 */
#include <stdlib.h>
#include <string.h>

#include "operators/vector_run.h"
#include "server/resident_plan.h"
#include "standin.h"

/* Rows of a tile of programs. */
#define TILE 1024

/* ---- memory of the store ---- */

static DeviceStatus
allocate(int device, size_t bytes, void **at, DeviceError *error)
{
	uint64_t left;

	*at = NULL;
	/* the bytes are in the budget already */
	if (!standin_available(device, false, &left) || budget_device(device)->used > left)
		return device_say(error, DEVICE_NO_MEMORY, "other processes have the device's memory");
	*at = malloc(bytes);
	return *at ? DEVICE_OK : device_say(error, DEVICE_NO_MEMORY, "out of memory");
}

static void
release(int device, void *at)
{
	(void) device;
	free(at);
}

static DeviceStatus
enlarge(int device, void *to, size_t bytes, const void *from, size_t used, int rest,
		DeviceError *error)
{
	(void) device, (void) error;
	if (used > 0)
		memcpy(to, from, used);
	memset((char *) to + used, rest, bytes - used);
	return DEVICE_OK;
}

static char *
lane_buffer(Lane *lane, int buffer)
{
	return lane->arena + buffer * lane->buffer_bytes;
}

static DeviceStatus
put(Lane *lane, int buffer, uint32_t from, void *to, size_t bytes, DeviceError *error)
{
	(void) error;
	memcpy(to, lane_buffer(lane, buffer) + from, bytes);
	return DEVICE_OK;
}

static bool
bit(const void *bits, int64_t i)
{
	return bits == NULL || (((const uint8_t *) bits)[i >> 3] >> (i & 7) & 1);
}

static void
set_bit(uint8_t *bits, int64_t i, bool value)
{
	bits[i >> 3] = (bits[i >> 3] & ~(1 << (i & 7))) | value << (i & 7);
}

static DeviceStatus
put_bits(Lane *lane, int buffer, uint32_t from, void *bits, int64_t first, int64_t nrows,
		 DeviceError *error)
{
	const char *given = from == WIRE_NO_ARRAY ? NULL : lane_buffer(lane, buffer) + from;

	(void) error;
	for (int64_t i = 0; i < nrows; i++)
		set_bit(bits, first + i, bit(given, i));
	return DEVICE_OK;
}

void
standin_store_start(int ndevices)
{
	static const StoreOps operations = {
		.buffer = lane_buffer,
		.allocate = allocate,
		.release = release,
		.enlarge = enlarge,
		.put = put,
		.put_bits = put_bits,
	};

	store_start(&operations, ndevices);
}

void
standin_release_holds(Query *query)
{
	while (query->holds)
	{
		StoreHold *hold = query->holds;

		query->holds = hold->next;
		store_release(hold);
	}
}

/* ---- rows ---- */

/* Registers of a tile. */
typedef struct Tile
{
	int64_t values[VECTOR_MAX_REGISTERS * TILE];
	uint8_t states[VECTOR_MAX_REGISTERS * TILE];
} Tile;

/* Rows that count, all columns of them, as they are appended. */
typedef struct Made
{
	Query *query;
	const WireResident *in;
	const char *cells; /* of the tables, and their states */
	const StoreHold *hold;
	ResidentPlan plan;
	Rows rows;
	Tile tile;
} Made;

static int64_t
read_value(const char *values, uint32_t type, int64_t i)
{
	switch (type)
	{
		case WIRE_I8:
			return ((const int8_t *) values)[i];
		case WIRE_I16:
			return ((const int16_t *) values)[i];
		case WIRE_I32:
			return ((const int32_t *) values)[i];
		case WIRE_F32:
			return ((const uint32_t *) values)[i];
		default:
			return ((const int64_t *) values)[i];
	}
}

/* The code of a float. */
static int64_t
read_code(const char *values, uint32_t type, bool zeros, int64_t i)
{
	double v = type == WIRE_F32 ? ((const float *) values)[i] : ((const double *) values)[i];

	return gpuagg_f64_code(zeros ? v + 0.0 : v);
}

static const StoreSegment *
segment_of(const Made *m, int stored, int64_t position)
{
	return &m->hold->segments[(size_t) stored * m->hold->nsegments + position / STORE_SEGMENT_ROWS];
}

/* Runs the program for n rows of one segment. */
static void
run_program(Made *m, int64_t position, int n)
{
	const VectorProgram *p = &m->plan.program;

	for (uint32_t i = 0; i < p->ninstructions; i++)
	{
		const VectorInstruction *in = &p->instructions[i];

		if (in->op == VECTOR_LOOKUP)
		{
			vector_lookup(in, m->in->tables, (const int64_t *) m->cells,
						  (const uint8_t *) m->cells +
							  (wire_cell_states_at(m->in) - wire_cells_at(m->in)),
						  p->constants, m->tile.values, m->tile.states, TILE, 0, 1, n);
			continue;
		}
		if (in->op != VECTOR_LOAD)
		{
			vector_run(in, p->constants, m->tile.values, m->tile.states, TILE, 0, 1, n);
			continue;
		}
		for (int row = 0; row < n; row++)
		{
			const StoreSegment *s = segment_of(m, in->a, position);
			int64_t at = position % STORE_SEGMENT_ROWS + row;

			m->tile.values[in->r * TILE + row] =
				read_value(s->values, m->in->stored[in->a].type, at);
			m->tile.states[in->r * TILE + row] = bit(s->validity, at) ? VECTOR_VALUE : VECTOR_NULL;
		}
	}
}

/* The value and state of a column of the query. */
static VectorCell
column_cell(const Made *m, int c, int64_t position, int row)
{
	const ResidentColumn *col = &m->plan.cols[c];
	VectorOperand o;

	if (col->stored >= 0 && !col->checked)
	{
		const StoreSegment *s = segment_of(m, col->stored, position);
		int64_t at = position % STORE_SEGMENT_ROWS + row;

		int64_t value = col->presence ? 1 :
			col->codes ? read_code(s->values, m->in->stored[col->stored].type, col->zeros, at) :
						 read_value(s->values, col->type, at);

		return vector_cell(value, bit(s->validity, at) ? VECTOR_VALUE : VECTOR_NULL);
	}
	o = vector_operand(col->operand, m->plan.program.constants, m->tile.values, m->tile.states,
					   TILE);
	return vector_cell(vector_value(&o, row), vector_state(&o, row));
}

/* Does the row count?  Counts it if its outcome is undetermined. */
static bool
row_counts(Made *m, int64_t position, int row)
{
	const VectorProgram *p = &m->plan.program;
	bool undetermined = false;

	if (p->filter != VECTOR_NONE)
	{
		VectorOperand o =
			vector_operand(p->filter, p->constants, m->tile.values, m->tile.states, TILE);

		undetermined = vector_state(&o, row) == VECTOR_UNDETERMINED;
		if (!undetermined && (vector_state(&o, row) == VECTOR_NULL || vector_value(&o, row) == 0))
			return false;
	}
	for (int c = 0; c < m->plan.ncols; c++)
	{
		const ResidentColumn *col = &m->plan.cols[c];
		int state = column_cell(m, c, position, row).state;

		undetermined |= state == VECTOR_UNDETERMINED ||
			(state == VECTOR_NULL && !col->nullable && !col->filter);
	}
	m->query->undetermined += undetermined;
	return !undetermined;
}

static void
append_row(Made *m, int64_t position, int row)
{
	uint32_t i = m->rows.nrows++;

	for (int c = 0; c < m->plan.ncols; c++)
	{
		const Column *col = &m->rows.cols[c];
		VectorCell cell = column_cell(m, c, position, row);
		int width = wire_width(col->type);
		int64_t value = cell.state == VECTOR_VALUE ? cell.value : 0;

		memcpy((char *) col->values + (size_t) i * width, &value, width);
		if (col->validity)
			set_bit((uint8_t *) col->validity, i, cell.state == VECTOR_VALUE);
	}
}

/* All rows of the hold; as many as it has fit. */
static bool
make_rows(Made *m)
{
	bool ok = true;

	for (int c = 0; c < m->plan.ncols; c++)
	{
		const ResidentColumn *col = &m->plan.cols[c];

		m->rows.cols[c].type = col->type;
		m->rows.cols[c].values = malloc(m->hold->nrows * wire_width(col->type) + 1);
		ok = ok && m->rows.cols[c].values;
		if (col->nullable)
			m->rows.cols[c].validity = malloc(wire_bitmap_bytes(m->hold->nrows));
		ok = ok && (m->rows.cols[c].validity || !col->nullable);
	}
	for (int s = 0; s < m->hold->nspans && ok; s++)
		for (int64_t at = 0; at < m->hold->spans[s].nrows; at += TILE)
		{
			int64_t position = m->hold->spans[s].first + at;
			int64_t left = m->hold->spans[s].nrows - at;
			int n = left < TILE ? (int) left : TILE;

			run_program(m, position, n);
			for (int row = 0; row < n; row++)
				if (row_counts(m, position, row))
					append_row(m, position, row);
		}
	return ok;
}

static DeviceStatus
reduce_held(Query *query, const WireResident *in, const WireRowRange *runs, const StoreHold *hold,
			DeviceError *error)
{
	Made *m = calloc(1, sizeof(*m));
	uint64_t undetermined = query->undetermined;
	DeviceStatus status = device_say(error, DEVICE_FULL, "out of memory");

	if (m == NULL || hold->nrows > UINT32_MAX)
	{
		free(m);
		return status;
	}
	m->query = query;
	m->in = in;
	m->cells = (const char *) runs + wire_cells_at(in);
	m->hold = hold;
	/* whoever reads codes gets them */
	resident_plan(query->q, in, hold, ~UINT64_C(0), &m->plan);
	if (make_rows(m))
		status = standin_reduce_rows(query, &m->rows, query->q->flags & WIRE_ORDERED, error);
	if (status != DEVICE_OK)
		query->undetermined = undetermined;
	for (int c = 0; c < m->plan.ncols; c++)
	{
		free((char *) m->rows.cols[c].values);
		free((uint8_t *) m->rows.cols[c].validity);
	}
	free(m);
	return status;
}

DeviceStatus
standin_resident(Query *query, Lane *lane, const WireResident *in, const WireRowRange *runs,
				 StoreHold *hold, DeviceError *error)
{
	DeviceStatus status;

	(void) lane;
	hold->next = query->holds;
	query->holds = hold;
	status = standin_provoke(++query->given, error);
	return status == DEVICE_OK ? reduce_held(query, in, runs, hold, error) : status;
}

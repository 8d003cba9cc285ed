/*
 * generate_resident.h
 *	  Random stored columns, and queries over them, for attack.c.
 *
 * A range's rows follow from its number and stamp, so that what one connection has stored another one
 * can name.
 */
#ifndef GPUAGG_FUZZ_GENERATE_RESIDENT_H
#define GPUAGG_FUZZ_GENERATE_RESIDENT_H

#include "generate.h"

#define TABLES 3
#define TABLE_COLUMNS 8
#define TABLE_RANGES 5
#define RANGE_STAMPS 3

static uint32_t
range_rows(int range, int stamp)
{
	return 1 + (uint32_t) (range * 1237 + stamp * 7919) % 3000;
}

static WireColumnKey
table_column(int col)
{
	static const uint32_t types[] = {WIRE_I8, WIRE_I16, WIRE_I32, WIRE_I64, WIRE_F32, WIRE_F64};

	return (WireColumnKey) {.typid = 20,.typmod = -1,.attno = col + 1,.scale = -1,.type = types[col % 6]};
}

static size_t
make_store(Connection *c, WireStore *in)
{
	int			range = between(0, TABLE_RANGES - 1);
	int			stamp = between(1, RANGE_STAMPS);
	int			width;

	*in = (WireStore) {.table = {1 + random_below(TABLES)},.stamp = stamp,.range = range,
		.nrows = range_rows(range, stamp),.column = table_column(between(0, TABLE_COLUMNS - 1)),
		.buffer = random_below(WIRE_BUFFERS),.validity = WIRE_NO_ARRAY
	};
	width = wire_width(in->column.type);
	if (c->arena)
		fill_values(c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES, in->column.type, in->nrows);
	if (chance(0.4))
	{
		in->validity = wire_align((size_t) in->nrows * width);
		if (c->arena)
			memset(c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES + in->validity, between(0, 255),
				   wire_bitmap_bytes(in->nrows));
	}
	return sizeof(*in);
}

static int
pick_operand(const VectorProgram *p)
{
	return p->nconstants > 0 && chance(0.3) ? VECTOR_CONSTANT + between(0, p->nconstants - 1) :
		between(0, VECTOR_MAX_REGISTERS - 1);
}

/* Random operations over what is there; those that would make the program invalid are left out. */
static void
make_program(VectorProgram *p, uint32_t nstored)
{
	uint64_t	set;

	p->nregisters = VECTOR_MAX_REGISTERS;
	p->filter = VECTOR_NONE;
	p->nconstants = between(1, 8);
	for (uint32_t i = 0; i < p->nconstants; i++)
		p->constants[i] = (VectorConstant) {chance(0.5) ? between(-20, 20) : (int64_t) random_u64(), random_below(3), 0};
	for (uint32_t i = 0; i < nstored; i++)
		p->instructions[p->ninstructions++] = (VectorInstruction) {
			VECTOR_LOAD, between(0, VECTOR_MAX_REGISTERS - 1), i, 0, 0, table_column(i).type
		};
	for (int i = chance(0.3) ? 0 : between(1, 300); i > 0 && p->ninstructions < VECTOR_MAX_INSTRUCTIONS; i--)
	{
		p->instructions[p->ninstructions] = (VectorInstruction) {
			between(1, VECTOR_OPS - 1), between(0, VECTOR_MAX_REGISTERS - 1), pick_operand(p), pick_operand(p),
			chance(0.3) ? between(0, 4) : pick_operand(p), chance(0.5) ? between(0, 31) : random_below(65536)
		};
		p->ninstructions++;
		if (!vector_program_valid(p, (int) nstored, WIRE_TYPES, &set))
			p->ninstructions--;
	}
	for (int i = 0; i < 20 && p->filter == VECTOR_NONE && chance(0.9); i++)
	{
		p->filter = pick_operand(p);
		if (!vector_program_valid(p, (int) nstored, WIRE_TYPES, &set))
			p->filter = VECTOR_NONE;
	}
}

/* Is the column of the query a key or an order, or a slot's filter? */
static bool
has_no_nulls(const WireQuery *q, int col)
{
	for (int k = 0; k < q->nkeys; k++)
		if (q->keys[k].col == col && !q->keys[k].nullable)
			return true;
	for (int s = 0; s < q->nslots; s++)
		if (q->slots[s].filter == col)
			return true;
	for (uint32_t s = 0; s < q->nsets; s++)
		if (q->sets[s].filter == col)
			return true;
	return false;
}

/* Can its columns be those of a program? */
static bool
suits_programs(const Connection *c)
{
	for (int i = 0; i < c->query.ncols; i++)
		if (c->types[i] >= WIRE_MAT2)
			return false;
	return !(c->query.flags & WIRE_ORDERED);
}

static void
make_runs(WireRun *runs, uint32_t *nruns)
{
	for (int range = 0; range < TABLE_RANGES; range++)
	{
		int			stamp = between(1, RANGE_STAMPS);
		uint32_t	nrows = range_rows(range, stamp);
		uint32_t	first = chance(0.6) ? 0 : random_below(nrows);

		if (chance(0.3) && (range < TABLE_RANGES - 1 || *nruns > 0))
			continue;
		runs[(*nruns)++] = (WireRun) {stamp, range, first, chance(0.6) ? nrows - first : 1 + random_below(nrows - first), 0};
	}
}

static size_t
make_resident(Connection *c, WireResident *in)
{
	WireRun		runs[TABLE_RANGES];
	uint64_t	set;

	memset(in, 0, sizeof(*in));
	in->table.id = 1 + random_below(TABLES);
	in->buffer = random_below(WIRE_BUFFERS);
	in->nstored = between(0, 4);
	in->ncols = c->query.ncols;
	for (uint32_t i = 0; i < in->nstored; i++)
		in->stored[i] = table_column(i);
	make_program(&in->program, in->nstored);
	vector_program_valid(&in->program, (int) in->nstored, WIRE_TYPES, &set);
	for (uint32_t i = 0; i < in->ncols; i++)
	{
		in->types[i] = c->types[i] == WIRE_I128 || c->types[i] >= WIRE_MAT2 ? WIRE_I64 : c->types[i];
		do
			in->cols[i] = pick_operand(&in->program);
		while (!vector_operand_valid(&in->program, set, in->cols[i]));
		if (!has_no_nulls(&c->query, (int) i) && chance(0.7))
			in->nullable |= (uint64_t) 1 << i;
	}
	for (int k = 0; k < c->query.nkeys; k++)
		in->key_max[k] = between(-1, 100);
	make_runs(runs, &in->nruns);
	if (c->arena)
		memcpy(c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES, runs, in->nruns * sizeof(WireRun));
	return sizeof(*in);
}

#endif							/* GPUAGG_FUZZ_GENERATE_RESIDENT_H */

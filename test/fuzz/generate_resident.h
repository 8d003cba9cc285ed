/*
 * generate_resident.h
 *	  Makes random messages about stored columns, and queries over them, for attack.c.
 *
 * The number of rows of a range depends only on its number and stamp. So a connection can use
 * ranges that another one has stored. What the server answers about a dictionary is remembered for
 * all connections.
 */
#ifndef GPUAGG_FUZZ_GENERATE_RESIDENT_H
#define GPUAGG_FUZZ_GENERATE_RESIDENT_H

#include "generate.h"
#include "protocol_status.h"

#define TABLES 3
#define TABLE_COLUMNS 8
#define TABLE_RANGES 5
#define RANGE_STAMPS 3

/* Returns the number of rows that a range of a table has at this stamp. */
static uint32_t
range_rows(int range, int stamp)
{
	return 1 + (uint32_t) (range * 1237 + stamp * 7919) % 3000;
}

/* Returns the key of a table's column. */
static WireColumnKey
table_column(int col)
{
	static const uint32_t types[] = {WIRE_I8, WIRE_I16, WIRE_I32, WIRE_I64, WIRE_F32, WIRE_F64};

	return (WireColumnKey){
		.typid = 20, .typmod = -1, .attno = col + 1, .scale = -1, .type = types[col % 6]};
}

/* Returns the key of the same column, stored as codes of a dictionary. */
static WireColumnKey
coded_column(int col)
{
	WireColumnKey key = table_column(col);

	key.typid = 25;
	key.type = WIRE_I32;
	key.coded = 1;
	return key;
}

/* What is known of dictionaries, by table and column. */
static WireKnown known_dictionaries[TABLES][TABLE_COLUMNS];

/* Returns what is known of the dictionary of a table's coded column. */
static WireKnown *
known_dictionary(uint64_t table, const WireColumnKey *column)
{
	return &known_dictionaries[(table - 1) % TABLES][(column->attno - 1) % TABLE_COLUMNS];
}

/* Remembers an answer to DICTIONARY. It may be for an earlier message than the last one. */
static void
note_entries(const Connection *c, const WireEntries *out)
{
	if (c->asked.table.id > 0 && c->asked.column.attno > 0)
		*known_dictionary(c->asked.table.id, &c->asked.column) =
			(WireKnown){out->id, out->nentries};
}

/* Adds entries of a dictionary to a STORE message, and writes codes and entries to the arena. */
static void
make_entries(Connection *c, WireStore *in)
{
	char *buffer = c->arena ? c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES : NULL;
	uint32_t lengths[20];

	in->nentries = random_below(in->nrows < 20 ? in->nrows : 20);
	in->more = chance(0.4);
	if (c->stored.more && chance(0.9))
		in->before = c->stored.before + c->stored.nentries;
	else if (chance(0.02))
		in->before = random_below(20);
	in->entries = wire_align(2 * wire_align((size_t) in->nrows * sizeof(int32_t)));
	for (uint32_t i = 0; i < in->nentries; i++)
	{
		lengths[i] = between(0, 9);
		if (buffer)
			memset(buffer + in->entries + in->nentries * sizeof(uint32_t) + in->bytes,
				   'a' + between(0, 25), lengths[i]);
		in->bytes += lengths[i];
	}
	if (buffer == NULL)
		return;
	memcpy(buffer + in->entries, lengths, in->nentries * sizeof(uint32_t));
	for (uint32_t i = 0; i < in->nrows; i++)
		((uint32_t *) buffer)[i] = random_below(in->before + in->nentries + 1);
}

/* Makes a DICTIONARY message. Returns the length of the body. */
static size_t
make_dictionary(Connection *c, WireDictionary *in)
{
	*in = (WireDictionary){.table = {1 + random_below(TABLES)},
						   .column = coded_column(between(0, TABLE_COLUMNS - 1)),
						   .buffer = random_below(WIRE_BUFFERS),
						   .most = random_below(40)};
	if (c->stored.column.coded && (c->steps_of_texts > 0 || chance(0.5)))
	{
		in->table = c->stored.table;
		in->column = c->stored.column;
	}
	in->id =
		chance(0.7) ? known_dictionary(in->table.id, &in->column)->id : (uint64_t) random_below(4);
	in->nentries = random_below(30);
	c->asked = *in;
	return sizeof(*in);
}

/* Makes a VALUES message, and writes its codes to the arena. Returns the length of the body. */
static size_t
make_values(Connection *c, WireValues *in)
{
	*in = (WireValues){.stored = chance(0.7) ? 0 : random_below(4),
					   .n = 1 + random_below(50),
					   .buffer = random_below(WIRE_BUFFERS)};
	for (uint32_t i = 0; c->arena && i < in->n; i++)
		((uint32_t *) (c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES))[i] =
			chance(0.9) ? random_below(30) : (uint32_t) random_u64();
	return sizeof(*in);
}

/* Makes a LIST message. Returns the length of the body. */
static size_t
make_list(WireList *in)
{
	*in = (WireList){.after = random_below(TABLES + 1), .device = random_below(2)};
	return sizeof(*in);
}

/* Returns a random key or state of the query's groups, for a limit. */
static WireValue
make_value(const WireQuery *q)
{
	WireValue value = {.slot = -1, .counted = -1};
	int s = q->nslots > 0 ? between(-1, q->nslots - 1) : -1;

	if (s >= 0 && (!wire_limit_takes(q->slots[s].monoid) || q->slots[s].bin_kind != WIRE_BIN_NONE))
		s = -1;
	if (s < 0 && q->nkeys > 0)
		value.key = random_below(q->nkeys);
	value.slot = s;
	for (int n = 0; s >= 0 && n < q->nslots; n++)
		if (q->slots[n].monoid == MONOID_COUNT && q->slots[n].bin_kind == WIRE_BIN_NONE &&
			chance(0.5))
			value.counted = n;
	value.mean = value.counted >= 0 && q->slots[s].monoid == MONOID_SUM_F64 && chance(0.5);
	return value;
}

/* Makes a random limit, or none. */
static void
make_limit(const Connection *c, WireLimit *in)
{
	if (c->query.nkeys == 0 || chance(0.4))
		return;
	*in = (WireLimit){.count = chance(0.2) ? 0 : 1 + random_below(50),
					  .nsort = between(1, WIRE_MAX_SORT),
					  .ties = random_below(2),
					  .nconditions = between(0, WIRE_MAX_CONDITIONS)};
	for (uint32_t i = 0; i < in->nsort; i++)
		in->by[i] = (WireSort){make_value(&c->query), random_below(2), random_below(2)};
	for (uint32_t i = 0; i < in->nconditions; i++)
		in->conditions[i] =
			(WireCondition){make_value(&c->query), chance(0.5) ? INT64_MIN : between(-50, 50),
							chance(0.5) ? INT64_MAX : between(0, 1000)};
}

/* Makes the body of FINISH, which may be empty. Returns its length. */
static size_t
make_finish(const Connection *c, WireFinish *in)
{
	if (chance(0.2))
		return 0;
	*in = (WireFinish){.if_taken = chance(0.1),
					   .first = chance(0.5) ? 0 : 1 + random_below(5000),
					   .ranks = chance(0.5)};
	make_limit(c, &in->limit);
	return sizeof(*in);
}

/* Makes a STORE message, and writes its column to the arena. Returns the length of the body. */
static size_t
make_store(Connection *c, WireStore *in)
{
	int range = between(0, TABLE_RANGES - 1);
	int stamp = between(1, RANGE_STAMPS);
	int width;

	*in = (WireStore){
		.table = {1 + random_below(TABLES)},
		.stamp = stamp,
		.range = range,
		.nrows = range_rows(range, stamp),
		.column = table_column(between(0, TABLE_COLUMNS - 1)),
		.buffer = random_below(WIRE_BUFFERS),
		.validity = WIRE_NO_ARRAY,
	};
	if (chance(0.3))
		in->column = coded_column(between(0, TABLE_COLUMNS - 1));
	if (c->stored.more && chance(0.8))
	{
		in->table = c->stored.table;
		in->stamp = c->stored.stamp;
		in->range = c->stored.range;
		in->nrows = c->stored.nrows;
		in->column = c->stored.column;
	}
	width = wire_width(in->column.type);
	if (in->column.coded)
		make_entries(c, in);
	else if (c->arena)
		fill_values(c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES, in->column.type, in->nrows);
	if (chance(0.4))
	{
		in->validity = wire_align((size_t) in->nrows * width);
		if (c->arena)
			memset(c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES + in->validity,
				   between(0, 255), wire_bitmap_bytes(in->nrows));
	}
	c->stored = *in;
	return sizeof(*in);
}

/* Returns a random register or constant. */
static int
pick_operand(const VectorProgram *p)
{
	return p->nconstants > 0 && chance(0.3) ? VECTOR_CONSTANT + between(0, p->nconstants - 1) :
											  between(0, VECTOR_MAX_REGISTERS - 1);
}

/* Makes a program of random instructions. Instructions that would make it invalid are omitted. */
static void
make_program(WireResident *in)
{
	VectorProgram *p = &in->program;
	const uint32_t nstored = in->nstored;
	const uint32_t ntables = in->ntables;
	uint64_t set;

	p->nregisters = VECTOR_MAX_REGISTERS;
	p->filter = VECTOR_NONE;
	p->nconstants = between(1, 8);
	for (uint32_t i = 0; i < p->nconstants; i++)
		p->constants[i] = (VectorConstant){chance(0.5) ? between(-20, 20) : (int64_t) random_u64(),
										   random_below(3), 0};
	for (uint32_t i = 0; i < nstored; i++)
		p->instructions[p->ninstructions++] = (VectorInstruction){
			VECTOR_LOAD, between(0, VECTOR_MAX_REGISTERS - 1), i, 0, 0, in->stored[i].type};
	for (int i = chance(0.3) ? 0 : between(1, 300);
		 i > 0 && p->ninstructions < VECTOR_MAX_INSTRUCTIONS; i--)
	{
		p->instructions[p->ninstructions] =
			(VectorInstruction){between(1, VECTOR_OPS - 1),
								between(0, VECTOR_MAX_REGISTERS - 1),
								pick_operand(p),
								pick_operand(p),
								chance(0.3) ? between(0, 4) : pick_operand(p),
								chance(0.5) ? between(0, 31) : random_below(65536)};
		/* lookups use existing tables, mostly of the right kind */
		if (vector_reads_table(p->instructions[p->ninstructions].op))
		{
			uint32_t table = random_below(ntables + 1);

			if (table == ntables)
				continue;
			p->instructions[p->ninstructions].data = table;
			if (!chance(0.02))
				p->instructions[p->ninstructions].op =
					vector_has_slots(in->tables[table].form) ? VECTOR_FIND : VECTOR_LOOKUP;
		}
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

/*
 * Returns whether the query's column must not be NULL, as a key that is not nullable, or as a
 * filter.
 */
static bool
must_not_be_null(const WireQuery *q, int col)
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

/* Returns whether a program can compute all columns of the query. */
static bool
can_use_programs(const Connection *c)
{
	for (int i = 0; i < c->query.ncols; i++)
		if (c->types[i] >= WIRE_MAT2)
			return false;
	return !(c->query.flags & WIRE_ORDERED);
}

/*
 * Adds spans of two ranges each, with all their rows. A span has a list of row ranges, or only its
 * id, which stands for the list: ids are computed from the ranges' stamps. Sets *first_range to the
 * first range that is in no span.
 */
static void
make_spans(WireResident *in, WireRowRange *row_ranges, int *first_range)
{
	WireSpan *spans = (WireSpan *) (in + 1);

	*first_range = 0;
	while (*first_range + 2 <= TABLE_RANGES && chance(0.3))
	{
		WireSpan *span = &spans[in->nspans++];
		int stamps[2] = {between(1, RANGE_STAMPS), between(1, RANGE_STAMPS)};

		*span = (WireSpan){.id = 1 + (*first_range * RANGE_STAMPS + stamps[0]) * 10 + stamps[1] +
							   1000 * in->table.id,
						   .first = *first_range,
						   .nranges = 2,
						   .row_range = WIRE_NO_ARRAY};
		for (int r = 0; r < 2; r++)
			span->nrows += range_rows(*first_range + r, stamps[r]);
		if (chance(0.6))
		{
			span->row_range = in->nrow_ranges;
			span->nrow_ranges = 2;
			for (int r = 0; r < 2; r++)
				row_ranges[in->nrow_ranges++] = (WireRowRange){
					stamps[r], *first_range + r, 0, range_rows(*first_range + r, stamps[r]), 0};
		}
		*first_range += 2;
	}
}

/*
 * Adds tables for VECTOR_LOOKUP. Some of their cells follow the row ranges in the arena; some have
 * names, of which there are so few that tables of other layouts have the same ones.
 */
static void
make_tables(Connection *c, WireResident *in)
{
	char *buffer = c->arena ? c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES : NULL;

	for (int t = chance(0.5) ? 0 : between(1, 3); t > 0; t--)
	{
		static const uint16_t forms[] = {
			VECTOR_CELLS_BITS, 1, 2, 4, VECTOR_CELLS_WIDE, VECTOR_SLOTS_NARROW, VECTOR_SLOTS_WIDE};
		VectorTable table = {.base = between(-3, 3),
							 .least = between(-3, 100),
							 .first = in->cell_bytes / 8,
							 .n = random_below(20),
							 .form = forms[random_below(7)],
							 .others = chance(0.5)};
		bool named = chance(0.5);

		if (named)
		{
			in->names[in->ntables].part[0] = 1 + random_below(5);
			if (chance(0.7))
				table.n = in->names[in->ntables].part[0];
		}
		if (!named || chance(0.5))
		{
			in->sent |= UINT32_C(1) << in->ntables;
			in->cell_bytes += vector_table_bytes(&table);
		}
		in->tables[in->ntables++] = table;
	}
	/* states of cells are at most 2 */
	for (uint32_t i = 0; buffer && i < in->cell_bytes; i++)
		buffer[wire_cells_at(in) + i] = random_below(3);
}

/* Adds random row ranges of the ranges from `from` on. */
static void
make_row_ranges(WireRowRange *row_ranges, uint32_t *nrow_ranges, int from)
{
	for (int range = from; range < TABLE_RANGES; range++)
	{
		int stamp = between(1, RANGE_STAMPS);
		uint32_t nrows = range_rows(range, stamp);
		uint32_t first = chance(0.6) ? 0 : random_below(nrows);

		if (chance(0.3) && (range < TABLE_RANGES - 1 || *nrow_ranges > 0))
			continue;
		row_ranges[(*nrow_ranges)++] = (WireRowRange){
			stamp, range, first, chance(0.6) ? nrows - first : 1 + random_below(nrows - first), 0};
	}
}

/* Makes a RESIDENT message for the connection's query. Returns the length of the body. */
static size_t
make_resident(Connection *c, WireResident *in)
{
	WireRowRange row_ranges[TABLE_RANGES];
	uint64_t set;
	int from;

	memset(in, 0, sizeof(*in));
	in->table.id = 1 + random_below(TABLES);
	in->buffer = random_below(WIRE_BUFFERS);
	in->nstored = between(0, 4);
	in->ncols = c->query.ncols < WIRE_MAX_RESIDENT_COLS ? c->query.ncols : WIRE_MAX_RESIDENT_COLS;
	for (uint32_t i = 0; i < in->nstored; i++)
	{
		in->stored[i] = chance(0.2) ? coded_column(i) : table_column(i);
		if (in->stored[i].coded)
			in->known[i] = chance(0.8) ? *known_dictionary(in->table.id, &in->stored[i]) :
										 (WireKnown){1 + random_below(4), random_below(30)};
	}
	if (c->steps_of_texts > 0)
	{
		in->table = c->stored.table;
		in->nstored = 1;
		in->stored[0] = c->stored.column;
		in->known[0] = *known_dictionary(in->table.id, &in->stored[0]);
		row_ranges[in->nrow_ranges++] =
			(WireRowRange){c->stored.stamp, c->stored.range, 0, c->stored.nrows, 0};
	}
	else
	{
		make_spans(in, row_ranges, &from);
		make_row_ranges(row_ranges, &in->nrow_ranges, from);
	}
	if (c->arena)
		memcpy(c->arena + (size_t) in->buffer * WIRE_BUFFER_BYTES, row_ranges,
			   in->nrow_ranges * sizeof(WireRowRange));
	make_tables(c, in);
	make_program(in);
	vector_program_valid(&in->program, (int) in->nstored, WIRE_TYPES, &set);
	for (uint32_t i = 0; i < in->ncols; i++)
	{
		in->types[i] =
			c->types[i] == WIRE_I128 || c->types[i] >= WIRE_MAT2 ? WIRE_I64 : c->types[i];
		do
			in->cols[i] = pick_operand(&in->program);
		while (!vector_operand_valid(&in->program, set, in->cols[i]));
		if (!must_not_be_null(&c->query, (int) i) && chance(0.7))
			in->nullable |= (uint64_t) 1 << i;
	}
	for (int k = 0; k < c->query.nkeys; k++)
		in->key_max[k] = between(-1, 100);
	return sizeof(*in) + in->nspans * sizeof(WireSpan);
}

#endif /* GPUAGG_FUZZ_GENERATE_RESIDENT_H */

/*
 * check_test.c
 *	  Tests the validation of messages by the GPU server (server/check.c).
 *
 * Each case starts from a valid message and makes one change, after which the check must fail. The
 * macros QUERY, BATCH and STORED run one case and print its source text. The test includes the
 * source file.
 */
#include "unit.h"

#include "server/check.c"

#define BUFFER (1 << 20)

static WireQuery query;
static WireBatch batch;

/*
 * Makes a valid query and batch: SELECT k, count(*), sum(v), histogram(x, 0, 1, 8) with an int4 key
 * k.
 */
static void
make_valid(void)
{
	memset(&query, 0, sizeof(query));
	query.ncols = 3;
	query.nkeys = 1;
	query.key_bytes = 8;
	query.null_offset = 4;
	query.keys[0] = (WireKey){.col = 0, .width = 4, .nullable = 1};
	query.nslots = 3;
	query.slots[0] = (WireSlot){.monoid = MONOID_COUNT, .col = {-1, -1}, .filter = -1, .width = 1};
	query.slots[1] = (WireSlot){.monoid = MONOID_SUM_I64, .col = {1, -1}, .filter = -1, .width = 1};
	query.slots[2] = (WireSlot){.monoid = MONOID_COUNT,
								.col = {2, -1},
								.filter = -1,
								.bin_kind = WIRE_BIN_UNIFORM,
								.bin_n = 8,
								.width = 10,
								.lo = 0,
								.hi = 1};
	memset(&batch, 0, sizeof(batch));
	batch.nrows = 1000;
	batch.bytes = 64 << 10;
	batch.ncols = 3;
	batch.cols[0] = (WireColumn){WIRE_I32, 0, WIRE_NO_ARRAY};
	batch.cols[1] = (WireColumn){WIRE_I64, 8 << 10, WIRE_NO_ARRAY};
	batch.cols[2] = (WireColumn){WIRE_F64, 24 << 10, 40 << 10};
}

static WireStore store;
static WireResident resident;
static WireRowRange row_ranges[2];
static WireSpan spans[2];

/* Makes the same query over stored columns k, v + 1 and x, with WHERE v < 7. */
static void
make_stored(void)
{
	static const uint32_t types[] = {WIRE_I32, WIRE_I64, WIRE_F64};
	VectorProgram *p = &resident.program;

	make_valid();
	memset(&store, 0, sizeof(store));
	store.nrows = 1000;
	store.column.type = WIRE_I64;
	store.values = 64;
	store.validity = 8192;
	memset(&resident, 0, sizeof(resident));
	resident.nrow_ranges = 2;
	resident.nstored = resident.ncols = 3;
	resident.nullable = 7;
	for (int i = 0; i < 3; i++)
	{
		resident.stored[i].type = resident.types[i] = types[i];
		resident.cols[i] = i;
		p->instructions[i] = (VectorInstruction){VECTOR_LOAD, i, i, 0, 0, types[i]};
	}
	p->instructions[3] = (VectorInstruction){VECTOR_F_INT8LT, 3, 1, VECTOR_CONSTANT, 0, 0};
	p->instructions[4] = (VectorInstruction){VECTOR_F_INT8PL, 1, 1, VECTOR_CONSTANT + 1, 0, 0};
	p->ninstructions = 5;
	p->nregisters = 4;
	p->nconstants = 2;
	p->filter = 3;
	row_ranges[0] = (WireRowRange){5, 1, 0, 100, 0};
	row_ranges[1] = (WireRowRange){5, 1, 100, 50, 0};
}

/* Adds two spans, each with one of the row ranges. */
static void
add_spans(void)
{
	resident.nspans = 2;
	row_ranges[0] = (WireRowRange){5, 1, 0, 100, 0};
	row_ranges[1] = (WireRowRange){6, 2, 0, 50, 0};
	spans[0] = (WireSpan){9, 100, 0, 2, 0, 1};
	spans[1] = (WireSpan){10, 1000, 3, 128, WIRE_NO_ARRAY, 0};
}

static const char *
stored_error(void)
{
	const char *wrong = check_store(&store, sizeof(store), BUFFER, 4);

	if (wrong == NULL)
		wrong = check_resident(&resident, &query,
							   sizeof(resident) + resident.nspans * sizeof(WireSpan), BUFFER, 4);
	return wrong ? wrong : check_row_ranges(row_ranges, 2, spans, resident.nspans);
}

/* Checks a VALUES message. */
static const char *
values_error(uint32_t stored, uint32_t n, uint32_t number, size_t length)
{
	WireValues values = {.stored = stored, .n = n, .buffer = number};

	return check_values(&values, length, WIRE_BUFFER_BYTES, 4);
}

static const char *
query_error(void)
{
	return check_query(&query, sizeof(query));
}

static const char *
batch_error(void)
{
	return check_batch(&batch, &query, sizeof(batch), BUFFER, 4);
}

/* Makes one change to a valid message, and checks that it is rejected. */
#define QUERY(change) \
	do \
	{ \
		make_valid(); \
		change; \
		CHECK(query_error() != NULL, "accepted: %s", #change); \
	} while (0)
#define BATCH(change) \
	do \
	{ \
		make_valid(); \
		change; \
		CHECK(batch_error() != NULL, "accepted: %s", #change); \
	} while (0)

#define STORED(change) \
	do \
	{ \
		make_stored(); \
		change; \
		CHECK(stored_error() != NULL, "accepted: %s", #change); \
	} while (0)

static void
valid_messages(void)
{
	make_stored();
	CHECK(stored_error() == NULL, "stored: %s", stored_error());
	add_spans();
	CHECK(stored_error() == NULL, "spans: %s", stored_error());
	CHECK(values_error(0, 1, 3, sizeof(WireValues)) == NULL &&
			  values_error(WIRE_MAX_STORED_COLS - 1, 1000000, 0, sizeof(WireValues)) == NULL,
		  "values");
	CHECK(values_error(WIRE_MAX_STORED_COLS, 1, 0, sizeof(WireValues)) &&
			  values_error(0, 0, 0, sizeof(WireValues)) &&
			  values_error(0, UINT32_MAX, 0, sizeof(WireValues)) &&
			  values_error(0, WIRE_BUFFER_BYTES / 8, 0, sizeof(WireValues)) &&
			  values_error(0, 1, 4, sizeof(WireValues)) && values_error(0, 1, 0, 4),
		  "invalid values are accepted");
	make_valid();
	CHECK(query_error() == NULL, "query: %s", query_error());
	CHECK(batch_error() == NULL, "batch: %s", batch_error());
	query.slots[2] = (WireSlot){.monoid = MONOID_HLL_MAX,
								.col = {1, -1},
								.filter = -1,
								.bin_kind = WIRE_BIN_HLL,
								.bin_n = GPUAGG_HLL_REGISTERS,
								.width = GPUAGG_HLL_REGISTERS};
	CHECK(query_error() == NULL, "sketch: %s", query_error());
	query.slots[2] = (WireSlot){.monoid = MONOID_REGR_F64, .col = {1, 2}, .filter = -1, .width = 1};
	CHECK(query_error() == NULL, "two columns: %s", query_error());
}

/* Makes slot 1 an aggregate of the distinct values of its column. */
static void
add_set(void)
{
	query.nsets = 1;
	query.sets[0] = (WireSet){1, -1, -1, 0, 0};
	query.slots[1].input = WIRE_DISTINCT;
}

static void
wrong_queries(void)
{
	CHECK(check_query(&query, sizeof(query) - 1) != NULL, "a short query is rejected");
	CHECK(check_query(&query, sizeof(query) + 8) != NULL, "a long query is rejected");
	QUERY(query.ncols = WIRE_MAX_COLS + 1);
	QUERY(query.nkeys = WIRE_MAX_KEYS + 1);
	QUERY(query.nslots = WIRE_MAX_SLOTS + 1);
	QUERY(query.nthresholds = 1);
	QUERY(query.nthresholds = UINT32_MAX);
	QUERY(query.est_rows = -1);
	QUERY(query.est_groups = 0.0 / 0.0);
	QUERY(query.key_bytes = 5);
	QUERY(query.key_bytes = 4);
	QUERY(query.null_offset = 3);
	QUERY(query.null_offset = 9);
	QUERY(query.keys[0].col = 3);
	QUERY(query.keys[0].col = -1);
	QUERY(query.keys[0].width = 3);
	QUERY(query.keys[0].offset = 1);
	QUERY(query.norder = WIRE_MAX_ORDER + 1);
	QUERY(query.norder = 1; query.order[0].col = 3);
	QUERY(query.slots[1].monoid = MONOID_COUNT_OF_IDS);
	QUERY(query.slots[1].monoid = -1);
	QUERY(query.slots[1].col[0] = 3);
	QUERY(query.slots[1].col[0] = -1);
	QUERY(query.slots[1].col[1] = -2);
	QUERY(query.slots[1].filter = 3);
	QUERY(query.slots[1].bin_kind = WIRE_BIN_KINDS);
	QUERY(query.slots[1].width = 2);
	QUERY(query.slots[1].monoid = MONOID_REGR_F64);
	QUERY(query.slots[1].monoid = MONOID_MAXSUB_I64);
	QUERY(query.slots[2].col[0] = -1);
	QUERY(query.slots[2].width = 9);
	QUERY(query.slots[2].width = 0);
	QUERY(query.slots[2].hi = query.slots[2].lo);
	QUERY(query.slots[2].lo = 0.0 / 0.0);
	QUERY(query.slots[2].hi = 1.0 / 0.0);
	QUERY(query.slots[2].lo = -1e308; query.slots[2].hi = 1e308);
	QUERY(query.slots[2].formula = GPUAGG_BIN_FORMULAS);
	QUERY(query.slots[2].formula = UINT32_MAX);
	QUERY(query.slots[2].bin_n = 0; query.slots[2].width = 2);
	QUERY(query.slots[2].monoid = MONOID_SUM_F64);
	QUERY(query.slots[2].monoid = MONOID_REGR_F64; query.slots[2].col[1] = 1);
	QUERY(query.slots[2].bin_kind = WIRE_BIN_THRESHOLDS);
	QUERY(query.slots[2].bin_kind = WIRE_BIN_THRESHOLDS; query.slots[2].width = 9);
	QUERY(query.slots[2].bin_kind = WIRE_BIN_HLL);
	QUERY(query.slots[2].bin_kind = WIRE_BIN_HLL; query.slots[2].monoid = MONOID_HLL_MAX;
		  query.slots[2].width = 1);
	QUERY(query.slots[1].monoid = MONOID_HLL_MAX);
	QUERY(query.slots[2].monoid = MONOID_HLL_MAX; query.slots[2].col[1] = 1);
	QUERY(query.slots[2].bin_n = INT32_MAX);
	QUERY(query.slots[2].lo = 0.0 / 0.0);
	QUERY(query.nsets = WIRE_MAX_SETS + 1);
	QUERY(query.nsets = 1; query.sets[0].col = 3);
	QUERY(query.nsets = 1; query.sets[0].col = -1);
	QUERY(query.nsets = 1; query.sets[0].filter = 3);
	QUERY(query.nsets = 1; query.sets[0].filter = -2);
	QUERY(query.nsets = 1; query.sets[0].beside = 3);
	QUERY(query.nsets = 1; query.sets[0].beside = -2);
	QUERY(query.nsets = 1; query.sets[0].counted = 2);
	QUERY(query.nsets = 1; query.sets[0].counted = 1; query.sets[0].beside = 1);
	QUERY(add_set(); query.sets[0].counted = 1; query.slots[1].col[0] = -1;
		  query.slots[1].monoid = MONOID_COUNT; query.slots[1].input = WIRE_MODE);
	QUERY(query.slots[0].input = WIRE_SLOT_INPUTS);
	QUERY(query.slots[0].input = WIRE_DISTINCT);
	QUERY(add_set(); query.slots[1].set = 1);
	QUERY(add_set(); query.slots[1].filter = 0);
	QUERY(add_set(); query.slots[1].col[0] = 0);
	QUERY(add_set(); query.slots[1].col[1] = 1);
	QUERY(add_set(); query.slots[1].input = WIRE_FIRST);
	QUERY(add_set(); query.slots[1].input = WIRE_MODE_LAST);
	QUERY(add_set(); query.slots[1].monoid = MONOID_MAXSUB_I64; query.flags = WIRE_ORDERED);
	QUERY(add_set(); query.slots[2].input = WIRE_DISTINCT);
	QUERY(query.slots[2].hi = 1.0 / 0.0);
	QUERY(query.slots[2].lo = query.slots[2].hi);
	QUERY(query.slots[2].bin_n = 1 << 25; query.slots[2].width = (1 << 25) + 2);
}

static void
picks(void)
{
	WireQuery q = {.nsets = 2, .sets = {{.beside = -1}, {.beside = -1}}};
	WirePick pick = {.set = 1, .n = 100, .buffer = 3};
	const WirePick wrong[] = {{.set = 2, .n = 100},
							  {.n = 0},
							  {.n = 100, .buffer = 4},
							  {.n = UINT32_MAX},
							  {.n = BUFFER / sizeof(int64_t)},
							  {.n = BUFFER / 12}};

	CHECK(check_pick(&pick, &q, sizeof(pick), BUFFER, 4) == NULL, "a valid pick is accepted");
	CHECK(check_pick(&pick, &q, sizeof(pick) - 1, BUFFER, 4) != NULL,
		  "a short message is rejected");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(check_pick(&wrong[i], &q, sizeof(pick), BUFFER, 4) != NULL,
			  "wrong pick %d is rejected", (int) i);

	/* values beside others take as much room again */
	pick.n = BUFFER / 13;
	CHECK(check_pick(&pick, &q, sizeof(pick), BUFFER, 4) == NULL, "a large pick is accepted");
	q.sets[1].beside = 0;
	CHECK(check_pick(&pick, &q, sizeof(pick), BUFFER, 4) != NULL,
		  "a pick of too many pairs is rejected");
	pick.n = BUFFER / 25;
	CHECK(check_pick(&pick, &q, sizeof(pick), BUFFER, 4) == NULL, "a pick of pairs is accepted");

	/* values with their counts take 4 bytes more than without */
	q.sets[1] = (WireSet){.beside = -1, .counted = 1};
	pick.n = BUFFER / 13;
	CHECK(check_pick(&pick, &q, sizeof(pick), BUFFER, 4) != NULL,
		  "a pick of too many counted values is rejected");
	pick.n = BUFFER / 17;
	CHECK(check_pick(&pick, &q, sizeof(pick), BUFFER, 4) == NULL,
		  "a pick of counted values is accepted");
}

static void
wrong_batches(void)
{
	BATCH(query.nsets = 1; query.sets[0].col = 2);
	BATCH(query.nsets = 1; query.sets[0].col = 1; batch.cols[1].values = WIRE_NO_ARRAY;
		  query.slots[1].monoid = MONOID_COUNT);
	BATCH(query.nsets = 1; query.sets[0] = ((WireSet){1, 2, -1, 0, 0}));
	BATCH(query.nsets = 1; query.sets[0] = ((WireSet){1, -1, 2, 0, 0}));
	BATCH(batch.buffer = 4);
	BATCH(batch.bytes = BUFFER + 1);
	BATCH(batch.ncols = 2);
	BATCH(batch.nrows = 0);
	BATCH(batch.nrows = 100000);
	BATCH(batch.nrows = UINT32_MAX);
	BATCH(batch.cols[1].type = WIRE_TYPES);
	BATCH(batch.cols[1].values = 60 << 10);
	BATCH(batch.cols[1].values = 1);
	BATCH(batch.cols[1].values = UINT32_MAX - 7);
	BATCH(batch.cols[1].values = WIRE_NO_ARRAY);
	BATCH(batch.cols[2].validity = batch.bytes);
	BATCH(batch.cols[2].validity = 3);
	BATCH(batch.cols[0].type = WIRE_I64);
	BATCH(batch.cols[0].values = WIRE_NO_ARRAY);
	BATCH(query.keys[0].nullable = 0; batch.cols[0].validity = 40 << 10);
	BATCH(query.slots[1].filter = 1);
	BATCH(query.norder = 1; query.order[0].col = 2);
	BATCH(batch.cols[1].type = WIRE_MAT2; batch.nrows = 10);
	BATCH(batch.cols[0].type = WIRE_F32);
	BATCH(batch.cols[2].type = WIRE_I128; batch.nrows = 10);
	BATCH(query.flags = WIRE_ORDERED; query.slots[1].monoid = MONOID_MAXSUB_I64;
		  batch.cols[1].type = WIRE_F32);
	BATCH(query.flags = WIRE_ORDERED; query.slots[1].monoid = MONOID_MAXSUB_F64;
		  batch.cols[1].type = WIRE_I128; batch.nrows = 10);
}

static void
wrong_tables(void)
{
	STORED(resident.ntables = WIRE_MAX_TABLES + 1);
	STORED(resident.cell_bytes = BUFFER);
	STORED(resident.cell_bytes = 4);
	STORED(
		(resident.ntables = resident.sent = 1, resident.cell_bytes = 8, resident.tables[0].n = 64));
	STORED((resident.ntables = resident.sent = 1, resident.cell_bytes = 8,
			resident.tables[0].form = 1, resident.tables[0].n = 8));
	STORED((resident.ntables = resident.sent = 1, resident.cell_bytes = 16,
			resident.tables[0].form = 2, resident.tables[0].n = 8));
	STORED((resident.ntables = resident.sent = 1, resident.cell_bytes = 16,
			resident.tables[0].form = 8, resident.tables[0].n = 1));
	STORED((resident.ntables = resident.sent = 1, resident.cell_bytes = 64,
			resident.tables[0].form = 3));
	STORED((resident.ntables = resident.sent = 1, resident.cell_bytes = 8,
			resident.tables[0].first = 1));
	STORED((resident.ntables = resident.sent = 1, resident.cell_bytes = 0));
	/* cells that are neither sent nor named, and sent cells of no table */
	STORED(resident.ntables = 1);
	STORED((resident.ntables = 1, resident.sent = 2));
	STORED(resident.sent = 1);
	STORED((resident.ntables = 1, resident.names[0].part[1] = 1, resident.tables[0].form = 3));
	make_stored();
	resident.ntables = 1;
	resident.names[0].part[1] = 1;
	/* `first` means nothing then */
	resident.tables[0] = (VectorTable){.n = UINT32_MAX, .first = UINT32_MAX, .form = 4};
	CHECK(stored_error() == NULL, "cells that have a name need not be sent: %s", stored_error());
}

static void
wrong_stored(void)
{
	STORED(store.buffer = 4);
	STORED(store.nrows = 0);
	STORED(store.nrows = UINT32_MAX);
	STORED(store.nrows = 200000);
	STORED(store.column.type = WIRE_I128);
	STORED(store.column.type = WIRE_TYPES);
	STORED(store.values = 63);
	STORED(store.values = WIRE_NO_ARRAY);
	STORED(store.values = BUFFER - 64);
	STORED(store.validity = BUFFER - 64);
	STORED(store.validity = 1);
	STORED(resident.buffer = 4);
	STORED(resident.nrow_ranges = 0);
	STORED(resident.nspans = WIRE_MAX_SPANS + 1);
	STORED(resident.nspans = UINT32_MAX);
	STORED(add_spans(); spans[0].nrows = 99);
	STORED(add_spans(); spans[0].row_range = 2);
	STORED(add_spans(); spans[0].nrow_ranges = 3);
	STORED(add_spans(); spans[0].nrow_ranges = UINT32_MAX);
	STORED(add_spans(); spans[0].nrow_ranges = 0);
	STORED(add_spans(); spans[0].nranges = 1);
	STORED(add_spans(); spans[0].nranges = 0);
	STORED(add_spans(); spans[0].first = 2);
	STORED(add_spans(); spans[0].nranges = 4);
	STORED(add_spans(); row_ranges[0].first = 1; row_ranges[0].nrows = 99);
	STORED(add_spans(); spans[1].nrows = 0);
	STORED(add_spans(); spans[1].nrows = UINT64_MAX);
	STORED(add_spans(); spans[1].first = 2);
	STORED(add_spans(); spans[1].first = 1);
	STORED(resident.nrow_ranges = BUFFER / sizeof(WireRowRange));
	STORED(resident.nrow_ranges = UINT32_MAX);
	STORED(resident.nstored = WIRE_MAX_STORED_COLS + 1);
	STORED(resident.nstored = 2);
	STORED(resident.ncols = 2);
	STORED(resident.stored[2].coded = 2);
	STORED((resident.stored[0].type = WIRE_I64, resident.stored[0].coded = 1));
	STORED(resident.program.instructions[4] = ((VectorInstruction){VECTOR_LOOKUP, 1, 1, 0, 0, 0}));
	/* slots are not cells, and cells no slots */
	for (int op = VECTOR_LOOKUP; op <= VECTOR_FIND; op++)
	{
		make_stored();
		resident.ntables = 1;
		resident.names[0].part[1] = 1;
		resident.tables[0].form = op == VECTOR_LOOKUP ? VECTOR_SLOTS_NARROW : 1;
		resident.program.instructions[4] = (VectorInstruction){op, 1, 1, 0, 0, 0};
		CHECK(stored_error() != NULL, "a table of another kind is rejected");
		resident.program.instructions[4].op = op == VECTOR_LOOKUP ? VECTOR_FIND : VECTOR_LOOKUP;
		CHECK(stored_error() == NULL, "a table of this kind: %s", stored_error());
	}
	STORED((store.column.type = WIRE_I32, store.column.coded = 1, store.nentries = 1001));
	STORED((store.column.type = WIRE_I32, store.column.coded = 1, store.nentries = 1,
			store.before = 1000));
	STORED((store.column.type = WIRE_I32, store.column.coded = 1, store.before = UINT32_MAX));
	STORED((store.column.type = WIRE_I32, store.column.coded = 1, store.more = 2));
	STORED((store.column.type = WIRE_I32, store.column.coded = 1, store.more = 1,
			store.entries = BUFFER - 64, store.bytes = 65));
	STORED(store.more = 1);
	STORED(store.before = 1);
	STORED((store.column.type = WIRE_I32, store.column.coded = 1, store.nentries = BUFFER / 4));
	STORED((store.column.type = WIRE_I32, store.column.coded = 1, store.bytes = UINT32_MAX));
	STORED((store.column.type = WIRE_I32, store.column.coded = 1, store.entries = 4));
	STORED((store.column.type = WIRE_I64, store.column.coded = 1));
	STORED(resident.stored[2].type = WIRE_MAT2);
	STORED(resident.stored[1].type = WIRE_I32);
	STORED(resident.types[1] = WIRE_I128);
	STORED(resident.types[0] = WIRE_I64);
	STORED(resident.types[2] = WIRE_TYPES);
	STORED(resident.cols[1] = 4);
	STORED(resident.cols[1] = VECTOR_MAX_REGISTERS);
	STORED(resident.cols[1] = VECTOR_CONSTANT + 2);
	STORED(resident.cols[1] = VECTOR_NONE);
	STORED(query.keys[0].nullable = 0);
	STORED(query.slots[1].filter = 1);
	STORED(row_ranges[0].nrows = 0);
	STORED(row_ranges[0].nrows = 101);
	STORED(row_ranges[1].first = UINT32_MAX);
	STORED(row_ranges[1].stamp = 6);
	STORED(row_ranges[0].range = 2);
	CHECK(check_resident(&resident, &query, sizeof(resident) - 1, BUFFER, 4) != NULL,
		  "a short message is rejected");
}

static void
wrong_programs(void)
{
	VectorProgram *p = &resident.program;

	STORED(p->nregisters = VECTOR_MAX_REGISTERS + 1);
	STORED(p->nregisters = 3);
	STORED(p->ninstructions = VECTOR_MAX_INSTRUCTIONS + 1);
	STORED(p->nconstants = VECTOR_MAX_CONSTANTS + 1);
	STORED(p->nconstants = 1);
	STORED(p->constants[1].state = 3);
	STORED(p->filter = 5);
	STORED(p->filter = VECTOR_CONSTANT + 2);
	STORED(p->instructions[3].op = VECTOR_OPS);
	STORED(p->instructions[3].a = 3);
	STORED(p->instructions[3].a = VECTOR_NONE);
	STORED(p->instructions[3].b = VECTOR_NONE);
	STORED(p->instructions[3].r = 24);
	STORED(p->instructions[0].a = 3);
	STORED(p->instructions[0].data = WIRE_I64);
	STORED(p->instructions[4] = ((VectorInstruction){VECTOR_IN, 1, 1, VECTOR_CONSTANT + 1, 2, 0}));
	STORED(p->instructions[4] = ((VectorInstruction){VECTOR_BUCKET, 1, 1, VECTOR_CONSTANT, 0, 0}));
	STORED(p->instructions[4] =
			   ((VectorInstruction){VECTOR_KEY_PART, 1, 1, VECTOR_CONSTANT, 0, 0}));
	STORED(p->instructions[4] = ((VectorInstruction){VECTOR_DEC_RESCALE, 1, 1, 0, 0, 19}));
	STORED(p->instructions[4] = ((VectorInstruction){VECTOR_DEC_ROUND, 1, 1, 0, 0, 19}));
	STORED(p->instructions[4] =
			   ((VectorInstruction){VECTOR_DEC_ROUND, 1, 1, 0, 0, 4 << VECTOR_ROUND_SHIFT}));
	STORED(p->instructions[4] = ((VectorInstruction){VECTOR_SELECT, 1, 1, 1, VECTOR_NONE, 0}));
}

static void
limits(void)
{
	static const WireLimit wrong[] = {
		{.nsort = 1, .by = {{{4, 0, -1, 0}}}, .count = 1},
		{.nsort = 1, .by = {{{1, 0, -1, 0}}}, .count = 1},
		{.nsort = 1, .by = {{{2, 0, -1, 0}}}, .count = 1},
		{.nsort = 1, .by = {{{-1, 1, -1, 0}}}, .count = 1},
		{.nsort = 1, .by = {{{-1, -1, -1, 0}}}, .count = 1},
		{.nsort = 1, .by = {{{-1, 0, 0, 0}}}, .count = 1},
		{.nsort = 1, .by = {{{-1, 0, -1, 1}}}, .count = 1},
		{.nsort = 1, .by = {{{3, 0, 4, 0}}}, .count = 1},
		{.nsort = 1, .by = {{{3, 0, 3, 0}}}, .count = 1},
		{.nsort = 1, .by = {{{3, 0, 2, 0}}}, .count = 1},
		{.nsort = 1, .by = {{{3, 0, -1, 1}}}, .count = 1},
		{.nsort = 1, .by = {{{3, 0, 0, 2}}}, .count = 1},
		{.nsort = 1, .by = {{{0, 0, 0, 1}}}, .count = 1},
		{.nconditions = WIRE_MAX_CONDITIONS + 1},
		{.count = 1},
		{.nsort = 1, .by = {{{0, 0, -1, 0}}}, .count = 1, .ties = 2},
		{.nsort = 2, .by = {{{0, 0, -1, 0}}, {{1, 0, -1, 0}}}, .count = 1},
		{.nsort = WIRE_MAX_SORT + 1, .count = 1},
		{.nsort = 1,
		 .by = {{{0, 0, -1, 0}}},
		 .count = 1,
		 .nconditions = 1,
		 .conditions = {{.value = {1, 0, -1, 0}}}}};
	WireQuery q = {.nkeys = 1, .nslots = 4};
	WireFinish in = {.limit = {.nsort = 1, .by = {{{0, -7, -1, 0}}}, .count = 5}};

	q.slots[0] = (WireSlot){.monoid = MONOID_COUNT, .width = 1};
	q.slots[1] = (WireSlot){.monoid = MONOID_ACCUM_F64, .width = 1};
	q.slots[2] = (WireSlot){.monoid = MONOID_COUNT, .width = 8, .bin_kind = WIRE_BIN_UNIFORM};
	q.slots[3] = (WireSlot){.monoid = MONOID_SUM_F64, .width = 1};
	CHECK(check_finish(&in, &q, sizeof(in), 3) == NULL, "a limit by a count is accepted");
	CHECK(check_finish(&in, &q, sizeof(in) - 1, 3) != NULL, "a short message is rejected");
	in.buffer = 3;
	CHECK(check_finish(&in, &q, sizeof(in), 3) != NULL, "a buffer that does not exist is rejected");
	in.buffer = 2;
	in.limit = (WireLimit){.nsort = 1, .by = {{{-1, 0, -1, 0}}}, .count = 5};
	CHECK(check_finish(&in, &q, sizeof(in), 3) == NULL, "a limit by a key is accepted");
	in.limit = (WireLimit){.nsort = 1, .by = {{{3, 0, 0, 1}}}, .count = 5};
	CHECK(check_finish(&in, &q, sizeof(in), 3) == NULL, "a limit by a mean is accepted");
	in.limit = (WireLimit){.nconditions = 1, .conditions = {{.value = {3, 0, 0, 0}}}};
	CHECK(check_finish(&in, &q, sizeof(in), 3) == NULL, "conditions without a limit are accepted");
	in.limit = (WireLimit){
		.nsort = 2, .by = {{{3, 0, 0, 1}, 1, 0}, {{-1, 0, -1, 0}}}, .count = 5, .ties = 1};
	CHECK(check_finish(&in, &q, sizeof(in), 3) == NULL,
		  "a limit by a mean and a key, with ties, is accepted");
	in.limit = (WireLimit){0};
	CHECK(check_finish(&in, &q, sizeof(in), 3) == NULL && check_finish(&in, &q, 0, 3) == NULL,
		  "a message without a limit is accepted");
	in.ranks = 1;
	CHECK(check_finish(&in, &q, sizeof(in), 3) == NULL, "ranks are accepted");
	in.ranks = 2;
	CHECK(check_finish(&in, &q, sizeof(in), 3) != NULL, "unknown kinds of ranks are rejected");
	in.ranks = 0;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		in.limit = wrong[i];
		CHECK(check_finish(&in, &q, sizeof(in), 3) != NULL, "wrong limit %d is rejected", (int) i);
	}
}

static void
late_queries(void)
{
	make_valid();
	query.flags |= WIRE_LATE;
	CHECK(check_query(&query, sizeof(query)) == NULL, "a query that is opened late is accepted");
	query.shared_id = 1;
	CHECK(check_query(&query, sizeof(query)) != NULL,
		  "a shared query that is opened late is rejected");
	query.shared_id = 0;
	query.flags |= 8;
	CHECK(check_query(&query, sizeof(query)) != NULL, "an unknown flag is rejected");
}

/* Queries whose rows arrive grouped have one key that is not nullable, the number of the group. */
static void
grouped_rows(void)
{
	make_valid();
	query.nslots = 2;
	query.flags = WIRE_GROUPED;
	CHECK(check_query(&query, sizeof(query)) != NULL, "a nullable key is rejected");
	query.keys[0].nullable = 0;
	query.key_bytes = query.null_offset = 4;
	CHECK(check_query(&query, sizeof(query)) == NULL, "numbers of groups are accepted");
	query.shared_id = 1;
	CHECK(check_query(&query, sizeof(query)) != NULL, "a shared query is rejected");
	query.shared_id = 0;
	query.flags |= WIRE_ORDERED;
	CHECK(check_query(&query, sizeof(query)) != NULL, "an ordered query is rejected");
	query.flags = WIRE_GROUPED;
	query.nslots = 3;
	CHECK(check_query(&query, sizeof(query)) != NULL, "a slot with bins is rejected");
	query.nslots = 2;
	query.nkeys = 0;
	query.key_bytes = query.null_offset = 0;
	CHECK(check_query(&query, sizeof(query)) != NULL, "a query without a key is rejected");
	make_stored();
	query.flags = WIRE_GROUPED;
	CHECK(check_resident(&resident, &query, sizeof(resident), BUFFER, 3) != NULL,
		  "stored rows are rejected");
}

int
main(void)
{
	RUN("valid messages are accepted", valid_messages);
	RUN("wrong queries are rejected", wrong_queries);
	RUN("wrong batches are rejected", wrong_batches);
	RUN("wrong stored columns and row ranges are rejected", wrong_stored);
	RUN("wrong lookup tables are rejected", wrong_tables);
	RUN("wrong programs are rejected", wrong_programs);
	RUN("valid limits are accepted and wrong ones rejected", limits);
	RUN("valid picks are accepted and wrong ones rejected", picks);
	RUN("queries that are opened late are checked", late_queries);
	RUN("queries with grouped rows are checked", grouped_rows);
	return unit_done();
}

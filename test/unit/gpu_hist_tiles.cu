/*
 * gpu_hist_tiles.cu
 *	  Tests histograms in tiles (GPUAGG_HIST_TILES): calls with a program over columns of all
 *	  widths, which are staged in shared memory or not. The rows may start anywhere in a segment.
 *	  Reference: the program is computed on the host, row by row, and its results are added with
 *	  the CPU's operators (gpu_hist_run.h).
 */
#include "gpu_hist_run.h"
#include "hist_tiles_args.h"
#include "operators/vector_run.h"

/* A call WHERE a < 300 AND b <> 7, with slots of computed and of stored columns, by one key. */
struct TileCase
{
	GpuaggValueType key, a, b, f;
	int64_t nbins;
	bool nulls;      /* in a and f */
	int input_bytes; /* GpuaggHist.input_bytes; the inputs may need more */
};

static const std::vector<SlotCase> tile_slots = {
	{MONOID_COUNT, GPUAGG_VALUE_I8},    {MONOID_SUM_I64, GPUAGG_VALUE_I64},
	{MONOID_SUM_I64, GPUAGG_VALUE_I64}, {MONOID_MIN_I64, GPUAGG_VALUE_I64},
	{MONOID_SUM_F64, GPUAGG_VALUE_F64}, {MONOID_MAX_I64, GPUAGG_VALUE_I64}};

/* Returns a column as slots and keys take it: from the call's first row on. */
static GpuaggColumn
column_from(const Column &x, size_t first)
{
	GpuaggColumn c = x.get();

	c.values = (const char *) c.values + first * size_of(c.type);
	c.validity = c.validity ? c.validity + first / 8 : nullptr;
	return c;
}

/* The columns of a segment. The call's rows begin at `first`. */
struct TileRows
{
	Column key, a, b, f;
	size_t first;

	TileRows(const TileCase &c, size_t before, size_t n, Random &r) : first(before)
	{
		fill_column(key, r, c.key, first + n, PLAIN, false);
		for (size_t i = 0; i < first + n; i++)
		{
			key.in[i].lo = r.below(c.nbins);
			memcpy(&key.bytes[i * size_of(c.key)], &key.in[i].lo, size_of(c.key));
		}
		fill_column(a, r, c.a, first + n, PLAIN, c.nulls);
		fill_column(b, r, c.b, first + n, PLAIN, false);
		fill_column(f, r, c.f, first + n, PLAIN, c.nulls);
		for (Column *x : {&key, &a, &b, &f})
			x->upload(0);
	}
	GpuaggColumn
	call_column(const Column &x) const
	{
		return column_from(x, first);
	}
};

/* Makes the program: a row counts if a < 300 and b <> 7; it computes a - b and a - b + b. */
static void
make_tile_program(const TileRows &rows, unsigned long long *undetermined, GpuaggProgram &p)
{
	memset((void *) &p, 0, sizeof(p));
	p.input[3] = rows.a.get();
	p.input[0] = rows.b.get();
	p.undetermined = undetermined;
	p.steps.filter = VECTOR_NONE;
	p.steps.constants[0].bits = 300;
	p.steps.constants[1].bits = 7;
	p.steps.nconstants = 2;
	p.steps.instructions[0] = {VECTOR_DEC_COMPARE | GPUAGG_CONDITION,
							   VECTOR_NONE,
							   GPUAGG_INPUT + 3,
							   VECTOR_CONSTANT,
							   0,
							   1};
	p.steps.instructions[1] = {VECTOR_DEC_COMPARE | GPUAGG_CONDITION,
							   VECTOR_NONE,
							   GPUAGG_INPUT,
							   VECTOR_CONSTANT + 1,
							   0,
							   5};
	p.steps.instructions[2] = {VECTOR_DEC_SUB, 0, GPUAGG_INPUT + 3, GPUAGG_INPUT, 0, 0};
	p.steps.instructions[3] = {VECTOR_DEC_ADD, VECTOR_NONE, 0, GPUAGG_INPUT, 0, 0};
	p.steps.ninstructions = 4;
}

/* Adds n rows to the expected states, as the program of make_tile_program() treats them. */
static void
expect_tiles(const TileRows &rows, size_t n, HistExpected &expect)
{
	for (size_t i = rows.first; i < rows.first + n; i++)
	{
		int64_t bin = (int64_t) rows.key.in[i].lo, a = (int64_t) rows.a.in[i].lo,
				b = (int64_t) rows.b.in[i].lo;

		if (!rows.a.ok(i) || a >= 300 || b == 7)
			continue;
		expect.step(0, bin, {0, 0});
		/* slots 1 and 3 have a - b + b, which is a; slot 2 has a - b */
		expect.step(1, bin, {(uint64_t) a, 0});
		expect.step(2, bin, {(uint64_t) (a - b), 0});
		expect.step(3, bin, {(uint64_t) a, 0});
		if (rows.f.ok(i))
			expect.step(4, bin, rows.f.in[i]);
		expect.step(5, bin, {(uint64_t) b, 0});
	}
}

/* Adds n random rows by the case's program on the device, and checks all states. */
static void
check_tiles(const TileCase &c, size_t first, size_t n, uint64_t seed)
{
	Random r(seed);
	TileRows rows(c, first, n, r);
	DeviceArray<unsigned long long> undetermined(std::vector<unsigned long long>{0});
	std::vector<GpuaggProgram> host(1);
	HistExpected expect(tile_slots, c.nbins);
	HistActual actual(tile_slots, c.nbins, 16);
	GpuaggHist h = GpuaggHist();
	GpuaggColumn sum = {nullptr, nullptr, GPUAGG_VALUE_I64, 1, GPUAGG_LAST},
				 difference = {nullptr, nullptr, GPUAGG_VALUE_I64, 1, 0};
	char what[100];

	make_tile_program(rows, undetermined.get(), host[0]);
	DeviceArray<GpuaggProgram> program(host);

	h.strategy = GPUAGG_HIST_TILES;
	h.program = program.get();
	h.temporaries = 1;
	h.input_bytes = c.input_bytes;
	h.input_row = (int64_t) first;
	h.bins.kind = GPUAGG_BIN_RANGE;
	h.bins.ncolumns = 1;
	h.bins.column[0] = rows.call_column(rows.key);
	h.bins.extent[0] = h.bins.nbins = c.nbins;
	h.nslots = (int) tile_slots.size();
	h.nrows = (int64_t) n;
	for (size_t s = 0; s < tile_slots.size(); s++)
		h.slot[s].op = tile_slots[s].op;
	h.slot[1].x = sum;
	h.slot[2].x = difference;
	h.slot[3].x = rows.call_column(rows.a);
	h.slot[4].x = rows.call_column(rows.f);
	h.slot[5].x = rows.call_column(rows.b);
	actual.attach(h);
	for (int call = 0; call < 2; call++)
	{
		hist_update(h);
		expect_tiles(rows, n, expect);
	}
	snprintf(what, sizeof(what),
			 "%zu rows from %zu on, %ld bins, types %d %d %d %d, %d bytes of inputs", n, first,
			 (long) c.nbins, c.key, c.a, c.b, c.f, c.input_bytes);
	actual.check(expect, what);
	CHECK(undetermined.take()[0] == 0, "%s: %llu rows undetermined", what, undetermined.take()[0]);
}

/*
 * Covers every width as input, key and slot's column. There is room for none of the inputs, for
 * some, or for more than there are. Bins leave hardly any shared memory. Numbers of rows are at the
 * ends of tiles and of a thread's rows.
 */
GPU_TEST(hist_tiles)
{
	const GpuaggValueType i8 = GPUAGG_VALUE_I8, i16 = GPUAGG_VALUE_I16, i32 = GPUAGG_VALUE_I32,
						  i64 = GPUAGG_VALUE_I64, f32 = GPUAGG_VALUE_F32, f64 = GPUAGG_VALUE_F64;
	const TileCase cases[] = {
		{i32, i32, i64, f64, 4, false, 12},    {i32, i32, i64, f64, 4, true, 12},
		{i8, i16, i8, f32, 100, false, 3},     {i8, i16, i8, f32, 100, true, 0},
		{i16, i64, i16, f64, 1000, true, 10},  {i64, i8, i32, f32, 7, false, 5},
		{i64, i64, i64, f64, 1000, true, 100}, {i32, i64, i64, f64, 4000, false, 16},
		{i32, i64, i32, f64, 4300, true, 12},
	};
	const size_t most = gpu_test_quick() ? 20011 : 1000003;
	uint64_t seed = 7700;

	for (const TileCase &c : cases)
	{
		for (size_t n : {(size_t) 1, (size_t) 3, (size_t) 4, (size_t) 131, (size_t) 2048, most})
			check_tiles(c, n % 2 ? 64 : 0, n, seed++);
		check_tiles(c, 4096, gpu_test_quick() ? 9000 : 600000, seed++);
	}
}

/* Adds the rows to the expected states of check_many_columns. */
static void
expect_many_columns(const Column &key, const std::vector<std::unique_ptr<Column>> &column,
					HistExpected &expect)
{
	for (size_t i = 0; i < key.in.size(); i++)
		for (size_t s = 0; s < expect.slots.size(); s++)
		{
			const Column &stored = *column[(s * 5) % column.size()];
			auto v = [&](int c) { return (int64_t) column[c]->in[i].lo; };
			bool left = column[1]->ok(i) && column[2]->ok(i),
				 right = column[3]->ok(i) && column[5]->ok(i);
			int64_t a = v(1) + v(2), b = v(3) + v(5);

			if (s == 0 && left)
				expect.step(s, key.in[i].lo, {(uint64_t) a, 0});
			if (s == 1 && right)
				expect.step(s, key.in[i].lo, {(uint64_t) b, 0});
			if (s == 2 && left && right)
				expect.step(s, key.in[i].lo, {(uint64_t) (a - b), 0});
			if (s >= 3 && stored.ok(i))
				expect.step(s, key.in[i].lo, stored.in[i]);
		}
}

/*
 * Checks a call with more columns than can be staged, some of them inputs or used by several slots,
 * and with temporaries.
 */
static void
check_many_columns(int64_t nbins, bool nulls, int input_bytes, size_t n, uint64_t seed)
{
	const int ncolumns = 14;
	Random r(seed);
	std::vector<SlotCase> slots;
	std::vector<std::unique_ptr<Column>> column;
	Column key;
	std::vector<GpuaggProgram> host(1);
	DeviceArray<unsigned long long> undetermined(std::vector<unsigned long long>{0});
	GpuaggHist h = GpuaggHist();
	const GpuaggValueType types[] = {GPUAGG_VALUE_I64, GPUAGG_VALUE_I8, GPUAGG_VALUE_I32,
									 GPUAGG_VALUE_I16};
	char what[100];

	fill_column(key, r, GPUAGG_VALUE_I32, n, PLAIN, false);
	for (size_t i = 0; i < n; i++)
	{
		key.in[i].lo = r.below(nbins);
		memcpy(&key.bytes[i * 4], &key.in[i].lo, 4);
	}
	key.upload(0);
	for (int c = 0; c < ncolumns; c++)
	{
		column.emplace_back(new Column());
		fill_column(*column[c], r, types[c % 4], n, EDGES, nulls && c % 3 == 0);
		column[c]->upload(0);
	}
	for (int s = 0; s < GPUAGG_MAX_SLOTS; s++)
		slots.push_back({s % 2 ? MONOID_MIN_I64 : MONOID_MAX_I64, GPUAGG_VALUE_I64});
	memset((void *) host.data(), 0, sizeof(host[0]));
	host[0].undetermined = undetermined.get();
	host[0].steps.filter = VECTOR_NONE;
	for (int c = 0; c < ncolumns; c++)
		host[0].input[c] = column[c]->get();
	/* temporaries 0 and 1: sums of two columns each; the last result is their difference */
	host[0].steps.instructions[0] = {VECTOR_DEC_ADD, 0, GPUAGG_INPUT + 1, GPUAGG_INPUT + 2, 0, 0};
	host[0].steps.instructions[1] = {VECTOR_DEC_ADD, 1, GPUAGG_INPUT + 3, GPUAGG_INPUT + 5, 0, 0};
	host[0].steps.instructions[2] = {VECTOR_DEC_SUB, VECTOR_NONE, 0, 1, 0, 0};
	host[0].steps.ninstructions = 3;
	DeviceArray<GpuaggProgram> program(host);
	HistExpected expect(slots, nbins);
	HistActual actual(slots, nbins, 16);

	h.strategy = GPUAGG_HIST_TILES;
	h.program = program.get();
	h.temporaries = 2;
	h.input_bytes = input_bytes;
	h.bins.kind = GPUAGG_BIN_RANGE;
	h.bins.ncolumns = 1;
	h.bins.column[0] = key.get();
	h.bins.extent[0] = h.bins.nbins = nbins;
	h.nslots = (int) slots.size();
	h.nrows = (int64_t) n;
	for (size_t s = 0; s < slots.size(); s++)
	{
		h.slot[s].op = slots[s].op;
		if (s < 3)
			h.slot[s].x = {nullptr, nullptr, GPUAGG_VALUE_I64, 1,
						   s == 2 ? (uint16_t) GPUAGG_LAST : (uint16_t) s};
		else
			h.slot[s].x = column[(s * 5) % ncolumns]->get();
	}
	expect_many_columns(key, column, expect);
	actual.attach(h);
	hist_update(h);
	snprintf(what, sizeof(what), "%ld bins, NULLs %d, %d bytes of inputs, %zu rows", (long) nbins,
			 nulls, input_bytes, n);
	actual.check(expect, what);
}

GPU_TEST(hist_tiles_columns)
{
	uint64_t seed = 8800;
	const size_t n = gpu_test_quick() ? 20011 : 1000003;

	for (int64_t nbins : {1L, 30L, 700L, 1100L})
		for (bool nulls : {false, true})
			for (int input_bytes : {0, 20, 1000})
				check_many_columns(nbins, nulls, input_bytes, n, seed++);
}

/* Checks extremes of float4, with a program and operators that the light kernel supports. */
static void
check_singles(int64_t nbins, bool nulls, size_t n, uint64_t seed)
{
	const std::vector<SlotCase> slots = {{MONOID_COUNT, GPUAGG_VALUE_I8},
										 {MONOID_SUM_I64, GPUAGG_VALUE_I32},
										 {MONOID_MIN_F32, GPUAGG_VALUE_F32},
										 {MONOID_MAX_F32, GPUAGG_VALUE_F32},
										 {MONOID_COUNT, GPUAGG_VALUE_F32}};
	const TileCase c = {
		GPUAGG_VALUE_I32, GPUAGG_VALUE_I32, GPUAGG_VALUE_I32, GPUAGG_VALUE_F32, nbins, nulls, 8};
	Random r(seed);
	TileRows rows(c, 64, n, r);
	DeviceArray<unsigned long long> undetermined(std::vector<unsigned long long>{0});
	std::vector<GpuaggProgram> host(1);
	HistExpected expect(slots, nbins);
	HistActual actual(slots, nbins, 16);
	GpuaggHist h = GpuaggHist();
	char what[100];

	make_tile_program(rows, undetermined.get(), host[0]);
	host[0].steps.ninstructions = 2;
	DeviceArray<GpuaggProgram> program(host);

	h.strategy = GPUAGG_HIST_TILES;
	h.program = program.get();
	h.input_bytes = c.input_bytes;
	h.input_row = (int64_t) rows.first;
	h.bins.kind = GPUAGG_BIN_RANGE;
	h.bins.ncolumns = 1;
	h.bins.column[0] = rows.call_column(rows.key);
	h.bins.extent[0] = h.bins.nbins = nbins;
	h.nslots = (int) slots.size();
	h.nrows = (int64_t) n;
	for (size_t s = 0; s < slots.size(); s++)
	{
		h.slot[s].op = slots[s].op;
		h.slot[s].x = s == 0 ? GpuaggColumn() : rows.call_column(s == 1 ? rows.b : rows.f);
	}
	actual.attach(h);
	for (int any = 0; any < 2; any++)
	{
		h.steps = any ? nullptr : &host[0].steps;
		hist_update(h);
		for (size_t i = rows.first; i < rows.first + n; i++)
		{
			int64_t bin = (int64_t) rows.key.in[i].lo;

			if (!rows.a.ok(i) || (int64_t) rows.a.in[i].lo >= 300 || (int64_t) rows.b.in[i].lo == 7)
				continue;
			expect.step(0, bin, {0, 0});
			expect.step(1, bin, rows.b.in[i]);
			for (size_t s = 2; s < slots.size() && rows.f.ok(i); s++)
				expect.step(s, bin, rows.f.in[i]);
		}
	}
	snprintf(what, sizeof(what), "%ld bins, NULLs %d, %zu rows", (long) nbins, nulls, n);
	actual.check(expect, what);
}

GPU_TEST(hist_tiles_singles)
{
	uint64_t seed = 8900;

	for (int64_t nbins : {1, 5, 600})
		for (bool nulls : {false, true})
			for (size_t n : {(size_t) 3, (size_t) 5003})
				check_singles(nbins, nulls, n, seed++);
}

/* An odd number of bins, whose copies leave little room for the temporaries. */
GPU_TEST(hist_tiles_copies)
{
	const int ncolumns = 12;
	Random r(9050);
	const size_t n = 300;
	std::vector<SlotCase> slots;
	Column x, key;
	std::vector<GpuaggProgram> host(1);
	DeviceArray<unsigned long long> undetermined(std::vector<unsigned long long>{0});

	fill_column(x, r, GPUAGG_VALUE_I64, n, PLAIN, false);
	fill_column(key, r, GPUAGG_VALUE_I32, n, PLAIN, false);
	memset((void *) key.bytes.data(), 0, key.bytes.size());
	x.upload(0);
	key.upload(0);
	memset((void *) host.data(), 0, sizeof(host[0]));
	host[0].undetermined = undetermined.get();
	host[0].steps.filter = VECTOR_NONE;
	DeviceArray<GpuaggProgram> program(host);

	for (int s = 0; s < ncolumns; s++)
		slots.push_back({MONOID_SUM_I128, GPUAGG_VALUE_I64});
	for (int temporaries = 11; temporaries <= 13; temporaries++)
		for (int64_t nbins = 1; nbins <= 301; nbins += 2)
		{
			HistExpected expect(slots, nbins);
			HistActual actual(slots, nbins, 16);
			GpuaggHist h = GpuaggHist();
			GpuaggHistChoice choice;
			char what[100];

			h.strategy = GPUAGG_HIST_TILES;
			h.program = program.get();
			h.temporaries = temporaries;
			h.bins.kind = GPUAGG_BIN_RANGE;
			h.bins.ncolumns = 1;
			h.bins.column[0] = key.get();
			h.bins.extent[0] = h.bins.nbins = nbins;
			h.nslots = ncolumns;
			h.nrows = (int64_t) n;
			for (int s = 0; s < ncolumns; s++)
			{
				h.slot[s].op = slots[s].op;
				h.slot[s].x = x.get();
			}
			actual.attach(h);
			if (gpuagg_hist_choose(&h, &choice) != GPUAGG_CUDA_OK)
				break;
			hist_update(h);
			for (size_t i = 0; i < n; i++)
				for (int s = 0; s < ncolumns; s++)
					expect.step(s, 0, x.in[i]);
			snprintf(what, sizeof(what), "%ld bins, %d temporaries", (long) nbins, temporaries);
			actual.check(expect, what);
		}
}

/* ---- random programs --------------------------------------------------------------------- */

/*
 * An operation, with the kinds of its operands and result: i integer, w integer of 32 bits, f
 * float8, b boolean, x any, l list, - none.
 */
struct DrawnOp
{
	int op;
	char a, b, c, result;
};

/* Operations that the light kernel supports. */
static const DrawnOp light_ops[] = {
	{VECTOR_AND, 'b', 'b', '-', 'b'},         {VECTOR_OR, 'b', 'b', '-', 'b'},
	{VECTOR_NOT, 'b', '-', '-', 'b'},         {VECTOR_ISNULL, 'x', '-', '-', 'b'},
	{VECTOR_ISNOTNULL, 'x', '-', '-', 'b'},   {VECTOR_IS_TRUE, 'b', '-', '-', 'b'},
	{VECTOR_DEC_COMPARE, 'i', 'i', '-', 'b'}, {VECTOR_F_INT8LT, 'i', 'i', '-', 'b'},
	{VECTOR_F_INT8NE, 'i', 'i', '-', 'b'},    {VECTOR_F_INT48GE, 'w', 'i', '-', 'b'},
	{VECTOR_F_INT4LE, 'w', 'w', '-', 'b'},    {VECTOR_F_FLOAT8EQ, 'f', 'f', '-', 'b'},
	{VECTOR_F_FLOAT8NE, 'f', 'f', '-', 'b'},  {VECTOR_F_FLOAT8LT, 'f', 'f', '-', 'b'},
	{VECTOR_F_FLOAT8LE, 'f', 'f', '-', 'b'},  {VECTOR_F_FLOAT8GT, 'f', 'f', '-', 'b'},
	{VECTOR_F_FLOAT8GE, 'f', 'f', '-', 'b'},  {VECTOR_BUCKET, 'f', 'l', '-', 'i'},
	{VECTOR_F64_BELOW, 'f', 'f', '-', 'f'},   {VECTOR_F64_PART, 'f', '-', '-', 'i'},
	{VECTOR_PRESENCE, 'x', '-', '-', 'i'},    {VECTOR_DETERMINED, 'x', '-', '-', 'b'},
	{VECTOR_DEC_ADD, 'i', 'i', '-', 'i'},     {VECTOR_DEC_SUB, 'i', 'i', '-', 'i'},
	{VECTOR_DEC_MUL, 'i', 'i', '-', 'i'},     {VECTOR_F_INT4PL, 'w', 'w', '-', 'w'},
	{VECTOR_F_INT4MI, 'w', 'w', '-', 'w'},    {VECTOR_F_INT4MUL, 'w', 'w', '-', 'w'},
	{VECTOR_LOOKUP, 'i', '-', '-', 'i'},      {VECTOR_LOOKUP, 'i', '-', '-', 'b'}};

/* Operations that it does not support. */
static const DrawnOp other_ops[] = {
	{VECTOR_SELECT, 'b', 'i', 'i', 'i'},     {VECTOR_COALESCE, 'i', 'i', '-', 'i'},
	{VECTOR_DEC_MOD, 'i', 'i', '-', 'i'},    {VECTOR_F_INT8PL, 'i', 'i', '-', 'i'},
	{VECTOR_F_FLOAT8PL, 'f', 'f', '-', 'f'}, {VECTOR_IN, 'i', 'l', '-', 'b'},
	{VECTOR_FIND, 'i', '-', '-', 'i'},       {VECTOR_KEY_PART, 'i', 'l', '-', 'i'}};

/* The columns that programs read, by number. Then the kinds of the constants. */
static const GpuaggValueType drawn_inputs[] = {GPUAGG_VALUE_I32, GPUAGG_VALUE_I64,
											   GPUAGG_VALUE_F64, GPUAGG_VALUE_I16,
											   GPUAGG_VALUE_F64, GPUAGG_VALUE_I64};
#define DRAWN_INPUTS 6
#define CONSTANT_LIST 6
static const char constant_kinds[] = "wifbbi";
/* Lookup tables of a program; a narrow and a wide hash table follow. */
#define DRAWN_TABLES 3
#define ALL_TABLES (DRAWN_TABLES + 2)
#define HASH_SLOTS 500

struct DrawnProgram
{
	GpuaggProgram p;
	char kind[16]; /* kind of each result */
	int n;
	uint8_t cells[ALL_TABLES * 16384]; /* cells of all tables */

	static bool
	fits(char wanted, char is)
	{
		return wanted == 'x' || wanted == is || (wanted == 'i' && (is == 'w' || is == 'b'));
	}
	/*
	 * Returns a random operand of this kind that instruction i may read. i = n is for operands
	 * after the last instruction.
	 */
	uint16_t
	draw_operand(Random &r, char wanted, int i) const
	{
		std::vector<uint16_t> all;

		for (int k = 0; k < DRAWN_INPUTS; k++)
			if (fits(wanted,
					 drawn_inputs[k] == GPUAGG_VALUE_F64     ? 'f' :
						 drawn_inputs[k] == GPUAGG_VALUE_I32 ? 'w' :
															   'i'))
				all.push_back((uint16_t) (GPUAGG_INPUT + k));
		for (int k = 0; constant_kinds[k]; k++)
			if (fits(wanted, constant_kinds[k]))
				all.push_back((uint16_t) (VECTOR_CONSTANT + k));
		for (int k = 0; k < i; k++)
			for (int often = 0; often < 3 && fits(wanted, kind[k]); often++)
				if (k == i - 1)
					all.push_back(GPUAGG_LAST);
				else if (p.steps.instructions[k].r != VECTOR_NONE)
					all.push_back((uint16_t) k);
		return all[r.below(all.size())];
	}
	void
	draw_instruction(Random &r, const DrawnOp &d, int i)
	{
		VectorInstruction &in = p.steps.instructions[i];

		in.op = (uint16_t) d.op;
		in.r = r.below(4) ? (uint16_t) i : VECTOR_NONE;
		in.data = d.op == VECTOR_DEC_COMPARE ? (uint16_t) r.below(8) :
			d.op == VECTOR_LOOKUP            ? (uint16_t) r.below(DRAWN_TABLES) :
			d.op == VECTOR_FIND              ? (uint16_t) (DRAWN_TABLES + r.below(2)) :
											   (uint16_t) r.below(2);
		/* units with which most floats of the columns fit */
		if (d.op == VECTOR_F64_PART)
			in.data += (uint16_t) (2 * (940 + r.below(60)));
		in.a = draw_operand(r, d.a, i);
		in.b = d.b == 'l' ? (uint16_t) (VECTOR_CONSTANT + CONSTANT_LIST) :
			d.b == '-'    ? VECTOR_NONE :
							draw_operand(r, d.b, i);
		in.c = d.op == VECTOR_IN ? 3 : d.c == '-' ? VECTOR_NONE : draw_operand(r, d.c, i);
		if (d.op == VECTOR_IN || d.op == VECTOR_KEY_PART)
			in.b += 3;
		kind[i] = d.result;
		/* often a condition that compares an int32 column with a constant */
		if (d.op == VECTOR_DEC_COMPARE && r.below(2))
		{
			in.op |= GPUAGG_CONDITION;
			in.r = VECTOR_NONE;
			in.a = GPUAGG_INPUT;
			in.b = VECTOR_CONSTANT;
		}
		else if (d.result == 'b' && r.below(2))
			in.op |= GPUAGG_CONDITION;
	}
	/*
	 * Draws the lookup tables: all forms of cells, and keys at the ends of int32 and beyond.  Half
	 * of the cells of a narrow table are NULL or the least value, which may be 0.
	 */
	void
	draw_tables(Random &r)
	{
		const uint16_t forms[] = {VECTOR_CELLS_BITS, 1, 2, 4, VECTOR_CELLS_WIDE};
		const int64_t bases[] = {
			0, -300, INT32_MIN, (int64_t) INT32_MIN - 2, (int64_t) INT32_MAX - 99, INT64_MAX - 50};
		uint32_t first = 0;

		for (int t = 0; t < DRAWN_TABLES; t++)
		{
			VectorTable &table = p.tables[t];
			size_t bytes;

			table.base = r.below(2) ? -300 : bases[r.below(6)];
			table.least = (int64_t) r.below(4) - 1;
			table.n = (uint32_t) r.below(r.below(2) ? 1000 : 5);
			table.form = forms[r.below(5)];
			table.others = r.below(4) != 0;
			table.first = first;
			bytes = vector_table_bytes(&table);
			for (size_t i = 0; i < bytes; i++)
				cells[first * 8 + i] = (uint8_t) (r.below(2) ? r.below(2) : r.below(256));
			/* states of wide cells */
			for (size_t i = 0; i <= table.n && table.form == VECTOR_CELLS_WIDE; i++)
				cells[first * 8 + ((size_t) table.n + 1) * 8 + i] =
					r.below(5) ? VECTOR_VALUE : VECTOR_NULL;
			first += (uint32_t) (bytes / 8);
		}
		for (int t = DRAWN_TABLES; t < ALL_TABLES; t++)
		{
			draw_hash_table(r, p.tables[t], t == DRAWN_TABLES, (uint64_t *) (cells + first * 8));
			p.tables[t].first = first;
			first += (uint32_t) (vector_table_bytes(&p.tables[t]) / 8);
		}
	}
	/* Draws a hash table that may be nearly full.  words: its slots, which are zeros */
	void
	draw_hash_table(Random &r, VectorTable &table, bool narrow, uint64_t *words)
	{
		size_t nkeys = r.below(HASH_SLOTS * 9 / 10);

		table.base = -300;
		table.least = (int64_t) r.below(UINT32_MAX);
		table.n = HASH_SLOTS - 1;
		table.form = narrow ? VECTOR_SLOTS_NARROW : VECTOR_SLOTS_WIDE;
		for (size_t k = 0; k < nkeys; k++)
		{
			uint64_t key = vector_slot_key(&table, (int64_t) r.below(1000) - 300);
			uint32_t at = vector_first_slot(&table, key);
			VectorSlot slot;

			while ((slot = vector_slot(&table, (uint8_t *) words, at)).entry != 0 &&
				   slot.key != key)
				at = vector_next_slot(&table, at);
			if (narrow)
				words[at] = key | (uint64_t) (k + 1) << 32;
			else
			{
				words[2 * (size_t) at] = key;
				words[2 * (size_t) at + 1] = k + 1;
			}
		}
	}
	DrawnProgram(Random &r, bool light)
	{
		const int64_t integers[] = {INT32_MIN, INT32_MIN + 1, INT32_MAX, INT32_MAX - 1, 0, -1};
		const double doubles[] = {1.5, -1000, 1000};

		memset((void *) this, 0, sizeof(*this));
		n = 1 + (int) r.below(7);
		p.steps.ninstructions = (uint32_t) n;
		p.steps.nconstants = 13;
		p.steps.constants[0].bits = r.below(3) ? 300 : integers[r.below(6)];
		p.steps.constants[1].state = VECTOR_NULL;
		memcpy(&p.steps.constants[2].bits, doubles, 8);
		p.steps.constants[3].bits = 1;
		p.steps.constants[4].state = r.below(3) ? VECTOR_VALUE : VECTOR_NULL;
		p.steps.constants[5].bits = -7;
		memcpy(&p.steps.constants[CONSTANT_LIST].bits, doubles + 1, 8);
		memcpy(&p.steps.constants[CONSTANT_LIST + 1].bits, doubles + 2, 8);
		p.steps.constants[CONSTANT_LIST + 2].bits = 37;
		for (int k = 0; k < 4; k++)
			p.steps.constants[CONSTANT_LIST + 3 + k].bits = k * 2 - 1;
		draw_tables(r);
		for (int i = 0; i < n; i++)
			draw_instruction(r,
							 light || (i > 0 && r.below(2)) ?
								 light_ops[r.below(sizeof(light_ops) / sizeof(*light_ops))] :
								 other_ops[r.below(sizeof(other_ops) / sizeof(*other_ops))],
							 i);
		p.steps.filter = r.below(2) ? draw_operand(r, 'b', n) : VECTOR_NONE;
		p.nchecks = (int) r.below(3);
		for (int c = 0; c < p.nchecks; c++)
			p.check[c] = {draw_operand(r, 'x', n), (uint16_t) r.below(2)};
	}
};

/* Runs a program over one row on the host. */
struct DrawnRow
{
	const DrawnProgram &d;
	const std::vector<Column> &inputs;
	size_t row;
	VectorCell result[16];
	bool holds = true, unclear = false;

	VectorCell
	operand(uint16_t o, int i) const
	{
		if (o >= VECTOR_CONSTANT)
			return vector_cell(d.p.steps.constants[o - VECTOR_CONSTANT].bits,
							   (int) d.p.steps.constants[o - VECTOR_CONSTANT].state);
		if (o == GPUAGG_LAST)
			return result[i - 1];
		if (o >= GPUAGG_INPUT)
			return vector_cell((int64_t) inputs[o - GPUAGG_INPUT].in[row].lo,
							   inputs[o - GPUAGG_INPUT].ok(row) ? VECTOR_VALUE : VECTOR_NULL);
		return result[o];
	}
	void
	apply_condition(VectorCell x)
	{
		bool truth = x.state == VECTOR_VALUE && x.value != 0;

		unclear = unclear || (holds && x.state == VECTOR_UNDETERMINED);
		holds = holds && truth;
	}
	/* Returns whether the row counts. Sets *determined to whether its outcome is determined. */
	bool
	run(bool *determined)
	{
		bool clear = true;
		const uint8_t *cells[ALL_TABLES];

		for (int t = 0; t < ALL_TABLES; t++)
			cells[t] = d.cells + (size_t) d.p.tables[t].first * 8;
		for (int i = 0; i < d.n; i++)
		{
			VectorInstruction in = d.p.steps.instructions[i];
			uint16_t from[3] = {in.a, in.b, in.c};
			bool condition = in.op & GPUAGG_CONDITION;
			int64_t values[4] = {};
			uint8_t states[4] = {};
			int operands;

			in.op &= ~GPUAGG_CONDITION;
			operands = vector_operands(in.op);
			for (int k = 0; k < operands && !(k == 1 && (vector_has_list(in.op))); k++)
			{
				values[k] = operand(from[k], i).value;
				states[k] = operand(from[k], i).state;
			}
			in.a = 0;
			in.b = in.b >= VECTOR_CONSTANT && in.b != VECTOR_NONE ? in.b : 1;
			in.c = operands > 2 ? 2 : in.c;
			in.r = 3;
			if (vector_reads_table(in.op))
				vector_lookup(&in, d.p.tables, cells, d.p.steps.constants, values, states, 1, 0, 1,
							  1);
			else
				vector_run(&in, d.p.steps.constants, values, states, 1, 0, 1, 1);
			result[i] = vector_cell(values[3], states[3]);
			if (condition)
				apply_condition(result[i]);
		}
		if (d.p.steps.filter != VECTOR_NONE)
			apply_condition(operand(d.p.steps.filter, d.n));
		for (int c = 0; c < d.p.nchecks; c++)
		{
			VectorCell x = operand(d.p.check[c].operand, d.n);

			clear = clear &&
				(x.state == VECTOR_VALUE || (x.state == VECTOR_NULL && d.p.check[c].nullable));
		}
		*determined = !unclear && (clear || !holds);
		return holds && clear;
	}
};

/*
 * Slots for the kernels: first those that the light kernel supports, then those that the middle one
 * supports, then one that only the full one supports.
 */
static const std::vector<SlotCase> drawn_slots = {
	{MONOID_COUNT, GPUAGG_VALUE_I8},    {MONOID_SUM_I64, GPUAGG_VALUE_I32},
	{MONOID_COUNT, GPUAGG_VALUE_I64},   {MONOID_SUM_DEC, GPUAGG_VALUE_I64},
	{MONOID_MAX_I32, GPUAGG_VALUE_I32}, {MONOID_SUM_F64, GPUAGG_VALUE_F64},
	{MONOID_MIN_I64, GPUAGG_VALUE_I64}, {MONOID_ACCUM_F64, GPUAGG_VALUE_F64}};
static const int kernel_nslots[TILE_KERNELS] = {5, 7, 8};
/* The input of each slot; -1: none, -2: the computed operand. */
static const int drawn_input_of_slot[] = {-1, 0, -2, -2, 0, 4, 5, 4};

/*
 * Adds the results of a program to the expected states, for the rows from `first` on. Returns the
 * number of undetermined rows. `computed` is the operand of computed inputs, `filter` that of slot
 * 1's filter.
 */
static unsigned long long
expect_program(const DrawnProgram &d, const std::vector<Column> &inputs, const Column &key,
			   size_t first, uint16_t computed, uint16_t filter, HistExpected &expect)
{
	unsigned long long undetermined = 0;

	for (size_t i = first; i < key.in.size(); i++)
	{
		DrawnRow row = {d, inputs, i};
		bool determined, counts = row.run(&determined);
		VectorCell x = row.operand(computed, d.n), f = row.operand(filter, d.n);

		undetermined += !determined;
		if (!counts || !key.ok(i))
			continue;
		for (size_t s = 0; s < expect.slots.size(); s++)
		{
			int c = drawn_input_of_slot[s];
			Input in =
				c >= 0 ? inputs[c].in[i] : Input{(uint64_t) x.value, (uint64_t) (x.value >> 63)};
			bool ok = c >= 0 ? inputs[c].ok(i) : c == -1 || x.state == VECTOR_VALUE;

			if (ok && (s != 1 || (f.state == VECTOR_VALUE && f.value)))
				expect.step(s, (int64_t) key.in[i].lo, in);
		}
	}
	return undetermined;
}

/*
 * Checks a random program with the smallest kernel that supports it, and with one for any program.
 */
static void
check_program(int kernel, uint64_t seed)
{
	Random r(seed);
	const size_t first = 64 * r.below(3), n = 1 + r.below(r.below(3) ? 3000 : 30000);
	const int64_t nbins = 1 + (int64_t) r.below(60);
	/* an operation alone may need the middle kernel */
	const int nslots = kernel_nslots[kernel == TILES_MIDDLE && r.below(2) ? TILES_LIGHT : kernel];
	std::vector<SlotCase> slots(drawn_slots.begin(), drawn_slots.begin() + nslots);
	std::vector<Column> inputs(DRAWN_INPUTS);
	Column key;
	DeviceArray<unsigned long long> undetermined(std::vector<unsigned long long>{0});
	DrawnProgram d(r, kernel == TILES_LIGHT);
	std::vector<GpuaggProgram> host(1);
	HistExpected expect(slots, nbins);
	HistActual actual(slots, nbins, 16);
	GpuaggHist h = GpuaggHist();
	unsigned long long expect_undetermined = 0;
	uint16_t computed = d.draw_operand(r, 'i', d.n), filter = d.draw_operand(r, 'b', d.n);
	char what[100];

	for (int i = 0; i < DRAWN_INPUTS; i++)
	{
		fill_column(inputs[i], r, drawn_inputs[i], first + n, r.below(3) ? PLAIN : EDGES,
					r.below(3) == 0);
		inputs[i].upload(0);
		d.p.input[i] = inputs[i].get();
	}
	fill_column(key, r, GPUAGG_VALUE_I32, first + n, PLAIN, r.below(2));
	for (size_t i = 0; i < first + n; i++)
	{
		key.in[i].lo = r.below((uint64_t) nbins);
		memcpy(&key.bytes[i * 4], &key.in[i].lo, 4);
	}
	key.upload(0);
	DeviceArray<uint8_t> cells(std::vector<uint8_t>(d.cells, d.cells + sizeof(d.cells)));

	d.p.undetermined = undetermined.get();
	for (int t = 0; t < ALL_TABLES; t++)
		d.p.cells[t] = cells.get() + (size_t) d.p.tables[t].first * 8;
	host[0] = d.p;
	DeviceArray<GpuaggProgram> program(host);

	h.strategy = GPUAGG_HIST_TILES;
	h.program = program.get();
	h.temporaries = d.n;
	h.input_bytes = (int) r.below(50);
	h.input_row = (int64_t) first;
	h.nrows = (int64_t) n;
	h.bins.kind = GPUAGG_BIN_RANGE;
	h.bins.ncolumns = 1;
	h.bins.column[0] = column_from(key, first);
	h.bins.extent[0] = h.bins.nbins = nbins;
	h.nslots = (int) slots.size();
	for (size_t s = 0; s < slots.size(); s++)
	{
		h.slot[s].op = slots[s].op;
		if (drawn_input_of_slot[s] >= 0)
			h.slot[s].x = column_from(inputs[drawn_input_of_slot[s]], first);
		else if (drawn_input_of_slot[s] == -2)
			h.slot[s].x = {nullptr, nullptr, slots[s].type, 1, computed};
	}
	h.slot[1].filter_computed = 1;
	h.slot[1].filter_operand = filter;
	actual.attach(h);
	for (int any = 0; any < 2; any++)
	{
		h.steps = any ? nullptr : &host[0].steps;
		hist_update(h);
		expect_undetermined += expect_program(d, inputs, key, first, computed, filter, expect);
	}
	snprintf(what, sizeof(what), "kernel %d, seed %lu, %zu rows from %zu on", kernel,
			 (unsigned long) seed, n, first);
	actual.check(expect, what);
	CHECK(undetermined.take()[0] == expect_undetermined,
		  "%s: %llu rows undetermined, expected %llu", what, undetermined.take()[0],
		  expect_undetermined);
}

GPU_TEST(hist_tiles_programs)
{
	const int programs = gpu_test_quick() ? 60 : 600;

	for (int kernel = 0; kernel < TILE_KERNELS; kernel++)
		for (int i = 0; i < programs; i++)
			check_program(kernel, 9900 + (uint64_t) (kernel * programs + i));
}

/* Checks the choice of the kernel, by operators and by operations. */
GPU_TEST(hist_tiles_choice)
{
	const int light = 1 << TILE_COUNT | 1 << TILE_INT_I32 | 1 << TILE_INT_I64 | 1 << TILE_MAX32;
	std::vector<HistArgs> args(1);
	VectorProgram p = VectorProgram();

	args[0].nslots = 2;
	args[0].slot[0].tile = TILE_COUNT;
	for (int tile = TILE_COUNT; tile <= TILE_SQUARES; tile++)
	{
		int least = light >> tile & 1 ? TILES_LIGHT :
			tile == TILE_SQUARES      ? TILES_FULL :
										TILES_MIDDLE;

		args[0].slot[1].tile = tile;
		p.ninstructions = 0;
		CHECK(hist_choose_tiles(args[0], &p) == least, "operator %d: wrong kernel", tile);
		CHECK(hist_choose_tiles(args[0], nullptr) == (least > TILES_MIDDLE ? least : TILES_MIDDLE),
			  "operator %d, unknown steps: wrong kernel", tile);
		p.ninstructions = 2;
		p.instructions[0].op = VECTOR_AND | GPUAGG_CONDITION;
		for (const DrawnOp &d : light_ops)
		{
			p.instructions[1].op = (uint16_t) d.op;
			CHECK(hist_choose_tiles(args[0], &p) == least,
				  "operator %d, operation %d: wrong kernel", tile, d.op);
		}
		for (const DrawnOp &d : other_ops)
		{
			p.instructions[1].op = (uint16_t) d.op;
			CHECK(hist_choose_tiles(args[0], &p) == (least > TILES_MIDDLE ? least : TILES_MIDDLE),
				  "operator %d, operation %d: wrong kernel", tile, d.op);
		}
	}
	/* the light kernel can count float4 values, but not compare them */
	p.ninstructions = 0;
	args[0].slot[1].x.type = GPUAGG_VALUE_F32;
	args[0].slot[1].tile = TILE_COUNT;
	CHECK(hist_choose_tiles(args[0], &p) == TILES_LIGHT, "a count of float4: wrong kernel");
	args[0].slot[1].tile = TILE_MAX32;
	CHECK(hist_choose_tiles(args[0], &p) == TILES_MIDDLE, "an extreme of float4: wrong kernel");
}

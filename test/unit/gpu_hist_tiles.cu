/*
 * gpu_hist_tiles.cu
 *	  Histograms by tiles: programs over columns of all widths, staged in shared memory or not, from rows of any segment on.
 */
#include "gpu_hist_run.h"

/* What is asked for: WHERE a < 300 AND b <> 7, of computed and of stored columns by a key. */
struct TileCase
{
	GpuaggValueType key,
				a,
				b,
				f;
	int64_t		nbins;
	bool		nulls;			/* in a and f */
	int			input_bytes;	/* as the call says; what programs read may have no room */
};

static const std::vector<SlotCase> tile_slots = {
	{MONOID_COUNT, GPUAGG_VALUE_I8}, {MONOID_SUM_I64, GPUAGG_VALUE_I64}, {MONOID_SUM_I64, GPUAGG_VALUE_I64},
	{MONOID_MIN_I64, GPUAGG_VALUE_I64}, {MONOID_SUM_F64, GPUAGG_VALUE_F64}, {MONOID_MAX_I64, GPUAGG_VALUE_I64}
};

/* Columns of the rows of a segment, the call's from `first` on. */
struct TileRows
{
	Column		key,
				a,
				b,
				f;
	size_t		first;

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
	/* A column as slots and keys have it. */
	GpuaggColumn
	of_call(const Column &x) const
	{
		GpuaggColumn c = x.get();

		c.values = (const char *) c.values + first * size_of(c.type);
		c.validity = c.validity ? c.validity + first / 8 : nullptr;
		return c;
	}
};

static void
make_tile_program(const TileRows &rows, unsigned long long *untold, GpuaggProgram &p)
{
	memset((void *) &p, 0, sizeof(p));
	p.input[3] = rows.a.get();
	p.input[0] = rows.b.get();
	p.untold = untold;
	p.steps.filter = VECTOR_NONE;
	p.steps.constants[0].bits = 300;
	p.steps.constants[1].bits = 7;
	p.steps.nconstants = 2;
	p.steps.instructions[0] = {VECTOR_DEC_COMPARE | GPUAGG_CONDITION, VECTOR_NONE, GPUAGG_INPUT + 3, VECTOR_CONSTANT, 0, 1};
	p.steps.instructions[1] = {VECTOR_DEC_COMPARE | GPUAGG_CONDITION, VECTOR_NONE, GPUAGG_INPUT, VECTOR_CONSTANT + 1, 0, 5};
	p.steps.instructions[2] = {VECTOR_DEC_SUB, 0, GPUAGG_INPUT + 3, GPUAGG_INPUT, 0, 0};
	p.steps.instructions[3] = {VECTOR_DEC_ADD, VECTOR_NONE, 0, GPUAGG_INPUT, 0, 0};
	p.steps.ninstructions = 4;
}

static void
expect_tiles(const TileRows &rows, size_t n, HistExpected &expect)
{
	for (size_t i = rows.first; i < rows.first + n; i++)
	{
		int64_t		bin = (int64_t) rows.key.in[i].lo,
					a = (int64_t) rows.a.in[i].lo,
					b = (int64_t) rows.b.in[i].lo;

		if (!rows.a.ok(i) || a >= 300 || b == 7)
			continue;
		expect.step(0, bin, {0, 0});
		/* a - b + b and a - b */
		expect.step(1, bin, {(uint64_t) a, 0});
		expect.step(2, bin, {(uint64_t) (a - b), 0});
		expect.step(3, bin, {(uint64_t) a, 0});
		if (rows.f.ok(i))
			expect.step(4, bin, rows.f.in[i]);
		expect.step(5, bin, {(uint64_t) b, 0});
	}
}

static void
check_tiles(const TileCase &c, size_t first, size_t n, uint64_t seed)
{
	Random		r(seed);
	TileRows	rows(c, first, n, r);
	DeviceArray<unsigned long long> untold(std::vector<unsigned long long>{0});
	std::vector<GpuaggProgram> host(1);
	HistExpected expect(tile_slots, c.nbins);
	HistActual	actual(tile_slots, c.nbins, 16);
	GpuaggHist	h = GpuaggHist();
	GpuaggColumn sum = {nullptr, nullptr, GPUAGG_VALUE_I64, 1, GPUAGG_LAST},
				difference = {nullptr, nullptr, GPUAGG_VALUE_I64, 1, 0};
	char		what[100];

	make_tile_program(rows, untold.get(), host[0]);
	DeviceArray<GpuaggProgram> program(host);

	h.strategy = GPUAGG_HIST_TILES;
	h.program = program.get();
	h.temporaries = 1;
	h.input_bytes = c.input_bytes;
	h.input_row = (int64_t) first;
	h.bins.kind = GPUAGG_BIN_RANGE;
	h.bins.ncolumns = 1;
	h.bins.column[0] = rows.of_call(rows.key);
	h.bins.extent[0] = h.bins.nbins = c.nbins;
	h.nslots = (int) tile_slots.size();
	h.nrows = (int64_t) n;
	for (size_t s = 0; s < tile_slots.size(); s++)
		h.slot[s].op = tile_slots[s].op;
	h.slot[1].x = sum;
	h.slot[2].x = difference;
	h.slot[3].x = rows.of_call(rows.a);
	h.slot[4].x = rows.of_call(rows.f);
	h.slot[5].x = rows.of_call(rows.b);
	actual.attach(h);
	for (int call = 0; call < 2; call++)
	{
		hist_update(h);
		expect_tiles(rows, n, expect);
	}
	snprintf(what, sizeof(what), "%zu rows from %zu on, %ld bins, types %d %d %d %d, %d bytes of inputs", n, first,
			 (long) c.nbins, c.key, c.a, c.b, c.f, c.input_bytes);
	actual.check(expect, what);
	CHECK(untold.take()[0] == 0, "%s: %llu rows untold", what, untold.take()[0]);
}

/*
 * Every width as input, key and slot's column; with no room for inputs, for some, and for more than there are; where
 * bins leave hardly any; ends of tiles and of a thread's rows.
 */
GPU_TEST(hist_tiles)
{
	const GpuaggValueType i8 = GPUAGG_VALUE_I8,
				i16 = GPUAGG_VALUE_I16,
				i32 = GPUAGG_VALUE_I32,
				i64 = GPUAGG_VALUE_I64,
				f32 = GPUAGG_VALUE_F32,
				f64 = GPUAGG_VALUE_F64;
	const TileCase cases[] = {
		{i32, i32, i64, f64, 4, false, 12},
		{i32, i32, i64, f64, 4, true, 12},
		{i8, i16, i8, f32, 100, false, 3},
		{i8, i16, i8, f32, 100, true, 0},
		{i16, i64, i16, f64, 1000, true, 10},
		{i64, i8, i32, f32, 7, false, 5},
		{i64, i64, i64, f64, 1000, true, 100},
		{i32, i64, i64, f64, 4000, false, 16},
		{i32, i64, i32, f64, 4300, true, 12},
	};
	const size_t most = gpu_test_quick() ? 20011 : 1000003;
	uint64_t	seed = 7700;

	for (const TileCase &c : cases)
	{
		for (size_t n : {(size_t) 1, (size_t) 3, (size_t) 4, (size_t) 131, (size_t) 2048, most})
			check_tiles(c, n % 2 ? 64 : 0, n, seed++);
		check_tiles(c, 4096, gpu_test_quick() ? 9000 : 600000, seed++);
	}
}

/* More columns than are staged, of which some are the same and some are inputs, too; temporaries beside them. */
static void
check_many_columns(int64_t nbins, bool nulls, int input_bytes, size_t n, uint64_t seed)
{
	const int	ncolumns = 14;
	Random		r(seed);
	std::vector<SlotCase> slots;
	std::vector<std::unique_ptr<Column>> column;
	Column		key;
	std::vector<GpuaggProgram> host(1);
	DeviceArray<unsigned long long> untold(std::vector<unsigned long long>{0});
	GpuaggHist	h = GpuaggHist();
	const GpuaggValueType types[] = {GPUAGG_VALUE_I64, GPUAGG_VALUE_I8, GPUAGG_VALUE_I32, GPUAGG_VALUE_I16};
	char		what[100];

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
	host[0].untold = untold.get();
	host[0].steps.filter = VECTOR_NONE;
	for (int c = 0; c < ncolumns; c++)
		host[0].input[c] = column[c]->get();
	/* temporaries 0 and 1: the least of two small columns and itself */
	host[0].steps.instructions[0] = {VECTOR_DEC_ADD, 0, GPUAGG_INPUT + 1, GPUAGG_INPUT + 2, 0, 0};
	host[0].steps.instructions[1] = {VECTOR_DEC_ADD, 1, GPUAGG_INPUT + 3, GPUAGG_INPUT + 5, 0, 0};
	host[0].steps.instructions[2] = {VECTOR_DEC_SUB, VECTOR_NONE, 0, 1, 0, 0};
	host[0].steps.ninstructions = 3;
	DeviceArray<GpuaggProgram> program(host);
	HistExpected expect(slots, nbins);
	HistActual	actual(slots, nbins, 16);

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
			h.slot[s].x = {nullptr, nullptr, GPUAGG_VALUE_I64, 1, s == 2 ? (uint16_t) GPUAGG_LAST : (uint16_t) s};
		else
			h.slot[s].x = column[(s * 5) % ncolumns]->get();
	}
	for (size_t i = 0; i < n; i++)
		for (size_t s = 0; s < slots.size(); s++)
		{
			auto		v = [&](int c) { return (int64_t) column[c]->in[i].lo; };
			bool		left = column[1]->ok(i) && column[2]->ok(i),
						right = column[3]->ok(i) && column[5]->ok(i);
			int64_t		a = v(1) + v(2),
						b = v(3) + v(5);

			if (s == 0 && left)
				expect.step(s, key.in[i].lo, {(uint64_t) a, 0});
			if (s == 1 && right)
				expect.step(s, key.in[i].lo, {(uint64_t) b, 0});
			if (s == 2 && left && right)
				expect.step(s, key.in[i].lo, {(uint64_t) (a - b), 0});
			if (s >= 3 && column[(s * 5) % ncolumns]->ok(i))
				expect.step(s, key.in[i].lo, column[(s * 5) % ncolumns]->in[i]);
		}
	actual.attach(h);
	hist_update(h);
	snprintf(what, sizeof(what), "%ld bins, NULLs %d, %d bytes of inputs, %zu rows", (long) nbins, nulls, input_bytes, n);
	actual.check(expect, what);
}

GPU_TEST(hist_tiles_columns)
{
	uint64_t	seed = 8800;
	const size_t n = gpu_test_quick() ? 20011 : 1000003;

	for (int64_t nbins : {1L, 30L, 700L, 1100L})
		for (bool nulls : {false, true})
			for (int input_bytes : {0, 20, 1000})
				check_many_columns(nbins, nulls, input_bytes, n, seed++);
}

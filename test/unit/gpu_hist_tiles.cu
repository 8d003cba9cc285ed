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

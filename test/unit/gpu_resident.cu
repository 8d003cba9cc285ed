/*
 * gpu_resident.cu
 *	  Tests the server's kernels on stored columns: programs of vector operations, masks of row
 *	  ranges, and bitmaps at any bit offset. Reference: the same operations
 *	  (operators/vector_run.h) on the host, and loops over bits.
 */
#include <math.h>

#include "gpu_test.h"
#include "operators/vector_run.h"
#include "device_cuda/kernels.h"

/* ---- operations and the types of their operands ---- */

enum ValueKind
{
	KIND_I8,
	KIND_I16,
	KIND_I32,
	KIND_U32,
	KIND_I64,
	KIND_F32,
	KIND_F64,
	KIND_ANY /* any of the others */
};

struct OpInfo
{
	const char *name;
	int op;
	int result; /* kind of the result; NaNs may differ in their bits */
	int a, b;
};

static const OpInfo scalar_ops[] = {
#define OP1(FUNC, R, A, ...) {#FUNC, VECTOR_##FUNC, KIND_##R, KIND_##A, KIND_##A},
#define OP2(FUNC, R, A, B, ...) {#FUNC, VECTOR_##FUNC, KIND_##R, KIND_##A, KIND_##B},
#define HOST1(...)
#define HOST2(...)
#include "operators/vector_ops.h"
#undef OP1
#undef OP2
#undef HOST1
#undef HOST2
};

/* Returns a random integer of `bits` bits, often a special one or near the ends of its range. */
static int64_t
random_integer(Random &r, int bits)
{
	static const int64_t special[] = {0,
									  1,
									  -1,
									  2,
									  -2,
									  3,
									  7,
									  10,
									  59,
									  60,
									  100,
									  INT8_MIN,
									  INT8_MAX,
									  INT16_MIN,
									  INT16_MAX,
									  INT32_MIN,
									  INT32_MAX,
									  INT64_MIN,
									  INT64_MAX,
									  INT64_MIN + 1,
									  INT64_C(1) << 53,
									  86400000000,
									  -730119,
									  72000000};
	int64_t v = r.below(3) == 0 ? special[r.below(sizeof(special) / sizeof(special[0]))] :
								  (int64_t) r.next() >> r.below(63);

	/* sign-extended, as in a register */
	return bits == 64 ? v : (int64_t) ((uint64_t) v << (64 - bits)) >> (64 - bits);
}

static double
random_double(Random &r)
{
	static const double special[] = {0.0,
									 -0.0,
									 1,
									 -1,
									 0.5,
									 -0.5,
									 1.5,
									 2.5,
									 INFINITY,
									 -INFINITY,
									 NAN,
									 1e308,
									 -1e308,
									 5e-324,
									 2147483647.0,
									 2147483648.0,
									 9.2233720368547758e18,
									 -9.2233720368547758e18,
									 32767.5,
									 1e-7,
									 3e38};

	if (r.below(3) == 0)
		return special[r.below(sizeof(special) / sizeof(special[0]))];
	return (r.uniform() - 0.5) * pow(10, (double) r.below(40) - 10);
}

/* Returns a random value of a kind, in the form of a program's register. */
static int64_t
random_value(Random &r, int kind)
{
	switch (kind == KIND_ANY ? (int) r.below(KIND_ANY) : kind)
	{
		case KIND_I8:
			return random_integer(r, 8);
		case KIND_I16:
			return random_integer(r, 16);
		case KIND_I32:
		case KIND_U32:
			return random_integer(r, 32);
		case KIND_F32:
			return vector_bits_F32((float) random_double(r));
		case KIND_F64:
			return vector_bits_F64(random_double(r));
		default:
			return random_integer(r, 64);
	}
}

/* Returns whether two register values of a kind are equal. All NaNs are equal. */
static bool
same_value(int kind, int64_t x, int64_t y)
{
	if (kind == KIND_F64 && isnan(vector_get_F64(x)))
		return isnan(vector_get_F64(y));
	if (kind == KIND_F32 && isnan(vector_get_F32(x)))
		return isnan(vector_get_F32(y));
	return x == y;
}

/* ---- a program on host and device ---- */

struct Stored
{
	int type;
	std::vector<int64_t> values; /* the bytes of a column of the type */
	std::vector<uint64_t> bits;
};

/* Returns a column of n random values of a kind. */
static Stored
make_stored(Random &r, int type, int kind, size_t n, bool nulls)
{
	Stored s;

	s.type = type;
	s.values.assign(n, 0);
	s.bits.assign(n / 64 + 1, ~(uint64_t) 0);
	for (size_t i = 0; i < n; i++)
	{
		int64_t v = random_value(r, kind);

		memcpy((char *) s.values.data() + i * wire_width(type), &v, wire_width(type));
		if (nulls && r.below(5) == 0)
			s.bits[i / 64] &= ~((uint64_t) 1 << (i % 64));
	}
	return s;
}

/* Returns value i of a stored column as a program loads it. */
static int64_t
stored_value(const Stored &s, size_t i)
{
	const char *at = (const char *) s.values.data() + i * wire_width(s.type);

	switch (s.type)
	{
		case WIRE_I8:
			return *(const int8_t *) at;
		case WIRE_I16:
			return *(const int16_t *) at;
		case WIRE_I32:
			return *(const int32_t *) at;
		case WIRE_F32:
			return *(const uint32_t *) at;
		default:
			return *(const int64_t *) at;
	}
}

struct Outcome
{
	std::vector<std::vector<int64_t>> values; /* values of each output, by row; 0 for NULLs */
	std::vector<std::vector<bool>> valid;
	std::vector<uint8_t> filter;
	unsigned long long undetermined = 0;
};

/* Runs the program on the host over n rows, from row `first` on. */
static Outcome
run_on_host(const VectorProgram &p, const std::vector<Stored> &stored,
			const std::vector<ProgramOutput> &outputs, const std::vector<uint8_t> *mask,
			size_t first, size_t n)
{
	const int tile = 512;
	std::vector<int64_t> values(tile * VECTOR_MAX_REGISTERS);
	std::vector<uint8_t> states(tile * VECTOR_MAX_REGISTERS);
	Outcome out;

	out.values.resize(outputs.size());
	out.valid.resize(outputs.size());
	for (size_t at = 0; at < n; at += tile)
	{
		int rows = n - at < (size_t) tile ? (int) (n - at) : tile;

		for (uint32_t i = 0; i < p.ninstructions; i++)
		{
			const VectorInstruction &in = p.instructions[i];

			if (in.op != VECTOR_LOAD)
				vector_run(&in, p.constants, values.data(), states.data(), tile, 0, 1, rows);
			else
				for (int row = 0; row < rows; row++)
				{
					size_t j = first + at + row;

					values[in.r * tile + row] = stored_value(stored[in.a], j);
					states[in.r * tile + row] =
						stored[in.a].bits[j / 64] >> (j % 64) & 1 ? VECTOR_VALUE : VECTOR_NULL;
				}
		}
		for (int row = 0; row < rows; row++)
		{
			bool counts = !mask || (*mask)[at + row];
			bool undetermined = false;

			if (counts && p.filter != VECTOR_NONE)
			{
				VectorOperand o =
					vector_operand(p.filter, p.constants, values.data(), states.data(), tile);

				undetermined = vector_state(&o, row) == VECTOR_UNDETERMINED;
				counts = undetermined ||
					(vector_state(&o, row) == VECTOR_VALUE && vector_value(&o, row) != 0);
			}
			for (size_t c = 0; c < outputs.size(); c++)
			{
				VectorOperand o = vector_operand(outputs[c].operand, p.constants, values.data(),
												 states.data(), tile);
				int state = vector_state(&o, row);

				undetermined |= counts &&
					(state == VECTOR_UNDETERMINED ||
					 (state == VECTOR_NULL && !outputs[c].nullable && !outputs[c].filter));
				out.values[c].push_back(state == VECTOR_VALUE ? vector_value(&o, row) : 0);
				out.valid[c].push_back(state == VECTOR_VALUE);
			}
			out.undetermined += undetermined;
			out.filter.push_back(counts && !undetermined);
		}
	}
	return out;
}

/* Runs the program on host and device, and compares. result: the kind of the outputs' values. */
static void
check_program(const char *name, const VectorProgram &p, const std::vector<Stored> &stored,
			  std::vector<ProgramOutput> outputs, const std::vector<uint8_t> *mask, size_t first,
			  size_t n, int result)
{
	Outcome expected = run_on_host(p, stored, outputs, mask, first, n);
	std::vector<DeviceArray<int64_t> *> values;
	std::vector<DeviceArray<uint64_t> *> bits;
	DeviceArray<uint8_t> filter(n);
	DeviceArray<unsigned long long> undetermined(std::vector<unsigned long long>(1, 0));
	std::vector<ProgramRun> run(1);
	size_t words = (n + 63) / 64;

	memset(run.data(), 0, sizeof(ProgramRun));
	run[0].program = p;
	run[0].undetermined = undetermined.get();
	for (size_t i = 0; i < stored.size(); i++)
	{
		values.push_back(new DeviceArray<int64_t>(stored[i].values));
		bits.push_back(new DeviceArray<uint64_t>(stored[i].bits));
		run[0].input[i] = DeviceColumn{values.back()->get(), (const uint8_t *) bits.back()->get(),
									   stored[i].type};
	}
	run[0].noutputs = (int) outputs.size();
	for (size_t c = 0; c < outputs.size(); c++)
	{
		ProgramOutput &out = run[0].output[c];

		values.push_back(new DeviceArray<int64_t>(n));
		bits.push_back(new DeviceArray<uint64_t>(words));
		out = outputs[c];
		out.values = values.back()->get();
		out.validity = out.validity ? (uint32_t *) bits.back()->get() : nullptr;
	}
	if (mask)
		filter.put(*mask);

	DeviceArray<ProgramRun> on_device(run);

	STATUS_MUST(device_run_program(on_device.get(), (int) p.nregisters, (int64_t) first,
								   (int64_t) n, mask ? filter.get() : nullptr, filter.get(),
								   nullptr));
	CHECK(filter.take() == expected.filter, "%s: the filter differs", name);
	CHECK(undetermined.take()[0] == expected.undetermined,
		  "%s: %llu rows undetermined, expected %llu", name, undetermined.take()[0],
		  expected.undetermined);
	CHECK(filter.guards_intact(), "%s: filter overrun", name);
	for (size_t c = 0; c < outputs.size(); c++)
	{
		std::vector<int64_t> got = values[stored.size() + c]->take();
		std::vector<uint64_t> valid(words, ~(uint64_t) 0);

		if (outputs[c].validity)
			valid = bits[stored.size() + c]->take();
		for (size_t i = 0; i < n; i++)
		{
			int64_t v = 0;

			if (!expected.filter[i])
				continue;
			memcpy(&v, (char *) got.data() + i * outputs[c].width, outputs[c].width);
			if (outputs[c].width < 8)
				v = (int64_t) ((uint64_t) v << (64 - 8 * outputs[c].width)) >>
					(64 - 8 * outputs[c].width);
			if (outputs[c].width == 4 && result == KIND_F32)
				v = (uint32_t) v;
			CHECK(!outputs[c].validity || (valid[i / 64] >> (i % 64) & 1) == expected.valid[c][i],
				  "%s: row %zu: NULL on one side", name, i);
			CHECK(same_value(result, expected.values[c][i], v), "%s: row %zu: %llx, expected %llx",
				  name, i, (long long) v, (long long) expected.values[c][i]);
		}
		CHECK(values[stored.size() + c]->guards_intact() &&
				  bits[stored.size() + c]->guards_intact(),
			  "%s: overrun", name);
	}
	for (auto v : values)
		delete v;
	for (auto b : bits)
		delete b;
}

/* ---- every operation ---- */

static VectorInstruction
make_instruction(int op, int r, int a, int b, int c, int data)
{
	return VectorInstruction{(uint16_t) op, (uint16_t) r, (uint16_t) a,
							 (uint16_t) b,  (uint16_t) c, (uint16_t) data};
}

/* Returns an output of a program without memory. `nullable`: it will have validity bits. */
static ProgramOutput
make_output(int operand, int width, bool nullable, bool filter)
{
	return ProgramOutput{
		nullptr, nullable ? (uint32_t *) 1 : nullptr, (uint16_t) operand, (uint8_t) width, filter,
		nullable};
}

/* Checks an operation over three columns, then with a constant as the second operand. */
static void
check_op(Random &r, const OpInfo &info, int data, int c)
{
	size_t n = gpu_test_quick() ? 300 : 5000;
	std::vector<Stored> stored;

	for (int form = 0; form < 2; form++)
	{
		VectorProgram p;
		int b = 1;

		memset(&p, 0, sizeof(p));
		stored.clear();
		stored.push_back(make_stored(r, WIRE_I64, info.a, n, true));
		stored.push_back(make_stored(r, WIRE_I64, info.b, n, true));
		stored.push_back(make_stored(r, WIRE_I64, KIND_I8, n, true));
		p.nregisters = 4;
		p.filter = VECTOR_NONE;
		for (int i = 0; i < 3; i++)
			p.instructions[p.ninstructions++] = make_instruction(VECTOR_LOAD, i, i, 0, 0, WIRE_I64);
		for (p.nconstants = 0; p.nconstants < 6; p.nconstants++)
			p.constants[p.nconstants] =
				VectorConstant{random_value(r, info.b), (uint32_t) (r.below(12) == 0), 0};
		if (info.op == VECTOR_BUCKET)
		{
			p.constants[0] = VectorConstant{vector_bits_F64(-3), 0, 0};
			p.constants[1] = VectorConstant{vector_bits_F64(1e6), 0, 0};
			p.constants[2] = VectorConstant{17, 0, 0};
		}
		if (form || vector_has_list(info.op))
			b = VECTOR_CONSTANT;
		p.instructions[p.ninstructions++] = make_instruction(info.op, 3, 0, b, c < 0 ? 2 : c, data);
		check_program(info.name, p, stored, {make_output(3, 8, true, false)}, nullptr, 0, n,
					  info.result);
	}
}

GPU_TEST(resident_scalar_operations)
{
	Random r(1);

	for (const OpInfo &info : scalar_ops)
		check_op(r, info, 0, -1);
}

GPU_TEST(resident_other_operations)
{
	Random r(2);

	for (int op = VECTOR_AND; op <= VECTOR_IS_NOT_UNKNOWN; op++)
		check_op(r, OpInfo{"logic", op, KIND_I64, KIND_I8, KIND_I8}, 0, -1);
	for (int op = VECTOR_SELECT; op <= VECTOR_GREATEST; op++)
		check_op(r, OpInfo{"choice", op, KIND_I64, KIND_I8, KIND_I64}, 0, -1);
	for (int data = 0; data < 4; data++)
		check_op(r, OpInfo{"in", VECTOR_IN, KIND_I64, KIND_I8, KIND_I8}, data, 6);
	for (int scale = 0; scale <= 18; scale++)
		check_op(r, OpInfo{"rescale", VECTOR_DEC_RESCALE, KIND_I64, KIND_I64, KIND_I64}, scale, -1);
	for (int op = VECTOR_DEC_ADD; op <= VECTOR_DEC_MOD; op++)
		check_op(r, OpInfo{"decimal", op, KIND_I64, KIND_I64, KIND_I64}, 0, -1);
	for (int digits = 0; digits <= VECTOR_MOST_POWER; digits++)
		for (int mode = VECTOR_ROUND_HALF; mode <= VECTOR_ROUND_CEIL; mode++)
			check_op(r, OpInfo{"round", VECTOR_DEC_ROUND, KIND_I64, KIND_I64, KIND_I64},
					 digits | mode << VECTOR_ROUND_SHIFT, -1);
	for (int data = 0; data < 8; data++)
		check_op(r, OpInfo{"compare", VECTOR_DEC_COMPARE, KIND_I64, KIND_I64, KIND_I64}, data, -1);
	for (int scale = 0; scale <= 22; scale++)
		check_op(r, OpInfo{"float8", VECTOR_DEC_FLOAT8, KIND_F64, KIND_I64, KIND_I64}, scale, -1);
	for (int data = 0; data < 128; data++)
		check_op(r,
				 OpInfo{"time", VECTOR_TIME, data & VECTOR_TIME_FLOAT ? KIND_F64 : KIND_I64,
						data & VECTOR_TIME_DATE ? KIND_I32 : KIND_I64, KIND_I32},
				 data, -1);
	check_op(r, OpInfo{"key part", VECTOR_KEY_PART, KIND_I64, KIND_I64, KIND_I64}, 0, -1);
	for (int data = 0; data < 2; data++)
	{
		check_op(r, OpInfo{"bucket", VECTOR_BUCKET, KIND_I64, KIND_F64, KIND_F64}, data, -1);
		check_op(r, OpInfo{"F32_CODE", VECTOR_F32_CODE, KIND_I64, KIND_F32, KIND_F32}, data, -1);
		check_op(r, OpInfo{"F64_CODE", VECTOR_F64_CODE, KIND_I64, KIND_F64, KIND_F64}, data, -1);
		check_op(r, OpInfo{"F32_BELOW", VECTOR_F32_BELOW, KIND_F32, KIND_F32, KIND_F64}, data, -1);
		check_op(r, OpInfo{"F64_BELOW", VECTOR_F64_BELOW, KIND_F64, KIND_F64, KIND_F64}, data, -1);
	}
	for (int unit = 0; unit <= EXACT_PARTS_LAST_UNIT; unit += gpu_test_quick() ? 97 : 7)
		for (int high = 0; high < 2; high++)
		{
			check_op(r, OpInfo{"F32_PART", VECTOR_F32_PART, KIND_I64, KIND_F32, KIND_F32},
					 2 * unit + high, -1);
			check_op(r, OpInfo{"F64_PART", VECTOR_F64_PART, KIND_I64, KIND_F64, KIND_F64},
					 2 * unit + high, -1);
		}
	check_op(r, OpInfo{"truth", VECTOR_TRUTH, KIND_I64, KIND_I8, KIND_I8}, 0, -1);
	check_op(r, OpInfo{"unsigned", VECTOR_UNSIGNED, KIND_I64, KIND_U32, KIND_U32}, 0, -1);
	check_op(r, OpInfo{"presence", VECTOR_PRESENCE, KIND_I64, KIND_ANY, KIND_ANY}, 0, -1);
	check_op(r, OpInfo{"determined", VECTOR_DETERMINED, KIND_I64, KIND_ANY, KIND_ANY}, 0, -1);
}

/* ---- columns of all widths, many registers, masks, rows that start anywhere ---- */

GPU_TEST(resident_programs)
{
	static const int all_types[] = {WIRE_I8, WIRE_I16, WIRE_I32, WIRE_I64, WIRE_F32, WIRE_F64};
	static const int kinds[] = {KIND_I8, KIND_I16, KIND_I32, KIND_I64, KIND_F32, KIND_F64};
	Random r(3);

	for (int round = 0; round < (gpu_test_quick() ? 20 : 300); round++)
	{
		size_t first = 64 * r.below(10);
		size_t n = 1 + r.below(round % 10 == 0 ? 200000 : 5000);
		int registers = 3 + (int) r.below(VECTOR_MAX_REGISTERS - 3);
		VectorProgram p;
		std::vector<Stored> stored;
		std::vector<ProgramOutput> outputs;
		std::vector<uint8_t> mask(n);
		int type = (int) r.below(6);

		memset(&p, 0, sizeof(p));
		p.nregisters = registers;
		stored.push_back(make_stored(r, all_types[type], kinds[type], first + n, r.below(2)));
		stored.push_back(make_stored(r, WIRE_I8, KIND_I8, first + n, r.below(2)));
		stored.push_back(make_stored(r, WIRE_I32, KIND_I32, first + n, r.below(2)));
		p.instructions[p.ninstructions++] =
			make_instruction(VECTOR_LOAD, 0, 0, 0, 0, all_types[type]);
		p.instructions[p.ninstructions++] = make_instruction(VECTOR_LOAD, 1, 1, 0, 0, WIRE_I8);
		p.instructions[p.ninstructions++] = make_instruction(VECTOR_LOAD, 2, 2, 0, 0, WIRE_I32);
		/* sums and logic that use all registers */
		for (int i = 3; i < registers; i++)
			p.instructions[p.ninstructions++] = r.below(2) ?
				make_instruction(VECTOR_AND, i, i == 3 ? 1 : i - 1, 1, 0, 0) :
				make_instruction(VECTOR_F_INT4PL, i, 2, (int) r.below(i), 0, 0);
		p.filter = r.below(3) == 0 ? VECTOR_NONE : 1 + (int) r.below(registers - 1);
		outputs.push_back(make_output(0, wire_width(all_types[type]), r.below(2), r.below(2)));
		for (size_t i = 0; i < n; i++)
			mask[i] = r.below(4) != 0;
		check_program("program", p, stored, outputs, r.below(2) ? &mask : nullptr, first, n,
					  kinds[type] == KIND_F32 || kinds[type] == KIND_F64 ? kinds[type] : KIND_I64);
	}
}

GPU_TEST(resident_masks)
{
	Random r(4);

	for (int round = 0; round < 100; round++)
	{
		int64_t first = 64 * r.below(100);
		size_t n = 1 + r.below(round % 10 == 0 ? 3000000 : 3000);
		std::vector<StoreSpan> spans;
		std::vector<uint8_t> expected(n, 0);
		int64_t at = first - (int64_t) r.below(200);

		while (at < first + (int64_t) n)
		{
			StoreSpan s = {at + (int64_t) r.below(50), 1 + (int64_t) r.below(round % 3 ? 300 : 3)};

			for (int64_t i = s.first; i < s.first + s.nrows; i++)
				if (i >= first && i < first + (int64_t) n)
					expected[i - first] = 1;
			spans.push_back(s);
			at = s.first + s.nrows + 1;
		}

		DeviceArray<StoreSpan> on_device(spans);
		DeviceArray<uint8_t> mask(n);
		DeviceArray<int32_t> bins(n);
		std::vector<int32_t> expected_bins(n);

		STATUS_MUST(device_mask(on_device.get(), (int) spans.size(), first, (int64_t) n, mask.get(),
								nullptr));
		CHECK(mask.take() == expected && mask.guards_intact(), "wrong mask of %zu rows", n);
		STATUS_MUST(device_filter_bins(mask.get(), (int64_t) n, bins.get(), nullptr));
		for (size_t i = 0; i < n; i++)
			expected_bins[i] = expected[i] - 1;
		CHECK(bins.take() == expected_bins && bins.guards_intact(), "wrong bins of %zu rows", n);
	}
}

GPU_TEST(resident_bitmaps)
{
	Random r(5);

	for (int round = 0; round < 200; round++)
	{
		size_t words = 1 + r.below(round % 10 == 0 ? 20000 : 60);
		std::vector<uint64_t> bits(words), from;
		int64_t first = (int64_t) r.below(64 * words);
		int64_t n = 1 + (int64_t) r.below(64 * words - first);
		bool given = r.below(4) != 0;

		for (auto &w : bits)
			w = r.next();
		for (int64_t i = 0; i < (n + 63) / 64; i++)
			from.push_back(r.next());

		DeviceArray<uint64_t> on_device(bits), source(from);

		for (int64_t i = 0; i < n; i++)
		{
			uint64_t bit = given ? from[i / 64] >> (i % 64) & 1 : 1;
			uint64_t &word = bits[(first + i) / 64];

			word = (word & ~((uint64_t) 1 << ((first + i) % 64))) | bit << ((first + i) % 64);
		}
		STATUS_MUST(
			device_put_bits(given ? source.get() : nullptr, on_device.get(), first, n, nullptr));
		CHECK(on_device.take() == bits && on_device.guards_intact(),
			  "wrong bitmap: %lld bits from bit %lld on", (long long) n, (long long) first);
	}
}

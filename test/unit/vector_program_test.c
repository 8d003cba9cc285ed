/*
 * vector_program_test.c
 *	  Tests vector programs (operators/vector_program.h, operators/vector_run.h).
 *
 * Checks how registers hold values, the states of results for NULL and undetermined operands, known
 * answers, the calendar day by day, and which programs are rejected. Truth tables and the calendar
 * have references in this file.
 */
#include "unit.h"

#include "operators/vector_run.h"

#define TILE 64
#define REGISTERS 4

static int64_t values[REGISTERS * TILE];
static uint8_t states[REGISTERS * TILE];
static VectorConstant constants[8];

/* Runs an operation for one row: a, b and c are registers 0 to 2, its result is register 3. */
static VectorCell
run_one(int op, int data, VectorCell a, VectorCell b, VectorCell c)
{
	VectorInstruction in = {(uint16_t) op, 3, 0, 1, 2, (uint16_t) data};
	VectorCell args[3] = {a, b, c};

	for (int r = 0; r < 3; r++)
	{
		values[r * TILE + 5] = args[r].value;
		states[r * TILE + 5] = args[r].state;
	}
	vector_run(&in, constants, values, states, TILE, 5, TILE, TILE);
	return vector_cell(values[3 * TILE + 5], states[3 * TILE + 5]);
}

/* Returns a cell that has a value, neither NULL nor undetermined. */
static VectorCell
value_of(int64_t value)
{
	return vector_cell(value, VECTOR_VALUE);
}

static const VectorCell no_value = {0, VECTOR_NULL};
static const VectorCell undetermined = {0, VECTOR_UNDETERMINED};

/*
 * Returns whether two cells have the same state and, unless NULL or undetermined, the same value.
 */
static int
same(VectorCell a, VectorCell b)
{
	return a.state == b.state && (a.state != VECTOR_VALUE || a.value == b.value);
}

/* Random values of each type, frequently near its bounds, as the bits of a register. */
static int64_t
random_I8(void)
{
	return (int8_t) (random_below(2) ? random_below(2) : (int64_t) random_u64());
}

/* Returns a random integer of `bits` bits, often near 0 or near the ends of its range. */
static int64_t
random_edge(int bits)
{
	int64_t min = bits == 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1));

	switch (random_below(5))
	{
		case 0:
			return min + random_below(2);
		case 1:
			return -1 - min - random_below(2);
		case 2:
			return random_below(5) - 2;
		default:
			return (int64_t) random_u64() >> (64 - bits + random_below(bits));
	}
}

static int64_t
random_I16(void)
{
	return random_edge(16);
}

static int64_t
random_I32(void)
{
	return random_edge(32);
}

static int64_t
random_U32(void)
{
	return random_edge(32);
}

static int64_t
random_I64(void)
{
	return random_edge(64);
}

static double
random_double(void)
{
	switch (random_below(8))
	{
		case 0:
			return random_below(2) ? -0.0 : 0.0;
		case 1:
			return random_below(2) ? INFINITY : -INFINITY;
		case 2:
			return NAN;
		case 3:
			return (random_below(2) ? -1 : 1) * (random_below(2) ? 1.7e308 : 5e-324);
		default:
			return ldexp(random_unit() - 0.5, (int) random_below(80) - 20);
	}
}

static int64_t
random_F64(void)
{
	return vector_bits_F64(random_double());
}

static int64_t
random_F32(void)
{
	return vector_bits_F32((float) random_double());
}

/*
 * Returns whether the bits are the canonical form of a value of the type: reading and writing keeps
 * them.
 */
#define IS_CANONICAL(NAME) \
	static int is_canonical_##NAME(int64_t bits) \
	{ \
		return vector_bits_##NAME(vector_get_##NAME(bits)) == bits; \
	}
IS_CANONICAL(I8)
IS_CANONICAL(I16)
IS_CANONICAL(I32)
IS_CANONICAL(I64)
IS_CANONICAL(F32)
IS_CANONICAL(F64)

/* Checks one operation of vector_ops.h for the operands a and b, in all states. */
static void
check_scalar(int op, int nargs, int64_t a, int64_t b, int (*is_canonical)(int64_t))
{
	VectorCell r = run_one(op, 0, value_of(a), value_of(b), no_value);
	VectorCell again;

	CHECK(r.state == VECTOR_VALUE || r.state == VECTOR_UNDETERMINED,
		  "operation %d: state %d of values", op, r.state);
	CHECK(is_canonical(r.value), "operation %d: %lld is no value of its type in a register", op,
		  (long long) r.value);
	CHECK(run_one(op, 0, no_value, value_of(b), no_value).state == VECTOR_NULL,
		  "operation %d of NULL", op);
	CHECK(run_one(op, 0, undetermined, value_of(b), no_value).state == VECTOR_UNDETERMINED,
		  "operation %d of undetermined", op);
	if (nargs == 2)
	{
		CHECK(run_one(op, 0, value_of(a), no_value, no_value).state == VECTOR_NULL,
			  "operation %d by NULL", op);
		CHECK(run_one(op, 0, no_value, undetermined, no_value).state == VECTOR_UNDETERMINED,
			  "operation %d of NULL and undetermined", op);
	}
	/* again, with a constant as the second operand and the result in place of the first */
	constants[0].bits = b;
	constants[0].state = VECTOR_VALUE;
	{
		VectorInstruction in = {(uint16_t) op, 0, 0, VECTOR_CONSTANT, 0, 0};

		values[5] = a;
		states[5] = VECTOR_VALUE;
		vector_run(&in, constants, values, states, TILE, 5, TILE, TILE);
		again = vector_cell(values[5], states[5]);
	}
	CHECK(same(r, again), "operation %d in place, with a constant", op);
}

static void
scalar_operations(void)
{
	for (int i = 0; i < 2000; i++)
	{
#define OP1(FUNC, R, A, ...) check_scalar(VECTOR_##FUNC, 1, random_##A(), 0, is_canonical_##R);
#define OP2(FUNC, R, A, B, ...) \
	check_scalar(VECTOR_##FUNC, 2, random_##A(), random_##B(), is_canonical_##R);
#define HOST1(...)
#define HOST2(...)
#include "operators/vector_ops.h"
#undef OP1
#undef OP2
#undef HOST1
#undef HOST2
	}
}

/* Known answers. A row that would raise an error is undetermined. */
static void
known_answers(void)
{
	CHECK(
		same(run_one(VECTOR_F_INT4PL, 0, value_of(INT32_MAX), value_of(1), no_value), undetermined),
		"int4 overflows");
	CHECK(
		same(run_one(VECTOR_F_INT8PL, 0, value_of(INT64_MAX), value_of(1), no_value), undetermined),
		"int8 overflows");
	CHECK(same(run_one(VECTOR_F_INT8MUL, 0, value_of(INT64_MIN), value_of(-1), no_value),
			   undetermined),
		  "int8 product");
	CHECK(same(run_one(VECTOR_F_INT4DIV, 0, value_of(7), value_of(0), no_value), undetermined),
		  "division by zero");
	CHECK(same(run_one(VECTOR_F_INT4DIV, 0, value_of(-7), value_of(2), no_value), value_of(-3)),
		  "division");
	CHECK(same(run_one(VECTOR_F_INT24PL, 0, value_of(-5), value_of(3), no_value), value_of(-2)),
		  "int2 + int4");
	CHECK(same(run_one(VECTOR_F_OIDLT, 0, value_of(-1), value_of(1), no_value), value_of(0)),
		  "oids have no sign");
	CHECK(same(run_one(VECTOR_UNSIGNED, 0, value_of(-1), no_value, no_value), value_of(UINT32_MAX)),
		  "unsigned");
	CHECK(same(run_one(VECTOR_F_FLOAT8GT, 0, value_of(vector_bits_F64(NAN)),
					   value_of(vector_bits_F64(INFINITY)), no_value),
			   value_of(1)),
		  "NaN is above all");
	CHECK(same(run_one(VECTOR_F_FLOAT8_FLOAT4, 0, value_of(vector_bits_F32(-1.5f)), no_value,
					   no_value),
			   value_of(vector_bits_F64(-1.5))),
		  "float4 as float8");
	CHECK(same(run_one(VECTOR_DEC_RESCALE, 3, value_of(-12), no_value, no_value), value_of(-12000)),
		  "rescale");
	CHECK(same(run_one(VECTOR_DEC_RESCALE, 18, value_of(10), no_value, no_value), undetermined),
		  "rescale too far");
	CHECK(same(run_one(VECTOR_DEC_MOD, 0, value_of(-7), value_of(4), no_value), value_of(-3)),
		  "remainder");
	CHECK(
		same(run_one(VECTOR_DEC_MOD, 0, value_of(INT64_MIN), value_of(-1), no_value), value_of(0)),
		"remainder of -1");
	CHECK(same(run_one(VECTOR_DEC_MOD, 0, value_of(7), value_of(0), no_value), undetermined),
		  "remainder of zero");
	CHECK(same(run_one(VECTOR_DEC_SIGN, 0, value_of(-7), no_value, no_value), value_of(-1)),
		  "sign");
	CHECK(same(run_one(VECTOR_DEC_FLOAT8, 1, value_of(15), no_value, no_value),
			   value_of(vector_bits_F64(1.5))),
		  "decimal as float8");
	CHECK(same(run_one(VECTOR_DEC_FLOAT8, 22, value_of(15), no_value, no_value),
			   value_of(vector_bits_F64(15 / 1e22))),
		  "decimal of many digits as float8");
	CHECK(same(run_one(VECTOR_F64_BELOW, 1, value_of(vector_bits_F64(-0.0)),
					   value_of(vector_bits_F64(1)), no_value),
			   undetermined),
		  "-0 is undetermined if the sign of zero matters");
	CHECK(same(run_one(VECTOR_F64_BELOW, 0, value_of(vector_bits_F64(-2)),
					   value_of(vector_bits_F64(2)), no_value),
			   undetermined),
		  "a large float is undetermined");
	for (int op = VECTOR_DEC_RESCALE; op <= VECTOR_UNSIGNED; op++)
	{
		CHECK(vector_has_list(op) ||
				  run_one(op, 1, no_value, value_of(1), no_value).state == VECTOR_NULL,
			  "operation %d of NULL", op);
		CHECK(vector_has_list(op) ||
				  run_one(op, 1, undetermined, value_of(1), no_value).state == VECTOR_UNDETERMINED,
			  "operation %d of undetermined", op);
	}
}

/* Rounds decimals in all modes. */
static void
rounding(void)
{
	for (int mode = VECTOR_ROUND_HALF; mode <= VECTOR_ROUND_CEIL; mode++)
	{
		/* results for 2.4, 2.5, 2.6, -2.4, -2.5 and -2.6 */
		static const int64_t rounded[][6] = {{2, 3, 3, -2, -3, -3},
											 {2, 2, 2, -2, -2, -2},
											 {2, 2, 2, -3, -3, -3},
											 {3, 3, 3, -2, -2, -2}};
		static const int64_t values[] = {24, 25, 26, -24, -25, -26};

		for (int i = 0; i < 6; i++)
			CHECK(same(run_one(VECTOR_DEC_ROUND, 1 | mode << VECTOR_ROUND_SHIFT,
							   value_of(values[i]), no_value, no_value),
					   value_of(rounded[mode][i])),
				  "rounding %d of %d", mode, (int) values[i]);
		CHECK(same(run_one(VECTOR_DEC_ROUND, 0 | mode << VECTOR_ROUND_SHIFT, value_of(INT64_MIN),
						   no_value, no_value),
				   value_of(INT64_MIN)),
			  "rounding of 0 digits");
		CHECK(same(run_one(VECTOR_DEC_ROUND, 18 | mode << VECTOR_ROUND_SHIFT,
						   value_of(INT64_C(-9000000000000000000)), no_value, no_value),
				   value_of(-9)),
			  "rounding of 18 digits");
	}
	CHECK(same(run_one(VECTOR_DEC_ROUND, 18, value_of(INT64_MAX), no_value, no_value), value_of(9)),
		  "rounding of the largest value");
}

/* All combinations of FALSE, TRUE, NULL and undetermined, compared with truth tables. */
/* Checks both parts of a float with this unit. */
static void
check_part(double x, int unit)
{
	double lowest = ldexp(1, unit - 1074);
	int fits = isfinite(x) && fabs(x) < ldexp(lowest, EXACT_PARTS_LOW + 62) && fmod(x, lowest) == 0;
	VectorCell high =
		run_one(VECTOR_F64_PART, 2 * unit + 1, value_of(vector_bits_F64(x)), no_value, no_value);
	VectorCell low =
		run_one(VECTOR_F64_PART, 2 * unit, value_of(vector_bits_F64(x)), no_value, no_value);

	CHECK(high.state == (fits ? VECTOR_VALUE : VECTOR_UNDETERMINED) && low.state == high.state,
		  "%a with unit %d: states %d and %d", x, unit, high.state, low.state);
	if (!fits)
		return;
	CHECK(low.value >= 0 && gpuagg_exact_value(high.value, low.value, unit) == x,
		  "%a with unit %d: parts %lld and %lld", x, unit, (long long) high.value,
		  (long long) low.value);
	if (x == (float) x)
		CHECK(same(run_one(VECTOR_F32_PART, 2 * unit, value_of(vector_bits_F32((float) x)),
						   no_value, no_value),
				   low),
			  "%a as a float4 with unit %d", x, unit);
}

static void
parts(void)
{
	static const double values[] = {
		0.0,     -0.0,     1,     -1,       0.1, -0.1,      5e-324,    -5e-324,  DBL_MIN, -DBL_MIN,
		DBL_MAX, -DBL_MAX, 1e300, INFINITY, NAN, -INFINITY, 0x1p-1023, 0x1p1023, 3};

	for (int unit = 0; unit <= EXACT_PARTS_LAST_UNIT; unit++)
	{
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
			check_part(values[i], unit);
		/* near both ends of what fits, with few and with many bits */
		for (int i = 0; i < 200; i++)
		{
			int exponent = unit - 1074 + (int) random_below(140) - 6;

			check_part(ldexp(random_unit() - 0.5, exponent), unit);
			check_part(ldexp((int) random_below(31) - 15, exponent), unit);
		}
	}
	/* units that no query has are harmless */
	check_part(1e300, 32767);
	check_part(-5e-324, 32767);
}

static void
logic(void)
{
	const VectorCell cells[4] = {value_of(0), value_of(1), no_value, undetermined};

	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
		{
			/* rows and columns are FALSE, TRUE, NULL, undetermined; a is evaluated first */
			static const int and[4][4] = {{0, 0, 0, 0}, {0, 1, 2, 3}, {0, 2, 2, 3}, {3, 3, 3, 3}};
			static const int or [4][4] = {{0, 1, 2, 3}, {1, 1, 1, 1}, {2, 1, 2, 3}, {3, 3, 3, 3}};
			VectorCell a = cells[i];
			VectorCell b = cells[j];

			CHECK(same(run_one(VECTOR_AND, 0, a, b, no_value), cells[and[i][j]]), "%d AND %d", i,
				  j);
			CHECK(same(run_one(VECTOR_OR, 0, a, b, no_value), cells[or[i][j]]), "%d OR %d", i, j);
			CHECK(same(run_one(VECTOR_COALESCE, 0, a, b, no_value), i == 2 ? b : a),
				  "COALESCE(%d, %d)", i, j);
			CHECK(same(run_one(VECTOR_NULLIF, 0, a, b, no_value),
					   j == 3     ? undetermined :
						   j == 1 ? no_value :
									a),
				  "NULLIF of %d, equal %d", i, j);
			for (int k = 0; k < 4; k++)
			{
				VectorCell c = cells[k];

				CHECK(same(run_one(VECTOR_SELECT, 0, a, b, c),
						   i == 3     ? undetermined :
							   i == 1 ? b :
										c),
					  "CASE WHEN %d THEN %d ELSE %d", i, j, k);
				CHECK(same(run_one(VECTOR_DISTINCT, 0, a, b, c),
						   i == 3 || j == 3     ? undetermined :
							   i == 2 || j == 2 ? value_of(i != j) :
							   k == 3           ? undetermined :
												  value_of(k == 0 || (k == 2 && c.value == 0))),
					  "%d IS DISTINCT FROM %d, equal %d", i, j, k);
				CHECK(same(run_one(VECTOR_GREATEST, 0, a, b, c),
						   i == 3 || j == 3 ? undetermined :
							   i == 2       ? b :
							   j == 2       ? a :
							   k == 3       ? undetermined :
							   k == 1       ? b :
											  a),
					  "GREATEST(%d, %d), replaced %d", i, j, k);
			}
		}
	for (int i = 0; i < 4; i++)
	{
		static const int tests[6][3] = {{0, 1, 0}, {1, 0, 1}, {1, 0, 0},
										{0, 1, 1}, {0, 0, 1}, {1, 1, 0}};

		for (int t = 0; t < 6; t++)
			CHECK(same(run_one(VECTOR_IS_TRUE + t, 0, cells[i], no_value, no_value),
					   i == 3 ? undetermined : value_of(tests[t][i])),
				  "boolean test %d of %d", t, i);
		CHECK(same(run_one(VECTOR_ISNULL, 0, cells[i], no_value, no_value),
				   i == 3 ? undetermined : value_of(i == 2)),
			  "%d IS NULL", i);
		CHECK(same(run_one(VECTOR_DETERMINED, 0, cells[i], no_value, no_value),
				   i == 3 ? undetermined : value_of(1)),
			  "%d is determined", i);
		CHECK(same(run_one(VECTOR_PRESENCE, 0, cells[i], no_value, no_value),
				   i >= 2 ? cells[i] : value_of(1)),
			  "presence of %d", i);
	}
}

static void
lists(void)
{
	VectorInstruction in = {VECTOR_IN, 3, 0, VECTOR_CONSTANT + 1, 3, 0};
	const int64_t list[3] = {-4, 2, 7};

	for (int i = 0; i < 3; i++)
		constants[1 + i].bits = list[i];
	for (int data = 0; data < 4; data++)
		for (int v = -5; v < 9; v++)
		{
			int found = v == -4 || v == 2 || v == 7;

			in.data = (uint16_t) data;
			values[0] = v;
			states[0] = VECTOR_VALUE;
			vector_run(&in, constants, values, states, TILE, 0, 1, 1);
			CHECK(same(vector_cell(values[3 * TILE], states[3 * TILE]),
					   !found && (data & VECTOR_IN_NULL) ?
						   no_value :
						   value_of(found != (data & VECTOR_IN_NEGATE))),
				  "%d in the list, %d", v, data);
		}
}

/* All days of the years 1 to 3299, counted from the first, and random days of all years. */
static void
calendar(void)
{
	static const int lengths[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int day = (int) VECTOR_DAY_MIN;
	int weekday = 1; /* 0001-01-01 was a Monday */

	for (int year = 1; year < 3300; year++)
	{
		int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
		int first = day;

		for (int month = 1; month <= 12; month++)
			for (int d = 1; d <= lengths[month - 1] + (leap && month == 2);
				 d++, day++, weekday = (weekday + 1) % 7)
			{
				int y, m, md;

				vector_split_day(day, &y, &m, &md);
				CHECK(y == year && m == month && md == d, "day %d is %d-%d-%d, not %d-%d-%d", day,
					  year, month, d, y, m, md);
				CHECK(vector_calendar(VECTOR_DOW, 0, day) == weekday, "%d-%d-%d: day of the week",
					  year, month, d);
				CHECK(vector_calendar(VECTOR_DOY, 0, day) == day - first + 1,
					  "%d-%d-%d: day of the year", year, month, d);
				CHECK(vector_calendar(VECTOR_MONTH, 1, day) == day - d + 1,
					  "%d-%d-%d: first day of the month", year, month, d);
				CHECK(vector_calendar(VECTOR_YEAR, 1, day) == first,
					  "%d-%d-%d: first day of the year", year, month, d);
				CHECK(d != 4 || month != 1 || vector_calendar(VECTOR_WEEK, 0, day) == 1,
					  "%d-01-04 is in week 1", year);
				CHECK(weekday != 1 || vector_calendar(VECTOR_WEEK, 1, day) == day,
					  "%d-%d-%d: a Monday begins a week", year, month, d);
				CHECK(weekday == 1 ||
						  vector_calendar(VECTOR_WEEK, 0, day) ==
							  vector_calendar(VECTOR_WEEK, 0, day - 1),
					  "%d-%d-%d: a week has seven days", year, month, d);
			}
	}
	for (int i = 0; i < 200000; i++)
	{
		int32_t random_day =
			(int32_t) (VECTOR_DAY_MIN + random_below(VECTOR_DAY_MAX - VECTOR_DAY_MIN + 1));
		int y, m, md;

		vector_split_day(random_day, &y, &m, &md);
		CHECK(vector_month_first(y, m) + md - 1 == random_day,
			  "day %d is the day of its year, month and day", random_day);
	}
}

static void
rejected_programs(void)
{
	static VectorProgram p;
	uint64_t set;

	p.ninstructions = 2;
	p.nregisters = 2;
	p.nconstants = 3;
	p.filter = 1;
	p.instructions[0] = (VectorInstruction){VECTOR_LOAD, 0, 1, 0, 0, 3};
	p.instructions[1] = (VectorInstruction){VECTOR_F_INT4LT, 1, 0, VECTOR_CONSTANT, 0, 0};
	CHECK(vector_program_valid(&p, 2, 11, &set) && set == 3, "a valid program is accepted");
	CHECK(!vector_program_valid(&p, 1, 11, &set), "a column that does not exist is rejected");
	CHECK(!vector_program_valid(&p, 2, 3, &set), "a type that does not exist is rejected");
	p.filter = 2;
	CHECK(!vector_program_valid(&p, 2, 11, &set),
		  "a filter register that no instruction sets is rejected");
	p.filter = VECTOR_NONE;
	p.instructions[1].a = 1;
	CHECK(!vector_program_valid(&p, 2, 11, &set),
		  "an operand register that no instruction sets is rejected");
	p.instructions[1] = (VectorInstruction){VECTOR_BUCKET, 1, 0, VECTOR_CONSTANT + 1, 0, 0};
	CHECK(!vector_program_valid(&p, 2, 11, &set), "a bucket with too few constants is rejected");
	p.instructions[1] = (VectorInstruction){VECTOR_IN, 1, 0, VECTOR_CONSTANT + 1, 3, 0};
	CHECK(!vector_program_valid(&p, 2, 11, &set), "a list with too few constants is rejected");
	p.instructions[1].c = 2;
	CHECK(vector_program_valid(&p, 2, 11, &set), "a list is accepted");
	p.instructions[1].op = VECTOR_OPS;
	CHECK(!vector_program_valid(&p, 2, 11, &set), "an operation that does not exist is rejected");
}

/*
 * A table with wide cells for the integers 5 to 7 and for NULL.
 */
static void
lookups(void)
{
	const VectorTable tables[2] = {{0}, {.base = 5, .n = 3, .form = VECTOR_CELLS_WIDE}};
	const struct
	{
		int64_t cells[4];
		uint8_t states[8];
	} table = {{50, 60, 70, 80}, {VECTOR_VALUE, VECTOR_NULL, VECTOR_UNDETERMINED, VECTOR_VALUE}};
	const uint8_t *const cells[2] = {NULL, (const uint8_t *) &table};
	const int64_t expected[6] = {50, 0, 0, 80, 0, 0};
	const uint8_t outcome[6] = {VECTOR_VALUE, VECTOR_NULL,         VECTOR_UNDETERMINED,
								VECTOR_VALUE, VECTOR_UNDETERMINED, VECTOR_UNDETERMINED};
	int64_t values[12] = {5, 6, 7, 99, 8, INT64_MIN};
	uint8_t states[12] = {VECTOR_VALUE, VECTOR_VALUE, VECTOR_VALUE,
						  VECTOR_NULL,  VECTOR_VALUE, VECTOR_VALUE};
	VectorInstruction in = {VECTOR_LOOKUP, 1, 0, 0, 0, 1};

	vector_lookup(&in, tables, cells, NULL, values, states, 6, 0, 1, 6);
	for (int i = 0; i < 6; i++)
		CHECK(states[6 + i] == outcome[i] &&
				  (outcome[i] != VECTOR_VALUE || values[6 + i] == expected[i]),
			  "row %d", i);
	states[0] = VECTOR_UNDETERMINED;
	vector_lookup(&in, tables, cells, NULL, values, states, 6, 0, 1, 1);
	CHECK(states[6] == VECTOR_UNDETERMINED, "undetermined stays undetermined");
}

/* Tables with narrow cells for the integers 5 to 7, and one for NULL and all other integers. */
static void
narrow_lookups(void)
{
	const int forms[] = {VECTOR_CELLS_BITS, 1, 2, 4};
	const uint64_t bits[1] = {0x5};
	const uint8_t cells1[8] = {1, 0, 201, 0};
	const uint16_t cells2[4] = {1, 0, 40001, 0};
	const uint32_t cells4[4] = {1, 0, UINT32_MAX, 0};
	const uint8_t *const cells[] = {(const uint8_t *) bits, cells1, (const uint8_t *) cells2,
									(const uint8_t *) cells4};
	const int64_t last[] = {-100, 100, 39900, -100 + (int64_t) UINT32_MAX - 1};
	VectorInstruction in = {VECTOR_LOOKUP, 1, 0, 0, 0, 0};

	for (int f = 0; f < 4; f++)
	{
		VectorTable table = {.base = 5, .least = -100, .n = 3, .form = forms[f], .others = 1};
		int64_t values[12] = {5, 6, 7, 99, 8, INT64_MIN};
		uint8_t states[12] = {VECTOR_VALUE, VECTOR_VALUE, VECTOR_VALUE,
							  VECTOR_NULL,  VECTOR_VALUE, VECTOR_VALUE};

		vector_lookup(&in, &table, &cells[f], NULL, values, states, 6, 0, 1, 6);
		CHECK(states[6] == VECTOR_VALUE && values[6] == -100, "first cell of form %d", forms[f]);
		CHECK(states[8] == VECTOR_VALUE && values[8] == last[f], "last cell of form %d", forms[f]);
		for (int i = 1; i < 6; i++)
			CHECK(i == 2 || states[6 + i] == VECTOR_NULL, "NULL %d of form %d", i, forms[f]);
		table.others = 0;
		vector_lookup(&in, &table, &cells[f], NULL, values, states, 6, 0, 1, 6);
		CHECK(states[9] == VECTOR_NULL && states[10] == VECTOR_UNDETERMINED &&
				  states[11] == VECTOR_UNDETERMINED,
			  "others of form %d", forms[f]);
		CHECK(vector_table_bytes(&table) == (forms[f] == 4 ? 16 : 8), "bytes of form %d", forms[f]);
	}
}

/* Puts a key with its entry into a hash table. */
static void
add_slot(const VectorTable *table, uint64_t *words, int64_t key, uint64_t entry)
{
	uint64_t bits = vector_slot_key(table, key);
	uint32_t at = vector_first_slot(table, bits);

	while (vector_slot(table, (const uint8_t *) words, at).entry != 0)
		at = vector_next_slot(table, at);
	if (table->form == VECTOR_SLOTS_NARROW)
		words[at] = bits | (entry + 1) << 32;
	else
	{
		words[2 * at] = bits;
		words[2 * at + 1] = entry + 1;
	}
}

/* Hash tables of keys from -5 on, nearly full and full. */
static void
hash_tables(void)
{
	VectorInstruction in = {VECTOR_FIND, 1, 0, 0, 0, 0};

	for (int form = VECTOR_SLOTS_NARROW; form <= VECTOR_SLOTS_WIDE;
		 form += VECTOR_SLOTS_WIDE - VECTOR_SLOTS_NARROW)
		for (int nkeys = 0; nkeys <= 40; nkeys++)
		{
			VectorTable table = {.base = -5, .least = 77 + nkeys, .n = 39, .form = form};
			uint64_t words[80] = {0};
			const uint8_t *const cells[] = {(const uint8_t *) words};
			int64_t values[100];
			uint8_t states[100];

			CHECK(vector_table_bytes(&table) == (form == VECTOR_SLOTS_WIDE ? 640 : 320), "bytes");
			for (int k = 0; k < nkeys; k++)
				add_slot(&table, words, k * 3 - 5, 1000 + k);
			for (int i = 0; i < 47; i++)
			{
				values[i] = i * 3 - 5;
				states[i] = VECTOR_VALUE;
			}
			values[47] = -5 + (INT64_C(1) << 32); /* as -5, in 32 bits */
			values[48] = 99;
			states[47] = VECTOR_VALUE;
			states[48] = VECTOR_NULL;
			states[49] = VECTOR_UNDETERMINED;
			vector_lookup(&in, &table, cells, NULL, values, states, 50, 0, 1, 50);
			for (int i = 0; i < 47; i++)
				CHECK(i < nkeys ? states[50 + i] == VECTOR_VALUE && values[50 + i] == 1000 + i :
								  states[50 + i] == VECTOR_NULL,
					  "key %d of %d, form %d", i, nkeys, form);
			CHECK(states[97] == VECTOR_NULL, "a key outside of the range is not found");
			CHECK(states[98] == VECTOR_NULL && states[99] == VECTOR_UNDETERMINED,
				  "NULL and undetermined stay");
		}
}

/* Numbers of several keys. */
static void
key_parts(void)
{
	const VectorConstant list[] = {{-3, 0, 0}, {4, 0, 0}, {-3, 0, 0}, {100, 0, 0}};
	const VectorConstant halves[] = {
		{INT32_MIN, 0, 0}, {INT32_MAX, 0, 0}, {0, 0, 0}, {INT64_C(1) << 32, 0, 0}};

	for (int64_t key = -5; key < 7; key++)
	{
		VectorCell cell = vector_key_part(value_of(key), list);

		CHECK(key < -3 || key > 4 ? cell.state == VECTOR_NULL :
									same(cell, value_of((key + 3) * 100)),
			  "part of %d", (int) key);
	}
	CHECK(vector_key_part(no_value, list).state == VECTOR_NULL, "part of NULL");
	CHECK(vector_key_part(undetermined, list).state == VECTOR_UNDETERMINED,
		  "part of an undetermined key");
	CHECK(same(vector_key_part(value_of(INT32_MIN), halves), value_of(INT64_MIN)), "upper half");
}

/*
 * If an instruction can be simplified, checks that both give the same results. Returns whether it
 * can.
 */
static int
check_simplified(int op, int64_t (*draw_a)(void), int64_t (*draw_b)(void))
{
	VectorInstruction in = {(uint16_t) op, 3, 0, 1, 2, 0};
	VectorInstruction to = vector_simplify(in);

	if (memcmp(&in, &to, sizeof(in)) == 0)
		return 0;
	CHECK(to.op == VECTOR_DEC_COMPARE && to.r == in.r && to.a == in.a && to.b == in.b,
		  "operation %d", op);
	for (int i = 0; i < 2000; i++)
	{
		int small = random_below(3) == 0;
		VectorCell a = vector_cell(small ? (int64_t) random_below(3) : draw_a(),
								   random_below(4) ? VECTOR_VALUE : (int) random_below(3));
		VectorCell b = vector_cell(small ? (int64_t) random_below(3) : draw_b(),
								   random_below(4) ? VECTOR_VALUE : (int) random_below(3));

		CHECK(same(run_one(op, 0, a, b, a), run_one(to.op, to.data, a, b, a)),
			  "operation %d of %ld and %ld", op, (long) a.value, (long) b.value);
	}
	return 1;
}

static void
simplified_comparisons(void)
{
	int n = 0;

#define OP1(FUNC, R, A, rare, value) n += check_simplified(VECTOR_##FUNC, random_##A, random_##A);
#define OP2(FUNC, R, A, B, rare, value) \
	n += check_simplified(VECTOR_##FUNC, random_##A, random_##B);
#define HOST1(...)
#define HOST2(...)
#include "operators/vector_ops.h"
#undef OP1
#undef OP2
#undef HOST1
#undef HOST2
	CHECK(n == 15 * 6 + 3 * 2, "%d comparisons of integers", n);
}

int
main(void)
{
	RUN("simplified comparisons give the same results", simplified_comparisons);
	RUN("lookups find the cells of their table", lookups);
	RUN("lookups in narrow cells", narrow_lookups);
	RUN("hash tables", hash_tables);
	RUN("parts of keys", key_parts);
	RUN("scalar operations are strict and give values of their types", scalar_operations);
	RUN("known answers", known_answers);
	RUN("decimals are rounded in all modes", rounding);
	RUN("floats are split into parts", parts);
	RUN("logic of NULL and undetermined operands", logic);
	RUN("values are found in lists", lists);
	RUN("the calendar is right for each day", calendar);
	RUN("invalid programs are rejected", rejected_programs);
	return unit_done();
}

/*
 * tiles_test.c
 *	  Tests the programs of tiles that tiles_are_allowed derives from the program of a RESIDENT
 *	  message (device_cuda/tiles.c). Checks by hand-written programs which steps are
 *	  marked as conditions. Checks by random programs and rows that filter and values stay the
 *	  same.
 *
 * Reference: the original program, run over one row with vector_run.
 */
#include "abandon.h"
#include "operators/vector_run.h"
#include "device_cuda/device_internal.h"
#include "unit.h"

/* The input columns: two of integers, two of booleans. Then constants. */
#define COLUMNS 4
#define OUTPUTS 3
#define FALSE_CONSTANT VECTOR_CONSTANT
static const VectorConstant constants[] = {{.bits = 0, .state = VECTOR_VALUE},
										   {.bits = 1, .state = VECTOR_VALUE},
										   {.bits = 0, .state = VECTOR_NULL},
										   {.bits = 5, .state = VECTOR_VALUE},
										   {.bits = 2, .state = VECTOR_VALUE}};

#define CONSTANTS ((int) (sizeof(constants) / sizeof(constants[0])))

/* A program as the server has it, and the program of tiles made of it. */
typedef struct Case
{
	ResidentPlan plan;
	TileProgram tiles;
	bool boolean[VECTOR_MAX_INSTRUCTIONS]; /* the instruction's result is a boolean */
} Case;

/* Empties the case's program, except for the constants. */
static void
begin_program(Case *c)
{
	memset(c, 0, sizeof(*c));
	memcpy(c->plan.program.constants, constants, sizeof(constants));
	c->plan.program.nconstants = CONSTANTS;
	c->plan.program.filter = VECTOR_NONE;
	c->plan.computes = true;
}

/* Adds an instruction. Returns the register of its result. */
static uint16_t
emit(Case *c, VectorOp op, uint16_t a, uint16_t b, uint16_t third, bool boolean)
{
	VectorProgram *p = &c->plan.program;
	uint16_t r = (uint16_t) p->ninstructions;

	CHECK(r < VECTOR_MAX_REGISTERS, "the program has too many registers");
	c->boolean[r] = boolean;
	p->instructions[p->ninstructions++] = (VectorInstruction){op, r, a, b, third, 0};
	p->nregisters = p->ninstructions;
	return r;
}

/* Adds a condition with AND, in the form in which the client compiles WHERE. */
static void
filter_by(Case *c, uint16_t condition)
{
	uint16_t *filter = &c->plan.program.filter;

	*filter = *filter == VECTOR_NONE ?
		condition :
		emit(c, VECTOR_SELECT, *filter, condition, FALSE_CONSTANT, true);
}

/* Makes a program for tiles from the case's program, which tiles must support. */
static void
convert_to_tiles(Case *c)
{
	static WireQuery q;
	static WireResident in;
	static DeviceQuery query;

	query.q = &q;
	CHECK(tiles_are_allowed(&query, &in, &c->plan, &c->tiles),
		  "the program is not allowed in tiles");
}

/* ---- conditions ---- */

/*
 * Compares the conditions with `marks`, which has '1' for each step that is a condition, '0' for
 * others.
 */
static void
check_conditions(const Case *c, const char *marks, const char *what)
{
	const VectorProgram *p = &c->tiles.program.steps;
	char found[VECTOR_MAX_INSTRUCTIONS + 1] = "";

	for (uint32_t i = 0; i < p->ninstructions; i++)
		found[i] = p->instructions[i].op & GPUAGG_CONDITION ? '1' : '0';
	CHECK(strcmp(found, marks) == 0, "%s: steps are \"%s\", not \"%s\"", what, found, marks);
	CHECK((p->filter == VECTOR_NONE) == (strchr(marks, '1') != NULL), "%s: filter %x", what,
		  p->filter);
}

static void
test_condition_marks(void)
{
	static Case c;
	uint16_t x, first, second;

	begin_program(&c);
	x = emit(&c, VECTOR_LOAD, 0, 0, 0, false);
	first = emit(&c, VECTOR_F_INT8LT, x, VECTOR_CONSTANT + 3, 0, true);
	filter_by(&c, first);
	convert_to_tiles(&c);
	check_conditions(&c, "1", "one condition");
	second = emit(&c, VECTOR_IS_TRUE, emit(&c, VECTOR_LOAD, 2, 0, 0, true), 0, 0, true);
	filter_by(&c, second);
	filter_by(&c, emit(&c, VECTOR_F_INT8NE, x, VECTOR_CONSTANT + 4, 0, true));
	convert_to_tiles(&c);
	check_conditions(&c, "111", "three conditions");

	begin_program(&c);
	x = emit(&c, VECTOR_LOAD, 0, 0, 0, false);
	first = emit(&c, VECTOR_F_INT8LT, x, VECTOR_CONSTANT + 3, 0, true);
	second = emit(&c, VECTOR_F_INT8NE, x, VECTOR_CONSTANT + 4, 0, true);
	filter_by(&c, second);
	filter_by(&c, first);
	convert_to_tiles(&c);
	check_conditions(&c, "000", "conditions in another order than instructions");

	begin_program(&c);
	x = emit(&c, VECTOR_LOAD, 0, 0, 0, false);
	first = emit(&c, VECTOR_F_INT8LT, x, VECTOR_CONSTANT + 3, 0, true);
	c.plan.program.filter =
		emit(&c, VECTOR_SELECT, first, emit(&c, VECTOR_F_INT8NE, x, VECTOR_CONSTANT + 4, 0, true),
			 VECTOR_CONSTANT + 2, true);
	convert_to_tiles(&c);
	check_conditions(&c, "001", "a choice between a condition and NULL");
	c.plan.program.instructions[c.plan.program.filter].c = VECTOR_CONSTANT + 1;
	convert_to_tiles(&c);
	check_conditions(&c, "001", "a choice between a condition and true");
	c.plan.program.instructions[c.plan.program.filter].c = FALSE_CONSTANT;
	c.plan.ncols = 1;
	c.plan.cols[0] = (ResidentColumn){.stored = -1, .operand = c.plan.program.filter};
	convert_to_tiles(&c);
	check_conditions(&c, "001", "a choice that is also a column");
}

/* ---- rows ---- */

/* Returns a random register or constant of this type: boolean or integer. */
static uint16_t
draw_operand(const Case *c, bool boolean)
{
	const VectorProgram *p = &c->plan.program;
	int r = (int) random_below(p->ninstructions + 2);

	while (r < (int) p->ninstructions && c->boolean[r] != boolean)
		r++;
	if (r < (int) p->ninstructions)
		return (uint16_t) r;
	return (uint16_t) (VECTOR_CONSTANT + (boolean ? random_below(3) : 2 + random_below(3)));
}

/* Adds a random instruction whose operands exist. */
static void
draw_instruction(Case *c)
{
	uint16_t a = draw_operand(c, true), b = draw_operand(c, true), x = draw_operand(c, false),
			 y = draw_operand(c, false);

	switch (random_below(8))
	{
		case 0:
			emit(c, VECTOR_F_INT8LT, x, y, 0, true);
			break;
		case 1:
			emit(c, VECTOR_F_INT8DIV, x, y, 0, false);
			break;
		case 2:
			emit(c, VECTOR_SELECT, a, x, y, false);
			break;
		case 3:
		case 4:
			emit(c, VECTOR_SELECT, a, b, random_below(3) ? FALSE_CONSTANT : draw_operand(c, true),
				 true);
			break;
		case 5:
			emit(c, VECTOR_IS_TRUE, a, 0, 0, true);
			break;
		case 6:
			emit(c, VECTOR_DETERMINED, x, 0, 0, true);
			break;
		default:
			emit(c, random_below(2) ? VECTOR_AND : VECTOR_OR, a, b, 0, true);
	}
}

/* Returns the value of an operand for one row. */
static VectorCell
operand(uint16_t o, const VectorCell *registers, const VectorCell *columns, VectorCell last)
{
	if (o == GPUAGG_LAST)
		return last;
	if (o >= VECTOR_CONSTANT)
		return vector_cell(constants[o - VECTOR_CONSTANT].bits,
						   (int) constants[o - VECTOR_CONSTANT].state);
	return o >= GPUAGG_INPUT ? columns[o - GPUAGG_INPUT] : registers[o];
}

/* Updates *filter by a condition with the result x; see run_program(). */
static void
apply_condition(VectorCell x, int *filter)
{
	if (*filter == 1)
		*filter = x.state == VECTOR_UNDETERMINED ? -1 : x.state == VECTOR_VALUE && x.value != 0;
}

/*
 * Runs the program over one row, and returns the last result. Updates *filter: 1 true, 0 false or
 * NULL, -1 undetermined.
 */
static VectorCell
run_program(const VectorProgram *p, VectorCell *registers, const VectorCell *columns, int *filter)
{
	VectorCell last = {0, VECTOR_UNDETERMINED};

	for (uint32_t i = 0; i < p->ninstructions; i++)
	{
		VectorInstruction in = p->instructions[i];
		uint16_t from[3] = {in.a, in.b, in.c};
		int64_t values[4] = {0};
		uint8_t states[4] = {0};

		if (in.op == VECTOR_LOAD)
			last = columns[in.a];
		else
		{
			in.op &= ~GPUAGG_CONDITION;
			for (int k = 0; k < vector_operands(in.op); k++)
			{
				values[k] = operand(from[k], registers, columns, last).value;
				states[k] = operand(from[k], registers, columns, last).state;
			}
			in.a = 0;
			in.b = 1;
			in.c = 2;
			in.r = 3;
			vector_run(&in, constants, values, states, 1, 0, 1, 1);
			last = vector_cell(values[3], states[3]);
		}
		if (p->instructions[i].op & GPUAGG_CONDITION)
			apply_condition(last, filter);
		if (p->instructions[i].r != VECTOR_NONE)
			registers[p->instructions[i].r] = last;
	}
	if (p->filter != VECTOR_NONE)
		apply_condition(operand(p->filter, registers, columns, last), filter);
	return last;
}

/* Runs both forms of the program over a random row, and checks that they agree. */
static void
check_row(const Case *c, int number)
{
	VectorCell columns[COLUMNS], registers[VECTOR_MAX_REGISTERS],
		temporaries[VECTOR_MAX_REGISTERS] = {{0, VECTOR_UNDETERMINED}}, last;
	int expected_filter = 1, filter = 1;

	for (int i = 0; i < COLUMNS; i++)
		columns[i] =
			vector_cell(random_below(i < 2 ? 9 : 2), random_below(5) ? VECTOR_VALUE : VECTOR_NULL);
	run_program(&c->plan.program, registers, columns, &expected_filter);
	last = run_program(&c->tiles.program.steps, temporaries, columns, &filter);
	CHECK(filter == expected_filter, "program %d: the filter is %d, expected %d", number, filter,
		  expected_filter);
	for (int o = 0; o < c->plan.ncols && filter == 1; o++)
	{
		VectorCell got = operand(c->tiles.operand[o], temporaries, columns, last),
				   expected = operand(c->plan.cols[o].operand, registers, columns, last);

		CHECK(got.state == expected.state &&
				  (got.state != VECTOR_VALUE || got.value == expected.value),
			  "program %d, column %d: %ld, expected %ld", number, o, (long) got.value,
			  (long) expected.value);
	}
}

/* Random programs: their filter has several conditions, which other instructions may read. */
static void
test_random_programs(void)
{
	static Case c;
	int with_conditions = 0;

	for (int number = 0; number < 20000; number++)
	{
		int n = 1 + (int) random_below(4);

		begin_program(&c);
		for (uint16_t i = 0; i < COLUMNS; i++)
			emit(&c, VECTOR_LOAD, i, 0, 0, i >= 2);
		for (int i = 0; i < n; i++)
		{
			for (int more = (int) random_below(3); more > 0; more--)
				draw_instruction(&c);
			filter_by(&c,
					  random_below(3) ?
						  emit(&c, VECTOR_IS_TRUE, draw_operand(&c, true), 0, 0, true) :
						  draw_operand(&c, true));
		}
		for (int more = (int) random_below(3); more > 0; more--)
			draw_instruction(&c);
		c.plan.ncols = (int) random_below(OUTPUTS + 1);
		for (int o = 0; o < c.plan.ncols; o++)
			c.plan.cols[o] = (ResidentColumn){
				.stored = -1, .operand = draw_operand(&c, random_below(2)), .nullable = true};
		convert_to_tiles(&c);
		with_conditions += n > 1 && c.tiles.program.steps.filter == VECTOR_NONE;
		for (int row = 0; row < 8; row++)
			check_row(&c, number);
	}
	CHECK(with_conditions > 2000, "only %d programs have several conditions", with_conditions);
}

int
main(void)
{
	RUN("steps are marked as conditions", test_condition_marks);
	RUN("random programs keep filter and values", test_random_programs);
	return unit_done();
}

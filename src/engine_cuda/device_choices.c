/*
 * device_choices.c
 *	  Keys that are choices between values by reference (CASE, COALESCE), of rows that are cached on
 *	  the devices.
 *
 * The GPU chooses between codes.  If all parts are one column and constants, these are the column's
 * codes, and numbers below zero for the constants and NULL: the GPU replaces the code of a value
 * that is equal to a constant by the constant's number.  Other parts have codes of the query's own
 * dictionary.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "engine_cuda/device_rows.h"

/* Most constants of a choice. Each needs a lookup table. */
#define MOST_CONSTANTS 8

/* A choice between values of one column and constants. */
typedef struct Choice
{
	Resident *r;
	int c;
	Expr *column; /* NULL: none yet */
	AttrNumber attno;
	int nconstants;
	Datum constants[MOST_CONSTANTS];
	int stored;
} Choice;

/* Returns the place of a constant in the list; nconstants: it is not there. */
static int
find_constant(const Choice *choice, Datum value)
{
	const ColumnSpec *spec =
		&choice->r->cuda->spec->cols[choice->r->cuda->query->cols[choice->c].col];
	int i = 0;

	while (i < choice->nconstants &&
		   !datum_image_eq(choice->constants[i], value, spec->typbyval, spec->typlen))
		i++;
	return i;
}

/* Notes a part of a choice.  Returns whether it is the column or a constant. */
static bool
note_part(void *arg, const ExprPart *part)
{
	Choice *choice = arg;
	int i;

	if (part->constant)
	{
		i = part->null ? -1 : find_constant(choice, part->value);
		if (i < choice->nconstants)
			return true;
		if (choice->nconstants == MOST_CONSTANTS)
			return false;
		choice->constants[choice->nconstants++] = part->value;
		return true;
	}
	if (part->attno == 0 || (choice->column && part->attno != choice->attno))
		return false;
	choice->column = part->expr;
	choice->attno = part->attno;
	return true;
}

/*
 * Returns the condition that the column is equal to a constant of the key's type; NULL: the type's
 * equality is not the key's.
 */
static Expr *
equals_constant(const Choice *choice, Datum value)
{
	const CudaColumn *col = &choice->r->cuda->query->cols[choice->c];
	const ColumnSpec *spec = &choice->r->cuda->spec->cols[col->col];
	const TypeCacheEntry *type = lookup_type_cache(spec->typid, TYPECACHE_EQ_OPR_FINFO);
	Oid declared = exprType((Node *) choice->column);
	Expr *arg = (Expr *) copyObject(choice->column);
	Oid left, right;

	if (!OidIsValid(type->eq_opr) || type->eq_opr_finfo.fn_oid != col->equality->eqfunc)
		return NULL;
	op_input_types(type->eq_opr, &left, &right);
	if (IsPolymorphicType(left))
		right = spec->typid;
	else if (declared != left)
		arg =
			(Expr *) makeRelabelType(arg, left, -1, col->equality->collation, COERCE_IMPLICIT_CAST);
	return make_opclause(type->eq_opr, BOOLOID, false, arg,
						 (Expr *) makeConst(right, -1, col->equality->collation, spec->typlen,
											value, false, spec->typbyval),
						 InvalidOid, col->equality->collation);
}

/* Returns the operand of a part in the column's codes. */
static uint16
column_part(void *arg, const ExprPart *part)
{
	Choice *choice = arg;
	ExprProgram *p = choice->r->program;
	uint16 code;

	if (part->constant)
		return expr_program_constant(
			p, part->null ? 0 : COLUMN_CONSTANT - find_constant(choice, part->value), part->null);
	code = expr_program_codes(p, part->expr, &choice->stored);
	for (int i = 0; i < choice->nconstants && code != VECTOR_NONE; i++)
	{
		Expr *equals = equals_constant(choice, choice->constants[i]);
		uint16 is = equals ? expr_program_lookup(p, equals, COLUMN_I8, 0, -1, false) : VECTOR_NONE;

		if (is == VECTOR_NONE)
			return expr_program_reject(p, "a key has constants that cannot be compared on the GPU");
		code = expr_program_emit(p, VECTOR_SELECT, 0, is,
								 expr_program_constant(p, COLUMN_CONSTANT - i, false), code);
	}
	return code == VECTOR_NONE ?
		expr_program_reject(p, "a column of a key has no codes on the GPU") :
		code;
}

/* Copies the constants of a choice for the groups. */
static void
keep_constants(const Choice *choice)
{
	CudaQuery *query = choice->r->cuda->query;
	CudaColumn *col = &query->cols[choice->c];
	const ColumnSpec *spec = &choice->r->cuda->spec->cols[col->col];
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(query));

	for (int i = 0; i < col->nconstants && !spec->typbyval; i++)
		pfree(DatumGetPointer(col->constants[i]));
	if (col->constants == NULL)
		col->constants = palloc(MOST_CONSTANTS * sizeof(Datum));
	for (int i = 0; i < choice->nconstants; i++)
		col->constants[i] = datumCopy(choice->constants[i], spec->typbyval, spec->typlen);
	col->nconstants = choice->nconstants;
	MemoryContextSwitchTo(old);
}

uint16
resident_choice(Resident *r, int c, const ExprRoot *root)
{
	Choice choice = {.r = r, .c = c};
	uint16 operand;

	if (root->vec == NULL || root->vec->type != COLUMN_DATUM ||
		!expr_program_look(r->program, root->vec, note_part, &choice) || choice.column == NULL ||
		(r->program->joins && choice.attno > r->program->joins->natts) ||
		(choice.nconstants > 0 && equals_constant(&choice, choice.constants[0]) == NULL))
		return VECTOR_NONE;
	operand = expr_program_choose(r->program, root->vec, column_part, &choice);
	if (operand == VECTOR_NONE)
		return VECTOR_NONE;
	keep_constants(&choice);
	r->coded[c] = choice.stored;
	r->chosen[c] = true;
	return operand;
}

/* Returns the code of a value, or of NULL, in the query's own dictionary. */
static uint16
encoded_constant(Resident *r, int c, Datum value, bool null)
{
	uint8 state = null ? VECTOR_NULL : VECTOR_VALUE;
	int64 code = 0;

	resident_encode(r, c, &value, &state, 1, &code);
	return expr_program_constant(r->program, code, false);
}

/* Returns the operand of a part in codes of the query's own dictionary. */
static uint16
encoded_part(void *arg, const ExprPart *part)
{
	Choice *choice = arg;
	ExprProgram *p = choice->r->program;
	uint16 operand;

	if (part->constant)
		return part->null ? expr_program_constant(p, 0, true) :
							encoded_constant(choice->r, choice->c, part->value, false);
	operand = part->expr ? expr_program_lookup(p, part->expr, COLUMN_DATUM, 0, choice->c, true) :
						   VECTOR_NONE;
	return operand == VECTOR_NONE ? expr_program_reject(p, KEY_OF_SEVERAL) : operand;
}

uint16
resident_encoded_choice(Resident *r, int c, const ExprRoot *root)
{
	Choice choice = {.r = r, .c = c};
	uint16 operand;

	if (root->vec == NULL || root->vec->type != COLUMN_DATUM)
		return VECTOR_NONE;
	operand = expr_program_choose(r->program, root->vec, encoded_part, &choice);
	if (operand == VECTOR_NONE || r->cuda->query->cols[c].travel == TRAVEL_SET_CODES)
		return operand;
	return expr_program_emit(r->program, VECTOR_COALESCE, 0, operand,
							 encoded_constant(r, c, (Datum) 0, true), 0);
}

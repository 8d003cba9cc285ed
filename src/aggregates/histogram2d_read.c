/*
 * histogram2d_read.c
 *	  Functions that read the array of gpu_histogram2d: its bins as rows, and a heat map.
 *
 * The array has a row for each bin of x, and a column for each bin of y. It has no information
 * about its bounds. The caller also passes the arguments of the histogram.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "aggregates/histogram.h"

PG_FUNCTION_INFO_V1(gpu_histogram2d_bins);
PG_FUNCTION_INFO_V1(gpu_heatmap);

/* The array of a histogram of two dimensions, of bigint or double precision. */
typedef struct Grid
{
	BinSpec x, y;
	Oid elemtype;
	int height; /* bins of y, those before and after the bounds included */
	Datum *values;
	bool *nulls;
	int n;
} Grid;

/* Returns the bins of one dimension, between bounds. */
static BinSpec
dimension(double lo, double hi, int width)
{
	BinSpec bins = {BIN_UNIFORM, lo, hi, width - 2};

	bins.formula = histogram_formula(lo, hi, bins.n);
	return bins;
}

/*
 * Returns the histogram in arguments (xlo, xhi, ylo, yhi, counts). Raises an error if they are not
 * valid. function: name of the SQL function.
 */
static Grid
read_grid(FunctionCallInfo fcinfo, const char *function)
{
	ArrayType *array = PG_GETARG_ARRAYTYPE_P(4);
	Grid grid = {.elemtype = ARR_ELEMTYPE(array)};

	if (grid.elemtype != INT8OID && grid.elemtype != FLOAT8OID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("counts of %s must be of type bigint[] or double precision[]", function)));
	if (ARR_NDIM(array) != 2 || ARR_DIMS(array)[0] < 3 || ARR_DIMS(array)[1] < 3)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("counts of %s must be a two-dimensional array with at least 3 rows of 3 "
						"elements",
						function),
				 errhint("The first and the last row and column count values before and after the "
						 "bins.")));
	grid.x = dimension(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1), ARR_DIMS(array)[0]);
	grid.y = dimension(PG_GETARG_FLOAT8(2), PG_GETARG_FLOAT8(3), ARR_DIMS(array)[1]);
	histogram_check_grid(function, &grid.x, &grid.y);
	grid.height = ARR_DIMS(array)[1];
	deconstruct_array(array, grid.elemtype, 8, true, TYPALIGN_DOUBLE, &grid.values, &grid.nulls,
					  &grid.n);
	return grid;
}

/* Returns an element as a number; 0 for NULL and NaN. */
static double
number(const Grid *grid, int i)
{
	double value;

	if (grid->nulls[i])
		return 0;
	value = grid->elemtype == INT8OID ? (double) DatumGetInt64(grid->values[i]) :
										DatumGetFloat8(grid->values[i]);
	return isnan(value) ? 0 : value;
}

/* (xlo, xhi, ylo, yhi, counts) */
Datum
gpu_histogram2d_bins(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Grid grid = read_grid(fcinfo, "gpu_histogram2d_bins");
	double *lower = palloc(grid.height * sizeof(double));
	double *upper = palloc(grid.height * sizeof(double));
	double xlower = 0, xupper = 0;

	InitMaterializedSRF(fcinfo, 0);
	for (int y = 0; y < grid.height; y++)
		histogram_bounds(&grid.y, y, true, &lower[y], &upper[y]);
	for (int i = 0; i < grid.n; i++)
	{
		int x = i / grid.height, y = i % grid.height;
		bool rownulls[7] = {false, false, false, false, false, false, grid.nulls[i]};
		Datum row[7];

		CHECK_FOR_INTERRUPTS();
		if (y == 0)
			histogram_bounds(&grid.x, x, true, &xlower, &xupper);
		row[0] = Int32GetDatum(x);
		row[1] = Float8GetDatum(xlower);
		row[2] = Float8GetDatum(xupper);
		row[3] = Int32GetDatum(y);
		row[4] = Float8GetDatum(lower[y]);
		row[5] = Float8GetDatum(upper[y]);
		row[6] = grid.values[i];
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row, rownulls);
	}
	return (Datum) 0;
}

/* ---- heat map ----------------------------------------------------------------- */

/* What a heat map is drawn with, in UTF-8 and in other encodings. */
typedef struct Palette
{
	const char *shades[5]; /* what cells show, from no rows up to the largest number of rows */
	const char *side, *corner, *bottom;
} Palette;

static const Palette blocks = {{"  ", "\342\226\221\342\226\221", "\342\226\222\342\226\222",
								"\342\226\223\342\226\223", "\342\226\210\342\226\210"},
							   "\342\224\202",
							   "\342\224\224",
							   "\342\224\200\342\224\200"};
static const Palette characters = {{"  ", "..", "::", "**", "##"}, "|", "+", "--"};

/* Returns the shade of a number: 0 for none, else 1 to 4, the fourth part of the largest each. */
static int
shade(double value, double largest)
{
	if (!(value > 0))
		return 0;
	if (value >= largest)
		return 4;
	/* infinity divides anything finite to 0 */
	return Max((int) ceil(value / largest * 4), 1);
}

/* Adds a line of text to the result, without spaces at its end. */
static void
put_line(ReturnSetInfo *rsinfo, const StringInfo line)
{
	Datum value;
	bool isnull = false;

	while (line->len > 0 && line->data[line->len - 1] == ' ')
		line->len--;
	value = PointerGetDatum(cstring_to_text_with_len(line->data, line->len));
	CHECK_FOR_INTERRUPTS();
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
	pfree(DatumGetPointer(value));
}

/* Adds the lines below the map: the axis of x, its bounds, and how much is outside of the map. */
static void
put_axis(ReturnSetInfo *rsinfo, const Grid *grid, const Palette *palette, int margin,
		 double outside)
{
	char *lo = psprintf("%g", grid->x.lo), *hi = psprintf("%g", grid->x.hi);
	StringInfoData line;

	initStringInfo(&line);
	appendStringInfo(&line, "%*s %s", margin, "", palette->corner);
	for (int x = 1; x <= grid->x.n; x++)
		appendStringInfoString(&line, palette->bottom);
	put_line(rsinfo, &line);
	resetStringInfo(&line);
	appendStringInfo(&line, "%*s  %s %*s", margin, "", lo,
					 Max(2 * grid->x.n - (int) strlen(lo) - 1, (int) strlen(hi)), hi);
	put_line(rsinfo, &line);
	if (outside == 0)
		return;
	resetStringInfo(&line);
	appendStringInfo(&line, "%*s  outside: %.15g", margin, "", outside);
	put_line(rsinfo, &line);
}

/* (xlo, xhi, ylo, yhi, counts) */
Datum
gpu_heatmap(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Grid grid = read_grid(fcinfo, "gpu_heatmap");
	const Palette *palette = GetDatabaseEncoding() == PG_UTF8 ? &blocks : &characters;
	double largest = 0, outside = 0;
	int margin = 0;
	StringInfoData line;

	for (int i = 0; i < grid.n; i++)
	{
		int x = i / grid.height, y = i % grid.height;

		if (x >= 1 && x <= grid.x.n && y >= 1 && y <= grid.y.n)
			largest = Max(largest, number(&grid, i));
		else
			outside += number(&grid, i);
	}
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	initStringInfo(&line);
	for (int pass = 0; pass < 2; pass++)
		for (int y = grid.y.n; y >= 1; y--)
		{
			double lower, upper;
			char label[32];

			/* the axis has the bound at which a bin begins, seen from ylo */
			histogram_bounds(&grid.y, y, false, &lower, &upper);
			snprintf(label, sizeof(label), "%g", grid.y.lo < grid.y.hi ? lower : upper);
			if (pass == 0)
			{
				margin = Max(margin, (int) strlen(label));
				continue;
			}
			resetStringInfo(&line);
			appendStringInfo(&line, "%*s %s", margin, label, palette->side);
			for (int x = 1; x <= grid.x.n; x++)
				appendStringInfoString(
					&line, palette->shades[shade(number(&grid, x * grid.height + y), largest)]);
			put_line(rsinfo, &line);
		}
	put_axis(rsinfo, &grid, palette, margin, outside);
	return (Datum) 0;
}

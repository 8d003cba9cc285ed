/*
 * bin_rows.c
 *	  Rows of functions that return the bins of a histogram; see bin_rows.h.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "aggregates/bin_rows.h"
#include "aggregates/histogram.h"
#include "common/compat.h"

void
bin_rows_begin(BinRows *rows, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	rows->rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	rows->largest = 0;
}

/* Adds a row, without a bin if has_bin is false. */
static void
put_row(BinRows *rows, bool has_bin, Datum bin, double lower, double upper, int64 count)
{
	double share = rows->largest > 0 ? (double) count / (double) rows->largest : 0;
	text *bar = histogram_bar(share);
	Datum row[5] = {bin, Float8GetDatum(lower), Float8GetDatum(upper), Int64GetDatum(count),
					PointerGetDatum(bar)};
	bool nulls[5] = {!has_bin};

	CHECK_FOR_INTERRUPTS();
	tuplestore_putvalues(rows->rsinfo->setResult, rows->rsinfo->setDesc, row, nulls);
	pfree(bar);
}

void
bin_rows_put(BinRows *rows, Datum bin, double lower, double upper, int64 count)
{
	put_row(rows, true, bin, lower, upper, count);
}

void
bin_rows_put_special(BinRows *rows, double value, int64 count)
{
	if (count > 0)
		put_row(rows, false, (Datum) 0, value, value, count);
}

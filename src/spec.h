/*
 * spec.h
 *	  What an engine computes for a query: columns, keys, slots, fallback aggregates.
 *
 * Built once at executor start (exec/open.c with aggmap.c) from the plan; read by
 * feeds (which columns to fill) and engines (what to do with them).
 *
 * An aggregate becomes one or more slots.  A slot is one monoid over one or
 * two columns, shared by every aggregate that needs the same one: sum(x) and
 * avg(x) of an int4 share SUM_I64(x) and COUNT(x).  A fallback aggregate has no
 * slots and runs its own transition function, which only the CPU engine can do; so do
 * aggregates with slots for numerics that COLUMN_DEC cannot represent.
 */
#ifndef GPUAGG_SPEC_H
#define GPUAGG_SPEC_H

#include "postgres.h"

#include "fmgr.h"
#include "nodes/bitmapset.h"
#include "nodes/nodes.h"

#include "batch.h"
#include "operators/monoid.h"

/* What a column has of a numeric. */
typedef enum NumericForm
{
	NUMERIC_ONE_SCALE, /* the value; COLUMN_DEC: that of another display scale is unrepresentable */
	NUMERIC_ANY_SCALE, /* COLUMN_DEC: a value of no larger display scale than the column's */
	NUMERIC_SHOWN_SCALE /* COLUMN_I32: its display scale; NULL of NULL, NaN and infinities */
} NumericForm;

typedef struct ColumnSpec
{
	int input; /* which input expression of the plan */
	ColumnType type;
	int16 scale; /* COLUMN_DEC */
	NumericForm form;
	Oid typid; /* SQL type of the input */
	int32 typmod;
	Oid collation;
	int16 typlen;
	bool typbyval;
	bool presence; /* some byte: only whether the input is NULL is of interest */
} ColumnSpec;

typedef enum KeyKind
{
	KEY_RAW,   /* integer-like column: equal iff bits are equal */
	KEY_FLOAT, /* F32 or F64: -0 = 0, NaN = NaN; shown as first seen */
	KEY_DATUM  /* COLUMN_DATUM: the type's own hash and equality */
} KeyKind;

typedef struct KeySpec
{
	int col;
	KeyKind kind;
	Oid eqfunc;   /* equality function (of the GROUP BY operator) */
	Oid hashfunc; /* its hash function; InvalidOid only if never hashed */
	Oid collation;
	bool varies; /* equal values may look different, as 1.0 and 1.00 */
} KeySpec;

/* How a row's bin is found, for slots with more than one state a group. */
typedef enum BinKind
{
	BIN_NONE,       /* one state a group */
	BIN_UNIFORM,    /* width_bucket(col[0], lo, hi, n) by a formula: 0 .. n + 1 */
	BIN_THRESHOLDS, /* width_bucket(col[0], thresholds): 0 .. n */
	BIN_HLL         /* col[0] is a 64-bit hash; register and rank */
} BinKind;

typedef struct BinSpec
{
	BinKind kind;
	double lo, hi;
	int n;
	const double *thresholds; /* n of them, ascending */
	int formula;              /* of BIN_UNIFORM: GpuaggBinFormula (operators/bins.h) */
} BinSpec;

/*
 * A row counts for a slot if each of its columns has a value (neither NULL nor
 * unrepresentable) and its filter column is true.  Columns narrower than the monoid's
 * input widen by C's conversions; a float becomes its code (gpuagg_f64_code) if the
 * input is an integer.  With bins, col[0] determines the bin, and col[1], if any, is
 * the input.  Runs (slot_takes_nulls) are over col[0] with its NULLs.
 */
typedef struct SlotSpec
{
	MonoidId monoid;
	int col[2]; /* -1: none */
	int filter; /* a COLUMN_I8 of booleans, or -1 */
	BinSpec bins;
	int width;      /* states a group: 1, or the number of bins */
	int set;        /* rows that count: all, or those of AggSpec.distincts[set - 1] */
	bool mean_only; /* ACCUM_F64: of the state, only count and sum are asked for */
} SlotSpec;

/* A NULL ends a run, so that rows with NULLs count for such slots. */
static inline bool
slot_takes_nulls(const SlotSpec *slot)
{
	return slot->monoid == MONOID_LONGEST_RUN || slot->monoid == MONOID_LONGEST_ASC;
}

/* An aggregate run by its own transition function over Datum columns. */
typedef struct FallbackAgg
{
	Oid aggfnoid;
	bool builtin; /* core's or ours: combined states are those of all rows at once */
	FmgrInfo transfn;
	FmgrInfo combinefn; /* fn_oid InvalidOid: cannot be merged */
	FmgrInfo serialfn;  /* for internal states only */
	FmgrInfo deserialfn;
	Oid collation;
	Oid transtype;
	int16 translen;
	bool transbyval;
	Datum initval;
	bool initnull;
	int nargs;
	int argcol[FUNC_MAX_ARGS]; /* COLUMN_DATUM, or COLUMN_DEC if unrepresentable_only */
	int filter;                /* column or -1 */
	int set;                   /* as in SlotSpec */
	bool unrepresentable_only; /* only for unrepresentable rows of argcol[0] */
	struct Aggref *aggref;
} FallbackAgg;

/* ORDER BY inside the aggregates: a column with 64-bit codes (not DEC or DATUM). */
typedef struct OrderSpec
{
	int col;
	bool desc;
	bool nulls_first;
} OrderSpec;

/*
 * Rows that some aggregates take by themselves: those of DISTINCT values, of a group's rows for
 * which the filter is true, one for each combination of the values; those with an ORDER BY, all of
 * these rows in the order of the values.  composite/distinct.c sees to that, and engines know
 * nothing of it, but for those that have EngineOps.sets.
 */
typedef struct DistinctSpec
{
	bool all_rows; /* not DISTINCT */
	int nvalues;
	KeySpec *values;
	Oid *sortops; /* [value] */
	bool *nulls_first;
	bool sorted; /* some aggregate depends on their order, which is that of the values */
	int filter;  /* a COLUMN_I8 of booleans, or -1 */
} DistinctSpec;

/*
 * Values of one input that ordered-set aggregates take: not NULL, of rows for which the filter is
 * true.
 */
typedef struct ValuesSpec
{
	int col;
	bool coded; /* they compare as the 64-bit codes of their column do; else a COLUMN_DATUM */
	Oid ltop;   /* the order, ascending */
	Oid collation;
	int filter; /* a COLUMN_I8 of booleans, or -1 */
} ValuesSpec;

typedef enum OrderedSetKind
{
	ORDERED_SET_DISC, /* the value of a rank */
	ORDERED_SET_CONT, /* float8: between two */
	ORDERED_SET_CONT_INTERVAL,
	ORDERED_SET_MODE
} OrderedSetKind;

/*
 * An ordered-set aggregate.  composite/ordered_engine.c finds its value, which becomes that of a
 * fallback aggregate; engines know nothing of it, but for those that have EngineOps.sets.
 */
typedef struct OrderedSetSpec
{
	OrderedSetKind kind;
	bool array; /* of fractions, and of results */
	bool desc;
	bool median;  /* the fraction is 0.5; else it is a direct argument */
	int values;   /* index in AggSpec.values */
	int fallback; /* index in AggSpec.fallbacks */
} OrderedSetSpec;

/*
 * One of GROUPING SETS: some of the keys; the others are NULL in its groups.
 * composite/grouping_sets.c makes these; engines know nothing of them.
 */
typedef struct KeySet
{
	Bitmapset *keys; /* numbers of AggSpec.keys */
	double groups;   /* estimate */
} KeySet;

/*
 * Slots that not every engine runs.  An aggregate that needs one becomes a fallback
 * aggregate in the spec for an engine without it.
 */
typedef struct SlotSupport
{
	bool many_bins;    /* any number of bins a group, keys or not */
	bool matrices;     /* MONOID_MAT2, which stands for matrices of any size */
	bool usual_scales; /* of decimals whose column has numerics of other scales too */
} SlotSupport;

typedef struct AggSpec
{
	int ncols;
	ColumnSpec *cols;
	int nkeys;
	KeySpec *keys;
	int nslots;
	SlotSpec *slots;
	int nfallbacks;
	FallbackAgg *fallbacks;
	int norder; /* 0: the feed delivers rows in the aggregates' order, if any */
	OrderSpec *order;
	int ndistincts;
	DistinctSpec *distincts;
	int nsets; /* 0: all groups have all keys */
	const KeySet *sets;
	int nvalues;
	ValuesSpec *values;
	int nordered_sets;
	OrderedSetSpec *ordered_sets;
	SlotSupport support;    /* of the engine that this is for; the same in all
							 * participants of a parallel scan */
	const int *usual_scale; /* [input] display scale that most values of a numeric have, or -1 */
	bool mixed_scales;   /* some decimals have a usual scale, which only engines with usual_scales
							take */
	bool ordered;        /* some slot's monoid does not commute: rows of a
						  * group must be combined in input order */
	bool others;         /* some aggregate is not min(), max() or count(*) of all rows */
	bool ordered_floats; /* a float sum has an ORDER BY, which determines its last digits */
} AggSpec;

/* Has it aggregates of DISTINCT values, or with an order of their own, or of ordered sets? */
static inline bool
spec_has_sets(const AggSpec *spec)
{
	return spec->ndistincts > 0 || spec->nordered_sets > 0;
}

/* The ordered set whose results this fallback aggregate has, or -1. */
static inline int
spec_set_of_fallback(const AggSpec *spec, int fallback)
{
	for (int o = 0; o < spec->nordered_sets; o++)
		if (spec->ordered_sets[o].fallback == fallback)
			return o;
	return -1;
}

/*
 * Does another row of a group change nothing if one with the same bytes came before?  That is so of
 * extremes whose equal values are the same.
 */
extern bool spec_ignores_repeats(const FallbackAgg *fallback);

/* What the exports of participants must have in common. */
extern uint32 spec_layout(const AggSpec *spec);

/* States that a group has for these bins. */
extern int spec_bins_width(const BinSpec *bins);

/* The column of the same input and type, or -1. */
extern int spec_find_column(const AggSpec *spec, const ColumnSpec *col);

/* Builders; each returns an index and reuses an equal entry.  In spec.c. */
extern int spec_add_column(AggSpec *spec, const ColumnSpec *col);
extern int spec_add_slot(AggSpec *spec, MonoidId monoid, int col0, int col1, int filter, int set,
						 const BinSpec *bins);
extern int spec_add_fallback(AggSpec *spec, const FallbackAgg *fallback);
extern int spec_add_distinct(AggSpec *spec, const DistinctSpec *distinct);
extern int spec_add_values(AggSpec *spec, const ValuesSpec *values);
extern int spec_add_ordered_set(AggSpec *spec, const OrderedSetSpec *set);

/* Most digits behind the point that decimals have. */
#define SPEC_MAX_SCALE 20

/* The column type for values of an SQL type; COLUMN_DATUM where none fits better. */
extern ColumnType spec_column_type(Oid typid, int32 typmod, int16 *scale);

/* Have values of an SQL type 64-bit codes that compare as its default order does? */
extern bool spec_type_has_codes(Oid typid);

#endif /* GPUAGG_SPEC_H */

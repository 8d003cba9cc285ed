/*
 * spec.h
 *	  The spec of a query (AggSpec): columns, keys, slots, fallback aggregates.
 *
 * The executor builds it from the plan when it starts (exec/open.c, with aggregates/aggmap.c).
 * Feeds read which columns to fill, engines read what to compute.
 *
 * An aggregate becomes one or more slots.  A slot is a monoid over one or two columns.  Aggregates
 * share equal slots: sum(x) and avg(x) of an int4 share SUM_I64(x) and COUNT(x).  A fallback
 * aggregate has no slots: its own transition function is called for each row, which only the CPU
 * engine can do.  (The GPU engine computes exact sums of floats, the n best, and aggregates of
 * counted values in other ways, see engine_cuda/query_exact.c, top_n.c and tallies.c there.)  An
 * aggregate with slots over COLUMN_DEC has a fallback aggregate, too, for numerics that the column
 * cannot represent.
 *
 * Indexes refer to the arrays of AggSpec, and -1 stands for none.  A "filter" is a COLUMN_I8 column
 * of booleans: only rows in which it is true count.
 */
#ifndef GPUAGG_SPEC_H
#define GPUAGG_SPEC_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "fmgr.h"
#include "nodes/bitmapset.h"
#include "nodes/nodes.h"

#include "batch.h"
#include "operators/monoid.h"

/* Which numerics a column of a numeric input represents. */
typedef enum NumericForm
{
	NUMERIC_ONE_SCALE,  /* values; in COLUMN_DEC only those with the column's display scale */
	NUMERIC_ANY_SCALE,  /* COLUMN_DEC: values whose display scale is at most the column's */
	NUMERIC_SHOWN_SCALE /* COLUMN_I32: the display scale; NULL for NULL, NaN and infinities */
} NumericForm;

typedef struct ColumnSpec
{
	int input; /* number of the plan's input expression */
	ColumnType type;
	int16 scale; /* COLUMN_DEC: digits behind the point */
	NumericForm form;
	Oid typid; /* SQL type of the input */
	int32 typmod;
	Oid collation;
	int16 typlen;
	bool typbyval;
	bool presence; /* values do not matter, only whether the input is NULL */
} ColumnSpec;

typedef enum KeyKind
{
	KEY_RAW,   /* integer-like column: values are equal iff their bits are */
	KEY_FLOAT, /* F32 or F64: -0 = 0 and NaN = NaN; a group shows its first value */
	KEY_DATUM  /* COLUMN_DATUM: the type's own hash and equality functions */
} KeyKind;

typedef struct KeySpec
{
	int col;
	KeyKind kind;
	Oid eqfunc;   /* function of the equality operator of GROUP BY */
	Oid hashfunc; /* matching hash function; InvalidOid if values are only sorted */
	Oid collation;
	bool varies; /* equal values may look different, such as 1.0 and 1.00 */
} KeySpec;

/* How the bin of a row is found, for slots with several states in a group. */
typedef enum BinKind
{
	BIN_NONE,       /* one state for each group */
	BIN_UNIFORM,    /* width_bucket(col[0], lo, hi, n): bins 0 .. n + 1 */
	BIN_THRESHOLDS, /* width_bucket(col[0], thresholds): bins 0 .. n */
	BIN_HLL         /* col[0] is a 64-bit hash, from which the register and its rank follow */
} BinKind;

typedef struct BinSpec
{
	BinKind kind;
	double lo, hi;
	int n;
	const double *thresholds; /* n values, ascending */
	int formula;              /* BIN_UNIFORM: GpuaggBinFormula (operators/bins.h) */
} BinSpec;

/*
 * A row counts for a slot if all columns of the slot have a value (not NULL, not unrepresentable)
 * and the filter is true.  A column that is narrower than the monoid's input is widened as in C; a
 * float becomes its code (gpuagg_f64_code) if the input is an integer.  With bins, col[0]
 * determines the bin, and col[1], if any, is the input.  For slots with slot_takes_nulls() rows
 * with NULL count, too.
 */
typedef struct SlotSpec
{
	MonoidId monoid;
	int col[2];
	int filter;
	BinSpec bins;
	int width;      /* states in each group: 1, or the number of bins */
	int set;        /* 0: all rows count; else the row set AggSpec.distincts[set - 1] */
	bool mean_only; /* ACCUM_F64: only the count and the sum of the state are needed */
} SlotSpec;

/*
 * True if rows with NULL count for the slot.  Its monoid finds the longest run of values, which a
 * NULL ends.
 */
static inline bool
slot_takes_nulls(const SlotSpec *slot)
{
	return slot->monoid == MONOID_LONGEST_RUN || slot->monoid == MONOID_LONGEST_ASC;
}

/* An aggregate that is computed by its own transition function. */
typedef struct FallbackAgg
{
	Oid aggfnoid;
	bool builtin; /* belongs to core or this extension: combined states equal the state of all rows
				   */
	FmgrInfo transfn;
	FmgrInfo combinefn; /* fn_oid is InvalidOid if states cannot be combined */
	FmgrInfo serialfn;  /* for states of type internal */
	FmgrInfo deserialfn;
	Oid collation;
	Oid transtype;
	int16 translen;
	bool transbyval;
	Datum initval;
	bool initnull;
	int nargs;
	int argcol[FUNC_MAX_ARGS]; /* COLUMN_DATUM, COLUMN_DEC if unrepresentable_only; for exact, top_n
								  and tally integers and floats, too; keys of top_n, and values of
								  tally, may be COLUMN_DEC */
	bool exact; /* an exact aggregate: all with its transition function have equal states */
	int top_n;  /* gpu_max_n and its like, with this constant n, which is no argument here, and keys
				   of integers, floats or decimals; else 0. Engines may compute these in
				   another way */
	const struct AggTally *tally; /* the engine makes states of the counted values of argcol[0]
									 (aggregates/agg_tally.h); else NULL */
	Datum constant;               /* what the tally has in place of another argument */
	bool only_result;             /* of a tally: its states are only finalized */
	bool ranked; /* min() or max() of texts that are equal only if their bytes are. Engines may
				  * compare ranks in their place */
	int filter;
	int set;                   /* as in SlotSpec */
	bool unrepresentable_only; /* takes only rows in which argcol[0] is unrepresentable */
	struct Aggref *aggref;
} FallbackAgg;

/* A sort key of the ORDER BY that aggregates share: a column with 64-bit codes (no DEC, DATUM). */
typedef struct OrderSpec
{
	int col;
	bool desc;
	bool nulls_first;
} OrderSpec;

/*
 * A row set: rows that some aggregates take instead of all rows of a group.  Only rows that pass
 * the filter belong to it.  For DISTINCT it has one row for each combination of the values.  For an
 * aggregate with an ORDER BY of its own it has all rows, sorted by the values.  Composite engines
 * make row sets (composite/distinct.c); plain engines without EngineOps.runs_sets never see them.
 */
typedef struct DistinctSpec
{
	bool all_rows; /* not DISTINCT */
	int nvalues;
	KeySpec *values;
	Oid *sortops; /* [value] */
	bool *nulls_first;
	bool sorted; /* rows are sorted by the values, as some aggregate depends on their order */
	int filter;
} DistinctSpec;

/*
 * Values of one input that ordered-set aggregates take: those that are not NULL, in rows that pass
 * the filter.
 */
typedef struct ValuesSpec
{
	int col;
	bool coded; /* values compare as the 64-bit codes of their column; else a COLUMN_DATUM */
	Oid ltop;   /* the order, ascending */
	Oid collation;
	int filter;
} ValuesSpec;

typedef enum OrderedSetKind
{
	ORDERED_SET_DISC, /* the value at a rank */
	ORDERED_SET_CONT, /* float8: interpolated between the values at two ranks */
	ORDERED_SET_CONT_INTERVAL,
	ORDERED_SET_MODE
} OrderedSetKind;

/*
 * An ordered-set aggregate.  Its result becomes the state of a fallback aggregate.  A composite
 * engine computes it (composite/ordered_engine.c), unless the engine has EngineOps.runs_sets.
 */
typedef struct OrderedSetSpec
{
	OrderedSetKind kind;
	bool array; /* takes an array of fractions, and returns one of results */
	bool desc;
	bool median;  /* the fraction is 0.5; otherwise it is a direct argument */
	int values;   /* index in AggSpec.values */
	int fallback; /* index in AggSpec.fallbacks */
} OrderedSetSpec;

/*
 * A grouping set: some of the keys; the others are NULL in its groups.  A composite engine makes
 * these groups (composite/grouping_sets.c); plain engines never see grouping sets.
 */
typedef struct KeySet
{
	Bitmapset *keys; /* numbers of AggSpec.keys */
	double groups;   /* estimate */
} KeySet;

/*
 * Optional slots of an engine.  In a spec for an engine without such a slot, an aggregate that
 * needs it is a fallback aggregate.
 */
typedef struct SlotSupport
{
	bool many_bins;    /* any number of bins, with keys, too */
	bool matrices;     /* MONOID_MAT2, which stands for matrices of any size */
	bool usual_scales; /* slots over decimals if the input has numerics of other scales, too */
	bool tallies;      /* FallbackAgg.tally */
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
	int norder; /* 0: the feed delivers rows in the order that aggregates need, if any */
	OrderSpec *order;
	int ndistincts; /* row sets */
	DistinctSpec *distincts;
	int nsets; /* grouping sets; 0: all groups have all keys */
	const KeySet *sets;
	int nvalues;
	ValuesSpec *values;
	int nordered_sets;
	OrderedSetSpec *ordered_sets;
	SlotSupport
		support; /* support of the engine; the same in all participants of a parallel scan */
	const int *usual_scale; /* [input] display scale that most of its numerics have, or -1 */
	bool mixed_scales;      /* some slot relies on usual_scale, see SlotSupport.usual_scales */
	bool ordered;           /* some slot's monoid does not commute: rows of a group must be combined
							   in input order */
	bool needs_rows;     /* false: all aggregates are min(), max() or count(*) of all rows, and the
							bounds of cached columns may replace rows */
	bool ordered_floats; /* a sum of floats has an ORDER BY, which decides its last digits */
} AggSpec;

/* True if the spec has row sets or ordered sets. */
static inline bool
spec_has_sets(const AggSpec *spec)
{
	return spec->ndistincts > 0 || spec->nordered_sets > 0;
}

/* True if the spec has gpu_max_n or its like, of which an engine may sort the keys. */
static inline bool
spec_has_top_n(const AggSpec *spec)
{
	for (int f = 0; f < spec->nfallbacks; f++)
		if (spec->fallbacks[f].top_n > 0)
			return true;
	return false;
}

/* True if the spec has aggregates whose states are made of counted values. */
static inline bool
spec_has_tallies(const AggSpec *spec)
{
	for (int f = 0; f < spec->nfallbacks; f++)
		if (spec->fallbacks[f].tally)
			return true;
	return false;
}

/* True if the spec has min() or max() of texts, in whose place an engine may compare ranks. */
static inline bool
spec_has_ranked(const AggSpec *spec)
{
	for (int f = 0; f < spec->nfallbacks; f++)
		if (spec->fallbacks[f].ranked)
			return true;
	return false;
}

/* Returns the ordered set whose results this fallback aggregate has, or -1. */
static inline int
spec_set_of_fallback(const AggSpec *spec, int fallback)
{
	for (int o = 0; o < spec->nordered_sets; o++)
		if (spec->ordered_sets[o].fallback == fallback)
			return o;
	return -1;
}

/*
 * True if a row changes nothing after a row with the same bytes in its group: min() and max() of
 * types whose equal values are identical.
 */
extern bool spec_ignores_repeats(const FallbackAgg *fallback);

/*
 * Returns a hash of the layout of a group: number of keys, monoids and widths of slots, fallback
 * aggregates.  Participants with equal hashes can exchange groups.
 */
extern uint32 spec_layout(const AggSpec *spec);

/* Returns the number of states of a group for these bins. */
extern int spec_bins_width(const BinSpec *bins);

/* Returns the column with the same input, type, scale and form, or -1. */
extern int spec_find_column(const AggSpec *spec, const ColumnSpec *col);

/* Add an entry and return its index.  All but ordered sets reuse an equal entry. */
extern int spec_add_column(AggSpec *spec, const ColumnSpec *col);
extern int spec_add_slot(AggSpec *spec, MonoidId monoid, int col0, int col1, int filter, int set,
						 const BinSpec *bins);
extern int spec_add_fallback(AggSpec *spec, const FallbackAgg *fallback);
extern int spec_add_distinct(AggSpec *spec, const DistinctSpec *distinct);
extern int spec_add_values(AggSpec *spec, const ValuesSpec *values);
extern int spec_add_ordered_set(AggSpec *spec, const OrderedSetSpec *set);

/* Largest scale of COLUMN_DEC: digits behind the point. */
#define SPEC_MAX_SCALE 20

/*
 * Returns the spec of a column that has the values of an attribute as they are: numerics are
 * COLUMN_DATUM.  input: number of the input
 */
extern ColumnSpec spec_plain_column(int input, Form_pg_attribute att);

/* Returns the column type for an SQL type: COLUMN_DATUM if no other fits.  Sets *scale. */
extern ColumnType spec_column_type(Oid typid, int32 typmod, int16 *scale);

/* True if an SQL type has 64-bit codes that compare as its values do in the default order. */
extern bool spec_type_has_codes(Oid typid);

#endif /* GPUAGG_SPEC_H */

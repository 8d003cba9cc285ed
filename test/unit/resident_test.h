/*
 * resident_test.h
 *	  Shared by the source files of resident_test: a test of queries on columns that the device
 *	  caches.
 *
 *	resident_model.c	tables whose values are known
 *	resident_query.c	queries over random rows of these tables
 *	resident_groups.c	the expected groups of a query
 *	resident_client.c	stores columns, sends queries, and compares the groups that it fetches
 *	resident_test.c		the tests
 */
#ifndef GPUAGG_UNIT_RESIDENT_TEST_H
#define GPUAGG_UNIT_RESIDENT_TEST_H

#include "peer.h"
#include "server/device_store.h"
#include "strategy.h"

/* ---- resident_model.c ---- */

enum
{
	COL_K, /* int4, NULL in some ranges */
	COL_V, /* int8, NULL in some ranges; the greatest value in some rows */
	COL_S, /* int2 */
	COL_B, /* boolean */
	COL_X, /* float8 */
	COL_I, /* int4, few values */
	COL_J, /* int4, few other values */
	COLS
};

extern const uint32_t model_types[COLS]; /* WireType of each column */

#define RANGES 30

/*
 * Largest number of rows of a range, and number of rounds of a test. On a GPU there may be more
 * rows and fewer rounds. Sanitizers make the test several times as slow.
 */
#ifndef TEST_ROWS
#define TEST_ROWS 900
#ifdef __SANITIZE_ADDRESS__
#define TEST_ROUNDS 1
#else
#define TEST_ROUNDS 10
#endif
#endif

typedef struct Range
{
	uint64_t stamp;
	uint32_t nrows;
	int ordered; /* the range's number + 1 if keys ascend from range to range; else 0 */
} Range;

/* A span has the ranges from i * SPAN_RANGES to (i + 1) * SPAN_RANGES - 1. */
#define SPAN_RANGES 6
#define SPANS (RANGES / SPAN_RANGES)

typedef struct Model
{
	uint64_t id;
	bool scattered; /* keys are far apart */
	bool ordered;
	int least; /* smallest key */
	Range ranges[RANGES];
	uint64_t spans[SPANS]; /* ids of the spans' present lists of ranges; 0: none yet */
} Model;

/* The last stamp and table id that were assigned. */
extern uint64_t model_last_stamp;
extern uint64_t model_last_table;

/* Makes a new table. */
extern void model_make(Model *m);
/* Gives a range other contents. Its span loses its id. */
extern void model_change(Model *m, int range);
/* Returns whether the column may have NULLs in the range. */
extern bool model_has_nulls(const Range *r, int col);
extern bool model_is_null(const Range *r, int col, uint32_t row);
/* Returns the column's value in a row, also if it is NULL. */
extern int64_t model_value(const Model *m, const Range *r, int col, uint32_t row);

/* ---- resident_query.c ---- */

typedef enum Kind
{
	PLAIN_NO_KEYS,      /* count(*), sum(s) */
	PLAIN_KEYS,         /* the same BY k */
	FILTERED_NO_KEYS,   /* count(*), sum(v + 1) WHERE v < 200 */
	FILTERED_KEYS,      /* the same BY k */
	COMPUTED_KEYS,      /* count(*), sum(s) BY k + 5 */
	ONE_SLOT_FILTER,    /* count(*), sum(s) FILTER (WHERE b) */
	NULL_SLOT_FILTER,   /* count(*), sum(s) FILTER (WHERE v < 200) BY k */
	SUM_UNDETERMINED,   /* count(*), sum(v + 1) BY k */
	NULLS_UNDETERMINED, /* count(*), sum(s) BY k, which is declared to have no NULLs */
	NO_COLUMNS,         /* count(*), sum(7) */
	HISTOGRAM,          /* count(*), count(*) by bins of x WHERE b, BY k */
	DISTINCT_VALUES,    /* count(*), sum(DISTINCT s), and another slot of the set, BY k */
	NOTHING_LEFT,       /* count(*), sum(s) WHERE false BY k */
	/*
	 * count(*), sum(s * (s + 1) - (s + 1)), count(v), extremes and sums, some of them FILTER (WHERE
	 * v < 200), WHERE s <> 7 OR b, BY k
	 */
	MANY_SLOTS,
	CONDITIONS, /* count(*), sum(s) WHERE s <> 7 [AND v < 200] AND v + 1 < 200 AND b BY k */
	FLOATS,     /* count(*), sum(s), sum(x), max(x) BY k; a large x is undetermined */
	PAIRS,      /* count(*), sum(s), argmax(v or s, x), max(code of x), count(v or s), BY k */
	SKETCH,     /* count(*), sum(s), a sketch of v, BY k or without a key */
	TWO_KEYS,   /* count(*), sum(i), sometimes another aggregate, BY i, j */
	KINDS
} Kind;

typedef struct TestQuery
{
	Kind kind;
	bool keyed;
	int limit;    /* FLOATS: x from here on is undetermined */
	int payload;  /* PAIRS: the column of the argument */
	bool guarded; /* CONDITIONS: v < 200 comes before the condition that may be undetermined */
	WireQuery q;
	WireResident in;
	WireRowRange row_ranges[3 * RANGES]; /* all row ranges of the query, in order */
	bool whole[SPANS];                   /* the query reads the whole span, which has an id */
	bool named[SPANS]; /* the message has the span's id in place of its row ranges */
	uint64_t ids[SPANS];
	uint32_t nrow_ranges;
	WireRowRange sent[3 * RANGES]; /* the row ranges in the message */
	WireSpan spans[SPANS];
} TestQuery;

/* Makes a query of this kind, without rows. */
extern void test_query_make(TestQuery *t, const Model *m, Kind kind);
/* Draws random row ranges. Some spans are read whole, with their ids. */
extern void test_query_draw_ranges(TestQuery *t, Model *m);
/* Fills the row ranges and spans of the message. */
extern void test_query_lay_out(TestQuery *t);
/*
 * Returns what the query does with a row: 1 it counts, 0 it is left out, -1 its outcome is
 * undetermined. Sets *key, and *sum to what it adds to the sum.
 */
extern int test_query_row_outcome(const TestQuery *t, const Model *m, const Range *r, uint32_t row,
								  uint64_t *key, int64_t *sum);

/* ---- resident_groups.c ---- */

typedef struct Group
{
	uint64_t key;
	int64_t count;
	int64_t sum;
	gpuagg_kv best;   /* PAIRS: the argmax, */
	int64_t most;     /* the greatest code, */
	int64_t payloads; /* and the number of arguments that are not NULL */
} Group;

/* Sets the members for PAIRS to those of no rows. */
extern void groups_clear_pairs(Group *g);
/* For qsort and bsearch: compares by key, then by sum. */
extern int groups_compare(const void *a, const void *b);
/*
 * Returns a group for each row that counts; *n is their number. Adds to *undetermined the number of
 * rows whose outcome is undetermined. The caller frees the array.
 */
extern Group *groups_expect(const TestQuery *t, const Model *m, int *n, uint64_t *undetermined);
/*
 * Combines the groups of each key, sorts them by key, and returns their number. With `distinct`,
 * equal sums of a key count once.
 */
extern int groups_combine(Group *groups, int n, bool distinct);

/* ---- resident_client.c: functions return false if the connection failed ---- */

extern bool client_last_taken;       /* the last RESIDENT message was answered with "taken" */
extern int client_named_spans_taken; /* number of spans named by id whose rows were taken */

/* Stores a column of a range. Sets *kept to whether the server keeps it. */
extern bool client_store(Peer *peer, const Model *m, int range, int col, bool *kept);
extern bool client_open(Peer *peer, const TestQuery *t);
/*
 * Sends RESIDENT. If the server does not know a span's id, sends the message again with the span's
 * row ranges. Sets *taken to whether the rows were taken.
 */
extern bool client_send_resident(Peer *peer, TestQuery *t, bool *taken);
/*
 * Stores the columns that were lacking. Sets *any to whether some were lacking, *all_kept to
 * whether the server keeps them.
 */
extern bool client_store_lacking(Peer *peer, const TestQuery *t, const Model *m, bool *any,
								 bool *all_kept);
/*
 * Finishes the query, fetches its groups and compares them with the n expected ones. May remove
 * groups from `expected` that fail a condition.
 */
extern bool client_check_answer(Peer *peer, const TestQuery *t, const Model *m, Group *expected,
								int n, uint64_t undetermined, const char *what);

/* ---- resident_test.c ---- */

/* Returns whether an allocation on the device may have failed. */
extern bool device_was_short(void);

#endif /* GPUAGG_UNIT_RESIDENT_TEST_H */

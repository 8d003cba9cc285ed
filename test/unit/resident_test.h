/*
 * resident_test.h
 *	  What the files of resident_test.c share.
 *
 *	resident_model.c	tables, of which a model knows all values
 *	resident_question.c	queries over random rows of them
 *	resident_groups.c	the groups that a query should get
 *	resident_client.c	stores columns, asks, and compares the groups that it gets
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
	COL_V, /* int8, NULL in some ranges; the greatest in some rows */
	COL_S, /* int2 */
	COL_B, /* boolean */
	COL_X, /* float8 */
	COL_I, /* int4, of few values */
	COL_J, /* the same, others */
	COLS
};

extern const uint32_t model_types[COLS]; /* WireType */

#define RANGES 30

/*
 * Rows of a range, and rounds of a test; on a GPU there may be more of the one, and fewer of the
 * other.
 */
#ifndef TEST_ROWS
#define TEST_ROWS 900
#define TEST_ROUNDS 15
#endif

typedef struct Range
{
	uint64_t stamp;
	uint32_t nrows;
	int ordered; /* its number, counted from 1, if keys ascend from range to range; or 0 */
} Range;

/* Ranges i * SPAN_RANGES and on are a span. */
#define SPAN_RANGES 6
#define SPANS (RANGES / SPAN_RANGES)

typedef struct Model
{
	uint64_t id;
	bool scattered; /* keys */
	bool ordered;
	int least; /* key */
	Range ranges[RANGES];
	uint64_t spans[SPANS]; /* ids of their present lists; 0: none yet */
} Model;

/* The last ones that were given. */
extern uint64_t model_last_stamp;
extern uint64_t model_last_table;

/* A new table. */
extern void model_make(Model *m);
/* A range has other contents; so has its span. */
extern void model_change(Model *m, int range);
/* May column col have NULLs in the range? */
extern bool model_has_nulls(const Range *r, int col);
extern bool model_is_null(const Range *r, int col, uint32_t row);
/* Also where it is NULL. */
extern int64_t model_value(const Model *m, const Range *r, int col, uint32_t row);

/* ---- resident_question.c ---- */

typedef enum Kind
{
	PLAIN_NO_KEYS,    /* count(*), sum(s) */
	PLAIN_KEYS,       /* the same BY k */
	FILTERED_NO_KEYS, /* count(*), sum(v + 1) WHERE v < 200 */
	FILTERED_KEYS,    /* the same BY k */
	COMPUTED_KEYS,    /* count(*), sum(s) BY k + 5 */
	ONE_SLOT_FILTER,  /* count(*), sum(s) FILTER (WHERE b) */
	NULL_SLOT_FILTER, /* count(*), sum(s) FILTER (WHERE v < 200) BY k */
	SUM_UNDETERMINED, /* count(*), sum(v + 1) BY k */
	NO_NULLS_SAID,    /* count(*), sum(s) BY k, of which NULLs are undetermined */
	NO_COLUMNS,       /* count(*), sum(7) */
	HISTOGRAM,        /* count(*), count(*) by bins of x WHERE b, BY k */
	DISTINCT_VALUES,  /* count(*), sum(DISTINCT s), and another slot of the set, BY k */
	NOTHING_LEFT,     /* count(*), sum(s) WHERE false BY k */
	MANY_SLOTS, /* count(*), sum(s * (s + 1) - (s + 1)), count(v), extremes and sums, some FILTER
				   (WHERE v < 200), WHERE s <> 7 OR b, BY k */
	CONDITIONS, /* count(*), sum(s) WHERE s <> 7 [AND v < 200] AND v + 1 < 200 AND b BY k */
	FLOATS,     /* count(*), sum(s), sum(x), max(x) BY k; a large x is undetermined */
	PAIRS,  /* count(*), sum(s), argmax(v or s, x), and the greatest code of an x, count(v or s), BY
			   k */
	SKETCH, /* count(*), sum(s), a sketch of v, BY k or not */
	TWO_KEYS, /* count(*), sum(i), or more, BY i, j: ranges of which one call may make the bins */
	KINDS
} Kind;

typedef struct Question
{
	Kind kind;
	bool keyed;
	int limit;    /* of FLOATS */
	int payload;  /* of PAIRS: the column */
	bool guarded; /* CONDITIONS: v < 200 is among them, before what may be undetermined */
	WireQuery q;
	WireResident in;
	WireRowRange runs[3 * RANGES]; /* all, in order */
	bool whole[SPANS];             /* the span has an id, */
	bool named[SPANS];             /* which stands for its runs */
	uint64_t ids[SPANS];
	uint32_t nruns;
	WireRowRange sent[3 * RANGES]; /* those that are in the message */
	WireSpan spans[SPANS];
} Question;

/* Without rows. */
extern void question_make(Question *t, const Model *m, Kind kind);
/* Random runs of the model's ranges; some spans are whole, and have ids. */
extern void question_draw_runs(Question *t, Model *m);
/* What the message has of the runs. */
extern void question_lay_out(Question *t);
/*
 * What a row is to the question: 1 counted, 0 left out, -1 undetermined.  *sum: what it adds, if
 * anything.
 */
extern int question_outcome(const Question *t, const Model *m, const Range *r, uint32_t row,
							uint64_t *key, int64_t *sum);

/* ---- resident_groups.c ---- */

typedef struct Group
{
	uint64_t key;
	int64_t count;
	int64_t sum;
	gpuagg_kv best;   /* of PAIRS, */
	int64_t most;     /* the greatest code, */
	int64_t payloads; /* and values that are not NULL */
} Group;

/* Of no pairs. */
extern void groups_no_pairs(Group *g);
/* For qsort and bsearch: by key, and groups of one key by their sums. */
extern int groups_compare(const void *a, const void *b);
/*
 * A malloc'ed group for each row of the question that counts, *n of them; adds those to
 * *undetermined whose outcome is undetermined.
 */
extern Group *groups_expect(const Question *t, const Model *m, int *n, uint64_t *undetermined);
/*
 * One group for each key, by key; returns their number.  distinct: equal sums of a key count once.
 */
extern int groups_combine(Group *groups, int n, bool distinct);

/* ---- resident_client.c: false where the connection failed ---- */

extern bool client_last_taken; /* the last question's rows were */
extern int client_named_taken; /* spans whose rows were taken by their ids */

/* Stores a column of a range; is it kept? */
extern bool client_store(Peer *peer, const Model *m, int range, int col, bool *kept);
extern bool client_open(Peer *peer, const Question *t);
/* Are the rows taken?  The lists of spans that are not there, or not known, are sent with them. */
extern bool client_ask(Peer *peer, Question *t, bool *taken);
/* Stores what is lacking; *any: something was lacking. */
extern bool client_store_lacking(Peer *peer, const Question *t, const Model *m, bool *any,
								 bool *all_kept);
/* Fetches the groups, and compares; of the n right ones some may be removed. */
extern bool client_check_answer(Peer *peer, const Question *t, const Model *m, Group *right, int n,
								uint64_t undetermined, const char *what);

/* ---- resident_test.c ---- */

/* May the device have lacked memory? */
extern bool device_was_short(void);

#endif /* GPUAGG_UNIT_RESIDENT_TEST_H */

/*
 * standin.h
 *	  What the files of the stand-in for a device share.
 *
 *	standin_device.c	device_ops: devices, the memory that other processes have, faults, lanes
 *	standin_operators.c	values of a row, and operators
 *	standin_rows.c		rows, reduced to groups
 *	standin_groups.c	groups, by packed key, and the results of a query
 *	standin_resident.c	stored columns, and rows of them
 *	standin_sets.c		values of sets
 */
#ifndef GPUAGG_STANDIN_H
#define GPUAGG_STANDIN_H

#include "server/server.h"
#include "server/store.h"

typedef struct Column
{
	const char *values;      /* NULL: only the validity matters */
	const uint8_t *validity; /* NULL: no NULLs */
	uint32_t type;           /* WireType */
} Column;

/* Rows to be reduced: a batch, or some that are stored. */
typedef struct Rows
{
	uint32_t nrows;
	Column cols[WIRE_MAX_COLS];
} Rows;

struct Lane
{
	int device;
	char *arena;
	char *memory; /* the copies */
	size_t buffer_bytes;
};

struct Query
{
	int device;
	const WireQuery *q;
	const double *thresholds;
	uint64_t bytes; /* taken from the budget */
	uint64_t peak;
	uint64_t ngroups;
	uint64_t capacity;
	uint64_t *table; /* 2 * capacity; group number + 1 */
	char *keys;
	char *slots[WIRE_MAX_SLOTS];
	int errors;
	int retries;
	int given;   /* batches */
	int fetched; /* times */

	/* rows of operators that do not commute, until the last batch */
	struct Kept *kept;
	uint64_t nkept;
	uint64_t kept_capacity;
	struct KeptBatch *batches;

	struct SetValue *values[WIRE_MAX_SETS];
	size_t nvalues[WIRE_MAX_SETS];

	StoreHold *holds;
	uint64_t undetermined;
};

/* ---- standin_device.c ---- */

/* The fault that the test requests for the event of this number; an empty word: none. */
extern void standin_requested_fault(char word[32], int number);
/* Lets the fault happen that is requested for the query's batch of this number. */
extern DeviceStatus standin_provoke(int batch, DeviceError *error);
/*
 * Ends the process by this signal, without a core file: these are for crashes that nobody asked
 * for.
 */
extern void standin_crash(int signal);
/* device_ops.available: the other servers of GPUAGG_STANDIN_SHARED have the rest. */
extern bool standin_available(int device, bool idle, uint64_t *bytes);

/* ---- standin_operators.c ---- */

/* One row of a slot's input. */
typedef struct Row
{
	const Column *col[2];
	uint32_t i;
	int valid; /* the first column is not NULL */
} Row;

/* Is row i not NULL? */
extern bool standin_valid(const Column *col, uint32_t i);
/* Of column c of a slot, which is one of integers; 0 of one without values. */
extern int64_t standin_read_integer(const Row *r, int c);
extern double standin_read_double(const Row *r, int c);

typedef struct Operator
{
	int (*row)(void *state, const Row *r);          /* a state with a row more; error bits */
	int (*combine)(void *state, const void *other); /* error bits */
	void (*fill)(char *state, uint64_t n);          /* n identities */
} Operator;

/* By MonoidId. */
extern const Operator standin_operators[];

/* ---- standin_rows.c ---- */

/* Adds a value to a group's state of slot s, which reads one column of integers or none. */
extern void standin_add_value(Query *query, int s, uint64_t group, int64_t value);
/* Reduces all of the rows, or none: DEVICE_FULL. */
extern DeviceStatus standin_reduce_rows(Query *query, const Rows *rows, bool keep,
										DeviceError *error);
/* device_ops.reduce */
extern DeviceStatus standin_reduce(Query *query, Lane *lane, const WireBatch *batch,
								   DeviceError *error);
/* Reduces the rows of operators that do not commute, in order, and forgets them. */
extern void standin_reduce_kept(Query *query);
extern void standin_forget_rows(Query *query);

/* ---- standin_groups.c ---- */

/* Of a group's states of slot s. */
extern size_t standin_slot_bytes(const Query *query, int s);
/* The group of a packed key, which is made if need be. */
extern DeviceStatus standin_group_of_key(Query *query, const char *key, uint64_t *group,
										 DeviceError *error);
/* Removes the groups from `ngroups` on, which have no rows. */
extern void standin_forget_groups(Query *query, uint64_t ngroups);

/* Of device_ops. */
extern DeviceStatus standin_query_open(Query **query, int device, const WireQuery *q,
									   const double *thresholds, DeviceError *error);
extern void standin_query_close(Query *query);
extern DeviceStatus standin_reset(Query *query, DeviceError *error);
extern DeviceStatus standin_absorb(Query *query, Query *part, const int64_t *key_min,
								   const int64_t *key_max, DeviceError *error);
extern DeviceStatus standin_finish(Query *query, const WireLimit *limit, bool part,
								   WireFinished *result, DeviceError *error);
extern DeviceStatus standin_fetch(Query *query, Lane *lane, const WireGroups *out,
								  DeviceError *error);

/* ---- standin_sets.c ---- */

/* Have the values of these rows 64 bits? */
extern bool standin_values_fit(const Query *query, const Rows *rows);
/* Keeps the values of these rows. */
extern void standin_keep_values(Query *query, const Rows *rows, const uint64_t *groups);
/*
 * Keeps all values of a part of the query, too; groups[g] is the group that the part's group g has
 * here.
 */
extern void standin_bring_values(Query *query, const Query *part, const uint64_t *groups);
/* Sorts all values, and reduces the slots that are of them. */
extern void standin_finish_sets(Query *query);
extern void standin_forget_values(Query *query);
extern DeviceStatus standin_pick(Query *query, Lane *lane, const WirePick *in,
								 const int32_t *places, DeviceError *error);

/* ---- standin_resident.c ---- */

extern void standin_store_start(int ndevices);
extern DeviceStatus standin_resident(Query *query, Lane *lane, const WireResident *in,
									 const WireRowRange *runs, StoreHold *hold, DeviceError *error);
extern void standin_release_holds(Query *query);

#endif /* GPUAGG_STANDIN_H */

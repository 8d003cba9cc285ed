/*
 * lookup_kept.c
 *	  Lookups that are kept in the cache for later queries; see lookup.h and ../cache/kept.h.
 *
 * A lookup is kept if its keys are integers, and its plan returns the same rows whenever its tables
 * are the same: scans and hash joins of tables, whose expressions have only immutable functions of
 * PostgreSQL's own, and no parameters.  The name of the lookup is a hash of the plan, of what the
 * join reads of it, and of settings that such functions use.
 *
 * Whoever runs a query with the same plan may read the same rows: the executor has checked the
 * privileges, and conditions of row security are in the plan.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/parallel.h"
#include "access/tupdesc_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "analysis/analysis.h"
#include "cache/kept.h"
#include "common/compat.h"
#include "expr/expr.h"
#include "feed/lookup_internal.h"

/* Most bytes of the nodes and constants of a plan's expressions. */
#define EXPRESSION_BYTES 16384
/* Estimated bytes of a row beside its columns. */
#define ROW_BYTES 32

/* How a lookup is found in the cache. */
struct LookupIdentity
{
	bool named; /* the name has been computed: when the tables were proved first */
	KeptName name;
	int ncolumns;
	int nrelids;
	Index relids[KEPT_TABLES]; /* the tables of its plan, as range table indexes */
	Size room;                 /* bytes that further expressions of the plan may take */

	KeptTables tables; /* their states before the plan ran, */
	bool proved;       /* which prove that the rows are the same as long as the states are */
	bool wanted;       /* the lookup should be kept */
};

/* ---- plans whose rows depend on their tables only ------------------------------------ */

/* Adds the table of a scan to the identity; returns false if there are too many. */
static bool
add_table(LookupIdentity *identity, Index relid)
{
	if (identity->nrelids == KEPT_TABLES)
		return false;
	identity->relids[identity->nrelids++] = relid;
	return true;
}

/* Returns whether an expression, or a list of them, depends on columns and constants only. */
static bool
is_fixed(LookupIdentity *identity, const void *expr)
{
	return expr_is_fixed((Node *) expr, &identity->room);
}

/*
 * Returns whether the predicate of an index, if it is a partial one, depends on columns only.  The
 * conditions of a plan lack what the predicate implies.
 */
static bool
index_is_fixed(LookupIdentity *identity, Oid indexid)
{
	Relation index = index_open(indexid, AccessShareLock);
	bool fixed = is_fixed(identity, RelationGetIndexPredicate(index));

	index_close(index, AccessShareLock);
	return fixed;
}

/* Returns whether the rows of a plan depend on its tables only, and adds these to the identity. */
static bool
collect_tables(LookupIdentity *identity, const Plan *plan)
{
	check_stack_depth();
	if (plan == NULL)
		return true;
	if (plan->initPlan != NIL || !bms_is_empty(plan->extParam) || !bms_is_empty(plan->allParam) ||
		plan->parallel_aware || !is_fixed(identity, plan->targetlist) ||
		!is_fixed(identity, plan->qual))
		return false;
	switch (nodeTag(plan))
	{
		case T_SeqScan:
			if (!add_table(identity, ((const Scan *) plan)->scanrelid))
				return false;
			break;
		case T_IndexScan:
			if (((const IndexScan *) plan)->indexorderby != NIL ||
				!is_fixed(identity, ((const IndexScan *) plan)->indexqualorig) ||
				!index_is_fixed(identity, ((const IndexScan *) plan)->indexid) ||
				!add_table(identity, ((const Scan *) plan)->scanrelid))
				return false;
			break;
		case T_Hash:
			if (!is_fixed(identity, ((const Hash *) plan)->hashkeys))
				return false;
			break;
		case T_HashJoin:
			if (!is_fixed(identity, ((const HashJoin *) plan)->hashclauses) ||
				!is_fixed(identity, ((const HashJoin *) plan)->join.joinqual))
				return false;
			break;
		default:
			return false;
	}
	return collect_tables(identity, plan->lefttree) && collect_tables(identity, plan->righttree);
}

/* ---- names ----------------------------------------------------------------------------- */

/*
 * Appends a table: its OID, and the values of columns that its older rows lack.  These values are
 * in the catalog, so that the state of the table does not tell about them.
 */
static void
append_table(StringInfo buf, Relation rel)
{
	TupleDesc desc = RelationGetDescr(rel);
	const AttrMissing *missing = desc->constr ? desc->constr->missing : NULL;

	expr_append_number(buf, RelationGetRelid(rel));
	for (int a = 0; missing && a < desc->natts; a++)
		if (missing[a].am_present)
		{
			Datum value = missing[a].am_value;
			int16 typlen = TupleDescAttr(desc, a)->attlen;

			expr_append_number(buf, a);
			if (TupleDescAttr(desc, a)->attbyval)
				expr_append_number(buf, value);
			else
				appendBinaryStringInfo(buf, DatumGetPointer(value),
									   datumGetSize(value, false, typlen));
		}
}

/* Appends what the join reads of the plan, its tables, and settings. */
static void
append_use(StringInfo buf, const LookupIdentity *identity, const Lookup *lookup)
{
	EState *estate = lookup->inner->state;

	expr_append_number(buf, MyDatabaseId);
	expr_append_number(buf, lookup->exists_only);
	expr_append_number(buf, lookup->nkeys);
	for (int k = 0; k < lookup->nkeys; k++)
	{
		expr_append_number(buf, lookup->keys[k].attno);
		expr_append_number(buf, lookup->keys[k].inner_width);
	}
	expr_append_number(buf, lookup->ncolumns);
	for (int c = 0; c < lookup->ncolumns; c++)
		expr_append_number(buf, lookup->columns[c].resno);
	for (int i = 0; i < identity->nrelids; i++)
		append_table(buf, compat_range_table_relation(estate, identity->relids[i]));
	expr_append_settings(buf);
}

/* Sets the name of a lookup to the hash of its description. */
static void
set_name(LookupIdentity *identity, const Lookup *lookup, const Plan *hash)
{
	StringInfoData buf;

	initStringInfo(&buf);
	expr_append_fixed(&buf, hash);
	append_use(&buf, identity, lookup);
	expr_digest(&buf, identity->name.bytes);
	pfree(buf.data);
}

/* Returns the identity of a lookup; without tables, it is not kept.  hash: the join's inner side */
static LookupIdentity *
identify(const Lookup *lookup, const Plan *hash)
{
	LookupIdentity *identity = MemoryContextAllocZero(lookup->parent, sizeof(LookupIdentity));

	identity->ncolumns = lookup->ncolumns;
	identity->room = EXPRESSION_BYTES;
	if (!lookup_has_integers(lookup) || !collect_tables(identity, hash))
		identity->nrelids = 0;
	return identity;
}

/* Reads the states of the tables; returns false if these do not prove anything. */
static bool
prove_tables(const Lookup *lookup)
{
	LookupIdentity *identity = lookup->identity;
	EState *estate = lookup->inner->state;

	memset(&identity->tables, 0, sizeof(identity->tables));
	identity->proved = identity->wanted = false;
	if (identity->nrelids == 0)
		return false;
	for (int i = 0; i < identity->nrelids; i++)
	{
		Relation rel = compat_range_table_relation(estate, identity->relids[i]);

		if (!proof_table(rel, estate->es_snapshot, &identity->tables.of[identity->tables.n++]))
			return false;
	}
	identity->proved = true;
	return true;
}

/* ---- images ------------------------------------------------------------------------------ */

/* What is kept: the rows of a lookup, with pointers into the same memory. */
typedef struct Image
{
	Lookup lookup;
	LookupColumn columns[FLEXIBLE_ARRAY_MEMBER];
} Image;

/* Copies arrays one after the other. */
typedef struct Copier
{
	char *to; /* NULL: only adds up the sizes */
	Size at;
} Copier;

/* Copies an array, which may be NULL. */
static void *
copy_array(Copier *copier, const void *from, Size bytes)
{
	char *to = copier->to + copier->at;

	if (from == NULL)
		return NULL;
	copier->at += MAXALIGN(bytes);
	if (copier->to == NULL)
		return NULL;
	memcpy(to, from, bytes);
	return to;
}

/* Copies the distinct values of a column. */
static Datum *
copy_values(Copier *copier, const LookupColumn *column)
{
	Datum *copies = copy_array(copier, column->values, sizeof(Datum) * column->ncodes);

	for (uint32 i = 0; i < column->ncodes; i++)
	{
		void *copy = copy_array(copier, DatumGetPointer(column->values[i]),
								datumGetSize(column->values[i], false, column->typlen));

		if (copies)
			copies[i] = PointerGetDatum(copy);
	}
	return copies;
}

/* The states of a note. */
typedef enum LookupNoteState
{
	NOTE_EMPTY,
	NOTE_IS_WRITTEN, /* a process is writing it */
	NOTE_VALID
} LookupNoteState;

/* The notes of a column when it is kept. */
static const LookupNote no_notes[2] = {{.state = {NOTE_EMPTY}}};

/* Copies a lookup; returns the bytes of the copy.  to: NULL: only computes the size */
static Size
copy_lookup(const Lookup *lookup, void *to)
{
	Image *image = to;
	Copier copier = {to,
					 MAXALIGN(offsetof(Image, columns) + sizeof(LookupColumn) * lookup->ncolumns)};
	uint64 range = (uint64) lookup->greatest - (uint64) lookup->least;
	Lookup copy = *lookup;

	copy.bits = copy_array(&copier, lookup->bits, (range / 64 + 1) * sizeof(uint64));
	copy.next = copy_array(&copier, lookup->next, sizeof(uint32) * lookup->nrows);
	copy.array = copy_array(&copier, lookup->array, (range + 1) * sizeof(uint32));
	copy.slots = copy_array(&copier, lookup->slots, (lookup->mask + 1) * sizeof(uint32));
	copy.integers = copy_array(&copier, lookup->integers, sizeof(int64) * lookup->nrows);
	copy.hashes = copy_array(&copier, lookup->hashes, sizeof(uint32) * lookup->nrows);
	copy.values =
		copy_array(&copier, lookup->values, sizeof(Datum) * lookup->nkeys * lookup->nrows);
	if (image)
		image->lookup = copy;
	for (int c = 0; c < lookup->ncolumns; c++)
	{
		LookupColumn column = lookup->columns[c];

		column.nulls = copy_array(&copier, column.nulls, sizeof(bool) * lookup->nrows);
		column.codes = copy_array(&copier, column.codes, sizeof(uint32) * lookup->nrows);
		column.values = column.byval ?
			copy_array(&copier, column.values, sizeof(Datum) * lookup->nrows) :
			copy_values(&copier, &lookup->columns[c]);
		column.notes = copy_array(&copier, no_notes, sizeof(no_notes));
		if (image)
			image->columns[c] = column;
	}
	return copier.at;
}

/* Returns whether all values are in the lookup's memory, and none in a table. */
static bool
is_complete(const Lookup *lookup)
{
	for (int c = 0; c < lookup->ncolumns; c++)
		for (uint32 i = 0; lookup->columns[c].typlen == -1 && i < lookup->columns[c].ncodes; i++)
			if (VARATT_IS_EXTERNAL(DatumGetPointer(lookup->columns[c].values[i])))
				return false;
	return true;
}

/* Makes the rows of an image those of the lookup. */
static void
use_image(Lookup *lookup, const Image *image)
{
	const Lookup *from = &image->lookup;

	lookup->builds++;
	lookup->serial = kept_serial(image);
	lookup->form = from->form;
	lookup->nrows = lookup->capacity = from->nrows;
	lookup->ninner = from->ninner;
	lookup->bytes = from->bytes;
	lookup->least = from->least;
	lookup->greatest = from->greatest;
	lookup->bits = from->bits;
	lookup->next = from->next;
	lookup->array = from->array;
	lookup->mask = from->mask;
	lookup->seed = from->seed;
	lookup->slots = from->slots;
	lookup->integers = from->integers;
	lookup->hashes = from->hashes;
	lookup->values = from->values;
	for (int c = 0; c < lookup->ncolumns; c++)
	{
		LookupColumn *column = &lookup->columns[c];

		column->nulls = image->columns[c].nulls;
		column->values = image->columns[c].values;
		column->codes = image->columns[c].codes;
		column->ncodes = image->columns[c].ncodes;
		column->longest = image->columns[c].longest;
		column->notes = image->columns[c].notes;
		column->dictionary = expr_new_dictionary();
	}
}

/* Reset callback of the lookup's memory context. */
static void
release_image(void *image)
{
	kept_release(image);
}

/*
 * Returns whether this process counts the query's use of the lookup: one participant of a parallel
 * scan does.
 */
static bool
counts_use(void)
{
	return !IsParallelWorker() || (ParallelWorkerNumber == 0 && !parallel_leader_participation);
}

bool
lookup_attach(Lookup *lookup, const Plan *hash, bool again)
{
	MemoryContextCallback *callback;
	const Image *image;

	lookup->kept = false;
	lookup->serial = 0;
	for (int c = 0; c < lookup->ncolumns; c++)
		lookup->columns[c].notes = NULL;
	if (!cache_available())
		return false;
	if (lookup->identity == NULL || lookup->identity->ncolumns != lookup->ncolumns)
		lookup->identity = identify(lookup, hash);
	if (!prove_tables(lookup))
		return false;
	if (!lookup->identity->named)
		set_name(lookup->identity, lookup, hash);
	lookup->identity->named = true;
	lookup_free(lookup);
	lookup->cxt = AllocSetContextCreate(lookup->parent, "gpuagg lookup", ALLOCSET_SMALL_SIZES);
	callback = MemoryContextAllocZero(lookup->cxt, sizeof(*callback));
	image = kept_find(&lookup->identity->name, &lookup->identity->tables, !again && counts_use(),
					  &lookup->identity->wanted);
	if (image == NULL)
	{
		lookup_free(lookup);
		return false;
	}
	callback->func = release_image;
	callback->arg = (void *) image;
	MemoryContextRegisterResetCallback(lookup->cxt, callback);
	use_image(lookup, image);
	lookup->kept = true;
	return true;
}

bool
lookup_can_be_kept(const Lookup *lookup)
{
	const Plan *plan = lookup->inner->plan;

	return cache_available() && lookup->identity && lookup->identity->proved &&
		plan->plan_rows * (plan->plan_width + ROW_BYTES) <= kept_largest();
}

size_t
lookup_most_kept(void)
{
	return kept_largest();
}

void
lookup_keep(Lookup *lookup, bool shared)
{
	LookupIdentity *identity = lookup->identity;
	void *image;
	uint64 serial;

	if (identity == NULL || !identity->proved || !(identity->wanted || shared) ||
		!is_complete(lookup))
		return;
	identity->wanted = false;
	image =
		kept_allocate(&identity->name, &identity->tables, copy_lookup(lookup, NULL), lookup->nrows);
	if (image)
	{
		copy_lookup(lookup, image);
		serial = kept_serial(image);
		if (kept_publish(image))
			lookup->serial = serial;
	}
}

bool
lookup_find_summary(const LookupColumn *column, LookupSummary *summary)
{
	LookupNote *note = column->notes ? &column->notes[summary->presence] : NULL;

	if (note == NULL || pg_atomic_read_u32(&note->state) != NOTE_VALID)
		return false;
	pg_read_barrier();
	if (note->summary.type != summary->type || note->summary.scale != summary->scale)
		return false;
	*summary = note->summary;
	return true;
}

void
lookup_note_summary(const LookupColumn *column, const LookupSummary *summary)
{
	LookupNote *note = column->notes ? &column->notes[summary->presence] : NULL;
	uint32 empty = NOTE_EMPTY;

	if (note == NULL || !pg_atomic_compare_exchange_u32(&note->state, &empty, NOTE_IS_WRITTEN))
		return;
	note->summary = *summary;
	pg_write_barrier();
	pg_atomic_write_u32(&note->state, NOTE_VALID);
}

/*
 * dictionaries.c
 *	  This process's copies of the server's dictionaries; see dictionaries.h.
 *
 * The dictionary with a given id only grows, so a copy stays valid from query to query.
 *
 * A query calls functions with the values, and such a function may run another query that comes
 * here, too. So a query holds the copy that it reads: a held copy is neither changed nor freed. If
 * it must change, another copy replaces it in the list, and the last hold frees it. A hold is a
 * memory context, so that an error ends it.
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "utils/memutils.h"

#include "engine_cuda/dictionaries.h"

/* Limits of what is kept from query to query. The most recently used copy is always kept. */
#define MOST_BYTES (32 * 1024 * 1024)
#define MOST_DICTIONARIES 256

/* Limits of a dictionary that is copied. The values of others are read by each query. */
#define MOST_COPIED (1024 * 1024)
#define MOST_COPIED_BYTES (32 * 1024 * 1024)

/* The copy of one column's dictionary. */
typedef struct Entry
{
	CudaDictionary dict;
	dlist_node node; /* in `entries`, ordered by last use */
	WireTableKey table;
	WireColumnKey column;
	MemoryContext cxt;    /* contains the entry and all its memory */
	int holds;            /* number of queries that read it */
	bool listed;          /* it is in `entries`; else the last hold frees it */
	MemoryContext values; /* for dict.values and their data */
} Entry;

/* A query's hold of an entry: what the entry had when the hold began. */
typedef struct Hold
{
	CudaDictionary dict; /* must be first: callers have a pointer to it */
	Entry *entry;
	MemoryContextCallback end;
} Hold;

static dlist_head entries = DLIST_STATIC_INIT(entries);

static Entry *
make_entry(WireTableKey table, const WireColumnKey *column)
{
	MemoryContext cxt =
		AllocSetContextCreate(TopMemoryContext, "GPU dictionary", ALLOCSET_SMALL_SIZES);
	Entry *e = MemoryContextAllocZero(cxt, sizeof(Entry));

	e->cxt = cxt;
	e->values = AllocSetContextCreate(cxt, "GPU dictionary values", ALLOCSET_DEFAULT_SIZES);
	e->table = table;
	e->column = *column;
	e->listed = true;
	dlist_push_head(&entries, &e->node);
	return e;
}

/* Returns the entry of a column, which is created if necessary. */
static Entry *
get_entry(WireTableKey table, const WireColumnKey *column)
{
	dlist_iter iter;

	dlist_foreach(iter, &entries)
	{
		Entry *e = dlist_container(Entry, node, iter.cur);

		if (e->table.id == table.id && memcmp(&e->column, column, sizeof(*column)) == 0)
		{
			dlist_move_head(&entries, &e->node);
			return e;
		}
	}
	return make_entry(table, column);
}

static void
free_if_unused(Entry *e)
{
	if (!e->listed && e->holds == 0)
		MemoryContextDelete(e->cxt);
}

static void
remove_entry(Entry *e)
{
	dlist_delete(&e->node);
	e->listed = false;
	free_if_unused(e);
}

static void
end_hold(void *arg)
{
	Entry *e = ((Hold *) arg)->entry;

	e->holds--;
	free_if_unused(e);
}

static const CudaDictionary *
hold_entry(Entry *e)
{
	MemoryContext cxt =
		AllocSetContextCreate(CurrentMemoryContext, "GPU dictionary hold", ALLOCSET_SMALL_SIZES);
	Hold *held = MemoryContextAllocZero(cxt, sizeof(Hold));

	held->dict = e->dict;
	held->entry = e;
	held->end.func = end_hold;
	held->end.arg = held;
	e->holds++;
	MemoryContextRegisterResetCallback(cxt, &held->end);
	return &held->dict;
}

void
cuda_dictionary_release(const CudaDictionary *dict)
{
	MemoryContextDelete(GetMemoryChunkContext(unconstify(CudaDictionary *, dict)));
}

void
cuda_dictionaries_trim(void)
{
	Size bytes = 0;
	int n = 0;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &entries)
	{
		Entry *e = dlist_container(Entry, node, iter.cur);

		bytes += MemoryContextMemAllocated(e->cxt, true);
		if (++n > 1 && (bytes > MOST_BYTES || n > MOST_DICTIONARIES))
			remove_entry(e);
	}
}

bool
cuda_make_value(int16 typlen, bool typbyval, const char *image, uint32 length, Datum *out)
{
	char *copy;

	if (typbyval)
	{
		if (length != sizeof(Datum))
			return false;
		memcpy(out, image, sizeof(Datum));
		return true;
	}
	if (typlen > 0 && length != typlen)
		return false;
	if (typlen > 0)
	{
		copy = palloc(length);
		memcpy(copy, image, length);
	}
	else
	{
		copy = palloc(VARHDRSZ + length);
		SET_VARSIZE(copy, VARHDRSZ + length);
		memcpy(VARDATA(copy), image, length);
	}
	*out = PointerGetDatum(copy);
	return true;
}

/* Makes the values of an answer. Returns false if it is not valid. */
static bool
make_values(Form_pg_attribute att, const WireEntries *in, const char *buffer, Datum *values)
{
	const uint32 *lengths = (const uint32 *) buffer;
	const char *image = buffer + in->n * sizeof(uint32);
	size_t left = in->bytes;

	for (uint32 i = 0; i < in->n; i++)
	{
		if (lengths[i] > left ||
			!cuda_make_value(att->attlen, att->attbyval, image, lengths[i], &values[i]))
			return false;
		image += lengths[i];
		left -= lengths[i];
	}
	return true;
}

/* Returns whether the answer is valid: it continues the copy, or begins another one. */
static bool
is_valid_answer(const Entry *e, const WireEntries *in, size_t buffer_bytes)
{
	return in->first <= in->nentries && in->n <= in->nentries - in->first &&
		(size_t) in->n * sizeof(uint32) + in->bytes <= buffer_bytes &&
		in->nentries < PG_INT32_MAX &&
		(in->first == 0 || (in->id == e->dict.known.id && in->first == e->dict.copied));
}

/* Adds the answer's entries to the copy. Returns false if the answer is not valid. */
static bool
add_entries(Entry *e, Form_pg_attribute att, const WireEntries *in, const char *buffer,
			size_t buffer_bytes)
{
	CudaDictionary *dict = &e->dict;
	size_t room = (in->first + in->n + 1) * sizeof(Datum);

	if (!is_valid_answer(e, in, buffer_bytes))
		return false;
	if (in->first == 0)
	{
		/* it may be another dictionary than before */
		*dict = (CudaDictionary){0};
		MemoryContextReset(e->values);
	}
	dict->known = (WireKnown){in->id, in->nentries};
	dict->all_bytes = in->all_bytes;
	if (in->n == 0)
		return true;
	dict->values = dict->values ? repalloc_huge(dict->values, room) :
								  MemoryContextAllocHuge(CurrentMemoryContext, room);
	if (!make_values(att, in, buffer, dict->values + in->first))
		return false;
	dict->copied = in->first + in->n;
	return true;
}

/* Asks for up to `most` entries that the copy lacks. */
static bool
fetch_entries(Client *client, Entry *e, Form_pg_attribute att, uint32 most)
{
	WireDictionary message = {.table = e->table,
							  .column = e->column,
							  .id = e->dict.known.id,
							  .nentries = e->dict.copied,
							  .most = most};
	MemoryContext old;
	WireEntries in;
	bool ok;

	if (!client_send(client, MESSAGE_DICTIONARY, &message, sizeof(message)) ||
		!client_receive(client, MESSAGE_ENTRIES, &in, sizeof(in)))
		return false;
	old = MemoryContextSwitchTo(e->values);
	ok = (most > 0 || in.n == 0) &&
		add_entries(e, att, &in, client->arena, client->welcome.buffer_bytes);
	MemoryContextSwitchTo(old);
	if (!ok)
		client_fail(client, "the GPU server sent an invalid answer");
	return ok;
}

/* Returns whether the copy lacks entries, and may have all. */
static bool
lacks_entries(const CudaDictionary *dict)
{
	return dict->copied < dict->known.nentries && dict->known.nentries <= MOST_COPIED &&
		dict->all_bytes <= MOST_COPIED_BYTES;
}

/* Most times that a dictionary is replaced while it is copied. */
#define MOST_REPLACED 8

/* Asks the server for what is to be known. Returns false if the session is lost. */
static bool
update_entry(Client *client, Entry *e, Form_pg_attribute att, bool refresh, bool copy)
{
	int replaced = 0;

	if ((refresh || e->dict.known.id == 0) && !fetch_entries(client, e, att, 0))
		return false;
	while (copy && lacks_entries(&e->dict))
	{
		uint32 had = e->dict.copied;
		uint64 id = e->dict.known.id;

		CHECK_FOR_INTERRUPTS();
		if (!fetch_entries(client, e, att, MOST_COPIED))
			return false;
		if (e->dict.known.id != id && replaced++ < MOST_REPLACED)
			continue;
		if (e->dict.copied <= had && lacks_entries(&e->dict))
			return client_fail(client, "the GPU server sent an invalid answer");
	}
	return true;
}

const CudaDictionary *
cuda_dictionary(Client *client, WireTableKey table, const WireColumnKey *column,
				Form_pg_attribute att, bool refresh, bool copy)
{
	Entry *e = get_entry(table, column);

	if (e->holds > 0 && (refresh || (copy && lacks_entries(&e->dict))))
	{
		remove_entry(e);
		e = make_entry(table, column);
	}
	if (!update_entry(client, e, att, refresh, copy))
	{
		remove_entry(e);
		return NULL;
	}
	return hold_entry(e);
}

/*
 * Reads the next values of a dictionary, and passes them on. *from: the first one. Sets *replaced
 * if the server does not have it any longer. Returns false if the session is lost.
 */
static bool
read_portion(Client *client, WireDictionary *message, Form_pg_attribute att, WireKnown known,
			 uint32 *from, CudaTakeEntries take, void *arg, bool *replaced)
{
	Datum *values;
	WireEntries in;

	message->nentries = *from;
	message->most = known.nentries - *from;
	if (!client_send(client, MESSAGE_DICTIONARY, message, sizeof(*message)) ||
		!client_receive(client, MESSAGE_ENTRIES, &in, sizeof(in)))
		return false;
	*replaced = in.id != known.id;
	if (*replaced)
		return true;
	if (in.first != *from || in.n == 0 || in.n > message->most ||
		(size_t) in.n * sizeof(uint32) + in.bytes > client->welcome.buffer_bytes)
		return client_fail(client, "the GPU server sent an invalid answer");
	values = palloc_extended(in.n * sizeof(Datum), MCXT_ALLOC_HUGE);
	if (!make_values(att, &in, client->arena, values))
		return client_fail(client, "the GPU server sent an invalid answer");
	take(arg, *from, values, in.n);
	*from += in.n;
	return true;
}

bool
cuda_dictionary_read(Client *client, WireTableKey table, const WireColumnKey *column,
					 Form_pg_attribute att, WireKnown known, uint32 from, CudaTakeEntries take,
					 void *arg, bool *replaced)
{
	WireDictionary message = {.table = table, .column = *column, .id = known.id};
	MemoryContext portion = AllocSetContextCreate(CurrentMemoryContext, "GPU dictionary portion",
												  ALLOCSET_DEFAULT_SIZES);
	bool ok = true;

	*replaced = false;
	while (ok && !*replaced && from < known.nentries)
	{
		MemoryContext old = MemoryContextSwitchTo(portion);

		CHECK_FOR_INTERRUPTS();
		ok = read_portion(client, &message, att, known, &from, take, arg, replaced);
		MemoryContextSwitchTo(old);
		MemoryContextReset(portion);
	}
	MemoryContextDelete(portion);
	return ok;
}

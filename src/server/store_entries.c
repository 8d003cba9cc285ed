/*
 * store_entries.c
 *	  The entries that STORE brings with a coded column; see store_entries.h.
 */
#include <stdlib.h>
#include <string.h>

#include "server/store_entries.h"

/* Returns whether the message is for the range and column whose entries have come before. */
static bool
is_continued(const StoreEntries *e, const WireStore *in)
{
	return e->table.id == in->table.id && e->stamp == in->stamp && e->range == in->range &&
		memcmp(&e->column, &in->column, sizeof(e->column)) == 0;
}

static void
start(StoreEntries *e, const WireStore *in)
{
	store_entries_forget(e);
	e->table = in->table;
	e->column = in->column;
	e->stamp = in->stamp;
	e->range = in->range;
	e->dict = dictionary_take(in->table, &in->column, true);
	e->refused = e->dict == NULL;
}

void
store_entries_refuse(StoreEntries *e)
{
	dictionary_give(e->dict);
	free(e->codes);
	e->dict = NULL;
	e->codes = NULL;
	e->room = 0;
	e->refused = true;
}

static bool
make_room(StoreEntries *e, uint32_t n)
{
	uint32_t *larger;

	if (n <= e->room)
		return true;
	larger = realloc(e->codes, n * sizeof(*larger));
	if (larger == NULL)
		return false;
	e->codes = larger;
	e->room = n;
	return true;
}

/* Returns whether the entries' lengths are valid and add up to the message's bytes. */
static bool
has_valid_lengths(const WireStore *in, const char *entries)
{
	const uint32_t *lengths = (const uint32_t *) entries;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < in->nentries; i++)
	{
		if (lengths[i] > WIRE_MAX_ENTRY_BYTES)
			return false;
		bytes += lengths[i];
	}
	return bytes == in->bytes;
}

const char *
store_entries_take(StoreEntries *e, const WireStore *in, const char *buffer)
{
	size_t size = in->nentries * sizeof(uint32_t) + in->bytes;
	const char *wrong = NULL;
	char *copy;

	if (in->before == 0)
		start(e, in);
	else if (!is_continued(e, in) || in->before != e->n)
		return "entries of another range";
	e->n = in->before + in->nentries;
	if (e->refused)
		return NULL;
	copy = malloc(size + 1);
	if (copy == NULL || !make_room(e, e->n))
		store_entries_refuse(e);
	else
	{
		memcpy(copy, buffer + in->entries, size);
		if (!has_valid_lengths(in, copy))
			wrong = "lengths of entries";
		else if (!dictionary_add(e->dict, copy, in->nentries, e->codes + in->before))
			store_entries_refuse(e);
	}
	free(copy);
	return wrong;
}

void
store_entries_translate(const StoreEntries *e, uint32_t *values, uint32_t n)
{
	/* an index without an entry becomes a code without one; that of a NULL may be anything */
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t value = values[i];

		values[i] = value < e->n ? e->codes[value] : DICTIONARY_NO_CODE;
	}
}

void
store_entries_forget(StoreEntries *e)
{
	store_entries_refuse(e);
	memset(e, 0, sizeof(*e));
}

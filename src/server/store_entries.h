/*
 * store_entries.h
 *	  The entries that STORE brings with a coded column, and their codes in its dictionary.
 *
 * One range's entries may come in several messages (WireStore.more). A session remembers the codes
 * of those that have come. All of this is done without the lock of a store, because a message may
 * have a buffer full of new entries.
 */
#ifndef GPUAGG_STORE_ENTRIES_H
#define GPUAGG_STORE_ENTRIES_H

#include "server/column_dictionary.h"

/* The entries of one range's column that have come. All zeros: none. */
typedef struct StoreEntries
{
	WireTableKey table;
	WireColumnKey column;
	uint64_t stamp;
	uint32_t range;
	Dictionary *dict; /* a reference, or NULL */
	bool refused;     /* some entries had no room: the column cannot be stored; dict is NULL */
	uint32_t n;
	uint32_t room;
	uint32_t *codes; /* of n entries */
} StoreEntries;

/*
 * Adds the message's entries to the dictionary of its column. The message was checked; `buffer` has
 * its entries, and the client may change it at any time. Returns NULL, or what is wrong with the
 * entries. Sets e->refused if they have no room.
 */
extern const char *store_entries_take(StoreEntries *e, const WireStore *in, const char *buffer);
/* Replaces n indexes of entries by codes of the dictionary. */
extern void store_entries_translate(const StoreEntries *e, uint32_t *values, uint32_t n);
/* Frees what is remembered, because the column cannot be stored. */
extern void store_entries_refuse(StoreEntries *e);
/* Frees everything; the next message must be the first one of a range. */
extern void store_entries_forget(StoreEntries *e);

#endif /* GPUAGG_STORE_ENTRIES_H */

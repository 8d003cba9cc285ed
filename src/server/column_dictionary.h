/*
 * column_dictionary.h
 *	  Dictionary of a stored column: distinct strings of bytes, numbered from 0 as they come.
 *
 * Dictionaries are in host memory, and only grow. A column has the same dictionary on all devices.
 * Each device that stores something of the column takes a reference, and the last dictionary_give()
 * frees the dictionary. A retired dictionary gets no more references: the column gets a new one,
 * and the devices must free what they have stored with the old one.
 *
 * All functions may be called from any thread.
 */
#ifndef GPUAGG_COLUMN_DICTIONARY_H
#define GPUAGG_COLUMN_DICTIONARY_H

#include <stdbool.h>

#include "protocol.h"

typedef struct Dictionary Dictionary;

/*
 * Returns a reference to the column's dictionary. `make`: creates one if there is none, with an id
 * that is never used twice. NULL: there is none, or no memory.
 */
extern Dictionary *dictionary_take(WireTableKey table, const WireColumnKey *column, bool make);
/* Gives a reference back. NULL is allowed. */
extern void dictionary_give(Dictionary *dict);

/*
 * Retires a dictionary. Devices compare the count of retired ones to see when to look for theirs.
 */
extern void dictionary_retire(Dictionary *dict);
extern bool dictionary_is_retired(const Dictionary *dict);
extern uint64_t dictionary_retired_count(void);

/* Return bytes of host memory: of one dictionary, and of all that are not retired. */
extern uint64_t dictionary_bytes(const Dictionary *dict);
extern uint64_t dictionary_bytes_of_all(void);

/*
 * Replaces n codes. They are indexes of the entries at `from`, in the layout of WireEntries, and
 * become codes of the dictionary. New entries are added. Returns false, and leaves the codes, if
 * the entries are not valid or there is no room.
 */
extern bool dictionary_translate(Dictionary *dict, const char *from, uint32_t nentries,
								 uint32_t bytes, uint32_t *codes, uint32_t n);

extern uint64_t dictionary_id(const Dictionary *dict);
extern uint32_t dictionary_entries(const Dictionary *dict);

/*
 * Answers DICTIONARY: writes the entries that the client lacks to `to`, and fills in *out. dict may
 * be NULL: there is none. `to` must have room for any dictionary.
 */
extern void dictionary_read(Dictionary *dict, const WireDictionary *known, char *to,
							WireEntries *out);

#endif /* GPUAGG_COLUMN_DICTIONARY_H */

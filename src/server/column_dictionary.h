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

/*
 * Return bytes of host memory: of one dictionary, of all that are not retired, and of retired ones
 * that something still has a reference to.
 */
extern uint64_t dictionary_bytes(const Dictionary *dict);
extern uint64_t dictionary_bytes_of_all(void);
extern uint64_t dictionary_retired_bytes(void);

/* Not the code of any entry. */
#define DICTIONARY_NO_CODE UINT32_MAX

/*
 * Fills in the codes of entries in the layout of WireEntries, which must have been checked. New
 * ones are added. Returns false if there is no memory or there are no more codes.
 */
extern bool dictionary_add(Dictionary *dict, const char *from, uint32_t nentries, uint32_t *codes);

/* Returns another reference to the same dictionary. */
extern Dictionary *dictionary_share(Dictionary *dict);
extern uint64_t dictionary_id(const Dictionary *dict);
extern uint32_t dictionary_entries(const Dictionary *dict);

/*
 * Answers DICTIONARY: writes entries that the client lacks to `to`, as many as have room there, and
 * fills in *out. dict may be NULL: there is none.
 */
extern void dictionary_read(Dictionary *dict, const WireDictionary *known, char *to, size_t room,
							WireEntries *out);
/*
 * Answers VALUES: writes the entries of n codes to `to`, or of as many as have room there. Returns
 * how many; *bytes: of their images. A code without an entry has an empty one.
 */
extern uint32_t dictionary_values(Dictionary *dict, const uint32_t *codes, uint32_t n, char *to,
								  size_t room, uint32_t *bytes);

#endif /* GPUAGG_COLUMN_DICTIONARY_H */

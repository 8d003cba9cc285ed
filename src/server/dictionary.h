/*
 * dictionary.h
 *	  The dictionary of a stored column: strings of bytes, numbered from 0 as they come.
 *
 * Plain host memory.  A dictionary only grows.  A column has the same one on all devices: each that
 * has something of it takes it, and the last one that gives it back frees it.  A dictionary that is
 * retired is given to nobody any more: the column gets a new one, and devices must free what they
 * have of the column by the old one.
 */
#ifndef GPUAGG_SERVER_DICTIONARY_H
#define GPUAGG_SERVER_DICTIONARY_H

#include <stdbool.h>

#include "protocol.h"

typedef struct Dictionary Dictionary;

/*
 * That of a column, which may be made, with an id that no other has had, or will; NULL: there is
 * none, or no memory.
 */
extern Dictionary *dictionary_take(WireTableKey table, const WireColumnKey *column, bool make);
/* NULL: nothing to do. */
extern void dictionary_give(Dictionary *dict);

/*
 * Retires a dictionary; the number of those that were retired so far tells devices when to look for
 * theirs.
 */
extern void dictionary_retire(Dictionary *dict);
extern bool dictionary_is_retired(const Dictionary *dict);
extern uint64_t dictionary_retired_count(void);

/* Bytes of host memory: of one dictionary, and of all that are not retired. */
extern uint64_t dictionary_bytes(const Dictionary *dict);
extern uint64_t dictionary_bytes_of_all(void);

/*
 * Replaces n codes, which are numbers of entries that lie at `from` as WireEntries has them, by
 * those of the dictionary, which gets what it lacks.  false: the entries make no sense or there is
 * no room; then the codes stay.
 */
extern bool dictionary_translate(Dictionary *dict, const char *from, uint32_t nentries,
								 uint32_t bytes, uint32_t *codes, uint32_t n);

extern uint64_t dictionary_id(const Dictionary *dict);
extern uint32_t dictionary_entries(const Dictionary *dict);

/*
 * Writes what a client lacks that knows so much; dict NULL: there is none.  `to` has room for any
 * dictionary.
 */
extern void dictionary_read(Dictionary *dict, const WireDictionary *known, char *to,
							WireEntries *out);

#endif /* GPUAGG_SERVER_DICTIONARY_H */

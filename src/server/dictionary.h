/*
 * dictionary.h
 *	  The dictionary of a stored column: strings of bytes, numbered from 0 as they come.
 *
 * Plain host memory; whoever has the column has a lock.  It only grows.
 */
#ifndef GPUAGG_SERVER_DICTIONARY_H
#define GPUAGG_SERVER_DICTIONARY_H

#include <stdbool.h>

#include "protocol.h"

typedef struct Dictionary Dictionary;

/* With an id that no other has had, or will; NULL: no memory. */
extern Dictionary *dictionary_create(void);
extern void dictionary_free(Dictionary *dict);

/*
 * Replaces n codes, which are numbers of entries that lie at `from` as WireEntries has them, by those of the
 * dictionary, which gets what it lacks.  false: the entries make no sense or there is no room; then the codes stay.
 */
extern bool dictionary_translate(Dictionary *dict, const char *from, uint32_t nentries, uint32_t bytes,
								 uint32_t *codes, uint32_t n);

extern uint64_t dictionary_id(const Dictionary *dict);
extern uint32_t dictionary_entries(const Dictionary *dict);

/* Writes what a client lacks that knows so much; dict NULL: there is none.  `to` has room for any dictionary. */
extern void dictionary_read(const Dictionary *dict, const WireDictionary *known, char *to, WireEntries *out);

#endif							/* GPUAGG_SERVER_DICTIONARY_H */

/*
 * dictionaries.h
 *	  This process's copies of the server's dictionaries of coded columns (protocol.h); chunks
 *	  of the column cache in the form of STORE.
 */
#ifndef GPUAGG_CUDA_DICTIONARIES_H
#define GPUAGG_CUDA_DICTIONARIES_H

#include "postgres.h"

#include "access/tupdesc.h"

#include "cache/chunk.h"
#include "engine_cuda/client.h"
#include "protocol.h"

/* What this process knows of a dictionary. */
typedef struct CudaDictionary
{
	WireKnown known;  /* its id, and number of entries; id 0: there is no dictionary */
	uint64 all_bytes; /* size of all its entries */
	uint32 copied;    /* number of entries in the copy, from the first one on */
	Datum *values;    /* values of these entries */
} CudaDictionary;

/*
 * Returns what is known of a column's dictionary. Asks the server if nothing is known, or if
 * `refresh` is set. `copy`: copies all entries, unless they are too many. NULL: the session is
 * lost. The result stays unchanged until cuda_dictionary_release(), or until the end of the current
 * memory context, even if other queries of this process use the dictionary meanwhile.
 */
extern const CudaDictionary *cuda_dictionary(Client *client, WireTableKey table,
											 const WireColumnKey *column, Form_pg_attribute att,
											 bool refresh, bool copy);

/* Takes n values of a dictionary, from number `from` on, which it must not keep. */
typedef void (*CudaTakeEntries)(void *arg, uint32 from, const Datum *values, uint32 n);

/*
 * Reads the values of a dictionary from number `from` on, up to those that are known, in portions,
 * and copies nothing for later. Sets *replaced if the server has no such dictionary any longer; not
 * all values were taken then. Returns false if the session is lost.
 */
extern bool cuda_dictionary_read(Client *client, WireTableKey table, const WireColumnKey *column,
								 Form_pg_attribute att, WireKnown known, uint32 from,
								 CudaTakeEntries take, void *arg, bool *replaced);

extern void cuda_dictionary_release(const CudaDictionary *dict);

/*
 * Removes copies, the least recently used ones first, until they take an acceptable amount of
 * memory.
 */
extern void cuda_dictionaries_trim(void);

/*
 * Makes a value of a dictionary's entry, in the current memory context. Returns false if its length
 * is not valid.
 */
extern bool cuda_make_value(int16 typlen, bool typbyval, const char *image, uint32 length,
							Datum *out);

/* A chunk as codes and entries. */
typedef struct CudaEncoded CudaEncoded;

/*
 * Encodes a chunk, in a memory context of its own; the chunk must stay. Returns NULL if it has
 * values out of line, or too long ones.
 */
extern CudaEncoded *cuda_encode_chunk(const CacheChunk *chunk, Form_pg_attribute att);
/* Returns whether a buffer of this size has room for the codes and an entry. */
extern bool cuda_encoded_fits(const CudaEncoded *encoded, size_t buffer_bytes);
/*
 * Writes the codes, and the next entries that have room, to a buffer, and describes them in *out.
 * Returns whether more entries are left, for another message.
 */
extern bool cuda_encoded_write(CudaEncoded *encoded, char *buffer, size_t buffer_bytes,
							   WireStore *out);
extern void cuda_encoded_free(CudaEncoded *encoded);

#endif /* GPUAGG_CUDA_DICTIONARIES_H */

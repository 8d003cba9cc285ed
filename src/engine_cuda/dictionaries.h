/*
 * dictionaries.h
 *	  Dictionaries of coded columns (protocol.h): what this process knows of the server's, and
 * chunks as STORE has them.
 */
#ifndef GPUAGG_CUDA_DICTIONARIES_H
#define GPUAGG_CUDA_DICTIONARIES_H

#include "postgres.h"

#include "access/tupdesc.h"

#include "cache/chunk.h"
#include "engine_cuda/client.h"
#include "protocol.h"

typedef struct CudaDictionary
{
	WireKnown known; /* id 0: there is none */
	Datum *values;   /* [number] */
} CudaDictionary;

/*
 * What is known of a column's dictionary, asked of the server if that is nothing, or `again`; NULL:
 * the session is lost. It stays as it is until cuda_dictionary_release(), or the end of the current
 * memory context, whatever other queries of this process do meanwhile.
 */
extern const CudaDictionary *cuda_dictionary(Client *client, WireTableKey table,
											 const WireColumnKey *column, Form_pg_attribute att,
											 bool again);

extern void cuda_dictionary_release(const CudaDictionary *dict);

/*
 * Forgets dictionaries, the least recently used ones first, until they take an acceptable amount of
 * memory.
 */
extern void cuda_dictionaries_trim(void);

/*
 * Writes a chunk to a buffer as numbers and entries, and notes in *out where they are; false: it
 * has values out of line, or more than there is room for.
 */
extern bool cuda_encode_chunk(const CacheChunk *chunk, Form_pg_attribute att, char *buffer,
							  size_t buffer_bytes, WireStore *out);

#endif /* GPUAGG_CUDA_DICTIONARIES_H */

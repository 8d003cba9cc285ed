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

/* A copy of a dictionary, as far as this process has read it. */
typedef struct CudaDictionary
{
	WireKnown known; /* its id, and number of entries; id 0: there is no dictionary */
	Datum *values;   /* of each code */
} CudaDictionary;

/*
 * Returns the copy of a column's dictionary. Asks the server if there is no copy, or if `refresh`
 * is set. NULL: the session is lost. The result stays unchanged until cuda_dictionary_release(), or
 * until the end of the current memory context, even if other queries of this process use the
 * dictionary meanwhile.
 */
extern const CudaDictionary *cuda_dictionary(Client *client, WireTableKey table,
											 const WireColumnKey *column, Form_pg_attribute att,
											 bool refresh);

extern void cuda_dictionary_release(const CudaDictionary *dict);

/*
 * Removes copies, the least recently used ones first, until they take an acceptable amount of
 * memory.
 */
extern void cuda_dictionaries_trim(void);

/*
 * Writes a chunk to a buffer as codes and entries, and stores their offsets in *out. Returns false
 * if the chunk has values out of line, or if there is no room.
 */
extern bool cuda_encode_chunk(const CacheChunk *chunk, Form_pg_attribute att, char *buffer,
							  size_t buffer_bytes, WireStore *out);

#endif /* GPUAGG_CUDA_DICTIONARIES_H */

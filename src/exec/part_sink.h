/*
 * part_sink.h
 *	  Writes the groups of a participant by partition, for the participants that merge them.
 */
#ifndef GPUAGG_PART_SINK_H
#define GPUAGG_PART_SINK_H

#include "postgres.h"

#include "storage/buffile.h"

#include "exec/parallel_internal.h"

typedef struct PartOutput PartOutput;

typedef struct PartSink
{
	GroupSink base; /* must be first */
	GpuAggState *state;
	int exchange;
	int section;
	MemoryContext cxt;
	size_t limit;        /* bytes that chunks of all sections may take */
	size_t shared;       /* bytes of chunks that earlier sections have put into shared memory */
	size_t allocated;    /* bytes of chunks of this section */
	bool in_files;       /* the rest of the section goes to files */
	PartOutput *outputs; /* [partition] */
	PartOutput *current;
} PartSink;

/*
 * Sets *sink to write the partitions of an exchange.  It uses the current memory context until
 * part_sink_end().
 */
extern void part_sink_begin(PartSink *sink, GpuAggState *state, int exchange, int nparts);
/* Ends the export. */
extern void part_sink_end(PartSink *sink);

/* Sets the number of partitions of a sink. */
extern void part_sink_divide(GroupSink *sink, int nparts);
/*
 * Returns shared memory for groups of this participant in a section of an exchange; the other
 * arguments are as for shared_rows_create().
 */
extern char *part_memory(GpuAggState *state, int exchange, int section, const uint32 *counts,
						 const size_t *bytes, int nparts, size_t common, size_t expected);

/* Sets name to the name of the file with what a participant has written of a partition. */
extern void part_file_name(char *name, int exchange, int section, int participant, int part);
/* Returns the segment of a section of an exchange (shared_rows.h); -1: it has none. */
extern int part_segment(const GpuAggShared *shared, int exchange, int section);

#endif /* GPUAGG_PART_SINK_H */

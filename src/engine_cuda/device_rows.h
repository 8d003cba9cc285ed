/*
 * device_rows.h
 *	  A query over rows of which the GPU server has copies; internal to resident*.c.
 */
#ifndef GPUAGG_ENGINE_CUDA_DEVICE_ROWS_H
#define GPUAGG_ENGINE_CUDA_DEVICE_ROWS_H

#include "engine_cuda/cuda_engine.h"
#include "expr/program.h"
#include "feed/heap_resident.h"

/* What is known of a stored column's values in the rows that are collected. */
typedef struct Known
{
	bool any; /* some row has a value: */
	bool nulls;
	ExprInterval integers; /* as a register has them */
	double least, greatest;
} Known;

typedef struct Resident
{
	CudaEngine *cuda;
	FeedResident *rows;
	ExprProgram *program;
	ExprProgram *translated;         /* the same before its tables and outputs were described */
	bool outdated;                   /* dictionaries have to be asked for again */
	int chunk[WIRE_MAX_STORED_COLS]; /* [stored column] in the chunks of a range */
	Known known[WIRE_MAX_STORED_COLS];
	uint16 inputs[WIRE_MAX_COLS];  /* [column of the query] operand with the values of the batch's
									  column */
	uint16 outputs[WIRE_MAX_COLS]; /* in the form in which the column is sent */
	uint32 refused[WIRE_MAX_DEVICES]; /* stored columns of which a part was not kept there, a bit
										 each */
	WireResident wire;
} Resident;

/* The attribute that a stored column is. */
static inline Form_pg_attribute
resident_attribute(const Resident *r, int s)
{
	return TupleDescAttr(r->program->set->desc, r->program->stored[s].attno - 1);
}

/*
 * Uploads the columns that are lacking (a bit a stored column, for each run), and clears keep[] of
 * runs of which one could not be; false: the session is lost.
 */
extern bool resident_upload(Resident *r, const uint64 *lacking, bool *keep);

#endif /* GPUAGG_ENGINE_CUDA_DEVICE_ROWS_H */

/*
 * engine_cuda.h
 *	  The engine that runs on the GPU server (EngineOps).
 */
#ifndef GPUAGG_ENGINE_CUDA_H
#define GPUAGG_ENGINE_CUDA_H

#include "postgres.h"

#include "engine.h"

extern const EngineOps engine_cuda_ops;

#endif /* GPUAGG_ENGINE_CUDA_H */

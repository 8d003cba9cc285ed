/*
 * emulator.h
 *	  Runs PTX on the CPU, so that the kernels can be tested where there is no GPU.
 *
 * ptx_*.cpp read and interpret modules of PTX as nvcc writes them; runtime_*.cpp are the part of
 * CUDA's runtime library that the server and the tests call.  A program linked with them instead of
 * libcudart runs unchanged.
 *
 * Generic and global addresses are addresses of this process.  A launch returns when all its blocks
 * have ended.  Blocks are started in the order of their indices, so what a block waits for may come
 * from lower indices; those of a cooperative launch and of a cluster run side by side.  Lanes of a
 * warp diverge and reconverge as on devices of compute capability 7.0 and above.
 *
 * What real devices leave undefined, or do without a word, is an error here: accesses outside of
 * allocations or that are not aligned, reads of cp.async's destinations before a wait, barriers
 * that not all threads reach.
 */
#ifndef GPUAGG_EMULATOR_H
#define GPUAGG_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#include <string>

struct EmuModule;
struct EmuKernel;

/* What is wrong, for cudaGetErrorString()'s caller and standard error. */
struct EmuError
{
	std::string text; /* empty: nothing is */
};

struct EmuDim
{
	unsigned x, y, z;
};

struct EmuLaunch
{
	EmuDim grid, block, cluster; /* 1, 1, 1 without */
	size_t dynamic_shared;
	bool cooperative;
	void **params; /* one address a parameter, as cudaLaunchKernel has them */
};

struct EmuKernelFacts
{
	size_t static_shared; /* bytes */
	size_t local;         /* bytes a thread */
	unsigned max_threads; /* of a block: .maxntid, or 1024 */
};

/* What a launch did, for those who compare two forms of a kernel. */
struct EmuCounts
{
	uint64_t warp_instructions;
	uint64_t lane_instructions;
	uint64_t global_sectors;   /* of 32 bytes, each access of a warp by itself */
	uint64_t global_atomics;   /* lanes */
	uint64_t shared_accesses;  /* of warps */
	uint64_t shared_conflicts; /* further passes because of banks, and of atomics on equal words */
	uint64_t local_accesses;   /* of warps; PTX has fewer than the machine code that spills */
	uint64_t barriers;         /* of warps */
};

/*
 * Text of a module, ended by a zero byte, which must stay.  Variables are allocated and set;
 * kernels are read when they are first asked for.  NULL: error says why.
 */
EmuModule *emu_module_load(const char *ptx, EmuError *error);

/* A kernel by its mangled name, or NULL. */
EmuKernel *emu_module_kernel(EmuModule *module, const char *name, EmuError *error);

/* Address and size of a module's variable, or NULL. */
void *emu_module_variable(EmuModule *module, const char *name, size_t *bytes);

EmuKernelFacts emu_kernel_facts(const EmuKernel *kernel);

/*
 * False: error says which instruction of which thread.  counts may be NULL.  Not to be called by
 * two threads at once.
 */
bool emu_launch(EmuKernel *kernel, const EmuLaunch *launch, EmuCounts *counts, EmuError *error);

/* Memory that kernels may touch: allocations of the device, and registered memory of the host. */
void emu_memory_add(void *at, size_t bytes);
void emu_memory_remove(void *at);

#endif /* GPUAGG_EMULATOR_H */

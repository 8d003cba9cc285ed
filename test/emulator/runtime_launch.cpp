/*
 * runtime_launch.cpp
 *	  Modules and kernels as nvcc's host code registers them, occupancy, launches and what they count.
 *
 *	EMULATOR_REPORT		a file to which each launch adds a line, and the process, at its end, one for each of its
 *						kernels, launched or not
 */
#include <cxxabi.h>
#include <fatbinary_section.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <list>
#include <map>

#include "runtime.h"

#define SHARED_UNIT 128			/* in which blocks take it */
#define CLUSTER_BLOCKS 8		/* at most, as far as all devices have them */

/* A fat binary, and its PTX as a module of each device that has used it. */
struct Binary
{
	const __fatBinC_Wrapper_t *wrapper;
	std::string ptx;
	EmuModule  *modules[RUNTIME_MAX_DEVICES];
};

/* A kernel, by the address of its host stub. */
struct CUkern_st
{
	Binary	   *binary;
	std::string name;
	struct
	{
		EmuKernel  *kernel;
		EmuKernelFacts facts;
		size_t		most_dynamic;	/* bytes of shared memory that launches may ask for */
	}			on[RUNTIME_MAX_DEVICES];
};

struct Configuration
{
	dim3		grid,
				block;
	size_t		shared;
	cudaStream_t stream;
};

static std::map<const void *, CUkern_st *> &
kernels()
{
	static std::map<const void *, CUkern_st *> all;

	return all;
}

static thread_local std::list<Configuration> configurations;

/* ---- what nvcc's host code calls ---- */

extern "C"
{
void	  **__cudaRegisterFatBinary(void *wrapper);
void		__cudaRegisterFatBinaryEnd(void **binary);
void		__cudaUnregisterFatBinary(void **binary);
char		__cudaInitModule(void **binary);
void		__cudaRegisterFunction(void **binary, const char *stub, char *device_stub, const char *name, int thread_limit,
								   uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp_size);
void		__cudaRegisterVar(void **binary, char *variable, char *address, const char *name, int external, size_t bytes,
							  int constant, int global);
unsigned	__cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **params, size_t shared, cudaStream_t stream);
}

void	  **
__cudaRegisterFatBinary(void *wrapper)
{
	return (void **) new Binary{(const __fatBinC_Wrapper_t *) wrapper, "", {}};
}

void
__cudaRegisterFatBinaryEnd(void **)
{
}

/* Called while the process ends. */
void
__cudaUnregisterFatBinary(void **)
{
}

char
__cudaInitModule(void **)
{
	return 0;
}

void
__cudaRegisterFunction(void **binary, const char *stub, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *, int *)
{
	kernels()[stub] = new CUkern_st{(Binary *) binary, name, {}};
}

/* The host names none of them. */
void
__cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int)
{
}

unsigned
__cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st *stream)
{
	configurations.push_back({grid, block, shared, stream});
	return 0;
}

cudaError_t
__cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (configurations.empty())
		return runtime_note(cudaErrorInvalidConfiguration);

	const Configuration &c = configurations.back();

	*grid = c.grid;
	*block = c.block;
	*shared = c.shared;
	*(cudaStream_t *) stream = c.stream;
	configurations.pop_back();
	return cudaSuccess;
}

/* ---- kernels ---- */

/* A fat binary's head, and that of each image in it. */
struct FatHead
{
	uint32_t	magic;
	uint16_t	version,
				head_bytes;
	uint64_t	bytes;			/* that follow */
};

struct FatImage
{
	uint16_t	kind,			/* 1: PTX */
				version;
	uint32_t	head_bytes;
	uint64_t	bytes;			/* that follow */
	uint32_t	compressed_bytes;	/* 0: it is not compressed */
};

#define FAT_MAGIC 0xBA55ED50
#define FAT_PTX 1

static bool
find_ptx(Binary *binary)
{
	const char *at = (const char *) binary->wrapper->data;
	const FatHead *head = (const FatHead *) at;
	const char *end = at + head->head_bytes + head->bytes;

	if (head->magic != FAT_MAGIC)
		return false;
	for (at += head->head_bytes; at < end;)
	{
		const FatImage *image = (const FatImage *) at;

		at += image->head_bytes;
		if (image->kind == FAT_PTX && image->compressed_bytes == 0)
		{
			binary->ptx.assign(at, strnlen(at, image->bytes));
			return true;
		}
		at += image->bytes;
	}
	return false;
}

static EmuModule *
module_on(Binary *binary, int device, EmuError *error)
{
	if (binary->modules[device] == nullptr)
	{
		if (binary->ptx.empty() && !find_ptx(binary))
		{
			error->text = "no PTX without compression in a fat binary";
			return nullptr;
		}
		binary->modules[device] = emu_module_load(binary->ptx.c_str(), error);
	}
	return binary->modules[device];
}

/* Reads the kernel on its first use. */
static cudaError_t
load(CUkern_st *kernel, int device)
{
	auto	   &on = kernel->on[device];
	EmuError	error;
	EmuModule  *module;

	if (on.kernel != nullptr)
		return cudaSuccess;
	module = module_on(kernel->binary, device, &error);
	if (module != nullptr)
		on.kernel = emu_module_kernel(module, kernel->name.c_str(), &error);
	if (on.kernel == nullptr)
	{
		runtime_say("%s: %s", kernel->name.c_str(), error.text.c_str());
		return cudaErrorInvalidPtx;
	}
	on.facts = emu_kernel_facts(on.kernel);
	on.most_dynamic = on.facts.static_shared < SHARED_PER_BLOCK_DEFAULT ? SHARED_PER_BLOCK_DEFAULT - on.facts.static_shared : 0;
	return cudaSuccess;
}

static CUkern_st *
find(const void *stub)
{
	auto		found = kernels().find(stub);

	return found == kernels().end() ? nullptr : found->second;
}

/* A call about a kernel, NULL if there is none, on the thread's device. */
template <typename F>
static cudaError_t
kernel_call(CUkern_st *kernel, F do_it)
{
	return runtime_call([&](RuntimeDevice &device) {
		cudaError_t error = kernel ? load(kernel, device.number) : cudaErrorInvalidDeviceFunction;

		return error == cudaSuccess ? do_it(device, *kernel) : error;
	});
}

cudaError_t
__cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
	std::lock_guard<std::recursive_mutex> guard(runtime_lock());

	*kernel = find(stub);
	return runtime_note(*kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *stub)
{
	return kernel_call(find(stub), [&](RuntimeDevice &device, CUkern_st &kernel) {
		const auto &on = kernel.on[device.number];

		memset(attributes, 0, sizeof(*attributes));
		attributes->sharedSizeBytes = on.facts.static_shared;
		attributes->localSizeBytes = on.facts.local;
		attributes->maxThreadsPerBlock = on.facts.max_threads;
		attributes->numRegs = 32;
		attributes->ptxVersion = attributes->binaryVersion = 90;
		attributes->maxDynamicSharedSizeBytes = on.most_dynamic;
		attributes->preferredShmemCarveout = cudaSharedmemCarveoutDefault;
		return cudaSuccess;
	});
}

cudaError_t
cudaFuncSetAttribute(const void *stub, cudaFuncAttribute attribute, int value)
{
	return kernel_call(find(stub), [&](RuntimeDevice &device, CUkern_st &kernel) {
		auto	   &on = kernel.on[device.number];

		switch (attribute)
		{
			case cudaFuncAttributeMaxDynamicSharedMemorySize:
				if (value < 0 || value + on.facts.static_shared > SHARED_PER_BLOCK)
					return cudaErrorInvalidValue;
				on.most_dynamic = value;
				return cudaSuccess;
			case cudaFuncAttributePreferredSharedMemoryCarveout:
				return value < -1 || value > 100 ? cudaErrorInvalidValue : cudaSuccess;
			default:
				runtime_say("function attribute %d is not known", (int) attribute);
				return cudaErrorNotSupported;
		}
	});
}

/* ---- occupancy ---- */

/* Blocks that a multiprocessor holds, as far as threads and shared memory go. */
static int
blocks_that_fit(const EmuKernelFacts &facts, int threads, size_t dynamic)
{
	size_t		shared = (facts.static_shared + dynamic + SHARED_RESERVED + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
	int			by_threads = THREADS_PER_MULTIPROCESSOR / ((threads + 31) / 32 * 32);
	int			by_shared = SHARED_PER_MULTIPROCESSOR / shared;
	int			fit = by_threads < by_shared ? by_threads : by_shared;

	if (threads > (int) facts.max_threads)
		return 0;
	return fit < BLOCKS_PER_MULTIPROCESSOR ? fit : BLOCKS_PER_MULTIPROCESSOR;
}

cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *stub, int threads, size_t dynamic, unsigned)
{
	return kernel_call(find(stub), [&](RuntimeDevice &device, CUkern_st &kernel) {
		if (threads < 1)
			return cudaErrorInvalidValue;
		*blocks = blocks_that_fit(kernel.on[device.number].facts, threads, dynamic);
		return cudaSuccess;
	});
}

cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *stub, int threads, size_t dynamic)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, dynamic, 0);
}

static unsigned
volume(dim3 d)
{
	return d.x * d.y * d.z;
}

static bool
read_attributes(const cudaLaunchConfig_t &config, dim3 *cluster, bool *cooperative)
{
	for (unsigned i = 0; i < config.numAttrs; i++)
	{
		const cudaLaunchAttribute &a = config.attrs[i];

		if (a.id == cudaLaunchAttributeClusterDimension)
			*cluster = dim3(a.val.clusterDim.x, a.val.clusterDim.y, a.val.clusterDim.z);
		else if (a.id == cudaLaunchAttributeCooperative)
			*cooperative = a.val.cooperative != 0;
		/* a launch begins when the one before it has ended */
		else if (a.id != cudaLaunchAttributeProgrammaticStreamSerialization)
		{
			runtime_say("launch attribute %d is not known", (int) a.id);
			return false;
		}
	}
	return true;
}

cudaError_t
cudaOccupancyMaxActiveClusters(int *clusters, const void *stub, const cudaLaunchConfig_t *config)
{
	return kernel_call(find(stub), [&](RuntimeDevice &device, CUkern_st &kernel) {
		dim3		cluster(1, 1, 1);
		bool		cooperative = false;
		const auto &on = kernel.on[device.number];

		if (!read_attributes(*config, &cluster, &cooperative))
			return cudaErrorNotSupported;
		if (volume(cluster) < 1 || volume(cluster) > CLUSTER_BLOCKS)
			return cudaErrorInvalidClusterSize;
		if (config->dynamicSmemBytes > on.most_dynamic)
			return cudaErrorInvalidValue;
		*clusters = blocks_that_fit(on.facts, volume(config->blockDim), config->dynamicSmemBytes) * device.multiprocessors /
			volume(cluster);
		return cudaSuccess;
	});
}

/* ---- reports ---- */

struct Sum
{
	uint64_t	launches;
	double		seconds;
	EmuCounts	counts;
};

static FILE *report;

static std::map<std::string, Sum> &
sums()
{
	static std::map<std::string, Sum> all;

	return all;
}

static std::string
readable(const std::string &name)
{
	int			status;
	char	   *text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
	std::string result = status == 0 ? text : name;

	free(text);
	return result;
}

static void
write_counts(double seconds, const EmuCounts &c)
{
	fprintf(report, "\t%.6f\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\n", seconds, (unsigned long long) c.warp_instructions,
			(unsigned long long) c.lane_instructions, (unsigned long long) c.global_sectors,
			(unsigned long long) c.global_atomics, (unsigned long long) c.shared_accesses,
			(unsigned long long) c.shared_conflicts, (unsigned long long) c.local_accesses, (unsigned long long) c.barriers);
}

static void
write_sums()
{
	for (const auto &k : kernels())
		sums()[readable(k.second->name)];
	for (const auto &s : sums())
	{
		fprintf(report, "kernel\t%s\t%llu", s.first.c_str(), (unsigned long long) s.second.launches);
		write_counts(s.second.seconds, s.second.counts);
	}
	fflush(report);
}

/* Whether a report is asked for; opens it. */
static bool
reporting()
{
	static int	asked = -1;

	if (asked < 0)
	{
		const char *name = getenv("EMULATOR_REPORT");

		asked = name != nullptr;
		if (asked && (report = fopen(name, "a")) == nullptr)
		{
			runtime_say("cannot write %s", name);
			exit(2);
		}
		if (asked)
		{
			sums();				/* made before what uses it at the end, so that it is gone after that */
			atexit(write_sums);
		}
	}
	return asked;
}

static void
count_launch(const CUkern_st &kernel, const EmuLaunch &l, double seconds, const EmuCounts &c)
{
	std::string name = readable(kernel.name);
	Sum		   &sum = sums()[name];

	fprintf(report, "launch\t%s\t%u,%u,%u\t%u,%u,%u\t%u\t%zu", name.c_str(), l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y,
			l.block.z, l.cluster.x * l.cluster.y * l.cluster.z, l.dynamic_shared);
	write_counts(seconds, c);
	fflush(report);
	sum.launches++;
	sum.seconds += seconds;
	sum.counts.warp_instructions += c.warp_instructions;
	sum.counts.lane_instructions += c.lane_instructions;
	sum.counts.global_sectors += c.global_sectors;
	sum.counts.global_atomics += c.global_atomics;
	sum.counts.shared_accesses += c.shared_accesses;
	sum.counts.shared_conflicts += c.shared_conflicts;
	sum.counts.local_accesses += c.local_accesses;
	sum.counts.barriers += c.barriers;
}

/* ---- launches ---- */

/* What is wrong with a launch before it begins. */
static cudaError_t
check_launch(const RuntimeDevice &device, const CUkern_st &kernel, const EmuLaunch &l)
{
	const auto &on = kernel.on[device.number];
	uint64_t	threads = (uint64_t) l.block.x * l.block.y * l.block.z;
	uint64_t	blocks = (uint64_t) l.grid.x * l.grid.y * l.grid.z;
	uint64_t	of_cluster = (uint64_t) l.cluster.x * l.cluster.y * l.cluster.z;
	uint64_t	fit;

	if (threads == 0 || threads > THREADS_PER_BLOCK || l.block.z > 64 || blocks == 0 || l.grid.x > 0x7fffffff ||
		l.grid.y > 65535 || l.grid.z > 65535)
		return cudaErrorInvalidConfiguration;
	if (threads > on.facts.max_threads || l.dynamic_shared > on.most_dynamic)
		return cudaErrorInvalidValue;
	if (of_cluster == 0 || of_cluster > CLUSTER_BLOCKS || l.grid.x % l.cluster.x != 0 || l.grid.y % l.cluster.y != 0 ||
		l.grid.z % l.cluster.z != 0)
		return cudaErrorInvalidClusterSize;
	fit = (uint64_t) blocks_that_fit(on.facts, threads, l.dynamic_shared) * device.multiprocessors;
	if (fit < of_cluster)
		return cudaErrorLaunchOutOfResources;
	return l.cooperative && blocks > fit ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;
}

static double
now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static cudaError_t
run(RuntimeDevice &device, const CUkern_st &kernel, const EmuLaunch &launch)
{
	EmuCounts	counts = {};
	EmuError	error;
	double		began = now();

	if (!emu_launch(kernel.on[device.number].kernel, &launch, reporting() ? &counts : nullptr, &error))
		return runtime_break(device, readable(kernel.name) + ": " + error.text);
	if (reporting())
		count_launch(kernel, launch, now() - began, counts);
	return cudaSuccess;
}

static cudaError_t
launch_kernel(CUkern_st *found, const cudaLaunchConfig_t &config, void **params)
{
	return kernel_call(found, [&](RuntimeDevice &device, CUkern_st &kernel) {
		cudaError_t error = cudaSuccess;
		RuntimeDevice *streams = runtime_stream(config.stream, &error);
		dim3		cluster(1, 1, 1);
		EmuLaunch	l = {};

		if (streams == nullptr)
			return error;
		if (streams != &device)
			return cudaErrorInvalidResourceHandle;
		if (!read_attributes(config, &cluster, &l.cooperative))
			return cudaErrorNotSupported;
		l.grid = {config.gridDim.x, config.gridDim.y, config.gridDim.z};
		l.block = {config.blockDim.x, config.blockDim.y, config.blockDim.z};
		l.cluster = {cluster.x, cluster.y, cluster.z};
		l.dynamic_shared = config.dynamicSmemBytes;
		l.params = params;
		error = check_launch(device, kernel, l);
		return error == cudaSuccess ? run(device, kernel, l) : error;
	});
}

cudaError_t
cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *stub, void **params)
{
	return launch_kernel(find(stub), *config, params);
}

cudaError_t
cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **params, size_t shared, cudaStream_t stream)
{
	return launch_kernel(find(stub), {grid, block, shared, stream, nullptr, 0}, params);
}

cudaError_t
__cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **params, size_t shared, cudaStream_t stream)
{
	return launch_kernel(kernel, {grid, block, shared, stream, nullptr, 0}, params);
}

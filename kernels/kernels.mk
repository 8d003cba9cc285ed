# Builds the CUDA kernels, their unit tests and their benchmark.  Without nvcc the project has no GPU support.
#
# Variables:
#	NVCC		the compiler; the default is nvcc on the PATH or in /usr/local/cuda/bin; "NVCC=" builds without it
#	CUDA_ARCHS	compute capabilities of the machine code, in ascending order; the last one also gets PTX,
#			which newer devices compile
#
# Targets:
#	make kernels		build/libgpuagg_kernels.a, which the server, the tests and the benchmark link
#	make gpu-tests		build/gpu-tests, which test/gpu.sh runs
#	make bench-kernels	test/bench/kernels
NVCC ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCHS ?= 80 90

# -fmad=false: without fused multiply-add, the operators of src/operators/monoid.h round as core does.
CUDA_GENCODE = $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
               -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
CUDA_FLAGS = -std=c++17 -O3 -fmad=false $(CUDA_GENCODE) -I$(TOP)src -I$(TOP)kernels \
             -Xcompiler -fPIC,-Wall,-ffp-contract=off,-fvisibility=hidden $(if $(WERROR),-Werror all-warnings)

KERNEL_LIB = build/libgpuagg_kernels.a
# Objects of segmented_part.cu, which is compiled SEGMENTED_PARTS (segmented_args.h) times.
SEGMENTED_OBJS = $(patsubst %,build/kernels/segmented_part%.o,0 1 2 3 4 5)
# Objects of hist_tiles_part.cu, which is compiled TILE_KERNELS (hist_tiles_args.h) times.
TILES_OBJS = $(patsubst %,build/kernels/hist_tiles_part%.o,0 1 2)
KERNEL_OBJS = $(filter-out build/kernels/segmented_part.o build/kernels/hist_tiles_part.o,$(patsubst $(TOP)%.cu,build/%.o,$(wildcard $(TOP)kernels/*.cu))) \
              $(SEGMENTED_OBJS) $(TILES_OBJS) build/kernels/monoid.o
GPU_TEST_OBJS = $(patsubst $(TOP)%.cu,build/%.o,$(wildcard $(TOP)test/unit/gpu_*.cu))
KERNEL_BENCH_OBJS = $(patsubst $(TOP)%.cu,build/%.o,$(wildcard $(TOP)test/bench/kernels*.cu))

.PHONY: all kernels gpu-tests bench-kernels
all: kernels

ifneq ($(NVCC),)

kernels: $(KERNEL_LIB)
gpu-tests: build/gpu-tests
bench-kernels: test/bench/kernels

$(KERNEL_LIB): $(KERNEL_OBJS)
	@rm -f $@
	ar rcs $@ $^

build/kernels/monoid.o: src/operators/monoid.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O3 -ffp-contract=off -fPIC -Wall -Wextra $(if $(WERROR),-Werror) -MMD -MP -I$(TOP)src -c $< -o $@

$(SEGMENTED_OBJS): build/kernels/segmented_part%.o: kernels/segmented_part.cu
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_FLAGS) -DSEGMENTED_PART=$* -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(TILES_OBJS): build/kernels/hist_tiles_part%.o: kernels/hist_tiles_part.cu
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_FLAGS) -DTILES_PART=$* -MMD -MP -MF $(@:.o=.d) -c $< -o $@

build/kernels/%.o: kernels/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

build/device_cuda/%.o: src/device_cuda/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

build/test/%.o: test/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# Kernels of src/device_cuda/ that the unit tests call.
GPU_TEST_SERVER_OBJS = build/device_cuda/kernels.o $(patsubst %,build/device_cuda/kernels_%.o,stored groups sketches sets)

build/gpu-tests: $(GPU_TEST_OBJS) $(GPU_TEST_SERVER_OBJS) $(KERNEL_LIB)
	$(NVCC) $(CUDA_GENCODE) $^ -o $@

test/bench/kernels: $(KERNEL_BENCH_OBJS) $(KERNEL_LIB)
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_GENCODE) $^ -o $@

-include $(patsubst %.o,%.d,$(KERNEL_OBJS) $(GPU_TEST_OBJS) $(KERNEL_BENCH_OBJS))

else

kernels:
	@echo "nvcc not found: building without GPU support (CPU engine only)"

gpu-tests bench-kernels:
	@echo "nvcc not found: $@ needs the CUDA toolkit" >&2; exit 1

endif

# CUDA kernels: build/libgpuagg_kernels.a, unit tests and benchmark.  Without nvcc the project is CPU-only.
#
#	NVCC		the compiler; looked for on the PATH and in /usr/local/cuda/bin; "NVCC=" builds without
#	CUDA_ARCHS	compute capabilities to build for, ascending; PTX of the last goes along for newer devices
#
#	make kernels		build/libgpuagg_kernels.a, for the server, the tests and the benchmark
#	make gpu-tests		build/gpu-tests, run by test/gpu.sh
#	make bench-kernels	test/bench/kernels
NVCC ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCHS ?= 80 90

# Contraction off: the operators of src/operators/monoid.h round as core's do.
CUDA_GENCODE = $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
               -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
CUDA_FLAGS = -std=c++17 -O3 -fmad=false $(CUDA_GENCODE) -I$(TOP)src -I$(TOP)kernels \
             -Xcompiler -fPIC,-Wall,-ffp-contract=off,-fvisibility=hidden $(if $(WERROR),-Werror all-warnings)

KERNEL_LIB = build/libgpuagg_kernels.a
# The instances of the segmented reduction, in as many parts as SEGMENTED_PARTS of segmented_args.h says.
SEGMENTED_OBJS = $(patsubst %,build/kernels/segmented_part%.o,0 1 2 3 4 5)
# The kernels of histograms by tiles, as many as TILE_KERNELS of hist_tiles_args.h says.
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

# cuda_rules FOLDER: objects of kernels and their tests, below it
define cuda_rules
$(SEGMENTED_OBJS:build/%=$1/%): $1/kernels/segmented_part%.o: kernels/segmented_part.cu
	@mkdir -p $$(@D)
	$$(NVCC) $$(CUDA_FLAGS) -DSEGMENTED_PART=$$* -MMD -MP -MF $$(@:.o=.d) -c $$< -o $$@

$(TILES_OBJS:build/%=$1/%): $1/kernels/hist_tiles_part%.o: kernels/hist_tiles_part.cu
	@mkdir -p $$(@D)
	$$(NVCC) $$(CUDA_FLAGS) -DTILES_PART=$$* -MMD -MP -MF $$(@:.o=.d) -c $$< -o $$@

$1/kernels/%.o: kernels/%.cu
	@mkdir -p $$(@D)
	$$(NVCC) $$(CUDA_FLAGS) -MMD -MP -MF $$(@:.o=.d) -c $$< -o $$@

$1/device_cuda/%.o: src/device_cuda/%.cu
	@mkdir -p $$(@D)
	$$(NVCC) $$(CUDA_FLAGS) -MMD -MP -MF $$(@:.o=.d) -c $$< -o $$@

$1/test/%.o: test/%.cu
	@mkdir -p $$(@D)
	$$(NVCC) $$(CUDA_FLAGS) -MMD -MP -MF $$(@:.o=.d) -c $$< -o $$@
endef
$(eval $(call cuda_rules,build))

# The small kernels of the device layer that have tests here.
GPU_TEST_SERVER_OBJS = build/device_cuda/kernels.o $(patsubst %,build/device_cuda/kernels_%.o,stored groups sketches)

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

# The emulator: the kernels, their tests and the GPU server as PTX that the CPU interprets (test/emulator/README.md).
#
#	make emulator		build/emulator/ptx-test, gpu-tests, gpu-resident-few, gpu-resident-many and gpuagg-server
#
# Objects of host code alone are those of the GPU server and its tests.
EMULATOR_SRCS = $(filter-out %/ptx_test.cpp,$(wildcard $(TOP)test/emulator/*.cpp))
EMULATOR_OBJS = $(EMULATOR_SRCS:$(TOP)%.cpp=build/emulator/%.o)
EMULATOR_KERNEL_OBJS = $(patsubst build/kernels/%,build/emulator/kernels/%,$(filter-out build/kernels/monoid.o,$(KERNEL_OBJS)))
EMULATOR_SERVER_OBJS = $(patsubst build/%,build/emulator/%,$(SERVER_KERNEL_OBJS))
EMULATOR_TEST_OBJS = $(patsubst build/%,build/emulator/%,$(GPU_TEST_OBJS))
# vectors of 32 bytes: the interpreter's loops over lanes take half the time
EMULATOR_ARCH = $(if $(filter x86_64,$(shell uname -m)),-march=x86-64-v3)
EMULATOR_CXXFLAGS = -std=c++17 -O3 $(EMULATOR_ARCH) -g -ffp-contract=off -Wall -Wextra $(if $(WERROR),-Werror) -MMD -MP -I$(CUDA_HOME)/include
EMULATOR_LIBS = build/emulator/libgpuagg_kernels.a $(EMULATOR_OBJS)
EMULATOR_LINK = $(CXX) $^ -lpthread -ldl -lm -o $@

.PHONY: emulator
ifneq ($(NVCC),)

emulator: $(addprefix build/emulator/,ptx-test ptx_test.ptx gpu-tests gpu-resident-few gpu-resident-many gpuagg-server)

# PTX alone, as text
build/emulator/%: CUDA_GENCODE = -gencode arch=compute_90,code=compute_90 --no-compress

$(EMULATOR_OBJS) build/emulator/test/emulator/ptx_test.o: build/emulator/%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) $(EMULATOR_CXXFLAGS) -c $< -o $@

# the interpreter by itself
build/emulator/ptx-test: build/emulator/test/emulator/ptx_test.o $(filter-out %/runtime_device.o %/runtime_launch.o %/runtime_memory.o,$(EMULATOR_OBJS))
	$(EMULATOR_LINK)

build/emulator/ptx_test.ptx: test/emulator/ptx_test.cu
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_FLAGS) -MMD -MP -MF $(@:.ptx=.d) -ptx $< -o $@

build/emulator/libgpuagg_kernels.a: $(EMULATOR_KERNEL_OBJS) build/kernels/monoid.o
	@rm -f $@
	ar rcs $@ $^

build/emulator/gpu-tests: $(EMULATOR_TEST_OBJS) $(GPU_TEST_SERVER_OBJS:build/%=build/emulator/%) $(EMULATOR_LIBS)
	$(EMULATOR_LINK)

build/emulator/gpuagg-server: $(SERVER_OBJS) $(SERVER_HOST_OBJS) $(EMULATOR_SERVER_OBJS) $(EMULATOR_LIBS)
	$(EMULATOR_LINK)

build/emulator/gpu-resident-few: $(GPU_RESIDENT_OBJS:%=build/few/%) $(EMULATOR_SERVER_OBJS) $(EMULATOR_LIBS)
	$(EMULATOR_LINK)

build/emulator/gpu-resident-many: $(GPU_RESIDENT_OBJS:%=build/many/%) $(EMULATOR_SERVER_OBJS) $(EMULATOR_LIBS)
	$(EMULATOR_LINK)

-include $(wildcard build/emulator/*.d build/emulator/*/*.d build/emulator/*/*/*.d)

else

emulator:
	@echo "nvcc not found: $@ needs the CUDA toolkit" >&2; exit 1

endif

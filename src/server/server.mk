# Builds the GPU server, and installs it in the folder of the extension's library. Needs nvcc.
#
#	make server				builds build/gpuagg-server
#	make bench-server		builds test/bench/server
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(realpath $(firstword $(shell command -v $(NVCC) 2>/dev/null))))
SERVER_CFLAGS = -std=gnu11 -O2 -g -ffp-contract=off -Wall -Wextra $(if $(WERROR),-Werror) -MMD -MP -I$(TOP)src -I$(TOP)kernels \
                $(SANITIZE_FLAGS)
# The server consists of src/server/ and the CUDA device layer, src/device_cuda/.
SERVER_SRCS = $(patsubst $(TOP)%,%,$(wildcard $(TOP)src/server/*.c $(TOP)src/device_cuda/*.c))
SERVER_OBJS = $(patsubst src/%.c,build/%.o,$(filter src/server/%,$(SERVER_SRCS)))
SERVER_KERNEL_OBJS = $(patsubst $(TOP)src/%.cu,build/%.o,$(wildcard $(TOP)src/device_cuda/*.cu))
SERVER_HOST_OBJS = $(patsubst src/%.c,build/%.o,$(filter src/device_cuda/%,$(SERVER_SRCS))) \
                   build/server/strategy.o build/server/device_list.o
SERVER_CUDA_OBJS = $(SERVER_HOST_OBJS) $(SERVER_KERNEL_OBJS)
# The other files of test/unit/resident_test.c.
RESIDENT_PARTS = $(filter-out %_test.c,$(patsubst $(TOP)%,%,$(wildcard $(TOP)test/unit/resident_*.c)))

.PHONY: all server install install-server uninstall uninstall-server
all: server
install: install-server
uninstall: uninstall-server

uninstall-server:
	rm -f '$(DESTDIR)$(pkglibdir)/gpuagg-server'

ifneq ($(and $(NVCC),$(wildcard $(TOP)kernels/group.cu)),)

server: build/gpuagg-server

$(SERVER_CUDA_OBJS): SERVER_CFLAGS += -I$(CUDA_HOME)/include -DGPUAGG_LEAST_CAPABILITY=$(patsubst %a,%,$(firstword $(CUDA_ARCHS))) \
                                    '-DGPUAGG_CUDA_ARCHS="$(strip $(CUDA_ARCHS))"'

build/gpuagg-server: $(SERVER_OBJS) $(SERVER_CUDA_OBJS) $(KERNEL_LIB)
	$(NVCC) $(CUDA_GENCODE) $^ -lpthread -ldl -lm -o $@

# test/unit/resident_test.c on a GPU: once with few rows in many segments and slices, once with many rows.
GPU_RESIDENT_OBJS = $(patsubst %.c,%.o,test/unit/resident_test.c $(RESIDENT_PARTS) \
                    $(filter-out src/server/main.c src/server/control.c,$(SERVER_SRCS)) src/strategy.c src/device_list.c)
GPU_RESIDENT_CFLAGS = $(SERVER_CFLAGS) -I$(CUDA_HOME)/include -I$(TOP)test/unit -DOVER_GPU \
                      -DGPUAGG_LEAST_CAPABILITY=$(patsubst %a,%,$(firstword $(CUDA_ARCHS))) '-DGPUAGG_CUDA_ARCHS="$(strip $(CUDA_ARCHS))"'

gpu-tests: build/gpu-resident-few build/gpu-resident-many

build/few/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(GPU_RESIDENT_CFLAGS) $(RESIDENT_CFLAGS) -c $< -o $@

build/many/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(GPU_RESIDENT_CFLAGS) -DTEST_ROWS=100000 -DTEST_ROUNDS=3 -c $< -o $@

build/gpu-resident-few: $(GPU_RESIDENT_OBJS:%=build/few/%)
build/gpu-resident-many: $(GPU_RESIDENT_OBJS:%=build/many/%)
build/gpu-resident-few build/gpu-resident-many: $(SERVER_KERNEL_OBJS) $(KERNEL_LIB)
	$(NVCC) $(CUDA_GENCODE) $^ -lpthread -ldl -lm -o $@

# test/bench/server.c measures the server's part of queries over stored columns.
.PHONY: bench-server
bench-server: test/bench/server

test/bench/server: test/bench/server.c $(filter-out build/server/main.o build/server/control.o,$(SERVER_OBJS)) $(SERVER_CUDA_OBJS) $(KERNEL_LIB)
	$(CC) $(SERVER_CFLAGS) -I$(TOP)test/unit -c $< -o build/server/bench_server.o
	$(NVCC) $(CUDA_GENCODE) build/server/bench_server.o $(filter %.o %.a,$^) -lpthread -ldl -lm -o $@

install-server: build/gpuagg-server
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_PROGRAM) build/gpuagg-server '$(DESTDIR)$(pkglibdir)/gpuagg-server'

else

server install-server:
	@echo "nvcc or kernels/group.cu not found: no GPU server is built or installed"

endif

build/server/%.o: src/server/%.c
	@mkdir -p $(@D)
	$(CC) $(SERVER_CFLAGS) -c $< -o $@

build/device_cuda/%.o: src/device_cuda/%.c
	@mkdir -p $(@D)
	$(CC) $(SERVER_CFLAGS) -c $< -o $@

build/server/strategy.o: src/strategy.c
build/server/device_list.o: src/device_list.c
build/server/strategy.o build/server/device_list.o:
	@mkdir -p $(@D)
	$(CC) $(SERVER_CFLAGS) -c $< -o $@

-include $(wildcard build/server/*.d build/device_cuda/*.d build/few/*/*.d build/few/*/*/*.d build/many/*/*.d build/many/*/*/*.d)

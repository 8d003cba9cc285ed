# The GPU server: build/gpuagg-server, installed beside the extension's library where nvcc is present.
#
#	make server				build/gpuagg-server
#	make server-standin		build/test/gpuagg-server, the same on a device layer that computes on the host, for tests
SERVER_CFLAGS = -std=gnu11 -O2 -g -ffp-contract=off -Wall -Wextra $(if $(WERROR),-Werror) -MMD -MP -Isrc -Isrc/server -Ikernels
SERVER_OBJS = $(patsubst src/server/%.c,build/server/%.o,$(filter-out src/server/device_cuda%,$(wildcard src/server/*.c))) \
              build/server/monoid.o
STANDIN_OBJS = $(SERVER_OBJS) build/server/standin_device.o

.PHONY: server server-standin install-server

server-standin: build/test/gpuagg-server

build/server/%.o: src/server/%.c
	@mkdir -p $(@D)
	$(CC) $(SERVER_CFLAGS) -c $< -o $@

build/server/monoid.o: src/monoid.c
	@mkdir -p $(@D)
	$(CC) $(SERVER_CFLAGS) -c $< -o $@

build/server/standin_device.o: test/unit/standin_device.c
	@mkdir -p $(@D)
	$(CC) $(SERVER_CFLAGS) -c $< -o $@

build/test/gpuagg-server: $(STANDIN_OBJS)
	@mkdir -p $(@D)
	$(CC) $^ -lpthread -lm -o $@

-include $(wildcard build/server/*.d)

# The tests, the demo and the benchmark.
#
#	make test			everything; PARTS="unit regress" only these (see test/run.sh)
#	make demo			a tour on real data
#	make bench			core against gpuagg; ROWS=8000000
#	make difftest		the differential test alone; N=20000 SEED=1; PAGES=1 of the heap feed; JOBS=16 side by side
#	make installcheck	the regression tests in the running server, which has shared_preload_libraries = 'gpuagg'
#	make strict			all of src/ under -Wall -Wextra -Werror
#	make layers-objects	what test/layers.pl reads
#	make unit-tests		build/unit/*, each a C test that needs no PostgreSQL; SANITIZE=1 under sanitizers
.PHONY: test demo bench difftest strict unit-tests

test:
	@PG_CONFIG=$(if $(PGXS_FOUND),$(PG_CONFIG)) $(TOP)test/run.sh $(PARTS)

# pg_regress finds expected/ beside its output before 16, and by an option since.
REGRESS ?= $(patsubst $(TOP)test/sql/%.sql,%,$(wildcard $(TOP)test/sql/*.sql))
REGRESS_OPTS = --inputdir=$(TOP)test --load-extension=gpuagg \
               $(if $(filter-out 15,$(MAJORVERSION)),--expecteddir=$(or $(TOP),.))
REGRESS_PREP = $(if $(TOP),expected)

expected:
	ln -s $(abspath $(TOP)expected) $@

demo:
	@PG_CONFIG=$(if $(PGXS_FOUND),$(PG_CONFIG)) $(TOP)test/demo.sh

bench:
	@PG_CONFIG=$(if $(PGXS_FOUND),$(PG_CONFIG)) $(TOP)test/bench/bench.sh $(if $(ROWS),--rows $(ROWS))

difftest:
	@PG_CONFIG=$(if $(PGXS_FOUND),$(PG_CONFIG)) $(TOP)test/diff/run.sh $(if $(N),--queries $(N)) $(if $(SEED),--seed $(SEED)) $(if $(PAGES),--pages) $(if $(JOBS),--jobs $(JOBS))

# Objects of their own, so that a warning shows again although the library is built.
STRICT_OBJS = $(SRCS:$(TOP)src/%.c=build/strict/%.o)

strict: $(STRICT_OBJS)

build/strict/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) -Wall -Wextra -Werror $(filter-out -g,$(CFLAGS)) $(CPPFLAGS) -c $< -o $@

# Objects of every source, the server's too over the stub of the CUDA run time, for test/layers.pl.
LAYERS_OBJS = $(STRICT_OBJS) $(SERVER_SRCS:src/%.c=build/strict/%.o)

.PHONY: layers-objects
layers-objects: $(LAYERS_OBJS)

build/strict/server/%.o: src/server/%.c
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(STUB_CFLAGS) -MMD -MP -c $< -o $@

# A unit test links every source of src/ that does not include postgres.h.
UNIT_DIR = build/unit$(if $(SANITIZE),-sanitize)
UNIT_TESTS = $(patsubst $(TOP)test/unit/%.c,$(UNIT_DIR)/%,$(wildcard $(TOP)test/unit/*_test.c))
UNIT_LIBS = $(shell grep -L '"postgres.h"' $(SRCS))
UNIT_CFLAGS = -std=gnu11 -g -O2 -ffp-contract=off -Wall -Wextra -Werror -I$(TOP)src -I$(TOP)test/unit \
              $(CLANG_FLAGS) $(if $(SANITIZE),-fsanitize=address$(comma)undefined -fno-sanitize-recover=all)

# What a test may include.  One call of the compiler makes all of its objects, and would write the dependencies of one alone.
UNIT_INCLUDES = $(wildcard $(addprefix $(TOP),src/*.h src/*/*.h src/server/*.c kernels/*.h test/unit/*.h test/unit/cuda/*.h))

unit-tests: $(UNIT_TESTS)

$(UNIT_DIR)/%: test/unit/%.c $(UNIT_LIBS) $(UNIT_INCLUDES)
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $< $(UNIT_LIBS) -o $@ -lm

# The server without its start and its supervisor, over a stub of the CUDA run time and kernels on the host.
STUB_SRCS = $(addprefix $(TOP),$(filter-out src/server/main.c src/server/control.c,$(SERVER_SRCS))) $(wildcard $(TOP)test/unit/cuda/*.c)
STUB_CFLAGS = -I$(TOP)kernels -I$(TOP)test/unit/cuda -Ddlopen=stub_dlopen -DGPUAGG_LEAST_CAPABILITY=80 '-DGPUAGG_CUDA_ARCHS="80 90"'

$(UNIT_DIR)/device_test $(UNIT_DIR)/session_test: $(UNIT_DIR)/%: test/unit/%.c $(STUB_SRCS) $(UNIT_LIBS) $(UNIT_INCLUDES)
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(STUB_CFLAGS) $< $(STUB_SRCS) $(UNIT_LIBS) -o $@ -lpthread -lm

# The same with segments and slices of stored columns so small that few rows have several, over the stub and over the stand-in.
RESIDENT_CFLAGS = -DSTORE_SEGMENT_ROWS=4096 -DSTORE_LEAST_ROWS=256 -DSTORE_LEAST_GAPS=512 -DRESIDENT_MAX_GAP=700 \
                  -DRESIDENT_LEAST_SLICE=128 -DSPLIT_ROWS=300
STANDIN_SRCS = $(addprefix $(TOP),$(filter-out src/server/main.c src/server/control.c src/server/device_cuda%,$(SERVER_SRCS))) \
               $(wildcard $(TOP)test/unit/standin_*.c)

$(UNIT_DIR)/resident_test: test/unit/resident_test.c $(STUB_SRCS) $(UNIT_LIBS) $(UNIT_INCLUDES)
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(STUB_CFLAGS) $(RESIDENT_CFLAGS) $< $(STUB_SRCS) $(UNIT_LIBS) -o $@ -lpthread -lm

$(UNIT_DIR)/resident_standin_test: test/unit/resident_standin_test.c $(STANDIN_SRCS) test/unit/resident_test.c $(UNIT_LIBS) $(UNIT_INCLUDES)
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) -I$(TOP)kernels $(RESIDENT_CFLAGS) $< $(STANDIN_SRCS) $(UNIT_LIBS) -o $@ -lpthread -lm

# Chunks need PostgreSQL's headers; the test stands in for its functions.
CHUNK_SRCS = $(addprefix $(TOP)src/cache/,chunk.c chunk_build.c)
CHUNK_CFLAGS = -O3 -fno-strict-aliasing -fwrapv -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers

$(UNIT_DIR)/chunk_test: test/unit/chunk_test.c $(CHUNK_SRCS) $(UNIT_INCLUDES)
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(CHUNK_CFLAGS) $(CPPFLAGS) $< $(CHUNK_SRCS) -o $@ -lm

-include $(LAYERS_OBJS:.o=.d)

# Programs of test/fuzz.sh; the server is the one with the stand-in, under sanitizers.
FUZZ_CFLAGS = $(filter-out -Werror,$(UNIT_CFLAGS)) -I$(TOP)kernels
FUZZ_SERVER = $(addprefix $(TOP),$(filter-out src/server/device_cuda%,$(SERVER_SRCS)) src/operators/monoid.c src/device_list.c) \
              $(wildcard $(TOP)test/unit/standin_*.c)
FUZZ_HEADERS = $(wildcard $(addprefix $(TOP),src/*.h src/*/*.h test/unit/*.h test/fuzz/*.h))

.PHONY: fuzz-programs
fuzz-programs: build/fuzz/gpuagg-server build/fuzz/attack build/fuzz/proxy

build/fuzz/gpuagg-server: $(FUZZ_SERVER) $(FUZZ_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(FUZZ_CFLAGS) -fno-omit-frame-pointer -fsanitize=address,undefined $(FUZZ_SERVER) -o $@ -lpthread -lm

build/fuzz/%: test/fuzz/%.c $(TOP)src/operators/monoid.c $(FUZZ_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(FUZZ_CFLAGS) $< $(TOP)src/operators/monoid.c -o $@ -lpthread -lm

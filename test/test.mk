# Targets of the tests, the demonstration and the benchmark.
#
#	make test			runs all tests; PARTS="unit regress" runs these parts only (see test/run.sh)
#	make demo			runs a demonstration on real data
#	make bench			compares the speed with PostgreSQL's own plans; ROWS=8000000 sets the size of the tables
#	make difftest		runs random queries; N=20000 SEED=1 set number and seed, PAGES=1 uses tables with a history, JOBS=16 runs
#						16 processes concurrently
#	make installcheck	runs the regression tests in a running server with shared_preload_libraries = 'gpuagg'
#	make strict			compiles all of src/ with -Wall -Wextra -Werror, and checks the layout of all sources (test/format.pl)
#	make format			lays out the C and CUDA sources with clang-format 14
#	make layers-objects	builds the objects that test/layers.pl reads
#	make unit-tests		builds the unit tests, build/unit/*, which need no PostgreSQL; SANITIZE=1 builds them with sanitizers
.PHONY: test demo bench difftest strict strict-objects format check-format unit-tests

test:
	@PG_CONFIG=$(if $(PGXS_FOUND),$(PG_CONFIG)) $(TOP)test/run.sh $(PARTS)

# Before release 16, pg_regress reads expected/ in its output directory. Later releases have an option.
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

# Separate objects, so that a warning is printed again even if the library is built. With STRICT=1 the library is linked from
# them, so that tests compile each file only once. Stacks need only -g1, with which compilation takes a fifth less time than with
# PostgreSQL's -g.
STRICT_OBJS = $(SRCS:$(TOP)src/%.c=build/strict/%.o)

strict: strict-objects check-format

strict-objects: $(STRICT_OBJS)

check-format:
	@$(TOP)test/format.pl

format:
	@$(TOP)test/format.pl --fix

build/strict/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) -Wall -Wextra -Werror $(CFLAGS) -g1 $(CPPFLAGS) -c $< -o $@

# Unit tests link their own object with objects of all sources of src/ that do not include postgres.h. Tests of the server
# also link its objects and a stub of the CUDA run time, which runs kernels on the host. Each source is compiled once. With
# sanitizers the optimization is -O1: with -O2 compilation takes minutes, and the tests are hardly faster.
UNIT_DIR = build/unit$(if $(SANITIZE),-sanitize)
UNIT_TESTS = $(patsubst $(TOP)test/unit/%.c,$(UNIT_DIR)/%,$(wildcard $(TOP)test/unit/*_test.c))
UNIT_CFLAGS = -std=gnu11 -g1 -O2 -ffp-contract=off -Wall -Wextra -Werror -I$(TOP)src -I$(TOP)test/unit -I$(TOP)kernels \
              $(CLANG_FLAGS) -MMD -MP
UNIT_SANITIZE = -O1 -fno-omit-frame-pointer -fsanitize=address$(comma)undefined -fno-sanitize-recover=all
STUB_CFLAGS = -I$(TOP)test/unit/cuda -Ddlopen=stub_dlopen -DGPUAGG_LEAST_CAPABILITY=80 '-DGPUAGG_CUDA_ARCHS="80 90"'
# Segments and slices of stored columns are small, so that few rows need several, and tables of groups grow early. Buffers are
# small, because each session allocates three.
RESIDENT_CFLAGS = -DSTORE_SEGMENT_ROWS=4096 -DSTORE_LEAST_ROWS=256 -DSTORE_LEAST_GAPS=512 -DRESIDENT_MAX_GAP=700 \
                  -DRESIDENT_LEAST_SLICE=128 -DSPLIT_ROWS=300 -DPARTED_ROWS=150 -DPARTED_GROUPS=60 -DABSORB_GROUPS=17 -DLIMIT_SPARE=0 -DLEAST_CAPACITY=256 -DSTORE_MAX_TABLES=24 -DSTORE_MAX_CELLS=16 \
                  -DARENA_BUFFER_BYTES=524288

unit-tests: $(UNIT_TESTS)

build/unit/stub/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(STUB_CFLAGS) -c $< -o $@

build/unit/few/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(STUB_CFLAGS) $(RESIDENT_CFLAGS) -c $< -o $@

build/unit-sanitize/stub/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(UNIT_SANITIZE) $(STUB_CFLAGS) -c $< -o $@

build/unit-sanitize/few/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(UNIT_SANITIZE) $(STUB_CFLAGS) $(RESIDENT_CFLAGS) -c $< -o $@

# $(call unit_objects,KIND,SOURCES): the objects of sources in UNIT_DIR; KIND is stub, or few for RESIDENT_CFLAGS
unit_objects = $(patsubst $(TOP)%.c,$(UNIT_DIR)/$1/%.o,$2)
UNIT_LIBS = $(shell grep -L '"postgres.h"' $(SRCS))
SERVED_SRCS = $(addprefix $(TOP),$(filter-out src/server/main.c src/server/control.c,$(SERVER_SRCS)))
CUDA_SRCS = $(wildcard $(TOP)test/unit/cuda/*.c)
# takes long to compile, and does not depend on RESIDENT_CFLAGS
STUB_VECTOR = $(TOP)test/unit/cuda/cuda_stub_vector.c
STUB_SRCS = $(SERVED_SRCS) $(CUDA_SRCS)
RESIDENT_SRCS = $(addprefix $(TOP),$(RESIDENT_PARTS))
UNIT_LINK = $(CC) $(UNIT_CFLAGS) $(if $(SANITIZE),$(UNIT_SANITIZE)) $^ -o $@ -lpthread -lm

$(UNIT_TESTS): $(UNIT_DIR)/%: $(call unit_objects,stub,$(UNIT_LIBS))
	$(UNIT_LINK)

$(filter-out %/resident_test %/session_test %/device_keys_test %/store_test,$(UNIT_TESTS)): $(UNIT_DIR)/%: $(UNIT_DIR)/stub/test/unit/%.o
$(addprefix $(UNIT_DIR)/,device_test device_start_test texts_test tiles_test): $(call unit_objects,stub,$(STUB_SRCS))
$(UNIT_DIR)/device_test: $(call unit_objects,stub,$(TOP)test/unit/device_run.c)
$(addprefix $(UNIT_DIR)/,resident_test session_test device_keys_test): $(UNIT_DIR)/%: $(UNIT_DIR)/few/test/unit/%.o $(call unit_objects,few,$(SERVED_SRCS) $(filter-out $(STUB_VECTOR),$(CUDA_SRCS))) \
	$(call unit_objects,stub,$(STUB_VECTOR))
$(UNIT_DIR)/resident_test: $(call unit_objects,few,$(RESIDENT_SRCS))
$(UNIT_DIR)/store_test: $(call unit_objects,few,$(TOP)test/unit/store_test.c $(addprefix $(TOP)src/server/,device_store.c device_store_memory.c device_store_hold.c device_store_cells.c column_dictionary.c store_entries.c budget.c))

# Chunks need PostgreSQL's headers. test/unit/backend.h and chunk_model.c define the functions that they call.
CHUNK_CFLAGS = -O3 -fno-strict-aliasing -fwrapv -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers
CHUNK_TESTS = chunk_test chunk_references_test
CHUNK_OBJS = $(call unit_objects,stub,$(TOP)test/unit/chunk_model.c $(addprefix $(TOP)src/cache/,chunk.c chunk_build.c))

$(CHUNK_OBJS) $(call unit_objects,stub,$(CHUNK_TESTS:%=$(TOP)test/unit/%.c)): UNIT_CFLAGS += $(CHUNK_CFLAGS) $(CPPFLAGS)
$(addprefix $(UNIT_DIR)/,$(CHUNK_TESTS)): $(CHUNK_OBJS)

# An object of each source file, for test/layers.pl.
.PHONY: layers-objects
layers-objects: $(STRICT_OBJS) $(SERVER_SRCS:%.c=build/unit/stub/%.o)

# The test server: the GPU server over the stub, which fails on request (test/stub_server/faults.c).
STUB_SERVER_OBJS = $(call unit_objects,stub,$(STUB_SRCS) $(TOP)test/stub_server/faults.c $(TOP)src/server/main.c $(TOP)src/server/control.c $(UNIT_LIBS))
STUB_SERVER_LDFLAGS = -Wl,--wrap=device_ops -Wl,--wrap=dictionary_read
.PHONY: server-stub
server-stub: build/test/gpuagg-server

build/test/gpuagg-server: $(STUB_SERVER_OBJS)
	@mkdir -p $(@D)
	$(UNIT_LINK) $(STUB_SERVER_LDFLAGS)

# A library for TAP tests that measures the longest time for which a backend does not check for interrupts.
.PHONY: interrupt-probe
interrupt-probe: build/test/interrupt_probe.so

build/test/interrupt_probe.so: $(TOP)test/probe/interrupt_probe.c
	@mkdir -p $(@D)
	$(CC) -Wall -Wextra -Werror -Wno-unused-parameter $(CFLAGS) $(CPPFLAGS) -fPIC -shared $< -o $@

# The programs of test/fuzz.sh. The server is the test server, built with sanitizers.
.PHONY: fuzz-programs
fuzz-programs: build/fuzz/gpuagg-server build/fuzz/attack build/fuzz/proxy

build/fuzz/gpuagg-server: $(STUB_SERVER_OBJS:$(UNIT_DIR)/%=build/unit-sanitize/%)
	@mkdir -p $(@D)
	$(CC) $(UNIT_SANITIZE) $^ -o $@ -lpthread -lm $(STUB_SERVER_LDFLAGS)

build/fuzz/attack build/fuzz/proxy: build/fuzz/%: build/unit/stub/test/fuzz/%.o build/unit/stub/src/operators/monoid.o
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -lpthread -lm

-include $(shell find build/strict build/unit build/unit-sanitize -name '*.d' 2>/dev/null)

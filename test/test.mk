# The tests, the demo and the benchmark.
#
#	make test			everything; PARTS="unit regress" only these (see test/run.sh)
#	make demo			a tour on real data
#	make bench			core against gpuagg; ROWS=8000000
#	make difftest		the differential test alone; N=20000 SEED=1; PAGES=1 of the heap feed; JOBS=16 side by side
#	make installcheck	the regression tests in the running server, which has shared_preload_libraries = 'gpuagg'
#	make strict			all of src/ under -Wall -Wextra -Werror, and the layout of all sources (test/format.pl)
#	make format			lays out the C and CUDA sources, with clang-format 14
#	make layers-objects	what test/layers.pl reads
#	make unit-tests		build/unit/*, each a C test that needs no PostgreSQL; SANITIZE=1 under sanitizers
.PHONY: test demo bench difftest strict format check-format unit-tests

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

# Objects of their own, so that a warning shows again although the library is built.  With STRICT=1 the library is made of
# these: what is tested is compiled once.
STRICT_OBJS = $(SRCS:$(TOP)src/%.c=build/strict/%.o)

strict: $(STRICT_OBJS) check-format

check-format:
	@$(TOP)test/format.pl

format:
	@$(TOP)test/format.pl --fix

build/strict/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) -Wall -Wextra -Werror $(CFLAGS) $(CPPFLAGS) -c $< -o $@

# Unit tests: objects of the tests, of every source of src/ that does not include postgres.h, and of the server over a stub
# of the CUDA run time and kernels on the host; each compiled once for all that link it.
UNIT_DIR = build/unit$(if $(SANITIZE),-sanitize)
UNIT_TESTS = $(patsubst $(TOP)test/unit/%.c,$(UNIT_DIR)/%,$(wildcard $(TOP)test/unit/*_test.c))
UNIT_CFLAGS = -std=gnu11 -g -O2 -ffp-contract=off -Wall -Wextra -Werror -I$(TOP)src -I$(TOP)test/unit -I$(TOP)kernels \
              $(CLANG_FLAGS) -MMD -MP
UNIT_SANITIZE = -fno-omit-frame-pointer -fsanitize=address$(comma)undefined -fno-sanitize-recover=all
STUB_CFLAGS = -I$(TOP)test/unit/cuda -Ddlopen=stub_dlopen -DGPUAGG_LEAST_CAPABILITY=80 '-DGPUAGG_CUDA_ARCHS="80 90"'
# Segments and slices of stored columns so small that few rows have several, and tables that few groups make grow.
RESIDENT_CFLAGS = -DSTORE_SEGMENT_ROWS=4096 -DSTORE_LEAST_ROWS=256 -DSTORE_LEAST_GAPS=512 -DRESIDENT_MAX_GAP=700 \
                  -DRESIDENT_LEAST_SLICE=128 -DSPLIT_ROWS=300 -DABSORB_GROUPS=17 -DLIMIT_SPARE=0 -DLEAST_CAPACITY=256 -DSTORE_MAX_TABLES=24

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

# objects KIND SOURCES: in UNIT_DIR
unit_objects = $(patsubst $(TOP)%.c,$(UNIT_DIR)/$1/%.o,$2)
UNIT_LIBS = $(shell grep -L '"postgres.h"' $(SRCS))
SERVED_SRCS = $(addprefix $(TOP),$(filter-out src/server/main.c src/server/control.c,$(SERVER_SRCS)))
STUB_SRCS = $(SERVED_SRCS) $(wildcard $(TOP)test/unit/cuda/*.c)
RESIDENT_SRCS = $(addprefix $(TOP),$(RESIDENT_PARTS))
UNIT_LINK = $(CC) $(UNIT_CFLAGS) $(if $(SANITIZE),$(UNIT_SANITIZE)) $^ -o $@ -lpthread -lm

$(UNIT_TESTS): $(UNIT_DIR)/%: $(call unit_objects,stub,$(UNIT_LIBS))
	$(UNIT_LINK)

$(filter-out %/resident_test %/store_test,$(UNIT_TESTS)): $(UNIT_DIR)/%: $(UNIT_DIR)/stub/test/unit/%.o
$(addprefix $(UNIT_DIR)/,device_test device_keys_test device_start_test session_test tiles_test): $(call unit_objects,stub,$(STUB_SRCS))
$(UNIT_DIR)/device_test: $(call unit_objects,stub,$(TOP)test/unit/device_run.c)
$(UNIT_DIR)/resident_test: $(call unit_objects,few,$(TOP)test/unit/resident_test.c $(RESIDENT_SRCS) $(STUB_SRCS))
$(UNIT_DIR)/store_test: $(call unit_objects,few,$(TOP)test/unit/store_test.c $(addprefix $(TOP)src/server/,device_store.c device_store_memory.c device_store_hold.c column_dictionary.c budget.c))

# Chunks need PostgreSQL's headers; the test stands in for its functions.
CHUNK_CFLAGS = -O3 -fno-strict-aliasing -fwrapv -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers
CHUNK_OBJS = $(call unit_objects,stub,$(TOP)test/unit/chunk_test.c $(addprefix $(TOP)src/cache/,chunk.c chunk_build.c))

$(CHUNK_OBJS): UNIT_CFLAGS += $(CHUNK_CFLAGS) $(CPPFLAGS)
$(UNIT_DIR)/chunk_test: $(filter-out %/chunk_test.o,$(CHUNK_OBJS))

# Of every source, for test/layers.pl.
.PHONY: layers-objects
layers-objects: $(STRICT_OBJS) $(SERVER_SRCS:%.c=build/unit/stub/%.o)

# The test server: the GPU server over the stub, with faults on request (test/stub_server/faults.c).
STUB_SERVER_OBJS = $(call unit_objects,stub,$(STUB_SRCS) $(TOP)test/stub_server/faults.c $(TOP)src/server/main.c $(TOP)src/server/control.c $(UNIT_LIBS))
STUB_SERVER_LDFLAGS = -Wl,--wrap=device_ops
.PHONY: server-stub
server-stub: build/test/gpuagg-server

build/test/gpuagg-server: $(STUB_SERVER_OBJS)
	@mkdir -p $(@D)
	$(UNIT_LINK) $(STUB_SERVER_LDFLAGS)

# A library for TAP tests, which measures how long a backend computes without looking for interrupts.
.PHONY: interrupt-probe
interrupt-probe: build/test/interrupt_probe.so

build/test/interrupt_probe.so: $(TOP)test/probe/interrupt_probe.c
	@mkdir -p $(@D)
	$(CC) -Wall -Wextra -Werror -Wno-unused-parameter $(CFLAGS) $(CPPFLAGS) -fPIC -shared $< -o $@

# Programs of test/fuzz.sh; the server is the test server, under sanitizers.
.PHONY: fuzz-programs
fuzz-programs: build/fuzz/gpuagg-server build/fuzz/attack build/fuzz/proxy

build/fuzz/gpuagg-server: $(STUB_SERVER_OBJS:$(UNIT_DIR)/%=build/unit-sanitize/%)
	@mkdir -p $(@D)
	$(CC) $(UNIT_SANITIZE) $^ -o $@ -lpthread -lm $(STUB_SERVER_LDFLAGS)

build/fuzz/attack build/fuzz/proxy: build/fuzz/%: build/unit/stub/test/fuzz/%.o build/unit/stub/src/operators/monoid.o
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -lpthread -lm

-include $(shell find build/strict build/unit build/unit-sanitize -name '*.d' 2>/dev/null)

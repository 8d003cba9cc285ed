# gpuagg: make, make install (PGXS); make test, make demo, make bench; make dist.  In another directory: make -f PATH/Makefile.
# Settings: PG_CONFIG, NVCC, CUDA_ARCHS, WERROR=1, OPTIMIZE=-O3, STRICT=1 (of the objects of make strict), SANITIZE=1 (for test/sanitize.sh, which builds a copy of the tree).
EXTENSION = gpuagg
MODULE_big = gpuagg
# The source tree with a slash, or nothing where it is the current directory.
TOP := $(dir $(firstword $(MAKEFILE_LIST)))
TOP := $(if $(filter-out $(realpath .),$(realpath $(TOP))),$(TOP))
DATA = $(patsubst $(TOP)%,%,$(wildcard $(TOP)sql/gpuagg--*.sql))
# src/server/ and src/device_cuda/ are a program of their own.
SRCS = $(filter-out $(TOP)src/server/% $(TOP)src/device_cuda/%,$(wildcard $(TOP)src/*.c $(TOP)src/*/*.c))
OBJS = $(if $(STRICT),$(STRICT_OBJS),$(SRCS:$(TOP)%.c=%.o))
EXTRA_CLEAN = $(OBJS:.o=.d) build tmp_install test/results test/bench/kernels $(wildcard gpuagg-*.zip)

PG_CONFIG ?= pg_config
# The version stands in gpuagg.control alone.
LIBRARY_VERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(TOP)gpuagg.control)
PG_CPPFLAGS = -I$(TOP)src '-DGPUAGG_VERSION="$(LIBRARY_VERSION)"'
# -O3: the column loops vectorize; contraction off: floats round as core's do.
OPTIMIZE = -O3
PG_CFLAGS = -MMD -MP $(OPTIMIZE) -ffp-contract=off -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers \
            $(CLANG_FLAGS) $(if $(WERROR),-Werror) $(SANITIZE_FLAGS)
# PostgreSQL's flags and headers are made for the compiler that built it, and clang need not know all that gcc does.
CLANG_FLAGS = $(if $(findstring clang,$(shell $(CC) --version)),-Wno-ignored-optimization-argument -Wno-unknown-warning-option -Wno-cast-function-type-strict \
              -Wno-unknown-warning-option -Wno-ignored-attributes)
SHLIB_LINK = $(SANITIZE_FLAGS)
SANITIZE_FLAGS = $(if $(SANITIZE),-O1 -fno-omit-frame-pointer -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined)
comma = ,
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
PGXS_FOUND := $(wildcard $(PGXS))

include $(TOP)kernels/kernels.mk
include $(TOP)src/server/server.mk
include $(TOP)test/test.mk
include $(TOP).packaging/packaging.mk

# Without PostgreSQL only the targets that install it first can run.
ifneq ($(PGXS_FOUND),)
include $(PGXS)
else ifneq ($(filter-out test demo bench difftest dist packages server kernels gpu-tests bench-kernels,$(or $(MAKECMDGOALS),all)),)
$(error $(PG_CONFIG) or PostgreSQL's server headers not found: install postgresql-server-dev-all (Debian), or set PG_CONFIG)
endif

# Only sources are looked for in the source tree: objects that it may hold are of another build.
srcdir := $(srcdir)
override VPATH =
vpath %.c $(or $(TOP:/=),.)
vpath %.cu $(or $(TOP:/=),.)
vpath %.cpp $(or $(TOP:/=),.)
vpath %.control $(or $(TOP:/=),.)
$(OBJS) $(OBJS:.o=.bc): | $(sort $(dir $(OBJS)))
$(sort $(dir $(OBJS))):
	@mkdir -p $@

# Folders that a build elsewhere has made.
ifneq ($(TOP),)
.PHONY: clean clean-folders
clean: clean-folders

clean-folders:
	rm -rf test/results
	rm -f $(OBJS) $(OBJS:.o=.bc) $(OBJS:.o=.d) expected
	if [ -d src ]; then find src -type d -empty -delete; fi
	if [ -d test ]; then find test -type d -empty -delete; fi
endif

src/extension/status.o src/common/progress.o build/strict/extension/status.o build/strict/common/progress.o: gpuagg.control

# Header dependencies are those of the objects; bitcode follows its object.
$(OBJS:.o=.bc): %.bc: %.o
-include $(OBJS:.o=.d)

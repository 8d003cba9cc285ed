# gpuagg: make, make install (PGXS); make test, make demo, make bench.
# Settings: PG_CONFIG, NVCC, CUDA_ARCHS, WERROR=1, SANITIZE=1 (for test/sanitize.sh, which builds a copy of the tree).
EXTENSION = gpuagg
MODULE_big = gpuagg
DATA = $(wildcard sql/gpuagg--*.sql)
# src/server/ is a program of its own.
SRCS = $(filter-out src/server/%,$(wildcard src/*.c src/*/*.c))
OBJS = $(SRCS:.c=.o)
EXTRA_CLEAN = $(OBJS:.o=.d) build

PG_CONFIG ?= pg_config
# The version stands in gpuagg.control alone.
LIBRARY_VERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(dir $(firstword $(MAKEFILE_LIST)))gpuagg.control)
PG_CPPFLAGS = -Isrc '-DGPUAGG_VERSION="$(LIBRARY_VERSION)"'
# -O3: the column loops vectorize; contraction off: floats round as core's do.
PG_CFLAGS = -MMD -MP -O3 -ffp-contract=off -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers \
            $(if $(WERROR),-Werror) $(SANITIZE_FLAGS)
SHLIB_LINK = $(SANITIZE_FLAGS)
SANITIZE_FLAGS = $(if $(SANITIZE),-O1 -fno-omit-frame-pointer -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined)
comma = ,
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
PGXS_FOUND := $(wildcard $(PGXS))

include kernels/kernels.mk
include src/server/server.mk
include test/test.mk

# Without PostgreSQL only the targets that install it first can run.
ifneq ($(PGXS_FOUND),)
include $(PGXS)
else ifneq ($(filter-out test demo bench difftest kernels gpu-tests bench-kernels,$(or $(MAKECMDGOALS),all)),)
$(error $(PG_CONFIG) or PostgreSQL's server headers not found: install postgresql-server-dev, or set PG_CONFIG)
endif

src/extension/status.o: gpuagg.control

# Header dependencies are those of the objects; bitcode follows its object.
$(OBJS:.o=.bc): %.bc: %.o
-include $(OBJS:.o=.d)

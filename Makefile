# Builds and installs gpuagg with PGXS: make, make install. More targets: make test, make demo, make bench, make dist.
# To build in another directory: make -f PATH/Makefile.
#
#	PG_CONFIG		the PostgreSQL to build for
#	NVCC			CUDA's compiler; empty to build without a GPU server
#	CUDA_ARCHS		the GPU architectures to build for
#	WERROR=1		makes warnings errors
#	OPTIMIZE		the optimization level (default -O3)
#	STRICT=1		links the library from the objects of make strict
#	SANITIZE=1		builds with sanitizers; test/sanitize.sh uses it in a copy of the tree
EXTENSION = gpuagg
MODULE_big = gpuagg
# The path of the source tree with a slash; empty if it is the current directory.
TOP := $(dir $(firstword $(MAKEFILE_LIST)))
TOP := $(if $(filter-out $(realpath .),$(realpath $(TOP))),$(TOP))
DATA = $(patsubst $(TOP)%,%,$(wildcard $(TOP)sql/gpuagg--*.sql))
# src/server/ and src/device_cuda/ belong to the GPU server, which is another program.
SRCS = $(filter-out $(TOP)src/server/% $(TOP)src/device_cuda/%,$(wildcard $(TOP)src/*.c $(TOP)src/*/*.c))
OBJS = $(if $(STRICT),$(STRICT_OBJS),$(SRCS:$(TOP)%.c=%.o))
EXTRA_CLEAN = $(OBJS:.o=.d) build tmp_install test/results test/bench/kernels $(wildcard gpuagg-*.zip)

PG_CONFIG ?= pg_config
# Only gpuagg.control has the version.
LIBRARY_VERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(TOP)gpuagg.control)
PG_CPPFLAGS = -I$(TOP)src '-DGPUAGG_VERSION="$(LIBRARY_VERSION)"'
# -O3 vectorizes loops over columns. Without contraction, floats are rounded like PostgreSQL's.
OPTIMIZE = -O3
PG_CFLAGS = -MMD -MP $(OPTIMIZE) -ffp-contract=off -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers \
            $(CLANG_FLAGS) $(if $(WERROR),-Werror) $(SANITIZE_FLAGS)
# PostgreSQL's flags and headers are for the compiler that built it. If that was gcc, clang does not support all of them.
CLANG_FLAGS = $(if $(findstring clang,$(shell $(CC) --version)),-Wno-ignored-optimization-argument -Wno-unknown-warning-option -Wno-cast-function-type-strict \
              -Wno-unknown-warning-option -Wno-ignored-attributes)
# Processes compare the build id before they share plans and memory, see src/common/build_id.h.
# The library's own functions are called directly. Else each process looks up their names when it first calls them.
SHLIB_LINK = -Wl,--build-id -Wl,-Bsymbolic-functions $(SANITIZE_FLAGS)
SANITIZE_FLAGS = $(if $(SANITIZE),-O1 -fno-omit-frame-pointer -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined)
comma = ,
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
PGXS_FOUND := $(wildcard $(PGXS))

include $(TOP)kernels/kernels.mk
include $(TOP)src/server/server.mk
include $(TOP)test/test.mk
include $(TOP).packaging/packaging.mk

# Without PostgreSQL, only targets that install or do not need it can run.
ifneq ($(PGXS_FOUND),)
include $(PGXS)
else ifneq ($(filter-out test demo bench difftest dist packages server kernels gpu-tests bench-kernels,$(or $(MAKECMDGOALS),all)),)
$(error $(PG_CONFIG) or PostgreSQL's server headers not found: install postgresql-server-dev-all (Debian), or set PG_CONFIG)
endif

# Only sources are searched for in the source tree, as objects in it belong to another build.
srcdir := $(srcdir)
override VPATH =
vpath %.c $(or $(TOP:/=),.)
vpath %.cu $(or $(TOP:/=),.)
vpath %.cpp $(or $(TOP:/=),.)
vpath %.control $(or $(TOP:/=),.)
$(OBJS) $(OBJS:.o=.bc): | $(sort $(dir $(OBJS)))
$(sort $(dir $(OBJS))):
	@mkdir -p $@

# Removes the folders that a build in another directory makes.
ifneq ($(TOP),)
.PHONY: clean clean-folders
clean: clean-folders

clean-folders:
	rm -rf test/results
	rm -f $(OBJS) $(OBJS:.o=.bc) $(OBJS:.o=.d) expected
	if [ -d src ]; then find src -type d -empty -delete; fi
	if [ -d test ]; then find test -type d -empty -delete; fi
endif

src/extension/status.o src/common/build_id.o build/strict/extension/status.o build/strict/common/build_id.o: gpuagg.control

# Bitcode has the dependencies of its object.
$(OBJS:.o=.bc): %.bc: %.o
-include $(OBJS:.o=.d)

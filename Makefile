# Espalier. `make help` lists the targets; README.md explains them.
#
# Objects keep their source's extension (its.cpp.o, its.cu.o) so that the CPU and the CUDA implementation sit side by side.

# The rooms of the source in reading order. A room includes itself and rooms to its left (make
# check-rooms).
ROOMS := base comm file sparse dense graph partition product sample feature nn infer history train plan job library app

# All cores, unless -j says how many or several goals are to be done one after the other
# (`make clean test`, `make test bench`): then one. Each compiler takes up to 0.75 GiB.
JOBS_ASKED  := $(filter -j% --jobs%,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS"))
GOALS_APART := $(filter-out 0 1,$(words $(filter-out all build/%,$(MAKECMDGOALS))))
ifeq ($(JOBS_ASKED)$(GOALS_APART),)
MAKEFLAGS += -j$(shell memory=$$(awk '/^MemAvailable:/ {print int($$2 / 786432)}' /proc/meminfo 2>/dev/null); \
  cores=$$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || echo 1); [ "$${memory:-0}" -gt 0 ] || memory=1; echo $$((memory < cores ? memory : cores)))
endif

SAN      ?=
comma    := ,
# With SAN the build has a folder of its own.
BUILD    ?= build/$(if $(SAN),san-$(subst $(comma),-,$(SAN)),cpu)
ARCH     ?= native
MPICXX   ?= mpicxx
NP       ?=
ONLY     ?=
RANKS    ?= 4
# What pkg-config is asked for; where it knows no name, CPPFLAGS and LDLIBS say it (slurm/README.md).
PKG      ?= hdf5-openmpi fmt spdlog zlib libzip libzstd
CPPFLAGS += -Iinclude -DOMPI_SKIP_MPICXX -DSPDLOG_FMT_EXTERNAL \
            $(shell pkg-config --cflags $(PKG) 2>/dev/null | sed 's/-I/-isystem /g')
# How fast the program is, and what a backtrace tells; .ci/run compiles with less of both.
OPTIMIZATION ?= -O3 -g1
# -Wno-dangling-else: GoogleTest macros after `if`. -Wno-restrict: GCC 12 warns wrongly about
# std::string + (GCC bug 105329); clang does not know it, hence -Wno-unknown-warning-option.
# -Wno-pass-failed: clang tells of each loop that it does not make vectors of.
# No contraction: a product and a sum round twice on every machine, so block values agree bit for
# bit (design 4.1).
CXXFLAGS += -std=c++20 $(OPTIMIZATION) -march=$(ARCH) -ffp-contract=off -fopenmp -Wall -Wextra -Wshadow -Wno-restrict -Wno-dangling-else -Wno-pass-failed -Wno-unknown-warning-option
# WERROR=1: warnings are errors, as CI has it. Left out, a newer compiler, which warns of more, still builds.
WERROR   ?=
CXXFLAGS += $(if $(WERROR),-Werror)
# One set of objects makes the program, libespalier.a and libespalier.so, which shows what include/espalier.h says and no C++.
CXXFLAGS += -fPIC -fvisibility=hidden
# make SAN=address,undefined (or SAN=thread): watched by the compiler's sanitizers, slower by three; what they find ends the program.
ifneq ($(SAN),)
CXXFLAGS += -O1 -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
LDFLAGS  += tests/sanitizers/keep_plugins.cpp -Wl,--export-dynamic-symbol=dlclose
endif
# Tests and the emulation are compiled oftener than they run, and no option changes a bit: the last -O counts.
TEST_OPTIMIZATION ?= -O1
LDLIBS   += $(shell pkg-config --libs $(PKG) 2>/dev/null)
# CombBLAS is an oracle of the tests and a baseline of the benches, no part of the program. Looked
# for when it is used, as `deps` may just have brought it.
COMBBLAS ?= $(shell test -e /usr/include/CombBLAS/CombBLAS.h && echo /usr)
COMBBLAS_FLAGS = $(if $(COMBBLAS),$(patsubst %,-isystem %/include,$(filter-out /usr,$(COMBBLAS))) -isystem $(COMBBLAS)/include/CombBLAS -DTHREADED -DESPALIER_WITH_COMBBLAS)
COMBBLAS_LIBS  = $(if $(COMBBLAS),$(patsubst %,-L%/lib,$(filter-out /usr,$(COMBBLAS))) -lCombBLAS -lUsortlib -lGraphGenlib)
# METIS is one method of `espalier partition`; without it the program says so when it is asked for.
METIS    ?= $(shell for d in /usr /usr/local; do test -e $$d/include/metis.h && echo $$d && break; done)
METIS_FLAGS = $(if $(METIS),$(patsubst %,-isystem %/include,$(filter-out /usr,$(METIS))) -DESPALIER_WITH_METIS)
LDLIBS   += $(if $(METIS),$(patsubst %,-L%/lib,$(filter-out /usr,$(METIS))) -lmetis)
# liburing has many reads of a disk under way at once; without it, and where the kernel refuses, they go one after another.
LIBURING ?= $(shell for d in /usr /usr/local; do test -e $$d/include/liburing.h && echo $$d && break; done)
LIBURING_FLAGS = $(if $(LIBURING),$(patsubst %,-isystem %/include,$(filter-out /usr,$(LIBURING))) -DESPALIER_WITH_LIBURING)
LDLIBS   += $(if $(LIBURING),$(patsubst %,-L%/lib,$(filter-out /usr,$(LIBURING))) -luring)
# Eigen is another oracle and baseline: of products, in one file of the tests and one bench.
EIGEN_FLAGS = $(shell pkg-config --cflags eigen3 2>/dev/null | sed 's/-I/-isystem /g')
# Debian's h5py and numpy serve the tests and scripts; a python3 that lacks them is passed over.
PYTHON   ?= $(shell for p in python3 /usr/bin/python3; do $$p -c 'import h5py, numpy' 2>/dev/null && echo $$p && break; done)

SOURCES  := $(foreach room,$(ROOMS),$(sort $(wildcard src/$(room)/*.cpp src/$(room)/*.both.cu)))
TESTS    := $(patsubst tests/%.cpp,$(BUILD)/tests/%,$(sort $(wildcard tests/*/*_test.cpp)))
# Linked to every test, of each build.
TEST_SUPPORT := $(BUILD)/obj/tests/mpi_main.cpp.o $(BUILD)/obj/tests/dense/eigen_oracle.cpp.o
BENCHES  := $(patsubst bench/%.cpp,$(BUILD)/bench/%,$(sort $(wildcard bench/*/*_bench.cpp)))
CODE      = $(shell find src include tests bench -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh') include/espalier.h include/espalier.hpp examples/c/train.c $(wildcard examples/cpp/*.cpp)
SHELL_SCRIPTS  = $(wildcard scripts/*.sh bench/*/*.sh slurm/*.sh slurm/*.sbatch) .ci/run
PYTHON_SCRIPTS = $(wildcard scripts/*.py scripts/*/*.py tests/*.py tests/*/*.py bench/*/*.py python/*/*.py python/*/*/*.py examples/*/*.py)
# Compiled by themselves: what has options of its own.
FULL_SPEED := $(addprefix plan/,measure_machine) $(addprefix train/,gradient_reduction metrics optimizer task_table)
WITH_METIS := $(addprefix partition/,partition_by_metis partition_coarsest)
# Of vector registers, written out: more than -O2 makes nothing faster, and takes six times as long.
WRITTEN_OUT := $(addprefix dense/,bf16_amx bf16_portable gemm gemm_tn)
BY_ITSELF  := $(patsubst %,src/%.cpp,app/main base/parallel_reads $(FULL_SPEED) $(WITH_METIS) $(WRITTEN_OUT))
# Those of job/, library/ and app/ that test whether CUDA was built; check_rooms.py sees to it that no other file can.
GPU_APP    := $(shell grep -lE 'ESPALIER_WITH_CUDA|_on_gpu\.hpp"' src/job/*.cpp src/library/*.cpp src/app/*.cpp)
# The others so many of a room at a time: IN_graph/files_1 and so on. What is compiled for GPUs once more is apart: IN_job/on_gpu_1.
FILES_AT_ONCE ?= 12
first         = $(wordlist 1,$(FILES_AT_ONCE),$(1))
others        = $(wordlist $(words x $(call first,$(1))),$(words $(1)),$(1))
in_batches    = $(if $(1),$(2)_$(words x $(3))$(eval IN_$(2)_$(words x $(3)) := $(call first,$(1))) $(call in_batches,$(call others,$(1)),$(2),x $(3)))
ifneq ($(FILES_AT_ONCE),1)
GPU_APP_BATCHES := $(foreach room,$(ROOMS),$(call in_batches,$(filter src/$(room)/%,$(GPU_APP)),$(room)/on_gpu))
BATCHES      := $(foreach room,$(ROOMS),$(call in_batches,$(filter-out $(BY_ITSELF) $(GPU_APP),$(filter src/$(room)/%,$(SOURCES))),$(room)/files)) \
                $(GPU_APP_BATCHES)
endif
OBJECTS      := $(patsubst src/%,$(BUILD)/obj/%.o,$(filter-out src/app/main.cpp,$(if $(BATCHES),$(filter $(BY_ITSELF),$(SOURCES)),$(SOURCES)))) \
                $(BATCHES:%=$(BUILD)/obj/%.cpp.o)

PROGRAM  := $(BUILD)/espalier
LIBRARY  := $(BUILD)/libespalier.a
SHARED   := $(BUILD)/libespalier.so
# Of the room of C functions, and of the archive what it needs: commands stay out.
OF_LIBRARY  := $(filter $(BUILD)/obj/library/%,$(OBJECTS))
EXPORTS     := src/library/exports.map
LINK_SHARED  = $(MPICXX) $(CXXFLAGS) $(LDFLAGS) -shared -Wl,-soname,libespalier.so.1 -Wl,--version-script=$(EXPORTS) -Wl,-z,defs
# Archives in LDLIBS are the program's: not all are made for shared libraries (Debian's of HDF5 is not).
SHARED_LDLIBS ?= $(filter-out %.a,$(LDLIBS))

all: status $(PROGRAM) $(if $(SAN),,$(SHARED))  ## build the CPU program at build/cpu/espalier (the default); SAN=address,undefined: watched by sanitizers, in a folder of its own

include cuda.mk test.mk bench.mk simulate.mk install.mk

$(PROGRAM): $(BUILD)/obj/app/main.cpp.o $(LIBRARY)
	@echo "link   $@"
	@$(MPICXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(LIBRARY): $(OBJECTS)
	@rm -f $@ && ar rcs $@ $^

$(SHARED): $(OF_LIBRARY) $(LIBRARY) $(EXPORTS)
	@echo "link   $@"
	@$(LINK_SHARED) -o $@ $(filter-out $(EXPORTS),$^) $(SHARED_LDLIBS) && ln -sf $(@F) $@.1

# src/graph/a.cpp and 7 more
said = $(firstword $(IN_$(1:$(BUILD)/obj/%.cpp=%))) and $(words $(wordlist 2,99,$(IN_$(1:$(BUILD)/obj/%.cpp=%)))) more

# A list is made anew only where it differs, as when a file has gone.
.PHONY: files-of-rooms
files-of-rooms:
$(patsubst %,$(BUILD)/obj/%.cpp,$(BATCHES) $(TEST_BATCHES)): $(BUILD)/obj/%.cpp: files-of-rooms
	@mkdir -p $(@D) && printf '#include "%s"\n' $(IN_$*) > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# What a file has for itself is a batch's: the warning is of headers.
COMPILE_BATCH = $(MPICXX) $(CPPFLAGS) -I. $(CXXFLAGS) -Wno-subobject-linkage -MMD -MP
$(BATCHES:%=$(BUILD)/obj/%.cpp.o): %.o: % | deps
	@echo "c++    $(call said,$<)"
	@$(COMPILE_BATCH) -c -o $@ $<

$(BUILD)/obj/%.cpp.o: src/%.cpp | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(MPICXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<

# Rooms that read arguments, write pages and put kernels in order: a third less to compile, and no time of a job is spent there.
# The last -O counts; kernels keep theirs.
$(addprefix $(BUILD)/obj/,app/%.cpp.o with_cuda/%.cpp.o job/%.cpp.o library/%.cpp.o plan/%.cpp.o train/%.cpp.o infer/%.cpp.o): CXXFLAGS += -O1
$(FULL_SPEED:%=$(BUILD)/obj/%.cpp.o): CXXFLAGS += -O3
$(WRITTEN_OUT:%=$(BUILD)/obj/%.cpp.o): CXXFLAGS += -O2

$(WITH_METIS:%=$(BUILD)/obj/%.cpp.o): CPPFLAGS += $(METIS_FLAGS)
$(BUILD)/obj/base/parallel_reads.cpp.o: CPPFLAGS += $(LIBURING_FLAGS)

HDF5 = $(filter hdf5%,$(PKG))

deps:  ## install what is missing (apt), or print what to ask for
	@bash scripts/install_deps.sh

status: deps  ## print what the build found
	@version=$$($(MPICXX) --showme:version 2>/dev/null || $(MPICXX) -v 2>/dev/null); \
	echo "MPI    $$(echo "$${version:-not found}" | head -1)"; \
	echo "HDF5   $(HDF5) $$(pkg-config --modversion $(HDF5) 2>/dev/null || echo 'not found by pkg-config')"; \
	echo "METIS  $(if $(METIS),$(METIS)/include/metis.h,not found: libmetis-dev; \`partition\` has its other methods)"; \
	echo "uring  $(if $(LIBURING),$(LIBURING)/include/liburing.h,not found: liburing-dev; rows on disk are read one after another)"; \
	echo "CUDA   $(CUDA_STATUS)"

run: all  ## train a 3-layer GraphSAGE on a real graph, on 4 ranks (RANKS=n to change)
	@bash scripts/run_example.sh $(PROGRAM) $(RANKS)

run-typed: all  ## the same with R-GCN on a graph of 4 vertex types and 22 relations
	@bash scripts/run_example.sh $(PROGRAM) $(RANKS) typed

run-links: all  ## which package depends on which? R-GCN on that graph, with links to learn and to find
	@bash scripts/run_example.sh $(PROGRAM) $(RANKS) links

verify-values: $(PROGRAM)  ## write anew what `espalier verify` expects, after a change of results that was meant (src/app/verify.cpp)
	@$(PROGRAM) -q verify --device cpu --print-values > $(BUILD)/verify_values && mv $(BUILD)/verify_values src/app/verify_values.inl.hpp

check: check-format check-width check-rooms check-files check-declared lint  ## format, width of comments, rooms, files that git has, declarations for Python, lint

check-format:  ## is every source formatted by .clang-format?
	@clang-format --dry-run -Werror $(CODE) && echo "format ok"

check-width:  ## do comments end at column 100?
	@python3 scripts/wrap_comments.py --check

check-rooms:  ## does every room include only itself and rooms before it? does only comm/ name MPI?
	@python3 scripts/check_rooms.py $(ROOMS)

check-files:  ## is every file that git has a text, and small? those that may be otherwise are named in the script
	@python3 scripts/check_files.py

check-declared:  ## is python/espalier/_declared.py what include/espalier.h says?
	@python3 scripts/declare_header.py --check

lint:  ## do the shell and python scripts parse?
	@for f in $(SHELL_SCRIPTS); do bash -n $$f || exit 1; done
	@python3 -m py_compile $(PYTHON_SCRIPTS) && echo "lint ok"

# Comments that move change what clang-format aligns, and the other way round: three rounds
# settle it.
format:  ## format every source, wrap comments
	@for round in 1 2 3; do clang-format -i $(CODE) && python3 scripts/wrap_comments.py || exit 1; done; clang-format -i $(CODE)

clean:  ## remove build/
	rm -rf build

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

-include $(OBJECTS:.o=.d) $(BUILD)/obj/app/main.cpp.d
.PHONY: all deps status run run-typed run-links verify-values check check-format check-width check-rooms check-files check-declared lint format clean help

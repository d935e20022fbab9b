# make simulate, make simulate-all: the rooms that sample and fetch, built a second time for
# SimGrid's SMPI, which runs all ranks in one process on a simulated network (docs/scaling.md).
# Beside it the same driver for this machine's MPI, whose samples must be the same.
#
# Left out: what reads and writes files, and makes orders (parallel HDF5 is made for another MPI),
# the config, dense products.

SMPI_INCLUDE      ?= /usr/include/smpi
SIMULATED_ROOMS   := base comm sparse product sample feature
SIMULATED_WITHOUT := src/base/config% src/product/read_% src/feature/read_%
SIMULATED_SOURCES := $(filter-out $(SIMULATED_WITHOUT),$(foreach room,$(SIMULATED_ROOMS),$(sort $(wildcard src/$(room)/*.cpp src/$(room)/*.both.cu)))) \
                     $(addprefix src/partition/,cut_order.cpp group_by_owner.both.cu held_types.cpp ownership.cpp ownership.both.cu row_holders.cpp) \
                     src/graph/schema.cpp src/dense/gather.cpp src/dense/spmm.cpp bench/simulated/scaling.cpp
SIMULATED_OBJECTS := $(SIMULATED_SOURCES:%=build/simulated/obj/%.o)
SIMULATED_POINTS  ?= build/simulated/points.csv
# Only linked by smpicxx, whose headers rename malloc and exit. No -g: the simulator loads a copy of
# the program for every rank. The copies must share nothing, statics of inline functions neither:
# -fno-gnu-unique.
SIMULATE = $(CXX) -std=c++20 -O3 -march=$(ARCH) -ffp-contract=off -fopenmp -fPIC -fno-gnu-unique -Wall -Wextra -Wshadow -Wno-restrict \
           -DESPALIER_SIMULATED -DSPDLOG_FMT_EXTERNAL -Iinclude -Ibench -isystem $(SMPI_INCLUDE) $(shell pkg-config --cflags fmt spdlog 2>/dev/null)

simulate: deps  ## sample and fetch on simulated ranks of a GPU cluster: build and a check, ten seconds (needs SimGrid, else skipped)
	@if bash scripts/install_deps.sh --simulator; then $(MAKE) --no-print-directory simulated-smoke; \
	else echo "simulate: SimGrid's smpicxx not found and not installed (Debian: libsimgrid-dev); skipped"; fi

simulate-all: deps  ## all points of docs/scaling.md, p = 4 to 128, with tables and pictures in build/simulated: an hour or more, 9 GB
	@if bash scripts/install_deps.sh --simulator; then $(MAKE) --no-print-directory simulated-study; \
	else echo "simulate-all: SimGrid's smpicxx not found and not installed (Debian: libsimgrid-dev); skipped"; fi

simulated-smoke: build/simulated/scaling $(BUILD)/bench/simulated/scaling
	@$(PYTHON) bench/simulated/run.py smoke

# Points that the file has are kept, so that it goes on where it stopped. bench/simulated/points.csv
# is that of docs/scaling.md.
simulated-study: simulated-smoke
	@$(PYTHON) bench/simulated/run.py all -o $(SIMULATED_POINTS)
	@$(PYTHON) bench/simulated/plot.py $(SIMULATED_POINTS) --tables
	@$(PYTHON) bench/simulated/plot.py $(SIMULATED_POINTS) -o build/simulated

build/simulated/obj/%.cpp.o: %.cpp
	@mkdir -p $(@D) && echo "smpi   $<"
	@$(SIMULATE) -MMD -MP -c -o $@ $<

build/simulated/obj/%.cu.o: %.cu
	@mkdir -p $(@D) && echo "smpi   $<"
	@$(SIMULATE) -MMD -MP -c -o $@ -x c++ $<

build/simulated/scaling: $(SIMULATED_OBJECTS)
	@smpicxx -fopenmp -o $@ $^ $(shell pkg-config --libs fmt spdlog zlib 2>/dev/null)

-include $(SIMULATED_OBJECTS:.o=.d)
.PHONY: simulate simulate-all simulated-smoke simulated-study

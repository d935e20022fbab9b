# make test [ONLY=room/op] [NP=n], make test-long, make test-sanitized, make test-slurm
#
# Tests of the GPU (OP_test.cu) run on the CPU: where nvcc is, with the kernels as it compiled them (build/ptx), else as the C++
# compiler does (build/emulated); test-long runs both. Where a GPU is, it runs them too.

COMPILE_TEST = $(MPICXX) $(CPPFLAGS) $(CXXFLAGS) $(TEST_OPTIMIZATION) $(if $(SAN),,-g0) -I$(BUILD)/obj/tests -Itests -MMD -MP
PRECOMPILED  = $(BUILD)/obj/tests/precompiled.hpp.gch
# By its path, without which clang would not look for it.
USE_PRECOMPILED = -include $(PRECOMPILED:.gch=) -Winvalid-pch
# Two hundred programs, each linked from the whole library: gold takes a third of the time of the linker that links the program.
TEST_LINKER  ?= $(if $(shell command -v ld.gold),-fuse-ld=gold)
# With it ccache, where somebody uses one, only serves when it is told that its own hash of the header will do.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

$(PRECOMPILED): tests/precompiled.hpp | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(COMPILE_TEST) -MF $@.d -x c++-header -c -o $@ $<

$(BUILD)/obj/tests/%.cpp.o: tests/%.cpp $(PRECOMPILED) | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(COMPILE_TEST) $(USE_PRECOMPILED) -c -o $@ $<

$(BUILD)/obj/tests/%.cu.o: tests/%.cu $(PRECOMPILED) | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(COMPILE_TEST) $(USE_PRECOMPILED) -c -o $@ -x c++ $<

# A room's tests are one program, but where those of a file are asked for: linking takes as long for one file as for twenty.
BY_ROOM      := $(if $(findstring /,$(ONLY)),,$(BATCHES))
# Those with options of their own, or an operator new, stay apart.
APART        := $(patsubst %,tests/%_test.cpp,dense/width product/combblas graph/components nn/layer_costs)
rooms_of      = $(sort $(foreach test,$(1),$(word 2,$(subst /, ,$(test)))))
in_room       = $(filter tests/$(room)/%,$(1))
TEST_SOURCES := $(filter-out $(APART),$(TESTS:$(BUILD)/tests/%=tests/%.cpp))
TEST_BATCHES := $(if $(BY_ROOM),$(foreach room,$(call rooms_of,$(TEST_SOURCES)),$(call in_batches,$(call in_room,$(TEST_SOURCES)),tests/$(room)/files)) \
                $(foreach room,$(call rooms_of,$(CUDA_TESTS)),$(call in_batches,$(call in_room,$(filter $(PLAIN_CUDA),$(CUDA_TESTS))),tests/$(room)/on_gpu)))
objects_of_tests = $(patsubst %,$(BUILD)/obj/%.cpp.o,$(filter tests/$(1)_%,$(TEST_BATCHES)))

$(TEST_BATCHES:%=$(BUILD)/obj/%.cpp.o): %.o: % $(PRECOMPILED) | deps
	@echo "c++    $(call said,$<)"
	@$(COMPILE_TEST) -I. -Wno-subobject-linkage $(USE_PRECOMPILED) -c -o $@ $<

$(foreach room,$(call rooms_of,$(TEST_SOURCES)),$(eval $(BUILD)/tests/$(room)/all_tests: $(call objects_of_tests,$(room)/files)))
$(BUILD)/tests/%/all_tests: $(TEST_SUPPORT) $(LIBRARY)
	$(LINK_TEST)

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.cpp.o $(TEST_SUPPORT) $(LIBRARY)
	$(LINK_TEST)

# The same of the GPU's tests; those with kernels of their own are objects of each build.
$(foreach build,cuda emulated ptx races memory,$(foreach room,$(call rooms_of,$(CUDA_TESTS)),$(eval \
  build/$(build)/tests/$(room)/all_tests: $(call objects_of_tests,$(room)/on_gpu) \
  $(foreach test,$(filter-out $(PLAIN_CUDA),$(call in_room,$(CUDA_TESTS))),$(call gpu_object,$(build),$(test))))))

define LINK_TEST
@mkdir -p $(@D)
@$(MPICXX) $(CXXFLAGS) $(LDFLAGS) $(TEST_LINKER) -o $@ $(filter %.o,$^) $(LIBRARY) $(LDLIBS) -lgtest
endef

$(BUILD)/obj/tests/dense/eigen_oracle.cpp.o: private CPPFLAGS += $(EIGEN_FLAGS)

# Operations in vector registers, once more for registers of other widths, of which the narrow ones have no fused instruction.
KERNELS_BY_WIDTH := $(patsubst %,$(BUILD)/obj/tests/dense/kernels_by_%_bytes.cpp.o,16 64)
$(KERNELS_BY_WIDTH): $(BUILD)/obj/tests/%.cpp.o: tests/%.cpp | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(COMPILE_TEST) -Wno-psabi $(if $(findstring _16_,$@),$(if $(findstring x86_64,$(shell $(MPICXX) -dumpmachine)),-march=x86-64)) -c -o $@ $<
$(BUILD)/tests/dense/width_test: $(KERNELS_BY_WIDTH)

# The tests that multiply by CombBLAS; without it what they compare with it is skipped, saying so.
COMBBLAS_TESTS := product/combblas_test graph/components_test
$(COMBBLAS_TESTS:%=$(BUILD)/obj/tests/%.cpp.o): private CPPFLAGS += $(COMBBLAS_FLAGS)
$(COMBBLAS_TESTS:%=$(BUILD)/tests/%): private LDLIBS += $(COMBBLAS_LIBS)

# How kernels run, the first also for the program that Python tests start: builds, and their names in tests/run.py.
GPU_HERE     := $(wildcard /dev/nvidia[0-9] /dev/dxg)
KERNELS       = $(if $(NVCC),ptx,emulated)
LONG_KERNELS  = emulated $(if $(NVCC),ptx)
names_of      = $(subst $() ,$(comma),$(strip $(patsubst ptx,as-compiled,$(1))))
# The programs that tests need, with kernels of builds $(1). With ONLY: those of that name; tests of app/ run the GPU program,
# the long ones of the scripts the benches. Sanitizers watch the CPU's program alone.
gpu_builds    = $(1) $(if $(and $(NVCC),$(GPU_HERE)),cuda)
gpu_tests     = $(if $(SAN),,$(foreach build,$(call gpu_builds,$(1)),$(if $(BY_ROOM),$(patsubst %,build/$(build)/tests/%/all_tests,$(call rooms_of,$(CUDA_TESTS))),$(CUDA_TESTS:tests/%.cu=build/$(build)/tests/%))))
cpu_tests     = $(if $(BY_ROOM),$(patsubst %,$(BUILD)/tests/%/all_tests,$(call rooms_of,$(TEST_SOURCES))) $(APART:tests/%.cpp=$(BUILD)/tests/%),$(TESTS))
asked_for     = $(if $(ONLY),$(filter $(foreach build,$(BUILD) build/emulated build/ptx build/cuda build/races build/memory,$(build)/tests/$(ONLY)%),$(1)),$(1))
asked_rooms   = $(or $(if $(ONLY),,all),$(filter $(1)%,$(ONLY)))
wanted        = $(call asked_for,$(cpu_tests) $(call gpu_tests,$(1))) \
  $(if $(SAN),,$(if $(call asked_rooms,app),build/$(firstword $(1))/espalier) $(if $(call asked_rooms,python),build/$(firstword $(1))/libespalier.so) $(if $(call asked_rooms,emulation),build/races/planted build/memory/planted) $(if $(call asked_rooms,ptx),$(RUN_KERNEL) $(if $(NVCC),$(PTX_RUNTIME))))
WANTED_TESTS  = $(call wanted,$(KERNELS))
WANTED_LONG   = $(call wanted,$(LONG_KERNELS)) $(if $(SAN),,$(if $(call asked_rooms,scripts),$(CUDA_BENCHES:bench/%.cu=build/emulated/bench/%) build/emulated/bench/train/epochs))
# MPICXX=mpicxx.mpich wants LAUNCHER=mpirun.mpich.
LAUNCHER     ?= mpirun
RUN_TESTS     = ESPALIER_LAUNCHER=$(LAUNCHER) $(PYTHON) tests/run.py --build $(BUILD) $(if $(BY_ROOM),--by-room-but $(subst $() ,$(comma),$(APART))) $(if $(ONLY),--only $(ONLY)) $(if $(NP),--np $(NP)) $(if $(SAN),--no-gpu)

test: all $(WANTED_TESTS)  ## run the tests; ONLY=sample/draw for one file, NP=3 for one rank count
	@$(RUN_TESTS) --kernels $(call names_of,$(KERNELS))

test-programs: all $(WANTED_TESTS)  ## build the tests, and what they run

test-long: all $(WANTED_LONG)  ## the heavy cases too: published accuracies, larger graphs, emulated kernels, and test-sanitized, race-check, memory-check
	@$(RUN_TESTS) --long --kernels $(call names_of,$(LONG_KERNELS))
	@$(MAKE) test-sanitized
	@$(MAKE) race-check
	@$(MAKE) memory-check

# Kernels watched by a sanitizer: is there an order between two threads that use the same memory? does each use what it was given, and
# read what somebody wrote? docs/gpu-kernels.md. At 1 and 2 ranks, as each takes a gigabyte for its strands.
race-check: KIND = races
memory-check: KIND = memory
WATCHED_TESTS = $(filter build/$(1)/%,$(call asked_for,$(call gpu_tests,$(1))))
race-check: $(call WATCHED_TESTS,races)  ## the tests of kernels, emulated, under ThreadSanitizer: races within blocks, between them, between streams
memory-check: $(call WATCHED_TESTS,memory)  ## the same under AddressSanitizer, with red zones around arrays; and twice, for reads of what nobody wrote
race-check memory-check:
	@$(RUN_TESTS) $(if $(NP),,--np 1$(comma)2) --only-gpu --kernels for-$(KIND)

# The C++ tests, and random configurations, watched for reads and writes that are not theirs, leaks, and what C++ leaves undefined.
SANITIZED_MINUTES ?= 10
ifeq ($(SAN),)
test-sanitized:  ## C++ tests at 1, 2 and 4 ranks, and random configurations, under sanitizers
	@$(MAKE) SAN=address,undefined BUILD=build/san-address-undefined test-sanitized
else
test-sanitized: all $(WANTED_TESTS)
	@$(RUN_TESTS) $(if $(NP),,--np 1$(comma)2$(comma)4)
	@$(if $(ONLY),,$(PYTHON) tests/faults/configs.py --program $(PROGRAM) --minutes $(SANITIZED_MINUTES) --slow 5)
endif

test-slurm: all  ## job scripts on a SLURM of this machine, installed if root may: limits, requeues, a dead node
	@ESPALIER=$(PROGRAM) $(PYTHON) tests/slurm/run.py $(ONLY)

-include $(PRECOMPILED).d $(TEST_SUPPORT:.o=.d) $(KERNELS_BY_WIDTH:.o=.d) $(TEST_BATCHES:%=$(BUILD)/obj/%.cpp.d) $(patsubst $(BUILD)/tests/%,$(BUILD)/obj/tests/%.cpp.d,$(TESTS))
.PRECIOUS: $(BUILD)/obj/tests/%.cpp.o
.PHONY: race-check memory-check test test-programs test-long test-sanitized test-slurm

# make test [ONLY=room/op] [NP=n], make test-long, make test-sanitized, make test-slurm
#
# Tests of the GPU (OP_test.cu) are built twice: for the emulation, which runs kernels on the CPU,
# and, where nvcc is, for GPUs; without a GPU the second kind skips itself.

COMPILE_TEST = $(MPICXX) $(CPPFLAGS) $(CXXFLAGS) $(TEST_OPTIMIZATION) -I$(BUILD)/obj/tests -Itests -MMD -MP
PRECOMPILED  = $(BUILD)/obj/tests/precompiled.hpp.gch
# Two hundred programs, each linked from the whole library: gold takes a third of the time of the linker that links the program.
TEST_LINKER  ?= $(if $(shell command -v ld.gold),-fuse-ld=gold)
# With it ccache, where somebody uses one, only serves when it is told that its own hash of the header will do.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

$(PRECOMPILED): tests/precompiled.hpp | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(COMPILE_TEST) -MF $@.d -x c++-header -c -o $@ $<

$(BUILD)/obj/tests/%.cpp.o: tests/%.cpp $(PRECOMPILED) | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(COMPILE_TEST) -include precompiled.hpp -Winvalid-pch -c -o $@ $<

$(BUILD)/obj/tests/%.cu.o: tests/%.cu $(PRECOMPILED) | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(COMPILE_TEST) -include precompiled.hpp -Winvalid-pch -c -o $@ -x c++ $<

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.cpp.o $(TEST_SUPPORT) $(LIBRARY)
	@mkdir -p $(@D)
	@$(MPICXX) $(CXXFLAGS) $(LDFLAGS) $(TEST_LINKER) -o $@ $^ $(LDLIBS) -lgtest

$(BUILD)/obj/tests/dense/eigen_oracle.cpp.o: private CPPFLAGS += $(EIGEN_FLAGS)

# The one test that multiplies by CombBLAS; without it the test is skipped, saying so.
$(BUILD)/obj/tests/product/combblas_test.cpp.o: CPPFLAGS += $(COMBBLAS_FLAGS)
$(BUILD)/tests/product/combblas_test: private LDLIBS += $(COMBBLAS_LIBS)

GPU_TESTS    := $(CUDA_TESTS:tests/%.cu=build/emulated/tests/%) $(if $(NVCC),$(CUDA_TESTS:tests/%.cu=build/cuda/tests/%))
GPU_BENCHES  := $(CUDA_BENCHES:bench/%.cu=build/emulated/bench/%)
# Sanitizers watch the CPU's program alone.
ALL_TESTS    := $(TESTS) $(if $(SAN),,$(GPU_TESTS))
# With ONLY: the tests of that name; the tests of the scripts run the emulated benches, those of
# app/ its program too.
WANTED_TESTS := $(if $(ONLY),$(filter $(foreach build,$(BUILD) build/emulated build/cuda,$(build)/tests/$(ONLY)%),$(ALL_TESTS)),$(ALL_TESTS)) \
  $(if $(SAN),,$(if $(or $(if $(ONLY),,all),$(filter scripts%,$(ONLY))),$(GPU_BENCHES)) $(if $(or $(if $(ONLY),,all),$(filter app%,$(ONLY))),build/emulated/espalier))
RUN_TESTS     = $(PYTHON) tests/run.py --build $(BUILD) $(if $(ONLY),--only $(ONLY)) $(if $(NP),--np $(NP)) $(if $(SAN),--no-gpu)

test: all $(WANTED_TESTS)  ## run the tests; ONLY=sample/draw for one file, NP=3 for one rank count
	@$(RUN_TESTS)

test-programs: all $(WANTED_TESTS)  ## build the tests, and what they run

test-long: all $(WANTED_TESTS)  ## the heavy cases too: published accuracies, larger graphs, and test-sanitized
	@$(RUN_TESTS) --long
	@$(MAKE) test-sanitized

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

-include $(PRECOMPILED).d $(TEST_SUPPORT:.o=.d) $(patsubst $(BUILD)/tests/%,$(BUILD)/obj/tests/%.cpp.d,$(TESTS))
.PRECIOUS: $(BUILD)/obj/tests/%.cpp.o
.PHONY: test test-programs test-long test-sanitized test-slurm

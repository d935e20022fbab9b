# make cuda, make emulated, make as-compiled: the same program with the CUDA implementations of its kernels.
#
#   build/cuda       by nvcc, for GPUs (sm_80, sm_90, and PTX for what comes after)
#   build/emulated   by the C++ compiler against tests/emulation, which runs kernels on the CPU: how
#                    kernels are tested where there is no GPU. Needs no CUDA toolkit.
#   build/ptx        what nvcc made of the kernels for build/cuda, as PTX, translated to C++ (tests/ptx) and run on
#                    the CPU: how nvcc's work is tested where there is no GPU.
#   build/races, build/memory    as build/emulated, with kernels that ThreadSanitizer or AddressSanitizer watches (make race-check,
#                    make memory-check; tests/emulation/watch.hpp)
#   build/bundle/cuda    the objects of build/cuda/*.cu, linked for another machine (make bundle)
#
# All take the objects of the CPU build. What tests in job/, library/ and app/ whether CUDA was built is compiled once more, for all of them.
# NAME.both.cu is compiled for the CPU too, where `Space` in it is Cpu (base/space.hpp).
# A .cu file without kernels (one that composes others; most tests) is plain C++: the C++ compiler
# reads it once, for all builds, and nvcc never.
#
# KERNELS_BY_ROOM=1: nvcc reads the kernels of some rooms as one file. Headers are most of what it reads, so a build from
# nothing takes less of its time; for who edits a kernel it takes longer. The emulation compiles file by file either way.

NVCC        ?= $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
CUDA_HOME   ?= $(if $(NVCC),$(abspath $(dir $(realpath $(NVCC)))/..),/usr/local/cuda)
CUDA_STATUS  = $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') in $(CUDA_HOME) (make cuda),not found: make builds for the CPU)
GENCODE     ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90
# --fmad=false: a product and a sum round twice, as on the CPU (design 4.1).
# Never --expt-relaxed-constexpr: device code could then call the standard library's functions, and nvcc before 13.4 compiles
# some of them to wrong code without a word (docs/gpu.md). Without it such a call is an error in device code; -diag-error makes it
# one in functions that both sides share, too.
NVCCFLAGS   += -std=c++20 -O3 -DESPALIER_FOR_CUDA -lineinfo --fmad=false --extended-lambda -diag-suppress 186 -diag-error 20011,20012,20013,20014,20015 -DFMT_CONSTEVAL= -DFMT_USE_CONSTEXPR=1 \
               -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-ffp-contract=off,-fopenmp,-Wno-unknown-pragmas $(GENCODE) $(if $(WERROR),-Werror all-warnings -Xcompiler -Werror)
MPI_INCLUDES = $(patsubst -I%,-isystem %,$(filter -I%,$(shell $(MPICXX) --showme:compile 2>/dev/null || $(MPICXX) -show 2>/dev/null || $(MPICXX) --cray-print-opts=cflags 2>/dev/null)))
CUDA_LIBS    = -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 -lcudart -lcublasLt -lcublas -lcusparse -lnccl -ldl

CUDA_SOURCES := $(foreach room,$(ROOMS),$(sort $(wildcard src/$(room)/*.cu)))
CUDA_TESTS   := $(sort $(wildcard tests/*/*_test.cu))
CUDA_BENCHES := $(sort $(wildcard bench/*/*_bench.cu))
# Plain C++: what includes no header of CUDA's, and none of ours that does. What that overlooks,
# base/launch.hpp refuses. `including` adds to names of headers those that include one of them.
HEADERS      := $(wildcard include/espalier/*/*.hpp src/*/*.hpp tests/*.hpp tests/*/*.hpp)
one_of        = ^.include ("(.*/)?($(subst $() ,|,$(1)))"|<(cu|nccl|nvtx))
including     = $(notdir $(shell grep -lE '$(call one_of,$(1))' $(HEADERS)))
OF_KERNELS   := $(call including,$(call including,$(call including,launch.hpp)))
PLAIN_CUDA   := $(shell grep -LE '$(call one_of,$(OF_KERNELS))' $(CUDA_SOURCES) $(CUDA_TESTS))
GPU_APP_OBJECTS = $(patsubst %,$(BUILD)/obj/with_cuda/%.o,$(or $(GPU_APP_BATCHES:%=%.cpp),$(GPU_APP:src/%=%)))
# Included as a system's: -MMD passes them over.
EMULATION_HEADERS := $(wildcard tests/emulation/*.h tests/emulation/*.hpp tests/emulation/*/*.h tests/emulation/*/*.cuh tests/emulation/*/*/*.cuh)
EMULATION    := $(sort $(wildcard tests/emulation/*.cpp))
KERNEL_SOURCES = $(filter-out $(PLAIN_CUDA),$(CUDA_SOURCES))
# Plain C++ as one file a room, as FILES_AT_ONCE says: IN_train/twins_1.
TWINS         = $(filter src/$(room)/%,$(PLAIN_CUDA))
TWIN_BATCHES := $(if $(BATCHES),$(foreach room,$(ROOMS),$(call in_batches,$(TWINS),$(room)/twins)))
BATCHES      += $(TWIN_BATCHES)
# The object of a .cu file, and the library's, in build $(1).
gpu_object    = $(if $(filter $(2),$(PLAIN_CUDA)),$(BUILD)/obj$(if $(filter %.both.cu,$(2)),/with_cuda),build/$(1)/obj)/$(2:src/%=%).o
file_by_file  = $(TWIN_BATCHES:%=$(BUILD)/obj/%.cpp.o) $(foreach source,$(if $(TWIN_BATCHES),$(KERNEL_SOURCES),$(CUDA_SOURCES)),$(call gpu_object,$(1),$(source)))
# Those rooms, of about the same work; a room that is not named is by itself.
ROOMS_AT_ONCE = sparse+sample+history feature+nn+train base+comm+partition+product
rooms_with    = $(firstword $(foreach rooms,$(ROOMS_AT_ONCE),$(if $(filter $(1),$(subst +, ,$(rooms))),$(rooms))) $(1))
room_of       = $(word 4,$(subst /, ,$(1)))
by_room       = $(sort $(foreach object,$(file_by_file),$(if $(filter build/cuda/% build/ptx/% build/races/% build/memory/%,$(object)),$(dir $(patsubst %/,%,$(dir $(object))))$(call rooms_with,$(call room_of,$(object)))/kernels.cu.o,$(object))))
# For sanitizers always: nobody edits a kernel by them.
cuda_objects  = $(if $(KERNELS_BY_ROOM)$(filter races memory,$(1)),$(by_room),$(file_by_file))

cuda: $(if $(NVCC),status build/cuda/espalier build/cuda/libespalier.so)  ## build the program for GPUs at build/cuda/espalier, and the shared library (needs nvcc, no GPU)
	@$(if $(NVCC),:,echo "cuda: nvcc not found (set CUDA_HOME or NVCC); skipped")

emulated: build/emulated/espalier  ## build the GPU program with kernels that run on the CPU, at build/emulated/espalier

as-compiled: $(if $(NVCC),build/ptx/espalier $(CUDA_TESTS:tests/%.cu=build/ptx/tests/%))  ## what nvcc made of the kernels, to be run on the CPU: build/ptx/espalier, build/ptx/tests (needs nvcc, no GPU)
	@$(if $(NVCC),:,echo "as-compiled: nvcc not found (set CUDA_HOME or NVCC); skipped")

$(BUILD)/obj/%.cu.o: src/%.cu | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(MPICXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ -x c++ $<

# They put kernels in order, and compute nothing. The last -O counts.
$(TWIN_BATCHES:%=$(BUILD)/obj/%.cpp.o): CXXFLAGS += -O1 -DESPALIER_FOR_CUDA

$(BUILD)/obj/with_cuda/%.both.cu.o: src/%.both.cu | deps
	@mkdir -p $(@D) && echo "c++    $< (with CUDA)"
	@$(MPICXX) $(CPPFLAGS) $(CXXFLAGS) -O1 -DESPALIER_FOR_CUDA -MMD -MP -c -o $@ -x c++ $<

# The object, and what ptxas says of its kernels, which is for `make gpu-static`.
build/cuda/obj/%.cu.o build/cuda/obj/%.cu.ptxas: src/%.cu | deps
	@mkdir -p $(@D) && echo "nvcc   $<"
	@to=build/cuda/obj/$*.cu; $(NVCC) $(CPPFLAGS) $(MPI_INCLUDES) $(NVCCFLAGS) -Xptxas -v -MMD -MP -MF $$to.d -c -o $$to.o $< 2> $$to.ptxas; \
	status=$$?; sed '/^ptxas info /d; /bytes stack frame,/d' $$to.ptxas >&2; exit $$status

# A list is made anew only where it differs, as when a file has gone.
.PHONY: files-of-rooms
.PRECIOUS: build/cuda/obj/%/kernels.cu
files-of-rooms:
build/cuda/obj/%/kernels.cu: files-of-rooms
	@mkdir -p $(@D) && printf '#include "%s"\n' $(foreach room,$(subst +, ,$*),$(filter src/$(room)/%,$(KERNEL_SOURCES))) > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

build/cuda/obj/%/kernels.cu.o: build/cuda/obj/%/kernels.cu | deps
	@echo "nvcc   kernels of src/$*"
	@$(NVCC) $(CPPFLAGS) -I. $(MPI_INCLUDES) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

build/cuda/obj/tests/%.cu.o: tests/%.cu | deps
	@mkdir -p $(@D) && echo "nvcc   $<"
	@$(NVCC) $(CPPFLAGS) -Itests $(MPI_INCLUDES) $(NVCCFLAGS:-O3=$(TEST_OPTIMIZATION)) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

build/cuda/obj/bench/%.cu.o: bench/%.cu | deps
	@mkdir -p $(@D) && echo "nvcc   $<"
	@$(NVCC) $(CPPFLAGS) -Ibench $(MPI_INCLUDES) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

EMULATE = $(MPICXX) $(CPPFLAGS) -isystem tests/emulation -Itests $(CXXFLAGS) $(TEST_OPTIMIZATION) -DESPALIER_FOR_CUDA -Wno-unknown-pragmas \
          -Wno-ignored-attributes -Wno-attributes -MMD -MP

build/emulated/obj/%.cu.o: src/%.cu $(EMULATION_HEADERS) | deps
	@mkdir -p $(@D) && echo "c++    $< (emulated)"
	@$(EMULATE) -c -o $@ -x c++ $<

build/emulated/obj/tests/%.cu.o: tests/%.cu $(EMULATION_HEADERS) | deps
	@mkdir -p $(@D) && echo "c++    $< (emulated)"
	@$(EMULATE) -c -o $@ -x c++ $<

build/emulated/obj/bench/%.cu.o: bench/%.cu $(EMULATION_HEADERS) | deps
	@mkdir -p $(@D) && echo "c++    $< (emulated)"
	@$(EMULATE) -Ibench -c -o $@ -x c++ $<

build/emulated/obj/tests/emulation/%.cpp.o: tests/emulation/%.cpp $(EMULATION_HEADERS) | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(EMULATE) -O2 $(shell pkg-config --cflags openblas) -c -o $@ $<

# Watched: kernels, and the host code beside them, by a sanitizer; the emulation, which tells it of fibers and arrays, is not.
define WATCHED_BUILD  # its name, the sanitizer, what the emulation knows it by
build/$(1)/obj/%/kernels.cu: files-of-rooms
	@mkdir -p $$(@D) && printf '#include "%s"\n' $$(foreach room,$$(subst +, ,$$*),$$(filter src/$$(room)/%,$$(KERNEL_SOURCES))) > $$@.new
	@if cmp -s $$@.new $$@; then rm $$@.new; else mv $$@.new $$@; fi

build/$(1)/obj/%/kernels.cu.o: build/$(1)/obj/%/kernels.cu $(KERNELS_SEE) | deps
	@echo "c++    kernels of src/$$* ($(1))"
	@$$(EMULATE) -I. -D$(3) $(WATCHED_FLAGS) -fsanitize=$(2) -c -o $$@ -x c++ $$<

build/$(1)/obj/tests/%.cu.o: tests/%.cu $(KERNELS_SEE) | deps
	@mkdir -p $$(@D) && echo "c++    $$< ($(1))"
	@$$(EMULATE) -D$(3) $(WATCHED_FLAGS) -fsanitize=$(2) -c -o $$@ -x c++ $$<

build/$(1)/obj/tests/emulation/%.cpp.o: tests/emulation/%.cpp $(EMULATION_HEADERS) | deps
	@mkdir -p $$(@D) && echo "c++    $$< ($(1))"
	@$$(EMULATE) -D$(3) $$(shell pkg-config --cflags openblas) -c -o $$@ $$<

build/$(1)/libespalier.a: | $(EMULATED_NVML)

# Kernels with errors (tests/emulation/planted_test.py).
build/$(1)/planted: tests/emulation/planted.cu $(patsubst %,build/$(1)/obj/tests/emulation/%.cpp.o,launches runtime threads watch) $(EMULATION_HEADERS)
	@echo "c++    $$< ($(1))"
	@$$(EMULATE) -MF $$@.d -D$(3) $(WATCHED_FLAGS) -fsanitize=$(2) -o $$@ -x c++ $$< -x none $$(filter %.o,$$^)
endef
# Lines for reports, and one function for each kernel.
# Sanitizers open libraries for the program, whose rpath alone counts for all who do.
WATCHED_LIBS  := -Wl,--disable-new-dtags
KERNELS_SEE   := $(filter-out %.hpp,$(EMULATION_HEADERS))
WATCHED_FLAGS := -g1 -fno-omit-frame-pointer -Wno-subobject-linkage

# As compiled: the object of nvcc's host code and of its PTX, which is taken from it, as one.
TRANSLATOR := $(patsubst %,tests/ptx/%.py,families fatbin instruction module translate) $(wildcard tests/ptx/of_*.py)
build/ptx/obj/%.cu.cpp: build/cuda/obj/%.cu.o $(TRANSLATOR)
	@mkdir -p $(@D) && echo "ptx    $<"
	@$(PYTHON) tests/ptx/translate.py $< $@

# -w: nvcc leaves registers and labels that nobody uses.
TRANSLATED = $(MPICXX) $(CPPFLAGS) -isystem tests/emulation -Itests/ptx $(CXXFLAGS) $(TEST_OPTIMIZATION) -finline-small-functions -g0 -w
build/ptx/obj/%.cu.o: build/ptx/obj/%.cu.cpp build/cuda/obj/%.cu.o $(wildcard tests/ptx/*.hpp) $(EMULATION_HEADERS)
	@echo "c++    $<"
	@$(TRANSLATED) -c -o $@.ptx $< && ld -r -o $@ build/cuda/obj/$*.cu.o $@.ptx && rm $@.ptx

build/ptx/obj/tests/ptx/%.cpp.o: tests/ptx/%.cpp $(EMULATION_HEADERS) | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(EMULATE) -O2 -Itests/emulation -c -o $@ $<
build/ptx/obj/tests/ptx/layouts.cpp.o: EMULATE = $(CXX) -isystem $(CUDA_HOME)/include $(CXXFLAGS)
PTX_RUNTIME = $(patsubst %,build/ptx/obj/tests/ptx/%.cpp.o,runtime layouts) $(EMULATION:%=build/emulated/obj/%.o)

# For the tests of the translator: a program that runs the kernels of one file, make build/ptx/kernels/NAME PTX=FILE.
PTX ?=
RUN_KERNEL = $(patsubst %,build/ptx/obj/tests/ptx/%.cpp.o,run_kernel runtime) $(EMULATION:%=build/emulated/obj/%.o)
build/ptx/kernels/%: $(RUN_KERNEL) | deps
	@mkdir -p $(@D)
	@$(PYTHON) tests/ptx/translate.py $(PTX) $@.cpp && $(TRANSLATED) -o $@ $@.cpp $^ $(EMULATED_LIBS)

# Loaded at run time, as the driver's is.
EMULATED_NVML := build/emulated/lib/libnvidia-ml.so.1
$(EMULATED_NVML): tests/emulation/nvml/nvml.cpp | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(MPICXX) $(CXXFLAGS) -fvisibility=default -shared -o $@ $<
build/emulated/libespalier.a build/ptx/libespalier.a: | $(EMULATED_NVML)
EMULATED_LIBS  = -lopenblas -ldl -Wl,-rpath,$(CURDIR)/build/emulated/lib

$(GPU_APP_BATCHES:%=$(BUILD)/obj/with_cuda/%.cpp.o): $(BUILD)/obj/with_cuda/%.o: $(BUILD)/obj/% | deps
	@mkdir -p $(@D) && echo "c++    $(call said,$<) (with CUDA)"
	@$(COMPILE_BATCH) -DESPALIER_WITH_CUDA -c -o $@ $<

$(BUILD)/obj/with_cuda/%.cpp.o: src/%.cpp | deps
	@mkdir -p $(@D) && echo "c++    $< (with CUDA)"
	@$(MPICXX) $(CPPFLAGS) -DESPALIER_WITH_CUDA $(CXXFLAGS) -MMD -MP -c -o $@ $<

# Of several configurations, for scripts/gpu_check.py; a program of all rooms, as those of app/.
$(BUILD)/obj/with_cuda/bench/%.cpp.o: bench/%.cpp | deps
	@mkdir -p $(@D) && echo "c++    $< (with CUDA)"
	@$(MPICXX) $(CPPFLAGS) -DESPALIER_WITH_CUDA $(CXXFLAGS) -O1 -MMD -MP -c -o $@ $<
-include $(BUILD)/obj/with_cuda/bench/train/epochs.cpp.d

define CUDA_BUILD  # its name, the build that compiles its .cu files, its libraries, its further objects
build/$(1)/libespalier.a: $(call cuda_objects,$(2)) $(4)
	@mkdir -p $$(@D) && rm -f $$@ && ar rcs $$@ $$^

# Named one by one, those of job/, library/ and app/ come before their namesakes of the CPU's library, whichever is asked for first.
build/$(1)/espalier: $(BUILD)/obj/app/main.cpp.o $(GPU_APP_OBJECTS) build/$(1)/libespalier.a $(LIBRARY)
	@echo "link   $$@"
	@$$(MPICXX) $$(CXXFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) $(3)

build/$(1)/libespalier.so: $(filter-out $(subst /with_cuda/,/,$(GPU_APP_OBJECTS)),$(OF_LIBRARY)) $(filter-out $(BUILD)/obj/with_cuda/app/%,$(GPU_APP_OBJECTS)) \
  build/$(1)/libespalier.a $(LIBRARY) $(EXPORTS)
	@echo "link   $$@"
	@$$(LINK_SHARED) -o $$@ $$(filter-out $(EXPORTS),$$^) $$(SHARED_LDLIBS) $(3) && ln -sf $$(@F) $$@.1

$(foreach test,$(CUDA_TESTS),
$(test:%.cu=build/$(1)/%): $(call gpu_object,$(2),$(test)))
build/$(1)/tests/job/all_tests $(patsubst %.cu,build/$(1)/%,$(filter tests/job/%,$(CUDA_TESTS))): $(filter $(BUILD)/obj/with_cuda/job/%,$(GPU_APP_OBJECTS))
build/$(1)/tests/%: $(TEST_SUPPORT) build/$(1)/libespalier.a $(LIBRARY)
	@mkdir -p $$(@D)
	@$$(MPICXX) $$(CXXFLAGS) $$(LDFLAGS) $$(TEST_LINKER) -o $$@ $$(filter %.o,$$^) $$(filter %.a,$$^) $$(LDLIBS) -lgtest $(3)

build/$(1)/bench/train/epochs: $(BUILD)/obj/with_cuda/bench/train/epochs.cpp.o $(filter $(BUILD)/obj/with_cuda/job/%,$(GPU_APP_OBJECTS)) \
  build/$(1)/libespalier.a $(LIBRARY)
	@mkdir -p $$(@D) && echo "link   $$@"
	@$$(MPICXX) $$(CXXFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) $(3)

build/$(1)/bench/%: build/$(2)/obj/bench/%.cu.o build/$(1)/libespalier.a $(LIBRARY)
	@mkdir -p $$(@D)
	@$$(MPICXX) $$(CXXFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) $(3)

-include $(patsubst %.o,%.d,$(call cuda_objects,$(2)) $(foreach test,$(CUDA_TESTS),$(call gpu_object,$(2),$(test)))) \
  $(patsubst %,build/$(1)/obj/%.d,$(CUDA_BENCHES))
endef
$(eval $(call CUDA_BUILD,cuda,cuda,$$(CUDA_LIBS),))
$(eval $(call CUDA_BUILD,bundle/cuda,cuda,$$(CUDA_LIBS),))
$(eval $(call CUDA_BUILD,emulated,emulated,$$(EMULATED_LIBS),$(EMULATION:%=build/emulated/obj/%.o)))

$(eval $(call CUDA_BUILD,ptx,ptx,$$(EMULATED_LIBS),$$(PTX_RUNTIME)))
$(eval $(call WATCHED_BUILD,races,thread,ESPALIER_WATCH_RACES))
$(eval $(call CUDA_BUILD,races,races,$$(EMULATED_LIBS) $(WATCHED_LIBS) -fsanitize=thread,$(EMULATION:%=build/races/obj/%.o)))
$(eval $(call WATCHED_BUILD,memory,address,ESPALIER_WATCH_MEMORY))
$(eval $(call CUDA_BUILD,memory,memory,$$(EMULATED_LIBS) $(WATCHED_LIBS) -fsanitize=address,$(EMULATION:%=build/memory/obj/%.o)))

-include $(GPU_APP_OBJECTS:.o=.d) $(patsubst %.o,%.d,$(PTX_RUNTIME))
.PRECIOUS: build/races/obj/%/kernels.cu build/memory/obj/%/kernels.cu $(foreach build,$(BUILD) build/cuda build/emulated build/races build/memory,$(build)/obj/%.cu.o $(build)/obj/tests/%.cu.o) \
  build/cuda/obj/bench/%.cu.o build/emulated/obj/bench/%.cu.o
.PRECIOUS: build/ptx/obj/%.cu.cpp build/ptx/obj/%.cu.o build/ptx/obj/tests/ptx/%.cpp.o
.PHONY: cuda emulated as-compiled bundle gpu-check gpu-static

bundle:  ## the GPU build with all it needs but CUDA, for another machine: build/espalier-bundle.tar.zst
	@MAKE="$(MAKE)" CUDA_HOME="$(CUDA_HOME)" bash scripts/make_bundle.sh

# Reports come with the objects; an object whose headers changed is compiled again for its report.
gpu-static: $(if $(NVCC),$(foreach kind,o ptxas,$(KERNEL_SOURCES:src/%=build/cuda/obj/%.$(kind))))  ## registers, stack, spills and occupancy of every kernel, in one table (needs nvcc, no GPU)
	@$(if $(NVCC),python3 scripts/gpu_static.py build/cuda/obj include src,echo "gpu-static: nvcc not found (set CUDA_HOME or NVCC); skipped")

GPU_CHECK ?=
gpu-check: all cuda $(if $(NVCC),$(CUDA_TESTS:tests/%.cu=build/cuda/tests/%) $(CUDA_BENCHES:bench/%.cu=build/cuda/bench/%) build/cuda/bench/train/epochs)  ## everything that a GPU can prove, in one table; GPU_CHECK="--record --parts tests,bench" for its options
	@python3 scripts/gpu_check.py $(GPU_CHECK)

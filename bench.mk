# make bench [ONLY=room/op] [BASELINE=old_summary.json]: every bench verifies first, then prints
# rate, derived bound, their ratio and #wrong. What was measured is also in
# build/bench/ROOM_OP.json, medians of all in build/bench/summary.json, which a later run can
# compare itself with. A bench that says `// ranks: N` in its first lines runs on N ranks. Bytes are
# counted by make bench-volumes.

BASELINE  ?=
BENCH_PKG := benchmark openblas
# As tests/run.py runs them: one node, ranks that do not spin on each other's cores. OpenBLAS's
# threads must not wait in a loop either, they would do so beside the operation that is measured
# next; and it chooses its kernels by the machine, not by what the environment says.
BENCH_ENV := -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive OPENBLAS_THREAD_TIMEOUT=4 \
  OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_plm=isolated OMPI_MCA_rmaps_base_oversubscribe=1 \
  OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_odls_base_sigkill_timeout=0 \
  $(if $(filter 0,$(shell id -u)),OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)

$(BUILD)/bench/%: bench/%.cpp $(LIBRARY)
	@mkdir -p $(@D) && echo "c++    $<"
	@$(MPICXX) $(CPPFLAGS) -Ibench $$(pkg-config --cflags $(BENCH_PKG)) $(CXXFLAGS) $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< \
	  $(LIBRARY) $(LDLIBS) $$(pkg-config --libs $(BENCH_PKG))

# gemm_bench compares with Eigen.
$(BUILD)/bench/dense/gemm_bench: private CPPFLAGS += $(EIGEN_FLAGS)
# GCC 12 warns wrongly about its own AVX-512 intrinsics (GCC bug 105593).
$(BUILD)/bench/dense/gemm_bench: private CXXFLAGS += -Wno-maybe-uninitialized -Wno-uninitialized

# volume_bench compares with CombBLAS where it is.
$(BUILD)/bench/product/volume_bench: private CPPFLAGS += $(COMBBLAS_FLAGS)
$(BUILD)/bench/product/volume_bench: private LDLIBS += $(COMBBLAS_LIBS)

# ROOM/OP of the benches that measure rates.
RATE_BENCHES   := $(filter-out product/volume peers/%,$(patsubst $(BUILD)/bench/%_bench,%,$(BENCHES)))
WANTED_BENCHES := $(filter $(ONLY)%,$(RATE_BENCHES))

bench: all $(WANTED_BENCHES:%=$(BUILD)/bench/%_bench)  ## verify and measure: rate, derived bound, ratio; BASELINE=file compares with an earlier build/bench/summary.json
	@mkdir -p build/bench
	@failed=; for bench in $(WANTED_BENCHES); do \
	  ranks=$$(sed -n 's,^// ranks: *\([0-9]*\).*,\1,p;5q' bench/$${bench}_bench.cpp); \
	  env $(BENCH_ENV) timeout 300 $${ranks:+mpirun -q -np $$ranks} $(BUILD)/bench/$${bench}_bench \
	    --benchmark_out=build/bench/$$(echo $$bench | tr / _).json || { echo "$$bench failed"; failed=1; }; \
	done; \
	python3 scripts/compare_bench.py --summary build/bench/summary.json $(if $(BASELINE),--baseline $(BASELINE)) \
	  $(foreach bench,$(WANTED_BENCHES),build/bench/$(subst /,_,$(bench)).json) && test -z "$$failed"

# Each is read by the compiler, and nothing is made: what CI can afford of them.
SYNTAX_OF_BENCHES := $(BENCHES:$(BUILD)/%=syntax/%)
$(SYNTAX_OF_BENCHES): syntax/bench/%: bench/%.cpp | deps
	@$(MPICXX) $(CPPFLAGS) -Ibench $(EIGEN_FLAGS) $$(pkg-config --cflags $(BENCH_PKG)) $(CXXFLAGS) -w -fsyntax-only $<
bench-syntax: $(SYNTAX_OF_BENCHES)  ## do the benches still compile? (nothing is built)

bench-volumes: $(BUILD)/bench/product/volume_bench  ## bytes of every schedule and sampler on 1 to 16 ranks, against the model; a picture (GRAPH=file: also of that)
	@env $(BENCH_ENV) PYTHON="$(PYTHON)" bash bench/product/sweep.sh $< $(GRAPH)

bench-peers: all  ## the same graphs, fanouts and network by PyG, DGL and SciPy; installs them into build/peers/venv (GRAPH=file: train on it too)
	@bash bench/peers/setup.sh
	@$(PYTHON) bench/peers/compare.py --program $(PROGRAM) $(if $(GRAPH),--graph $(GRAPH))

cluster: all  ## hosts on this machine whose links have a rate (root; else skipped): seconds and bytes of schedules, orders, caches, overlap; CLUSTER='--hosts 4,8 --rates 0.1,1,5 --peers VENV'
	@$(PYTHON) bench/cluster/measure.py --program $(PROGRAM) $(if $(GRAPH),--graph $(GRAPH)) $(CLUSTER)

-include $(patsubst %,%.d,$(BENCHES))
.PHONY: bench bench-syntax bench-volumes bench-peers cluster $(SYNTAX_OF_BENCHES)

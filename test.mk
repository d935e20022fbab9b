# make test [ONLY=room/op] [NP=n], make test-long

$(BUILD)/obj/tests/%.cpp.o: tests/%.cpp | deps
	@mkdir -p $(@D) && echo "c++    $<"
	@$(MPICXX) $(CPPFLAGS) $(CXXFLAGS) -Itests -MMD -MP -c -o $@ $<

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.cpp.o $(BUILD)/obj/tests/mpi_main.cpp.o $(LIBRARY)
	@mkdir -p $(@D)
	@$(MPICXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lgtest

# The one test that multiplies by CombBLAS; without it the test is skipped, saying so.
$(BUILD)/obj/tests/dist/combblas_test.cpp.o: CPPFLAGS += $(COMBBLAS_FLAGS)
$(BUILD)/tests/dist/combblas_test: private LDLIBS += $(COMBBLAS_LIBS)

WANTED_TESTS := $(if $(ONLY),$(filter $(BUILD)/tests/$(ONLY)%,$(TESTS)),$(TESTS))
RUN_TESTS     = $(PYTHON) tests/run.py --build $(BUILD) $(if $(ONLY),--only $(ONLY)) $(if $(NP),--np $(NP))

test: all $(WANTED_TESTS)  ## run the tests; ONLY=sample/draw for one file, NP=3 for one rank count
	@$(RUN_TESTS)

test-long: all $(TESTS)  ## the heavy cases too: published accuracies, larger graphs
	@$(RUN_TESTS) --long

-include $(patsubst $(BUILD)/tests/%,$(BUILD)/obj/tests/%.cpp.d,$(TESTS))
.PRECIOUS: $(BUILD)/obj/tests/%.cpp.o
.PHONY: test test-long

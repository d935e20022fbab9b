# make bench: every bench verifies first, then prints rate, derived bound and their ratio.

$(BUILD)/bench/%: bench/%.cpp $(LIBRARY)
	@mkdir -p $(@D) && echo "c++    $<"
	@$(MPICXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -MF $@.d -o $@ $< $(LIBRARY) $(LDLIBS) -lbenchmark

bench: all $(BENCHES)  ## verify and measure; prints rate, derived bound and ratio
	@for b in $(BENCHES); do echo "== $$b"; $$b || exit 1; done

-include $(patsubst %,%.d,$(BENCHES))
.PHONY: bench

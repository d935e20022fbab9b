# make install, make uninstall: the program, the library for C (shared) and for C++ (an archive, with its
# headers), and what pkg-config and CMake ask for (docs/library.md).

PREFIX  ?= /usr/local
DESTDIR ?=
VERSION  = $(shell sed -n 's/.*kVersion = "\(.*\)".*/\1/p' include/espalier/base/version.hpp)
# What a program of one's own is compiled and linked with. No contraction: templates give the library's bits.
PC_FLAGS = -std=c++20 -fopenmp -ffp-contract=off $(filter-out -Iinclude,$(CPPFLAGS))
define PC
prefix=$(abspath $(PREFIX))

Name: espalier
Description: Minibatch training of graph neural networks by sparse matrix products over MPI
Version: $(VERSION)
Cflags: -I$${prefix}/include
Libs: -L$${prefix}/lib -Wl,-rpath,$${prefix}/lib -lespalier
endef
define PC_CXX
prefix=$(abspath $(PREFIX))

Name: espalier-cxx
Description: Espalier for C++, whose names the shared library does not show
Version: $(VERSION)
Cflags: -I$${prefix}/include $(PC_FLAGS)
Libs: -L$${prefix}/lib -l:libespalier.a -fopenmp $(LDLIBS)
endef
export PC PC_CXX

TO = $(DESTDIR)$(abspath $(PREFIX))

# The program that was made with the most: kernels, or one for each level of processor.
BY_PROCESSOR := build/by_processor
INSTALLED     = $(firstword $(wildcard build/cuda/espalier $(BY_PROCESSOR)/espalier) $(PROGRAM))

by-processor:  ## build/by_processor/espalier, for nodes that differ: programs for AVX2 and AVX-512, and what starts the right one
	@for level in x86-64-v3 x86-64-v4; do \
	  $(MAKE) --no-print-directory BUILD=build/$$level ARCH=$$level build/$$level/espalier && \
	  install -D -m 755 build/$$level/espalier $(BY_PROCESSOR)/espalier-$$level || exit 1; done
	@install -m 755 scripts/espalier_by_processor.sh $(BY_PROCESSOR)/espalier

install: all  ## program, libraries, headers, pkg-config and CMake files, the Python package to PREFIX=/usr/local; with `make cuda` before, program and shared library with kernels, with `make by-processor` a program for each level of processor
	@install -d $(TO)/bin $(TO)/include $(TO)/lib/pkgconfig $(TO)/lib/cmake/espalier
	@install -m 755 $(INSTALLED) $(TO)/bin/espalier
	@$(if $(filter $(BY_PROCESSOR)/%,$(INSTALLED)),install -m 755 $(BY_PROCESSOR)/espalier-x86-64-v* $(TO)/bin/)
	@install -m 755 $(firstword $(wildcard build/cuda/libespalier.so) $(SHARED)) $(TO)/lib/libespalier.so.1
	@ln -sf libespalier.so.1 $(TO)/lib/libespalier.so
	@install -m 644 $(LIBRARY) $(TO)/lib/libespalier.a
	@install -m 644 include/espalier.h include/espalier.hpp $(TO)/include/
	@rm -rf $(TO)/include/espalier && cp -r include/espalier $(TO)/include/
	@echo "$$PC" > $(TO)/lib/pkgconfig/espalier.pc
	@echo "$$PC_CXX" > $(TO)/lib/pkgconfig/espalier-cxx.pc
	@install -m 644 scripts/espalier-config.cmake $(TO)/lib/cmake/espalier/
	@install -d $(TO)/lib/python3 && rm -rf $(TO)/lib/python3/espalier && cp -r python/espalier $(TO)/lib/python3/
	@echo "installed in $(TO); a program of your own: mpicxx train.cpp \$$(PKG_CONFIG_PATH=$(abspath $(PREFIX))/lib/pkgconfig pkg-config --cflags --libs espalier-cxx), or in C by \`espalier\`"

uninstall:  ## take what `make install` put there away
	@rm -rf $(TO)/bin/espalier $(TO)/bin/espalier-x86-64-v* $(TO)/lib/libespalier.a $(TO)/lib/libespalier.so $(TO)/lib/libespalier.so.1 $(TO)/include/espalier $(TO)/include/espalier.h $(TO)/include/espalier.hpp $(TO)/lib/pkgconfig/espalier.pc $(TO)/lib/pkgconfig/espalier-cxx.pc $(TO)/lib/cmake/espalier $(TO)/lib/python3/espalier

.PHONY: by-processor install uninstall

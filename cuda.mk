# make cuda: for now, nvcc compiles the host-device headers that the GPU kernels will share with the CPU.

CUDA_HOME   ?= /usr/local/cuda
NVCC        ?= $(shell command -v nvcc 2>/dev/null || ls $(CUDA_HOME)/bin/nvcc 2>/dev/null)
CUDA_STATUS  = $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') (make cuda),not found: make builds for the CPU)
GENCODE     ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90
NVCCFLAGS   += -std=c++20 -O3 -Xcompiler -fPIC,-Wall,-ffp-contract=off --fmad=false $(GENCODE)
CUDA_HEADERS := base/philox sample/draw sample/block_value

cuda:  ## compile for sm_80 and sm_90 (needs nvcc, no GPU)
ifeq ($(NVCC),)
	@echo "cuda: nvcc not found (set CUDA_HOME); skipped"
else
	@mkdir -p build/cuda
	@for h in $(CUDA_HEADERS); do echo "nvcc   include/espalier/$$h.hpp"; echo "#include \"espalier/$$h.hpp\"" > build/cuda/header.cu; \
	  $(NVCC) $(NVCCFLAGS) -Iinclude -c -o build/cuda/header.cu.o build/cuda/header.cu || exit 1; done
endif

.PHONY: cuda

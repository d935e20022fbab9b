// Which space a NAME.both.cu file is compiled for: it is compiled twice, for the CPU as any .cpp
// file, and once more for GPUs (cuda.mk). Such a file writes `Space`, and what it defines takes the
// space as an argument, so that both are in one program. Kernels include base/kernels.hpp instead.
#pragma once

#include "espalier/base/execution.hpp"

#if defined(ESPALIER_FOR_CUDA)
#define ESPALIER_FOR_EACH_NUMBER(INSTANTIATE) INSTANTIATE(float)
namespace espalier {
using Space = Cuda;
}
#else
/// INSTANTIATE(T) for the types of numbers that networks of the space are made of: tests take
/// derivatives in double, on the CPU.
#define ESPALIER_FOR_EACH_NUMBER(INSTANTIATE) INSTANTIATE(float) INSTANTIATE(double)
namespace espalier {
using Space = Cpu;
}
#endif

// For NAME.both.cu files with kernels: the space that they are compiled for (base/space.hpp), and
// how it runs them (for_each, for_rows, for_each_in_rows, exclusive_sum).
#pragma once

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/space.hpp"

#if defined(ESPALIER_FOR_CUDA)
#include "espalier/base/launch.hpp"
#endif

// Work on elements that every space does alike, so that its body is written once, in a file that a
// .cpp and a .cu include: the CPU implementations of for_each and for_each_in_rows
// (base/launch.hpp).
#pragma once

#include <cstdint>

#include "espalier/base/execution.hpp"

/// Stands before the parameters of a lambda that the space runs.
#if defined(__CUDACC__)
#define ESPALIER_DEVICE __device__
#else
#define ESPALIER_DEVICE
#endif

namespace espalier {

inline constexpr std::int64_t kElementsOfAThread = 16384;  ///< fewer are done by one thread

/// function(i) for every i < count; `name`: as a GPU calls it.
template <class Function>
void for_each(const Cpu& cpu, const char* /*name*/, std::int64_t count, Function function) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) \
    firstprivate(function) if (count > kElementsOfAThread)
  for (std::int64_t i = 0; i < count; ++i) function(i);
}

/// function(i, j) for every i < rows and j < columns.
template <class Function>
void for_each_in_rows(const Cpu& cpu, const char* /*name*/, std::int64_t rows, std::int64_t columns,
                      Function function) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) \
    firstprivate(function) if (rows * columns > kElementsOfAThread)
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) function(i, j);
}

}  // namespace espalier

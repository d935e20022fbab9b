// What translated kernels are made of: instructions as functions, and the tables in which a file
// puts its kernels and variables. Threads are the emulation's fibers, of which one runs at a time.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "floats.hpp"
#include "integers.hpp"
#include "warps.hpp"
#include "windows.hpp"

namespace ptx {

/// A parameter's place in the memory that a kernel is given.
struct Parameter {
  std::size_t offset, bytes;
};
struct Kernel {
  const char* name;
  void (*run)(const char* parameters);  ///< one thread
  std::vector<Parameter> parameters;
  std::size_t shared_bytes;
  unsigned most_threads;  ///< of a block
};
struct Kernels {
  Kernels(std::initializer_list<Kernel> kernels);
};
struct Variable {
  const void* begin;
  std::size_t bytes;
};
struct Variables {
  Variables(std::initializer_list<Variable> variables);
};

}  // namespace ptx

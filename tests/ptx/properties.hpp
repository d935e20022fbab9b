// What the emulation says of a GPU, in a structure that both of CUDA's headers and the
// emulation's can read.
#pragma once

#include <cstddef>

struct EmulatedProperties {
  char name[256];
  char uuid[16];
  std::size_t memory, shared;
  int processors, major, minor, l2;
};
extern "C" int espalier_emulated_properties(EmulatedProperties* properties, int device);

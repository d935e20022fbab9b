// Structures that begin with struct_size, between a caller and a library of other versions.
#pragma once

#include <algorithm>
#include <cstring>

#include "espalier/base/error.hpp"

namespace espalier {

/// What a caller says; members that it does not know are 0. Throws UserError(kUsage).
template <class Struct>
Struct told(const Struct* given) {
  if (given == nullptr || given->struct_size < sizeof(std::size_t))
    usage_error("a structure of the call is missing, or its struct_size is not set{}", "");
  Struct whole = {};
  std::memcpy(&whole, given, std::min(given->struct_size, sizeof(Struct)));
  return whole;
}

/// Fills in what the caller knows of; its struct_size stays.
template <class Struct>
void copy_told(Struct* to, Struct from) {
  from.struct_size = told(to).struct_size;
  std::memcpy(to, &from, std::min(to->struct_size, sizeof(Struct)));
}

}  // namespace espalier

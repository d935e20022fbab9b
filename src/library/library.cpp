// The C functions of include/espalier.h.
#include "espalier.h"

#include "espalier/base/version.hpp"

const char* espalier_version(void) {
  return espalier::kVersion;
}

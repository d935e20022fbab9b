// A value that several threads write to one place at the same time, all of them the same.
#pragma once

#include "espalier/base/host_device.hpp"

namespace espalier {

/// *at = value, where other threads may do just that meanwhile. A plain store would be a race, of
/// which neither C++ nor PTX says how it ends.
template <class T>
ESPALIER_HD inline void write_alike(T* at, T value) {
#if defined(__CUDA_ARCH__)
  *static_cast<volatile T*>(at) = value;  // st.volatile: as relaxed as an atomic one
#else
  __atomic_store(at, &value, __ATOMIC_RELAXED);
#endif
}

}  // namespace espalier

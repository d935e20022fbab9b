// Scratch memory that a thread keeps from call to call, so that training allocates nothing once the
// largest minibatch has passed.
#pragma once

#include <cstddef>
#include <span>

#include "espalier/base/buffer.hpp"

namespace espalier {

/// `size` elements, not initialised, of the calling thread's memory for `Purpose`: a type that
/// names the use and nothing else. Valid until the thread asks for the same purpose and T again.
template <class Purpose, class T>
std::span<T> workspace(std::size_t size) {
  thread_local Buffer<T> kept;
  if (size > kept.capacity()) {
    kept.clear();  // no copy of what nobody reads
    kept.reserve(size + size / 8);
  }
  kept.resize(size);
  return kept;
}

}  // namespace espalier

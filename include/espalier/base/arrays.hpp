// What composites do with arrays of any space: bring them there and back, put pieces together, read
// a few numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "espalier/base/device_array.hpp"

namespace espalier {

/// A copy in memory of the space.
template <class T, class Space>
Array<Space, T> copy_to(const Space& space, std::span<const T> from) {
  Array<Space, T> to(from.size());
  if constexpr (std::is_same_v<Space, Cuda>)
    copy_bytes_to_device(space, from.data(), to.data(), from.size_bytes());
  else
    std::ranges::copy(from, to.begin());
  return to;
}

/// Every element becomes 0, by the thread that for_each gives it to: its page lies near that
/// thread. The CUDA implementation stands in device_array.hpp.
template <class T>
void fill_zero(const Cpu& cpu, Buffer<T>& array) {
  for_each(cpu, "zeros", std::ssize(array), [to = array.data()](std::int64_t k) { to[k] = T{}; });
}

/// to[0 .. count), in memory of the space, = from[0 .. count), of the host, which may be changed
/// when the call returns.
template <class T>
void copy_to(const Cpu&, const T* from, std::int64_t count, T* to) {
  std::copy_n(from, count, to);
}
template <class T>
void copy_to(const Cuda& cuda, const T* from, std::int64_t count, T* to) {
  copy_bytes_to_device(cuda, from, to, static_cast<std::size_t>(count) * sizeof(T));
}

/// A copy in memory of the host, which waits.
template <class T>
Buffer<T> copy_from(const Cpu&, const Buffer<T>& from) {
  return from;
}
template <class T>
Buffer<T> copy_from(const Cuda& cuda, const DeviceArray<T>& from) {
  return download(cuda, from);
}

/// to[0 .. count) = from[0 .. count), in memory of the host, which waits.
template <class T>
void copy_from(const Cpu&, const T* from, std::int64_t count, T* to) {
  std::copy_n(from, count, to);
}
template <class T>
void copy_from(const Cuda& cuda, const T* from, std::int64_t count, T* to) {
  copy_bytes_to_host(cuda, from, to, static_cast<std::size_t>(count) * sizeof(T));
}

/// to = from[first .. first + count), in memory of the same space.
template <class T>
void copy_part(const Cpu&, const Buffer<T>& from, std::int64_t first, std::int64_t count, Buffer<T>& to) {
  to.assign(from.begin() + first, from.begin() + first + count);
}
template <class T>
void copy_part(const Cuda& cuda, const DeviceArray<T>& from, std::int64_t first, std::int64_t count,
               DeviceArray<T>& to) {
  to.resize(count);
  copy_bytes_on_device(cuda, from.data() + first, to.data(), count * sizeof(T));
}

/// to[0 .. count) = from[0 .. count), in memory of the same space.
template <class T>
void copy_within(const Cpu&, const T* from, std::int64_t count, T* to) {
  std::copy_n(from, count, to);
}
template <class T>
void copy_within(const Cuda& cuda, const T* from, std::int64_t count, T* to) {
  copy_bytes_on_device(cuda, from, to, static_cast<std::size_t>(count) * sizeof(T));
}

/// The pieces one after another.
template <class T>
Buffer<T> join(const Cpu&, std::vector<Buffer<T>> pieces) {
  if (pieces.size() == 1) return std::move(pieces[0]);
  std::size_t size = 0;
  for (const auto& piece : pieces) size += piece.size();
  Buffer<T> all;
  all.reserve(size);
  for (const auto& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}
template <class T>
DeviceArray<T> join(const Cuda& cuda, std::vector<DeviceArray<T>> pieces) {
  if (pieces.size() == 1) return std::move(pieces[0]);
  std::size_t size = 0;
  for (const auto& piece : pieces) size += piece.size();
  DeviceArray<T> all(size);
  auto* to = all.data();
  for (const auto& piece : pieces) {
    copy_bytes_on_device(cuda, piece.data(), to, piece.size() * sizeof(T));
    to += piece.size();
  }
  return all;
}

/// to[k] = from[k] - from[0] for k < count.
void copy_from_zero(const Cpu& cpu, const std::int64_t* from, std::int64_t count, std::int64_t* to);
void copy_from_zero(const Cuda& cuda, const std::int64_t* from, std::int64_t count, std::int64_t* to);

/// values[places[k]] for all k, on the host, which waits.
std::vector<std::int64_t> read_at(const Cpu& cpu, const std::int64_t* values,
                                  std::span<const std::int64_t> places);
std::vector<std::int64_t> read_at(const Cuda& cuda, const std::int64_t* values,
                                  std::span<const std::int64_t> places);

}  // namespace espalier

// Addresses of PTX: windows of state spaces, and what lies in them. Every load and store asks here:
// an address that is not a multiple of what is moved, or outside of its window, ends the program.
#pragma once

#include <cstdint>
#include <cstring>

namespace ptx {

/// Of the thread that runs: its parameters and its .local variables.
struct Frame {
  const char* parameters;
  std::size_t parameter_bytes;
  char* local;
  std::size_t local_bytes;
};

/// Of the launch under way: .shared, which begins anew with each block.
extern char shared_memory[];
extern std::size_t shared_bytes;
/// Device memory of the emulation.
extern const char* const device_begin;
extern const std::size_t device_bytes;
/// Is it pinned memory, or a variable of a module?
bool is_global_elsewhere(const char* at, std::size_t bytes);
/// Ends the program; names kernel, block, thread.
[[noreturn]] void stop(const char* what);
[[noreturn]] void stop_at(const char* space, const char* why, std::uint64_t address, std::size_t bytes);

inline std::uint64_t shared_begin() {
  return reinterpret_cast<std::uintptr_t>(shared_memory);
}
inline bool lies_in(const char* at, std::size_t bytes, const char* begin, std::size_t window) {
  const auto offset = static_cast<std::size_t>(at - begin);
  return offset <= window && bytes <= window - offset;
}
inline bool is_global(const char* at, std::size_t bytes) {
  return lies_in(at, bytes, device_begin, device_bytes) || is_global_elsewhere(at, bytes);
}
template <std::size_t Bytes>
inline void expect_aligned(const char* space, std::uint64_t address) {
  if (address % Bytes != 0) [[unlikely]]
    stop_at(space, "is misaligned", address, Bytes);
}
template <std::size_t Bytes>
inline char* global_at(const Frame&, std::uint64_t address) {
  expect_aligned<Bytes>("global", address);
  auto* const at = reinterpret_cast<char*>(address);
  if (!is_global(at, Bytes)) [[unlikely]]
    stop_at("global", "lies in no memory of the device", address, Bytes);
  return at;
}
/// By its place in the window.
template <std::size_t Bytes>
inline char* shared_at(const Frame&, std::uint64_t address) {
  expect_aligned<Bytes>("shared", address);
  if (address > shared_bytes || Bytes > shared_bytes - address) [[unlikely]]
    stop_at("shared", "lies beyond what the kernel has", address, Bytes);
  return shared_memory + address;
}
template <std::size_t Bytes>
inline char* local_at(const Frame& frame, std::uint64_t address) {
  expect_aligned<Bytes>("local", address);
  auto* const at = reinterpret_cast<char*>(address);
  if (!lies_in(at, Bytes, frame.local, frame.local_bytes)) [[unlikely]]
    stop_at("local", "lies in no variable of the thread", address, Bytes);
  return at;
}
template <std::size_t Bytes>
inline const char* param_at(const Frame& frame, std::uint64_t address) {
  expect_aligned<Bytes>("param", address);
  auto* const at = reinterpret_cast<const char*>(address);
  if (!lies_in(at, Bytes, frame.parameters, frame.parameter_bytes)) [[unlikely]]
    stop_at("param", "lies in no parameter", address, Bytes);
  return at;
}
template <std::size_t Bytes>
inline char* generic_at(const Frame& frame, std::uint64_t address) {
  expect_aligned<Bytes>("generic", address);
  auto* const at = reinterpret_cast<char*>(address);
  if (!lies_in(at, Bytes, device_begin, device_bytes) && !lies_in(at, Bytes, shared_memory, shared_bytes) &&
      !lies_in(at, Bytes, frame.local, frame.local_bytes) &&
      !lies_in(at, Bytes, frame.parameters, frame.parameter_bytes) && !is_global_elsewhere(at, Bytes))
      [[unlikely]]
    stop_at("generic", "lies in no window", address, Bytes);
  return at;
}

template <class T>
[[gnu::always_inline]] inline T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
[[gnu::always_inline]] inline void store(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// One thread runs at a time.
#define ESPALIER_PTX_ATOMIC(name, expression) \
  template <class T>                          \
  T atomic_##name(char* at, T value) {        \
    const T old = load<T>(at);                \
    store<T>(at, static_cast<T>(expression)); \
    return old;                               \
  }
ESPALIER_PTX_ATOMIC(add, static_cast<std::uint64_t>(old) + static_cast<std::uint64_t>(value))
ESPALIER_PTX_ATOMIC(min, value < old ? value : old)
ESPALIER_PTX_ATOMIC(max, old < value ? value : old)
ESPALIER_PTX_ATOMIC(and, old& value)
ESPALIER_PTX_ATOMIC(or, old | value)
ESPALIER_PTX_ATOMIC(xor, old ^ value)
ESPALIER_PTX_ATOMIC(exch, value)
ESPALIER_PTX_ATOMIC(inc, old >= value ? 0 : old + 1)
ESPALIER_PTX_ATOMIC(dec, old == 0 || old > value ? value : old - 1)
#undef ESPALIER_PTX_ATOMIC
template <class T>
T atomic_cas(char* at, T expected, T value) {
  const T old = load<T>(at);
  if (old == expected) store<T>(at, value);
  return old;
}

}  // namespace ptx

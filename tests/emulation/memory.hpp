// Device memory of the emulation: a range of addresses that nobody may touch but kernels and
// libraries; and what other GPUs sent that has yet to reach it.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda_runtime.h"
#include "watch.hpp"

namespace espalier_emulation {

/// Of an environment variable.
std::size_t number_from(const char* name, std::size_t otherwise);

/// Is this the call that ESPALIER_EMULATED_REFUSAL names?
bool refuses(const char* call);

/// Where the GPU is on the bus: slices of one are at one place.
int bus_of(int device);

/// Where device memory may lie.
constexpr std::size_t kDeviceAddresses = std::size_t{1} << 38;
const void* device_memory_begin();
bool is_device_memory(const void* pointer);
bool is_pinned(const void* pointer);

/// Of the kernel that runs, where it is known: give_up says it.
void set_kernel_name(const char* name);
/// For cudaGetLastError.
cudaError_t note(cudaError_t error);

/// Writes `data` to device memory when the work of `stream` so far is waited for: by the host, by
/// another stream, or by a copy on the stream. Memory that is freed before ends the program.
void deliver_later(CUstream_st* stream, void* to, std::vector<std::byte> data);
/// Now.
void deliver(CUstream_st* stream);

/// A stream, for who looks for races: its strand, and what others wait for.
struct StreamOrder {
  watch::Strand strand;
  watch::Moment asked, done;
  unsigned number = 0;

  /// What follows is done by the stream, behind what the host did before it asked for it; until
  /// Strand::leave().
  void begin() {
    if (!watch::kRaces) return;
    asked.release_alone();
    strand.enter("a stream");
    asked.acquire();
  }
};
/// Of the default stream, where it is null.
StreamOrder& order_of(CUstream_st* stream);

/// Has `stream` waited for what was copied on other streams, or the host?
bool has_seen_all_copies(CUstream_st* stream);

}  // namespace espalier_emulation

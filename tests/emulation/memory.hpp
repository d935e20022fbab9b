// Device memory of the emulation: a range of addresses that nobody may touch but kernels and
// libraries; and what other GPUs sent that has yet to reach it.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda_runtime.h"

namespace espalier_emulation {

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
/// Ends the program, with what a thread of a kernel did.
[[noreturn]] void give_up(const char* what);
/// For cudaGetLastError.
cudaError_t note(cudaError_t error);

/// Writes `data` to device memory when the work of `stream` so far is waited for: by the host, by
/// another stream, or by a copy on the stream. Memory that is freed before ends the program.
void deliver_later(CUstream_st* stream, void* to, std::vector<std::byte> data);
/// Now.
void deliver(CUstream_st* stream);

/// Has `stream` waited for what was copied on other streams, or the host?
bool has_seen_all_copies(CUstream_st* stream);

}  // namespace espalier_emulation

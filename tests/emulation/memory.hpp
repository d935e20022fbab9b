// Device memory of the emulation: a range of addresses that nobody may touch but kernels and
// libraries; and what other GPUs sent that has yet to reach it.
#pragma once

#include <cstddef>
#include <vector>

struct CUstream_st;

namespace espalier_emulation {

/// Is this the call that ESPALIER_EMULATED_REFUSAL names?
bool refuses(const char* call);

/// Where the GPU is on the bus: slices of one are at one place.
int bus_of(int device);

bool is_device_memory(const void* pointer);

/// Writes `data` to device memory when the work of `stream` so far is waited for: by the host, by
/// another stream, or by a copy on the stream. Memory that is freed before ends the program.
void deliver_later(CUstream_st* stream, void* to, std::vector<std::byte> data);
/// Now.
void deliver(CUstream_st* stream);

/// Has `stream` waited for what was copied on other streams, or the host?
bool has_seen_all_copies(CUstream_st* stream);

}  // namespace espalier_emulation

// Device memory of the emulation: a range of addresses that nobody may touch but kernels and libraries.
#pragma once

#include <cstddef>

namespace espalier_emulation {

bool is_device_memory(const void* pointer);

}  // namespace espalier_emulation

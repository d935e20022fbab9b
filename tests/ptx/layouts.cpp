// Compiled with CUDA's own headers: the functions whose structures are laid out otherwise from one
// version of CUDA to the next (cudaDeviceProp: 12, 13), or which the emulation has no use for.
#include <cuda_runtime_api.h>

#include <cstring>

#include "properties.hpp"

extern "C" {

cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  EmulatedProperties emulated{};
  const int error = espalier_emulated_properties(&emulated, device);
  std::memset(properties, 0, sizeof *properties);
  std::memcpy(properties->name, emulated.name, sizeof properties->name);
  std::memcpy(&properties->uuid, emulated.uuid, sizeof properties->uuid);
  properties->totalGlobalMem = emulated.memory;
  properties->multiProcessorCount = emulated.processors;
  properties->major = emulated.major;
  properties->minor = emulated.minor;
  properties->l2CacheSize = emulated.l2;
  properties->sharedMemPerBlock = emulated.shared;
  properties->maxThreadsPerBlock = 1024;
  properties->warpSize = 32;
  return static_cast<cudaError_t>(error);
}

// What CUB asks: the capability that the PTX is for, and how many blocks a launch may have.
cudaError_t CUDARTAPI cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = 1024;
  attributes->ptxVersion = 90;
  attributes->binaryVersion = 90;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                             size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  EmulatedProperties emulated{};
  const int error = espalier_emulated_properties(&emulated, device);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = emulated.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = emulated.minor;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = emulated.processors;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(emulated.shared);
      break;
    case cudaDevAttrMaxGridDimX:
      *value = 0x7fffffff;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return static_cast<cudaError_t>(error);
}
}

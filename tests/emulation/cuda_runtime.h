// The part of the CUDA runtime that Espalier uses, on the CPU: .cu files compile with a plain C++ compiler against this
// folder, and their kernels run thread by thread. What that proves: that kernels and launchers compute what they
// should, whatever the order of blocks, that no thread leaves a barrier early, that the host touches no device
// memory and copies go where they should. What it does not prove: anything of speed, of memory ordering between
// running threads, or of the real libraries.
//
//     ESPALIER_EMULATED_GPUS     how many GPUs there are (1)
//     ESPALIER_EMULATED_SLICES   so many of them are slices (MIG) of one, at the same place on the bus (1)
//     ESPALIER_EMULATED_GPU      their compute capability (90: 9.0)
//     ESPALIER_EMULATED_DRIVER   the CUDA version of the driver (13000: 13.0)
//     ESPALIER_EMULATED_RUNTIME  and of the program (13000)
//     ESPALIER_EMULATED_MEMORY   bytes of each (8 GiB)
//     ESPALIER_EMULATED_ORDER    seed of the order of blocks and threads (1)
//     ESPALIER_EMULATED_UNLIKE   multiprocessors that a GPU has more than the one before it; 0
//     ESPALIER_EMULATED_REFUSAL  the call of a library that fails, as cublasSetWorkspace
//     ESPALIER_EMULATED_WORDS    says what the pool keeps, when it is told
//
// nvml/nvml.cpp has more.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define __CUDA_ARCH_LIST__ 800, 900, 1030
#define ESPALIER_EMULATION  // for base/launch.hpp, which plain C++ must not include
#define __global__
#define __device__
#define __host__
#ifdef ESPALIER_WATCH_RACES
#define __shared__ static thread_local  // where it is found (watch.hpp)
#else
#define __shared__ static
#endif
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
  unsigned x, y, z;
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

// Vector types.
#define ESPALIER_VECTOR_TYPES(T, name)                              \
  struct alignas(2 * sizeof(T)) name##2 {                           \
    T x, y;                                                         \
  };                                                                \
  struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { \
    T x, y, z, w;                                                   \
  };                                                                \
  inline name##2 make_##name##2(T x, T y) {                         \
    return {x, y};                                                  \
  }                                                                 \
  inline name##4 make_##name##4(T x, T y, T z, T w) {               \
    return {x, y, z, w};                                            \
  }
ESPALIER_VECTOR_TYPES(float, float)
ESPALIER_VECTOR_TYPES(double, double)
ESPALIER_VECTOR_TYPES(int, int)
ESPALIER_VECTOR_TYPES(unsigned, uint)
ESPALIER_VECTOR_TYPES(unsigned short, ushort)
ESPALIER_VECTOR_TYPES(long long, longlong)
ESPALIER_VECTOR_TYPES(unsigned long long, ulonglong)
#undef ESPALIER_VECTOR_TYPES

struct CUstream_st;

namespace espalier_emulation {

/// Runs invoke(closure) for every thread of the grid, as work of `stream`.
enum class BlockOrder { kShuffled, kRising };
void run_grid(dim3 grid, dim3 block, void (*invoke)(void*), void* closure, CUstream_st* stream,
              BlockOrder order = BlockOrder::kShuffled);
/// Waits at the block's barrier; returns the sum, over its threads, of `value`.
int wait_for_block(int value);
/// Waits for the lanes of `mask`; what each of them had: values[lane]. Shuffles and votes leave
/// open in which order lanes see each other's memory, a barrier does not.
const std::uint64_t* exchange_in_warp(unsigned mask, std::uint64_t value, bool orders_memory = false);
int lane();
/// Ends the program, with what a thread of a kernel did.
[[noreturn]] void give_up(const char* what);
inline std::uint64_t read_lane(const std::uint64_t* values, unsigned mask, int lane) {
  if ((mask >> lane & 1u) == 0) give_up("a shuffle reads a lane that takes no part in it");
  return values[lane];
}

/// While one lives, no other thread of the process is in the runtime, a library or a kernel.
class Turn {
 public:
  Turn();
  ~Turn();
  Turn(const Turn&) = delete;
};

/// While one lives, device memory may be touched by host code (a kernel that runs, a library).
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();

 private:
  Turn turn_;
};

template <class T>
std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace espalier_emulation

// Barriers and warps.
inline void __syncthreads() {
  espalier_emulation::wait_for_block(0);
}
inline int __syncthreads_count(int predicate) {
  return espalier_emulation::wait_for_block(predicate != 0);
}
inline int __syncthreads_or(int predicate) {
  return espalier_emulation::wait_for_block(predicate != 0) > 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  espalier_emulation::exchange_in_warp(mask, 0, true);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const int lane = espalier_emulation::lane();
  const auto* values = espalier_emulation::exchange_in_warp(mask, espalier_emulation::to_bits(value));
  return espalier_emulation::from_bits<T>(
      espalier_emulation::read_lane(values, mask, lane / width * width + ((source % width) + width) % width));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize) {
  const int lane = espalier_emulation::lane();
  const auto* values = espalier_emulation::exchange_in_warp(mask, espalier_emulation::to_bits(value));
  const int source = lane ^ lanes;
  return source / width == lane / width ? espalier_emulation::from_bits<T>(espalier_emulation::read_lane(values, mask, source)) : value;
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = espalier_emulation::lane();
  const auto* values = espalier_emulation::exchange_in_warp(mask, espalier_emulation::to_bits(value));
  const int source = lane + static_cast<int>(delta);
  return source / width == lane / width ? espalier_emulation::from_bits<T>(espalier_emulation::read_lane(values, mask, source)) : value;
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = espalier_emulation::lane();
  const auto* values = espalier_emulation::exchange_in_warp(mask, espalier_emulation::to_bits(value));
  const int source = lane - static_cast<int>(delta);
  return lane % width >= static_cast<int>(delta) ? espalier_emulation::from_bits<T>(espalier_emulation::read_lane(values, mask, source)) : value;
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const auto* values = espalier_emulation::exchange_in_warp(mask, predicate != 0);
  unsigned ballot = 0;
  for (int lane = 0; lane < warpSize; ++lane)
    if ((mask >> lane & 1u) != 0 && values[lane] != 0) ballot |= 1u << lane;
  return ballot;
}
inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}
inline unsigned __activemask() {
  return 0xffffffffu;
}

// Atomics. One thread runs at a time, so the value that is expected is there; who looks for races
// sees that they are atomic.
namespace espalier_emulation {
template <class T>
bool replace(T* at, T expected, T desired) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static_assert(sizeof(T) == sizeof(Bits));
  auto bits = static_cast<Bits>(to_bits(expected));
  return __atomic_compare_exchange_n(reinterpret_cast<Bits*>(at), &bits, static_cast<Bits>(to_bits(desired)),
                                     false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
template <class T>
T look(const T* at) {
  T value;
  __atomic_load(const_cast<T*>(at), &value, __ATOMIC_RELAXED);
  return value;
}
}  // namespace espalier_emulation
#define ESPALIER_ATOMIC(name, expression)                             \
  template <class T, class U>                                         \
  T name(T* at, U operand) {                                          \
    const T old = espalier_emulation::look(at);                       \
    const T value = static_cast<T>(operand);                          \
    espalier_emulation::replace(at, old, static_cast<T>(expression)); \
    return old;                                                       \
  }
ESPALIER_ATOMIC(atomicAdd, old + value)
ESPALIER_ATOMIC(atomicSub, old - value)
ESPALIER_ATOMIC(atomicOr, old | value)
ESPALIER_ATOMIC(atomicAnd, old& value)
ESPALIER_ATOMIC(atomicMax, old < value ? value : old)
ESPALIER_ATOMIC(atomicMin, value < old ? value : old)
ESPALIER_ATOMIC(atomicExch, value)
#undef ESPALIER_ATOMIC
template <class T>
T atomicCAS(T* at, T expected, T desired) {
  const T old = espalier_emulation::look(at);
  if (old == expected) espalier_emulation::replace(at, old, desired);
  return old;
}

// Intrinsics.
template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcs(const T* at) {
  return *at;
}
template <class T>
void __stcs(T* at, T value) {
  *at = value;
}
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline unsigned __float_as_uint(float x) {
  return espalier_emulation::from_bits<unsigned>(espalier_emulation::to_bits(x));
}
inline int __float_as_int(float x) {
  return espalier_emulation::from_bits<int>(espalier_emulation::to_bits(x));
}
inline float __uint_as_float(unsigned x) {
  return espalier_emulation::from_bits<float>(x);
}
inline float __int_as_float(int x) {
  return espalier_emulation::from_bits<float>(espalier_emulation::to_bits(x));
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((static_cast<Wide>(a) * b) >> 64);
}
inline double __dmul_rn(double a, double b) {
  return a * b;
}
inline double __dadd_rn(double a, double b) {
  return a + b;
}
inline double __ddiv_rn(double a, double b) {
  return a / b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float rsqrtf(float x) {
  return 1.0f / std::sqrt(x);
}

// The runtime.
enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorLaunchOutOfResources = 701
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct CUmemPoolHandle_st* cudaMemPool_t;
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem;
  int multiProcessorCount, major, minor, l2CacheSize;
  std::size_t sharedMemPerBlock;
};
enum cudaMemPoolAttr {
  cudaMemPoolAttrReleaseThreshold = 4,
  cudaMemPoolAttrReservedMemCurrent,
  cudaMemPoolAttrReservedMemHigh,
  cudaMemPoolAttrUsedMemCurrent,
  cudaMemPoolAttrUsedMemHigh
};
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocPortable = 1,
                          cudaHostAllocMapped = 2;

// By the names and with the values of the real ones, so that what nvcc compiled can call them too (tests/ptx).
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);  // of a layout of its own
extern "C" {
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int length, int device);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream);
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t bytes, cudaStream_t stream);
}

template <class T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}

namespace espalier_emulation {
bool good_configuration(dim3 grid, dim3 block);
bool is_of_this_device(cudaStream_t stream);
bool good_argument(const void* pointer);
/// Which kernels ran, by their places in the program, in a file of the folder
/// ESPALIER_EMULATED_LAUNCHES.
void note_launch(const void* kernel);
/// `stream` reads, or writes, memory of the device.
void note_read(cudaStream_t stream, const void* begin, std::size_t bytes);
void note_write(cudaStream_t stream, void* begin, std::size_t bytes);
#ifdef ESPALIER_WATCH_RACES
#define ESPALIER_NO_RACES __attribute__((no_sanitize("thread")))
#else
#define ESPALIER_NO_RACES
#endif
/// Has the stream waited for what others did to the array that `pointer` lies in? From here on they
/// must wait for it.
bool may_read(const void* pointer, cudaStream_t stream);
bool may_write(const void* pointer, cudaStream_t stream);
template <class T>
bool good(const T& argument, cudaStream_t stream) {
  if constexpr (std::is_pointer_v<T>)
    return good_argument(argument) &&
           (std::is_const_v<std::remove_pointer_t<T>> ? may_read(argument, stream)
                                                      : may_write(argument, stream));
  else
    return true;
}
template <class... P, std::size_t... I>
cudaError_t run_kernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, cudaStream_t stream,
                       std::index_sequence<I...>);
}  // namespace espalier_emulation

template <class... P, std::size_t... I>
cudaError_t espalier_emulation::run_kernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                                           cudaStream_t stream, std::index_sequence<I...>) {
  // A pointer that a kernel is given must be one to device or pinned memory.
  if (!(good(*static_cast<std::remove_reference_t<P>*>(arguments[I]), stream) && ...))
    return cudaErrorInvalidValue;
  struct Closure {
    void (*kernel)(P...);
    void** arguments;
  } closure{kernel, arguments};
  note_launch(reinterpret_cast<const void*>(kernel));
  run_grid(
      grid, block,
      // The launch's, not the kernel's: nobody looks for races in it.
      [](void* opaque) ESPALIER_NO_RACES {
        auto& call = *static_cast<Closure*>(opaque);
        call.kernel(*static_cast<std::remove_reference_t<P>*>(call.arguments[I])...);
      },
      &closure, stream);
  return cudaSuccess;
}

template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, std::size_t,
                             cudaStream_t stream) {
  const espalier_emulation::Turn turn;
  if (!espalier_emulation::is_of_this_device(stream)) return cudaErrorInvalidResourceHandle;
  if (!espalier_emulation::good_configuration(grid, block)) return cudaErrorInvalidConfiguration;
  return espalier_emulation::run_kernel(kernel, grid, block, arguments, stream,
                                        std::index_sequence_for<P...>{});
}

// Kernels with an error each, and the same without it: is it seen by who watches the emulation?
// planted ERROR, or `none` (planted_test.py).
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kThreads = 64, kBlocks = 6;
constexpr unsigned kAll = 0xffffffffu;

__global__ void turn_round(const int* from, int* to, bool right) {
  __shared__ int kept[kThreads];
  const unsigned t = threadIdx.x;
  kept[t] = from[blockIdx.x * kThreads + t];
  if (right) __syncthreads();
  to[blockIdx.x * kThreads + t] = kept[kThreads - 1 - t];
}

// The next tile is written while others still read the last one.
__global__ void sum_tiles(const int* from, int* to, bool right) {
  __shared__ int tile[kThreads];
  int sum = 0;
  for (int k = 0; k < 3; ++k) {
    tile[threadIdx.x] = from[k * kThreads + threadIdx.x];
    __syncthreads();
    sum += tile[(threadIdx.x + 1) % kThreads];
    if (right) __syncthreads();
  }
  to[blockIdx.x * kThreads + threadIdx.x] = sum;
}

// A shuffle says nothing of memory; __syncwarp does.
__global__ void pass_on(int* row, int* to, bool right) {
  int* const own = row + blockIdx.x * kThreads;
  own[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (right)
    __syncwarp();
  else
    static_cast<void>(__shfl_sync(kAll, 0, 0));
  to[blockIdx.x * kThreads + threadIdx.x] = own[threadIdx.x ^ 1u];
}

__global__ void count(int* total, bool right) {
  if (right)
    atomicAdd(total, 1);
  else if (threadIdx.x == 0)
    *total += 1;  // once a block
}

__global__ void shift(const int* from, int* to, int size, bool right) {
  const auto k = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (k < size) to[k] = from[right ? (k + 1) % size : k + 1];
}

__global__ void fan_out(int* to, bool right) {
  __shared__ int kept[kThreads];
  kept[threadIdx.x] = 1;
  __syncthreads();
  to[blockIdx.x * kThreads + threadIdx.x] = kept[threadIdx.x + (right ? 0 : 1)];
}

__global__ void write_some(int* to, bool right) {
  const auto k = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (right || k != 77) to[k] = k;
}

// Half of the warp left.
__global__ void sum_lanes(int* to, bool right) {
  if (!right && threadIdx.x % 32 >= 16) return;
  int sum = 1;
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(kAll, sum, by);
  to[blockIdx.x * kThreads + threadIdx.x] = sum;
}

__global__ void sum_others(int* to, bool right) {
  to[blockIdx.x * kThreads + threadIdx.x] =
      threadIdx.x % 32 < 16 ? __shfl_sync(0xffffu, 1, right ? 3 : 20) : 0;
}

// The emulation looks for arrays among a kernel's parameters, and not within them.
struct Hidden {
  int* to;
};
__global__ void write_hidden(Hidden hidden) {
  hidden.to[blockIdx.x * kThreads + threadIdx.x] = 1;
}

__global__ void write_all(int* to, int value) {
  to[blockIdx.x * kThreads + threadIdx.x] = value;
}

template <class... P>
void run(cudaStream_t stream, void (*kernel)(P...), P... arguments) {
  void* pointers[] = {&arguments...};
  if (cudaLaunchKernel(kernel, dim3(kBlocks), dim3(kThreads), pointers, 0, stream) != cudaSuccess)
    std::exit(3);
}

}  // namespace

int main(int, char** argv) {
  const std::string error = argv[1];
  const auto right = [&](const char* name) { return error != name; };
  constexpr int kSize = kBlocks * kThreads;
  constexpr std::size_t kBytes = kSize * sizeof(int);
  cudaStream_t one = nullptr, other = nullptr;
  cudaEvent_t written = nullptr;
  cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreate(&written);
  int *from = nullptr, *to = nullptr, numbers[kSize] = {};
  cudaMalloc(&from, kBytes);
  cudaMalloc(&to, kBytes);
  cudaMemcpyAsync(from, numbers, kBytes, cudaMemcpyHostToDevice, one);
  const int* const given = from;
  run(one, turn_round, given, to, right("barrier"));
  run(one, sum_tiles, given, to, right("second barrier"));
  run(one, pass_on, from, to, right("shuffle as barrier"));
  run(one, count, from, right("atomic"));
  run(one, shift, given, to, kSize, right("index"));
  run(one, fan_out, to, right("index of shared memory"));
  run(one, sum_lanes, to, right("lanes"));
  cudaStreamSynchronize(one);
  run(one, sum_others, to, right("lane that takes no part"));
  run(one, write_hidden, Hidden{to});
  cudaEventRecord(written, one);
  if (right("stream")) cudaStreamWaitEvent(other, written, 0);
  run(other, write_hidden, Hidden{to});
  cudaStreamSynchronize(one);
  cudaStreamSynchronize(other);
  int* fresh = nullptr;
  cudaMalloc(&fresh, kBytes);
  run(one, write_some, fresh, right("write"));
  cudaMemcpyAsync(numbers, right("copy") ? fresh : fresh + 1, kBytes, cudaMemcpyDeviceToHost, one);
  cudaStreamSynchronize(one);
  cudaFree(fresh);
  if (!right("array that is gone")) run(other, write_all, fresh, 2);
  std::puts("done");
  return 0;
}

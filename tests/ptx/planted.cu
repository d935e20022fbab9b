// Wrong code of four kinds, most of which the emulation takes for right: tests/ptx/planted_test.py
// compiles it by nvcc, and sees each found as the kernel runs on the CPU.
//
//     planted search | order | misaligned | argument
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <string>

// nvcc before 13.4 makes nothing of what std::next is for.
__global__ void search(const int* sorted, int count, int x, int* found) {
  *found = static_cast<int>(std::upper_bound(sorted, sorted + count, x) - sorted);
}

// In which order arguments are computed, C++ does not say.
__device__ int taken(const int* values, int* at) {
  return values[(*at)++];
}
__device__ int difference(int a, int b) {
  return a - b;
}
__global__ void order(const int* values, int, int, int* found) {
  int at = 0;
  *found = difference(taken(values, &at), taken(values, &at));
}

// A multiple of a float's size, and not of a float4's.
__global__ void misaligned(const int* values, int, int, int* found) {
  const int4 four = *reinterpret_cast<const int4*>(values + 1);
  *found = four.x + four.y + four.z + four.w;
}

__global__ void argument(const int* values, int count, int x, int* found) {
  *found = values[count - 1] + x;
}

int main(int, char** arguments) {
  const std::string which = arguments[1];
  const int host[] = {2, 3, 5, 7, 11, 13, 17, 19};
  int *values = nullptr, *found = nullptr, result = -1, count = 8, x = 11;
  cudaMalloc(&values, sizeof host);
  cudaMalloc(&found, sizeof result);
  cudaMemcpyAsync(values, host, sizeof host, cudaMemcpyHostToDevice, nullptr);
  void* all[] = {&values, &count, &x, &found};
  void* fewer[] = {&values, &count, &x, nullptr};
  void (*const kernel)(const int*, int, int, int*) = which == "search"     ? search
                                                     : which == "order"    ? order
                                                     : which == "argument" ? argument
                                                                           : misaligned;
  cudaLaunchKernel(kernel, dim3(1), dim3(1), which == "argument" ? fewer : all, 0, nullptr);
  cudaMemcpyAsync(&result, found, sizeof result, cudaMemcpyDeviceToHost, nullptr);
  cudaDeviceSynchronize();
  std::printf("%d\n", result);
}

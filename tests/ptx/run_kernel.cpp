// run_kernel KERNEL BLOCKS THREADS FILE...: runs a kernel of the PTX that this was built with (make
// build/ptx/kernels/NAME PTX=FILE). It is given a pointer to the bytes of each file, in device
// memory, from which they are written back.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "cuda_runtime.h"

extern "C" {
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*,
                            void*, int*);
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream);
}

namespace {

void expect(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::cerr << "run_kernel: " << cudaGetErrorString(error) << '\n';
  std::exit(1);
}

std::vector<char> bytes_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::vector<std::vector<char>> contents;
  std::vector<void*> arrays, arguments;
  for (int k = 4; k < argc; ++k) {
    contents.push_back(bytes_of(argv[k]));
    arrays.push_back(nullptr);
    expect(cudaMalloc(&arrays.back(), contents.back().size() + 1));
    expect(cudaMemcpyAsync(arrays.back(), contents.back().data(), contents.back().size(),
                           cudaMemcpyHostToDevice, nullptr));
  }
  expect(cudaDeviceSynchronize());
  for (void*& array : arrays) arguments.push_back(&array);
  const char handle = 0;
  __cudaRegisterFunction(nullptr, &handle, nullptr, argv[1], 0, nullptr, nullptr, nullptr, nullptr, nullptr);
  expect(cudaLaunchKernel(&handle, dim3(static_cast<unsigned>(std::stoul(argv[2]))),
                          dim3(static_cast<unsigned>(std::stoul(argv[3]))), arguments.data(), 0, nullptr));
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    expect(
        cudaMemcpyAsync(contents[k].data(), arrays[k], contents[k].size(), cudaMemcpyDeviceToHost, nullptr));
    expect(cudaDeviceSynchronize());
    std::ofstream(argv[4 + k], std::ios::binary)
        .write(contents[k].data(), static_cast<std::streamsize>(contents[k].size()));
  }
}

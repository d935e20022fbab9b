// The half of the CUDA runtime that registers and launches kernels, for host code as nvcc compiled
// it: a kernel is found by the name that was registered, and run as its PTX says. The other half is
// the emulation's.
#include <cxxabi.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "machine.hpp"
#include "memory.hpp"
#include "properties.hpp"

using namespace espalier_emulation;

namespace ptx {

namespace {

constexpr std::size_t kMostShared = std::size_t{48} << 10;

/// What a launch must know.
struct Known {
  Kernel kernel;
  std::string name, pointers;  // readable; of pointers_of
  bool looks_back = false;     // CUB's: waits for the blocks before, which on a GPU have
                               // started by then
};
std::unordered_map<std::string, Known>& kernels() {
  static std::unordered_map<std::string, Known> of_program;
  return of_program;
}
std::vector<Variable>& variables() {
  static std::vector<Variable> of_program;
  return of_program;
}
std::unordered_map<const void*, std::string>& names() {
  static std::unordered_map<const void*, std::string> of_program;
  return of_program;
}

std::string readable(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    std::free);
  return text == nullptr ? name : text.get();
}

/// Reads memory that may not be there, as for an argument that was left out.
bool copy_if_there(void* to, const void* from, std::size_t bytes) {
  const iovec target{to, bytes}, source{const_cast<void*>(from), bytes};
  return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == static_cast<ssize_t>(bytes);
}

/// The types of a function's parameters, of its readable name, where they are pointers: 'r' to
/// const, 'w' to what may be written, ' ' for others.
std::string pointers_of(const std::string& name) {
  if (name.empty() || name.back() != ')') return {};
  std::string kinds, type;
  int depth = 0;
  for (std::size_t at = name.size() - 1; at-- > 0;) {  // from the last letter of the last type
    const char c = name[at];
    if (depth == 0 && (c == ',' || c == '(')) {
      kinds.insert(kinds.begin(), type.starts_with("*tsnoc") ? 'r' : type.starts_with("*") ? 'w' : ' ');
      type.clear();
      if (c == '(') break;
      continue;
    }
    depth += (c == ')' || c == '>' || c == ']' || c == '}') - (c == '(' || c == '<' || c == '[' || c == '{');
    type += c;
  }
  return kinds;
}

struct Launch {
  const Known& of;
  std::vector<std::uint64_t> parameters;  // aligned for all of them
  uint3 block{~0u, ~0u, ~0u};
};

void run_thread(void* opaque) {
  auto& launch = *static_cast<Launch*>(opaque);
  if (launch.block.x != blockIdx.x || launch.block.y != blockIdx.y || launch.block.z != blockIdx.z) {
    launch.block = blockIdx;
    std::memset(shared_memory, 0xff, shared_bytes);
  }
  launch.of.kernel.run(reinterpret_cast<const char*>(launch.parameters.data()));
}

cudaError_t take_arguments(Launch& launch, void** arguments, cudaStream_t stream) {
  const auto& of = launch.of.kernel.parameters;
  const auto& pointers = launch.of.pointers;
  launch.parameters.resize(of.empty() ? 1 : (of.back().offset + of.back().bytes + 7) / 8);
  auto* const to = reinterpret_cast<char*>(launch.parameters.data());
  for (std::size_t k = 0; k < of.size(); ++k) {
    void* argument = nullptr;
    if (!copy_if_there(&argument, arguments + k, sizeof argument) ||
        !copy_if_there(to + of[k].offset, argument, of[k].bytes)) {
      std::fprintf(stderr, "emulated CUDA: kernel %s: its launch has no argument %zu\n",
                   launch.of.name.c_str(), k + 1);
      std::abort();
    }
    const char kind = k < pointers.size() && of[k].bytes == 8 ? pointers[k] : ' ';
    const auto* const pointer = kind == ' ' ? nullptr : load<const void*>(to + of[k].offset);
    if (kind != ' ' &&
        (!good_argument(pointer) || !(kind == 'r' ? may_read(pointer, stream) : may_write(pointer, stream))))
      return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t dynamic,
                   cudaStream_t stream) {
  const Turn turn;
  const auto name = names().find(function);
  const auto found = name == names().end() ? kernels().end() : kernels().find(name->second);
  if (found == kernels().end()) {
    std::fprintf(stderr, "emulated CUDA: kernel %s: has no PTX here\n",
                 name == names().end() ? "without a name" : readable(name->second.c_str()).c_str());
    std::abort();
  }
  if (!is_of_this_device(stream)) return cudaErrorInvalidResourceHandle;
  const Kernel& kernel = found->second.kernel;
  if (!good_configuration(grid, block) || kernel.shared_bytes + dynamic > kMostShared)
    return cudaErrorInvalidConfiguration;
  if (block.x * block.y * block.z > kernel.most_threads) return cudaErrorLaunchOutOfResources;
  Launch launch{found->second, {}, {~0u, ~0u, ~0u}};
  if (const auto error = take_arguments(launch, arguments, stream); error != cudaSuccess) return error;
  shared_bytes = kernel.shared_bytes + dynamic;
  set_kernel_name(found->second.name.c_str());
  run_grid(grid, block, run_thread, &launch, stream,
           found->second.looks_back ? BlockOrder::kRising : BlockOrder::kShuffled);
  set_kernel_name(nullptr);
  return cudaSuccess;
}

}  // namespace

alignas(1024) char shared_memory[kMostShared];
std::size_t shared_bytes = 0;
const char* const device_begin = static_cast<const char*>(device_memory_begin());
const std::size_t device_bytes = kDeviceAddresses;

Kernels::Kernels(std::initializer_list<Kernel> of_file) {
  for (const auto& kernel : of_file) {
    const std::string name = readable(kernel.name);
    kernels().emplace(kernel.name,
                      Known{kernel, name, pointers_of(name), name.find("cub::") != std::string::npos});
  }
}
Variables::Variables(std::initializer_list<Variable> of_file) {
  variables().insert(variables().end(), of_file);
}
bool is_global_elsewhere(const char* at, std::size_t bytes) {
  if (is_pinned(at) && is_pinned(at + bytes - 1)) return true;
  for (const auto& v : variables())
    if (lies_in(at, bytes, static_cast<const char*>(v.begin), v.bytes)) return true;
  return false;
}
void stop(const char* what) {
  give_up(what);
}
void stop_at(const char* space, const char* why, std::uint64_t address, std::size_t bytes) {
  char what[160];
  std::snprintf(what, sizeof what, "an address of %zu bytes of %s memory, 0x%llx, %s", bytes, space,
                static_cast<unsigned long long>(address), why);
  give_up(what);
}

}  // namespace ptx

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*,
                            void*, int*) {
  ptx::names()[host] = name;
}

// kernel<<<grid, block>>>(...): what stands between the brackets is pushed, and popped by what nvcc
// makes of the call.
struct Configuration {
  dim3 grid, block;
  std::size_t shared;
  void* stream;
};
static thread_local std::vector<Configuration> pushed;
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, void* stream) {
  pushed.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  const auto last = pushed.back();
  pushed.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<void**>(stream) = last.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(const void** kernel, const void* function) {
  *kernel = function;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return note(ptx::launch(function, grid, block, arguments, shared, stream));
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  return note(ptx::launch(function, grid, block, arguments, shared, stream));
}
struct LaunchConfiguration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
cudaError_t cudaLaunchKernelExC(const LaunchConfiguration* how, const void* function, void** arguments) {
  return note(ptx::launch(function, how->grid, how->block, arguments, how->shared, how->stream));
}

int espalier_emulated_properties(EmulatedProperties* properties, int device) {
  cudaDeviceProp emulated{};
  const auto error = cudaGetDeviceProperties(&emulated, device);
  std::memcpy(properties->name, emulated.name, sizeof properties->name);
  std::memcpy(properties->uuid, &emulated.uuid, sizeof properties->uuid);
  properties->memory = emulated.totalGlobalMem;
  properties->shared = emulated.sharedMemPerBlock;
  properties->processors = emulated.multiProcessorCount;
  properties->major = emulated.major;
  properties->minor = emulated.minor;
  properties->l2 = emulated.l2CacheSize;
  return error;
}
}

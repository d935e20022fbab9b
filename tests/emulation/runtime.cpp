// Memory, streams and events of the emulation. Work is done when it is asked for, one thread of the
// process at a time; only what other GPUs send arrives when its stream is waited for, and memory of
// the host, pageable or pinned, is copied from when the GPU does the next thing: who changes it
// before has not waited. Pinned memory must stay as it is until the copy has been waited for.
// Which stream has waited for which is kept: an array that one stream uses while another that it
// has not waited for may still change it is refused.
//
// Device memory is one range of addresses, without access except while a kernel runs or a copy is
// made, so host code that follows a device pointer ends with a segmentation fault. The first
// megabytes of new memory hold 0xff bytes (NaN, -1), or those of ESPALIER_EMULATED_FILL. What is
// copied to the host is noted in a file of the folder ESPALIER_EMULATED_COPIES: a result that
// depends on what nobody wrote differs by the fill.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "memory.hpp"

namespace espalier_emulation {

namespace {

constexpr std::size_t kReserved = kDeviceAddresses, kAlignment = 512, kPage = std::size_t{2} << 20,
                      kFilled = std::size_t{4} << 20;  // pages that nobody touches cost no time

constexpr const char* kCopies = "ESPALIER_EMULATED_COPIES";

// When streams last used an array, as far as who comes after them must wait.
using Uses = std::map<const CUstream_st*, std::uint64_t>;
struct DeviceMemory {
  std::size_t bytes = 0;
  Uses writes, reads;
};

struct LateCopy {
  void* to;
  const void* from;
  std::size_t bytes;
};

// Of pinned memory, made, but nobody has waited for it.
struct UnwaitedCopy {
  const CUstream_st* stream;
  std::uint64_t moment;
  const std::byte* from;
  std::vector<std::byte> bytes;
};

struct Memory {
  std::byte* base = nullptr;
  std::size_t open = 0;  // bytes from base on that kernels may touch
  int accesses = 0;
  std::map<std::size_t, DeviceMemory> used;   // by offset
  std::map<std::size_t, std::size_t> unused;  // offset -> bytes
  std::set<const void*> pinned;
  std::vector<LateCopy> late_copies;
  std::vector<UnwaitedCopy> unwaited;
  std::size_t kept = 0, threshold = 0;  // of the pool: freed bytes, and how many may stay
  std::size_t in_use = 0, peak = 0, size = number_from("ESPALIER_EMULATED_MEMORY", std::size_t{8} << 30);

  Memory() {
    // Where copies are compared with those of another process, addresses are the same.
    void* const place =
        reinterpret_cast<void*>(std::getenv(kCopies) == nullptr ? 0 : std::uintptr_t{0x200000000000});
    void* range =
        mmap(place, kReserved + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) std::abort();
    base = static_cast<std::byte*>(range) + (kPage - reinterpret_cast<std::uintptr_t>(range) % kPage) % kPage;
    // Large pages where the kernel has some: access to few is given and taken sooner than to many.
    madvise(base, kReserved, MADV_HUGEPAGE);
    unused[kAlignment] = kReserved - kAlignment;  // a gap before the first array
  }
};
Memory& memory() {
  static Memory of_process;
  return of_process;
}

// Of the pages of device memory, where the processor has such keys: access is then taken and given
// by a register of the thread, not by a call of the kernel. -1: it has none.
int protection_key() {
  static const int of_process = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  return of_process;
}
void give_access(bool given) {
  auto& m = memory();
  if (m.open == 0) return;
  const int failed = protection_key() >= 0
                         ? pkey_set(protection_key(), given ? 0 : PKEY_DISABLE_ACCESS)
                         : mprotect(m.base, m.open, given ? PROT_READ | PROT_WRITE : PROT_NONE);
  if (failed != 0) std::abort();
}
void open_until(std::size_t bytes) {
  auto& m = memory();
  watch::opened(m.base + m.open, bytes - m.open);
  m.open = bytes;
  if (pkey_mprotect(m.base, m.open, PROT_READ | PROT_WRITE, protection_key()) != 0) std::abort();
}

std::recursive_mutex& turns() {
  static std::recursive_mutex of_process;
  return of_process;
}

}  // namespace

Turn::Turn() {
  watch::pass_over_host();
  turns().lock();
}
Turn::~Turn() {
  turns().unlock();
}

DeviceAccess::DeviceAccess() {
  auto& m = memory();
  if (m.accesses++ == 0) give_access(true);
  for (const auto& copy : m.late_copies) std::memcpy(copy.to, copy.from, copy.bytes);
  m.late_copies.clear();
}
DeviceAccess::~DeviceAccess() {
  if (--memory().accesses == 0) give_access(false);
}

std::size_t number_from(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

bool refuses(const char* call) {
  const char* refused = std::getenv("ESPALIER_EMULATED_REFUSAL");
  // Call: maybe ..._v2.
  return refused != nullptr && std::strncmp(refused, call, std::strlen(refused)) == 0;
}

int bus_of(int device) {
  return device / static_cast<int>(number_from("ESPALIER_EMULATED_SLICES", 1)) + 1;
}

const void* device_memory_begin() {
  return memory().base;
}
bool is_device_memory(const void* pointer) {
  const auto* at = static_cast<const std::byte*>(pointer);
  return at >= memory().base && at < memory().base + kReserved;
}

bool is_pinned(const void* pointer) {
  const Turn turn;
  for (const void* begin : memory().pinned) {  // pinned arrays are few
    const auto* header = static_cast<const std::size_t*>(begin) - 8;
    if (pointer >= begin && pointer <= static_cast<const std::byte*>(begin) + *header) return true;
  }
  return false;
}

bool good_argument(const void* pointer) {
  if (pointer == nullptr || is_device_memory(pointer) || is_pinned(pointer)) return true;
  std::fprintf(stderr, "emulated CUDA: a kernel is given a pointer to pageable host memory\n");
  return false;
}

}  // namespace espalier_emulation

using namespace espalier_emulation;

namespace {
thread_local cudaError_t last_error = cudaSuccess;
thread_local int device_of_thread = 0;
int version_of_runtime() {
  return static_cast<int>(number_from("ESPALIER_EMULATED_RUNTIME", 13000));
}
}  // namespace
cudaError_t espalier_emulation::note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

struct CUstream_st {
  int device = device_of_thread;
  std::thread::id thread = std::this_thread::get_id();
  std::uint64_t copied = 0;                          // the moment of its last copy that nobody has
                                                     // waited for
  std::map<const CUstream_st*, std::uint64_t> seen;  // until when it has waited for others
  StreamOrder order;
};
struct CUevent_st {
  int device = device_of_thread;
  std::chrono::steady_clock::time_point time;
  CUstream_st* stream = nullptr;
  std::uint64_t moment = 0;
  watch::Moment recorded;
};
struct CUmemPoolHandle_st {};

namespace {

struct Delivery {
  CUstream_st* stream;
  std::uint64_t moment;
  std::byte* to;
  std::vector<std::byte> data;
};
std::vector<Delivery> deliveries;
std::uint64_t moments = 0;
std::set<CUstream_st*> streams;
std::map<const CUstream_st*, std::uint64_t> completed;  // until when the host has waited for them

// Of those who are not of the program and have none.
CUstream_st* default_stream() {
  static CUstream_st of_process;
  return &of_process;
}

// The host comes behind what the stream did.
void wait_for(StreamOrder& order) {
  if (!watch::kRaces) return;
  order.begin();
  order.done.release_alone();
  watch::Strand::leave();
  order.done.acquire();
}

// Of what is copied to the host, a line each: bytes and their digest.
class Copies {
 public:
  void note(const void* from, std::size_t bytes) {
    if (file_ == nullptr) return;
    std::uint64_t digest = 14695981039346656037u;
    for (std::size_t k = 0; k < bytes; ++k)
      digest = (digest ^ static_cast<const unsigned char*>(from)[k]) * 1099511628211u;
    std::fprintf(file_, "%zu bytes: %016llx\n", bytes, static_cast<unsigned long long>(digest));
    std::fflush(file_);
  }

 private:
  static std::FILE* open() {
    const char* folder = std::getenv(kCopies);
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    return folder == nullptr
               ? nullptr
               : std::fopen((std::string(folder) + "/copies-" + (rank == nullptr ? "0" : rank)).c_str(), "a");
  }
  std::FILE* file_ = open();
};
Copies& copies() {
  static Copies of_process;
  return of_process;
}

void give_back(std::size_t keep) {
  memory().kept = std::min(memory().kept, keep);
}

template <class Which>
void end_copies(Which which) {
  std::erase_if(memory().unwaited, [&](const UnwaitedCopy& copy) {
    if (!which(copy)) return false;
    if (std::memcmp(copy.from, copy.bytes.data(), copy.bytes.size()) != 0) {
      std::fprintf(stderr, "emulated CUDA: pinned memory was changed while a copy from it was under way\n");
      std::abort();
    }
    return true;
  });
}

// The host has waited so far.
void complete_until(const CUstream_st* stream, std::uint64_t moment) {
  completed[stream] = std::max(completed[stream], moment);
  give_back(memory().threshold);
  end_copies([&](const UnwaitedCopy& copy) { return copy.stream == stream && copy.moment <= moment; });
}

bool has_waited(CUstream_st* stream, const Uses& uses) {
  return std::all_of(uses.begin(), uses.end(), [&](const auto& use) {
    const auto& [other, moment] = use;
    return other == stream || moment <= std::max(stream->seen[other], completed[other]);
  });
}

DeviceMemory* array_of(const void* pointer) {
  auto& used = memory().used;
  if (!is_device_memory(pointer)) return nullptr;
  const auto after =
      used.upper_bound(static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - memory().base));
  return after == used.begin() ? nullptr : &std::prev(after)->second;
}

void deliver_until(const CUstream_st* stream, std::uint64_t moment) {
  if (deliveries.empty()) return;
  const DeviceAccess access;
  std::erase_if(deliveries, [&](const Delivery& d) {
    if (d.stream != stream || d.moment > moment) return false;
    if (!d.data.empty()) std::memcpy(d.to, d.data.data(), d.data.size());
    return true;
  });
}

// [begin, begin + bytes) is freed.
void expect_no_delivery_to(const std::byte* begin, std::size_t bytes) {
  for (const auto& d : deliveries)
    if (d.to < begin + bytes && begin < d.to + d.data.size()) {
      std::fprintf(stderr, "emulated CUDA: memory is freed that another GPU still sends to\n");
      std::abort();
    }
}

}  // namespace

StreamOrder& espalier_emulation::order_of(CUstream_st* stream) {
  return (stream == nullptr ? default_stream() : stream)->order;
}
void espalier_emulation::note_read(CUstream_st* stream, const void* begin, std::size_t bytes) {
  if (!watch::kRaces || !is_device_memory(begin)) return;
  order_of(stream).begin();
  watch::reads(begin, bytes);
  watch::Strand::leave();
}
void espalier_emulation::note_write(CUstream_st* stream, void* begin, std::size_t bytes) {
  if (!watch::kRaces || !is_device_memory(begin)) return;
  order_of(stream).begin();
  watch::writes(begin, bytes);
  watch::Strand::leave();
}

bool espalier_emulation::may_read(const void* pointer, cudaStream_t stream) {
  const Turn turn;
  auto* const array = array_of(pointer);
  if (array == nullptr || stream == nullptr) return true;
  if (!has_waited(stream, array->writes)) {
    std::fprintf(stderr, "emulated CUDA: an array is read on a stream that has not waited for its writer\n");
    return false;
  }
  array->reads[stream] = ++moments;
  return true;
}
bool espalier_emulation::may_write(const void* pointer, cudaStream_t stream) {
  const Turn turn;
  auto* const array = array_of(pointer);
  if (array == nullptr || stream == nullptr) return true;
  if (!has_waited(stream, array->writes) || !has_waited(stream, array->reads)) {
    std::fprintf(stderr,
                 "emulated CUDA: an array is written on a stream that has not waited for its users\n");
    return false;
  }
  array->reads.clear();
  array->writes = {{stream, ++moments}};
  return true;
}
bool espalier_emulation::is_of_this_device(cudaStream_t stream) {
  return stream == nullptr || stream->device == device_of_thread;
}
void espalier_emulation::deliver_later(CUstream_st* stream, void* to, std::vector<std::byte> data) {
  const Turn turn;
  note_write(stream, to, data.size());  // work of the stream here, whenever it arrives
  deliveries.push_back({stream, ++moments, static_cast<std::byte*>(to), std::move(data)});
}
void espalier_emulation::deliver(CUstream_st* stream) {
  const Turn turn;
  deliver_until(stream, moments);
}
bool espalier_emulation::has_seen_all_copies(CUstream_st* stream) {
  const Turn turn;
  return std::all_of(streams.begin(), streams.end(), [&](const CUstream_st* other) {
    return other == stream || other->thread != stream->thread || other->copied <= stream->seen[other];
  });
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    default:
      return "invalid argument";
  }
}
cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return last_error;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = static_cast<int>(number_from("ESPALIER_EMULATED_DRIVER", 13000));
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = version_of_runtime();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver / 1000 < version_of_runtime() / 1000) return note(cudaErrorInsufficientDriver);
  const auto gpus = static_cast<int>(number_from("ESPALIER_EMULATED_GPUS", 1));
  if (gpus == 0) return note(cudaErrorNoDevice);
  *count = gpus;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || device >= count) return note(cudaErrorInvalidDevice);
  device_of_thread = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = device_of_thread;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated GPU");
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  properties->totalGlobalMem = memory().size;
  properties->multiProcessorCount = 4 + static_cast<int>(number_from("ESPALIER_EMULATED_UNLIKE", 0)) * device;
  const auto capability = static_cast<int>(number_from("ESPALIER_EMULATED_GPU", 90));
  properties->major = capability / 10;
  properties->minor = capability % 10;
  properties->l2CacheSize = 1 << 20;
  properties->sharedMemPerBlock = 48 << 10;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int length, int device) {
  std::snprintf(bus_id, static_cast<std::size_t>(length), "0000:%02X:00.0", bus_of(device));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Turn turn;
  *stream = new CUstream_st;
  static unsigned made = 0;
  (*stream)->order.number = made++;
  streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Turn turn;
  deliver(stream);
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const DeviceAccess late_copies_are_made;
  deliver(stream);
  complete_until(stream, moments);
  wait_for(order_of(stream));
  if (stream != nullptr) stream->copied = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Turn turn;
  if (stream == nullptr && event->device != device_of_thread) {
    std::fprintf(stderr,
                 "emulated CUDA: the default stream of GPU %d waits for GPU %d; of which is it meant?\n",
                 device_of_thread, event->device);
    return note(cudaErrorInvalidResourceHandle);
  }
  if (stream == nullptr) stream = default_stream();
  deliver_until(event->stream, event->moment);
  auto& seen = stream->seen[event->stream];
  seen = std::max(seen, event->moment);
  if (watch::kRaces) {
    stream->order.begin();
    event->recorded.acquire();
    watch::Strand::leave();
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const DeviceAccess late_copies_are_made;
  while (!deliveries.empty()) deliver(deliveries.front().stream);
  for (auto* stream : streams) {
    complete_until(stream, moments);
    wait_for(stream->order);
  }
  wait_for(default_stream()->order);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Turn turn;
  if (stream == nullptr) stream = default_stream();
  if (event->device != stream->device) return note(cudaErrorInvalidResourceHandle);
  event->time = std::chrono::steady_clock::now();
  event->stream = stream;
  event->moment = moments;
  if (watch::kRaces) {
    stream->order.begin();
    event->recorded.release_alone();
    watch::Strand::leave();
  }
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const DeviceAccess late_copies_are_made;
  deliver_until(event->stream, event->moment);
  complete_until(event->stream, event->moment);
  event->recorded.acquire();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const Turn turn;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  static CUmemPoolHandle_st of_process;
  *pool = &of_process;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  const Turn turn;
  if (attribute != cudaMemPoolAttrReleaseThreshold) return note(cudaErrorInvalidValue);
  std::memcpy(&memory().threshold, value, sizeof memory().threshold);
  if (std::getenv("ESPALIER_EMULATED_WORDS") != nullptr)
    std::fprintf(stderr, "emulated CUDA: the pool keeps %zu bytes\n", memory().threshold);
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  const Turn turn;
  const auto& m = memory();
  const bool high = attribute == cudaMemPoolAttrUsedMemHigh || attribute == cudaMemPoolAttrReservedMemHigh;
  const bool reserved = attribute == cudaMemPoolAttrReservedMemCurrent;
  const std::uint64_t bytes = high ? m.peak : m.in_use + (reserved ? m.kept : 0);
  std::memcpy(value, &bytes, sizeof bytes);
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t keep) {
  const Turn turn;
  give_back(keep);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Turn turn;
  *total = memory().size;
  *free = memory().size - memory().in_use - memory().kept;
  return cudaSuccess;
}

namespace {
void fill(std::byte* begin, std::size_t bytes) {
  static const int byte = static_cast<int>(number_from("ESPALIER_EMULATED_FILL", 0xff));
  const DeviceAccess access;
  std::memset(begin, byte, std::min(bytes, kFilled));
}
}  // namespace

cudaError_t cudaMalloc(void** allocated, std::size_t bytes) {
  const Turn turn;
  auto& m = memory();
  const std::size_t need =
      (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;  // a gap behind each array
  if (m.in_use + need > m.size) return note(cudaErrorMemoryAllocation);
  for (auto at = m.unused.begin(); at != m.unused.end(); ++at) {
    if (at->second < need) continue;
    const auto [offset, size] = *at;
    m.unused.erase(at);
    if (size > need) m.unused[offset + need] = size - need;
    m.used[offset] = {need, {}, {}};
    m.in_use += need;
    m.peak = std::max(m.peak, m.in_use);
    if (offset + need > m.open) {
      const DeviceAccess closed_again;  // what was open stays as it is
      open_until((offset + need + kPage - 1) / kPage * kPage);
    }
    watch::allocated(m.base + offset, need, need);
    fill(m.base + offset, need);
    watch::allocated(m.base + offset, bytes, need);
    *allocated = m.base + offset;
    return cudaSuccess;
  }
  return note(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* allocated) {
  const Turn turn;
  if (allocated == nullptr) return cudaSuccess;
  auto& m = memory();
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(allocated) - m.base);
  const auto found = m.used.find(offset);
  if (found == m.used.end()) {
    std::fprintf(stderr, "emulated CUDA: memory is freed that was not allocated\n");
    std::abort();
  }
  const std::size_t size = found->second.bytes;
  expect_no_delivery_to(m.base + offset, size);
  watch::allocated(m.base + offset, size, size);
  fill(m.base + offset, size);
  watch::freed(m.base + offset, size);
  m.used.erase(found);
  m.in_use -= size;
  auto at = m.unused.emplace(offset, size).first;
  if (const auto next = std::next(at); next != m.unused.end() && at->first + at->second == next->first) {
    at->second += next->second;
    m.unused.erase(next);
  }
  if (at != m.unused.begin())
    if (const auto before = std::prev(at); before->first + before->second == at->first) {
      before->second += at->second;
      m.unused.erase(at);
    }
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** allocated, std::size_t bytes, cudaStream_t stream) {
  const Turn turn;
  const auto before = memory().in_use;
  const auto error = cudaMalloc(allocated, bytes);
  give_back(memory().kept - std::min(memory().kept, memory().in_use - before));  // or is used again
  return error == cudaSuccess && !may_write(*allocated, stream) ? note(cudaErrorInvalidValue) : error;
}
cudaError_t cudaFreeAsync(void* allocated, cudaStream_t stream) {
  const Turn turn;
  if (!may_write(allocated, stream)) std::abort();
  const auto before = memory().in_use;
  const auto error = cudaFree(allocated);
  memory().kept += before - memory().in_use;
  return error;
}
cudaError_t cudaHostAlloc(void** allocated, std::size_t bytes, unsigned) {
  auto* block = static_cast<std::size_t*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
  if (block == nullptr) return note(cudaErrorMemoryAllocation);
  *block = bytes;
  *allocated = block + 8;
  const Turn turn;
  memory().pinned.insert(*allocated);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* allocated) {
  if (allocated == nullptr) return cudaSuccess;
  const DeviceAccess late_copies_are_made;
  for (const auto& copy : memory().unwaited)
    if (const auto* const begin = static_cast<const std::byte*>(allocated);
        copy.from >= begin && copy.from <= begin + static_cast<std::size_t*>(allocated)[-8]) {
      std::fprintf(stderr, "emulated CUDA: pinned memory is freed while a copy from it is under way\n");
      std::abort();
    }
  memory().pinned.erase(allocated);
  std::free(static_cast<std::size_t*>(allocated) - 8);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const Turn turn;
  deliver(stream);
  if (stream != nullptr) stream->copied = ++moments;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice,
             to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if (kind != cudaMemcpyDefault &&
      (is_device_memory(from) != from_device || is_device_memory(to) != to_device))
    return note(cudaErrorInvalidValue);
  if (bytes > 0 && (!may_read(from, stream) || !may_write(to, stream))) return note(cudaErrorInvalidValue);
  const DeviceAccess access;
  if (!is_device_memory(to) || is_device_memory(from)) {
    // What the stream writes comes behind what it read.
    end_copies([&](const UnwaitedCopy& copy) {
      const auto* const begin = static_cast<const std::byte*>(to);
      return copy.stream == stream && copy.from < begin + bytes && begin < copy.from + copy.bytes.size();
    });
    std::memmove(to, from, bytes);
    note_read(stream, from, bytes);
    note_write(stream, to, bytes);
    if (!is_device_memory(to)) copies().note(from, bytes);
    return cudaSuccess;
  }
  note_write(stream, to, bytes);
  memory().late_copies.push_back({to, from, bytes});
  const auto* const source = static_cast<const std::byte*>(from);
  if (is_pinned(source) != is_pinned(source + bytes)) {
    std::fprintf(stderr, "emulated CUDA: a copy goes beyond pinned memory\n");
    std::abort();
  }
  if (is_pinned(source)) memory().unwaited.push_back({stream, moments, source, {source, source + bytes}});
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int byte, std::size_t bytes, cudaStream_t stream) {
  const Turn turn;
  if (bytes > 0 && !may_write(at, stream)) return note(cudaErrorInvalidValue);
  const DeviceAccess access;
  std::memset(at, byte, bytes);
  note_write(stream, at, bytes);
  return cudaSuccess;
}

#include "espalier/base/cuda.hpp"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusparse.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "espalier/base/device_array.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/stage_clock.hpp"
#include "espalier/base/watchdog.hpp"

namespace espalier {

namespace {

constexpr std::size_t kBlasWorkspace = std::size_t{32} << 20;

// What device memory is allocated from, and the stream of the first thread that took the GPU. One
// process takes one GPU.
struct Memory {
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  std::thread::id first;
};
Memory& memory() {
  static Memory of_process;
  return of_process;
}

// The stream of another thread that uses the GPU; a Cuda that it took keeps it, too.
using Stream = std::shared_ptr<CUstream_st>;
thread_local Stream other_stream;

cudaStream_t compute_stream() {
  return other_stream ? other_stream.get() : memory().stream;
}

// This thread has one from here on.
Stream stream_of_thread() {
  if (std::this_thread::get_id() == memory().first) return {Stream(), memory().stream};
  if (!other_stream) {
    cudaStream_t made = nullptr;
    ESPALIER_CUDA(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    // Lets it end its work.
    other_stream = {made, [](cudaStream_t stream) { cudaStreamDestroy(stream); }};
  }
  return other_stream;
}

// The first stream waits for what the second was given so far.
void wait_in_order(cudaStream_t later, cudaStream_t earlier) {
  cudaEvent_t given = nullptr;
  ESPALIER_CUDA(cudaEventCreateWithFlags(&given, cudaEventDisableTiming));
  ESPALIER_CUDA(cudaEventRecord(given, earlier));
  ESPALIER_CUDA(cudaStreamWaitEvent(later, given, 0));
  ESPALIER_CUDA(cudaEventDestroy(given));
}

// What the driver has left and what the pool holds without using it.
std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  ESPALIER_CUDA(cudaMemGetInfo(&free, &total));
  std::uint64_t reserved = 0, used = 0;
  ESPALIER_CUDA(cudaMemPoolGetAttribute(memory().pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  ESPALIER_CUDA(cudaMemPoolGetAttribute(memory().pool, cudaMemPoolAttrUsedMemCurrent, &used));
  return free + (reserved - used);
}

std::size_t total_bytes() {
  std::size_t free = 0, total = 0;
  ESPALIER_CUDA(cudaMemGetInfo(&free, &total));
  return total;
}

// The pool keeps so many bytes that nobody uses; the rest goes back when a stream is waited for.
void keep_freed(std::uint64_t bytes) {
  ESPALIER_CUDA(cudaMemPoolSetAttribute(memory().pool, cudaMemPoolAttrReleaseThreshold, &bytes));
}

// The architectures that this program has code for: 800 is compute capability 8.0.
constexpr int kArchitectures[] = {__CUDA_ARCH_LIST__};

// Machine code runs on GPUs of its major version, from its minor one on. On others the driver
// compiles the program's PTX.
bool has_machine_code(int architecture) {
  return std::ranges::any_of(
      kArchitectures, [&](int ours) { return ours / 100 == architecture / 100 && ours <= architecture; });
}

struct CudaVersions {
  int driver = 0, program = 0;  ///< 12040 is 12.4; no driver: 0

  CudaVersions() {
    ESPALIER_CUDA(cudaDriverGetVersion(&driver));
    ESPALIER_CUDA(cudaRuntimeGetVersion(&program));
  }
  std::string refusal() const {
    return fmt::format(
        "the driver is for CUDA {}.{}, and this program for CUDA {}.{}: it needs a newer driver, or "
        "NVIDIA's package cuda-compat-{}-{}, or to be built with an older CUDA",
        driver / 1000, driver / 10 % 100, program / 1000, program / 10 % 100, program / 1000,
        program / 10 % 100);
  }
};

// Why this machine's driver cannot run this program's CUDA; empty where it can: a driver runs the
// machine code of its major version or an earlier one.
std::string refusal_of_driver() {
  const CudaVersions cuda;
  if (cuda.driver == 0) return "no driver";
  return cuda.driver / 1000 >= cuda.program / 1000 ? "" : cuda.refusal();
}

// Why this program cannot run on such a GPU; empty where it can. PTX is compiled by drivers of its
// own version and later ones only.
std::string refusal_of_gpu(const cudaDeviceProp& gpu) {
  const int architecture = 100 * gpu.major + 10 * gpu.minor;
  const int oldest = std::ranges::min(kArchitectures);
  if (architecture < oldest)
    return fmt::format("{} has compute capability {}.{}, and this program is for {}.{} and later", gpu.name,
                       gpu.major, gpu.minor, oldest / 100, oldest / 10 % 10);
  const CudaVersions cuda;
  if (has_machine_code(architecture) || cuda.driver / 10 >= cuda.program / 10) return "";
  return fmt::format("{} has compute capability {}.{}, for which the driver must compile this program: {}",
                     gpu.name, gpu.major, gpu.minor, cuda.refusal());
}

thread_local const char* purpose_of_memory = "arrays";

// Nothing unwinds where other ranks go on: what is taken down may wait for them, and they for this
// one.
[[noreturn]] void memory_is_full(const std::string& message) {
  if (failure_context().ranks > 1) fail_job(ExitCode::kMemory, message);
  throw UserError(ExitCode::kMemory, message);
}

double in_gib(std::size_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(std::size_t{1} << 30);
}

}  // namespace

void check_cuda(int error, const char* what, const char* file, int line) {
  if (error == cudaSuccess) return;
  fail_check(file, line, what,
             fmt::format("CUDA: {}; an error of an earlier kernel may show here: ESPALIER_CUDA_SYNC=1 in the "
                         "environment names the one",
                         cudaGetErrorString(static_cast<cudaError_t>(error))));
}

SparseProducts sparse_products_of(const std::string& name) {
  constexpr Named<SparseProducts> kAll[] = {{"own", SparseProducts::kOwn},
                                            {"cusparse", SparseProducts::kCusparse}};
  return entry_named(kAll, name, "train.sparse_products =").value;
}

int count_gpus(std::string* why) {
  if (const auto refusal = refusal_of_driver(); !refusal.empty()) {
    if (why != nullptr) *why = refusal;
    return 0;
  }
  int count = 0;
  const auto error = cudaGetDeviceCount(&count);
  cudaDeviceProp first;
  if (error == cudaSuccess && count > 0 && cudaGetDeviceProperties(&first, 0) == cudaSuccess) {
    const auto refusal = refusal_of_gpu(first);
    if (why != nullptr) *why = refusal;
    return refusal.empty() ? count : 0;
  }
  cudaGetLastError();  // the error is not one of a later call
  if (why != nullptr) *why = error == cudaSuccess ? "the driver lists no device" : cudaGetErrorString(error);
  return 0;
}

struct Cuda::State {
  int device = 0;
  Precision precision = Precision::kFp32;
  SparseProducts sparse_products = SparseProducts::kOwn;
  bool synchronous = false;
  std::string name;
  std::thread::id taker;
  Stream compute;  // of the taker
  cudaStream_t communication = nullptr;
  cudaEvent_t computed = nullptr, communicated = nullptr;
  cublasHandle_t blas = nullptr;
  cusparseHandle_t sparse = nullptr;
  void* blas_workspace = nullptr;

  ~State() {
    if (communication == nullptr) return;  // there was no such GPU
    // On the way out after an error the streams may wait for ranks that are elsewhere.
    if (std::uncaught_exceptions() > 0) return;
    cudaStreamSynchronize(compute.get());
    cudaStreamSynchronize(communication);
    cublasDestroy(blas);
    cusparseDestroy(sparse);
    cudaFree(blas_workspace);
    cudaEventDestroy(computed);
    cudaEventDestroy(communicated);
    cudaStreamDestroy(communication);
    // The compute stream stays, of the first taker: arrays that outlive the last Cuda are given
    // back on it.
  }

  // What one thread alone may use.
  void expect_taker(const char* what) const {
    ESPALIER_CHECK(std::this_thread::get_id() == taker,
                   "{} is of the thread that took the GPU, and another one uses it", what);
  }
};

Cuda::Cuda(int device, Precision precision, SparseProducts products) : state_(std::make_shared<State>()) {
  std::string why = "too few";
  const int gpus = count_gpus(&why);
  if (device < 0 || device >= gpus)
    usage_error(
        "there is no GPU {} here ({} seen{}{}); use run.device = \"cpu\", or ask the batch system for GPUs",
        device, gpus, gpus == 0 ? ": " : "", gpus == 0 ? why : "");
  auto& s = *state_;
  s.device = device;
  s.precision = precision;
  s.sparse_products = products;
  const char* synchronous = std::getenv("ESPALIER_CUDA_SYNC");
  s.synchronous = synchronous != nullptr && std::strcmp(synchronous, "0") != 0;
  ESPALIER_CUDA(cudaSetDevice(device));
  cudaDeviceProp properties;
  ESPALIER_CUDA(cudaGetDeviceProperties(&properties, device));
  s.name = properties.name;
  auto& m = memory();
  // Of all Cudas of a thread, as arrays are given back in its order.
  if (m.stream == nullptr) {
    ESPALIER_CUDA(cudaStreamCreateWithFlags(&m.stream, cudaStreamNonBlocking));
    m.first = std::this_thread::get_id();
  }
  s.taker = std::this_thread::get_id();
  s.compute = stream_of_thread();
  ESPALIER_CUDA(cudaStreamCreateWithFlags(&s.communication, cudaStreamNonBlocking));
  ESPALIER_CUDA(cudaEventCreateWithFlags(&s.computed, cudaEventDisableTiming));
  ESPALIER_CUDA(cudaEventCreateWithFlags(&s.communicated, cudaEventDisableTiming));

  // The pool keeps what was freed: a training step allocates from memory that the process has.
  ESPALIER_CUDA(cudaDeviceGetDefaultMemPool(&m.pool, device));
  keep_freed(~std::uint64_t{0});

  ESPALIER_CHECK(cublasCreate(&s.blas) == CUBLAS_STATUS_SUCCESS, "cuBLAS does not start on GPU {}", device);
  ESPALIER_CHECK(cusparseCreate(&s.sparse) == CUSPARSE_STATUS_SUCCESS, "cuSPARSE does not start on GPU {}",
                 device);
  ESPALIER_CHECK(cublasSetStream(s.blas, s.compute.get()) == CUBLAS_STATUS_SUCCESS,
                 "cuBLAS refuses a stream of GPU {}", device);
  ESPALIER_CHECK(cusparseSetStream(s.sparse, s.compute.get()) == CUSPARSE_STATUS_SUCCESS,
                 "cuSPARSE refuses a stream of GPU {}", device);
  // A workspace of its own makes the results of one handle the same from run to run. After the
  // stream, which takes it away.
  ESPALIER_CUDA(cudaMalloc(&s.blas_workspace, kBlasWorkspace));
  ESPALIER_CHECK(cublasSetWorkspace(s.blas, s.blas_workspace, kBlasWorkspace) == CUBLAS_STATUS_SUCCESS,
                 "cuBLAS refuses a workspace of {} bytes; without, its bits may differ from run to run",
                 kBlasWorkspace);
}

void Cuda::use() const {
  ESPALIER_CUDA(cudaSetDevice(state_->device));
  const auto mine = stream_of_thread();
  if (mine != state_->compute) wait_in_order(mine.get(), state_->compute.get());
}

const std::string& Cuda::name() const {
  return state_->name;
}
std::string Cuda::kind() const {
  cudaDeviceProp properties;
  ESPALIER_CUDA(cudaGetDeviceProperties(&properties, state_->device));
  int version = 0;  // 130002
  ESPALIER_CHECK(cublasGetVersion(state_->blas, &version) == CUBLAS_STATUS_SUCCESS,
                 "cuBLAS does not say its version on GPU {}", state_->device);
  return fmt::format("{} ({} multiprocessors, cuBLAS {}.{}.{})", state_->name, properties.multiProcessorCount,
                     version / 10000, version / 100 % 100, version % 100);
}
Precision Cuda::precision() const {
  return state_->precision;
}
SparseProducts Cuda::sparse_products() const {
  return state_->sparse_products;
}
CUstream_st* Cuda::stream() const {
  return compute_stream();
}
CUstream_st* Cuda::communication_stream() const {
  state_->expect_taker("the communication stream");
  return state_->communication;
}
std::span<std::byte> Cuda::blas_workspace() const {
  return {static_cast<std::byte*>(state_->blas_workspace), kBlasWorkspace};
}

cublasContext* Cuda::blas() const {
  state_->expect_taker("cuBLAS");
  return state_->blas;
}
cusparseContext* Cuda::sparse() const {
  state_->expect_taker("cuSPARSE");
  return state_->sparse;
}

void Cuda::share_memory() const {
  keep_freed(0);
}

std::int64_t Cuda::free_memory() const {
  return static_cast<std::int64_t>(free_bytes());
}

std::int64_t Cuda::peak_memory() const {
  std::uint64_t peak = 0;
  ESPALIER_CUDA(cudaMemPoolGetAttribute(memory().pool, cudaMemPoolAttrUsedMemHigh, &peak));
  return static_cast<std::int64_t>(peak);
}

std::string Cuda::unique_id() const {
  cudaDeviceProp properties;
  ESPALIER_CUDA(cudaGetDeviceProperties(&properties, state_->device));
  return {properties.uuid.bytes, sizeof properties.uuid.bytes};
}

std::string Cuda::bus_id() const {
  char text[32] = {};
  ESPALIER_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, state_->device));
  return text;
}

void Cuda::communication_waits_for_compute() const {
  ESPALIER_CUDA(cudaEventRecord(state_->computed, stream()));
  ESPALIER_CUDA(cudaStreamWaitEvent(communication_stream(), state_->computed, 0));
}

void Cuda::compute_waits_for_communication() const {
  ESPALIER_CUDA(cudaEventRecord(state_->communicated, communication_stream()));
  ESPALIER_CUDA(cudaStreamWaitEvent(stream(), state_->communicated, 0));
}

void Cuda::synchronize() const {
  if (std::this_thread::get_id() == state_->taker)
    ESPALIER_CUDA(cudaStreamSynchronize(state_->communication));
  ESPALIER_CUDA(cudaStreamSynchronize(stream()));
}

void Cuda::launched(const char* launcher) const {
  if (!state_->synchronous) return;
  check_cuda(static_cast<int>(cudaStreamSynchronize(stream())), launcher, __FILE__, __LINE__);
}

int Cuda::device() const {
  return state_->device;
}

CudaGuest::CudaGuest(const Cuda& cuda) {
  ESPALIER_CUDA(cudaGetDevice(&before_));
  cuda.use();
}
CudaGuest::~CudaGuest() {
  cudaSetDevice(before_);
}

CudaHandover::CudaHandover(const Cuda& cuda) {
  ESPALIER_CUDA(cudaEventCreateWithFlags(&made_, cudaEventDisableTiming));
  ESPALIER_CUDA(cudaEventRecord(made_, cuda.stream()));
}
CudaHandover::~CudaHandover() {
  cudaEventDestroy(made_);
}
void CudaHandover::wait_for_arrays(const Cuda& cuda) const {
  ESPALIER_CUDA(cudaStreamWaitEvent(cuda.stream(), made_, 0));
}
void CudaHandover::let_read(CUstream_st* stream) {
  ESPALIER_CUDA(cudaStreamWaitEvent(stream, made_, 0));
  if (std::ranges::find(readers_, stream) == readers_.end()) readers_.push_back(stream);
}
void CudaHandover::wait_for_readers(const Cuda& cuda) {
  for (auto* const stream : readers_) wait_in_order(cuda.stream(), stream);
  readers_.clear();
}

ProfilerRange::ProfilerRange(const char* name) {
  nvtxRangePushA(name);
}
ProfilerRange::~ProfilerRange() {
  nvtxRangePop();
}

CudaMoment::CudaMoment(const Cuda&) {
  ESPALIER_CUDA(cudaEventCreate(&event_));
}
CudaMoment::~CudaMoment() {
  if (event_ != nullptr) cudaEventDestroy(event_);
}
CudaMoment::CudaMoment(CudaMoment&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
CudaMoment& CudaMoment::operator=(CudaMoment&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}
void CudaMoment::record(const Cuda& cuda) {
  ESPALIER_CUDA(cudaEventRecord(event_, cuda.stream()));
}
double CudaMoment::seconds_since(const CudaMoment& begin) const {
  float milliseconds = 0;
  ESPALIER_CUDA(cudaEventSynchronize(event_));
  ESPALIER_CUDA(cudaEventElapsedTime(&milliseconds, begin.event_, event_));
  return static_cast<double>(milliseconds) * 1e-3;
}

StageClock<Cuda>::Span& StageClock<Cuda>::begin(std::string_view name) {
  while (spans_.size() >= kMostUnread && spans_.front().ended) read_first();
  if (idle_.empty()) idle_.push_back({"", CudaMoment(cuda_), CudaMoment(cuda_)});
  auto& span = spans_.emplace_back(std::move(idle_.back()));
  idle_.pop_back();
  span.path = timers_.path_of(name);
  span.ended = false;
  note_stage(span.path);
  span.begin.record(cuda_);
  return span;
}

void StageClock<Cuda>::read_first() {
  auto& span = spans_.front();
  timers_.add(span.path, span.end.seconds_since(span.begin));
  idle_.push_back(std::move(span));
  spans_.pop_front();
}

void StageClock<Cuda>::collect() {
  while (!spans_.empty()) read_first();
}

DevicePurpose::DevicePurpose(const char* what) : before_(std::exchange(purpose_of_memory, what)) {}
DevicePurpose::~DevicePurpose() {
  purpose_of_memory = before_;
}

void* allocate_device(std::size_t bytes, Placement placement) {
  void* allocated = nullptr;
  ESPALIER_CHECK(memory().stream != nullptr, "device memory is asked for before a GPU was taken");
  auto error = placement == Placement::kDevice
                   ? cudaMallocAsync(&allocated, bytes, compute_stream())
                   : cudaHostAlloc(&allocated, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
  if (error == cudaErrorMemoryAllocation && placement == Placement::kDevice) {
    // The pool may hold enough in pieces that are too small: the driver gets them back, also those
    // that another thread's stream has yet to free, and is asked again.
    cudaGetLastError();
    cudaDeviceSynchronize();
    cudaMemPoolTrimTo(memory().pool, 0);
    error = cudaMallocAsync(&allocated, bytes, compute_stream());
  }
  if (error == cudaSuccess) return allocated;
  if (error != cudaErrorMemoryAllocation) ESPALIER_CUDA(error);
  cudaGetLastError();  // the error is not one of a later call
  if (placement == Placement::kHost)
    memory_is_full(
        fmt::format("{:.3f} GiB of pinned host memory cannot be had ({}); set graph.features_on = "
                    "\"device\", or use more ranks or nodes",
                    in_gib(bytes), purpose_of_memory));
  memory_is_full(
      fmt::format("the GPU is full: {:.3f} GiB were asked for ({}), {:.3f} GiB of {:.3f} GiB are free; lower "
                  "sampler.bulk or sampler.batch_size, set graph.features_on = \"host\", or use more GPUs",
                  in_gib(bytes), purpose_of_memory, in_gib(free_bytes()), in_gib(total_bytes())));
}

void free_device(void* allocated, Placement placement) noexcept {
  if (placement == Placement::kDevice) {
    cudaFreeAsync(allocated, compute_stream());
  } else if (std::uncaught_exceptions() == 0) {  // else see ~State
    cudaStreamSynchronize(compute_stream());     // kernels may still read it
    cudaFreeHost(allocated);
  }
}

void copy_bytes_to_host(const Cuda& cuda, const void* from, void* to, std::size_t bytes) {
  if (bytes > 0) ESPALIER_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda.stream()));
  ESPALIER_CUDA(cudaStreamSynchronize(cuda.stream()));
}

void copy_bytes_on_device(const Cuda& cuda, const void* from, void* to, std::size_t bytes) {
  if (bytes > 0) ESPALIER_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda.stream()));
}

void fill_bytes(const Cuda& cuda, void* memory, int byte, std::size_t bytes) {
  if (bytes > 0) ESPALIER_CUDA(cudaMemsetAsync(memory, byte, bytes, cuda.stream()));
}

}  // namespace espalier

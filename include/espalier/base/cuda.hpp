// The GPU of this process: its streams, its libraries, and what it says when something fails.
//
// Work is put on one stream and runs in order; a launcher returns at once. The host waits only
// where it reads a result (download, in base/device_array.hpp) or calls synchronize().
// Communication runs on a second stream, ordered against the first by events. A thread beside the
// one that took the GPU has a stream of its own, on which it computes, copies and allocates: use()
// orders it behind what the taker gave the GPU, and after synchronize() any thread may use
// what it made. The second stream, cuBLAS and cuSPARSE are the taker's. This header needs
// no CUDA header.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/execution.hpp"

struct CUstream_st;
struct CUevent_st;
struct cublasContext;
struct cusparseContext;

namespace espalier {

/// Who multiplies dense matrices by sparse ones: a kernel of our own, with the CPU's bits,
/// or cuSPARSE.
enum class SparseProducts { kOwn, kCusparse };

/// "own" or "cusparse".
SparseProducts sparse_products_of(const std::string& name);

/// How many GPUs this process sees and can use. With none, `why` (may be null) says what the driver
/// answered; it comes before any other call of CUDA, so that a driver older than this program's
/// CUDA is named, and nothing else fails first.
int count_gpus(std::string* why = nullptr);

/// A handle to the GPU; copies share it.
class Cuda {
 public:
  /// Takes GPU `device` of count_gpus() for this process. Throws UserError(kUsage) when there is
  /// no such GPU.
  explicit Cuda(int device, Precision precision = Precision::kFp32,
                SparseProducts products = SparseProducts::kOwn);

  /// Makes it the GPU of the calling thread too: launches and events need that, and the thread that
  /// took it has it. What another thread gives the GPU from here on sees what was given by the one
  /// that took it, so far.
  void use() const;

  /// Its number among count_gpus().
  int device() const;
  /// "NVIDIA H200".
  const std::string& name() const;
  /// "NVIDIA H200 (132 multiprocessors, cuBLAS 13.0.2)": GPUs of another kind may round products
  /// differently, as cuBLAS chooses its kernels by these.
  std::string kind() const;
  Precision precision() const;
  SparseProducts sparse_products() const;
  /// Bytes that may still be allocated.
  std::int64_t free_memory() const;
  /// From here on memory that is freed goes back to the driver, for other processes that share the
  /// GPU; without, it is kept for what is allocated next.
  void share_memory() const;
  /// The most bytes that arrays have taken at a time.
  std::int64_t peak_memory() const;
  /// 16 bytes that tell this GPU from all others of all nodes.
  std::string unique_id() const;
  /// Where it hangs on the PCIe bus of its node: "0000:3B:00.0".
  std::string bus_id() const;

  /// The compute stream of the calling thread.
  CUstream_st* stream() const;
  /// For transfers between GPUs that run beside kernels.
  CUstream_st* communication_stream() const;
  /// From here on the second stream waits for what the first was given so far; or the first for
  /// the second.
  void communication_waits_for_compute() const;
  void compute_waits_for_communication() const;

  /// Waits until all that the calling thread gave the GPU is done.
  void synchronize() const;

  cublasContext* blas() const;
  /// What cuBLAS takes for sums in between, of one product at a time.
  std::span<std::byte> blas_workspace() const;
  cusparseContext* sparse() const;

  /// After every launch: with ESPALIER_CUDA_SYNC=1 in the environment, waits for it, so that an
  /// error is that of `launcher`; otherwise returns at once.
  void launched(const char* launcher) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// While it lives a thread that is not ours, and may be at another GPU, uses this one.
class CudaGuest {
 public:
  explicit CudaGuest(const Cuda& cuda);
  ~CudaGuest();
  CudaGuest(const CudaGuest&) = delete;
  CudaGuest& operator=(const CudaGuest&) = delete;

 private:
  int before_ = 0;
};

/// Arrays that are made by one thread's stream and read by streams that are not ours.
class CudaHandover {
 public:
  /// Of all that the calling thread gave the GPU so far.
  explicit CudaHandover(const Cuda& cuda);
  ~CudaHandover();
  CudaHandover(const CudaHandover&) = delete;
  CudaHandover& operator=(const CudaHandover&) = delete;
  /// What the calling thread gives the GPU from here on finds the arrays made.
  void wait_for_arrays(const Cuda& cuda) const;
  /// What the stream is given from here on, which must live as long as the arrays. Null: the
  /// default stream of the GPU, which the calling thread uses.
  void let_read(CUstream_st* stream);
  /// What the calling thread gives the GPU from here on, to free them too, comes after all that
  /// those streams were given so far.
  void wait_for_readers(const Cuda& cuda);

 private:
  CUevent_st* made_ = nullptr;
  std::vector<CUstream_st*> readers_;
};

/// A moment of the compute stream. Measures what kernels take without waiting for them.
class CudaMoment {
 public:
  explicit CudaMoment(const Cuda& cuda);
  ~CudaMoment();
  CudaMoment(CudaMoment&&) noexcept;
  CudaMoment& operator=(CudaMoment&&) noexcept;
  /// Notes the moment that the compute stream has reached when all it was given so far is done.
  void record(const Cuda& cuda);
  /// Seconds from `begin` to this moment. Waits until both have passed.
  double seconds_since(const CudaMoment& begin) const;

 private:
  CUevent_st* event_ = nullptr;
};

/// A range of the profiler's timeline while it lives: of one kernel, one call of a library, one
/// communication. The profiler's header is long, so that only cuda.cu reads it.
class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

/// Ends the job with the error's words when `error`, a cudaError_t, is one: `what` names the call
/// or launcher.
void check_cuda(int error, const char* what, const char* file, int line);

}  // namespace espalier

#define ESPALIER_CUDA(call) ::espalier::check_cuda(static_cast<int>(call), #call, __FILE__, __LINE__)

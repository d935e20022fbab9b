// Copies of pageable memory to the GPU.
//
// CUDA may read the source of such a copy at once, through memory of the driver, or later, where
// the GPU follows the host's page tables (Grace Hopper): who then changes it sends the GPU
// something else. So bytes go through pinned memory of ours, a ring of pieces for each thread that
// uses the GPU, on every machine alike. Copies fill a piece one after another; an event says when
// the GPU has read the piece, and the host waits for it only when the ring has come round.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "espalier/base/device_array.hpp"

namespace espalier {

namespace {

constexpr std::size_t kPieces = 4, kStagedBytes = std::size_t{2} << 20, kPieceAlignment = 256;

struct PinnedPiece {
  DeviceArray<std::byte> memory{0, Placement::kHost};
  cudaEvent_t read = nullptr;  // recorded when the piece is full

  ~PinnedPiece() {
    if (read != nullptr) cudaEventDestroy(read);
  }
  void make() {
    if (read != nullptr) return;
    const DevicePurpose purpose("copies to the GPU");
    memory.resize(kStagedBytes);
    ESPALIER_CUDA(cudaEventCreateWithFlags(&read, cudaEventDisableTiming));
  }
};

class PinnedRing {
 public:
  /// At least 1 free byte behind what was taken before.
  std::byte* place(cudaStream_t stream) {
    if (taken_ < kStagedBytes) return pieces_[piece_].memory.data() + taken_;
    if (pieces_[piece_].read != nullptr) {
      ESPALIER_CUDA(cudaEventRecord(pieces_[piece_].read, stream));
      piece_ = (piece_ + 1) % kPieces;
    }
    pieces_[piece_].make();
    ESPALIER_CUDA(cudaEventSynchronize(pieces_[piece_].read));
    taken_ = 0;
    return pieces_[piece_].memory.data();
  }
  std::size_t room() const { return kStagedBytes - taken_; }
  void take(std::size_t bytes) {
    taken_ =
        std::min(kStagedBytes, (taken_ + bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment);
  }

 private:
  std::array<PinnedPiece, kPieces> pieces_;
  std::size_t piece_ = 0, taken_ = kStagedBytes;
};

}  // namespace

void copy_bytes_to_device(const Cuda& cuda, const void* from, void* to, std::size_t bytes) {
  static thread_local PinnedRing ring;
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  while (bytes > 0) {
    auto* const place = ring.place(cuda.stream());
    const auto now = std::min(bytes, ring.room());
    std::memcpy(place, source, now);
    ESPALIER_CUDA(cudaMemcpyAsync(target, place, now, cudaMemcpyDefault, cuda.stream()));
    ring.take(now);
    source += now, target += now, bytes -= now;
  }
}

}  // namespace espalier

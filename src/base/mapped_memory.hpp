// Memory of large Buffers, in whole huge pages. What is freed is kept for the next ones, as the
// system would clear its pages again: that took three quarters of an evaluation.
//
// Law: what is mapped, in use or kept, is never more than the most that was in use at once, or was
// mapped when the last block was given back.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace espalier {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

class MappedMemory {
 public:
  /// At a huge page; null where the system has none. Thread safe, as all of these.
  void* allocate(std::size_t bytes);
  /// What allocate() gave for as many bytes.
  void free(void* memory, std::size_t bytes) noexcept;
  /// Whether free() keeps memory for allocate().
  void keep(bool keep);
  /// All that is kept, to the system.
  void give_back();

  std::size_t in_use() const { return in_use_; }
  std::size_t kept() const { return kept_bytes_; }

 private:
  struct Block {
    std::byte* begin;
    std::size_t bytes;
  };
  std::byte* take_kept(std::size_t bytes);
  void keep_at_most(std::size_t bytes);

  std::mutex mutex_;
  std::vector<Block> kept_;
  std::size_t in_use_ = 0, most_in_use_ = 0, kept_bytes_ = 0;
  bool keeps_ = false;
};

}  // namespace espalier

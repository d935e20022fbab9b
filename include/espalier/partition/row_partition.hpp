// Which part owns which vertex: contiguous ranges of the id space, owner(v) by binary search in
// parts + 1 offsets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace espalier {

class RowPartition {
 public:
  RowPartition() = default;
  /// `offsets` ascends from 0 to n; part i owns [offsets[i], offsets[i+1]), possibly empty.
  explicit RowPartition(std::vector<std::int64_t> offsets) : offsets_(std::move(offsets)) {}

  int parts() const { return static_cast<int>(offsets_.size()) - 1; }
  std::int64_t rows() const { return offsets_.back(); }
  /// begin(parts()) is n.
  std::int64_t begin(int part) const { return offsets_[part]; }
  std::int64_t end(int part) const { return offsets_[part + 1]; }
  std::int64_t size(int part) const { return end(part) - begin(part); }
  int owner(std::int64_t vertex) const {
    return static_cast<int>(std::upper_bound(offsets_.begin(), offsets_.end(), vertex) - offsets_.begin()) -
           1;
  }
  /// Of every vertex: for few of them.
  std::vector<std::int32_t> owners() const {
    std::vector<std::int32_t> owners;
    for (int part = 0; part < parts(); ++part) owners.insert(owners.end(), size(part), part);
    return owners;
  }

 private:
  std::vector<std::int64_t> offsets_ = {0};
};

/// Parts of [0, rows) whose sizes differ by at most one; some are empty when there are more
/// parts than ids.
inline RowPartition block_partition(std::int64_t rows, int parts) {
  std::vector<std::int64_t> offsets(parts + 1);
  for (int i = 0; i <= parts; ++i) offsets[i] = rows / parts * i + std::min<std::int64_t>(i, rows % parts);
  return RowPartition(std::move(offsets));
}

}  // namespace espalier

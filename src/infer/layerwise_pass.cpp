// The pass on a CPU, and the file for rows of hidden layers.
#include "layerwise_pass.inl.hpp"

#include <algorithm>
#include <vector>

#include "espalier/comm/communicator.hpp"

namespace espalier {

SpillSink::SpillSink(const Grid& grid, const Ownership& ownership, const Ownership& shares,
                     const std::string& folder, std::int64_t width, RowSink* also)
    : grid_(grid), shares_(shares), width_(width), also_(also) {
  for (int r = grid.row() * grid.replication(); r < grid.world().rank(); ++r) begin_ += shares.size(r);
  agree(grid.world(), [&] { rows_.emplace(folder, ownership.size(grid.row()), width); });
}

// Unless something went wrong before.
template <class Work>
void SpillSink::attempt(Work work) {
  if (wrong_) return;
  try {
    work();
  } catch (const UserError& error) {
    wrong_ = error;
  }
}

void SpillSink::take(const Cpu& cpu, std::int64_t first, Matrix<float>& rows) {
  attempt([&] { rows_->write(begin_ + first, rows); });
  if (also_ != nullptr) also_->take(cpu, first, rows);
}

// Everyone's share, some rows at a time.
void SpillSink::exchange_shares(const std::string& label) {
  constexpr std::int64_t kBytesAtOnce = std::int64_t{8} << 20;
  const auto at_once = std::max<std::int64_t>(1, kBytesAtOnce / (4 * width_));
  const int first = grid_.row() * grid_.replication(), me = grid_.world().rank();
  std::int64_t most = 0;
  for (int r = first; r < first + grid_.replication(); ++r) most = std::max(most, shares_.size(r));
  Matrix<float> mine, all;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(grid_.replication()));
  for (std::int64_t from = 0; from < most; from += at_once) {
    const auto piece = [&](int rank) {
      return std::clamp<std::int64_t>(shares_.size(rank) - from, 0, at_once);
    };
    std::int64_t rows = 0;
    for (int r = 0; r < grid_.replication(); ++r) {
      counts[static_cast<std::size_t>(r)] = piece(first + r) * width_;
      rows += piece(first + r);
    }
    mine.resize(piece(me), width_);
    all.resize(rows, width_);
    attempt([&] { rows_->read(begin_ + from, mine); });
    grid_.row_comm().all_gather_v(std::span<const float>(mine.data), counts, all.data, label);
    std::int64_t begin = 0, place = 0;
    for (int r = first; r < first + grid_.replication(); ++r) {
      if (r != me) attempt([&] { rows_->write(begin + from, {piece(r), width_, all.row(place)}); });
      begin += shares_.size(r);
      place += piece(r);
    }
  }
}

std::shared_ptr<const DiskRows> SpillSink::gathered(const std::string& label) {
  if (grid_.replication() > 1) exchange_shares(label);
  agree(grid_.world(), [&] {
    if (wrong_) throw UserError(*wrong_);
  });
  return rows_->release();
}

template class LayerwisePassOn<Cpu>;

}  // namespace espalier

// A matrix that all ranks have together, as a checkpoint sees it: which of its rows this rank
// saves, and how any of those are read, block by block. So nobody needs memory for all of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/row_range.hpp"

namespace espalier {

struct StateTensor {
  std::string name;                    ///< "weights/layer1.bias"
  std::int64_t rows = 0, columns = 0;  ///< of the whole, the same on every rank
  /// The rows that are this rank's to save, ascending. Those of all ranks are all rows, each once:
  /// one even_range of each where every rank has them all, for example.
  std::vector<RowRange> mine = {};
  /// read(range, to): rows [range) to `to`, [range.size() * columns] of the host. Of a part of one
  /// range of `mine` where it is to be saved; of any rows where it was read from a checkpoint (then
  /// it throws UserError(kInput), not collectively). Valid as long as what it reads from is.
  std::function<void(RowRange, float*)> read = {};
  /// Are they words of 32 bits, uint32 in a file, whose bits those floats are?
  bool words = false;

  std::int64_t size() const { return rows * columns; }
  /// visit(range, numbers) for [rows) in pieces: rows [range) at `numbers`, until it returns.
  template <class Visit>
  void for_each_piece(RowRange of, const Visit& visit) const {
    constexpr std::int64_t kNumbersAtOnce = std::int64_t{1} << 20;
    if (columns == 0) return;
    const auto step = std::max<std::int64_t>(1, kNumbersAtOnce / columns);
    Buffer<float> numbers;
    for (auto begin = of.begin; begin < of.end; begin += step) {
      const RowRange piece = {begin, std::min(begin + step, of.end)};
      numbers.resize(static_cast<std::size_t>(piece.size() * columns));
      read(piece, numbers.data());
      visit(piece, std::as_const(numbers));
    }
  }
  /// The same of all rows that are mine.
  template <class Visit>
  void for_each_piece_of_mine(const Visit& visit) const {
    for (const auto& range : mine) for_each_piece(range, visit);
  }
  /// All rows, where read can give them.
  Buffer<float> all() const {
    Buffer<float> values(static_cast<std::size_t>(size()));
    if (size() > 0) read({0, rows}, values.data());
    return values;
  }
};

/// One whose rows are all here.
inline StateTensor kept_tensor(std::string name, std::int64_t rows, std::int64_t columns,
                               Buffer<float> values) {
  const auto kept = std::make_shared<const Buffer<float>>(std::move(values));
  return {std::move(name), rows, columns, {{0, rows}}, [kept, columns](RowRange range, float* to) {
            std::copy_n(kept->data() + range.begin * columns, range.size() * columns, to);
          }};
}

}  // namespace espalier

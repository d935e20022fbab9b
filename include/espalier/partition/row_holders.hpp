// Which parts hold entries of a row of a matrix whose entries are in parts (a vertex cut, as in
// GLISP, Zhu et al. 2024, III-C). Every rank knows it of every row: a code of one byte, or of two,
// and a table of sets. So nobody is asked who holds a row.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/partition/owner_map.hpp"

namespace espalier {

/// A set of parts is 64 bits.
inline constexpr int kMostHolders = 64;

/// How many bits are set, and the place of the lowest of them.
ESPALIER_HD inline int count_bits(std::uint64_t bits) {
#if defined(__CUDA_ARCH__)
  return __popcll(bits);
#else
  return __builtin_popcountll(bits);
#endif
}
ESPALIER_HD inline int lowest_bit(std::uint64_t bits) {
  return count_bits((bits & (0 - bits)) - 1);
}

/// Calls use(part) for the parts of a set, ascending.
template <class Use>
ESPALIER_HD inline void for_each_part(std::uint64_t set, Use use) {
  for (; set != 0; set &= set - 1) use(lowest_bit(set));
}

/// The parts that hold a row, as bits: one at least. Small: copied into kernels.
struct HoldersOf {
  const std::uint8_t* narrow = nullptr;  ///< [n] codes; null: wide
  const std::uint16_t* wide = nullptr;   ///< [n]
  const std::uint64_t* sets = nullptr;

  template <class Id>
  ESPALIER_HD std::uint64_t operator()(Id vertex) const {
    return sets[narrow != nullptr ? narrow[vertex] : wide[vertex]];
  }
};

/// The codes of rows and the sets that they stand for.
template <class Space>
struct HolderCodes {
  OwnerBytes<Space> of_rows;
  Array<Space, std::uint64_t> sets;

  HoldersOf view() const& { return {of_rows.narrow.data(), of_rows.wide.data(), sets.data()}; }
  void view() const&& = delete;
};

class RowHolders {
 public:
  /// Of `n` rows of a matrix in so many parts, 1 .. kMostHolders.
  RowHolders(std::int64_t n, int parts);

  /// The sets of the next rows; none is empty. Of more than 65,536 different ones those that come
  /// last become the set of all parts, in `sets`, too: pieces of a row may be without an entry.
  void append(std::span<std::uint64_t> sets);
  /// When all are there.
  void finish();

  int parts() const { return parts_; }
  std::int64_t size() const { return n_; }
  HoldersOf of() const { return codes_.view(); }
  /// The same for kernels of a space, which reads them where this is, or from a copy.
  const HolderCodes<Cpu>& on(const Cpu&) const { return codes_; }
  HolderCodes<Cuda> on(const Cuda& cuda) const {
    const auto& [narrow, wide] = codes_.of_rows;
    return {{upload(cuda, narrow), upload(cuda, wide)}, upload(cuda, codes_.sets)};
  }
  /// The rows that a part holds.
  PartMarks<Cpu> marks(int part) const;
  std::int64_t bytes() const;

 private:
  std::int64_t n_;
  int parts_;
  HolderCodes<Cpu> codes_;  // narrow from finish() on, where there are few sets
  std::unordered_map<std::uint64_t, std::uint16_t> code_of_;
};

}  // namespace espalier

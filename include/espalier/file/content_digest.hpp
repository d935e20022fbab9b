// What a data set holds, as one number: the sum modulo 2^64, over its entries, of a hash of
// (position, value). Ranks add what each of them reads, in any ranges. Widths do not count: an
// index or label is hashed as an int64, whatever the file stores it in; floats by their bits.
//
//     hash(p, v) = y ^ (y >> 29),   y = (x ^ (x >> 32)) (p M + 1),   x = v + p K   modulo 2^64
//
// For a position it is a bijection of the value, so one changed entry changes the sum for certain;
// the factor differs between positions, so two values that change places do too, but for the
// shifts. It is one multiplication: a digest costs little beside reading. No protection against
// somebody who means it.
//
// A file's digest is over the data sets that it has: names, shapes, digests, and the number of
// classes, and whether links have a direction. It stands in the attribute `digest` of `/`, those of
// the data sets beside them, as 16 hex digits.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "espalier/base/half.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

template <class T>
std::uint64_t digest_bits(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::uint64_t>(value);
  else if constexpr (requires { value.bits; })  // of Half, or a word of codes
    return value.bits;
  else
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

/// The share of entries [first, first + values.size()) in the digest of a data set (entries in row
/// order).
template <class T>
std::uint64_t content_digest(std::span<const T> values, std::int64_t first) {
  constexpr std::uint64_t kK = 0xd1b54a32d192ed03u, kM = 0xbf58476d1ce4e5bau;  // odd, even
  std::uint64_t offset = static_cast<std::uint64_t>(first) * kK,
                factor = static_cast<std::uint64_t>(first) * kM + 1, sum = 0;
  for (const T value : values) {
    const auto x = digest_bits(value) + offset;
    const auto y = (x ^ (x >> 32)) * factor;
    sum += y ^ (y >> 29);
    offset += kK;
    factor += kM;
  }
  return sum;
}

/// What a list of texts is hashed as: each by its letters.
std::vector<std::int64_t> hashes_of(std::span<const std::string> texts);

/// One data set of a file.
struct DatasetContent {
  std::string name;
  std::vector<std::int64_t> shape;
  std::uint64_t digest = 0;
};

/// What stands in attributes and changes what entries say counts as one more data set: whether
/// links have a direction, and how many columns sparse features have, whose `indices` are
/// called so.
inline DatasetContent direction_of_links(bool directed) {
  return {"/links", {}, std::uint64_t{directed}};
}
inline DatasetContent columns_of(const std::string& indices, std::int64_t columns) {
  return {indices + "/columns", {columns}, 0};
}

/// The number of classes that a file's digest is over: that of its only type, or a hash of those of
/// all types.
std::int64_t fold_classes(std::span<const std::int64_t> classes);

/// The digest of a file with these data sets, in any order.
std::uint64_t file_digest(std::span<const DatasetContent> datasets, std::int64_t classes);

/// The digests of a graph file, as far as they are known.
struct ContentDigests {
  std::map<std::string, std::uint64_t> datasets;  ///< "/graph/indptr"
  std::optional<std::uint64_t> file;
  bool complete = false;  ///< all are known, but perhaps mere names
};

/// Does a data set only say what vertices, classes or columns are called? No result depends on it.
bool only_names(const std::string& dataset);

/// What differs between two files, for a message: "/nodes/labels (0123... there, 4567... here)",
/// each data set that both know and hold otherwise, or that only one of them has, but for mere
/// names. Empty: nothing that is known of both.
std::string describe_difference(const ContentDigests& there, const ContentDigests& here);

/// 16 hex digits, and back; nothing for another text.
std::string hex(std::uint64_t digest);
std::optional<std::uint64_t> digest_from_hex(const std::string& text);

// ---- the check ----
//
// Checks what is read of one data set against its digest, when all of it has been read.
//
// Every rank hashes the entries that it read; the parts of all ranks are put together until parts
// that touch reach from the first entry to the last. Ranks that read the same rows (copies of a
// block row) give the same part, which counts once.

class ContentCheck {
 public:
  /// The data set has so many entries; `stated`: the digest that stands in the file, if one does.
  ContentCheck(std::int64_t entries, std::optional<std::uint64_t> stated)
      : entries_(entries), stated_(stated) {
    if (entries == 0) found_ = 0;
  }
  ContentCheck() = default;

  std::optional<std::uint64_t> stated() const { return stated_; }
  /// The digest of what was read, once that is everything.
  std::optional<std::uint64_t> found() const { return found_; }
  /// What was found, else what is stated.
  std::optional<std::uint64_t> known() const { return found_ ? found_ : stated_; }

  /// Collective. This rank has read entries [begin, end), with this share of the digest. False, on
  /// every rank, when with it everything was read and it is not what the file says.
  bool add(const Communicator& comm, std::int64_t begin, std::int64_t end, std::uint64_t share) {
    if (found_) return true;
    struct Part {
      std::int64_t begin, end;
      std::uint64_t share;
    };
    for (const auto& part : comm.all_gather(Part{begin, end, share}, "graph file"))
      if (part.begin < part.end && parts_.insert({{part.begin, part.end}, part.share}).second)
        covered_ += part.end - part.begin;
    if (covered_ >= entries_) find();
    return !found_ || !stated_ || *found_ == *stated_;
  }

 private:
  // Follows parts that touch from the first entry to the last.
  void find() {
    std::uint64_t sum = 0;
    std::int64_t place = 0;
    while (place < entries_) {
      const auto next = parts_.lower_bound({place, 0});
      if (next == parts_.end() || next->first.first != place) return;
      sum += next->second;
      place = next->first.second;
    }
    found_ = sum;
    parts_.clear();
  }

  std::int64_t entries_ = 0;
  std::optional<std::uint64_t> stated_, found_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> parts_;  // by range, none empty
  std::int64_t covered_ = 0;                                              // sum of their lengths
};

}  // namespace espalier

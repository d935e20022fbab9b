// Checks what is read of one data set against its digest, when all of it has been read.
//
// Every rank hashes the entries that it read; the parts of all ranks are put together until parts
// that touch reach from the first entry to the last. Ranks that read the same rows (copies of a
// block row) give the same part, which counts once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "espalier/comm/communicator.hpp"

namespace espalier {

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

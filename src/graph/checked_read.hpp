// Reads of an open graph file that are hashed and checked: the transfer first, and then the local
// check of what arrived, inside agree(), so that one damaged row on one rank is one message
// for all.
#pragma once

#include <algorithm>
#include <span>

#include "espalier/comm/communicator.hpp"
#include "open_graph_file.hpp"

namespace espalier {

/// A check that looks at entries one by one, and so may be given them in pieces: check(piece, place
/// of its first entry). A piece is hashed while it is in cache.
template <class Check>
struct InPieces {
  Check check;
};
template <class Check>
InPieces(Check) -> InPieces<Check>;

// This rank's share of the digest of a data set, and the check of what it read.
template <class T, class Check>
std::uint64_t hash_and_check(std::span<const T> values, std::int64_t first, bool hashes, Check& whole) {
  whole(values);
  return hashes ? content_digest(values, first) : 0;
}
template <class T, class Check>
std::uint64_t hash_and_check(std::span<const T> values, std::int64_t first, bool hashes,
                             InPieces<Check>& entries) {
  constexpr std::size_t kPiece = 2048;
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < values.size(); at += kPiece) {
    const auto piece = values.subspan(at, std::min(kPiece, values.size() - at));
    const auto place = static_cast<std::int64_t>(at);
    entries.check(piece, place);
    if (hashes) sum += content_digest(piece, first + place);
  }
  return sum;
}

// Collective. Counts what this rank read, entries [first, first + entries), towards the digest.
inline void check_content(OpenGraphFile& h, const hdf5::Dataset& dataset, std::int64_t first,
                          std::size_t entries, std::uint64_t share) {
  auto& content = h.contents.at(dataset.name);
  if (content.add(h.comm, first, first + static_cast<std::int64_t>(entries), share)) return;
  input_error(
      "graph file {}: {} does not hold what was written there: its digest is {}, the file says {}; {}",
      h.path, dataset.name, hex(*content.found()), hex(*content.stated()), kDigestAgain);
}

// Collective. Rows of a dataset as T; then `check` on what arrived, by all ranks together. The last
// `overlap` values are counted by another rank towards the digest.
template <class T, class Check>
Buffer<T> read_checked(OpenGraphFile& h, const hdf5::Dataset& dataset, const hdf5::Slab& slab, Check check,
                       std::size_t overlap = 0) {
  Buffer<T> values((slab.end - slab.begin) * slab.columns);
  const bool good = hdf5::read_slab(dataset, hdf5::memory_type<T>(), slab, values.data());
  const bool hashes = h.view.verify != Verify::kNo && !h.contents.at(dataset.name).found();
  const auto first = slab.begin * slab.columns;
  std::uint64_t share = 0;
  agree(h.comm, [&] {
    if (!good)
      fail(h, "cannot read rows {} to {} of {}: {}", slab.begin, slab.end, dataset.name, hdf5::reason());
    share = hash_and_check(std::span<const T>(values), first, hashes && overlap == 0, check);
  });
  if (!hashes) return values;
  const auto entries = values.size() - overlap;
  if (overlap > 0) share = content_digest(std::span<const T>(values.data(), entries), first);
  check_content(h, dataset, first, entries, share);
  return values;
}

}  // namespace espalier

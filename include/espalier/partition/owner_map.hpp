// The owner of every vertex, one or two bytes each, and the places of a part's vertices: a bit for
// each vertex and, for each 64 of them, how many of the part's come before. Places of a part cost a
// quarter of a byte per vertex and are made when they are asked for, as a rule a rank's own: 1.25
// bytes per vertex in all.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"

namespace espalier {

inline constexpr int kMostMappedParts = 1 << 16;

/// Whose each vertex is; one of the two is empty.
template <class Space>
struct OwnerBytes {
  Array<Space, std::uint8_t> narrow;  ///< [n] where there are at most 256 parts
  Array<Space, std::uint16_t> wide;   ///< [n]
};

/// Which vertices are a part's.
template <class Space>
struct PartMarks {
  Array<Space, std::uint64_t> words;  ///< [n / 64] bit v % 64 of word v / 64
  Array<Space, std::int64_t> before;  ///< [n / 64] marks of earlier words
};

/// Place of a vertex among those of one part, which owns it. Small: copied into kernels.
struct PlaceOf {
  const std::uint64_t* words = nullptr;  ///< of PartMarks; null: vertices from `begin` on
  const std::int64_t* before = nullptr;
  std::int64_t begin = 0;

  template <class Id>
  ESPALIER_HD std::int64_t operator()(Id vertex) const {
    if (words == nullptr) return static_cast<std::int64_t>(vertex) - begin;
    const auto word = static_cast<std::int64_t>(vertex) / 64;
    const auto earlier = words[word] & ((std::uint64_t{1} << (vertex % 64)) - 1);
#if defined(__CUDA_ARCH__)
    return before[word] + __popcll(earlier);
#else
    return before[word] + std::popcount(earlier);
#endif
  }
};

/// The vertex at place k of a part, 0 <= k < its size.
std::int64_t vertex_at(const PartMarks<Cpu>& marks, std::int64_t k);

/// Of those of n vertices of which is_part(v) is true.
template <class IsPart>
PartMarks<Cpu> make_marks(std::int64_t n, IsPart is_part) {
  PartMarks<Cpu> marks;
  marks.words.assign((n + 63) / 64, 0);
  marks.before.resize(marks.words.size());
  std::int64_t count = 0;
  for (std::int64_t word = 0; word < std::ssize(marks.words); ++word) {
    std::uint64_t bits = 0;
    for (auto v = 64 * word; v < std::min(64 * word + 64, n); ++v)
      bits |= std::uint64_t{is_part(v)} << (v % 64);
    marks.words[word] = bits;
    marks.before[word] = count;
    count += std::popcount(bits);
  }
  return marks;
}

/// Calls use(k, vertex) for the vertices of a part, ascending, and their places.
template <class Use>
void for_each_vertex(const PartMarks<Cpu>& marks, Use use) {
  std::int64_t k = 0;
  for (std::int64_t word = 0; word < std::ssize(marks.words); ++word)
    for (auto bits = marks.words[word]; bits != 0; bits &= bits - 1)
      use(k++, 64 * word + std::countr_zero(bits));
}

class OwnerMap {
 public:
  /// owner_at(v), 0 <= v < n, is the owner of vertex v, one of `parts`, at most kMostMappedParts.
  template <class OwnerAt>
  OwnerMap(std::int64_t n, int parts, OwnerAt owner_at) : n_(n), parts_(parts), sizes_(parts), kept_(parts) {
    ESPALIER_CHECK(parts <= kMostMappedParts, "a map of {} parts", parts);
    if (parts <= 1 << 8)
      fill(bytes_.narrow, owner_at);
    else
      fill(bytes_.wide, owner_at);
  }

  std::int64_t size() const { return n_; }
  int owner(std::int64_t vertex) const {
    return bytes_.wide.empty() ? bytes_.narrow[vertex] : bytes_.wide[vertex];
  }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }  ///< [parts]
  const OwnerBytes<Cpu>& bytes() const { return bytes_; }

  PartMarks<Cpu> make_marks(int part) const;
  /// The same, made once and kept. For any thread.
  const PartMarks<Cpu>& marks(int part) const;

 private:
  template <class T, class OwnerAt>
  void fill(Buffer<T>& owner, OwnerAt owner_at) {
    owner.resize(n_);
    for (std::int64_t v = 0; v < n_; ++v) {
      const std::int64_t part = owner_at(v);
      ESPALIER_CHECK(part >= 0 && part < parts_, "part {} of {}", part, parts_);
      owner[v] = static_cast<T>(part);
      ++sizes_[part];
    }
  }

  std::int64_t n_;
  int parts_;
  OwnerBytes<Cpu> bytes_;
  std::vector<std::int64_t> sizes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<const PartMarks<Cpu>>> kept_;  ///< [parts]
};

}  // namespace espalier

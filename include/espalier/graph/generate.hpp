// Random graphs, the same for every number of ranks: edge e and the properties of vertex v are
// functions of (seed, e) and (seed, v).
//
// R-MAT (Chakrabarti, Zhan, Faloutsos 2004; parameters and size of Graph500): each of the 2^scale x
// 2^scale matrix's levels picks a quadrant with probability A, B, C, D = .57, .19, .19, .05; ids
// are scrambled afterwards (Scramble).
//
// Planted partition: n vertices in `classes` groups of equal size; of the n degree/2 expected
// undirected edges a fraction `homophily` joins two vertices of one class, the rest two of
// different ones, uniformly. No self loops.
//
// Vertices: the label is the class (R-MAT: a uniform draw); features are the class's centroid plus
// noise, so that a vertex's own features say little and its neighbourhood's mean says much;
// 60/20/20 % train, valid, test by a draw per vertex. With `labels` > 0 a vertex has so many labels
// of 0 or 1 instead: each class implies each label or not, by the toss of a coin; of a vertex's
// labels one in ten is the opposite, and one in twenty unknown.
//
// Features of edges (planted partitions): number 0 is normal about 1 where both ends are of one
// class and about -1 where they are not, the others are normal about 0; deviation 1. An edge has
// the same numbers in both directions, and in the inverse of its relation.
//
// With types (schema.hpp): vertices of every type have a class; of each relation so many edges, a
// fraction `homophily` of which joins a target to a source of its own class. The first type has the
// labels and the splits.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "espalier/comm/communicator.hpp"
#include "espalier/file/destination.hpp"
#include "espalier/graph/file_stream.hpp"

namespace espalier {

// A keyed bijection of [0, n): gives vertices their ids, so that an id says nothing about
// degree or class.
//
// On b = ceil(log2 n) bits a round is x ^= x >> ceil(b/2); x *= odd; x ^= key (mod 2^b); each step
// can be undone. Where n is no power of two the map is applied until it lands in [0, n) (cycle
// walking), less than twice on average.

class Scramble {
 public:
  /// `stream` keys the bijection. n >= 1.
  Scramble(std::int64_t n, const FileStream& stream) : n_(static_cast<std::uint64_t>(n)) {
    const int bits = n <= 2 ? 1 : std::bit_width(n_ - 1);
    mask_ = (std::uint64_t{1} << bits) - 1;
    shift_ = (bits + 1) / 2;
    for (std::size_t r = 0; r < kRounds; ++r) {
      multiplier_[r] = file_word(stream, 2 * r) | 1;
      key_[r] = file_word(stream, 2 * r + 1) & mask_;
      inverse_[r] = multiplier_[r];  // right modulo 2^3; each step doubles the bits (Newton)
      for (int step = 0; step < 5; ++step) inverse_[r] *= 2 - multiplier_[r] * inverse_[r];
    }
  }

  std::int64_t operator()(std::int64_t position) const {
    auto x = static_cast<std::uint64_t>(position);
    do {
      for (std::size_t r = 0; r < kRounds; ++r)
        x = (((x ^ (x >> shift_)) * multiplier_[r]) & mask_) ^ key_[r];
    } while (x >= n_);
    return static_cast<std::int64_t>(x);
  }

  /// The position that has this id.
  std::int64_t inverse(std::int64_t id) const {
    auto x = static_cast<std::uint64_t>(id);
    do {
      for (std::size_t r = kRounds; r-- > 0;) {
        x = ((x ^ key_[r]) * inverse_[r]) & mask_;
        x ^= x >> shift_;  // undoes itself: the shift is at least half the bits
      }
    } while (x >= n_);
    return static_cast<std::int64_t>(x);
  }

 private:
  static constexpr std::size_t kRounds = 4;
  std::uint64_t n_, mask_ = 0;
  int shift_ = 0;
  std::array<std::uint64_t, kRounds> multiplier_{}, inverse_{}, key_{};
};

inline constexpr std::int64_t kMostScale = 40, kMostNodes = std::int64_t{1} << kMostScale,
                              kMostEdgeFactor = 65536;
inline constexpr std::int64_t kMostFeatures = 1 << 20, kMostClasses = 1 << 20;

struct VertexOptions {
  std::int64_t features = 16;  ///< 0: none
  std::int64_t classes = 8;
  std::uint64_t seed = 0;
  bool half = false;               ///< store features as float16
  std::int64_t labels = 0;         ///< 0: the class is the label; else 2 or more
  std::int64_t edge_features = 0;  ///< of a planted partition's edges; 0: none
};

struct RmatOptions {
  std::int64_t scale = 14;
  std::int64_t edge_factor = 16;  ///< edges per vertex before duplicates are merged
  bool symmetrize = false;
  bool drop_self_loops = false;
};

struct PlantedOptions {
  std::int64_t nodes = 10000;
  double degree = 10;
  double homophily = 0.8;
};

struct TypedGraphOptions {
  std::string types;      ///< "paper=20000:32,author=12000": vertices, and features if any
  std::string relations;  ///< "author.writes.paper=60000,...": edges, on average
  bool inverses = true;   ///< each relation NAME also the other way round, as rev_NAME
  double homophily = 0.8;
};

struct Edge {
  std::int64_t source = 0;
  std::int64_t target = 0;
};

/// Edge number `edge` of the R-MAT graph before ids are scrambled: bit `scale - 1 - l` of source
/// and target is level l's quadrant (0,0) A, (0,1) B, (1,0) C, (1,1) D.
Edge rmat_edge(std::uint64_t seed, std::int64_t edge, std::int64_t scale);

/// Collective. Generates and writes; every rank makes its share of the edges and writes its even
/// range of rows. Throws UserError(kUsage) for options that make no sense, UserError(kInput) when
/// `output` cannot be written, and as check_output() and put_in_place() do.
void generate_rmat(const Communicator& comm, const RmatOptions& options, const VertexOptions& vertices,
                   const Destination& output);
void generate_planted(const Communicator& comm, const PlantedOptions& options, const VertexOptions& vertices,
                      const Destination& output);
/// `vertices.features` does not count: types have their own.
void generate_planted_types(const Communicator& comm, const TypedGraphOptions& options,
                            const VertexOptions& vertices, const Destination& output);

}  // namespace espalier

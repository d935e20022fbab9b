// Edges that are not in memory, those of a file, which is read again each time: from them to rows
// of the adjacency matrix in memory of the matrix alone, each rank its even range of the rows.
//
//     const SharedEdges edges(comm, mine);
//     auto counted = count_entries(edges, -1, options);           // reads them once
//     SharedRows<std::int32_t> made(edges, std::move(counted), options);      // again
//
// The rows are the same on any number of ranks, those that build_rows() of edge_list.hpp makes of a
// list of the same edges: ranks read the file together, part after part, and what each has read
// goes to the owners of its rows, who take it in the order of the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/edge_list.hpp"

namespace espalier {

/// Ids lie below it; 8 bytes for each vertex are in memory.
inline constexpr std::int64_t kMostVertices = std::int64_t{1} << 40;

/// Some edges, one after the other.
struct EdgePiece {
  std::span<const std::int64_t> sources, targets;
  std::span<const float> weights;            ///< empty: all 1
  std::int64_t vanished = 0;                 ///< how many weights are 0 because float32 holds no
                                             ///< such number
  std::span<const std::int64_t> times = {};  ///< empty: nobody said when they were
  std::span<const std::uint8_t> marks = {};  ///< EdgeMark of each; empty: none is turned, and loops
                                             ///< are those whose ends have one number
};

/// What an edge is beside its ends.
enum EdgeMark : std::uint8_t {
  kTurned = 1,  ///< the reverse of the edge before it, which is no edge of the file
  kLoop = 2,    ///< of one vertex, where sources are columns
};

/// Which parts of the edges one of so many ranks reads, in rounds: they are cut in parts, in their
/// order, and part k ranks + r is that of rank r in round k.
struct RankShare {
  int rank = 0, ranks = 1;
  std::function<void()> next = [] {};  ///< to be called after each round
  /// To be called with numbers: where those of all ranks do not add up to 0, read() throws why.
  std::function<void(std::int64_t)> miss = [](std::int64_t) {};
  /// How many edges a part may have: those of all ranks may be for one of them.
  std::int64_t most_edges() const {
    return std::clamp<std::int64_t>((std::int64_t{1} << 22) / ranks, 1 << 12, 1 << 17);
  }
};

class EdgeSource {
 public:
  virtual ~EdgeSource() = default;
  /// Calls `use` for piece after piece of all edges, the same each time. Ids are at least 0 and
  /// below kMostVertices. Throws UserError(kInput) with the place of what is no edge.
  virtual void read(const std::function<void(const EdgePiece&)>& use) const = 0;
  /// The share of one of the ranks, each of which has such a source; parts may be empty. Where one
  /// throws UserError, read() throws what is said. Unless a source says otherwise rank 0 reads all,
  /// and nothing is asked of the others.
  virtual void read_parts(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const;
  virtual bool weighted() const = 0;
  /// The file, for messages.
  virtual std::string name() const = 0;
  /// Where an edge stands: "FILE:LINE".
  virtual std::string place(std::int64_t edge) const = 0;
};

/// Edges that the ranks read together. All that is made of them is collective; an error of one rank
/// is everyone's: what rank 0 finds that then reads all alone.
class SharedEdges {
 public:
  /// Collective. What this rank reads, which must outlive it; null: nothing. Rank 0 has some.
  SharedEdges(const Communicator& comm, const EdgeSource* mine);
  const Communicator& comm() const { return comm_; }
  const EdgeSource* mine() const { return mine_; }
  /// The same on every rank.
  bool weighted() const { return weighted_; }
  const std::string& name() const { return name_; }

 private:
  const Communicator& comm_;
  const EdgeSource* mine_;
  bool weighted_;
  std::string name_;
};

/// What one reading of the edges tells.
struct CountedEntries {
  std::int64_t nodes = 0, columns = 0;
  Buffer<std::int64_t> indptr;  ///< where each row of this rank's even range of the nodes begins,
                                ///< duplicates included, and the last ends
  EdgeCounts edges;             ///< of all ranks: what is known before duplicates meet
  std::uint64_t digest = 0;     ///< of all edges, as they were read
};

/// Collective. Reads the edges of so many vertices; of -1: as many as the largest id says. With
/// `columns` sources are columns, so many, which are others than the rows: there is nothing to
/// symmetrize, and loops are those with a mark.
CountedEntries count_entries(const SharedEdges& edges, std::int64_t nodes, const EdgeOptions& options,
                             std::int64_t columns = -1);

/// This rank's even range of the rows of edges that were counted, and what the edges say of their
/// entries. All is collective and reads the edges again; throws UserError(kInput) when they are not
/// those that were counted.
template <class Index>
class SharedRows {
 public:
  /// `edges` must outlive it. Reads them twice more to throw DuplicateEdge (kRefuse). There are
  /// fewer rows and columns than the largest Index.
  SharedRows(const SharedEdges& edges, CountedEntries counted, const EdgeOptions& options);
  Csr<Index>& rows() { return rows_; }
  /// Of all ranks.
  const EdgeCounts& counts() const { return counts_; }

  /// For each entry the edge that it has its features from, of those that meet there, with
  /// symmetrize in either direction, as options.features says (of the largest weight: the first).
  /// Where features are added up: the first, which stands for all.
  Buffer<std::int64_t> feature_edges() const;

  /// For each entry when it was, of edges that have times, else 0. Of those that the file has in
  /// its direction the earliest, with options.latest the latest; where there is none, of those that
  /// it has the other way round.
  Buffer<std::int64_t> times() const;

  /// On rank 0 for each edge, of so many, the one that stands for it where features are added up:
  /// that of its entry in `first`, which feature_edges() made; -1 of a loop that was dropped.
  Buffer<std::int64_t> standing_edges(const Buffer<std::int64_t>& first, std::int64_t count) const;

 private:
  template <class Visit>
  void for_each_entry(Visit visit, std::uint64_t* digest = nullptr) const;
  template <class Item, class Make, class Take>
  void spread_to_rows(Make make, Take take) const;
  RepeatedEdge first_repeated() const;
  void check_unchanged(bool good) const;

  const SharedEdges& edges_;
  EdgeOptions options_;
  std::int64_t nodes_;
  RowRange range_;
  Csr<Index> rows_;
  EdgeCounts counts_;
};

/// Collective. How many entries (v,u) of a square matrix, of which every rank has its even range of
/// rows, have no entry (u,v)? Rows ascending; weights are not looked at.
template <class Index>
std::int64_t count_one_way(const Communicator& comm, const Csr<Index>& rows);

}  // namespace espalier

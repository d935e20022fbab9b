// Edges of an import as entries of the matrix, and what became of them, in words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "espalier/graph/edge_list.hpp"
#include "graph_source.hpp"

namespace espalier {

// Edges of all relations of a source as entries of the wide matrix (schema.hpp), read from it each
// time: source is the column, target the row; relation after relation, each in the order of its
// file, and every edge is followed by its inverse where there is one. After the first reading it
// knows what was there. Without types that is the edges as they are.
class MatrixEdges : public EdgeSource {
 public:
  /// The first relations of the schema are the source's. `shared`: the other ranks read as well.
  MatrixEdges(const GraphSource& from, const Schema& schema, bool shared)
      : from_(from), schema_(schema), shared_(shared), read_(from.relations()) {}

  void read(const std::function<void(const EdgePiece&)>& use) const override { read_parts({}, use); }
  void read_parts(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const override {
    if (share.ranks > 1 && !shared_) return EdgeSource::read_parts(share, use);
    if (!from_.typed()) return read_plain(share, use);
    for (int r = 0; r < std::ssize(read_); ++r) read_relation(r, share, use);
  }
  /// Collective. After the first reading in parts: what all ranks have read.
  void add_up(const Communicator& comm) {
    for (int r = 0; r < std::ssize(read_); ++r) {
      auto& of = read_[r];
      of.begin = r == 0 ? 0 : end_of(r - 1);
      of.given = comm.all_reduce(of.given, Reduction::kSum, "import");
      of.loops = comm.all_reduce(of.loops, Reduction::kSum, "import");
    }
    added_up_ = true;
  }
  bool weighted() const override {
    for (int r = 0; r < std::ssize(read_); ++r)
      if (from_.weighted(r)) return true;
    return false;
  }
  std::string name() const override { return from_.graph().place; }
  std::string place(std::int64_t entry) const override {
    const auto [relation, edge] = origin(entry);
    return from_.edge_place(relation, edge);
  }

  std::int64_t given(int relation) const { return read_[relation].given; }
  bool both_ways(int relation) const { return from_.both_ways(relation); }
  bool timed(int relation) const { return from_.timed(relation); }
  bool weighted(int relation) const { return from_.weighted(relation); }
  /// Edges of a graph with types from a vertex to itself.
  std::int64_t loops(int relation) const { return read_[relation].loops; }
  /// Of all relations, with their inverses.
  std::int64_t read_entries() const { return end_of(static_cast<int>(std::ssize(read_)) - 1); }
  /// Of an entry: which edge of its relation's file it is, or the inverse of.
  std::int64_t edge_in_file(std::int64_t entry) const { return origin(entry).second; }
  /// Of something for each entry: the part of one relation's own edges, in the order of its file.
  Buffer<std::int64_t> of_relation(int relation, const Buffer<std::int64_t>& entries) const {
    Buffer<std::int64_t> found;
    for (auto entry = read_[relation].begin; entry < end_of(relation); entry += ways(relation))
      found.push_back(entries[entry]);
    return found;
  }

 private:
  struct Read {
    std::int64_t begin = 0;  // its first entry
    std::int64_t given = 0, loops = 0;
  };

  void read_plain(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const {
    std::int64_t given = 0;
    from_.read_edges(0, share, [&](const EdgePiece& piece) {
      given += std::ssize(piece.sources);
      use(piece);
    });
    if (!added_up_) read_[0].given = given;
  }
  void read_relation(int relation, const RankShare& share,
                     const std::function<void(const EdgePiece&)>& use) const {
    const auto& of = schema_.relations()[relation];
    const auto head_row = schema_.types()[of.source].begin, tail_row = schema_.types()[of.target].begin;
    Read read{relation == 0 ? 0 : end_of(relation - 1)};
    EdgePieces pieces(weighted(), use, from_.timed(relation), /*marked=*/true);
    auto mine = share;
    mine.next = [&] {
      pieces.finish();
      share.next();
    };
    from_.read_edges(relation, mine, [&](const EdgePiece& piece) {
      pieces.vanished() += piece.vanished;
      for (std::size_t k = 0; k < piece.sources.size(); ++k) {
        const auto head = head_row + piece.sources[k], tail = tail_row + piece.targets[k];
        const std::uint8_t mark = head == tail ? kLoop : 0;
        ++read.given;
        read.loops += head == tail;
        const auto weight = piece.weights.empty() ? 1 : piece.weights[k];
        const auto time = piece.times.empty() ? 0 : piece.times[k];
        pieces.add(schema_.column(relation, head), tail, weight, time, mark);
        if (of.inverse >= 0)
          pieces.add(schema_.column(of.inverse, tail), head, weight, time, mark);
        else if (from_.both_ways(relation))
          pieces.add(schema_.column(relation, tail), head, weight, time, mark | kTurned);
      }
    });
    pieces.finish();
    if (!added_up_) read_[relation] = std::move(read);
  }
  // Where the entries of the next begin.
  std::int64_t end_of(int relation) const { return read_[relation].begin + ways(relation) * given(relation); }

  int ways(int relation) const {
    return schema_.relations()[relation].inverse >= 0 || from_.both_ways(relation) ? 2 : 1;
  }
  // Its relation, and which edge of the file it was.
  std::pair<int, std::int64_t> origin(std::int64_t entry) const {
    const auto after = std::ranges::upper_bound(read_, entry, {}, &Read::begin);
    const auto relation = static_cast<int>(after - read_.begin()) - 1;
    return {relation, (entry - read_[relation].begin) / ways(relation)};
  }

  const GraphSource& from_;
  const Schema& schema_;
  bool shared_, added_up_ = false;
  mutable std::vector<Read> read_;  // [triplets] of the last reading
};

// ---- what became of them ----

struct EdgeReport {
  EdgeOptions options;
  bool weighted = false, featured = false, timed = false;
  bool by_keys = false;               ///< as ImportOptions
  std::string line = "line";          ///< what an edge is in its file
  std::string one_direction_by = {};  ///< who says that only one direction of each edge is listed
  bool advises = true;                ///< there are options or keys that another choice takes
};

/// Words that name options of the command, with the keys of a description in their place.
std::string in_keys(std::string words);

/// Warns of so many weights, of all that were given, that float32 holds as 0: whoever weighs edges
/// so lightly hardly means that they are to weigh nothing.
void report_vanished(const EdgeReport& of, std::int64_t vanished, std::int64_t given);

/// Prints what met, and what came of it: a warning with the default, which nobody may have asked
/// for. `to_keep`: what keeps how often an edge is listed.
void report_repeated(const std::string& met, const EdgeReport& of, const std::string& to_keep);

/// Prints what was read of a graph without types, what met in one entry, and which entries have no
/// reverse.
void report_edges(const EdgeReport& of, const EdgeCounts& counts, std::int64_t entries, std::int64_t one_way,
                  double seconds);

/// Throws UserError(kInput): an edge repeats another, and nobody said what becomes of such.
[[noreturn]] void refuse_duplicate(const EdgeSource& edges, const RepeatedEdge& found, bool typed);

/// Collective. Of numbers that nobody has chosen: have many vertices no edge?
template <class Index>
void report_alone(const Communicator& comm, const Csr<Index>& rows);

/// What became of the edges of each relation, in words. `entries`: of each.
void report_relations(const Schema& schema, const MatrixEdges& edges,
                      const std::vector<std::int64_t>& entries, EdgeReport of, int triplets);

}  // namespace espalier

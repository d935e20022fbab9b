// Edges of all relations of a folder with types as entries of the wide matrix (schema.hpp), read
// from the folder each time: source is the column, target the row; relation after relation, each in
// the order of its file, and every edge is followed by its inverse where there is one.
//
//     const TypedEdges edges(folder, schema, triplets, drop_self_loops);
//     build_rows<Index>(edges, count_wide_entries(edges, nodes, columns), options, counts)
//     edges.given(r)                              after the first reading
#pragma once

#include <utility>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/schema.hpp"
#include "typed_folder.hpp"

namespace espalier {

class TypedEdges : public EdgeSource {
 public:
  /// Of the first `triplets` relations of the schema, which are those of the folder. Loops are
  /// dropped within relations of one type: columns are no vertices, so nobody else can.
  TypedEdges(const TypedFolder& folder, const Schema& schema, int triplets, bool drop_self_loops);

  void read(const std::function<void(const EdgePiece&)>& use) const override;
  bool weighted() const override { return false; }
  std::string name() const override { return folder_.place(); }
  std::string place(std::int64_t entry) const override;

  std::int64_t given(int relation) const { return read_[relation].given; }
  std::int64_t dropped(int relation) const { return std::ssize(read_[relation].dropped); }
  /// Of an entry: which edge of its relation's file it is, or the inverse of.
  std::int64_t edge_in_file(std::int64_t entry) const { return origin(entry).second; }
  /// Of something for each entry: the part of one relation's own edges, in the order of its file,
  /// with `none` where an edge was dropped.
  Buffer<std::int64_t> of_relation(int relation, const Buffer<std::int64_t>& entries,
                                   std::int64_t none) const;

 private:
  struct Read {
    std::int64_t begin = 0;  // its first entry
    std::int64_t given = 0;
    std::vector<std::int64_t> dropped;  // edges of the file, ascending
  };
  std::int64_t read_relation(int relation, std::int64_t begin,
                             const std::function<void(const EdgePiece&)>& use) const;
  int ways(int relation) const { return schema_.relations()[relation].inverse >= 0 ? 2 : 1; }
  // Its relation, and which edge of the file it was.
  std::pair<int, std::int64_t> origin(std::int64_t entry) const;

  const TypedFolder& folder_;
  const Schema& schema_;
  bool drop_self_loops_;
  mutable std::vector<Read> read_;  // [triplets] of the last reading
};

}  // namespace espalier

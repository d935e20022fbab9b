// What the types and relations of a graph that is imported are called. A graph without types is the
// case of one type and one relation, which have no names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/graph/schema.hpp"

namespace espalier {

/// Edges from vertices of type `head` to vertices of type `tail`.
struct Triplet {
  std::string head, relation, tail;
  std::string inverse = {};  ///< the relation from tail to head that is added; empty: none

  bool operator==(const Triplet& other) const {
    return head == other.head && relation == other.relation && tail == other.tail;
  }
  /// "author___writes___paper", as OGB names files and arrays.
  std::string joined() const { return head + "___" + relation + "___" + tail; }
};

/// The triplet of such a name, with PyTorch Geometric's name of its inverse, "rev_writes", where
/// that is to be added; three empty names where it is none.
Triplet split_triplet(const std::string& joined, bool inverse = false);

/// The types and triplets of a graph; without types one of each, which have no names.
class GraphNames {
 public:
  /// Of a graph without types, of so many vertices; -1: edges say how many.
  static GraphNames plain(std::int64_t vertices);

  /// One after the other, in the order of the source.
  const std::vector<VertexType>& types() const { return types_; }
  /// The place of a type, or -1.
  int type_of(const std::string& name) const;
  /// In the order of the source, no two alike, of types that are there.
  const std::vector<Triplet>& triplets() const { return triplets_; }
  bool typed() const { return !types_[0].name.empty(); }
  const std::string& name(int type) const { return types_[type].name; }

  /// Appends a type with so many vertices.
  void add_type(const std::string& name, std::int64_t size);
  /// Throws UserError(kInput) that starts with `place` when one like it is there or its types are
  /// not.
  void add_triplet(const Triplet& triplet, const std::string& place);
  /// After all types and triplets, and before a path is made of any name: throws UserError(kInput)
  /// that starts with `place` when they are no schema.
  void check(const std::string& place) const;
  void set_vertices(std::int64_t count) { types_[0].end = count; }

 private:
  std::vector<VertexType> types_;
  std::vector<Triplet> triplets_;
};

/// The relations of triplets, in their order, and with `inverses` then those that are added, in the
/// same order. Throws UserError(kInput) that starts with `place` when such a name is taken.
Schema schema_of(const GraphNames& names, const std::string& place, bool inverses, bool by_keys = false);

}  // namespace espalier

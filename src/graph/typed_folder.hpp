// What an import asks of a folder that holds a graph with types, whatever the layout: names and
// numbers first, then edges, features, labels and splits, type by type. One rank reads; every
// member throws UserError that names the place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "espalier/graph/schema.hpp"
#include "feature_rows.hpp"
#include "labelled_splits.hpp"

namespace espalier {

/// Edges from vertices of type `head` to vertices of type `tail`.
struct Triplet {
  std::string head, relation, tail;

  bool operator==(const Triplet&) const = default;
  /// "author___writes___paper", as OGB names files and arrays.
  std::string joined() const { return head + "___" + relation + "___" + tail; }
};

/// The triplet of such a name; three empty names where it is none.
Triplet split_triplet(const std::string& joined);

class TypedFolder {
 public:
  virtual ~TypedFolder() = default;

  /// One after the other, in the folder's order.
  const std::vector<VertexType>& types() const { return types_; }
  /// The place of a type, or -1.
  int type_of(const std::string& name) const;
  /// In the folder's order, no two alike, of types that are there.
  const std::vector<Triplet>& triplets() const { return triplets_; }

  virtual GraphDescription describe() const = 0;
  /// The folder, for messages.
  virtual std::string place() const = 0;
  /// Calls `use` for piece after piece, in the order of the file: heads and tails, ids within the
  /// types.
  virtual void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const = 0;
  /// Where edge e of a triplet stands: "FILE:LINE".
  virtual std::string edge_place(int triplet, std::int64_t edge) const = 0;
  /// Null where the type has no features.
  virtual std::unique_ptr<FeatureRows> open_features(int type) const = 0;
  /// Null where the edges of the triplet, so many, have none.
  virtual std::unique_ptr<FeatureRows> open_edge_features(int triplet, std::int64_t edges) const = 0;
  virtual OgbLabels read_labels(int type) const = 0;
  /// Has the type a split, of the one asked for at this place?
  virtual bool has_split(int type, std::size_t place) const = 0;
  virtual Splits read_splits(int type, const OgbLabels& labels, std::size_t place) const = 0;

 protected:
  /// Appends a type with so many vertices.
  void add_type(const std::string& name, std::int64_t size);
  /// Throws UserError(kInput) that starts with `place` when one like it is there or its types are
  /// not.
  void add_triplet(const Triplet& triplet, const std::string& place);
  /// After all types and triplets, and before a path is made of any name: throws UserError(kInput)
  /// that starts with `place` when they are no schema.
  void check_names(const std::string& place) const;
  /// "the graph has 5 vertices of type author", for messages.
  std::string size_in_words(int type) const;

 private:
  std::vector<VertexType> types_;
  std::vector<Triplet> triplets_;
};

/// The relations of triplets, in their order, and with `inverses` then "rev_R" of each R, from its
/// tail to its head (PyG's name), in the same order. Throws UserError(kInput) that starts with
/// `folder` when such a name is taken.
Schema schema_of(const TypedFolder& folder, const std::string& place, bool inverses);

}  // namespace espalier

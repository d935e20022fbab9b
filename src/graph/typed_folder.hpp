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
#include "espalier/graph/typed_import.hpp"
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
  explicit TypedFolder(GraphDescription description) : description_(std::move(description)) {}
  virtual ~TypedFolder() = default;

  /// One after the other, in the folder's order.
  const std::vector<VertexType>& types() const { return types_; }
  /// The place of a type, or -1.
  int type_of(const std::string& name) const;
  /// In the folder's order, no two alike, of types that are there.
  const std::vector<Triplet>& triplets() const { return triplets_; }

  /// Of the file that it becomes.
  const GraphDescription& description() const { return description_; }
  /// The folder, for messages.
  virtual std::string place() const = 0;
  /// Calls `use` for piece after piece, in the order of the file: heads and tails, ids within the
  /// types.
  virtual void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const = 0;
  /// Where edge e of a triplet stands: "FILE:LINE".
  virtual std::string edge_place(int triplet, std::int64_t edge) const = 0;
  /// Null where the type has none.
  virtual std::unique_ptr<FeatureRows> open_features(int type) const = 0;
  virtual std::unique_ptr<FeatureRows> open_labels(int type) const = 0;
  /// Null where the edges of the triplet, so many, have none.
  virtual std::unique_ptr<FeatureRows> open_edge_features(int triplet, std::int64_t edges) const = 0;
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
  const std::string& name(int type) const { return types_[type].name; }
  /// Those of a type, and the types of a triplet's ends.
  VertexCount vertices(int type) const;
  VertexCount heads(int triplet) const { return vertices(type_of(triplets_[triplet].head)); }
  VertexCount tails(int triplet) const { return vertices(type_of(triplets_[triplet].tail)); }

 private:
  GraphDescription description_;
  std::vector<VertexType> types_;
  std::vector<Triplet> triplets_;
};

/// The relations of triplets, in their order, and with `inverses` then "rev_R" of each R, from its
/// tail to its head (PyG's name), in the same order. Throws UserError(kInput) that starts with
/// `folder` when such a name is taken.
Schema schema_of(const TypedFolder& folder, const std::string& place, bool inverses);

/// Collective. From such a folder to a graph file: `open` is called on rank 0, which reads alone
/// and writes `output`; memory is that of the edge list and the matrix. Throws as import_ogb does.
void import_typed(const Communicator& comm, const TypedImportOptions& options, const OutputFile& output,
                  const std::function<std::unique_ptr<TypedFolder>()>& open);

}  // namespace espalier

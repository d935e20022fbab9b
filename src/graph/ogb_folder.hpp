// The files of an OGB folder, read by one rank. Every member throws UserError with file and line.
#pragma once

#include <string>

#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/ogb_import.hpp"
#include "ogb_tables.hpp"

namespace espalier {

class OgbFolder {
 public:
  explicit OgbFolder(const OgbOptions& options);

  std::int64_t nodes() const { return nodes_; }
  /// Throws UserError(kUsage) when edge-feat has no column options.edge_weight.
  void check_edge_weight() const;
  /// Edges in the order of the file (number e stands in line e + 1), with weights when
  /// options.edge_weight is set.
  template <class Index>
  EdgeList<Index> read_edges() const;
  /// [n, f]; 0 x 0 when there is no node-feat.
  template <class T>
  Matrix<T> read_features() const;
  /// Of so many edges, without the column of weights; null where there are none or none are wanted.
  std::unique_ptr<FeatureRows> open_edge_features(std::int64_t edges) const;
  OgbLabels read_labels() const;
  /// train, valid, test, ascending; checks that they do not overlap and, with one label column,
  /// that ids are labelled.
  Splits read_splits(const OgbLabels& labels, const std::string& split) const;

  /// The folder of a split; empty when there are no splits at all. Throws when it is not there.
  std::string split_folder(const std::string& split) const;
  /// The path of FOLDER/raw/STEM.csv.gz, or without .gz: empty when absent, or an error.
  std::string find(const std::string& stem) const;
  std::string require(const std::string& stem) const;

 private:
  Buffer<float> read_weights(std::int64_t edges) const;

  const OgbOptions& options_;
  std::int64_t nodes_ = 0;
};

}  // namespace espalier

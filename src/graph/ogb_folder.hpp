// A folder of OGB's that holds a graph without types, whatever the layout: what an import asks of
// it. One rank reads; every member throws UserError that names the place.
#pragma once

#include <memory>
#include <string>

#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "espalier/graph/ogb_import.hpp"
#include "ogb_tables.hpp"

namespace espalier {

class OgbFolder {
 public:
  /// `options` must outlive it.
  explicit OgbFolder(const OgbOptions& options) : options_(options) {}
  virtual ~OgbFolder() = default;

  std::int64_t nodes() const { return nodes_; }
  virtual GraphDescription describe() const = 0;
  /// Throws UserError(kUsage) when features of edges have no column options.edge_weight.
  virtual void check_edge_weight() const = 0;
  /// With weights when options.edge_weight is set. The folder must outlive them.
  virtual std::unique_ptr<EdgeSource> open_edges() const = 0;
  /// Null where there are none.
  virtual std::unique_ptr<FeatureRows> open_features() const = 0;
  virtual OgbLabels read_labels() const = 0;

  /// Features of so many edges, without the column of weights; null where there are none or none
  /// are wanted.
  std::unique_ptr<FeatureRows> open_edge_features(std::int64_t edges) const;
  /// train, valid, test, ascending; checks that they do not overlap and, with one label column,
  /// that ids are labelled. From csv tables or, where there are none, arrays of numpy.
  Splits read_splits(const OgbLabels& labels, const std::string& name) const;
  /// The folder of a split; empty when there are no splits at all. Throws when it is not there.
  std::string split_folder(const std::string& split) const;

 protected:
  /// All columns; null where edges have none.
  virtual std::unique_ptr<FeatureRows> open_all_edge_features(std::int64_t edges) const = 0;
  /// "num-node-list says 5 vertices"
  virtual std::string nodes_in_words() const = 0;
  void check_edge_weight(const std::string& place, std::int64_t columns) const;

  const OgbOptions& options_;
  std::int64_t nodes_ = 0;
};

/// The csv layout (ogb_import.hpp).
std::unique_ptr<OgbFolder> open_csv_ogb_folder(const OgbOptions& options);

}  // namespace espalier

// A folder of OGB's that holds a graph without types, whatever the layout: what an import asks of
// it. It is the source of its edges. One rank reads; every member throws UserError that names the
// place.
#pragma once

#include <memory>
#include <string>

#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/ogb_import.hpp"
#include "ogb_tables.hpp"

namespace espalier {

class OgbFolder : public EdgeSource {
 public:
  /// `options` must outlive it.
  OgbFolder(const OgbOptions& options, const std::string& layout)
      : options_(options), description_(describe_folder(options.folder, layout)) {}

  std::int64_t nodes() const { return vertices_.count; }
  const GraphDescription& description() const { return description_; }
  bool weighted() const override { return options_.edge_weight.has_value(); }
  /// Throws UserError(kUsage) when features of edges have no column options.edge_weight, where that
  /// is set.
  virtual void check_edge_weight() const = 0;
  /// Null where there are none.
  virtual std::unique_ptr<FeatureRows> open_features() const = 0;
  virtual std::unique_ptr<FeatureRows> open_labels() const = 0;

  /// Features of so many edges, without the column of weights; null where there are none or none
  /// are wanted.
  std::unique_ptr<FeatureRows> open_edge_features(std::int64_t edges) const;
  /// train, valid, test, ascending; checks that they do not overlap and, with one label column,
  /// that ids are labelled. From csv tables or, where there are none, arrays of numpy.
  Splits read_splits(const OgbLabels& labels, const std::string& name) const;

 protected:
  /// All columns; null where edges have none.
  virtual std::unique_ptr<FeatureRows> open_all_edge_features(std::int64_t edges) const = 0;
  void check_edge_weight(const std::string& place, std::int64_t columns) const;

  const OgbOptions& options_;
  VertexCount vertices_;

 private:
  GraphDescription description_;
};

/// The layouts of csv tables (ogb_import.hpp) and of arrays.
std::unique_ptr<OgbFolder> open_csv_ogb_folder(const OgbOptions& options);
std::unique_ptr<OgbFolder> open_ogb_data_folder(const OgbOptions& options);

}  // namespace espalier

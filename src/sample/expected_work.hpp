// The one model of what the layers of a sampler ask of the product, before anything was sampled:
// for `schedule = "auto"` and plans that draw nothing. It steers costs, never results.
//
// Rows with about as many entries are one class. A frontier is how likely a row of each class is in
// it; ends of edges fall on rows in proportion to their entries.
#pragma once

#include <span>
#include <vector>

#include "espalier/graph/graph_facts.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

struct RowClass {
  double rows = 0, degree = 0;  ///< how many, and their mean entries
  std::vector<double> picks;    ///< of such a row in each layer, where each row draws
};

struct RowClasses {
  std::vector<RowClass> classes;
  /// The entries of each relation, where each has a fanout of its own.
  std::vector<double> of_relations = {};

  double rows() const;
  double entries() const;
};

/// Exact sums over all rows, the same on every rank. Collective over the process column.
template <class Index>
RowClasses row_classes(const DistCsr<Index>& a, const SamplerShape& shape);
/// The same of degrees alone: a row picks from all of its entries together.
RowClasses row_classes(const DegreeHistogram& degrees, std::span<const std::int64_t> fanout);

struct ExpectedLayers {
  std::vector<ProductWork> work;  ///< of each layer, first: next to the batch
  double input_rows = 0;          ///< of a batch
};

/// Of one rank with `batches` batches of shape.batch_size, in a matrix of so many parts. A sampler
/// that induces has one product for all layers, whose work stands for each.
ExpectedLayers expected_layers(const RowClasses& rows, const SamplerKind& kind, const SamplerShape& shape,
                               int parts, double batches);

/// The schedule of each layer: the one that was asked for, or what the model chooses.
std::vector<Schedule> choose_schedules(const ProductShape& product, const SamplerShape& shape,
                                       const RowClasses& rows, const SamplerKind& kind);
template <class Index, class Space>
std::vector<Schedule> choose_schedules(const DistCsr<Index, Space>& a, const SamplerShape& shape,
                                       const SamplerKind& kind) {
  auto product = shape_of(a);
  product.join = join_of_draws(shape, a.columns.typed());
  return choose_schedules(product, shape, row_classes(a.on_host(), shape), kind);
}

}  // namespace espalier

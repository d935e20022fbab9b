// The stores that the rows of a network's input come from, one for each table (input_tables.hpp):
// features first, embeddings last; and features of edges, where the network reads them. What is
// asked of them together: the rows of minibatches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/embedding_store.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/feature/normalize_rows.hpp"
#include "espalier/feature/row_store.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

/// Rows of other ranks, or their bytes: those that were asked for, and those that caches had.
struct RemoteRows {
  std::int64_t asked = 0, cached = 0;

  void add(std::int64_t more_asked, std::int64_t more_cached) {
    asked += more_asked;
    cached += more_cached;
  }
};

/// The rows of a step on their way: a fetch from each store. Its memory is kept for the next one.
template <class Space>
struct PendingInputOn {
  PendingInputOn() = default;
  /// Looks into `copies`, of each table of features (PendingFetchOn).
  explicit PendingInputOn(std::span<const CachedCopiesOn<Space>> copies) {
    for (const auto& of : copies) fetches.push_back(std::make_unique<PendingFetchOn<Space>>(of));
  }

  std::vector<std::unique_ptr<PendingFetchOn<Space>>> fetches;
  /// Which embeddings, the last table, each minibatch reads; none: those of its vertices.
  std::vector<Array<Space, std::int64_t>> rows_read;
  PendingEdgesOn<Space> edges;

  void progress() {
    for (auto& fetch : fetches) fetch->progress();
    edges.fetch.progress();
  }
  RemoteRows remote_rows() const {
    RemoteRows sum;
    for (const auto& fetch : fetches) sum.add(fetch->remote_rows(), fetch->cached_rows());
    return sum;
  }
  DiskCounts of_disk() const {
    DiskCounts sum;
    for (const auto& fetch : fetches) sum.add(fetch->of_disk());
    return sum;
  }
};

/// Rows of several minibatches: of table k and minibatch m rows[k][m].
template <class Space>
using InputMatrices = std::vector<std::vector<Matrix<float, Space>>>;

template <class Space>
class InputStoresOn {
 public:
  explicit InputStoresOn(RowStoreOn<Space> only) { features_.push_back(std::move(only)); }
  explicit InputStoresOn(std::vector<RowStoreOn<Space>> features,
                         std::unique_ptr<EmbeddingStoreOn<Space>> embeddings = nullptr,
                         std::shared_ptr<const EdgeStoreOn<Space>> edges = nullptr)
      : features_(std::move(features)), embeddings_(std::move(embeddings)), edges_(std::move(edges)) {}

  const std::vector<RowStoreOn<Space>>& features() const { return features_; }
  std::vector<RowStoreOn<Space>>& features() { return features_; }
  /// Null where none are learnt.
  EmbeddingStoreOn<Space>* embeddings() const { return embeddings_.get(); }
  /// Features of edges, or null.
  const std::shared_ptr<const EdgeStoreOn<Space>>& edges() const { return edges_; }

  std::size_t tables() const { return features_.size() + (embeddings_ != nullptr); }
  const RowStoreOn<Space>& table(std::size_t k) const {
    return k < features_.size() ? features_[k] : embeddings_->rows();
  }
  /// Of the widest rows.
  std::int64_t width() const;

  /// Collective over the process column. The rows of the vertices of minibatches; not of edges.
  void fetch(const Space& space, std::span<const MinibatchOn<Space>> minibatches, InputMatrices<Space>& rows,
             std::string_view label, PendingInputOn<Space>& pending) const;

  /// The same move by move (RowStoreOn); `minibatches` are not used after the call.
  void begin_counts(const Space& space, std::span<const MinibatchOn<Space>> minibatches,
                    PendingInputOn<Space>& pending, std::string_view label) const;
  /// Calls use(lists) with what table k would be asked for.
  template <class Use>
  void with_lists(const Space& space, std::size_t k, std::span<const MinibatchOn<Space>> minibatches,
                  const Use& use) const {
    std::vector<Array<Space, std::int64_t>> numbers;
    with_lists(space, k, minibatches, numbers, use);
  }
  void advance(const Space& space, PendingInputOn<Space>& pending, FetchMove move,
               std::string_view label) const;
  /// Bytes that cross for the rows that a fetch has begun to ask for, their ids too, or would have
  /// for those that caches had; and so for all that are not here of these minibatches. Of edges
  /// nothing is counted. Not collective; the last has the host of a GPU wait.
  RemoteRows remote_bytes(const PendingInputOn<Space>& pending) const;
  std::int64_t remote_bytes(const Space& space, std::span<const MinibatchOn<Space>> minibatches) const;
  /// Collective over the process column: rows are those of this moment. The blocks of the
  /// `minibatches` that were asked for point to what is in `edges`.
  void finish(const Space& space, PendingInputOn<Space>& pending, std::span<MinibatchOn<Space>> minibatches,
              InputMatrices<Space>& rows, EdgesOn<Space>& edges, std::string_view label) const;

 private:
  /// Calls use(lists) with what table k is asked for; `numbers` is memory for it.
  template <class Use>
  void with_lists(const Space& space, std::size_t k, std::span<const MinibatchOn<Space>> minibatches,
                  std::vector<Array<Space, std::int64_t>>& numbers, const Use& use) const;

  void have_fetches(PendingInputOn<Space>& pending) const {
    while (pending.fetches.size() < tables())
      pending.fetches.push_back(std::make_unique<PendingFetchOn<Space>>());
  }

  std::vector<RowStoreOn<Space>> features_;
  std::unique_ptr<EmbeddingStoreOn<Space>> embeddings_;
  std::shared_ptr<const EdgeStoreOn<Space>> edges_;
};
using InputStores = InputStoresOn<Cpu>;

/// A store for each table of features, and what they were standardised by.
struct InputFeatures {
  std::vector<RowStore> stores;
  Standardization standard;
};

/// Collective over the grid. The features that part grid.row() owns, in their stored form, after
/// `feature_norm` ("none" | "row" | "standard", by `standard` where the mean and deviation are not
/// those of this graph; of one table alone). `on_disk`: they stay in the file, or in fewer bits in
/// one of each rank in the folder `spill`. Throws UserError(kUsage) where it cannot be written.
InputFeatures read_features(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                            std::span<const InputTable> tables, const std::string& feature_norm,
                            const Standardization& standard = {}, bool on_disk = false,
                            const std::string& spill = {});

// ---- definitions ----

template <class Space>
std::int64_t InputStoresOn<Space>::width() const {
  std::int64_t widest = 0;
  for (std::size_t k = 0; k < tables(); ++k) widest = std::max(widest, table(k).width());
  return widest;
}

template <class Space>
template <class Use>
void InputStoresOn<Space>::with_lists(const Space& space, std::size_t k,
                                      std::span<const MinibatchOn<Space>> minibatches,
                                      std::vector<Array<Space, std::int64_t>>& numbers,
                                      const Use& use) const {
  const auto& held = table(k).held();
  numbers.resize(held.all() ? 0 : minibatches.size());
  std::vector<std::span<const std::int64_t>> lists;
  for (std::size_t m = 0; m < minibatches.size(); ++m) {
    const auto& minibatch = minibatches[m];
    if (held.all()) {
      lists.push_back(minibatch.vertices);
      continue;
    }
    numbers_of(space, held, minibatch.blocks[0].runs, minibatch.vertices, numbers[m]);
    lists.emplace_back(numbers[m].data(), numbers[m].size());
  }
  use(lists);
}

template <class Space>
void InputStoresOn<Space>::fetch(const Space& space, std::span<const MinibatchOn<Space>> minibatches,
                                 InputMatrices<Space>& rows, std::string_view label,
                                 PendingInputOn<Space>& pending) const {
  have_fetches(pending);
  rows.resize(tables());
  for (std::size_t k = 0; k < tables(); ++k)
    with_lists(space, k, minibatches,
               [&](IdLists lists) { table(k).fetch(space, lists, rows[k], label, *pending.fetches[k]); });
}

template <class Space>
void InputStoresOn<Space>::begin_counts(const Space& space, std::span<const MinibatchOn<Space>> minibatches,
                                        PendingInputOn<Space>& pending, std::string_view label) const {
  have_fetches(pending);
  std::vector<Array<Space, std::int64_t>> of_features;
  for (std::size_t k = 0; k < tables(); ++k)
    with_lists(space, k, minibatches, k < features_.size() ? of_features : pending.rows_read,
               [&](IdLists lists) { table(k).begin_counts(space, lists, *pending.fetches[k], label); });
  if (edges_) edges_->begin_counts(space, minibatches, pending.edges, label);
}

template <class Space>
RemoteRows InputStoresOn<Space>::remote_bytes(const PendingInputOn<Space>& pending) const {
  RemoteRows bytes;
  for (std::size_t k = 0; k < tables(); ++k) {
    const auto& fetch = *pending.fetches[k];
    const auto of_row = table(k).fetched_bytes();
    bytes.add(fetch.remote_rows() * of_row, fetch.cached_rows() * of_row);
  }
  return bytes;
}

template <class Space>
std::int64_t InputStoresOn<Space>::remote_bytes(const Space& space,
                                                std::span<const MinibatchOn<Space>> minibatches) const {
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < tables(); ++k)
    with_lists(space, k, minibatches, [&](IdLists lists) {
      bytes += table(k).count_remote(space, lists) * table(k).fetched_bytes();
    });
  return bytes;
}

template <class Space>
void InputStoresOn<Space>::advance(const Space& space, PendingInputOn<Space>& pending, FetchMove move,
                                   std::string_view label) const {
  for (std::size_t k = 0; k < tables(); ++k) table(k).advance(space, *pending.fetches[k], move, label);
  if (edges_) edges_->advance(space, pending.edges, move, label);
}

template <class Space>
void InputStoresOn<Space>::finish(const Space& space, PendingInputOn<Space>& pending,
                                  std::span<MinibatchOn<Space>> minibatches, InputMatrices<Space>& rows,
                                  EdgesOn<Space>& edges, std::string_view label) const {
  rows.resize(tables());
  for (std::size_t k = 0; k < tables(); ++k) {
    table(k).correct(space, *pending.fetches[k], label);
    table(k).finish_fetch(space, *pending.fetches[k], rows[k]);
  }
  if (edges_) edges_->finish(space, pending.edges, minibatches, edges);
}

}  // namespace espalier

// Features of edges: a row for each entry of the adjacency matrix whose relation has some, where
// the entry's row lies. A layer of attention reads them beside the entries of its block
// (sparse/csr.hpp, EdgeRows).
//
//     block of a minibatch     (row, source) of each entry    picks, whoever drew them
//     number of the entry      v N + column                   asked of the owner of v, who finds
//                                                             it (entry_index.hpp)
//     block.edges              features, and whose they are
//
// No sampler and no exchange of picks knows that edges have features, so samples are those of the
// same graph without them; only who reads them pays.
//
// Relations may have features of several widths: rows are as wide as the widest, with zeros behind
// the others.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/feature/row_store.hpp"
#include "espalier/partition/owned_reader.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

/// Which columns of a matrix have features beside their entries.
template <class Space>
struct EdgeColumnsOn {
  SharedList<std::int64_t, Space> shifts;  ///< [relations] vertex - column, of the host too
  SharedList<std::uint8_t, Space> held;    ///< [relations] 1: has features

  EdgeColumnsOn() = default;
  EdgeColumnsOn(const Space& space, const Schema& schema, std::vector<std::uint8_t> held_)
      : shifts(space, schema.shifts()), held(space, std::move(held_)) {}
  bool all_held() const {
    for (const auto one : held.host())
      if (one == 0) return false;
    return true;
  }
};

/// What the blocks of some minibatches point to, and what a fetch works in.
template <class Space>
struct EdgesOn {
  std::vector<Array<Space, std::int32_t>> entries;  ///< of each minibatch, block after block: which
                                                    ///< entries of the block have rows
  std::vector<std::vector<std::int64_t>> counts;    ///< of each minibatch's blocks
  std::vector<Matrix<float, Space>> rows;           ///< beside entries
};

/// The rows of a step on their way.
template <class Space>
struct PendingEdgesOn {
  PendingFetchOn<Space> fetch;
  EdgesOn<Space> edges;
};

template <class Space>
class EdgeStoreOn {
 public:
  EdgeStoreOn(RowStoreOn<Space> rows, EdgeColumnsOn<Space> columns, std::int64_t all_columns)
      : rows_(std::move(rows)), columns_(std::move(columns)), all_columns_(all_columns) {}

  const RowStoreOn<Space>& rows() const { return rows_; }
  std::int64_t width() const { return rows_.width(); }
  /// Of each relation: 1 where its entries have rows.
  std::vector<std::uint8_t> held() const {
    return {columns_.held.host().begin(), columns_.held.host().end()};
  }

  /// The moves of a fetch (RowStoreOn) for all blocks of minibatches, which are not used after the
  /// call. Collective over the process column.
  void begin_counts(const Space& space, std::span<const MinibatchOn<Space>> minibatches,
                    PendingEdgesOn<Space>& pending, std::string_view label) const;
  void advance(const Space& space, PendingEdgesOn<Space>& pending, FetchMove move,
               std::string_view label) const {
    rows_.advance(space, pending.fetch, move, label);
  }
  /// The blocks of those minibatches point to what is in `edges`.
  void finish(const Space& space, PendingEdgesOn<Space>& pending, std::span<MinibatchOn<Space>> minibatches,
              EdgesOn<Space>& edges) const;

  /// The same for minibatches of one layer whose rows my part owns; not collective.
  void read(const Space& space, std::span<MinibatchOn<Space>> minibatches, EdgesOn<Space>& edges) const;

 private:
  /// Calls use(lists) with the numbers of the entries of minibatches.
  template <class Use>
  void with_lists(const Space& space, std::span<const MinibatchOn<Space>> minibatches, EdgesOn<Space>& edges,
                  const Use& use) const;
  void point(std::span<MinibatchOn<Space>> minibatches, const EdgesOn<Space>& edges) const;

  RowStoreOn<Space> rows_;
  EdgeColumnsOn<Space> columns_;
  std::int64_t all_columns_;
};
using EdgeStore = EdgeStoreOn<Cpu>;

/// How wide rows of features of edges are, how many there are, and their form. Width 0: the
/// graph has none, or its relations are merged.
struct EdgeTable {
  std::int64_t width = 0, rows = 0;
  const RowKind* kind = &row_kind_of(float());
  std::vector<std::uint8_t> held;  ///< [relations] 1: has features

  std::int64_t row_bytes() const { return kind->row_bytes(width); }
};
EdgeTable edge_table(const GraphInfo& graph);

/// Bytes that the stores of all parts hold together.
double edge_store_bytes(const GraphInfo& graph);

/// Collective over the grid. Features of the edges into the vertices that part grid.row() owns.
/// Throws UserError(kInput) where a relation has another number of them than of entries.
EdgeStore read_edges(const Grid& grid, const GraphFile& file, const Ownership& ownership);

/// A copy of `host` for the GPU. Local.
EdgeStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const EdgeStore& host,
                            const Schema& schema, Placement placement);

// ---- the kernels of this room ----

/// Adds the numbers of a block's entries whose columns are held to `numbers`, from place `from` on,
/// and which entries these are to `entries`, likewise; both have room for all. How many there were.
/// On a GPU the host waits once, unless all columns are held.
std::int64_t list_edges(const Cpu&, const BlockView<Cpu>& block, const std::int64_t* vertices,
                        const EdgeColumnsOn<Cpu>& columns, std::int64_t all_columns, std::int64_t* numbers,
                        std::int32_t* entries);
std::int64_t list_edges(const Cuda&, const BlockView<Cuda>& block, const std::int64_t* vertices,
                        const EdgeColumnsOn<Cuda>& columns, std::int64_t all_columns, std::int64_t* numbers,
                        std::int32_t* entries);

// ---- definitions ----

template <class Space>
template <class Use>
void EdgeStoreOn<Space>::with_lists(const Space& space, std::span<const MinibatchOn<Space>> minibatches,
                                    EdgesOn<Space>& edges, const Use& use) const {
  std::vector<Array<Space, std::int64_t>> numbers(minibatches.size());
  std::vector<std::span<const std::int64_t>> lists;
  edges.entries.resize(minibatches.size());
  edges.counts.resize(minibatches.size());
  for (std::size_t m = 0; m < minibatches.size(); ++m) {
    const auto& minibatch = minibatches[m];
    numbers[m].resize(minibatch.sampled_edges());
    edges.entries[m].resize(minibatch.sampled_edges());
    edges.counts[m].clear();
    std::int64_t listed = 0;
    for (const auto& block : minibatch.blocks) {
      edges.counts[m].push_back(list_edges(space, block, minibatch.vertices.data(), columns_, all_columns_,
                                           numbers[m].data() + listed, edges.entries[m].data() + listed));
      listed += edges.counts[m].back();
    }
    lists.emplace_back(numbers[m].data(), static_cast<std::size_t>(listed));
  }
  use(lists);
}

template <class Space>
void EdgeStoreOn<Space>::point(std::span<MinibatchOn<Space>> minibatches, const EdgesOn<Space>& edges) const {
  for (std::size_t m = 0; m < minibatches.size(); ++m) {
    std::int64_t at = 0;
    for (std::size_t l = 0; l < minibatches[m].blocks.size(); ++l) {
      const auto count = edges.counts[m][l];
      minibatches[m].blocks[l].edges = {count, width(), edges.entries[m].data() + at, edges.rows[m].row(at)};
      at += count;
    }
  }
}

template <class Space>
void EdgeStoreOn<Space>::begin_counts(const Space& space, std::span<const MinibatchOn<Space>> minibatches,
                                      PendingEdgesOn<Space>& pending, std::string_view label) const {
  with_lists(space, minibatches, pending.edges,
             [&](IdLists lists) { rows_.begin_counts(space, lists, pending.fetch, label); });
}

template <class Space>
void EdgeStoreOn<Space>::finish(const Space& space, PendingEdgesOn<Space>& pending,
                                std::span<MinibatchOn<Space>> minibatches, EdgesOn<Space>& edges) const {
  rows_.finish_fetch(space, pending.fetch, pending.edges.rows);
  std::swap(pending.edges, edges);
  point(minibatches, edges);
}

template <class Space>
void EdgeStoreOn<Space>::read(const Space& space, std::span<MinibatchOn<Space>> minibatches,
                              EdgesOn<Space>& edges) const {
  with_lists(space, minibatches, edges, [&](IdLists lists) { rows_.read_own(space, lists, edges.rows); });
  point(minibatches, edges);
}

}  // namespace espalier

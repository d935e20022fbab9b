// Learnable embeddings: rows that are trained with the network, for vertices that have no features
// (the key-value store of Zheng et al., DistDGLv2, KDD 2022, 5.4). A RowStore that learns.
//
// P(i,j) holds the rows that part i owns, as features lie; of those it is shard j of c that P(i,j)
// keeps the optimiser's state for. In a step, each minibatch has a gradient for each row that it
// read. They travel unadded to the shard of the row, which adds them in the order of the number of
// their minibatch, changes the row, and gives it to the other copies along the process row:
//
//     (row, minibatch, gradient)  ── column ──►  part i  ── row ──►  shard j
//     g = sum over minibatches, ascending        w = step(w, g)
//     rows that changed                          shard j  ── row ──►  all copies of part i
//
// So a row is the same bits for every grid and schedule, and on every copy of it. Only rows that a
// step has read change, and each counts its own steps (PyTorch's SparseAdam counts the steps of all
// of them; where every row is read in every step these are the same):
//
//     adam:     m = b1 m + (1 - b1) g     v = b2 v + (1 - b2) g^2
//               w -= rate sqrt(1 - b2^t) / (1 - b1^t)  m / (sqrt(v) + eps)       t: of the row
//     adagrad:  v = v + g^2               w -= rate g / (sqrt(v) + eps)
//
// (Kingma and Ba, ICLR 2015, the form at the end of section 2; Duchi et al., JMLR 2011.) Nothing
// decays.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "espalier/feature/input_tables.hpp"
#include "espalier/feature/row_store.hpp"
#include "espalier/file/state_tensor.hpp"
#include "espalier/graph/schema.hpp"

namespace espalier {

struct EmbeddingOptions {
  std::string optimizer = "adam";  ///< "adam" | "adagrad"
  std::uint64_t seed = 0;          ///< of the first rows
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon() const { return optimizer == "adam" ? 1e-8 : 1e-10; }
};

/// Whose rows a table of embeddings has: those of one type are numbers [begin, end).
struct EmbeddedType {
  std::string name;
  std::int64_t begin = 0, end = 0;
};
std::vector<EmbeddedType> embedded_types(const HeldTypes& held, const Schema& schema);

/// Gradients of rows on their way to the owners of these, and of which minibatch each is.
template <class Id, class Space>
struct PushedRows {
  Array<Space, Id> ids;
  Array<Space, std::int64_t> batches;
  Matrix<float, Space> rows;

  std::int64_t size() const { return rows.rows; }
  void resize(std::int64_t count, std::int64_t width) {
    ids.resize(count);
    batches.resize(count);
    rows.resize(count, width);
  }
};

/// Pushed rows in the order in which they take effect: those for rows[k] of a block are numbers
/// order[begins[k]] .. order[begins[k + 1]] of what was pushed.
template <class Space>
struct PushOrder {
  Array<Space, std::int64_t> rows;    ///< [changed] distinct, ascending
  Array<Space, std::int64_t> begins;  ///< [changed + 1]
  Array<Space, std::int64_t> order;   ///< [pushed]
};

/// What a push needs, kept for the next one: all lists one after another, the same by owner, what
/// came down the column, and what all copies have.
template <class Id, class Space>
struct PushMemory {
  PushedRows<std::int64_t, Space> listed;
  OwnerGroups<Id, Space> groups;
  PushedRows<Id, Space> grouped, arrived, shared;
  PushOrder<Space> order;
};

template <class Space>
class EmbeddingStoreOn {
 public:
  /// Not collective. Numbers of the first rows are uniform in +- 1 / sqrt(width), keyed by (seed,
  /// vertex). `vertices`: who owns what; the grid must stay.
  EmbeddingStoreOn(const Space& space, const GridOn<Space>& grid, const Ownership& vertices,
                   const InputTable& table, const Schema& schema, const EmbeddingOptions& options);

  /// What may be read, as of any store.
  const RowStoreOn<Space>& rows() const { return rows_; }

  /// Collective over the grid. One step: minibatch batches[m] has gradients[m](k, :) for row
  /// lists[m][k] of the table, distinct in one list. Each minibatch is of one rank; a rank may have
  /// none. A rate of 0 changes the state only.
  void update(const Space& space, double rate, IdLists lists, std::span<const std::int64_t> batches,
              std::span<const Matrix<float, Space>> gradients, std::string_view label);

  /// For a checkpoint, of each type "weights/embedding.TYPE" and
  /// "optimizer/embedding.TYPE/first_moment", "second_moment", "steps" (adagrad: "squares"). Read
  /// from where they are, as long as the store stays. Not collective.
  std::vector<StateTensor> state(const Space& space) const;
  /// The first of these.
  std::vector<StateTensor> weights(const Space& space) const;
  /// Takes them from a checkpoint, whatever grid has saved them; find(name, rows, columns) gives
  /// each. Throws what `find` and the reading throw; not collectively.
  using Find = std::function<const StateTensor&(const std::string&, std::int64_t, std::int64_t)>;
  void restore(const Space& space, const Find& find, bool with_state = true);

  /// A copy of the rows of my shard, on the host; the same under the names "best/weights/..", and
  /// from there.
  Buffer<float> kept_rows(const Space& space) const;
  std::vector<StateTensor> state_of_kept(const Buffer<float>& kept) const;
  Buffer<float> restore_kept(const Find& find) const;
  /// Collective over the process row. Every row becomes the one that was kept.
  void put_back(const Space& space, const Buffer<float>& kept, std::string_view label);

 private:
  struct StateOf {
    std::string name;
    Matrix<float, Space> value;  ///< [rows of my shard, width or 1]
  };

  ConstMatrixView<float, Space> block() const { return rows_.storage().rows().floats(); }
  const Ownership& ownership() const { return rows_.ownership(); }
  MatrixView<float, Space> my_shard();
  template <class Id>
  const PushedRows<Id, Space>& send_to_shards(const Space& space, IdLists lists,
                                              std::span<const std::int64_t> batches,
                                              std::span<const Matrix<float, Space>> gradients,
                                              std::int64_t& first, std::string_view label);
  void share_rows(const Space& space, const Array<Space, std::int64_t>& rows, std::string_view label);
  Matrix<float, Space>& state_of(std::string_view name);
  /// visit(name of the type, rows of it, place in my block of the first) for all of `places`.
  template <class Visit>
  void for_each_range(RowRange places, const Visit& visit) const;
  template <class Where>
  StateTensor tensor_of(const Where& where, const EmbeddedType& type, std::string name, const float* numbers,
                        std::int64_t columns, std::int64_t first) const;
  template <class Where>
  void read_rows(const Where& where, RowRange places, const Find& find, const std::string& prefix,
                 const std::string& suffix, std::int64_t columns, float* to) const;

  const GridOn<Space>* grid_;
  RowStoreOn<Space> rows_;
  EmbeddingOptions options_;
  std::vector<EmbeddedType> types_;
  RowRange shard_;                   ///< places of my block whose state is mine
  std::vector<StateOf> state_;       ///< by name: moments, steps
  Array<Space, float> corrections_;  ///< of Adam, by the number of steps: sqrt(1 - b2^t) /
                                     ///< (1 - b1^t)
  std::variant<PushMemory<std::int32_t, Space>, PushMemory<std::int64_t, Space>> memory_;
};
using EmbeddingStore = EmbeddingStoreOn<Cpu>;

}  // namespace espalier

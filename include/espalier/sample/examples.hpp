// The examples of an epoch, in batches: what a minibatch is drawn for.
//
// All of it is a function of (seed, epoch) and of what was given, on every grid. *Shuffled
// examples* are vertices that are learnt, shuffled and cut into batches; every rank holds the
// shuffle. A *partition of all vertices* cuts the vertices of the whole graph into random sets, of
// which some are learnt and the others are there for their sake (sampler.kind = "subgraph"); it is
// computed where it is asked for, and no rank holds it. Neither takes a message. *Links* have
// several seeds each, and ranks ask each other for them (link_examples.hpp).
//
// With groups (sampler.groups) the examples of a batch are of one group, which is shuffled by
// itself and cut into even batches of at most `batch_size`. Groups close in number have
// neighbouring vertices. Consecutive batches are of groups spread over all of them:
//
//     batch j of the n of group g comes in the order of (j + u_g) / n,
//     u_g = the bits of g reversed behind the point, all turned by one draw of the epoch
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

/// How many batches of `size` (>= 1) `items` make, the last one possibly short.
inline std::int64_t count_batches(std::int64_t items, std::int64_t size) {
  return items / size + (items % size != 0 ? 1 : 0);
}

/// An entry between two seeds: places in their list, and in all lists, where the seeds come first.
struct SeedPair {
  std::int32_t row = 0, column = 0;
  std::int32_t relation = 0;  ///< of A; blocks without relations have one

  friend auto operator<=>(const SeedPair&, const SeedPair&) = default;
};

struct Order;      // partition/order.hpp
struct LinkBatch;  // link_examples.hpp

/// A batch: its number, and the distinct vertices that it begins with, as the logits' rows stand.
/// Its lists may lie in memory of its own, so they are asked of a batch that has a name:
/// what plan.batch(k).label_indices() could show would be gone at the semicolon. Copies
/// share the memory.
class SeedBatch {
 public:
  std::int64_t number = 0;
  std::uint64_t digest = 0;  ///< of what its examples are beside their seeds

  SeedBatch() = default;
  /// `memory` keeps the lists, where nobody else does.
  SeedBatch(std::int64_t number_, std::span<const std::int64_t> seeds,
            std::span<const std::int32_t> label_indices = {}, std::shared_ptr<const void> memory = {})
      : number(number_), seeds_(seeds), label_indices_(label_indices), memory_(std::move(memory)) {}
  /// Of links.
  SeedBatch(std::int64_t number_, const std::shared_ptr<const LinkBatch>& links);

  std::span<const std::int64_t> seeds() const& { return seeds_; }
  /// Beside the seeds what their task knows them by; -1: a vertex that is no example. Or empty.
  std::span<const std::int32_t> label_indices() const& { return label_indices_; }
  /// Entries of A between seeds that its blocks must not have, ascending; or none.
  std::span<const SeedPair> excluded_edges() const& { return excluded_edges_; }
  /// Where its examples are links; or null.
  const LinkBatch* links() const& { return links_; }
  void seeds() const&& = delete;
  void label_indices() const&& = delete;
  void excluded_edges() const&& = delete;
  void links() const&& = delete;

  /// Its blocks must not have these, which must outlive it.
  void exclude_edges(std::span<const SeedPair> pairs) { excluded_edges_ = pairs; }

 private:
  std::span<const std::int64_t> seeds_;
  std::span<const std::int32_t> label_indices_;
  std::span<const SeedPair> excluded_edges_;
  const LinkBatch* links_ = nullptr;
  std::shared_ptr<const void> memory_;
};

/// Training examples in groups that are close in the graph.
struct BatchGroups {
  /// Of each training example that this rank has, in their order: 0 .. count - 1. Vertices: all.
  Buffer<std::int32_t> of;
  std::int32_t count = 1;
  std::uint64_t digest = 0;  ///< of all examples' groups, the same on every grid
};

/// The group of each training vertex: which of `count` stretches of the clusters, with training
/// vertices as evenly as clusters allow, has it. 1 <= count <= clusters. Local.
BatchGroups group_batches(const Order& order, std::span<const std::int64_t> training, std::int32_t count);

/// Collective. The same of examples of which each rank has even_range(all, p, r), each where a
/// vertex of it is: stretches with examples as evenly as clusters allow.
BatchGroups group_spread_batches(const Communicator& comm, const Order& order,
                                 std::span<const std::int64_t> vertices, std::int32_t count);

/// Vertices that are learnt, with what their task knows each by.
struct TrainingVertices {
  std::span<const std::int64_t> vertices;            ///< ascending
  std::span<const std::int32_t> label_indices = {};  ///< beside them, or empty
};

class Examples {
 public:
  virtual ~Examples() = default;

  virtual std::int64_t batches() const = 0;
  /// Collective, before batch() is asked for these, which this rank keeps. One call at a time.
  virtual void prepare(const Communicator&, std::span<const std::int64_t> /*batches*/) const {}
  /// Not collective. From here on batch `batch` is not asked for, unless it is prepared anew.
  virtual void release(std::int64_t /*batch*/) const {}
  /// How many seeds batches [begin, end) have.
  virtual std::int64_t count_seeds(std::int64_t begin, std::int64_t end) const = 0;
  /// Local. Batch k, as long as these live; may be asked for by several threads at once.
  virtual SeedBatch batch(std::int64_t k) const = 0;
  /// 0: every seed is an example. Else batches are random sets of so many vertices, some learnt.
  virtual std::int64_t population() const { return 0; }
  /// [batches] the group that each is of; empty: of none.
  virtual std::span<const std::int32_t> groups() const { return {}; }
};

/// How an epoch is cut.
struct EpochShape {
  std::int64_t batch_size = 1, batches_per_step = 1;
  int ranks = 1;
  std::uint64_t seed = 0, epoch = 0;
  const BatchGroups* groups = nullptr;  ///< of the batches, or none
  std::int64_t population = 0;          ///< not 0: batches are of all these vertices
};

/// Where the examples of epochs come from.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;
  virtual std::shared_ptr<const Examples> of_epoch(const EpochShape& shape) const = 0;
};

/// Vertices that are learnt. Without a population, shuffled: Fisher-Yates by draws of (seed,
/// epoch); all is copied. With one, all n vertices in random sets of at most `batch_size`, as even
/// as can be; a batch ascends, so that those of one type stand together. Any two vertices are in
/// one batch of size b with probability b (b - 1) / (n (n - 1)). They must stay.
class VertexSource final : public ExampleSource {
 public:
  /// The vertices must outlive it.
  explicit VertexSource(const TrainingVertices& training) : training_(training) {}
  explicit VertexSource(Buffer<std::int64_t> vertices)
      : own_(std::move(vertices)), training_{.vertices = own_} {}
  VertexSource(const VertexSource&) = delete;

  std::shared_ptr<const Examples> of_epoch(const EpochShape& shape) const override;

 private:
  Buffer<std::int64_t> own_;
  TrainingVertices training_;
};

/// Vertices once each, in the order in which they are given, in batches of `batch_size`: for
/// looking at all of them, whatever the seed and the epoch. Both lists must outlive what is
/// made of it.
class VerticesInOrder final : public ExampleSource {
 public:
  explicit VerticesInOrder(const TrainingVertices& vertices) : vertices_(vertices) {}
  std::shared_ptr<const Examples> of_epoch(const EpochShape& shape) const override;

 private:
  TrainingVertices vertices_;
};

}  // namespace espalier

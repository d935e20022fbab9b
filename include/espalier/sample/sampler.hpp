// A sampler turns batches of seeds into minibatches, many at once (in bulk).
//
// Every sampler composes three operations on the distributed product P = Q A (design, section 5):
// NORM gives P's rows integer weights, SAMPLE draws from them, EXTRACT makes the blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/sample/examples.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

struct SamplerConfig;  // base/config.hpp

/// What a block's values mean (design, section 5).
enum class Aggregation {
  kMean,    ///< 1 / |picked|; of weighted draws each pick's share, so that the block's row
            ///< estimates the weighted mean
  kMatrix,  ///< entries of A scaled so that the block's row estimates A's; node-wise samplers keep
            ///< the diagonal exactly
};

/// The variants of the layer-wise samplers; each sampler's file says what they are.
enum class SamplerMode { kPaper, kReference, kDebiased };

/// "paper", "reference" or "debiased".
SamplerMode sampler_mode_of(const std::string& name);

/// How draws by weight are made, all of one law.
enum class DrawLaw {
  kIts,   ///< inverse transform sampling (sample/draw.hpp)
  kRace,  ///< an exponential race, whose picks merge from parts of a row (sample/draw_race.hpp)
};

/// "its" or "race".
DrawLaw draw_law_of(const std::string& name);

struct SamplerShape {
  std::vector<std::int64_t> fanout;  ///< of a vertex or layer, next to the batch first; -1: all
  /// [layers][relations] instead; empty: `fanout` for each (node-wise) or all.
  std::vector<std::vector<std::int64_t>> relation_fanout = {};
  /// Draw in proportion to A's entries.
  bool weighted = false;
  DrawLaw draw = DrawLaw::kIts;
  Aggregation aggregation = Aggregation::kMean;
  std::string label = "sample";  ///< what its communication is booked under
  SamplerMode mode = SamplerMode::kDebiased;
  /// LABOR: batches k n .. k n + k - 1 draw by the same random numbers.
  std::int64_t share_batches = 1;
  Schedule schedule = Schedule::kAuto;
  // What `auto` goes by.
  std::int64_t batch_size = 1024;
  double batches_per_rank = 1;  ///< sampled at once

  /// Has a node-wise sampler values of its own beside its picks, whatever its kind?
  bool weighs_picks() const { return weighted || aggregation == Aggregation::kMatrix; }
};

/// How draws from pieces of rows that are cut become those of the rows: a point below the sum of a
/// row's weights is of no piece, and a relation's part of a row has no facts of its own.
inline JoinPieces join_of_draws(const SamplerShape& shape, bool typed) {
  if (typed) return JoinPieces::kNever;
  if (!shape.weighted) return JoinPieces::kConcatenate;
  return shape.draw == DrawLaw::kRace ? JoinPieces::kMerge : JoinPieces::kNever;
}

/// What exact evaluation samples by graphsage: whole rows of the matrix that training samples,
/// which is what the blocks of training estimate. `label`: what its communication is booked under.
SamplerShape whole_rows_shape(const SamplerShape& training, const char* label);

/// The fanout of each layer and relation, [layers][relations]: `fanout` but where an entry of
/// `keys` says otherwise, as "author.writes.paper=25,10" (the relation, a number for each layer or
/// one for all of them; 0 in all: the relation is left out). Empty where there are no keys. Throws
/// UserError(kUsage) for a relation that is not there or said twice, or for wrong numbers.
std::vector<std::vector<std::int64_t>> relation_fanouts(const std::vector<std::string>& keys,
                                                        const std::vector<std::int64_t>& fanout,
                                                        const Schema& schema);

/// How many columns a layer-wise sampler draws at most in layer k (first: next to the batch), of
/// all relations; -1: any number, of some.
std::int64_t most_of_layer(const SamplerShape& shape, std::size_t k);
/// The same of those it draws one by one: 0 of those of which it takes all.
std::int64_t drawn_of_layer(const SamplerShape& shape, std::size_t k);

/// Points among the weights of all vertices that were to be found for this rank's batches, and in
/// how many rounds.
struct SpreadDraws {
  std::int64_t points = 0, rounds = 0;
};

/// On a GPU minibatches are made and stay there; the numbers are the same.
template <class Space>
class SamplerOn {
 public:
  virtual ~SamplerOn() = default;

  /// Collective over the grid. Samples this rank's `batches` (possibly none) and returns them in
  /// order. A minibatch is a function of (seed, epoch, batch number, seeds). Seeds are host memory.
  virtual std::vector<MinibatchOn<Space>> sample(const Space& space, std::span<const SeedBatch> batches,
                                                 std::uint64_t seed, std::uint64_t epoch) = 0;

  /// Collective over the grid. Of each batch one block: the rows `seeds`, in any order, of what
  /// `sample` draws for them in layer k (first: next to the batch), and as vertices these rows and,
  /// ascending, the columns that they lack. Of samplers that draw for each vertex on its own.
  virtual std::vector<MinibatchOn<Space>> sample_layer(const Space& space, std::span<const SeedBatch> rows,
                                                       std::uint64_t seed, std::uint64_t epoch,
                                                       std::size_t k);

  /// The schedule of each layer's product, first: next to the batch.
  virtual const std::vector<Schedule>& schedules() const = 0;

  /// Of the last `sample`, where weights are spread over a process column (SamplerKind).
  virtual SpreadDraws spread_draws() const { return {}; }
  /// How many columns a batch picks in layer k (first: next to the batch), where that does not
  /// depend on the batch; else -1.
  virtual std::int64_t columns_of_layer(std::size_t /*k*/) const { return -1; }
};

template <class Space>
std::vector<MinibatchOn<Space>> SamplerOn<Space>::sample_layer(const Space&, std::span<const SeedBatch>,
                                                               std::uint64_t, std::uint64_t, std::size_t) {
  ESPALIER_CHECK(false, "a sampler that draws whole layers has no rows of its own");
  return {};
}

using Sampler = SamplerOn<Cpu>;

/// What the rest of the program must know of a sampler.
struct SamplerKind {
  const char* name;
  bool layer_wise;       ///< draws one set of vertices per layer, of a matrix with values
  bool induces;          ///< batches are of all vertices, their blocks the induced subgraph
  bool sums_rows;        ///< draws from a sum of the frontier's rows, which the product moves
  bool spreads_weights;  ///< draws from weights of all vertices, which a process column shares
  bool weighs_picks;     ///< has a value for each pick also where the block is a mean
  bool takes_weighted;   ///< knows sampler.weighted
  bool takes_mode;       ///< knows sampler.mode, all of whose modes but debiased are biased
  bool shares_draws;     ///< knows sampler.share_batches
  bool reference_mean;   ///< estimates the row mean of A + I in mode reference, whatever the model
  const char* about;     ///< one line for users

  /// Beside picks that travel?
  bool has_values(const SamplerShape& shape) const { return weighs_picks || shape.weighs_picks(); }
};

std::span<const SamplerKind> sampler_kinds();

/// The sampler of a name. Throws UserError(kUsage) that lists the names when there is none.
const SamplerKind& sampler_kind_of(const std::string& name);

/// EpochShape::population of that sampler's epochs on a graph of so many vertices.
inline std::int64_t population_of(const SamplerKind& kind, std::int64_t nodes) {
  return kind.induces ? nodes : 0;
}

/// Throws UserError(kUsage) for a key that the sampler would ignore (`own_weights`: has the
/// model's matrix the edge weights in any case?).
void check_sampler_keys(const SamplerConfig& sampler, bool own_weights);

/// Makes the sampler `kind` over `a`, which must outlive it. Collective over the grid. Throws
/// UserError when the sampler cannot do what `shape` asks for.
template <class Index, class Space>
std::unique_ptr<SamplerOn<Space>> make_sampler(const Space& space, const std::string& kind,
                                               const DistCsr<Index, Space>& a, const SamplerShape& shape);

template <class Index>
std::unique_ptr<Sampler> make_sampler(const std::string& kind, const DistCsr<Index>& a,
                                      const SamplerShape& shape) {
  return make_sampler(Cpu{}, kind, a, shape);
}

}  // namespace espalier

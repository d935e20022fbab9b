// A sampler turns batches of seeds into minibatches, many at once (in bulk).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/dist/dist_csr.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

/// One batch to sample: its number in the epoch and its distinct training vertices.
struct SeedBatch {
  std::int64_t number = 0;
  std::span<const std::int64_t> seeds;
};

/// What a block's values mean (design, section 5).
enum class Aggregation {
  kMean,    ///< 1 / |picked|
  kMatrix,  ///< entries of A scaled so that the block's row is an unbiased estimate of A's; the diagonal is
            ///< kept exactly
};

struct SamplerShape {
  std::vector<std::int64_t> fanout;  ///< first: next to the batch; -1 = all
  bool weighted = false;             ///< draw in proportion to A's entries
  Aggregation aggregation = Aggregation::kMean;
  std::string label = "sample";  ///< what its communication is booked under
};

class Sampler {
 public:
  virtual ~Sampler() = default;

  /// Collective over the process column. Samples this rank's `batches` (possibly none) and returns them in
  /// order. A minibatch is a function of (seed, epoch, batch number, seeds), of nothing else.
  virtual std::vector<Minibatch> sample(const Cpu& cpu, std::span<const SeedBatch> batches,
                                        std::uint64_t seed, std::uint64_t epoch) = 0;
};

/// GraphSAGE (Hamilton et al. 2017) over `a`, which must outlive it. Collective over the grid (the largest
/// weight is agreed on). Throws UserError(kInput) when `weighted` is asked for and the matrix has no values.
template <class Index>
std::unique_ptr<Sampler> make_graphsage(const DistCsr<Index>& a, const SamplerShape& shape);

}  // namespace espalier

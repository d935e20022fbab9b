// How many different ids a number of batches holds, from some that were drawn.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace espalier {

// How many different ids k of M drawn batches hold, on average over all choices of k (rarefaction),
// and more than M by how many ids were met in one and in two batches only (Chao's estimator of the
// unseen; Colwell et al. 2012, equations 4 and 9, for incidence data). Unseen ids weigh what those
// met once do.
class DistinctCurve {
 public:
  explicit DistinctCurve(std::int64_t ids) : met_(static_cast<std::size_t>(ids), 0) {}
  /// An id of one batch, in which it comes once.
  void add(std::int64_t id) { ++met_[id]; }

  /// Ids and their weight in `batches` batches, of `drawn` that were added.
  template <class Weight>
  std::pair<double, double> at(double batches, double drawn, const Weight& weight) const {
    std::pair<double, double> distinct = {0, 0};
    double once = 0, twice = 0, weight_of_once = 0;
    for (std::size_t id = 0; id < met_.size(); ++id) {
      const double times = met_[id];
      if (times == 0) continue;
      // The chance that none of k batches is among the `times` of M.
      const double missed =
          batches + times > drawn
              ? 0
              : std::exp(std::lgamma(drawn - times + 1) - std::lgamma(drawn - times - batches + 1) -
                         std::lgamma(drawn + 1) + std::lgamma(drawn - batches + 1));
      const double of_id = weight(static_cast<std::int64_t>(id));
      distinct.first += 1 - missed;
      distinct.second += of_id * (1 - missed);
      once += times == 1;
      twice += times == 2;
      weight_of_once += times == 1 ? of_id : 0;
    }
    if (batches <= drawn || once == 0) return distinct;
    const double unseen =
        (drawn - 1) / drawn * (twice > 0 ? once * once / (2 * twice) : once * (once - 1) / 2);
    if (unseen <= 0) return distinct;
    const double fresh =
        unseen * -std::expm1((batches - drawn) * std::log1p(-once / (drawn * unseen + once)));
    return {distinct.first + fresh, distinct.second + fresh * weight_of_once / once};
  }

 private:
  std::vector<std::uint32_t> met_;
};

}  // namespace espalier

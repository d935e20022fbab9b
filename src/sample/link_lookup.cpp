#include "espalier/sample/link_lookup.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "espalier/base/elementary.hpp"
#include "espalier/base/error.hpp"

namespace espalier {

constexpr const char* kLabel = "sample/lookup";

KnownLinks::KnownLinks(const Communicator& comm, std::int64_t vertices, std::span<const LinkTriple> mine,
                       bool directed)
    : vertices_(vertices) {
  std::vector<LinkTriple> sent(mine.begin(), mine.end());
  if (!directed)
    for (const auto& link : mine) sent.push_back({link.tail, link.head, link.relation});
  const auto counts = group_stably(sent, comm.size(), [&](const LinkTriple& link) {
    return even_owner(vertices, comm.size(), link.head);
  });
  const auto received = comm.all_to_all_v(std::span<const LinkTriple>(sent), counts, "setup");
  links_.assign(received.data.begin(), received.data.end());
  std::ranges::sort(links_);
  links_.erase(std::ranges::unique(links_).begin(), links_.end());
}

Buffer<std::uint8_t> KnownLinks::are_known(const Communicator& comm,
                                           std::span<const LinkTriple> links) const {
  return ask_owners<std::uint8_t>(
      comm, links, [&](const LinkTriple& link) { return even_owner(vertices_, comm.size(), link.head); },
      [&](const LinkTriple& link) -> std::uint8_t {
        return std::ranges::binary_search(links_, link) ? 1 : 0;
      },
      kLabel);
}

DegreeWeights::DegreeWeights(const Communicator& comm, std::int64_t vertices,
                             std::span<const LinkTriple> mine, double power, std::vector<std::int64_t> bounds)
    : vertices_(vertices), bounds_(std::move(bounds)) {
  std::vector<std::int64_t> met;
  for (const auto& link : mine) {
    met.push_back(link.head);
    met.push_back(link.tail);
  }
  const auto counts =
      group_stably(met, comm.size(), [&](std::int64_t v) { return even_owner(vertices, comm.size(), v); });
  const auto range = even_range(vertices, comm.size(), comm.rank());
  ends_.resize(static_cast<std::size_t>(range.size()), 0);
  for (const auto v : comm.all_to_all_v(std::span<const std::int64_t>(met), counts, "setup").data)
    ++ends_[v - range.begin];
  // 2^bits (degree / the highest)^power, by our own elementary functions, so that machines agree.
  const auto highest =
      comm.all_reduce(ends_.empty() ? std::int64_t{1} : std::max<std::int64_t>(1, std::ranges::max(ends_)),
                      Reduction::kMax, "setup");
  const int bits = 62 - std::bit_width(static_cast<std::uint64_t>(vertices));
  const double log_of_highest = log_of_positive(static_cast<double>(highest)),
               scale = std::ldexp(1.0, std::min(bits, 40));
  for (auto& end : ends_)
    if (end > 0) {
      const double below = std::min(0.0, log_of_positive(static_cast<double>(end)) - log_of_highest);
      end = std::max<std::int64_t>(1, std::llround(scale * exp_of_nonpositive(power * below)));
    }
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  begins_ = {0};
  for (const auto sum : comm.all_gather(ends_.empty() ? std::int64_t{0} : ends_.back(), "setup"))
    begins_.push_back(begins_.back() + sum);
  for (auto& end : ends_) end += begins_[comm.rank()];
  // The numbers at the bounds: of the rank that has the vertex before.
  at_.assign(bounds_.size(), 0);
  for (std::size_t k = 0; k < bounds_.size(); ++k)
    if (const auto last = bounds_[k] - 1; last >= range.begin && last < range.end)
      at_[k] = ends_[last - range.begin];
  comm.all_reduce(std::span<std::int64_t>(at_), Reduction::kMax, "setup");
}

RowRange DegreeWeights::numbers(const RowRange& vertices) const {
  const auto at = [&](std::int64_t bound) {
    const auto found = std::ranges::lower_bound(bounds_, bound);
    ESPALIER_CHECK(found != bounds_.end() && *found == bound, "vertex {} is no bound", bound);
    return at_[found - bounds_.begin()];
  };
  return {at(vertices.begin), at(vertices.end)};
}

std::vector<std::int64_t> DegreeWeights::vertices_of(const Communicator& comm,
                                                     std::span<const std::int64_t> numbers) const {
  const auto first = even_range(vertices_, comm.size(), comm.rank()).begin;
  const auto vertices = ask_owners<std::int64_t>(
      comm, numbers,
      [&](std::int64_t number) { return std::ranges::upper_bound(begins_, number) - begins_.begin() - 1; },
      [&](std::int64_t number) { return first + (std::ranges::upper_bound(ends_, number) - ends_.begin()); },
      kLabel);
  return {vertices.begin(), vertices.end()};
}

Cost ask_cost(int ranks, double requests, std::size_t request_bytes, std::size_t answer_bytes) {
  if (ranks == 1) return {};
  const double others = ranks - 1;
  return {3 * others,
          8 * others + requests * others / ranks * static_cast<double>(request_bytes + answer_bytes), 3};
}

}  // namespace espalier

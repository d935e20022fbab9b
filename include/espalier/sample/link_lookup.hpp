// What ranks ask each other about links as a whole, many requests at once: is this one of them,
// and which vertex does a number stand for that was drawn in proportion to degrees?
//
// Both are spread by vertices, rank r has even_range(n, p, r) of them: of the heads of links, and
// of the vertices with their weights. Answers do not depend on p.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/owners.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

struct LinkTriple {
  std::int64_t head = 0, tail = 0;
  std::int32_t relation = 0;

  friend auto operator<=>(const LinkTriple&, const LinkTriple&) = default;
};

class KnownLinks {
 public:
  /// Collective. Of the ranks' links, and, where these have no direction, their reverses.
  KnownLinks(const Communicator& comm, std::int64_t vertices, std::span<const LinkTriple> mine,
             bool directed);

  /// Collective; each rank its own list. Of each: is it known?
  Buffer<std::uint8_t> are_known(const Communicator& comm, std::span<const LinkTriple> links) const;
  /// Bytes of this rank.
  std::int64_t bytes() const { return std::ssize(links_) * static_cast<std::int64_t>(sizeof(LinkTriple)); }

 private:
  std::int64_t vertices_;
  std::vector<LinkTriple> links_;  ///< ascending, those whose heads are mine
};

/// Vertices in proportion to (how many links they are an end of)^power, as integers: rounded, and
/// so scaled that their sum has 62 bits at most.
class DegreeWeights {
 public:
  /// Collective. `bounds`: ids between which one may want to draw, ascending, with 0 and vertices.
  DegreeWeights(const Communicator& comm, std::int64_t vertices, std::span<const LinkTriple> mine,
                double power, std::vector<std::int64_t> bounds);

  /// The numbers that stand for a range of vertices between bounds; empty where none has a link.
  RowRange numbers(const RowRange& vertices) const;
  /// Collective; each rank its own list. The vertices that numbers stand for.
  std::vector<std::int64_t> vertices_of(const Communicator& comm,
                                        std::span<const std::int64_t> numbers) const;

 private:
  std::int64_t vertices_;
  std::vector<std::int64_t> begins_;       ///< [ranks + 1] the first number of each rank
  std::vector<std::int64_t> ends_;         ///< [my vertices] where the numbers of each end
  std::vector<std::int64_t> bounds_, at_;  ///< and the numbers there
};

/// What a rank receives that asks so many requests of the ranks that have the answers, which lie
/// evenly, as many as each of them asks: how many, the requests, the answers.
Cost ask_cost(int ranks, double requests, std::size_t request_bytes, std::size_t answer_bytes);

// Requests to whoever has the answer, all of a rank at once.

/// Collective; each rank its own list. Answers to requests, each from the rank that
/// owner(request) names, where answer(request) is called; they stand beside the requests.
/// `weight`: that the traffic's prediction gives a request; 1 where owners are spread evenly.
template <class Answer, class Request, class Owner, class Say>
Buffer<Answer> ask_owners(const Communicator& comm, std::span<const Request> requests, const Owner& owner,
                          const Say& answer, std::string_view label, double weight = 1) {
  predict(
      comm.traffic(), label,
      ask_cost(comm.size(), weight * static_cast<double>(requests.size()), sizeof(Request), sizeof(Answer)));
  return answers_of_owners<Answer>(
      comm, requests, owner, [&](const Request& request, Answer* to) { *to = answer(request); }, label);
}

}  // namespace espalier

// Requests to whoever has the answer, all of a rank at once.
#pragma once

#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/base/group_stably.hpp"
#include "espalier/sample/link_lookup.hpp"

namespace espalier {

/// Collective; each rank its own list. Answers to requests, each from the rank that
/// owner(request) names, where answer(request) is called; they stand beside the requests.
/// `weight`: that the traffic's prediction gives a request; 1 where owners are spread evenly.
template <class Answer, class Request, class Owner, class Say>
Buffer<Answer> ask_owners(const Communicator& comm, std::span<const Request> requests, const Owner& owner,
                          const Say& answer, std::string_view label, double weight = 1) {
  std::vector<std::int64_t> places(requests.size());
  std::iota(places.begin(), places.end(), std::int64_t{0});
  const auto counts =
      group_stably(places, comm.size(), [&](std::int64_t place) { return owner(requests[place]); });
  std::vector<Request> sent;
  for (const auto place : places) sent.push_back(requests[place]);
  const auto asked = comm.all_to_all_v(std::span<const Request>(sent), counts, label);
  Buffer<Answer> said(asked.data.size()), arrived;
  for (std::size_t k = 0; k < said.size(); ++k) said[k] = answer(asked.data[k]);
  comm.all_to_all_v(std::span<const Answer>(said), asked.counts, counts, arrived, label);
  predict(
      comm.traffic(), label,
      ask_cost(comm.size(), weight * static_cast<double>(requests.size()), sizeof(Request), sizeof(Answer)));
  Buffer<Answer> answers(requests.size());
  for (std::size_t k = 0; k < places.size(); ++k) answers[places[k]] = arrived[k];
  return answers;
}

}  // namespace espalier

// Between ranks of which each owns rows of something: what others ask of the owners, and what they
// bring to them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/group_stably.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Collective; each rank its own list. Answers to requests, each from the rank that owner(request)
/// names, where answer(request, to) writes it: `columns` values. They stand beside the requests,
/// [requests, columns].
template <class Answer, class Request, class Owner, class Say>
Buffer<Answer> answers_of_owners(const Communicator& comm, std::span<const Request> requests,
                                 const Owner& owner, const Say& answer, std::string_view label,
                                 std::int64_t columns = 1) {
  Buffer<std::int64_t> places(requests.size());
  std::iota(places.begin(), places.end(), std::int64_t{0});
  auto counts = group_stably(places, comm.size(), [&](std::int64_t place) { return owner(requests[place]); });
  Buffer<Request> sent;
  sent.reserve(requests.size());
  for (const auto place : places) sent.push_back(requests[place]);
  auto asked = comm.all_to_all_v(std::span<const Request>(sent), counts, label);
  Buffer<Answer> said(asked.data.size() * columns), arrived;
  for (std::size_t k = 0; k < asked.data.size(); ++k) answer(asked.data[k], said.data() + k * columns);
  for (auto* list : {&counts, &asked.counts})
    for (auto& count : *list) count *= columns;
  comm.all_to_all_v(std::span<const Answer>(said), asked.counts, counts, arrived, label);
  Buffer<Answer> answers(requests.size() * columns);
  for (std::size_t k = 0; k < places.size(); ++k)
    std::copy_n(arrived.data() + k * columns, columns, answers.data() + places[k] * columns);
  return answers;
}

/// Collective. Goes through so many things of this rank, a round of them at a time: make(k, sent)
/// adds to `sent` what thing k has for the owner of row Item::row, of even ranges of `n` rows: room
/// is made for `of_each` items of a thing. Calls take(sent, its counts by rank, received) after
/// each round, as often on every rank.
template <class Item, class Make, class Take>
void exchange_in_rounds(const Communicator& comm, std::int64_t n, std::int64_t things, std::int64_t per_round,
                        std::int64_t of_each, const char* label, Make make, Take take) {
  const auto rounds = comm.all_reduce(things / per_round + 1, Reduction::kMax, label);
  std::int64_t at = 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    Buffer<Item> sent;
    const auto end = even_range(things, rounds, round).end;
    sent.reserve(static_cast<std::size_t>((end - at) * of_each));
    for (; at < end; ++at) make(at, sent);
    const auto counts = group_stably(sent, comm.size(),
                                     [&](const Item& item) { return even_owner(n, comm.size(), item.row); });
    take(sent, counts, comm.all_to_all_v(std::span<const Item>(sent), counts, label));
  }
}

}  // namespace espalier

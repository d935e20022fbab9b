// Whether each edge has its reverse: each entry (row v, relation r, source u) is asked for at the
// rank that has row u, in the same relation, where that joins a type to itself, and in the inverse
// of r. Exact; a few million entries travel at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "espalier/base/group_stably.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/row_range.hpp"
#include "espalier/graph/schema.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

struct Reverses {
  std::vector<std::uint8_t> symmetric;  ///< [relations] has each edge its reverse in the relation?
  std::vector<std::uint8_t> inverse;    ///< [relations] has each its reverse in the
                                        ///< relation's inverse, and that no other? No where
                                        ///< there is no inverse
  std::vector<std::int64_t> edges;      ///< [relations] without loops, of those that join a type
                                        ///< to itself
  std::vector<std::int64_t> answered;   ///< [relations] of these the ones that have their reverse
                                        ///< in the relation
};

namespace reverse_detail {

// Of a rank, and of all: they may all ask the same one, which has the row of a hub.
inline constexpr std::int64_t kEntriesPerRound = std::int64_t{1} << 20, kEntriesOfAll = 16 * kEntriesPerRound;

// Is there an entry in this row and column of the wide matrix?
template <class Index>
struct Question {
  Index row, column;
  std::int32_t relation;  // of the entry that it is the reverse of
};

template <class Index>
class Asker {
 public:
  Asker(const Communicator& comm, const Schema& schema, const RowRange& range, const Csr<Index>& rows,
        const std::vector<std::int64_t>& entries, const std::vector<int>& asked)
      : comm_(comm),
        schema_(schema),
        range_(range),
        rows_(rows),
        per_round_(std::clamp<std::int64_t>(kEntriesOfAll / comm.size(), 1, kEntriesPerRound)),
        in_itself_(entries.size(), 0),
        in_inverse_(entries.size(), 0),
        edges_(entries.size(), 0),
        answered_(entries.size(), 0) {
    for (const int r : asked) {
      const auto& of = schema.relations()[r];
      in_itself_[r] = of.source == of.target;
      in_inverse_[r] = of.inverse >= 0 && of.inverse != r && entries[r] == entries[of.inverse];
    }
  }

  Reverses ask() {
    const auto rounds = comm_.all_reduce(rows_.entries() / per_round_ + 1, Reduction::kMax, kLabel);
    for (std::int64_t round = 0; round < rounds; ++round) {
      auto questions = next_questions();
      const auto counts = group_stably(questions, comm_.size(), [&](const Question<Index>& of) {
        return even_owner(schema_.nodes(), comm_.size(), of.row);
      });
      answer(comm_.all_to_all_v(std::span<const Question<Index>>(questions), counts, kLabel).data);
    }
    comm_.all_reduce(std::span(edges_), Reduction::kSum, kLabel);
    comm_.all_reduce(std::span(answered_), Reduction::kSum, kLabel);
    for (int r = 0; r < std::ssize(in_itself_); ++r) {
      in_itself_[r] &= answered_[r] == edges_[r];
      if (schema_.relations()[r].inverse == r) in_inverse_[r] = in_itself_[r];
    }
    return {in_itself_, in_inverse_, edges_, answered_};
  }

 private:
  static constexpr const char* kLabel = "reverse edges";

  Buffer<Question<Index>> next_questions() {
    Buffer<Question<Index>> questions;
    const auto end = std::min(at_ + per_round_, rows_.entries());
    for (; at_ < end; ++at_) {
      while (rows_.row_end(row_) <= at_) ++row_;
      const int r = schema_.relation_of(rows_.indices[at_]);
      const auto v = range_.begin + row_, u = schema_.vertex_of(rows_.indices[at_]);
      const auto ask = [&](int relation) {
        questions.push_back({static_cast<Index>(u), static_cast<Index>(schema_.column(relation, v)), r});
      };
      if (in_itself_[r] && u != v) ask(r);
      if (in_inverse_[r]) ask(schema_.relations()[r].inverse);
    }
    return questions;
  }

  // Collective. An inverse in which an entry has no reverse is not asked for any more.
  void answer(const Buffer<Question<Index>>& questions) {
    std::vector<std::int32_t> missing(in_inverse_.size(), 0);
    for (const auto& of : questions) {
      const auto columns = rows_.row_indices(of.row - range_.begin);
      const bool found = std::binary_search(columns.begin(), columns.end(), of.column);
      if (schema_.relation_of(of.column) == of.relation) {
        ++edges_[of.relation];
        answered_[of.relation] += found;
      } else if (!found) {
        missing[of.relation] = 1;
      }
    }
    comm_.all_reduce(std::span(missing), Reduction::kMax, kLabel);
    for (std::size_t r = 0; r < missing.size(); ++r) in_inverse_[r] &= missing[r] == 0;
  }

  const Communicator& comm_;
  const Schema& schema_;
  RowRange range_;
  const Csr<Index>& rows_;
  std::int64_t per_round_;
  std::vector<std::uint8_t> in_itself_, in_inverse_;  // [relations] may be, as far as was looked
  std::vector<std::int64_t> edges_, answered_;        // [relations] of those that this
                                                      // rank was asked
  std::int64_t at_ = 0, row_ = 0;                     // the next entry to ask for
};

}  // namespace reverse_detail

/// Collective. `rows` are the even range of rows that this rank has, entries[r] those of relation r
/// on all ranks; `asked`: the relations to look at. Of others the answers are no.
template <class Index>
Reverses find_reverses(const Communicator& comm, const Schema& schema, const RowRange& range,
                       const Csr<Index>& rows, const std::vector<std::int64_t>& entries,
                       const std::vector<int>& asked) {
  return reverse_detail::Asker<Index>(comm, schema, range, rows, entries, asked).ask();
}

}  // namespace espalier

// Whether each edge has its reverse: each entry (row v, relation r, source u) is asked for at the
// rank that has row u, in the same relation, where that joins a type to itself, and in the inverse
// of r. Exact; a few million entries travel at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/graph/schema.hpp"
#include "fetch_rows.hpp"

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

/// The first place of an ascending row that is not before `column`: mostly a little after `near`.
template <class Index>
std::int64_t find_near(std::span<const Index> row, std::int64_t near, Index column) {
  const auto begin = row.begin(), at = begin + near;
  if (near > 0 && at[-1] >= column) return std::lower_bound(begin, at, column) - begin;
  std::int64_t step = 1;
  while (near + step < std::ssize(row) && row[near + step] < column) step *= 2;
  const auto end = begin + std::min(near + step, std::ssize(row));
  return std::lower_bound(at, end, column) - begin;
}

/// Collective. `rows` are the even range of rows that this rank has, entries[r] those of relation r
/// on all ranks; `asked`: the relations to look at. Of others the answers are no.
template <class Index>
Reverses find_reverses(const Communicator& comm, const Schema& schema, const RowRange& range,
                       const Csr<Index>& rows, const std::vector<std::int64_t>& entries,
                       const std::vector<int>& asked) {
  constexpr const char* kLabel = "reverse edges";
  // Is there an entry in this row and column of the wide matrix?
  struct Request {
    Index row, column;
    std::int32_t relation;  // of the entry that it is the reverse of
  };
  const auto relations = entries.size();
  Reverses found;
  // May be, as far as was looked.
  auto &in_itself = found.symmetric, &in_inverse = found.inverse;
  in_itself.assign(relations, 0);
  in_inverse.assign(relations, 0);
  found.edges.assign(relations, 0);
  found.answered.assign(relations, 0);
  for (const int r : asked) {
    const auto& of = schema.relations()[r];
    in_itself[r] = of.source == of.target;
    in_inverse[r] = of.inverse >= 0 && of.inverse != r && entries[r] == entries[of.inverse];
  }
  // Of each row where the last request was found: those of one rank ascend.
  Buffer<Index> last(rows.rows, 0);
  exchange_entries<Request>(
      comm, schema.nodes(), rows, kLabel,
      [&](std::int64_t row, std::int64_t e, auto& requests) {
        const int r = schema.relation_of(rows.indices[e]);
        const auto v = range.begin + row, u = schema.vertex_of(rows.indices[e]);
        const auto ask = [&](int relation) {
          requests.push_back({static_cast<Index>(u), static_cast<Index>(schema.column(relation, v)), r});
        };
        if (in_itself[r] && u != v) ask(r);
        if (in_inverse[r]) ask(schema.relations()[r].inverse);
      },
      // An inverse in which an entry has no reverse is not asked for any more.
      [&](const auto&, const auto&, const auto& requests) {
        std::vector<std::int32_t> missing(relations, 0);
        for (const auto& of : requests.data) {
          const auto row = rows.row_indices(of.row - range.begin);
          auto& near = last[of.row - range.begin];
          near = static_cast<Index>(find_near(row, near, of.column));
          const bool is_there = near < std::ssize(row) && row[near] == of.column;
          if (schema.relation_of(of.column) == of.relation) {
            ++found.edges[of.relation];
            found.answered[of.relation] += is_there;
          } else if (!is_there) {
            missing[of.relation] = 1;
          }
        }
        comm.all_reduce(std::span(missing), Reduction::kMax, kLabel);
        for (std::size_t r = 0; r < relations; ++r) in_inverse[r] &= missing[r] == 0;
      });
  comm.all_reduce(std::span(found.edges), Reduction::kSum, kLabel);
  comm.all_reduce(std::span(found.answered), Reduction::kSum, kLabel);
  for (std::size_t r = 0; r < relations; ++r) {
    in_itself[r] &= found.answered[r] == found.edges[r];
    if (schema.relations()[r].inverse == static_cast<int>(r)) in_inverse[r] = in_itself[r];
  }
  return found;
}

}  // namespace espalier

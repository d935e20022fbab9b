// A thread has whole links, whole rows of vertices, or chunks of a relation's links.
#include "espalier/nn/link_scores.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/column_sums.hpp"
#include "interleaved_sum.hpp"
#include "link_score_table.hpp"

namespace espalier {

// Counting sorts by one thread: two passes over a few numbers of each link.

namespace {

/// Members 0 .. count - 1 by their list.
template <class ListOf>
void sort_into_lists(std::int64_t count, std::int64_t lists, const ListOf& list_of, ListsOn<Cpu>& sorted) {
  auto& begins = sorted.begins;
  begins.assign(static_cast<std::size_t>(lists) + 1, 0);
  sorted.members.resize(static_cast<std::size_t>(count));
  for (std::int64_t member = 0; member < count; ++member) {
    const std::int64_t list = list_of(member);
    ESPALIER_CHECK(0 <= list && list < lists, "a link names {} of {}", list, lists);
    ++begins[list + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  const auto next = workspace<struct NextMembers, std::int64_t>(static_cast<std::size_t>(lists));
  std::copy_n(begins.begin(), lists, next.begin());
  for (std::int64_t member = 0; member < count; ++member)
    sorted.members[next[list_of(member)]++] = static_cast<std::int32_t>(member);
}

}  // namespace

void find_link_places(const Cpu&, const LinksView& links, std::int64_t rows, std::int64_t relations,
                      LinkPlaces& places) {
  ESPALIER_CHECK(links.count < std::int64_t{1} << 30, "{} links", links.count);
  sort_into_lists(
      2 * links.count, rows, [&](std::int64_t use) { return links.row_of_use(use); }, places.by_row);
  if (relations == 0) return;
  sort_into_lists(
      links.count, relations, [&](std::int64_t i) { return links.relation(i); }, places.by_relation);
  const auto& begins = places.by_relation.begins;
  places.chunks_before.assign(begins.size(), 0);
  for (std::int64_t r = 0; r < relations; ++r)
    places.chunks_before[r + 1] =
        places.chunks_before[r] + (begins[r + 1] - begins[r] + kSummedRows - 1) / kSummedRows;
}

namespace {

/// The rows that the rules read; rotations stay until the thread asks for others.
template <class Rules>
LinkRowsOf rows_of(const Cpu& cpu, ConstMatrixView<float> h, ConstMatrixView<float> relations,
                   const LinksView& links) {
  const auto count = h.columns / Rules::kNumbers;
  LinkRowsOf rows{links, h.data, relations.data, h.columns, relations.columns, count};
  if (!Rules::kRotations) return rows;
  double* const rotations =
      workspace<struct Rotations, double>(static_cast<std::size_t>(2 * relations.rows * count)).data();
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (relations.rows * count > 4096)
  for (std::int64_t r = 0; r < relations.rows; ++r)
    for (std::int64_t j = 0; j < count; ++j)
      find_rotation(relations.row(r), count, j, rotations + 2 * r * count);
  rows.rotations = rotations;
  return rows;
}

template <class Rules>
void score_links(const Cpu& cpu, const LinkRowsOf& rows, float* scores) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (rows.links.count > 64)
  for (std::int64_t i = 0; i < rows.links.count; ++i) {
    const LinkRows x = rows(i);
    const double sum = interleaved_sum(x.count, [&](std::int64_t j) { return Rules::term(x, j); });
    scores[i] = static_cast<float>(Rules::score(sum));
  }
}

/// sums += by(number) times the slopes by one of the rows.
template <class Rules, LinkRow kRow, class By>
void add_slopes(const LinkRows& x, const By& by, double* sums) {
  constexpr int kNumbers = kRow == LinkRow::kRelation ? Rules::kRelationNumbers : Rules::kNumbers;
  for (std::int64_t j = 0; j < x.count; ++j) sums[j] += by(j) * Rules::template slope<kRow, 0>(x, j);
  if constexpr (kNumbers == 2)
    for (std::int64_t j = 0; j < x.count; ++j)
      sums[x.count + j] += by(x.count + j) * Rules::template slope<kRow, 1>(x, j);
}

void add_rounded(const double* sums, std::int64_t width, float* to) {
  for (std::int64_t c = 0; c < width; ++c) to[c] += static_cast<float>(sums[c]);
}

template <class Rules, class By>
void add_to_vertices(const Cpu& cpu, const LinkRowsOf& rows, const ListsOn<Cpu>& uses, const By& by,
                     MatrixView<float> dh) {
#pragma omp parallel num_threads(cpu.threads) if (dh.rows > 64)
  {
    const auto sums = workspace<struct RowGradient, double>(static_cast<std::size_t>(dh.columns));
#pragma omp for schedule(dynamic, 32)
    for (std::int64_t u = 0; u < dh.rows; ++u) {
      if (uses.begins[u] == uses.begins[u + 1]) continue;
      std::ranges::fill(sums, 0.0);
      for (auto at = uses.begins[u]; at < uses.begins[u + 1]; ++at) {
        const std::int64_t use = uses.members[at], i = use / 2;
        if (use % 2 == 0)
          add_slopes<Rules, LinkRow::kHead>(rows(i), by(i), sums.data());
        else
          add_slopes<Rules, LinkRow::kTail>(rows(i), by(i), sums.data());
      }
      add_rounded(sums.data(), dh.columns, dh.row(u));
    }
  }
}

template <class Rules, class By>
void add_to_relations(const Cpu& cpu, const LinkRowsOf& rows, const LinkPlaces& places, const By& by,
                      MatrixView<float> d) {
  const auto& of = places.by_relation;
  const auto *const before = places.chunks_before.data(), *const begins = of.begins.data();
  const std::int64_t chunks = before[d.rows], width = d.columns;
  double* const partials =
      workspace<struct RelationPartials, double>(static_cast<std::size_t>(chunks * width)).data();
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic) if (chunks > 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    double* const partial = partials + chunk * width;
    std::fill_n(partial, width, 0.0);
    const auto r = segment_of(before, d.rows, chunk);
    const auto first = begins[r] + (chunk - before[r]) * kSummedRows;
    for (auto at = first; at < std::min(first + kSummedRows, begins[r + 1]); ++at) {
      const std::int64_t i = of.members[at];
      add_slopes<Rules, LinkRow::kRelation>(rows(i), by(i), partial);
    }
  }
  for (std::int64_t r = 0; r < d.rows; ++r) {
    for (auto chunk = before[r] + 1; chunk < before[r + 1]; ++chunk)
      for (std::int64_t c = 0; c < width; ++c) partials[before[r] * width + c] += partials[chunk * width + c];
    if (before[r] < before[r + 1]) add_rounded(partials + before[r] * width, width, d.row(r));
  }
}

}  // namespace

void link_scores(const Cpu& cpu, const LinkScore& score, ConstMatrixView<float> h,
                 ConstMatrixView<float> relations, const LinksView& links, float* scores) {
  check_link_widths(score, h.columns, relations.columns);
  with_rules_of(score, [&]<class Rules>(Rules) {
    score_links<Rules>(cpu, rows_of<Rules>(cpu, h, relations, links), scores);
  });
}

void link_scores_backward(const Cpu& cpu, const LinkScore& score, ConstMatrixView<float> h,
                          ConstMatrixView<float> relations, const LinksView& links, const LinkPlaces& places,
                          const float* scores, const float* dscores, MatrixView<float> dh,
                          MatrixView<float> drelations) {
  check_link_widths(score, h.columns, relations.columns);
  with_rules_of(score, [&]<class Rules>(Rules) {
    const auto rows = rows_of<Rules>(cpu, h, relations, links);
    const ByScores<Rules> by{scores, dscores};
    add_to_vertices<Rules>(cpu, rows, places.by_row, by, dh);
    if constexpr (Rules::kRelationNumbers > 0) add_to_relations<Rules>(cpu, rows, places, by, drelations);
  });
}

void link_products(const Cpu& cpu, ConstMatrixView<float> h, ConstMatrixView<float> relations,
                   const LinksView& links, MatrixView<float> products) {
  const auto rows = rows_of<DistMultScore>(cpu, h, relations, links);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (links.count > 64)
  for (std::int64_t i = 0; i < links.count; ++i) {
    const LinkRows x = rows(i);
    for (std::int64_t j = 0; j < x.count; ++j) products(i, j) = static_cast<float>(DistMultScore::term(x, j));
  }
}

void link_products_backward(const Cpu& cpu, ConstMatrixView<float> h, ConstMatrixView<float> relations,
                            const LinksView& links, const LinkPlaces& places,
                            ConstMatrixView<float> dproducts, MatrixView<float> dh,
                            MatrixView<float> drelations) {
  const auto rows = rows_of<DistMultScore>(cpu, h, relations, links);
  const ByProducts by{dproducts.data, dproducts.columns};
  add_to_vertices<DistMultScore>(cpu, rows, places.by_row, by, dh);
  add_to_relations<DistMultScore>(cpu, rows, places, by, drelations);
}

}  // namespace espalier

// A warp scores a link; a thread has a number of a vertex's row, or of a chunk of a relation's
// links, so that the threads of a warp read neighbouring numbers of the rows of a link.
#include "espalier/nn/link_scores.hpp"

#include <algorithm>
#include <bit>

#include "device_interleaved_sum.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/column_sums.hpp"
#include "link_score_table.hpp"

namespace espalier {

// Stable sorts by what a member names; where lists begin is searched in the sorted names.

namespace {

/// Members 0 .. count - 1 by their list; list_of is a __device__ function.
template <class ListOf>
void sort_into_lists(const Cuda& cuda, std::int64_t count, std::int64_t lists, const ListOf& list_of,
                     ListsOn<Cuda>& sorted) {
  const auto size = static_cast<std::size_t>(count);
  sorted.begins.resize(static_cast<std::size_t>(lists) + 1);
  sorted.members.resize(size);
  DeviceArray<std::uint32_t> keys(size), sorted_keys(size);
  DeviceArray<std::int32_t> members(size);
  auto* const key = keys.data();
  auto* const member = members.data();
  for_each(cuda, "name lists of links", count, [=] __device__(std::int64_t k) {
    key[k] = static_cast<std::uint32_t>(list_of(k));
    member[k] = static_cast<std::int32_t>(k);
  });
  if (count > 0)
    sort_pairs(cuda, keys.data(), sorted_keys.data(), members.data(), sorted.members.data(), count,
               std::bit_width(static_cast<std::uint64_t>(lists)));
  const auto* const names = sorted_keys.data();
  auto* const begins = sorted.begins.data();
  for_each(cuda, "begin lists of links", lists + 1, [=] __device__(std::int64_t list) {
    begins[list] = count_below(names, count, static_cast<std::uint32_t>(list));
  });
}

}  // namespace

void find_link_places(const Cuda& cuda, const LinksView& links, std::int64_t rows, std::int64_t relations,
                      LinkPlacesOn<Cuda>& places) {
  ESPALIER_CHECK(links.count < std::int64_t{1} << 30, "{} links", links.count);
  sort_into_lists(
      cuda, 2 * links.count, rows, [=] __device__(std::int64_t use) { return links.row_of_use(use); },
      places.by_row);
  if (relations == 0) return;
  sort_into_lists(
      cuda, links.count, relations, [=] __device__(std::int64_t i) { return links.relation(i); },
      places.by_relation);
  places.chunks_before.resize(static_cast<std::size_t>(relations) + 1);
  DeviceArray<std::int64_t> chunks(static_cast<std::size_t>(relations));
  const auto* const begins = places.by_relation.begins.data();
  auto* const of = chunks.data();
  for_each(cuda, "chunks of relations", relations, [=] __device__(std::int64_t r) {
    of[r] = (begins[r + 1] - begins[r] + kSummedRows - 1) / kSummedRows;
  });
  exclusive_sum(cuda, chunks.data(), places.chunks_before.data(), relations);
}

namespace {

template <class Rules>
__global__ void __launch_bounds__(kBlockThreads) score_links(LinkRowsOf rows, float* scores) {
  const std::int64_t i = warp_of_grid();
  if (i >= rows.links.count) return;  // a whole warp
  const LinkRows x = rows(i);
  const double sum = sum_by_warp(x.count, [&](std::int64_t j) { return Rules::term(x, j); });
  if (threadIdx.x % kWarp == 0) scores[i] = static_cast<float>(Rules::score(sum));
}

/// The rows that the rules read, and what they rotate by.
template <class Rules>
struct RowsRead {
  DeviceArray<double> rotations;
  LinkRowsOf rows;

  RowsRead(const Cuda& cuda, ConstMatrixView<float, Cuda> h, ConstMatrixView<float, Cuda> relations,
           const LinksView& links)
      : rows{links, h.data, relations.data, h.columns, relations.columns, h.columns / Rules::kNumbers} {
    if constexpr (Rules::kRotations) find_rotations(cuda, relations);
  }
  void find_rotations(const Cuda& cuda, ConstMatrixView<float, Cuda> relations) {
    const auto count = rows.count;
    rotations.resize(static_cast<std::size_t>(2 * relations.rows * count));
    double* const to = rotations.data();
    for_each_in_rows(cuda, "find_rotations", relations.rows, count,
                     [=] __device__(std::int64_t r, std::int64_t j) {
                       find_rotation(relations.row(r), count, j, to + 2 * r * count);
                     });
    rows.rotations = to;
  }
};

template <class Rules, class By>
void add_to_vertices(const Cuda& cuda, const LinkRowsOf& rows, const ListsOn<Cuda>& uses, const By& by,
                     MatrixView<float, Cuda> dh) {
  const auto* const begins = uses.begins.data();
  const auto* const members = uses.members.data();
  for_each_in_rows(cuda, "add_to_vertices", dh.rows, dh.columns,
                   [=] __device__(std::int64_t u, std::int64_t c) {
                     if (begins[u] == begins[u + 1]) return;
                     double sum = 0;
                     for (auto at = begins[u]; at < begins[u + 1]; ++at) {
                       const std::int64_t use = members[at], i = use / 2;
                       const LinkRows x = rows(i);
                       sum += by(i)(c) * (use % 2 == 0 ? slope_at<Rules, LinkRow::kHead>(x, c)
                                                       : slope_at<Rules, LinkRow::kTail>(x, c));
                     }
                     dh(u, c) += static_cast<float>(sum);
                   });
}

/// The host knows how many chunks there are at most.
template <class Rules, class By>
void add_to_relations(const Cuda& cuda, const LinkRowsOf& rows, const LinkPlacesOn<Cuda>& places,
                      const By& by, MatrixView<float, Cuda> d) {
  const auto relations = d.rows, width = d.columns;
  const auto chunks = rows.links.count / kSummedRows + std::min(relations, rows.links.count);
  DeviceArray<double> partials(static_cast<std::size_t>(chunks * width));
  const auto *const before = places.chunks_before.data(), *const begins = places.by_relation.begins.data();
  const auto* const members = places.by_relation.members.data();
  double* const partial = partials.data();
  for_each_in_rows(
      cuda, "add_links_of_relations", chunks, width, [=] __device__(std::int64_t chunk, std::int64_t c) {
        if (chunk >= before[relations]) return;
        const auto r = segment_of(before, relations, chunk);
        const auto first = begins[r] + (chunk - before[r]) * kSummedRows;
        const auto end = first + kSummedRows < begins[r + 1] ? first + kSummedRows : begins[r + 1];
        double sum = 0;
        for (auto at = first; at < end; ++at)
          sum += by(members[at])(c) * slope_at<Rules, LinkRow::kRelation>(rows(members[at]), c);
        partial[chunk * width + c] = sum;
      });
  for_each_in_rows(cuda, "add_to_relations", relations, width,
                   [=] __device__(std::int64_t r, std::int64_t c) {
                     if (before[r] == before[r + 1]) return;
                     double sum = partial[before[r] * width + c];
                     for (auto chunk = before[r] + 1; chunk < before[r + 1]; ++chunk)
                       sum += partial[chunk * width + c];
                     d(r, c) += static_cast<float>(sum);
                   });
}

}  // namespace

void link_scores(const Cuda& cuda, const LinkScore& score, ConstMatrixView<float, Cuda> h,
                 ConstMatrixView<float, Cuda> relations, const LinksView& links, float* scores) {
  check_link_widths(score, h.columns, relations.columns);
  with_rules_of(score, [&]<class Rules>(Rules) {
    const RowsRead<Rules> read(cuda, h, relations, links);
    launch(cuda, "link_scores", score_links<Rules>, dim3(blocks_for(links.count, kBlockWarps)),
           dim3(kBlockThreads), read.rows, scores);
  });
}

void link_scores_backward(const Cuda& cuda, const LinkScore& score, ConstMatrixView<float, Cuda> h,
                          ConstMatrixView<float, Cuda> relations, const LinksView& links,
                          const LinkPlacesOn<Cuda>& places, const float* scores, const float* dscores,
                          MatrixView<float, Cuda> dh, MatrixView<float, Cuda> drelations) {
  check_link_widths(score, h.columns, relations.columns);
  with_rules_of(score, [&]<class Rules>(Rules) {
    const RowsRead<Rules> read(cuda, h, relations, links);
    const ByScores<Rules> by{scores, dscores};
    add_to_vertices<Rules>(cuda, read.rows, places.by_row, by, dh);
    if constexpr (Rules::kRelationNumbers > 0)
      add_to_relations<Rules>(cuda, read.rows, places, by, drelations);
  });
}

void link_products(const Cuda& cuda, ConstMatrixView<float, Cuda> h, ConstMatrixView<float, Cuda> relations,
                   const LinksView& links, MatrixView<float, Cuda> products) {
  const RowsRead<DistMultScore> read(cuda, h, relations, links);
  const auto rows = read.rows;
  for_each_in_rows(cuda, "link_products", links.count, h.columns,
                   [=] __device__(std::int64_t i, std::int64_t j) {
                     products(i, j) = static_cast<float>(DistMultScore::term(rows(i), j));
                   });
}

void link_products_backward(const Cuda& cuda, ConstMatrixView<float, Cuda> h,
                            ConstMatrixView<float, Cuda> relations, const LinksView& links,
                            const LinkPlacesOn<Cuda>& places, ConstMatrixView<float, Cuda> dproducts,
                            MatrixView<float, Cuda> dh, MatrixView<float, Cuda> drelations) {
  const RowsRead<DistMultScore> read(cuda, h, relations, links);
  const ByProducts by{dproducts.data, dproducts.columns};
  add_to_vertices<DistMultScore>(cuda, read.rows, places.by_row, by, dh);
  add_to_relations<DistMultScore>(cuda, read.rows, places, by, drelations);
}

}  // namespace espalier

// The entries of rows in chosen columns, on a GPU. A group's columns are marked in a row of bits,
// 32 to a word, and beside each word stands the place of its first column in the group's list: so
// the place of a marked column is that and the number of marked ones before it in the word. A warp
// for each piece of a row counts the marked entries, and later writes them in their order.
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/sparse/segmented_rows.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kWordBits = 32, kDefaultBudget = std::int64_t{2} << 30;

// The marks of the groups from `first`.
struct Marks {
  std::uint32_t* words;  // [groups][per_group]
  std::int32_t* places;  // beside words; set where a bit is
  std::int64_t per_group;
  std::int64_t first;

  __device__ std::int64_t word_of(std::int64_t group, std::int64_t column) const {
    return (group - first) * per_group + column / kWordBits;
  }
};

// Columns begin .. end of all groups' lists are those of the groups of `marks`.
template <class Index>
void mark_columns(const Cuda& cuda, const Index* columns, std::int64_t begin, std::int64_t end,
                  const std::int64_t* offsets, std::int64_t groups, Marks marks) {
  for_each(cuda, "mark_columns", end - begin, [=] __device__(std::int64_t i) {
    const auto k = begin + i;
    const auto group = segment_of(offsets, groups, k);
    const auto column = static_cast<std::int64_t>(columns[k]), word = marks.word_of(group, column);
    atomicOr(marks.words + word, 1u << (column % kWordBits));
    if (k == offsets[group] || static_cast<std::int64_t>(columns[k - 1]) / kWordBits != column / kWordBits)
      marks.places[word] = static_cast<std::int32_t>(k - offsets[group]);
  });
}

template <class Index>
__global__ void __launch_bounds__(kBlockThreads)
    count_marked(const RowPiece<Index>* pieces, std::int64_t count, Marks marks, std::int64_t* marked) {
  const auto number = warp_of_grid();
  if (number >= count) return;
  const auto piece = pieces[number];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const auto* const words = marks.words + marks.word_of(piece.segment, 0);
  int sum = 0;
#pragma unroll 4
  for (int k = lane; k < piece.size; k += kWarp) {
    const auto column = static_cast<std::int64_t>(piece.indices[k]);
    sum += static_cast<int>(words[column / kWordBits] >> (column % kWordBits) & 1u);
  }
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  if (lane == 0) marked[number] = sum;
}

// Blocks of write_marked on a multiprocessor: with more of them its registers spill.
constexpr int kWriteBlocks = 6;

// Piece p writes to begins[p] .. begins[p + 1].
template <class Index>
__global__ void __launch_bounds__(kBlockThreads, kWriteBlocks)
    write_marked(const RowPiece<Index>* pieces, std::int64_t count, Marks marks, const std::int64_t* begins,
                 std::int32_t* places, float* selected) {
  const auto number = warp_of_grid();
  if (number >= count || begins[number] == begins[number + 1]) return;
  const auto piece = pieces[number];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  auto begin = begins[number];
#pragma unroll 4
  for (int first = 0; first < piece.size; first += kWarp) {
    const int k = first + lane;
    const auto column = k < piece.size ? static_cast<std::int64_t>(piece.indices[k]) : 0;
    const auto word = marks.word_of(piece.segment, column);
    const auto bits = k < piece.size ? marks.words[word] : 0u, bit = 1u << (column % kWordBits);
    const auto found = __ballot_sync(kAllLanes, (bits & bit) != 0);
    if ((bits & bit) != 0) {
      const auto at = begin + __popc(found & ((1u << lane) - 1));
      places[at] = marks.places[word] + __popc(bits & (bit - 1));
      if (selected != nullptr) selected[at] = piece.values[k];
    }
    begin += __popc(found);
  }
}

// Calls work(marks, first piece, pieces) for every range of groups whose marks fit at once.
template <class Index, class Work>
void for_marked_ranges(const Cuda& cuda, std::int64_t matrix_columns, const RowPieces<Index>& pieces,
                       const Index* columns, const SharedList<std::int64_t, Cuda>& offsets,
                       std::int64_t at_once, const Work& work) {
  const auto per_group = (matrix_columns + kWordBits - 1) / kWordBits, groups = pieces.segments();
  DeviceArray<std::uint32_t> words(std::min(at_once, groups) * per_group);
  DeviceArray<std::int32_t> places(words.size());
  for (std::int64_t first = 0; first < groups; first += at_once) {
    const auto last = std::min(first + at_once, groups);
    const Marks marks = {words.data(), places.data(), per_group, first};
    fill_zero(cuda, words);
    mark_columns(cuda, columns, offsets[first], offsets[last], offsets.data(), groups, marks);
    const auto first_piece = pieces.of_segment[first];
    work(marks, first_piece, pieces.of_segment[last] - first_piece);
  }
}

}  // namespace

template <class Index>
Entries<std::int32_t, Cuda> select_columns(const Cuda& cuda, const SegmentedRows<Index, Cuda>& rows,
                                           const Index* columns,
                                           const SharedList<std::int64_t, Cuda>& offsets,
                                           std::int64_t budget) {
  const DevicePurpose purpose("the marks of a layer's columns");
  if (!rows.pieces) rows.pieces = cut_rows(cuda, rows.rows.data(), rows.offsets);
  const auto& pieces = *rows.pieces;
  const auto bytes_per_group = std::max<std::int64_t>(rows.columns / 4, 1);
  const auto at_once = std::max<std::int64_t>((budget > 0 ? budget : kDefaultBudget) / bytes_per_group, 1);
  const auto for_ranges = [&](const auto& work) {
    for_marked_ranges(cuda, rows.columns, pieces, columns, offsets, at_once, work);
  };
  DeviceArray<std::int64_t> marked(pieces.count()), begins(pieces.count() + 1);
  for_ranges([&](const Marks& marks, std::int64_t first, std::int64_t count) {
    launch(cuda, "count_marked", count_marked<Index>, dim3(blocks_for(count, kBlockWarps)),
           dim3(kBlockThreads), pieces.pieces.data() + first, count, marks, marked.data() + first);
  });
  exclusive_sum(cuda, marked.data(), begins.data(), pieces.count());
  Entries<std::int32_t, Cuda> out;
  out.offsets.resize(pieces.rows() + 1);
  take_at(cuda, begins.data(), pieces.of_row.data(), pieces.rows() + 1, out.offsets.data());
  out.ids.resize(download(cuda, begins.data() + pieces.count(), 1)[0]);
  out.values.resize(rows.has_values ? out.ids.size() : 0);
  for_ranges([&](const Marks& marks, std::int64_t first, std::int64_t count) {
    launch(cuda, "write_marked", write_marked<Index>, dim3(blocks_for(count, kBlockWarps)),
           dim3(kBlockThreads), pieces.pieces.data() + first, count, marks, begins.data() + first,
           out.ids.data(), rows.has_values ? out.values.data() : nullptr);
  });
  return out;
}

template Entries<std::int32_t, Cuda> select_columns(const Cuda&, const SegmentedRows<std::int32_t, Cuda>&,
                                                    const std::int32_t*,
                                                    const SharedList<std::int64_t, Cuda>&, std::int64_t);
template Entries<std::int32_t, Cuda> select_columns(const Cuda&, const SegmentedRows<std::int64_t, Cuda>&,
                                                    const std::int64_t*,
                                                    const SharedList<std::int64_t, Cuda>&, std::int64_t);

}  // namespace espalier

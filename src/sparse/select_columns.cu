// The entries of rows in chosen columns, on a GPU. A group's columns are marked in a row of bits, 32 to a word, and
// beside each word stands the place of its first column in the group's list: so the place of a marked column is that
// and the number of marked ones before it in the word. A warp for each piece of a row counts the marked entries, and,
// once it is known where they go, writes them in their order.
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/sparse/group_of.hpp"
#include "espalier/sparse/select_columns.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kWordBits = 32, kWarps = kBlockThreads / kWarp, kDefaultBudget = std::int64_t{2} << 30;

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
    const auto group = group_of(offsets, groups, k);
    const auto column = static_cast<std::int64_t>(columns[k]), word = marks.word_of(group, column);
    atomicOr(marks.words + word, 1u << (column % kWordBits));
    if (k == offsets[group] || static_cast<std::int64_t>(columns[k - 1]) / kWordBits != column / kWordBits)
      marks.places[word] = static_cast<std::int32_t>(k - offsets[group]);
  });
}

// Which warp of the grid this is.
__device__ std::int64_t warp_number() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
}

template <class Index>
__global__ void __launch_bounds__(kBlockThreads)
    count_marked(const RowPiece* pieces, std::int64_t count, const Index* indices, Marks marks,
                 std::int64_t* marked) {
  const auto number = warp_number();
  if (number >= count) return;
  const auto piece = pieces[number];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const auto* const words = marks.words + marks.word_of(piece.group, 0);
  int sum = 0;
#pragma unroll 4
  for (int k = lane; k < piece.size; k += kWarp) {
    const auto column = static_cast<std::int64_t>(indices[piece.begin + k]);
    sum += static_cast<int>(words[column / kWordBits] >> (column % kWordBits) & 1u);
  }
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  if (lane == 0) marked[number] = sum;
}

// Piece p writes to begins[p] .. begins[p + 1].
template <class Index>
__global__ void __launch_bounds__(kBlockThreads)
    write_marked(const RowPiece* pieces, std::int64_t count, const Index* indices, const float* values,
                 Marks marks, const std::int64_t* begins, std::int32_t* places, float* selected) {
  const auto number = warp_number();
  if (number >= count || begins[number] == begins[number + 1]) return;
  const auto piece = pieces[number];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  auto begin = begins[number];
#pragma unroll 4
  for (int first = 0; first < piece.size; first += kWarp) {
    const int k = first + lane;
    const auto column = k < piece.size ? static_cast<std::int64_t>(indices[piece.begin + k]) : 0;
    const auto word = marks.word_of(piece.group, column);
    const auto bits = k < piece.size ? marks.words[word] : 0u, bit = 1u << (column % kWordBits);
    const auto found = __ballot_sync(kAllLanes, (bits & bit) != 0);
    if ((bits & bit) != 0) {
      const auto at = begin + __popc(found & ((1u << lane) - 1));
      places[at] = marks.places[word] + __popc(bits & (bit - 1));
      if (values != nullptr) selected[at] = values[piece.begin + k];
    }
    begin += __popc(found);
  }
}

// out[r] = begins[of_row[r]] for r <= rows.
void take_row_offsets(const Cuda& cuda, const std::int64_t* begins, const std::int64_t* of_row,
                      std::int64_t rows, std::int64_t* out) {
  for_each(cuda, "take_row_offsets", rows + 1,
           [=] __device__(std::int64_t r) { out[r] = begins[of_row[r]]; });
}

// Calls work(marks, first piece, pieces) for every range of groups whose marks fit at once.
template <class Index, class Work>
void for_marked_ranges(const Cuda& cuda, std::int64_t matrix_columns, const RowPieces& pieces,
                       const Index* columns, const std::vector<std::int64_t>& offsets,
                       const std::int64_t* device_offsets, std::int64_t at_once, const Work& work) {
  const auto per_group = (matrix_columns + kWordBits - 1) / kWordBits, groups = pieces.groups();
  DeviceArray<std::uint32_t> words(static_cast<std::size_t>(std::min(at_once, groups) * per_group));
  DeviceArray<std::int32_t> places(words.size());
  for (std::int64_t first = 0; first < groups; first += at_once) {
    const auto last = std::min(first + at_once, groups);
    const auto at = [first, last](const std::vector<std::int64_t>& of) {
      return std::pair(of[static_cast<std::size_t>(first)], of[static_cast<std::size_t>(last)]);
    };
    const Marks marks = {words.data(), places.data(), per_group, first};
    fill_zero(cuda, words);
    const auto [begin, end] = at(offsets);
    mark_columns(cuda, columns, begin, end, device_offsets, groups, marks);
    const auto [first_piece, last_piece] = at(pieces.of_group);
    work(marks, first_piece, last_piece - first_piece);
  }
}

}  // namespace

template <class Index>
void select_columns(const Cuda& cuda, const Csr<Index, Cuda>& matrix, const RowPieces& pieces,
                    const Index* columns, const std::vector<std::int64_t>& offsets,
                    const std::int64_t* device_offsets, SelectedEntries& out, std::int64_t budget) {
  const DevicePurpose purpose("the marks of a layer's columns");
  const auto bytes_per_group = std::max<std::int64_t>(matrix.columns / 4, 1);
  const auto at_once = std::max<std::int64_t>((budget > 0 ? budget : kDefaultBudget) / bytes_per_group, 1);
  const auto for_ranges = [&](const auto& work) {
    for_marked_ranges(cuda, matrix.columns, pieces, columns, offsets, device_offsets, at_once, work);
  };
  DeviceArray<std::int64_t> marked(static_cast<std::size_t>(pieces.count())), begins(marked.size() + 1);
  for_ranges([&](const Marks& marks, std::int64_t first, std::int64_t count) {
    launch(cuda, "count_marked", count_marked<Index>, dim3(blocks_for(count, kWarps)), dim3(kBlockThreads),
           pieces.pieces.data() + first, count, matrix.indices.data(), marks, marked.data() + first);
  });
  exclusive_sum(cuda, marked.data(), begins.data(), pieces.count());
  out.offsets.resize(static_cast<std::size_t>(pieces.rows()) + 1);
  take_row_offsets(cuda, begins.data(), pieces.of_row.data(), pieces.rows(), out.offsets.data());
  const auto entries = download(cuda, begins.data() + pieces.count(), 1)[0];
  out.places.resize(static_cast<std::size_t>(entries));
  out.values.resize(matrix.has_values() ? out.places.size() : 0);
  for_ranges([&](const Marks& marks, std::int64_t first, std::int64_t count) {
    launch(cuda, "write_marked", write_marked<Index>, dim3(blocks_for(count, kWarps)), dim3(kBlockThreads),
           pieces.pieces.data() + first, count, matrix.indices.data(),
           matrix.has_values() ? matrix.values.data() : nullptr, marks, begins.data() + first,
           out.places.data(), out.values.data());
  });
}

#define ESPALIER_INSTANTIATE(Index)                                                                     \
  template void select_columns(const Cuda&, const Csr<Index, Cuda>&, const RowPieces&, const Index*,    \
                               const std::vector<std::int64_t>&, const std::int64_t*, SelectedEntries&, \
                               std::int64_t);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier

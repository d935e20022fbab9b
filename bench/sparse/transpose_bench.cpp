// The transpose of a training step's blocks against writes at the same places, known beforehand.
//
//     transpose_bench [--scale N]      scale of the R-MAT the blocks are sampled from (default 18)
//
// Blocks of GraphSAGE 15,10,5 with 1024 seeds on a symmetrised R-MAT (rmat.hpp).
//
// Derivation: an entry's id is read and its row written in its stead, 4 + 4 bytes, its value
// likewise; every row and every column has an 8-byte offset:
//
//     bytes = entries 16 + rows 8 + columns 8
//
// Where an entry goes is its column's to say, so these writes are at random places of arrays that
// the second cache holds in part: no memcpy, which was the bound before (ratio 0.10 to 0.14), can
// be reached by who knows every place. The bound does just that: the block's rows and values are
// written to the places of its own transpose, which are read in order, 4 bytes each, beside them.
// What is left is finding the places: ids are read twice, and a number of each column is raised
// twice for each entry, once to count and once to place.
//
// Verification: every entry against a stable sort by column, and what the bound has written.
#include "espalier/comm/session.hpp"
#include "espalier/sparse/transpose.hpp"
#include "rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

struct Entry {
  std::int32_t row, column;
  float value;
};

std::int64_t count_wrong(const BlockView<>& block, const Block& transposed) {
  std::vector<Entry> entries;
  for (std::int64_t i = 0; i < block.rows; ++i)
    for (auto e = block.row_begin(i); e < block.row_end(i); ++e)
      entries.push_back({static_cast<std::int32_t>(i), block.indices[e], block.values[e]});
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& x, const Entry& y) { return x.column < y.column; });
  if (transposed.rows != block.columns || transposed.columns != block.rows ||
      transposed.entries() != block.entries() || transposed.row_end(transposed.rows - 1) != block.entries())
    return block.entries() + 1;
  std::int64_t wrong = 0;
  for (std::int64_t j = 0; j < transposed.rows; ++j)
    for (auto e = static_cast<std::size_t>(transposed.row_begin(j));
         e < static_cast<std::size_t>(transposed.row_end(j)); ++e)
      wrong += !(entries[e].column == j && entries[e].row == transposed.indices[e] &&
                 entries[e].value == transposed.values[e]);
  return wrong;
}

// The entries of a block with the places that its transpose gives them.
class KnownPlaces {
 public:
  KnownPlaces(const BlockView<>& block, int threads) : block_(block), threads_(threads) {
    Block transposed;
    Buffer<std::int32_t> origins;
    transpose(Cpu{1}, block, transposed, &origins);
    places_.resize(origins.size());
    for (std::size_t k = 0; k < origins.size(); ++k)
      places_[static_cast<std::size_t>(origins[k])] = static_cast<std::int32_t>(k);
    rows_.resize(origins.size());
    values_.resize(origins.size());
    write();
    for (std::size_t k = 0; k < origins.size(); ++k)
      wrong_ += rows_[k] != transposed.indices[k] || values_[k] != transposed.values[k];
  }

  double seconds() {
    return seconds_of([&] { write(); });
  }
  std::int64_t wrong() const { return wrong_; }

 private:
  void write() {
    const auto first = block_.indptr[0];
    const bool many = block_.entries() >= 16384;  // as for a second part of a transpose
#pragma omp parallel for num_threads(threads_) schedule(static) if (many)
    for (std::int64_t i = 0; i < block_.rows; ++i)
      for (auto e = block_.row_begin(i); e < block_.row_end(i); ++e) {
        const auto place = static_cast<std::size_t>(places_[static_cast<std::size_t>(e - first)]);
        rows_[place] = static_cast<std::int32_t>(i);
        values_[place] = block_.values[e];
      }
  }

  const BlockView<>& block_;
  int threads_;
  Buffer<std::int32_t> places_, rows_;
  Buffer<float> values_;
  std::int64_t wrong_ = 0;
};

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv, 18);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto step = sample_step(make_rmat(scale), grid);
  std::vector<Comparison> comparisons;
  for (std::size_t layer = 1; layer <= 3; ++layer)
    for (const int threads : thread_counts()) {
      const auto& block = step.blocks[layer - 1];
      const auto result = std::make_shared<Block>();
      const auto known = std::make_shared<KnownPlaces>(block, threads);
      const double gigabytes =
          1e-9 * static_cast<double>(block.entries() * 16 + (block.rows + block.columns) * 8);
      transpose(Cpu{threads}, block, *result);
      comparisons.push_back(
          {fmt::format("layer {}, {} entries {} thr", layer, block.entries(), threads), gigabytes,
           [&block, result, threads] { return seconds_of([&] { transpose(Cpu{threads}, block, *result); }); },
           [known, gigabytes] { return gigabytes / known->seconds(); },
           count_wrong(block, *result) + known->wrong(), threads});
    }
  return compare(argc, argv, "Transpose of a step's blocks; bound: writes at places that are known", "GB/s",
                 comparisons);
}

// ranks: 1
// Law: row i of the result is row ids[i] of the source, converted or as it is, from either memory.
#include "espalier/dense/gather.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class GatherCuda : public CudaTest {};

template <class S>
void expect_rows(const Cuda& gpu, std::int64_t rows, std::int64_t f, std::size_t shift, Placement placement,
                 std::mt19937_64& random, S (*narrow)(float)) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << f << " times " << sizeof(S) << " bytes");
  const auto numbers = random_matrix<float>(50, f, random);
  Buffer<S> store(shift + numbers.data.size());
  std::ranges::transform(numbers.data, store.begin() + static_cast<std::ptrdiff_t>(shift), narrow);
  Buffer<std::int64_t> ids(static_cast<std::size_t>(rows));
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % 50);
  const auto memory = upload(gpu, store, placement);
  const auto device_ids = upload(gpu, ids);
  const ConstMatrixView<S, Cuda> from(50, f, memory.data() + shift);
  Matrix<float, Cuda> converted(rows, f);
  Matrix<S, Cuda> kept(rows, f);
  gather_rows<S>(gpu, from, {device_ids.data(), device_ids.size()}, converted);
  copy_rows<S>(gpu, from, {device_ids.data(), device_ids.size()}, kept);
  const auto host_converted = to_host(gpu, converted);
  const auto host_kept = to_host(gpu, kept);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < f; ++j) {
      const S expected = store[shift + static_cast<std::size_t>(ids[static_cast<std::size_t>(i)] * f + j)];
      EXPECT_EQ(host_converted(i, j), to_float(expected));
      EXPECT_EQ(std::memcmp(&host_kept(i, j), &expected, sizeof(S)), 0);
    }
}

TEST_F(GatherCuda, RowsAreThoseOfTheirIds) {
  std::mt19937_64 random(test_seed(23));
  for (const auto placement : {Placement::kDevice, Placement::kHost})
    for (const std::int64_t rows : {0, 1, 77})
      for (const std::int64_t f : {1, 3, 32, 33, 100})
        for (const std::size_t shift : {0u, 1u}) {
          expect_rows<float>(
              gpu(), rows, f, shift, placement, random, +[](float x) { return x; });
          expect_rows<Half>(gpu(), rows, f, shift, placement, random, to_half);
          expect_rows<BFloat16>(gpu(), rows, f, shift, placement, random, to_bfloat16);
        }
}

}  // namespace
}  // namespace espalier

// ranks: 1
// Law: gather_cases.hpp, on a GPU, from its memory and from pinned memory of the host.
#include <algorithm>
#include <numeric>

#include "cuda_test.hpp"
#include "dense/gather_cases.hpp"

namespace espalier {
namespace {

class GatherCuda : public CudaTest {};

TEST_F(GatherCuda, RowsAreThoseThatAreNamed) {
  for (const auto placement : {Placement::kDevice, Placement::kHost}) {
    check_gather<float>(gpu(), placement, unchanged<float>);
    check_gather<Half>(gpu(), placement, to_half);
    check_gather<BFloat16>(gpu(), placement, to_bfloat16);
  }
}

// More rows than the blocks that copy in an order take up at once.
TEST_F(GatherCuda, AnyOrderGivesTheSameRows) {
  std::mt19937_64 random(test_seed(24));
  for (const std::int64_t f : {3, 32, 100}) {
    constexpr std::int64_t kRows = 9000;
    const ShiftedMatrix<float, Cuda> own(gpu(), 50, f, 0, Placement::kHost, random, unchanged<float>);
    Buffer<std::int64_t> source(kRows);
    Buffer<std::int32_t> order(kRows);
    for (auto& place : source) place = ~static_cast<std::int64_t>(random() % 50);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    const auto on_gpu = upload(gpu(), source);
    const auto order_on_gpu = upload(gpu(), order);
    Matrix<float, Cuda> expected(kRows, f), to(kRows, f);
    fill_bytes(gpu(), to.data.data(), 0xff, to.data.size() * sizeof(float));
    gather_rows<float>(gpu(), own.view, own.view, on_gpu.data(), expected);
    gather_rows<float>(gpu(), own.view, own.view, on_gpu.data(), to, order_on_gpu.data());
    EXPECT_EQ(matrix_from(gpu(), to).data, matrix_from(gpu(), expected).data) << f;
  }
}

}  // namespace
}  // namespace espalier

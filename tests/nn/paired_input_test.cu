// ranks: 1
// Laws of rows of pairs on a GPU: those of paired_input_cases.hpp, within what float32 rounds.
#include "nn/paired_input_cases.hpp"

#include "mpi_test.hpp"
#include "nn/device_case.hpp"

namespace espalier {
namespace {

class PairedInputCuda : public CudaTest {};

TEST_F(PairedInputCuda, GivesWhatTheMatrixGives) {
  std::mt19937_64 random(test_seed(2));
  const auto shapes = shapes_of_one_type();
  for (std::size_t s = 0; s < shapes.size(); s += 2) {
    const auto& shape = shapes[s];
    const auto frontiers = frontiers_of(shape, {60, 30, 14, 8});
    DeviceCase c(gpu(), shape, frontiers, 3);
    auto paired = shape;
    paired.pairs = {4};
    Network<float, Cuda> network(gpu(), paired, 3);
    copy_weights(gpu(), c.host.network, network);
    const PairedMatrix<float> rows(frontiers.front(), shape.inputs, 4, random);
    const auto dlogits = random_matrix<float>(frontiers.back(), shape.classes, random);
    const PairedResults<float> found(gpu(), network, c.device_blocks, rows.pairs, c.host.pass, dlogits),
        expected(gpu(), c.network, c.device_blocks, rows.wide, c.host.pass, dlogits);
    expect_near(found, expected, 2e-5, in_words(shape));
  }
}

}  // namespace
}  // namespace espalier

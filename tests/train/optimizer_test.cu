// ranks: 1
// Law: steps of Adam and SGD on a GPU give the CPU's bits, weights and state, for any number of
// tensors; the state of one space goes on in the other.
#include "espalier/train/optimizer.hpp"

#include "dense/device_matrices.hpp"
#include "espalier/base/error.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class OptimizerCuda : public CudaTest {};

/// More tensors than one kernel takes, of awkward sizes.
std::vector<Parameter<float>> some_parameters(std::mt19937_64& random) {
  std::vector<Parameter<float>> parameters;
  for (int k = 0; k < 35; ++k)
    parameters.push_back({"tensor" + std::to_string(k), 1 + k % 3, k % 2 == 0,
                          random_matrix<float>(k % 5 == 3 ? 0 : 1 + k * 7 % 11, 1 + k * 31 % 47, random)});
  return parameters;
}

std::vector<Parameter<float, Cuda>> all_to_device(const Cuda& gpu,
                                                  const std::vector<Parameter<float>>& parameters) {
  std::vector<Parameter<float, Cuda>> result;
  for (const auto& p : parameters) result.push_back({p.name, p.layer, p.decays, to_device(gpu, p.value)});
  return result;
}

std::vector<Matrix<float>> gradients_like(const std::vector<Parameter<float>>& parameters,
                                          std::mt19937_64& random) {
  std::vector<Matrix<float>> gradients;
  for (const auto& p : parameters)
    gradients.push_back(random_matrix<float>(p.value.rows, p.value.columns, random));
  return gradients;
}

TEST_F(OptimizerCuda, HasTheBitsOfTheCpu) {
  std::mt19937_64 random(test_seed(41));
  for (const std::string kind : {"adam", "sgd"})
    for (const std::string decay_on : {"all", "first"}) {
      OptimizerOptions options;
      options.kind = kind;
      options.weight_decay = 0.03;
      options.weight_decay_on = decay_on;
      auto parameters = some_parameters(random);
      auto on_device = all_to_device(gpu(), parameters);
      Optimizer<float> expected(Cpu{}, options, parameters);
      Optimizer<float, Cuda> optimizer(gpu(), options, on_device);
      for (int step = 0; step < 4; ++step) {
        const auto gradients = gradients_like(parameters, random);
        expected.step(Cpu{1}, 0.01 * (step + 1), gradients, parameters);
        optimizer.step(gpu(), 0.01 * (step + 1), all_to_device(gpu(), gradients), on_device);
      }
      EXPECT_EQ(optimizer.steps(), 4);
      for (std::size_t k = 0; k < parameters.size(); ++k)
        EXPECT_TRUE(same_bits(to_host(gpu(), on_device[k].value), parameters[k].value))
            << kind << " " << parameters[k].name;
      ASSERT_EQ(optimizer.state().size(), expected.state().size());
      for (std::size_t k = 0; k < expected.state().size(); ++k) {
        EXPECT_EQ(optimizer.state()[k].name, expected.state()[k].name);
        EXPECT_TRUE(same_bits(to_host(gpu(), optimizer.state()[k].value), expected.state()[k].value));
      }
    }
}

TEST_F(OptimizerCuda, GoesOnFromTheStateOfTheCpu) {
  std::mt19937_64 random(test_seed(42));
  auto parameters = some_parameters(random);
  Optimizer<float> expected(Cpu{}, {}, parameters);
  expected.step(Cpu{1}, 0.1, gradients_like(parameters, random), parameters);
  auto on_device = all_to_device(gpu(), parameters);
  Optimizer<float, Cuda> optimizer(gpu(), {}, on_device);
  for (std::size_t k = 0; k < expected.state().size(); ++k)
    optimizer.state()[k].value = to_device(gpu(), expected.state()[k].value);
  optimizer.set_steps(expected.steps());
  const auto gradients = gradients_like(parameters, random);
  expected.step(Cpu{1}, 0.1, gradients, parameters);
  optimizer.step(gpu(), 0.1, all_to_device(gpu(), gradients), on_device);
  for (std::size_t k = 0; k < parameters.size(); ++k)
    EXPECT_TRUE(same_bits(to_host(gpu(), on_device[k].value), parameters[k].value)) << k;
}

}  // namespace
}  // namespace espalier

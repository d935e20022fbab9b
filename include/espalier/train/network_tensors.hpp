// The trained numbers of a network as named tensors of the host, as files hold them, and back:
// "weights/layer1.self" and, of batch normalisation, "statistics/layer1.mean".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/train/step_hook.hpp"
#include "espalier/train/weights_file.hpp"

namespace espalier {

/// visit(name, tensor) for each parameter, then each running statistic, in the order of
/// the network.
template <class Network, class Visit>
void visit_trained(Network& network, Visit visit) {
  for (auto& parameter : network.parameters()) visit("weights/" + parameter.name, parameter.value);
  auto& statistics = network.running_statistics();
  for (std::size_t k = 0; k < statistics.size(); ++k)
    visit("statistics/" + network.statistic_names()[k], statistics[k]);
}

/// Copies of them.
template <class Space>
std::vector<StateTensor> trained_tensors(const Space& space, const Network<float, Space>& network) {
  std::vector<StateTensor> tensors;
  visit_trained(network, [&](const std::string& name, const Matrix<float, Space>& tensor) {
    tensors.push_back(kept_tensor(name, tensor.rows, tensor.columns, copy_from(space, tensor.data)));
  });
  return tensors;
}

/// Puts the tensors of a file, `path` in messages, into the network. Throws UserError(kInput) when
/// they are not those of a network of this shape, naming the tensor.
template <class Space>
void take_tensors(const Space& space, const std::vector<StateTensor>& tensors, const std::string& path,
                  Network<float, Space>& network) {
  SavedTensors saved(tensors, path);
  visit_trained(network, [&](const std::string& name, Matrix<float, Space>& tensor) {
    const auto all = saved.take(name, tensor.rows, tensor.columns).all();
    tensor.data = copy_to(space, std::span<const float>(all));
  });
  saved.check_all_taken();
}

/// A network, and the rows of its input that are learnt, if any: read from where they lie.
template <class Space>
TrainedWeights trained_weights(const Space& space, const Network<float, Space>& network,
                               const InputStoresOn<Space>& input) {
  TrainedWeights weights;
  weights.tensors = trained_tensors(space, network);
  if (const auto* const rows = input.embeddings()) weights.embeddings = rows->weights(space);
  return weights;
}

}  // namespace espalier

// Optimisers: Adam (Kingma and Ba, ICLR 2015) and SGD with momentum, both with L2 weight decay; and
// the learning rate of an epoch.
//
//     g'   = g + decay * w                       parameters that decay only
//     SGD:   v = momentum * v + g'               w -= rate * v
//     Adam:  m = b1 m + (1 - b1) g'              m^ = m / (1 - b1^t)
//            v = b2 v + (1 - b2) g'^2            v^ = v / (1 - b2^t)
//            w -= rate * m^ / (sqrt(v^) + eps)
//
// These are the definitions of PyTorch's Adam and SGD (dampening 0), which the tests compare with.
// Every element is computed by itself, so all ranks that start from the same weights and see the
// same gradients keep the same weights, bit for bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/nn/layer.hpp"

namespace espalier {

struct OptimizerOptions {
  std::string kind = "adam";                          ///< "adam" | "sgd"
  double momentum = 0.9;                              ///< SGD
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< Adam
  double weight_decay = 0;
  std::string weight_decay_on = "all";  ///< "all" | "first": the layers whose weight matrices decay
};

/// A matrix of the optimiser's state with the name it has in a checkpoint:
/// "layer1.bias/first_moment".
template <class T, class Space = Cpu>
struct NamedMatrix {
  std::string name;
  Matrix<T, Space> value;
};

/// State and parameters are memory of the space; the same bits in each.
template <class T, class Space = Cpu>
class Optimizer {
 public:
  /// State of zeros for each parameter.
  Optimizer(const Space& space, const OptimizerOptions& options,
            const std::vector<Parameter<T, Space>>& parameters);

  /// One update of all parameters; gradients in their order and shapes.
  void step(const Space&, double learning_rate, const std::vector<Matrix<T, Space>>& gradients,
            std::vector<Parameter<T, Space>>& parameters);

  /// What a checkpoint saves and restores, together with steps(): SGD one matrix per
  /// parameter, Adam two.
  std::vector<NamedMatrix<T, Space>>& state() { return state_; }
  const std::vector<NamedMatrix<T, Space>>& state() const { return state_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  double decay_of(const Parameter<T, Space>& parameter) const;

  OptimizerOptions options_;
  std::vector<NamedMatrix<T, Space>> state_;
  std::int64_t steps_ = 0;
};

// The learning rate of an epoch, a pure function of train.lr_*: a restart needs no state.
//
//     constant   base
//     step       base * lr_decay^floor(t / lr_step)
//     cosine     base (1 + cos(pi t / (epochs - lr_warmup))) / 2
//
// where t = epoch - 1 - lr_warmup; before that the rate rises linearly, base * epoch / lr_warmup
// (Goyal et al. 2017). The cosine is one cycle of Loshchilov and Hutter (2017).

/// The rate of an epoch, which counts from 1, of what begins with `base`.
double rate_of_epoch(const TrainConfig& train, double base, std::int64_t epoch);

}  // namespace espalier

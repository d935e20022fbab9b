// The network that the keys model.* describe.
#pragma once

#include <cstdint>

#include "espalier/base/config.hpp"
#include "espalier/nn/network.hpp"

namespace espalier {

/// For so many input features and classes.
inline NetworkShape network_shape(const ModelConfig& model, std::int64_t inputs, std::int64_t classes) {
  // Kipf and Welling drop input features as well; GraphSAGE's authors do not.
  const double automatic = model.kind == "gcn" ? model.dropout : 0.0;
  return {.kind = model.kind,
          .layers = static_cast<int>(model.layers),
          .inputs = inputs,
          .hidden = model.hidden,
          .classes = classes,
          .dropout = model.dropout,
          .input_dropout = model.input_dropout.value.value_or(automatic),
          .normalize = model.normalize};
}

}  // namespace espalier

// One trained tensor of a network.
#pragma once

#include <string>

#include "espalier/dense/matrix.hpp"

namespace espalier {

template <class T, class Space = Cpu>
struct Parameter {
  std::string name;        ///< "layer1.neighbour": unique, part of the checkpoint
  int layer = 1;           ///< 1 .. L
  bool decays = false;     ///< weight matrices only: weight decay on biases and normalisation would
                           ///< fight the data
  Matrix<T, Space> value;  ///< [in, out], or [1, out] for biases, scales and shifts
};

}  // namespace espalier

// Networks that between them go through every way of every kind of layer, small, for tests.
#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "espalier/nn/network_shape.hpp"

namespace espalier {

/// For each rate of dropout one shape for each way of a layer; then what may stand around it.
inline std::vector<NetworkShape> layer_shapes(const std::vector<double>& rates) {
  std::vector<NetworkShape> all;
  for (const double rate : rates)
    for (const char* kind : {"sage", "gcn", "gat", "gin", "rgcn", "rgat", "hgt"}) {
      NetworkShape shape{.kind = kind,
                         .layers = 2,
                         .inputs = 7,
                         .hidden = 6,
                         .classes = 4,
                         .dropout = rate,
                         .input_dropout = rate};
      const bool relational = shape.kind == "rgat" || shape.kind == "hgt",
                 attends = relational || shape.kind == "gat";
      if (attends) shape.heads = 3, shape.output_heads = 2, shape.attention_dropout = rate;
      all.push_back(shape);
      if (shape.kind == "sage") {
        all.push_back(shape);
        all.back().aggregator = "max";
      }
      if (shape.kind == "rgcn") {
        shape.relations = 5;
        for (const std::int64_t bases : {1, 5, 2}) {
          shape.bases = bases;
          all.push_back(shape);
        }
      }
      if (relational) {
        shape.relations = shape.kind == "hgt" ? 3 : 5;
        all.push_back(shape);
      }
      if (attends) {
        all.push_back(shape);
        all.back().edge_features = 3;
      }
      if (relational || shape.kind == "rgcn" || shape.kind == "sage") {
        all.push_back(shape);
        all.back().types = {{"a"}, {"b", -1}, {"c"}};
        all.push_back(all.back());
        all.back().residual = true;
        all.back().normalize = "layer";
        all.back().layers = 1;
        all.back().classes = 6;
      }
      for (const char* normalize : {"batch", "layer"}) {
        all.push_back(shape);
        all.back().normalize = normalize;
        all.back().residual = true;
      }
      for (const char* jumping : {"concat", "max"}) {
        all.push_back(shape);
        all.back().jumping = jumping;
        all.back().residual = true;
        all.back().layers = 3;
      }
      all.push_back(shape);
      all.back().activation = "elu";
      all.back().hidden = 9;
      all.back().layers = 3;
    }
  return all;
}

struct Widths {
  std::int64_t inputs, hidden, classes;
};

/// Convolutions, with every normalisation: at widths that shrink or grow, over frontiers that grow
/// little or much, the one or the other order of multiplication is cheaper.
inline std::vector<NetworkShape> convolution_shapes(const std::vector<int>& layers,
                                                    const std::vector<Widths>& widths, double dropout,
                                                    double input_dropout) {
  std::vector<NetworkShape> all;
  for (const char* kind : {"sage", "gcn"})
    for (const char* normalize : {"none", "batch", "layer"})
      for (const int count : layers)
        for (const Widths& w : widths)
          all.push_back({kind, count, w.inputs, w.hidden, w.classes, dropout, input_dropout, normalize});
  return all;
}

inline std::string in_words(const NetworkShape& s) {
  return fmt::format(
      "{} {} layers {} widths {} {} dropout {} normalize {} activation {} residual {} jumping {}, {} "
      "relations, "
      "{} bases, {} types, edges of {}",
      s.kind, s.aggregator, s.layers, s.inputs, s.hidden, s.dropout, s.normalize, s.activation, s.residual,
      s.jumping, s.relations, s.bases, s.types.size(), s.edge_features);
}

/// The last of `sizes` that a network of this many layers has: input side first.
inline std::vector<std::int64_t> frontiers_of(const NetworkShape& shape,
                                              const std::vector<std::int64_t>& sizes) {
  return {sizes.end() - shape.layers - 1, sizes.end()};
}

}  // namespace espalier

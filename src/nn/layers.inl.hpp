// The table of layers. A new one is a file src/nn/KIND.inl.hpp and a line here, before the last,
// which is not one that users name.
#pragma once

#include <memory>

#include "espalier/nn/layer.hpp"
#include "gat.inl.hpp"
#include "gcn.inl.hpp"
#include "gin.inl.hpp"
#include "hgt.inl.hpp"
#include "none.inl.hpp"
#include "rgat.inl.hpp"
#include "rgcn.inl.hpp"
#include "sage.inl.hpp"

// clang-format off
//      what is known of it, its class
#define ESPALIER_LAYERS(layer) \
  layer(kSage, SageLayer) \
  layer(kGcn,  GcnLayer) \
  layer(kGat,  GatLayer) \
  layer(kGin,  GinLayer) \
  layer(kRgcn, RgcnLayer) \
  layer(kRgat, RgatLayer) \
  layer(kHgt,  HgtLayer) \
  layer(kNoLayer, NoLayer)
// clang-format on

namespace espalier {

template <class T, class Space>
std::unique_ptr<Layer<T, Space>> make_layer(const LayerKind& kind, const LayerShape& shape) {
#define ESPALIER_MAKE(known, Made) \
  if (kind.name == known.name) return std::make_unique<Made<T, Space>>(shape);
  ESPALIER_LAYERS(ESPALIER_MAKE)
#undef ESPALIER_MAKE
  return nullptr;
}

}  // namespace espalier

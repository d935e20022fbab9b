// Jumping knowledge (Xu et al., Representation learning on graphs with jumping knowledge networks,
// ICML 2018): what is learnt from is the results of all layers, side by side or element by element
// the largest.
//
//     J = [H[1] .. H[L]]  or  J = max over l of H[l]     rows of the seeds, the first of each H[l]
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/base/error.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/nn/convolution.hpp"

namespace espalier {

enum class Jumping { kNone, kConcat, kMax };

/// Throws UserError(kUsage) for a name that is none.
inline Jumping jumping_of(std::string_view name) {
  if (name == "none") return Jumping::kNone;
  if (name == "concat") return Jumping::kConcat;
  if (name == "max") return Jumping::kMax;
  usage_error("jumping \"{}\" is not one of none, concat, max", name);
}

/// h [rows, f] becomes J[:, at .. at + f].
template <class T, class Space>
void place_columns(const Space&, ConstViewOn<Space, T> h, std::int64_t at, ViewOn<Space, T> j);

/// gradient [rows, f] += dJ[:, at .. at + f].
template <class T, class Space>
void add_columns(const Space&, ConstViewOn<Space, T> dj, std::int64_t at, ViewOn<Space, T> gradient);

/// J = max(J, h), and winners [rows * f] = `number` where h is larger; with number 1 J = h. Of
/// equal elements the first layer's counts.
template <class T, class Space>
void take_larger(const Space&, ConstViewOn<Space, T> h, int number, ViewOn<Space, T> j,
                 Array<Space, std::int32_t>& winners);

/// gradient += dJ where layer `number` has won.
template <class T, class Space>
void add_where_larger(const Space&, ConstViewOn<Space, T> dj, int number,
                      const Array<Space, std::int32_t>& winners, ViewOn<Space, T> gradient);

}  // namespace espalier

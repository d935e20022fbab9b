// What a control variate adds to the sums of a sampled block (VR-GCN: Chen, Zhu and Song 2018,
// equation 4; with unbiased weights of any sampler in place of theirs).
//
// A block B of one layer estimates rows of a matrix A. Of some columns S a row h^ of other steps is
// known that lies near the row h that is now. Then
//
//     sum_u b_vu (h_u - [u in S] h^_u)  +  sum_(u in S) a_vu h^_u     =  (B H)_v + (C H^)_v
//
//     C = A - B in the rows of B and the columns of S
//
// has the mean of B H where E[B] = A and S and H^ are independent of the draw, and no variance
// where h^ = h and S has all neighbours. Entries of C that are 0 are left out: all of a row that is
// taken whole, and the diagonal where the sampler keeps it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/sparse/csr.hpp"

namespace espalier {

/// C, of which column k is the row h^ of the vertex at positions[k] of the list of `whole`.
struct ControlVariate {
  Block block;                          ///< [rows of B, positions.size()]
  std::vector<std::int64_t> positions;  ///< ascending, each in some entry
  std::int64_t entries = 0, known = 0;  ///< of those rows of A; and of them those in columns of S
};

/// C of the block `sampled`, whose columns are the vertices `sources`. whole: A's rows of the same
/// vertices first, `sampled.rows` or more, its columns being `vertices`; known[i] != 0: vertices[i]
/// is in S. Rows of both ascend by vertex; a row of `sampled` has no other vertices than that of
/// `whole`, which is checked. Memory of the host; on one thread.
ControlVariate control_variate(const BlockView<>& sampled, std::span<const std::int64_t> sources,
                               const BlockView<>& whole, std::span<const std::int64_t> vertices,
                               std::span<const std::uint8_t> known);

}  // namespace espalier

// New numbers of vertices, of all or of those that stay. Every rank knows them of its even ranges,
// of the old numbers and of the new ones.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "espalier/base/buffer.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/clean_graph.hpp"

namespace espalier {

inline constexpr std::int64_t kDropped = -1;

class RenumberedVertices {
 public:
  /// Collective. By number[k], that of vertex k of this rank's even range, or kDropped; the numbers
  /// of those that stay are 0 .. without a gap.
  RenumberedVertices(const Communicator& comm, std::int64_t old_nodes, Buffer<std::int64_t> numbers);

  std::int64_t nodes() const { return nodes_; }
  /// Of each vertex of this rank's even range of the old numbers, or kDropped.
  const Buffer<std::int64_t>& numbers() const { return numbers_; }
  /// What was vertex k of this rank's even range.
  const Buffer<std::int64_t>& old() const { return old_; }
  /// Collective. The numbers of these old vertices, in any order.
  Buffer<std::int64_t> numbers_of(std::span<const std::int64_t> old) const;

 private:
  const Communicator& comm_;
  std::int64_t old_nodes_, nodes_;
  Buffer<std::int64_t> numbers_;  // [my old vertices]
  Buffer<std::int64_t> old_;      // [my new vertices]
};

/// What is known of vertices that are to be numbered, one entry for each of this rank's even range.
struct VertexFacts {
  Buffer<std::int64_t> degrees;     ///< entries of the row
  Buffer<std::int64_t> components;  ///< the least vertex of the component; empty: nobody asked
};

/// Collective. The vertices of the largest component, of as large ones that with the least vertex,
/// or all of them, in the order asked for. `components` becomes how many there are; 0: nobody
/// asked.
RenumberedVertices number_vertices(const Communicator& comm, std::int64_t nodes, const VertexFacts& facts,
                                   const CleanOptions& options, std::int64_t& components);

}  // namespace espalier

// How many vertices have how many entries in their row of the matrix: what estimates go by that do
// not hold the graph. Read from where rows begin, which is little beside the entries.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// So many vertices have this degree.
struct DegreeCount {
  std::int64_t degree = 0, vertices = 0;
};

/// Ascending, each degree once.
using DegreeHistogram = std::vector<DegreeCount>;

/// Collective. The same on every rank, and on any number of ranks. `more`: entries that each row
/// gets beside those of the file, as self loops.
DegreeHistogram read_degrees(const Communicator& comm, const GraphFile& file, std::int64_t more = 0);

/// The smallest degree that at least a fraction q of the n vertices does not exceed.
std::int64_t quantile(const DegreeHistogram& degrees, double q, std::int64_t n);

/// Calls read(begin, end), which may be collective, for this rank's share of n rows of so many
/// values, in pieces of bounded size, as often on every rank.
template <class Read>
void in_row_parts(const Communicator& comm, std::int64_t n, const Read& read, std::int64_t values = 1) {
  constexpr std::int64_t kValuesPerPart = std::int64_t{1} << 20;
  const auto mine = even_range(n, comm.size(), comm.rank());
  const auto parts = 1 + n * values / comm.size() / kValuesPerPart;
  for (std::int64_t part = 0; part < parts; ++part) {
    const auto rows = even_range(mine.size(), parts, part);
    read(mine.begin + rows.begin, mine.begin + rows.end);
  }
}

}  // namespace espalier

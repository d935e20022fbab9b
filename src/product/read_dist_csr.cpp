#include "espalier/product/dist_csr.hpp"

namespace espalier {

template <class Index>
DistCsr<Index> read_dist_csr(const Grid& grid, const GraphFile& file, Topology topology) {
  const auto ranges = row_ranges(grid, file.info().nodes, topology);
  auto a = empty_dist_csr<Index>(grid, ranges);
  a.has_values = file.info().weighted;
  a.local = file.read_rows<Index>(ranges.begin(a.part), ranges.end(a.part));
  return a;
}

template DistCsr<std::int32_t> read_dist_csr(const Grid&, const GraphFile&, Topology);
template DistCsr<std::int64_t> read_dist_csr(const Grid&, const GraphFile&, Topology);

}  // namespace espalier

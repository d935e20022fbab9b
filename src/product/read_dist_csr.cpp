#include "espalier/product/dist_csr.hpp"

namespace espalier {

template <class Index>
DistCsr<Index> read_dist_csr(const Grid& grid, const GraphFile& file, Topology topology) {
  auto a = empty_dist_csr<Index>(grid, file.info().nodes, topology);
  a.has_values = file.info().weighted;
  a.local = file.read_rows<Index>(a.partition.begin(a.part), a.partition.end(a.part));
  return a;
}

template DistCsr<std::int32_t> read_dist_csr(const Grid&, const GraphFile&, Topology);
template DistCsr<std::int64_t> read_dist_csr(const Grid&, const GraphFile&, Topology);

}  // namespace espalier

#include "espalier/partition/owned_reader.hpp"
#include "espalier/product/dist_csr.hpp"

namespace espalier {

template <class Index>
DistCsr<Index> read_dist_csr(const Grid& grid, const GraphFile& file, const Ownership& ownership) {
  auto a = empty_dist_csr<Index>(grid, ownership);
  a.has_values = file.info().weighted;
  set_schema(a, file.info().schema, file.view().apart);
  a.local = OwnedReader(grid, file, ownership).rows<Index>();
  return a;
}

template DistCsr<std::int32_t> read_dist_csr(const Grid&, const GraphFile&, const Ownership&);
template DistCsr<std::int64_t> read_dist_csr(const Grid&, const GraphFile&, const Ownership&);

}  // namespace espalier

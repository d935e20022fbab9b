#include "subgraph.inl.hpp"

namespace espalier {

template <class Index>
std::unique_ptr<SamplerOn<Cuda>> make_subgraph(const Cuda&, const DistCsr<Index, Cuda>& m,
                                               const SamplerShape& shape) {
  return make_induced(m, shape);
}

#define ESPALIER_INSTANTIATE(Index)                                                                 \
  template std::unique_ptr<SamplerOn<Cuda>> make_subgraph(const Cuda&, const DistCsr<Index, Cuda>&, \
                                                          const SamplerShape&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier

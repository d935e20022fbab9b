// Networks on the GPU.
#include "network.inl.hpp"

#include "link_decoder.inl.hpp"

namespace espalier {

void copy_weights(const Cuda& cuda, const Network<float>& from, Network<float, Cuda>& to) {
  ESPALIER_CHECK(from.parameters().size() == to.parameters().size() &&
                     from.running_statistics().size() == to.running_statistics().size() &&
                     from.parameter_count() == to.parameter_count(),
                 "networks of {} and {} numbers", from.parameter_count(), to.parameter_count());
  for (std::size_t k = 0; k < from.parameters().size(); ++k)
    upload(cuda, from.parameters()[k].value, to.parameters()[k].value);
  for (std::size_t k = 0; k < from.running_statistics().size(); ++k)
    upload(cuda, from.running_statistics()[k], to.running_statistics()[k]);
}

template class Network<float, Cuda>;

template std::unique_ptr<LinkDecoder<Cuda>> make_link_decoder(const Cuda&, const LinkScore&);

}  // namespace espalier

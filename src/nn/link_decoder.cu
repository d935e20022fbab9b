#include "link_decoder.inl.hpp"

namespace espalier {

template std::unique_ptr<LinkDecoder<Cuda>> make_link_decoder(const Cuda&, const LinkScore&);

}  // namespace espalier

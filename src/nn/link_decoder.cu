#include "link_decoder.inl.hpp"

namespace espalier {

std::unique_ptr<LinkDecoder<Cuda>> make_link_decoder(const Cuda&, const LinkScore& score) {
  return make_decoder<Cuda>(score);
}

}  // namespace espalier

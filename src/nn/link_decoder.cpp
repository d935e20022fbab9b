#include "link_decoder.inl.hpp"

namespace espalier {

std::vector<TensorShape> link_tensors(const LinkScore& score, std::int64_t relations, std::int64_t width) {
  const auto& kind = *score.kind;
  const auto columns = kind.relation_width(width);
  if (columns == 0) return {};
  const auto start = kind.has_angles ? Start::kAngle : kind.has_network ? Start::kOne : Start::kGlorot;
  std::vector<TensorShape> tensors{{"relations", relations, columns, start, relations, true}};
  if (kind.has_network)
    tensors.insert(tensors.end(), {{"hidden", width, width},
                                   {"hidden_bias", 1, width, Start::kZero},
                                   {"output", width, 1},
                                   {"output_bias", 1, 1, Start::kZero}});
  return tensors;
}

std::int64_t link_network_numbers(const LinkScore& score, std::int64_t width) {
  return score.kind->has_network ? 3 * width : 0;
}

template std::unique_ptr<LinkDecoder<Cpu>> make_link_decoder(const Cpu&, const LinkScore&);

}  // namespace espalier

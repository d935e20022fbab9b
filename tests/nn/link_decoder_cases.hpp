// Links with rows and the tensors of a decoder, for the tests of both spaces.
#pragma once

#include "espalier/nn/link_decoder.hpp"
#include "nn/link_scores_cases.hpp"

namespace espalier {

struct DecoderCase {
  LinkScore score;
  LinkCase links;
  std::vector<Matrix<float>> tensors;

  DecoderCase(const char* name, std::int64_t rows, std::int64_t width, std::int64_t relations,
              std::int64_t count, std::mt19937_64& random)
      : score{&link_score_kind_of(name, "score")}, links(*score.kind, rows, width, relations, count, random) {
    for (const auto& shape : link_tensors(score, relations, width))
      tensors.push_back(random_matrix<float>(shape.rows, shape.columns, random));
    if (!tensors.empty()) tensors[0] = links.relations;
  }
};

struct DecoderResults {
  Matrix<float> scores, dh;
  std::vector<Matrix<float>> gradients;
};

/// `links`: those of the case, in memory of the space.
template <class Space>
DecoderResults by_decoder(const Space& space, const DecoderCase& c, const LinksView& links) {
  const auto bring = [&](const Matrix<float>& m) { return matrix_on(space, m); };
  const auto h = bring(c.links.h), dscores = bring(c.links.dscores);
  auto scores = bring(c.links.dscores), dh = bring(c.links.h_before);
  std::vector<Matrix<float, Space>> tensors, gradients;
  for (const auto& tensor : c.tensors) {
    tensors.push_back(bring(tensor));
    gradients.push_back(bring(tensor));  // whatever stood there is replaced
  }
  const std::vector<ConstMatrixView<float, Space>> views(tensors.begin(), tensors.end());
  const auto decoder = make_link_decoder(space, c.score);
  LinkPlacesOn<Space> places;
  decoder->forward(space, h, views, links, scores.data.data());
  find_link_places(space, links, h.rows, views.empty() ? 0 : views[0].rows, places);
  decoder->backward(space, h, views, links, places, scores.data.data(), dscores.data.data(), dh, gradients);
  DecoderResults results = {matrix_from(space, scores), matrix_from(space, dh), {}};
  for (const auto& gradient : gradients) results.gradients.push_back(matrix_from(space, gradient));
  return results;
}

inline DecoderResults on_cpu(const DecoderCase& c, int threads = 1) {
  return by_decoder(Cpu{threads}, c, c.links.view());
}

}  // namespace espalier

// Decoders of links (espalier/nn/link_decoder.hpp), composed of kernels that every space has.
#pragma once

#include "espalier/base/arrays.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/nn/link_decoder.hpp"
#include "row_sum.hpp"

namespace espalier {

template <class Space>
class LinkSum final : public LinkDecoder<Space> {
  using View = ConstMatrixView<float, Space>;

 public:
  explicit LinkSum(const LinkScore& score) : score_(score) {}

  void forward(const Space& space, View h, std::span<const View> tensors, const LinksView& links,
               float* scores) override {
    link_scores(space, score_, h, rows_of_relations(tensors), links, scores);
  }

  void backward(const Space& space, View h, std::span<const View> tensors, const LinksView& links,
                const LinkPlacesOn<Space>& places, const float* scores, const float* dscores,
                MatrixView<float, Space> dh, std::span<Matrix<float, Space>> gradients) override {
    for (auto& gradient : gradients) fill_zero(space, gradient.data);
    link_scores_backward(space, score_, h, rows_of_relations(tensors), links, places, scores, dscores, dh,
                         gradients.empty() ? none_ : gradients[0]);
  }

 private:
  static View rows_of_relations(std::span<const View> tensors) {
    return tensors.empty() ? View() : tensors[0];
  }
  LinkScore score_;
  Matrix<float, Space> none_;
};

template <class Space>
class LinkMlp final : public LinkDecoder<Space> {
  using M = Matrix<float, Space>;
  using View = ConstMatrixView<float, Space>;
  enum : std::size_t { kRelations, kHidden, kHiddenBias, kOutput, kOutputBias };

 public:
  void forward(const Space& space, View h, std::span<const View> tensors, const LinksView& links,
               float* scores) override {
    products_.resize(links.count, h.columns);
    hidden_.resize(links.count, tensors[kHidden].columns);
    link_products(space, h, tensors[kRelations], links, products_);
    gemm_plus_row<float>(space, tensors[kHiddenBias], products_, tensors[kHidden], hidden_);
    relu_dropout<float>(space, {}, 0, hidden_);
    gemm_plus_row<float>(space, tensors[kOutputBias], hidden_, tensors[kOutput],
                         MatrixView<float, Space>(links.count, 1, scores));
  }

  void backward(const Space& space, View h, std::span<const View> tensors, const LinksView& links,
                const LinkPlacesOn<Space>& places, const float*, const float* dscores,
                MatrixView<float, Space> dh, std::span<M> gradients) override {
    const View d(links.count, 1, dscores);
    sum_rows<float>(space, d, gradients[kOutputBias]);
    gemm_tn<float>(space, hidden_, d, gradients[kOutput]);
    dhidden_.resize(hidden_.rows, hidden_.columns);
    gemm_nt<float>(space, d, tensors[kOutput], dhidden_);
    relu_dropout_backward<float>(space, 0, hidden_, dhidden_, &gradients[kHiddenBias]);
    gemm_tn<float>(space, products_, dhidden_, gradients[kHidden]);
    gemm_nt<float>(space, dhidden_, tensors[kHidden], products_);  // what they were is used no more
    fill_zero(space, gradients[kRelations].data);
    link_products_backward(space, h, tensors[kRelations], links, places, products_, dh,
                           gradients[kRelations]);
  }

 private:
  M products_, hidden_, dhidden_;
};

template <class Space>
std::unique_ptr<LinkDecoder<Space>> make_link_decoder(const Space&, const LinkScore& score) {
  if (score.kind->has_network) return std::make_unique<LinkMlp<Space>>();
  return std::make_unique<LinkSum<Space>>(score);
}

}  // namespace espalier

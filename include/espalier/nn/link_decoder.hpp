// What scores the links of a batch or of an evaluation, with the tensors that it is trained with:
// a sum (nn/link_scores.hpp), or a network with one hidden layer, as wide as rows are,
//
//     mlp:  score = w . relu(W^T (h r t) + b) + c
//
// over the products of a link's rows, number by number. Rows r of relations begin as ones: with one
// relation it is the predictor of OGB's and DGL's examples. Its products of matrices keep the laws
// of dense/gemm.hpp: on the CPU a score depends on its link alone.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "espalier/nn/layer.hpp"
#include "espalier/nn/link_scores.hpp"

namespace espalier {

/// The tensors that a score of rows so wide is trained with, relations' rows first.
std::vector<TensorShape> link_tensors(const LinkScore& score, std::int64_t relations, std::int64_t width);

/// Numbers of 4 bytes that a network keeps of each link of a batch.
std::int64_t link_network_numbers(const LinkScore& score, std::int64_t width);

template <class Space>
class LinkDecoder {
 public:
  virtual ~LinkDecoder() = default;

  /// scores [links], memory of the space. `tensors`: of link_tensors, in their order; relations may
  /// have fewer rows, where links name those alone. Where the space is a GPU the host does not
  /// wait.
  virtual void forward(const Space& space, ConstMatrixView<float, Space> h,
                       std::span<const ConstMatrixView<float, Space>> tensors, const LinksView& links,
                       float* scores) = 0;

  /// Of the forward before, with what it was given and `scores` of it: dh += the gradient by h,
  /// and `gradients`, in the shapes of the tensors, become theirs. `places` are of the links.
  virtual void backward(const Space& space, ConstMatrixView<float, Space> h,
                        std::span<const ConstMatrixView<float, Space>> tensors, const LinksView& links,
                        const LinkPlacesOn<Space>& places, const float* scores, const float* dscores,
                        MatrixView<float, Space> dh, std::span<Matrix<float, Space>> gradients) = 0;
};

template <class Space>
std::unique_ptr<LinkDecoder<Space>> make_link_decoder(const Space&, const LinkScore& score);

}  // namespace espalier

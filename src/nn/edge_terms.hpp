// Terms of attention's scores. What features of edges add: a number for each head, by a vector of
// the relation and the head,
//
//     e_kh += f_k . u_rh                f_k: the features of entry k, of relation r
//
// GATConv of PyTorch Geometric has f_k W_edge, of all heads, times a_edge^h in its place: with
// u_h = W_edge^h a_edge^h that is the same number, and there is no other use of W_edge, so u is
// what is learnt here. Entries without features get nothing added.
#pragma once

#include "espalier/base/error.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/nn/views.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Where the numbers of an entry stand in a matrix [.., heads].
enum class EntryNumbers {
  kAlone,    ///< entry k has row k
  kWithOwn,  ///< behind those of each row of the block stand those of the vertex itself
             ///< (nn/edge_softmax.hpp)
};

/// scores [.., heads] += what block.edges say; u [relations * heads, block.edges.width].
template <class T>
void add_edge_terms(const Cpu&, const BlockView<Cpu>& block, const Matrix<T>& u, EntryNumbers form,
                    Matrix<T>& scores);
template <class T>
void add_edge_terms(const Cuda&, const BlockView<Cuda>& block, const Matrix<T, Cuda>& u, EntryNumbers form,
                    Matrix<T, Cuda>& scores);

/// du, shaped like u: the sums over the entries of dscores times features, added in double in an
/// order that does not know the threads.
template <class T>
void edge_terms_backward(const Cpu&, const BlockView<Cpu>& block, const Matrix<T>& dscores, EntryNumbers form,
                         Matrix<T>& du);
template <class T>
void edge_terms_backward(const Cuda&, const BlockView<Cuda>& block, const Matrix<T, Cuda>& dscores,
                         EntryNumbers form, Matrix<T, Cuda>& du);

/// The tensor u, where edges have features; before the bias of a layer.
inline void add_edge_tensor(const LayerShape& s, std::vector<TensorShape>& tensors) {
  if (s.edge_features > 0)
    tensors.insert(tensors.end() - 1,
                   {"edge", s.relations * s.heads, s.edge_features, Start::kGlorot, s.relations});
}

/// Of a block that must have as many features as u has columns.
inline void check_edges(const EdgeRows& edges, std::int64_t columns) {
  ESPALIER_CHECK(edges.count == 0 || edges.width == columns, "edges have {} features, not {}", edges.width,
                 columns);
}

#define ESPALIER_INSTANTIATE_EDGE_TERMS(T, Space)                                                      \
  template void add_edge_terms<T>(const Space&, const BlockView<Space>&, const Matrix<T, Space>&,      \
                                  EntryNumbers, Matrix<T, Space>&);                                    \
  template void edge_terms_backward<T>(const Space&, const BlockView<Space>&, const Matrix<T, Space>&, \
                                       EntryNumbers, Matrix<T, Space>&);

// Attention's scores of projected rows, a . (x W), are products of the rows themselves with W a^T:
// a vector for each of P matrices that stand one under the other.

/// u [P, in], u_p = W_p a_p, of w [P * in, width] and a [P, width].
template <class T, class Space>
void score_vectors(const Space&, ConstViewOn<Space, T> w, ConstViewOn<Space, T> a, ViewOn<Space, T> u);

/// da [P, width] = the sum over i of du_pi w_pi; dw += what comes by way of u. Added in one order.
template <class T>
void score_vectors_backward(const Cpu&, ConstMatrixView<T> w, ConstMatrixView<T> a, ConstMatrixView<T> du,
                            MatrixView<T> dw, MatrixView<T> da);
template <class T>
void score_vectors_backward(const Cuda&, ConstMatrixView<T, Cuda> w, ConstMatrixView<T, Cuda> a,
                            ConstMatrixView<T, Cuda> du, MatrixView<T, Cuda> dw, MatrixView<T, Cuda> da);

// Square matrices of relations and heads, one under the other, each times a learned number and a
// factor that all share: ~W_p = factor mu_p W_p.

/// scaled [P * width, width], resized, of w of that shape and P numbers mu.
template <class T, class Space>
void scale_matrices(const Space&, const MatrixOn<Space, T>& w, const MatrixOn<Space, T>& mu, T factor,
                    MatrixOn<Space, T>& scaled);

/// dscaled becomes dW; dmu_p = factor times the sum of W_p's elements times those of dscaled_p.
template <class T, class Space>
void scale_matrices_backward(const Space&, const MatrixOn<Space, T>& w, const MatrixOn<Space, T>& mu,
                             T factor, MatrixOn<Space, T>& dscaled, MatrixOn<Space, T>& dmu);

}  // namespace espalier

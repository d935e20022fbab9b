// Kernels that every space does alike, an element of their result for a thread. Headers say what
// they compute.
#include "edge_softmax_rules.hpp"
#include "edge_terms.hpp"
#include "entry_softmax.hpp"
#include "espalier/base/kernels.hpp"
#include "espalier/nn/between_layers.hpp"
#include "espalier/nn/own_rows.hpp"
#include "row_sum.hpp"

#if defined(ESPALIER_FOR_CUDA)
#include "device_row_sum.hpp"
#endif

namespace espalier {

// ---- between and around layers ----

template <class T, class Space>
void elu(const Space& space, ViewOn<Space, T> h) {
  for_each(space, "elu", h.rows * h.columns, [=] ESPALIER_DEVICE(std::int64_t e) {
    const T x = h.data[e];
    h.data[e] = x > T{0} ? x : expm1_of_nonpositive(x);
  });
}

template <class T, class Space>
void elu_backward(const Space& space, ConstViewOn<Space, T> h, T scale, ViewOn<Space, T> gradient,
                  MatrixOn<Space, T>* sums) {
  update_and_sum(space, gradient, sums, [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t j, T d) {
    const T y = h(i, j);
    return d * (y >= T{0} ? T{1} : y / scale + T{1});
  });
}

template <class T, class Space>
void dropout_of_pairs(const Space& space, const KeyedStream& stream, double rate,
                      const PairedRows<T, std::type_identity_t<Space>>& in, MatrixOn<Space, T>& out) {
  const auto pairs = in.pairs;
  out.resize(pairs.rows, pairs.columns);
  const MatrixView<T, Space> to(out);
  const std::uint32_t threshold = dropout_threshold(rate);
  const T scale = keep_scale<T>(rate);
  for_each_in_rows(space, "dropout_of_pairs", pairs.rows, in.pairs_of_row(),
                   [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t k) {
                     const auto of_row = stream.of_row(i);
                     const T column = pairs(i, 2 * k);
                     to(i, 2 * k) = column;
                     to(i, 2 * k + 1) = after_dropout(of_row, threshold, scale,
                                                      static_cast<std::int64_t>(column), pairs(i, 2 * k + 1));
                   });
}

template <class T, class Space>
void add_rows(const Space& space, ConstViewOn<Space, T> x, ViewOn<Space, T> y) {
  for_each(space, "add_rows", y.rows * y.columns,
           [=] ESPALIER_DEVICE(std::int64_t e) { y.data[e] += x.data[e]; });
}

// ---- of a vertex's own vector ----

namespace {

/// A number for every element: the CPU reads it before, so that loops over elements are of vectors.
template <class T>
struct ReadNumber {
  T value;
  T operator*() const { return value; }
};
template <class T>
ReadNumber<T> number_at(const Cpu&, const T* at) {
  return {*at};
}
template <class T>
const T* number_at(const Cuda&, const T* at) {
  return at;
}

/// The same of a gate, which the CPU computes once.
template <class T>
struct GateThere {
  const T* s;
  ESPALIER_HD T operator*() const { return gate_of(*s); }
};
template <class T>
ReadNumber<T> gate_at(const Cpu&, const T* s) {
  return {gate_of(*s)};
}
template <class T>
GateThere<T> gate_at(const Cuda&, const T* s) {
  return {s};
}

}  // namespace

template <class T, class Space>
void add_own_rows(const Space& space, const MatrixOn<Space, T>& eps, ConstViewOn<Space, T> x,
                  ViewOn<Space, T> y) {
  const auto factor = number_at(space, eps.data.data());
  for_each(space, "add_own_rows", y.rows * y.columns,
           [=] ESPALIER_DEVICE(std::int64_t e) { y.data[e] += (T{1} + *factor) * x.data[e]; });
}

template <class T, class Space>
void product_of_own_rows(const Space& space, ConstViewOn<Space, T> x, ConstViewOn<Space, T> y,
                         MatrixOn<Space, T>& sum) {
  T* const out = sum.data.data();
  sum_of_all(
      space, "product_of_own_rows", x.rows, x.columns,
      [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t j) {
        return static_cast<double>(x(i, j)) * static_cast<double>(y(i, j));
      },
      [=] ESPALIER_DEVICE(double total) { *out = static_cast<T>(total); });
}

template <class T, class Space>
void add_mixed_rows(const Space& space, const MatrixOn<Space, T>& skip, std::int64_t gate,
                    ConstViewOn<Space, T> x, ConstViewOn<Space, T> y, ViewOn<Space, T> z) {
  const auto g = gate_at(space, skip.row(gate));
  for_each(space, "add_mixed_rows", z.rows * z.columns,
           [=] ESPALIER_DEVICE(std::int64_t e) { z.data[e] += *g * y.data[e] + (T{1} - *g) * x.data[e]; });
}

template <class T, class Space>
void mixed_rows_backward(const Space& space, const MatrixOn<Space, T>& skip, std::int64_t gate,
                         ConstViewOn<Space, T> x, ConstViewOn<Space, T> y, ConstViewOn<Space, T> dz,
                         ViewOn<Space, T> dy, MatrixOn<Space, T>& dskip) {
  const auto g = gate_at(space, skip.row(gate));
  T* const to = dskip.row(gate);
  sum_of_all(
      space, "mixed_rows_backward", dz.rows, dz.columns,
      [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t c) {
        return static_cast<double>(y(i, c) - x(i, c)) * static_cast<double>(dz(i, c));
      },
      [=] ESPALIER_DEVICE(double total) {
        *to += static_cast<T>(total * static_cast<double>(*g * (T{1} - *g)));
      },
      [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t c, double) { dy(i, c) = *g * dz(i, c); });
}

template <class T, class Space>
void add_past_gate(const Space& space, const MatrixOn<Space, T>& skip, std::int64_t gate,
                   ConstViewOn<Space, T> dz, ViewOn<Space, T> dx) {
  const auto g = gate_at(space, skip.row(gate));
  for_each(space, "add_past_gate", dz.rows * dz.columns,
           [=] ESPALIER_DEVICE(std::int64_t e) { dx.data[e] += (T{1} - *g) * dz.data[e]; });
}

// ---- jumping knowledge ----

template <class T, class Space>
void place_columns(const Space& space, ConstViewOn<Space, T> h, std::int64_t at, ViewOn<Space, T> j) {
  for_each_in_rows(space, "place_columns", j.rows, h.columns,
                   [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t f) { j(i, at + f) = h(i, f); });
}

template <class T, class Space>
void add_columns(const Space& space, ConstViewOn<Space, T> dj, std::int64_t at, ViewOn<Space, T> gradient) {
  for_each_in_rows(space, "add_columns", dj.rows, gradient.columns,
                   [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t f) { gradient(i, f) += dj(i, at + f); });
}

template <class T, class Space>
void take_larger(const Space& space, ConstViewOn<Space, T> h, int number, ViewOn<Space, T> j,
                 Array<Space, std::int32_t>& winners) {
  winners.resize(static_cast<std::size_t>(j.rows * j.columns));
  std::int32_t* const winner = winners.data();
  for_each(space, "take_larger", j.rows * j.columns, [=] ESPALIER_DEVICE(std::int64_t e) {
    if (number > 1 && (h.data[e] <= j.data[e] || j.data[e] != j.data[e])) return;
    j.data[e] = h.data[e];
    winner[e] = number;
  });
}

template <class T, class Space>
void add_where_larger(const Space& space, ConstViewOn<Space, T> dj, int number,
                      const Array<Space, std::int32_t>& winners, ViewOn<Space, T> gradient) {
  const std::int32_t* const winner = winners.data();
  for_each(space, "add_where_larger", dj.rows * dj.columns, [=] ESPALIER_DEVICE(std::int64_t e) {
    if (winner[e] == number) gradient.data[e] += dj.data[e];
  });
}

// ---- of layers with attention ----

template <class T, class Space>
void head_scores(const Space& space, ConstViewOn<Space, T> p, const MatrixOn<Space, T>& a,
                 ViewOn<Space, T> s) {
  const std::int64_t width = a.columns;
  const T* const by = a.data.data();
  for_each_in_rows(space, "head_scores", s.rows, a.rows, [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t h) {
    s(i, h) = product_of(p.row(i) + h * width, by + h * width, width);
  });
}

template <class T, class Space>
void average_heads(const Space& space, const MatrixOn<Space, T>& all, const MatrixOn<Space, T>& bias,
                   ViewOn<Space, T> z) {
  const std::int64_t heads = all.columns / z.columns;
  const T *const from = all.data.data(), *const row = bias.data.data();
  for_each_in_rows(space, "average_heads", z.rows, z.columns,
                   [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t c) {
                     T sum = 0;
                     for (std::int64_t h = 0; h < heads; ++h) sum += from[(i * heads + h) * z.columns + c];
                     z(i, c) = row[c] + sum / static_cast<T>(heads);
                   });
}

template <class T, class Space>
void average_heads_backward(const Space& space, ConstViewOn<Space, T> dz, MatrixOn<Space, T>& dall) {
  const std::int64_t heads = dall.columns / dz.columns, columns = dall.columns;
  T* const to = dall.data.data();
  for_each_in_rows(space, "average_heads_backward", dall.rows, dz.columns,
                   [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t c) {
                     const T share = dz(i, c) / static_cast<T>(heads);
                     for (std::int64_t h = 0; h < heads; ++h) to[i * columns + h * dz.columns + c] = share;
                   });
}

template <class T, class Space>
void entry_softmax_backward(const Space& space, const BlockViewOn<Space>& block, SoftmaxOver over,
                            const MatrixOn<Space, T>& scores, const MatrixOn<Space, T>& weights, double rate,
                            MatrixOn<Space, T>& gradients) {
  const std::int64_t heads = scores.columns;
  const auto* const indptr = block.indptr;
  const std::uint8_t* const relations = block.relations;
  const T *const score = scores.data.data(), *const weight = weights.data.data();
  T* const gradient = gradients.data.data();
  const T scale = keep_scale<T>(rate);
  for_each_in_rows(space, "entry_softmax_backward", block.rows, heads,
                   [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t h) {
                     for (auto e = indptr[i]; e < indptr[i + 1];) {
                       const auto next = part_end(relations, over.relations, e, indptr[i + 1]),
                                  first = (e - indptr[0]) * heads + h;
                       softmax_of_part_backward(score + first, weight + first, next - e, heads,
                                                static_cast<T>(over.slope), scale, gradient + first);
                       e = next;
                     }
                   });
}

template <class T, class Space>
void score_vectors(const Space& space, ConstViewOn<Space, T> w, ConstViewOn<Space, T> a, ViewOn<Space, T> u) {
  for_each_in_rows(space, "score_vectors", u.rows, u.columns,
                   [=] ESPALIER_DEVICE(std::int64_t p, std::int64_t i) {
                     u(p, i) = product_of(w.row(p * u.columns + i), a.row(p), a.columns);
                   });
}

template <class T, class Space>
void gelu(const Space& space, const MatrixOn<Space, T>& x, MatrixOn<Space, T>& y) {
  y.resize(x.rows, x.columns);
  const T* const from = x.data.data();
  T* const to = y.data.data();
  for_each(space, "gelu", x.rows * x.columns,
           [=] ESPALIER_DEVICE(std::int64_t e) { to[e] = from[e] * normal_distribution(from[e]); });
}

template <class T, class Space>
void gelu_backward(const Space& space, const MatrixOn<Space, T>& x, MatrixOn<Space, T>& dy) {
  const T* const from = x.data.data();
  T* const to = dy.data.data();
  for_each(space, "gelu_backward", x.rows * x.columns, [=] ESPALIER_DEVICE(std::int64_t e) {
    to[e] *= normal_distribution(from[e]) + from[e] * normal_density(from[e]);
  });
}

template <class T, class Space>
void scale_matrices(const Space& space, const MatrixOn<Space, T>& w, const MatrixOn<Space, T>& mu, T factor,
                    MatrixOn<Space, T>& scaled) {
  scaled.resize(w.rows, w.columns);
  const T *const from = w.data.data(), *const prior = mu.data.data();
  T* const to = scaled.data.data();
  const std::int64_t size = w.columns * w.columns;
  for_each_in_rows(space, "scale_matrices", w.rows / w.columns, size,
                   [=] ESPALIER_DEVICE(std::int64_t p, std::int64_t e) {
                     to[p * size + e] = factor * prior[p] * from[p * size + e];
                   });
}

template <class T, class Space>
void scale_matrices_backward(const Space& space, const MatrixOn<Space, T>& w, const MatrixOn<Space, T>& mu,
                             T factor, MatrixOn<Space, T>& dscaled, MatrixOn<Space, T>& dmu) {
  const T *const from = w.data.data(), *const prior = mu.data.data();
  T *const gradient = dscaled.data.data(), *const of_prior = dmu.data.data();
  const std::int64_t size = w.columns * w.columns, parts = w.rows / w.columns;
  for_each(space, "gradients_of_priors", parts, [=] ESPALIER_DEVICE(std::int64_t p) {
    T sum = 0;
    for (auto e = p * size; e < (p + 1) * size; ++e) sum += from[e] * gradient[e];
    of_prior[p] = factor * sum;
  });
  for_each_in_rows(
      space, "scale_matrices_backward", parts, size,
      [=] ESPALIER_DEVICE(std::int64_t p, std::int64_t e) { gradient[p * size + e] *= factor * prior[p]; });
}

#define ESPALIER_INSTANTIATE(T)                                                                              \
  template void elu<T>(const Space&, MatrixView<T, Space>);                                                  \
  template void elu_backward<T>(const Space&, ConstMatrixView<T, Space>, T, MatrixView<T, Space>,            \
                                Matrix<T, Space>*);                                                          \
  template void dropout_of_pairs<T>(const Space&, const KeyedStream&, double, const PairedRows<T, Space>&,   \
                                    Matrix<T, Space>&);                                                      \
  template void add_rows<T>(const Space&, ConstMatrixView<T, Space>, MatrixView<T, Space>);                  \
  template void place_columns<T>(const Space&, ConstMatrixView<T, Space>, std::int64_t,                      \
                                 MatrixView<T, Space>);                                                      \
  template void add_columns<T>(const Space&, ConstMatrixView<T, Space>, std::int64_t, MatrixView<T, Space>); \
  template void take_larger<T>(const Space&, ConstMatrixView<T, Space>, int, MatrixView<T, Space>,           \
                               Array<Space, std::int32_t>&);                                                 \
  template void add_where_larger<T>(const Space&, ConstMatrixView<T, Space>, int,                            \
                                    const Array<Space, std::int32_t>&, MatrixView<T, Space>);                \
  template void head_scores<T>(const Space&, ConstMatrixView<T, Space>, const Matrix<T, Space>&,             \
                               MatrixView<T, Space>);                                                        \
  template void average_heads<T>(const Space&, const Matrix<T, Space>&, const Matrix<T, Space>&,             \
                                 MatrixView<T, Space>);                                                      \
  template void average_heads_backward<T>(const Space&, ConstMatrixView<T, Space>, Matrix<T, Space>&);       \
  template void entry_softmax_backward<T>(const Space&, const BlockView<Space>&, SoftmaxOver,                \
                                          const Matrix<T, Space>&, const Matrix<T, Space>&, double,          \
                                          Matrix<T, Space>&);                                                \
  template void score_vectors<T>(const Space&, ConstMatrixView<T, Space>, ConstMatrixView<T, Space>,         \
                                 MatrixView<T, Space>);                                                      \
  template void gelu<T>(const Space&, const Matrix<T, Space>&, Matrix<T, Space>&);                           \
  template void gelu_backward<T>(const Space&, const Matrix<T, Space>&, Matrix<T, Space>&);                  \
  template void scale_matrices<T>(const Space&, const Matrix<T, Space>&, const Matrix<T, Space>&, T,         \
                                  Matrix<T, Space>&);                                                        \
  template void scale_matrices_backward<T>(const Space&, const Matrix<T, Space>&, const Matrix<T, Space>&,   \
                                           T, Matrix<T, Space>&, Matrix<T, Space>&);                         \
  template void add_own_rows<T>(const Space&, const Matrix<T, Space>&, ConstMatrixView<T, Space>,            \
                                MatrixView<T, Space>);                                                       \
  template void product_of_own_rows<T>(const Space&, ConstMatrixView<T, Space>, ConstMatrixView<T, Space>,   \
                                       Matrix<T, Space>&);                                                   \
  template void add_mixed_rows<T>(const Space&, const Matrix<T, Space>&, std::int64_t,                       \
                                  ConstMatrixView<T, Space>, ConstMatrixView<T, Space>,                      \
                                  MatrixView<T, Space>);                                                     \
  template void mixed_rows_backward<T>(const Space&, const Matrix<T, Space>&, std::int64_t,                  \
                                       ConstMatrixView<T, Space>, ConstMatrixView<T, Space>,                 \
                                       ConstMatrixView<T, Space>, MatrixView<T, Space>, Matrix<T, Space>&);  \
  template void add_past_gate<T>(const Space&, const Matrix<T, Space>&, std::int64_t,                        \
                                 ConstMatrixView<T, Space>, MatrixView<T, Space>);
ESPALIER_FOR_EACH_NUMBER(ESPALIER_INSTANTIATE)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier

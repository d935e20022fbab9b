#include "edge_softmax_rules.hpp"

#include "edge_terms.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/device_column_sums.hpp"

namespace espalier {

namespace {

/// Where an entry's relation and numbers are.
struct EntryPlaces {
  const std::int64_t* indptr;
  const std::uint8_t* relations;
  std::int64_t rows;
  bool with_own;

  EntryPlaces(const BlockView<Cuda>& block, EntryNumbers form)
      : indptr(block.indptr),
        relations(block.relations),
        rows(block.rows),
        with_own(form == EntryNumbers::kWithOwn) {}
  __device__ std::int64_t relation(std::int64_t entry) const {
    return relations == nullptr ? 0 : relations[indptr[0] + entry];
  }
  __device__ std::int64_t numbers_at(std::int64_t entry) const {
    return with_own ? entry + segment_of(indptr, rows, indptr[0] + entry) : entry;
  }
};

}  // namespace

template <class T>
void add_edge_terms(const Cuda& cuda, const BlockView<Cuda>& block, const Matrix<T, Cuda>& u,
                    EntryNumbers form, Matrix<T, Cuda>& scores) {
  const auto edges = block.edges;
  check_edges(edges, u.columns);
  const EntryPlaces places(block, form);
  const std::int64_t heads = scores.columns;
  const T* const vectors = u.data.data();
  T* const to = scores.data.data();
  for_each_in_rows(cuda, "add_edge_terms", edges.count, heads,
                   [=] __device__(std::int64_t k, std::int64_t h) {
                     const std::int64_t entry = edges.entries[k];
                     const T* const vector = vectors + (places.relation(entry) * heads + h) * edges.width;
                     const float* const features = edges.rows + k * edges.width;
                     T sum = 0;
                     for (std::int64_t j = 0; j < edges.width; ++j)
                       sum += static_cast<T>(features[j]) * vector[j];
                     to[places.numbers_at(entry) * heads + h] += sum;
                   });
}

template <class T>
void edge_terms_backward(const Cuda& cuda, const BlockView<Cuda>& block, const Matrix<T, Cuda>& dscores,
                         EntryNumbers form, Matrix<T, Cuda>& du) {
  const auto edges = block.edges;
  const EntryPlaces places(block, form);
  const std::int64_t heads = dscores.columns, width = edges.width;
  if (edges.count == 0) return fill_zero(cuda, du.data);
  const T* const by = dscores.data.data();
  T* const out = du.data.data();
  sum_over_rows(
      cuda, edges.count, du.rows * width,
      [=] __device__(std::int64_t k, std::int64_t c) {
        const std::int64_t entry = edges.entries[k], vector = c / width, h = vector % heads;
        if (places.relation(entry) != vector / heads) return 0.0;
        return static_cast<double>(by[places.numbers_at(entry) * heads + h]) *
               static_cast<double>(edges.rows[k * width + c % width]);
      },
      [=] __device__(std::int64_t c, double sum) { out[c] = static_cast<T>(sum); });
}

ESPALIER_INSTANTIATE_EDGE_TERMS(float, Cuda)

template <class T>
void score_vectors_backward(const Cuda& cuda, ConstMatrixView<T, Cuda> w, ConstMatrixView<T, Cuda> a,
                            ConstMatrixView<T, Cuda> du, MatrixView<T, Cuda> dw, MatrixView<T, Cuda> da) {
  const std::int64_t in = du.columns;
  for_each_in_rows(cuda, "score_vectors_backward", da.rows, da.columns,
                   [=] __device__(std::int64_t p, std::int64_t c) {
                     T sum = 0;
                     for (std::int64_t i = 0; i < in; ++i) {
                       sum += du(p, i) * w(p * in + i, c);
                       dw(p * in + i, c) += du(p, i) * a(p, c);
                     }
                     da(p, c) = sum;
                   });
}

template void score_vectors_backward<float>(const Cuda&, ConstMatrixView<float, Cuda>,
                                            ConstMatrixView<float, Cuda>, ConstMatrixView<float, Cuda>,
                                            MatrixView<float, Cuda>, MatrixView<float, Cuda>);

}  // namespace espalier

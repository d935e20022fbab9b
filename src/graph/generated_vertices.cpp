// What vertices and edges of a generated graph have, each from random words of its own: classes,
// labels, features, splits.
#include "write_generated.hpp"

#include <cmath>

#include "espalier/base/error.hpp"
#include "espalier/base/half.hpp"
#include "espalier/graph/graph_file.hpp"
#include "feature_rows.hpp"

namespace espalier {

namespace {

// Layers of the feature stream, | type << 16, and kEdge | relation << 16.
constexpr std::uint64_t kNoise = 0, kCentroid = 1, kEdge = 2;

// Approximately normal, mean 0, deviation 1: the sum of a word's four 16-bit parts (Irwin-Hall).
// Integer arithmetic and one product, so the same bits on every machine, which no library's log and
// cos promise.
double normal_of(std::uint64_t word) {
  const auto sum = (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48);
  constexpr double kMean = 2 * 65535.0;
  constexpr double kDeviation = 37837.22735;  // sqrt(4 (65536^2 - 1) / 12)
  return (static_cast<double>(sum) - kMean) / kDeviation;
}

// Calls use(k, normal) for k in [0, columns).
template <class Use>
void for_each_normal(const FileStream& stream, std::int64_t columns, Use use) {
  for (std::int64_t k = 0; k < columns; k += 4) {
    const auto block = file_block(stream, static_cast<std::uint64_t>(k / 4));
    for (std::int64_t i = 0; i < 4 && k + i < columns; ++i) use(k + i, normal_of(block.v[i]));
  }
}

FileStream feature_stream(std::uint64_t seed, std::uint64_t layer, int type, std::int64_t row) {
  FileStream stream{seed, FilePurpose::kGenerateFeatures};
  stream.layer = layer | static_cast<std::uint64_t>(type) << 16;
  stream.row = static_cast<std::uint64_t>(row);
  return stream;
}

Matrix<double> make_centroids(const VertexOptions& options, int type) {
  constexpr double kDistance = 1.7;
  Matrix<double> centroids(options.classes, options.features);
  const double scale = kDistance / std::sqrt(2.0 * static_cast<double>(options.features));
  for (std::int64_t c = 0; c < options.classes; ++c)
    for_each_normal(feature_stream(options.seed, kCentroid, type, c), options.features,
                    [&](std::int64_t k, double normal) { centroids(c, k) = scale * normal; });
  return centroids;
}

}  // namespace

void check_vertex_options(const VertexOptions& options) {
  if (options.features < 0 || options.features > kMostFeatures)
    usage_error("--features {}: give a number from 0 to {}", options.features, kMostFeatures);
  if (options.labels != 0 && (options.labels < 2 || options.labels > kMostClasses))
    usage_error("--labels {}: give a number from 2 to {}, or 0 for one class per vertex", options.labels,
                kMostClasses);
  if (options.edge_features < 0 || options.edge_features > kMostFeatures)
    usage_error("--edge-features {}: give a number from 0 to {}", options.edge_features, kMostFeatures);
  if (options.classes < 1 || options.classes > kMostClasses)
    usage_error("--classes {}: give a number from 1 to {}", options.classes, kMostClasses);
}

Buffer<std::int32_t> generate_labels(const RowRange& range, const ClassOf& class_of) {
  Buffer<std::int32_t> labels(range.size());
  for (std::int64_t i = 0; i < range.size(); ++i)
    labels[i] = static_cast<std::int32_t>(class_of(range.begin + i));
  return labels;
}

namespace {

// Layers of the label stream; layer 0: R-MAT's classes.
constexpr std::uint64_t kImplied = 1, kOwn = 2;

std::uint8_t draw_label(std::uint64_t seed, std::int64_t label, std::int64_t class_of_vertex,
                        std::int64_t vertex) {
  const auto draw = [&](std::uint64_t layer, std::int64_t row, std::uint64_t bound) {
    FileStream stream{seed, FilePurpose::kGenerateLabels};
    stream.layer = layer;
    stream.row = static_cast<std::uint64_t>(row);
    return file_below(stream, static_cast<std::uint64_t>(label), bound);
  };
  const auto twentieth = draw(kOwn, vertex, 20);
  if (twentieth == 0) return kUnknownLabel;
  const auto coin = draw(kImplied, class_of_vertex, 2);
  return static_cast<std::uint8_t>(twentieth <= 2 ? 1 - coin : coin);
}

}  // namespace

Matrix<std::uint8_t> generate_several_labels(const RowRange& range, std::span<const std::int32_t> classes,
                                             const VertexOptions& options) {
  Matrix<std::uint8_t> labels(range.size(), options.labels);
  for (std::int64_t i = 0; i < labels.rows; ++i)
    for (std::int64_t k = 0; k < labels.columns; ++k)
      labels(i, k) = draw_label(options.seed, k, classes[i], range.begin + i);
  return labels;
}

template <class T>
Matrix<T> generate_features(const RowRange& range, std::span<const std::int32_t> labels,
                            const VertexOptions& options, int type) {
  const auto centroids = make_centroids(options, type);
  Matrix<T> features(range.size(), options.features);
  for (std::int64_t i = 0; i < range.size(); ++i) {
    const auto* centroid = centroids.row(labels[i]);
    auto* row = features.row(i);
    for_each_normal(feature_stream(options.seed, kNoise, type, range.begin + i), options.features,
                    [&](std::int64_t k, double normal) { store_rounded(centroid[k] + normal, row[k]); });
  }
  return features;
}

template Matrix<float> generate_features(const RowRange&, std::span<const std::int32_t>, const VertexOptions&,
                                         int);
template Matrix<Half> generate_features(const RowRange&, std::span<const std::int32_t>, const VertexOptions&,
                                        int);

template <class T>
void generate_edge_features(std::uint64_t seed, int relation, std::int64_t row, std::int64_t column,
                            bool one_class, std::span<T> features) {
  auto stream = feature_stream(seed, kEdge, relation, row);
  stream.batch = static_cast<std::uint64_t>(column);
  for_each_normal(stream, std::ssize(features), [&](std::int64_t k, double normal) {
    store_rounded(k > 0 ? normal : one_class ? normal + 1 : normal - 1, features[k]);
  });
}

template void generate_edge_features(std::uint64_t, int, std::int64_t, std::int64_t, bool, std::span<float>);
template void generate_edge_features(std::uint64_t, int, std::int64_t, std::int64_t, bool, std::span<Half>);

std::array<Buffer<std::int64_t>, 3> generate_splits(const RowRange& range, std::uint64_t seed) {
  std::array<Buffer<std::int64_t>, 3> splits;
  for (auto v = range.begin; v < range.end; ++v) {
    FileStream stream{seed, FilePurpose::kGenerateSplit};
    stream.row = static_cast<std::uint64_t>(v);
    const auto tenth = file_below(stream, 0, 10);
    splits[tenth < 6 ? 0 : tenth < 8 ? 1 : 2].push_back(v);
  }
  return splits;
}

}  // namespace espalier

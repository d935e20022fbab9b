// What a described file holds, read by one rank: rows of features, whole numbers, ids, and a number
// for each edge. Every function throws UserError(kInput) that names the file and the place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "described_graph.hpp"
#include "espalier/file/csv.hpp"
#include "feature_rows.hpp"

namespace espalier {

/// `texts`: may it hold texts? The error of one that cannot be opened begins with who names it.
std::unique_ptr<NpyArray> open_array(const DescribedFile& file, bool texts = false);
/// How many rows an array has, or lines a text.
std::int64_t count_rows(const DescribedFile& file, bool texts = false);

/// A row for each of so many `things`; null where there is no file.
std::unique_ptr<FeatureRows> open_rows(const DescribedFile& file, std::int64_t count,
                                       const std::string& things);
/// Whole numbers, [rows, columns].
Matrix<std::int64_t> read_whole_numbers(const DescribedFile& file);

/// What vertices are called, each by another id.
struct VertexIds {
  bool given = false;    ///< else these are their numbers
  bool numbers = false;  ///< a text whose lines are all whole numbers has numbers
  Buffer<std::int64_t> of_numbers = {};
  std::vector<std::string> of_texts = {};
};
VertexIds read_vertex_ids(const DescribedFile& file, std::int64_t count, const std::string& things);

/// A number for each edge, in their order.
class EdgeColumn {
 public:
  explicit EdgeColumn(const DescribedFile& file);
  /// The next ones: so many, or fewer where the file ends.
  const std::vector<float>& next_weights(std::size_t count, std::int64_t& vanished);
  const std::vector<std::int64_t>& next_times(std::size_t count);
  /// After the last of so many edges of `by`: throws UserError where they are more or fewer.
  void finish(std::int64_t edges, const std::string& by);

 private:
  template <class T, class Read>
  void fill(std::vector<T>& values, std::size_t count, Read read);
  bool has_next();
  std::string place() const;

  DescribedFile file_;
  std::unique_ptr<NpyArray> array_;
  std::optional<CsvReader> csv_;
  std::int64_t read_ = 0, columns_ = 1;  // lines; fields of each
  std::vector<double> row_;
  std::vector<float> weights_;
  std::vector<std::int64_t> times_;
};

}  // namespace espalier

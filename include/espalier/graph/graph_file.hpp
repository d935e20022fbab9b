// The graph file (HDF5, design section 7), read in parallel by row ranges.
//
//   /                 attributes format = "espalier-graph", version = 1; optional: name, source, directed
//   /graph/indptr     int64 [n+1]
//   /graph/indices    int32 or int64 [m]      row v lists the sources of edges into v, ascending
//   /graph/weights    float32 [m]             optional
//   /nodes/features   float32 or float16 [n, f]
//   /nodes/labels     int32 [n] or [n, 1], classes from 0, -1 = none; or uint8 [n, C] for multi-label; attribute classes
//                     (optional)
//   /split/train, /split/valid, /split/test    int64, ascending ids
//
// Numbers of other widths are converted when they are read. Features and weights may be integers or truth values: each
// becomes the nearest float32, as numpy's astype makes it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/half.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

struct GraphInfo {
  std::string name;
  std::string source;
  bool directed = false;
  std::int64_t nodes = 0;
  std::int64_t edges = 0;     ///< entries of the adjacency matrix
  std::int64_t features = 0;  ///< f; 0 when the file has none
  std::int64_t classes = 0;   ///< largest label + 1, or the columns of multi-label
  bool weighted = false;
  bool wide_indices = false;   ///< /graph/indices is int64
  bool half_features = false;  ///< /nodes/features is float16
  bool has_labels = false;     ///< /nodes/labels is there; with classes = 0 all of them are -1
  bool multi_label = false;
  std::int64_t train = 0, valid = 0, test = 0;  ///< sizes of the splits
};

enum class Split { kTrain, kValid, kTest };
inline constexpr std::array<const char*, 3> kSplitNames = {"train", "valid", "test"};

struct OpenGraphFile;  // src/graph/open_graph_file.hpp

class GraphFile {
 public:
  /// Collective. Opens and checks what can be checked without reading the big arrays: format, version,
  /// shapes, types. Throws UserError(kInput) on every rank with path and reason. `comm` must outlive the
  /// file.
  GraphFile(const Communicator& comm, const std::string& path);
  /// Collective.
  ~GraphFile();
  GraphFile(const GraphFile&) = delete;
  GraphFile& operator=(const GraphFile&) = delete;

  const GraphInfo& info() const;
  const std::string& path() const;

  /// Collective; every rank its own range (may be empty). Rows [begin, end) of A with global column ids, and
  /// weights where the file has them. Checks: indptr ascending, columns in [0, n) and strictly ascending in a
  /// row, weights finite and >= 0. Index is int32_t (throws if n >= 2^31) or int64_t; the file's own width
  /// does not matter.
  template <class Index>
  Csr<Index> read_rows(std::int64_t begin, std::int64_t end) const;

  /// Collective. Rows [begin, end) of H as stored values converted to T (float or Half). Checks: finite.
  template <class T>
  Matrix<T> read_features(std::int64_t begin, std::int64_t end) const;

  /// Collective. Labels of [begin, end); -1 = none. Only for single-label files.
  Buffer<std::int32_t> read_labels(std::int64_t begin, std::int64_t end) const;

  /// Collective. Labels of [begin, end) of a multi-label file: entry (v, k) is 1 where vertex v has label k.
  /// Checks: 0 or 1.
  Matrix<std::uint8_t> read_multi_labels(std::int64_t begin, std::int64_t end) const;

  /// Collective. A whole split on every rank, ascending. Checks: ascending, in [0, n). An absent split is
  /// empty.
  Buffer<std::int64_t> read_split(Split split) const;

 private:
  std::unique_ptr<OpenGraphFile> open_;
};

/// Collective. Checks over a whole file: splits do not overlap and, where the file has labels, name labelled
/// vertices only. Reads labels in row ranges. Throws UserError(kInput) on every rank.
void check_splits(const Communicator& comm, const GraphFile& file);

}  // namespace espalier

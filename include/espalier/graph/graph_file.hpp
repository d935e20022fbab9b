// The graph file (HDF5, design section 7), read in parallel by row ranges.
//
//   /                 attributes format = "espalier-graph", version = 1; optional: name, source,
//                     directed
//   /graph/indptr     int64 [n+1]
//   /graph/indices    int32 or int64 [m]      row v lists the sources of edges into v, ascending
//   /graph/weights    float32 [m]             optional
//   /nodes/features   float32 or float16 [n, f]
//   /nodes/labels     int32 [n] or [n, 1], classes from 0, -1 = none; or uint8 [n, C] for
//                     multi-label, 0 or 1, 255 = unknown; attribute classes (optional)
//   /split/train, /split/valid, /split/test    int64, ascending ids
//
// Numbers of other widths are converted when they are read. Features and weights may be integers or
// truth values: each becomes the nearest float32, as numpy's astype makes it.
// Attributes `digest` say what the file and each data set hold (content_digest.hpp); with
// Verify::kYes the reads of a data set are checked when all of it has been read, by all ranks
// together: UserError(kInput) names the data set that holds something else.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/half.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/graph/content_digest.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

struct GraphInfo {
  std::string name;
  std::string source;
  std::optional<bool> directed;  ///< what the file claims, if it does
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
  ContentDigests content;  ///< those that stand in the file; GraphFile::content() knows more when
                           ///< it was read
};

/// Of several labels one that nobody knows; a file of signed integers may also say -1.
inline constexpr std::uint8_t kUnknownLabel = 255;

enum class Split { kTrain, kValid, kTest };
inline constexpr std::array<const char*, 3> kSplitNames = {"train", "valid", "test"};

/// What happens with the digests that stand in a file (content_digest.hpp): reads are checked
/// against them; or they are not, and nothing is hashed; or what is read is hashed, as if none
/// stood there.
enum class Verify { kYes, kNo, kRenew };

struct OpenGraphFile;  // src/graph/open_graph_file.hpp

class GraphFile {
 public:
  /// Collective. Opens and checks what can be checked without reading the big arrays: format,
  /// version, shapes, types. Throws UserError(kInput) on every rank with path and reason. `comm`
  /// must outlive the file.
  GraphFile(const Communicator& comm, const std::string& path, Verify verify = Verify::kYes);
  /// Collective.
  ~GraphFile();
  GraphFile(const GraphFile&) = delete;
  GraphFile& operator=(const GraphFile&) = delete;

  const GraphInfo& info() const;
  const std::string& path() const;

  /// What is known of the contents: of a data set that was read whole, over all ranks, the digest
  /// of what was read; of another the digest that stands in the file. With Verify::kNo only those
  /// that stand there.
  ContentDigests content() const;
  /// Does a digest of the whole file stand in it?
  bool has_digest() const;

  /// Collective; every rank its own range (may be empty). Rows [begin, end) of A with global column
  /// ids, and weights where the file has them. Checks: indptr ascending, columns in [0, n) and
  /// strictly ascending in a row, weights finite and >= 0. Index is int32_t (throws if n >= 2^31)
  /// or int64_t; the file's own width does not matter.
  template <class Index>
  Csr<Index> read_rows(std::int64_t begin, std::int64_t end) const;

  /// Collective. Rows [begin, end) of H as stored values converted to T (float or Half).
  /// Checks: finite.
  template <class T>
  Matrix<T> read_features(std::int64_t begin, std::int64_t end) const;

  /// Collective. Labels of [begin, end); -1 = none. Only for single-label files.
  Buffer<std::int32_t> read_labels(std::int64_t begin, std::int64_t end) const;

  /// Collective. Labels of [begin, end) of a multi-label file: entry (v, k) is 1 where vertex v has
  /// label k, 0 where it has not, kUnknownLabel where that is not known. Checks: one of these.
  Matrix<std::uint8_t> read_multi_labels(std::int64_t begin, std::int64_t end) const;

  /// Collective. A whole split on every rank, ascending. Checks: ascending, in [0, n). An absent
  /// split is empty.
  Buffer<std::int64_t> read_split(Split split) const;

 private:
  std::unique_ptr<OpenGraphFile> open_;
};

/// Collective. Checks over a whole file: splits do not overlap and, where the file has labels, name
/// labelled vertices only. Reads labels in row ranges. Throws UserError(kInput) on every rank.
void check_splits(const Communicator& comm, const GraphFile& file);

/// Collective. Reads all of a file, in parts of bounded size, and forgets it: every check of a read
/// is made, and content() knows everything.
void read_everything(const Communicator& comm, const GraphFile& file);

}  // namespace espalier

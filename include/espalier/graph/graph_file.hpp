// The graph file (HDF5), read in parallel by row ranges. docs/graph-file.md says what is in one,
// Column what that is called here.
//
// Features and weights may be integers or truth values: each becomes the nearest float32, as
// numpy's astype makes it.
// Attributes `digest` say what the file and each data set hold (content_digest.hpp); with
// Verify::kYes the reads of a data set are checked when all of it has been read, by all ranks
// together: UserError(kInput) names the data set that holds something else.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/half.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/graph/link_file.hpp"
#include "espalier/graph/schema.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

// What the columns of features are called and what made their numbers, as graph files, weights and
// checkpoints hold it beside the place of the features (docs/graph-file.md):
//
//     .../feature_names    fixed-length text [f]   UTF-8, no two alike: "age"; "country=FR" of a
//                          column that is 1 where the country is FR and 0 elsewhere
//     .../feature_scales   float64 [f, 5]          optional, with names only: fill, mean, rest,
//                          largest and deviation of each column. A cell x without a number became
//                          fill (nan: there was to be none), then x became ((x - mean) - rest) /
//                          largest / deviation, in float64; 0 where the deviation is 0. Of a column
//                          that is as it was: nan or its fill, then 0, 0, 1, 1

namespace hdf5 {
class Handle;
}

inline constexpr std::int64_t kScaleParts = 5;
inline constexpr const char *kNamesOfColumns = "feature_names", *kScalesOfColumns = "feature_scales";

struct FeatureColumns {
  std::vector<std::string> names;   ///< [f]
  std::vector<double> scales = {};  ///< [f, kScaleParts], or none
};

/// Of a file, by the group: "/nodes/TYPE/", "/edges/RELATION/"; "/nodes/", "/edges/" of a graph
/// without types. Those without names are not there.
using ColumnsByGroup = std::map<std::string, FeatureColumns>;

/// A name that two columns have; null: there is none.
const std::string* name_of_two(const FeatureColumns& columns);

/// How the columns differ, in words, with both lists: "column 3 is country=GB there and country=UK
/// here; there: ..; here: ..". Empty: they are called alike, in one order.
std::string difference_of_names(const FeatureColumns& there, const FeatureColumns& here);
/// To the bit; none are others than some.
bool have_same_scales(const FeatureColumns& there, const FeatureColumns& here);

/// Not collective. To and from a file that is no graph file; false where that fails.
bool write_columns(const hdf5::Handle& file, const ColumnsByGroup& columns);
bool read_columns(const hdf5::Handle& file, ColumnsByGroup& columns);
/// Is a data set of such a file, named without its first slash, one of those?
bool is_of_columns(const std::string& dataset);

// What a graph file holds beside its matrix (graph_file.hpp has the format): properties of the
// vertices of a type, of the edges of a relation and of links. Each is a line of one table,
// src/graph/column_table.cpp, which says where it lies, of what it is and what it holds; opening,
// checks of shapes, digests, reading, writing and `info` go over that.

enum class Column {
  // Of the vertices of a type. Dense features, or those of a group in their place.
  kFeatures,
  kSparseBegins,
  kSparseColumns,
  kSparseValues,
  kLabels,
  kIds,
  kTime,
  kClassNames,
  kFeatureNames,
  kFeatureScales,
  // Of a split of a type, which may have a name.
  kTrain,
  kValid,
  kTest,
  // Of the edges of a relation.
  kEdgeFeatures,
  kEdgeTime,
  kEdgeFeatureNames,
  kEdgeFeatureScales,
  // Of all links.
  kLinkNames,
  kGraphRelations,
  // Of the links of a split, train, valid and test being 0, 1 and 2.
  kHead,
  kTail,
  kLinkRelation,
  kNegativeHeads,
  kNegativeTails,
  kNonLinks,
};

/// What the user's own ids are, where a file has some.
enum class IdKind { kNone, kTexts, kNumbers };

/// How many vertices are in each part of a split.
struct SplitSizes {
  std::int64_t train = 0, valid = 0, test = 0;
};

/// One of the splits of a type.
struct SplitInfo : SplitSizes {
  std::string name;  ///< empty: that of /split/train
};

/// What a file knows of the vertices of one type. As SplitSizes those of the split that counts.
struct VertexInfo : SplitSizes {
  std::int64_t features = 0;         ///< f; 0 when there are none
  std::int64_t classes = 0;          ///< largest label + 1, or the columns of multi-label
  bool half_features = false;        ///< features are float16
  std::int64_t pairs = 0;            ///< where features are sparse, how many a row has at most, 1
                                     ///< or more; 0: they are not
  std::int64_t feature_entries = 0;  ///< numbers in sparse features
  bool has_labels = false;           ///< labels are there; with classes = 0 all of them are -1
  bool multi_label = false;
  IdKind ids = IdKind::kNone;
  std::int64_t class_names = 0;   ///< how many classes have a name: all of them, or 0
  std::vector<SplitInfo> splits;  ///< those that are there, the one without a name first
  int split = -1;                 ///< which one counts; -1: none is there, or several, and
                                  ///< none was named

  /// The name of the one that counts; empty where it has none.
  std::string split_name() const { return split < 0 ? "" : splits[static_cast<std::size_t>(split)].name; }
  /// The names of those that have one: "first, second".
  std::string split_names() const;
};

/// What a file knows of the edges of one relation.
struct EdgeInfo {
  std::int64_t entries = 0;   ///< rows of the features; 0 when there are none
  std::int64_t features = 0;  ///< f; 0 when there are none
  bool half = false;          ///< they are float16

  bool has() const { return features > 0; }
};

/// As a VertexInfo it is that of the target type.
struct GraphInfo : VertexInfo {
  std::string name;
  std::string source;
  std::optional<bool> directed;  ///< what the file claims, if it does
  std::int64_t nodes = 0;
  std::int64_t edges = 0;    ///< entries of the adjacency matrix
  std::int64_t columns = 0;  ///< of the matrix that is read: the schema's, or `nodes` where
                             ///< relations are merged
  bool weighted = false;
  bool wide_indices = false;  ///< /graph/indices is int64
  bool typed = false;         ///< version 2
  Schema schema;
  std::vector<VertexInfo> types;         ///< of each type of the schema
  std::vector<EdgeInfo> edge_features;   ///< of each relation of the schema; where several
                                         ///< relations are merged no edge has any, as an entry is
                                         ///< of several
  std::vector<std::int64_t> edge_times;  ///< of each relation in the file, how many edges have a
                                         ///< time; 0: none
  ColumnsByGroup feature_columns;        ///< where they have names, of edges in any view
  LinkInfo links;
  int target = 0;          ///< the type whose labels and splits count; -1: several
                           ///< have some, and none was named
  ContentDigests content;  ///< those that stand in the file; GraphFile::content()
                           ///< knows more when it was read
};

/// What the entries of a column are read as: as they are stored, or the next wider that there is.
enum class Stored { kNothing, kFloat, kHalf, kDouble, kByte, kInt32, kInt64, kTexts };
struct ColumnInfo {
  Stored stored = Stored::kNothing;
  std::int64_t rows = 0, columns = 0;  ///< of texts the letters of the longest
  std::string unit = {};               ///< of times, where the file says it: "days"

  bool exists() const { return stored != Stored::kNothing; }
  /// Calls use(T()), where there are some; texts are std::string.
  template <class Use>
  void visit(Use use) const {
    if (stored == Stored::kFloat) use(0.0f);
    if (stored == Stored::kHalf) use(Half());
    if (stored == Stored::kDouble) use(0.0);
    if (stored == Stored::kByte) use(std::uint8_t());
    if (stored == Stored::kInt32) use(std::int32_t());
    if (stored == Stored::kInt64) use(std::int64_t());
    if (stored == Stored::kTexts) use(std::string());
  }
};

/// Of several labels one that nobody knows; a file of signed integers may also say -1.
inline constexpr std::uint8_t kUnknownLabel = 255;

enum class Split { kTrain, kValid, kTest };
inline constexpr std::array<const char*, 3> kSplitNames = {"train", "valid", "test"};

/// Of the name of a split.
inline constexpr const char* kSplitNameRule =
    "its name holds letters, digits, '_', '-' and '.', and is not train, valid or test";
/// Does it?
bool is_split_name(const std::string& name);

/// What happens with the digests that stand in a file (content_digest.hpp): reads are checked
/// against them; or they are not, and nothing is hashed; or what is read is hashed, as if none
/// stood there.
enum class Verify { kYes, kNo, kRenew };

/// How a file is looked at.
struct GraphView {
  Verify verify = Verify::kYes;
  std::string target = {};     ///< the target type; empty: the only one with labels
  std::string target_by = {};  ///< who says so, where it is not the user: the weights' file
  std::string split = {};      ///< the split that counts; empty: that of /split/train, or
                               ///< the only one
  bool apart = false;          ///< are the columns of a typed graph (relation, source)? Else
                               ///< vertices: types are ignored, edges of several relations between
                               ///< two vertices are one, their weights added
  bool repeats = false;        ///< may the columns of a row, or of a segment, be in any order, and
                               ///< repeated? A reader of such rows sorts and merges them

  GraphView(Verify verify_ = Verify::kYes) : verify(verify_) {}
};

namespace hdf5 {
class WrittenBytes;
}
struct OpenGraphFile;  // src/graph/open_graph_file.hpp

class GraphFile {
 public:
  /// Collective. Opens and checks what can be checked without reading the big arrays: format,
  /// version, shapes, types. Throws UserError(kInput) on every rank with path and reason. `comm`
  /// must outlive the file.
  GraphFile(const Communicator& comm, const std::string& path, const GraphView& view = {});
  /// Collective. The same of a graph that every rank has in its own memory; `name`: for messages.
  GraphFile(const Communicator& comm, const std::string& name, hdf5::WrittenBytes& bytes,
            const GraphView& view);
  /// Collective.
  ~GraphFile();
  GraphFile(const GraphFile&) = delete;
  GraphFile& operator=(const GraphFile&) = delete;

  const GraphInfo& info() const;
  const GraphView& view() const;
  const std::string& path() const;

  /// What is known of the contents: of a data set that was read whole, over all ranks, the digest
  /// of what was read; of another the digest that stands in the file. With Verify::kNo only those
  /// that stand there.
  ContentDigests content() const;
  /// Does a digest of the whole file stand in it?
  bool has_digest() const;
  /// Collective. Names of data sets that are none of those above.
  std::vector<std::string> other_datasets() const;

  /// Collective; every rank its own range (may be empty). Rows [begin, end) of A with global column
  /// ids, and weights where the file has them. Checks: indptr ascending, sources in [0, n), or in
  /// their type, strictly ascending in a row or segment, segments as they should be, weights finite
  /// and >= 0. Index is int32_t (throws if there are 2^31 columns) or int64_t; the file's own width
  /// does not matter.
  template <class Index>
  Csr<Index> read_rows(std::int64_t begin, std::int64_t end) const;

  /// Collective; every rank its own range (may be empty). How many entries rows [begin, end) have,
  /// and how many entries of each relation they have in all; of a typed graph as if relations were
  /// apart, whatever the view. Checks as read_rows does, but reads no column.
  Buffer<std::int64_t> read_row_sizes(std::int64_t begin, std::int64_t end) const;
  std::vector<std::int64_t> count_entries(std::int64_t begin, std::int64_t end) const;

  /// Collective. Features of the vertices [begin, end), all of one type, as stored values converted
  /// to T (float or Half). Checks: finite. Of sparse features (VertexInfo::pairs) T is float, and
  /// the rows are of pairs (dense/paired_rows.hpp). Checks also: columns ascend in a row.
  template <class T>
  Matrix<T> read_features(std::int64_t begin, std::int64_t end, int type = 0) const;

  /// Features of a type as they lie in the file, if that is as they do in memory: float32 or Half,
  /// little endian, one after another. On every rank alike.
  struct PlainRows {
    std::string name;
    std::int64_t offset = 0, rows = 0;  ///< bytes from the file's beginning
    bool half = false;
  };
  std::optional<PlainRows> plain_features(int type = 0) const;

  /// Of how many types, relations or splits of links there could be such a column.
  int owners(Column column) const;
  /// How it is there.
  ColumnInfo column(Column column, int owner = 0) const;

  /// Collective; every rank its own range (may be empty). Rows [begin, end) of a column of a type
  /// (in which vertices count from 0), a relation (whose entries count by (target, source)) or a
  /// split of links: numbers converted to T (float or Half), integers that are a T. Checks: there
  /// is such a column; numbers are finite, labels classes, vertices of links those of the graph, or
  /// of the types that their relation joins. That edges have a row for each entry is
  /// check_edge_features()'s. For sparse features and splits of vertices there is more below.
  template <class T>
  Matrix<T> read(Column column, int owner, std::int64_t begin, std::int64_t end) const;
  /// The same of texts, or of ids that are numbers by their digits.
  std::vector<std::string> read_texts(Column column, int owner, std::int64_t begin, std::int64_t end) const;

  /// Collective. Labels of [begin, end); -1 = none, as all vertices of other types have. Only where
  /// a vertex has one.
  Buffer<std::int32_t> read_labels(std::int64_t begin, std::int64_t end, int type = kTarget) const;

  /// Collective. Labels of [begin, end) of a multi-label type: entry (v, k) is 1 where vertex v has
  /// label k, 0 where it has not, kUnknownLabel where that is not known, as of all vertices of
  /// other types. Checks: one of these.
  Matrix<std::uint8_t> read_multi_labels(std::int64_t begin, std::int64_t end, int type = kTarget) const;

  /// Collective; every rank its own range (may be empty) of the links of a split. Checks: vertices
  /// of the graph, or of the types that their relation joins; relations below
  /// info().links.relations().
  Links read_links(Split split, std::int64_t begin, std::int64_t end) const;

  /// Collective. A whole split on every rank, ascending ids of vertices. Checks: ascending, in the
  /// type. An absent split is empty. The split that counts, or one of those of a type by its place.
  Buffer<std::int64_t> read_split(Split split, int type = kTarget) const;
  Buffer<std::int64_t> read_split(Split split, int type, std::size_t place) const;

  static constexpr int kTarget = -1;  ///< the target type

 private:
  void describe();

  std::unique_ptr<OpenGraphFile> open_;
};

/// Collective. Checks over a whole file: parts of a split do not overlap and, where the file has
/// labels, name labelled vertices only. Reads labels in row ranges. Throws UserError(kInput) on
/// every rank.
void check_splits(const Communicator& comm, const GraphFile& file);

/// Throws UserError(kInput) where a relation has features for another number of entries than it
/// has: entries[r], counted over all ranks. Of a file with one relation the constructor has done
/// it.
void check_edge_features(const GraphFile& file, std::span<const std::int64_t> entries);

/// Collective. The same, with what it needs for it: where the relations of rows begin.
void check_edge_features(const Communicator& comm, const GraphFile& file);

/// Collective. Reads all of a file, in parts of bounded size, and forgets it: every check of a read
/// is made, that of edge features too where relations are apart, and content() knows everything.
void read_everything(const Communicator& comm, const GraphFile& file);

}  // namespace espalier

// What an open graph file holds, shared by graph_file.cpp (opens), describe_datasets.cpp (checks)
// and graph_file_rows.cpp (reads).
#pragma once

#include <array>
#include <map>
#include <string>

#include "content_check.hpp"
#include "espalier/base/error.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/hdf5.hpp"

namespace espalier {

/// Ends every message about a damaged file.
inline constexpr const char* kWriteAgain =
    "write it again with `espalier import`, `generate` or `prepare`, or correct the program that wrote it "
    "(`espalier help import` shows the format)";

/// Of a name in a file, so that no damage makes names fill the memory.
inline constexpr std::size_t kMostNameLetters = 1024;

/// What to do where a digest does not fit.
inline constexpr const char* kDigestAgain =
    "it is damaged, or another program changed it; after a change that was meant, `espalier digest FILE "
    "--write` "
    "writes new digests";

/// Those of sparse features.
struct OpenSparse {
  hdf5::Dataset indptr, indices, values;
  bool exists() const { return indptr.exists(); }
};

/// Those that say what columns of features are (feature_columns.hpp).
struct OpenColumns {
  hdf5::Dataset names, scales;
};

/// The data sets of one vertex type.
struct OpenType {
  hdf5::Dataset features, labels, ids, class_names;
  OpenColumns columns = {};
  OpenSparse sparse = {};                                 ///< in place of `features`
  std::vector<std::array<hdf5::Dataset, 3>> splits = {};  ///< as VertexInfo::splits
};

/// The data sets of one relation.
struct OpenRelation {
  hdf5::Dataset features, times;
  OpenColumns columns = {};
  EdgeInfo info = {};  ///< what is in it, in whatever view
};

/// The data sets of the links of one split.
struct OpenLinkSplit {
  hdf5::Dataset head, tail, relation, negative_heads, negative_tails, non_links;

  std::array<const hdf5::Dataset*, 6> all() const {
    return {&head, &tail, &relation, &negative_heads, &negative_tails, &non_links};
  }
};

/// Those below /links.
struct OpenLinks {
  hdf5::Dataset names, graph_relations;
  std::array<OpenLinkSplit, 3> splits;
};

/// The matrix, three data sets of a graph without types, and all else that describes one
/// with types.
inline constexpr std::array<const char*, 12> kMatrixNames = {
    "/graph/indptr",      "/graph/indices",     "/graph/weights",          "/types/name",
    "/types/offset",      "/relations/name",    "/relations/source",       "/relations/target",
    "/relations/inverse", "/graph/segment_ptr", "/graph/segment_relation", "/graph/segment_begin"};

struct OpenGraphFile {
  OpenGraphFile(const Communicator& comm_, std::string path_, GraphView view_)
      : comm(comm_), path(std::move(path_)), view(std::move(view_)) {}

  const Communicator& comm;
  std::string path;
  hdf5::Handle file;
  GraphInfo info;
  GraphView view;
  std::array<hdf5::Dataset, 12> matrix;  ///< as kMatrixNames
  hdf5::Dataset &indptr = matrix[0], &indices = matrix[1], &weights = matrix[2];
  // Of version 2, as all that follow.
  hdf5::Dataset &type_name = matrix[3], &type_offset = matrix[4];
  hdf5::Dataset &relation_name = matrix[5], &relation_source = matrix[6], &relation_target = matrix[7],
                &relation_inverse = matrix[8];
  hdf5::Dataset &segment_ptr = matrix[9], &segment_relation = matrix[10], &segment_begin = matrix[11];
  std::vector<OpenType> types = {};          ///< [types]
  std::vector<OpenRelation> relations = {};  ///< [relations]
  OpenLinks links = {};
  bool has_digest = false;
  bool in_memory = false;
  std::map<std::string, ContentCheck> contents = {};  ///< of the data sets that exist, by name

  /// The data sets that exist.
  std::vector<const hdf5::Dataset*> datasets() const {
    std::vector<const hdf5::Dataset*> all;
    for (const auto& dataset : matrix) all.push_back(&dataset);
    for (const auto& type : types) {
      for (const auto* dataset :
           {&type.features, &type.sparse.indptr, &type.sparse.indices, &type.sparse.values, &type.labels,
            &type.ids, &type.class_names, &type.columns.names, &type.columns.scales})
        all.push_back(dataset);
      for (const auto& split : type.splits)
        for (const auto& part : split) all.push_back(&part);
    }
    for (const auto& relation : relations)
      for (const auto* dataset :
           {&relation.features, &relation.times, &relation.columns.names, &relation.columns.scales})
        all.push_back(dataset);
    for (const auto* dataset : {&links.names, &links.graph_relations}) all.push_back(dataset);
    for (const auto& split : links.splits)
      for (const auto* dataset : split.all()) all.push_back(dataset);
    std::erase_if(all, [](const auto* dataset) { return !dataset->exists(); });
    return all;
  }
};

/// Throws UserError(kInput): what is wrong with the file.
template <class... Args>
[[noreturn]] void fail(const OpenGraphFile& h, fmt::format_string<Args...> format, Args&&... args) {
  input_error("graph file {}: {}; {}", h.path, fmt::format(format, std::forward<Args>(args)...), kWriteAgain);
}

inline void check_range(const OpenGraphFile& h, std::int64_t begin, std::int64_t end) {
  ESPALIER_CHECK(0 <= begin && begin <= end && end <= h.info.nodes, "rows [{}, {}) of {}", begin, end,
                 h.info.nodes);
}

/// Collective, as all that follow. A list of texts, or of numbers, whole on every rank. Throw
/// UserError(kInput) on every rank.
std::vector<std::string> read_names(OpenGraphFile& h, const hdf5::Dataset& dataset);
Buffer<std::int64_t> read_list(OpenGraphFile& h, const hdf5::Dataset& dataset);

/// The names of the types and relations of a file of version 2, whose data sets are open.
Schema read_schema(OpenGraphFile& h);

/// Rows [begin, end) of sparse features of a type as rows of pairs (dense/paired_rows.hpp). Checks:
/// columns ascend and are those of the features, numbers are finite.
Matrix<float> read_pairs(OpenGraphFile& h, std::size_t type, std::int64_t begin, std::int64_t end);
/// GraphInfo::feature_columns. Checks: no two columns of features are called alike.
void read_feature_columns(OpenGraphFile& h);
/// VertexInfo::pairs of a type, where its features are sparse.
void find_pairs(OpenGraphFile& h, std::size_t type);

/// Check shapes and types, and read no contents; every rank throws UserError(kInput), or none does.
/// The matrix: indptr, indices and weights, which are open.
void describe_graph(OpenGraphFile& h);
/// What the schema is read from, which is open, too.
void describe_schema(OpenGraphFile& h);
/// Open the vertices' data sets type by type, and the edges' relation by relation, when the schema
/// is known.
void describe_types(OpenGraphFile& h);
void describe_relations(OpenGraphFile& h);
/// Opens what is below /links.
void describe_links(OpenGraphFile& h);
/// The relations of links, whose data sets are open.
void read_link_relations(OpenGraphFile& h);

}  // namespace espalier

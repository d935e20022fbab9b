// What an open graph file holds, shared by graph_file.cpp (opens), graph_file_shapes.cpp (checks)
// and those that read.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>

#include "column_table.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/file/hdf5.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// Ends every message about a damaged file.
inline constexpr const char* kWriteAgain =
    "write it again with `espalier import`, `generate` or `prepare`, or correct the program that wrote it "
    "(docs/graph-file.md has the format)";

/// Of a name in a file, so that no damage makes names fill the memory.
inline constexpr std::size_t kMostNameLetters = 1024;

/// What to do where a digest does not fit.
inline constexpr const char* kDigestAgain =
    "it is damaged, or another program changed it; after a change that was meant, `espalier digest FILE "
    "--write` "
    "writes new digests";

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
  std::map<ColumnAt, hdf5::Dataset> columns = {};  ///< all that there could be
  bool has_digest = false;
  bool in_memory = false;
  std::map<std::string, ContentCheck> contents = {};  ///< of the data sets that exist, by name

  /// It exists, or has only a name.
  const hdf5::Dataset& at(Column column, int owner = 0) const { return columns.at({column, owner, {}}); }
  bool has(Column column, int owner = 0) const { return at(column, owner).exists(); }
  const Schema* schema() const { return info.typed ? &info.schema : nullptr; }
  /// The data sets that exist.
  std::vector<const hdf5::Dataset*> datasets() const {
    std::vector<const hdf5::Dataset*> all;
    for (const auto& dataset : matrix) all.push_back(&dataset);
    for (const auto& [at, dataset] : columns) all.push_back(&dataset);
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

/// Collective, as all that follow. Texts [begin, end) of a list; a list of texts, or of numbers,
/// whole on every rank. Throw UserError(kInput) on every rank.
std::vector<std::string> read_texts(OpenGraphFile& h, const hdf5::Dataset& dataset, std::int64_t begin,
                                    std::int64_t end);
std::vector<std::string> read_names(OpenGraphFile& h, const hdf5::Dataset& dataset);
Buffer<std::int64_t> read_list(OpenGraphFile& h, const hdf5::Dataset& dataset);

/// The names of the types and relations of a file of version 2, whose data sets are open.
Schema read_schema(OpenGraphFile& h);

/// Rows [begin, end) of sparse features of a type as rows of pairs (dense/paired_rows.hpp). Checks:
/// columns ascend and are those of the features, numbers are finite.
Matrix<float> read_pairs(OpenGraphFile& h, int type, std::int64_t begin, std::int64_t end);
/// VertexInfo::pairs of a type, where its features are sparse.
void find_pairs(OpenGraphFile& h, int type);

/// How many a column can be of.
int owners_of(const OpenGraphFile& h, Of of);
/// What the edges of a relation have, in whatever view.
EdgeInfo edge_info(const OpenGraphFile& h, int relation);

/// Check shapes and types, and read no contents; every rank throws UserError(kInput), or none does.
/// The matrix: indptr, indices and weights, which are open.
void describe_graph(OpenGraphFile& h);
/// What the schema is read from, which is open, too.
void describe_schema(OpenGraphFile& h);
/// Opens the columns, when the schema is known.
void describe_columns(OpenGraphFile& h);
/// Is there a group /links, and what says it of its links?
void describe_links(OpenGraphFile& h);
/// Its columns, which are open.
void describe_link_columns(OpenGraphFile& h);
/// The relations of links.
void read_link_relations(OpenGraphFile& h);
/// GraphInfo::feature_columns.
void read_feature_columns(OpenGraphFile& h);
/// Throws where a link's relation, entry `place` of the column, is none.
void check_link_relation(const OpenGraphFile& h, const hdf5::Dataset& relations, std::int64_t place,
                         std::int64_t relation);
/// Rows from `begin` on of a column of ends of links, or of what replaces them, are of the graph:
/// are they of the types that their relations join?
void check_link_types(OpenGraphFile& h, const ColumnAt& at, std::int64_t begin,
                      const Matrix<std::int64_t>& vertices);

// Reads of an open graph file that are hashed and checked: the transfer first, and then the local
// check of what arrived, inside agree(), so that one damaged row on one rank is one message
// for all.

/// A check that looks at entries one by one, and so may be given them in pieces: check(piece, place
/// of its first entry). A piece is hashed while it is in cache.
template <class Check>
struct InPieces {
  Check check;
};
template <class Check>
InPieces(Check) -> InPieces<Check>;

// This rank's share of the digest of a data set, and the check of what it read.
template <class T, class Check>
std::uint64_t hash_and_check(std::span<const T> values, std::int64_t first, bool hashes, Check& whole) {
  whole(values);
  return hashes ? content_digest(values, first) : 0;
}
template <class T, class Check>
std::uint64_t hash_and_check(std::span<const T> values, std::int64_t first, bool hashes,
                             InPieces<Check>& entries) {
  constexpr std::size_t kPiece = 2048;
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < values.size(); at += kPiece) {
    const auto piece = values.subspan(at, std::min(kPiece, values.size() - at));
    const auto place = static_cast<std::int64_t>(at);
    entries.check(piece, place);
    if (hashes) sum += content_digest(piece, first + place);
  }
  return sum;
}

// Collective. Counts what this rank read, entries [first, first + entries), towards the digest.
inline void check_content(OpenGraphFile& h, const hdf5::Dataset& dataset, std::int64_t first,
                          std::size_t entries, std::uint64_t share) {
  auto& content = h.contents.at(dataset.name);
  if (content.add(h.comm, first, first + static_cast<std::int64_t>(entries), share)) return;
  input_error(
      "graph file {}: {} does not hold what was written there: its digest is {}, the file says {}; {}",
      h.path, dataset.name, hex(*content.found()), hex(*content.stated()), kDigestAgain);
}

// Collective. Rows of a dataset as T; then `check` on what arrived, by all ranks together. The last
// `overlap` values are counted by another rank towards the digest.
template <class T, class Check>
Buffer<T> read_checked(OpenGraphFile& h, const hdf5::Dataset& dataset, const hdf5::Slab& slab, Check check,
                       std::size_t overlap = 0) {
  Buffer<T> values((slab.end - slab.begin) * slab.columns);
  const bool good = hdf5::read_slab(dataset, hdf5::memory_type<T>(), slab, values.data());
  const bool hashes = h.view.verify != Verify::kNo && !h.contents.at(dataset.name).found();
  const auto first = slab.begin * slab.columns;
  std::uint64_t share = 0;
  agree(h.comm, [&] {
    if (!good)
      fail(h, "cannot read rows {} to {} of {}: {}", slab.begin, slab.end, dataset.name, hdf5::reason());
    share = hash_and_check(std::span<const T>(values), first, hashes && overlap == 0, check);
  });
  if (!hashes) return values;
  const auto entries = values.size() - overlap;
  if (overlap > 0) share = content_digest(std::span<const T>(values.data(), entries), first);
  check_content(h, dataset, first, entries, share);
  return values;
}

// Collective. Where these rows, of so many, begin in another list, of `total` entries, and where
// the last one ends. `says_before`: a message says what stands before what does not ascend.
inline Buffer<std::int64_t> read_starts(OpenGraphFile& h, const hdf5::Dataset& dataset, const RowRange& range,
                                        std::int64_t rows, std::int64_t total, const std::string& other,
                                        bool says_before) {
  const auto& name = dataset.name;
  const auto check = [&](const auto& starts) {
    if (range.begin == 0 && starts[0] != 0) fail(h, "{} starts with {}, not with 0", name, starts[0]);
    if (range.end == rows && starts.back() != total)
      fail(h, "{} ends with {}, but {} has {} entries", name, starts.back(), other, total);
    for (std::size_t i = 0; i < starts.size(); ++i)
      if (starts[i] < 0 || starts[i] > total || (i > 0 && starts[i] < starts[i - 1]))
        fail(h, "{} is not ascending within [0, {}]: entry {} is {}{}", name, total,
             range.begin + static_cast<std::int64_t>(i), starts[i],
             says_before && i > 0 ? fmt::format(" after {}", starts[i - 1]) : "");
  };
  // The entry behind my last row is the first of another rank, but for the very last.
  return read_checked<std::int64_t>(h, dataset, {range.begin, range.end + 1, 1}, check,
                                    range.end < rows || range.size() == 0 ? 1 : 0);
}

}  // namespace espalier

#include "espalier/graph/graph_writer.hpp"

#include <algorithm>
#include <limits>

#include "column_table.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/paired_rows.hpp"
#include "espalier/file/archive.hpp"
#include "fetch_rows.hpp"

namespace espalier {

struct GraphWriter::State {
  hdf5::Output output;
  std::vector<DatasetContent> written = {};
  Schema schema{};
  bool typed = false;
  std::vector<std::int64_t> classes = {0};  // [types]

  const Communicator& comm() const { return output.comm(); }
  std::string path(const ColumnAt& at) const { return path_of(at, typed ? &schema : nullptr); }
};

namespace {

constexpr const char* kGraphLabel = "graph file";  // of its traffic

// An attribute has little room.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 4096;
  if (text.size() <= kMost) return text;
  auto end = kMost;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a letter of UTF-8
  return text.substr(0, end) + "...";
}

// Where my part lies among the parts of all ranks.
struct Place {
  std::int64_t begin = 0;
  std::int64_t total = 0;
};

Place place_of(const Communicator& comm, std::int64_t mine) {
  const auto starts = stretches(comm, mine);
  return {starts[comm.rank()], starts.back()};
}

}  // namespace

GraphWriter::GraphWriter(const Communicator& comm, const Destination& destination)
    : state_(new State{{comm, destination}}) {}

GraphWriter::~GraphWriter() = default;

// Collective. My rows of one dataset: `values` are rows [begin, begin + values.size() / columns)
// of `total`.
template <class T>
void GraphWriter::write(const std::string& name, std::int64_t total, std::int64_t columns, std::int64_t begin,
                        std::span<const T> values) {
  const auto shape =
      columns < 0 ? std::vector<std::int64_t>{total} : std::vector<std::int64_t>{total, columns};
  const auto digest =
      write_array(state_->output, name, shape, begin, values, kGraphLabel, hdf5::create_dataset);
  state_->written.push_back({name, shape, digest});
}

// Collective. Of a data set whose parts, mine too, are written.
void GraphWriter::finish_dataset(const std::string& name, const hdf5::Dataset& dataset, bool good,
                                 std::uint64_t my_digest) {
  const auto digest = finish_array(state_->output, name, dataset, good, my_digest, kGraphLabel);
  state_->written.push_back({name, dataset.shape, digest});
}

namespace {
constexpr std::int64_t kVector = -1;  // columns of a dataset with one dimension
constexpr std::int64_t kPieceBytes = 16 << 20;
}  // namespace

// Collective. My values of a vector of `total`, from `begin` on, made one after the other: no more
// than a piece of them is in memory.
template <class T>
void GraphWriter::write_made(const std::string& name, std::int64_t total, std::int64_t begin,
                             std::int64_t count, const std::function<T(std::int64_t)>& make) {
  const auto dataset = hdf5::create_dataset(state_->output.file(), name, hdf5::file_type<T>(), {total});
  bool good = dataset.exists();
  std::uint64_t digest = 0;
  Buffer<T> piece(std::min<std::int64_t>(count, kPieceBytes / sizeof(T)));
  for (std::int64_t at = 0; good && at < count; at += std::ssize(piece)) {
    piece.resize(std::min<std::int64_t>(std::ssize(piece), count - at));
    for (std::int64_t k = 0; k < std::ssize(piece); ++k) piece[k] = make(at + k);
    const hdf5::Slab slab{begin + at, begin + at + std::ssize(piece), 1};
    good = hdf5::write_slab(dataset, hdf5::memory_type<T>(), slab, piece.data());
    digest += content_digest(std::span<const T>(piece), begin + at);
  }
  finish_dataset(name, dataset, good, digest);
}

// Collective. Where my rows begin in the file, in which their first entry is `entry_begin`. The
// last rank also writes the end of all; everyone else's is the next rank's first.
template <class Index>
void GraphWriter::write_row_begins(const std::string& name, const Csr<Index>& rows, std::int64_t total,
                                   std::int64_t row_begin, std::int64_t entry_begin) {
  const bool last = state_->comm().rank() + 1 == state_->comm().size();
  write_made<std::int64_t>(name, total + 1, row_begin, rows.rows + (last ? 1 : 0),
                           [&](std::int64_t row) { return rows.indptr[row] + entry_begin; });
}

// Collective. My part of a vector.
template <class T>
void GraphWriter::write_vector(const std::string& name, std::span<const T> values) {
  const auto place = place_of(state_->comm(), std::ssize(values));
  write<T>(name, place.total, kVector, place.begin, values);
}

// Collective. A list that every rank has, written by rank 0.
template <class T>
void GraphWriter::write_by_first(const std::string& name, const std::vector<T>& values) {
  const auto mine = std::span<const T>(values).first(state_->comm().rank() == 0 ? values.size() : 0);
  if constexpr (std::is_same_v<T, std::string>)
    write_texts(name, mine);
  else
    write_vector(name, mine);
}

// Collective. My part of a list of texts.
void GraphWriter::write_texts(const std::string& name, std::span<const std::string> texts) {
  const auto& comm = state_->comm();
  const auto place = place_of(comm, std::ssize(texts));
  std::int64_t longest = 1;
  for (const auto& text : texts) longest = std::max(longest, std::ssize(text));
  longest = comm.all_reduce(longest, Reduction::kMax, kGraphLabel);
  const auto dataset =
      hdf5::create_texts(state_->output.file(), name, place.total, static_cast<std::size_t>(longest));
  const bool good = dataset.exists() && hdf5::write_texts_at(dataset, place.begin, texts);
  const auto hashes = hashes_of(texts);
  finish_dataset(name, dataset, good, content_digest(std::span<const std::int64_t>(hashes), place.begin));
}

void GraphWriter::write_schema(const Schema& schema) {
  ESPALIER_CHECK(state_->written.empty(), "the types come after {}", state_->written.front().name);
  state_->typed = true;
  state_->schema = schema;
  state_->classes.assign(schema.types().size(), 0);
  std::vector<std::string> types, relations;
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int32_t> sources, targets, inverses;
  for (const auto& type : schema.types()) {
    types.push_back(type.name);
    offsets.push_back(type.end);
  }
  for (const auto& relation : schema.relations()) {
    relations.push_back(relation.name);
    sources.push_back(relation.source);
    targets.push_back(relation.target);
    inverses.push_back(relation.inverse);
  }
  write_by_first("/types/name", types);
  write_by_first("/types/offset", offsets);
  write_by_first("/relations/name", relations);
  write_by_first("/relations/source", sources);
  write_by_first("/relations/target", targets);
  write_by_first("/relations/inverse", inverses);
}

// Collective. The segments of my rows; their first row and entry in the file are row_begin and
// entry_begin.
template <class Index>
void GraphWriter::write_segments(const Csr<Index>& rows, std::int64_t row_begin, std::int64_t entry_begin) {
  const auto& comm = state_->comm();
  const auto& schema = state_->schema;
  Buffer<std::int64_t> ptr;
  Buffer<std::uint8_t> relations;
  ptr.reserve(rows.rows + 1);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    ptr.push_back(std::ssize(relations));
    int before = -1;
    for (const auto column : rows.row_indices(row)) {
      if (before >= 0 && column < schema.begin(before + 1)) continue;
      before = schema.relation_of(column);
      relations.push_back(static_cast<std::uint8_t>(before));
    }
  }
  ptr.push_back(std::ssize(relations));
  // Of segment k of a row the first entry of its relation, which is behind those of segment k - 1.
  std::int64_t row = 0, entry = 0;
  const auto next_begin = [&](std::int64_t k) {
    while (ptr[row + 1] <= k) ++row;
    if (ptr[row] == k) return entry = rows.row_begin(row);
    while (rows.indices[entry] < schema.begin(relations[k])) ++entry;
    return entry;
  };
  const auto place = place_of(comm, std::ssize(relations));
  write_made<std::int64_t>("/graph/segment_begin", place.total, place.begin, std::ssize(relations),
                           [&](std::int64_t k) { return entry_begin + next_begin(k); });
  if (comm.rank() + 1 < comm.size()) ptr.pop_back();
  for (auto& first : ptr) first += place.begin;
  write<std::int64_t>("/graph/segment_ptr", schema.nodes() + 1, kVector, row_begin, ptr);
  write<std::uint8_t>("/graph/segment_relation", place.total, kVector, place.begin, relations);
}

template <class Index>
void GraphWriter::write_adjacency(const Csr<Index>& rows) {
  const auto& comm = state_->comm();
  const auto row_place = place_of(comm, rows.rows);
  const auto edge_place = place_of(comm, std::ssize(rows.indices));
  const auto& schema = state_->schema;
  ESPALIER_CHECK(!state_->typed || (row_place.total == schema.nodes() &&
                                    (rows.rows == 0 || rows.columns == schema.columns())),
                 "{} rows and {} columns of a graph of {} and {}", row_place.total, rows.columns,
                 schema.nodes(), schema.columns());
  ESPALIER_CHECK(schema.nodes() <= std::numeric_limits<Index>::max(), "{} vertices", schema.nodes());
  const auto has_values = comm.all_reduce(rows.has_values() ? 1 : 0, Reduction::kMax, kGraphLabel) != 0;
  ESPALIER_CHECK(!has_values || rows.values.size() == rows.indices.size(), "{} weights for {} edges",
                 rows.values.size(), rows.indices.size());
  write_row_begins("/graph/indptr", rows, row_place.total, row_place.begin, edge_place.begin);
  if (state_->typed) {
    write_made<Index>("/graph/indices", edge_place.total, edge_place.begin, std::ssize(rows.indices),
                      [&](std::int64_t e) { return static_cast<Index>(schema.vertex_of(rows.indices[e])); });
    write_segments(rows, row_place.begin, edge_place.begin);
  } else {
    write<Index>("/graph/indices", edge_place.total, kVector, edge_place.begin, rows.indices);
  }
  if (has_values) write<float>("/graph/weights", edge_place.total, kVector, edge_place.begin, rows.values);
}

template void GraphWriter::write_adjacency(const Csr<std::int32_t>&);
template void GraphWriter::write_adjacency(const Csr<std::int64_t>&);

// Of a matrix without rows there are as many columns as the most that a rank names.
template <class T>
void GraphWriter::write_rows(Column column, int owner, const Matrix<T>& rows) {
  const auto& comm = state_->comm();
  const auto place = place_of(comm, rows.rows);
  const auto columns =
      comm.all_reduce(rows.rows > 0 || place.total == 0 ? rows.columns : 0, Reduction::kMax, kGraphLabel);
  if (column == Column::kLabels) state_->classes[owner] = columns;
  write<T>(state_->path({column, owner}), place.total, columns, place.begin, rows.data);
}

template void GraphWriter::write_rows(Column, int, const Matrix<float>&);
template void GraphWriter::write_rows(Column, int, const Matrix<Half>&);
template void GraphWriter::write_rows(Column, int, const Matrix<double>&);
template void GraphWriter::write_rows(Column, int, const Matrix<std::uint8_t>&);
template void GraphWriter::write_rows(Column, int, const Matrix<std::int32_t>&);
template void GraphWriter::write_rows(Column, int, const Matrix<std::int64_t>&);

template <class T>
void GraphWriter::write_list(Column column, int owner, std::type_identity_t<std::span<const T>> values,
                             const std::string& unit) {
  const auto path = state_->path({column, owner});
  write_vector(path, values);
  if (unit.empty()) return;
  const auto dataset = hdf5::open_dataset(state_->output.file(), path);
  state_->output.require(hdf5::write_text_attribute(dataset.handle, "unit", shortened(unit)), path);
}

template void GraphWriter::write_list<float>(Column, int, std::span<const float>, const std::string&);
template void GraphWriter::write_list<double>(Column, int, std::span<const double>, const std::string&);
template void GraphWriter::write_list<Half>(Column, int, std::span<const Half>, const std::string&);
template void GraphWriter::write_list<std::uint8_t>(Column, int, std::span<const std::uint8_t>,
                                                    const std::string&);
template void GraphWriter::write_list<std::int32_t>(Column, int, std::span<const std::int32_t>,
                                                    const std::string&);
template void GraphWriter::write_list<std::int64_t>(Column, int, std::span<const std::int64_t>,
                                                    const std::string&);

void GraphWriter::write_texts(Column column, int owner, std::span<const std::string> texts) {
  write_texts(state_->path({column, owner}), texts);
}

void GraphWriter::write_sparse_features(const Matrix<float>& pairs, std::int64_t columns, int type) {
  const auto& comm = state_->comm();
  Csr<std::int32_t> rows;
  to_entries<float>(Cpu{1}, {pairs, columns}, rows);
  const auto name = state_->path({Column::kSparseColumns, type});
  const auto row_place = place_of(comm, rows.rows);
  const auto place = place_of(comm, std::ssize(rows.indices));
  write_row_begins(state_->path({Column::kSparseBegins, type}), rows, row_place.total, row_place.begin,
                   place.begin);
  write<std::int32_t>(name, place.total, kVector, place.begin, rows.indices);
  write<float>(state_->path({Column::kSparseValues, type}), place.total, kVector, place.begin, rows.values);
  const auto indices = hdf5::open_dataset(state_->output.file(), name);
  state_->output.require(hdf5::write_integer_attribute(indices.handle, "columns", columns), name);
  state_->written.push_back(columns_of(name, columns));
}

template <class T>
void GraphWriter::write_pieces(Column column, int owner, std::int64_t rows, std::int64_t columns,
                               const std::function<void(std::int64_t, Matrix<T>&)>& read) {
  const auto& comm = state_->comm();
  const auto name = state_->path({column, owner});
  const auto dataset =
      hdf5::create_dataset(state_->output.file(), name, hdf5::file_type<T>(), {rows, columns});
  state_->output.require(dataset.exists(), name);
  const auto most = std::max<std::int64_t>(1, kPieceBytes / (columns * std::int64_t{sizeof(T)}));
  Matrix<T> piece(comm.rank() == 0 ? std::min(rows, most) : 0, columns);
  std::uint64_t digest = 0;
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    const hdf5::Slab slab{begin, std::min(begin + most, rows), columns};
    agree(comm, [&] {
      if (comm.rank() == 0) piece.resize(slab.end - slab.begin, columns);
      read(begin, piece);
    });
    const bool mine = comm.rank() == 0;
    state_->output.require(
        !mine || hdf5::write_slab(dataset, hdf5::memory_type<T>(), slab, piece.data.data()), name);
    if (mine) digest += content_digest(std::span<const T>(piece.data), begin * columns);
  }
  finish_dataset(name, dataset, true, digest);
}

template void GraphWriter::write_pieces(Column, int, std::int64_t, std::int64_t,
                                        const std::function<void(std::int64_t, Matrix<float>&)>&);
template void GraphWriter::write_pieces(Column, int, std::int64_t, std::int64_t,
                                        const std::function<void(std::int64_t, Matrix<Half>&)>&);

void GraphWriter::write_labels(std::span<const std::int32_t> labels, int type, std::int64_t classes) {
  const std::int64_t largest = labels.empty() ? -1 : std::ranges::max(labels);
  classes = std::max(classes, state_->comm().all_reduce(largest, Reduction::kMax, kGraphLabel) + 1);
  state_->classes[type] = classes;
  const auto path = state_->path({Column::kLabels, type});
  write_vector(path, labels);
  const auto dataset = hdf5::open_dataset(state_->output.file(), path);
  hdf5::write_integer_attribute(dataset.handle, "classes", classes);
}

void GraphWriter::write_split(Split split, std::span<const std::int64_t> ids, int type,
                              const std::string& name) {
  write_vector(state_->path({split_column(split), type, name}), ids);
}

void GraphWriter::write_link_relations(const LinkInfo& info) {
  constexpr std::int64_t kVersion = 1;
  {
    const auto group = hdf5::create_group(state_->output.file(), "/links");
    state_->output.require(group.valid() && hdf5::write_integer_attribute(group, "version", kVersion) &&
                               hdf5::write_byte_attribute(group, "directed", info.directed),
                           "/links");
  }
  state_->written.push_back(direction_of_links(info.directed));
  if (!info.names.empty()) write_by_first(state_->path({Column::kLinkNames}), info.names);
  if (!info.graph_relations.empty())
    write_by_first(state_->path({Column::kGraphRelations}),
                   std::vector<std::int32_t>(info.graph_relations.begin(), info.graph_relations.end()));
}

void GraphWriter::write_links(Split split, const Links& links) {
  ESPALIER_CHECK(links.heads.size() == links.tails.size() &&
                     (links.relations.empty() || links.relations.size() == links.heads.size()),
                 "{} heads, {} tails, {} relations", links.heads.size(), links.tails.size(),
                 links.relations.size());
  const auto owner = static_cast<int>(split);
  write_list<std::int64_t>(Column::kHead, owner, links.heads);
  write_list<std::int64_t>(Column::kTail, owner, links.tails);
  if (state_->comm().all_reduce(links.relations.empty() ? 0 : 1, Reduction::kMax, kGraphLabel) != 0)
    write_list<std::int32_t>(Column::kLinkRelation, owner, links.relations);
}

void write_digests(const Communicator& comm, const std::string& path, const ContentDigests& digests) {
  ESPALIER_CHECK(digests.file, "{} was not read whole", path);
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    const auto write = [](const hdf5::Handle& object, std::uint64_t digest) {
      hdf5::remove_attribute(object, "digest");
      return hdf5::write_text_attribute(object, "digest", hex(digest));
    };
    auto file = hdf5::open_file_alone(path, true);
    if (!file.valid()) usage_error("cannot write to {}: {}", path, hdf5::reason());
    bool good = true;
    for (const auto& [name, digest] : digests.datasets)
      good = write(hdf5::open_dataset(file, name).handle, digest) && good;
    good = write(file, *digests.file) && good;
    if (!hdf5::flush(file) || !file.close() || !good)
      usage_error("cannot write the digests of {}: {}; is the disk full?", path, hdf5::reason());
  });
}

void GraphWriter::commit(const GraphDescription& description) {
  auto& output = state_->output;
  ArchiveWriter about(output.file());
  about("format", "espalier-graph");
  about("version", state_->typed ? 2 : 1);
  about("name", shortened(description.name));
  about("source", shortened(description.source));
  about("digest", file_digest(state_->written, fold_classes(state_->classes)));
  about("directed", description.directed);
  output.require(about.good(), "the last part");
  output.commit();
}

}  // namespace espalier

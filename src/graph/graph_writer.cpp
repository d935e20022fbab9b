#include "espalier/graph/graph_writer.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/comm/agree.hpp"
#include "espalier/graph/hdf5_output.hpp"

namespace espalier {

struct GraphWriter::State {
  hdf5::Output output;
  std::vector<DatasetContent> written = {};
  std::int64_t classes = 0;

  const Communicator& comm() const { return output.comm(); }
};

namespace {

// Where my part lies among the parts of all ranks.
struct Place {
  std::int64_t begin = 0;
  std::int64_t total = 0;
};

Place place_of(const Communicator& comm, std::size_t mine) {
  const auto sizes = comm.all_gather(static_cast<std::int64_t>(mine), "graph file");
  const auto me = sizes.begin() + comm.rank();
  return {std::accumulate(sizes.begin(), me, std::int64_t{0}),
          std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})};
}

}  // namespace

GraphWriter::GraphWriter(const Communicator& comm, const OutputFile& output)
    : state_(new State{{comm, output}}) {}

GraphWriter::~GraphWriter() = default;

// Collective. My rows of one dataset: `values` are rows [begin, begin + values.size() / columns)
// of `total`.
template <class T>
void GraphWriter::write(const std::string& name, std::int64_t total, std::int64_t columns, std::int64_t begin,
                        std::span<const T> values) {
  const auto shape =
      columns < 0 ? std::vector<std::int64_t>{total} : std::vector<std::int64_t>{total, columns};
  const auto width = std::max<std::int64_t>(1, shape.size() == 2 ? columns : 1);
  const auto rows = static_cast<std::int64_t>(values.size()) / width;
  const auto dataset = hdf5::create_dataset(state_->output.file(), name, hdf5::file_type<T>(), shape);
  const hdf5::Slab slab{begin, begin + rows, width};
  const bool good =
      dataset.exists() && hdf5::write_slab(dataset, hdf5::memory_type<T>(), slab, values.data());
  state_->output.require(good, name);
  const auto digest =
      state_->comm().all_reduce(content_digest(values, begin * width), Reduction::kSum, "graph file");
  state_->output.require(hdf5::write_text_attribute(dataset.handle, "digest", hex(digest)), name);
  state_->written.push_back({name, shape, digest});
}

namespace {
constexpr std::int64_t kVector = -1;  // columns of a dataset with one dimension
}

template <class Index>
void GraphWriter::write_adjacency(const Csr<Index>& rows) {
  const auto& comm = state_->comm();
  const auto row_place = place_of(comm, static_cast<std::size_t>(rows.rows));
  const auto edge_place = place_of(comm, rows.indices.size());
  // The last rank also writes indptr[n]; everyone else's last entry is the next rank's first.
  const bool last = comm.rank() + 1 == comm.size();
  Buffer<std::int64_t> indptr(rows.indptr.begin(), rows.indptr.begin() + rows.rows + (last ? 1 : 0));
  for (auto& offset : indptr) offset += edge_place.begin;
  const auto has_values = comm.all_reduce(rows.has_values() ? 1 : 0, Reduction::kMax, "graph file") != 0;
  ESPALIER_CHECK(!has_values || rows.values.size() == rows.indices.size(), "{} weights for {} edges",
                 rows.values.size(), rows.indices.size());
  write<std::int64_t>("/graph/indptr", row_place.total + 1, kVector, row_place.begin, indptr);
  write<Index>("/graph/indices", edge_place.total, kVector, edge_place.begin, rows.indices);
  if (has_values) write<float>("/graph/weights", edge_place.total, kVector, edge_place.begin, rows.values);
}

template void GraphWriter::write_adjacency(const Csr<std::int32_t>&);
template void GraphWriter::write_adjacency(const Csr<std::int64_t>&);

template <class T>
void GraphWriter::write_features(const Matrix<T>& rows) {
  const auto place = place_of(state_->comm(), static_cast<std::size_t>(rows.rows));
  const auto columns =
      state_->comm().all_reduce(rows.rows > 0 ? rows.columns : 0, Reduction::kMax, "graph file");
  write<T>("/nodes/features", place.total, columns, place.begin, rows.data);
}

template void GraphWriter::write_features(const Matrix<float>&);
template void GraphWriter::write_features(const Matrix<Half>&);

void GraphWriter::write_labels(std::span<const std::int32_t> labels) {
  const auto& comm = state_->comm();
  const auto place = place_of(comm, labels.size());
  const auto largest = labels.empty() ? -1 : *std::max_element(labels.begin(), labels.end());
  const auto classes = comm.all_reduce(std::int64_t{largest}, Reduction::kMax, "graph file") + 1;
  state_->classes = classes;
  write<std::int32_t>("/nodes/labels", place.total, kVector, place.begin, labels);
  const auto dataset = hdf5::open_dataset(state_->output.file(), "/nodes/labels");
  hdf5::write_integer_attribute(dataset.handle, "classes", classes);
}

void GraphWriter::write_multi_labels(const Matrix<std::uint8_t>& rows) {
  const auto place = place_of(state_->comm(), static_cast<std::size_t>(rows.rows));
  const auto columns =
      state_->comm().all_reduce(rows.rows > 0 ? rows.columns : 0, Reduction::kMax, "graph file");
  state_->classes = columns;
  write<std::uint8_t>("/nodes/labels", place.total, columns, place.begin, rows.data);
}

void GraphWriter::write_split(Split split, std::span<const std::int64_t> ids) {
  const auto place = place_of(state_->comm(), ids.size());
  write<std::int64_t>(std::string("/split/") + kSplitNames[static_cast<std::size_t>(split)], place.total,
                      kVector, place.begin, ids);
}

namespace {
// An attribute has little room.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 4096;
  if (text.size() <= kMost) return text;
  auto end = kMost;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a letter of UTF-8
  return text.substr(0, end) + "...";
}
}  // namespace

void write_digests(const Communicator& comm, const std::string& path, const ContentDigests& digests) {
  ESPALIER_CHECK(digests.file, "{} was not read whole", path);
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    const auto write = [](const hdf5::Handle& object, std::uint64_t digest) {
      hdf5::remove_attribute(object, "digest");
      return hdf5::write_text_attribute(object, "digest", hex(digest));
    };
    auto file = hdf5::open_file_alone(path, true);
    if (!file.valid()) input_error("cannot write to {}: {}", path, hdf5::reason());
    bool good = true;
    for (const auto& [name, digest] : digests.datasets)
      good = write(hdf5::open_dataset(file, name).handle, digest) && good;
    good = write(file, *digests.file) && good;
    if (!hdf5::flush(file) || !file.close() || !good)
      input_error("cannot write the digests of {}: {}; is the disk full?", path, hdf5::reason());
  });
}

void GraphWriter::commit(const GraphDescription& description) {
  auto& output = state_->output;
  const auto& file = output.file();
  const auto digest = file_digest(state_->written, state_->classes);
  bool good = hdf5::write_text_attribute(file, "format", "espalier-graph");
  good = hdf5::write_integer_attribute(file, "version", 1) && good;
  good = hdf5::write_text_attribute(file, "name", shortened(description.name)) && good;
  good = hdf5::write_text_attribute(file, "source", shortened(description.source)) && good;
  good = hdf5::write_text_attribute(file, "digest", hex(digest)) && good;
  good = hdf5::write_bool_attribute(file, "directed", description.directed) && good;
  output.require(good, "the last part");
  output.commit();
}

}  // namespace espalier

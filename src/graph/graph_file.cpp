// Opening a graph file: from "is there a file" to "do all shapes and types fit together", each with
// a message of its own.
//
// Rank 0 looks at the file first, with plain reads, because parallel HDF5 reports a missing file, a
// text file and a cut-off file alike. Then all ranks open it; the structure is read collectively,
// so all ranks see the same and fail at the same place.
#include "espalier/graph/graph_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "espalier/base/guarded.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/graph/row_range.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kVersion = 1;

// HDF5 allows a user block: the signature stands at byte 0, 512, 1024, 2048, ...
bool has_hdf5_signature(std::ifstream& file, std::uintmax_t size) {
  constexpr char kSignature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  for (std::uintmax_t at = 0; at + sizeof kSignature <= size; at = at == 0 ? 512 : 2 * at) {
    char bytes[8] = {};
    file.clear();
    file.seekg(static_cast<std::streamoff>(at));
    if (file.read(bytes, sizeof bytes) && std::equal(bytes, bytes + 8, kSignature)) return true;
  }
  return false;
}

void check_is_hdf5(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error && status.type() != std::filesystem::file_type::not_found)
    input_error("graph file {}: cannot be opened: {}", path, error.message());
  if (!std::filesystem::exists(status))
    input_error(
        "graph file {}: no such file (seen from {}); give the path of a file that `espalier import` or "
        "`generate` wrote",
        path, std::filesystem::current_path(error).string());
  if (std::filesystem::is_directory(status))
    input_error("graph file {}: is a folder; give the path of a graph file, or import the folder first",
                path);
  std::ifstream file(path, std::ios::binary);
  if (!file) input_error("graph file {}: cannot be opened: {}", path, std::strerror(errno));
  const auto size = std::filesystem::file_size(path, error);
  if (size == 0) input_error("graph file {}: is empty; {}", path, kWriteAgain);
  if (!has_hdf5_signature(file, size))
    input_error("graph file {}: is not an HDF5 file; {}", path, kWriteAgain);
}

// Reads the structure once, alone and guarded: the other ranks follow where rank 0 came through.
// What is wrong otherwise, the ranks find together.
void read_structure_alone(const std::string& path) {
  constexpr double kSeconds = 2;
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  const auto message =
      fmt::format("graph file {}: its structure is damaged: HDF5 does not find its way through it; {}", path,
                  kWriteAgain);
  bool sound = true;
  run_guarded(kSeconds, kBytes, message, [&] {
    const auto file = hdf5::open_file_alone(path, false);
    if (!file.valid()) return;
    for (const char* name : {"format", "version", "name", "source", "directed", "digest"})
      sound = hdf5::text_attribute_is_sound(file, name) && sound;
    for (const char* name : kDatasetNames) {
      const auto dataset = hdf5::open_dataset(file, name);
      if (!dataset.exists()) continue;
      for (const char* attribute : {"digest", "classes"})
        sound = hdf5::text_attribute_is_sound(dataset.handle, attribute) && sound;
      H5Dget_storage_size(dataset.handle.id());  // walks over the chunks
    }
  });
  if (!sound) input_error("{}", message);  // one that HDF5 would fill the memory for, perhaps
}

// ---- the checks of one dataset each; they throw on all ranks or on none ----

class Describer {
 public:
  explicit Describer(const std::string& path) : path_(path) {}

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    input_error("graph file {}: {}; {}", path_, fmt::format(format, std::forward<Args>(args)...),
                kWriteAgain);
  }
  void require(const hdf5::Dataset& dataset) const {
    if (!dataset.exists()) fail("there is no dataset {}", dataset.name);
  }
  void check_dimensions(const hdf5::Dataset& dataset, std::size_t least, std::size_t most) const {
    if (dataset.shape.size() < least || dataset.shape.size() > most)
      fail("{} has {} dimensions, expected {}", dataset.name, dataset.shape.size(),
           least == most ? std::to_string(least) : fmt::format("{} or {}", least, most));
  }
  void check_length(const hdf5::Dataset& dataset, std::int64_t rows, const char* what) const {
    if (dataset.rows() != rows)
      fail("{} has {} rows, but the graph has {} {}", dataset.name, dataset.rows(), rows, what);
  }
  void check_integers(const hdf5::Dataset& dataset) const {
    if (!dataset.is_integer()) fail("{} does not hold integers", dataset.name);
  }
  void check_numbers(const hdf5::Dataset& dataset) const {
    if (!dataset.is_number()) fail("{} does not hold numbers", dataset.name);
  }

 private:
  const std::string& path_;
};

void check_format(const hdf5::Handle& file, const std::string& path, const Describer& describe) {
  std::string format;
  if (!hdf5::read_text_attribute(file, "format", format) || format != "espalier-graph")
    describe.fail("is HDF5 but not an espalier graph (its attribute format is {}, not \"espalier-graph\")",
                  format.empty() ? hdf5::describe_attribute(file, "format") : "\"" + format + "\"");
  std::int64_t version = 0;
  if (!hdf5::read_integer_attribute(file, "version", version))
    describe.fail("its attribute version is {}, not the whole number {}",
                  hdf5::describe_attribute(file, "version"), kVersion);
  if (version != kVersion)
    input_error(
        "graph file {}: has format version {}, but this program reads version {}; use the espalier that "
        "wrote it, or "
        "import the graph again",
        path, version, kVersion);
}

}  // namespace

// ---- opening ----

namespace {

void open_datasets(OpenGraphFile& h) {
  h.indptr = hdf5::open_dataset(h.file, "/graph/indptr");
  h.indices = hdf5::open_dataset(h.file, "/graph/indices");
  h.weights = hdf5::open_dataset(h.file, "/graph/weights");
  h.features = hdf5::open_dataset(h.file, "/nodes/features");
  h.labels = hdf5::open_dataset(h.file, "/nodes/labels");
  for (std::size_t s = 0; s < kSplitNames.size(); ++s)
    h.splits[s] = hdf5::open_dataset(h.file, std::string("/split/") + kSplitNames[s]);
}

void describe_graph(OpenGraphFile& h, const Describer& describe) {
  for (const auto* dataset : {&h.indptr, &h.indices}) {
    describe.require(*dataset);
    describe.check_dimensions(*dataset, 1, 1);
    describe.check_integers(*dataset);
  }
  if (h.indptr.rows() < 2)
    describe.fail("/graph/indptr has {} entries, so the graph has no vertex", h.indptr.rows());
  h.info.nodes = h.indptr.rows() - 1;
  h.info.edges = h.indices.rows();
  h.info.wide_indices = h.indices.type_size > 4 || (h.indices.type_size == 4 && !h.indices.type_signed);
  h.info.weighted = h.weights.exists();
  if (!h.info.weighted) return;
  describe.check_dimensions(h.weights, 1, 1);
  describe.check_length(h.weights, h.info.edges, "edges");
  describe.check_numbers(h.weights);
}

void describe_nodes(OpenGraphFile& h, const Describer& describe) {
  if (h.features.exists()) {
    describe.check_dimensions(h.features, 2, 2);
    describe.check_length(h.features, h.info.nodes, "vertices");
    describe.check_numbers(h.features);
    h.info.features = h.features.columns();
    h.info.half_features = h.features.is_half();
  }
  if (!h.labels.exists()) return;
  describe.check_dimensions(h.labels, 1, 2);
  describe.check_length(h.labels, h.info.nodes, "vertices");
  describe.check_integers(h.labels);
  if (h.labels.columns() == 0) describe.fail("/nodes/labels has no columns");
  h.info.has_labels = true;
  // One column: a label each.
  h.info.multi_label = h.labels.shape.size() == 2 && h.labels.columns() != 1;
  if (h.info.multi_label) h.info.classes = h.labels.columns();
}

void describe_splits(OpenGraphFile& h, const Describer& describe) {
  std::int64_t* const sizes[] = {&h.info.train, &h.info.valid, &h.info.test};
  for (std::size_t s = 0; s < h.splits.size(); ++s) {
    if (!h.splits[s].exists()) continue;
    describe.check_dimensions(h.splits[s], 1, 1);
    if (h.splits[s].rows() > 0) describe.check_integers(h.splits[s]);
    if (h.splits[s].rows() > h.info.nodes)
      describe.fail("{} has {} ids, but the graph has {} vertices", h.splits[s].name, h.splits[s].rows(),
                    h.info.nodes);
    *sizes[s] = h.splits[s].rows();
  }
}

// ---- digests ----

// The digest that stands beside a data set or in `/`.
std::optional<std::uint64_t> stated_digest(const hdf5::Handle& object, const std::string& name,
                                           const Describer& describe) {
  std::string text;
  if (!hdf5::read_text_attribute(object, "digest", text)) return std::nullopt;
  const auto digest = digest_from_hex(text);
  if (!digest) describe.fail("the attribute digest of {} is \"{}\", not 16 hex digits", name, text);
  return digest;
}

std::int64_t entries_of(const hdf5::Dataset& dataset) {
  return dataset.rows() * dataset.columns();
}

void read_digests(OpenGraphFile& h, const Describer& describe) {
  for (const auto* dataset : h.datasets())
    h.contents[dataset->name] = ContentCheck(
        entries_of(*dataset),
        h.verify == Verify::kRenew ? std::nullopt : stated_digest(dataset->handle, dataset->name, describe));
}

// What is known of the data sets, and of the file where that is everything.
ContentDigests known_contents(const OpenGraphFile& h) {
  ContentDigests digests;
  std::vector<DatasetContent> all;
  for (const auto* dataset : h.datasets())
    if (const auto digest = h.contents.at(dataset->name).known()) {
      digests.datasets[dataset->name] = *digest;
      all.push_back({dataset->name, dataset->shape, *digest});
    }
  if (all.size() == h.contents.size()) digests.file = file_digest(all, h.info.classes);
  return digests;
}

// The digest of the file covers which data sets there are, and their shapes.
void check_file_digest(OpenGraphFile& h) {
  if (h.verify == Verify::kRenew) return;
  const Describer describe(h.path);
  const auto stated = stated_digest(h.file, "/", describe);
  h.has_digest = stated.has_value();
  if (!stated || h.verify == Verify::kNo) return;
  const auto known = known_contents(h).file;
  if (!known) describe.fail("it has a digest, but not each of its data sets has one; {}", kDigestAgain);
  if (*known != *stated)
    describe.fail("its data sets are not those that were written: their digest is {}, the file says {}; {}",
                  hex(*known), hex(*stated), kDigestAgain);
}

void describe_file(OpenGraphFile& h) {
  const Describer describe(h.path);
  check_format(h.file, h.path, describe);
  hdf5::read_text_attribute(h.file, "name", h.info.name);
  hdf5::read_text_attribute(h.file, "source", h.info.source);
  std::int64_t directed = 0;
  if (hdf5::read_integer_attribute(h.file, "directed", directed)) h.info.directed = directed != 0;
  open_datasets(h);
  describe_graph(h, describe);
  describe_nodes(h, describe);
  describe_splits(h, describe);
  read_digests(h, describe);
}

// Collective. The largest label + 1; every rank looks at an even range of the labels.
std::int64_t count_classes(const OpenGraphFile& h) {
  const auto range = even_range(h.info.nodes, h.comm.size(), h.comm.rank());
  Buffer<std::int64_t> labels(range.size());
  const bool good = hdf5::read_slab(h.labels, H5T_NATIVE_INT64, {range.begin, range.end, 1}, labels.data());
  agree(h.comm, [&] {
    if (!good) input_error("graph file {}: cannot read /nodes/labels: {}", h.path, hdf5::reason());
  });
  const auto largest = labels.empty() ? -1 : *std::max_element(labels.begin(), labels.end());
  return h.comm.all_reduce(std::max<std::int64_t>(largest, -1), Reduction::kMax, "graph file") + 1;
}

void find_classes(OpenGraphFile& h) {
  if (!h.labels.exists() || h.info.multi_label) return;
  const bool given = hdf5::read_integer_attribute(h.labels.handle, "classes", h.info.classes);
  const auto found = given ? "" : hdf5::describe_attribute(h.labels.handle, "classes");
  if (!given && found != "absent")
    input_error("graph file {}: /nodes/labels: its attribute classes is {}, not a whole number; {}", h.path,
                found, kWriteAgain);
  if (!given || h.info.classes == 0) h.info.classes = count_classes(h);
  if (h.info.classes < 0 || h.info.classes > std::numeric_limits<std::int32_t>::max())
    input_error("graph file {}: /nodes/labels has {} classes; labels must lie in [0, 2^31 - 1); {}", h.path,
                h.info.classes, kWriteAgain);
}

}  // namespace

GraphFile::GraphFile(const Communicator& comm, const std::string& path, Verify verify)
    : open_(new OpenGraphFile{comm, path, {}, {}, {}, {}, {}, {}, {}, {}, verify, false, {}}) {
  hdf5::silence();
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    check_is_hdf5(path);
    read_structure_alone(path);
  });
  open_->file = hdf5::open_file(comm, path);
  agree(comm, [&] {
    if (!open_->file.valid())
      input_error("graph file {}: is HDF5 but damaged or cut off ({}); {}", path, hdf5::reason(),
                  kWriteAgain);
  });
  agree(comm, [&] { describe_file(*open_); });
  find_classes(*open_);
  agree(comm, [&] { check_file_digest(*open_); });
  open_->info.content = known_contents(*open_);
}

GraphFile::~GraphFile() = default;

const GraphInfo& GraphFile::info() const {
  return open_->info;
}
const std::string& GraphFile::path() const {
  return open_->path;
}
ContentDigests GraphFile::content() const {
  return known_contents(*open_);
}
bool GraphFile::has_digest() const {
  return open_->has_digest;
}

}  // namespace espalier

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

#include "espalier/base/output_file.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/hdf5_output.hpp"
#include "labelled_splits.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kPlain = 1, kTyped = 2;  // versions

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
        "graph file {}: no such file (seen from {}); give the path of a file that `espalier import`, "
        "`generate` or `prepare` wrote",
        path, std::filesystem::current_path(error).string());
  if (std::filesystem::is_directory(status))
    input_error("graph file {}: is a folder; give the path of a graph file, or import the folder first",
                path);
  // HDF5 would look for its signature in a device without end, and wait for who writes to a pipe.
  if (const auto other = other_than_file(path); !other.empty())
    input_error("graph file {}: is a {}, not a file; give the path of a graph file", path, other);
  std::ifstream file(path, std::ios::binary);
  if (!file) input_error("graph file {}: cannot be opened: {}", path, std::strerror(errno));
  const auto size = std::filesystem::file_size(path, error);
  if (size == 0) input_error("graph file {}: is empty; {}", path, kWriteAgain);
  if (!has_hdf5_signature(file, size))
    input_error("graph file {}: is not an HDF5 file; {}", path, kWriteAgain);
}

// Returns the version.
std::int64_t check_format(const OpenGraphFile& h) {
  std::string format;
  if (!hdf5::read_text_attribute(h.file, "format", format) || format != "espalier-graph")
    fail(h, "is HDF5 but not an espalier graph (its attribute format is {}, not \"espalier-graph\")",
         format.empty() ? hdf5::describe_attribute(h.file, "format") : "\"" + format + "\"");
  std::int64_t version = 0;
  if (!hdf5::read_integer_attribute(h.file, "version", version))
    fail(h, "its attribute version is {}, not the whole number {} or {}",
         hdf5::describe_attribute(h.file, "version"), kPlain, kTyped);
  if (version != kPlain && version != kTyped)
    input_error(
        "graph file {}: has format version {}, but this program reads versions {} and {}; use the espalier "
        "that wrote it, or import the graph again",
        h.path, version, kPlain, kTyped);
  return version;
}

void open_matrix(OpenGraphFile& h) {
  constexpr std::size_t kUntyped = 3;
  for (std::size_t k = 0; k < (h.info.typed ? kMatrixNames.size() : kUntyped); ++k)
    h.matrix[k] = hdf5::open_dataset(h.file, kMatrixNames[k]);
}

// ---- digests ----

// The digest that stands beside a data set or in `/`.
std::optional<std::uint64_t> stated_digest(const OpenGraphFile& h, const hdf5::Handle& object,
                                           const std::string& name) {
  std::string text;
  if (!hdf5::read_text_attribute(object, "digest", text)) return std::nullopt;
  const auto digest = digest_from_hex(text);
  if (!digest) fail(h, "the attribute digest of {} is \"{}\", not 16 hex digits", name, text);
  return digest;
}

std::int64_t entries_of(const hdf5::Dataset& dataset) {
  return dataset.rows() * dataset.columns();
}

// Of the data sets that were opened since.
void read_digests(OpenGraphFile& h) {
  for (const auto* dataset : h.datasets())
    if (!h.contents.contains(dataset->name))
      h.contents[dataset->name] = ContentCheck(
          entries_of(*dataset),
          h.view.verify == Verify::kRenew ? std::nullopt : stated_digest(h, dataset->handle, dataset->name));
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
  digests.complete = std::ranges::all_of(h.contents, [&](const auto& of) {
    return only_names(of.first) || digests.datasets.contains(of.first);
  });
  if (all.size() != h.contents.size()) return digests;
  if (h.info.links.exist) all.push_back(direction_of_links(h.info.links.directed));
  for (int t = 0; t < std::ssize(h.info.types); ++t)
    if (const auto& columns = h.at(Column::kSparseColumns, t); columns.exists())
      all.push_back(columns_of(columns.name, h.info.types[t].features));
  std::vector<std::int64_t> classes;
  for (const auto& type : h.info.types) classes.push_back(type.classes);
  digests.file = file_digest(all, fold_classes(classes));
  return digests;
}

// The digest of the file covers which data sets there are, and their shapes.
void check_file_digest(OpenGraphFile& h) {
  if (h.view.verify == Verify::kRenew) return;
  const auto stated = stated_digest(h, h.file, "/");
  h.has_digest = stated.has_value();
  if (!stated || h.view.verify == Verify::kNo) return;
  const auto known = known_contents(h).file;
  if (!known) fail(h, "it has a digest, but not each of its data sets has one; {}", kDigestAgain);
  if (*known != *stated)
    fail(h, "its data sets are not those that were written: their digest is {}, the file says {}; {}",
         hex(*known), hex(*stated), kDigestAgain);
}

// The matrix, and what the schema is read from.
void describe_file(OpenGraphFile& h) {
  h.info.typed = check_format(h) == kTyped;
  hdf5::read_text_attribute(h.file, "name", h.info.name);
  hdf5::read_text_attribute(h.file, "source", h.info.source);
  std::int64_t directed = 0;
  if (hdf5::read_integer_attribute(h.file, "directed", directed)) h.info.directed = directed != 0;
  open_matrix(h);
  describe_graph(h);
  if (h.info.typed) describe_schema(h);
  read_digests(h);
}

// Collective. The largest label + 1; every rank looks at an even range of the labels.
std::int64_t count_classes(const OpenGraphFile& h, const hdf5::Dataset& dataset) {
  const auto range = even_range(dataset.rows(), h.comm.size(), h.comm.rank());
  Buffer<std::int64_t> labels(range.size());
  const bool good = hdf5::read_slab(dataset, H5T_NATIVE_INT64, {range.begin, range.end, 1}, labels.data());
  agree(h.comm, [&] {
    if (!good) input_error("graph file {}: cannot read {}: {}", h.path, dataset.name, hdf5::reason());
  });
  const auto place = std::ranges::max_element(labels) - labels.begin();
  const auto mine = labels.empty() ? std::int64_t{-1} : std::max<std::int64_t>(labels[place], -1),
             largest = h.comm.all_reduce(mine, Reduction::kMax, "graph file");
  agree(h.comm, [&] {
    if (mine == largest && largest < std::numeric_limits<std::int32_t>::max() &&
        are_too_many_classes(largest + 1, dataset.rows()))
      fail(h,
           "{}: entry {} is {}, which makes {} classes of {}; number classes from 0, or give it an attribute "
           "classes",
           dataset.name, range.begin + place, largest, largest + 1, counted(dataset.rows(), "vertex"));
  });
  return largest + 1;
}

void find_classes(const OpenGraphFile& h, const hdf5::Dataset& labels, VertexInfo& info) {
  if (!labels.exists() || info.multi_label) return;
  const bool given = hdf5::read_integer_attribute(labels.handle, "classes", info.classes);
  const auto found = given ? "" : hdf5::describe_attribute(labels.handle, "classes");
  if (!given && found != "absent")
    fail(h, "{}: its attribute classes is {}, not a whole number", labels.name, found);
  if (!given || info.classes == 0) info.classes = count_classes(h, labels);
  if (info.classes < 0 || info.classes > std::numeric_limits<std::int32_t>::max())
    fail(h, "{} has {} classes; labels must lie in [0, 2^31 - 1)", labels.name, info.classes);
}

// A class without a name would be nobody's.
void check_class_names(const OpenGraphFile& h) {
  for (int t = 0; t < std::ssize(h.info.types); ++t) {
    const auto& names = h.at(Column::kClassNames, t);
    if (names.exists() && names.rows() < h.info.types[t].classes)
      fail(h, "{} has {} names, but {} has {} classes", names.name, names.rows(),
           h.at(Column::kLabels, t).name, h.info.types[t].classes);
  }
}

// The type that was asked for; else the only one, or the only one with labels.
int find_target(const GraphInfo& info, const GraphView& view, const std::string& path) {
  if (!view.target.empty()) {
    const int named = info.schema.find_type(view.target);
    if (named < 0 && !view.target_by.empty())
      input_error(
          "{} was trained for vertices of type \"{}\": graph file {} has no such type; give a graph that has "
          "it, or say with graph.target which is meant ({})",
          view.target_by, view.target, path, info.schema.type_names());
    if (named < 0)
      input_error("graph.target = \"{}\": graph file {} has no such vertex type; its types are {}",
                  view.target, path, info.schema.type_names());
    return named;
  }
  int found = -1, labelled = 0;
  for (std::size_t t = 0; t < info.types.size(); ++t)
    if (info.types[t].has_labels) {
      found = static_cast<int>(t);
      ++labelled;
    }
  return labelled == 1 ? found : info.types.size() == 1 ? 0 : -1;
}

// The place of the split that was asked for; else of the one without a name, or of the only one.
// -1: there is none.
int find_split(const VertexInfo& info, const std::string& asked) {
  const auto found = std::ranges::find(info.splits, asked, &SplitInfo::name);
  if (found != info.splits.end()) return static_cast<int>(found - info.splits.begin());
  return asked.empty() && info.splits.size() == 1 ? 0 : -1;
}

void choose_splits(OpenGraphFile& h) {
  for (auto& info : h.info.types) {
    info.split = find_split(info, h.view.split);
    if (info.split >= 0) static_cast<SplitSizes&>(info) = info.splits[info.split];
  }
}

void check_split(const OpenGraphFile& h) {
  if (h.view.split.empty() || h.info.target < 0 || h.info.split >= 0) return;
  const auto names = h.info.split_names();
  const auto of = h.info.typed ? " of type " + h.info.schema.types()[h.info.target].name : "";
  usage_error("graph file {}: there is no split \"{}\"{}; {}", h.path, excerpt(h.view.split), of,
              names.empty() ? "none there has a name" : "there is " + names);
}

void choose_target(OpenGraphFile& h) {
  h.info.target = find_target(h.info, h.view, h.path);
  if (h.info.target >= 0) static_cast<VertexInfo&>(h.info) = h.info.types[h.info.target];
  h.info.columns = h.view.apart ? h.info.schema.columns() : h.info.nodes;
}

}  // namespace

std::string VertexInfo::split_names() const {
  std::string names;
  for (const auto& of : splits)
    if (!of.name.empty()) names += (names.empty() ? "" : ", ") + of.name;
  return names;
}

GraphFile::GraphFile(const Communicator& comm, const std::string& path, const GraphView& view)
    : open_(new OpenGraphFile(comm, path, view)) {
  hdf5::silence();
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    check_is_hdf5(path);
    hdf5::check_structure(path, fmt::format("graph file {}: its structure is damaged: HDF5 does not find its "
                                            "way through it; {}",
                                            path, kWriteAgain));
  });
  open_->file = hdf5::open_file(comm, path);
  describe();
}

GraphFile::GraphFile(const Communicator& comm, const std::string& name, hdf5::WrittenBytes& bytes,
                     const GraphView& view)
    : open_(new OpenGraphFile(comm, name, view)) {
  hdf5::silence();
  open_->file = hdf5::open_in_memory(bytes);
  open_->in_memory = true;
  describe();
}

void GraphFile::describe() {
  auto& h = *open_;
  const auto& comm = h.comm;
  agree(comm, [&] {
    if (!h.file.valid()) fail(h, "is HDF5 but damaged or cut off ({})", hdf5::reason());
  });
  agree(comm, [&] { describe_file(h); });
  h.info.schema = h.info.typed ? read_schema(h) : Schema(h.info.nodes);
  agree(comm, [&] {
    describe_columns(h);
    read_digests(h);
  });
  read_link_relations(h);
  read_feature_columns(h);
  for (int t = 0; t < std::ssize(h.info.types); ++t) {
    find_classes(h, h.at(Column::kLabels, t), h.info.types[t]);
    find_pairs(h, t);
  }
  agree(comm, [&] {
    check_class_names(h);
    check_file_digest(h);
    choose_splits(h);
    choose_target(h);
    check_split(h);
  });
  h.info.content = known_contents(h);
}

GraphFile::~GraphFile() = default;

const GraphInfo& GraphFile::info() const {
  return open_->info;
}
const GraphView& GraphFile::view() const {
  return open_->view;
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
std::vector<std::string> GraphFile::other_datasets() const {
  auto names = hdf5::dataset_names(open_->file);
  for (auto& name : names) name = "/" + name;
  const auto known = open_->datasets();
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::any_of(known, [&](const auto* dataset) { return dataset->name == name; });
  });
  return names;
}

}  // namespace espalier

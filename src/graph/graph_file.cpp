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

#include "direction_of_links.hpp"
#include "espalier/base/crash_guard.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/graph/hdf5_memory.hpp"
#include "espalier/graph/row_range.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kPlain = 1, kTyped = 2;  // versions

// The matrix, three of a graph without types, and all else that describes one with types.
constexpr const char* kMatrixNames[] = {
    "/graph/indptr",      "/graph/indices",     "/graph/weights",          "/types/name",
    "/types/offset",      "/relations/name",    "/relations/source",       "/relations/target",
    "/relations/inverse", "/graph/segment_ptr", "/graph/segment_relation", "/graph/segment_begin"};

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

// Reads the structure once, alone and guarded: the other ranks follow where rank 0 came through.
// What is wrong otherwise, the ranks find together.
void read_structure_alone(const std::string& path) {
  constexpr double kSeconds = 2;
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  const auto message =
      fmt::format("graph file {}: its structure is damaged: HDF5 does not find its way through it; {}", path,
                  kWriteAgain);
  bool sound = true;
  run_crash_guarded(kSeconds, kBytes, message, [&] {
    const auto file = hdf5::open_file_alone(path, false);
    if (!file.valid()) return;
    for (const char* name : {"format", "version", "name", "source", "directed", "digest"})
      sound = hdf5::text_attribute_is_sound(file, name) && sound;
    std::vector<hdf5::Dataset> kept;  // and opened as all ranks will, one beside the other
    const auto links = hdf5::open_group(file, "/links");
    for (const char* name : {"version", "directed"})
      sound = (!links.valid() || hdf5::text_attribute_is_sound(links, name)) && sound;
    for (const char* name : kMatrixNames) kept.push_back(hdf5::open_dataset(file, name));
    for (const auto& name : hdf5::dataset_names(file)) {
      const auto dataset = hdf5::open_dataset(file, "/" + name);
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
  void check_length(const hdf5::Dataset& dataset, std::int64_t rows, const char* what,
                    const char* owner = "the graph") const {
    if (dataset.rows() != rows)
      fail("{} has {} rows, but {} has {} {}", dataset.name, dataset.rows(), owner, rows, what);
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

// Returns the version.
std::int64_t check_format(const hdf5::Handle& file, const std::string& path, const Describer& describe) {
  std::string format;
  if (!hdf5::read_text_attribute(file, "format", format) || format != "espalier-graph")
    describe.fail("is HDF5 but not an espalier graph (its attribute format is {}, not \"espalier-graph\")",
                  format.empty() ? hdf5::describe_attribute(file, "format") : "\"" + format + "\"");
  std::int64_t version = 0;
  if (!hdf5::read_integer_attribute(file, "version", version))
    describe.fail("its attribute version is {}, not the whole number {} or {}",
                  hdf5::describe_attribute(file, "version"), kPlain, kTyped);
  if (version != kPlain && version != kTyped)
    input_error(
        "graph file {}: has format version {}, but this program reads versions {} and {}; use the espalier "
        "that wrote it, or import the graph again",
        path, version, kPlain, kTyped);
  return version;
}

}  // namespace

// ---- opening ----

namespace {

void open_matrix(OpenGraphFile& h) {
  hdf5::Dataset* const datasets[] = {&h.indptr,          &h.indices,          &h.weights,
                                     &h.type_name,       &h.type_offset,      &h.relation_name,
                                     &h.relation_source, &h.relation_target,  &h.relation_inverse,
                                     &h.segment_ptr,     &h.segment_relation, &h.segment_begin};
  static_assert(std::size(datasets) == std::size(kMatrixNames));
  constexpr std::size_t kUntyped = 3;
  for (std::size_t k = 0; k < (h.info.typed ? std::size(datasets) : kUntyped); ++k)
    *datasets[k] = hdf5::open_dataset(h.file, kMatrixNames[k]);
}

// Are these the names of vertices, of a type or of all? Whatever else has that place is nobody's,
// and so is what somebody put into a file whose digest is over all that it has.
bool are_names(const OpenGraphFile& h, const hdf5::Dataset& ids, std::int64_t vertices) {
  std::string digest;
  return hdf5::holds_fixed_texts(ids) && ids.rows() == vertices && ids.type_size <= kMostNameLetters &&
         (h.view.verify == Verify::kRenew || !hdf5::read_text_attribute(h.file, "digest", digest) ||
          hdf5::read_text_attribute(ids.handle, "digest", digest));
}

void open_types(OpenGraphFile& h) {
  for (const auto& type : h.info.schema.types()) {
    auto& open = h.types.emplace_back();
    const auto in = h.info.typed ? type.name + "/" : std::string();
    open.features = hdf5::open_dataset(h.file, "/nodes/" + in + "features");
    open.labels = hdf5::open_dataset(h.file, "/nodes/" + in + "labels");
    open.ids = hdf5::open_dataset(h.file, (h.info.typed ? "/types/" + in : "/nodes/") + "ids");
    if (!are_names(h, open.ids, type.size())) open.ids = {};
    for (std::size_t s = 0; s < kSplitNames.size(); ++s)
      open.splits[s] = hdf5::open_dataset(h.file, "/split/" + in + kSplitNames[s]);
  }
}

void open_relations(OpenGraphFile& h) {
  for (int r = 0; r < std::ssize(h.info.schema.relations()); ++r) {
    const auto in = h.info.typed ? h.info.schema.full_name(r) + "/" : std::string();
    h.relations.push_back({hdf5::open_dataset(h.file, "/edges/" + in + "features"),
                           hdf5::open_dataset(h.file, "/edges/" + in + "time")});
  }
}

// A list of whole numbers, which must be there.
void describe_list(const hdf5::Dataset& dataset, const Describer& describe) {
  describe.require(dataset);
  describe.check_dimensions(dataset, 1, 1);
  describe.check_integers(dataset);
}

void describe_graph(OpenGraphFile& h, const Describer& describe) {
  for (const auto* dataset : {&h.indptr, &h.indices}) describe_list(*dataset, describe);
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

// Names, few and short.
void describe_names(const hdf5::Dataset& names, std::int64_t most, const Describer& describe) {
  describe.require(names);
  describe.check_dimensions(names, 1, 1);
  if (names.rows() < 1 || names.rows() > most)
    describe.fail("{} has {} names, expected 1 to {}", names.name, names.rows(), most);
  if (names.type_size > kMostNameLetters)
    describe.fail("the names in {} have {} letters, expected {} at most", names.name, names.type_size,
                  kMostNameLetters);
}

void describe_schema(OpenGraphFile& h, const Describer& describe) {
  describe_names(h.type_name, kMostTypes, describe);
  describe_names(h.relation_name, kMostRelations, describe);
  for (const auto* list : {&h.type_offset, &h.relation_source, &h.relation_target, &h.relation_inverse,
                           &h.segment_ptr, &h.segment_relation, &h.segment_begin})
    describe_list(*list, describe);
  if (h.type_offset.rows() != h.type_name.rows() + 1)
    describe.fail("/types/offset has {} entries for {} types; give one more than types", h.type_offset.rows(),
                  h.type_name.rows());
  for (const auto* list : {&h.relation_source, &h.relation_target, &h.relation_inverse})
    if (list->rows() != h.relation_name.rows())
      describe.fail("{} has {} entries for {} relations", list->name, list->rows(), h.relation_name.rows());
  if (h.segment_ptr.rows() != h.info.nodes + 1)
    describe.fail("/graph/segment_ptr has {} entries, but the graph has {} vertices; give one more",
                  h.segment_ptr.rows(), h.info.nodes);
  if (h.segment_begin.rows() != h.segment_relation.rows())
    describe.fail("/graph/segment_begin has {} entries, but /graph/segment_relation has {}",
                  h.segment_begin.rows(), h.segment_relation.rows());
}

void describe_vertices(const OpenType& open, std::int64_t vertices, const char* owner,
                       const Describer& describe, VertexInfo& info) {
  if (open.features.exists()) {
    describe.check_dimensions(open.features, 2, 2);
    describe.check_length(open.features, vertices, "vertices", owner);
    describe.check_numbers(open.features);
    info.features = open.features.columns();
    info.half_features = open.features.is_half();
  }
  info.has_ids = open.ids.exists();
  if (!open.labels.exists()) return;
  describe.check_dimensions(open.labels, 1, 2);
  describe.check_length(open.labels, vertices, "vertices", owner);
  describe.check_integers(open.labels);
  if (open.labels.columns() == 0) describe.fail("{} has no columns", open.labels.name);
  info.has_labels = true;
  // One column: a label each.
  info.multi_label = open.labels.shape.size() == 2 && open.labels.columns() != 1;
  if (info.multi_label) info.classes = open.labels.columns();
}

// h5py writes truth values as an enum.
[[noreturn]] void fail_of_mask(const Describer& describe, const hdf5::Dataset& split, const char* owner) {
  describe.fail("{} is a mask: a truth value for each vertex of {}, not ids; write numpy.flatnonzero(mask)",
                split.name, owner);
}

void describe_splits(const OpenType& open, std::int64_t vertices, const char* owner,
                     const Describer& describe, VertexInfo& info) {
  std::int64_t* const sizes[] = {&info.train, &info.valid, &info.test};
  for (std::size_t s = 0; s < open.splits.size(); ++s) {
    const auto& split = open.splits[s];
    if (!split.exists()) continue;
    describe.check_dimensions(split, 1, 1);
    if (split.type_class == H5T_ENUM && split.rows() > 0) fail_of_mask(describe, split, owner);
    if (split.rows() > 0) describe.check_integers(split);
    if (split.rows() > vertices)
      describe.fail("{} has {} ids, but {} has {} vertices", split.name, split.rows(), owner, vertices);
    *sizes[s] = split.rows();
  }
}

// What is called as features, labels or a split are, but of no type of the file, would be
// overlooked.
void check_names_of_types(const OpenGraphFile& h, const Describer& describe) {
  const auto opened = h.datasets();
  for (const auto& name : hdf5::dataset_names(h.file)) {
    const auto last = name.substr(name.rfind('/') + 1);
    const bool of_vertices = name.starts_with("nodes/") && (last == "features" || last == "labels"),
               of_split =
                   name.starts_with("split/") && std::ranges::find(kSplitNames, last) != kSplitNames.end();
    if ((!of_vertices && !of_split) ||
        std::ranges::any_of(opened, [&](const auto* of) { return of->name == "/" + name; }))
      continue;
    const auto* root = of_split ? "/split/" : "/nodes/";
    if (h.info.typed)
      describe.fail(
          "there is a dataset /{}, but it is of none of the vertex types {}; it is called {}TYPE/{}", name,
          h.info.schema.type_names(), root, last);
    describe.fail("there is a dataset /{}, but in a file without types it is called {}{}", name, root, last);
  }
}

void describe_types(OpenGraphFile& h, const Describer& describe) {
  check_names_of_types(h, describe);
  const char* owner = h.info.typed ? "the type" : "the graph";
  for (std::size_t t = 0; t < h.types.size(); ++t) {
    const auto vertices = h.info.schema.types()[t].size();
    auto& info = h.info.types.emplace_back();
    describe_vertices(h.types[t], vertices, owner, describe, info);
    describe_splits(h.types[t], vertices, owner, describe, info);
  }
}

// What is of a relation that the file has not would be overlooked.
void check_names_of_relations(const OpenGraphFile& h, const Describer& describe) {
  if (!hdf5::has_link(h.file, "edges")) return;
  for (const auto& name : hdf5::dataset_names(h.file))
    if (name.starts_with("edges/") && std::ranges::none_of(h.relations, [&](const auto& of) {
          return of.features.name == "/" + name || of.times.name == "/" + name;
        }))
      describe.fail("there is a dataset /{}, but features of edges are called {}, and their times ../time",
                    name,
                    h.info.typed ? "/edges/SOURCE.RELATION.TARGET/features, of a relation of the file"
                                 : "/edges/features");
}

void describe_relations(OpenGraphFile& h, const Describer& describe) {
  check_names_of_relations(h, describe);
  const bool one = h.relations.size() == 1;
  for (auto& [features, times, info] : h.relations) {
    if (features.exists()) {
      describe.check_dimensions(features, 2, 2);
      describe.check_numbers(features);
      if (one) describe.check_length(features, h.info.edges, "edges");
      if (features.rows() > h.info.edges)
        describe.fail("{} has {} rows, but all relations together have {} edges", features.name,
                      features.rows(), h.info.edges);
      if (features.columns() > 0) info = {features.rows(), features.columns(), features.is_half()};
    }
    h.info.edge_features.push_back(one || h.view.apart ? info : EdgeInfo{});
    if (times.exists()) {
      describe_list(times, describe);
      if (one) describe.check_length(times, h.info.edges, "edges");
    }
    h.info.edge_times.push_back(times.exists() ? times.rows() : 0);
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

// Of the data sets that were opened since.
void read_digests(OpenGraphFile& h, const Describer& describe) {
  for (const auto* dataset : h.datasets())
    if (!h.contents.contains(dataset->name))
      h.contents[dataset->name] =
          ContentCheck(entries_of(*dataset), h.view.verify == Verify::kRenew
                                                 ? std::nullopt
                                                 : stated_digest(dataset->handle, dataset->name, describe));
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
  if (all.size() != h.contents.size()) return digests;
  if (h.info.links.exist) all.push_back(direction_of_links(h.info.links.directed));
  std::vector<std::int64_t> classes;
  for (const auto& type : h.info.types) classes.push_back(type.classes);
  digests.file = file_digest(all, fold_classes(classes));
  return digests;
}

// The digest of the file covers which data sets there are, and their shapes.
void check_file_digest(OpenGraphFile& h) {
  if (h.view.verify == Verify::kRenew) return;
  const Describer describe(h.path);
  const auto stated = stated_digest(h.file, "/", describe);
  h.has_digest = stated.has_value();
  if (!stated || h.view.verify == Verify::kNo) return;
  const auto known = known_contents(h).file;
  if (!known) describe.fail("it has a digest, but not each of its data sets has one; {}", kDigestAgain);
  if (*known != *stated)
    describe.fail("its data sets are not those that were written: their digest is {}, the file says {}; {}",
                  hex(*known), hex(*stated), kDigestAgain);
}

// The matrix, and what the schema is read from.
void describe_file(OpenGraphFile& h) {
  const Describer describe(h.path);
  h.info.typed = check_format(h.file, h.path, describe) == kTyped;
  hdf5::read_text_attribute(h.file, "name", h.info.name);
  hdf5::read_text_attribute(h.file, "source", h.info.source);
  std::int64_t directed = 0;
  if (hdf5::read_integer_attribute(h.file, "directed", directed)) h.info.directed = directed != 0;
  open_matrix(h);
  describe_graph(h, describe);
  if (h.info.typed) describe_schema(h, describe);
  read_digests(h, describe);
}

// The vertices, type by type, and the edges, relation by relation.
void describe_contents(OpenGraphFile& h) {
  const Describer describe(h.path);
  open_types(h);
  describe_types(h, describe);
  open_relations(h);
  describe_relations(h, describe);
  describe_links(h);
  read_digests(h, describe);
}

// Collective. The largest label + 1; every rank looks at an even range of the labels.
std::int64_t count_classes(const OpenGraphFile& h, const hdf5::Dataset& dataset) {
  const auto range = even_range(dataset.rows(), h.comm.size(), h.comm.rank());
  Buffer<std::int64_t> labels(range.size());
  const bool good = hdf5::read_slab(dataset, H5T_NATIVE_INT64, {range.begin, range.end, 1}, labels.data());
  agree(h.comm, [&] {
    if (!good) input_error("graph file {}: cannot read {}: {}", h.path, dataset.name, hdf5::reason());
  });
  const auto largest = labels.empty() ? -1 : *std::max_element(labels.begin(), labels.end());
  return h.comm.all_reduce(std::max<std::int64_t>(largest, -1), Reduction::kMax, "graph file") + 1;
}

void find_classes(const OpenGraphFile& h, const hdf5::Dataset& labels, VertexInfo& info) {
  if (!labels.exists() || info.multi_label) return;
  const bool given = hdf5::read_integer_attribute(labels.handle, "classes", info.classes);
  const auto found = given ? "" : hdf5::describe_attribute(labels.handle, "classes");
  if (!given && found != "absent")
    input_error("graph file {}: {}: its attribute classes is {}, not a whole number; {}", h.path, labels.name,
                found, kWriteAgain);
  if (!given || info.classes == 0) info.classes = count_classes(h, labels);
  if (info.classes < 0 || info.classes > std::numeric_limits<std::int32_t>::max())
    input_error("graph file {}: {} has {} classes; labels must lie in [0, 2^31 - 1); {}", h.path, labels.name,
                info.classes, kWriteAgain);
}

// The type that was asked for; else the only one, or the only one with labels.
int find_target(const GraphInfo& info, const GraphView& view, const std::string& path) {
  if (!view.target.empty()) {
    const int named = info.schema.find_type(view.target);
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

void choose_target(OpenGraphFile& h) {
  h.info.target = find_target(h.info, h.view, h.path);
  if (h.info.target >= 0) static_cast<VertexInfo&>(h.info) = h.info.types[h.info.target];
  h.info.columns = h.view.apart ? h.info.schema.columns() : h.info.nodes;
}

}  // namespace

GraphFile::GraphFile(const Communicator& comm, const std::string& path, const GraphView& view)
    : open_(new OpenGraphFile(comm, path, view)) {
  hdf5::silence();
  agree(comm, [&] {
    if (comm.rank() != 0) return;
    check_is_hdf5(path);
    read_structure_alone(path);
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
    if (!h.file.valid())
      input_error("graph file {}: is HDF5 but damaged or cut off ({}); {}", h.path, hdf5::reason(),
                  kWriteAgain);
  });
  agree(comm, [&] { describe_file(h); });
  h.info.schema = h.info.typed ? read_schema(h) : Schema(h.info.nodes);
  agree(comm, [&] { describe_contents(h); });
  read_link_relations(h);
  for (std::size_t t = 0; t < h.types.size(); ++t) find_classes(h, h.types[t].labels, h.info.types[t]);
  agree(comm, [&] {
    check_file_digest(h);
    choose_target(h);
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

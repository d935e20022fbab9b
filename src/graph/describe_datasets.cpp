#include "describe_datasets.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "espalier/base/escape.hpp"
#include "espalier/dense/paired_rows.hpp"

namespace espalier {

namespace {

// Names of vertices or classes. What somebody put into a file whose digest is over all that it has
// is nobody's.
hdf5::Dataset open_names(const OpenGraphFile& h, const std::string& name) {
  auto names = hdf5::open_dataset(h.file, name);
  std::string digest;
  if (!names.exists() || h.view.verify == Verify::kRenew ||
      !hdf5::read_text_attribute(h.file, "digest", digest) ||
      hdf5::read_text_attribute(names.handle, "digest", digest))
    return names;
  return {};
}

bool is_part_of_split(std::string_view name) {
  return std::ranges::find(kSplitNames, name) != kSplitNames.end();
}

// The splits whose parts are "split/" + in + NAME + "/train" and so on, by name; an empty name
// first where there is "split/" + in + "train".
std::set<std::string> find_splits(const std::vector<std::string>& datasets, const std::string& in) {
  const auto folder = "split/" + in;
  std::set<std::string> names;
  for (const auto& name : datasets) {
    if (!name.starts_with(folder)) continue;
    const auto rest = name.substr(folder.size());
    const auto slash = rest.find('/');
    const auto split = slash == std::string::npos ? "" : rest.substr(0, slash);
    if (is_part_of_split(rest.substr(slash + 1))) names.insert(split);
  }
  return names;
}

// h.info.types names the splits, h.types has their data sets.
void open_splits(OpenGraphFile& h, const std::set<std::string>& names, const std::string& in) {
  for (const auto& name : names) {
    h.info.types.back().splits.emplace_back().name = name;
    auto& parts = h.types.back().splits.emplace_back();
    const auto folder = "/split/" + in + (name.empty() ? "" : name + "/");
    for (std::size_t s = 0; s < parts.size(); ++s)
      parts[s] = hdf5::open_dataset(h.file, folder + kSplitNames[s]);
  }
}

// One data set, or a group of three.
void open_features(const OpenGraphFile& h, const std::vector<std::string>& datasets, const std::string& name,
                   OpenType& open) {
  const auto within = [&](const std::string& dataset) { return dataset.starts_with(name + "/"); };
  if (!std::ranges::any_of(datasets, within)) {
    open.features = hdf5::open_dataset(h.file, "/" + name);
    return;
  }
  open.features.name = "/" + name;
  open.sparse = {hdf5::open_dataset(h.file, "/" + name + "/indptr"),
                 hdf5::open_dataset(h.file, "/" + name + "/indices"),
                 hdf5::open_dataset(h.file, "/" + name + "/values")};
}

void open_types(OpenGraphFile& h, const std::vector<std::string>& datasets) {
  for (const auto& type : h.info.schema.types()) {
    h.info.types.emplace_back();
    auto& open = h.types.emplace_back();
    const auto in = h.info.typed ? type.name + "/" : std::string();
    open_features(h, datasets, "nodes/" + in + "features", open);
    open.labels = hdf5::open_dataset(h.file, "/nodes/" + in + "labels");
    open.ids = open_names(h, (h.info.typed ? "/types/" + in : "/nodes/") + "ids");
    open.class_names = open_names(h, "/labels/" + in + "names");
    open_splits(h, find_splits(datasets, in), in);
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

void check_texts(const hdf5::Dataset& names, const Describer& describe, const char* otherwise = "") {
  if (!hdf5::holds_fixed_texts(names))
    describe.fail("{} holds no texts of fixed length (h5py: dtype 'S'){}", names.name, otherwise);
  if (names.type_size > kMostNameLetters)
    describe.fail("the texts in {} have {} letters, expected {} at most", names.name, names.type_size,
                  kMostNameLetters);
}

void describe_ids(const hdf5::Dataset& ids, std::int64_t vertices, const char* owner,
                  const Describer& describe, VertexInfo& info) {
  describe.check_dimensions(ids, 1, 1);
  describe.check_length(ids, vertices, "vertices", owner);
  // HDF5 would make one number of all that int64 does not hold.
  if (ids.is_integer() && (ids.type_signed || ids.type_size < 8)) {
    info.ids = IdKind::kNumbers;
  } else {
    check_texts(ids, describe, ", and no int64");
    info.ids = IdKind::kTexts;
  }
}

void describe_class_names(const hdf5::Dataset& names, const Describer& describe, VertexInfo& info) {
  describe.check_dimensions(names, 1, 1);
  check_texts(names, describe);
  info.class_names = names.rows();
}

// indptr, indices and values are those of scipy.sparse.csr_array; the attribute says how many
// columns there are, as an empty one is in no entry.
void describe_sparse(const OpenType& open, std::int64_t vertices, const char* owner,
                     const Describer& describe, VertexInfo& info) {
  const auto& [indptr, indices, values] = open.sparse;
  for (const auto* list : {&indptr, &indices}) describe_list(*list, describe);
  describe.require(values);
  describe.check_dimensions(values, 1, 1);
  describe.check_numbers(values);
  if (indptr.rows() != vertices + 1)
    describe.fail("{} has {} entries, but {} has {} vertices; give one more", indptr.name, indptr.rows(),
                  owner, vertices);
  if (values.rows() != indices.rows())
    describe.fail("{} has {} entries, but {} has {}", values.name, values.rows(), indices.name,
                  indices.rows());
  if (!hdf5::read_integer_attribute(indices.handle, "columns", info.features))
    describe.fail("{}: its attribute columns is {}, not how many columns the features have", indices.name,
                  hdf5::describe_attribute(indices.handle, "columns"));
  if (info.features < 1 || info.features > kMostPairedColumns)
    describe.fail("{}: its attribute columns is {}; sparse features have 1 to {} columns", indices.name,
                  info.features, kMostPairedColumns);
  info.feature_entries = indices.rows();
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
  // A part of it may be missing.
  if (open.sparse.exists() || open.sparse.indices.exists() || open.sparse.values.exists())
    describe_sparse(open, vertices, owner, describe, info);
  if (open.ids.exists()) describe_ids(open.ids, vertices, owner, describe, info);
  if (open.class_names.exists()) describe_class_names(open.class_names, describe, info);
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

void describe_split(const std::array<hdf5::Dataset, 3>& parts, std::int64_t vertices, const char* owner,
                    const Describer& describe, SplitInfo& info) {
  if (!info.name.empty() && !is_split_name(info.name))
    describe.fail("there is a split \"{}\"; {}", excerpt(info.name), kSplitNameRule);
  std::int64_t* const sizes[] = {&info.train, &info.valid, &info.test};
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const auto& split = parts[s];
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
void check_names_of_types(const OpenGraphFile& h, const std::vector<std::string>& datasets,
                          const Describer& describe) {
  const auto opened = h.datasets();
  for (const auto& name : datasets) {
    const auto last = name.substr(name.rfind('/') + 1);
    const bool of_vertices = name.starts_with("nodes/") && (last == "features" || last == "labels"),
               of_split = name.starts_with("split/") && is_part_of_split(last);
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

}  // namespace

bool is_split_name(const std::string& name) {
  const auto good = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-' || letter == '.';
  };
  return !name.empty() && name != "." && !is_part_of_split(name) && std::ranges::all_of(name, good);
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

void describe_types(OpenGraphFile& h, const Describer& describe) {
  const auto datasets = hdf5::dataset_names(h.file);
  open_types(h, datasets);
  check_names_of_types(h, datasets, describe);
  const char* owner = h.info.typed ? "the type" : "the graph";
  for (std::size_t t = 0; t < h.types.size(); ++t) {
    const auto vertices = h.info.schema.types()[t].size();
    auto& info = h.info.types[t];
    describe_vertices(h.types[t], vertices, owner, describe, info);
    for (std::size_t s = 0; s < info.splits.size(); ++s)
      describe_split(h.types[t].splits[s], vertices, owner, describe, info.splits[s]);
  }
}

void describe_relations(OpenGraphFile& h, const Describer& describe) {
  open_relations(h);
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

}  // namespace espalier

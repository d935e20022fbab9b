// What an open graph file must be: the checks of shapes and types of its data sets, none of whose
// contents is read. They throw UserError(kInput) on all ranks or on none.
#include <algorithm>
#include <set>

#include "espalier/base/escape.hpp"
#include "espalier/dense/paired_rows.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace {

// ---- checks of one data set ----

void require(const OpenGraphFile& h, const hdf5::Dataset& dataset) {
  if (!dataset.exists()) fail(h, "there is no dataset {}", dataset.name);
}
void check_dimensions(const OpenGraphFile& h, const hdf5::Dataset& dataset, std::size_t least,
                      std::size_t most) {
  if (dataset.shape.size() < least || dataset.shape.size() > most)
    fail(h, "{} has {} dimensions, expected {}", dataset.name, dataset.shape.size(),
         least == most ? std::to_string(least) : fmt::format("{} or {}", least, most));
}
void check_length(const OpenGraphFile& h, const hdf5::Dataset& dataset, std::int64_t rows, const char* what,
                  const char* owner = "the graph") {
  if (dataset.rows() != rows)
    fail(h, "{} has {} rows, but {} has {} {}", dataset.name, dataset.rows(), owner, rows, what);
}
void check_integers(const OpenGraphFile& h, const hdf5::Dataset& dataset) {
  if (!dataset.is_integer()) fail(h, "{} does not hold integers", dataset.name);
}
void check_numbers(const OpenGraphFile& h, const hdf5::Dataset& dataset) {
  if (!dataset.is_number()) fail(h, "{} does not hold numbers", dataset.name);
}

// A list of whole numbers, which must be there.
void describe_list(const OpenGraphFile& h, const hdf5::Dataset& dataset) {
  require(h, dataset);
  check_dimensions(h, dataset, 1, 1);
  check_integers(h, dataset);
}

// ---- opening ----

// Names of vertices, classes or columns. What somebody put into a file whose digest is over all
// that it has is nobody's.
hdf5::Dataset open_names(const OpenGraphFile& h, const std::string& name) {
  auto names = hdf5::open_dataset(h.file, name);
  std::string digest;
  if (!names.exists() || h.view.verify == Verify::kRenew ||
      !hdf5::read_text_attribute(h.file, "digest", digest) ||
      hdf5::read_text_attribute(names.handle, "digest", digest))
    return names;
  names.handle = {};
  return names;
}

// Of the features in a group, "/nodes/TYPE/".
OpenColumns open_columns(const OpenGraphFile& h, const std::string& group) {
  return {open_names(h, group + kFeatureNames), open_names(h, group + kFeatureScales)};
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
    open.columns = open_columns(h, "/nodes/" + in);
    open_splits(h, find_splits(datasets, in), in);
  }
}

void open_relations(OpenGraphFile& h) {
  for (int r = 0; r < std::ssize(h.info.schema.relations()); ++r) {
    const auto in = h.info.typed ? h.info.schema.full_name(r) + "/" : std::string();
    h.relations.push_back({hdf5::open_dataset(h.file, "/edges/" + in + "features"),
                           hdf5::open_dataset(h.file, "/edges/" + in + "time"),
                           open_columns(h, "/edges/" + in)});
  }
}

// ---- describing ----

// Names, few and short.
void describe_names(const OpenGraphFile& h, const hdf5::Dataset& names, std::int64_t most) {
  require(h, names);
  check_dimensions(h, names, 1, 1);
  if (names.rows() < 1 || names.rows() > most)
    fail(h, "{} has {} names, expected 1 to {}", names.name, names.rows(), most);
  if (names.type_size > kMostNameLetters)
    fail(h, "the names in {} have {} letters, expected {} at most", names.name, names.type_size,
         kMostNameLetters);
}

void check_texts(const OpenGraphFile& h, const hdf5::Dataset& names, const char* otherwise = "") {
  if (!hdf5::holds_fixed_texts(names))
    fail(h, "{} holds no texts of fixed length (h5py: dtype 'S'){}", names.name, otherwise);
  if (names.type_size > kMostNameLetters)
    fail(h, "the texts in {} have {} letters, expected {} at most", names.name, names.type_size,
         kMostNameLetters);
}

void describe_ids(const OpenGraphFile& h, const hdf5::Dataset& ids, std::int64_t vertices, const char* owner,
                  VertexInfo& info) {
  check_dimensions(h, ids, 1, 1);
  check_length(h, ids, vertices, "vertices", owner);
  // HDF5 would make one number of all that int64 does not hold.
  if (ids.is_integer() && (ids.type_signed || ids.type_size < 8)) {
    info.ids = IdKind::kNumbers;
  } else {
    check_texts(h, ids, ", and no int64");
    info.ids = IdKind::kTexts;
  }
}

void describe_class_names(const OpenGraphFile& h, const hdf5::Dataset& names, VertexInfo& info) {
  check_dimensions(h, names, 1, 1);
  check_texts(h, names);
  info.class_names = names.rows();
}

// What so many columns of features are.
void describe_columns(const OpenGraphFile& h, const OpenColumns& open, const std::string& features,
                      std::int64_t columns) {
  const auto& [names, scales] = open;
  if (scales.exists() && !names.exists()) fail(h, "there is {}, but no {}", scales.name, names.name);
  if (!names.exists()) return;
  check_dimensions(h, names, 1, 1);
  check_texts(h, names);
  if (names.rows() != columns)
    fail(h, "{} has {} names, but {} has {} columns", names.name, names.rows(), features, columns);
  if (!scales.exists()) return;
  check_dimensions(h, scales, 2, 2);
  if (!scales.is_float()) fail(h, "{} does not hold floating-point numbers", scales.name);
  if (scales.rows() != columns || scales.columns() != kScaleParts)
    fail(h, "{} is {} x {}, expected {} x {}", scales.name, scales.rows(), scales.columns(), columns,
         kScaleParts);
}

// indptr, indices and values are those of scipy.sparse.csr_array; the attribute says how many
// columns there are, as an empty one is in no entry.
void describe_sparse(const OpenGraphFile& h, const OpenType& open, std::int64_t vertices, const char* owner,
                     VertexInfo& info) {
  const auto& [indptr, indices, values] = open.sparse;
  for (const auto* list : {&indptr, &indices}) describe_list(h, *list);
  require(h, values);
  check_dimensions(h, values, 1, 1);
  check_numbers(h, values);
  if (indptr.rows() != vertices + 1)
    fail(h, "{} has {} entries, but {} has {} vertices; give one more", indptr.name, indptr.rows(), owner,
         vertices);
  if (values.rows() != indices.rows())
    fail(h, "{} has {} entries, but {} has {}", values.name, values.rows(), indices.name, indices.rows());
  if (!hdf5::read_integer_attribute(indices.handle, "columns", info.features))
    fail(h, "{}: its attribute columns is {}, not how many columns the features have", indices.name,
         hdf5::describe_attribute(indices.handle, "columns"));
  if (info.features < 1 || info.features > kMostPairedColumns)
    fail(h, "{}: its attribute columns is {}; sparse features have 1 to {} columns", indices.name,
         info.features, kMostPairedColumns);
  info.feature_entries = indices.rows();
}

void describe_vertices(const OpenGraphFile& h, const OpenType& open, std::int64_t vertices, const char* owner,
                       VertexInfo& info) {
  if (open.features.exists()) {
    check_dimensions(h, open.features, 2, 2);
    check_length(h, open.features, vertices, "vertices", owner);
    check_numbers(h, open.features);
    info.features = open.features.columns();
    info.half_features = open.features.is_half();
  }
  // A part of it may be missing.
  if (open.sparse.exists() || open.sparse.indices.exists() || open.sparse.values.exists())
    describe_sparse(h, open, vertices, owner, info);
  if (open.ids.exists()) describe_ids(h, open.ids, vertices, owner, info);
  if (open.class_names.exists()) describe_class_names(h, open.class_names, info);
  describe_columns(h, open.columns, open.features.name, info.features);
  if (!open.labels.exists()) return;
  check_dimensions(h, open.labels, 1, 2);
  check_length(h, open.labels, vertices, "vertices", owner);
  check_integers(h, open.labels);
  if (open.labels.columns() == 0) fail(h, "{} has no columns", open.labels.name);
  info.has_labels = true;
  // One column: a label each.
  info.multi_label = open.labels.shape.size() == 2 && open.labels.columns() != 1;
  if (info.multi_label) info.classes = open.labels.columns();
}

void describe_split(const OpenGraphFile& h, const std::array<hdf5::Dataset, 3>& parts, std::int64_t vertices,
                    const char* owner, SplitInfo& info) {
  if (!info.name.empty() && !is_split_name(info.name))
    fail(h, "there is a split \"{}\"; {}", excerpt(info.name), kSplitNameRule);
  std::int64_t* const sizes[] = {&info.train, &info.valid, &info.test};
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const auto& split = parts[s];
    if (!split.exists()) continue;
    check_dimensions(h, split, 1, 1);
    if (split.type_class == H5T_ENUM && split.rows() > 0)  // so h5py writes truth values
      fail(h, "{} is a mask: a truth value for each vertex of {}, not ids; write numpy.flatnonzero(mask)",
           split.name, owner);
    if (split.rows() > 0) check_integers(h, split);
    if (split.rows() > vertices)
      fail(h, "{} has {} ids, but {} has {} vertices", split.name, split.rows(), owner, vertices);
    *sizes[s] = split.rows();
  }
}

// What is called as features, labels or a split are, but of no type of the file, would be
// overlooked.
void check_names_of_types(const OpenGraphFile& h, const std::vector<std::string>& datasets) {
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
      fail(h, "there is a dataset /{}, but it is of none of the vertex types {}; it is called {}TYPE/{}",
           name, h.info.schema.type_names(), root, last);
    fail(h, "there is a dataset /{}, but in a file without types it is called {}{}", name, root, last);
  }
}

// What is of a relation that the file has not would be overlooked.
void check_names_of_relations(const OpenGraphFile& h) {
  if (!hdf5::has_link(h.file, "edges")) return;
  for (const auto& name : hdf5::dataset_names(h.file))
    if (name.starts_with("edges/") && std::ranges::none_of(h.relations, [&](const auto& of) {
          return std::ranges::any_of(
              std::array{&of.features, &of.times, &of.columns.names, &of.columns.scales},
              [&](const auto* dataset) { return dataset->name == "/" + name; });
        }))
      fail(h, "there is a dataset /{}, but features of edges are called {}, and their times ../time", name,
           h.info.typed ? "/edges/SOURCE.RELATION.TARGET/features, of a relation of the file"
                        : "/edges/features");
}

}  // namespace

bool is_split_name(const std::string& name) {
  const auto good = [](char letter) { return is_in_names(letter) || letter == '.'; };
  return !name.empty() && name != "." && !is_part_of_split(name) && std::ranges::all_of(name, good);
}

void describe_graph(OpenGraphFile& h) {
  for (const auto* dataset : {&h.indptr, &h.indices}) describe_list(h, *dataset);
  if (h.indptr.rows() < 2)
    fail(h, "/graph/indptr has {} entries, so the graph has no vertex", h.indptr.rows());
  h.info.nodes = h.indptr.rows() - 1;
  h.info.edges = h.indices.rows();
  h.info.wide_indices = h.indices.type_size > 4 || (h.indices.type_size == 4 && !h.indices.type_signed);
  h.info.weighted = h.weights.exists();
  if (!h.info.weighted) return;
  check_dimensions(h, h.weights, 1, 1);
  check_length(h, h.weights, h.info.edges, "edges");
  check_numbers(h, h.weights);
}

void describe_schema(OpenGraphFile& h) {
  describe_names(h, h.type_name, kMostTypes);
  describe_names(h, h.relation_name, kMostRelations);
  for (const auto* list : {&h.type_offset, &h.relation_source, &h.relation_target, &h.relation_inverse,
                           &h.segment_ptr, &h.segment_relation, &h.segment_begin})
    describe_list(h, *list);
  if (h.type_offset.rows() != h.type_name.rows() + 1)
    fail(h, "/types/offset has {} entries for {} types; give one more than types", h.type_offset.rows(),
         h.type_name.rows());
  for (const auto* list : {&h.relation_source, &h.relation_target, &h.relation_inverse})
    if (list->rows() != h.relation_name.rows())
      fail(h, "{} has {} entries for {} relations", list->name, list->rows(), h.relation_name.rows());
  if (h.segment_ptr.rows() != h.info.nodes + 1)
    fail(h, "/graph/segment_ptr has {} entries, but the graph has {} vertices; give one more",
         h.segment_ptr.rows(), h.info.nodes);
  if (h.segment_begin.rows() != h.segment_relation.rows())
    fail(h, "/graph/segment_begin has {} entries, but /graph/segment_relation has {}", h.segment_begin.rows(),
         h.segment_relation.rows());
}

void describe_types(OpenGraphFile& h) {
  const auto datasets = hdf5::dataset_names(h.file);
  open_types(h, datasets);
  check_names_of_types(h, datasets);
  const char* owner = h.info.typed ? "the type" : "the graph";
  for (std::size_t t = 0; t < h.types.size(); ++t) {
    const auto vertices = h.info.schema.types()[t].size();
    auto& info = h.info.types[t];
    describe_vertices(h, h.types[t], vertices, owner, info);
    for (std::size_t s = 0; s < info.splits.size(); ++s)
      describe_split(h, h.types[t].splits[s], vertices, owner, info.splits[s]);
  }
}

void describe_relations(OpenGraphFile& h) {
  open_relations(h);
  check_names_of_relations(h);
  const bool one = h.relations.size() == 1;
  for (auto& [features, times, columns, info] : h.relations) {
    if (features.exists()) {
      check_dimensions(h, features, 2, 2);
      check_numbers(h, features);
      if (one) check_length(h, features, h.info.edges, "edges");
      if (features.rows() > h.info.edges)
        fail(h, "{} has {} rows, but all relations together have {} edges", features.name, features.rows(),
             h.info.edges);
      if (features.columns() > 0) info = {features.rows(), features.columns(), features.is_half()};
    }
    describe_columns(h, columns, features.name, info.features);
    h.info.edge_features.push_back(one || h.view.apart ? info : EdgeInfo{});
    if (times.exists()) {
      describe_list(h, times);
      if (one) check_length(h, times, h.info.edges, "edges");
    }
    h.info.edge_times.push_back(times.exists() ? times.rows() : 0);
  }
}

}  // namespace espalier

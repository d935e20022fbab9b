// What an open graph file must be: the checks of shapes and types of its data sets, none of whose
// contents is read. They throw UserError(kInput) on all ranks or on none.
#include <algorithm>
#include <set>

#include "espalier/base/text.hpp"
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

void open_columns(OpenGraphFile& h, const std::vector<std::string>& datasets) {
  const auto open = [&](const ColumnAt& at) {
    const auto path = path_of(at, h.schema());
    h.columns[at] = only_names(path) ? open_names(h, path) : hdf5::open_dataset(h.file, path);
  };
  const auto types = std::ssize(h.info.schema.types());
  h.info.types.resize(types);
  for (int t = 0; t < types; ++t)
    for (const auto& name : find_splits(datasets, h.info.typed ? h.info.schema.types()[t].name + "/" : ""))
      h.info.types[t].splits.emplace_back().name = name;
  for (const auto& line : column_table()) {
    for (int owner = 0; owner < owners_of(h, line.of); ++owner) {
      if (line.of != Of::kSplit)
        open({line.column, owner});
      else
        for (const auto& split : h.info.types[owner].splits) open({line.column, owner, split.name});
    }
  }
}

// What is called as a column is, but of no type or relation of the file, would be overlooked.
void check_names(const OpenGraphFile& h, const std::vector<std::string>& datasets) {
  std::set<std::string> known;
  for (const auto* opened : h.datasets()) known.insert(opened->name);
  for (const auto& dataset : datasets) {
    const auto name = "/" + dataset;
    if (known.contains(name) || only_names(name)) continue;
    if (name.starts_with("/links/"))
      fail(h,
           "there is a dataset {}, but links have /links/relations, graph_relations and, in train, valid and "
           "test, head, tail, relation, negative_tails, negative_heads and non_links",
           name);
    if (name.starts_with("/edges/"))
      fail(h, "there is a dataset {}, but features of edges are called {}, and their times ../time", name,
           h.info.typed ? "/edges/SOURCE.RELATION.TARGET/features, of a relation of the file"
                        : "/edges/features");
    for (const auto& line : column_table()) {
      const auto folder = fmt::format("/{}/", h.info.typed ? line.typed_folder : line.folder);
      if (!name.starts_with(folder) || !name.ends_with(std::string("/") + line.name)) continue;
      if (h.info.typed)
        fail(h, "there is a dataset {}, but it is of none of the vertex types {}; it is called {}TYPE/{}",
             name, h.info.schema.type_names(), folder, line.name);
      fail(h, "there is a dataset {}, but in a file without types it is called {}{}", name, folder,
           line.name);
    }
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

// HDF5 would make one number of all that int64 does not hold.
bool holds_numbers(const hdf5::Dataset& ids) {
  return ids.is_integer() && (ids.type_signed || ids.type_size < 8);
}

void check_kind(const OpenGraphFile& h, const ColumnLine& line, const hdf5::Dataset& dataset) {
  if (line.holds == Holds::kNumbers) check_numbers(h, dataset);
  if (line.holds == Holds::kTexts) check_texts(h, dataset);
  if (line.holds == Holds::kIds && !holds_numbers(dataset)) check_texts(h, dataset, ", and no int64");
  if (line.holds != Holds::kIntegers) return;
  if (line.of == Of::kSplit && dataset.rows() == 0) return;     // of which h5py makes float64
  if (line.of == Of::kSplit && dataset.type_class == H5T_ENUM)  // so h5py writes truth values
    fail(h, "{} is a mask: a truth value for each vertex, not ids; write numpy.flatnonzero(mask)",
         dataset.name);
  check_integers(h, dataset);
}

// What the table says of a column.
void check_column(const OpenGraphFile& h, const ColumnAt& at, const hdf5::Dataset& dataset) {
  const auto& line = line_of(at.column);
  const std::string_view things = line.a_row_for_each;
  check_dimensions(h, dataset, line.least, line.most);
  if (things == "vertices")
    check_length(h, dataset, h.info.schema.types()[at.owner].size(), "vertices",
                 h.info.typed ? "the type" : "the graph");
  if (things == "edges" && h.info.schema.relations().size() == 1)
    check_length(h, dataset, h.info.edges, "edges");
  if (things == "edges" && dataset.rows() > h.info.edges)
    fail(h, "{} has {} rows, but all relations together have {} edges", dataset.name, dataset.rows(),
         h.info.edges);
  if (things == "links") {
    const auto& heads = h.at(Column::kHead, at.owner);
    if (!heads.exists()) fail(h, "there is no dataset {}, but others of its split", heads.name);
    check_length(h, dataset, heads.rows(), "links", "its split");
  }
  check_kind(h, line, dataset);
}

// indptr, indices and values are those of scipy.sparse.csr_array; the attribute says how many
// columns there are, as an empty one is in no entry.
void describe_sparse(const OpenGraphFile& h, int type, VertexInfo& info) {
  const auto &indptr = h.at(Column::kSparseBegins, type), &indices = h.at(Column::kSparseColumns, type),
             &values = h.at(Column::kSparseValues, type);
  if (!indptr.exists() && !indices.exists() && !values.exists()) return;
  for (const auto* one : {&indptr, &indices, &values}) require(h, *one);
  const auto vertices = h.info.schema.types()[type].size();
  if (indptr.rows() != vertices + 1)
    fail(h, "{} has {} entries, but {} has {} vertices; give one more", indptr.name, indptr.rows(),
         h.info.typed ? "the type" : "the graph", vertices);
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

// What so many columns of features are.
void describe_names_of_columns(const OpenGraphFile& h, Column names_of, Column scales_of, int owner,
                               const std::string& features, std::int64_t columns) {
  const auto &names = h.at(names_of, owner), &scales = h.at(scales_of, owner);
  if (scales.exists() && !names.exists()) fail(h, "there is {}, but no {}", scales.name, names.name);
  if (names.exists() && names.rows() != columns)
    fail(h, "{} has {} names, but {} has {} columns", names.name, names.rows(), features, columns);
  if (!scales.exists()) return;
  if (!scales.is_float()) fail(h, "{} does not hold floating-point numbers", scales.name);
  if (scales.rows() != columns || scales.columns() != kScaleParts)
    fail(h, "{} is {} x {}, expected {} x {}", scales.name, scales.rows(), scales.columns(), columns,
         kScaleParts);
}

void describe_type(const OpenGraphFile& h, int type, VertexInfo& info) {
  if (const auto& features = h.at(Column::kFeatures, type); features.exists()) {
    info.features = features.columns();
    info.half_features = features.is_half();
  }
  describe_sparse(h, type, info);
  if (const auto& ids = h.at(Column::kIds, type); ids.exists())
    info.ids = holds_numbers(ids) ? IdKind::kNumbers : IdKind::kTexts;
  if (h.has(Column::kClassNames, type)) info.class_names = h.at(Column::kClassNames, type).rows();
  describe_names_of_columns(h, Column::kFeatureNames, Column::kFeatureScales, type,
                            h.at(Column::kFeatures, type).name, info.features);
  const auto& labels = h.at(Column::kLabels, type);
  if (!labels.exists()) return;
  if (labels.columns() == 0) fail(h, "{} has no columns", labels.name);
  info.has_labels = true;
  // One column: a label each.
  info.multi_label = labels.shape.size() == 2 && labels.columns() != 1;
  if (info.multi_label) info.classes = labels.columns();
}

void describe_split(const OpenGraphFile& h, int type, SplitInfo& info) {
  if (!info.name.empty() && !is_split_name(info.name))
    fail(h, "there is a split \"{}\"; {}", excerpt(info.name), kSplitNameRule);
  const auto vertices = h.info.schema.types()[type].size();
  const auto size_of = [&](Column column) {
    const auto& split = h.columns.at({column, type, info.name});
    if (split.rows() > vertices)
      fail(h, "{} has {} ids, but {} has {} vertices", split.name, split.rows(),
           h.info.typed ? "the type" : "the graph", vertices);
    return split.rows();
  };
  info.train = size_of(Column::kTrain);
  info.valid = size_of(Column::kValid);
  info.test = size_of(Column::kTest);
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

int owners_of(const OpenGraphFile& h, Of of) {
  const auto owners = of == Of::kRelation    ? std::ssize(h.info.schema.relations())
                      : of == Of::kLinkSplit ? std::ssize(kSplitNames)
                      : of == Of::kLinks     ? 1
                                             : std::ssize(h.info.schema.types());
  return static_cast<int>(owners);
}

EdgeInfo edge_info(const OpenGraphFile& h, int relation) {
  const auto& features = h.at(Column::kEdgeFeatures, relation);
  if (!features.exists() || features.columns() == 0) return {};
  return {features.rows(), features.columns(), features.is_half()};
}

void describe_columns(OpenGraphFile& h) {
  const auto datasets = hdf5::dataset_names(h.file);
  describe_links(h);
  open_columns(h, datasets);
  check_names(h, datasets);
  for (const auto& [at, dataset] : h.columns)
    if (dataset.exists()) check_column(h, at, dataset);
  for (int type = 0; type < std::ssize(h.info.types); ++type) {
    describe_type(h, type, h.info.types[type]);
    for (auto& split : h.info.types[type].splits) describe_split(h, type, split);
  }
  const auto relations = static_cast<int>(h.info.schema.relations().size());
  for (int r = 0; r < relations; ++r) {
    h.info.edge_features.push_back(relations == 1 || h.view.apart ? edge_info(h, r) : EdgeInfo{});
    h.info.edge_times.push_back(h.at(Column::kEdgeTime, r).rows());
    describe_names_of_columns(h, Column::kEdgeFeatureNames, Column::kEdgeFeatureScales, r,
                              h.at(Column::kEdgeFeatures, r).name, edge_info(h, r).features);
  }
  describe_link_columns(h);
}

}  // namespace espalier

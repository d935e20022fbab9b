// Reading what a file knows of vertices, features, labels and splits, and the features of edges.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "checked_read.hpp"
#include "espalier/base/escape.hpp"
#include "espalier/graph/degrees.hpp"
#include "espalier/graph/row_range.hpp"

namespace espalier {

// ---- features ----

namespace {

bool is_finite(float x) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7f800000u) != 0x7f800000u;
}
bool is_finite(Half x) {
  return (x.bits & 0x7c00u) != 0x7c00u;
}

template <class T>
void check_finite(const OpenGraphFile& h, const std::string& name, const hdf5::Slab& slab,
                  std::span<const T> values, std::int64_t first, const char* wrong) {
  bool all = true;
  for (const T x : values) all &= is_finite(x);
  if (all) return;
  const auto bad = std::find_if(values.begin(), values.end(), [](T x) { return !is_finite(x); });
  const auto place = first + (bad - values.begin());
  fail(h, "{}: row {}, column {} is {}", name, slab.begin + place / slab.columns, place % slab.columns,
       wrong);
}

template <class Stored>
Buffer<Stored> read_finite(OpenGraphFile& h, const hdf5::Dataset& features, const hdf5::Slab& slab) {
  return read_checked<Stored>(h, features, slab,
                              InPieces{[&](std::span<const Stored> piece, std::int64_t first) {
                                check_finite(h, features.name, slab, piece, first, "not a finite number");
                              }});
}

// Collective. A slab of a data set that holds float16, or does not, as T.
template <class T>
Matrix<T> read_matrix(OpenGraphFile& h, const hdf5::Dataset& features, const hdf5::Slab& slab, bool half) {
  Matrix<T> rows(slab.end - slab.begin, slab.columns);
  if (std::is_same_v<T, Half> == half) {
    rows.data = read_finite<T>(h, features, slab);
  } else if constexpr (std::is_same_v<T, Half>) {
    const auto stored = read_finite<float>(h, features, slab);
    std::transform(stored.begin(), stored.end(), rows.data.begin(), [](float x) { return to_half(x); });
    agree(h.comm, [&] {
      check_finite(h, features.name, slab, std::span<const Half>(rows.data), 0, "too large for float16");
    });
  } else {
    const auto stored = read_finite<Half>(h, features, slab);
    std::transform(stored.begin(), stored.end(), rows.data.begin(), [](Half x) { return to_float(x); });
  }
  return rows;
}

// The type, whose vertices these are.
const VertexType& type_of_range(const OpenGraphFile& h, int type, std::int64_t begin, std::int64_t end) {
  const auto& of = h.info.schema.types()[type];
  ESPALIER_CHECK(of.begin <= begin && begin <= end && end <= of.end, "vertices [{}, {}) of type {}", begin,
                 end, of.name);
  return of;
}

}  // namespace

template <class T>
Matrix<T> GraphFile::read_features(std::int64_t begin, std::int64_t end, int type) const {
  auto& h = *open_;
  const auto& of = type_of_range(h, type, begin, end);
  const auto& features = h.types[type].features;
  if constexpr (std::is_same_v<T, float>)
    if (h.types[type].sparse.exists())
      return read_pairs(h, static_cast<std::size_t>(type), begin - of.begin, end - of.begin);
  if (!features.exists()) input_error("graph file {}: has no {}", h.path, features.name);
  const hdf5::Slab slab{begin - of.begin, end - of.begin, h.info.types[type].features};
  return read_matrix<T>(h, features, slab, h.info.types[type].half_features);
}

std::optional<GraphFile::PlainRows> GraphFile::plain_features(int type) const {
  const auto& features = open_->types[type].features;
  if (!features.exists() || open_->in_memory) return std::nullopt;
  const auto offset = hdf5::plain_offset(features);
  if (offset < 0) return std::nullopt;
  return PlainRows{features.name, offset, features.rows(), features.is_half()};
}

template Matrix<float> GraphFile::read_features(std::int64_t, std::int64_t, int) const;
template Matrix<Half> GraphFile::read_features(std::int64_t, std::int64_t, int) const;

template <class T>
Matrix<T> GraphFile::read_edge_features(int relation, std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  const auto& [features, times, columns, info] = h.relations[relation];
  if (!features.exists()) input_error("graph file {}: has no {}", h.path, features.name);
  ESPALIER_CHECK(0 <= begin && begin <= end && end <= info.entries, "entries [{}, {}) of {}", begin, end,
                 info.entries);
  return read_matrix<T>(h, features, {begin, end, info.features}, info.half);
}

template Matrix<float> GraphFile::read_edge_features(int, std::int64_t, std::int64_t) const;
template Matrix<Half> GraphFile::read_edge_features(int, std::int64_t, std::int64_t) const;

Buffer<std::int64_t> GraphFile::read_edge_times(int relation, std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  const auto& times = h.relations[relation].times;
  if (!times.exists()) input_error("graph file {}: has no {}", h.path, times.name);
  ESPALIER_CHECK(0 <= begin && begin <= end && end <= times.rows(), "entries [{}, {}) of {}", begin, end,
                 times.rows());
  return read_checked<std::int64_t>(h, times, {begin, end, 1}, [](const auto&) {});
}

// ---- ids ----

std::vector<std::string> GraphFile::read_ids(std::int64_t begin, std::int64_t end, int type) const {
  auto& h = *open_;
  const auto first = begin - type_of_range(h, type, begin, end).begin;
  const auto& dataset = h.types[type].ids;
  ESPALIER_CHECK(dataset.exists(), "type {} has no ids", type);
  std::vector<std::string> ids;
  if (h.info.types[type].ids == IdKind::kNumbers) {
    for (const auto id : read_number_ids(begin, end, type)) ids.push_back(std::to_string(id));
    return ids;
  }
  const bool good = hdf5::read_texts(dataset, first, first + end - begin, ids);
  agree(h.comm, [&] {
    if (!good) fail(h, "{} is no list of texts of fixed length (h5py: dtype 'S')", dataset.name);
  });
  if (h.view.verify == Verify::kNo) return ids;
  const auto hashes = hashes_of(ids);
  check_content(h, dataset, first, hashes.size(),
                content_digest(std::span<const std::int64_t>(hashes), first));
  return ids;
}

Buffer<std::int64_t> GraphFile::read_number_ids(std::int64_t begin, std::int64_t end, int type) const {
  auto& h = *open_;
  const auto& of = type_of_range(h, type, begin, end);
  ESPALIER_CHECK(h.info.types[type].ids == IdKind::kNumbers, "type {} has no numbers", type);
  return read_checked<std::int64_t>(h, h.types[type].ids, {begin - of.begin, end - of.begin, 1},
                                    [](const auto&) {});
}

std::vector<std::string> GraphFile::read_class_names(int type) const {
  const auto& names = open_->types[type].class_names;
  return names.exists() ? read_names(*open_, names) : std::vector<std::string>();
}

void read_feature_columns(OpenGraphFile& h) {
  const auto read = [&](const OpenColumns& open) {
    if (!open.names.exists()) return;
    FeatureColumns columns{read_names(h, open.names)};
    agree(h.comm, [&] {
      if (const auto* name = name_of_two(columns))
        fail(h, "{} names two columns {}; give each a name of its own", open.names.name, excerpt(*name));
    });
    if (open.scales.exists()) {
      const auto scales =
          read_checked<double>(h, open.scales, {0, open.scales.rows(), kScaleParts}, [](const auto&) {});
      columns.scales.assign(scales.begin(), scales.end());
    }
    const auto group = open.names.name.substr(0, open.names.name.rfind('/') + 1);
    h.info.feature_columns.emplace(group, std::move(columns));
  };
  for (const auto& type : h.types) read(type.columns);
  for (const auto& relation : h.relations) read(relation.columns);
}

// ---- labels and splits ----

namespace {

// The type meant; labels and splits are of one.
int type_of(const OpenGraphFile& h, int type) {
  if (type == GraphFile::kTarget) type = h.info.target;
  if (type < 0)
    input_error(
        "graph file {}: several of its vertex types have labels, or none: say with graph.target which one is "
        "meant ({})",
        h.path, h.info.schema.type_names());
  return type;
}

// The part of the vertices [begin, end) that is of a type; where it is none, an empty one in it.
RowRange part_of(const VertexType& type, std::int64_t begin, std::int64_t end) {
  const auto from = std::clamp(begin, type.begin, type.end);
  return {from, std::clamp(end, from, type.end)};
}

// The place of its first vertex in [begin, end).
std::int64_t place_in(const RowRange& part, std::int64_t begin) {
  return part.size() == 0 ? 0 : part.begin - begin;
}

}  // namespace

Buffer<std::int32_t> GraphFile::read_labels(std::int64_t begin, std::int64_t end, int type) const {
  auto& h = *open_;
  check_range(h, begin, end);
  type = type_of(h, type);
  const auto& dataset = h.types[type].labels;
  const auto& info = h.info.types[type];
  const auto& of = h.info.schema.types()[type];
  if (!dataset.exists()) input_error("graph file {}: has no {}", h.path, dataset.name);
  ESPALIER_CHECK(!info.multi_label, "{} has several labels per vertex", h.path);
  const auto mine = part_of(of, begin, end);
  const hdf5::Slab slab{mine.begin - of.begin, mine.end - of.begin, 1};
  auto labels = read_checked<std::int32_t>(h, dataset, slab, [&](const auto& read) {
    for (std::size_t v = 0; v < read.size(); ++v)
      if (read[v] < -1 || read[v] >= info.classes)
        fail(h, "{}: vertex {} has label {}; labels are -1 (none) or 0 to {}", dataset.name,
             slab.begin + static_cast<std::int64_t>(v), read[v], info.classes - 1);
  });
  if (mine.size() == end - begin) return labels;
  Buffer<std::int32_t> all(end - begin, -1);
  std::ranges::copy(labels, all.begin() + place_in(mine, begin));
  return all;
}

Matrix<std::uint8_t> GraphFile::read_multi_labels(std::int64_t begin, std::int64_t end, int type) const {
  auto& h = *open_;
  check_range(h, begin, end);
  type = type_of(h, type);
  const auto& dataset = h.types[type].labels;
  const auto& info = h.info.types[type];
  const auto& of = h.info.schema.types()[type];
  ESPALIER_CHECK(info.multi_label, "{} has one label per vertex", h.path);
  const auto mine = part_of(of, begin, end);
  const hdf5::Slab slab{mine.begin - of.begin, mine.end - of.begin, info.classes};
  const auto check = [&](const auto& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != 0 && values[i] != 1 && values[i] != kUnknownLabel && values[i] != -1)
        fail(h, "{}: row {} holds {}; several labels are given as 0 or 1, or 255 where unknown", dataset.name,
             slab.begin + static_cast<std::int64_t>(i) / slab.columns, values[i]);
  };
  Matrix<std::uint8_t> rows(end - begin, info.classes);
  const auto to = rows.data.begin() + place_in(mine, begin) * info.classes;
  if (mine.size() < end - begin) std::ranges::fill(rows.data, kUnknownLabel);
  if (dataset.type_size == 1 && !dataset.type_signed) {
    std::ranges::copy(read_checked<std::uint8_t>(h, dataset, slab, check), to);
  } else {  // HDF5 would make 255 of what is larger, and 0 of what is negative
    const auto wide = read_checked<std::int32_t>(h, dataset, slab, check);
    std::ranges::transform(wide, to, [](std::int32_t x) { return static_cast<std::uint8_t>(x); });
  }
  return rows;
}

Buffer<std::int64_t> GraphFile::read_split(Split split, int type) const {
  auto& h = *open_;
  if (type == kTarget && h.info.target < 0) return {};
  type = type_of(h, type);
  const int place = h.info.types[type].split;
  return place < 0 ? Buffer<std::int64_t>() : read_split(split, type, static_cast<std::size_t>(place));
}

Buffer<std::int64_t> GraphFile::read_split(Split split, int type, std::size_t place) const {
  auto& h = *open_;
  const auto& dataset = h.types[type].splits[place][static_cast<std::size_t>(split)];
  const auto& of = h.info.schema.types()[type];
  if (!dataset.exists()) return {};
  auto read = read_checked<std::int64_t>(h, dataset, {0, dataset.rows(), 1}, [&](const auto& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= of.size())
        fail(h, "{}: entry {} is {}, but {} has vertices 0 to {}", dataset.name, i, ids[i],
             h.info.typed ? "the type" : "the graph", of.size() - 1);
      // A mask's first three entries cannot ascend.
      if (i > 0 && i <= 2 && ids[i] <= ids[i - 1] && ids[i - 1] <= 1 && dataset.rows() == of.size())
        fail(h,
             "{}: ids are not strictly ascending; it has an entry of 0 or 1 for each vertex, as a mask has: "
             "write numpy.flatnonzero(mask)",
             dataset.name);
      if (i > 0 && ids[i] <= ids[i - 1])
        fail(h, "{}: ids are not strictly ascending (entry {} is {} after {})", dataset.name, i, ids[i],
             ids[i - 1]);
    }
  });
  if (of.begin > 0)
    for (auto& id : read) id += of.begin;
  return read;
}

namespace {

// Collective. One split of a type; `labels`: of the vertices `range`, empty where there are none.
void check_split(const Communicator& comm, const GraphFile& file, int type, std::size_t place,
                 const RowRange& range, const Buffer<std::int32_t>& labels) {
  const auto& of = file.info().schema.types()[type];
  const Buffer<std::int64_t> parts[] = {file.read_split(Split::kTrain, type, place),
                                        file.read_split(Split::kValid, type, place),
                                        file.read_split(Split::kTest, type, place)};
  const auto& name = file.info().types[type].splits[place].name;
  const auto folder = (file.info().typed ? of.name + "/" : "") + (name.empty() ? "" : name + "/");
  std::vector<signed char> owner(range.size(), -1);
  agree(comm, [&] {
    for (std::size_t s = 0; s < kSplitNames.size(); ++s) {
      const auto first = std::lower_bound(parts[s].begin(), parts[s].end(), range.begin);
      for (auto id = first; id != parts[s].end() && *id < range.end; ++id) {
        const auto at = static_cast<std::size_t>(*id - range.begin);
        if (owner[at] >= 0)
          input_error(
              "graph file {}: vertex {} is in /split/{}{} and in /split/{}{}; splits must not overlap",
              file.path(), *id - of.begin, folder, kSplitNames[owner[at]], folder, kSplitNames[s]);
        owner[at] = static_cast<signed char>(s);
        if (!labels.empty() && labels[at] < 0)
          input_error("graph file {}: vertex {} of /split/{}{} has no label (-1); leave it out of the split",
                      file.path(), *id - of.begin, folder, kSplitNames[s]);
      }
    }
  });
}

void check_splits_of(const Communicator& comm, const GraphFile& file, int type) {
  const auto& info = file.info().types[type];
  const auto& of = file.info().schema.types()[type];
  const auto places = even_range(of.size(), comm.size(), comm.rank());
  const RowRange range{of.begin + places.begin, of.begin + places.end};
  const bool labelled = info.classes > 0 && !info.multi_label;
  const auto labels = labelled ? file.read_labels(range.begin, range.end, type) : Buffer<std::int32_t>();
  for (std::size_t place = 0; place < info.splits.size(); ++place)
    check_split(comm, file, type, place, range, labels);
}

}  // namespace

void check_splits(const Communicator& comm, const GraphFile& file) {
  for (int type = 0; type < std::ssize(file.info().types); ++type) check_splits_of(comm, file, type);
}

void check_edge_features(const GraphFile& file, std::span<const std::int64_t> entries) {
  const auto& info = file.info();
  ESPALIER_CHECK(entries.size() == info.edge_features.size(), "entries of {} relations", entries.size());
  for (int r = 0; r < std::ssize(info.edge_features); ++r) {
    const auto& of = info.edge_features[r];
    if (of.has() && of.entries != entries[r])
      input_error("graph file {}: /edges/{}/features has {} rows, but the relation has {} edges; {}",
                  file.path(), info.schema.full_name(r), of.entries, entries[r], kWriteAgain);
    if (info.edge_times[r] != 0 && info.edge_times[r] != entries[r])
      input_error("graph file {}: /edges/{}/time has {} entries, but the relation has {} edges; {}",
                  file.path(), info.schema.full_name(r), info.edge_times[r], entries[r], kWriteAgain);
  }
}

void check_edge_features(const Communicator& comm, const GraphFile& file) {
  std::vector<std::int64_t> entries(file.info().schema.relations().size(), 0);
  in_row_parts(comm, file.info().nodes, [&](std::int64_t begin, std::int64_t end) {
    const auto counts = file.count_entries(begin, end);
    for (std::size_t r = 0; r < entries.size(); ++r) entries[r] += counts[r];
  });
  comm.all_reduce(std::span(entries), Reduction::kSum, "graph file");
  check_edge_features(file, entries);
}

void read_everything(const Communicator& comm, const GraphFile& file) {
  constexpr std::int64_t kValuesPerPart = std::int64_t{1} << 26;
  const auto& info = file.info();
  // Calls read(begin, end) for my share of the vertices `of`, as often on every rank.
  const auto in_parts = [&](RowRange of, std::int64_t values, auto read) {
    const auto mine = even_range(of.size(), comm.size(), comm.rank());
    const auto parts = 1 + values / comm.size() / kValuesPerPart;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto rows = even_range(mine.size(), parts, part);
      read(of.begin + mine.begin + rows.begin, of.begin + mine.begin + rows.end);
    }
  };
  const bool apart = file.view().apart || info.edge_features.size() == 1;
  std::vector<std::int64_t> entries(info.edge_features.size(), 0);
  in_parts({0, info.nodes}, info.edges, [&](auto begin, auto end) {
    const auto rows = file.read_rows<std::int64_t>(begin, end);
    if (!apart) return;
    for (const auto column : rows.indices) ++entries[info.schema.relation_of(column)];
  });
  comm.all_reduce(std::span(entries), Reduction::kSum, "graph file");
  if (apart) check_edge_features(file, entries);
  for (int type = 0; type < std::ssize(info.types); ++type) {
    const auto& of = info.types[type];
    const RowRange vertices{info.schema.types()[type].begin, info.schema.types()[type].end};
    if (of.features > 0)
      in_parts(vertices, vertices.size() * (of.pairs > 0 ? 2 * of.pairs : of.features),
               [&](auto begin, auto end) {
                 of.half_features ? void(file.read_features<Half>(begin, end, type))
                                  : void(file.read_features<float>(begin, end, type));
               });
    if (of.has_labels)
      in_parts(vertices, vertices.size() * (of.multi_label ? of.classes : 1), [&](auto begin, auto end) {
        of.multi_label ? void(file.read_multi_labels(begin, end, type))
                       : void(file.read_labels(begin, end, type));
      });
    if (of.ids != IdKind::kNone) {
      const auto letters = static_cast<std::int64_t>(file.open_->types[type].ids.type_size);
      // Read once more as a text of its own.
      in_parts(vertices, vertices.size() * (4 + letters / 4),
               [&](auto begin, auto end) { file.read_ids(begin, end, type); });
    }
    file.read_class_names(type);
    for (std::size_t place = 0; place < of.splits.size(); ++place)
      for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
        file.read_split(split, type, place);
  }
  for (int r = 0; r < std::ssize(file.open_->relations); ++r) {
    const auto& of = file.open_->relations[r].info;
    if (of.has())
      in_parts({0, of.entries}, of.entries * of.features, [&](auto begin, auto end) {
        of.half ? void(file.read_edge_features<Half>(r, begin, end))
                : void(file.read_edge_features<float>(r, begin, end));
      });
    const auto timed = info.edge_times[r];
    if (timed > 0)
      in_parts({0, timed}, timed, [&](auto begin, auto end) { file.read_edge_times(r, begin, end); });
  }
  check_links(comm, file);
}

}  // namespace espalier

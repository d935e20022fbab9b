// Reading what a file knows of vertices, edges and links, column by column.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "espalier/base/row_range.hpp"
#include "espalier/base/text.hpp"
#include "open_graph_file.hpp"

namespace espalier {

// ---- checks of what was read ----

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

// Pieces of a column whose rows from `slab.begin` on are read; `first`: the place in the slab.
void check_entries(const OpenGraphFile& h, const ColumnAt&, const hdf5::Dataset& dataset,
                   const hdf5::Slab& slab, std::span<const float> values, std::int64_t first) {
  check_finite(h, dataset.name, slab, values, first, "not a finite number");
}
void check_entries(const OpenGraphFile& h, const ColumnAt&, const hdf5::Dataset& dataset,
                   const hdf5::Slab& slab, std::span<const Half> values, std::int64_t first) {
  check_finite(h, dataset.name, slab, values, first, "not a finite number");
}

void check_entries(const OpenGraphFile&, const ColumnAt&, const hdf5::Dataset&, const hdf5::Slab&,
                   std::span<const double>, std::int64_t) {}

template <class T>
void check_several_labels(const OpenGraphFile& h, const hdf5::Dataset& dataset, const hdf5::Slab& slab,
                          std::span<const T> values, std::int64_t first) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0 && values[i] != 1 && values[i] != kUnknownLabel && values[i] != -1)
      fail(h, "{}: row {} holds {}; several labels are given as 0 or 1, or 255 where unknown", dataset.name,
           slab.begin + (first + static_cast<std::int64_t>(i)) / slab.columns, values[i]);
}

// Of several labels for each vertex; as wide as those of a file may be.
void check_entries(const OpenGraphFile& h, const ColumnAt&, const hdf5::Dataset& dataset,
                   const hdf5::Slab& slab, std::span<const std::uint8_t> values, std::int64_t first) {
  check_several_labels(h, dataset, slab, values, first);
}
void check_entries(const OpenGraphFile& h, const ColumnAt& at, const hdf5::Dataset& dataset,
                   const hdf5::Slab& slab, std::span<const std::int32_t> values, std::int64_t first) {
  const auto place = [&](std::size_t k) { return slab.begin + first + static_cast<std::int64_t>(k); };
  if (at.column == Column::kLinkRelation) {
    for (std::size_t k = 0; k < values.size(); ++k) check_link_relation(h, dataset, place(k), values[k]);
    return;
  }
  const auto& info = h.info.types[at.owner];
  if (info.multi_label) return check_several_labels(h, dataset, slab, values, first);
  for (std::size_t v = 0; v < values.size(); ++v)
    if (values[v] < -1 || values[v] >= info.classes)
      fail(h, "{}: vertex {} has label {}; labels are -1 (none) or 0 to {}", dataset.name, place(v),
           values[v], info.classes - 1);
}

// Ends of links; times and ids may be any number.
void check_entries(const OpenGraphFile& h, const ColumnAt& at, const hdf5::Dataset& dataset,
                   const hdf5::Slab& slab, std::span<const std::int64_t> values, std::int64_t first) {
  if (line_of(at.column).of != Of::kLinkSplit) return;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (values[k] >= 0 && values[k] < h.info.nodes) continue;
    const auto place = first + static_cast<std::int64_t>(k);
    fail(h, "{}: {} {} names vertex {}, but the graph has vertices 0 to {}", dataset.name,
         slab.columns > 1 ? "row" : "entry", slab.begin + place / slab.columns, values[k], h.info.nodes - 1);
  }
}

// ---- reading ----

// Collective. Rows of a column as they are stored.
template <class Stored>
Buffer<Stored> read_stored(OpenGraphFile& h, const ColumnAt& at, const hdf5::Slab& slab) {
  const auto& dataset = h.columns.at(at);
  return read_checked<Stored>(h, dataset, slab,
                              InPieces{[&](std::span<const Stored> piece, std::int64_t first) {
                                check_entries(h, at, dataset, slab, piece, first);
                              }});
}

// The type, whose vertices these are.
const VertexType& type_of_range(const OpenGraphFile& h, int type, std::int64_t begin, std::int64_t end) {
  const auto& of = h.info.schema.types()[type];
  ESPALIER_CHECK(of.begin <= begin && begin <= end && end <= of.end, "vertices [{}, {}) of type {}", begin,
                 end, of.name);
  return of;
}

}  // namespace

int GraphFile::owners(Column column) const {
  return owners_of(*open_, line_of(column).of);
}

ColumnInfo GraphFile::column(Column column, int owner) const {
  const auto& dataset = open_->at(column, owner);
  const auto& line = line_of(column);
  if (!dataset.exists()) return {};
  auto stored = Stored::kInt64;
  if (!dataset.is_integer() && line.holds != Holds::kNumbers)
    return {Stored::kTexts, dataset.rows(), static_cast<std::int64_t>(dataset.type_size)};
  if (line.holds == Holds::kNumbers) stored = dataset.is_half() ? Stored::kHalf : Stored::kFloat;
  if (column == Column::kFeatureScales || column == Column::kEdgeFeatureScales) stored = Stored::kDouble;
  if (column == Column::kLinkRelation || column == Column::kLabels) stored = Stored::kInt32;
  if (column == Column::kLabels && open_->info.types[owner].multi_label && dataset.type_size == 1 &&
      !dataset.type_signed)  // of wider ones HDF5 would make 255 of what is larger
    stored = Stored::kByte;
  ColumnInfo info{stored, dataset.rows(), dataset.columns()};
  hdf5::read_text_attribute(dataset.handle, "unit", info.unit);
  return info;
}

template <class T>
Matrix<T> GraphFile::read(Column column, int owner, std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  const ColumnAt at{column, owner};
  const auto& dataset = h.columns.at(at);
  if (!dataset.exists()) input_error("graph file {}: has no {}", h.path, dataset.name);
  ESPALIER_CHECK(0 <= begin && begin <= end && end <= dataset.rows(), "rows [{}, {}) of {}, which has {}",
                 begin, end, dataset.name, dataset.rows());
  const hdf5::Slab slab{begin, end, dataset.columns()};
  Matrix<T> rows(end - begin, slab.columns);
  constexpr bool half = std::is_same_v<T, Half>;
  if constexpr (half || std::is_same_v<T, float>) {
    if (half == dataset.is_half()) {
      rows.data = read_stored<T>(h, at, slab);
    } else if constexpr (half) {
      const auto stored = read_stored<float>(h, at, slab);
      std::transform(stored.begin(), stored.end(), rows.data.begin(), [](float x) { return to_half(x); });
      agree(h.comm, [&] {
        check_finite(h, dataset.name, slab, std::span<const Half>(rows.data), 0, "too large for float16");
      });
    } else {
      const auto stored = read_stored<Half>(h, at, slab);
      std::transform(stored.begin(), stored.end(), rows.data.begin(), [](Half x) { return to_float(x); });
    }
  } else {
    rows.data = read_stored<T>(h, at, slab);
  }
  if constexpr (std::is_same_v<T, std::int64_t>)
    if (line_of(column).of == Of::kLinkSplit) check_link_types(h, at, begin, rows);
  return rows;
}

template Matrix<float> GraphFile::read(Column, int, std::int64_t, std::int64_t) const;
template Matrix<Half> GraphFile::read(Column, int, std::int64_t, std::int64_t) const;
template Matrix<double> GraphFile::read(Column, int, std::int64_t, std::int64_t) const;
template Matrix<std::uint8_t> GraphFile::read(Column, int, std::int64_t, std::int64_t) const;
template Matrix<std::int32_t> GraphFile::read(Column, int, std::int64_t, std::int64_t) const;
template Matrix<std::int64_t> GraphFile::read(Column, int, std::int64_t, std::int64_t) const;

std::vector<std::string> GraphFile::read_texts(Column column, int owner, std::int64_t begin,
                                               std::int64_t end) const {
  auto& h = *open_;
  const auto& dataset = h.at(column, owner);
  ESPALIER_CHECK(0 <= begin && begin <= end && end <= dataset.rows(), "texts [{}, {}) of {}, which has {}",
                 begin, end, dataset.name, dataset.rows());
  std::vector<std::string> texts;
  if (!dataset.exists()) return texts;
  if (dataset.is_integer()) {
    for (const auto id : read<std::int64_t>(column, owner, begin, end).data)
      texts.push_back(std::to_string(id));
    return texts;
  }
  return espalier::read_texts(h, dataset, begin, end);
}

void read_feature_columns(OpenGraphFile& h) {
  const auto scales_of = [](Column names) {
    return names == Column::kFeatureNames ? Column::kFeatureScales : Column::kEdgeFeatureScales;
  };
  for (const auto& [at, names] : h.columns) {
    if ((at.column != Column::kFeatureNames && at.column != Column::kEdgeFeatureNames) || !names.exists())
      continue;
    FeatureColumns columns{read_names(h, names)};
    agree(h.comm, [&] {
      if (const auto* name = name_of_two(columns))
        fail(h, "{} names two columns {}; give each a name of its own", names.name, excerpt(*name));
    });
    if (const auto& scales = h.at(scales_of(at.column), at.owner); scales.exists()) {
      const auto read = read_checked<double>(h, scales, {0, scales.rows(), kScaleParts}, [](const auto&) {});
      columns.scales.assign(read.begin(), read.end());
    }
    h.info.feature_columns.emplace(names.name.substr(0, names.name.rfind('/') + 1), std::move(columns));
  }
}

template <class T>
Matrix<T> GraphFile::read_features(std::int64_t begin, std::int64_t end, int type) const {
  const auto& of = type_of_range(*open_, type, begin, end);
  if constexpr (std::is_same_v<T, float>)
    if (open_->info.types[type].pairs > 0) return read_pairs(*open_, type, begin - of.begin, end - of.begin);
  return read<T>(Column::kFeatures, type, begin - of.begin, end - of.begin);
}

template Matrix<float> GraphFile::read_features(std::int64_t, std::int64_t, int) const;
template Matrix<Half> GraphFile::read_features(std::int64_t, std::int64_t, int) const;

std::optional<GraphFile::PlainRows> GraphFile::plain_features(int type) const {
  const auto& features = open_->at(Column::kFeatures, type);
  if (!features.exists() || open_->in_memory) return std::nullopt;
  const auto offset = hdf5::plain_offset(features);
  if (offset < 0) return std::nullopt;
  return PlainRows{features.name, offset, features.rows(), features.is_half()};
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
  const auto& of = h.info.schema.types()[type];
  ESPALIER_CHECK(!h.info.types[type].multi_label, "{} has several labels per vertex", h.path);
  const auto mine = part_of(of, begin, end);
  auto labels = read<std::int32_t>(Column::kLabels, type, mine.begin - of.begin, mine.end - of.begin).data;
  if (mine.size() == end - begin) return labels;
  Buffer<std::int32_t> all(end - begin, -1);
  std::ranges::copy(labels, all.begin() + place_in(mine, begin));
  return all;
}

Matrix<std::uint8_t> GraphFile::read_multi_labels(std::int64_t begin, std::int64_t end, int type) const {
  auto& h = *open_;
  check_range(h, begin, end);
  type = type_of(h, type);
  const auto& of = h.info.schema.types()[type];
  ESPALIER_CHECK(h.info.types[type].multi_label, "{} has one label per vertex", h.path);
  const auto mine = part_of(of, begin, end);
  const auto first = mine.begin - of.begin, last = mine.end - of.begin;
  Matrix<std::uint8_t> rows(end - begin, h.info.types[type].classes);
  const auto to = rows.data.begin() + place_in(mine, begin) * rows.columns;
  if (mine.size() < end - begin) std::ranges::fill(rows.data, kUnknownLabel);
  if (column(Column::kLabels, type).stored == Stored::kByte) {
    std::ranges::copy(read<std::uint8_t>(Column::kLabels, type, first, last).data, to);
  } else {
    const auto wide = read<std::int32_t>(Column::kLabels, type, first, last);
    std::ranges::transform(wide.data, to, [](std::int32_t x) { return static_cast<std::uint8_t>(x); });
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
  const auto& name = h.info.types[type].splits[place].name;
  const auto& dataset = h.columns.at({split_column(split), type, name});
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
  const auto& info = file.info();
  const bool apart = file.view().apart || info.edge_features.size() == 1;
  std::vector<std::int64_t> entries(info.edge_features.size(), 0);
  in_row_parts(
      comm, info.nodes,
      [&](std::int64_t begin, std::int64_t end) {
        const auto rows = file.read_rows<std::int64_t>(begin, end);
        if (!apart) return;
        for (const auto column : rows.indices) ++entries[info.schema.relation_of(column)];
      },
      1 + info.edges / std::max<std::int64_t>(1, info.nodes));
  comm.all_reduce(std::span(entries), Reduction::kSum, "graph file");
  if (apart) check_edge_features(file, entries);
  for (int type = 0; type < std::ssize(info.types); ++type) {
    const auto& of = info.schema.types()[type];
    const auto pairs = info.types[type].pairs;
    if (pairs > 0)
      in_row_parts(
          comm, of.size(),
          [&](std::int64_t begin, std::int64_t end) {
            file.read_features<float>(of.begin + begin, of.begin + end, type);
          },
          2 * pairs);
    for (std::size_t place = 0; place < info.types[type].splits.size(); ++place)
      for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
        file.read_split(split, type, place);
  }
  for (const auto& line : column_table()) {
    if (line.of != Of::kType && line.of != Of::kRelation) continue;
    for (int owner = 0; owner < file.owners(line.column); ++owner) {
      const auto column = file.column(line.column, owner);
      // Texts are read once more as such.
      const auto values = column.stored == Stored::kTexts ? 4 + column.columns / 4 : column.columns;
      in_row_parts(
          comm, column.rows,
          [&](std::int64_t begin, std::int64_t end) {
            column.visit([&]<class T>(T) {
              if constexpr (std::is_same_v<T, std::string>)
                file.read_texts(line.column, owner, begin, end);
              else
                file.read<T>(line.column, owner, begin, end);
            });
          },
          values);
    }
  }
  check_links(comm, file);
}

}  // namespace espalier

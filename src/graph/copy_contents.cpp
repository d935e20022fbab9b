#include "copy_contents.hpp"

#include "espalier/graph/row_range.hpp"

namespace espalier {

namespace {

// Collective. A part of one of the splits of a type.
void copy_split(const Communicator& comm, const GraphFile& file, Split split, int type, std::size_t place,
                GraphWriter& writer) {
  auto ids = file.read_split(split, type, place);
  if (ids.empty()) return;
  const auto first = file.info().schema.types()[type].begin;
  for (auto& id : ids) id -= first;
  const auto mine = even_range(std::ssize(ids), comm.size(), comm.rank());
  writer.write_split(split, std::span<const std::int64_t>(ids).subspan(mine.begin, mine.size()), type,
                     file.info().types[type].splits[place].name);
}

// Collective. Of [begin, end), all of one type.
void copy_type(const GraphFile& file, const RowRange& mine, int type, GraphWriter& writer) {
  const auto& info = file.info().types[type];
  if (info.features > 0)
    copy_features(
        file, mine, type, [](auto rows) { return rows; }, writer);
  if (info.has_labels && info.multi_label)
    writer.write_multi_labels(file.read_multi_labels(mine.begin, mine.end, type), type);
  else if (info.has_labels)
    writer.write_labels(file.read_labels(mine.begin, mine.end, type), type, info.classes);
  if (info.ids == IdKind::kTexts) writer.write_ids(file.read_ids(mine.begin, mine.end, type), type);
  if (info.ids == IdKind::kNumbers)
    writer.write_number_ids(file.read_number_ids(mine.begin, mine.end, type), type);
  if (info.class_names > 0) writer.write_class_names(file.read_class_names(type), type);
}

}  // namespace

void copy_vertices(const Communicator& comm, const GraphFile& file, GraphWriter& writer) {
  for (int type = 0; type < std::ssize(file.info().types); ++type) {
    const auto& of = file.info().schema.types()[type];
    const auto mine = even_range(of.size(), comm.size(), comm.rank());
    copy_type(file, {of.begin + mine.begin, of.begin + mine.end}, type, writer);
    for (std::size_t place = 0; place < file.info().types[type].splits.size(); ++place)
      for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
        copy_split(comm, file, split, type, place, writer);
  }
}

}  // namespace espalier

#include "copy_contents.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "espalier/base/counted.hpp"
#include "espalier/comm/agree.hpp"

namespace espalier {

namespace {

constexpr const char* kRenumbered = "renumbered vertices";

// Brings rows of the old numbers to their new ones, where there are such.
class Mover {
 public:
  Mover(const Communicator& comm, std::int64_t old_nodes, const RenumberedVertices* vertices)
      : comm_(comm), starts_(even_stretches(old_nodes, comm.size())), vertices_(vertices) {}

  template <class T>
  Matrix<T> rows(Matrix<T> mine) const {
    if (vertices_ == nullptr) return mine;
    return fetch_rows(comm_, starts_, mine, vertices_->old());
  }
  template <class T>
  Buffer<T> entries(Buffer<T> mine) const {
    if (vertices_ == nullptr) return mine;
    return fetch_entries(comm_, starts_, std::move(mine), vertices_->old());
  }
  std::vector<std::string> texts(std::vector<std::string> mine) const;

 private:
  const Communicator& comm_;
  std::vector<std::int64_t> starts_;
  const RenumberedVertices* vertices_;
};

// Texts of fixed length, filled up with zeros.
std::vector<std::string> Mover::texts(std::vector<std::string> mine) const {
  if (vertices_ == nullptr) return mine;
  std::int64_t longest = 1;
  for (const auto& text : mine) longest = std::max(longest, std::ssize(text));
  Matrix<char> letters(std::ssize(mine), comm_.all_reduce(longest, Reduction::kMax, kRenumbered));
  std::ranges::fill(letters.data, '\0');
  for (std::int64_t k = 0; k < letters.rows; ++k) std::ranges::copy(mine[k], letters.row(k));
  const auto moved = rows(std::move(letters));
  std::vector<std::string> texts;
  for (std::int64_t k = 0; k < moved.rows; ++k) {
    std::string text(moved.row(k), moved.columns);
    text.erase(text.find_last_not_of('\0') + 1);
    texts.push_back(std::move(text));
  }
  return texts;
}

// Collective. A part of one of the splits of a type.
void copy_split(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices,
                Split split, int type, std::size_t place, GraphWriter& writer) {
  auto ids = file.read_split(split, type, place);
  const auto mine = [&] {
    const auto part = even_range(std::ssize(ids), comm.size(), comm.rank());
    return std::span<const std::int64_t>(ids).subspan(part.begin, part.size());
  };
  if (vertices != nullptr && !ids.empty()) {
    ids = comm.all_gather_v(std::span<const std::int64_t>(vertices->numbers_of(mine())), kRenumbered);
    std::erase(ids, kDropped);
    std::ranges::sort(ids);
  }
  if (ids.empty()) return;
  for (auto& id : ids) id -= file.info().schema.types()[type].begin;
  writer.write_split(split, mine(), type, file.info().types[type].splits[place].name);
}

// Collective. Features, labels, ids and names of classes of the type.
void copy_type(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices, int type,
               GraphWriter& writer) {
  const auto& info = file.info().types[type];
  const auto& of = file.info().schema.types()[type];
  const auto part = even_range(of.size(), comm.size(), comm.rank());
  const auto begin = of.begin + part.begin, end = of.begin + part.end;
  const Mover mover(comm, of.size(), vertices);
  if (info.features > 0 && info.half_features) {
    writer.write_features(mover.rows(file.read_features<Half>(begin, end, type)), type);
  } else if (info.features > 0) {
    const auto rows = mover.rows(file.read_features<float>(begin, end, type));
    info.pairs > 0 ? writer.write_sparse_features(rows, info.features, type)
                   : writer.write_features(rows, type);
  }
  if (info.has_labels && info.multi_label)
    writer.write_multi_labels(mover.rows(file.read_multi_labels(begin, end, type)), type);
  else if (info.has_labels)
    writer.write_labels(mover.entries(file.read_labels(begin, end, type)), type, info.classes);
  if (info.ids == IdKind::kTexts)
    writer.write_ids(mover.texts(file.read_ids(begin, end, type)), type);
  else if (info.ids == IdKind::kNumbers)
    writer.write_number_ids(mover.entries(file.read_number_ids(begin, end, type)), type);
  else if (vertices != nullptr)
    writer.write_number_ids(vertices->old(), type);
  if (info.class_names > 0) writer.write_class_names(file.read_class_names(type), type);
}

}  // namespace

void copy_vertices(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices,
                   GraphWriter& writer) {
  for (int type = 0; type < std::ssize(file.info().types); ++type) {
    copy_type(comm, file, vertices, type, writer);
    for (std::size_t place = 0; place < file.info().types[type].splits.size(); ++place)
      for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
        copy_split(comm, file, vertices, split, type, place, writer);
  }
  writer.write_feature_columns(file.info().feature_columns);
}

namespace {

class LinkCopy {
 public:
  LinkCopy(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices)
      : comm_(comm), file_(file), vertices_(vertices) {}

  void copy(Split split, GraphWriter& writer) const {
    const auto& of = file_.info().links.splits[static_cast<std::size_t>(split)];
    if (of.links == 0) return;
    const auto mine = even_range(of.links, comm_.size(), comm_.rank());
    auto links = file_.read_links(split, mine.begin, mine.end);
    renumber(links.heads);
    renumber(links.tails);
    writer.write_links(split, links);
    for (const auto end : {LinkEnd::kHead, LinkEnd::kTail}) {
      if ((end == LinkEnd::kHead ? of.negative_heads : of.negative_tails) == 0) continue;
      auto negatives = file_.read_negatives(split, end, mine.begin, mine.end);
      renumber(negatives.data);
      writer.write_negatives(split, end, negatives);
    }
    if (of.non_links == 0) return;
    const auto pairs = even_range(of.non_links, comm_.size(), comm_.rank());
    auto non_links = file_.read_non_links(split, pairs.begin, pairs.end);
    renumber(non_links.data);
    writer.write_non_links(split, non_links);
  }

 private:
  void renumber(Buffer<std::int64_t>& ids) const {
    if (vertices_ == nullptr) return;
    ids = vertices_->numbers_of(ids);
    const auto dropped = comm_.all_reduce(std::ranges::count(ids, kDropped), Reduction::kSum, kRenumbered);
    agree(comm_, [&] {
      if (dropped > 0)
        input_error(
            "graph file {}: {} not in the largest component, so links cannot follow; prepare the graph that "
            "the links were made from, --largest-component and --split-links together",
            file_.path(), counted(dropped, "end of its links is", "ends of its links are"));
    });
  }

  const Communicator& comm_;
  const GraphFile& file_;
  const RenumberedVertices* vertices_;
};

}  // namespace

void copy_links(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices,
                GraphWriter& writer) {
  const auto& links = file.info().links;
  if (!links.exist) return;
  writer.write_link_relations(links);
  const LinkCopy copy(comm, file, vertices);
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) copy.copy(split, writer);
}

}  // namespace espalier

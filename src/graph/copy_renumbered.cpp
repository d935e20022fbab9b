#include "copy_renumbered.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "copy_contents.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/graph/row_range.hpp"
#include "fetch_rows.hpp"

namespace espalier {

namespace {

constexpr const char* kRenumbered = "renumbered vertices";

// Brings rows of the old numbers to their new ones.
class Mover {
 public:
  Mover(const Communicator& comm, std::int64_t old_nodes, const RenumberedVertices& vertices)
      : comm_(comm), starts_(even_stretches(old_nodes, comm.size())), vertices_(vertices) {}

  template <class T>
  Matrix<T> rows(const Matrix<T>& mine) const {
    return fetch_rows(comm_, starts_, mine, vertices_.old());
  }
  template <class T>
  Buffer<T> entries(Buffer<T> mine) const {
    return fetch_entries(comm_, starts_, std::move(mine), vertices_.old());
  }
  std::vector<std::string> texts(const std::vector<std::string>& mine) const;

 private:
  const Communicator& comm_;
  std::vector<std::int64_t> starts_;
  const RenumberedVertices& vertices_;
};

// Texts of fixed length, filled up with zeros.
std::vector<std::string> Mover::texts(const std::vector<std::string>& mine) const {
  std::int64_t longest = 1;
  for (const auto& text : mine) longest = std::max(longest, std::ssize(text));
  Matrix<char> letters(std::ssize(mine), comm_.all_reduce(longest, Reduction::kMax, kRenumbered));
  std::ranges::fill(letters.data, '\0');
  for (std::int64_t k = 0; k < letters.rows; ++k) std::ranges::copy(mine[k], letters.row(k));
  const auto moved = rows(letters);
  std::vector<std::string> texts;
  for (std::int64_t k = 0; k < moved.rows; ++k) {
    std::string text(moved.row(k), moved.columns);
    text.erase(text.find_last_not_of('\0') + 1);
    texts.push_back(std::move(text));
  }
  return texts;
}

void copy_split(const Communicator& comm, const GraphFile& file, const RenumberedVertices& vertices,
                Split split, std::size_t place, GraphWriter& writer) {
  const auto old = file.read_split(split, 0, place);
  if (old.empty()) return;
  const auto part = even_range(std::ssize(old), comm.size(), comm.rank());
  const auto numbers =
      vertices.numbers_of(std::span<const std::int64_t>(old).subspan(part.begin, part.size()));
  auto all = comm.all_gather_v(std::span<const std::int64_t>(numbers), kRenumbered);
  std::erase(all, kDropped);
  std::ranges::sort(all);
  const auto mine = even_range(std::ssize(all), comm.size(), comm.rank());
  if (!all.empty())
    writer.write_split(split, std::span<const std::int64_t>(all).subspan(mine.begin, mine.size()), 0,
                       file.info().types[0].splits[place].name);
}

}  // namespace

void copy_vertices(const Communicator& comm, const GraphFile& file, const RenumberedVertices& vertices,
                   GraphWriter& writer) {
  const auto& info = file.info().types[0];
  const auto old = even_range(file.info().nodes, comm.size(), comm.rank());
  const Mover mover(comm, file.info().nodes, vertices);
  if (info.features > 0)
    copy_features(
        file, {old.begin, old.end}, 0, [&](const auto& rows) { return mover.rows(rows); }, writer);
  if (info.has_labels && info.multi_label)
    writer.write_multi_labels(mover.rows(file.read_multi_labels(old.begin, old.end, 0)));
  else if (info.has_labels)
    writer.write_labels(mover.entries(file.read_labels(old.begin, old.end, 0)), 0, info.classes);
  if (info.ids == IdKind::kTexts)
    writer.write_ids(mover.texts(file.read_ids(old.begin, old.end)));
  else if (info.ids == IdKind::kNumbers)
    writer.write_number_ids(mover.entries(file.read_number_ids(old.begin, old.end)));
  else
    writer.write_number_ids(vertices.old());
  if (info.class_names > 0) writer.write_class_names(file.read_class_names(0));
  for (std::size_t place = 0; place < info.splits.size(); ++place)
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
      copy_split(comm, file, vertices, split, place, writer);
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

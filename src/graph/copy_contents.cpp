#include "copy_contents.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "column_table.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

namespace {

constexpr const char* kRenumbered = "renumbered vertices";

// Copies columns, each rank its even share of the rows. Where vertices have new numbers, what has a
// row for each of them follows, and ends of links are named by them.
class Copy {
 public:
  Copy(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices,
       GraphWriter& writer)
      : comm_(comm), file_(file), vertices_(vertices), writer_(writer) {}

  // Collective, as all of these.
  void copy(Column column, int owner) const {
    if (column == Column::kLabels) return copy_labels(owner);
    if (column == Column::kSparseColumns || column == Column::kSparseValues) return;
    if (column == Column::kSparseBegins) return copy_pairs(owner);
    const auto& line = line_of(column);
    const auto info = file_.column(column, owner);
    if (column == Column::kIds && !info.exists() && vertices_ != nullptr)
      return writer_.write_list<std::int64_t>(column, owner, vertices_->old());
    const std::string_view rows_of = line.a_row_for_each;
    if (info.columns == 0 || (info.rows == 0 && rows_of.empty())) return;
    const auto mine = share(info.rows);
    const bool moves = rows_of == "vertices";
    info.visit([&]<class T>(T) {
      if constexpr (std::is_same_v<T, std::string>) {
        auto texts = file_.read_texts(column, owner, mine.begin, mine.end);
        writer_.write_texts(column, owner, moves ? moved(std::move(texts)) : texts);
      } else {
        auto rows = file_.read<T>(column, owner, mine.begin, mine.end);
        if (moves) rows = moved(std::move(rows));
        if constexpr (std::is_same_v<T, std::int64_t>)
          if (line.of == Of::kLinkSplit) renumber(rows.data);
        if (line.least == 2)
          writer_.write_rows(column, owner, rows);
        else
          writer_.write_list<T>(column, owner, rows.data, info.unit);
      }
    });
  }

  void copy_split(Split split, int type, std::size_t place) const {
    auto ids = file_.read_split(split, type, place);
    const auto mine = [&] {
      const auto part = share(std::ssize(ids));
      return std::span<const std::int64_t>(ids).subspan(part.begin, part.size());
    };
    if (vertices_ != nullptr && !ids.empty()) {
      ids = comm_.all_gather_v(std::span<const std::int64_t>(vertices_->numbers_of(mine())), kRenumbered);
      std::erase(ids, kDropped);
      std::ranges::sort(ids);
    }
    if (ids.empty()) return;
    for (auto& id : ids) id -= file_.info().schema.types()[type].begin;
    writer_.write_split(split, mine(), type, file_.info().types[type].splits[place].name);
  }

 private:
  RowRange share(std::int64_t rows) const { return even_range(rows, comm_.size(), comm_.rank()); }
  // Of the vertices of a type, by their ids in the graph.
  RowRange vertices_of(int type) const {
    const auto& of = file_.info().schema.types()[type];
    const auto part = share(of.size());
    return {of.begin + part.begin, of.begin + part.end};
  }

  void copy_pairs(int type) const {
    const auto& info = file_.info().types[type];
    if (info.pairs == 0) return;
    const auto mine = vertices_of(type);
    const auto rows = moved(file_.read_features<float>(mine.begin, mine.end, type));
    writer_.write_sparse_features(rows, info.features, type);
  }

  void copy_labels(int type) const {
    const auto& info = file_.info().types[type];
    const auto mine = vertices_of(type);
    if (info.multi_label)
      writer_.write_rows(Column::kLabels, type, moved(file_.read_multi_labels(mine.begin, mine.end, type)));
    else if (info.has_labels) {
      Matrix<std::int32_t> labels(mine.size(), 1);
      labels.data = file_.read_labels(mine.begin, mine.end, type);
      writer_.write_labels(moved(std::move(labels)).data, type, info.classes);
    }
  }

  template <class T>
  Matrix<T> moved(Matrix<T> mine) const {
    if (vertices_ == nullptr) return mine;
    return fetch_rows(comm_, even_stretches(file_.info().nodes, comm_.size()), mine, vertices_->old());
  }
  // Texts of fixed length, filled up with zeros.
  std::vector<std::string> moved(std::vector<std::string> mine) const {
    if (vertices_ == nullptr) return mine;
    std::int64_t longest = 1;
    for (const auto& text : mine) longest = std::max(longest, std::ssize(text));
    Matrix<char> letters(std::ssize(mine), comm_.all_reduce(longest, Reduction::kMax, kRenumbered));
    std::ranges::fill(letters.data, '\0');
    for (std::int64_t k = 0; k < letters.rows; ++k) std::ranges::copy(mine[k], letters.row(k));
    letters = moved(std::move(letters));
    std::vector<std::string> texts;
    for (std::int64_t k = 0; k < letters.rows; ++k) {
      std::string text(letters.row(k), letters.columns);
      text.erase(text.find_last_not_of('\0') + 1);
      texts.push_back(std::move(text));
    }
    return texts;
  }

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
  GraphWriter& writer_;
};

}  // namespace

void copy_vertices(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices,
                   GraphWriter& writer) {
  const Copy copy(comm, file, vertices, writer);
  for (int type = 0; type < std::ssize(file.info().types); ++type) {
    for (const auto& line : column_table())
      if (line.of == Of::kType) copy.copy(line.column, type);
    for (std::size_t place = 0; place < file.info().types[type].splits.size(); ++place)
      for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
        copy.copy_split(split, type, place);
  }
  // What is said of all edges of a relation; of each its tables say.
  for (int r = 0; r < std::ssize(file.info().schema.relations()); ++r)
    for (const auto& line : column_table())
      if (line.of == Of::kRelation && line.a_row_for_each[0] == '\0') copy.copy(line.column, r);
}

void copy_links(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices,
                GraphWriter& writer) {
  if (!file.info().links.exist) return;
  writer.write_link_relations(file.info().links);
  const Copy copy(comm, file, vertices, writer);
  for (int split = 0; split < std::ssize(kSplitNames); ++split)
    for (const auto& line : column_table())
      if (line.of == Of::kLinkSplit && file.info().links.splits[split].links > 0)
        copy.copy(line.column, split);
}

}  // namespace espalier

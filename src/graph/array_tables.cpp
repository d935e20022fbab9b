#include "array_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kIdsAtOnce = 1 << 14;  // entries at a time

std::string in_words(const NpyArray& array) {
  return fmt::format("{}", fmt::join(array.shape(), " x "));
}

// Throws where an array of so many rows is expected.
void check_rows(const NpyArray& array, std::int64_t count, const std::string& things = "vertices") {
  if (array.shape()[0] != count)
    input_error("{}: is {}, but there are {} {}, and each has a row", array.name(), in_words(array), count,
                things);
}

void check_ids(const std::vector<std::int64_t>& ids, const VertexCount& of, const NpyArray& array,
               std::int64_t begin) {
  for (std::size_t k = 0; k < ids.size(); ++k)
    check_id(ids[k], of, array, begin + static_cast<std::int64_t>(k), "edge");
}

}  // namespace

void check_id(std::int64_t id, const VertexCount& of, const NpyArray& array, std::int64_t entry,
              const char* what) {
  if (id >= 0 && id < of.count) return;
  input_error("{}: {} {}: vertex {} is out of range: {}, 0 to {}", array.name(), what, entry, id, of.by,
              of.count - 1);
}

void for_each_piece(NpyArray& array, std::int64_t count,
                    const std::function<void(const std::vector<std::int64_t>&, std::int64_t)>& use) {
  std::vector<std::int64_t> ids;
  for (std::int64_t begin = 0; begin < count; begin += kIdsAtOnce) {
    ids.resize(std::min(kIdsAtOnce, count - begin));
    array.read(std::span<std::int64_t>(ids));
    use(ids, begin);
  }
}

std::int64_t count_edges(const NpyArray& array, bool pairs) {
  const auto& shape = array.shape();
  if (shape.size() == 2 && shape[0] == 2) return shape[1];
  if (shape.size() == 2 && shape[1] == 2 && pairs) return shape[0];
  input_error("{}: is {}, not 2 x edges{}: heads, then tails", array.name(), in_words(array),
              pairs ? " or edges x 2" : "");
}

std::string edge_of_array(const std::string& array, std::int64_t edge) {
  return fmt::format("{}: edge {}", array, edge);
}

void read_edge_pairs(const std::function<std::unique_ptr<NpyArray>()>& open, const VertexCount& heads,
                     const VertexCount& tails, const RankShare& share,
                     const std::function<void(const EdgePiece&)>& use, bool pairs) {
  const auto array = open();
  const auto edges = count_edges(*array, pairs);
  const bool together = (array->shape()[0] == 2) == array->by_columns();
  const auto of_tails = together ? nullptr : open();
  if (of_tails) of_tails->skip(edges);
  std::vector<std::int64_t> head, tail, both;
  const auto read_piece = [&](std::int64_t begin, std::int64_t count) {
    head.resize(count);
    tail.resize(count);
    if (together) {
      both.resize(2 * count);
      array->read(std::span(both));
      for (std::int64_t k = 0; k < count; ++k) head[k] = both[2 * k], tail[k] = both[2 * k + 1];
    } else {
      array->read(std::span(head));
      of_tails->read(std::span(tail));
    }
    check_ids(head, heads, *array, begin);
    check_ids(tail, tails, *array, begin);
    use({head, tail, {}});
  };
  const auto part = share.most_edges(), piece = kIdsAtOnce / (together ? 2 : 1);
  for (std::int64_t first = 0, at = 0; first < edges; first += share.ranks * part) {
    const auto begin = std::min(first + share.rank * part, edges), end = std::min(begin + part, edges);
    array->skip((begin - at) * (together ? 2 : 1));
    if (of_tails) of_tails->skip(begin - at);
    for (at = begin; at < end; at += piece) read_piece(at, std::min(piece, end - at));
    at = end;
    share.next();
  }
}

std::int64_t read_only_count(NpyArray& array) {
  if (array.entries() != 1)
    input_error("{}: counts {} graphs; only folders with one graph (ogbn sets) can be imported", array.name(),
                array.entries());
  std::int64_t count = 0;
  array.read(std::span<std::int64_t>(&count, 1));
  if (count < 0) input_error("{}: {} is not a number of things", array.name(), count);
  return count;
}

// ---- features ----

namespace {

class FeatureArray : public FeatureRows {
 public:
  explicit FeatureArray(std::unique_ptr<NpyArray> array) : array_(std::move(array)) {}
  std::int64_t columns() const override { return array_->columns(); }
  bool half() const override { return array_->half(); }
  void next(std::span<double> row) override {
    array_->read_row(row);
    ++row_;
  }
  void finish() override {}
  std::string place() const override { return fmt::format("{}: row {}", array_->name(), row_); }

 private:
  std::unique_ptr<NpyArray> array_;
  std::int64_t row_ = -1;
};

}  // namespace

std::unique_ptr<FeatureRows> open_feature_array(std::unique_ptr<NpyArray> array, std::int64_t count,
                                                const std::string& things) {
  check_rows(*array, count, things);
  return std::make_unique<FeatureArray>(std::move(array));
}

// ---- splits ----

namespace {

void read_mask(NpyArray& array, const VertexCount& vertices, Split split, SplitCollector& splits) {
  check_rows(array, vertices.count);
  for_each_piece(array, array.entries(), [&](const std::vector<std::int64_t>& marks, std::int64_t begin) {
    for (std::size_t k = 0; k < marks.size(); ++k) {
      const auto vertex = begin + static_cast<std::int64_t>(k);
      if (marks[k] != 0)
        splits.add(split, vertex, [&] { return fmt::format("{}: entry {}", array.name(), vertex); });
    }
  });
}

}  // namespace

void read_split_array(NpyArray& array, const VertexCount& vertices, Split split, SplitCollector& splits,
                      const VertexNumbers* numbers) {
  if (array.columns() != 1) input_error("{}: is {}, not a list of vertices", array.name(), in_words(array));
  if (array.is_truth()) return read_mask(array, vertices, split, splits);
  const auto vertex_of = [&](std::int64_t id, std::int64_t entry) {
    if (numbers == nullptr) {
      check_id(id, vertices, array, entry, "entry");
      return id;
    }
    const auto number = numbers->number_of(id);
    if (number < 0) input_error("{}: entry {}: no edge has the vertex {}", array.name(), entry, id);
    return number;
  };
  for_each_piece(array, array.entries(), [&](const std::vector<std::int64_t>& ids, std::int64_t begin) {
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const auto entry = begin + static_cast<std::int64_t>(k);
      splits.add(split, vertex_of(ids[k], entry),
                 [&] { return fmt::format("{}: entry {}", array.name(), entry); });
    }
  });
}

std::string split_array(const std::filesystem::path& folder, Split split) {
  return (folder / kSplitNames[static_cast<std::size_t>(split)]).string() + ".npy";
}

}  // namespace espalier

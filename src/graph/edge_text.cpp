#include "edge_text.hpp"

#include <algorithm>

#include "edge_pieces.hpp"

namespace espalier {

namespace {

void check_id(const PairReader& pairs, std::int64_t id, const VertexCount& of, bool any_ids) {
  if (id < 0) pairs.lines().fail("vertex {} is negative; ids count from 0", id);
  if (of.count >= 0 && id >= of.count)
    pairs.lines().fail("vertex {} is out of range: {}, 0 to {}", id, of.by, of.count - 1);
  if (!any_ids && id >= kMostVertices)
    pairs.lines().fail(
        "vertex {} is beyond the {} that a graph may have; --renumber numbers those that there are", id,
        kMostVertices);
}

class EdgeText : public EdgeSource {
 public:
  explicit EdgeText(EdgeTextOptions options) : options_(std::move(options)) {}
  bool weighted() const override { return has(PairField::kValue); }
  std::string name() const override { return options_.path; }
  std::string place(std::int64_t edge) const override {
    LineReader lines(options_.path);
    PairReader pairs(lines, options_.form);
    while (pairs.next() && edge > 0) --edge;
    return fmt::format("{}:{}", options_.path, lines.line());
  }
  void read(const std::function<void(const EdgePiece&)>& use) const override {
    LineReader lines(options_.path);
    read_lines(lines, use);
  }
  void read_parts(int rank, int ranks, const std::function<void(const EdgePiece&)>& use,
                  const std::function<void()>& next) const override {
    const auto size = PackedFile::plain_size(options_.path);
    if (size < 0) return EdgeSource::read_parts(rank, ranks, use, next);
    // The edges of all parts may be for one rank.
    const auto most = std::clamp<std::int64_t>((std::int64_t{1} << 27) / ranks, 1 << 16, 1 << 21);
    const auto part = options_.part > 0 ? options_.part : most;
    for (auto begin = rank * part; begin < size; begin += ranks * part) {
      LineReader lines(options_.path, begin, std::min(begin + part, size));
      read_lines(lines, use);
      next();
    }
  }

 private:
  void read_lines(LineReader& lines, const std::function<void(const EdgePiece&)>& use) const {
    PairReader pairs(lines, options_.form);
    const bool weighs = weighted();
    EdgePieces pieces(weighs, use, has(PairField::kTime));
    const auto fail = [&](const std::string& words) { lines.fail("{}", words); };
    while (pairs.next()) {
      check_id(pairs, pairs.first(), options_.sources, options_.any_ids);
      check_id(pairs, pairs.second(), options_.targets, options_.any_ids);
      pieces.add(pairs.first(), pairs.second(),
                 weighs ? stored_weight(pairs.value(), fail, pieces.vanished()) : 1, pairs.time());
    }
    pieces.finish();
  }

  bool has(PairField field) const {
    return std::ranges::find(options_.form.fields, field) != options_.form.fields.end();
  }

  EdgeTextOptions options_;
};

}  // namespace

std::unique_ptr<EdgeSource> open_edge_text(EdgeTextOptions options) {
  return std::make_unique<EdgeText>(std::move(options));
}

}  // namespace espalier

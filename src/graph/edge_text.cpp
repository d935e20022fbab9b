#include "edge_text.hpp"

#include <algorithm>

#include "espalier/base/text.hpp"

namespace espalier {

// ---- lines ----

bool EdgeLines::has(PairField field) const {
  return std::ranges::find(options_.form.fields, field) != options_.form.fields.end();
}

float EdgeLines::weight_of(const PairReader& line, EdgePieces& pieces, const char* hint) {
  const auto fail = [&](const std::string& words) { line.lines().fail("{}{}", words, hint); };
  return stored_weight(line.value(), fail, pieces.vanished());
}

void EdgeLines::pass_head(LineReader& lines) const {
  while (lines.line() < head_lines_ && lines.next()) continue;
}

std::int64_t EdgeLines::read_lines(LineReader& lines,
                                   const std::function<void(const EdgePiece&)>& use) const {
  PairReader pairs(lines, options_.form);
  EdgePieces pieces(weighted(), use, has(PairField::kTime));
  std::int64_t found = 0;
  for (; pairs.next(); ++found) {
    if (found == announced_) lines.fail("one entry too many: the header announces {}", announced_);
    add(pairs, pieces);
  }
  pieces.finish();
  return found;
}

void EdgeLines::read(const std::function<void(const EdgePiece&)>& use) const {
  LineReader lines(options_.path);
  pass_head(lines);
  const auto found = read_lines(lines, use);
  if (found < announced_)
    input_error("{}: has {}, but its header announces {}; is the download complete?", options_.path,
                counted(found, "entry"), announced_);
}

void EdgeLines::read_parts(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const {
  const auto size = share.ranks > 1 ? PackedFile::plain_size(options_.path) : -1;
  if (size < 0) return EdgeSource::read_parts(share, use);
  // The edges of all parts may be for one rank.
  const auto most = std::clamp<std::int64_t>((std::int64_t{1} << 27) / share.ranks, 1 << 16, 1 << 21);
  const auto part = options_.part > 0 ? options_.part : most;
  std::int64_t found = 0;
  for (auto first = head_bytes_; first < size; first += share.ranks * part) {
    if (const auto begin = first + share.rank * part; begin < size) {
      LineReader lines(options_.path, begin, std::min(begin + part, size));
      found += read_lines(lines, use);
    }
    share.next();
  }
  if (announced_ >= 0) share.miss((share.rank == 0 ? announced_ : 0) - found);
}

std::string EdgeLines::place(std::int64_t edge) const {
  LineReader lines(options_.path);
  pass_head(lines);
  PairReader pairs(lines, options_.form);
  while (pairs.next() && (edge -= edges_of(pairs)) >= 0) continue;
  return fmt::format("{}:{}", options_.path, lines.line());
}

// ---- a list ----

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

class EdgeText : public EdgeLines {
 public:
  explicit EdgeText(EdgeTextOptions options)
      : EdgeLines(std::move(options)), weighted_(has(PairField::kValue)) {}
  bool weighted() const override { return weighted_; }

 private:
  void add(const PairReader& line, EdgePieces& pieces) const override {
    check_id(line, line.first(), options_.sources, options_.any_ids);
    check_id(line, line.second(), options_.targets, options_.any_ids);
    pieces.add(line.first(), line.second(), weighted_ ? weight_of(line, pieces) : 1, line.time());
  }

  bool weighted_;
};

}  // namespace

std::unique_ptr<EdgeSource> open_edge_text(EdgeTextOptions options) {
  return std::make_unique<EdgeText>(std::move(options));
}

}  // namespace espalier

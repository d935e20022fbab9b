#include "edge_text.hpp"

#include "edge_pieces.hpp"
#include "pair_reader.hpp"

namespace espalier {

namespace {

PairForm form_of(const EdgeTextOptions& options) {
  PairForm form;
  form.valued = options.weights;
  if (options.weights)
    form.names = "source, target and weight";
  else
    form.hint = "; --weights reads the third as the edge's weight";
  return form;
}

void check_id(const PairReader& pairs, std::int64_t id, const EdgeTextOptions& options) {
  if (id < 0) pairs.lines().fail("vertex {} is negative; ids count from 0", id);
  if (options.nodes >= 0 && id >= options.nodes)
    pairs.lines().fail("vertex {} is out of range: {}, 0 to {}", id, options.nodes_by, options.nodes - 1);
  if (!options.any_ids && id >= kMostVertices)
    pairs.lines().fail(
        "vertex {} is beyond the {} that a graph may have; --renumber numbers those that there are", id,
        kMostVertices);
}

class EdgeText : public EdgeSource {
 public:
  explicit EdgeText(EdgeTextOptions options) : options_(std::move(options)) {}
  bool weighted() const override { return options_.weights; }
  std::string name() const override { return options_.path; }
  std::string place(std::int64_t edge) const override {
    LineReader lines(options_.path);
    PairReader pairs(lines, form_of(options_));
    while (pairs.next() && edge > 0) --edge;
    return fmt::format("{}:{}", options_.path, lines.line());
  }
  void read(const std::function<void(const EdgePiece&)>& use) const override {
    LineReader lines(options_.path);
    PairReader pairs(lines, form_of(options_));
    EdgePieces pieces(options_.weights, use);
    const auto fail = [&](const std::string& words) { lines.fail("{}", words); };
    while (pairs.next()) {
      check_id(pairs, pairs.first(), options_);
      check_id(pairs, pairs.second(), options_);
      pieces.add(pairs.first(), pairs.second(),
                 options_.weights ? stored_weight(pairs.value(), fail, pieces.vanished()) : 1);
    }
    pieces.finish();
  }

 private:
  EdgeTextOptions options_;
};

}  // namespace

std::unique_ptr<EdgeSource> open_edge_text(EdgeTextOptions options) {
  return std::make_unique<EdgeText>(std::move(options));
}

}  // namespace espalier

// A file of edges: lines "source target", and perhaps a weight and a time. Ids count from 0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "edge_pieces.hpp"
#include "espalier/graph/edge_source.hpp"
#include "labelled_splits.hpp"
#include "pair_reader.hpp"

namespace espalier {

struct EdgeTextOptions {
  std::string path;
  PairForm form = {};
  VertexCount sources = {-1, ""}, targets = {-1, ""};  ///< ids are below it; -1: nobody said so
  bool any_ids = false;                                ///< may ids be larger than a graph
                                                       ///< has vertices?
  std::int64_t part = 0;                               ///< bytes that a rank reads at a time, of a
                                                       ///< text that is not packed; 0: a few MiB
};

/// Edges in the lines of a text, of which each rank reads parts where it is not packed.
class EdgeLines : public EdgeSource {
 public:
  std::string name() const override { return options_.path; }
  std::string place(std::int64_t edge) const override;
  void read(const std::function<void(const EdgePiece&)>& use) const override;
  void read_parts(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const override;

 protected:
  explicit EdgeLines(EdgeTextOptions options) : options_(std::move(options)) {}
  /// Adds the edges of a line.
  virtual void add(const PairReader& line, EdgePieces& pieces) const = 0;
  virtual std::int64_t edges_of(const PairReader&) const { return 1; }
  bool has(PairField field) const;
  /// The value of a line; `hint`: what may help where it is no weight.
  static float weight_of(const PairReader& line, EdgePieces& pieces, const char* hint = "");

  EdgeTextOptions options_;
  std::int64_t head_lines_ = 0, head_bytes_ = 0;  ///< before the lines of edges
  std::int64_t announced_ = -1;                   ///< so many lines; -1: nobody said so

 private:
  /// Returns how many lines had edges.
  std::int64_t read_lines(LineReader& lines, const std::function<void(const EdgePiece&)>& use) const;
  void pass_head(LineReader& lines) const;
};

std::unique_ptr<EdgeSource> open_edge_text(EdgeTextOptions options);

}  // namespace espalier

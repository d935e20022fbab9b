// A file of edges: lines "source target", with --weights "source target weight". Ids count from 0.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/graph/edge_source.hpp"

namespace espalier {

struct EdgeTextOptions {
  std::string path;
  bool weights = false;
  std::int64_t nodes = -1;    ///< ids are below it; -1: nobody said so
  std::string nodes_by = {};  ///< who says so, for messages: "--vertices says 5 vertices"
  bool any_ids = false;       ///< may ids be larger than a graph has vertices?
};

class EdgeText : public EdgeSource {
 public:
  explicit EdgeText(EdgeTextOptions options) : options_(std::move(options)) {}
  void read(const std::function<void(const EdgePiece&)>& use) const override;
  bool weighted() const override { return options_.weights; }
  std::string name() const override { return options_.path; }
  std::string place(std::int64_t edge) const override;

 private:
  EdgeTextOptions options_;
};

}  // namespace espalier

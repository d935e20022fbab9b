// Features of edges beside the entries of some blocks, for tests: most entries have some.
#pragma once

#include <random>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

struct EdgesBeside {
  std::int64_t width = 0;
  std::vector<Buffer<std::int32_t>> entries;  ///< of each block
  std::vector<Buffer<float>> rows;

  EdgesBeside() = default;
  EdgesBeside(const std::vector<Block>& blocks, std::int64_t width_, std::mt19937_64& random)
      : width(width_), entries(width_ > 0 ? blocks.size() : 0), rows(entries.size()) {
    std::normal_distribution<float> number;
    for (std::size_t l = 0; l < entries.size(); ++l)
      for (std::int32_t e = 0; e < blocks[l].entries(); ++e) {
        if (random() % 4 == 0) continue;
        entries[l].push_back(e);
        for (std::int64_t j = 0; j < width; ++j) rows[l].push_back(number(random));
      }
  }
  EdgeRows of(std::size_t block) const {
    return {std::ssize(entries[block]), width, entries[block].data(), rows[block].data()};
  }
  void show(std::vector<BlockView<>>& blocks) const {
    for (std::size_t l = 0; l < entries.size(); ++l) blocks[l].edges = of(l);
  }
};

}  // namespace espalier

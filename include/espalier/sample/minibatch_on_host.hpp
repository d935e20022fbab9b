// A minibatch in memory of the host, for what leaves the program.
#pragma once

#include <memory>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

/// Itself.
inline const Minibatch& on_host(const Cpu&, const Minibatch& minibatch) {
  return minibatch;
}

/// A copy, without runs of types. The host waits for each array.
inline Minibatch on_host(const Cuda& cuda, const MinibatchOn<Cuda>& minibatch) {
  struct Memory {
    Buffer<std::int64_t> vertices;
    std::vector<Block> blocks;
    std::vector<Buffer<std::uint8_t>> relations;  // beside blocks
  };
  const auto memory = std::make_shared<Memory>();
  memory->vertices = download(cuda, minibatch.vertices.data(), minibatch.vertices.size());
  for (const auto& block : minibatch.blocks) {
    const auto entries = static_cast<std::size_t>(block.entries());
    auto& to = memory->blocks.emplace_back();
    to.rows = block.rows, to.columns = block.columns;
    to.indptr = download(cuda, block.indptr, static_cast<std::size_t>(block.rows) + 1);
    const auto first = to.indptr[0];
    for (auto& start : to.indptr) start -= first;
    to.indices = download(cuda, block.indices + first, entries);
    if (block.has_values()) to.values = download(cuda, block.values.data() + first, entries);
    to.weighted = block.has_values();
    auto& relations = memory->relations.emplace_back();
    if (block.has_relations()) relations = download(cuda, block.relations.data() + first, entries);
  }
  Minibatch copy;
  copy.number = minibatch.number;
  copy.vertices = memory->vertices;
  copy.blocks.assign(memory->blocks.begin(), memory->blocks.end());
  for (std::size_t l = 0; l < copy.blocks.size(); ++l)
    copy.blocks[l].relations = {minibatch.blocks[l].has_relations(), memory->relations[l]};
  copy.memory = memory;
  copy.examples_digest = minibatch.examples_digest;
  return copy;
}

}  // namespace espalier

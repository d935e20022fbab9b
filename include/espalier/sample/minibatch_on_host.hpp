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

/// A copy, without types and relations. The host waits for each array.
inline Minibatch on_host(const Cuda& cuda, const MinibatchOn<Cuda>& minibatch) {
  struct Memory {
    Buffer<std::int64_t> vertices;
    std::vector<Block> blocks;
  };
  const auto memory = std::make_shared<Memory>();
  memory->vertices = download(cuda, minibatch.vertices.data(), minibatch.vertices.size());
  for (const auto& block : minibatch.blocks) {
    const auto entries = static_cast<std::size_t>(block.entries());
    Block copy;
    copy.rows = block.rows, copy.columns = block.columns;
    copy.indptr = download(cuda, block.indptr, static_cast<std::size_t>(block.rows) + 1);
    const auto first = copy.indptr[0];
    for (auto& start : copy.indptr) start -= first;
    copy.indices = download(cuda, block.indices + first, entries);
    if (block.has_values()) copy.values = download(cuda, block.values + first, entries);
    memory->blocks.push_back(std::move(copy));
  }
  Minibatch copy;
  copy.number = minibatch.number;
  copy.vertices = memory->vertices;
  copy.blocks.assign(memory->blocks.begin(), memory->blocks.end());
  copy.memory = memory;
  copy.examples_digest = minibatch.examples_digest;
  return copy;
}

}  // namespace espalier

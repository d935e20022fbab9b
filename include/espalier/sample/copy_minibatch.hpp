// A minibatch in memory of its own, of the host or of the GPU, for what leaves the program.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

/// A block whose rows begin at 0.
template <class Space>
struct OwnBlockOn {
  Array<Space, std::int64_t> indptr;
  Array<Space, std::int32_t> indices;
  Array<Space, float> values;
  Array<Space, std::uint8_t> relations;
  Array<Space, std::int32_t> edge_entries;
  Array<Space, float> edge_rows;
};

/// to = from[0 .. count), which is the GPU's. To the host it waits.
template <class T>
void copy_out(const Cuda& cuda, const T* from, std::int64_t count, Buffer<T>& to) {
  to = download(cuda, from, static_cast<std::size_t>(count));
}
template <class T>
void copy_out(const Cuda& cuda, const T* from, std::int64_t count, DeviceArray<T>& to) {
  to.resize(static_cast<std::size_t>(count));
  copy_bytes_on_device(cuda, from, to.data(), to.size() * sizeof(T));
}

/// Of one on the GPU, without type_ends and without runs of types. The host waits for each block.
template <class To>
MinibatchOn<To> copy_minibatch(const Cuda& cuda, const MinibatchOn<Cuda>& minibatch) {
  struct Memory {
    Array<To, std::int64_t> vertices;
    std::vector<OwnBlockOn<To>> blocks;
  };
  const auto memory = std::make_shared<Memory>();
  MinibatchOn<To> copy;
  copy.number = minibatch.number;
  copy.examples_digest = minibatch.examples_digest;
  copy.adds_self = minibatch.adds_self;
  copy_out(cuda, minibatch.vertices.data(), std::ssize(minibatch.vertices), memory->vertices);
  copy.vertices = {memory->vertices.data(), memory->vertices.size()};
  memory->blocks.reserve(minibatch.blocks.size());
  for (const auto& block : minibatch.blocks) {
    auto& to = memory->blocks.emplace_back();
    std::int64_t first = 0;
    copy_from(cuda, block.indptr, 1, &first);
    DeviceArray<std::int64_t> begins(static_cast<std::size_t>(block.rows) + 1);
    copy_from_zero(cuda, block.indptr, std::ssize(begins), begins.data());
    copy_out(cuda, begins.data(), block.rows + 1, to.indptr);
    copy_out(cuda, block.indices + first, block.entries(), to.indices);
    if (block.has_values()) copy_out(cuda, block.values.data() + first, block.entries(), to.values);
    if (block.has_relations()) copy_out(cuda, block.relations.data() + first, block.entries(), to.relations);
    const auto& edges = block.edges;
    copy_out(cuda, edges.entries, edges.count, to.edge_entries);
    copy_out(cuda, edges.rows, edges.count * edges.width, to.edge_rows);
    auto& view = copy.blocks.emplace_back(
        block.rows, block.columns, block.entries(), to.indptr.data(), to.indices.data(),
        Beside<const float>{block.has_values(), std::span(to.values.data(), to.values.size())},
        Beside<const std::uint8_t>{block.has_relations(),
                                   std::span(to.relations.data(), to.relations.size())});
    view.edges = {edges.count, edges.width, to.edge_entries.data(), to.edge_rows.data()};
  }
  copy.memory = memory;
  return copy;
}

/// In memory of the host: itself, or a copy.
inline const Minibatch& on_host(const Cpu&, const Minibatch& minibatch) {
  return minibatch;
}
inline Minibatch on_host(const Cuda& cuda, const MinibatchOn<Cuda>& minibatch) {
  return copy_minibatch<Cpu>(cuda, minibatch);
}

}  // namespace espalier

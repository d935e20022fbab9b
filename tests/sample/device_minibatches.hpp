// Minibatches on their way between a GPU and the host.
#pragma once

#include "espalier/base/device_array.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

/// A minibatch in arrays of its own.
struct HostMinibatch {
  std::int64_t number = 0;
  Buffer<std::int64_t> vertices;
  std::vector<Block> blocks;
};

template <class Space>
Csr<std::int32_t> copy_of(const BlockView<Space>& block, const auto& read) {
  Csr<std::int32_t> to;
  to.rows = block.rows;
  to.columns = block.columns;
  to.indptr = read(block.indptr, static_cast<std::size_t>(block.rows) + 1);
  const auto first = to.indptr[0];
  for (auto& offset : to.indptr) offset -= first;
  const auto entries = static_cast<std::size_t>(block.entries());
  to.indices = read(block.indices + first, entries);
  if (block.has_values()) to.values = read(block.values.data() + first, entries);
  to.weighted = block.has_values();
  return to;
}

inline HostMinibatch to_host(const Cuda& cuda, const MinibatchOn<Cuda>& minibatch) {
  const auto read = [&](const auto* from, std::size_t count) { return download(cuda, from, count); };
  HostMinibatch copy = {minibatch.number, read(minibatch.vertices.data(), minibatch.vertices.size()), {}};
  for (const auto& block : minibatch.blocks) copy.blocks.push_back(copy_of(block, read));
  return copy;
}

inline HostMinibatch to_host(const Minibatch& minibatch) {
  const auto read = []<class T>(const T* from, std::size_t count) { return Buffer<T>(from, from + count); };
  HostMinibatch copy = {minibatch.number, read(minibatch.vertices.data(), minibatch.vertices.size()), {}};
  for (const auto& block : minibatch.blocks) copy.blocks.push_back(copy_of(block, read));
  return copy;
}

}  // namespace espalier

// Writing the file of an order, or of parts of edges: what belongs to a graph and stands beside it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/file/content_digest.hpp"
#include "espalier/file/hdf5_output.hpp"

namespace espalier {

/// Collective. My rows of a data set of this shape, from row `begin` on, with its digest; `values`
/// are [rows, width].
template <class T>
void write_rows(hdf5::Output& output, const char* name, const std::vector<std::int64_t>& shape,
                std::int64_t width, std::int64_t begin, std::span<const T> values, std::string_view label) {
  const auto dataset = hdf5::reserve_dataset(output.file(), name, hdf5::file_type<T>(), shape);
  const hdf5::Slab slab{begin, begin + std::ssize(values) / width, width};
  output.require(dataset.exists() && hdf5::write_slab(dataset, hdf5::memory_type<T>(), slab, values.data()),
                 name);
  const auto digest = output.comm().all_reduce(content_digest(values, begin * width), Reduction::kSum, label);
  output.require(hdf5::write_text_attribute(dataset.handle, "digest", hex(digest)), name);
}

}  // namespace espalier

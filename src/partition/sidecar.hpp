// The file of an order, or of parts of edges: what belongs to a graph and stands beside it. All
// ranks write it; rank 0 looks at it first, as it may be damaged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
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

/// What a sidecar says of itself.
struct SidecarHead {
  std::string method;                    ///< how it was made
  std::optional<std::uint64_t> pattern;  ///< digest of the graph's edges, where known
};

/// Reads one on this rank. Members throw UserError(kInput) that says what is wrong.
class SidecarReader {
 public:
  /// noun: "order", "edge parts"; advice: how one is made.
  SidecarReader(std::string noun, std::string path, std::string advice);

  /// Opens a file of that format, version 1; look() says what else is wrong with its structure, or
  /// nothing. It does not throw: nothing may leave the part that is guarded against crashes so.
  SidecarHead open(const char* format, const std::function<std::string(const SidecarHead&)>& look);
  [[noreturn]] void fail(const std::string& what) const;
  const hdf5::Handle& file() const { return file_; }
  /// Bytes of the file.
  std::int64_t size() const { return size_; }
  /// What is wrong with a data set that should hold integers of so many bytes, or nothing.
  std::string check_integers(const hdf5::Dataset& dataset) const;
  /// All of a data set, checked against its digest if it has one.
  template <class T>
  void read_array(const hdf5::Dataset& dataset, std::span<T> values, std::int64_t width) const {
    if (!hdf5::read_slab(dataset, hdf5::memory_type<T>(), {0, dataset.rows(), width}, values.data()))
      fail("cannot read " + dataset.name + ": " + hdf5::reason());
    check_digest(dataset, content_digest(std::span<const T>(values), 0));
  }
  void check_digest(const hdf5::Dataset& dataset, std::uint64_t digest) const;

 private:
  void check_is_file();
  std::string read_head(const char* format, SidecarHead& head);
  std::string message_of(const std::string& what) const;

  std::string noun_, path_, advice_;
  std::int64_t size_ = 0;
  hdf5::Handle file_;
};

}  // namespace espalier

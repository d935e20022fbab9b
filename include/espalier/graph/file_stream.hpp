// The random numbers that graph files are made of: Philox4x64-10 (Salmon et al., SC 2011;
// Random123). They are not a job's (base/philox.hpp): a job's may change with a version of the
// program, while a file of a seed stays what it is.
//
//     key     = (seed, purpose << 56)
//     counter = (draw / 4, row, layer, batch)        output word draw % 4
#pragma once

#include <cstdint>

#include "espalier/base/philox.hpp"

namespace espalier {

/// What a draw is for. The numbers are part of what a seed means: never renumber them.
enum class FilePurpose : std::uint64_t {
  kGenerateEdges = 5,
  kGenerateFeatures = 6,
  kGenerateLabels = 7,
  kGenerateSplit = 8,
  kSplitLinks = 15,
  kRelabel = 16,
  kTest = 255
};

/// The stream of draws of one row. `draw` counts 64-bit words within it.
struct FileStream {
  std::uint64_t seed = 0;
  FilePurpose purpose = FilePurpose::kTest;
  std::uint64_t batch = 0;
  std::uint64_t layer = 0;
  std::uint64_t row = 0;
};

/// Four words: draws 4 block .. 4 block + 3 of the stream.
inline r123array4x64 file_block(const FileStream& stream, std::uint64_t block) {
  const r123::Philox4x64::key_type key = {{stream.seed, static_cast<std::uint64_t>(stream.purpose) << 56}};
  const r123::Philox4x64::ctr_type counter = {{block, stream.row, stream.layer, stream.batch}};
  return philox4x64_R(10, counter, key);
}

inline std::uint64_t file_word(const FileStream& stream, std::uint64_t draw) {
  return file_block(stream, draw / 4).v[draw % 4];
}

/// An integer in [0, bound): the bias is below bound / 2^64.
inline std::uint64_t file_below(const FileStream& stream, std::uint64_t draw, std::uint64_t bound) {
  return mulhi(file_word(stream, draw), bound);
}

}  // namespace espalier

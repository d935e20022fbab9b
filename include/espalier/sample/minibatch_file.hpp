// Minibatches in a file, for programs that train on them elsewhere: records, then an index.
//
// A record is a function of (seed, epoch, batch), as the minibatch is, whoever writes it. Numbers
// are little endian; every array begins at a multiple of 8 bytes, with zeros before it.
//
//     int64 [6]       bytes of the record, CRC-32 of all bytes behind these two numbers, epoch,
//                     batch, L: blocks, columns of y (0: no labels, -1: one class for each seed,
//                     -2: links stand in its place)
//     int64 [L][4]    of each block, from the input to the output: rows, columns, entries, and 1
//                     where entries have relations, else 0
//     int64           vertices [columns of the first block]: ids of the graph file, seeds first
//     of each block:  int64 indptr [rows + 1], int32 indices [entries], float32 values [entries],
//                     perhaps uint8 relations [entries]
//     y               int32 [seeds], -1: not to be learnt; or uint8 [seeds, columns], 255: unknown
//     or links        int64 n: links, k: negatives of each; int32 heads [n], tails [n], relations
//                     [n], negative heads [n, k], negative tails [n, k]. Ends are places among the
//                     seeds
//
// The index, behind the last record: int64 [records][3], epoch, batch and where the record begins.
// Python reads it (python/espalier/minibatches.py).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/ranged_file.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

struct LinkBatch;  // link_examples.hpp

/// What is to be learnt of the seeds of a batch, in their order: one of the three, or nothing.
struct SeedLabels {
  std::span<const std::int32_t> classes = {};  ///< [seeds]
  std::span<const std::uint8_t> several = {};  ///< [seeds, columns]
  std::int64_t columns = 0;
  const LinkBatch* links = nullptr;
};

/// Not collective: a rank writes a file of its own. What cannot be written is a UserError(kUsage)
/// as of RangedFile. Memory: a few MiB beside the largest record.
class MinibatchFile {
 public:
  /// A new file, or an old one emptied.
  explicit MinibatchFile(const std::string& path) : file_(RangedFile::create(path)) {}

  /// `minibatch`: with values in all blocks.
  void append(std::int64_t epoch, const Minibatch& minibatch, const SeedLabels& labels);

  /// Adds the index, and waits until all is on the disk. Nothing is appended afterwards.
  void finish();

  std::int64_t records() const { return std::ssize(index_); }
  /// Index included, once finished.
  std::int64_t bytes() const { return written_ + std::ssize(waiting_); }

 private:
  struct Place {
    std::int64_t epoch = 0, batch = 0, begin = 0;
  };
  template <class T>
  void put(std::span<const T> values);
  void put_links(const LinkBatch& links);
  void seal(std::int64_t begin);
  void flush();

  RangedFile file_;
  std::int64_t written_ = 0;
  std::vector<char> waiting_;  ///< the file's bytes from written_ on; a multiple of 8
  std::vector<Place> index_;
};

}  // namespace espalier

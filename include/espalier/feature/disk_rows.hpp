// Rows on disk, of a table in the graph file or in a file of this rank (spilled_rows.hpp): of a
// hidden layer, or features in fewer bits than the graph file has. They are read, a chunk of
// neighbours at a time, when somebody asks for them. What the system keeps of the file in memory
// that nobody else wants is its cache.
//
// A chunk's digest is its share of the digest of its data set (file/content_digest.hpp), found
// when all rows are read once at the start, or written; with graph.verify, and in a file of this
// rank always, what is read later is held against it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/ranged_file.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/feature/normalize_rows.hpp"
#include "espalier/feature/row_storage.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

class DiskRows {
 public:
  /// Collective over all ranks of the file. The rows of a table of features, by their numbers
  /// (HeldTypes), whose data sets lie in the file as they do in memory (plain_features); reads all
  /// of them once. Throws UserError as GraphFile::read_features does.
  DiskRows(const Communicator& comm, const GraphFile& file, const InputTable& table);

  /// Rows that lie in a file of this rank one after another, in the order of their places.
  struct OwnFile {
    RangedFile file;
    std::string of, name;  ///< whose file, and what is in it, for messages
    std::int64_t rows;     ///< how many
    RowForm form;
    std::vector<std::uint64_t> digests;  ///< of each chunk of rows_of_chunk() of them
  };
  /// By their places on this rank; or those that part `part` owns, by the ids of the owners. Local.
  explicit DiskRows(OwnFile own, std::optional<Ownership> owners = {}, int part = 0);

  /// How many rows make a chunk.
  static std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t row_bytes);

  /// Are they numbered by their places on this rank, or by the table's ids?
  bool by_place() const { return by_place_; }
  std::int64_t rows() const { return rows_; }
  const RowForm& form() const { return form_; }

  /// graph.feature_norm for what is read from here on. Collective as above. `standard` as in
  /// read_features().
  void normalize(const Communicator& comm, const std::string& norm, Standardization& standard);

  /// Row k of `to` = the row of number numbers[k], in form(), for each k in `places`, which is put
  /// in another order; returns the bytes that were read. By several threads, each with many reads
  /// under way (base/parallel_reads.hpp) and 256 KiB to 2 MiB for them; several may call it. What
  /// cannot be read, or is damaged, ends the job.
  std::int64_t read(const Cpu& cpu, std::span<const std::int64_t> numbers, std::span<std::int64_t> places,
                    std::byte* to) const;

  /// What is read next comes from the disk (RangedFile::forget).
  void forget() const { file_->forget(); }

  /// Bytes of memory for so many rows of so many bytes.
  static double memory_bytes(double rows, double row_bytes);

 private:
  // A data set with rows [begin, end) of the table.
  struct Part {
    std::int64_t begin, end, offset;
    RowForm form;  // that its rows have there
    std::string name;
    std::int64_t first_chunk;
  };
  struct Chunk {
    const Part* part;
    std::int64_t begin, end;  // rows of the table
  };
  Chunk chunk_of(std::int64_t number) const;
  std::int64_t number_of(const Chunk& chunk) const;
  template <class S>
  void digest_part(const Communicator& comm, const GraphFile& file, int type, const Part& part);
  class Reading;

  std::string of_;
  std::optional<RangedFile> file_;
  bool verify_, by_place_;
  std::int64_t rows_ = 0, chunk_rows_;
  RowForm form_;
  std::optional<Ownership> owners_;  // whose ids become places of part_
  int part_ = 0;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> digests_;  // [chunks]
  std::string norm_ = "none";
  Standardization standard_;
};

}  // namespace espalier

// Writes a graph file (graph_file.hpp says what is in one), all ranks together or one rank alone.
//
// Every rank hands over consecutive rows in rank order: rank 0 the first, rank p-1 the last, any of
// them none, and always the same numbers of rows. The file appears under its name only when
// everything is written: until commit() it is a temporary beside it, removed when anything fails.
//
//     GraphWriter writer(comm, "graph.h5");
//     writer.write_adjacency(my_rows);
//     writer.write_rows(Column::kFeatures, 0, my_features);
//     writer.commit({"cora", "where it came from", false});
//
// A graph with types is written by the same members, after write_schema(); what is said of vertices
// is then said type by type, and ranks hand over consecutive vertices of that type.
//
// Digests of each data set and of the file are written beside them (content_digest.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "espalier/comm/communicator.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/file/destination.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

namespace hdf5 {
struct Dataset;
}

struct GraphDescription {
  std::string name;
  std::string source;
  bool directed = false;
};

class GraphWriter {
 public:
  /// Collective. Creates the temporary. Every member throws UserError(kUsage) on every rank when
  /// the disk refuses, this one also as check_output() does.
  GraphWriter(const Communicator& comm, const Destination& destination);
  /// Collective. Removes the temporary unless commit() succeeded.
  ~GraphWriter();
  GraphWriter(const GraphWriter&) = delete;
  GraphWriter& operator=(const GraphWriter&) = delete;

  /// Collective, the same on every rank, before all others: the file becomes one of version 2.
  void write_schema(const Schema& schema);

  /// Collective. My rows of A with global columns, those of the schema, ascending; Index decides
  /// the width in the file. Weights are written when any rank has values.
  template <class Index>
  void write_adjacency(const Csr<Index>& rows);

  /// Collective. My rows of a column (graph_file.hpp) of a type, a relation or a split of links: of
  /// a relation its entries, row by row of my rows, so that the parts in rank order are in the
  /// order of graph_file.hpp. Ranks without rows may pass an empty matrix of any width.
  /// `write_rows` has tables, `write_list` what has one dimension (and times a unit).
  template <class T>
  void write_rows(Column column, int owner, const Matrix<T>& rows);
  template <class T>
  void write_list(Column column, int owner, std::type_identity_t<std::span<const T>> values,
                  const std::string& unit = "");
  void write_texts(Column column, int owner, std::span<const std::string> texts);

  /// Collective. The same of rows that rank 0 has, however many: `read`, collective, is called for
  /// one piece after the other and told its first row; it has rows to fill on rank 0 alone. `rows`
  /// and `columns` are those of all pieces, on every rank. An error of `read` is everyone's.
  template <class T>
  void write_pieces(Column column, int owner, std::int64_t rows, std::int64_t columns,
                    const std::function<void(std::int64_t, Matrix<T>&)>& read);

  /// Collective. My rows of sparse features with so many columns, as pairs (dense/paired_rows.hpp);
  /// what is 0 is left out.
  void write_sparse_features(const Matrix<float>& pairs, std::int64_t columns, int type = 0);

  /// Collective. -1 = no label. Stores the number of classes beside them: the largest label + 1, or
  /// `classes` where that is more.
  void write_labels(std::span<const std::int32_t> labels, int type = 0, std::int64_t classes = 0);

  /// Collective. My part of a split, counted within the type; the parts in rank order
  /// are ascending. Of several splits of a type each has a name.
  void write_split(Split split, std::span<const std::int64_t> ids, int type = 0,
                   const std::string& name = "");

  /// Collective, the same on every rank: direction and relations of links, before the links
  /// themselves. What it says of splits is not looked at.
  void write_link_relations(const LinkInfo& info);

  /// Collective. My part of the links of a split.
  void write_links(Split split, const Links& links);

  /// Collective. Closes the file and gives it its name as put_in_place() does: a file that appeared
  /// there meanwhile is replaced only when that is allowed, else this one stays beside it under
  /// another name.
  void commit(const GraphDescription& description);

 private:
  struct State;
  template <class T>
  void write(const std::string& name, std::int64_t total, std::int64_t columns, std::int64_t begin,
             std::span<const T> values);
  template <class T>
  void write_made(const std::string& name, std::int64_t total, std::int64_t begin, std::int64_t count,
                  const std::function<T(std::int64_t)>& make);
  template <class Index>
  void write_row_begins(const std::string& name, const Csr<Index>& rows, std::int64_t total,
                        std::int64_t row_begin, std::int64_t entry_begin);
  void finish_dataset(const std::string& name, const hdf5::Dataset& dataset, bool good,
                      std::uint64_t my_digest);
  template <class T>
  void write_vector(const std::string& name, std::span<const T> values);
  template <class T>
  void write_by_first(const std::string& name, const std::vector<T>& values);
  void write_texts(const std::string& name, std::span<const std::string> texts);
  template <class Index>
  void write_segments(const Csr<Index>& rows, std::int64_t row_begin, std::int64_t entry_begin);

  std::unique_ptr<State> state_;
};

/// Collective. Writes digests of what a file holds, all of it known, into the file, in place of
/// those that stand there. Throws UserError(kUsage) when it cannot be written.
void write_digests(const Communicator& comm, const std::string& path, const ContentDigests& digests);

}  // namespace espalier

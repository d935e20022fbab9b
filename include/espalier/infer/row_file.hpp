// What `espalier infer` writes: rows of one layer for vertices of a graph, HDF5, by all ranks
// together, each its own rows, chunk by chunk.
//
//     /                 attributes format = "espalier-rows", version = 1, and what the caller adds
//     /embeddings       float32 or float16 [rows, width]: H[l] of a hidden layer, or
//     /logits           the same of the last layer
//     /predictions      int32 [rows]: the class of the largest logit, the lowest of equal ones; or,
//                       where a vertex has several labels, uint8 [rows, labels]: 1 for a positive
//                       logit, else 0
//     /ids              int64 [rows], ascending: the vertex of each row, where they were chosen;
//                       otherwise row v is vertex v
//     /types/NAME/...   the same for a vertex type of a graph with several, where those were asked
//                       for; attributes type = NAME, first: its first vertex in the whole graph,
//                       vertices: how many it has, trained: has a loss read such rows?
//
// With types vertices are counted within the type, as in the graph file.
//
// The file appears whole or not at all (hdf5::Output).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/half.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/file/archive.hpp"
#include "espalier/infer/row_sink.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

/// Vertices whose rows stand together: all of a graph, or a type's.
struct RowTable {
  std::string type = {};                            ///< they stand in /types/TYPE; empty:
                                                    ///< at the root
  RowRange vertices = {};                           ///< of the graph; in the file they count from 0
  bool predictions = false;                         ///< /predictions, too
  std::optional<bool> trained = {};                 ///< has a loss read such rows? None: not known
  std::optional<Buffer<std::int64_t>> chosen = {};  ///< counted as in the file; ascending,
                                                    ///< distinct, the same on every rank

  std::string path(const std::string& dataset) const {
    return type.empty() ? dataset : "/types/" + type + dataset;
  }
  std::int64_t rows() const { return chosen ? std::ssize(*chosen) : vertices.size(); }
};

struct RowFileShape {
  std::string rows = "/logits";  ///< the data set's name
  std::int64_t width = 0;
  bool half = false;        ///< float16 instead of float32
  std::int64_t labels = 0;  ///< several per vertex, so many of them; 0: one class
  std::vector<RowTable> tables;

  /// "/logits float32 [600, 4], /predictions".
  std::string in_words() const;
};

class RowFile {
 public:
  /// Collective. Creates the file as a temporary. Throws UserError as hdf5::Output does.
  RowFile(const Communicator& comm, const OutputFile& output, RowFileShape shape);

  /// Writes the rows of the vertices first .. first + rows.rows of the graph, or those of them that
  /// were chosen. Each vertex once, on one rank. Local; check() tells what went wrong.
  void write_rows(std::int64_t first, const Matrix<float>& rows);
  /// The same for what the logits of these vertices predict.
  void write_predictions(std::int64_t first, const Matrix<float>& logits);

  /// Collective. Throws UserError(kUsage) on every rank when a write has failed on any, or a number
  /// was too large for float16.
  void check();

  /// Collective, once all is written. `describe` adds attributes to the root of the file, the same
  /// on every rank. The file is there afterwards.
  void commit(const std::function<void(ArchiveWriter&)>& describe);

 private:
  struct Datasets {
    hdf5::Dataset rows, predictions;
  };
  Datasets create(const RowTable& table);
  void write_predictions(const Datasets& to, std::int64_t place, const ConstMatrixView<float>& logits);
  Buffer<Half> halves_of(const RowTable& table, std::int64_t place, const ConstMatrixView<float>& rows);

  hdf5::Output output_;
  RowFileShape shape_;
  std::vector<Datasets> datasets_;  // of each table; closed before output_
  bool good_ = true;                // has every write of this rank succeeded?
  std::string too_large_;           // the first number for float16, in words
};

/// Gives the rows of a layer to `take_rows`, range by range of the file's ids: the first vertex,
/// and the rows.
template <class Space>
class RowsByVertexOn : public RowSinkOn<Space> {
 public:
  using TakeRows = std::function<void(std::int64_t vertex, const Matrix<float>& rows)>;
  /// `shares`, of which `rank` has its own, must outlive it.
  RowsByVertexOn(const Ownership& shares, int rank, TakeRows take_rows)
      : shares_(shares), rank_(rank), take_rows_(std::move(take_rows)) {}

  void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) override {
    if constexpr (std::is_same_v<Space, Cpu>) {
      write(first, rows);
    } else {
      Matrix<float> host;
      host.rows = rows.rows, host.columns = rows.columns;
      host.data = copy_from(space, rows.data);
      write(first, host);
    }
  }

 private:
  void write(std::int64_t first, const Matrix<float>& rows) {
    const auto ranges = shares_.vertices(rank_, {first, first + rows.rows});
    if (ranges.size() == 1) return take_rows_(ranges[0].begin, rows);
    Matrix<float> piece;
    auto from = rows.data.begin();
    for (const auto& range : ranges) {
      piece.resize(range.size(), rows.columns);
      std::copy_n(from, piece.data.size(), piece.data.begin());
      from += std::ssize(piece.data);
      take_rows_(range.begin, piece);
    }
  }

  const Ownership& shares_;
  int rank_;
  TakeRows take_rows_;
};

}  // namespace espalier

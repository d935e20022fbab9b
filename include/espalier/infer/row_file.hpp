// What `espalier infer` writes: rows of one layer for vertices of a graph, HDF5, by all ranks
// together, each its own rows, chunk by chunk.
//
//     /                 attributes format = "espalier-rows", version = 1, and what the caller adds
//     /embeddings       float32 or float16 [rows, width]: H[l] of a hidden layer, or
//     /logits           the same of the last layer
//     /predictions      int32 [rows]: the class of the largest logit, the lowest of equal ones
//     /ids              int64 [rows], ascending: the vertex of each row, where they were chosen;
//                       otherwise row v is vertex v
//
// The file appears whole or not at all (hdf5::Output).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/graph/hdf5_output.hpp"
#include "espalier/infer/row_sink.hpp"

namespace espalier {

struct RowFileShape {
  std::string rows = "/logits";  ///< the data set's name
  std::int64_t vertices = 0;     ///< of the graph
  std::int64_t width = 0;
  bool half = false;         ///< float16 instead of float32
  bool predictions = false;  ///< of one class per vertex; several labels per vertex would be
                             ///< uint8 [rows, labels] here
  std::optional<Buffer<std::int64_t>> chosen;  ///< ascending, distinct, the same on every rank
};

class RowFile {
 public:
  /// Collective. Creates the file as a temporary. Throws UserError as hdf5::Output does.
  RowFile(const Communicator& comm, const OutputFile& output, RowFileShape shape);

  /// Writes the rows of the vertices first .. first + rows.rows, or those of them that were chosen.
  /// Each vertex once, on one rank. Local; check() tells what went wrong.
  void write_rows(std::int64_t first, const Matrix<float>& rows);
  /// The same for what the logits of these vertices predict.
  void write_predictions(std::int64_t first, const Matrix<float>& logits);

  /// Collective. Throws UserError(kInput) on every rank when a write has failed on any.
  void check();

  /// Collective, once all is written. `describe` adds attributes to the root of the file, the same
  /// on every rank, and says whether that went well. The file is there afterwards.
  void commit(const std::function<bool(const hdf5::Handle& root)>& describe);

 private:
  struct Place {
    std::int64_t row = 0;    ///< the first row in the file
    std::int64_t count = 0;  ///< how many
  };
  Place place_of(std::int64_t first, std::int64_t count) const;
  void write_ids();

  hdf5::Output output_;
  RowFileShape shape_;
  hdf5::Dataset rows_, predictions_;  // closed before output_
  bool good_ = true;                  // has every write of this rank succeeded?
};

/// The sink that writes a layer to a file: rows, predictions or both.
template <class Space>
class RowFileSinkOn final : public RowSinkOn<Space> {
 public:
  /// The file must outlive it.
  RowFileSinkOn(RowFile& file, bool rows, bool predictions)
      : file_(file), rows_(rows), predictions_(predictions) {}

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
    if (rows_) file_.write_rows(first, rows);
    if (predictions_) file_.write_predictions(first, rows);
  }

  RowFile& file_;
  bool rows_, predictions_;
};

}  // namespace espalier

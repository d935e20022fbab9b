// What a network predicts of vertices, as CSV:
//
//     id,class,probability
//     A-1,toys,0.998940349
//
// a line for each vertex, ascending: its id where the graph has ids, else its number within its
// type; the name of the class of the largest logit, else its number; the softmax of that logit. Of
// several labels a line for each that is more likely than not (its logit is positive), with its
// sigmoid: a vertex may have none. Fields are quoted as RFC 4180 says, lines end with \n.
//
// Ranks keep what they predict, 24 bytes a line; rank 0 writes it in pieces of so many vertices,
// whose predictions and ids it is given. So the bytes are the same on any number of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/infer/row_file.hpp"

namespace espalier {

class PredictionList {
 public:
  static constexpr std::size_t kLineBytes = 24;

  /// Of the vertices of a table, or of those chosen; `several_labels`: each logit is a label's.
  PredictionList(RowTable table, bool several_labels)
      : table_(std::move(table)), several_labels_(several_labels) {}

  /// Room for the lines of so many vertices, one each.
  void reserve(std::int64_t vertices);
  /// The logits of the vertices first .. first + logits.rows of the graph. Each vertex once, on one
  /// rank. Local.
  void add(std::int64_t first, const Matrix<float>& logits);

  /// Collective. Writes the file, whole or not at all; `type`: of `file`, whose vertices these are.
  /// Returns the number of lines below the first. Throws UserError as hdf5::Output does.
  std::int64_t write(const Communicator& comm, const GraphFile& file, int type, const OutputFile& output);

 private:
  struct Prediction {
    std::int64_t vertex;  // within the table
    double probability;
    std::int32_t choice;
  };
  static_assert(sizeof(Prediction) == kLineBytes);

  void add_row(std::int64_t vertex, const float* logits, std::int64_t columns);
  std::vector<std::int64_t> beginnings_of_pieces() const;

  RowTable table_;
  bool several_labels_;
  std::vector<Prediction> own_;
};

}  // namespace espalier

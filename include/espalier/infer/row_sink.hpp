// Where the rows of a layer go while a network is computed over the whole graph
// (layerwise_pass.hpp).
//
// A sink is given all rows of this rank's share, ascending, chunk by chunk. What it does with them
// is its own: it keeps them, evaluates them, writes them to a file.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

template <class Space>
class RowSinkOn {
 public:
  virtual ~RowSinkOn() = default;

  /// `rows` [count, width] of H[l], of the vertices at the places first .. first + count of this
  /// rank's share (LayerwisePassOn::shares), in memory of the space. The sink may take that memory
  /// by a swap: what stands there afterwards is written over. Local: other ranks are given other
  /// numbers of chunks. A problem that only this rank meets must wait for a collective call of the
  /// sink's own.
  virtual void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) = 0;
};
using RowSink = RowSinkOn<Cpu>;

/// Keeps the rows of a share in one matrix, and gives them to `also`, too, unless that is null.
template <class Space>
class KeptRowsOn final : public RowSinkOn<Space> {
 public:
  KeptRowsOn(std::int64_t rows, std::int64_t width, RowSinkOn<Space>* also = nullptr)
      : rows_(rows), width_(width), also_(also) {}

  void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) override {
    if (also_ == nullptr && rows.rows == rows_) return std::swap(kept_, rows);
    if (first == 0) kept_.resize(rows_, width_);
    copy_within(space, rows.data.data(), rows.rows * width_, kept_.row(first));
    if (also_ != nullptr) also_->take(space, first, rows);
  }

  /// [rows, width], once all were given.
  Matrix<float, Space> release() {
    if (rows_ == 0) kept_.resize(0, width_);
    return std::move(kept_);
  }

 private:
  std::int64_t rows_, width_;
  RowSinkOn<Space>* also_;
  Matrix<float, Space> kept_;
};

/// Gives the rows of a layer to several sinks, of which only the last may take their memory.
template <class Space>
class SeveralSinksOn final : public RowSinkOn<Space> {
 public:
  /// `sink` must outlive it.
  void add(RowSinkOn<Space>& sink) { sinks_.push_back(&sink); }
  RowSinkOn<Space>* or_null() { return sinks_.empty() ? nullptr : this; }
  void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) override {
    for (auto* sink : sinks_) sink->take(space, first, rows);
  }

 private:
  std::vector<RowSinkOn<Space>*> sinks_;
};

}  // namespace espalier

// Edges whose ids are any numbers of at least 0: their vertices numbered in ascending order of the
// ids, so that the numbers are a function of the set of edges.
//
// Memory: a table of 16 bytes for 0.6 of a place each, and the ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "espalier/base/buffer.hpp"
#include "espalier/graph/edge_source.hpp"

namespace espalier {

/// Numbers of ids.
class VertexNumbers {
 public:
  /// Reads the edges once.
  explicit VertexNumbers(const EdgeSource& edges);
  /// [n], ascending.
  const Buffer<std::int64_t>& ids() const { return ids_; }
  /// -1: no edge has this id.
  std::int64_t number_of(std::int64_t id) const;

 private:
  struct Entry {
    std::int64_t id, number;
  };
  Buffer<std::int64_t> ids_;
  Buffer<Entry> table_;  // by hash, then the next free place; id -1: free
};

class RenumberedEdges : public EdgeSource {
 public:
  /// Reads the edges once.
  explicit RenumberedEdges(std::unique_ptr<EdgeSource> edges) : edges_(std::move(edges)), numbers_(*edges_) {}
  const VertexNumbers& numbers() const { return numbers_; }
  void read(const std::function<void(const EdgePiece&)>& use) const override;
  bool weighted() const override { return edges_->weighted(); }
  std::string name() const override { return edges_->name(); }
  std::string place(std::int64_t edge) const override { return edges_->place(edge); }

 private:
  std::unique_ptr<EdgeSource> edges_;
  VertexNumbers numbers_;
};

}  // namespace espalier

// Which types of vertices have rows in a store. Those that have are numbered one after another, and
// the numbers are what a store is asked for: a type without features costs no memory and no byte.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/ownership.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

class HeldTypes {
 public:
  /// All vertices: their ids are the numbers.
  HeldTypes() = default;
  HeldTypes(const Schema& schema, const std::vector<bool>& held);

  bool all() const { return types_.empty(); }
  /// How many vertices of `ids` have rows: the numbers are [0, that).
  std::int64_t count(std::int64_t ids) const { return all() ? ids : count_; }
  bool holds_type(int type) const { return all() || types_[type].held; }
  bool holds(std::int64_t vertex) const { return all() || types_[type_of(vertex)].held; }
  /// Of a vertex of a type that is held.
  std::int64_t number(std::int64_t vertex) const {
    return all() ? vertex : vertex - types_[type_of(vertex)].shift;
  }
  std::int64_t shift(int type) const { return all() ? 0 : types_[type].shift; }
  /// The vertex of a number.
  std::int64_t vertex(std::int64_t number) const;
  /// A part owns the numbers of the vertices that it owns.
  Ownership owners(const Ownership& vertices) const;

  struct Type {
    std::int64_t begin, end;  ///< ids
    std::int64_t shift;       ///< id - number
    bool held;
  };
  const std::vector<Type>& types() const { return types_; }

 private:
  int type_of(std::int64_t vertex) const;

  std::vector<Type> types_;
  std::int64_t count_ = 0;
};

/// The numbers of those vertices of a list that are held, in order. The runs cover it; memory of
/// the space.
void numbers_of(const Cpu& cpu, const HeldTypes& held, std::span<const TypeRun> runs,
                std::span<const std::int64_t> vertices, Buffer<std::int64_t>& numbers);
void numbers_of(const Cuda& cuda, const HeldTypes& held, std::span<const TypeRun> runs,
                std::span<const std::int64_t> vertices, DeviceArray<std::int64_t>& numbers);

}  // namespace espalier

// The types of a graph: vertex types are contiguous ranges of one id space, and each relation joins
// a source type to a target type.
//
// One matrix holds all relations. Its rows are vertices; its columns are pairs (relation, source),
// relation after relation: A = [A_0 | A_1 | ... ], A_r with a column for each vertex of r's source
// type. So the entries of a row ascend by (relation, source) where columns ascend, one product
// serves all relations, and what draws from rows, sums them or selects columns needs nothing new. A
// graph of one type and one relation is the case where column u is vertex u.
//
//     vertices        author 0..2 | paper 3..7                   types, by begin
//     columns         writes: 0..2 | cites: 3..7 | about: 8..12  relations, by columns.begin(r)
//     column of (r, u)  = columns.begin(r) + u - source type's begin
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/host_device.hpp"

namespace espalier {

inline constexpr int kMostTypes = 256, kMostRelations = 256;

struct VertexType {
  std::string name;
  std::int64_t begin = 0, end = 0;  ///< its vertices are ids [begin, end)

  std::int64_t size() const { return end - begin; }
};

struct Relation {
  std::string name;            ///< as the field writes it: "cites"; with its types it is
                               ///< the only one
  int source = 0, target = 0;  ///< places in the list of types; row v holds the edges into v
  int inverse = -1;            ///< the relation of the same edges the other way round;
                               ///< -1: none here
};

/// May a name of a type or a relation have this letter?
inline bool is_in_names(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
}
/// "author, paper", for messages.
std::string names_of(const std::vector<VertexType>& types);

/// Which relation and which vertex a column is. Small: copied into kernels.
struct ColumnsOf {
  const std::int64_t* begins = nullptr;  ///< [relations + 1], memory of the space; null: one
                                         ///< relation, columns are vertices
  const std::int64_t* shifts = nullptr;  ///< [relations] vertex - column
  int relations = 1;

  ESPALIER_HD int relation(std::int64_t column) const {
    int low = 0, high = begins == nullptr ? 1 : relations;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (begins[middle] <= column ? low : high) = middle;
    }
    return low;
  }
  ESPALIER_HD std::int64_t vertex(std::int64_t column) const {
    return begins == nullptr ? column : column + shifts[relation(column)];
  }
};

class Schema {
 public:
  /// One type and one relation, of n vertices: a graph without types.
  explicit Schema(std::int64_t n);
  Schema() : Schema(0) {}
  /// Throws std::invalid_argument that says in words what does not fit: types that are no cover of
  /// [0, n), in order; names that are empty, repeated or hold other characters than letters,
  /// digits, '_' and '-'; relations between types that are not there, or inverses that do not
  /// fit each other.
  Schema(std::vector<VertexType> types, std::vector<Relation> relations);

  const std::vector<VertexType>& types() const { return types_; }
  const std::vector<Relation>& relations() const { return relations_; }
  std::int64_t nodes() const { return types_.back().end; }
  std::int64_t columns() const { return begins_.back(); }
  /// Columns [begin(r), begin(r + 1)) are relation r's.
  std::int64_t begin(int relation) const { return begins_[relation]; }
  std::int64_t column(int relation, std::int64_t source) const { return source - shifts_[relation]; }
  int relation_of(std::int64_t column) const { return on_host().relation(column); }
  std::int64_t vertex_of(std::int64_t column) const { return on_host().vertex(column); }
  int type_of(std::int64_t vertex) const;
  /// Is a column just a vertex?
  bool plain() const { return types_.size() == 1 && relations_.size() == 1; }

  /// "author.writes.paper"
  std::string full_name(int relation) const;
  /// The place of a type, or -1.
  int find_type(std::string_view name) const;
  /// The relation of a full name, or of a short one that only one has; -1.
  int find_relation(std::string_view name) const;
  /// "author, paper"; "author.writes.paper, ...", for messages.
  std::string type_names() const { return names_of(types_); }
  std::string relation_names() const;

  const std::vector<std::int64_t>& begins() const { return begins_; }
  const std::vector<std::int64_t>& shifts() const { return shifts_; }
  ColumnsOf on_host() const {
    return plain() ? ColumnsOf{}
                   : ColumnsOf{begins_.data(), shifts_.data(), static_cast<int>(shifts_.size())};
  }

 private:
  std::vector<VertexType> types_;
  std::vector<Relation> relations_;
  std::vector<std::int64_t> begins_ = {0};  ///< [relations + 1]
  std::vector<std::int64_t> shifts_;        ///< [relations]
};

}  // namespace espalier

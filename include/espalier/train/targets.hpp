// What a task reads of a graph file before training: the splits, and what its vertices should
// become.
//
// Every rank holds the training vertices and what is to be learnt of them. What is known of others
// stays with the rank that evaluates them.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

struct TaskKind;

struct BatchGroups;  // sample/examples.hpp

/// What all tasks have in common; each adds its own, below.
struct Targets {
  virtual ~Targets() = default;

  std::int64_t outputs = 0;    ///< columns of the logits
  Buffer<std::int64_t> train;  ///< ascending ids, whole, on every rank
  Ownership evaluated_by;      ///< part r: the vertices that rank r evaluates; each has one rank
  int rank = 0;                ///< this one
  /// Of each split, in the order of Split, the places among my vertices of those that are in it;
  /// ascending.
  std::array<std::vector<std::int64_t>, 3> evaluated;

  std::int64_t evaluated_rows() const { return evaluated_by.size(rank); }
  /// Those of a split among my vertices first .. first + count.
  std::span<const std::int64_t> evaluated_among(std::size_t split, std::int64_t first,
                                                std::int64_t count) const& {
    const auto& places = evaluated[split];
    return {std::ranges::lower_bound(places, first), std::ranges::lower_bound(places, first + count)};
  }
};

/// Fills in the training vertices and who evaluates which of the others, the ranks of a process row
/// each a share of the block row that `blocks` gives them.
void place_targets(const Grid& grid, const Ownership& blocks,
                   const std::array<Buffer<std::int64_t>, 3>& splits, Targets& targets);

/// Collective over the grid. The splits, which check_splits has let through, and who
/// evaluates what.
void read_splits(const Grid& grid, const GraphFile& file, const Ownership& blocks, Targets& targets);

/// Collective over the grid. What is known of each vertex of a split, in their order, on every
/// rank. `vertices`: of the split, ascending; `evaluated`: `width` values for each vertex that
/// I evaluate.
template <class T>
Buffer<T> gather_split(const Grid& grid, const Targets& targets, Split split,
                       std::span<const std::int64_t> vertices, const Buffer<T>& evaluated,
                       std::int64_t width);

/// Collective over the grid. What the task of a config trains and evaluates by, of a file that
/// check_labels, check_splits and the task's own check have let through. `groups`: of local
/// batches, or null.
std::unique_ptr<Targets> read_targets(const Grid& grid, const GraphFile& file, const Ownership& blocks,
                                      const Config& config, const BatchGroups* groups = nullptr);

/// Throws UserError(kInput) when the task of that name cannot be learnt from the labels: none, all
/// -1, several per vertex where it wants one.
void check_labels(const GraphInfo& graph, const std::string& path, const std::string& task);

// The task "classes": each vertex has one of `outputs` classes, by its label.

struct ClassTargets : Targets {
  Buffer<std::int32_t> train_labels;      ///< beside train
  Buffer<std::int32_t> evaluated_labels;  ///< of the vertices that I evaluate; -1: none
};

/// Weights of the classes [classes] by which each class counts alike: n / (k count of the class),
/// of n labels in k classes that have any; 0 for the others. scikit-learn's
/// compute_class_weight("balanced").
std::vector<double> balanced_weights(std::span<const std::int32_t> labels, std::int64_t classes);

extern const TaskKind kClassesKind;

// The task "labels": each vertex has or has not each of `outputs` labels, as far as that is known.

struct LabelTargets : Targets {
  Matrix<std::uint8_t> train_labels;      ///< [train, outputs]: 0, 1 or kUnknownLabel
  Matrix<std::uint8_t> evaluated_labels;  ///< [evaluated_rows(), outputs]: of the vertices that
                                          ///< I evaluate
};

extern const TaskKind kLabelsKind;

}  // namespace espalier

// Labels and splits of the vertices that an import reads, of one type, whatever the layout.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/graph/graph_file.hpp"
#include "feature_rows.hpp"

namespace espalier {

/// Are these, by the largest label, more classes than so many vertices have a use for?
inline bool are_too_many_classes(std::int64_t classes, std::int64_t vertices) {
  return classes > std::int64_t{1} << 20 && classes > vertices;
}

/// The vertices that a table or an array speaks of.
struct VertexCount {
  std::int64_t count = 0;
  std::string by;  ///< who says so, for messages: "num-node-list says 5 vertices"
};

struct OgbLabels {
  std::int64_t columns = 0;      ///< 0: there are none
  Buffer<std::int32_t> classes;  ///< [n] when columns = 1; -1 = none
  Matrix<std::uint8_t> multi;    ///< [n, columns] when columns > 1
};

/// What says that a vertex has no class: arrays of whole numbers have no nan.
enum class NoClass { kNan, kMinusOneToo };

/// What a file says of vertices, a row for each: its class, nan for none, or several labels of 0
/// and 1, nan for unknown. Null: there are no labels. Throws UserError with the place.
OgbLabels read_labels(std::unique_ptr<FeatureRows> rows, std::int64_t vertices, NoClass none = NoClass::kNan);

/// One line for people.
std::string in_words(const OgbLabels& labels);

/// train, valid, test: ascending ids.
using Splits = std::array<Buffer<std::int64_t>, 3>;

/// "NAME: 60 train, 20 valid, 20 test", or without a name.
std::string in_words(const Splits& splits, const std::string& name);

inline constexpr std::array kSplits = {Split::kTrain, Split::kValid, Split::kTest};

/// A test set may be handed out without its labels.
enum class HiddenTests {
  kRefuse,  ///< it is refused, as all vertices of a split without a label are
  kLeave,   ///< where no vertex of `test` has a label, `test` stays empty, with a warning
};

/// Collects splits; they must not overlap and, with one label column, hold labelled vertices only.
class SplitCollector {
 public:
  /// `labels` must outlive it.
  SplitCollector(std::int64_t vertices, const OgbLabels& labels, HiddenTests hidden);
  /// Throws UserError that starts with `place()`.
  void add(Split split, std::int64_t vertex, const std::function<std::string()>& place);
  /// Throws UserError where some vertices of test have a label and others have none.
  Splits finish();

 private:
  std::vector<signed char> owner_;  // [n] the split of a vertex
  const OgbLabels& labels_;
  HiddenTests hidden_;
  std::int64_t tests_ = 0, without_label_ = 0;
  std::string refusal_;  // of the first vertex of test without a label
};

}  // namespace espalier

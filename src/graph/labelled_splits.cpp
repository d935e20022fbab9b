#include "labelled_splits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

namespace {

std::int32_t class_label(const FeatureRows& from, double value, NoClass none) {
  if (std::isnan(value) || (none == NoClass::kMinusOneToo && value == -1)) return -1;
  if (!(value >= 0 && value < std::numeric_limits<std::int32_t>::max() && value == std::floor(value)))
    input_error("{}: label {} is not a whole number of at least 0, nor nan for none", from.place(), value);
  return static_cast<std::int32_t>(value);
}

// A class is a column of what a network puts out: one far beyond the vertices is an id perhaps.
void check_class(const FeatureRows& from, std::int32_t label, std::int64_t vertices) {
  if (are_too_many_classes(label + std::int64_t{1}, vertices))
    input_error("{}: label {} makes {} classes of {}; number classes from 0", from.place(), label,
                label + std::int64_t{1}, counted(vertices, "vertex"));
}

std::uint8_t task_label(const FeatureRows& from, double value) {
  if (std::isnan(value)) return kUnknownLabel;
  if (value != 0 && value != 1)
    input_error(
        "{}: label {} is not 0 or 1, nor nan for unknown; a file with several label columns holds one of "
        "these "
        "per class",
        from.place(), value);
  return static_cast<std::uint8_t>(value);
}

}  // namespace

OgbLabels read_labels(std::unique_ptr<FeatureRows> rows, std::int64_t vertices, NoClass none) {
  OgbLabels labels;
  if (!rows) return labels;
  labels.columns = rows->columns();
  if (labels.columns > 1)
    labels.multi.resize(vertices, labels.columns);
  else
    labels.classes.reserve(vertices);
  std::vector<double> row(static_cast<std::size_t>(labels.columns));
  for (std::int64_t v = 0; v < vertices; ++v) {
    rows->next(row);
    if (labels.columns == 1) {
      labels.classes.push_back(class_label(*rows, row[0], none));
      check_class(*rows, labels.classes.back(), vertices);
    }
    for (std::int64_t k = 0; labels.columns > 1 && k < labels.columns; ++k)
      labels.multi(v, k) = task_label(*rows, row[k]);
  }
  rows->finish();
  return labels;
}

std::string in_words(const OgbLabels& labels) {
  if (labels.columns > 1)
    return fmt::format("{} of 0 and 1, {} unknown", counted(labels.columns, "column"),
                       std::ranges::count(labels.multi.data, kUnknownLabel));
  const auto unlabelled = std::count(labels.classes.begin(), labels.classes.end(), -1);
  return fmt::format("{}, {} without one", counted(std::ssize(labels.classes), "vertex"), unlabelled);
}

std::string in_words(const Splits& splits, const std::string& name) {
  return fmt::format("{}{}{} train, {} valid, {} test", name, name.empty() ? "" : ": ", splits[0].size(),
                     splits[1].size(), splits[2].size());
}

namespace {
constexpr signed char kNone = -1;
}

SplitCollector::SplitCollector(std::int64_t vertices, const OgbLabels& labels, HiddenTests hidden)
    : owner_(vertices, kNone), labels_(labels), hidden_(hidden) {}

void SplitCollector::add(Split split, std::int64_t vertex, const std::function<std::string()>& place) {
  auto& mine = owner_[vertex];
  if (mine == static_cast<signed char>(split))
    input_error(
        "{}: vertex {} is in {} twice; a split lists its vertices, each once, and is no mask of 0 and 1",
        place(), vertex, kSplitNames[mine]);
  if (mine != kNone)
    input_error("{}: vertex {} is already in {}; splits must not overlap", place(), vertex,
                kSplitNames[mine]);
  mine = static_cast<signed char>(split);
  const bool may_hide = split == Split::kTest && hidden_ == HiddenTests::kLeave;
  tests_ += may_hide;
  if (labels_.columns != 1 || labels_.classes[vertex] >= 0) return;
  if (refusal_.empty())
    refusal_ = fmt::format("{}: vertex {} has no label; it cannot be in a split", place(), vertex);
  if (!may_hide) input_error("{}", refusal_);
  ++without_label_;
}

Splits SplitCollector::finish() {
  if (without_label_ > 0 && without_label_ < tests_) input_error("{}", refusal_);
  if (without_label_ > 0)
    log::warning("none of the {} of test has a label: they are hidden, and the file gets an empty test split",
                 counted(tests_, "vertex"));
  Splits splits;
  for (std::size_t v = 0; v < owner_.size(); ++v) {
    const bool hidden = without_label_ > 0 && owner_[v] == static_cast<signed char>(Split::kTest);
    if (owner_[v] != kNone && !hidden) splits[owner_[v]].push_back(static_cast<std::int64_t>(v));
  }
  return splits;
}

}  // namespace espalier

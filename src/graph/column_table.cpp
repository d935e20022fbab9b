#include "column_table.hpp"

#include <fmt/core.h>

#include <iterator>

namespace espalier {

namespace {

constexpr ColumnLine kTable[] = {
    {Column::kFeatures, Of::kType, "nodes", "features", Holds::kNumbers, 2, 2, "vertices"},
    {Column::kSparseBegins, Of::kType, "nodes", "features/indptr", Holds::kIntegers},
    {Column::kSparseColumns, Of::kType, "nodes", "features/indices", Holds::kIntegers},
    {Column::kSparseValues, Of::kType, "nodes", "features/values", Holds::kNumbers},
    {Column::kLabels, Of::kType, "nodes", "labels", Holds::kIntegers, 1, 2, "vertices"},
    {Column::kIds, Of::kType, "nodes", "ids", Holds::kIds, 1, 1, "vertices", "types"},
    {Column::kTime, Of::kType, "nodes", "time", Holds::kIntegers, 1, 1, "vertices"},
    {Column::kClassNames, Of::kType, "labels", "names", Holds::kTexts},
    {Column::kFeatureNames, Of::kType, "nodes", "feature_names", Holds::kTexts},
    {Column::kFeatureScales, Of::kType, "nodes", "feature_scales", Holds::kNumbers, 2, 2},
    {Column::kTrain, Of::kSplit, "split", "train", Holds::kIntegers},
    {Column::kValid, Of::kSplit, "split", "valid", Holds::kIntegers},
    {Column::kTest, Of::kSplit, "split", "test", Holds::kIntegers},
    {Column::kEdgeFeatures, Of::kRelation, "edges", "features", Holds::kNumbers, 2, 2, "edges"},
    {Column::kEdgeTime, Of::kRelation, "edges", "time", Holds::kIntegers, 1, 1, "edges"},
    {Column::kEdgeFeatureNames, Of::kRelation, "edges", "feature_names", Holds::kTexts},
    {Column::kEdgeFeatureScales, Of::kRelation, "edges", "feature_scales", Holds::kNumbers, 2, 2},
    {Column::kLinkNames, Of::kLinks, "links", "relations", Holds::kTexts},
    {Column::kGraphRelations, Of::kLinks, "links", "graph_relations", Holds::kIntegers},
    {Column::kHead, Of::kLinkSplit, "links", "head", Holds::kIntegers, 1, 1, "links"},
    {Column::kTail, Of::kLinkSplit, "links", "tail", Holds::kIntegers, 1, 1, "links"},
    {Column::kLinkRelation, Of::kLinkSplit, "links", "relation", Holds::kIntegers, 1, 1, "links"},
    {Column::kNegativeHeads, Of::kLinkSplit, "links", "negative_heads", Holds::kIntegers, 2, 2, "links"},
    {Column::kNegativeTails, Of::kLinkSplit, "links", "negative_tails", Holds::kIntegers, 2, 2, "links"},
    {Column::kNonLinks, Of::kLinkSplit, "links", "non_links", Holds::kIntegers, 2, 2},
};

constexpr bool is_in_order() {
  for (std::size_t k = 0; k < std::size(kTable); ++k)
    if (kTable[k].column != static_cast<Column>(k)) return false;
  return true;
}
static_assert(is_in_order());

}  // namespace

std::span<const ColumnLine> column_table() {
  return kTable;
}

std::string path_of(const ColumnAt& at, const Schema* schema) {
  const auto& line = line_of(at.column);
  const auto below = [](const std::string& name) { return name.empty() ? "" : name + "/"; };
  std::string owner;
  if (line.of == Of::kLinkSplit)
    owner = kSplitNames[static_cast<std::size_t>(at.owner)];
  else if (schema != nullptr && line.of == Of::kRelation)
    owner = schema->full_name(at.owner);
  else if (schema != nullptr && line.of != Of::kLinks)
    owner = schema->types()[static_cast<std::size_t>(at.owner)].name;
  return fmt::format("/{}/{}{}{}", schema != nullptr ? line.typed_folder : line.folder, below(owner),
                     below(at.split), line.name);
}

}  // namespace espalier

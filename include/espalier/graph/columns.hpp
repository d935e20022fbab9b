// What a graph file holds beside its matrix (graph_file.hpp has the format): properties of the
// vertices of a type, of the edges of a relation and of links. Each is a line of one table,
// src/graph/column_table.cpp, which says where it lies, of what it is and what it holds; opening,
// checks of shapes, digests, reading, writing and `info` go over that.
#pragma once

namespace espalier {

enum class Column {
  // Of the vertices of a type. Dense features, or those of a group in their place.
  kFeatures,
  kSparseBegins,
  kSparseColumns,
  kSparseValues,
  kLabels,
  kIds,
  kTime,
  kClassNames,
  kFeatureNames,
  kFeatureScales,
  // Of a split of a type, which may have a name.
  kTrain,
  kValid,
  kTest,
  // Of the edges of a relation.
  kEdgeFeatures,
  kEdgeTime,
  kEdgeFeatureNames,
  kEdgeFeatureScales,
  // Of all links.
  kLinkNames,
  kGraphRelations,
  // Of the links of a split, train, valid and test being 0, 1 and 2.
  kHead,
  kTail,
  kLinkRelation,
  kNegativeHeads,
  kNegativeTails,
  kNonLinks,
};

}  // namespace espalier

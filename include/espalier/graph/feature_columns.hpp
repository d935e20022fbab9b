// What the columns of features are called and what made their numbers, as graph files, weights and
// checkpoints hold it beside the place of the features (docs/graph-file.md):
//
//     .../feature_names    fixed-length text [f]   UTF-8, no two alike: "age"; "country=FR" of a
//                          column that is 1 where the country is FR and 0 elsewhere
//     .../feature_scales   float64 [f, 5]          optional, with names only: fill, mean, rest,
//                          largest and deviation of each column. A cell x without a number became
//                          fill (nan: there was to be none), then x became ((x - mean) - rest) /
//                          largest / deviation, in float64; 0 where the deviation is 0. Of a column
//                          that is as it was: nan or its fill, then 0, 0, 1, 1
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace espalier {

namespace hdf5 {
class Handle;
}

inline constexpr std::int64_t kScaleParts = 5;
inline constexpr const char *kNamesOfColumns = "feature_names", *kScalesOfColumns = "feature_scales";

struct FeatureColumns {
  std::vector<std::string> names;   ///< [f]
  std::vector<double> scales = {};  ///< [f, kScaleParts], or none
};

/// Of a file, by the group: "/nodes/TYPE/", "/edges/RELATION/"; "/nodes/", "/edges/" of a graph
/// without types. Those without names are not there.
using ColumnsByGroup = std::map<std::string, FeatureColumns>;

/// A name that two columns have; null: there is none.
const std::string* name_of_two(const FeatureColumns& columns);

/// How the columns differ, in words, with both lists: "column 3 is country=GB there and country=UK
/// here; there: ..; here: ..". Empty: they are called alike, in one order.
std::string difference_of_names(const FeatureColumns& there, const FeatureColumns& here);
/// To the bit; none are others than some.
bool have_same_scales(const FeatureColumns& there, const FeatureColumns& here);

/// Not collective. To and from a file that is no graph file; false where that fails.
bool write_columns(const hdf5::Handle& file, const ColumnsByGroup& columns);
bool read_columns(const hdf5::Handle& file, ColumnsByGroup& columns);
/// Is a data set of such a file, named without its first slash, one of those?
bool is_of_columns(const std::string& dataset);

}  // namespace espalier

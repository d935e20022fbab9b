// A folder of OGB's, whatever the layout of its tables or arrays: its splits, weights among the
// features of edges, and the tables whose columns are types.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "described_graph.hpp"
#include "espalier/graph/ogb_import.hpp"
#include "ogb_tables.hpp"

namespace espalier {

/// A table of types and their numbers of vertices, such as num-node-dict, in its order.
std::vector<std::pair<std::string, std::int64_t>> read_type_sizes(const std::string& path);

/// The types that have `things`: those whose flag in the table `flags` is True; where that path is
/// empty, those that have a folder in `parts`. Throws UserError when one has a flag and no folder.
std::set<int> types_with(const GraphNames& names, const std::string& flags,
                         const std::filesystem::path& parts, const std::string& things);

/// What becomes of such a folder.
ImportOptions import_options(const TypedImportOptions& options, bool symmetrize = false);

/// Of a folder in this layout: its types, with how many vertices each has, and its relations.
DescribedGraph describe_names(const TypedImportOptions& options, const std::string& layout,
                              const GraphNames& names);

/// A column of the features of edges may be weights.
void set_edge_features(DescribedRelation& relation, const OgbOptions& options, const DescribedFile& file);
/// Throws UserError(kUsage) where there is no such column, of so many at `place`.
void check_edge_weight(const OgbOptions& options, const std::string& place, std::int64_t columns);

/// When all else is known: the splits that are asked for,
/// FOLDER/split/NAME/{train,valid,test}.csv.gz or, where there are none, .npy; of a graph with
/// types NAME/TYPE/train.csv.gz of the types that nodetype-has-split.csv.gz names. Throws UserError
/// when one is not there, is a pickle, or is of a type that has no labels in `labels`.
void set_splits(DescribedGraph& graph, const GraphNames& names, const OgbOptions& options,
                const std::filesystem::path& labels);

/// A split in a folder of arrays.
DescribedSplit split_of_arrays(const std::string& name, const std::filesystem::path& folder);

/// The layouts of csv tables and of arrays.
DescribedGraph describe_csv_ogb_folder(const OgbOptions& options, bool typed);
DescribedGraph describe_binary_ogb_folder(const OgbOptions& options, bool typed);

}  // namespace espalier

// A folder of OGB's, whatever the layout of its tables or arrays: its splits, weights among the
// features of edges, and the tables whose columns are types.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "described_graph.hpp"
#include "espalier/graph/import.hpp"
#include "ogb_tables.hpp"

namespace espalier {

/// A table of types and their numbers of vertices, such as num-node-dict, in its order.
std::vector<DescribedType> read_type_sizes(const std::string& path);

/// The types that have `things`: those whose flag in the table `flags` is True; where that path is
/// empty, those that have a folder in `parts`. Throws UserError when one has a flag and no folder.
std::set<int> types_with(const DescribedGraph& graph, const std::string& flags,
                         const std::filesystem::path& parts, const std::string& things);

/// Of a folder in this layout; its types and relations are to be added. Or of one without types, of
/// which something says how many vertices there are.
DescribedGraph describe_layout(const FolderOptions& options, const std::string& layout);
DescribedGraph describe_plain_layout(const FolderOptions& options, const std::string& layout,
                                     std::int64_t vertices, const std::string& counted_by);

/// A column of the features of edges may be weights.
void set_edge_features(DescribedRelation& relation, const FolderOptions& options, const DescribedFile& file);
/// Throws UserError(kUsage) where there is no such column, of so many at `place`.
void check_edge_weight(const FolderOptions& options, const std::string& place, std::int64_t columns);

/// When all else is known: the splits that are asked for,
/// FOLDER/split/NAME/{train,valid,test}.csv.gz or, where there are none, .npy; of a graph with
/// types NAME/TYPE/train.csv.gz of the types that nodetype-has-split.csv.gz names. Throws UserError
/// when one is not there, is a pickle, or is of a type that has no labels in `labels`.
void set_splits(DescribedGraph& graph, const FolderOptions& options, const std::filesystem::path& labels);

/// A split in a folder of arrays.
DescribedSplit split_of_arrays(const std::string& name, const std::filesystem::path& folder);

/// The layouts of csv tables and of arrays.
DescribedGraph describe_csv_ogb_folder(const FolderOptions& options, bool typed);
DescribedGraph describe_binary_ogb_folder(const FolderOptions& options, bool typed);

}  // namespace espalier

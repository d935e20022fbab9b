// The csv tables of OGB's folders, those with types and those without, read by one rank. Every
// function throws UserError with file and line.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "espalier/graph/csv.hpp"
#include "espalier/graph/graph_file.hpp"
#include "feature_rows.hpp"
#include "labelled_splits.hpp"

namespace espalier {

/// The vertices that a table speaks of.
struct TableVertices {
  std::int64_t count = 0;
  std::string by;  ///< who says so, for messages: "num-node-list says 5 vertices"
};

/// The path of FOLDER/STEM.csv.gz, or without .gz; empty when there is neither.
std::string find_table(const std::filesystem::path& folder, const std::string& stem);

/// A table with one number: of vertices, or of edges.
std::int64_t read_count(const std::string& path);

/// Throws UserError when a table has other than the `wanted` lines.
void check_lines(const CsvReader& csv, std::int64_t lines, std::int64_t wanted, const std::string& things);

/// The next field as a vertex.
std::int64_t read_vertex(CsvReader& csv, const TableVertices& vertices);

/// Features, a line for each of so many things.
std::unique_ptr<FeatureRows> open_feature_table(const std::string& path, std::int64_t count,
                                                const std::string& things = "vertices");

/// Labels, a line for each of `vertices`.
OgbLabels read_label_table(const std::string& path, std::int64_t vertices);

/// The names in "a,b" or "a"; an empty one where none is given. Throws UserError(kUsage) where one
/// of several is there twice or no name of a graph file's.
std::vector<std::string> names_of_splits(const std::string& asked);

/// The name that one of these has in the graph file: none where it is the only one.
std::string kept_name(const std::vector<std::string>& names, std::size_t place);

/// The folder of a split below FOLDER/split: `split`, or the only one; empty when there are none
/// and none was asked for.
std::string find_split_folder(const std::string& folder, const std::string& split);

/// Are there splits of links (train.pt), and none of vertices? Then a line says what reads them.
bool is_split_of_links(const std::string& split_folder, const std::string& folder);

/// The csv file of one split.
std::string split_table(const std::filesystem::path& folder, Split split);

/// train, valid, test of a folder.
Splits read_split_tables(const std::string& folder, const TableVertices& vertices, const OgbLabels& labels,
                         HiddenTests hidden);

}  // namespace espalier

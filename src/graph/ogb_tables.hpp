// The csv tables of OGB's folders, those with types and those without, and meta.json, read by one
// rank. Every function throws UserError with file and line.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "espalier/file/csv.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "feature_rows.hpp"
#include "labelled_splits.hpp"

namespace espalier {

/// Name and source by meta.json where it has them, else by the folder's name: "LAYOUT folder NAME".
/// A meta.json that is missing, or something else, says nothing.
GraphDescription describe_folder(const std::string& folder, const std::string& layout);

/// What meta.json says that makes the edges of the file one direction of undirected ones, as
/// `"add_inverse_edge": "True"`; empty when it does not say so.
std::string one_direction_by(const std::string& folder);

/// The path of FOLDER/STEM.csv.gz, or without .gz; empty when there is neither.
std::string find_table(const std::filesystem::path& folder, const std::string& stem);

/// A table with one number: of vertices, or of edges.
std::int64_t read_count(const std::string& path);

/// Throws UserError when a table has other than the `wanted` lines.
void check_lines(const CsvReader& csv, std::int64_t lines, std::int64_t wanted, const std::string& things);

/// The next field as a vertex.
std::int64_t read_vertex(CsvReader& csv, const VertexCount& vertices);

/// Calls use(head, tail) for the lines of a table of edges, and returns how many there are: as many
/// as the table at `announced` says, where that path is not empty.
template <class Use>
std::int64_t read_edge_table(const std::string& path, const VertexCount& heads, const VertexCount& tails,
                             const std::string& announced, Use use) {
  CsvReader csv(path);
  std::int64_t lines = 0;
  for (; csv.next_line(); ++lines) {
    const auto head = read_vertex(csv, heads), tail = read_vertex(csv, tails);
    csv.end_line();
    use(head, tail);
  }
  if (!announced.empty()) check_lines(csv, lines, read_count(announced), "edges by num-edge-list");
  return lines;
}

/// Features, a line for each of so many things; null where the path is empty.
std::unique_ptr<FeatureRows> open_feature_table(const std::string& path, std::int64_t count,
                                                const std::string& things = "vertices");

/// The names in "a,b" or "a"; an empty one where none is given. Throws UserError(kUsage) where one
/// of several is there twice or no name of a graph file's.
std::vector<std::string> names_of_splits(const std::string& asked);

/// The names that these have in the graph file: the only one has none.
std::vector<std::string> kept_names(const std::string& asked);

/// The folder of a split below FOLDER/split: `split`, or the only one; empty when there are none
/// and none was asked for.
std::string find_split_folder(const std::string& folder, const std::string& split);

/// Are there splits of links (train.pt), and none of vertices? Then a line says what reads them.
bool is_split_of_links(const std::string& split_folder, const std::string& folder);

/// The vertices of one split, one a line.
void read_split_table(const std::string& path, const VertexCount& vertices, Split split,
                      SplitCollector& splits);

}  // namespace espalier

// What `espalier info` says of a graph file, or of an order, page by page: lines, and words of what
// arrays hold. What takes a communicator is collective, and reads arrays whole, in parts of bounded
// size: so it also finds what is wrong with them.
#pragma once

#include <string>
#include <vector>

#include "espalier/base/log.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

struct PartsQuality;  // partition/partition_methods.hpp

inline constexpr const char* kInfoLabel = "info";  ///< of its traffic

inline void info_line(const char* name, const std::string& text) {
  log::info("{:<12} {}", name, excerpt(text));
}

/// How many vertices have no edge that leads to them, and how many of those to train on.
void show_unreached(const Communicator& world, const GraphFile& file);

/// Of a graph with types, whose relations are read apart.
void show_typed_graph(const Communicator& world, const GraphFile& file);

/// The same of links.
void show_links(const Communicator& world, const GraphFile& file);

/// A table: for each number of parts what is cut and how even the parts are.
/// `types`: the names of vertex types, of several.
void show_quality(const std::vector<PartsQuality>& qualities, const std::vector<std::string>& types);

/// Is this the file of an order, as far as its first bytes tell? Never throws.
bool looks_like_order(const std::string& path);

/// What is in the order at `path`.
void show_order(const Communicator& world, const std::string& path);

/// "32 x float32, from -3.1 to 4.2, 100.0 % not zero", of the vertices of a type, or "none".
std::string features_in_words(const Communicator& world, const GraphFile& file, int type);

/// "8 classes, 20000 of 20000 vertices labelled; ...", of a type, or "none".
std::string labels_in_words(const Communicator& world, const GraphFile& file, int type);

/// "first: train 60, valid 20, test 20".
std::string in_words(const SplitInfo& split);

/// "texts, A-1 to B-7", or "numbers, ..": those of the first and the last vertex of a type that
/// has ids.
std::string ids_in_words(const Communicator& world, const GraphFile& file, int type);

/// "cat, dog, eel", of a type whose classes have names.
std::string class_names_in_words(const GraphFile& file, int type);
/// A line for each group of features whose columns have names.
void show_columns(const GraphFile& file);

/// "60 x 4 float32, from -1 to 2, 100.0 % not zero", of a relation whose edges have some.
std::string edge_features_in_words(const Communicator& world, const GraphFile& file, int relation);

/// Prints "edge times   17 to 2041 days" where a type, or a relation, has times.
void show_times(const Communicator& world, const GraphFile& file, Column column, int owner);

}  // namespace espalier

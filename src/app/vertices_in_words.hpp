// What `info` says of features and labels.
#pragma once

#include <string>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// Collective. "32 x float32, from -3.1 to 4.2, 100.0 % not zero", of the vertices of a type, or
/// "none". Reads all of them, in parts: also the check that they are finite.
std::string features_in_words(const Communicator& world, const GraphFile& file, int type);

/// Collective. "8 classes, 20000 of 20000 vertices labelled; ...", of a type, or "none".
std::string labels_in_words(const Communicator& world, const GraphFile& file, int type);

/// "first: train 60, valid 20, test 20".
std::string in_words(const SplitInfo& split);

/// Collective. "texts, A-1 to B-7", or "numbers, ..": those of the first and the last vertex of a
/// type that has ids. Reads all of them.
std::string ids_in_words(const Communicator& world, const GraphFile& file, int type);

/// Collective. "cat, dog, eel", of a type whose classes have names.
std::string class_names_in_words(const GraphFile& file, int type);

/// Collective. "60 x 4 float32, from -1 to 2, 100.0 % not zero", of a relation whose edges
/// have some.
std::string edge_features_in_words(const Communicator& world, const GraphFile& file, int relation);

/// Collective. "17 to 2041", of a relation whose edges have times.
std::string edge_times_in_words(const Communicator& world, const GraphFile& file, int relation);

}  // namespace espalier

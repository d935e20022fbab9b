// What meta.json says of an OGB folder. It is optional: a file that is missing, or something else,
// says nothing.
#pragma once

#include <string>

#include "espalier/graph/graph_writer.hpp"

namespace espalier {

/// Name and source by meta.json where it has them, else by the folder's name: "LAYOUT folder NAME".
GraphDescription describe_folder(const std::string& folder, const std::string& layout);

/// What meta.json says that makes the edges of the file one direction of undirected ones, as
/// `"add_inverse_edge": "True"`; empty when it does not say so.
std::string one_direction_by(const std::string& folder);

}  // namespace espalier

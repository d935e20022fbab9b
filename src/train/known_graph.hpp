// What a checkpoint and a weights.h5 say of the graph that was trained on, to know it again: its
// counts, the digests of its data sets as far as they are known, and how its features were made
// standard.
#pragma once

#include <string>

#include "espalier/feature/normalize_rows.hpp"
#include "espalier/file/hdf5.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

std::string graph_to_json(const GraphInfo& graph);

/// Throws std::exception where the text is something else.
void read_graph(const std::string& text, GraphInfo& graph);

inline constexpr const char *kMean = "features/mean", *kDeviation = "features/deviation";

/// Empty where the file has none. Throws UserError(kInput), naming `path`.
Standardization read_standardization(const hdf5::Handle& file, const std::string& path);

}  // namespace espalier

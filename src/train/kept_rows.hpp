// What a log says of bytes that were not moved (kept_rows.inl.hpp).
#pragma once

#include <span>
#include <string>

#include "espalier/train/report.hpp"

namespace espalier {

/// What history and kept rows saved between ranks; empty where nothing was.
std::string saved_line(std::span<const EpochReport> epochs);

}  // namespace espalier

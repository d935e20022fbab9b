// A small text that a person wrote for the program: a config, a machine file.
#pragma once

#include <string>

namespace espalier {

/// The bytes of the file, at most 1 MiB; /dev/null is an empty one. `what` names its kind in
/// messages ("config file"). Not collective. Throws UserError(kUsage), at once, with a sentence of
/// its own for each thing that a path can be instead: nothing, a folder, a pipe, a device, a file
/// that may not be read, that is too large, or that is no text.
std::string read_input_text(const std::string& path, const std::string& what);

}  // namespace espalier

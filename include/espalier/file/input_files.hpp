// The files of a folder that is imported, against the file that the import writes: an input is
// never an output.
#pragma once

#include <string>
#include <vector>

namespace espalier {

/// Throws UserError(kUsage) when `output` is one of the files below `folder`, by whatever name
/// (links, hard links, relative paths), or lies in one of the folders `parts` below it, where it
/// would be an input of the next import. HDF5 files elsewhere below `folder` are no inputs: an
/// import may have put them there.
void refuse_input_as_output(const std::string& folder, const std::string& output,
                            const std::vector<std::string>& parts = {"raw", "split"});

/// Throws UserError(kUsage) when `output` is one of these files, by whatever name; empty ones are
/// none.
void refuse_inputs_as_output(const std::vector<std::string>& files, const std::string& output);

/// Throws UserError(kInput) when a pipe, which could be waited for for ever, a device or a folder
/// has this name.
void check_is_input(const std::string& path);

}  // namespace espalier

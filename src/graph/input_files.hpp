// The files of a folder that is imported, against the file that the import writes: an input is
// never an output.
#pragma once

#include <string>

namespace espalier {

/// Throws UserError(kUsage) when `output` is one of the files below `folder`, by whatever name
/// (links, hard links, relative paths), or lies in FOLDER/raw or below FOLDER/split, where it would
/// be an input of the next import. HDF5 files elsewhere below `folder` are no inputs: an import may
/// have put them there.
void refuse_input_as_output(const std::string& folder, const std::string& output);

}  // namespace espalier

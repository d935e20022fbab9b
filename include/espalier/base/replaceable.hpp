// Files that a command makes again in seconds and from nothing but its inputs, `plan -o` and
// `calibrate -o`: they replace one of their own kind without being asked to, and nothing else.
#pragma once

#include <functional>
#include <string>

namespace espalier {

/// Throws UserError(kUsage) when there is something at `path` that is not empty and not of this
/// kind: `is_one` is given the text of a file. An empty `path` is no file, and fine. `kind`: as
/// "plan".
void check_replaceable(const std::string& path, const char* kind,
                       const std::function<bool(const std::string& text)>& is_one);

}  // namespace espalier

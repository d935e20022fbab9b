// What other systems call the keys of a config, for "did you mean".
#pragma once

#include <string>
#include <vector>

namespace espalier {

/// The answer to a key that does not exist, by its meaning: a key of `keys`, or a sentence where
/// something else is meant; "" where the name says nothing.
std::string meaning_elsewhere(const std::string& typed, const std::vector<std::string>& keys);

/// All answers of the table.
std::vector<std::string> meanings_elsewhere();

}  // namespace espalier

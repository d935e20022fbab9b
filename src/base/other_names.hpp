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

// Keys, and values of keys, that earlier versions had: what to write instead. A file that still
// has one is refused with these words; a checkpoint's config is read, where what it says is what
// is done now.

struct Removed {
  const char* name;   // section.key
  const char* value;  // that went, of a key that stayed; "": the key went
  // In a checkpoint's config. Of a key that went, the one value that trained as is done now; "":
  // any did. Of a value that went, the one that it is read as, with the same results; "": there is
  // none.
  const char* done;
  const char* instead;  // a clause: what to write
};

/// The entry of a key that went, or null.
const Removed* removed_key(const std::string& name);

/// The entry of a value that went, or null.
const Removed* removed_value(const std::string& name, const std::string& value);

}  // namespace espalier

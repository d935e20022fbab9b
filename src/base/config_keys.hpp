// The table that binds every key of a config to its place in the struct, its type, its range or
// choices, its meaning, and what another value changes. Reading, checking, writing, documenting and
// comparing all walk it.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "espalier/base/config.hpp"

namespace espalier {

using Target = std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<std::int64_t>*,
                            std::vector<std::string>*, AutoInt*, AutoNumber*, NumberOrWord*>;

// What another key must be for a key to have a meaning. Where it is not, the key would be ignored.
struct Needs {
  std::string key;
  bool (*met)(const Config&);
  std::string value;  // that meets it, in words
};

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Key {
  std::string name;
  KeyEffect effect;
  Target target;
  std::string meaning;
  std::vector<std::string> choices = {};          // for words, and for whole numbers
  double lowest = -kNoLimit, highest = kNoLimit;  // for numbers
  std::vector<Needs> needs = {};                  // all of them
  // Beyond which a training may diverge: what is a lot, and, where 0 is not meant, too little.
  double (*a_lot)(const Config&) = nullptr;
  double a_little = 0;

  Key among(std::vector<std::string> words) && {
    choices = std::move(words);
    return std::move(*this);
  }
  Key between(double least, double greatest) && {
    lowest = least, highest = greatest;
    return std::move(*this);
  }
  Key from(double least) && { return std::move(*this).between(least, kNoLimit); }
  Key usual_below(double (*lot)(const Config&)) && {
    a_lot = lot;
    return std::move(*this);
  }
  Key usual_above(double little) && {
    a_little = little;
    return std::move(*this);
  }
  Key with(std::vector<Needs> all) && {
    needs = std::move(all);
    return std::move(*this);
  }
};

/// All keys in the order of the design, bound to the fields of `config`.
std::vector<Key> bind_keys(Config& config);

/// The need of the key that `config` does not meet, or null: the key has a meaning.
const Needs* unmet(const Key& key, const Config& config);

/// A value as it would stand in a file.
std::string value_text(const Target& target);

// ---- names that others have ----
//
// What other systems call the keys of a config, for "did you mean".

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

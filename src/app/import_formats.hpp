// What `espalier import` reads: a line of one table for each kind. An addition is a function that
// reads it and a line here.
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"
#include "espalier/graph/import.hpp"

namespace CLI {
class App;
}

namespace espalier {

struct ImportFormat {
  const char* name;           ///< "ogb"
  const char* reads;          ///< what, in a few words
  const char* examples;       ///< commands that work, a line each
  const char* layout;         ///< a paragraph of `help import`
  const char* memory_advice;  ///< what helps where memory is short
  void (*add_options)(CLI::App& command, ImportArguments& arguments);
  ImportRequest (*ask)(const ImportArguments& arguments);
  const char* no_description = "";  ///< why no description in TOML means the same, and what helps;
                                    ///< empty: one does
};

const std::vector<ImportFormat>& import_formats();

/// The one of this name; there is one.
const ImportFormat& import_format(const std::string& name);

/// Examples, and then paragraphs, of all of them.
std::string import_examples();
std::string import_layouts();

}  // namespace espalier

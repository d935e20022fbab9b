// What `espalier import` reads: a line of one table for each kind. An addition is a function that
// reads it and a line here.
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"
#include "espalier/base/output_file.hpp"

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
  /// Collective. Writes the graph file.
  void (*import)(const Communicator& world, const ImportArguments& arguments, const OutputFile& output);
  /// Collective. On rank 0 a description in TOML that means the same; null: there is none.
  std::string (*describe)(const Communicator& world, const ImportArguments& arguments) = nullptr;
  const char* no_description = "";  ///< why there is none, and what helps
};

const std::vector<ImportFormat>& import_formats();

/// The one of this name; there is one.
const ImportFormat& import_format(const std::string& name);

/// Examples, and then paragraphs, of all of them.
std::string import_examples();
std::string import_layouts();

}  // namespace espalier

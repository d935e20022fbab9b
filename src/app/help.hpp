// The words of `espalier help`: a summary and an example that works for each command.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace espalier {

std::string help_summary(const std::string& command);
std::string help_example(const std::string& command);

/// Throws UserError(kUsage) naming the nearest command, or the nearest of `pages`, when there is no
/// command of this name.
void check_command(const std::string& command, std::vector<std::string> pages = {});
/// Throws UserError(kUsage) that lists them when `kind`, empty where none was given, is none of
/// those that a command has, as `import` and `generate` do.
void check_kind(const CLI::App& app, const std::string& command, const std::string& kind);

/// The help of one command with its subcommands. Throws as check_command does.
std::string command_help(const CLI::App& app, const std::string& command);

}  // namespace espalier

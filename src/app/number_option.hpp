// Options that take a number: what is none, or lies outside of its range, is refused in one
// sentence that names the option, what was given and the range. The library that reads the command
// line would take the largest integer for one that is too large, and 010 for eight.
#pragma once

#include <cstdint>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace espalier {

template <class Number>
struct Range {
  Number least, most;  ///< both allowed
};

/// Adds `name` (as "--seed"), a whole number in decimal digits. Reading the command line then
/// throws UserError(kUsage) for anything else. Help shows `value`, the default, where it is in the
/// range.
CLI::Option* add_whole_number(CLI::App* app, const char* name, std::int64_t& value, Range<std::int64_t> range,
                              const char* about);

/// The same for a finite number, as 0.5 or 1e-3.
CLI::Option* add_number(CLI::App* app, const char* name, double& value, Range<double> range,
                        const char* about);

}  // namespace espalier

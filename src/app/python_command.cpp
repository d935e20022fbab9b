// Commands that the Python package does: espalier report, sweep. The program becomes Python's, and
// stays where the package looks for it.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "commands.hpp"
#include "espalier/base/error.hpp"

namespace espalier {

namespace {

// python3 -c .. report DIR: the module's own words, where there is one.
constexpr const char* kRunModule = R"(import importlib.util, runpy, sys
name = sys.argv.pop(1)
if importlib.util.find_spec('espalier') is None:
    print(f'espalier: error: `espalier {name}` is done by the Python package, which is not installed: '
          'pip install ./python, in the folder of Espalier', file=sys.stderr)
    sys.exit(2)
runpy.run_module('espalier.' + name, run_name='__main__', alter_sys=True)
)";

}  // namespace

char** python_command(char** argv) {
  char** word = argv + 1;
  while (*word != nullptr && **word == '-') ++word;  // -q, -v
  const bool found =
      *word != nullptr && (std::strcmp(*word, "report") == 0 || std::strcmp(*word, "sweep") == 0);
  return found ? word : nullptr;
}

int run_python_command(char** words) {
  std::array<char, 4096> program = {};
  if (readlink("/proc/self/exe", program.data(), program.size() - 1) > 0)
    setenv("ESPALIER_PROGRAM", program.data(), 1);
  std::string python = "python3", code = "-c", module = kRunModule;
  std::vector<char*> arguments = {python.data(), code.data(), module.data()};
  for (char** word = words; *word != nullptr; ++word) arguments.push_back(*word);
  arguments.push_back(nullptr);
  execvp("python3", arguments.data());
  std::fprintf(stderr, "espalier: error: `espalier %s` needs python3: %s\n", words[0], std::strerror(errno));
  return static_cast<int>(ExitCode::kUsage);
}

}  // namespace espalier

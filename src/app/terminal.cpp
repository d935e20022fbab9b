#include "terminal.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace espalier {

bool output_is_watched() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  // Rank 0's parent is mpirun, or a daemon without a terminal.
  char target[256] = {};
  const auto path = "/proc/" + std::to_string(getppid()) + "/fd/1";
  const auto length = readlink(path.c_str(), target, sizeof target - 1);
  const std::string name(target, static_cast<std::size_t>(length > 0 ? length : 0));
  return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty");
}

}  // namespace espalier

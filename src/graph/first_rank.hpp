// Imports: rank 0 reads and the others wait.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/schema.hpp"

namespace espalier {

/// Collective. Runs `work` on every rank; an error of one, of several that of the first, is
/// everyone's.
template <class Work>
void on_every_rank(const Communicator& comm, Work work) {
  agree(comm, [&] {
    try {
      work();
    } catch (const std::filesystem::filesystem_error& error) {
      // A folder without permission, a name too long.
      input_error("{}: {}", error.path1().string(), error.code().message());
    }
  });
}

/// Collective. Runs `work` on rank 0; its error is everyone's.
template <class Work>
void on_first_rank(const Communicator& comm, Work work) {
  on_every_rank(comm, [&] {
    if (comm.rank() == 0) work();
  });
}

/// Collective. A number of at least 0 that rank 0 found, while the others have 0 or the same.
inline std::int64_t agreed(const Communicator& comm, std::int64_t mine) {
  return comm.all_reduce(mine, Reduction::kMax, "import");
}

/// Collective. The texts that rank 0 has, which hold no end of a line, for all.
std::vector<std::string> broadcast_texts(const Communicator& comm, const std::vector<std::string>& texts);

/// Collective. The schema that rank 0 alone has read, for all.
Schema broadcast_schema(const Communicator& comm, const std::optional<Schema>& schema);

}  // namespace espalier

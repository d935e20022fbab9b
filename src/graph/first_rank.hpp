// Imports: rank 0 reads and the others wait.
#pragma once

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/csv.hpp"
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

inline std::string as_text(const Schema& schema) {
  std::ostringstream text;
  text << schema.types().size() << ' ' << schema.relations().size();
  for (const auto& type : schema.types()) text << ' ' << type.name << ' ' << type.size();
  for (const auto& of : schema.relations())
    text << ' ' << of.name << ' ' << of.source << ' ' << of.target << ' ' << of.inverse;
  return text.str();
}

inline Schema from_text(const std::string& text) {
  std::istringstream in(text);
  std::size_t types = 0, relations = 0;
  in >> types >> relations;
  std::vector<VertexType> list(types);
  for (std::int64_t begin = 0; auto& type : list) {
    in >> type.name >> type.end;
    type.begin = begin;
    begin = type.end += begin;
  }
  std::vector<Relation> of(relations);
  for (auto& one : of) in >> one.name >> one.source >> one.target >> one.inverse;
  return {std::move(list), std::move(of)};
}

/// Collective. The texts that rank 0 has, which hold no end of a line, for all.
inline std::vector<std::string> broadcast_texts(const Communicator& comm,
                                                const std::vector<std::string>& texts) {
  std::string lines;
  for (const auto& text : texts) lines += text + "\n";
  auto found = split_text(comm.broadcast_text(lines, 0, "import"), '\n');
  found.pop_back();
  return found;
}

/// Collective. The schema that rank 0 alone has read, for all.
inline Schema broadcast_schema(const Communicator& comm, const std::optional<Schema>& schema) {
  return from_text(comm.broadcast_text(comm.rank() == 0 ? as_text(*schema) : std::string(), 0, "import"));
}

}  // namespace espalier

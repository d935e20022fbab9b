// A list of vertices: a text file with one id on a line.
#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/ranged_file.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/job/named_vertices.hpp"

namespace espalier {

namespace {

std::string_view without_spaces(std::string_view line) {
  constexpr const char* kSpaces = " \t\r";
  const auto begin = line.find_first_not_of(kSpaces);
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(kSpaces) - begin + 1);
}

std::int64_t vertex_from(std::string_view text, const std::string& path, std::int64_t line,
                         std::int64_t vertices, const std::string& of) {
  const auto vertex = number_in<std::int64_t>(text);
  if (!vertex)
    input_error("{}:{}: '{}' is no vertex; a list of nodes has one id on a line", path, line,
                text.substr(0, 40));
  if (*vertex < 0 || *vertex >= vertices)
    input_error("{}:{}: vertex {} is not in {}, whose {} vertices are 0 to {}", path, line, *vertex, of,
                vertices, vertices - 1);
  return *vertex;
}

struct Line {
  std::int64_t number;
  std::string_view text;
};

// Those that are not blank.
std::vector<Line> lines_of(std::string_view text, const std::string& path) {
  std::vector<Line> lines;
  std::int64_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    if (!without_spaces(line).empty()) lines.push_back({number, line});
    at = end + 1;
  }
  if (lines.empty()) input_error("{}: names no vertex; a list of nodes has one id on a line", path);
  return lines;
}

// Blanks may be part of an id; what DOS puts at the end of a line is none.
std::string id_on(const Line& line) {
  auto text = line.text;
  if (text.ends_with('\r')) text.remove_suffix(1);
  return std::string(text);
}

std::int64_t vertex_with(const NamedVertices& named, int type, const Line& line, const std::string& path,
                         const std::string& of) {
  const auto id = id_on(line);
  const auto found = named.find(type, id, path, line.number, of);
  if (!found)
    input_error("{}:{}: no vertex of {} has the id '{}'; --named-by numbers: the list counts vertices from 0",
                path, line.number, of, id.substr(0, 60));
  return *found;
}

// Collective. Those of rank 0, ascending, each once, on every rank.
Buffer<std::int64_t> sorted_of_root(const Communicator& world, Buffer<std::int64_t> ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  auto count = std::ssize(ids);
  world.broadcast(&count, 1, 0, "setup");
  ids.resize(count);
  world.broadcast(ids.data(), count, 0, "setup");
  return ids;
}

}  // namespace

Buffer<std::int64_t> read_vertex_list(const Communicator& world, const std::string& path,
                                      std::int64_t vertices, const std::string& of) {
  Buffer<std::int64_t> ids;
  agree(world, [&] {
    if (world.rank() != 0) return;
    const auto text = bytes_of_file(path);
    for (const auto& line : lines_of(text, path))
      ids.push_back(vertex_from(without_spaces(line.text), path, line.number, vertices, of));
  });
  return sorted_of_root(world, std::move(ids));
}

Buffer<std::int64_t> read_id_list(const Communicator& world, const std::string& path, const GraphFile& file,
                                  int type, const std::string& of) {
  decltype(bytes_of_file(path)) text;
  std::vector<Line> lines;
  std::set<std::string> asked;
  agree(world, [&] {
    if (world.rank() != 0) return;
    text = bytes_of_file(path);
    lines = lines_of(text, path);
    for (const auto& line : lines) asked.insert(id_on(line));
  });
  const NamedVertices named(world, file, {type}, asked);
  Buffer<std::int64_t> ids;
  agree(world, [&] {
    const auto first = file.info().schema.types()[type].begin;
    for (const auto& line : lines) ids.push_back(vertex_with(named, type, line, path, of) - first);
  });
  return sorted_of_root(world, std::move(ids));
}

}  // namespace espalier

#include "vertex_list.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "espalier/base/error.hpp"
#include "espalier/base/ranged_file.hpp"
#include "espalier/comm/agree.hpp"

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
  std::int64_t vertex = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, vertex);
  if (result.ec != std::errc() || result.ptr != end)
    input_error("{}:{}: '{}' is no vertex; a list of nodes has one id on a line", path, line,
                text.substr(0, 40));
  if (vertex < 0 || vertex >= vertices)
    input_error("{}:{}: vertex {} is not in {}, whose {} vertices are 0 to {}", path, line, vertex, of,
                vertices, vertices - 1);
  return vertex;
}

// On rank 0.
Buffer<std::int64_t> parse(const std::string& path, std::int64_t vertices, const std::string& of) {
  const auto text = bytes_of_file(path);
  Buffer<std::int64_t> ids;
  std::int64_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto word = without_spaces(std::string_view(text).substr(at, end - at));
    if (!word.empty()) ids.push_back(vertex_from(word, path, line, vertices, of));
    at = end + 1;
  }
  if (ids.empty()) input_error("{}: names no vertex; a list of nodes has one id on a line", path);
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

Buffer<std::int64_t> read_vertex_list(const Communicator& world, const std::string& path,
                                      std::int64_t vertices, const std::string& of) {
  Buffer<std::int64_t> ids;
  agree(world, [&] {
    if (world.rank() == 0) ids = parse(path, vertices, of);
  });
  auto count = std::ssize(ids);
  world.broadcast(&count, 1, 0, "setup");
  ids.resize(count);
  world.broadcast(ids.data(), count, 0, "setup");
  return ids;
}

}  // namespace espalier

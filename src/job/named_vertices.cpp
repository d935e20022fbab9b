#include "espalier/job/named_vertices.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/ranged_file.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/csv.hpp"

namespace espalier {

namespace {

// Calls visit(type, vertex, id) for this rank's share of the vertices of these types; vertices are
// of the whole graph. Collective.
template <class Visit>
void visit_ids(const Communicator& world, const GraphFile& file, const std::vector<int>& types,
               const Visit& visit) {
  constexpr std::int64_t kValues = 32;  // an id is about as large
  for (const int type : types) {
    const auto& of = file.info().schema.types()[type];
    in_row_parts(
        world, of.size(),
        [&](std::int64_t begin, std::int64_t end) {
          const auto ids = file.read_texts(Column::kIds, type, begin, end);
          for (std::int64_t k = 0; k < std::ssize(ids); ++k) visit(type, of.begin + begin + k, ids[k]);
        },
        kValues);
  }
}

}  // namespace

bool named_by_ids(const VertexInfo& info, const std::string& named_by, const std::string& list,
                  const std::string& of) {
  if (info.ids == IdKind::kNumbers && named_by.empty())
    usage_error(
        "{}: the ids of {} are numbers, too: say --named-by ids where the list has such ids, --named-by "
        "numbers where it counts vertices from 0",
        list, of);
  return info.ids != IdKind::kNone && named_by != "numbers";
}

NamedVertices::NamedVertices(const Communicator& world, const GraphFile& file, const std::vector<int>& types,
                             const std::set<std::string>& ids) {
  const auto text = world.broadcast_text(fmt::format("{}", fmt::join(ids, "\n")), 0, kInferLabel);
  for (auto& id : split_text(text, '\n')) places_.emplace(std::move(id), std::ssize(places_));
  vertex_.assign(file.info().types.size() * places_.size(), -1);
  count_.assign(vertex_.size(), 0);
  visit_ids(world, file, types, [&](int type, std::int64_t vertex, const std::string& id) {
    const auto place = places_.find(id);
    if (place == places_.end()) return;
    const auto at = type * places_.size() + place->second;
    vertex_[at] = vertex;
    ++count_[at];
  });
  world.all_reduce(std::span<std::int64_t>(vertex_), Reduction::kMax, kInferLabel);
  world.all_reduce(std::span<std::int64_t>(count_), Reduction::kSum, kInferLabel);
}

std::optional<std::int64_t> NamedVertices::find(int type, const std::string& id, const std::string& path,
                                                std::int64_t line, const std::string& of) const {
  const auto at = type * places_.size() + places_.at(id);
  if (count_[at] > 1)
    input_error("{}:{}: {} vertices of {} have the id '{}'; say which by numbers (--named-by numbers)", path,
                line, count_[at], of, id.substr(0, 60));
  return count_[at] == 0 ? std::nullopt : std::optional(vertex_[at]);
}

std::map<std::int64_t, std::string> names_of(const Communicator& world, const GraphFile& file,
                                             const std::vector<int>& types,
                                             const std::set<std::int64_t>& vertices) {
  std::map<std::int64_t, std::string> names;
  std::string letters;
  std::vector<std::int64_t> whose, sizes;
  visit_ids(world, file, types, [&](int, std::int64_t vertex, const std::string& id) {
    if (!vertices.contains(vertex)) return;
    whose.push_back(vertex);
    sizes.push_back(std::ssize(id));
    letters += id;
  });
  const auto all = world.all_gather_v(std::span<const char>(letters), kInferLabel);
  const auto all_whose = world.all_gather_v(std::span<const std::int64_t>(whose), kInferLabel),
             all_sizes = world.all_gather_v(std::span<const std::int64_t>(sizes), kInferLabel);
  std::int64_t at = 0;
  for (std::size_t k = 0; k < all_whose.size(); at += all_sizes[k], ++k)
    names[all_whose[k]] = std::string(all.begin() + at, all.begin() + at + all_sizes[k]);
  const auto& schema = file.info().schema;
  for (const auto vertex : vertices)
    if (!names.contains(vertex))
      names[vertex] = std::to_string(vertex - schema.types()[schema.type_of(vertex)].begin);
  return names;
}

// A list of vertices: a text file with one id on a line.

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

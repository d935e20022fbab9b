#include "espalier/job/named_vertices.hpp"

#include <fmt/format.h>

#include "espalier/file/csv.hpp"
#include "espalier/graph/row_range.hpp"

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

}  // namespace espalier

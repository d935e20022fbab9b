// Links that are edges of the graph, too. Where the entry of a link would be, and those that say
// the same (of its reverse, where links have no direction; of the relation's inverse), the rank
// that reads the row is asked.
#include <algorithm>
#include <numeric>

#include "espalier/base/group_stably.hpp"
#include "espalier/graph/degrees.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/row_range.hpp"

namespace espalier {

namespace {

constexpr const char* kLinks = "links";

struct Wanted {
  std::int64_t row, source;
  std::int64_t relation;  // of the graph; -1: any
  std::int64_t link;      // of mine
};

// Collective. The entries of my even share of a split, whose links are numbered from `first` on;
// returns the number behind the last.
std::int64_t want_links(const Communicator& comm, const GraphFile& file, Split split, std::int64_t first,
                        Buffer<Wanted>& wanted) {
  const auto& info = file.info().links;
  const auto mine = even_range(info.splits[static_cast<std::size_t>(split)].links, comm.size(), comm.rank());
  const auto links = file.read_links(split, mine.begin, mine.end);
  for (std::int64_t k = 0; k < mine.size(); ++k) {
    const auto head = links.heads[k], tail = links.tails[k];
    const auto add = [&](std::int64_t relation, bool reverse) {
      wanted.push_back({reverse ? head : tail, reverse ? tail : head, relation, first + k});
    };
    const int relation = info.graph_relations.empty()
                             ? -1
                             : info.graph_relations[links.relations.empty() ? 0 : links.relations[k]];
    const int inverse = relation < 0 ? -1 : file.info().schema.relations()[relation].inverse;
    for (const bool turned : {false, true}) {
      if (turned && info.directed) continue;
      add(relation, turned);
      if (inverse >= 0) add(inverse, !turned);
    }
  }
  return first + mine.size();
}

bool is_edge(const Schema& schema, std::span<const std::int64_t> columns, const Wanted& link) {
  for (int r = 0; r < std::ssize(schema.relations()); ++r) {
    const auto& of = schema.types()[schema.relations()[r].source];
    if ((link.relation >= 0 && link.relation != r) || link.source < of.begin || link.source >= of.end)
      continue;
    if (std::ranges::binary_search(columns, schema.column(r, link.source))) return true;
  }
  return false;
}

// Collective. Of each of these entries of my rows: is it there?
Buffer<std::uint8_t> look_up(const Communicator& comm, const GraphFile& file, const Buffer<Wanted>& wanted) {
  const auto& info = file.info();
  std::vector<std::int64_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::sort(order, {}, [&](std::int64_t k) { return wanted[k].row; });
  Buffer<std::uint8_t> found(std::ssize(wanted), 0);
  auto next = order.begin();
  in_row_parts(
      comm, info.nodes,
      [&](std::int64_t begin, std::int64_t end) {
        const auto rows = file.read_rows<std::int64_t>(begin, end);
        for (; next != order.end() && wanted[*next].row < end; ++next)
          found[*next] = is_edge(info.schema, rows.row_indices(wanted[*next].row - begin), wanted[*next]);
      },
      1 + info.edges / info.nodes);
  return found;
}

}  // namespace

std::array<std::int64_t, 3> count_links_among_edges(const Communicator& comm, const GraphFile& file) {
  ESPALIER_CHECK(file.view().apart, "relations of {} are merged", file.path());
  Buffer<Wanted> mine;
  const auto valid = want_links(comm, file, Split::kValid, 0, mine);
  std::vector<std::int64_t> is_told(want_links(comm, file, Split::kTest, valid, mine), 0);
  const auto counts = group_stably(mine, comm.size(), [&](const Wanted& of) {
    return even_owner(file.info().nodes, comm.size(), of.row);
  });
  const auto asked = comm.all_to_all_v(std::span<const Wanted>(mine), counts, kLinks);
  const auto answers = look_up(comm, file, asked.data);
  Buffer<std::uint8_t> found;
  comm.all_to_all_v(std::span<const std::uint8_t>(answers), asked.counts, counts, found, kLinks);
  for (std::size_t k = 0; k < found.size(); ++k) is_told[mine[k].link] |= found[k];
  const auto test = is_told.begin() + valid;
  std::array<std::int64_t, 3> told = {0, std::accumulate(is_told.begin(), test, std::int64_t{0}),
                                      std::accumulate(test, is_told.end(), std::int64_t{0})};
  comm.all_reduce(std::span<std::int64_t>(told), Reduction::kSum, kLinks);
  return told;
}

}  // namespace espalier

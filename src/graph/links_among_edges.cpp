// Links that edges of the graph tell. Where the entry of a link would be, from its head to its
// tail, in whatever relation, and from its tail to its head, the rank that reads the row is asked.
// What says the link itself is counted by links, all else by relation and direction.
#include <algorithm>
#include <numeric>

#include "espalier/base/group_stably.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

namespace {

constexpr const char* kLinks = "links";

struct Wanted {
  std::int64_t row, source;
  std::int64_t link;      // of mine
  std::int32_t relation;  // of the link, among the graph's; -1: none of them
  std::uint8_t reversed, split;
};

// Does an edge of relation r that is wanted say the link itself?
bool says_link(const GraphInfo& info, const Wanted& of, int r) {
  const bool both_ways = !info.links.directed || of.row == of.source;  // a loop is its own reverse
  if (of.relation < 0) return !of.reversed || both_ways;
  if (r == of.relation && (!of.reversed || both_ways)) return true;
  return r == info.schema.relations()[of.relation].inverse && (of.reversed || both_ways);
}

class LeakFinder {
 public:
  LeakFinder(const Communicator& comm, const GraphFile& file)
      : comm_(comm),
        file_(file),
        info_(file.info()),
        relations_(std::ssize(info_.schema.relations())),
        of_(2 * (relations_ + 1), 0),
        found_(of_.size() * static_cast<std::size_t>(2 * relations_), 0) {}

  // Collective, as all of these.
  LinkLeaks find() {
    Buffer<Wanted> mine;
    const auto valid = want_links(Split::kValid, 0, mine);
    std::vector<std::int64_t> is_told(want_links(Split::kTest, valid, mine), 0);
    const auto counts = group_stably(
        mine, comm_.size(), [&](const Wanted& of) { return even_owner(info_.nodes, comm_.size(), of.row); });
    const auto asked = comm_.all_to_all_v(std::span<const Wanted>(mine), counts, kLinks);
    const auto answers = look_up(asked.data);
    Buffer<std::uint8_t> told;
    comm_.all_to_all_v(std::span<const std::uint8_t>(answers), asked.counts, counts, told, kLinks);
    for (std::size_t k = 0; k < told.size(); ++k) is_told[mine[k].link] |= told[k];
    const auto test = is_told.begin() + valid;
    LinkLeaks leaks = {.edges = {0, std::accumulate(is_told.begin(), test, std::int64_t{0}),
                                 std::accumulate(test, is_told.end(), std::int64_t{0})}};
    comm_.all_reduce(std::span<std::int64_t>(leaks.edges), Reduction::kSum, kLinks);
    comm_.all_reduce(std::span(of_), Reduction::kSum, kLinks);
    comm_.all_reduce(std::span(found_), Reduction::kSum, kLinks);
    leaks.echoes = echoes();
    return leaks;
  }

 private:
  // Places of counts: of links of a relation in valid or test, and of what is found of them.
  std::size_t place(std::int64_t links, Split split) const {
    return static_cast<std::size_t>(2 * (links + 1) + (split == Split::kTest));
  }
  std::size_t place(std::int64_t links, Split split, std::int64_t relation, bool reversed) const {
    return place(links, split) * static_cast<std::size_t>(2 * relations_) +
           static_cast<std::size_t>(2 * relation + reversed);
  }

  // My even share of a split, whose links are numbered from `first` on; returns the number behind
  // the last.
  std::int64_t want_links(Split split, std::int64_t first, Buffer<Wanted>& wanted) {
    const auto& places = info_.links.graph_relations;
    const auto count = info_.links.splits[static_cast<std::size_t>(split)].links;
    const auto mine = even_range(count, comm_.size(), comm_.rank());
    const auto links = file_.read_links(split, mine.begin, mine.end);
    for (std::int64_t k = 0; k < mine.size(); ++k) {
      const int relation = places.empty() ? -1 : places[links.relations.empty() ? 0 : links.relations[k]];
      ++of_[place(relation, split)];
      for (const bool reversed : {false, true})
        if (!reversed || links.heads[k] != links.tails[k])
          wanted.push_back({reversed ? links.heads[k] : links.tails[k],
                            reversed ? links.tails[k] : links.heads[k], first + k, relation, reversed,
                            static_cast<std::uint8_t>(split)});
    }
    return first + mine.size();
  }

  // Counts the edges that are wanted. Does one of them say the link itself?
  bool look_up(std::span<const std::int64_t> columns, const Wanted& of) {
    bool told = false;
    for (int r = 0; r < relations_; ++r) {
      const auto& type = info_.schema.types()[info_.schema.relations()[r].source];
      if (of.source < type.begin || of.source >= type.end ||
          !std::ranges::binary_search(columns, info_.schema.column(r, of.source)))
        continue;
      if (says_link(info_, of, r))
        told = true;
      else
        ++found_[place(of.relation, static_cast<Split>(of.split), r, of.reversed != 0)];
    }
    return told;
  }

  // Of entries of my rows.
  Buffer<std::uint8_t> look_up(const Buffer<Wanted>& wanted) {
    std::vector<std::int64_t> order(wanted.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::ranges::sort(order, {}, [&](std::int64_t k) { return wanted[k].row; });
    Buffer<std::uint8_t> told(std::ssize(wanted), 0);
    auto next = order.begin();
    in_row_parts(
        comm_, info_.nodes,
        [&](std::int64_t begin, std::int64_t end) {
          const auto rows = file_.read_rows<std::int64_t>(begin, end);
          for (; next != order.end() && wanted[*next].row < end; ++next)
            told[*next] = look_up(rows.row_indices(wanted[*next].row - begin), wanted[*next]);
        },
        1 + info_.edges / info_.nodes);
    return told;
  }

  std::vector<LinkEcho> echoes() const {
    const auto mine = even_range(info_.nodes, comm_.size(), comm_.rank());
    auto entries = file_.count_entries(mine.begin, mine.end);
    comm_.all_reduce(std::span(entries), Reduction::kSum, kLinks);
    std::vector<LinkEcho> found;
    for (int links = -1; links < relations_; ++links)
      for (int r = 0; r < relations_; ++r)
        for (const bool reversed : {false, true}) {
          LinkEcho echo = {.links = links, .relation = r, .reversed = reversed};
          for (const auto split : {Split::kValid, Split::kTest}) {
            echo.of[static_cast<std::size_t>(split)] = of_[place(links, split)];
            echo.found[static_cast<std::size_t>(split)] = found_[place(links, split, r, reversed)];
          }
          if (echo.found[1] + echo.found[2] == 0) continue;
          const auto size = [&](int type) { return static_cast<double>(info_.schema.types()[type].size()); };
          const auto& joins = info_.schema.relations()[r];
          echo.by_chance = static_cast<double>(entries[r]) / (size(joins.source) * size(joins.target));
          found.push_back(echo);
        }
    return found;
  }

  const Communicator& comm_;
  const GraphFile& file_;
  const GraphInfo& info_;
  std::int64_t relations_;
  std::vector<std::int64_t> of_, found_;
};

// ---- in words ----

double share(const LinkEcho& echo, std::size_t split) {
  return echo.of[split] == 0 ? 0
                             : static_cast<double>(echo.found[split]) / static_cast<double>(echo.of[split]);
}
double largest_share(const LinkEcho& echo) {
  return std::max(share(echo, 1), share(echo, 2));
}

std::string remedy_for(const GraphInfo& info, const LinkEcho& echo) {
  if (!info.typed || echo.links == echo.relation)
    return "where both directions say the same, espalier prepare --symmetrise with --split-links makes them "
           "one";
  const auto& relations = info.schema.relations();
  const auto name = info.schema.full_name(echo.relation);
  const bool may_be_inverse = echo.reversed && echo.links >= 0 && relations[echo.links].inverse < 0 &&
                              relations[echo.relation].inverse < 0;
  return fmt::format("espalier prepare --split-links {}--also {} takes them out",
                     may_be_inverse ? fmt::format("--inverse {}={}, or where these are not the same edges ",
                                                  info.schema.full_name(echo.links), name)
                                    : "",
                     name);
}

std::string in_words(const GraphInfo& info, const LinkEcho& echo) {
  std::string shares;
  for (const std::size_t s : {1, 2})
    if (echo.of[s] > 0)
      shares += fmt::format("{}{} of {} links of {} ({:.3f})", shares.empty() ? "" : " and ", echo.found[s],
                            echo.of[s], kSplitNames[s], share(echo, s));
  return fmt::format("{}{} stand in {}{}", echo.links < 0 ? "" : info.schema.full_name(echo.links) + ": ",
                     shares, info.typed ? info.schema.full_name(echo.relation) : "the graph",
                     echo.reversed ? ", the other way round" : "");
}

}  // namespace

LinkLeaks find_link_leaks(const Communicator& comm, const GraphFile& file) {
  ESPALIER_CHECK(file.view().apart, "relations of {} are merged", file.path());
  return LeakFinder(comm, file).find();
}

std::vector<std::string> leaks_in_words(const GraphFile& file, const LinkLeaks& leaks, bool remedies) {
  constexpr std::size_t kNamed = 5;
  const auto& info = file.info();
  std::vector<std::string> sentences;
  const auto say = [&](std::string fact, const std::string& remedy) {
    if (remedies) fact += fmt::format(": what is asked there is told by it ({})", remedy);
    sentences.push_back(std::move(fact));
  };
  for (std::size_t s = 0; s < leaks.edges.size(); ++s)
    if (leaks.edges[s] > 0)
      say(fmt::format("{} of {} links of {} are edges of the graph, too", leaks.edges[s],
                      info.links.splits[s].links, kSplitNames[s]),
          "espalier prepare --split-links takes links out of a graph");
  auto told = leaks.echoes;
  std::erase_if(told, [](const LinkEcho& echo) { return largest_share(echo) - echo.by_chance < kLeakShare; });
  std::ranges::stable_sort(told, std::greater(), largest_share);
  for (std::size_t k = 0; k < std::min(told.size(), kNamed); ++k)
    say(in_words(info, told[k]), remedy_for(info, told[k]));
  if (told.size() > kNamed)
    sentences.push_back(fmt::format("links stand in {} more relations or directions, of smaller shares",
                                    told.size() - kNamed));
  return sentences;
}

}  // namespace espalier

// Links among the edges of a graph, chosen and given to train, valid and test (rewrite_graph.hpp
// has the law).
#pragma once

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <optional>

#include "edge_tables.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "link_choice.hpp"

namespace espalier {

template <class Index>
class ChosenLinks {
 public:
  /// Collective. Chooses among the entries of `placed`, this rank's even range of the rows, which
  /// the tables speak of; `schema` has the inverses that options declare. Throws as
  /// rewrite_graph().
  ChosenLinks(const Communicator& comm, const GraphFile& file, const Schema& schema,
              const LinkSplitOptions& options, const PlacedRows<Index>& placed,
              const EdgeTables<Index>& tables)
      : comm_(comm),
        file_(file),
        schema_(schema),
        options_(options),
        range_(even_range(schema.nodes(), comm.size(), comm.rank())),
        placed_(placed) {
    counts_.edges_before = comm.all_reduce(rows().entries(), Reduction::kSum, kSplit);
    choose(tables);
  }

  const LinkSplitCounts& counts() const { return counts_; }
  /// Does the entry stay in A?
  bool stays(std::int64_t e) const {
    return marks_[e] == kNoLink || marks_[e] == static_cast<std::uint8_t>(Split::kTrain);
  }

  /// Collective.
  void write(GraphWriter& writer) const {
    LinkInfo info;
    info.directed = !counts_.pairs;
    if (file_.info().typed)
      for (const int r : choice_->chosen()) {
        info.names.push_back(name_of(r));
        info.graph_relations.push_back(r);
      }
    writer.write_link_relations(info);
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
      if (options_.shares[static_cast<std::size_t>(split)] == 0) continue;
      Links links;
      each_entry([&](std::int64_t e, std::int64_t v, std::int64_t column) {
        if (marks_[e] != static_cast<std::uint8_t>(split) || !is_listed(v, column)) return;
        links.heads.push_back(schema_.vertex_of(column));
        links.tails.push_back(v);
        if (info.names.size() > 1) links.relations.push_back(choice_->place(schema_.relation_of(column)));
      });
      writer.write_links(split, links);
    }
  }

 private:
  static constexpr const char* kSplit = "split of links";
  // What an entry of A is: no link, left out with one, or of the link of a split.
  static constexpr std::uint8_t kNoLink = 3, kBeside = 4;

  const Csr<Index>& rows() const { return placed_.rows; }

  // Collective, as all of these.
  void choose(const EdgeTables<Index>& tables) {
    auto entries = entries_by_relation(schema_, rows());
    comm_.all_reduce(std::span(entries), Reduction::kSum, kSplit);
    std::vector<int> chosen, asked;
    std::vector<std::uint8_t> beside;
    agree(comm_, [&] {
      beside = relations_beside(file_, schema_, options_);
      chosen = relations_of_links(file_, schema_, options_, beside, entries);
      if (options_.by_time) check_times(chosen);
    });
    for (int r = 0; r < std::ssize(schema_.relations()); ++r)
      if (std::ranges::binary_search(chosen, r) || is_declared(r)) asked.push_back(r);
    const auto reverses = find_reverses(comm_, schema_, range_, rows(), entries, asked);
    agree(comm_, [&] { check_inverses(asked, reverses); });
    counts_.pairs = !file_.info().typed && !chosen.empty() && reverses.symmetric[0] != 0;
    for (const int r : chosen)
      if (!reverses.symmetric[r]) {
        counts_.directed += reverses.edges[r];
        counts_.reversed += reverses.answered[r];
      }
    choice_.emplace(schema_, std::move(chosen), reverses, options_.seed);
    if (options_.by_time) find_times(tables);
    choice_->set_bounds(comm_, words(), options_.shares);
    mark_entries();
    agree(comm_, [&] { check_splits_hold_links(); });
    if (!options_.also.empty()) leave_out_beside(beside);
  }

  // Is the relation's inverse one that the options declare?
  bool is_declared(int relation) const {
    return schema_.relations()[relation].inverse != file_.info().schema.relations()[relation].inverse;
  }

  void check_inverses(const std::vector<int>& asked, const Reverses& reverses) const {
    for (const int r : asked) {
      const int inverse = schema_.relations()[r].inverse;
      if (inverse < 0 || reverses.inverse[r]) continue;
      if (is_declared(r))
        usage_error(
            "--inverse {}: {} has other edges than {}, reversed; leave it out, --also {} takes those out "
            "that "
            "say a link",
            fmt::join(options_.inverses, ","), schema_.full_name(inverse), schema_.full_name(r),
            schema_.full_name(inverse));
      input_error(
          "graph file {}: {} is called the inverse of {}, but has other edges, so an edge of one cannot be "
          "left out of both; correct /relations/inverse (-1: no inverse), or write the edges of both again",
          file_.path(), schema_.full_name(inverse), schema_.full_name(r));
    }
  }

  void check_times(const std::vector<int>& chosen) const {
    for (const int r : chosen)
      if (file_.info().edge_times[r] == 0)
        input_error("graph file {}: {} no times (/edges/{}time), so links cannot be split --by-time",
                    file_.path(),
                    file_.info().typed ? schema_.full_name(r) + " has" : std::string("its edges have"),
                    file_.info().typed ? schema_.full_name(r) + "/" : "");
  }

  // Of each relation's links, how long before the latest.
  void find_times(const EdgeTables<Index>& tables) {
    times_ = read_link_times(comm_, tables, range_, placed_, *choice_);
    constexpr auto kLeast = std::numeric_limits<std::int64_t>::min() / 4, kMost = -kLeast;
    std::vector<std::int64_t> latest(choice_->chosen().size(), kLeast);
    bool far = false;
    const auto each_link = [&](auto what) {
      each_entry([&](std::int64_t e, std::int64_t v, std::int64_t column) {
        if (const auto link = choice_->link_of(v, column); link.relation >= 0)
          what(times_[e], choice_->place(link.relation));
      });
    };
    each_link([&](std::int64_t time, int k) {
      far |= time < kLeast || time > kMost;
      latest[k] = std::max(latest[k], time);
    });
    comm_.all_reduce(std::span(latest), Reduction::kMax, kSplit);
    agree(comm_, [&] {
      if (far)
        input_error("graph file {}: a time of its edges is beyond 2^61; count from another moment",
                    file_.path());
    });
    each_link([&](std::int64_t& time, int k) { time = latest[k] - time; });
  }

  // By which the links of a relation are ordered.
  std::int64_t word_of(std::int64_t entry, const LinkOfEntry& link) const {
    return options_.by_time ? times_[entry] : choice_->word(link);
  }

  template <class Do>
  void each_entry(Do what) const {
    for (std::int64_t row = 0; row < rows().rows; ++row)
      for (auto e = rows().row_begin(row); e < rows().row_end(row); ++e)
        what(e, range_.begin + row, static_cast<std::int64_t>(rows().indices[e]));
  }

  // Of my links that are counted, by their relation.
  std::vector<std::vector<std::int64_t>> words() const {
    std::vector<std::vector<std::int64_t>> words(choice_->chosen().size());
    each_entry([&](std::int64_t e, std::int64_t v, std::int64_t column) {
      const auto link = choice_->link_of(v, column);
      if (link.is_first) words[choice_->place(link.relation)].push_back(word_of(e, link));
    });
    return words;
  }

  // Is the entry a link of the file, not only the other direction of one?
  bool is_listed(std::int64_t v, std::int64_t column) const {
    return choice_->place(schema_.relation_of(column)) >= 0 &&
           (!counts_.pairs ||
            choice_->descends(choice_->link_of(v, column)) == (schema_.vertex_of(column) > v));
  }

  void mark_entries() {
    marks_.resize(rows().entries());
    each_entry([&](std::int64_t e, std::int64_t v, std::int64_t column) {
      const auto link = choice_->link_of(v, column);
      marks_[e] = link.relation < 0
                      ? kNoLink
                      : static_cast<std::uint8_t>(choice_->split(link.relation, word_of(e, link)));
      if (link.relation < 0)
        counts_.loops += choice_->place(schema_.relation_of(column)) >= 0;
      else if (is_listed(v, column))
        ++counts_.links[marks_[e]];
    });
    counts_.loops = comm_.all_reduce(counts_.loops, Reduction::kSum, kSplit);
    comm_.all_reduce(std::span<std::int64_t>(counts_.links), Reduction::kSum, kSplit);
  }

  void leave_out_beside(const std::vector<std::uint8_t>& relations) {
    const auto places =
        entries_beside(comm_, *choice_, range_, rows(), relations, [&](std::int64_t e) { return !stays(e); });
    for (const auto e : places) marks_[e] = kBeside;
    counts_.beside = comm_.all_reduce(std::ssize(places), Reduction::kSum, kSplit);
  }

  void check_splits_hold_links() const {
    const auto total = std::accumulate(counts_.links.begin(), counts_.links.end(), std::int64_t{0});
    if (total == 0)
      usage_error("--split-links {}: {} has no edge that can be a link{}", fmt::join(options_.shares, ","),
                  file_.path(), options_.relations.empty() ? "" : " in these relations");
    for (std::size_t s = 0; s < kSplitNames.size(); ++s)
      if (counts_.links[s] == 0 && options_.shares[s] > 0)
        usage_error("--split-links {}: of {} links of {} none is for {} ({}); give it a larger share",
                    fmt::join(options_.shares, ","), total, file_.path(), kSplitNames[s],
                    options_.by_time ? "those of one moment stay together, at the nearer end"
                                     : "of each relation shares are rounded down");
  }

  // A name that is one relation's in the graph, else with its types.
  std::string name_of(int relation) const {
    const auto& name = schema_.relations()[relation].name;
    return schema_.find_relation(name) == relation ? name : schema_.full_name(relation);
  }

  const Communicator& comm_;
  const GraphFile& file_;
  const Schema& schema_;
  const LinkSplitOptions& options_;
  RowRange range_;
  const PlacedRows<Index>& placed_;
  std::optional<LinkChoice> choice_;
  Buffer<std::int64_t> times_;  // [entries] by time: how long before the latest of its relation
  Buffer<std::uint8_t> marks_;  // [entries] a split, kNoLink or kBeside
  LinkSplitCounts counts_;
};

}  // namespace espalier

#include "espalier/graph/split_links.hpp"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <optional>

#include "beside_links.hpp"
#include "copy_contents.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "link_choice.hpp"
#include "link_times.hpp"

namespace espalier {

namespace {

constexpr const char* kSplit = "split of links";

// What an entry of A is: no link, left out with one, or of the link of a split.
constexpr std::uint8_t kNoLink = 3, kBeside = 4;

template <class Index>
class LinkSplitter {
 public:
  LinkSplitter(const Communicator& comm, const GraphFile& file, const Schema& schema,
               const LinkSplitOptions& options)
      : comm_(comm),
        file_(file),
        schema_(schema),
        options_(options),
        range_(even_range(file.info().nodes, comm.size(), comm.rank())),
        rows_(file.read_rows<Index>(range_.begin, range_.end)) {
    counts_.edges_before = file.info().edges;
  }

  LinkSplitCounts run(const Destination& output) {
    choose();
    write(output);
    return counts_;
  }

 private:
  // Collective, as all of these.
  void choose() {
    const auto entries = count_and_check(comm_, file_, rows_);
    std::vector<int> chosen, asked;
    std::vector<std::uint8_t> beside;
    agree(comm_, [&] {
      beside = relations_beside(file_, schema_, options_);
      chosen = relations_of_links(file_, schema_, options_, beside, entries);
      if (options_.by_time) check_times(chosen);
    });
    for (int r = 0; r < std::ssize(schema_.relations()); ++r)
      if (std::ranges::binary_search(chosen, r) || is_declared(r)) asked.push_back(r);
    const auto reverses = find_reverses(comm_, schema_, range_, rows_, entries, asked);
    agree(comm_, [&] { check_inverses(asked, reverses); });
    counts_.pairs = !file_.info().typed && !chosen.empty() && reverses.symmetric[0] != 0;
    for (const int r : chosen)
      if (!reverses.symmetric[r]) {
        counts_.directed += reverses.edges[r];
        counts_.reversed += reverses.answered[r];
      }
    choice_.emplace(schema_, std::move(chosen), reverses, options_.seed);
    if (options_.by_time) find_times();
    choice_->set_bounds(comm_, words(), options_.shares);
    mark_entries();
    agree(comm_, [&] { check_splits_hold_links(); });
    if (!options_.also.empty()) leave_out_beside(beside);
  }

  void write(const Destination& output) {
    GraphWriter writer(comm_, output);
    if (file_.info().typed) writer.write_schema(schema_);
    copy_edges(writer);
    write_links(writer);
    leave_out();
    writer.write_adjacency(rows_);
    counts_.edges = comm_.all_reduce(rows_.entries(), Reduction::kSum, kSplit);
    rows_ = {};
    copy_vertices(comm_, file_, nullptr, writer);
    const auto& info = file_.info();
    const auto directed = info.typed ? info.directed.value_or(true) : !counts_.pairs;
    writer.commit({info.name, info.source + (info.source.empty() ? "" : "; ") + options_.words, directed});
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
  void find_times() {
    times_ = read_link_times(comm_, file_, range_, rows_, *choice_);
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
    for (std::int64_t row = 0; row < rows_.rows; ++row)
      for (auto e = rows_.row_begin(row); e < rows_.row_end(row); ++e)
        what(e, range_.begin + row, static_cast<std::int64_t>(rows_.indices[e]));
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
    marks_.resize(rows_.entries());
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
        entries_beside(comm_, *choice_, range_, rows_, relations, [&](std::int64_t e) { return !stays(e); });
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

  // Does it stay in A?
  bool stays(std::int64_t e) const {
    return marks_[e] == kNoLink || marks_[e] == static_cast<std::uint8_t>(Split::kTrain);
  }

  // Features and times of the entries that stay.
  void copy_edges(GraphWriter& writer) const {
    const auto& info = file_.info();
    for (int r = 0; r < std::ssize(info.edge_features); ++r) {
      const auto& features = info.edge_features[r];
      const bool timed = info.edge_times[r] > 0;
      if (!features.has() && !timed) continue;
      const auto places = entries_of(schema_, rows_, r);
      const auto mine = among_entries(comm_, std::ssize(places));
      if (features.has())
        features.half ? copy_features<Half>(r, mine, places, writer)
                      : copy_features<float>(r, mine, places, writer);
      if (!timed) continue;
      auto times = file_.read_edge_times(r, mine.begin, mine.end);
      std::int64_t kept = 0;
      for (std::size_t k = 0; k < places.size(); ++k)
        if (stays(places[k])) times[kept++] = times[k];
      times.resize(kept);
      writer.write_edge_times(times, r);
    }
  }

  template <class T>
  void copy_features(int relation, const RowRange& mine, const Buffer<std::int64_t>& places,
                     GraphWriter& writer) const {
    auto rows = file_.read_edge_features<T>(relation, mine.begin, mine.end);
    std::int64_t kept = 0;
    for (std::int64_t k = 0; k < rows.rows; ++k)
      if (stays(places[k])) std::copy_n(rows.row(k), rows.columns, rows.row(kept++));
    rows.data.resize(kept * rows.columns);
    rows.rows = kept;
    writer.write_edge_features(rows, relation);
  }

  // A name that is one relation's in the graph, else with its types.
  std::string name_of(int relation) const {
    const auto& name = schema_.relations()[relation].name;
    return schema_.find_relation(name) == relation ? name : schema_.full_name(relation);
  }

  void write_links(GraphWriter& writer) const {
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

  void leave_out() {
    std::int64_t kept = 0, row = 0;
    const bool weighted = rows_.has_values();
    Buffer<std::int64_t> indptr(rows_.rows + 1, 0);
    for (; row < rows_.rows; ++row) {
      for (auto e = rows_.row_begin(row); e < rows_.row_end(row); ++e) {
        if (!stays(e)) continue;
        rows_.indices[kept] = rows_.indices[e];
        if (weighted) rows_.values[kept] = rows_.values[e];
        ++kept;
      }
      indptr[row + 1] = kept;
    }
    rows_.indptr = std::move(indptr);
    rows_.indices.resize(kept);
    if (weighted) rows_.values.resize(kept);
  }

  const Communicator& comm_;
  const GraphFile& file_;
  const Schema& schema_;
  const LinkSplitOptions& options_;
  RowRange range_;
  Csr<Index> rows_;
  std::optional<LinkChoice> choice_;
  Buffer<std::int64_t> times_;  // [entries] by time: how long before the latest of its relation
  Buffer<std::uint8_t> marks_;  // [entries] a split, kNoLink or kBeside
  LinkSplitCounts counts_;
};

}  // namespace

LinkSplitCounts split_links(const Communicator& comm, const GraphFile& file, const LinkSplitOptions& options,
                            const Destination& output) {
  const auto& info = file.info();
  ESPALIER_CHECK(file.view().apart, "relations of {} are merged", file.path());
  agree(comm, [&] {
    if (info.links.exist)
      input_error("graph file {}: has links already (/links); prepare the graph that it was made from",
                  file.path());
  });
  Schema schema;
  agree(comm, [&] { schema = declare_inverses(file, options); });
  const auto most = std::max(info.columns, info.nodes);
  return info.wide_indices || most > std::numeric_limits<std::int32_t>::max()
             ? LinkSplitter<std::int64_t>(comm, file, schema, options).run(output)
             : LinkSplitter<std::int32_t>(comm, file, schema, options).run(output);
}

}  // namespace espalier

// espalier info: what is in a graph file, and how much memory it takes on a grid; or what is in an
// order (order_page.hpp).
//
// Every rank reads an even range of rows, in parts of bounded size. Degree quantiles are exact:
// each rank keeps its degrees sorted, and one bisection over the degree axis serves all
// quantiles together.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "commands.hpp"
#include "espalier/base/escape.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/base/whereabouts.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/row_range.hpp"
#include "espalier/plan/memory.hpp"
#include "order_page.hpp"

namespace espalier {

namespace {

constexpr const char* kLabel = "info";

void line(const char* name, const std::string& text) {
  log::info("{:<12} {}", name, excerpt(text));
}

// ---- degrees ----

struct Degrees {
  std::vector<std::int64_t> in;  // of my rows, sorted
  std::int64_t self_loops = 0;
  std::int64_t isolated = 0;  // vertices without an edge in either direction
  bool symmetric = true;      // is every edge there in both directions?
};

// One bit per vertex, grouped by the rank that owns the vertex.
class VertexMarks {
 public:
  VertexMarks(std::int64_t n, int ranks) : n_(n), ranks_(ranks) {
    std::int64_t bytes = 0;
    for (int r = 0; r < ranks; ++r) {
      starts_.push_back(bytes);
      sizes_.push_back((even_range(n, ranks, r).size() + 7) / 8);
      bytes += sizes_.back();
    }
    bits_.assign(bytes, 0);
  }
  void mark(std::int64_t v) {
    const auto r = even_owner(n_, ranks_, v);
    const auto bit = v - even_range(n_, ranks_, r).begin;
    bits_[starts_[r] + bit / 8] |= static_cast<std::uint8_t>(1u << bit % 8);
  }
  /// Collective. For each of my vertices: has any rank marked it?
  std::vector<bool> of_mine(const Communicator& world) const {
    const auto got = world.all_to_all_v(std::span<const std::uint8_t>(bits_), sizes_, kLabel);
    const auto mine = even_range(n_, ranks_, world.rank()).size();
    const auto bytes = sizes_[world.rank()];
    std::vector<bool> marked(mine, false);
    for (std::size_t k = 0; k < got.data.size(); ++k)
      for (int bit = 0; bit < 8; ++bit)
        if (got.data[k] >> bit & 1) marked[static_cast<std::int64_t>(k) % bytes * 8 + bit] = true;
    return marked;
  }

 private:
  std::int64_t n_;
  int ranks_;
  std::vector<std::int64_t> sizes_, starts_;
  std::vector<std::uint8_t> bits_;
};

std::uint64_t edge_hash(std::int64_t row, std::int64_t column) {
  return absorb(absorb(0, row), column);
}

Degrees read_degrees(const Communicator& world, const GraphFile& file) {
  constexpr std::int64_t kEdgesPerPart = std::int64_t{1} << 26;
  const auto& info = file.info();
  const auto mine = even_range(info.nodes, world.size(), world.rank());
  const auto parts = 1 + info.edges / world.size() / kEdgesPerPart;
  VertexMarks has_out_edge(info.nodes, world.size());
  Degrees degrees;
  // Sums over all edges are equal when reversing changes nothing.
  std::uint64_t forward = 0, backward = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const auto rows = even_range(mine.size(), parts, part);
    const auto a = file.read_rows<std::int64_t>(mine.begin + rows.begin, mine.begin + rows.end);
    for (std::int64_t v = 0; v < a.rows; ++v) {
      degrees.in.push_back(a.row_size(v));
      const auto columns = a.row_indices(v);
      degrees.self_loops += std::binary_search(columns.begin(), columns.end(), mine.begin + rows.begin + v);
      const auto row = mine.begin + rows.begin + v;
      for (const auto u : columns) {
        has_out_edge.mark(u);
        forward += edge_hash(row, u);
        backward += edge_hash(u, row);
      }
    }
  }
  degrees.symmetric = world.all_reduce(forward, Reduction::kSum, kLabel) ==
                      world.all_reduce(backward, Reduction::kSum, kLabel);
  const auto marked = has_out_edge.of_mine(world);
  for (std::size_t v = 0; v < marked.size(); ++v) degrees.isolated += degrees.in[v] == 0 && !marked[v];
  std::sort(degrees.in.begin(), degrees.in.end());
  degrees.self_loops = world.all_reduce(degrees.self_loops, Reduction::kSum, kLabel);
  degrees.isolated = world.all_reduce(degrees.isolated, Reduction::kSum, kLabel);
  return degrees;
}

constexpr std::array<double, 7> kQuantiles = {0, 0.25, 0.5, 0.75, 0.9, 0.99, 1};

// The smallest degree that at least a fraction q of the n vertices does not exceed, for each q:
// bisection on [low, high].
std::array<std::int64_t, 7> find_quantiles(const Communicator& world, const std::vector<std::int64_t>& sorted,
                                           std::int64_t n) {
  std::array<std::int64_t, 7> low{}, high{}, covered{};
  high.fill(world.all_reduce(sorted.empty() ? std::int64_t{0} : sorted.back(), Reduction::kMax, kLabel));
  while (low != high) {
    for (std::size_t q = 0; q < low.size(); ++q)
      covered[q] = std::upper_bound(sorted.begin(), sorted.end(), (low[q] + high[q]) / 2) - sorted.begin();
    world.all_reduce(std::span<std::int64_t>(covered), Reduction::kSum, kLabel);
    for (std::size_t q = 0; q < low.size(); ++q) {
      const auto middle = (low[q] + high[q]) / 2;
      const auto wanted =
          std::max<std::int64_t>(1, std::llround(std::ceil(kQuantiles[q] * static_cast<double>(n))));
      if (covered[q] >= wanted)
        high[q] = middle;
      else
        low[q] = std::min(middle + 1, high[q]);
    }
  }
  return low;
}

// Directed or not is what the edges say; the attribute only claims it.
std::string direction_in_words(const GraphInfo& info, bool symmetric) {
  std::string words = symmetric ? "undirected (each both ways)" : "directed";
  if (info.directed && *info.directed == symmetric)
    words += fmt::format(" (its attribute directed says {}, wrongly)", *info.directed ? "true" : "false");
  return words;
}

void show_edges(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  const auto degrees = read_degrees(world, file);
  line("edges", fmt::format("{}, {}, {}, {}-bit ids", info.edges, direction_in_words(info, degrees.symmetric),
                            info.weighted ? "weighted" : "unweighted", info.wide_indices ? 64 : 32));
  const auto q = find_quantiles(world, degrees.in, info.nodes);
  line("in-degree", fmt::format("min {}, 25 % {}, median {}, 75 % {}, 90 % {}, 99 % {}, max {}, mean {:.3f}",
                                q[0], q[1], q[2], q[3], q[4], q[5], q[6],
                                static_cast<double>(info.edges) / static_cast<double>(info.nodes)));
  line("self loops", std::to_string(degrees.self_loops));
  line("isolated", fmt::format("{} vertices without any edge", degrees.isolated));
}

// ---- vertices ----

// How many vertices have each label; behind them, of several labels per vertex, how many
// are unknown.
std::vector<std::int64_t> count_labels(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  const auto mine = even_range(info.nodes, world.size(), world.rank());
  std::vector<std::int64_t> counts(info.classes + 1, 0);
  if (info.multi_label) {
    const auto labels = file.read_multi_labels(mine.begin, mine.end);
    for (std::int64_t v = 0; v < labels.rows; ++v)
      for (std::int64_t k = 0; k < info.classes; ++k)
        counts[labels(v, k) == kUnknownLabel ? info.classes : k] += labels(v, k) != 0;
  } else {
    for (const auto label : file.read_labels(mine.begin, mine.end))
      if (label >= 0) ++counts[label];
  }
  world.all_reduce(std::span<std::int64_t>(counts), Reduction::kSum, kLabel);
  return counts;
}

void show_labels(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  if (!info.has_labels) return line("labels", "none");
  if (info.classes == 0)
    return line("labels", fmt::format("all {} vertices are unlabelled (-1)", info.nodes));
  auto counts = count_labels(world, file);
  const auto unknown = counts.back();
  counts.pop_back();
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  std::int64_t total = 0;
  for (const auto count : counts) total += count;
  const auto* noun = info.multi_label ? "label" : "class";
  const auto range = fmt::format("{} {} has least ({}), {} {} most ({})", noun, least - counts.begin(),
                                 *least, noun, most - counts.begin(), *most);
  if (info.multi_label)
    line("labels", fmt::format("{} per vertex, 0 or 1, {:.3f} of them 1{}; {}", info.classes,
                               static_cast<double>(total) / static_cast<double>(info.nodes * info.classes),
                               unknown > 0 ? fmt::format(", {} unknown", unknown) : "", range));
  else
    line("labels",
         fmt::format("{} classes, {} of {} vertices labelled; {}", info.classes, total, info.nodes, range));
}

// Reads all features, in parts: also the check that they are finite.
void show_features(const Communicator& world, const GraphFile& file) {
  constexpr std::int64_t kValuesPerPart = std::int64_t{1} << 26;
  const auto& info = file.info();
  if (info.features == 0) return line("features", "none");
  const auto mine = even_range(info.nodes, world.size(), world.rank());
  const auto parts = 1 + info.nodes * info.features / world.size() / kValuesPerPart;
  float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::lowest();
  std::int64_t nonzero = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const auto rows = even_range(mine.size(), parts, part);
    for (const float x : file.read_features<float>(mine.begin + rows.begin, mine.begin + rows.end).data) {
      least = std::min(least, x);
      most = std::max(most, x);
      nonzero += x != 0;
    }
  }
  least = world.all_reduce(least, Reduction::kMin, kLabel);
  most = world.all_reduce(most, Reduction::kMax, kLabel);
  nonzero = world.all_reduce(nonzero, Reduction::kSum, kLabel);
  line("features",
       fmt::format("{} x {}, from {:.4g} to {:.4g}, {:.1f} % not zero", info.features,
                   info.half_features ? "float16" : "float32", least, most,
                   100.0 * static_cast<double>(nonzero) / static_cast<double>(info.nodes * info.features)));
}

void show_vertices(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  show_features(world, file);
  show_labels(world, file);
  line("splits", fmt::format("train {}, valid {}, test {}", info.train, info.valid, info.test));
}

// ---- memory ----

void show_memory(const GraphInfo& info, const InfoArguments& arguments) {
  const double topology = topology_bytes(info, info.weighted), features = feature_bytes(info);
  const auto rows = static_cast<double>(arguments.ranks / arguments.replication);
  log::info("\nmemory per rank on {} ranks, replication {} ({:.0f} block rows, evenly cut):\n",
            arguments.ranks, arguments.replication, rows);
  log::info("  {:<24} {:>12} {:>12} {:>12}", "grid.topology", "topology", "features", "together");
  const auto show = [&](const char* name, double a) {
    log::info("  {:<24} {:>12} {:>12} {:>12}", name, bytes_in_words(a), bytes_in_words(features / rows),
              bytes_in_words(a + features / rows));
  };
  show("partitioned", topology / rows);
  show("replicated", topology);
}

}  // namespace

void info_command(const Communicator& world, const InfoArguments& arguments) {
  set_memory_advice("use more ranks: each reads its part of the graph");
  if (arguments.ranks < 1 || arguments.replication < 1 || arguments.ranks % arguments.replication != 0)
    usage_error("--ranks {} --replication {}: the replication must divide the number of ranks",
                arguments.ranks, arguments.replication);
  const Watchdog watchdog(arguments.stall_minutes, "--stall-minutes");
  const std::int64_t order = world.rank() == 0 && looks_like_order(arguments.file);
  if (world.all_reduce(order, Reduction::kMax, kLabel) != 0) return show_order(world, arguments.file);
  // 1. What the header says.
  note_activity("opening the graph file");
  const GraphFile file(world, arguments.file);
  const auto& info = file.info();
  line("file", arguments.file);
  line("name", info.name);
  line("source", info.source);
  line("vertices", std::to_string(info.nodes));
  // 2. What the arrays say.
  note_activity("reading the edges");
  show_edges(world, file);
  note_activity("reading features, labels and splits");
  show_vertices(world, file);
  check_splits(world, file);
  const auto digest = file.content().file;
  line("digest",
       (digest ? hex(*digest) : "unknown") +
           (file.has_digest()
                ? ", as it stands in the file"
                : fmt::format("; the file has none, `espalier digest {} --write` adds it", arguments.file)));
  // 3. What a job will need.
  show_memory(info, arguments);
}

}  // namespace espalier

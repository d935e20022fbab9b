// The planted partition, with numbers of edges instead of probabilities per pair: so many draws
// among the pairs inside classes, so many among the pairs between them, made up for the draws that
// fall on a pair already drawn.
#include "distinct_draws.hpp"
#include "espalier/graph/generate.hpp"
#include "write_generated.hpp"

namespace espalier {

namespace {

// Vertices stand in positions 0..n-1 and position x has class x mod C, so that members of a class
// can be numbered without a table.
class PlantedPairs {
 public:
  PlantedPairs(const PlantedOptions& options, std::int64_t classes) : n_(options.nodes), classes_(classes) {
    double same_pairs = 0;
    for (std::int64_t k = 0; k < classes; ++k)
      same_pairs += 0.5 * static_cast<double>(size(k)) * static_cast<double>(size(k) - 1);
    const double all_pairs = 0.5 * static_cast<double>(n_) * static_cast<double>(n_ - 1);
    const double edges = 0.5 * static_cast<double>(n_) * options.degree;
    same_ = draws_for(options.homophily * edges, same_pairs, options, "inside classes");
    cross_ = draws_for((1 - options.homophily) * edges, all_pairs - same_pairs, options, "between classes");
  }

  std::int64_t draws() const { return same_ + cross_; }

  /// Positions of draw number e; the first draws join equal classes, the rest different ones.
  Edge operator()(std::uint64_t seed, std::int64_t e) const {
    RandomStream stream{seed, Purpose::kGenerateEdges};
    stream.row = static_cast<std::uint64_t>(e);
    const auto words = random_block(stream, 0);
    const auto x = static_cast<std::int64_t>(mulhi(words.v[0], static_cast<std::uint64_t>(n_)));
    return {x, e < same_ ? partner_inside(x, words.v[1]) : partner_outside(x, words.v[1])};
  }

 private:
  std::int64_t size(std::int64_t k) const { return (n_ - k + classes_ - 1) / classes_; }

  std::int64_t draws_for(double wanted, double pairs, const PlantedOptions& options,
                         const char* where) const {
    if (wanted == 0) return 0;
    if (wanted > kMostOfPairs * pairs)
      usage_error(
          "--degree {} --homophily {}: needs {:.0f} edges {}, but {} vertices in {} classes have {:.0f} such "
          "pairs",
          options.degree, options.homophily, wanted, where, n_, classes_, pairs);
    return draws_for_distinct(wanted, pairs);
  }

  std::int64_t partner_inside(std::int64_t x, std::uint64_t word) const {
    const auto k = x % classes_;
    auto member = static_cast<std::int64_t>(mulhi(word, static_cast<std::uint64_t>(size(k) - 1)));
    if (member >= x / classes_) ++member;  // not x itself
    return k + classes_ * member;
  }

  std::int64_t partner_outside(std::int64_t x, std::uint64_t word) const {
    const auto k = x % classes_;
    const auto place = static_cast<std::int64_t>(mulhi(word, static_cast<std::uint64_t>(n_ - size(k))));
    const auto other = place % (classes_ - 1);  // the classes but k, in order
    return place / (classes_ - 1) * classes_ + other + (other >= k);
  }

  std::int64_t n_, classes_, same_ = 0, cross_ = 0;
};

void check(const PlantedOptions& options, std::int64_t classes) {
  if (options.nodes < 2 * classes || options.nodes > kMostNodes)
    usage_error("--nodes {}: give at least 2 per class ({}) and at most {}", options.nodes, 2 * classes,
                kMostNodes);
  if (!(options.degree >= 0)) usage_error("--degree {}: give a number of at least 0", options.degree);
  if (!(options.homophily >= 0 && options.homophily <= 1))
    usage_error("--homophily {}: give a number from 0 to 1", options.homophily);
}

}  // namespace

void generate_planted(const Communicator& comm, const PlantedOptions& options, const VertexOptions& vertices,
                      const Destination& output) {
  check_vertex_options(vertices);
  check(options, vertices.classes);
  const PlantedPairs pairs(options, vertices.classes);
  const Scramble scramble(options.nodes, scramble_stream(vertices.seed));
  const auto edge_at = [&](std::int64_t e) {
    const auto edge = pairs(vertices.seed, e);
    return Edge{scramble(edge.source), scramble(edge.target)};
  };
  const auto class_of = [&](std::int64_t v) { return scramble.inverse(v) % vertices.classes; };
  const auto words = fmt::format("espalier generate planted --nodes {} --degree {} --homophily {} {}",
                                 options.nodes, options.degree, options.homophily, vertex_words(vertices));
  const GraphDescription description{fmt::format("planted-{}", options.nodes), words, false};
  write_graph(
      comm,
      Model<decltype(edge_at)>{options.nodes, pairs.draws(), true, false, edge_at, class_of, description},
      vertices, output);
}

}  // namespace espalier

// The planted partition, with numbers of edges instead of probabilities per pair: so many draws
// among the pairs inside classes, so many among the pairs between them, made up for the draws that
// fall on a pair already drawn.
#include "planted_pairs.hpp"
#include "write_generated.hpp"

namespace espalier {

void generate_planted(const Communicator& comm, const PlantedOptions& options, const VertexOptions& vertices,
                      const Destination& output) {
  check_vertex_options(vertices);
  if (options.nodes < 2 * vertices.classes || options.nodes > kMostNodes)
    usage_error("--nodes {}: give at least 2 per class ({}) and at most {}", options.nodes,
                2 * vertices.classes, kMostNodes);
  if (!(options.degree >= 0)) usage_error("--degree {}: give a number of at least 0", options.degree);
  check_homophily(options.homophily);
  const Positions positions{options.nodes, vertices.classes};
  PlantedPairs pairs(positions, positions, true, {vertices.seed, Purpose::kGenerateEdges});
  pairs.want(0.5 * static_cast<double>(options.nodes) * options.degree, options.homophily, 0.5,
             [&](double wanted, const char* where, double of) {
               usage_error(
                   "--degree {} --homophily {}: needs {:.0f} edges {}, but {} vertices in {} classes have "
                   "{:.0f} such pairs",
                   options.degree, options.homophily, wanted, where, options.nodes, vertices.classes, of);
             });
  const Scramble scramble(options.nodes, scramble_stream(vertices.seed));
  const auto edge_at = [&](std::int64_t e) {
    const auto edge = pairs(e);
    return Edge{scramble(edge.source), scramble(edge.target)};
  };
  const auto class_of = [&](int, std::int64_t v) { return scramble.inverse(v) % vertices.classes; };
  const auto words = fmt::format("espalier generate planted --nodes {} --degree {} --homophily {} {}",
                                 options.nodes, options.degree, options.homophily, vertex_words(vertices));
  const GraphDescription description{fmt::format("planted-{}", options.nodes), words, false};
  write_graph(comm,
              Model<decltype(edge_at)>{Schema(options.nodes), false, {vertices.features}, pairs.draws(), true,
                                       false, edge_at, class_of, description},
              vertices, output);
}

}  // namespace espalier

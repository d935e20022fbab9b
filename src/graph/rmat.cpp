// R-MAT (Chakrabarti, Zhan, Faloutsos: R-MAT, a recursive model for graph mining, SDM 2004), as
// Graph500 uses it.
#include "espalier/graph/generate.hpp"
#include "write_generated.hpp"

namespace espalier {

namespace {

// Quadrants by 32 random bits: below kA: A, below kAB: B, below kABC: C, else D.
constexpr auto kA = static_cast<std::uint32_t>(0.57 * 0x1p32);
constexpr auto kAB = static_cast<std::uint32_t>(0.76 * 0x1p32);
constexpr auto kABC = static_cast<std::uint32_t>(0.95 * 0x1p32);

void check(const RmatOptions& options) {
  if (options.scale < 1 || options.scale > kMostScale)
    usage_error("--scale {}: give a number from 1 to {}", options.scale, kMostScale);
  if (options.edge_factor < 1 || options.edge_factor > kMostEdgeFactor)
    usage_error("--edge-factor {}: give a number from 1 to {}", options.edge_factor, kMostEdgeFactor);
}

}  // namespace

Edge rmat_edge(std::uint64_t seed, std::int64_t edge, std::int64_t scale) {
  FileStream stream{seed, FilePurpose::kGenerateEdges};
  stream.row = static_cast<std::uint64_t>(edge);
  Edge made;
  r123array4x64 block{};
  for (std::int64_t level = 0; level < scale; ++level) {
    if (level % 8 == 0) block = file_block(stream, static_cast<std::uint64_t>(level / 8));
    const auto bits = static_cast<std::uint32_t>(block.v[level % 8 / 2] >> (32 * (level % 2)));
    made.source = 2 * made.source + (bits >= kAB);
    made.target = 2 * made.target + ((bits >= kA && bits < kAB) || bits >= kABC);
  }
  return made;
}

void generate_rmat(const Communicator& comm, const RmatOptions& options, const VertexOptions& vertices,
                   const Destination& output) {
  check(options);
  check_vertex_options(vertices);
  const auto nodes = std::int64_t{1} << options.scale;
  const Scramble scramble(nodes, scramble_stream(vertices.seed));
  const auto edge_at = [&](std::int64_t e) {
    const auto edge = rmat_edge(vertices.seed, e, options.scale);
    return Edge{scramble(edge.source), scramble(edge.target)};
  };
  const auto class_of = [&](int, std::int64_t v) {
    FileStream stream{vertices.seed, FilePurpose::kGenerateLabels};
    stream.row = static_cast<std::uint64_t>(v);
    return static_cast<std::int64_t>(file_below(stream, 0, static_cast<std::uint64_t>(vertices.classes)));
  };
  const auto words = fmt::format("espalier generate rmat --scale {} --edge-factor {}{}{} {}", options.scale,
                                 options.edge_factor, options.symmetrize ? " --symmetrize" : "",
                                 options.drop_self_loops ? " --drop-self-loops" : "", vertex_words(vertices));
  const GraphDescription description{fmt::format("rmat-{}", options.scale), words, !options.symmetrize};
  write_graph(comm,
              Model<decltype(edge_at)>{Schema(nodes),
                                       false,
                                       {vertices.features},
                                       nodes * options.edge_factor,
                                       options.symmetrize,
                                       options.drop_self_loops,
                                       edge_at,
                                       class_of,
                                       description},
              vertices, output);
}

}  // namespace espalier

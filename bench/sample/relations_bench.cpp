// GraphSAGE over eight relations, against the same edges without relations.
//
//     relations_bench [--scale N]     2^N vertices, 16 2^N undirected edges drawn
//                                     (rmat.hpp; default 20), each of one of eight relations, by a
//                                     hash of its ends
//     relations_bench --graph FILE    a file with types
//
// Columns are (relation, source); of R-MAT the rows have the entries of the matrix without
// relations, of a file edges of several relations between two vertices are one there. Fanout
// 15,10,5 of each relation, as a user would say it, where most parts of a row are taken whole; and
// 2,2,1, where most are drawn from, beside 15,10,5 of all. kBatches batches of 1024 in bulk.
//
// The bound is the rate of the sampler without relations: what is more is finding the parts of a
// row, drawing from each, and reading vertices and relations off the columns. What is drawn from it
// has more vertices too, and so more places of memory that nothing holds yet.
//
// Verification: every entry is an edge of its relation; no more than the fanout are of one; a part
// of a row that is as small is there whole; values are 1 / picks of the relation; digests are that
// of 1 thread.
#include "espalier/comm/session.hpp"
#include "espalier/graph/schema.hpp"
#include "espalier/sample/block_value.hpp"
#include "rates.hpp"
#include "rmat.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kBatchSize = 1024, kBatches = 8;
constexpr int kRelations = 8;
const std::vector<std::int64_t> kPlain = {15, 10, 5};
const std::vector<std::int64_t> kTyped[] = {{15, 10, 5}, {2, 2, 1}};

Schema schema_of(std::int64_t n) {
  std::vector<Relation> relations;
  for (int r = 0; r < kRelations; ++r) relations.push_back({std::to_string(r), 0, 0, -1});
  return {{{"vertex", 0, n}}, relations};
}

int relation_of_edge(std::int64_t row, std::int64_t source) {
  return static_cast<int>(absorb(absorb(0, row), source) % kRelations);
}

Csr<std::int32_t> with_relations(const Csr<std::int32_t>& a, const Schema& schema) {
  auto wide = a;
  wide.columns = schema.columns();
#pragma omp parallel for schedule(dynamic, 256) num_threads(std::thread::hardware_concurrency())
  for (std::int64_t v = 0; v < a.rows; ++v) {
    for (auto k = a.row_begin(v); k < a.row_end(v); ++k)
      wide.indices[k] =
          static_cast<std::int32_t>(schema.column(relation_of_edge(v, a.indices[k]), a.indices[k]));
    std::sort(wide.indices.begin() + a.row_begin(v), wide.indices.begin() + a.row_end(v));
  }
  return wide;
}

std::int64_t count_wrong(const Csr<std::int32_t>& wide, const Schema& schema,
                         const std::vector<std::int64_t>& fanouts, const Minibatch& minibatch,
                         std::size_t layer) {
  const auto& block = minibatch.blocks[layer];
  const auto fanout = fanouts[minibatch.blocks.size() - 1 - layer];
  const auto relations = schema.relations().size();
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const auto row = wide.row_indices(minibatch.vertices[r]);
    std::vector<std::int64_t> picked(relations), there(relations);
    for (const auto column : row) ++there[schema.relation_of(column)];
    for (auto e = block.row_begin(r); e < block.row_end(r); ++e) ++picked[block.relations[e]];
    for (auto e = block.row_begin(r); e < block.row_end(r); ++e) {
      const auto column = schema.column(block.relations[e], minibatch.vertices[block.indices[e]]);
      wrong += !std::binary_search(row.begin(), row.end(), column);
      wrong += block.values[e] != mean_value(picked[block.relations[e]]);
    }
    for (std::size_t relation = 0; relation < relations; ++relation)
      wrong += picked[relation] != std::min(fanout, there[relation]);
  }
  return wrong;
}

// The same edges without relations and with them.
struct Graphs {
  DistCsr<std::int32_t> plain, typed;
  Schema schema;
  std::string words;
};

Graphs read_graphs(const Grid& grid, const std::string& path) {
  GraphView apart;
  apart.apart = true;
  const GraphFile file(grid.world(), path), typed(grid.world(), path, apart);
  return {read_dist_csr<std::int32_t>(grid, file, Topology::kReplicated),
          read_dist_csr<std::int32_t>(grid, typed, Topology::kReplicated), typed.info().schema, path};
}

Graphs make_graphs(const Grid& grid, std::int64_t scale) {
  auto plain = distribute(grid, make_rmat(scale), Topology::kReplicated);
  auto schema = schema_of(plain.rows());
  auto typed = distribute(grid, with_relations(plain.local, schema), Topology::kReplicated);
  set_schema(typed, schema, true);
  return {std::move(plain), std::move(typed), std::move(schema), fmt::format("R-MAT scale {}", scale)};
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto path = take_text(argc, argv, "--graph");
  const auto scale = take_scale(argc, argv, 20);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto [plain, typed, schema, words] =
      path.empty() ? make_graphs(grid, scale) : read_graphs(grid, path);
  const FirstBatches batches(plain.local, kBatchSize, kBatches);
  const std::shared_ptr<Sampler> of_all = make_sampler("graphsage", plain, {.fanout = kPlain});

  const auto edges_of = [](const std::vector<Minibatch>& minibatches) {
    std::int64_t edges = 0;
    for (const auto& minibatch : minibatches) edges += minibatch.sampled_edges();
    return 1e-9 * static_cast<double>(edges);
  };
  const auto sample = [&](Sampler& sampler, int threads) {
    return sampler.sample(Cpu{threads}, batches.all(), kSeed, 1);
  };
  std::vector<Comparison> comparisons;
  for (const auto& fanouts : kTyped) {
    const std::shared_ptr<Sampler> by_relation = make_sampler("graphsage", typed, {.fanout = fanouts});
    std::uint64_t first_digest = 0;
    for (const int threads : thread_counts()) {
      const auto minibatches = sample(*by_relation, threads);
      std::int64_t wrong = 0;
      for (const auto& minibatch : minibatches)
        for (std::size_t layer = 0; layer < minibatch.blocks.size(); ++layer)
          wrong += count_wrong(typed.local, schema, fanouts, minibatch, layer);
      const auto digest = sample_digests(Cpu{threads}, minibatches);
      if (threads == 1) first_digest = digest;
      wrong += digest != first_digest;
      const double of_plain = edges_of(sample(*of_all, threads));
      comparisons.push_back(
          {fmt::format("{},{},{} of {} {} thr", fanouts[0], fanouts[1], fanouts[2], schema.relations().size(),
                       threads),
           edges_of(minibatches),
           [&, by_relation, threads] { return seconds_of([&] { sample(*by_relation, threads); }); },
           [&, threads, of_plain] { return of_plain / seconds_of([&] { sample(*of_all, threads); }); }, wrong,
           threads});
    }
  }
  const auto title = fmt::format("GraphSAGE by relation, {}, {} edges; bound: 15,10,5 without relations",
                                 words, plain.local.entries());
  return compare(argc, argv, title, "Gedge/s", comparisons);
}

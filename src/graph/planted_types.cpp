// The planted partition of a graph with types. Every vertex of every type has a hidden class; an
// edge of a relation joins a target, drawn among all vertices of its type, to a source of the same
// class (so many draws as --homophily says) or of another. So what a vertex's class is can be
// learnt through each relation, from features of neighbours of any type.
//
// Edge e of relation r is a function of (seed, r, e), a vertex's features of (seed, type, vertex),
// and an inverse takes the draws of its relation once more, the other way round: nothing depends on
// ranks. Numbers of edges are made up for draws that fall on a pair already drawn (planted.cpp).
#include <algorithm>
#include <limits>
#include <utility>

#include "distinct_draws.hpp"
#include "espalier/graph/generate.hpp"
#include "type_words.hpp"
#include "write_generated.hpp"

namespace espalier {

namespace {

// The vertices of one type stand in positions 0..n-1, and position x has class x mod C.
struct Positions {
  std::int64_t n, classes;

  std::int64_t size(std::int64_t k) const { return (n - k + classes - 1) / classes; }
};

// Pairs of a source and a target of one relation, never of a vertex with itself.
class RelationPairs {
 public:
  /// `name`: of the relation, for messages; `stream`: of its draws.
  RelationPairs(const Positions& source, const Positions& target, bool one_type, const RandomStream& stream)
      : source_(source), target_(target), one_type_(one_type), stream_(stream) {}

  /// Makes draws() as many as give so many edges.
  void want(std::int64_t edges, double homophily, const std::string& name) {
    double same_pairs = 0,
           all_pairs = static_cast<double>(target_.n) * static_cast<double>(source_.n - one_type_);
    for (std::int64_t k = 0; k < target_.classes; ++k)
      same_pairs += static_cast<double>(target_.size(k)) * static_cast<double>(source_.size(k) - one_type_);
    const auto draws = [&](double wanted, double pairs, const char* where) {
      if (wanted == 0) return std::int64_t{0};
      if (wanted > kMostOfPairs * pairs)
        usage_error(
            "--relations {}={} --homophily {}: needs {:.0f} edges {}, but there are {:.0f} such pairs", name,
            edges, homophily, wanted, where, pairs);
      return draws_for_distinct(wanted, pairs);
    };
    const auto wanted = static_cast<double>(edges);
    same_ = draws(homophily * wanted, same_pairs, "inside classes");
    cross_ = draws((1 - homophily) * wanted, all_pairs - same_pairs, "between classes");
  }

  std::int64_t draws() const { return same_ + cross_; }

  /// Positions of draw number e; the first draws join equal classes, the rest different ones.
  Edge operator()(std::int64_t e) const {
    RandomStream stream = stream_;
    stream.row = static_cast<std::uint64_t>(e);
    const auto words = random_block(stream, 0);
    const auto x = below(words.v[0], target_.n);
    return {e < same_ ? source_inside(x, words.v[1]) : source_outside(x, words.v[1]), x};
  }

 private:
  static std::int64_t below(std::uint64_t word, std::int64_t bound) {
    return static_cast<std::int64_t>(mulhi(word, static_cast<std::uint64_t>(bound)));
  }
  std::int64_t source_inside(std::int64_t x, std::uint64_t word) const {
    const auto k = x % target_.classes;
    auto member = below(word, source_.size(k) - one_type_);
    if (one_type_ && member >= x / target_.classes) ++member;  // not x itself
    return k + source_.classes * member;
  }
  std::int64_t source_outside(std::int64_t x, std::uint64_t word) const {
    const auto k = x % target_.classes, others = source_.classes - 1;
    const auto place = below(word, source_.n - source_.size(k));
    const auto other = place % others;  // the classes but k, in order
    return place / others * source_.classes + other + (other >= k);
  }

  Positions source_, target_;
  bool one_type_;
  RandomStream stream_;
  std::int64_t same_ = 0, cross_ = 0;
};

RandomStream of_part(RandomStream stream, std::size_t part) {
  stream.layer |= static_cast<std::uint64_t>(part) << 16;
  return stream;
}

// All that is random about edges and classes.
class PlantedTypes {
 public:
  PlantedTypes(const TypedModel& model, const TypedGraphOptions& options, const VertexOptions& vertices)
      : schema_(model.schema), classes_(vertices.classes) {
    const auto& types = schema_.types();
    for (std::size_t t = 0; t < types.size(); ++t)
      scrambles_.emplace_back(types[t].size(), of_part(scramble_stream(vertices.seed), t));
    for (int r = 0; r < model.forward; ++r) {
      const auto& relation = schema_.relations()[r];
      check_sizes(relation);
      pairs_.emplace_back(Positions{types[relation.source].size(), classes_},
                          Positions{types[relation.target].size(), classes_},
                          relation.source == relation.target,
                          of_part({vertices.seed, Purpose::kGenerateEdges}, r));
      pairs_.back().want(model.edges[r], options.homophily, schema_.full_name(r));
      ends_.push_back((r == 0 ? 0 : ends_.back()) + pairs_.back().draws());
    }
    inverses_ = model.forward < std::ssize(schema_.relations());
  }

  /// Of all relations, inverses with them.
  std::int64_t draws() const { return ends_.back() * (inverses_ ? 2 : 1); }

  /// Entry (row, column) of the wide matrix that a draw makes: the column as the edge's source.
  Edge entry(std::int64_t draw) const {
    const bool inverse = draw >= ends_.back();
    if (inverse) draw -= ends_.back();
    const auto r = static_cast<int>(std::ranges::upper_bound(ends_, draw) - ends_.begin());
    const auto& relation = schema_.relations()[r];
    const auto positions = pairs_[r](r == 0 ? draw : draw - ends_[r - 1]);
    const auto source = vertex(relation.source, positions.source),
               target = vertex(relation.target, positions.target);
    return inverse ? Edge{schema_.column(relation.inverse, target), source}
                   : Edge{schema_.column(r, source), target};
  }

  /// Of the entry (row, column) of relation r; an inverse has those of its relation.
  template <class T>
  void make_edge_features(std::uint64_t seed, int r, std::int64_t row, std::int64_t column,
                          std::span<T> features) const {
    auto target = row, source = schema_.vertex_of(column);
    const auto& relation = schema_.relations()[r];
    const bool one_class = class_of(relation.target, target - schema_.types()[relation.target].begin) ==
                           class_of(relation.source, source - schema_.types()[relation.source].begin);
    if (r >= std::ssize(pairs_)) {
      std::swap(target, source);
      r = relation.inverse;
    }
    generate_edge_features(seed, r, target, source, one_class, features);
  }

  /// The class of a vertex, counted within its type.
  std::int64_t class_of(std::size_t type, std::int64_t v) const {
    return scrambles_[type].inverse(v) % classes_;
  }

 private:
  void check_sizes(const Relation& relation) const {
    const bool one_type = relation.source == relation.target;
    for (const int t : {relation.source, relation.target})
      if (const auto& type = schema_.types()[t]; type.size() < classes_ * (1 + one_type))
        usage_error("--types {}={}: give at least {} per class ({}), for relation {}", type.name, type.size(),
                    1 + one_type, classes_ * (1 + one_type), relation.name);
  }
  std::int64_t vertex(int type, std::int64_t position) const {
    return schema_.types()[type].begin + scrambles_[type](position);
  }

  const Schema& schema_;
  std::int64_t classes_;
  std::vector<Scramble> scrambles_;   // [types] positions to vertices
  std::vector<RelationPairs> pairs_;  // [relations that were given]
  std::vector<std::int64_t> ends_;    // [relations that were given] of their draws
  bool inverses_ = false;
};

// Collective.
template <class Index>
void write_edges_of(const Communicator& comm, const Schema& schema, const PlantedTypes& planted,
                    const VertexOptions& options, GraphWriter& writer) {
  const double start = now();
  const auto range = even_range(schema.nodes(), comm.size(), comm.rank());
  const auto entry = [&](std::int64_t draw) { return planted.entry(draw); };
  auto edges = exchange_edges<Index>(comm, schema.nodes(), planted.draws(), false, entry);
  EdgeCounts counts;
  const auto rows = build_rows(edges, range, schema.columns(), {}, counts);
  report_edges(comm, planted.draws(), counts, rows.entries(), now() - start);
  writer.write_adjacency(rows);
  for (int r = 0; r < std::ssize(schema.relations()); ++r) {
    const auto make = [&](std::int64_t row, std::int64_t column, auto features) {
      planted.make_edge_features(options.seed, r, row, column, features);
    };
    write_made_edge_features(options, rows, range, {schema.begin(r), schema.begin(r + 1)}, make, writer, r);
  }
}

// Collective. The first type has labels and splits.
void write_vertices_of(const Communicator& comm, const TypedModel& model, const PlantedTypes& planted,
                       const VertexOptions& options, GraphWriter& writer) {
  for (std::size_t t = 0; t < model.features.size(); ++t) {
    const auto range = even_range(model.schema.types()[t].size(), comm.size(), comm.rank());
    const auto classes = generate_labels(range, [&](std::int64_t v) { return planted.class_of(t, v); });
    auto of_type = options;
    of_type.features = model.features[t];
    write_features(of_type, range, classes, writer, static_cast<int>(t));
    if (t == 0) write_labels_and_splits(of_type, range, classes, writer);
  }
}

std::string words_of(const TypedGraphOptions& options, const VertexOptions& v) {
  return fmt::format(
      "espalier generate planted --types {} --relations {}{} --homophily {} --classes {} --seed {}{}{}{}",
      options.types, options.relations, options.inverses ? "" : " --no-inverse", options.homophily, v.classes,
      v.seed, v.labels > 0 ? fmt::format(" --labels {}", v.labels) : "", edge_feature_words(v),
      v.half ? " --half" : "");
}

}  // namespace

void generate_planted_types(const Communicator& comm, const TypedGraphOptions& options,
                            const VertexOptions& vertices, const Destination& output) {
  check_vertex_options(vertices);
  if (!(options.homophily >= 0 && options.homophily <= 1))
    usage_error("--homophily {}: give a number from 0 to 1", options.homophily);
  const auto model = read_typed_model(options.types, options.relations, options.inverses);
  const PlantedTypes planted(model, options, vertices);
  GraphWriter writer(comm, output);
  writer.write_schema(model.schema);
  if (std::max(model.schema.columns(), model.schema.nodes()) <= std::numeric_limits<std::int32_t>::max())
    write_edges_of<std::int32_t>(comm, model.schema, planted, vertices, writer);
  else
    write_edges_of<std::int64_t>(comm, model.schema, planted, vertices, writer);
  write_vertices_of(comm, model, planted, vertices, writer);
  writer.commit({fmt::format("planted-{}-types-{}", model.schema.types().size(), model.schema.nodes()),
                 words_of(options, vertices), !options.inverses});
}

}  // namespace espalier

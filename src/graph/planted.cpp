// The planted partition, with numbers of edges instead of probabilities per pair: so many draws
// among the pairs inside classes, so many among the pairs between them, made up for the draws that
// fall on a pair already drawn.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/file/csv.hpp"
#include "espalier/graph/file_stream.hpp"
#include "espalier/graph/generate.hpp"
#include "write_generated.hpp"

namespace espalier {

// Pairs of vertices of one class, or of two, drawn so often that about so many distinct ones come
// out.

namespace {

void check_homophily(double homophily) {
  if (!(homophily >= 0 && homophily <= 1))
    usage_error("--homophily {}: give a number from 0 to 1", homophily);
}

/// The vertices of one type stand in positions 0..n-1, and position x has class x mod C, so that
/// members of a class can be numbered without a table.
struct Positions {
  std::int64_t n, classes;

  std::int64_t size(std::int64_t k) const { return (n - k + classes - 1) / classes; }
};

/// Pairs of a source and a target, never of a vertex with itself.
class PlantedPairs {
 public:
  /// `stream`: of the draws.
  PlantedPairs(const Positions& source, const Positions& target, bool one_type, const FileStream& stream)
      : source_(source), target_(target), one_type_(one_type), stream_(stream) {}

  /// Makes draws() as many as give so many edges, of which a fraction `homophily` joins two of one
  /// class. `ways`: 0.5 where a pair and its reverse are one edge, else 1. Calls refuse(wanted,
  /// where, pairs) where almost all pairs are wanted, or more.
  template <class Refuse>
  void want(double edges, double homophily, double ways, Refuse refuse) {
    double same_pairs = 0,
           all_pairs = ways * static_cast<double>(target_.n) * static_cast<double>(source_.n - one_type_);
    for (std::int64_t k = 0; k < target_.classes; ++k)
      same_pairs +=
          ways * static_cast<double>(target_.size(k)) * static_cast<double>(source_.size(k) - one_type_);
    // So many uniform draws of `pairs` give `wanted` distinct ones on average: wanted = pairs (1 -
    // e^(-draws / pairs)).
    const auto draws = [&](double wanted, double pairs, const char* where) {
      constexpr double kMostOfPairs = 0.95;
      if (wanted == 0) return std::int64_t{0};
      if (wanted > kMostOfPairs * pairs) refuse(wanted, where, pairs);
      return static_cast<std::int64_t>(std::llround(-pairs * std::log1p(-wanted / pairs)));
    };
    same_ = draws(homophily * edges, same_pairs, "inside classes");
    cross_ = draws((1 - homophily) * edges, all_pairs - same_pairs, "between classes");
  }

  std::int64_t draws() const { return same_ + cross_; }

  /// Positions of draw number e; the first draws join equal classes, the rest different ones.
  Edge operator()(std::int64_t e) const {
    FileStream stream = stream_;
    stream.row = static_cast<std::uint64_t>(e);
    const auto words = file_block(stream, 0);
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
  FileStream stream_;
  std::int64_t same_ = 0, cross_ = 0;
};

}  // namespace

void generate_planted(const Communicator& comm, const PlantedOptions& options, const VertexOptions& vertices,
                      const Destination& output) {
  check_vertex_options(vertices);
  if (options.nodes < 2 * vertices.classes || options.nodes > kMostNodes)
    usage_error("--nodes {}: give at least 2 per class ({}) and at most {}", options.nodes,
                2 * vertices.classes, kMostNodes);
  if (!(options.degree >= 0)) usage_error("--degree {}: give a number of at least 0", options.degree);
  check_homophily(options.homophily);
  const Positions positions{options.nodes, vertices.classes};
  PlantedPairs pairs(positions, positions, true, {vertices.seed, FilePurpose::kGenerateEdges});
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
              Model<decltype(edge_at)>{Schema(options.nodes),
                                       false,
                                       {vertices.features},
                                       pairs.draws(),
                                       true,
                                       false,
                                       edge_at,
                                       class_of,
                                       description},
              vertices, output);
}

// The planted partition of a graph with types. Every vertex of every type has a hidden class; an
// edge of a relation joins a target, drawn among all vertices of its type, to a source of the same
// class (so many draws as --homophily says) or of another. So what a vertex's class is can be
// learnt through each relation, from features of neighbours of any type.
//
// Edge e of relation r is a function of (seed, r, e), a vertex's features of (seed, type, vertex),
// and an inverse takes the draws of its relation once more, the other way round: nothing depends on
// ranks. Numbers of edges are made up for draws that fall on a pair already drawn (planted.cpp).

namespace {

// ---- the options --types and --relations ----

/// What is to be generated: a schema, and numbers of each type and relation.
struct TypedModel {
  Schema schema;
  std::vector<std::int64_t> features;  ///< [types] columns; 0: none
  std::vector<std::int64_t> edges;     ///< [relations]; an inverse has those of its relation
  int forward = 0;  ///< relations [0, forward) are those that were given; inverses follow in
                    ///< their order
};

constexpr const char* kTypesForm = "give NAME=VERTICES[:FEATURES],..., as paper=20000:32,author=12000";
constexpr const char* kRelationsForm = "give SOURCE.NAME.TARGET=EDGES,..., as author.writes.paper=60000";

// A whole number from `least` to `most`, or `wrong()`.
template <class Wrong>
std::int64_t whole_number(const std::string& text, std::int64_t least, std::int64_t most, Wrong wrong) {
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || value < least || value > most) wrong();
  return value;
}

void read_types(const std::string& text, std::vector<VertexType>& types, TypedModel& model) {
  std::int64_t end = 0;
  for (const auto& one : split_text(text, ',')) {
    const auto sides = split_text(one, '=');
    const auto numbers = split_text(sides.back(), ':');
    if (sides.size() != 2 || numbers.size() > 2) usage_error("--types {}: {}", one, kTypesForm);
    const auto vertices = whole_number(numbers[0], 1, kMostNodes - end, [&] {
      usage_error("--types {}: {}, with 1 to {} vertices in all", one, kTypesForm, kMostNodes);
    });
    const auto features = numbers.size() == 1 ? 0 : whole_number(numbers[1], 0, kMostFeatures, [&] {
      usage_error("--types {}: {}, with 0 to {} features", one, kTypesForm, kMostFeatures);
    });
    types.push_back({sides[0], end, end + vertices});
    model.features.push_back(features);
    end += vertices;
  }
}

int place_of_type(const std::vector<VertexType>& types, const std::string& name, const std::string& one) {
  for (std::size_t t = 0; t < types.size(); ++t)
    if (types[t].name == name) return static_cast<int>(t);
  usage_error("--relations {}: there is no type {}; --types has {}", one, name, names_of(types));
}

void read_relations(const std::string& text, const std::vector<VertexType>& types,
                    std::vector<Relation>& relations, TypedModel& model) {
  for (const auto& one : split_text(text, ',')) {
    const auto sides = split_text(one, '=');
    const auto names = split_text(sides[0], '.');
    if (sides.size() != 2 || names.size() != 3) usage_error("--relations {}: {}", one, kRelationsForm);
    const auto edges = whole_number(sides[1], 0, kMostNodes, [&] {
      usage_error("--relations {}: {}, with 0 to {} edges", one, kRelationsForm, kMostNodes);
    });
    relations.push_back({names[1], place_of_type(types, names[0], one), place_of_type(types, names[2], one)});
    model.edges.push_back(edges);
  }
}

// The same edges the other way round, behind all others.
void add_inverses(std::vector<Relation>& relations, TypedModel& model) {
  for (int r = 0; r < model.forward; ++r) {
    const auto forward = relations[r];
    relations[r].inverse = model.forward + r;
    relations.push_back({"rev_" + forward.name, forward.target, forward.source, r});
    model.edges.push_back(model.edges[r]);
  }
}

/// `types`: "paper=20000:32,author=12000", names with numbers of vertices and, where there are
/// any, of features. `relations`: "author.writes.paper=60000,...", a relation's source, name and
/// target, with its number of edges; with `inverses` each gets one, called rev_NAME. Throws
/// UserError(kUsage) that quotes what it does not understand.
TypedModel read_typed_model(const std::string& types, const std::string& relations, bool inverses) {
  TypedModel model;
  std::vector<VertexType> type_list;
  std::vector<Relation> relation_list;
  read_types(types, type_list, model);
  read_relations(relations, type_list, relation_list, model);
  model.forward = static_cast<int>(relation_list.size());
  if (inverses) add_inverses(relation_list, model);
  try {
    model.schema = Schema(std::move(type_list), std::move(relation_list));
  } catch (const std::invalid_argument& error) {
    usage_error("--types {} --relations {}: {}", types, relations, error.what());
  }
  return model;
}

// ---- the graph ----

FileStream of_part(FileStream stream, std::size_t part) {
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
                          of_part({vertices.seed, FilePurpose::kGenerateEdges}, r));
      pairs_.back().want(
          static_cast<double>(model.edges[r]), options.homophily, 1,
          [&](double wanted, const char* where, double pairs) {
            usage_error(
                "--relations {}={} --homophily {}: needs {:.0f} edges {}, but there are {:.0f} "
                "such pairs",
                schema_.full_name(r), model.edges[r], options.homophily, wanted, where, pairs);
          });
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

  /// The class of a vertex, counted within its type.
  std::int64_t class_of(int type, std::int64_t v) const { return scrambles_[type].inverse(v) % classes_; }

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
  std::vector<Scramble> scrambles_;  // [types] positions to vertices
  std::vector<PlantedPairs> pairs_;  // [relations that were given]
  std::vector<std::int64_t> ends_;   // [relations that were given] of their draws
  bool inverses_ = false;
};

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
  check_homophily(options.homophily);
  const auto model = read_typed_model(options.types, options.relations, options.inverses);
  const PlantedTypes planted(model, options, vertices);
  const auto edge_at = [&](std::int64_t draw) { return planted.entry(draw); };
  const auto class_of = [&](int type, std::int64_t v) { return planted.class_of(type, v); };
  const GraphDescription description{
      fmt::format("planted-{}-types-{}", model.schema.types().size(), model.schema.nodes()),
      words_of(options, vertices), !options.inverses};
  write_graph(comm,
              Model<decltype(edge_at)>{model.schema, true, model.features, planted.draws(), false, false,
                                       edge_at, class_of, description},
              vertices, output);
}

}  // namespace espalier

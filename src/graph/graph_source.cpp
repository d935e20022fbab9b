#include "graph_source.hpp"

#include <algorithm>
#include <filesystem>

#include "array_tables.hpp"
#include "edge_text.hpp"
#include "espalier/base/text.hpp"
#include "ogb_tables.hpp"

namespace espalier {

namespace {

// Calls use(file) for each that is named.
template <class Use>
void for_each_file(const DescribedGraph& graph, Use use) {
  const auto each = [&](std::initializer_list<const DescribedFile*> files) {
    for (const auto* file : files)
      if (file->given()) use(*file);
  };
  for (const auto& of : graph.types) {
    for (const auto* file : of.of_vertices()) each({file});
    for (const auto& split : of.splits) each({&split.parts[0], &split.parts[1], &split.parts[2]});
  }
  for (const auto& of : graph.relations) {
    for (const auto& edges : of.edges) each({&edges.file});
    each({&of.weights, &of.times, &of.features});
  }
  if (!graph.links) return;
  for (const auto& of : graph.links->splits)
    if (of)
      each(
          {&of->heads, &of->tails, &of->relations, &of->negative_heads, &of->negative_tails, &of->non_links});
}

bool has_field(const DescribedRelation& of, PairField field) {
  return std::ranges::any_of(of.edges, [&](const DescribedEdges& edges) {
    return !edges.file.is_array() && std::ranges::find(edges.form.fields, field) != edges.form.fields.end();
  });
}

// How many vertices of a type there are, and who says so.
VertexCount count_vertices(const DescribedType& of) {
  if (of.by.empty()) return {of.count.value_or(-1), of.counted_by};
  VertexCount said{-1, ""};
  const auto meet = [&](std::int64_t count, const std::string& by) {
    if (said.count >= 0 && count != said.count)
      input_error("{}: {} has {} rows, but {} {}; a row is of a vertex", of.by, by, count, said.by,
                  said.by == "count" ? fmt::format("is {}", said.count) : fmt::format("has {}", said.count));
    if (said.count < 0) said = {count, by};
  };
  if (of.count) meet(*of.count, "count");
  for (const auto* file : of.of_vertices())
    if (file->is_array()) meet(count_rows(*file, file == &of.ids), file->name());
  for (const auto* file : of.of_vertices())
    if (said.count < 0 && file->given()) meet(count_rows(*file), file->name());
  if (said.count < 0)
    input_error("{}: nothing says how many vertices there are; give count, features, labels, ids or time",
                of.by);
  return said;
}

}  // namespace

GraphSource::GraphSource(DescribedGraph graph)
    : graph_(std::move(graph)), begins_(graph_.relations.size(), {0}) {
  count_types();
  for (const auto& of : graph_.relations) check_lengths(of);
  check_files();
  find_link_relations();
}

// ---- what is known before edges are read ----

void GraphSource::count_types() {
  for (auto& of : graph_.types) {
    counts_.push_back(count_vertices(of));
    of.count = counts_.back().count;
  }
  types_ = graph_.counted_types();
  if (typed()) graph_.check_names(graph_.place);
  if (!typed() && types_[0].end == 0 && !graph_.types[0].by.empty())
    input_error("{}: the graph has no vertex", graph_.place);
}

VertexCount GraphSource::vertices(int type) const {
  const auto size = types()[type].size();
  if (typed()) return {size, fmt::format("the graph has {} vertices of type {}", size, types()[type].name)};
  const auto& by = graph_.types[0].counted_by;
  return {size, by.empty() ? "the graph has " + counted(size, "vertex") : by};
}

Buffer<std::int64_t> GraphSource::read_times(int type) const {
  const auto& file = described(type).times;
  if (!file.given()) return {};
  auto times = read_whole_numbers(file);
  if (times.rows != types()[type].size() || (times.rows > 0 && times.columns != 1))
    input_error("{}: {} is {} x {}, but there are {} {}, and each has one", file.by, file.name(), times.rows,
                times.columns, types()[type].size(), things(type));
  return std::move(times.data);
}

bool GraphSource::weighted(int triplet) const {
  const auto& of = relation(triplet);
  return of.weights.given() ||
         (of.edges[0].source ? of.edges[0].source->weighted() : has_field(of, PairField::kValue));
}

bool GraphSource::timed(int triplet) const {
  return relation(triplet).times.given() || has_field(relation(triplet), PairField::kTime);
}

VertexIds GraphSource::read_ids(int type) const {
  const auto& of = described(type);
  if (of.names) return {true, false, {}, of.names()};
  if (of.numbers != nullptr) return {true, true, of.numbers->ids(), {}};
  return of.ids.given() ? read_vertex_ids(of.ids, types()[type].size(), things(type)) : VertexIds();
}

const DescribedSplit* GraphSource::find_split(int type, std::size_t place) const {
  const auto& splits = described(type).splits;
  const auto found = std::ranges::find(splits, graph_.options.splits[place], &DescribedSplit::name);
  return found == splits.end() ? nullptr : &*found;
}

// Where edges are arrays it is known before they are read.
void GraphSource::check_lengths(const DescribedRelation& of) const {
  std::int64_t edges = 0;
  for (const auto& part : of.edges) {
    if (part.source || !part.file.is_array()) return;
    edges += count_edges(*open_array(part.file), !part.file.by.empty());
  }
  if (of.by.empty()) {
    for (const auto* file : {&of.weights, &of.features})
      if (file->is_array()) open_rows(*file, edges, of.things);
    return;
  }
  for (const auto* file : {&of.weights, &of.times, &of.features})
    if (const auto rows = file->is_array() ? count_rows(*file) : edges; rows != edges)
      input_error("{}: {} has {} rows, but {} has {} edges; a row is of an edge", file->by, file->name(),
                  rows, of.edges[0].file.name(), edges);
}

// So that one that a user names and is not there is found at once.
void GraphSource::check_files() const {
  for_each_file(graph_, [](const DescribedFile& file) {
    if (file.by.empty()) return;
    if (file.is_array()) {
      open_array(file, true);
      return;
    }
    try {
      LineReader lines(file.path);
    } catch (const UserError& error) {
      throw UserError(error.code(), fmt::format("{}: {}", file.by, error.what()));
    }
  });
}

// ---- edges ----

// Not of a packed file, nor where something stands beside edges, line by line.
bool GraphSource::in_parts() const {
  return std::ranges::all_of(graph_.relations, [&](const DescribedRelation& of) {
    const auto& [file, form, table, announced, source] = of.edges[0];
    if (source) return true;
    return of.edges.size() == 1 && !of.weights.given() && !of.times.given() && !table &&
           (file.is_array() ? file.member.empty() : PackedFile::plain_size(file.path) >= 0);
  });
}

void GraphSource::read_file(int triplet, const DescribedEdges& edges, const RankShare& share,
                            const std::function<void(const EdgePiece&)>& use) const {
  const auto of_heads = heads(triplet), of_tails = tails(triplet);
  if (edges.source) return edges.source->read_parts(share, use);
  if (edges.file.is_array())
    return read_edge_pairs([&] { return open_array(edges.file); }, of_heads, of_tails, share, use,
                           !edges.file.by.empty());
  if (edges.table) {
    EdgePieces pieces(false, use);
    read_edge_table(edges.file.path, of_heads, of_tails, edges.announced,
                    [&](std::int64_t head, std::int64_t tail) { pieces.add(head, tail, 1); });
    return pieces.finish();
  }
  open_edge_text({.path = edges.file.path, .form = edges.form, .sources = of_heads, .targets = of_tails})
      ->read_parts(share, use);
}

void GraphSource::read_edges(int triplet, const RankShare& share,
                             const std::function<void(const EdgePiece&)>& use) const {
  const auto& of = relation(triplet);
  EdgeColumn weights(of.weights), times(of.times);
  std::int64_t edges = 0;
  begins_[triplet].clear();
  for (const auto& part : of.edges) {
    const auto before = edges;
    begins_[triplet].push_back(before);
    read_file(triplet, part, share, [&](EdgePiece piece) {
      const auto count = piece.sources.size();
      edges += static_cast<std::int64_t>(count);
      if (of.weights.given()) piece.weights = weights.next_weights(count, piece.vanished);
      if (of.times.given()) piece.times = times.next_times(count);
      const bool enough = (!of.weights.given() || piece.weights.size() == count) &&
                          (!of.times.given() || piece.times.size() == count);
      if (enough) use(piece);  // else they are counted, and finish() says how many there are
    });
    if (edges == before && of.edges.size() > 1)
      input_error("{}: {} has no edge; leave it out", part.file.by, part.file.name());
  }
  weights.finish(edges, of.edges[0].file.name());
  times.finish(edges, of.edges[0].file.name());
}

std::string GraphSource::edge_place(int triplet, std::int64_t edge) const {
  const auto& begins = begins_[triplet];
  const auto part = std::ranges::upper_bound(begins, edge) - begins.begin() - 1;
  const auto& edges = relation(triplet).edges[part];
  edge -= begins[part];
  if (edges.source) return edges.source->place(edge);
  if (edges.file.is_array()) return edge_of_array(edges.file.name(), edge);
  if (edges.table) return fmt::format("{}:{}", edges.file.path, edge + 1);
  return open_edge_text({.path = edges.file.path, .form = edges.form})->place(edge);
}

// ---- vertices ----

Splits GraphSource::read_splits(int type, const OgbLabels& labels, std::size_t place) const {
  const auto& parts = find_split(type, place)->parts;
  const auto of = vertices(type);
  SplitCollector collected(of.count, labels, graph_.hidden);
  for (const auto split : kSplits) {
    const auto& file = parts[static_cast<std::size_t>(split)];
    if (file.is_array())
      read_split_array(*open_array(file), of, split, collected, described(type).numbers);
    else if (file.given())
      read_split_table(file.path, of, split, collected);
  }
  return collected.finish();
}

// ---- links ----

void GraphSource::find_link_relations() {
  if (!graph_.links) return;
  link_relations_ = graph_.links->graph_relations;
  if (!link_relations_.empty()) return;
  const auto& names = graph_.links->relations;
  for (const auto& name : names) {
    for (int r = 0; r < relations(); ++r)
      if (relation(r).triplet.relation == name) {
        link_relations_.push_back(r);
        break;
      }
  }
  if (!link_relations_.empty() && link_relations_.size() < names.size())
    input_error("{}: relations names some of the graph and others; give [links] all of the graph's, or none",
                graph_.links->by);
}

LinkInfo GraphSource::links() const {
  LinkInfo info;
  if (!graph_.links) return info;
  info = {true, graph_.links->directed, graph_.links->relations, link_relations_, {}};
  for (std::size_t s = 0; s < info.splits.size(); ++s) info.splits[s].links = graph_.links->splits[s] ? 1 : 0;
  return info;
}

// Links of a relation of the graph go from its type of heads to its type of tails.
VertexType GraphSource::type_of_end(LinkEnd end, std::int64_t relation) const {
  if (link_relations_.empty()) return {"", 0, types().back().end};
  const auto& triplet = graph_.relations[link_relations_[relation]].triplet;
  return types()[graph_.type_of(end == LinkEnd::kHead ? triplet.head : triplet.tail)];
}

// Throws where the file has other than a row of one number, or of several, for each link.
void GraphSource::check_rows_of_links(const DescribedFile& file, const Matrix<std::int64_t>& rows,
                                      const DescribedLinks::OfSplit& of, std::int64_t links) const {
  if (rows.rows != links)
    input_error("{}: {} has {} rows, but {} has {}; a row is of a link", file.by, file.name(), rows.rows,
                of.heads.name(), links);
  const bool single = &file == &of.heads || &file == &of.tails || &file == &of.relations;
  if (single && rows.rows > 0 && rows.columns != 1)
    input_error("{}: {} has {} columns, not a number for each link", file.by, file.name(), rows.columns);
}

// Ids of vertices within types become those of the whole graph. The column `end_of` is of: all are
// of one end, or the first of heads and the second of tails.
template <class EndOf>
void GraphSource::number_ends(const DescribedFile& file, Matrix<std::int64_t>& rows,
                              const Matrix<std::int64_t>& relations, EndOf end_of) const {
  for (std::int64_t k = 0; k < rows.rows; ++k)
    for (std::int64_t c = 0; c < rows.columns; ++c) {
      const auto type = type_of_end(end_of(c), relations.rows > 0 ? relations.data[k] : 0);
      auto& id = rows(k, c);
      if (id < 0 || id >= type.size())
        input_error("{}: {}: row {}: vertex {} is out of range: the graph has {} vertices{}, 0 to {}",
                    file.by, file.name(), k, id, type.size(),
                    type.name.empty() ? "" : " of type " + type.name, type.size() - 1);
      id += type.begin;
    }
}

GivenLinks GraphSource::read_links(Split split) const {
  const auto& of = *graph_.links->splits[static_cast<std::size_t>(split)];
  if (of.read) return {of.read(), {}, {}, {}};
  const auto count = count_rows(of.heads);
  const auto read = [&](const DescribedFile& file) {
    if (!file.given()) return Matrix<std::int64_t>();
    auto rows = read_whole_numbers(file);
    check_rows_of_links(file, rows, of, count);
    return rows;
  };
  const auto relations = read(of.relations);
  const auto most = std::max<std::int64_t>(1, std::ssize(graph_.links->relations));
  for (std::int64_t k = 0; k < relations.rows; ++k)
    if (relations.data[k] < 0 || relations.data[k] >= most)
      input_error("{}: {}: row {}: relation {} is out of range: links have {}, 0 to {}", of.relations.by,
                  of.relations.name(), k, relations.data[k], counted(most, "relation"), most - 1);
  const auto read_ends = [&](const DescribedFile& file, LinkEnd end) {
    auto rows = read(file);
    number_ends(file, rows, relations, [&](std::int64_t) { return end; });
    return rows;
  };
  GivenLinks given;
  given.links.heads = read_ends(of.heads, LinkEnd::kHead).data;
  given.links.tails = read_ends(of.tails, LinkEnd::kTail).data;
  given.links.relations.assign(relations.data.begin(), relations.data.end());
  given.negative_heads = read_ends(of.negative_heads, LinkEnd::kHead);
  given.negative_tails = read_ends(of.negative_tails, LinkEnd::kTail);
  if (!of.non_links.given()) return given;
  given.non_links = read_whole_numbers(of.non_links);
  if (given.non_links.columns != 2)
    input_error("{}: {} has {} columns, not 2: head, then tail", of.non_links.by, of.non_links.name(),
                given.non_links.columns);
  number_ends(of.non_links, given.non_links, {},
              [](std::int64_t c) { return c == 0 ? LinkEnd::kHead : LinkEnd::kTail; });
  return given;
}

// The description is read at once: its files are the inputs.
ImportPlan plan_of(const DescriptionFile& file) {
  ImportPlan plan{.describe = [path = file.path] { return read_graph_toml(path); }, .shared = true};
  plan.inputs = {file.path};
  for_each_file(plan.describe(), [&](const DescribedFile& of) { plan.inputs.push_back(of.path); });
  return plan;
}

}  // namespace espalier

// Opening and reading the links of a graph file.
#include <algorithm>
#include <unordered_map>

#include "checked_read.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/graph/degrees.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMostNameBytes = 64 << 20;  // every rank holds the names of relations
constexpr std::int64_t kManyNegatives = 1 << 16;   // of a link, however small the graph is
constexpr std::int64_t kMostEntries = std::int64_t{1} << 62;

// ---- shapes and types ----

void check_list(const OpenGraphFile& h, const hdf5::Dataset& list, std::int64_t rows, const char* things) {
  if (!list.exists()) fail(h, "there is no dataset {}, but the others of its split", list.name);
  if (list.shape.size() != 1 || !list.is_integer())
    fail(h, "{} is no list of integers ({} dimensions)", list.name, list.shape.size());
  if (list.rows() != rows) fail(h, "{} has {} entries for {} {}", list.name, list.rows(), rows, things);
}

// How many of each link; 0 where there are none.
std::int64_t describe_negatives(const OpenGraphFile& h, const hdf5::Dataset& negatives, std::size_t split,
                                std::int64_t links) {
  if (!negatives.exists()) return 0;
  if (split == 0)
    fail(h, "there is a dataset {}, but links to train on have no given negatives", negatives.name);
  if (negatives.shape.size() != 2 || !negatives.is_integer())
    fail(h, "{} is no table of integers, a row for each link ({} dimensions)", negatives.name,
         negatives.shape.size());
  if (negatives.rows() != links || negatives.columns() == 0)
    fail(h, "{} has {} rows of {}, but its split has {} links; leave it out where there are no negatives",
         negatives.name, negatives.rows(), negatives.columns(), links);
  if (negatives.columns() > std::max(h.info.nodes, kManyNegatives) ||
      links > kMostEntries / negatives.columns())
    fail(h, "{} has {} rows of {}, which a graph of {} vertices has no use for", negatives.name,
         negatives.rows(), negatives.columns(), h.info.nodes);
  return negatives.columns();
}

std::int64_t describe_non_links(const OpenGraphFile& h, const hdf5::Dataset& pairs, std::size_t split) {
  if (!pairs.exists()) return 0;
  if (split == 0) fail(h, "there is a dataset {}, but links to train on have no given negatives", pairs.name);
  if (pairs.shape.size() != 2 || !pairs.is_integer() || pairs.columns() != 2)
    fail(h, "{} is no table of integers in two columns, head and tail ({} dimensions)", pairs.name,
         pairs.shape.size());
  if (const auto& names = h.links.names; names.exists() && names.rows() > 1)
    fail(h, "there is a dataset {}, but links have {} relations, and its pairs are of one", pairs.name,
         names.rows());
  const auto& of = h.info.links.splits[split];
  if (of.negative_heads + of.negative_tails > 0)
    fail(h, "there is a dataset {} beside negatives of each link; leave one of them out", pairs.name);
  return pairs.rows();
}

void describe_split(OpenGraphFile& h, std::size_t s) {
  const auto in = std::string("/links/") + kSplitNames[s] + "/";
  auto& open = h.links.splits[s];
  open = {
      hdf5::open_dataset(h.file, in + "head"),           hdf5::open_dataset(h.file, in + "tail"),
      hdf5::open_dataset(h.file, in + "relation"),       hdf5::open_dataset(h.file, in + "negative_heads"),
      hdf5::open_dataset(h.file, in + "negative_tails"), hdf5::open_dataset(h.file, in + "non_links")};
  if (std::ranges::none_of(open.all(), &hdf5::Dataset::exists)) return;
  auto& info = h.info.links.splits[s];
  info.links = open.head.rows();
  check_list(h, open.head, info.links, "links");
  check_list(h, open.tail, info.links, "heads");
  if (open.relation.exists()) check_list(h, open.relation, info.links, "heads");
  info.negative_heads = describe_negatives(h, open.negative_heads, s, info.links);
  info.negative_tails = describe_negatives(h, open.negative_tails, s, info.links);
  info.non_links = describe_non_links(h, open.non_links, s);
}

void describe_link_relations(OpenGraphFile& h) {
  auto& [names, graph_relations, splits] = h.links;
  names = hdf5::open_dataset(h.file, "/links/relations");
  graph_relations = hdf5::open_dataset(h.file, "/links/graph_relations");
  if (names.exists() && (names.shape.size() != 1 || names.rows() < 1 || names.rows() > kMostLinkRelations))
    fail(h, "{} has {} names in {} dimensions, expected a list of 1 to {}", names.name, names.rows(),
         names.shape.size(), kMostLinkRelations);
  if (names.exists() && names.type_size > kMostNameLetters)
    fail(h, "the names in {} have {} letters, expected {} at most", names.name, names.type_size,
         kMostNameLetters);
  if (names.exists() && names.rows() * static_cast<std::int64_t>(names.type_size) > kMostNameBytes)
    fail(h, "{} has {} names of {} letters, together more than 64 MiB", names.name, names.rows(),
         names.type_size);
  if (!graph_relations.exists()) return;
  check_list(h, graph_relations, names.exists() ? names.rows() : 1, "relations of links");
  if (!h.info.typed) fail(h, "there is a dataset {}, but the graph has no relations", graph_relations.name);
}

// What is called otherwise would be overlooked.
void check_names(const OpenGraphFile& h) {
  const auto opened = h.datasets();
  for (const auto& name : hdf5::dataset_names(h.file))
    if (name.starts_with("links/") &&
        std::ranges::none_of(opened, [&](const auto* of) { return of->name == "/" + name; }))
      fail(
          h,
          "there is a dataset /{}, but links have /links/relations, graph_relations and, in train, valid and "
          "test, head, tail, relation, negative_tails, negative_heads and non_links",
          name);
}

}  // namespace

void describe_links(OpenGraphFile& h) {
  if (!hdf5::has_link(h.file, "links")) return;
  auto& info = h.info.links;
  const auto group = hdf5::open_group(h.file, "/links");
  if (!group.valid()) fail(h, "/links is no group");
  std::int64_t version = 0, directed = 0;
  const auto found = [&](const char* name, std::int64_t number) {
    return number != 0 ? std::to_string(number) : hdf5::describe_attribute(group, name);
  };
  if (!hdf5::read_integer_attribute(group, "version", version) || version != kVersion)
    fail(h, "the attribute version of /links is {}, but this program reads version {}",
         found("version", version), kVersion);
  if (!hdf5::read_integer_attribute(group, "directed", directed) || directed < 0 || directed > 1)
    fail(h, "the attribute directed of /links is {}, not 0 or 1", found("directed", directed));
  info.exist = true;
  info.directed = directed != 0;
  describe_link_relations(h);
  for (std::size_t s = 0; s < kSplitNames.size(); ++s) describe_split(h, s);
  check_names(h);
  if (std::ranges::all_of(info.splits, [](const SplitLinks& of) { return of.links == 0; }))
    fail(h, "there is a group /links, but no link in it");
}

void read_link_relations(OpenGraphFile& h) {
  auto& info = h.info.links;
  if (h.links.names.exists()) info.names = read_names(h, h.links.names);
  agree(h.comm, [&] {
    std::unordered_map<std::string_view, std::size_t> places;
    for (std::size_t r = 0; r < info.names.size(); ++r)
      if (const auto [found, is_new] = places.emplace(info.names[r], r); !is_new)
        fail(h,
             "/links/relations: entries {} and {} are both '{}', so a link cannot be asked for by name; "
             "name each relation otherwise",
             found->second, r, info.names[r]);
  });
  if (!h.links.graph_relations.exists()) return;
  const auto places = read_list(h, h.links.graph_relations);
  const auto relations = std::ssize(h.info.schema.relations());
  agree(h.comm, [&] {
    for (std::size_t r = 0; r < places.size(); ++r)
      if (places[r] < 0 || places[r] >= relations)
        fail(h, "/links/graph_relations: entry {} is {}, but the graph has relations 0 to {}", r, places[r],
             relations - 1);
  });
  for (const auto place : places) info.graph_relations.push_back(static_cast<int>(place));
}

// ---- reading ----

namespace {

// Collective. Ids of vertices, rows [slab.begin, slab.end).
Buffer<std::int64_t> read_vertices(OpenGraphFile& h, const hdf5::Dataset& dataset, const hdf5::Slab& slab) {
  const auto check = [&](std::span<const std::int64_t> ids, std::int64_t first) {
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (ids[k] >= 0 && ids[k] < h.info.nodes) continue;
      const auto place = first + static_cast<std::int64_t>(k);
      fail(h, "{}: {} {} names vertex {}, but the graph has vertices 0 to {}", dataset.name,
           slab.columns > 1 ? "row" : "entry", slab.begin + place / slab.columns, ids[k], h.info.nodes - 1);
    }
  };
  return read_checked<std::int64_t>(h, dataset, slab, InPieces{check});
}

// Relations of links, from `begin` on.
void check_relations(const OpenGraphFile& h, const hdf5::Dataset& dataset, std::int64_t begin,
                     std::span<const std::int32_t> relations) {
  const auto count = h.info.links.relations();
  for (std::size_t k = 0; k < relations.size(); ++k)
    if (relations[k] < 0 || relations[k] >= count)
      fail(h, "{}: entry {} is {}, but links have relations 0 to {}", dataset.name,
           begin + static_cast<std::int64_t>(k), relations[k], count - 1);
}

// Rows of vertices that stand for this end of links, from `begin` on, of these relations (none: all
// of the first): are they of the type that the relation joins there? Nothing is known of relations
// that the graph has not.
void check_types(const OpenGraphFile& h, const hdf5::Dataset& dataset, LinkEnd end, std::int64_t begin,
                 std::span<const std::int64_t> vertices, std::int64_t columns,
                 std::span<const std::int32_t> relations) {
  const auto& schema = h.info.schema;
  const auto& places = h.info.links.graph_relations;
  if (places.empty()) return;
  for (std::int64_t k = 0; k < std::ssize(vertices); ++k) {
    const int relation = places[relations.empty() ? 0 : relations[k / columns]];
    const auto& joins = schema.relations()[relation];
    const auto& of = schema.types()[end == LinkEnd::kHead ? joins.source : joins.target];
    if (vertices[k] < of.begin || vertices[k] >= of.end)
      fail(h, "{}: {} {} names vertex {}, but its relation {} wants one of type {}, {} to {}", dataset.name,
           dataset.shape.size() > 1 ? "row" : "entry", begin + k / columns, vertices[k],
           schema.full_name(relation), of.name, of.begin, of.end - 1);
  }
}

}  // namespace

Links GraphFile::read_links(Split split, std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  const auto s = static_cast<std::size_t>(split);
  const auto& open = h.links.splits[s];
  const auto& info = h.info.links;
  ESPALIER_CHECK(0 <= begin && begin <= end && end <= info.splits[s].links, "links [{}, {}) of {}", begin,
                 end, info.splits[s].links);
  if (!open.head.exists()) return {};
  const hdf5::Slab slab{begin, end, 1};
  Links links{read_vertices(h, open.head, slab), read_vertices(h, open.tail, slab)};
  if (open.relation.exists())
    links.relations = read_checked<std::int32_t>(
        h, open.relation, slab, InPieces{[&](std::span<const std::int32_t> relations, std::int64_t first) {
          check_relations(h, open.relation, begin + first, relations);
        }});
  agree(h.comm, [&] {
    check_types(h, open.head, LinkEnd::kHead, begin, links.heads, 1, links.relations);
    check_types(h, open.tail, LinkEnd::kTail, begin, links.tails, 1, links.relations);
  });
  return links;
}

Matrix<std::int64_t> GraphFile::read_negatives(Split split, LinkEnd of, std::int64_t begin,
                                               std::int64_t end) const {
  auto& h = *open_;
  const auto s = static_cast<std::size_t>(split);
  const auto& open = h.links.splits[s];
  const auto& dataset = of == LinkEnd::kHead ? open.negative_heads : open.negative_tails;
  ESPALIER_CHECK(dataset.exists() && 0 <= begin && begin <= end && end <= dataset.rows(),
                 "negatives [{}, {}) of {} links", begin, end, h.info.links.splits[s].links);
  Matrix<std::int64_t> rows(end - begin, dataset.columns());
  rows.data = read_vertices(h, dataset, {begin, end, rows.columns});
  // Whose digest is counted where the links are read.
  Buffer<std::int32_t> relations(open.relation.exists() ? end - begin : 0);
  const bool good = relations.empty() || hdf5::read_slab(open.relation, hdf5::memory_type<std::int32_t>(),
                                                         {begin, end, 1}, relations.data());
  agree(h.comm, [&] {
    if (!good) fail(h, "cannot read {}: {}", open.relation.name, hdf5::reason());
    check_relations(h, open.relation, begin, relations);
    check_types(h, dataset, of, begin, rows.data, rows.columns, relations);
  });
  return rows;
}

Matrix<std::int64_t> GraphFile::read_non_links(Split split, std::int64_t begin, std::int64_t end) const {
  auto& h = *open_;
  const auto& dataset = h.links.splits[static_cast<std::size_t>(split)].non_links;
  ESPALIER_CHECK(dataset.exists() && 0 <= begin && begin <= end && end <= dataset.rows(),
                 "pairs [{}, {}) that are no links", begin, end);
  Matrix<std::int64_t> pairs(end - begin, 2);
  pairs.data = read_vertices(h, dataset, {begin, end, 2});
  agree(h.comm, [&] {
    for (const auto end_of : {LinkEnd::kHead, LinkEnd::kTail}) {
      std::vector<std::int64_t> ends;
      for (std::int64_t k = 0; k < pairs.rows; ++k)
        ends.push_back(pairs.row(k)[end_of == LinkEnd::kHead ? 0 : 1]);
      check_types(h, dataset, end_of, begin, ends, 1, {});
    }
  });
  return pairs;
}

LinkCounts check_links(const Communicator& comm, const GraphFile& file) {
  LinkCounts counts;
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
    const auto s = static_cast<std::size_t>(split);
    const auto& of = file.info().links.splits[s];
    counts.of_relation[s].assign(static_cast<std::size_t>(file.info().links.relations()), 0);
    const auto count = [&](std::int64_t begin, std::int64_t end) {
      const auto links = file.read_links(split, begin, end);
      for (std::int64_t k = 0; k < end - begin; ++k) {
        counts.to_self[s] += links.heads[k] == links.tails[k];
        ++counts.of_relation[s][links.relations.empty() ? 0 : links.relations[k]];
      }
    };
    in_row_parts(comm, of.links, count, 3);
    comm.all_reduce(std::span<std::int64_t>(counts.of_relation[s]), Reduction::kSum, "links");
    const auto read = [&](LinkEnd end_of, std::int64_t columns) {
      if (columns > 0)
        in_row_parts(
            comm, of.links, [&](auto begin, auto end) { file.read_negatives(split, end_of, begin, end); },
            columns);
    };
    read(LinkEnd::kHead, of.negative_heads);
    read(LinkEnd::kTail, of.negative_tails);
    if (of.non_links > 0)
      in_row_parts(
          comm, of.non_links, [&](auto begin, auto end) { file.read_non_links(split, begin, end); }, 2);
  }
  comm.all_reduce(std::span<std::int64_t>(counts.to_self), Reduction::kSum, "links");
  return counts;
}

std::vector<std::string> odd_links(const LinkInfo& info, const LinkCounts& counts) {
  constexpr std::int64_t kNamed = 5;
  std::vector<std::string> sentences;
  for (std::size_t s = 0; s < counts.to_self.size(); ++s)
    if (counts.to_self[s] > 0)
      sentences.push_back(fmt::format("{} of {} links of {} lead from a vertex to itself", counts.to_self[s],
                                      info.splits[s].links, kSplitNames[s]));
  std::int64_t unlearnt = 0;
  std::string names;
  for (std::int64_t r = 0; r < info.relations(); ++r) {
    const auto judged = counts.of_relation[1][r] + counts.of_relation[2][r];
    if (counts.of_relation[0][r] > 0 || judged == 0 || ++unlearnt > kNamed) continue;
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", info.names.empty() ? "links" : info.names[r],
                         judged);
  }
  if (unlearnt > 0)
    sentences.push_back(fmt::format(
        "{} no links to train on, so nothing is learnt of what is judged by: {}{}",
        counted(unlearnt, "relation has", "relations have"), names, unlearnt > kNamed ? ", ..." : ""));
  return sentences;
}

}  // namespace espalier

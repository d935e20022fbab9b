// Opening and reading the links of a graph file.
#include <algorithm>
#include <unordered_map>

#include "espalier/base/row_range.hpp"
#include "espalier/base/text.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMostNameBytes = 64 << 20;  // every rank holds the names of relations
constexpr std::int64_t kManyNegatives = 1 << 16;   // of a link, however small the graph is
constexpr std::int64_t kMostEntries = std::int64_t{1} << 62;

// ---- shapes ----

// How many of each link; 0 where there are none.
std::int64_t describe_negatives(const OpenGraphFile& h, const hdf5::Dataset& negatives, std::size_t split) {
  if (!negatives.exists()) return 0;
  if (split == 0)
    fail(h, "there is a dataset {}, but links to train on have no given negatives", negatives.name);
  if (negatives.columns() == 0)
    fail(h, "{} has no columns; leave it out where there are no negatives", negatives.name);
  if (negatives.columns() > std::max(h.info.nodes, kManyNegatives) ||
      negatives.rows() > kMostEntries / negatives.columns())
    fail(h, "{} has {} rows of {}, which a graph of {} vertices has no use for", negatives.name,
         negatives.rows(), negatives.columns(), h.info.nodes);
  return negatives.columns();
}

std::int64_t describe_non_links(const OpenGraphFile& h, const hdf5::Dataset& pairs, std::size_t split) {
  if (!pairs.exists()) return 0;
  if (split == 0) fail(h, "there is a dataset {}, but links to train on have no given negatives", pairs.name);
  if (pairs.columns() != 2) fail(h, "{} has {} columns, not two: head and tail", pairs.name, pairs.columns());
  if (const auto& names = h.at(Column::kLinkNames); names.exists() && names.rows() > 1)
    fail(h, "there is a dataset {}, but links have {} relations, and its pairs are of one", pairs.name,
         names.rows());
  const auto& of = h.info.links.splits[split];
  if (of.negative_heads + of.negative_tails > 0)
    fail(h, "there is a dataset {} beside negatives of each link; leave one of them out", pairs.name);
  return pairs.rows();
}

void describe_split(OpenGraphFile& h, std::size_t s) {
  const int owner = static_cast<int>(s);
  const auto &head = h.at(Column::kHead, owner), &tail = h.at(Column::kTail, owner);
  if (head.exists() != tail.exists() || (!head.exists() && h.has(Column::kNonLinks, owner)))
    fail(h, "there is no dataset {}, but others of its split", (head.exists() ? tail : head).name);
  auto& info = h.info.links.splits[s];
  info.links = head.rows();
  info.negative_heads = describe_negatives(h, h.at(Column::kNegativeHeads, owner), s);
  info.negative_tails = describe_negatives(h, h.at(Column::kNegativeTails, owner), s);
  info.non_links = describe_non_links(h, h.at(Column::kNonLinks, owner), s);
}

void describe_link_relations(const OpenGraphFile& h) {
  const auto &names = h.at(Column::kLinkNames), &graph_relations = h.at(Column::kGraphRelations);
  if (names.exists() && (names.rows() < 1 || names.rows() > kMostLinkRelations))
    fail(h, "{} has {} names, expected 1 to {}", names.name, names.rows(), kMostLinkRelations);
  if (names.exists() && names.rows() * static_cast<std::int64_t>(names.type_size) > kMostNameBytes)
    fail(h, "{} has {} names of {} letters, together more than 64 MiB", names.name, names.rows(),
         names.type_size);
  if (!graph_relations.exists()) return;
  const auto relations = names.exists() ? names.rows() : 1;
  if (graph_relations.rows() != relations)
    fail(h, "{} has {} entries for {} relations of links", graph_relations.name, graph_relations.rows(),
         relations);
  if (!h.info.typed) fail(h, "there is a dataset {}, but the graph has no relations", graph_relations.name);
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
}

void describe_link_columns(OpenGraphFile& h) {
  const auto& info = h.info.links;
  if (!info.exist) return;
  describe_link_relations(h);
  for (std::size_t s = 0; s < kSplitNames.size(); ++s) describe_split(h, s);
  if (std::ranges::all_of(info.splits, [](const SplitLinks& of) { return of.links == 0; }))
    fail(h, "there is a group /links, but no link in it");
}

void read_link_relations(OpenGraphFile& h) {
  auto& info = h.info.links;
  if (h.has(Column::kLinkNames)) info.names = read_names(h, h.at(Column::kLinkNames));
  agree(h.comm, [&] {
    std::unordered_map<std::string_view, std::size_t> places;
    for (std::size_t r = 0; r < info.names.size(); ++r)
      if (const auto [found, is_new] = places.emplace(info.names[r], r); !is_new)
        fail(h,
             "/links/relations: entries {} and {} are both '{}', so a link cannot be asked for by name; "
             "name each relation otherwise",
             found->second, r, info.names[r]);
  });
  if (!h.has(Column::kGraphRelations)) return;
  const auto places = read_list(h, h.at(Column::kGraphRelations));
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

void check_link_relation(const OpenGraphFile& h, const hdf5::Dataset& relations, std::int64_t place,
                         std::int64_t relation) {
  const auto count = h.info.links.relations();
  if (relation < 0 || relation >= count)
    fail(h, "{}: entry {} is {}, but links have relations 0 to {}", relations.name, place, relation,
         count - 1);
}

namespace {

// Do rows of vertices, from `begin` on, that stand for this end of links of these relations (none:
// all of the first) have the type that the relation joins there? Nothing is known of relations that
// the graph has not.
void check_types(const OpenGraphFile& h, const hdf5::Dataset& dataset, LinkEnd end, std::int64_t begin,
                 std::span<const std::int64_t> vertices, std::int64_t columns,
                 std::span<const std::int32_t> relations) {
  const auto& schema = h.info.schema;
  const auto& places = h.info.links.graph_relations;
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

void check_link_types(OpenGraphFile& h, const ColumnAt& at, std::int64_t begin,
                      const Matrix<std::int64_t>& vertices) {
  if (h.info.links.graph_relations.empty()) return;
  const auto& dataset = h.columns.at(at);
  const auto& of = h.at(Column::kLinkRelation, at.owner);
  const bool pairs = at.column == Column::kNonLinks;
  // Whose digest is counted where it is read.
  Buffer<std::int32_t> relations(of.exists() && !pairs ? vertices.rows : 0);
  const bool good = relations.empty() || hdf5::read_slab(of, hdf5::memory_type<std::int32_t>(),
                                                         {begin, begin + vertices.rows, 1}, relations.data());
  agree(h.comm, [&] {
    if (!good) fail(h, "cannot read {}: {}", of.name, hdf5::reason());
    for (std::int64_t k = 0; k < std::ssize(relations); ++k)
      check_link_relation(h, of, begin + k, relations[k]);
    const bool tails = at.column == Column::kTail || at.column == Column::kNegativeTails;
    const auto end = tails ? LinkEnd::kTail : LinkEnd::kHead;
    if (!pairs) return check_types(h, dataset, end, begin, vertices.data, vertices.columns, relations);
    for (const auto end_of : {LinkEnd::kHead, LinkEnd::kTail}) {
      Buffer<std::int64_t> ends;
      for (std::int64_t k = 0; k < vertices.rows; ++k)
        ends.push_back(vertices.row(k)[end_of == LinkEnd::kHead ? 0 : 1]);
      check_types(h, dataset, end_of, begin, ends, 1, {});
    }
  });
}

Links GraphFile::read_links(Split split, std::int64_t begin, std::int64_t end) const {
  const auto s = static_cast<int>(split);
  if (!open_->has(Column::kHead, s)) return {};
  Links links{read<std::int64_t>(Column::kHead, s, begin, end).data,
              read<std::int64_t>(Column::kTail, s, begin, end).data};
  if (open_->has(Column::kLinkRelation, s))
    links.relations = read<std::int32_t>(Column::kLinkRelation, s, begin, end).data;
  return links;
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
    const auto read = [&](Column column, std::int64_t rows, std::int64_t columns) {
      if (columns > 0)
        in_row_parts(
            comm, rows,
            [&](auto begin, auto end) {
              file.read<std::int64_t>(column, static_cast<int>(split), begin, end);
            },
            columns);
    };
    read(Column::kNegativeHeads, of.links, of.negative_heads);
    read(Column::kNegativeTails, of.links, of.negative_tails);
    read(Column::kNonLinks, of.non_links, of.non_links > 0 ? 2 : 0);
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

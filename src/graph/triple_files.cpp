#include "triple_files.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "espalier/base/counted.hpp"
#include "espalier/graph/csv.hpp"
#include "espalier/graph/link_file.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace {

// Names in the order in which they were met, then in ascending order.
class Names {
 public:
  std::int64_t number_of(std::string_view name) {
    if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
    const auto number = std::ssize(names_);
    numbers_.emplace(names_.emplace_back(name), number);
    return number;
  }

  /// Ends the counting: the new number of each old one.
  std::vector<std::int32_t> sort(std::vector<std::string>& sorted) {
    numbers_ = {};  // whose memory goes, too
    std::vector<std::int32_t> order(names_.size()), places(names_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::int32_t k) -> const std::string& { return names_[k]; });
    sorted.reserve(names_.size());
    for (std::size_t place = 0; place < order.size(); ++place) {
      places[order[place]] = static_cast<std::int32_t>(place);
      sorted.push_back(std::move(names_[order[place]]));
    }
    return places;
  }

 private:
  std::deque<std::string> names_;  // which stay where they are
  std::unordered_map<std::string_view, std::int64_t> numbers_;
};

std::string_view read_name(CsvReader& csv, const char* what) {
  const auto name = csv.text();
  if (name.empty()) csv.fail("the {} has no name", what);
  if (name.size() > kMostNameLetters)
    csv.fail("the name of the {} has {} letters, expected {} at most", what, name.size(), kMostNameLetters);
  if (name.find('\0') != std::string_view::npos)
    csv.fail("the name of the {} has a zero byte in it: the file is damaged, or no text", what);
  return name;
}

// Is it a line of titles?
bool is_header(std::string_view head, std::string_view relation, std::string_view tail) {
  const auto is = [](std::string_view name, std::string_view title) {
    return std::ranges::equal(
        name, title, [](char a, char b) { return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b); });
  };
  return (is(head, "head") && is(relation, "relation") && is(tail, "tail")) ||
         (is(head, "subject") && is(relation, "predicate") && is(tail, "object"));
}

// Returns how many the file has.
std::int64_t read_file(const std::string& path, Names& entities, Names& relations, Buffer<Triple>& triples) {
  if (path.empty()) return 0;
  CsvReader csv(path);
  while (csv.next_line()) {
    if (csv.line() == 1 && csv.contains('\t')) csv.separate_by('\t');
    if (csv.count_fields() != 3)
      csv.fail("has {}, expected three: head, relation, tail, apart by tabs or by commas as in line 1",
               counted(csv.count_fields(), "field"));
    const auto head_name = read_name(csv, "head"), relation_name = read_name(csv, "relation"),
               tail_name = read_name(csv, "tail");
    if (csv.line() == 1 && is_header(head_name, relation_name, tail_name))
      csv.fail("is a header, not a triple; leave it out: the first line is read as all others are");
    const auto head = entities.number_of(head_name), relation = relations.number_of(relation_name);
    if (relation >= kMostLinkRelations)
      csv.fail("is of relation number {}, but a file has at most {}; is the second field the relation?",
               relation + 1, kMostLinkRelations);
    const auto tail = entities.number_of(tail_name);
    if (std::max(head, tail) >= std::numeric_limits<std::int32_t>::max())
      csv.fail("is of entity number {}, but there may be 2^31 - 1 at most", std::max(head, tail) + 1);
    triples.push_back({static_cast<std::int32_t>(tail), static_cast<std::int32_t>(relation),
                       static_cast<std::int32_t>(head)});
  }
  return std::ssize(triples);
}

}  // namespace

TripleTables read_triples(const std::array<std::string, 3>& files) {
  TripleTables tables;
  Names entities, relations;
  for (std::size_t s = 0; s < files.size(); ++s)
    tables.given[s] = read_file(files[s], entities, relations, tables.splits[s]);
  const auto entity = entities.sort(tables.entities), relation = relations.sort(tables.relations);
  for (auto& triples : tables.splits) {
    for (auto& of : triples) of = {entity[of.tail], relation[of.relation], entity[of.head]};
    std::ranges::sort(triples);
    const auto repeated = std::ranges::unique(triples);
    triples.erase(repeated.begin(), repeated.end());
  }
  return tables;
}

}  // namespace espalier

#include "first_rank.hpp"

#include <sstream>
#include <string>

#include "espalier/file/csv.hpp"

namespace espalier {

namespace {

std::string as_text(const Schema& schema) {
  std::ostringstream text;
  text << schema.types().size() << ' ' << schema.relations().size();
  for (const auto& type : schema.types()) text << ' ' << type.name << ' ' << type.size();
  for (const auto& of : schema.relations())
    text << ' ' << of.name << ' ' << of.source << ' ' << of.target << ' ' << of.inverse;
  return text.str();
}

Schema from_text(const std::string& text) {
  std::istringstream in(text);
  std::size_t types = 0, relations = 0;
  in >> types >> relations;
  std::vector<VertexType> list(types);
  for (std::int64_t begin = 0; auto& type : list) {
    in >> type.name >> type.end;
    type.begin = begin;
    begin = type.end += begin;
  }
  std::vector<Relation> of(relations);
  for (auto& one : of) in >> one.name >> one.source >> one.target >> one.inverse;
  return {std::move(list), std::move(of)};
}

}  // namespace

std::vector<std::string> broadcast_texts(const Communicator& comm, const std::vector<std::string>& texts) {
  std::string lines;
  for (const auto& text : texts) lines += text + "\n";
  auto found = split_text(comm.broadcast_text(lines, 0, "import"), '\n');
  found.pop_back();
  return found;
}

Schema broadcast_schema(const Communicator& comm, const std::optional<Schema>& schema) {
  return from_text(comm.broadcast_text(comm.rank() == 0 ? as_text(*schema) : std::string(), 0, "import"));
}

}  // namespace espalier

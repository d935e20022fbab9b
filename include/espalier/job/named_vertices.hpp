// How people name vertices in lists (`espalier infer --nodes`, --links): by the graph's ids, where
// it has some, or by numbers, counted within a type; and what answers call them.
//
// Texts are ids without more words: a number means a number only where there are none. Where ids
// are numbers too, nobody can tell which is meant, so --named-by has to say it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

inline constexpr const char* kInferLabel = "infer";  ///< of its traffic

/// Do lists name vertices of such a type by ids? `named_by`: "ids", "numbers" or empty, as
/// --named-by says. Throws UserError(kUsage) where that has to be said; `list`: "--nodes FILE",
/// `of`: "the graph" or a type, for the message.
bool named_by_ids(const VertexInfo& info, const std::string& named_by, const std::string& list,
                  const std::string& of);

/// Which vertices have some ids.
class NamedVertices {
 public:
  /// Collective. Looks for `ids` of rank 0, without line breaks, among those of these types, which
  /// have some.
  NamedVertices(const Communicator& world, const GraphFile& file, const std::vector<int>& types,
                const std::set<std::string>& ids);

  /// The vertex of the type, as one of the whole graph, or none. Throws UserError(kInput) where
  /// several have the id; `path`, `line`: where it stands, `of`: the type, for the message.
  std::optional<std::int64_t> find(int type, const std::string& id, const std::string& path,
                                   std::int64_t line, const std::string& of) const;

 private:
  std::map<std::string, std::int64_t> places_;
  std::vector<std::int64_t> vertex_, count_;  // [types, ids]
};

/// Collective. What these vertices of the whole graph are called, on every rank: ids in these
/// types, numbers within the type in others.
std::map<std::int64_t, std::string> names_of(const Communicator& world, const GraphFile& file,
                                             const std::vector<int>& types,
                                             const std::set<std::int64_t>& vertices);

/// Collective. The ids in a text file, one on a line, ascending, each once, on every rank; empty
/// lines say nothing. Rank 0 reads it. Throws UserError(kInput), on every rank, naming the line,
/// where there is something else than one of so many vertices `of` "the graph" or a part, and for a
/// file without any.
Buffer<std::int64_t> read_vertex_list(const Communicator& world, const std::string& path,
                                      std::int64_t vertices, const std::string& of);

/// Collective. The same of a list of the user's own ids, of a type that has some: a line is an id,
/// blanks included. Throws for an id that no vertex has, and for one of several.
Buffer<std::int64_t> read_id_list(const Communicator& world, const std::string& path, const GraphFile& file,
                                  int type, const std::string& of);

}  // namespace espalier

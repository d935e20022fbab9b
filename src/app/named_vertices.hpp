// How people name vertices in lists (`espalier infer --nodes`, --links): by the graph's ids, where
// it has some, or by numbers, counted within a type; and what answers call them.
//
// Texts are ids without more words: a number means a number only where there are none. Where ids
// are numbers too, nobody can tell which is meant, so --named-by has to say it.
#pragma once

#include <map>
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

  struct Found {
    std::int64_t vertex = -1;  ///< of the whole graph; -1: none
    std::int64_t vertices = 0;
  };
  /// The one of the type, the last where there are several.
  Found find(int type, const std::string& id) const;

 private:
  std::map<std::string, std::int64_t> places_;
  std::vector<std::int64_t> vertex_, count_;  // [types, ids]
};

/// Collective. What these vertices of the whole graph are called, on every rank: ids in these
/// types, numbers within the type in others.
std::map<std::int64_t, std::string> names_of(const Communicator& world, const GraphFile& file,
                                             const std::vector<int>& types,
                                             const std::set<std::int64_t>& vertices);

}  // namespace espalier

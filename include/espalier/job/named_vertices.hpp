// How people name vertices in lists (`espalier infer --nodes`, --links): by the graph's ids, where
// it has some, or by numbers, counted within a type; the lists of links that they ask about; the
// tables of answers.
//
// Texts are ids without more words: a number means a number only where there are none. Where ids
// are numbers too, nobody can tell which is meant, so --named-by has to say it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/infer/row_file.hpp"
#include "espalier/job/job.hpp"
#include "espalier/train/links.hpp"

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

// Links that a person or a script asks about (`espalier infer --links`): a text file, a link on a
// line, by names or numbers; and the answers as CSV.

/// Collective. Lines of head, relation and tail, apart by tabs or commas; where links have one
/// relation it may be left out. `open`: lines without tails, which are asked for (0 here). The
/// links in their order, on every rank. Vertices are named as named_vertices.hpp says, relations by
/// name or number. Rank 0 reads the file. Throws UserError(kInput, kUsage), on every rank, naming
/// the line.
std::vector<LinkTriple> read_link_queries(const Job& job, const std::string& path, bool open,
                                          const std::string& named_by);

/// Collective; rank 0 writes. "head,relation,tail,score,known" and a line for each, vertices named
/// as in queries; `known`: 1 of a link that the file has.
void write_link_answers(const Job& job, const std::string& path, std::span<const LinkTriple> links,
                        std::span<const float> scores, std::span<const std::uint8_t> known,
                        const std::string& named_by);

// Whose rows `espalier infer` writes: those of all vertices; on a graph with types those of the
// target, or of each type that --types names, in a group of its own.

/// Which rows, as `espalier infer` takes the options of these names.
struct RowsAskedFor {
  std::optional<std::string> types = {};  ///< "paper,author" or "all"; none: the target's
  std::string nodes = {};                 ///< a list of vertices; empty: all
  std::string named_by = {};              ///< "ids", "numbers" or empty: how the list names them
  bool predictions = false;               ///< their classes, too
  std::string csv = {};                   ///< the same as CSV
};

/// Collective. In the order of the file's types. `layer`: whose rows. Throws UserError(kUsage,
/// kInput) where --types, --nodes and --predictions do not fit the graph or each other.
std::vector<RowTable> row_tables(const RowsAskedFor& asked, const Job& job, std::int64_t layer);

/// The types that they are of, "paper,author": none of a graph without types.
std::string types_of(const std::vector<RowTable>& tables, const GraphInfo& graph);

/// A warning to the listener of the job, of rows that no loss has read.
void warn_of_untrained(const RowFileShape& shape, const Job& job);

}  // namespace espalier

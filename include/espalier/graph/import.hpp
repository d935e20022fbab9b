// Imports: graphs that others' files hold become graph files.
//
// ---- a folder in the raw csv layout of the Open Graph Benchmark's node-property sets (Hu et al.
// 2020, snap-stanford/ogb) ----
//
//   FOLDER/raw/num-node-list.csv.gz   the number of vertices
//   FOLDER/raw/edge.csv.gz            "u,v" per line, 0-based: an edge from u (source)
//                                     to v (target)
//   FOLDER/raw/num-edge-list.csv.gz   lines of edge.csv.gz                          optional
//   FOLDER/raw/edge-feat.csv.gz       one line per edge; a column may be its weight,
//                                     the others are its features                    optional
//   FOLDER/raw/node-feat.csv.gz       one line per vertex                           optional
//   FOLDER/raw/node-label.csv.gz      one line per vertex; nan = none, unknown      optional
//   FOLDER/split/NAME/{train,valid,test}.csv.gz   one vertex per line; or .npy      optional
//   FOLDER/meta.json                  "name", "source", "directed" or "is_directed",
//                                     "add_inverse_edge"                            optional
//
// Each file may also be plain .csv. Where FOLDER/raw/data.npz is there, the folder is in the binary
// layout (ogb_layouts.cpp): the same as arrays. Edges are read twice, whatever the layout,
// and never in memory; nor are features. One label column becomes int32 classes, several become 0/1
// multi-labels; nan (an unknown task, as in ogbg sets) is kUnknownLabel there.
//
// Lines of edge.csv that meet in one entry of the matrix are merged as options say (edge_list.hpp
// defines which meet); how many and how is printed. The entry's features are those of one line, or
// of all. Warned of: a weighted graph with edges listed in both directions whose weights
// --symmetrize adds up, and a graph of which meta.json says that its edges have no direction while
// the file lists them in one only.
//
// A folder with types (ogb_layouts.cpp) becomes a graph file of version 2
// (schema.hpp): each triplet (head, R, tail) is a relation R from the type of its heads to that of
// its tails; the tail is the row. It gets an inverse rev_R from tail to head, unless that is
// declined: a network whose vertices hear their in-neighbours would otherwise hear one side only.
// Relations stand in the folder's order, then their inverses in that order. Within a relation,
// lines that repeat an edge become one, and are counted; edges have no weights. They may have
// features: an edge that is repeated has those of its first line, its inverse the same.
//
// ---- MAG240M, the large typed graph of the OGB-LSC challenge (Hu et al. 2021), from the folder
// that its data set unpacks to ----
//
//   FOLDER/processed/paper/node_feat.npy    float16 [n, 768]; stays float16
//   FOLDER/processed/paper/node_label.npy   [n], nan for none
//   FOLDER/processed/HEAD___RELATION___TAIL/edge_index.npy   [2, m]
//
// and from what scripts/mag240m_pickles.py makes of its two pickles, meta.pt and split_dict.pt:
//
//   FOLDER/num-node-dict.csv                types, then their numbers of vertices
//   FOLDER/split/{train,valid,test}.npy     ids of papers                              optional
//
// Any folder in this layout will do, whatever its types and relations; other files (node_year.npy)
// are not read. Features pass through memory in pieces.
//
// ---- triples (head, relation, tail) of a knowledge graph ----
//
// Text files, one triple a line, its parts apart by tabs or, where the first line of a file has
// none, by commas; plain or gzip. Entities become vertices in ascending order of their names
// (bytes), relations stand in ascending order of theirs; so the order of lines and files says
// nothing. Names are kept: /types/entity/ids (/nodes/ids) and /links/relations.
//
// All triples are links of their split, each once, in the order of (tail, relation, head). Those of
// train are the graph, too, with one vertex type, `entity`, and a relation for each of theirs; then
// an inverse rev_R for each R. Names of a graph's relations hold letters, digits, '_' and '-':
// other letters become '_' there, and a number is added where two become the same. A graph has at
// most kMostRelations, inverses included; with `ignore_relations` it has none, an edge for each
// pair, and no inverse edges. Memory is that of all triples, names and, one after the other, rank
// 0's rows of the matrix and the links of a split.
//
// ---- one file of edges, plain, gzip or zstd, whatever its name ----
//
//   an edge list      a line for each edge, "source target", apart by blanks, tabs or a comma, with
//                     a weight behind them where that is asked for; lines that begin with # or %
//                     are comments
//   Matrix Market     a matrix in coordinate format: entry (i, j) is an edge from j to i
//                     (edge_text.hpp)
//
// The file is read twice, with renumbering three times, and never in memory: that is the matrix
// that is written, 4 bytes for an edge (8 with a weight) and 8 for a vertex. Vertices are 0 to the
// largest id, or as many as is said; renumbered they are the ids that there are, in ascending
// order, and the ids stand in the graph file. What is known of them comes as numpy's arrays, a row
// for each vertex.
//
// ---- what a file in TOML describes ----
//
// Which arrays of numpy and which texts hold the edges of each relation and what is known of
// vertices (docs/data.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/edge_source.hpp"

namespace espalier {

struct FolderOptions {
  std::string folder;
  std::string split = {};     ///< NAME; empty: the only one there is; or "NAME,NAME", which keep
                              ///< their names
  bool inverses = true;       ///< add rev_R for each relation R; a graph without types has none
  EdgeOptions edges = {};     ///< a graph with types has nothing to symmetrize, loops
                              ///< within relations of one type, and no weights: entries
                              ///< stay 1, but of kCount
  bool half = false;          ///< as float16 also features that are not
  bool edge_features = true;  ///< or leave those of the folder out
  std::optional<std::int64_t> edge_weight = {};  ///< 0-based column of edge-feat that holds weights
};
struct OgbFolder : FolderOptions {};
struct Mag240mFolder : FolderOptions {};  ///< `split` is empty

struct TripleFiles {
  std::array<std::string, 3> files;  ///< by Split; empty: none, but of train
  bool inverses = true;
  bool ignore_relations = false;
};

/// Files of numpy (.npy); an empty path: there is none.
struct VertexArrays {
  std::string features;               ///< [n, f]
  std::string labels;                 ///< [n] classes, -1 or nan: none; [n, C] of 0, 1 and nan
  std::array<std::string, 3> splits;  ///< by Split: ids, those of the edges, or a mask [n]
  bool half = false;                  ///< store features as float16
};

struct EdgeFileOptions {
  std::string file;
  bool weights = false;  ///< the third field of a line; the values of a matrix, else passed over
  EdgeOptions edges = {};
  VertexArrays arrays = {};
};
struct EdgeListFile : EdgeFileOptions {
  std::optional<std::int64_t> vertices = {};  ///< so many; else by the arrays, else by the
                                              ///< largest id
  bool renumber = false;
};
struct MatrixMarketFile : EdgeFileOptions {};

struct DescriptionFile {
  std::string path;
};

using ImportRequest =
    std::variant<OgbFolder, Mag240mFolder, TripleFiles, EdgeListFile, MatrixMarketFile, DescriptionFile>;

/// Collective. Reads what is asked for and writes the graph file `output`. Rank 0 reads alone, but
/// for edges that several ranks can read parts of: edges two times and more, never in memory; that
/// is the matrix, of which each rank has its even range of the rows, and features of edges, one
/// relation's at a time. Throws UserError(kInput) on every rank with file and place for anything
/// that does not fit; then there is no `output`. Throws UserError(kUsage) when `output` is one of
/// the inputs, also as check_output() and put_in_place() do.
void import_graph(const Communicator& comm, const ImportRequest& request, const OutputFile& output);

/// Collective. On rank 0 what is asked for as a description in TOML, with absolute paths; of an
/// edge list without `renumber`, which is read where nothing else says how many vertices there are.
/// Triples and Matrix Market have none. Throws as import_graph().
std::string describe_import(const Communicator& comm, const ImportRequest& request);

}  // namespace espalier

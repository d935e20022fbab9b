// espalier import: from files that others made to a graph file.
#include "commands.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "espalier/base/clock.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

namespace {

// ---- what several kinds take ----

std::optional<std::int64_t> weight_column(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto column = number_in<std::int64_t>(text);
  if (!column || *column < 0)
    usage_error("--edge-weight {}: give the number of a column of edge-feat.csv.gz, counted from 0", text);
  return column;
}

Duplicates duplicates_by(const std::string& name) {
  const auto found = std::ranges::find(kDuplicateNames, name);
  if (found != kDuplicateNames.end()) return static_cast<Duplicates>(found - kDuplicateNames.begin());
  usage_error("--duplicates {}: give sum, mean, max, first, last, count or refuse", name);
}

DuplicateFeatures duplicate_features_by(const ImportArguments& a) {
  const auto& name = a.duplicate_features;
  if (name == "kept") return DuplicateFeatures::kKept;
  if (a.duplicates == "refuse")
    usage_error("--duplicate-features {}: --duplicates refuse leaves none to merge; leave one of them out",
                name);
  if (a.no_edge_features)
    usage_error("--duplicate-features {}: --no-edge-features leaves them out; leave one of them out", name);
  const auto found = std::ranges::find(kDuplicateFeatureNames, name);
  if (found != kDuplicateFeatureNames.end())
    return static_cast<DuplicateFeatures>(found - kDuplicateFeatureNames.begin());
  usage_error("--duplicate-features {}: give kept, first, last, sum or mean", name);
}

EdgeOptions edge_options(const ImportArguments& a) {
  return {a.symmetrize, a.drop_self_loops, duplicates_by(a.duplicates)};
}

void add_inverse_option(CLI::App& command, ImportArguments& a) {
  command.add_flag("--no-inverse", a.no_inverse, "of a graph with types: add no inverse of each relation");
}

void add_symmetrize_option(CLI::App& command, ImportArguments& a) {
  command.add_flag("--symmetrize", a.symmetrize, "add the reverse of every edge");
}

void add_edge_options(CLI::App& command, ImportArguments& a) {
  command.add_flag("--drop-self-loops", a.drop_self_loops, "leave out edges from a vertex to itself");
  command.add_flag("--half", a.half, "store features as float16");
  command
      .add_option(
          "--duplicates", a.duplicates,
          "sum, mean, max, first or last: the weight of edges that are listed more than once (with "
          "--symmetrize: in either direction); count: how many they are, whatever they weigh; refuse: an "
          "error")
      ->capture_default_str();
}

constexpr const char* kAdviceOnFolders =
    "ranks share the rows of the matrix, but one rank reads the features: use more ranks on more nodes, or a "
    "node "
    "with more memory, --half where features of edges take it, and --no-edge-features where these are not "
    "needed";

// ---- ogb ----

void add_ogb_options(CLI::App& command, ImportArguments& a) {
  command.add_option("DIR", a.folder, "the folder that holds raw/ and split/")->required();
  command.add_option("--split", a.split,
                     "which split: a folder below DIR/split; may be left out when there is one. Of several, "
                     "as a,b, each keeps its name: graph.split");
  add_symmetrize_option(command, a);
  command.add_option("--edge-weight", a.edge_weight,
                     "the column of edge-feat.csv.gz (from 0) that becomes the weights, and no feature");
  command.add_flag("--no-edge-features", a.no_edge_features, "leave the features of edges out");
  command
      .add_option("--duplicate-features", a.duplicate_features,
                  "features of edges that are listed more than once: first, last, sum or mean; kept: those "
                  "of the edge whose weight stays, else of the first")
      ->capture_default_str();
  add_inverse_option(command, a);
  add_edge_options(command, a);
}

ImportRequest ask_ogb(const ImportArguments& a) {
  const EdgeOptions edges{a.symmetrize, a.drop_self_loops, duplicates_by(a.duplicates),
                          duplicate_features_by(a)};
  return OgbFolder{
      {a.folder, a.split, !a.no_inverse, edges, a.half, !a.no_edge_features, weight_column(a.edge_weight)}};
}

// ---- mag240m ----

void add_mag240m_options(CLI::App& command, ImportArguments& a) {
  command.add_option("DIR", a.folder, "the folder that holds processed/")->required();
  add_inverse_option(command, a);
  add_edge_options(command, a);
}

ImportRequest ask_mag240m(const ImportArguments& a) {
  return Mag240mFolder{{a.folder, "", !a.no_inverse, edge_options(a), a.half}};
}

// ---- triples ----

void add_triple_options(CLI::App& command, ImportArguments& a) {
  command.add_option("--train", a.train, "the triples that become the graph")->required();
  command.add_option("--valid", a.valid, "those to validate on");
  command.add_option("--test", a.test, "those to test on");
  auto* ignore =
      command.add_flag("--ignore-relations", a.ignore_relations,
                       "the graph has no relations, its links do: for more relations than a graph may have");
  add_inverse_option(command, a);
  ignore->excludes(command.get_option("--no-inverse"));
}

ImportRequest ask_triples(const ImportArguments& a) {
  return TripleFiles{{a.train, a.valid, a.test}, !a.no_inverse, a.ignore_relations};
}

// ---- edges, matrixmarket ----

void add_array_options(CLI::App& command, ImportArguments& a) {
  command.add_option("--features", a.features, "FILE.npy: a row of features for each vertex");
  command.add_option("--labels", a.labels,
                     "FILE.npy: a class for each vertex, -1 or nan: none; or a row of 0, 1 and nan");
  command.add_option("--train", a.train, "FILE.npy: the vertices to train on, ids or a mask");
  command.add_option("--valid", a.valid, "those to validate on");
  command.add_option("--test", a.test, "those to test on");
}

VertexArrays vertex_arrays(const ImportArguments& a) {
  return {a.features, a.labels, {a.train, a.valid, a.test}, a.half};
}

void add_edge_list_options(CLI::App& command, ImportArguments& a) {
  command.add_option("FILE", a.file, "lines of source and target, .gz and .zst too")->required();
  command.add_flag("--weights", a.weights, "the third field of a line is the weight of the edge");
  auto* vertices = add_whole_number(&command, "--vertices", a.vertices, {1, kMostVertices},
                                    "how many vertices there are (the largest id + 1)");
  command
      .add_flag("--renumber", a.renumber,
                "vertices are the ids that there are, in ascending order; the file keeps the ids")
      ->excludes(vertices);
  add_symmetrize_option(command, a);
  add_edge_options(command, a);
  add_array_options(command, a);
}

ImportRequest ask_edge_list(const ImportArguments& a) {
  if (a.describe && a.renumber)
    usage_error(
        "--describe: a description does not number vertices anew, as --renumber does; leave one of them out");
  const auto vertices = a.vertices > 0 ? std::optional(a.vertices) : std::nullopt;
  return EdgeListFile{{a.file, a.weights, edge_options(a), vertex_arrays(a)}, vertices, a.renumber};
}

void add_matrix_market_options(CLI::App& command, ImportArguments& a) {
  command.add_option("FILE", a.file, "a matrix in coordinate format, .gz and .zst too")->required();
  command.add_flag("--no-weights", a.no_weights, "pass over the values: every edge is a 1");
  add_symmetrize_option(command, a);
  add_edge_options(command, a);
  add_array_options(command, a);
}

ImportRequest ask_matrix_market(const ImportArguments& a) {
  return MatrixMarketFile{{a.file, !a.no_weights, edge_options(a), vertex_arrays(a)}};
}

// ---- toml ----

void add_description_options(CLI::App& command, ImportArguments& a) {
  command.add_option("FILE", a.file, "a description in TOML")->required();
}

ImportRequest ask_description(const ImportArguments& a) {
  return DescriptionFile{a.file};
}

constexpr const char* kAdviceOnEdges =
    "use more ranks on more nodes, each of which holds its part of the matrix, and --renumber where ids are "
    "sparse";

}  // namespace

// ---- the table ----

const std::vector<ImportFormat>& import_formats() {
  static const std::vector<ImportFormat> formats = {
      {"ogb", "a folder in a raw layout of the Open Graph Benchmark",
       "  espalier import ogb dataset/ogbn_products --split sales_ranking --symmetrize -o products.h5\n"
       "  scripts/debian_graph.py --typed data/debian_typed && \\\n"
       "    espalier import ogb data/debian_typed --split source_seed0 -o data/debian_typed.h5\n",
       "`ogb` tells the layouts apart by what is in DIR/raw: num-node-list.csv(.gz), a graph; data.npz, the "
       "same in arrays\n"
       "(ogbn-papers100M); num-node-dict.csv(.gz), a graph with types of vertices and edges (ogbn-mag); "
       "edge_index_dict.npz,\n"
       "the same as OGB's DatasetSaver writes it.\n\n"
       "Features of edges, edge-feat.csv(.gz) beside edge.csv, edge_feat of data.npz, or edge_feat.npz, come "
       "along\n"
       "(--no-edge-features: do not); the inverse of an edge has the same, and edges that become one have "
       "those of the first,\n"
       "with --duplicates max or last those of the one whose weight stays, or what --duplicate-features "
       "says.\n\n",
       kAdviceOnFolders, add_ogb_options, ask_ogb},
      {"mag240m", "the folder of OGB-LSC's MAG240M",
       "  scripts/mag240m_pickles.py mag240m_kddcup2021 && espalier import mag240m mag240m_kddcup2021 -o "
       "mag240m.h5\n",
       "`mag240m` reads processed/TYPE/node_feat.npy in pieces, and "
       "processed/HEAD___RELATION___TAIL/edge_index.npy. Of a\n"
       "triplet HEAD, RELATION, TAIL the tail is the row, and TAIL,rev_RELATION,HEAD is added (--no-inverse: "
       "is not).\n\n",
       kAdviceOnFolders, add_mag240m_options, ask_mag240m},
      {"triples", "files of triples: head, relation, tail, as names",
       "  espalier import triples --train train.txt --valid valid.txt --test test.txt -o umls.h5\n",
       "`triples` reads lines of head, relation and tail, apart by tabs or commas, without header or quotes "
       "(.gz too). Entities\n"
       "and relations are numbered in the order of their names, which are kept. The triples of --train are "
       "the graph, an inverse\n"
       "for each relation (--no-inverse: none), and all are links. --ignore-relations makes a graph of "
       "pairs, for more than 128\n"
       "relations.\n\n",
       "import reads the triples on one rank, so more ranks are no help: use a node with more memory",
       add_triple_options, ask_triples,
       "a description numbers vertices, and triples name them; espalier-tables takes names, "
       "from a table with a header for each relation"},
      {"edges", "an edge list: two columns of ids, and perhaps a weight",
       "  espalier import edges soc-LiveJournal1.txt.gz -o livejournal.h5\n"
       "  espalier import edges follows.csv --renumber --symmetrize --features x.npy --labels y.npy "
       "--train train.npy -o follows.h5\n",
       "`edges` reads lines of source and target, apart by blanks, tabs or a comma; those that begin with # "
       "or % are comments.\n"
       "Vertices are 0 to the largest id, or --vertices N, or as many as --features or --labels has rows. "
       "With --renumber they\n"
       "are the ids that there are, in ascending order: /nodes/ids has them, rows of --features and --labels "
       "are in that order,\n"
       "and --train, --valid and --test are ids of the list.\n\n",
       kAdviceOnEdges, add_edge_list_options, ask_edge_list},
      {"matrixmarket", "a matrix in the coordinate format of Matrix Market",
       "  espalier import matrixmarket cage15.mtx.gz -o cage15.h5\n",
       "`matrixmarket` reads pattern, integer and real matrices, general and symmetric ones. It is the "
       "adjacency matrix as it\n"
       "stands: entry i j, in row i and column j, is an edge from j to i, and vertex 0 is row 1. Values are "
       "weights\n"
       "(--no-weights: are not). `edges` and `matrixmarket` read plain text, gzip and zstd, whatever the "
       "name.\n\n",
       kAdviceOnEdges, add_matrix_market_options, ask_matrix_market,
       "a description takes ids from 0, and a matrix counts from 1, below a header; save [m.col, m.row] and "
       "m.data, with m = scipy.io.mmread(FILE), as .npy and describe these"},
      {"toml", "a description of arrays and texts, GRAPH.toml; the word `toml` may be left out",
       "  espalier import market.toml -o market.h5\n",
       "`toml` reads a file that says which array of numpy (x.npy, a.npz:MEMBER) or text without a header "
       "has what:\n\n"
       "  directed = false            # every edge goes both ways; with types by an inverse rev_NAME\n"
       "  duplicates = \"sum\"          # as --duplicates; duplicate_features as --duplicate-features\n"
       "  duplicate_times = \"first\"   # of edges in one direction the earliest stays; last: the latest\n"
       "  loops = \"keep\"              # or \"drop\"\n"
       "  half = false                # true: features as float16\n"
       "  [types.item]                # in the order of the lines\n"
       "  count = 4                   # or as many as features, labels or ids have rows\n"
       "  features = \"x.npy\"\n"
       "  labels = \"y.npy\"            # classes, -1 or nan: none; or rows of 0, 1 and nan\n"
       "  ids = \"ids.txt\"             # whole numbers or texts; time = \"t.npy\", whole numbers\n"
       "  splits = { train = \"train.npy\", test = \"test.npy\" }   # ids or masks; splits.NAME = { .. }: "
       "with a name\n"
       "  [relations.buys]\n"
       "  source = \"customer\"\n"
       "  target = \"item\"\n"
       "  edges = \"edges.npy\"         # [2, m] or [m, 2], ids within the types\n"
       "  # edges = { file = \"e.txt.zst\", columns = [\"source\", \"target\", \"weight\", \"time\"] }; "
       "several: "
       "files = [..]\n"
       "  weights = \"w.npy\"           # of edges in that order, as time (whole numbers) and features\n"
       "  inverse = \"rev_buys\"        # left out: none; directed = false: both ways within one type\n"
       "  [links]                     # directed = false; relations = [\"buys\"]\n"
       "  train = { head = \"h.npy\", tail = \"t.npy\", relation = \"r.npy\" }\n"
       "  test = { head = .., tail = .., negative_tails = .., negative_heads = .., non_links = .. }\n\n"
       "One type and one relation make a file without types, unless typed = true. Of a text or an array of "
       "several columns\n"
       "weights = { file = .., column = 0 } takes one, features = { file = .., without = 0 } all others; "
       "train = [] is of no\n"
       "vertex; name = \"buys\" calls a relation otherwise than its section. `ogb`, `mag240m` and `edges` "
       "print with --describe\n"
       "in place of -o the description that means the same.\n\n",
       kAdviceOnEdges, add_description_options, ask_description, "FILE is a description"}};
  return formats;
}

const ImportFormat& import_format(const std::string& name) {
  const auto& formats = import_formats();
  const auto found = std::ranges::find_if(formats, [&](const auto& of) { return name == of.name; });
  ESPALIER_CHECK(found != formats.end(), "{}", name);
  return *found;
}

std::string import_examples() {
  std::string lines;
  for (const auto& format : import_formats()) lines += format.examples;
  return lines;
}

std::string import_layouts() {
  std::string paragraphs;
  for (const auto& format : import_formats()) paragraphs += format.layout;
  return paragraphs;
}

// ---- the command ----

namespace {

// "10 vertices of 2 types, 30 edges in 4 relations"
std::string counts_in_words(const GraphInfo& info) {
  if (!info.typed) return fmt::format("{}, {}", counted(info.nodes, "vertex"), counted(info.edges, "edge"));
  return fmt::format("{} of {}, {} in {}", counted(info.nodes, "vertex"),
                     counted(std::ssize(info.schema.types()), "type"), counted(info.edges, "edge"),
                     counted(std::ssize(info.schema.relations()), "relation"));
}

}  // namespace

void import_command(const Communicator& world, const ImportArguments& arguments) {
  const double start = now();
  // Rank 0 reads alone; that others wait for it is no stall.
  const Watchdog watchdog(world.rank() == 0 ? arguments.stall_minutes : 0, "--stall-minutes");

  const auto& format = import_format(arguments.format);
  set_memory_advice(format.memory_advice);

  if (arguments.describe) {
    if (*format.no_description != '\0') usage_error("--describe: {}", format.no_description);
    std::string text;
    {
      const log::Quietly quietly;  // what is printed is the description alone
      text = describe_import(world, format.ask(arguments));
    }
    log::info("{}", text);
    return;
  }

  // 1. Read the files, write the graph file.
  note_activity("importing");
  note_consequence("no graph file was written");
  import_graph(world, format.ask(arguments), {arguments.output, arguments.overwrite});

  // 2. Open what was written: it must pass the checks of every reader.
  note_activity("checking the graph file");
  note_consequence("the graph file is written, but not checked");
  const GraphFile file(world, arguments.output);
  check_splits(world, file);
  check_links(world, file);
  const auto& info = file.info();
  log::info("wrote      {}: {}, {}, {}, in {:.1f} s", arguments.output, counts_in_words(info),
            counted(info.features, "feature"), counted(info.classes, info.multi_label ? "label" : "class"),
            now() - start);
}

}  // namespace espalier

// What `espalier help` says, and the words below the options of each command.
#include "commands.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/named.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

namespace {

struct Words {
  std::string summary;
  std::string example;
};

// A line for each.
template <class Kinds>
std::string list_of(const Kinds& kinds) {
  std::string lines;
  for (const auto& kind : kinds)
    lines += fmt::format("{}  {:<12}{}", lines.empty() ? "" : "\n", kind.name, kind.about);
  return lines;
}

const std::map<std::string, Words>& words() {
  static const std::map<std::string, Words> table = {
      {"import",
       {"make a graph file from another format",
        "Examples:\n" + import_examples() + "\n" + import_layouts() +
            R"(Edges that are listed more than once become one (--duplicates). With --symmetrize a line u,v
stands for both directions, so a line v,u is the same edge listed again: --duplicates sum, which makes
A + A^T, counts it twice, and a self loop too (--drop-self-loops leaves loops out, --duplicates max or
first counts them once).

A graph file is HDF5; h5py can write one, too: docs/graph-file.md says what is in it.
`espalier digest FILE --write` then adds the digests by which damage and changes are noticed.)"}},
      {"generate",
       {"make a graph file from a random model",
        R"(Examples:
  espalier generate planted --nodes 20000 --classes 8 --degree 12 --homophily 0.8 --features 32 --seed 1 -o planted.h5
  mpirun -np 4 espalier generate rmat --scale 16 --edge-factor 16 --features 32 --classes 8 --seed 1 -o rmat.h5
  espalier generate planted --nodes 20000 --classes 8 --labels 5 -o labels.h5
  espalier generate planted --nodes 20000 --edge-features 4 -o edges.h5
  espalier generate planted --types paper=20000:32,author=12000,field=300:8 \
    --relations author.writes.paper=60000,paper.cites.paper=90000,paper.about.field=40000 -o typed.h5

The last has vertex types, each with its number of vertices and, behind a colon, of features; relations are
SOURCE.NAME.TARGET=EDGES, and each gets an inverse, rev_NAME (--no-inverse: none). The first type has the
labels and the splits; vertices of all types have a class, and --homophily is the fraction of a relation's
edges that join vertices of one class.

Of --edge-features numbers the first is about 1 where an edge joins vertices of one class, about -1 where it
does not, the others are about 0; deviation 1. Both directions of an edge have the same.)"}},
      {"prepare",
       {"make a raw graph fit, put its vertices into another order, choose links among its edges",
        R"(Examples:
  espalier prepare raw.h5 --drop-loops --drop-duplicates --symmetrise --largest-component -o graph.h5
  espalier partition graph.h5 && espalier prepare graph.h5 --relabel order-degree:graph.order.h5 -o near.h5
  espalier prepare planted.h5 --split-links 0.8,0.1,0.1 --seed 1 -o planted_links.h5
  mpirun -np 4 espalier prepare debian_typed.h5 --split-links 0.9,0.05,0.05 --relations depends -o links.h5

What is asked for is done in this order: loops go (--drop-loops); repeated edges become one
(--drop-duplicates, which takes rows in any order); each edge gets its reverse (--symmetrise), with its own
weight, features and time, where that is no edge, and where it is both keep theirs; the largest component
stays (--largest-component), whichever way edges point; vertices get other numbers (--relabel); links are
chosen (--split-links). Features, labels, splits, ids and links follow, and the same file is written by any
number of ranks. With types loops, duplicates and reverses are possible; reverses within relations of a type
to itself that have no inverse.

--duplicates says what the weights and features of repeated edges become: those of the first, of the last,
their sum, their mean; count gives a weight that says how many there were, and the first's features. Of
their times the earliest stays, with --duplicate-times last the latest.

--relabel degree puts the vertices with most edges first, component the largest component; order:FILE goes
by the clusters of an order of this file (`espalier partition`), order-degree:FILE by degree within each;
random:7 by chance. Those that are alike stay in the order of the file. Where the file has no ids, the new
one has the old numbers as ids, so that `infer --csv` speaks of the same vertices.

Links: of a graph in which every edge has its reverse each pair is a link once, of another each edge; of a
graph with types those of the relations. A self loop is no link. The new file has all that FILE has, and
/links (docs/graph-file.md), but the edges of the links in valid and test are left out:
of each the edge, that of the inverse relation and, where every edge of the relation has its reverse, the
reverse. Where only some have it, the reverse of a link is another edge, which may stay. --inverse
buys=bought_by declares an inverse that the file does not name, --also NAME takes out what another relation
has between the ends of these links; where much of what is to be found is said by edges that stay, a warning
names the relation. A share of 0 is of
a split that is not there. The same file, options and seed give the same links on any number of ranks.)"}},
      {"digest",
       {"check the digests of a graph file, or write them into one that another program made",
        "Examples:\n  espalier digest planted.h5\n  espalier digest made_by_h5py.h5 --write"}},
      {"info",
       {"describe a graph file and the memory it takes",
        "Example:\n  espalier info planted.h5 --ranks 64 --replication 4"}},
      {"partition",
       {"make an order of a graph, by which its vertices are given to ranks",
        R"(Examples:
  espalier partition planted.h5
  mpirun -np 4 espalier partition rmat.h5 --method streaming -o rmat.order.h5
  espalier partition rmat.h5 --edges --parts 64
  espalier partition rmat.h5 --method cut --by rmat.cut.h5

An order is a sequence of small clusters; those close in number have many edges between them. One serves
every number of ranks: their parts are cuts of the sequence, even in vertices, edges and the vertices of
each split.

The methods (--method):
)" + list_of(partition_methods()) +
            R"(

An order is HDF5; h5py can write one too:
  /              attributes format = "espalier-order", version = 1, method; pattern: digest of the
                 graph's edges
  /cluster       uint16 [n]: the cluster of each vertex
  /weights       int64 [clusters, 5]: vertices, edges, train, valid and test in each
of several vertex types, where the method balances them, also an attribute types and
  /type_weights  int64 [clusters, 2 types]: vertices, then edges, of each type
The same graph, options and seed give the same bytes on any number of ranks.

With --edges the edges are in parts, which share vertices: a vertex cut, for grid.topology = "vertex-cut"
and graph.cut = FILE. RF, VB and EB are printed as the field defines them. The methods (--edges --method):
)" + list_of(edge_cut_methods()) +
            R"(

The file: attributes format = "espalier-edge-parts", version = 1, method, parts, pattern;
  /part          uint8 [entries] up to 256 parts, else uint16: in the order of /graph/indices
  /entries       int64 [parts]: how many each has; runs of parts are block rows of a grid of fewer)"}},
      {"sample",
       {"draw the minibatches of an epoch without training",
        R"(Example:
  mpirun -np 4 espalier sample inputs/debian.toml grid.replication=2 sampler.kind=ladies

--write keeps every minibatch, for espalier.Minibatches of the Python package and so for PyTorch
(docs/data.md):
  mpirun -np 4 espalier sample inputs/debian.toml --epochs 10 --write batches output.dir=batches

The samplers (sampler.kind):
)" + list_of(sampler_kinds())}},
      {"train",
       {"train a network",
        R"(Example:
  mpirun -np 4 espalier train inputs/debian.toml grid.replication=2 train.epochs=5

The layers (model.kind):
)" + list_of(layer_kinds()) +
            R"(

The best weights are left in weights.h5 in output.dir, for `espalier infer`; scripts/to_pytorch.py gives
them to PyTorch. Exit code 5: stopped, and saved; 6: a number was not finite, the best weights of before
are there.)"}},
      {"infer",
       {"put the whole graph through a trained network",
        R"(Example:
  mpirun -np 4 espalier infer inputs/debian.toml --checkpoint output/debian/weights.h5 -o debian_rows.h5 --predictions --metrics

CONFIG names the graph and describes the network as in training; grid.* and run.* may be others. Features
are standardised as in training. The rows are those of exact evaluation: on CPUs the same bits on every grid
and under every run.memory_limit.

With --sampled a layer reads, of each vertex, what sampler.kind = graphsage or labor draws by its fanout for
that layer, and by train.seed: the same on every grid, and faster. The file says so.

The file (HDF5):
  /logits        float32 or float16 [rows, classes], or
  /embeddings    the same [rows, model.hidden], with --layer below the last, or of train.task = "links"
  /predictions   int32 [rows], with --predictions; of train.task = "labels" uint8 [rows, labels]
  /ids           int64 [rows], ascending, with --nodes: the vertex of each row; else row v is vertex v
  /types/NAME/   the same for each type of --types; attributes type, first, vertices, trained
  /              attributes: espalier, checkpoint, epoch, weights_digest, config, config_digest, layer,
                 layers, graph, graph_digest; with --sampled sampled, seed; with --metrics
                 train_accuracy, train_macro_f1, train_vertices, valid_..., test_...;
                 of a graph with types: types, those whose rows these are, and target

Of a graph with types the rows are the target's. --types author,paper or --types all writes those of other
types, with predictions for the target alone:
  espalier infer inputs/debian_typed.toml --checkpoint output/debian_typed/weights.h5 -o rows.h5 --types all --layer 1
Vertices, in /ids too, are counted within their type, as labels and splits are in the graph file.
docs/typed-graphs.md has lines of h5py that judge the predictions, and says what rows of other types are.

A line of --nodes is a vertex: where the graph has ids (/nodes/ids, /types/TYPE/ids) that are texts, its id;
where it has none, its number within the type. Where ids are numbers, say which is meant: --named-by ids or
--named-by numbers; the latter counts vertices on any graph.

--csv FILE writes predictions of the target as CSV, too: id,class,probability, a line for each vertex,
ascending, with the graph's ids and names of classes (/labels/names), or numbers, and the softmax of the
class. Of several labels a line for each that is more likely than not, with its sigmoid: a vertex may have
none.

Of train.task = "links" --links FILE scores links, lines of head, relation and tail (vertices as in --nodes;
the relation, a name or a number, may be left out where there is one), and writes CSV. With --top 10 the
lines have no tails, and the ten best of each are written:
  echo 17 > heads.txt && espalier infer inputs/debian_links.toml --checkpoint output/debian_links/weights.h5 \
    --links heads.txt --top 10 -o tails.csv)"}},
      {"plan",
       {"say what a job will need, without running it",
        R"(Example:
  espalier plan inputs/debian.toml --ranks 16 --memory-per-rank 4GiB --machine inputs/machines/laptop.toml grid.replication=2

Memory of each rank, bytes and messages of each stage for every schedule, and, with a machine file, seconds.
Exit code 4: it does not fit.)"}},
      {"calibrate",
       {"measure this machine for `espalier plan`",
        R"(Example:
  mpirun -np 2 espalier calibrate -o machine.toml
  mpirun -np 2 --bind-to none espalier calibrate --fastest -o machine.toml

Run it as a job will run: so many ranks on a node, with as many threads each (OMP_NUM_THREADS). Or with a
rank for each core of a node: the ways to share the cores, 1 rank x all threads, 2 x half of them and so on,
take a short step each, and with --fastest the rates are those of the fastest.)"}},
      {"report",
       {"a page about a run, or several: curves, seconds, bytes, scores, keys that differ (by the Python "
        "package)",
        R"(Examples:
  espalier report output/debian
  espalier report output/seed0 output/seed1 output/seed2 -o seeds.html

One HTML file without scripts, for a browser. Several runs: means and deviations over train.seed. Needs
`pip install ./python`.)"}},
      {"sweep",
       {"train with all combinations of some values, then the page of `report` (by the Python package)",
        R"(Example:
  espalier sweep inputs/debian.toml train.seed=0..4 model.hidden=128,256 -n 4 -o sweep

Runs follow one another, each on 4 ranks, in folders below sweep/. One that fails is named and left out; the
exit code is that of the first that did. Needs `pip install ./python`.)"}},
      {"verify",
       {"compute what is known, and say whether this machine agrees",
        R"(Examples:
  espalier verify
  mpirun -np 4 espalier verify --device cuda

Half a minute, without a file: a graph made in memory, every sampler by every schedule and grid of so many
ranks, every kind of layer, what stands around them, a restart. What comes out is compared with what is
compiled in: the same bits for every number of ranks and threads, every instruction set, compiler and MPI
library; on GPUs losses to 4 digits, all else to the bit. Lines are in the order in which they build on each
other: the first that differs names the fault. Exit code 1: something differs.)"}},
      {"help",
       {"explain a command, or the keys of an input file (help config)", "Example:\n  espalier help train"}},
      {"version", {"print the version", "Example:\n  espalier version"}}};
  return table;
}

}  // namespace

std::string help_summary(const std::string& command) {
  return words().at(command).summary;
}
std::string help_example(const std::string& command) {
  return words().at(command).example;
}

void check_command(const std::string& command, std::vector<std::string> pages) {
  if (words().contains(command)) return;
  for (const auto& [name, text] : words()) pages.push_back(name);
  usage_error("there is no command '{}'; did you mean '{}'? `espalier help` lists them", command,
              nearest(command, pages));
}

void check_kind(const CLI::App& app, const std::string& command, const std::string& kind) {
  std::string kinds;
  for (const auto* inner :
       app.get_subcommand(command)->get_subcommands([](const CLI::App*) { return true; })) {
    if (inner->get_name() == kind) return;
    kinds +=
        fmt::format("{}`{}` ({})", kinds.empty() ? "" : ", ", inner->get_name(), inner->get_description());
  }
  if (!kinds.empty())
    usage_error(
        "{}; {} knows {}. `espalier help {}` shows examples and layouts",
        kind.empty() ? command + ": name a kind" : fmt::format("{} {}: there is no such kind", command, kind),
        command, kinds, command);
}

std::string command_help(const CLI::App& app, const std::string& command) {
  check_command(command, {"config"});
  const auto* sub = app.get_subcommand(command);
  std::string text = sub->help("espalier");
  for (const auto* inner : sub->get_subcommands([](const CLI::App*) { return true; }))
    text += "\n" + inner->help("espalier " + command);
  return text;
}

}  // namespace espalier

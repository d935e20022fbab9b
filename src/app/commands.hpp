// The commands, one file each: main.cpp reads the command line into these structs and calls the
// function. Every command is collective over `world`; user errors leave it as UserError, agreed on
// by all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/import.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace espalier {

struct ImportArguments {
  std::string format;  ///< a name in import_formats()
  std::string folder;
  std::string file;   ///< of edges
  std::string split;  ///< a folder below FOLDER/split
  std::string output;
  std::string edge_weight;  ///< column of edge-feat.csv.gz (0-based number), empty: no weights
  bool symmetrize = false;
  bool no_inverse = false;  ///< of a graph with types: add no inverse of each relation
  bool drop_self_loops = false;
  bool half = false;  ///< store features as float16
  std::string duplicates = "sum", duplicate_features = "kept";
  bool no_edge_features = false;   ///< leave them out
  std::string train, valid, test;  ///< files: of triples, or of vertices
  bool ignore_relations = false;   ///< of triples: A has pairs of vertices
  bool weights = false;            ///< of an edge list: its third column
  bool no_weights = false;         ///< of a matrix: its entries' values are none
  std::int64_t vertices = 0;       ///< of an edge list: so many; 0: the largest id says
  bool renumber = false;           ///< of an edge list: vertices are the ids that there are
  std::string features, labels;    ///< of vertices: arrays of numpy
  bool describe = false;           ///< print a description that means the same, and stop
  bool overwrite = false;          ///< may `output` be replaced?
  double stall_minutes = 0;
};
void import_command(const Communicator& world, const ImportArguments& arguments);

struct GenerateArguments {
  std::string kind;  ///< "rmat" or "planted"
  std::string output;
  std::int64_t features = 16;
  std::int64_t classes = 8, labels = 0;
  std::int64_t seed = 0;
  bool half = false;
  bool overwrite = false;  ///< may `output` be replaced?
  double stall_minutes = 0;
  // rmat
  std::int64_t scale = 14;
  std::int64_t edge_factor = 16;
  bool symmetrize = false;
  bool drop_self_loops = false;
  // planted
  std::int64_t nodes = 10000;
  double degree = 10;
  double homophily = 0.8;
  std::int64_t edge_features = 0;
  bool typed = false;            ///< types and relations were given
  std::string types, relations;  ///< as TypedGraphOptions has them
  bool no_inverse = false;
};
void generate_command(const Communicator& world, const GenerateArguments& arguments);

struct DigestArguments {
  std::string file;
  bool write = false;  ///< put what was found into the file
  double stall_minutes = 0;
};
void digest_command(const Communicator& world, const DigestArguments& arguments);

struct PrepareArguments {
  std::string file;
  std::string output;
  bool drop_loops = false, drop_duplicates = false, symmetrise = false, largest_component = false;
  std::optional<std::string> duplicates;  ///< "first", ...: what repeated edges become
  std::optional<std::string> duplicate_times;
  std::optional<std::string> relabel;  ///< "degree", "random:7", "order:FILE", ...: the order
                                       ///< of vertices
  std::optional<std::string> shares;   ///< "0.8,0.1,0.1": of links, in train, valid and test
  std::string relations;               ///< "cites,writes"; empty: all, of two that are
                                       ///< inverses the first
  std::string inverses;                ///< "buys=bought_by,..."
  std::string also;                    ///< relations, as above: what of them says a link
                                       ///< goes with it
  std::int64_t seed = 0;
  bool by_time = false;
  bool overwrite = false;  ///< may `output` be replaced?
  double stall_minutes = 0;
};
void prepare_command(const Communicator& world, const PrepareArguments& arguments);

struct PartitionArguments {
  std::string file;
  std::string output;         ///< empty: the file's name, .order.h5 or .cut.h5 for .h5
  std::string method;         ///< a name in partition_methods() or edge_cut_methods(); empty:
                              ///< the usual one
  std::int64_t clusters = 0;  ///< 0: kUsualClusters, or as many as vertices
  bool edges = false;         ///< parts of edges, not an order of vertices
  std::int64_t parts = 0;     ///< of edges; 0: 64, or as many as `by` has
  std::string by = {};        ///< of method cut: the file of parts of edges
  std::int64_t seed = 0;
  bool fast = false;
  bool ignore_types = false;  ///< balances all vertices, whatever their types
  bool overwrite = false;     ///< may `output` be replaced?
  double stall_minutes = 0;
};
void partition_command(const Communicator& world, const PartitionArguments& arguments);
/// partition_command() with `edges`.
void partition_edges(const Communicator& world, const PartitionArguments& arguments);

struct InfoArguments {
  std::string file;
  std::int64_t ranks = 1;  ///< p and c for which memory per rank is shown
  std::int64_t replication = 1;
  double stall_minutes = 0;
};
void info_command(const Communicator& world, const InfoArguments& arguments);

struct JobArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::int64_t epochs = 1;  ///< sample: epochs to draw; train takes the config's
  bool overwrite = false;   ///< sample, train: a finished run in output.dir may go, and minibatches
  std::optional<std::string> write = {};  ///< sample: the folder that minibatches go to
  bool dry_run = false;                   ///< read and resolve the config, print it, do nothing
};
struct PlanArguments {
  JobArguments job;
  std::int64_t ranks = 0;
  std::string memory_per_rank;  ///< as 8GiB; empty: of the config, the machine or this node
  std::string machine;          ///< a machine file; empty: no seconds
  std::string output;           ///< where the JSON goes; empty: plan.json in output.dir
  bool sampling = false;        ///< of `espalier sample`, not of `train`
  std::int64_t draw = 256;      ///< minibatches of the epoch that are drawn; 0: estimate
                                ///< from degrees
};
void plan_command(const Communicator& world, const PlanArguments& arguments);

struct CalibrateArguments {
  std::string output;  ///< the machine file to write; empty: to the screen
  std::string name;
  bool fastest = false;  ///< the rates of the fastest ranks x threads, not of those that
                         ///< were started
};
void calibrate_command(const Communicator& world, const CalibrateArguments& arguments);

struct VerifyArguments {
  std::string device = "auto";   ///< as run.device
  std::int64_t replication = 0;  ///< c of the grid; 0: each that divides the number of ranks
  std::string folder;            ///< where a checkpoint may be written to; empty: none is
  bool print_values = false;     ///< the table of verify_values.inl.hpp, as this program finds it
};
void verify_command(const Communicator& world, const VerifyArguments& arguments);

struct InferArguments {
  JobArguments job;
  std::string checkpoint;            ///< a checkpoint or a weights.h5
  std::string output;                ///< the HDF5 file to write
  std::int64_t layer = 0;            ///< whose rows are written, from 1; 0: the last
  std::optional<std::string> types;  ///< whose rows are written: "paper,author" or "all"; none: the
                                     ///< target's, of a typed graph
  std::string nodes;                 ///< a list of vertices whose rows are written; empty: all
  std::string links;                 ///< a list of links to score instead; `output` is CSV then
  std::int64_t top = 0;              ///< of heads in that list: how many best tails; 0:
                                     ///< it has tails
  std::string named_by;              ///< "ids" or "numbers": how both lists name vertices
  bool predictions = false;          ///< write predicted classes, too
  std::string csv;                   ///< write them as CSV, too; empty: do not
  bool metrics = false;              ///< evaluate the splits
  std::string resume;                ///< a folder that keeps finished layers; empty: none are kept
  bool sampled = false;              ///< draw neighbours as training does, not take all
  bool half = false;                 ///< store rows as float16
  bool overwrite = false;            ///< may `output` be replaced?
};
void infer_command(const Communicator& world, const InferArguments& arguments);

void sample_command(const Communicator& world, const JobArguments& arguments);
void train_command(const Communicator& world, const JobArguments& arguments);

// Options that take a number: what is none, or lies outside of its range, is refused in one
// sentence that names the option, what was given and the range. The library that reads the command
// line would take the largest integer for one that is too large, and 010 for eight.

template <class Number>
struct Range {
  Number least, most;  ///< both allowed
};

/// Adds `name` (as "--seed"), a whole number in decimal digits. Reading the command line then
/// throws UserError(kUsage) for anything else. Help shows `value`, the default, where it is in the
/// range.
CLI::Option* add_whole_number(CLI::App* app, const char* name, std::int64_t& value, Range<std::int64_t> range,
                              const char* about);

/// The same for a finite number, as 0.5 or 1e-3.
CLI::Option* add_number(CLI::App* app, const char* name, double& value, Range<double> range,
                        const char* about);

// The words of `espalier help`: a summary and an example that works for each command.

std::string help_summary(const std::string& command);
std::string help_example(const std::string& command);

/// Throws UserError(kUsage) naming the nearest command, or the nearest of `pages`, when there is no
/// command of this name.
void check_command(const std::string& command, std::vector<std::string> pages = {});
/// Throws UserError(kUsage) that lists them when `kind`, empty where none was given, is none of
/// those that a command has, as `import` and `generate` do.
void check_kind(const CLI::App& app, const std::string& command, const std::string& kind);

/// The help of one command with its subcommands. Throws as check_command does.
std::string command_help(const CLI::App& app, const std::string& command);

}  // namespace espalier

// ---- what import reads ----
//
// What `espalier import` reads: a line of one table for each kind. An addition is a function that
// reads it and a line here.

namespace CLI {
class App;
}

namespace espalier {

struct ImportFormat {
  const char* name;           ///< "ogb"
  const char* reads;          ///< what, in a few words
  const char* examples;       ///< commands that work, a line each
  const char* layout;         ///< a paragraph of `help import`
  const char* memory_advice;  ///< what helps where memory is short
  void (*add_options)(CLI::App& command, ImportArguments& arguments);
  ImportRequest (*ask)(const ImportArguments& arguments);
  const char* no_description = "";  ///< why no description in TOML means the same, and what helps;
                                    ///< empty: one does
};

const std::vector<ImportFormat>& import_formats();

/// The one of this name; there is one.
const ImportFormat& import_format(const std::string& name);

/// Examples, and then paragraphs, of all of them.
std::string import_examples();
std::string import_layouts();

/// The words of a command that the Python package does, from its name on; or null: of another.
char** python_command(char** argv);
/// On one process, without MPI. Returns only where there is no Python: the exit code.
int run_python_command(char** words);

}  // namespace espalier

// The input file of a run: TOML sections and keys, each with its default.
//
// Any key can be given on the command line as `section.key=value`, which wins. An unknown key is an
// error that names the nearest known one. `to_toml` writes the resolved config, defaults included;
// reading that text again gives the same config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace espalier {

/// A key of a number that also takes the word "auto".
template <class T>
struct Auto {
  std::optional<T> value;  ///< empty means "auto"
  bool is_auto() const { return !value.has_value(); }
};
using AutoInt = Auto<std::int64_t>;
using AutoNumber = Auto<double>;

/// A key of one of several whole numbers, some of which may be words.
struct NumberOrWord {
  std::string text;  ///< its digits, or the word

  NumberOrWord(std::string word) : text(std::move(word)) {}
  NumberOrWord(std::int64_t number) : text(std::to_string(number)) {}
  static bool is_word(const std::string& text) { return text.find_first_not_of("-0123456789") == 0; }
};

struct GraphConfig {
  std::string file;
  std::string feature_norm = "none";
  NumberOrWord feature_bits = 32;
  std::string features_on = "device";
  std::string target;  ///< vertex type to learn on; empty: the only one with labels
  std::string split;   ///< empty: that of /split/train, or the only one
  std::string order;
  std::string cut;  ///< parts of edges, with grid.topology "vertex-cut"
  bool verify = true;

  // What follows from features_on; nothing else asks for its words.
  bool features_on_disk() const { return features_on == "disk"; }
  bool features_on_host() const { return features_on == "host"; }
  bool nodes_share_features() const { return features_on == "node"; }
};

struct GridConfig {
  AutoInt replication{1};
  std::string topology = "partitioned";
  std::string schedule = "auto";

  // What follows from the topology; nothing else asks for its words.
  bool replicates() const { return topology == "replicated"; }
  bool cuts() const { return topology == "vertex-cut"; }
};

struct SamplerConfig {
  std::string kind = "graphsage";
  std::vector<std::int64_t> fanout = {15, 10, 5};
  std::vector<std::string> relation_fanout = {};  ///< "author.writes.paper=25,10"
  std::int64_t batch_size = 1024;
  AutoInt bulk{};
  std::int64_t groups = 0;  ///< of local batches
  bool weighted = false;
  std::string draw = "its";
  std::string mode = "debiased";
  std::int64_t share_batches = 1;
};

struct ModelConfig {
  std::string kind = "sage";
  std::int64_t hidden = 256;
  std::int64_t layers = 3;
  double dropout = 0.5;
  AutoNumber input_dropout{};
  std::string normalize = "none";
  std::string activation = "auto";
  std::string aggregator = "mean";
  std::int64_t bases = 8;  ///< of rgcn
  bool edge_features = false;
  std::int64_t embedding = 0;
  std::int64_t heads = 4;
  std::int64_t output_heads = 1;
  AutoNumber attention_dropout{};
  bool residual = false;
  std::string jumping = "none";
};

struct TrainConfig {
  std::string task = "classes";
  std::string metric = "auto";
  std::string class_weights = "none";
  double label_smoothing = 0;
  std::string score = "dot";
  std::int64_t norm = 1;
  std::string loss = "sigmoid";
  double margin = 1;
  double temperature = 1;
  std::int64_t negatives = 1;
  std::string negatives_mode = "uniform";
  std::string negatives_of = "tail";
  bool negatives_filtered = false;
  double negatives_power = 0.75;
  std::int64_t ranked_against = 0;
  std::string embedding_optimizer = "adam";
  double embedding_rate = 0.001;
  std::int64_t epochs = 10;
  std::string optimizer = "adam";
  double learning_rate = 0.003;
  double momentum = 0.9;
  std::string lr_schedule = "constant";
  std::int64_t lr_warmup = 0;
  std::int64_t lr_step = 30;
  double lr_decay = 0.1;
  double clip_norm = 0;        ///< 0: gradients stay as they are
  double average_weights = 0;  ///< 0: weights are evaluated as they are
  double weight_decay = 0.0;
  std::string weight_decay_on = "all";
  std::int64_t early_stop = 0;
  std::int64_t seed = 0;
  AutoInt batches_per_step{};
  bool reproducible = false;
  std::int64_t eval_every = 1;
  std::string precision = "fp32";
  std::string sparse_products = "own";
};

struct HistoryConfig {
  std::string kind = "none";
  double p_grad = 0.9;
  std::int64_t t_stale = 200;
  std::int64_t start = 0;
  std::string scope = "grid";
  std::string stored = "fp32";
  std::int64_t entries = 0;
  std::string draw = "all";
  double recompute = 0;
};

struct RunConfig {
  std::string device = "auto";
  AutoInt threads{};
  std::string memory_limit = "auto";
  std::string memory_check = "refuse";
  std::string spill;               ///< a folder, or empty
  std::string cache_memory = "0";  ///< as parse_bytes reads it, or "0"
  std::string cache_policy = "degree";
  bool overlap = false;
  std::int64_t prefetch_steps = 1;
  std::int64_t checkpoint_every = 0;
  double checkpoint_minutes = 30;
  std::string restart = "auto";
  double max_minutes = 0;
  double stall_minutes = 0;
};

struct OutputConfig {
  std::string dir = "output";
};

struct Config {
  GraphConfig graph;
  GridConfig grid;
  SamplerConfig sampler;
  ModelConfig model;
  TrainConfig train;
  HistoryConfig history;
  RunConfig run;
  OutputConfig output;
};

/// Reads the TOML text `text` (named `source` in messages) and applies `overrides`
/// ("section.key=value") in order. Throws UserError(kUsage) for a syntax error, an unknown key
/// (naming the nearest), a value of the wrong type or outside its choices, and for a key that
/// other keys take the meaning from, unless it has its default. Does not open any file that the
/// config names.
Config parse_config(const std::string& text, const std::string& source,
                    const std::vector<std::string>& overrides);

/// A config that a run saved, in a checkpoint.
struct SavedConfig {
  Config config;
  /// A key and its value, as in a file, by which it asks for a training that was removed; or empty.
  std::string removed = {};
};

/// The same for such a config: keys without a meaning are let pass, as earlier versions did, and so
/// are keys and values that were removed.
SavedConfig parse_saved_config(const std::string& text, const std::string& source);

/// The config as TOML text, every key present.
std::string to_toml(const Config& config);

/// The same of what was asked for, with what it was resolved to as a comment where that differs.
std::string to_toml(const Config& asked, const Config& resolved);

/// The resolved config as a JSON object text, every key present ("auto" stays a word).
std::string to_json(const Config& config);

/// What another value of a key changes of a training, and of what is left of it. The only list of
/// keys that says so: a restart and an inference ask it.
enum class KeyEffect {
  kShape,       ///< the shapes of trained tensors
  kMeaning,     ///< what the network computes with trained tensors
  kDraw,        ///< what is drawn; the meaning too where it changes the matrix that evaluation uses
  kState,       ///< what a checkpoint keeps of the training beside its weights
  kBatches,     ///< the trajectory, and which vertices the batches of an epoch hold
  kTrajectory,  ///< where training goes from here, nothing of where it is
  kCost,        ///< time, memory, place and length alone; or, of a file, what digests tell
};

/// "shape", "meaning", ...
const char* name_of(KeyEffect effect);

/// A key whose values differ between two configs, as they would stand in a file. Keys that have no
/// meaning in either are left out.
struct KeyDifference {
  std::string name, first, second;
  KeyEffect effect;
};
std::vector<KeyDifference> differing_keys(const Config& first, const Config& second);

/// A number beyond what is usual, by which a training may diverge.
struct UnusualKey {
  std::string name;
  double value = 0, usual = 0;
  bool too_small = false;

  double excess() const { return too_small ? usual / value : value / usual; }
};

/// Those of the keys that have a meaning, the furthest beyond first.
std::vector<UnusualKey> unusual_keys(const Config& config);

/// `config` with the value that a key has in `other`.
Config with_key_of(Config config, const std::string& key, const Config& other);

/// One line per key: name, default, meaning. For `espalier help config`.
std::string describe_config_keys();

/// Parses "8GiB", "500MB", "1e9", ... into bytes. Throws UserError(kUsage) naming `key`.
std::int64_t parse_bytes(const std::string& text, const std::string& key);

/// run.cache_memory in bytes; 0 where there is none.
std::int64_t cache_memory(const RunConfig& run);

}  // namespace espalier

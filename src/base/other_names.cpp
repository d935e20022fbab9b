// A name is looked up whole ("model.type"), then by its last part ("lr" of "optimizer.lr"): first
// among the keys of other sections, then here. Capitals and hyphens do not count.
#include "config_keys.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace espalier {

namespace {

struct Meaning {
  const char* answer;              // a key, or a sentence with a blank
  std::vector<const char*> names;  // in small letters, _ for -
};

constexpr const char* kRanks = "the launcher says how many ranks there are: mpirun -np N";

const std::vector<Meaning>& meanings() {
  static const std::vector<Meaning> table = {
      {"graph.file",
       {"data", "dataset", "data_path", "data_dir", "dataset_path", "graph", "graph_path", "root",
        "graph.name", "graph.path", "graph.dataset", "dataset.name", "dataset.path", "data.name",
        "data.path"}},
      {"graph.feature_norm", {"normalize_features", "feature_normalization", "feat_norm", "norm_features"}},
      {"graph.order", {"partition", "part_config", "partition_file", "ordering"}},
      {"grid.replication", {"copies", "replicas"}},
      {"sampler.kind",
       {"sampler", "sampling", "sampler_type", "sampler_name", "sampler.type", "sampler.name"}},
      {"sampler.fanout",
       {"num_neighbors", "num_neighbours", "n_neighbors", "neighbors", "fan_out", "fanouts", "fan_outs",
        "neighbor_sizes", "num_samples", "sample_sizes"}},
      {"sampler.batch_size",
       {"batch", "bs", "batchsize", "minibatch_size", "mini_batch_size", "train_batch_size"}},
      {"sampler.weighted", {"edge_weight", "edge_weights", "use_weights", "use_edge_weight", "prob"}},
      {"model.kind",
       {"model", "arch", "architecture", "gnn", "gnn_type", "conv", "conv_type", "layer_type", "model_type",
        "model_name", "model.type", "model.name"}},
      {"model.hidden",
       {"hidden_channels", "hidden_dim", "hidden_dims", "hidden_size", "hidden_units", "hidden_features",
        "hidden_feats", "hid_dim", "num_hidden", "n_hidden", "nhid", "dim_inner", "dim_h", "width"}},
      {"model.layers", {"num_layers", "n_layers", "nlayers", "num_gnn_layers", "depth"}},
      {"model.heads", {"num_heads", "n_heads", "nheads", "nhead", "attention_heads"}},
      {"model.output_heads", {"out_heads", "num_out_heads", "n_out_heads"}},
      {"model.aggregator", {"aggr", "agg", "aggregate", "aggregation", "aggregator_type", "pooling"}},
      {"model.dropout", {"drop", "drop_rate", "dropout_rate", "dropout_prob", "model.p"}},
      {"model.input_dropout", {"feat_drop", "input_drop", "in_dropout", "in_drop"}},
      {"model.attention_dropout", {"attn_drop", "attn_dropout", "attention_drop", "att_dropout"}},
      {"model.activation", {"act", "act_fn", "activation_fn", "nonlinearity"}},
      {"model.normalize",
       {"norm", "normalization", "batch_norm", "batchnorm", "bn", "layer_norm", "layernorm"}},
      {"model.residual", {"skip", "skip_connection", "skip_connections", "res", "residuals"}},
      {"model.jumping", {"jk", "jk_mode", "jumping_knowledge"}},
      {"model.bases", {"num_bases", "n_bases"}},
      {"model.embedding",
       {"embedding_dim", "embed_dim", "emb_dim", "embedding_size", "embed_size", "emb_size"}},
      {"model.edge_features", {"edge_attr", "edge_dim", "edge_feats", "use_edge_features"}},
      {"train.task", {"loss", "loss_fn", "criterion", "multilabel", "multi_label"}},
      {"train.metric", {"eval_metric", "monitor"}},
      {"train.class_weights", {"class_weight"}},
      {"train.epochs",
       {"epoch", "num_epochs", "n_epochs", "nepochs", "max_epochs", "max_epoch", "num_train_epochs"}},
      {"train.learning_rate", {"lr", "base_lr", "init_lr", "initial_lr", "learningrate", "eta"}},
      {"train.optimizer", {"opt", "optim", "optimiser", "optimizer.type", "optimizer.name"}},
      {"train.embedding_rate", {"embedding_lr", "sparse_lr", "emb_lr"}},
      {"train.lr_schedule", {"scheduler", "lr_scheduler", "lr_policy", "lr_decay_style"}},
      {"train.lr_warmup", {"warmup", "warmup_epochs", "lr_warmup_epochs"}},
      {"train.lr_step", {"step_size", "lr_step_size", "decay_every"}},
      {"train.lr_decay", {"gamma", "lr_gamma", "decay_rate", "lr_decay_rate"}},
      {"train.weight_decay", {"wd", "l2", "l2_reg", "l2_regularization", "decay", "reg"}},
      {"train.early_stop", {"patience", "early_stopping", "early_stop_patience"}},
      {"train.seed", {"random_seed", "random_state", "rng_seed", "manual_seed"}},
      {"train.batches_per_step",
       {"accumulation_steps", "accumulate_grad_batches", "gradient_accumulation_steps", "grad_accum"}},
      {"train.reproducible", {"deterministic"}},
      {"train.eval_every",
       {"eval_interval", "eval_freq", "eval_period", "eval_steps", "evaluate_every", "val_every"}},
      {"train.precision", {"amp", "fp16", "bf16", "dtype", "mixed_precision"}},
      {"run.device", {"gpu", "gpus", "use_gpu", "cuda", "use_cuda", "accelerator", "devices", "num_gpus"}},
      {"run.threads",
       {"workers", "num_workers", "n_workers", "num_threads", "n_threads", "nthreads", "omp_num_threads",
        "cores", "cpus"}},
      {"run.prefetch_steps", {"prefetch", "prefetch_factor"}},
      {"run.restart",
       {"resume", "resume_from", "resume_from_checkpoint", "checkpoint", "checkpoint_path", "ckpt",
        "ckpt_path", "load", "auto_resume"}},
      {"run.checkpoint_every",
       {"save_every", "save_interval", "save_freq", "save_steps", "checkpoint_interval", "ckpt_period"}},
      {"run.max_minutes", {"max_time", "time_limit", "walltime"}},
      {"run.memory_limit", {"max_memory", "memory", "mem_limit"}},
      {"output.dir",
       {"out", "out_dir", "outdir", "output", "output_dir", "output_path", "save_dir", "log_dir", "logdir",
        "results_dir"}},
      {kRanks,
       {"nodes", "num_nodes", "ranks", "num_ranks", "nproc", "nprocs", "num_procs", "world_size",
        "nproc_per_node", "num_parts"}},
  };
  return table;
}

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

std::string found_in_table(const std::string& name) {
  for (const auto& [answer, names] : meanings())
    if (std::ranges::find(names, name) != names.end()) return answer;
  return {};
}

// The one key of another section that ends so.
std::string key_that_ends(const std::string& part, const std::vector<std::string>& keys) {
  std::string found;
  for (const auto& key : keys) {
    if (last_part(key) != part) continue;
    if (!found.empty()) return {};
    found = key;
  }
  return found;
}

}  // namespace

std::vector<std::string> meanings_elsewhere() {
  std::vector<std::string> answers;
  for (const auto& [answer, names] : meanings()) answers.push_back(answer);
  return answers;
}

std::string meaning_elsewhere(const std::string& typed, const std::vector<std::string>& keys) {
  auto name = typed.substr(0, 100);
  for (char& letter : name)
    letter = letter == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto part = last_part(name);
  for (const auto& answer : {found_in_table(name), key_that_ends(part, keys), found_in_table(part)})
    if (!answer.empty()) return answer;
  return {};
}

namespace {

const std::vector<Removed>& table() {
  static const std::vector<Removed> all = {
      {"history.kind", "variate", "",
       "raise sampler.fanout, which gives more, with \"none\" or \"replace\" (docs/decisions/026)"},
      {"history.admit", "", "", "leave it out: rows are kept whether a minibatch awaits them or not"},
      {"history.memory", "", "", "write run.cache_memory, which keeps rows on disk, too"},
      {"history.feature_rows", "", "", "write run.cache_policy: \"degree\", \"lru\" or \"belady\""},
      {"output.mllog", "", "", "scripts/mllog.py OUTPUT_DIR prints the lines of a training that is done"},
      {"history.lag", "", "1", "leave it out: a step reads what was there two steps before"},
      {"history.layers", "", "[]", "leave it out: rows of all hidden layers are kept"},
      {"history.saved", "", "", "leave it out: checkpoints hold the cache"},
      {"history.audit", "", "", "leave it out: cached rows are not compared with exact ones any more"},
      {"sampler.batches", "", "",
       "sampler.groups says it: 0 (the default) for uniform batches, as many groups as there were (64, where "
       "none were given) for local ones"},
      {"graph.share_features", "", "", "where it is true write graph.features_on = \"node\""},
      {"grid.latency_us", "", "", "leave it out, or name a schedule in grid.schedule"},
      {"grid.bandwidth_gbs", "", "", "leave it out, or name a schedule in grid.schedule"},
      {"run.exchange_rounds", "", "",
       "leave it out: GPUs that are known to share PCIe links exchange in rounds"},
  };
  return all;
}

const Removed* find(const std::string& name, const std::string& value) {
  const auto found = std::ranges::find_if(
      table(), [&](const Removed& one) { return one.name == name && one.value == value; });
  return found == table().end() ? nullptr : &*found;
}

}  // namespace

const Removed* removed_key(const std::string& name) {
  return find(name, "");
}

const Removed* removed_value(const std::string& name, const std::string& value) {
  return value.empty() ? nullptr : find(name, value);
}

}  // namespace espalier

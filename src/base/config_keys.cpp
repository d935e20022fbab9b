// What a key needs of others to have a meaning stands in its row; the needs are above the table.
#include "config_keys.hpp"

namespace espalier {

namespace {

using enum KeyEffect;

const Needs kSpreadTopology = {"grid.topology", [](const Config& c) { return !c.grid.replicates(); },
                               "\"partitioned\" or \"vertex-cut\""};
const Needs kCutTopology = {"grid.topology", [](const Config& c) { return c.grid.cuts(); }, "\"vertex-cut\""};
bool has_hidden(const Config& c) {
  return c.model.layers > 1 || c.model.jumping != "none";
}
const Needs kRowsAlone = {
    "train.task", [](const Config& c) { return c.model.layers > 0 || c.train.task == "links"; }, "\"links\""};
const Needs kHiddenWidth = {
    "model.layers", [](const Config& c) { return has_hidden(c) || c.train.task == "links"; }, "2 or more"};
const Needs kLayers = {"model.layers", [](const Config& c) { return c.model.layers > 0; }, "1 or more"};
const Needs kHiddenLayers = {"model.layers", has_hidden, "2 or more"};
const Needs kClasses = {"train.task", [](const Config& c) { return c.train.task == "classes"; },
                        "\"classes\""};
const Needs kLabelled = {"train.task", [](const Config& c) { return c.train.task != "links"; },
                         "\"classes\" or \"labels\""};
const Needs kLinks = {"train.task", [](const Config& c) { return c.train.task == "links"; }, "\"links\""};
const Needs kByDegree = {"train.negatives_mode",
                         [](const Config& c) { return c.train.negatives_mode == "degree"; }, "\"degree\""};
const Needs kDistance = {
    "train.score", [](const Config& c) { return c.train.score == "transe" || c.train.score == "rotate"; },
    "\"transe\" or \"rotate\""};
const Needs kMargin = {
    "train.loss",
    [](const Config& c) { return c.train.loss == "margin" || c.train.loss == "self_adversarial"; },
    "\"margin\" or \"self_adversarial\""};
const Needs kSelfAdversarial = {
    "train.loss", [](const Config& c) { return c.train.loss == "self_adversarial"; }, "\"self_adversarial\""};
const Needs kEmbeddings = {"model.embedding", [](const Config& c) { return c.model.embedding > 0; },
                           "above 0"};
const Needs kSgd = {"train.optimizer", [](const Config& c) { return c.train.optimizer == "sgd"; }, "\"sgd\""};
const Needs kSteps = {"train.lr_schedule", [](const Config& c) { return c.train.lr_schedule == "step"; },
                      "\"step\""};
const Needs kOverlap = {"run.overlap", [](const Config& c) { return c.run.overlap; }, "true"};
const Needs kDecay = {"train.weight_decay", [](const Config& c) { return c.train.weight_decay > 0; },
                      "a number above 0"};
const Needs kEvaluations = {"train.eval_every", [](const Config& c) { return c.train.eval_every > 0; },
                            "1 or more"};
const Needs kHistory = {"history.kind", [](const Config& c) { return c.history.kind != "none"; },
                        "\"replace\""};
const Needs kMemory = {"run.cache_memory", [](const Config& c) { return c.run.cache_memory != "0"; },
                       "a number of bytes above 0"};
const Needs kSumsInAnyOrder = {"train.reproducible", [](const Config& c) { return !c.train.reproducible; },
                               "false"};

}  // namespace

const Needs* unmet(const Key& key, const Config& config) {
  for (const auto& needs : key.needs)
    if (!needs.met(config)) return &needs;
  return nullptr;
}

std::vector<Key> bind_keys(Config& c) {
  return {
      Key{"graph.file", kCost, &c.graph.file,
          "the graph file (HDF5) that `espalier import` or `generate` wrote"},
      Key{"graph.feature_norm", kMeaning, &c.graph.feature_norm,
          "none | row (each row sums to 1) | standard (mean 0, deviation 1 per column)"}
          .among({"none", "row", "standard"}),
      Key{"graph.feature_bits", kMeaning, &c.graph.feature_bits,
          "bits of a number of features in memory and on the wire: 32 (as the file has them) | 16 (float16) "
          "| bf16 (bfloat16) | 8, 4, 2, 1 (even steps between the least and the largest of a column)"}
          .among({"32", "16", "bf16", "8", "4", "2", "1"}),
      Key{"graph.features_on", kCost, &c.graph.features_on,
          "where features lie: device | host (of a GPU run) | node (the ranks of a node read each other's "
          "where they lie, in memory that they share; CPU) | disk (they stay in the graph file, and in fewer "
          "bits in files of run.spill; CPU)"}
          .among({"device", "host", "node", "disk"}),
      Key{"graph.verify", kCost, &c.graph.verify,
          "check what is read of the graph file against the digests that stand in it"},
      Key{"graph.target", kMeaning, &c.graph.target,
          "the vertex type to learn on, of a typed graph; none: the only one with labels"},
      Key{"graph.split", kState, &c.graph.split,
          "which of several splits of the graph file: /split/NAME/train; none: /split/train, or the only one"}
          .with({kLabelled}),
      Key{"graph.order", kCost, &c.graph.order,
          "an order of the graph that `espalier partition` wrote: who owns which vertex; none: ranges of "
          "ids"},
      Key{"graph.cut", kCost, &c.graph.cut,
          "parts of the edges that `espalier partition --edges` wrote: which rank holds which entry of A"}
          .with({kCutTopology}),
      Key{"grid.replication", kCost, &c.grid.replication,
          "c: how many ranks hold each block row; divides the number of ranks; auto: by memory"}
          .from(1),
      Key{"grid.topology", kCost, &c.grid.topology,
          "partitioned: A is spread over the grid, by rows; vertex-cut: by graph.cut, so that a row may lie "
          "with several ranks; replicated: every rank holds A"}
          .among({"partitioned", "vertex-cut", "replicated"}),
      Key{"grid.schedule", kCost, &c.grid.schedule, "how the distributed product P = Q A moves its data"}
          .among({"auto", "staged", "staged-oblivious", "pull", "push"})
          .with({kSpreadTopology}),
      Key{"sampler.kind", kDraw, &c.sampler.kind,
          "the sampling algorithm (`espalier help sample` lists them)"}
          .with({kLayers}),
      Key{"sampler.fanout", kTrajectory, &c.sampler.fanout,
          "picks per vertex (ladies, fastgcn: per layer), first: next to the batch; -1 = all (subgraph: "
          "always)"}
          .from(-1),
      Key{"sampler.relation_fanout", kDraw, &c.sampler.relation_fanout,
          "picks of some relations instead, as [\"author.writes.paper=25,10\"]; 0 leaves a relation out"}
          .with({kLayers}),
      Key{"sampler.batch_size", kBatches, &c.sampler.batch_size,
          "training vertices per minibatch (subgraph: vertices)"}
          .from(1),
      Key{"sampler.bulk", kCost, &c.sampler.bulk,
          "minibatches sampled at once over all ranks, or auto (by memory)"}
          .from(1),
      Key{"sampler.groups", kBatches, &c.sampler.groups,
          "local batches: each of one of so many groups of neighbours in graph.order, whatever the number of "
          "ranks; 0: of seeds of all the graph"}
          .between(0, 1 << 16),
      Key{"sampler.weighted", kMeaning, &c.sampler.weighted,
          "draw in proportion to the entries of A, means are weighted (ladies, fastgcn: weights count in A)"}
          .with({kLayers}),
      Key{"sampler.draw", kTrajectory, &c.sampler.draw,
          "how graphsage draws by weight, by one law: its (inverse transform sampling) | race (exponential "
          "race, whose picks merge from parts of a row)"}
          .among({"its", "race"}),
      Key{"sampler.mode", kDraw, &c.sampler.mode, "variant of ladies and fastgcn: how picks are weighted"}
          .among({"paper", "reference", "debiased"}),
      Key{"sampler.share_batches", kTrajectory, &c.sampler.share_batches,
          "how many batches in a row of labor draw by the same random numbers, so that their picks overlap"}
          .from(1),
      Key{"model.kind", kShape, &c.model.kind,
          "the layers of the network (`espalier help train` says what each is)"}
          .among({"sage", "gcn", "gat", "gin", "rgcn", "rgat", "hgt"})
          .with({kLayers}),
      Key{"model.hidden", kShape, &c.model.hidden, "width of the hidden layers, of links of the last, too"}
          .from(1)
          .with({kHiddenWidth}),
      Key{"model.layers", kShape, &c.model.layers,
          "number of layers; 0: each vertex has its own row only (train.task = links)"}
          .between(0, 64)
          .with({kRowsAlone}),
      Key{"model.dropout", kTrajectory, &c.model.dropout, "probability that a hidden value is dropped"}
          .between(0, 0.999),
      Key{"model.input_dropout", kTrajectory, &c.model.input_dropout,
          "the same for input features; auto: model.dropout for gcn and gat, 0 for the others"}
          .between(0, 0.999),
      Key{"model.activation", kMeaning, &c.model.activation,
          "what stands between layers; auto: elu for gat, relu for the others"}
          .among({"auto", "relu", "elu"})
          .with({kHiddenLayers}),
      Key{"model.bases", kShape, &c.model.bases,
          "matrices that the relations of rgcn share; as many as relations: one for each"}
          .between(1, 256)
          .with({kLayers}),
      Key{"model.edge_features", kShape, &c.model.edge_features,
          "attention (gat, rgat, hgt) reads the features of edges, too"}
          .with({kLayers}),
      Key{"model.embedding", kShape, &c.model.embedding,
          "width of a trainable embedding for each vertex of types without features; 0: one row for all of a "
          "type"}
          .between(0, 65536),
      Key{"model.aggregator", kMeaning, &c.model.aggregator, "what sage makes of the neighbours"}
          .among({"mean", "max", "sum"})
          .with({kLayers}),
      Key{"model.heads", kShape, &c.model.heads,
          "heads of attention in hidden layers, model.hidden / heads wide each, side by side"}
          .between(1, 1024)
          .with({kHiddenLayers}),
      Key{"model.output_heads", kShape, &c.model.output_heads,
          "the same in the last layer, averaged (by hgt side by side)"}
          .between(1, 1024)
          .with({kLayers}),
      Key{"model.attention_dropout", kTrajectory, &c.model.attention_dropout,
          "probability that an edge's weight is dropped; auto: model.dropout for gat, 0 for rgat and hgt"}
          .between(0, 0.999)
          .with({kLayers}),
      Key{"model.residual", kShape, &c.model.residual,
          "add each layer's input to its result, by a learnt matrix where widths differ"}
          .with({kLayers}),
      Key{"model.jumping", kShape, &c.model.jumping,
          "jumping knowledge: learn from the results of all layers, side by side (concat) or the largest "
          "(max)"}
          .among({"none", "concat", "max"})
          .with({kLayers}),
      Key{"model.normalize", kShape, &c.model.normalize, "normalisation between layers"}
          .among({"none", "batch", "layer"})
          .with({kHiddenLayers}),
      Key{"train.task", kMeaning, &c.train.task,
          "what is learnt: classes (one per vertex) | labels (several of 0 or 1 per vertex) | links (edges, "
          "told from others that are made up)"}
          .among({"classes", "labels", "links"}),
      Key{"train.score", kMeaning, &c.train.score,
          "how probable a link is by the rows of its ends (docs/links.md)"}
          .among({"dot", "distmult", "complex", "transe", "rotate", "mlp"})
          .with({kLinks}),
      Key{"train.norm", kMeaning, &c.train.norm, "of the distance that a score is: 1 | 2"}.between(1, 2).with(
          {kLinks, kDistance}),
      Key{"train.loss", kTrajectory, &c.train.loss, "of a link and its negatives (docs/links.md)"}
          .among({"sigmoid", "margin", "softmax", "self_adversarial"})
          .with({kLinks}),
      Key{"train.margin", kTrajectory, &c.train.margin, "how far links and negatives should be apart"}
          .from(0)
          .usual_below([](const Config&) { return 1000.0; })
          .with({kLinks, kMargin}),
      Key{"train.temperature", kTrajectory, &c.train.temperature, "how much more the worst negatives count"}
          .from(0)
          .usual_below([](const Config&) { return 1000.0; })
          .with({kLinks, kSelfAdversarial}),
      Key{"train.negatives", kBatches, &c.train.negatives, "made-up links for each link"}
          .between(1, 1 << 16)
          .with({kLinks}),
      Key{"train.negatives_mode", kBatches, &c.train.negatives_mode,
          "uniform: any vertex that the relation allows | shared: by 64 links | in-batch: ends of other "
          "links | degree: by how many links a vertex has"}
          .among({"uniform", "shared", "in-batch", "degree"})
          .with({kLinks}),
      Key{"train.negatives_power", kBatches, &c.train.negatives_power, "to which degrees are raised there"}
          .between(0, 4)
          .with({kLinks, kByDegree}),
      Key{"train.negatives_filtered", kBatches, &c.train.negatives_filtered,
          "negatives that are links of the training split are drawn again"}
          .with({kLinks}),
      Key{"train.negatives_of", kBatches, &c.train.negatives_of,
          "which end is replaced, in training and ranking: tail | both"}
          .among({"tail", "both"})
          .with({kLinks}),
      Key{"train.ranked_against", kState, &c.train.ranked_against,
          "other vertices that a link is ranked among, where the file gives none; 0: all that the relation "
          "allows"}
          .from(0)
          .with({kLinks}),
      Key{"train.metric", kState, &c.train.metric,
          "what the best weights are chosen by, on the validation split: auto (the first of the task's) | of "
          "classes accuracy, macro_f1 | of labels roc_auc, average_precision, micro_f1, macro_f1 | "
          "of links mrr, hits_1, hits_3, hits_10, hits_50, hits_100, auc, filtered_mrr, filtered_hits_1, "
          "filtered_hits_3, filtered_hits_10, filtered_hits_50, filtered_hits_100"}
          .among({"auto", "accuracy", "macro_f1", "micro_f1", "roc_auc", "average_precision", "mrr", "hits_1",
                  "hits_3", "hits_10", "hits_50", "hits_100", "auc", "filtered_mrr", "filtered_hits_1",
                  "filtered_hits_3", "filtered_hits_10", "filtered_hits_50", "filtered_hits_100"}),
      Key{"train.class_weights", kTrajectory, &c.train.class_weights,
          "how much a seed counts: none | balanced (each class as much as any other)"}
          .among({"none", "balanced"})
          .with({kClasses}),
      Key{"train.label_smoothing", kTrajectory, &c.train.label_smoothing,
          "probability that a label is taken for any class"}
          .between(0, 0.999)
          .with({kClasses}),
      Key{"train.epochs", kCost, &c.train.epochs, "passes over the training examples"}.from(1),
      Key{"train.optimizer", kState, &c.train.optimizer, "adam | sgd (with momentum)"}.among({"adam", "sgd"}),
      Key{"train.learning_rate", kTrajectory, &c.train.learning_rate, "step size"}.from(0).usual_below(
          [](const Config& config) { return config.train.optimizer == "sgd" ? 1.0 : 0.1; }),
      Key{"train.momentum", kTrajectory, &c.train.momentum, "momentum of sgd"}
          .between(0, 1)
          .with({kSgd})
          .usual_below([](const Config&) { return 0.99; }),
      Key{"train.embedding_optimizer", kState, &c.train.embedding_optimizer,
          "adam | adagrad, for the rows that a step reads"}
          .among({"adam", "adagrad"})
          .with({kEmbeddings}),
      Key{"train.embedding_rate", kTrajectory, &c.train.embedding_rate,
          "step size of embeddings; follows train.lr_schedule"}
          .from(0)
          .with({kEmbeddings})
          .usual_below(
              [](const Config& config) { return config.train.embedding_optimizer == "adagrad" ? 1.0 : 0.1; }),
      Key{"train.lr_schedule", kTrajectory, &c.train.lr_schedule, "constant | step | cosine"}.among(
          {"constant", "step", "cosine"}),
      Key{"train.lr_warmup", kTrajectory, &c.train.lr_warmup, "epochs of linear warm-up"}.from(0),
      Key{"train.lr_step", kTrajectory, &c.train.lr_step, "epochs between decays (lr_schedule = step)"}
          .from(1)
          .with({kSteps}),
      Key{"train.lr_decay", kTrajectory, &c.train.lr_decay, "factor of each decay (lr_schedule = step)"}
          .between(0, 1)
          .with({kSteps}),
      Key{"train.clip_norm", kTrajectory, &c.train.clip_norm,
          "the longest that the gradient of all weights, but for trainable embeddings, may be; longer ones "
          "are scaled "
          "down; 0: any length"}
          .from(0),
      Key{"train.average_weights", kTrajectory, &c.train.average_weights,
          "evaluations use, and the best epoch keeps, an exponential average of weights, but for "
          "trainable embeddings, that keeps this share of itself in a step, as 0.999; 0: the weights "
          "themselves"}
          .between(0, 0.999999),
      Key{"train.weight_decay", kTrajectory, &c.train.weight_decay,
          "L2 penalty added to the gradient of weight matrices"}
          .from(0)
          .usual_below([](const Config&) { return 0.1; }),
      Key{"train.weight_decay_on", kTrajectory, &c.train.weight_decay_on, "which layers decay"}
          .among({"all", "first"})
          .with({kDecay}),
      Key{"train.early_stop", kCost, &c.train.early_stop,
          "stop after so many evaluations without a better validation metric; 0 = never"}
          .from(0)
          .with({kEvaluations}),
      Key{"train.seed", kBatches, &c.train.seed, "the seed of everything random in a run"}.from(0),
      Key{"train.batches_per_step", kBatches, &c.train.batches_per_step,
          "minibatches averaged by one optimiser step, or auto (one per rank)"}
          .from(1),
      Key{"train.reproducible", kCost, &c.train.reproducible,
          "reduce gradients in fixed point: bit-identical for every grid"},
      Key{"train.eval_every", kCost, &c.train.eval_every,
          "epochs between exact evaluations; 0 = only after the last"}
          .from(0),
      Key{"train.precision", kTrajectory, &c.train.precision,
          "what products of dense matrices round their factors to: fp32 | bf16 | on a GPU tf32"}
          .among({"fp32", "tf32", "bf16"}),
      Key{"train.sparse_products", kTrajectory, &c.train.sparse_products,
          "who multiplies by blocks on a GPU: own (the sums of the CPU, bit for bit) | cusparse"}
          .among({"own", "cusparse"})
          .with({kSumsInAnyOrder}),
      Key{"history.kind", kTrajectory, &c.history.kind,
          "replace: rows of hidden layers that have stopped changing are read from a cache, not computed"}
          .among({"none", "replace"}),
      Key{"history.p_grad", kTrajectory, &c.history.p_grad,
          "share of a layer's needed rows, those with the smallest gradients, that may stay in the cache"}
          .between(0, 1)
          .with({kHistory}),
      Key{"history.recompute", kTrajectory, &c.history.recompute,
          "share of the rows that could be read that is computed all the same; gradients through them count "
          "1 / share"}
          .between(0, 1)
          .with({kHistory})
          .usual_above(0.01),
      Key{"history.t_stale", kTrajectory, &c.history.t_stale,
          "how many steps old a row may be when it is read"}
          .from(0)
          .with({kHistory}),
      Key{"history.start", kTrajectory, &c.history.start, "the step from which on the cache is used"}
          .from(0)
          .with({kHistory}),
      Key{"history.scope", kTrajectory, &c.history.scope,
          "grid: one cache for all ranks | lane: one for each of a step's batches"}
          .among({"grid", "lane"})
          .with({kHistory}),
      Key{"history.stored", kTrajectory, &c.history.stored, "how rows are kept, and sent"}
          .among({"fp32", "fp16", "uint8"})
          .with({kHistory}),
      Key{"history.entries", kTrajectory, &c.history.entries,
          "the most rows that a cache holds, of all layers and ranks; 0: as many as come"}
          .from(0)
          .with({kHistory}),
      Key{"history.draw", kTrajectory, &c.history.draw,
          "all: minibatches are sampled, in bulk and ahead, then pruned | needed: what is pruned is never "
          "drawn"}
          .among({"all", "needed"})
          .with({kHistory}),
      Key{"run.device", kCost, &c.run.device, "where to compute"}.among({"auto", "cpu", "cuda"}),
      Key{"run.threads", kCost, &c.run.threads,
          "threads per rank, or auto (OMP_NUM_THREADS, SLURM_CPUS_PER_TASK, or this rank's share of the "
          "cores)"}
          .between(1, 4096),
      Key{"run.memory_limit", kCost, &c.run.memory_limit,
          "bytes per rank, as 8GiB or 500MB, or auto (the node's memory / ranks on it)"},
      Key{"run.memory_check", kCost, &c.run.memory_check,
          "what needs more than run.memory_limit: refuse | warn, and go on"}
          .among({"refuse", "warn"}),
      Key{"run.spill", kCost, &c.run.spill,
          "a folder on a disk of the node, for rows of hidden layers while all vertices are evaluated or "
          "inferred, and for features on disk in fewer bits; empty: those of evaluation go to output.dir "
          "where "
          "memory ends"},
      Key{"run.cache_memory", kCost, &c.run.cache_memory,
          "bytes per rank, as 512MiB, of history and of copies of features: what history leaves keeps rows "
          "that are on disk, then those of other ranks, which need not be read or sent again; 0: none"},
      Key{"run.cache_policy", kCost, &c.run.cache_policy,
          "which copies: degree (of rows with the most entries in A) | lru (used last) | belady (next to be "
          "used, of the minibatches that are sampled)"}
          .among({"degree", "lru", "belady"})
          .with({kMemory}),
      Key{"run.overlap", kCost, &c.run.overlap,
          "train: sample and fetch ahead while a step computes; takes another run.threads cores per rank"},
      Key{"run.prefetch_steps", kCost, &c.run.prefetch_steps,
          "how many steps after the one that computes have their rows under way; each takes its memory"}
          .between(1, 1000)
          .with({kOverlap}),
      Key{"run.checkpoint_every", kCost, &c.run.checkpoint_every,
          "epochs between checkpoints; 0 = none by epochs"}
          .from(0),
      Key{"run.checkpoint_minutes", kCost, &c.run.checkpoint_minutes,
          "minutes between checkpoints; 0 = none by time"}
          .from(0),
      Key{"run.restart", kCost, &c.run.restart,
          "auto (go on from the newest checkpoint in output.dir, if any) | never (begin anew, removing them) "
          "| the path of a checkpoint or of a folder of them"},
      Key{"run.max_minutes", kCost, &c.run.max_minutes,
          "save a checkpoint and end (exit code 5) before so many minutes have passed; 0 = no limit"}
          .from(0),
      Key{"run.stall_minutes", kCost, &c.run.stall_minutes,
          "say where each rank is when no step finishes (before the first: nothing moves) for so long, end "
          "after twice as long; 0 = never"}
          .from(0),
      Key{"output.dir", kCost, &c.output.dir, "folder for report.json, metrics.csv and the resolved config"},
  };
}

}  // namespace espalier

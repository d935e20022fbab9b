#!/usr/bin/env python3
"""Knowledge-graph embeddings (model.layers = 0) beside PyKEEN's: UMLS, Nations, Kinships, which come with its package.

    build/peers/venv/bin/python bench/peers/pykeen_links.py [--program build/cpu/espalier] [--threads 2] [--seeds 3]

Checked first, on each data set: of Espalier's own scores of all candidates of the test triples, PyKEEN's rank-based evaluator and
OGB's (ogbl-biokg) find ranks whose metrics are those in report.json, to 1e-9. Then both train DistMult, ComplEx, TransE and RotatE alike: as many numbers
for an entity and a relation, Adam at one rate, batches, epochs, negatives of either end for each triple, loss (self-adversarial
softmax weights, one margin and temperature). Printed: filtered MRR and Hits@10 (both ends, realistic ranks) of the last
weights, means over seeds, and seconds of an epoch, evaluation apart, medians over seeds.

What stays different: PyKEEN draws which end of a negative is replaced, here each end has half of them; its TransE keeps entities at length 1.

Exit codes: 0 done, 1 a check failed, 2 usage, 77 PyKEEN, OGB or h5py is missing.
"""

import argparse
import csv
import json
import logging
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

try:
    import h5py
    import pykeen.datasets
    import torch
    from ogb.linkproppred import Evaluator
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.pipeline import pipeline
except ImportError as missing:
    print(f"missing: {missing}")
    sys.exit(77)

# Ours, PyKEEN's, numbers of an entity that make one of PyKEEN's dimensions, keys of ours, margin, further arguments.
MODELS = (("distmult", "DistMult", 1, (), 1.0, {}),
          ("complex", "ComplEx", 2, (), 1.0, {}),
          ("transe", "TransE", 1, ("train.norm=1",), 3.0, {"scoring_fct_norm": 1}),
          ("rotate", "RotatE", 2, ("train.norm=2",), 3.0, {}))
WIDTH, NEGATIVES, BATCH, RATE = 64, 8, 256, 0.01
METRICS = {"filtered_mrr": "both.realistic.inverse_harmonic_mean_rank", "filtered_hits_10": "both.realistic.hits_at_10"}


def run(program, *arguments):
    done = subprocess.run([program, "-q", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(1)


class Ours:
    """A data set's graph file, and trainings of it."""

    def __init__(self, options, data, folder):
        self.options, self.graph, self.output, self.folder = options, folder / "graph.h5", folder / "out", folder
        for split in (data.training, data.validation, data.testing):
            labels = data.training.entity_id_to_label, data.training.relation_id_to_label
            lines = [f"{labels[0][h]}\t{labels[1][r]}\t{labels[0][t]}\n" for h, r, t in split.mapped_triples.tolist()]
            name = "train" if split is data.training else "valid" if split is data.validation else "test"
            (folder / f"{name}.txt").write_text("".join(lines))
        run(options.program, "import", "triples", *(word for name in ("train", "valid", "test") for word in (f"--{name}", folder / f"{name}.txt")),
            "-o", self.graph, "--overwrite")

    def keys(self, score, more, margin, seed, epochs):
        return (f"graph.file={self.graph}", f"output.dir={self.output}", "run.restart=never", f"run.threads={self.options.threads}",
                "model.layers=0", f"model.embedding={WIDTH}", "train.task=links", f"train.score={score}", "train.loss=self_adversarial",
                f"train.margin={margin}", f"train.negatives={NEGATIVES}", "train.negatives_of=both", f"train.learning_rate={RATE}", f"train.embedding_rate={RATE}",
                f"sampler.batch_size={BATCH}", f"train.epochs={epochs}", f"train.eval_every={epochs}", f"train.seed={seed}", *more)

    def train(self, *arguments):
        """(report, the keys of the run)"""
        keys = self.keys(*arguments)
        (self.folder / "job.toml").write_text("")
        run(self.options.program, "train", self.folder / "job.toml", *keys, "--overwrite")
        with open(self.output / "report.json", encoding="utf-8") as file:
            return json.load(file), keys

    def score(self, keys, lines):
        asked, found = self.folder / "asked.txt", self.folder / "found.csv"
        asked.write_text(lines)
        run(self.options.program, "infer", self.folder / "job.toml", *keys, "--checkpoint", self.output / "weights.h5", "--links", asked, "-o", found,
            "--overwrite")
        with open(found, newline="", encoding="utf-8") as file:
            return np.array([float(row["score"]) for row in csv.DictReader(file)], np.float32)


def read_links(path):
    with h5py.File(path) as file:
        return [np.stack([file[f"links/{split}/{name}"][:] for name in ("head", "relation", "tail")], 1) for split in ("train", "valid", "test")]


def check_evaluators(ours, data):
    """That PyKEEN and OGB judge our scores as we do; how far off they are at most."""
    report, keys = ours.train("complex", (), 1.0, 0, 10)
    splits = read_links(ours.graph)
    with h5py.File(ours.graph) as file:
        entities = [name.decode() for name in file["types/entity/ids"][:]]
        relations = [name.decode() for name in file["links/relations"][:]]
    n, test = len(entities), splits[2]
    lines = [(entities[v] if end == 0 else entities[h], relations[r], entities[t] if end == 0 else entities[v])
             for h, r, t in test for end in (0, 1) for v in range(n)]
    scores = ours.score(keys, "".join("\t".join(line) + "\n" for line in lines)).reshape(len(test), 2, n)
    every = np.concatenate(splits)
    evaluator, ogb = RankBasedEvaluator(), Evaluator(name="ogbl-biokg")
    positive, negative = [], []
    for end, target in ((0, "head"), (1, "tail")):
        fixed = [1, 2 - 2 * end]
        for k, triple in enumerate(test):
            true = triple[2 * end]
            known = every[(every[:, fixed] == triple[fixed]).all(1), 2 * end]
            row = torch.from_numpy(scores[k, end][None])
            others = row.clone()
            others[0, known] = float("nan")
            others[0, true] = row[0, true]
            evaluator.process_scores_(torch.from_numpy(triple[None]), target, scores=others, true_scores=row[:, true:true + 1].clone())
            positive.append(scores[k, end, true])
            negative.append(np.delete(scores[k, end], true))
    # Both average in float32; of the ranks that they find the metrics are exact.
    filtered = np.concatenate([part for side in ("head", "tail") for part in evaluator.ranks[side, "realistic"]]).astype(np.float64)
    raw = ogb.eval({"y_pred_pos": torch.tensor(np.array(positive)), "y_pred_neg": torch.tensor(np.stack(negative))})
    raw = np.round(2 / raw["mrr_list"].double().numpy()) / 2
    return max(abs(value - report["test"][name])
               for prefix, ranks in (("filtered_", filtered), ("", raw))
               for name, value in ((f"{prefix}mrr", np.mean(1 / ranks)), *((f"{prefix}hits_{k}", np.mean(ranks <= k)) for k in (1, 3, 10, 50, 100))))


def theirs(options, data, model, epochs, seed, margin, width, more):
    result = pipeline(dataset=data, model=model, model_kwargs={"embedding_dim": width, **more}, training_loop="slcwa",
                      loss="nssa", loss_kwargs={"margin": margin, "adversarial_temperature": 1.0}, negative_sampler="basic",
                      negative_sampler_kwargs={"num_negs_per_pos": NEGATIVES}, optimizer="Adam", optimizer_kwargs={"lr": RATE},
                      training_kwargs={"num_epochs": epochs, "batch_size": BATCH, "use_tqdm": False, "use_tqdm_batch": False},
                      evaluation_kwargs={"use_tqdm": False}, random_seed=seed, device="cpu")
    return result.train_seconds / epochs, {name: result.get_metric(theirs) for name, theirs in METRICS.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--only", default="", help="a data set")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(options.threads)
    print("| data set | score | filtered MRR, Hits@10 | PyKEEN | s an epoch | PyKEEN | ratio |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in ("Nations", "Kinships", "UMLS"):
        if options.only not in ("", name):
            continue
        data = getattr(pykeen.datasets, name)()
        with tempfile.TemporaryDirectory() as folder:
            ours = Ours(options, data, pathlib.Path(folder))
            off = check_evaluators(ours, data)
            if not off < 1e-9:
                print(f"{name}: metrics of equal scores differ by {off}")
                sys.exit(1)
            for score, model, parts, keys, margin, more in MODELS:
                metrics, seconds = {"ours": [], "theirs": []}, {"ours": [], "theirs": []}
                for seed in range(options.seeds):
                    report, _ = ours.train(score, keys, margin, seed, options.epochs)
                    metrics["ours"].append([report["test"][metric] for metric in METRICS])
                    seconds["ours"].append(statistics.median(epoch["seconds"]["total"] - epoch["seconds"].get("evaluate", 0)
                                                             for epoch in report["epochs"]))
                    of_epoch, found = theirs(options, data, model, options.epochs, seed, margin, WIDTH // parts, more)
                    metrics["theirs"].append([found[metric] for metric in METRICS])
                    seconds["theirs"].append(of_epoch)
                cells = [", ".join(f"{value:.3f}" for value in np.mean(metrics[who], 0)) for who in metrics]
                spans = [f"{statistics.median(seconds[who]):.4f}" for who in seconds]
                ratio = statistics.median(seconds["theirs"]) / statistics.median(seconds["ours"])
                print(f"| {name} | {model} | {cells[0]} | {cells[1]} | {spans[0]} | {spans[1]} | {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main()

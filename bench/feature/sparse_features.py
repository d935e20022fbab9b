#!/usr/bin/env python3
"""Features of which few numbers are not zero, kept as entries and as a matrix: memory, bytes and seconds of the same job.

    bench/feature/sparse_features.py [--nodes 34493] [--columns 8415] [--filled 0.004] [--ranks 1 2] [KEY=VALUE ...]

Makes a graph of the size of coauthor-physics (14 edges a vertex, 5 classes, words that a class uses oftener), writes its features both
ways, and trains on each. Verifies that the entries give one digest of weights on every number of ranks, and the samples of the matrix.
Prints what a rank holds at most, the bytes that an epoch's fetches moved, and the median seconds of an epoch.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / os.environ.get("ESPALIER", "build/cpu/espalier"))
CLASSES = 5
JOB = ("graph.feature_norm=row", "model.layers=2", "model.hidden=128", "sampler.fanout=[15,10]", "sampler.batch_size=512",
       "train.learning_rate=0.005", "train.batches_per_step=2", "train.reproducible=true", "run.restart=never", "run.checkpoint_every=0")


def make_rows(nodes, columns, filled, labels, random):
    """The columns of each row, ascending: a few more of them of the words of its class."""
    rows = []
    own = np.array_split(random.permutation(columns), CLASSES)
    for label, count in zip(labels, random.binomial(columns, filled, nodes)):
        words = np.where(random.random(count) < 0.08, random.choice(own[label], count), random.integers(0, columns, count))
        rows.append(np.unique(words).astype(np.int32))
    return rows


def make_edges(nodes, labels, random):
    """Both ways; more of them within a class than by chance."""
    of_class = [np.flatnonzero(labels == c) for c in range(CLASSES)]
    source = random.integers(0, nodes, 7 * nodes)
    near = np.array([of_class[c][int(u * len(of_class[c]))] for c, u in zip(labels[source], random.random(len(source)))])
    target = np.where(random.random(len(source)) < 0.4, near, random.integers(0, nodes, len(source)))
    pairs = np.unique(np.concatenate((source * nodes + target, target * nodes + source)))
    return pairs // nodes, pairs % nodes


def write(path, sparse, nodes, columns, rows, edges, labels, part):
    with h5py.File(path, "w") as file:
        file.attrs["format"], file.attrs["version"] = np.bytes_("espalier-graph"), 1
        file["graph/indptr"] = np.concatenate(([0], np.cumsum(np.bincount(edges[0], minlength=nodes))))
        file["graph/indices"] = edges[1].astype(np.int32)
        file["nodes/labels"] = labels.astype(np.int32)
        for k, split in enumerate(("train", "valid", "test")):
            file[f"split/{split}"] = np.flatnonzero(part == k)
        if sparse:
            file["nodes/features/indptr"] = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
            file["nodes/features/indices"] = np.concatenate(rows)
            file["nodes/features/indices"].attrs["columns"] = columns
            file["nodes/features/values"] = np.ones(sum(map(len, rows)), np.float32)
            return
        features = file.create_dataset("nodes/features", (nodes, columns), np.float32)
        for begin in range(0, nodes, 1000):
            piece = np.zeros((min(1000, nodes - begin), columns), np.float32)
            for k in range(len(piece)):
                piece[k, rows[begin + k]] = 1
            features[begin:begin + len(piece)] = piece


def train(config, ranks, words, folder):
    subprocess.run(["mpirun", "-q", "-np", str(ranks), PROGRAM, "-q", "train", config, *words, f"output.dir={folder}", "--overwrite"], check=True)
    return json.loads((pathlib.Path(folder) / "report.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=34493)
    parser.add_argument("--columns", type=int, default=8415)
    parser.add_argument("--filled", type=float, default=0.004)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("keys", nargs="*")
    options = parser.parse_args()
    random = np.random.default_rng(1)
    labels = random.integers(0, CLASSES, options.nodes)
    rows = make_rows(options.nodes, options.columns, options.filled, labels, random)
    edges = make_edges(options.nodes, labels, random)
    part = random.choice(3, options.nodes, p=(0.6, 0.2, 0.2))
    with tempfile.TemporaryDirectory(prefix="espalier-bench-") as folder:
        files = {"matrix": f"{folder}/matrix.h5", "entries": f"{folder}/entries.h5"}
        for kind, path in files.items():
            write(path, kind == "entries", options.nodes, options.columns, rows, edges, labels, part)
        print(f"{options.nodes} vertices, {len(edges[0])} edges, {options.columns} columns, {sum(map(len, rows)) / options.nodes:.1f} numbers in a row, "
              f"{max(map(len, rows))} at most")
        print(f"{'features':>10} {'ranks':>6} {'file MB':>9} {'peak MB':>9} {'fetched MB':>11} {'epoch s':>9} {'evaluation s':>13} {'test':>7}")
        config = pathlib.Path(folder) / "job.toml"
        config.write_text("")
        found = {}
        for kind, path in files.items():
            for ranks in options.ranks:
                report = found[kind, ranks] = train(config, ranks, (*JOB, f"graph.file={path}", f"train.epochs={options.epochs}", *options.keys), f"{folder}/out")
                show(kind, ranks, path, report)
        for (kind, ranks), report in found.items():
            same = found[kind, options.ranks[0]]
            assert report["weights_digest"] == same["weights_digest"], f"{kind}: other weights on {ranks} ranks"
            for ours, theirs in zip(report["epochs"], found["matrix", options.ranks[0]]["epochs"]):
                assert ours["sample_digest"] == theirs["sample_digest"], f"{kind}: other samples on {ranks} ranks"
        print("verified: one digest of weights on all ranks, one of samples for both")


def show(kind, ranks, path, report):
    epochs = report["epochs"]
    evaluation = [epoch["seconds"]["evaluate"] for epoch in epochs]
    training = [epoch["seconds"]["total"] - seconds for epoch, seconds in zip(epochs, evaluation)]
    print(f"{kind:>10} {ranks:>6} {os.path.getsize(path) / 1e6:>9.1f} {report['peak_memory_bytes']['max'] / 1e6:>9.0f} "
          f"{statistics.median(epoch['bytes']['fetch']['total'] for epoch in epochs) / 1e6:>11.1f} {statistics.median(training):>9.2f} "
          f"{statistics.median(evaluation):>13.2f} {report['test']['accuracy']:>7.3f}", flush=True)


if __name__ == "__main__":
    main()

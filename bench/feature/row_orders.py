#!/usr/bin/env python3
"""In which order rows on disk should lie: chunks that are read, by order and by what reads them (GLISP, arXiv 2401.03114, III-D and IV-E).

    bench/feature/row_orders.py GRAPH.. [--chunks 4096] [--share 0.1] [--ranks 4] [--steps 64] [--batch 256] [KEY=VALUE ...]

The orders, of `espalier prepare --relabel`: NS the file's, DS descending degree, PS the clusters of `espalier partition`, PDS by degree within
each. The rows are cut into --chunks chunks, which are read whole, and a memory of --share of those that a rank reads at all keeps some: by FIFO,
LRU, the degrees of their rows (which never go), and by Belady's rule with all known, which no rule beats. What reads them:

    exact      layerwise inference: each rank goes through its vertices in their order, --batch at a time, and reads them and all neighbours
    fanout 10  the same with ten neighbours drawn for each vertex, as the paper infers
    training   an epoch's minibatches of fanout 15, 10, 5 as `espalier sample --write` wrote them, of --steps batches at most, on one rank

Ranks own stretches of the clusters with as many vertices each, in every order. Every order has the same draws, with other numbers. Verifies first
that `prepare --relabel` numbers vertices as is computed here. Prints chunk reads by FIFO relative to NS, and hits: chunks wanted by a batch that
are in memory.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / os.environ.get("ESPALIER", "build/cpu/espalier"))
sys.path.insert(0, str(ROOT / "python"))
from espalier import Minibatches  # noqa: E402

ORDERS = ("NS", "DS", "PS", "PDS")
JOB = ("sampler.kind=graphsage", "sampler.fanout=[15,10,5]", "model.layers=3", "model.hidden=16", "run.threads=1")


def run(*words):
    subprocess.run([PROGRAM, "-q", *map(str, words)], check=True)


class Graph:
    """A graph file without types, and an order of it."""

    def __init__(self, path, folder):
        self.path, self.order = pathlib.Path(path).resolve(), folder / "order.h5"
        with h5py.File(path) as file:
            self.indptr, self.indices = file["graph/indptr"][:], file["graph/indices"][:].astype(np.int32)
            self.train = file["split/train"][:]
        self.nodes, self.degrees = len(self.indptr) - 1, np.diff(self.indptr)
        run("partition", self.path, "-o", self.order)
        with h5py.File(self.order) as file:
            self.clusters = file["cluster"][:].astype(np.int64)

    def orders(self):
        """{name: the old number of each new vertex}"""
        ids = np.arange(self.nodes)
        return {"NS": ids, "DS": np.lexsort((ids, -self.degrees)), "PS": np.lexsort((ids, self.clusters)),
                "PDS": np.lexsort((ids, -self.degrees, self.clusters))}

    def verify(self, folder):
        orders = self.orders()
        for name, relabel in (("DS", "degree"), ("PS", f"order:{self.order}"), ("PDS", f"order-degree:{self.order}")):
            run("prepare", self.path, "-o", folder / "relabelled.h5", "--overwrite", "--relabel", relabel)
            with h5py.File(folder / "relabelled.h5") as file:
                if not np.array_equal(file["nodes/ids"][:], orders[name]):
                    sys.exit(f"{self.path}: --relabel {relabel} is not {name}")

    def parts(self, ranks):
        """Whose each vertex is."""
        ends = np.cumsum(np.bincount(self.clusters))
        return np.minimum((ends[self.clusters] - 1) * ranks // self.nodes, ranks - 1)

    def few_neighbours(self, most, seed=0):
        """(indptr, indices) of so many neighbours at most of each vertex, drawn."""
        rows = np.repeat(np.arange(self.nodes, dtype=np.int32), self.degrees)
        order = np.lexsort((np.random.default_rng(seed).random(len(rows), dtype=np.float32), rows))
        kept = order[np.arange(len(rows)) - self.indptr[rows] < most]
        return np.append(0, np.cumsum(np.minimum(self.degrees, most))), self.indices[kept]


def sweeps(order, indptr, indices, parts, ranks, batch, chunk_of):
    """Of each rank a list of batches, each the chunks that it wants, ascending."""
    for rank in range(ranks):
        mine = order[parts[order] == rank]
        steps = []
        for begin in range(0, len(mine), batch):
            of = mine[begin:begin + batch]
            sizes = indptr[of + 1] - indptr[of]
            places = np.repeat(indptr[of] - np.append(0, np.cumsum(sizes)[:-1]), sizes) + np.arange(sizes.sum())
            wanted = np.zeros(chunk_of.max() + 1, bool)
            wanted[chunk_of[of]] = wanted[chunk_of[indices[places]]] = True
            steps.append(np.flatnonzero(wanted))
        yield steps


def largest(keys, among, slots):
    """Those of `among` with the largest keys; of as large ones the first."""
    places = np.flatnonzero(among)
    if len(places) > slots:
        places = places[np.argsort(-keys[places], kind="stable")[:slots]]
    held = np.zeros(len(among), bool)
    held[places] = True
    return held


def hits_of(policy, steps, slots, weights):
    """How many of the chunks that the steps want are held; those of one step count as wanted together."""
    chunks = len(weights)
    held, keys, found = np.zeros(chunks, bool), weights.astype(float), 0
    if policy == "belady":
        next_use, following = np.full(chunks, len(steps)), [None] * len(steps)
        for step in range(len(steps) - 1, -1, -1):
            following[step] = next_use[steps[step]]
            next_use[steps[step]] = step
    for step, wanted in enumerate(steps):
        found += int(held[wanted].sum())
        if policy == "fifo":
            missed = wanted[~held[wanted]]
            keys[missed] = step * chunks + np.arange(len(missed))
        elif policy == "lru":
            keys[wanted] = step
        elif policy == "belady":
            keys[wanted] = -following[step]
        held[wanted] = True
        held = largest(keys, held, slots)
    return found


def replay(order, lists, chunk_of, degrees, share):
    """(chunks wanted, chunks read by FIFO, {policy: share of hits}) over all ranks."""
    weights = np.bincount(chunk_of, degrees)
    wanted, hits = 0, dict.fromkeys(("fifo", "lru", "degree", "belady"), 0)
    for steps in lists:
        slots = int(share * len(np.unique(np.concatenate(steps))))
        wanted += sum(map(len, steps))
        for policy in hits:
            hits[policy] += hits_of(policy, steps, slots, weights)
    return wanted, wanted - hits["fifo"], {policy: found / wanted for policy, found in hits.items()}


def recorded(graph, folder, options, keys):
    """The vertices of an epoch's minibatches. A file with as few training vertices as are asked for, spread over all, stands in for a large one."""
    path, most = graph.path, options.steps * options.batch
    if len(graph.train) > most:
        path = folder / "few.h5"
        path.write_bytes(graph.path.read_bytes())
        with h5py.File(path, "a") as file:
            del file["split/train"]
            file["split/train"] = np.sort(np.random.default_rng(0).choice(graph.train, most, replace=False))
        run("digest", path, "--write")
    config = folder / "job.toml"
    config.write_text(f'[graph]\nfile = "{path}"\n')
    run("sample", config, "--write", folder / "batches", f"output.dir={folder}/sampled", *JOB, f"sampler.batch_size={options.batch}", *keys)
    batches = Minibatches(folder / "batches")
    return [batches[k].vertices for k in range(len(batches))]


def compare(path, options, keys):
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        folder = pathlib.Path(folder)
        graph = Graph(path, folder)
        graph.verify(folder)
        size = -(-graph.nodes // options.chunks)
        parts = graph.parts(options.ranks)
        neighbours = {"exact": (graph.indptr, graph.indices), "fanout 10": graph.few_neighbours(10)}
        batches = recorded(graph, folder, options, keys)
        print(f"\n{path}: {graph.nodes:,} rows in {-(-graph.nodes // size):,} chunks of {size}; {options.ranks} ranks, batches of {options.batch}, "
              f"{len(batches)} of training; memory of {options.share:.0%} of the chunks\n\n"
              f"{'':12}{'':6}{'wanted':>12}{'read':>12}{'of NS':>8}{'fifo':>8}{'lru':>8}{'degree':>8}{'belady':>8}")
        for what in (*neighbours, "training"):
            first = None
            for name, order in graph.orders().items():
                chunk_of = np.empty(graph.nodes, np.int64)
                chunk_of[order] = np.arange(graph.nodes) // size
                lists = ([[np.unique(chunk_of[of]) for of in batches]] if what == "training" else
                         sweeps(order, *neighbours[what], parts, options.ranks, options.batch, chunk_of))
                wanted, read, hits = replay(order, lists, chunk_of, graph.degrees, options.share)
                first = first or read
                print(f"{what if name == 'NS' else '':12}{name:6}{wanted:12,}{read:12,}{read / first:8.2f}"
                      + "".join(f"{found:8.2f}" for found in hits.values()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--chunks", type=int, default=4096)
    parser.add_argument("--share", type=float, default=0.1, help="of the chunks that a rank reads at all, in memory")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--folder", help="for what is made on the way")
    options, rest = parser.parse_known_args()
    keys = [word for word in (*options.graphs, *rest) if "=" in word]
    for path in options.graphs:
        if "=" not in path:
            compare(path, options, keys)


if __name__ == "__main__":
    main()

"""The graph file of Espalier as arrays, shorter epochs of it, and whether a sample is one of its graph.

Row v of the file lists the sources of the edges into v: what a sampler draws for v comes from row v. Nothing is
converted here; how a peer wants its graph is the peer's business.
"""

import shutil

import h5py
import numpy as np


class GraphFile:
    def __init__(self, path):
        self.path = path
        with h5py.File(path, "r") as file:
            self.indptr = file["graph/indptr"][:]
            self.indices = file["graph/indices"][:]

    @property
    def nodes(self):
        return len(self.indptr) - 1

    @property
    def edges(self):
        return len(self.indices)


def read_split(path, name):
    with h5py.File(path, "r") as file:
        return file[f"split/{name}"][:]


def read_features(path, standardise):
    """float32 [n, f]; standardised: each column mean 0, deviation 1 over all vertices, a constant column all 0."""
    with h5py.File(path, "r") as file:
        features = file["nodes/features"][:].astype(np.float32)
    if standardise:
        deviation = features.std(axis=0, dtype=np.float64)
        features -= features.mean(axis=0, dtype=np.float64).astype(np.float32)
        features /= np.where(deviation > 0, deviation, 1).astype(np.float32)
    return features


def read_labels(path):
    with h5py.File(path, "r") as file:
        return file["nodes/labels"][:].astype(np.int64)


def cut_training_split(source, target, vertices, seed=0):
    """Copies a graph file and keeps `vertices` of its training vertices, chosen at random: epochs of equal length for
    all tools, that end in time."""
    shutil.copyfile(source, target)
    with h5py.File(target, "r+") as file:
        train = file["split/train"][:]
        kept = np.random.default_rng(seed).permutation(train)[:vertices]
        del file["split/train"]
        file["split/train"] = np.sort(kept)
    return min(vertices, len(train))


def are_edges(graph, destinations, sources):
    """bool per pair, whether the file has that edge: binary searches in the destinations' rows, all at once."""
    low, high = graph.indptr[destinations].copy(), graph.indptr[destinations + 1].copy()
    end = high.copy()
    while np.any(low < high):
        open_ = low < high
        middle = (low + high) // 2
        less = np.zeros(len(low), dtype=bool)
        less[open_] = graph.indices[middle[open_]] < sources[open_]
        low = np.where(open_ & less, middle + 1, low)
        high = np.where(open_ & ~less, middle, high)
    found = low < end
    found[found] = graph.indices[low[found]] == sources[found]
    return found


def count_wrong_picks(graph, fanout, frontier, destinations, sources, exactly=True):
    """What is wrong with one hop of neighbour sampling without replacement: frontier vertices that have not exactly
    min(fanout, in-degree) picks, edges drawn twice, edges that the graph does not have, edges into other vertices.
    Not `exactly`: LABOR, where a vertex has as many on average only, and all where there are no more.

    frontier: ids, each once. destinations, sources: ids, one pair per sampled edge."""
    frontier, destinations, sources = (ids.astype(np.int64) for ids in (frontier, destinations, sources))
    drawn = np.zeros(graph.nodes, dtype=np.int64)
    np.add.at(drawn, destinations, 1)
    degree = graph.indptr[frontier + 1] - graph.indptr[frontier]
    few = exactly | (degree <= fanout)
    wrong = np.count_nonzero(few & (drawn[frontier] != np.minimum(fanout, degree)))
    drawn[frontier] = 0
    wrong += int(drawn.sum())
    wrong += len(destinations) - len(np.unique(destinations * graph.nodes + sources))
    wrong += np.count_nonzero(~are_edges(graph, destinations, sources))
    return int(wrong)

#!/usr/bin/python3
"""Orders to compare those of `espalier partition` with (docs/partitioning.md): they move more bytes, and no bit.

    bench/partition/orders.py data/debian.h5 --method bfs -o bfs.order.h5

bfs     by distance: a breadth-first search of each component, from its first vertex and again from the last that was found, which lies
        at its rim; cut into clusters of as many vertices. Neighbours are near each other, and hubs spoil it.
degree  dealt to the clusters by degree: the vertices of each split apart, most entries first, round after round, forth and back, through
        the clusters in the order of their numbers with bits reversed. Every stretch of the sequence is a small picture of the graph, so
        cuts are even in everything; edges are cut as at random.
random  a permutation, cut as bfs is.

Prints the share of edges between parts for 2, 4, 8, ... parts of as many clusters; `espalier info ORDER` has the balances.
"""

import argparse
import sys

import h5py
import numpy as np

METHODS = ("bfs", "degree", "random")


class Graph:
    def __init__(self, path):
        with h5py.File(path) as file:
            self.indptr, self.columns = file["graph/indptr"][()].astype(np.int64), file["graph/indices"][()].astype(np.int64)
            splits = file["split"]
            splits = splits if "train" in splits else next(iter(splits.values()))
            self.nodes = len(self.indptr) - 1
            self.weights = np.zeros((self.nodes, 5), np.int64)  # vertices, entries, train, valid, test
            self.weights[:, 0], self.weights[:, 1] = 1, np.diff(self.indptr)
            for column, split in enumerate(("train", "valid", "test"), 2):
                if split in splits:
                    self.weights[splits[split][()], column] = 1
        self.rows = np.repeat(np.arange(self.nodes), np.diff(self.indptr))

    def neighbours(self):
        """Of each vertex, ascending: an edge in either direction counts, loops do not."""
        rows, columns = np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows])
        pairs = np.unique(rows * self.nodes + columns)
        rows, columns = np.divmod(pairs, self.nodes)
        rows, columns = rows[rows != columns], columns[rows != columns]
        return np.split(columns, np.searchsorted(rows, np.arange(1, self.nodes)))

    def cut(self, part):
        apart = self.rows != self.columns
        return np.mean(part[self.rows[apart]] != part[self.columns[apart]]) if apart.any() else 0.0


def in_turn(sequence, clusters):
    """As many vertices in each cluster, in the order of the sequence."""
    cluster = np.empty(len(sequence), np.uint16)
    cluster[sequence] = (np.arange(1, len(sequence) + 1) * clusters - 1) // len(sequence)
    return cluster


def bfs(graph, clusters):
    neighbours = [list(row) for row in graph.neighbours()]
    seen, order = [0] * graph.nodes, []

    def visit(start, mark):
        begin = len(order)
        order.append(start)
        seen[start] = mark
        while begin < len(order):
            for u in neighbours[order[begin]]:
                if seen[u] != mark:
                    seen[u] = mark
                    order.append(u)
            begin += 1

    for v in range(graph.nodes):
        if seen[v] == 0:
            begin = len(order)
            visit(v, 1)
            rim = order[-1]
            del order[begin:]
            visit(rim, 2)
    return in_turn(order, clusters)


def degree(graph, clusters):
    kind = graph.weights[:, 2] + 2 * graph.weights[:, 3] + 4 * graph.weights[:, 4]
    order = np.lexsort((-graph.weights[:, 1], kind))
    bits = (clusters - 1).bit_length()
    spread = [k for k in (int(f"{k:0{bits}b}"[::-1], 2) for k in range(1 << bits)) if k < clusters] if bits else [0]
    cluster = np.empty(graph.nodes, np.uint16)
    for number, begin in enumerate(range(0, graph.nodes, clusters)):
        dealt = order[begin:begin + clusters]
        cluster[dealt] = (spread if number % 2 == 0 else spread[::-1])[:len(dealt)]
    return cluster


def write_order(path, graph, cluster, method):
    with h5py.File(path, "w") as file:
        file.attrs.update(format="espalier-order", version=1, method=method)
        file["cluster"] = cluster
        file["weights"] = np.stack([np.bincount(cluster, column).astype(np.int64) for column in graph.weights.T], 1)


def make_order(graph_file, method, clusters, seed=0):
    """The graph, and the cluster of each vertex."""
    graph = Graph(graph_file)
    clusters = min(clusters, graph.nodes)
    if method == "random":
        return graph, in_turn(np.random.default_rng(seed).permutation(graph.nodes), clusters)
    return graph, {"bfs": bfs, "degree": degree}[method](graph, clusters)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--clusters", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0, help="of random")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    graph, cluster = make_order(options.graph, options.method, options.clusters, options.seed)
    write_order(options.output, graph, cluster, options.method)
    clusters, parts = int(cluster.max()) + 1, 2
    while parts <= clusters:
        print(f"{parts:6} parts  cut {graph.cut(cluster * parts // clusters):.3f}")
        parts *= 2


if __name__ == "__main__":
    sys.exit(main())

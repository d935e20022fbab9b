#!/usr/bin/env python3
"""How well links are found by what needs no training: common neighbours, degrees, rows of features.

    python3 bench/peers/link_heuristics.py data/debian_links.h5 [--candidates 100] [--seed 0]

Each link of /links/test is ranked among candidates for its tail, by the mean rank, as `espalier train` with
train.ranked_against does: drawn evenly from all other vertices that could stand there, all different. The graph is A of the file, its edges taken both ways, relations together. Prints MRR, Hits@1, Hits@10.
"""

import argparse

import h5py
import numpy as np
import scipy.sparse as sp


def read(path):
    """(A both ways, ones; rows of features, zeros where a vertex has none; heads, tails, ranges of tails) of a file of links."""
    with h5py.File(path) as file:
        indptr, indices = file["graph/indptr"][:], file["graph/indices"][:].astype(np.int64)
        n = len(indptr) - 1
        rows = np.repeat(np.arange(n), np.diff(indptr))
        a = sp.csr_matrix((np.ones(len(indices), np.float32), (rows, indices)), shape=(n, n))
        a = ((a + a.T) > 0).astype(np.float32)
        offset = file["types/offset"][:] if "types" in file else np.array([0, n])
        names = [name.decode() for name in file["types/name"][:]] if "types" in file else [""]
        tables = [file.get(f"nodes/{name}/features" if name else "nodes/features") for name in names]
        width = max(table.shape[1] for table in tables if table is not None)
        features = np.zeros((n, width), np.float32)
        for table, begin, end in zip(tables, offset, offset[1:]):
            if table is not None:
                features[begin:end, :table.shape[1]] = table[:]
        heads, tails = file["links/test/head"][:], file["links/test/tail"][:]
    type_of_tail = np.searchsorted(offset, tails, side="right") - 1
    return a, features, heads, tails, offset[type_of_tail], offset[type_of_tail + 1]


def others(random, begin, end, tails, count):
    """[links, count]: of each link's range without its tail, all different."""
    places = np.stack([random.choice(size, count, replace=False) for size in end - begin - 1])
    vertices = begin[:, None] + places
    return vertices + (vertices >= tails[:, None])


def scores(a, features, heads, tails):
    """{name: score of each pair}"""
    degrees = np.diff(a.indptr)
    weighed = a @ sp.diags(1 / np.log(np.maximum(degrees, 2)))
    norms = np.linalg.norm(features, axis=1) + 1e-12
    common, adamic = (np.asarray(a[heads].multiply(other[tails]).sum(1)).ravel() for other in (a, weighed))
    dots = np.einsum("ij,ij->i", features[heads], features[tails])
    return {"common neighbours": common, "Adamic-Adar": adamic, "degree of the tail": degrees[tails],
            "product of features": dots, "cosine of features": dots / norms[heads] / norms[tails]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph")
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    a, features, heads, tails, begin, end = read(options.graph)
    of_columns = features[np.linalg.norm(features, axis=1) > 0]
    features = np.where(np.linalg.norm(features, axis=1, keepdims=True) > 0,
                        (features - of_columns.mean(0)) / (of_columns.std(0) + 1e-12), 0)
    random = np.random.default_rng(options.seed)
    found = scores(a, features, heads, tails)
    above, equal = ({name: np.zeros(len(heads)) for name in found} for _ in range(2))
    for candidates in others(random, begin, end, tails, options.candidates).T:
        for name, score in scores(a, features, heads, candidates).items():
            above[name] += score > found[name]
            equal[name] += score == found[name]
    print(f"{len(heads)} links, {options.candidates} candidates each")
    for name in found:
        rank = 1 + above[name] + equal[name] / 2
        print(f"{name:<22} MRR {np.mean(1 / rank):.3f}  Hits@1 {np.mean(rank <= 1):.3f}  Hits@10 {np.mean(rank <= 10):.3f}")


if __name__ == "__main__":
    main()

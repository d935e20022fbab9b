#!/usr/bin/env python3
"""A graph file of the right sizes with nothing in it but degrees, for `espalier plan --draw 0`, which reads no more: indices, features
and labels have their shapes, and take no room. What is planned by it is as good as its degrees: lognormal, of a given mean and
deviation of the logarithm, at random over the vertices; the same for every run.

    scripts/phantom_graph.py papers100m.h5 --nodes 111059956 --edges 3228124712 --features 128 --classes 172 --split 1207179 125265 214338
    espalier plan inputs/papers100m.toml --ranks 64 --draw 0 --machine inputs/machines/two-sockets.toml graph.file=papers100m.h5
"""

import argparse

import h5py
import numpy as np


def degrees_of(nodes, edges, sigma):
    """int64 [nodes], which add up to `edges`."""
    draw = np.random.default_rng(1)
    wanted = np.exp(sigma * draw.standard_normal(nodes, dtype=np.float32))
    wanted *= edges / wanted.sum(dtype=np.float64)
    degrees = np.minimum(wanted, nodes // 2).astype(np.int64)
    missing = edges - int(degrees.sum())  # of what was cut off; everywhere
    degrees += missing // nodes
    degrees[: missing % nodes] += 1
    return degrees


def write(options):
    nodes, edges = options.nodes, options.edges
    with h5py.File(options.output, "w") as file:
        file.attrs.update({"format": "espalier-graph", "version": 1, "name": "phantom", "source": "sizes and degrees alone", "directed": False})
        indptr = np.zeros(nodes + 1, np.int64)
        np.cumsum(degrees_of(nodes, edges, options.sigma), out=indptr[1:])
        file.create_dataset("graph/indptr", data=indptr)
        file.create_dataset("graph/indices", (edges,), np.int32 if nodes < 2**31 else np.int64)
        file.create_dataset("nodes/features", (nodes, options.features), np.float32)
        labels = file.create_dataset("nodes/labels", (nodes,), np.int32)
        labels.attrs["classes"] = options.classes
        order = np.random.default_rng(2).permutation(nodes)
        at = np.cumsum([0, *options.split])
        for name, begin, end in zip(("train", "valid", "test"), at, at[1:]):
            file[f"split/{name}"] = np.sort(order[begin:end])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output")
    for name in ("nodes", "edges", "features", "classes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--split", type=int, nargs=3, required=True, metavar=("TRAIN", "VALID", "TEST"))
    parser.add_argument("--sigma", type=float, default=1.2, help="standard deviation of the logarithm of a degree (%(default)s)")
    write(parser.parse_args())


if __name__ == "__main__":
    main()

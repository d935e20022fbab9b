#!/usr/bin/python3
"""Parts of edges by every method of `espalier partition --edges` and by their peers, beside each other (docs/partitioning.md).

    bench/partition/edge_cuts.py debian=data/debian.h5 amazon=data/amazon.h5 rmat18=data/rmat18.h5 -o bench/results/edge_cuts.json

Symmetric graphs. For 4, 8 and 16 parts, made so and as runs of 64 parts: RF, VB, EB, the fraction of vertices that one part has alone,
the most vertices of a part over the mean of all vertices (what its server holds), seconds of the processor and peak memory of one rank. The peers are
made here:

random  each pair at random.
2d      of a grid of parts, the row of one end's hash and the column of the other's.
dbh     by the hash of the end with fewer pairs (Xie et al. 2014).
metis   the part of the row, of an order by METIS (multilevel, where the program has none): runs of 1,024 clusters.

Verified first: the counts here against sets, of a small graph; then what the program prints against the counts in its file.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

METHODS = ("expansion", "dne", "adadne", "hdrf")
PARTS = (4, 8, 16)
FINE = 64


class Graph:
    def __init__(self, path):
        with h5py.File(path) as file:
            indptr, self.columns = file["graph/indptr"][()].astype(np.int64), file["graph/indices"][()].astype(np.int64)
        self.path, self.nodes = path, len(indptr) - 1
        self.rows = np.repeat(np.arange(self.nodes), np.diff(indptr))
        self.degree = np.diff(indptr)
        self.apart = self.rows != self.columns
        self.low, self.high = np.minimum(self.rows, self.columns), np.maximum(self.rows, self.columns)


def hashed(numbers, seed=0):
    """A random word for each."""
    words = numbers.astype(np.uint64) + np.uint64((0x9E3779B97F4A7C15 * (seed + 1)) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words ^ (words >> np.uint64(31))


def by_chance(graph, parts):
    return hashed(graph.low * graph.nodes + graph.high) % np.uint64(parts)


def by_grid(graph, parts):
    across = max(k for k in range(1, int(parts**0.5) + 1) if parts % k == 0)
    return hashed(graph.low) % np.uint64(across) * np.uint64(parts // across) + hashed(graph.high, 1) % np.uint64(parts // across)


def by_degree(graph, parts):
    first = graph.degree[graph.low] <= graph.degree[graph.high]
    return hashed(np.where(first, graph.low, graph.high)) % np.uint64(parts)


PEERS = {"random": by_chance, "2d": by_grid, "dbh": by_degree}


def folded(entries, rows):
    """The run of each part: fold_parts() of partition/edge_parts.hpp."""
    middle = (2 * np.cumsum(entries) - entries) * rows // (2 * entries.sum())
    runs, last = [], -1
    for p, row in enumerate(middle):
        last = min(max(row, last, rows - (len(entries) - p)), last + 1, rows - 1)
        runs.append(last)
    return np.array(runs)


def runs_of(part, parts, rows):
    return folded(np.bincount(part, minlength=parts), rows)[part]


def measured(rows, columns, part, parts, nodes):
    """Of entries that are no loops. A part has the vertices of both ends."""
    copies = np.unique(np.concatenate([rows, columns]) * parts + np.concatenate([part, part]))
    of_vertex, of_part = np.bincount(copies // parts, minlength=nodes), np.bincount(copies % parts, minlength=parts)
    entries, there = np.bincount(part, minlength=parts), np.count_nonzero(of_vertex)
    balance = lambda of: float(of.max() / of.min()) if of.min() > 0 else float("inf")
    return {"RF": len(copies) / there, "VB": balance(of_part), "EB": balance(entries),
            "interior": float(np.count_nonzero(of_vertex == 1) / there), "largest": float(of_part.max() / there * parts)}


def verify_measured():
    """Against sets, of a small graph."""
    random = np.random.default_rng(1)
    for parts in (1, 3, 8):
        rows, columns, part = random.integers(0, 40, 150), random.integers(0, 40, 150), random.integers(0, parts, 150)
        part[:parts] = np.arange(parts)
        of = [set() for _ in range(40)]
        for v, u, p in zip(rows, columns, part):
            of[v].add(p), of[u].add(p)
        held = [sum(p in parts_of for parts_of in of) for p in range(parts)]
        entries = [sum(q == p for q in part) for p in range(parts)]
        there = sum(len(parts_of) > 0 for parts_of in of)
        expected = {"RF": sum(map(len, of)) / there, "VB": max(held) / min(held), "EB": max(entries) / min(entries),
                    "interior": sum(len(parts_of) == 1 for parts_of in of) / there, "largest": max(held) * parts / there}
        found = measured(rows, columns, part, parts, 40)
        if any(abs(found[name] - expected[name]) > 1e-12 for name in expected):
            sys.exit(f"wrong counts of {parts} parts: {found}, by sets {expected}")


# Its peak counts from where it was forked, so what forks it is small.
MEASURED = """import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("used", used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, flush=True)
sys.exit(status)"""


def run(command):
    """What is printed, seconds of the processor, and peak memory in bytes."""
    ended = subprocess.run([sys.executable, "-c", MEASURED, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text, _, used = ended.stdout.rpartition("used ")
    if ended.returncode != 0:
        raise RuntimeError(text)
    seconds, peak = used.split()
    return text, float(seconds), int(peak)


class Table:
    def __init__(self, program, folder):
        self.program, self.folder, self.lines = program, folder, []

    def add(self, name, graph, method, parts, made_as, part, seconds=None, peak=None):
        if len(part) != len(graph.rows):
            sys.exit(f"{name}: {len(part)} parts of {len(graph.rows)} entries")
        line = {"graph": name, "method": method, "parts": parts, "made as": made_as,
                **measured(graph.rows[graph.apart], graph.columns[graph.apart], part[graph.apart], parts, graph.nodes)}
        if seconds:
            line.update(seconds=round(seconds, 2), peak=peak)
        self.lines.append(line)
        counts = " ".join(f"{key} {line[key]:8.3f}" for key in ("RF", "VB", "EB", "interior", "largest"))
        print(f"{name:8} {method:10} {made_as:4} -> {parts:3}  {counts}", f" {seconds:.1f} s" if seconds else "", flush=True)
        return line

    def add_runs(self, name, graph, method, part):
        for parts in PARTS:
            self.add(name, graph, method, parts, FINE, runs_of(part, FINE, parts))

    def by_program(self, name, graph, method, parts):
        path = self.folder / "parts.h5"
        text, seconds, peak = run([self.program, "partition", graph.path, "--edges", "--method", method, "--parts", parts, "-o", path, "--overwrite"])
        with h5py.File(path) as file:
            part, entries = file["part"][()].astype(np.int64), file["entries"][()]
        if (entries != np.bincount(part, minlength=parts)).any():
            sys.exit(f"{name}: /entries of {parts} parts by {method} are not what /part has")
        line = self.add(name, graph, method, parts, parts, part, seconds=seconds, peak=peak)
        printed = [re.search(rf"([\d.]+|inf) {words}", text)[1] for words in ("of a vertex", "in edges", "in vertices")]
        if printed != [f"{line[key]:.3f}" for key in ("RF", "EB", "VB")]:
            sys.exit(f"{name}, {parts} parts by {method}: the program says {printed}, its file {line}")
        return part

    def by_order(self, name, graph):
        path = self.folder / "order.h5"
        for method in ("metis", "multilevel"):
            try:
                _, seconds, peak = run([self.program, "partition", graph.path, "--method", method, "-o", path, "--overwrite"])
                break
            except RuntimeError as error:
                print(f"{name}: no order by {method}: {str(error).splitlines()[-1]}")
        with h5py.File(path) as file:
            cluster = file["cluster"][()].astype(np.int64)[graph.rows]
        clusters = int(cluster.max()) + 1
        for parts in PARTS:
            self.add(name, graph, method, parts, clusters, runs_of(cluster, clusters, parts), seconds=seconds, peak=peak)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    verify_measured()
    with tempfile.TemporaryDirectory() as folder:
        table = Table(options.program, Path(folder))
        for given in options.graphs:
            name, path = given.split("=", 1)
            graph = Graph(path)
            for method in METHODS:
                for parts in PARTS:
                    table.by_program(name, graph, method, parts)
                table.add_runs(name, graph, method, table.by_program(name, graph, method, FINE))
            for method, part_of in PEERS.items():
                for parts in PARTS:
                    table.add(name, graph, method, parts, parts, part_of(graph, parts).astype(np.int64))
                table.add_runs(name, graph, method, part_of(graph, FINE).astype(np.int64))
            table.by_order(name, graph)
    if options.output:
        commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True).stdout.strip()
        processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
        lines = (json.dumps({key: round(x, 4) if isinstance(x, float) and x < float("inf") else str(x) if isinstance(x, float) else x
                             for key, x in line.items()}) for line in table.lines)
        options.output.write_text(f'{{"commit": "{commit}", "processor": "{processor}", "lines": [\n ' + ",\n ".join(lines) + "\n]}\n")


if __name__ == "__main__":
    sys.exit(main())

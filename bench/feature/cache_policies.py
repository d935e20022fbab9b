#!/usr/bin/env python3
"""Which rows on disk are worth keeping in memory: hits by policy and memory, from the minibatches themselves.

    bench/feature/cache_policies.py GRAPH.. [--share 0.05 0.1 0.2] [--ranks 1] [--picture FILE.png] [KEY=VALUE ...]

Has the program write an epoch's minibatches (`espalier sample --write`), which say what each step reads, and replays that here, by other
code than the program's: rows are kept by FIFO, LRU, degree, and by Belady's rule with all of the epoch known, which no rule beats. Then
trains the epoch with features on disk by each of the program's policies, and verifies that it kept as many rows as the replay (degree, lru,
belady, on one rank: to the row), and on all ranks that `plan` foresaw them. Prints rows found in memory, and bytes read, as shares of those
wanted; the last two columns are of the program.
"""

import argparse
import collections
import heapq
import json
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

FOUND_BY, PIECE = 32, 64  # what the program counts for a row beside itself, and how many it makes room for at once
JOB = ("sampler.kind=graphsage", "sampler.fanout=[15,10,5]", "model.layers=3", "model.hidden=16", "train.epochs=1", "train.batches_per_step=1",
       "train.eval_every=0", "run.checkpoint_every=0", "sampler.batch_size=256", "run.threads=1", "run.restart=never")


def run(ranks, *words):
    subprocess.run(["mpirun", "-q", "-np", str(ranks), PROGRAM, "-q", *words], check=True)


def fifo(reads, slots):
    held, order = set(), collections.deque()
    for read in reads:
        missed = [row for row in read if row not in held]
        yield len(read) - len(missed)
        for row in missed:
            if len(held) >= slots:
                held.discard(order.popleft())
            if slots:
                held.add(row)
                order.append(row)


def lru(reads, slots):
    """Rows of one step count as used together; of as old ones the larger number goes."""
    last, heap = {}, []  # of what is held, by row
    for step, read in enumerate(reads):
        missed = [row for row in read if row not in last]
        yield len(read) - len(missed)
        for row in read:
            if row in last:
                last[row] = step
                heapq.heappush(heap, (step, -row))
        for row in sorted(missed):
            if len(last) >= slots:
                while last.get(-heap[0][1]) != heap[0][0]:
                    heapq.heappop(heap)
                if heap[0][0] == step:
                    break
                del last[-heapq.heappop(heap)[1]]
            last[row] = step
            heapq.heappush(heap, (step, -row))


def degree(reads, slots, degrees):
    """The best of a list are held once they were read; what is free, by whatever came first."""
    best = np.lexsort((np.arange(len(degrees)), -degrees))[:slots]
    rank = {int(row): place for place, row in enumerate(best)}
    held, heap = set(), []
    for read in reads:
        missed = [row for row in read if row not in held]
        yield len(read) - len(missed)
        for row in sorted(missed, key=lambda row: (rank.get(row, slots), row)):
            key = rank.get(row, slots)
            if len(held) >= slots:
                if not slots or -heap[0][0] <= key:
                    break
                held.discard(-heapq.heappop(heap)[1])
            held.add(row)
            heapq.heappush(heap, (-key, -row))


def belady(reads, slots):
    """Whatever is used next is held: what was held before, or came now."""
    following = [None] * len(reads)
    last = {}
    for step in range(len(reads) - 1, -1, -1):
        following[step] = [last.get(row, len(reads)) for row in reads[step]]
        last.update(dict.fromkeys(reads[step], step))
    held, heap = {}, []
    for read, uses in zip(reads, following):
        yield sum(row in held for row in read)
        for row, use in zip(read, uses):
            held[row] = use
            heapq.heappush(heap, (-use, row))
        while len(held) > slots:
            use, row = heapq.heappop(heap)
            if held.get(row) == -use:
                del held[row]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--share", nargs="+", type=float, default=[0.05, 0.1, 0.2], help="of all rows' bytes")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--picture")
    options, rest = parser.parse_known_args()
    keys = [word for word in (*options.graphs, *rest) if "=" in word]
    tables = {path: replay(path, options, keys) for path in options.graphs if "=" not in path}
    if options.picture:
        draw(options, tables)


def replay(path, options, keys):
    """{policy: [share of hits]}, printed."""
    with h5py.File(path) as file:
        nodes, width = file["nodes/features"].shape
        row_bytes = width * file["nodes/features"].dtype.itemsize
        degrees = np.diff(file["graph/indptr"][:])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        config = folder / "job.toml"
        config.write_text(f'[graph]\nfile = "{pathlib.Path(path).resolve()}"\n')
        run(1, "sample", str(config), "--write", str(folder / "batches"), f"output.dir={folder}/sampled", *JOB, *keys)
        batches = Minibatches(folder / "batches")
        reads = [batches[k].vertices.tolist() for k in range(len(batches))]
        wanted = sum(map(len, reads))
        print(f"{pathlib.Path(path).name}: {nodes:,} rows of {row_bytes} B; {len(reads)} steps want {wanted:,}, {len(set().union(*reads)):,} of them different")
        table = {}
        for share in options.share:
            memory = int(share * nodes * (row_bytes + FOUND_BY))
            slots = memory // (PIECE * (row_bytes + FOUND_BY)) * PIECE
            hits = {"fifo": sum(fifo(reads, slots)), "lru": sum(lru(reads, slots)), "degree": sum(degree(reads, slots, degrees)),
                    "belady": sum(belady(reads, slots))}
            print(f"\n{'memory':>10}{'rows':>10}  policy    replayed  {'kept':>8}{'read':>8}")
            for policy, found in hits.items():
                line = f"{share:10.0%}{slots:10,}  {policy:<8}{found / wanted:10.3f}"
                if policy != "fifo":
                    line += program(options.ranks, config, folder, memory, policy, keys, found if options.ranks == 1 else None, wanted, row_bytes)
                print(line, flush=True)
                table.setdefault(policy, []).append(found / wanted)
            print(f"{'':22}belady - lru: {(hits['belady'] - hits['lru']) / wanted:.3f}")
        return table


def program(ranks, config, folder, memory, policy, keys, expected, wanted, row_bytes):
    """What a training kept and read, verified."""
    words = [str(config), f"output.dir={folder}/out", *JOB, "sampler.bulk=1000000", "graph.features_on=disk", f"run.cache_memory={memory}",
             f"run.cache_policy={policy}", *keys]
    run(ranks, "train", *words, "--overwrite")
    found = json.loads((folder / "out/report.json").read_text())["epochs"][0]["disk"]
    run(1, "plan", *words, "--ranks", str(ranks), "--draw", "1000000", "-o", f"{folder}/plan.json")
    planned = json.loads((folder / "plan.json").read_text())["epochs"][0]["disk"]
    found = {name: found[name] for name in planned}
    if abs(found["kept"] - planned["kept"]) > 1e-3 * found["rows"] or found["rows"] != planned["rows"]:
        sys.exit(f"{policy}: plan foresaw {planned}, and it was {found}")
    if expected is not None and (found["rows"], found["kept"]) != (wanted, expected):
        sys.exit(f"{policy}: the program kept {found}, the replay {expected} of {wanted}")
    return f"{found['kept'] / found['rows']:12.3f}{found['bytes'] / (found['rows'] * row_bytes):8.2f}"


def draw(options, tables):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, panels = plt.subplots(1, len(tables), figsize=(3.8 * len(tables), 3), sharey=True, squeeze=False, layout="constrained")
    for axes, (path, table) in zip(panels[0], tables.items()):
        for policy, shares in table.items():
            axes.plot([100 * share for share in options.share], shares, marker="o", label=policy)
        axes.set(title=pathlib.Path(path).stem, xlabel="memory, % of all rows", ylim=(0, 1))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("rows found in memory")
    panels[0][0].legend(frameon=False)
    figure.savefig(options.picture, dpi=110)


if __name__ == "__main__":
    main()

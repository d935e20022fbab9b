#!/usr/bin/env python3
"""Batches of 1,024 to 10,240 seeds: sampling and training beside DGL, the sweep of FastSample's figure 5 (2023, 4.1).

    bash bench/peers/setup.sh
    python3 bench/peers/sweep.py --program build/cpu/espalier [--quick]

The graph is an R-MAT of the size of ogbn-products: scale 21, edge factor 30, symmetrised, 100 features. Two threads,
DGL's within an operation. Each line is the median over epochs of equal length after one warm-up; `x` is DGL's time
over Espalier's. FastSample reports up to 2 for its fused sampling kernel over DGL's, and 1.1 to 1.25 for training, on
ogbn-papers100M and a node of 112 cores. Samples are checked as compare.py does: DGL's picks against the file,
Espalier's digests against those of one thread.

Exit codes: 0 done, 1 something was wrong or failed, 2 usage.
"""

import argparse
import json
import os
import statistics
import sys

import compare
import graph_file
from processes import Failed

SEEDS, TRAINING_SEEDS = 40960, 10240  # in whole batches of each size
SAMPLING = [("15,10,5", (1024, 2048, 4096, 8192, 10240)), ("10,10,10", (1024, 4096, 10240)),
            ("5,5,5", (1024, 4096, 10240))]
TRAINING = [("15,10,5", (1024, 5120, 10240))]
LINE = "{:<8} {:<9} {:>6}  {:>12} {:>12} {:>8} {:>8} {:>7}  {}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("--venv", default="build/peers/venv", help="where setup.sh installed DGL")
    parser.add_argument("--quick", action="store_true", help="a graph of scale 16: does everything run?")
    options = parser.parse_args()
    if not os.access(options.program, os.X_OK):
        parser.error(f"{options.program}: no such program; `make` builds it")
    return options


def by_espalier(options, task, graph, fanout, batch, repeats):
    keys = [f"sampler.fanout=[{fanout}]", f"sampler.batch_size={batch}", "run.threads=2"]
    seeds = len(graph_file.read_split(graph, "train"))
    if task == "train":
        sizes = compare.Sizes(options.quick)
        sizes.train_repeats = repeats
        keys = [*compare.training_keys(sizes), "train.batches_per_step=1", *keys]
        return compare.from_report(compare.run_espalier(options.program, "train", graph, *keys), seeds)
    report = compare.run_espalier(options.program, "sample", graph, *keys, "--epochs", repeats + 1)
    answer = compare.from_report(report, seeds)
    alone = compare.run_espalier(options.program, "sample", graph, *keys, "run.threads=1", "--epochs", 2)
    answer["wrong"] = int(compare.from_report(alone, seeds)["digests"][0] != answer["digests"][0])
    return answer


def by_dgl(options, task, graph, fanout, batch, repeats):
    flags = {"standardise": True, **compare.NETWORK} if task == "train" else {}
    answer = compare.run_peer(options, "DGL", task, graph, 2, 0, fanout=fanout, batch=batch, repeats=repeats, **flags)
    problem = answer.get("missing") or answer.get("failed")
    if problem:
        raise Failed(problem)
    return answer


def edges_per_second(answer):
    return statistics.median(answer["edges"]) / compare.seconds_of(answer) / 1e6


def measure(options, task, graph, fanout, batch, repeats):
    """A line, and whether anything was wrong."""
    ours = by_espalier(options, task, graph, fanout, batch, repeats)
    try:
        theirs = by_dgl(options, task, graph, fanout, batch, repeats)
    except Failed as failed:
        print(LINE.format(task, fanout, batch, f"{compare.seconds_of(ours):.3f}", "-", "-", "-", "-", failed), flush=True)
        return {"espalier": ours, "dgl": str(failed)}, True
    ratio = compare.seconds_of(theirs) / theirs["seeds"] / (compare.seconds_of(ours) / ours["seeds"])
    wrong = ours["wrong"] + theirs["wrong"]
    print(LINE.format(task, fanout, batch, f"{compare.seconds_of(ours):.3f}", f"{compare.seconds_of(theirs):.3f}",
                      f"{edges_per_second(ours):.2f}", f"{edges_per_second(theirs):.2f}", f"{ratio:.2f}",
                      f"{wrong} wrong" if wrong else ""), flush=True)
    return {"task": task, "fanout": fanout, "batch": batch, "espalier": ours, "dgl": theirs, "x": ratio}, wrong > 0


def main():
    options = parse_arguments()
    compare.FOLDER.mkdir(parents=True, exist_ok=True)
    scale, repeats = (16, 2) if options.quick else (21, 3)
    rows, bad = [], False
    print(LINE.format("task", "fanout", "batch", "Espalier s", "DGL s", "M e/s", "M e/s", "x", ""), flush=True)
    for task, seeds, sweep in (("sample", SEEDS, SAMPLING), ("train", TRAINING_SEEDS, TRAINING)):
        graph = compare.make_rmat(options.program, scale, 100, seeds, edge_factor=30)
        for fanout, batches in sweep:
            for batch in batches if not options.quick else (batches[0], batches[-1]):
                try:
                    row, wrong = measure(options, task, graph, fanout, batch, repeats)
                except Failed as failed:
                    row, wrong = {"failed": str(failed)}, True
                    print(f"{task} {fanout} {batch}: {failed}", flush=True)
                rows.append(row)
                bad = bad or wrong
    output = compare.FOLDER.parent / "sweep.json"
    output.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"measured: {os.path.relpath(output)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

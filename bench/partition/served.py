#!/usr/bin/python3
"""Who serves how much: block rows, block rows whose offsets balance edges, an order, and a vertex cut (docs/vertex-cut.md).

    bench/partition/served.py data/debian.h5 --ranks 8

An epoch of `espalier sample` for each layout and sampler. First every layout must sample the same (one digest); then, of the rows or
pieces that ranks were asked for: how many for each row of Q, entries in them, picks made there, each as the most of a rank over the
mean and over the least; bytes between ranks and seconds of sampling (the median of the runs).
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLERS = {
    "uniform, push": ("grid.schedule=push",),
    "uniform, pull": ("grid.schedule=pull",),
    "labor, push": ("sampler.kind=labor", "grid.schedule=push"),
    "ladies, push": ("sampler.kind=ladies", "sampler.fanout=[512, 512, 512]", "grid.schedule=push"),
}
WEIGHTED = {
    "weighted, push": ("sampler.weighted=true", "grid.schedule=push"),
    "weighted, pull": ("sampler.weighted=true", "grid.schedule=pull"),
    "race, push": ("sampler.weighted=true", "sampler.draw=race", "grid.schedule=push"),
}


def run(program, *arguments, ranks=1):
    command = ["mpirun", "--oversubscribe", "-np", str(ranks), str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def layouts(program, graph, folder, ranks, parts):
    run(program, "-q", "partition", graph, "--method", "block", "-o", folder / "block.h5")
    run(program, "-q", "partition", graph, "--method", "multilevel", "-o", folder / "multilevel.h5")
    run(program, "-q", "partition", graph, "--edges", "--parts", ranks, "-o", folder / "cut.h5")
    run(program, "-q", "partition", graph, "--edges", "--parts", parts, "-o", folder / "fine.h5")
    cut = ("grid.topology=vertex-cut",)
    return {"block rows": (), "balanced block rows": (f"graph.order={folder}/block.h5",),
            "multilevel order": (f"graph.order={folder}/multilevel.h5",), f"cut, {ranks} parts": (*cut, f"graph.cut={folder}/cut.h5"),
            f"cut, {parts} parts folded": (*cut, f"graph.cut={folder}/fine.h5")}


def epoch_of(options, graph, keys, folder):
    job = folder / "job.toml"
    job.write_text('[model]\nlayers = 3\n[run]\nthreads = 1\ndevice = "cpu"\n')
    reports = []
    for _ in range(options.runs):
        run(options.program, "-q", "sample", job, f"graph.file={graph}", f"sampler.batch_size={options.batch}", *keys,
            f"output.dir={folder}/out", "--overwrite", ranks=options.ranks)
        reports.append(json.loads((folder / "out" / "report.json").read_text())["epochs"][0])
    seconds = statistics.median(report["seconds"]["total"] for report in reports)
    return reports[0], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--parts", type=int, default=64)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--weighted", action="store_true", help="the graph has weights of edges")
    parser.add_argument("--program", default=ROOT / "build" / "cpu" / "espalier")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        of = layouts(options.program, options.graph, folder, options.ranks, options.parts)
        print(f"{'':<16}{'':<26}{'asked':>10}{'entries':>16}{'picks':>16}{'MB':>9}{'s':>8}")
        for sampler, keys in {**SAMPLERS, **(WEIGHTED if options.weighted else {})}.items():
            digests, rows = set(), None
            for layout, places in of.items():
                epoch, seconds = epoch_of(options, options.graph, (*keys, *places), folder)
                digests.add(epoch["sample_digest"])
                served = epoch["served"]
                rows = rows or served["rows"]["total"]
                pairs = [f"{served[what]['max_over_mean']:.2f} {served[what]['max_over_min']:.2f}" for what in ("entries", "picks")]
                megabytes = epoch["bytes"]["sample"]["total"] / 1e6
                print(f"{sampler:<16}{layout:<26}{served['rows']['total'] / rows:>10.2f}{pairs[0]:>16}{pairs[1]:>16}{megabytes:>9.1f}{seconds:>8.2f}",
                      flush=True)
            if len(digests) != 1:
                sys.exit(f"{sampler}: {len(digests)} digests")
    print("one digest for every layout of a sampler; entries and picks: the most of a rank over the mean, over the least")


if __name__ == "__main__":
    main()

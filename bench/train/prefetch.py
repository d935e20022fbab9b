#!/usr/bin/env python3
"""How much of the waiting for fetched rows run.prefetch_steps hides, where every message takes 5 ms longer.

    bench/train/prefetch.py [--ranks 2] [--message-ms 5] [--repeat 3] [KEY=VALUE ...]

Trains on a generated graph with bench/train/slow_messages.c before the MPI library. Verifies that every depth ends with the same weights
and bytes, then prints the seconds of the stage `fetch` (waiting, and what the main thread does of fetching itself, which the run without
delay shows), medians over repetitions. Hidden: the share of the waiting without overlap that is gone.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / os.environ.get("ESPALIER", "build/cpu/espalier"))
CONFIG = """
[graph]
file = "{folder}/graph.h5"
[sampler]
fanout = [10, 5]
batch_size = 256
[model]
hidden = 128
layers = 2
[train]
epochs = 2
batches_per_step = 2
reproducible = true
eval_every = 0
[run]
threads = 1
device = "cpu"
checkpoint_every = 0
restart = "never"
[output]
dir = "{folder}/out"
"""
DEPTHS = {"no overlap": [], "1": ["run.overlap=true"], "2": ["run.overlap=true", "run.prefetch_steps=2"],
          "4": ["run.overlap=true", "run.prefetch_steps=4"]}


def run(folder, ranks, milliseconds, overrides):
    """The report of one training."""
    env = dict(os.environ, LD_PRELOAD=str(folder / "slow_messages.so"), ESPALIER_MESSAGE_MS=str(milliseconds))
    subprocess.run(["mpirun", "-q", "-np", str(ranks), "-x", "LD_PRELOAD", "-x", "ESPALIER_MESSAGE_MS", PROGRAM, "-q", "train",
                    str(folder / "job.toml"), "--overwrite", *overrides], check=True, env=env)
    return json.loads((folder / "out/report.json").read_text())


def fetching(report):
    return sum(epoch["seconds"]["fetch"] for epoch in report["epochs"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--message-ms", type=float, default=5)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("overrides", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="espalier-bench-") as name:
        folder = pathlib.Path(name)
        subprocess.run(["mpicc", "-O2", "-shared", "-fPIC", "-o", folder / "slow_messages.so", ROOT / "bench/train/slow_messages.c"],
                       check=True)
        subprocess.run([PROGRAM, "-q", "generate", "rmat", "--scale", "15", "--edge-factor", "12", "--symmetrize", "--features", "64",
                        "-o", folder / "graph.h5"], check=True)
        (folder / "job.toml").write_text(CONFIG.format(folder=folder))
        seconds, bits = {}, set()
        for delay in (0, options.message_ms):
            for depth, overrides in DEPTHS.items():
                reports = [run(folder, options.ranks, delay, [*overrides, *options.overrides]) for _ in range(options.repeat)]
                bits |= {(r["weights_digest"], *(e["bytes"]["fetch"]["total"] for e in r["epochs"])) for r in reports}
                seconds[delay, depth] = statistics.median(map(fetching, reports))
        if len(bits) != 1:
            sys.exit(f"wrong: weights or bytes differ: {bits}")
        print(f"{options.ranks} ranks, {reports[0]['epochs'][0]['batches']} batches an epoch; weights and bytes are the same")
        print(f"{'depth':>12}{'fetch s':>10}{'+ ' + format(options.message_ms, 'g') + ' ms':>10}{'waiting':>10}{'hidden':>9}")
        waited = {depth: max(0.0, seconds[options.message_ms, depth] - seconds[0, "no overlap"]) for depth in DEPTHS}
        for depth in DEPTHS:
            hidden = 1 - waited[depth] / waited["no overlap"]
            print(f"{depth:>12}{seconds[0, depth]:>10.3f}{seconds[options.message_ms, depth]:>10.3f}{waited[depth]:>10.3f}{hidden:>9.2f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What is sent less by the same bytes of memory per rank: for features, for embeddings, for both (FreshGNN, figure 14).

    bench/train/budget.py CONFIG [--ranks 4] [--memory 16MiB] [--share 1] [--epochs 3] [KEY=VALUE ...]

Trains the job of CONFIG on --ranks ranks with c = 1. Verifies that samples are the same and that features alone change no weight, then
prints for each bar the bytes of fetch, history's included, of all epochs and of the last one, as shares of those without any cache; rows
of features that were kept, of those of others that were needed; MiB of features and of history at the end; and input rows left.
Embeddings alone have the entries that fill the memory, as it is measured (all, where they take less); with features they have --share of
that number, and features the rest.
Keys of history (t_stale, stored) go behind.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / os.environ.get("ESPALIER", "build/cpu/espalier"))
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def train(options, folder, overrides):
    """The report of one training."""
    subprocess.run(["mpirun", "-q", "-np", str(options.ranks), PROGRAM, "-q", "train", options.config, "grid.replication=1", "run.restart=never", "--overwrite",
                    f"train.epochs={options.epochs}", "train.eval_every=0", "run.checkpoint_every=0", f"output.dir={folder}/out", *overrides],
                   check=True)
    return json.loads((folder / "out/report.json").read_text())


def sent(report):
    """Bytes of all epochs, and of the last."""
    return [sum(epoch["bytes"]["fetch"]["total"] for epoch in epochs) for epochs in (report["epochs"], report["epochs"][-1:])]


def history_bytes(report):
    """The most of a rank, at the end of an epoch."""
    return max(epoch["feature_cache"]["history_bytes"] for epoch in report["epochs"])


def fill(memory, unbounded, embeddings):
    """Entries that take as much, with what waits to be read, and the training with them: `embeddings(n)`, a few times."""
    entries, found = 1 << 15, None
    if history_bytes(unbounded) <= memory:
        return 0, unbounded
    for _ in range(4):
        report = embeddings(entries)
        taken = history_bytes(report)
        if taken <= memory:
            found = entries, report
            if taken > 0.9 * memory:
                break
        entries = max(1, int(0.97 * entries * memory / taken))
    if found is None:
        sys.exit("what waits to be read takes the memory; ask for more")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--memory", default="16MiB")
    parser.add_argument("--share", type=float, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--graph", default="", help="what the picture calls it")
    parser.add_argument("--json", help="where shares of the last epoch go, too, for history_figures.py")
    options, overrides = parser.parse_known_args()
    memory = int(float(options.memory[:-3]) * UNITS[options.memory[-3:]])
    history_keys = [key for key in overrides if key.startswith("history.")]
    job = [key for key in overrides if not key.startswith("history.")]
    keep = f"run.cache_memory={memory}"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        none = train(options, folder, job)
        replace = [*job, "history.kind=replace", *history_keys]
        nothing = "run.cache_memory=1"  # no rows of features, but bytes are reported
        unbounded = train(options, folder, [*replace, nothing])
        entries, embeddings = fill(memory, unbounded, lambda n: train(options, folder, [*replace, nothing, f"history.entries={n}"]))
        print(f"memory {options.memory} per rank, filled by {entries or 'all'} entries", flush=True)
        less = [*replace, f"history.entries={int(options.share * entries)}", keep]
        bars = {"no cache": none,
                "features, degree": train(options, folder, [*job, keep]),
                "features, belady": train(options, folder, [*job, keep, "run.cache_policy=belady"]),
                "embeddings": embeddings,
                "both, degree": train(options, folder, less),
                "both, belady": train(options, folder, [*less, "run.cache_policy=belady"]),
                "embeddings without a bound": unbounded}
    for name, report in bars.items():
        assert [e["sample_digest"] for e in report["epochs"]] == [e["sample_digest"] for e in none["epochs"]], name
        assert not name.startswith("features") or report["weights_digest"] == none["weights_digest"], name
    print(f"{'':28}{'bytes':>8}{'last':>8}{'cached rows served':>19}{'MiB':>8}{'history':>8}{'input rows':>12}")
    for name, report in bars.items():
        last = report["epochs"][-1]
        shares = [ours / theirs for ours, theirs in zip(sent(report), sent(none))]
        cache, history = last.get("feature_cache"), last.get("history")
        served = f"{cache['served'] / cache['needed']:19.3f}{cache['bytes'] / 2**20:8.1f}{cache['history_bytes'] / 2**20:8.1f}" if cache else f"{'':35}"
        left = history["input_rows"] / history["input_rows_of_sample"] if history else 1
        print(f"{name:28}{shares[0]:8.3f}{shares[1]:8.3f}{served}{left:12.3f}", flush=True)

    if options.json:
        last = {name: sent(report)[1] / sent(none)[1] for name, report in bars.items()}
        pathlib.Path(options.json).write_text(json.dumps({"graph": options.graph, "memory": options.memory, "last": last}, indent=1) + "\n")


if __name__ == "__main__":
    main()

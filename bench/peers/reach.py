#!/usr/bin/env python3
"""Seconds of training until the validation accuracy is 0.80 on Debian: Espalier without and with history, PyG, DGL.

    bash bench/peers/setup.sh
    python3 bench/peers/reach.py data/debian.h5 [--program build/cpu/espalier] [--seeds 0 1 2] [--threads 2]

The job of inputs/debian.toml for all: 3 layers of SAGE, hidden 128, dropout 0.3, fanout 15,10,5, Adam at 0.005 falling by
a cosine over 40 epochs. Espalier averages 4 batches of 256 in a step, as that job says; the others, and Espalier once more,
draw one batch of 1024, in which more neighbours are shared: fewer rows for the same seeds. Accuracy is exact, every 5
epochs, and not counted. Seeds alternate between the tools; a line is a run, and at the end stand medians over seeds of
those that got there.

Exit codes: 0 done, 1 something was wrong or failed, 2 usage.
"""

import argparse
import statistics
import sys

import compare
from processes import Failed

EPOCHS, EVERY = 40, 5
HISTORY = {
    "none": (),
    "history 5": ("history.kind=replace", "history.draw=needed", "history.t_stale=5"),
    "none, batch 1024": ("sampler.batch_size=1024", "train.batches_per_step=1"),
    "history 5, batch 1024": ("history.kind=replace", "history.draw=needed", "history.t_stale=5", "sampler.batch_size=1024",
                              "train.batches_per_step=1"),
    "history 20, p_grad 0.5": ("history.kind=replace", "history.draw=needed", "history.t_stale=20", "history.p_grad=0.5"),
}
JOB = ("graph.feature_norm=standard", "sampler.fanout=[15,10,5]", "sampler.batch_size=256", "model.kind=sage",
       "model.hidden=128", "model.layers=3", "model.dropout=0.3", f"train.epochs={EPOCHS}", "train.learning_rate=0.005",
       "train.lr_schedule=cosine", f"train.eval_every={EVERY}", "train.batches_per_step=4", "run.restart=never")
WITHOUT_HISTORY = {
    "bf16, batch 1024": ("sampler.batch_size=1024", "train.batches_per_step=1", 'train.precision="bf16"'),
    "LABOR, batch 1024": ("sampler.batch_size=1024", "train.batches_per_step=1", "sampler.kind=labor"),
    "LABOR, bf16, batch 1024": ("sampler.batch_size=1024", "train.batches_per_step=1", "sampler.kind=labor",
                                'train.precision="bf16"'),
}
OURS = HISTORY | WITHOUT_HISTORY
PEERS = ("PyG", "PyG layered", "DGL", "GraphBolt", *compare.TRAINERS_BF16)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("--venv", default="build/peers/venv", help="where setup.sh installed the peers")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--target", type=float, default=0.80)
    parser.add_argument("--tools", nargs="+", default=[*OURS, *PEERS])
    return parser.parse_args()


def by_espalier(options, tool, seed):
    report = compare.run_espalier(options.program, "train", options.graph, *JOB, *OURS[tool], f"train.seed={seed}",
                                  f"run.threads={options.threads}")
    seconds, points = 0.0, []
    for epoch in report["epochs"]:
        seconds += epoch["seconds"]["total"] - epoch["seconds"].get("evaluate", 0)
        if "valid" in epoch:
            points.append({"epoch": epoch["epoch"], "seconds": seconds, "valid": epoch["valid"]["accuracy"]})
    return {"points": points}


def by_peer(options, tool, seed):
    return compare.run_peer(options, tool, "reach", options.graph, options.threads, 0, batch=1024, hidden=128, dropout=0.3,
                            learning_rate=0.005, repeats=EPOCHS, every=EVERY, target=options.target, seed=seed,
                            standardise=True)


def main():
    options = parse_arguments()
    compare.TIME_LIMIT = 1200
    compare.FOLDER.mkdir(parents=True, exist_ok=True)
    wrong, of_tools = False, {tool: [] for tool in options.tools}
    for seed in options.seeds:
        for tool in options.tools:
            try:
                answer = (by_espalier if tool in OURS else by_peer)(options, tool, seed)
            except Failed as failed:
                answer = {"failed": str(failed)}
            problem = answer.get("missing") or answer.get("failed")
            if problem or answer.get("wrong"):
                print(f"{tool:<24} seed {seed}  {problem or 'wrong picks'}", flush=True)
                wrong = wrong or "missing" not in answer
                continue
            points = answer["points"]
            there = next((point for point in points if point["valid"] >= options.target), None)
            per_epoch = points[-1]["seconds"] / points[-1]["epoch"]
            of_tools[tool].append((there["seconds"] if there else float("inf"), per_epoch))
            said = f"{there['seconds']:7.1f} s, epoch {there['epoch']:>2}" if there else f"never: {points[-1]['valid']:.4f} at the end"
            print(f"{tool:<24} seed {seed}  {said}  ({per_epoch:.2f} s per epoch)", flush=True)
    for tool, runs in of_tools.items():
        if runs:
            print(f"{tool:<24} median {statistics.median(seconds for seconds, _ in runs):.1f} s, "
                  f"{statistics.median(per_epoch for _, per_epoch in runs):.2f} s per epoch, {len(runs)} seeds")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

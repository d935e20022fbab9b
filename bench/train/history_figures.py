#!/usr/bin/env python3
"""What history spares and how far its rows are from exact ones, in one picture (FreshGNN, figures 3, 13 and 14).

    bench/train/history_figures.py measure CONFIG POINTS.json [--epochs 10] [KEY=VALUE ...]
    bench/train/history_figures.py plot POINTS.json [BUDGET.json ...] -o docs/history.png

bench/train/history/ has the points that docs/history-results.md shows.

`measure` trains the job of CONFIG on one rank: without history, with each t_stale and p_grad below (input rows left in the last epoch, the
last validation accuracy), and once with history.audit (cosines of kept rows, by layer and age, at every epoch). It verifies that all draw
the same samples and that p_grad = 0 gives the weights without history. BUDGET.json is what bench/train/budget.py wrote.

`plot` needs matplotlib (Debian: python3-matplotlib). Exit codes: 0 done, 1 something was wrong, 2 usage.
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
T_STALE, P_GRAD = (2, 5, 20, 50, 200), (0.5, 0.9, 1)
# Okabe and Ito's palette.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def train(config, epochs, folder, *overrides):
    subprocess.run([PROGRAM, "-q", "train", config, "run.restart=never", "--overwrite", f"train.epochs={epochs}", f"output.dir={folder}", *overrides], check=True)
    return json.loads((pathlib.Path(folder) / "report.json").read_text())


def measure(options, overrides):
    with tempfile.TemporaryDirectory() as folder:
        def run(every, *more):
            report = train(options.config, options.epochs, folder, f"train.eval_every={every}", *overrides, *more)
            samples = [epoch["sample_digest"] for epoch in report["epochs"]]
            assert samples == run.__dict__.setdefault("samples", samples), f"other samples with {more}"
            return report
        none = run(options.epochs)
        assert run(options.epochs, "history.kind=replace", "history.p_grad=0")["weights_digest"] == none["weights_digest"]
        points = {"epochs": options.epochs, "none": none["epochs"][-1]["valid"]["accuracy"], "keys": [], "ages": []}
        for p_grad in P_GRAD:
            for t_stale in T_STALE:
                last = run(options.epochs, "history.kind=replace", f"history.p_grad={p_grad}", f"history.t_stale={t_stale}")["epochs"][-1]
                left = last["history"]["input_rows"] / last["history"]["input_rows_of_sample"]
                points["keys"].append({"p_grad": p_grad, "t_stale": t_stale, "input_rows": left, "accuracy": last["valid"]["accuracy"]})
                print(points["keys"][-1], flush=True)
        for epoch in run(1, "history.kind=replace", "history.t_stale=50", "history.audit=true")["epochs"]:
            for line in epoch["history"]["held"]:
                points["ages"].append({"epoch": epoch["epoch"], "layer": line["layer"], "ages": line["ages"],
                                       "cosine": line["error"]["cosine"], "error": line["error"]["median"]})
    pathlib.Path(options.points).write_text(json.dumps(points, indent=1) + "\n")


def plot_ages(axes, points):
    for layer, style in ((1, "-"), (2, "--")):
        groups = sorted({tuple(line["ages"]) for line in points["ages"] if line["layer"] == layer})
        for colour, ages in zip(COLOURS, groups):
            line = [(of["epoch"], of["cosine"]) for of in points["ages"] if of["layer"] == layer and tuple(of["ages"]) == ages]
            axes.plot(*zip(*line), style, color=colour, marker=".", label=f"{ages[0]} to {ages[1]} steps" if layer == 1 else None)
    axes.set(xlabel="epoch", ylabel="mean cosine of a kept row and the exact one", title="Kept rows (layer 1 solid, 2 dashed)", ylim=(None, 1))
    axes.legend(fontsize=7)


def plot_keys(axes, points):
    right = axes.twinx()
    for colour, p_grad in zip(COLOURS, sorted({point["p_grad"] for point in points["keys"]})):
        of = [point for point in points["keys"] if point["p_grad"] == p_grad]
        steps = [point["t_stale"] for point in of]
        axes.plot(steps, [point["input_rows"] for point in of], "-", color=colour, marker="o", label=f"p_grad {p_grad}")
        right.plot(steps, [point["accuracy"] for point in of], ":", color=colour, marker="^")
    right.axhline(points["none"], color="grey", linewidth=0.8)
    axes.set(xscale="log", xlabel="t_stale", ylabel="input rows left (solid)", ylim=(0, 1), title="What is spared, and what it costs")
    axes.set_xticks(T_STALE, [str(steps) for steps in T_STALE])
    axes.legend(fontsize=7, loc="lower left")
    right.set_ylabel(f"accuracy after {points['epochs']} epochs (dotted; none: grey)")


def plot_bars(axes, budgets):
    names = ("features, degree", "features, belady", "embeddings", "both, degree", "both, belady")
    width = 0.8 / len(names)
    for k, (name, colour) in enumerate(zip(names, COLOURS)):
        axes.bar([at + (k - 2) * width for at in range(len(budgets))], [budget["last"][name] for budget in budgets], width, color=colour,
                 label=name)
    axes.set_xticks(range(len(budgets)), [f"{budget['graph']}\n{budget['memory']}" for budget in budgets])
    axes.set(xlabel="memory per rank", ylabel="bytes left", title="One budget, four ranks", ylim=(0, 1))
    axes.legend(fontsize=7)


def plot(options):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    points = json.loads(pathlib.Path(options.points).read_text())
    budgets = [json.loads(pathlib.Path(path).read_text()) for path in options.budgets]
    figure, axes = pyplot.subplots(1, 2 + bool(budgets), figsize=(4.6 * (2 + bool(budgets)), 4), layout="constrained")
    plot_ages(axes[0], points)
    plot_keys(axes[1], points)
    if budgets:
        plot_bars(axes[2], budgets)
    figure.savefig(options.output, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    measuring, plotting = commands.add_parser("measure"), commands.add_parser("plot")
    measuring.add_argument("config")
    measuring.add_argument("points")
    measuring.add_argument("--epochs", type=int, default=10)
    plotting.add_argument("points")
    plotting.add_argument("budgets", nargs="*")
    plotting.add_argument("-o", "--output", required=True)
    options, overrides = parser.parse_known_args()
    if options.command == "measure":
        measure(options, overrides)
    elif overrides:
        parser.error(f"what is {overrides[0]}?")
    else:
        plot(options)


if __name__ == "__main__":
    sys.exit(main())

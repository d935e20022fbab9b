#!/usr/bin/env python3
"""What history spares and what it costs, in one picture (FreshGNN, figures 13 and 14).

    bench/train/history_figures.py measure CONFIG POINTS.json [--epochs 10] [KEY=VALUE ...]
    bench/train/history_figures.py plot POINTS.json [BUDGET.json ...] -o docs/history.png

bench/train/history/ has the points that docs/history-results.md shows.

`measure` trains the job of CONFIG on one rank: without history, and with each t_stale and p_grad below (input rows left in the last epoch,
the last validation accuracy). It verifies that all draw the same samples and that p_grad = 0 gives the weights without history. BUDGET.json
is what bench/train/budget.py wrote.

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
        def run(*more):
            report = train(options.config, options.epochs, folder, f"train.eval_every={options.epochs}", *overrides, *more)
            samples = [epoch["sample_digest"] for epoch in report["epochs"]]
            assert samples == run.__dict__.setdefault("samples", samples), f"other samples with {more}"
            return report
        none = run()
        assert run("history.kind=replace", "history.p_grad=0")["weights_digest"] == none["weights_digest"]
        points = {"epochs": options.epochs, "none": none["epochs"][-1]["valid"]["accuracy"], "keys": []}
        for p_grad in P_GRAD:
            for t_stale in T_STALE:
                last = run("history.kind=replace", f"history.p_grad={p_grad}", f"history.t_stale={t_stale}")["epochs"][-1]
                left = last["history"]["input_rows"] / last["history"]["input_rows_of_sample"]
                points["keys"].append({"p_grad": p_grad, "t_stale": t_stale, "input_rows": left, "accuracy": last["valid"]["accuracy"]})
                print(points["keys"][-1], flush=True)
    pathlib.Path(options.points).write_text(json.dumps(points, indent=1) + "\n")


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
    panels = 1 + bool(budgets)
    figure, axes = pyplot.subplots(1, panels, figsize=(4.6 * panels, 4), squeeze=False, layout="constrained")
    plot_keys(axes[0][0], points)
    if budgets:
        plot_bars(axes[0][1], budgets)
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

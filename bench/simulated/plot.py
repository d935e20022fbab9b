#!/usr/bin/python3
"""Tables and pictures of docs/scaling.md from the points that bench/simulated/run.py wrote.

    bench/simulated/plot.py bench/simulated/points.csv --tables        Markdown
    bench/simulated/plot.py bench/simulated/points.csv -o docs         docs/scaling-sampling.png and docs/scaling-fetch.png

The pictures need matplotlib (Debian: python3-matplotlib), the tables nothing.
Exit codes: 0 done, 1 no matplotlib, 2 usage or unusable file.
"""
import argparse
import csv
import os
import sys

# Okabe and Ito's palette, as in scripts/plot_volumes.py: colour, marker.
STYLE = {"staged": ("#0072B2", "s"), "pull": ("#56B4E9", "^"), "push": ("#D55E00", "o")}
NAMES = {"protein": "Protein (degree 149)", "papers": "Papers (degree 14, directed)", "products": "Products (degree 53)"}
NUMBERS = {"p": int, "c": int, "in_flight": int, "scale": int, "features": int, "speed": float, "latency": float, "sample": float,
           "sample_charged": float, "sample_communication": float, "sample_bytes": int, "sample_messages": int, "fetch": float,
           "edges": int, "entries": int, "nodes": int, "input_rows": int, "batches": int, "batch": int}


def read(path):
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row.update({name: kind(row[name]) for name, kind in NUMBERS.items()})
    except (OSError, KeyError, ValueError) as error:
        print(f"plot.py: {path}: {error!r}", file=sys.stderr)
        sys.exit(2)
    return rows


def select(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def usual(rows, graph):
    """The simulated points of a graph with nothing varied."""
    scale = select(rows, graph=graph)[0]["scale"]
    return select(rows, graph=graph, scale=scale, speed=1.0, latency=1.0, in_flight=0, machine="simulated")


def sampled(rows, graph):
    return select(usual(rows, graph), topology="partitioned")


def graphs_of(rows, topology):
    found = {row["graph"] for row in select(rows, topology=topology)}
    return [graph for graph in NAMES if graph in found]


def best(rows):
    return min(rows, key=lambda row: row["sample"])


def best_by_ranks(rows, schedule):
    """The fastest replication at each p."""
    of_schedule = select(rows, schedule=schedule)
    return [best(select(of_schedule, p=p)) for p in sorted({row["p"] for row in of_schedule})]


def efficiency(row, base):
    return base["sample"] * base["p"] / (row["sample"] * row["p"])


# ---- Tables ----------------------------------------------------------------------------------------------------------


def table(head, lines):
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |")
    print()


def ms(seconds):
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def print_sampling(rows, graph):
    points = sampled(rows, graph)
    print(f"{NAMES[graph]}, partitioned, ms an epoch: all, computing, communication; efficiency from p = 4\n")
    lines = []
    for row in sorted(points, key=lambda row: (row["p"], row["c"])):
        if row["schedule"] != "push":
            continue
        line = [row["p"], row["c"]]
        for schedule in ("push", "pull", "staged"):
            here = select(points, p=row["p"], c=row["c"], schedule=schedule)
            base = select(points, p=4, c=1, schedule=schedule)
            if not here or not base:
                line += ["-", "-"]
                continue
            line += [f"{ms(here[0]['sample'])} = {ms(here[0]['sample_charged'])} + {ms(here[0]['sample_communication'])}",
                     f"{efficiency(here[0], base[0]):.2f}"]
        staged = select(points, p=row["p"], c=row["c"], schedule="staged")
        ratio = staged[0]["sample_communication"] / row["sample_communication"] if staged else None
        lines.append(line + [f"1/{ratio:.0f}" if ratio else "-"])
    table(["p", "c", "push", "eff.", "pull", "eff.", "staged", "eff.", "communication, push / staged"], lines)


def print_replicated(rows, graph):
    points = select(usual(rows, graph), topology="replicated")
    print(f"{NAMES[graph]}, replicated graph, ms an epoch\n")
    lines = []
    base = select(points, p=4, c=1)[0]
    for p in sorted({row["p"] for row in points}):
        one = select(points, p=p, c=1)[0]
        copies = max(select(points, p=p), key=lambda row: row["c"])
        lines.append([p, ms(one["sample"]), f"{base['sample'] / one['sample']:.1f} x", ms(one["fetch"]),
                      f"{copies['c']}: {ms(copies['fetch'])}"])
    table(["p", "sampling", "speed-up", "fetch, c = 1", "fetch, c = p/8"], lines)


def print_varied(rows):
    print("Protein, partitioned, `push`: ms an epoch and efficiency from p = 4 under other assumptions\n")
    points = select(rows, graph="protein", topology="partitioned", schedule="push", machine="simulated", in_flight=0)
    scale = points[0]["scale"]
    lines = []
    for speed, latency in ((1.0, 1.0), (2.0, 1.0), (0.5, 1.0), (0.25, 1.0), (1.0, 2.0)):
        here = select(points, speed=speed, latency=latency, scale=scale)
        base = select(here, p=4, c=1)
        if not base:
            continue
        line = [f"{speed:g} x", f"{rate_of(base[0]):.1f}", f"{latency:g} x", ms(base[0]["sample"])]
        for c in (8, 32):
            found = select(here, p=128, c=c)
            line += [f"{ms(found[0]['sample'])} ({efficiency(found[0], base[0]):.2f})" if found else "-"]
        lines.append(line)
    table(["computing", "G edges/s of a GPU", "latency", "p = 4", "p = 128, c = 8", "p = 128, c = 32"], lines)


def rate_of(row):
    """Billion edges that a GPU samples in a second of computing."""
    return row["edges"] * row["scale"] / (row["sample_charged"] * row["p"]) / 1e9


def print_scales(rows):
    print("Protein at two scales: ms an epoch\n")
    points = select(rows, graph="protein", topology="partitioned", speed=1.0, latency=1.0, in_flight=0, machine="simulated")
    usual_scale = points[0]["scale"]
    lines = []
    for row in points:
        if row["scale"] == usual_scale:
            continue
        same = select(points, scale=usual_scale, p=row["p"], c=row["c"], schedule=row["schedule"])
        if same:
            lines.append([row["p"], row["c"], row["schedule"], ms(same[0]["sample"]), ms(row["sample"]),
                          f"{row['sample'] / same[0]['sample']:.3f}"])
    table(["p", "c", "schedule", f"1/{usual_scale}", "the other scale", "ratio"], lines)


def print_graphs(rows):
    lines = []
    for graph in NAMES:
        found = select(rows, graph=graph)
        if not found:
            continue
        row = found[0]
        real = select(rows, graph=graph, machine="measured")
        lines.append([NAMES[graph], f"1/{row['scale']}", row["nodes"], row["entries"], f"{row['entries'] / row['nodes']:.1f}", row["batches"],
                      row["batch"], row["edges"], row["input_rows"], row["digest"], len(select(found, scale=row["scale"])), len(real)])
    table(["graph", "scale", "vertices", "entries", "degree", "batches", "of seeds", "sampled edges", "input rows", "digest",
           "points with it", "by mpirun"], lines)


def print_tables(rows):
    print_graphs(rows)
    for graph in graphs_of(rows, "partitioned"):
        print_sampling(rows, graph)
    for graph in graphs_of(rows, "replicated"):
        print_replicated(rows, graph)
    print_varied(rows)
    print_scales(rows)


# ---- Pictures --------------------------------------------------------------------------------------------------------


def over_ranks(axes, ranks, label):
    axes.set_xscale("log", base=2)
    axes.set_xticks(ranks, [str(p) for p in ranks])
    axes.set_xlabel("simulated GPUs")
    axes.set_title(label, fontsize=10, loc="left")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_sampling(pyplot, rows, path):
    graphs = graphs_of(rows, "partitioned")
    figure, panels = pyplot.subplots(len(graphs), 3, figsize=(12, 3.6 * len(graphs)), squeeze=False)
    for (time, share, stack), graph in zip(panels, graphs):
        points = sampled(rows, graph)
        ranks = sorted({row["p"] for row in points})
        for schedule, (colour, marker) in STYLE.items():
            line = best_by_ranks(points, schedule)
            base = select(line, p=4)[0]
            time.plot([row["p"] for row in line], [row["sample"] * 1e3 for row in line], color=colour, marker=marker, label=schedule)
            share.plot([row["p"] for row in line], [efficiency(row, base) for row in line], color=colour, marker=marker)
            for row in line:
                time.annotate(f"c={row['c']}", (row["p"], row["sample"] * 1e3), textcoords="offset points", xytext=(4, 5), fontsize=7,
                              color=colour)
            if schedule == "push":
                time.plot(ranks, [base["sample"] * 4e3 / p for p in ranks], color="#999999", linestyle=":", label="push, ideal")
        time.set_yscale("log")
        time.set_ylabel("ms an epoch")
        time.legend(fontsize=8, frameon=False)
        over_ranks(time, ranks, f"{NAMES[graph]}: partitioned sampling")
        share.axhline(0.7, color="#999999", linestyle=":")
        share.set_ylim(0, 1.05)
        share.set_ylabel("parallel efficiency from 4")
        over_ranks(share, ranks, "efficiency; dotted: 0.7")
        draw_communication(stack, select(points, p=64), "communication at p = 64")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def draw_communication(axes, points, label):
    replications = sorted({row["c"] for row in points if row["schedule"] == "staged"})
    for k, (schedule, (colour, _)) in enumerate(STYLE.items()):
        here = {row["c"]: row["sample_communication"] * 1e3 for row in select(points, schedule=schedule)}
        bars = axes.bar([i + 0.27 * (k - 1) for i in range(len(replications))], [here.get(c, 0) for c in replications], 0.25, color=colour)
        axes.bar_label(bars, fmt="%.3g", fontsize=7)
    axes.set_yscale("log")
    axes.set_xticks(range(len(replications)), [f"c = {c}" for c in replications])
    axes.set_ylabel("ms, mean over ranks")
    axes.set_title(label, fontsize=10, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_fetch(pyplot, rows, path):
    graphs = graphs_of(rows, "replicated")
    figure, panels = pyplot.subplots(1, len(graphs), figsize=(4.1 * len(graphs), 3.8), squeeze=False)
    for axes, graph in zip(panels[0], graphs):
        points = select(usual(rows, graph), topology="replicated")
        ranks = sorted({row["p"] for row in points})
        one = [select(points, p=p, c=1)[0] for p in ranks]
        copies = [max(select(points, p=p), key=lambda row: row["c"]) for p in ranks]
        axes.plot(ranks, [row["sample"] * 1e3 for row in one], color="#009E73", marker="D", label="sampling, replicated graph")
        axes.plot(ranks, [one[0]["sample"] * 4e3 / p for p in ranks], color="#999999", linestyle=":", label="sampling, ideal")
        axes.plot(ranks, [row["fetch"] * 1e3 for row in one], color="#CC79A7", marker="v", label="fetch, c = 1")
        axes.plot(ranks, [row["fetch"] * 1e3 for row in copies], color="#000000", marker="o", label="fetch, c = p/8")
        axes.set_yscale("log")
        axes.set_ylabel("ms an epoch")
        axes.legend(fontsize=7, frameon=False)
        over_ranks(axes, ranks, NAMES[graph])
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("-o", "--output", help="folder for the pictures")
    options = parser.parse_args()
    rows = read(options.points)
    if options.tables:
        print_tables(rows)
    if not options.output:
        return 0
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("plot.py: no matplotlib (Debian: python3-matplotlib); --tables needs none", file=sys.stderr)
        return 1
    draw_sampling(pyplot, rows, os.path.join(options.output, "scaling-sampling.png"))
    draw_fetch(pyplot, rows, os.path.join(options.output, "scaling-fetch.png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())

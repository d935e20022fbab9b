#!/usr/bin/python3
"""Tables and pictures of docs/scaling.md from the points that bench/simulated/run.py wrote.

    bench/simulated/plot.py bench/simulated/points.csv --tables        Markdown
    bench/simulated/plot.py bench/simulated/points.csv -o docs         docs/scaling-{sampling,fetch,order}.png

points.csv there is what docs/scaling.md shows; make simulate-all writes a new one to build/simulated.

The pictures need matplotlib (Debian: python3-matplotlib), the tables nothing.
Exit codes: 0 done, 1 no matplotlib, 2 usage or unusable file.
"""
import argparse
import csv
import os
import sys

# Okabe and Ito's palette, as in scripts/plot_volumes.py: colour, marker.
STYLE = {"staged": ("#0072B2", "s"), "pull": ("#56B4E9", "^"), "push": ("#D55E00", "o")}
NAMES = {"protein": "Protein (degree 149)", "papers": "Papers (degree 14, directed)", "products": "Products (degree 53)",
         "protein-planted": "Protein with communities", "papers-planted": "Papers with communities"}
KINDS = (("none", 0, "none", "uniform"), ("planted", 0, "planted", "uniform"), ("planted", 64, "planted", "local"))
NUMBERS = {"p": int, "c": int, "in_flight": int, "scale": int, "features": int, "speed": float, "latency": float, "sample": float,
           "sample_charged": float, "sample_communication": float, "sample_bytes": int, "sample_messages": int, "fetch": float,
           "edges": int, "entries": int, "nodes": int, "input_rows": int, "groups": int, "fetch_bytes": int, "batches": int, "batch": int}


def read(path):
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            for name, value in (("order", "none"), ("groups", "0"), ("cut", "")):  # of before there were orders
                row.setdefault(name, value)
            row.update({name: kind(row[name]) for name, kind in NUMBERS.items()})
    except (OSError, KeyError, ValueError) as error:
        print(f"plot.py: {path}: {error!r}", file=sys.stderr)
        sys.exit(2)
    return rows


def select(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def usual(rows, graph, order="none", groups=0):
    """The simulated points of a graph with nothing varied but the placement of ranks."""
    scale = select(rows, graph=graph)[0]["scale"]
    return select(rows, graph=graph, scale=scale, speed=1.0, latency=1.0, in_flight=0, machine="simulated", order=order,
                  groups=groups)


def placed(rows, p, c, placement):
    """On one node placement says nothing."""
    return select(rows, p=p, c=c, placement="block" if p <= 4 else placement)


def sampled(rows, graph):
    return select(usual(rows, graph), topology="partitioned", features=0)


def graphs_of(rows, topology):
    found = {row["graph"] for row in select(rows, topology=topology, machine="simulated")}
    return [graph for graph in NAMES if graph in found and not graph.endswith("-planted")]


def planted_of(rows):
    found = {row["graph"] for row in rows}
    return [graph for graph in NAMES if graph in found and graph.endswith("-planted")]


def best(rows):
    return min(rows, key=lambda row: row["sample"])


def best_by_ranks(rows):
    """The fastest replication at each p."""
    return [best(select(rows, p=p)) for p in sorted({row["p"] for row in rows})]


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


def cell(row, base):
    return f"{ms(row['sample'])} = {ms(row['sample_charged'])} + {ms(row['sample_communication'])} ({efficiency(row, base):.2f})"


def print_sampling(rows, graph):
    points = sampled(rows, graph)
    print(f"{NAMES[graph]}, partitioned: ms an epoch = computing + communication (efficiency from p = 4)\n")
    lines = []
    for p, c, placement in sorted({(row["p"], row["c"], row["placement"]) for row in points}):
        here = {row["schedule"]: row for row in select(points, p=p, c=c, placement=placement)}
        cells = [cell(here[schedule], select(points, p=4, c=1, schedule=schedule)[0]) if schedule in here else "-"
                 for schedule in ("push", "pull", "staged")]
        ratio = "-"
        if "push" in here and "staged" in here:
            ratio = f"1/{here['staged']['sample_communication'] / here['push']['sample_communication']:.0f}"
        lines.append([p, c, placement if p > 4 else "one node"] + cells + [ratio])
    table(["p", "c", "ranks on nodes", "push", "pull", "staged", "communication, push / staged"], lines)


def print_replicated(rows, graph):
    points = select(usual(rows, graph), topology="replicated")
    print(f"{NAMES[graph]}, replicated graph: ms an epoch\n")
    base = select(points, p=4, c=1)[0]
    lines = []
    for one in sorted(select(points, c=1, placement="block"), key=lambda row: row["p"]):
        p = one["p"]
        line = [p, ms(one["sample"]), f"{base['sample'] / one['sample']:.1f} x", ms(one["fetch"])]
        for c, placement in ((p // 8, "block"), (p // 8, "cyclic"), (p // 4, "cyclic")):
            found = placed(points, p, c, placement) if c else []
            line.append(ms(found[0]["fetch"]) if found else "-")
        lines.append(line)
    table(["p", "sampling", "speed-up", "fetch, c = 1", "c = p/8", "c = p/8, cyclic", "c = p/4, cyclic"], lines)


def print_varied(rows):
    print("Protein, partitioned, `push`: ms an epoch and efficiency from p = 4 under other assumptions\n")
    points = select(rows, graph="protein", topology="partitioned", schedule="push", machine="simulated", in_flight=0)
    lines = []
    for speed, latency in ((1.0, 1.0), (2.0, 1.0), (0.5, 1.0), (0.25, 1.0), (1.0, 2.0)):
        here = select(points, speed=speed, latency=latency, scale=points[0]["scale"])
        base = select(here, p=4, c=1)
        if not base:
            continue
        line = [f"{speed:g} x", f"{rate_of(base[0]):.1f}", f"{latency:g} x", ms(base[0]["sample"])]
        for c, placement in ((8, "block"), (32, "block"), (32, "cyclic")):
            found = placed(here, 128, c, placement)
            line += [f"{ms(found[0]['sample'])} ({efficiency(found[0], base[0]):.2f})" if found else "-"]
        lines.append(line)
    table(["computing", "G edges/s of a GPU", "latency", "p = 4", "p = 128, c = 8", "c = 32", "c = 32, cyclic"], lines)


def rate_of(row):
    """Billion edges that a GPU samples in a second of computing."""
    return row["edges"] * row["scale"] / (row["sample_charged"] * row["p"]) / 1e9


def print_scales(rows):
    print("Protein at other scales: ms an epoch (over that at the usual one)\n")
    points = select(rows, graph="protein", topology="partitioned", speed=1.0, latency=1.0, in_flight=0, machine="simulated")
    usual_scale = points[0]["scale"]
    scales = sorted({row["scale"] for row in points}, reverse=True)
    lines = []
    for p, c, schedule in sorted({(row["p"], row["c"], row["schedule"]) for row in points if row["scale"] != usual_scale}):
        same = select(points, p=p, c=c, schedule=schedule, placement="block")
        at = {row["scale"]: row["sample"] for row in same}
        lines.append([p, c, schedule] + [f"{ms(at[scale])} ({at[scale] / at[usual_scale]:.3f})" if scale in at else "-" for scale in scales])
    table(["p", "c", "schedule"] + [f"ms at 1/{scale}" for scale in scales], lines)


def print_graphs(rows):
    lines = []
    for graph in NAMES:
        found = select(rows, graph=graph, groups=0)
        if not found:
            continue
        row = found[0]
        real = select(found, machine="measured")
        lines.append([NAMES[graph], f"1/{row['scale']}", row["nodes"], row["entries"],
                      f"{row['entries'] / row['nodes']:.1f}", row["batches"], row["batch"], row["edges"], row["input_rows"], row["digest"], len(select(found, scale=row["scale"])), len(real)])
    table(["graph", "scale", "vertices", "entries", "degree", "batches", "of seeds", "sampled edges", "input rows", "digest",
           "points with it", "by mpirun"], lines)


def fetch_gigabytes(row):
    """Of an epoch; of its steps the first four, at most, were done, with a batch for each rank."""
    return row["fetch_bytes"] * row["scale"] * max(1, row["batches"] / (4 * row["p"])) / 1e9


def local_share(row):
    return int(row["local_rows"]) / row["input_rows"]


def order_cells(row, none):
    """Of a point, and over what it takes without an order."""
    def beside(value, base, digits):
        return f"{value:.{digits}f}" if row["order"] == "none" else f"{value:.{digits}f} ({value / base:.2f})"
    return [f"{float(row['cut']):.2f}", beside(row["sample"] * 1e3, none["sample"] * 1e3, 1),
            beside(row["sample_bytes"] * row["scale"] / 1e9, none["sample_bytes"] * none["scale"] / 1e9, 2),
            beside(row["fetch"] * 1e3, none["fetch"] * 1e3, 0 if row["fetch"] > 0.1 else 1),
            beside(fetch_gigabytes(row), fetch_gigabytes(none), 0),
            f"{local_share(row):.3f}", f"{row['input_rows'] * row['scale'] / 1e6:.0f}", f"{float(row['edges_max']):.2f}, {float(row['remote_max']):.2f}"]


ORDER_HEAD = ["cut", "sampling, ms", "GB", "fetching, ms", "GB", "local rows", "input rows, M", "most / mean: edges, remote rows"]


def print_orders(rows):
    for graph in planted_of(rows):
        print(f"{NAMES[graph]}, p = 64, partitioned, `push`\n")
        lines = []
        for c, placement in ((4, "block"), (8, "block"), (16, "cyclic")):
            none = select(usual(rows, graph), p=64, c=c, placement=placement, topology="partitioned")
            for order, groups, owners, batches in KINDS:
                found = select(usual(rows, graph, order, groups), p=64, c=c, placement=placement, topology="partitioned")
                if found and none:
                    lines.append([c, placement, owners, batches] + order_cells(found[0], none[0]))
        table(["c", "ranks on nodes", "order", "batches"] + ORDER_HEAD, lines)


def print_without_communities(rows):
    print("No communities, p = 64, c = 8\n")
    lines = []
    for graph in ("protein", "papers"):
        none = select(usual(rows, graph), p=64, c=8, placement="block", topology="partitioned", schedule="push")
        none = [row for row in none if row["features"] > 0]
        for order, groups, owners, batches in KINDS:
            found = select(usual(rows, graph, order, groups), p=64, c=8, placement="block", topology="partitioned", schedule="push")
            found = [row for row in found if row["features"] > 0]
            if found and none:
                lines.append([NAMES[graph], owners, batches] + order_cells(found[0], none[0]))
    table(["graph", "order", "batches"] + ORDER_HEAD, lines)


def print_order_scales(rows):
    print("The same at smaller scales, p = 64, c = 8\n")
    lines = []
    for graph in planted_of(rows):
        for scale in sorted({row["scale"] for row in select(rows, graph=graph)}, reverse=True):
            for topology in ("partitioned", "replicated"):
                at = select(rows, graph=graph, scale=scale, p=64, c=8, topology=topology, machine="simulated")
                here = [select(at, order=order, groups=groups)[0] for order, groups, _, _ in KINDS if select(at, order=order, groups=groups)]
                if len(here) == len(KINDS):
                    lines.append([NAMES[graph], f"1/{scale}", here[0]["batch"], topology]
                                 + [f"{row['sample'] * 1e3:.1f}, {row['fetch'] * 1e3:.0f}" for row in here]
                                 + [f"{fetch_gigabytes(here[2]) / fetch_gigabytes(here[0]):.2f}"])
    table(["graph", "scale", "seeds of a batch", "topology", "no order: sampling, fetching, ms", "order, uniform", "order, local",
           "bytes fetched, local / no order"], lines)


def print_tables(rows):
    print_orders(rows)
    print_without_communities(rows)
    print_order_scales(rows)
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


def curves(points):
    """(label, colour, marker, line style, rows): at each p the fastest replication."""
    for schedule, (colour, marker) in STYLE.items():
        of_schedule = select(points, schedule=schedule)
        block = [row for row in of_schedule if row["placement"] == "block"]
        if schedule == "push":
            cyclic = [row for row in of_schedule if row["placement"] == "cyclic" or row["p"] == 4]
            yield "push, ranks cyclic", colour, marker, "-", best_by_ranks(cyclic)
            yield "push", colour, marker, "--", best_by_ranks(block)
        else:
            yield schedule, colour, marker, "--", best_by_ranks(block)


def draw_sampling(pyplot, rows, path):
    graphs = graphs_of(rows, "partitioned")
    figure, panels = pyplot.subplots(len(graphs), 3, figsize=(13, 3.5 * len(graphs)), squeeze=False)
    for (time, share, bars), graph in zip(panels, graphs):
        points = sampled(rows, graph)
        ranks = sorted({row["p"] for row in points})
        for label, colour, marker, style, line in curves(points):
            time.plot([row["p"] for row in line], [row["sample"] * 1e3 for row in line], color=colour, marker=marker, linestyle=style,
                      label=label)
            share.plot([row["p"] for row in line], [efficiency(row, line[0]) for row in line], color=colour, marker=marker,
                       linestyle=style)
            for row in line[1:]:
                below = label.endswith("cyclic")
                time.annotate(f"c={row['c']}", (row["p"], row["sample"] * 1e3), textcoords="offset points",
                              xytext=(-6, -12) if below else (2, 6), fontsize=7, color=colour)
        base = select(points, p=4, schedule="push")[0]
        time.plot(ranks, [base["sample"] * 4e3 / p for p in ranks], color="#999999", linestyle=":", label="push, ideal")
        time.set_yscale("log")
        time.set_ylabel("ms an epoch")
        time.margins(y=0.12)
        over_ranks(time, ranks, f"{NAMES[graph]}: partitioned sampling")
        share.axhline(0.7, color="#999999", linestyle=":")
        share.set_ylim(0, 1.05)
        share.set_ylabel("parallel efficiency from 4")
        over_ranks(share, ranks, "efficiency; dotted: 0.7")
        draw_communication(bars, select(points, p=64, placement="block"), "communication at p = 64")
    figure.legend(*panels[0][0].get_legend_handles_labels(), fontsize=9, frameon=False, ncols=5, loc="lower center")
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=110)


def draw_communication(axes, points, label):
    replications = sorted({row["c"] for row in points if row["schedule"] == "staged"})
    for k, (schedule, (colour, _)) in enumerate(STYLE.items()):
        here = {row["c"]: row["sample_communication"] * 1e3 for row in select(points, schedule=schedule)}
        bars = axes.bar([i + 0.27 * (k - 1) for i in range(len(replications))], [here.get(c, 0) for c in replications], 0.25, color=colour)
        heights = [bar.get_height() for bar in bars]
        axes.bar_label(bars, labels=[f"{height:.{0 if height >= 10 else 1}f}" for height in heights], fontsize=7)
    axes.set_yscale("log")
    axes.set_xticks(range(len(replications)), [f"c = {c}" for c in replications])
    axes.set_ylabel("ms, mean over ranks")
    axes.set_title(label, fontsize=10, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_fetch(pyplot, rows, path):
    graphs = graphs_of(rows, "replicated")
    figure, panels = pyplot.subplots(1, len(graphs), figsize=(4.2 * len(graphs), 4.2), squeeze=False)
    for axes, graph in zip(panels[0], graphs):
        points = select(usual(rows, graph), topology="replicated")
        one = sorted(select(points, c=1, placement="block"), key=lambda row: row["p"])
        ranks = [row["p"] for row in one]
        axes.plot(ranks, [row["sample"] * 1e3 for row in one], color="#009E73", marker="D", label="sampling, replicated graph")
        axes.plot(ranks, [one[0]["sample"] * 4e3 / p for p in ranks], color="#999999", linestyle=":", label="sampling, ideal")
        axes.plot(ranks, [row["fetch"] * 1e3 for row in one], color="#CC79A7", marker="v", label="fetch, c = 1")
        for divisor, placement, colour, marker in ((8, "block", "#000000", "o"), (8, "cyclic", "#E69F00", "s"),
                                                   (4, "cyclic", "#D55E00", "^")):
            found = [placed(points, p, p // divisor, placement) for p in ranks if p >= divisor]
            line = [rows_at[0] for rows_at in found if rows_at]
            axes.plot([row["p"] for row in line], [row["fetch"] * 1e3 for row in line], color=colour, marker=marker,
                      label=f"fetch, c = p/{divisor}" + (", ranks cyclic" if placement == "cyclic" else ""))
        axes.set_yscale("log")
        axes.set_ylabel("ms an epoch")
        over_ranks(axes, ranks, NAMES[graph])
    labels = panels[0][0].get_legend_handles_labels()
    figure.legend(*labels, fontsize=8, frameon=False, ncols=3, loc="lower center")
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    figure.savefig(path, dpi=110)


def draw_orders(pyplot, rows, path):
    """Bars for each c: without an order and with local batches; above, sampling; below, fetching: ms and GB."""
    graphs = planted_of(rows)
    measures = (("sampling, ms an epoch", lambda row: row["sample"] * 1e3), ("sampling, GB", lambda row: row["sample_bytes"] * row["scale"] / 1e9),
                ("fetching, ms an epoch", lambda row: row["fetch"] * 1e3), ("fetching, GB", fetch_gigabytes))
    figure, panels = pyplot.subplots(len(graphs), 4, figsize=(13, 2.7 * len(graphs)), squeeze=False)
    for line, graph in zip(panels, graphs):
        for axes, (label, measure) in zip(line, measures):
            draw_order_bars(axes, rows, graph, measure)
            axes.set_title(f"{NAMES[graph]}: {label}", fontsize=9, loc="left")
    figure.legend(*panels[0][0].get_legend_handles_labels(), fontsize=9, frameon=False, ncols=3, loc="lower center")
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=110)


def draw_order_bars(axes, rows, graph, measure):
    grids = ((4, "block"), (8, "block"), (16, "cyclic"))
    for k, ((order, groups, _, _), colour, label) in enumerate(zip(KINDS, ("#999999", "#56B4E9", "#D55E00"), (
            "no order", "order, uniform batches (c = 8)", "order, local batches"))):
        heights = []
        for c, placement in grids:
            found = select(usual(rows, graph, order, groups), p=64, c=c, placement=placement, topology="partitioned")
            heights.append(measure(found[0]) if found else 0)
        bars = axes.bar([i + 0.27 * (k - 1) for i in range(len(grids))], heights, 0.25, color=colour, label=label)
        axes.bar_label(bars, labels=[f"{height:.3g}" if height else "" for height in heights], fontsize=7)
    axes.set_xticks(range(len(grids)), [f"c = {c}, {placement}" for c, placement in grids], fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


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
    draw_orders(pyplot, rows, os.path.join(options.output, "scaling-order.png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())

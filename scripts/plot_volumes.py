#!/usr/bin/python3
"""Draws the bytes that sampling moves, counted against predicted, from the CSV file of bench/product/volume_bench.

    scripts/plot_volumes.py build/bench/volumes.csv -o volumes.png      a picture of one graph (--graph NAME: which)
    scripts/plot_volumes.py build/bench/volumes.csv --table             Markdown tables of all graphs, largest p

The picture needs matplotlib (Debian: python3-matplotlib), the tables nothing. One column of panels per sampler, one row
per replication c: bytes received per rank over p, lines are counted, circles predicted. Below: how far apart the two
are. Where a process column is one rank (c = p) nothing moves and nothing is drawn.
Exit codes: 0 done, 1 no matplotlib, 2 usage or unusable file.
"""
import argparse
import csv
import sys

# Okabe and Ito's palette, safe for colour-blind readers; name, colour, line style, width.
SCHEDULES = [
    ("staged-oblivious", "#E69F00", "-", 1.8),
    ("staged", "#0072B2", "-", 3.2),
    ("pull", "#56B4E9", "--", 1.6),
    ("push", "#D55E00", "-", 1.8),
]
SAMPLERS = ["graphsage", "labor", "ladies", "fastgcn"]


class Row:
    def __init__(self, fields):
        self.graph, self.schedule, self.sampler = fields["graph"], fields["schedule"], fields["sampler"]
        self.label = fields["label"]
        self.p, self.c = int(fields["p"]), int(fields["c"])
        self.counted = float(fields["bytes_total"]) / self.p / 1e6  # MB per rank
        self.predicted = float(fields["predicted_bytes_total"]) / self.p / 1e6
        self.largest = float(fields["bytes_max_rank"]) / 1e6

    @property
    def deviation(self):
        """Counted over predicted, minus 1, in percent; 0 where nothing moves."""
        return 100 * (self.counted / self.predicted - 1) if self.predicted > 0 else 0.0


def read(path):
    try:
        with open(path, newline="") as file:
            rows = [Row(fields) for fields in csv.DictReader(file)]
    except (OSError, KeyError, ValueError) as error:
        print(f"plot_volumes.py: {path}: {error!r}", file=sys.stderr)
        sys.exit(2)
    return rows


def select(rows, **wanted):
    return [row for row in rows if all(getattr(row, key) == value for key, value in wanted.items())]


def distinct(values):
    return list(dict.fromkeys(values))


# ---- Tables ----------------------------------------------------------------------------------------------------------


def table(rows, graph):
    """Received per rank at the largest p."""
    p = max(row.p for row in rows)
    print(f"\n{graph}, {p} ranks: MB received per rank\n")
    print("| sampler | c | staged-oblivious | staged | pull | push | push / staged | counted / predicted |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for sampler in distinct(row.sampler for row in rows):
        for c in sorted({row.c for row in rows if row.p == p}):
            found = {row.schedule: row for row in select(rows, sampler=sampler, p=p, c=c)}
            if not all(name in found for name, *_ in SCHEDULES):
                continue
            counted = [found[name].counted for name, *_ in SCHEDULES]
            if counted[1] == 0:
                continue
            deviations = [found[name].deviation for name, *_ in SCHEDULES]
            ratio = counted[3] / counted[1]
            print(
                f"| {sampler} | {c} | "
                + " | ".join(f"{value:.2f}" for value in counted)
                + f" | {'1/%.0f' % (1 / ratio) if ratio < 0.2 else '%.2f' % ratio}"
                + f" | {1 + min(deviations) / 100:.4f} .. {1 + max(deviations) / 100:.4f} |"
            )


def worst(rows, graph):
    """The largest deviation of any schedule and sampler, over all p and c, in total and in its worst step."""
    print(f"\n{graph}: the largest counted / predicted - 1, over all p and c\n")
    print("| sampler | " + " | ".join(name for name, *_ in SCHEDULES) + " | worst single step |")
    print("| --- |" + " --- |" * (len(SCHEDULES) + 1))
    moved = [row for row in rows if row.predicted > 0]
    for sampler in distinct(row.sampler for row in moved):
        cells = []
        for schedule, *_ in SCHEDULES:
            totals = select(moved, sampler=sampler, schedule=schedule, label="sample")
            cells.append(f"{max((row.deviation for row in totals), key=abs, default=0):+.2f} %")
        steps = [row for row in select(moved, sampler=sampler) if row.label.startswith("sample/")]
        step = max(steps, key=lambda row: abs(row.deviation))
        cells.append(f"{step.deviation:+.2f} % ({step.label}, {step.schedule}, p {step.p}, c {step.c})")
        print(f"| {sampler} | " + " | ".join(cells) + " |")


# ---- The picture -----------------------------------------------------------------------------------------------------


def plain(value, _=None):
    return f"{value:g}"


def draw(rows, graph, output):
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch
    except ImportError:
        print(
            "plot_volumes.py: no picture: this python has no matplotlib (Debian: apt-get install python3-matplotlib)",
            file=sys.stderr,
        )
        sys.exit(1)

    rows = [row for row in rows if row.counted > 0]
    samplers = [name for name in SAMPLERS if any(row.sampler == name for row in rows)]
    replications = sorted({row.c for row in rows})
    ranks = sorted({row.p for row in rows})
    if not ranks:
        print(f"plot_volumes.py: nothing moved in {graph}: it was measured on one rank only", file=sys.stderr)
        sys.exit(2)

    pyplot.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = pyplot.subplots(
        len(replications) + 1,
        len(samplers),
        figsize=(2.9 * len(samplers) + 0.8, 2.35 * len(replications) + 3.4),
        squeeze=False,
        sharex=True,
        sharey="row",
        gridspec_kw={"hspace": 0.16, "wspace": 0.08},
    )
    largest = max(abs(row.deviation) for row in rows)
    reach = next((bound for bound in (1, 2, 5, 10, 20, 50) if largest <= bound), 100)  # of the grey band, in percent
    low, high = min(row.counted for row in rows), max(row.counted for row in rows)
    for k, sampler in enumerate(samplers):
        axes[0][k].set_title(sampler, fontsize=12, fontweight="bold", pad=8)
        for i, c in enumerate(replications):
            volume_panel(axes[i][k], select(rows, sampler=sampler, c=c), low, high)
        deviation_panel(axes[-1][k], select(rows, sampler=sampler), replications, reach)
        axes[-1][k].set_xlabel("ranks p")
        axes[-1][k].set_xscale("log", base=2)
        axes[-1][k].set_xlim(min(ranks) / 1.4, max(ranks) * 1.4)
        axes[-1][k].set_xticks(ranks, [str(p) for p in ranks])
        axes[-1][k].minorticks_off()
    for i, c in enumerate(replications):
        axes[i][0].set_ylabel("MB received per rank")
        axes[i][0].annotate(
            f"c = {c}", (-0.33, 0.5), xycoords="axes fraction", rotation=90, va="center", fontsize=12, fontweight="bold"
        )
    axes[-1][0].set_ylabel("counted / predicted\n$-$ 1, in %")

    figure.suptitle(f"Bytes that sampling moves: {graph}", x=0.035, y=0.985, ha="left", fontsize=14)
    lines = [
        Line2D([], [], color=colour, linestyle=style, linewidth=width, label=f"{name}, counted")
        for name, colour, style, width in SCHEDULES
    ]
    lines.append(Line2D([], [], **PREDICTED, label="predicted by the model"))
    shapes = [
        Line2D([], [], linestyle="none", marker=SHAPES[i % 4], color="#555555", markersize=5, label=f"c = {c}")
        for i, c in enumerate(replications)
    ]
    shapes.append(Patch(color=BAND, label=f"within {reach:g} % of the prediction"))
    figure.legend(handles=lines, loc="upper left", ncols=len(lines), bbox_to_anchor=(0.03, 0.965), frameon=False)
    figure.legend(
        handles=shapes,
        loc="lower left",
        ncols=len(shapes),
        bbox_to_anchor=(0.03, 0.003),
        frameon=False,
    )
    figure.subplots_adjust(left=0.095, right=0.985, bottom=0.085, top=0.9)
    figure.savefig(output, dpi=130)
    print(f"picture: {output}")


BAND = "#e8e8e8"
SHAPES = ["o", "s", "^", "D"]
PREDICTED = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 6.5,
    "markerfacecolor": "white",
    "markeredgecolor": "#222222",
    "markeredgewidth": 1.0,
}


def volume_panel(axis, rows, low, high):
    axis.set_yscale("log")
    axis.set_ylim(low / 1.6, high * 1.6)
    axis.yaxis.set_major_formatter(plain)
    axis.grid(True, which="major", axis="both", color="#dddddd", linewidth=0.7)
    axis.tick_params(which="minor", left=False)
    for schedule, colour, style, width in SCHEDULES:
        points = sorted(select(rows, schedule=schedule), key=lambda row: row.p)
        ranks = [row.p for row in points]
        axis.plot(ranks, [row.counted for row in points], color=colour, linestyle=style, linewidth=width)
        axis.plot(ranks, [row.predicted for row in points], **PREDICTED, alpha=0.85, zorder=3)


def deviation_panel(axis, rows, replications, reach):
    """One dot per schedule and c, side by side around its p."""
    axis.axhspan(-reach, reach, color=BAND, linewidth=0, zorder=0)
    axis.axhline(0, color="#222222", linewidth=0.8, zorder=1)
    axis.set_ylim(-1.25 * reach, 1.25 * reach)
    axis.set_yticks([-reach, 0, reach], [f"$-${reach:g}", "0", f"+{reach:g}"])
    slots = len(SCHEDULES) * len(replications)
    for s, (schedule, colour, *_) in enumerate(SCHEDULES):
        for i, c in enumerate(replications):
            place = (i * len(SCHEDULES) + s - (slots - 1) / 2) / slots  # of this dot between its p's neighbours
            points = select(rows, schedule=schedule, c=c)
            axis.plot(
                [row.p * 2 ** (0.75 * place) for row in points],
                [row.deviation for row in points],
                linestyle="none",
                marker=SHAPES[i % 4],
                markersize=4.5,
                color=colour,
                zorder=2,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("csv", help="what volume_bench --csv wrote")
    parser.add_argument("-o", "--output", help="the picture to write (.png, .svg, .pdf)")
    parser.add_argument("--graph", help="which graph to draw (default: the first)")
    parser.add_argument("--table", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    rows = [row for row in read(arguments.csv) if row.label.startswith("sample")]
    graphs = distinct(row.graph for row in rows)
    if not graphs or (arguments.graph and arguments.graph not in graphs):
        print(f"plot_volumes.py: {arguments.csv} has {', '.join(graphs) or 'no rows'}", file=sys.stderr)
        return 2
    if arguments.table:
        for graph in [arguments.graph] if arguments.graph else graphs:
            table(select(rows, graph=graph, label="sample"), graph)
            worst(select(rows, graph=graph), graph)
    if arguments.output:
        graph = arguments.graph or graphs[0]
        draw(select(rows, graph=graph, label="sample"), graph, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())

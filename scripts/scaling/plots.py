"""The plots of a study, each an SVG: where the time goes, speed-up and efficiency, volumes, loads.

Okabe and Ito's palette, safe for colour-blind readers; a stage has the same colour in every plot and also its place in the
stack, a series (topology and c) its own marker and line. Legends stand outside of the data.
"""
import math

from .figures import EVALUATE, OTHER, stage_names, time_unit

STAGES = {"sample": "#0072B2", "fetch": "#56B4E9", "forward": "#009E73", "backward": "#F0E442", "reduce": "#D55E00",
          "optimizer": "#CC79A7", OTHER: "#BBBBBB", EVALUATE: "#555555"}
NEW_STAGE = "#E69F00"
SERIES = [("#222222", "o", "-"), ("#0072B2", "s", "-"), ("#D55E00", "^", "-"), ("#009E73", "D", "-"),
          ("#CC79A7", "v", "--"), ("#E69F00", "P", "--"), ("#56B4E9", "X", "--"), ("#777777", "*", "--")]
IDEAL = {"color": "#888888", "linestyle": (0, (5, 3)), "linewidth": 1.2, "zorder": 1}
CROWDED = "#F1ECE4"
STYLE = {"font.size": 10, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False,
         "axes.axisbelow": True, "axes.edgecolor": "#444444", "axes.linewidth": 0.8, "legend.frameon": False,
         "legend.fontsize": 9, "svg.hashsalt": "espalier", "figure.facecolor": "white"}
MEGABYTE = 1e6


def available():
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    return True


def series_of(points):
    return list(dict.fromkeys(point.series for point in points))


def series_words(series, all_series):
    topology, c = series
    return f"c = {c}" if len({topology for topology, _ in all_series}) == 1 else f"{topology}, c = {c}"


def plain(value, _=None):
    return f"{value:g}"


def rank_axis(axis, points):
    ranks = sorted({point.ranks for point in points})
    axis.set_xscale("log", base=2)
    axis.set_xlim(min(ranks) / 1.25, max(ranks) * 1.25)
    axis.set_xticks(ranks, [str(p) for p in ranks])
    axis.minorticks_off()
    axis.set_xlabel("ranks p")


def shade_crowded(axis, points, most):
    """Where there are more ranks than cores (most: how many fit, None: unknown). True if there is such a p."""
    ranks = sorted({point.ranks for point in points})
    crowded = [p for p in ranks if most and p > most]
    if crowded:
        fitting = [p for p in ranks if p <= most]
        left = math.sqrt(fitting[-1] * crowded[0]) if fitting else axis.get_xlim()[0]
        axis.axvspan(left, axis.get_xlim()[1], color=CROWDED, linewidth=0, zorder=0)
    return bool(crowded)


def log_ticks(axis):
    """Ticks of a log axis that are labelled whatever its range: decades, or 1-2-5 where there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1,) if high / low > 500 else (1, 2, 5) if high / low > 3
                                            else (1, 1.5, 2, 3, 4, 5, 6, 8)))
    axis.yaxis.set_major_formatter(FuncFormatter(plain))
    axis.yaxis.set_minor_locator(NullLocator())


def save(figure, folder, name):
    figure.savefig(folder / f"{name}.svg", bbox_inches="tight", pad_inches=0.08, metadata={"Date": None, "Creator": None})


# ---- Where the time goes ---------------------------------------------------------------------------------------------


def draw_stages(pyplot, points, weak, most, folder):
    """Bars, p by p and series by series: seconds by stage; below, for a strong study, times p: what all ranks spend."""
    all_series = series_of(points)
    bars = sorted(points, key=lambda point: (point.ranks, all_series.index(point.series)))
    places, x = [], 0.0
    for i, point in enumerate(bars):
        x += 0 if i == 0 else 0.82 if point.ranks == bars[i - 1].ranks else 1.35
        places.append(x)
    factor, unit = time_unit(points)
    rows = 1 if weak else 2
    inches = 0.62 if len(bars) <= 16 else 0.46
    figure, axes = pyplot.subplots(rows, 1, figsize=(max(5.2, 1.4 + inches * (x + 1)), 3.0 * rows), sharex=True,
                                   squeeze=False, gridspec_kw={"hspace": 0.12})
    panels = [(axes[0][0], [factor] * len(bars))]
    if not weak:
        panels.append((axes[1][0], [factor * point.ranks for point in bars]))
    stages = [name for name in stage_names(points) if name != EVALUATE and (name != OTHER or other_counts(points))]
    for axis, factors in panels:
        stack(axis, bars, places, factors, stages)
    if weak:
        axes[0][0].set_ylabel(f"time of a rank's minibatch, {unit}")
        axes[0][0].axhline(factor * base_of(points).total.median, **IDEAL)
    else:
        axes[0][0].set_ylabel(f"time of an epoch, {unit}")
        axes[1][0].set_ylabel(f"p × time of an epoch, rank·{unit}")
        axes[1][0].axhline(factor * base_of(points).total.median * base_of(points).ranks, **IDEAL)
    label_bars(axes[-1][0], bars, places, all_series)
    shaded = shade_bars([axis for axis, _ in panels], bars, places, most)
    legend_of_stages(figure, axes[0][0], stages, shaded)
    save(figure, folder, "stages")
    pyplot.close(figure)


def other_counts(points):
    """Is there a bar in which what no stage accounts for could be seen?"""
    return any(point.seconds[OTHER].median > 0.005 * point.total.median for point in points)


def base_of(points):
    return min(points, key=lambda point: point.ranks)


def stack(axis, bars, places, factors, stages):
    bottoms = [0.0] * len(bars)
    for stage in stages:
        heights = [factor * bar.seconds[stage].median if stage in bar.seconds else 0.0
                   for bar, factor in zip(bars, factors)]
        axis.bar(places, heights, 0.7, bottoms, color=STAGES.get(stage, NEW_STAGE), edgecolor="white", linewidth=0.5)
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights)]
    middles = [factor * bar.total.median for bar, factor in zip(bars, factors)]
    errors = [[factor * (bar.total.median - bar.total.least) for bar, factor in zip(bars, factors)],
              [factor * (bar.total.greatest - bar.total.median) for bar, factor in zip(bars, factors)]]
    axis.errorbar(places, middles, errors, fmt="D", markersize=4.5, markerfacecolor="white", markeredgecolor="black",
                  ecolor="black", elinewidth=1, capsize=3, zorder=4)
    axis.grid(True, axis="y", color="#dddddd", linewidth=0.7)
    axis.set_ylim(0, 1.06 * max(bottoms + [middle + error for middle, error in zip(middles, errors[1])]))
    axis.tick_params(axis="x", length=0)


def label_bars(axis, bars, places, all_series):
    """c under each bar where series differ; p under each group."""
    axis.set_xlim(places[0] - 0.75, places[-1] + 0.75)
    if len(all_series) == 1:
        axis.set_xticks(places, [str(bar.ranks) for bar in bars])
        axis.set_xlabel("ranks p")
        return
    topologies = {bar.topology for bar in bars}
    labels = [f"c={bar.replication}" + (f"\n{bar.topology[:4]}." if len(topologies) > 1 else "") for bar in bars]
    axis.set_xticks(places, labels, fontsize=8.5)
    for p in dict.fromkeys(bar.ranks for bar in bars):
        mine = [place for place, bar in zip(places, bars) if bar.ranks == p]
        axis.annotate(f"p = {p}", ((mine[0] + mine[-1]) / 2, 0), xycoords=("data", "axes fraction"),
                      xytext=(0, -20 if len(topologies) == 1 else -31), textcoords="offset points", ha="center", va="top")


def shade_bars(axes, bars, places, most):
    crowded = [place for place, bar in zip(places, bars) if most and bar.ranks > most]
    fitting = [place for place, bar in zip(places, bars) if not most or bar.ranks <= most]
    for axis in axes if crowded else []:
        left = (max(fitting) + min(crowded)) / 2 if fitting else axis.get_xlim()[0]
        axis.axvspan(left, axis.get_xlim()[1], color=CROWDED, linewidth=0, zorder=0)
    return bool(crowded)


def legend_of_stages(figure, axis, stages, shaded):
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [Patch(color=STAGES.get(stage, NEW_STAGE), label=stage) for stage in reversed(stages)]
    handles.append(Line2D([], [], linestyle="none", marker="D", markersize=4.5, markerfacecolor="white",
                          markeredgecolor="black", label="wall time; least\nto greatest run"))
    handles.append(Line2D([], [], **IDEAL, label="ideal"))
    if shaded:
        handles.append(Patch(color=CROWDED, label="more ranks\nthan cores"))
    axis.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.02), handlelength=1.4)


# ---- Speed-up and efficiency -----------------------------------------------------------------------------------------


def draw_speedup(pyplot, points, weak, most, folder):
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(7.2, 3.1), gridspec_kw={"wspace": 0.3})
    all_series, base = series_of(points), base_of(points)
    handles = []
    for i, series in enumerate(all_series):
        mine = [point for point in points if point.series == series]
        colour, marker, line = SERIES[i % len(SERIES)]
        looks = {"color": colour, "marker": marker, "linestyle": line, "linewidth": 1.6, "markersize": 5.5, "zorder": 3}
        nudge = 2 ** (0.035 * (i - (len(all_series) - 1) / 2))  # so that equal values do not hide one another
        for axis, values, factor in ((left, [p.speedup for p in mine], 1), (right, [p.efficiency for p in mine], 100)):
            middles = [factor * value.median for value in values]
            errors = [[factor * (value.median - value.least) for value in values],
                      [factor * (value.greatest - value.median) for value in values]]
            axis.errorbar([point.ranks * nudge for point in mine], middles, errors, capsize=2.5, elinewidth=1, **looks)
        handles.append(Line2D([], [], label=series_words(series, all_series), **looks))
    ranks = sorted({point.ranks for point in points})
    left.plot(ranks, [p / base.ranks for p in ranks], **IDEAL)
    right.axhline(100, **IDEAL)
    for axis in (left, right):
        rank_axis(axis, points)
        shaded = shade_crowded(axis, points, most)
        axis.grid(True, color="#dddddd", linewidth=0.7)
    left.set_yscale("log", base=2)
    least = min(point.speedup.least for point in points)
    greatest = max([ranks[-1] / base.ranks] + [point.speedup.greatest for point in points])
    left.set_ylim(least / 1.15, greatest * 1.15)
    doublings = range(math.floor(math.log2(least / 1.15)), math.ceil(math.log2(greatest * 1.15)) + 1)
    halves = len(doublings) <= 4  # few of them: 1.4 and 2.8 too
    ticks = [2.0 ** k * f for k in doublings for f in ((1, math.sqrt(2)) if halves else (1,))]
    ticks = [tick for tick in ticks if least / 1.15 <= tick <= greatest * 1.15]
    left.set_yticks(ticks, [f"{tick:.2g}" for tick in ticks])
    left.minorticks_off()
    words = f"over p = {base.ranks}" + ("" if len(all_series) == 1 else f", c = {base.replication}")
    left.set_ylabel(("scaled speed-up " if weak else "speed-up ") + words, fontsize=9.5)
    right.set_ylabel("parallel efficiency, %")
    right.set_ylim(0, max(112, 108 * max(point.efficiency.greatest for point in points)))
    handles.append(Line2D([], [], **IDEAL, label="ideal"))
    if shaded:
        handles.append(Patch(color=CROWDED, label="more ranks than cores"))
    figure.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.9), ncol=min(len(handles), 4))
    save(figure, folder, "speedup")
    pyplot.close(figure)


# ---- Volumes ---------------------------------------------------------------------------------------------------------


def draw_volumes(pyplot, points, folder):
    """Per series: bytes that a rank receives in an epoch, by stage, counted and predicted; below how far apart they are.
    False where nothing moves."""
    from matplotlib.lines import Line2D

    moving = [point for point in points if any(volume.counted > 0 for volume in point.volumes.values())]
    if not moving:
        return False
    all_series = series_of(moving)
    stages = [name for name in stage_names(moving) if any(p.volumes.get(name) and p.volumes[name].counted for p in moving)]
    predicted = [name for name in stages if any(p.volumes.get(name) and p.volumes[name].predicted for p in moving)]
    figure, axes = pyplot.subplots(2, len(all_series), figsize=(1.6 + 2.5 * len(all_series), 4.9), squeeze=False,
                                   sharex=True, sharey="row", gridspec_kw={"hspace": 0.12, "wspace": 0.1,
                                                                           "height_ratios": [2, 1]})
    for k, series in enumerate(all_series):
        mine = [point for point in moving if point.series == series]
        axes[0][k].set_title(series_words(series, series_of(points)))
        for stage in stages:
            place = predicted.index(stage) - (len(predicted) - 1) / 2 if stage in predicted else 0
            volume_line(axes[0][k], axes[1][k], mine, stage, 2 ** (0.08 * place))
        axes[1][k].axhline(0, color="#222222", linewidth=0.8, zorder=1)
        rank_axis(axes[1][k], moving)
        for axis in axes[:, k]:
            axis.grid(True, color="#dddddd", linewidth=0.7)
    counted = [v.counted / p.ranks / MEGABYTE for p in moving for v in p.volumes.values() if v.counted > 0]
    axes[0][0].set_yscale("log")
    axes[0][0].set_ylim(min(counted) / 1.6, max(counted) * 1.6)
    log_ticks(axes[0][0])
    axes[0][0].set_ylabel("MB received per rank and epoch")
    deviations = [abs(100 * (v.ratio - 1)) for p in moving for v in p.volumes.values() if v.ratio]
    reach = next((r for r in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if max(deviations, default=0) <= r), 100)
    axes[1][0].set_ylim(-1.2 * reach, 1.2 * reach)
    axes[1][0].set_yticks([-reach, 0, reach], [f"−{reach:g}", "0", f"+{reach:g}"])
    axes[1][0].set_ylabel("counted over\npredicted − 1, %")
    handles = [Line2D([], [], color=STAGES.get(stage, NEW_STAGE), linewidth=1.8, marker="o", markersize=3.5,
                      label=f"{stage}, counted") for stage in stages]
    handles.append(Line2D([], [], label="predicted", **PREDICTED))
    axes[0][-1].legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.02))
    save(figure, folder, "volumes")
    pyplot.close(figure)
    return True


PREDICTED = {"linestyle": "none", "marker": "o", "markersize": 9, "markerfacecolor": "none", "markeredgecolor": "#222222",
             "markeredgewidth": 1.0, "zorder": 4}


def volume_line(upper, lower, points, stage, nudge):
    """nudge: the stage's place beside p in the lower panel, where dots may coincide."""
    moved = [point for point in points if point.volumes.get(stage) and point.volumes[stage].counted > 0]
    colour = STAGES.get(stage, NEW_STAGE)
    upper.plot([point.ranks for point in moved], [point.volumes[stage].counted / point.ranks / MEGABYTE for point in moved],
               color=colour, marker="o", markersize=3.5, linewidth=1.8, zorder=3)
    known = [point for point in moved if point.volumes[stage].predicted]
    upper.plot([point.ranks for point in known],
               [point.volumes[stage].predicted / point.ranks / MEGABYTE for point in known], **PREDICTED)
    lower.plot([point.ranks * nudge for point in known], [100 * (point.volumes[stage].ratio - 1) for point in known],
               color=colour, linestyle="none", marker="o", markersize=5.5, zorder=3)


# ---- Loads -----------------------------------------------------------------------------------------------------------


def draw_loads(pyplot, points, folder):
    """Per series: entries in the rows asked of a rank, and picks made there, the most of a rank over the mean. False where no rank
    served another."""
    from matplotlib.lines import Line2D

    serving = [point for point in points if point.loads]
    if not serving:
        return False
    figure, axes = pyplot.subplots(1, 2, figsize=(7.2, 2.7), sharey=True, gridspec_kw={"wspace": 0.1})
    all_series, handles = series_of(points), []
    for i, series in enumerate(all_series):
        mine = [point for point in serving if point.series == series]
        if not mine:
            continue
        colour, marker, line = SERIES[i % len(SERIES)]
        looks = {"color": colour, "marker": marker, "linestyle": line, "linewidth": 1.6, "markersize": 5.5, "zorder": 3}
        for axis, what in zip(axes, ("entries", "picks")):
            axis.plot([point.ranks for point in mine], [point.loads[what].over_mean for point in mine], **looks)
        handles.append(Line2D([], [], label=series_words(series, all_series), **looks))
    for axis, what in zip(axes, ("entries", "picks")):
        axis.set_title(what)
        axis.axhline(1, **IDEAL)
        rank_axis(axis, serving)
        axis.grid(True, color="#dddddd", linewidth=0.7)
    above = max(0.05, *(point.loads[what].over_mean - 1 for point in serving for what in ("entries", "picks")))
    axes[0].set_ylim(1 - 0.08 * above, 1 + 1.1 * above)
    axes[0].set_ylabel("most of a rank over the mean")
    handles.append(Line2D([], [], **IDEAL, label="even"))
    axes[1].legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.02))
    save(figure, folder, "loads")
    pyplot.close(figure)
    return True


def draw_all(points, weak, most, folder):
    """Writes the plots; their names. most: how many ranks fit on the cores, None where that is unknown."""
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        draw_stages(pyplot, points, weak, most, folder)
        draw_speedup(pyplot, points, weak, most, folder)
        drawn = {"volumes": draw_volumes(pyplot, points, folder), "loads": draw_loads(pyplot, points, folder)}
        return ["stages", "speedup"] + [name for name, there in drawn.items() if there]

"""`espalier report DIR... [-o FILE]`: a run, or several side by side, as one HTML page that needs
nothing besides itself: no script, no request. Every number is one of report.json, or a sum, mean or
deviation of such.
"""

from __future__ import annotations

import argparse
import html
import os
import pathlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from . import charts
from .charts import Axes
from .comparison import Comparison, compare, read_run
from .errors import DataError
from .plotting import STAGES

MEGABYTE = 1e6
SEED = "train.seed"
USAGE, DATA = 2, 3  # exit codes, those of the program
STYLE = (
    """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --faint: #999; --c0: #0072b2; --c1: #d55e00;
  --c2: #009e73; --c3: #b5579a; --c4: #b78a00; --c5: #3d9bd1; --c6: #666; --c7: #8b1a1a; }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --paper: #16181b; --faint: #777; --c0: #56b4e9;
  --c1: #f08a4b; --c2: #2cc79a; --c3: #dd8fc4; --c4: #e6c229; --c5: #9ad0f5; --c6: #aaa; --c7: #e06666; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 76rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 1.5rem 0 .5rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; }
th, td { padding: .15rem .5rem; text-align: right; border-bottom: 1px solid var(--faint); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
"""
    + charts.STYLE
)


def cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return charts.short(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def line(cells: Iterable[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell(of))}</{tag}>" for of in cells) + "</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    return f'<div class="wide"><table>\n{line(header, "th")}\n{body}\n</table></div>'


def section(title: str, content: str) -> str:
    return f"<h2>{html.escape(title)}</h2>\n{content}\n" if content else ""


def grid(drawn: Iterable[str]) -> str:
    kept = [of for of in drawn if of]
    return '<div class="charts">' + "\n".join(kept) + "</div>" if kept else ""


def curves(reports: dict[str, dict[str, Any]], split: str, metric: str | None = None) -> str:
    """Of each run the loss, or the first metric of a split."""
    series = {}
    for name, report in reports.items():
        points = []
        for epoch in report.get("epochs", []):
            scores = epoch.get(split)
            if isinstance(scores, dict) and scores:
                metric = metric or next(iter(scores))
                scores = scores.get(metric)
            if isinstance(scores, (int, float)):
                points.append((epoch["epoch"], scores))
        if points:
            series[name] = ([x for x, _ in points], [y for _, y in points])
    title = split if split == "loss" else f"{split} {metric}"
    return charts.lines(Axes(title, "epoch", metric or "loss"), series)


def seconds_chart(epochs: list[dict[str, Any]]) -> str:
    stages = {
        stage: [epoch["seconds"].get(stage, 0.0) for epoch in epochs]
        for stage in STAGES
        if any(epoch["seconds"].get(stage) for epoch in epochs)
    }
    axes = Axes("Seconds by stage", "epoch", "seconds (s), of the slowest rank")
    return charts.stacked(axes, [epoch["epoch"] for epoch in epochs], stages)


def bytes_table(epochs: list[dict[str, Any]]) -> str:
    rows = [
        [stage, *(of[k] / MEGABYTE if k in of else None for k in ("total", "predicted", "max_rank"))]
        for stage, of in epochs[-1].get("bytes", {}).items()
    ]
    return table(["stage", "MB", "MB predicted", "MB of the rank with most"], rows) if rows else ""


def balance_table(epoch: dict[str, Any]) -> str:
    rows = [[name, value] for name, value in epoch.get("dealing", {}).items()]
    rows += [
        [f"{name} served, max over mean", of["max_over_mean"]]
        for name, of in epoch.get("served", {}).items()
        if "max_over_mean" in of
    ]
    return table(["ranks of the last epoch", "value"], rows) if rows else ""


def run_page(run: str) -> str:
    report = read_run(run)
    epochs = report.get("epochs", [])
    scores = [
        [split, metric, value]
        for split in ("train", "test")
        for metric, value in (report.get(split) or {}).items()
    ]
    machine = [
        [key, report[key]] for key in ("espalier", "device", "ranks", "threads", "replication") if key in report
    ]
    machine += [[f"graph {k}", v] for k, v in report.get("graph", {}).items() if not isinstance(v, dict)]
    memory = [[key, value / MEGABYTE] for key, value in report.get("peak_memory_bytes", {}).items()]
    confusion = report.get("confusion") or []
    drawn = [curves({"loss": report}, "loss"), curves({"valid": report}, "valid")]
    parts = [
        section("Scores with the best weights", table(["split", "metric", "value"], scores) if scores else ""),
        section("Curves and seconds", grid([*drawn, seconds_chart(epochs)] if epochs else [])),
        section("Bytes between ranks, last epoch", bytes_table(epochs) if epochs else ""),
        section("Memory", table(["peak of ranks", "MB"], memory) if memory else ""),
        section("Balance of ranks", balance_table(epochs[-1]) if epochs else ""),
        section(
            "Confusion matrix",
            table(
                ["class \\ predicted", *map(str, range(len(confusion)))],
                [[str(k), *row] for k, row in enumerate(confusion)],
            )
            if confusion
            else "",
        ),
        section("Machine and graph", table(["key", "value"], machine)),
        section(
            "Config",
            table(
                ["key", "value"],
                [[f"{s}.{k}", v] for s, of in report["config"].items() for k, v in of.items()],
            ),
        ),
    ]
    return page(run, parts)


def compared(of: Comparison) -> str:
    columns = of.columns()
    return table(columns, [[row.get(name) for name in columns] for row in of.rows])


def runs_page(runs: list[str]) -> str:
    reports = {run: read_run(run) for run in runs}
    seeds = {report["config"].get("train", {}).get("seed") for report in reports.values()}
    drawn = [curves(reports, split) for split in ("loss", "train", "valid")]
    over = compared(compare(runs, over=SEED)) if len(seeds) > 1 else ""
    parts = [
        section("Keys that differ, and what came of it", compared(compare(runs))),
        section("Mean and deviation over seeds", over),
        section("Curves", grid(drawn)),
    ]
    return page(f"{len(runs)} runs", parts)


def page(title: str, parts: Iterable[str]) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n" + "".join(parts) + "</body></html>\n"
    )


def write_report(runs: Iterable[str | os.PathLike[str]], path: str | os.PathLike[str]) -> None:
    runs = [os.fspath(run) for run in runs]
    try:
        text = run_page(runs[0]) if len(runs) == 1 else runs_page(runs)
    except DataError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as wrong:
        raise DataError(
            f"{', '.join(runs)}: a report.json holds something of another kind than `train` writes ({wrong})"
        ) from wrong
    pathlib.Path(path).write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="espalier report", description=(__doc__ or "").strip())
    parser.add_argument("runs", nargs="+", metavar="DIR", help="output folders")
    parser.add_argument("-o", "--output", help="the page; else report.html in the one DIR, or here")
    given = parser.parse_args(arguments)
    beside = pathlib.Path(given.runs[0]) if len(given.runs) == 1 else pathlib.Path()
    beside = beside if beside.is_dir() else beside.parent
    output = given.output or beside / "report.html"
    try:
        write_report(given.runs, output)
    except DataError as problem:
        print(f"espalier: error: {problem}", file=sys.stderr)
        return DATA
    except OSError as problem:
        print(f"espalier: error: {output} cannot be written: {problem.strerror}", file=sys.stderr)
        return USAGE
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())

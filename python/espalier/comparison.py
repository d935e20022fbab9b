"""Several runs side by side: what was asked for otherwise, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import DataError
from .results import read_report

MEGABYTE = 1e6
FOLDER = "output.dir"  # differs between any two runs


@dataclass
class Comparison:
    """`rows`: of each run {column: value}. As text a table of those columns that some run has, with
    one score of each split."""

    rows: list[dict[str, Any]]

    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __str__(self) -> str:
        scores: dict[str, str] = {}
        for name in self.columns():
            split, _, metric = name.partition(" ")
            if metric and split in ("train", "valid", "test"):
                scores.setdefault(split, name)
        shown = [
            name
            for name in self.columns()
            if name.split(" ")[0] not in scores or name in scores.values()
        ]
        lines = [shown] + [[_as_text(row.get(name)) for name in shown] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if at == 0 else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(line, widths))
            ).rstrip()
            for line in lines
        )

    def to_pandas(self) -> Any:
        try:
            import pandas
        except ImportError:
            raise DataError("pandas is not installed; rows has the same as dictionaries") from None
        return pandas.DataFrame(self.rows).set_index("run")


def _as_text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _settings(report: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, and of what graph: {"section.key": value}."""
    settings = {
        f"{section}.{key}": value
        for section, keys in report["config"].items()
        for key, value in keys.items()
    }
    settings.pop(FOLDER, None)
    return settings | {
        "ranks": report.get("ranks"),
        "device": report.get("device"),
        "graph digest": report.get("graph", {}).get("digest"),
    }


def _results(report: dict[str, Any]) -> dict[str, Any]:
    epochs = report.get("epochs", [])
    best = report.get("best_epoch")
    of_best: dict[str, Any] = next((epoch for epoch in epochs if epoch["epoch"] == best), {})
    seconds = sum(epoch["seconds"]["total"] for epoch in epochs)
    moved = sum(stage["total"] for epoch in epochs for stage in epoch.get("bytes", {}).values())
    found: dict[str, Any] = {"epochs": len(epochs), "best epoch": best}
    for split, scores in (
        ("train", report.get("train")),
        ("valid", of_best.get("valid")),
        ("test", report.get("test")),
    ):
        found |= {f"{split} {metric}": value for metric, value in (scores or {}).items()}
    found |= {
        "seconds": seconds,
        "seconds an epoch": seconds / len(epochs) if epochs else None,
        "MB between ranks": moved / MEGABYTE,
    }
    if (peak := report.get("peak_memory_bytes")) is not None:
        found["peak MB of a rank"] = peak["max"] / MEGABYTE
    return {name: value for name, value in found.items() if value is not None}


def read_run(run: str | os.PathLike[str]) -> dict[str, Any]:
    """The report of a training or sampling, whose config and epochs are whole."""
    report = read_report(run)
    config, epochs = report.get("config"), report.get("epochs", [])
    if not isinstance(config, dict) or not all(isinstance(of, dict) for of in config.values()):
        raise DataError(f"{run} has a report without the config of a run; run it again")
    whole = isinstance(epochs, list) and all(
        isinstance(epoch, dict)
        and isinstance(epoch.get("epoch"), int)
        and isinstance(epoch.get("seconds"), dict)
        and "total" in epoch["seconds"]
        for epoch in epochs
    )
    if not whole:
        raise DataError(f"{run} has a report whose epochs are not whole; run it again")
    return report


def _over(
    runs: list[str], settings: list[dict[str, Any]], results: list[dict[str, Any]], over: str
) -> Comparison:
    """A row for each group of runs that differ in `over` alone: of each number its mean, beside it
    its deviation (of a sample: n - 1), none where there is one run."""
    if not any(over in of for of in settings):
        raise DataError(f"no run has the key {over!r}; over= names one of the config, as train.seed")
    groups: list[tuple[dict[str, Any], list[int]]] = []
    for at, of in enumerate(settings):
        rest = {name: value for name, value in of.items() if name != over}
        for known, members in groups:
            if known == rest:
                members.append(at)
                break
        else:
            groups.append((rest, [at]))
    differ = _differing([rest for rest, _ in groups])
    rows = []
    for rest, members in groups:
        row = {"run": runs[members[0]]} | {name: rest.get(name) for name in differ}
        row["n"] = len(members)
        for name in dict.fromkeys(name for at in members for name in results[at]):
            values = [results[at][name] for at in members if name in results[at]]
            row[name] = float(np.mean(values))
            row[f"{name} deviation"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
        rows.append(row)
    return Comparison(rows)


def _differing(settings: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for of in settings for name in of)
    return [name for name in names if any(of.get(name) != settings[0].get(name) for of in settings)]


def compare(runs: Iterable[str | os.PathLike[str]], over: str | None = None) -> Comparison:
    """A row for each output folder: settings that differ between them, scores with the weights of
    the best epoch, seconds and bytes of all epochs that the report has. over="train.seed": a row for
    all that differ in that key alone, with mean, deviation and n."""
    runs = [os.fspath(run) for run in ([runs] if isinstance(runs, (str, os.PathLike)) else runs)]
    reports = [read_run(run) for run in runs]
    settings = [_settings(report) for report in reports]
    results = [_results(report) for report in reports]
    if over is not None:
        return _over(runs, settings, results, over)
    differ = _differing(settings)
    return Comparison(
        [
            {"run": run} | {name: of.get(name) for name in differ} | found
            for run, of, found in zip(runs, settings, results)
        ]
    )

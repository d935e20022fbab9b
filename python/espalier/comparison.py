"""Several runs side by side: what was asked for otherwise, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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


def compare(runs: Iterable[str | os.PathLike[str]]) -> Comparison:
    """A row for each output folder: settings that differ between them, scores with the weights of
    the best epoch, seconds and bytes of all epochs that the report has."""
    runs = [os.fspath(run) for run in ([runs] if isinstance(runs, (str, os.PathLike)) else runs)]
    reports = [read_report(run) for run in runs]
    settings = [_settings(report) for report in reports]
    names = list(dict.fromkeys(name for of in settings for name in of))
    differ = [
        name for name in names if any(of.get(name) != settings[0].get(name) for of in settings)
    ]
    return Comparison(
        [
            {"run": run} | {name: of.get(name) for name in differ} | _results(report)
            for run, of, report in zip(runs, settings, reports)
        ]
    )

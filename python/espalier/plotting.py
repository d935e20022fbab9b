"""How a run went, as a figure of matplotlib."""

from __future__ import annotations

import os
from typing import Any

from .errors import DataError
from .results import read_report

STAGES = ("sample", "fetch", "forward", "backward", "reduce", "optimizer", "evaluate")
ABOVE: dict[str, Any] = {
    "loc": "lower center",
    "bbox_to_anchor": (0.5, 1),
    "ncols": 4,
    "fontsize": "small",
}


def plot(run: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> Any:
    """Loss and scores by epoch, seconds by stage; of an output folder or its report.json. Returns
    the figure; `path`: saves it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError("matplotlib is not installed: pip install matplotlib") from None
    report = read_report(run)
    epochs = [epoch for epoch in report.get("epochs", []) if "loss" in epoch]
    if not epochs:
        raise DataError(f"{run} has no epochs of a training; `espalier train` makes some")
    numbers = [epoch["epoch"] for epoch in epochs]
    figure = Figure(figsize=(10, 4), layout="constrained")
    learnt, spent = figure.subplots(1, 2)
    learnt.plot(numbers, [epoch["loss"] for epoch in epochs], color="black", label="loss")
    learnt.set(xlabel="epoch", ylabel="loss")
    scores = learnt.twinx()
    for split in ("train", "valid"):
        judged = [epoch for epoch in epochs if epoch.get(split)]
        if judged:
            metric = next(iter(judged[0][split]))
            scores.plot(
                [epoch["epoch"] for epoch in judged],
                [epoch[split][metric] for epoch in judged],
                marker=".",
                label=f"{split} {metric}",
            )
            scores.set(ylabel=metric)
    lines = [*learnt.get_lines(), *scores.get_lines()]
    learnt.legend(lines, [str(line.get_label()) for line in lines], **ABOVE)
    below = [0.0] * len(epochs)
    for stage in STAGES:
        seconds = [epoch["seconds"].get(stage, 0.0) for epoch in epochs]
        if any(seconds):
            spent.bar(numbers, seconds, bottom=below, label=stage)
        below = [under + more for under, more in zip(below, seconds)]
    spent.set(xlabel="epoch", ylabel="seconds by stage, of its slowest rank")
    spent.legend(**ABOVE)
    for axes in (learnt, spent):
        axes.xaxis.get_major_locator().set_params(integer=True)
    if path is not None:
        figure.savefig(os.fspath(path))
    return figure

"""The program's commands from Python, and what came of them."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import sys
import tomllib
from typing import Any

from .errors import DataError
from .job import key_words, open
from .library import library, program
from .results import read_report

Path = str | os.PathLike[str]
Keys = dict[str, Any]


def train(config: Path, ranks: int | None = None, **keys: Any) -> dict[str, Any]:
    """Trains as `espalier train` does. With a number of `ranks` the program does, by `mpirun -np
    RANKS` (or what $ESPALIER_LAUNCHER names), and its report.json comes back. With None this
    process does, and the ranks that it is one of: {"config", "epochs", "weights"} comes back, and
    no file is written."""
    if ranks is not None:
        return _report("train", config, ranks, keys)
    with open(config, **keys) as job:
        epochs = [dataclasses.asdict(of) for of in job.train()]
        weights = dict(job.weights)
        return {"config": job.about["config"], "epochs": epochs, "weights": weights}


def sample(
    config: Path,
    ranks: int | None = None,
    *,
    epochs: int = 1,
    write: Path | None = None,
    **keys: Any,
) -> dict[str, Any]:
    """`espalier sample`, with its report.json; `write`: a folder of batches, for `Minibatches`."""
    to = [] if write is None else ["--write", os.fspath(write)]
    return _report("sample", config, ranks, keys, "--epochs", str(epochs), *to)


def infer(
    config: Path,
    checkpoint: Path,
    output: Path,
    *options: str,
    ranks: int | None = None,
    **keys: Any,
) -> pathlib.Path:
    """`espalier infer`, with options as "--predictions": the file that it wrote, for `read_rows`
    and `read_predictions`."""
    files = ["--checkpoint", os.fspath(checkpoint), "-o", os.fspath(output)]
    _run("infer", config, ranks, keys, *files, *options)
    return pathlib.Path(output)


def _report(
    command: str, config: Path, ranks: int | None, keys: Keys, *options: str
) -> dict[str, Any]:
    settled = tomllib.loads(_run("sample", config, 1, keys, "--dry-run", shown=False))
    _run(command, config, ranks, keys, "--overwrite", *options)
    return read_report(settled["output"]["dir"])


def program_on(ranks: int) -> list[str]:
    """The program, and before it what starts so many ranks."""
    if ranks <= 1:
        return [program()]
    launcher = os.environ.get("ESPALIER_LAUNCHER", "mpirun")
    return [launcher, "--bind-to", "none", "-np", str(ranks), program()]


def _run(
    command: str, config: Path, ranks: int | None, keys: Keys, *options: str, shown: bool = True
) -> str:
    """What it printed, where that is not to be `shown`."""
    if library().espalier_is_launched():
        raise DataError(
            f"this process is a rank of MPI and cannot start those of `{command}`: ask a process "
            "that has opened no job; train(ranks=None) trains on the ranks that are here"
        )
    words = [*program_on(ranks or 1), command, os.fspath(config), *key_words(keys), *options]
    sys.stdout.flush()
    pipe = None if shown else subprocess.PIPE
    try:
        done = subprocess.run(words, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    except FileNotFoundError as missing:
        raise DataError(f"{missing.filename} is not in PATH") from None
    if done.returncode != 0:
        raise DataError(f"`{command}` ended with {done.returncode}: {done.stderr.strip()}")
    sys.stderr.write(done.stderr)
    return done.stdout or ""

"""`espalier sweep job.toml train.seed=0..4 model.hidden=128,256`: every combination of the values, one
run after the other, and then the page that compares them (report.py). A run that fails leaves the
others be; the exit code is that of the first that failed.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence

from .errors import DataError
from .programs import program_on
from .report import DATA, USAGE, write_report

MOST_RUNS = 10_000
SIGNAL = 128  # a shell's exit code of a program that a signal ended: this and its number


def values_of(text: str) -> list[str]:
    """0..4 has both ends; at commas values are told apart, but not within [5,5] or "a,b"."""
    if found := re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text):
        first, last = int(found[1]), int(found[2])
        if not first <= last < first + MOST_RUNS:
            raise DataError(f"{text} is no range of at most {MOST_RUNS} numbers, the smaller first")
        return [str(value) for value in range(first, last + 1)]
    values = [""]
    depth, quoted = 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter == "[") - (letter == "]")
        if letter == "," and depth == 0 and not quoted:
            values.append("")
        else:
            values[-1] += letter
    if "" in values or len(set(values)) < len(values):
        raise DataError(f"{text!r} has a value that is empty, or one twice")
    return values


def combinations(keys: Sequence[str]) -> list[list[str]]:
    """Of each run its "key=value"; the last key changes fastest."""
    choices: dict[str, list[str]] = {}
    for of in keys:
        name, equals, text = of.partition("=")
        if not equals or not re.fullmatch(r"\w+\.\w+", name):
            raise DataError(f"{of!r} is no key with values, as train.seed=0..4")
        if name in choices or name == "output.dir":
            raise DataError(f"{name} is given twice, or is the sweep's own: -o names the folder")
        choices[name] = values_of(text)
    count = 1
    for values in choices.values():
        count *= len(values)
    if count > MOST_RUNS:
        raise DataError(f"these are {count} runs; a sweep has at most {MOST_RUNS}")
    return [
        [f"{name}={value}" for name, value in zip(choices, chosen)]
        for chosen in itertools.product(*choices.values())
    ]


def folder_of(at: int, keys: Sequence[str]) -> str:
    """A number tells folders apart whose values differ in what a name cannot have."""
    named = "_".join(re.sub(r"[^\w.=-]+", "-", of.partition(".")[2]) for of in keys)
    return f"{at:03d}_{named}"[:100]


def sweep(command: Sequence[str], config: str, keys: Sequence[str], output: pathlib.Path) -> int:
    """The exit code; `command`: what trains, as mpirun -np 4 espalier."""
    finished, failed = [], 0
    runs = combinations(keys)
    for at, chosen in enumerate(runs):
        folder = output / folder_of(at, chosen)
        print(f"run {at + 1} of {len(runs)}: {' '.join(chosen)}", flush=True)
        asked = [*command, "train", config, *chosen, f"output.dir={folder}"]
        code = subprocess.run(asked, check=False).returncode
        if code == 0:
            finished.append(folder)
        else:
            code = SIGNAL - code if code < 0 else code
            print(f"espalier: error: {' '.join(chosen)} ended with exit code {code}", file=sys.stderr)
            failed = failed or code
    if finished:
        try:
            write_report(finished, output / "report.html")
        except DataError as problem:
            print(f"espalier: error: {problem}", file=sys.stderr)
            return failed or DATA
        print(output / "report.html")
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="espalier sweep", description=(__doc__ or "").strip())
    parser.add_argument("config", help="the job")
    parser.add_argument("keys", nargs="+", metavar="KEY=VALUES", help="train.seed=0..4")
    parser.add_argument("-o", "--output", default="sweep", help="folder of the runs and the page")
    parser.add_argument("-n", "--ranks", type=int, default=1, help="ranks of each run, by mpirun")
    given = parser.parse_args(arguments)
    output = pathlib.Path(given.output)
    try:
        output.mkdir(parents=True, exist_ok=True)
        return sweep(program_on(given.ranks), given.config, given.keys, output)
    except (DataError, OSError) as problem:
        print(f"espalier: error: {problem}", file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main())

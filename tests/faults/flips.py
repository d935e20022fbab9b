#!/usr/bin/env python3
"""Flips single bytes of the program's files, cuts them off, and looks at what the program makes of it.

    python3 tests/faults/flips.py [--flips 2000] [--cuts 500] [--seed N] [--program build/cpu/espalier]

Law: a damaged file is refused (exit code 2 to 4, one message), or the result is the very same; there is
no other result, no crash, and nothing that takes longer than ten seconds. Half of the flips hit any byte,
half of them the file's structure, the bytes that hold no data. Ends with a table, and with 1 where the law
is broken; a broken case stays in the folder that is named.

An entry of KINDS is a file to damage: how it is made, and the arguments that make the program read it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.app.program import PROGRAM, awkward_graph, environment_apart, espalier  # noqa: E402

PATIENCE = 10
CONFIG = """
[sampler]
fanout = [3, 2]
batch_size = 5
[model]
hidden = 4
layers = 2
normalize = "batch"
[train]
epochs = 2
[run]
threads = 1
device = "cpu"
"""


def run(*arguments):
    code, output = espalier(*arguments, program=run.program)
    assert code == 0, output


run.program = PROGRAM


def generated(folder):
    """A graph file as `generate` writes it."""
    run("-q", "generate", "planted", "--nodes", 60, "--degree", 4, "--classes", 3, "--features", 4, "--seed", 3,
        "-o", folder / "graph.h5")
    return folder / "graph.h5"


def made_by_h5py(folder):
    """A file of another program, of HDF5's older structure and with texts of variable length; digests added."""
    awkward_graph(folder / "graph.h5")
    run("-q", "digest", folder / "graph.h5", "--write")
    return folder / "graph.h5"


def with_links(folder):
    """A graph file with links, and with nothing that their task does not read."""
    generated(folder)
    with h5py.File(folder / "graph.h5", "a") as file:
        del file["nodes/labels"], file["split"]
    run("-q", "digest", folder / "graph.h5", "--write")
    run("-q", "prepare", folder / "graph.h5", "--split-links", "0.8,0.1,0.1", "-o", folder / "links.h5")
    return folder / "links.h5"


def checkpoint(folder):
    """A checkpoint after the first of two epochs."""
    generated(folder)
    run("-q", "train", folder / "job.toml", f"graph.file={folder}/graph.h5", f"output.dir={folder}/whole",
        "run.checkpoint_every=1")
    return folder / "whole" / "checkpoints" / "epoch-0002-step-000000.h5"


def order(folder):
    """An order of the graph's vertices."""
    run("-q", "partition", generated(folder), "--clusters", 8, "-o", folder / "order.h5")
    return folder / "order.h5"


# name: (what makes it, key that takes its path, other arguments)
KINDS = {
    "graph file": (generated, "graph.file", []),
    "graph file of h5py": (made_by_h5py, "graph.file", []),
    "graph file with links": (with_links, "graph.file", ["train.task=links"]),
    "checkpoint": (checkpoint, "run.restart", ["graph.file={folder}/graph.h5"]),
    "order": (order, "graph.order", ["graph.file={folder}/graph.h5"]),
}


def data_ranges(path):
    """[begin, end) of the bytes that hold data."""
    found = []

    def visit(_, item):
        if isinstance(item, h5py.Dataset) and item.id.get_offset() is not None:
            begin = item.id.get_offset()
            found.append((begin, begin + item.id.get_storage_size()))

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def damages(path, flips, cuts, chosen):
    """(name, damaged bytes), one after another."""
    content = path.read_bytes()
    data = data_ranges(path)
    structure = [k for k in range(len(content)) if not any(begin <= k < end for begin, end in data)]
    for number in range(flips):
        place = chosen.randrange(len(content)) if number % 2 == 0 else chosen.choice(structure)
        mask = chosen.randrange(1, 256)
        damaged = bytearray(content)
        damaged[place] ^= mask
        yield f"flip of byte {place} by {mask:#04x}", "data" if any(b <= place < e for b, e in data) else "structure", damaged
    for _ in range(cuts):
        length = chosen.randrange(len(content))
        yield f"cut to {length} bytes", "cut", content[:length]


def result_of(folder):
    report = json.loads((folder / "report.json").read_text())
    return {"weights": report["weights_digest"], "test": report.get("test"), "best_epoch": report["best_epoch"],
            "epochs": [{key: epoch.get(key) for key in ("loss", "valid", "sample_digest", "sampled_edges", "input_rows")}
                       for epoch in report["epochs"]]}


class Kind:
    def __init__(self, name, folder):
        make, self.key, others = KINDS[name]
        self.folder = folder
        (folder / "job.toml").write_text(CONFIG)
        self.path = make(folder)
        self.others = [other.format(folder=folder) for other in others]
        code, output = self.train(self.path, folder / "undamaged")
        assert code == 0, output
        self.expected = result_of(folder / "undamaged")

    def train(self, path, output):
        with environment_apart(self.folder) as env:
            return espalier("train", self.folder / "job.toml", f"{self.key}={path}", f"output.dir={output}", *self.others,
                            program=run.program, timeout=PATIENCE, env=env)

    def outcome(self, number, damaged):
        """One word for what became of it, and why."""
        path, output = self.folder / f"damaged{number}.h5", self.folder / f"out{number}"
        path.write_bytes(damaged)
        try:
            code, text = self.train(path, output)
        except subprocess.TimeoutExpired:
            return "hang", f"no end within {PATIENCE} s: {path}"
        errors = [line for line in text.splitlines() if line.startswith("espalier: error:")]
        if code == 0:
            same = result_of(output) == self.expected
            word, why = ("same", "") if same else ("OTHER RESULT", str(path))
        elif code in (2, 3, 4) and len(errors) == 1:
            word, why = "refused", ""
        else:
            word, why = "CRASH", f"exit code {code}: {path}\n{text[:2000]}"
        if not why:
            path.unlink()
        shutil.rmtree(output, ignore_errors=True)
        return word, why


WORDS = ["refused", "same", "OTHER RESULT", "CRASH", "hang"]


def try_kind(name, flips, cuts, seed, workers=os.cpu_count()):
    """({where it was hit: {word: count}}, [what broke the law], longest seconds)"""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-flips-"))
    kind = Kind(name, folder)
    counts, broken, longest = collections.defaultdict(collections.Counter), [], 0

    def one(case):
        number, (what, where, damaged) = case
        start = time.monotonic()
        word, why = kind.outcome(number, damaged)
        return what, where, word, why, time.monotonic() - start

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for what, where, word, why, seconds in pool.map(one, enumerate(damages(kind.path, flips, cuts, random.Random(seed)))):
            counts[where][word] += 1
            longest = max(longest, seconds)
            if why:
                broken.append(f"{name}: {what}: {word}: {why}")
    if not broken:
        shutil.rmtree(folder)
    return counts, broken, longest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--cuts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--program", default=PROGRAM)
    options = parser.parse_args()
    run.program = options.program
    print(f"seed {options.seed}: {options.flips} flips and {options.cuts} cuts of each file")
    print(f"{'file':<22} {'hit':<10}" + "".join(f"{word:>14}" for word in WORDS))
    everything = []
    for name in KINDS:
        counts, broken, longest = try_kind(name, options.flips, options.cuts, options.seed)
        for where in ("data", "structure", "cut"):
            if counts[where]:
                print(f"{name:<22} {where:<10}" + "".join(f"{counts[where][word]:>14}" for word in WORDS), flush=True)
        print(f"{name:<22} the longest took {longest:.1f} s", flush=True)
        everything += broken
    print("\n".join(everything) if everything else "every one refused, or the same result")
    return 1 if everything else 0


if __name__ == "__main__":
    sys.exit(main())

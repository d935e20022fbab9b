#!/usr/bin/env python3
"""Do two programs make the same graph files? Each command of the tests that makes one is given to an older program, too.

    python3 tests/beside.py OLDER_PROGRAM [--only app/import] [--ranks 3]

Runs the tests of the importers, of prepare and generate (FILES), on the rank counts that they have, or with the newer program on so
many ranks; before each `import`, `prepare` and `generate` the older program gets the same arguments, its file elsewhere. Compared are
exit code, every line that is printed, and of the two files all that h5py sees: names, types, shapes, attributes (so digests), values.
Ends with 1 where something differs.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

FILES = ("app/import", "app/prepare", "app/clean_graph", "app/graph_commands", "app/round_trip", "app/relabel", "app/link", "app/sparse",
         "app/edge_features", "app/typed_file", "app/typed_test", "app/split_names", "app/digest", "app/labels", "app/order",
         "app/infer_ids", "scripts/ogb_links", "scripts/debian")
MAKERS = ("import", "prepare", "generate")
# What differs from run to run: seconds and rates, folders of a run, process numbers.
UNSTEADY = ((re.compile(r"\d+(\.\d+)?(e[-+]\d+)? (s|ms|[KMG]i?B/s|[KMG]?B|M(vertices|edges|lines)/s)\b"), "N UNIT"), (re.compile(r"partial-\d+"), "partial-PID"))


def contents(path):
    """{name: what h5py sees of it} of a file."""
    import h5py
    import numpy as np

    def plain(value):
        array = np.asarray(value)
        return str(array.dtype), array.shape, array.tobytes() if array.dtype.kind != "O" else repr(array.tolist())

    found = {}

    def look(name, item):
        of = {f"@{key}": plain(value) for key, value in item.attrs.items()}
        if isinstance(item, h5py.Dataset):
            of[""] = plain(item[()])
        found[name] = of

    with h5py.File(path) as file:
        look("/", file)
        file.visititems(look)
    return found


def differences(one, other):
    """Lines that say where two files differ."""
    one, other = contents(one), contents(other)
    for name in sorted({**one, **other}):
        a, b = one.get(name), other.get(name)
        if a is None or b is None:
            yield f"{name} is only in {'the newer' if a is None else 'the older'}"
            continue
        for key in sorted({**a, **b}):
            if a.get(key) != b.get(key):
                yield f"{name}{key}: " + " | ".join("none" if of is None else f"{of[0]} {of[1]} {of[2][:24]!r}" for of in (a.get(key), b.get(key)))


def is_file(path):
    try:
        return pathlib.Path(path).is_file()
    except OSError:
        return False


def output_of(arguments):
    """The place of the word that names what a command makes, or None."""
    words = [word for word in arguments if not word.startswith("-")]
    if not words or words[0] not in MAKERS:
        return None
    places = [k + 1 for k, word in enumerate(arguments[:-1]) if word in ("-o", "--output")]
    return places[0] if places else None


class Beside:
    """Of one command: what the older program makes of it, and whether the newer does the same."""

    def __init__(self, arguments, run):
        self.arguments, self.place = list(map(str, arguments)), output_of(list(map(str, arguments)))
        self.wanted = self.place is not None
        if not self.wanted:
            return
        self.output = self.arguments[self.place]
        self.folder = tempfile.TemporaryDirectory(prefix="espalier-beside-")
        self.older = os.path.join(self.folder.name, os.path.basename(self.output) or "output")
        folder = os.path.dirname(self.output) or "."
        if os.path.isdir(self.output) or not os.path.isdir(folder) or self.arguments.count(self.output) > 1:
            self.wanted = False  # the place itself is refused
            return
        if is_file(self.output):
            shutil.copyfile(self.output, self.older)
        words = [*self.arguments]
        words[self.place] = self.older
        self.code, said = run(words)
        self.said = self.steady(said.replace(self.older, self.output))

    def steady(self, said):
        for pattern, word in UNSTEADY:
            said = pattern.sub(word, said)
        return sorted(said.splitlines())

    def compare(self, code, said):
        if not self.wanted:
            return
        found, said = [], self.steady(said)
        if code != self.code:
            found.append(f"exit code {self.code} | {code}")
        lines = [f"< {line}" for line in self.said if line not in said] + [f"> {line}" for line in said if line not in self.said]
        found += lines
        if code == 0 and is_file(self.output) and is_file(self.older):
            found += differences(self.older, self.output)
        elif is_file(self.output) != is_file(self.older):
            found.append("only one of them left a file")
        self.folder.cleanup()
        with open(os.environ["ESPALIER_BESIDE_LOG"], "a") as log:
            log.write(json.dumps({"command": self.arguments, "differs": found}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the older one")
    parser.add_argument("--only", action="append", help="a test file, or the beginning of several; else all that make graph files")
    parser.add_argument("--ranks", type=int, help="of the newer program where it makes a graph file")
    parser.add_argument("--files", action="store_true", help="look at files alone, not at words and exit codes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        log.touch()
        env = dict(os.environ, ESPALIER_BESIDE=os.path.abspath(options.program), ESPALIER_BESIDE_LOG=str(log))
        if options.ranks:
            env["ESPALIER_BESIDE_RANKS"] = str(options.ranks)
        for only in options.only or FILES:
            subprocess.run([sys.executable, ROOT / "tests/run.py", "--only", only, "--no-gpu"], env=env, cwd=ROOT)
        commands = [json.loads(line) for line in log.read_text().splitlines()]
    for of in commands if options.files else []:
        of["differs"] = [line for line in of["differs"] if not line.startswith(("< ", "> ", "exit code ", "only one "))]
    differ = [of for of in commands if of["differs"]]
    for of in differ:
        print(" ".join(of["command"]), *(f"    {line}" for line in of["differs"]), sep="\n")
    print(f"{len(commands)} commands, {len(differ)} with differences")
    return 1 if differ or not commands else 0


if __name__ == "__main__":
    sys.exit(main())

"""What the tests of the command line share: running the program and making small graph files with h5py."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy as np

from tests.beside import Beside
from tests.launcher import LAUNCHER

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / os.environ.get("ESPALIER", "build/cpu/espalier"))
SHARED_DATA = ROOT.parent / "shared" / "data"
LONG = bool(os.environ.get("ESPALIER_LONG"))
OLDER, NEWER_RANKS = os.environ.get("ESPALIER_BESIDE"), os.environ.get("ESPALIER_BESIDE_RANKS")  # tests/beside.py
# The program on GPUs, or on emulated ones where there is none.
EMULATED = os.environ.get("ESPALIER_EMULATED", str(ROOT / "build/emulated/espalier"))
needs_emulation = unittest.skipUnless(os.path.exists(EMULATED), "the emulated program was not built: make emulated")


def on_gpus(count, **environment):
    """Options of a run on so many emulated GPUs."""
    return {"program": EMULATED, "env": dict(os.environ, ESPALIER_EMULATED_GPUS=str(count), **environment)}


def espalier(*arguments, ranks=1, timeout=200, program=PROGRAM, overwrite=True, **options):
    """Runs the program; returns (exit code, everything it printed). A run may replace a finished one of the same test
    unless `overwrite` is false."""
    command = [program, *map(str, arguments)]
    if overwrite and {"train", "sample"} & set(command[1:4]) and "help" not in command:
        command.append("--overwrite")

    def run(*command, ranks=ranks):
        done = subprocess.run(LAUNCHER.command(ranks, *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=timeout, **options)
        return done.returncode, done.stdout

    beside = OLDER and program == PROGRAM and Beside(command[1:], lambda words: run(OLDER, *words))
    code, said = run(*command, ranks=int(NEWER_RANKS) if beside and beside.wanted and NEWER_RANKS else ranks)
    if beside:
        beside.compare(code, said)
    return code, said


@contextlib.contextmanager
def environment_apart(folder=None):
    """For a program that starts while others do: what its launcher writes is in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="mpi-", dir=folder, ignore_cleanup_errors=True) as sessions:
        yield dict(os.environ, **LAUNCHER.apart(sessions))


_MADE = {}  # files that many tests begin with, by the words of the commands that made them
_MADE_IN = tempfile.TemporaryDirectory(prefix="espalier-made-")


class FolderTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def script(self, path, text):
        """A program in the folder."""
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path


def job_text(graph, output, *lines):
    """A config of these lines, key=value; of two of one key the later counts."""
    values = dict(line.split("=", 1) for line in (f'graph.file="{graph}"', *lines, f'output.dir="{output}"'))
    return "".join(f"{key} = {value}\n" for key, value in values.items())


def arrays_of(path, group="/"):
    """{name: array} of all data sets of a file of HDF5, or of one of its groups."""
    found = {}
    with h5py.File(path) as file:
        file[group].visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


class ProgramTest(FolderTest):
    """A test with the program at hand, and with a config of the lines of JOB where there are any."""

    JOB = None

    def setUp(self):
        super().setUp()
        self.graph, self.output, self.config = self.folder / "graph.h5", self.folder / "out", self.folder / "job.toml"
        if self.JOB is not None:
            self.write_job()

    def write_job(self, *lines):
        self.config.write_text(job_text(self.graph, self.output, *self.JOB, *lines))

    def succeed(self, *arguments, **options):
        code, output = espalier(*arguments, **options)
        self.assertEqual(code, 0, output)
        return output

    def make_once(self, path, *commands):
        """A file at `path`: what the last of these commands writes there, each of its words, its file behind them. They run once in a
        process, and later a copy is made: a test may change its own."""
        key = tuple(tuple(map(str, command)) for command in commands)
        if key not in _MADE:
            made = [pathlib.Path(_MADE_IN.name) / f"{len(_MADE)}-{k}.h5" for k in range(len(commands))]
            for k, command in enumerate(commands):
                self.succeed("-q", *(made[k - 1] if word is None else word for word in command), "-o", made[k])
            _MADE[key] = made[-1]
        shutil.copyfile(_MADE[key], path)

    def fail_with(self, code, words, *arguments, **options):
        """The run ends with `code` and one message from rank 0 that holds all `words`."""
        got, output = espalier(*arguments, **options)
        self.assertEqual(got, code, output)
        errors = [line for line in output.splitlines() if line.startswith("espalier: error:")]
        self.assertEqual(len(errors), 1, output)
        for word in words:
            self.assertIn(word, errors[0])
        return output

    def stopped_run(self, *arguments, **options):
        """A run that stops after a step, as run.max_minutes says."""
        code, output = espalier(*arguments, "run.max_minutes=1e-9", **options)
        self.assertEqual(code, 5, output)
        return output

    def report(self, folder):
        return json.loads((pathlib.Path(folder) / "report.json").read_text())

    def planned(self, *overrides, ranks=1, codes=(0,)):
        """The plan of the job; with code 4 of one that does not fit."""
        code, output = espalier("-q", "plan", self.config, "--ranks", ranks, *overrides)
        self.assertIn(code, codes, output)
        return json.loads((self.output / "plan.json").read_text())

    def compare_bytes(self, run, plan, what, off=0.05, **off_of):
        """The plan's bytes of each stage are within `off` of the run's, or within what is said of the stage."""
        run, plan = run["epochs"][0], plan["epochs"][0]
        self.assertEqual(set(run["bytes"]), set(plan["bytes"]), what)
        for stage in run["bytes"]:
            counted, said = run["bytes"][stage], plan["bytes"][stage]
            self.assertLessEqual(abs(said["total"] - counted["total"]), off_of.get(stage, off) * counted["total"],
                                 f"{what}: {stage}: counted {counted}, planned {said}")
            self.assertLessEqual(said["max_rank"], said["total"])

    def infer_to(self, name, *options, config=None, weights=None, **run):
        """The file of this name, of the rows that the weights of a run give."""
        rows = self.folder / name
        self.succeed("-q", "infer", config or self.config, "--checkpoint", weights or self.output / "weights.h5", "-o", rows,
                     "--overwrite", *options, **run)
        return rows

    def inferred(self, *options, config=None, weights=None, **run):
        """({name: array}, attributes) of the rows that the weights of a run give."""
        rows = self.infer_to("rows.h5", *options, config=config, weights=weights, **run)
        with h5py.File(rows) as file:
            about = dict(file.attrs)
        return arrays_of(rows), about


def write_file(path, attributes, arrays):
    """A file of h5py; of what is None there is none."""
    with h5py.File(path, "w") as file:
        file.attrs.update({name: value for name, value in attributes.items() if value is not None})
        for name, value in arrays.items():
            if value is not None:
                file[name] = value


def write_graph(path, rows, features, labels, train, valid, test, weights=None, index_type=np.int32):
    """rows[v] lists the in-neighbours of v."""
    write_file(path, {"format": "espalier-graph", "version": 1, "name": "handmade", "source": "a test", "directed": True}, {
        "graph/indptr": np.cumsum([0] + [len(row) for row in rows]).astype(np.int64),
        "graph/indices": np.array([u for row in rows for u in row], dtype=index_type),
        "graph/weights": None if weights is None else np.asarray(weights, dtype=np.float32),
        "nodes/features": np.asarray(features), "nodes/labels": np.asarray(labels, dtype=np.int32),
        **{f"split/{name}": np.asarray(ids, dtype=np.int64) for name, ids in (("train", train), ("valid", valid), ("test", test))}})


def weigh_edges(path):
    """Gives the edges of a graph file weights, of 0 and from 0.25 to 7."""
    with h5py.File(path, "a") as file:
        file["graph/weights"] = np.random.default_rng(7).choice([0, 0.25, 1, 2, 7], len(file["graph/indices"])).astype(np.float32)
    code, output = espalier("digest", path, "--write")
    assert code == 0, output


def awkward_graph(path, index_type=np.int32, half=False):
    """50 vertices: vertex 0 hears everybody, 1 is isolated, 2 only itself, the others three or four neighbours; 21 to train."""
    n = 50
    rows = [list(range(n)), [], [2]] + [sorted({(v * k + k) % n for k in (1, 3, 7, 11)}) for v in range(3, n)]
    random = np.random.default_rng(1)
    labels = np.arange(n) % 3
    features = (np.eye(3)[labels] @ random.normal(size=(3, 6)) + random.normal(size=(n, 6))).astype(
        np.float16 if half else np.float32)
    order = random.permutation(n)
    write_graph(path, rows, features, labels, sorted(order[:21]), sorted(order[21:30]), sorted(order[30:]),
                weights=random.uniform(0, 2, sum(map(len, rows))), index_type=index_type)

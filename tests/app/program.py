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

from tests.launcher import LAUNCHER

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / os.environ.get("ESPALIER", "build/cpu/espalier"))
SHARED_DATA = ROOT.parent / "shared" / "data"
LONG = bool(os.environ.get("ESPALIER_LONG"))


def espalier(*arguments, ranks=1, timeout=200, program=PROGRAM, overwrite=True, **options):
    """Runs the program; returns (exit code, everything it printed). A run may replace a finished one of the same test
    unless `overwrite` is false."""
    command = [program, *map(str, arguments)]
    if overwrite and {"train", "sample"} & set(command[1:4]) and "help" not in command:
        command.append("--overwrite")
    done = subprocess.run(LAUNCHER.command(ranks, *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=timeout, **options)
    return done.returncode, done.stdout


@contextlib.contextmanager
def environment_apart(folder=None):
    """For a program that starts while others do: what its launcher writes is in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="mpi-", dir=folder, ignore_cleanup_errors=True) as sessions:
        yield dict(os.environ, **LAUNCHER.apart(sessions))


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own and the program at hand."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def succeed(self, *arguments, **options):
        code, output = espalier(*arguments, **options)
        self.assertEqual(code, 0, output)
        return output

    def fail_with(self, code, words, *arguments, **options):
        """The run ends with `code` and one message from rank 0 that holds all `words`."""
        got, output = espalier(*arguments, **options)
        self.assertEqual(got, code, output)
        errors = [line for line in output.splitlines() if line.startswith("espalier: error:")]
        self.assertEqual(len(errors), 1, output)
        for word in words:
            self.assertIn(word, errors[0])
        return output

    def report(self, folder):
        return json.loads((pathlib.Path(folder) / "report.json").read_text())


def write_graph(path, rows, features, labels, train, valid, test, weights=None, index_type=np.int32):
    """rows[v] lists the in-neighbours of v."""
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "espalier-graph"
        file.attrs["version"] = 1
        file.attrs["name"] = "handmade"
        file.attrs["source"] = "a test"
        file.attrs["directed"] = True
        file["graph/indptr"] = np.cumsum([0] + [len(row) for row in rows]).astype(np.int64)
        file["graph/indices"] = np.array([u for row in rows for u in row], dtype=index_type)
        if weights is not None:
            file["graph/weights"] = np.asarray(weights, dtype=np.float32)
        file["nodes/features"] = np.asarray(features)
        file["nodes/labels"] = np.asarray(labels, dtype=np.int32)
        for name, ids in (("train", train), ("valid", valid), ("test", test)):
            file["split/" + name] = np.asarray(ids, dtype=np.int64)


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

"""What the tests of the command line share: running the program and making small graph files with h5py."""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

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


def run_python(*arguments, timeout=300, **options):
    """The finished process of a script, with what it wrote in two texts."""
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, **options)


def small_files(size):
    """For `preexec_fn`: no file can become larger."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


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


def difference(found, expected, place=""):
    """The first of two values, as deep as they go, in words; unittest's own takes minutes for large dictionaries. Empty: none."""
    if isinstance(found, dict) and isinstance(expected, dict):
        pairs = [(key, found.get(key), expected.get(key)) for key in {**expected, **found}]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = [(k, one, other) for k, (one, other) in enumerate(zip(found, expected))]
    else:
        return "" if found == expected else f"{place}: {str(found)[:200]}, wanted {str(expected)[:200]}"
    return next(filter(None, (difference(one, other, f"{place}/{key}") for key, one, other in pairs)), "")


def not_finite(value, place=""):
    """Where a number of a report, of arrays or of an open file of HDF5, is none; or nothing."""
    if isinstance(value, (h5py.Dataset, np.ndarray)):
        return place if value.dtype.kind == "f" and not np.isfinite(value[()]).all() else ""
    pairs = {**value.attrs, **value} if isinstance(value, h5py.Group) else value
    if isinstance(pairs, (dict, list)):
        pairs = pairs.items() if isinstance(pairs, dict) else enumerate(pairs)
        return next(filter(None, (not_finite(one, f"{place}/{key}") for key, one in pairs)), "")
    return place if isinstance(value, (float, np.floating)) and not np.isfinite(value) else ""


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


def contents(path):
    """Types, shapes and bytes of all data sets of a file of HDF5, and under "attributes" those of each item."""
    found = {"attributes": {}}

    def visit(name, item):
        found["attributes"][name] = dict(item.attrs)
        if isinstance(item, h5py.Dataset):
            found[name] = item.dtype, item.shape, item[()].tobytes()
    with h5py.File(path) as file:
        visit("/", file)
        file.visititems(visit)
    return found


def attributes_of(path, group="/"):
    with h5py.File(path) as file:
        return dict(file[group].attrs)


def read(path, *names):
    """Data sets of a file of HDF5: the array of one, a list of those of several."""
    with h5py.File(path) as file:
        arrays = [file[name][()] for name in names]
    return arrays if len(names) > 1 else arrays[0]


def put(path, arrays):
    """In place of what a file of HDF5 has there; a function makes it of that, and of what is None there is none afterwards."""
    with h5py.File(path, "a") as file:
        for name, value in arrays.items():
            value = value(file[name][()]) if callable(value) else value
            if name in file:
                del file[name]
            if value is not None:
                file[name] = value


def put_sparse(path, name, table):
    """A matrix, as features that are sparse, in place of those of this name."""
    rows, columns = np.nonzero(table)
    put(path, {name: None, f"{name}/indptr": np.searchsorted(rows, np.arange(len(table) + 1)), f"{name}/indices": columns.astype(np.int32),
               f"{name}/values": table[rows, columns].astype(np.float32)})
    with h5py.File(path, "a") as file:
        file[f"{name}/indices"].attrs["columns"] = np.int64(table.shape[1])


def forget_digests(path):
    with h5py.File(path, "a") as file:
        for item in (file, *map(file.get, arrays_of(path))):
            item.attrs.pop("digest", None)


def set_at(path, name, place, value):
    """Entries of a data set, which stays what it is, its digest too; a function makes them of those that are there."""
    with h5py.File(path, "a") as file:
        file[name][place] = value(file[name][place]) if callable(value) else value


def set_attributes(path, group="/", **values):
    """Of None there is none afterwards."""
    with h5py.File(path, "a") as file:
        for name, value in values.items():
            file[group].attrs.pop(name, None)
            if value is not None:
                file[group].attrs[name] = value


def seal(path):
    """A checkpoint or weights.h5 that h5py has changed becomes whole again (train/weights_file.hpp)."""
    content = path.read_bytes()
    title = content[:content.index(b"\n")].decode()
    head = f"{title}\nbytes {len(content)}\ncrc32 {zlib.crc32(content[512:]):08x}\n"
    path.write_bytes(head.encode().ljust(512, b"\0") + content[512:])


class ProgramTest(FolderTest):
    """A test with the program at hand: with a config of the lines of JOB where there are any, and with the graph that GENERATE says, if it
    does: words of `generate`, or a function that writes a file."""

    JOB = GENERATE = None

    def setUp(self):
        super().setUp()
        self.graph, self.output, self.config = self.folder / "graph.h5", self.folder / "out", self.folder / "job.toml"
        if self.JOB is not None:
            self.write_job()
        if callable(self.GENERATE):
            self.GENERATE(self.graph)
        elif self.GENERATE is not None:
            self.make_once(self.graph, ("generate", *self.GENERATE))

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

    def same_on_ranks(self, make, path, ranks=(1, 3)):
        """The file that `make`, a function of ranks, writes has one content, with digests that hold. Returns what the last one said."""
        seen = None
        for count in ranks:
            said, found = make(ranks=count), contents(path)
            seen = seen or found
            self.assertEqual(difference(found, seen), "", f"{count} ranks")
        self.assertIn("holds what its digests say", self.succeed("digest", path))
        return said

    def one_answer(self, command, path):
        """(exit code, lines, content of `path`) of a command that writes there: the same on one to four ranks, but for seconds."""
        def answer(ranks):
            code, said = espalier(*command, ranks=ranks)
            found = contents(path) if code == 0 else None
            path.unlink(missing_ok=True)
            return [code, sorted(re.sub(r"[0-9.]+ s\b", "N s", said).splitlines()), found]
        one = answer(1)
        for ranks in (2, 3, 4):
            with self.subTest(command=command, ranks=ranks):
                self.assertEqual(difference(answer(ranks), one), "")
        return one

    def fail_with(self, code, words, *arguments, **options):
        """The run ends with `code` and one message from rank 0 that holds all `words`."""
        got, output = espalier(*arguments, **options)
        self.assertEqual(got, code, output)
        errors = [line for line in output.splitlines() if line.startswith("espalier: error:")]
        self.assertEqual(len(errors), 1, output)
        for word in words:
            self.assertIn(word, errors[0])
        return output

    def damaged(self, words, command="info", ranks=(1,)):
        """The graph file is refused, once with these words, and none of HDF5's own."""
        for count in ranks:
            output = self.fail_with(3, [words, str(self.graph)], command, self.graph, ranks=count)
            self.assertEqual(output.count(words), 1, output)
            self.assertNotIn("HDF5-DIAG", output)

    def put(self, arrays, path=None):
        """In a graph file, with digests of what it has then."""
        put(path or self.graph, arrays)
        self.succeed("-q", "digest", path or self.graph, "--write")

    def each_change_is_refused(self, changes, commands):
        """Values (name, place, value) of a graph file with digests, one at a time: by the name of the data set, by `commands`(number)."""
        whole = self.graph.read_bytes()
        for number, (name, place, value) in enumerate(changes):
            self.assertNotEqual(read(self.graph, name)[place], value, name)
            set_at(self.graph, name, place, value)
            for command, ranks in commands(number):
                self.fail_with(3, [f": {name} does not hold what was written there"], command, self.graph, ranks=ranks)
            self.graph.write_bytes(whole)

    def train(self, *overrides, restart="never", **run):
        """The report of a training."""
        self.succeed("-q", "train", self.config, f"run.restart={restart}", *overrides, **run)
        return self.report(self.output)

    @staticmethod
    def bits(report):
        """What no order and no cut may change."""
        per_epoch = [[epoch.get(key) for key in ("sample_digest", "loss", "valid", "input_rows")] for epoch in report["epochs"]]
        return per_epoch, report.get("weights_digest"), report.get("test")

    def history(self, report):
        """What no grid, cut or way of exchange may change."""
        return [tuple(epoch.get(key) for key in ("sample_digest", "loss", "valid", "history")) for epoch in report["epochs"]] + [
            report.get("weights_digest"), report.get("test")]

    def one_history(self, job, grids, expected=None):
        """That of a job, the same on each of the grids (ranks, *keys)."""
        expected = expected or self.history(self.train(*job))
        for ranks, *grid in grids:
            with self.subTest(job=job, ranks=ranks, grid=grid):
                self.assertEqual(self.history(self.train(*job, *grid, ranks=ranks)), expected)
        return expected

    def goes_on(self, expected, *job, then=(), ranks=(2, 3), **run):
        """The history of the job cut off after an epoch, and gone on with on other ranks."""
        self.train(*job, "train.epochs=1", "run.checkpoint_every=1", ranks=ranks[0])
        report = self.train(*job, *then, restart="auto", ranks=ranks[1], overwrite=False, **run)
        self.assertEqual(report["restart"]["epoch"], 2)
        self.assertEqual(self.history(report), expected)
        return report

    def compare_devices(self, gpu, cpu, off=1e-5, same=("sample_digest",)):
        """Reports of one job on both."""
        self.assertEqual((gpu["device"], cpu["device"]), ("cuda", "cpu"))
        self.compare_epochs(gpu, cpu, off, same)

    def compare_epochs(self, some, others, off=1e-5, same=("sample_digest",)):
        """The same samples, and losses but for rounding."""
        for ours, theirs in zip(some["epochs"], others["epochs"], strict=True):
            for key in same:
                self.assertEqual(ours.get(key), theirs.get(key), key)
            self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=off * theirs["loss"])

    def order(self, method="metis", clusters=64):
        """The key of an order of the graph."""
        path = self.folder / "order.h5"
        self.succeed("-q", "partition", self.graph, "--method", method, "--clusters", clusters, "-o", path, "--overwrite")
        return f"graph.order={path}"

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

    def infer_words(self, *options, config=None, weights=None, rows="rows.h5"):
        return ("infer", config or self.config, "--checkpoint", weights or self.output / "weights.h5", "-o", self.folder / rows, *options)

    def infer_to(self, name, *options, config=None, weights=None, **run):
        """The file of this name, of the rows that the weights of a run give."""
        self.succeed("-q", *self.infer_words("--overwrite", *options, config=config, weights=weights, rows=name), **run)
        return self.folder / name

    def inferred(self, *options, config=None, weights=None, **run):
        """({name: array}, attributes) of the rows that the weights of a run give."""
        rows = self.infer_to("rows.h5", *options, config=config, weights=weights, **run)
        return arrays_of(rows), attributes_of(rows)


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

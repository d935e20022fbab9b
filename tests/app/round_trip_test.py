"""Graphs through every format: written by NumPy in each, made a graph file again, read by h5py.

Laws: what a format holds of a graph comes back to the last bit, whatever the order of edges, the form of arrays and the number of
ranks: edges, weights, features, times, labels, names,
ids, splits, inverses; each part of a graph is held by some format; what `prepare` copies or numbers anew is the same graph.
"""

import itertools
import pathlib
import tempfile
import unittest

import numpy as np

from tests.app.other_formats import FORMATS
from tests.app.plain_graph import PlainGraph, differences, read_graph
from tests.app.program import LONG, ROOT, SHARED_DATA, ProgramTest, arrays_of, espalier, put, put_sparse, read

TYPES = ("--types", "paper=60:6,author=40,institution=9",
         "--relations", "author.affiliated_with.institution=50,author.writes.paper=120,paper.cites.paper=90")
ALL = {"edges", "weights", "edge features", "times", "features", "form", "sparse", "labels", "names", "ids", "inverses", "splits", "named splits"}


def with_everything(path, random):
    """A graph with weights (0, too), features and times of edges, ids and names of texts, and splits with names, some without a label."""
    found, typed = arrays_of(path), "types/name" in arrays_of(path)
    m = len(found["graph/indices"])
    new = {"graph/weights": random.choice([0, 0.1, 1, 2e30, 7], m).astype(np.float32)}
    for name in sorted(of for of in found if of.startswith("edges/")) if typed else ["edges/features"]:
        rows = len(found[name]) if typed else m
        new[name] = random.normal(size=(rows, 2)).astype(np.float16).astype(np.float32)  # --half takes them, too
        new[name.replace("/features", "/time")] = random.integers(-2**62, 2**62, rows)
    types = list(np.char.decode(found["types/name"])) if typed else [""]
    for name, n in zip(types, np.diff(found["types/offset"]) if typed else [len(found["graph/indptr"]) - 1]):
        new[f"types/{name}/ids" if name else "nodes/ids"] = np.array([f"{name} ä,\"{k}\"".encode() for k in random.permutation(n)])
    target = types[0] + "/" if typed else ""
    if typed:  # a second type with labels, several of each vertex
        n = np.diff(found["types/offset"])[1]
        new |= {f"nodes/{types[1]}/labels": random.choice([0, 1, 255], (n, 3)).astype(np.uint8),
                f"nodes/{types[1]}/features": random.normal(size=(n, 2)).astype(np.float32)}
    labels = (np.arange(len(found[f"nodes/{target}labels"])) % 5 - 1).astype(np.int32)
    new |= {f"nodes/{target}labels": labels, f"labels/{target}names": np.array(["cat", "dog, wild", "eel\nold", "fox"]).astype("S"),
            f"split/{target}".rstrip("/"): None}
    for split in ("one", "two"):
        for part, ids in zip(("train", "valid", "test"), np.array_split(random.permutation(np.flatnonzero(labels >= 0))[:40], 3)):
            new[f"split/{target}{split}/{part}"] = np.sort(ids)
    put(path, new)


def with_sparse_features(path):
    put_sparse(path, "nodes/features", np.maximum(read(path, "nodes/features") - 2, 0))


def with_weights(path):
    """The same of an edge and its inverse."""
    indptr, indices = read(path, "graph/indptr", "graph/indices")
    sources, targets = indices.astype(np.int64), np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    put(path, {"graph/weights": (1 + (sources * targets + sources + targets) % 7).astype(np.float32)})


def with_ids(path):
    """Numbers, and labels that are not in every file alike."""
    labels = read(path, "nodes/labels")
    labels[::9] = -1
    put(path, {"nodes/ids": 1000 + 7 * np.arange(len(labels)), "nodes/labels": labels,
               "split": None, **{f"split/{part}": ids[ids % 9 != 0] for part, ids in arrays_of(path, "split").items()}})


def of_names(path):
    """One type, each vertex with an edge; ids are texts in ascending order."""
    put(path, {"types/entity/ids": np.array([f"v{k:03}".encode() for k in range(30)])})


def generated(folder):
    """{name: graph file}"""
    random = np.random.default_rng(11)
    made = {}
    for name, words, change in (
            ("plain", ("planted", "--nodes", 90, "--classes", 4, "--features", 5, "--degree", 14), with_ids),
            ("everything", ("rmat", "--scale", 6, "--edge-factor", 3, "--classes", 4, "--half"), lambda path: with_everything(path, random)),
            ("several labels, sparse", ("planted", "--nodes", 60, "--degree", 4, "--classes", 3, "--labels", 3, "--features", 40), with_sparse_features),
            ("typed", ("planted", *TYPES, "--half"), None),
            ("typed, features of edges", ("planted", *TYPES, "--edge-features", 2), with_weights),
            ("typed, one way", ("planted", *TYPES, "--edge-features", 1, "--classes", 4, "--no-inverse"), lambda path: with_everything(path, random)),
            ("names", ("planted", "--types", "entity=30", "--relations", "entity.likes.entity=60,entity.knows.entity=70"), of_names)):
        made[name] = folder / f"{name}.h5"
        code, output = espalier("-q", "generate", *words, "--seed", 3, "-o", made[name])
        assert code == 0, output
        if change:
            change(made[name])
            code, output = espalier("-q", "digest", made[name], "--write")
            assert code == 0, output
    return made


class RoundTrip(ProgramTest):
    def setUp(self):
        super().setUp()
        self.turn = itertools.cycle((1, 3, 1, 2))

    def through(self, graph, name):
        """The graph file that a format makes of it."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            output = self.folder / "again.h5"
            output.unlink(missing_ok=True)
            command = FORMATS[name].write(graph, pathlib.Path(folder), output)
            if command is not None:
                self.succeed("-q", *command, "-o", output, ranks=next(self.turn))
                self.assertIn("holds what its digests say", self.succeed("digest", output))
            return read_graph(output)

    def check(self, path):
        """Through all formats that take it."""
        graph = read_graph(path)
        for name, form in FORMATS.items():
            if form.takes(graph):
                with self.subTest(graph=path.stem, format=name):
                    self.assertEqual(differences(self.through(graph, name), graph, form.parts), [])

    def check_copies(self, path):
        """By `prepare`."""
        graph, copy = read_graph(path), self.folder / "copy.h5"
        with self.subTest(graph=path.stem, format="prepare"):
            self.succeed("-q", "prepare", path, "--drop-duplicates", "-o", copy, "--overwrite")
            self.assertEqual(differences(read_graph(copy), graph, ALL), [])
            if not graph.typed:
                self.succeed("-q", "prepare", path, "--relabel", "random:7", "-o", copy, "--overwrite")
                moved, ids = read_graph(copy), graph.vertices[""].ids or list(range(graph.vertices[""].count))
                places = np.argsort([ids.index(own) for own in moved.vertices[""].ids])
                self.assertEqual(differences(moved, graph.renumbered(places), ALL), [])


class Generated(RoundTrip):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="espalier-made-")
        cls.addClassCleanup(folder.cleanup)
        cls.made = generated(pathlib.Path(folder.name))

    def test_every_format(self):
        for path in self.made.values():
            self.check(path)

    def test_copies(self):
        for path in self.made.values():
            self.check_copies(path)

    def test_each_format_and_each_part_is_met(self):
        """Of a graph that has it; so that nothing is compared with nothing."""
        graphs = [read_graph(path) for path in self.made.values()]
        self.assertEqual([name for name, form in FORMATS.items() if not any(map(form.takes, graphs))], [])
        nothing = {name: PlainGraph({of: type(vertices)(vertices.count) for of, vertices in graph.vertices.items()},
                                    {of: type(edges)(edges.sources, edges.targets) for of, edges in graph.edges.items()})
                   for name, graph in zip(self.made, graphs)}
        for name, form in FORMATS.items():
            for part in form.parts - {"edges", "form", "sparse"}:
                with self.subTest(format=name, part=part):
                    self.assertTrue(any(form.takes(graph) and differences(nothing[which], graph, {part})
                                        for which, graph in zip(self.made, graphs)))


@unittest.skipUnless(LONG, "long: real graphs, and an R-MAT of scale 16")
class Large(RoundTrip):
    def real(self, name, *options):
        source = SHARED_DATA / name
        if not source.exists():
            self.skipTest(f"{source} is not there")
        self.succeed("-q", "import", "ogb", source, *options, "-o", self.graph)
        self.check(self.graph)
        self.check_copies(self.graph)

    def test_cora(self):
        self.real("cora", "--split", "public")

    def test_debian(self):
        self.real("debian_bookworm", "--split", "random_seed0", "--edge-weight", 0)

    def test_debian_with_types(self):
        path = ROOT / "data" / "debian_typed.h5"
        if not path.exists():
            self.skipTest(f"{path} is not there")
        self.check(path)
        self.check_copies(path)

    def test_rmat(self):
        self.succeed("-q", "generate", "rmat", "--scale", 16, "-o", self.graph)
        self.check(self.graph)
        self.check_copies(self.graph)

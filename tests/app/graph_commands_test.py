"""espalier import, generate and info on files made by other programs: h5py, numpy, scipy, gzip.

Laws: an imported graph is scipy's sum of the same edges; float16 is numpy's; every kind of damaged file ends with exit code 3 and one
message that names the place; the number of ranks changes nothing.
"""

import gzip
import json
import os

import h5py
import numpy as np

from tests.app.program import SHARED_DATA as DATA
from tests.app.program import ProgramTest, arrays_of, attributes_of, set_attributes, small_files, write_file

def read_csv(path, kind):
    return np.loadtxt(gzip.open(path, "rt"), delimiter=",", dtype=kind, ndmin=2)


class Folder(ProgramTest):
    def setUp(self):
        super().setUp()
        self.output = self.graph


class ImportRealGraphs(Folder):
    """The importer against numpy and scipy on the same text."""

    def import_and_compare(self, name, split, *flags, ranks=1):
        from scipy.sparse import coo_matrix
        source = DATA / name
        if not source.exists():
            self.skipTest(f"{source} is not there")
        self.succeed("import", "ogb", source, "--split", split, "-o", self.output, *flags, ranks=ranks)
        got = arrays_of(self.output)
        meta = json.loads((source / "meta.json").read_text())
        n = meta["num_nodes"]
        edges = read_csv(source / "raw/edge.csv.gz", np.int64)
        weights = np.ones(len(edges), np.float32)
        if "--edge-weight" in flags:
            weights = read_csv(source / "raw/edge-feat.csv.gz", np.float32)[:, 0] + np.float32(1)
        wanted = coo_matrix((weights, (edges[:, 1], edges[:, 0])), (n, n)).tocsr()
        if "--symmetrize" in flags:
            wanted = (wanted + wanted.T).tocsr()
        wanted.sort_indices()
        np.testing.assert_array_equal(got["graph/indptr"], wanted.indptr)
        np.testing.assert_array_equal(got["graph/indices"], wanted.indices)
        features = read_csv(source / "raw/node-feat.csv.gz", np.float32)
        np.testing.assert_array_equal(got["nodes/features"], features.astype(got["nodes/features"].dtype))
        labels = read_csv(source / "raw/node-label.csv.gz", np.float64)[:, 0]
        np.testing.assert_array_equal(got["nodes/labels"], np.where(np.isnan(labels), -1, labels))
        for part in ("train", "valid", "test"):
            ids = np.sort(read_csv(source / "split" / split / f"{part}.csv.gz", np.int64)[:, 0])
            np.testing.assert_array_equal(got["split/" + part], ids)
        return got, meta, wanted

    def test_cora(self):
        got, meta, _ = self.import_and_compare("cora", "public", "--symmetrize")
        self.assertEqual(len(got["graph/indices"]), meta["symmetrised_directed_edges_no_loops"])
        self.assertEqual(np.bincount(got["nodes/labels"]).tolist(), meta["class_counts"])
        about = attributes_of(self.output)
        self.assertEqual((about["format"], about["name"], about["directed"]), (b"espalier-graph", b"cora", False))

    def test_cora_half_on_three_ranks(self):
        got, _, _ = self.import_and_compare("cora", "fastgcn_supervised", "--half", ranks=3)
        self.assertEqual(got["nodes/features"].dtype, np.float16)

    def test_debian_directed(self):
        got, meta, _ = self.import_and_compare("debian_bookworm", "random_seed0", ranks=2)
        self.assertEqual(len(got["graph/indices"]), meta["edge_rows_unique"])
        with h5py.File(self.output) as file:
            self.assertTrue(file.attrs["directed"])
            self.assertEqual(file["nodes/labels"].attrs["classes"], meta["num_classes"])

    def test_debian_symmetrized_weighted_half(self):
        # scipy drops nothing where weights are moved off zero, so compare patterns with w + 1 and the sums of w apart.
        from scipy.sparse import coo_matrix
        got, meta, pattern = self.import_and_compare("debian_bookworm", "random_seed1", "--symmetrize", "--half", "--edge-weight", "0")
        edges = read_csv(DATA / "debian_bookworm/raw/edge.csv.gz", np.int64)
        weights = read_csv(DATA / "debian_bookworm/raw/edge-feat.csv.gz", np.float32)[:, 0]
        n = meta["num_nodes"]
        a = coo_matrix((weights, (edges[:, 1], edges[:, 0])), (n, n)).tocsr()
        rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
        wanted = np.asarray((a + a.T).tocsr()[rows, pattern.indices])[0]
        np.testing.assert_array_equal(got["graph/weights"], wanted)
        self.assertEqual(len(got["graph/indices"]), meta["symmetrised_directed_edges_no_loops"])
        self.assertEqual(np.diff(got["graph/indptr"]).max(), meta["max_degree_sym"])
        self.assertEqual((got["nodes/labels"] >= 0).sum(), meta["labelled_nodes"])

    def test_a_split_that_is_not_there(self):
        if not DATA.exists():
            self.skipTest(f"{DATA} is not there")
        self.fail_with(3, ["there is fastgcn_supervised, public"], "import", "ogb", DATA / "cora", "--split", "time", "-o", self.output, ranks=2)
        self.assertEqual(list(self.folder.iterdir()), [])


# A small good graph that the tests below damage: 6 vertices, vertex 3 isolated, a self loop at 5.
def write_good(path, **changed):
    arrays = {
        "graph/indptr": np.array([0, 2, 3, 5, 5, 6, 8]), "graph/indices": np.array([1, 2, 0, 0, 4, 2, 0, 5], np.int32),
        "graph/weights": np.array([1, 2, 3, 0, 1, 1, 1, .5], np.float32),
        "nodes/features": np.arange(18, dtype=np.float32).reshape(6, 3), "nodes/labels": np.array([0, 1, 2, -1, 0, 1], np.int32),
        "split/train": np.array([0, 2]), "split/valid": np.array([4]), "split/test": np.array([1, 5]),
    }
    attributes = {"format": "espalier-graph", "version": 1, "name": "hand", "source": "a test", "directed": True}
    arrays |= {name.replace("__", "/"): value for name, value in changed.items() if name not in attributes}
    write_file(path, {name: changed.get(name, value) for name, value in attributes.items()}, arrays)


class ReadForeignFiles(Folder):
    JOB = ()

    def test_a_file_that_h5py_wrote(self):
        write_good(self.output)
        for ranks in (1, 2, 8):
            output = self.succeed("info", self.output, "--ranks", 4, "--replication", 2, ranks=ranks)
            for words in ("vertices     6", "edges        8, directed, weighted, 32-bit ids", "self loops   1",
                          "isolated     1 ", "3 classes, 5 of 6 vertices labelled", "train 2, valid 1, test 2", "3 x float32"):
                self.assertIn(words, output)

    def test_what_is_said_of_what_stands_there(self):
        indices, indptr, labels = np.array([1, 2, 0, 0, 4, 2, 0, 5]), np.array([0, 2, 3, 5, 5, 6, 8]), np.array([0, 1, 2, -1, 0, 1])
        numbers, whole = np.arange(18).reshape(6, 3), np.arange(18).reshape(6, 3) % 2 * 3
        halves = np.array([[1.5, -65504, 6e-8], [0.1, 2**-14, 0]] * 3, np.float16)
        columns = {kind: np.array([[0], [1], [2], [1], [0], [1]], kind) for kind in (np.uint8, np.int64)}
        same, unlabelled = ("8, directed, weighted", "from 0 to 17"), dict(split__train=None, split__valid=None, split__test=None)
        for ranks, words, changed in (
                (1, same, dict(format=np.bytes_("espalier-graph"), name=np.bytes_("hand"), version=np.int16(1), directed=np.int8(1))),
                (1, same, dict(directed=np.int64(1), source=None, name=None)), (1, same, dict(directed=np.bool_(True))),
                (1, same, dict(graph__indices=indices)), (1, same, dict(graph__indptr=indptr.astype(np.int32))),
                (1, same, dict(nodes__labels=labels)), (1, same, dict(nodes__features=numbers.astype(np.float64))),
                (1, same, dict(nodes__features=numbers.astype(">f4"))),
                *((1, ["3 x float16, from -6.55e+04 to 1.5"], dict(nodes__features=halves.astype(kind))) for kind in ("<f2", ">f2")),
                (2, ["2 per vertex, 0 or 1, 0.500 of them 1"], dict(nodes__labels=np.array([[0, 1]] * 6, np.uint8))),
                *((2, ["3 classes, 6 of 6 vertices labelled"], dict(nodes__labels=column)) for column in columns.values()),
                (1, ["3 classes, 5 of 6 vertices labelled"], dict(nodes__labels=labels.reshape(-1, 1).astype(np.int32))),
                *((2, ["labels       all 6 vertices are unlabelled (-1)"], dict(nodes__labels=of, **unlabelled))
                  for of in (np.full(6, -1), np.full((6, 1), -1))),
                # Numbers of every kind are features and weights. What float32 cannot hold is rounded to the nearest, as numpy does.
                *((1, ["3 x float32, from 0 to 3, 50.0 % not zero"], dict(nodes__features=whole.astype(kind), graph__weights=np.ones(8, kind)))
                  for kind in (np.int8, np.uint8, np.int16, np.uint16, ">i4", np.uint32, np.int64, np.uint64)),
                (2, ["3 x float32, from 0 to 1, 50.0 % not zero"], dict(nodes__features=whole.astype(bool), graph__weights=np.ones(8, bool))),
                (1, ["from -9.223e+18 to 9.223e+18"], dict(nodes__features=np.array([[2**24 + 1, 2**63 - 1, -2**63]] * 6)))):
            with self.subTest(words=words, changed=changed):
                write_good(self.output, **changed)
                output = self.succeed("info", self.output, ranks=ranks)
                for word in words:
                    self.assertIn(word, output)

    def test_chunks_and_compression(self):
        write_good(self.output, graph__indices=None, nodes__features=None)
        with h5py.File(self.output, "a") as file:
            file.create_dataset("graph/indices", data=np.array([1, 2, 0, 0, 4, 2, 0, 5], np.int32), chunks=(3,))
            file.create_dataset("nodes/features", data=np.arange(18, dtype=np.float32).reshape(6, 3), chunks=(2, 2),
                                compression="gzip", shuffle=True)
        for ranks in (1, 3):
            self.assertIn("from 0 to 17", self.succeed("info", self.output, ranks=ranks))

    def test_nothing_is_learnt_without_labels(self):
        write_good(self.output, nodes__labels=np.full(6, -1))
        for command in (("train", self.config), ("plan", self.config, "--ranks", 2)):
            self.fail_with(3, ["all 6 vertices are unlabelled (-1)", "/nodes/labels"], *command)
        write_good(self.output, nodes__labels=None)
        self.fail_with(3, ["the graph has no labels (/nodes/labels)"], "train", self.config)

    def test_without_the_optional_parts(self):
        write_good(self.output, graph__weights=None, nodes__features=None, nodes__labels=None, split__train=None,
                   split__valid=None, split__test=None)
        output = self.succeed("info", self.output, ranks=2)
        self.assertIn("unweighted", output)
        self.assertIn("labels       none", output)


class RefuseDamagedFiles(Folder):
    JOB = ()

    def refuse(self, words, ranks=(1, 2)):
        self.damaged(words, ranks=ranks)

    def refuse_each(self, cases, ranks):
        for changed, words in cases:
            with self.subTest(words):
                write_good(self.output, **changed)
                self.refuse(words, ranks)

    def test_not_a_graph_file(self):
        self.refuse("no such file")
        self.output.write_bytes(b"")
        self.refuse("is empty")
        self.output.write_text("0,1\n1,2\n")
        self.refuse("is not an HDF5 file")
        write_good(self.output, format=None)
        self.refuse("is HDF5 but not an espalier graph")
        write_good(self.output, format="something else")
        self.refuse('its attribute format is "something else"')
        write_good(self.output, version=3)
        self.refuse("has format version 3, but this program reads versions 1 and 2")
        write_good(self.output, version=2)
        self.refuse("there is no dataset /types/name", ranks=(1,))
        for version, words in (("1", 'the text "1"'), (None, "absent"), (1.0, "a floating-point number"), ([1, 1], "2 values")):
            write_good(self.output, version=version)
            self.refuse(f"its attribute version is {words}, not the whole number 1", ranks=(1,))
        write_good(self.output, format=7)
        self.refuse('its attribute format is a whole number, not "espalier-graph"', ranks=(1,))
        write_good(self.output)
        set_attributes(self.output, "nodes/labels", classes="3")
        self.refuse('/nodes/labels: its attribute classes is the text "3", not a whole number', ranks=(1,))

    def test_what_is_no_file(self):
        """Nobody waits for a pipe, nor looks for HDF5's signature in a device without end."""
        pipe, config = self.folder / "pipe", self.config
        os.mkfifo(pipe)
        links = [self.folder / name for name in ("null", "zero")]
        for link in links:
            link.symlink_to(f"/dev/{link.name}")
        write_good(self.output)
        for command in (("info", pipe), ("digest", pipe), ("partition", pipe, "-o", self.folder / "order.h5"),
                        ("train", config, f"graph.file={pipe}"), ("sample", config, f"graph.file={self.output}", f"graph.order={pipe}"),
                        ("infer", config, f"graph.file={self.output}", "--checkpoint", pipe, "-o", self.folder / "rows.h5")):
            self.fail_with(3, [str(pipe), "is a pipe, not a file"], *command, timeout=20)
        for path, words in ((pipe, "is a pipe, not a file"), *((link, "is a device, not a file") for link in links)):
            self.fail_with(3, [str(path), words], "info", path, ranks=2, timeout=20)

    def test_cut_off(self):
        write_good(self.output, nodes__features=np.zeros((6, 1000), np.float32))
        size = self.output.stat().st_size
        for keep in (size - 10, size // 2, 100):
            os.truncate(self.output, keep)
            self.refuse("damaged or cut off")

    def test_shapes(self):
        cases = [(dict(graph__indptr=None), "there is no dataset /graph/indptr"),
                 (dict(graph__indices=None), "there is no dataset /graph/indices"),
                 (dict(graph__indptr=np.zeros(1, np.int64)), "the graph has no vertex"),
                 (dict(graph__indptr=np.zeros((7, 1), np.int64)), "/graph/indptr has 2 dimensions, expected 1"),
                 (dict(graph__indptr=np.zeros(7)), "/graph/indptr does not hold integers"),
                 (dict(graph__weights=np.ones(7, np.float32)), "/graph/weights has 7 rows, but the graph has 8 edges"),
                 (dict(graph__weights=np.array([b"1"] * 8)), "/graph/weights does not hold numbers"),
                 (dict(nodes__features=np.ones((5, 3), np.float32)), "/nodes/features has 5 rows, but the graph has 6 vertices"),
                 (dict(nodes__features=np.ones(6, np.float32)), "/nodes/features has 1 dimensions, expected 2"),
                 (dict(nodes__features=np.ones((6, 2), np.complex64)), "/nodes/features does not hold numbers"),
                 (dict(nodes__labels=np.zeros(7, np.int32)), "/nodes/labels has 7 rows, but the graph has 6 vertices"),
                 (dict(nodes__labels=np.zeros(6, np.float32)), "/nodes/labels does not hold integers"),
                 (dict(split__train=np.zeros(2)), "/split/train does not hold integers"),
                 (dict(split__train=np.arange(7)), "/split/train has 7 ids, but the graph has 6 vertices")]
        self.refuse_each(cases, ranks=(1,))

    def test_values(self):
        half = np.zeros((6, 3), np.float16)
        half[5, 2] = np.inf
        cases = [(dict(graph__indptr=np.array([1, 2, 3, 5, 5, 6, 8])), "/graph/indptr starts with 1, not with 0"),
                 (dict(graph__indptr=np.array([0, 2, 3, 5, 5, 6, 7])), "/graph/indptr ends with 7, but /graph/indices has 8"),
                 (dict(graph__indptr=np.array([0, 2, 3, 2, 5, 6, 8])), "not ascending within [0, 8]: entry 3 is 2 after 3"),
                 (dict(graph__indptr=np.array([0, 2, 3, 5, 900, 6, 8])), "not ascending within [0, 8]: entry 4 is 900"),
                 (dict(graph__indices=np.array([1, 2, 0, 0, 4, 6, 0, 5])), "row 4 names vertex 6, but the graph has vertices 0 to 5"),
                 (dict(graph__indices=np.array([1, 2, 0, 0, 4, -3, 0, 5])), "/graph/indices: row 4 names vertex -3"),
                 (dict(graph__indices=np.array([1, 1, 0, 0, 4, 2, 0, 5])), "the columns of row 0 are not strictly ascending (1 after 1)"),
                 (dict(graph__weights=np.array([1, 2, 3, 0, 1, 1, 1, np.nan])), "/graph/weights: entry 7 is nan"),
                 (dict(graph__weights=np.full(8, np.inf, np.float32)), "/graph/weights: entry 0 is inf"),
                 (dict(graph__weights=np.full(8, -1)), "/graph/weights: entry 0 is -1"),
                 (dict(nodes__features=half), "/nodes/features: row 5, column 2 is not a finite number"),
                 (dict(nodes__labels=np.array([0, 1, -2, 0, 0, 1])), "/nodes/labels: vertex 2 has label -2"),
                 (dict(nodes__labels=np.array([0, 1, 2**40, 0, 0, 1])), "labels must lie in"),
                 (dict(nodes__labels=np.array([0, 1, 10**9, 0, 0, 1])), "entry 2 is 1000000000, which makes 1000000001 classes of 6 vertices"),
                 (dict(nodes__labels=np.full((6, 2), 3, np.uint8)), "/nodes/labels: row 0 holds 3"),
                 (dict(split__train=np.array([0, 6])), "/split/train: entry 1 is 6"),
                 (dict(split__test=np.array([-1, 5])), "/split/test: entry 0 is -1"),
                 (dict(split__valid=np.array([3])), "vertex 3 of /split/valid has no label"),
                 (dict(split__test=np.array([5, 1])), "/split/test: ids are not strictly ascending"),
                 (dict(split__valid=np.array([2, 4])), "vertex 2 is in /split/train and in /split/valid")]
        self.refuse_each(cases, ranks=(3,))


class WriteFiles(Folder):
    def test_a_full_disk_is_one_message_and_leaves_nothing(self):
        for ranks in (1, 2):
            output = self.fail_with(2, ["is the disk full?"], "generate", "planted", "--nodes", 5000, "--features", 1000, "-o", self.output,
                                    ranks=ranks, preexec_fn=small_files(2**24))  # mpirun needs some for itself
            self.assertEqual(output.count("is the disk full?"), 1, output)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_failed_run_keeps_the_old_file(self):
        write_good(self.output)
        before = self.output.read_bytes()
        self.fail_with(2, [], "generate", "planted", "--nodes", 3, "--classes", 8, "-o", self.output, "--overwrite")
        self.fail_with(3, [], "import", "ogb", self.folder, "--split", "x", "-o", self.output, "--overwrite", ranks=2)
        self.assertEqual(self.output.read_bytes(), before)

    def test_places_that_cannot_be_written(self):
        for path, words in ((self.folder / "no" / "graph.h5", "there is no folder"), (self.folder, "is a folder")):
            self.fail_with(2, [words], "generate", "planted", "-o", path, ranks=2)

    def test_arguments_that_make_no_sense(self):
        # graph/generate_test and options_test have the others.
        write_good(self.output)
        self.fail_with(2, ["--degree"], "generate", "planted", "--degree", 1e9, "-o", self.folder / "new.h5")
        self.fail_with(2, ["--replication 3"], "info", self.output, "--ranks", 4, "--replication", 3)

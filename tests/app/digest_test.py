"""Digests of graph files: what they are, and that nothing else than what was written is trained on.

Laws: the digest of a data set is the sum that content_digest.hpp says, here by numpy; it does not depend on ranks or on the width of
integers; one changed value anywhere is refused by the name of its data set, by every command that reads it; a checkpoint goes on with the
very graph that it was trained on, and names what differs in another.
"""

import json
import os
import re

import numpy as np

from tests.app.program import ProgramTest, arrays_of, attributes_of, awkward_graph, espalier, put, read, seal, set_at, set_attributes, write_graph
from tests.launcher import LAUNCHER

U64 = np.uint64


def mix(x):
    """SplitMix64's finaliser on Python's integers."""
    word = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & word
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
    return x ^ (x >> 31)


def bits_of(values):
    if values.dtype == np.float16:
        return values.view(np.uint16).astype(U64)
    if values.dtype.kind == "f":
        return values.astype(np.float32).view(np.uint32).astype(U64)
    return values.astype(np.int64).view(U64)


def dataset_digest(values):
    bits = bits_of(np.ascontiguousarray(values).ravel())
    place = np.arange(len(bits), dtype=U64)
    x = bits + place * U64(0xD1B54A32D192ED03)
    y = (x ^ (x >> U64(32))) * (place * U64(0xBF58476D1CE4E5BA) + U64(1))
    return int(np.add.reduce(y ^ (y >> U64(29)), dtype=U64))


def file_digest(arrays):
    labels = arrays["nodes/labels"]
    classes = labels.shape[1] if labels.ndim == 2 else int(labels.max()) + 1
    total = mix(classes)
    for name, values in arrays.items():
        state = 0
        for number in [*f"/{name}".encode(), *values.shape]:
            state = mix(state ^ number)
        total += mix(state ^ dataset_digest(values))
    return total & ((1 << 64) - 1)


def stated(path, name="/"):
    return attributes_of(path, name)["digest"].decode()


class DigestTest(ProgramTest):
    JOB = ("sampler.fanout=[3, 2]", "sampler.batch_size=5", "model.hidden=4", "model.layers=2", "train.epochs=2", "run.threads=1",
           'run.device="cpu"', "run.checkpoint_every=1")

    def expect_numpy_digests(self):
        arrays = arrays_of(self.graph)
        for name, values in arrays.items():
            self.assertEqual(stated(self.graph, name), f"{dataset_digest(values):016x}", name)
        self.assertEqual(stated(self.graph), f"{file_digest(arrays):016x}")
        return stated(self.graph)


class Formula(DigestTest):
    def test_of_generated_files_on_any_number_of_ranks(self):
        seen = set()
        for ranks in (1, 3):
            self.graph.unlink(missing_ok=True)
            self.succeed("generate", "planted", "--nodes", 101, "--classes", 3, "--features", 5, "-o", self.graph, ranks=ranks)
            seen.add(self.expect_numpy_digests())
            self.assertIn(next(iter(seen)), self.succeed("digest", self.graph, ranks=2))
        self.assertEqual(len(seen), 1)
        self.graph.unlink()
        self.succeed("generate", "planted", "--nodes", 101, "--classes", 3, "--features", 5, "--half", "-o", self.graph)
        self.assertNotIn(self.expect_numpy_digests(), seen)

    def test_of_files_of_h5py_whatever_the_width_of_integers(self):
        seen = set()
        for index_type in (np.int32, np.int64):
            awkward_graph(self.graph, index_type=index_type)
            self.assertIn("the file has no digest", self.succeed("digest", self.graph))
            self.succeed("digest", self.graph, "--write", ranks=2)
            seen.add(self.expect_numpy_digests())
            self.assertIn("holds what its digests say", self.succeed("digest", self.graph, ranks=3))
        self.assertEqual(len(seen), 1)

    def test_of_all_kinds_of_data(self):
        rows = [[1], [0, 2], [1]]
        write_graph(self.graph, rows, np.array([[1, 2], [3, 4], [5, 6]], np.int16), [0, 1, -1], [0], [1], [], index_type=np.uint8)
        self.succeed("digest", self.graph, "--write")
        wanted = dataset_digest(read(self.graph, "nodes/features").astype(np.float32))
        self.assertEqual((stated(self.graph, "nodes/features"), stated(self.graph, "split/test")), (f"{wanted:016x}", "0" * 16))
        self.put({"nodes/labels": np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0]], np.uint8)})
        self.assertEqual(stated(self.graph, "nodes/labels"), f"{dataset_digest(read(self.graph, 'nodes/labels')):016x}")


class Damage(DigestTest):
    """One value is changed, to one that every other check allows."""

    GENERATE = staticmethod(awkward_graph)

    def setUp(self):
        super().setUp()
        self.succeed("digest", self.graph, "--write")
        self.whole = self.graph.read_bytes()

    def changes(self):
        indptr, indices = read(self.graph, "graph/indptr", "graph/indices")
        last = indptr[6] - 1  # of row 5
        yield "/graph/indptr", 4, indptr[4] - 1 if indptr[4] > indptr[3] else indptr[4] + 1
        yield "/graph/indices", last, 49 if indices[last] < 49 else indices[last - 1] + 1
        yield "/graph/weights", 7, 0.125
        yield "/nodes/features", (3, 2), 0.5
        yield "/nodes/labels", 9, -1

    def test_one_changed_value_is_refused_by_name(self):
        self.each_change_is_refused(self.changes(), lambda _: (("digest", 1), ("info", 3)))

    def test_other_features_are_refused_by_every_command_that_reads_them(self):
        set_at(self.graph, "nodes/features", (11, 1), lambda value: value + 1)
        for ranks, replication in ((1, 1), (3, 1), (4, 2)):
            self.fail_with(3, ["/nodes/features does not hold what was written there", "espalier digest FILE --write"],
                           "train", self.config, f"grid.replication={replication}", ranks=ranks)
        self.assertFalse((self.output / "report.json").exists())
        self.succeed("sample", self.config, f"output.dir={self.folder}/samples")  # reads none
        output = self.succeed("train", self.config, "graph.verify=false", ranks=2)
        self.assertIn("is not checked against its digests (graph.verify = false)", output)
        self.assertIs(self.report(self.output)["graph"]["verified"], False)
        self.assertIn("now has these digests", self.succeed("digest", self.graph, "--write"))
        self.succeed("train", self.config, "run.restart=never")

    def test_a_data_set_that_is_gone_or_new(self):
        put(self.graph, {"split/test": None})
        self.fail_with(3, ["its data sets are not those that were written"], "train", self.config)
        self.graph.write_bytes(self.whole)
        put(self.graph, {"graph/weights": None})
        self.fail_with(3, ["its data sets are not those that were written"], "info", self.graph, ranks=2)

    def test_digests_that_are_damaged_themselves(self):
        for name, text in (("/nodes/labels", "0123456789abcdef"), ("/", "0123456789abcdef"), ("/split/train", "rubbish")):
            self.graph.write_bytes(self.whole)
            set_attributes(self.graph, name, digest=np.bytes_(text))
            self.fail_with(3, ["rubbish" if text == "rubbish" else "digest"], "digest", self.graph)

    def test_the_report_has_the_digests(self):
        self.succeed("train", self.config, ranks=2)
        graph = self.report(self.output)["graph"]
        self.assertEqual(graph["digest"], stated(self.graph))
        self.assertEqual(graph["digests"], {f"/{name}": stated(self.graph, name) for name in arrays_of(self.graph)})
        self.assertIs(graph["verified"], True)
        self.assertEqual(self.planned(ranks=4)["graph"]["digest"], graph["digest"])


class Structure(DigestTest):
    """Damage that HDF5 does not survive: in the heap of texts of variable length, which h5py writes."""

    def test_a_crash_or_a_loop_of_hdf5_is_a_message(self):
        awkward_graph(self.graph)
        whole = self.graph.read_bytes()
        heap = whole.find(b"GCOL")
        self.assertGreater(heap, 0)
        text = whole.find(heap.to_bytes(8, "little"))  # where an attribute says: so many bytes, in that heap
        # The length of the heap's first object; the length of a text, of which HDF5 would fill two gigabytes.
        for place, mask in ((heap + 24, 0xFF), (heap + 25, 0x01), (text - 1, 0x7F), (heap + 28, 0xFF)):
            damaged = bytearray(whole)
            damaged[place] ^= mask
            self.graph.write_bytes(damaged)
            self.fail_with(3, ["its structure is damaged: HDF5 does not find its way through it"], "info", self.graph, timeout=60)
        # The others, which the launcher ends, have a second to add that a rank has died, and do not.
        patient = dict(os.environ, **LAUNCHER.patient)
        code, output = espalier("info", self.graph, ranks=3, timeout=60, env=patient)
        self.assertEqual(code, 3, output)
        self.assertEqual(re.findall("^espalier: .{5}", output, re.M), ["espalier: error"], output)

    def test_files_that_we_write_have_no_such_heap(self):
        self.succeed("generate", "planted", "--nodes", 500, "-o", self.graph)
        self.assertEqual(self.graph.read_bytes().find(b"GCOL"), -1)
        self.assertEqual(attributes_of(self.graph)["format"], b"espalier-graph")


class Restart(DigestTest):
    """The same command, another graph under the same name."""

    GENERATE = staticmethod(awkward_graph)

    def setUp(self):
        super().setUp()
        self.whole = self.graph.read_bytes()

    def change(self, name):
        if name == "/nodes/labels":
            set_at(self.graph, name, ..., np.random.default_rng(5).permutation)
        elif name == "/nodes/features":
            set_at(self.graph, name, (7, 1), lambda value: value + 1)
        else:  # another split with equal counts
            train, test = read(self.graph, "split/train", "split/test")
            one, other = train[3], test[5]
            set_at(self.graph, "split/train", ..., np.sort(np.where(train == one, other, train)))
            set_at(self.graph, "split/test", ..., np.sort(np.where(test == other, one, test)))

    def refused(self, digests, names=("/split/train", "/nodes/labels", "/nodes/features")):
        for name in names:
            self.graph.write_bytes(self.whole)
            self.change(name)
            if digests:
                self.succeed("digest", self.graph, "--write")
            # Without digests it takes a reading, which a finished run is spared.
            asked = [] if digests else ["train.epochs=3"]
            for more in (asked, ["train.epochs=4"]) if name == "/split/train" else (asked,):
                message = self.fail_with(2, ["was saved in training on another graph", name, "--overwrite"],
                                         "train", self.config, *more, ranks=2, overwrite=False)
                self.assertEqual(len(re.findall("digest [0-9a-f]{16} there, [0-9a-f]{16} here", message)),
                                 2 if name == "/split/train" else 1)
        self.assertIn("loss", self.succeed("train", self.config, "run.restart=never", f"output.dir={self.folder}/anew"))

    def test_another_split_or_label_set_is_refused_by_name(self):
        self.succeed("digest", self.graph, "--write")
        self.whole = self.graph.read_bytes()
        self.succeed("train", self.config)
        self.refused(digests=True)
        self.graph.write_bytes(self.whole)
        self.assertIn("nothing is left to train", self.succeed("train", self.config, ranks=3, overwrite=False))

    def test_without_digests_in_the_file_too(self):
        self.assertIn("has no digest: damage and changes cannot be noticed", self.succeed("train", self.config))
        self.refused(digests=False)
        self.refused(digests=True, names=["/nodes/labels"])
        self.graph.write_bytes(self.whole)
        self.assertIn("nothing is left to train", self.succeed("train", self.config, ranks=3, overwrite=False))
        self.assertIn("judged by counts: the graph file has no digests",
                      self.succeed("train", self.config, "graph.verify=false", "train.epochs=3", overwrite=False))

    def test_what_was_not_checked_is_not_compared(self):
        put(self.graph, {"split/test": np.zeros(0, np.int64)})  # of no data the digest is known
        self.succeed("train", self.config, "graph.verify=false")
        self.assertIn("judged by counts: the checkpoint has no digests", self.succeed("train", self.config, "train.epochs=3", overwrite=False))

    def test_a_checkpoint_without_digests_still_reads(self):
        self.succeed("train", self.config)
        for path in (self.output / "checkpoints").glob("epoch*.h5"):
            graph = json.loads(attributes_of(path)["graph"])
            del graph["digests"]
            set_attributes(path, graph=json.dumps(graph))
            seal(path)
        self.assertIn("judged by counts: the checkpoint has no digests",
                      self.succeed("train", self.config, "train.epochs=3", overwrite=False))


class Words(DigestTest):
    def test_a_missing_test_split_is_said(self):
        awkward_graph(self.graph)
        put(self.graph, {"split/test": None})
        self.assertIn("/split/test is empty or absent", self.succeed("train", self.config))

    def test_info_looks_whether_a_graph_is_directed(self):
        rows = {"undirected": [[1], [0, 2], [1, 3], [2]], "directed": [[1], [0, 2], [1], [2]]}
        for kind, lists in rows.items():
            for claim in (None, True, False):
                write_graph(self.graph, lists, np.ones((4, 2), np.float32), [0, 1, 0, 1], [0], [1], [2])
                set_attributes(self.graph, directed=claim)
                line = re.search("^edges .*$", self.succeed("info", self.graph, ranks=3 if claim is None else 1), re.M)[0]
                self.assertIn(f", {kind}", line)
                self.assertEqual("wrongly" in line, claim is not None and claim != (kind == "directed"), line)

"""What the columns of features are called: kept from file to file and with weights, compared by infer.

Laws: what copies a graph copies names and scales; a file whose names do not fit its features is refused, by whatever reads it; weights.h5
and checkpoints hold those of the graph they were trained on, so that infer takes a graph with the same columns, or without names, warns of
other scales and refuses other columns, another order and other numbers of them; digests of data sets and restarts do not see names.
"""

import shutil

import numpy as np

from tests.app.infer_test import InferTest
from tests.app.program import ProgramTest, arrays_of, espalier, forget_digests, put

NAMES = ["age", "country=FR", "country=DÉ", "a, b", "x" * 70, "last"]
SCALES = np.arange(30.0).reshape(6, 5) - np.array([np.nan, 0, 1, 2, 3])


def texts(names):
    return np.array([name.encode() for name in names])


def call(path, group, names, scales=None):
    """In place of those that stand there."""
    put(path, {f"{group}/feature_names": texts(names) if isinstance(names, list) else names, f"{group}/feature_scales": scales})


class Kept(ProgramTest):
    def check_copied(self, places, *options, ranks=1):
        """Prepare copies what stands in these groups, and the digests of all else stay."""
        before = self.succeed("digest", self.graph, "--write")
        for group, (names, scales) in places.items():
            call(self.graph, group, names, scales)
        said = self.succeed("digest", self.graph, "--write")
        for line in before.splitlines():
            if "  /" in line:
                self.assertIn(line.split()[-1], said)
        output = self.succeed("prepare", self.graph, *options, "-o", self.folder / "copy.h5", ranks=ranks)
        self.assertNotIn("not copied", output)
        found = arrays_of(self.folder / "copy.h5")
        for group, (names, scales) in places.items():
            self.assertEqual(found[f"{group}/feature_names"].tolist(), texts(names).tolist())
            self.assertEqual(f"{group}/feature_scales" in found, scales is not None)
            if scales is not None:
                self.assertEqual(found[f"{group}/feature_scales"].tobytes(), scales.tobytes())
        return self.succeed("info", self.folder / "copy.h5", ranks=2).splitlines()

    def test_without_types(self):
        self.succeed("-q", "generate", "planted", "--nodes", 90, "--features", 6, "--edge-features", 2, "-o", self.graph)
        places = {"nodes": (NAMES, SCALES), "edges": (["kind=a", "kind=b"], None)}
        for options, ranks in ((("--split-links", "0.8,0.1,0.1"), 3), (("--drop-loops", "--relabel", "degree"), 2)):
            said = self.check_copied(places, *options, ranks=ranks)
            (self.folder / "copy.h5").unlink()
        self.assertIn(f'columns      6, age, country=FR, country=DÉ, "a, b", {"x" * 15}', "\n".join(said))
        self.assertIn("edge columns 2, kind=a, kind=b", said)

    def test_with_types(self):
        self.succeed("-q", "generate", "planted", "--types", "paper=60:6,author=30", "--relations", "author.writes.paper=200",
                     "--edge-features", 2, "-o", self.graph)
        said = self.check_copied({"nodes/paper": (NAMES, SCALES), "edges/author.writes.paper": (["é", "e"], SCALES[:2])},
                                 "--split-links", "0.8,0.1,0.1")
        self.assertIn("edge columns author.writes.paper: 2, é, e; filled or scaled", said)

    def test_wrong_files(self):
        self.succeed("-q", "generate", "planted", "--nodes", 90, "--features", 6, "-o", self.graph)
        forget_digests(self.graph)
        call(self.graph, "nodes", NAMES, SCALES)
        self.succeed("-q", "info", self.graph)
        for names, scales, *words in (
            (NAMES[:5], None, "/nodes/feature_names has 5 names", "/nodes/features has 6 columns"),
            ([*NAMES[:5], "age"], None, "/nodes/feature_names names two columns age"),
            (np.arange(6), None, "/nodes/feature_names holds no texts"),
            (texts(NAMES).reshape(2, 3), None, "/nodes/feature_names has 2 dimensions"),
            ([*NAMES[:5], "n" * 1025], None, "1025 letters"),
            (None, SCALES, "there is /nodes/feature_scales, but no /nodes/feature_names"),
            (NAMES, SCALES[:5], "/nodes/feature_scales is 5 x 5, expected 6 x 5"),
            (NAMES, SCALES[:, :4], "/nodes/feature_scales is 6 x 4, expected 6 x 5"),
            (NAMES, SCALES[0], "/nodes/feature_scales has 1 dimensions"),
            (NAMES, texts(NAMES), "/nodes/feature_scales has 1 dimensions"),
            (NAMES, np.ones((6, 5), int), "/nodes/feature_scales does not hold floating-point"),
        ):
            with self.subTest(words=words):
                call(self.graph, "nodes", names, scales)
                for ranks in (1, 2):
                    self.fail_with(3, ["graph.h5", *words], "info", self.graph, ranks=ranks)
        call(self.graph, "nodes", None)
        call(self.graph, "edges", ["a"])
        self.fail_with(3, ["/edges/feature_names has 1 names", "/edges/features has 0 columns"], "info", self.graph)


class Compared(InferTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        call(cls.trained / "graph.h5", "nodes", NAMES, SCALES)
        (cls.trained / "job.toml").write_text((cls.trained / "job.toml").read_text().replace("epochs = 2", "epochs = 3"))
        code, output = espalier("-q", "train", cls.trained / "job.toml", "run.checkpoint_every=1", "--overwrite", ranks=2)
        assert code == 0, output

    def other(self, names, scales=SCALES, features=None):
        """`features`: a function of those of the graph."""
        path = self.folder / "other.h5"
        shutil.copy(self.graph, path)
        if features:
            put(path, {"nodes/features": features})
        call(path, "nodes", names, scales)
        return f"graph.file={path}"

    def latest(self):
        return self.trained / "out" / "checkpoints" / "latest"

    def test_they_are_kept(self):
        found = arrays_of(self.weights)
        self.assertEqual(found["nodes/feature_names"].tolist(), texts(NAMES).tolist())
        self.assertEqual(found["nodes/feature_scales"].tobytes(), SCALES.tobytes())

    def test_the_same_and_none(self):
        expected = self.inferred()[0]["logits"].tobytes()
        for weights in (self.weights, self.latest()):
            for graph in (self.other(NAMES), self.other(None, None)):
                output = self.succeed(*self.infer_words(graph, "--overwrite", weights=weights), ranks=2)
                self.assertNotIn("filled or scaled", output)
                self.assertNotIn("not the graph", output)
        self.assertEqual(self.inferred(self.other(None, None))[0]["logits"].tobytes(), expected)

    def test_other_scales_are_a_warning(self):
        changed = SCALES.copy()
        changed[3, 2] = np.nextafter(changed[3, 2], 9)
        for scales in (changed, None):
            output = self.succeed(*self.infer_words(self.other(NAMES, scales), "--overwrite"), ranks=2)
            self.assertEqual(output.count("/nodes/features has the columns that"), 1, output)
            self.assertIn(f"--like {self.weights}", output)

    def test_other_columns_are_refused(self):
        turned = [NAMES[1], NAMES[0], *NAMES[2:]]
        for names, words in (([*NAMES[:2], "country=UK", *NAMES[3:]], "column 2 is country=DÉ there and country=UK here"),
                             (turned, "column 0 is age there and country=FR here")):
            for weights in (self.weights, self.latest()):
                for ranks in (1, 3):
                    self.other(names)
                    self.refused(3, ["other.h5: /nodes/features has other columns", words, "there: age, country=FR,", f"--like {weights}"],
                                 self.other(names), weights=weights, ranks=ranks)

    def test_another_number_of_columns(self):
        self.refused(3, ["column 5 is last there and none here", "(5 columns)", "(6 columns)"],
                     self.other(NAMES[:5], None, lambda features: features[:, :5]))

    def test_long_lists_are_cut(self):
        graph = self.other([f"column {k}" for k in range(3000)], None, lambda features: np.zeros((len(features), 3000), np.float32))
        self.assertLess(len(self.fail_with(3, ["(3000 columns)"], *self.infer_words(graph))), 2500)

    def test_a_restart_does_not_see_them(self):
        """The same bits of weights as in one go."""
        job = self.folder / "job.toml"
        whole = {name: values.tobytes() for name, values in arrays_of(self.weights, "weights").items()}
        job.write_text(self.config.read_text().replace(str(self.trained / "out"), str(self.folder / "out")))
        self.other(["a", "b", "c", "d", "e", "f"])
        self.succeed("-q", "train", job, "train.epochs=2", "run.checkpoint_every=1")
        self.succeed("-q", "train", job, f"graph.file={self.folder / 'other.h5'}", overwrite=False)
        self.assertEqual(self.report(self.folder / "out")["restart"]["epoch"], 3)
        found = arrays_of(self.folder / "out" / "weights.h5")
        self.assertEqual({name: found[f"weights/{name}"].tobytes() for name in whole}, whole)
        self.assertEqual(found["nodes/feature_names"].tolist(), [b"a", b"b", b"c", b"d", b"e", b"f"])

    def test_weights_without_names_are_read(self):
        old = self.folder / "old.h5"
        self.succeed("-q", "train", self.config, self.other(None, None), f"output.dir={self.folder / 'out'}")
        shutil.copy(self.folder / "out" / "weights.h5", old)
        self.assertNotIn("nodes", arrays_of(old))
        self.inferred(self.other(["a", "b", "c", "d", "e", "f"]), weights=old)


class OfEdges(ProgramTest):
    JOB = ("sampler.fanout=[3, 3]", "model.layers=2", "train.epochs=1", "model.hidden=4", 'model.kind="gat"')

    def test_only_where_the_network_reads_them(self):
        self.succeed("-q", "generate", "planted", "--nodes", 200, "--classes", 3, "--edge-features", 2, "-o", self.graph)
        call(self.graph, "edges", ["when", "how"])
        self.succeed("-q", "digest", self.graph, "--write")
        for reads in (True, False):
            self.write_job(f"model.edge_features={str(reads).lower()}")
            self.train()
            other = self.folder / "other.h5"
            shutil.copy(self.graph, other)
            call(other, "edges", ["how", "when"])
            self.succeed("-q", "digest", other, "--write")
            arguments = self.infer_words(f"graph.file={other}", "--overwrite")
            if reads:
                self.fail_with(3, ["/edges/features has other columns", "column 0 is when there and how here"], *arguments, ranks=2)
            else:
                self.succeed(*arguments)

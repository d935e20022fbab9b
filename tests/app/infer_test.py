"""espalier infer, and the weights.h5 that a training leaves for it.

Laws: the rows are the network's formula; they are the same bits on every grid, under every memory limit, from weights.h5 and from a
checkpoint, of all vertices and of some; what they predict is as right as the report of the training says; a file appears whole or not
at all, and what does not fit ends with one message. A run leaves weights.h5 at its end and where it is stopped, of its best epoch.
"""

import pathlib
import tempfile

import h5py
import numpy as np

from tests.app.program import ProgramTest, arrays_of, espalier, job_text, needs_emulation, on_gpus, put, read, set_at, small_files, write_graph

JOB = ('graph.feature_norm="standard"', "sampler.fanout=[4, 3]", "sampler.batch_size=64", "model.hidden=8", "model.layers=2",
       'model.normalize="batch"', "train.epochs=2", "train.reproducible=true", "train.learning_rate=0.05", "run.threads=1", 'run.device="cpu"')
VERTICES, FEATURES, CLASSES = 600, 6, 4


def make_graph(path, seed=1, shift=0.0, features=FEATURES, labels=True):
    """Rows of 0 to 9 neighbours, features that tell classes; the first is heard by all."""
    random = np.random.default_rng(seed)
    rows = [sorted({0, *random.integers(0, VERTICES, random.integers(0, 9))}) if v % 7 else [] for v in range(VERTICES)]
    of = random.integers(0, CLASSES, VERTICES)
    values = np.eye(CLASSES)[of] @ random.normal(size=(CLASSES, features)) * 2 + random.normal(size=(VERTICES, features)) + shift
    order = random.permutation(VERTICES)
    split = (sorted(order[:300]), sorted(order[300:400]), sorted(order[400:])) if labels else ([], [], [])
    write_graph(path, rows, values.astype(np.float32), of if labels else np.full(VERTICES, -1), *split)
    return rows


def layers_by_numpy(graph, weights):
    """H[1] .. H[L] of a sage network with batch normalisation, in float64."""
    indptr, indices, h = read(graph, "graph/indptr", "graph/indices", "nodes/features")
    trained = {name: values.astype(np.float64) for name, values in arrays_of(weights).items()}
    h = (h - trained["features/mean"]) / trained["features/deviation"]
    layers = []
    for layer in (1, 2):
        mean = np.stack([h[indices[indptr[v]:indptr[v + 1]]].mean(0) if indptr[v] < indptr[v + 1] else np.zeros(h.shape[1])
                         for v in range(len(indptr) - 1)])
        of = {name.split(".")[1]: value for name, value in trained.items() if name.startswith(f"weights/layer{layer}.")}
        h = h @ of["self"] + mean @ of["neighbour"] + of["bias"]
        if layer == 1:
            h = of["scale"] * (h - trained["statistics/layer1.mean"]) / np.sqrt(trained["statistics/layer1.variance"] + 1e-5) + of["shift"]
            h = np.maximum(h, 0)
        layers.append(h)
    return layers


class InferTest(ProgramTest):
    """One training for all tests: they work on copies."""

    @classmethod
    def setUpClass(cls):
        folder = cls.trained = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="espalier-test-")))
        make_graph(folder / "graph.h5")
        (folder / "job.toml").write_text(job_text(folder / "graph.h5", folder / "out", *JOB))
        code, output = espalier("-q", "train", folder / "job.toml", "run.checkpoint_every=1")
        assert code == 0, output

    def setUp(self):
        super().setUp()
        self.graph, self.config = self.trained / "graph.h5", self.trained / "job.toml"
        self.weights = self.trained / "out" / "weights.h5"
        self.rows = self.folder / "rows.h5"

    def infer_words(self, *options, weights=None, **which):
        return super().infer_words(*options, weights=weights or self.weights, **which)

    def refused(self, code, words, *options, weights=None, config=None, **run):
        """One message, and no file."""
        before = sorted(self.folder.rglob("*"))
        self.fail_with(code, words, *self.infer_words(*options, weights=weights, config=config), **run)
        self.assertEqual(sorted(self.folder.rglob("*")), before)


class Rows(InferTest):
    def test_they_are_the_formula_and_predict_as_the_training_says(self):
        report = self.report(self.trained / "out")
        hidden, logits = layers_by_numpy(self.graph, self.weights)
        data, about = self.inferred("--predictions", "--metrics", ranks=2)
        self.assertEqual(set(data), {"logits", "predictions"})
        self.assertEqual(data["logits"].dtype, np.float32)
        np.testing.assert_allclose(data["logits"], logits, rtol=1e-4, atol=1e-4)
        self.assertEqual(data["predictions"].dtype, np.int32)
        np.testing.assert_array_equal(data["predictions"], data["logits"].argmax(1))
        right = data["predictions"] == read(self.graph, "nodes/labels")
        best = next(epoch for epoch in report["epochs"] if epoch["epoch"] == report["best_epoch"])
        self.assertGreater(report["test"]["accuracy"], 0.5)
        for split, of_report in (("train", report["train"]), ("test", report["test"]), ("valid", best["valid"])):
            of_split = right[read(self.graph, f"split/{split}")]
            self.assertEqual(of_split.sum() / len(of_split), of_report["accuracy"])
            self.assertEqual(about[split + "_vertices"], len(of_split))
            for metric in ("accuracy", "macro_f1"):
                self.assertEqual(about[f"{split}_{metric}"], of_report[metric])
        self.assertEqual(about["weights_digest"].decode(), report["weights_digest"])
        self.assertEqual((about["layer"], about["layers"], about["epoch"]), (2, 2, report["best_epoch"]))
        self.assertEqual(about["checkpoint"].decode(), str(self.weights))
        self.assertIn("espalier", about)
        self.assertEqual(len(about["config_digest"]), 16)

        data, about = self.inferred("--layer", 1, "--predictions")
        self.assertEqual(set(data), {"embeddings", "predictions"})
        np.testing.assert_allclose(data["embeddings"], hidden, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(data["predictions"], logits.argmax(1))
        self.assertNotIn("test_accuracy", about)

    def test_the_same_bits_on_every_grid_in_any_chunks_of_whatever_holds_the_weights(self):
        expected, _ = self.inferred("--layer", 1, "--predictions")
        logits, _ = self.inferred()
        small = ("run.memory_limit=130000", "run.memory_check=warn")  # chunks of 64 rows
        grids = ((1, *small), (2, "grid.replication=2", *small), (3, "grid.topology=replicated"), (4, "grid.replication=2", *small), (3, *small))
        for ranks, *grid in grids:
            with self.subTest(ranks=ranks, grid=grid):
                found, _ = self.inferred("--layer", 1, "--predictions", *grid, ranks=ranks)
                for name, values in expected.items():
                    self.assertEqual(found[name].tobytes(), values.tobytes(), name)
                self.assertEqual(self.inferred(*grid, ranks=ranks)[0]["logits"].tobytes(), logits["logits"].tobytes())
        found, _ = self.inferred(weights=self.trained / "out" / "checkpoints" / "latest")
        self.assertEqual(found["logits"].tobytes(), logits["logits"].tobytes())

    def test_some_of_them_and_half_of_their_bytes(self):
        whole, _ = self.inferred("--predictions")
        chosen = self.folder / "nodes.txt"
        chosen.write_text("599\n0\n\n  17 \r\n17\n63\n64\n65\n200")
        ids = [0, 17, 63, 64, 65, 200, 599]
        for ranks, *grid in ((1, "run.memory_limit=130000", "run.memory_check=warn"), (4, "grid.replication=2")):
            found, _ = self.inferred("--nodes", chosen, "--predictions", "--half", *grid, ranks=ranks)
            self.assertEqual(found["ids"].dtype, np.int64)
            np.testing.assert_array_equal(found["ids"], ids)
            self.assertEqual(found["logits"].dtype, np.float16)
            self.assertEqual(found["logits"].tobytes(), whole["logits"][ids].astype(np.float16).tobytes())
            np.testing.assert_array_equal(found["predictions"], whole["predictions"][ids])
        found, about = self.inferred("--nodes", chosen, "--metrics")
        self.assertEqual(found["logits"].tobytes(), whole["logits"][ids].tobytes())
        self.assertEqual(about["test_vertices"], 200, "of the whole split")

    def test_another_graph_is_standardised_as_the_one_of_the_training(self):
        other = self.folder / "other.h5"
        make_graph(other, seed=2, shift=0.5, labels=False)
        output = self.succeed(*self.infer_words(f"graph.file={other}"))
        np.testing.assert_allclose(arrays_of(self.rows)["logits"], layers_by_numpy(other, self.weights)[1], rtol=1e-4, atol=1e-4)
        self.assertIn("the best, of epoch", output)
        other_graph = "is not the graph that the network was trained on"
        self.assertRegex(output, f"other.h5 {other_graph}: [0-9]+ edges there, [0-9]+ here")
        # No digest stands in these files; labels and splits are not what a network reads.
        for options in ((), ("--metrics",)):
            output = self.succeed(*self.infer_words("--overwrite", *options), ranks=2)
            self.assertNotIn(other_graph, output)

    @needs_emulation
    def test_on_gpus(self):
        expected, on_cpu = self.inferred("--layer", 1, "--predictions", "--metrics")
        small = ("run.memory_limit=130000", "run.memory_check=warn")  # chunks of 64 rows
        for ranks, *grid in ((1, "run.device=cuda"), (4, "grid.replication=2", "graph.features_on=host", "run.device=cuda"),
                             (3, "run.device=cuda", *small)):
            found, on_gpu = self.inferred("--layer", 1, "--predictions", "--metrics", *grid, ranks=ranks, **on_gpus(2))
            np.testing.assert_allclose(found["embeddings"], expected["embeddings"], rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(found["predictions"], expected["predictions"])
            self.assertEqual(on_gpu["test_macro_f1"], on_cpu["test_macro_f1"])


class Refused(InferTest):
    def test_weights_that_do_not_fit(self):
        # keys_test has every key.
        self.refused(2, ["model.hidden = 8 there and 9 here", "weights.h5", "put the key back"], "model.hidden=9", ranks=2)
        other = self.folder / "other.h5"
        make_graph(other, features=7)
        self.refused(3, ["weights/layer1.self", "6 x 8", "7 x 8"], f"graph.file={other}")

    def test_weights_that_are_none(self):
        damaged = self.folder / "damaged.h5"
        for source in (self.weights, self.trained / "out" / "checkpoints" / "latest"):
            whole = bytearray(source.read_bytes())
            whole[len(whole) // 2] ^= 4
            damaged.write_bytes(whole)
            self.refused(3, ["damaged.h5", "checksum"], weights=damaged, ranks=2)
            damaged.write_bytes(whole[:-9])
            self.refused(3, ["damaged.h5", "is damaged", "bytes"], weights=damaged)
        self.refused(3, ["missing.h5", "No such file"], weights=self.folder / "missing.h5", ranks=2)
        self.refused(3, ["is a folder"], weights=self.folder)
        self.refused(3, ["graph.h5"], weights=self.graph)
        self.fail_with(2, ["--checkpoint"], "infer", self.config, "-o", self.rows)

    def test_layers_and_nodes_that_are_not_there(self):
        self.refused(2, ["--layer 3", "has 2 layers"], "--layer", 3, ranks=2)
        self.refused(2, ["--layer 0", "from 1 to"], "--layer", 0)
        nodes = self.folder / "nodes.txt"
        for text, words in (("3\n600\n", ["nodes.txt:2", "600", "0 to 599"]), ("-1\n", ["nodes.txt:1", "-1"]), ("1\n\nx7\n", ["nodes.txt:3", "'x7'"]),
                            ("\n", ["names no vertex"]), ("9" * 30, ["nodes.txt:1", "no vertex"])):
            nodes.write_text(text)
            self.refused(3, words, "--nodes", nodes, ranks=2)
        self.refused(3, ["nothing.txt", "No such file"], "--nodes", self.folder / "nothing.txt")

    def test_places(self):
        nodes = self.folder / "nodes.txt"
        nodes.write_text("1\n")
        self.rows.write_text("precious")
        self.refused(2, ["rows.h5 exists already", "--overwrite"])
        self.assertEqual(self.rows.read_text(), "precious")
        for place in (self.graph, self.weights, self.config, nodes):
            before = place.read_bytes()
            self.fail_with(2, ["is an input"], *self.infer_words("--nodes", nodes, "--overwrite", rows=place))
            self.assertEqual(place.read_bytes(), before)
        self.fail_with(2, ["there is no folder"], *self.infer_words(rows="no/rows.h5"))

    def test_metrics_need_labels_that_the_network_knows(self):
        other = self.folder / "other.h5"
        make_graph(other, labels=False)
        self.refused(3, ["unlabelled"], "--metrics", f"graph.file={other}")
        make_graph(other)
        set_at(other, "nodes/labels", 5, 9)
        self.refused(3, ["/nodes/labels has 10 classes", "knows 4"], "--metrics", f"graph.file={other}", ranks=2)
        make_graph(other)
        put(other, {"split/valid": None})
        _, about = self.inferred("--metrics", f"graph.file={other}")
        self.assertEqual({name for name in about if name.startswith("valid")}, {"valid_vertices"})
        self.assertIn("test_accuracy", about)

    def test_memory_and_disk(self):
        self.refused(4, ["run.memory_limit"], "run.memory_limit=1000", ranks=2)
        self.rows.write_text("the one before")
        self.refused(2, ["is the disk full?"], "--overwrite", preexec_fn=small_files(2**12))
        self.assertEqual(self.rows.read_text(), "the one before")


class Weights(InferTest):
    def train(self, *overrides, **run):
        return espalier("-q", "train", self.config, f"output.dir={self.folder / 'out'}", *overrides, **run)

    def test_a_run_leaves_the_best_ones(self):
        code, output = self.train("train.learning_rate=0.3", "train.epochs=4", ranks=2)
        self.assertEqual(code, 0, output)
        report = self.report(self.folder / "out")
        with h5py.File(self.folder / "out" / "weights.h5") as file:
            self.assertEqual((file.attrs["epoch"], file.attrs["weights_digest"]), (report["best_epoch"], report["weights_digest"]))
            self.assertEqual(set(file), {"weights", "statistics", "features"})
            digest = 0xcbf29ce484222325
            for name in ("layer1.self", "layer1.neighbour", "layer1.bias", "layer1.scale", "layer1.shift", "layer2.self",
                         "layer2.neighbour", "layer2.bias"):
                for bits in file["weights"][name][:].astype("<f4").view("<u4").ravel():
                    digest = (digest ^ int(bits)) * 0x100000001b3 % 2**64
        self.assertEqual(f"{digest:016x}", report["weights_digest"])

    def test_a_stop_leaves_them_too_and_a_new_run_none_of_the_last(self):
        weights = self.folder / "out" / "weights.h5"
        (self.folder / "out").mkdir()
        weights.write_text("of a run before")
        code, output = self.train("run.max_minutes=1e-9", "train.epochs=3")
        self.assertEqual(code, 5, output)
        self.assertFalse(weights.exists(), "nothing was evaluated yet")
        for _ in range(30):
            code, output = self.train("run.max_minutes=1e-9", "train.epochs=3")
            if code != 5 or weights.exists():
                break
        self.assertEqual(code, 5, output)
        latest, _ = self.inferred(weights=self.folder / "out" / "checkpoints" / "latest")
        self.assertEqual(self.inferred(weights=weights)[0]["logits"].tobytes(), latest["logits"].tobytes())

    def test_no_training_goes_on_from_them(self):
        for ranks in (1, 2):
            self.fail_with(2, ["weights.h5 holds weights only", "espalier infer"], "train", self.config, f"output.dir={self.folder / 'out'}",
                           f"run.restart={self.weights}", ranks=ranks)

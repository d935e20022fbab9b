"""What `espalier train` reports about the network.

Laws: evaluation is exact, so the metrics of untrained weights (learning rate 0, hence a function of the seed) do not depend on how
minibatches are sampled, but for sampler.weighted, which says what a mean is. The confusion matrix is of the test split with the
weights of the best epoch, and its diagonal the accuracy; with class weights and smoothed labels too nothing depends on the grid, nor on
a restart between. What `infer` multiplies by is, for every sampler and kind of matrix, the dense one that docs/layers.md says, and so
is the loss of whole rows; weights trained on weighted draws are evaluated on the weighted mean.
"""

import itertools

import numpy as np

from tests.app.program import ProgramTest, arrays_of, read, write_graph


class Evaluation(ProgramTest):
    JOB = ("model.hidden=8", "model.layers=2", "model.dropout=0.5", "train.epochs=1", "train.learning_rate=0", "run.threads=1")

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(5)  # rows of 20 to 60 entries: any fanout but -1 leaves some out
        rows = [sorted(random.choice(90, random.integers(20, 60), replace=False)) for _ in range(90)]
        write_graph(self.graph, rows, random.normal(size=(90, 6)).astype(np.float32), random.integers(0, 4, 90), range(30),
                    range(30, 60), range(60, 90), weights=random.uniform(0.1, 3, sum(map(len, rows))))

    def metrics(self, *overrides, **options):
        report = self.train(*overrides, **options)
        return report["epochs"][0]["valid"], report["test"], report["weights_digest"]

    def test_metrics_do_not_depend_on_how_minibatches_are_sampled(self):
        for model, weighted in itertools.product(("sage", "gcn"), ("false", "true")):
            job = (f"model.kind={model}", f"sampler.weighted={weighted}")
            expected = self.metrics(*job, "sampler.fanout=[-1,-1]")
            for sampling in (("sampler.fanout=[1,1]",), ("sampler.fanout=[15,10]", "sampler.batch_size=4")):
                self.assertEqual(self.metrics(*job, *sampling), expected, (job, sampling))
            self.assertEqual(self.metrics(*job, "sampler.fanout=[3,2]", ranks=2), expected, job)

    def test_confusion_class_weights_and_smoothing_on_every_grid(self):
        labels, test = read(self.graph, "nodes/labels", "split/test")
        job = ("train.learning_rate=0.05", "train.epochs=5", "train.reproducible=true", "train.batches_per_step=2",
               "sampler.batch_size=8", "train.class_weights=balanced", "train.label_smoothing=0.1", "sampler.fanout=[5,5]")

        def outcome():
            report = self.report(self.output)
            return report["confusion"], report["weights_digest"], report["best_epoch"], report["epochs"][-1]["loss"]

        report = self.train(*job)
        expected = outcome()
        self.assertLess(report["best_epoch"], 5, "the case must find its best weights before the restart")
        confusion = np.array(report["confusion"])
        self.assertEqual(list(confusion.sum(axis=1)), list(np.bincount(labels[test], minlength=4)), "a row for each label")
        self.assertAlmostEqual(np.trace(confusion) / len(test), report["test"]["accuracy"], delta=1e-12)
        f1 = [2 * confusion[c, c] / max(confusion[c].sum() + confusion[:, c].sum(), 1) for c in range(4)]
        self.assertAlmostEqual(np.mean(f1), report["test"]["macro_f1"], delta=1e-12)
        for ranks, copies in ((2, 1), (3, 1), (4, 2)):
            self.train(*job, f"grid.replication={copies}", ranks=ranks)
            self.assertEqual(outcome(), expected, (ranks, copies))
        self.train(*job, "train.epochs=4", "run.checkpoint_every=2", ranks=2)
        self.succeed("-q", "train", self.config, *job, ranks=3, overwrite=False)
        self.assertEqual(self.report(self.output)["restart"]["epoch"], 5)
        self.assertEqual(outcome(), expected, "a restart on another grid")
        for key in ("train.class_weights=none", "train.label_smoothing=0"):
            self.train(*job, key)
            self.assertNotEqual(outcome()[1], expected[1], key)


class Rows(ProgramTest):
    JOB = ("model.hidden=8", "model.layers=2", "sampler.fanout=[2,2]", "sampler.batch_size=512", "train.epochs=1", "run.threads=1",
           'run.memory_limit="200MB"')

    def test_of_the_last_layer_are_judged_as_they_come(self):
        """32768 rows of 600 logits would take 79 MB."""
        peaks = []
        for classes in (6, 600):
            self.make_once(self.graph, ("generate", "rmat", "--scale", 15, "--symmetrize", "--features", 4, "--classes", classes))
            peaks.append(self.train()["peak_memory_bytes"]["max"])
            planned = self.planned()["peak_memory_bytes"]["max"]
            self.assertLessEqual(abs(planned - peaks[-1]), 0.2 * peaks[-1], (classes, planned, peaks))
        self.assertLess(peaks[1] - peaks[0], 45e6, peaks)


ONE_LAYER = ("model.layers=1", "model.input_dropout=0", "train.epochs=1", "train.learning_rate=0", "run.threads=1")
SAMPLERS = (("graphsage", "debiased", -1), ("labor", "debiased", -1), ("ladies", "debiased", -1), ("ladies", "reference", -1),
            ("fastgcn", "debiased", -1))


class OneMatrix(ProgramTest):
    """A graph of 14 vertices: loops, weights of 0, a row of zeros, one of tiny weights, a vertex without neighbours."""

    JOB = ONE_LAYER

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        self.adjacent = random.random((14, 14)) < 0.5
        self.adjacent[5], self.adjacent[2, 2] = False, True
        self.weights = np.where(self.adjacent, random.choice([0, 0.25, 1, 7], (14, 14)), 0).astype(np.float32)
        self.weights[3] = 0
        self.weights[8] *= 1e-12
        self.features = random.normal(size=(14, 4)).astype(np.float32)
        self.labels = random.integers(0, 3, 14)
        write_graph(self.graph, [list(np.flatnonzero(row)) for row in self.adjacent], self.features, self.labels, range(9), range(9, 11),
                    range(11, 14), weights=self.weights[self.adjacent])

    def matrix(self, model, weighted, mode):
        def mean(a):
            return a / np.where(a.sum(1, keepdims=True) > 0, a.sum(1, keepdims=True), 1)
        a, own = self.weights.astype(np.float64), model != "mean"
        if mode == "reference":
            return mean((a if own or weighted else self.adjacent.astype(float)) + np.eye(14))
        if model == "sum":
            return a
        if model == "gcn":
            a = a + np.eye(14)
            return a / np.sqrt(np.outer(a.sum(1), a.sum(1)))
        return mean(a if weighted else self.adjacent.astype(float))

    def logits(self, model, weighted, mode):
        product = self.matrix(model, weighted, mode) @ self.features
        tensors = arrays_of(self.output / "weights.h5", "weights")
        if model == "gcn":
            return product @ tensors["layer1.weight"] + tensors["layer1.bias"]
        return self.features @ tensors["layer1.self"] + product @ tensors["layer1.neighbour"] + tensors["layer1.bias"]

    def test_training_and_evaluation_multiply_by_the_matrix_of_the_page(self):
        for (sampler, mode, fanout), model, weighted in itertools.product(SAMPLERS, ("mean", "sum", "gcn"), (False, True)):
            layer_wise, own = sampler in ("ladies", "fastgcn"), model != "mean"
            if weighted and layer_wise and own or mode == "reference" and model == "sum":
                continue
            # The others' matrices are those of graphsage: plan/model_matrix_test.
            if sampler != "graphsage" and mode != "reference" and (weighted or model != "gcn"):
                continue
            job = (f"sampler.kind={sampler}", f"sampler.mode={mode}", f"sampler.weighted={str(weighted).lower()}",
                   f"sampler.fanout=[{fanout}]", "sampler.batch_size=14",
                   *(("model.kind=gcn",) if model == "gcn" else (f"model.aggregator={model}",)))
            with self.subTest(job=job):
                report = self.train(*job, ranks=2)
                expected = self.logits(model, weighted, mode)
                rows, _ = self.inferred(config=self.output / "config.toml")
                np.testing.assert_allclose(rows["logits"], expected, rtol=1e-5, atol=1e-5)
                if mode != "debiased":
                    continue
                exponentials = np.exp(expected)
                loss = -np.log(exponentials[np.arange(14), self.labels] / exponentials.sum(1))[:9].mean()
                self.assertAlmostEqual(report["epochs"][0]["loss"], loss, delta=1e-5, msg="whole rows in training")


class WeightedDraws(ProgramTest):
    JOB = ONE_LAYER

    def test_heavy_edges_that_carry_the_class_are_learnt_and_evaluated(self):
        """A vertex to be judged has two heavy edges to signs of its class, and twelve light ones to signs of one other class: of
        the weighted mean 20/26 are its class, of the plain one 1/7."""
        random, judged, classes = np.random.default_rng(1), 600, 4
        signs = [judged + np.arange(40) * classes + c for c in range(classes)]
        labels = random.integers(0, classes, judged + 160)
        labels[judged:] = np.arange(160) % classes
        rows, weights = [], []
        for v in range(judged):
            other = signs[(labels[v] + random.integers(1, classes)) % classes]
            edges = sorted([(u, 10) for u in random.choice(signs[labels[v]], 2, replace=False)]
                           + [(u, 0.5) for u in random.choice(other, 12, replace=False)])
            rows.append([u for u, _ in edges])
            weights += [weight for _, weight in edges]
        features = random.normal(size=(judged + 160, 8)).astype(np.float32)
        features[judged:, :classes] = np.eye(classes)[labels[judged:]]
        write_graph(self.graph, rows + [[]] * 160, features, labels, range(300), range(300, 400), range(400, judged), weights=weights)
        for sampler in ("graphsage", "ladies"):
            fanout = 4 if sampler == "graphsage" else 100
            report = self.train("sampler.weighted=true", f"sampler.kind={sampler}", f"sampler.fanout=[{fanout}]", "sampler.batch_size=50",
                                "train.epochs=30", "train.learning_rate=0.05")
            self.assertGreater(report["test"]["accuracy"], 0.9, sampler)

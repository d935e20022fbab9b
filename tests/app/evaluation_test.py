"""What `espalier train` reports about the network.

Law: evaluation is exact, so the metrics of untrained weights (learning rate 0, hence a function of the seed) do not depend on how
minibatches are sampled. The confusion matrix is of the test split with the weights of the best epoch, and its diagonal the accuracy;
with class weights and smoothed labels too nothing depends on the grid, nor on a restart between.
"""

import itertools

import h5py
import numpy as np

from tests.app.program import ProgramTest, write_graph

CONFIG = """
[graph]
file = "{graph}"
[model]
hidden = 8
layers = 2
dropout = 0.5
[train]
epochs = 1
learning_rate = 0
[run]
threads = 1
[output]
dir = "{output}"
"""


class Evaluation(ProgramTest):
    def setUp(self):
        super().setUp()
        self.graph = self.folder / "graph.h5"
        self.output = self.folder / "out"
        self.config = self.folder / "job.toml"
        random = np.random.default_rng(5)  # rows of 20 to 60 entries: any fanout but -1 leaves some out
        rows = [sorted(random.choice(90, random.integers(20, 60), replace=False)) for _ in range(90)]
        write_graph(self.graph, rows, random.normal(size=(90, 6)).astype(np.float32), random.integers(0, 4, 90), range(30),
                    range(30, 60), range(60, 90), weights=random.uniform(0.1, 3, sum(map(len, rows))))
        self.config.write_text(CONFIG.format(graph=self.graph, output=self.output))

    def metrics(self, *overrides, **options):
        self.succeed("-q", "train", self.config, *overrides, **options)
        report = self.report(self.output)
        return report["epochs"][0]["valid"], report["test"], report["weights_digest"]

    def test_metrics_do_not_depend_on_how_minibatches_are_sampled(self):
        for model, seed in itertools.product(("sage", "gcn"), (0, 1)):
            job = (f"model.kind={model}", f"train.seed={seed}")
            expected = self.metrics(*job, "sampler.fanout=[-1,-1]")
            for sampling in (("sampler.fanout=[1,1]",), ("sampler.fanout=[15,10]", "sampler.weighted=true", "sampler.batch_size=4")):
                self.assertEqual(self.metrics(*job, *sampling), expected, (job, sampling))
            self.assertEqual(self.metrics(*job, "sampler.fanout=[3,2]", ranks=2), expected, job)

    def test_confusion_class_weights_and_smoothing_on_every_grid(self):
        with h5py.File(self.graph) as file:
            labels, test = file["nodes/labels"][:], file["split/test"][:]
        job = ("train.learning_rate=0.05", "train.epochs=5", "train.reproducible=true", "train.batches_per_step=2",
               "sampler.batch_size=8", "train.class_weights=balanced", "train.label_smoothing=0.1", "sampler.fanout=[5,5]")

        def outcome():
            report = self.report(self.output)
            return report["confusion"], report["weights_digest"], report["best_epoch"], report["epochs"][-1]["loss"]

        self.succeed("-q", "train", self.config, *job)
        expected, report = outcome(), self.report(self.output)
        self.assertLess(report["best_epoch"], 5, "the case must find its best weights before the restart")
        confusion = np.array(report["confusion"])
        self.assertEqual(list(confusion.sum(axis=1)), list(np.bincount(labels[test], minlength=4)), "a row for each label")
        self.assertAlmostEqual(np.trace(confusion) / len(test), report["test"]["accuracy"], delta=1e-12)
        f1 = [2 * confusion[c, c] / max(confusion[c].sum() + confusion[:, c].sum(), 1) for c in range(4)]
        self.assertAlmostEqual(np.mean(f1), report["test"]["macro_f1"], delta=1e-12)
        for ranks, copies in ((2, 1), (3, 1), (4, 2)):
            self.succeed("-q", "train", self.config, *job, "run.restart=never", f"grid.replication={copies}", ranks=ranks)
            self.assertEqual(outcome(), expected, (ranks, copies))
        self.succeed("-q", "train", self.config, *job, "run.restart=never", "train.epochs=4", "run.checkpoint_every=2", ranks=2)
        self.succeed("-q", "train", self.config, *job, ranks=3)
        self.assertEqual(outcome(), expected, "a restart on another grid")
        for key in ("train.class_weights=none", "train.label_smoothing=0"):
            self.succeed("-q", "train", self.config, *job, "run.restart=never", key)
            self.assertNotEqual(outcome()[1], expected[1], key)

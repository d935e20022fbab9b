"""What `espalier train` reports about the network.

Law: evaluation is exact, so the metrics of untrained weights (learning rate 0, hence a function of the seed) do not depend on how
minibatches are sampled.
"""

import itertools

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

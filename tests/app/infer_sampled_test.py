"""`infer --sampled`: each layer reads what training's sampler draws for a vertex, not all of its neighbours.

Laws: the rows are the same bits on every grid, spilled or not, in one go or resumed (infer_resume_test.py); of fanouts that no vertex
reaches they are those of all neighbours; of a network of one layer of means they are right on average; the file says what was drawn, and
by which seed.
"""

import numpy as np

from tests.app.program import ProgramTest


class Sampled(ProgramTest):
    JOB = ("sampler.fanout=[4, 3]", "sampler.batch_size=64", "model.hidden=8", "model.layers=2", "train.epochs=1", "train.batches_per_step=4",
           "run.threads=1")

    def trained(self, *job, graph=("--nodes", 700, "--degree", 9, "--classes", 3, "--features", 6)):
        self.make_once(self.graph, ("generate", "planted", *graph, "--seed", 5))
        self.write_job(*job)
        self.succeed("-q", "train", self.config)

    def sampled(self, *more, **options):
        return self.inferred("--sampled", *more, **options)

    def logits(self, *more, **options):
        return self.sampled(*more, **options)[0]["logits"].tobytes()

    def test_the_same_bits_on_every_grid(self):
        small = ("run.memory_limit=130000", "run.memory_check=warn")  # chunks of 64 rows
        spilled = (f"run.spill={self.folder}", "graph.features_on=disk", "run.cache_memory=8KiB")
        for job in ((), ('sampler.kind="labor"', 'model.kind="gcn"')):
            self.trained(*job)
            exact, (data, about) = self.inferred()[0]["logits"], self.sampled()
            self.assertEqual((about["sampled"].decode().split()[-1], about["seed"]), ("4,3", 0))
            self.assertTrue((data["logits"] != exact).any(axis=1).mean() > 0.5)
            for ranks, *more in ((2, "grid.replication=2", *small), (3, *spilled), (4, "grid.topology=replicated"), (1, *small)):
                self.assertEqual(self.logits(*more, ranks=ranks), data["logits"].tobytes(), (job, ranks, more))
            self.assertNotEqual(self.logits("train.seed=1"), data["logits"].tobytes())
            whole = self.logits("sampler.fanout=[700, 700]", *spilled)
            self.assertEqual(whole, exact.tobytes(), job)
        self.assertNotIn("sampled", self.inferred()[1])

    def test_right_on_average(self):
        self.trained("model.layers=1", "model.hidden=256", "sampler.fanout=[2]")
        exact = self.inferred()[0]["logits"].astype(np.float64)
        drawn = np.stack([self.sampled(f"train.seed={seed}")[0]["logits"] for seed in range(12)]).astype(np.float64)
        error = (drawn.mean(0) - exact)[drawn.std(0).min(1) > 0]
        # Of thousands of numbers: none of them far off, their mean not at all.
        scale = drawn.std(0, ddof=1)[drawn.std(0).min(1) > 0] / np.sqrt(len(drawn))
        self.assertGreater(len(error), 300)
        self.assertLess(abs((error / scale).mean()), 0.2)
        self.assertLess(abs((error / scale)).mean(), 1.2)

    def test_types(self):
        self.trained('model.kind="hgt"', "model.heads=2",
                     graph=("--types", "paper=200:8,author=150:8,venue=20", "--relations", "author.writes.paper=900,paper.at.venue=200",
                            "--classes", 3))
        drawn = self.logits()
        self.assertEqual(self.logits("grid.replication=2", ranks=4), drawn)
        exact = self.inferred()[0]["logits"].tobytes()
        self.assertNotEqual(drawn, exact)
        self.assertEqual(self.logits("sampler.fanout=[900, 900]", ranks=3), exact)

    def test_what_is_refused(self):
        self.trained('sampler.kind="ladies"', "sampler.fanout=[60, 80]")
        self.fail_with(2, ["--sampled", "sampler.kind = ladies", "graphsage"], *self.infer_words("--sampled"))

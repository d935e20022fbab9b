"""Parts of a training step that change its numbers: clipped gradients (train.clip_norm), averaged weights (train.average_weights).

Laws: what changes nothing changes no bit; one history on every grid, also where a job is cut and goes on elsewhere, beside history and
trainable embeddings too; the average is the one that its formula gives, and what is judged and kept is the average.
"""

import shutil

import numpy as np

from tests.app.planted_job import PlantedJobTest
from tests.app.program import arrays_of, attributes_of

CLIPPED, AVERAGED = "train.clip_norm=0.05", "train.average_weights=0.9"
LAYOUTS = ((1,), (3, "run.overlap=true"), (2, "grid.topology=replicated"), (4, "grid.replication=2", "run.overlap=true"))


class StepPartsTest(PlantedJobTest):
    def tensors(self):
        """Of the newest checkpoint, how many steps were done, weights and averages."""
        newest = max((self.output / "checkpoints").glob("*.h5"))
        steps = int(attributes_of(newest)["optimizer_steps"])
        return steps, arrays_of(newest, "weights"), arrays_of(newest, "average")

    def test_what_changes_nothing(self):
        expected = self.history(self.train())
        self.assertEqual(self.history(self.train("train.clip_norm=1e9", ranks=2)), expected)
        self.assertNotEqual(self.train(CLIPPED)["weights_digest"], expected[-2])
        losses = [epoch[:2] for epoch in expected[:-2]]
        averaged = self.history(self.train(AVERAGED, ranks=3))
        self.assertEqual([epoch[:2] for epoch in averaged[:-2]], losses, "weights are trained as without")
        self.assertNotEqual(averaged[-2], expected[-2])

    def test_one_history_on_every_grid(self):
        self.one_history((CLIPPED, AVERAGED, "model.normalize=batch"), LAYOUTS[1:])

    def test_cut_anywhere_and_gone_on_with_elsewhere(self):
        self.check_cuts(CLIPPED, AVERAGED, "history.kind=replace", "history.t_stale=5", "sampler.batch_size=80", layouts=LAYOUTS)

    def test_plan_counts_the_average(self):
        without, average = (self.planned("--draw", 0, *job, ranks=2)["plan"]["memory"]["step"] for job in ((), (AVERAGED,)))
        self.train("train.epochs=1")
        self.assertEqual(average.pop("average of the weights"), 4 * sum(of.size for of in arrays_of(self.output / "weights.h5").values()))
        self.assertEqual(average.keys(), without.keys())

    def test_the_average_is_that_of_the_formula(self):
        done = 0
        for _ in self.cut_everywhere(AVERAGED, "train.optimizer=sgd", "sampler.batch_size=80", layouts=LAYOUTS):
            steps, weights, found = self.tensors()
            self.assertEqual(weights.keys(), found.keys())
            self.assertIn(steps - done, (0, 1), "the end of an epoch is no step")
            if steps > done > 0:
                decay = min(0.9, (1 + done) / (10 + done))
                for name in weights:
                    np.testing.assert_allclose(found[name], decay * average[name] + (1 - decay) * weights[name], rtol=1e-5, atol=1e-7)
            done, average = steps, {name: found[name].astype(float) for name in found}
        self.assertGreater(done, 5)

    def test_an_average_may_begin_and_end_at_a_restart(self):
        self.train("train.epochs=1", "run.checkpoint_every=1")
        without = self.folder / "without.h5"
        shutil.copy(max((self.output / "checkpoints").glob("*.h5")), without)
        whole = self.train("train.epochs=2", ranks=2)
        output = self.succeed("train", self.config, AVERAGED, f"run.restart={without}", "run.checkpoint_every=2", ranks=3)
        self.assertIn(f"{without} has no average of weights: it begins with the weights of that moment", output)
        steps, weights, average = self.tensors()
        self.assertEqual(self.report(self.output)["epochs"][-1]["loss"], whole["epochs"][-1]["loss"], "weights are trained as without")
        self.assertTrue(any((weights[name] != average[name]).any() for name in weights))
        averaged = self.folder / "averaged.h5"
        shutil.copy(max((self.output / "checkpoints").glob("*.h5")), averaged)
        self.train("train.epochs=3", restart=averaged, ranks=2)

    def test_best_weights_are_averages(self):
        self.train(AVERAGED, "train.epochs=1", "run.checkpoint_every=1")
        *_, average = self.tensors()
        best = arrays_of(self.output / "weights.h5", "weights")
        for name, tensor in average.items():
            np.testing.assert_array_equal(best[name], tensor)

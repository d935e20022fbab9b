"""train.precision = "bf16" on CPUs.

Laws: weights, losses and metrics are the same on any grid and number of threads, with AMX and without, and of a run that was cut; they
are close to those of fp32, and others; `infer` gives the rows of the precision it is asked for, the same with AMX and without.
"""

import os

import numpy as np

from tests.app.planted_job import PlantedJobTest

BF16 = ("train.precision=bf16", 'run.device="cpu"')
WITHOUT_AMX = {"env": dict(os.environ, ESPALIER_NO_AMX="1")}
LAYERS = (("model.kind=sage",), ("model.kind=gat", "model.heads=2"), ("model.kind=gin", "model.residual=true"))


class Precision(PlantedJobTest):
    def test_one_history(self):
        for layers in LAYERS:
            job = (*layers, *BF16)
            exact = self.train(*layers)
            expected = self.one_history(job, [(1, "run.threads=3"), (2, "grid.replication=2"), (3, "grid.topology=replicated")])
            self.assertEqual(self.history(self.train(*job, **WITHOUT_AMX)), expected)
            rounded = self.report(self.output)
            self.assertEqual(rounded["config"]["train"]["precision"], "bf16")
            self.assertNotEqual(rounded["weights_digest"], exact["weights_digest"])
            for one, other in zip(rounded["epochs"], exact["epochs"], strict=True):
                self.assertEqual(one["sample_digest"], other["sample_digest"])
                self.assertNotEqual(one["loss"], other["loss"])
                self.assertAlmostEqual(one["loss"], other["loss"], delta=0.02 * other["loss"])

    def test_a_cut_run_goes_on(self):
        expected = self.history(self.train(*BF16))
        self.goes_on(expected, *BF16)
        self.goes_on(expected, *BF16, **WITHOUT_AMX)

    def test_it_is_said(self):
        self.assertRegex(self.succeed("train", self.config, *BF16), r"on the CPU, products in bf16 \((AMX|no AMX: slower)\)")
        self.assertIn("products in bf16 (no AMX: slower)", self.succeed("train", self.config, *BF16, **WITHOUT_AMX))
        self.assertNotIn("products in", self.succeed("train", self.config))
        self.assertEqual(self.planned(*BF16)["config"]["train"]["precision"], "bf16")

    def test_inference(self):
        self.train(*BF16)
        exact, _ = self.inferred("train.precision=fp32")
        rounded, _ = self.inferred(*BF16)
        others, _ = self.inferred(*BF16, **WITHOUT_AMX)
        name = next(name for name, rows in exact.items() if rows.dtype == np.float32)
        np.testing.assert_array_equal(rounded[name], others[name])
        self.assertGreater(np.abs(rounded[name] - exact[name]).max(), 0)
        np.testing.assert_allclose(rounded[name], exact[name], atol=0.1 * np.abs(exact[name]).max())

"""A network of one's own in PyTorch.

Laws: under DistributedDataParallel on 1, 2 and 4 ranks it comes to the same losses and rows, to
rounding, also where ranks do not divide a step's batches; what PyTorch Geometric and DGL make of a
batch is what its blocks say; tensors are the library's memory.
"""

import os
import subprocess
import sys

import numpy as np

from tests.app.program import ROOT
from tests.launcher import LAUNCHER
from tests.python import needs
from tests.python.loader_test import OnRanks


class OwnModel(OnRanks):
    JOB = (*OnRanks.JOB, 'graph.feature_norm="standard"')

    @needs("torch")
    def test_it_comes_to_the_same_on_any_number_of_ranks(self):
        expected = self.on(1, "own_model")[0]
        self.assertLess(expected["losses"][-1], 0.9 * expected["losses"][0])
        for ranks in (2, 4):
            for found in self.on(ranks, "own_model"):
                np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-5)
                np.testing.assert_allclose(found["rows"], expected["rows"], rtol=1e-4, atol=1e-5)
                self.assertEqual(found["ranks"], (ranks, str(ranks)))

    @needs("torch")
    def test_the_example_is_short_and_learns(self):
        example = ROOT / "examples/python/own_model.py"
        self.assertLess(sum(line.strip() != "" for line in example.read_text().splitlines()), 40)
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
        command = LAUNCHER.command(3, sys.executable, example)
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(float(done.stdout.split()[-1]), 0.75, done.stdout)


class Tensors(OnRanks):
    @needs("torch")
    def test_they_are_the_memory_of_the_library(self):
        self.write('sampler.kind="subgraph"', "sampler.fanout=[-1,-1]")
        self.write_job('sampler.kind="subgraph"', "sampler.fanout=[-1,-1]")
        found, of_file = self.on(1, "tensors")[0], self.read()[0].y
        kinds = ["float32", "int64", "int32", "float32", "int64"]
        self.assertEqual(found["kinds"], [f"torch.{kind}" for kind in kinds])
        self.assertTrue(found["shared"] and found["dlpack"] and found["moved"], found)
        self.assertEqual(found["products"], [True, True])
        self.assertIn(-1, of_file)
        self.assertEqual(found["y"], np.where(of_file < 0, -100, of_file).tolist())

    def both_kinds(self, which):
        """Of a graph without types and of one with them."""
        self.assertEqual(set(self.on(1, "in_others", which)[0]), {True})
        self.planted("--types", "a=40:3,b=30:2", "--relations", "b.to.a=90,a.on.a=80,a.of.b=50")
        self.write_job('model.kind="rgcn"')
        self.assertEqual(set(self.on(1, "in_others", which)[0]), {True})

    @needs("torch_geometric")
    def test_pytorch_geometric(self):
        self.both_kinds("in_pyg")

    @needs("dgl")
    def test_dgl(self):
        self.both_kinds("in_dgl")

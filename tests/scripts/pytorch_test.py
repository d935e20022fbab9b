"""scripts/to_pytorch.py and from_pytorch.py: weights.h5 to a state dict of PyTorch and back.

Laws: a forward pass that is written in the names, shapes and formulas of PyTorch Geometric gives the logits of `espalier infer`; there
and back again the same bits come; torch's own modules of those names take the state dict as it is; what is something else is refused.
"""

import importlib.util
import subprocess
import sys
import unittest

import h5py
import numpy as np

from tests.app.infer_test import CONFIG, VERTICES, make_graph
from tests.app.program import ROOT, ProgramTest

KINDS = {"sage-batch": (), "gcn-layer": ("model.kind=gcn", "model.normalize=layer", "graph.feature_norm=none")}
TORCH_MODULE = """
import sys, torch
from torch import nn
class Conv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin_l, self.lin_r = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)
class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.module = nn.BatchNorm1d(width)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs, self.norms = nn.ModuleList([Conv(6, 8), Conv(8, 4)]), nn.ModuleList([Norm(8)])
print(Net().load_state_dict(torch.load(sys.argv[1]), strict=True))
"""


class PyTorchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.graph = self.folder / "graph.h5"
        self.rows = make_graph(self.graph)

    def script(self, name, *arguments, code=0):
        done = subprocess.run([sys.executable, ROOT / "scripts" / name, *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def train(self, kind):
        """(config, weights.h5, logits of every vertex by `infer`)"""
        folder = self.folder / kind
        config = self.folder / f"{kind}.toml"
        config.write_text(CONFIG.format(graph=self.graph, output=folder))
        self.succeed("-q", "train", config, *KINDS[kind])
        self.resolved = folder / "config.toml"
        return folder / "weights.h5", self.infer(folder / "weights.h5")

    def infer(self, weights, *overrides):
        rows = self.folder / "rows.h5"
        self.succeed("-q", "infer", self.resolved, "--checkpoint", weights, "-o", rows, "--overwrite", *overrides)
        with h5py.File(rows) as file:
            return file["logits"][:]

    def matrix(self, kind):
        """What a layer multiplies by, dense: the mean over neighbours, or D^-1/2 (A + I) D^-1/2."""
        a = np.zeros((VERTICES, VERTICES))
        for v, row in enumerate(self.rows):
            a[v, row] = 1
        if kind.startswith("sage"):
            return a / np.maximum(a.sum(1, keepdims=True), 1)
        a += np.eye(VERTICES)
        degree = a.sum(1)
        return a / np.sqrt(np.outer(degree, degree))

    def forward(self, kind, state, weights):
        """The network in PyTorch Geometric's words."""
        with h5py.File(self.graph) as file:
            x = file["nodes/features"][:].astype(np.float64)
        with h5py.File(weights) as file:
            if "features" in file:
                x = (x - file["features/mean"][:]) / file["features/deviation"][:]
        a = self.matrix(kind)
        for layer in (0, 1):
            conv = {name.removeprefix(f"convs.{layer}."): value for name, value in state.items()}
            if kind.startswith("sage"):
                x = a @ x @ conv["lin_l.weight"].T + conv["lin_l.bias"] + x @ conv["lin_r.weight"].T
            else:
                x = a @ (x @ conv["lin.weight"].T) + conv["bias"]
            if layer == 1:
                return x
            norm = {name.removeprefix("norms.0."): value for name, value in state.items()}
            if kind.endswith("batch"):
                x = (x - norm["module.running_mean"]) / np.sqrt(norm["module.running_var"] + 1e-5) * norm["module.weight"] + norm["module.bias"]
            else:
                x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * norm["weight"] + norm["bias"]
            x = np.maximum(x, 0)

    def test_there_and_back(self):
        for kind in KINDS:
            with self.subTest(kind):
                weights, logits = self.train(kind)
                there, back = self.folder / "state.npz", self.folder / "back.h5"
                self.script("to_pytorch.py", weights, "-o", there)
                damaged = bytearray(weights.read_bytes())
                damaged[-5] ^= 1
                back.write_bytes(damaged)
                self.assertIn("is damaged", self.script("to_pytorch.py", back, "-o", there, code=3))
                with np.load(there) as file:
                    state = dict(file)
                np.testing.assert_allclose(self.forward(kind, state, weights), logits, rtol=1e-4, atol=1e-4)
                self.script("from_pytorch.py", there, "--like", weights, "-o", back)
                self.assertEqual(self.infer(back).tobytes(), logits.tobytes())
                # The graph is the one of the training: its own mean and deviation are the same.
                self.script("from_pytorch.py", there, "--config", self.resolved, "-o", back)
                self.assertEqual(self.infer(back).tobytes(), logits.tobytes())

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch here")
    def test_modules_of_torch_take_it(self):
        weights, logits = self.train("sage-batch")
        there, back = self.folder / "state.pt", self.folder / "back.h5"
        self.script("to_pytorch.py", weights, "-o", there)
        done = subprocess.run([sys.executable, "-c", TORCH_MODULE, there], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertIn("All keys matched", done.stdout)
        self.script("from_pytorch.py", there, "--like", weights, "-o", back)
        self.assertEqual(self.infer(back).tobytes(), logits.tobytes())

    def test_what_is_something_else(self):
        self.assertIn("is not a weights.h5", self.script("to_pytorch.py", self.graph, "-o", self.folder / "x.npz", code=3))
        self.script("to_pytorch.py", self.folder / "missing.h5", "-o", self.folder / "x.npz", code=3)
        state, config, output = self.folder / "state.npz", self.folder / "a.toml", self.folder / "x.h5"
        config.write_text("")
        good = {"convs.0.lin_l.weight": np.zeros((3, 2)), "convs.0.lin_l.bias": np.zeros(3), "convs.0.lin_r.weight": np.zeros((3, 2))}
        for change, words in (({"embedding.weight": np.zeros((1, 1))}, "no place for embedding.weight"),
                              ({"convs.0.att": np.zeros(3)}, "of no kind"), ({"convs.0.lin_l.bias": np.zeros((3, 1))}, "has shape [3, 1]")):
            np.savez(state, **(good | change))
            self.assertIn(words, self.script("from_pytorch.py", state, "--config", config, "-o", output, code=3))
        self.script("from_pytorch.py", state, "-o", output, code=2)
        self.assertFalse(output.exists())


if __name__ == "__main__":
    unittest.main()

"""The block of docs/layers.md that puts weights into PyTorch Geometric's classes.

Law: for every kind of layer that it names, the forward pass of those classes gives the logits of `espalier infer` within what float32
rounds; and every kind of layer of the program is in the block, or on the page as one that is several modules.
"""

import importlib.util
import os
import re
import sys
import unittest

import numpy as np

from tests.app.program import ROOT, ProgramTest, arrays_of

PAGE = (ROOT / "docs" / "layers.md").read_text()
BLOCK = re.search(r"## Use the weights elsewhere.*?```python\n(.*?)```", PAGE, re.S).group(1)
KINDS = {"sage": (), "gcn": (), "gat": ("model.heads=2", "model.output_heads=3"), "gin": (), "rgcn": ("model.bases=2",)}


class Weights(ProgramTest):
    JOB = ("sampler.fanout=[4, 4]", "model.layers=2", "model.hidden=8", "train.epochs=2", "train.learning_rate=0.01", "run.threads=1",
           'run.device="cpu"', 'graph.feature_norm="none"')

    def test_the_page_has_every_kind(self):
        kinds = re.search(r"not one of (.*); did you mean", self.fail_with(2, [], "train", "/dev/null", "--dry-run", "model.kind=sgae"))
        listed = set(re.split(r" \| |, ", kinds.group(1).strip()))
        in_block = set(re.findall(r'(?m)^    "(\w+)": {', BLOCK))
        self.assertEqual(in_block, set(KINDS))
        self.assertEqual(listed - in_block, {"rgat", "hgt"})
        self.assertIn("`rgat` and `hgt`", PAGE)

    @unittest.skipUnless(importlib.util.find_spec("torch_geometric"), "no PyTorch Geometric here")
    def test_pytorch_geometric_gives_the_logits_of_infer(self):
        sys.path.insert(0, str(ROOT / "python"))
        self.addCleanup(sys.path.remove, str(ROOT / "python"))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for kind in KINDS:
            with self.subTest(kind):
                typed = kind == "rgcn"
                self.generate(typed)
                self.succeed("-q", "train", self.config, f"model.kind={kind}", *KINDS[kind], "run.restart=never")
                rows, _ = self.inferred(*(("--types", "all") if typed else ()), config=self.output / "config.toml")
                ours = np.concatenate([rows[f"types/{name}/logits"] for name in ("author", "paper")]) if typed else rows["logits"]
                theirs = self.logits(kind)
                self.assertGreater(len(np.unique(ours, axis=0)), len(ours) // 2, "a dead network shows nothing")
                np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-5)

    def generate(self, typed):
        size = ("--types", "author=60:6,paper=90:6", "--relations", "author.writes.paper=200,paper.cites.paper=300") if typed else (
            "--nodes", 150, "--features", 6)
        self.succeed("-q", "generate", "planted", *size, "--classes", 3, "-o", self.graph, "--overwrite")

    def logits(self, kind):
        """By the block, as a reader would go on from it."""
        names = {}
        exec(BLOCK, names)  # pylint: disable=exec-used
        torch, layer, weights = names["torch"], names["layer"], names["weights"]
        nn, graph = torch.nn, arrays_of(self.graph)
        edges = [torch.from_numpy(np.stack([graph["graph/indices"], np.repeat(np.arange(150), np.diff(graph["graph/indptr"]))]).astype(int))]

        def sequence(inputs, outputs):
            return nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs))

        if kind == "rgcn":
            runs = np.diff(np.append(graph["graph/segment_begin"], len(graph["graph/indices"])))
            edges.append(torch.from_numpy(np.repeat(graph["graph/segment_relation"].astype(int), runs)))
            x = torch.cat([torch.from_numpy(graph[f"nodes/{name}/features"] @ weights[f"input.weight.{name}"] + weights[f"input.bias.{name}"])
                           for name in ("author", "paper")])
            relations = len(graph["relations/name"])
        else:
            x, relations = torch.from_numpy(graph["nodes/features"]), 1
        convs = {"sage": (lambda: (names["SAGEConv"](6, 8), names["SAGEConv"](8, 3))),
                 "gcn": (lambda: (names["GCNConv"](6, 8), names["GCNConv"](8, 3))),
                 "gat": (lambda: (names["GATConv"](6, 4, heads=2), names["GATConv"](8, 3, heads=3, concat=False))),
                 "gin": (lambda: tuple(names["GINConv"](sequence(*widths), train_eps=True) for widths in ((6, 8), (8, 3)))),
                 "rgcn": (lambda: tuple(names["RGCNConv"](8, width, relations, num_bases=2) for width in (8, 3)))}[kind]()
        active = nn.functional.elu if kind == "gat" else torch.relu
        with torch.no_grad():
            return layer(2, convs[1])(active(layer(1, convs[0])(x, *edges)), *edges).numpy()

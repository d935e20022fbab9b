"""scripts/to_pytorch.py and from_pytorch.py: weights.h5 to a state dict of PyTorch and back.

Laws: a forward pass that is written in the names, shapes and formulas of PyTorch Geometric gives the logits of `espalier infer`, with
types and relations too; there and back again the same bits come; torch's own modules of those names take the state dict as it is, and PyTorch Geometric's give the
same logits; what is something else is refused.
"""

import importlib.util
import unittest

import h5py
import numpy as np

import to_pytorch
from tests.app.infer_test import CLASSES, FEATURES, JOB, VERTICES, make_graph
from tests.app.program import LONG, PROGRAM, ROOT, ProgramTest, arrays_of, job_text, read, run_python, write_graph

KINDS = {
    "sage": (),
    "gcn": ("model.normalize=layer", "graph.feature_norm=none"),
    "sage-max": ("model.aggregator=max", "model.residual=true", "graph.feature_norm=row", "model.hidden=6"),
    "sage-sum": ("model.aggregator=sum", "model.normalize=layer", "model.jumping=concat"),
    "gat": ("model.heads=2", "model.output_heads=3", "model.residual=true", "model.normalize=none"),
    "gat-jumping": ("model.heads=4", "model.jumping=max", "model.residual=true"),
    "gin": ("model.normalize=none", "train.learning_rate=0.002"),
    "gin-jumping": ("model.jumping=max", "model.activation=elu", "train.learning_rate=0.002"),
}
needs_pyg = unittest.skipUnless(importlib.util.find_spec("torch_geometric"), "no PyTorch Geometric here")
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


def below(state, prefix):
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def aggregated(rows, x, how):
    """The mean, sum or maximum of the neighbours; 0 where there are none."""
    return np.stack([getattr(x[row], how)(0) if len(row) else np.zeros(x.shape[1]) for row in rows])


def sage(rows, x, conv, aggregator, _):
    return aggregated(rows, x, aggregator) @ conv["lin_l.weight"].T + conv["lin_l.bias"] + x @ conv["lin_r.weight"].T


def gcn(rows, x, conv, *_):
    """By D^-1/2 (A + I) D^-1/2, dense."""
    a = np.eye(VERTICES)
    for v, row in enumerate(rows):
        a[v, row] += 1
    return a / np.sqrt(np.outer(a.sum(1), a.sum(1))) @ (x @ conv["lin.weight"].T) + conv["bias"]


def gat(rows, x, conv, _, is_last):
    """Vertex by vertex; the vertex itself counts once, whether or not it names itself."""
    _, heads, width = conv["att_src"].shape
    p = (x @ conv["lin.weight"].T).reshape(-1, heads, width)
    source, target = ((p * conv[name]).sum(2) for name in ("att_src", "att_dst"))
    z = np.empty_like(p)
    for v, row in enumerate(rows):
        those = sorted({v, *row})
        score = source[those] + target[v]
        score = np.exp(np.where(score > 0, score, 0.2 * score))
        z[v] = ((score / score.sum(0))[:, :, np.newaxis] * p[those]).sum(0)
    return (z.mean(1) if is_last else z.reshape(len(z), -1)) + conv["bias"]


def gin(rows, x, conv, *_):
    inner = (aggregated(rows, x, "sum") + (1 + conv["eps"]) * x) @ conv["nn.0.weight"].T + conv["nn.0.bias"]
    return np.maximum(inner, 0) @ conv["nn.2.weight"].T + conv["nn.2.bias"]


CONVOLUTIONS = {"sage": sage, "gcn": gcn, "gat": gat, "gin": gin}


def normalized(norm, z):
    if not norm:
        return z
    if "weight" in norm:
        return (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5) * norm["weight"] + norm["bias"]
    norm = below(norm, "module.")
    return (z - norm["running_mean"]) / np.sqrt(norm["running_var"] + 1e-5) * norm["weight"] + norm["bias"]


class PyTorchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.rows = make_graph(self.graph)

    def run_script(self, name, *arguments, code=0, folder="scripts"):
        done = run_python(ROOT / folder / name, *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def compare(self, lines, *arguments):
        """With modules of PyTorch Geometric, so many cases."""
        self.assertEqual(len(self.run_script("compare_with_pyg.py", *arguments, folder="tests/oracle").splitlines()), lines)

    def train(self, kind):
        """(config, weights.h5, logits of every vertex by `infer`)"""
        folder = self.folder / kind
        config = self.folder / f"{kind}.toml"
        config.write_text(job_text(self.graph, folder, *JOB))
        self.succeed("-q", "train", config, f"model.kind={kind.partition('-')[0]}", *KINDS[kind])
        self.resolved = folder / "config.toml"
        return folder / "weights.h5", self.infer(folder / "weights.h5")

    def infer(self, weights, *overrides):
        types = [name.decode() for name in arrays_of(self.graph).get("types/name", [])]
        rows, _ = self.inferred(*overrides, *(("--types", "all") if types else ()), config=self.resolved, weights=weights)
        return np.concatenate([rows[f"types/{name}/logits"] for name in types]) if types else rows["logits"]

    def features(self, kind, weights):
        x = read(self.graph, "nodes/features").astype(np.float64)
        trained = arrays_of(weights)
        if "features/mean" in trained:
            return (x - trained["features/mean"]) / trained["features/deviation"]
        return x / np.abs(x).sum(1, keepdims=True) if "graph.feature_norm=row" in KINDS[kind] else x

    def forward(self, kind, state, weights):
        """The network in PyTorch Geometric's words."""
        x, results = self.features(kind, weights), []
        jumping = next((word.partition("=")[2] for word in KINDS[kind] if word.startswith("model.jumping")), None)
        for layer in (0, 1):
            conv, norm, residual = (below(state, f"{group}.{layer}.") for group in ("convs", "norms", "residuals"))
            is_last = layer == 1 and not jumping
            aggregator = {"sage-max": "max", "sage-sum": "sum"}.get(kind, "mean")
            z = CONVOLUTIONS[kind.partition("-")[0]](self.rows, x, conv, aggregator, is_last)
            if "model.residual=true" in KINDS[kind]:
                z += x @ residual["weight"].T if residual else x
            if is_last:
                return z
            z = normalized(norm, z)
            is_elu = kind.startswith("gat") or "model.activation=elu" in KINDS[kind]
            x = np.where(z > 0, z, np.expm1(np.minimum(z, 0)) if is_elu else 0)
            results.append(x)
        x = np.concatenate(results, 1) if jumping == "concat" else np.maximum(*results)
        return x @ state["lin.weight"].T + state["lin.bias"]

    def state(self, weights, *options):
        """The state dict of these weights, and the file where it lies."""
        there = self.folder / "state.npz"
        said = self.run_script("to_pytorch.py", weights, "-o", there, *options)
        with np.load(there) as file:
            return dict(file), there, said

    def check_either_back(self, turn, there, logits, weights):
        """What the state dict does not tell is from the weights, or from the config: either by turns, with --long both. The graph is the
        one of the training: its own mean and deviation are the same."""
        for k, options in enumerate((("--like", weights), ("--config", self.resolved))):
            if LONG or k == turn % 2:
                self.check_back(there, logits, *options)

    def check_back(self, there, logits, *options):
        """The same bits, from the state dict and what tells the rest."""
        back = self.folder / "back.h5"
        self.run_script("from_pytorch.py", there, *options, "-o", back)
        self.assertEqual(self.infer(back).tobytes(), logits.tobytes())

    def test_there_and_back(self):
        for turn, kind in enumerate(KINDS):
            with self.subTest(kind):
                weights, logits = self.train(kind)
                state, there, _ = self.state(weights)
                np.testing.assert_allclose(self.forward(kind, state, weights), logits, rtol=1e-4, atol=1e-4)
                self.check_either_back(turn, there, logits, weights)
        damaged = self.folder / "damaged.h5"
        damaged.write_bytes(weights.read_bytes()[:-5] + bytes([weights.read_bytes()[-5] ^ 1]) + weights.read_bytes()[-4:])
        self.assertIn("is damaged", self.run_script("to_pytorch.py", damaged, "-o", there, code=3))

    def typed(self, *overrides):
        """(weights.h5, logits of every vertex by `infer`) of a network of relations."""
        self.make_once(self.graph, ("generate", "planted", "--types", f"paper=300:{FEATURES},author=200,field=5", "--relations",
                                    "author.writes.paper=900,paper.cites.paper=1200,paper.about.field=300", "--classes", CLASSES))
        config, folder = self.folder / "typed.toml", self.folder / "typed"
        config.write_text(job_text(self.graph, folder, *JOB))
        self.succeed("-q", "train", config, "model.kind=rgcn", "model.bases=2", "run.restart=never", *overrides)
        self.resolved = folder / "config.toml"
        return folder / "weights.h5", self.infer(folder / "weights.h5")

    def forward_typed(self, state, weights):
        """RGCNConv in PyTorch Geometric's words: the mean over each relation by itself."""
        graph, trained = arrays_of(self.graph), arrays_of(weights, "features")
        offset, names = graph["types/offset"], [name.decode() for name in graph["types/name"]]
        features = (graph["nodes/paper/features"] - trained["mean"]) / trained["deviation"]
        indptr, indices = graph["graph/indptr"], graph["graph/indices"]
        relation = np.repeat(graph["graph/segment_relation"], np.diff([*graph["graph/segment_begin"], len(indices)]))
        x = np.zeros((offset[-1], 8))
        for name, first, last in zip(names, offset, offset[1:]):
            rows = features if name == "paper" else state.get(f"embeddings.{name}.weight")
            x[first:last] = (state[f"vectors.{name}"] if rows is None else
                             rows @ state[f"inputs.{name}.weight"].T + state[f"inputs.{name}.bias"])
        for layer in (0, 1):
            conv = below(state, f"convs.{layer}.")
            matrices = np.einsum("rb,bio->rio", conv["comp"], conv["weight"])
            z = x @ conv["root"] + conv["bias"]
            for v in range(len(x)):
                row = slice(indptr[v], indptr[v + 1])
                for r in set(relation[row]):
                    z[v] += x[indices[row][relation[row] == r]].mean(0) @ matrices[r]
            x = np.maximum(normalized(below(state, "norms.0."), z), 0) if layer == 0 else z
        return x

    def test_relations_there_and_back(self):
        for turn, normalize in enumerate(("none", "batch")):
            with self.subTest(normalize):
                weights, logits = self.typed(f"model.normalize={normalize}")
                state, there, said = self.state(weights)
                self.assertIn("convs.0.weight                   [2, 8, 8]", said)
                np.testing.assert_allclose(self.forward_typed(state, weights), logits, rtol=1e-4, atol=1e-4)
                self.assertGreater(len(np.unique(logits[:300], axis=0)), 200, "a dead network shows nothing")
                self.check_either_back(turn, there, logits, weights)

    def test_embeddings(self):
        weights, logits = self.typed("model.embedding=6")
        (state, there, said), beside = self.state(weights), weights.parent / "embeddings.h5"
        self.assertIn("embeddings.author.weight         [200, 6]", said)
        np.testing.assert_allclose(self.forward_typed(state, weights), logits, rtol=1e-4, atol=1e-4)
        self.assertIn("embeddings.author.weight", self.run_script("from_pytorch.py", there, "--like", weights, "-o", self.folder / "back.h5",
                                                              code=3))
        whole = beside.read_bytes()
        beside.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        self.assertIn("is damaged", self.run_script("to_pytorch.py", weights, "-o", there, code=3))
        beside.unlink()
        self.assertIn("embeddings.h5", self.run_script("to_pytorch.py", weights, "-o", there, code=3))

    def test_what_scores_are_trained_with(self):
        self.succeed("-q", "prepare", self.graph, "--split-links", "0.8,0.1,0.1", "-o", self.folder / "links.h5")
        self.graph = self.folder / "links.h5"
        self.config.write_text(job_text(self.graph, self.output, *JOB))
        weights, back, asked, answers = (self.output / "weights.h5", self.folder / "back.h5", self.folder / "asked.txt",
                                         [self.folder / "1.csv", self.folder / "2.csv"])
        asked.write_text("1,2\n5,9\n")
        for score, names in (("distmult", ["relations.weight"]), ("mlp", ["relations.weight", "0.weight", "0.bias", "2.weight", "2.bias"])):
            links = ("train.task=links", f"train.score={score}", "train.loss=sigmoid")
            self.succeed("-q", "train", self.config, *links, "--overwrite")
            state, there, _ = self.state(weights)
            self.assertEqual({name for name in state if name.startswith("score.")}, {f"score.{name}" for name in names})
            trained = arrays_of(weights, "weights")
            np.testing.assert_array_equal(state["score.relations.weight"], trained["task.relations"])
            if score == "mlp":
                np.testing.assert_array_equal(state["score.0.weight"], trained["task.hidden"].T)
                np.testing.assert_array_equal(state["score.2.weight"], trained["task.output"].T)
            both = (("--like", weights), ("--config", self.output / "config.toml"))
            for options in both if LONG else both[score == "mlp":][:1]:
                self.run_script("from_pytorch.py", there, *options, "-o", back)
                for checkpoint, answer in zip((weights, back), answers):
                    self.succeed("-q", "infer", self.config, *links, "--checkpoint", checkpoint, "--links", asked, "-o", answer, "--overwrite")
                self.assertEqual(answers[0].read_text(), answers[1].read_text())

    @needs_pyg
    def test_rgcnconv_of_pytorch_geometric_gives_the_same_logits(self):
        self.typed()
        self.compare(2, self.graph, "--espalier", PROGRAM, "--hidden", "8")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch here")
    def test_modules_of_torch_take_it(self):
        weights, logits = self.train("sage")
        there = self.folder / "state.pt"
        self.run_script("to_pytorch.py", weights, "-o", there)
        self.assertIn("All keys matched", run_python("-c", TORCH_MODULE, there).stdout)
        self.check_back(there, logits, "--like", weights)

    @needs_pyg
    def test_modules_of_pytorch_geometric_give_the_same_logits(self):
        others = read(self.graph, "nodes/features", "nodes/labels", "split/train", "split/valid", "split/test")
        write_graph(self.graph, [[u for u in row if u != v] for v, row in enumerate(self.rows)], *others)
        self.compare(6, self.graph, "--espalier", PROGRAM, "--hidden", "8", "--cases", "sage,sage-max,gcn,gat-averaged,gat-jumping,gin-batch")

    @needs_pyg
    def test_pytorch_geometric_gives_the_logits_and_gradients_of_relations(self):
        self.compare(4, "--relations")

    def test_old_names_of_attention(self):
        weights, logits = self.train("gat")
        state, there, _ = self.state(weights, "--old-names")
        self.assertNotIn("convs.0.lin.weight", state)
        self.check_back(there, logits, "--like", weights)
        state["convs.1.lin_dst.weight"] = state["convs.1.lin_dst.weight"] + 1
        np.savez(there, **state)
        said = self.run_script("from_pytorch.py", there, "--like", weights, "-o", self.folder / "back.h5", code=3)
        self.assertIn("lin_dst.weight differ", said)

    def test_what_no_tensor_says_is_told(self):
        weights, _ = self.train("gin-jumping")
        words = self.state(weights)[-1]
        for line in ('model.kind = "gin"', 'model.jumping = "max"', 'model.activation = "elu"',
                     "features are standardised first"):
            self.assertIn(line, words)

    def test_tensors_that_have_no_name_there(self):
        weights, output = self.folder / "weights.h5", self.folder / "x.npz"
        for tensors, words in (({"layer1.weight": (3, 2), "layer1.bias": (1, 2), "layer1.edge": (3, 2)},
                                "layer1 has tensors that PyTorch has no name for: ['edge']"),
                               ({"layer1.scale": (1, 2), "layer1.shift": (1, 2)}, "no name for: ['scale', 'shift']"),
                               ({"layer1.weight": (3, 2), "layer1.bias": (1, 2), "output.gate": (3, 2)}, "output has tensors"),
                               ({"embedding.weight": (3, 2)}, "embedding has tensors"), ({}, "has no weights")):
            with h5py.File(weights, "w", userblock_size=to_pytorch.BLOCK) as file:
                file.attrs["config"] = ""
                for name, shape in tensors.items():
                    file[f"weights/{name}"] = np.zeros(shape, dtype=np.float32)
            with open(weights, "r+b") as file:
                seal = to_pytorch.seal_of(file.read())
                file.seek(0)
                file.write(seal)
            self.assertIn(words, self.run_script("to_pytorch.py", weights, "-o", output, code=3))
        self.assertFalse(output.exists())

    def test_what_is_something_else(self):
        self.assertIn("is not a weights.h5", self.run_script("to_pytorch.py", self.graph, "-o", self.folder / "x.npz", code=3))
        self.run_script("to_pytorch.py", self.folder / "missing.h5", "-o", self.folder / "x.npz", code=3)
        state, config, output = self.folder / "state.npz", self.folder / "a.toml", self.folder / "x.h5"
        config.write_text("")
        good = {"convs.0.lin_l.weight": np.zeros((3, 2)), "convs.0.lin_l.bias": np.zeros(3), "convs.0.lin_r.weight": np.zeros((3, 2))}
        for change, words in (({"embedding.weight": np.zeros((1, 1))}, "no place for embedding.weight"),
                              ({"convs.0.att": np.zeros(3)}, "of no kind"), ({"convs.0.lin_l.bias": np.zeros((3, 1))}, "has shape [3, 1]"),
                              ({"convs.1.att_src": np.zeros((1, 1, 3)), "convs.1.att_dst": np.zeros((2, 1, 3)),
                                "convs.1.lin.weight": np.zeros((3, 3)), "convs.1.bias": np.zeros(3)},
                               "att_dst has shape [2, 1, 3]"),
                              ({"residuals.0.bias": np.zeros(3)}, "residuals.0.* is of no kind"),
                              ({"residuals.1.weight": np.zeros((3, 3))}, "no place for residuals.1.weight"),
                              ({"lin.weight": np.zeros((4, 3))}, "lin.* is of no kind")):
            np.savez(state, **(good | change))
            self.assertIn(words, self.run_script("from_pytorch.py", state, "--config", config, "-o", output, code=3))
        self.run_script("from_pytorch.py", state, "-o", output, code=2)
        self.assertFalse(output.exists())

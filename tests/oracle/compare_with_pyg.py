#!/usr/bin/env python3
"""Compares logits of `espalier infer` with those of PyTorch Geometric's own convolutions.

    tests/oracle/compare_with_pyg.py data/cora.h5 data/debian.h5 [--cases gat,gin]
    tests/oracle/compare_with_pyg.py --relations

For each graph and case it trains two epochs, turns weights.h5 into a state dict by scripts/to_pytorch.py,
which a network of SAGEConv, GCNConv, GATConv or GINConv loads strictly, and compares the logits of all
vertices: full graph, evaluation mode. A graph with types has the cases rgcn*, of RGCNConv, others have
the others. One line per case:

    GRAPH CASE DIFFERENCE SCALED LOGIT

the largest difference, the largest when each is divided by its vertex's largest logit where that is over 1,
and the largest logit.

Laws: SCALED is at most 1e-4. (Sums over the thousands of neighbours of a hub give logits of thousands, where
1e-4 is less than float32 can tell.) Most vertices' logits are different: a dead network shows nothing.
The graph should have no edge from a vertex to itself: GCNConv counts it once, the program (A + I) twice.

With --relations it compares RGCNConv (num_bases), for rgat a GATConv for each relation, and HGTConv, instead with every case of layers.json that has relations, which
tests/nn/layer_oracle_test.cpp holds the program to, in float64 within 1e-11: the same blocks, input and weights, logits
and gradients by weights and input. One line per case: largest difference in float64, at most 1e-10, and in float32, at
most 1e-5, both divided by the largest of the tensor where that is over 1.

Needs torch, torch_geometric (2.5 or newer), h5py, numpy; without them it says so and ends with 77. Exit codes
else: 0, 1 a larger difference, 2 usage.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

try:
    import h5py
    import numpy as np
    import torch
    from torch import nn
    from torch_geometric.nn import (BatchNorm, GATConv, GCNConv, GINConv, HGTConv, JumpingKnowledge, LayerNorm, RGCNConv,
                                    SAGEConv)
    from torch_geometric.nn.resolver import activation_resolver
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from to_pytorch import activation_of, config_of, standardization  # noqa: E402

TOLERANCE = 1e-4
JOB = """
graph.file = "{graph}"
graph.feature_norm = "{norm}"
sampler.fanout = {fanout}
sampler.batch_size = 32
model.hidden = {hidden}
model.layers = {layers}
train.epochs = 2
train.learning_rate = 0.002
run.threads = 1
output.dir = "{out}"
"""
CASES = {
    "sage": ("model.kind=sage", "model.normalize=batch"),
    "sage-max": ("model.kind=sage", "model.aggregator=max", "model.jumping=concat", "model.activation=elu",
                 "model.normalize=layer"),
    "sage-sum": ("model.kind=sage", "model.aggregator=sum", "model.residual=true", "graph.feature_norm=row"),
    "gcn": ("model.kind=gcn",),
    "gcn-jumping": ("model.kind=gcn", "model.layers=3", "model.jumping=max", "model.residual=true",
                    "model.normalize=layer"),
    "gat": ("model.kind=gat", "model.heads=4", "model.output_heads=1"),
    "gat-averaged": ("model.kind=gat", "model.heads=4", "model.output_heads=3", "model.residual=true",
                     "model.normalize=batch"),
    "gat-jumping": ("model.kind=gat", "model.layers=3", "model.heads=2", "model.jumping=concat",
                    "model.residual=true"),
    "gin": ("model.kind=gin",),
    "gin-batch": ("model.kind=gin", "model.normalize=batch", "model.residual=true"),
    "gin-jumping": ("model.kind=gin", "model.normalize=layer", "model.jumping=max"),
    "rgcn": ("model.kind=rgcn", "model.bases=3"),
    "rgcn-jumping": ("model.kind=rgcn", "model.bases=2", "model.layers=3", "model.jumping=concat",
                     "model.residual=true", "model.normalize=batch"),
}


def is_typed(graph):
    with h5py.File(graph) as file:
        return "relations" in file


def convolution(model, inputs, outputs, is_last, relations):
    """PyTorch Geometric's own module of a layer."""
    kind = model["kind"]
    if kind == "rgcn":
        return RGCNConv(inputs, outputs, relations, num_bases=model["bases"])
    if kind == "sage":
        return SAGEConv(inputs, outputs, aggr=model["aggregator"])
    if kind == "gcn":
        return GCNConv(inputs, outputs)
    if kind == "gin":
        inner = nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs))
        return GINConv(inner, train_eps=True)
    if is_last:
        return GATConv(inputs, outputs, heads=model["output_heads"], concat=False)
    return GATConv(inputs, outputs // model["heads"], heads=model["heads"])


def normalization(name, width):
    if name == "none":
        return nn.Identity()
    return BatchNorm(width) if name == "batch" else LayerNorm(width, mode="node")


class Network(nn.Module):
    """The network that model.* of a config describe."""

    def __init__(self, model, graph, classes):
        super().__init__()
        inputs = model["hidden"] if graph.is_typed else graph.features
        if graph.is_typed:
            self.inputs = nn.ModuleDict({name: nn.Linear(len(x[0]), inputs) for name, x in graph.pieces if len(x[0])})
            self.vectors = nn.ParameterDict({name: nn.Parameter(torch.empty(inputs))
                                             for name, x in graph.pieces if not len(x[0])})
        hidden, layers, jumping = model["hidden"], model["layers"], model["jumping"]
        self.jumps = jumping != "none"
        widths = [inputs] + [hidden] * (layers - 1) + [hidden if self.jumps else classes]
        steps = list(zip(widths[:-1], widths[1:]))
        active = layers if self.jumps else layers - 1  # layers with normalisation and activation
        self.convs = nn.ModuleList(convolution(model, *step, number == active, graph.relations)
                                   for number, step in enumerate(steps))
        self.norms = nn.ModuleList(normalization(model["normalize"], hidden) for _ in range(active))
        self.residuals = nn.ModuleList(nn.Linear(*step, bias=False) if step[0] != step[1] else nn.Identity()
                                       for step in steps * model["residual"])
        self.activation = activation_resolver(activation_of(model))
        if self.jumps:
            self.jk = JumpingKnowledge({"concat": "cat"}.get(jumping, jumping))
            self.lin = nn.Linear(hidden * (layers if jumping == "concat" else 1), classes)

    def begin(self, graph):
        """H[0]."""
        if not graph.is_typed:
            return graph.pieces[0][1].float()
        return torch.cat([self.inputs[name](x.float()) if name in self.inputs else self.vectors[name].expand(len(x), -1)
                          for name, x in graph.pieces])

    def forward(self, graph):
        x, results = self.begin(graph), []
        for number, conv in enumerate(self.convs):
            z = conv(x, *graph.edges)
            if self.residuals:
                z = z + self.residuals[number](x)
            x = self.activation(self.norms[number](z)) if number < len(self.norms) else z
            results.append(x)
        return self.lin(self.jk(results)) if self.jumps else x


def features_of(x, weights):
    """As the network reads them, float64 [n, f]."""
    x = x.astype(np.float64)
    if config_of(weights)["graph"]["feature_norm"] == "row":
        sums = np.abs(x).sum(1, keepdims=True)
        x /= np.where(sums == 0, 1, sums)
    if standardization(weights) is not None:
        mean, deviation = standardization(weights)
        x = (x - mean) / deviation
    return torch.from_numpy(x)


class Graph:
    """pieces: (type, features) in the order of ids, of width 0 for a type without; edges: [2, m] source and target,
    with types also the relation of each."""

    def __init__(self, path, weights):
        self.is_typed = is_typed(path)
        with h5py.File(path) as file:
            sources, degrees = file["graph/indices"][:].astype(np.int64), np.diff(file["graph/indptr"][:])
            edges = torch.from_numpy(np.stack([sources, np.repeat(np.arange(len(degrees)), degrees)]))
            if not self.is_typed:
                self.pieces, self.edges, self.relations = [("", features_of(file["nodes/features"][:], weights))], [edges], 1
                self.features = self.pieces[0][1].shape[1]
                return
            runs = np.diff(np.append(file["graph/segment_begin"][:], len(sources)))
            relation = np.repeat(file["graph/segment_relation"][:].astype(np.int64), runs)
            self.edges, self.relations = [edges, torch.from_numpy(relation)], len(file["relations/name"])
            offset, names = file["types/offset"][:], [name.decode() for name in file["types/name"]]
            self.pieces = [(name, features_of(file[f"nodes/{name}/features"][:], weights)
                            if f"nodes/{name}/features" in file else torch.empty(last - first, 0))
                           for name, first, last in zip(names, offset, offset[1:])]


def logits_of(state, graph, weights, classes):
    """The logits of PyTorch Geometric, computed in float32, as float64 [n, classes]."""
    graph = Graph(graph, weights)
    network = Network(config_of(weights)["model"], graph, classes)
    network.load_state_dict(torch.load(state), strict=True)
    with torch.no_grad():
        return network.eval()(graph).double().numpy()


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")


def train(options, graph, case, folder):
    """(weights.h5, state dict, logits of `infer`) of two epochs."""
    job, out, state, rows = (folder / name for name in ("job.toml", "out", "state.pt", "rows.h5"))
    layers = 3 if "model.layers=3" in CASES[case] else 2
    job.write_text(JOB.format(graph=graph, out=out, norm=options.feature_norm, hidden=options.hidden,
                              layers=layers, fanout=[5] * layers))
    weights = out / "weights.h5"
    run(options.espalier, "-q", "train", job, *CASES[case])
    run(options.espalier, "-q", "infer", out / "config.toml", "--checkpoint", weights, "-o", rows,
        *(("--types", "all") if is_typed(graph) else ()))
    run(sys.executable, ROOT / "scripts/to_pytorch.py", weights, "-o", state)
    with h5py.File(rows) as file:
        return weights, state, rows_of(file).astype(np.float64)


def rows_of(file):
    """The logits of all vertices, in the order of the graph's."""
    if "types" not in file:
        return file["logits"][:]
    return np.concatenate([file[f"types/{name}/logits"][:] for name in file.attrs["types"].decode().split(",")])


def problem_of(ours, scaled):
    """What is wrong, or nothing."""
    if not scaled <= TOLERANCE:  # NaN is none
        return "LARGER THAN ALLOWED"
    return "DEAD: most vertices have the same logits" if 2 * len(np.unique(ours, axis=0)) < len(ours) else ""


def compare(options, graph, case):
    """Is it within the tolerance? Prints the line."""
    with tempfile.TemporaryDirectory(prefix="espalier-pyg-") as folder:
        weights, state, ours = train(options, graph, case, pathlib.Path(folder))
        theirs = logits_of(state, graph, weights, ours.shape[1])
    differences, largest = np.abs(ours - theirs), np.abs(theirs).max(1, keepdims=True)
    scaled = (differences / np.maximum(1, largest)).max()
    problem = problem_of(ours, scaled)
    print(f"{graph.stem:<10} {case:<14} {differences.max():.1e} {scaled:.1e} {largest.max():9.3g}  {problem}",
          flush=True)
    return not problem


# ---- relations

def tensor_of(matrix, dtype):
    return torch.tensor(matrix["data"], dtype=dtype).reshape(matrix["rows"], matrix["columns"]).requires_grad_()


class Relations:
    """A case of layers.json by PyG's modules; `tensors` and `input` have gradients afterwards."""

    def __init__(self, case, dtype):
        self.case, self.shape = case, case["shape"]
        self.input = tensor_of(case["input"], dtype)
        self.tensors = {name: tensor_of(matrix, dtype) for name, matrix in case["parameters"].items()}
        self.logits = self.forward()
        labels = torch.tensor(case["labels"])
        nn.functional.cross_entropy(self.logits, labels, reduction="sum").backward()

    def rgcn(self, own, x, rows, edges, relations):
        inputs, outputs = own["self"].shape
        conv = RGCNConv((inputs, inputs), outputs, self.shape["relations"], num_bases=self.shape["bases"])
        for parameter in ("weight", "comp", "root", "bias"):
            delattr(conv, parameter)
        conv.weight, conv.comp = own["basis"].reshape(-1, inputs, outputs), own["coefficient"]
        conv.root, conv.bias = own["self"], own["bias"][0]
        return conv((x, x[:rows]), edges, relations)

    def rgat(self, own, x, rows, edges, relations):
        inputs, outputs = own["self"].shape
        heads, width = len(own["source"]) // self.shape["relations"], own["source"].shape[1]
        z = x[:rows] @ own["self"] + own["bias"]
        for relation in range(self.shape["relations"]):
            def part(name):
                return own[name].reshape(self.shape["relations"], heads, -1, width)[relation]
            conv = GATConv(inputs, width, heads, concat=heads * width == outputs, add_self_loops=False, bias=False)
            for module, parameter in ((conv, "att_src"), (conv, "att_dst"), (conv.lin, "weight")):
                delattr(module, parameter)
            conv.lin.weight = part("weight").transpose(1, 2).reshape(heads * width, inputs)
            conv.att_src, conv.att_dst = part("source").reshape(1, heads, width), part("target").reshape(1, heads, width)
            z = z + conv((x, x[:rows]), edges[:, relations == relation])
        return z

    def hgt(self, own, x, rows, edges, relations):
        """HGTConv knows no block: it is given all columns as destinations, and all pairs of types as relations."""
        kinds = torch.tensor(self.case["blocks"][0].get("types"))[:len(x)]
        types, count = len(own["key_bias"]), self.shape["relations"]
        inputs, (_, outputs), width = x.shape[1], own["bias"].shape, own["key_bias"].shape[1]
        heads = own["prior"].shape[1]
        triples = [(f"t{s}", f"r{r}", f"t{t}") for r in range(count) for s in range(types) for t in range(types)]
        names = [f"t{t}" for t in range(types)]
        conv = HGTConv({name: inputs for name in names}, width, (names, triples), heads).to(x.dtype)
        maps = [own[name].reshape(types, inputs, width) for name in ("key", "query", "value")]
        biases = [own[f"{name}_bias"] for name in ("key", "query", "value")]

        def set_parameter(module, name, value):
            delattr(module, name)
            setattr(module, name, value)
        for t, name in enumerate(names):
            lin = conv.kqv_lin.lins[name]
            set_parameter(lin, "weight", torch.cat([each[t] for each in maps], 1).T)
            set_parameter(lin, "bias", torch.cat([each[t] for each in biases]))
            if inputs == outputs:
                out = conv.out_lin.lins[name]
                set_parameter(out, "weight", own["output"].reshape(types, width, outputs)[t].T)
                set_parameter(out, "bias", own["output_bias"][t])
        # HGTConv's output is `width` wide; where that is no layer's width only what is summed is taken of it.
        mapped = {}
        for name in names:
            conv.out_lin.lins[name].register_forward_hook(
                lambda module, given, result, name=name: mapped.__setitem__(name, given[0]))
        head = width // heads
        for name, tensor in (("k_rel", own["attention"]), ("v_rel", own["message"])):
            of_parts = tensor.reshape(count, heads, head, head).repeat_interleave(types * types, 0)
            set_parameter(getattr(conv, name), "weight", of_parts.transpose(0, 1).reshape(-1, head, head))
        set_parameter(conv, "p_rel", {triple: own["prior"][number // types**2].reshape(1, heads)
                                      for number, triple in enumerate(triples)})
        if inputs == outputs:
            set_parameter(conv, "skip", {name: own["skip"][t] for t, name in enumerate(names)})
        places = [torch.nonzero(kinds == t)[:, 0] for t in range(types)]
        number_of = torch.empty(len(x), dtype=torch.long)
        for of_type in places:
            number_of[of_type] = torch.arange(len(of_type))
        joined = {}
        for r, (s, t) in ((r, st) for r in range(count) for st in np.ndindex(types, types)):
            chosen = (relations == r) & (kinds[edges[0]] == s) & (kinds[edges[1]] == t)
            joined[(f"t{s}", f"r{r}", f"t{t}")] = number_of[edges[:, chosen]]
        given = conv({name: x[place] for name, place in zip(names, places)}, joined)
        z = torch.zeros((len(x), outputs), dtype=x.dtype)
        for t, (name, place) in enumerate(zip(names, places)):
            if inputs == outputs and width == outputs:
                z = z.index_copy(0, place, given[name])
            else:
                weight = own["output"].reshape(types, width, outputs)[t]
                z = z.index_copy(0, place, mapped[name] @ weight + own["output_bias"][t])
        return z[:rows] + own["bias"]

    def convolution(self, layer, block, x):
        prefix = f"layer{layer}."
        own = {name.removeprefix(prefix): tensor for name, tensor in self.tensors.items() if name.startswith(prefix)}
        rows = np.repeat(np.arange(block["rows"]), np.diff(block["indptr"]))
        edges = torch.tensor(np.stack([block["indices"], rows]).astype(np.int64))
        return getattr(self, self.shape["kind"])(own, x, block["rows"], edges, torch.tensor(block["relations"]))

    def begin(self):
        """H[0]."""
        pieces = []
        for begin, end, kind in self.case.get("runs", ()):
            name, has_features = self.shape["types"][kind]
            bias = self.tensors[f"input.bias.{name}"].expand(end - begin, -1)
            rows = self.input[begin:end]
            pieces.append(rows @ self.tensors[f"input.weight.{name}"] + bias if has_features else bias)
        return torch.cat(pieces) if pieces else self.input

    def forward(self):
        x, results, shape = self.begin(), [], self.shape
        activation = activation_resolver(shape["activation"])
        active = len(self.case["blocks"]) - (shape["jumping"] == "none")
        for layer, block in enumerate(self.case["blocks"], 1):
            z = self.convolution(layer, block, x)
            if shape["residual"]:
                own, residual = x[:block["rows"]], self.tensors.get(f"layer{layer}.residual")
                z = z + (own if residual is None else own @ residual)
            if shape["normalize"] == "batch" and layer <= active:
                scale, shift = self.tensors[f"layer{layer}.scale"][0], self.tensors[f"layer{layer}.shift"][0]
                z = nn.functional.batch_norm(z, None, None, scale, shift, training=True)
            elif shape["normalize"] == "layer" and layer <= active:
                scale, shift = self.tensors[f"layer{layer}.scale"][0], self.tensors[f"layer{layer}.shift"][0]
                z = nn.functional.layer_norm(z, z.shape[1:], scale, shift)
            x = activation(z) if layer <= active else z
            results.append(x)
        if shape["jumping"] == "none":
            return x
        joined = JumpingKnowledge("cat")([result[:len(x)] for result in results])
        return joined @ self.tensors["output.weight"] + self.tensors["output.bias"]

    def difference(self):
        """From the fixture: logits and all gradients."""
        pairs = [(self.logits, self.case["logits"]), (self.input.grad, self.case["input_gradient"])]
        pairs += [(tensor.grad, self.case["gradients"][name]) for name, tensor in self.tensors.items()]
        largest = 0
        for theirs, ours in pairs:
            expected = tensor_of(ours, torch.float64).detach()
            scale = max(1, expected.abs().max().item())
            largest = max(largest, (theirs.detach().double() - expected).abs().max().item() / scale)
        return largest


def compare_relations():
    """Are all within the tolerances? Prints their lines."""
    cases = json.loads((ROOT / "tests/oracle/layers.json").read_text())
    within = []
    for case in (case for case in cases if "relations" in case["shape"]):
        differences = [Relations(case, dtype).difference() for dtype in (torch.float64, torch.float32)]
        within.append(differences[0] <= 1e-10 and differences[1] <= 1e-5)  # NaN is neither
        shape = case["shape"]
        words = " ".join(f"{key} {shape[key]}" for key in ("layers", "relations", "bases", "heads") if shape.get(key, 1) > 1)
        problem = "" if within[-1] else "LARGER THAN ALLOWED"
        print(f"{shape['kind']} {words:<32} {differences[0]:.1e} {differences[1]:.1e}  {problem}")
    return bool(within) and all(within)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", type=pathlib.Path, help="graph files")
    parser.add_argument("--cases", type=lambda names: names.split(","), default=list(CASES),
                        help="some of them, with commas between")
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--feature-norm", default="standard", help="graph.feature_norm of the trainings")
    parser.add_argument("--espalier", type=pathlib.Path, default=ROOT / "build/cpu/espalier",
                        help="the program")
    parser.add_argument("--relations", action="store_true", help="the cases of layers.json that have relations")
    options = parser.parse_args()
    if options.relations:
        sys.exit(0 if compare_relations() else 1)
    if not options.graphs:
        parser.error("graph files, or --relations")
    if set(options.cases) - set(CASES):
        parser.error(f"--cases are of {', '.join(CASES)}")
    for place in (*options.graphs, options.espalier):
        if not place.exists():
            parser.error(f"{place} is not there")
    within = [compare(options, graph.resolve(), case) for graph in options.graphs for case in options.cases
              if case.startswith("rgcn") == is_typed(graph)]
    sys.exit(0 if all(within) else 1)


if __name__ == "__main__":
    main()

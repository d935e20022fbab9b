#!/usr/bin/env python3
"""A training epoch of R-GCN on a graph with types beside DGL's and PyG's: sampling, fetching, forward, loss, backward, Adam.

    build/peers/venv/bin/python bench/peers/rgcn_epoch.py data/debian_typed.h5 [--program build/cpu/espalier] [--threads 2]

The network of inputs/debian_typed.toml: a map of its own for the features of each type, a vector for a type without, two layers
of W_self h + the sum over relations of W_r mean(h) with 8 bases, layer normalisation, ReLU and dropout between them, label
smoothing, float32; fanout 15,10 of each relation, batch 1024, a batch per step. DGL draws by its NeighborSampler on a
heterograph, a fanout for each relation, and computes by HeteroGraphConv of GraphConv (norm "right") with matrices made of bases, as
its own R-GCN example does. PyG computes by RGCNConv on blocks that DGL drew: its own loaders of typed graphs need pyg-lib or
torch-sparse, and their time would stand in place of DGL's. (FastRGCNConv gathers a matrix for each edge: at this size 10 GB.)

Checked first: with equal weights and without dropout DGL's and PyG's logits agree. Then: all train on the same vertices, edges per
epoch are as many within a hundredth, and each loss falls. Rounds alternate between the three, after one warm-up each;
seconds are medians over rounds. CPU seconds of an epoch, of all threads, stand beside: for Espalier the difference between runs
of two epochs and of one. On a machine that does other work too they are the fairer figure, with OMP_WAIT_POLICY=passive.

Exit codes: 0 done, 1 something was wrong or failed, 2 usage, 77 a peer or h5py is missing.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

try:
    import dgl
    import h5py
    import torch
    from dgl.nn import GraphConv, HeteroGraphConv
    from torch_geometric.nn import RGCNConv
except ImportError as missing:
    print(f"missing: {missing}")
    sys.exit(77)

BASES, HIDDEN, FANOUT, BATCH, DROPOUT, SMOOTHING, RATE = 8, 128, [15, 10], 1024, 0.6, 0.1, 0.004


class TypedGraph:
    """The file as a DGL heterograph, the standardised features by type, labels and training vertices of the target."""

    def __init__(self, path):
        with h5py.File(path) as file:
            self.types = [name.decode() for name in file["types/name"]]
            self.target = next(name for name in self.types if f"split/{name}/train" in file)
            self.labels = torch.from_numpy(file[f"nodes/{self.target}/labels"][:].astype(np.int64))
            self.train = torch.from_numpy(file[f"split/{self.target}/train"][:])
            self.features = {name: torch.from_numpy(standardised(file[f"nodes/{name}/features"][:]))
                             for name in self.types if f"nodes/{name}/features" in file}
            offset, indptr, indices = (file[name][:].astype(np.int64) for name in ("types/offset", "graph/indptr", "graph/indices"))
            runs = np.diff(np.append(file["graph/segment_begin"][:], len(indices)))
            relation = np.repeat(file["graph/segment_relation"][:].astype(np.int64), runs)
            ends = [[self.types[k] for k in file[f"relations/{end}"]] for end in ("source", "target")]
            names = [name.decode() for name in file["relations/name"]]
        if len(set(names)) < len(names):
            sys.exit(f"{path}: two relations of one name")
        self.relations = list(zip(ends[0], names, ends[1]))
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        first = dict(zip(self.types, offset))
        edges = {(source, name, target): (torch.from_numpy(indices[relation == r] - first[source]),
                                          torch.from_numpy(rows[relation == r] - first[target]))
                 for r, (source, name, target) in enumerate(self.relations)}
        self.graph = dgl.heterograph(edges, dict(zip(self.types, np.diff(offset).tolist())))
        self.graph.create_formats_()

    def batches(self):
        sampler = dgl.dataloading.NeighborSampler(FANOUT[::-1])
        return dgl.dataloading.DataLoader(self.graph, {self.target: self.train}, sampler, batch_size=BATCH, shuffle=True)


def standardised(features):
    features = features.astype(np.float64)
    deviation = features.std(axis=0)
    return ((features - features.mean(axis=0)) / np.where(deviation > 0, deviation, 1)).astype(np.float32)


# ---- The network -----------------------------------------------------------------------------------------------------


class DglLayer(torch.nn.Module):
    def __init__(self, graph, inputs, outputs):
        super().__init__()
        self.names = [name for _, name, _ in graph.relations]
        self.convolution = HeteroGraphConv({name: GraphConv(inputs, outputs, norm="right", weight=False, bias=False,
                                                            allow_zero_in_degree=True) for name in self.names}, aggregate="sum")
        self.weight = torch.nn.Parameter(torch.empty(BASES, inputs, outputs))
        self.comp = torch.nn.Parameter(torch.empty(len(self.names), BASES))
        self.root = torch.nn.Parameter(torch.empty(inputs, outputs))
        self.bias = torch.nn.Parameter(torch.empty(outputs))

    def forward(self, block, h):
        matrices = torch.einsum("rb,bio->rio", self.comp, self.weight)
        own = {name: values[: block.num_dst_nodes(name)] for name, values in h.items()}
        z = self.convolution(block, (h, own), mod_kwargs={name: {"weight": matrices[r]} for r, name in enumerate(self.names)})
        return {name: values @ self.root + self.bias + (z[name] if name in z else 0)
                for name, values in own.items() if len(values)}


class PygLayer(torch.nn.Module):
    def __init__(self, graph, inputs, outputs):
        super().__init__()
        self.graph = graph
        self.convolution = RGCNConv((inputs, inputs), outputs, len(graph.relations), num_bases=BASES)
        self.weight, self.comp = self.convolution.weight, self.convolution.comp
        self.root, self.bias = self.convolution.root, self.convolution.bias

    def forward(self, block, h):
        """Types below one another; of the rows those that the block computes."""
        types = self.graph.types
        rows = [block.num_dst_nodes(name) for name in types]
        from_source = dict(zip(types, np.cumsum([0] + [len(h[name]) for name in types])))
        from_row = dict(zip(types, np.cumsum([0] + rows)))
        edges, kinds = [], []
        for r, (source, name, target) in enumerate(self.graph.relations):
            if block.num_edges(name):
                sources, destinations = block.edges(etype=name)
                edges.append(torch.stack([sources + from_source[source], destinations + from_row[target]]))
                kinds.append(torch.full((len(sources),), r))
        x = torch.cat([h[name] for name in types]), torch.cat([h[name][:count] for name, count in zip(types, rows)])
        z = self.convolution(x, torch.cat(edges, 1), torch.cat(kinds))
        return {name: part for name, part in zip(types, z.split(rows)) if len(part)}


class Network(torch.nn.Module):
    def __init__(self, layer, graph):
        super().__init__()
        self.graph = graph
        self.inputs = torch.nn.ModuleDict({name: torch.nn.Linear(x.shape[1], HIDDEN) for name, x in graph.features.items()})
        self.vectors = torch.nn.ParameterDict({name: torch.nn.Parameter(torch.empty(HIDDEN))
                                               for name in graph.types if name not in graph.features})
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.layers = torch.nn.ModuleList([layer(graph, HIDDEN, HIDDEN), layer(graph, HIDDEN, int(graph.labels.max()) + 1)])
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.xavier_uniform_(parameter)

    def begin(self, ids):
        """H[0]: what a layer reads of each type, of no vertices too."""
        return {name: self.inputs[name](self.graph.features[name][ids[name]]) if name in self.inputs
                else self.vectors[name].expand(len(ids[name]), -1) for name in self.graph.types}

    def forward(self, ids, blocks):
        h = self.begin(ids)
        h = {name: torch.nn.functional.dropout(self.norm(z).relu(), DROPOUT, self.training)
             for name, z in self.layers[0](blocks[0], h).items()}
        empty = torch.empty(0, HIDDEN)
        return self.layers[1](blocks[1], {name: h.get(name, empty) for name in self.graph.types})[self.graph.target]


def same_weights(one, other):
    other.load_state_dict({name.replace(".convolution", ""): value for name, value in one.state_dict().items()}, strict=False)
    for ours, theirs in zip(one.layers, other.layers):
        for name in ("weight", "comp", "root", "bias"):
            getattr(theirs, name).data.copy_(getattr(ours, name).data)


# ---- Epochs ----------------------------------------------------------------------------------------------------------


class Peer:
    def __init__(self, network, graph):
        self.network, self.graph = network, graph
        self.optimizer = torch.optim.Adam(network.train().parameters(), lr=RATE)
        self.losses, self.edges, self.seconds, self.drawing, self.cpu = [], [], [], [], []

    def epoch(self):
        cpu = time.process_time()
        begin, edges, vertices, loss_sum, drawing = time.perf_counter(), 0, 0, 0.0, 0.0
        drawn = begin
        for ids, seeds, blocks in self.graph.batches():
            drawing += time.perf_counter() - drawn
            self.optimizer.zero_grad()
            labels = self.graph.labels[seeds[self.graph.target]]
            loss = torch.nn.functional.cross_entropy(self.network(ids, blocks), labels, label_smoothing=SMOOTHING)
            loss.backward()
            self.optimizer.step()
            edges += sum(block.num_edges(name) for block in blocks for name in block.etypes)
            vertices += len(labels)
            loss_sum += float(loss.detach()) * len(labels)
            drawn = time.perf_counter()
        self.seconds.append(drawn - begin)
        self.cpu.append(time.process_time() - cpu)
        self.drawing.append(drawing)
        self.edges.append(edges)
        self.losses.append(loss_sum / vertices)
        return vertices


class Espalier:
    """Each epoch is the second of a run of its own seed, after a warm-up."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.losses, self.edges, self.seconds, self.drawing, self.cpu = [], [], [], [], []

    def run(self, epochs):
        """(report.json, CPU seconds) of a run of so many epochs."""
        options, before = self.options, cpu_of_children()
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_pml="ob1",
                           OMPI_MCA_btl="self,vader", OMPI_MCA_ess_singleton_isolated="1")
        environment.pop("OMP_NUM_THREADS", None)
        subprocess.run([options.program, "-q", "train", options.config, f"graph.file={options.graph}", "model.kind=rgcn",
                        f"model.bases={BASES}", f"model.hidden={HIDDEN}", "model.layers=2", f"model.dropout={DROPOUT}",
                        "model.normalize=layer", f"sampler.fanout={FANOUT}", f"sampler.batch_size={BATCH}",
                        "train.batches_per_step=1", f"train.epochs={epochs}", "train.eval_every=0", f"train.learning_rate={RATE}",
                        "train.lr_schedule=constant", f"train.label_smoothing={SMOOTHING}", f"train.seed={len(self.seconds)}",
                        f"run.threads={options.threads}", "run.restart=never", "--overwrite", f"output.dir={self.folder}"],
                       check=True, env=environment)
        return json.loads((pathlib.Path(self.folder) / "report.json").read_text()), cpu_of_children() - before

    def epoch(self):
        (_, cpu_of_one), (report, cpu_of_two) = self.run(1), self.run(2)
        first, second = report["epochs"]
        self.cpu.append(cpu_of_two - cpu_of_one)
        self.losses += [first["loss"], second["loss"]]
        self.edges.append(second["sampled_edges"])
        self.seconds.append(second["seconds"]["total"] - second["seconds"].get("evaluate", 0))
        self.drawing.append(second["seconds"]["sample"])
        return report["config"]["sampler"]["batch_size"], second["batches"]


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def logits_difference(networks, graph):
    ids, _, blocks = next(iter(graph.batches()))
    with torch.no_grad():
        one, two = (network.eval()(ids, blocks) for network in networks)
    return float((one - two).abs().max() / one.abs().max())


def problems(runs, graph, batches):
    """What is wrong, a line each."""
    if batches != (BATCH, -(-len(graph.train) // BATCH)):
        yield f"Espalier trains on {batches[1]} batches of {batches[0]}"
    most = max(statistics.median(run.edges) for run in runs.values())
    for name, run in runs.items():
        if statistics.median(run.edges) < 0.99 * most:
            yield f"{name} draws {statistics.median(run.edges):.0f} edges per epoch, another {most:.0f}"
        if not run.losses[-1] < run.losses[0]:
            yield f"{name}: the loss does not fall: {run.losses}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("--config", default="inputs/debian_typed.toml")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    graph = TypedGraph(options.graph)
    networks = [Network(layer, graph) for layer in (DglLayer, PygLayer)]
    for network in networks:
        for parameter in [*network.vectors.values()] + [layer.bias for layer in network.layers]:
            torch.nn.init.zeros_(parameter)
    same_weights(*networks)
    wrong = logits_difference(networks, graph)
    print(f"largest difference of the peers' logits: {wrong:.1e}", flush=True)
    if not wrong < 1e-4:
        return 1

    with tempfile.TemporaryDirectory() as folder:
        runs = {"Espalier": Espalier(options, folder), "DGL": Peer(networks[0], graph), "PyG": Peer(networks[1], graph)}
        for name in ("DGL", "PyG"):  # warm-up; the losses stay
            if runs[name].epoch() != len(graph.train):
                sys.exit(f"{name} leaves out training vertices")
            for measured in (runs[name].seconds, runs[name].drawing, runs[name].cpu):
                measured.clear()
        for _ in range(options.rounds):
            batches = runs["Espalier"].epoch()
            for name in ("DGL", "PyG"):
                runs[name].epoch()
            print("  ".join(f"{name} {run.seconds[-1]:.2f} s, {run.cpu[-1]:.2f} of CPUs" for name, run in runs.items()), flush=True)
    ours, ours_cpu = statistics.median(runs["Espalier"].seconds), statistics.median(runs["Espalier"].cpu)
    print(f"{len(graph.train)} training vertices, {options.threads} threads, medians of {options.rounds} epochs")
    print(f"{'':<10}{'s/epoch':>9}  {'':<18}{'sampling':>9}{'M edges':>9}{'x':>7}{'CPU s':>8}{'x':>7}   loss of epochs 1 and {options.rounds + 1}")
    for name, run in runs.items():
        median, spread = statistics.median(run.seconds), f"({min(run.seconds):.2f} .. {max(run.seconds):.2f})"
        last = run.losses[1] if name == "Espalier" else run.losses[-1]
        print(f"{name:<10}{median:9.2f}  {spread:<18}{statistics.median(run.drawing):9.2f}{statistics.median(run.edges) / 1e6:9.2f}"
              f"{median / ours:7.2f}{statistics.median(run.cpu):8.2f}{statistics.median(run.cpu) / ours_cpu:7.2f}   {run.losses[0]:.3f} {last:.3f}" + (" (of epoch 2)" if name == "Espalier" else ""))
    found = list(problems(runs, graph, batches))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

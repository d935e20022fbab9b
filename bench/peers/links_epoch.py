#!/usr/bin/env python3
"""Links of a graph without types beside DGL's and PyG's loaders of links: seconds of an epoch, and the MRR of what was learnt.

    build/peers/venv/bin/python bench/peers/links_epoch.py data/debian_pairs.h5 [--program build/cpu/espalier] [--threads 2] [--epochs 10]

The file is one of `espalier prepare --split-links`. Everyone trains the same network: two layers of GraphSAGE with means, layer
normalisation and ReLU between them, 128 wide, scores of DistMult, one uniform negative tail for each link, -log sigmoid of both,
Adam with a cosine from 0.005, batches of 1,024 links, fanout 10 and then 5, float32, one process. An epoch is sampling, fetching
rows, forward, loss, backward and the optimiser's step, evaluation apart; seconds are the median of all epochs but the first, also
of what minibatches and their rows take of it.
MRR: each test link's tail among 100 other vertices, all different, by the mean rank, of exact rows of the weights after the last
epoch.

DGL draws by as_edge_prediction_sampler of a NeighborSampler, which leaves the batch's links and their reverses out of the graph
before the draw (exclude="reverse_id"); PyG by LinkNeighborLoader (by torch-sparse or pyg-lib), which does not leave them out. A peer that is not
there is named and left out.

Exit codes: 0 done, 1 something failed, 2 usage, 77 PyTorch or h5py is missing, or both peers.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

try:
    import h5py
    import torch
    from link_heuristics import others
    from torch.nn import functional
except ImportError as missing:
    print(f"missing: {missing}")
    sys.exit(77)

warnings.filterwarnings("ignore")
HIDDEN, FANOUT, BATCH, RATE, CANDIDATES = 128, [10, 5], 1024, 0.005, 100


class Links:
    def __init__(self, path):
        with h5py.File(path) as file:
            indptr, self.sources = file["graph/indptr"][:], torch.from_numpy(file["graph/indices"][:].astype(np.int64))
            self.n = len(indptr) - 1
            self.targets = torch.from_numpy(np.repeat(np.arange(self.n), np.diff(indptr)))
            x = file["nodes/features"][:].astype(np.float64)
            deviation = x.std(0)
            self.x = torch.from_numpy(((x - x.mean(0)) / np.where(deviation > 0, deviation, 1)).astype(np.float32))
            self.train, self.test = (torch.from_numpy(np.stack([file[f"links/{split}/{end}"][:] for end in ("head", "tail")]))
                                     for split in ("train", "test"))
        count = self.test.shape[1]
        self.candidates = torch.from_numpy(others(np.random.default_rng(0), np.zeros(count, np.int64), np.full(count, self.n), self.test[1].numpy(),
                                                  CANDIDATES))


class Sage(torch.nn.Module):
    """`mean(layer, x)`: the mean of the neighbours' rows, of the rows of a layer's destinations, which come first in x."""

    def __init__(self, inputs):
        super().__init__()
        widths = [inputs, HIDDEN, HIDDEN]
        self.own = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.neighbours = torch.nn.ModuleList(torch.nn.Linear(a, b, bias=False) for a, b in zip(widths, widths[1:]))
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.relation = torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(1, HIDDEN)))

    def forward(self, x, mean):
        for layer in (0, 1):
            means = mean(layer, x)
            x = self.own[layer](x[:len(means)]) + self.neighbours[layer](means)
            if layer == 0:
                x = self.norm(x).relu()
        return x

    def loss(self, heads, tails, negatives):
        score = lambda a, b: (a * self.relation * b).sum(1)
        return functional.softplus(-score(heads, tails)).mean() + functional.softplus(score(heads, negatives)).mean()


def mrr_of(links, model):
    """Of exact rows: all vertices, all neighbours."""
    model.eval()
    a = torch.sparse_coo_tensor(torch.stack([links.targets, links.sources]), torch.ones(len(links.sources)), (links.n, links.n)).coalesce()
    degree = torch.bincount(links.targets, minlength=links.n).clamp(min=1).unsqueeze(1)
    with torch.no_grad():
        rows = model(links.x, lambda _, x: torch.sparse.mm(a, x) / degree)
        h = rows[links.test[0]] * model.relation
        truth = (h * rows[links.test[1]]).sum(1, keepdim=True)
        others = torch.stack([(h * rows[column]).sum(1) for column in links.candidates.T], 1)
        rank = 1 + (others > truth).sum(1) + 0.5 * (others == truth).sum(1)
    return (1 / rank.double()).mean().item()


def dgl_batches(links):
    import dgl
    graph = dgl.graph((links.sources, links.targets), num_nodes=links.n)
    graph.create_formats_()
    forward, backward = graph.edge_ids(*links.train), graph.edge_ids(links.train[1], links.train[0])
    reverse = torch.arange(graph.num_edges())
    reverse[forward], reverse[backward] = backward, forward
    sampler = dgl.dataloading.as_edge_prediction_sampler(
        dgl.dataloading.NeighborSampler(FANOUT[::-1]), exclude="reverse_id", reverse_eids=reverse,
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(1))
    loader = dgl.dataloading.DataLoader(graph, forward, sampler, batch_size=BATCH, shuffle=True)

    def batches():
        for inputs, positive, negative, blocks in loader:
            def mean(layer, x):
                with blocks[layer].local_scope():
                    blocks[layer].srcdata["x"] = x
                    blocks[layer].update_all(dgl.function.copy_u("x", "m"), dgl.function.mean("m", "y"))
                    return blocks[layer].dstdata["y"]
            yield links.x[inputs], mean, positive.edges(), negative.edges()[1]
    return batches


def pyg_batches(links):
    from torch_geometric.data import Data
    from torch_geometric.loader import LinkNeighborLoader
    from torch_geometric.sampler import NegativeSampling
    from torch_geometric.utils import scatter
    data = Data(x=links.x, edge_index=torch.stack([links.sources, links.targets]))
    loader = LinkNeighborLoader(data, num_neighbors=FANOUT, edge_label_index=links.train, batch_size=BATCH, shuffle=True,
                                neg_sampling=NegativeSampling("triplet", 1), filter_per_worker=False)

    def batches():
        for batch in loader:
            sources, targets = batch.edge_index
            # All rows at each layer, as PyG's own examples do.
            yield (batch.x, lambda _, x: scatter(x[sources], targets, 0, len(x), "mean"), (batch.src_index, batch.dst_pos_index),
                   batch.dst_neg_index)
    next(iter(batches()))
    return batches


def train(links, batches, epochs):
    torch.manual_seed(0)
    model = Sage(links.x.shape[1])
    steps = -(-links.train.shape[1] // BATCH)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * steps)
    seconds, drawing = [], []
    for epoch in range(epochs):
        model.train()
        start, total = time.perf_counter(), 0.0
        drawing.append(0.0)
        asked = start
        for x, mean, (heads, tails), negatives in batches():
            drawing[-1] += time.perf_counter() - asked
            rows = model(x, mean)
            loss = model.loss(rows[heads], rows[tails], rows[negatives])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            asked = time.perf_counter()
        seconds.append(time.perf_counter() - start)
        print(f"  epoch {epoch + 1}: loss {total / steps:.4f}, {seconds[-1]:.2f} s", file=sys.stderr)
    return mrr_of(links, model), statistics.median(seconds[1:]), statistics.median(drawing[1:])


def espalier(options):
    with tempfile.TemporaryDirectory() as folder:
        job = pathlib.Path(folder) / "job.toml"
        job.write_text("")
        keys = (f"graph.file={pathlib.Path(options.graph).resolve()}", f"output.dir={folder}/out", f"run.threads={options.threads}", "train.task=links",
                "model.layers=2", f"model.hidden={HIDDEN}", "model.normalize=layer", "model.dropout=0", f"sampler.fanout={FANOUT}",
                f"sampler.batch_size={BATCH}", "train.score=distmult", "train.loss=sigmoid", "train.negatives=1", f"train.learning_rate={RATE}",
                "train.lr_schedule=cosine", "graph.feature_norm=standard", f"train.epochs={options.epochs}", f"train.eval_every={options.epochs}",
                f"train.ranked_against={CANDIDATES}", "train.batches_per_step=1")
        done = subprocess.run([options.program, "-q", "train", job, *keys], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            print(done.stdout)
            sys.exit(1)
        report = json.loads((pathlib.Path(folder) / "out/report.json").read_text())
    seconds = [epoch["seconds"]["total"] - epoch["seconds"].get("evaluate", 0) for epoch in report["epochs"]]
    drawing = [epoch["seconds"]["sample"] + epoch["seconds"]["fetch"] for epoch in report["epochs"]]
    return report["test"]["mrr"], statistics.median(seconds[1:]), statistics.median(drawing[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph")
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    links = Links(options.graph)
    ours = espalier(options)
    print(f"| who | MRR among {CANDIDATES} | s an epoch | times Espalier's | s for minibatches and rows | times Espalier's |\n"
          "| --- | --- | --- | --- | --- | --- |\n"
          f"| Espalier | {ours[0]:.3f} | {ours[1]:.2f} | 1 | {ours[2]:.2f} | 1 |", flush=True)
    found = 0
    for name, batches_of in (("DGL", dgl_batches), ("PyG", pyg_batches)):
        try:
            batches = batches_of(links)
        except ImportError as missing:
            print(f"| {name} | is not there: {str(missing).splitlines()[0]} | | | | |")
            continue
        mrr, seconds, drawing = train(links, batches, options.epochs)
        found += 1
        print(f"| {name} | {mrr:.3f} | {seconds:.2f} | {seconds / ours[1]:.1f} | {drawing:.2f} | {drawing / ours[2]:.1f} |", flush=True)
    sys.exit(0 if found else 77)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A training step of GAT beside DGL's and PyG's: forward, loss, backward and Adam, sampling and fetching left out.

    build/peers/venv/bin/python bench/peers/gat_step.py GRAPH [--program build/cpu/espalier] [--threads 2]

Three layers, hidden 4 heads of 64, fanout 15,10,5, batch 256, dropout 0.5 of features and of attention, float32. DGL and
PyG compute on the same blocks, drawn by DGL; with equal weights and without dropout their logits must agree. Espalier
draws its own by the same fanout: seconds are per step, edges per step are printed beside. Rounds alternate between the
three; the medians over rounds are compared.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import dgl
import numpy as np
import torch
from dgl.nn import GATConv as DglConvolution
from torch_geometric.nn import GATConv as PygConvolution

import graph_file

HEADS, WIDTH, FANOUT, BATCH, DROPOUT, STEPS, ROUNDS = 4, 64, [15, 10, 5], 256, 0.5, 20, 5


class Gat(torch.nn.Module):
    """`convolve(layer, block, x)` gives [rows, heads, width] of the last layer, or the heads side by side."""

    def __init__(self, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, blocks, x):
        for number, (layer, block) in enumerate(zip(self.layers, blocks)):
            x = torch.nn.functional.dropout(x, DROPOUT, self.training)
            x = self.convolve(layer, block, x)
            if number + 1 < len(self.layers):
                x = torch.nn.functional.elu(x)
        return x


class DglGat(Gat):
    def __init__(self, features, classes):
        widths = [features] + [HEADS * WIDTH] * (len(FANOUT) - 1)
        super().__init__(DglConvolution(fan_in, WIDTH if k + 1 < len(widths) else classes, HEADS if k + 1 < len(widths) else 1,
                                        attn_drop=DROPOUT, allow_zero_in_degree=True) for k, fan_in in enumerate(widths))

    def convolve(self, layer, block, x):
        return layer(block, x).flatten(1)


class PygGat(Gat):
    def __init__(self, features, classes):
        widths = [features] + [HEADS * WIDTH] * (len(FANOUT) - 1)
        super().__init__(PygConvolution(fan_in, WIDTH if k + 1 < len(widths) else classes, HEADS if k + 1 < len(widths) else 1,
                                        dropout=DROPOUT, add_self_loops=False) for k, fan_in in enumerate(widths))

    def convolve(self, layer, block, x):
        return layer((x, x[: block.num_dst_nodes()]), torch.stack(block.edges()))


def same_weights(dgl_network, pyg_network):
    for ours, theirs in zip(dgl_network.layers, pyg_network.layers):
        (theirs.lin if theirs.lin is not None else theirs.lin_src).weight.data.copy_(ours.fc.weight.data)
        theirs.att_src.data.copy_(ours.attn_l.data)
        theirs.att_dst.data.copy_(ours.attn_r.data)
        theirs.bias.data.copy_(ours.bias.data)


def with_own_edges(block):
    """Every destination is its own neighbour, once."""
    sources, rows = block.edges()
    other = sources != rows
    own = torch.arange(block.num_dst_nodes())
    sources, rows = torch.cat([sources[other], own]), torch.cat([rows[other], own])
    return dgl.create_block((sources, rows), block.num_src_nodes(), block.num_dst_nodes())


def draw(path):
    graph = graph_file.GraphFile(path)
    whole = dgl.graph(("csc", (torch.from_numpy(graph.indptr), torch.from_numpy(graph.indices.astype(np.int64)), [])),
                      num_nodes=graph.nodes)
    sampler = dgl.dataloading.NeighborSampler(FANOUT[::-1])
    train = np.random.default_rng(0).permutation(graph_file.read_split(path, "train"))
    samples = []
    for step in range(STEPS):
        seeds = torch.from_numpy(train[step * BATCH: (step + 1) * BATCH])
        inputs, _, blocks = sampler.sample(whole, seeds)
        samples.append((inputs, seeds, [with_own_edges(block) for block in blocks], sum(b.num_edges() for b in blocks)))
    return samples


def seconds_of(network, optimizer, samples, features, labels):
    begin = time.perf_counter()
    for inputs, seeds, blocks, _ in samples:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(blocks, features[inputs]), labels[seeds]).backward()
        optimizer.step()
    return (time.perf_counter() - begin) / len(samples)


def seconds_of_espalier(options, folder):
    subprocess.run([options.program, "-q", "train", options.config, f"graph.file={options.graph}", "model.kind=gat",
                    f"model.heads={HEADS}", f"model.hidden={HEADS * WIDTH}", "model.layers=3", f"model.dropout={DROPOUT}",
                    f"sampler.fanout={FANOUT}", f"sampler.batch_size={BATCH}", "train.batches_per_step=1", "train.epochs=1",
                    "train.eval_every=0", f"run.threads={options.threads}", "run.restart=never", "--overwrite", f"output.dir={folder}"], check=True)
    report = json.loads((pathlib.Path(folder) / "report.json").read_text())
    epoch = report["epochs"][-1]
    steps = epoch["batches"]
    return sum(epoch["seconds"][stage] for stage in ("forward", "backward", "optimizer")) / steps, epoch["sampled_edges"] / steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("--config", default="inputs/debian.toml")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    features = torch.from_numpy(graph_file.read_features(options.graph, True))
    labels = torch.from_numpy(graph_file.read_labels(options.graph))
    samples = draw(options.graph)
    networks = {"DGL": DglGat(features.shape[1], int(labels.max()) + 1), "PyG": PygGat(features.shape[1], int(labels.max()) + 1)}
    same_weights(*networks.values())

    with torch.no_grad():
        logits = [network.eval()(samples[0][2], features[samples[0][0]]) for network in networks.values()]
    wrong = float((logits[0] - logits[1]).abs().max() / logits[0].abs().max())
    print(f"largest difference of the peers' logits: {wrong:.1e}")
    if not wrong < 1e-4:
        return 1

    optimizers = {name: torch.optim.Adam(network.train().parameters(), lr=1e-3) for name, network in networks.items()}
    seconds = {"Espalier": [], "DGL": [], "PyG": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            ours, edges = seconds_of_espalier(options, folder)
            seconds["Espalier"].append(ours)
            for name, network in networks.items():
                seconds[name].append(seconds_of(network, optimizers[name], samples, features, labels))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    print(f"edges per step: Espalier {edges:.0f}, DGL and PyG {statistics.mean(s[3] for s in samples):.0f}; {options.threads} threads")
    for name, median in medians.items():
        spread = " .. ".join(f"{1e3 * bound(seconds[name]):.1f}" for bound in (min, max))
        print(f"{name:<10}{1e3 * median:8.1f} ms/step ({spread})   {median / medians['Espalier']:5.2f} x Espalier's")
    return 0


if __name__ == "__main__":
    sys.exit(main())

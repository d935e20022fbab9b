#!/usr/bin/env python3
"""PyG's SAGEConv, trained under DistributedDataParallel on what espalier.Loader draws and evaluated by it, beside
`espalier train` with the same network, rates and batches.

    mpirun --bind-to none -np 2 build/peers/venv/bin/python bench/peers/loader_accuracy.py data/debian.h5 --seed 0
    build/cpu/espalier train inputs/debian.toml train.seed=0 ...     # the keys that it prints

A step is the mean over 5 batches, which neither 2 nor 4 ranks divide. Accuracy is that of the last epoch, over all
neighbours. Losses are equal on any number of ranks to what torch rounds, which Adam lets grow from step to step.
"""

import argparse
import contextlib
import math
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import espalier
import torch

HIDDEN, RATE, LAYERS = 128, 0.005, 3
KEYS = {"graph.feature_norm": "standard", "sampler.fanout": [15, 10, 5], "sampler.batch_size": 256,
        "model.layers": LAYERS, "model.hidden": HIDDEN, "model.dropout": 0.0, "train.learning_rate": RATE,
        "train.lr_schedule": "cosine", "train.batches_per_step": 5}


def make_network(widths):
    from torch_geometric.nn import SAGEConv

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(SAGEConv(*pair) for pair in zip(widths, widths[1:]))
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    torch.nn.init.xavier_uniform_(parameter)
                else:
                    torch.nn.init.zeros_(parameter)

        def forward(self, batch):
            x = batch.x
            for layer, of in zip(self.layers, batch.to_pyg(layers=True)):
                x = layer((x, x[: of.size[1]]), of.edge_index)
                x = x if layer is self.layers[-1] else x.relu()
            return x

    return Network()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    keys = {"graph.file": options.graph, "train.seed": options.seed, "train.epochs": options.epochs, **KEYS}
    with espalier.open(**keys) as job:
        espalier.init_process_group()
        torch.manual_seed(options.seed)
        torch.set_num_threads(max(1, torch.get_num_threads() // job.ranks))
        network = make_network([job.about["features"], *[HIDDEN] * (LAYERS - 1), job.about["classes"]])
        model = torch.nn.parallel.DistributedDataParallel(network)
        optimizer = torch.optim.Adam(model.parameters(), RATE)
        train, test = job.loader(), job.loader(split="test", fanout=[-1] * LAYERS, batch_size=2048)
        steps, begin = 0, time.perf_counter()
        for epoch in train.epochs():
            total = 0.0
            for batch in epoch:
                for group in optimizer.param_groups:
                    group["lr"] = RATE * 0.5 * (1 + math.cos(math.pi * steps / (options.epochs * train.steps)))
                with contextlib.nullcontext() if batch.ends_step else model.no_sync():
                    loss = torch.nn.functional.cross_entropy(model(batch), batch.y, reduction="sum") * batch.scale
                    loss.backward()
                total += loss.item()
                if batch.ends_step:
                    optimizer.step()
                    optimizer.zero_grad()
                    steps += 1
            mean = job.sum(total) / job.ranks / train.steps
        seconds = time.perf_counter() - begin
        with torch.no_grad():
            right = job.sum(sum((network(batch).argmax(1) == batch.y).sum().item() for batch in test))
        if job.rank == 0:
            print(f"ranks {job.ranks}, seed {options.seed}, {train.batches} batches in {train.steps} steps: loss {mean:.6f}, "
                  f"test accuracy {right / job.about['test']:.4f}, {seconds / options.epochs:.2f} s/epoch")
            print("espalier train", *espalier.job.key_words(keys))


if __name__ == "__main__":
    main()

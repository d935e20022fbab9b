#!/usr/bin/env python3
"""A network of PyG's SAGEConv fed by Espalier's loader, and by the loaders that its users have: seconds of an epoch, what of
them the network waits for batches, accuracy.

    build/peers/venv/bin/python bench/peers/loader_epoch.py data/debian.h5 [--torch-threads 2] [--ahead 4]
    build/peers/venv/bin/python bench/peers/loader_epoch.py data/debian.h5 --ranks 1 2 4

All train the network of compare.py: three layers of PyG's SAGEConv with means, 256 wide, ReLU and dropout between them, Adam,
Glorot weights, float32, fanout 15,10,5, a step for each batch of 1,024, features standardised; in one process, and their epochs
alternate. A loader gives rows, a sparse matrix for each layer and labels; waiting ends when all of them are there, as torch
wants them. Checked first: batches of each are samples of the file. PyG's layered sampler, DGL's and Espalier's give a block for each layer, NeighborLoader one matrix for all three.
Seconds are medians of the epochs behind the first; those of
CPUs, of all threads and no other process, are the steadier figure where other work runs. Accuracies are exact (all neighbours) after the last.

--ranks: does it learn as `espalier train` does? The same network under DistributedDataParallel on so many ranks, a step of
three batches, which 2 and 4 do not divide, and as many epochs; test accuracy by a loader of whole rows. Beside it the
program's own, of the same steps and seeds.

Exit codes: 0 done, 1 something was wrong or failed, 2 usage, 77 PyTorch, PyG or h5py is missing.
"""

import argparse
import contextlib
import itertools
import json
import os
import statistics
import sys
import time
import types
import warnings

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that have nothing to do leave their core to a loader's

import numpy as np

try:
    import torch
    import torch_geometric  # noqa: F401  says what is missing

    import compare
    import dgl_peer
    import graph_file
    import protocol
    import pyg_peer

    sys.path.insert(0, str(compare.ROOT / "python"))
    import espalier
    from espalier.job import key_words
except ImportError as missing:
    print(f"missing: {missing}")
    sys.exit(77)

warnings.filterwarnings("ignore")
FANOUT = [int(number) for number in compare.FANOUT.split(",")]
TOLERANCE = 0.01  # of edges per epoch, between loaders that draw alike
os.environ.update(compare.ESPALIER_ENVIRONMENT)


def make_network(features, classes, seed):
    class Network(pyg_peer.make_network([features, *[compare.NETWORK["hidden"]] * (len(FANOUT) - 1), classes],
                                        compare.NETWORK["dropout"])):
        def forward(self, sample):
            x = sample.x
            for number, (convolution, block) in enumerate(zip(self.convolutions, sample.blocks)):
                x = self.activate(number, convolution((x, x[: block.size(0)]), block))
            return x[: len(sample.y)]

    torch.manual_seed(seed)
    network = Network()
    protocol.initialise(network)
    return network


def sample_of(x, blocks, y):
    return types.SimpleNamespace(x=x, blocks=blocks, y=y)


# ---- Loaders: what protocol.train_epoch asks ----------------------------------------------------------------------------


class Loader:
    def __init__(self):
        self.waited = 0.0

    def batches(self, seeds, batch, workers):
        """Of an epoch; `waited` grows by what each took."""
        asked = time.perf_counter()
        for drawn in self.draw(seeds, batch, workers):
            sample = self.sample(drawn)
            self.waited += time.perf_counter() - asked
            yield sample
            asked = time.perf_counter()
        self.waited += time.perf_counter() - asked

    def count_wrong_of_first(self, options, seeds):
        few = seeds[: protocol.BATCHES_CHECKED * compare.BATCH]
        return protocol.check(self, options, self.draw(few, compare.BATCH, 0))

    def edges(self, sample):
        return sum(block.nnz() if hasattr(block, "nnz") else block._nnz() for block in sample.blocks)  # PyG's, torch's

    def targets(self, sample):
        return sample.y


class Peer(Loader):
    def __init__(self, peer, graph, features, labels):
        super().__init__()
        self.peer, self.draw, self.count_wrong = peer, peer.batches, peer.count_wrong
        peer.load(graph, FANOUT)
        peer.load_features(features, labels)


class Layered(Peer):
    def sample(self, drawn):
        return sample_of(self.peer.features[drawn[1]], [block.adj_t for block in drawn[2]], self.peer.targets(drawn))


class Subgraph(Peer):
    def edges(self, sample):
        return sample.blocks[0].nnz()

    def sample(self, drawn):
        return sample_of(drawn.x, [drawn.adj_t] * len(FANOUT), self.peer.targets(drawn))


class Dgl(Peer):
    def sample(self, drawn):
        blocks = [espalier.Block(*block.adj_tensors("csc")[:2], None, (block.num_dst_nodes(), block.num_src_nodes())) for block in drawn[2]]
        return sample_of(drawn[2][0].srcdata["x"], [block.adj_t for block in blocks], self.peer.targets(drawn))


class Espalier(Loader):
    def __init__(self, job, options):
        super().__init__()
        self.first, self.epochs = job.loader(epochs=1), job.loader(ahead=options.ahead).epochs()

    def draw(self, seeds, batch, workers):
        return next(self.epochs)

    def count_wrong_of_first(self, options, seeds):
        return protocol.check(self, options, itertools.islice(self.first, protocol.BATCHES_CHECKED))

    @staticmethod
    def count_wrong(batch, graph):
        ids, wrong = batch.vertices.numpy(), 0
        for fanout, block in zip(FANOUT, reversed(batch.blocks)):
            sources, destinations = ids[block.edge_index.numpy()]
            wrong += graph_file.count_wrong_picks(graph, fanout, ids[: block.shape[0]], destinations, sources)
        return wrong

    @staticmethod
    def sample(batch):
        return sample_of(batch.x, [block.adj_t for block in batch.blocks], batch.y)


def job_keys(options, seed, batches_per_step):
    network = compare.NETWORK
    return {"graph": {"file": os.path.abspath(options.graph), "feature_norm": "standard"},
            "model": {"kind": "sage", "layers": len(FANOUT), "hidden": network["hidden"], "dropout": network["dropout"]},
            "sampler": {"fanout": FANOUT, "batch_size": compare.BATCH},
            "train": {"learning_rate": network["learning_rate"], "lr_schedule": "constant", "epochs": options.epochs, "eval_every": 0,
                      "batches_per_step": batches_per_step, "seed": seed}}


# ---- An epoch ---------------------------------------------------------------------------------------------------------


class Training:
    """Of one loader."""

    def __init__(self, loader, features, classes):
        self.loader, self.network = loader, make_network(features, classes, 0)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=compare.NETWORK["learning_rate"])
        self.seconds, self.waited, self.cpu, self.edges, self.losses = [], [], [], [], []

    def epoch(self, options, seeds, workers):
        self.loader.waited, used = 0.0, time.process_time()
        of_epoch = types.SimpleNamespace(batch=compare.BATCH, workers=workers)
        seconds, edges, loss = protocol.train_epoch(self.loader, of_epoch, self.network, self.optimizer, seeds)
        self.seconds.append(seconds)
        self.waited.append(self.loader.waited)
        self.cpu.append(time.process_time() - used)
        self.edges.append(edges)
        self.losses.append(loss / len(seeds))


def peers_of(options, graph, features, labels):
    """(name, loader, sampling processes)"""
    known = (("PyG layered", pyg_peer, "layered", Layered), ("NeighborLoader", pyg_peer, "", Subgraph), ("DGL", dgl_peer, "", Dgl))
    for name, module, variant, kind in known:
        try:
            peer = module.make_peer(types.SimpleNamespace(variant=variant, sampler="neighbor"))
        except ImportError as missing:
            print(f"{name} is not there: {str(missing).splitlines()[0]}")
            continue
        for workers in options.workers:
            yield f"{name}, {workers} workers" if workers else name, kind(peer, graph, features, labels), workers


def compare_loaders(options):
    torch.set_num_threads(options.torch_threads)
    graph, train = graph_file.GraphFile(options.graph), graph_file.read_split(options.graph, "train")
    features = torch.from_numpy(graph_file.read_features(options.graph, True))
    labels = torch.from_numpy(graph_file.read_labels(options.graph))
    generator = np.random.default_rng(0)
    with espalier.open(**job_keys(options, 0, 1)) as job:
        named = [("Espalier", Espalier(job, options), 0), *peers_of(options, graph, features, labels)]
        wrong = {name: loader.count_wrong_of_first(options, train) for name, loader, _ in named}
        runs = {name: (Training(loader, features.shape[1], int(labels.max()) + 1), workers) for name, loader, workers in named}
        for epoch in range(options.epochs):
            for run, workers in runs.values():
                run.epoch(options, generator.permutation(train), workers)
            print(f"epoch {epoch + 1}: " + ", ".join(f"{name} {run.seconds[-1]:.2f} ({run.waited[-1]:.2f})"
                                                     for name, (run, _) in runs.items()), file=sys.stderr, flush=True)
    ours = statistics.median(runs["Espalier"][0].seconds[1:])
    print(f"{len(train)} training vertices, torch's threads {options.torch_threads}, ahead {options.ahead}, "
          f"medians of {options.epochs - 1} epochs behind the first\n\n"
          "| loader | s/epoch | x | waiting, s | of the epoch | CPU s | M edges | valid / test |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (run, _) in runs.items():
        seconds, waited = statistics.median(run.seconds[1:]), statistics.median(run.waited[1:])
        accuracy = protocol.exact_accuracy(options.graph, run.network, features.numpy(), labels.numpy())
        print(f"| {name} | {seconds:.2f} ({min(run.seconds[1:]):.2f} to {max(run.seconds[1:]):.2f}) | {seconds / ours:.2f} | {waited:.2f} | "
              f"{waited / seconds:.0%} | {statistics.median(run.cpu[1:]):.2f} | {statistics.median(run.edges) / 1e6:.2f} | {accuracy['valid']:.3f} / {accuracy['test']:.3f} |")
    found = [f"{name}: {count} picks are wrong" for name, count in wrong.items() if count]
    found += problems({name: run for name, (run, _) in runs.items()})
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


def problems(runs):
    """What is wrong, a line each."""
    ours = statistics.median(runs["Espalier"].edges)
    for name, run in runs.items():
        edges = statistics.median(run.edges)
        if "NeighborLoader" not in name and abs(edges - ours) > TOLERANCE * ours:
            yield f"{name} draws {edges:.0f} edges per epoch, Espalier {ours:.0f}"
        if not run.losses[-1] < run.losses[0]:
            yield f"{name}: the loss does not fall: {run.losses}"


# ---- On ranks ---------------------------------------------------------------------------------------------------------

BATCHES_PER_STEP = 3


def train_as_rank(options):
    """On all ranks: test accuracy of a network of its own under DistributedDataParallel; rank 0 prints it."""
    with espalier.open(**job_keys(options, options.seed, BATCHES_PER_STEP)) as job:
        espalier.init_process_group("gloo", job)
        torch.set_num_threads(max(1, options.torch_threads // job.ranks))
        loader, test = job.loader(ahead=options.ahead), job.loader(split="test", fanout=[-1] * len(FANOUT), batch_size=4096)
        network = make_network(job.about["features"], job.about["outputs"], options.seed)
        model = torch.nn.parallel.DistributedDataParallel(network)
        torch.manual_seed(options.seed * job.ranks + job.rank)  # for dropout
        optimizer = torch.optim.Adam(model.parameters(), lr=compare.NETWORK["learning_rate"])
        items = empty = 0
        for batch in loader:
            sample = Espalier.sample(batch)
            with contextlib.nullcontext() if batch.ends_step else model.no_sync():
                (torch.nn.functional.cross_entropy(model(sample), sample.y, reduction="sum") * batch.scale).backward()
            if batch.ends_step:
                optimizer.step(), optimizer.zero_grad()
            items, empty = items + 1, empty + (len(sample.y) == 0)
        network.eval()
        with torch.no_grad():
            right = job.sum(sum((network(sample).argmax(1) == sample.y).sum().item() for sample in map(Espalier.sample, test)))
        items, empty = job.sum([items, empty]).tolist()
        if job.rank == 0:
            print(json.dumps({"accuracy": right / job.about["test"], "items": items, "empty": empty}))
    return 0


def compare_on_ranks(options):
    rows = {ranks: [] for ranks in options.ranks}
    ours, empty = [], {}
    for seed in range(options.seeds):
        keys = key_words(job_keys(options, seed, BATCHES_PER_STEP))
        report = compare.run_espalier(options.program, "train", options.graph, f"run.threads={options.torch_threads}", *keys)
        ours.append(report["test"]["accuracy"])
        for ranks in options.ranks:
            words = [*compare.MPIRUN, ranks, sys.executable, __file__, options.graph, "--seed", seed, "--epochs", options.epochs,
                     "--torch-threads", options.torch_threads, "--ahead", options.ahead]
            told = json.loads(compare.run(words, compare.ESPALIER_ENVIRONMENT).splitlines()[-1])
            rows[ranks].append(told["accuracy"])
            empty[ranks] = told["empty"] / told["items"]
        print(f"seed {seed}: {ours[-1]:.4f}; " + ", ".join(f"{found[-1]:.4f}" for found in rows.values()), file=sys.stderr, flush=True)
    print(f"test accuracy after {options.epochs} epochs, seeds 0 to {options.seeds - 1}, steps of {BATCHES_PER_STEP} batches\n\n"
          "| who | mean | range | items without seeds |\n| --- | --- | --- | --- |")
    named = [("espalier train", ours, 0), *((f"SAGEConv by the loader, {ranks} ranks", found, empty[ranks]) for ranks, found in rows.items())]
    for name, found, share in named:
        print(f"| {name} | {statistics.mean(found):.4f} | {min(found):.4f} to {max(found):.4f} | {share:.0%} |")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--torch-threads", type=int, default=2)
    parser.add_argument("--ahead", type=int, default=4, help="steps that Espalier's loader fetches before they are asked for")
    parser.add_argument("--workers", type=int, nargs="+", default=[0], help="sampling processes of the peers")
    parser.add_argument("--ranks", type=int, nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, help="of this rank's training, for mpirun")
    options = parser.parse_args()
    if options.seed is not None:
        return train_as_rank(options)
    return compare_on_ranks(options) if options.ranks else compare_loaders(options)


if __name__ == "__main__":
    sys.exit(main())

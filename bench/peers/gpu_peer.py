#!/usr/bin/env python3
"""The same training in PyTorch, on the GPU that Espalier ran on: 3-layer SAGE, fanout 15,10,5, batch 1024, hidden 256.

    gpu_peer.py GRAPH.h5 [--device cuda|cpu] [--quick]

Prints one JSON object: for each peer seconds by stage of an epoch, scaled to all of its batches, and the edges it drew; or {"missing": why}.

    torch    (and `torch tf32`, which lets it round the factors of products to TF32) everything on the GPU by plain tensor operations: a draw per pick with replacement (cheaper than without, which is
             what Espalier does, so this favours PyTorch), unique ids, aggregation by a CSR product
    pyg      NeighborLoader on the CPU's cores where PyG and pyg-lib or torch-sparse are, features on the GPU, SAGEConv

An epoch runs without waiting between stages and gives `total`; another one waits after each stage and gives the stages.
"""

import argparse
import json
import os
import time
import warnings

FANOUT, HIDDEN, LEARNING_RATE, DROPOUT = [15, 10, 5], 256, 0.003, 0.5
STAGES = ["sample", "fetch", "forward", "backward", "optimizer"]


class Clock:
    """Seconds by stage; waits for the GPU at the end of each stage where `stages` is on."""

    def __init__(self, device, stages):
        self.device, self.stages, self.seconds = device, stages, dict.fromkeys(STAGES, 0.0)

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def start(self):
        self.wait()
        self.begin = self.last = time.perf_counter()

    def done(self, stage):
        if self.stages:
            self.wait()
            now = time.perf_counter()
            self.seconds[stage] += now - self.last
            self.last = now

    def total(self):
        self.wait()
        return time.perf_counter() - self.begin


class Graph:
    def __init__(self, path, device):
        import h5py

        with h5py.File(path, "r") as file:
            self.host = {"indptr": torch.from_numpy(file["graph/indptr"][:]),
                         "indices": torch.from_numpy(file["graph/indices"][:].astype("int64"))}
            self.features = torch.from_numpy(file["nodes/features"][:]).float().to(device)
            self.labels = torch.from_numpy(file["nodes/labels"][:]).long().to(device)
            self.train = torch.from_numpy(file["split/train"][:])
        self.classes = int(self.labels.max()) + 1
        self.device = device


# ---- Plain tensor operations -----------------------------------------------------------------------------------------


class TensorPeer:
    remark = "picks with replacement, all on the GPU"

    def __init__(self, graph):
        self.graph = graph
        self.indptr, self.indices = (graph.host[name].to(graph.device) for name in ("indptr", "indices"))
        widths = [graph.features.shape[1]] + [HIDDEN] * (len(FANOUT) - 1) + [graph.classes]
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleList([torch.nn.Linear(a, b), torch.nn.Linear(a, b, bias=False)])
            for a, b in zip(widths, widths[1:])).to(graph.device)

    def parameters(self):
        return self.layers.parameters()

    def batches(self, seeds, size):
        for batch in seeds.to(self.graph.device).split(size):
            yield self.sample(batch)

    def sample(self, seeds):
        """(input ids, blocks, seeds): a block is a CSR matrix of means, destinations first among its columns."""
        frontier, blocks, edges = seeds, [], 0
        for fanout in FANOUT:
            begin = self.indptr[frontier]
            degree = self.indptr[frontier + 1] - begin
            picks = torch.minimum(degree, torch.full_like(degree, fanout))
            ends = picks.cumsum(0)
            rows = torch.repeat_interleave(torch.arange(len(frontier), device=seeds.device), picks)
            draws = (torch.rand(len(rows), device=seeds.device, dtype=torch.float64) * degree[rows]).long()
            sources = self.indices[begin[rows] + draws]
            ids, place = torch.unique(torch.cat([frontier, sources]), return_inverse=True)
            # Destinations first: their sorted places move to the front.
            order = torch.full((len(ids),), -1, device=seeds.device, dtype=torch.long)
            order[place[: len(frontier)]] = torch.arange(len(frontier), device=seeds.device)
            fresh = order < 0
            order[fresh] = torch.arange(len(frontier), len(ids), device=seeds.device)
            sources_first = torch.empty_like(ids)
            sources_first[order] = ids
            offsets = torch.cat([ends.new_zeros(1), ends])
            values = torch.repeat_interleave(1.0 / picks.clamp(min=1).float(), picks)
            blocks.insert(0, torch.sparse_csr_tensor(offsets, order[place[len(frontier):]], values,
                                                     size=(len(frontier), len(ids))))
            edges += len(rows)
            frontier = sources_first
        return frontier, blocks, seeds, edges

    def edges(self, sample):
        return sample[3]

    def fetch(self, sample):
        return self.graph.features[sample[0]]

    def forward(self, sample, x):
        for number, (block, (own, neighbour)) in enumerate(zip(sample[1], self.layers)):
            x = own(x[: block.shape[0]]) + neighbour(multiply(block, x))
            if number + 1 < len(self.layers):
                x = torch.nn.functional.dropout(x.relu(), DROPOUT)
        return x

    def targets(self, sample):
        return self.graph.labels[sample[2]]


def multiply(block, x):
    """block x, with the gradient to x by the transposed product."""
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return block @ x

        @staticmethod
        def backward(context, gradient):
            return block.transpose(0, 1) @ gradient

    return Product.apply(x) if x.requires_grad else block @ x


# ---- PyG -------------------------------------------------------------------------------------------------------------


class PygPeer:
    def __init__(self, graph):
        import torch_geometric.typing as installed
        from torch_geometric.data import Data
        from torch_geometric.nn import SAGEConv

        if not (installed.WITH_PYG_LIB or installed.WITH_TORCH_SPARSE):
            raise ImportError("PyG without pyg-lib and torch-sparse cannot sample")
        self.remark = "NeighborLoader by " + ("pyg-lib" if installed.WITH_PYG_LIB else "torch-sparse")
        indptr, sources = graph.host["indptr"], graph.host["indices"]
        targets = torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff())
        self.data = Data(edge_index=torch.stack([sources, targets]), num_nodes=len(indptr) - 1)
        self.graph = graph
        widths = [graph.features.shape[1]] + [HIDDEN] * (len(FANOUT) - 1) + [graph.classes]
        self.layers = torch.nn.ModuleList(SAGEConv(a, b) for a, b in zip(widths, widths[1:])).to(graph.device)

    def parameters(self):
        return self.layers.parameters()

    def batches(self, seeds, size):
        from torch_geometric.loader import NeighborLoader

        workers = max(1, min(12, (os.cpu_count() or 2) - 2))
        for sample in NeighborLoader(self.data, num_neighbors=FANOUT, input_nodes=seeds, batch_size=size,
                                     num_workers=workers):
            sample.edge_index = sample.edge_index.to(self.graph.device, non_blocking=True)
            sample.n_id = sample.n_id.to(self.graph.device, non_blocking=True)
            yield sample

    def edges(self, sample):
        return sample.edge_index.shape[1]

    def fetch(self, sample):
        return self.graph.features[sample.n_id]

    def forward(self, sample, x):
        for number, layer in enumerate(self.layers):
            x = layer(x, sample.edge_index)
            if number + 1 < len(self.layers):
                x = torch.nn.functional.dropout(x.relu(), DROPOUT)
        return x[: sample.batch_size]

    def targets(self, sample):
        return self.graph.labels[sample.n_id[: sample.batch_size]]


# ---- Measuring -------------------------------------------------------------------------------------------------------


def run_epoch(peer, optimizer, seeds, size, clock):
    """(edges drawn, sum of losses)"""
    drawn, losses = 0, []
    clock.start()
    samples = iter(peer.batches(seeds, size))
    while True:
        sample = next(samples, None)
        if sample is None:
            return drawn, float(torch.stack(losses).mean())
        clock.done("sample")
        x = peer.fetch(sample)
        clock.done("fetch")
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(peer.forward(sample, x), peer.targets(sample))
        clock.done("forward")
        loss.backward()
        clock.done("backward")
        optimizer.step()
        clock.done("optimizer")
        drawn += peer.edges(sample)
        losses.append(loss.detach())


def measure(peer, graph, size, most_batches):
    optimizer = torch.optim.Adam(peer.parameters(), lr=LEARNING_RATE)
    batches = min(-(-len(graph.train) // size), most_batches)
    scale = len(graph.train) / min(len(graph.train), batches * size)
    def seeds(count):
        return graph.train[torch.randperm(len(graph.train))][: count * size]

    run_epoch(peer, optimizer, seeds(min(10, batches)), size, Clock(graph.device, False))  # warm-up
    whole = Clock(graph.device, False)
    drawn, _ = run_epoch(peer, optimizer, seeds(batches), size, whole)
    total = whole.total()
    staged = Clock(graph.device, True)
    _, loss = run_epoch(peer, optimizer, seeds(batches), size, staged)
    return {"seconds": {"total": scale * total, **{stage: scale * s for stage, s in staged.seconds.items()}},
            "edges": drawn, "batches": batches, "loss": loss, "remark": peer.remark}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    try:
        import h5py  # noqa: F401
        global torch
        import torch
    except ImportError as error:
        return {"missing": str(error)}
    if options.device == "cuda" and not torch.cuda.is_available():
        return {"missing": "torch sees no GPU"}
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False  # float32, as Espalier's default
    graph = Graph(options.graph, torch.device(options.device))
    size = 128 if options.quick else 1024
    batches = 4 if options.quick else 200
    result = {"torch": measure(TensorPeer(graph), graph, size, batches)}
    torch.backends.cuda.matmul.allow_tf32 = True
    result["torch tf32"] = measure(TensorPeer(graph), graph, size, batches)
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        result["pyg"] = measure(PygPeer(graph), graph, size, 4 if options.quick else 40)
    except ImportError as error:
        result["pyg"] = {"missing": str(error).splitlines()[0]}
    return result


if __name__ == "__main__":
    print(json.dumps(main()), flush=True)

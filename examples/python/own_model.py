"""Arrays, a graph file, minibatches, a network of one's own in PyTorch, on any number of ranks:

mpirun --bind-to none -np 4 python3 examples/python/own_model.py"""

import contextlib, espalier, numpy, torch


class Sage(torch.nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(2 * a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x, blocks):
        for layer, block in zip(self.layers, blocks):
            (source, target), own = block.edge_index, x[: block.shape[0]]  # rows are the first columns
            mean = torch.zeros_like(own).index_add(0, target, block.values[:, None] * x[source])
            x = layer(torch.cat([own, mean], 1))
            x = x if layer is self.layers[-1] else x.relu()
        return x


if espalier.world()[0] == 0:
    random, y = numpy.random.default_rng(0), numpy.arange(20_000) % 5
    x, part = numpy.eye(5)[y] + 2 * random.normal(size=(20_000, 5)), random.random(20_000)
    edges = random.integers(0, 4_000, (2, 100_000)) * 5 + random.integers(0, 5, 100_000)  # within a class
    espalier.write_graph("own.h5", edges, x, y, train=part < 0.6, test=part > 0.8, overwrite=True)
keys = {"sampler": {"fanout": [10, 5], "batch_size": 256}, "train": {"batches_per_step": 6}}
with espalier.open(graph={"file": "own.h5"}, model={"layers": 2}, **keys) as job:
    espalier.init_process_group()
    model = torch.nn.parallel.DistributedDataParallel(Sage(5, 32, 5))  # begins with rank 0's weights
    optimizer, criterion = torch.optim.Adam(model.parameters(), 0.01), torch.nn.CrossEntropyLoss(reduction="sum")
    train, test = job.loader(epochs=5), job.loader(split="test", fanout=[-1, -1])
    for batch in train:
        with contextlib.nullcontext() if batch.ends_step else model.no_sync():  # gradients add up in a step
            loss = criterion(model(batch.x, batch.blocks), batch.y) * batch.scale
            loss.backward()
        if batch.ends_step:
            optimizer.step(), optimizer.zero_grad()
    with torch.no_grad():
        right = job.sum(sum((model.module(of.x, of.blocks).argmax(1) == of.y).sum().item() for of in test))
    if job.rank == 0:
        print(f"test accuracy {right / job.about['test']:.4f}")

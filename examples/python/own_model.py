"""Arrays, a graph file, minibatches, a network of one's own in PyTorch, on any number of ranks:

mpirun --bind-to none -np 4 python3 examples/python/own_model.py"""

import contextlib, espalier, numpy, torch


class Sage(torch.nn.Module):
    def __init__(self, *widths):
        super().__init__()
        pairs = zip(widths, widths[1:])
        self.layers = torch.nn.ModuleList(torch.nn.Linear(2 * a, b) for a, b in pairs)

    def forward(self, x, blocks):
        for layer, block in zip(self.layers, blocks):
            x = layer(torch.cat([x[: block.shape[0]], block @ x], 1))  # own rows, neighbours' means
            x = x if layer is self.layers[-1] else x.relu()
        return x


if espalier.world()[0] == 0:
    random, v = numpy.random.default_rng(0), numpy.arange(20_000)
    y, part = v % 5, random.random(20_000)  # edges are within a class
    edges = numpy.hstack([[(v + 5 * k) % 20_000, v] for k in (1, 20, 300, 1_000, 3_000)])
    x = numpy.eye(5)[y] + 2 * random.normal(size=(20_000, 5))
    espalier.write_graph("own.h5", edges, x, y, train=part < 0.6, test=part > 0.8, overwrite=True)
keys = {"sampler": {"fanout": [10, 5], "batch_size": 256}, "train": {"batches_per_step": 6}}
with espalier.open(graph={"file": "own.h5"}, model={"layers": 2}, **keys) as job:
    espalier.init_process_group()
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(Sage(5, 32, 5).to(job.device))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    criterion = torch.nn.CrossEntropyLoss(reduction="sum")
    train, test = job.loader(epochs=5), job.loader(split="test", fanout=[-1, -1])
    for batch in train:  # gradients add up over the batches of a step
        with contextlib.nullcontext() if batch.ends_step else model.no_sync():
            loss = criterion(model(batch.x, batch.blocks), batch.y) * batch.scale
            loss.backward()
        if batch.ends_step:
            optimizer.step(), optimizer.zero_grad()
    with torch.no_grad():
        found = ((model.module(of.x, of.blocks).argmax(1) == of.y).sum().item() for of in test)
        right = job.sum(sum(found))
    if job.rank == 0:
        print(f"test accuracy {right / job.about['test']:.4f}")

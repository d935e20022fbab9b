"""Trains GraphSAGE in PyTorch on minibatches that Espalier drew.

    mpirun -np 4 build/cpu/espalier sample inputs/debian.toml --epochs 10 --write output/batches
    python3 examples/python/train_pytorch.py output/batches

Needs torch and the Python package (`pip install ./python`). Every epoch has samples of its own, the
same whatever ranks wrote them; a loss differs only by what PyTorch rounds. In the end it is judged
as `espalier train` judges: by all neighbours, over the whole graph.
"""

import argparse
import types

import h5py
import torch
from espalier import Minibatches


class Sage(torch.nn.Module):
    """Layer l: rows of its own vertices by one matrix, the mean over neighbours by another."""

    def __init__(self, widths):
        super().__init__()
        pairs = list(zip(widths, widths[1:]))
        self.own = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in pairs)
        self.neighbours = torch.nn.ModuleList(torch.nn.Linear(a, b, bias=False) for a, b in pairs)

    def forward(self, blocks, x):
        for layer, block in enumerate(blocks):
            # A block's rows are the first of its columns.
            x = self.own[layer](x[: block.shape[0]]) + self.neighbours[layer](product(block, x))
            if layer + 1 < len(blocks):
                x = torch.relu(x)
        return x


def product(block, x):
    """block @ x. The values of a block are those of the mean over what was drawn."""
    indptr, columns = torch.from_numpy(block.indptr), torch.from_numpy(block.indices).long()
    rows = torch.repeat_interleave(torch.arange(block.shape[0]), indptr.diff())
    entries = torch.from_numpy(block.values)[:, None] * x[columns]
    return torch.zeros(block.shape[0], x.shape[1]).index_add(0, rows, entries)


def test_accuracy(model, layers, path, split):
    """Of the test vertices, each row of A being the mean over all neighbours."""
    with h5py.File(path) as file:
        indptr, indices = file["graph/indptr"][()], file["graph/indices"][()]
        x, y = torch.from_numpy(file["nodes/features"][()]).float(), file["nodes/labels"][()]
        test = file[f"split/{split}/test" if split else "split/test"][()]
    sizes = indptr[1:] - indptr[:-1]
    whole = types.SimpleNamespace(
        shape=(len(x), len(x)),
        indptr=indptr,
        indices=indices,
        values=(1 / sizes[sizes > 0].astype("float32")).repeat(sizes[sizes > 0]),
    )
    with torch.no_grad():
        found = model([whole] * layers, x).argmax(1).numpy()
    return (found == y)[test].mean()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", help="of `espalier sample --write`")
    arguments.add_argument("--graph", help="the graph file, where it is not where it was")
    arguments.add_argument("--hidden", type=int, default=64)
    arguments.add_argument("--rate", type=float, default=0.01, help="of Adam")
    arguments.add_argument("--seed", type=int, default=0, help="of the first weights")
    arguments.add_argument("--workers", type=int, default=0, help="processes that read ahead")
    given = arguments.parse_args()

    torch.manual_seed(given.seed)
    source = Minibatches(given.folder, graph=given.graph, rows=True)
    layers = source.about["layers"]
    widths = [source.about["features"], *[given.hidden] * (layers - 1), source.about["classes"]]
    model = Sage(widths)
    optimizer = torch.optim.Adam(model.parameters(), lr=given.rate)
    for epoch in range(1, source.epochs + 1):
        # Batches are ready as they come: the loader must neither shuffle nor join them.
        loader = torch.utils.data.DataLoader(
            source, batch_size=None, sampler=source.of_epoch(epoch), num_workers=given.workers
        )
        total, right, seeds = 0.0, 0, 0
        for batch in loader:
            logits = model(batch.blocks, torch.from_numpy(batch.x).float())
            y = torch.from_numpy(batch.y).long()
            loss = torch.nn.functional.cross_entropy(logits, y, ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
            right += int((logits.argmax(1) == y).sum())
            seeds += len(y)
        print(f"epoch {epoch:3d}  loss {total / seeds:.4f}  accuracy {right / seeds:.4f}")
    graph = source.about["config"]["graph"]
    of_test = test_accuracy(model, layers, given.graph or graph["file"], graph["split"])
    print(f"test accuracy {of_test:.4f}")


if __name__ == "__main__":
    main()

"""A network of one's own on minibatches that Espalier's loader draws while it computes (docs/python.md): PyG's
SAGEConv, or with `--variant torch` the same layer by torch alone, `block @ x`. See protocol.py.

The order of the training vertices is Espalier's, not the protocol's. `--workers 1`: a thread of the library draws
and fetches a step ahead, beside torch's; 0: in turn with them. Its graph is that of the file, so features are
standardised by `graph.feature_norm`.
"""

import itertools
import os
import pathlib
import sys

import graph_file
import protocol

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))


def make_peer(options):
    if options.variant == "torch":
        import torch  # noqa: F401
    else:
        import torch_sparse  # noqa: F401  says why

    for variable in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        os.environ.setdefault(variable, "1")
    return LoaderPeer(options)


class LoaderPeer:
    remark = "layers by espalier.Loader"

    def __init__(self, options):
        import espalier

        self.plain = options.variant == "torch"
        self.job = espalier.open(
            graph={"file": options.graph, "feature_norm": "standard" if options.standardise else "none"},
            sampler={"fanout": options.fanout, "batch_size": options.batch}, model={"layers": len(options.fanout)},
            train={"seed": options.seed, "batches_per_step": 1})
        self.epochs = self.job.loader(epochs=options.repeats + 1, ahead=options.workers, arrays="torch").epochs()

    def load(self, graph, fanout):
        self.fanout = fanout

    def load_features(self, features, labels):
        """They come with a batch."""

    def batches(self, seeds, batch, workers):
        """The next epoch; of fewer seeds the first batches."""
        count = -(-len(seeds) // batch)
        if count <= protocol.BATCHES_CHECKED:
            return itertools.islice(self.job.loader(epochs=1, ahead=0, arrays="torch"), count)
        return next(self.epochs)

    def edges(self, sample):
        return sum(len(block.indices) for block in sample.blocks)

    def count_wrong(self, sample, graph):
        ids, wrong = sample.vertices.numpy(), 0
        for fanout, block in zip(self.fanout, reversed(sample.blocks)):
            sources, destinations = ids[block.edge_index.numpy()]
            wrong += graph_file.count_wrong_picks(graph, fanout, ids[: block.shape[0]], destinations, sources)
        return wrong

    def targets(self, sample):
        return sample.y

    def network(self, widths, dropout):
        return plain_network(widths, dropout) if self.plain else self.network_of_pyg(widths, dropout)

    def network_of_pyg(self, widths, dropout):
        from pyg_peer import make_network
        from torch_sparse import SparseTensor

        def adjacency(block):
            return SparseTensor(rowptr=block.indptr, col=block.indices.long(), sparse_sizes=block.shape,
                                is_sorted=True, trust_data=True)

        class Network(make_network(widths, dropout)):
            def forward(self, sample):
                x = sample.x
                for number, (convolution, block) in enumerate(zip(self.convolutions, sample.blocks)):
                    x = self.activate(number, convolution((x, x[: block.shape[0]]), adjacency(block)))
                return x

        return Network()


def plain_network(widths, dropout):
    import torch

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            pairs = list(zip(widths, widths[1:]))
            self.own = torch.nn.ModuleList(torch.nn.Linear(*pair) for pair in pairs)
            self.neighbours = torch.nn.ModuleList(torch.nn.Linear(*pair, bias=False) for pair in pairs)

        def forward(self, sample):
            x, last = sample.x, self.own[-1]
            for own, neighbours, block in zip(self.own, self.neighbours, sample.blocks):
                x = own(x[: block.shape[0]]) + neighbours(block @ x)
                x = x if own is last else torch.nn.functional.dropout(x.relu(), dropout, self.training)
            return x

        def layers(self):
            return [tuple(tensor.detach().numpy() for tensor in (own.weight.T, neighbours.weight.T, own.bias))
                    for own, neighbours in zip(self.own, self.neighbours)]

    return Network()


if __name__ == "__main__":
    protocol.run_peer(make_peer, __doc__)

"""PyG's side: NeighborLoader, or with `--variant layered` the older NeighborSampler. See protocol.py.

NeighborLoader draws for every vertex once, when it is first met: fanout[0] neighbours of a seed, fanout[1] of a
vertex that a seed drew, and so on. Its sample is one subgraph; every layer of the network computes on all of it
(cutting it down per layer, trim_to_layer, needs counts that only pyg-lib returns). `layered` draws a block per layer,
where all vertices so far draw anew, as Espalier and DGL do.

Edges are those of the subgraph, or the sum over the blocks.
"""

import warnings

import numpy as np

import graph_file
import protocol

warnings.filterwarnings("ignore")


def make_peer(options):
    import torch_geometric.typing as installed

    if not installed.WITH_TORCH_SPARSE:
        import torch_sparse  # noqa: F401  says why
    if options.variant == "layered":
        return LayeredPeer(options)
    if not (installed.WITH_PYG_LIB or installed.WITH_TORCH_SPARSE):
        raise ImportError("neither pyg-lib nor torch-sparse")
    return SubgraphPeer("pyg-lib" if installed.WITH_PYG_LIB else "torch-sparse")


def adjacency(graph):
    """Row v: the sources of edges into v, what PyG calls adj_t. No values, nothing to sort."""
    import torch
    from torch_sparse import SparseTensor

    return SparseTensor(rowptr=torch.from_numpy(graph.indptr), col=torch.from_numpy(graph.indices.astype(np.int64)),
                        sparse_sizes=(graph.nodes, graph.nodes), is_sorted=True, trust_data=True)


def make_network(widths, dropout):
    import torch
    from torch_geometric.nn import SAGEConv

    class Sage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolutions = torch.nn.ModuleList(
                SAGEConv(fan_in, fan_out) for fan_in, fan_out in zip(widths, widths[1:]))

        def activate(self, number, x):
            if number + 1 == len(self.convolutions):
                return x
            return torch.nn.functional.dropout(x.relu(), dropout, self.training)

        def layers(self):
            return [tuple(tensor.detach().numpy() for tensor in
                          (layer.lin_r.weight.T, layer.lin_l.weight.T, layer.lin_l.bias))
                    for layer in self.convolutions]

    return Sage


class SubgraphPeer:
    def __init__(self, library):
        self.remark = f"NeighborLoader by {library}"

    def load(self, graph, fanout):
        from torch_geometric.data import Data

        self.fanout = fanout
        self.data = Data(adj_t=adjacency(graph), num_nodes=graph.nodes)

    def load_features(self, features, labels):
        self.data.x, self.data.y = features, labels

    def batches(self, seeds, batch, workers):
        import torch
        from torch_geometric.loader import NeighborLoader

        return NeighborLoader(self.data, num_neighbors=self.fanout, input_nodes=torch.from_numpy(seeds),
                              batch_size=batch, num_workers=workers)

    def edges(self, sample):
        return sample.adj_t.nnz()

    def count_wrong(self, sample, graph):
        destinations, sources, _ = sample.adj_t.coo()
        destinations, sources, ids = destinations.numpy(), sources.numpy(), sample.n_id.numpy()
        wrong = len(ids) - len(np.unique(ids))
        begin, end, of_edges = 0, sample.batch_size, 0  # local ids are in the order in which vertices were met
        for fanout in self.fanout:
            hop = (destinations >= begin) & (destinations < end)
            of_edges += np.count_nonzero(hop)
            wrong += graph_file.count_wrong_picks(graph, fanout, ids[begin:end], ids[destinations[hop]],
                                                  ids[sources[hop]])
            begin, end = end, max(end, int(sources[hop].max(initial=-1)) + 1)
        return wrong + len(destinations) - of_edges

    def targets(self, sample):
        return sample.y[: sample.batch_size]

    def network(self, widths, dropout):
        class Network(make_network(widths, dropout)):
            def forward(self, sample):
                x = sample.x
                for number, convolution in enumerate(self.convolutions):
                    x = self.activate(number, convolution(x, sample.adj_t))
                return x[: sample.batch_size]

        return Network()


class LayeredPeer:
    remark = "layered NeighborSampler by torch-sparse"

    def __init__(self, options):
        self.options = options

    def load(self, graph, fanout):
        self.fanout = fanout
        self.adjacency = adjacency(graph)

    def load_features(self, features, labels):
        self.features, self.all_labels = features, labels

    def batches(self, seeds, batch, workers):
        import torch
        from torch_geometric.loader import NeighborSampler

        return NeighborSampler(self.adjacency, node_idx=torch.from_numpy(seeds), sizes=self.fanout,
                               return_e_id=False, batch_size=batch, num_workers=workers)

    def edges(self, sample):
        return sum(block.adj_t.nnz() for block in sample[2])

    def count_wrong(self, sample, graph):
        _, ids, blocks = sample
        ids, wrong = ids.numpy(), len(ids) - len(np.unique(ids))
        for fanout, block in zip(self.fanout, reversed(blocks)):  # blocks: first the one that reads the features
            destinations, sources, _ = block.adj_t.coo()
            wrong += graph_file.count_wrong_picks(graph, fanout, ids[: block.size[1]], ids[destinations.numpy()],
                                                  ids[sources.numpy()])
        return wrong

    def targets(self, sample):
        return self.all_labels[sample[1][: sample[0]]]

    def network(self, widths, dropout):
        features = self.features

        class Network(make_network(widths, dropout)):
            def forward(self, sample):
                _, ids, blocks = sample
                x = features[ids]
                for number, (convolution, block) in enumerate(zip(self.convolutions, blocks)):
                    x = self.activate(number, convolution((x, x[: block.size[1]]), block.adj_t))
                return x

        return Network()


if __name__ == "__main__":
    protocol.run_peer(make_peer, __doc__)

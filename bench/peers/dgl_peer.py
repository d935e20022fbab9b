"""DGL's side: NeighborSampler and DataLoader, or with `--variant graphbolt` GraphBolt's pipeline. See protocol.py.

Both draw a block per layer, in which all vertices so far draw anew, as Espalier does. Edges are the sum over the
blocks. Their fanouts begin at the layer that reads the features.
"""

import warnings

import numpy as np

import graph_file
import protocol

warnings.filterwarnings("ignore")


def make_peer(options):
    if options.variant == "graphbolt":
        import dgl.graphbolt  # noqa: F401

        return GraphBoltPeer(options.sampler)
    import dgl  # noqa: F401

    return DglPeer(options.sampler)


def make_network(widths, dropout):
    import torch
    from dgl.nn import SAGEConv

    class Sage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolutions = torch.nn.ModuleList(
                SAGEConv(fan_in, fan_out, "mean") for fan_in, fan_out in zip(widths, widths[1:]))

        def through(self, blocks, x):
            for number, (convolution, block) in enumerate(zip(self.convolutions, blocks)):
                x = convolution(block, x)
                if number + 1 < len(self.convolutions):
                    x = torch.nn.functional.dropout(x.relu(), dropout, self.training)
            return x

        def layers(self):
            return [tuple(tensor.detach().numpy() for tensor in
                          (layer.fc_self.weight.T, layer.fc_neigh.weight.T, layer.fc_self.bias))
                    for layer in self.convolutions]

    return Sage


class DglPeer:
    fetched = {}
    file_ids = None  # [n]: the file's id of each of DGL's; none: the same

    def __init__(self, sampler="neighbor"):
        self.sampler = self.remark = {"neighbor": "NeighborSampler", "labor": "LaborSampler"}[sampler]

    def load(self, graph, fanout):
        import dgl
        import torch

        # 64-bit ids, DGL's default. 32 bits would halve the memory, but with two threads 2.1.0 then samples wrong from
        # the second batch on (ids beyond the block; count_wrong finds them, backward crashes on them).
        self.fanout = fanout
        indptr, indices = torch.from_numpy(graph.indptr), torch.from_numpy(graph.indices.astype(np.int64))
        self.graph = dgl.graph(("csc", (indptr, indices, [])), num_nodes=graph.nodes)

    def load_features(self, features, labels):
        self.graph.ndata["x"], self.graph.ndata["y"] = features, labels
        self.fetched = {"prefetch_node_feats": ["x"], "prefetch_labels": ["y"]}

    def batches(self, seeds, batch, workers):
        import dgl.dataloading
        import torch

        sampler = getattr(dgl.dataloading, self.sampler)(self.fanout[::-1], **self.fetched)
        return dgl.dataloading.DataLoader(self.graph, torch.from_numpy(seeds).to(self.graph.idtype), sampler,
                                          batch_size=batch, num_workers=workers)

    def edges(self, sample):
        return sum(block.num_edges() for block in sample[2])

    def count_wrong(self, sample, graph):
        import dgl

        wrong = 0
        for fanout, block in zip(self.fanout, reversed(sample[2])):
            sources, destinations = block.edges()
            frontier, all_ids = (ids.numpy() if self.file_ids is None else self.file_ids[ids.numpy()]
                                 for ids in (block.dstdata[dgl.NID], block.srcdata[dgl.NID]))
            wrong += len(frontier) - len(np.unique(frontier))
            wrong += graph_file.count_wrong_picks(graph, fanout, frontier, frontier[destinations.numpy()],
                                                  all_ids[sources.numpy()], self.sampler == "NeighborSampler")
        return wrong

    def targets(self, sample):
        return sample[2][-1].dstdata["y"]

    def network(self, widths, dropout):
        class Network(make_network(widths, dropout)):
            def forward(self, sample):
                return self.through(sample[2], sample[2][0].srcdata["x"])

        return Network()


class GraphBoltPeer:
    def __init__(self, sampler="neighbor"):
        self.sampler = {"neighbor": "sample_neighbor", "labor": "sample_layer_neighbor"}[sampler]
        self.remark = f"GraphBolt's {self.sampler}"

    def load(self, graph, fanout):
        import dgl.graphbolt as graphbolt
        import torch

        self.fanout, self.features = fanout, None
        self.graph = graphbolt.fused_csc_sampling_graph(
            torch.from_numpy(graph.indptr), torch.from_numpy(graph.indices))

    def load_features(self, features, labels):
        import dgl.graphbolt as graphbolt

        self.all_labels = labels
        self.features = graphbolt.BasicFeatureStore(
            {("node", None, "x"): graphbolt.TorchBasedFeature(features)})

    def batches(self, seeds, batch, workers):
        import dgl.graphbolt as graphbolt
        import torch

        items = graphbolt.ItemSet(torch.from_numpy(seeds).to(self.graph.indices.dtype), names="seed_nodes")
        pipe = graphbolt.ItemSampler(items, batch_size=batch)
        pipe = getattr(pipe, self.sampler)(self.graph, self.fanout[::-1])
        if self.features is not None:
            pipe = pipe.fetch_feature(self.features, node_feature_keys=["x"])
        elif workers:  # what stands before the fetch runs in the workers
            pipe = pipe.fetch_feature(graphbolt.BasicFeatureStore({}))
        return graphbolt.DataLoader(pipe, num_workers=workers)

    def edges(self, sample):
        return sum(len(hop.sampled_csc.indices) for hop in sample.sampled_subgraphs)

    def count_wrong(self, sample, graph):
        wrong = 0
        for fanout, hop in zip(self.fanout, reversed(sample.sampled_subgraphs)):
            frontier, all_ids = hop.original_column_node_ids.numpy(), hop.original_row_node_ids.numpy()
            destinations = np.repeat(np.arange(len(frontier)), np.diff(hop.sampled_csc.indptr.numpy()))
            wrong += len(frontier) - len(np.unique(frontier))
            wrong += graph_file.count_wrong_picks(graph, fanout, frontier, frontier[destinations],
                                                  all_ids[hop.sampled_csc.indices.numpy()],
                                                  self.sampler == "sample_neighbor")
        return wrong

    def targets(self, sample):
        return self.all_labels[sample.seed_nodes]

    def network(self, widths, dropout):
        class Network(make_network(widths, dropout)):
            def forward(self, sample):
                return self.through(sample.blocks, sample.node_features["x"])

        return Network()


if __name__ == "__main__":
    protocol.run_peer(make_peer, __doc__)

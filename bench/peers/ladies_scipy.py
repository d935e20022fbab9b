"""LADIES in SciPy: the algorithm that Zou et al. published with their paper (NeurIPS 2019), written anew from its
description, at one thread as theirs. See protocol.py. A fanout is the number of vertices that a layer draws.

With R = D^-1 (A + I) and F the frontier, for each layer beginning at the batch:

    w = column sums of R[F, :] squared,  p = w / sum w
    picks: min(fanout, support of p) vertices by p without replacement
    F' = picks and the batch's own vertices, ascending
    block = R[F, F'] with column v divided by p_v, then rows normalised to sum 1

Edges are the entries of all blocks, the diagonal of A + I among them, which Espalier's `reference` mode counts too.
"""

import numpy as np

import protocol


def make_peer(options):
    import scipy.sparse  # noqa: F401

    return LadiesPeer(options.seed)


def normalise_rows(matrix):
    import scipy.sparse

    sums = np.asarray(matrix.sum(axis=1)).ravel()
    return scipy.sparse.diags(np.divide(1, sums, out=np.zeros_like(sums), where=sums != 0)).dot(matrix)


class LadiesPeer:
    remark = "SciPy"

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)

    def load(self, graph, fanout):
        import scipy.sparse

        shape = (graph.nodes, graph.nodes)
        ones = np.ones(graph.edges, dtype=np.float64)
        adjacency = scipy.sparse.csr_matrix((ones, graph.indices, graph.indptr), shape=shape)
        self.fanout = fanout
        self.matrix = normalise_rows(adjacency + scipy.sparse.eye(graph.nodes, format="csr")).tocsr()

    def batches(self, seeds, batch, workers):
        if workers:
            raise ValueError("ladies_scipy.py samples in its own process")
        return (self.sample(seeds[begin: begin + batch]) for begin in range(0, len(seeds), batch))

    def sample(self, batch):
        frontier, layers = batch, []
        for fanout in self.fanout:
            rows = self.matrix[frontier, :]
            weights = np.asarray(rows.multiply(rows).sum(axis=0)).ravel()
            probability = weights / weights.sum()
            count = min(np.count_nonzero(probability), fanout)
            picks = self.random.choice(len(probability), count, p=probability, replace=False)
            columns = np.union1d(picks, batch)
            block = normalise_rows(rows[:, columns].multiply(1 / probability[columns])).tocsr()
            layers.append((frontier, columns, picks, block))
            frontier = columns
        return layers

    def edges(self, sample):
        return sum(block.nnz for *_, block in sample)

    def count_wrong(self, sample, graph):
        """Too few or repeated picks, entries that A + I does not have or that are missing, rows whose sum is not 1."""
        wrong = 0
        for fanout, (frontier, columns, picks, block) in zip(self.fanout, sample):
            wrong += len(picks) - len(np.unique(picks)) + np.count_nonzero(~np.isin(picks, columns))
            inside = np.zeros(graph.nodes, dtype=bool)
            inside[columns] = True
            support = set()
            for row, vertex in enumerate(frontier):
                neighbours = graph.indices[graph.indptr[vertex]: graph.indptr[vertex + 1]]
                support.update(neighbours.tolist(), [int(vertex)])
                expected = np.union1d(neighbours[inside[neighbours]], [vertex] if inside[vertex] else [])
                found = np.sort(columns[block.indices[block.indptr[row]: block.indptr[row + 1]]])
                wrong += len(np.setxor1d(expected, found)) + len(found) - len(np.unique(found))
            wrong += abs(len(picks) - min(fanout, len(support))) + sum(int(v) not in support for v in picks)
            sums = np.asarray(block.sum(axis=1)).ravel()
            wrong += np.count_nonzero((np.abs(sums - 1) > 1e-6) & (np.diff(block.indptr) > 0))
        return int(wrong)


if __name__ == "__main__":
    protocol.run_peer(make_peer, __doc__)

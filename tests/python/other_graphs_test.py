"""Graphs of other libraries: the file is that of their edges, given as arrays.

SciPy and NetworkX themselves where they are; PyTorch Geometric and DGL by objects that answer as
theirs do, and themselves where they are.
"""

import contextlib

import numpy as np

from tests.app.program import FolderTest, arrays_of
from tests.python import DataTest, needs

import espalier

with contextlib.suppress(ImportError):
    import networkx
with contextlib.suppress(ImportError):
    import scipy.sparse

SEED = 5


class Store:
    """As a storage of PyTorch Geometric is: parts by their names, as attributes, too."""

    def __init__(self, **parts):
        self.__dict__.update(parts)
        self.get, self.keys = self.__dict__.get, self.__dict__.keys

    def __getitem__(self, name):
        return self.__dict__[name]

    def __contains__(self, name):
        return name in self.__dict__


class Hetero:
    def __init__(self, stores):
        self.stores = stores
        self.node_types = [key for key in stores if isinstance(key, str)]
        self.edge_types = [key for key in stores if not isinstance(key, str)]

    def __getitem__(self, key):
        return self.stores[key]


class GraphTest(DataTest, FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(SEED)
        self.ends = self.random.integers(0, 20, (2, 90))
        self.x = self.random.normal(size=(20, 3)).astype(np.float32)
        self.y, self.mask = self.random.integers(0, 3, 20), self.random.random(20) < 0.5
        self.features = np.arange(90.0)

    def written(self, *arguments, **options):
        espalier.write_graph(self.folder / "graph.h5", *arguments, overwrite=True, **options)
        return {name: array.tolist() for name, array in arrays_of(self.folder / "graph.h5").items()}

    def expected(self):
        splits = {"train": self.mask, "valid": ~self.mask}
        return self.written(self.ends, self.x, self.y, **splits, edge_features=self.features)

    def typed(self, order=(("a", "to", "b"), ("b", "on", "b"))):
        """The edges of a graph with two types, by relation, and its file with relations in this order."""
        edges = {("a", "to", "b"): self.ends, ("b", "on", "b"): self.ends[::-1]}
        return edges, self.written(
            {key: edges[key] for key in order},
            {"b": self.x},
            {"b": self.y},
            train={"b": self.mask},
            num_nodes={"a": 20},
            edge_features={("a", "to", "b"): self.features},
        )


@needs("scipy")
class SciPy(GraphTest):
    def test_the_rows_are_said(self):
        matrix = scipy.sparse.random(15, 15, 0.2, format="csr", random_state=SEED)
        source, target = matrix.nonzero()
        weights = np.asarray(matrix[source, target]).ravel()
        for kind in ("csr", "csc", "coo", "lil"):
            self.assertEqual(
                self.written(matrix.asformat(kind), matrix_rows="sources"),
                self.written([source, target], num_nodes=15, edge_weight=weights),
            )
        self.assertEqual(
            self.written(matrix, matrix_rows="targets"),
            self.written([target, source], num_nodes=15, edge_weight=weights),
        )
        self.refused("not symmetric: say which end of an edge its rows are", self.written, matrix)
        matrix = matrix + matrix.T
        self.assertEqual(self.written(matrix)["graph/indptr"][-1], matrix.nnz)

    def test_symmetric_is_so_in_entries_and_values(self):
        for given, symmetric in (
            (([1, 1], ([0, 1], [1, 0])), True),
            (([1, 2], ([0, 1], [1, 0])), False),
            (([1, 1, 0], ([0, 1, 2], [1, 0, 1])), False),  # a zero that is stored is an edge
            (([1, 2, 1], ([0, 1, 0], [1, 0, 1])), True),  # 1 + 1 = 2
        ):
            for kind in (float, int, bool) if 2 not in given[0] else (float, int):
                matrix = scipy.sparse.coo_matrix((np.array(given[0], kind), given[1]), shape=(3, 3))
                before = matrix.toarray().tolist(), matrix.nnz
                if symmetric:
                    self.written(matrix)
                else:
                    self.refused("is not symmetric", self.written, matrix)
                self.assertEqual((matrix.toarray().tolist(), matrix.nnz), before)

    def test_ones_are_no_weights(self):
        self.assertNotIn("graph/weights", self.written(scipy.sparse.identity(4), directed=True))

    def test_between_types(self):
        matrix = scipy.sparse.coo_matrix((np.ones(2), ([0, 1], [4, 2])), shape=(3, 6))
        self.assertEqual(
            self.written({("a", "to", "b"): matrix}, matrix_rows="sources"),
            self.written({("a", "to", "b"): [[0, 1], [4, 2]]}, num_nodes={"a": 3, "b": 6}),
        )

    def test_features_that_are_sparse(self):
        self.assertEqual(
            self.written(self.ends, scipy.sparse.csr_matrix(self.x)),
            self.written(self.ends, self.x),
            "where each row is full a matrix takes less",
        )
        x = np.zeros((20, 30), np.float32)
        x[3, [4, 17, 29]], x[8, 0] = (1, 0.5, -2), 3
        for matrix in (scipy.sparse.csr_array(x), scipy.sparse.coo_matrix(x), scipy.sparse.lil_matrix(x)):
            found = self.written(self.ends, matrix)
            read = scipy.sparse.csr_array(
                tuple(found[f"nodes/features/{part}"] for part in ("values", "indices", "indptr")),
                shape=x.shape,
            )
            np.testing.assert_array_equal(read.toarray(), x)
        twice = scipy.sparse.coo_matrix(([1, 2, 0], ([0, 0, 1], [5, 5, 2])), shape=(20, 30))
        self.assertEqual(self.written(self.ends, twice)["nodes/features/values"], [3])
        x[8, 0] = np.inf
        matrix = scipy.sparse.csr_matrix(x)
        self.refused("x: row 8, column 0 is inf, but features", self.written, self.ends, matrix)
        words = "x has 20 rows, but there are 21 vertices"
        self.refused(words, self.written, self.ends, matrix, num_nodes=21)


class Pandas(GraphTest):
    @needs("pandas")
    def test_frames_and_series(self):
        import pandas

        edges = pandas.DataFrame({"from": self.ends[0], "to": self.ends[1]})
        names = [f"v{k}" for k in range(20)]
        kinds = ["a", "b", None, "a"] * 5
        known = np.array([kind is not None for kind in kinds])
        expected = self.written(self.ends, self.x, kinds, train=known & self.mask, ids=names)
        frame = pandas.DataFrame(self.x, index=names)
        mask = pandas.Series(known & self.mask, index=names)
        for kind in ("object", "string", "category"):
            y = pandas.Series(kinds, index=names, dtype=kind)
            for ends in (edges.T, (edges["from"], edges.to)):
                found = self.written(ends, frame, y, train=mask, ids=frame.index)
                self.assertEqual(found, expected, kind)
        with self.assertRaisesRegex(espalier.DataError, r"train(\[1\] is <NA>| holds floats)"):
            self.written(self.ends, self.x, train=pandas.Series([1, pandas.NA], dtype="Int64"))


@needs("networkx")
class NetworkX(GraphTest):
    def test_nodes_keep_their_names_and_edges_go_both_ways(self):
        graph = networkx.Graph()
        for at, name in enumerate("ccab"):
            graph.add_node(name, x=[at, 1.0], **({"y": "even"} if name != "b" else {}))
        graph.add_edge("a", "c", weight=2.0)
        graph.add_edge("b", "b")
        self.assertEqual(
            self.written(graph),
            self.written(
                [[0, 1, 2], [1, 0, 2]],
                [[1, 1], [2, 1], [3, 1]],
                ["even", "even", None],
                edge_weight=[2, 2, 1],
                ids=list("cab"),
            ),
        )

    def test_with_a_direction(self):
        graph = networkx.DiGraph([(0, 1), (1, 2)])
        networkx.set_node_attributes(graph, {0: True, 2: True}, "train")
        self.assertEqual(self.written(graph), self.written([[0, 1], [1, 2]], train=[0, 2]))
        graph.add_edge(0, (1, 2))
        self.refused("names of nodes are texts, or whole numbers", self.written, graph)


class PyTorchGeometric(GraphTest):
    def of_vertices(self, array):
        return {"x": array(self.x), "y": array(self.y), "train_mask": array(self.mask)}

    def of_edges(self, array, ends):
        return {"edge_index": array(ends), "edge_attr": array(self.features)}

    def check_data(self, array, data):
        expected = self.expected()
        graph = data(
            **self.of_vertices(array), val_mask=array(~self.mask), **self.of_edges(array, self.ends)
        )
        self.assertEqual(self.written(graph), expected)
        what_is_said_wins = self.written(graph, train=~self.mask, valid=self.mask)
        self.assertNotEqual(what_is_said_wins, expected)

    def check_hetero(self, array, hetero):
        edges, expected = self.typed()
        graph = hetero(
            {
                "b": self.of_vertices(array),
                "a": {"num_nodes": 20},
                ("a", "to", "b"): self.of_edges(array, edges["a", "to", "b"]),
                ("b", "on", "b"): {"edge_index": array(edges["b", "on", "b"].copy())},
            }
        )
        self.assertEqual(self.written(graph), expected)

    def test_what_answers_as_data(self):
        self.check_data(np.asarray, lambda **parts: Store(**parts, num_nodes=20))

    def test_what_answers_as_hetero_data(self):
        self.check_hetero(
            np.asarray,
            lambda stores: Hetero(
                {key: Store(**({"num_nodes": 20} | parts)) for key, parts in stores.items()}
            ),
        )

    @needs("torch_geometric")
    def test_data(self):
        import torch
        from torch_geometric.data import Data

        self.check_data(torch.from_numpy, Data)

    @needs("torch_geometric")
    def test_hetero_data(self):
        import torch
        from torch_geometric.data import HeteroData

        self.check_hetero(lambda array: torch.from_numpy(np.ascontiguousarray(array)), HeteroData)

    def test_without_edge_index(self):
        store = Store(edge_index=None, adj_t=1, num_nodes=2)
        self.refused("has no edge_index; make it of adj_t", self.written, store)


class View:
    """As graph.nodes and graph.edges of DGL are: called, or asked for the data of a type."""

    def __init__(self, data, edges=None):
        self.data, self.edges = data, edges

    def __getitem__(self, kind):
        return Store(data=self.data.get(kind, {}))

    def __call__(self, etype, order):
        return self.edges[etype]


class Dgl(GraphTest):
    def check(self, array, make):
        of_vertices = {"feat": array(self.x), "label": array(self.y), "train_mask": array(self.mask)}
        edges = {"feat": array(self.features)}
        plain = make(
            {("_N", "_E", "_N"): self.ends},
            {"_N": of_vertices | {"val_mask": array(~self.mask)}},
            {("_N", "_E", "_N"): edges},
        )
        self.assertEqual(self.written(plain), self.expected())
        given, _ = self.typed()
        graph = make(given, {"b": of_vertices}, {("a", "to", "b"): edges})
        self.assertEqual(self.written(graph), self.typed(graph.canonical_etypes)[1])

    def test_what_answers_as_dgl(self):
        def make(edges, vertices, of_edges):
            return Store(
                canonical_etypes=list(edges),
                ntypes=sorted({end for key in edges for end in (key[0], key[2])}),
                edges=View(of_edges, {key: tuple(ends) for key, ends in edges.items()}),
                nodes=View(vertices),
                num_nodes=lambda kind: 20,
            )

        self.check(np.asarray, make)

    @needs("dgl")
    def test_dgl(self):
        import dgl
        import torch

        def make(edges, vertices, of_edges):
            graph = dgl.heterograph(
                {
                    key: (torch.tensor(ends[0].copy()), torch.tensor(ends[1].copy()))
                    for key, ends in edges.items()
                },
                {end: 20 for key in edges for end in (key[0], key[2])},
            )
            for kind, parts in vertices.items():
                graph.nodes[kind].data.update(parts)
            for kind, parts in of_edges.items():
                graph.edges[kind].data.update(parts)
            return graph

        self.check(torch.from_numpy, make)

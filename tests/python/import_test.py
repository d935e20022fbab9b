"""write_graph and `espalier import ogb` make the same data sets of the same edges, weights,
features, labels and splits, whatever becomes of edges that are listed more than once.
"""

import gzip
import itertools

import numpy as np

from tests.app.program import ProgramTest, arrays_of
from tests.python import SEED, DataTest

import espalier


class AsImport(DataTest, ProgramTest):
    def put(self, name, rows):
        path = self.folder / "ogb" / (name + ".csv.gz")
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [",".join(map(str, np.atleast_1d(row).tolist())) for row in np.asarray(rows)]
        path.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))

    def test_the_same_data_sets(self):
        random, vertices, edges = np.random.default_rng(SEED), 12, 90
        ends = random.integers(0, vertices, (2, edges))
        x, of_edges = (random.integers(0, 99, (count, 3)) / 4 for count in (vertices, edges))
        y, parts = random.integers(0, 4, vertices), np.split(random.permutation(vertices), [6, 9])
        splits = dict(zip(("train", "valid", "test"), parts))
        raw = {
            "edge": ends.T, "edge-feat": of_edges, "node-feat": x, "node-label": y,
            "num-node-list": [vertices], "num-edge-list": [edges],
        }  # fmt: skip
        for name, rows in raw.items():
            self.put(f"raw/{name}", rows)
        for name, ids in splits.items():
            self.put(f"split/one/{name}", np.sort(ids))
        hows = ("sum", "mean", "max", "first", "last", "count")
        of_features = itertools.cycle(("kept", "sum", "kept", "mean", "last"))
        for how, both_ways in itertools.product(hows, (False, True)):
            of = next(of_features)
            with self.subTest(seed=SEED, how=how, both_ways=both_ways, of=of):
                options = ["--duplicate-features", of] + ["--symmetrize"] * both_ways
                self.succeed(
                    "-q", "import", "ogb", self.folder / "ogb", "-o", self.graph, "--overwrite",
                    "--edge-weight", 1, "--duplicates", how, *options,
                )  # fmt: skip
                espalier.write_graph(
                    self.folder / "ours.h5",
                    ends,
                    x,
                    y,
                    **splits,
                    edge_weight=of_edges[:, 1],
                    edge_features=of_edges[:, [0, 2]],
                    duplicates=how,
                    duplicate_features=of,
                    directed=False if both_ways else None,
                    overwrite=True,
                )
                theirs, ours = arrays_of(self.graph), arrays_of(self.folder / "ours.h5")
                self.assertEqual(sorted(theirs), sorted(ours))
                for name, array in theirs.items():
                    self.assertEqual(array.dtype, ours[name].dtype, name)
                    np.testing.assert_array_equal(array, ours[name], name)

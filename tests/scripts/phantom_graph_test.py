"""scripts/phantom_graph.py: a graph of sizes and degrees, for a plan.

Laws: its degrees add up, whatever was rounded or cut off, and are the same for every run; it takes the room of its offsets and splits;
`plan --draw 0` foretells of it what a graph of such sizes needs.
"""

import json
import unittest

import h5py
import numpy as np

from scripts.phantom_graph import degrees_of
from tests.app.program import ROOT, FolderTest, espalier, run_python


class Phantom(FolderTest):
    def test_degrees_add_up(self):
        for nodes, edges, sigma in ((1, 0, 1.2), (7, 3, 1.2), (1000, 12345, 0), (1000, 12345, 1.2), (1000, 400000, 3)):
            degrees = degrees_of(nodes, edges, sigma)
            self.assertEqual((degrees.size, degrees.sum()), (nodes, edges))
            self.assertGreaterEqual(degrees.min(), 0)
            self.assertTrue(np.array_equal(degrees, degrees_of(nodes, edges, sigma)))
        self.assertLessEqual(np.ptp(degrees_of(1000, 12345, 0)), 1)

    def test_a_plan(self):
        graph = self.folder / "phantom.h5"
        made = run_python(ROOT / "scripts/phantom_graph.py", graph, "--nodes", 50000, "--edges", 1400000, "--features", 128, "--classes", 17,
                          "--split", 2048, 300, 400)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertLess(graph.stat().st_size, 2000000, "features alone have 25 MB")
        with h5py.File(graph) as file:
            self.assertEqual([file[f"split/{name}"].size for name in ("train", "valid", "test")], [2048, 300, 400])
        code, said = espalier("plan", ROOT / "inputs/papers100m.toml", "--ranks", 4, "--draw", 0, "--machine",
                              ROOT / "inputs/machines/two-sockets.toml", f"graph.file={graph}", f"output.dir={self.folder}")
        self.assertEqual(code, 0, said)
        epoch = json.loads((self.folder / "plan.json").read_text())["epochs"][0]
        self.assertEqual(epoch["batches"], 2)
        self.assertGreater(epoch["seconds"]["fetch"], 0)


if __name__ == "__main__":
    unittest.main()

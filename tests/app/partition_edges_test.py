"""Parts of edges: espalier partition --edges.

Laws: an entry of A has the part of its reverse, in whatever relation; a loop that of its vertex's first pair, or v mod parts; the file
is the same bytes for any number of ranks; what is printed is what numpy counts in it. What does not fit together is refused.
"""

import re
import unittest

import numpy as np

from tests.app.program import SHARED_DATA, ProgramTest, attributes_of, awkward_graph, read

METHODS = ("expansion", "dne", "adadne", "hdrf")
TYPED = ("--types", "author=60:4,paper=90:3", "--relations", "author.writes.paper=400,paper.cites.paper=500")


def vertices_and_sources(path):
    """Row and source of each entry, by ids in the whole graph, in the order of the file."""
    indptr, indices = read(path, "graph/indptr", "graph/indices")
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices.astype(np.int64)


class PartitionEdgesTest(ProgramTest):
    def cut(self, graph, *options, ranks=1, name="graph.cut.h5"):
        """What is printed, and the parts."""
        path = self.folder / name
        output = self.succeed("partition", graph, "--edges", *options, "-o", path, "--overwrite", ranks=ranks)
        about = attributes_of(path)
        self.assertEqual((about["format"], about["version"]), (b"espalier-edge-parts", 1))
        part, entries = read(path, "part", "entries")
        self.assertEqual(entries.tolist(), np.bincount(part, minlength=about["parts"]).tolist())
        return output, part

    def check(self, graph, output, part, parts):
        vertices, sources = vertices_and_sources(graph)
        self.assertEqual(len(part), len(vertices))
        of_pair = {}
        for v, u, p in zip(vertices, sources, part):
            if u != v:
                self.assertEqual(of_pair.setdefault((min(u, v), max(u, v)), p), p, (v, u))
        first = {}
        for (v, u), p in sorted([*of_pair.items(), *(((u, v), p) for (v, u), p in of_pair.items())]):
            first.setdefault(v, p)
        for v, u, p in zip(vertices, sources, part):
            if u == v:
                self.assertEqual(p, first.get(v, v % parts), v)
        copies = {(v, p) for pair, p in of_pair.items() for v in pair}
        sizes = [np.bincount(np.array(of, dtype=int), minlength=parts) for of in ([*of_pair.values()], [p for _, p in copies])]
        with np.errstate(divide="ignore"):
            counted = [len(copies) / len(first), *(of.max() / of.min() for of in sizes)]
        printed = [re.search(rf"([\d.]+|inf) {words}", output)[1] for words in ("of a vertex", "in edges", "in vertices")]
        self.assertEqual(printed, [f"{number:.3f}" for number in counted])

    def test_pairs_and_loops_of_an_awkward_graph(self):
        awkward_graph(self.graph)
        for method in METHODS:
            with self.subTest(method):
                self.check(self.graph, *self.cut(self.graph, "--method", method, "--parts", 3), 3)

    def test_relations_share_parts(self):
        self.succeed("generate", "planted", *TYPED, "--classes", 3, "-o", self.graph)
        output, part = self.cut(self.graph, "--parts", 5)
        self.check(self.graph, output, part, 5)
        self.assertEqual(len(set(part)), 5)

    def test_same_bytes_on_any_ranks(self):
        self.succeed("generate", "rmat", "--scale", 9, "--features", 0, "-o", self.graph)
        for method in METHODS:
            for ranks in (1, 3):
                self.cut(self.graph, "--method", method, "--parts", 300, "--seed", 3 * (method != "hdrf"), ranks=ranks, name=f"{ranks}.h5")
            self.assertEqual((self.folder / "1.h5").read_bytes(), (self.folder / "3.h5").read_bytes(), method)
        self.assertEqual(read(self.folder / "1.h5", "part").dtype, np.uint16)

    def quality(self, *options):
        """Copies, largest part over smallest in edges and in vertices."""
        return [float(x) for x in re.findall(r"([\d.]+) (?:of a vertex|in edges|in vertices)", self.cut(self.graph, *options)[0])]

    @unittest.skipUnless(SHARED_DATA.exists(), f"{SHARED_DATA} is not there")
    def test_ours_beside_others(self):
        """On Debian's packages and a small dense graph."""
        for name, split in (("debian_bookworm", "random_seed0"), ("amazon_computers", "shchur_seed0")):
            self.succeed("import", "ogb", SHARED_DATA / name, "--split", split, "--symmetrize", "-o", self.graph, "--overwrite")
            for parts in (4, 8, 16):
                with self.subTest(name, parts=parts):
                    copies, edges, vertices = self.quality("--parts", parts)
                    for method, most in (("dne", 1.02), ("hdrf", 0.75)):
                        self.assertLess(copies, most * self.quality("--parts", parts, "--method", method)[0])
                    self.assertLess(edges, 1.05)
                    if name == "debian_bookworm" and parts == 8:
                        self.assertLess(vertices, 1.7)

    def test_vertices_are_even_beside_hubs(self):
        self.succeed("generate", "rmat", "--scale", 13, "--symmetrize", "--features", 0, "-o", self.graph)
        for seed in range(3):
            _, edges, vertices = self.quality("--parts", 16, "--seed", seed)
            self.assertLess(edges, 1.05)
            self.assertLess(vertices, 1.05)

    def test_usual_name_and_parts(self):
        self.succeed("generate", "rmat", "--scale", 8, "--features", 0, "-o", self.graph)
        output = self.succeed("partition", self.graph, "--edges")
        self.assertIn("64 parts by expansion", output)
        path = self.graph.with_suffix(".cut.h5")
        about = attributes_of(path)
        self.assertEqual((read(path, "part").dtype, about["parts"], about["method"]), (np.uint8, 64, b"expansion"))

    def test_what_does_not_fit(self):
        awkward_graph(self.graph)
        for words, options in ((["--parts 3", "--edges"], ("--parts", 3)),
                               (["--clusters", "orders of vertices"], ("--edges", "--clusters", 4)),
                               (["--fast", "orders of vertices"], ("--edges", "--fast")),
                               (["--seed 1", "hdrf", "nothing to chance"], ("--edges", "--method", "hdrf", "--seed", 1)),
                               (["metis", "expansion, dne, adadne, hdrf"], ("--edges", "--method", "metis")),
                               (["--parts", "32768"], ("--edges", "--parts", 40000))):
            with self.subTest(options):
                self.fail_with(2, words, "partition", self.graph, *options)
        self.assertEqual([*self.folder.glob("*.cut.h5"), *self.folder.glob("*.order.h5")], [])

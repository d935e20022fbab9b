"""Parts of edges: espalier partition --edges.

Laws: an entry of A has the part of its reverse, in whatever relation; a loop that of its vertex's first pair, or v mod parts; the file
is the same bytes for any number of ranks; what is printed is what numpy counts in it. `--method cut` gives a vertex to the part with
most of its row. What does not fit together is refused.
"""

import re
import unittest

import h5py
import numpy as np

from tests.app.program import SHARED_DATA, ProgramTest, attributes_of, awkward_graph, read, set_at

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

    def replace(self, name, part, parts):
        with h5py.File(self.folder / name, "r+") as file:
            file["part"][:], file["entries"][:] = part, np.bincount(part, minlength=parts)
            del file["part"].attrs["digest"], file["entries"].attrs["digest"]

    def owners(self, *options, ranks=1):
        """What `--method cut` makes of it."""
        path = self.folder / "by.order.h5"
        self.succeed("partition", self.graph, "--method", "cut", "--by", self.folder / "graph.cut.h5", *options, "-o", path, "--overwrite", ranks=ranks)
        self.assertEqual(attributes_of(path)["method"], b"cut")
        cluster, weights = read(path, "cluster", "weights")
        self.assertEqual(weights[:, 0].tolist(), np.bincount(cluster, minlength=len(weights)).tolist())
        return cluster.tolist(), len(weights), path.read_bytes()

    def most_of(self, part, parts):
        """Of each vertex the part of most entries in its row, by trying all."""
        indptr = read(self.graph, "graph/indptr")
        most = []
        for v, (begin, end) in enumerate(zip(indptr, indptr[1:])):
            of_row = part[begin:end].tolist()
            most.append(max(range(parts), key=lambda p: (of_row.count(p), -p)) if of_row else v % parts)
        return most

    def test_owners_have_most_of_a_row(self):
        """Of parts at random, in which ties are many, of as many entries but for what cannot be shared: so runs of them are known."""
        for graph in (lambda: awkward_graph(self.graph), lambda: self.succeed("generate", "planted", *TYPED, "--classes", 3, "-o", self.graph, "--overwrite")):
            graph()
            _, part = self.cut(self.graph, "--parts", 12)
            part = np.random.default_rng(2).permutation(np.arange(len(part)) * 12 // len(part))
            self.replace("graph.cut.h5", part, 12)
            for parts, options in ((12, ()), (3, ("--parts", 3)), (1, ("--parts", 1))):
                cluster, count, alone = self.owners(*options)
                self.assertEqual((cluster, count), (self.most_of(part * parts // 12, parts), parts))
                self.assertEqual(self.owners(*options, ranks=3)[2], alone)

    def test_parts_that_own_nothing_stay(self):
        awkward_graph(self.graph)
        _, part = self.cut(self.graph, "--parts", 70)
        self.replace("graph.cut.h5", np.zeros(len(part), dtype=int), 70)
        cluster, count, _ = self.owners()
        self.assertEqual((cluster, count), (self.most_of(np.zeros(len(part), dtype=int), 70), 70))

    def test_a_cut_that_cannot_be_followed(self):
        awkward_graph(self.graph)
        self.cut(self.graph, "--parts", 4)
        path = self.folder / "graph.cut.h5"
        good, by = path.read_bytes(), ("--method", "cut", "--by", path)
        for words, options in ((["--method cut", "--by CUT.h5"], ("--method", "cut")),
                               (["--by", "--method cut"], ("--by", path)),
                               (["--by", "--method cut"], ("--by", path, "--method", "block")),
                               (["--by", "leave it or --edges out"], ("--by", path, "--edges")),
                               (["--clusters 3", "--parts"], (*by, "--clusters", 3)),
                               (["--parts 5", "4 parts of edges"], (*by, "--parts", 5)),
                               (["--parts 2", "--edges"], ("--parts", 2, "--method", "block")),
                               (["--seed 1", "nothing to chance"], (*by, "--seed", 1)),
                               (["--fast"], (*by, "--fast"))):
            with self.subTest(options):
                self.fail_with(2, words, "partition", self.graph, *options)
        self.fail_with(3, ["missing.h5"], "partition", self.graph, "--method", "cut", "--by", "missing.h5")
        set_at(path, "part", 5, lambda part: (part + 1) % 4)
        self.fail_with(3, [str(path), "/part is not what was written"], "partition", self.graph, *by, ranks=2)
        path.write_bytes(good[:len(good) // 2])
        self.fail_with(3, [str(path)], "partition", self.graph, *by)
        path.write_bytes(good)
        self.succeed("generate", "rmat", "--scale", 8, "--features", 0, "-o", self.graph, "--overwrite")
        self.fail_with(3, ["the parts are of a graph with", "partition --edges"], "partition", self.graph, *by)
        self.assertEqual([*self.folder.glob("*.order.h5")], [])

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

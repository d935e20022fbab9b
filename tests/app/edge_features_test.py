"""Features of edges in graph files: those of imports and of `generate planted --edge-features`.

Laws: what the lines or arrays beside the edges say is what h5py finds in the graph file beside the entries, row by row of the
matrix; an edge that is listed again, with --symmetrize in either direction, has the features of its first line, with --duplicates
max of the line whose weight stays; the inverse of a relation has those of the edge; the contents do not depend on ranks; every damage is one sentence that names the file, and leaves
no file. Generated numbers are those of the edge in both directions, and the first tells whether the ends are of one class.
"""

import shutil

import numpy as np

from tests.app.import_test import OgbFolder, lines_of_digits
from tests.app.import_typed_test import EDGES, TYPES, TypedFolder
from tests.app.plain_graph import PAIR, read_graph
from tests.app.program import ProgramTest, arrays_of, contents, difference, forget_digests, put, read, set_at


def lines(rows):
    return "".join(",".join(map(repr, row)) + "\n" for row in np.asarray(rows).tolist())


def typed_features(path):
    """{relation: {(source, target): its numbers}} of a file, by h5py alone."""
    found = {relation: dict(zip(zip(of.sources.tolist(), of.targets.tolist()), map(tuple, of.features.tolist()), strict=True))
             for relation, of in read_graph(path).edges.items() if of.features is not None}
    assert sum(name.startswith("edges/") for name in contents(path)) == len(found), "of relations of the file alone"
    return found


def lines_of(edges, symmetrize=False, drop=False):
    """The oracle: {(source, target): the lines that say it}, in either direction where the graph has both."""
    found = {}
    for line, (u, v) in enumerate(edges):
        for place in {(u, v), (v, u)} if symmetrize else {(u, v)}:
            if not (drop and u == v):
                found.setdefault(place, []).append(line)
    return found


def first_of(edges, rows, **how):
    """The numbers of the first line of each edge."""
    rows = np.asarray(rows, np.float32).tolist()
    return {place: tuple(rows[lines[0]]) for place, lines in lines_of(edges, **how).items()}


class Typed(TypedFolder):
    def put_features(self, triplet, rows, name="edge-feat.csv.gz"):
        self.put(f"raw/relations/{'___'.join(triplet)}/{name}", lines(rows))

    def expect(self, edges, rows, *options, **more):
        """The file has the relations `edges`, the features of `rows`, {triplet: rows}, and no others."""
        file = self.imported(*options, **more)
        relations, features, inverse = {}, {}, {}
        for (head, name, tail), pairs in edges.items():
            drop, of = "--drop-self-loops" in options and head == tail, rows.get((head, name, tail))
            relations[head, name, tail], inverse[head, name, tail] = sorted(lines_of(pairs, drop=drop)), None
            if of is not None:
                features[head, name, tail] = first_of(pairs, of, drop=drop)
            if "--no-inverse" not in options:
                turned = tail, "rev_" + name, head
                inverse[head, name, tail], inverse[turned] = turned, (head, name, tail)
                relations[turned] = sorted((v, u) for u, v in relations[head, name, tail])
                if of is not None:
                    features[turned] = {(v, u): row for (u, v), row in features[head, name, tail].items()}
        self.assertEqual(file.inverse, inverse)
        self.assertEqual(difference({relation: sorted(pairs) for relation, pairs in file.edges.items()}, relations), "")
        self.assertEqual(difference(typed_features(self.output), features), "")
        self.succeed("digest", self.output)

    def test_random_graphs(self):
        random = np.random.default_rng(31)
        for ranks in (1, 3, 2):
            self.random_graph(random, ranks)

    def random_graph(self, random, ranks):
        types = {f"t{k}": int(size) for k, size in enumerate(random.integers(1, 25, random.integers(1, 4)))}
        edges, rows = {}, {}
        for k in range(random.integers(1, 6)):
            head, tail = map(str, random.choice(list(types), 2))
            count = int(random.integers(0, 90)) if k else 40
            pairs = list(zip(random.integers(0, types[head], count).tolist(), random.integers(0, types[tail], count).tolist()))
            edges[head, f"r{k}", tail] = pairs
            if count and random.integers(0, 3):
                rows[head, f"r{k}", tail] = random.normal(size=(count, random.integers(1, 6))).astype(np.float32)
        shutil.rmtree(self.ogb)
        self.put_graph(types, edges)
        for number, (triplet, of) in enumerate(rows.items()):
            self.put_features(triplet, of, ("edge-feat.csv.gz", "edge-feat.csv")[number % 2])
        self.assertTrue(rows)
        for options in ((), ("--drop-self-loops", "--no-inverse"), ("--drop-self-loops",)):
            self.expect(edges, rows, *options, ranks=ranks)

    def test_features_of_several_pieces(self):
        sources, targets = np.arange(15000) % 4, np.arange(15000) // 4  # row by row, as the graph file has them
        rows = np.random.default_rng(2).integers(0, 10, (15000, 300))  # 16 MiB of float32 go at a time
        shutil.rmtree(self.ogb)
        self.put_graph({"a": 4000}, {("a", "to", "a"): list(zip(sources.tolist(), targets.tolist()))})
        self.put("raw/relations/a___to___a/edge-feat.csv", lines_of_digits(rows))
        self.imported()
        found = arrays_of(self.output, "edges")
        np.testing.assert_array_equal(found["a.to.a/features"], rows)
        np.testing.assert_array_equal(found["a.rev_to.a/features"], rows[np.lexsort((targets, sources))])
        self.succeed("digest", self.output)

    def test_half(self):
        rows = [[1.1, 2], [3, 4], [5, 6], [7, 0.3]]
        self.put_features(("author", "writes", "paper"), rows)
        self.imported("--half")
        self.assertIn("edges of   author.writes.paper: 2 features of each\n", self.said)
        found = read(self.output, "edges/author.writes.paper/features")
        self.assertEqual(found.dtype, np.float16)
        np.testing.assert_array_equal(found, np.array(rows, np.float16)[[3, 0, 1, 2]])
        self.put_features(("author", "writes", "paper"), [[1], [1e6], [1], [1]])
        self.refuse(3, ["edge-feat.csv.gz:2: column 0 is 1000000, too large for float16"], "--half")

    def test_left_out(self):
        self.imported()
        without = contents(self.output)
        self.put_features(("author", "writes", "paper"), [[1], [2], ["x"], [4]])
        self.imported("--no-edge-features")
        self.assertEqual(difference(contents(self.output), without), "")

    def test_damage(self):
        place = "author___writes___paper/edge-feat.csv.gz"
        for rows, words in (([[1], [2], [3]], [place + ": has 3 lines, but there are 4 edges of author___writes___paper"]),
                            ([[1], [2], [3], [4], [5]], [place + ":5: one line too many"]),
                            ([[1, 2], [1, 2], [1], [1, 2]], [place + ":3: has 1 fields, the first line has 2"]),
                            ([[1, 2], [1, 2, 3], [1], [1, 2]], [place + ":2: has 3 fields, the first line has 2"]),
                            ([[1, 2], [1, 2], [1, float("nan")], [1, 2]], [place + ":3: column 1 is nan, not a finite number"]),
                            ([[1], [2], [3], [1e39]], [place + ":4: column 0 is 1e+39, too large for float32"]),
                            ([], [place + ": has 0 lines, but there are 4 edges"])):
            with self.subTest(words):
                self.put(f"raw/relations/{place}", "".join(",".join(map(repr, row)) + "\n" for row in rows))
                self.refuse(3, words)
        self.put(f"raw/relations/{place}", "1\n2\nx\n4\n")
        self.refuse(3, [place + ":3: 'x' is not a number"])
        self.put_graph(TYPES, {**EDGES, ("author", "writes", "paper"): []})
        self.put(f"raw/relations/{place}", "1\n")
        self.refuse(3, [place, "one line too many"])
        self.put(f"raw/relations/{place}", "")
        self.imported()
        self.assertEqual(typed_features(self.output), {})


class Binary(TypedFolder):
    """OGB's archives."""

    def put_archives(self, features, name):
        shutil.rmtree(self.ogb)
        (self.ogb / "raw").mkdir(parents=True)
        np.savez(self.ogb / "raw/num_nodes_dict.npz", **{of: np.array([size]) for of, size in TYPES.items()})
        np.savez(self.ogb / "raw/edge_index_dict.npz", **{"___".join(of): np.array(pairs).T for of, pairs in EDGES.items()})
        np.savez_compressed(self.ogb / "raw" / name, **{"___".join(of): rows for of, rows in features.items()})

    def test_arrays(self):
        random = np.random.default_rng(7)
        writes, cites = ("author", "writes", "paper"), ("paper", "cites", "paper")
        for name, kind in (("edge_feat.npz", np.float32), ("edge_feat_dict.npz", np.float16), ("edge_feat.npz", np.int64)):
            order = np.ascontiguousarray if kind == np.float32 else np.asfortranarray
            rows = {writes: order(random.integers(-9, 9, (4, 3)).astype(kind)), cites: random.integers(0, 9, 4).astype(kind)}
            self.put_archives(rows, name)
            self.imported()
            found = typed_features(self.output)
            self.assertEqual(len(found), 4)
            for triplet, of in rows.items():
                first = first_of(EDGES[triplet], of.reshape(4, -1))
                self.assertEqual(found[triplet], first)
                inverse = (triplet[2], "rev_" + triplet[1], triplet[0])
                self.assertEqual(found[inverse], {(v, u): row for (u, v), row in first.items()})
            self.assertEqual(read(self.output, "edges/author.writes.paper/features").dtype, np.float16 if kind == np.float16 else np.float32)

    def test_damage(self):
        writes = ("author", "writes", "paper")
        holes = np.ones((4, 2), np.float32)
        holes[2, 1] = np.inf
        for rows, words in (({writes: np.ones((3, 2))}, ["edge_feat.npz: author___writes___paper: is 3 x 2, but there are 4 edges"]),
                            ({writes: holes}, ["edge_feat.npz: author___writes___paper: row 2: column 1 is inf"]),
                            ({("author", "owns", "paper"): np.ones((4, 2))},
                             ["edge_feat.npz: has features of author___owns___paper, but", "edge_index_dict.npz has no such array"])):
            with self.subTest(words):
                self.put_archives(rows, "edge_feat.npz")
                self.refuse(3, words)


class Untyped(OgbFolder):
    def features(self):
        return typed_features(self.output)[PAIR]

    def random_edges(self, seed, nodes, count):
        random = np.random.default_rng(seed)
        edges = [tuple(pair) for pair in random.integers(0, nodes, (count, 2)).tolist()]
        self.put_edges(edges, nodes=nodes)
        return random, edges

    def test_random_graphs(self):
        for count, nodes, columns in ((150, 9, 3), (40, 30, 1), (300, 25, 4)):
            random, edges = self.random_edges(17 + count, nodes, count)
            rows = random.normal(size=(count, columns)).astype(np.float32)
            self.put("raw/edge-feat.csv", lines(rows))
            for symmetrize in (False, True):
                for drop in (False, True):
                    flags = ("--symmetrize",) * symmetrize + ("--drop-self-loops",) * drop
                    self.succeed(*self.command(*flags))
                    self.assertEqual(difference(self.features(), first_of(edges, rows, symmetrize=symmetrize, drop=drop)), "", flags)
            self.succeed("digest", self.output)

    def test_a_weight_is_no_feature(self):
        edges, rows = [(0, 1), (1, 2), (0, 1), (2, 1)], np.array([[1, 8, 3], [2, 4, 1], [5, 16, 0], [7, 32, 9]])
        self.put_edges(edges)
        self.put("raw/edge-feat.csv", lines(rows))
        for column in range(3):
            self.succeed(*self.command("--edge-weight", column, "--symmetrize"))
            self.assertEqual(self.features(), first_of(edges, np.delete(rows, column, 1), symmetrize=True))
            self.assertEqual(self.entries()[1, 0], rows[0, column] + rows[2, column])
        self.put_edges(edges, rows[:, 1])
        self.succeed(*self.command("--edge-weight", 0))
        self.assertFalse(any(name.startswith("edges") for name in arrays_of(self.output)))

    def test_weight_and_features_are_of_one_line(self):
        random, edges = self.random_edges(23, 9, 150)
        rows = np.stack([random.integers(0, 50, 150), np.arange(150)], 1)  # a weight, and which line it is
        self.put("raw/edge-feat.csv", lines(rows))
        for symmetrize in (False, True):
            flags = ("--edge-weight", 0) + ("--symmetrize",) * symmetrize
            for how in ("first", "max", "sum", "last"):
                output = self.succeed(*self.command(*flags, "--duplicates", how))
                self.assertIn("of the line with the largest weight" if how == "max" else f"with the features of the {'last' if how == 'last' else 'first'}", output)
                weights, features = self.entries(), self.features()
                for (u, v), several in lines_of(edges, symmetrize).items():
                    of = max(several, key=lambda line: rows[line, 0]) if how == "max" else several[-1 if how == "last" else 0]
                    self.assertEqual(features[u, v], (of,), (how, flags, u, v))
                    if how != "sum":
                        self.assertEqual(weights[v, u], rows[of, 0], (how, flags, u, v))

    def test_features_are_added_up(self):
        """By numpy, over the lines that met; a self loop is one of them."""
        random, edges = self.random_edges(29, 8, 120)
        rows = random.normal(size=(120, 2)).astype(np.float32)
        self.put("raw/edge-feat.csv", lines(rows))
        for symmetrize in (False, True):
            for how, ranks in (("sum", 1), ("mean", 3 if symmetrize else 1), ("last", 1), ("first", 1 if symmetrize else 2)):
                output = self.succeed(*self.command("--duplicate-features", how, *("--symmetrize",) * symmetrize), ranks=ranks)
                self.assertIn(f"with the {how} of the features" if how in ("sum", "mean") else f"with the features of the {how}", output)
                combine = {"sum": lambda of: of.sum(0), "mean": lambda of: of.mean(0), "last": lambda of: of[-1], "first": lambda of: of[0]}[how]
                expected = {place: tuple(combine(rows[several].astype(float)).astype(np.float32).tolist()) for place, several in lines_of(edges, symmetrize).items()}
                self.assertEqual(difference(self.features(), expected), "", how)
        self.put("raw/edge-feat.csv", "3e38\n" * 120)
        self.refuse(3, ["column 0 of the features of edge ", "too large for float32; give --duplicate-features mean"], "--duplicate-features", "sum")

    def test_words(self):
        self.put_edges([(0, 1), (1, 0), (0, 1)])
        self.put("raw/edge-feat.csv", "1,2\n3,4\n5,6\n")
        self.assertIn("with the features of the first", self.succeed(*self.command()))
        self.assertIn("edge features 2 x 2 float32, from 1 to 4, 100.0 % not zero\n", self.succeed("info", self.output))
        output = self.succeed(*self.command("--no-edge-features"))
        self.assertNotIn("features of the first", output)
        without = contents(self.output)
        (self.ogb / "raw/edge-feat.csv").unlink()
        self.succeed(*self.command())
        self.assertEqual(difference(contents(self.output), without), "")

    def test_damage(self):
        self.put_edges([(0, 1), (1, 0), (0, 1)])
        for text, words in (("1\n2\n", ["edge-feat.csv: has 2 lines, but there are 3 edges"]),
                            ("1\n2\n3\n4\n", ["edge-feat.csv:4: one line too many: the graph has 3 edges"]),
                            ("1,2\n2\n3,1\n", ["edge-feat.csv:2: has 1 fields, the first line has 2"]),
                            ("1\n2\nnan\n", ["edge-feat.csv:3: column 0 is nan, not a finite number"]),
                            ("", ["edge-feat.csv: has 0 lines, but there are 3 edges"])):
            self.put("raw/edge-feat.csv", text)
            with self.subTest(words):
                self.refuse(3, words, ranks=2 if "nan" in text else 1)

    def test_files_of_h5py(self):
        self.put_edges([(0, 1), (1, 0), (1, 2)])
        self.put("raw/edge-feat.csv", "1\n2\n3\n")
        self.succeed(*self.command())
        for ranks, name, rows, words in ((2, "edges/features", np.ones((2, 1)), "/edges/features has 2 rows, but the graph has 3 edges"),
                                         (1, "edges/features", np.ones(3), "/edges/features has 1 dimensions, expected 2"),
                                         (1, "edges/a.b.c/features", np.ones((3, 1)), "there is a dataset /edges/a.b.c/features, but")):
            put(self.output, {"edges": None, name: rows})
            forget_digests(self.output)
            self.fail_with(3, [words], "digest", self.output, ranks=ranks)
            self.succeed(*self.command())
        set_at(self.output, "edges/features", 1, 9)
        self.fail_with(3, [": /edges/features does not hold what was written there"], "info", self.output, ranks=3)


class Generated(ProgramTest):
    TYPES = ("--types", "paper=400:6,author=300,field=40:3",
             "--relations", "author.writes.paper=1500,paper.about.field=900,paper.cites.paper=2000")

    def generate(self, *options, ranks=1):
        self.succeed("generate", "planted", *options, "-o", self.graph, "--overwrite", ranks=ranks)
        return contents(self.graph)

    def test_the_same_for_every_number_of_ranks(self):
        for ranks, options in ((4, (*self.TYPES, "--edge-features", 5)), (3, ("--nodes", 300, "--edge-features", 2, "--half"))):
            self.same_on_ranks(lambda ranks: self.succeed("generate", "planted", *options, "-o", self.graph, "--overwrite", ranks=ranks),
                               self.graph, (1, ranks))

    def test_all_else_is_as_without(self):
        for options in (self.TYPES, ("--nodes", 300)):
            without = self.generate(*options)
            found = self.generate(*options, "--edge-features", 3)
            self.assertEqual(difference({name: of for name, of in found.items() if not name.startswith(("edges", "attributes"))},
                                        {name: of for name, of in without.items() if name != "attributes"}), "")

    def check_numbers(self, same, rows):
        """Numbers of edges: the first is about 1 or -1, the others about 0; no two edges have one number."""
        self.assertGreater(len(same), 500)
        for inside, mean in ((True, 1), (False, -1)):
            numbers = rows[same == inside]
            self.assertGreater(len(numbers), 100)
            expected = np.zeros(rows.shape[1])
            expected[0] = mean
            slack = 5 / np.sqrt(len(numbers))
            np.testing.assert_allclose(numbers.mean(axis=0), expected, atol=slack)
            np.testing.assert_allclose(numbers.std(axis=0), 1, atol=slack)
        for column in rows.T[1:]:
            self.assertGreater(len(np.unique(column)), 0.9 * len(column))

    def test_numbers_of_a_graph_without_types(self):
        self.generate("--nodes", 600, "--degree", 12, "--homophily", 0.6, "--edge-features", 6)
        numbers, labels = typed_features(self.graph)[PAIR], read(self.graph, "nodes/labels")
        u, v = np.array([pair for pair in numbers if pair[0] < pair[1]]).T
        self.check_numbers(labels[u] == labels[v], np.array([row for pair, row in numbers.items() if pair[0] < pair[1]]))
        self.assertTrue(all(numbers[v, u] == row for (u, v), row in numbers.items()))

    def test_numbers_of_relations(self):
        self.generate(*self.TYPES, "--homophily", 0.6, "--edge-features", 4)
        found = typed_features(self.graph)
        self.assertEqual(len(found), 6)
        for (head, name, tail), numbers in found.items():
            if not name.startswith("rev_"):
                inverse = found[tail, "rev_" + name, head]
                self.assertEqual(difference(inverse, {(v, u): row for (u, v), row in numbers.items()}), "")
        labels = read(self.graph, "nodes/paper/labels")
        edges = found["paper", "cites", "paper"]
        self.check_numbers(np.array([labels[u] == labels[v] for u, v in edges]), np.array(list(edges.values())))
        self.generate(*self.TYPES, "--homophily", 0.6, "--edge-features", 4, "--no-inverse")
        self.assertEqual(difference(typed_features(self.graph), {of: found[of] for of in list(found)[:3]}), "")
        self.generate(*self.TYPES, "--homophily", 0.6, "--edge-features", 4, "--half")
        self.assertEqual(read(self.graph, "edges/paper.cites.paper/features").dtype, np.float16)
        exact = np.array(list(edges.values()), np.float16).tolist()
        self.assertTrue(list(typed_features(self.graph)["paper", "cites", "paper"].values()) == list(map(tuple, exact)))

    def test_options(self):
        self.fail_with(2, ["--edge-features"], "generate", "planted", "--edge-features", -1, "-o", self.graph)
        self.fail_with(2, ["--edge-features"], "generate", "rmat", "--edge-features", 3, "-o", self.graph)

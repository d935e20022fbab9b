"""espalier import ogb on folders with several types of vertices: what the files of OGB's layout say is what h5py finds
in the graph file.

Laws, beside those of round_trip_test: what repeats is counted and refused by file and line; a test set without labels is left out; features
of several pieces and columns beyond 32 bits are whole; every damage is one sentence that names file and line, and leaves no file.
"""

import shutil
import unittest

import numpy as np

from tests.app.import_test import OgbFolder, lines_of_digits
from tests.app.plain_graph import read_graph
from tests.app.program import LONG, arrays_of, read
from tests.scripts.debian_typed_test import build, random_archive, read_heterogeneous

TYPES = {"paper": 6, "author": 4, "field": 3}
EDGES = {("author", "writes", "paper"): [(0, 1), (3, 1), (0, 5), (2, 0)],
         ("paper", "cites", "paper"): [(5, 1), (1, 5), (2, 2), (0, 4)],
         ("paper", "about", "field"): [(0, 2), (5, 0)]}


class TypedFile:
    """A graph file of version 2, by h5py alone."""

    def __init__(self, path):
        graph = read_graph(path)
        self.types = {name: of.count for name, of in graph.vertices.items()}
        self.edges = {relation: list(zip(of.sources.tolist(), of.targets.tolist())) for relation, of in graph.edges.items()}
        self.inverse = {relation: of.inverse for relation, of in graph.edges.items()}
        self.data = {name: array for name, array in arrays_of(path).items() if name.startswith(("nodes/", "split/"))}


class TypedFolder(OgbFolder):
    READ = TypedFile

    def setUp(self):
        super().setUp()
        self.put_graph(TYPES, EDGES)
        random = np.random.default_rng(4)
        self.features = random.normal(size=(6, 5)).astype(np.float32)
        self.put("raw/node-feat/paper/node-feat.csv.gz", "".join(",".join(map(repr, row)) + "\n" for row in self.features.tolist()))
        self.put("raw/nodetype-has-label.csv", "author,field,paper\nFalse,False,True\n")
        self.put("raw/node-label/paper/node-label.csv", "2\n0\nnan\n1.0\n0\n1\n")
        self.put("split/time/nodetype-has-split.csv", "author,field,paper\nFalse,False,True\n")
        for name, ids in (("train", "4\n0\n"), ("valid", "1\n"), ("test", "5\n3\n")):
            self.put(f"split/time/paper/{name}.csv", ids)

    def put_graph(self, types, edges):
        self.put("raw/num-node-dict.csv.gz", ",".join(types) + "\n" + ",".join(map(str, types.values())) + "\n")
        self.put("raw/triplet-type-list.csv", "".join(",".join(triplet) + "\n" for triplet in edges))
        for triplet, pairs in edges.items():
            self.put(f"raw/relations/{'___'.join(triplet)}/edge.csv", "".join(f"{u},{v}\n" for u, v in pairs))
            self.put(f"raw/relations/{'___'.join(triplet)}/num-edge-list.csv", f"{len(pairs)}\n")


def turned(edges):
    return sorted((v, u) for u, v in edges)


class Contents(TypedFolder):
    def test_what_it_says(self):
        self.imported()
        self.assertIn("relation   author.writes.paper: 4 lines, 4 entries\n", self.said)
        self.assertIn("relation   paper.rev_writes.author: 4 entries\n", self.said)
        self.assertIn("type       author: 4 vertices, 0 features\n", self.said)

    def test_features_of_several_pieces(self):
        features = np.random.default_rng(6).integers(0, 10, (18000, 300))  # 16 MiB of float32 go at a time
        self.put_graph({**TYPES, "paper": 18000}, EDGES)
        self.put("raw/node-feat/paper/node-feat.csv", lines_of_digits(features))
        (self.ogb / "raw/node-feat/paper/node-feat.csv.gz").unlink()
        self.put("raw/node-label/paper/node-label.csv", "1\n" * 18000)
        np.testing.assert_array_equal(self.imported().data["nodes/paper/features"], features)
        self.succeed("digest", self.output)

    @unittest.skipUnless(LONG, "long: 2.2e9 columns")
    def test_columns_beyond_32_bits(self):
        count, random = 22_000_000, np.random.default_rng(8)
        edges = {("t", f"r{k}", "t"): random.integers(0, count, (3, 2)).tolist() for k in range(50)}
        shutil.rmtree(self.ogb)
        self.put_graph({"t": count}, edges)
        file = self.imported()
        self.assertEqual(read(self.output, "graph/indices").dtype, np.int64)
        for (head, name, tail), pairs in edges.items():
            self.assertEqual(sorted(file.edges[head, name, tail]), sorted(map(tuple, pairs)))
            self.assertEqual(sorted(file.edges[tail, "rev_" + name, head]), turned(pairs))
        self.succeed("digest", self.output)


class Duplicates(TypedFolder):
    def setUp(self):
        super().setUp()
        self.put_graph(TYPES, {**EDGES, ("paper", "cites", "paper"): [(5, 1), (1, 5), (2, 2), (5, 1), (2, 2), (5, 1)]})

    def test_lines_that_repeat_are_one_edge_and_counted(self):
        file = self.imported()
        self.assertEqual(sorted(file.edges["paper", "cites", "paper"]), [(1, 5), (2, 2), (5, 1)])
        self.assertIn("paper.cites.paper: 6 lines, 3 entries\n", self.said)
        self.assertIn("duplicates paper.cites.paper: 3 lines repeat an earlier one; no weights, so that each becomes one entry. To keep how often an edge stands there, make them edges of two relations, or give --duplicates count", self.said)
        self.assertIn("paper.rev_cites.paper: 3 entries\n", self.said)

    def test_refuse_names_the_lines(self):
        self.refuse(3, ["paper___cites___paper/edge.csv:4: repeats", "edge.csv:1;", "--duplicates sum"], "--duplicates", "refuse")
        self.refuse(3, ["paper___cites___paper/edge.csv:4: repeats"], "--duplicates", "refuse", "--no-inverse")
        self.put_graph(TYPES, {("paper", "cites", "paper"): [(2, 2), (5, 1), (2, 2), (3, 3), (4, 1), (4, 1)]})
        self.refuse(3, ["edge.csv:6: repeats", "edge.csv:5;"], "--duplicates", "refuse", "--drop-self-loops")

    def test_self_loops_are_counted(self):
        self.put_graph(TYPES, EDGES)
        self.imported("--drop-self-loops")
        self.assertIn("paper.cites.paper: 4 lines, 3 entries, 1 self loop dropped\n", self.said)


class HiddenTests(TypedFolder):
    def test_a_test_set_without_any_label_is_left_out_and_said(self):
        self.put("raw/node-label/paper/node-label.csv", "2\n0\nnan\nnan\n0\nnan\n")
        data = self.imported().data
        self.assertEqual(data["split/paper/test"].tolist(), [])
        self.assertEqual(data["split/paper/train"].tolist(), [0, 4])
        self.assertIn("none of the 2 vertices of test has a label", self.said)

    def test_several_splits_are_said(self):
        self.put("split/other/paper/train.csv", "1\n")
        self.put("split/other/paper/valid.csv", "")
        self.put("split/other/paper/test.csv", "0\n3\n")
        self.imported("--split", "time,other")
        self.assertIn("; time: 2 train, 1 valid, 2 test; other: 1 train, 0 valid, 2 test", self.said)

    def test_other_vertices_of_splits_have_labels(self):
        self.put("raw/node-label/paper/node-label.csv", "2\n0\nnan\nnan\n0\n1\n")
        self.refuse(3, ["test.csv:2: vertex 3 has no label"])
        self.put("raw/node-label/paper/node-label.csv", "nan\n0\nnan\n1\n0\n1\n")
        self.refuse(3, ["train.csv:2: vertex 0 has no label"])


class Refusals(TypedFolder):
    def test_damage(self):
        # What lines may hold is import_test's.
        relations = "raw/relations/author___writes___paper/"
        for name, text, words in (
                ("raw/triplet-type-list.csv", "author,writes,paper\npaper,cites,paper\nauthor,owns,field\n",
                 ["triplet-type-list.csv:3:", "author___owns___field/edge.csv.gz"]),
                ("raw/triplet-type-list.csv", "author,writes,paper\nauthor,owns,venue\n",
                 ["triplet-type-list.csv:2:", 'the vertex type "venue"; there is paper, author, field']),
                ("raw/triplet-type-list.csv", "author,writes,paper\npaper,cites,paper\nauthor,writes,paper\n",
                 ["triplet-type-list.csv:3: the triplet author,writes,paper is listed twice"]),
                ("raw/triplet-type-list.csv", "author,writes\n", ["triplet-type-list.csv:1: has only 2 fields"]),
                ("raw/triplet-type-list.csv", "author,writes,paper,1\n", ["triplet-type-list.csv:1: has 4 fields, too many"]),
                ("raw/triplet-type-list.csv", "author,../../writes,paper\n", ['relation "../../writes": names hold letters']),
                ("raw/triplet-type-list.csv", "", ["triplet-type-list.csv: 0 relations"]),
                ("raw/num-node-dict.csv.gz", "paper,author,paper\n6,4,3\n", ["num-node-dict.csv.gz:1: two vertex types are called paper"]),
                ("raw/num-node-dict.csv.gz", "paper,author,field\n6,4\n", ["num-node-dict.csv.gz:2: has 2 fields, the header has 3"]),
                ("raw/num-node-dict.csv.gz", "paper,author,field\n6,4,-3\n", ["num-node-dict.csv.gz:2: -3 is not a number of vertices"]),
                ("raw/num-node-dict.csv.gz", "paper,author,field\n", ["num-node-dict.csv.gz: ends after its header"]),
                ("raw/num-node-dict.csv.gz", "paper,author,field\n0,0,0\n", ["the graph has no vertex"]),
                ("raw/num-node-dict.csv.gz", "paper,author,field\n6,4,3\n6,4,3\n", ["num-node-dict.csv.gz:3: a second graph"]),
                (relations + "edge.csv", "0,1\n3,1\n4,1\n2,0\n",
                 ["author___writes___paper/edge.csv:3: vertex 4 is out of range: the graph has 4 vertices of type author, 0 to 3"]),
                (relations + "edge.csv", "0,1\n3,6\n0,5\n2,0\n", ["edge.csv:2: vertex 6 is out of range", "6 vertices of type paper"]),
                (relations + "edge.csv", "0,1\n3,-1\n0,5\n2,0\n", ["edge.csv:2: vertex -1 is out of range"]),
                (relations + "num-edge-list.csv", "5\n", ["writes___paper/edge.csv: has 4 lines, but there are 5 edges by num-edge-list"]),
                ("raw/nodetype-has-label.csv", "author,field,paper\nTrue,False,True\n",
                 ["nodetype-has-label.csv:2: says that author has labels", "node-label/author"]),
                ("raw/nodetype-has-label.csv", "author,venue,paper\nFalse,False,True\n", ['nodetype-has-label.csv:1: there is no vertex type "venue"']),
                ("raw/nodetype-has-label.csv", "author,field,paper\nFalse,no,True\n", ["nodetype-has-label.csv:2: a flag is neither True nor False"]),
                ("raw/nodetype-has-label.csv", "author,field,paper\nFalse,False,False\n", ["paper has a split, but no labels"]),
                ("split/time/nodetype-has-split.csv", "author,field,paper\nTrue,False,True\n",
                 ["nodetype-has-split.csv:2: says that author has splits", "time/author"]),
                ("raw/node-label/paper/node-label.csv", "2\n0\nnan\n1\n0\n", ["node-label.csv: has 5 lines, but there are 6 vertices"]),
                ("raw/node-feat/paper/node-feat.csv.gz", "1\n1\n1\n1\n1\n", ["node-feat.csv.gz: has 5 lines, but there are 6 vertices"]),
                ("split/time/paper/train.csv", "4\n6\n", ["train.csv:2: vertex 6 is out of range", "6 vertices of type paper"]),
                ("split/time/paper/valid.csv", "1\n4\n", ["valid.csv:2: vertex 4 is already in train"])):
            good = (self.ogb / name).read_bytes()
            self.put(name, text)
            with self.subTest(words):
                self.refuse(3, words)
            (self.ogb / name).write_bytes(good)
        self.imported()

    def test_files_that_are_missing(self):
        for name, words in (("raw/node-label/paper/node-label.csv", ["node-label/paper/node-label.csv.gz: no such file", "paper has labels"]),
                            ("raw/triplet-type-list.csv", ["triplet-type-list.csv.gz: no such file"]),
                            ("split/time/paper/test.csv", ["paper/test.csv.gz"])):
            good = (self.ogb / name).read_bytes()
            (self.ogb / name).unlink()
            with self.subTest(name):
                self.refuse(3, words)
            (self.ogb / name).write_bytes(good)

    def test_an_inverse_that_the_folder_has_itself(self):
        self.put_graph(TYPES, {**EDGES, ("paper", "rev_writes", "author"): [(1, 0)]})
        self.refuse(3, ["paper___rev_writes___author has the name", "inverse of author___writes___paper", "--no-inverse"])
        self.assertEqual(self.imported("--no-inverse").edges["paper", "rev_writes", "author"], [(1, 0)])

    def test_options_that_mean_nothing_here(self):
        self.refuse(2, ["--symmetrize", "inverse", "leave it out"], "--symmetrize")
        self.refuse(2, ["--edge-weight", "no weights"], "--edge-weight", 0)
        self.refuse(3, ["--split nothing: no such folder", "there is time"], "--split", "nothing")
        (self.ogb / "raw/num-node-dict.csv.gz").unlink()
        self.put("raw/num-node-list.csv", "5\n")
        self.put("raw/edge.csv", "0,1\n")
        self.refuse(2, ["--no-inverse", "leave it out"], "--no-inverse")

    def test_an_input_is_no_output(self):
        self.fail_with(2, ["-o", "is an input"], "import", "ogb", self.ogb, "--overwrite", "-o",
                       self.ogb / "raw/relations/author___writes___paper/edge.csv")


class Debian(TypedFolder):
    def test_what_the_script_makes_of_package_lists(self):
        shutil.rmtree(self.ogb)
        graph = read_heterogeneous(build(random_archive(1)[0], self.ogb))
        file = self.imported("--split", "source_seed0")
        self.assertEqual(list(file.types), ["maintainer", "package", "source", "virtual"])
        self.assertEqual(list(file.edges)[:len(graph["edges"])], list(graph["edges"]))
        for (head, name, tail), lines in graph["edges"].items():
            edges = [tuple(line) for line in lines]
            self.assertEqual(sorted(file.edges[head, name, tail]), edges)
            self.assertEqual(sorted(file.edges[tail, "rev_" + name, head]), turned(edges))
        np.testing.assert_array_equal(file.data["nodes/package/features"],
                                      np.array(graph["features"]["package"], dtype=np.float64).astype(np.float32))
        labels = [-1 if label == "nan" else int(float(label)) for label, in graph["labels"]["package"]]
        self.assertEqual(file.data["nodes/package/labels"].tolist(), labels)
        for part, ids in graph["splits"]["source_seed0"]["package"].items():
            self.assertEqual(file.data[f"split/package/{part}"].tolist(), ids)
        self.assertEqual(self.said.count("\nrelation "), 2 * len(graph["edges"]))

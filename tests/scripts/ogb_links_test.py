"""scripts/ogb_links.py: the splits of OGB's link sets, as files of torch.save, become /links of a graph file that `espalier info` takes.

Laws: `import ogb` takes the same folder; ids are those of the graph, counted within a type where the split says the types; negatives stay
beside their link; what does not fit is one sentence, and leaves the graph file as it was, byte for byte.
"""

import gzip
import os
import pickle
import subprocess
import sys

import numpy as np

from tests.app.program import ROOT, ProgramTest, arrays_of, attributes_of, run_python, set_attributes, write_file
from tests.app.typed_file_test import write_typed

SCRIPT = ROOT / "scripts" / "ogb_links.py"
MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001  # of torch.save before 1.6


class OgbLinks(ProgramTest):
    def setUp(self):
        super().setUp()
        self.ogb = self.folder / "ogbl"
        self.random = np.random.default_rng(3)

    def put(self, name, split):
        path = self.ogb / "split" / "time" / (name + ".pt")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            for item in (MAGIC, PROTOCOL, {}, split, []):
                pickle.dump(item, file, protocol=2)

    def put_all(self, **splits):
        for name, split in splits.items():
            self.put(name, split)

    def ids(self, *shape, n=60):
        return self.random.integers(0, n, shape)

    def script(self, *options):
        done = run_python(SCRIPT, self.ogb, self.graph, *options)
        return done.returncode, done.stdout + done.stderr

    def convert(self, *options):
        code, output = self.script(*options)
        self.assertEqual(code, 0, output)
        self.succeed("digest", self.graph, "--write", ranks=2)
        self.assertIn("\nlinks  ", self.succeed("info", self.graph, ranks=2))
        return arrays_of(self.graph, "links"), int(attributes_of(self.graph, "links")["directed"]), output

    def put_table(self, name, text):
        path = self.ogb / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())

    def import_folder(self, *options):
        return self.succeed("import", "ogb", self.ogb, "-o", self.graph, "--overwrite", *options, ranks=2)

    def generate(self):
        self.succeed("generate", "planted", "--nodes", 60, "--degree", 4, "-o", self.graph)

    def refuse(self, words, *options):
        """In one sentence, and the file stays as it was."""
        before = self.graph.read_bytes()
        code, output = self.script(*options)
        self.assertEqual((code, output.count("\n")), (3, 1), output)
        self.assertIn(words, output)
        self.assertTrue(self.graph.read_bytes() == before)
        self.assertEqual([path.name for path in self.folder.glob("graph*")], ["graph.h5"])

    def test_pairs(self):
        edges = {name: self.ids(count, 2) for name, count in (("train", 30), ("valid", 5), ("test", 7))}
        of_no_link = {"valid": self.ids(90, 2), "test": self.ids(80, 2)}
        self.put_all(train={"edge": edges["train"], "weight": np.ones(30), "year": self.ids(30)},
                     **{split: {"edge": edges[split], "edge_neg": of_no_link[split]} for split in of_no_link})
        self.put_table("raw/num-node-list.csv", "60\n")
        self.put_table("raw/edge.csv.gz", "".join(f"{u},{v}\n" for u, v in edges["train"]))
        for options, wanted in ((("--symmetrize",), 0), ((), 1)):
            self.assertIn(f"holds splits of links, not of vertices; `scripts/ogb_links.py {self.ogb} FILE`", self.import_folder(*options))
            links, directed, output = self.convert()
            self.assertEqual(directed, wanted)
        for split, others in of_no_link.items():
            np.testing.assert_array_equal(links[f"{split}/non_links"], others)
        self.assertEqual(sorted(links), sorted([*(f"{split}/{end}" for split in edges for end in ("head", "tail")),
                                                *(f"{split}/non_links" for split in of_no_link)]))
        for split, of in edges.items():
            np.testing.assert_array_equal(links[split + "/head"], of[:, 0])
            np.testing.assert_array_equal(links[split + "/tail"], of[:, 1])

    def test_negatives_of_each_link(self):
        self.generate()
        splits = {name: {"source_node": self.ids(count), "target_node": self.ids(count)} for name, count in (("train", 30), ("valid", 5), ("test", 7))}
        for name in ("valid", "test"):
            splits[name]["target_node_neg"] = self.ids(len(splits[name]["source_node"]), 9)
        self.put_all(**splits)
        links, directed, _ = self.convert("--split", "time", "--directed")
        self.assertEqual(directed, 1)
        for name, split in splits.items():
            np.testing.assert_array_equal(links[name + "/head"], split["source_node"])
            np.testing.assert_array_equal(links[name + "/tail"], split["target_node"])
        np.testing.assert_array_equal(links["test/negative_tails"], splits["test"]["target_node_neg"])

    def test_triples_of_a_graph_with_types(self):
        # Authors 0 and 1, papers 2 to 4, a journal 5.
        write_typed(self.graph)
        set_attributes(self.graph, directed=False)
        for name in ("reltype2relid", "relidx2other"):  # the last in order says nothing
            self.put_table(f"mapping/{name}.csv.gz", "rel idx,rel name\n")
        self.put_table("mapping/relidx2name.csv.gz", "rel idx,rel name\n0,writes\n1,in\n")
        split = {"head_type": ["author", "paper"], "head": np.array([1, 2]), "relation": np.array([0, 1]), "tail_type": ["paper", "journal"],
                 "tail": np.array([2, 0])}
        negatives = {"head_neg": np.array([[0, 1], [1, 0]]), "tail_neg": np.array([[0, 1, 2], [0, 0, 0]])}
        self.put_all(train=split, valid=split | negatives, test=split | negatives)
        links, directed, _ = self.convert()
        self.assertEqual(directed, 1)
        self.assertEqual(links["relations"].tolist(), [b"writes", b"in"])
        self.assertEqual(links["graph_relations"].tolist(), [0, 3])
        for name in ("train", "valid", "test"):
            self.assertEqual(links[name + "/head"].tolist(), [1, 4])
            self.assertEqual(links[name + "/tail"].tolist(), [4, 5])
            self.assertEqual(links[name + "/relation"].tolist(), [0, 1])
        self.assertEqual(links["valid/negative_heads"].tolist(), [[0, 1], [3, 2]])
        self.assertEqual(links["test/negative_tails"].tolist(), [[2, 3, 4], [5, 5, 5]])

    def test_a_folder_with_types(self):
        self.put_table("raw/num-node-dict.csv", "drug,disease\n2,3\n")
        self.put_table("raw/triplet-type-list.csv", "drug,treats,disease\n")
        self.put_table("raw/relations/drug___treats___disease/edge.csv", "0,0\n1,2\n")
        split = {"head_type": ["drug"], "head": np.array([1]), "relation": np.array([0]), "tail_type": ["disease"], "tail": np.array([1])}
        self.put_all(train=split, valid=split, test=split)
        self.assertIn("holds splits of links", self.import_folder())
        links, directed, output = self.convert()
        self.assertEqual((directed, links["train/tail"].tolist(), links["relations"].tolist()), (1, [3], [b"0"]))
        self.assertIn("mapping: has no names of relations", output)

    def test_relations_that_the_graph_has_not(self):
        splits = {name: {"head": self.ids(8), "relation": np.arange(8) % 3, "tail": self.ids(8)} for name in ("train", "valid", "test")}
        self.put_all(**splits)
        for names in ([b"0", b"1", b"2"], [b"P31", b"1", b"P6"]):
            self.graph.unlink(missing_ok=True)
            self.generate()
            links, directed, _ = self.convert()
            self.assertEqual(directed, 1)  # though the graph is symmetric
            self.assertNotIn("graph_relations", links)
            self.assertEqual(links["relations"].tolist(), names)
            self.put_table("mapping/reltype2relid.csv.gz", "reltype,rel id\n0,P31\n2,P6\n")

    def test_what_does_not_fit(self):
        self.generate()
        good = {"edge": self.ids(5, 2)}
        self.put_all(**dict.fromkeys(("train", "valid", "test"), good))
        triple = {"head": np.array([3]), "tail": np.array([4])}
        for wrong, words in (({"edges": good["edge"]}, "test.pt: has no source_node, but ['edges']"), ({"edge": self.ids(5, 3)}, "edge has 3 columns, not 2"),
                             ({"edge": np.ones((5, 2))}, "edge is float64 [5, 2]"), ({"head": self.ids(5), "tail": self.ids(4)}, "has 5 head and 4 tail"),
                             ({"head": self.ids(2), "tail": self.ids(2), "head_type": ["a", "b"]}, "head_type names ['a', 'b']"),
                             ({"head": self.ids(5), "tail": self.ids(5), "tail_neg": self.ids(4, 2)}, "tail_neg is int64 [4, 2]"), ([1], "holds no dictionary"),
                             ({"edge": np.array([[3, 60]])}, "test.pt: tail of link 0 is 60, but there are 60 vertices"),
                             (triple | {"head": np.array([-1])}, "head of link 0 is -1"),
                             (triple | {"tail_neg": np.array([[5, 99]])}, "negative_tails of link 0 is 99, but there are 60 vertices"),
                             (triple | {"relation": np.array([2**32])}, "relation of link 0 is 4294967296, but there are 1048576 relations at most"),
                             (triple | {"relation": np.array([-1])}, "relation of link 0 is -1")):
            self.put("test", wrong)
            self.refuse(words)
        self.put("test", triple | {"relation": np.array([0])})
        whole = gzip.compress(b"a,b\n" + os.urandom(1000).hex().encode())
        for damaged in (whole[:len(whole) // 2], whole[:20] + b"\xff" * 20 + whole[40:], b"no gzip", gzip.compress(b"a,b\n\xff\xfe\n"),
                        gzip.compress(b"a,b\n" + b"x" * 200000 + b"\n")):
            (self.ogb / "mapping").mkdir(exist_ok=True)
            (self.ogb / "mapping" / "relidx2name.csv.gz").write_bytes(damaged)
            self.refuse("relidx2name.csv.gz: cannot be read")
        self.put_table("mapping/relidx2name.csv.gz", "rel idx,rel name\n0,P6\n1,P31\n2,P6\n")
        self.put("test", triple | {"relation": np.array([2])})
        self.refuse("relidx2name.csv.gz: calls relations 0 and 2 both 'P6'")
        code, output = self.script("--split", "random")
        self.assertEqual((code, "there is time" in output), (3, True), output)
        self.put("test", good)
        self.convert()
        self.refuse("has links already")
        write_file(self.graph, {}, {"graph/indptr": np.arange(61)})
        self.refuse("graph.h5: is no graph file of espalier")
        self.graph.write_text("text")
        self.refuse("graph.h5: cannot be read")

    def test_ids_of_another_type(self):
        write_typed(self.graph)
        good = {"head_type": ["author"], "head": np.array([1]), "relation": np.array([0]), "tail_type": ["paper"], "tail": np.array([2])}
        self.put_all(train=good, valid=good, test=good)
        self.put_table("mapping/relidx2name.csv.gz", "rel idx,rel name\n0,writes\n")
        for wrong, words in (({"head": np.array([2])}, "valid.pt: head of link 0 is 2, but there are 2 vertices"),
                             ({"tail_type": ["journal"], "tail": np.array([0])}, "tail, counted in the target of its relation, of link 0 is 3"),
                             ({"head_neg": np.array([[0, 2]])}, "negative_heads of link 0 is 2")):
            self.put("valid", good | wrong)
            self.refuse(words)

    def test_a_file_that_cannot_be_changed(self):
        # No room for the copy beside it.
        self.generate()
        good = {"edge": self.ids(5, 2)}
        self.put_all(train=good, valid=good, test=good)
        before = self.graph.read_bytes()
        done = subprocess.run(["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", sys.executable, SCRIPT, self.ogb, self.graph], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, self.graph.read_bytes() == before), (3, True), done.stderr)
        self.assertEqual([path.name for path in self.folder.glob("graph*")], ["graph.h5"])

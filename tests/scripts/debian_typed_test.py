"""scripts/debian_graph.py --typed on an archive of seven packages, every row of every relation by hand, and on random
archives of a hundred.

Laws: the files are what OGB's heterogeneous readers expect, read here by a reader of our own that follows theirs; ids
lie within their types; rows ascend, none comes twice, none is a loop; packages have the ids, features and labels of the
homogeneous graph, whose edges are depends, recommends, suggests, and depends_virtual followed by provides backwards;
splits part the labelled packages and no source; equal lists give equal bytes.
"""

import collections
import csv
import gzip
import importlib.util
import json
import os
import pathlib
import random
import tempfile
import unittest

from tests.app.program import FolderTest
from tests.scripts.small_archives import archive, bytes_of, lines_of, run_script, stanza

ANN, OTHER_ANN, BOB = "Ann <ann@x>", "Ann <ann@y>", "Bob <bob@x>"
APP = stanza("app", "net", Source="app-src (1.2-1)", Maintainer=ANN, Pre_Depends="lib (>= 1) | lib-abi-1:any",
             Depends="lib, app-data | odd [amd64],\n mail-agent | ghost, app, mail-agent",
             Recommends="lib, app, mail-reader", Suggests="odd, lib-dev, mail-reader", Enhances="mailer, mail-reader",
             Breaks="app-data (<< 1), mail-reader", Conflicts="odd, mail-reader",
             Replaces="app-data, odd | lib, mail-reader", Provides="viewer (= 1.2), lib, app",
             Tag="role::program, other-mailer")
ARCHIVE = "\n".join([
    APP, stanza("app-data", "net", Source="app-src", Maintainer=BOB),
    stanza("lib", "libs", Maintainer=BOB, Provides="lib-abi-1 (= 1)"),
    stanza("lib-dev", "libs", Source="lib", Maintainer=BOB, Depends="lib (= 1)"),
    stanza("mailer", "net", Maintainer=ANN, Provides="mail-agent, mail-reader", Depends="mail-agent"),
    stanza("odd", "oldlibs", Maintainer=OTHER_ANN), stanza("other-mailer", "net", Provides="mail-agent",
                                                           Conflicts="mail-agent, mailer"),
    stanza("app", "doc", Maintainer="Zed <z@z>", Provides="zed", Depends="mailer")])  # a second stanza: not read

# ids: app 0, app-data 1, lib 2, lib-dev 3, mailer 4, odd 5, other-mailer 6; sources app-src 0, lib 1, mailer 2, odd 3,
# other-mailer 4; maintainers ANN 0, OTHER_ANN 1, BOB 2; virtual names lib-abi-1 0, mail-agent 1, mail-reader 2,
# viewer 3.
NUM_NODES = {"maintainer": 3, "package": 7, "source": 5, "virtual": 4}
EXPECTED = {
    ("package", "breaks", "package"): [[0, 1]],
    ("package", "built_from", "source"): [[0, 0], [1, 0], [2, 1], [3, 1], [4, 2], [5, 3], [6, 4]],
    ("package", "conflicts", "package"): [[0, 5], [6, 4]],
    ("package", "depends", "package"): [[0, 1], [0, 2], [0, 5], [3, 2]],
    ("package", "depends_virtual", "virtual"): [[0, 0], [0, 1], [4, 1]],
    ("package", "enhances", "package"): [[0, 4]],
    ("package", "provides", "virtual"): [[0, 3], [2, 0], [4, 1], [4, 2], [6, 1]],
    ("package", "recommends", "package"): [[0, 2]],
    ("package", "replaces", "package"): [[0, 1], [0, 2], [0, 5]],
    ("package", "suggests", "package"): [[0, 3], [0, 5]],
    ("source", "maintained_by", "maintainer"): [[0, 0], [0, 2], [1, 2], [2, 0], [3, 1]],
}
LABELS = [["1"], ["1"], ["0"], ["0"], ["1"], ["nan"], ["1"]]  # libs 0, net 1; oldlibs is untopical
SPLITS = ["source_seed0", "source_seed1", "source_seed2"]


def rows_of(*path):
    with gzip.open(os.path.join(*path), "rt", newline="") as file:
        return list(csv.reader(file))


def read_table(*path):
    """{type: value} of a file with a header and one line of values."""
    header, values = rows_of(*path)
    return dict(zip(header, values, strict=True))


def flagged(*path):
    """The types whose flag is the word that pandas takes for true; no other word than the two may stand there."""
    flags = read_table(*path)
    assert set(flags.values()) <= {"True", "False"}, flags
    return [node_type for node_type, flag in flags.items() if flag == "True"]


def read_heterogeneous(folder):
    """The graph in folder, in the steps of OGB's read_csv_heterograph_raw, read_node_label_hetero and
    read_nodesplitidx_split_hetero: {"num_nodes", "edges", "features", "labels", "splits"}."""
    raw, split_dir = os.path.join(folder, "raw"), os.path.join(folder, "split")
    num_nodes = {node_type: int(count) for node_type, count in read_table(raw, "num-node-dict.csv.gz").items()}
    edges = {}
    for triplet in sorted(map(tuple, rows_of(raw, "triplet-type-list.csv.gz"))):
        relation = os.path.join(raw, "relations", "___".join(triplet))
        edges[triplet] = [[int(id) for id in row] for row in rows_of(relation, "edge.csv.gz")]
        assert rows_of(relation, "num-edge-list.csv.gz") == [[str(len(edges[triplet]))]] and edges[triplet]
    features = {node_type: rows_of(raw, "node-feat", node_type, "node-feat.csv.gz")
                for node_type in sorted(num_nodes)
                if os.path.exists(os.path.join(raw, "node-feat", node_type, "node-feat.csv.gz"))}
    assert flagged(raw, "nodetype-has-feat.csv.gz") == list(features)
    labels = {node_type: rows_of(raw, "node-label", node_type, "node-label.csv.gz")
              for node_type in flagged(raw, "nodetype-has-label.csv.gz")}
    splits = {split: {node_type: {part: [int(id) for id, in rows_of(split_dir, split, node_type, f"{part}.csv.gz")]
                                  for part in ("train", "valid", "test")}
                      for node_type in flagged(split_dir, split, "nodetype-has-split.csv.gz")}
              for split in sorted(os.listdir(split_dir))}
    return {"num_nodes": num_nodes, "edges": edges, "features": features, "labels": labels, "splits": splits}


def random_archive(seed):
    """A hundred packages that name one another and a name nobody has, in all fields, and six virtual names in Depends:
    two with many providers, four with few. Returns the text and {package: source}."""
    draw = random.Random(seed)
    names, virtual = [f"p{k}" for k in range(100)], [f"v{k}" for k in range(6)]
    sources = {name: draw.choice([name, "s1", "s2", "s3", f"s{draw.randrange(40)}"]) for name in names}

    def some(of, most):
        return ", ".join(draw.choice([" | ", ", "]).join(draw.choices(of, k=2)) for _ in range(draw.randrange(most)))

    others = ("Recommends", "Suggests", "Enhances", "Breaks", "Conflicts", "Replaces", "Pre_Depends")
    stanzas = [stanza(name, draw.choice(["net", "libs", "doc", "oldlibs"]), f"thing number {draw.randrange(9)}",
                      Source=sources[name], Maintainer=draw.choice([ANN, OTHER_ANN, BOB]),
                      Depends=some(names + virtual * 5 + ["ghost"], 5),
                      Provides=some(virtual[:2] * 9 + virtual + names[:3], 2),
                      **{field: some(names + ["ghost"], 3) for field in others}) for name in names]
    draw.shuffle(stanzas)
    return "\n".join(stanzas), sources


def run_typed(text, out, *options, **environment):
    """The script on a list of this text, which lies beside what it writes."""
    (out.parent / "Packages").write_text(text)
    return run_script("--packages", out.parent / "Packages", *options, out, **environment)


def build(text, out, *options, **environment):
    done = run_typed(text, out, "--min-section-size", "2", *(options or ("--typed",)), **environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return out


class SevenPackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.out = build(ARCHIVE, folder / "graph", PYTHONHASHSEED="1")
        cls.graph = read_heterogeneous(cls.out)

    def test_every_row_of_every_relation(self):
        self.assertEqual(self.graph["num_nodes"], NUM_NODES)
        self.assertEqual(list(self.graph["edges"]), list(EXPECTED))
        for triplet, edges in EXPECTED.items():
            self.assertEqual(self.graph["edges"][triplet], edges, triplet)

    def test_packages_alone_have_features_labels_and_splits(self):
        graph = self.graph
        self.assertEqual([list(graph[what]) for what in ("features", "labels")], [["package"], ["package"]])
        self.assertEqual([len(row) for row in graph["features"]["package"]], [128] * 7)
        self.assertEqual(graph["labels"]["package"], LABELS)
        self.assertEqual(list(graph["splits"]), SPLITS)
        self.assertEqual([list(of_types) for of_types in graph["splits"].values()], [["package"]] * 3)

    def test_no_file_beside_these(self):
        relations = [f"raw/relations/{'___'.join(triplet)}/{file}.csv.gz" for triplet in EXPECTED
                     for file in ("edge", "num-edge-list")]
        splits = [f"split/{split}/{file}.csv.gz" for split in SPLITS
                  for file in ("nodetype-has-split", "package/train", "package/valid", "package/test")]
        raw = [f"raw/{file}.csv.gz" for file in (
            "num-node-dict", "triplet-type-list", "nodetype-has-feat", "nodetype-has-label",
            "node-feat/package/node-feat", "node-label/package/node-label")]
        self.assertEqual(sorted(bytes_of(self.out)), sorted(["meta.json", *relations, *splits, *raw]))

    def test_types_and_triplets_ascend_in_their_files(self):
        out = self.out
        self.assertEqual(lines_of(out, "raw/num-node-dict.csv.gz"), ["maintainer,package,source,virtual", "3,7,5,4"])
        self.assertEqual(lines_of(out, "raw/triplet-type-list.csv.gz"), [",".join(triplet) for triplet in EXPECTED])
        self.assertEqual(lines_of(out, "raw/nodetype-has-label.csv.gz"),
                         ["maintainer,package,source,virtual", "False,True,False,False"])

    def test_meta_counts_what_the_files_hold(self):
        meta = json.loads((self.out / "meta.json").read_text())
        self.assertEqual((meta["name"], meta["is_hetero"], meta["target"]), ("debian_typed", True, "package"))
        self.assertEqual((meta["num_nodes"], meta["total_nodes"]), (NUM_NODES, 19))
        self.assertEqual(meta["num_edges"], {".".join(triplet): len(edges) for triplet, edges in EXPECTED.items()})
        self.assertEqual(meta["total_edges"], sum(map(len, EXPECTED.values())))
        self.assertEqual((meta["class_names"], meta["class_counts"]), (["libs", "net"], [2, 4]))
        self.assertEqual(meta["labelled_nodes"], 6)
        self.assertEqual(sorted(meta["splits"]), SPLITS)

    def test_what_an_archive_lacks_has_no_triplet(self):
        graph = read_heterogeneous(build("\n".join(stanza(f"p{k}", Depends="p0") for k in range(3)), self.out.parent / "small"))
        self.assertEqual(graph["num_nodes"], {"maintainer": 0, "package": 3, "source": 3, "virtual": 0})
        self.assertEqual(graph["edges"], {("package", "built_from", "source"): [[0, 0], [1, 1], [2, 2]],
                                          ("package", "depends", "package"): [[1, 0], [2, 0]]})

    def test_equal_lists_give_equal_bytes(self):
        first = bytes_of(self.out)
        self.assertEqual(bytes_of(build(ARCHIVE, self.out.parent / "second", PYTHONHASHSEED="2")), first)
        self.assertEqual({data[4:8] for name, data in first.items() if name.endswith(".gz")}, {bytes(4)})  # no time


class RandomArchives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        first = int(os.environ.get("ESPALIER_TEST_SEED", 1))
        cls.built = [(seed, *random_archive(seed), folder / str(seed)) for seed in range(first, first + 3)]
        for _, text, _, out in cls.built:
            build(text, out)

    def archives(self):
        """(text, sources, folder, graph) of three archives, a subtest each."""
        for seed, text, sources, out in self.built:
            with self.subTest(seed=seed):
                yield text, sources, out, read_heterogeneous(out)

    def test_rows_ascend_without_loops_and_lie_within_their_types(self):
        for _, _, _, graph in self.archives():
            self.assertEqual(len(graph["edges"]), 11)
            for (head, relation, tail), edges in graph["edges"].items():
                self.assertEqual(edges, sorted(map(list, set(map(tuple, edges)))), relation)
                self.assertTrue(all(0 <= u < graph["num_nodes"][head] and 0 <= v < graph["num_nodes"][tail]
                                    for u, v in edges), relation)
                self.assertFalse(head == tail and any(u == v for u, v in edges), relation)

    def test_packages_are_those_of_the_homogeneous_graph(self):
        for text, _, out, _ in self.archives():
            typed, plain = bytes_of(out), bytes_of(build(text, out.parent / "plain", "--min-section-size", "2"))
            for file in ("node-feat", "node-label"):
                self.assertEqual(typed[f"raw/{file}/package/{file}.csv.gz"], plain[f"raw/{file}.csv.gz"])

    def test_its_edges_too_once_virtual_names_are_their_providers(self):
        for text, _, _, graph in self.archives():
            edges = {relation: set(map(tuple, rows)) for (_, relation, _), rows in graph["edges"].items()}
            providers = collections.defaultdict(set)
            for package, virtual in edges["provides"]:
                providers[virtual].add(package)
            expected = {(u, v) for u, virtual in edges["depends_virtual"] for v in providers[virtual]
                        if len(providers[virtual]) <= 8 and u != v}
            expected |= edges["depends"] | edges["recommends"] | edges["suggests"]
            homogeneous, _ = archive.edges.build_edges(archive.lists.parse_packages(text))
            self.assertEqual(set(map(tuple, homogeneous.tolist())), expected)
            self.assertIn(True, [len(of_name) > 8 for of_name in providers.values()])
            self.assertIn(True, [len(of_name) <= 8 for of_name in providers.values()])

    def test_splits_part_the_labelled_packages_and_no_source(self):
        for _, sources, _, graph in self.archives():
            names = sorted(sources)
            labelled = [id for id, (label,) in enumerate(graph["labels"]["package"]) if label != "nan"]
            self.assertLess(len(labelled), len(names))
            for split in graph["splits"].values():
                parts = split["package"]
                self.assertEqual(sorted(id for part in parts.values() for id in part), labelled)
                seen = [{sources[names[id]] for id in part} for part in parts.values()]
                self.assertEqual(len(set.union(*seen)), sum(map(len, seen)))
                num_sources = sum(map(len, seen))
                self.assertEqual([len(of_part) for of_part in seen], self.half_fifth_rest(num_sources))
                self.assertTrue(all(part == sorted(part) for part in parts.values()))

    @staticmethod
    def half_fifth_rest(count):
        half, most = (count + 1) // 2, (7 * count + 5) // 10
        return [half, most - half, count - most]

    @unittest.skipUnless(importlib.util.find_spec("ogb"), "no ogb in this python3: its own reader is not asked")
    def test_ogb_reads_the_same(self):
        from ogb.io import read_graph_raw

        for _, _, folder, graph in self.archives():
            theirs = read_graph_raw.read_csv_heterograph_raw(os.path.join(folder, "raw"))[0]
            self.assertEqual({triplet: edges.T.tolist() for triplet, edges in theirs["edge_index_dict"].items()},
                             graph["edges"])
            self.assertEqual(theirs["num_nodes_dict"], graph["num_nodes"])
            self.assertEqual(theirs["node_feat_dict"]["package"].shape, (100, 128))
            self.assertEqual(list(read_graph_raw.read_node_label_hetero(os.path.join(folder, "raw"))), ["package"])
            for split, parts in graph["splits"].items():
                of_parts = read_graph_raw.read_nodesplitidx_split_hetero(os.path.join(folder, "split", split))
                self.assertEqual([of["package"].tolist() for of in of_parts], list(parts["package"].values()))


class Refusals(FolderTest):
    def refused(self, code, message, *options, text=ARCHIVE):
        done = run_typed(text, self.folder / "graph", *options)
        self.assertEqual((done.returncode, done.stdout), (code, ""))
        self.assertIn(message, done.stderr)
        self.assertEqual(os.listdir(self.folder), ["Packages"])
        return done.stderr

    def test_nothing_to_write(self):
        self.refused(2, "not allowed with argument", "--typed", "--tags")
        for text, words in ((ARCHIVE, "no topical section has 300 packages"), *((none, "no package in the Packages file") for none in ("", "Section: net\n\n"))):
            self.assertEqual(self.refused(3, words, "--typed", text=text).count("\n"), 1)

    def test_a_list_that_is_no_text(self):
        (self.folder / "Packages").write_bytes(b"Package: \xff\xfe\n")
        done = run_script("--packages", self.folder / "Packages", "--typed", self.folder / "graph")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1))
        self.assertIn("cannot be read", done.stderr)

    def test_an_earlier_graph_of_either_kind_is_replaced(self):
        out, plainly = self.folder / "graph", ("--min-section-size", "2")
        typed, plain = bytes_of(build(ARCHIVE, self.folder / "typed")), bytes_of(build(ARCHIVE, out, *plainly))
        self.assertEqual(bytes_of(build(ARCHIVE, out)), typed)
        self.assertEqual(bytes_of(build(ARCHIVE, out, *plainly)), plain)
